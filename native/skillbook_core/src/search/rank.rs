//! Scores the entries of one view by BM25F, with the index in memory, and chooses the best. For
//! documents in the database (notes of vaults, tasks, memories) see `rows/rank.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::index::Index;
use super::scope::Scope;
use super::terms::{QueryTerms, Word};

/// BM25's k1: how quickly further occurrences of a term stop mattering.
const K1: f32 = 1.2;

/// The scores so far, by entry.
struct Scores {
    total: Vec<f32>,
    /// The number of query words that the entry has.
    words: Vec<u8>,
    /// The weighted occurrences of the word that is being counted.
    occurrences: Vec<f32>,
}

impl Scores {
    fn add(&mut self, index: &Index, scope: &Scope, word: &Word, counts: u8) {
        let mut first = 0;
        for (at, (term, share)) in word.terms.iter().enumerate() {
            // Entries that the view does not list have a body weight of 0. They add nothing, and
            // they do not count for the rarity either.
            let (places, counts) = index.postings(*term);
            let mut having = 0;
            for (place, count) in places.iter().zip(counts) {
                let body = scope.body[*place as usize];
                if body > 0.0 {
                    having += 1;
                    let occurrences = f32::from(count.head) * 0.5 + f32::from(count.body) * body;
                    self.occurrences[*place as usize] += share * occurrences;
                }
            }
            if at == 0 {
                first = having;
            }
        }
        // A word that is not a term itself is as rare as all its replacements together.
        let any = || self.occurrences.iter().map(|occurrences| u32::from(*occurrences > 0.0)).sum();
        let rarity = scope.rarity(if word.exact { first } else { any() }) * (K1 + 1.0);
        for ((total, words), occurrences) in
            self.total.iter_mut().zip(&mut self.words).zip(&mut self.occurrences)
        {
            // BM25's saturation: the tenth occurrence adds much less than the second.
            *total += rarity * *occurrences / (K1 + *occurrences);
            *words += if *occurrences > 0.0 { counts } else { 0 };
            *occurrences = 0.0;
        }
    }
}

/// The scores of all entries, by their numbers. They are 0 for entries that match no word, and for
/// those that the view does not list.
pub fn scores(index: &Index, scope: &Scope, wanted: &QueryTerms) -> Vec<f32> {
    let size = scope.body.len();
    if wanted.words.is_empty() {
        return vec![0.0; size];
    }
    let mut scores =
        Scores { total: vec![0.0; size], words: vec![0; size], occurrences: vec![0.0; size] };
    for word in wanted.words.iter().filter(|word| !word.terms.is_empty()) {
        scores.add(index, scope, word, 1);
    }
    // A name in the query adds to the score, but does not count as a further word.
    for term in &wanted.names {
        scores.add(index, scope, &Word { terms: vec![(*term, 1.0)], exact: true }, 0);
    }
    // Scores are scaled by the share of query words that the entry has.
    let share = 1.0 / wanted.words.len() as f32;
    for (total, words) in scores.total.iter_mut().zip(&scores.words) {
        *total *= f32::from(*words) * share;
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
