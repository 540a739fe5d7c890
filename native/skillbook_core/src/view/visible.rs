//! What one profile may see of a catalog.

use std::sync::{Arc, OnceLock};

use super::profile::Rule;
use crate::catalog::entry::Entry;
use crate::catalog::{Catalog, Unused};
use crate::page::diagnostic::Diagnostic;
use crate::search::scope::Scope;

/// What a view knows of each entry without looking at it: prompts and lists go over all entries several times, and those
/// lie all over the memory.
pub(crate) mod about {
    use crate::catalog::entry::Entry;
    use crate::source::{Kind, Selection};

    /// The view shows it. What it does not show has no bits.
    pub const SHOWN: u8 = 1;
    /// A model is told of it.
    pub const LISTED: u8 = 1 << 1;
    /// It belongs into the prompt.
    pub const IN_PROMPT: u8 = 1 << 2;
    /// Its source's globs put it into the prompt as a whole.
    pub const INLINE: u8 = 1 << 3;
    /// It has a usage line.
    pub const USAGE: u8 = 1 << 4;
    pub const COMMAND: u8 = 1 << 5;
    pub const SKILL: u8 = 1 << 6;
    pub const NOTE: u8 = 1 << 7;

    /// The bits of an entry that is shown.
    pub fn of(entry: &Entry, in_prompt: bool) -> u8 {
        let kind = match entry.kind {
            Kind::Command => COMMAND,
            Kind::Skill => SKILL,
            Kind::Note => NOTE,
        };
        let fields = entry.fields();
        let more = [
            (!fields.hidden_from_model, LISTED),
            (in_prompt, IN_PROMPT),
            (entry.selection == Selection::Inline, INLINE),
            (fields.usage.is_some(), USAGE),
        ];
        more.iter().filter(|(is, _)| *is).fold(SHOWN | kind, |bits, (_, bit)| bits | bit)
    }
}

/// What one profile may see of a catalog, computed once and kept there.
#[derive(Debug)]
pub(crate) struct Visible {
    pub(super) rule: Rule,
    /// Bits of [`about`].
    pub(super) about: Vec<u8>,
    pub(super) unused: Vec<Unused>,
    pub(super) count: usize,
    pub(crate) prompt: OnceLock<Arc<str>>,
    pub(super) relations: OnceLock<Vec<Diagnostic>>,
    pub(super) search: OnceLock<Scope>,
}

impl Visible {
    pub(super) fn new(catalog: &Catalog, rule: Rule) -> Visible {
        let about = |entry: &Arc<Entry>| {
            if rule.admits(entry) {
                about::of(entry, rule.in_prompt(entry))
            } else {
                0
            }
        };
        let mut about: Vec<u8> = catalog.entries().iter().map(about).collect();
        let unused = catalog.resolve(&mut about);
        let count = about.iter().filter(|about| **about != 0).count();
        let (prompt, relations, search) = Default::default();
        Visible { rule, about, unused, count, prompt, relations, search }
    }
}
