//! What can go wrong; all wording is in [`Error`]'s `Display`.

use std::fmt;
use std::time::Duration;

/// The rule of the schema that a statement broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Constraint {
    /// A unique index or a primary key.
    Unique,
    /// A reference to a row that does not exist, or the removal of a row that is referred to.
    ForeignKey,
    /// A column that takes no NULL.
    NotNull,
    /// A `check`.
    Check,
    /// Another one: a trigger's `raise`, a column's type.
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

/// What an error is about; callers decide by it, people read the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A rule of the schema was broken.
    Constraint(Constraint),
    /// Someone else has held the database for too long; trying again may succeed.
    Busy,
    /// The statement cannot be understood, or is not one statement.
    Syntax,
    /// A table that does not exist.
    NoSuchTable,
    /// The file is damaged or is no database.
    Corrupt,
    /// The database takes no writes.
    ReadOnly,
    /// The database cannot be opened.
    CannotOpen,
    /// The parameters do not fit the placeholders.
    Params,
    /// A statement that would change one connection of several.
    Refused,
    /// The database was closed, or the transaction is over.
    Closed,
    /// The statement was stopped at its time limit.
    Timeout,
    /// The connection was lost before the statement was sent: it can be sent on another one.
    NotSent,
    /// The connection was lost after the statement was sent: whether it was carried out is not known.
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

/// What a query may not do, because the connection it would change is one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Transaction,
    Attach,
    Temporary,
    Pragma(String),
    /// A statement of PostgreSQL, by its first word.
    Session(String),
}

/// The facts of an error, from which its text is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Detail {
    /// In the engine's own words.
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
    /// In a server's words.
    Server {
        message: String,
        hint: Option<String>,
        position: Option<u32>,
    },
    TimeLimit(Duration),
    /// Why the connection was lost.
    NotSent(String),
    Lost(String),
    LostInTransaction(String),
    /// The value, as it is shown, and what the database expects there.
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
            Detail::NoStatement => f.write_str("expected a statement, got only blanks or comments"),
            Detail::ManyStatements => {
                f.write_str("expected one statement, got several; send them one by one")
            }
            Detail::NulByte => {
                f.write_str("expected a statement as text, got one with a NUL character in it")
            }
            Detail::Placeholder(name) => {
                write!(f, "expected placeholders $1, $2 and so on, got `{name}`")
            }
            Detail::PlaceholderMissing(number) => {
                write!(f, "expected every placeholder up to the highest in the statement, ${number} is not there")
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
                "a transaction is begun and ended by the transaction function, not by a statement",
            ),
            Detail::Refused(Refusal::Attach) => f.write_str(
                "`attach`, `detach` and `vacuum` would change one connection of several",
            ),
            Detail::Refused(Refusal::Temporary) => f.write_str(
                "temporary tables, views and triggers would exist in one connection of several",
            ),
            Detail::Refused(Refusal::Pragma(name)) => {
                write!(f, "`pragma {name}` with a value would change one connection of several")
            }
            Detail::RolledBack => f.write_str(
                "this transaction was already rolled back by an earlier error; begin a new one",
            ),
            Detail::Refused(Refusal::Session(word)) => {
                write!(f, "`{word}` would change one connection of several")
            }
            Detail::Closed => f.write_str("the database is closed"),
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
                    "the connection was lost after the statement was sent, so whether it was carried out is not known: {reason}"
                )
            }
            Detail::LostInTransaction(reason) => {
                write!(f, "the connection was lost, and with it what this transaction did; begin a new one: {reason}")
            }
            Detail::Param { number, expected, given } => {
                write!(f, "expected {expected} as parameter ${number}, got: {given}")
            }
            Detail::Unreadable { column, type_name } => {
                write!(f, "column `{column}` is of the type {type_name}, which is not read; write {column}::text")
            }
            Detail::TlsFile { path, reason } => {
                write!(f, "expected certificates in PEM in the file {path}: {reason}")
            }
        }
    }
}

/// Why a database could not do what it was asked for.
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

    /// A panic took the place of an answer.
    pub fn panicked() -> Self {
        Error::new(ErrorKind::Lost, Detail::Lost("the driver failed".to_owned()))
    }

    pub(crate) fn rolled_back() -> Self {
        Error::new(ErrorKind::Closed, Detail::RolledBack)
    }

    pub(crate) fn in_statement(mut self, sql: &str) -> Self {
        self.sql = Some(sql.to_owned());
        self
    }

    /// The same for what is about the statement; that the database is held or gone concerns all of them.
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

    /// What it is about.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The statement, if it is about one.
    pub fn sql(&self) -> Option<&str> {
        self.sql.as_deref()
    }
}

/// How many characters of a statement an error's text repeats.
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
                Some((end, _)) => write!(f, "\n  in: {}…", &sql[..end])?,
                None => write!(f, "\n  in: {sql}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
