//! The system prompt's part about skills: how to write commands, and what there is.

use std::sync::Arc;

use crate::entry::{push_line, Entry, Kind};
use crate::help::{push_rows, without_heading};
use crate::view::View;

/// How many usage lines the quick reference holds.
const QUICK: usize = 20;

/// The parts of the prompt, in the order in which they stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// How commands are written.
    Rules,
    /// The domains with their descriptions.
    Domains,
    /// The skills that belong to no domain, with their descriptions.
    Skills,
    /// The usage lines of commands.
    QuickReference,
    /// The notes, whole.
    Notes,
    /// The titles of what can be read but is not in the prompt.
    Other,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 6] =
        [Section::Rules, Section::Domains, Section::Skills, Section::QuickReference, Section::Notes, Section::Other];

    /// The name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Section::Rules => "rules",
            Section::Domains => "domains",
            Section::Skills => "skills",
            Section::QuickReference => "quick_reference",
            Section::Notes => "notes",
            Section::Other => "other",
        }
    }
}

const RULES: &str = r#"# Commands

You act by writing commands. Each stands on a line of its own, in a fenced block marked `cmd`:

```cmd
domain.action --title "Several words" --to ann bob --urgent
```

- A block may hold several commands, one a line. They run in this order, and their results come back to you.
- Quote a value that has blanks in it: `--title "Several words"`.
- Several values of a flag follow each other: `--to ann bob`.
- A flag without a value is true: `--urgent`.
- Write long text as a heredoc: `--body <<EOF`, the lines of the text, then a line with only `EOF`.
- What stands outside such blocks is your reply to the user.
- Look up what you do not know: `get_skill` lists everything, `get_skill: NAME` shows one of them, and so does
  `NAME --help`.
- Use only commands and flags that exist. Do not invent any: if nothing fits, say so.
"#;

impl View {
    /// The prompt with all its sections, made once and kept.
    pub fn prompt(&self) -> &Arc<str> {
        self.visible.prompt.get_or_init(|| Arc::from(self.prompt_of(&Section::ALL)))
    }

    /// The prompt with some of its sections; those that would be empty are left out. A view that shows nothing has none.
    pub fn prompt_of(&self, sections: &[Section]) -> String {
        let mut out = String::new();
        if self.count() == 0 {
            return out;
        }
        for section in Section::ALL.iter().filter(|section| sections.contains(section)) {
            let start = out.len();
            if start > 0 {
                out.push('\n');
            }
            let before = out.len();
            match section {
                Section::Rules => out.push_str(RULES),
                Section::Domains => self.push_domains(&mut out),
                Section::Skills => self.push_skills(&mut out),
                Section::QuickReference => self.push_quick_reference(&mut out),
                Section::Notes => self.push_notes(&mut out),
                Section::Other => self.push_other(&mut out),
            }
            if out.len() == before {
                out.truncate(start);
            }
        }
        out
    }

    fn push_domains(&self, out: &mut String) {
        let domains = self.domains().filter(|domain| domain.in_prompt());
        let rows: Vec<_> = domains.map(|domain| (domain.name(), domain.description())).collect();
        if !rows.is_empty() {
            out.push_str("## Domains\n\n`get_skill: NAME` lists a domain's commands, `get_skill: NAME.all` shows them whole.\n\n");
            push_rows(out, &rows);
        }
    }

    fn push_skills(&self, out: &mut String) {
        let mut skills = self.prompted(Kind::Skill).peekable();
        if skills.peek().is_some() {
            out.push_str("## Skills\n\nRead a skill with `get_skill: NAME` before you do what it describes.\n\n");
        }
        for entry in skills {
            out.push_str("- ");
            out.push_str(&entry.name);
            out.push_str(": ");
            push_line(out, entry.description());
            out.push('\n');
        }
    }

    /// One command of each domain, then a second of each, until there is no room; shown in the order of their names.
    fn push_quick_reference(&self, out: &mut String) {
        let mut place = (None, 0);
        let ranked = self.prompted(Kind::Command).filter_map(|entry| {
            let usage = entry.fields().usage.as_deref()?;
            let domain = entry.domain.as_deref();
            place = (domain, if place.0 == domain { place.1 + 1 } else { 0 });
            Some((place.1, &*entry.name, usage))
        });
        let mut ranked: Vec<(usize, &str, &str)> = ranked.collect();
        let more = ranked.len().saturating_sub(QUICK);
        if more > 0 {
            // Of thousands only the first few are wanted, so they are not sorted.
            ranked.select_nth_unstable(QUICK);
            ranked.truncate(QUICK);
        }
        ranked.sort_unstable_by_key(|(_, name, _)| *name);
        if !ranked.is_empty() {
            out.push_str("## Quick reference\n\n");
        }
        for (_, _, usage) in ranked {
            out.push_str("  ");
            push_line(out, usage);
            out.push('\n');
        }
        if more > 0 {
            out.push_str(&format!("  and {more} more, which `get_skill: DOMAIN` lists\n"));
        }
    }

    fn push_notes(&self, out: &mut String) {
        let mut notes = self.prompted(Kind::Note).peekable();
        if notes.peek().is_some() {
            out.push_str("## Notes\n");
        }
        for entry in notes {
            let title = entry.title.as_deref().unwrap_or(&entry.name);
            out.push_str("\n### ");
            push_line(out, title);
            out.push_str("\n\n");
            out.push_str(without_heading(entry.body(), title).trim());
            out.push('\n');
        }
    }

    fn push_other(&self, out: &mut String) {
        let domains = self.domains().filter(|domain| !domain.in_prompt()).map(|domain| (domain.name(), None));
        let entries = self.entries().filter(|(id, entry)| entry.kind != Kind::Command && !self.in_prompt(*id));
        let entries = entries.map(|(_, entry)| (&*entry.name, entry.title.as_deref()));
        let mut all: Vec<(&str, Option<&str>)> = domains.chain(entries).collect();
        all.sort_unstable();
        if !all.is_empty() {
            out.push_str("## Also available\n\nNot shown here; `get_skill: NAME` reads one of them.\n\n");
        }
        for (name, title) in all {
            out.push_str("- ");
            out.push_str(name);
            if let Some(title) = title.filter(|title| *title != name) {
                out.push_str(": ");
                push_line(out, title);
            }
            out.push('\n');
        }
    }

    fn prompted(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        let entries = self.entries().filter(move |(id, entry)| entry.kind == kind && self.in_prompt(*id));
        entries.map(|(_, entry)| &**entry)
    }
}
