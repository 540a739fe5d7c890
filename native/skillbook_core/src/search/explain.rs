//! Says which words of a query give an entry its score.
//!
//! A word's part in a score is what the entry loses if the query is asked without that word. That
//! needs one scoring per word, and holds for any way of scoring, so the ranking can change without
//! this file.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::index::Index;
use super::rank::scores;
use super::scope::Scope;
use super::terms::QueryTerms;
use super::words::{stemmed, words};

/// The maximum number of different words that are tried. A query with more is a text.
const WORDS: usize = 32;

/// The smallest part in a score, which is rounded to thousandths.
const LEAST: f64 = 0.001;

/// A word of a query, and its part in the score of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pull {
    /// The word as it is in the query.
    pub word: String,
    /// The loss of the entry's score without it, rounded to thousandths.
    pub part: f64,
}

/// The words of a query that raise the scores of some entries, for each entry, the strongest first.
pub fn explain(index: &Index, scope: &Scope, text: &str, places: &[u32]) -> Vec<Vec<Pull>> {
    let mut pulls: Vec<Vec<Pull>> = places.iter().map(|_| Vec::new()).collect();
    let scored = |text: &str| scores(index, scope, &QueryTerms::new(index, scope, text));
    let all = scored(text);
    for word in distinct(text) {
        let without = scored(&without(text, &word));
        for (pulls, place) in pulls.iter_mut().zip(places) {
            let at = *place as usize;
            let (Some(all), Some(without)) = (all.get(at), without.get(at)) else { continue };
            let part = (f64::from(all - without) * 1000.0).round() / 1000.0;
            if part >= LEAST {
                pulls.push(Pull { word: text[word[0].clone()].to_owned(), part });
            }
        }
    }
    for pulls in &mut pulls {
        // Stable, so that equal words stay in the order of the query.
        pulls.sort_by(|one, other| other.part.total_cmp(&one.part));
    }
    pulls
}

/// The different words of a text, each with all its places.
fn distinct(text: &str) -> Vec<Vec<Range<usize>>> {
    let mut found: Vec<(String, Vec<Range<usize>>)> = Vec::new();
    for place in words(text) {
        let stem = stemmed(&text[place.clone()]);
        match found.iter().position(|(other, _)| *other == stem) {
            Some(at) => found[at].1.push(place),
            None if found.len() < WORDS => found.push((stem, vec![place])),
            None => {}
        }
    }
    found.into_iter().map(|(_, places)| places).collect()
}

/// A text without some of its words.
fn without(text: &str, places: &[Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut done = 0;
    for place in places {
        rest.push_str(&text[done..place.start]);
        done = place.end;
    }
    rest.push_str(&text[done..]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_every_place_of_a_word() {
        let text = "Rain, rains or söme Rain";
        let all: Vec<_> = distinct(text).iter().map(|word| without(text, word)).collect();
        assert_eq!(all, [",  or söme ", "Rain, rains  söme Rain", "Rain, rains or  Rain"]);
        let long: String = (0..100).map(|at| format!("w{at} ")).collect();
        assert_eq!(distinct(&long).len(), WORDS);
    }
}
