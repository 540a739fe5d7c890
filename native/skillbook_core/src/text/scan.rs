//! The state machine over the characters of a command, a line at a time.
//!
//! The tokenizer runs it to build words; the extractor runs it to learn whether a command goes on after a line. That
//! both run the same machine is what keeps them from ever disagreeing about where a command ends.
//!
//! Two constructs can only be judged by what comes later: a curly quote delimits only if it has a partner, and a code
//! fence inside a quote nests only if it is closed. The machine takes them for what they look like, keeps a snapshot,
//! and [`Scan::retreat`] goes back to it when the text ends without the partner. At most one snapshot is kept, and
//! curly quotes nest at most [`MAX_CURLY`] deep. Where guess after guess fails nevertheless, the machine loses its
//! [`PATIENCE`] and makes none that leaves the line, so the whole stays linear.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

use super::fence::{self, Fence};
use super::MAX_COMMAND;

/// How deep curly quotes of one kind may stand in each other.
const MAX_CURLY: u32 = 8;

/// How many bytes the guesses of a text may have scanned in vain. No command is longer than that.
pub(super) const PATIENCE: usize = MAX_COMMAND;

/// What the machine tells about the words it passes. Ranges are of the scanned source.
pub(super) trait Sink {
    /// A word begins; `quoted` if by a quote, an escape or a heredoc.
    fn start(&mut self, at: usize, quoted: bool);
    /// These characters of the source belong to the word.
    fn text(&mut self, range: Range<usize>);
    /// These characters, which the source writes otherwise, belong to the word.
    fn push(&mut self, text: &'static str);
    /// A whole word whose value is a part of the source; if that is not all of the word, it is quoted.
    fn word(&mut self, span: Range<usize>, value: Range<usize>);
    /// The word is over.
    fn end(&mut self, at: usize);
    /// The word takes the next heredoc's value.
    fn heredoc(&mut self);
    /// A line of the `index`th heredoc, without its line break.
    fn heredoc_line(&mut self, index: usize, range: Range<usize>);
    /// How long the word's value is so far.
    fn mark(&self) -> usize;
    /// Takes back what the word got since [`Sink::mark`] gave this.
    fn rewind(&mut self, mark: usize);
}

/// For who only wants to know where a command ends.
pub(super) struct NoWords;

impl Sink for NoWords {
    fn start(&mut self, _at: usize, _quoted: bool) {}
    fn text(&mut self, _range: Range<usize>) {}
    fn push(&mut self, _text: &'static str) {}
    fn word(&mut self, _span: Range<usize>, _value: Range<usize>) {}
    fn end(&mut self, _at: usize) {}
    fn heredoc(&mut self) {}
    fn heredoc_line(&mut self, _index: usize, _range: Range<usize>) {}
    fn mark(&self) -> usize {
        0
    }
    fn rewind(&mut self, _mark: usize) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Single,
    /// `$'…'`, read like a double quote.
    Ansi,
    Double,
    /// `‘…’`, which the machine reads like a single quote, or `“…”`, like a double one.
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
            Quote::Curly { double: true, .. } => "”",
            Quote::Curly { double: false, .. } => "’",
        }
    }

    fn has_escapes(self) -> bool {
        !matches!(self, Quote::Single | Quote::Curly { double: false, .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Quote(Quote),
    Heredoc,
}

#[derive(Debug, Clone)]
struct Heredoc {
    end: String,
    /// `<<-`: leading tabs are dropped.
    tabs: bool,
    at: usize,
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
    /// Nothing can be said: a guess turned out wrong. [`Scan::retreat`] and go on from where it says.
    Retreat,
}

/// What a command that is over left unclosed, and where that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unclosed {
    Quote(Quote, usize),
    Heredoc { end: String, at: usize },
}

#[derive(Debug, Clone)]
pub(super) struct Scan {
    mode: Mode,
    /// Where the open quote opened.
    opened: usize,
    in_word: bool,
    /// The word began with two dashes that no quote covers.
    flag: bool,
    /// The last character was an unquoted `=`.
    after_equals: bool,
    /// The code block that is open inside the open quote.
    nested: Option<Fence>,
    /// Fence lines in a quote are taken for text: one of them was never closed.
    plain_fences: bool,
    heredocs: Vec<Heredoc>,
    filled: usize,
    snapshot: Option<Snapshot>,
    patience: usize,
}

/// Where a guess was made, and what has changed since. The machine stays in one quote of one word while a guess is
/// open, so this is all, and it costs the same however much came before.
#[derive(Debug, Clone, Copy)]
struct Snapshot {
    what: Guess,
    at: usize,
    in_word: bool,
    flag: bool,
    mark: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Curly,
    Nested,
}

impl Scan {
    /// With what is left of the text's [`PATIENCE`].
    pub(super) fn new(patience: usize) -> Self {
        Scan {
            mode: Mode::Plain,
            opened: 0,
            in_word: false,
            flag: false,
            after_equals: false,
            nested: None,
            plain_fences: false,
            heredocs: Vec::new(),
            filled: 0,
            snapshot: None,
            patience,
        }
    }

    pub(super) fn patience(&self) -> usize {
        self.patience
    }

    /// Inside a code block nested in a quote.
    pub(super) fn in_nested(&self) -> bool {
        self.nested.is_some()
    }

    pub(super) fn in_heredoc(&self) -> bool {
        self.mode == Mode::Heredoc
    }

    /// What stands open.
    pub(super) fn unclosed(&self) -> Option<Unclosed> {
        match self.mode {
            Mode::Quote(quote) => Some(Unclosed::Quote(quote, self.opened)),
            // Plain too: a dangling backslash may stand between a heredoc's word and its lines.
            Mode::Plain | Mode::Heredoc => {
                self.heredocs.get(self.filled).map(|doc| Unclosed::Heredoc { end: doc.end.clone(), at: doc.at })
            }
        }
    }

    /// Whether `line` ends the heredoc that is open.
    pub(super) fn ends_heredoc(&self, line: &str) -> bool {
        self.heredocs.get(self.filled).is_some_and(|doc| {
            let line = line.trim_end_matches([' ', '\t']);
            let line = if doc.tabs { line.trim_start_matches('\t') } else { line };
            line == doc.end
        })
    }

    /// The text ends here: closes the word that a dangling backslash left open.
    pub(super) fn close<S: Sink>(&mut self, at: usize, sink: &mut S) {
        if self.mode == Mode::Plain && self.in_word {
            self.in_word = false;
            sink.end(at);
        }
    }

    /// Takes back the open guess, which was found wrong at `at`: from where the source must be scanned again, now read
    /// the other way.
    pub(super) fn retreat<S: Sink>(&mut self, at: usize, sink: &mut S) -> Option<usize> {
        let snapshot = self.snapshot.take()?;
        self.patience = self.patience.saturating_sub(at - snapshot.at);
        sink.rewind(snapshot.mark);
        let unclosed_fence = self.nested.take().is_some();
        match snapshot.what {
            Guess::Curly => {
                self.mode = Mode::Plain;
                self.in_word = snapshot.in_word;
                self.flag = snapshot.flag;
                // The partner may stand behind a fence that is text.
                if unclosed_fence {
                    self.plain_fences = true;
                    self.after_equals = self.in_word;
                    return Some(snapshot.at);
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

    fn guess<S: Sink>(&mut self, what: Guess, at: usize, sink: &S) {
        if self.snapshot.is_none() {
            let (in_word, flag) = (self.in_word, self.flag);
            self.snapshot = Some(Snapshot { what, at, in_word, flag, mark: sink.mark() });
        }
    }

    fn confirm(&mut self, what: Guess) {
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.what == what) {
            self.snapshot = None;
        }
    }

    fn begin<S: Sink>(&mut self, at: usize, quoted: bool, sink: &mut S) {
        self.in_word = true;
        self.flag = false;
        sink.start(at, quoted);
    }

    /// Scans a line, `src[at..end]` without its line break. `line_start` is false where a retreat resumes inside it.
    pub(super) fn line<S: Sink>(
        &mut self,
        src: &str,
        mut at: usize,
        end: usize,
        line_start: bool,
        sink: &mut S,
    ) -> LineEnd {
        match self.mode {
            Mode::Heredoc => return self.heredoc_line(src, at, end, sink),
            Mode::Quote(quote) if line_start => at = self.fence_line(quote, src, at, end, sink),
            _ => {}
        }
        loop {
            let next = match self.mode {
                Mode::Quote(quote) => self.quoted(quote, src, at, end, sink),
                _ => self.plain(src, at, end, sink),
            };
            match next {
                Ok(next) => at = next,
                Err(line_end) => return line_end,
            }
        }
    }

    /// A line that begins inside a quote: it may open or close a nested code block. Gives where to go on.
    fn fence_line<S: Sink>(&mut self, quote: Quote, src: &str, at: usize, end: usize, sink: &mut S) -> usize {
        let line = &src[at..end];
        match self.nested {
            None => self.open_nested(quote, src, at, end, sink),
            Some(fence) => {
                if let Some((len, rest)) = fence::after_run(line, fence) {
                    // Models put the closing quote right behind the closing fence.
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

    fn open_nested<S: Sink>(&mut self, quote: Quote, src: &str, at: usize, end: usize, sink: &mut S) {
        if self.plain_fences || self.patience == 0 {
            return;
        }
        let line = &src[at..end];
        // Before the line is read to its end: many quotes may stand on it.
        if !fence::is_fence(line) || line.contains(quote.close()) {
            return;
        }
        if let Some(opener) = fence::opener(line) {
            if !opener.info.is_empty() && !opener.is_cmd() {
                self.guess(Guess::Nested, at, sink);
                self.nested = Some(opener.fence);
            }
        }
    }

    /// The characters of a quote up to its end or the line's. Gives where the text after the quote begins.
    fn quoted<S: Sink>(
        &mut self,
        mut quote: Quote,
        src: &str,
        mut at: usize,
        end: usize,
        sink: &mut S,
    ) -> Result<usize, LineEnd> {
        let bytes = src.as_bytes();
        // Code may hold quotes: inside a nested block they are text.
        let literal = self.nested.is_some();
        let close = quote.close().as_bytes()[0];
        let mut from = at;
        loop {
            let rest = &bytes[at..end];
            let found = if quote.has_escapes() { memchr2(close, b'\\', rest) } else { memchr(close, rest) };
            let Some(found) = found.map(|found| at + found) else {
                sink.text(from..end);
                let curly = matches!(quote, Quote::Curly { .. });
                return Err(if curly && self.patience == 0 { LineEnd::Retreat } else { LineEnd::Quote });
            };
            if bytes[found] == b'\\' {
                let (text, skip): (&'static str, usize) = match bytes.get(found + 1).filter(|_| found + 1 < end) {
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
            match closing(quote, &src[found..end]) {
                Closing::No => {}
                Closing::Here(len) => {
                    sink.text(from..found);
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

    fn heredoc_line<S: Sink>(&mut self, src: &str, at: usize, end: usize, sink: &mut S) -> LineEnd {
        let line = &src[at..end];
        if self.ends_heredoc(line) {
            self.filled += 1;
            if self.filled < self.heredocs.len() {
                return LineEnd::Heredoc;
            }
            self.mode = Mode::Plain;
            return LineEnd::Done;
        }
        let skip = match self.heredocs.get(self.filled) {
            Some(doc) if doc.tabs => line.len() - line.trim_start_matches('\t').len(),
            _ => 0,
        };
        sink.heredoc_line(self.filled, at + skip..end);
        LineEnd::Heredoc
    }

    /// Unquoted characters, up to an opening quote (gives the place after it) or the end of the line.
    fn plain<S: Sink>(&mut self, src: &str, mut at: usize, end: usize, sink: &mut S) -> Result<usize, LineEnd> {
        let bytes = src.as_bytes();
        while at < end {
            let byte = bytes[at];
            if fence::is_blank(byte) {
                if self.in_word {
                    self.in_word = false;
                    sink.end(at);
                }
                self.after_equals = false;
                at += 1;
                continue;
            }
            if !self.in_word {
                if let Some(next) = simple_word(bytes, at, end, sink) {
                    at = next;
                    continue;
                }
            }
            let opens = !self.in_word || self.after_equals;
            if byte == b'"' {
                return Ok(self.open(Quote::Double, src, at, 1, end, sink));
            }
            if opens {
                if let Some((quote, len)) = opening(&src[at..end]) {
                    return Ok(self.open(quote, src, at, len, end, sink));
                }
                if byte == b'<' && (!self.in_word || self.flag) {
                    if let Some(next) = self.open_heredoc(src, at, end, sink) {
                        at = next;
                        continue;
                    }
                }
            }
            if byte == b'\\' {
                let rest = &src[at + 1..end];
                if fence::trim_start(rest).is_empty() {
                    return Err(LineEnd::Joined);
                }
                if !self.in_word {
                    self.begin(at, true, sink);
                }
                let len = rest.chars().next().map_or(0, char::len_utf8);
                sink.text(at + 1..at + 1 + len);
                self.after_equals = false;
                at += 1 + len;
                continue;
            }
            at = self.run(src, at, end, sink);
        }
        self.after_equals = false;
        if self.in_word {
            self.in_word = false;
            sink.end(end);
        }
        if self.filled < self.heredocs.len() {
            self.mode = Mode::Heredoc;
            return Err(LineEnd::Heredoc);
        }
        Err(LineEnd::Done)
    }

    /// Ordinary characters of a word, as many as there are.
    fn run<S: Sink>(&mut self, src: &str, mut at: usize, end: usize, sink: &mut S) -> usize {
        let bytes = src.as_bytes();
        if !self.in_word {
            self.begin(at, false, sink);
            if let Some(len) = dash(&src[at..end]) {
                sink.push("--");
                at += len;
                self.flag = true;
            } else {
                self.flag = bytes[at..end].starts_with(b"--");
            }
        }
        let from = at;
        self.after_equals = false;
        while at < end {
            match bytes[at] {
                b' ' | b'\t' | b'"' | b'\\' => break,
                b'=' => {
                    at += 1;
                    self.after_equals = true;
                    break;
                }
                _ => at += 1,
            }
        }
        sink.text(from..at);
        at
    }

    fn open<S: Sink>(&mut self, quote: Quote, src: &str, at: usize, len: usize, end: usize, sink: &mut S) -> usize {
        if matches!(quote, Quote::Curly { .. }) {
            self.guess(Guess::Curly, at, sink);
        }
        if !self.in_word {
            self.begin(at, true, sink);
        }
        self.mode = Mode::Quote(quote);
        self.opened = at;
        self.after_equals = false;
        // A value may begin with a fence on the line of its quote.
        self.open_nested(quote, src, at + len, end, sink);
        at + len
    }

    /// `<<WORD`, `<<'WORD'`, `<<"WORD"`, `<<-WORD`, and a blank before WORD if that is an identifier.
    fn open_heredoc<S: Sink>(&mut self, src: &str, at: usize, end: usize, sink: &mut S) -> Option<usize> {
        let rest = src[at..end].strip_prefix("<<")?;
        let (tabs, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
        let word = rest.trim_start_matches([' ', '\t']);
        let apart = word.len() < rest.len();
        let (name, after) = match word.as_bytes().first()? {
            quote @ (b'\'' | b'"') => {
                let close = memchr(*quote, &word.as_bytes()[1..])?;
                // Blanks behind the end line do not count.
                (fence::trim_end(&word[1..1 + close]), &word[close + 2..])
            }
            _ => {
                let word = word.strip_prefix('\\').unwrap_or(word);
                // Before its end is looked for: many such signs may stand in one word.
                if !begins_identifier(word) {
                    return None;
                }
                let len = word.find([' ', '\t']).unwrap_or(word.len());
                (&word[..len], &word[len..])
            }
        };
        let quoted = word.starts_with(['\'', '"']);
        let letter = begins_identifier(name);
        let identifier = letter && name.chars().all(|char| char.is_alphanumeric() || char == '_');
        let ends_word = after.is_empty() || after.starts_with([' ', '\t']);
        if !ends_word || name.is_empty() || !(quoted || if apart { identifier } else { letter }) {
            return None;
        }
        if !self.in_word {
            self.begin(at, true, sink);
        }
        self.heredocs.push(Heredoc { end: name.to_owned(), tabs, at });
        sink.heredoc();
        self.after_equals = false;
        Some(end - after.len())
    }
}

fn begins_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Whether a line that begins a command holds nothing that could make the command go on.
pub(super) fn is_whole(line: &[u8]) -> bool {
    memchr3(b'"', b'\'', b'\\', line).is_none() && memchr2(b'<', 0xE2, line).is_none()
}

/// The words that most words are: without quotes, escapes and equals signs, or in double quotes from end to end without
/// escapes. Gives the place after it. This only saves time: the machine would find the same.
fn simple_word<S: Sink>(bytes: &[u8], at: usize, end: usize, sink: &mut S) -> Option<usize> {
    match bytes[at] {
        b'"' => {
            let close = at + 1 + memchr2(b'"', b'\\', &bytes[at + 1..end])?;
            let ends = close + 1 == end || fence::is_blank(bytes[close + 1]);
            if bytes[close] == b'\\' || !ends {
                return None;
            }
            sink.word(at..close + 1, at + 1..close);
            Some(close + 1)
        }
        b'\'' | b'$' | b'<' | 0xE2 => None,
        _ => {
            let len = bytes[at..end].iter().position(|byte| ENDS_SIMPLE[usize::from(*byte)]).unwrap_or(end - at);
            let stop = at + len;
            if stop < end && !fence::is_blank(bytes[stop]) {
                return None;
            }
            sink.word(at..stop, at..stop);
            Some(stop)
        }
    }
}

/// The bytes that end a simple word, or make it none.
static ENDS_SIMPLE: [bool; 256] = {
    let mut table = [false; 256];
    table[b' ' as usize] = true;
    table[b'\t' as usize] = true;
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'=' as usize] = true;
    table
};

enum Closing {
    No,
    /// The quote ends, with a mark of so many bytes.
    Here(usize),
    /// A curly quote inside it opened or closed.
    Depth(Quote),
    TooDeep,
}

/// What the character at the start of `rest` does to an open quote.
fn closing(quote: Quote, rest: &str) -> Closing {
    let Quote::Curly { double, depth } = quote else {
        return Closing::Here(1);
    };
    let (open, close) = if double { ('“', '”') } else { ('‘', '’') };
    let mut chars = rest.chars();
    let depth = match chars.next() {
        Some(char) if char == open => depth + 1,
        // A single one before a letter is an apostrophe.
        Some(char) if char == close && (double || !chars.next().is_some_and(char::is_alphanumeric)) => depth - 1,
        _ => return Closing::No,
    };
    match depth {
        0 => Closing::Here(close.len_utf8()),
        1..=MAX_CURLY => Closing::Depth(Quote::Curly { double, depth }),
        _ => Closing::TooDeep,
    }
}

/// A quote that opens only at the start of a word or after `=`.
fn opening(rest: &str) -> Option<(Quote, usize)> {
    match rest.as_bytes() {
        [b'\'', ..] => Some((Quote::Single, 1)),
        [b'$', b'\'', ..] => Some((Quote::Ansi, 2)),
        [0xE2, 0x80, 0x9C, ..] => Some((Quote::Curly { double: true, depth: 1 }, 3)),
        [0xE2, 0x80, 0x98, ..] => Some((Quote::Curly { double: false, depth: 1 }, 3)),
        _ => None,
    }
}

/// The length of an en or em dash before a letter, which autocorrection made of two dashes.
fn dash(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('–').or_else(|| rest.strip_prefix('—'))?;
    after.starts_with(char::is_alphabetic).then_some('–'.len_utf8())
}
