//! All entries of a book at one time: merged over its sources, never changed.

use std::sync::Arc;

use super::assemble::Assembled;
use super::entry::{DomainIndex, Entry};
use super::finding::Finding;
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
}

impl Catalog {
    /// Merges what the sources hold, in their order. Of entries of one name all stay: each view uses one of those that it
    /// may see. A later source's entry replaces an earlier one's, and within a source the first by path is used, in the
    /// store the last. A record of the store also replaces what is no command and is called by its name or title. A
    /// source of low trust replaces nothing.
    pub fn build(generation: u64, sources: Vec<Assembled>) -> Catalog {
        Catalog::build_after(None, generation, sources.iter())
    }

    /// The same, with what depends on names taken over from a generation before: all of it if that
    /// has the same ones, for most changes are of texts.
    pub fn build_after<'a>(
        before: Option<&Catalog>,
        generation: u64,
        sources: impl Iterator<Item = &'a Assembled> + Clone,
    ) -> Catalog {
        let sources = || sources.clone();
        let all: Vec<(u32, &Arc<Entry>)> = (0..)
            .zip(sources())
            .flat_map(|(rank, source)| source.entries.iter().map(move |entry| (rank, entry)))
            .collect();
        let indexes: Vec<(u32, &Arc<DomainIndex>)> = (0..)
            .zip(sources())
            .flat_map(|(rank, source)| source.indexes.iter().map(move |index| (rank, index)))
            .collect();
        let none = Names::default();
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
        findings.sort_by(|a, b| a.diagnostic.place().cmp(&b.diagnostic.place()));
        let unselected = sources().flat_map(|source| &source.unselected).cloned().collect();
        Catalog { generation, entries, names, unselected, findings }
    }

    /// How many times the book was loaded when this was built, from 1.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// All entries that a view may use, in the order of their names.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// One entry.
    pub fn entry(&self, id: EntryId) -> &Arc<Entry> {
        &self.entries[id.0 as usize]
    }

    /// Its place among the entries of its name.
    pub(crate) fn priority(&self, id: EntryId) -> Priority {
        self.names.priorities[id.0 as usize]
    }

    /// The entries of this name, of which a view uses at most one.
    pub fn named(&self, name: &str) -> impl Iterator<Item = EntryId> {
        self.names.named(&self.entries, name).map(EntryId)
    }

    /// The entries that have this alias, in the order of their names; those of low trust come last.
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

    /// The entries that are not used where all are seen, in their order.
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

    /// How many entries are used where all are seen.
    pub fn count(&self) -> usize {
        self.entries.len() - self.names.unused.len()
    }

    /// Leaves of the shown entries those that are used; gives the others.
    pub(crate) fn resolve(&self, shown: &mut [u8]) -> Vec<Unused> {
        self.names.conflicts.resolve(&self.names.priorities, shown)
    }

    /// What is said of an entry that is not used.
    pub(crate) fn diagnose(&self, unused: &Unused) -> Diagnostic {
        unused::diagnose(self.entry(unused.id), unused.why, self.entry(unused.by))
    }

    /// The index of a domain that is used among those that are shown.
    pub(crate) fn index<'a>(
        &self,
        domain: &'a Domain,
        shows: impl Fn(&DomainIndex) -> bool,
        uses: impl Fn(EntryId) -> bool,
    ) -> Option<&'a DomainIndex> {
        precedence::index(&self.names.priorities, domain, shows, uses)
    }

    /// The entries that no glob of their source selects.
    pub fn unselected(&self) -> &[Arc<Entry>] {
        &self.unselected
    }

    /// What was found out about the files, by path and line. What entries say of each other, and which of
    /// them replaces another one, depends on who reads them: that is in [`View::diagnostics`](crate::view::View::diagnostics).
    pub fn findings(&self) -> &[Arc<Finding>] {
        &self.findings
    }
}
