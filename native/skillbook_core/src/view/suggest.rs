//! Suggestions for a name that does not exist ("did you mean"), and names in another spelling. Only
//! names that the view lists are suggested, and hidden names do not affect the choice.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::spelling::{spelling, words, Name};
use super::view::View;
use crate::catalog::EntryId;

/// The number of names that are suggested.
const OFFERED: usize = 3;

/// The length of a name, in bytes, above which nothing is suggested. It also bounds the cost of a
/// comparison.
const LONGEST: usize = 256;

impl View {
    /// Up to three names of listed entries: first the closest by edit distance (at most a third of
    /// the name, and at most four), then those that share the most words with it.
    pub fn suggest(&self, name: &str) -> Vec<&str> {
        self.close(name, self.catalog().entries().len())
    }

    /// The same, with the names of domains, for places where a domain is possible too.
    pub fn suggest_path(&self, name: &str) -> Vec<&str> {
        self.close(name, usize::MAX)
    }

    /// The names of listed entries and domains that have this text as a name, title or alias in
    /// another [`spelling`], sorted. If some have exactly this title, only those.
    pub fn spelled(&self, text: &str) -> Vec<&str> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Vec::new();
        }
        let wanted = spelling(text);
        let places = self.catalog().known_names().by_spelling.get(&wanted);
        let places = || places.into_iter().flatten().map(|place| *place as usize);
        let titled = places().filter(|place| {
            let entry = self.catalog().entries().get(*place);
            entry.is_some_and(|entry| entry.title.as_deref() == Some(text))
        });
        let mut names: Vec<_> = titled.filter_map(|place| self.shown_name(place)).collect();
        if names.is_empty() && !wanted.is_empty() {
            names = places().filter_map(|place| self.shown_name(place)).collect();
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Considers the first `most` names.
    fn close(&self, name: &str, most: usize) -> Vec<&str> {
        if name.len() > LONGEST {
            return Vec::new();
        }
        let catalog = self.catalog();
        let all = catalog.known_names();
        let unknown = Name::new(name, 0);
        let limit = (unknown.length / 3).min(4);

        // The number of words that a name shares with the unknown one.
        let mut shared: FxHashMap<u32, usize> = FxHashMap::default();
        for places in words(name).iter().filter_map(|word| all.by_word.get(word)) {
            for place in places {
                *shared.entry(*place).or_default() += 1;
            }
        }
        // Names within the edit distance first, then those with most shared words, then those with
        // fewer words of their own. The view is asked last, since most names are not similar.
        let rank = |(place, other): (usize, &Name)| {
            let shared = shared.get(&(place as u32)).copied().unwrap_or(0);
            let distance = unknown.distance(other, limit);
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
