//! `Skillbook.Lint` and the codes of `Skillbook.Diagnostic`.

use rustler::{Binary, Env, NifResult, ResourceArc, Term};
use skillbook_core::diagnostic::{Code, Diagnostic};
use skillbook_core::lint;

use crate::catalog::CatalogResource;
use crate::encode;

/// What the pages of a catalog's current generation have beside what was found at load.
#[rustler::nif(schedule = "DirtyCpu")]
fn lint_catalog(env: Env<'_>, catalog: ResourceArc<CatalogResource>) -> NifResult<Vec<Term<'_>>> {
    diagnostics(env, &lint::lint(&catalog.current().catalog))
}

/// What the Agent Skills format does not allow in the `SKILL.md` of a folder of this name.
#[rustler::nif(schedule = "DirtyCpu")]
fn lint_strict<'a>(env: Env<'a>, folder: &str, text: Binary) -> NifResult<Vec<Term<'a>>> {
    diagnostics(env, &lint::strict::check(folder, &text))
}

/// All codes as atoms.
#[rustler::nif]
fn diagnostic_codes(env: Env<'_>) -> Vec<Term<'_>> {
    Code::ALL.iter().map(|code| encode::own_atom(env, code.as_str())).collect()
}

fn diagnostics<'a>(env: Env<'a>, found: &[Diagnostic]) -> NifResult<Vec<Term<'a>>> {
    found.iter().map(|diagnostic| encode::diagnostic(env, diagnostic)).collect()
}
