//! JSON files.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::json;

use crate::encode;

mod atoms {
    rustler::atoms! { ok, error }
}

/// `{:ok, value}`, maps with string keys, or `{:error, {reason, line, column}}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn json_decode<'a>(env: Env<'a>, bytes: Binary<'a>) -> NifResult<Term<'a>> {
    let text = match simdutf8::compat::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Ok((atoms::error(), ("expected UTF-8", line, 1)).encode(env));
        }
    };
    Ok(match json::parse(text) {
        Ok(value) => (atoms::ok(), encode::value(env, &value)?).encode(env),
        Err(error) => (atoms::error(), (error.message, error.line, error.column)).encode(env),
    })
}
