//! Where entries come from, and what kinds of entries there are.

use crate::glob::Globs;

/// What a source holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceKind {
    /// Skills and commands: a Markdown file without frontmatter is not an entry.
    #[default]
    Skills,
    /// Notes: every Markdown file is an entry.
    Notes,
    /// Records of a database, each of them an entry.
    Stored,
}

/// How far a source is trusted. What its documents may do grows with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Trust {
    /// Nothing of it is read.
    None,
    /// Texts of strangers: its entries replace none of another source and run no handler.
    Low,
    /// Texts that the application's people chose.
    #[default]
    Medium,
    /// The application's own.
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

/// How a source's globs select an entry for prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Listed, to be read when it is needed.
    Available,
    /// Its text stands in the prompt.
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

/// Where entries come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name by which entries refer to it.
    pub name: String,
    /// What it holds.
    pub kind: SourceKind,
    /// Labels that each of its documents carries besides its own.
    pub labels: Vec<String>,
    /// The folder, without a `/` at its end.
    pub root: String,
    /// Whether the folder may be missing.
    pub optional: bool,
    /// How far it is trusted.
    pub trust: Trust,
    /// Which of its entries are listed, by name; `None` stands for all, or for none if `inline` is given.
    pub available: Option<Globs>,
    /// Which of its entries stand in prompts as a whole.
    pub inline: Option<Globs>,
}

impl Source {
    /// How the source's globs select the entry of a name; `None` if no glob does. Both at once is inline.
    pub fn selects(&self, name: &str) -> Option<Selection> {
        let matches =
            |globs: &Option<Globs>| globs.as_ref().is_some_and(|globs| globs.matches(name));
        if matches(&self.inline) {
            return Some(Selection::Inline);
        }
        (!self.has_globs() || matches(&self.available)).then_some(Selection::Available)
    }

    /// Whether it has globs that select its entries.
    pub fn has_globs(&self) -> bool {
        self.available.is_some() || self.inline.is_some()
    }

    /// Whether both kinds of its globs select the entry of a name.
    pub fn selects_twice(&self, name: &str) -> bool {
        [&self.available, &self.inline]
            .iter()
            .all(|globs| globs.as_ref().is_some_and(|globs| globs.matches(name)))
    }
}

/// What an entry is.
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

/// What running a command does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// It only looks.
    Read,
    /// It changes something.
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
