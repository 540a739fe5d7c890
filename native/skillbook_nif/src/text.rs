//! What extractor and command share: binaries as text, parts of a binary without a copy, errors.

use std::borrow::Cow;

use rustler::{Binary, Encoder, Env, NewBinary, Term};
use skillbook_core::text::error::Error;
use skillbook_core::text::extract::invalid_utf8;

use crate::encode::own_atom;

mod atoms {
    rustler::atoms! { ok, error }
}

/// The text of a binary.
pub fn utf8<'a>(binary: &Binary<'a>) -> Result<&'a str, Error> {
    // `from_slice` borrows for as long as the environment lives, as the term does.
    let bytes: &'a [u8] = Binary::from_term_bytes(binary);
    simdutf8::compat::from_utf8(bytes).map_err(|error| invalid_utf8(error.valid_up_to()))
}
