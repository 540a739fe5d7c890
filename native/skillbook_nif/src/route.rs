//! `Skillbook.Router`: a line is read and its skill found in one call.

use rustler::{Binary, Encoder, Env, NifResult, ResourceArc, Term};
use skillbook_core::text::command::{self, GET_SKILL};

use crate::command::encode_command;
use crate::text::{self, Source};
use crate::twin::{twin, BYTES};
use crate::view::ViewResource;

mod atoms {
    rustler::atoms! { ok, get, unknown }
}

fn find<'a>(env: Env<'a>, view: &ViewResource, line: Binary<'a>) -> NifResult<Term<'a>> {
    let read = Source::new(line).and_then(|source| {
        let command = command::parse(source.text)?;
        Ok((source, command))
    });
    let (source, command) = match read {
        Ok(read) => read,
        Err(error) => return text::error(env, &error),
    };
    let term = encode_command(env, &source, &command)?;
    if command.name == GET_SKILL {
        return Ok((atoms::get(), term).encode(env));
    }
    Ok(match view.find(&command.name) {
        Some(id) => (atoms::ok(), view.entry_term(env, id), term).encode(env),
        None => (atoms::unknown(), term).encode(env),
    })
}

twin! {
    /// `{:ok, entry, command}`, `{:get, command}` or `{:unknown, command}`.
    "DirtyCpu" fn route_now | route_dirty(env, view: ResourceArc<ViewResource>, line: Binary<'a>)
    if line.len() <= BYTES
    => find(env, &view, line)
}
