//! Fence lines: which lines open and close a fenced code block.
//!
//! The rules are CommonMark's for fenced code blocks (section 4.5), with three exceptions. Models
//! indent blocks and put them into lists, so any indentation is allowed and a list marker may come
//! first. A whole block may be on one line: ` ```cmd NAME --flag value``` `.

/// The characters of an opening fence. The closing line repeats the character at least as often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    pub mark: u8,
    pub len: usize,
}

/// A line that may open a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opener<'a> {
    pub fence: Fence,
    /// Blanks before the fence, in bytes.
    pub indent: usize,
    /// The info string, trimmed.
    pub info: &'a str,
    /// The command, if the whole block is on this line.
    pub inline: Option<&'a str>,
}

pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The text without leading blanks.
///
/// This and the functions below go byte by byte: `trim_start_matches` with a pattern of characters
/// takes longer than the rest of a short line.
pub(super) fn trim_start(text: &str) -> &str {
    let blanks = text.bytes().take_while(|byte| is_blank(*byte)).count();
    &text[blanks..]
}

/// The text without trailing blanks.
pub(super) fn trim_end(text: &str) -> &str {
    let blanks = text.bytes().rev().take_while(|byte| is_blank(*byte)).count();
    &text[..text.len() - blanks]
}

pub(super) fn trim_blanks(text: &str) -> &str {
    trim_start(trim_end(text))
}

/// The offset of `part`, a slice of `whole`.
pub(crate) fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Reads three or more backticks or tildes: their indentation, the fence and the rest of the line.
fn run(line: &str) -> Option<(usize, Fence, &str)> {
    let bytes = line.as_bytes();
    let indent = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let mark = *bytes.get(indent)?;
    if mark != b'`' && mark != b'~' {
        return None;
    }
    let len = bytes[indent..].iter().take_while(|byte| **byte == mark).count();
    (len >= 3).then(|| (indent, Fence { mark, len }, &line[indent + len..]))
}

/// Whether a line begins with a fence.
pub(super) fn is_fence(line: &str) -> bool {
    run(line).is_some()
}

/// Reads a line as an opening fence.
///
/// As in CommonMark, an info string after backticks contains no backtick, so that inline code at
/// the start of a line opens nothing. A whole `cmd` block on one line is the exception.
pub(crate) fn opener(line: &str) -> Option<Opener<'_>> {
    let (indent, fence, rest) = run(line)?;
    let info = trim_blanks(rest);
    let whole = Opener { fence, indent, info, inline: None };
    if info.as_bytes().last() == Some(&fence.mark) {
        let inner = info.trim_end_matches(fence.mark as char);
        let closed = info.len() - inner.len() >= fence.len;
        // With another fence in between, the line is text with several pieces of inline code.
        let whole_line = closed && !has_run(inner, fence);
        let command =
            after_cmd(inner).map(trim_blanks).filter(|command| whole_line && !command.is_empty());
        if command.is_some() {
            return Some(Opener { inline: command, ..whole });
        }
    }
    (fence.mark != b'`' || !info.contains('`')).then_some(whole)
}

/// Reads a line of prose as an opening fence, which a list marker (`- `, `1. `) may precede.
pub(super) fn text_opener(line: &str) -> Option<Opener<'_>> {
    let mark = list_mark(line).unwrap_or(0);
    opener(&line[mark..]).map(|opener| Opener { indent: mark + opener.indent, ..opener })
}

/// The length of a list marker, with the blanks before it and one after it.
pub(super) fn list_mark(line: &str) -> Option<usize> {
    let indent = line.len() - trim_start(line).len();
    let rest = &line[indent..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match rest.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=MAX_DIGITS).contains(&digits) => digits + 1,
        _ => return None,
    };
    rest.as_bytes().get(mark).is_some_and(|byte| is_blank(*byte)).then_some(indent + mark + 1)
}

/// The most digits of an ordered list's number (CommonMark, section 5.2).
const MAX_DIGITS: usize = 9;

/// Whether a line that begins like this can still become a fence line: it has only blanks, a list
/// marker, or the beginning of one.
pub(super) fn may_open(start: &str) -> bool {
    let rest = &start[list_mark(start).unwrap_or(0)..];
    let rest = trim_blanks(rest);
    let digits = rest.trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() <= MAX_DIGITS + 1 && matches!(digits, "" | "." | ")" | "-" | "*" | "+")
}

/// Whether the text contains the fence, or a longer one.
fn has_run(text: &str, fence: Fence) -> bool {
    text.as_bytes()
        .chunk_by(|a, b| a == b)
        .any(|run| run[0] == fence.mark && run.len() >= fence.len)
}

/// Whether a line closes the block that `fence` opened.
pub(crate) fn closes(line: &str, fence: Fence) -> bool {
    matches!(run(line), Some((_, found, rest))
        if found.mark == fence.mark && found.len >= fence.len && trim_blanks(rest).is_empty())
}

/// The rest of a line that begins with a run of characters long enough to close `fence`, and where
/// that rest begins.
pub(super) fn after_run(line: &str, fence: Fence) -> Option<(usize, &str)> {
    let (_, found, rest) = run(line)?;
    (found.mark == fence.mark && found.len >= fence.len).then(|| (line.len() - rest.len(), rest))
}

/// The rest of an info string after the word `cmd`, in any case.
pub(super) fn after_cmd(info: &str) -> Option<&str> {
    let word = info.get(..3).filter(|word| word.eq_ignore_ascii_case("cmd"))?;
    let rest = &info[word.len()..];
    (rest.is_empty() || is_blank(rest.as_bytes()[0])).then_some(rest)
}

impl Opener<'_> {
    pub(crate) fn is_cmd(&self) -> bool {
        after_cmd(self.info).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openers() {
        // line, fence length (0: opens nothing), a command block?
        let rows = [
            ("```cmd", 3, true),
            ("``cmd", 0, false),
            ("  \t````  CMD x", 4, true),
            ("~~~cmd", 3, true),
            ("```cmdx", 3, false),
            ("```", 3, false),
            ("```ruby", 3, false),
            ("```cmd``` is a fence", 0, false),
            ("```cmd```", 0, false),
            ("```cmd a```", 3, true),
            ("```cmd a ``` ", 3, true),
            ("```cmd a``", 0, false),
            ("```cmd a `b` ``c`` ```", 3, true),
            ("```cmd a``` or ```cmd b```", 0, false),
            ("```cmd a```` b```", 0, false),
            ("````cmd a ```b``` ````", 4, true),
            ("~~~cmd a~~~", 3, true),
            ("~~~ `a`", 3, false),
            ("text ```cmd", 0, false),
        ];
        for (line, len, cmd) in rows {
            let found = opener(line);
            assert_eq!(found.map_or(0, |opener| opener.fence.len), len, "{line}");
            assert_eq!(found.is_some_and(|opener| opener.is_cmd()), cmd, "{line}");
        }
        assert_eq!(opener("```cmd a b ```").unwrap().inline, Some("a b"));
        assert_eq!(opener("```cmd a b").unwrap().inline, None);
    }

    #[test]
    fn closers() {
        let rows = [
            ("```", true),
            ("````", true),
            ("  ``` \t", true),
            ("``", false),
            ("~~~", false),
            ("``` x", false),
            ("x ```", false),
        ];
        for (line, expected) in rows {
            assert_eq!(closes(line, Fence { mark: b'`', len: 3 }), expected, "{line}");
        }
    }
}
