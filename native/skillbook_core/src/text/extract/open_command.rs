//! Commands that continue over several lines, in quotes, in heredocs or after a backslash.
//!
//! Two things can go wrong, and both end with the block's closing fence:
//!
//! - A heredoc has no end line. Its text may contain fences, so the first fence that would close
//!   the block is noted (`possible_end`). When the text ends, or another `cmd` block opens, before
//!   the end line, the block closes at that fence and the heredoc is an error.
//! - A guess of the scanner fails, for example about a curly quote (see `scan`). The scanner
//!   returns to its snapshot and reads on the other way. Only the extractor knows which fence
//!   closes the block: the tokenizer later reads the same command without the block around it, and
//!   may keep a guess that the fence disproved here. So where a guess failed at such a fence and
//!   the command went on behind it, the extractor asks the tokenizer (`is_one_command`). If it
//!   would find more than one command, the block is read again and the fence closes it
//!   (`missed_fence`, `forced_end`).

use memchr::{memchr, memrchr};

use super::lines::{block_indent, line_at, line_end};
use super::{Event, Machine};
use crate::text::error::Error;
use crate::text::fence::{self, Fence};
use crate::text::scan::{LineEnd, NoWords, Scanner};
use crate::text::words::is_one_command;

/// A command that continues on the next line.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) start: usize,
    pub(super) scan: Scanner,
    /// The code block that is open inside a heredoc.
    pub(super) nested: Option<Fence>,
    /// The fence inside an open heredoc that closes the block if the heredoc has no end line.
    pub(super) possible_end: Option<PossibleEnd>,
    /// The first fence at which a guess was taken back. The tokenizer does not know which fences
    /// close the block, so its guess may include this one.
    pub(super) missed_fence: Option<usize>,
}

/// A fence in a heredoc that may close the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct PossibleEnd {
    /// Where the fence's line begins.
    pub(super) line: usize,
    /// The code block that would be open in the text after it, if it closes the block. A `cmd`
    /// block inside that code block does not count.
    pub(super) code_block: Option<Fence>,
}

impl Machine {
    /// Scans a command's line from `at` on. Returns whether the command continues after it; if not,
    /// it was emitted.
    pub(super) fn scan_line<'b>(
        &mut self,
        open: &mut Open,
        buf: &'b str,
        mut at: usize,
        mut next: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<bool, Error> {
        let mut line_start = true;
        loop {
            let end = line_end(buf, next, at);
            let line_end = open.scan.scan_line(buf, at, end, line_start, &mut NoWords);
            self.at = next;
            let resume = match line_end {
                LineEnd::Done => None,
                LineEnd::Retreat => self.take_back(open, end),
                LineEnd::Quote | LineEnd::Joined | LineEnd::Heredoc => return Ok(true),
            };
            let Some(resume) = resume else {
                if self.reread_if_several(open, buf, end) {
                    return Ok(false);
                }
                self.emit(buf, open.start..end, out)?;
                return Ok(false);
            };
            // Many guesses can fail on one long line. Searching for its end each time would be
            // quadratic.
            if resume < at {
                next = memchr(b'\n', &buf.as_bytes()[resume..])
                    .map_or(buf.len(), |len| resume + len + 1);
            }
            at = resume;
            line_start = false;
        }
    }

    /// Takes back the open guess at the end of the block. Returns whether there was one.
    pub(super) fn retreat_from<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<bool, Error> {
        let Some(block) = &mut self.block else { return Ok(false) };
        let (fence, Some(mut open)) = (block.fence, block.open.take()) else { return Ok(false) };
        let resume = self.take_back(&mut open, end);
        let closes = || {
            line_at(buf, end, end, true)
                .is_some_and(|line| fence::closes(&buf[end..line.end], fence))
        };
        if resume.is_some()
            && open.missed_fence.is_none_or(|missed_fence| end < missed_fence)
            && closes()
        {
            open.missed_fence = Some(end);
        }
        // Without a guess to take back, the command stays open, and the block's end cuts it.
        let goes_on = match resume {
            None => true,
            Some(at) => {
                let next =
                    memchr(b'\n', &buf.as_bytes()[at..]).map_or(buf.len(), |len| at + len + 1);
                self.scan_line(&mut open, buf, at, next, out)?
            }
        };
        if goes_on {
            self.keep_open(open);
        }
        Ok(resume.is_some())
    }

    /// As [`Machine::reread_if_several`], for the open command.
    pub(super) fn reread_open(&mut self, buf: &str, end: usize) -> bool {
        let Some(open) = self.block.as_mut().and_then(|block| block.open.take()) else {
            return false;
        };
        let reread = self.reread_if_several(&open, buf, end);
        if !reread {
            self.keep_open(open);
        }
        reread
    }

    /// Whether the tokenizer would find several commands in the one that ends at `end`. If so, goes
    /// back to its first line, to read it again with the missed fence as the end of the block.
    fn reread_if_several(&mut self, open: &Open, buf: &str, end: usize) -> bool {
        let (Some(fence), Some(block)) =
            (open.missed_fence.filter(|missed_fence| *missed_fence < end), &mut self.block)
        else {
            return false;
        };
        if is_one_command(&block.command(&buf[open.start..end])) {
            return false;
        }
        // The fence is fixed now, so the second reading cannot pass it and this happens once a
        // command.
        block.forced_end = Some(fence);
        // Reading the command again costs its length, which counts as a failed guess.
        self.guess_budget = self.guess_budget.saturating_sub(end - open.start);
        self.at = memrchr(b'\n', &buf.as_bytes()[..open.start]).map_or(0, |at| at + 1);
        self.searched = 0;
        true
    }

    /// Takes back the open guess, found wrong at `end`. Returns where to scan again.
    fn take_back(&mut self, open: &mut Open, end: usize) -> Option<usize> {
        let at = open.scan.retreat(end, &mut NoWords);
        self.guess_budget = open.scan.guess_budget();
        self.searched = 0;
        at
    }
}

impl Open {
    /// Reads a line of a heredoc. Returns where the block closes, if this line shows that the
    /// heredoc has no end line.
    pub(super) fn heredoc_line(
        &mut self,
        block: Fence,
        indent: usize,
        content: &str,
        line: usize,
    ) -> Option<usize> {
        if self.scan.ends_heredoc(&content[block_indent(content, indent)..]) {
            self.nested = None;
            self.possible_end = None;
            return None;
        }
        let opener = fence::opener(content);
        let opens_cmd = opener.is_some_and(|opener| opener.is_cmd());
        match (&mut self.possible_end, self.nested) {
            // After a possible end, lines are read both ways: as heredoc text, until its end line
            // comes, and as the text between blocks, where another `cmd` block would prove that the
            // heredoc has no end.
            (Some(possible_end), _) => match possible_end.code_block {
                Some(fence) if fence::closes(content, fence) => possible_end.code_block = None,
                Some(_) => {}
                None if opens_cmd => return Some(possible_end.line),
                None => possible_end.code_block = opener.map(|opener| opener.fence),
            },
            // A code block inside the heredoc hides fences that look like the end of the `cmd`
            // block.
            (None, Some(fence)) if fence::closes(content, fence) => self.nested = None,
            (None, Some(_)) => {}
            (None, None) if fence::closes(content, block) => {
                self.possible_end = Some(PossibleEnd { line, code_block: None });
            }
            // Also an example of a `cmd` block: if the closing fence were forgotten, it would have
            // come before.
            (None, None) => {
                let nested =
                    opener.filter(|opener| !opener.info.is_empty() && opener.inline.is_none());
                self.nested = nested.map(|opener| opener.fence);
            }
        }
        None
    }
}
