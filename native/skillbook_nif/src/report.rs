//! The texts of the command line, which the program `skillbook` prints too.

use std::path::Path;

use rustler::{Encoder, Env, NifMap, NifResult, NifUnitEnum, ResourceArc, Term};
use skillbook_core::report::entries::{list, Filter};
use skillbook_core::report::examples::Tested;
use skillbook_core::report::findings::{self, Format};
use skillbook_core::report::hits::{self, Row};
use skillbook_core::report::route::{self, Route};
use skillbook_core::report::{problems, Printed, Terminal};
use skillbook_files::document;

use crate::encode::read_diagnostic;
use crate::view::ViewResource;

#[derive(NifUnitEnum)]
enum FormatName {
    Text,
    Json,
    Sarif,
    Github,
}

/// A `%Skillbook.CLI.Terminal{}`.
#[derive(NifMap)]
struct TerminalOptions {
    color: bool,
    width: Option<usize>,
}

impl TerminalOptions {
    fn terminal(self) -> Terminal {
        Terminal { color: self.color, width: self.width }
    }
}

/// `{output, complaint or nil, failed}`.
fn encode(env: Env<'_>, printed: Printed) -> Term<'_> {
    (printed.output, printed.complaint, printed.failed).encode(env)
}

fn diagnostics(terms: Vec<Term>) -> NifResult<Vec<skillbook_core::page::diagnostic::Diagnostic>> {
    terms.into_iter().map(read_diagnostic).collect()
}

/// The findings of lint, with lines of their files. Paths below `folder` are written relative to
/// it.
#[rustler::nif(schedule = "DirtyIo")]
fn report_lint<'a>(
    env: Env<'a>,
    found: Vec<Term<'a>>,
    folder: &str,
    format: FormatName,
    terminal: TerminalOptions,
) -> NifResult<Term<'a>> {
    let format = match format {
        FormatName::Text => Format::Text,
        FormatName::Json => Format::Json,
        FormatName::Sarif => Format::Sarif,
        FormatName::Github => Format::Github,
    };
    let read = |path: &str| document::read(Path::new(path)).ok();
    let found = diagnostics(found)?;
    Ok(encode(env, findings::lint(&found, folder, format, terminal.terminal(), read)))
}

/// The diagnostics of loading.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_loading<'a>(env: Env<'a>, found: Vec<Term<'a>>, json: bool) -> NifResult<Term<'a>> {
    Ok(encode(env, findings::loading(&diagnostics(found)?, json)))
}

/// The first problems among diagnostics, or `nil`.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_problems(found: Vec<Term>) -> NifResult<Option<String>> {
    Ok(problems(&diagnostics(found)?))
}

/// The entries of a view with these words, sources and domains.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_list<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    (words, sources, domains): (Vec<String>, Vec<String>, Vec<String>),
    (limit, after): (Option<usize>, Option<String>),
    json: bool,
    terminal: TerminalOptions,
) -> Term<'a> {
    let (sources, domains, after) = (&sources, &domains, after.as_deref());
    let filter = Filter { words: &words, sources, domains, after, limit };
    encode(env, list(view.core(), filter, json, terminal.terminal()))
}

/// The name of a hit, its kind or title, its score, and its snippet with the words that match.
type RowTerm = (String, String, f64, String, Vec<(usize, usize)>);

/// The hits of a search as text.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_hits(rows: Vec<RowTerm>, terminal: TerminalOptions) -> String {
    let row =
        |(name, more, score, snippet, highlights)| Row { name, more, score, snippet, highlights };
    hits::text(&rows.into_iter().map(row).collect::<Vec<_>>(), terminal.terminal())
}

/// The stages of the router and its picks, from JSON.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_route<'a>(
    env: Env<'a>,
    found: &str,
    json: bool,
    terminal: TerminalOptions,
) -> NifResult<Term<'a>> {
    let found: Route = serde_json::from_str(found).map_err(|_| rustler::Error::BadArg)?;
    Ok(encode(env, route::route(&found, json, terminal.terminal())))
}

/// Where the examples of skills lead, from JSON.
#[rustler::nif(schedule = "DirtyCpu")]
fn report_examples(tested: &str, terminal: TerminalOptions) -> NifResult<String> {
    let tested: Tested = serde_json::from_str(tested).map_err(|_| rustler::Error::BadArg)?;
    Ok(tested.text(terminal.terminal()))
}
