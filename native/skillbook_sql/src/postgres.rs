//! PostgreSQL, over the network and asynchronously: everything here that waits is a future for a runtime of tokio.
//!
//! A [`Server`] opens [`Session`]s, each used by one caller at a time. Outside of transactions a session only reads
//! (`default_transaction_read_only`), so that the server itself finds the statements that write. Those, and
//! transactions, first take a lock that there is once a database: so one writes at a time, on however many nodes, and
//! nothing changes between what a transaction reads and what it writes.

mod tls;
mod values;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join3;
use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Detail;
use crate::statement::{self, Dialect, Kind};
use crate::{Constraint, Error, ErrorKind, Rows, Value};
pub use tls::authorities;
use values::{Raw, Sent};

/// Statements that a session keeps prepared.
const PREPARED: usize = 64;
/// How long the server may take to answer beyond its own time limit before the connection counts as lost.
const GRACE: Duration = Duration::from_secs(5);
/// The key of the advisory lock by which all who write through this library take turns, whatever they are connected by.
pub const WRITERS: i64 = i64::from_be_bytes(*b"skillboo");
/// Read committed, so that a statement sees what was committed while its transaction waited for the lock.
static BEGIN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "begin isolation level read committed read write; select pg_advisory_xact_lock({WRITERS})"
    )
});
const COMMIT: &str = "commit";

/// What `sslmode` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS where it works, else none.
    Prefer,
    /// TLS, with whomever. With a file of authorities, as [`SslMode::VerifyCa`].
    Require,
    /// TLS with a server whose certificate an authority signed.
    VerifyCa,
    /// The same, and the certificate is for the host.
    VerifyFull,
}

impl SslMode {
    /// By the names of libpq.
    pub fn from_name(name: &str) -> Option<SslMode> {
        Some(match name {
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return None,
        })
    }
}

/// Where a server is, and who asks it.
#[derive(Clone)]
pub struct Address {
    /// A name, an address, or the folder of a socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// What the server's list of connections says of them.
    pub application_name: String,
    /// Whether and how TLS is used.
    pub ssl_mode: SslMode,
    /// A file of certificates in PEM; `None` for those of the system.
    pub authorities: Option<String>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A statement.
    pub statement: Duration,
    /// The wait for another one that writes.
    pub patience: Duration,
    /// Opening a connection.
    pub connect: Duration,
}

/// What a listening session hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A notification.
    Notification {
        /// Its channel.
        channel: String,
        /// Its text.
        payload: String,
    },
    /// The connection is lost.
    End,
}

/// Why there is no session.
#[derive(Debug)]
pub struct Refused {
    /// What to tell.
    pub error: Box<Error>,
    /// Whether it may be otherwise soon.
    pub passing: bool,
}

impl Refused {
    fn new(reason: String, passing: bool) -> Refused {
        Refused {
            error: Box::new(Error::new(ErrorKind::CannotOpen, Detail::Engine(reason))),
            passing,
        }
    }
}

/// A database on a server.
pub struct Server {
    config: Config,
    mode: SslMode,
    tls: MakeRustlsConnect,
    limits: Limits,
    /// What errors call it.
    label: String,
}

impl Server {
    /// Nothing is opened yet.
    pub fn new(address: &Address, limits: Limits) -> Result<Server, Error> {
        let label = format!("{}:{}/{}", address.host, address.port, address.database);
        let is_socket = address.host.starts_with('/');
        let mode = if is_socket { SslMode::Disable } else { address.ssl_mode };
        let tls = tls::connector(mode, address.authorities.as_deref())
            .map_err(|error| error.opening(&label))?;
        let mut config = Config::new();
        config
            .host(&address.host)
            .port(address.port)
            .user(&address.user)
            .dbname(&address.database)
            .application_name(&address.application_name)
            .connect_timeout(limits.connect)
            // A network that went away is found within a minute, also while nothing is asked.
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(30))
            .ssl_mode(match mode {
                SslMode::Disable => tokio_postgres::config::SslMode::Disable,
                SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
                _ => tokio_postgres::config::SslMode::Require,
            });
        if let Some(password) = &address.password {
            config.password(password);
        }
        Ok(Server { config, mode, tls, limits, label })
    }

    /// Opens a session. `hear` is told what comes without being asked for, from a task of its own.
    pub async fn connect(
        &self,
        hear: impl Fn(Heard) + Send + Clone + 'static,
    ) -> Result<Session, Refused> {
        let opened = timeout(self.limits.connect, self.open(hear)).await;
        opened
            .unwrap_or_else(|_| {
                let reason = format!("no answer within {} ms", self.limits.connect.as_millis());
                Err(Refused::new(reason, true))
            })
            .map_err(|refused| Refused {
                error: Box::new(refused.error.opening(&self.label)),
                ..refused
            })
    }

    async fn open(
        &self,
        hear: impl Fn(Heard) + Send + Clone + 'static,
    ) -> Result<Session, Refused> {
        let session = match self.open_with(&self.config, hear.clone()).await {
            Err(error) if self.mode == SslMode::Prefer && is_about_tls(&error) => {
                let mut plain = self.config.clone();
                plain.ssl_mode(tokio_postgres::config::SslMode::Disable);
                self.open_with(&plain, hear).await
            }
            opened => opened,
        }
        .map_err(refused)?;
        let settings = format!(
            "set default_transaction_read_only = on; set standard_conforming_strings = on; set timezone = 'UTC'; \
             set statement_timeout = {}; set lock_timeout = {}",
            self.limits.statement.as_millis(),
            self.limits.patience.as_millis().max(1),
        );
        session.client.batch_execute(&settings).await.map_err(refused)?;
        Ok(session)
    }

    async fn open_with(
        &self,
        config: &Config,
        hear: impl Fn(Heard) + Send + 'static,
    ) -> Result<Session, tokio_postgres::Error> {
        let (client, mut connection) = config.connect(self.tls.clone()).await?;
        let ended = Arc::new(StdMutex::new(None));
        let end = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            let reason = loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(heard))) => hear(Heard::Notification {
                        channel: heard.channel().to_owned(),
                        payload: heard.payload().to_owned(),
                    }),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break reason(&error),
                    None => break "it was closed".to_owned(),
                }
            };
            *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            // Callers find the reason there: their channels end with the connection.
            drop(connection);
            hear(Heard::End);
        });
        let cancel = client.cancel_token();
        Ok(Session {
            client,
            cancel,
            with_tls: self.mode != SslMode::Disable,
            tls: self.tls.clone(),
            limits: self.limits,
            task,
            ended,
            state: Mutex::default(),
            is_open: AtomicBool::new(false),
            is_spoilt: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        })
    }
}

/// A connection.
pub struct Session {
    client: Client,
    cancel: CancelToken,
    with_tls: bool,
    tls: MakeRustlsConnect,
    limits: Limits,
    task: JoinHandle<()>,
    /// Why the connection ended.
    ended: Arc<StdMutex<Option<String>>>,
    state: Mutex<State>,
    /// Whether a transaction is open.
    is_open: AtomicBool,
    /// Whether it must not be used again.
    is_spoilt: AtomicBool,
    is_closing: AtomicBool,
}

#[derive(Default)]
struct State {
    prepared: HashMap<String, Prepared>,
    /// Counts uses of `prepared`, to find the one that was not used for the longest time.
    clock: u64,
    /// Counts transactions.
    transaction: u64,
    /// The server has ended the transaction, or a part of it, and takes nothing but a rollback.
    is_failed: bool,
    /// When the statement that runs was sent.
    began: Option<Instant>,
}

struct Prepared {
    statement: Statement,
    used: u64,
    /// In which transaction it was prepared.
    transaction: u64,
}

/// What a statement runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing: it may only read.
    Read,
    /// A transaction of its own.
    Write,
    /// The transaction that [`Session::begin`] opened.
    Inside,
}

impl Drop for Session {
    fn drop(&mut self) {
        // With an open transaction, closing politely would wait for an answer that nobody reads.
        if self.is_open.load(Ordering::Acquire) {
            self.task.abort();
        }
    }
}

impl Session {
    /// Whether another caller can use it.
    pub fn is_usable(&self) -> bool {
        let flags = [&self.is_open, &self.is_spoilt, &self.is_closing];
        !self.client.is_closed() && !flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Runs one statement; `None`, and nothing is done, if it would write where it may only read.
    pub async fn query(
        &self,
        sql: &str,
        params: &[Value],
        place: Place,
    ) -> Result<Option<Rows>, Error> {
        let mut state = self.state.lock().await;
        self.run(&mut state, sql, params, place)
            .await
            .map_err(|error| error.in_statement_unless_alone(sql))
    }

    /// Runs statements in the transaction that is open, up to the first that fails.
    pub async fn query_all(&self, statements: &[(String, Vec<Value>)]) -> Result<Vec<Rows>, Error> {
        let mut all = Vec::with_capacity(statements.len());
        for (sql, params) in statements {
            // Where it may write, there are always rows, if only none.
            all.push(self.query(sql, params, Place::Inside).await?.unwrap_or_default());
        }
        Ok(all)
    }

    async fn run(
        &self,
        state: &mut State,
        sql: &str,
        params: &[Value],
        place: Place,
    ) -> Result<Option<Rows>, Error> {
        self.check_place(state, place)?;
        let scanned = statement::one(sql, Dialect::Postgres, params.len())?;
        if place == Place::Read && scanned.kind() != Kind::Read {
            return Ok(None);
        }

        state.began = Some(Instant::now());
        let mut heal = true;
        let found = loop {
            let prepared = self.prepare(state, scanned.text(), place).await?;
            let sent = encode(&prepared.statement, params)?;
            check_columns(&prepared.statement)?;
            let found = match place {
                Place::Read => self.limited(self.fetch(&prepared.statement, &sent)).await,
                Place::Write => self.write(&prepared.statement, &sent).await,
                Place::Inside => self.inside(state, &prepared, &sent).await,
            };
            match found {
                // The schema has changed since it was prepared.
                Err(Failure::Driver(error)) if heal && is_stale(&error) => {
                    heal = false;
                    state.prepared.remove(scanned.text());
                }
                Err(Failure::Driver(error))
                    if place == Place::Read
                        && is_code(&error, &SqlState::READ_ONLY_SQL_TRANSACTION) =>
                {
                    return Ok(None);
                }
                found => break found,
            }
        };
        if scanned.kind() == Kind::Other {
            state.prepared.clear();
        }
        found.map(Some).map_err(|failure| self.error(state, failure, place))
    }

    /// Runs the statements of a text one after another, up to the first that fails.
    pub async fn execute_batch(&self, sql: &str, place: Place) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        self.run_batch(&mut state, sql, place).await
    }

    async fn run_batch(&self, state: &mut State, sql: &str, place: Place) -> Result<(), Error> {
        self.check_place(state, place).map_err(|error| error.in_statement_unless_alone(sql))?;
        let statements = statement::all(sql, Dialect::Postgres)?;
        state.prepared.clear();
        for text in statements.iter().map(|statement| statement.text()) {
            state.began = Some(Instant::now());
            let simple = async { self.client.batch_execute(text).await.map_err(Failure::Driver) };
            let done = match place {
                Place::Inside => self.limited(simple).await,
                Place::Read | Place::Write => self.alone(simple).await,
            };
            done.map_err(|failure| {
                self.error(state, failure, place).in_statement_unless_alone(text)
            })?;
        }
        Ok(())
    }

    fn check_place(&self, state: &State, place: Place) -> Result<(), Error> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let is_open = self.is_open.load(Ordering::Acquire);
        match place {
            Place::Inside if self.client.is_closed() => {
                Err(self.lost(Detail::LostInTransaction, ErrorKind::Closed))
            }
            Place::Inside if !is_open || state.is_failed => Err(Error::rolled_back()),
            Place::Read | Place::Write if self.client.is_closed() => {
                Err(self.lost(Detail::NotSent, ErrorKind::NotSent))
            }
            _ => Ok(()),
        }
    }

    /// Begins a transaction that may write (level 0) or a savepoint in it (levels from 1).
    pub async fn begin(&self, level: u32) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if level > 0 {
            self.check_place(&state, Place::Inside)?;
            return self.own(&mut state, &format!("savepoint level_{level}"), Place::Inside).await;
        }
        self.check_place(&state, Place::Write)?;
        state.transaction += 1;
        state.is_failed = false;
        self.is_open.store(true, Ordering::Release);
        let begun = self
            .limited(async { self.client.batch_execute(&BEGIN).await.map_err(Failure::Driver) })
            .await;
        match begun {
            Ok(()) => Ok(()),
            Err(failure) => {
                let error = self.begin_error(failure);
                self.end(&mut state, "rollback").await;
                Err(error)
            }
        }
    }

    /// Makes what was written since the `begin` of that level stay.
    pub async fn commit(&self, level: u32) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        self.check_place(&state, Place::Inside)?;
        if level > 0 {
            return self
                .own(&mut state, &format!("release savepoint level_{level}"), Place::Inside)
                .await;
        }
        let done = self.own(&mut state, COMMIT, Place::Write).await;
        // Also where it fails, the server has ended the transaction.
        self.is_open.store(false, Ordering::Release);
        done
    }

    /// Takes it back. Nothing happens where the transaction is already over.
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
                self.own(&mut state, &back, Place::Inside).await?;
                state.is_failed = false;
            }
        }
        Ok(())
    }

    /// Listens on a channel, or no longer.
    pub async fn listen(&self, channel: &str, listens: bool) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        let verb = if listens { "listen" } else { "unlisten" };
        self.own(&mut state, &format!("{verb} \"{}\"", channel.replace('"', "\"\"")), Place::Read)
            .await
    }

    /// Lets nothing begin any more.
    pub fn refuse(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Stops what runs, rolls back what is open, and ends the connection.
    pub async fn close(&self) {
        self.refuse();
        let mut pause = Duration::from_millis(20);
        // The server may get the first ones before the statement that they are to stop.
        for _ in 0..8 {
            if self.state.try_lock().is_ok() {
                break;
            }
            let cancelled = timeout(GRACE, async {
                match self.with_tls {
                    true => self.cancel.cancel_query(self.tls.clone()).await,
                    false => self.cancel.cancel_query(NoTls).await,
                }
            });
            // Where that cannot be, the end of the connection and the server's own time limit remain.
            let _ = cancelled.await;
            sleep(pause).await;
            pause *= 2;
        }
        self.task.abort();
    }

    async fn own(&self, state: &mut State, sql: &str, place: Place) -> Result<(), Error> {
        state.began = Some(Instant::now());
        let done = self
            .limited(async { self.client.batch_execute(sql).await.map_err(Failure::Driver) })
            .await;
        done.map_err(|failure| self.error(state, failure, place))
    }

    async fn end(&self, state: &mut State, sql: &str) {
        if self.own(state, sql, Place::Read).await.is_err() {
            self.is_spoilt.store(true, Ordering::Release);
            self.task.abort();
        }
        state.is_failed = false;
        self.is_open.store(false, Ordering::Release);
    }

    /// A statement kept from before, or made now.
    async fn prepare(
        &self,
        state: &mut State,
        text: &str,
        place: Place,
    ) -> Result<Prepared, Error> {
        state.clock += 1;
        let (clock, transaction) = (state.clock, state.transaction);
        if let Some(kept) = state.prepared.get_mut(text) {
            kept.used = clock;
            let before = std::mem::replace(&mut kept.transaction, transaction);
            return Ok(Prepared {
                statement: kept.statement.clone(),
                used: clock,
                transaction: before,
            });
        }
        let made =
            self.limited(async { self.client.prepare(text).await.map_err(Failure::Driver) }).await;
        let statement = match made {
            Ok(statement) => statement,
            // Nothing of it was carried out.
            Err(Failure::Driver(error)) if error.is_closed() && place != Place::Inside => {
                return Err(self.lost(Detail::NotSent, ErrorKind::NotSent));
            }
            Err(failure) => return Err(self.error(state, failure, place)),
        };
        if state.prepared.len() >= PREPARED {
            let oldest = state
                .prepared
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(text, _)| text.clone());
            oldest.and_then(|text| state.prepared.remove(&text));
        }
        let kept = Prepared { statement: statement.clone(), used: clock, transaction };
        state.prepared.insert(text.to_owned(), kept);
        Ok(Prepared { statement, used: clock, transaction })
    }

    async fn fetch(&self, statement: &Statement, params: &[Sent]) -> Result<Rows, Failure> {
        let columns = statement.columns();
        let mut stream = pin!(self.client.query_raw(statement, params).await?);
        let mut found = Rows::default();
        while let Some(row) = stream.next().await {
            let row = row?;
            let mut values = Vec::with_capacity(columns.len());
            for (at, column) in columns.iter().enumerate() {
                let value = match row.try_get::<_, Option<Raw<'_>>>(at)? {
                    None => Some(Value::Null),
                    Some(Raw(bytes)) => values::decode(column.type_(), bytes),
                };
                values.push(value.ok_or_else(|| {
                    Error::new(ErrorKind::Other, Detail::NotANumber(column.name().to_owned()))
                })?);
            }
            found.rows.push(values);
        }
        found.count = match columns {
            [] => stream.rows_affected().unwrap_or(0),
            _ => found.rows.len() as u64,
        };
        found.columns = columns.iter().map(|column| column.name().to_owned()).collect();
        Ok(found)
    }

    async fn write(&self, statement: &Statement, params: &[Sent]) -> Result<Rows, Failure> {
        self.alone(self.fetch(statement, params)).await
    }

    /// Runs `work` in a transaction of its own. All is sent at once: if a part fails, the server leaves out the rest.
    async fn alone<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
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
            return Err(match error.is_closed() {
                true => Failure::Driver(error),
                false => Failure::Told(self.begin_error(Failure::Driver(error))),
            });
        }
        let done = done?;
        committed?;
        Ok(done)
    }

    /// A plan that other columns come out of than before is an error, which ends the transaction. Where that can be, the
    /// statement runs in a savepoint.
    async fn inside(
        &self,
        state: &State,
        prepared: &Prepared,
        params: &[Sent],
    ) -> Result<Rows, Failure> {
        let work = self.fetch(&prepared.statement, params);
        if prepared.transaction == state.transaction || prepared.statement.columns().is_empty() {
            return self.limited(work).await;
        }
        let (saved, done, released) = self
            .limited(async {
                let (save, release) = ("savepoint plan", "release savepoint plan");
                Ok(join3(self.client.batch_execute(save), work, self.client.batch_execute(release))
                    .await)
            })
            .await?;
        saved?;
        match done {
            Err(Failure::Driver(error)) if is_stale(&error) => {
                let back = "rollback to savepoint plan; release savepoint plan";
                self.limited(async {
                    self.client.batch_execute(back).await.map_err(Failure::Driver)
                })
                .await?;
                Err(Failure::Driver(error))
            }
            Err(failure) => Err(failure),
            Ok(rows) => {
                released?;
                Ok(rows)
            }
        }
    }

    /// The server has time limits of its own; this one is for a server, or a network, that is silent.
    async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.limits.statement + self.limits.patience + GRACE;
        match timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => {
                self.is_spoilt.store(true, Ordering::Release);
                self.task.abort();
                let reason = format!("no answer within {} ms", limit.as_millis());
                Err(Failure::Told(Error::new(ErrorKind::Lost, Detail::Lost(reason))))
            }
        }
    }

    fn begin_error(&self, failure: Failure) -> Error {
        match failure {
            Failure::Told(error) => error,
            Failure::Driver(error) if is_code(&error, &SqlState::LOCK_NOT_AVAILABLE) => {
                self.locked()
            }
            Failure::Driver(error) if is_code(&error, &SqlState::QUERY_CANCELED) => self.locked(),
            // A transaction in which nothing was done yet.
            Failure::Driver(error) if error.is_closed() => {
                self.lost(Detail::NotSent, ErrorKind::NotSent)
            }
            Failure::Driver(error) => describe(&error, self.limits),
        }
    }

    fn locked(&self) -> Error {
        Error::new(ErrorKind::Busy, Detail::Locked(self.limits.patience.min(self.limits.statement)))
    }

    /// The error to tell; in a transaction, what it means for that.
    fn error(&self, state: &mut State, failure: Failure, place: Place) -> Error {
        if self.is_closing.load(Ordering::Acquire) {
            return Error::closed();
        }
        let error = match failure {
            Failure::Told(error) => {
                state.is_failed |= place == Place::Inside && error.kind() != ErrorKind::Other;
                return error;
            }
            Failure::Driver(error) => error,
        };
        state.is_failed |= place == Place::Inside;
        // An administrator can stop a statement too.
        let is_over = state.began.is_some_and(|began| began.elapsed() >= self.limits.statement);
        if is_over && is_code(&error, &SqlState::QUERY_CANCELED) {
            return Error::new(ErrorKind::Timeout, Detail::TimeLimit(self.limits.statement));
        }
        if error.as_db_error().is_some() {
            let fatal =
                error.as_db_error().and_then(DbError::parsed_severity) == Some(Severity::Fatal);
            self.is_spoilt.fetch_or(fatal, Ordering::AcqRel);
            return describe(&error, self.limits);
        }
        // Whatever it is, nobody knows what the next answer would belong to.
        self.is_spoilt.store(true, Ordering::Release);
        match place {
            Place::Inside => self.lost(Detail::LostInTransaction, ErrorKind::Closed),
            Place::Read | Place::Write => self.lost(Detail::Lost, ErrorKind::Lost),
        }
    }

    fn lost(&self, detail: fn(String) -> Detail, kind: ErrorKind) -> Error {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        Error::new(kind, detail(ended.clone().unwrap_or_else(|| "it was closed".to_owned())))
    }
}

enum Failure {
    Driver(tokio_postgres::Error),
    Told(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Driver(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Told(error)
    }
}

fn encode(statement: &Statement, params: &[Value]) -> Result<Vec<Sent>, Error> {
    let types = statement.params();
    if types.len() != params.len() {
        let detail = Detail::ParamCount { placeholders: types.len(), given: params.len() };
        return Err(Error::new(ErrorKind::Params, detail));
    }
    params
        .iter()
        .zip(types)
        .enumerate()
        .map(|(at, (value, ty))| values::encode(value, ty, at + 1))
        .collect()
}

/// Before a statement runs, since what it wrote would stay.
fn check_columns(statement: &Statement) -> Result<(), Error> {
    match statement.columns().iter().find(|column| !values::is_readable(column.type_())) {
        None => Ok(()),
        Some(column) => {
            let (column, type_name) = (column.name().to_owned(), column.type_().name().to_owned());
            Err(Error::new(ErrorKind::Other, Detail::Unreadable { column, type_name }))
        }
    }
}

fn is_code(error: &tokio_postgres::Error, code: &SqlState) -> bool {
    error.code() == Some(code)
}

/// "cached plan must not change result type", or the statement is no longer there.
fn is_stale(error: &tokio_postgres::Error) -> bool {
    let routine = error.as_db_error().and_then(DbError::routine);
    (is_code(error, &SqlState::FEATURE_NOT_SUPPORTED) && routine == Some("RevalidateCachedQuery"))
        || is_code(error, &SqlState::INVALID_SQL_STATEMENT_NAME)
}

/// What libpq tries again without TLS.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        None => error.to_string().starts_with("error performing TLS handshake"),
    }
}

fn refused(error: tokio_postgres::Error) -> Refused {
    let passing = match error.code() {
        Some(code) => [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ]
        .contains(code),
        None => !error.to_string().starts_with("error performing TLS handshake"),
    };
    Refused::new(reason(&error), passing)
}

/// In the words of the server or the system, without the driver's in front.
fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(told), _) => told.message().to_owned(),
        (None, Some(source)) => source.to_string(),
        (None, None) => error.to_string(),
    }
}

fn describe(error: &tokio_postgres::Error, limits: Limits) -> Error {
    let Some(told) = error.as_db_error() else {
        return Error::new(ErrorKind::Other, Detail::Engine(reason(error)));
    };
    let code = told.code().code();
    let kind = match code {
        "23505" => ErrorKind::Constraint(Constraint::Unique),
        "23503" | "23001" => ErrorKind::Constraint(Constraint::ForeignKey),
        "23502" => ErrorKind::Constraint(Constraint::NotNull),
        "23514" => ErrorKind::Constraint(Constraint::Check),
        // An exclusion, or a trigger's `raise`.
        "P0001" => ErrorKind::Constraint(Constraint::Other),
        "40001" | "40P01" => ErrorKind::Busy,
        "55P03" => return Error::new(ErrorKind::Busy, Detail::Locked(limits.patience)),
        "42P01" => ErrorKind::NoSuchTable,
        "42P02" | "42P18" => ErrorKind::Params,
        "42501" | "0A000" => ErrorKind::Other,
        "25P02" => return Error::rolled_back(),
        "25006" => ErrorKind::ReadOnly,
        "25001" | "2D000" => ErrorKind::Refused,
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => ErrorKind::Closed,
        // A parameter that the server could not read as its type.
        "22P02" | "22007" | "22008" | "22003"
            if told.where_().is_some_and(|place| place.contains('$')) =>
        {
            ErrorKind::Params
        }
        _ if code.starts_with("23") => ErrorKind::Constraint(Constraint::Other),
        _ if code.starts_with("42") => ErrorKind::Syntax,
        _ if code.starts_with("XX") => ErrorKind::Corrupt,
        _ => ErrorKind::Other,
    };
    let position = match told.position() {
        Some(ErrorPosition::Original(position)) => Some(*position),
        _ => None,
    };
    let detail = Detail::Server {
        message: told.message().to_owned(),
        hint: told.hint().map(str::to_owned),
        position,
    };
    Error::new(kind, detail)
}
