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
    /// Where it begins in the text; the first piece of a section begins with the section's head.
    start: usize,
    end: usize,
    /// The text that closes its section.
    tail: &'static str,
    is_included: bool,
}

#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    text: String,
    /// The end of the rules. They are never cut in parts.
    rules: usize,
    pieces: Vec<Piece<'a>>,
    /// The index of the current section's first piece.
    first: usize,
    /// The current section, with its tail and where its next piece begins.
    current: Option<(Section, &'static str, usize)>,
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
        self.first = self.pieces.len();
        self.current = Some((section, tail, self.text.len()));
        self.text.push_str(head);
        write(self);
        match self.pieces.len() == self.first {
            true => self.text.truncate(start),
            false => self.text.push_str(tail),
        }
    }

    /// Adds a piece to the current section, with hidden characters made visible.
    pub(super) fn piece(&mut self, subject: Subject<'a>, write: impl FnOnce(&mut String)) {
        let from = self.text.len();
        write(&mut self.text);
        hidden::reveal(&mut self.text, from);
        if let Some((section, tail, start)) = &mut self.current {
            let (start, end) = (std::mem::replace(start, self.text.len()), self.text.len());
            let piece = Piece { subject, section: *section, start, end, tail, is_included: true };
            self.pieces.push(piece);
        }
    }

    /// Whether the current section has no piece yet.
    pub(super) fn is_first(&self) -> bool {
        self.pieces.len() == self.first
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The section of a subject, and whether it is still in the text. A subject may have pieces in
    /// several sections.
    pub(super) fn find(&self, wanted: impl Fn(Subject<'a>) -> bool) -> Option<(Section, bool)> {
        let mut pieces = self.pieces.iter().filter(|piece| wanted(piece.subject));
        let first = pieces.clone().next()?;
        let piece = pieces.find(|piece| piece.is_included).unwrap_or(first);
        Some((piece.section, piece.is_included))
    }

    /// Cuts the prompt to a limit, and adds a line about the rest.
    ///
    /// The entries that the caller wants pre-loaded are taken first, then the other pieces in the
    /// order of the text, up to the first that does not fit. The line also takes space, and its
    /// length depends on the pieces that are left out. So pieces are given up again, the last one
    /// first, until both fit.
    pub(super) fn fit(&mut self, limit: Limit) {
        if limit.is_none() || limit.holds(Size::of(&self.text)) {
            return;
        }
        let mut order: Vec<usize> = (0..self.pieces.len()).collect();
        order.sort_by_key(|at| self.pieces[*at].section != Section::PreloadedSkills);
        let mut size = Size::of(&self.text[..self.rules]);
        let mut sizes = vec![size];
        let mut opened: Option<Section> = None;
        for at in &order {
            let piece = &self.pieces[*at];
            size = size.plus(&self.text[piece.start..piece.end]);
            if opened != Some(piece.section) {
                let is_first = opened.is_none() && self.rules == 0;
                size = size.plus(if is_first { "" } else { "\n" }).plus(piece.tail);
                opened = Some(piece.section);
            }
            if !limit.holds(size) {
                break;
            }
            sizes.push(size);
        }
        // `sizes` has the size after each number of pieces, so after a pop its length is the number
        // to try.
        while let Some(size) = sizes.pop() {
            for (rank, at) in order.iter().enumerate() {
                self.pieces[*at].is_included = rank < sizes.len();
            }
            let line = self.left_out(false);
            let is_empty = self.rules == 0 && sizes.is_empty();
            let blank = if is_empty || line.is_empty() { "" } else { "\n" };
            if limit.holds(size.plus(blank).plus(&line)) {
                self.text = format!("{}{blank}{line}", self.included());
                return;
            }
        }
        self.text = self.left_out(self.rules > 0);
        if !limit.holds(Size::of(&self.text)) {
            self.text.clear();
        }
    }

    /// The rules and the included pieces, with the heads and tails of their sections.
    fn included(&self) -> String {
        let mut text = self.text[..self.rules].to_owned();
        let mut open: Option<(Section, &str)> = None;
        for piece in self.pieces.iter().filter(|piece| piece.is_included) {
            if open.is_none_or(|(section, _)| section != piece.section) {
                text.push_str(open.map_or("", |(_, tail)| tail));
                if !text.is_empty() {
                    text.push('\n');
                }
                open = Some((piece.section, piece.tail));
            }
            text.push_str(&self.text[piece.start..piece.end]);
        }
        text.push_str(open.map_or("", |(_, tail)| tail));
        text
    }

    /// The line about the pieces that are not included. Entries that the prompt has in another
    /// section do not count, except pre-loaded ones: only that section has their text.
    fn left_out(&self, rules: bool) -> String {
        let id = |piece: &Piece| match piece.subject {
            Subject::Entry(id, _) => Some(id),
            _ => None,
        };
        let left_out = || self.pieces.iter().filter(|piece| !piece.is_included);
        let preloaded: FxHashSet<EntryId> = left_out()
            .filter(|piece| piece.section == Section::PreloadedSkills)
            .filter_map(id)
            .collect();
        let included = self.pieces.iter().filter(|piece| piece.is_included).filter_map(id);
        let mut seen: FxHashSet<EntryId> = included.chain(preloaded.iter().copied()).collect();
        let [mut domains, mut commands, mut skills, mut notes] = [0; 4];
        for piece in left_out() {
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
        for (count, noun) in [
            (preloaded.len(), "pre-loaded skill"),
            (domains, "domain"),
            (commands, "command"),
            (skills, "skill"),
            (notes, "note"),
        ] {
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
