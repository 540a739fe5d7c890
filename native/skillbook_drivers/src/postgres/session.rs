//! The state of a connection, and the rules by which an error ends a statement, a transaction or
//! the connection.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{CancelToken, Client};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{describe, is_code, Failure};
use super::prepared::Cache;
use super::settings::Timeouts;
use crate::error::Detail;
use crate::{Error, ErrorKind};

/// The longest time that the server gets beyond its own time limits before the connection counts as
/// lost. It is never longer than the limit of a statement.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A connection to a server, used by one caller at a time.
pub struct Session {
    pub(super) client: Client,
    /// The task that reads from the socket. Aborting it closes the connection.
    pub(super) cancel: CancelToken,
    pub(super) with_tls: bool,
    pub(super) tls: MakeRustlsConnect,
    pub(super) timeouts: Timeouts,
    pub(super) task: JoinHandle<()>,
    /// Why the connection ended.
    pub(super) ended: Arc<StdMutex<Option<String>>>,
    pub(super) state: Mutex<State>,
    /// Whether a transaction is open. Atomic, because `is_usable` and `drop` need it without the
    /// lock.
    pub(super) is_open: AtomicBool,
    /// Whether the connection must not be used again.
    pub(super) is_broken: AtomicBool,
    pub(super) is_closing: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) prepared: Cache,
    /// Counts transactions, so that a prepared statement knows whether this one has used it.
    pub(super) transaction: u64,
    /// The server has failed the transaction, or a savepoint of it, and accepts only a rollback.
    pub(super) is_failed: bool,
    /// When the current statement was sent.
    pub(super) began: Option<Instant>,
}

/// The transaction in which a statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// None: the statement may only read.
    Read,
    /// One of its own, just for this statement.
    Write,
    /// The one that [`Session::begin`] opened.
    Inside,
}

impl Drop for Session {
    fn drop(&mut self) {
        // A polite close would wait for the answer to a rollback. The server rolls back in any
        // case.
        if self.is_open.load(Ordering::Acquire) {
            self.task.abort();
        }
    }
}

impl Session {
    /// Whether the session can be lent to another caller.
    pub fn is_usable(&self) -> bool {
        let flags = [&self.is_open, &self.is_broken, &self.is_closing];
        !self.client.is_closed() && !flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    pub(super) fn check_mode(&self, state: &State, mode: Mode) -> Result<(), Error> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let is_open = self.is_open.load(Ordering::Acquire);
        match mode {
            // The transaction is gone with the connection, so trying again elsewhere would lose its
            // first half.
            Mode::Inside if self.client.is_closed() => {
                Err(self.lost(Detail::LostInTransaction, ErrorKind::Closed))
            }
            Mode::Inside if !is_open || state.is_failed => Err(Error::rolled_back()),
            // Nothing was sent, so the caller may use another connection.
            Mode::Read | Mode::Write if self.client.is_closed() => {
                Err(self.lost(Detail::NotSent, ErrorKind::NotSent))
            }
            _ => Ok(()),
        }
    }

    /// Starts or stops listening on a channel.
    pub async fn listen(&self, channel: &str, listens: bool) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        let verb = if listens { "listen" } else { "unlisten" };
        self.execute(
            &mut state,
            &format!("{verb} \"{}\"", channel.replace('"', "\"\"")),
            Mode::Read,
        )
        .await
    }

    /// Runs a statement of this driver, such as `commit`, without preparing it.
    pub(super) async fn execute(
        &self,
        state: &mut State,
        sql: &str,
        mode: Mode,
    ) -> Result<(), Error> {
        state.began = Some(Instant::now());
        let done = self
            .limited(async { self.client.batch_execute(sql).await.map_err(Failure::Driver) })
            .await;
        done.map_err(|failure| self.error(state, failure, mode))
    }

    /// Adds a time limit on this side. The server has its own limits; this one is for a server or a
    /// network that has gone silent.
    pub(super) async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        // A statement may first wait for the writer's lock, and then run up to its own limit.
        let Timeouts { statement, lock, .. } = self.timeouts;
        let limit = statement + lock + GRACE.min(statement);
        match timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => {
                self.is_broken.store(true, Ordering::Release);
                self.task.abort();
                let reason = format!("no answer within {} ms", limit.as_millis());
                Err(Failure::Known(Error::new(ErrorKind::Lost, Detail::Lost(reason))))
            }
        }
    }

    /// Turns a failure into the error that the caller gets, and records its effect on the session.
    pub(super) fn error(&self, state: &mut State, failure: Failure, mode: Mode) -> Error {
        if self.is_closing.load(Ordering::Acquire) {
            return Error::closed();
        }
        let error = match failure {
            Failure::Known(error) => {
                state.is_failed |= mode == Mode::Inside && error.kind() != ErrorKind::Other;
                return error;
            }
            Failure::Driver(error) => error,
        };
        state.is_failed |= mode == Mode::Inside;
        // A cancelled statement is not always a timeout: an administrator can cancel one too.
        let is_over = state.began.is_some_and(|began| began.elapsed() >= self.timeouts.statement);
        if is_over && is_code(&error, &SqlState::QUERY_CANCELED) {
            return Error::new(ErrorKind::Timeout, Detail::TimeLimit(self.timeouts.statement));
        }
        if error.as_db_error().is_some() {
            let fatal =
                error.as_db_error().and_then(DbError::parsed_severity) == Some(Severity::Fatal);
            // After a FATAL error the server closes the connection.
            self.is_broken.fetch_or(fatal, Ordering::AcqRel);
            let error = describe(&error, self.timeouts);
            self.leave_read_only(mode, &error);
            return error;
        }
        // An error of the protocol: the next response could belong to the wrong call.
        self.is_broken.store(true, Ordering::Release);
        match mode {
            Mode::Inside => self.lost(Detail::LostInTransaction, ErrorKind::Closed),
            Mode::Read | Mode::Write => self.lost(Detail::Lost, ErrorKind::Lost),
        }
    }

    /// A server that refuses writes may have been replaced by another at the same address, so the
    /// next caller gets a new connection.
    pub(super) fn leave_read_only(&self, mode: Mode, error: &Error) {
        let left = mode != Mode::Read && error.kind() == ErrorKind::ReadOnly;
        self.is_broken.fetch_or(left, Ordering::AcqRel);
    }

    pub(super) fn lost(&self, detail: fn(String) -> Detail, kind: ErrorKind) -> Error {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        Error::new(kind, detail(ended.clone().unwrap_or_else(|| "it was closed".to_owned())))
    }
}
