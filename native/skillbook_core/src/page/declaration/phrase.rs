//! Reads facts about a flag from its text: required, default, type, several values.
//!
//! A phrase counts only at the start of a sentence or clause or in parentheses, never in the middle
//! of a sentence, and only if all of it is understood. So "one of: a, b" is a list of values, and
//! "any one of the team" is not.

use super::list::Item;
use super::{Positional, Type, DAYS};

const DEFAULT: [&str; 4] = ["default:", "default is", "defaults to", "default ="];

/// Facts about a flag.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub required: Option<bool>,
    pub default: Vec<String>,
    /// There is a default. It may be described instead of written out.
    pub has_default: bool,
    pub kind: Type,
    pub several: bool,
    /// The words before the first flag that it takes; `Some(None)` for none.
    pub positional: Option<Option<Positional>>,
    /// The text names two different types, so none counts.
    conflicting: bool,
}

const TEXT: Type = Type::Text { max: None, line: false, empty: false };
const LINE: Type = Type::Text { max: None, line: true, empty: false };

pub(super) fn facts(text: &str, item: &Item<'_>) -> Facts {
    let mut facts = Facts::default();
    for (part, inside) in parts(text) {
        match inside {
            true => facts.items(part),
            false => facts.sentence(part),
        }
    }
    facts.columns(item);
    if let Some(value) = item.value {
        facts.several |= value.ends_with("...") || value.ends_with('…');
        if let (Type::Unknown, Some(kind)) = (&facts.kind, placeholder(value)) {
            facts.kind = kind;
        }
    }
    // Two types contradict each other, and choosing one could refuse correct values.
    if facts.conflicting {
        facts.kind = Type::Unknown;
    }
    facts
}

/// The type of a placeholder: `<n>` is an integer, `{a|b}` a choice, and any other just a value.
pub(super) fn placeholder(value: &str) -> Option<Type> {
    let value = value.trim_end_matches(['.', '…', ' ']);
    let inner = match value.strip_prefix(['<', '{']) {
        Some(inner) => inner.strip_suffix(['>', '}'])?,
        None => value,
    };
    Some(match inner {
        "n" | "N" | "int" | "INT" | "integer" | "INTEGER" => Type::Integer { min: None, max: None },
        "YYYY-MM-DD" => Type::Date { words: false },
        _ => match words(inner) {
            Some(values) if inner.contains('|') || value.starts_with('{') => Type::OneOf(values),
            _ => Type::Value,
        },
    })
}

/// The sentences of a text, and the groups in parentheses or brackets, which have `true`.
fn parts(text: &str) -> Vec<(&str, bool)> {
    let (mut parts, mut start, mut open, mut code) = (Vec::new(), 0, None, false);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let ends = |at: usize| matches!(&bytes[at + 1..], [] | [b' ', ..] | [b'*', b'*', ..]);
        let cut = match (byte, open) {
            (b'`', _) => {
                code = !code;
                false
            }
            _ if code => false,
            (b'(', None) => {
                open = Some(b')');
                true
            }
            (b'[', None) => {
                open = Some(b']');
                true
            }
            (closing, Some(expected)) => *closing == expected,
            (b';', None) => true,
            (b'.', None) => ends(at),
            _ => false,
        };
        if cut {
            let closes = open == Some(*byte);
            parts.push((text[start..at].trim(), closes));
            start = at + 1;
            if closes {
                open = None;
            }
        }
    }
    parts.push((text[start..].trim(), false));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

impl Facts {
    /// `required, a switch`, `one of: a, b`, `1-100`, `default: 5`
    fn items(&mut self, group: &str) {
        for part in group.split(';').map(str::trim) {
            let mut rest = part;
            while !rest.is_empty() {
                if let Some(default) = after(rest, &DEFAULT).or_else(|| after(rest, &["default"])) {
                    self.set_default(default);
                    break;
                }
                if let Some((several, values)) = listed(rest) {
                    self.one_of(several, values);
                    break;
                }
                let (item, next) =
                    commas(rest).next().map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
                let item = item.trim().trim_matches(['*', '_']);
                if !self.word(item) {
                    let range = range(item).or_else(|| bounds(item));
                    range
                        .into_iter()
                        .for_each(|(min, max)| self.set_type(Type::Integer { min, max }));
                }
                rest = next.trim_start();
            }
        }
    }

    /// Reads a word or two in parentheses or in a column. Returns whether they are known.
    fn word(&mut self, word: &str) -> bool {
        match word.to_lowercase().as_str() {
            "required" | "mandatory" => self.required = Some(true),
            "optional" => self.required = Some(false),
            "switch" | "a switch" | "boolean" | "bool" | "boolean flag" | "no value"
            | "takes no value" => self.set_type(Type::Switch),
            "integer" | "int" | "whole number" | "a whole number" | "an integer" => {
                self.set_type(Type::Integer { min: None, max: None })
            }
            "number" | "float" | "a number" | "decimal" => {
                self.set_type(Type::Number { min: None, max: None })
            }
            "string" | "text" => self.set_type(TEXT),
            "one line" => self.set_type(LINE),
            "by name" => self.positional = Some(None),
            "positional" => self.positional = Some(Some(Positional::One)),
            "yyyy-mm-dd" | "date as yyyy-mm-dd" => self.set_type(Type::Date { words: false }),
            "repeatable" | "can be repeated" | "may be repeated" | "multiple" | "list"
            | "space-separated" | "comma-separated" => self.several = true,
            _ => return false,
        }
        true
    }

    fn sentence(&mut self, sentence: &str) {
        let bare = sentence.trim_matches(['*', '_', ' ']);
        if let Some(default) = after(bare, &DEFAULT) {
            return self.set_default(default);
        }
        if let Some((several, values)) = tails(bare).find_map(listed) {
            return self.one_of(several, values);
        }
        if let Some((min, max)) = tails(bare).find_map(range) {
            return self.set_type(Type::Integer { min, max });
        }
        let is =
            |text: &str, words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is(bare, &["required"]) {
            self.required = Some(true);
        } else if is(bare, &["optional"]) {
            self.required = Some(false);
        }
        if after(bare, &["a whole number", "an integer", "whole number"])
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        {
            self.set_type(Type::Integer { min: None, max: None });
        }
        // "one or more of" begins a list of values, which is read above.
        if after(bare, &["one or more"]).is_some_and(|rest| after(rest, &["of"]).is_none()) {
            self.several = true;
        }
        for tail in tails(bare) {
            let end = commas(tail).chain(tail.find(':')).min().unwrap_or(tail.len());
            let clause = tail[..end].trim();
            let line = after(clause, &["one line", "on one line"]).is_some();
            if let Some(max) = characters(clause) {
                self.set_type(Type::Text { max: Some(max), line, empty: false });
            } else if is(clause, &["one line", "one line of text", "on one line"]) {
                self.set_type(LINE);
            } else if is(clause, &["may be empty", "it may be empty"]) {
                self.set_type(Type::Text { max: None, line: false, empty: true });
            } else if is(clause, &["space-separated", "comma-separated"]) {
                self.several = true;
            }
        }
        if let Some(words) = date(bare) {
            self.set_type(Type::Date { words });
        }
        if let Some(words) = positional(bare) {
            self.positional = Some(Some(words));
        }
    }

    fn one_of(&mut self, several: bool, values: Vec<String>) {
        self.several |= several;
        self.set_type(Type::OneOf(values));
    }

    fn set_type(&mut self, kind: Type) {
        match (&mut self.kind, kind) {
            (own @ Type::Unknown, kind) => *own = kind,
            (Type::Integer { min, max }, Type::Integer { min: other_min, max: other_max }) => {
                *min = min.or(other_min);
                *max = max.or(other_max);
            }
            (
                Type::Text { max, line, empty },
                Type::Text { max: other_max, line: one, empty: none },
            ) => {
                *max = max.or(other_max);
                *line |= one;
                *empty |= none;
            }
            // "a number from 1 to 5" allows fractions.
            (Type::Number { min, max }, Type::Integer { min: other_min, max: other_max }) => {
                *min = min.or(other_min);
                *max = max.or(other_max);
            }
            (own @ Type::Integer { .. }, Type::Number { .. }) => {
                let Type::Integer { min, max } = *own else { return };
                *own = Type::Number { min, max };
            }
            (own, kind) => self.conflicting |= *own != kind,
        }
    }

    fn set_default(&mut self, text: &str) {
        let text = text.split(';').next().unwrap_or_default().trim().trim_end_matches('.');
        self.has_default = true;
        self.default = match words(text) {
            Some(words) => words,
            None => one(text)
                .filter(|word| !matches!(word.as_str(), "none" | "nothing" | "empty"))
                .into_iter()
                .collect(),
        };
    }

    fn columns(&mut self, item: &Item<'_>) {
        if let Some(cell) = item.required {
            match cell.trim_matches(['*', '`']).to_lowercase().as_str() {
                "yes" | "y" | "true" | "required" | "✓" | "✔" | "✅" | "x" => {
                    self.required = Some(true)
                }
                "no" | "n" | "false" | "optional" | "" | "-" | "–" | "—" => {
                    self.required = Some(false)
                }
                _ => {}
            }
        }
        if let Some(cell) = item.default.filter(|cell| !matches!(*cell, "" | "-" | "–" | "—")) {
            self.set_default(cell);
        }
        if let Some(cell) = item.kind {
            self.word(cell.trim_matches(['*', '`']));
        }
        if let Some(values) = item.values.and_then(words) {
            self.set_type(Type::OneOf(values));
        }
    }
}

/// `One of: a, b or c`: the values, and whether several of them may be given.
fn listed(text: &str) -> Option<(bool, Vec<String>)> {
    const MANY: [&str; 4] = ["one or more of", "one or several of", "any of", "some of"];
    const ONE: [&str; 6] =
        ["one of", "either", "values:", "allowed values:", "possible values:", "choices:"];
    let (several, rest) = match after(text, &MANY) {
        Some(rest) => (true, rest),
        None => (false, after(text, &ONE)?),
    };
    Some((several, words(rest.strip_prefix(':').unwrap_or(rest))?))
}

/// The part itself, and the rest of it after each comma and colon.
fn tails(part: &str) -> impl Iterator<Item = &str> {
    let colons = part.match_indices(':').map(|(at, _)| at);
    std::iter::once(part).chain(commas(part).chain(colons).map(|at| part[at + 1..].trim_start()))
}

/// The offsets of commas that are not part of a number.
fn commas(text: &str) -> impl Iterator<Item = usize> + '_ {
    let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let places = text.match_indices(',').map(|(at, _)| at);
    places.filter(move |at| !(digit(at + 1) && at.checked_sub(1).is_some_and(digit)))
}

/// The rest of a text after one of these phrases, in any case.
fn after<'a>(text: &'a str, phrases: &[&str]) -> Option<&'a str> {
    phrases.iter().find_map(|phrase| {
        let start = text.get(..phrase.len()).filter(|start| start.eq_ignore_ascii_case(phrase))?;
        let rest = &text[start.len()..];
        let whole = rest.is_empty()
            || !phrase.ends_with(char::is_alphanumeric)
            || rest.starts_with([' ', ':', ',']);
        whole.then(|| rest.trim_start())
    })
}

/// A list of at least two items, separated by commas, `or`, `and` or bars. Each is a single word or
/// is in quotes.
fn words(list: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    for part in list.split([',', '|']) {
        let part = part.trim();
        let part =
            ["or ", "and "].iter().find_map(|joint| part.strip_prefix(joint)).unwrap_or(part);
        let mut halves = part.splitn(2, " or ").flat_map(|half| half.splitn(2, " and "));
        words.extend(halves.by_ref().map(one).collect::<Option<Vec<_>>>()?);
    }
    words.dedup();
    (words.len() > 1).then_some(words)
}

/// One word, or a text in quotes or inline code.
fn one(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('*');
    for mark in ['`', '"', '\''] {
        if let Some(inner) = text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark)) {
            return (!inner.is_empty() && !inner.contains(mark)).then(|| inner.to_owned());
        }
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '@' | '#');
    (!text.is_empty() && text.chars().all(plain)).then(|| text.to_owned())
}

/// The bounds of a text that is a range: `from 1 to 100`, `from 1 on`, `between 1 and 9`, `1-100`.
fn range(text: &str) -> Option<(Option<i64>, Option<i64>)> {
    let whole = after(text, &["a whole number", "an integer", "whole number", "integer"]);
    let text = whole.unwrap_or(text).trim();
    if let Some(rest) = after(text, &["from"]) {
        return match rest.strip_suffix(" on").or_else(|| rest.strip_suffix(" up")) {
            Some(min) => Some((Some(number(min)?), None)),
            None => pair(rest, " to "),
        };
    }
    if let Some(rest) = after(text, &["between"]) {
        return pair(rest, " and ");
    }
    let joints = match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => ["–", "-", "..", " to "].as_slice(),
        false => &[],
    };
    joints.iter().find_map(|joint| pair(text, joint)).or_else(|| whole.and_then(bounds))
}

/// A single bound: `at least 1`, `max: 5`. Not for sentences, where it could count anything.
fn bounds(text: &str) -> Option<(Option<i64>, Option<i64>)> {
    if let Some(min) = after(text, &["min:", "minimum:", "min", "at least"]) {
        return Some((Some(number(min)?), None));
    }
    let max = after(text, &["max:", "maximum:", "max", "at most", "up to"])?;
    Some((None, Some(number(max)?)))
}

fn pair(text: &str, joint: &str) -> Option<(Option<i64>, Option<i64>)> {
    let (min, max) = text.split_once(joint)?;
    Some((Some(number(min)?), Some(number(max)?)))
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    text.replace(',', "").parse().ok().filter(|_| !text.ends_with(','))
}

/// `of at most 200 characters`, `up to 200 characters`
fn characters(clause: &str) -> Option<u64> {
    let count = clause.strip_suffix(" characters")?;
    let (before, count) = count.rsplit_once(' ')?;
    let before = before.to_lowercase();
    let bounded =
        ["at most", "up to", "no more than"].iter().any(|phrase| before.ends_with(phrase));
    count.replace(',', "").parse().ok().filter(|_| bounded)
}

/// `It may also stand without the flag's name` allows one word before the first flag, `its words
/// may …` all of them.
fn positional(sentence: &str) -> Option<Positional> {
    let sentence = sentence.to_lowercase();
    let (words, rest) = match sentence.strip_prefix("its words ") {
        Some(rest) => (Positional::All, rest),
        None => (Positional::One, sentence.strip_prefix("it ").unwrap_or(&sentence)),
    };
    let rest = rest.strip_prefix("may ")?;
    let rest = rest.strip_prefix("also ").unwrap_or(rest);
    matches!(rest, "stand without the flag's name" | "stand without the flag").then_some(words)
}

/// Whether the sentence asks for a date as `YYYY-MM-DD`, and if so, whether the words yesterday,
/// today and tomorrow are allowed too.
fn date(sentence: &str) -> Option<bool> {
    let at = sentence.find("YYYY-MM-DD")?;
    let before = sentence[..at].trim_end();
    let led = before.is_empty()
        || before.ends_with([':', ',', '='])
        || before.ends_with(" as")
        || before.ends_with("format");
    let rest = sentence[at + "YYYY-MM-DD".len()..].trim_start_matches([',', ' ']);
    let rest = rest.strip_prefix("or ").unwrap_or(rest);
    let day = |word: &str| DAYS.contains(&word);
    let words = !rest.is_empty();
    let plain = !words
        || day(rest)
        || self::words(rest).is_some_and(|words| words.iter().all(|word| day(word)));
    (led && plain).then_some(words)
}
