//! The statistics that scores are made of, counted over the entries that one view lists.

use super::index::{Count, Index};

/// The weights of one occurrence in a field of average length, and BM25's b: how much the length
/// matters. The head is all fields but names and body.
const NAME: (f64, f64) = (2.0, 0.7);
const HEAD: (f64, f64) = (1.0, 0.75);
const BODY: (f64, f64) = (0.03, 0.75);
/// The index counts occurrences in the head in sixths.
const SIXTHS: f64 = 6.0;

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
        Scope { count, weights }
    }

    /// Whether an entry is searched.
    pub fn lists(&self, place: u32) -> bool {
        self.weights.get(place as usize).is_some_and(|weights| weights.body > 0.0)
    }

    /// Whether one of these entries is searched.
    pub fn shows_any(&self, places: &[u32]) -> bool {
        places.iter().any(|place| self.lists(*place))
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
