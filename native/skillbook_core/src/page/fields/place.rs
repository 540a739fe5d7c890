//! The place of a field in the frontmatter, and lines to write there.

use crate::page::diagnostic::Diagnostic;
use crate::page::frontmatter;
use crate::value::Value;

/// The number, from 1, and the offset of the line that begins with the key.
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

/// Adds the line of the key to a diagnostic.
pub(crate) fn at_key(block: &str, key: &str, diagnostic: Diagnostic) -> Diagnostic {
    match line_of(block, key) {
        Some((line, _)) => diagnostic.at(line, 1),
        None => diagnostic,
    }
}

/// Adds the place of a part of the key's value, given by its offset. The column is exact if the
/// line has the value unchanged.
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

/// Adds the place of an item of the key's list, given by its text or the beginning of it. An item
/// that is written in another form has the place of the key.
pub(crate) fn at_item(block: &str, key: &str, item: &str, diagnostic: Diagnostic) -> Diagnostic {
    let item = item.lines().next().unwrap_or(item);
    let Some((first, start)) = line_of(block, key).filter(|_| !item.is_empty()) else {
        return at_key(block, key, diagnostic);
    };
    for (at, line) in block[start..].lines().enumerate() {
        // The next field.
        if at > 0 && !line.starts_with([' ', '\t', '-', '#']) && !line.is_empty() {
            break;
        }
        let from = if at == 0 { line.find(':').unwrap_or(0) } else { 0 };
        if let Some(found) = line[from..].find(item) {
            let column = line[..from + found].chars().count() as u32 + 1;
            return diagnostic.at(first + at as u32, column);
        }
    }
    at_key(block, key, diagnostic)
}

/// The lines of one field.
pub(crate) fn pair(key: &str, value: &Value, end_of_line: &str) -> String {
    let written = frontmatter::write(&[(key.to_owned(), value.clone())], "");
    let lines = written.trim_start_matches("---\n").trim_end_matches("---\n");
    lines.replace('\n', end_of_line)
}

/// The pairs of a mapping without one key.
pub(crate) fn without<'a>(data: &'a Value, key: &str) -> Vec<&'a (String, Value)> {
    match data {
        Value::Map(pairs) => pairs.iter().filter(|(other, _)| other != key).collect(),
        _ => Vec::new(),
    }
}
