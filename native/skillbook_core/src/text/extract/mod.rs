//! The commands of a model's reply: its `cmd` blocks, and the text around them.
//!
//! One machine reads whole texts and streams. It works on a buffer and keeps offsets into it, so that a text that is
//! there as a whole is borrowed from, not copied, and so that what a stream gives does not depend on its chunks.
//!
//! It does not split commands into words ([`words`](super::words)) and does not judge them: a command that is cut in
//! the middle of a quote is handed out as it stands, and reading it gives the error.
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

/// What becomes of a block that never closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unclosed {
    /// It was cut off: its commands are reported as incomplete.
    #[default]
    Hold,
    /// The end of the text closes it, for callers that stop the model at the closing fence.
    Run,
}

/// What a reply consists of, in the order in which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A piece of the text for the user.
    Text(Cow<'a, str>),
    /// A command whose last line is complete. It may run once its block is [`Event::Closed`].
    Command(Cow<'a, str>),
    /// A comment in a block, from its `#` on. Streams do not tell of it.
    Comment(&'a str),
    /// The block closed: its commands may run.
    Closed,
    /// The text ended inside the block: its commands are incomplete and do not run.
    Cut,
    /// Another code block, from its fence up to the line that closes it, which holds a command block and was hardly meant to:
    /// it never closes, or what closes it is the fence that closes the command block.
    Hidden(Range<usize>),
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extraction<'a> {
    /// The commands of all closed blocks, in order.
    pub commands: Vec<Cow<'a, str>>,
    /// The text for the user, in pieces that follow each other.
    pub pieces: Vec<Cow<'a, str>>,
    /// The commands of a block that never closed.
    pub incomplete: Vec<Cow<'a, str>>,
    /// Code blocks that hide command blocks, as [`Event::Hidden`] says.
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

/// Takes a whole reply apart.
///
/// ```
/// use skillbook_core::text::extract::{extract, Unclosed};
///
/// let found = extract("On it.\n\n```cmd\n# first\ntasks.get --id 1\n```\n\nDone.", Unclosed::Hold).unwrap();
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
        format!("the text is not valid UTF-8: byte {at} begins no character"),
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

#[derive(Debug, Clone)]
struct Machine {
    unclosed: Unclosed,
    /// How many bytes of the text stood before the buffer.
    base: usize,
    /// Everything before this offset of the buffer is dealt with.
    at: usize,
    /// Whether that is the start of a line.
    line_start: bool,
    /// No line that begins at `at` ends before this offset.
    searched: usize,
    pending: Pending,
    text: ReplyText,
    thought: Thought,
    /// An open code block that is none of ours.
    code_block: Option<CodeBlock>,
    block: Option<Block>,
    /// What is left of the budget for guesses.
    guess_budget: usize,
}

/// Whether the machine can go on.
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
            guess_budget: scan::GUESS_BUDGET,
        }
    }

    /// Offsets before this one are never needed again.
    fn consumed(&self) -> usize {
        match &self.block {
            Some(Block { open: Some(_), .. }) => 0,
            _ => self.at,
        }
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
