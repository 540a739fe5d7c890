//! Names close to one that does not exist: by edit distance, and by the words they share.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, EntryId};
use crate::view::View;

/// How many names are offered.
const OFFERED: usize = 3;

/// The longest name, in bytes, for which others are looked for; nobody meant a longer one.
const LONGEST: usize = 256;

/// The names of a catalog prepared for the search, built when the first name is not found.
#[derive(Debug)]
pub struct Words {
    names: Vec<Name>,
    /// The places in `names` of those that have a word.
    by_word: FxHashMap<String, Vec<u32>>,
}

#[derive(Debug)]
struct Name {
    lower: String,
    length: usize,
    /// A bit for each kind of character, to pass over most names without measuring a distance.
    letters: u64,
    words: usize,
}

impl Words {
    /// The entries' names in their order, then the domains'.
    fn new(catalog: &Catalog) -> Words {
        let entries = catalog.entries().iter().map(|entry| &*entry.name);
        let domains = catalog.domains().iter().map(|domain| domain.name.as_str());
        let mut by_word: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let name = |(at, name): (usize, &str)| {
            let words = words(name);
            let count = words.len();
            for word in words {
                by_word.entry(word).or_default().push(at as u32);
            }
            Name::new(name, count)
        };
        let names = entries.chain(domains).enumerate().map(name).collect();
        Words { names, by_word }
    }
}

impl Name {
    fn new(name: &str, words: usize) -> Name {
        let lower = name.to_lowercase();
        let letters = lower.chars().fold(0, |bits, c| bits | 1 << kind(c));
        Name { length: lower.chars().count(), lower, letters, words }
    }

    /// The edit distance to another name, if it is within `limit`; neighbours that changed places count once.
    fn distance(&self, other: &Name, limit: usize) -> Option<usize> {
        // One edit takes away at most one kind of characters and brings at most one.
        let (gone, come) = (self.letters & !other.letters, other.letters & !self.letters);
        let far =
            self.length.abs_diff(other.length) > limit || gone.count_ones().max(come.count_ones()) as usize > limit;
        let distance = if far { usize::MAX } else { strsim::osa_distance(&self.lower, &other.lower) };
        (distance <= limit).then_some(distance)
    }
}

/// A number below 64 for a character: one for each letter and digit, for others what is left.
fn kind(c: char) -> u32 {
    match c {
        'a'..='z' => c as u32 - 'a' as u32,
        '0'..='9' => 26 + c as u32 - '0' as u32,
        _ => 36 + c as u32 % 28,
    }
}

/// The words of a name in lower case: split at everything but letters and digits, and before a capital after a small
/// letter. Single letters say too little.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (small && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase();
    }
    words.retain(|word| word.chars().nth(1).is_some());
    words.sort();
    words.dedup();
    words
}

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
        let all = catalog.words.get_or_init(|| Words::new(catalog));
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

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn splits_names_into_words() {
        let rows: [(&str, &[&str]); 6] = [
            ("email.send", &["email", "send"]),
            ("daily_news-report", &["daily", "news", "report"]),
            ("sendEmail", &["email", "send"]),
            ("HTTPServer", &["httpserver"]),
            ("a.b.send.send", &["send"]),
            ("", &[]),
        ];
        for (name, expected) in rows {
            assert_eq!(words(name), expected, "{name}");
        }
    }
}
