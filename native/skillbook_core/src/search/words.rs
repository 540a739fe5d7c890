//! Text as search terms: words without case, marks and plural endings.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::UnicodeNormalization;

/// Longer words, in bytes, are no words that anybody looks for: keys, hashes, encoded data.
pub const LONGEST: usize = 64;

/// What a byte is: a letter or digit, something between words, or a part of a character beyond ASCII.
const INSIDE: u8 = 1;
const BETWEEN: u8 = 0;
const BEYOND: u8 = 2;
const KINDS: [u8; 256] = {
    let mut kinds = [BEYOND; 256];
    let mut at = 0;
    while at < 128 {
        kinds[at] = if (at as u8).is_ascii_alphanumeric() { INSIDE } else { BETWEEN };
        at += 1;
    }
    kinds
};

/// The places of the words of a text: runs of letters and digits, with the marks on them.
pub fn words(text: &str) -> Words<'_> {
    Words { text, at: 0 }
}

/// What [`words`] gives.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    /// Where what is inside of words (or between them) ends that begins here.
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

/// The parts of a word, which begin at a capital after a small letter: `sendEmail` is `send` and `Email`.
pub fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut small) = (0, false);
    for (at, c) in word.char_indices() {
        if small && c.is_uppercase() {
            parts.push(&word[begin..at]);
            begin = at;
        }
        small = c.is_lowercase();
    }
    parts.push(&word[begin..]);
    parts
}

/// Puts a text without case and marks into `out`: `Écoles` is `ecoles`.
pub fn fold(text: &str, out: &mut String) {
    out.clear();
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        // Compatibility forms too, so that full-width letters and ligatures are found by the usual ones.
        let bare = text.nfkd().filter(|c| !is_combining_mark(*c));
        out.extend(bare.flat_map(char::to_lowercase));
    }
}

/// Takes the ending of an English plural from a folded word, and nothing else: what looks alike in other languages
/// changes in texts and queries in the same way.
pub fn stem(word: &mut String) {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() < 4 || !word.ends_with('s') || ends(&["ss", "us", "is"]) {
        return;
    }
    let long = word.len() > 4;
    if long && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if long && ends(&["sses", "shes", "ches", "xes", "zes"]) {
        word.truncate(word.len() - 2);
    } else {
        word.pop();
    }
}

/// A folded text.
pub fn folded(text: &str) -> String {
    let mut out = String::new();
    fold(text, &mut out);
    out
}

/// A word as a term.
pub fn stemmed(word: &str) -> String {
    let mut out = folded(word);
    stem(&mut out);
    out
}

/// A whole name as a term: it begins with a blank, which no word does, so the two never meet.
pub fn whole(name: &str) -> String {
    folded(name).split_whitespace().flat_map(|word| [" ", word]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_text_at_what_is_no_letter_or_digit() {
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
        let rows: [(&str, &[&str]); 5] = [
            ("email", &["email"]),
            ("sendEmail", &["send", "Email"]),
            ("HTTPServer", &["HTTPServer"]),
            ("aB1C", &["a", "B1C"]),
            ("überÄmter", &["über", "Ämter"]),
        ];
        for (word, expected) in rows {
            assert_eq!(parts(word), expected, "{word}");
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
        for (name, expected) in [("email.Send", " email.send"), ("  Node  js ", " node js"), ("", "")] {
            assert_eq!(whole(name), expected);
        }
    }
}
