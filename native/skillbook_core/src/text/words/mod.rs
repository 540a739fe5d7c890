//! Splits a command into words, and quotes a word so that it can be written in a command.
//!
//! The grammar resembles a shell's, without expansion: quotes, backslashes and heredocs. See `scan`
//! for the exact rules.

mod builder;
mod mistakes;

use std::borrow::Cow;
use std::ops::Range;

use self::builder::WordBuilder;
use self::mistakes::{several, unclosed_error, unescaped};
use super::error::{Error, Kind};
use super::scan::{self, LineEnd, NoWords, Scanner, Sink, GUESS_BUDGET};
use super::MAX_COMMAND;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// The value, without quotes and escapes. Borrowed from the source where no character changes.
    pub value: Cow<'a, str>,
    /// Its byte range in the source, quotes included. For a heredoc, the range of `<<WORD`.
    pub span: Range<usize>,
    /// Whether it begins with a quote, an escape or a heredoc. Such a word is never a flag or an
    /// operator.
    pub quoted: bool,
}

/// The target of a placeholder: the result of another command of the same reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// `{1}`: the command with this number, from 1.
    Number(u32),
    /// `{last}`: the previous command.
    Last,
}

impl Reference {
    /// Reads a text that is a placeholder and nothing else.
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
    /// The target, if the word is a placeholder, written without a quote or an escape.
    pub fn placeholder(&self, source: &str) -> Option<Reference> {
        Reference::of(&self.value).filter(|_| source[self.span.clone()] == self.value)
    }
}

/// Splits a command into words.
///
/// A comment line or a blank line has none. A command continues on the next line in quotes, in
/// heredocs and after a backslash. Any other second line is an error.
///
/// ```
/// use skillbook_core::text::words::split;
///
/// let words = split(r#"email.send --subject "Q1 Report" what's up"#).unwrap();
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
    let mut at = command_start(source);
    let mut words = WordBuilder::new(source);
    if source[at..].starts_with('#') {
        at = source[at..].find('\n').map_or(source.len(), |line| at + line);
        return match next_command(source, at) {
            None => Ok(words.list),
            Some(at) => Err(several(source, at)),
        };
    }
    let mut scan = Scanner::new(GUESS_BUDGET);
    if let Some(at) = read(source, at, &mut scan, &mut words) {
        return Err(several(source, at));
    }
    match scan.unclosed() {
        // First: a quote that lacks its backslash may leave a later quote open too.
        _ if scan.unescaped().is_some() => {
            Err(unescaped(source, scan.unescaped().unwrap_or_default()))
        }
        Some(unclosed) => Err(unclosed_error(source, unclosed)),
        None => words.finish(),
    }
}

/// Scans the command that begins at `at`. Returns where another command follows. The scanner, which
/// is large, is the caller's, so that it is not moved.
#[inline]
fn read<S: Sink>(source: &str, mut at: usize, scan: &mut Scanner, sink: &mut S) -> Option<usize> {
    let mut line_start = true;
    let mut line = line_at(source, at);
    loop {
        let line_end = scan.scan_line(source, at, line.end, line_start, sink);
        let last = line.end == line.next;
        match line_end {
            LineEnd::Done => {
                return next_command(source, line.next);
            }
            LineEnd::Quote if !last && &source[line.end..line.next] == "\n" => {
                sink.text(line.end..line.next)
            }
            LineEnd::Quote if !last => sink.push("\n"),
            LineEnd::Joined | LineEnd::Heredoc if !last => {}
            LineEnd::Joined | LineEnd::Quote | LineEnd::Heredoc | LineEnd::Retreat => {
                match scan.retreat(line.end, sink) {
                    Some(resume) => {
                        // Many guesses can fail on one long line. Searching for its end each time
                        // would be quadratic.
                        if resume < at {
                            line = line_at(source, resume);
                        }
                        at = resume;
                        line_start = false;
                        continue;
                    }
                    None => {
                        scan.close(source.len(), sink);
                        return None;
                    }
                }
            }
        }
        at = line.next;
        line_start = true;
        line = line_at(source, at);
    }
}

/// Whether a text contains only one command. A text that is too large counts as one: [`split`]
/// refuses it.
pub(super) fn is_one_command(source: &str) -> bool {
    let scan = &mut Scanner::new(GUESS_BUDGET);
    source.len() > MAX_COMMAND || read(source, command_start(source), scan, &mut NoWords).is_none()
}

/// Quotes a word for a command on one line, if it needs quotes. [`split`] reads it back unchanged.
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
    // In double quotes, `"C:\new"` is a Windows path without escapes. So a word like "C:", then a
    // line break, needs the other quotes.
    let drive = matches!(
        word.as_bytes(),
        [drive, b':', b'\n' | b'\r' | b'\t', ..] if drive.is_ascii_alphabetic()
    );
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

/// Where the command begins, after blanks and one prompt.
pub(super) fn command_start(source: &str) -> usize {
    let lead = leading_blanks(source);
    lead + prompt_len(&source[lead..])
}

/// How many bytes of blanks and line breaks a text begins with.
pub(super) fn leading_blanks(source: &str) -> usize {
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

/// The length of a prompt, which models copy from terminals, or of a list marker.
pub(super) fn prompt_len(line: &str) -> usize {
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
    /// The end, without the line break.
    end: usize,
    /// The end with the line break. The same as `end` on the last line.
    next: usize,
}

#[inline]
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

#[inline]
fn next_command(source: &str, at: usize) -> Option<usize> {
    let rest = source[at..].trim_start_matches([' ', '\t', '\r', '\n']);
    (!rest.is_empty()).then(|| source.len() - rest.len())
}
