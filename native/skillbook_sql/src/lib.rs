//! The database drivers of Skillbook: statements and values in, rows out.
//!
//! A [`Driver`] opens [`Connection`]s; a [`Database`] holds them, one that writes and as many that read as there are
//! calls at a time. [`postgres`] talks to a server, asynchronously, and stands beside them. Placeholders are `$1`, `$2` and so on in every driver, and take the parameter of that number, in
//! whatever order the statement uses them.
//!
//! ```
//! use std::time::Duration;
//! use skillbook_sql::{Connection, Driver, Value, sqlite::Sqlite};
//!
//! let mut connection = Sqlite::new(":memory:", Duration::from_secs(5)).open_writer()?;
//! let found = connection.query("select $2 as b, $1 as a", &[Value::Int(1), Value::Text("two".into())])?;
//! assert_eq!(found.columns, ["b", "a"]);
//! assert_eq!(found.rows, [[Value::Text("two".into()), Value::Int(1)]]);
//! # Ok::<(), skillbook_sql::Error>(())
//! ```
//!
//! There is no queue here: who may write when is decided by the caller, which knows its processes.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod database;
mod error;
pub mod postgres;
pub mod sqlite;
pub mod statement;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

pub use database::Database;
pub use error::{Constraint, Error, ErrorKind};

/// A value of a row or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number, finite.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes, or a text from the database that is not UTF-8.
    Blob(Vec<u8>),
}

/// What a statement gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The columns' names; none if the statement gives no rows.
    pub columns: Vec<String>,
    /// The rows, each with a value a column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows there are or, if the statement gives none, how many it inserted, updated or deleted.
    pub count: u64,
}

/// Opens connections to one database.
pub trait Driver: Send + Sync {
    /// What it opens.
    type Connection: Connection;

    /// Opens a connection that reads and writes, and creates the database if it does not exist.
    fn open_writer(&self) -> Result<Self::Connection, Error>;

    /// Opens one that reads beside it; `None` if this database has only the first.
    fn open_reader(&self) -> Result<Option<Self::Connection>, Error>;
}

/// One connection, used by one caller at a time.
pub trait Connection: Send {
    /// Runs one statement.
    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows, Error>;

    /// Runs one statement if it only reads; `None`, and nothing is done, if it would write.
    fn read(&mut self, sql: &str, params: &[Value]) -> Result<Option<Rows>, Error>;

    /// Runs the statements of a text one after another, up to the first that fails.
    fn execute_batch(&mut self, sql: &str) -> Result<(), Error>;

    /// Begins a transaction that may write (level 0) or a savepoint in it (levels from 1).
    fn begin(&mut self, level: u32) -> Result<(), Error>;

    /// Makes what was written since the `begin` of that level stay.
    fn commit(&mut self, level: u32) -> Result<(), Error>;

    /// Takes it back. Nothing happens where the transaction is already over.
    fn rollback(&mut self, level: u32) -> Result<(), Error>;

    /// Whether a transaction is open; an engine may have ended it because of an error.
    fn in_transaction(&self) -> bool;

    /// What stops the statement that runs on this connection.
    fn interrupt(&self) -> Interrupt;
}

/// Stops the statement of a connection from another thread.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes the connection's statements fail, until [`Interrupt::clear`].
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets its statements run.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether they are to fail.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
