//! What the `SKILL.md` of a folder makes of it and of the files in it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::page::document::{Document, Fields, SKILL_FILE};
use crate::source::{Source, SourceKind};
use crate::text::line::command_name;

/// What the `SKILL.md` of a folder makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Skill,
    Domain(Arc<str>),
    Both(Arc<str>),
    /// The `SKILL.md` cannot be used.
    Unknown,
}

/// The folders of a source that have a `SKILL.md`.
#[derive(Default)]
pub(super) struct Folders<'a> {
    roles: FxHashMap<&'a str, Role>,
}

impl<'a> Folders<'a> {
    pub fn new(source: &Source, documents: &'a [Arc<Document>]) -> Folders<'a> {
        // Records are in no folder.
        if source.kind == SourceKind::Stored {
            return Folders::default();
        }
        let is_command = |document: &Document| {
            !document.is_skill_file()
                && document.fields.name.as_deref().is_some_and(|name| command_name(name).is_some())
        };
        let mut commands: Vec<_> =
            documents.iter().filter(|document| is_command(document)).map(|d| d.folder()).collect();
        commands.sort_unstable();
        let role = |document: &Document| match document.fields() {
            None => Role::Unknown,
            Some(Fields { name: Some(_), domain: None, .. }) => Role::Skill,
            Some(Fields { name: Some(_), domain: Some(domain), .. }) => {
                Role::Both(domain.as_str().into())
            }
            Some(Fields { name: None, domain: Some(domain), .. }) => {
                Role::Domain(domain.as_str().into())
            }
            Some(_) if commands.binary_search(&document.folder()).is_ok() => {
                Role::Domain(folder_name(source, document).into())
            }
            Some(_) => Role::Skill,
        };
        let skill_files = documents.iter().filter(|document| document.is_skill_file());
        Folders { roles: skill_files.map(|document| (document.folder(), role(document))).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// The role of the document's own folder.
    pub fn own(&self, document: &Document) -> Option<&Role> {
        self.roles.get(document.folder())
    }

    /// What the `SKILL.md` makes of a document's folder that is its own, or the closest one upwards.
    pub fn of(&self, document: &Document) -> Option<&Role> {
        if self.roles.is_empty() {
            return None;
        }
        match document.is_skill_file() {
            true => self.roles.get(document.folder()),
            false => self.nearest(document.folder()).1,
        }
    }

    /// The closest folder upwards that has a `SKILL.md`.
    pub fn nearest<'b>(&self, folder: &'b str) -> (&'b str, Option<&Role>) {
        let mut folder = folder;
        loop {
            if let Some(role) = self.roles.get(folder) {
                return (folder, Some(role));
            }
            match folder.rsplit_once('/') {
                Some((parent, _)) => folder = parent,
                None if folder.is_empty() => return ("", None),
                None => folder = "",
            }
        }
    }

    /// Whether a document in the folder of a skill that is a domain too is not one of the skill's own files: a command's
    /// page, which has labels of its own, or one that cannot be read, whose labels nobody knows.
    fn is_page(&self, document: &Document) -> bool {
        let both = matches!(self.nearest(document.folder()).1, Some(Role::Both(_)));
        let name = document.fields().map(|fields| fields.name.as_deref());
        both && !document.is_skill_file()
            && name.is_none_or(|name| name.is_some_and(|name| command_name(name).is_some()))
    }

    /// The files of the skills' folders, sorted, without the pages of commands and those that belong to a skill or a domain
    /// further below.
    pub fn resources(
        &self,
        documents: &[Arc<Document>],
        files: &[String],
    ) -> FxHashMap<String, Vec<String>> {
        let has_both = self.roles.values().any(|role| matches!(role, Role::Both(_)));
        let pages = documents.iter().filter(|document| has_both && self.is_page(document));
        let pages: FxHashSet<&str> = pages.map(|document| document.relative()).collect();
        let mut resources: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for path in files {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (folder, role) = self.nearest(parent);
            let is_own_document = name == SKILL_FILE && parent == folder;
            if is_own_document
                || !matches!(role, Some(Role::Skill | Role::Both(_)))
                || pages.contains(path.as_str())
            {
                continue;
            }
            let below = path[folder.len()..].trim_start_matches('/').to_owned();
            match resources.get_mut(folder) {
                Some(files) => files.push(below),
                None => {
                    resources.insert(folder.to_owned(), vec![below]);
                }
            }
        }
        for files in resources.values_mut() {
            files.sort();
        }
        resources
    }
}

/// The name of a document's folder; the source's own folder for those directly in it.
pub(super) fn folder_name<'a>(source: &'a Source, document: &'a Document) -> &'a str {
    let folder =
        if document.folder().is_empty() { source.root.as_str() } else { document.folder() };
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}
