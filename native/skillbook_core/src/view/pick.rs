//! The entries that the router picks for a request without a model: those with a keyword in it, and
//! those that a search finds, with their confidence.

use rustc_hash::FxHashSet;

use super::search::{decimals, Candidate, Meaning, Query};
use super::triggers::{Triggered, LONGEST};
use super::view::View;
use crate::catalog::EntryId;
use crate::search::confidence::{confidences, features, Scores};

/// The candidates of a search, and those that count. Notes and entries that are not in the prompt
/// are left out in between.
const SEARCHED: usize = 30;
const MAX_CANDIDATES: usize = 10;

/// The least confidence of a pick, as `Skillbook.Preflight.Settings` has it by default.
pub const THRESHOLD: f64 = 0.5;
/// The maximum number of picks, as above.
pub const MAX: usize = 3;

/// The confidence of a keyword, which is its author's own choice.
const KEYWORD_CONFIDENCE: f64 = 0.95;

/// An entry that may be picked.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The entry.
    pub id: EntryId,
    /// How likely it helps, from 0 to 1.
    pub confidence: f64,
    /// The reason, for people.
    pub reason: String,
}

/// An entry that a search found, with the parts of its score as [`Candidate`] has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieved {
    /// The entry and its confidence.
    pub found: Found,
    /// The score.
    pub score: f64,
    /// The score by words alone.
    pub words: f64,
    /// The similarity.
    pub similarity: Option<f64>,
}

impl From<&Triggered> for Found {
    fn from(triggered: &Triggered) -> Found {
        let reason = format!("keyword: {}", triggered.keyword);
        Found { id: triggered.id, confidence: KEYWORD_CONFIDENCE, reason }
    }
}

/// The beginning of a request, which alone counts.
pub fn request(text: &str) -> &str {
    text[..text.floor_char_boundary(LONGEST)].trim()
}

impl View {
    /// The entries that a search finds for a request, the most confident first.
    pub fn retrieve(&self, text: &str, meaning: Option<Meaning>) -> Vec<Retrieved> {
        let mut candidates =
            self.candidates(&Query { limit: SEARCHED, meaning, ..Query::new(text) });
        candidates.retain(|found| self.may_pick(found.id));
        candidates.truncate(MAX_CANDIDATES);
        let confidences = confidences(&scores(&candidates), text, self.count());
        let one = |(candidate, confidence): (Candidate, f64)| {
            let (words, similarity) = candidate.scores();
            let similar = similarity
                .map(|of| format!(", similarity {:?}", hundredths(of)))
                .unwrap_or_default();
            let reason = format!("words {:?}{similar}", hundredths(words));
            let found = Found { id: candidate.id, confidence, reason };
            Retrieved { found, score: decimals(candidate.score, 3), words, similarity }
        };
        let mut found: Vec<_> = candidates.into_iter().zip(confidences).map(one).collect();
        // Stable, so that equal ones stay in the order of the search.
        found.sort_by(|one, other| other.found.confidence.total_cmp(&one.found.confidence));
        found
    }

    /// The names of the entries that are picked for a request by words, the most confident first.
    pub fn picked(&self, text: &str) -> Vec<&str> {
        let text = request(text);
        let triggered = self.triggered(text);
        let found: Vec<Found> = triggered
            .iter()
            .map(Found::from)
            .chain(self.retrieve(text, None).into_iter().map(|one| one.found))
            .collect();
        let named = |one: &Found| Some((&*self.entry(one.id)?.name, one.confidence));
        let named: Vec<_> = found.iter().filter_map(named).collect();
        picks(&named, THRESHOLD, MAX).into_iter().map(|place| named[place].0).collect()
    }

    /// The features of the first candidates for a request, from which their confidence is made.
    pub fn features(&self, text: &str, meaning: Option<Meaning>, limit: usize) -> Vec<Vec<f64>> {
        let candidates = self.candidates(&Query { limit, meaning, ..Query::new(text) });
        features(&scores(&candidates), text, self.count())
    }
}

fn scores(candidates: &[Candidate]) -> Vec<Scores> {
    candidates.iter().map(Candidate::scores).collect()
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The places of those that are picked, the most confident first, among names with their
/// confidence. Each name is picked once, where it comes first; if there are too many, the first
/// ones are picked.
pub fn picks<'a>(found: &[(&'a str, f64)], threshold: f64, max: usize) -> Vec<usize> {
    let mut seen = FxHashSet::default();
    let mut is_picked =
        |&(name, confidence): &(&'a str, f64)| confidence >= threshold && seen.insert(name);
    let places = found.iter().enumerate().filter(|(_, one)| is_picked(one));
    let mut picked: Vec<usize> = places.map(|(at, _)| at).take(max).collect();
    picked.sort_by(|one, other| found[*other].1.total_cmp(&found[*one].1));
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_are_picked_once() {
        let found = [("a", 0.95), ("b", 0.4), ("c", 0.6), ("a", 0.99), ("d", 0.97), ("e", 0.98)];
        assert_eq!(picks(&found, 0.5, 3), [4, 0, 2]);
        assert_eq!(picks(&found, 0.5, 9), [5, 4, 0, 2]);
        assert_eq!(picks(&found, 0.99, 3), [3]);
        assert!(picks(&[], 0.0, 3).is_empty());
    }
}
