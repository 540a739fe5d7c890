//! SQLite, built into the library.
//!
//! Every connection has the same settings:
//!
//! - A database on disk is in WAL mode, so readers and the writer do not block each other.
//! - `synchronous` is FULL: an acknowledged commit survives a loss of power. (In WAL mode, NORMAL
//!   would be faster but may lose the last commits.)
//! - Foreign keys are enforced.
//! - The schema is untrusted: a file from elsewhere cannot make queries call functions with side
//!   effects (`SQLITE_DBCONFIG_TRUSTED_SCHEMA`, `_DEFENSIVE`).
//! - `"text"` is always a name and never a string (`SQLITE_DBCONFIG_DQS_*`), as in PostgreSQL.
//!
//! A write fails if the database's file was deleted or replaced since it was opened: SQLite itself
//! would go on writing to the deleted file. The check is a `stat`, before a transaction and after
//! its commit.
//!
//! Statements are checked twice: by [`statement`], which knows both dialects, and by
//! SQLite's own authorizer, in case the two parse a statement differently.
//!
//! ```
//! use std::time::Duration;
//! use skillbook_drivers::{sqlite::Sqlite, Connection, Driver};
//!
//! let mut connection = Sqlite::new(":memory:", Duration::from_secs(5)).open_writer()?;
//! connection.execute_batch("create table t (x); insert into t values (1)")?;
//! connection.begin(0)?;
//! assert_eq!(connection.query("delete from t", &[])?.count, 1);
//! connection.rollback(0)?;
//! assert_eq!(connection.query("select x from t", &[])?.count, 1);
//! # Ok::<(), skillbook_drivers::Error>(())
//! ```

use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::ffi;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::OpenFlags;

use crate::error::{Detail, Refusal};
use crate::statement::{self, Dialect};
use crate::{Connection, Constraint, Driver, Error, ErrorKind, Interrupt, Rows, Value};

/// The number of statements that a connection keeps prepared.
const PREPARED: usize = 64;
/// The number of virtual machine instructions between two checks of the [`Interrupt`]: a few
/// microseconds, which costs nothing measurable.
const STEPS: i32 = 1000;

/// A database file, or a database in memory.
#[derive(Debug, Clone)]
pub struct Sqlite {
    /// `None` for a database in memory.
    path: Option<PathBuf>,
    name: String,
    busy_timeout: Duration,
    /// Set when the writer is opened; never for a database in memory.
    file: Arc<OnceLock<OpenFile>>,
}

/// The file of an open database, and its log.
#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
    /// The same of the log, which has the last commits, once there is one. It stays while the
    /// writer is open.
    log: Mutex<Option<(u64, u64)>>,
}

impl OpenFile {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        let id = identity(&path)?;
        Ok(OpenFile { path, id, log: Mutex::default() })
    }

    /// A file whose identity cannot be read is as good as deleted.
    fn check(&self) -> Result<(), Error> {
        check_identity(&self.path, self.id)?;
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let log = PathBuf::from(log);
        let mut known = lock(&self.log);
        match *known {
            Some(id) => check_identity(&log, id),
            None => {
                *known = identity(&log).ok();
                Ok(())
            }
        }
    }
}

fn check_identity(path: &Path, id: (u64, u64)) -> Result<(), Error> {
    match identity(path) {
        Ok(found) if found == id => Ok(()),
        _ => Err(Error::new(ErrorKind::Moved, Detail::Moved(path.display().to_string()))),
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Sqlite {
    /// The database in the file `path`, or in memory if `path` is `:memory:`. A statement waits up
    /// to `busy_timeout` for another process that has locked the file.
    pub fn new(path: &str, busy_timeout: Duration) -> Self {
        Sqlite {
            path: (path != ":memory:").then(|| PathBuf::from(path)),
            name: path.to_owned(),
            busy_timeout,
            file: Arc::default(),
        }
    }

    fn open(
        &self,
        open: impl FnOnce() -> Result<rusqlite::Connection, Error>,
    ) -> Result<SqliteConnection, Error> {
        open()
            .and_then(|inner| {
                SqliteConnection::new(inner, self.busy_timeout, Arc::clone(&self.file))
            })
            .map_err(|error| error.opening(&self.name))
    }

    /// Opens the file for the writer, and creates it if it does not exist.
    fn create(&self, path: &Path) -> Result<rusqlite::Connection, Error> {
        let cannot = |message: String| Error::new(ErrorKind::CannotOpen, Detail::Engine(message));
        // SQLite cannot take an absolute path for a `file:` URI, and a later change of the working
        // directory does not matter to readers that are opened then.
        let path = std::path::absolute(path).map_err(|error| cannot(error.to_string()))?;
        // SQLite's own message would be "unable to open database file".
        if path.is_dir() {
            return Err(cannot("expected a file, it is a folder".to_owned()));
        }
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
                cannot(format!("cannot create the folder {}: {error}", folder.display()))
            })?;
        }
        // Only the owner may read a new database, whatever the umask is. SQLite gives its mode to
        // the files beside it.
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(cannot(error.to_string()));
            }
            _ => {}
        }
        let inner = self.open_file(&path, OpenFlags::SQLITE_OPEN_CREATE)?;
        let file = OpenFile::new(path).map_err(|error| cannot(error.to_string()))?;
        // A second writer of the same value uses the first one's file, and may have another log.
        let file = self.file.get_or_init(|| file);
        *lock(&file.log) = None;
        file.check()?;
        Ok(inner)
    }

    fn open_file(&self, path: &Path, flags: OpenFlags) -> Result<rusqlite::Connection, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        rusqlite::Connection::open_with_flags(path, flags)
            .map_err(|error| describe(error, false, self.busy_timeout))
    }
}

impl Driver for Sqlite {
    type Connection = SqliteConnection;

    fn open_writer(&self) -> Result<SqliteConnection, Error> {
        let Some(path) = &self.path else {
            return self.open(|| {
                rusqlite::Connection::open_in_memory()
                    .map_err(|error| describe(error, false, self.busy_timeout))
            });
        };
        let connection = self.open(|| self.create(path))?;
        connection.use_wal().map_err(|error| error.opening(&self.name))?;
        Ok(connection)
    }

    fn open_reader(&self) -> Result<Option<SqliteConnection>, Error> {
        // The file that has taken the place of a deleted one is not read: the writer's connection
        // still has the data.
        let Some(file) = self.file.get().filter(|file| file.check().is_ok()) else {
            return Ok(None);
        };
        let connection = self.open(|| {
            let inner = self.open_file(&file.path, OpenFlags::empty())?;
            file.check().map(|()| inner)
        })?;
        connection.internal("pragma query_only = on").map_err(|error| error.opening(&self.name))?;
        Ok(Some(connection))
    }

    fn check(&self) -> Result<(), Error> {
        self.file.get().map_or(Ok(()), OpenFile::check)
    }
}

/// A connection to a database of SQLite.
pub struct SqliteConnection {
    inner: rusqlite::Connection,
    busy_timeout: Duration,
    interrupt: Interrupt,
    guard: Arc<Mutex<Guard>>,
    file: Arc<OnceLock<OpenFile>>,
}

/// State that the authorizer shares with its connection.
#[derive(Default)]
struct Guard {
    /// A statement of this module is being prepared; it may do anything.
    is_internal: bool,
    refused: Option<Refusal>,
}

impl SqliteConnection {
    fn new(
        inner: rusqlite::Connection,
        busy_timeout: Duration,
        file: Arc<OnceLock<OpenFile>>,
    ) -> Result<Self, Error> {
        let mut connection = SqliteConnection {
            inner,
            busy_timeout,
            interrupt: Interrupt::default(),
            guard: Arc::default(),
            file,
        };
        connection.set_up().map_err(|error| connection.error(error, false))?;
        Ok(connection)
    }

    fn set_up(&mut self) -> rusqlite::Result<()> {
        let inner = &mut self.inner;
        inner.busy_timeout(self.busy_timeout)?;
        inner.set_prepared_statement_cache_capacity(PREPARED);
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        inner.execute_batch("pragma foreign_keys = on; pragma synchronous = full")?;

        let interrupt = self.interrupt.clone();
        // The handler runs inside the statement, on its thread. Returning true makes SQLite fail
        // with INTERRUPT.
        inner.progress_handler(STEPS, Some(move || interrupt.is_set()))?;
        let guard = Arc::clone(&self.guard);
        inner.authorizer(Some(move |context: AuthContext<'_>| {
            authorize(&mut lock(&guard), &context.action)
        }))
    }

    /// Switching to WAL needs an exclusive lock, and SQLite does not apply the busy timeout to it.
    /// Two processes that create the same file at once would make each other fail.
    fn use_wal(&self) -> Result<(), Error> {
        let deadline = Instant::now() + self.busy_timeout;
        loop {
            match self.internal("pragma journal_mode = wal") {
                Err(error) if error.kind() == ErrorKind::Busy && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    /// Runs a statement of this module, past the authorizer. It does not go through the statement
    /// cache: a later caller with the same text would get it prepared without a check.
    fn internal(&self, sql: &str) -> Result<(), Error> {
        lock(&self.guard).is_internal = true;
        let result = self.inner.execute_batch(sql);
        lock(&self.guard).is_internal = false;
        result.map_err(|error| self.error(error, false))
    }

    fn check_file(&self) -> Result<(), Error> {
        self.file.get().map_or(Ok(()), OpenFile::check)
    }

    /// Runs a write that is committed at its end. It is acknowledged only if the file was there
    /// before and after it.
    fn committed<T>(&self, write: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.check_file()?;
        let done = write()?;
        self.check_file().map(|()| done)
    }

    fn error(&self, error: rusqlite::Error, preparing: bool) -> Error {
        match lock(&self.guard).refused.take() {
            Some(refusal) => Error::new(ErrorKind::Refused, Detail::Refused(refusal)),
            None => describe(error, preparing, self.busy_timeout),
        }
    }

    /// Binds the parameters. SQLite numbers placeholders by their first use, so a parameter is
    /// found by the placeholder's name.
    fn bind(&self, statement: &mut rusqlite::Statement<'_>, params: &[Value]) -> Result<(), Error> {
        for slot in 1..=statement.parameter_count() {
            let name = statement.parameter_name(slot).unwrap_or("?");
            let Some(param) = statement::number(name).and_then(|number| params.get(number - 1))
            else {
                return Err(Error::new(ErrorKind::Params, Detail::Placeholder(name.to_owned())));
            };
            statement.raw_bind_parameter(slot, param).map_err(|error| self.error(error, false))?;
        }
        Ok(())
    }

    fn run(&self, sql: &str, params: &[Value], may_write: bool) -> Result<Option<Rows>, Error> {
        // The scanner goes first: it gives better errors, and knows more refusals than the
        // authorizer.
        let scanned = statement::one(sql, Dialect::Sqlite, params.len())?;
        // A refusal during an earlier statement (inside a virtual table, say) need not have become
        // an error, so it may still be set.
        lock(&self.guard).refused = None;
        let mut statement =
            self.inner.prepare_cached(scanned.text()).map_err(|error| self.error(error, true))?;
        // SQLite itself knows whether a prepared statement writes.
        if !may_write && !statement.readonly() {
            return Ok(None);
        }
        self.bind(&mut statement, params)?;
        if self.inner.is_autocommit() && !statement.readonly() {
            self.committed(|| self.step(statement))
        } else {
            self.step(statement)
        }
        .map(Some)
    }

    fn step(&self, mut statement: rusqlite::CachedStatement<'_>) -> Result<Rows, Error> {
        let step_error = |error| self.error(error, false);
        // `changes` is not reset by a statement that changes nothing, so the total is compared.
        let changed_before = self.inner.total_changes();
        let mut found = Rows::default();
        let mut cursor = statement.raw_query();
        while let Some(row) = cursor.next().map_err(step_error)? {
            // If the schema has changed, the first step prepares the statement again, and the
            // columns may differ from those before.
            let width = row.as_ref().column_count();
            let values = (0..width).map(|index| {
                row.get_ref(index)
                    .map_err(step_error)
                    .and_then(|value| read_value(value, row, index))
            });
            found.rows.push(values.collect::<Result<_, _>>()?);
        }
        drop(cursor);
        found.columns = statement.column_names().map(str::to_owned).collect();
        found.count = if !found.columns.is_empty() {
            found.rows.len() as u64
        } else if self.inner.total_changes() != changed_before {
            self.inner.changes()
        } else {
            // `changes` would return the count of an earlier statement.
            0
        };
        Ok(found)
    }
}

impl Connection for SqliteConnection {
    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows, Error> {
        self.run(sql, params, true)
            .map(Option::unwrap_or_default)
            .map_err(|error| error.in_statement(sql))
    }

    fn read(&mut self, sql: &str, params: &[Value]) -> Result<Option<Rows>, Error> {
        self.run(sql, params, false).map_err(|error| error.in_statement(sql))
    }

    fn execute_batch(&mut self, sql: &str) -> Result<(), Error> {
        for statement in statement::all(sql, Dialect::Sqlite)? {
            lock(&self.guard).refused = None;
            let run = || {
                self.inner.execute_batch(statement.text()).map_err(|error| self.error(error, true))
            };
            let done = if self.in_transaction() { run() } else { self.committed(run) };
            done.map_err(|error| error.in_statement(statement.text()))?;
        }
        Ok(())
    }

    fn begin(&mut self, level: u32) -> Result<(), Error> {
        match level {
            // Takes the write lock now. A deferred transaction that reads first and writes later
            // fails with BUSY if another process has written in between.
            0 => self.check_file().and_then(|()| self.internal("begin immediate")),
            _ => self.internal(&format!("savepoint level_{level}")),
        }
    }

    fn commit(&mut self, level: u32) -> Result<(), Error> {
        match level {
            0 => self.internal("commit").and_then(|()| self.check_file()),
            _ => self.internal(&format!("release level_{level}")),
        }
    }

    fn rollback(&mut self, level: u32) -> Result<(), Error> {
        match level {
            // Some errors (a full disk, say) have rolled back already.
            _ if !self.in_transaction() => Ok(()),
            0 => self.internal("rollback"),
            _ => self.internal(&format!("rollback to level_{level}; release level_{level}")),
        }
    }

    fn in_transaction(&self) -> bool {
        !self.inner.is_autocommit()
    }

    fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }
}

/// The second check: [`statement`] has already accepted the statement. This one catches statements
/// that SQLite parses differently from our scanner.
fn authorize(guard: &mut Guard, action: &AuthAction<'_>) -> Authorization {
    if guard.is_internal {
        return Authorization::Allow;
    }
    let refusal = match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Refusal::Transaction,
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Refusal::Attach,
        AuthAction::CreateTempTable { .. } | AuthAction::CreateTempView { .. } => {
            Refusal::Temporary
        }
        AuthAction::CreateTempTrigger { .. } => Refusal::Temporary,
        AuthAction::Pragma { pragma_name, pragma_value: Some(_) }
            if !statement::is_query_pragma(pragma_name) =>
        {
            Refusal::Pragma((*pragma_name).to_owned())
        }
        _ => return Authorization::Allow,
    };
    guard.refused = Some(refusal);
    Authorization::Deny
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Float(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn read_value(value: ValueRef<'_>, row: &rusqlite::Row<'_>, index: usize) -> Result<Value, Error> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        // Erlang has no infinite floats.
        ValueRef::Real(value) if value.is_finite() => Value::Float(value),
        ValueRef::Real(_) => {
            let column = row.as_ref().column_name(index).unwrap_or_default().to_owned();
            return Err(Error::new(ErrorKind::Other, Detail::NotANumber(column)));
        }
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

fn describe(error: rusqlite::Error, preparing: bool, busy_timeout: Duration) -> Error {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            (code, message.unwrap_or_else(|| code.to_string()))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg),
        rusqlite::Error::MultipleStatement => {
            return Error::new(ErrorKind::Syntax, Detail::ManyStatements)
        }
        other => return Error::new(ErrorKind::Other, Detail::Engine(other.to_string())),
    };
    let kind = match code.extended_code & 0xff {
        ffi::SQLITE_CONSTRAINT => ErrorKind::Constraint(constraint(code.extended_code)),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            return Error::new(ErrorKind::Busy, Detail::Locked(busy_timeout))
        }
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => ErrorKind::Corrupt,
        ffi::SQLITE_READONLY => ErrorKind::ReadOnly,
        ffi::SQLITE_CANTOPEN => ErrorKind::CannotOpen,
        ffi::SQLITE_ERROR if message.starts_with("no such table: ") => ErrorKind::NoSuchTable,
        ffi::SQLITE_ERROR if preparing => ErrorKind::Syntax,
        _ => ErrorKind::Other,
    };
    Error::new(kind, Detail::Engine(message))
}

fn constraint(extended_code: i32) -> Constraint {
    match extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => Constraint::Unique,
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Constraint::ForeignKey,
        ffi::SQLITE_CONSTRAINT_NOTNULL => Constraint::NotNull,
        ffi::SQLITE_CONSTRAINT_CHECK => Constraint::Check,
        _ => Constraint::Other,
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_and_scanner_refuse_the_same() {
        let sqlite = Sqlite::new(":memory:", Duration::ZERO).open_writer().unwrap();
        sqlite.inner.execute_batch("create table t (x)").unwrap();
        for (sql, is_refused) in [
            ("begin", true),
            ("begin immediate", true),
            ("commit", true),
            ("end", true),
            ("rollback", true),
            ("rollback to a", true),
            ("savepoint a", true),
            ("release a", true),
            ("explain begin", true),
            ("explain query plan commit", true),
            ("\u{feff}begin", true),
            ("attach ':memory:' as a", true),
            ("detach main", true),
            ("create temp table a (x)", true),
            ("create temporary view a as select 1", true),
            ("create temp trigger a after insert on t begin select 1; end", true),
            ("pragma foreign_keys = off", true),
            ("pragma main.synchronous(off)", true),
            ("pragma \"foreign_keys\"=0", true),
            ("explain pragma foreign_keys = off", true),
            ("select 'begin'", false),
            ("create table temp (x)", false),
            ("create table a as select t.x from t, t as temp where temp.x = 1", false),
            ("pragma foreign_keys", false),
            ("pragma main.table_info('t')", false),
            ("explain select 1", false),
        ] {
            lock(&sqlite.guard).refused = None;
            let by_engine = sqlite
                .inner
                .prepare(sql)
                .map(|_| ())
                .map_err(|error| sqlite.error(error, true).in_statement(sql));
            let by_scanner = statement::one(sql, Dialect::Sqlite, 0).map(|_| ());
            assert_eq!((sql, by_scanner.is_err()), (sql, is_refused));
            assert_eq!(by_scanner, by_engine, "{sql}");
        }
    }
}
