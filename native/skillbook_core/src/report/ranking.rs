//! The entries that a request leads to, and why, as people read them.

use crate::search::explain::Pull;
use crate::view::examples::Ranked;

const MAX_WORDS: usize = 5;
/// A part of the strongest word's, below which a word is not shown.
const LEAST_PART: f64 = 0.05;
/// The characters of a sentence that are shown.
const MAX_LINE: usize = 80;

/// A ranking as a table: a line for each entry, and one for its sentence.
pub fn lines(ranking: &[Ranked]) -> Vec<String> {
    let score = |entry: &Ranked| format!("{:.3}", entry.score);
    let widest = |length: fn(&Ranked) -> usize| ranking.iter().map(length).max().unwrap_or(0);
    let name_width = widest(|entry| entry.name.chars().count());
    let score_width = ranking.iter().map(|entry| score(entry).len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for entry in ranking {
        let Ranked { rank, name, .. } = entry;
        let mut line = format!("{rank:>3}  {name:name_width$}  {:>score_width$}", score(entry));
        if let Some(similarity) = entry.similarity {
            line += &format!("  ~{similarity:.2}");
        }
        if let Some(words) = strongest(&entry.words) {
            line += &format!("  {words}");
        }
        line.truncate(line.trim_end().len());
        lines.push(line);
        lines.extend(entry.sentence.iter().map(|sentence| format!("     {}", quoted(sentence))));
    }
    lines
}

/// The words that matter most, with their parts in a score; `None` without any.
pub(super) fn strongest(words: &[Pull]) -> Option<String> {
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
