//! Idle connections, kept for the next call of the same account.
//!
//! An account has at most `PER_ACCOUNT` connections in use; further calls wait. Few idle ones are
//! kept, for a short time. The secret is part of an account's key, as a digest, so that a changed
//! password ends the use of older connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::Connection;
use crate::net::{Fault, Kind, Login, Result, Server};

const PER_ACCOUNT: usize = 4;
const IDLE_PER_ACCOUNT: usize = 2;
const IDLE: usize = 32;
const IDLE_FOR: Duration = Duration::from_secs(30);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    server: Server,
    username: String,
    secret: [u8; 32],
}

impl Key {
    pub(super) fn new(server: &Server, login: &Login) -> Key {
        let secret = Sha256::new_with_prefix([u8::from(login.is_token)])
            .chain_update(login.secret.as_bytes())
            .finalize()
            .into();
        Key { server: server.clone(), username: login.username.clone(), secret }
    }
}

struct Idle {
    key: Key,
    connection: Connection,
    since: Instant,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Idle>,
    in_use: HashMap<Key, Arc<Semaphore>>,
    is_watched: bool,
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// The state is changed in single steps, so it is consistent after a panic.
fn with_pool<T>(work: impl FnOnce(&mut Pool) -> T) -> T {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    work(pool.get_or_insert_with(Pool::default))
}

/// Waits until the account may have one more connection in use.
pub(super) async fn permit(key: &Key) -> Result<OwnedSemaphorePermit> {
    let semaphore = with_pool(|pool| {
        // Only accounts with calls have an entry.
        pool.in_use.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let make = || Arc::new(Semaphore::new(PER_ACCOUNT));
        pool.in_use.entry(key.clone()).or_insert_with(make).clone()
    });
    let closed = |_| Fault::new(Kind::Closed, "the connection was closed");
    semaphore.acquire_owned().await.map_err(closed)
}

pub(super) fn take(key: &Key) -> Option<Connection> {
    with_pool(|pool| {
        let place = pool.idle.iter().rposition(|idle| idle.key == *key)?;
        Some(pool.idle.remove(place).connection)
    })
}

pub(super) fn put(key: Key, connection: Connection) {
    let dropped = with_pool(|pool| {
        let mut dropped = Vec::new();
        let count = pool.idle.iter().filter(|idle| idle.key == key).count();
        // The oldest one makes room: of the account, or of all.
        let oldest = match count >= IDLE_PER_ACCOUNT {
            true => pool.idle.iter().position(|idle| idle.key == key),
            false if pool.idle.len() >= IDLE => Some(0),
            false => None,
        };
        dropped.extend(oldest.map(|place| pool.idle.remove(place)));
        pool.idle.push(Idle { key, connection, since: Instant::now() });
        if !pool.is_watched {
            pool.is_watched = true;
            tokio::spawn(watch());
        }
        dropped
    });
    drop(dropped);
}

/// Closes connections that were idle for long. One task does it, while there are any.
async fn watch() {
    loop {
        tokio::time::sleep(IDLE_FOR / 2).await;
        let (old, is_done) = with_pool(|pool| {
            let (kept, old): (Vec<_>, Vec<_>) =
                pool.idle.drain(..).partition(|idle| idle.since.elapsed() < IDLE_FOR);
            pool.idle = kept;
            pool.is_watched = !pool.idle.is_empty();
            (old, pool.idle.is_empty())
        });
        drop(old);
        if is_done {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, AsyncReadExt, DuplexStream};
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::net::{Stream, Tls};

    fn key(username: &str, secret: &str, is_token: bool) -> Key {
        let server = Server { host: "a".to_owned(), port: 1, tls: Tls::Implicit, cacertfile: None };
        let (username, secret) = (username.to_owned(), secret.to_owned());
        Key::new(&server, &Login { username, secret, is_token })
    }

    /// A connection, and the server's end of it.
    fn connection() -> (Connection, DuplexStream) {
        let (ours, theirs) = duplex(64);
        (Connection::new(Stream::new(ours, 64), true), theirs)
    }

    async fn is_open(server: &mut DuplexStream) -> bool {
        timeout(Duration::from_millis(1), server.read_u8()).await.is_err()
    }

    // One test, since all share the pool.
    #[tokio::test(start_paused = true)]
    async fn keeps_few_connections_for_a_short_time() {
        // Only the same account gets them, the last one first.
        let ann = key("ann", "x", false);
        let mut ends = Vec::new();
        for _ in 0..3 {
            let (connection, end) = connection();
            put(ann.clone(), connection);
            ends.push(end);
        }
        for other in [key("bob", "x", false), key("ann", "y", false), key("ann", "x", true)] {
            assert!(take(&other).is_none());
        }
        assert!(!is_open(&mut ends[0]).await, "the third one is too many");
        drop(take(&ann).expect("a connection"));
        assert!(!is_open(&mut ends[2]).await);
        assert!(is_open(&mut ends[1]).await);

        // The other one is closed after a while.
        advance(IDLE_FOR / 3).await;
        assert!(is_open(&mut ends[1]).await);
        for _ in 0..3 {
            advance(IDLE_FOR / 2).await;
            tokio::task::yield_now().await;
        }
        assert!(!is_open(&mut ends[1]).await);
        assert!(take(&ann).is_none());

        // All accounts together have a limit too.
        let mut ends = Vec::new();
        for number in 0..IDLE + 5 {
            let (connection, end) = connection();
            put(key(&number.to_string(), "x", false), connection);
            ends.push(end);
        }
        let mut open = 0;
        for end in &mut ends {
            open += usize::from(is_open(end).await);
        }
        assert_eq!(open, IDLE);

        // An account has so many connections in use, and a further call waits for one of them.
        let mut permits = Vec::new();
        for _ in 0..PER_ACCOUNT {
            permits.push(permit(&ann).await.expect("a permit"));
        }
        assert!(timeout(Duration::from_secs(9), permit(&ann)).await.is_err());
        assert!(timeout(Duration::from_secs(9), permit(&key("bob", "x", false))).await.is_ok());
        permits.pop();
        assert!(timeout(Duration::from_secs(9), permit(&ann)).await.is_ok());
    }
}
