//! The connections of one embedded database: a single writer and a growing set of readers.
//!
//! Reads never wait for each other: a read takes an idle reader or opens a new one, so there are
//! never more readers than threads that have read at once.
//!
//! Writes share one connection. The caller admits one writer at a time, for as long as a
//! transaction lasts. If a writer's process is killed in the middle, its last call may still wait
//! for the lock, and must not write into the next process's transaction. So each writer holds an
//! *epoch*: [`Database::abandon`] rolls back and starts the next one, and a call with an old epoch
//! is refused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Connection, Driver, Error};

/// A database with its writer and its readers.
///
/// ```
/// use std::time::Duration;
/// use skillbook_drivers::{sqlite::Sqlite, Connection, Database, ErrorKind};
///
/// let database = Database::open(Sqlite::new(":memory:", Duration::from_secs(5)))?;
/// database.write(0, |writer| writer.execute_batch("create table t (x)"))?;
/// let epoch = database.abandon();
/// assert!(database.write(epoch, |writer| writer.query("insert into t values (1)", &[])).is_ok());
///
/// let late = database.write(0, |writer| writer.query("insert into t values (2)", &[]));
/// assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
/// # Ok::<(), skillbook_drivers::Error>(())
/// ```
pub struct Database<D: Driver> {
    driver: D,
    writer: Mutex<Writer<D::Connection>>,
    /// The idle readers; `None` once the database is closed.
    readers: Mutex<Option<Vec<D::Connection>>>,
}

struct Writer<C> {
    /// `None` once the database is closed, or if a rollback failed.
    connection: Option<C>,
    epoch: u64,
}

impl<D: Driver> Database<D> {
    /// Opens the writing connection. The first epoch is 0.
    pub fn open(driver: D) -> Result<Self, Error> {
        let writer = Writer { connection: Some(driver.open_writer()?), epoch: 0 };
        Ok(Database { driver, writer: Mutex::new(writer), readers: Mutex::new(Some(Vec::new())) })
    }

    /// Runs `work` on a reader. Returns `None` if the database has no readers, or if `work` returns
    /// `None` because its statement would write.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&mut D::Connection) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        // The lock is held only to take a reader, not while it works.
        let idle = lock(&self.readers).as_mut().ok_or_else(Error::closed)?.pop();
        let reader = match idle {
            Some(reader) => Some(reader),
            None => self.driver.open_reader()?,
        };
        let Some(mut reader) = reader else { return Ok(None) };
        let result = work(&mut reader);
        // If the database was closed meanwhile, the reader is closed here. That writes to disk, so
        // it happens after the lock is released.
        let leftover = match lock(&self.readers).as_mut() {
            Some(readers) => {
                readers.push(reader);
                None
            }
            None => Some(reader),
        };
        drop(leftover);
        result
    }

    /// Runs `work` on the writer.
    pub fn write<T>(
        &self,
        epoch: u64,
        work: impl FnOnce(&mut D::Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = lock(&self.writer);
        // The check must be under the writer's lock: `abandon` may run while this call waits for
        // it.
        if writer.epoch != epoch {
            return Err(Error::closed());
        }
        work(writer.connection.as_mut().ok_or_else(Error::closed)?)
    }

    /// Runs `work` on the writer inside its transaction. Refused if the engine has ended the
    /// transaction after an error: the write would then be committed at once, and the caller could
    /// not roll it back.
    pub fn write_inside<T>(
        &self,
        epoch: u64,
        work: impl FnOnce(&mut D::Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.write(epoch, |connection| {
            if connection.in_transaction() {
                work(connection)
            } else {
                Err(Error::rolled_back())
            }
        })
    }

    /// Fails if the database was deleted or replaced since it was opened. Waits for nobody.
    pub fn check(&self) -> Result<(), Error> {
        self.driver.check()
    }

    /// Rolls back the transaction of a writer that died, and returns the next epoch.
    pub fn abandon(&self) -> u64 {
        let mut writer = lock(&self.writer);
        writer.epoch += 1;
        if let Some(connection) = writer.connection.as_mut() {
            // A writer with an open transaction of another process must not be used again.
            if connection.rollback(0).is_err() {
                writer.connection = None;
            }
        }
        writer.epoch
    }

    /// Rolls back an open transaction and closes all connections. A reader in use is closed when
    /// its call ends; a writer in use is waited for.
    pub fn close(&self) {
        let readers = lock(&self.readers).take();
        drop(readers);
        let writer = lock(&self.writer).connection.take();
        drop(writer);
    }
}

/// A poisoned lock is no problem here: after a panic the engine's connection is still consistent,
/// and there is no other state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
