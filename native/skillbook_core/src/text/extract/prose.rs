//! Text outside of command blocks: finds the line that opens the next one.
//!
//! Only a line that begins with a fence can open a block, so the search jumps from one backtick,
//! tilde or carriage return to the next and never looks at ordinary lines one by one.

use memchr::{memchr, memchr3, memrchr};

use super::lines::line_at;
use super::spacing::trim_end;
use super::{Event, Machine, Step};
use crate::text::error::Error;
use crate::text::fence::{self, Fence};

/// An open code block of another language. Commands in it are examples and do not run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeBlock {
    pub(super) fence: Fence,
    /// Where its opening line begins in the text.
    pub(super) start: usize,
    /// Its language is Markdown, where fences inside are quoted on purpose.
    pub(super) markdown: bool,
    /// It contains the opening line of a command block.
    pub(super) holds: bool,
    /// It contains a command block whose closing fence also closes this block.
    pub(super) clashes: bool,
}

impl CodeBlock {
    fn new(opener: &fence::Opener<'_>, start: usize) -> Self {
        let language = opener.info.split([' ', '\t']).next().unwrap_or_default();
        let markdown = ["markdown", "md"].iter().any(|name| language.eq_ignore_ascii_case(name));
        CodeBlock { fence: opener.fence, start, markdown, holds: false, clashes: false }
    }

    fn note(&mut self, opener: &fence::Opener<'_>) {
        if opener.is_cmd() {
            self.holds = true;
            let Fence { mark, len } = self.fence;
            self.clashes |=
                opener.fence.mark == mark && opener.fence.len >= len && opener.inline.is_none();
        }
    }
}

/// A line at the end of the buffer that may become a fence line, and is not emitted yet.
///
/// With this, a long line that comes in small chunks is not read again for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    None,
    /// The line has only blanks so far.
    Blank,
    /// The line begins with a fence, and its end is missing.
    Fence,
}

/// The reasoning that some models write before their reply. Commands in it are drafts and do not
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thought {
    /// Not decided: the reply has not begun.
    Unknown,
    /// Open, up to this closing tag.
    Open(&'static str),
    /// Closed, or never opened.
    None,
}

const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

impl Machine {
    /// Reads text up to the next command block.
    ///
    /// Carriage returns are dropped before line breaks, so that a text with CRLF line ends gives
    /// the same pieces as one with LF.
    pub(super) fn read_prose<'b>(
        &mut self,
        buf: &'b str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        let bytes = buf.as_bytes();
        if !eof && self.still_pending(bytes) {
            return Ok(Step::Wait);
        }
        // A byte order mark is not part of the first line.
        if self.base + self.at == 0 && buf.starts_with('\u{FEFF}') {
            self.at = '\u{FEFF}'.len_utf8();
        }
        match self.thought {
            Thought::Unknown => return Ok(self.detect_thought(buf, eof)),
            Thought::Open(end) => return Ok(self.read_thought(buf, end, eof, out)),
            Thought::None => {}
        }
        let mut from = self.at;
        let mut search = self.at;
        while let Some(found) =
            memchr3(b'`', b'~', b'\r', &bytes[search..]).map(|found| search + found)
        {
            // A carriage return at the end of a chunk may belong to a line break that the next
            // chunk completes.
            if bytes[found] == b'\r' {
                if found + 1 == buf.len() && !eof {
                    self.emit_prose(buf, from, found, out);
                    return Ok(Step::Wait);
                }
                search = found + 1;
                if bytes.get(search) == Some(&b'\n') {
                    self.text.emit(&buf[from..found], out);
                    from = search;
                }
                continue;
            }
            let run = bytes[found..].iter().take_while(|byte| **byte == bytes[found]).count();
            // In the middle of a line the run is inline code, which opens nothing.
            let Some(start) = self.line_start(bytes, from, found) else {
                search = found + run;
                continue;
            };
            // A run of one or two can only grow at the end of the buffer.
            if run < 3 && (found + run < buf.len() || eof) {
                search = found + run;
                continue;
            }
            let Some(line) = line_at(buf, start, self.searched.max(found), eof) else {
                self.searched = buf.len();
                self.emit_prose(buf, from, found, out);
                self.pending = if run < 3 { Pending::None } else { Pending::Fence };
                return Ok(Step::Wait);
            };
            // A line is decided once. Later runs on it cannot open or close anything.
            search = line.end;
            let content = &buf[start..line.end];
            // Inside another code block, only its closing fence counts. A command block in it is
            // noted, so that the model can be told if the outer block swallowed it by mistake.
            if let Some(other) = &mut self.code_block {
                if !fence::closes(content, other.fence) {
                    fence::text_opener(content).iter().for_each(|opener| other.note(opener));
                    continue;
                }
                // In Markdown a nested block is usually an example on purpose.
                if other.clashes && !other.markdown {
                    out(Event::Hidden(other.start..self.base + start));
                }
                self.code_block = None;
                continue;
            }
            // A fence that cannot open a block, for example because its info string has a backtick.
            let Some(opener) = fence::text_opener(content) else {
                search = found + run;
                continue;
            };
            if !opener.is_cmd() {
                self.code_block = Some(CodeBlock::new(&opener, self.base + start));
                continue;
            }
            // The blank lines before a block are removed with it.
            self.text.emit(trim_end(&buf[from..start]), out);
            self.open_block(buf, line, opener, out)?;
            return Ok(Step::More);
        }
        if eof {
            self.text.emit(trim_end(&buf[from..]), out);
            self.at = buf.len();
            if let Some(other) = self.code_block.take().filter(|other| other.holds) {
                out(Event::Hidden(other.start..self.base + buf.len()));
            }
        } else {
            self.emit_prose(buf, from, buf.len(), out);
            if self.line_start {
                self.searched = buf.len();
                self.pending = Pending::Blank;
            }
        }
        Ok(Step::Wait)
    }

    /// Decides whether the reply begins with a thought.
    fn detect_thought(&mut self, buf: &str, eof: bool) -> Step {
        // The blanks that earlier chunks ended with are not read again.
        let from = self.searched.max(self.at);
        let start = buf[from..].trim_start();
        let found = THOUGHTS.iter().find(|(open, _)| start.starts_with(open));
        if found.is_none() && !eof && THOUGHTS.iter().any(|(open, _)| open.starts_with(start)) {
            self.searched = buf.len() - start.len();
            return Step::Wait;
        }
        self.searched = self.at;
        self.thought = found.map_or(Thought::None, |(_, end)| Thought::Open(end));
        Step::More
    }

    /// Reads a thought up to its closing tag. It is part of the text for the user.
    fn read_thought<'b>(
        &mut self,
        buf: &'b str,
        end: &str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Step {
        let found = buf[self.at..].find(end);
        let to = match found {
            Some(found) => self.at + found + end.len(),
            None if eof => buf.len(),
            None => {
                // The closing tag may be cut by the end of a chunk, and so may `\r\n`.
                let mut to = buf.len().saturating_sub(end.len()).max(self.at);
                while !buf.is_char_boundary(to) {
                    to -= 1;
                }
                to - usize::from(to > self.at && buf.as_bytes()[to - 1] == b'\r')
            }
        };
        let mut from = self.at;
        for (at, _) in buf[self.at..to].match_indices("\r\n") {
            self.text.emit(&buf[from..self.at + at], out);
            from = self.at + at + 1;
        }
        self.text.emit(&buf[from..to], out);
        self.at = to;
        self.line_start = false;
        if found.is_some() {
            self.thought = Thought::None;
            return Step::More;
        }
        Step::Wait
    }

    /// Whether the pending line is still undecided with the bytes that came since.
    fn still_pending(&mut self, bytes: &[u8]) -> bool {
        let new = &bytes[self.searched..];
        let still = match self.pending {
            Pending::None => return false,
            Pending::Blank => new.iter().all(|byte| fence::is_blank(*byte)),
            Pending::Fence => memchr(b'\n', new).is_none(),
        };
        if still {
            self.searched = bytes.len();
        } else {
            self.pending = Pending::None;
        }
        still
    }

    /// The start of the line with the fence character at `found`, if only blanks and a list marker
    /// precede it.
    fn line_start(&self, bytes: &[u8], from: usize, found: usize) -> Option<usize> {
        let mut start = found;
        while start > from && fence::is_blank(bytes[start - 1]) {
            start -= 1;
        }
        if start < found {
            start = before_mark(bytes, from, start);
        }
        let starts = if start > self.at { bytes[start - 1] == b'\n' } else { self.line_start };
        starts.then_some(start)
    }

    /// Emits the text up to `to`, except the beginning of a line that may still become a fence
    /// line.
    fn emit_prose<'b>(
        &mut self,
        buf: &'b str,
        from: usize,
        to: usize,
        out: &mut impl FnMut(Event<'b>),
    ) {
        let start = memrchr(b'\n', &buf.as_bytes()[from..to]).map(|at| from + at + 1);
        let (start, starts) = match start {
            Some(start) => (start, true),
            None => (from, self.line_start || from > self.at),
        };
        self.line_start = starts && fence::may_open(&buf[start..to]);
        let end = if self.line_start { start } else { to };
        self.text.emit(&buf[from..end], out);
        self.at = end;
    }
}

/// Where the list marker that ends at `end` begins, with the blanks before it; `end` without one.
fn before_mark(bytes: &[u8], from: usize, end: usize) -> usize {
    let start = match bytes[from..end] {
        [.., b'-' | b'*' | b'+'] => end - 1,
        [.., b'0'..=b'9', b'.' | b')'] => {
            end - 1
                - bytes[from..end - 1]
                    .iter()
                    .rev()
                    .take_while(|byte| byte.is_ascii_digit())
                    .take(10)
                    .count()
        }
        _ => return end,
    };
    start - bytes[from..start].iter().rev().take_while(|byte| fence::is_blank(**byte)).count()
}
