//! Builds words from the scanner's calls. A value is a range of the source until an escape or a
//! removed character makes it differ; only then is it copied.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::mistakes::{ends_statement, is_operator, semicolon, stray_quote, unsupported};
use super::Word;
use crate::text::error::{Error, Kind};
use crate::text::fence;
use crate::text::scan::Sink;
use crate::text::MAX_WORDS;

/// The text of a word so far.
#[derive(Debug, Clone)]
enum Piece {
    Empty,
    Source(Range<usize>),
    Owned(String),
}

impl Piece {
    #[inline]
    fn push_source(&mut self, source: &str, range: Range<usize>) {
        match self {
            _ if range.is_empty() => {}
            Piece::Empty => *self = Piece::Source(range),
            Piece::Source(have) if have.end == range.start => have.end = range.end,
            _ => self.owned(source).push_str(&source[range]),
        }
    }

    fn push(&mut self, source: &str, text: &str) {
        self.owned(source).push_str(text);
    }

    fn owned(&mut self, source: &str) -> &mut String {
        let text = match self {
            Piece::Empty => String::new(),
            Piece::Source(range) => source[range.clone()].to_owned(),
            Piece::Owned(text) => std::mem::take(text),
        };
        *self = Piece::Owned(text);
        match self {
            Piece::Owned(text) => text,
            _ => unreachable!("it was just made owned"),
        }
    }

    fn len(&self) -> usize {
        match self {
            Piece::Empty => 0,
            Piece::Source(range) => range.len(),
            Piece::Owned(text) => text.len(),
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            Piece::Empty => {}
            Piece::Source(range) => range.end = range.start + len,
            Piece::Owned(text) => text.truncate(len),
        }
    }

    #[inline]
    fn into_text(self, source: &str) -> Cow<'_, str> {
        match self {
            Piece::Empty => Cow::Borrowed(""),
            Piece::Source(range) => Cow::Borrowed(&source[range]),
            Piece::Owned(text) => Cow::Owned(text),
        }
    }
}

/// The value of a heredoc. It is complete after its word, so words receive it in the end.
#[derive(Debug, Clone)]
struct HeredocValue {
    word: usize,
    value: Piece,
    begun: bool,
    dedent: bool,
    /// Where its last line ends.
    end: usize,
}

pub(super) struct WordBuilder<'a> {
    source: &'a str,
    pub(super) list: Vec<Word<'a>>,
    docs: Vec<HeredocValue>,
    value: Piece,
    start: usize,
    quoted: bool,
}

impl<'a> WordBuilder<'a> {
    #[inline]
    pub(super) fn new(source: &'a str) -> Self {
        let list = Vec::with_capacity(16);
        WordBuilder { source, list, docs: Vec::new(), value: Piece::Empty, start: 0, quoted: false }
    }

    #[inline]
    pub(super) fn finish(mut self) -> Result<Vec<Word<'a>>, Error> {
        for doc in self.docs {
            let word = &mut self.list[doc.word];
            let value = doc.value.into_text(self.source);
            let value = if doc.dedent { Cow::Owned(dedent(&value)) } else { value };
            // In `--flag=<<EOF` the word has the flag already.
            word.value = if word.value.is_empty() {
                value
            } else {
                Cow::Owned(format!("{}{value}", word.value))
            };
        }
        if self.list.len() > MAX_WORDS {
            let span = self.list[MAX_WORDS].span.clone();
            return Err(Error::at(
                Kind::TooManyWords,
                self.source,
                span,
                format!("a command may have {MAX_WORDS} words; this one has {}", self.list.len()),
                "quote a long text, so that it is one word, or use a heredoc",
            ));
        }
        if let Some(word) = self.list.iter().find(|word| is_operator(word)) {
            return Err(unsupported(self.source, &word.value, word.span.clone()));
        }
        // The checks below look at every word. Most commands have neither character.
        if memchr2(b';', b'\'', self.source.as_bytes()).is_some() {
            if let Some(error) =
                semicolon(self.source, &self.list).or_else(|| stray_quote(self.source, &self.list))
            {
                return Err(error);
            }
            if let Some(last) =
                self.list.last_mut().filter(|word| ends_statement(self.source, word))
            {
                let len = last.value.len() - 1;
                match &mut last.value {
                    Cow::Borrowed(value) => *value = &value[..len],
                    Cow::Owned(value) => value.truncate(len),
                }
            }
        }
        Ok(self.list)
    }
}

impl Sink for WordBuilder<'_> {
    #[inline]
    fn start(&mut self, at: usize, quoted: bool) {
        self.value = Piece::Empty;
        self.start = at;
        self.quoted = quoted;
    }

    #[inline]
    fn text(&mut self, range: Range<usize>) {
        self.value.push_source(self.source, range);
    }

    fn push(&mut self, text: &'static str) {
        self.value.push(self.source, text);
    }

    #[inline]
    fn word(&mut self, span: Range<usize>, value: Range<usize>) {
        let quoted = span.len() != value.len();
        self.list.push(Word { value: Cow::Borrowed(&self.source[value]), span, quoted });
    }

    #[inline]
    fn end(&mut self, at: usize) {
        let value = std::mem::replace(&mut self.value, Piece::Empty).into_text(self.source);
        self.list.push(Word { value, span: self.start..at, quoted: self.quoted });
    }

    fn heredoc(&mut self, dedent: bool) {
        self.docs.push(HeredocValue {
            word: self.list.len(),
            value: Piece::Empty,
            begun: false,
            dedent,
            end: 0,
        });
    }

    fn heredoc_line(&mut self, index: usize, range: Range<usize>) {
        let doc = &mut self.docs[index];
        if doc.begun {
            // Two lines are one range of the source if only a line feed separates them.
            let plain = self.source.as_bytes().get(doc.end) == Some(&b'\n');
            match doc.value {
                // An empty first line has no range to extend.
                Piece::Source(_) if plain => {
                    doc.value.push_source(self.source, doc.end..doc.end + 1)
                }
                _ => doc.value.push(self.source, "\n"),
            }
        }
        doc.begun = true;
        doc.end = range.end;
        doc.value.push_source(self.source, range);
    }

    fn mark(&self) -> usize {
        self.value.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.value.truncate(mark);
    }
}

/// Removes the indentation that all lines have in common, except blank ones.
fn dedent(text: &str) -> String {
    let blanks = |line: &str| line.len() - fence::trim_start(line).len();
    let lines = text.split('\n').filter(|line| blanks(line) < line.len());
    let common = lines.map(blanks).min().unwrap_or(0);
    let lines: Vec<_> = text.split('\n').map(|line| &line[common.min(blanks(line))..]).collect();
    lines.join("\n")
}
