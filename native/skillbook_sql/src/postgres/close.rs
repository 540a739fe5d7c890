//! Closing a session, also in the middle of a statement.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;

use super::session::{Session, GRACE};

impl Session {
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
}
