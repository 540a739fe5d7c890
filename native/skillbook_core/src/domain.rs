//! A domain as a view shows it: its description and its index, written by hand or made from its commands.

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

    /// The index's body, without the lines that name entries that the view does not show or not list; else a table of
    /// its commands.
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
        body.split_inclusive('\n').filter(|line| !named(line).any(hides)).collect()
    }

    fn generated(&self) -> String {
        let mut out = format!("# {}\n\n", self.name());
        if let Some(description) = self.index.and_then(|index| index.fields().description.as_deref()) {
            push_line(&mut out, description);
            out.push_str("\n\n");
        }
        out.push_str("| Skill | Description |\n|-------|-------------|\n");
        for (_, entry) in self.listed() {
            out.push_str("| ");
            out.push_str(&entry.name);
            out.push_str(" | ");
            push_line(&mut out, &entry.description().replace('|', "\\|"));
            out.push_str(" |\n");
        }
        out
    }
}

/// What may be names in a line of an index: words with a dot inside, and the first cell of a table's row. Other words
/// are left alone, for a skill may be called `notes`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    let dotted = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.'));
    let cell = line.trim_start().strip_prefix('|').and_then(|row| row.split('|').next());
    dotted.chain(cell.map(|cell| cell.trim().trim_matches('`')))
}

#[cfg(test)]
mod tests {
    use super::named;

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
}
