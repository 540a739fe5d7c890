//! Where the statements of a text begin and end, and what can be said of one without the database.
//!
//! This is no parser: it knows how the two dialects write words, strings, quoted names, comments and placeholders, so that
//! none of these hides the end of a statement. What only a parser can tell is left to the database.
//!
//! ```
//! use skillbook_sql::statement::{all, one, Dialect, Kind};
//!
//! let read = one("select x from t where id = $1", Dialect::Postgres, 1)?;
//! assert_eq!((read.text(), read.kind()), ("select x from t where id = $1", Kind::Read));
//!
//! let two = all("insert into t values (';'); drop table t", Dialect::Sqlite)?;
//! assert_eq!(two.iter().map(|statement| statement.kind()).collect::<Vec<_>>(), [Kind::Rows, Kind::Other]);
//!
//! let refused = one("begin", Dialect::Sqlite, 0).unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "a transaction is begun and ended by the transaction function, not by a statement\n  in: begin"
//! );
//! # Ok::<(), skillbook_sql::Error>(())
//! ```

use memchr::{memchr, memchr2, memmem};

use crate::error::{Detail, Refusal};
use crate::{Error, ErrorKind};

/// `create or replace local temporary` has as many.
const WORDS: usize = 5;

/// The pragmas of SQLite whose value says what to look at and changes nothing.
const ASKING_PRAGMAS: [&str; 11] = [
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "data_version",
];

/// What may stand before the name of what is created. `temp` may be that name.
const CREATE_WORDS: [&str; 18] = [
    "create",
    "or",
    "replace",
    "virtual",
    "unlogged",
    "materialized",
    "recursive",
    "unique",
    "table",
    "view",
    "trigger",
    "sequence",
    "function",
    "procedure",
    "type",
    "if",
    "not",
    "exists",
];

/// What may stand in the parentheses between PostgreSQL's `explain` and its statement.
const EXPLAIN_OPTIONS: [&str; 13] = [
    "analyze",
    "analyse",
    "verbose",
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "serialize",
    "wal",
    "timing",
    "summary",
    "memory",
    "format",
];

/// Which SQL a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's, with `standard_conforming_strings` on.
    Postgres,
}

/// What a statement does, as far as its words tell: functions may do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only reads.
    Read,
    /// It inserts, updates, deletes or locks rows.
    Rows,
    /// Anything else, such as a change of the schema.
    Other,
}

/// A statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'a> {
    text: &'a str,
    kind: Kind,
    refusal: Option<Refusal>,
    /// Where each placeholder begins in `text`, and its number.
    numbers: Vec<(usize, usize)>,
    /// A placeholder that has no number.
    stray: Option<&'a str>,
}

/// The only statement of a text, for which there are `given` parameters; an error if there is none or another one, if a
/// connection must not run it, or if the placeholders do not fit.
pub fn one(sql: &str, dialect: Dialect, given: usize) -> Result<Statement<'_>, Error> {
    let found =
        statements(sql, dialect).and_then(|mut found| match (found.pop(), found.is_empty()) {
            (Some(statement), true) => Ok(statement),
            (Some(_), false) => Err(Error::new(ErrorKind::Syntax, Detail::ManyStatements)),
            (None, _) => Err(Error::new(ErrorKind::Syntax, Detail::NoStatement)),
        });
    let checked = found
        .and_then(|found| found.check().and_then(|()| found.check_params(given)).map(|()| found));
    checked.map_err(|error| error.in_statement(sql))
}

/// The statements of a text; blanks and comments are none. An error if a connection must not run one of them, or if one
/// has a placeholder.
pub fn all(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    let found = statements(sql, dialect).map_err(|error| error.in_statement(sql))?;
    for statement in &found {
        let checked = statement.check().and_then(|()| statement.check_params(0));
        checked.map_err(|error| error.in_statement(statement.text))?;
    }
    Ok(found)
}

/// Whether a text for PostgreSQL may be a statement that only reads, by its first word: the rest is not looked at.
pub fn may_read(sql: &str) -> bool {
    let mut scan = Scan { sql, bytes: sql.as_bytes(), at: 0, dialect: Dialect::Postgres };
    loop {
        match scan.token() {
            Some((_, Token::Sign(b'('))) => {}
            Some((_, Token::Word(word))) => {
                return reads(word, scan.dialect) || is(word, &["with", "explain"])
            }
            _ => return false,
        }
    }
}

fn reads(word: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Sqlite => is(word, &["select", "values", "pragma"]),
        Dialect::Postgres => is(word, &["select", "values", "table", "show"]),
    }
}

fn statements(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    if memchr(0, sql.as_bytes()).is_some() {
        return Err(Error::new(ErrorKind::Syntax, Detail::NulByte));
    }
    let mut scan = Scan { sql, bytes: sql.as_bytes(), at: 0, dialect };
    let mut found = Vec::new();
    let mut reader = Reader::new(dialect);
    while let Some((start, token)) = scan.token() {
        if token == Token::Sign(b';') && !reader.is_inside() {
            found.extend(std::mem::replace(&mut reader, Reader::new(dialect)).finish(sql));
        } else {
            reader.take(token, start, scan.at);
        }
    }
    found.extend(reader.finish(sql));
    Ok(found)
}

impl<'a> Statement<'a> {
    /// The statement without its semicolon, and without blanks and comments around it.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// What it does.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its text with the placeholders `?1` and `?2`, which other drivers of SQLite know.
    pub fn with_question_marks(&self) -> String {
        let (mut out, mut from) = (String::with_capacity(self.text.len()), 0);
        for (start, _) in &self.numbers {
            out.push_str(&self.text[from..*start]);
            out.push('?');
            from = start + 1;
        }
        out.push_str(&self.text[from..]);
        out
    }

    /// Refuses what would change one connection of several.
    fn check(&self) -> Result<(), Error> {
        let refused = |refusal| Err(Error::new(ErrorKind::Refused, Detail::Refused(refusal)));
        self.refusal.clone().map_or(Ok(()), refused)
    }

    /// Whether there are as many parameters as placeholders, and none of these is left out.
    fn check_params(&self, given: usize) -> Result<(), Error> {
        let wrong = |detail| Err(Error::new(ErrorKind::Params, detail));
        if let Some(name) = self.stray {
            return wrong(Detail::Placeholder(name.to_owned()));
        }
        let highest = self.numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
        if highest != given {
            return wrong(Detail::ParamCount { placeholders: highest, given });
        }
        let mut is_there = vec![false; highest];
        self.numbers.iter().for_each(|(_, number)| is_there[number - 1] = true);
        let missing = is_there.iter().position(|is_there| !is_there);
        missing.map_or(Ok(()), |at| wrong(Detail::PlaceholderMissing(at + 1)))
    }
}

/// Whether a pragma may have a value.
pub(crate) fn is_asking_pragma(name: &str) -> bool {
    is(name, &ASKING_PRAGMAS)
}

fn is(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    /// A name in quotes, with these; in SQLite a string may be one too.
    Name(&'a str),
    /// A string or a number.
    Value,
    Placeholder(&'a str),
    Sign(u8),
}

impl<'a> Token<'a> {
    fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own.eq_ignore_ascii_case(word))
    }

    /// The name that it may be.
    fn name(&self) -> &'a str {
        match *self {
            Token::Word(word) => word,
            Token::Name(name) => name.get(1..name.len() - 1).unwrap_or_default(),
            _ => "",
        }
    }
}

/// What is known of a statement of which a part is read.
struct Reader<'a> {
    dialect: Dialect,
    start: usize,
    end: usize,
    /// How many tokens it has, and which were the last two.
    count: usize,
    last: Option<Token<'a>>,
    before: Option<Token<'a>>,
    /// How many parentheses are open.
    depth: usize,
    /// Its first words, after `explain` and its options, and whether another token has ended them.
    head: Vec<&'a str>,
    has_head: bool,
    explain: Explain,
    is_analyzed: bool,
    /// The number of the first token that is none of [`CREATE_WORDS`], and the schema if that is one.
    name_at: Option<usize>,
    schema: &'a str,
    /// The name of a pragma, and whether it has a value.
    pragma: &'a str,
    is_set: bool,
    has_changes: bool,
    has_locks: bool,
    makes_table: bool,
    is_temporary: bool,
    /// How many `begin atomic` and `case` of a function's body are open.
    body: usize,
    numbers: Vec<(usize, usize)>,
    stray: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Explain {
    No,
    /// Its statement has not begun.
    Begun,
    /// The same, between the parentheses of its options.
    Options,
    Yes,
}

impl<'a> Reader<'a> {
    fn new(dialect: Dialect) -> Reader<'a> {
        Reader {
            dialect,
            start: 0,
            end: 0,
            count: 0,
            last: None,
            before: None,
            depth: 0,
            head: Vec::new(),
            has_head: false,
            explain: Explain::No,
            is_analyzed: false,
            name_at: None,
            schema: "",
            pragma: "",
            is_set: false,
            has_changes: false,
            has_locks: false,
            makes_table: false,
            is_temporary: false,
            body: 0,
            numbers: Vec::new(),
            stray: None,
        }
    }

    /// Whether a semicolon belongs to the statement.
    fn is_inside(&self) -> bool {
        match self.dialect {
            // The body of a trigger has statements of its own, and ends with `; end`.
            Dialect::Sqlite => {
                let ends = self.last.is_some_and(|last| last.is("end"))
                    && self.before == Some(Token::Sign(b';'));
                self.creates(&["trigger"]) && !ends
            }
            Dialect::Postgres => self.body > 0 || (self.depth > 0 && self.creates(&["rule"])),
        }
    }

    fn creates(&self, kinds: &[&str]) -> bool {
        let is_kind = |word: &&&str| !is(word, &["or", "replace", "temp", "temporary"]);
        let kind = self.head.iter().skip(1).find(is_kind);
        self.starts_with("create") && kind.is_some_and(|kind| is(kind, kinds))
    }

    fn starts_with(&self, word: &str) -> bool {
        self.head.first().is_some_and(|first| first.eq_ignore_ascii_case(word))
    }

    fn take(&mut self, token: Token<'a>, start: usize, end: usize) {
        if self.count == 0 {
            self.start = start;
        }
        self.end = end;
        match token {
            Token::Sign(b'(') => self.depth += 1,
            Token::Sign(b')') => self.depth = self.depth.saturating_sub(1),
            Token::Word(word) => self.take_word(word),
            Token::Placeholder(name) => match number(name) {
                Some(number) => self.numbers.push((start - self.start, number)),
                None => self.stray = self.stray.or(Some(name)),
            },
            _ => {}
        }
        self.take_head(token);
        self.count += 1;
        self.before = self.last.replace(token);
    }

    /// The first words, and the names right behind them.
    fn take_head(&mut self, token: Token<'a>) {
        if let (Explain::Begun | Explain::Options, true) = (self.explain, self.head.is_empty()) {
            return self.take_explained(token);
        }
        match token {
            Token::Word(word) if !self.has_head => {
                if self.head.is_empty()
                    && self.explain == Explain::No
                    && word.eq_ignore_ascii_case("explain")
                {
                    self.explain = Explain::Begun;
                } else if self.head.len() < WORDS {
                    self.head.push(word);
                }
            }
            // `(select 1) union (select 2)` begins with `select`.
            Token::Sign(b'(') if self.head.is_empty() => {}
            _ => self.has_head = true,
        }
        if token == Token::Sign(b'.') && self.name_at.is_some_and(|at| at + 1 == self.count) {
            self.schema = self.last.map_or("", |last| last.name());
        }
        if !matches!(token, Token::Word(word) if is(word, &CREATE_WORDS)) {
            self.name_at = self.name_at.or(Some(self.count));
        }
        if self.starts_with("pragma") && !self.is_set {
            match token {
                Token::Sign(b'=' | b'(') => self.is_set = true,
                Token::Word(_) | Token::Name(_) => self.pragma = token.name(),
                _ => {}
            }
        }
    }

    fn take_explained(&mut self, token: Token<'a>) {
        match (self.explain, token) {
            (Explain::Options, Token::Sign(b')')) if self.depth == 0 => {
                self.explain = Explain::Begun
            }
            (_, Token::Sign(b'(' | b')')) => {}
            (Explain::Begun, Token::Word(word)) => match self.dialect {
                Dialect::Postgres if self.depth > 0 && is(word, &EXPLAIN_OPTIONS) => {
                    self.explain = Explain::Options
                }
                Dialect::Postgres if is(word, &["analyze", "analyse", "verbose"]) => {}
                Dialect::Sqlite if is(word, &["query", "plan"]) => {}
                _ => {
                    self.explain = Explain::Yes;
                    self.head.push(word);
                }
            },
            (Explain::Options, _) => {}
            _ => self.has_head = true,
        }
        let is_analyze = token.is("analyze") || token.is("analyse");
        self.is_analyzed |=
            self.explain != Explain::Yes && self.dialect == Dialect::Postgres && is_analyze;
    }

    fn take_word(&mut self, word: &str) {
        let follows = |other| self.last.is_some_and(|last| last.is(other));
        // A column may be called so.
        if self.last == Some(Token::Sign(b'.')) {
            return;
        }
        match self.dialect {
            Dialect::Sqlite => {
                self.has_changes |= is(word, &["insert", "update", "delete"])
                    || (word.eq_ignore_ascii_case("into") && follows("replace"));
            }
            Dialect::Postgres => {
                self.has_changes |= is(word, &["insert", "update", "delete", "merge"]);
                self.has_locks |= follows("for") && is(word, &["share", "key", "no"]);
                let makes_table =
                    word.eq_ignore_ascii_case("into") && !follows("insert") && !follows("merge");
                self.is_temporary |= self.makes_table
                    && follows("into")
                    && is(word, &["temp", "temporary", "local", "global", "pg_temp"]);
                self.makes_table |= makes_table;
                self.take_body(word);
            }
        }
    }

    /// `begin atomic … end` of a function in the SQL standard's way, in which a `case` has an `end` of its own.
    fn take_body(&mut self, word: &str) {
        let begins = self.depth == 0 && word.eq_ignore_ascii_case("atomic");
        if self.body > 0 {
            match word {
                _ if word.eq_ignore_ascii_case("case") => self.body += 1,
                _ if word.eq_ignore_ascii_case("end") => self.body -= 1,
                _ => {}
            }
        } else if begins
            && self.last.is_some_and(|last| last.is("begin"))
            && self.creates(&["function", "procedure"])
        {
            self.body = 1;
        }
    }

    fn finish(self, sql: &'a str) -> Option<Statement<'a>> {
        let text = &sql[self.start..self.end];
        let (kind, refusal) = (self.kind(), self.refusal());
        let statement = Statement { text, kind, refusal, numbers: self.numbers, stray: self.stray };
        (self.count > 0).then_some(statement)
    }

    fn kind(&self) -> Kind {
        let Some(first) = self.head.first() else { return Kind::Other };
        let is_read = reads(first, self.dialect) || is(first, &["with"]);
        match self.dialect {
            _ if self.explain == Explain::Yes && !self.is_analyzed => Kind::Read,
            Dialect::Sqlite if is(first, &["insert", "update", "delete", "replace"]) => Kind::Rows,
            Dialect::Postgres if is(first, &["insert", "update", "delete", "merge"]) => Kind::Rows,
            Dialect::Sqlite if reads(first, self.dialect) => Kind::Read,
            _ if !is_read || self.makes_table => Kind::Other,
            _ if self.has_changes || self.has_locks => Kind::Rows,
            _ => Kind::Read,
        }
    }

    fn refusal(&self) -> Option<Refusal> {
        let first = *self.head.first()?;
        let second = self.head.get(1).copied().unwrap_or_default();
        let creates_temporary = |schema: &str| {
            let mut words = self.head[1..].iter();
            let kind = words.find(|word| !is(word, &["or", "replace", "local", "global"]));
            kind.is_some_and(|kind| is(kind, &["temp", "temporary"]))
                || self.schema.eq_ignore_ascii_case(schema)
        };
        let is_first = |words: &[&str]| is(first, words);
        match self.dialect {
            _ if is_first(&["begin", "commit", "end", "rollback", "savepoint", "release"]) => {
                Some(Refusal::Transaction)
            }
            Dialect::Sqlite if is_first(&["attach", "detach", "vacuum"]) => Some(Refusal::Attach),
            Dialect::Sqlite
                if is_first(&["pragma"]) && self.is_set && !is_asking_pragma(self.pragma) =>
            {
                Some(Refusal::Pragma(self.pragma.to_owned()))
            }
            Dialect::Sqlite => {
                (is_first(&["create"]) && creates_temporary("temp")).then_some(Refusal::Temporary)
            }
            Dialect::Postgres if is_first(&["abort"]) => Some(Refusal::Transaction),
            Dialect::Postgres
                if is_first(&["start", "prepare"]) && is(second, &["transaction"]) =>
            {
                Some(Refusal::Transaction)
            }
            Dialect::Postgres
                if is_first(&[
                    "set",
                    "reset",
                    "discard",
                    "listen",
                    "unlisten",
                    "load",
                    "prepare",
                    "execute",
                    "deallocate",
                    "declare",
                    "fetch",
                    "move",
                    "close",
                    "copy",
                ]) =>
            {
                Some(Refusal::Session(first.to_ascii_lowercase()))
            }
            Dialect::Postgres => {
                let creates = is_first(&["create"]) && creates_temporary("pg_temp");
                (creates || self.is_temporary).then_some(Refusal::Temporary)
            }
        }
    }
}

/// `$7` is 7; `$0`, `$07`, `$a`, `?1` and `:a` are nothing.
pub(crate) fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix('$')?;
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

struct Scan<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
    dialect: Dialect,
}

impl<'a> Scan<'a> {
    /// The next token and where it begins; blanks and comments are none.
    fn token(&mut self) -> Option<(usize, Token<'a>)> {
        loop {
            let start = self.at;
            let rest = &self.bytes[start..];
            match *rest {
                [] => return None,
                [b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c', ..] => self.at += 1,
                // A byte order mark is a blank to SQLite.
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
            b'\'' => {
                self.quoted(b'\'');
                match is_sqlite {
                    true => Token::Name(&self.sql[start..self.at]),
                    false => Token::Value,
                }
            }
            b'"' => self.name(start, b'"'),
            b'`' if is_sqlite => self.name(start, b'`'),
            // The text in it has no brackets.
            b'[' if is_sqlite => {
                self.at = self.find(b']', start + 1);
                Token::Name(&self.sql[start..self.at])
            }
            b'$' | b'?' | b':' | b'@' | b'#' if is_sqlite => self.variable(start),
            b'$' => self.dollar(start),
            b'0'..=b'9' => {
                self.skip_while(|byte| byte.is_ascii_digit());
                Token::Value
            }
            byte if is_word(byte) => {
                self.skip_while(|byte| is_word(byte) || byte == b'$');
                let word = &self.sql[start..self.at];
                if !is_sqlite
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

    /// Behind the next `byte`, or the end of the text.
    fn find(&self, byte: u8, from: usize) -> usize {
        memchr(byte, &self.bytes[from..]).map_or(self.bytes.len(), |at| from + at + 1)
    }

    /// Where the next line begins.
    fn line_end(&self, from: usize) -> usize {
        match self.dialect {
            Dialect::Sqlite => self.find(b'\n', from),
            Dialect::Postgres => memchr2(b'\n', b'\r', &self.bytes[from..])
                .map_or(self.bytes.len(), |at| from + at + 1),
        }
    }

    /// Those of PostgreSQL nest; an open one goes on to the end.
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

    /// A quote that is written twice ends one text and begins the next, which is the same here, but not for a name.
    fn quoted(&mut self, quote: u8) {
        self.at = self.find(quote, self.at + 1);
    }

    fn name(&mut self, start: usize, quote: u8) -> Token<'a> {
        self.quoted(quote);
        Token::Name(&self.sql[start..self.at])
    }

    /// A string with escapes, which goes on behind a line end and another quote.
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

    /// Where a string goes on: at a quote that only blanks and comments part from here, with a line end between.
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

    /// `$7`, a text in `$$` or `$tag$`, or a mere `$`.
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
            ":" => Token::Sign(b':'),
            name => Token::Placeholder(name),
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
