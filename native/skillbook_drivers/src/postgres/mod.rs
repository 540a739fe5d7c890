//! PostgreSQL over the network. Every call that waits is a future for a tokio runtime.
//!
//! A [`Server`] opens [`Session`]s, each used by one caller at a time. [`Session`] has one file per
//! task: `query` runs statements, `transaction` begins and ends transactions, `close` cancels and
//! disconnects.
//!
//! # Reads and writes
//!
//! A session is read-only outside of transactions (`default_transaction_read_only`), so the server
//! itself detects statements that write, also those that write inside a function. The caller then
//! sends them again with [`Mode::Write`].
//!
//! Every transaction, and every single write, first takes an advisory lock of which there is one
//! per database ([`WRITERS`](crate::WRITERS)), or shares it and takes one for each of its
//! [`Parts`]. So there is one writer of a part at a time, on however many nodes, and nothing
//! changes between the reads and the writes of a transaction. The alternative, serializable
//! isolation, would make callers repeat transactions that fail.
//!
//! # Locks and cancellation
//!
//! The caller guarantees that a session has one borrower. A session still has a lock of its own,
//! because a call goes on after its caller has died: the future runs on the runtime's threads, not
//! in the caller's process. [`Session::close`] does not wait for that lock. It asks the server to
//! cancel the statement, and then ends the connection.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//! use skillbook_drivers::postgres::{Address, Mode, Server, SslMode, Timeouts};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let address = Address {
//!     host: "localhost".into(),
//!     port: 5432,
//!     user: "app".into(),
//!     password: None,
//!     database: "app".into(),
//!     application_name: "skillbook".into(),
//!     ssl_mode: SslMode::Prefer,
//!     authorities: None,
//! };
//! let second = Duration::from_secs(1);
//! let timeouts = Timeouts { statement: 15 * second, lock: 5 * second, connect: 5 * second };
//! let session = Server::new(&address, timeouts)?.connect(|_event| ()).await.map_err(|e| e.error)?;
//! let rows = session.query("select 1 as one", &[], Mode::Read).await?;
//! assert_eq!(rows.unwrap().columns, ["one"]);
//! # Ok(())
//! # }
//! ```

mod close;
mod connect;
mod failure;
mod prepared;
mod query;
mod session;
mod settings;
mod tls;
mod transaction;
mod values;

pub use connect::{ConnectError, Event, Server};
pub use session::{Mode, Session};
pub use settings::{Address, SslMode, Timeouts};
pub use transaction::Parts;
