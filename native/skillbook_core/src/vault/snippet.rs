//! The part of a text that shows why it was found.

use std::collections::HashSet;
use std::ops::Range;

use super::{form_of, Stems};
use crate::search::words;
use crate::search::Snippet;

/// In bytes: how much of a text is looked at, how long a snippet is, and how much of it stands before the first match.
const LOOKED_AT: usize = 100_000;
const LENGTH: usize = 200;
const BEFORE: usize = 40;
/// Of the matches within one snippet, so many are looked at.
const MATCHES: usize = 50;

/// A word of a text that matches, and which of the stems and prefixes it is.
struct Match {
    place: Range<usize>,
    wanted: usize,
}

/// The part with most of the stems and prefixes in it, the first of several; the beginning if none of them is there.
///
/// ```
/// let found = skillbook_core::vault::snippet("The *Plans*\n of May.", &["plan".into()], &[]);
/// assert_eq!(found.text, "The *Plans* of May.");
/// assert_eq!(found.highlights, [(5, 5)]);
/// ```
pub fn snippet(text: &str, stems: &[String], prefixes: &[String]) -> Snippet {
    let text = &text[..boundary(text, LOOKED_AT)];
    let places: Vec<_> = words::words(text).collect();
    let found = matches(text, &places, stems, prefixes);
    let part = window(&places, best(&found), text.len());
    let inside = |found: &&Match| part.start <= found.place.start && found.place.end <= part.end;
    line(text, &part, found.iter().filter(inside).map(|found| found.place.clone()))
}

/// The last place up to which a text may be cut.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn matches(text: &str, places: &[Range<usize>], stems: &[String], prefixes: &[String]) -> Vec<Match> {
    let stemmer = Stems::new();
    // Neither folding nor stemming changes the first letter of a word where it is ASCII.
    let mut begins = [false; 256];
    begins[128..].fill(true);
    for wanted in stems.iter().chain(prefixes).filter_map(|wanted| wanted.bytes().next()) {
        begins[usize::from(wanted)] = true;
    }
    let mut form = String::new();
    let matching = |place: &Range<usize>| {
        let word = &text[place.clone()];
        if !begins[usize::from(word.as_bytes()[0].to_ascii_lowercase())] || !form_of(word, &mut form) {
            return None;
        }
        let stem = stemmer.of(&form);
        let wanted = stems.iter().position(|wanted| *wanted == stem);
        let prefix = || prefixes.iter().position(|prefix| form.starts_with(prefix)).map(|at| at + stems.len());
        Some(Match { place: place.clone(), wanted: wanted.or_else(prefix)? })
    };
    places.iter().filter_map(matching).collect()
}

/// From where on most of what is wanted stands within one snippet.
fn best(found: &[Match]) -> usize {
    let within = |(at, first): (usize, &Match)| {
        let limit = first.place.start + LENGTH - BEFORE;
        let near = found[at..].iter().take_while(|found| found.place.end <= limit).take(MATCHES);
        (near.map(|found| found.wanted).collect::<HashSet<_>>().len(), first.place.start)
    };
    // Of several with as many it is the first.
    let most = found.iter().enumerate().map(within).reduce(|best, next| if next.0 > best.0 { next } else { best });
    most.map_or(0, |(_, start)| start)
}

/// What is shown around a place: from the beginning of a word to the end of one.
fn window(places: &[Range<usize>], at: usize, size: usize) -> Range<usize> {
    if size <= LENGTH {
        return 0..size;
    }
    let from = if at <= BEFORE {
        0
    } else {
        let next = places.partition_point(|place| place.start < at - BEFORE);
        places.get(next).map_or(at, |place| place.start.min(at))
    };
    if from + LENGTH >= size {
        return from..size;
    }
    let last = places.partition_point(|place| place.end <= from + LENGTH).checked_sub(1);
    let end = last.map_or(from, |last| places[last].end);
    from..end.max(from)
}

/// White space becomes single blanks, and places move with it.
fn line(text: &str, part: &Range<usize>, found: impl Iterator<Item = Range<usize>>) -> Snippet {
    let mut out = Snippet::default();
    if part.start > 0 {
        out.text.push_str("… ");
    }
    let mut at = part.start;
    for place in found {
        squeeze(&text[at..place.start], &mut out.text);
        out.highlights.push((out.text.len(), place.len()));
        out.text.push_str(&text[place.clone()]);
        at = place.end;
    }
    squeeze(&text[at..part.end], &mut out.text);
    out.text.truncate(out.text.trim_end().len());
    if part.end < text.len() {
        out.text.push_str(" …");
    }
    out
}

fn squeeze(text: &str, out: &mut String) {
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
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
    fn marks_what_matches() {
        let long = "filler ".repeat(60);
        let rows: [(String, &[&str], &[&str], String); 9] = [
            (String::new(), &["plan"], &[], String::new()),
            ("no match".into(), &["plan"], &[], "no match".into()),
            (" The\n\n *Plans*\t of ".into(), &["plan"], &[], "The *[Plans]* of".into()),
            ("Dying, lying".into(), &["die"], &["ly"], "[Dying], [lying]".into()),
            ("Écoles e\u{301}cole ﬁles".into(), &["ecol", "file"], &[], "[Écoles] [e\u{301}cole] [ﬁles]".into()),
            ("strategy str".into(), &[], &["strat"], "[strategy] str".into()),
            ("plan plans".into(), &["plan"], &["plans"], "[plan] [plans]".into()),
            (long.clone(), &["plan"], &[], format!("{}…", "filler ".repeat(28))),
            (
                format!("plan {long}plan of May {long}"),
                &["plan", "may"],
                &[],
                format!("… {}[plan] of [May] {}…", "filler ".repeat(5), "filler ".repeat(22)),
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
            proptest::prop_assert!(found.text.len() <= LENGTH + 2 * "… ".len() + "x".len() * 300);
            for (start, length) in found.highlights {
                let word = &found.text[start..start + length];
                proptest::prop_assert_eq!(words::words(word).next(), Some(0..word.len()), "{:?}", word);
            }
        }
    }
}
