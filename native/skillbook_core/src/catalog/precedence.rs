//! Which of several entries is used, among those that a view may see.
//!
//! A catalog keeps all candidates, and each view picks for itself: what it is not shown takes no part, so it is used,
//! replaced and refused as if nothing hidden had ever been written.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::entry::{DomainIndex, Entry};
use super::id::{Domain, EntryId, Hashes, Priority};
use crate::source::{Kind, Trust};

/// Why an entry is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Another one of its name goes before it in its source.
    Duplicate,
    /// A later source has one of its name, or the store one of its title.
    Shadowed,
    /// Its source is of low trust, and another source's entry has its name, or an alias of its name.
    Refused,
}

/// An entry that is not used though it may be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unused {
    /// The entry.
    pub id: EntryId,
    /// Why it is not used.
    pub why: Why,
    /// The entry that takes its place or its name; a third one may replace that one.
    pub by: EntryId,
}

/// The entries of a catalog of which one may keep another from being used. Most catalogs have few, so that a view looks
/// at few.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// Those of one name.
    names: Vec<Range<u32>>,
    /// Records of the store and entries of files that are called the same, by name or title.
    titles: Vec<[Vec<EntryId>; 2]>,
    /// Trusted entries with an alias, and those of low trust that have it as their name.
    aliases: Vec<[Vec<EntryId>; 2]>,
}

impl Conflicts {
    /// The conflicts among entries in the order of their names; `several` are those of which a name
    /// has several.
    pub fn new<'a>(
        entry: impl Fn(EntryId) -> &'a Entry,
        priorities: &[Priority],
        hashes: &[Hashes],
        several: Vec<Range<u32>>,
        aliases: &BTreeMap<String, Vec<EntryId>>,
    ) -> Conflicts {
        let priority = |id: EntryId| priorities[id.0 as usize];
        let ids = || (0..).map(EntryId).zip(priorities);

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

        // Those of one name stand together.
        let mut claims: Vec<(&str, [Vec<EntryId>; 2])> = Vec::new();
        for (id, _) in ids().filter(|(_, priority)| priority.low && !aliases.is_empty()) {
            let name = &*entry(id).name;
            match claims.last_mut().filter(|(last, _)| *last == name) {
                Some((_, [_, low])) => low.push(id),
                None => {
                    // Those of low trust come last.
                    let owners = aliases.get(name).into_iter().flatten().copied();
                    let trusted: Vec<_> =
                        owners.take_while(|owner| !priority(*owner).low).collect();
                    if !trusted.is_empty() {
                        claims.push((name, [trusted, vec![id]]));
                    }
                }
            }
        }
        let titles = titles.into_iter().map(|(_, ids)| ids).collect();
        let aliases = claims.into_iter().map(|(_, ids)| ids).collect();
        Conflicts { names: several, titles, aliases }
    }

    /// Which of the entries that are shown are not used, in their order. What is shown is not 0, and what is not used
    /// becomes 0.
    pub fn resolve(&self, priorities: &[Priority], shown: &mut [u8]) -> Vec<Unused> {
        let rank = |id: EntryId| priorities[id.0 as usize].rank;
        let mut unused = Vec::new();
        for ids in &self.names {
            let candidates = ids.clone().map(EntryId).filter(|id| shown[id.0 as usize] != 0);
            let candidates = candidates.map(|id| (id, priorities[id.0 as usize]));
            let before = unused.len();
            resolve(candidates, |id, why, by| unused.push(Unused { id, why, by }));
            unused[before..].iter().for_each(|unused| shown[unused.id.0 as usize] = 0);
        }
        let mut lose = |id: EntryId, why, by, shown: &mut [u8]| {
            if std::mem::take(&mut shown[id.0 as usize]) != 0 {
                unused.push(Unused { id, why, by });
            }
        };
        for [stored, files] in &self.titles {
            let stored = stored.iter().copied().filter(|id| shown[id.0 as usize] != 0);
            let Some(last) = stored.min_by_key(|id| (std::cmp::Reverse(rank(*id)), *id)) else {
                continue;
            };
            files
                .iter()
                .filter(|id| rank(**id) < rank(last))
                .for_each(|id| lose(*id, Why::Shadowed, last, shown));
        }
        // Names go before aliases, so an entry of low trust would take an alias by having its name.
        for [trusted, low] in &self.aliases {
            let Some(owner) = trusted.iter().copied().rfind(|id| shown[id.0 as usize] != 0) else {
                continue;
            };
            low.iter().for_each(|id| lose(*id, Why::Refused, owner, shown));
        }
        unused.sort_unstable_by_key(|unused| unused.id);
        unused
    }
}

/// The trusted records and the entries of files that may be called the same. Most are called as no
/// other is: the hashes of the fewer ones are looked for among those of the others.
fn alike(priorities: &[Priority], hashes: &[Hashes]) -> [Vec<EntryId>; 2] {
    let those = |stored: bool| {
        (0..)
            .map(EntryId)
            .zip(priorities)
            .filter(move |(_, priority)| priority.stored == stored && !(stored && priority.low))
    };
    let mut parts = [true, false].map(|stored| those(stored).map(|(id, _)| id).collect::<Vec<_>>());
    let fewer = usize::from(parts[1].len() < parts[0].len());
    for (part, by) in [(1 - fewer, fewer), (fewer, 1 - fewer)] {
        let known: FxHashSet<u32> = parts[by].iter().flat_map(|id| hashes[id.0 as usize]).collect();
        parts[part].retain(|id| hashes[id.0 as usize].iter().any(|hash| known.contains(hash)));
    }
    parts
}

/// What an entry is called: its name, and its title if that is another text.
pub(crate) fn called(entry: &Entry) -> impl Iterator<Item = &str> {
    let title = entry.title.as_deref().filter(|title| !title.is_empty() && **title != *entry.name);
    std::iter::once(&*entry.name).chain(title)
}

/// The one of some candidates of a name that is used. They come in the order of their sources' ranks, and those of one
/// source in its order, of which the first is used: so a record takes no name from an older one, which whoever wrote it did
/// not see. One of low trust never goes before others.
fn resolve<T: Copy>(
    candidates: impl Iterator<Item = (T, Priority)>,
    mut lose: impl FnMut(T, Why, T),
) -> Option<T> {
    let mut candidates = candidates.peekable();
    let mut used = None;
    while let Some((mut own, mut priority)) = candidates.next() {
        while let Some((other, of)) = candidates.next_if(|(_, other)| other.rank == priority.rank) {
            if priority.low && !of.low {
                lose(own, Why::Duplicate, other);
                (own, priority) = (other, of);
            } else {
                lose(other, Why::Duplicate, own);
            }
        }
        used = match used {
            Some(earlier) if priority.low => {
                lose(own, Why::Refused, earlier);
                used
            }
            Some(earlier) => {
                lose(earlier, Why::Shadowed, own);
                Some(own)
            }
            None => Some(own),
        };
    }
    used
}

/// The index of a domain that is used among those that are shown.
pub(crate) fn index<'a>(
    priorities: &[Priority],
    domain: &'a Domain,
    shows: impl Fn(&DomainIndex) -> bool,
    uses: impl Fn(EntryId) -> bool,
) -> Option<&'a DomainIndex> {
    let index = chosen_index(domain, shows, |_, _, _| {})?;
    (index.source.trust > Trust::Low || owner(priorities, domain, uses).is_none()).then_some(index)
}

/// A trusted command of the domain that is used. An index speaks for all commands of its domain, so one of low trust is
/// used only where there is no such one.
pub(crate) fn owner(
    priorities: &[Priority],
    domain: &Domain,
    uses: impl Fn(EntryId) -> bool,
) -> Option<EntryId> {
    domain.entries.iter().copied().rfind(|id| uses(*id) && !priorities[id.0 as usize].low)
}

/// The same before it is asked whose the commands are.
pub(crate) fn chosen_index<'a>(
    domain: &'a Domain,
    shows: impl Fn(&DomainIndex) -> bool,
    lose: impl FnMut(&'a DomainIndex, Why, &'a DomainIndex),
) -> Option<&'a DomainIndex> {
    let shown = domain.indexes.iter().filter(|(_, index)| shows(index));
    resolve(shown.map(|(priority, index)| (&**index, *priority)), lose)
}
