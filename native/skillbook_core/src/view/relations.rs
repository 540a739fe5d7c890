//! Diagnostics across entries: shadowing, aliases, `requires` and links.
//!
//! They depend on the reader: an entry that a view hides must look like a missing one, so a link to
//! it is reported as broken. They are computed once per view, when somebody first asks.

use std::collections::BTreeSet;

use super::view::View;
use crate::catalog::entry::Entry;
use crate::catalog::finding::Finding;
use crate::catalog::handlers::HandlerProblem;
use crate::catalog::{EntryId, Unused};
use crate::page::diagnostic::{limit, Code, Diagnostic, Severity};
use crate::page::document::SKILL_FILE;
use crate::page::references::resolve;
use crate::source::Kind;

/// The number of names of a cycle that a message lists.
const MAX_CYCLE_NAMES: usize = 20;

impl View {
    /// The diagnostics about entries that the view shows, by path and line. Diagnostics about files
    /// that are no entries have no labels to check, so only views with all grants and all names get
    /// them, of the tenants that they read.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let relations = self.visible.relations.get_or_init(|| diagnose(self));
        let mut all: Vec<_> = self.findings().chain(relations).collect();
        all.sort_by(|a, b| a.place().cmp(&b.place()));
        all.into_iter()
    }

    /// The diagnostics that are errors or warnings.
    pub fn problems(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics().filter(|found| found.severity != Severity::Info)
    }

    /// The diagnostics of files that the view shows.
    fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        let rule = &self.visible.rule;
        let shown = |finding: &Finding| match finding.about.as_slice() {
            _ if !rule.profile.tenant.reads(&finding.tenant) => false,
            _ if rule.has_all_names() => true,
            entries => !entries.is_empty() && entries.iter().all(|entry| rule.admits(entry)),
        };
        let findings = self.catalog().findings().iter();
        findings.filter(move |finding| shown(finding)).map(|finding| &finding.diagnostic)
    }

    /// The diagnostic for an entry's handler, if it cannot run here or was not looked up.
    pub(crate) fn handler_problem(&self, id: EntryId) -> Option<Diagnostic> {
        let (catalog, entry) = (self.catalog(), self.entry(id)?);
        let problem = catalog.handler_problem(entry)?;
        let handler = entry.handler()?;
        let (code, severity) = match problem {
            HandlerProblem::Unchecked => (Code::HandlerUnchecked, Severity::Info),
            _ => (Code::HandlerMissing, Severity::Error),
        };
        let mut message = match problem {
            HandlerProblem::Missing { .. } => format!("the handler `{handler}` does not exist"),
            HandlerProblem::NotAHandler => {
                format!("the handler `{handler}` is a module without execute/2")
            }
            HandlerProblem::Unchecked => format!(
                "the handler `{handler}` was not looked up: the code of its application is not \
                 loaded"
            ),
        };
        let replaced = self.unused().iter().find(|unused| unused.by == id);
        let replaced = replaced.map(|unused| catalog.entry(unused.id));
        if let (Some(replaced), true) = (replaced, catalog.is_broken(entry)) {
            if !catalog.is_broken(replaced) {
                let path = &replaced.document.path;
                message.push_str(&format!(", and the page replaces a working one, {path}"));
            }
        }
        let hint = match problem {
            HandlerProblem::Missing { close: Some(close) } => format!("did you mean `{close}`?"),
            HandlerProblem::Missing { close: None } => {
                "name an existing module with execute/2, or remove the page".to_owned()
            }
            HandlerProblem::NotAHandler => {
                "name a module with the behaviour Skillbook.Handler".to_owned()
            }
            HandlerProblem::Unchecked => {
                "run `mix skillbook lint` in the application to check it".to_owned()
            }
        };
        Some(at(entry, "handler", Diagnostic::new(code, severity, message).hint(hint)))
    }
}

/// The diagnostics across all entries that the view shows.
fn diagnose(view: &View) -> Vec<Diagnostic> {
    // Entries of two tenants are in each other's way for nobody who has one of them.
    let together = |unused: &&Unused| {
        let [one, other] = [unused.id, unused.by].map(|id| view.catalog().entry(id).tenant());
        one.reads(other) || other.reads(one)
    };
    let mut found: Vec<_> = view
        .unused()
        .iter()
        .filter(together)
        .map(|unused| view.catalog().diagnose(unused))
        .collect();
    for (id, _) in view.entries() {
        found.extend(view.handler_problem(id));
    }
    aliases(view, &mut found);
    requires(view, &mut found);
    references(view, &mut found);
    limit(&mut found);
    found
}

fn aliases(view: &View, found: &mut Vec<Diagnostic>) {
    for (id, entry) in view.entries() {
        for alias in &entry.fields().aliases {
            let named = view.find_named(alias);
            let Some(other) =
                named.or_else(|| view.find_aliased(alias)).filter(|other| *other != id)
            else {
                continue;
            };
            let what = if named.is_some() { "the name" } else { "also an alias" };
            let Some(other) = view.entry(other) else { continue };
            let own = entry.fields().own_name.as_ref() == Some(alias);
            let (field, kind) = if own { ("name", "name") } else { ("aliases", "alias") };
            let message = format!(
                "the {kind} `{alias}` is {what} of {}, which is found first",
                other.document.path
            );
            let diagnostic = Diagnostic::new(Code::AliasTaken, Severity::Warning, message);
            found.push(at(entry, field, diagnostic.hint(format!("choose another {kind}"))));
        }
    }
}

fn requires(view: &View, found: &mut Vec<Diagnostic>) {
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); view.catalog().entries().len()];
    for (id, entry) in view.entries() {
        for name in &entry.fields().requires {
            match view.find(name) {
                Some(other) => edges[id.0 as usize].push(other.0 as usize),
                None if view.domain(name).is_some() => {}
                None => {
                    let message = format!("it requires `{name}`, which does not exist");
                    let close: Vec<_> =
                        view.suggest_path(name).iter().map(|name| format!("`{name}`")).collect();
                    let diagnostic =
                        Diagnostic::new(Code::RequiresMissing, Severity::Warning, message);
                    let diagnostic = diagnostic.hint(match close.is_empty() {
                        true => "correct the name, or add the skill".to_owned(),
                        false => format!("did you mean {}?", close.join(" or ")),
                    });
                    found.push(at(entry, "requires", diagnostic));
                }
            }
        }
    }
    for cycle in cycles(&edges) {
        let entries: Vec<_> =
            cycle.iter().filter_map(|id| view.entry(EntryId(*id as u32))).collect();
        let Some(first) = entries.first() else { continue };
        let mut names: Vec<&str> =
            entries.iter().map(|entry| &*entry.name).take(MAX_CYCLE_NAMES).collect();
        names.push(if entries.len() > MAX_CYCLE_NAMES { "…" } else { &first.name });
        let message = format!("`{}` requires itself: {}", first.name, names.join(" → "));
        let diagnostic = Diagnostic::new(Code::RequiresCycle, Severity::Warning, message);
        found.push(at(first, "requires", diagnostic.hint("remove one of these requirements")));
    }
}

/// Finds cycles that share no node, such that every node of a cycle leads to one of them. Each
/// starts with its smallest node. Listing all cycles could take exponential time; this is linear in
/// the number of edges, and fixing the reported cycles reveals the others.
fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    for (from, to) in
        edges.iter().enumerate().flat_map(|(from, list)| list.iter().map(move |to| (from, *to)))
    {
        back[to].push(from);
    }
    // The number of edges from a node to remaining nodes. A node without any is in no cycle.
    let mut ways: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut gone = vec![false; edges.len()];
    let remove = |ends: Vec<usize>, ways: &mut Vec<usize>, gone: &mut Vec<bool>| {
        let mut ends = ends;
        while let Some(node) = ends.pop() {
            if std::mem::replace(&mut gone[node], true) {
                continue;
            }
            for from in &back[node] {
                ways[*from] -= 1;
                if ways[*from] == 0 {
                    ends.push(*from);
                }
            }
        }
    };
    // Peel off nodes that lead nowhere, and then those that lead only to peeled ones. The rest all
    // lead to cycles.
    let ends = (0..edges.len()).filter(|node| ways[*node] == 0).collect();
    remove(ends, &mut ways, &mut gone);
    let mut found = Vec::new();
    let mut place: Vec<Option<usize>> = vec![None; edges.len()];
    let mut tried = vec![0; edges.len()];
    for start in 0..edges.len() {
        let mut path: Vec<usize> = Vec::new();
        let mut next = Some(start).filter(|start| !gone[*start]);
        while let Some(node) = next {
            // Walk on until a node of the current path comes up again: that is a cycle. Removing
            // its nodes may leave others without a way on, which are peeled off too.
            match place[node] {
                None => {
                    place[node] = Some(path.len());
                    path.push(node);
                }
                Some(first) => {
                    let mut cycle = path.split_off(first);
                    remove(cycle.clone(), &mut ways, &mut gone);
                    let least = cycle
                        .iter()
                        .enumerate()
                        .min_by_key(|(_, node)| **node)
                        .map_or(0, |(at, _)| at);
                    cycle.rotate_left(least);
                    found.push(cycle);
                    while path.last().is_some_and(|last| gone[*last]) {
                        path.pop();
                    }
                }
            }
            // Every remaining node has an edge to a remaining node, so the walk ends only in a
            // cycle.
            next = path.last().and_then(|last| {
                while edges[*last].get(tried[*last]).is_some_and(|to| gone[*to]) {
                    tried[*last] += 1;
                }
                edges[*last].get(tried[*last]).copied()
            });
        }
    }
    found
}

/// Checks the links of skills. A link may lead to everything that `get_skill` answers: files of
/// skills and documents that the view shows.
fn references(view: &View, found: &mut Vec<Diagnostic>) {
    let linking =
        |entry: &Entry| entry.kind == Kind::Skill && !entry.document.references.is_empty();
    let mut skills = view.entries().filter(|(_, entry)| linking(entry)).peekable();
    if skills.peek().is_none() {
        return;
    }
    // The paths are collected only if some skill has links.
    let known = paths(view);
    for (_, entry) in skills {
        let (root, document) = (&entry.source.root, &entry.document);
        for reference in &document.references {
            let path = resolve(document.folder(), &reference.target);
            let path = path.map(|path| format!("{root}/{path}"));
            let folder = |path: &str| {
                let inside = format!("{}/", path.trim_end_matches('/'));
                known.range(inside.clone()..).next().is_some_and(|known| known.starts_with(&inside))
            };
            if path.is_some_and(|path| known.contains(&path) || folder(&path)) {
                continue;
            }
            let target: String = reference.target.chars().take(100).collect();
            let message = format!("the link leads to `{target}`, but the skill has no such file");
            let diagnostic = Diagnostic::new(Code::ReferenceMissing, Severity::Warning, message);
            let diagnostic = diagnostic.hint(match elsewhere(entry, &reference.target) {
                Some(file) => format!("did you mean `{file}`?"),
                None => "correct the link, or add the file".to_owned(),
            });
            found.push(
                diagnostic.at(reference.line, reference.column).in_file(document.path.as_str()),
            );
        }
    }
}

/// The only file of the skill with this name in another folder or another case.
fn elsewhere<'a>(entry: &'a Entry, target: &str) -> Option<&'a str> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut same = entry.files.iter().filter(|file| name(file) == name(target));
    same.next().filter(|_| same.next().is_none()).map(String::as_str)
}

/// The full paths of all documents and files that the view shows.
fn paths(view: &View) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for (_, entry) in view.entries() {
        let document = &entry.document;
        let folder = document.path.strip_suffix(SKILL_FILE).unwrap_or("");
        paths.extend(entry.files.iter().map(|file| format!("{folder}{file}")));
        paths.insert(document.path.clone());
    }
    let indexes = view.domains().filter_map(|domain| domain.path().map(str::to_owned));
    paths.extend(indexes);
    paths
}

fn at(entry: &Entry, field: &str, diagnostic: Diagnostic) -> Diagnostic {
    entry.document.locate(entry.document.at_field(field, diagnostic))
}

#[cfg(test)]
mod tests {
    use super::cycles;

    #[test]
    fn finds_circles() {
        type Row<'a> = (&'a [&'a [usize]], &'a [&'a [usize]]);
        let rows: &[Row] = &[
            (&[], &[]),
            (&[&[1], &[]], &[]),
            (&[&[1, 2], &[2], &[]], &[]),
            (&[&[0]], &[&[0]]),
            (&[&[1], &[0]], &[&[0, 1]]),
            (&[&[1], &[2], &[1]], &[&[1, 2]]),
            (&[&[2], &[0], &[1]], &[&[0, 2, 1]]),
            (&[&[1, 1], &[0, 0]], &[&[0, 1]]),
            // Two cycles on one way, and one that begins later.
            (&[&[1, 3], &[2], &[1], &[4], &[3]], &[&[1, 2], &[3, 4]]),
            // Two with a node in common: reporting one is enough.
            (&[&[1, 2], &[0], &[0]], &[&[0, 1]]),
        ];
        for (edges, expected) in rows {
            let edges: Vec<Vec<usize>> = edges.iter().map(|list| list.to_vec()).collect();
            assert_eq!(cycles(&edges), *expected, "{edges:?}");
        }
    }

    #[test]
    fn long_circles_and_dense_ones_are_no_trouble() {
        let long: Vec<Vec<usize>> = (0..100_000).map(|node| vec![(node + 1) % 100_000]).collect();
        assert_eq!(cycles(&long)[0].len(), 100_000);
        let dense: Vec<Vec<usize>> = (0..300).map(|_| (0..300).collect()).collect();
        assert_eq!(cycles(&dense).len(), 300);
    }
}
