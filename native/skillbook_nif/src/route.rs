//! `Skillbook.Router`: parses a line and finds its entry in one call, since every command takes
//! this path.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_bridge::twin;
use skillbook_bridge::twin::BYTES;
use skillbook_core::text::command::{self, GET_SKILL};

use crate::command::encode_command;
use crate::encode::Bare;
use crate::text::{self, SourceText};
use crate::view::ViewResource;

mod atoms {
    rustler::atoms! { ok, get, unknown, nil, long }
}

fn find<'a>(env: Env<'a>, view: &ViewResource, line: Binary<'a>) -> NifResult<Term<'a>> {
    let read = SourceText::new(env, line).and_then(|source| {
        let command = command::parse(source.text)?;
        Ok((source, command))
    });
    let (source, command) = match read {
        Ok(read) => read,
        Err(error) => return text::error(env, &error),
    };
    let values = encode_command(env, &source, &command)?;
    if command.name == GET_SKILL {
        return Ok((atoms::get(), values.term(env)).encode(env));
    }
    let found = view.find(&command.name).and_then(|id| Some((id, view.core().entry(id)?)));
    let Some((id, entry)) = found else {
        return Ok((atoms::unknown(), values.term(env)).encode(env));
    };
    // Flags are checked only if they are passed to a handler, or if the page asks for it (`strict`,
    // or `flags` in its frontmatter). A page that only the model reads may mention any flags.
    let fields = entry.fields();
    let checked = entry.handler().is_some() || fields.strict || fields.flags.is_some();
    let declared = match checked {
        false => atoms::nil().encode(env),
        // A declaration is parsed on first use, which is not quick for a long page.
        true if entry.document.text.len() > BYTES => atoms::long().encode(env),
        true => view.declaration_term(env, id),
    };
    let found =
        [atoms::ok().to_term(env).into(), view.entry_term(env, id).into(), declared.into(), values];
    Ok(Bare::tuple(env, &found).term(env))
}

twin! {
    /// With the parsed command: `{:ok, entry, declaration, command}`, `{:get, command}` or
    /// `{:unknown, command}`. The declaration is `nil` if flags are not checked, and `:long` if the
    /// page is too long to parse here.
    "DirtyCpu" fn route_now | route_dirty(env, view: &'a ViewResource, line: Binary<'a>)
    text line.len()
    => find(env, view, line)
}
