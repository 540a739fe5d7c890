//! The system prompt's part about skills: how to write commands, and what there is.
//!
//! A prompt depends on the generation and the profile alone, so it is the same to the byte each time it is made.

mod limit;
mod news;
mod notes;
mod plan;
mod section;
mod standard;
mod xml;

use std::sync::Arc;

pub use self::limit::{tokens, Limit};
pub use self::section::{Format, Section};

use self::plan::{Plan, Subject};
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::view::help::without_heading;
use crate::view::{about, View};

/// What goes into a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Its sections; they stand in the order of [`Section::ALL`] and are left out where they would be empty.
    pub sections: Vec<Section>,
    /// The names of the entries that [`Section::PreloadedSkills`] has.
    pub preloaded: Vec<String>,
    /// How long it may be. Pieces are taken in their order until the first that has no room; a last line says how many
    /// are left out. If not even the rules and that line have room, the line stands alone; if that has none, the prompt
    /// is empty.
    pub limit: Limit,
}

impl Default for Options {
    fn default() -> Self {
        Options::of(Format::Default)
    }
}

impl Options {
    /// The sections of a format, as long as they are.
    pub fn of(format: Format) -> Options {
        Options {
            sections: format.sections().to_vec(),
            preloaded: Vec::new(),
            limit: Limit::default(),
        }
    }
}

/// Where an entry stands in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In this section; if it is in several, the first of them.
    Section(Section),
    /// A command without a line of its own: the prompt names its domain.
    Domain,
    /// It would stand in this section if the prompt might be longer.
    Cut(Section),
    /// Nowhere.
    NotInPrompt(Reason),
}

/// Why an entry is not in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The view does not show it.
    NotShown,
    /// `disable-model-invocation`.
    HiddenFromModel,
    /// `include_in_prompt` or `exclude_from_prompt_profile_ids`, and no section names what is not in the prompt.
    NotIncluded,
    /// None of the prompt's sections has entries of its kind.
    NoSection,
}

impl View {
    /// The prompt of [`Options::default`], made once and kept.
    pub fn prompt(&self) -> &Arc<str> {
        self.visible.prompt.get_or_init(|| Arc::from(self.prompt_with(&Options::default())))
    }

    /// The same, if it was made before.
    pub fn prompt_made(&self) -> Option<&Arc<str>> {
        self.visible.prompt.get()
    }

    /// A prompt. A view that tells a model of nothing has none.
    pub fn prompt_with(&self, options: &Options) -> String {
        self.plan(options).into_text()
    }

    /// Where an entry stands in a prompt, or why it does not.
    pub fn placement(&self, options: &Options, id: EntryId) -> Placement {
        let Some(entry) = self.entry(id) else { return Placement::NotInPrompt(Reason::NotShown) };
        if !self.lists(id) {
            return Placement::NotInPrompt(Reason::HiddenFromModel);
        }
        let plan = self.plan(options);
        let own = plan.find(|subject| subject == Subject::Entry(id, entry.kind));
        let domain = entry.domain.as_deref().filter(|_| self.in_prompt(id));
        match own.or_else(|| {
            domain.and_then(|domain| plan.find(|subject| subject == Subject::Domain(domain)))
        }) {
            Some((section, false)) => Placement::Cut(section),
            Some((section, true)) if own.is_some() => Placement::Section(section),
            Some(_) => Placement::Domain,
            None if self.in_prompt(id) => Placement::NotInPrompt(Reason::NoSection),
            None => Placement::NotInPrompt(Reason::NotIncluded),
        }
    }

    fn plan(&self, options: &Options) -> Plan<'_> {
        let mut plan = Plan::default();
        if self.listed().next().is_none() {
            return plan;
        }
        for section in Section::ALL.iter().filter(|section| options.sections.contains(section)) {
            match section {
                Section::Rules => plan.rules(standard::RULES),
                Section::Domains => self.push_domains(&mut plan),
                Section::Commands => self.push_commands(&mut plan),
                Section::Skills => self.push_skills(&mut plan),
                Section::SkillList => self.push_skill_list(&mut plan),
                Section::AvailableSkills => self.push_available_skills(&mut plan),
                Section::QuickReference => self.push_quick_reference(&mut plan),
                Section::InlineSkills => self.push_inline_skills(&mut plan),
                Section::Notes => self.push_notes(&mut plan),
                Section::NotesList => self.push_notes_list(&mut plan),
                Section::SkillCatalog => self.push_skill_catalog(&mut plan),
                Section::PreloadedSkills => {
                    self.push_preloaded_skills(&mut plan, &options.preloaded)
                }
                Section::Other => self.push_other(&mut plan),
                Section::OtherNotes => self.push_other_notes(&mut plan),
            }
        }
        plan.fit(options.limit);
        plan
    }

    /// The entries of a kind that belong into the prompt.
    fn prompted(&self, kind: u8) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.pieces(kind | about::IN_PROMPT, kind | about::IN_PROMPT)
    }

    /// The notes and skills that a model may read but that do not belong into the prompt.
    fn not_prompted(&self) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.pieces(about::LISTED | about::COMMAND | about::IN_PROMPT, about::LISTED)
    }

    fn pieces(&self, of: u8, wanted: u8) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.those(of, wanted).map(|(id, entry)| (Subject::Entry(id, entry.kind), &**entry))
    }
}
