//! The commands of a model's reply: its `cmd` blocks, and the text around them.
//!
//! One machine reads whole texts and streams. It works on a buffer and keeps offsets into it, so that a text that is
//! there as a whole is borrowed from, not copied, and so that what a stream gives does not depend on its chunks.
//!
//! It does not split commands into words ([`words`](super::words)) and does not judge them: a command that is cut in
//! the middle of a quote is handed out as it stands, and reading it gives the error.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr3, memrchr};

use super::error::{Error, Kind};
use super::fence::{self, Fence};
use super::scan::{self, LineEnd, NoWords, Scan};
use super::words::{is_one, lead, prompt, start as command_start};
use super::{MAX_COMMANDS, MAX_TEXT};

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

/// A command of a text that is run as it is written, and the name that a comment gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLine<'a> {
    /// What a comment `# name: NAME` right before the command says, as it is written.
    pub name: Option<&'a str>,
    /// The command.
    pub line: Cow<'a, str>,
}

/// A text that is run as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps<'a> {
    /// The commands of its closed blocks, in order.
    pub lines: Vec<NamedLine<'a>>,
    /// What stands below the last of them.
    pub rest: String,
}

/// The commands of a text's closed blocks, with the names that comments give them, and the text below them.
///
/// ```
/// use skillbook_core::text::extract::steps;
///
/// let found = steps("```cmd\n# name: late\ntasks.search --overdue\n# all of them\ntasks.search\n```\nSum it up.").unwrap();
/// assert_eq!(found.lines[0].name, Some("late"));
/// assert_eq!(found.lines[0].line, "tasks.search --overdue");
/// assert_eq!(found.lines[1].name, None);
/// assert_eq!(found.rest, "Sum it up.");
/// ```
pub fn steps(text: &str) -> Result<Steps<'_>, Error> {
    if text.len() > MAX_TEXT {
        return Err(too_large(text.len()));
    }
    let mut steps = Steps::default();
    let mut closed = 0;
    let mut name = None;
    Machine::new(Unclosed::Hold).run(text, true, &mut |event| match event {
        Event::Comment(comment) => name = step_name(comment).or(name),
        Event::Command(line) => steps.lines.push(NamedLine { name: name.take(), line }),
        Event::Closed => {
            if steps.lines.len() > closed {
                steps.rest.clear();
            }
            closed = steps.lines.len();
            name = None;
        }
        Event::Cut => steps.lines.truncate(closed),
        Event::Text(piece) => steps.rest.push_str(&piece),
        Event::Hidden(_) => {}
    })?;
    if steps.lines.is_empty() {
        steps.rest.clear();
    }
    Ok(steps)
}

fn step_name(comment: &str) -> Option<&str> {
    let rest = comment.trim_start_matches('#').trim_start();
    let (key, name) = rest.split_once(':')?;
    key.eq_ignore_ascii_case("name").then(|| name.trim())
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
        let done = self.machine.done();
        // Moving what is left to the front costs its length: only where that is less than what goes.
        if done > self.buffer.len() / 2 {
            self.buffer.drain(..done);
            self.machine.forget(done);
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
    held: Held,
    text: Text,
    thought: Thought,
    /// An open code block that is none of ours.
    other: Option<Other>,
    block: Option<Block>,
    /// What is left of the patience with guesses.
    patience: usize,
}

/// An open code block of any other kind.
#[derive(Debug, Clone, Copy)]
struct Other {
    fence: Fence,
    /// Where in the text its fence's line begins.
    start: usize,
    /// Its language is Markdown, in which fences are quoted.
    markdown: bool,
    /// A command block begins in it.
    holds: bool,
    /// One whose closing fence also closes this one.
    clashes: bool,
}

impl Other {
    fn new(opener: &fence::Opener<'_>, start: usize) -> Self {
        let language = opener.info.split([' ', '\t']).next().unwrap_or_default();
        let markdown = ["markdown", "md"].iter().any(|name| language.eq_ignore_ascii_case(name));
        Other { fence: opener.fence, start, markdown, holds: false, clashes: false }
    }

    fn note(&mut self, opener: &fence::Opener<'_>) {
        if opener.is_cmd() {
            self.holds = true;
            let Fence { mark, len } = self.fence;
            self.clashes |=
                opener.fence.mark == mark && opener.fence.len >= len && opener.inline.is_none();
        }
    }
}

/// An open command block.
#[derive(Debug, Clone)]
struct Block {
    fence: Fence,
    indent: usize,
    /// What followed `cmd` on the fence's line: the command, if the block holds nothing else.
    info: String,
    commands: usize,
    /// The fence here closes it, whatever is open.
    limit: Option<usize>,
    /// Boxed, because few commands go on.
    open: Option<Box<Open>>,
}

/// A command that goes on.
#[derive(Debug, Clone)]
struct Open {
    start: usize,
    scan: Scan,
    /// The code block that is open inside a heredoc.
    nested: Option<Fence>,
    /// A fence inside a heredoc that closes the block, should the heredoc turn out never to end.
    candidate: Option<Candidate>,
    /// The first fence that would have closed the block, had a guess not been taken back there. The
    /// tokenizer does not know which fences close the block, so its guess may reach over it.
    judged: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// The fence's line.
    line: usize,
    /// The code block that would be open in the text after it.
    other: Option<Fence>,
}

/// What is known of the text before `searched`, if it is held back because it may turn out to be a fence's line. It is
/// there so that a long line that comes in small chunks is not read again with each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    /// It is all blanks.
    Blank,
    /// It begins with a fence: only the line's end is missing.
    Fence,
}

/// What models that reason aloud write before their reply. Commands in it are drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thought {
    /// The text has not begun.
    Unknown,
    /// It is open, and ends with this.
    Open(&'static str),
    /// It is over, or there is none.
    None,
}

const THOUGHTS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Whether the machine can go on.
#[derive(PartialEq, Eq)]
enum Step {
    More,
    Wait,
}

/// A line of the buffer.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
}

impl Machine {
    fn new(unclosed: Unclosed) -> Self {
        Machine {
            unclosed,
            base: 0,
            at: 0,
            line_start: true,
            searched: 0,
            held: Held::Nothing,
            text: Text::default(),
            thought: Thought::Unknown,
            other: None,
            block: None,
            patience: scan::PATIENCE,
        }
    }

    /// Offsets before this one are never needed again.
    fn done(&self) -> usize {
        match &self.block {
            Some(Block { open: Some(_), .. }) => 0,
            _ => self.at,
        }
    }

    fn forget(&mut self, len: usize) {
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
                None => self.text(buf, eof, out)?,
                Some(_) => self.block(buf, eof, out)?,
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

    /// Text outside of command blocks, up to the next one.
    fn text<'b>(
        &mut self,
        buf: &'b str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        let bytes = buf.as_bytes();
        if !eof && self.still_held(bytes) {
            return Ok(Step::Wait);
        }
        // A byte order mark is no character of the first line.
        if self.base + self.at == 0 && buf.starts_with('\u{FEFF}') {
            self.at = '\u{FEFF}'.len_utf8();
        }
        match self.thought {
            Thought::Unknown => return Ok(self.begin(buf, eof)),
            Thought::Open(end) => return Ok(self.think(buf, end, eof, out)),
            Thought::None => {}
        }
        let mut from = self.at;
        let mut search = self.at;
        while let Some(found) =
            memchr3(b'`', b'~', b'\r', &bytes[search..]).map(|found| search + found)
        {
            if bytes[found] == b'\r' {
                if found + 1 == buf.len() && !eof {
                    self.hold(buf, from, found, out);
                    return Ok(Step::Wait);
                }
                search = found + 1;
                if bytes.get(search) == Some(&b'\n') {
                    self.text.give(&buf[from..found], out);
                    from = search;
                }
                continue;
            }
            let run = bytes[found..].iter().take_while(|byte| **byte == bytes[found]).count();
            let Some(start) = self.line_start(bytes, from, found) else {
                search = found + run;
                continue;
            };
            if run < 3 && (found + run < buf.len() || eof) {
                search = found + run;
                continue;
            }
            let Some(line) = line_at(buf, start, self.searched.max(found), eof) else {
                self.searched = buf.len();
                self.hold(buf, from, found, out);
                self.held = if run < 3 { Held::Nothing } else { Held::Fence };
                return Ok(Step::Wait);
            };
            search = line.end;
            let content = &buf[start..line.end];
            if let Some(other) = &mut self.other {
                if !fence::closes(content, other.fence) {
                    fence::text_opener(content).iter().for_each(|opener| other.note(opener));
                    continue;
                }
                if other.clashes && !other.markdown {
                    out(Event::Hidden(other.start..self.base + start));
                }
                self.other = None;
                continue;
            }
            let Some(opener) = fence::text_opener(content) else {
                search = found + run;
                continue;
            };
            if !opener.is_cmd() {
                self.other = Some(Other::new(&opener, self.base + start));
                continue;
            }
            // The blank lines before a block go with it.
            self.text.give(trim_end(&buf[from..start]), out);
            self.enter(buf, line, opener, out)?;
            return Ok(Step::More);
        }
        if eof {
            self.text.give(trim_end(&buf[from..]), out);
            self.at = buf.len();
            if let Some(other) = self.other.take().filter(|other| other.holds) {
                out(Event::Hidden(other.start..self.base + buf.len()));
            }
        } else {
            self.hold(buf, from, buf.len(), out);
            if self.line_start {
                self.searched = buf.len();
                self.held = Held::Blank;
            }
        }
        Ok(Step::Wait)
    }

    /// Whether the text begins with a thought.
    fn begin(&mut self, buf: &str, eof: bool) -> Step {
        let start = buf[self.at..].trim_start();
        let found = THOUGHTS.iter().find(|(open, _)| start.starts_with(open));
        if found.is_none() && !eof && THOUGHTS.iter().any(|(open, _)| open.starts_with(start)) {
            return Step::Wait;
        }
        self.thought = found.map_or(Thought::None, |(_, end)| Thought::Open(end));
        Step::More
    }

    /// A thought's text, up to its end.
    fn think<'b>(
        &mut self,
        buf: &'b str,
        end: &str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Step {
        let found = buf[self.at..].find(end);
        let to = match found {
            Some(found) => self.at + found + end.len(),
            None if eof => buf.len(),
            None => {
                // The end may come in parts, and so may a line break of two characters.
                let mut to = buf.len().saturating_sub(end.len()).max(self.at);
                while !buf.is_char_boundary(to) || (to > self.at && buf.as_bytes()[to - 1] == b'\r')
                {
                    to -= 1;
                }
                to
            }
        };
        let mut from = self.at;
        for (at, _) in buf[self.at..to].match_indices("\r\n") {
            self.text.give(&buf[from..self.at + at], out);
            from = self.at + at + 1;
        }
        self.text.give(&buf[from..to], out);
        self.at = to;
        self.line_start = false;
        if found.is_some() {
            self.thought = Thought::None;
            return Step::More;
        }
        Step::Wait
    }

    /// Whether what came since the text was held back changes nothing.
    fn still_held(&mut self, bytes: &[u8]) -> bool {
        let new = &bytes[self.searched..];
        let still = match self.held {
            Held::Nothing => return false,
            Held::Blank => new.iter().all(|byte| fence::is_blank(*byte)),
            Held::Fence => memchr(b'\n', new).is_none(),
        };
        if still {
            self.searched = bytes.len();
        } else {
            self.held = Held::Nothing;
        }
        still
    }

    /// The start of the line of the fence character at `found`, if only blanks and the mark of a list stand before it.
    fn line_start(&self, bytes: &[u8], from: usize, found: usize) -> Option<usize> {
        let mut start = found;
        while start > from && fence::is_blank(bytes[start - 1]) {
            start -= 1;
        }
        if start < found {
            start = before_mark(bytes, from, start);
        }
        let starts = if start > self.at { bytes[start - 1] == b'\n' } else { self.line_start };
        starts.then_some(start)
    }

    /// Gives the text up to `to`, but not the blanks of a line that may turn out to be a fence.
    fn hold<'b>(&mut self, buf: &'b str, from: usize, to: usize, out: &mut impl FnMut(Event<'b>)) {
        let start = memrchr(b'\n', &buf.as_bytes()[from..to]).map(|at| from + at + 1);
        let (start, starts) = match start {
            Some(start) => (start, true),
            None => (from, self.line_start || from > self.at),
        };
        self.line_start = starts && fence::may_open(&buf[start..to]);
        let end = if self.line_start { start } else { to };
        self.text.give(&buf[from..end], out);
        self.at = end;
    }

    /// A line that opens a command block, or is a whole one.
    fn enter<'b>(
        &mut self,
        buf: &'b str,
        line: Line,
        opener: fence::Opener<'b>,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        self.at = line.next;
        self.line_start = true;
        self.text.gap();
        let mut block = Block {
            fence: opener.fence,
            indent: opener.indent,
            info: String::new(),
            commands: 0,
            limit: None,
            open: None,
        };
        match opener.inline {
            Some(command) => {
                let start = line.start + fence::offset(&buf[line.start..line.end], command);
                let end = start + command.len();
                if let Some(start) = first_line(buf, start, end) {
                    block.give(buf, start..end, self.base, out)?;
                }
                out(Event::Closed);
            }
            None => {
                block.info =
                    fence::after_cmd(opener.info).map_or("", fence::trim_blanks).to_owned();
                self.block = Some(block);
            }
        }
        Ok(())
    }

    /// The next line of a command block.
    fn block<'b>(
        &mut self,
        buf: &'b str,
        eof: bool,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        let line = if eof && self.at == buf.len() { None } else { self.next_line(buf, eof) };
        let Some(line) = line else {
            return if eof { self.cut(buf, out) } else { Ok(Step::Wait) };
        };
        let Some(block) = &mut self.block else { return Ok(Step::More) };
        let content = &buf[line.start..line.end];
        let fenced = matches!(fence::trim_start(content).as_bytes(), [b'`' | b'~', ..]);
        let closed = match &mut block.open {
            open if block.limit.is_some_and(|limit| limit <= line.start) => {
                let candidate = open.as_ref().and_then(|open| open.candidate);
                Some(candidate.map_or(line.start, |candidate| candidate.line))
            }
            Some(open) if open.scan.in_heredoc() => {
                open.heredoc_line(block.fence, block.indent, content, line.start)
            }
            Some(open) if open.scan.in_nested() => None,
            _ => (fenced && ends_block(content, block.fence)).then_some(line.start),
        };
        if let Some(end) = closed {
            return self.leave(buf, end, out);
        }
        let start = line.start + strip(content, block.indent);
        match block.open.take() {
            Some(mut open) => {
                if self.go_on(&mut open, buf, start, line.next, out)? {
                    self.keep(open);
                }
            }
            None => {
                self.at = line.next;
                if let Some(start) = first_line(buf, start, line.end) {
                    block.info.clear();
                    let command = &buf[start..line.end];
                    if scan::is_whole(command.as_bytes()) {
                        block.count(start..line.end, self.base)?;
                        out(Event::Command(Cow::Borrowed(fence::trim_end(command))));
                        return Ok(Step::More);
                    }
                    let mut open = Open {
                        start,
                        scan: Scan::new(self.patience),
                        nested: None,
                        candidate: None,
                        judged: None,
                    };
                    // From where the tokenizer reads it.
                    let from = start + command_start(command);
                    if self.go_on(&mut open, buf, from, line.next, out)? {
                        self.keep(Box::new(open));
                    }
                } else if let Some(comment) = content.find('#') {
                    out(Event::Comment(&content[comment..]));
                }
            }
        }
        Ok(Step::More)
    }

    /// Scans a command's line from `at` on. Says whether the command goes on after it.
    fn go_on<'b>(
        &mut self,
        open: &mut Open,
        buf: &'b str,
        mut at: usize,
        mut next: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<bool, Error> {
        let mut line_start = true;
        loop {
            let end = line_end(buf, next, at);
            let line_end = open.scan.line(buf, at, end, line_start, &mut NoWords);
            self.at = next;
            let resume = match line_end {
                LineEnd::Done => None,
                LineEnd::Retreat => self.back(open, end),
                LineEnd::Quote | LineEnd::Joined | LineEnd::Heredoc => return Ok(true),
            };
            let Some(resume) = resume else {
                if self.disputed(open, buf, end) {
                    return Ok(false);
                }
                self.give(buf, open.start..end, out)?;
                return Ok(false);
            };
            // A long line may send the scan back often: its end stays where it is.
            if resume < at {
                next = memchr(b'\n', &buf.as_bytes()[resume..])
                    .map_or(buf.len(), |len| resume + len + 1);
            }
            at = resume;
            line_start = false;
        }
    }

    fn keep(&mut self, open: Box<Open>) {
        if let Some(block) = &mut self.block {
            block.open = Some(open);
        }
    }

    fn give<'b>(
        &mut self,
        buf: &'b str,
        range: Range<usize>,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        let base = self.base;
        self.block.as_mut().map_or(Ok(()), |block| block.give(buf, range, base, out))
    }

    /// The block closes before `end`, where a fence stands. A guess that is still open was wrong.
    fn leave<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<Step, Error> {
        if self.retreat(buf, end, out)? || self.is_disputed(buf, end) {
            return Ok(Step::More);
        }
        self.close(buf, end, out)?;
        out(Event::Closed);
        let Some(line) = line_at(buf, end, end, true) else { return Ok(Step::More) };
        self.at = line.next;
        self.line_start = true;
        self.searched = self.at;
        if let Some(opener) =
            fence::opener(&buf[line.start..line.end]).filter(fence::Opener::is_cmd)
        {
            self.enter(buf, line, opener, out)?;
        }
        Ok(Step::More)
    }

    /// The text ends inside the block.
    fn cut<'b>(&mut self, buf: &'b str, out: &mut impl FnMut(Event<'b>)) -> Result<Step, Error> {
        let open = self.block.as_ref().and_then(|block| block.open.as_ref());
        if let Some(candidate) = open.and_then(|open| open.candidate) {
            return self.leave(buf, candidate.line, out);
        }
        if self.retreat(buf, buf.len(), out)? || self.is_disputed(buf, buf.len()) {
            return Ok(Step::More);
        }
        self.close(buf, buf.len(), out)?;
        out(if self.unclosed == Unclosed::Run { Event::Closed } else { Event::Cut });
        Ok(Step::Wait)
    }

    /// Takes back the guess that is open where the block ends, if there is one.
    fn retreat<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<bool, Error> {
        let Some(block) = &mut self.block else { return Ok(false) };
        let (fence, Some(mut open)) = (block.fence, block.open.take()) else { return Ok(false) };
        let resume = self.back(&mut open, end);
        let closes = || {
            line_at(buf, end, end, true)
                .is_some_and(|line| fence::closes(&buf[end..line.end], fence))
        };
        if resume.is_some() && open.judged.is_none_or(|judged| end < judged) && closes() {
            open.judged = Some(end);
        }
        let goes_on = match resume {
            None => true,
            Some(at) => {
                let next =
                    memchr(b'\n', &buf.as_bytes()[at..]).map_or(buf.len(), |len| at + len + 1);
                self.go_on(&mut open, buf, at, next, out)?
            }
        };
        if goes_on {
            self.keep(open);
        }
        Ok(resume.is_some())
    }

    fn is_disputed(&mut self, buf: &str, end: usize) -> bool {
        let Some(open) = self.block.as_mut().and_then(|block| block.open.take()) else {
            return false;
        };
        let disputed = self.disputed(&open, buf, end);
        if !disputed {
            self.keep(open);
        }
        disputed
    }

    /// Whether the tokenizer would take a command that ends at `end` for more than one. Then the
    /// command is read anew, and the fence where its guess failed closes the block.
    fn disputed(&mut self, open: &Open, buf: &str, end: usize) -> bool {
        let (Some(limit), Some(block)) =
            (open.judged.filter(|judged| *judged < end), &mut self.block)
        else {
            return false;
        };
        if is_one(&block.command(&buf[open.start..end])) {
            return false;
        }
        block.limit = Some(limit);
        self.patience = self.patience.saturating_sub(end - open.start);
        self.at = memrchr(b'\n', &buf.as_bytes()[..open.start]).map_or(0, |at| at + 1);
        self.searched = 0;
        true
    }

    /// From where a command must be scanned again, as a guess was found wrong at `end`.
    fn back(&mut self, open: &mut Open, end: usize) -> Option<usize> {
        let at = open.scan.retreat(end, &mut NoWords);
        self.patience = open.scan.patience();
        self.searched = 0;
        at
    }

    /// The block is over: gives out what it still holds.
    fn close<'b>(
        &mut self,
        buf: &'b str,
        end: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Some(open) = block.open.take() {
            block.give(buf, open.start..end, self.base, out)?;
        } else if let Some(start) = first_line(&block.info, 0, block.info.len()) {
            out(Event::Command(Cow::Owned(block.info.split_off(start))));
        }
        self.block = None;
        Ok(())
    }
}

impl Block {
    fn give<'b>(
        &mut self,
        buf: &'b str,
        range: Range<usize>,
        base: usize,
        out: &mut impl FnMut(Event<'b>),
    ) -> Result<(), Error> {
        self.count(range.clone(), base)?;
        out(Event::Command(self.command(&buf[range])));
        Ok(())
    }

    /// A command without the block's indentation, with LF line ends.
    fn command<'b>(&self, raw: &'b str) -> Cow<'b, str> {
        let blank = raw
            .bytes()
            .rev()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
            .count();
        let raw = &raw[..raw.len() - blank];
        let lines = memchr(b'\n', raw.as_bytes()).is_some();
        if !lines || (self.indent == 0 && memchr(b'\r', raw.as_bytes()).is_none()) {
            return Cow::Borrowed(raw);
        }
        let mut lines = raw.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let mut text = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            text.push('\n');
            text.push_str(&line[strip(line, self.indent)..]);
        }
        Cow::Owned(text)
    }

    fn count(&mut self, range: Range<usize>, base: usize) -> Result<(), Error> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Err(Error::whole(
                Kind::TooManyCommands,
                base + range.start..base + range.end,
                format!("a block may have {MAX_COMMANDS} commands, and this one has more"),
                "write fewer commands a reply and go on when their results are back",
            ));
        }
        Ok(())
    }
}

impl Open {
    /// A line of a heredoc. Where that shows that the heredoc has no end, gives where its block closes.
    fn heredoc_line(
        &mut self,
        block: Fence,
        indent: usize,
        content: &str,
        line: usize,
    ) -> Option<usize> {
        if self.scan.ends_heredoc(&content[strip(content, indent)..]) {
            self.nested = None;
            self.candidate = None;
            return None;
        }
        let opener = fence::opener(content);
        let opens_cmd = opener.is_some_and(|opener| opener.is_cmd());
        match (&mut self.candidate, self.nested) {
            (Some(candidate), _) => match candidate.other {
                Some(fence) if fence::closes(content, fence) => candidate.other = None,
                Some(_) => {}
                None if opens_cmd => return Some(candidate.line),
                None => candidate.other = opener.map(|opener| opener.fence),
            },
            (None, Some(fence)) if fence::closes(content, fence) => self.nested = None,
            (None, Some(_)) => {}
            (None, None) if fence::closes(content, block) => {
                self.candidate = Some(Candidate { line, other: None });
            }
            // An example of a command block too: the fence of the block itself would have come first.
            (None, None) => {
                let nested =
                    opener.filter(|opener| !opener.info.is_empty() && opener.inline.is_none());
                self.nested = nested.map(|opener| opener.fence);
            }
        }
        None
    }
}

/// Whether a line of a block ends it: its closing fence, or the opening one of the next where that was forgotten.
fn ends_block(line: &str, fence: Fence) -> bool {
    fence::closes(line, fence) || fence::opener(line).is_some_and(|opener| opener.is_cmd())
}

/// Where a command on this line begins: behind blanks and a prompt, unless the line is blank or a comment.
fn first_line(buf: &str, start: usize, end: usize) -> Option<usize> {
    let line = &buf[start..end];
    let line = &line[lead(line)..];
    let rest = &line[prompt(line)..];
    let rest = &rest[lead(rest)..];
    // The tokenizer drops one prompt as well; of two, one is the command's.
    let line = if prompt(rest) == 0 { rest } else { line };
    let blank = line.is_empty() || line.starts_with('#');
    (!blank).then_some(end - line.len())
}

/// Where a list's mark that ends at `end` begins, with the blanks before it; `end` if there is none.
fn before_mark(bytes: &[u8], from: usize, end: usize) -> usize {
    let start = match bytes[from..end] {
        [.., b'-' | b'*' | b'+'] => end - 1,
        [.., b'0'..=b'9', b'.' | b')'] => {
            end - 1
                - bytes[from..end - 1]
                    .iter()
                    .rev()
                    .take_while(|byte| byte.is_ascii_digit())
                    .take(10)
                    .count()
        }
        _ => return end,
    };
    start - bytes[from..start].iter().rev().take_while(|byte| fence::is_blank(**byte)).count()
}

/// How much of the block's indentation a line has.
fn strip(line: &str, indent: usize) -> usize {
    line.bytes().take(indent).take_while(|byte| fence::is_blank(*byte)).count()
}

/// Inlined, since a result of four words that is read at once from where it was just written takes longer than the search.
#[inline(always)]
fn line_at(buf: &str, start: usize, search: usize, eof: bool) -> Option<Line> {
    match memchr(b'\n', &buf.as_bytes()[search..]) {
        Some(found) => {
            let next = search + found + 1;
            Some(Line { start, end: line_end(buf, next, start), next })
        }
        None => eof.then(|| Line { start, end: line_end(buf, buf.len(), start), next: buf.len() }),
    }
}

/// The end of the line whose successor begins at `next`, without its line break.
#[inline]
fn line_end(buf: &str, next: usize, start: usize) -> usize {
    match &buf.as_bytes()[start..next] {
        [.., b'\r', b'\n'] => next - 2,
        [.., b'\r' | b'\n'] => next - 1,
        _ => next,
    }
}

/// How many bytes of white space a text begins with. Nearly always the first byte tells.
fn blank_start(text: &str) -> usize {
    match text.as_bytes() {
        [b'!'..=b'~', ..] => 0,
        _ => text.len() - text.trim_start().len(),
    }
}

/// The text without white space at its end. Nearly always that is line breaks.
fn trim_end(text: &str) -> &str {
    let breaks = text.bytes().rev().take_while(|byte| *byte == b'\n').count();
    let text = &text[..text.len() - breaks];
    match text.as_bytes() {
        [.., b'!'..=b'~'] => text,
        _ => text.trim_end(),
    }
}

/// The text for the user: the gaps that blocks leave closed to one blank line, the ends trimmed.
#[derive(Debug, Clone, Default)]
struct Text {
    started: bool,
    gap: bool,
    /// White space that is part of the text only if more follows.
    blank: String,
}

impl Text {
    /// A block was taken out here.
    fn gap(&mut self) {
        self.gap = true;
        self.blank.clear();
    }

    fn give<'b>(&mut self, text: &'b str, out: &mut impl FnMut(Event<'b>)) {
        let lead = blank_start(text);
        if lead == text.len() {
            self.blank.push_str(text);
            return;
        }
        let mut from = lead;
        if !self.started {
            self.blank.clear();
        } else if self.gap {
            out(Event::Text(Cow::Borrowed("\n\n")));
            // What indents the first line after the gap stays.
            match text[..lead].rfind('\n') {
                Some(line) => from = line + 1,
                None => {
                    let line = self.blank.rfind('\n').map_or(0, |at| at + 1);
                    if line < self.blank.len() {
                        out(Event::Text(Cow::Owned(self.blank.split_off(line))));
                    }
                    from = 0;
                }
            }
            self.blank.clear();
        } else {
            if !self.blank.is_empty() {
                out(Event::Text(Cow::Owned(std::mem::take(&mut self.blank))));
            }
            from = 0;
        }
        self.started = true;
        self.gap = false;
        let body = trim_end(&text[from..]);
        out(Event::Text(Cow::Borrowed(body)));
        self.blank.push_str(&text[from + body.len()..]);
    }
}
