//! Everything that depends only on the names and sources of entries: their order, aliases, domains
//! and conflicts.
//!
//! Most entries of a generation are the same as in the one before. Their names are not read again:
//! order, priority and hashes are copied as numbers from the previous [`Names`]. For a small change
//! in a catalog of 10,000 entries, reading all names would take most of the time, because the
//! entries are scattered over memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::entry::{DomainIndex, Entry};
use super::id::{Domain, EntryId, Hashes, Priority};
use super::precedence::{called, Conflicts, Unused};

/// An item of a source, with the rank of that source.
pub(crate) type Ranked<'a, T> = (u32, &'a Arc<T>);

/// Derived from the names and sources of entries. Indexed by [`EntryId`] where not noted otherwise.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The position of each entry in the list of all sources' entries.
    order: Vec<u32>,
    /// The priority of each entry.
    pub priorities: Vec<Priority>,
    /// The hashes of each entry's name and title.
    hashes: Vec<Hashes>,
    first: NameTable,
    pub aliases: BTreeMap<String, Vec<EntryId>>,
    pub domains: Vec<Domain>,
    /// The indexes of all sources, to notice a change.
    indexes: Vec<Arc<DomainIndex>>,
    pub conflicts: Conflicts,
    pub unused: Vec<Unused>,
}

fn hashes(entry: &Entry) -> Hashes {
    let mut called = called(entry).map(hash);
    let name = called.next().unwrap_or_default();
    [name, called.next().unwrap_or(name)]
}

fn hash(text: &str) -> u32 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

impl Names {
    /// Builds the names of all entries and indexes, which come in the order of the sources and by
    /// path. Unchanged entries are taken over from `before`.
    pub fn new(
        before: (&Names, &[Arc<Entry>]),
        all: &[Ranked<Entry>],
        indexes: &[Ranked<DomainIndex>],
    ) -> Names {
        let (mut names, moved, fresh) = Names::in_order(before, all);
        let (before, _) = before;
        let order = std::mem::take(&mut names.order);
        let entry = |id: EntryId| -> &Entry { all[order[id.0 as usize] as usize].1 };
        let several;
        (names.first, several) =
            NameTable::new(&names.hashes, |a, b| entry(a).name == entry(b).name);

        // Aliases and domains of unchanged entries: the old lists with new ids, without the entries
        // that are gone.
        let still =
            |ids: &[EntryId]| ids.iter().filter_map(|id| moved[id.0 as usize]).collect::<Vec<_>>();
        names.aliases =
            before.aliases.iter().map(|(alias, ids)| (alias.clone(), still(ids))).collect();
        let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
        for (rank, index) in indexes {
            let priority = Priority::new(*rank, &***index);
            domains
                .entry(index.domain.clone())
                .or_default()
                .indexes
                .push((priority, Arc::clone(index)));
        }
        for domain in &before.domains {
            domains.entry(domain.name.clone()).or_default().entries = still(&domain.entries);
        }
        for id in fresh {
            for alias in &entry(id).fields().aliases {
                names.aliases.entry(alias.clone()).or_default().push(id);
            }
            if let Some(domain) = &entry(id).domain {
                domains.entry(domain.clone()).or_default().entries.push(id);
            }
        }
        // Lists may have become empty, and new ids were appended behind old ones.
        names.aliases.retain(|_, ids| !ids.is_empty());
        for ids in names.aliases.values_mut() {
            // Models write records, so their aliases take none from a file.
            ids.sort_by_key(|id| {
                let priority = names.priorities[id.0 as usize];
                (Reverse(priority.claim), priority.stored, *id)
            });
        }
        domains.retain(|_, domain| !domain.entries.is_empty() || !domain.indexes.is_empty());
        for domain in domains.values_mut() {
            domain.entries.sort();
        }
        names.domains =
            domains.into_iter().map(|(name, domain)| Domain { name, ..domain }).collect();
        names.indexes = indexes.iter().map(|(_, index)| Arc::clone(index)).collect();
        names.conflicts =
            Conflicts::new(entry, &names.priorities, &names.hashes, several, &names.aliases);
        names.unused = names.conflicts.resolve(&names.priorities, &mut vec![1; all.len()], false);
        Names { order, ..names }
    }

    /// Sorts the entries. Returns order, priorities and hashes, the new id of each old entry, and
    /// the ids of the new entries.
    fn in_order(
        (before, old): (&Names, &[Arc<Entry>]),
        all: &[Ranked<Entry>],
    ) -> (Names, Vec<Option<EntryId>>, Vec<EntryId>) {
        let unchanged = Unchanged::new(before, old, all);
        let mut fresh: Vec<usize> = unchanged.fresh.clone().collect();
        // A stable sort: entries of one name keep the order of their sources and paths.
        fresh.sort_by_key(|at| &*all[*at].1.name);
        let count = all.len();
        let (order, priorities, hashed) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        let mut names = Names { order, priorities, hashes: hashed, ..Names::default() };
        let mut moved = vec![None; old.len()];
        let mut new = Vec::with_capacity(fresh.len());
        // Both the old entries and the new ones are sorted by name, so this is a merge: copy old
        // entries up to the place of the next new one, then add that one.
        let mut take_over = |names: &mut Names, ids: Range<usize>| {
            for id in ids {
                if let Some(at) = unchanged.at(before.order[id] as usize) {
                    moved[id] = Some(names.push(at, before.priorities[id], before.hashes[id]));
                }
            }
        };
        let mut from = 0;
        for at in fresh {
            let (rank, entry) = all[at];
            let mut to = from + old[from..].partition_point(|old| old.name < entry.name);
            // A removed entry stood where the new ones are, so they go behind it.
            let is_before =
                |id: usize| unchanged.at(before.order[id] as usize).is_none_or(|other| other < at);
            while to < old.len() && old[to].name == entry.name && is_before(to) {
                to += 1;
            }
            take_over(&mut names, from..to);
            from = to;
            new.push(names.push(at, Priority::new(rank, &**entry), hashes(entry)));
        }
        take_over(&mut names, from..old.len());
        (names, moved, new)
    }

    fn push(&mut self, at: usize, priority: Priority, hashes: Hashes) -> EntryId {
        let id = EntryId(self.order.len() as u32);
        self.order.push(at as u32);
        self.priorities.push(priority);
        self.hashes.push(hashes);
        id
    }

    /// Whether nothing has changed: these entries and indexes have the same names as those that
    /// this was built from.
    pub fn hold_for(
        &self,
        entries: &[Arc<Entry>],
        all: &[Ranked<Entry>],
        indexes: &[Ranked<DomainIndex>],
    ) -> bool {
        let same_entry = |((before, priority), at): ((&Arc<Entry>, &Priority), &u32)| {
            let (rank, after) = all[*at as usize];
            priority.rank == rank && (Arc::ptr_eq(before, after) || same_names(before, after))
        };
        let same_index = |(before, (_, after)): (&Arc<DomainIndex>, &Ranked<DomainIndex>)| {
            Arc::ptr_eq(before, after)
        };
        entries.len() == all.len()
            && self.indexes.len() == indexes.len()
            && self.indexes.iter().zip(indexes).all(same_index)
            && entries.iter().zip(&self.priorities).zip(&self.order).all(same_entry)
    }

    /// Whether an entry is used where all are seen.
    pub fn uses(&self, id: EntryId) -> bool {
        self.unused.binary_search_by_key(&id, |unused| unused.id).is_err()
    }

    /// The entries in the order of their names.
    pub fn sorted(&self, all: &[Ranked<Entry>]) -> Vec<Arc<Entry>> {
        self.order.iter().map(|at| Arc::clone(all[*at as usize].1)).collect()
    }

    /// The entries with this name. `entries` are those that this was built from.
    pub fn named(&self, entries: &[Arc<Entry>], name: &str) -> Range<u32> {
        // The hash decides nearly always, so the name is read only for the entry that is found.
        let wanted = hash(name);
        let is =
            |id: u32| self.hashes[id as usize][0] == wanted && &*entries[id as usize].name == name;
        let Some(first) = self.first.find(wanted, is) else { return 0..0 };
        let rest = (first + 1..entries.len() as u32).take_while(|id| is(*id)).count() as u32;
        first..first + 1 + rest
    }
}

/// Whether two entries are the same as far as [`Names`] depends on them.
fn same_names(a: &Entry, b: &Entry) -> bool {
    (&a.name, &a.domain, &a.title, a.kind, a.trust)
        == (&b.name, &b.domain, &b.title, b.kind, b.trust)
        && (a.source.kind, &a.fields().aliases, a.fields().replaces)
            == (b.source.kind, &b.fields().aliases, b.fields().replaces)
}

/// The entries that did not change: a run at the front and a run at the end of all sources. Finding
/// just these is enough, because the files of one change are mostly close together.
struct Unchanged {
    front: usize,
    /// The start of the unchanged end, before and now.
    end: [usize; 2],
    fresh: Range<usize>,
}

impl Unchanged {
    fn new(names: &Names, old: &[Arc<Entry>], all: &[Ranked<Entry>]) -> Unchanged {
        // `order` maps ids to positions; this is the inverse.
        let mut ids = vec![0; old.len()];
        for (id, at) in names.order.iter().enumerate() {
            ids[*at as usize] = id;
        }
        let same = |(id, (rank, entry)): (&usize, &Ranked<Entry>)| {
            names.priorities[*id].rank == *rank && Arc::ptr_eq(&old[*id], entry)
        };
        let front = ids.iter().zip(all).take_while(|pair| same(*pair)).count();
        let rest = ids[front..].iter().rev().zip(all[front..].iter().rev());
        let end = rest.take_while(|pair| same(*pair)).count();
        let end = [old.len() - end, all.len() - end];
        Unchanged { front, end, fresh: front..end[1] }
    }

    /// The new position of an old entry; `None` if it is gone.
    fn at(&self, before: usize) -> Option<usize> {
        match before {
            at if at < self.front => Some(at),
            at if at < self.end[0] => None,
            at => Some(at - self.end[0] + self.end[1]),
        }
    }
}

/// The first entry of each name, in an open-addressing hash table of ids. The names stay in the
/// entries; a `HashMap` would need a copy of each as its key.
#[derive(Debug, Default)]
struct NameTable(Box<[u32]>);

impl NameTable {
    const FREE: u32 = u32::MAX;

    /// Builds the table of entries that are sorted by name. Also returns the ranges of names that
    /// occur more than once.
    fn new(
        hashes: &[Hashes],
        same: impl Fn(EntryId, EntryId) -> bool,
    ) -> (NameTable, Vec<Range<u32>>) {
        let mut table =
            NameTable(vec![NameTable::FREE; (2 * hashes.len()).next_power_of_two()].into());
        let mut several: Vec<Range<u32>> = Vec::new();
        for (id, [name, _]) in (0..).zip(hashes) {
            let follows = |before: u32| {
                hashes[before as usize][0] == *name && same(EntryId(before), EntryId(id))
            };
            if id > 0 && follows(id - 1) {
                match several.last_mut().filter(|ids| ids.end == id) {
                    Some(ids) => ids.end = id + 1,
                    None => several.push(id - 1..id + 1),
                }
            } else if let Some(slot) =
                table.slots(*name).find(|slot| table.0[*slot] == NameTable::FREE)
            {
                table.0[slot] = id;
            }
        }
        (table, several)
    }

    fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let ids = self.slots(hash).map(|slot| self.0[slot]);
        ids.take_while(|id| *id != NameTable::FREE).find(|id| is(*id))
    }

    /// The slots to probe for a hash. Half of all slots are free, so a probe ends soon.
    fn slots(&self, hash: u32) -> impl Iterator<Item = usize> {
        let count = self.0.len();
        (0..count).map(move |step| (hash as usize + step) & (count - 1))
    }
}
