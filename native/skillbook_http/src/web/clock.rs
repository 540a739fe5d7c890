//! The times of a connection, and the moment when it is to be closed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::ms;
use super::shared::Shared;
use super::stream::Stream;

/// After this time without a request, hyper's buffers of a connection are freed (19 KB).
const PARK: u64 = 500;

/// The state of a connection. Times are milliseconds since the start of the server; zero is none.
pub(super) struct Clock {
    began: Instant,
    pub(super) is_http2: AtomicBool,
    pub(super) requests: AtomicU32,
    pub(super) idle_since: AtomicU64,
    pub(super) head_since: AtomicU64,
    pub(super) stuck_since: AtomicU64,
    pub(super) has_ended: AtomicBool,
    pub(super) lingers: AtomicBool,
    sending: Mutex<Vec<Sending>>,
    next: AtomicU64,
}

/// A response that is being sent.
struct Sending {
    id: u64,
    since: u64,
    stream: Option<Arc<Stream>>,
}

impl Clock {
    pub(super) fn new(began: Instant) -> Clock {
        let clock = Clock {
            began,
            is_http2: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            stuck_since: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            sending: Mutex::new(Vec::new()),
            next: AtomicU64::new(0),
        };
        clock.idle_since.store(clock.now(), Ordering::Relaxed);
        clock
    }

    pub(super) fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    pub(super) fn at(&self, time: u64) -> Instant {
        self.began + ms(time)
    }

    pub(super) fn has_read(&self) {
        let is_idle = self.requests.load(Ordering::Acquire) == 0;
        if is_idle && !self.is_http2.load(Ordering::Relaxed) {
            let _ = self.head_since.compare_exchange(
                0,
                self.now(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    pub(super) fn has_ended(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_written(&self, is_written: bool) {
        if is_written {
            self.stuck_since.store(0, Ordering::Relaxed);
        } else {
            let _ = self.stuck_since.compare_exchange(
                0,
                self.now(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// A push or a removal is complete or has not happened, so a poisoned list is consistent.
    fn sending(&self) -> MutexGuard<'_, Vec<Sending>> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop_streams(&self) {
        let streams: Vec<_> =
            self.sending().iter().filter_map(|sending| sending.stream.clone()).collect();
        for stream in streams.iter().filter(|stream| stream.is_endless) {
            stream.stop();
        }
    }

    /// When the connection is to be closed, or looked at again.
    pub(super) fn due(&self, shared: &Shared) -> Due {
        let limits = &shared.limits;
        let read = |time: &AtomicU64| Some(time.load(Ordering::Relaxed)).filter(|time| *time > 0);
        let mut first = Due { at: u64::MAX, end: None };
        let mut add = |since: Option<u64>, time: u64, end: Option<End>| {
            let at = since.map_or(u64::MAX, |since| since.saturating_add(time));
            if at < first.at {
                first = Due { at, end };
            }
        };
        add(read(&self.stuck_since), limits.write_time, Some(End::Cut));
        if self.requests.load(Ordering::Acquire) == 0 {
            match read(&self.head_since) {
                Some(since) => add(Some(since), limits.head_time, Some(End::Head)),
                None => {
                    let since = read(&self.idle_since);
                    add(since, limits.idle_time, Some(End::Idle));
                    if !self.is_http2.load(Ordering::Relaxed) {
                        add(since, PARK, Some(End::Park));
                    }
                }
            }
        } else {
            for sending in self.sending().iter() {
                let since = match &sending.stream {
                    Some(stream) => stream.waiting_since(),
                    None => Some(sending.since),
                };
                add(since, limits.write_time, Some(End::Cut));
            }
            // Streams begin to wait without the connection's task.
            add(Some(self.now()), (limits.write_time / 4).clamp(10, 5_000), None);
        }
        first
    }
}

pub(super) struct Due {
    pub(super) at: u64,
    pub(super) end: Option<End>,
}

#[derive(Clone, Copy)]
pub(super) enum End {
    /// The peer or the protocol has ended it.
    Done,
    Failed,
    /// A head did not come in time.
    Head,
    Idle,
    /// It goes on with the next byte.
    Park,
    /// Without any further word.
    Cut,
}

/// A request in progress, up to the last byte of its response.
pub(super) struct Busy {
    clock: Arc<Clock>,
    id: u64,
}

impl Busy {
    pub(super) fn new(clock: &Arc<Clock>) -> Busy {
        clock.requests.fetch_add(1, Ordering::AcqRel);
        clock.head_since.store(0, Ordering::Relaxed);
        let id = clock.next.fetch_add(1, Ordering::Relaxed);
        Busy { clock: Arc::clone(clock), id }
    }

    /// The connection reads on for a while before it is closed, so that its client gets the answer.
    pub(super) fn lingers(&self) {
        self.clock.lingers.store(true, Ordering::Relaxed);
    }

    pub(super) fn sends(&self, stream: Option<Arc<Stream>>) {
        let since = self.clock.now();
        self.clock.sending().push(Sending { id: self.id, since, stream });
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.clock.sending().retain(|sending| sending.id != self.id);
        self.clock.idle_since.store(self.clock.now(), Ordering::Relaxed);
        self.clock.requests.fetch_sub(1, Ordering::AcqRel);
    }
}
