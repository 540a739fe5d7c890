//! The sections that list notes and skills briefly.

use crate::catalog::entry::Entry;
use crate::prompt::foreign::{push_item, push_line, push_text_of};
use crate::prompt::plan::{Plan, Subject};
use crate::prompt::section::Section;
use crate::view::{about, View};

impl View {
    pub(super) fn push_skill_list<'a>(&'a self, plan: &mut Plan<'a>) {
        plan.section(Section::SkillList, ["## Available Skills\n", "", ""], |plan| {
            for (subject, entry) in self.listed_skills() {
                plan.piece(subject, |out| {
                    out.push_str("- ");
                    push_line(out, self.listed_name(entry));
                    out.push_str(": ");
                    push_line(out, entry.description());
                    if !entry.fields().tags.is_empty() {
                        out.push_str(" [");
                        push_line(out, &entry.fields().tags.join(", "));
                        out.push(']');
                    }
                    out.push('\n');
                });
            }
        });
    }

    pub(super) fn push_notes_list<'a>(&'a self, plan: &mut Plan<'a>) {
        plan.section(Section::NotesList, ["## Notes\n", "", ""], |plan| {
            for (subject, entry) in self.prompted(about::NOTE) {
                plan.piece(subject, |out| {
                    out.push_str("- ");
                    push_line(out, title(entry));
                    out.push_str(": ");
                    push_item(out, entry, without_title(entry));
                });
            }
        });
    }

    pub(super) fn push_skill_catalog<'a>(&'a self, plan: &mut Plan<'a>) {
        let head = "## Available Skills\nRead one in full with `get_skill: NAME`.\n";
        plan.section(Section::SkillCatalog, [head, "", ""], |plan| {
            for (subject, entry) in self.listed_skills() {
                plan.piece(subject, |out| {
                    out.push_str("- **");
                    push_line(out, self.listed_name(entry));
                    out.push_str("**: ");
                    push_line(out, entry.description());
                    out.push('\n');
                });
            }
        });
    }

    /// The named entries, in the order of the names. Names that the view does not list are skipped.
    pub(super) fn push_preloaded_skills<'a>(&'a self, plan: &mut Plan<'a>, names: &[String]) {
        let mut found: Vec<_> = Vec::new();
        for id in names.iter().filter_map(|name| self.find(name)) {
            if self.lists(id) && !found.contains(&id) {
                found.push(id);
            }
        }
        plan.section(Section::PreloadedSkills, ["## Pre-loaded Skills\n", "\n", ""], |plan| {
            for (id, entry) in found.into_iter().filter_map(|id| Some((id, self.entry(id)?))) {
                plan.piece(Subject::Entry(id, entry.kind), |out| {
                    let name = self.listed_name(entry);
                    out.push_str("### ");
                    push_line(out, name);
                    out.push('\n');
                    let text = super::without_heading(entry.body(), name).trim();
                    push_text_of(out, entry, text);
                });
            }
        });
    }

    pub(super) fn push_other_notes<'a>(&'a self, plan: &mut Plan<'a>) {
        let head = "## Other Notes\nRead one with `get_skill: NAME`; \
                    a name that differs from the title is in parentheses.\n";
        plan.section(Section::OtherNotes, [head, ", ", "\n"], |plan| {
            for (subject, entry) in self.not_prompted() {
                plan.piece(subject, |out| {
                    out.push('"');
                    push_line(out, &title(entry).replace('"', "'"));
                    out.push('"');
                    let name = self.listed_name(entry);
                    if title(entry) != name {
                        out.push_str(" (");
                        push_line(out, name);
                        out.push(')');
                    }
                });
            }
        });
    }

    /// The skills of the prompt that are not inline.
    pub(super) fn listed_skills(&self) -> impl Iterator<Item = (Subject<'_>, &Entry)> {
        let skill = about::SKILL | about::IN_PROMPT;
        self.pieces(skill | about::INLINE, skill)
    }
}

pub(super) fn title(entry: &Entry) -> &str {
    entry.title.as_deref().unwrap_or(&entry.name)
}

/// A note's text without the heading that repeats its title.
pub(super) fn without_title(entry: &Entry) -> &str {
    super::without_heading(entry.body(), title(entry)).trim()
}
