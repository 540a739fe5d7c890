//! The files of sources, for the programs around the core: the library of the virtual machine and
//! the command line.
//!
//! [`LoadedFolder`] finds and reads the files of a source, and on a reload only those that have
//! changed. [`resource`] reads a file of a skill's folder, [`strict`] checks every `SKILL.md`
//! against the Agent Skills format, [`document`] reads and replaces one document.
//!
//! Loading has three steps: list the folders, read the `SKILL.md` files, and read the other
//! Markdown files, without those that a `SKILL.md` claims as resources of its skill.
//!
//! A reload with changed paths lists and reads only the files that they affect (`touched`). With
//! links or changed ignore files that could miss something; then all folders are listed, and files
//! with unchanged size and times are not read (`read`).
//!
//! # Threads
//!
//! Listing and reading use up to eight threads, which end before the call returns (`parallel`).
//! They share no mutable state, and all results are sorted by path, so the result does not depend
//! on their timing.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod document;
mod folder;
mod ignores;
pub mod parallel;
mod read;
pub mod resource;
pub mod strict;
mod touched;
mod walk;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skillbook_core::catalog::assemble::{assemble_again, Assembled};
use skillbook_core::catalog::finding::Finding;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};
use skillbook_core::source::{Source, Trust};

use folder::{split, Folder, Found, MarkdownFile};
use ignores::is_ignore_file;
use parallel::parallel;
use read::{DocumentReader, Freshness};
use touched::{touched, Paths, Touched};
use walk::{is_skipped, Walker, MAX_FILES};

/// The maximum size of a document in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Whether a change of a file or folder with this name can affect a source.
pub fn is_concerned(name: &OsStr) -> bool {
    is_ignore_file(name) || !is_skipped(name)
}

/// A source of files with the result of its last load.
pub struct LoadedFolder {
    source: Arc<Source>,
    /// `None` if the root could not be listed, so that there is nothing to update.
    tree: Option<Tree>,
    assembled: Assembled,
}

struct Tree {
    top: Folder,
    /// The root after resolving links.
    real: PathBuf,
    has_links: bool,
}

impl LoadedFolder {
    /// Loads the source.
    pub fn new(source: Arc<Source>) -> LoadedFolder {
        let mut loaded = LoadedFolder { source, tree: None, assembled: Assembled::default() };
        loaded.look(None);
        loaded
    }

    /// The entries and indexes of the source.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// Loads everything again, or only the files that the changed paths affect. Returns whether
    /// anything differs.
    pub fn refresh(&mut self, changed: Option<&[PathBuf]>) -> bool {
        let touched = match changed {
            Some(changed) => self.touched(changed),
            None => Touched::All,
        };
        match touched {
            Touched::Some(paths) if paths.is_empty() => false,
            Touched::Some(paths) => self.look(Some(&paths)),
            Touched::All => self.look(None),
        }
    }

    fn touched(&self, changed: &[PathBuf]) -> Touched {
        let root = Path::new(&self.source.root);
        let real = match &self.tree {
            Some(tree) => tree.real.clone(),
            None => fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()),
        };
        // Paths outside the root concern other sources.
        let below: Vec<&Path> =
            changed.iter().filter_map(|path| touched::below(path, root, &real)).collect();
        match &self.tree {
            _ if below.is_empty() => Touched::Some(Paths::default()),
            // With links, a path may show up under several names.
            Some(tree) if !tree.has_links => touched(&tree.top, root, &below),
            _ => Touched::All,
        }
    }

    fn look(&mut self, paths: Option<&Paths>) -> bool {
        let source = self.source.clone();
        let mut old = self.tree.take();
        let had_tree = old.is_some();
        // First try to update only the affected folders.
        let partial = match (paths, &mut old) {
            (Some(paths), Some(tree)) => Some(update(&source.root, &mut tree.top, paths)),
            _ => None,
        };
        let listed = match (partial, old) {
            (Some(Some(differs)), Some(tree)) => Ok((tree, differs)),
            // The folders that were updated before this no longer differ from the new listing, so
            // the change must be remembered.
            (partial, old) => walk(&source, old.map(|tree| tree.top))
                .map(|(tree, differs)| (tree, differs || partial.is_some())),
        };
        let (mut tree, listing_differs) = match listed {
            Ok(listed) => listed,
            Err(assembled) => {
                let diagnostics = |assembled: &Assembled| -> Vec<Diagnostic> {
                    assembled.findings.iter().map(|finding| finding.diagnostic.clone()).collect()
                };
                let differs = had_tree || diagnostics(&assembled) != diagnostics(&self.assembled);
                self.assembled = assembled;
                return differs;
            }
        };
        // Two passes, because the `SKILL.md` files decide which other files are documents at all.
        let reader = DocumentReader::new(&source, &self.assembled);
        let mut files = Vec::new();
        tree.top.skill_files("", &mut files);
        let skills_differ = read(&reader, files);
        let mut files = Vec::new();
        tree.top.other_documents("", false, &mut files);
        let others_differ = read(&reader, files);
        let differs = listing_differs || skills_differ || others_differ;
        // Nothing is assembled if all files are the same.
        if differs {
            let mut found = Found::default();
            tree.top.collect("", &source.tenant, &mut found);
            self.assembled = assemble_again(&source, found.documents, found.files, &self.assembled);
            self.assembled.findings.extend(found.findings);
        }
        self.tree = Some(tree);
        differs
    }
}

/// Lists all folders of a source, and takes over the files that were read before. Also returns
/// whether the listings differ.
fn walk(source: &Source, old: Option<Folder>) -> Result<(Tree, bool), Assembled> {
    let real = match fs::canonicalize(&source.root) {
        Ok(real) if real.is_dir() => real,
        Ok(_) => return Err(refused(source, Code::SourceMissing, "expected a folder, got a file")),
        Err(error) if source.optional && error.kind() == ErrorKind::NotFound => {
            return Err(if source.implied { Assembled::default() } else { missing(source) })
        }
        Err(error) => {
            let message = match error.kind() {
                ErrorKind::NotFound => "the folder does not exist".to_owned(),
                _ => format!("the folder cannot be read: {error}"),
            };
            return Err(refused(source, Code::SourceMissing, &message));
        }
    };
    // After the check for existence, so that a missing source is reported as missing.
    if source.trust == Trust::None {
        return Err(untrusted(source));
    }
    let walker = Walker::new(&source.root);
    let mut top = walker.walk(&real);
    if walker.is_full() {
        let message =
            format!("a source may have {MAX_FILES} files, this one has more; none of it is used");
        return Err(refused(source, Code::TooManyFiles, &message));
    }
    let differs = old.is_none_or(|old| top.adopt(old));
    let has_links = top.has_links();
    Ok((Tree { top, real, has_links }, differs))
}

/// Updates the listings of some folders. Returns whether they differ, or `None` if all folders must
/// be listed: because of links, changed ignore files, or too many files.
fn update(root: &str, top: &mut Folder, paths: &Paths) -> Option<bool> {
    let walker = Walker::new(root);
    let mut differs = false;
    for path in &paths.lists {
        // A folder that no longer exists is covered by the listing of its parent.
        let Some(ignores) = parent_ignores(top, path) else { continue };
        let Some(folder) = top.at_mut(path) else { continue };
        let mut new = walker.listing(path, ignores.as_ref());
        // Both can affect files elsewhere in the tree.
        if new.has_links() || new.ignores != folder.ignores {
            return None;
        }
        differs |= new.adopt_files(folder, Freshness::Yes);
        for (name, below) in &mut new.folders {
            // A folder that was known keeps its tree; a new one is listed with everything in it.
            *below = match folder.folders.remove(name) {
                Some(known) => known,
                None => walker.below(&folder::join(path, name), new.ignores.as_ref()),
            };
            if walker.is_full() {
                return None;
            }
        }
        *folder = new;
    }
    for path in &paths.trees {
        let Some(ignores) = parent_ignores(top, path) else { continue };
        let Some(folder) = top.at_mut(path) else { continue };
        let mut new = walker.below(path, ignores.as_ref());
        differs |= new.adopt(std::mem::take(folder));
        *folder = new;
    }
    for path in &paths.files {
        let (parent, name) = split(path);
        if let Some(file) = top.at_mut(parent).and_then(|folder| folder.markdown(name)) {
            file.fresh = Freshness::No;
        }
    }
    (!walker.is_full() && top.count() <= MAX_FILES && !top.has_links()).then_some(differs)
}

/// The ignore files that apply to a folder's parent. `None` if there is no such folder.
fn parent_ignores(top: &Folder, path: &str) -> Option<Option<Arc<ignores::Ignores>>> {
    if path.is_empty() {
        return Some(None);
    }
    top.at(split(path).0).map(|folder| folder.ignores.clone())
}

/// Reads these files where needed. Returns whether any of them differs.
fn read(reader: &DocumentReader, mut files: Vec<(String, &mut MarkdownFile)>) -> bool {
    // Threads read into results of their own; the tree is updated afterwards, by one thread.
    let results = {
        let jobs: Vec<(&str, &MarkdownFile)> =
            files.iter().map(|(path, file)| (path.as_str(), &**file)).collect();
        parallel(&jobs, Vec::new, |buffer, (path, file)| {
            reader.read(path, file.read.as_ref(), file.fresh, buffer)
        })
    };
    let mut differs = false;
    for ((_, file), result) in files.iter_mut().zip(results) {
        file.fresh = Freshness::Yes;
        if let Some((read, other)) = result {
            differs |= other;
            file.read = Some(read);
        }
    }
    differs
}

fn untrusted(source: &Source) -> Assembled {
    let message = format!("the source `{}` is not trusted, so it is not read", source.name);
    let diagnostic = Diagnostic::new(Code::SourceUntrusted, Severity::Info, message)
        .hint("if you know its content, set its trust to low, medium or high")
        .in_file(source.root.as_str());
    nothing_but(source, diagnostic)
}

/// An optional source without a folder is empty. Its path may be a typing error.
fn missing(source: &Source) -> Assembled {
    let message = "the folder does not exist, so this optional source is empty";
    let diagnostic = Diagnostic::new(Code::SourceMissing, Severity::Warning, message)
        .hint("create the folder, or correct the path");
    nothing_but(source, diagnostic.in_file(source.root.as_str()))
}

fn refused(source: &Source, code: Code, message: &str) -> Assembled {
    let diagnostic = Diagnostic::new(code, Severity::Error, message);
    nothing_but(source, diagnostic.in_file(source.root.as_str()))
}

fn nothing_but(source: &Source, diagnostic: Diagnostic) -> Assembled {
    let mut nothing = Assembled::default();
    nothing.findings.push(Finding::trusted(diagnostic, &source.tenant));
    nothing
}

fn unreadable(path: String, reason: &str) -> Diagnostic {
    Diagnostic::new(Code::Unreadable, Severity::Error, format!("cannot be read: {reason}"))
        .in_file(path)
}
