//! Sessions with IMAP servers. Each is a task that answers by messages, and ends with the process
//! that opened it.

use std::sync::atomic::{AtomicBool, Ordering};

use rustler::{
    Atom, Binary, Decoder, Encoder, Env, NifMap, NifResult, Resource, ResourceArc, Term,
};
use skillbook_bridge::encode::binary;
use skillbook_bridge::runtime::{runtime, Reply};
use skillbook_bridge::time::limit;
use tokio::task::AbortHandle;

use super::net::{atoms, encode_fault, encode_lost, Account};
use crate::imap::session::{self, session, Message, Sender};
use crate::imap::{Answer, Bytes, Call};
use crate::net::Result;

pub struct SessionResource {
    calls: Sender<Answering>,
    task: AbortHandle,
    is_left: AtomicBool,
}

#[rustler::resource_impl]
impl Resource for SessionResource {}

impl Drop for SessionResource {
    /// Runs when the process has died: the connection is closed.
    fn drop(&mut self) {
        if !self.is_left.load(Ordering::Acquire) {
            self.task.abort();
        }
    }
}

pub struct Answering(Reply);

impl session::Reply for Answering {
    fn opened(self, result: Result<()>) {
        self.0.send(|env| match &result {
            Ok(()) => atoms::ok().encode(env),
            Err(fault) => encode_fault(env, fault),
        });
    }

    fn answered(self, result: Result<Answer>) {
        self.0.send(|env| match result {
            Ok(answer) => (atoms::ok(), encode(env, answer)).encode(env),
            Err(fault) => encode_fault(env, &fault),
        });
    }
}

impl<'a> Decoder<'a> for Bytes {
    fn decode(term: Term<'a>) -> NifResult<Bytes> {
        Ok(Bytes(term.decode::<Binary>()?.as_slice().to_vec()))
    }
}

/// Opens a session. The message is `{reference, :ok}` or an error.
#[rustler::nif]
fn imap_open(
    reference: Term,
    account: Account,
    milliseconds: u64,
) -> NifResult<ResourceArc<SessionResource>> {
    let reply = Answering(Reply::new(reference, encode_lost));
    let (server, login) = account.into_parts();
    let (calls, work) = session(server, login, limit(milliseconds), reply);
    let task = runtime()?.spawn(work).abort_handle();
    Ok(ResourceArc::new(SessionResource { calls, task, is_left: AtomicBool::new(false) }))
}

/// Runs a command. The message is `{reference, {:ok, answer}}` or an error. A mail is copied here.
#[rustler::nif(schedule = "DirtyCpu")]
fn imap_call(
    session: ResourceArc<SessionResource>,
    reference: Term,
    call: Call,
    milliseconds: u64,
) -> Atom {
    let reply = Answering(Reply::new(reference, encode_lost));
    // If the task has ended, the message is dropped, and dropping its reply answers the call.
    let _ = session.calls.send(Message::Call(call, limit(milliseconds), reply));
    atoms::ok()
}

/// Ends a session and keeps its connection for the next one.
#[rustler::nif]
fn imap_leave(session: ResourceArc<SessionResource>) -> Atom {
    session.is_left.store(true, Ordering::Release);
    let _ = session.calls.send(Message::Leave);
    atoms::ok()
}

#[derive(NifMap)]
struct SelectedTerm {
    messages: u32,
    keywords: Vec<String>,
    any_keyword: bool,
}

#[derive(NifMap)]
struct MessageTerm<'a> {
    uid: u32,
    flags: Vec<String>,
    date: i64,
    size: u32,
    headers: Term<'a>,
    piece: Term<'a>,
}

fn encode(env: Env<'_>, answer: Answer) -> Term<'_> {
    match answer {
        Answer::Done => atoms::ok().encode(env),
        Answer::Uids(uids) => uids.encode(env),
        Answer::Folders(folders) => folders
            .iter()
            .map(|folder| (binary(env, &folder.name), &folder.attributes))
            .collect::<Vec<_>>()
            .encode(env),
        Answer::Selected(selected) => SelectedTerm {
            messages: selected.messages,
            keywords: selected.keywords,
            any_keyword: selected.any_keyword,
        }
        .encode(env),
        Answer::Messages(messages) => messages
            .into_iter()
            .map(|message| MessageTerm {
                uid: message.uid,
                flags: message.flags,
                date: message.date,
                size: message.size,
                headers: binary(env, &message.headers),
                piece: binary(env, &message.piece),
            })
            .collect::<Vec<_>>()
            .encode(env),
    }
}
