//! The tree of folders that a load has found.

use std::collections::BTreeMap;
use std::sync::Arc;

use skillbook_core::catalog::finding::Finding;
use skillbook_core::page::diagnostic::Diagnostic;
use skillbook_core::page::document::{Document, SKILL_FILE};
use skillbook_core::tenant::Tenant;

use super::ignores::Ignores;
use super::read::{Freshness, ReadFile};

/// A folder, without ignored and skipped files. Folders are nested at most 16 deep, so recursion
/// over them is bounded.
#[derive(Default)]
pub struct Folder {
    /// The names of the other files, sorted.
    pub others: Vec<String>,
    /// The Markdown files, sorted by name.
    pub markdown: Vec<MarkdownFile>,
    /// The folders inside it.
    pub folders: BTreeMap<String, Folder>,
    /// The names of its symbolic links, sorted.
    pub links: Vec<String>,
    /// The diagnostics of listing it.
    pub diagnostics: Vec<Diagnostic>,
    /// The ignore files that apply in it.
    pub ignores: Option<Arc<Ignores>>,
}

/// A Markdown file.
pub struct MarkdownFile {
    /// Its name.
    pub name: String,
    /// The file's content when it was read; `None` if it was not read because it belongs to a
    /// skill.
    pub read: Option<ReadFile>,
    /// Whether `read` is still up to date.
    pub fresh: Freshness,
}

/// The path of a name in a folder. The root's path is empty.
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// A path's parent folder and name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Folder {
    /// The folder at this path below.
    pub fn at(&self, path: &str) -> Option<&Folder> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(self, |folder, name| folder.folders.get(name))
    }

    /// The folder at this path below.
    pub fn at_mut(&mut self, path: &str) -> Option<&mut Folder> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(self, |folder, name| folder.folders.get_mut(name))
    }

    pub fn markdown(&mut self, name: &str) -> Option<&mut MarkdownFile> {
        let at = self.markdown.binary_search_by(|file| file.name.as_str().cmp(name)).ok()?;
        self.markdown.get_mut(at)
    }

    /// Whether it contains a regular file with this name.
    pub fn has_file(&self, name: &str) -> bool {
        self.markdown.binary_search_by(|file| file.name.as_str().cmp(name)).is_ok()
            || self.others.binary_search_by(|file| file.as_str().cmp(name)).is_ok()
    }

    /// Adds the file that a link leads to.
    pub fn add_file(&mut self, name: &str, markdown: bool) {
        if markdown {
            let at = self.markdown.partition_point(|file| file.name.as_str() < name);
            self.markdown.insert(at, MarkdownFile::new(name.to_owned()));
        } else {
            let at = self.others.partition_point(|file| file.as_str() < name);
            self.others.insert(at, name.to_owned());
        }
    }

    /// Takes over the files that an earlier listing of this folder has read. Returns whether the
    /// listings differ.
    pub fn adopt_files(&mut self, old: &mut Folder, fresh: Freshness) -> bool {
        // Both lists are sorted by name.
        let mut before = std::mem::take(&mut old.markdown).into_iter().peekable();
        let mut same = true;
        for file in &mut self.markdown {
            while before.next_if(|old| old.name < file.name).is_some() {
                same = false;
            }
            match before.next_if(|old| old.name == file.name) {
                Some(old) => (file.read, file.fresh) = (old.read, fresh),
                None => same = false,
            }
        }
        same &= before.next().is_none();
        !(same
            && self.others == old.others
            && self.links == old.links
            && self.diagnostics == old.diagnostics
            && self.folders.keys().eq(old.folders.keys()))
    }

    /// The same for all folders below.
    pub fn adopt(&mut self, mut old: Folder) -> bool {
        let mut differs = self.adopt_files(&mut old, Freshness::Stamp);
        for (name, folder) in &mut self.folders {
            if let Some(old) = old.folders.remove(name) {
                differs |= folder.adopt(old);
            }
        }
        differs
    }

    /// The number of files, folders and links in it and below. Diagnostics count too, since they
    /// stand for files that were left out.
    pub fn count(&self) -> usize {
        let below: usize = self.folders.values().map(|folder| folder.count() + 1).sum();
        self.others.len() + self.markdown.len() + self.links.len() + self.diagnostics.len() + below
    }

    /// Whether it or a folder below contains a link.
    pub fn has_links(&self) -> bool {
        !self.links.is_empty() || self.folders.values().any(Folder::has_links)
    }

    /// Calls `visit` with each folder and its path, beginning with this one.
    pub fn each<'a>(&'a self, path: &str, visit: &mut impl FnMut(&str, &'a Folder)) {
        visit(path, self);
        for (name, folder) in &self.folders {
            folder.each(&join(path, name), visit);
        }
    }

    /// The `SKILL.md` files that must be read, with their paths.
    pub fn skill_files<'a>(
        &'a mut self,
        path: &str,
        out: &mut Vec<(String, &'a mut MarkdownFile)>,
    ) {
        for file in
            self.markdown.iter_mut().filter(|file| file.name == SKILL_FILE && !file.is_fresh())
        {
            out.push((join(path, SKILL_FILE), file));
        }
        for (name, folder) in &mut self.folders {
            folder.skill_files(&join(path, name), out);
        }
    }

    /// The other Markdown files that must be read, with their paths. Files that the closest
    /// `SKILL.md` claims are resources of a skill and are not read.
    pub fn other_documents<'a>(
        &'a mut self,
        path: &str,
        claimed: bool,
        out: &mut Vec<(String, &'a mut MarkdownFile)>,
    ) {
        // The folder's own `SKILL.md` decides for it; without one, the decision from above holds.
        let own = self
            .markdown(SKILL_FILE)
            .and_then(|file| file.read.as_ref())
            .and_then(ReadFile::document);
        let claimed = own.map_or(claimed, |document| document.claims_folder());
        for file in self.markdown.iter_mut().filter(|file| file.name != SKILL_FILE) {
            // A file that was a document before may have become a resource.
            if claimed {
                file.read = None;
            } else if !file.is_fresh() {
                out.push((join(path, &file.name), file));
            }
        }
        for (name, folder) in &mut self.folders {
            folder.other_documents(&join(path, name), claimed, out);
        }
    }

    /// Collects the documents, the paths of all files, and the diagnostics, in any order.
    pub fn collect(&self, path: &str, tenant: &Tenant, found: &mut Found) {
        let finding = |diagnostic: &Diagnostic| Finding::trusted(diagnostic.clone(), tenant);
        found.findings.extend(self.diagnostics.iter().map(finding));
        found.files.extend(self.others.iter().map(|name| join(path, name)));
        for file in &self.markdown {
            found.files.push(join(path, &file.name));
            match file.read.as_ref().map(|read| &read.result) {
                Some(Ok(document)) => found.documents.push(document.clone()),
                Some(Err(diagnostic)) => found.findings.push(finding(diagnostic)),
                None => {}
            }
        }
        for (name, folder) in &self.folders {
            folder.collect(&join(path, name), tenant, found);
        }
    }
}

impl MarkdownFile {
    pub fn new(name: String) -> MarkdownFile {
        MarkdownFile { name, read: None, fresh: Freshness::No }
    }

    fn is_fresh(&self) -> bool {
        self.fresh == Freshness::Yes && self.read.is_some()
    }
}

/// The input for assembling a source.
#[derive(Default)]
pub struct Found {
    pub documents: Vec<Arc<Document>>,
    pub files: Vec<String>,
    pub findings: Vec<Arc<Finding>>,
}
