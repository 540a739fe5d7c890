//! `Skillbook.Lint` and the codes of `Skillbook.Diagnostic`.

use rustler::{Binary, Env, NifResult, ResourceArc, Term};
use skillbook_core::excerpt::excerpt;
use skillbook_core::lint;
use skillbook_core::page::diagnostic::{Code, Diagnostic};

use crate::encode;
use crate::view::ViewResource;

/// The findings of lint for the pages of a view, beyond the diagnostics of loading.
#[rustler::nif(schedule = "DirtyCpu")]
fn lint_view(env: Env<'_>, view: ResourceArc<ViewResource>) -> NifResult<Vec<Term<'_>>> {
    diagnostics(env, &lint::lint(view.core()))
}

/// The violations of the Agent Skills format in the `SKILL.md` of a folder with this name.
#[rustler::nif(schedule = "DirtyCpu")]
fn lint_strict<'a>(env: Env<'a>, folder: &str, text: Binary) -> NifResult<Vec<Term<'a>>> {
    diagnostics(env, &lint::spec::check(folder, &text))
}

/// A line as it is displayed, and the line below it with a caret under the column.
#[rustler::nif]
fn diagnostic_excerpt(line: &str, column: usize) -> (String, String) {
    let end = (line.len(), "");
    let (from, rest) =
        line.char_indices().nth(column.saturating_sub(1)).map_or(end, |(at, _)| (at, &line[at..]));
    let excerpt = excerpt(line, from, from + rest.chars().next().map_or(0, char::len_utf8));
    (excerpt.text, excerpt.caret)
}

/// All diagnostic codes as atoms.
#[rustler::nif]
fn diagnostic_codes(env: Env<'_>) -> Vec<Term<'_>> {
    Code::ALL.iter().map(|code| encode::static_atom(env, code.as_str())).collect()
}

fn diagnostics<'a>(env: Env<'a>, found: &[Diagnostic]) -> NifResult<Vec<Term<'a>>> {
    found.iter().map(|diagnostic| encode::diagnostic(env, diagnostic)).collect()
}
