//! All entries of a book at one time: merged over its sources, never changed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustc_hash::FxHashMap;

use crate::assemble::{Assembled, Finding};
use crate::entry::{Entry, Index};
use crate::precedence::{diagnose_indexes, Conflicts, Place};
pub use crate::precedence::{Unused, Why};
use crate::search;
use crate::suggest::Words;
use crate::view::Visible;

/// An entry's place in its catalog; entries are in the order of their names, those of one name in that of their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// A domain: the commands whose names begin with it, and the indexes that it may have.
#[derive(Debug, Default)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Each `SKILL.md` of its folders, in the order of the sources.
    pub(crate) indexes: Vec<(Place, Arc<Index>)>,
    /// Its commands in the order of their names.
    pub entries: Vec<EntryId>,
}

/// One generation of a book's entries.
#[derive(Debug)]
pub struct Catalog {
    generation: u64,
    entries: Vec<Arc<Entry>>,
    names: Arc<Names>,
    unselected: Vec<Arc<Entry>>,
    findings: Vec<Arc<Finding>>,
    pub(crate) words: OnceLock<Words>,
    pub(crate) search: OnceLock<Arc<search::Index>>,
    /// That of a generation before, until this one has its own.
    pub(crate) earlier_search: Mutex<Option<Arc<search::Index>>>,
    visible: Mutex<Vec<Arc<Visible>>>,
}

/// What follows from the names of entries, and where they come from.
#[derive(Debug)]
struct Names {
    /// For each entry, where it stands among those of all sources.
    order: Vec<u32>,
    /// For each entry that of its source.
    places: Vec<Place>,
    names: FxHashMap<Arc<str>, Range<u32>>,
    aliases: FxHashMap<String, Vec<EntryId>>,
    domains: Vec<Domain>,
    /// The indexes of all sources.
    indexes: Vec<Arc<Index>>,
    conflicts: Conflicts,
    unused: Vec<Unused>,
}

impl Names {
    /// Of the entries and indexes of all sources, in their order and by path, with the rank of their source.
    fn new(all: &[(u32, &Arc<Entry>)], indexes: &[(u32, &Arc<Index>)]) -> Names {
        let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
        for (rank, index) in indexes {
            let place = Place::new(*rank, &***index);
            domains.entry(index.domain.clone()).or_default().indexes.push((place, Arc::clone(index)));
        }
        // Those of one name stay in the order of their sources, and of their paths.
        let mut sorted: Vec<(&str, u32)> = (0..).zip(all).map(|(at, (_, entry))| (&*entry.name, at)).collect();
        sorted.sort_by_key(|(name, _)| *name);
        let order: Vec<u32> = sorted.into_iter().map(|(_, at)| at).collect();
        let mut names: FxHashMap<Arc<str>, Range<u32>> = FxHashMap::default();
        names.reserve(all.len());
        let mut places = Vec::with_capacity(all.len());
        let mut aliases: FxHashMap<String, Vec<EntryId>> = FxHashMap::default();
        let entries: Vec<&Arc<Entry>> = order.iter().map(|at| all[*at as usize].1).collect();
        for (at, from) in (0..).zip(&order) {
            let (rank, entry) = all[*from as usize];
            names.entry(entry.name.clone()).or_insert(at..at).end = at + 1;
            if let Some(domain) = &entry.domain {
                match domains.get_mut(domain) {
                    Some(domain) => domain.entries.push(EntryId(at)),
                    None => {
                        domains.insert(domain.clone(), Domain { entries: vec![EntryId(at)], ..Domain::default() });
                    }
                }
            }
            for alias in &entry.fields().aliases {
                aliases.entry(alias.clone()).or_default().push(EntryId(at));
            }
            places.push(Place::new(rank, &**entry));
        }
        for ids in aliases.values_mut() {
            ids.sort_by_key(|id| places[id.0 as usize].low);
        }
        let conflicts = Conflicts::new(&entries, &places, &names, &aliases);
        let unused = conflicts.settle(&places, &mut vec![1; entries.len()]);
        let domains = domains.into_iter().map(|(name, domain)| Domain { name, ..domain }).collect();
        let indexes = indexes.iter().map(|(_, index)| Arc::clone(index)).collect();
        Names { order, places, names, aliases, domains, indexes, conflicts, unused }
    }

    /// Whether they are also those of other entries and indexes than those, in their order, that they were made of.
    fn hold_for(&self, entries: &[Arc<Entry>], all: &[(u32, &Arc<Entry>)], indexes: &[(u32, &Arc<Index>)]) -> bool {
        let same_entry = |((before, place), at): ((&Arc<Entry>, &Place), &u32)| {
            let (rank, after) = all[*at as usize];
            place.rank == rank && (Arc::ptr_eq(before, after) || called_the_same(before, after))
        };
        let same_index = |(before, (_, after)): (&Arc<Index>, &(u32, &Arc<Index>))| Arc::ptr_eq(before, after);
        entries.len() == all.len()
            && self.indexes.len() == indexes.len()
            && self.indexes.iter().zip(indexes).all(same_index)
            && entries.iter().zip(&self.places).zip(&self.order).all(same_entry)
    }
}

/// Whether two entries of one source are the same to all that [`Names`] knows of them.
fn called_the_same(a: &Entry, b: &Entry) -> bool {
    (&a.name, &a.domain, &a.title, a.kind, a.trust) == (&b.name, &b.domain, &b.title, b.kind, b.trust)
        && (a.source.kind, &a.fields().aliases) == (b.source.kind, &b.fields().aliases)
}

impl Catalog {
    /// Merges what the sources hold, in their order. Of entries of one name all stay: each view uses one of those that it
    /// may see. A later source's entry replaces an earlier one's, and within a source the first by path is used, in the
    /// store the last. A record of the store also replaces what is no command and is called by its name or title. A
    /// source of low trust replaces nothing.
    pub fn build(generation: u64, sources: Vec<Assembled>) -> Catalog {
        Catalog::build_after(None, generation, sources.iter())
    }

    /// The same, with what depends on names taken over from a generation before that has the same ones: most changes are
    /// of texts.
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
        let indexes: Vec<(u32, &Arc<Index>)> = (0..)
            .zip(sources())
            .flat_map(|(rank, source)| source.indexes.iter().map(move |index| (rank, index)))
            .collect();
        let names = match before.filter(|before| before.names.hold_for(&before.entries, &all, &indexes)) {
            Some(before) => before.names.clone(),
            None => Arc::new(Names::new(&all, &indexes)),
        };
        let mut catalog = Catalog {
            generation,
            entries: names.order.iter().map(|at| all[*at as usize].1.clone()).collect(),
            names,
            unselected: sources().flat_map(|source| &source.unselected).cloned().collect(),
            findings: sources().flat_map(|source| &source.findings).cloned().collect(),
            words: OnceLock::new(),
            search: OnceLock::new(),
            earlier_search: Mutex::new(None),
            visible: Mutex::new(Vec::new()),
        };
        let found = diagnose_indexes(&catalog);
        catalog.findings.extend(found);
        catalog.findings.sort_by(|a, b| a.diagnostic.place().cmp(&b.diagnostic.place()));
        catalog
    }

    /// What it keeps of profiles.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Vec<Arc<Visible>>> {
        self.visible.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
    pub(crate) fn place(&self, id: EntryId) -> Place {
        self.names.places[id.0 as usize]
    }

    /// The entries of this name, of which a view uses at most one.
    pub fn named(&self, name: &str) -> impl Iterator<Item = EntryId> {
        self.names.names.get(name).map_or(0..0, Range::clone).map(EntryId)
    }

    /// The entries that have this alias, in the order of their names; those of low trust come last.
    pub fn aliased(&self, alias: &str) -> &[EntryId] {
        self.names.aliases.get(alias).map_or(&[], Vec::as_slice)
    }

    /// Whether this is a name or an alias.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.names.contains_key(name) || self.names.aliases.contains_key(name)
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
        self.names.unused.binary_search_by_key(&id, |unused| unused.id).is_err()
    }

    /// The entries that are used where all are seen, in the order of their names.
    pub fn used(&self) -> impl Iterator<Item = &Arc<Entry>> {
        (0..).map(EntryId).zip(&self.entries).filter(|(id, _)| self.uses(*id)).map(|(_, entry)| entry)
    }

    /// How many entries are used where all are seen.
    pub fn count(&self) -> usize {
        self.entries.len() - self.names.unused.len()
    }

    /// Leaves of the shown entries those that are used; gives the others.
    pub(crate) fn settle(&self, shown: &mut [u8]) -> Vec<Unused> {
        self.names.conflicts.settle(&self.names.places, shown)
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
