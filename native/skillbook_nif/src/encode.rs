//! How the core's values look as terms.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use rustler::sys::{
    enif_make_list_from_array, enif_make_map_from_arrays, enif_make_sub_binary,
    enif_make_tuple_from_array, ErlNifTerm,
};
use rustler::{Atom, Binary, Encoder, Env, NifResult, Term};
use skillbook_core::page::diagnostic::Diagnostic;
use skillbook_core::value::Value;
use smallvec::SmallVec;

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

/// A term as one word, for what is encoded on every call. Rustler's has three, of which one is mostly padding: moving
/// such a term takes longer than making it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bare<'a>(ErlNifTerm, PhantomData<Term<'a>>);

/// As many as most lists have, without a heap.
pub type Bares<'a> = SmallVec<[Bare<'a>; 8]>;

impl<'a> From<Term<'a>> for Bare<'a> {
    fn from(term: Term<'a>) -> Self {
        Bare(term.as_c_arg(), PhantomData)
    }
}

impl<'a> Bare<'a> {
    /// The same for Rustler.
    pub fn term(self, env: Env<'a>) -> Term<'a> {
        // SAFETY: `'a` is the lifetime of one environment alone, which made the term.
        unsafe { Term::new(env, self.0) }
    }

    /// A part of a binary that is not a copy, if it is as long.
    pub fn part(env: Env<'a>, binary: &Binary<'a>, offset: usize, len: usize) -> Option<Self> {
        let inside = offset.checked_add(len)? <= binary.len();
        let whole = binary.to_term(env).as_c_arg();
        // SAFETY: the part is inside of the binary, which is of this environment.
        inside.then(|| unsafe {
            Bare(enif_make_sub_binary(env.as_c_arg(), whole, offset, len), PhantomData)
        })
    }

    pub fn list(env: Env<'a>, terms: &[Self]) -> Self {
        // SAFETY: these are as many terms of this environment, each of one word.
        unsafe {
            Bare(
                enif_make_list_from_array(
                    env.as_c_arg(),
                    terms.as_ptr().cast(),
                    terms.len() as u32,
                ),
                PhantomData,
            )
        }
    }

    pub fn tuple(env: Env<'a>, terms: &[Self]) -> Self {
        // SAFETY: as above.
        unsafe {
            Bare(
                enif_make_tuple_from_array(
                    env.as_c_arg(),
                    terms.as_ptr().cast(),
                    terms.len() as u32,
                ),
                PhantomData,
            )
        }
    }

    /// `None` if two of the keys are the same.
    pub fn map(env: Env<'a>, keys: &[Self], values: &[Self]) -> Option<Self> {
        let len = keys.len().min(values.len());
        let mut map = MaybeUninit::uninit();
        // SAFETY: both have at least as many terms of this environment; `map` is written if the call says so, and only
        // then read.
        unsafe {
            let (keys, values) = (keys.as_ptr().cast(), values.as_ptr().cast());
            let made =
                enif_make_map_from_arrays(env.as_c_arg(), keys, values, len, map.as_mut_ptr()) != 0;
            made.then(|| Bare(map.assume_init(), PhantomData))
        }
    }
}

/// A map with atoms for keys. Keys in the order of their names save the virtual machine the sorting.
pub fn map<'a, const N: usize>(env: Env<'a>, pairs: [(Atom, Term<'a>); N]) -> NifResult<Term<'a>> {
    let keys = pairs.map(|(key, _)| Bare::from(key.to_term(env)));
    let values = pairs.map(|(_, value)| Bare::from(value));
    Ok(Bare::map(env, &keys, &values).ok_or(rustler::Error::BadArg)?.term(env))
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
        option(
            env,
            &diagnostic
                .fix
                .as_ref()
                .map(|fix| (fix.range.start, fix.range.len(), &fix.replacement)),
        ),
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
            let terms =
                values.iter().map(|item| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            terms.encode(env)
        }
        Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key.encode(env)).collect();
            let values =
                pairs.iter().map(|(_, item)| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            Term::map_from_term_arrays(env, &keys, &values)?
        }
    })
}
