//! Hidden characters: finding them, and making them visible.

use std::borrow::Cow;

use rustler::{Binary, Encoder, Env, Error, NifResult, Term};
use skillbook_bridge::twin;
use skillbook_core::hidden::{class, find, json, name, visible, Class};

use crate::encode::binary;

twin! {
    /// The text with hidden characters replaced by their codes; the same binary if it has none.
    "DirtyCpu" fn hidden_visible_now | hidden_visible_dirty(env, text: Binary<'a>)
    if is_quick(&text)
    => replaced(env, text, visible)
}

twin! {
    /// The same for a JSON text, with escapes of JSON.
    "DirtyCpu" fn hidden_json_now | hidden_json_dirty(env, text: Binary<'a>)
    if is_quick(&text)
    => replaced(env, text, json)
}

/// Each hidden character takes up to 50 ns, all others together hardly anything.
fn is_quick(text: &Binary) -> bool {
    let none = || utf8(text).map_or(true, |text| find(text).next().is_none());
    text.len() <= twin::HIDDEN_BYTES || text.len() <= twin::COPIED_BYTES && none()
}

fn replaced<'a>(
    env: Env<'a>,
    text: Binary<'a>,
    replace: impl FnOnce(&str) -> Cow<'_, str>,
) -> NifResult<Term<'a>> {
    Ok(match replace(utf8(&text)?) {
        Cow::Borrowed(_) => text.to_term(env),
        Cow::Owned(shown) => binary(env, &shown),
    })
}

fn utf8<'a>(text: &'a Binary) -> NifResult<&'a str> {
    simdutf8::basic::from_utf8(text.as_slice()).map_err(|_| Error::BadArg)
}

/// `{offset, code point, name, description, is_suspect}` for each hidden character.
#[rustler::nif(schedule = "DirtyCpu")]
fn hidden_find<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Vec<Term<'a>>> {
    let described = find(utf8(&text)?).filter_map(|hidden| {
        let class: Class = class(hidden.character)?;
        let code = hidden.character as u32;
        let row = (hidden.at, code, name(hidden.character), class.as_str(), class.is_suspect());
        Some(row.encode(env))
    });
    Ok(described.collect())
}
