//! The database drivers of Skillbook: statements and values in, rows out.
//!
//! There are two kinds of drivers. An embedded database blocks: a [`Driver`] opens [`Connection`]s,
//! and a [`Database`] holds one that writes and as many that read as there are calls at a time.
//! [`sqlite`] is the only one. A server is asynchronous: [`postgres`] has its own sessions, whose
//! calls are futures.
//!
//! [`statement`] checks the text of a statement before any driver runs it, in both dialects.
//! Placeholders are `$1`, `$2` and so on everywhere. A number is the parameter's position; the
//! statement may use them in any order.
//!
//! ```
//! use std::time::Duration;
//! use skillbook_drivers::{Connection, Driver, Value, sqlite::Sqlite};
//!
//! let mut connection = Sqlite::new(":memory:", Duration::from_secs(5)).open_writer()?;
//! let params = [Value::Int(1), Value::Text("two".into())];
//! let found = connection.query("select $2 as b, $1 as a", &params)?;
//! assert_eq!(found.columns, ["b", "a"]);
//! assert_eq!(found.rows, [[Value::Text("two".into()), Value::Int(1)]]);
//! # Ok::<(), skillbook_drivers::Error>(())
//! ```
//!
//! Each driver is a feature, and so are the [`terms`] of the Erlang virtual machine.
//!
//! This crate has no queue. The caller, which knows its processes, decides whose turn it is to
//! write.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod database;
#[cfg_attr(
    not(all(feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "each driver has errors of its own")
)]
mod error;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod statement;
#[cfg(feature = "terms")]
pub mod terms;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

pub use database::Database;
pub use error::{Constraint, Error, ErrorKind};

/// The key of the advisory lock that all writers of this library take in PostgreSQL, whichever
/// connection they use: this driver, another node, or the application's own Ecto repo.
pub const WRITERS: i64 = i64::from_be_bytes(*b"skillboo");

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
    /// Bytes, or text from the database that is not UTF-8.
    Blob(Vec<u8>),
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// The columns' names; empty if the statement returns no rows.
    pub columns: Vec<String>,
    /// The rows, with one value per column.
    pub rows: Vec<Vec<Value>>,
    /// The number of rows returned or, for a statement without rows, inserted, updated or deleted.
    pub count: u64,
}

/// Opens connections to one database.
pub trait Driver: Send + Sync {
    /// The connections that it opens.
    type Connection: Connection;

    /// Opens a connection that reads and writes, and creates the database if it does not exist.
    fn open_writer(&self) -> Result<Self::Connection, Error>;

    /// Opens a connection that only reads; `None` if the database can have one connection only, as
    /// a database in memory.
    fn open_reader(&self) -> Result<Option<Self::Connection>, Error>;

    /// Fails if the database was deleted or replaced since the writer was opened. Writes check
    /// this; a caller may ask before the next write.
    fn check(&self) -> Result<(), Error>;
}

/// A connection, used by one caller at a time.
pub trait Connection: Send {
    /// Runs one statement.
    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows, Error>;

    /// Runs one statement if it only reads. Returns `None` without running it if it would write.
    fn read(&mut self, sql: &str, params: &[Value]) -> Result<Option<Rows>, Error>;

    /// Runs the statements of a text in order, up to the first that fails.
    fn execute_batch(&mut self, sql: &str) -> Result<(), Error>;

    /// Begins a transaction that may write (level 0) or a savepoint in it (levels from 1).
    fn begin(&mut self, level: u32) -> Result<(), Error>;

    /// Commits everything since the `begin` of that level.
    fn commit(&mut self, level: u32) -> Result<(), Error>;

    /// Rolls back to the `begin` of that level. Does nothing if the transaction has already ended.
    fn rollback(&mut self, level: u32) -> Result<(), Error>;

    /// Whether a transaction is open. The engine may have ended it after an error.
    fn in_transaction(&self) -> bool;

    /// A handle that stops the statement running on this connection.
    fn interrupt(&self) -> Interrupt;
}

/// Stops the statement of a connection from another thread.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes the connection's statements fail until [`Interrupt::clear`] is called.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets the connection's statements run again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the connection's statements must fail.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
