//! The parts of a response, from the process that writes them to the connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hyper::body::Bytes;
use rustler::{Encoder, LocalPid};
use skillbook_bridge::runtime::Reply;
use tokio::sync::OwnedSemaphorePermit;

use super::atoms;
use super::shared::Shared;

/// Parts are handed to hyper in pieces, so that a connection holds little of a body whose reader is
/// slow.
const PIECE: usize = 16 * 1024;

/// The parts of a stream, between the process that writes them and the connection. It holds one
/// part at a time.
pub(super) struct Stream {
    state: Mutex<State>,
    /// An event stream: it never ends by itself.
    pub(super) is_endless: bool,
    writer: LocalPid,
    shared: Arc<Shared>,
}

struct State {
    part: Option<(Bytes, Reply)>,
    /// Bytes to come, for a body of a known length.
    left: Option<u64>,
    stage: Stage,
    reader: Option<Waker>,
    /// When something was last given or taken.
    moved: u64,
    _place: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Open,
    /// The writer has finished.
    Finished,
    /// The writer has died before, or has written less than it said.
    Broken,
    /// The reader has gone.
    Closed,
}

impl Stream {
    pub(super) fn new(
        shared: Arc<Shared>,
        writer: LocalPid,
        length: Option<u64>,
        is_endless: bool,
        place: Option<OwnedSemaphorePermit>,
    ) -> Stream {
        let state = State {
            part: None,
            left: length,
            stage: Stage::Open,
            reader: None,
            moved: shared.now(),
            _place: place,
        };
        Stream { state: Mutex::new(state), is_endless, writer, shared }
    }

    /// Each change below is complete before anything that could panic, so a poisoned state is
    /// consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reader is there. `make` is called only then.
    pub(super) fn write(&self, bytes: Bytes, make: impl FnOnce() -> Reply) -> bool {
        let mut state = self.state();
        let is_too_long = state.left.is_some_and(|left| bytes.len() as u64 > left);
        if state.stage != Stage::Open || state.part.is_some() || is_too_long {
            return false;
        }
        state.part = Some((bytes, make()));
        state.moved = self.shared.now();
        wake(state);
        true
    }

    pub(super) fn finish(&self) {
        self.end(Stage::Finished);
    }

    /// The writer has died.
    pub(super) fn fail(&self) {
        self.end(Stage::Broken);
    }

    fn end(&self, stage: Stage) {
        let mut state = self.state();
        if state.stage == Stage::Open {
            let is_short = state.part.is_none() && state.left.is_some_and(|left| left > 0);
            state.stage = if is_short { Stage::Broken } else { stage };
            state.moved = self.shared.now();
            wake(state);
        }
    }

    /// Ends the stream for both sides, since the server stops.
    pub(super) fn stop(&self) {
        self.finish();
        self.kill_writer();
    }

    fn kill_writer(&self) {
        self.shared.tell(|env| (atoms::skillbook_gone(), self.writer).encode(env));
    }

    /// Since when a part waits for the client; `None` if there is none.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        let state = self.state();
        (state.part.is_some() || state.stage != Stage::Open).then_some(state.moved)
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let mut state = self.state();
        if let Some((mut bytes, reply)) = state.part.take() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            state.moved = self.shared.now();
            state.left = state.left.map(|left| left.saturating_sub(piece.len() as u64));
            if bytes.is_empty() {
                drop(state);
                reply.send(|env| atoms::ok().encode(env));
            } else {
                state.part = Some((bytes, reply));
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.stage {
            Stage::Open => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Stage::Finished if state.left.unwrap_or(0) == 0 => Poll::Ready(None),
            _ => Poll::Ready(Some(Err(Broken))),
        }
    }

    /// The reader has gone, or has all of it.
    pub(super) fn close(&self) {
        let mut state = self.state();
        let was_open = state.stage == Stage::Open;
        state.stage = Stage::Closed;
        let part = state.part.take();
        state._place = None;
        drop(state);
        // Answers the writer.
        drop(part);
        if was_open {
            self.kill_writer();
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let state = self.state();
        state.part.is_none() && state.stage == Stage::Finished && state.left.unwrap_or(0) == 0
    }

    pub(super) fn left(&self) -> Option<u64> {
        self.state().left
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// The body ends before its end, which breaks the connection or resets the stream of HTTP/2.
#[derive(Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process that wrote the response has ended")
    }
}

impl std::error::Error for Broken {}
