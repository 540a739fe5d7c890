//! Scores by meaning and by words together.
//!
//! Meaning decides, and words add a small part: a request and the skill for it often share no word,
//! and share function words with many others. So a sentence is ranked by similarity first. A query
//! of a few words that the name of an entry has is probably that name, as it is remembered: such
//! entries come first, see [`leading`].
//!
//! All numbers are taken over the entries that the view lists, and sums are sums of integers, so
//! neither hidden entries nor the order of rows can change the last bits of a score.

use super::index::Index;
use super::scope::Scope;
use super::terms::QueryTerms;
use super::vectors::Mapped;
use super::words::{folded, parts, stemmed, words};
use crate::catalog::entry::Entry;

/// The weight of words: how much of a cosine a point of their score is worth. A score of words is
/// 10 to 30 for an entry that answers a sentence, so words decide among entries of similar meaning,
/// and outweigh it where a request has many rare words. Tuned on public sets of requests.
const WORDS: f64 = 0.02;

/// Similarities are summed in millionths.
const UNIT: f64 = 1e6;

/// The maximum number of words in a query that may be a name.
const NAME_WORDS: usize = 3;

/// The maximum number of letters in a query that is compared with names letter by letter.
const MAX_SLIP: usize = 64;

/// The number of entries whose names are compared with the query.
pub const COMPARED: usize = 64;

/// The scores of all entries, by their numbers.
#[derive(Debug)]
pub struct Mixed {
    /// Both together, about 50 without any similarity and 100 for the same text; 0 for entries that
    /// are not found.
    pub scores: Vec<f32>,
    /// The cosines; NaN for entries without a vector.
    pub similarities: Vec<f32>,
}

/// Mixes the scores of words with the similarities to a vector; `None` if no listed entry has one.
///
/// An entry without a vector, which its book has not embedded yet, is ranked by its words: it gets
/// a similarity between the average and the best, in proportion to the best score of words. An
/// entry is found if a word matches, or if it is at least as similar as the average.
pub fn mix(scope: &Scope, by_words: &[f32], mapped: &Mapped, vector: &[f32]) -> Option<Mixed> {
    let mut similarities = vec![f32::NAN; by_words.len()];
    let (mut sum, mut count, mut best) = (0i64, 0i64, f64::MIN);
    mapped.similarities(
        vector,
        |at| scope.lists(at),
        |at, similarity| {
            // A vector that is not of unit length, or has no finite numbers, must not decide.
            let similarity = if similarity.is_finite() { similarity.clamp(-1.0, 1.0) } else { 0.0 };
            similarities[at as usize] = similarity;
            sum += (f64::from(similarity) * UNIT).round() as i64;
            count += 1;
            best = best.max(f64::from(similarity));
        },
    );
    if count == 0 {
        return None;
    }
    let average = sum as f64 / UNIT / count as f64;
    // In thousandths, as they are compared without vectors.
    let rounded = |words: f32| f64::from((words * 1000.0).round()) / 1000.0;
    let most = rounded(by_words.iter().copied().fold(0.0f32, f32::max));
    let score = |(words, similarity): (&f32, &f32)| {
        let words = rounded(*words);
        let similarity = match similarity.is_nan() {
            true if words > 0.0 => average + (best - average) * words / most,
            true => return 0.0,
            false => f64::from(*similarity),
        };
        if words == 0.0 && similarity < average {
            return 0.0;
        }
        ((similarity + WORDS * words + 1.0) * 50.0).max(0.001) as f32
    };
    let scores = by_words.iter().zip(&similarities).map(score).collect();
    Some(Mixed { scores, similarities })
}

/// Whether a query may be a name, so that entries with its words in their names come first.
pub fn may_be_name(text: &str) -> bool {
    (1..=NAME_WORDS).contains(&text.split_whitespace().take(NAME_WORDS + 1).count())
}

/// How far a query names an entry: 2 if the whole query is its name, its title or an alias but for
/// a slip or two; 1 if each word of the query is in one of them, as it is, as a prefix or misspelt.
/// Function words need not be. Else 0.
pub fn leading(entry: &Entry, index: &Index, wanted: &QueryTerms, query: &str) -> u8 {
    let query = folded(query.trim());
    let aliases = entry.fields().aliases.iter().map(String::as_str);
    let names = || aliases.clone().chain([&*entry.name]).chain(entry.title.as_deref());
    if names().any(|name| is_slip(&query, &folded(name))) {
        2
    } else {
        u8::from(names().any(|name| has_all(name, index, wanted)))
    }
}

fn has_all(name: &str, index: &Index, wanted: &QueryTerms) -> bool {
    // A word as a whole, and its parts.
    let terms: Vec<String> = words(name)
        .flat_map(|place| parts(&name[place.clone()]).into_iter().chain([&name[place]]))
        .map(stemmed)
        .filter(|term| !term.is_empty())
        .collect();
    let mut subjects = wanted.words.iter().filter(|word| !word.function).peekable();
    subjects.peek().is_some()
        && subjects.all(|word| {
            let mut found = word.terms.iter().map(|(term, _)| index.term(*term));
            found.any(|term| terms.iter().any(|other| other == term))
        })
}

/// Whether two folded texts differ in so few letters that one is probably meant for the other: one
/// in texts of up to seven letters, two in longer ones. Short and very long texts never are.
fn is_slip(query: &str, name: &str) -> bool {
    let limit = match query.chars().take(MAX_SLIP + 1).count() {
        0..=3 => return false,
        4..=7 => 1,
        length if length <= MAX_SLIP => 2,
        _ => return false,
    };
    name.len().abs_diff(query.len()) <= 4 * limit && strsim::osa_distance(query, name) <= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_few_letters() {
        let long = "a".repeat(64);
        let rows = [
            ("skillsc.reate", "skills.create", true),
            ("skills.creaet", "skills.create", true),
            ("skils.create", "skills.create", true),
            ("skills.read", "skills.create", false),
            ("mail", "mial", true),
            ("mail", "male", false),
            ("pdf", "pdx", false),
            ("日本語の本", "日本語の木", true),
            (&long, &long[1..], true),
            ("", "", false),
        ];
        for (query, name, expected) in rows {
            assert_eq!(is_slip(query, name), expected, "{query} {name}");
        }
        assert!(!is_slip(&(long.clone() + "a"), &long));
    }

    #[test]
    fn names_have_up_to_three_words() {
        for (text, expected) in [
            ("email.send", true),
            ("send an email", true),
            ("send an email now", false),
            ("  pdf \n", true),
            ("", false),
        ] {
            assert_eq!(may_be_name(text), expected, "{text:?}");
        }
    }
}
