//! Finds the block between two `---` lines.

use super::{Error, ErrorKind, Place, MAX_BLOCK};
use memchr::memmem;
use std::ops::Range;

/// The two parts of a document, as byte offsets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub block: Option<Range<usize>>,
    pub body_offset: usize,
}

/// Finds the block. A line inside it that is indented, or has more than the dashes, does not close
/// it, since values and block scalars may contain such lines.
pub(super) fn split(text: &str) -> Result<Split, Error> {
    let start = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let Some(after_open) = fence_end(text, start) else {
        return Ok(Split { block: None, body_offset: start });
    };
    // A file without a closing line may have any size. Only the longest possible block is searched.
    let limit = after_open.saturating_add(MAX_BLOCK).min(text.len());
    let window = &text.as_bytes()[after_open - 1..(limit + 3).min(text.len())];
    let closing = memmem::find_iter(window, b"\n---").find_map(|at| {
        let line = after_open + at;
        fence_end(text, line).map(|end| (line, end))
    });
    match closing {
        Some((line, end)) => Ok(Split { block: Some(after_open..line), body_offset: end }),
        None if limit < text.len() => Err(Error::new(
            ErrorKind::TooLarge,
            "expected the closing `---` within 1 MiB of the opening one, got none",
            Place { line: 1, column: 1, offset: start },
            "close the frontmatter with a line that is only `---`, and keep long text in the body",
        )),
        None => Err(Error::new(
            ErrorKind::Unclosed,
            "expected a closing `---` for the frontmatter opened here, got the end of the text",
            Place { line: 1, column: 1, offset: start },
            "add a line that is only `---` after the last field",
        )),
    }
}

/// Where the next line begins, if this line is a fence: `---`, blanks, the end of the line. After a
/// fence without a line break, the next line begins at the end of the text.
fn fence_end(text: &str, line: usize) -> Option<usize> {
    let rest = text[line..].strip_prefix("---")?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    match &rest.as_bytes()[blanks..] {
        [] => Some(text.len()),
        [b'\n', ..] => Some(line + 3 + blanks + 1),
        [b'\r', b'\n', ..] => Some(line + 3 + blanks + 2),
        [b'\r'] => Some(text.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block and the body, or the error's kind.
    fn parts(text: &str) -> Result<(Option<&str>, &str), ErrorKind> {
        match split(text) {
            Ok(Split { block, body_offset }) => {
                Ok((block.map(|range| &text[range]), &text[body_offset..]))
            }
            Err(error) => Err(error.kind),
        }
    }

    #[test]
    fn the_block_is_between_two_fences() {
        let cases: &[(&str, (Option<&str>, &str))] = &[
            ("---\na: 1\n---\nbody\n", (Some("a: 1\n"), "body\n")),
            ("---\r\na: 1\r\n---\r\nbody\r\n", (Some("a: 1\r\n"), "body\r\n")),
            ("\u{FEFF}---\na: 1\n---\nbody", (Some("a: 1\n"), "body")),
            ("\u{FEFF}body", (None, "body")),
            ("---  \na: 1\n---\t \nbody", (Some("a: 1\n"), "body")),
            ("---\na: 1\n---", (Some("a: 1\n"), "")),
            ("---\na: 1\n---\n", (Some("a: 1\n"), "")),
            ("---\na: 1\n---\n\n\nbody", (Some("a: 1\n"), "\n\nbody")),
            ("---\n---\nbody", (Some(""), "body")),
            ("---\n---", (Some(""), "")),
            ("---\n\n---\nbody", (Some("\n"), "body")),
            ("---\na: x --- y\n---\n", (Some("a: x --- y\n"), "")),
            ("---\na: |\n  ---\n---\nb", (Some("a: |\n  ---\n"), "b")),
            ("---\na: 1\n----\n---\nb", (Some("a: 1\n----\n"), "b")),
            ("---\na: 1\n--- # x\n---\nb", (Some("a: 1\n--- # x\n"), "b")),
            ("---\na: 1\n---\nb\n---\nc", (Some("a: 1\n"), "b\n---\nc")),
            ("---\na: 1\n...\n---\nb", (Some("a: 1\n...\n"), "b")),
            ("---\r\n---\r", (Some(""), "")),
            ("", (None, "")),
            ("body", (None, "body")),
            ("\n---\na: 1\n---\n", (None, "\n---\na: 1\n---\n")),
            (" ---\na: 1\n---\n", (None, " ---\na: 1\n---\n")),
            ("----\na: 1\n---\n", (None, "----\na: 1\n---\n")),
            ("--- x\na: 1\n---\n", (None, "--- x\na: 1\n---\n")),
            ("--\na: 1\n--\n", (None, "--\na: 1\n--\n")),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), Ok(*expected), "{text:?}");
        }
    }

    #[test]
    fn an_open_block_is_an_error() {
        for text in [
            "---",
            "---\n",
            "---\r\n",
            "---\na: 1\n",
            "---\na: 1\n ---\n",
            "---\na: 1\n...\n",
            "---\na: 1\n--- x",
        ] {
            assert_eq!(parts(text), Err(ErrorKind::Unclosed), "{text:?}");
        }
    }

    #[test]
    fn the_longest_block_is_a_mebibyte() {
        let document = |length: usize| format!("---\n{}\n---\nbody", "#".repeat(length - 1));
        assert!(parts(&document(MAX_BLOCK)).is_ok());
        assert_eq!(parts(&document(MAX_BLOCK + 1)), Err(ErrorKind::TooLarge));
        assert_eq!(parts(&format!("---\n{}", "a: 1\n".repeat(1 << 20))), Err(ErrorKind::TooLarge));
    }
}
