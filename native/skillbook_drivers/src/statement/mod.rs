//! Splits a text into statements, and classifies each without asking the database.
//!
//! A driver needs to know three things before it runs a statement: whether the text is a single
//! statement, whether the statement only reads, and whether it would change the state of a
//! connection that other callers share.
//!
//! This is not a SQL parser. The scanner knows how both dialects write words, strings, quoted
//! names, comments and placeholders, so none of these can hide the end of a statement. The rest is
//! decided by keywords; where only a parser could tell, the database has the last word (the
//! authorizer of SQLite, a read-only session of PostgreSQL).
//!
//! ```
//! use skillbook_drivers::statement::{all, one, Dialect, Kind};
//! use skillbook_drivers::ErrorKind;
//!
//! let read = one("select x from t where id = $1", Dialect::Postgres, 1)?;
//! assert_eq!((read.text(), read.kind()), ("select x from t where id = $1", Kind::Read));
//!
//! let two = all("insert into t values (';'); drop table t", Dialect::Sqlite)?;
//! let kinds: Vec<_> = two.iter().map(|statement| statement.kind()).collect();
//! assert_eq!(kinds, [Kind::Rows, Kind::Other]);
//!
//! let refused = one("begin", Dialect::Sqlite, 0).unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Refused);
//! # Ok::<(), skillbook_drivers::Error>(())
//! ```

mod builder;
mod dialect;
mod placeholders;
mod scanner;

use memchr::memchr;

use crate::error::{Detail, Refusal};
use crate::{Error, ErrorKind};
use builder::Builder;
#[cfg(feature = "sqlite")]
pub(crate) use dialect::is_query_pragma;
pub use dialect::Dialect;
use dialect::{is, reads};
#[cfg(feature = "sqlite")]
pub(crate) use placeholders::number;
use placeholders::Placeholders;
use scanner::{Scanner, Token};

/// The effect of a statement as far as its keywords show it; a function may do more.
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
    placeholders: Placeholders<'a>,
}

/// Returns the only statement of a text. It is an error if there is none or more than one, if the
/// statement is refused, or if its placeholders do not fit `given` parameters.
pub fn one(sql: &str, dialect: Dialect, given: usize) -> Result<Statement<'_>, Error> {
    let found =
        statements(sql, dialect).and_then(|mut found| match (found.pop(), found.is_empty()) {
            (Some(statement), true) => Ok(statement),
            (Some(_), false) => Err(Error::new(ErrorKind::Syntax, Detail::ManyStatements)),
            (None, _) => Err(Error::new(ErrorKind::Syntax, Detail::NoStatement)),
        });
    let checked = found.and_then(|found| {
        found.check().and_then(|()| found.placeholders.check(given)).map(|()| found)
    });
    checked.map_err(|error| error.in_statement(sql))
}

/// Returns the statements of a text, without empty ones. It is an error if one of them is refused
/// or has a placeholder.
pub fn all(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    let found = statements(sql, dialect).map_err(|error| error.in_statement(sql))?;
    for statement in &found {
        let checked = statement.check().and_then(|()| statement.placeholders.check(0));
        checked.map_err(|error| error.in_statement(statement.text))?;
    }
    Ok(found)
}

/// Whether a text for PostgreSQL may be a statement that only reads, judged by its first word. Used
/// to choose a connection cheaply; the server finds the statements that write after all.
pub fn may_read(sql: &str) -> bool {
    let mut scan = Scanner::new(sql, Dialect::Postgres);
    loop {
        match scan.token() {
            // `(select 1) union …` begins with a parenthesis.
            Some((_, Token::Sign(b'('))) => {}
            Some((_, Token::Word(word))) => {
                return reads(word, Dialect::Postgres) || is(word, &["with", "explain"])
            }
            _ => return false,
        }
    }
}

fn statements(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    // SQLite ends a statement at a NUL, and would not see the rest.
    if memchr(0, sql.as_bytes()).is_some() {
        return Err(Error::new(ErrorKind::Syntax, Detail::NulByte));
    }
    let mut scan = Scanner::new(sql, dialect);
    let mut found = Vec::new();
    let mut builder = Builder::new(dialect);
    while let Some((start, token)) = scan.token() {
        // A semicolon ends a statement, except in the body of a trigger, rule or function.
        if token == Token::Sign(b';') && !builder.is_inside() {
            found.extend(std::mem::replace(&mut builder, Builder::new(dialect)).finish(sql));
        } else {
            builder.take(token, start, scan.end());
        }
    }
    found.extend(builder.finish(sql));
    Ok(found)
}

impl<'a> Statement<'a> {
    /// The statement without its semicolon and without surrounding whitespace and comments.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The effect of the statement.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text with the placeholders `?1` and `?2`, for other drivers of SQLite.
    pub fn with_question_marks(&self) -> String {
        self.placeholders.with_question_marks(self.text)
    }

    /// Refuses statements that would affect only one of several connections.
    fn check(&self) -> Result<(), Error> {
        let refused = |refusal| Err(Error::new(ErrorKind::Refused, Detail::Refused(refusal)));
        self.refusal.clone().map_or(Ok(()), refused)
    }
}
