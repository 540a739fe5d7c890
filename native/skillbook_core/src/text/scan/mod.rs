//! The state machine over the characters of a command, one line at a time.
//!
//! The tokenizer runs it to build words. The extractor runs it to find out whether a command
//! continues after a line. They share the machine so that they never disagree about where a command
//! ends.
//!
//! Text in quotes, heredocs and JSON objects is passed on unchanged. Between words, invisible
//! characters (blanks beyond ASCII, characters without width) are read as they look.
//!
//! # Guesses
//!
//! Two constructs depend on text that comes later: a curly quote delimits only if it has a partner,
//! and a code fence inside a quote nests only if it is closed. The machine assumes that they do and
//! keeps a snapshot. When the text ends without the partner, [`Scanner::retreat`] goes back to the
//! snapshot.
//!
//! Time stays linear in the input: there is at most one snapshot, curly quotes nest at most eight
//! deep, and failed guesses share a [`GUESS_BUDGET`]. After it is spent, no guess leaves its line.
//!
//! A curly quote has three readings, and the first that works is used: it delimits and fences nest;
//! it delimits and fences are text; it is text itself. The extractor tests a guess against the rest
//! of its block, the tokenizer against the rest of the command, which may be shorter. They agree
//! because a reading that fails in a text also fails in every beginning of that text.

mod chars;
mod guess;
mod heredoc;
mod json;
mod plain;
mod quote;
mod sink;

use self::guess::Snapshot;
use self::heredoc::Heredoc;
use self::json::Json;
use super::fence::{self, Fence};
use super::MAX_COMMAND;

pub(super) use self::chars::blank;
pub(super) use self::plain::is_whole;
pub(super) use self::quote::Quote;
pub(super) use self::sink::{NoWords, Sink};

/// How many bytes failed guesses may scan in one text. No command is longer, so one guess over a
/// whole command is always possible.
pub(super) const GUESS_BUDGET: usize = MAX_COMMAND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Quote(Quote),
    Heredoc,
    /// After the end line of a heredoc in `$(cat <<WORD`: the substitution must be closed next.
    Substitution,
    Json(Json),
}

/// The state after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The command is complete.
    Done,
    /// A quote is open: the line break belongs to the value.
    Quote,
    /// The line ends in a backslash: the next line continues it.
    Joined,
    /// A heredoc is open: the next lines are its value.
    Heredoc,
    /// A guess failed: call [`Scanner::retreat`], and continue from the offset that it returns.
    Retreat,
}

/// A construct that is open at the end of the command, and where it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unclosed {
    Quote(Quote, usize),
    Heredoc { end: String, at: usize },
    Substitution { close: &'static str, at: usize },
    Json(usize),
}

/// The state of the machine.
#[derive(Debug, Clone)]
pub(super) struct Scanner {
    mode: Mode,
    /// Where the open quote or JSON value begins.
    opened: usize,
    in_word: bool,
    /// The word begins with two unquoted dashes.
    flag: bool,
    /// The last character was an unquoted `=`.
    after_equals: bool,
    /// The word has a part in single quotes: `'It'\''s'`, as shells write an apostrophe.
    single: bool,
    /// The last part of the word was quoted or escaped.
    after_part: bool,
    /// The number of words begun.
    words: usize,
    /// The open quote begins its value.
    leading: bool,
    /// Where a value's double quote closes although the value continues after it.
    unescaped: Option<usize>,
    /// A backslash joins this line to the previous one.
    joined: bool,
    /// The code block that is open inside the open quote.
    nested: Option<Fence>,
    /// Read fence lines in quotes as text: one of them was never closed.
    plain_fences: bool,
    /// Read the next curly quote a second time, now with fences as text.
    second_reading: bool,
    /// The heredocs of the command's line, in order.
    heredocs: Vec<Heredoc>,
    /// How many of them are complete.
    heredocs_read: usize,
    snapshot: Option<Snapshot>,
    guess_budget: usize,
}

impl Scanner {
    /// A scanner at the start of a command. The budget is the rest of the text's [`GUESS_BUDGET`].
    #[inline]
    pub(super) fn new(guess_budget: usize) -> Self {
        Scanner {
            mode: Mode::Plain,
            opened: 0,
            in_word: false,
            flag: false,
            after_equals: false,
            single: false,
            after_part: false,
            words: 0,
            leading: false,
            unescaped: None,
            joined: false,
            nested: None,
            plain_fences: false,
            second_reading: false,
            heredocs: Vec::new(),
            heredocs_read: 0,
            snapshot: None,
            guess_budget,
        }
    }

    pub(super) fn guess_budget(&self) -> usize {
        self.guess_budget
    }

    /// Whether a guess is open, which may be taken back.
    pub(super) fn guesses(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Inside a code block nested in a quote.
    pub(super) fn in_nested(&self) -> bool {
        self.nested.is_some()
    }

    pub(super) fn in_heredoc(&self) -> bool {
        self.mode == Mode::Heredoc
    }

    /// Where a double quote closes a value that continues after it, probably a quote that is
    /// missing its backslash.
    pub(super) fn unescaped(&self) -> Option<usize> {
        self.unescaped
    }

    /// The construct that is open.
    #[inline]
    pub(super) fn unclosed(&self) -> Option<Unclosed> {
        match self.mode {
            Mode::Quote(quote) => Some(Unclosed::Quote(quote, self.opened)),
            Mode::Json(_) => Some(Unclosed::Json(self.opened)),
            Mode::Substitution => {
                self.heredocs.get(self.heredocs_read.wrapping_sub(1)).and_then(|doc| {
                    let close = doc.substitution?;
                    Some(Unclosed::Substitution { close, at: doc.at })
                })
            }
            // Also in plain mode: a backslash may join lines between a heredoc's word and its text.
            Mode::Plain | Mode::Heredoc => self
                .heredocs
                .get(self.heredocs_read)
                .map(|doc| Unclosed::Heredoc { end: doc.end.clone(), at: doc.at }),
        }
    }

    /// Ends the text: closes the word that a backslash at the end left open.
    #[inline]
    pub(super) fn close<S: Sink>(&mut self, at: usize, sink: &mut S) {
        if self.mode == Mode::Plain && self.in_word {
            self.in_word = false;
            sink.end(at);
        }
    }

    #[inline]
    fn begin_word<S: Sink>(&mut self, at: usize, quoted: bool, sink: &mut S) {
        self.in_word = true;
        self.words += 1;
        self.flag = false;
        self.single = false;
        self.after_part = false;
        sink.start(at, quoted);
    }

    /// Scans a line, `src[at..end]` without its line break. `line_start` is false if the scan
    /// resumes inside a line after a retreat.
    #[inline]
    pub(super) fn scan_line<S: Sink>(
        &mut self,
        src: &str,
        mut at: usize,
        end: usize,
        line_start: bool,
        sink: &mut S,
    ) -> LineEnd {
        let joined = std::mem::take(&mut self.joined);
        match self.mode {
            Mode::Heredoc => return self.heredoc_line(src, at, end, sink),
            Mode::Quote(quote) if line_start => {
                // Prose has lone curly quotes, so a guess about one must not swallow the next
                // command block.
                if matches!(quote, Quote::Curly { .. })
                    && self.nested.is_none()
                    && opens_cmd(&src[at..end])
                {
                    return LineEnd::Retreat;
                }
                at = self.fence_line(quote, src, at, end, sink);
            }
            Mode::Substitution => match self.close_substitution(src, at, end) {
                Some(next) => at = next,
                None => return LineEnd::Heredoc,
            },
            // A comment among joined lines does not end the command.
            Mode::Plain if joined && comment(src, at + blank(&src[at..end]), end) => {
                self.joined = true;
                return LineEnd::Joined;
            }
            _ => {}
        }
        loop {
            let next = match self.mode {
                Mode::Quote(quote) => self.quoted(quote, src, at, end, sink),
                Mode::Json(json) => self.json(json, src, at, end, sink),
                _ => self.plain(src, at, end, sink),
            };
            match next {
                Ok(next) => at = next,
                Err(line_end) => return line_end,
            }
        }
    }
}

/// Whether a line opens a command block. A curly quote never includes one: the block before it
/// ends.
fn opens_cmd(line: &str) -> bool {
    fence::opener(line).is_some_and(|opener| opener.is_cmd())
}

/// Whether a comment begins here: a `#` at the end of the line or before a blank.
fn comment(src: &str, at: usize, end: usize) -> bool {
    src[at..end].strip_prefix('#').is_some_and(|rest| rest.is_empty() || blank(rest) > 0)
}
