//! Encodes values of the core as terms, without copies and with as few calls into the virtual
//! machine as possible.
//!
//! This file and `shared.rs` are the only ones with unsafe code. Each block states why it is sound.

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

/// An atom from a fixed list of ours. Never call this with text from a document: atoms are not
/// garbage collected.
pub fn static_atom<'a>(env: Env<'a>, name: &'static str) -> Term<'a> {
    match rustler::types::atom::Atom::from_str(env, name) {
        Ok(atom) => atom.encode(env),
        Err(_) => atoms::nil().encode(env),
    }
}

/// A term as one machine word, for values that are encoded on every call. Rustler's `Term` has
/// three words; moving those takes longer than making the term.
/// such a term takes longer than making it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bare<'a>(ErlNifTerm, PhantomData<Term<'a>>);

/// Enough for most lists without an allocation.
pub type Bares<'a> = SmallVec<[Bare<'a>; 8]>;

impl<'a> From<Term<'a>> for Bare<'a> {
    fn from(term: Term<'a>) -> Self {
        Bare(term.as_c_arg(), PhantomData)
    }
}

impl<'a> Bare<'a> {
    /// The same term for Rustler.
    pub fn term(self, env: Env<'a>) -> Term<'a> {
        // SAFETY: `'a` belongs to a single environment, the one that made the term.
        unsafe { Term::new(env, self.0) }
    }

    /// A part of a binary without a copy; `None` if it is not inside the binary.
    pub fn part(env: Env<'a>, binary: &Binary<'a>, offset: usize, len: usize) -> Option<Self> {
        let inside = offset.checked_add(len)? <= binary.len();
        let whole = binary.to_term(env).as_c_arg();
        // SAFETY: the part is inside the binary, which belongs to this environment.
        // A sub-binary keeps the whole binary alive, which is fine for parts of a reply.
        inside.then(|| unsafe {
            Bare(enif_make_sub_binary(env.as_c_arg(), whole, offset, len), PhantomData)
        })
    }

    pub fn list(env: Env<'a>, terms: &[Self]) -> Self {
        // SAFETY: the slice has this many terms of this environment, each one word.
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

    /// `None` if a key occurs twice.
    pub fn map(env: Env<'a>, keys: &[Self], values: &[Self]) -> Option<Self> {
        let len = keys.len().min(values.len());
        let mut map = MaybeUninit::uninit();
        // SAFETY: both slices have at least `len` terms of this environment. `map` is read only if
        // the call reports that it has been written.
        unsafe {
            let (keys, values) = (keys.as_ptr().cast(), values.as_ptr().cast());
            let made =
                enif_make_map_from_arrays(env.as_c_arg(), keys, values, len, map.as_mut_ptr()) != 0;
            made.then(|| Bare(map.assume_init(), PhantomData))
        }
    }
}

/// A map with atom keys. If the keys are in the order of their names, the virtual machine need not
/// sort them.
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
        static_atom(env, diagnostic.code.as_str()),
        static_atom(env, diagnostic.severity.as_str()),
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

/// A frontmatter or JSON value. Maps have string keys, `null` is `nil`.
///
/// The parsers limit nesting to 128 levels, so this recursion is bounded.
pub fn value<'a>(env: Env<'a>, item: &Value) -> NifResult<Term<'a>> {
    Ok(match item.typed() {
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
        // The parser has refused duplicate keys, which a map could not hold.
        Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key.encode(env)).collect();
            let values =
                pairs.iter().map(|(_, item)| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            Term::map_from_term_arrays(env, &keys, &values)?
        }
        // A typed value is none.
        Value::Written(scalar) => scalar.text.encode(env),
    })
}
