//! The words of a text as search terms: without case, accents and plural endings.
//!
//! Search reads every body when an index is built, so this is a hot path. A table of bytes decides
//! for ASCII; only other characters are decoded.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::UnicodeNormalization;

/// The maximum length of a word in bytes. Longer ones are keys, hashes or encoded data, and nobody
/// searches for them.
pub const LONGEST: usize = 64;

/// The kind of a byte: in a word, between words, or part of a character beyond ASCII.
const INSIDE: u8 = 1;
const BETWEEN: u8 = 0;
const BEYOND: u8 = 2;
const KINDS: [u8; 256] = {
    // Computed at compile time.
    let mut kinds = [BEYOND; 256];
    let mut at = 0;
    while at < 128 {
        kinds[at] = if (at as u8).is_ascii_alphanumeric() { INSIDE } else { BETWEEN };
        at += 1;
    }
    kinds
};

/// A byte as five bits: the same for a letter and its capital, 0 between words, [`OTHER`] beyond
/// ASCII.
const FIVE: [u8; 256] = {
    let mut five = [0; 256];
    let mut at = 0;
    while at < 256 {
        five[at] = match KINDS[at] {
            INSIDE => at as u8 & 31,
            BETWEEN => 0,
            _ => OTHER,
        };
        at += 1;
    }
    five
};
/// The five bits of bytes beyond ASCII. No letter or digit has them.
const OTHER: u8 = 31;

/// The first two letters of a set of terms, to skip most words of a text. Folding and stemming do
/// not change them if they are ASCII.
#[derive(Debug, Default)]
pub struct Beginnings([u32; 32]);

impl Beginnings {
    /// The beginnings of some terms.
    pub fn of<'a>(terms: impl Iterator<Item = &'a str>) -> Beginnings {
        // A letter beyond ASCII may be folded to any letter, so it always matches.
        let mut all = [1 << OTHER; 32];
        all[OTHER as usize] = u32::MAX;
        for term in terms.map(str::as_bytes) {
            all[five(term, 0) as usize] |= 1 << five(term, 1);
        }
        Beginnings(all)
    }

    /// The words of a part of a text that have one of these beginnings, and a few others.
    pub fn words<'a>(
        &'a self,
        text: &'a str,
        part: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let bytes = text.as_bytes();
        let may_begin =
            move |at: &usize| self.0[five(bytes, *at) as usize] >> five(bytes, at + 1) & 1 == 1;
        part.filter(may_begin).filter_map(|at| word_at(text, at))
    }
}

fn five(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).map_or(0, |byte| FIVE[*byte as usize])
}

/// The word that starts at a byte of a text, if one does.
fn word_at(text: &str, at: usize) -> Option<Range<usize>> {
    let before = text.as_bytes()[..at].last().map_or(BETWEEN, |byte| KINDS[*byte as usize]);
    let kind = KINDS[text.as_bytes()[at] as usize];
    // Most positions are decided by two table lookups.
    if before == INSIDE || kind == BETWEEN || !text.is_char_boundary(at) {
        return None;
    }
    // A combining mark belongs to the word before it. A few marks are letters themselves.
    let inside = |text: &str| {
        let letter = text.chars().rev().find(|c| c.is_alphanumeric() || !is_combining_mark(*c));
        letter.is_some_and(char::is_alphanumeric)
    };
    if (before == BEYOND && inside(&text[..at]))
        || (kind == BEYOND && !text[at..].starts_with(char::is_alphanumeric))
    {
        return None;
    }
    Some(at..Words { text, at }.run(at, true))
}

/// The words of a text, as ranges: runs of letters and digits with the marks on them.
pub fn words(text: &str) -> Words<'_> {
    Words { text, at: 0 }
}

/// The iterator of [`words`].
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    /// The end of a run of characters that are in words, or between them.
    fn run(&self, from: usize, inside: bool) -> usize {
        let bytes = self.text.as_bytes();
        let same = if inside { INSIDE } else { BETWEEN };
        let mut at = from;
        loop {
            at += bytes[at..].iter().take_while(|byte| KINDS[**byte as usize] == same).count();
            match self.text[at..].chars().next() {
                Some(c) if !c.is_ascii() => {
                    let belongs = c.is_alphanumeric() || (inside && is_combining_mark(c));
                    if belongs != inside {
                        return at;
                    }
                    at += c.len_utf8();
                }
                _ => return at,
            }
        }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.run(self.at, false);
        self.at = self.run(start, true);
        (start < self.at).then_some(start..self.at)
    }
}

/// The parts of a word, split before each capital after a small letter: `sendEmail` is `send` and
/// `Email`. Several capitals are one part: `HTTPServer` is `HTTP` and `Server`.
pub fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    // The capitals just before, with the position of the last.
    let (mut small, mut capitals, mut last) = (false, 0, 0);
    for (at, c) in word.char_indices() {
        if c.is_uppercase() {
            if small {
                parts.push(&word[begin..at]);
                begin = at;
                capitals = 0;
            }
            (capitals, last) = (capitals + 1, at);
        } else {
            // The capital before a small letter begins a word, but not in `PDFs` or `OAuth`.
            let two =
                || c.is_lowercase() && word[at..].chars().nth(1).is_some_and(char::is_lowercase);
            if capitals > 2 && two() {
                parts.push(&word[begin..last]);
                begin = last;
            }
            capitals = 0;
        }
        small = c.is_lowercase();
    }
    parts.push(&word[begin..]);
    parts
}

/// The terms in a word, as ranges: the word itself or, in scripts without spaces between words,
/// each two characters that follow each other.
pub fn pieces(word: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    // The first byte of those scripts' characters.
    let plain = word.bytes().all(|byte| byte < 0xE0);
    let mut at = 0;
    let unspaced = |text: &str| text.chars().next().filter(|c| is_unspaced(*c)).map(char::len_utf8);
    std::iter::from_fn(move || {
        let start = at;
        if plain || start == word.len() {
            at = word.len();
            return (start < at).then_some(start..at);
        }
        let Some(first) = unspaced(&word[start..]) else {
            let end = word[start..].find(is_unspaced).map_or(word.len(), |end| start + end);
            at = end;
            return Some(start..end);
        };
        let middle = start + first;
        let end = middle + unspaced(&word[middle..]).unwrap_or(0);
        // The last character of a run is not a piece again.
        at = if unspaced(&word[end..]).is_some() { middle } else { end };
        Some(start..end)
    })
}

/// Whether a character belongs to a script that is written without spaces, or with words that
/// follow each other without them: Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// The word and the one that a hyphen joins to its single letter: `email` for the `e` of `e-mail`.
pub fn hyphenated(text: &str, place: &Range<usize>) -> Option<String> {
    if place.len() > 1 {
        return None;
    }
    let rest = text[place.end..].strip_prefix('-')?;
    let next = words(rest).next().filter(|next| next.start == 0)?;
    let joined = [&text[place.clone()], &rest[next]].concat();
    (joined.len() <= LONGEST).then_some(joined)
}

/// Writes a text without case and accents to `out`: `Écoles` becomes `ecoles`.
pub fn fold(text: &str, out: &mut String) {
    out.clear();
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        // NFKD also decomposes full-width letters and ligatures, so they are found by their usual
        // forms.
        // Lower case comes after decomposition: some capitals decompose into a letter and marks.
        let bare = text.nfkd().filter(|c| !is_combining_mark(*c));
        out.extend(bare.flat_map(char::to_lowercase));
    }
}

/// Removes an English plural ending from a folded word, and nothing else. Words of other languages
/// may be cut too, which does not matter: texts and queries are cut alike.
pub fn stem(word: &mut String) {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    // "gas", "status", "class" and "analysis" are not plurals.
    if word.len() < 4 || !word.ends_with('s') || ends(&["ss", "us", "is"]) {
        return;
    }
    let long = word.len() > 4;
    // "queries", but not "ties".
    if long && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if long && ends(&["sses", "shes", "ches", "xes", "zes"]) {
        word.truncate(word.len() - 2);
    } else {
        word.pop();
    }
}

/// Folds a text into a new string.
pub fn folded(text: &str) -> String {
    let mut out = String::new();
    fold(text, &mut out);
    out
}

/// The term of a word.
pub fn stemmed(word: &str) -> String {
    let mut out = folded(word);
    stem(&mut out);
    out
}

/// The term of a whole name. It begins with a space, which no word does, so the two cannot be
/// confused.
pub fn whole(name: &str) -> String {
    folded(name).split_whitespace().flat_map(|word| [" ", word]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_text_at_other_characters() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" .-_ ", &[]),
            ("Send e-mail, now.", &["Send", "e", "mail", "now"]),
            ("email.send_all", &["email", "send", "all"]),
            ("don't", &["don", "t"]),
            ("größe–Maß", &["größe", "Maß"]),
            ("cafe\u{301}s \u{301}x", &["cafe\u{301}s", "x"]),
            ("日本語 v2", &["日本語", "v2"]),
        ];
        for (text, expected) in rows {
            assert_eq!(words(text).map(|at| &text[at]).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn splits_names_at_capitals() {
        let rows: [(&str, &[&str]); 12] = [
            ("email", &["email"]),
            ("sendEmail", &["send", "Email"]),
            ("HTTPServer", &["HTTP", "Server"]),
            ("parseJSONFile", &["parse", "JSON", "File"]),
            ("readPDFs", &["read", "PDFs"]),
            ("OAuth", &["OAuth"]),
            ("GitHub", &["Git", "Hub"]),
            ("APIs", &["APIs"]),
            ("README", &["README"]),
            ("aB1C", &["a", "B1C"]),
            ("überÄmter", &["über", "Ämter"]),
            ("ÄÖÜber", &["ÄÖ", "Über"]),
        ];
        for (word, expected) in rows {
            assert_eq!(parts(word), expected, "{word}");
        }
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs_of_characters() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("größe", &["größe"]),
            ("天気", &["天気"]),
            ("天", &["天"]),
            ("天気予報", &["天気", "気予", "予報"]),
            ("iPhoneの天気API", &["iPhone", "の天", "天気", "API"]),
            ("a天b", &["a", "天", "b"]),
            ("날씨가", &["날씨", "씨가"]),
        ];
        for (word, expected) in rows {
            let found: Vec<_> = pieces(word).map(|piece| &word[piece]).collect();
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn a_hyphen_joins_a_single_letter() {
        let rows = [
            ("e-mail", Some("email")),
            ("X-ray now", Some("Xray")),
            ("e mail", None),
            ("e--mail", None),
            ("to-do", None),
            ("e-", None),
            ("e-.x", None),
        ];
        for (text, expected) in rows {
            let first = words(text).next().unwrap();
            assert_eq!(hyphenated(text, &first).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn folds_and_stems() {
        let rows = [
            ("Tests", "test"),
            ("queries", "query"),
            ("classes", "class"),
            ("class", "class"),
            ("boxes", "box"),
            ("matches", "match"),
            ("databases", "database"),
            ("ties", "tie"),
            ("status", "status"),
            ("analysis", "analysis"),
            ("aws", "aws"),
            ("s", "s"),
            ("Écoles", "ecole"),
            ("cafe\u{301}", "cafe"),
            ("ﬁles", "file"),
            ("ＡＢＣ", "abc"),
            ("\u{345}", ""),
        ];
        for (word, expected) in rows {
            assert_eq!(stemmed(word), expected, "{word}");
        }
    }

    #[test]
    fn whole_names_begin_with_a_blank() {
        for (name, expected) in
            [("email.Send", " email.send"), ("  Node  js ", " node js"), ("", "")]
        {
            assert_eq!(whole(name), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_word_with_these_beginnings_is_passed_over(
            text in "([a-cA-C]{1,3}|[0é\u{301}\u{345}日ﬁÀ]|[ .ß]){0,20}",
            other in "[a-cé]{1,3}",
        ) {
            let all = || words(&text).map(|place| (stemmed(&text[place.clone()]), place));
            let terms: Vec<String> =
                all().map(|(term, _)| term).step_by(3).chain([other]).collect();
            let beginnings = Beginnings::of(terms.iter().map(String::as_str));
            let wanted = |place: &Range<usize>| terms.contains(&stemmed(&text[place.clone()]));
            let found: Vec<_> = beginnings.words(&text, 0..text.len()).filter(wanted).collect();
            let expected: Vec<_> = all().map(|(_, place)| place).filter(wanted).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
