//! Terms, made without copies and with as few calls into the virtual machine as possible.
//!
//! The functions are inlined into the libraries, which are built without link-time optimisation.
//!
//! This is the only file of the crate with unsafe code. Each block states why it is sound.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use rustler::sys::{
    enif_make_list_from_array, enif_make_map_from_arrays, enif_make_sub_binary,
    enif_make_tuple_from_array, ErlNifTerm,
};
use rustler::{Atom, Binary, Encoder, Env, NewBinary, NifResult, Term};
use smallvec::SmallVec;

mod atoms {
    rustler::atoms! { nil }
}

/// An atom from a fixed list of ours. Never call this with text from a document: atoms are not
/// garbage collected.
#[inline]
pub fn static_atom<'a>(env: Env<'a>, name: &'static str) -> Term<'a> {
    match rustler::types::atom::Atom::from_str(env, name) {
        Ok(atom) => atom.encode(env),
        Err(_) => atoms::nil().encode(env),
    }
}

/// A term as one machine word, for values that are encoded on every call. Rustler's `Term` has
/// three words; moving those takes longer than making the term.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bare<'a>(ErlNifTerm, PhantomData<Term<'a>>);

/// Enough for most lists without an allocation.
pub type Bares<'a> = SmallVec<[Bare<'a>; 8]>;

impl<'a> From<Term<'a>> for Bare<'a> {
    #[inline]
    fn from(term: Term<'a>) -> Self {
        Bare(term.as_c_arg(), PhantomData)
    }
}

impl<'a> Bare<'a> {
    /// The same term for Rustler.
    #[inline]
    pub fn term(self, env: Env<'a>) -> Term<'a> {
        // SAFETY: `'a` belongs to a single environment, the one that made the term.
        unsafe { Term::new(env, self.0) }
    }

    /// A part of a binary without a copy; `None` if it is not inside the binary.
    #[inline]
    pub fn part(env: Env<'a>, binary: &Binary<'a>, offset: usize, len: usize) -> Option<Self> {
        let inside = offset.checked_add(len)? <= binary.len();
        let whole = binary.to_term(env).as_c_arg();
        // SAFETY: the part is inside the binary, which belongs to this environment.
        // A sub-binary keeps the whole binary alive, which is fine for parts of a reply.
        inside.then(|| unsafe {
            Bare(enif_make_sub_binary(env.as_c_arg(), whole, offset, len), PhantomData)
        })
    }

    /// A list of terms.
    #[inline]
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

    /// A tuple of terms.
    #[inline]
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

    /// A map; `None` if a key occurs twice.
    #[inline]
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
#[inline]
pub fn map<'a, const N: usize>(env: Env<'a>, pairs: [(Atom, Term<'a>); N]) -> NifResult<Term<'a>> {
    let keys = pairs.map(|(key, _)| Bare::from(key.to_term(env)));
    let values = pairs.map(|(_, value)| Bare::from(value));
    Ok(Bare::map(env, &keys, &values).ok_or(rustler::Error::BadArg)?.term(env))
}

/// `nil` for `None`.
#[inline]
pub fn option<'a, T: Encoder>(env: Env<'a>, value: &Option<T>) -> Term<'a> {
    match value {
        Some(value) => value.encode(env),
        None => atoms::nil().encode(env),
    }
}

/// Bytes as a binary, which is a copy.
#[inline]
pub fn binary<'a>(env: Env<'a>, bytes: impl AsRef<[u8]>) -> Term<'a> {
    NewBinary::from_slice(env, bytes.as_ref()).into()
}
