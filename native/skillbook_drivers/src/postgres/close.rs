//! Closing a session, also while a statement runs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;

use super::session::{Session, GRACE};

impl Session {
    /// Refuses all further calls.
    pub fn refuse(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Cancels the running statement, rolls back, and ends the connection.
    pub async fn close(&self) {
        self.refuse();
        let mut pause = Duration::from_millis(20);
        // A cancel request travels on a connection of its own and may overtake the statement that
        // it is meant for, so it is repeated.
        for _ in 0..8 {
            // Free means that no statement runs any more.
            if self.state.try_lock().is_ok() {
                break;
            }
            let cancelled = timeout(GRACE, async {
                match self.with_tls {
                    true => self.cancel.cancel_query(self.tls.clone()).await,
                    false => self.cancel.cancel_query(NoTls).await,
                }
            });
            // If the request fails, ending the connection and the server's time limit stop the
            // statement.
            let _ = cancelled.await;
            sleep(pause).await;
            pause *= 2;
        }
        self.task.abort();
    }
}
