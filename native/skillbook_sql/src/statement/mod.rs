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

mod builder;
mod dialect;
mod placeholders;
mod scanner;

use memchr::memchr;

use crate::error::{Detail, Refusal};
use crate::{Error, ErrorKind};
use builder::Builder;
pub(crate) use dialect::is_query_pragma;
pub use dialect::Dialect;
use dialect::{is, reads};
pub(crate) use placeholders::number;
use placeholders::Placeholders;
use scanner::{Scanner, Token};

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
    placeholders: Placeholders<'a>,
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
    let checked = found.and_then(|found| {
        found.check().and_then(|()| found.placeholders.check(given)).map(|()| found)
    });
    checked.map_err(|error| error.in_statement(sql))
}

/// The statements of a text; blanks and comments are none. An error if a connection must not run one of them, or if one
/// has a placeholder.
pub fn all(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    let found = statements(sql, dialect).map_err(|error| error.in_statement(sql))?;
    for statement in &found {
        let checked = statement.check().and_then(|()| statement.placeholders.check(0));
        checked.map_err(|error| error.in_statement(statement.text))?;
    }
    Ok(found)
}

/// Whether a text for PostgreSQL may be a statement that only reads, by its first word: the rest is not looked at.
pub fn may_read(sql: &str) -> bool {
    let mut scan = Scanner::new(sql, Dialect::Postgres);
    loop {
        match scan.token() {
            Some((_, Token::Sign(b'('))) => {}
            Some((_, Token::Word(word))) => {
                return reads(word, Dialect::Postgres) || is(word, &["with", "explain"])
            }
            _ => return false,
        }
    }
}

fn statements(sql: &str, dialect: Dialect) -> Result<Vec<Statement<'_>>, Error> {
    if memchr(0, sql.as_bytes()).is_some() {
        return Err(Error::new(ErrorKind::Syntax, Detail::NulByte));
    }
    let mut scan = Scanner::new(sql, dialect);
    let mut found = Vec::new();
    let mut builder = Builder::new(dialect);
    while let Some((start, token)) = scan.token() {
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
        self.placeholders.with_question_marks(self.text)
    }

    /// Refuses what would change one connection of several.
    fn check(&self) -> Result<(), Error> {
        let refused = |refusal| Err(Error::new(ErrorKind::Refused, Detail::Refused(refusal)));
        self.refusal.clone().map_or(Ok(()), refused)
    }
}
