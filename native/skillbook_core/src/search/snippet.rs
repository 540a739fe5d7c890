//! The part of a text that shows why it was found.

use std::collections::VecDeque;
use std::ops::Range;

use super::index::Index;
use super::terms::Wanted;
use super::words::{fold, stem, words, LONGEST};

use super::Snippet;
use crate::entry::Entry;

/// How long a snippet is, in bytes, without what is added at cuts.
const LENGTH: usize = 200;
/// How much stands before its first match.
const LEAD: usize = 60;
/// How much of a body is searched, in bytes.
const READ: usize = 8 * 1024;

/// A word of a text that matches.
#[derive(Debug, Clone, Copy)]
struct Match {
    start: usize,
    end: usize,
    word: usize,
}

/// The description if all that matches is in it, else the best part of the body, if that has more.
pub fn of(entry: &Entry, place: u32, index: &Index, wanted: &Wanted) -> Snippet {
    let has = |term: u32| index.postings(term).0.binary_search(&place).is_ok();
    let mut terms: Vec<(&str, usize)> = Vec::new();
    let mut present = 0;
    for (at, word) in wanted.words.iter().enumerate() {
        let before = terms.len();
        terms.extend(word.terms.iter().filter(|(term, _)| has(*term)).map(|(term, _)| (index.term(*term), at)));
        present += u32::from(terms.len() > before);
    }
    terms.sort_unstable();

    let description = Text::new(entry.description(), &terms, present);
    if description.words >= present && !description.text.is_empty() {
        return description.snippet();
    }
    let body = entry.body();
    let body = Text::new(&body[..floor(body, READ)], &terms, present);
    let better = body.words > description.words || description.text.trim().is_empty();
    (if better { body } else { description }).snippet()
}

/// A text with its best part: the run of matches within the length of a snippet that has the most different words,
/// then the most matches, then is the first.
struct Text<'a> {
    text: &'a str,
    matches: Vec<Match>,
    words: u32,
}

impl<'a> Text<'a> {
    /// The part of a text with the most of `terms`; one that has `enough` different words is not bettered.
    fn new(text: &'a str, terms: &[(&str, usize)], enough: u32) -> Text<'a> {
        let mut best = Text { text, matches: Vec::new(), words: 0 };
        let mut counts = [0u32; u16::BITS as usize];
        let (mut run, mut words) = (VecDeque::new(), 0);
        for found in matches(text, terms) {
            let too_far = |first: &Match| found.end - first.start > LENGTH;
            while let Some(first) = run.front().copied().filter(too_far) {
                if best.words == enough {
                    return best;
                }
                run.pop_front();
                counts[first.word] -= 1;
                words -= u32::from(counts[first.word] == 0);
            }
            words += u32::from(counts[found.word] == 0);
            counts[found.word] += 1;
            run.push_back(found);
            if (words, run.len()) > (best.words, best.matches.len()) {
                best.words = words;
                best.matches.clear();
                best.matches.extend(&run);
            }
        }
        best
    }

    fn snippet(&self) -> Snippet {
        let (first, last) = match self.matches.as_slice() {
            [first, .., last] => (first.start, last.end),
            [only] => (only.start, only.end),
            [] => (0, 0),
        };
        let mut start = first.saturating_sub(LEAD.min(LENGTH.saturating_sub(last - first)));
        let mut end = (start + LENGTH).max(last).min(self.text.len());
        if end == self.text.len() {
            start = start.min(first.min(end.saturating_sub(LENGTH)));
        }
        let blank = |c: char| c.is_whitespace();
        start = floor(self.text, start);
        end = floor(self.text, end).max(last);
        // Cut between words, where there is a blank to cut at.
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

/// The words of a text that are among the terms, which are sorted.
fn matches<'a>(text: &'a str, terms: &'a [(&str, usize)]) -> impl Iterator<Item = Match> + 'a {
    // Most words are passed over for their first two letters, of which five bits do not tell small from capital.
    let beginning = |word: &str| {
        let five = |at| word.as_bytes().get(at).map_or(0, |byte: &u8| byte & 31);
        (five(0) as usize, 1u32 << five(1))
    };
    let mut beginnings = [0u32; 32];
    for (first, second) in terms.iter().map(|(term, _)| beginning(term)) {
        beginnings[first] |= second;
    }
    let mut folded = String::new();
    words(text).filter_map(move |place| {
        let word = &text[place.clone()];
        let (first, second) = beginning(word);
        if word.len() > LONGEST || (beginnings[first] & second == 0 && word.is_ascii()) {
            return None;
        }
        fold(word, &mut folded);
        stem(&mut folded);
        let at = terms.partition_point(|(term, _)| *term < folded.as_str());
        let (_, word) = terms.get(at).filter(|(term, _)| *term == folded)?;
        Some(Match { start: place.start, end: place.end, word: *word })
    })
}

/// Runs of blanks and line breaks become one blank; `…` says that the text goes on.
fn one_line(text: &str, range: Range<usize>, matches: &[Match]) -> Snippet {
    let mut out = Snippet::default();
    let goes_on = |text: &str| !text.trim().is_empty();
    if goes_on(&text[..range.start]) {
        out.text.push('…');
    }
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
