//! Extraction chunk by chunk, for replies that are still being written.

use std::borrow::Cow;

use super::{invalid_utf8, too_large, Event, Machine, Unclosed};
use crate::text::error::Error;
use crate::text::MAX_TEXT;

/// Extracts commands and text from a reply while it is still being written.
///
/// The events are the same for any chunks, except that [`Event::Text`] is cut in other places. An
/// event comes as soon as no later chunk can change it. Chunks may end anywhere, also inside a
/// character.
///
/// All chunks together may have [`MAX_TEXT`] bytes. A longer text, or bytes that are not UTF-8, are
/// an error, which every later call returns again.
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
    /// The state of the text up to the start of `buffer`.
    machine: Machine,
    /// Text that the machine could not take yet, since later chunks may change its meaning.
    buffer: String,
    /// The first bytes of a character that is cut by the end of a chunk.
    partial: Vec<u8>,
    /// The number of bytes of all chunks so far.
    total: usize,
    /// The error that ended the extraction.
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

    /// Takes the next chunk. After an error every call returns that error.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<Event<'static>>, Error> {
        self.check()?;
        // Where the bytes of this call begin, for the place of an error.
        let before = self.total - self.partial.len();
        self.total += chunk.len();
        if self.total > MAX_TEXT {
            return Err(self.fail(too_large(self.total)));
        }
        let partial = std::mem::take(&mut self.partial);
        let joined;
        let bytes = if partial.is_empty() {
            chunk
        } else {
            joined = [partial.as_slice(), chunk].concat();
            &joined
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => self.buffer.push_str(text),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                self.buffer.push_str(&String::from_utf8_lossy(valid));
                // Without a length the chunk ends inside a character, which the next chunk may
                // complete.
                if error.error_len().is_some() {
                    return Err(self.fail(invalid_utf8(before + error.valid_up_to())));
                }
                self.partial = rest.to_vec();
            }
        }
        self.step(false)
    }

    /// Ends the text, and returns the events that were waiting for more of it.
    pub fn finish(&mut self) -> Result<Vec<Event<'static>>, Error> {
        self.check()?;
        if !self.partial.is_empty() {
            return Err(self.fail(invalid_utf8(self.total - self.partial.len())));
        }
        self.step(true)
    }

    /// Whether the next chunk may make the extractor read the open command again.
    pub fn may_read_again(&self) -> bool {
        self.machine.may_read_again()
    }

    fn step(&mut self, eof: bool) -> Result<Vec<Event<'static>>, Error> {
        let mut events = Vec::new();
        let result =
            self.machine.run(&self.buffer, eof, &mut |event| events.extend(event.into_owned()));
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        let done = self.machine.consumed();
        // Draining moves the rest to the front. Only drain more than that, so that all moves
        // together cost no more than the length of the text.
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
    /// The event with its own copy of the text; `None` for events that streams leave out.
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
