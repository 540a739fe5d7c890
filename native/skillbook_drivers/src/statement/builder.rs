//! Collects the tokens of one statement, and decides its kind and whether it is refused.
//!
//! Only keywords at certain places count. The first words (`create or replace temp table`), after
//! `explain` and its options, decide the kind of statement. Later words matter only where they can
//! change that: `insert` in a common table expression, `for update`, `into` of a `select`. A
//! keyword behind a dot is a column's name and does not count. A column called `update` makes a
//! read look like a write; that is harmless, because it then only runs on the writing connection.

use super::dialect::{is, is_query_pragma, reads, Dialect, CREATE_WORDS, EXPLAIN_OPTIONS};
use super::placeholders::Placeholders;
use super::scanner::Token;
use super::{Kind, Statement};
use crate::error::Refusal;

/// Enough for `create or replace local temporary`.
const WORDS: usize = 5;

/// The parts of a statement that have been read.
pub(super) struct Builder<'a> {
    dialect: Dialect,
    start: usize,
    end: usize,
    /// The number of tokens so far, and the last two.
    count: usize,
    last: Option<Token<'a>>,
    before: Option<Token<'a>>,
    /// The number of open parentheses.
    depth: usize,
    /// The first words, without `explain` and its options, and whether they have ended.
    head: Vec<&'a str>,
    has_head: bool,
    explain: Explain,
    is_analyzed: bool,
    /// The number of the first token that is not one of [`CREATE_WORDS`], and the schema if that
    /// token is one.
    name_at: Option<usize>,
    schema: &'a str,
    /// The name of a pragma, and whether it is given a value.
    pragma: &'a str,
    is_set: bool,
    has_changes: bool,
    has_locks: bool,
    makes_table: bool,
    is_temporary: bool,
    /// The number of open `begin atomic` and `case` in the body of a function.
    body: usize,
    placeholders: Placeholders<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Explain {
    No,
    /// The explained statement has not begun.
    Begun,
    /// The same, inside the parentheses of its options.
    Options,
    Yes,
}

impl<'a> Builder<'a> {
    pub fn new(dialect: Dialect) -> Builder<'a> {
        Builder {
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
            placeholders: Placeholders::default(),
        }
    }

    /// Whether a semicolon here belongs to the statement instead of ending it.
    pub fn is_inside(&self) -> bool {
        match self.dialect {
            // The body of a trigger contains statements and ends with `; end`.
            Dialect::Sqlite => {
                // The token before this semicolon is `end`, and before that stands the last
                // semicolon of the body.
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

    pub fn take(&mut self, token: Token<'a>, start: usize, end: usize) {
        if self.count == 0 {
            self.start = start;
        }
        self.end = end;
        match token {
            Token::Sign(b'(') => self.depth += 1,
            Token::Sign(b')') => self.depth = self.depth.saturating_sub(1),
            Token::Word(word) => self.take_word(word),
            Token::Placeholder(name) => self.placeholders.push(name, start - self.start),
            _ => {}
        }
        self.take_head(token);
        self.count += 1;
        self.before = self.last.replace(token);
    }

    /// Handles the first words and the names right after them.
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
        // The name so far was a schema: `create table temp.t`.
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
            // The options are over; now comes the statement.
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
        // `explain analyze` runs its statement, so its kind is that of the statement.
        self.is_analyzed |=
            self.explain != Explain::Yes && self.dialect == Dialect::Postgres && is_analyze;
    }

    fn take_word(&mut self, word: &str) {
        let follows = |other| self.last.is_some_and(|last| last.is(other));
        // A column may have the name of a keyword.
        if self.last == Some(Token::Sign(b'.')) {
            return;
        }
        match self.dialect {
            Dialect::Sqlite => {
                self.has_changes |= is(word, &["insert", "update", "delete"])
                    // `replace` alone is also a function.
                    || (word.eq_ignore_ascii_case("into") && follows("replace"));
            }
            Dialect::Postgres => {
                self.has_changes |= is(word, &["insert", "update", "delete", "merge"]);
                // `for update` is found by its keyword; these are the other row locks.
                self.has_locks |= follows("for") && is(word, &["share", "key", "no"]);
                // `select … into t` creates a table.
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

    /// The body of a function as the SQL standard writes it: `begin atomic … end`. A `case` in it
    /// has an `end` too.
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

    pub fn finish(self, sql: &'a str) -> Option<Statement<'a>> {
        let text = &sql[self.start..self.end];
        let (kind, refusal) = (self.kind(), self.refusal());
        let statement = Statement { text, kind, refusal, placeholders: self.placeholders };
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
            // Other statements: a change of the schema, or unknown ones, which are treated alike.
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
            // A transaction opened by a statement would stay open on a connection that goes back to
            // the pool.
            _ if is_first(&["begin", "commit", "end", "rollback", "savepoint", "release"]) => {
                Some(Refusal::Transaction)
            }
            // `vacuum` attaches a database of its own, so the authorizer would refuse it too.
            Dialect::Sqlite if is_first(&["attach", "detach", "vacuum"]) => Some(Refusal::Attach),
            Dialect::Sqlite
                if is_first(&["pragma"]) && self.is_set && !is_query_pragma(self.pragma) =>
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
