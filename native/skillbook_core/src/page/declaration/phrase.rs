//! Reads facts about a flag from its text: required, default, type, several values.
//!
//! A phrase counts only at the start of a sentence or clause or in parentheses, never in the middle
//! of a sentence, and only if all of it is understood. So "one of: a, b" is a list of values, and
//! "any one of the team" is not.

use super::list::Item;
use super::{Positional, Type, DAYS};

const DEFAULT: [&str; 5] = ["default:", "default is", "defaults to", "default =", "by default:"];

/// The beginnings of an example, which is neither a default nor a list of all values.
const EXAMPLE: [&str; 6] = ["e.g.", "e.g ", "for example", "for instance", "such as", "example:"];

/// The names of flags for which "open or closed" are values. For any other, "city or country" says
/// in other words what its value is.
const CHOICES: [&str; 16] = [
    "direction",
    "format",
    "kind",
    "level",
    "mode",
    "order",
    "priority",
    "scope",
    "severity",
    "sort",
    "state",
    "status",
    "strategy",
    "style",
    "type",
    "visibility",
];

/// Facts about a flag.
#[derive(Debug, Default, PartialEq)]
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
    /// Words with "or" between them, which are values if something else says so too.
    words: Option<Vec<String>>,
}

const TEXT: Type = Type::Text { max: None, line: false, empty: false };
const LINE: Type = Type::Text { max: None, line: true, empty: false };

pub(super) fn facts(text: &str, item: &Item<'_>) -> Facts {
    let mut facts = Facts::default();
    // A bar in a cell of a table.
    let text = text.replace("\\|", "|");
    let is_choice = item.names.iter().any(|name| is_one_of(name, &CHOICES));
    for (part, inside) in parts(&text) {
        match inside {
            true => facts.items(part, is_choice),
            false => facts.sentence(part, is_choice),
        }
    }
    facts.columns(item);
    if let Some(words) = facts.words.take() {
        if facts.default.first().is_some_and(|default| words.contains(default)) {
            facts.set_type(Type::OneOf(words));
        }
    }
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
            (b'.', None) => ends(at) && !is_abbreviated(&text[..at]),
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

/// Whether a text ends in an abbreviation without its last point.
fn is_abbreviated(text: &str) -> bool {
    let bytes = text.as_bytes();
    [b"e.g".as_slice(), b"i.e", b"max", b"min"].iter().any(|end| {
        let start = bytes.len().checked_sub(end.len());
        start.is_some_and(|start| {
            bytes[start..].eq_ignore_ascii_case(end)
                && bytes[..start].last().is_none_or(|byte| !byte.is_ascii_alphanumeric())
        })
    })
}

impl Facts {
    /// `required, a switch`, `one of: a, b`, `1-100`, `default: 5`
    fn items(&mut self, group: &str, is_choice: bool) {
        for part in group.split(';').map(str::trim) {
            let shown = part.len() - example(part).map_or(0, |at| part.len() - at);
            if shown == part.len() && self.implied(part, is_choice) {
                continue;
            }
            let mut rest = part;
            while !rest.is_empty() {
                if let Some(default) = after(rest, &DEFAULT).or_else(|| after(rest, &["default"])) {
                    rest = self.set_default(default);
                    continue;
                }
                if let Some((several, values)) = listed(rest) {
                    self.one_of(several, values);
                    break;
                }
                let (item, next) =
                    commas(rest).next().map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
                let item = item.trim().trim_matches(['*', '_', '!']);
                if !self.word(item) {
                    if let Some(kind) = range(item).or_else(|| bounds(item)) {
                        self.set_type(kind);
                    } else if rest.len() > part.len() - shown {
                        self.clause(item);
                    }
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
            "switch" | "no value" | "takes no value" => self.set_type(Type::Switch),
            "number" | "float" | "decimal" => self.set_type(Type::Number { min: None, max: None }),
            "string" | "text" => self.set_type(TEXT),
            "one line" => self.set_type(LINE),
            "by name" => self.positional = Some(None),
            "positional" => self.positional = Some(Some(Positional::One)),
            "yyyy-mm-dd" | "date as yyyy-mm-dd" => self.set_type(Type::Date { words: false }),
            "multiple" | "list" => self.several = true,
            _ => return self.type_name(word),
        }
        true
    }

    /// Reads the name of a type that is clear in a sentence too. Returns whether it is one.
    fn type_name(&mut self, word: &str) -> bool {
        match word.to_lowercase().as_str() {
            "a switch" | "boolean" | "bool" | "a boolean" | "boolean flag" | "a boolean flag"
            | "true or false" | "true/false" | "true|false" | "true | false" | "yes or no"
            | "yes/no" => self.set_type(Type::Switch),
            "integer" | "int" | "whole number" | "a whole number" | "an integer" => {
                self.set_type(Type::Integer { min: None, max: None })
            }
            "a number" | "a decimal number" | "decimal number" => {
                self.set_type(Type::Number { min: None, max: None })
            }
            "e-mail" | "email" => self.set_type(Type::Email),
            word => return self.repeats(word),
        }
        true
    }

    /// `repeatable`, `it can be given several times`
    fn repeats(&mut self, clause: &str) -> bool {
        let bare = clause.strip_prefix("it ").unwrap_or(clause);
        let bare = ["can be ", "may be "].iter().find_map(|start| bare.strip_prefix(start));
        let repeats = match bare {
            Some("repeated") => true,
            Some(rest) => rest.split_once(' ').is_some_and(|(verb, often)| {
                is_one_of(verb, &["given", "used", "passed", "set", "specified"])
                    && is_one_of(
                        often,
                        &["several times", "multiple times", "many times", "more than once"],
                    )
            }),
            None => is_one_of(
                clause,
                &["repeatable", "space-separated", "comma-separated", "comma separated"],
            ),
        };
        self.several |= repeats;
        repeats
    }

    fn sentence(&mut self, sentence: &str, is_choice: bool) {
        let bare = sentence.trim_matches(['*', '_', ' ', '!']);
        match example(bare) {
            Some(at) => {
                self.statement(bare[..at].trim_end_matches([' ', ',', ':']), is_choice);
                // Words in the example may look like values, so only whole phrases count behind it.
                if let Some((_, rest)) = bare[at..].split_once(',') {
                    self.phrases(rest.trim());
                }
            }
            None => self.statement(bare, is_choice),
        }
    }

    fn statement(&mut self, bare: &str, is_choice: bool) {
        let has_default = tails(bare).any(|tail| after(tail, &DEFAULT).is_some());
        let lead = bare.split_once(':').filter(|_| !has_default);
        let is_choice = is_choice
            || lead.is_some_and(|(lead, _)| {
                lead.split(' ').next_back().is_some_and(|word| is_one_of(word, &CHOICES))
            });
        if !self.implied(lead.map_or(bare, |(_, words)| words.trim()), is_choice) {
            self.phrases(bare);
        }
    }

    fn phrases(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let found = tails(rest).find_map(|tail| Some((tail, after(tail, &DEFAULT)?)));
            let Some((tail, default)) = found else { return self.clauses(rest) };
            let before = &rest[..rest.len() - tail.len()];
            self.clauses(before.trim_end_matches([' ', ',', ':']));
            rest = self.set_default(default);
        }
    }

    fn clauses(&mut self, bare: &str) {
        if let Some((several, values)) = tails(bare).find_map(listed) {
            return self.one_of(several, values);
        }
        for tail in tails(bare) {
            self.clause(first_clause(tail));
        }
        if let Some(words) = date(bare) {
            self.set_type(Type::Date { words });
        }
        if let Some(words) = positional(bare) {
            self.positional = Some(Some(words));
        }
    }

    /// Reads a clause, up to a comma or a colon.
    fn clause(&mut self, clause: &str) {
        let is = |words: &[&str]| is_one_of(clause, words);
        let line = after(clause, &["one line", "on one line"]).is_some();
        if let Some(max) = characters(clause) {
            self.set_type(Type::Text { max: Some(max), line, empty: false });
        } else if is(&["one line", "one line of text", "on one line"]) {
            self.set_type(LINE);
        } else if is(&["may be empty", "it may be empty"]) {
            self.set_type(Type::Text { max: None, line: false, empty: true });
        } else if is(&["required", "mandatory"]) {
            self.required = Some(true);
        } else if is(&["optional"]) {
            self.required = Some(false);
        } else if let Some(values) = bars(clause) {
            self.set_type(values);
        } else if !self.type_name(clause) {
            let kind = range(clause).or_else(|| bounds(clause)).or_else(|| when(clause));
            if let Some(kind) = kind.or_else(|| count(clause)) {
                self.set_type(kind);
            } else {
                self.address(clause);
            }
        }
    }

    /// `one or more e-mail addresses`, `comma-separated words`, `the URL of the page`
    fn address(&mut self, clause: &str) {
        const MANY: [&str; 4] =
            ["one or more", "comma-separated", "comma separated", "space-separated"];
        // "one or more of" begins a list of values.
        let many = after(clause, &MANY).filter(|rest| after(rest, &["of"]).is_none());
        self.several |= many.is_some();
        let bare = many.or_else(|| after(clause, &["a", "an", "the", "one", "valid"]));
        let bare = bare.unwrap_or(clause);
        const EMAILS: [&str; 2] = ["e-mail addresses", "email addresses"];
        const EMAIL: [&str; 2] = ["e-mail address", "email address"];
        let one = after(bare, &EMAIL);
        let several = after(bare, &EMAILS);
        let goes_on = |rest: &str| {
            rest.is_empty()
                || after(rest, &["of", "to", "for", "that", "where", "which"]).is_some()
                    && !alternative(rest)
        };
        if one.or(several).is_some_and(goes_on) {
            self.several |= several.is_some();
            self.set_type(Type::Email);
        } else if after(bare, &["url", "web address"]).is_some_and(goes_on) {
            self.set_type(Type::Url);
        } else if after(bare, &["urls", "web addresses"]).is_some_and(goes_on) {
            self.several = true;
            self.set_type(Type::Url);
        } else if let Some((who, _)) = clause.rsplit_once("'s ").filter(|_| many.is_none()) {
            let whose = clause[who.len() + 3..].trim();
            if !who.contains(',') && is_one_of(whose, &EMAIL) && !alternative(who) {
                self.set_type(Type::Email);
            }
        }
    }

    /// Reads words with bars or "or" between them that make up all of a text. Returns whether they
    /// are values.
    fn implied(&mut self, text: &str, is_choice: bool) -> bool {
        let text = text.trim().trim_matches(['*', '_']);
        if self.type_name(text) {
            return true;
        }
        if let Some(values) = bars(text) {
            self.set_type(values);
            return true;
        }
        let Some(words) = text.contains(" or ").then(|| words(text)).flatten() else {
            return false;
        };
        // A date or one of the words for days.
        if text.contains("YYYY") {
            return false;
        }
        if text.contains(['"', '`']) && !text.contains(" and ") {
            self.set_type(Type::OneOf(words));
            return true;
        }
        let mut words = words;
        if let Some(first) = words.first_mut() {
            *first = first.to_lowercase();
        }
        let plain = |word: &String| {
            word.chars().all(|c| c.is_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        };
        if text.contains(" and ") || !words.iter().all(plain) {
            return false;
        }
        if is_choice {
            self.set_type(Type::OneOf(words));
        } else {
            self.words = Some(words);
        }
        is_choice
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
                *min = min.or(other_min.map(|bound| bound as f64));
                *max = max.or(other_max.map(|bound| bound as f64));
            }
            (own @ Type::Integer { .. }, Type::Number { min: other_min, max: other_max }) => {
                let Type::Integer { min, max } = *own else { return };
                let float = |bound: Option<i64>| bound.map(|bound| bound as f64);
                *own =
                    Type::Number { min: float(min).or(other_min), max: float(max).or(other_max) };
            }
            (own, kind) => self.conflicting |= *own != kind,
        }
    }

    /// Reads a default. Returns the phrases after it.
    fn set_default<'t>(&mut self, text: &'t str) -> &'t str {
        let text = text.split(';').next().unwrap_or_default().trim().trim_end_matches('.');
        // The first one counts.
        if std::mem::replace(&mut self.has_default, true) {
            return commas(text).next().map_or("", |at| text[at + 1..].trim_start());
        }
        let text = example(text).map_or(text, |at| text[..at].trim_end_matches([' ', ',']));
        // "agent-1, agent-2 and so on" describes a default, "20, at most 100" is one.
        let split = commas(text).next().map(|at| (&text[..at], text[at + 1..].trim_start()));
        let (first, rest) = split
            .filter(|(_, rest)| {
                let mut facts = Facts::default();
                facts.clauses(rest);
                facts != Facts::default()
            })
            .unwrap_or((text, ""));
        if let Some(words) = words(first) {
            self.default = words;
            return rest;
        }
        self.default = one(first)
            .filter(|word| !matches!(word.as_str(), "none" | "nothing" | "empty"))
            .into_iter()
            .collect();
        rest
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
            let cell = cell.trim_matches(['*', '`']).replace("\\|", "|");
            if !self.word(&cell) {
                self.clause(&cell);
            }
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

/// A text up to its first comma or colon.
fn first_clause(text: &str) -> &str {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let ends = |at: &usize| match bytes[*at] {
        b':' => true,
        b',' => !(digit(at + 1) && *at > 0 && digit(at - 1)),
        _ => false,
    };
    text[..(0..bytes.len()).find(ends).unwrap_or(bytes.len())].trim()
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

/// Whether a text is one of these words, in any case.
fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether a text names another possibility.
fn alternative(text: &str) -> bool {
    text.split(' ').any(|word| is_one_of(word, &["or", "not", "no", "without", "but"]))
}

/// The offset of an example in a text.
fn example(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let found = EXAMPLE.iter().flat_map(|mark| lower.match_indices(mark));
    let begins = |at: usize| at == 0 || lower.as_bytes()[at - 1].is_ascii_whitespace();
    found.map(|(at, _)| at).filter(|at| begins(*at)).min()
}

/// `open | closed`
fn bars(text: &str) -> Option<Type> {
    let values: Option<Vec<String>> =
        text.contains('|').then(|| text.split('|').map(one).collect())?;
    let mut values = values?;
    values.dedup();
    (values.len() > 1).then_some(Type::OneOf(values))
}

/// `maximum number of hits`, `how many to show`
fn count(clause: &str) -> Option<Type> {
    let bare = after(clause, &["the"]).unwrap_or(clause);
    let rest = after(bare, &["maximum number", "max. number", "max number", "how many"])?;
    (!alternative(rest)).then_some(Type::Integer { min: None, max: None })
}

/// `ISO date`, `ISO 8601 time with offset`: a clause of nothing but such words.
fn when(clause: &str) -> Option<Type> {
    const WORDS: [&str; 22] = [
        "a",
        "an",
        "the",
        "iso",
        "8601",
        "iso-8601",
        "rfc",
        "3339",
        "date",
        "day",
        "time",
        "timestamp",
        "datetime",
        "date-time",
        "and",
        "in",
        "format",
        "with",
        "offset",
        "zone",
        "timezone",
        "utc",
    ];
    let words: Vec<_> = clause.split(' ').collect();
    if words.len() > 12 || !words.iter().all(|word| is_one_of(word, &WORDS)) {
        return None;
    }
    let has = |wanted: &[&str]| words.iter().any(|word| is_one_of(word, wanted));
    if !has(&["iso", "iso-8601", "rfc"]) {
        return None;
    }
    // A time alone may be one of the clock.
    let offset = has(&["offset", "zone", "timezone", "utc"]);
    let both = has(&["date"]) && has(&["time"]);
    if has(&["timestamp", "datetime", "date-time"]) || both || offset {
        return Some(Type::Datetime);
    }
    (has(&["date", "day"]) && !has(&["time"])).then_some(Type::Date { words: false })
}

/// The type of a text that is a range: `from 1 to 100`, `from 1 on`, `between 1 and 9`, `1-100`.
/// Without the word number it is an integer, except between 0 and 1, which is hardly ever one.
fn range(text: &str) -> Option<Type> {
    let (whole, real) = (after(text, &INTEGER), after(text, &NUMBER));
    let named = whole.or(real);
    let bare = named.unwrap_or(text).trim();
    let (min, max) = match after(bare, &["from"]) {
        Some(rest) => match rest.strip_suffix(" on").or_else(|| rest.strip_suffix(" up")) {
            Some(min) => (Some(number(min)?), None),
            None => pair(rest, " to ")?,
        },
        None => match after(bare, &["between"]) {
            Some(rest) => {
                let (min, max) = pair(rest, " and ")?;
                let unit = (min, max) == (Some(Bound::Whole(0)), Some(Bound::Whole(1)));
                return typed(min, max, whole.is_some(), real.is_some() || unit && whole.is_none());
            }
            None if bare.starts_with(|c: char| c.is_ascii_digit()) => {
                ["–", "-", "..", " to "].iter().find_map(|joint| pair(bare, joint))?
            }
            None => named.and_then(single)?,
        },
    };
    typed(min, max, whole.is_some(), real.is_some())
}

const INTEGER: [&str; 4] = ["a whole number", "an integer", "whole number", "integer"];
const NUMBER: [&str; 3] = ["a number", "a decimal number", "number"];

/// A single bound that is all of a text: `at least 1`, `max: 5`.
fn bounds(text: &str) -> Option<Type> {
    let (min, max) = single(text)?;
    typed(min, max, false, false)
}

fn single(text: &str) -> Option<(Option<Bound>, Option<Bound>)> {
    if let Some(min) = after(text, &["min:", "minimum:", "minimum", "min.", "min", "at least"]) {
        return Some((Some(number(min)?), None));
    }
    const MAX: [&str; 8] =
        ["max:", "maximum:", "maximum", "max.", "max", "at most", "no more than", "up to"];
    Some((None, Some(number(after(text, &MAX)?)?)))
}

/// A bound, as an integer if it is one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    Whole(i64),
    Real(f64),
}

impl Bound {
    fn real(self) -> f64 {
        match self {
            Bound::Whole(number) => number as f64,
            Bound::Real(number) => number,
        }
    }
}

fn typed(min: Option<Bound>, max: Option<Bound>, whole: bool, real: bool) -> Option<Type> {
    let integer = |bound: Option<Bound>| match bound {
        None => Some(None),
        Some(Bound::Whole(number)) => Some(Some(number)),
        Some(Bound::Real(_)) => None,
    };
    let ordered = min.zip(max).is_none_or(|(min, max)| min.real() <= max.real());
    match (integer(min), integer(max)) {
        _ if !ordered => None,
        (Some(min), Some(max)) if !real => Some(Type::Integer { min, max }),
        _ if whole => None,
        _ => Some(Type::Number { min: min.map(Bound::real), max: max.map(Bound::real) }),
    }
}

fn pair(text: &str, joint: &str) -> Option<(Option<Bound>, Option<Bound>)> {
    let (min, max) = text.split_once(joint)?;
    Some((Some(number(min)?), Some(number(max)?)))
}

fn number(text: &str) -> Option<Bound> {
    let text = text.trim();
    let plain = text.replace(',', "");
    let digits = plain.strip_prefix('-').unwrap_or(&plain);
    if text.ends_with(',') || !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let whole = plain.parse().ok().map(Bound::Whole);
    let plain_real =
        digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !digits.ends_with('.');
    whole.or_else(|| plain.parse().ok().filter(|_| plain_real).map(Bound::Real))
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
