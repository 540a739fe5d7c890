//! `Skillbook.Explanation`: which file a name resolves to, and why.

use rustler::{Encoder, Env, NifResult, ResourceArc, Term};
use skillbook_core::explain::{explain, Explained};

use crate::encode;
use crate::profile::tenant;
use crate::view::{PromptOptions, ViewResource};

mod atoms {
    rustler::atoms! { path, name, source, state, by, hidden, prompt, diagnostics }
}

/// `{files, close, text}`: each file with its state as a map, similar names if nothing has this
/// one, and all of it as text.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_explain<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    seer: Term<'a>,
    name: &str,
    options: PromptOptions,
) -> NifResult<Term<'a>> {
    // The reader's own catalog has no entries of which it may know nothing.
    let seer = tenant(seer)?;
    let seen = view.for_seer(&seer)?;
    let explanation = explain(&seen, &seer, name, &options.options());
    let files =
        explanation.files.iter().map(|file| file_term(env, file)).collect::<NifResult<Vec<_>>>()?;
    let text = explanation.text(name, &view.core().profile().id);
    Ok((files, explanation.close, text).encode(env))
}

fn file_term<'a>(env: Env<'a>, file: &Explained) -> NifResult<Term<'a>> {
    let diagnostics = file
        .diagnostics
        .iter()
        .map(|found| encode::diagnostic(env, found))
        .collect::<NifResult<Vec<_>>>()?;
    Term::map_from_pairs(
        env,
        &[
            (atoms::path(), file.path.encode(env)),
            (atoms::name(), encode::option(env, &file.name)),
            (atoms::source(), encode::option(env, &file.source)),
            (atoms::state(), encode::static_atom(env, file.state.as_str())),
            (atoms::by(), encode::option(env, &file.by)),
            (atoms::hidden(), file.hidden.encode(env)),
            (atoms::prompt(), encode::option(env, &file.prompt)),
            (atoms::diagnostics(), diagnostics.encode(env)),
        ],
    )
}
