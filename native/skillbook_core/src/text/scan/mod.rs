//! The state machine over the characters of a command, a line at a time.
//!
//! The tokenizer runs it to build words; the extractor runs it to learn whether a command goes on after a line. That
//! both run the same machine is what keeps them from ever disagreeing about where a command ends.
//!
//! What stands in quotes, in heredocs and in JSON objects is handed over as it is; what models put between words
//! without anybody seeing it (blanks of other kinds, characters without width) is read as what it looks like.
//!
//! Two constructs can only be judged by what comes later: a curly quote delimits only if it has a partner, and a code
//! fence inside a quote nests only if it is closed. The machine takes them for what they look like, keeps a snapshot,
//! and [`Scanner::retreat`] goes back to it when the text ends without the partner. At most one snapshot is kept, and
//! curly quotes nest at most eight deep. Where guess after guess fails nevertheless, the machine loses its
//! [`GUESS_BUDGET`] and makes none that leaves the line, so the whole stays linear.
//!
//! A curly quote is read in three ways, and the first that holds is taken: it delimits and fences
//! nest, it delimits and fences are text, it is text itself. The extractor judges a guess by the
//! rest of its block, the tokenizer by the rest of the command, which may be less. They agree
//! because a way that fails in a text fails in each beginning of it.

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

/// How many bytes the guesses of a text may have scanned in vain. No command is longer than that.
pub(super) const GUESS_BUDGET: usize = MAX_COMMAND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Quote(Quote),
    Heredoc,
    /// Behind a heredoc in `$(cat <<WORD`: what closes the substitution must follow.
    Substitution,
    Json(Json),
}

/// What a line left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// Nothing: the command is complete.
    Done,
    /// A quote: the line break belongs to the value.
    Quote,
    /// A backslash stood at its end: the next line follows as if there were no line break.
    Joined,
    /// A heredoc: the next lines are its value.
    Heredoc,
    /// Nothing can be said: a guess turned out wrong. [`Scanner::retreat`] and go on from where it says.
    Retreat,
}

/// What a command that is over left unclosed, and where that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unclosed {
    Quote(Quote, usize),
    Heredoc { end: String, at: usize },
    Substitution { close: &'static str, at: usize },
    Json(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Scanner {
    mode: Mode,
    /// Where the open quote opened.
    opened: usize,
    in_word: bool,
    /// The word began with two dashes that no quote covers.
    flag: bool,
    /// The last character was an unquoted `=`.
    after_equals: bool,
    /// The word has a part in single quotes, and the last of its parts was quoted or escaped: `'It'\''s'`.
    single: bool,
    after_part: bool,
    /// How many words began.
    words: usize,
    /// The open quote is the first of its value.
    leading: bool,
    /// Where a value's double quote closed although the value goes on.
    unescaped: Option<usize>,
    /// A backslash joined this line to the one before.
    joined: bool,
    /// The code block that is open inside the open quote.
    nested: Option<Fence>,
    /// Fence lines in a quote are taken for text: one of them was never closed.
    plain_fences: bool,
    /// The curly quote that comes next is read a second time, now with fences as text.
    second_reading: bool,
    heredocs: Vec<Heredoc>,
    heredocs_read: usize,
    snapshot: Option<Snapshot>,
    guess_budget: usize,
}

impl Scanner {
    /// With what is left of the text's [`GUESS_BUDGET`].
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

    /// Inside a code block nested in a quote.
    pub(super) fn in_nested(&self) -> bool {
        self.nested.is_some()
    }

    pub(super) fn in_heredoc(&self) -> bool {
        self.mode == Mode::Heredoc
    }

    /// Where a value's double quote closed although the value goes on behind it: a quote that was not escaped.
    pub(super) fn unescaped(&self) -> Option<usize> {
        self.unescaped
    }

    /// What stands open.
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
            // Plain too: a dangling backslash may stand between a heredoc's word and its lines.
            Mode::Plain | Mode::Heredoc => self
                .heredocs
                .get(self.heredocs_read)
                .map(|doc| Unclosed::Heredoc { end: doc.end.clone(), at: doc.at }),
        }
    }

    /// The text ends here: closes the word that a dangling backslash left open.
    pub(super) fn close<S: Sink>(&mut self, at: usize, sink: &mut S) {
        if self.mode == Mode::Plain && self.in_word {
            self.in_word = false;
            sink.end(at);
        }
    }

    fn begin_word<S: Sink>(&mut self, at: usize, quoted: bool, sink: &mut S) {
        self.in_word = true;
        self.words += 1;
        self.flag = false;
        self.single = false;
        self.after_part = false;
        sink.start(at, quoted);
    }

    /// Scans a line, `src[at..end]` without its line break. `line_start` is false where a retreat resumes inside it.
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

/// Whether a line opens a command block. No curly quote reaches over one: its block ends there.
fn opens_cmd(line: &str) -> bool {
    fence::opener(line).is_some_and(|opener| opener.is_cmd())
}

/// Whether a `#` that stands alone begins a comment here.
fn comment(src: &str, at: usize, end: usize) -> bool {
    src[at..end].strip_prefix('#').is_some_and(|rest| rest.is_empty() || blank(rest) > 0)
}
