//! Decides which of several entries of a name is used.
//!
//! The choice depends on the reader. A hidden entry must behave as if it had never been written: it
//! may not replace, refuse or duplicate anything. So a catalog keeps all candidates, [`Conflicts`]
//! lists the few entries that could compete at all, and each view resolves those among the entries
//! that it shows.
//!
//! There are three kinds of conflicts, resolved in this order:
//!
//! - Entries of one name. The first of a source is used, and a later source replaces an earlier
//!   one, unless its trust is low or its author says `replaces: false`.
//! - A record of the store against skills and notes that have its name or title. The record is
//!   used, so an edited copy in the store takes the place of a file.
//! - An entry of low trust, or with `replaces: false`, whose name is an alias of an entry with a
//!   better claim. It is refused, because names are found before aliases, and so it would take the
//!   alias over.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::entry::{DomainIndex, Entry};
use super::id::{Claim, Domain, EntryId, Hashes, Priority};
use crate::source::{Kind, Trust};

/// The reason why an entry is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// An earlier entry of its source has the same name.
    Duplicate,
    /// A later source has an entry of its name, or the store a record of its name or title.
    Shadowed,
    /// Its trust is low or it says `replaces: false`, and an entry of another source has its name,
    /// or an entry its name as an alias.
    Refused,
}

/// An entry that may be seen but is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unused {
    /// The entry.
    pub id: EntryId,
    /// Why it is not used.
    pub why: Why,
    /// The entry that is used in its place. A third entry may in turn replace that one.
    pub by: EntryId,
}

/// The entries that may compete with each other. Most catalogs have few, so a view looks at few.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// Entries of one name.
    names: Vec<Range<u32>>,
    /// Records of the store, and entries of files with one of their names or titles.
    titles: Vec<[Vec<EntryId>; 2]>,
    /// Entries with an alias, and entries with that name and a weaker claim.
    aliases: Vec<[Vec<EntryId>; 2]>,
}

impl Conflicts {
    /// Finds the conflicts among entries in the order of their names. `several` are the ranges of
    /// names that occur more than once.
    pub fn new<'a>(
        entry: impl Fn(EntryId) -> &'a Entry,
        priorities: &[Priority],
        hashes: &[Hashes],
        several: Vec<Range<u32>>,
        aliases: &BTreeMap<String, Vec<EntryId>>,
    ) -> Conflicts {
        let priority = |id: EntryId| priorities[id.0 as usize];
        let ids = || (0..).map(EntryId).zip(priorities);

        // Records against entries of files. Commands are left out: text from the store never
        // replaces code that runs.
        let parts = alike(priorities, hashes);
        let files =
            parts[1].iter().copied().filter(|id| entry(*id).kind != Kind::Command).collect();
        let mut titles: FxHashMap<&str, [Vec<EntryId>; 2]> = FxHashMap::default();
        for (part, ids) in [&parts[0], &files].into_iter().enumerate() {
            for (id, text) in
                ids.iter().flat_map(|id| called(entry(*id)).map(move |text| (*id, text)))
            {
                titles.entry(text).or_default()[part].push(id);
            }
        }
        let mut titles: Vec<_> = titles
            .into_iter()
            .filter(|(_, parts)| parts.iter().all(|ids| !ids.is_empty()))
            .collect();
        titles.sort_unstable_by_key(|(text, _)| *text);

        // Entries of one name are adjacent, so each name is looked up once.
        type Contest<'a> = (&'a str, (Claim, bool), [Vec<EntryId>; 2]);
        let mut claims: Vec<Contest> = Vec::new();
        let weak = |priority: &Priority| priority.claim < Claim::Full && !aliases.is_empty();
        for (id, of) in ids().filter(|(_, priority)| weak(priority)) {
            let name = &*entry(id).name;
            let kind = (of.claim, of.stored);
            let last = claims.last_mut().filter(|(last, other, _)| (*last, *other) == (name, kind));
            match last {
                Some((_, _, [_, weak])) => weak.push(id),
                None => {
                    // Within an alias, entries with the best claim come first.
                    let owners = aliases.get(name).into_iter().flatten().copied();
                    let better = owners.take_while(|owner| priority(*owner).claim > of.claim);
                    // Models write records, so an alias of one takes no name from a file.
                    let better: Vec<_> =
                        better.filter(|owner| of.stored || !priority(*owner).stored).collect();
                    if !better.is_empty() {
                        claims.push((name, kind, [better, vec![id]]));
                    }
                }
            }
        }
        let titles = titles.into_iter().map(|(_, ids)| ids).collect();
        // An entry that loses its name here owns no alias, so better claims are decided first.
        claims.sort_by_key(|(_, (claim, _), _)| Reverse(*claim));
        let aliases = claims.into_iter().map(|(_, _, ids)| ids).collect();
        Conflicts { names: several, titles, aliases }
    }

    /// Resolves the conflicts among the shown entries, and returns those that are not used, in
    /// order. An entry is shown if its byte in `shown` is not 0; the bytes of unused entries are
    /// set to 0. With `own`, records of a tenant are used before common ones.
    pub fn resolve(&self, priorities: &[Priority], shown: &mut [u8], own: bool) -> Vec<Unused> {
        let rank = |id: EntryId| priorities[id.0 as usize].rank;
        let mut unused = Vec::new();
        for ids in &self.names {
            // 1. Entries of one name.
            let candidates = ids.clone().map(EntryId).filter(|id| shown[id.0 as usize] != 0);
            let candidates = candidates.map(|id| (id, priorities[id.0 as usize]));
            let before = unused.len();
            resolve(candidates, own, |id, why, by| unused.push(Unused { id, why, by }));
            unused[before..].iter().for_each(|unused| shown[unused.id.0 as usize] = 0);
        }
        let mut lose = |id: EntryId, why, by, shown: &mut [u8]| {
            if std::mem::take(&mut shown[id.0 as usize]) != 0 {
                unused.push(Unused { id, why, by });
            }
        };
        // 2. Records against names and titles. Only records that are still shown count: one that
        // lost its own name above replaces nothing.
        for [stored, files] in &self.titles {
            let stored = stored.iter().copied().filter(|id| shown[id.0 as usize] != 0);
            let Some(last) = stored.min_by_key(|id| (Reverse(rank(*id)), *id)) else {
                continue;
            };
            files
                .iter()
                .filter(|id| rank(**id) < rank(last))
                .for_each(|id| lose(*id, Why::Shadowed, last, shown));
        }
        // Names are found before aliases, so this entry would take the alias by its name.
        // 3. Entries with a weak claim against aliases of better ones that are still shown.
        for [better, weak] in &self.aliases {
            let Some(owner) = better.iter().copied().rfind(|id| shown[id.0 as usize] != 0) else {
                continue;
            };
            weak.iter().for_each(|id| lose(*id, Why::Refused, owner, shown));
        }
        unused.sort_unstable_by_key(|unused| unused.id);
        unused
    }
}

/// The trusted records and the entries of files that may share a name or title. Most have none in
/// common with any other, so hashes are compared first: those of the smaller side go into a set.
fn alike(priorities: &[Priority], hashes: &[Hashes]) -> [Vec<EntryId>; 2] {
    let those = |stored: bool| {
        (0..)
            .map(EntryId)
            .zip(priorities)
            .filter(move |(_, priority)| priority.stored == stored && !(stored && priority.low))
    };
    let mut parts = [true, false].map(|stored| those(stored).map(|(id, _)| id).collect::<Vec<_>>());
    // Reduce the larger side by the hashes of the smaller one, then the smaller side by those that
    // are left. A collision of hashes only leaves an entry in; names are compared later.
    let fewer = usize::from(parts[1].len() < parts[0].len());
    for (part, by) in [(1 - fewer, fewer), (fewer, 1 - fewer)] {
        let known: FxHashSet<u32> = parts[by].iter().flat_map(|id| hashes[id.0 as usize]).collect();
        parts[part].retain(|id| hashes[id.0 as usize].iter().any(|hash| known.contains(hash)));
    }
    parts
}

/// The texts that an entry is called by: its name, and its title if that differs.
pub(crate) fn called(entry: &Entry) -> impl Iterator<Item = &str> {
    let title = entry.title.as_deref().filter(|title| !title.is_empty() && **title != *entry.name);
    std::iter::once(&*entry.name).chain(title)
}

/// The candidate of a name that is used; the others go to `lose`.
///
/// Candidates come by the rank of their source, and within a source in its order. Within a source
/// the first is used, so a new record cannot take the name of an older one that its author could
/// not see. But a tenant uses its own record before a common one (`own_first`), whose author could
/// not see that; views of several tenants use the common one. Across sources the later one is
/// used. A candidate never wins against one with a better claim, and one of low trust not even
/// against an earlier one of low trust.
fn resolve<T: Copy>(
    candidates: impl Iterator<Item = (T, Priority)>,
    own_first: bool,
    mut lose: impl FnMut(T, Why, T),
) -> Option<T> {
    let mut candidates = candidates.peekable();
    let mut used = None;
    while let Some((mut own, mut priority)) = candidates.next() {
        // Within a source the first wins, unless the other has a better claim.
        while let Some((other, of)) = candidates.next_if(|(_, other)| other.rank == priority.rank) {
            // `common` differs only if one of them belongs to a tenant.
            let preferred = of.common != priority.common && of.common != own_first;
            if priority.claim < of.claim || priority.claim == of.claim && preferred {
                lose(own, Why::Duplicate, other);
                (own, priority) = (other, of);
            } else {
                lose(other, Why::Duplicate, own);
            }
        }
        // Then the source's winner against the winner of the sources before it.
        used = match used {
            Some((earlier, claim)) if priority.low || priority.claim < claim => {
                lose(own, Why::Refused, earlier);
                used
            }
            Some((earlier, _)) => {
                lose(earlier, Why::Shadowed, own);
                Some((own, priority.claim))
            }
            None => Some((own, priority.claim)),
        };
    }
    used.map(|(used, _)| used)
}

/// The index that a domain uses, among those that are shown.
pub(crate) fn index<'a>(
    priorities: &[Priority],
    domain: &'a Domain,
    shows: impl Fn(&DomainIndex) -> bool,
    uses: impl Fn(EntryId) -> bool,
) -> Option<&'a DomainIndex> {
    let index = chosen_index(domain, shows, |_, _, _| {})?;
    (index.trust() > Trust::Low || owner(priorities, domain, uses).is_none()).then_some(index)
}

/// A trusted command of the domain that is used. An index describes all commands of its domain, so
/// an index of low trust is used only if no trusted command is there.
pub(crate) fn owner(
    priorities: &[Priority],
    domain: &Domain,
    uses: impl Fn(EntryId) -> bool,
) -> Option<EntryId> {
    domain.entries.iter().copied().rfind(|id| uses(*id) && !priorities[id.0 as usize].low)
}

/// The index that wins among the shown indexes, before the trust of the commands is considered.
pub(crate) fn chosen_index<'a>(
    domain: &'a Domain,
    shows: impl Fn(&DomainIndex) -> bool,
    lose: impl FnMut(&'a DomainIndex, Why, &'a DomainIndex),
) -> Option<&'a DomainIndex> {
    let shown = domain.indexes.iter().filter(|(_, index)| shows(index));
    // Within a source, all indexes have its tenant.
    resolve(shown.map(|(priority, index)| (&**index, *priority)), false, lose)
}
