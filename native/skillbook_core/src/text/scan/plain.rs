//! Unquoted text: blanks between words, ordinary characters, escapes, and the start of quotes,
//! heredocs and JSON.

use memchr::{memchr2, memchr3};

use super::chars::{blank_at, dash, invisible_at};
use super::quote::{opening, Quote};
use super::{comment, LineEnd, Mode, Scanner, Sink};
use crate::text::fence;

impl Scanner {
    /// Reads unquoted characters, up to the end of the line or up to an opening quote or JSON
    /// value. Returns where its text begins.
    ///
    /// The order of the checks matters: blanks, comments, simple words, then constructs that only
    /// begin a value (JSON, quotes, heredocs), then escapes. Everything else is an ordinary
    /// character.
    pub(super) fn plain<S: Sink>(
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
            // Quotes, JSON and heredocs open only at the start of a value. Elsewhere in a word
            // their characters are text: `what's`, `a{b}`.
            let opens = !self.in_word || self.after_equals;
            if opens && matches!(byte, b'"' | b'$' | b'{' | b'[') {
                if let Some(next) = self.open_substitution(src, at, end, sink) {
                    at = next;
                    continue;
                }
                if let Some(json) = self.json_opens(&src[at..end]) {
                    if !self.in_word {
                        self.begin_word(at, true, sink);
                    }
                    self.opened = at;
                    self.after_equals = false;
                    self.mode = Mode::Json(json);
                    return Ok(at);
                }
            }
            if byte == b'"' {
                // A double quote opens anywhere, as in a shell: `a"b c"d` is one word. Only `"""`
                // needs the start of a value, since `""` in a word is an empty part.
                let triple = opens && bytes[at..end].starts_with(b"\"\"\"");
                let (quote, len) = if triple { (Quote::Triple, 3) } else { (Quote::Double, 1) };
                return Ok(self.open_quote(quote, src, at, len, end, sink));
            }
            // The last part of `'It'\''s'`.
            if byte == b'\'' && self.in_word && self.single && self.after_part {
                return Ok(self.open_quote(Quote::Single, src, at, 1, end, sink));
            }
            if opens {
                if let Some((quote, len)) = opening(&src[at..end]) {
                    return Ok(self.open_quote(quote, src, at, len, end, sink));
                }
                // `--flag=<<EOF` is a heredoc, but `x=<<EOF` may be code.
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
                // Before a letter the backslash stays: paths and regular expressions have such, and
                // no letter needs an escape.
                let stays = next.is_some_and(char::is_alphanumeric);
                if !self.in_word {
                    self.begin_word(at, true, sink);
                }
                sink.text(at + usize::from(!stays)..at + 1 + len);
                self.after_equals = false;
                self.after_part = !stays;
                at += 1 + len;
                continue;
            }
            at = self.ordinary(src, at, end, sink);
        }
        self.after_equals = false;
        if self.in_word {
            self.in_word = false;
            sink.end(end);
        }
        if self.heredocs_read < self.heredocs.len() {
            self.mode = Mode::Heredoc;
            return Err(LineEnd::Heredoc);
        }
        Err(LineEnd::Done)
    }

    /// Reads ordinary characters of a word, as many as there are.
    fn ordinary<S: Sink>(&mut self, src: &str, mut at: usize, end: usize, sink: &mut S) -> usize {
        let bytes = src.as_bytes();
        if !self.in_word {
            self.begin_word(at, false, sink);
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
}

/// Whether a command's first line contains nothing that could continue it on the next line. May
/// return false for lines that do not continue.
pub(in crate::text) fn is_whole(line: &[u8]) -> bool {
    memchr3(b'"', b'\'', b'\\', line).is_none() && memchr3(b'<', b'{', 0xE2, line).is_none()
}

/// Reads a word of the most common forms: without quotes, escapes and equals signs, or in double
/// quotes from end to end without escapes. Returns the offset after it.
///
/// This is a shortcut: the machine finds the same words, but takes longer.
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

/// The bytes that end a simple word, or make it a word for the machine.
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
