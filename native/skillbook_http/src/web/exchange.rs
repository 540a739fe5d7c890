//! A request with its answer, shared by a connection and the process that answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue, CONTENT_LENGTH};
use hyper::{Method, StatusCode};
use rustler::{Encoder, Env, LocalPid, Monitor, Resource};
use skillbook_bridge::runtime::Reply;
use tokio::sync::{oneshot, OwnedSemaphorePermit};

use super::atoms;
use super::outgoing::Kind;
use super::request::{Head, ReadBody};
use super::shared::{Held, Shared};
use super::stream::Stream;

/// The handle of the process. Its death without an answer is one, with the status 500.
pub struct ExchangeResource(pub(super) Arc<Exchange>);

#[rustler::resource_impl]
impl Resource for ExchangeResource {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: LocalPid, _monitor: Monitor) {
        self.0.has_died();
    }
}

impl Drop for ExchangeResource {
    fn drop(&mut self) {
        self.0.has_died();
    }
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Kind,
}

pub(super) struct Exchange {
    shared: Arc<Shared>,
    method: Method,
    state: Mutex<State>,
}

struct State {
    /// Until the process takes it: nothing of a request is in the memory of the server's process.
    request: Option<(Head, Vec<u8>)>,
    /// The count of the body, until the process ends. Parts of the binary may live longer, in a
    /// store of the application.
    held: Option<Held>,
    answer: Option<oneshot::Sender<Answer>>,
    stream: Option<Arc<Stream>>,
    process: Option<LocalPid>,
    is_gone: bool,
    /// Held until the answer is given or the process has died, so that requests whose clients have
    /// gone count as well.
    place: Option<OwnedSemaphorePermit>,
}

pub(super) enum Streamed {
    Open,
    Closed,
    Busy,
}

impl Exchange {
    pub(super) fn new(
        shared: Arc<Shared>,
        head: Head,
        (body, held): ReadBody,
        place: OwnedSemaphorePermit,
    ) -> (Arc<Exchange>, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let method = head.method().clone();
        let state = State {
            request: Some((head, body)),
            held: Some(held),
            answer: Some(sender),
            stream: None,
            process: None,
            is_gone: false,
            place: Some(place),
        };
        let exchange = Exchange { shared, method, state: Mutex::new(state) };
        (Arc::new(exchange), receiver)
    }

    /// Changes are single assignments, so a poisoned state is consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request for the process that answers it. `None` if the client has gone.
    pub(super) fn take(&self, process: LocalPid) -> Option<(Head, Vec<u8>)> {
        let mut state = self.state();
        if state.is_gone {
            // Nothing monitors the process.
            state.place = None;
            return None;
        }
        state.process = Some(process);
        state.request.take()
    }

    pub(super) fn respond(&self, status: StatusCode, headers: HeaderMap, body: Bytes) -> bool {
        let length = body.len() as u64;
        let mut state = self.state();
        state.place = None;
        let Some(sender) = state.answer.take() else { return false };
        drop(state);
        let answer = self.answer(status, headers, Some(length), Kind::Whole(Some(body)));
        sender.send(answer).is_ok()
    }

    pub(super) fn stream(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        length: Option<u64>,
        is_endless: bool,
    ) -> Streamed {
        let mut state = self.state();
        let (Some(process), true) = (state.process, state.answer.is_some()) else {
            return Streamed::Closed;
        };
        // A long body is a request still; a stream without an end gives its place back.
        let place = match length {
            Some(_) => state.place.take(),
            None => match self.shared.stream_place() {
                Some(place) => Some(place),
                None => return Streamed::Busy,
            },
        };
        state.place = None;
        let shared = Arc::clone(&self.shared);
        let stream = Arc::new(Stream::new(shared, process, length, is_endless, place));
        let Some(sender) = state.answer.take() else { return Streamed::Closed };
        state.stream = Some(Arc::clone(&stream));
        drop(state);
        let answer = self.answer(status, headers, length, Kind::Stream(stream));
        match sender.send(answer) {
            Ok(()) => Streamed::Open,
            Err(_) => Streamed::Closed,
        }
    }

    /// `HEAD` and the statuses without a body have none.
    fn answer(
        &self,
        status: StatusCode,
        mut headers: HeaderMap,
        length: Option<u64>,
        body: Kind,
    ) -> Answer {
        let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if let (Some(length), false) = (length, has_none) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let body = if has_none || self.method == Method::HEAD { Kind::Empty } else { body };
        Answer { status, headers, body }
    }

    pub(super) fn write(&self, bytes: Bytes, make: impl FnOnce() -> Reply) -> bool {
        let stream = self.state().stream.clone();
        stream.is_some_and(|stream| stream.write(bytes, make))
    }

    pub(super) fn finish(&self) {
        if let Some(stream) = self.state().stream.clone() {
            stream.finish();
        }
    }

    fn has_died(&self) {
        let mut state = self.state();
        state.place = None;
        state.held = None;
        let answer = state.answer.take();
        let stream = state.stream.take();
        drop(state);
        drop(answer);
        if let Some(stream) = stream {
            stream.fail();
        }
    }

    /// The client has gone, or the time is over. A process whose request changes nothing is killed;
    /// another one finishes its work.
    pub(super) fn leave(&self, is_late: bool) {
        let mut state = self.state();
        state.is_gone = true;
        state.answer = None;
        let process = state.process;
        let request = state.request.take();
        if request.is_some() {
            state.held = None;
        }
        drop(state);
        drop(request);
        if let (Some(process), true) = (process, is_late || self.method.is_safe()) {
            self.shared.tell(|env| (atoms::skillbook_gone(), process).encode(env));
        }
    }
}
