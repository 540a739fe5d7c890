//! Takes a model's reply apart: the commands in its `cmd` blocks, and the text around them.
//!
//! One state machine reads whole texts ([`extract`]), streams ([`Extractor`]) and pages
//! ([`steps`]). It works on a buffer and stores offsets into it: a whole text is borrowed from, not
//! copied, and the events of a stream do not depend on its chunks.
//!
//! | module | question |
//! |---|---|
//! | `prose` | which line opens a block? which code blocks and drafts do not count? |
//! | `block` | what is a command in a block? which line closes the block? |
//! | `open_command` | does a command continue on the next line? |
//! | `spacing` | which white space does the user see where a block was? |
//!
//! Commands are not split into words here ([`words`](super::words)) and not checked: a command that
//! is cut off inside a quote is returned unchanged, and parsing it reports the error.
mod block;
mod lines;
mod open_command;
mod prose;
mod spacing;
mod steps;
mod stream;

use std::borrow::Cow;
use std::ops::Range;

use self::block::Block;
use self::lines::{line_at, Line};
use self::prose::{CodeBlock, Pending, Thought};
use self::spacing::ReplyText;
use super::error::{Error, Kind};
use super::{scan, MAX_TEXT};

pub use self::steps::{steps, NamedLine, Steps};
pub use self::stream::Extractor;

/// How to treat a block that is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unclosed {
    /// The reply was cut off: report its commands as incomplete.
    #[default]
    Hold,
    /// The end of the text closes it. For callers that stop the model at the closing fence.
    Run,
}

/// A part of a reply. Events come in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A piece of the text for the user.
    Text(Cow<'a, str>),
    /// A command whose last line is complete. It may run after [`Event::Closed`].
    Command(Cow<'a, str>),
    /// A comment in a block, from its `#` on. Streams leave it out.
    Comment(&'a str),
    /// The block is closed: its commands may run.
    Closed,
    /// The text ends inside the block: its commands are incomplete and must not run.
    Cut,
    /// The bytes of a code block of another language that contains a command block, probably by
    /// mistake: it is never closed, or the fence that closes the command block also closes it.
    Hidden(Range<usize>),
}

/// A whole reply, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extraction<'a> {
    /// The commands of all closed blocks, in order.
    pub commands: Vec<Cow<'a, str>>,
    /// The text for the user, in consecutive pieces.
    pub pieces: Vec<Cow<'a, str>>,
    /// The commands of a block that is never closed.
    pub incomplete: Vec<Cow<'a, str>>,
    /// Code blocks that hide command blocks, see [`Event::Hidden`].
    pub hidden: Vec<Range<usize>>,
}

impl Extraction<'_> {
    /// The text for the user.
    pub fn text(&self) -> Cow<'_, str> {
        match self.pieces.as_slice() {
            [] => Cow::Borrowed(""),
            [piece] => Cow::Borrowed(piece),
            pieces => Cow::Owned(pieces.concat()),
        }
    }
}

/// Extracts commands and text from a whole reply.
///
/// ```
/// use skillbook_core::text::extract::{extract, Unclosed};
///
/// let reply = "On it.\n\n```cmd\n# first\ntasks.get --id 1\n```\n\nDone.";
/// let found = extract(reply, Unclosed::Hold).unwrap();
/// assert_eq!(found.commands, ["tasks.get --id 1"]);
/// assert_eq!(found.text(), "On it.\n\nDone.");
/// ```
pub fn extract(text: &str, unclosed: Unclosed) -> Result<Extraction<'_>, Error> {
    if text.len() > MAX_TEXT {
        return Err(too_large(text.len()));
    }
    let mut found = Extraction { pieces: Vec::with_capacity(8), ..Extraction::default() };
    let mut closed = 0;
    let mut machine = Machine::new(unclosed);
    machine.run(text, true, &mut |event| match event {
        Event::Text(piece) => found.pieces.push(piece),
        Event::Command(command) => found.commands.push(command),
        Event::Comment(_) => {}
        Event::Closed => closed = found.commands.len(),
        Event::Cut => found.incomplete = found.commands.split_off(closed),
        Event::Hidden(range) => found.hidden.push(range),
    })?;
    Ok(found)
}

/// The error for bytes that are not UTF-8, at the first such byte.
pub fn invalid_utf8(at: usize) -> Error {
    Error::whole(
        Kind::InvalidUtf8,
        at..at + 1,
        format!("the text is not valid UTF-8: byte {at} does not begin a character"),
        "send the reply as UTF-8",
    )
}

fn too_large(len: usize) -> Error {
    Error::whole(
        Kind::TextTooLarge,
        0..len,
        format!("a reply may have {MAX_TEXT} bytes; this one has {len} or more"),
        "answer in several shorter replies",
    )
}

/// The state between two lines, or between two chunks in the middle of a line.
#[derive(Debug, Clone)]
struct Machine {
    unclosed: Unclosed,
    /// How many bytes of the text came before the buffer.
    base: usize,
    /// Everything before this offset of the buffer is done.
    at: usize,
    /// Whether `at` is the start of a line.
    line_start: bool,
    /// The line at `at` does not end before this offset, so a search for its end starts here.
    searched: usize,
    pending: Pending,
    text: ReplyText,
    thought: Thought,
    /// An open code block of another language.
    code_block: Option<CodeBlock>,
    /// An open command block.
    block: Option<Block>,
    /// The number of commands so far.
    commands: usize,
    /// How many more bytes failed guesses may scan, over the whole text.
    guess_budget: usize,
}

/// Whether the machine can continue with the bytes that it has.
#[derive(PartialEq, Eq)]
enum Step {
    More,
    Wait,
}

impl Machine {
    fn new(unclosed: Unclosed) -> Self {
        Machine {
            unclosed,
            base: 0,
            at: 0,
            line_start: true,
            searched: 0,
            pending: Pending::None,
            text: ReplyText::default(),
            thought: Thought::Unknown,
            code_block: None,
            block: None,
            commands: 0,
            guess_budget: scan::GUESS_BUDGET,
        }
    }

    /// Bytes before this offset are not needed again. A guess may return to the start of an open
    /// command, so with one open, none are free.
    fn consumed(&self) -> usize {
        match &self.block {
            Some(Block { open: Some(_), .. }) => 0,
            _ => self.at,
        }
    }

    /// Whether the open command, or the text after it, may be read again: because of a guess, or
    /// of a heredoc that may have no end.
    fn may_read_again(&self) -> bool {
        let open = self.block.as_ref().and_then(|block| block.open.as_ref());
        open.is_some_and(|open| {
            open.scan.guesses() || open.missed_fence.is_some() || open.possible_end.is_some()
        })
    }

    fn discard(&mut self, len: usize) {
        self.base += len;
        self.at -= len;
        self.searched = self.searched.saturating_sub(len);
    }

    fn run<'b>(
        &mut self,
        buf: &'b str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        loop {
            let step = match self.block {
                None => self.read_prose(buf, eof, out)?,
                Some(_) => self.read_block_line(buf, eof, out)?,
            };
            if step == Step::Wait {
                return Ok(());
            }
        }
    }

    /// The line at `at`, if it is complete.
    fn next_line(&mut self, buf: &str, eof: bool) -> Option<Line> {
        let line = line_at(buf, self.at, self.searched.max(self.at), eof);
        if line.is_none() {
            self.searched = buf.len();
        }
        line
    }
}
