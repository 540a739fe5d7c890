//! The list of entries.

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::{safe, Printed, Style, Terminal};
use crate::catalog::entry::Entry;
use crate::hidden::line;
use crate::view::View;

/// Which entries to list. Empty lists admit all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Words that the name, title, description or tags contain, in any case.
    pub words: &'a [String],
    /// Names of sources.
    pub sources: &'a [String],
    /// Domains of commands.
    pub domains: &'a [String],
    /// Those after this name: that of the last entry of the page before.
    pub after: Option<&'a str>,
    /// How many at most.
    pub limit: Option<usize>,
}

impl Filter<'_> {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.sources.is_empty() && self.domains.is_empty()
    }

    fn admits(&self, entry: &Entry) -> bool {
        let among = |value: Option<&str>, values: &[String]| {
            values.is_empty() || value.is_some_and(|value| values.iter().any(|one| one == value))
        };
        among(Some(&entry.source.name), self.sources)
            && among(entry.domain.as_deref(), self.domains)
            && (self.words.is_empty() || {
                let text = text(entry);
                self.words.iter().all(|word| text.contains(&word.to_lowercase()))
            })
    }
}

fn text(entry: &Entry) -> String {
    let title = entry.title.as_deref().unwrap_or("");
    let mut parts = vec![&*entry.name, title, entry.description()];
    parts.extend(entry.fields().tags.iter().map(String::as_str));
    parts.join("\n").to_lowercase()
}

/// The entries of a view as a table, or as JSON.
pub fn list(view: &View, filter: Filter, as_json: bool, terminal: Terminal) -> Printed {
    let all: Vec<&Entry> = view.entries().map(|(_, entry)| &**entry).collect();
    let after = |entry: &&Entry| filter.after.is_none_or(|name| *entry.name > *name);
    let listed = all.iter().copied().filter(after).filter(|entry| filter.admits(entry));
    let entries: Vec<&Entry> = listed.take(filter.limit.unwrap_or(usize::MAX)).collect();
    let json = || super::json(entries.iter().map(|entry| fields(entry)).collect());
    let printed = if as_json { Printed::text(json()) } else { Printed::default() };
    match (entries.is_empty(), as_json) {
        // The page before was the last one.
        (true, _) if filter.after.is_some() => printed,
        (true, _) if !filter.is_empty() => printed.failing(no_match(&all, filter)),
        (_, true) => printed,
        (true, false) => {
            let complaint = "no skills found; name their folder with --dir".to_owned();
            Printed { complaint: Some(complaint), ..printed }
        }
        (false, false) => Printed::text(table(&entries, terminal)),
    }
}

/// A wrong name of a source or domain is the usual reason.
fn no_match(all: &[&Entry], filter: Filter) -> String {
    let known = |noun: &str, mut names: Vec<&str>| {
        names.sort_unstable();
        names.dedup();
        format!("; the {noun} are {}", names.join(", "))
    };
    let mut message = "no entry matches".to_owned();
    if !filter.sources.is_empty() {
        let names = all.iter().map(|entry| entry.source.name.as_str()).collect();
        message += &known("sources", names);
    }
    if !filter.domains.is_empty() {
        let names = all.iter().filter_map(|entry| entry.domain.as_deref()).collect();
        message += &known("domains", names);
    }
    message
}

fn fields(entry: &Entry) -> serde_json::Value {
    let fields = entry.fields();
    json!({
        "name": &*entry.name,
        "kind": entry.kind.as_str(),
        "domain": entry.domain,
        "title": entry.title,
        "description": entry.description(),
        "tags": fields.tags,
        "labels": entry.labels,
        "aliases": fields.aliases,
        "usage": fields.usage,
        "path": entry.document.path,
        "source": entry.source.name,
    })
}

fn table(entries: &[&Entry], terminal: Terminal) -> String {
    let widest = |text: &dyn Fn(&Entry) -> String| {
        entries.iter().map(|entry| text(entry).width()).max().unwrap_or(0)
    };
    let name = |entry: &Entry| line(&entry.name).into_owned();
    let source = |entry: &Entry| line(&entry.source.name).into_owned();
    let (name_width, source_width) = (widest(&name), widest(&source));
    // A kind has at most 7 letters; columns are separated by two spaces.
    let room =
        terminal.width.map(|width| width.saturating_sub(name_width + source_width + 13).max(10));
    let row = |entry: &&Entry| {
        let name = padded(name(entry), name_width);
        let kind = format!("{:7}  {}", entry.kind.as_str(), padded(source(entry), source_width));
        let description = one_line(entry.description(), room);
        format!(
            "{}  {}  {}",
            terminal.style(Style::Bright, &name),
            terminal.style(Style::Faint, &kind),
            safe(&description)
        )
    };
    entries.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn padded(mut text: String, width: usize) -> String {
    let missing = width.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

fn one_line(text: &str, room: Option<usize>) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(room) = room.filter(|room| text.width() > *room) else { return text };
    let fits = |end: &usize| text[..*end].width() < room;
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let end = ends[..ends.partition_point(fits)].last().copied().unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_with_an_ellipsis() {
        for (text, room, expected) in [
            ("a  b\nc", None, "a b c"),
            ("a b c", Some(5), "a b c"),
            ("a b c d", Some(5), "a b …"),
            ("見見見", Some(5), "見見…"),
            ("見見見", Some(4), "見…"),
        ] {
            assert_eq!(one_line(text, room), expected, "{text}");
        }
    }
}
