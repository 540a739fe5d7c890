//! Opening sessions: address, TLS fallback, session settings, and the task that reads from the
//! socket.

use std::future::poll_fn;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::reason;
use super::session::Session;
use super::settings::{Address, SslMode, Timeouts};
use super::tls;
use crate::error::Detail;
use crate::{Error, ErrorKind};

/// An event that a session reports without a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A notification.
    Notification {
        /// Its channel.
        channel: String,
        /// Its text.
        payload: String,
    },
    /// The connection is lost. No event follows.
    End,
}

/// A connection could not be opened.
#[derive(Debug)]
pub struct ConnectError {
    /// The reason.
    pub error: Box<Error>,
    /// Whether a later attempt may succeed.
    pub is_transient: bool,
}

impl ConnectError {
    fn new(reason: String, is_transient: bool) -> ConnectError {
        ConnectError {
            error: Box::new(Error::new(ErrorKind::CannotOpen, Detail::Engine(reason))),
            is_transient,
        }
    }
}

/// A database on a server.
pub struct Server {
    config: Config,
    mode: SslMode,
    tls: MakeRustlsConnect,
    timeouts: Timeouts,
    /// The name in errors: `host:port/database`.
    label: String,
}

impl Server {
    /// Checks the settings and reads the file of certificate authorities. Does not connect.
    pub fn new(address: &Address, timeouts: Timeouts) -> Result<Server, Error> {
        let label = format!("{}:{}/{}", address.host, address.port, address.database);
        // As in libpq: a Unix socket never leaves the machine, so it needs no TLS.
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
            // This limit is per address; `connect` below limits the whole.
            .connect_timeout(timeouts.connect)
            // Keepalives detect a lost network within a minute, also while the connection is idle.
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
        Ok(Server { config, mode, tls, timeouts, label })
    }

    /// Opens a session. Its events go to `on_event`, which runs in a task of its own and must not
    /// block.
    pub async fn connect(
        &self,
        on_event: impl Fn(Event) + Send + Clone + 'static,
    ) -> Result<Session, ConnectError> {
        let opened = timeout(self.timeouts.connect, self.open(on_event)).await;
        opened
            .unwrap_or_else(|_| {
                let reason = format!("no answer within {} ms", self.timeouts.connect.as_millis());
                Err(ConnectError::new(reason, true))
            })
            .map_err(|refused| ConnectError {
                error: Box::new(refused.error.opening(&self.label)),
                ..refused
            })
    }

    async fn open(
        &self,
        on_event: impl Fn(Event) + Send + Clone + 'static,
    ) -> Result<Session, ConnectError> {
        let session = match self.open_with(&self.config, on_event.clone()).await {
            Err(error) if self.mode == SslMode::Prefer && is_about_tls(&error) => {
                let mut plain = self.config.clone();
                plain.ssl_mode(tokio_postgres::config::SslMode::Disable);
                self.open_with(&plain, on_event).await
            }
            // Errors about anything but TLS are final.
            opened => opened,
        }
        .map_err(refused)?;
        // Once per connection; all later statements rely on these. A transaction holds the lock of
        // all writers, so the server ends one whose client has gone silent.
        let settings = format!(
            "set default_transaction_read_only = on; set standard_conforming_strings = on; \
             set timezone = 'UTC'; \
             set statement_timeout = {statement}; set lock_timeout = {lock}; \
             set idle_in_transaction_session_timeout = {statement}",
            statement = self.timeouts.statement.as_millis(),
            lock = self.timeouts.lock.as_millis().max(1),
        );
        session.client.batch_execute(&settings).await.map_err(refused)?;
        Ok(session)
    }

    async fn open_with(
        &self,
        config: &Config,
        on_event: impl Fn(Event) + Send + 'static,
    ) -> Result<Session, tokio_postgres::Error> {
        let (client, mut connection) = config.connect(self.tls.clone()).await?;
        let ended = Arc::new(StdMutex::new(None));
        let end = Arc::clone(&ended);
        // tokio-postgres splits a connection: the client sends, and this task reads from the socket
        // until it ends.
        let task = tokio::spawn(async move {
            let reason = loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(heard))) => on_event(Event::Notification {
                        channel: heard.channel().to_owned(),
                        payload: heard.payload().to_owned(),
                    }),
                    // Notices are of no interest.
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break reason(&error),
                    None => break "it was closed".to_owned(),
                }
            };
            *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            // The reason is stored before the connection is dropped: callers wake up when their
            // channels close, and read it then.
            drop(connection);
            on_event(Event::End);
        });
        let cancel = client.cancel_token();
        Ok(Session {
            client,
            cancel,
            with_tls: self.mode != SslMode::Disable,
            tls: self.tls.clone(),
            timeouts: self.timeouts,
            task,
            ended,
            state: Mutex::default(),
            is_open: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        })
    }
}

/// The errors for which libpq tries again without TLS.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        None => error.to_string().starts_with("error performing TLS handshake"),
    }
}

fn refused(error: tokio_postgres::Error) -> ConnectError {
    let is_transient = match error.code() {
        Some(code) => [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ]
        .contains(code),
        None => !error.to_string().starts_with("error performing TLS handshake"),
    };
    ConnectError::new(reason(&error), is_transient)
}
