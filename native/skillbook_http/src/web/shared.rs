//! The state that the connections of a server share: its limits, counts and phase.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use rustler::env::OwnedEnv;
use rustler::{Encoder, Env, LocalPid, Term};
use tokio::runtime::Handle;
use tokio::sync::{watch, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{timeout, Instant};

use super::rules::Rules;
use super::tls::Files;
use super::{atoms, ms, Limits};

#[derive(Clone, Copy)]
pub(super) enum Peer {
    Ip(IpAddr),
    Unix,
}

impl Encoder for Peer {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        match self {
            Peer::Unix => atoms::unix().encode(env),
            Peer::Ip(ip) => match ip.to_canonical() {
                IpAddr::V4(ip) => {
                    let [a, b, c, d] = ip.octets();
                    (a, b, c, d).encode(env)
                }
                IpAddr::V6(ip) => {
                    let parts: Vec<Term> =
                        ip.segments().iter().map(|part| part.encode(env)).collect();
                    rustler::types::tuple::make_tuple(env, &parts)
                }
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Phase {
    Running,
    Draining,
    Ended,
}

/// The state that all connections of a server share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) owner: LocalPid,
    pub(super) rules: Rules,
    pub(super) tls: Option<Files>,
    pub(super) http2: bool,
    pub(super) began: Instant,
    pub(super) runtime: Handle,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) places: Arc<Semaphore>,
    pub(super) queued: AtomicUsize,
    pub(super) streams: Arc<Semaphore>,
    pub(super) held: AtomicUsize,
    pub(super) open: AtomicUsize,
    /// Told when no connection is open.
    pub(super) empty: Notify,
    pub(super) addresses: Mutex<FxHashMap<IpAddr, usize>>,
}

impl Shared {
    /// Milliseconds since the start of the server; zero is none.
    pub(super) fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    pub(super) async fn reaches(&self, phase: Phase) {
        // The sender is in `self`.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    pub(super) async fn has_reached(self: Arc<Shared>, phase: Phase) {
        self.reaches(phase).await;
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let is_later = phase > *now;
            if is_later {
                *now = phase;
            }
            is_later
        });
    }

    /// A place for a request, after a while in the queue; `None` if that is full or too slow.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let _queued = Queued::enter(&self.queued, self.limits.queue)?;
        let place = Arc::clone(&self.places).acquire_owned();
        timeout(ms(self.limits.queue_time), place).await.ok()?.ok()
    }

    pub(super) fn stream_place(&self) -> Option<OwnedSemaphorePermit> {
        let is_running = *self.phase.borrow() == Phase::Running;
        is_running.then(|| Arc::clone(&self.streams).try_acquire_owned().ok()).flatten()
    }

    /// Sends a message to the server's process. In a task, since a thread of the virtual machine
    /// may not send in this way.
    pub(super) fn tell(&self, message: impl for<'a> FnOnce(Env<'a>) -> Term<'a>) {
        let mut env = OwnedEnv::new();
        let saved = env.run(message);
        let saved = env.save(saved);
        let owner = self.owner;
        self.runtime.spawn(async move {
            // If the process has ended, nobody waits.
            let _ = env.send_and_clear(&owner, |env| saved.load(env));
        });
    }

    pub(super) fn seat(self: &Arc<Shared>, peer: Peer) -> Option<Seat> {
        let limits = &self.limits;
        let before = self.open.fetch_add(1, Ordering::AcqRel);
        let mut seat = Seat { shared: Arc::clone(self), address: None };
        if before >= limits.connections {
            return None;
        }
        let counted = match peer {
            Peer::Ip(ip) if !self.rules.is_proxy(ip) => Some(ip),
            _ => None,
        };
        if let Some(ip) = counted {
            let address = network(ip);
            let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let count = addresses.entry(address).or_insert(0);
            *count += 1;
            seat.address = Some(address);
            if *count > limits.connections_per_address {
                // Dropping the seat takes the lock.
                drop(addresses);
                return None;
            }
        }
        Some(seat)
    }
}

/// A client in IPv6 has a whole network of addresses.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        ip => ip,
    }
}

struct Queued<'a>(&'a AtomicUsize);

impl Queued<'_> {
    fn enter(count: &AtomicUsize, most: usize) -> Option<Queued<'_>> {
        let before = count.fetch_add(1, Ordering::AcqRel);
        let queued = Queued(count);
        (before < most).then_some(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The place of a connection.
pub(super) struct Seat {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            // A count is changed in one step, so a poisoned map is consistent.
            let mut addresses =
                self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = addresses.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    addresses.remove(&address);
                }
            }
        }
        if self.shared.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.empty.notify_waiters();
        }
    }
}

/// Bytes of a body, counted.
pub(super) struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Held {
    pub(super) fn new(shared: Arc<Shared>) -> Held {
        Held { shared, bytes: 0 }
    }

    /// False if all bodies together are too large.
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        let before = self.shared.held.fetch_add(bytes, Ordering::AcqRel);
        before + bytes <= self.shared.limits.bodies_bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
