//! `skillbook lint`.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use skillbook_core::lint::lint;
use skillbook_core::page::diagnostic::{Diagnostic, Fix};
use skillbook_core::report::findings::{self, Format};
use skillbook_core::report::relative;
use skillbook_core::view::{Profile, View};
use skillbook_files::{document, strict};

use crate::arguments::Options;
use crate::book::{self, expand, is_below, linted, Book, Origin};
use crate::output::{complain, note, printed, reason, terminal, usage_error};
use crate::{current_folder, Ended};

/// A fix may reveal another mistake in the same line.
const MAX_ROUNDS: usize = 5;

/// The sources to lint, and their surroundings.
struct Lint {
    sources: Vec<Origin>,
    context: Vec<Origin>,
    targets: Vec<String>,
    all: bool,
    profile: Option<Profile>,
    strict: bool,
    standalone: bool,
}

pub fn run(options: &Options, standalone: bool) -> Result<u8, Ended> {
    let dirs: Vec<String> = options.dirs().iter().map(|dir| expand(dir)).collect();
    if let Some(path) = options.args.iter().find(|path| !Path::new(path).exists()) {
        let message = format!("`lint` expects folders or files, got: {path}, which does not exist");
        return Ok(usage_error(&message, "lint --help"));
    }
    let targets = book::targets(options);
    if targets.is_empty() {
        let message =
            "`lint` expects folders or files; ./skills does not exist, and --dir is missing";
        return Ok(usage_error(message, "lint --help"));
    }
    let roots = book::roots(options, &targets);
    let mut context = book::others(book::builtins_of_lint(options), &roots);
    context.extend(dirs.iter().filter(|dir| !roots.contains(dir)).map(|dir| linted(dir)));
    let given = options.get("profile").is_some() || options.get("grant").is_some();
    let lint = Lint {
        sources: roots.iter().map(|root| linted(root)).collect(),
        context: book::unique(context),
        all: options.args.is_empty(),
        profile: given.then(|| book::profile(options)),
        strict: options.is_on("strict", false),
        standalone,
        targets,
    };
    let diagnostics = match options.is_on("fix", false) {
        true => lint.fix()?,
        false => lint.wanted()?,
    };
    let format = match options.is_json() {
        true => "json",
        false => options.get("format").unwrap_or("text"),
    };
    let format = Format::ALL.into_iter().find(|one| one.as_str() == format).unwrap_or_default();
    let read = |path: &str| document::read(Path::new(path)).ok();
    let folder = current_folder();
    let report = findings::lint(&diagnostics, &folder, format, terminal(options), read);
    let status = printed(&report)?;
    // Without any Markdown file, the folder may be the wrong one.
    if lint.targets.iter().all(|target| !has_page(Path::new(target))) {
        let paths: Vec<&str> = lint.targets.iter().map(|path| relative(path, &folder)).collect();
        complain(&format!("no Markdown file in {}", paths.join(", ")));
    }
    Ok(status)
}

/// Whether a path is a Markdown file, or a folder with one.
fn has_page(path: &Path) -> bool {
    let is_page = |path: &Path| {
        path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
    };
    if !path.is_dir() {
        return is_page(path);
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            if is_page(&path) {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    false
}

impl Lint {
    /// The diagnostics of the sources, sorted by path, line and column.
    fn run(&self) -> Result<Vec<Diagnostic>, Ended> {
        let origins: Vec<Origin> = self.context.iter().chain(&self.sources).cloned().collect();
        let book = Book::load(&origins, self.standalone).map_err(Ended::handler)?;
        let profile = self.profile.clone().unwrap_or_else(book::unrestricted);
        let view = book.view(&profile);
        let roots: Vec<String> =
            self.sources.iter().filter_map(Origin::folder).map(str::to_owned).collect();
        let of_sources =
            |found: &Diagnostic| found.path.as_deref().is_some_and(|path| is_below(path, &roots));
        let mut found: Vec<Diagnostic> = view.diagnostics().cloned().chain(lint(&view)).collect();
        found.retain(of_sources);
        if self.strict {
            let strict = roots.iter().flat_map(|root| strict::check(Path::new(root)));
            let shown = self.profile.as_ref().map(|_| paths(&view));
            let is_shown = |found: &Diagnostic| {
                shown.as_ref().is_none_or(|shown| {
                    found.path.as_deref().is_some_and(|path| shown.contains(path))
                })
            };
            found.extend(strict.filter(is_shown));
        }
        found.sort_by(|one, other| {
            let key = |found: &Diagnostic| {
                (found.line.unwrap_or(0), found.column.unwrap_or(0), found.code.as_str())
            };
            one.path.cmp(&other.path).then_with(|| key(one).cmp(&key(other)))
        });
        let mut unique: Vec<Diagnostic> = Vec::with_capacity(found.len());
        for one in found {
            // Equal ones have the same place, so they are among the last ones.
            let same = unique.iter().rev().take_while(|other| {
                (&other.path, other.line, other.column) == (&one.path, one.line, one.column)
            });
            if !same.into_iter().any(|other| *other == one) {
                unique.push(one);
            }
        }
        Ok(unique)
    }

    fn wanted(&self) -> Result<Vec<Diagnostic>, Ended> {
        let mut found = self.run()?;
        let is_wanted = |path: &Option<String>| {
            path.as_deref().is_some_and(|path| is_below(path, &self.targets))
        };
        found.retain(|found| self.all || is_wanted(&found.path));
        Ok(found)
    }

    /// Applies the fixes until none is left, says so, and returns the other diagnostics.
    fn fix(&self) -> Result<Vec<Diagnostic>, Ended> {
        let mut done: BTreeMap<String, Result<usize, String>> = BTreeMap::new();
        let mut diagnostics = self.wanted()?;
        for _ in 0..MAX_ROUNDS {
            let mut fixes: BTreeMap<&str, Vec<Fix>> = BTreeMap::new();
            for found in &diagnostics {
                let path = found.path.as_deref().unwrap_or_default();
                if let (Some(fix), false) = (&found.fix, matches!(done.get(path), Some(Err(_)))) {
                    fixes.entry(path).or_default().push((**fix).clone());
                }
            }
            if fixes.is_empty() {
                break;
            }
            for (path, fixes) in fixes {
                let name = path.rsplit('/').next().unwrap_or_default();
                let new = document::fix(Path::new(path), &fixes)
                    .map_err(|error| format!("{name}: {}", reason(&error)));
                let before = match done.get(path) {
                    Some(Ok(count)) => *count,
                    _ => 0,
                };
                done.insert(path.to_owned(), new.map(|count| before + count));
            }
            diagnostics = self.wanted()?;
        }
        let folder = current_folder();
        for (path, done) in &done {
            match done {
                Ok(1) => note(&format!("fixed 1 place in {}", relative(path, &folder))),
                Ok(count) => note(&format!("fixed {count} places in {}", relative(path, &folder))),
                Err(message) => complain(message),
            }
        }
        Ok(diagnostics)
    }
}

/// The paths of the pages that a view shows.
fn paths(view: &View) -> HashSet<String> {
    let entries = view.entries().map(|(_, entry)| entry.document.path.clone());
    let domains = view.domains().filter_map(|domain| domain.path().map(str::to_owned));
    entries.chain(domains.collect::<Vec<_>>()).collect()
}
