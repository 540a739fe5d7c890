//! Splits SQL into tokens, by the lexical rules of each dialect.
//!
//! The rules are those of SQLite's `tokenize.c` and of PostgreSQL's `scan.l` with
//! `standard_conforming_strings` on, as far as they decide where a token ends. Ignoring their
//! differences would let an attacker hide a statement: PostgreSQL nests comments, ends a line
//! comment at a carriage return, and has dollar quotes and `E''` strings; SQLite has brackets,
//! backticks and variables with parentheses.
//!
//! A string, name or comment that is not closed goes on to the end of the text. The database then
//! reports it.

use memchr::{memchr, memchr2, memmem};

use super::dialect::Dialect;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A quoted name, with its quotes. In SQLite a string may be a name too.
    Name(&'a str),
    /// A string or a number.
    Value,
    Placeholder(&'a str),
    Sign(u8),
}

impl<'a> Token<'a> {
    pub fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own.eq_ignore_ascii_case(word))
    }

    /// The name that the token may be.
    pub fn name(&self) -> &'a str {
        match *self {
            Token::Word(word) => word,
            Token::Name(name) => name.get(1..name.len() - 1).unwrap_or_default(),
            _ => "",
        }
    }
}

/// Splits a text into tokens.
pub(super) struct Scanner<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
    dialect: Dialect,
}

impl<'a> Scanner<'a> {
    pub fn new(sql: &'a str, dialect: Dialect) -> Self {
        Scanner { sql, bytes: sql.as_bytes(), at: 0, dialect }
    }

    /// The end of the last token.
    pub fn end(&self) -> usize {
        self.at
    }

    /// The next token and its start. Whitespace and comments are skipped.
    pub fn token(&mut self) -> Option<(usize, Token<'a>)> {
        loop {
            let start = self.at;
            let rest = &self.bytes[start..];
            match *rest {
                [] => return None,
                [b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c', ..] => self.at += 1,
                // SQLite treats a byte order mark as whitespace.
                [0xef, 0xbb, 0xbf, ..] if self.dialect == Dialect::Sqlite => self.at += 3,
                [b'-', b'-', ..] => self.at = self.line_end(start),
                [b'/', b'*', ..] => self.comment(),
                [first, ..] => return Some((start, self.begun(start, first))),
            }
        }
    }

    fn begun(&mut self, start: usize, first: u8) -> Token<'a> {
        let is_sqlite = self.dialect == Dialect::Sqlite;
        match first {
            // SQLite accepts a string where a name is expected: `create table 'temp'.t`.
            b'\'' => {
                self.quoted(b'\'');
                match is_sqlite {
                    true => Token::Name(&self.sql[start..self.at]),
                    false => Token::Value,
                }
            }
            b'"' => self.name(start, b'"'),
            b'`' if is_sqlite => self.name(start, b'`'),
            // A name in brackets cannot contain a closing bracket.
            b'[' if is_sqlite => {
                self.at = self.find(b']', start + 1);
                Token::Name(&self.sql[start..self.at])
            }
            // SQLite's own placeholders are scanned so that the error can name them.
            b'$' | b'?' | b':' | b'@' | b'#' if is_sqlite => self.variable(start),
            b'$' => self.dollar(start),
            b'0'..=b'9' => {
                self.skip_while(|byte| byte.is_ascii_digit());
                Token::Value
            }
            byte if is_word(byte) => {
                // Both dialects allow `$` inside a word.
                self.skip_while(|byte| is_word(byte) || byte == b'$');
                let word = &self.sql[start..self.at];
                if !is_sqlite
                    // `E'…'` has backslash escapes, so `\'` does not end it.
                    && word.eq_ignore_ascii_case("e")
                    && self.bytes.get(self.at) == Some(&b'\'')
                {
                    self.escaped();
                    return Token::Value;
                }
                Token::Word(word)
            }
            byte => {
                self.at += 1;
                Token::Sign(byte)
            }
        }
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|&byte| is_part(byte)) {
            self.at += 1;
        }
    }

    /// The position after the next `byte`, or the end of the text.
    fn find(&self, byte: u8, from: usize) -> usize {
        memchr(byte, &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at + 1)
    }

    /// The start of the next line.
    fn line_end(&self, from: usize) -> usize {
        match self.dialect {
            Dialect::Sqlite => self.find(b'\n', from),
            Dialect::Postgres => memchr2(b'\n', b'\r', &self.bytes[from..])
                .map_or(self.bytes.len(), |at| from + at + 1),
        }
    }

    /// Skips a comment. PostgreSQL's nest; an open one goes on to the end.
    fn comment(&mut self) {
        let mut depth = 1usize;
        self.at += 2;
        while depth > 0 {
            let Some(found) = memchr2(b'*', b'/', &self.bytes[self.at..]) else {
                self.at = self.bytes.len();
                return;
            };
            self.at += found;
            match &self.bytes[self.at..] {
                [b'*', b'/', ..] => (depth, self.at) = (depth - 1, self.at + 2),
                [b'/', b'*', ..] if self.dialect == Dialect::Postgres => {
                    (depth, self.at) = (depth + 1, self.at + 2)
                }
                _ => self.at += 1,
            }
        }
    }

    /// A doubled quote is read as the end of one string and the start of the next, which finds the
    /// same end of the statement.
    fn quoted(&mut self, quote: u8) {
        self.at = self.find(quote, self.at + 1);
    }

    fn name(&mut self, start: usize, quote: u8) -> Token<'a> {
        self.quoted(quote);
        Token::Name(&self.sql[start..self.at])
    }

    /// A string with escapes (`E'…'`). It may continue on another line in quotes of its own.
    fn escaped(&mut self) {
        loop {
            self.at += 1;
            loop {
                let Some(found) = memchr2(b'\\', b'\'', &self.bytes[self.at..]) else {
                    self.at = self.bytes.len();
                    return;
                };
                self.at += found;
                match self.bytes[self.at] {
                    b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                    _ if self.bytes.get(self.at + 1) == Some(&b'\'') => self.at += 2,
                    _ => break,
                }
            }
            self.at += 1;
            match self.continued() {
                Some(at) => self.at = at,
                None => return,
            }
        }
    }

    /// The position where a string continues: a quote after whitespace or comments that contain a
    /// line end.
    fn continued(&self) -> Option<usize> {
        let (mut at, mut is_apart) = (self.at, false);
        loop {
            match self.bytes.get(at..)? {
                [b'\n' | b'\r', ..] => (at, is_apart) = (at + 1, true),
                [b' ' | b'\t' | b'\x0b' | b'\x0c', ..] => at += 1,
                [b'-', b'-', ..] => (at, is_apart) = (self.line_end(at), true),
                [b'\'', ..] if is_apart => return Some(at),
                _ => return None,
            }
        }
    }

    /// `$7`, a string in `$$` or `$tag$`, or a single `$`.
    fn dollar(&mut self, start: usize) -> Token<'a> {
        self.at += 1;
        if self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.skip_while(|byte| byte.is_ascii_digit());
            return Token::Placeholder(&self.sql[start..self.at]);
        }
        self.skip_while(is_word);
        if self.bytes.get(self.at) != Some(&b'$') {
            self.at = start + 1;
            return Token::Sign(b'$');
        }
        self.at += 1;
        let tag = &self.bytes[start..self.at];
        // Nothing inside has a meaning until the same tag comes again.
        let end = memmem::find(&self.bytes[self.at..], tag).map(|at| self.at + at + tag.len());
        self.at = end.unwrap_or(self.bytes.len());
        Token::Value
    }

    /// A variable of SQLite: a mark, letters and digits, `::`, and a last part in parentheses.
    fn variable(&mut self, start: usize) -> Token<'a> {
        let mark = self.bytes[start];
        self.at += 1;
        if mark == b'?' {
            self.skip_while(|byte| byte.is_ascii_digit());
            return Token::Placeholder(&self.sql[start..self.at]);
        }
        let mut is_named = false;
        loop {
            match &self.bytes[self.at..] {
                [byte, ..] if is_word(*byte) || *byte == b'$' => {
                    (self.at, is_named) = (self.at + 1, true)
                }
                [b':', b':', ..] => self.at += 2,
                [b'(', ..] if is_named => {
                    self.skip_while(|byte| {
                        byte != b')' && !byte.is_ascii_whitespace() && byte != b'\x0b'
                    });
                    self.at += usize::from(self.bytes.get(self.at) == Some(&b')'));
                    break;
                }
                _ => break,
            }
        }
        match &self.sql[start..self.at] {
            // A lone colon, as in `a::int`.
            ":" => Token::Sign(b':'),
            name => Token::Placeholder(name),
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
