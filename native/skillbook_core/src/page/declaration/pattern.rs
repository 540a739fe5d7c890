//! The `pattern` of a flag: a small part of regular expressions that all readers of JSON Schema
//! share, matched against the whole value.
//!
//! The engine takes linear time and the compiled form has a limit, so no pattern is slow. Look
//! around, back references, `\b`, `\p{…}` and flags such as `(?i)` are refused, since other engines
//! read them differently or not at all.
//!
//! ```
//! use skillbook_core::page::declaration::Pattern;
//!
//! let pattern = Pattern::read(r"^[A-Z]{2}-\d+$").unwrap();
//! assert_eq!(pattern.as_str(), "[A-Z]{2}-[0-9]+");
//! assert!(pattern.matches("AB-12") && !pattern.matches("AB-12 "));
//! assert_eq!(pattern.example(), "AA-0");
//! assert_eq!(Pattern::read(r"(?=a)").unwrap_err().offset, 0);
//! ```

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};

/// The longest plain form, in characters.
const LONGEST: usize = 500;
/// The longest value that is compared, in bytes.
pub const LONGEST_VALUE: usize = 10_000;
/// How many groups may contain one another.
const DEEPEST: u32 = 16;
/// The largest compiled pattern, in bytes.
const COMPILED: usize = 64 * 1024;
/// The longest example, in bytes.
const LONGEST_EXAMPLE: usize = 100;

/// A pattern in its plain form: without anchors at its ends, and `[0-9]` for `\d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// The reason why a pattern cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The offset in the pattern, in bytes.
    pub offset: usize,
    /// The problem: `` `(?` is not supported ``.
    pub message: String,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// The first part that is not supported, or that makes the pattern too large.
    pub fn read(text: &str) -> Result<Pattern, PatternError> {
        let error = |offset, message: String| PatternError { offset, message };
        let pattern = Pattern(plain(text)?);
        let length = pattern.0.chars().count();
        if !(1..=LONGEST).contains(&length) {
            let message = format!("expected 1 to {LONGEST} characters, got {length}");
            return Err(error(0, message));
        }
        match pattern.compile() {
            Some(_) => Ok(pattern),
            None => Err(error(0, "it is too large, or its brackets do not match".to_owned())),
        }
    }

    /// The plain form, without the anchors that a reader of JSON Schema needs.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of a value matches. A value of more than [`LONGEST_VALUE`] bytes does not.
    pub fn matches(&self, value: &str) -> bool {
        value.len() <= LONGEST_VALUE && self.compile().is_some_and(|regex| regex.is_match(value))
    }

    /// A short value that matches.
    pub fn example(&self) -> String {
        let parsed = regex_syntax::parse(&self.0);
        let example = parsed.map(|parsed| shortest(&parsed)).unwrap_or_default();
        if self.matches(&example) {
            example
        } else {
            String::new()
        }
    }

    fn compile(&self) -> Option<Regex> {
        let config = Config::new()
            .nfa_size_limit(Some(COMPILED))
            .onepass_size_limit(Some(COMPILED))
            .hybrid_cache_capacity(COMPILED);
        Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().nest_limit(DEEPEST))
            .build(&format!(r"\A(?:{})\z", self.0))
            .ok()
    }
}

/// The plain form of a pattern, if it has nothing but supported parts.
fn plain(text: &str) -> Result<String, PatternError> {
    // Brackets and repetitions are checked when the pattern is compiled.
    let end = match text.strip_suffix('$') {
        Some(rest) if rest.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0 => {
            rest.len()
        }
        _ => text.len(),
    };
    let start = usize::from(text.starts_with('^') && end > 0);
    // `^a|b$` anchors each half by one end; only within a group do both ends hold for all of it.
    let mut plain = String::with_capacity(text.len());
    let mut class = false;
    let mut depth = 0usize;
    let mut halves = None;
    let mut chars = text[start..end].char_indices().map(|(at, c)| (start + at, c)).peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let refuse = |what: &str| {
            let message = format!("`{what}` is not supported");
            Err(PatternError { offset: at, message })
        };
        match c {
            '\\' => {
                let Some((_, escaped)) = chars.next() else { return refuse("\\") };
                match (escaped, class) {
                    ('d', false) => plain.push_str("[0-9]"),
                    ('w', false) => plain.push_str("[0-9A-Za-z_]"),
                    ('s', false) => plain.push_str("[ \\t]"),
                    ('D', false) => plain.push_str("[^0-9]"),
                    ('W', false) => plain.push_str("[^0-9A-Za-z_]"),
                    ('S', false) => plain.push_str("[^ \\t]"),
                    ('d', true) => plain.push_str("0-9"),
                    ('w', true) => plain.push_str("0-9A-Za-z_"),
                    ('s', true) => plain.push_str(" \\t"),
                    ('t' | 'n' | 'r', _) => plain.extend(['\\', escaped]),
                    (mark, _) if mark.is_ascii_punctuation() && !matches!(mark, '<' | '>') => {
                        plain.extend(['\\', mark]);
                    }
                    (other, _) => return refuse(&format!("\\{other}")),
                }
            }
            '[' if class => plain.push_str("\\["),
            '[' => {
                class = true;
                plain.push('[');
                if next == Some('^') {
                    chars.next();
                    plain.push('^');
                }
                // Other engines read an empty class here, or a bracket.
                if chars.peek().is_some_and(|(_, first)| *first == ']') {
                    return refuse("[]");
                }
            }
            ']' if class => {
                class = false;
                plain.push(']');
            }
            '&' | '~' | '-' if class && next == Some(c) => return refuse(&format!("{c}{c}")),
            _ if class => plain.push(c),
            '(' if next == Some('?') => {
                chars.next();
                match chars.next() {
                    Some((_, ':')) => {
                        depth += 1;
                        plain.push('(');
                    }
                    _ => return refuse("(?"),
                }
            }
            '(' | ')' => {
                depth = if c == '(' { depth + 1 } else { depth.saturating_sub(1) };
                plain.push(c);
            }
            '|' => {
                if depth == 0 {
                    halves.get_or_insert(at);
                }
                plain.push(c);
            }
            '^' | '$' => return refuse(&c.to_string()),
            ' '.. => plain.push(c),
            _ => return refuse("a control character"),
        }
    }
    match halves {
        Some(at) if start > 0 || end < text.len() => Err(PatternError {
            offset: at,
            message: "`^` or `$` holds for one half of `|` only; put the halves in brackets".into(),
        }),
        _ => Ok(plain),
    }
}

/// A text that a pattern accepts, with the least number of repetitions.
fn shortest(parsed: &Hir) -> String {
    let mut text = String::new();
    let mut open = vec![parsed];
    while let Some(part) = open.pop() {
        if text.len() + open.len() > LONGEST_EXAMPLE {
            return String::new();
        }
        match part.kind() {
            HirKind::Literal(literal) => {
                text.push_str(std::str::from_utf8(&literal.0).unwrap_or_default());
            }
            HirKind::Class(class) => {
                let chars = match class {
                    regex_syntax::hir::Class::Unicode(class) => class,
                    regex_syntax::hir::Class::Bytes(_) => continue,
                };
                let has =
                    |c: char| chars.iter().any(|range| (range.start()..=range.end()).contains(&c));
                let usual = ['a', 'A', '0', ' ', '-'].into_iter().find(|c| has(*c));
                let first = chars.iter().next().map(|range| range.start());
                text.extend(usual.or(first));
            }
            HirKind::Repetition(repetition) => {
                let times = (repetition.min as usize).min(LONGEST_EXAMPLE);
                open.extend(std::iter::repeat_n(&*repetition.sub, times));
            }
            HirKind::Capture(capture) => open.push(&capture.sub),
            HirKind::Concat(parts) => open.extend(parts.iter().rev()),
            HirKind::Alternation(parts) => open.extend(parts.first()),
            HirKind::Empty | HirKind::Look(_) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parts_that_all_engines_share() {
        let rows = [
            ("a", Ok("a"), "a", "b"),
            ("^a$", Ok("a"), "a", "ab"),
            (r"\d{2,4}", Ok("[0-9]{2,4}"), "123", "12345"),
            (r"\w+", Ok("[0-9A-Za-z_]+"), "a_1", "é"),
            (r"[\w.-]+", Ok("[0-9A-Za-z_.-]+"), "a.b-c", "a b"),
            (r"\S", Ok("[^ \\t]"), "é", " "),
            ("(?:a|b)c", Ok("(a|b)c"), "bc", "b"),
            ("^(a|b)$", Ok("(a|b)"), "b", "ab"),
            ("a|b", Ok("a|b"), "b", "ab"),
            (r"a\$", Ok(r"a\$"), "a$", "a"),
            ("[^/]{1,9}", Ok("[^/]{1,9}"), "é€", "a/b"),
            ("[[]", Ok(r"[\[]"), "[", "a"),
            ("[a-z]*?", Ok("[a-z]*?"), "", "1"),
            (".", Ok("."), "x", "\n"),
            (
                "^a|b$",
                Err((2, "`^` or `$` holds for one half of `|` only; put the halves in brackets")),
                "",
                "",
            ),
            ("a^b", Err((1, "`^` is not supported")), "", ""),
            ("a$b", Err((1, "`$` is not supported")), "", ""),
            ("(?=a)", Err((0, "`(?` is not supported")), "", ""),
            ("(?i)a", Err((0, "`(?` is not supported")), "", ""),
            ("(?<n>a)", Err((0, "`(?` is not supported")), "", ""),
            (r"(a)\1", Err((3, r"`\1` is not supported")), "", ""),
            (r"\bword", Err((0, r"`\b` is not supported")), "", ""),
            (r"\p{L}", Err((0, r"`\p` is not supported")), "", ""),
            (r"[\D]", Err((1, r"`\D` is not supported")), "", ""),
            ("[]a]", Err((0, "`[]` is not supported")), "", ""),
            ("[a&&b]", Err((2, "`&&` is not supported")), "", ""),
            ("a\\", Err((1, "`\\` is not supported")), "", ""),
            ("a\nb", Err((1, "`a control character` is not supported")), "", ""),
            ("(a", Err((0, "it is too large, or its brackets do not match")), "", ""),
            ("a)", Err((0, "it is too large, or its brackets do not match")), "", ""),
            ("*a", Err((0, "it is too large, or its brackets do not match")), "", ""),
            ("[b-a]", Err((0, "it is too large, or its brackets do not match")), "", ""),
            (
                "((a{1,100}){1,100}){1,100}",
                Err((0, "it is too large, or its brackets do not match")),
                "",
                "",
            ),
            ("^$", Err((0, "expected 1 to 500 characters, got 0")), "", ""),
            ("", Err((0, "expected 1 to 500 characters, got 0")), "", ""),
        ];
        for (text, expected, yes, no) in rows {
            let found = Pattern::read(text);
            let shown = found.as_ref().map(Pattern::as_str);
            assert_eq!(shown.map_err(|e| (e.offset, &*e.message)), expected, "{text}");
            if let Ok(pattern) = found {
                assert!(pattern.matches(yes) && !pattern.matches(no), "{text}");
                assert!(pattern.matches(&pattern.example()), "{text}");
            }
        }
        assert!(Pattern::read(&"a".repeat(501)).is_err());
        assert!(!Pattern::read("a*").unwrap().matches(&"a".repeat(LONGEST_VALUE + 1)));
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn whatever_is_read_is_plain(
                text in r"[-a-c\[\](){}|*+?^$\\.,0-9:=dDwWsS&~é\n]{0,30}",
            ) {
                if let Ok(pattern) = Pattern::read(&text) {
                    // Reading the plain form again changes nothing.
                    prop_assert_eq!(Pattern::read(pattern.as_str()), Ok(pattern.clone()));
                    let example = pattern.example();
                    prop_assert!(example.is_empty() || pattern.matches(&example));
                } else if let Err(error) = Pattern::read(&text) {
                    prop_assert!(text.is_char_boundary(error.offset));
                }
            }
        }
    }
}
