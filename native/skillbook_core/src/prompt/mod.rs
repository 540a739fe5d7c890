//! Builds the system prompt's part about skills: how to write commands, and which skills, commands
//! and notes exist.
//!
//! A prompt depends only on the catalog's generation, the profile and the options, so it is the
//! same to the byte each time. Models cache the beginning of a conversation, and a changed byte
//! would make the cache useless.
//!
//! | module | contents |
//! |---|---|
//! | `section` | the sections, and the formats that combine them |
//! | `standard`, `notes`, `xml` | the text of the sections |
//! | `foreign` | text of documents, which must not look like the prompt's own |
//! | `quick` | the order of the quick reference |
//! | `plan`, `limit`, `order` | fitting a prompt into a limit of characters or tokens |
//! | `news` | the changes since a prompt was made |

mod foreign;
mod limit;
mod news;
mod notes;
mod order;
mod plan;
mod quick;
mod section;
mod standard;
mod xml;

use std::sync::{Arc, PoisonError};

pub use self::limit::{tokens, Limit};
pub use self::section::{Format, Section};

use self::order::Order;
use self::plan::{Plan, Subject};
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::view::help::without_heading;
use crate::view::{about, View};

/// The command that finds entries, if the view lists it.
const SEARCH: &str = "skills.search";

/// The contents of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The sections. They come in the order of [`Section::ALL`]; empty ones are left out.
    pub sections: Vec<Section>,
    /// The names of the entries in [`Section::PreloadedSkills`].
    pub preloaded: Vec<String>,
    /// The names of the entries that stay if the limit cuts the prompt, nearest first. They change
    /// which entries stay, never the order of the text, nor a prompt within the limit.
    pub nearest: Vec<String>,
    /// The names of the commands that come first in [`Section::QuickReference`], the most used ones
    /// first; up to ten that the view shows.
    pub used: Vec<String>,
    /// The maximum length. The preloaded entries are included first, then the proactive ones, then
    /// the nearest ones, then the other pieces in order, up to the first that does not fit. Among
    /// proactive and nearest entries the lines of lists come before whole texts. A last line counts
    /// the rest. If the rules and that line do not fit together, the prompt is only the line; if
    /// the line does not fit either, the prompt is empty.
    pub limit: Limit,
}

impl Default for Options {
    fn default() -> Self {
        Options::of(Format::Default)
    }
}

impl Options {
    /// The sections of a format, without a limit.
    pub fn of(format: Format) -> Options {
        Options {
            sections: format.sections().to_vec(),
            preloaded: Vec::new(),
            nearest: Vec::new(),
            used: Vec::new(),
            limit: Limit::default(),
        }
    }
}

/// The place of an entry in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In this section, the first if there are several.
    Section(Section),
    /// A command that is covered by the line of its domain.
    Domain,
    /// Left out of this section because of the limit.
    Cut(Section),
    /// Not in the prompt.
    NotInPrompt(Reason),
}

/// The reason why an entry is not in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The view hides it.
    NotShown,
    /// `disable-model-invocation`.
    HiddenFromModel,
    /// The profile does not have the `connection` that it needs.
    NotConnected,
    /// Its handler does not exist.
    Broken,
    /// `include_in_prompt` or `exclude_from_prompt_profile_ids`, and no section lists the entries
    /// that are not included.
    NotIncluded,
    /// No section of the prompt has entries of its kind.
    NoSection,
}

/// The entries of a view whose prompt is made anew for each generation.
const MANY: usize = 1000;

impl View {
    /// The prompt of [`Options::default`], built on first use and cached. That of a view of few
    /// entries stays for later generations in which the view shows the same.
    pub fn prompt(&self) -> &Arc<str> {
        self.visible.prompt.get_or_init(|| {
            let make = || Arc::from(self.prompt_with(&Options::default()));
            // To know whether many entries are the same takes as long as to write them.
            if self.count() > MANY {
                return make();
            }
            self.catalog().prompt_of(self.profile(), self.generation(), make)
        })
    }

    /// The cached prompt, if it was built before.
    pub fn prompt_made(&self) -> Option<&Arc<str>> {
        self.visible.prompt.get()
    }

    /// Builds a prompt. It is empty if the view lists nothing for models.
    pub fn prompt_with(&self, options: &Options) -> String {
        let used = options.used.clone();
        if used.is_empty() || *options != (Options { used, ..Options::default() }) {
            return self.plan(options).into_text();
        }
        // The used commands of a profile change once a day, so the last prompt is kept.
        let mut kept = self.visible.used.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((used, text)) if *used == options.used => text.clone(),
            _ => {
                let text = self.plan(options).into_text();
                *kept = Some((options.used.clone(), text.clone()));
                text
            }
        }
    }

    /// The place of an entry in a prompt, or the reason why it has none.
    pub fn placement(&self, options: &Options, id: EntryId) -> Placement {
        let Some(entry) = self.entry(id) else { return Placement::NotInPrompt(Reason::NotShown) };
        if self.catalog().is_broken(entry) {
            return Placement::NotInPrompt(Reason::Broken);
        }
        if !self.lists(id) {
            let reason = match entry.fields().hidden_from_model {
                true => Reason::HiddenFromModel,
                false => Reason::NotConnected,
            };
            return Placement::NotInPrompt(reason);
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
                Section::ToolRules => plan.rules(standard::TOOL_RULES),
                Section::Domains => self.push_domains(&mut plan),
                Section::Commands => self.push_commands(&mut plan),
                Section::Skills => self.push_skills(&mut plan),
                Section::SkillList => self.push_skill_list(&mut plan),
                Section::AvailableSkills => self.push_available_skills(&mut plan),
                Section::QuickReference => self.push_quick_reference(&mut plan, &options.used),
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
        if plan.exceeds(options.limit) {
            let can_search = self.find_named(SEARCH).is_some_and(|id| self.lists(id));
            let order = Order::new(self, &options.nearest);
            plan.fit(options.limit, |section, subject| order.rank(section, subject), can_search);
        }
        plan
    }

    /// The entries of a kind that the prompt includes.
    fn prompted(&self, kind: u8) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.pieces(kind | about::IN_PROMPT, kind | about::IN_PROMPT)
    }

    /// The notes and skills that a model may read but that the prompt does not include.
    fn not_prompted(&self) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.pieces(about::LISTED | about::COMMAND | about::IN_PROMPT, about::LISTED)
    }

    fn pieces(&self, of: u8, wanted: u8) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        self.those(of, wanted).map(|(id, entry)| (Subject::Entry(id, entry.kind), &**entry))
    }
}
