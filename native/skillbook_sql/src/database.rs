//! The connections of one database.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Connection, Driver, Error};

/// One connection that writes, and readers that are opened when all others are at work.
///
/// So a read never waits, and there are never more readers than threads that read at once.
///
/// Writers are let in one at a time by the caller. Each carries an epoch, which ends when its caller was lost in the
/// middle: a call that such a caller still had under way then finds the next epoch and does nothing, wherever it was.
pub struct Database<D: Driver> {
    driver: D,
    writer: Mutex<Writer<D::Connection>>,
    readers: Mutex<Option<Vec<D::Connection>>>,
}

struct Writer<C> {
    connection: Option<C>,
    epoch: u64,
}

impl<D: Driver> Database<D> {
    /// Opens the writing connection. The first epoch is 0.
    pub fn open(driver: D) -> Result<Self, Error> {
        let writer = Writer { connection: Some(driver.open_writer()?), epoch: 0 };
        Ok(Database { driver, writer: Mutex::new(writer), readers: Mutex::new(Some(Vec::new())) })
    }

    /// Runs `work` on a connection that reads; `None` if there is none beside the writing one, or if `work` says so.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&mut D::Connection) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let idle = lock(&self.readers).as_mut().ok_or_else(Error::closed)?.pop();
        let reader = match idle {
            Some(reader) => Some(reader),
            None => self.driver.open_reader()?,
        };
        let Some(mut reader) = reader else { return Ok(None) };
        let result = work(&mut reader);
        // Closing a connection writes to disk, so it happens after the lock is gone.
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

    /// Runs `work` on the connection that writes.
    pub fn write<T>(
        &self,
        epoch: u64,
        work: impl FnOnce(&mut D::Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = lock(&self.writer);
        if writer.epoch != epoch {
            return Err(Error::closed());
        }
        work(writer.connection.as_mut().ok_or_else(Error::closed)?)
    }

    /// The same inside a transaction: refused once the engine has ended it, where a write would stay whatever follows.
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

    /// Rolls back what a lost caller left and ends its epoch; gives the next one.
    pub fn abandon(&self) -> u64 {
        let mut writer = lock(&self.writer);
        writer.epoch += 1;
        if let Some(connection) = writer.connection.as_mut() {
            // A connection that cannot roll back must not be written with again.
            if connection.rollback(0).is_err() {
                writer.connection = None;
            }
        }
        writer.epoch
    }

    /// Rolls back what is open and closes all connections, those in use as soon as their call ends.
    pub fn close(&self) {
        let readers = lock(&self.readers).take();
        drop(readers);
        let writer = lock(&self.writer).connection.take();
        drop(writer);
    }
}

/// A panic while the lock was held leaves the connection as the engine has it, which is all the state there is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
