//! Errors in schedules and time zones, with a place and a hint for the author.

use std::fmt;
use std::ops::Range;

/// An error, with its place in the text.
///
/// [`Display`](fmt::Display) writes "expected …, got …", without the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    expected: String,
    got: String,
    hint: String,
    span: Range<usize>,
}

/// The longest part of a text in a message, in characters.
const SHOWN: usize = 60;

impl Error {
    pub(super) fn new(
        expected: impl Into<String>,
        text: &str,
        span: Range<usize>,
        hint: impl Into<String>,
    ) -> Self {
        let got = match text.get(span.clone()).unwrap_or_default() {
            "" => "nothing".to_owned(),
            part if part.chars().nth(SHOWN).is_some() => {
                format!("\"{}…\"", part.chars().take(SHOWN).collect::<String>().escape_debug())
            }
            part => format!("\"{}\"", part.escape_debug()),
        };
        Error(Box::new(Inner { expected: expected.into(), got, hint: hint.into(), span }))
    }

    /// The expected form: `a number from 0 to 23 in the hour`.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// The actual text in quotes, or `nothing`.
    pub fn got(&self) -> &str {
        &self.0.got
    }

    /// A suggestion: the form to write instead.
    pub fn hint(&self) -> &str {
        &self.0.hint
    }

    /// The byte range of the place in the text.
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.0.expected, self.0.got)
    }
}

impl std::error::Error for Error {}
