//! A domain as a view shows it: its description and its index, written by hand or made from its commands.

use std::collections::HashSet;
use std::sync::Arc;

use crate::catalog::{Domain, EntryId};
use crate::entry::{push_line, Entry, Index};
use crate::precedence;
use crate::view::View;

/// How many commands stand for the description of a domain that has none.
const NAMED: usize = 5;

/// A domain of which a view shows at least one command.
#[derive(Clone, Copy)]
pub struct DomainView<'a> {
    view: &'a View,
    domain: &'a Domain,
    index: Option<&'a Index>,
}

impl<'a> DomainView<'a> {
    /// `None` if the view shows none of its commands: then the domain does not exist.
    pub(crate) fn new(view: &'a View, domain: &'a Domain) -> Option<DomainView<'a>> {
        if !domain.entries.iter().any(|id| view.shows(*id)) {
            return None;
        }
        let index = precedence::index(view.catalog(), domain, |index| view.shows_index(index), |id| view.shows(id));
        Some(DomainView { view, domain, index })
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.domain.name
    }

    /// The path of its index; `None` if there is none for this view.
    pub fn path(&self) -> Option<&'a str> {
        self.index.map(|index| index.document.path.as_str())
    }

    /// The document of its index.
    pub fn index(&self) -> Option<&'a Index> {
        self.index
    }

    /// Its commands that the view shows, in the order of their names.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &'a Arc<Entry>)> {
        let view = self.view;
        self.domain.entries.iter().filter_map(move |id| Some((*id, view.entry(*id)?)))
    }

    /// Those of its commands that a model is told of.
    pub fn listed(&self) -> impl Iterator<Item = (EntryId, &'a Arc<Entry>)> {
        let view = self.view;
        let listed = self.domain.entries.iter().filter(move |id| view.lists(**id));
        listed.map(move |id| (*id, view.catalog().entry(*id)))
    }

    /// Whether a model is told of it: it has a command that is listed, and its index does not say otherwise.
    pub fn is_listed(&self) -> bool {
        self.index.is_none_or(|index| !index.fields().hidden_from_model) && self.listed().next().is_some()
    }

    /// Whether it belongs into the profile's prompt.
    pub fn in_prompt(&self) -> bool {
        self.index.is_none_or(|index| self.view.includes(index.fields()))
    }

    /// The index's description on one line, else the names of its first commands.
    pub fn description(&self) -> String {
        let mut out = String::new();
        if let Some(description) = self.index.and_then(|index| index.fields().description.as_deref()) {
            push_line(&mut out, description);
            return out;
        }
        let mut listed = self.listed();
        let names: Vec<_> = listed.by_ref().take(NAMED).map(|(_, entry)| &*entry.name).collect();
        out.push_str(&names.join(", "));
        let more = listed.count();
        if more > 0 {
            out.push_str(&format!(" and {more} more"));
        }
        out
    }

    /// The index's body, without the lines that name entries that the view does not show or not list, and with its table
    /// of commands as they are now; else a table of its commands.
    pub fn body(&self) -> String {
        match self.index {
            Some(index) if !index.document.body().trim().is_empty() => self.written(index.document.body()),
            _ => self.generated(),
        }
    }

    fn written(&self, body: &str) -> String {
        let hides = |name: &str| match self.view.find(name) {
            Some(id) => !self.view.lists(id),
            None => self.view.catalog().knows(name),
        };
        let (before, table, after) = split_table(body);
        let keep = |text: &str| text.split_inclusive('\n').filter(|line| !named(line).any(hides)).collect::<String>();
        let Some(table) = table else { return keep(body) };
        let mut out = keep(before);
        for row in table.split_inclusive('\n') {
            let name = cell(row).filter(|name| self.is_command(name));
            let own = name.and_then(|name| self.view.find_named(name)).filter(|id| self.view.lists(*id));
            let hidden = named(row).any(hides);
            match own {
                // Its command is not left out for what else the row names.
                Some(id) if hidden => push_row(&mut out, self.view.catalog().entry(id)),
                // Files come and go without anybody who writes the table.
                None if hidden || name.is_some_and(|name| self.view.find(name).is_none()) => {}
                _ => out.push_str(row),
            }
        }
        let written: HashSet<&str> = table.split_inclusive('\n').filter_map(cell).collect();
        for (_, entry) in self.listed().filter(|(_, entry)| !written.contains(&*entry.name)) {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            push_row(&mut out, entry);
        }
        out + &keep(after)
    }

    /// Whether a word can be the name of one of its commands.
    fn is_command(&self, name: &str) -> bool {
        let action = name.strip_prefix(self.name()).and_then(|rest| rest.strip_prefix('.'));
        action.is_some_and(|action| action.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')))
    }

    fn generated(&self) -> String {
        let mut out = format!("# {}\n\n", self.name());
        if let Some(description) = self.index.and_then(|index| index.fields().description.as_deref()) {
            push_line(&mut out, description);
            out.push_str("\n\n");
        }
        out.push_str("| Skill | Description |\n|-------|-------------|\n");
        for (_, entry) in self.listed() {
            push_row(&mut out, entry);
        }
        out
    }
}

fn push_row(out: &mut String, entry: &Entry) {
    out.push_str("| ");
    out.push_str(&entry.name);
    out.push_str(" | ");
    push_line(out, &entry.description().replace('\\', "\\\\").replace('|', "\\|"));
    out.push_str(" |\n");
}

/// An index in three parts, of which the second is its table of commands: the first one under the heading "Available
/// Skills".
fn split_table(body: &str) -> (&str, Option<&str>, &str) {
    let (mut fenced, mut below, mut table, mut at) = (false, false, None, 0);
    for line in body.split_inclusive('\n') {
        let text = line.trim();
        let row = below && !fenced && text.starts_with('|');
        match table {
            Some(start) if !row => return (&body[..start], Some(&body[start..at]), &body[at..]),
            None if row => table = Some(at),
            _ => {}
        }
        if text.starts_with("```") || text.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && (line.starts_with("# ") || line.starts_with("## ")) {
            below = text.trim_end_matches('#').trim_end().eq_ignore_ascii_case("## available skills");
        }
        at += line.len();
    }
    match table {
        Some(start) => (&body[..start], Some(&body[start..]), ""),
        None => (body, None, ""),
    }
}

/// The first cell of a table's row.
fn cell(line: &str) -> Option<&str> {
    let row = line.trim_start().strip_prefix('|')?;
    row.split('|').next().map(|cell| cell.trim().trim_matches('`'))
}

/// What may be names in a line of an index: words with a dot inside, and the first cell of a table's row. Other words
/// are left alone, for a skill may be called `notes`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    let dotted = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.'));
    dotted.chain(cell(line))
}

#[cfg(test)]
mod tests {
    use super::{named, split_table};

    #[test]
    fn finds_what_may_be_names() {
        let rows: [(&str, &[&str]); 8] = [
            ("| email.send | Send |\n", &["email.send", "email.send"]),
            ("  | `diary` | Write |", &["diary"]),
            ("`email.send --to x`", &["email.send"]),
            ("Use email.send.", &["email.send"]),
            ("email.send, my-mail.read_all...", &["email.send", "my-mail.read_all"]),
            ("email.send.later", &["email.send.later"]),
            ("one diary ... .", &[]),
            ("", &[]),
        ];
        for (line, expected) in rows {
            assert_eq!(named(line).collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn finds_the_table_of_commands() {
        let rows: [(&str, Option<&str>); 9] = [
            (
                "# D\n\n## Available Skills\n\n| a |\n|---|\n| d.x |\n\n## Notes\n| b |\n",
                Some("| a |\n|---|\n| d.x |\n"),
            ),
            ("## available skills ##\nText.\n | a |", Some(" | a |")),
            ("## Available Skills\n| a |\n| b |\nText.\n| c |\n", Some("| a |\n| b |\n")),
            ("## Available Skills\r\n| a |\r\n\r\n", Some("| a |\r\n")),
            ("## Available Skills\n```\n| a |\n```\n", None),
            ("```\n## Available Skills\n```\n| a |\n", None),
            ("## Available Skills\n\n## Notes\n| a |\n", None),
            ("## Skills\n| a |\n", None),
            ("", None),
        ];
        for (body, expected) in rows {
            let (before, table, after) = split_table(body);
            assert_eq!(table, expected, "{body}");
            assert_eq!(format!("{before}{}{after}", table.unwrap_or_default()), body);
        }
    }
}
