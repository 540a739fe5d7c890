//! Heredocs: `<<EOF`, `<<'EOF'`, `<<-EOF`, `<<~EOF`, and `"$(cat <<EOF` as shells write them.
//!
//! A heredoc's lines follow the line that opens it, up to a line that holds only its word.

use memchr::memchr;

use super::{LineEnd, Mode, Scanner, Sink};
use crate::text::fence;

/// A heredoc of the command's line.
#[derive(Debug, Clone)]
pub(super) struct Heredoc {
    /// The word of its end line.
    pub(super) end: String,
    kind: Indent,
    /// The text that closes the `$(cat <<WORD` around it: `)`, or `)"` in double quotes.
    pub(super) substitution: Option<&'static str>,
    pub(super) at: usize,
}

/// How to treat the indentation of a heredoc's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indent {
    Keep,
    /// `<<-`: remove leading tabs, as shells do.
    Tabs,
    /// `<<~`: remove the indentation that all lines have in common, as Ruby does.
    Common,
}

impl Scanner {
    /// Whether `line` ends the open heredoc.
    pub(in crate::text) fn ends_heredoc(&self, line: &str) -> bool {
        self.heredocs.get(self.heredocs_read).is_some_and(|doc| {
            let line = line.trim_end_matches([' ', '\t']);
            // `<<-` and `<<~` allow an indented end line, `<<` does not.
            let line = if doc.kind == Indent::Keep { line } else { fence::trim_start(line) };
            line == doc.end
        })
    }

    pub(super) fn heredoc_line<S: Sink>(
        &mut self,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> LineEnd {
        let line = &src[at..end];
        if self.ends_heredoc(line) {
            self.heredocs_read += 1;
            if self.heredocs[self.heredocs_read - 1].substitution.is_some() {
                self.mode = Mode::Substitution;
                return LineEnd::Heredoc;
            }
            if self.heredocs_read < self.heredocs.len() {
                return LineEnd::Heredoc;
            }
            self.mode = Mode::Plain;
            return LineEnd::Done;
        }
        let skip = match self.heredocs.get(self.heredocs_read) {
            Some(doc) if doc.kind == Indent::Tabs => {
                line.len() - line.trim_start_matches('\t').len()
            }
            _ => 0,
        };
        sink.heredoc_line(self.heredocs_read, at + skip..end);
        LineEnd::Heredoc
    }

    /// Opens a heredoc: `<<WORD`, `<<'WORD'`, `<<"WORD"`, `<<-WORD` or `<<~WORD`, with a blank
    /// before WORD if it is an identifier.
    pub(super) fn open_heredoc<S: Sink>(
        &mut self,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> Option<usize> {
        let (name, kind, after) = heredoc(&src[at..end])?;
        if !self.in_word {
            self.begin_word(at, true, sink);
        }
        self.heredocs.push(Heredoc { end: name.to_owned(), kind, substitution: None, at });
        sink.heredoc(kind == Indent::Common);
        self.after_equals = false;
        Some(end - after.len())
    }

    /// Opens a heredoc written as `"$(cat <<WORD` at the end of the line, with or without the
    /// quote. Models trained on shells write this.
    pub(super) fn open_substitution<S: Sink>(
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
            self.begin_word(at, true, sink);
        }
        self.heredocs.push(Heredoc { end: name.to_owned(), kind, substitution: Some(close), at });
        sink.heredoc(kind == Indent::Common);
        sink.end(end - after.len());
        self.in_word = false;
        self.after_equals = false;
        Some(end)
    }

    /// Reads the line after the end line of a heredoc in `$(cat <<WORD`. Returns where the command
    /// continues; `None` if the substitution is not closed.
    pub(super) fn close_substitution(&mut self, src: &str, at: usize, end: usize) -> Option<usize> {
        let close = self.heredocs.get(self.heredocs_read.wrapping_sub(1))?.substitution?;
        let rest = fence::trim_start(&src[at..end]).strip_prefix(close)?;
        self.mode = Mode::Plain;
        Some(end - rest.len())
    }
}

/// Reads `<<WORD`: the word, the treatment of indentation, and the rest of the line.
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
            // Blanks after the word on the end line are ignored, so they are ignored here too.
            (fence::trim_end(&word[1..1 + close]), &word[close + 2..])
        }
        _ => {
            let word = word.strip_prefix('\\').unwrap_or(word);
            // Check before searching for the end: one word may contain many `<<`.
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

fn begins_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
