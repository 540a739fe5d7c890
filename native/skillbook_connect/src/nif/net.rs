//! Accounts and errors of mail servers, for both protocols.

use rustler::{Encoder, Env, NifMap, NifUnitEnum, Term};

use crate::net::{Fault, Kind, Login, Server, Tls};

pub(super) mod atoms {
    rustler::atoms! {
        ok, error,
        connect, certificate, starttls, login, refused, later, closed, malformed, too_large,
        timeout, unclear, request,
    }
}

#[derive(NifUnitEnum)]
enum TlsTerm {
    Implicit,
    Starttls,
}

/// `token` is whether the secret is an access token.
#[derive(NifMap)]
pub(super) struct Account {
    host: String,
    port: u16,
    tls: TlsTerm,
    cacertfile: Option<String>,
    username: String,
    secret: String,
    token: bool,
}

impl Account {
    pub(super) fn into_parts(self) -> (Server, Login) {
        let tls = match self.tls {
            TlsTerm::Implicit => Tls::Implicit,
            TlsTerm::Starttls => Tls::StartTls,
        };
        let Account { host, port, cacertfile, username, secret, token, .. } = self;
        (Server { host, port, tls, cacertfile }, Login { username, secret, is_token: token })
    }
}

pub(super) fn encode_fault<'a>(env: Env<'a>, fault: &Fault) -> Term<'a> {
    let kind = match fault.kind {
        Kind::Connect => atoms::connect(),
        Kind::Certificate => atoms::certificate(),
        Kind::StartTls => atoms::starttls(),
        Kind::Login => atoms::login(),
        Kind::Refused => atoms::refused(),
        Kind::Later => atoms::later(),
        Kind::Closed => atoms::closed(),
        Kind::Malformed => atoms::malformed(),
        Kind::TooLarge => atoms::too_large(),
        Kind::Timeout => atoms::timeout(),
        Kind::Unclear => atoms::unclear(),
        Kind::Request => atoms::request(),
    };
    (atoms::error(), kind, &fault.text, &fault.said).encode(env)
}

/// The answer of a task that ended without one.
pub(super) fn encode_lost(env: Env<'_>) -> Term<'_> {
    encode_fault(env, &Fault::new(Kind::Closed, "the connection was closed"))
}
