//! Mistakes in a command, among them the operators of shells, and a hint for each.

use std::ops::Range;

use super::Word;
use crate::text::error::{Error, Kind};
use crate::text::scan::{Quote, Unclosed};

pub(super) fn several(source: &str, at: usize) -> Error {
    let end = source[at..].find(char::is_whitespace).map_or(source.len(), |len| at + len);
    Error::at(
        Kind::SeveralCommands,
        source,
        at..end,
        "expected one command, but the next line begins another",
        "put each command on its own line of a cmd block; write a value of several lines in quotes \
         or as a heredoc",
    )
}

pub(super) fn unclosed_error(source: &str, unclosed: Unclosed) -> Error {
    match unclosed {
        Unclosed::Heredoc { end, at } => {
            let len = source[at..].find([' ', '\t', '\n', '\r']).unwrap_or(source.len() - at);
            Error::at(
                Kind::UnclosedHeredoc,
                source,
                at..at + len,
                format!("the heredoc that begins here has no end line `{end}`"),
                format!(
                    "write a line with only {end} after the text, then close the block; \
                     quote it if it is part of a value"
                ),
            )
        }
        Unclosed::Substitution { close, at } => {
            let end = source[at..].find('\n').map_or(source.len(), |len| at + len);
            Error::at(
                Kind::UnclosedHeredoc,
                source,
                at..end,
                format!(
                    "the substitution that opens here is not closed: expected a line `{close}` \
                     after the heredoc"
                ),
                "substitutions are not supported: write --flag <<EOF, then the text, then a \
                 line EOF",
            )
        }
        Unclosed::Json(at) => Error::at(
            Kind::UnclosedJson,
            source,
            at..at + 1,
            "the JSON object that opens here is never closed",
            "write the whole object, up to its last }, or write flags: --name value",
        ),
        Unclosed::Quote(quote, at) => {
            let (name, len, hint) = match quote {
                Quote::Double if before_close(source, at) => (
                    "double",
                    1,
                    "\\\" stands for a quote inside the value: write \\\\ for a backslash at its \
                     end, or use '…'",
                ),
                Quote::Double => {
                    ("double", 1, "close the value with \", and write \\\" for a quote inside it")
                }
                Quote::Triple => ("triple", 3, "close the value with \"\"\""),
                Quote::Ansi => {
                    ("single", 2, "close the value with ', and write \\' for a quote inside it")
                }
                _ => (
                    "single",
                    1,
                    "close the value with ', or put a value with an apostrophe in \"…\"",
                ),
            };
            Error::at(
                Kind::UnclosedQuote,
                source,
                at..at + len,
                format!("the {name} quote that opens here is never closed"),
                format!(
                    "{hint}; for a long text use a heredoc: --flag <<EOF, the text, a line EOF"
                ),
            )
        }
    }
}

pub(super) fn unescaped(source: &str, at: usize) -> Error {
    Error::at(
        Kind::UnescapedQuote,
        source,
        at..at + 1,
        "the value ends at this quote, but more text follows without a space",
        "write \\\" for a quote inside the value, or '…' around it; for a long text use a heredoc: \
         --flag <<EOF, the text, a line EOF",
    )
}

/// Whether the text ends in a backslash and a quote, as in `"C:\Users\"`: the quote was meant to
/// close the value.
fn before_close(source: &str, at: usize) -> bool {
    source[at + 1..].trim_end().ends_with("\\\"")
}

/// An error for the first semicolon between two commands.
pub(super) fn semicolon(source: &str, words: &[Word<'_>]) -> Option<Error> {
    let (word, _) = words.iter().zip(&words[1.min(words.len())..]).find(|(word, next)| {
        ends_statement(source, word) || (ends_with_semicolon(source, word) && is_name(source, next))
    })?;
    Some(unsupported(source, ";", word.span.end - 1..word.span.end))
}

#[inline]
pub(super) fn is_operator(word: &Word<'_>) -> bool {
    !word.quoted
        && word.value.len() <= 3
        && word.span.len() == word.value.len()
        && matches!(word.value.as_ref(), "|" | "||" | "&&" | ";" | "&" | ">" | ">>" | "<" | "<<<")
}

/// Whether a word ends in an unquoted semicolon.
fn ends_with_semicolon(source: &str, word: &Word<'_>) -> bool {
    let text = &source[word.span.clone()];
    text.len() > 1 && text.ends_with(';') && !text.ends_with("\\;") && word.value.ends_with(';')
}

/// Whether a semicolon directly follows a closing quote. Models end a command with it, as in other
/// languages.
pub(super) fn ends_statement(source: &str, word: &Word<'_>) -> bool {
    let text = &source[word.span.clone()];
    ends_with_semicolon(source, word)
        && (word.quoted || text.contains('='))
        && (text.ends_with("\";") || text.ends_with("';"))
}

/// Whether a word looks like the name of a command.
fn is_name(source: &str, word: &Word<'_>) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let two =
        word.value.split_once('.').is_some_and(|(domain, action)| part(domain) && part(action));
    !word.quoted
        && source[word.span.clone()] == word.value
        && (two || word.value.starts_with("get_skill"))
}

/// An error for a quote at the end of a word that closes nothing, if a value in single quotes
/// precedes it: an apostrophe ended that value too early.
pub(super) fn stray_quote(source: &str, words: &[Word<'_>]) -> Option<Error> {
    let single = words.iter().position(|word| source[word.span.clone()].starts_with('\''))?;
    let stray = words[single + 1..].iter().find(|word| {
        let text = &source[word.span.clone()];
        !word.quoted
            && text.len() > 1
            && text.ends_with('\'')
            && word.value.matches('\'').count() == 1
    })?;
    Some(Error::at(
        Kind::UnescapedQuote,
        source,
        stray.span.end - 1..stray.span.end,
        "this quote closes nothing: the value in single quotes ended earlier",
        "put a value with an apostrophe in \"…\"",
    ))
}

pub(super) fn unsupported(source: &str, value: &str, span: Range<usize>) -> Error {
    let hint = match value {
        "<<<" => "write the text itself after the flag, in quotes",
        ">" | ">>" | "<" => {
            "write one command per line; its result comes \
             back to you"
        }
        "|" => {
            "write one command per line, and use {1} as a value for the \
             result of the first"
        }
        _ => "write each command on its own line; {1} as a value is the result of the first one",
    };
    Error::at(
        Kind::UnsupportedOperator,
        source,
        span,
        format!("`{value}` is not supported: this is not a shell"),
        format!("{hint}; quote it (\"{value}\") if it is part of a value"),
    )
}
