//! Finds links to files beside a document: `[forms](references/forms.md)`,
//! `![logo](assets/logo.png)`.
//!
//! Links to other places are ignored: URLs, absolute paths, anchors of the same page. So are links
//! in code. This is not a Markdown parser: reference definitions (`[1]: a.md`), HTML and links over
//! two lines are ordinary text.

use memchr::memmem;

use crate::page::sections::Fences;

/// The longest target, in bytes. A longer one is hardly a path.
const LONGEST: usize = 1024;

/// A link to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The path, decoded, without an anchor.
    pub target: String,
    /// The line in the file, from 1.
    pub line: u32,
    /// The column of the target in characters, from 1.
    pub column: u32,
}

/// Finds the references of a text, from the byte `start` on.
///
/// ```
/// use skillbook_core::page::references::find;
/// let text = "See [the forms](references/my%20forms.md#two) and [the site](https://example.org).";
/// let found = find(text, 0);
/// assert_eq!((found.len(), found[0].column), (1, 17));
/// assert_eq!(found[0].target, "references/my forms.md");
/// ```
pub fn find(text: &str, start: usize) -> Vec<Reference> {
    let body = &text[start..];
    // Most documents have no link. Then this search is all that is done.
    if memmem::find(body.as_bytes(), b"](").is_none() {
        return Vec::new();
    }
    let first = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count() as u32 + 1;
    let mut fences = Fences::default();
    let mut found = Vec::new();
    for (line, number) in body.split('\n').zip(first..) {
        if !fences.is_code(line.trim_start()) {
            push_line(line, number, &mut found);
        }
    }
    found
}

fn push_line(line: &str, number: u32, found: &mut Vec<Reference>) {
    let links = memmem::find_iter(line.as_bytes(), b"](").map(|at| at + 2);
    // Without an opening bracket before it, `](` is not a link.
    let Some(bracket) = memchr::memchr(b'[', line.as_bytes()) else { return };
    let mut code = code_spans(line).into_iter().peekable();
    // The characters up to the last link that was found. A line may have many links.
    let (mut counted, mut column) = (0, 1);
    for at in links.filter(|at| bracket < at - 2) {
        while code.next_if(|span| span.end <= at).is_some() {}
        if code.peek().is_some_and(|span| span.contains(&at)) {
            continue;
        }
        if let Some(target) = destination(&line[at..]).and_then(path) {
            column += line[counted..at].chars().count() as u32;
            counted = at;
            found.push(Reference { target, line: number, column });
        }
    }
}

/// The ranges of inline code: from a run of backticks to the next run of the same length.
fn code_spans(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    let mut opened: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'`', &line.as_bytes()[at..]).map(|found| at + found) {
        let length = line[start..].bytes().take_while(|byte| *byte == b'`').count();
        at = start + length;
        match opened {
            None => opened = Some((start, length)),
            Some((from, opening)) if opening == length => {
                spans.push(from..at);
                opened = None;
            }
            Some(_) => {}
        }
    }
    spans
}

/// The destination of a link. `text` begins after the opening parenthesis. The destination ends at
/// a blank or at the closing parenthesis, or is in angle brackets.
fn destination(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    if let Some(inner) = text.strip_prefix('<') {
        return inner
            .get(..inner.floor_char_boundary(LONGEST))?
            .split_once('>')
            .map(|(inner, _)| inner);
    }
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().take(LONGEST) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(&text[..at]),
            b')' => depth -= 1,
            b' ' | b'\t' => return Some(&text[..at]),
            _ => {}
        }
    }
    None
}

/// The path of a destination; `None` for another place, or for a template such as `{{file}}.md`.
fn path(destination: &str) -> Option<String> {
    let scheme = |prefix: &str| {
        prefix.starts_with(|c: char| c.is_ascii_alphabetic())
            && prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let elsewhere = destination.starts_with(['/', '#', '?', '~', '\\'])
        || destination.split_once(':').is_some_and(|(prefix, _)| scheme(prefix))
        || destination.contains(['{', '}', '<', '>', '$', '*', '|', '…'])
        || destination.contains("...");
    let path =
        destination.split(['#', '?']).next().filter(|path| !elsewhere && !path.is_empty())?;
    Some(decode(path))
}

/// Decodes percent escapes. Text that would not be UTF-8 afterwards stays unchanged.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits
            .filter(|digits| *first == b'%' && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            Some(digits) => {
                bytes.extend(u8::from_str_radix(digits, 16));
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Resolves a target in a file of `folder` to a path relative to the source's root; `None` if it
/// leaves the source.
pub fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        find(text, 0).into_iter().map(|found| found.target).collect()
    }

    #[test]
    fn finds_links_to_files() {
        let rows: &[(&str, &[&str])] = &[
            ("[a](b.md)", &["b.md"]),
            ("![a](img/b.png \"title\") and [c]( d.md )", &["img/b.png", "d.md"]),
            ("[a](<b c.md>)", &["b c.md"]),
            ("[a](b%20c.md)", &["b c.md"]),
            ("[a](b%C3%A9.md)", &["bé.md"]),
            ("[a](b%ff.md)", &["b%ff.md"]),
            ("[a](100%)", &["100%"]),
            ("[a](b.md#part)", &["b.md"]),
            ("[a](b.md?raw=1)", &["b.md"]),
            ("[a](b_(c).md)", &["b_(c).md"]),
            ("[![a](b.png)](c.md)", &["b.png", "c.md"]),
            ("[a](./b.md)", &["./b.md"]),
            ("[a](../b.md)", &["../b.md"]),
            // Elsewhere, or nowhere.
            ("[a](#part)", &[]),
            ("[a](https://example.org/b.md)", &[]),
            ("[a](mailto:b@example.org)", &[]),
            ("[a](//example.org)", &[]),
            ("[a](/etc/b.md)", &[]),
            ("[a](~/b.md)", &[]),
            ("[a]()", &[]),
            ("[a]({{file}}.md)", &[]),
            ("[a](<file>)", &["file"]),
            ("[a](docs/...)", &[]),
            ("a](b.md)", &[]),
            ("[a](b.md", &[]),
            ("[a] (b.md)", &[]),
            // Code.
            ("`[a](b.md)`", &[]),
            ("``x ` [a](b.md)`` [c](d.md)", &["d.md"]),
            ("` [a](b.md)", &["b.md"]),
            ("```\n[a](b.md)\n```\n[c](d.md)", &["d.md"]),
            ("1. x\n\n     ~~~\n     [a](b.md)\n     ~~~\n", &[]),
            ("text only", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(targets(text), *expected, "{text}");
        }
        assert_eq!(targets(&format!("[a]({})", "b".repeat(LONGEST))), [""; 0]);
    }

    #[test]
    fn says_where_they_are() {
        let text = "---\n[x](y.md)\n---\nä [b](c.md)\r\n[d](e.md)\r\n";
        let found: Vec<_> =
            find(text, 18).into_iter().map(|r| (r.target, r.line, r.column)).collect();
        assert_eq!(found, [("c.md".to_owned(), 4, 7), ("e.md".to_owned(), 5, 5)]);
    }

    #[test]
    fn resolves_paths() {
        let rows = [
            ("a/b", "c.md", Some("a/b/c.md")),
            ("a/b", "./c//d/", Some("a/b/c/d")),
            ("a/b", "../c.md", Some("a/c.md")),
            ("a", "../../c.md", None),
            ("", "c.md", Some("c.md")),
            ("a", ".", Some("a")),
        ];
        for (folder, target, expected) in rows {
            assert_eq!(resolve(folder, target).as_deref(), expected, "{folder} {target}");
        }
    }
}
