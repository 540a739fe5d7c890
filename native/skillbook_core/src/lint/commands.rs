//! Finds the commands in a page: in `cmd` blocks anywhere, and as lines of Usage and Examples.

use std::borrow::Cow;
use std::ops::Range;

use crate::page::declaration::flag_name;
use crate::page::sections;
use crate::text::error::Kind;
use crate::text::extract::{extract, Unclosed};
use crate::text::fence::{self, closes, opener};
use crate::text::{command, words};

/// How many lines a command outside of a block may have.
const LONGEST: usize = 40;

/// The part of a page that contains a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Usage,
    Examples,
    Other,
}

/// A command in a page, unparsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageCommand<'a> {
    /// Its offset in the body, in bytes.
    pub offset: usize,
    pub text: Cow<'a, str>,
    pub part: Part,
}

impl PageCommand<'_> {
    /// The first word.
    pub fn name(&self) -> &str {
        first_word(&self.text)
    }

    /// Whether it is a synopsis with placeholders, such as `[--to <name>]`, rather than a command
    /// to run.
    pub fn is_synopsis(&self) -> bool {
        self.part == Part::Usage
            && (self.text.contains(['<', '[', '{', '|', '…']) || self.text.contains("..."))
    }
}

fn first_word(text: &str) -> &str {
    text.split([' ', '\t', '\n']).next().unwrap_or(text)
}

/// The commands of a page, in order. A line of Usage or Examples is a command if `begins` accepts
/// its first word.
pub(super) fn commands<'a>(body: &'a str, begins: impl Fn(&str) -> bool) -> Vec<PageCommand<'a>> {
    let part = |title| sections::section(body, title).map(|text| (fence::offset(body, text), text));
    let parts = [
        (Part::Usage, part("usage")),
        (Part::Examples, part("examples").or_else(|| part("example"))),
    ];
    let ranges = parts
        .map(|(part, found)| (part, found.map_or(0..0, |(start, text)| start..start + text.len())));
    let part_of = |offset: usize| {
        let found = ranges.iter().find(|(_, range)| range.contains(&offset));
        found.map_or(Part::Other, |(part, _)| *part)
    };

    let mut all: Vec<PageCommand<'a>> = Vec::new();
    let mut after = 0;
    if let Ok(found) = extract(body, Unclosed::Run) {
        for text in found.commands {
            let offset = match &text {
                Cow::Borrowed(text) => fence::offset(body, text),
                Cow::Owned(text) => {
                    let line = text.lines().next().unwrap_or_default();
                    after + body[after..].find(line).unwrap_or(0)
                }
            };
            after = offset;
            all.push(PageCommand { offset, text, part: part_of(offset) });
        }
    }
    for (part, range) in &ranges {
        lines(body, range.clone(), &begins, |offset, text| {
            all.push(PageCommand { offset, text: Cow::Borrowed(text), part: *part });
        });
    }
    all.sort_by_key(|command| command.offset);
    all
}

/// Calls `found` for the lines of a section that are commands outside of `cmd` blocks.
fn lines<'a>(
    body: &'a str,
    section: Range<usize>,
    begins: impl Fn(&str) -> bool,
    mut found: impl FnMut(usize, &'a str),
) {
    let mut at = section.start;
    let mut open = None;
    while at < section.end {
        let end = memchr::memchr(b'\n', &body.as_bytes()[at..])
            .map_or(body.len(), |length| at + length + 1);
        let line = &body[at..end];
        let bare = line.trim_end_matches(['\n', '\r']);
        let mut next = end;
        match open {
            Some((fence, _)) if closes(bare, fence) => open = None,
            Some((_, true)) => {}
            None if opener(bare).is_some() => {
                open = opener(bare).map(|opener| (opener.fence, opener.is_cmd()))
            }
            Some((_, false)) | None => {
                let text = marked(bare.trim());
                if begins(first_word(text)) {
                    let offset = fence::offset(body, text);
                    let text = whole(body, offset..offset + text.len(), section.end);
                    found(offset, text);
                    next = end.max(offset + text.len());
                }
            }
        }
        at = next;
    }
}

/// A line without a list marker, a prompt and the marks of inline code around it.
fn marked(line: &str) -> &str {
    let line =
        line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let inner = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.filter(|inner| !inner.contains('`')).unwrap_or(line)
}

/// The whole command that begins with this line. It includes more lines of the section if it
/// continues in quotes, in a heredoc or after a backslash, and ends within the section.
fn whole(body: &str, line: Range<usize>, section_end: usize) -> &str {
    let first = &body[line.clone()];
    let goes_on = |text: &str| match words::split(text) {
        Ok(_) => text.ends_with('\\'),
        Err(error) => matches!(error.kind(), Kind::UnclosedQuote | Kind::UnclosedHeredoc),
    };
    // A JSON object is always on one line here, and a single quote inside it opens nothing.
    if command::parse(first).is_ok() && !first.ends_with('\\') || !goes_on(first) {
        return first;
    }
    let mut end = line.end;
    for _ in 0..LONGEST {
        if end >= section_end {
            break;
        }
        let next = end + 1;
        end = memchr::memchr(b'\n', &body.as_bytes()[next..section_end])
            .map_or(section_end, |length| next + length);
        let text = &body[line.start..end];
        if !goes_on(text) {
            return text;
        }
    }
    first
}

/// The flags of a synopsis, each with its offset.
pub(super) fn synopsis_flags(text: &str) -> Vec<(usize, &str)> {
    let starts = text
        .match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'));
    let flags = starts.map(|(at, _)| (at, flag_name(&text[at + 2..])));
    flags.filter(|(_, name)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(body: &str) -> Vec<(usize, String, Part)> {
        let found = commands(body, |word| word.starts_with("mail."));
        found
            .into_iter()
            .map(|command| (command.offset, command.text.into_owned(), command.part))
            .collect()
    }

    #[test]
    fn finds_commands() {
        let row = |offset, text: &str, part| (offset, text.to_owned(), part);
        let rows = [
            (
                "bare",
                "## Usage\n\nmail.send --to <a>\n",
                vec![row(10, "mail.send --to <a>", Part::Usage)],
            ),
            ("a sentence", "## Usage\n\nWrite mail.send --to a\n", vec![]),
            ("another section", "## Behavior\n\nmail.send\n", vec![]),
            (
                "inline code",
                "## Examples\n- `mail.send --to a`\n",
                vec![row(15, "mail.send --to a", Part::Examples)],
            ),
            (
                "indented",
                "## Examples\n\n    mail.send\n",
                vec![row(17, "mail.send", Part::Examples)],
            ),
            (
                "a fence",
                "## Example\n```sh\n$ mail.send\n```\n",
                vec![row(19, "mail.send", Part::Examples)],
            ),
            (
                "a cmd block",
                "## Examples\n```cmd\nmail.send\nother\n```\n",
                vec![row(19, "mail.send", Part::Examples), row(29, "other", Part::Examples)],
            ),
            (
                "a cmd block elsewhere",
                "text\n```cmd\nother a\n```\n",
                vec![row(12, "other a", Part::Other)],
            ),
            (
                "two lines in quotes",
                "## Examples\nmail.send --body \"a\nb\"\nmail.read\n",
                vec![
                    row(12, "mail.send --body \"a\nb\"", Part::Examples),
                    row(35, "mail.read", Part::Examples),
                ],
            ),
            (
                "a heredoc",
                "## Examples\nmail.send --body <<E\na\nE\n",
                vec![row(12, "mail.send --body <<E\na\nE", Part::Examples)],
            ),
            (
                "a backslash",
                "## Examples\nmail.send \\\n  --to a\n",
                vec![row(12, "mail.send \\\n  --to a", Part::Examples)],
            ),
            (
                "never closed",
                "## Examples\nmail.send --body <<E\na\n",
                vec![row(12, "mail.send --body <<E", Part::Examples)],
            ),
        ];
        for (case, body, expected) in rows {
            assert_eq!(all(body), expected, "{case}");
        }
    }

    #[test]
    fn reads_the_flags_of_a_synopsis() {
        let rows: [(&str, &[(usize, &str)]); 4] = [
            ("a.b --to <a> [--cc <b>]", &[(4, "to"), (14, "cc")]),
            ("a.b (--x|--y-z=1)", &[(5, "x"), (9, "y-z")]),
            ("a.b -- --- a--b", &[]),
            ("a.b", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(synopsis_flags(text), expected, "{text}");
        }
    }
}
