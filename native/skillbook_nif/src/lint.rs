//! `Skillbook.Lint` and the codes of `Skillbook.Diagnostic`.

use std::path::Path;

use rustler::{Env, NifResult, ResourceArc, Term};
use skillbook_core::excerpt::at_column;
use skillbook_core::lint;
use skillbook_core::page::diagnostic::{Code, Diagnostic};
use skillbook_core::report::codes;
use skillbook_files::strict;

use crate::encode;
use crate::view::ViewResource;

/// The findings of lint for the pages of a view, beyond the diagnostics of loading.
#[rustler::nif(schedule = "DirtyCpu")]
fn lint_view(env: Env<'_>, view: ResourceArc<ViewResource>) -> NifResult<Vec<Term<'_>>> {
    diagnostics(env, &lint::lint(view.core()))
}

/// The violations of the Agent Skills format in every `SKILL.md` below a folder.
#[rustler::nif(schedule = "DirtyIo")]
fn lint_strict<'a>(env: Env<'a>, folder: &str) -> NifResult<Vec<Term<'a>>> {
    diagnostics(env, &strict::check(Path::new(folder)))
}

/// A line as it is displayed, and the line below it with a caret under the column.
#[rustler::nif]
fn diagnostic_excerpt(line: &str, column: usize) -> (String, String) {
    let excerpt = at_column(line, column);
    (excerpt.text, excerpt.caret)
}

/// All diagnostic codes as atoms.
#[rustler::nif]
fn diagnostic_codes(env: Env<'_>) -> Vec<Term<'_>> {
    Code::ALL.iter().map(|code| encode::static_atom(env, code.as_str())).collect()
}

/// The problem and the solution of a code, as `docs/diagnostics.md` says them; `nil` for an unknown
/// code.
#[rustler::nif]
fn diagnostic_explain(code: &str) -> Option<(String, String)> {
    Code::ALL.iter().find(|known| known.as_str() == code).and_then(|code| codes::explain(*code))
}

/// The form for logs and terminals.
#[rustler::nif]
fn diagnostic_text(diagnostic: Term) -> NifResult<String> {
    Ok(encode::read_diagnostic(diagnostic)?.to_string())
}

fn diagnostics<'a>(env: Env<'a>, found: &[Diagnostic]) -> NifResult<Vec<Term<'a>>> {
    found.iter().map(|diagnostic| encode::diagnostic(env, diagnostic)).collect()
}
