//! A prompt while it is built: its text, and the subject and the end of each piece.
//!
//! With the ends, a prompt can be cut to a limit after it was built, at the end of any piece.

use rustc_hash::FxHashSet;

use crate::catalog::EntryId;
use crate::hidden;
use crate::prompt::limit::{Limit, Size};
use crate::prompt::section::Section;
use crate::source::Kind;

/// The subject of a piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject<'a> {
    Domain(&'a str),
    Entry(EntryId, Kind),
    /// An entry that another entry of its name shadows.
    Shadowed(Kind),
    /// The number of further commands, which have no piece.
    More(usize),
}

#[derive(Debug)]
struct Piece<'a> {
    subject: Subject<'a>,
    section: Section,
    /// Where it ends in the text.
    end: usize,
    /// The text that closes its section.
    tail: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    text: String,
    /// The end of the rules. They are never cut in parts.
    rules: usize,
    pieces: Vec<Piece<'a>>,
    /// The number of pieces that are still in the text.
    included: usize,
    /// The index of the current section's first piece.
    first: usize,
    current: Option<(Section, &'static str)>,
}

impl<'a> Plan<'a> {
    pub(super) fn rules(&mut self, text: &str) {
        self.text.push_str(text);
        self.rules = self.text.len();
    }

    /// Adds a section with head and tail. Without a piece it is left out.
    pub(super) fn section(
        &mut self,
        section: Section,
        head: &str,
        tail: &'static str,
        write: impl FnOnce(&mut Plan<'a>),
    ) {
        let start = self.text.len();
        if start > 0 {
            self.text.push('\n');
        }
        self.text.push_str(head);
        self.first = self.pieces.len();
        self.current = Some((section, tail));
        write(self);
        match self.pieces.len() == self.first {
            true => self.text.truncate(start),
            false => self.text.push_str(tail),
        }
        self.included = self.pieces.len();
    }

    /// Adds a piece to the current section, with hidden characters made visible.
    pub(super) fn piece(&mut self, subject: Subject<'a>, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        hidden::reveal(&mut self.text, start);
        if let Some((section, tail)) = self.current {
            self.pieces.push(Piece { subject, section, end: self.text.len(), tail });
        }
    }

    /// Whether the current section has no piece yet.
    pub(super) fn is_first(&self) -> bool {
        self.pieces.len() == self.first
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The section of a subject, and whether it is still in the text.
    pub(super) fn find(&self, wanted: impl Fn(Subject<'a>) -> bool) -> Option<(Section, bool)> {
        let at = self.pieces.iter().position(|piece| wanted(piece.subject))?;
        Some((self.pieces[at].section, at < self.included))
    }

    /// Cuts the prompt to a limit: includes the pieces before the first that does not fit, and adds
    /// a line about the rest.
    ///
    /// The line also takes space, and its length depends on the pieces that are left out. So pieces
    /// are removed from the end until both fit.
    pub(super) fn fit(&mut self, limit: Limit) {
        if limit.is_none() {
            return;
        }
        let mut size = Size::of(&self.text[..self.rules]);
        let mut sizes = vec![size];
        let mut end = self.rules;
        for piece in &self.pieces {
            size = size.plus(&self.text[end..piece.end]);
            end = piece.end;
            if !limit.holds(size) {
                break;
            }
            sizes.push(size);
        }
        // Everything fits, with the tail of the last section.
        if sizes.len() > self.pieces.len() && limit.holds(size.plus(&self.text[end..])) {
            return;
        }
        // `sizes` has the size after each number of pieces, so after a pop its length is the number
        // to try.
        while let Some(size) = sizes.pop() {
            let included = sizes.len();
            let last = self.pieces[..included].last();
            let (end, tail) = last.map_or((self.rules, ""), |piece| (piece.end, piece.tail));
            let line = self.left_out(included, false);
            let blank = if end > 0 && !line.is_empty() { "\n" } else { "" };
            let rest = format!("{tail}{blank}{line}");
            if limit.holds(size.plus(&rest)) {
                self.text.truncate(end);
                self.text.push_str(&rest);
                self.included = included;
                return;
            }
        }
        self.included = 0;
        self.text = self.left_out(0, self.rules > 0);
        if !limit.holds(Size::of(&self.text)) {
            self.text.clear();
        }
    }

    /// The line about all pieces from this one on. Entries that the prompt has in another section
    /// do not count.
    fn left_out(&self, included: usize, rules: bool) -> String {
        let (before, after) = self.pieces.split_at(included);
        let id = |piece: &Piece| match piece.subject {
            Subject::Entry(id, _) => Some(id),
            _ => None,
        };
        let mut seen: FxHashSet<EntryId> = before.iter().filter_map(id).collect();
        let [mut domains, mut commands, mut skills, mut notes] = [0; 4];
        for piece in after {
            match piece.subject {
                Subject::Domain(_) => domains += 1,
                Subject::More(count) => commands += count,
                Subject::Entry(id, _) if !seen.insert(id) => {}
                Subject::Entry(_, kind) | Subject::Shadowed(kind) => match kind {
                    Kind::Command => commands += 1,
                    Kind::Skill => skills += 1,
                    Kind::Note => notes += 1,
                },
            }
        }
        let mut parts: Vec<String> = Vec::new();
        if rules {
            parts.push("the rules for commands".to_owned());
        }
        for (count, noun) in
            [(domains, "domain"), (commands, "command"), (skills, "skill"), (notes, "note")]
        {
            match count {
                0 => {}
                1 => parts.push(format!("1 {noun}")),
                _ => parts.push(format!("{count} {noun}s")),
            }
        }
        let what = match parts.split_last() {
            None => return String::new(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        };
        format!(
            "Left out for lack of space: {what}. \
             `get_skill` lists everything, `get_skill: NAME` shows one entry.\n"
        )
    }
}
