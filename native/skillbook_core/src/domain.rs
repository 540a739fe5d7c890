//! A domain as a view shows it: its description and its index, written by hand or made from its commands.

use std::sync::Arc;

use crate::catalog::{Domain, EntryId};
use crate::entry::{push_line, Entry, Index};
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
        let exists = domain.entries.iter().any(|id| view.shows(*id));
        let index = domain.index.as_deref().filter(|index| view.shows_index(index));
        exists.then_some(DomainView { view, domain, index })
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

    /// Whether it belongs into the profile's prompt.
    pub fn in_prompt(&self) -> bool {
        self.index.is_none_or(|index| index.fields().include_in_prompt)
    }

    /// The index's description on one line, else the names of its first commands.
    pub fn description(&self) -> String {
        let mut out = String::new();
        if let Some(description) = self.index.and_then(|index| index.fields().description.as_deref()) {
            push_line(&mut out, description);
            return out;
        }
        let names: Vec<_> = self.entries().map(|(_, entry)| &*entry.name).collect();
        out.push_str(&names[..names.len().min(NAMED)].join(", "));
        if names.len() > NAMED {
            out.push_str(&format!(" and {} more", names.len() - NAMED));
        }
        out
    }

    /// The index's body, without the lines that name commands that the view does not show; else a table of its commands.
    pub fn body(&self) -> String {
        match self.index {
            Some(index) if !index.document.body().trim().is_empty() => self.written(index.document.body()),
            _ => self.generated(),
        }
    }

    fn written(&self, body: &str) -> String {
        let ids = self.domain.entries.iter().filter(|id| !self.view.shows(**id));
        let hidden: Vec<&str> = ids.map(|id| &*self.view.catalog().entry(*id).name).collect();
        if hidden.is_empty() {
            return body.to_owned();
        }
        body.split_inclusive('\n').filter(|line| !hidden.iter().any(|name| names(line, name))).collect()
    }

    fn generated(&self) -> String {
        let mut out = format!("# {}\n\n", self.name());
        if let Some(description) = self.index.and_then(|index| index.fields().description.as_deref()) {
            push_line(&mut out, description);
            out.push_str("\n\n");
        }
        out.push_str("| Skill | Description |\n|-------|-------------|\n");
        for (_, entry) in self.entries() {
            out.push_str("| ");
            out.push_str(&entry.name);
            out.push_str(" | ");
            push_line(&mut out, &entry.description().replace('|', "\\|"));
            out.push_str(" |\n");
        }
        out
    }
}

/// Whether the line holds the name as a word of its own, not as a part of a longer name.
fn names(line: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let mut after = line[at + name.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let goes_on = next.is_some_and(word) || (next == Some('.') && second.is_some_and(word));
        !before.is_some_and(|c| word(c) || c == '.') && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn knows_names_in_lines() {
        let rows = [
            ("| email.send | Send |", true),
            ("`email.send --to x`", true),
            ("Use email.send.", true),
            ("email.send", true),
            ("email.sender", false),
            ("email.send_all", false),
            ("email.send.later", false),
            ("my-email.send", false),
            ("x.email.send", false),
            ("email.sen", false),
            ("email.sendx and email.send", true),
        ];
        for (line, expected) in rows {
            assert_eq!(names(line, "email.send"), expected, "{line}");
        }
    }
}
