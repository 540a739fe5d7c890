//! Quotes: which characters open and close one, its escapes, and code blocks inside it.
//!
//! | quote | escapes | notes |
//! |---|---|---|
//! | `'…'` | none | `'It's'` and `'It''s'` are read as an apostrophe |
//! | `"…"` | `\n \t \r \\ \"` | none if the value is a Windows path |
//! | `"""…"""`, `$'…'`, `“…”` | as in `"…"` | `$'…'` also has `\'` |
//! | `‘…’` | none | `’` before a letter is an apostrophe |
//!
//! An unknown escape is text, so that regular expressions need no second backslash.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::guess::Guess;
use super::{LineEnd, Mode, Scanner, Sink};
use crate::text::fence;

/// How deep curly quotes of one kind may be nested.
const MAX_CURLY: u32 = 8;

/// The kind of an open quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text) enum Quote {
    Single,
    /// `$'…'`, as bash writes it. Read like a double quote.
    Ansi,
    Double,
    /// `"""…"""`. Read like a double quote.
    Triple,
    /// `‘…’`, read like a single quote, or `“…”`, read like a double one.
    Curly {
        double: bool,
        depth: u32,
    },
}

impl Quote {
    /// The characters that close it.
    fn close(self) -> &'static str {
        match self {
            Quote::Single | Quote::Ansi => "'",
            Quote::Double => "\"",
            Quote::Triple => "\"\"\"",
            Quote::Curly { double: true, .. } => "”",
            Quote::Curly { double: false, .. } => "’",
        }
    }

    fn has_escapes(self) -> bool {
        !matches!(self, Quote::Single | Quote::Curly { double: false, .. })
    }
}

impl Scanner {
    /// A line that begins inside a quote may open or close a nested code block. Returns where to
    /// continue.
    pub(super) fn fence_line<S: Sink>(
        &mut self,
        quote: Quote,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> usize {
        let line = &src[at..end];
        match self.nested {
            None => self.open_nested(quote, src, at, end, sink),
            Some(fence) => {
                if let Some((len, rest)) = fence::after_run(line, fence) {
                    // Models write the closing quote directly after the closing fence.
                    let rest = fence::trim_blanks(rest);
                    if rest.is_empty() || rest.starts_with(quote.close()) {
                        self.nested = None;
                        self.confirm(Guess::Nested);
                        sink.text(at..at + len);
                        return at + len;
                    }
                }
            }
        }
        at
    }

    /// Opens a nested code block, if a line in a quote begins one with a language. A bare fence is
    /// text, since it could as well be the end of the command's own block.
    fn open_nested<S: Sink>(
        &mut self,
        quote: Quote,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) {
        if self.plain_fences || self.guess_budget == 0 {
            return;
        }
        let line = &src[at..end];
        // Cheap checks first: many quotes may open on one long line.
        if !fence::is_fence(line) || line.contains(quote.close()) {
            return;
        }
        if let Some(opener) = fence::opener(line) {
            if !opener.info.is_empty() && !opener.is_cmd() {
                self.guess(Guess::Nested, at, sink);
                self.nested = Some(opener.fence);
                if let Some(snapshot) = &mut self.snapshot {
                    snapshot.fenced = true;
                }
            }
        }
    }

    /// Reads the characters of a quote, up to its end or the end of the line. Returns where the
    /// text after the quote begins.
    pub(super) fn quoted<S: Sink>(
        &mut self,
        mut quote: Quote,
        src: &str,
        mut at: usize,
        end: usize,
        sink: &mut S,
    ) -> Result<usize, LineEnd> {
        let bytes = src.as_bytes();
        // Quotes inside a nested code block are part of the code.
        let literal = self.nested.is_some();
        let escapes =
            quote.has_escapes() && !(quote == Quote::Double && is_path(&src[self.opened + 1..end]));
        let close = quote.close().as_bytes()[0];
        let mut from = at;
        loop {
            let rest = &bytes[at..end];
            let found = if escapes { memchr2(close, b'\\', rest) } else { memchr(close, rest) };
            let Some(found) = found.map(|found| at + found) else {
                sink.text(from..end);
                let curly = matches!(quote, Quote::Curly { .. });
                // Without budget a curly quote must close on its line, or it is text.
                return Err(if curly && self.guess_budget == 0 {
                    LineEnd::Retreat
                } else {
                    LineEnd::Quote
                });
            };
            if bytes[found] == b'\\' {
                let (text, skip): (&'static str, usize) =
                    match bytes.get(found + 1).filter(|_| found + 1 < end) {
                        Some(b'n') => ("\n", 2),
                        Some(b't') => ("\t", 2),
                        Some(b'r') => ("\r", 2),
                        Some(b'\\') => ("\\", 2),
                        Some(b'"') => ("\"", 2),
                        Some(b'\'') if quote == Quote::Ansi => ("'", 2),
                        _ => ("", 1),
                    };
                if skip == 2 {
                    sink.text(from..found);
                    sink.push(text);
                    from = found + 2;
                }
                at = found + skip;
                continue;
            }
            at = found + 1;
            if literal {
                continue;
            }
            // Models write `'it's'` for an apostrophe. A shell would end the value there.
            if quote == Quote::Single {
                if let Some(drop) = apostrophe(&src[self.opened + 1..end], found - self.opened - 1)
                {
                    sink.text(from..drop.start + self.opened + 1);
                    from = drop.end + self.opened + 1;
                    at = from.max(at);
                    continue;
                }
            }
            match closing(quote, &src[found..end]) {
                Closing::No => {}
                Closing::Here(len) => {
                    sink.text(from..found);
                    // A letter directly after the closing quote suggests that the quote belongs to
                    // the value and lacks a backslash: `"the "best" one"`. It is reported as an
                    // error with that hint.
                    let goes_on = src[found + len..end]
                        .starts_with(|next: char| next.is_alphanumeric() || next == '"');
                    if goes_on && quote == Quote::Double && self.leading {
                        self.unescaped.get_or_insert(found);
                    }
                    self.single |= quote == Quote::Single;
                    self.after_part = true;
                    self.mode = Mode::Plain;
                    self.after_equals = false;
                    self.confirm(Guess::Curly);
                    return Ok(found + len);
                }
                Closing::TooDeep => return Err(LineEnd::Retreat),
                Closing::Depth(deeper) => {
                    quote = deeper;
                    self.mode = Mode::Quote(quote);
                }
            }
        }
    }

    /// Opens a quote of `len` bytes at `at`. Returns where its text begins.
    pub(super) fn open_quote<S: Sink>(
        &mut self,
        quote: Quote,
        src: &str,
        at: usize,
        len: usize,
        end: usize,
        sink: &mut S,
    ) -> usize {
        if matches!(quote, Quote::Curly { .. }) {
            self.guess(Guess::Curly, at, sink);
        }
        self.leading = !self.in_word || self.after_equals;
        if !self.in_word {
            self.begin_word(at, true, sink);
        }
        self.mode = Mode::Quote(quote);
        self.opened = at;
        self.after_equals = false;
        // A value may begin with a fence directly after its quote.
        self.open_nested(quote, src, at + len, end, sink);
        at + len
    }
}

/// Whether a value is a Windows path, in which a backslash is not an escape: `C:\x`, but not
/// `C:\\x`, whose backslashes are escaped already.
fn is_path(value: &str) -> bool {
    matches!(value.as_bytes(), [drive, b':', b'\\', next, ..]
        if drive.is_ascii_alphabetic() && !matches!(next, b'\\' | b'"'))
}

/// Reads the single quote at `at` of a value in single quotes as an apostrophe. Returns the bytes
/// to leave out of the value, or `None` if the quote closes the value.
fn apostrophe(value: &str, at: usize) -> Option<Range<usize>> {
    let letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let mut after = value[at + 1..].chars();
    let next = after.next();
    let (before, last) = (&value[..at], value[..at].chars().next_back());
    if letter(next) {
        return match last {
            // `'It\'s'`: no escape in a shell either, but the meaning is clear.
            Some('\\') if letter(before[..at - 1].chars().next_back()) => Some(at - 1..at),
            _ => letter(last).then_some(at..at),
        };
    }
    // `'It''s'`
    (next == Some('\'') && letter(last) && letter(after.next())).then_some(at + 1..at + 2)
}

/// The effect of a character on an open quote.
enum Closing {
    No,
    /// The quote closes, with a mark of this many bytes.
    Here(usize),
    /// A curly quote inside it opens or closes.
    Depth(Quote),
    TooDeep,
}

/// The effect of the character at the start of `rest` on an open quote.
fn closing(quote: Quote, rest: &str) -> Closing {
    let (double, depth) = match quote {
        Quote::Curly { double, depth } => (double, depth),
        Quote::Triple if !rest.starts_with(quote.close()) => return Closing::No,
        quote => return Closing::Here(quote.close().len()),
    };
    let (open, close) = if double { ('“', '”') } else { ('‘', '’') };
    let mut chars = rest.chars();
    let depth = match chars.next() {
        Some(char) if char == open => depth + 1,
        // A single closing quote before a letter is an apostrophe.
        Some(char)
            if char == close && (double || !chars.next().is_some_and(char::is_alphanumeric)) =>
        {
            depth - 1
        }
        _ => return Closing::No,
    };
    match depth {
        0 => Closing::Here(close.len_utf8()),
        1..=MAX_CURLY => Closing::Depth(Quote::Curly { double, depth }),
        _ => Closing::TooDeep,
    }
}

/// The quote that opens here, of those that open only at the start of a word or after `=`.
/// Elsewhere they are text: `what's`, `5$`.
pub(super) fn opening(rest: &str) -> Option<(Quote, usize)> {
    match rest.as_bytes() {
        [b'\'', ..] => Some((Quote::Single, 1)),
        [b'$', b'\'', ..] => Some((Quote::Ansi, 2)),
        [0xE2, 0x80, 0x9C, ..] => Some((Quote::Curly { double: true, depth: 1 }, 3)),
        [0xE2, 0x80, 0x98, ..] => Some((Quote::Curly { double: false, depth: 1 }, 3)),
        _ => None,
    }
}
