//! The sections in XML.

use crate::catalog::entry::Entry;
use crate::prompt::foreign::push_text_of;
use crate::prompt::plan::{Plan, Subject};
use crate::prompt::section::Section;
use crate::text::line::push_line;
use crate::view::{about, View};

impl View {
    pub(super) fn push_available_skills<'a>(&'a self, plan: &mut Plan<'a>) {
        let skill = about::SKILL | about::IN_PROMPT;
        plan.section(
            Section::AvailableSkills,
            ["<available_skills>\n", "", "</available_skills>\n"],
            |plan| {
                for (subject, entry) in self.by_source(skill | about::INLINE, skill) {
                    plan.piece(subject, |out| {
                        out.push_str("  <skill>\n    <name>");
                        push_text(out, &line(self.listed_name(entry)));
                        out.push_str("</name>\n    <description>");
                        push_text(out, &line(entry.description()));
                        out.push_str("</description>\n    <location>");
                        push_text(out, &entry.document.path);
                        out.push_str("</location>\n  </skill>\n");
                    });
                }
            },
        );
    }

    pub(super) fn push_inline_skills<'a>(&'a self, plan: &mut Plan<'a>) {
        let inline = about::INLINE | about::IN_PROMPT;
        // Skills are separated by a blank line.
        plan.section(Section::InlineSkills, ["", "\n", ""], |plan| {
            for (subject, entry) in self.by_source(inline | about::NOTE, inline) {
                let path = entry.document.path.as_str();
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                plan.piece(subject, |out| {
                    out.push_str("<skill name=\"");
                    push_text(out, &line(self.listed_name(entry)));
                    out.push_str("\" location=\"");
                    push_text(out, path);
                    out.push_str("\">\nReferences are relative to ");
                    push_text(out, folder);
                    out.push_str(".\n\n");
                    push_text_of(out, entry, entry.body().trim());
                    out.push_str("</skill>\n");
                });
            }
        });
    }

    /// Entries of the prompt, sorted by source and name, including shadowed ones whose replacement
    /// is listed too.
    fn by_source(&self, of: u8, wanted: u8) -> Vec<(Subject<'_>, &Entry)> {
        let shown = self
            .those(of, wanted)
            .map(|(id, entry)| (id, Subject::Entry(id, entry.kind), &**entry));
        let shadowed = self
            .shadowed_in_prompt()
            .filter(|(_, entry)| about::of(entry, true, true) & of == wanted);
        let shadowed = shadowed.map(|(id, entry)| (id, Subject::Shadowed(entry.kind), entry));
        let mut all: Vec<_> = shown.chain(shadowed).collect();
        all.sort_unstable_by_key(|(id, ..)| (self.catalog().priority(*id).rank, *id));
        all.into_iter().map(|(_, subject, entry)| (subject, entry)).collect()
    }
}

fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_line(&mut out, text);
    out
}

/// Appends text of an element or an attribute.
fn push_text(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push_text;

    #[test]
    fn escapes_text() {
        let mut out = String::new();
        push_text(&mut out, "a<b>&\"'\t\n\ré");
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;&apos;&#9;&#10;&#13;é");
    }
}
