//! `Skillbook.Extractor`: whole replies, and streams as a resource.

use std::sync::Mutex;

use rustler::{Binary, Encoder, Env, NifResult, Resource, ResourceArc, Term};
use skillbook_core::text::error::Error;
use skillbook_core::text::extract::{self, Event, Unclosed};

use crate::encode;
use crate::text::{self, Source};

mod atoms {
    rustler::atoms! {
        ok,
        command,
        commands,
        text,
        incomplete,
        block,
        closed,
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

fn whole<'a>(env: Env<'a>, reply: Binary<'a>, run: bool) -> NifResult<Term<'a>> {
    let found = Source::new(reply).and_then(|source| {
        let found = extract::extract(source.text, unclosed(run))?;
        Ok((source, found))
    });
    match found {
        Err(error) => text::error(env, &error),
        Ok((source, found)) => {
            let map = encode::map(
                env,
                [
                    (atoms::commands(), source.parts(env, &found.commands)),
                    (atoms::incomplete(), source.parts(env, &found.incomplete)),
                    (atoms::text(), source.joined(env, &found.pieces)),
                ],
            )?;
            Ok((atoms::ok(), map).encode(env))
        }
    }
}

#[rustler::nif]
fn extract<'a>(env: Env<'a>, reply: Binary<'a>, run: bool) -> NifResult<Term<'a>> {
    whole(env, reply, run)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extract_dirty<'a>(env: Env<'a>, reply: Binary<'a>, run: bool) -> NifResult<Term<'a>> {
    whole(env, reply, run)
}

/// A stream. Each state that Elixir holds is numbered; only the newest can be fed.
pub struct Stream(Mutex<(u64, extract::Extractor)>);

#[rustler::resource_impl]
impl Resource for Stream {}

#[rustler::nif]
fn extractor_new(run: bool) -> ResourceArc<Stream> {
    ResourceArc::new(Stream(Mutex::new((0, extract::Extractor::new(unclosed(run))))))
}

#[rustler::nif]
fn extractor_feed<'a>(
    env: Env<'a>,
    stream: ResourceArc<Stream>,
    number: u64,
    chunk: Binary<'a>,
) -> NifResult<Term<'a>> {
    step(env, &stream, number, |extractor| extractor.feed(&chunk))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extractor_feed_dirty<'a>(
    env: Env<'a>,
    stream: ResourceArc<Stream>,
    number: u64,
    chunk: Binary<'a>,
) -> NifResult<Term<'a>> {
    step(env, &stream, number, |extractor| extractor.feed(&chunk))
}

// What is left may be as long as a reply may be.
#[rustler::nif(schedule = "DirtyCpu")]
fn extractor_finish<'a>(env: Env<'a>, stream: ResourceArc<Stream>, number: u64) -> NifResult<Term<'a>> {
    step(env, &stream, number, extract::Extractor::finish)
}

fn step<'a>(
    env: Env<'a>,
    stream: &Stream,
    number: u64,
    take: impl FnOnce(&mut extract::Extractor) -> Result<Vec<Event<'static>>, Error>,
) -> NifResult<Term<'a>> {
    // A panic while the lock was held would have left a state that nobody should go on from, but the machine
    // has none to leave: its offsets are checked on every use.
    let mut state = stream.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if state.0 != number {
        return Ok(atoms::stale().encode(env));
    }
    state.0 += 1;
    match take(&mut state.1) {
        Err(error) => text::error(env, &error),
        Ok(events) => {
            let events: Vec<Term<'a>> = events.iter().map(|item| event(env, item)).collect();
            Ok((atoms::ok(), events).encode(env))
        }
    }
}

fn event<'a>(env: Env<'a>, event: &Event<'_>) -> Term<'a> {
    match event {
        Event::Text(piece) => (atoms::text(), text::binary(env, piece)).encode(env),
        Event::Command(command) => (atoms::command(), text::binary(env, command)).encode(env),
        Event::Closed => (atoms::block(), atoms::closed()).encode(env),
        Event::Cut => (atoms::block(), atoms::incomplete()).encode(env),
    }
}
