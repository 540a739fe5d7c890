//! The visible set of a profile: one byte per entry, computed once per generation and profile.

use std::sync::{Arc, Mutex, OnceLock};

use super::profile::Rule;
use crate::catalog::entry::Entry;
use crate::catalog::{Catalog, Unused};
use crate::page::diagnostic::Diagnostic;
use crate::search::scope::Scope;
use crate::search::triggers::Triggers;

/// The bits that a view knows of each entry. Prompts and lists go through all entries several
/// times; reading the bits is one pass over an array, while the entries are scattered over memory.
pub(crate) mod about {
    use crate::catalog::entry::Entry;
    use crate::source::{Kind, Selection};

    /// The view shows the entry. A hidden entry has no bits set.
    pub const SHOWN: u8 = 1;
    /// The entry is mentioned to a model.
    pub const LISTED: u8 = 1 << 1;
    /// The entry is in the prompt.
    pub const IN_PROMPT: u8 = 1 << 2;
    /// The globs of its source put the whole text into the prompt.
    pub const INLINE: u8 = 1 << 3;
    /// The entry has a usage line.
    pub const USAGE: u8 = 1 << 4;
    pub const COMMAND: u8 = 1 << 5;
    pub const SKILL: u8 = 1 << 6;
    pub const NOTE: u8 = 1 << 7;

    /// The bits of a shown entry.
    pub fn of(entry: &Entry, listed: bool, in_prompt: bool) -> u8 {
        let kind = match entry.kind {
            Kind::Command => COMMAND,
            Kind::Skill => SKILL,
            Kind::Note => NOTE,
        };
        let fields = entry.fields();
        let more = [
            (listed, LISTED),
            (in_prompt, IN_PROMPT),
            (entry.selection == Selection::Inline, INLINE),
            (fields.usage.is_some(), USAGE),
        ];
        more.iter().filter(|(is, _)| *is).fold(SHOWN | kind, |bits, (_, bit)| bits | bit)
    }
}

/// The visible set of a profile, and the results that are derived from it on demand.
#[derive(Debug)]
pub(crate) struct Visible {
    pub(super) rule: Rule,
    /// The bits of [`about`] for each entry.
    pub(super) about: Vec<u8>,
    pub(super) unused: Vec<Unused>,
    pub(super) count: usize,
    /// See [`View::generation`](super::view::View::generation).
    pub(super) generation: OnceLock<u64>,
    pub(crate) prompt: OnceLock<Arc<str>>,
    /// The last default prompt with used commands, and these.
    pub(crate) used: Mutex<Option<(Vec<String>, String)>>,
    pub(super) relations: OnceLock<Vec<Diagnostic>>,
    pub(super) search: OnceLock<Scope>,
    pub(super) triggers: OnceLock<Triggers>,
    /// The positions of listed names, for suggestions.
    pub(super) names: OnceLock<Vec<u32>>,
}

impl Visible {
    pub(super) fn new(catalog: &Catalog, rule: Rule) -> Visible {
        let about = |entry: &Arc<Entry>| {
            if rule.admits(entry) {
                about::of(entry, rule.lists(entry.fields()), rule.in_prompt(entry))
            } else {
                0
            }
        };
        let mut about: Vec<u8> = catalog.entries().iter().map(about).collect();
        for (about, entry) in about.iter_mut().zip(catalog.entries()) {
            if !catalog.handlers().is_empty() && catalog.is_broken(entry) {
                *about &= !(about::LISTED | about::IN_PROMPT);
            }
        }
        // First the rule, then precedence: only visible entries compete.
        let unused = catalog.resolve(&mut about, rule.profile.tenant.name().is_some());
        let count = about.iter().filter(|about| **about != 0).count();
        let (generation, prompt, relations) = Default::default();
        let (search, triggers, names) = Default::default();
        Visible {
            rule,
            about,
            unused,
            count,
            generation,
            prompt,
            used: Mutex::default(),
            relations,
            search,
            triggers,
            names,
        }
    }
}
