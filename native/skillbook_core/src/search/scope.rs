//! The statistics that scores are made of, counted over the entries that one view lists.

use super::index::Index;

/// BM25's b: how much the length of a body matters.
const B: f32 = 0.75;
/// The weight of a term in a body of average length. In a description it is 3.
const BODY: f32 = 1.0;

/// The entries that a view searches, and their statistics.
#[derive(Debug)]
pub struct Scope {
    count: u32,
    /// The weight of one occurrence in an entry's body; 0 for entries that are not searched.
    pub body: Vec<f32>,
}

impl Scope {
    /// The scope of the listed entries, by their numbers.
    pub fn new<I: Iterator<Item = u32>>(index: &Index, listed: impl Fn() -> I) -> Scope {
        let lengths = index.lengths();
        let mut body = vec![0.0; lengths.len()];
        let length = |id: u32| lengths[id as usize];
        let (mut count, mut total) = (0u32, 0u64);
        listed().for_each(|id| {
            count += 1;
            total += u64::from(length(id));
        });
        // Summed as integers: the sum of floats would depend on the order of entries.
        let average = (total as f64 / f64::from(count.max(1))).max(1.0);
        for id in listed() {
            body[id as usize] = BODY / (1.0 - B + B * (f64::from(length(id)) / average) as f32);
        }
        Scope { count, body }
    }

    /// Whether this entry is searched.
    pub fn lists(&self, place: u32) -> bool {
        self.body[place as usize] > 0.0
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
