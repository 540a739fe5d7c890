//! Commands that go on over several lines, in quotes or heredocs, and guesses about them that fail.

use memchr::{memchr, memrchr};

use super::lines::{line_at, line_end, strip};
use super::{Event, Machine};
use crate::text::error::Error;
use crate::text::fence::{self, Fence};
use crate::text::scan::{LineEnd, NoWords, Scan};
use crate::text::words::is_one;

/// A command that goes on.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) start: usize,
    pub(super) scan: Scan,
    /// The code block that is open inside a heredoc.
    pub(super) nested: Option<Fence>,
    /// A fence inside a heredoc that closes the block, should the heredoc turn out never to end.
    pub(super) candidate: Option<Candidate>,
    /// The first fence that would have closed the block, had a guess not been taken back there. The
    /// tokenizer does not know which fences close the block, so its guess may reach over it.
    pub(super) judged: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The fence's line.
    pub(super) line: usize,
    /// The code block that would be open in the text after it.
    pub(super) other: Option<Fence>,
}

impl Machine {
    /// Scans a command's line from `at` on. Says whether the command goes on after it.
    pub(super) fn go_on<'b>(
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
            let line_end = open.scan.line(buf, at, end, line_start, &mut NoWords);
            self.at = next;
            let resume = match line_end {
                LineEnd::Done => None,
                LineEnd::Retreat => self.back(open, end),
                LineEnd::Quote | LineEnd::Joined | LineEnd::Heredoc => return Ok(true),
            };
            let Some(resume) = resume else {
                if self.disputed(open, buf, end) {
                    return Ok(false);
                }
                self.give(buf, open.start..end, out)?;
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
    pub(super) fn retreat<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<bool, Error> {
        let Some(block) = &mut self.block else { return Ok(false) };
        let (fence, Some(mut open)) = (block.fence, block.open.take()) else { return Ok(false) };
        let resume = self.back(&mut open, end);
        let closes = || {
            line_at(buf, end, end, true)
                .is_some_and(|line| fence::closes(&buf[end..line.end], fence))
        };
        if resume.is_some() && open.judged.is_none_or(|judged| end < judged) && closes() {
            open.judged = Some(end);
        }
        let goes_on = match resume {
            None => true,
            Some(at) => {
                let next =
                    memchr(b'\n', &buf.as_bytes()[at..]).map_or(buf.len(), |len| at + len + 1);
                self.go_on(&mut open, buf, at, next, out)?
            }
        };
        if goes_on {
            self.keep(open);
        }
        Ok(resume.is_some())
    }

    pub(super) fn is_disputed(&mut self, buf: &str, end: usize) -> bool {
        let Some(open) = self.block.as_mut().and_then(|block| block.open.take()) else {
            return false;
        };
        let disputed = self.disputed(&open, buf, end);
        if !disputed {
            self.keep(open);
        }
        disputed
    }

    /// Whether the tokenizer would take a command that ends at `end` for more than one. Then the
    /// command is read anew, and the fence where its guess failed closes the block.
    fn disputed(&mut self, open: &Open, buf: &str, end: usize) -> bool {
        let (Some(limit), Some(block)) =
            (open.judged.filter(|judged| *judged < end), &mut self.block)
        else {
            return false;
        };
        if is_one(&block.command(&buf[open.start..end])) {
            return false;
        }
        block.limit = Some(limit);
        self.patience = self.patience.saturating_sub(end - open.start);
        self.at = memrchr(b'\n', &buf.as_bytes()[..open.start]).map_or(0, |at| at + 1);
        self.searched = 0;
        true
    }

    /// From where a command must be scanned again, as a guess was found wrong at `end`.
    fn back(&mut self, open: &mut Open, end: usize) -> Option<usize> {
        let at = open.scan.retreat(end, &mut NoWords);
        self.patience = open.scan.patience();
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
        if self.scan.ends_heredoc(&content[strip(content, indent)..]) {
            self.nested = None;
            self.candidate = None;
            return None;
        }
        let opener = fence::opener(content);
        let opens_cmd = opener.is_some_and(|opener| opener.is_cmd());
        match (&mut self.candidate, self.nested) {
            (Some(candidate), _) => match candidate.other {
                Some(fence) if fence::closes(content, fence) => candidate.other = None,
                Some(_) => {}
                None if opens_cmd => return Some(candidate.line),
                None => candidate.other = opener.map(|opener| opener.fence),
            },
            (None, Some(fence)) if fence::closes(content, fence) => self.nested = None,
            (None, Some(_)) => {}
            (None, None) if fence::closes(content, block) => {
                self.candidate = Some(Candidate { line, other: None });
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
