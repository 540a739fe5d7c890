//! `Skillbook.Extractor`: the commands of a whole reply, or of a stream that arrives in chunks.
//!
//! The state of a stream is a resource behind a mutex. Elixir's structs are immutable, so an old
//! one could be fed again; the number in each struct detects that.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use rustler::{Binary, Encoder, Env, NifResult, Resource, ResourceArc, Term};
use skillbook_bridge::twin;
use skillbook_bridge::twin::BYTES;
use skillbook_core::page::sections;
use skillbook_core::text::error::Error;
use skillbook_core::text::extract::{self, Event, Unclosed};

use crate::encode::{self, Bare, Bares};
use crate::text::{self, SourceText};

mod atoms {
    rustler::atoms! {
        ok,
        command,
        comment,
        text,
        incomplete,
        block,
        closed,
        hidden,
        stale,
    }
}

fn unclosed(run: bool) -> Unclosed {
    if run {
        Unclosed::Run
    } else {
        Unclosed::Hold
    }
}

/// `{commands, text, incomplete, hidden}`.
fn whole<'a>(env: Env<'a>, reply: Binary<'a>, run: bool) -> NifResult<Term<'a>> {
    let found = SourceText::new(env, reply).and_then(|source| {
        let found = extract::extract(source.text, unclosed(run))?;
        Ok((source, found))
    });
    match found {
        Err(error) => text::error(env, &error),
        Ok((source, found)) => {
            let hidden: Bares =
                found.hidden.iter().map(|range| place(range).encode(env).into()).collect();
            let values = [
                source.parts(&found.commands),
                source.joined(&found.pieces),
                source.parts(&found.incomplete),
                Bare::list(env, &hidden),
            ];
            Ok(Bare::tuple(env, &values).term(env))
        }
    }
}

twin! {
    "DirtyCpu" fn extract_now | extract_dirty(env, reply: Binary<'a>, run: bool)
    text reply.len()
    => whole(env, reply, run)
}

/// The commands in the Behavior section of a page, each with the name that a comment gives it or
/// `nil`, and the text below them.
#[rustler::nif(schedule = "DirtyCpu")]
fn behavior_steps<'a>(env: Env<'a>, body: Binary<'a>) -> NifResult<Term<'a>> {
    let steps = SourceText::new(env, body).and_then(|source| {
        let steps = extract::steps(sections::section(source.text, "behavior").unwrap_or_default())?;
        Ok((source, steps))
    });
    match steps {
        Err(error) => text::error(env, &error),
        Ok((source, steps)) => {
            let lines: Vec<_> = steps
                .lines
                .iter()
                .map(|line| (line.name, source.part(&line.line).term(env)))
                .collect();
            Ok((atoms::ok(), lines, steps.rest.trim()).encode(env))
        }
    }
}

/// A stream.
pub struct Stream(Mutex<State>);

#[rustler::resource_impl]
impl Resource for Stream {}

struct State {
    extractor: extract::Extractor,
    /// The number of the newest state that Elixir holds; only that one can be fed.
    number: u64,
    /// The number of bytes since the last chunk with an event, which feeding may scan again.
    pending: usize,
    /// The last line so far has a character of a fence.
    is_marked: bool,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic the extractor is safe to use: it checks its offsets on every call.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// `fenced` says whether the next bytes complete a line that may be a fence, or end the text.
    /// Only then is a guess taken back, and everything since then read again.
    fn is_quick(&self, more: usize, fenced: impl FnOnce(&State) -> bool) -> bool {
        let state = self.state();
        let pending = state.pending + more;
        more <= BYTES
            && (pending <= BYTES
                // Text that is only waiting is looked at once more when the rest of it comes.
                || (pending <= WAITING && !(state.extractor.may_read_again() && fenced(&state))))
    }
}

/// How much text may wait for the end of its line.
const WAITING: usize = 256 * 1024;

fn has_mark(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'`' | b'~'))
}

#[rustler::nif]
fn extractor_new(run: bool) -> ResourceArc<Stream> {
    let extractor = extract::Extractor::new(unclosed(run));
    ResourceArc::new(Stream(Mutex::new(State {
        extractor,
        number: 0,
        pending: 0,
        is_marked: false,
    })))
}

twin! {
    "DirtyCpu" fn extractor_feed_now | extractor_feed_dirty(
        env, stream: ResourceArc<Stream>, number: u64, chunk: Binary<'a>
    )
    if stream.is_quick(chunk.len(), |state| state.is_marked || has_mark(&chunk))
    => step(env, &stream, number, &chunk, |extractor| extractor.feed(&chunk))
}

twin! {
    "DirtyCpu" fn extractor_finish_now | extractor_finish_dirty(
        env, stream: ResourceArc<Stream>, number: u64
    )
    if stream.is_quick(0, |_| true)
    => step(env, &stream, number, b"", extract::Extractor::finish)
}

fn step<'a>(
    env: Env<'a>,
    stream: &Stream,
    number: u64,
    chunk: &[u8],
    take: impl FnOnce(&mut extract::Extractor) -> Result<Vec<Event<'static>>, Error>,
) -> NifResult<Term<'a>> {
    let mut state = stream.state();
    // An older state of the stream was fed again.
    if state.number != number {
        return Ok(atoms::stale().encode(env));
    }
    state.number += 1;
    let line = chunk.iter().rposition(|byte| *byte == b'\n').map_or(chunk, |at| &chunk[at..]);
    state.is_marked = has_mark(line) || (state.is_marked && line.len() == chunk.len());
    match take(&mut state.extractor) {
        Err(error) => text::error(env, &error),
        Ok(events) => {
            // As long as no event comes, the chunks pile up in the state machine.
            let waiting = if events.is_empty() { state.pending } else { 0 };
            state.pending = waiting + chunk.len();
            let events: Vec<Term<'a>> = events.iter().map(|item| event(env, item)).collect();
            Ok((atoms::ok(), events).encode(env))
        }
    }
}

/// A range as `binary_part/2` takes it.
fn place(range: &Range<usize>) -> (usize, usize) {
    (range.start, range.len())
}

fn event<'a>(env: Env<'a>, event: &Event<'_>) -> Term<'a> {
    match event {
        Event::Text(piece) => (atoms::text(), encode::binary(env, piece.as_bytes())).encode(env),
        Event::Command(command) => {
            (atoms::command(), encode::binary(env, command.as_bytes())).encode(env)
        }
        Event::Comment(comment) => (atoms::comment(), *comment).encode(env),
        Event::Closed => (atoms::block(), atoms::closed()).encode(env),
        Event::Cut => (atoms::block(), atoms::incomplete()).encode(env),
        Event::Hidden(range) => (atoms::hidden(), place(range)).encode(env),
    }
}
