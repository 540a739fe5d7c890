//! The role of each folder with a `SKILL.md`, and the files that belong to a skill.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::page::document::{Document, SKILL_FILE};
use crate::page::fields::Fields;
use crate::source::{Source, SourceKind};
use crate::text::line::command_name;

/// The role that a `SKILL.md` gives to its folder. Inner folders without one have the same role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Skill,
    Domain(Arc<str>),
    Both(Arc<str>),
    /// The `SKILL.md` cannot be read.
    Unknown,
}

/// The folders of a source that have a `SKILL.md`, with their roles.
#[derive(Default)]
pub(super) struct Folders<'a> {
    roles: FxHashMap<&'a str, Role>,
}

impl<'a> Folders<'a> {
    pub fn new(source: &Source, documents: &'a [Arc<Document>]) -> Folders<'a> {
        // Records and pages of code are not in folders.
        if source.kind == SourceKind::Stored || source.kind.has_pages() {
            return Folders::default();
        }
        let is_command = |document: &Document| {
            !document.is_skill_file()
                && document.fields.name.as_deref().is_some_and(|name| command_name(name).is_some())
        };
        // Folders with at least one command, for the last rule below.
        let mut commands: Vec<_> =
            documents.iter().filter(|document| is_command(document)).map(|d| d.folder()).collect();
        commands.sort_unstable();
        // A hidden skill's files are still files of a skill, not entries of their own.
        let role = |document: &Document| match document.fields_of_hidden() {
            None => Role::Unknown,
            Some(Fields { name: Some(_), domain: None, .. }) => Role::Skill,
            Some(Fields { name: Some(_), domain: Some(domain), .. }) => {
                Role::Both(domain.as_str().into())
            }
            Some(Fields { name: None, domain: Some(domain), .. }) => {
                Role::Domain(domain.as_str().into())
            }
            // Neither name nor domain: next to commands it is their index, otherwise a skill.
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

    /// The role that a `SKILL.md` gives to its own folder.
    pub fn own(&self, document: &Document) -> Option<&Role> {
        self.roles.get(document.folder())
    }

    /// The role that a document depends on: for a `SKILL.md` its own folder's, for others the
    /// closest one's upwards.
    pub fn of(&self, document: &Document) -> Option<&Role> {
        if self.roles.is_empty() {
            return None;
        }
        match document.is_skill_file() {
            true => self.roles.get(document.folder()),
            false => self.nearest(document.folder()).1,
        }
    }

    /// The closest folder upwards that has a `SKILL.md`, and its role.
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

    /// Whether a document in a folder that is both skill and domain is a page of its own instead of
    /// a file of the skill: a command, which has its own labels, or a document that cannot be read,
    /// whose labels are unknown.
    fn is_page(&self, document: &Document) -> bool {
        let both = matches!(self.nearest(document.folder()).1, Some(Role::Both(_)));
        let name = document.fields().map(|fields| fields.name.as_deref());
        both && !document.is_skill_file()
            && name.is_none_or(|name| name.is_some_and(|name| command_name(name).is_some()))
    }

    /// The files of each skill's folder, sorted. Pages of commands are left out, and files that
    /// belong to a skill or domain further down.
    pub fn resources(
        &self,
        documents: &[Arc<Document>],
        files: &[String],
    ) -> FxHashMap<String, Vec<String>> {
        // Pages are looked for only if some folder is both, which is rare.
        let has_both = self.roles.values().any(|role| matches!(role, Role::Both(_)));
        let pages = documents.iter().filter(|document| has_both && self.is_page(document));
        let pages: FxHashSet<&str> = pages.map(|document| document.relative()).collect();
        let mut resources: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for path in files {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (folder, role) = self.nearest(parent);
            // The skill's own page is not one of its files.
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

/// The name of a document's folder. For a document at the top, the name of the source's folder.
pub(super) fn folder_name<'a>(source: &'a Source, document: &'a Document) -> &'a str {
    let folder =
        if document.folder().is_empty() { source.root.as_str() } else { document.folder() };
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}
