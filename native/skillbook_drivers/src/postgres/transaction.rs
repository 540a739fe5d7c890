//! Transactions and savepoints, and the lock that admits one writer at a time, or one for each part
//! of the database.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::LazyLock;

use futures_util::future::join3;
use tokio_postgres::error::SqlState;

use super::failure::{describe, is_code, Failure};
use super::session::{Mode, Session, State};
use super::settings::Timeouts;
use crate::error::Detail;
use crate::{Error, ErrorKind, Rows, Value, WRITERS};

/// The isolation level is read committed. With a snapshot (repeatable read) a transaction would not
/// see the commits that happened while it waited for the lock.
pub(super) static BEGIN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "begin isolation level read committed read write; select pg_advisory_xact_lock({WRITERS})"
    )
});
pub(super) const COMMIT: &str = "commit";

/// The parts of the database that a transaction changes.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// Their keys; without any, the transaction may change all of them.
    pub keys: &'a [i64],
    /// Whether to wait for writers of the same parts. If not, the error is that of a database that
    /// is busy.
    pub waits: bool,
}

/// As [`BEGIN`], for a writer that changes only these parts: it excludes writers of the same parts,
/// and those that may change all of them. Keys that are in order cannot lead to a deadlock.
fn begin_parts(parts: Parts<'_>, timeouts: Timeouts) -> String {
    let mut begin = format!(
        "begin isolation level read committed read write; \
         select pg_advisory_xact_lock_shared({WRITERS})"
    );
    let mut keys = parts.keys.to_vec();
    keys.sort_unstable();
    if !parts.waits {
        begin.push_str("; set local lock_timeout = 1");
    }
    for key in keys {
        begin.push_str(&format!("; select pg_advisory_xact_lock({key})"));
    }
    if !parts.waits {
        begin.push_str(&format!("; set local lock_timeout = {}", timeouts.lock.as_millis()));
    }
    begin
}

impl Session {
    /// Begins a transaction that may write (level 0) or a savepoint in it (levels from 1).
    pub async fn begin(&self, level: u32, parts: Parts<'_>) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if level > 0 {
            self.check_mode(&state, Mode::Inside)?;
            return self
                .execute(&mut state, &format!("savepoint level_{level}"), Mode::Inside)
                .await;
        }
        self.check_mode(&state, Mode::Write)?;
        state.transaction += 1;
        state.is_failed = false;
        // Set before sending: if this future is dropped in between, the session must not be lent
        // again.
        self.is_open.store(true, Ordering::Release);
        let begin = match parts.keys {
            [] => BEGIN.clone(),
            _ => begin_parts(parts, self.timeouts),
        };
        let begun = self
            .limited(async { self.client.batch_execute(&begin).await.map_err(Failure::Driver) })
            .await;
        match begun {
            Ok(()) => Ok(()),
            // The lock was not available in time, or the connection is lost.
            Err(failure) => {
                let error = self.begin_error(failure);
                // `begin` may have succeeded and the lock failed, so there may be a transaction to
                // end.
                self.end(&mut state, "rollback").await;
                Err(error)
            }
        }
    }

    /// Commits everything since the `begin` of that level, with these last statements.
    pub async fn commit(
        &self,
        level: u32,
        statements: &[(String, Vec<Value>)],
    ) -> Result<Vec<Rows>, Error> {
        if level == 0 {
            let mut state = self.state.lock().await;
            self.check_mode(&state, Mode::Inside)?;
            return self.commit_with(&mut state, statements).await;
        }
        let found = self.query_all(statements).await?;
        let mut state = self.state.lock().await;
        self.check_mode(&state, Mode::Inside)?;
        self.execute(&mut state, &format!("release savepoint level_{level}"), Mode::Inside).await?;
        Ok(found)
    }

    /// Rolls back to the `begin` of that level. Does nothing if the transaction has already ended.
    pub async fn rollback(&self, level: u32) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if !self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        match level {
            0 => self.end(&mut state, "rollback").await,
            _ => {
                let back =
                    format!("rollback to savepoint level_{level}; release savepoint level_{level}");
                self.execute(&mut state, &back, Mode::Inside).await?;
                state.is_failed = false;
            }
        }
        Ok(())
    }

    pub(super) async fn end(&self, state: &mut State, sql: &str) {
        if self.execute(state, sql, Mode::Read).await.is_err() {
            self.is_broken.store(true, Ordering::Release);
            self.task.abort();
        }
        state.is_failed = false;
        self.is_open.store(false, Ordering::Release);
    }

    /// Runs `work` in a transaction of its own. `begin`, the statement and `commit` are sent
    /// together, so this costs one round trip; if one part fails, the server skips the rest.
    pub(super) async fn in_transaction<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let (begun, done, committed) = self
            .limited(async {
                Ok(join3(
                    self.client.batch_execute(&BEGIN),
                    work,
                    self.client.batch_execute(COMMIT),
                )
                .await)
            })
            .await?;
        if let Err(error) = begun {
            // A lost connection is reported by the caller's mode: whether the statement ran is
            // unknown.
            return Err(match error.is_closed() {
                true => Failure::Driver(error),
                false => Failure::Known(self.begin_error(Failure::Driver(error))),
            });
        }
        let done = done?;
        committed?;
        Ok(done)
    }

    fn begin_error(&self, failure: Failure) -> Error {
        match failure {
            Failure::Known(error) => error,
            Failure::Driver(error) if is_code(&error, &SqlState::LOCK_NOT_AVAILABLE) => {
                self.locked()
            }
            Failure::Driver(error) if is_code(&error, &SqlState::QUERY_CANCELED) => self.locked(),
            // The transaction has done nothing yet, so the caller can try again on another
            // connection.
            Failure::Driver(error) if error.is_closed() => {
                self.lost(Detail::NotSent, ErrorKind::NotSent)
            }
            Failure::Driver(error) => {
                let error = describe_begin(&error, self.timeouts);
                self.leave_read_only(Mode::Write, &error);
                error
            }
        }
    }

    fn locked(&self) -> Error {
        Error::new(ErrorKind::Busy, Detail::Locked(self.timeouts.lock.min(self.timeouts.statement)))
    }
}

/// A standby refuses to begin with "cannot set transaction read-write mode during recovery", which
/// has the general code of what is not supported.
fn describe_begin(error: &tokio_postgres::Error, timeouts: Timeouts) -> Error {
    match error.as_db_error() {
        Some(refused) if *refused.code() == SqlState::FEATURE_NOT_SUPPORTED => {
            let message = refused.message().to_owned();
            Error::new(ErrorKind::ReadOnly, Detail::Engine(message))
        }
        _ => describe(error, timeouts),
    }
}
