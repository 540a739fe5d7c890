//! Errors of all drivers: a kind that code decides by, and a text that people read.
//!
//! All wording is in the `Display` of [`Error`], so each text has one form whichever driver reports
//! it. Texts of an engine or a server are passed on in their own words.
//!
//! ```
//! use std::time::Duration;
//! use skillbook_drivers::{sqlite::Sqlite, Connection, Driver, ErrorKind};
//!
//! let mut connection = Sqlite::new(":memory:", Duration::from_secs(5)).open_writer()?;
//! let error = connection.query("select * from t", &[]).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::NoSuchTable);
//! assert_eq!(error.to_string(), "no such table: t\n  in: select * from t");
//! # Ok::<(), skillbook_drivers::Error>(())
//! ```

use std::fmt;
use std::time::Duration;

/// The kind of constraint that a statement violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Constraint {
    /// A unique index or a primary key.
    Unique,
    /// A reference to a row that does not exist, or the removal of a row that is referred to.
    ForeignKey,
    /// A column that must not be NULL.
    NotNull,
    /// A `check`.
    Check,
    /// Any other: a trigger's `raise`, a column's type.
    Other,
}

impl Constraint {
    /// The name in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Constraint::Unique => "unique",
            Constraint::ForeignKey => "foreign_key",
            Constraint::NotNull => "not_null",
            Constraint::Check => "check",
            Constraint::Other => "other",
        }
    }
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A constraint of the schema was violated.
    Constraint(Constraint),
    /// Another process has held the database for too long; trying again may succeed.
    Busy,
    /// The statement cannot be parsed, or the text is not a single statement.
    Syntax,
    /// The table does not exist.
    NoSuchTable,
    /// The file is damaged or is not a database.
    Corrupt,
    /// The database is read-only.
    ReadOnly,
    /// The database cannot be opened.
    CannotOpen,
    /// The database's file was deleted or replaced while it was open, so writes would be lost.
    Moved,
    /// The parameters do not fit the placeholders.
    Params,
    /// The statement would affect only one of several connections.
    Refused,
    /// The database was closed, or the transaction has ended.
    Closed,
    /// The statement was stopped at its time limit.
    Timeout,
    /// The connection was lost before the statement was sent; it is safe to send it again.
    NotSent,
    /// The connection was lost after the statement was sent; it may or may not have run.
    Lost,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// The name in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Constraint(_) => "constraint",
            ErrorKind::Busy => "busy",
            ErrorKind::Syntax => "syntax",
            ErrorKind::NoSuchTable => "no_such_table",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::ReadOnly => "readonly",
            ErrorKind::CannotOpen => "cannot_open",
            ErrorKind::Moved => "moved",
            ErrorKind::Params => "params",
            ErrorKind::Refused => "refused",
            ErrorKind::Closed => "closed",
            ErrorKind::Timeout => "timeout",
            ErrorKind::NotSent => "not_sent",
            ErrorKind::Lost => "lost",
            ErrorKind::Other => "other",
        }
    }
}

/// The reason why a statement is refused. The caller does not choose which of several connections
/// runs it, so a change of connection state would hit the wrong statements later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Transaction,
    Attach,
    Temporary,
    Pragma(String),
    /// A statement of PostgreSQL that changes session state, by its first word.
    Session(String),
}

/// The facts of an error, from which `Display` makes the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Detail {
    /// A text of the engine.
    Engine(String),
    Locked(Duration),
    NoStatement,
    ManyStatements,
    NulByte,
    Placeholder(String),
    PlaceholderMissing(usize),
    ParamCount {
        placeholders: usize,
        given: usize,
    },
    NotANumber(String),
    Refused(Refusal),
    RolledBack,
    Closed,
    /// The path of the database's file.
    Moved(String),
    /// An error of a server.
    Server {
        message: String,
        hint: Option<String>,
        position: Option<u32>,
    },
    TimeLimit(Duration),
    /// The connection was lost, with the reason.
    NotSent(String),
    Lost(String),
    LostInTransaction(String),
    /// A parameter does not fit the type that the server expects.
    Param {
        number: usize,
        expected: String,
        given: String,
    },
    Unreadable {
        column: String,
        type_name: String,
    },
    TlsFile {
        path: String,
        reason: String,
    },
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detail::Engine(message) => f.write_str(message),
            Detail::Locked(timeout) => {
                write!(
                    f,
                    "another process has held the database for more than {} ms; try again",
                    timeout.as_millis()
                )
            }
            Detail::NoStatement => {
                f.write_str("expected a statement, got only whitespace or comments")
            }
            Detail::ManyStatements => {
                f.write_str("expected one statement, got several; send them one by one")
            }
            Detail::NulByte => f.write_str("expected a statement without NUL characters"),
            Detail::Placeholder(name) => {
                write!(f, "expected placeholders $1, $2 and so on, got `{name}`")
            }
            Detail::PlaceholderMissing(number) => {
                write!(f, "expected every placeholder up to the highest, ${number} is missing")
            }
            Detail::ParamCount { placeholders: 0, given } => {
                write!(
                    f,
                    "expected no parameters, because the statement has no placeholder, got {given}"
                )
            }
            Detail::ParamCount { placeholders: 1, given } => {
                write!(f, "expected 1 parameter, for $1, got {given}")
            }
            Detail::ParamCount { placeholders, given } => {
                write!(
                    f,
                    "expected {placeholders} parameters, for $1 to ${placeholders}, got {given}"
                )
            }
            Detail::NotANumber(column) => {
                write!(f, "expected a finite number in column `{column}`, got an infinite one")
            }
            Detail::Refused(Refusal::Transaction) => f.write_str(
                "transactions are begun and ended by the transaction function, not by statements",
            ),
            Detail::Refused(Refusal::Attach) => f.write_str(
                "`attach`, `detach` and `vacuum` would affect only one of several connections",
            ),
            Detail::Refused(Refusal::Temporary) => f.write_str(
                "temporary tables, views and triggers would exist in only one of several \
                 connections",
            ),
            Detail::Refused(Refusal::Pragma(name)) => {
                write!(
                    f,
                    "`pragma {name}` with a value would affect only one of several connections"
                )
            }
            Detail::RolledBack => f.write_str(
                "this transaction was already rolled back by an earlier error; begin a new one",
            ),
            Detail::Refused(Refusal::Session(word)) => {
                write!(f, "`{word}` would affect only one of several connections")
            }
            Detail::Closed => f.write_str("the database is closed"),
            Detail::Moved(path) => write!(
                f,
                "the database's file {path} was deleted or replaced while it was open, so nothing \
                 is written; put the file back, or restart to open the one that is there"
            ),
            Detail::Server { message, hint, position } => {
                f.write_str(message)?;
                if let Some(position) = position {
                    write!(f, ", at character {position}")?;
                }
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
            }
            Detail::TimeLimit(limit) => {
                write!(f, "the statement was stopped at its time limit of {} ms", limit.as_millis())
            }
            Detail::NotSent(reason) => {
                write!(f, "the connection was lost before the statement was sent: {reason}")
            }
            Detail::Lost(reason) => {
                write!(
                    f,
                    "the connection was lost after the statement was sent, so the statement may or \
                     may not have run: {reason}"
                )
            }
            Detail::LostInTransaction(reason) => {
                write!(
                    f,
                    "the connection was lost and this transaction with it; begin a new one: \
                     {reason}"
                )
            }
            Detail::Param { number, expected, given } => {
                write!(f, "expected {expected} as parameter ${number}, got: {given}")
            }
            Detail::Unreadable { column, type_name } => {
                write!(
                    f,
                    "column `{column}` has the type {type_name}, which cannot be read; write \
                     {column}::text"
                )
            }
            Detail::TlsFile { path, reason } => {
                write!(f, "expected certificates in PEM in the file {path}: {reason}")
            }
        }
    }
}

/// An error of a database or a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    detail: Detail,
    sql: Option<String>,
    path: Option<String>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, detail: Detail) -> Self {
        Error { kind, detail, sql: None, path: None }
    }

    /// The database is closed, or the caller's transaction is over.
    pub fn closed() -> Self {
        Error::new(ErrorKind::Closed, Detail::Closed)
    }

    /// The driver panicked instead of answering.
    pub fn panicked() -> Self {
        Error::new(ErrorKind::Lost, Detail::Lost("the driver failed".to_owned()))
    }

    pub(crate) fn rolled_back() -> Self {
        Error::new(ErrorKind::Closed, Detail::RolledBack)
    }

    pub(crate) fn in_statement(mut self, sql: &str) -> Self {
        // The deleted file of a database has nothing to do with the statement.
        if self.kind != ErrorKind::Moved {
            self.sql = Some(sql.to_owned());
        }
        self
    }

    /// Adds the statement unless the error has nothing to do with it: a locked or closed database
    /// affects all statements.
    pub(crate) fn in_statement_unless_alone(self, sql: &str) -> Self {
        match self.detail {
            Detail::Locked(_) | Detail::Closed | Detail::RolledBack => self,
            _ => self.in_statement(sql),
        }
    }

    pub(crate) fn opening(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The statement that failed, if the error is about one.
    pub fn sql(&self) -> Option<&str> {
        self.sql.as_deref()
    }
}

/// The number of characters of a statement that an error's text repeats.
const MAX_SQL: usize = 500;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "cannot open the database {path}: ")?;
        }
        write!(f, "{}", self.detail)?;
        if let Some(sql) = &self.sql {
            let sql = sql.trim();
            match sql.char_indices().nth(MAX_SQL) {
                // Statements may carry whole documents, if a caller does not use parameters.
                Some((end, _)) => write!(f, "\n  in: {}…", &sql[..end])?,
                None => write!(f, "\n  in: {sql}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
