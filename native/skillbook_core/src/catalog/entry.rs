//! What a catalog makes of a document: an entry or the index of a domain.

use std::sync::Arc;

use crate::page::declaration::Declaration;
use crate::page::document::Document;
use crate::page::fields::Fields;
use crate::source::{Kind, Selection, Source, Trust};

/// One document under the name by which it is read and run.
#[derive(Debug)]
pub struct Entry {
    /// The name, which occurs once in a view.
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

/// What entries and indexes have in common.
pub(crate) trait Named {
    fn document(&self) -> &Document;
    fn source(&self) -> &Source;
    fn trust(&self) -> Trust;
}

impl Named for Entry {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &Source {
        &self.source
    }
    fn trust(&self) -> Trust {
        self.trust
    }
}

impl Named for Index {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &Source {
        &self.source
    }
    fn trust(&self) -> Trust {
        self.source.trust
    }
}
