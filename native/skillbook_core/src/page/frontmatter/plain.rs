//! A fast reader for the simple part of YAML, which nearly all frontmatter uses.
//!
//! The library's parser takes longer to set up than to read four fields. This reader knows block
//! mappings with simple keys, block lists and one-line flow lists of scalars, and scalars on one
//! line, unquoted or quoted without an escape. For anything else it gives up, and the library reads
//! the block. Where both accept a block they return the same values; a property test and a fuzz
//! target check it.

use crate::value::Value;

/// The limits of depth, entries and keys. The library reads larger blocks: here a repeated key is
/// found by a search of all keys, which takes quadratic time.
const DEPTH: usize = 8;
const ENTRIES: usize = 64;
const KEY: usize = 128;

/// The block's pairs; `None` if the block needs the library.
pub(super) fn parse(block: &str) -> Option<Vec<(String, Value)>> {
    if !printable(block.as_bytes()) {
        return None;
    }
    let mut lines = Lines { rest: block, next: None };
    lines.advance();
    match lines.next {
        None => Some(Vec::new()),
        Some(line) => {
            let pairs = mapping(&mut lines, line.indent, 1)?;
            lines.next.is_none().then_some(pairs)
        }
    }
}

/// Whether the block has no characters that YAML refuses or treats specially: control characters,
/// tabs, line breaks beyond ASCII, byte order marks.
fn printable(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, &byte)| match byte {
        b'\n' | 0x20..=0x7E => true,
        b'\r' => bytes.get(at + 1) == Some(&b'\n'),
        0xC2 => bytes.get(at + 1).is_some_and(|&next| next >= 0xA0),
        0xE2 => !matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xA8 | 0xA9])),
        0xEF => !matches!(bytes.get(at + 1..at + 3), Some([0xBB, 0xBF] | [0xBF, 0xBE | 0xBF])),
        0x80.. => true,
        _ => false,
    })
}

/// A line that is neither empty nor a comment.
#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    /// The line, trimmed.
    text: &'a str,
}

struct Lines<'a> {
    rest: &'a str,
    next: Option<Line<'a>>,
}

impl Lines<'_> {
    fn advance(&mut self) {
        self.next = None;
        while self.next.is_none() && !self.rest.is_empty() {
            let (line, rest) = match memchr::memchr(b'\n', self.rest.as_bytes()) {
                Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
                None => (self.rest, ""),
            };
            self.rest = rest;
            let line = line.strip_suffix('\r').unwrap_or(line).trim_end_matches(' ');
            let text = line.trim_start_matches(' ');
            if !text.is_empty() && !text.starts_with('#') {
                self.next = Some(Line { indent: line.len() - text.len(), text });
            }
        }
    }
}

fn mapping(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Vec<(String, Value)>> {
    if depth > DEPTH {
        return None;
    }
    let mut pairs: Vec<(String, Value)> = Vec::with_capacity(4);
    while let Some(line) = lines.next.filter(|line| line.indent >= indent) {
        if line.indent > indent || pairs.len() == ENTRIES {
            return None;
        }
        let (key, text) = entry(line.text)?;
        // The library reports duplicate keys.
        if pairs.iter().any(|(name, _)| name == key) {
            return None;
        }
        lines.advance();
        let value =
            if text.is_empty() { below(lines, indent, depth)? } else { scalar_or_list(text)? };
        pairs.push((key.to_owned(), value));
    }
    Some(pairs)
}

/// Reads `key: text`. The key's characters have no special meaning at any position.
fn entry(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    let end = bytes
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')))?;
    let simple = (1..=KEY).contains(&end) && (bytes[0].is_ascii_alphanumeric() || bytes[0] == b'_');
    match &bytes[end..] {
        [b':'] if simple => Some((&line[..end], "")),
        [b':', b' ', ..] if simple => Some((&line[..end], line[end + 2..].trim_start_matches(' '))),
        _ => None,
    }
}

/// Reads the value on the lines below a key. A list may have the same indentation as its key.
fn below(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Value> {
    match lines.next {
        Some(line) if line.indent >= indent && line.text.starts_with("- ") => {
            list(lines, line.indent).map(Value::List)
        }
        Some(line) if line.indent > indent => {
            mapping(lines, line.indent, depth + 1).map(Value::Map)
        }
        _ => Some(Value::Null),
    }
}

fn list(lines: &mut Lines<'_>, indent: usize) -> Option<Vec<Value>> {
    let mut items = Vec::with_capacity(4);
    while let Some(line) = lines.next.filter(|line| line.indent == indent) {
        let Some(text) = line.text.strip_prefix("- ") else { break };
        items.push(scalar_or_list(text.trim_start_matches(' '))?);
        lines.advance();
    }
    Some(items)
}

fn scalar_or_list(text: &str) -> Option<Value> {
    match text.as_bytes()[0] {
        b'[' => flow_list(text).map(Value::List),
        quote @ (b'"' | b'\'') => {
            let inner = text[1..].strip_suffix(quote as char)?;
            quoted(inner, quote)
        }
        _ => unquoted(text),
    }
}

fn quoted(inner: &str, quote: u8) -> Option<Value> {
    let special = inner.bytes().any(|byte| byte == quote || quote == b'"' && byte == b'\\');
    (!special).then(|| Value::Str(inner.to_owned()))
}

/// Reads an unquoted scalar in block context.
fn unquoted(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let begins = match bytes[0] {
        b'-' => bytes.get(1).is_some_and(|&next| next != b' '),
        first => begins_unquoted(first),
    };
    let special = bytes.iter().enumerate().any(|(at, &byte)| match byte {
        b':' => bytes.get(at + 1).is_none_or(|&next| next == b' '),
        b'#' => at > 0 && bytes[at - 1] == b' ',
        _ => false,
    });
    if begins && !special {
        resolve(text)
    } else {
        None
    }
}

fn begins_unquoted(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'/' | b'(' | b'$' | b'+' | b'~' | b'<' | b'=')
        || byte >= 0x80
}

fn flow_list(text: &str) -> Option<Vec<Value>> {
    let mut items = Vec::new();
    let mut rest = text.strip_prefix('[')?.trim_start_matches(' ');
    if rest == "]" {
        return Some(items);
    }
    loop {
        let item = match *rest.as_bytes().first()? {
            quote @ (b'"' | b'\'') => {
                let end = 1 + memchr::memchr(quote, &rest.as_bytes()[1..])?;
                let item = quoted(&rest[1..end], quote)?;
                rest = rest[end + 1..].trim_start_matches(' ');
                item
            }
            first if begins_unquoted(first) => {
                let end = memchr::memchr2(b',', b']', rest.as_bytes())?;
                let item = rest[..end].trim_end_matches(' ');
                if item.bytes().any(|byte| matches!(byte, b':' | b'#' | b'?' | b'[' | b'{' | b'}'))
                {
                    return None;
                }
                rest = &rest[end..];
                resolve(item)?
            }
            _ => return None,
        };
        items.push(item);
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start_matches(' '),
            None => return (rest == "]").then_some(items),
        }
    }
}

/// The value of an unquoted scalar; `None` if it may be a number in a form that only the library
/// reads.
fn resolve(text: &str) -> Option<Value> {
    let string = || Some(Value::Str(text.to_owned()));
    match text {
        "null" | "Null" | "NULL" | "~" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::written(Value::Bool(true), text)),
        "false" | "False" | "FALSE" => return Some(Value::written(Value::Bool(false), text)),
        _ => {}
    }
    let bytes = text.as_bytes();
    // Only these characters begin a number. Numbers that begin with `+`, `-` or `.` have more forms
    // than are worth repeating here.
    match bytes[0] {
        b'0'..=b'9' => {}
        b'+' | b'-' | b'.' => return None,
        _ => return string(),
    }
    let leading_zero = bytes.len() > 1 && bytes[0] == b'0';
    if !leading_zero && bytes.len() <= 18 && bytes.iter().all(u8::is_ascii_digit) {
        return text.parse().ok().map(Value::Int);
    }
    // Dates and versions are text: no number has other characters than these, two points, or two
    // signs after its first digit.
    let count = |wanted: &[u8]| bytes.iter().filter(|byte| wanted.contains(byte)).count();
    let number_like = |byte: &u8| {
        byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'o' | b'.' | b'+' | b'-' | b'E')
    };
    if count(b".") > 1 || count(b"+-") > 1 || !bytes.iter().all(number_like) {
        return string();
    }
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(fraction) {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        return Some(Value::written(Value::Float(number), text));
    }
    None
}
