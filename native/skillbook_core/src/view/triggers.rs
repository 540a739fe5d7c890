//! The entries that may be loaded for a request before a model asks for them: those in the
//! profile's prompt, those that it always gets, and those whose `trigger_keywords` are in a text.
//! How keywords are compared is in `search/triggers.rs`.

use rustc_hash::FxHashSet;

use super::about;
use super::view::View;
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::search::triggers::Triggers;
use crate::source::Trust;

/// The part of a text in which keywords are searched, in bytes. A request is shorter; a longer
/// text has a document pasted into it.
pub const LONGEST: usize = 16 * 1024;

/// An entry with a keyword of it that is in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    /// The entry.
    pub id: EntryId,
    /// The keyword, as its author wrote it.
    pub keyword: String,
}

impl View {
    /// Whether the entry may be loaded for a request: a skill or a command in the profile's prompt.
    pub fn may_pick(&self, id: EntryId) -> bool {
        let about = self.about(id);
        about & (about::LISTED | about::IN_PROMPT) == about::LISTED | about::IN_PROMPT
            && about & (about::SKILL | about::COMMAND) != 0
    }

    /// The entries that may be loaded, in the order of their names.
    pub fn pickable(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        let shown = about::LISTED | about::IN_PROMPT | about::NOTE;
        self.those(shown, about::LISTED | about::IN_PROMPT).map(|(id, entry)| (id, &**entry))
    }

    /// Those whose own fields may decide that they are loaded. Entries of low trust are not among
    /// them: the text of a stranger must not decide that it is part of every conversation.
    fn trusted(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.pickable().filter(|(_, entry)| entry.trust > Trust::Low)
    }

    /// The entries that may be loaded and name the profile in `proactive_for_profile_ids`.
    pub fn proactive(&self) -> impl Iterator<Item = EntryId> + '_ {
        let profile = self.profile();
        self.trusted()
            .filter(|(_, entry)| profile.is_among(&entry.fields().proactive_for))
            .map(|(id, _)| id)
    }

    /// The entries that may be loaded and have a keyword in the text: the longest keyword first,
    /// then the one that comes first in the text, then by name.
    pub fn triggered(&self, text: &str) -> Vec<Triggered> {
        let triggers = self.visible.triggers.get_or_init(|| {
            let keywords =
                |(id, entry): (EntryId, &'_ Entry)| (id.0, entry.fields().triggers.clone());
            Triggers::new(self.trusted().map(keywords))
        });
        let mut found = triggers.find(&text[..text.floor_char_boundary(LONGEST)]);
        found.sort_by_key(|(at, keyword)| (usize::MAX - keyword.words(), *at, keyword.owner));
        let mut seen = FxHashSet::default();
        found
            .into_iter()
            .filter(|(_, keyword)| seen.insert(keyword.owner))
            .map(|(_, keyword)| Triggered {
                id: EntryId(keyword.owner),
                keyword: keyword.text.clone(),
            })
            .collect()
    }
}
