//! Mail submission. Each mail is a task that answers by a message.

use rustler::{Atom, Binary, Encoder, Env, NifResult, Term};
use skillbook_bridge::runtime::{runtime, Reply};
use skillbook_bridge::time::limit;

use super::net::{atoms, encode_fault, encode_lost, Account};
use crate::net::{Fault, Kind};
use crate::smtp::{send, takes_utf8, Letter};

/// Sends a mail, which is copied here. The message is `{reference, :ok}` or an error.
#[rustler::nif(schedule = "DirtyCpu")]
fn smtp_send(
    reference: Term,
    account: Account,
    from: String,
    recipients: Vec<String>,
    bytes: Binary,
    milliseconds: u64,
) -> NifResult<Atom> {
    let reply = Reply::new(reference, encode_unclear);
    let (server, login) = account.into_parts();
    let letter = Letter { from, recipients, bytes: bytes.as_slice().to_vec() };
    let limit = limit(milliseconds);
    runtime()?.spawn(async move {
        let result = send(&server, &login, &letter, limit).await;
        reply.send(|env| match &result {
            Ok(()) => atoms::ok().encode(env),
            Err(fault) => encode_fault(env, fault),
        });
    });
    Ok(atoms::ok())
}

/// Asks whether the server takes addresses with letters outside ASCII. The message is
/// `{reference, {:ok, boolean}}` or an error.
#[rustler::nif]
fn smtp_utf8(reference: Term, account: Account, milliseconds: u64) -> NifResult<Atom> {
    let reply = Reply::new(reference, encode_lost);
    let (server, login) = account.into_parts();
    let limit = limit(milliseconds);
    runtime()?.spawn(async move {
        let result = takes_utf8(&server, &login, limit).await;
        reply.send(|env| match &result {
            Ok(takes) => (atoms::ok(), takes).encode(env),
            Err(fault) => encode_fault(env, fault),
        });
    });
    Ok(atoms::ok())
}

fn encode_unclear(env: Env<'_>) -> Term<'_> {
    encode_fault(env, &Fault::new(Kind::Unclear, "sending ended without an answer"))
}
