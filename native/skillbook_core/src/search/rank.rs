//! Scores the entries of one view by BM25F, with the index in memory, and chooses the best. For
//! documents in the database (notes of vaults, tasks, memories) see `rows/rank.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::index::Index;
use super::scope::Scope;
use super::terms::{QueryTerms, Word};

/// BM25's k1: how quickly further occurrences of a term stop mattering.
const K1: f32 = 1.0;
/// How quickly rarity matters. With 1, a rare word that occurs by chance outweighs the rest of a
/// sentence.
const RARITY: f32 = 0.8;
/// The weight of two words that follow each other, in addition to that of the words.
const PAIR: f32 = 0.5;
/// The part of a score that is scaled by the share of query words that the entry has: of short
/// queries, which are keywords, all of it up to this many words; of sentences at least this part.
const KEYWORDS: f32 = 4.0;
const COVERAGE: f32 = 0.3;
/// The occurrences that cover half of a word.
const HALF: f32 = 0.05;

/// The scores so far, by entry.
struct Scores {
    total: Vec<f32>,
    /// The weights of the query words that the entry has. A word in the body alone counts less than
    /// one in a name.
    covered: Vec<f32>,
    /// The weighted occurrences of the word that is being counted, and the entries that have some.
    occurrences: Vec<f32>,
    having: Vec<u32>,
}

impl Scores {
    /// Adds a word, and returns its weight.
    fn add(&mut self, index: &Index, scope: &Scope, word: &Word) -> f32 {
        for (term, share) in &word.terms {
            // Entries that the view does not list have weights of 0. They add nothing, and they do
            // not count for the rarity either.
            index.postings(*term).for_each(|(place, count)| {
                let weights = &scope.weights[place as usize];
                let occurrences = &mut self.occurrences[place as usize];
                let more = share * weights.occurrences(count);
                if *occurrences == 0.0 && more > 0.0 {
                    self.having.push(place);
                }
                *occurrences += more;
            });
        }
        // A word is as rare as all its terms together.
        let weight = word.weight * scope.rarity(self.having.len() as u32).powf(RARITY);
        for place in self.having.drain(..) {
            let occurrences = std::mem::take(&mut self.occurrences[place as usize]);
            // BM25's saturation: the tenth occurrence adds much less than the second.
            self.total[place as usize] += weight * (K1 + 1.0) * occurrences / (K1 + occurrences);
            self.covered[place as usize] += weight * occurrences / (HALF + occurrences);
        }
        weight
    }

    /// Adds a pair of words or a whole name. It is not a further word that an entry could lack.
    fn add_term(&mut self, index: &Index, scope: &Scope, term: u32, share: f32) {
        let listed = || index.postings(term).filter(|(place, _)| scope.lists(*place));
        let rarity = scope.rarity(listed().count() as u32).powf(RARITY);
        for (place, count) in listed() {
            let occurrences = scope.weights[place as usize].occurrences(count);
            self.total[place as usize] +=
                share * rarity * (K1 + 1.0) * occurrences / (K1 + occurrences);
        }
    }
}

/// The scores of all entries, by their numbers. They are 0 for entries that match no word, and for
/// those that the view does not list.
pub fn scores(index: &Index, scope: &Scope, wanted: &QueryTerms) -> Vec<f32> {
    let size = scope.weights.len();
    let zeros = || vec![0.0; size];
    let mut scores =
        Scores { total: zeros(), covered: zeros(), occurrences: zeros(), having: Vec::new() };
    let mut all = 0.0;
    for word in &wanted.words {
        all += scores.add(index, scope, word);
    }
    for term in &wanted.pairs {
        scores.add_term(index, scope, *term, PAIR);
    }
    // A name in the query adds to the score.
    for term in &wanted.names {
        scores.add_term(index, scope, *term, 1.0);
    }
    let count = wanted.words.iter().filter(|word| !word.function).count();
    let coverage = (KEYWORDS / count as f32).clamp(COVERAGE, 1.0);
    let share = coverage / all.max(f32::MIN_POSITIVE);
    for (total, covered) in scores.total.iter_mut().zip(&scores.covered) {
        *total *= 1.0 - coverage + share * covered;
    }
    scores.total
}

/// The best of the entries with a score, best first. Equal scores are ordered by name.
///
/// `named` is the rank of an entry whose name is the whole query, else 0. Such an entry comes
/// before all others.
pub fn best(
    scores: &[f32],
    limit: usize,
    named: impl Fn(u32) -> u8,
    admits: impl Fn(u32) -> bool,
) -> Vec<(u32, f32)> {
    if limit == 0 {
        return Vec::new();
    }
    let mut best = BinaryHeap::with_capacity(limit.min(scores.len()) + 1);
    // Most entries score below the worst of the best so far, and are skipped before anything else
    // is computed. Equal scores are not skipped, since the name decides between them.
    let mut least = 0.0;
    for (place, score) in (0u32..).zip(scores) {
        // Scores are rounded to thousandths before they are compared, so that the order does not
        // depend on the last bits of a float.
        let score = score * 1000.0;
        if score <= least && (score <= 0.0 || named(place) == 0) {
            continue;
        }
        let key = (named(place), (score + 0.5) as u32, Reverse(place));
        // The filters of a query cost more than a comparison, so they come last.
        let full = best.len() == limit;
        if full && best.peek().is_some_and(|Reverse(worst)| *worst >= key) || !admits(place) {
            continue;
        }
        if full {
            best.pop();
        }
        best.push(Reverse(key));
        least = match best.peek() {
            Some(Reverse((0, score, _))) if best.len() == limit => *score as f32 - 1.0,
            _ => 0.0,
        };
    }
    let sorted = best.into_sorted_vec();
    sorted
        .into_iter()
        .map(|Reverse((_, score, Reverse(place)))| (place, score as f32 / 1000.0))
        .collect()
}
