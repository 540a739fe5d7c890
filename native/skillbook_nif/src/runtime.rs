//! The runtime for everything that waits for the network: PostgreSQL and HTTP.
//!
//! A call returns at once; `{reference, reply}` follows as a message to the calling process.

use std::sync::OnceLock;

use rustler::env::{OwnedEnv, SavedTerm};
use rustler::{Encoder, Env, LocalPid, NifResult, Term};
use tokio::runtime::{Builder, Runtime};

/// They wait nearly all the time, and compute little beside TLS and the encoding of replies.
const THREADS: usize = 2;

/// Threads for looking up host names, which blocks.
const LOOKUPS: usize = 32;

pub(crate) fn runtime() -> NifResult<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let make = || {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(THREADS)
            .max_blocking_threads(LOOKUPS)
            .thread_name("skillbook io")
            .enable_all()
            .build()
    };
    RUNTIME
        .get_or_init(make)
        .as_ref()
        .map_err(|error| rustler::Error::Term(Box::new(error.to_string())))
}

/// The reply to one call. The caller waits without a time limit, so one is always sent: `panicked` if this is dropped.
pub(crate) struct Reply {
    pid: LocalPid,
    env: OwnedEnv,
    reference: SavedTerm,
    panicked: for<'a> fn(Env<'a>) -> Term<'a>,
    is_sent: bool,
}

impl Reply {
    pub(crate) fn new(reference: Term, panicked: for<'a> fn(Env<'a>) -> Term<'a>) -> Reply {
        let env = OwnedEnv::new();
        let saved = env.save(reference);
        Reply { pid: reference.get_env().pid(), env, reference: saved, panicked, is_sent: false }
    }

    pub(crate) fn send(mut self, encode: impl for<'a> FnOnce(Env<'a>) -> Term<'a>) {
        self.send_now(encode);
    }

    fn send_now(&mut self, encode: impl for<'a> FnOnce(Env<'a>) -> Term<'a>) {
        self.is_sent = true;
        let reference = &self.reference;
        // If the process is gone, nobody waits.
        let _ = self
            .env
            .send_and_clear(&self.pid, |env| (reference.load(env), encode(env)).encode(env));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_sent {
            self.send_now(self.panicked);
        }
    }
}
