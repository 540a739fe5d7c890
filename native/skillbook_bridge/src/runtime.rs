//! The tokio runtime for everything that waits for the network: PostgreSQL and HTTP.
//!
//! A call returns at once, and its result arrives as the message `{reference, reply}`. So a slow
//! server blocks neither a scheduler nor a thread. There is one runtime for all books: connections
//! wait nearly all the time.

use std::sync::OnceLock;

use rustler::env::{OwnedEnv, SavedTerm};
use rustler::{Encoder, Env, LocalPid, NifResult, Term};
use tokio::runtime::{Builder, Runtime};

/// Tasks compute little besides TLS and the encoding of replies.
const THREADS: usize = 2;

/// The maximum number of threads for host name lookups, which block.
const LOOKUPS: usize = 32;

/// Starts the runtime with the first call, so that a book without network connections has no
/// threads for them.
pub fn runtime() -> NifResult<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let make = || {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(THREADS)
            .max_blocking_threads(LOOKUPS)
            .thread_name("skillbook io")
            // Sockets and timers.
            .enable_all()
            .build()
    };
    RUNTIME
        .get_or_init(make)
        .as_ref()
        .map_err(|error| rustler::Error::Term(Box::new(error.to_string())))
}

/// The reply to a call. The caller waits without a time limit, so a reply is always sent: if this
/// is dropped, because a task panicked or was aborted, `panicked` is sent.
pub struct Reply {
    pid: LocalPid,
    /// `None` once it is sent.
    reference: Option<(OwnedEnv, SavedTerm)>,
    panicked: for<'a> fn(Env<'a>) -> Term<'a>,
}

impl Reply {
    /// A reply with this reference to the process that calls now.
    pub fn new(reference: Term, panicked: for<'a> fn(Env<'a>) -> Term<'a>) -> Reply {
        let env = OwnedEnv::new();
        let saved = env.save(reference);
        Reply { pid: reference.get_env().pid(), reference: Some((env, saved)), panicked }
    }

    /// Sends the reply to the process that called.
    pub fn send(mut self, encode: impl for<'a> FnOnce(Env<'a>) -> Term<'a>) {
        if let Some(reference) = self.reference.take() {
            send(&self.pid, reference, encode);
        }
    }
}

impl Drop for Reply {
    /// Sends in a task, since a thread of the virtual machine may drop this and not send.
    fn drop(&mut self) {
        if let (Some(reference), Ok(runtime)) = (self.reference.take(), runtime()) {
            let (pid, panicked) = (self.pid, self.panicked);
            runtime.spawn(async move { send(&pid, reference, panicked) });
        }
    }
}

fn send(
    pid: &LocalPid,
    (mut env, reference): (OwnedEnv, SavedTerm),
    encode: impl for<'a> FnOnce(Env<'a>) -> Term<'a>,
) {
    // If the process has ended, nobody waits.
    let _ = env.send_and_clear(pid, |env| (reference.load(env), encode(env)).encode(env));
}
