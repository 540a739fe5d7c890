//! `skillbook test`, of examples by words. Evaluations need Elixir.

use std::fs;
use std::path::Path;

use skillbook_core::report::examples::Tested;
use skillbook_core::view::examples::{shares, Asked, Outcome, Shares};
use skillbook_core::view::View;

use crate::arguments::Options;
use crate::book::{self, is_below};
use crate::output::{put, terminal, usage_error};
use crate::{read, Ended};

/// The pairs that are shown without `--pairs`.
const PAIRS: usize = 10;
/// The folders below a target in which evaluations are searched, one in the other.
const MAX_DEPTH: usize = 16;

pub fn run(options: &Options, standalone: bool) -> Result<u8, Ended> {
    if let Some(path) = options.args.iter().find(|path| !Path::new(path).exists()) {
        let message = format!("`test` expects folders or files, got: {path}, which does not exist");
        return Ok(usage_error(&message, "test --help"));
    }
    let targets = book::targets(options);
    let only = options.get("only");
    let evaluations = targets.iter().find_map(|path| evaluations(Path::new(path)));
    if let (Some(path), true) = (evaluations, only != Some("examples")) {
        return Err(Ended::Elixir(format!("`{path}`")));
    }
    let roots = book::roots(options, &targets);
    let mut origins = book::others(book::builtins(options), &roots);
    origins.extend(book::folders(options, &roots));
    let book = read::load(options, &origins, standalone)?;
    if only == Some("evaluations") {
        if options.is_json() {
            put("{}")?;
        } else {
            put("There are no evaluations.")?;
        }
        return Ok(nothing("evaluations beside skills, such as evals.yaml"));
    }
    let given = options.get("profile").is_some() || options.get("grant").is_some();
    let profile = if given { book::profile(options) } else { book::unrestricted() };
    let view = book.view(&profile);
    let tested = tested(options, &view, names(options, &view, &targets).as_deref());
    put(&if options.is_json() { tested.json() } else { tested.text(terminal(options)) })?;
    Ok(status(options, &tested))
}

/// The names below the targets. Without any, all but the built-in skills, if there are others.
fn names(options: &Options, view: &View, targets: &[String]) -> Option<Vec<String>> {
    let all = view.entries().map(|(_, entry)| entry);
    if options.args.is_empty() {
        let own = all.filter(|entry| entry.source.name != book::BUILTIN);
        return Some(own.map(|entry| entry.name.to_string()).collect())
            .filter(|own: &Vec<String>| !own.is_empty());
    }
    let below = all.filter(|entry| is_below(&entry.document.path, targets));
    Some(below.map(|entry| entry.name.to_string()).collect())
}

fn tested(options: &Options, view: &View, only: Option<&[String]>) -> Tested {
    let router = options.is_on("preflight", false);
    let plan = view.examples(only);
    let outcome = |asked: Asked| {
        let picked = view.picked(&asked.request).contains(&&*asked.name);
        view.outcome(asked, None, picked, router)
    };
    let results: Vec<Outcome> = plan.asked.into_iter().map(outcome).collect();
    let led: Vec<_> = results.iter().flat_map(Outcome::led).collect();
    let mut pairs = view.competitors(&led, None, only);
    pairs.truncate(options.number("pairs").unwrap_or(PAIRS));
    let hits: Vec<_> = results.iter().filter_map(Outcome::hit).collect();
    let Shares { hit1, hit3, picked } = shares(&hits);
    let (entries, unlisted) = (plan.entries, plan.unlisted);
    Tested { results, hit1, hit3, picked, router, pairs, entries, unlisted, vectors: false }
}

fn status(options: &Options, tested: &Tested) -> u8 {
    // A test that tests nothing does not pass.
    if tested.results.is_empty() {
        return nothing(match options.get("only") {
            Some(_) => "`examples` in the frontmatter of skills",
            None => "`examples` in the frontmatter of skills, or evaluations beside them",
        });
    }
    let limits = [
        (tested.hit1, options.number("min-hit1")),
        (tested.hit3, options.number("min-hit3")),
        (tested.picked, options.number("min-picked")),
    ];
    // Without a request, none leads anywhere.
    let is_below = |(share, least): &(Option<f64>, Option<usize>)| {
        least.is_some_and(|least| share.unwrap_or(0.0) * 100.0 < least as f64)
    };
    let failed = match limits.iter().all(|(_, least)| least.is_none()) {
        true => tested.results.iter().any(|result| !result.passed),
        false => limits.iter().any(is_below),
    };
    let picked = tested.results.iter().any(|result| result.not && !result.passed);
    (failed || picked).into()
}

fn nothing(expected: &str) -> u8 {
    usage_error(&format!("nothing was tested: expected {expected}"), "test --help")
}

/// A file of evaluations at a path, beside a file or below a folder.
fn evaluations(path: &Path) -> Option<String> {
    match path.is_dir() {
        true => below(path, MAX_DEPTH),
        false if is_evaluations(path) => Some(path.to_string_lossy().into_owned()),
        false => below(path.parent()?, 1),
    }
}

fn below(folder: &Path, depth: usize) -> Option<String> {
    if depth == 0 {
        return None;
    }
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().ok()?;
        if name.starts_with('.') || name == "node_modules" || name.ends_with(".recordings") {
            None
        } else if kind.is_dir() {
            below(&path, depth - 1)
        } else {
            (kind.is_file() && is_evaluations(&path)).then(|| path.to_string_lossy().into_owned())
        }
    })
}

/// Whether a file is one of evaluations, by its name.
fn is_evaluations(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_in_evals = || path.parent().is_some_and(|folder| folder.ends_with("evals"));
    let is_of = |of: &str| {
        let lower = name.to_lowercase();
        lower == of || lower.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'))
    };
    is_of("evals.yaml") || is_of("eval.md") || (name == "evals.json" && is_in_evals())
}
