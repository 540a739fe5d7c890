//! `Skillbook.Router`: a line is read and its skill found in one call.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::text::command::{self, GET_SKILL};

use crate::command::encode_command;
use crate::encode::Bare;
use crate::text::{self, Source};
use crate::twin::twin;
use crate::view::ViewResource;

mod atoms {
    rustler::atoms! { ok, get, unknown }
}

fn find<'a>(env: Env<'a>, view: &ViewResource, line: Binary<'a>) -> NifResult<Term<'a>> {
    let read = Source::new(env, line).and_then(|source| {
        let command = command::parse(source.text)?;
        Ok((source, command))
    });
    let (source, command) = match read {
        Ok(read) => read,
        Err(error) => return text::error(env, &error),
    };
    let values = encode_command(env, &source, &command)?;
    let found = match view.find(&command.name) {
        _ if command.name == GET_SKILL => return Ok((atoms::get(), values.term(env)).encode(env)),
        Some(id) => [atoms::ok().to_term(env).into(), view.entry_term(env, id).into(), values],
        None => return Ok((atoms::unknown(), values.term(env)).encode(env)),
    };
    Ok(Bare::tuple(env, &found).term(env))
}

twin! {
    /// With the values of an entry and a command: `{:ok, entry, command}`, `{:get, command}` or `{:unknown, command}`.
    "DirtyCpu" fn route_now | route_dirty(env, view: &'a ViewResource, line: Binary<'a>)
    text line.len()
    => find(env, view, line)
}
