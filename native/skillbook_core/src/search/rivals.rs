//! Finds pairs of entries whose descriptions are alike, so that a request may lead to either.
//!
//! Two entries are as alike as the cosine of their words, each weighted by its rarity: words that
//! many entries have say little. Only the words that a choice is made by count, not the body.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::function_words::{language, languages};
use super::scope::rarity;
use super::words::{folded, parts, stemmed, words, LONGEST};
use crate::catalog::entry::Entry;

/// A word that more entries than this have does not lead from one to another. It still counts for
/// those that rarer words lead to.
const COMMON: usize = 256;

/// The number of rivals that are compared for each entry.
const COMPARED: usize = 8;

/// The number of words that a pair is explained by.
const WORDS: usize = 6;

/// The number of entries that are compared at most. The time grows with their number.
const ENTRIES: usize = 20_000;

/// Two entries whose descriptions are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Rivals<T> {
    /// The entries, in the order of their names.
    pub pair: [T; 2],
    /// From 0, nothing in common, to 1, the same words. Rounded to thousandths.
    pub similarity: f32,
    /// The rarest words that both have, as the first entry writes them.
    pub words: Vec<String>,
}

/// The pairs that are most alike, the closest first, at least as close as `least`.
pub fn rivals<'a, T: Copy + Ord>(
    entries: impl Iterator<Item = (T, &'a Entry)>,
    least: f32,
    limit: usize,
) -> Vec<Rivals<T>> {
    let mut terms = Terms::default();
    let all: Vec<(T, Vec<u32>)> =
        entries.take(ENTRIES).map(|(id, entry)| (id, terms.read(entry))).collect();
    let mut having: Vec<Vec<u32>> = vec![Vec::new(); terms.forms.len()];
    for (at, (_, own)) in all.iter().enumerate() {
        own.iter().for_each(|term| having[*term as usize].push(at as u32));
    }
    let count = all.len() as f64;
    let squares: Vec<f64> =
        having.iter().map(|having| rarity(count, having.len() as f64).powi(2)).collect();
    let length = |own: &[u32]| own.iter().map(|term| squares[*term as usize]).sum::<f64>().sqrt();
    let lengths: Vec<f64> = all.iter().map(|(_, own)| length(own)).collect();

    let mut shared = vec![0.0; all.len()];
    let mut touched: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for (at, (id, own)) in all.iter().enumerate() {
        for term in own.iter().filter(|term| having[**term as usize].len() <= COMMON) {
            let having = &having[*term as usize];
            // Each pair once: only with the entries behind this one.
            let behind = having.partition_point(|other| *other as usize <= at);
            for other in &having[behind..] {
                let sum: &mut f64 = &mut shared[*other as usize];
                if *sum == 0.0 {
                    touched.push(*other);
                }
                *sum += squares[*term as usize];
            }
        }
        let close = |other: &u32| shared[*other as usize] / lengths[*other as usize];
        touched.sort_by(|one, other| close(other).total_cmp(&close(one)).then(one.cmp(other)));
        for other in touched.iter().take(COMPARED).map(|other| *other as usize) {
            let mut both = common(own, &all[other].1);
            let sum: f64 = both.iter().map(|term| squares[*term as usize]).sum();
            // An entry without words has no rivals.
            let cosine = sum / (lengths[at] * lengths[other]).max(f64::MIN_POSITIVE);
            let similarity = (cosine * 1000.0).round() as f32 / 1000.0;
            if similarity >= least {
                both.sort_by_key(|term| (having[*term as usize].len(), *term));
                let words = both.iter().take(WORDS).map(|term| terms.forms[*term as usize].clone());
                let pair = [*id, all[other].0];
                found.push(Rivals { pair, similarity, words: words.collect() });
            }
        }
        touched.drain(..).for_each(|other| shared[other as usize] = 0.0);
    }
    found.sort_by_key(|rivals| (Reverse((rivals.similarity * 1000.0) as u32), rivals.pair));
    found.truncate(limit);
    found
}

/// The terms that two sorted lists have.
fn common(one: &[u32], other: &[u32]) -> Vec<u32> {
    one.iter().filter(|term| other.binary_search(term).is_ok()).copied().collect()
}

/// The words by number, each in the form that came first.
#[derive(Default)]
struct Terms {
    numbers: FxHashMap<String, u32>,
    forms: Vec<String>,
}

impl Terms {
    /// The numbers of an entry's words, sorted.
    fn read(&mut self, entry: &Entry) -> Vec<u32> {
        let fields = entry.fields();
        let title = entry.title.as_deref().unwrap_or("");
        let triggers = fields.triggers.iter().map(String::as_str);
        let mut all: Vec<(String, &str)> = Vec::new();
        for text in [&*entry.name, title, entry.description()].into_iter().chain(triggers) {
            for word in words(text).flat_map(|place| parts(&text[place])) {
                let stem = stemmed(word);
                if !stem.is_empty() && word.len() <= LONGEST {
                    all.push((stem, word));
                }
            }
        }
        // Function words say nothing, however rare they are.
        let language = language(all.iter().map(|(stem, _)| stem.as_str()));
        all.retain(|(stem, _)| languages(stem) & language == 0);
        let mut own: Vec<u32> =
            all.into_iter().map(|(stem, word)| self.number(stem, word)).collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    fn number(&mut self, stem: String, word: &str) -> u32 {
        let next = self.forms.len() as u32;
        let number = *self.numbers.entry(stem).or_insert(next);
        if number == next {
            self.forms.push(folded(word));
        }
        number
    }
}
