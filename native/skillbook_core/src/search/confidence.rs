//! How likely a message needs a skill, if its best candidate has the scores of this one: a logistic
//! function, fitted by `bench/preflight.exs --fit` on requests, remarks, and requests for skills
//! that the catalog does not have. Half of the messages are requests. There is one function for
//! words alone and one for words with vectors.

use std::collections::BTreeSet;

use super::form::{head, Form};
use super::rows;
use super::scope::rarity;

/// The weights of [`features`], the constant first.
const WORDS: [f64; 6] = [-8.46, 3.32, 4.4, 2.56, 2.26, -0.17];
const VECTORS: [f64; 8] = [-7.49, 2.8, 3.93, 0.99, 0.13, -0.64, 16.34, 2.27];

/// A candidate is less confident if the odds of the best are more than so many times its own: then
/// another entry is meant, as by "Write a poem about rain" beside a skill for poems.
const ODDS: f64 = 2.0;

/// A message with more words of content is no likelier to be a request.
const MAX_CONTENT: usize = 3;

/// The scores of a candidate: by words, and the similarity, if it has a vector.
pub type Scores = (f64, Option<f64>);

/// The confidence of each candidate among so many entries, from 0 to 1, in thousandths.
pub fn confidences(candidates: &[Scores], text: &str, entries: usize) -> Vec<f64> {
    let confidence = |features: Vec<f64>| match features.len() < VECTORS.len() - 1 {
        true => logistic(&WORDS, &features),
        false => logistic(&VECTORS, &features),
    };
    let own: Vec<f64> = features(candidates, text, entries).into_iter().map(confidence).collect();
    let odds = |confidence: f64| confidence / (1.0 - confidence.min(0.999));
    let best = odds(own.iter().copied().fold(0.0, f64::max)).max(1.0);
    own.into_iter().map(|one| thousandths(one * (ODDS * odds(one) / best).min(1.0))).collect()
}

/// The features of each candidate, of which there are two more with vectors.
pub fn features(candidates: &[Scores], text: &str, entries: usize) -> Vec<Vec<f64>> {
    let text = head(text);
    let form = Form::of(text);
    let content = (1.0 + content(text).min(MAX_CONTENT) as f64).ln();
    // The weight of a word that only one entry has. It grows with the catalog, and the scores of
    // words with it.
    let rarest = rarity(entries as f64, 1.0).max(1.0);
    // The best of many entries matches better by chance.
    let size = (entries.max(1) as f64).ln();
    let message = [content, number(form.asks), number(form.orders), size];
    let one = |&(words, similarity): &Scores| {
        let mut features = vec![(1.0 + words.max(0.0) / rarest).ln()];
        features.extend(message);
        // Remarks about a subject are as similar to its skill as requests.
        match (similarity, form.asks || form.orders) {
            (None, _) => {}
            (Some(similarity), true) => features.extend([similarity, 0.0]),
            (Some(similarity), false) => features.extend([0.0, similarity]),
        }
        features
    };
    candidates.iter().map(one).collect()
}

fn number(is: bool) -> f64 {
    u8::from(is).into()
}

/// The number of different words that say something about the subject.
fn content(text: &str) -> usize {
    let words = rows::words(&[text]).into_iter().flatten();
    words.filter(|word| !word.function).map(|word| word.form).collect::<BTreeSet<_>>().len()
}

/// A logistic function with these weights, the constant first, in thousandths.
fn logistic(weights: &[f64], features: &[f64]) -> f64 {
    let products = weights[1..].iter().zip(features).map(|(weight, feature)| weight * feature);
    let sum = products.fold(weights[0], |sum, product| sum + product);
    thousandths(1.0 / (1.0 + (-sum.clamp(-30.0, 30.0)).exp()))
}

fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_likelier_than_a_remark() {
        let of = |text: &str| confidences(&[(4.0, None), (1.0, None)], text, 10);
        let (request, remark) = (of("Translate the letter into French"), of("Thanks a lot"));
        assert!(request[0] > 0.5 && remark[0] < request[0], "{request:?} {remark:?}");
        assert!(request[1] < request[0]);
        assert!(confidences(&[], "x", 10).is_empty());
    }

    #[test]
    fn a_candidate_far_behind_the_best_is_less_confident() {
        let text = "Translate the letter into French";
        let alone = confidences(&[(2.0, None)], text, 10)[0];
        let behind = confidences(&[(8.0, None), (2.0, None)], text, 10)[1];
        assert!(behind < alone, "{behind} {alone}");
    }

    #[test]
    fn a_similarity_counts_more_in_a_request() {
        let of = |text: &str| confidences(&[(1.0, Some(0.6))], text, 10)[0];
        assert!(of("Is the letter translated?") > of("The letter was translated"));
    }
}
