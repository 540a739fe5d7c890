//! How the core's values look as terms.

use std::mem::MaybeUninit;

use rustler::sys::enif_make_map_from_arrays;
use rustler::{Atom, Encoder, Env, NifResult, Term};
use skillbook_core::diagnostic::Diagnostic;
use skillbook_core::value::Value;

mod atoms {
    rustler::atoms! {
        nil,
        __struct__,
        diagnostic = "Elixir.Skillbook.Diagnostic",
        code,
        severity,
        path,
        line,
        column,
        message,
        hint,
        fix,
    }
}

/// An atom from a fixed list of ours: never call this with text that came from a document.
pub fn own_atom<'a>(env: Env<'a>, name: &'static str) -> Term<'a> {
    match rustler::types::atom::Atom::from_str(env, name) {
        Ok(atom) => atom.encode(env),
        Err(_) => atoms::nil().encode(env),
    }
}

/// A map with atoms for keys, for what is encoded on every call: without Rustler's two vectors. Keys in the order of
/// their names save the virtual machine the sorting.
pub fn map<'a, const N: usize>(env: Env<'a>, pairs: [(Atom, Term<'a>); N]) -> NifResult<Term<'a>> {
    let keys = pairs.map(|(key, _)| key.to_term(env).as_c_arg());
    let values = pairs.map(|(_, value)| value.as_c_arg());
    let mut map = MaybeUninit::uninit();
    // SAFETY: both arrays have N terms of this environment; `map` is written if the call says so, and only then read.
    unsafe {
        if enif_make_map_from_arrays(env.as_c_arg(), keys.as_ptr(), values.as_ptr(), N, map.as_mut_ptr()) == 0 {
            return Err(rustler::Error::BadArg);
        }
        Ok(Term::new(env, map.assume_init()))
    }
}

/// `nil` for `None`.
pub fn option<'a, T: Encoder>(env: Env<'a>, value: &Option<T>) -> Term<'a> {
    match value {
        Some(value) => value.encode(env),
        None => atoms::nil().encode(env),
    }
}

/// A `%Skillbook.Diagnostic{}`.
pub fn diagnostic<'a>(env: Env<'a>, diagnostic: &Diagnostic) -> NifResult<Term<'a>> {
    let keys = [
        atoms::__struct__().encode(env),
        atoms::code().encode(env),
        atoms::severity().encode(env),
        atoms::path().encode(env),
        atoms::line().encode(env),
        atoms::column().encode(env),
        atoms::message().encode(env),
        atoms::hint().encode(env),
        atoms::fix().encode(env),
    ];
    let values = [
        atoms::diagnostic().encode(env),
        own_atom(env, diagnostic.code.as_str()),
        own_atom(env, diagnostic.severity.as_str()),
        option(env, &diagnostic.path),
        option(env, &diagnostic.line),
        option(env, &diagnostic.column),
        diagnostic.message.encode(env),
        option(env, &diagnostic.hint),
        option(env, &diagnostic.fix.as_ref().map(|fix| (fix.range.start, fix.range.len(), &fix.replacement))),
    ];
    Term::map_from_term_arrays(env, &keys, &values)
}

/// A frontmatter or JSON value: maps have string keys, `null` is `nil`.
///
/// The values' makers bound the nesting (128 levels), so the recursion here is bounded too.
pub fn value<'a>(env: Env<'a>, item: &Value) -> NifResult<Term<'a>> {
    Ok(match item {
        Value::Null => atoms::nil().encode(env),
        Value::Bool(value) => value.encode(env),
        Value::Int(value) => value.encode(env),
        Value::Float(value) => value.encode(env),
        Value::Str(value) => value.encode(env),
        Value::List(values) => {
            let terms = values.iter().map(|item| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            terms.encode(env)
        }
        Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key.encode(env)).collect();
            let values = pairs.iter().map(|(_, item)| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            Term::map_from_term_arrays(env, &keys, &values)?
        }
    })
}
