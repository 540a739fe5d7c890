//! Pairs of words that follow each other, as terms of the index. "Public holidays" says more than
//! "public" and "holidays" apart. Only names, titles, descriptions, tags and trigger keywords have
//! pairs: those of bodies would double the index.

use super::function_words;

/// The first character of pairs. No word has it, and it sorts before those of words and names.
pub const PAIR: char = '\u{1}';

/// Joins each word with the one before it. Function words are passed over: "list of holidays" has
/// the pair "list holidays".
#[derive(Debug, Default)]
pub struct Pairs {
    before: String,
    pair: String,
}

impl Pairs {
    /// Begins a new text. Its first word has no word before it.
    pub fn end(&mut self) {
        self.before.clear();
    }

    /// The term of the pair that ends with this term of a word.
    pub fn next(&mut self, term: &str) -> Option<&str> {
        if term.is_empty() || function_words::languages(term) != 0 {
            return None;
        }
        self.pair.clear();
        if !self.before.is_empty() {
            self.pair.push(PAIR);
            self.pair.push_str(&self.before);
            self.pair.push(' ');
            self.pair.push_str(term);
        }
        self.before.clear();
        self.before.push_str(term);
        (!self.pair.is_empty()).then_some(&*self.pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_words_that_follow_each_other() {
        let pairs_of = |text: &str| -> Vec<String> {
            let mut pairs = Pairs::default();
            text.split(' ').filter_map(|word| pairs.next(word).map(str::to_owned)).collect()
        };
        for (text, expected) in [
            ("", &[][..]),
            ("plan", &[]),
            ("send mail", &["\u{1}send mail"]),
            ("list of the holiday", &["\u{1}list holiday"]),
            ("mail an mail in mail", &["\u{1}mail mail", "\u{1}mail mail"]),
        ] {
            assert_eq!(pairs_of(text), expected, "{text}");
        }
        let mut pairs = Pairs::default();
        assert_eq!(pairs.next("send"), None);
        pairs.end();
        assert_eq!(pairs.next("mail"), None);
    }
}
