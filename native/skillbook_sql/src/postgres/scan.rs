//! Where the statements of a text begin and end, and what can be said of one without the server.

use crate::error::{Detail, Refusal};
use crate::{Error, ErrorKind};

/// `create or replace local temporary` has as many.
const WORDS: usize = 5;

/// A statement of a text, without the semicolon.
#[derive(Debug, PartialEq)]
pub(super) struct Statement<'a> {
    pub text: &'a str,
    /// Its first words, in small letters.
    words: Vec<String>,
    /// The highest placeholder, and the first below it that is not there.
    highest: usize,
    missing: Option<usize>,
    zero: bool,
}

/// The first word of a text in small letters, for which the rest is not looked at.
pub(super) fn first_word(sql: &str) -> Option<String> {
    let mut scan = Scan { sql, bytes: sql.as_bytes(), at: 0 };
    loop {
        match *scan.bytes.get(scan.at)? {
            b'-' if scan.next_is(b'-') => scan.at = scan.find(b"\n", scan.at),
            b'/' if scan.next_is(b'*') => scan.comment(),
            byte if is_word(byte) => return Some(scan.word().to_ascii_lowercase()),
            // A parenthesis is no word: `(select 1) union (select 2)` has `select` as its first.
            b'(' => scan.at += 1,
            byte if byte.is_ascii_whitespace() => scan.at += 1,
            _ => return None,
        }
    }
}

/// Whether statements with this first word may only read.
pub(super) fn reads(word: &str) -> bool {
    matches!(word, "select" | "values" | "table" | "with" | "show" | "explain")
}

/// The statements of a text; blanks and comments are none.
pub(super) fn statements(sql: &str) -> Result<Vec<Statement<'_>>, Error> {
    if sql.contains('\0') {
        return Err(Error::new(ErrorKind::Syntax, Detail::NulByte));
    }
    let mut scan = Scan { sql, bytes: sql.as_bytes(), at: 0 };
    let mut found = Vec::new();
    while scan.at < sql.len() {
        found.extend(scan.statement());
    }
    Ok(found)
}

/// The only statement of a text.
pub(super) fn statement(sql: &str) -> Result<Statement<'_>, Error> {
    let mut found = statements(sql)?;
    match (found.pop(), found.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => Err(Error::new(ErrorKind::Syntax, Detail::ManyStatements)),
        (None, _) => Err(Error::new(ErrorKind::Syntax, Detail::NoStatement)),
    }
}

impl Statement<'_> {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether it may be one that only reads; the server knows.
    pub fn may_only_read(&self) -> bool {
        reads(self.word(0))
    }

    /// Whether what earlier statements gave may look different after it.
    pub fn changes_schema(&self) -> bool {
        !self.may_only_read() && !matches!(self.word(0), "insert" | "update" | "delete" | "merge")
    }

    /// Refuses what would change one connection of several.
    pub fn check(&self) -> Result<(), Error> {
        let refusal = match self.word(0) {
            "begin" | "commit" | "end" | "abort" | "rollback" | "savepoint" | "release" => Refusal::Transaction,
            "start" | "prepare" if self.word(1) == "transaction" => Refusal::Transaction,
            "create" if self.creates_temporary() => Refusal::Temporary,
            word @ ("set" | "reset" | "discard" | "listen" | "unlisten" | "load" | "prepare" | "execute"
            | "deallocate" | "declare" | "fetch" | "move" | "close" | "copy") => Refusal::Session(word.to_owned()),
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Refused, Detail::Refused(refusal)))
    }

    fn creates_temporary(&self) -> bool {
        let mut words = self.words[1..].iter().map(String::as_str);
        let kind = words.find(|word| !matches!(*word, "or" | "replace" | "local" | "global"));
        matches!(kind, Some("temp" | "temporary"))
    }

    /// Whether there are as many parameters as placeholders, and none of these is left out.
    pub fn check_params(&self, given: usize) -> Result<(), Error> {
        let wrong = |detail| Err(Error::new(ErrorKind::Params, detail));
        if self.zero {
            return wrong(Detail::Placeholder("$0".to_owned()));
        }
        if self.highest != given {
            return wrong(Detail::ParamCount { placeholders: self.highest, given });
        }
        self.missing.map_or(Ok(()), |number| wrong(Detail::PlaceholderMissing(number)))
    }
}

struct Scan<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Goes behind the next semicolon, or to the end.
    fn statement(&mut self) -> Option<Statement<'a>> {
        let mut start = None;
        let mut end = self.at;
        let mut words = Vec::new();
        let mut numbers = Vec::new();
        while let Some(&byte) = self.bytes.get(self.at) {
            let from = self.at;
            match byte {
                b';' => {
                    self.at += 1;
                    break;
                }
                b'-' if self.next_is(b'-') => self.at = self.find(b"\n", from),
                b'/' if self.next_is(b'*') => self.comment(),
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => {
                    match byte {
                        b'\'' => self.quoted(b'\'', false),
                        b'"' => self.quoted(b'"', false),
                        b'$' => numbers.extend(self.dollar()),
                        byte if is_word(byte) => {
                            let word = self.word();
                            if words.len() < WORDS {
                                words.push(word.to_ascii_lowercase());
                            }
                            if word.eq_ignore_ascii_case("e") && self.bytes.get(self.at) == Some(&b'\'') {
                                self.quoted(b'\'', true);
                            }
                        }
                        _ => self.at += 1,
                    }
                    start.get_or_insert(from);
                    end = self.at;
                }
            }
        }
        let text = &self.sql[start?..end];
        numbers.sort_unstable();
        numbers.dedup();
        let zero = numbers.first() == Some(&0);
        let highest = numbers.last().copied().unwrap_or(0);
        let missing = numbers.iter().enumerate().find(|(at, number)| at + 1 != **number).map(|(at, _)| at + 1);
        Some(Statement { text, words, highest, missing, zero })
    }

    fn next_is(&self, byte: u8) -> bool {
        self.bytes.get(self.at + 1) == Some(&byte)
    }

    /// Where `what` ends that comes next, or the end of the text.
    fn find(&self, what: &[u8], from: usize) -> usize {
        let found = self.bytes[from..].windows(what.len()).position(|window| window == what);
        found.map_or(self.bytes.len(), |at| from + at + what.len())
    }

    fn word(&mut self) -> &'a str {
        let from = self.at;
        // A `$` may stand inside of a name, where it begins nothing.
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte) || byte == b'$') {
            self.at += 1;
        }
        &self.sql[from..self.at]
    }

    /// Comments nest.
    fn comment(&mut self) {
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            match &self.bytes[self.at..] {
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// A quote that is written twice ends one text and begins the next, which is the same here.
    fn quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' if escapes => self.at = (self.at + 1).min(self.bytes.len()),
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    /// `$7`, or a text in `$$` or `$tag$`.
    fn dollar(&mut self) -> Option<usize> {
        let from = self.at;
        self.at += 1;
        let word = self.bytes[self.at..].iter().take_while(|&&byte| is_word(byte)).count();
        let name = &self.sql[self.at..self.at + word];
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            self.at += digits;
            return Some(name[..digits].parse().unwrap_or(usize::MAX));
        }
        if self.bytes.get(self.at + word) == Some(&b'$') {
            let tag = self.at + word + 1;
            self.at = self.find(&self.bytes[from..tag], tag);
        }
        None
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_texts_and_comments() {
        for (sql, expected) in [
            ("", &[][..]),
            (" ; -- a\n; /* b; /* c */ ; */ ;", &[]),
            ("select 1", &["select 1"]),
            (" select 1 ; select 2 -- end; \n", &["select 1", "select 2"]),
            ("select ';'';', E'\\';', \"a;\"; x", &["select ';'';', E'\\';', \"a;\"", "x"]),
            ("select 'a\\'; x", &["select 'a\\'", "x"]),
            ("do $$ begin; $a$ $$; x", &["do $$ begin; $a$ $$", "x"]),
            ("do $a$ ; $$ ; $a$; x", &["do $a$ ; $$ ; $a$", "x"]),
            ("select a$1 from é$b$c; x", &["select a$1 from é$b$c", "x"]),
            ("select 1 /* a; */ + 2; -- b", &["select 1 /* a; */ + 2"]),
            ("select 'open; x", &["select 'open; x"]),
            ("select $a$ open; x", &["select $a$ open; x"]),
            ("/* open; x", &[]),
        ] {
            let found: Vec<_> = statements(sql).unwrap().into_iter().map(|statement| statement.text).collect();
            assert_eq!(found, expected, "{sql}");
        }
    }

    #[test]
    fn one_statement() {
        for (sql, text) in [
            (" -- x", "expected a statement, got only blanks or comments"),
            ("a; b", "expected one statement, got several; send them one by one"),
            ("a\0", "expected a statement as text, got one with a NUL character in it"),
        ] {
            assert_eq!(statement(sql).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn placeholders() {
        for (sql, given, text) in [
            ("select $1, $2", 2, ""),
            ("select '$1', \"$2\", $$ $3 $$, a$4 -- $5", 0, ""),
            ("select $2, $1, $2", 2, ""),
            ("select $1", 0, "expected 1 parameter, for $1, got 0"),
            ("select $1, $2", 1, "expected 2 parameters, for $1 to $2, got 1"),
            ("select 1", 1, "expected no parameters, because the statement has no placeholder, got 1"),
            ("select $2", 2, "expected every placeholder up to the highest in the statement, $1 is not there"),
            ("select $1, $3", 3, "expected every placeholder up to the highest in the statement, $2 is not there"),
            ("select $0", 0, "expected placeholders $1, $2 and so on, got `$0`"),
        ] {
            let checked = statement(sql).unwrap().check_params(given);
            assert_eq!(checked.map_or_else(|error| error.to_string(), |()| String::new()), text, "{sql}");
        }
    }

    #[test]
    fn what_would_change_one_connection_is_refused() {
        let transaction = "a transaction is begun and ended by the transaction function, not by a statement";
        let temporary = "temporary tables, views and triggers would exist in one connection of several";
        for (sql, text) in [
            ("BEGIN", transaction),
            ("/* a */ commit", transaction),
            ("start transaction", transaction),
            ("prepare transaction 'a'", transaction),
            ("rollback to a", transaction),
            ("Set x = 1", "`set` would change one connection of several"),
            ("prepare a as select 1", "`prepare` would change one connection of several"),
            ("create temp table a ()", temporary),
            ("create local temporary table a ()", temporary),
            ("create or replace temp view a as select 1", temporary),
            ("create table temp (a int)", ""),
            ("select 'begin'", ""),
            ("update t set x = 1", ""),
        ] {
            let checked = statement(sql).unwrap().check();
            assert_eq!(checked.map_or_else(|error| error.to_string(), |()| String::new()), text, "{sql}");
        }
    }

    #[test]
    fn what_may_only_read() {
        for (sql, expected) in [
            ("select 1", true),
            ("(select 1) union (select 2)", true),
            ("with a as (delete from t returning *) select * from a", true),
            ("insert into t values (1)", false),
            ("create table t ()", false),
            ("-- a\n /* b /* c */ */ ( SELECT 1)", true),
        ] {
            assert_eq!(statement(sql).unwrap().may_only_read(), expected, "{sql}");
            assert_eq!(super::super::may_only_read(sql), expected, "{sql}");
        }
    }
}
