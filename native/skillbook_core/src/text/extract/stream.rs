//! Extraction chunk by chunk, for replies that are still being written.

use std::borrow::Cow;

use super::{invalid_utf8, too_large, Event, Machine, Unclosed};
use crate::text::error::Error;
use crate::text::MAX_TEXT;

/// Takes a reply apart as it is written.
///
/// Whatever the chunks, the events are those of the whole text, but for where the text is cut into pieces.
///
/// ```
/// use skillbook_core::text::extract::{Event, Extractor, Unclosed};
///
/// let mut extractor = Extractor::new(Unclosed::Hold);
/// assert_eq!(extractor.feed(b"Hi.\n``").unwrap(), [Event::Text("Hi.".into())]);
/// assert_eq!(extractor.feed(b"`cmd\nget_skill\n").unwrap(), [Event::Command("get_skill".into())]);
/// assert_eq!(extractor.feed(b"```").unwrap(), []);
/// assert_eq!(extractor.finish().unwrap(), [Event::Closed]);
/// ```
#[derive(Debug, Clone)]
pub struct Extractor {
    machine: Machine,
    buffer: String,
    /// The first bytes of a character that a chunk cut.
    partial: Vec<u8>,
    /// How many bytes came.
    total: usize,
    error: Option<Error>,
}

impl Extractor {
    /// An extractor at the start of a text.
    pub fn new(unclosed: Unclosed) -> Self {
        Extractor {
            machine: Machine::new(unclosed),
            buffer: String::new(),
            partial: Vec::new(),
            total: 0,
            error: None,
        }
    }

    /// Takes the next chunk. After an error it takes no more and gives the same error again.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<Event<'static>>, Error> {
        self.check()?;
        let before = self.total - self.partial.len();
        self.total += chunk.len();
        if self.total > MAX_TEXT {
            return Err(self.fail(too_large(self.total)));
        }
        let held = std::mem::take(&mut self.partial);
        let joined;
        let bytes = if held.is_empty() {
            chunk
        } else {
            joined = [held.as_slice(), chunk].concat();
            &joined
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => self.buffer.push_str(text),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                self.buffer.push_str(&String::from_utf8_lossy(valid));
                if error.error_len().is_some() {
                    return Err(self.fail(invalid_utf8(before + error.valid_up_to())));
                }
                self.partial = rest.to_vec();
            }
        }
        self.step(false)
    }

    /// The text is over.
    pub fn finish(&mut self) -> Result<Vec<Event<'static>>, Error> {
        self.check()?;
        if !self.partial.is_empty() {
            return Err(self.fail(invalid_utf8(self.total - self.partial.len())));
        }
        self.step(true)
    }

    fn step(&mut self, eof: bool) -> Result<Vec<Event<'static>>, Error> {
        let mut events = Vec::new();
        let result =
            self.machine.run(&self.buffer, eof, &mut |event| events.extend(event.into_owned()));
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        let done = self.machine.consumed();
        // Moving what is left to the front costs its length: only where that is less than what goes.
        if done > self.buffer.len() / 2 {
            self.buffer.drain(..done);
            self.machine.discard(done);
        }
        Ok(events)
    }

    fn check(&self) -> Result<(), Error> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn fail(&mut self, error: Error) -> Error {
        self.buffer = String::new();
        self.error = Some(error.clone());
        error
    }
}

impl Event<'_> {
    /// What a stream tells.
    fn into_owned(self) -> Option<Event<'static>> {
        Some(match self {
            Event::Text(text) => Event::Text(Cow::Owned(text.into_owned())),
            Event::Command(text) => Event::Command(Cow::Owned(text.into_owned())),
            Event::Comment(_) => return None,
            Event::Closed => Event::Closed,
            Event::Cut => Event::Cut,
            Event::Hidden(range) => Event::Hidden(range),
        })
    }
}
