//! Where a field stands in the frontmatter, and its lines as they are written.

use crate::page::diagnostic::Diagnostic;
use crate::page::frontmatter;
use crate::value::Value;

/// The line of a frontmatter that begins with the key, from 1, and its offset.
pub(crate) fn line_of(block: &str, key: &str) -> Option<(u32, usize)> {
    let mut start = 0;
    for (number, line) in block.split_inclusive('\n').enumerate() {
        if line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')) {
            return Some((number as u32 + 1, start));
        }
        start += line.len();
    }
    None
}

/// The diagnostic at the line of a frontmatter that has the key.
pub(crate) fn at_key(block: &str, key: &str, diagnostic: Diagnostic) -> Diagnostic {
    match line_of(block, key) {
        Some((line, _)) => diagnostic.at(line, 1),
        None => diagnostic,
    }
}

/// The diagnostic at a part of the key's value, given by its first byte, if the value stands on the line as it was read.
pub(crate) fn at_part(
    block: &str,
    key: &str,
    value: &str,
    part: usize,
    diagnostic: Diagnostic,
) -> Diagnostic {
    let column = line_of(block, key).and_then(|(_, start)| {
        let line = block[start..].split('\n').next()?;
        let colon = line.find(':')?;
        let before = &line[..colon + line[colon..].find(value)? + part];
        Some(before.chars().count() as u32 + 1)
    });
    let placed = at_key(block, key, diagnostic);
    Diagnostic { column: column.or(placed.column), ..placed }
}

/// A line or several of frontmatter.
pub(crate) fn pair(key: &str, value: &Value, end_of_line: &str) -> String {
    let written = frontmatter::write(&[(key.to_owned(), value.clone())], "");
    let lines = written.trim_start_matches("---\n").trim_end_matches("---\n");
    lines.replace('\n', end_of_line)
}

/// A mapping's pairs but one.
pub(crate) fn without<'a>(data: &'a Value, key: &str) -> Vec<&'a (String, Value)> {
    match data {
        Value::Map(pairs) => pairs.iter().filter(|(other, _)| other != key).collect(),
        _ => Vec::new(),
    }
}
