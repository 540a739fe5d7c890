//! A domain as a view shows it: its description, and an index page with a table of its commands.
//!
//! The table is rendered on every read from the commands that the view lists, and never written to
//! a file. So a command that is gone or hidden has no row. An author may write a page with a table
//! of their own; then rows of listed commands stay as they are, and missing commands are added.
//!
//! A page may also name hidden commands in its text. Each line that does is left out, because the
//! page must look to this reader as if the commands had never been written.
//!
//! ```
//! # use std::sync::Arc;
//! # use skillbook_core::catalog::{assemble::assemble, Catalog};
//! # use skillbook_core::page::document::Document;
//! # use skillbook_core::source::Source;
//! # use skillbook_core::view::{CachedCatalog, Profile, View};
//! # let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! # let text = b"---\nname: email.send\ndescription: Send an email\n---\nSends to `--to`.\n";
//! # let document = Arc::new(Document::parse("/s", "email/send.md", text));
//! # let catalog = Catalog::build(1, vec![assemble(&source, vec![document], Vec::new())]);
//! # let catalog = Arc::new(CachedCatalog::new(catalog));
//! # let view = View::new(catalog, &Profile::unrestricted()).unwrap();
//! // `view` shows the command `email.send`, and the domain has no index of its own.
//! let domain = view.domain("email").unwrap();
//! assert_eq!(
//!     domain.body(),
//!     "# email\n\n| Skill | Description |\n|-------|-------------|\n\
//!      | email.send | Send an email |\n"
//! );
//! ```

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::view::View;
use crate::catalog::entry::{DomainIndex, Entry};
use crate::catalog::{Domain, EntryId};
use crate::page::sections::{self, Code, Line};
use crate::source::Trust;
use crate::text::fence::offset;
use crate::text::line::push_line;

/// The number of commands that are named in place of a missing description.
const NAMED: usize = 5;
/// The heading above the table of skills.
const SECTION: &str = "Available Skills";
const HEAD: &str = "| Skill | Description |\n|-------|-------------|\n";

impl View {
    /// The domains with at least one shown command, in the order of their names.
    pub fn domains(&self) -> impl Iterator<Item = DomainView<'_>> {
        self.catalog().domains().iter().filter_map(|domain| DomainView::new(self, domain))
    }

    /// The domain with this name.
    pub fn domain(&self, name: &str) -> Option<DomainView<'_>> {
        let domains = self.catalog().domains();
        let at = domains.binary_search_by(|domain| domain.name.as_str().cmp(name)).ok()?;
        DomainView::new(self, &domains[at])
    }
}

/// A domain with at least one command that the view shows.
#[derive(Clone, Copy)]
pub struct DomainView<'a> {
    view: &'a View,
    domain: &'a Domain,
    index: Option<&'a DomainIndex>,
}

impl<'a> DomainView<'a> {
    /// Returns `None` if the view shows none of the commands: then the domain does not exist for
    /// it.
    fn new(view: &'a View, domain: &'a Domain) -> Option<DomainView<'a>> {
        // A domain is only as visible as its commands, also if its index has no labels.
        if !domain.entries.iter().any(|id| view.shows(*id)) {
            return None;
        }
        let index =
            view.catalog().index(domain, |index| view.shows_index(index), |id| view.shows(id));
        Some(DomainView { view, domain, index })
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.domain.name
    }

    /// The path of its index; `None` if the view does not show one.
    pub fn path(&self) -> Option<&'a str> {
        self.index.map(|index| index.document.path.as_str())
    }

    /// The index, if the view shows one.
    pub fn index(&self) -> Option<&'a DomainIndex> {
        self.index
    }

    /// The commands that the view shows, in the order of their names.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &'a Arc<Entry>)> {
        let view = self.view;
        self.domain.entries.iter().filter_map(move |id| Some((*id, view.entry(*id)?)))
    }

    /// The commands that a model is shown.
    pub fn listed(&self) -> impl Iterator<Item = (EntryId, &'a Arc<Entry>)> {
        let view = self.view;
        let listed = self.domain.entries.iter().filter(move |id| view.lists(**id));
        listed.map(move |id| (*id, view.catalog().entry(*id)))
    }

    /// Whether a model is shown the domain: it has a listed command, and its index does not hide
    /// it.
    pub fn is_listed(&self) -> bool {
        self.index.is_none_or(|index| self.view.lists_index(index))
            && self.listed().next().is_some()
    }

    /// Whether the domain is in the profile's prompt.
    pub fn in_prompt(&self) -> bool {
        self.index.is_none_or(|index| self.view.includes(index.fields()))
    }

    /// Whether the author of the index wants the domain first in the profile's prompt.
    pub(crate) fn is_proactive(&self) -> bool {
        let index = self.index.filter(|index| index.trust() > Trust::Low);
        self.in_prompt() && index.is_some_and(|index| self.view.wants_first(index.fields()))
    }

    /// The index's description on one line, or the names of the first commands.
    pub fn description(&self) -> String {
        let mut out = String::new();
        if let Some(description) =
            self.index.and_then(|index| index.fields().description.as_deref())
        {
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

    /// The index page with its table of skills. Without a page, one is made of the description and
    /// the table.
    pub fn body(&self) -> String {
        match self.index {
            Some(index) if !index.document.body().trim().is_empty() => {
                self.rendered(index.document.body())
            }
            _ => self.generated(),
        }
    }

    /// Renders a page for this view.
    ///
    /// Lines that name hidden entries are left out. In the table of skills, rows that name a listed
    /// entry stay as the author wrote them. Listed commands that the page does not mention get rows
    /// after those, or a table of their own.
    ///
    /// Rendering the result again does not change it. That is why the table of skills is the first
    /// one of its section that lists something.
    fn rendered(&self, page: &str) -> String {
        // 1. Remove every line that names something hidden, except table rows.
        let page = &self.without_hidden(page);
        let lines: Vec<_> = sections::lines(page).collect();
        let section = sections::section(page, SECTION).map(|text| {
            let start = offset(page, text);
            start..start + text.len()
        });
        // 2. Find the table of skills, and the commands that the page does not mention.
        let tables = self.tables(&lines, section.as_ref());
        let first = tables.first().cloned().unwrap_or(0..0);
        let missing =
            self.missing(&lines, |at| first.contains(&at) || !self.hides_part(lines[at].text));
        // A table that lists nothing is removed, and the next one becomes the table of skills.
        // 3. Choose the table to render. With commands to add it is the first one, otherwise the
        // first that lists something.
        let is_shown = |table: &Range<usize>| {
            lines[table.clone()].iter().any(|row| self.row_of(row).is_some())
        };
        let at = if missing.is_empty() {
            tables.iter().position(is_shown).unwrap_or(tables.len())
        } else {
            0
        };
        let mut is_gone = vec![false; lines.len()];
        tables[..at].iter().for_each(|table| is_gone[table.clone()].fill(true));
        let mut out = String::with_capacity(page.len());
        // 4. Copy the page around it, without tables and rows that were dropped.
        let keep = |out: &mut String, range: Range<usize>| {
            let goes =
                |at: usize| is_gone[at] || is_row(&lines[at]) && self.hides_part(lines[at].text);
            let rest = range.filter(|at| !goes(*at));
            rest.for_each(|at| out.push_str(&page[lines[at].start..lines[at].end]));
        };
        // 5. Render the table in its place, or below if the page has none.
        if let Some(table) = tables.get(at) {
            keep(&mut out, 0..table.start);
            self.push_table(&mut out, &lines[table.clone()], missing);
            keep(&mut out, table.end..lines.len());
            return out;
        }
        let end = section.as_ref().map_or(page.len(), |section| section.end);
        let end = lines.partition_point(|line| line.end <= end);
        keep(&mut out, 0..end);
        if !missing.is_empty() {
            // Keep the blank lines between the table and the next section.
            let text = out.trim_end().len();
            let blank =
                out.split_off(text + out[text..].find('\n').map_or(out.len() - text, |at| at + 1));
            if !out.trim_start().is_empty() {
                let fence = lines[..end].iter().rev().find_map(|line| match line.code {
                    Code::Opens(fence) => Some(fence),
                    Code::Closes => Some(""),
                    Code::Inside | Code::Outside => None,
                });
                push_whole(&mut out, "");
                // An open code block would swallow the new table, so it is closed first.
                push_whole(&mut out, fence.unwrap_or_default());
                out.push('\n');
            }
            if section.is_none() {
                out.push_str(&format!("## {SECTION}\n\n"));
            }
            out.push_str(HEAD);
            missing.into_iter().for_each(|entry| push_row(&mut out, entry));
            out.push_str(&blank);
        }
        keep(&mut out, end..lines.len());
        out
    }

    /// The author's table with the rows for this view.
    fn push_table(&self, out: &mut String, table: &[Line], missing: Vec<&Entry>) {
        let (head, rows) = table.split_at(head_of(table));
        let mut rendered = String::new();
        for row in rows {
            match self.row_of(row) {
                // The row also names something hidden, so a generated row takes its place.
                Some(id) if self.hides_part(row.text) => {
                    push_row(&mut rendered, self.view.catalog().entry(id))
                }
                Some(_) => push_whole(&mut rendered, row.text),
                None => {}
            }
        }
        missing.into_iter().for_each(|entry| push_row(&mut rendered, entry));
        if rendered.is_empty() {
            return;
        }
        // The header may name something hidden too.
        match head.is_empty() || head.iter().any(|line| self.hides_part(line.text)) {
            true => out.push_str(HEAD),
            false => head.iter().for_each(|line| out.push_str(line.text)),
        }
        out.push_str(&rendered);
    }

    /// The page without lines that name hidden entries. Rows of tables stay for now, because a row
    /// may belong to a listed command.
    fn without_hidden(&self, page: &str) -> String {
        let mut out = String::with_capacity(page.len());
        for line in sections::lines(page) {
            match line.code {
                _ if is_row(&line) || !self.hides_part(line.text) => {
                    out.push_str(&page[line.start..line.end])
                }
                // Without the opening fence, the closing one would open a block.
                Code::Opens(fence) => push_whole(&mut out, fence),
                _ => {}
            }
        }
        out
    }

    /// The candidates for the table of skills: all tables of its section, or if the page has no
    /// such section, the first table with a row for a command.
    fn tables(&self, lines: &[Line], section: Option<&Range<usize>>) -> Vec<Range<usize>> {
        let is_inside = |line: &Line| section.is_none_or(|section| section.contains(&line.start));
        let mut end = 0;
        let tables = lines
            .chunk_by(|a, b| is_row(a) && is_row(b) && is_inside(a) == is_inside(b))
            .filter_map(|rows| {
                let has_command = || {
                    rows.iter()
                        .filter_map(|row| cell(row.text))
                        .any(|name| self.command(&name).is_some())
                };
                let start = end;
                end += rows.len();
                (is_row(&rows[0]) && is_inside(&rows[0]) && (section.is_some() || has_command()))
                    .then_some(start..end)
            });
        tables.take(if section.is_some() { usize::MAX } else { 1 }).collect()
    }

    /// The listed entry that a row belongs to.
    fn row_of(&self, row: &Line) -> Option<EntryId> {
        cell(row.text).and_then(|name| self.listed_as(&name))
    }

    /// The listed commands that no line of the page is about. Only lines that `counts` accepts are
    /// considered.
    fn missing(&self, lines: &[Line], counts: impl Fn(usize) -> bool) -> Vec<&'a Entry> {
        let mentioned =
            lines.iter().enumerate().filter(|(at, line)| line.code == Code::Outside && counts(*at));
        let mentioned = mentioned.filter_map(|(_, line)| self.command(&subject(line.text)?));
        let mentioned: FxHashSet<EntryId> = mentioned.collect();
        self.listed().filter(|(id, _)| !mentioned.contains(id)).map(|(_, entry)| &**entry).collect()
    }

    fn hides_part(&self, line: &str) -> bool {
        names(line).any(|name| self.hides(name))
    }

    /// Whether a name belongs to an entry that is hidden or not listed. Names of nothing are
    /// ordinary words.
    fn hides(&self, name: &str) -> bool {
        match self.view.find(name) {
            Some(id) => !self.view.lists(id),
            None => self.view.catalog().knows(name),
        }
    }

    fn listed_as(&self, name: &str) -> Option<EntryId> {
        self.view.find(name).filter(|id| self.view.lists(*id))
    }

    /// The same, but only for commands of this domain.
    fn command(&self, name: &str) -> Option<EntryId> {
        self.listed_as(name)
            .filter(|id| self.view.catalog().entry(*id).domain.as_deref() == Some(self.name()))
    }

    fn generated(&self) -> String {
        let mut out = format!("# {}\n\n", self.name());
        if let Some(description) =
            self.index.and_then(|index| index.fields().description.as_deref())
        {
            push_line(&mut out, description);
            out.push_str("\n\n");
        }
        out.push_str(HEAD);
        for (_, entry) in self.listed() {
            push_row(&mut out, entry);
        }
        out
    }
}

fn push_row(out: &mut String, entry: &Entry) {
    let cell = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|");
    out.push_str("| ");
    push_line(out, &cell(&entry.name));
    out.push_str(" | ");
    push_line(out, &cell(entry.description()));
    out.push_str(" |\n");
}

/// Adds a line, with a line end if it has none because it is the page's last.
fn push_whole(out: &mut String, line: &str) {
    out.push_str(line);
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn is_row(line: &Line) -> bool {
    line.code == Code::Outside && line.text.starts_with('|')
}

/// The number of header lines of a table: two, or none if the second line is not a delimiter row.
fn head_of(table: &[Line]) -> usize {
    let is_delimiter = |line: &Line| {
        let text = line.text.trim();
        text.contains('-')
            && text.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
    };
    match table {
        [first, second, ..] if is_delimiter(second) && !is_delimiter(first) => 2,
        _ => 0,
    }
}

/// The first cell of a row, without marks of code, emphasis and links around it.
fn cell(row: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = row.trim_start().strip_prefix('|')?.chars();
    while let Some(char) = chars.next() {
        match char {
            '|' => break,
            '\\' => text.extend(chars.next()),
            char => text.push(char),
        }
    }
    let marks = |char: char| char.is_whitespace() || matches!(char, '`' | '*');
    let bare = text.trim_matches(marks);
    // `[email.send](send.md)`.
    let label =
        bare.strip_prefix('[').and_then(|link| link.split_once("](")).map(|(label, _)| label);
    Some(label.unwrap_or(bare).trim_matches(marks).to_owned())
}

/// The name that a line is about: the first cell of a row, or the word that a heading, list item or
/// paragraph begins with. An item that begins with a command and its flags is an example, not an
/// entry about it.
fn subject(line: &str) -> Option<String> {
    if line.starts_with('|') {
        return cell(line);
    }
    let text = line.trim_start().trim_start_matches(['#', '-', '*', '+']).trim_start();
    let text = text.trim_start_matches(['*', '[']);
    let bare = text.strip_prefix('`').unwrap_or(text);
    let (name, rest) = bare.split_at(bare.find(|char| !is_name(char)).unwrap_or(bare.len()));
    let is_alone = bare.len() == text.len() || rest.starts_with('`');
    (is_alone && name.contains('.')).then(|| name.trim_matches('.').to_owned())
}

/// The possible names in a line: words with a dot inside, and the first cell of a row. Other words
/// do not count, because a skill may be called `notes`.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|char: char| !is_name(char));
    let dotted = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.'));
    let first = line.trim_start().strip_prefix('|').and_then(|row| row.split('|').next());
    dotted.chain(first.map(|cell| cell.trim().trim_matches('`')))
}

fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_possible_names() {
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
            assert_eq!(names(line).collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn finds_the_subject_of_a_line() {
        for (line, expected) in [
            ("| email.send | Send |\n", Some("email.send")),
            ("|`email.send`|", Some("email.send")),
            ("| **[email.send](send.md)** | Send", Some("email.send")),
            ("| a\\|b \\\\ | Send |", Some("a|b \\")),
            ("| | email.send |", Some("")),
            ("- email.send: Send", Some("email.send")),
            ("  * `email.send` sends", Some("email.send")),
            ("### email.send\n", Some("email.send")),
            ("**email.send** sends", Some("email.send")),
            ("[email.send](send.md)", Some("email.send")),
            ("email.send.", Some("email.send")),
            ("- `email.send --to x`", None),
            ("Use email.send.", None),
            ("- Send", None),
            ("", None),
        ] {
            assert_eq!(subject(line).as_deref(), expected, "{line}");
        }
    }
}
