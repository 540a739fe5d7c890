//! Sources of entries: the kind of a source, its trust, and the entries that its globs select.
//!
//! ```
//! use skillbook_core::glob::Globs;
//! use skillbook_core::source::{Selection, Source};
//!
//! let inline = Globs::new(&["house-*".to_owned()]).unwrap();
//! let source = Source { inline: Some(inline), ..Source::default() };
//! assert_eq!(source.selects("house-rules"), Some(Selection::Inline));
//! assert_eq!(source.selects("mail.send"), None);
//! ```
//!
//! # Adding a kind of source
//!
//! 1. Add a variant to [`SourceKind`], and decode it in `skillbook_nif/src/catalog.rs`.
//! 2. Turn its documents into entries in `catalog/assemble`, with rows in `tests/assemble.rs`, and
//!    decide in `catalog/precedence.rs` which of its entries are used.
//! 3. Add it to the schema and the docs of `Skillbook.Source`.
//! 4. If it is not a folder, `LoadedSource` in `skillbook_nif/src/catalog.rs` needs a way to get
//!    its documents.

use crate::glob::Globs;
use crate::tenant::Tenant;

/// The kind of documents in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceKind {
    /// Skills and commands: a Markdown file without frontmatter is not an entry.
    #[default]
    Skills,
    /// Notes: every Markdown file is an entry.
    Notes,
    /// Records of a database, each of them an entry.
    Stored,
    /// Pages that the program's code hands over, each of them an entry.
    Code,
    /// Pages that a client makes of the tools and skills of a server, each of them an entry. The
    /// fields of their frontmatter are the client's own, so handlers run at any trust.
    Remote,
}

impl SourceKind {
    /// Whether its documents are handed over, and not read from a folder.
    pub fn has_pages(self) -> bool {
        matches!(self, SourceKind::Code | SourceKind::Remote)
    }
}

/// The trust level of a source. Higher levels may do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Trust {
    /// Not read at all.
    None,
    /// Texts of strangers: entries cannot replace those of other sources, or name handlers.
    Low,
    /// Texts chosen by the people of the application.
    #[default]
    Medium,
    /// The application's own texts.
    High,
}

impl Trust {
    /// `none`, `low`, `medium` or `high`.
    pub fn as_str(self) -> &'static str {
        match self {
            Trust::None => "none",
            Trust::Low => "low",
            Trust::Medium => "medium",
            Trust::High => "high",
        }
    }
}

/// The way in which a source's globs select an entry for prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Listed, and read when needed.
    Available,
    /// Its text is part of the prompt.
    Inline,
}

impl Selection {
    /// `available` or `inline`.
    pub fn as_str(self) -> &'static str {
        match self {
            Selection::Available => "available",
            Selection::Inline => "inline",
        }
    }
}

/// A source of entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name that its entries refer to.
    pub name: String,
    /// The kind of its documents.
    pub kind: SourceKind,
    /// Labels of all its documents, in addition to their own.
    pub labels: Vec<String>,
    /// To whom all its documents belong; records have a tenant of their own.
    pub tenant: Tenant,
    /// The folder, without a trailing `/`.
    pub root: String,
    /// Whether the folder may be missing.
    pub optional: bool,
    /// Whether an optional folder is missing without a warning, since nobody has named it.
    pub implied: bool,
    /// Its trust level.
    pub trust: Trust,
    /// Globs for the names of listed entries. `None` means all, or none if `inline` is given.
    pub available: Option<Globs>,
    /// Globs for the names of entries that prompts include in full.
    pub inline: Option<Globs>,
}

impl Source {
    /// The selection of a name by the globs; `None` if no glob matches. If both match, it is
    /// inline.
    pub fn selects(&self, name: &str) -> Option<Selection> {
        let matches =
            |globs: &Option<Globs>| globs.as_ref().is_some_and(|globs| globs.matches(name));
        if matches(&self.inline) {
            return Some(Selection::Inline);
        }
        // Without globs everything is listed.
        (!self.has_globs() || matches(&self.available)).then_some(Selection::Available)
    }

    /// Whether globs select its entries.
    pub fn has_globs(&self) -> bool {
        self.available.is_some() || self.inline.is_some()
    }

    /// Whether both kinds of globs match a name.
    pub fn selects_twice(&self, name: &str) -> bool {
        [&self.available, &self.inline]
            .iter()
            .all(|globs| globs.as_ref().is_some_and(|globs| globs.matches(name)))
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `domain.action`, one file.
    Command,
    /// A folder with `SKILL.md`, or one file with a name and a description.
    Skill,
    /// A document without a skill's frontmatter.
    Note,
}

impl Kind {
    /// `command`, `skill` or `note`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Command => "command",
            Kind::Skill => "skill",
            Kind::Note => "note",
        }
    }
}

/// The side effects of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// None: it only reads.
    Read,
    /// It changes data.
    Write,
}

impl Effects {
    /// `read` or `write`.
    pub fn as_str(self) -> &'static str {
        match self {
            Effects::Read => "read",
            Effects::Write => "write",
        }
    }
}
