//! A command's words, with their places.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::error::{Error, Kind};
use super::fence;
use super::scan::{self, LineEnd, NoWords, Quote, Scan, Sink, Unclosed, PATIENCE};
use super::{MAX_COMMAND, MAX_WORDS};

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// What it means: borrowed from the source where no character changes.
    pub value: Cow<'a, str>,
    /// Its bytes in the source, quotes included; for a heredoc those of `<<WORD`.
    pub span: Range<usize>,
    /// Whether it began with a quote, an escape or a heredoc: such a word is never a flag or an operator.
    pub quoted: bool,
}

/// What a placeholder stands for: the result of another command of the same reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// `{1}`: that of the command of this number, from 1.
    Number(u32),
    /// `{last}`: that of the command before.
    Last,
}

impl Reference {
    /// What a text stands for if it is a placeholder and nothing else.
    pub(super) fn of(text: &str) -> Option<Self> {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        if inner == "last" {
            return Some(Reference::Last);
        }
        let digits = inner == "0"
            || !inner.starts_with('0') && inner.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| inner.parse().ok()).flatten().map(Reference::Number)
    }
}

impl Word<'_> {
    /// What the word stands for: it is a placeholder as it was written, without a quote or an escape.
    pub fn placeholder(&self, source: &str) -> Option<Reference> {
        Reference::of(&self.value).filter(|_| source[self.span.clone()] == self.value)
    }
}

/// Splits a command into words.
///
/// A comment line and a blank one have none. Lines go on in open quotes, in heredocs and after a backslash; any other
/// second line is an error.
///
/// ```
/// let words = skillbook_core::text::words::split(r#"email.send --subject "Q1 Report" what's up"#).unwrap();
/// let values: Vec<_> = words.iter().map(|word| word.value.as_ref()).collect();
/// assert_eq!(values, ["email.send", "--subject", "Q1 Report", "what's", "up"]);
/// ```
pub fn split(source: &str) -> Result<Vec<Word<'_>>, Error> {
    if source.len() > MAX_COMMAND {
        return Err(Error::whole(
            Kind::CommandTooLarge,
            0..source.len(),
            format!("a command may have {MAX_COMMAND} bytes; this one has {}", source.len()),
            "split the text over several commands, or save it to a file and name the file",
        ));
    }
    let mut at = start(source);
    let mut words = Words::new(source);
    if source[at..].starts_with('#') {
        at = source[at..].find('\n').map_or(source.len(), |line| at + line);
        return match next_command(source, at) {
            None => Ok(words.list),
            Some(at) => Err(several(source, at)),
        };
    }
    let (scan, next) = read(source, at, &mut words);
    if let Some(at) = next {
        return Err(several(source, at));
    }
    match scan.unclosed() {
        _ if scan.unescaped().is_some() => {
            Err(unescaped(source, scan.unescaped().unwrap_or_default()))
        }
        Some(unclosed) => Err(unclosed_error(source, unclosed)),
        None => words.finish(),
    }
}

/// Runs the machine over the command that begins at `at`. Gives it, and where another command follows.
fn read<S: Sink>(source: &str, mut at: usize, sink: &mut S) -> (Scan, Option<usize>) {
    let mut scan = Scan::new(PATIENCE);
    let mut line_start = true;
    let mut line = line_at(source, at);
    loop {
        let line_end = scan.line(source, at, line.end, line_start, sink);
        let last = line.end == line.next;
        match line_end {
            LineEnd::Done => {
                return (scan, next_command(source, line.next));
            }
            LineEnd::Quote if !last && &source[line.end..line.next] == "\n" => {
                sink.text(line.end..line.next)
            }
            LineEnd::Quote if !last => sink.push("\n"),
            LineEnd::Joined | LineEnd::Heredoc if !last => {}
            LineEnd::Joined | LineEnd::Quote | LineEnd::Heredoc | LineEnd::Retreat => {
                match scan.retreat(line.end, sink) {
                    Some(resume) => {
                        // A long line may send the scan back often: its end stays where it is.
                        if resume < at {
                            line = line_at(source, resume);
                        }
                        at = resume;
                        line_start = false;
                        continue;
                    }
                    None => {
                        scan.close(source.len(), sink);
                        return (scan, None);
                    }
                }
            }
        }
        at = line.next;
        line_start = true;
        line = line_at(source, at);
    }
}

/// Whether no other command follows the one that a text begins with. [`split`] refuses a text that
/// is too large anyway.
pub(super) fn is_one(source: &str) -> bool {
    source.len() > MAX_COMMAND || read(source, start(source), &mut NoWords).1.is_none()
}

/// A word as it is written in a command on one line: [`split`] gives it back, whatever is in it.
///
/// ```
/// use skillbook_core::text::words::quote;
/// assert_eq!(quote("bob@co.com"), "bob@co.com");
/// assert_eq!(quote("the \"best\"\none"), r#""the \"best\"\none""#);
/// ```
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain = |character: char| character.is_alphanumeric() || "_.@:/+".contains(character);
    if word.starts_with(plain)
        && word.chars().all(|character| plain(character) || ",-".contains(character))
    {
        return Cow::Borrowed(word);
    }
    // A value in double quotes that begins with a drive has no escapes: `"C:\new"`.
    let drive = matches!(word.as_bytes(), [drive, b':', b'\n' | b'\r' | b'\t', ..] if drive.is_ascii_alphabetic());
    let (open, close) = if drive { ("$'", '\'') } else { ("\"", '"') };
    let mut quoted = String::with_capacity(word.len() + 8);
    quoted.push_str(open);
    for character in word.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ => {
                if character == '\\' || character == close {
                    quoted.push('\\');
                }
                quoted.push(character);
            }
        }
    }
    quoted.push(close);
    Cow::Owned(quoted)
}

/// Where the command begins: behind blanks and one prompt.
pub(super) fn start(source: &str) -> usize {
    let lead = lead(source);
    lead + prompt(&source[lead..])
}

/// How many bytes of blanks and line breaks a text begins with.
pub(super) fn lead(source: &str) -> usize {
    let mut from = 0;
    loop {
        let rest = &source[from..];
        from += match rest.as_bytes().first() {
            Some(b'\r' | b'\n') => 1,
            _ => match scan::blank(rest) {
                0 => return from,
                len => len,
            },
        }
    }
}

/// The length of a prompt that models copy from terminals, or of the mark of a list.
pub(super) fn prompt(line: &str) -> usize {
    let mark = match line.as_bytes() {
        [b'>', b'>', b'>', ..] => 3,
        [b'$' | b'>' | b'-' | b'*', ..] => 1,
        [b'0'..=b'9', ..] => {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            if !line[digits..].starts_with(['.', ')']) {
                return 0;
            }
            digits + 1
        }
        [0xE2, ..] if line.starts_with('•') => '•'.len_utf8(),
        _ => return 0,
    };
    match scan::blank(&line[mark..]) {
        0 => 0,
        blank => mark + blank,
    }
}

struct Line {
    /// Before the line break.
    end: usize,
    /// After it; the same as `end` in the last line.
    next: usize,
}

fn line_at(source: &str, at: usize) -> Line {
    let bytes = source.as_bytes();
    match memchr::memchr(b'\n', &bytes[at..]) {
        None => {
            let end = if source[at..].ends_with('\r') { source.len() - 1 } else { source.len() };
            Line { end, next: end }
        }
        Some(found) => {
            let end = at + found;
            let carriage = end > at && bytes[end - 1] == b'\r';
            Line { end: end - usize::from(carriage), next: end + 1 }
        }
    }
}

fn next_command(source: &str, at: usize) -> Option<usize> {
    let rest = source[at..].trim_start_matches([' ', '\t', '\r', '\n']);
    (!rest.is_empty()).then(|| source.len() - rest.len())
}

fn several(source: &str, at: usize) -> Error {
    let end = source[at..].find(char::is_whitespace).map_or(source.len(), |len| at + len);
    Error::at(
        Kind::SeveralCommands,
        source,
        at..end,
        "one command was expected, and the next line begins another",
        "put each command on its own line of a cmd block; a value of several lines stands in quotes or in a heredoc",
    )
}

fn unclosed_error(source: &str, unclosed: Unclosed) -> Error {
    match unclosed {
        Unclosed::Heredoc { end, at } => {
            let len = source[at..].find([' ', '\t', '\n', '\r']).unwrap_or(source.len() - at);
            Error::at(
                Kind::UnclosedHeredoc,
                source,
                at..at + len,
                format!("the heredoc that begins here has no end line `{end}`"),
                format!(
                    "after the text write a line that is {end} alone, then close the block; quote it if it is part of a value"
                ),
            )
        }
        Unclosed::Substitution { close, at } => {
            let end = source[at..].find('\n').map_or(source.len(), |len| at + len);
            Error::at(
                Kind::UnclosedHeredoc,
                source,
                at..end,
                format!("the substitution that opens here is not closed: no line `{close}` comes behind the heredoc"),
                "there are no substitutions: write the heredoc itself, --flag <<EOF, then the text, then a line EOF",
            )
        }
        Unclosed::Json(at) => Error::at(
            Kind::UnclosedJson,
            source,
            at..at + 1,
            "the JSON object that opens here is never closed",
            "write the whole object, up to its last }, or write flags: --name value",
        ),
        Unclosed::Quote(quote, at) => {
            let (name, len, hint) = match quote {
                Quote::Double if before_close(source, at) => (
                    "double",
                    1,
                    "\\\" stands for a quote inside the value: write \\\\ for a backslash at its end, or use '…'",
                ),
                Quote::Double => ("double", 1, "close the value with \", and write \\\" for a quote inside it"),
                Quote::Triple => ("triple", 3, "close the value with \"\"\""),
                Quote::Ansi => ("single", 2, "close the value with ', and write \\' for a quote inside it"),
                _ => ("single", 1, "close the value with ', or put a value that holds an apostrophe in \"…\""),
            };
            Error::at(
                Kind::UnclosedQuote,
                source,
                at..at + len,
                format!("the {name} quote that opens here is never closed"),
                format!(
                    "{hint}; for a long text use a heredoc: --flag <<EOF, the text, a line EOF"
                ),
            )
        }
    }
}

fn unescaped(source: &str, at: usize) -> Error {
    Error::at(
        Kind::UnescapedQuote,
        source,
        at..at + 1,
        "the value ends at this quote, and more follows without a blank",
        "write \\\" for a quote inside the value, or '…' around it; for a long text use a heredoc: --flag <<EOF, the text, a line EOF",
    )
}

/// Whether the quote was meant to close behind a backslash, as in `"C:\Users\"`.
fn before_close(source: &str, at: usize) -> bool {
    source[at + 1..].trim_end().ends_with("\\\"")
}

/// The text of a word: a part of the source as long as it can be.
#[derive(Debug, Clone)]
enum Piece {
    Empty,
    Source(Range<usize>),
    Owned(String),
}

impl Piece {
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

    fn into_text(self, source: &str) -> Cow<'_, str> {
        match self {
            Piece::Empty => Cow::Borrowed(""),
            Piece::Source(range) => Cow::Borrowed(&source[range]),
            Piece::Owned(text) => Cow::Owned(text),
        }
    }
}

/// A heredoc's value, for the word at an index.
#[derive(Debug, Clone)]
struct Doc {
    word: usize,
    value: Piece,
    begun: bool,
    dedent: bool,
    /// Where its last line ended.
    end: usize,
}

struct Words<'a> {
    source: &'a str,
    list: Vec<Word<'a>>,
    docs: Vec<Doc>,
    value: Piece,
    start: usize,
    quoted: bool,
}

impl<'a> Words<'a> {
    fn new(source: &'a str) -> Self {
        let list = Vec::with_capacity(16);
        Words { source, list, docs: Vec::new(), value: Piece::Empty, start: 0, quoted: false }
    }

    fn finish(mut self) -> Result<Vec<Word<'a>>, Error> {
        for doc in self.docs {
            let word = &mut self.list[doc.word];
            let value = doc.value.into_text(self.source);
            let value = if doc.dedent { Cow::Owned(dedent(&value)) } else { value };
            // The word is `--flag=` where the heredoc stands behind an equals sign.
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

impl Sink for Words<'_> {
    fn start(&mut self, at: usize, quoted: bool) {
        self.value = Piece::Empty;
        self.start = at;
        self.quoted = quoted;
    }

    fn text(&mut self, range: Range<usize>) {
        self.value.push_source(self.source, range);
    }

    fn push(&mut self, text: &'static str) {
        self.value.push(self.source, text);
    }

    fn word(&mut self, span: Range<usize>, value: Range<usize>) {
        let quoted = span.len() != value.len();
        self.list.push(Word { value: Cow::Borrowed(&self.source[value]), span, quoted });
    }

    fn end(&mut self, at: usize) {
        let value = std::mem::replace(&mut self.value, Piece::Empty).into_text(self.source);
        self.list.push(Word { value, span: self.start..at, quoted: self.quoted });
    }

    fn heredoc(&mut self, dedent: bool) {
        self.docs.push(Doc {
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
            let plain = self.source.as_bytes().get(doc.end) == Some(&b'\n');
            match doc.value {
                // An empty first line leaves nothing behind to be extended.
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

/// Takes off the indentation that all lines but blank ones have in common.
fn dedent(text: &str) -> String {
    let blanks = |line: &str| line.len() - fence::trim_start(line).len();
    let lines = text.split('\n').filter(|line| blanks(line) < line.len());
    let common = lines.map(blanks).min().unwrap_or(0);
    let lines: Vec<_> = text.split('\n').map(|line| &line[common.min(blanks(line))..]).collect();
    lines.join("\n")
}

/// The first semicolon between two commands.
fn semicolon(source: &str, words: &[Word<'_>]) -> Option<Error> {
    let (word, _) = words.iter().zip(&words[1.min(words.len())..]).find(|(word, next)| {
        ends_statement(source, word) || (ends_with_semicolon(source, word) && is_name(source, next))
    })?;
    Some(unsupported(source, ";", word.span.end - 1..word.span.end))
}

fn is_operator(word: &Word<'_>) -> bool {
    !word.quoted
        && word.value.len() <= 3
        && word.span.len() == word.value.len()
        && matches!(word.value.as_ref(), "|" | "||" | "&&" | ";" | "&" | ">" | ">>" | "<" | "<<<")
}

/// Whether a word ends in a semicolon that no quote covers.
fn ends_with_semicolon(source: &str, word: &Word<'_>) -> bool {
    let text = &source[word.span.clone()];
    text.len() > 1 && text.ends_with(';') && !text.ends_with("\\;") && word.value.ends_with(';')
}

/// Whether a semicolon stands right behind a closing quote: it ends the command, as in other languages.
fn ends_statement(source: &str, word: &Word<'_>) -> bool {
    let text = &source[word.span.clone()];
    ends_with_semicolon(source, word)
        && (word.quoted || text.contains('='))
        && (text.ends_with("\";") || text.ends_with("';"))
}

/// Whether a word looks like the name of a command.
fn is_name(source: &str, word: &Word<'_>) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let two =
        word.value.split_once('.').is_some_and(|(domain, action)| part(domain) && part(action));
    !word.quoted
        && source[word.span.clone()] == word.value
        && (two || word.value.starts_with("get_skill"))
}

/// A quote that closes at the end of a word where none was open, behind a value in single quotes: that one ended earlier
/// than was meant.
fn stray_quote(source: &str, words: &[Word<'_>]) -> Option<Error> {
    let single = words.iter().position(|word| source[word.span.clone()].starts_with('\''))?;
    let stray = words[single + 1..].iter().find(|word| {
        let text = &source[word.span.clone()];
        !word.quoted
            && text.len() > 1
            && text.ends_with('\'')
            && word.value.matches('\'').count() == 1
    })?;
    Some(Error::at(
        Kind::UnescapedQuote,
        source,
        stray.span.end - 1..stray.span.end,
        "no quote is open that could close here: the value in single quotes ended earlier",
        "put a value that holds an apostrophe in \"…\"",
    ))
}

fn unsupported(source: &str, value: &str, span: Range<usize>) -> Error {
    let hint = match value {
        "<<<" => "write the text itself behind the flag, in quotes",
        ">" | ">>" | "<" => "there are no redirections; one command a line, and its result comes back to you",
        "|" => {
            "there are no pipes; one command a line, and {1} as a value in the next stands for the result of the first"
        }
        _ => {
            "one command a line: write the next command on a line of its own; {1} as a value there is the first one's result"
        }
    };
    Error::at(
        Kind::UnsupportedOperator,
        source,
        span,
        format!("`{value}` is not supported: this is not a shell"),
        format!("{hint}; quote it (\"{value}\") if it is part of a value"),
    )
}
