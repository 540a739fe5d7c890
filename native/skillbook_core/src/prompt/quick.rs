//! The quick reference: the usage lines of the commands that a model needs most often.

use rustc_hash::FxHashMap;

use crate::catalog::entry::Entry;
use crate::prompt::foreign::push_line;
use crate::prompt::plan::{Plan, Subject};
use crate::prompt::section::Section;
use crate::source::{Effects, Trust};
use crate::view::{about, View};

/// The maximum number of usage lines, and of those of used commands.
const QUICK: usize = 20;
const USED: usize = 10;
/// First words of actions that find something, that read, and that remove, if the page does not say
/// otherwise. The words of reading are those of `Skillbook.Entry.effect/1`.
const FINDS: [&str; 3] = ["search", "find", "list"];
const READS: [&str; 4] = ["get", "read", "show", "count"];
const REMOVES: [&str; 10] = [
    "delete", "remove", "archive", "trash", "cancel", "clear", "purge", "destroy", "drop", "revoke",
];

/// The place of a command. Those that the profile used come first, then those that the index of
/// their domain names, then the others, at last those that remove something. Within a tier, one of
/// each domain comes in turn.
type Place<'a> = (Tier, usize, &'a str);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Used,
    Named,
    Other,
    Removing,
}

impl View {
    pub(super) fn push_quick_reference<'a>(&'a self, plan: &mut Plan<'a>, used: &[String]) {
        let used: FxHashMap<&str, usize> =
            used.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let wanted = about::COMMAND | about::IN_PROMPT | about::USAGE;
        let mut commands: Vec<(Option<&str>, u8, Subject, &Entry)> = self
            .pieces(wanted | about::INLINE, wanted)
            .map(|(subject, entry)| (entry.domain.as_deref(), class(entry), subject, entry))
            .collect();
        // Entries are sorted by name, and a stable sort keeps that order within a class.
        commands.sort_by_key(|(domain, class, ..)| (*domain, *class));
        // Names that the view does not show take no place.
        let mut found: Vec<usize> =
            commands.iter().filter_map(|(.., entry)| used.get(&*entry.name).copied()).collect();
        found.sort_unstable();
        let used = |name: &str| {
            let at = used.get(name).copied()?;
            found.binary_search(&at).ok().filter(|place| *place < USED)
        };
        let mut ranked: Vec<(Place, Subject, &str)> = Vec::with_capacity(commands.len());
        for group in commands.chunk_by(|one, other| one.0 == other.0) {
            let named = group[0].0.map(|domain| self.named(domain)).unwrap_or_default();
            let mut turns = [0; 2];
            for (domain, class, subject, entry) in group {
                let place = match (used(&entry.name), named.get(&*entry.name)) {
                    (Some(at), _) => (Tier::Used, at),
                    (None, Some(at)) => (Tier::Named, *at),
                    (None, None) => {
                        let removes = usize::from(*class == REMOVING);
                        turns[removes] += 1;
                        ([Tier::Other, Tier::Removing][removes], turns[removes])
                    }
                };
                let usage = entry.fields().usage.as_deref().unwrap_or_default();
                ranked.push(((place.0, place.1, domain.unwrap_or("")), *subject, usage));
            }
        }
        let more = ranked.len().saturating_sub(QUICK);
        if more > 0 {
            // Only the first few of perhaps thousands are needed, so a full sort would be wasted.
            ranked.select_nth_unstable_by_key(QUICK, |(place, ..)| *place);
            ranked.truncate(QUICK);
        }
        ranked.sort_by_key(|(place, ..)| *place);
        plan.section(Section::QuickReference, ["## Quick reference\n\n", "", ""], |plan| {
            for (_, subject, usage) in ranked {
                plan.piece(subject, |out| {
                    out.push_str("  ");
                    push_line(out, usage);
                    out.push('\n');
                });
            }
            if more > 0 {
                plan.piece(Subject::More(more), |out| {
                    out.push_str(&format!(
                        "  and {more} more; list them with `get_skill: DOMAIN`\n"
                    ));
                });
            }
        });
    }

    /// The commands that the index of a domain names for the quick reference, with their places.
    /// Those that the view does not show take no place. For authors of low trust there are none.
    fn named(&self, domain: &str) -> FxHashMap<&str, usize> {
        let index = self.domain(domain).and_then(|domain| domain.index());
        let Some(index) = index.filter(|index| index.source.trust > Trust::Low) else {
            return FxHashMap::default();
        };
        let mut places = FxHashMap::default();
        for name in &index.fields().quick_reference {
            let full = format!("{domain}.{name}");
            let found = self.find_named(&full).or_else(|| self.find_named(name));
            if let Some(entry) = found.filter(|id| self.lists(*id)).and_then(|id| self.entry(id)) {
                let place = places.len();
                places.entry(&*entry.name).or_insert(place);
            }
        }
        places
    }
}

/// The order of commands in a domain.
const REMOVING: u8 = 4;

fn class(entry: &Entry) -> u8 {
    let action = entry.name.rsplit('.').next().unwrap_or_default();
    let word = action.split(['_', '-']).next().unwrap_or_default();
    let effects = entry.fields().effects;
    match (effects, word) {
        (Some(Effects::Write) | None, word) if REMOVES.contains(&word) => REMOVING,
        (Some(Effects::Write), _) => 3,
        (_, word) if FINDS.contains(&word) => 0,
        (_, word) if READS.contains(&word) => 1,
        (Some(Effects::Read), _) => 2,
        (None, _) => 3,
    }
}
