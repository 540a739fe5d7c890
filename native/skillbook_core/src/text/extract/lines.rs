//! Lines of the buffer, and where a command begins on a line.

use memchr::memchr;

use crate::text::fence;
use crate::text::words::{leading_blanks, prompt_len};

/// A line of the buffer.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) next: usize,
}

/// The line that begins at `start`; `None` if its end is missing.
///
/// Always inlined: returning four words through memory takes longer than the search.
#[inline(always)]
pub(super) fn line_at(buf: &str, start: usize, search: usize, eof: bool) -> Option<Line> {
    match memchr(b'\n', &buf.as_bytes()[search..]) {
        Some(found) => {
            let next = search + found + 1;
            Some(Line { start, end: line_end(buf, next, start), next })
        }
        None => eof.then(|| Line { start, end: line_end(buf, buf.len(), start), next: buf.len() }),
    }
}

/// The end of the line whose successor begins at `next`, without its line break.
#[inline]
pub(super) fn line_end(buf: &str, next: usize, start: usize) -> usize {
    match &buf.as_bytes()[start..next] {
        [.., b'\r', b'\n'] => next - 2,
        [.., b'\r' | b'\n'] => next - 1,
        _ => next,
    }
}

/// Where the command on a line begins, after blanks and a prompt; `None` if the line is blank or a
/// comment.
pub(super) fn command_on_line(buf: &str, start: usize, end: usize) -> Option<usize> {
    let line = &buf[start..end];
    let line = &line[leading_blanks(line)..];
    let rest = &line[prompt_len(line)..];
    let rest = &rest[leading_blanks(rest)..];
    // The tokenizer also drops one prompt. Of two, the second belongs to the command.
    let line = if prompt_len(rest) == 0 { rest } else { line };
    let blank = line.is_empty() || line.starts_with('#');
    (!blank).then_some(end - line.len())
}

/// How many bytes of the block's indentation a line has.
pub(super) fn block_indent(line: &str, indent: usize) -> usize {
    line.bytes().take(indent).take_while(|byte| fence::is_blank(*byte)).count()
}
