//! Whether a message asks or orders something, by its form: "Is the door locked?" and "Lock the
//! door" are likelier requests than "The door was locked". Few words say so in any language: a
//! question mark, and a sentence that does not begin with a function word. The lists of further
//! words are English, but for "please".
//!
//! ```
//! use skillbook_core::search::form::Form;
//!
//! assert_eq!(Form::of("Is the door locked?"), Form { asks: true, orders: false });
//! assert_eq!(Form::of("Lock the door"), Form { asks: false, orders: true });
//! assert_eq!(Form::of("The door was locked"), Form::default());
//! ```

use unicode_normalization::char::is_combining_mark;

use super::rows;

/// The part of a text that counts, in bytes. A search ignores the rest as well.
const MAX_BYTES: usize = 2048;
const MAX_SENTENCES: usize = 16;
/// The first words of a sentence that count.
const MAX_WORDS: usize = 4;

/// Words that begin a question, also without a question mark.
const QUESTIONS: &str =
    "what when where which who whom whose why how can could will would do does \
    did is are am was were has have had should may shall";

/// "What a day" is no question.
const EXCLAMATIONS: &str = "what how";

/// A sentence with one of these as its second word, or with one of [`BE`] soon after its first, is
/// a statement: "Meetings are long", "Peter never answers". Most prepositions are not among them,
/// for "Turn on the lights" and "Search for it".
const AFTER_SUBJECTS: &str = "is are was were am be has have had do does did can could will would \
    should may might must isn't aren't wasn't weren't hasn't haven't doesn't don't didn't can't \
    never always often sometimes still already and or of";
const BE: &str = "is are was were makes should would must";

/// Words that begin remarks, and are no function words.
const OPENINGS: &str =
    "thanks thank thx ta cheers hello hi hey howdy morning good great nice fine \
    lovely wonderful excellent brilliant perfect interesting funny sorry yes yeah yep no nope ok \
    okay alright right sure well wow oh ah ha haha lol hmm maybe happy sad poor lucky everybody \
    everyone everything nobody nothing somebody someone something people many most some all both \
    one two three yesterday today tomorrow tonight last every honestly bye goodbye welcome \
    congratulations never always sometimes once guess imagine believe let let's hardly only \
    another";

/// Parts of a polite request, and of a wish.
const WISHES: [&str; 24] = [
    "please",
    "pls",
    "help me",
    "i'm looking for",
    "i am looking for",
    "i need",
    "i want",
    "i would like",
    "i'd like",
    "i'd love",
    "we need",
    "we want",
    "we would like",
    "we'd like",
    "we'd love",
    "bitte",
    "por favor",
    "per favore",
    "alsjeblieft",
    "пожалуйста",
    "s'il vous plaît",
    "s'il vous plait",
    "s'il te plaît",
    "s'il te plait",
];

/// The form of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Form {
    /// It asks something.
    pub asks: bool,
    /// It orders something, or asks for it politely.
    pub orders: bool,
}

impl Form {
    /// The form of a text, of which the beginning counts.
    pub fn of(text: &str) -> Form {
        let text = head(text).to_lowercase().replace('\u{2019}', "'");
        let sentences = sentences(&text);
        Form {
            asks: asks(&text) || sentences.iter().any(|sentence| is_question(sentence)),
            orders: WISHES.iter().any(|wish| has_phrase(&text, wish)) || orders(&text, &sentences),
        }
    }
}

/// The beginning of a text, which alone counts.
pub fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

fn is_among(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// The first words of each sentence. A clause with a polite request counts as one.
fn sentences(text: &str) -> Vec<Vec<&str>> {
    let mut sentences = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(next) = text[at..].chars().next() {
        match separator(&text[at..]) {
            Some(length) => {
                sentences.push(&text[start..at]);
                at += length;
                start = at;
            }
            None => at += next.len_utf8(),
        }
    }
    sentences.push(&text[start..]);
    sentences.truncate(MAX_SENTENCES);
    let first = |sentence| first_words(sentence, MAX_WORDS);
    sentences.into_iter().map(first).filter(|words| !words.is_empty()).collect()
}

/// The length of the mark that ends a sentence, with the space after it, if a text begins with one.
fn separator(text: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix(',') {
        let clause = rest.trim_start();
        let is_polite = ["can", "could", "please"].into_iter().any(|word| {
            clause.strip_prefix(word).is_some_and(|rest| rest.starts_with(char::is_whitespace))
        });
        return (is_polite && clause.len() < rest.len()).then(|| text.len() - clause.len());
    }
    let is_mark = |c: &char| ".!?。！？؟\n;:…".contains(*c);
    let mut marks: &str = &text[..text.chars().take_while(is_mark).map(char::len_utf8).sum()];
    // A line break among the marks is both: a mark, and the space after one.
    while let Some(last) = marks.chars().next_back() {
        match text[marks.len()..].chars().next() {
            None => return Some(marks.len()),
            Some(next) if next.is_whitespace() => return Some(marks.len() + next.len_utf8()),
            Some(_) => marks = &marks[..marks.len() - last.len_utf8()],
        }
    }
    None
}

/// The first words of a text, with their apostrophes.
fn first_words(text: &str, most: usize) -> Vec<&str> {
    let is_inside = |c: char| c.is_alphanumeric() || is_combining_mark(c) || c == '\'';
    let mut rest = text;
    let mut words = Vec::new();
    while let (true, Some(start)) = (words.len() < most, rest.find(char::is_alphanumeric)) {
        let from = &rest[start..];
        let (word, after) = from.split_at(from.find(|c| !is_inside(c)).unwrap_or(from.len()));
        words.push(word);
        rest = after;
    }
    words
}

/// Whether a text has a question mark, other than that of an address with a query.
fn asks(text: &str) -> bool {
    let ends = |(at, _): (usize, &str)| !text[at + 1..].starts_with(char::is_alphanumeric);
    text.contains(['？', '؟']) || text.match_indices('?').any(ends)
}

fn is_question(sentence: &[&str]) -> bool {
    match sentence {
        [first, "a" | "an", ..] | [first] if is_among(first, EXCLAMATIONS) => false,
        [first, ..] => is_among(first, QUESTIONS),
        [] => false,
    }
}

/// Whether whole words of a text are the phrase.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        !text[..at].ends_with(char::is_alphabetic)
            && !text[at + phrase.len()..].starts_with(char::is_alphabetic)
    })
}

/// Whether a sentence begins with a word that is no function word in the language of the text.
fn orders(text: &str, sentences: &[Vec<&str>]) -> bool {
    let parts: Vec<&str> =
        [text].into_iter().chain(sentences.iter().map(|sentence| sentence[0])).collect();
    let words = rows::words(&parts);
    let Some((all, firsts)) = words.split_first() else { return false };
    firsts.iter().zip(sentences).any(|(first, sentence)| match &first[..] {
        [first] => {
            let is_function = all.iter().any(|word| word.function && word.form == first.form);
            !is_function && is_order(sentence)
        }
        _ => false,
    })
}

fn is_order(sentence: &[&str]) -> bool {
    let [first, rest @ ..] = sentence else { return false };
    !is_opening(first)
        && !rest.first().is_some_and(|second| is_among(second, AFTER_SUBJECTS))
        && !rest.iter().any(|word| is_among(word, BE))
}

/// "Cooking calms me", but not "Bring me".
fn is_opening(word: &str) -> bool {
    let is_gerund =
        word.strip_suffix("ing").is_some_and(|stem| stem.contains(['a', 'e', 'i', 'o', 'u', 'y']));
    word.contains('\'') || is_among(word, OPENINGS) || is_gerund
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_orders_are_told_from_statements() {
        for (text, asks, orders) in [
            ("Is the door locked?", true, false),
            ("is the door locked", true, false),
            ("The door is locked, isn't it?", true, false),
            ("门锁了吗？", true, true),
            ("Wie wird das Wetter?", true, false),
            ("What a day!", false, false),
            ("See https://a.b/?c=d", false, true),
            ("Lock the door", false, true),
            ("It was open. Lock it now", false, true),
            ("It was open.Lock it now", false, false),
            ("It was open\n\nLock it now", false, true),
            ("The door was open, could you lock it", true, false),
            ("Mach das Licht in der Küche an", false, true),
            ("Bring me a chair", false, true),
            ("Turn on the lights in the kitchen", false, true),
            ("Search for flights", false, true),
            ("Dogs in offices should be allowed", false, false),
            ("I need a hotel in Lyon", false, true),
            ("Here is the receipt, please file it", false, true),
            ("I'd like to complain", false, true),
            ("S'il te plaît", false, true),
            ("It was unpleased", false, false),
            ("The door was locked", false, false),
            ("Ich habe die Tür abgeschlossen", false, false),
            ("Meetings are long", false, false),
            ("Peter never answers", false, false),
            ("Cooking calms me down", false, false),
            ("Thanks a lot", false, false),
            ("Don’t worry", false, false),
            ("", false, false),
            ("?!", true, false),
            ("👍", false, false),
        ] {
            assert_eq!(Form::of(text), Form { asks, orders }, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_long_text_does_not_count() {
        let text = "it was so. ".repeat(400) + "Lock the door?";
        assert_eq!(Form::of(&text), Form::default());
        assert_eq!(Form::of(&("é".repeat(3_000) + "?")), Form::default());
        assert_eq!(head(&"é".repeat(3_000)).len(), MAX_BYTES);
    }
}
