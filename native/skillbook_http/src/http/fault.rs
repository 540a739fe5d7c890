//! Errors of a request, as a kind and a text.
//!
//! reqwest's own error texts contain the URL, which may hold a password. So errors get other texts:
//! from the operating system, from rustls, or from here.

use std::error::Error;
use std::io;

use rustler::{Atom, Encoder, Env, Term};
use skillbook_net::{certificate, plain};

use super::atoms;

/// A kind and a text. The text contains nothing of the request, because URLs and headers may hold
/// secrets.
pub(super) struct Fault(pub(super) Atom, String);

impl Fault {
    pub(super) fn new(kind: Atom, text: impl Into<String>) -> Fault {
        Fault(kind, text.into())
    }

    pub(super) fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        (atoms::error(), self.0, &self.1).encode(env)
    }
}

pub(super) fn fault(error: &reqwest::Error) -> Fault {
    let causes = causes(error);
    if let Some(tls) = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return tls_fault(tls);
    }
    // reqwest counts everything before the request as connecting: DNS, TCP, proxy.
    if error.is_connect() {
        return match error.is_timeout() {
            true => Fault::new(atoms::connect_timeout(), ""),
            false => Fault::new(atoms::connect(), connect_text(&causes)),
        };
    }
    match causes.iter().find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
        // hyper has no predicate for this error.
        Some(error) if error.to_string() == "message head is too large" => {
            Fault::new(atoms::malformed(), "its header is too long")
        }
        Some(error) if error.is_parse() => {
            Fault::new(atoms::malformed(), format!("invalid HTTP/1.1: {error}"))
        }
        _ => broken(&causes),
    }
}

/// An error while reading the body: invalid HTTP, or a broken connection.
fn broken(causes: &[&(dyn Error + 'static)]) -> Fault {
    let io = causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>());
    match io {
        Some(error)
            if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
        {
            Fault::new(atoms::malformed(), format!("invalid HTTP/1.1: {}", plain(error)))
        }
        _ => Fault::new(atoms::closed(), "the connection broke"),
    }
}

fn connect_text(causes: &[&(dyn Error + 'static)]) -> String {
    let texts: Vec<String> = causes.iter().map(|cause| cause.to_string()).collect();
    let has = |beginning: &str| texts.iter().any(|text| text.starts_with(beginning));
    // hyper-util marks the stage only in its text.
    if has("dns error") {
        return "no address was found for this host".to_owned();
    }
    let reason = match causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(error) => plain(error),
        None => texts.last().cloned().unwrap_or_default(),
    };
    if has("tunnel error") {
        return format!(
            "the proxy refused the connection: {}",
            reason.trim_start_matches("tunnel error: ")
        );
    }
    reason
}

/// The error and its causes, outermost first. `io::Error::source` skips the error that it wraps, so
/// that one is added here.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut causes = vec![error];
    let mut last: &'a (dyn Error + 'static) = error;
    loop {
        let inner = last.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        match inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| last.source()) {
            Some(next) => last = next,
            None => return causes,
        }
        causes.push(last);
    }
}

fn tls_fault(error: &rustls::Error) -> Fault {
    match certificate::describe(error) {
        (text, true) => Fault::new(atoms::certificate(), text),
        (text, false) => Fault::new(atoms::connect(), text),
    }
}
