//! Suggestions for a name that does not exist ("did you mean"), and names in another spelling. Only
//! names that the view lists are compared, so hidden names affect neither the choice nor its time.

use std::cmp::Reverse;

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
        let entries = self.catalog().entries().len();
        self.close(name, |place| place < entries)
    }

    /// The same, only with entries of the store.
    pub fn suggest_stored(&self, name: &str) -> Vec<&str> {
        let entries = self.catalog().entries().len();
        let stored = |place| self.catalog().priority(EntryId(place as u32)).stored;
        self.close(name, |place| place < entries && stored(place))
    }

    /// The same, with the names of domains, for places where a domain is possible too.
    pub fn suggest_path(&self, name: &str) -> Vec<&str> {
        self.close(name, |_| true)
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
        let shown = |place: &u32| Some((*place as usize, self.shown_name(*place)?));
        let shown: Vec<_> = places.into_iter().flatten().filter_map(shown).collect();
        let titled = |(place, _): &&(usize, &str)| {
            let entry = self.catalog().entries().get(*place);
            entry.is_some_and(|entry| entry.title.as_deref() == Some(text))
        };
        let mut names: Vec<&str> = shown.iter().filter(titled).map(|(_, name)| *name).collect();
        if names.is_empty() && !wanted.is_empty() {
            names = shown.iter().map(|(_, name)| *name).collect();
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Considers the names at these places.
    fn close(&self, name: &str, considered: impl Fn(usize) -> bool) -> Vec<&str> {
        if name.len() > LONGEST {
            return Vec::new();
        }
        let catalog = self.catalog();
        let all = catalog.known_names();
        let wanted = words(name);
        let wanted: Vec<u32> =
            wanted.iter().filter_map(|word| all.words.get(word).copied()).collect();
        let unknown = Name::new(name, wanted);
        let limit = (unknown.length / 3).min(4);

        // Names within the edit distance first, then those with most shared words, then those with
        // fewer words of their own.
        let rank = |place: &u32| {
            let other = &all.names[*place as usize];
            let shared = other.words.iter().filter(|word| unknown.words.contains(word)).count();
            let distance = unknown.distance(other, limit);
            if (distance.is_none() && shared == 0) || !considered(*place as usize) {
                return None;
            }
            let shown = self.name_at(*place).filter(|shown| *shown != name)?;
            let distance = distance.unwrap_or(usize::MAX);
            Some((distance, Reverse(shared), other.words.len(), shown))
        };
        let mut ranked: Vec<_> = self.listed_places().iter().filter_map(rank).collect();
        ranked.sort_unstable();
        ranked.dedup_by_key(|(.., name)| *name);
        ranked.into_iter().map(|(.., name)| name).take(OFFERED).collect()
    }

    /// The positions of listed entries and domains among the known names, in order.
    fn listed_places(&self) -> &[u32] {
        self.visible.names.get_or_init(|| {
            let entries = self.catalog().entries().len() as u32;
            let lists = |id: &EntryId| self.lists(*id);
            let domains = (entries..).zip(self.catalog().domains());
            let domains = domains.filter(|(_, domain)| domain.entries.iter().any(lists));
            self.listed().map(|(id, _)| id.0).chain(domains.map(|(place, _)| place)).collect()
        })
    }

    fn shown_name(&self, place: u32) -> Option<&str> {
        self.listed_places().binary_search(&place).ok()?;
        self.name_at(place)
    }

    /// The name at a listed position.
    fn name_at(&self, place: u32) -> Option<&str> {
        let entries = self.catalog().entries();
        match (place as usize).checked_sub(entries.len()) {
            None => Some(&entries[place as usize].name),
            Some(domain) => Some(self.catalog().domains().get(domain)?.name.as_str()),
        }
    }
}
