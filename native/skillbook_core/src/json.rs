//! JSON from files that people write.

use std::fmt;

use crate::value::Value;

/// Why a text is no JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Error {}

/// Reads a JSON text; a byte order mark may come first. Values may be nested 127 deep. The last of two equal keys wins.
///
/// ```
/// use skillbook_core::{json, value::Value};
/// assert_eq!(json::parse("{\"a\": [1]}").unwrap().get("a"), Some(&Value::List(vec![Value::Int(1)])));
/// assert_eq!(json::parse("{\"a\" 1}").unwrap_err().to_string(), "1:6: expected `:`");
/// ```
pub fn parse(text: &str) -> Result<Value, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map(value).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or("");
        let before = line.char_indices().take_while(|(at, _)| at + 1 < error.column()).count();
        Error {
            message: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
            line: error.line().max(1) as u32,
            column: before as u32 + 1,
        }
    })
}

/// serde_json bounds the nesting, so the recursion is bounded too.
pub(crate) fn value(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        serde_json::Value::String(text) => Value::Str(text),
        serde_json::Value::Array(values) => Value::List(values.into_iter().map(self::value).collect()),
        serde_json::Value::Object(members) => {
            Value::Map(members.into_iter().map(|(name, value)| (name, self::value(value))).collect())
        }
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
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text_shown}");
        }
    }

    #[test]
    fn reads_values() {
        let read = parse("\u{feff}{\"b\": [true, null, 1.5, \"x\"], \"a\": 18446744073709551615}").unwrap();
        let list = [Value::Bool(true), Value::Null, Value::Float(1.5), Value::Str("x".into())];
        let pairs = [("b", Value::List(list.to_vec())), ("a", Value::Float(18446744073709551615.0))];
        assert_eq!(read, Value::Map(pairs.map(|(key, value)| (key.to_owned(), value)).to_vec()));
    }
}
