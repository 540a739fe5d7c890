//! The words behind a score, and sentences, as people read them.

use serde::{Deserialize, Serialize};

use crate::search::explain::Pull;
use crate::view::search::decimals;

const MAX_WORDS: usize = 5;
/// A part of the strongest word's, below which a word is not shown.
const LEAST_PART: f64 = 0.05;
/// The characters of a sentence that are shown.
const MAX_LINE: usize = 80;

/// A word of a request, and its part in a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The word as it is in the request.
    pub word: String,
    /// Its part.
    pub part: f64,
}

impl From<Pull> for Word {
    fn from(pull: Pull) -> Word {
        Word { word: pull.word, part: decimals(pull.part, 3) }
    }
}

/// The words that matter most, with their parts in a score; `None` without any.
pub(super) fn strongest(words: &[Word]) -> Option<String> {
    let most = words.first()?.part;
    let shown = words.iter().filter(|word| word.part >= LEAST_PART * most).take(MAX_WORDS);
    let shown: Vec<_> = shown.map(|word| format!("{} {:.1}", word.word, word.part)).collect();
    Some(shown.join(", "))
}

/// A sentence in quotes, cut to a line.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}
