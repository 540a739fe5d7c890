//! The visible set of a profile: one byte for each entry that it may see, computed once per
//! generation and profile.

use std::sync::{Arc, Mutex, OnceLock};

use super::about;
use super::classes::{self, Classes};
use super::profile::Rule;
use crate::catalog::entry::Entry;
use crate::catalog::{Catalog, EntryId, Unused};
use crate::page::diagnostic::Diagnostic;
use crate::search::triggers::Triggers;

/// The visible set of a profile, and the results that are derived from it on demand.
#[derive(Debug)]
pub(crate) struct Visible {
    pub(super) rule: Rule,
    pub(super) bits: Bits,
    pub(super) unused: Vec<Unused>,
    pub(super) count: usize,
    /// See [`View::generation`](super::view::View::generation).
    pub(super) generation: OnceLock<u64>,
    pub(crate) prompt: OnceLock<Arc<str>>,
    /// The last default prompt with used commands, and these.
    pub(crate) used: Mutex<Option<(Vec<String>, String)>>,
    pub(super) relations: OnceLock<Vec<Diagnostic>>,
    pub(super) triggers: OnceLock<Triggers>,
    /// The positions of listed names, for suggestions.
    pub(super) names: OnceLock<Vec<u32>>,
}

impl Visible {
    pub(super) fn new(catalog: &Catalog, classes: &Classes, rule: Rule) -> Visible {
        let mut about = vec![0; catalog.entries().len()];
        let (all_names, all_handlers) = (!rule.has_globs(), catalog.handlers().is_empty());
        for (at, bits) in classes.admitted(&rule) {
            let of_rule = || bits_of(&rule, catalog, &catalog.entries()[at]);
            about[at] = match bits {
                classes::Bits::Same(bits) if all_names => bits,
                classes::Bits::Handled(bits) if all_names && all_handlers => bits,
                _ => of_rule(),
            };
            debug_assert_eq!(about[at], of_rule());
        }
        // First the rule, then precedence: only visible entries compete.
        let unused = catalog.resolve(&mut about, rule.profile.tenant.name().is_some());
        let count = about.iter().filter(|about| **about != 0).count();
        let bits = Bits::new(about, count);
        let (generation, prompt, relations) = Default::default();
        let (triggers, names) = Default::default();
        Visible {
            rule,
            bits,
            unused,
            count,
            generation,
            prompt,
            used: Mutex::default(),
            relations,
            triggers,
            names,
        }
    }

    /// The bytes that it takes itself.
    pub(super) fn bytes(&self) -> usize {
        let bits = match &self.bits {
            Bits::OfAll(bits) => bits.len(),
            Bits::OfShown(bits) => size_of_val(&bits[..]),
        };
        size_of::<Visible>() + bits + size_of_val(&self.unused[..])
    }
}

/// The bits of an entry of a class that the rule admits.
fn bits_of(rule: &Rule, catalog: &Catalog, entry: &Entry) -> u8 {
    if !rule.admits_one(entry) {
        return 0;
    }
    let broken = catalog.is_broken(entry);
    let listed = !broken && rule.lists(entry.fields());
    about::of(entry, listed, !broken && rule.in_prompt(entry))
}

/// The bits of [`about`] of entries, by their ids.
#[derive(Debug)]
pub(super) enum Bits {
    OfAll(Vec<u8>),
    /// Those that are not 0, in order. A tenant of thousands sees few of all entries.
    OfShown(Vec<(u32, u8)>),
}

impl Bits {
    fn new(all: Vec<u8>, shown: usize) -> Bits {
        if shown * size_of::<(u32, u8)>() * 2 > all.len() {
            return Bits::OfAll(all);
        }
        Bits::OfShown((0..).zip(all).filter(|(_, bits)| *bits != 0).collect())
    }

    /// The bits of an entry; 0 for a hidden one.
    pub fn get(&self, id: EntryId) -> u8 {
        match self {
            Bits::OfAll(bits) => bits.get(id.0 as usize).copied().unwrap_or(0),
            Bits::OfShown(bits) => {
                bits.binary_search_by_key(&id.0, |(id, _)| *id).map_or(0, |at| bits[at].1)
            }
        }
    }

    /// The shown entries from an id on, with their bits, in order.
    pub fn shown(&self, from: usize) -> impl Iterator<Item = (EntryId, u8)> + '_ {
        let (all, shown): (&[u8], &[(u32, u8)]) = match self {
            Bits::OfAll(bits) => (bits.get(from..).unwrap_or_default(), &[]),
            Bits::OfShown(bits) => {
                (&[], &bits[bits.partition_point(|(id, _)| (*id as usize) < from)..])
            }
        };
        let all = (from as u32..).zip(all.iter().copied()).filter(|(_, bits)| *bits != 0);
        all.chain(shown.iter().copied()).map(|(id, bits)| (EntryId(id), bits))
    }
}
