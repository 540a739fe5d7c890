//! A prompt while it is built: its text, and the subject and the place of each piece.
//!
//! With the places, pieces can be left out after the prompt was built, so that it fits a limit.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::catalog::EntryId;
use crate::hidden;
use crate::prompt::limit::{Limit, Size};
use crate::prompt::order::Order;
use crate::prompt::section::Section;
use crate::source::Kind;

/// The subject of a piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The index of its part.
    part: usize,
    /// Its place in the text.
    place: Range<usize>,
    is_included: bool,
}

/// A section of the text, with the texts around its pieces.
#[derive(Debug)]
struct Part {
    section: Section,
    head: Range<usize>,
    separator: &'static str,
    tail: &'static str,
    /// The index of its first piece.
    first: usize,
}

#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    text: String,
    /// The end of the rules. They are never cut in parts.
    rules: usize,
    parts: Vec<Part>,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Plan<'a> {
    pub(super) fn rules(&mut self, text: &str) {
        self.text.push_str(text);
        self.rules = self.text.len();
    }

    /// Adds a section with a head, a separator between its pieces, and a tail. Without a piece it
    /// is left out.
    pub(super) fn section(
        &mut self,
        section: Section,
        [head, separator, tail]: [&'static str; 3],
        write: impl FnOnce(&mut Plan<'a>),
    ) {
        let start = self.text.len();
        if start > 0 {
            self.text.push('\n');
        }
        let head_start = self.text.len();
        self.text.push_str(head);
        let first = self.pieces.len();
        let head = head_start..self.text.len();
        self.parts.push(Part { section, head, separator, tail, first });
        write(self);
        if self.pieces.len() == first {
            self.text.truncate(start);
            self.parts.pop();
        } else {
            self.text.push_str(tail);
        }
    }

    /// Adds a piece to the current section, with hidden characters made visible.
    pub(super) fn piece(&mut self, subject: Subject<'a>, write: impl FnOnce(&mut String)) {
        let Some(part) = self.parts.last() else { return };
        if self.pieces.len() > part.first {
            self.text.push_str(part.separator);
        }
        let start = self.text.len();
        write(&mut self.text);
        hidden::reveal(&mut self.text, start);
        let place = start..self.text.len();
        let part = self.parts.len() - 1;
        self.pieces.push(Piece { subject, part, place, is_included: true });
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
        Some((self.section_of(piece), piece.is_included))
    }

    fn section_of(&self, piece: &Piece) -> Section {
        self.parts[piece.part].section
    }

    /// Whether the prompt is longer than a limit.
    pub(super) fn exceeds(&self, limit: Limit) -> bool {
        !limit.is_none() && !limit.holds(Size::of(&self.text))
    }

    /// Cuts the prompt to a limit, and adds a line about the rest.
    ///
    /// Pieces are taken in their order, those of equal rank in the order of the text, up to the
    /// first that does not fit. So a larger limit keeps all pieces of a smaller one. The line also
    /// takes space, and its length depends on the pieces that are left out. So pieces are given up
    /// again, the last one first, until both fit.
    pub(super) fn fit(&mut self, limit: Limit, by: &Order<'a>, can_search: bool) {
        let mut order: Vec<usize> = (0..self.pieces.len()).collect();
        order.sort_by_cached_key(|at| {
            let piece = &self.pieces[*at];
            (by.rank(self.section_of(piece), piece.subject), *at)
        });
        let mut size = Size::of(&self.text[..self.rules]);
        let mut sizes = vec![size];
        let mut opened = vec![false; self.parts.len()];
        let mut is_empty = self.rules == 0;
        for at in &order {
            let piece = &self.pieces[*at];
            let part = &self.parts[piece.part];
            size = match std::mem::replace(&mut opened[piece.part], true) {
                true => size.plus(part.separator),
                false => {
                    let blank = if is_empty { "" } else { "\n" };
                    size.plus(blank).plus(&self.text[part.head.clone()]).plus(part.tail)
                }
            };
            size = size.plus(&self.text[piece.place.clone()]);
            is_empty = false;
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
            let line = self.left_out(false, can_search);
            let is_empty = self.rules == 0 && sizes.is_empty();
            let blank = if is_empty || line.is_empty() { "" } else { "\n" };
            if limit.holds(size.plus(blank).plus(&line)) {
                self.text = format!("{}{blank}{line}", self.included());
                return;
            }
        }
        self.text = self.left_out(self.rules > 0, can_search);
        if !limit.holds(Size::of(&self.text)) {
            self.text.clear();
        }
    }

    /// The rules and the included pieces in the order of the text, with the heads, separators and
    /// tails of their sections.
    fn included(&self) -> String {
        let mut text = self.text[..self.rules].to_owned();
        let mut open: Option<usize> = None;
        let tail = |open: Option<usize>| open.map_or("", |part| self.parts[part].tail);
        for piece in self.pieces.iter().filter(|piece| piece.is_included) {
            let part = &self.parts[piece.part];
            if open == Some(piece.part) {
                text.push_str(part.separator);
            } else {
                text.push_str(tail(open));
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&self.text[part.head.clone()]);
                open = Some(piece.part);
            }
            text.push_str(&self.text[piece.place.clone()]);
        }
        text.push_str(tail(open));
        text
    }

    /// The line about the pieces that are not included. Entries that the prompt has in another
    /// section do not count, except pre-loaded ones: only that section has their text.
    fn left_out(&self, rules: bool, can_search: bool) -> String {
        let id = |piece: &Piece| match piece.subject {
            Subject::Entry(id, _) => Some(id),
            _ => None,
        };
        let left_out = || self.pieces.iter().filter(|piece| !piece.is_included);
        let preloaded: FxHashSet<EntryId> = left_out()
            .filter(|piece| self.section_of(piece) == Section::PreloadedSkills)
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
        let search =
            if can_search { ", `skills.search --query \"WORDS\"` finds entries" } else { "" };
        format!(
            "Left out for lack of space: {what}. \
             `get_skill` lists everything, `get_skill: NAME` shows one entry{search}.\n"
        )
    }
}
