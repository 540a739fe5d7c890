//! The sections in XML, and the escapes that keep a document from forging any of it.

use crate::catalog::entry::Entry;
use crate::prompt::plan::{Plan, Subject};
use crate::prompt::section::Section;
use crate::text::line::push_line;
use crate::view::{about, View};

/// The tags that the text of a skill must not open or close, since a model would read the rest as
/// another skill.
const TAGS: [&str; 2] = ["skill", "available_skills"];

impl View {
    pub(super) fn push_available_skills<'a>(&'a self, plan: &mut Plan<'a>) {
        let skill = about::SKILL | about::IN_PROMPT;
        plan.section(
            Section::AvailableSkills,
            "<available_skills>\n",
            "</available_skills>\n",
            |plan| {
                for (subject, entry) in self.by_source(skill | about::INLINE, skill) {
                    plan.piece(subject, |out| {
                        out.push_str("  <skill>\n    <name>");
                        push_text(out, &line(&entry.name));
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
        plan.section(Section::InlineSkills, "", "", |plan| {
            for (subject, entry) in self.by_source(inline | about::NOTE, inline) {
                // Skills are separated by a blank line.
                let first = plan.is_first();
                let path = entry.document.path.as_str();
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                plan.piece(subject, |out| {
                    out.push_str(if first { "<skill name=\"" } else { "\n<skill name=\"" });
                    push_text(out, &line(&entry.name));
                    out.push_str("\" location=\"");
                    push_text(out, path);
                    out.push_str("\">\nReferences are relative to ");
                    push_text(out, folder);
                    out.push_str(".\n\n");
                    push_body(out, entry.body().trim());
                    out.push_str("\n</skill>\n");
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
        let shadowed =
            self.shadowed_in_prompt().filter(|(_, entry)| about::of(entry, true) & of == wanted);
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

/// Appends text of an element or an attribute. Control characters that XML 1.0 does not allow
/// become U+FFFD.
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
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
}

/// Appends the text of a skill. Only the `<` of our own tags becomes `&lt;`: other XML may be part
/// of the skill, and the model should read it unchanged.
fn push_body(out: &mut String, body: &str) {
    let mut parts = body.split('<');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(if opens_own_tag(part) { "&lt;" } else { "<" });
        out.push_str(part);
    }
}

/// Whether the text after a `<` makes it one of our tags, in any case, with blanks or a `/` before
/// the name. More forms than XML allows, since models are not XML parsers.
fn opens_own_tag(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    TAGS.iter()
        .any(|tag| name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

#[cfg(test)]
mod tests {
    use super::{push_body, push_text};

    #[test]
    fn escapes_text() {
        let mut out = String::new();
        push_text(&mut out, "a<b>&\"'\u{0}\u{85}\t\n\ré");
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;&apos;\u{FFFD}\u{FFFD}&#9;&#10;&#13;é");
    }

    #[test]
    fn only_our_own_tags_lose_their_bracket() {
        let rows = [
            ("a </skill> b", "a &lt;/skill> b"),
            ("<skill name=\"x\">", "&lt;skill name=\"x\">"),
            ("</SKILL\n>", "&lt;/SKILL\n>"),
            ("< / Available_Skills>", "&lt; / Available_Skills>"),
            ("<\u{0}/skill>", "&lt;\u{0}/skill>"),
            ("<<skill>", "<&lt;skill>"),
            ("<skills>", "&lt;skills>"),
            ("<b>x</b> 1 < 2 & <ski", "<b>x</b> 1 < 2 & <ski"),
            ("<available_skill>", "<available_skill>"),
            ("<é", "<é"),
            ("", ""),
        ];
        for (body, expected) in rows {
            let mut out = String::new();
            push_body(&mut out, body);
            assert_eq!(out, expected);
        }
    }
}
