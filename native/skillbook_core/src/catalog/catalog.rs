//! One generation of a book's entries, merged over its sources.
//!
//! "Used where all are seen" means the choice that an unrestricted view makes; other views choose
//! for themselves.

use std::sync::Arc;

use super::assemble::Assembled;
use super::entry::{DomainIndex, Entry};
use super::finding::Finding;
use super::handlers::{self, HandlerProblem, HandlerProblems};
use super::id::{Domain, EntryId, Priority};
use super::names::Names;
use super::precedence::{self, Unused};
use super::unused;
use crate::page::diagnostic::Diagnostic;

/// One generation of a book's entries.
#[derive(Debug)]
pub struct Catalog {
    generation: u64,
    entries: Vec<Arc<Entry>>,
    names: Arc<Names>,
    unselected: Vec<Arc<Entry>>,
    findings: Vec<Arc<Finding>>,
    handlers: Arc<HandlerProblems>,
}

impl Catalog {
    /// Merges assembled sources, in their order. All entries of a name stay; each view uses one of
    /// those that its profile may see, by these rules:
    ///
    /// - A later source's entry replaces an earlier one's.
    /// - Within a source the first by path is used, among records the oldest.
    /// - A record of the store also replaces skills and notes that have its name or title.
    /// - A source of low trust replaces nothing.
    pub fn build(generation: u64, sources: Vec<Assembled>) -> Catalog {
        Catalog::build_after(None, generation, sources.iter())
    }

    /// Like [`Catalog::build`], but reuses the previous generation's names: all of them if no
    /// name has changed, since most edits only change texts.
    pub fn build_after<'a>(
        before: Option<&Catalog>,
        generation: u64,
        sources: impl Iterator<Item = &'a Assembled> + Clone,
    ) -> Catalog {
        let sources = || sources.clone();
        // Entries keep the rank of their source: later sources win, and names are only sorted
        // later.
        let all: Vec<(u32, &Arc<Entry>)> = (0..)
            .zip(sources())
            .flat_map(|(rank, source)| source.entries.iter().map(move |entry| (rank, entry)))
            .collect();
        let indexes: Vec<(u32, &Arc<DomainIndex>)> = (0..)
            .zip(sources())
            .flat_map(|(rank, source)| source.indexes.iter().map(move |index| (rank, index)))
            .collect();
        let none = Names::default();
        // Three cases, from cheap to expensive: nothing about names has changed (an edit of a
        // text), some names have (they are merged with those before), or there is no generation
        // before.
        let names = match before {
            Some(before) if before.names.hold_for(&before.entries, &all, &indexes) => {
                before.names.clone()
            }
            Some(before) => Arc::new(Names::new((&before.names, &before.entries), &all, &indexes)),
            None => Arc::new(Names::new((&none, &[]), &all, &indexes)),
        };
        let entries = names.sorted(&all);
        let mut findings: Vec<_> = sources().flat_map(|source| &source.findings).cloned().collect();
        findings.extend(unused::diagnose_indexes(&entries, &names));
        // A stable sort, so that findings at one place stay in the order of the sources.
        findings.sort_by(|a, b| a.diagnostic.place().cmp(&b.diagnostic.place()));
        let unselected = sources().flat_map(|source| &source.unselected).cloned().collect();
        let handlers = before.map(|before| before.handlers.clone()).unwrap_or_default();
        Catalog { generation, entries, names, unselected, findings, handlers }
    }

    /// The catalog with these problems of handlers, instead of those of the generation before.
    pub fn with_handlers(self, handlers: Arc<HandlerProblems>) -> Catalog {
        Catalog { handlers, ..self }
    }

    /// The problems of handlers.
    pub fn handlers(&self) -> &Arc<HandlerProblems> {
        &self.handlers
    }

    /// The problem of an entry's handler, if there is one.
    pub(crate) fn handler_problem(&self, entry: &Entry) -> Option<&HandlerProblem> {
        handlers::problem(&self.handlers, entry)
    }

    /// Whether an entry cannot run, because of its handler.
    pub(crate) fn is_broken(&self, entry: &Entry) -> bool {
        handlers::broken(&self.handlers, entry).is_some()
    }

    /// The number of this generation. The first load is 1.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// All entries that a view may use, in the order of their names.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The entry with this id.
    pub fn entry(&self, id: EntryId) -> &Arc<Entry> {
        &self.entries[id.0 as usize]
    }

    /// The rank of an entry in conflicts over its name.
    pub(crate) fn priority(&self, id: EntryId) -> Priority {
        self.names.priorities[id.0 as usize]
    }

    /// The entries with this name. A view uses at most one of them.
    pub fn named(&self, name: &str) -> impl Iterator<Item = EntryId> {
        self.names.named(&self.entries, name).map(EntryId)
    }

    /// The entries with this alias, in the order of their names, those of low trust last.
    pub fn aliased(&self, alias: &str) -> &[EntryId] {
        self.names.aliases.get(alias).map_or(&[], Vec::as_slice)
    }

    /// Whether this is a name or an alias.
    pub(crate) fn knows(&self, name: &str) -> bool {
        !self.names.named(&self.entries, name).is_empty() || self.names.aliases.contains_key(name)
    }

    /// All domains in the order of their names.
    pub fn domains(&self) -> &[Domain] {
        &self.names.domains
    }

    /// The entries that lose a conflict where all are seen, in their order.
    pub fn unused(&self) -> &[Unused] {
        &self.names.unused
    }

    /// Whether an entry is used where all are seen.
    pub fn uses(&self, id: EntryId) -> bool {
        self.names.uses(id)
    }

    /// The entries that are used where all are seen, in the order of their names.
    pub fn used(&self) -> impl Iterator<Item = &Arc<Entry>> {
        (0..)
            .map(EntryId)
            .zip(&self.entries)
            .filter(|(id, _)| self.uses(*id))
            .map(|(_, entry)| entry)
    }

    /// The number of entries that are used where all are seen.
    pub fn count(&self) -> usize {
        self.entries.len() - self.names.unused.len()
    }

    /// Hides the entries that lose a conflict among those that are shown, and returns them.
    pub(crate) fn resolve(&self, shown: &mut [u8], own: bool) -> Vec<Unused> {
        self.names.conflicts.resolve(&self.names.priorities, shown, own)
    }

    /// The diagnostic for an entry that is not used.
    pub(crate) fn diagnose(&self, unused: &Unused) -> Diagnostic {
        let (entry, by) = (self.entry(unused.id), self.entry(unused.by));
        let found = unused::diagnose(entry, unused.why, by);
        // The name would work if the page that is used did not exist.
        if self.is_broken(by) && !self.is_broken(entry) {
            return unused::instead_of_working(found, by);
        }
        found
    }

    /// The index that a domain uses, among those that are shown.
    pub(crate) fn index<'a>(
        &self,
        domain: &'a Domain,
        shows: impl Fn(&DomainIndex) -> bool,
        uses: impl Fn(EntryId) -> bool,
    ) -> Option<&'a DomainIndex> {
        precedence::index(&self.names.priorities, domain, shows, uses)
    }

    /// The entries that match no glob of their source.
    pub fn unselected(&self) -> &[Arc<Entry>] {
        &self.unselected
    }

    /// Diagnostics about files, by path and line. Diagnostics across entries (shadowing, aliases,
    /// `requires`) depend on the reader and are in
    /// [`View::diagnostics`](crate::view::View::diagnostics).
    pub fn findings(&self) -> &[Arc<Finding>] {
        &self.findings
    }
}
