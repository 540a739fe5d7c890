//! Guesses, and the snapshot that takes one back.
//!
//! A curly quote delimits only if it has a partner, and a code fence inside a quote nests only if it
//! is closed. Both can stand many lines later, so the scanner assumes that they come, keeps one
//! snapshot, and [`Scan::retreat`] returns to it when they do not.

use super::{Mode, Scan, Sink};

/// Where a guess was made, and what has changed since. The machine stays in one quote of one word while a guess is
/// open, so this is all, and it costs the same however much came before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot {
    what: Guess,
    at: usize,
    in_word: bool,
    flag: bool,
    mark: usize,
    /// A code block was opened since.
    pub(super) fenced: bool,
    /// A curly quote is read a second time.
    again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    Curly,
    Nested,
}

impl Scan {
    /// Takes back the open guess, which was found wrong at `at`: from where the source must be scanned again, now read
    /// the other way.
    pub(in crate::text) fn retreat<S: Sink>(&mut self, at: usize, sink: &mut S) -> Option<usize> {
        let snapshot = self.snapshot.take()?;
        self.patience = self.patience.saturating_sub(at - snapshot.at);
        sink.rewind(snapshot.mark);
        self.nested = None;
        match snapshot.what {
            Guess::Curly => {
                self.mode = Mode::Plain;
                self.in_word = snapshot.in_word;
                self.flag = snapshot.flag;
                // The partner may stand behind a fence that is text, even if another closes it: that
                // one may lie behind the command's end.
                if snapshot.fenced {
                    self.plain_fences = true;
                    self.again = true;
                    self.after_equals = self.in_word;
                    return Some(snapshot.at);
                }
                if snapshot.again {
                    self.plain_fences = false;
                }
                self.after_equals = false;
                let end = snapshot.at + "“".len();
                if !self.in_word {
                    self.begin(snapshot.at, false, sink);
                }
                sink.text(snapshot.at..end);
                Some(end)
            }
            Guess::Nested => {
                self.plain_fences = true;
                Some(snapshot.at)
            }
        }
    }

    pub(super) fn guess<S: Sink>(&mut self, what: Guess, at: usize, sink: &S) {
        if self.snapshot.is_none() {
            let (in_word, flag, mark) = (self.in_word, self.flag, sink.mark());
            let again = std::mem::take(&mut self.again);
            self.snapshot = Some(Snapshot { what, at, in_word, flag, mark, fenced: false, again });
        }
    }

    pub(super) fn confirm(&mut self, what: Guess) {
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.what == what) {
            self.snapshot = None;
        }
    }
}
