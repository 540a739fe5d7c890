//! What a catalog makes of a document: an entry or the index of a domain.

use std::sync::Arc;

use crate::declaration::Declaration;
use crate::document::{Document, Fields};
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
        let matches = |globs: &Option<Globs>| globs.as_ref().is_some_and(|globs| globs.matches(name));
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
        [&self.available, &self.inline].iter().all(|globs| globs.as_ref().is_some_and(|globs| globs.matches(name)))
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

/// One document under the name by which it is read and run.
#[derive(Debug)]
pub struct Entry {
    /// The name, which occurs once in a catalog.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// The domain of a command.
    pub domain: Option<String>,
    /// `title`; for a note its first heading or its file's name if it has none.
    pub title: Option<String>,
    /// The document's labels and its source's.
    pub labels: Vec<String>,
    /// Its source.
    pub source: Arc<Source>,
    /// How far its text is trusted: as far as its source, but a record as far as who wrote it.
    pub trust: Trust,
    /// Its text and fields.
    pub document: Arc<Document>,
    /// How its source's globs select it.
    pub selection: Selection,
    /// The other files of a skill's folder, relative to it, sorted.
    pub files: Vec<String>,
}

impl Entry {
    /// The frontmatter's fields.
    pub fn fields(&self) -> &Fields {
        &self.document.fields
    }

    /// `handler`, unless its trust is low.
    pub fn handler(&self) -> Option<&str> {
        self.fields().handler.as_deref().filter(|_| self.trust > Trust::Low)
    }

    /// `schedule`, unless its trust is low.
    pub fn schedule(&self) -> Option<&str> {
        self.fields().schedule.as_deref().filter(|_| self.trust > Trust::Low)
    }

    /// The flags that a command's page declares; skills and notes may speak of any program's.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.document.declaration().filter(|_| self.kind == Kind::Command)
    }

    /// The description; notes may have none.
    pub fn description(&self) -> &str {
        self.fields().description.as_deref().unwrap_or("")
    }

    /// The text after the frontmatter.
    pub fn body(&self) -> &str {
        self.document.body()
    }
}

/// The `SKILL.md` of a domain.
#[derive(Debug)]
pub struct Index {
    /// The domain.
    pub domain: String,
    /// The document's labels and its source's.
    pub labels: Vec<String>,
    /// Its source.
    pub source: Arc<Source>,
    /// Its text and fields.
    pub document: Arc<Document>,
}

impl Index {
    /// The frontmatter's fields.
    pub fn fields(&self) -> &Fields {
        &self.document.fields
    }
}

/// The domain and the action of a command's name: two or more words between dots, of letters, digits, `-` and `_`.
///
/// ```
/// use skillbook_core::entry::command_name;
/// assert_eq!(command_name("email.send"), Some(("email", "send")));
/// assert_eq!(command_name("email"), None);
/// assert_eq!(command_name("Node.js tips"), None);
/// ```
pub fn command_name(name: &str) -> Option<(&str, &str)> {
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let (domain, action) = name.split_once('.')?;
    (word(domain) && action.split('.').all(word)).then_some((domain, action))
}

/// Appends a text on one line: runs of blanks and line breaks become one blank.
///
/// ```
/// let mut line = String::from("- ");
/// skillbook_core::entry::push_line(&mut line, " two\n words ");
/// assert_eq!(line, "- two words");
/// ```
pub fn push_line(out: &mut String, text: &str) {
    // Most descriptions are on one line already, and a prompt has thousands of them.
    if is_line(text.as_bytes()) {
        out.push_str(text);
        return;
    }
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
}

/// Whether it is ASCII with single blanks inside and no other white space.
fn is_line(text: &[u8]) -> bool {
    let mut blank = true;
    for byte in text {
        match byte {
            b' ' if blank => return false,
            b' ' => blank = true,
            b'!'..=b'~' => blank = false,
            _ => return false,
        }
    }
    !blank
}

#[cfg(test)]
mod tests {
    use super::push_line;

    #[test]
    fn a_text_on_one_line() {
        let rows = [
            ("", ""),
            (" ", ""),
            ("a", "a"),
            ("a b", "a b"),
            ("a  b", "a b"),
            (" a b", "a b"),
            ("a b ", "a b"),
            ("a\tb\nc", "a b c"),
            ("a\u{2028}b\u{a0}c", "a b c"),
            ("ä\u{0}b", "ä\u{0}b"),
        ];
        for (text, expected) in rows {
            let mut out = String::new();
            push_line(&mut out, text);
            assert_eq!(out, expected, "{text:?}");
        }
    }
}
