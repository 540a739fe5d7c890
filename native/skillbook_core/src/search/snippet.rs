//! Cuts the part of a text that shows why it was found, and marks the matches in it.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use super::index::Index;
use super::parts::{Parts, PART};
use super::rows::form_of;
use super::stems::Stems;
use super::terms::QueryTerms;
use super::words::{fold, pieces, stem, words, Beginnings, LONGEST};
use crate::catalog::entry::Entry;

/// The length of a snippet in bytes, without the marks at its ends.
const LENGTH: usize = 200;
/// The length of the text before the first match.
const LEAD: usize = 60;
const _: () = assert!(LENGTH <= PART);

/// A part of a text on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// About 200 bytes at most, with `…` where the text continues.
    pub text: String,
    /// The matching words in it, as start and length in bytes.
    pub highlights: Vec<(usize, usize)>,
}

/// A matching word of a text.
#[derive(Debug, Clone, Copy)]
struct Match {
    start: usize,
    end: usize,
    word: usize,
}

/// The query terms that occur in an entry.
struct EntryTerms<'a> {
    /// Sorted, each with the number of the query word that it stands for.
    terms: Vec<(&'a str, usize)>,
    beginnings: Beginnings,
    /// The number of query words.
    count: u32,
    /// For each query word, the parts of the body that contain it.
    parts: Vec<Parts>,
}

impl<'a> EntryTerms<'a> {
    fn new(place: u32, index: &'a Index, wanted: &QueryTerms) -> EntryTerms<'a> {
        let mut terms = Vec::new();
        let mut parts = Vec::new();
        for word in wanted.words.iter().filter(|word| !word.function) {
            let found =
                word.terms.iter().filter_map(|(term, _)| Some((*term, index.count(*term, place)?)));
            let before = terms.len();
            let mut within = 0;
            for (term, count) in found {
                terms.push((index.term(term), parts.len()));
                within |= count.parts;
            }
            if terms.len() > before {
                parts.push(within);
            }
        }
        terms.sort_unstable();
        let beginnings = Beginnings::of(terms.iter().map(|(term, _)| *term));
        EntryTerms { terms, beginnings, count: parts.len() as u32, parts }
    }

    /// The maximum number of query words in one snippet that starts in a part.
    fn most(&self, part: u32) -> u32 {
        self.parts.iter().map(|parts| u32::from(parts >> part & 0b11 != 0)).sum()
    }
}

/// The description if it contains all query words that match, otherwise the best part of the body
/// if that contains more of them.
pub fn of(entry: &Entry, place: u32, index: &Index, wanted: &QueryTerms) -> Snippet {
    let present = EntryTerms::new(place, index, wanted);
    let mut description = Text::new(entry.description());
    description.read(
        matches(description.text, 0..description.text.len(), &present),
        present.count as usize,
    );
    let blank = description.text.trim().is_empty();
    // The description is written to be read, so it is preferred to a part of the body that is
    // equally good.
    if description.words >= present.count && !blank {
        return description.snippet();
    }
    let mut body = Text::new(entry.body());
    body.read_parts(description.words, &present);
    let better = body.words > description.words || blank;
    (if better { body } else { description }).snippet()
}

/// A text with its best part: the run of matches within the length of a snippet that has the most
/// different words, then the most matches, then comes first.
struct Text<'a> {
    text: &'a str,
    matches: Vec<Match>,
    words: u32,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Text<'a> {
        Text { text, matches: Vec::new(), words: 0 }
    }

    /// Searches the body for a part with more than `words` different words, starting with the parts
    /// that may contain the most. Parts that cannot beat the best one are not read.
    fn read_parts(&mut self, words: u32, present: &EntryTerms) {
        let most: Vec<u32> = (0..Parts::BITS).map(|part| present.most(part)).collect();
        // Parts with the most possible words first, in adjacent runs. As soon as the best snippet
        // has as many words as any remaining part could give, the search ends.
        for hoped in (words + 1..=present.count).rev() {
            let mut part = 0;
            while let Some(next) = most[part..].iter().position(|most| *most == hoped) {
                let start = part + next;
                part = start + most[start..].iter().take_while(|most| **most == hoped).count();
                let range = start * PART..((part + 1) * PART).min(self.text.len());
                self.read(matches(self.text, range, present), present.count as usize);
                if self.words == present.count {
                    return;
                }
            }
            if self.words >= hoped {
                return;
            }
        }
    }

    /// Searches these matches for a better part. A part with all `count` words cannot be beaten, so
    /// the search stops there.
    fn read(&mut self, matches: impl Iterator<Item = Match>, count: usize) {
        let mut counts = vec![0u32; count];
        let (mut run, mut words) = (VecDeque::new(), 0);
        for found in matches {
            // A sliding window over the matches: as long as a snippet, with the number of each word
            // in it.
            let too_far = |first: &Match| found.end - first.start > LENGTH;
            while let Some(first) = run.front().copied().filter(too_far) {
                if self.words as usize == count {
                    return;
                }
                run.pop_front();
                counts[first.word] -= 1;
                words -= u32::from(counts[first.word] == 0);
            }
            words += u32::from(counts[found.word] == 0);
            counts[found.word] += 1;
            run.push_back(found);
            let start = |first: Option<&Match>| Reverse(first.map_or(0, |first| first.start));
            let key = (words, run.len(), start(run.front()));
            if key > (self.words, self.matches.len(), start(self.matches.first())) {
                self.words = words;
                self.matches.clear();
                self.matches.extend(&run);
            }
        }
    }

    fn snippet(&self) -> Snippet {
        let (first, last) = match self.matches.as_slice() {
            [first, .., last] => (first.start, last.end),
            [only] => (only.start, only.end),
            [] => (0, 0),
        };
        // Begin a little before the first match, but not so early that the last match does not fit.
        let mut start = first.saturating_sub(LEAD.min(LENGTH.saturating_sub(last - first)));
        let mut end = (start + LENGTH).max(last).min(self.text.len());
        // At the end of the text, use the full length by beginning earlier.
        if end == self.text.len() {
            start = start.min(first.min(end.saturating_sub(LENGTH)));
        }
        let blank = |c: char| c.is_whitespace();
        // Cut at character boundaries first, then at whitespace if there is any nearby.
        start = floor(self.text, start);
        end = floor(self.text, end).max(last);
        // Cut between words if there is whitespace to cut at.
        if start > 0 && !self.text[..start].ends_with(blank) {
            start = self.text[start..first].find(blank).map_or(start, |at| start + at);
        }
        if end < self.text.len() && !self.text[end..].starts_with(blank) {
            end = self.text[last..end].rfind(blank).map_or(end, |at| last + at);
        }
        one_line(self.text, start..end, &self.matches)
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The number of bytes of a database document that are scanned for a snippet.
const MAX_SCANNED: usize = 100_000;

/// The part of a text with the most of these stems and prefixes, or its start if it has none of
/// them.
///
/// ```
/// let found = skillbook_core::search::snippet("The *Plans*\n of May.", &["plan".into()], &[]);
/// assert_eq!(found.text, "The *Plans* of May.");
/// assert_eq!(found.highlights, [(5, 5)]);
/// ```
pub fn snippet(text: &str, stems: &[String], prefixes: &[String]) -> Snippet {
    let mut out = Text::new(text);
    let scanned = &text[..floor(text, MAX_SCANNED)];
    out.read(stemmed(scanned, stems, prefixes), stems.len() + prefixes.len());
    out.snippet()
}

/// The words of a text that have one of these stems or prefixes.
fn stemmed<'a>(
    text: &'a str,
    stems: &'a [String],
    prefixes: &'a [String],
) -> impl Iterator<Item = Match> + 'a {
    let stemmer = Stems::new();
    // Folding and stemming keep an ASCII first letter, so most words are skipped by it.
    let mut begins = [false; 256];
    begins[128..].fill(true);
    for wanted in stems.iter().chain(prefixes).filter_map(|wanted| wanted.bytes().next()) {
        begins[usize::from(wanted)] = true;
    }
    let mut form = String::new();
    words(text).filter_map(move |place| {
        let word = &text[place.clone()];
        if !begins[usize::from(word.as_bytes()[0].to_ascii_lowercase())]
            || !form_of(word, &mut form)
        {
            return None;
        }
        let stem = stemmer.of(&form);
        let wanted = stems.iter().position(|wanted| *wanted == stem);
        let prefix = || {
            prefixes.iter().position(|prefix| form.starts_with(prefix)).map(|at| at + stems.len())
        };
        Some(Match { start: place.start, end: place.end, word: wanted.or_else(prefix)? })
    })
}

/// The words that start in this range of a text and are among the terms.
fn matches<'a>(
    text: &'a str,
    range: Range<usize>,
    present: &'a EntryTerms,
) -> impl Iterator<Item = Match> + 'a {
    let (mut folded, mut end) = (String::new(), 0);
    let words = present.beginnings.words(text, range);
    let pieces = words.flat_map(|place| {
        pieces(&text[place.clone()])
            .map(move |piece| place.start + piece.start..place.start + piece.end)
    });
    pieces.filter_map(move |place| {
        if place.len() > LONGEST {
            return None;
        }
        fold(&text[place.clone()], &mut folded);
        stem(&mut folded);
        let at = present.terms.partition_point(|(term, _)| *term < folded.as_str());
        let (_, word) = present.terms.get(at).filter(|(term, _)| *term == folded)?;
        // Pieces of a word may overlap, but matches must not.
        let start = place.start.max(end);
        end = place.end;
        Some(Match { start, end, word: *word })
    })
}

/// Collapses whitespace, and puts `…` where the text continues.
fn one_line(text: &str, range: Range<usize>, matches: &[Match]) -> Snippet {
    let mut out = Snippet::default();
    let goes_on = |text: &str| !text.trim().is_empty();
    if goes_on(&text[..range.start]) {
        out.text.push('…');
    }
    // Positions change when whitespace collapses, so highlights are converted word by word.
    let mut rest = matches.iter().peekable();
    let part = &text[range.clone()];
    for word in part.split_whitespace() {
        if !out.text.is_empty() && out.text != "…" {
            out.text.push(' ');
        }
        let start = range.start + (word.as_ptr() as usize - part.as_ptr() as usize);
        while let Some(found) = rest.next_if(|found| found.start < start + word.len()) {
            out.highlights.push((out.text.len() + found.start - start, found.end - found.start));
        }
        out.text.push_str(word);
    }
    if goes_on(&text[range.end..]) {
        out.text.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, stems: &[&str], prefixes: &[&str]) -> String {
        let own = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let found = snippet(text, &own(stems), &own(prefixes));
        let mut out = found.text.clone();
        for (start, length) in found.highlights.iter().rev() {
            out.insert(start + length, ']');
            out.insert(*start, '[');
        }
        out
    }

    #[test]
    fn marks_matches() {
        let long = "filler ".repeat(60);
        let rows: [(String, &[&str], &[&str], String); 10] = [
            (String::new(), &["plan"], &[], String::new()),
            ("no match".into(), &["plan"], &[], "no match".into()),
            (" The\n\n *Plans*\t of ".into(), &["plan"], &[], "The *[Plans]* of".into()),
            ("Dying, lying".into(), &["die"], &["ly"], "[Dying], [lying]".into()),
            (
                "Écoles e\u{301}cole ﬁles".into(),
                &["ecol", "file"],
                &[],
                "[Écoles] [e\u{301}cole] [ﬁles]".into(),
            ),
            ("strategy str".into(), &[], &["strat"], "[strategy] str".into()),
            ("plan plans".into(), &["plan"], &["plans"], "[plan] [plans]".into()),
            ("plan-b plan.".into(), &["plan"], &[], "[plan]-b [plan].".into()),
            (long.clone(), &["plan"], &[], format!("{}filler…", "filler ".repeat(27))),
            (
                format!("plan {long}plan of May {long}"),
                &["plan", "may"],
                &[],
                format!("…{}[plan] of [May]{}…", "filler ".repeat(8), " filler".repeat(18)),
            ),
        ];
        for (text, stems, prefixes, expected) in rows {
            assert_eq!(marked(&text, stems, prefixes), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn is_short_and_marks_words(text in "([a-dé\u{301}]{1,9}|[ \n.]|x{300}){0,90}") {
            let found = snippet(&text, &["a".into(), "bad".into()], &["c".into()]);
            proptest::prop_assert!(found.text.len() <= LENGTH + 2 * "…".len() + "x".len() * 300);
            for (start, length) in found.highlights {
                let word = &found.text[start..start + length];
                proptest::prop_assert_eq!(words(word).next(), Some(0..word.len()), "{:?}", word);
            }
        }
    }
}
