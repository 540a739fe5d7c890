//! Frontmatter: the YAML block between two `---` lines at the top of a Markdown document.
//!
//! [`parse`] splits a document into data and body, and [`write()`] joins them again.
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
//! - It opens with a first line that is exactly `---`, and closes with the next such line. Blanks
//!   may follow the dashes, lines may end with LF or CRLF, and a byte order mark may come first.
//!   With any other first line there is no frontmatter.
//! - `...` ends a YAML document, but does not close the block: other readers of the Agent Skills
//!   format only know `---`, and a file must have the same body for all of them.
//! - It contains a YAML mapping, or nothing.
//!
//! # The values
//!
//! - Scalars have the types of YAML's core schema (YAML 1.2.2, section 10.3): `true`, `null`, `12`,
//!   `0x1f`, `1e3`. Dates, `yes` and `007` are text.
//! - A whole number outside 64 bits is a [`Value::Float`]. `.inf` and `.nan` stay text, since JSON
//!   and Elixir have no such numbers.
//! - Keys are always text, unchanged: `1.50: x` has the key `1.50`. `<<` is a key like any other.
//! - The last of two equal keys wins, and a tag (`!name`) is left out. Each gives a diagnostic.
//!
//! # Three readers
//!
//! `plain` reads nearly all frontmatter without the YAML library. `yaml` reads the rest with the
//! library. `repair` changes a block that the library refuses, one entry at a time, until the
//! library accepts it.
//!
//! # Limits
//!
//! A block of more than 1 MiB, values nested more than 64 deep, and aliases that expand the data
//! beyond 2 MiB are refused.

mod plain;
mod repair;
mod split;
mod write;
mod yaml;

pub use write::write;
pub(crate) use yaml::FINDINGS;

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::value::Value;
use std::fmt;
use std::ops::Range;

/// The longest block that is read, in bytes.
pub const MAX_BLOCK: usize = 1 << 20;

/// How many lists and mappings may contain one another, the block's own mapping included.
pub const MAX_DEPTH: usize = 64;

/// The longest block that [`parse_quick`] reads, in bytes.
const QUICK: usize = 4 * 1024;

/// The block begins on the document's second line, as the opening `---` is the first.
const BLOCK_LINE: usize = 2;

/// A document as data and body.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// The data of the block. Always a [`Value::Map`], empty without a block.
    pub data: Value,
    /// The text after the block, unchanged. Without a block the whole text, except a byte order
    /// mark.
    pub body: &'a str,
    /// The offset of the body in the text, in bytes.
    pub body_offset: usize,
    /// The first line of the body, from 1.
    pub body_line: u32,
    /// Whether there is a block.
    pub present: bool,
    /// The keys of the block that occur twice.
    pub repeated: Vec<String>,
    /// The parts that were repaired, overridden or left out, in the order of the lines.
    pub diagnostics: Vec<Diagnostic>,
}

/// The reason why frontmatter cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not UTF-8.
    Encoding,
    /// The opening `---` has no closing one.
    Unclosed,
    /// The block is not YAML, and its meaning is unclear.
    Invalid,
    /// The block is a YAML list or scalar.
    NotMapping,
    /// The block is longer than [`MAX_BLOCK`], or its aliases expand it to more than twice that.
    TooLarge,
    /// Values are nested deeper than [`MAX_DEPTH`].
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

/// An error in a document's frontmatter, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The message: the expected form and the actual one.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The same place in bytes, from 0.
    pub offset: usize,
    /// A suggestion: the form to write instead.
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

    /// The error as a diagnostic.
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

/// Splits a document into data and body.
///
/// # Errors
///
/// An [`Error`] if the block cannot be read. A block that a person would understand is repaired,
/// only in the lines that YAML refuses, with a diagnostic that shows each repaired line.
pub fn parse(text: &str) -> Result<Document<'_>, Error> {
    let (document, block) = begin(text)?;
    match block {
        Some(block) => read(text, document, block),
        None => Ok(document),
    }
}

/// As [`parse`], for a document whose block takes only microseconds to read: it has at most
/// `QUICK` bytes and needs neither the YAML library nor repair. `None` for any other.
///
/// The library may take a hundred milliseconds for a kilobyte, since aliases repeat values.
pub fn parse_quick(text: &str) -> Option<Result<Document<'_>, Error>> {
    match begin(text) {
        Ok((document, Some(block))) if block.len() <= QUICK => {
            let pairs = plain::parse(&text[block])?;
            Some(Ok(Document { data: Value::Map(pairs), ..document }))
        }
        Ok((_, Some(_))) => None,
        Ok((document, None)) => Some(Ok(document)),
        Err(error) => Some(Err(error)),
    }
}

/// The document without its data, and the block.
fn begin(text: &str) -> Result<(Document<'_>, Option<Range<usize>>), Error> {
    let split = split::split(text)?;
    let document = Document {
        data: Value::Map(Vec::new()),
        body: &text[split.body_offset..],
        body_offset: split.body_offset,
        body_line: place(text.as_bytes(), split.body_offset).line,
        present: split.block.is_some(),
        repeated: Vec::new(),
        diagnostics: Vec::new(),
    };
    Ok((document, split.block))
}

fn read<'a>(
    text: &'a str,
    mut document: Document<'a>,
    block: Range<usize>,
) -> Result<Document<'a>, Error> {
    // From the fastest reader to the slowest.
    if let Some(pairs) = plain::parse(&text[block.clone()]) {
        document.data = Value::Map(pairs);
        return Ok(document);
    }
    let (loaded, mut diagnostics) = match yaml::load(&text[block.clone()]) {
        Ok(mut loaded) => {
            let diagnostics = std::mem::take(&mut loaded.diagnostics);
            (loaded, diagnostics)
        }
        Err(failure) => match repair::repair(&text[block.clone()], &failure) {
            Some((mut loaded, mut repairs)) => {
                for fix in repairs.iter_mut().filter_map(|repaired| repaired.fix.as_mut()) {
                    fix.range = block.start + fix.range.start..block.start + fix.range.end;
                }
                repairs.append(&mut loaded.diagnostics);
                (loaded, repairs)
            }
            None => {
                let place = place(text.as_bytes(), block.start + failure.offset);
                return Err(Error::new(failure.kind, failure.message, place, failure.hint));
            }
        },
    };
    diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    document.data = loaded.data;
    document.repeated = loaded.repeated;
    document.diagnostics = diagnostics;
    Ok(document)
}

/// The part of a document that may be frontmatter: up to the body, or all of it if the block is
/// never closed.
pub(crate) fn head(text: &str) -> &str {
    split::split(text).map_or(text, |split| &text[..split.body_offset])
}

/// Converts bytes to text.
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
    // The fast check does not return the place of an error, so the slow one finds it.
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

/// The place of a byte. Also works if bytes before it are not UTF-8.
pub(crate) fn place(text: &[u8], offset: usize) -> Place {
    let before = &text[..offset.min(text.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    // Every byte except a continuation byte begins a character.
    let column = before[line_start..].iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
    Place { line: line as u32, column: column as u32, offset }
}

#[cfg(test)]
mod tests;
