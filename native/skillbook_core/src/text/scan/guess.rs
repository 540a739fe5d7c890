//! Guesses, and the snapshot that takes one back.
//!
//! A curly quote delimits only if it has a partner, and a code fence inside a quote nests only if it
//! is closed. Both can stand many lines later, so the scanner assumes that they come, keeps one
//! snapshot, and [`Scanner::retreat`] returns to it when they do not.

use super::{Mode, Scanner, Sink};

/// Where a guess was made, and what has changed since. The machine stays in one quote of one word while a guess is
/// open, so this is all, and it costs the same however much came before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot {
    guess: Guess,
    at: usize,
    in_word: bool,
    flag: bool,
    mark: usize,
    /// A code block was opened since.
    pub(super) fenced: bool,
    /// A curly quote is read a second time.
    second_reading: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    Curly,
    Nested,
}

impl Scanner {
    /// Takes back the open guess, which was found wrong at `at`: from where the source must be scanned again, now read
    /// the other way.
    pub(in crate::text) fn retreat<S: Sink>(&mut self, at: usize, sink: &mut S) -> Option<usize> {
        let snapshot = self.snapshot.take()?;
        self.guess_budget = self.guess_budget.saturating_sub(at - snapshot.at);
        sink.rewind(snapshot.mark);
        self.nested = None;
        match snapshot.guess {
            Guess::Curly => {
                self.mode = Mode::Plain;
                self.in_word = snapshot.in_word;
                self.flag = snapshot.flag;
                // The partner may stand behind a fence that is text, even if another closes it: that
                // one may lie behind the command's end.
                if snapshot.fenced {
                    self.plain_fences = true;
                    self.second_reading = true;
                    self.after_equals = self.in_word;
                    return Some(snapshot.at);
                }
                if snapshot.second_reading {
                    self.plain_fences = false;
                }
                self.after_equals = false;
                let end = snapshot.at + "“".len();
                if !self.in_word {
                    self.begin_word(snapshot.at, false, sink);
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

    pub(super) fn guess<S: Sink>(&mut self, guess: Guess, at: usize, sink: &S) {
        if self.snapshot.is_none() {
            let (in_word, flag, mark) = (self.in_word, self.flag, sink.mark());
            let second_reading = std::mem::take(&mut self.second_reading);
            self.snapshot =
                Some(Snapshot { guess, at, in_word, flag, mark, fenced: false, second_reading });
        }
    }

    pub(super) fn confirm(&mut self, guess: Guess) {
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.guess == guess) {
            self.snapshot = None;
        }
    }
}
