//! The sections of the default prompt.

use crate::catalog::entry::Entry;
use crate::prompt::foreign::{escape_tags, push_line, push_text_of};
use crate::prompt::notes::{title, without_title};
use crate::prompt::plan::{Plan, Subject};
use crate::prompt::section::Section;
use crate::source::Selection;
use crate::view::help::{push_row, width};
use crate::view::{about, View};

pub(super) const RULES: &str = r#"# Commands

You act by writing commands. Write each command on its own line, in a fenced block marked `cmd`:

```cmd
domain.action --title "Several words" --to ann bob --urgent
```

- A block may contain several commands, one per line. They run in order, and their results come
  back to you.
- Quote a value that contains spaces: `--title "Several words"`.
- Write several values of a flag one after the other: `--to ann bob`.
- A flag without a value is true: `--urgent`.
- Write long text as a heredoc: `--body <<EOF`, the lines of the text, then a line with only `EOF`.
- As a value, `{1}` is replaced by the whole result of the first command in the same reply, and
  `{last}` by the result of the previous command: `--body {last}`. In quotes it is plain text.
- Text outside of these blocks is your reply to the user.
- Look things up instead of guessing: `get_skill` lists everything, and `get_skill: NAME` or
  `NAME --help` shows one entry.
- Use only commands and flags that exist. Do not invent any: if nothing fits, say so.
"#;

pub(super) const TOOL_RULES: &str = r#"# Tools

You act by calling tools. Their results come back to you.

- Pages and lists write commands as lines: `domain.action --flag value` is the tool
  `domain__action` with the argument `flag`. `run_command` runs the line of a command that has no
  tool.
- `get_skill: NAME` is the tool `get_skill` with the path NAME. Look things up instead of guessing:
  without a path it lists everything.
- Make calls that do not need each other's results at once. They take effect in their order.
- Text outside of calls is your reply to the user.
- Use only tools, commands and arguments that exist. Do not invent any: if nothing fits, say so.
"#;

impl View {
    pub(super) fn push_domains<'a>(&'a self, plan: &mut Plan<'a>) {
        let domains = self.domains().filter(|domain| domain.is_listed() && domain.in_prompt());
        let rows: Vec<_> = domains.map(|domain| (domain.name(), domain.description())).collect();
        let width = width(rows.iter().map(|(name, _)| *name));
        let head = "## Domains\n\n`get_skill: NAME` lists a domain's commands, \
                    `get_skill: NAME.all` shows them in full.\n\n";
        plan.section(Section::Domains, [head, "", ""], |plan| {
            for (name, description) in &rows {
                plan.piece(Subject::Domain(name), |out| {
                    push_row(out, width, &escape_tags(name), &escape_tags(description))
                });
            }
        });
    }

    /// Lists all commands, also those that the prompt does not include. For profiles with few
    /// commands, where a list of domains would only add a step.
    pub(super) fn push_commands<'a>(&'a self, plan: &mut Plan<'a>) {
        let command = about::COMMAND | about::LISTED;
        let hidden: Vec<_> = self.domains().filter(|domain| !domain.is_listed()).collect();
        let is_shown = |id, entry: &Entry| {
            let inline = entry.selection == Selection::Inline && self.in_prompt(id);
            !inline && !hidden.iter().any(|domain| Some(domain.name()) == entry.domain.as_deref())
        };
        let rows: Vec<_> =
            self.those(command, command).filter(|(id, entry)| is_shown(*id, entry)).collect();
        let width = width(rows.iter().map(|(_, entry)| &*entry.name));
        plan.section(
            Section::Commands,
            ["## Commands\n\n`get_skill: NAME` shows one in full.\n\n", "", ""],
            |plan| {
                for (id, entry) in rows {
                    let subject = Subject::Entry(id, entry.kind);
                    plan.piece(subject, |out| {
                        push_row(out, width, &entry.name, &escape_tags(entry.description()))
                    });
                }
            },
        );
    }

    pub(super) fn push_skills<'a>(&'a self, plan: &mut Plan<'a>) {
        let head = "## Skills\n\nBefore a task that a skill describes, read the skill \
             with `get_skill: NAME`.\n\n";
        plan.section(Section::Skills, [head, "", ""], |plan| {
            for (subject, entry) in self.listed_skills() {
                plan.piece(subject, |out| {
                    out.push_str("- ");
                    push_line(out, self.listed_name(entry));
                    out.push_str(": ");
                    push_line(out, entry.description());
                    out.push('\n');
                });
            }
        });
    }

    pub(super) fn push_notes<'a>(&'a self, plan: &mut Plan<'a>) {
        plan.section(Section::Notes, ["## Notes\n", "", ""], |plan| {
            for (subject, entry) in self.prompted(about::NOTE) {
                plan.piece(subject, |out| {
                    out.push_str("\n### ");
                    push_line(out, title(entry));
                    out.push_str("\n\n");
                    push_text_of(out, entry, without_title(entry));
                });
            }
        });
    }

    pub(super) fn push_other<'a>(&'a self, plan: &mut Plan<'a>) {
        let domains = self.domains().filter(|domain| domain.is_listed() && !domain.in_prompt());
        let domains = domains.map(|domain| (domain.name(), None, Subject::Domain(domain.name())));
        let entries = self
            .not_prompted()
            .map(|(subject, entry)| (self.listed_name(entry), entry.title.as_deref(), subject));
        let mut all: Vec<(&str, Option<&str>, Subject)> = domains.chain(entries).collect();
        all.sort_by_key(|(name, title, _)| (*name, *title));
        let head = "## Also available\n\nNot shown here. Read one with `get_skill: NAME`.\n\n";
        plan.section(Section::Other, [head, "", ""], |plan| {
            for (name, title, subject) in all {
                plan.piece(subject, |out| {
                    out.push_str("- ");
                    push_line(out, name);
                    if let Some(title) = title.filter(|title| *title != name) {
                        out.push_str(": ");
                        push_line(out, title);
                    }
                    out.push('\n');
                });
            }
        });
    }
}
