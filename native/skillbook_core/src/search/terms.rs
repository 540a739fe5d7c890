//! Turns the words of a query into terms of the index: exact, by prefix, or by similar spelling.

use super::index::Index;
use super::scope::Scope;
use super::words::{folded, parts, stemmed, whole, words, LONGEST};

/// The maximum length of a query, in bytes and in words.
const BYTES: usize = 256;
const WORDS: usize = 16;

/// The maximum number of terms that one word may expand to.
const EXPANDED: usize = 32;

/// The weights of terms that are not the word itself, relative to it.
const LONGER: f32 = 0.4;
const ONLY_LONGER: f32 = 0.8;
const MISSPELT: f32 = 0.7;

/// A word of a query.
#[derive(Debug)]
pub struct Word {
    /// The terms that it stands for, with their weights.
    pub terms: Vec<(u32, f32)>,
    /// Whether the first term is the word itself. Then its rarity is that of the word.
    pub exact: bool,
}

/// The terms that a query searches for.
#[derive(Debug)]
pub struct QueryTerms {
    /// Its words. A word that matches nothing has no terms.
    pub words: Vec<Word>,
    /// Names in the query, as they were written. An entry with one of these names scores higher.
    pub names: Vec<u32>,
    /// The whole query as a name.
    pub name: Option<u32>,
}

/// A folded word of the query.
struct QueryWord {
    folded: String,
    stem: String,
    /// The term of the joined word that it is a part of: `sendemail` for `send`.
    joined: Option<u32>,
}

impl QueryTerms {
    /// The terms of a query among the entries of a scope.
    pub fn new(index: &Index, scope: &Scope, text: &str) -> QueryTerms {
        let text = cut(text);
        // A term counts only if a listed entry has it. Otherwise the query would be answered
        // differently because of a hidden entry.
        let find =
            |term: &str| index.find(term).filter(|term| scope.shows_any(index.postings(*term).0));
        let mut names = Vec::new();
        let mut query_words = Vec::new();
        for chunk in text.split_whitespace() {
            // `email.send` is a name and two words.
            names.extend(find(&whole(chunk)));
            for word in words(chunk).map(|place| &chunk[place]) {
                let parts = parts(word);
                let joined = if parts.len() > 1 { find(&stemmed(word)) } else { None };
                let short = parts.into_iter().filter(|part| part.len() <= LONGEST);
                query_words.extend(short.map(|part| QueryWord {
                    folded: folded(part),
                    stem: stemmed(part),
                    joined,
                }));
            }
        }
        query_words.retain(|word| !word.stem.is_empty());
        query_words.truncate(WORDS);
        names.truncate(WORDS);
        names.sort_unstable();
        names.dedup();
        let last = query_words.len().saturating_sub(1);
        // Of a repeated word the last counts, because the last word may be a prefix.
        let again = |at: usize| {
            query_words[at + 1..].iter().any(|later| later.stem == query_words[at].stem)
        };
        let once = (0..query_words.len()).filter(|at| !again(*at));
        let words = once.map(|at| word(index, scope, &query_words[at], at == last)).collect();
        QueryTerms { words, names, name: find(&whole(text)) }
    }

    /// How far the whole query names an entry: 2 by its name, 1 by an alias, else 0.
    pub fn named(&self, index: &Index, place: u32) -> u8 {
        self.name.and_then(|term| index.count(term, place)).map_or(0, |count| count.head)
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn word(index: &Index, scope: &Scope, query_word: &QueryWord, last: bool) -> Word {
    let QueryWord { folded, stem, joined } = query_word;
    let shown = |term: &u32| scope.shows_any(index.postings(*term).0);
    let exact = index.find(stem).filter(shown);
    let mut terms: Vec<(u32, f32)> =
        exact.into_iter().chain(*joined).map(|term| (term, 1.0)).collect();
    // Prefixes: for the word that may still be typed, and for words that match nothing.
    if last || terms.is_empty() {
        let share = if exact.is_some() { LONGER } else { ONLY_LONGER };
        // The terms that add the fewest letters are the most likely, so the limit cuts the others.
        let mut longer: Vec<u32> =
            index.prefixed(folded).filter(|term| Some(*term) != exact).collect();
        longer.sort_unstable_by_key(|term| (index.term(*term).len(), *term));
        let shown = longer.into_iter().filter(shown).take(EXPANDED);
        terms.extend(
            shown.map(|term| (term, share * folded.len() as f32 / index.term(term).len() as f32)),
        );
    }
    if terms.is_empty() {
        // Similar words only if there is nothing better: a query for a rare word must not be
        // answered with common ones.
        terms = misspelt(index, scope, folded, stem);
    }
    Word { terms, exact: exact.is_some() }
}

/// The terms with the fewest edits: at most one for words of four to seven letters, two for longer
/// ones.
fn misspelt(index: &Index, scope: &Scope, folded: &str, word: &str) -> Vec<(u32, f32)> {
    let length = word.chars().count();
    let limit = match folded.chars().count() {
        0..=3 => return Vec::new(),
        4..=7 => 1,
        _ => 2,
    };
    let distance = |term: u32| {
        let other = index.term(term);
        // Bytes are letters only in ASCII, so the quick test is for ASCII alone.
        let near = match word.is_ascii() && other.is_ascii() {
            true => {
                other.len().abs_diff(length) <= limit
                    && near(word.as_bytes(), other.as_bytes(), limit)
            }
            false => other.chars().count().abs_diff(length) <= limit,
        };
        let distance = near
            .then(|| strsim::osa_distance(word, other))
            .filter(|distance| *distance <= limit)?;
        scope.shows_any(index.postings(term).0).then_some((distance, term))
    };
    let mut close: Vec<_> = index.maybe_within(word, limit).filter_map(distance).collect();
    close.sort_unstable();
    let fewest = close.first().map_or(0, |(distance, _)| *distance);
    let best = close.into_iter().take_while(|(distance, _)| *distance == fewest).take(EXPANDED);
    best.map(|(distance, term)| (term, MISSPELT / distance as f32)).collect()
}

/// Whether all but `limit` letters of a word occur near their position in another one. That is
/// necessary for being within `limit` edits, and ten times as fast to check.
fn near(word: &[u8], other: &[u8], limit: usize) -> bool {
    let astray = |(at, byte): &(usize, &u8)| {
        let around = at.saturating_sub(limit)..(at + limit + 1).min(other.len());
        !other.get(around).is_some_and(|around| around.contains(byte))
    };
    word.iter().enumerate().filter(astray).nth(limit).is_none()
}

#[cfg(test)]
mod tests {
    use super::near;

    proptest::proptest! {
        #[test]
        fn near_accepts_all_words_within_the_limit(
            word in "[a-c]{1,8}",
            other in "[a-c]{1,8}",
            limit in 1..3usize,
        ) {
            let within = strsim::osa_distance(&word, &other) <= limit;
            proptest::prop_assert!(!within || near(word.as_bytes(), other.as_bytes(), limit));
        }
    }
}
