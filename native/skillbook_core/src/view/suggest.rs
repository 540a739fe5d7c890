//! Names close to one that does not exist: by edit distance, and by the words they share.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::spelling::{words, Name};
use super::view::View;
use crate::catalog::EntryId;

/// How many names are offered.
const OFFERED: usize = 3;

/// The longest name, in bytes, for which others are looked for; nobody meant a longer one.
const LONGEST: usize = 256;

impl View {
    /// Up to three names of entries that the view lists: the closest by edit distance (a third of the name, four at most)
    /// first, then those that share most words with it.
    pub fn suggest(&self, name: &str) -> Vec<&str> {
        self.close(name, self.catalog().entries().len())
    }

    /// The same, also of domains: for where a domain may be meant as well.
    pub fn suggest_path(&self, name: &str) -> Vec<&str> {
        self.close(name, usize::MAX)
    }

    /// Looks at the first `most` names.
    fn close(&self, name: &str, most: usize) -> Vec<&str> {
        if name.len() > LONGEST {
            return Vec::new();
        }
        let catalog = self.catalog();
        let all = catalog.known_names();
        let asked = Name::new(name, 0);
        let limit = (asked.length / 3).min(4);

        let mut shared: FxHashMap<u32, usize> = FxHashMap::default();
        for places in words(name).iter().filter_map(|word| all.by_word.get(word)) {
            for place in places {
                *shared.entry(*place).or_default() += 1;
            }
        }
        let rank = |(place, other): (usize, &Name)| {
            let shared = shared.get(&(place as u32)).copied().unwrap_or(0);
            let distance = asked.distance(other, limit);
            if distance.is_none() && shared == 0 {
                return None;
            }
            let shown = self.shown_name(place).filter(|shown| *shown != name)?;
            Some((distance.unwrap_or(usize::MAX), Reverse(shared), other.words, shown))
        };
        let mut ranked: Vec<_> = all.names.iter().enumerate().take(most).filter_map(rank).collect();
        ranked.sort_unstable();
        ranked.dedup_by_key(|(.., name)| *name);
        ranked.into_iter().map(|(.., name)| name).take(OFFERED).collect()
    }

    fn listed_name(&self, id: EntryId) -> Option<&str> {
        self.entry(id).filter(|_| self.lists(id)).map(|entry| &*entry.name)
    }

    fn shown_name(&self, place: usize) -> Option<&str> {
        match place.checked_sub(self.catalog().entries().len()) {
            None => self.listed_name(EntryId(place as u32)),
            Some(domain) => {
                let domain = self.catalog().domains().get(domain)?;
                domain.entries.iter().any(|id| self.lists(*id)).then_some(domain.name.as_str())
            }
        }
    }
}
