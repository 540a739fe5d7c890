//! Commands that go on over several lines, in quotes or heredocs, and guesses about them that fail.

use memchr::{memchr, memrchr};

use super::lines::{block_indent, line_at, line_end};
use super::{Event, Machine};
use crate::text::error::Error;
use crate::text::fence::{self, Fence};
use crate::text::scan::{LineEnd, NoWords, Scanner};
use crate::text::words::is_one_command;

/// A command that goes on.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) start: usize,
    pub(super) scan: Scanner,
    /// The code block that is open inside a heredoc.
    pub(super) nested: Option<Fence>,
    /// A fence inside a heredoc that closes the block, should the heredoc turn out never to end.
    pub(super) possible_end: Option<PossibleEnd>,
    /// The first fence that would have closed the block, had a guess not been taken back there. The
    /// tokenizer does not know which fences close the block, so its guess may reach over it.
    pub(super) missed_fence: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PossibleEnd {
    /// The fence's line.
    pub(super) line: usize,
    /// The code block that would be open in the text after it.
    pub(super) code_block: Option<Fence>,
}

impl Machine {
    /// Scans a command's line from `at` on. Says whether the command goes on after it.
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
            // A long line may send the scan back often: its end stays where it is.
            if resume < at {
                next = memchr(b'\n', &buf.as_bytes()[resume..])
                    .map_or(buf.len(), |len| resume + len + 1);
            }
            at = resume;
            line_start = false;
        }
    }

    /// Takes back the guess that is open where the block ends, if there is one.
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

    /// Whether the tokenizer would take a command that ends at `end` for more than one. Then the
    /// command is read anew, and the fence where its guess failed closes the block.
    fn reread_if_several(&mut self, open: &Open, buf: &str, end: usize) -> bool {
        let (Some(fence), Some(block)) =
            (open.missed_fence.filter(|missed_fence| *missed_fence < end), &mut self.block)
        else {
            return false;
        };
        if is_one_command(&block.command(&buf[open.start..end])) {
            return false;
        }
        block.forced_end = Some(fence);
        self.guess_budget = self.guess_budget.saturating_sub(end - open.start);
        self.at = memrchr(b'\n', &buf.as_bytes()[..open.start]).map_or(0, |at| at + 1);
        self.searched = 0;
        true
    }

    /// From where a command must be scanned again, as a guess was found wrong at `end`.
    fn take_back(&mut self, open: &mut Open, end: usize) -> Option<usize> {
        let at = open.scan.retreat(end, &mut NoWords);
        self.guess_budget = open.scan.guess_budget();
        self.searched = 0;
        at
    }
}

impl Open {
    /// A line of a heredoc. Where that shows that the heredoc has no end, gives where its block closes.
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
            (Some(possible_end), _) => match possible_end.code_block {
                Some(fence) if fence::closes(content, fence) => possible_end.code_block = None,
                Some(_) => {}
                None if opens_cmd => return Some(possible_end.line),
                None => possible_end.code_block = opener.map(|opener| opener.fence),
            },
            (None, Some(fence)) if fence::closes(content, fence) => self.nested = None,
            (None, Some(_)) => {}
            (None, None) if fence::closes(content, block) => {
                self.possible_end = Some(PossibleEnd { line, code_block: None });
            }
            // An example of a command block too: the fence of the block itself would have come first.
            (None, None) => {
                let nested =
                    opener.filter(|opener| !opener.info.is_empty() && opener.inline.is_none());
                self.nested = nested.map(|opener| opener.fence);
            }
        }
        None
    }
}
