//! Rewords the YAML library's errors for authors: the message names the text in the file, and a
//! hint says how to write it.

use super::{expanded, Failure};
use crate::page::frontmatter::ErrorKind;

/// The library's error for a key that is not a scalar ends with this text of the visitor.
pub(super) const KEY: &str = "the text of a key";

const QUOTE: &str = "put the value in quotes";

/// Rewords an error of the library.
pub(super) fn explain(block: &str, complaint: &str, offset: usize) -> Failure {
    // The form is "<problem> at line 2 column 5, while <context> at line 1 column 7". Either place
    // may be missing.
    let (problem, context) = complaint.split_once(", while ").unwrap_or((complaint, ""));
    let problem = problem
        .split(" at line ")
        .next()
        .unwrap_or(problem)
        .split(" at position ")
        .next()
        .unwrap_or(problem);
    let here = &block[offset..];
    let character = here.chars().next();
    let line_start = block[..offset].rfind('\n').map_or(0, |at| at + 1);
    let invalid = |message: &str, hint| Failure::new(ErrorKind::Invalid, message, hint, offset);
    let begins = |character: char| {
        let message = format!("an unquoted value may not begin with `{character}`");
        Failure::new(ErrorKind::Invalid, message, QUOTE, offset)
    };
    match problem {
        "mapping values are not allowed in this context" => {
            if [": ", ":\t"].iter().any(|colon| block[line_start..offset].contains(colon)) {
                invalid("an unquoted value may not contain a colon followed by a space", QUOTE)
            } else {
                invalid(
                    "a `key: value` is not allowed here",
                    "check the indentation of this line and the one before it",
                )
            }
        }
        "found character that cannot start any token" => match character {
            Some('\t') => invalid("a line may not be indented with a tab", "indent with spaces"),
            Some(character) => begins(character),
            None => invalid("the value is missing", QUOTE),
        },
        "found a tab character that violates indentation"
        | "found a tab character where an indentation space is expected" => {
            invalid("a line may not be indented with a tab", "indent with spaces")
        }
        "did not find expected alphabetic or numeric character" => {
            begins(if context.starts_with("scanning an anchor") { '&' } else { '*' })
        }
        "unknown anchor" => {
            let name: String = here
                .chars()
                .skip(1)
                .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
                .collect();
            let message =
                format!("`*{name}` stands for the anchor `&{name}`, which is not defined");
            let mut failure = Failure::new(ErrorKind::Invalid, message, QUOTE, offset);
            failure.unknown_anchor = Some(name);
            failure
        }
        "found unexpected end of stream" => {
            // The library leaves out a place at the beginning of the block.
            let opened = context_offset(block, context).unwrap_or(0);
            let hint = "close it, or put the whole value in the other kind of quotes";
            Failure::new(ErrorKind::Invalid, "the quote opened here is never closed", hint, opened)
        }
        "found unknown escape character"
        | "did not find expected hexadecimal number"
        | "found invalid Unicode character escape code" => invalid(
            "a backslash in double quotes begins an escape, and YAML has no such escape",
            "use single quotes",
        ),
        "did not find expected ',' or ']'" => invalid(
            "expected `,` or `]` after an item of a list",
            "close the list, or put the value in quotes if it is text",
        ),
        "did not find expected ',' or '}'" => invalid(
            "expected `,` or `}` after a pair of a mapping",
            "close it, or put the value in quotes if it is text",
        ),
        "did not find expected key" => invalid(
            "expected a line `key: value`",
            "check this line's indentation, and the quotes in the line before it",
        ),
        "could not find expected ':'" => {
            invalid("expected a colon and a space after the key", "write `key: value`")
        }
        "did not find expected '-' indicator" => invalid(
            "expected another `- ` item",
            "check the indentation of this line and the one before it",
        ),
        "block sequence entries are not allowed in this context" => {
            invalid("a `- ` item is not allowed here", "begin the list on the line after its key")
        }
        "did not find expected comment or line break" => invalid(
            "the text after `|` or `>` must begin on the next line",
            "move the text there, or put it in quotes",
        ),
        "did not find expected node content" => invalid("expected a value", QUOTE),
        "repetition limit exceeded" => expanded(offset),
        _ if problem.contains("invalid value") => {
            invalid("the value does not fit its tag", "remove the tag, or put the value in quotes")
        }
        _ if problem.ends_with(KEY) => invalid(
            "a key must be text, but this one is a list or a mapping",
            "put a value that begins with `{` or `[` in quotes",
        ),
        _ if context.starts_with("scanning a directive") => begins('%'),
        _ if context.starts_with("scanning a tag") || context.starts_with("parsing a tag") => {
            begins('!')
        }
        _ if problem.contains("more than one document") || problem.contains("<document start>") => {
            let ends = |line: &str| line.starts_with("...") || line.starts_with("---");
            let at = block
                .split_inclusive('\n')
                .take_while(|line| !ends(line))
                .map(str::len)
                .sum::<usize>();
            let hint = "remove the line that ends the first";
            let offset = if at < block.len() { at } else { offset };
            Failure::new(
                ErrorKind::Invalid,
                "expected one YAML document, but another one begins here",
                hint,
                offset,
            )
        }
        other => Failure::new(ErrorKind::Invalid, format!("this is not YAML: {other}"), "", offset),
    }
}

/// The offset of the place in a context, in the block.
fn context_offset(block: &str, context: &str) -> Option<usize> {
    let (_, place) = context.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(" column ")?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let text = block.split('\n').nth(line.checked_sub(1)?)?;
    let start = text.as_ptr() as usize - block.as_ptr() as usize;
    text.char_indices().nth(column.checked_sub(1)?).map(|(at, _)| start + at)
}
