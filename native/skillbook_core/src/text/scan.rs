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
//! and [`Scan::retreat`] goes back to it when the text ends without the partner. At most one snapshot is kept, and
//! curly quotes nest at most [`MAX_CURLY`] deep. Where guess after guess fails nevertheless, the machine loses its
//! [`PATIENCE`] and makes none that leaves the line, so the whole stays linear.
//!
//! A curly quote is read in three ways, and the first that holds is taken: it delimits and fences
//! nest, it delimits and fences are text, it is text itself. The extractor judges a guess by the
//! rest of its block, the tokenizer by the rest of the command, which may be less. They agree
//! because a way that fails in a text fails in each beginning of it.

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
    /// The word takes the next heredoc's value, whose lines are all indented further than what is meant if `dedent`.
    fn heredoc(&mut self, dedent: bool);
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
    fn heredoc(&mut self, _dedent: bool) {}
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
    /// `"""…"""`, read like a double quote.
    Triple,
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
            Quote::Triple => "\"\"\"",
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
    /// Behind a heredoc in `$(cat <<WORD`: what closes the substitution must follow.
    Substitution,
    Json(Json),
}

/// A JSON object or array: how deep, and whether in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Json {
    depth: usize,
    string: bool,
    escaped: bool,
}

#[derive(Debug, Clone)]
struct Heredoc {
    end: String,
    kind: Indent,
    /// It stands in `$(cat <<WORD`, in double quotes or without.
    substitution: Option<&'static str>,
    at: usize,
}

/// What becomes of the indentation of a heredoc's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indent {
    Keep,
    /// `<<-`: leading tabs are dropped.
    Tabs,
    /// `<<~`: what all lines have in common is dropped.
    Common,
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
    Substitution { close: &'static str, at: usize },
    Json(usize),
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
    again: bool,
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
    /// A code block was opened since.
    fenced: bool,
    /// A curly quote is read a second time.
    again: bool,
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
            single: false,
            after_part: false,
            words: 0,
            leading: false,
            unescaped: None,
            joined: false,
            nested: None,
            plain_fences: false,
            again: false,
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

    /// Where a value's double quote closed although the value goes on behind it: a quote that was not escaped.
    pub(super) fn unescaped(&self) -> Option<usize> {
        self.unescaped
    }

    /// What stands open.
    pub(super) fn unclosed(&self) -> Option<Unclosed> {
        match self.mode {
            Mode::Quote(quote) => Some(Unclosed::Quote(quote, self.opened)),
            Mode::Json(_) => Some(Unclosed::Json(self.opened)),
            Mode::Substitution => self.heredocs.get(self.filled.wrapping_sub(1)).and_then(|doc| {
                let close = doc.substitution?;
                Some(Unclosed::Substitution { close, at: doc.at })
            }),
            // Plain too: a dangling backslash may stand between a heredoc's word and its lines.
            Mode::Plain | Mode::Heredoc => self
                .heredocs
                .get(self.filled)
                .map(|doc| Unclosed::Heredoc { end: doc.end.clone(), at: doc.at }),
        }
    }

    /// Whether `line` ends the heredoc that is open.
    pub(super) fn ends_heredoc(&self, line: &str) -> bool {
        self.heredocs.get(self.filled).is_some_and(|doc| {
            let line = line.trim_end_matches([' ', '\t']);
            let line = if doc.kind == Indent::Keep { line } else { fence::trim_start(line) };
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

    fn guess<S: Sink>(&mut self, what: Guess, at: usize, sink: &S) {
        if self.snapshot.is_none() {
            let (in_word, flag, mark) = (self.in_word, self.flag, sink.mark());
            let again = std::mem::take(&mut self.again);
            self.snapshot = Some(Snapshot { what, at, in_word, flag, mark, fenced: false, again });
        }
    }

    fn confirm(&mut self, what: Guess) {
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.what == what) {
            self.snapshot = None;
        }
    }

    fn begin<S: Sink>(&mut self, at: usize, quoted: bool, sink: &mut S) {
        self.in_word = true;
        self.words += 1;
        self.flag = false;
        self.single = false;
        self.after_part = false;
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

    /// A line that begins inside a quote: it may open or close a nested code block. Gives where to go on.
    fn fence_line<S: Sink>(
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

    fn open_nested<S: Sink>(
        &mut self,
        quote: Quote,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) {
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
                if let Some(snapshot) = &mut self.snapshot {
                    snapshot.fenced = true;
                }
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
                return Err(if curly && self.patience == 0 {
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

    fn heredoc_line<S: Sink>(&mut self, src: &str, at: usize, end: usize, sink: &mut S) -> LineEnd {
        let line = &src[at..end];
        if self.ends_heredoc(line) {
            self.filled += 1;
            if self.heredocs[self.filled - 1].substitution.is_some() {
                self.mode = Mode::Substitution;
                return LineEnd::Heredoc;
            }
            if self.filled < self.heredocs.len() {
                return LineEnd::Heredoc;
            }
            self.mode = Mode::Plain;
            return LineEnd::Done;
        }
        let skip = match self.heredocs.get(self.filled) {
            Some(doc) if doc.kind == Indent::Tabs => {
                line.len() - line.trim_start_matches('\t').len()
            }
            _ => 0,
        };
        sink.heredoc_line(self.filled, at + skip..end);
        LineEnd::Heredoc
    }

    /// Unquoted characters, up to an opening quote (gives the place after it) or the end of the line.
    fn plain<S: Sink>(
        &mut self,
        src: &str,
        mut at: usize,
        end: usize,
        sink: &mut S,
    ) -> Result<usize, LineEnd> {
        let bytes = src.as_bytes();
        while at < end {
            let byte = bytes[at];
            let blank = if byte.is_ascii() {
                usize::from(fence::is_blank(byte))
            } else {
                blank_at(bytes, at)
            };
            if blank > 0 {
                if self.in_word {
                    self.in_word = false;
                    sink.end(at);
                }
                self.after_equals = false;
                at += blank;
                continue;
            }
            if !byte.is_ascii() {
                let invisible = invisible_at(bytes, at);
                if invisible > 0 {
                    at += invisible;
                    continue;
                }
            }
            if !self.in_word {
                if byte == b'#' && comment(src, at, end) {
                    break;
                }
                if let Some(next) = simple_word(bytes, at, end, sink) {
                    self.words += 1;
                    at = next;
                    continue;
                }
            }
            let opens = !self.in_word || self.after_equals;
            if opens && matches!(byte, b'"' | b'$' | b'{' | b'[') {
                if let Some(next) = self.open_substitution(src, at, end, sink) {
                    at = next;
                    continue;
                }
                if let Some(json) = self.json_opens(&src[at..end]) {
                    if !self.in_word {
                        self.begin(at, true, sink);
                    }
                    self.opened = at;
                    self.after_equals = false;
                    self.mode = Mode::Json(json);
                    return Ok(at);
                }
            }
            if byte == b'"' {
                let triple = opens && bytes[at..end].starts_with(b"\"\"\"");
                let (quote, len) = if triple { (Quote::Triple, 3) } else { (Quote::Double, 1) };
                return Ok(self.open(quote, src, at, len, end, sink));
            }
            if byte == b'\'' && self.in_word && self.single && self.after_part {
                return Ok(self.open(Quote::Single, src, at, 1, end, sink));
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
                    self.joined = true;
                    return Err(LineEnd::Joined);
                }
                let next = rest.chars().next();
                let len = next.map_or(0, char::len_utf8);
                // Nobody escapes a letter: it is a path or a regular expression.
                let stays = next.is_some_and(char::is_alphanumeric);
                if !self.in_word {
                    self.begin(at, true, sink);
                }
                sink.text(at + usize::from(!stays)..at + 1 + len);
                self.after_equals = false;
                self.after_part = !stays;
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
        self.after_part = false;
        while at < end {
            match bytes[at] {
                b' ' | b'\t' | b'"' | b'\\' => break,
                0xC2 | 0xE1 | 0xE2 | 0xE3 | 0xEF
                    if blank_at(bytes, at) + invisible_at(bytes, at) > 0 =>
                {
                    break
                }
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

    fn open<S: Sink>(
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
            self.begin(at, true, sink);
        }
        self.mode = Mode::Quote(quote);
        self.opened = at;
        self.after_equals = false;
        // A value may begin with a fence on the line of its quote.
        self.open_nested(quote, src, at + len, end, sink);
        at + len
    }

    /// `<<WORD`, `<<'WORD'`, `<<"WORD"`, `<<-WORD`, `<<~WORD`, and a blank before WORD if that is an identifier.
    fn open_heredoc<S: Sink>(
        &mut self,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> Option<usize> {
        let (name, kind, after) = heredoc(&src[at..end])?;
        if !self.in_word {
            self.begin(at, true, sink);
        }
        self.heredocs.push(Heredoc { end: name.to_owned(), kind, substitution: None, at });
        sink.heredoc(kind == Indent::Common);
        self.after_equals = false;
        Some(end - after.len())
    }

    /// `"$(cat <<WORD` at the line's end, with the quotes or without, is how models trained on shells write a heredoc.
    fn open_substitution<S: Sink>(
        &mut self,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> Option<usize> {
        let rest = &src[at..end];
        let (close, rest) = rest.strip_prefix('"').map_or((")", rest), |rest| (")\"", rest));
        let start = rest.strip_prefix("$(cat ")?.trim_start_matches(' ');
        let (name, kind, after) = heredoc(start)?;
        if !fence::trim_start(after).is_empty() {
            return None;
        }
        if !self.in_word {
            self.begin(at, true, sink);
        }
        self.heredocs.push(Heredoc { end: name.to_owned(), kind, substitution: Some(close), at });
        sink.heredoc(kind == Indent::Common);
        sink.end(end - after.len());
        self.in_word = false;
        self.after_equals = false;
        Some(end)
    }

    /// The line behind the end line of a heredoc in `$(cat <<WORD`. Gives where the command goes on.
    fn close_substitution(&mut self, src: &str, at: usize, end: usize) -> Option<usize> {
        let close = self.heredocs.get(self.filled.wrapping_sub(1))?.substitution?;
        let rest = fence::trim_start(&src[at..end]).strip_prefix(close)?;
        self.mode = Mode::Plain;
        Some(end - rest.len())
    }

    /// Whether a JSON object or array begins here. Only an object that is the command's first or second word may go on in
    /// the next line, and a string may not.
    fn json_opens(&mut self, line: &str) -> Option<Json> {
        let inner = fence::trim_start(line.strip_prefix(['{', '['])?);
        let object = line.starts_with('{');
        let goes_on = object && !self.in_word && self.words < 2;
        let plausible = match inner.as_bytes().first() {
            None => goes_on,
            Some(b'"') => true,
            Some(b'}') => object,
            Some(first) => !object && matches!(first, b'{' | b']'),
        };
        if !plausible || self.patience == 0 {
            return None;
        }
        let mut json = Json::default();
        let len = json.read(line.as_bytes());
        let opens = if json.depth > 0 {
            goes_on && !json.string
        } else {
            len == line.len() || blank_at(line.as_bytes(), len) > 0
        };
        if !opens {
            self.patience = self.patience.saturating_sub(len);
        }
        opens.then(Json::default)
    }

    /// The characters of a JSON object or array, up to its end or the line's.
    fn json<S: Sink>(
        &mut self,
        mut json: Json,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> Result<usize, LineEnd> {
        let next = at + json.read(&src.as_bytes()[at..end]);
        sink.text(at..next);
        if json.depth > 0 {
            self.mode = Mode::Json(json);
            return Err(LineEnd::Quote);
        }
        self.mode = Mode::Plain;
        Ok(next)
    }
}

impl Json {
    /// Reads up to the end of the outermost object or array; gives how many bytes that is.
    fn read(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            if self.string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth == 0 {
                return at + 1;
            }
        }
        bytes.len()
    }
}

/// Reads the sign of a heredoc: its word, what becomes of indentation, and the rest of the line.
fn heredoc(line: &str) -> Option<(&str, Indent, &str)> {
    let rest = line.strip_prefix("<<")?;
    let (kind, rest) = match rest.as_bytes().first()? {
        b'-' => (Indent::Tabs, &rest[1..]),
        b'~' => (Indent::Common, &rest[1..]),
        _ => (Indent::Keep, rest),
    };
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
    let good = ends_word && !name.is_empty() && (quoted || if apart { identifier } else { letter });
    good.then_some((name, kind, after))
}

/// The length of the blank at `at`, 0 if there is none: models copy no-break and ideographic spaces from pages.
fn blank_at(bytes: &[u8], at: usize) -> usize {
    match bytes[at..] {
        [b' ' | b'\t', ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        [0xE1, 0x9A, 0x80, ..] | [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..] => 3,
        [0xE2, 0x81, 0x9F, ..] | [0xE3, 0x80, 0x80, ..] => 3,
        _ => 0,
    }
}

/// The length of the character at `at` if it is one without width that no script needs inside a word: the soft hyphen,
/// the zero-width space, marks of direction, the word joiner, the byte order mark. Joiners are letters of some scripts.
fn invisible_at(bytes: &[u8], at: usize) -> usize {
    match bytes[at..] {
        [0xC2, 0xAD, ..] => 2,
        [0xE2, 0x80, 0x8B | 0x8E | 0x8F | 0xAA..=0xAE, ..] => 3,
        [0xE2, 0x81, 0xA0 | 0xA6..=0xA9, ..] | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

/// How many bytes of blanks and of characters without width a text begins with.
pub(super) fn blank(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // Nearly always the first byte tells.
        if matches!(bytes[at], b'!'..=b'~') {
            break;
        }
        match blank_at(bytes, at) + invisible_at(bytes, at) {
            0 => break,
            len => at += len,
        }
    }
    at
}

/// Whether a line opens a command block. No curly quote reaches over one: its block ends there.
fn opens_cmd(line: &str) -> bool {
    fence::opener(line).is_some_and(|opener| opener.is_cmd())
}

/// Whether a `#` that stands alone begins a comment here.
fn comment(src: &str, at: usize, end: usize) -> bool {
    src[at..end].strip_prefix('#').is_some_and(|rest| rest.is_empty() || blank(rest) > 0)
}

/// Whether a value is a path of Windows, in which backslashes are no escapes: `C:\x`, but not `C:\\x`, which is escaped.
fn is_path(value: &str) -> bool {
    matches!(value.as_bytes(), [drive, b':', b'\\', next, ..]
        if drive.is_ascii_alphabetic() && !matches!(next, b'\\' | b'"'))
}

/// Whether the quote at `at` of a value in single quotes is an apostrophe: gives what of the source to leave out.
fn apostrophe(value: &str, at: usize) -> Option<Range<usize>> {
    let letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let mut after = value[at + 1..].chars();
    let next = after.next();
    let (before, last) = (&value[..at], value[..at].chars().next_back());
    if letter(next) {
        return match last {
            // `'It\'s'`, which a shell would not read either.
            Some('\\') if letter(before[..at - 1].chars().next_back()) => Some(at - 1..at),
            _ => letter(last).then_some(at..at),
        };
    }
    // `'It''s'`
    (next == Some('\'') && letter(last) && letter(after.next())).then_some(at + 1..at + 2)
}

fn begins_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Whether a line that begins a command holds nothing that could make the command go on.
pub(super) fn is_whole(line: &[u8]) -> bool {
    memchr3(b'"', b'\'', b'\\', line).is_none() && memchr3(b'<', b'{', 0xE2, line).is_none()
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
        b'\'' | b'$' | b'<' | b'{' | b'[' => None,
        _ => {
            let len = bytes[at..end]
                .iter()
                .position(|byte| ENDS_SIMPLE[usize::from(*byte)])
                .unwrap_or(end - at);
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
    // The first bytes of blanks and of characters without width.
    table[0xC2] = true;
    table[0xE1] = true;
    table[0xE2] = true;
    table[0xE3] = true;
    table[0xEF] = true;
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
    let (double, depth) = match quote {
        Quote::Curly { double, depth } => (double, depth),
        Quote::Triple if !rest.starts_with(quote.close()) => return Closing::No,
        quote => return Closing::Here(quote.close().len()),
    };
    let (open, close) = if double { ('“', '”') } else { ('‘', '’') };
    let mut chars = rest.chars();
    let depth = match chars.next() {
        Some(char) if char == open => depth + 1,
        // A single one before a letter is an apostrophe.
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

/// The length of the dashes that stand for two: an en or em dash, or two of any kind, before a letter.
fn dash(rest: &str) -> Option<usize> {
    let dash =
        |char: &char| matches!(char, '-' | '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' | '－');
    let dashes: Vec<char> = rest.chars().take(3).take_while(dash).collect();
    let long = matches!(dashes[..], ['–' | '—' | '―'] | [_, _]) && dashes != ['-', '-'];
    let len = dashes.iter().map(|dash| dash.len_utf8()).sum();
    (long && rest[len..].starts_with(char::is_alphabetic)).then_some(len)
}
