//! The statistics that scores are made of, counted over the entries that one view lists.

use std::ops::Range;

use super::index::{Count, Index};

/// The weights of one occurrence in a field of average length, and BM25's b: how much the length
/// matters. The head is all fields but names and body.
const NAME: (f64, f64) = (2.0, 0.7);
const HEAD: (f64, f64) = (1.0, 0.75);
const BODY: (f64, f64) = (0.03, 0.75);
/// The index counts occurrences in the head in sixths.
const SIXTHS: f64 = 6.0;
/// The bits of a block of terms.
const BITS: u32 = u64::BITS;

/// The weights of one occurrence in the fields of an entry; 0 for entries that are not searched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weights {
    name: f32,
    head: f32,
    body: f32,
}

impl Weights {
    /// The weighted occurrences of a term.
    pub fn occurrences(&self, count: Count) -> f32 {
        f32::from(count.names()) * self.name
            + f32::from(count.head()) * self.head
            + f32::from(count.body) * self.body
    }
}

/// The entries that a view searches, and their statistics.
#[derive(Debug)]
pub struct Scope {
    count: u32,
    /// By the numbers of entries.
    pub weights: Vec<Weights>,
    /// A bit for each term of the index, set if one of the entries has it. A lookup takes as long
    /// for a term of hidden entries as for one of none.
    terms: Vec<u64>,
}

impl Scope {
    /// The scope of the listed entries, by their numbers.
    pub fn new<I: Iterator<Item = u32>>(index: &Index, listed: impl Fn() -> I) -> Scope {
        let lengths = index.lengths();
        let mut weights = vec![Weights::default(); lengths.len()];
        let length = |id: u32| lengths[id as usize];
        let (mut count, mut name, mut head, mut body) = (0u32, 0u64, 0u64, 0u64);
        listed().for_each(|id| {
            count += 1;
            name += u64::from(length(id).name);
            head += u64::from(length(id).head);
            body += u64::from(length(id).body);
        });
        // Summed as integers: the sum of floats would depend on the order of entries.
        let average = |total: u64| (total as f64 / f64::from(count.max(1))).max(1.0);
        let (name, head, body) = (average(name), average(head), average(body));
        let weight = |(weight, b): (f64, f64), length: u32, average: f64| {
            (weight / (1.0 - b + b * f64::from(length) / average)) as f32
        };
        for id in listed() {
            weights[id as usize] = Weights {
                name: weight(NAME, length(id).name, name),
                head: weight(HEAD, length(id).head, head) / SIXTHS as f32,
                body: weight(BODY, length(id).body, body),
            };
        }
        let mut terms = vec![0; (index.term_count() as usize).div_ceil(BITS as usize)];
        // One bit for each entry fits into the processor's cache; the weights do not.
        let mut searched = vec![0u64; lengths.len().div_ceil(BITS as usize)];
        listed().for_each(|id| searched[(id / BITS) as usize] |= 1 << (id % BITS));
        let has = |id: u32| searched[(id / BITS) as usize] >> (id % BITS) & 1 == 1;
        for term in 0..index.term_count() {
            let had = index.postings(term).any(|(place, _)| has(place));
            terms[(term / BITS) as usize] |= u64::from(had) << (term % BITS);
        }
        Scope { count, weights, terms }
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.weights[..]) + size_of_val(&self.terms[..])
    }

    /// Whether an entry is searched.
    pub fn lists(&self, place: u32) -> bool {
        self.weights.get(place as usize).is_some_and(|weights| weights.body > 0.0)
    }

    /// Whether one of the entries has a term.
    pub fn has(&self, term: u32) -> bool {
        self.terms[(term / BITS) as usize] >> (term % BITS) & 1 == 1
    }

    /// The terms of a range that one of the entries has, in order.
    pub fn had(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let blocks = range.start / BITS..range.end.div_ceil(BITS);
        let terms = blocks.flat_map(|block| {
            let mut bits = self.terms[block as usize];
            std::iter::from_fn(move || {
                let at = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (at < BITS).then_some(block * BITS + at)
            })
        });
        terms.filter(move |term| range.contains(term))
    }

    /// The rarity of a term that this many entries have.
    pub fn rarity(&self, having: u32) -> f32 {
        rarity(f64::from(self.count), f64::from(having)) as f32
    }
}

/// The weight of a word that `having` of `all` documents have: BM25's inverse document frequency,
/// in the form that is never negative.
pub fn rarity(all: f64, having: f64) -> f64 {
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}
