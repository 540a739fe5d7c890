//! The two things that a document becomes in a catalog: an entry, or the index of a domain.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHasher;

use crate::page::declaration::Declaration;
use crate::page::document::Document;
use crate::page::fields::Fields;
use crate::source::{Effects, Kind, Selection, Source, SourceKind, Trust};
use crate::tenant::Tenant;

/// The actions that have no side effects, if the page does not say otherwise.
const READS: [&str; 7] = ["search", "get", "list", "read", "find", "show", "count"];

/// A document under the name by which it is read and run.
#[derive(Debug)]
pub struct Entry {
    /// The name. It is unique in a view, not in a catalog.
    pub name: Arc<str>,
    /// Command, skill or note.
    pub kind: Kind,
    /// The domain of a command.
    pub domain: Option<String>,
    /// `title`; for a note without one, its first heading or its file name.
    pub title: Option<String>,
    /// The labels of the document and of its source.
    pub labels: Vec<String>,
    /// Its source.
    pub source: Arc<Source>,
    /// How far its text is trusted: like its source, or for a record like its author.
    pub trust: Trust,
    /// Its text and fields.
    pub document: Arc<Document>,
    /// How the globs of its source select it.
    pub selection: Selection,
    /// The other files of a skill's folder, relative to it, sorted.
    pub files: Vec<String>,
    /// See [`Entry::digest`].
    pub(crate) digest: OnceLock<u64>,
    /// See [`embedded`](crate::search::embedded).
    pub(crate) embedded: OnceLock<[u8; 16]>,
    /// A value of the program around the core.
    pub kept: Kept,
}

/// A value of any type that is made once, when it is first needed, and lives as long as the entry.
#[derive(Default)]
pub struct Kept(OnceLock<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// The value. A program keeps values of one type; of another type there is none.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Entry {
    /// The frontmatter's fields.
    pub fn fields(&self) -> &Fields {
        &self.document.fields
    }

    /// To whom it belongs: the tenant of the record, or of the source.
    pub fn tenant(&self) -> &Tenant {
        self.document.of_record().map_or(&self.source.tenant, |record| &record.tenant)
    }

    /// `handler`, unless its trust is low and strangers wrote the field.
    pub fn handler(&self) -> Option<&str> {
        let own = self.trust > Trust::Low || self.source.kind == SourceKind::Remote;
        self.fields().handler.as_deref().filter(|_| own)
    }

    /// `schedule`, unless its trust is low.
    pub fn schedule(&self) -> Option<&str> {
        self.fields().schedule.as_deref().filter(|_| self.trust > Trust::Low)
    }

    /// The side effects of running it: those of the page, or by its handler and the last part of
    /// its name.
    pub fn effects(&self) -> Effects {
        let action = self.name.rsplit('.').next().unwrap_or_default();
        self.fields().effects.unwrap_or(match self.handler().is_none() || READS.contains(&action) {
            true => Effects::Read,
            false => Effects::Write,
        })
    }

    /// Whether running it has no side effects.
    pub fn reads(&self) -> bool {
        self.effects() == Effects::Read
    }

    /// The flags that a command's page declares. Skills and notes have none: the flags they mention
    /// may be those of any program.
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

    /// A number for everything that a reader sees of the entry; equal entries have equal numbers,
    /// also if they were read at different times. Computed on first use and kept with the entry,
    /// so that a view need not read all texts again. Only changes are found with it, so a fast hash
    /// is enough.
    pub fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let mut hasher = FxHasher::default();
            let kinds = (self.kind as u8, self.selection as u8, self.trust as u8);
            (&self.name, &self.labels, &self.source.name, kinds, &self.files).hash(&mut hasher);
            (&self.document.path, &self.document.text, self.tenant()).hash(&mut hasher);
            // A file's fields are in its text; a record's are not.
            if self.document.of_record().is_some() {
                self.document.data().hash(&mut hasher);
            }
            hasher.finish()
        })
    }
}

/// The `SKILL.md` of a domain.
#[derive(Debug)]
pub struct DomainIndex {
    /// The domain.
    pub domain: String,
    /// The labels of the document and of its source.
    pub labels: Vec<String>,
    /// Its source.
    pub source: Arc<Source>,
    /// Its text and fields.
    pub document: Arc<Document>,
}

impl DomainIndex {
    /// The frontmatter's fields.
    pub fn fields(&self) -> &Fields {
        &self.document.fields
    }

    /// How far its text is trusted.
    pub fn trust(&self) -> Trust {
        self.fields().trust(self.source.trust)
    }
}

/// The parts that entries and indexes have in common, for [conflicts](super::precedence).
pub(crate) trait Named {
    fn document(&self) -> &Document;
    fn source(&self) -> &Source;
    fn trust(&self) -> Trust;
    fn tenant(&self) -> &Tenant;
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
    fn tenant(&self) -> &Tenant {
        self.tenant()
    }
}

impl Named for DomainIndex {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &Source {
        &self.source
    }
    fn trust(&self) -> Trust {
        self.trust()
    }
    fn tenant(&self) -> &Tenant {
        &self.source.tenant
    }
}
