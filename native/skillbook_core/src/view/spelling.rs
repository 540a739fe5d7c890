//! The names of a catalog, prepared for finding similar ones, and other spellings of a name.

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;

use crate::catalog::Catalog;

/// The names of entries and domains. Built when a name is not found for the first time.
#[derive(Debug)]
pub(super) struct KnownNames {
    pub names: Vec<Name>,
    /// The number of each word of the names.
    pub words: FxHashMap<String, u32>,
    /// For each [`spelling`], the positions in `names` of the entries with a name, title or alias
    /// of this spelling, and of the domains with such a name.
    pub by_spelling: FxHashMap<String, Vec<u32>>,
}

/// The signs that count as blanks in a [`spelling`]. Others have a meaning in the command language,
/// so that `<tasks.get>` and `tasks.*` are not `tasks.get` and `tasks`.
const SIGNS: &str = "-_.,:;!?'\"()&";

/// The form in which `Meeting Notes`, `meeting-notes` and `MEETING_NOTES` are equal: lower case, a
/// blank for each run of blanks, dashes, dots and other punctuation. Empty if nothing is left.
pub fn spelling(text: &str) -> String {
    let lower = text.nfc().flat_map(char::to_lowercase);
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in lower {
        if c.is_whitespace() || SIGNS.contains(c) {
            gap = !out.is_empty();
        } else {
            if std::mem::take(&mut gap) {
                out.push(' ');
            }
            out.push(c);
        }
    }
    out
}

/// A name with everything that comparing it needs.
#[derive(Debug)]
pub(super) struct Name {
    lower: String,
    pub length: usize,
    /// A bit for each kind of character. Comparing these bits rules out most names without an edit
    /// distance.
    letters: u64,
    /// The numbers of its words.
    pub words: Vec<u32>,
}

impl KnownNames {
    /// The names of the entries in their order, then those of the domains.
    pub fn new(catalog: &Catalog) -> KnownNames {
        let entries = catalog.entries().iter().map(|entry| &*entry.name);
        let domains = catalog.domains().iter().map(|domain| domain.name.as_str());
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let name = |name: &str| {
            let mut number = |word| {
                let next = numbers.len() as u32;
                *numbers.entry(word).or_insert(next)
            };
            Name::new(name, words(name).into_iter().map(&mut number).collect())
        };
        let names = entries.chain(domains.clone()).map(name).collect();

        let mut by_spelling: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let mut add = |at: usize, text: &str| {
            let places = by_spelling.entry(spelling(text)).or_default();
            // The name, title and aliases of an entry follow each other.
            if places.last() != Some(&(at as u32)) {
                places.push(at as u32);
            }
        };
        for (at, entry) in catalog.entries().iter().enumerate() {
            let aliases = entry.fields().aliases.iter().map(|alias| &**alias);
            for text in [&*entry.name].into_iter().chain(entry.title.as_deref()).chain(aliases) {
                add(at, text);
            }
        }
        for (at, domain) in domains.enumerate() {
            add(catalog.entries().len() + at, domain);
        }
        KnownNames { names, words: numbers, by_spelling }
    }
}

impl Name {
    pub fn new(name: &str, words: Vec<u32>) -> Name {
        let lower = name.to_lowercase();
        let letters = lower.chars().fold(0, |bits, c| bits | 1 << kind(c));
        Name { length: lower.chars().count(), lower, letters, words }
    }

    /// The edit distance to another name, if it is at most `limit`. Swapped neighbours count as one
    /// edit (optimal string alignment).
    pub fn distance(&self, other: &Name, limit: usize) -> Option<usize> {
        // One edit removes at most one kind of character and adds at most one.
        let (gone, come) = (self.letters & !other.letters, other.letters & !self.letters);
        // Two cheap tests before the edit distance, which is quadratic in the length.
        let far = self.length.abs_diff(other.length) > limit
            || gone.count_ones().max(come.count_ones()) as usize > limit;
        let distance =
            if far { usize::MAX } else { strsim::osa_distance(&self.lower, &other.lower) };
        (distance <= limit).then_some(distance)
    }
}

/// A number below 64 for a character: its own for each letter and digit, shared ones for others.
fn kind(c: char) -> u32 {
    match c {
        'a'..='z' => c as u32 - 'a' as u32,
        '0'..='9' => 26 + c as u32 - '0' as u32,
        _ => 36 + c as u32 % 28,
    }
}

/// The words of a name in lower case, split at everything but letters and digits and before a
/// capital after a small letter. Single letters are left out, since they match too much.
pub(super) fn words(name: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::{spelling, words};

    #[test]
    fn spellings_of_a_name_are_equal() {
        let rows: [(&str, &str); 12] = [
            ("Meeting Notes", "meeting notes"),
            ("meeting-notes", "meeting notes"),
            ("MEETING_NOTES", "meeting notes"),
            ("  meeting --  notes! ", "meeting notes"),
            ("email.send", "email send"),
            ("home\u{a0}automation", "home automation"),
            ("MeetingNotes", "meetingnotes"),
            ("re\u{301}union", "r\u{e9}union"),
            ("R\u{c9}UNION", "r\u{e9}union"),
            (
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            ),
            ("--", ""),
            ("<email.send>", "<email send>"),
        ];
        for (text, expected) in rows {
            assert_eq!(spelling(text), expected, "{text}");
        }
    }

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
