//! Guesses, and the snapshot that takes one back.
//!
//! A curly quote delimits only if it has a partner, and a code fence inside a quote nests only if
//! it is closed. Both can come many lines later, so the scanner assumes that they come, keeps one
//! snapshot, and [`Scanner::retreat`] returns to it when they do not.

use super::{Mode, Scanner, Sink};

/// The state before a guess. While a guess is open, the machine stays in one quote of one word, so
/// these few fields are all that can change, and a snapshot costs the same anywhere in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot {
    guess: Guess,
    at: usize,
    in_word: bool,
    flag: bool,
    mark: usize,
    /// A code block was opened since then.
    pub(super) fenced: bool,
    /// This is the second reading of a curly quote.
    second_reading: bool,
}

/// An assumption about later text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    /// A curly quote has a partner.
    Curly,
    /// A code fence inside a quote is closed.
    Nested,
}

impl Scanner {
    /// Takes back the open guess, found wrong at `at`. Returns where to scan again, with the
    /// construct read the other way; `None` if no guess is open.
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
                // With fences as text, the partner may still come. This holds even for a fence that
                // was closed: its closing fence may be after the end of the command.
                if snapshot.fenced {
                    self.plain_fences = true;
                    self.second_reading = true;
                    self.after_equals = self.in_word;
                    return Some(snapshot.at);
                }
                if snapshot.second_reading {
                    self.plain_fences = false;
                }
                // The last reading: the quote is an ordinary character, and the scan continues
                // after it.
                self.after_equals = false;
                let end = snapshot.at + "“".len();
                if !self.in_word {
                    self.begin_word(snapshot.at, false, sink);
                }
                sink.text(snapshot.at..end);
                Some(end)
            }
            Guess::Nested => {
                // Read the line with the fence again, now as text of the quote.
                self.plain_fences = true;
                Some(snapshot.at)
            }
        }
    }

    /// Opens a guess. With one open already, that one's snapshot covers this too.
    pub(super) fn guess<S: Sink>(&mut self, guess: Guess, at: usize, sink: &S) {
        if self.snapshot.is_none() {
            let (in_word, flag, mark) = (self.in_word, self.flag, sink.mark());
            let second_reading = std::mem::take(&mut self.second_reading);
            self.snapshot =
                Some(Snapshot { guess, at, in_word, flag, mark, fenced: false, second_reading });
        }
    }

    /// The guess was right: drops its snapshot.
    pub(super) fn confirm(&mut self, guess: Guess) {
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.guess == guess) {
            self.snapshot = None;
        }
    }
}
