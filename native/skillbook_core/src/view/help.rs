//! The answers of `get_skill`, from the list of everything down to one file of a skill.
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
//! use skillbook_core::view::help::Help;
//!
//! // `view` shows the command `email.send`.
//! assert_eq!(view.help("email.send"), Some(Help::Text("Sends to `--to`.".into())));
//! assert_eq!(view.help("email.drop"), None);
//! ```

use super::domain::DomainView;
use super::view::View;
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::hidden::reveal;
use crate::page::declaration::text;
use crate::page::sections::{self, push_indented, INDENT};
use crate::source::Kind;
use crate::text::line::push_line;

/// The length of a path, in bytes, above which it is unknown without a look.
pub const MAX_PATH: usize = 4 * 1024;

/// The number of a skill's files that are listed. All of them can be read.
const LISTED_FILES: usize = 100;

/// The maximum width of the column of names. Longer names push their description to the right.
const WIDEST: usize = 32;

/// The answer of [`View::help`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Help {
    /// A text.
    Text(String),
    /// A file of a skill's folder. The caller reads it, since this crate does no IO.
    File {
        /// The skill.
        entry: EntryId,
        /// The file's path relative to the folder; one of the entry's files.
        file: String,
    },
}

impl View {
    /// Answers `get_skill: PATH`; `None` if the path is unknown.
    ///
    /// A path is, in this order: nothing (lists everything), an entry's name, `DOMAIN.all`, a
    /// domain, an alias, or the name of a skill with one of its files (`pdf/references/forms.md`).
    /// A path of more than [`MAX_PATH`] bytes is unknown.
    pub fn help(&self, path: &str) -> Option<Help> {
        if path.len() > MAX_PATH {
            return None;
        }
        let path = path.trim();
        if path.is_empty() {
            return Some(Help::Text(self.help_top_level()));
        }
        // A skill and a domain may have one name; then both answers are given.
        if let Some(id) = self.find_named(path) {
            let entry = self.entry(id)?;
            return Some(Help::Text(revealed(match self.domain_beside(path, id) {
                Some(index) => {
                    format!("{}\n\n---\n\n{}", skill_text(entry, true), indented(&index))
                }
                None => skill_text(entry, false),
            })));
        }
        let all = || path.strip_suffix(".all").and_then(|domain| self.help_domain_all(domain));
        let text = all().or_else(|| self.help_domain(path)).or_else(|| self.help_skill(path));
        text.map(Help::Text).or_else(|| self.help_file(path))
    }

    /// The index of the domain with the same name as the skill, unless one document is both.
    fn domain_beside(&self, name: &str, skill: EntryId) -> Option<String> {
        let document = &self.entry(skill)?.document;
        let domain = self.domain(name).filter(DomainView::is_listed)?;
        let same = domain.index().is_some_and(|index| index.document.path == document.path);
        (!same).then(|| domain.body().trim().to_owned())
    }

    /// All domains, all entries without a domain, and the next calls to make.
    pub fn help_top_level(&self) -> String {
        let domains: Vec<_> = self
            .domains()
            .filter(DomainView::is_listed)
            .map(|domain| (domain.name(), domain.description()))
            .collect();
        let of_kind = |kind: Kind| -> Vec<_> {
            let entries = self.listed().filter(|(_, entry)| entry.kind == kind);
            entries.map(|(_, entry)| (self.listed_name(entry), about(entry).to_owned())).collect()
        };
        let (skills, notes) = (of_kind(Kind::Skill), of_kind(Kind::Note));
        if domains.is_empty() && skills.is_empty() && notes.is_empty() {
            return "There are no skills here.".to_owned();
        }
        let mut out = String::new();
        let mut next = Vec::new();
        if !domains.is_empty() {
            push_table(&mut out, "Domains", &domains);
            next.push("get_skill: <domain>           the commands of a domain");
            next.push("get_skill: <domain>.<action>  one command: its usage, flags and examples");
            next.push("get_skill: <domain>.all       all commands of a domain");
        }
        if !skills.is_empty() {
            push_table(&mut out, "Skills", &skills);
            next.push("get_skill: <skill>            a skill's instructions and files");
        }
        if !notes.is_empty() {
            push_table(&mut out, "Notes", &notes);
            next.push("get_skill: <note>             a note");
        }
        out.push_str("Go on with:\n");
        for line in next {
            out.push_str("\n  ");
            out.push_str(line);
        }
        revealed(out)
    }

    /// The index of a domain; `None` if it has no listed command.
    pub fn help_domain(&self, name: &str) -> Option<String> {
        self.domain(name)
            .filter(DomainView::is_listed)
            .map(|domain| revealed(domain.body().trim().to_owned()))
    }

    /// The body of an entry and, for a skill, the list of its files. With that list the body is
    /// indented.
    pub fn help_skill(&self, name: &str) -> Option<String> {
        self.find(name)
            .and_then(|id| self.entry(id))
            .map(|entry| revealed(skill_text(entry, false)))
    }

    /// The bodies of all commands of a domain, each indented under its name.
    pub fn help_domain_all(&self, name: &str) -> Option<String> {
        let text = |entry: &Entry| {
            let body = body(entry);
            let text = indented(without_heading(&body, &entry.name).trim());
            format!("# {}\n\n{text}", entry.name)
        };
        let domain = self.domain(name).filter(DomainView::is_listed)?;
        let texts: Vec<_> = domain.listed().map(|(_, entry)| text(entry)).collect();
        Some(revealed(texts.join("\n\n---\n\n")))
    }

    /// A skill's name with one of its files. Only files that were found at load are answered, so a
    /// path cannot lead anywhere else.
    fn help_file(&self, path: &str) -> Option<Help> {
        // Any slash may end the skill's name, because names may contain slashes. No name is longer
        // than the longest one, so that the time for a path of slashes does not grow with their
        // square.
        let longest = self.catalog().longest_name();
        let mut ends = path.match_indices('/').take_while(|(at, _)| *at <= longest);
        ends.find_map(|(at, _)| {
            let (name, file) = (&path[..at], &path[at + 1..]);
            let id = self.find(name)?;
            let files = &self.entry(id)?.files;
            let place = files.binary_search_by(|known| known.as_str().cmp(file)).ok()?;
            Some(Help::File { entry: id, file: files[place].clone() })
        })
    }
}

/// The body of an entry, and the list of its files. The body is indented if lines of ours follow,
/// which are the list, or as `framed` says, those of the caller.
fn skill_text(entry: &Entry, framed: bool) -> String {
    let body = body(entry);
    if entry.files.is_empty() {
        return if framed { indented(&body) } else { body };
    }
    let mut out = indented(&body);
    out.push_str("\n\n## Files\n\nRead one with `get_skill: ");
    push_line(&mut out, &entry.name);
    out.push_str("/<file>`:\n");
    for file in entry.files.iter().take(LISTED_FILES) {
        out.push_str("\n- ");
        out.push_str(&file.replace('\n', "\\u{A}"));
    }
    if entry.files.len() > LISTED_FILES {
        out.push_str(&format!("\n- and {} more", entry.files.len() - LISTED_FILES));
    }
    out
}

fn indented(text: &str) -> String {
    let mut out = INDENT.to_owned();
    push_indented(&mut out, text);
    out
}

/// The text with hidden characters made visible.
fn revealed(mut text: String) -> String {
    reveal(&mut text, 0);
    text
}

/// The title of a note, the description of any other entry.
fn about(entry: &Entry) -> &str {
    match (entry.description(), &entry.title) {
        ("", Some(title)) => title,
        (description, _) => description,
    }
}

/// The body without surrounding blank lines. If it is empty, the name and the description.
fn body(entry: &Entry) -> String {
    let body = entry.body().trim();
    match body.is_empty() {
        true => {
            let text = format!("# {}\n\n{}", entry.name, entry.description());
            format!("{}{}", text.trim_end(), declared(entry, ""))
        }
        false => format!("{body}{}", declared(entry, body)),
    }
}

/// The sections Usage and Flags of a command whose frontmatter declares its flags, if the page has
/// none.
fn declared(entry: &Entry, body: &str) -> String {
    let given = entry.fields().flags.as_ref().filter(|given| given.error.is_none());
    let Some(given) = given.filter(|_| entry.kind == Kind::Command) else { return String::new() };
    let lacks = |title| sections::section(body, title).is_none();
    let mut out = String::new();
    if lacks("usage") {
        out.push_str("\n\n## Usage\n\n");
        out.push_str(&text::usage(&entry.name, &given.flags));
    }
    if lacks("flags") && !given.flags.is_empty() {
        out.push_str("\n\n## Flags\n\n");
        out.push_str(text::section(&given.flags).trim_end());
    }
    out
}

/// The text after the first line if that is a heading with this title; otherwise the whole text.
pub(crate) fn without_heading<'a>(body: &'a str, title: &str) -> &'a str {
    let first = sections::headings(body).next().filter(|heading| {
        let text = heading.title.trim_matches('`');
        body[..heading.start].trim().is_empty() && text.eq_ignore_ascii_case(title)
    });
    first.map_or(body, |heading| &body[heading.end..])
}

/// A heading, then a line per name with its description in a second column.
fn push_table(out: &mut String, title: &str, rows: &[(&str, String)]) {
    out.push_str(title);
    out.push_str(":\n\n");
    let width = width(rows.iter().map(|(name, _)| *name));
    for (name, description) in rows {
        push_row(out, width, name, description);
    }
    out.push('\n');
}

/// The width of the column of names.
pub(crate) fn width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(length).filter(|length| *length <= WIDEST).max().unwrap_or(0)
}

pub(crate) fn push_row(out: &mut String, width: usize, name: &str, description: &str) {
    out.push_str("  ");
    push_line(out, name);
    if !description.is_empty() {
        out.extend(std::iter::repeat_n(' ', width.saturating_sub(length(name)) + 2));
        push_line(out, description);
    }
    out.push('\n');
}

fn length(name: &str) -> usize {
    name.chars().count()
}
