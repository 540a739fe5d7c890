//! Errors in commands and replies, worded so that a model can correct itself.
//!
//! ```
//! use skillbook_core::text::command::parse;
//!
//! let error = parse("mail.send --subject \"Q1").unwrap_err();
//! assert_eq!(error.kind().as_str(), "unclosed_quote");
//! assert_eq!(
//!     error.to_string(),
//!     "the double quote that opens here is never closed\n  \
//!      mail.send --subject \"Q1\n                      ^\n\
//!      hint: close the value with \", and write \\\" for a quote inside it; \
//!      for a long text use a heredoc: --flag <<EOF, the text, a line EOF"
//! );
//! ```

use std::fmt;
use std::ops::Range;

use crate::excerpt::{excerpt, Excerpt};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// The text is longer than [`MAX_TEXT`](super::MAX_TEXT).
    TextTooLarge,
    /// The text has more commands than [`MAX_COMMANDS`](super::MAX_COMMANDS).
    TooManyCommands,
    /// The command is longer than [`MAX_COMMAND`](super::MAX_COMMAND).
    CommandTooLarge,
    /// The command has more words than [`MAX_WORDS`](super::MAX_WORDS).
    TooManyWords,
    /// The text has no command.
    EmptyCommand,
    /// The first word is a flag.
    MissingName,
    /// A quote is never closed.
    UnclosedQuote,
    /// A quote inside a value is not escaped, so the value ends there.
    UnescapedQuote,
    /// A heredoc has no end line.
    UnclosedHeredoc,
    /// A JSON object is never closed.
    UnclosedJson,
    /// A JSON object after the name cannot be read, or more text follows it.
    InvalidJson,
    /// A pipe, a redirection or another shell operator.
    UnsupportedOperator,
    /// More than one command, where one is expected.
    SeveralCommands,
}

impl Kind {
    /// The kind's stable name, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::InvalidUtf8 => "invalid_utf8",
            Kind::TextTooLarge => "text_too_large",
            Kind::TooManyCommands => "too_many_commands",
            Kind::CommandTooLarge => "command_too_large",
            Kind::TooManyWords => "too_many_words",
            Kind::EmptyCommand => "empty_command",
            Kind::MissingName => "missing_name",
            Kind::UnclosedQuote => "unclosed_quote",
            Kind::UnescapedQuote => "unescaped_quote",
            Kind::UnclosedHeredoc => "unclosed_heredoc",
            Kind::UnclosedJson => "unclosed_json",
            Kind::InvalidJson => "invalid_json",
            Kind::UnsupportedOperator => "unsupported_operator",
            Kind::SeveralCommands => "several_commands",
        }
    }
}

/// An error in a command or a text, with its place.
///
/// [`Display`](fmt::Display) writes the form that a model reads: the message, the line with a caret
/// below the place, and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    span: Range<usize>,
    line: usize,
    column: usize,
    message: String,
    excerpt: Option<Excerpt>,
    hint: String,
}

impl Error {
    /// An error at `span` of `source`.
    pub(super) fn at(
        kind: Kind,
        source: &str,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let start = source[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = source[span.start..].find('\n').map_or(source.len(), |at| span.start + at);
        let line = 1 + source[..start].bytes().filter(|byte| *byte == b'\n').count();
        let column = 1 + source[start..span.start].chars().count();
        let excerpt = excerpt(
            &source[start..end],
            span.start - start,
            span.end.min(end).max(span.start) - start,
        );
        Error(Box::new(Inner {
            kind,
            span,
            line,
            column,
            message: message.into(),
            excerpt: Some(excerpt),
            hint: hint.into(),
        }))
    }

    /// An error about a text as a whole, or about bytes that cannot be displayed.
    pub(super) fn whole(
        kind: Kind,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Error(Box::new(Inner { kind, span, line: 1, column: 1, message, excerpt: None, hint }))
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The byte range of the place in the source.
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    /// The line of the place, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column of the place in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// The message, without place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// A suggestion: how to write the command instead.
    pub fn hint(&self) -> &str {
        &self.0.hint
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        f.write_str(&inner.message)?;
        if inner.line > 1 {
            write!(f, " (line {})", inner.line)?;
        }
        if let Some(excerpt) = &inner.excerpt {
            write!(f, "\n  {}\n  {}", excerpt.text, excerpt.caret)?;
        }
        write!(f, "\nhint: {}", inner.hint)
    }
}

impl std::error::Error for Error {}
