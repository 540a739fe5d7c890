//! JSON from files that people write: duplicate keys are errors, and every value has a place.
//!
//! serde_json does not keep the places of values, so [`place`] searches the text again when a
//! message needs one.

use std::collections::HashSet;
use std::fmt;

use crate::value::Value;

/// An error in a JSON text, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The message.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The path to the value; empty if the text is not JSON.
    pub path: Vec<Step>,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Error {}

/// A step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// The item of a list, from 0.
    Index(usize),
}

/// A part of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// Parses a JSON text of at most `most` keys and values, counted before any memory is used: a value
/// of two bytes takes eighty. A byte order mark may come first, values may be nested 127 deep, and
/// a key may occur only once in an object.
///
/// ```
/// use skillbook_core::{json, value::Value};
/// let value = json::parse(r#"{"a": [1]}"#, 10).unwrap();
/// assert_eq!(value.get("a"), Some(&Value::List(vec![Value::Int(1)])));
///
/// let error = |text| json::parse(text, 5).unwrap_err().to_string();
/// assert_eq!(error(r#"{"a" 1}"#), "1:6: expected `:`");
/// assert_eq!(error(r#"{"a": 1, "a": 2}"#), r#"1:10: expected each key once, got "a" again"#);
/// assert_eq!(error("[1, 2, 3, 4, 5]"), "1:14: expected at most 5 keys and values, got more");
/// ```
pub fn parse(text: &str, most: usize) -> Result<Value, Error> {
    let text = without_mark(text);
    if let Some(at) = beyond(text, most) {
        let (line, column) = line_and_column(text, at);
        let message = format!("expected at most {most} keys and values, got more");
        return Err(Error { message, line, column, path: Vec::new() });
    }
    let value = serde_json::from_str(text).map(value).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or("");
        // serde_json's columns count bytes, and mean the last byte read.
        let before = line.char_indices().take_while(|(at, _)| at + 1 < error.column()).count();
        Error {
            message: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
            line: error.line().max(1) as u32,
            column: before as u32 + 1,
            path: Vec::new(),
        }
    })?;
    match find(text, |found| found.again) {
        None => Ok(value),
        Some((at, path)) => {
            let (line, column) = line_and_column(text, at);
            let key = match path.last() {
                Some(Step::Key(key)) => key.as_str(),
                _ => "",
            };
            let message = format!("expected each key once, got {key:?} again");
            Err(Error { message, line, column, path })
        }
    }
}

/// The line and the column of a value, or of its key, in a valid JSON text; `None` if the value
/// does not exist.
///
/// ```
/// use skillbook_core::json::{place, Part, Step};
/// let path = [Step::Key("a".into()), Step::Index(1)];
/// assert_eq!(place("{\n  \"a\": [1, 2]\n}", &path, Part::Value), Some((2, 12)));
/// assert_eq!(place("{\n  \"a\": [1, 2]\n}", &path[..1], Part::Key), Some((2, 3)));
/// ```
pub fn place(text: &str, path: &[Step], part: Part) -> Option<(u32, u32)> {
    let text = without_mark(text);
    let (at, _) = find(text, |found| found.part == part && found.path == path)?;
    Some(line_and_column(text, at))
}

/// The offset of the first key or value after so many, in a text that may be JSON.
fn beyond(text: &str, most: usize) -> Option<usize> {
    // Each takes two bytes of JSON, so most texts need no count.
    if text.len() / 2 < most {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut at, mut count) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':' | b',' | b'}' | b']') {
            count += 1;
            if count > most {
                // A sign that is not JSON may be of several bytes.
                return (0..=at).rev().find(|at| text.is_char_boundary(*at));
            }
        }
        at += token(&bytes[at..]);
    }
    None
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn line_and_column(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..at];
    let line = before.rsplit('\n').next().unwrap_or("");
    (before.matches('\n').count() as u32 + 1, line.chars().count() as u32 + 1)
}

/// A key or a value that [`find`] passes.
struct Found<'a> {
    path: &'a [Step],
    part: Part,
    /// Whether it is a key that its object already has.
    again: bool,
}

/// A list or an object around the next token.
enum Around {
    List,
    Object {
        keys: HashSet<String>,
        /// Whether the path already has the key of the next value.
        after_key: bool,
    },
}

/// The offset of the first wanted key or value, and the path to it. The text must be JSON.
///
/// Uses a stack of its own, so deep nesting cannot exhaust the thread's.
fn find(text: &str, wanted: impl Fn(Found) -> bool) -> Option<(usize, Vec<Step>)> {
    let bytes = text.as_bytes();
    let mut around: Vec<Around> = Vec::new();
    let mut path: Vec<Step> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = at + token(&bytes[at..]);
        let mut part = Part::Value;
        let mut again = false;
        match (byte, around.last_mut()) {
            (b' ' | b'\t' | b'\n' | b'\r' | b':', _) => {
                at = end;
                continue;
            }
            (b',' | b'}' | b']', inside) => {
                let ends = *byte != b',';
                match (path.last_mut(), inside) {
                    (Some(Step::Index(index)), Some(Around::List)) if !ends => *index += 1,
                    (_, Some(Around::Object { after_key: after_key @ true, .. })) => {
                        *after_key = false;
                        path.pop();
                    }
                    (_, Some(Around::List)) => {
                        path.pop();
                    }
                    _ => {}
                }
                if ends {
                    around.pop();
                }
                at = end;
                continue;
            }
            (b'"', Some(Around::Object { keys, after_key: after_key @ false })) => {
                let key: String = serde_json::from_str(&text[at..end]).ok()?;
                part = Part::Key;
                again = !keys.insert(key.clone());
                *after_key = true;
                path.push(Step::Key(key));
            }
            _ => {}
        }
        if wanted(Found { path: &path, part, again }) {
            return Some((at, path));
        }
        match byte {
            b'{' => around.push(Around::Object { keys: HashSet::new(), after_key: false }),
            b'[' => {
                around.push(Around::List);
                path.push(Step::Index(0));
            }
            _ => {}
        }
        at = end;
    }
    None
}

/// The length of the first token.
fn token(bytes: &[u8]) -> usize {
    let length = match bytes[0] {
        b'"' => {
            let mut escaped = false;
            let end = bytes[1..].iter().position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            end.map_or(bytes.len(), |end| end + 2)
        }
        byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
            let part =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
            bytes.iter().position(|byte| !part(byte)).unwrap_or(bytes.len())
        }
        _ => 1,
    };
    length.max(1)
}

/// Converts a value. serde_json limits the nesting, so the recursion is limited too.
pub(crate) fn value(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        serde_json::Value::String(text) => Value::Str(text),
        serde_json::Value::Array(values) => {
            Value::List(values.into_iter().map(self::value).collect())
        }
        serde_json::Value::Object(members) => Value::Map(
            members.into_iter().map(|(name, value)| (name, self::value(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_a_text_is_no_json() {
        let deep = "[".repeat(200_000);
        let rows = [
            ("", "1:1: EOF while parsing a value"),
            ("{\n  \"a\": 1,\n}", "3:1: trailing comma"),
            ("{\"ä\": x}", "1:7: expected value"),
            ("[1, 2", "1:5: EOF while parsing a list"),
            ("{} {}", "1:4: trailing characters"),
            ("{\"a\": \"b", "1:8: EOF while parsing a string"),
            (deep.as_str(), "1:128: recursion limit exceeded"),
        ];
        for (text, expected) in rows {
            let text_shown = &text[..text.len().min(40)];
            assert_eq!(parse(text, 1_000_000).unwrap_err().to_string(), expected, "{text_shown}");
        }
    }

    #[test]
    fn keys_and_values_are_counted() {
        let rows = [
            ("", 0),
            ("[]", 1),
            ("[[], {}]", 3),
            ("{\"a\": [1, -2.5e+3, true, null]}", 7),
            ("{\"a, [b]\": \"c, \\\"d\\\": {\"}", 3),
            ("[\n\"\u{e9}\" ]", 2),
        ];
        for (text, count) in rows {
            let small = |most| beyond(&format!("{text}{}", " ".repeat(50)), most).is_none();
            assert_eq!((small(count), count == 0 || !small(count - 1)), (true, true), "{text}");
        }
        for text in ["\u{e9}\u{e9}\u{e9}", "[\u{e9}", "\"\u{e9}", "[[[[\u{feff}"] {
            for most in 0..3 {
                // Whatever it is, it is an error with a place in the text.
                assert!(parse(text, most).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn a_key_may_occur_once_in_an_object() {
        let rows = [
            ("{\"a\": {\"a\": 1}, \"b\": {\"a\": 1}}", None),
            ("[{\"a\": 1}, {\"a\": 1}]", None),
            ("{\"a\": \"a\", \"b\": [\"a\", \"a\"]}", None),
            ("{\"a\": 1,\n \"a\": 2}", Some("2:2: expected each key once, got \"a\" again")),
            ("{\"a\": 1, \"\\u0061\": 2}", Some("1:10: expected each key once, got \"a\" again")),
            (
                "{\"ä\": {}, \"b\": [], \"ä\": []}",
                Some("1:20: expected each key once, got \"ä\" again"),
            ),
            (
                "{\"a\\\\\": [{}, {\"b\": -1.5e+3, \"b\": 1}]}",
                Some("1:29: expected each key once, got \"b\" again"),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(
                parse(text, 1_000_000).err().map(|error| error.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        let path = parse("{\"a\": [[], {\"b\": 1, \"b\": 1}]}", 1_000_000).unwrap_err().path;
        assert_eq!(path, [Step::Key("a".into()), Step::Index(1), Step::Key("b".into())]);
    }

    #[test]
    fn tells_where_a_value_stands() {
        let text = "\u{feff}{\"a\": [], \"b\" : [[1, {\"ä\\\"\": null,\n\"c\":true}], -2 ]}";
        let key = |key: &str| Step::Key(key.to_owned());
        let rows = [
            (vec![], Some((1, 1)), None),
            (vec![key("a")], Some((1, 7)), Some((1, 2))),
            (vec![key("a"), Step::Index(0)], None, None),
            (vec![key("b")], Some((1, 17)), Some((1, 11))),
            (vec![key("b"), Step::Index(0), Step::Index(0)], Some((1, 19)), None),
            (vec![key("b"), Step::Index(0), Step::Index(1)], Some((1, 22)), None),
            (
                vec![key("b"), Step::Index(0), Step::Index(1), key("ä\"")],
                Some((1, 30)),
                Some((1, 23)),
            ),
            (vec![key("b"), Step::Index(0), Step::Index(1), key("c")], Some((2, 5)), Some((2, 1))),
            (vec![key("b"), Step::Index(1)], Some((2, 13)), None),
            (vec![key("c")], None, None),
        ];
        for (path, value, own_key) in rows {
            assert_eq!(place(text, &path, Part::Value), value, "{path:?}");
            assert_eq!(place(text, &path, Part::Key), own_key, "{path:?}");
        }
    }

    #[test]
    fn reads_values() {
        let read = parse(
            "\u{feff}{\"b\": [true, null, 1.5, \"x\"], \"a\": 18446744073709551615}",
            1_000_000,
        )
        .unwrap();
        let list = [Value::Bool(true), Value::Null, Value::Float(1.5), Value::Str("x".into())];
        let pairs =
            [("b", Value::List(list.to_vec())), ("a", Value::Float(18446744073709551615.0))];
        assert_eq!(read, Value::Map(pairs.map(|(key, value)| (key.to_owned(), value)).to_vec()));
    }
}
