//! Frontmatter: the YAML block between two `---` lines at the top of a Markdown document.
//!
//! [`parse`] splits a document into its data and its body, [`write`] puts them together again.
//!
//! ```
//! use skillbook_core::page::frontmatter;
//! use skillbook_core::value::Value;
//!
//! let document = frontmatter::parse("---\nname: hello\n---\n# Hello\n").unwrap();
//! assert_eq!(document.data.get("name"), Some(&Value::Str("hello".into())));
//! assert_eq!(document.body, "# Hello\n");
//! ```
//!
//! # The block
//!
//! * It opens with a first line that is exactly `---`, and closes with the next such line. Blanks may follow the dashes,
//!   lines may end with LF or CRLF, a byte order mark may come first. Anything else at the top means: no frontmatter.
//! * `...` ends a YAML document, yet it does not close the block: the readers of the Agent Skills format know `---` alone,
//!   and a file must have the same body for all of them.
//! * It holds a YAML mapping, or nothing.
//!
//! # The values
//!
//! * The scalars are typed as YAML's core schema does: `true`, `null`, `12`, `0x1f`, `1e3`. Dates, `yes` and `007` are text.
//! * A whole number outside 64 bits is a [`Value::Float`]; `.inf` and `.nan` stay text, as not every side knows such numbers.
//! * Keys are always text, as written: `1.50: x` has the key `1.50`. `<<` is a key like any other.
//! * The last of two equal keys wins, and a tag (`!name`) is left out; each with a diagnostic.
//!
//! # Limits
//!
//! A block of more than 1 MiB, values nested more than 64 deep, and aliases that would blow the data up are refused.

mod plain;
mod repair;
mod split;
mod write;
mod yaml;

pub use write::write;

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::value::Value;
use std::fmt;

/// The longest block that is read, in bytes.
pub const MAX_BLOCK: usize = 1 << 20;

/// How many lists and mappings may contain one another, the block's own mapping included.
pub const MAX_DEPTH: usize = 64;

/// The block begins on the document's second line, as the opening `---` is the first.
const BLOCK_LINE: usize = 2;

/// A document, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// What the block says: always a [`Value::Map`], an empty one where there is no block.
    pub data: Value,
    /// The text after the block, as written; the whole text (without a byte order mark) where there is no block.
    pub body: &'a str,
    /// Where the body begins in the text, in bytes.
    pub body_offset: usize,
    /// The line the body begins on, from 1.
    pub body_line: u32,
    /// Whether there is a block.
    pub present: bool,
    /// What was mended, overridden or left out, in the order of the lines.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why frontmatter could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not UTF-8.
    Encoding,
    /// The opening `---` has no closing one.
    Unclosed,
    /// The block is not YAML, and what was meant is not plain.
    Invalid,
    /// The block is YAML, but a list or a scalar.
    NotMapping,
    /// The block is longer than [`MAX_BLOCK`], or its aliases make it larger than twice that.
    TooLarge,
    /// Values nest deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl ErrorKind {
    /// The kind's name, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Encoding => "encoding",
            ErrorKind::Unclosed => "unclosed",
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotMapping => "not_mapping",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::TooDeep => "too_deep",
        }
    }
}

/// What is wrong with a document's frontmatter, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What sort of thing is wrong.
    pub kind: ErrorKind,
    /// What was expected and what came.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The same place in bytes, from 0.
    pub offset: usize,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>, place: Place, hint: &str) -> Self {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        Error {
            kind,
            message: message.into(),
            line: place.line,
            column: place.column,
            offset: place.offset,
            hint,
        }
    }

    /// The same as a diagnostic of severity error.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let code = match self.kind {
            ErrorKind::Encoding => Code::InvalidUtf8,
            ErrorKind::Unclosed => Code::FrontmatterUnclosed,
            _ => Code::FrontmatterInvalid,
        };
        let mut diagnostic =
            Diagnostic::new(code, Severity::Error, &*self.message).at(self.line, self.column);
        diagnostic.hint = self.hint.clone();
        diagnostic
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {}", self.message, self.line, self.column)
    }
}

impl std::error::Error for Error {}

/// Takes a document apart.
///
/// # Errors
///
/// An [`Error`] where a block is opened that cannot be read. A block that a person would understand is mended, line by
/// line and only where strict YAML refuses it, with a diagnostic that shows each mended line.
pub fn parse(text: &str) -> Result<Document<'_>, Error> {
    let split = split::split(text)?;
    let mut document = Document {
        data: Value::Map(Vec::new()),
        body: &text[split.body_offset..],
        body_offset: split.body_offset,
        body_line: place(text.as_bytes(), split.body_offset).line,
        present: split.block.is_some(),
        diagnostics: Vec::new(),
    };
    let Some(block) = split.block else { return Ok(document) };
    if let Some(pairs) = plain::parse(&text[block.clone()]) {
        document.data = Value::Map(pairs);
        return Ok(document);
    }
    let (data, mut diagnostics) = match yaml::load(&text[block.clone()]) {
        Ok(loaded) => (loaded.data, loaded.diagnostics),
        Err(failure) => match repair::repair(&text[block.clone()], &failure) {
            Some((loaded, mut repairs)) => {
                for fix in repairs.iter_mut().filter_map(|repaired| repaired.fix.as_mut()) {
                    fix.range = block.start + fix.range.start..block.start + fix.range.end;
                }
                repairs.extend(loaded.diagnostics);
                (loaded.data, repairs)
            }
            None => {
                let place = place(text.as_bytes(), block.start + failure.offset);
                return Err(Error::new(failure.kind, failure.message, place, failure.hint));
            }
        },
    };
    diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    document.data = data;
    document.diagnostics = diagnostics;
    Ok(document)
}

/// The bytes as text, if they are UTF-8.
///
/// # Errors
///
/// An [`Error`] of kind [`ErrorKind::Encoding`] at the first byte that is not.
///
/// ```
/// use skillbook_core::page::frontmatter;
///
/// assert_eq!(frontmatter::decode(b"abc"), Ok("abc"));
/// assert_eq!(frontmatter::decode(b"ab\n\xff").unwrap_err().offset, 3);
/// ```
pub fn decode(bytes: &[u8]) -> Result<&str, Error> {
    // The fast check does not say where; the slow one runs only where there is something to say.
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Ok(text);
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let message =
            format!("expected UTF-8, got the byte 0x{:02X} at offset {offset}", bytes[offset]);
        let hint = match bytes {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "this looks like UTF-16; save the file as UTF-8",
            _ => "save the file as UTF-8",
        };
        Error::new(ErrorKind::Encoding, message, place(bytes, offset), hint)
    })
}

/// A place in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
    offset: usize,
}

/// The place of a byte. Bytes before it that are not UTF-8 do not matter to the line.
pub(crate) fn place(text: &[u8], offset: usize) -> Place {
    let before = &text[..offset.min(text.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    // Every byte but a continuation begins a character.
    let column = before[line_start..].iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
    Place { line: line as u32, column: column as u32, offset }
}

#[cfg(test)]
mod tests;
