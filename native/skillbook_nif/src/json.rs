//! JSON files.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::json::{self, Part, Step};

use crate::encode;
use crate::twin::{twin, JSON_BYTES};

mod atoms {
    rustler::atoms! { ok, error, nil, key }
}

twin! {
    /// `{:ok, value}`, maps with string keys, or `{:error, {reason, line, column, path}}`.
    "DirtyCpu" fn json_decode_now | json_decode_dirty(env, bytes: Binary<'a>)
    if bytes.len() <= JSON_BYTES
    => decode(env, bytes)
}

fn decode<'a>(env: Env<'a>, bytes: Binary<'a>) -> NifResult<Term<'a>> {
    let text = match simdutf8::compat::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Ok((atoms::error(), ("expected UTF-8", line, 1, Vec::<Term>::new())).encode(env));
        }
    };
    Ok(match json::parse(text) {
        Ok(value) => (atoms::ok(), encode::value(env, &value)?).encode(env),
        Err(error) => {
            let path: Vec<Term> = error.path.iter().map(|step| encode_step(env, step)).collect();
            (atoms::error(), (error.message, error.line, error.column, path)).encode(env)
        }
    })
}

fn encode_step<'a>(env: Env<'a>, step: &Step) -> Term<'a> {
    match step {
        Step::Key(key) => key.encode(env),
        Step::Index(index) => index.encode(env),
    }
}

/// `{line, column}` of a value, or with `:key` of its key, in a text that `json_decode` takes; `nil` if it has none. The
/// path is a list of keys and of numbers from 0.
#[rustler::nif(schedule = "DirtyCpu")]
fn json_place<'a>(env: Env<'a>, text: &str, path: Vec<Term>, part: Term) -> NifResult<Term<'a>> {
    let step = |term: &Term| match term.decode() {
        Ok(index) => Ok(Step::Index(index)),
        Err(_) => term.decode().map(Step::Key),
    };
    let path = path.iter().map(step).collect::<NifResult<Vec<_>>>()?;
    let part = if atoms::key() == part { Part::Key } else { Part::Value };
    Ok(match json::place(text, &path, part) {
        Some(place) => place.encode(env),
        None => atoms::nil().encode(env),
    })
}
