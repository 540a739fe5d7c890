//! PostgreSQL, over the network and asynchronously: everything here that waits is a future for a runtime of tokio.
//!
//! A [`Server`] opens [`Session`]s, each used by one caller at a time. Outside of transactions a session only reads
//! (`default_transaction_read_only`), so that the server itself finds the statements that write. Those, and
//! transactions, first take a lock that there is once a database: so one writes at a time, on however many nodes, and
//! nothing changes between what a transaction reads and what it writes.

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
pub use tls::authorities;
pub use transaction::WRITERS;
