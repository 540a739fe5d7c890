//! Command blocks: the line that opens one, its commands line by line, and the line that closes it.
//!
//! Three lines can end a block, in this order of precedence:
//!
//! 1. a fence where an earlier reading of the block went wrong (`forced_end`);
//! 2. the closing fence, or the next block's opening fence where the closing one was forgotten,
//!    unless an open heredoc or a code block inside a quote contains it;
//! 3. the end of the text, which closes the block or cuts it off, as [`Unclosed`] says.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::lines::{block_indent, command_on_line, line_at, Line};
use super::open_command::Open;
use super::{Event, Machine, Step, Unclosed};
use crate::text::error::{Error, Kind};
use crate::text::fence::{self, Fence};
use crate::text::scan::{self, Scanner};
use crate::text::words::command_start;
use crate::text::MAX_COMMANDS;

/// An open command block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) fence: Fence,
    pub(super) indent: usize,
    /// The rest of the opening line after `cmd`. It is the command if the block has no other.
    pub(super) info: String,
    /// The fence at this offset closes the block, even inside an open quote or heredoc.
    pub(super) forced_end: Option<usize>,
    /// The command that continues on the next line. Boxed, because few commands do.
    pub(super) open: Option<Box<Open>>,
}

impl Machine {
    /// Opens a block at this line, or reads the whole block if it is on one line.
    pub(super) fn open_block<'b>(
        &mut self,
        buf: &'b str,
        line: Line,
        opener: fence::Opener<'b>,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        self.at = line.next;
        self.line_start = true;
        self.text.gap();
        let block = Block {
            fence: opener.fence,
            indent: opener.indent,
            info: String::new(),
            forced_end: None,
            open: None,
        };
        match opener.inline {
            Some(command) => {
                let start = line.start + fence::offset(&buf[line.start..line.end], command);
                let end = start + command.len();
                if let Some(start) = command_on_line(buf, start, end) {
                    self.count(start..end)?;
                    out(Event::Command(block.command(&buf[start..end])));
                }
                out(Event::Closed);
            }
            None => {
                let info = fence::after_cmd(opener.info).map_or("", fence::trim_blanks).to_owned();
                self.block = Some(Block { info, ..block });
            }
        }
        Ok(())
    }

    /// Reads the next line of the block.
    pub(super) fn read_block_line<'b>(
        &mut self,
        buf: &'b str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        let line = if eof && self.at == buf.len() { None } else { self.next_line(buf, eof) };
        let Some(line) = line else {
            return if eof { self.end_of_text(buf, out) } else { Ok(Step::Wait) };
        };
        let Some(block) = &mut self.block else { return Ok(Step::More) };
        let content = &buf[line.start..line.end];
        // Most lines are not fences, and one look at the first character tells them apart.
        let fenced = matches!(fence::trim_start(content).as_bytes(), [b'`' | b'~', ..]);
        let closed = match &mut block.open {
            open if block.forced_end.is_some_and(|end| end <= line.start) => {
                let possible_end = open.as_ref().and_then(|open| open.possible_end);
                Some(possible_end.map_or(line.start, |possible_end| possible_end.line))
            }
            Some(open) if open.scan.in_heredoc() => {
                open.heredoc_line(block.fence, block.indent, content, line.start)
            }
            // Inside a code block in a quote, fences belong to the quoted text.
            Some(open) if open.scan.in_nested() => None,
            _ => (fenced && ends_block(content, block.fence)).then_some(line.start),
        };
        if let Some(end) = closed {
            return self.close_before(buf, end, out);
        }
        let start = line.start + block_indent(content, block.indent);
        match block.open.take() {
            Some(mut open) => {
                if self.scan_line(&mut open, buf, start, line.next, out)? {
                    self.keep_open(open);
                }
            }
            None => {
                self.at = line.next;
                if let Some(start) = command_on_line(buf, start, line.end) {
                    block.info.clear();
                    let command = &buf[start..line.end];
                    // Most commands have nothing that could continue them. They need no scanner.
                    if scan::is_whole(command.as_bytes()) {
                        self.count(start..line.end)?;
                        out(Event::Command(Cow::Borrowed(fence::trim_end(command))));
                        return Ok(Step::More);
                    }
                    let mut open = Open {
                        start,
                        scan: Scanner::new(self.guess_budget),
                        nested: None,
                        possible_end: None,
                        missed_fence: None,
                    };
                    // The tokenizer skips a prompt too, and both must scan the same bytes.
                    let from = start + command_start(command);
                    if self.scan_line(&mut open, buf, from, line.next, out)? {
                        self.keep_open(Box::new(open));
                    }
                } else if let Some(comment) = content.find('#') {
                    out(Event::Comment(&content[comment..]));
                }
            }
        }
        Ok(Step::More)
    }

    pub(super) fn keep_open(&mut self, open: Box<Open>) {
        if let Some(block) = &mut self.block {
            block.open = Some(open);
        }
    }

    pub(super) fn emit<'b>(
        &mut self,
        buf: &'b str,
        range: Range<usize>,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        let Some(block) = &self.block else { return Ok(()) };
        let command = block.command(&buf[range.clone()]);
        self.count(range)?;
        out(Event::Command(command));
        Ok(())
    }

    /// Counts a command of the text.
    fn count(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Err(Error::whole(
                Kind::TooManyCommands,
                self.base + range.start..self.base + range.end,
                format!("a reply may have {MAX_COMMANDS} commands, and this one has more"),
                "write fewer commands in a reply, and continue when their results are back",
            ));
        }
        Ok(())
    }

    /// Closes the block before the fence at `end`. A guess that is still open was wrong.
    fn close_before<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        if self.retreat_from(buf, end, out)? || self.reread_open(buf, end) {
            return Ok(Step::More);
        }
        self.close(buf, end, out)?;
        out(Event::Closed);
        let Some(line) = line_at(buf, end, end, true) else { return Ok(Step::More) };
        self.at = line.next;
        self.line_start = true;
        self.searched = self.at;
        // If the next block's opening fence closed this one, that block begins on the same line.
        if let Some(opener) =
            fence::opener(&buf[line.start..line.end]).filter(fence::Opener::is_cmd)
        {
            self.open_block(buf, line, opener, out)?;
        }
        Ok(Step::More)
    }

    /// Ends the block at the end of the text.
    fn end_of_text<'b>(
        &mut self,
        buf: &'b str,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        let open = self.block.as_ref().and_then(|block| block.open.as_ref());
        if let Some(possible_end) = open.and_then(|open| open.possible_end) {
            return self.close_before(buf, possible_end.line, out);
        }
        if self.retreat_from(buf, buf.len(), out)? || self.reread_open(buf, buf.len()) {
            return Ok(Step::More);
        }
        self.close(buf, buf.len(), out)?;
        out(if self.unclosed == Unclosed::Run { Event::Closed } else { Event::Cut });
        Ok(Step::Wait)
    }

    /// Emits the open command, if there is one, and leaves the block.
    fn close<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Some(open) = block.open.take() {
            self.emit(buf, open.start..end, out)?;
        // The command after `cmd` on the opening line counts only if the block has no other.
        } else if let Some(start) = command_on_line(&block.info, 0, block.info.len()) {
            let command = block.info.split_off(start);
            self.count(end..end)?;
            out(Event::Command(Cow::Owned(command)));
        }
        self.block = None;
        Ok(())
    }
}

impl Block {
    /// The command without trailing white space and without the block's indentation, with LF line
    /// ends. Borrowed where nothing changes.
    pub(super) fn command<'b>(&self, raw: &'b str) -> Cow<'b, str> {
        let blank = raw
            .bytes()
            .rev()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
            .count();
        let raw = &raw[..raw.len() - blank];
        let lines = memchr(b'\n', raw.as_bytes()).is_some();
        if !lines || (self.indent == 0 && memchr(b'\r', raw.as_bytes()).is_none()) {
            return Cow::Borrowed(raw);
        }
        let mut lines = raw.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let mut text = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            text.push('\n');
            text.push_str(&line[block_indent(line, self.indent)..]);
        }
        Cow::Owned(text)
    }
}

/// Whether a line ends the block: its closing fence, or the opening fence of another block, which
/// models write when they forget to close the first.
fn ends_block(line: &str, fence: Fence) -> bool {
    fence::closes(line, fence) || fence::opener(line).is_some_and(|opener| opener.is_cmd())
}
