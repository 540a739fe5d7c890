//! Finds and reads the files of sources, on threads of its own, and keeps what it found to look only at what changed.
//!
//! A look at a source has three steps: list its folders, read the `SKILL.md` files, and read the other Markdown files that
//! these leave to be documents. Looking again at some paths lists and reads only what they touch; where that could miss
//! something (links, ignore files) all folders are listed, and files whose size and times are the same are not read.
//! The order in which threads come along decides nothing: all results are sorted by path.

mod folder;
mod ignores;
mod parallel;
mod read;
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

/// The largest document, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Whether a file of this name, or one in a folder of this name, counts for what a source holds.
pub fn is_concerned(name: &OsStr) -> bool {
    is_ignore_file(name) || !is_skipped(name)
}

/// A source and what the last look at it found.
pub struct LoadedFolder {
    source: Arc<Source>,
    /// `None` if there is nothing that could be looked at again in part.
    tree: Option<Tree>,
    assembled: Assembled,
}

struct Tree {
    top: Folder,
    /// The root without links on the way to it.
    real: PathBuf,
    has_links: bool,
}

impl LoadedFolder {
    /// Reads the source.
    pub fn new(source: Arc<Source>) -> LoadedFolder {
        let mut loaded = LoadedFolder { source, tree: None, assembled: Assembled::default() };
        loaded.look(None);
        loaded
    }

    /// What the source holds.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// Looks at all of the source again, or at what the changed paths touch; whether anything differs.
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
        let below: Vec<&Path> =
            changed.iter().filter_map(|path| touched::below(path, root, &real)).collect();
        match &self.tree {
            _ if below.is_empty() => Touched::Some(Paths::default()),
            Some(tree) if !tree.has_links => touched(&tree.top, root, &below),
            _ => Touched::All,
        }
    }

    fn look(&mut self, paths: Option<&Paths>) -> bool {
        let source = self.source.clone();
        let mut old = self.tree.take();
        let had_tree = old.is_some();
        let partial = match (paths, &mut old) {
            (Some(paths), Some(tree)) => Some(update(&source.root, &mut tree.top, paths)),
            _ => None,
        };
        let listed = match (partial, old) {
            (Some(Some(differs)), Some(tree)) => Ok((tree, differs)),
            // What was brought up to date until then does not differ from the listings any more.
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
        let reader = DocumentReader::new(&source, &self.assembled);
        let mut files = Vec::new();
        tree.top.skill_files("", &mut files);
        let skills_differ = read(&reader, files);
        let mut files = Vec::new();
        tree.top.other_documents("", false, &mut files);
        let others_differ = read(&reader, files);
        let differs = listing_differs || skills_differ || others_differ;
        if differs {
            let mut found = Found::default();
            tree.top.collect("", &mut found);
            self.assembled = assemble_again(&source, found.documents, found.files, &self.assembled);
            self.assembled.findings.extend(found.findings);
        }
        self.tree = Some(tree);
        differs
    }
}

/// Lists all folders of a source and takes over what was read of its files; whether the listings differ.
fn walk(source: &Source, old: Option<Folder>) -> Result<(Tree, bool), Assembled> {
    let real = match fs::canonicalize(&source.root) {
        Ok(real) if real.is_dir() => real,
        Ok(_) => return Err(refused(source, Code::SourceMissing, "expected a folder, got a file")),
        Err(error) if source.optional && error.kind() == ErrorKind::NotFound => {
            return Err(Assembled::default())
        }
        Err(error) => {
            return Err(refused(source, Code::SourceMissing, &format!("cannot be read: {error}")))
        }
    };
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

/// Brings the listings of some folders up to date; whether they differ. `None` if all folders have to be listed, because
/// there are links now, or other rules of ignore files, or more files than there may be.
fn update(root: &str, top: &mut Folder, paths: &Paths) -> Option<bool> {
    let walker = Walker::new(root);
    let mut differs = false;
    for path in &paths.lists {
        // A folder that is not there any more was in one that was listed before.
        let Some(ignores) = parent_ignores(top, path) else { continue };
        let Some(folder) = top.at_mut(path) else { continue };
        let mut new = walker.listing(path, ignores.as_ref());
        if new.has_links() || new.ignores != folder.ignores {
            return None;
        }
        differs |= new.adopt_files(folder, Freshness::Yes);
        for (name, below) in &mut new.folders {
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

/// The ignore files that hold in a folder's parent; none in the root's. `None` if there is no such folder.
fn parent_ignores(top: &Folder, path: &str) -> Option<Option<Arc<ignores::Ignores>>> {
    if path.is_empty() {
        return Some(None);
    }
    top.at(split(path).0).map(|folder| folder.ignores.clone())
}

/// Reads the files at these paths; whether any differs from what it held before.
fn read(reader: &DocumentReader, mut files: Vec<(String, &mut MarkdownFile)>) -> bool {
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
    nothing_but(diagnostic)
}

fn refused(source: &Source, code: Code, message: &str) -> Assembled {
    nothing_but(Diagnostic::new(code, Severity::Error, message).in_file(source.root.as_str()))
}

fn nothing_but(diagnostic: Diagnostic) -> Assembled {
    let mut nothing = Assembled::default();
    nothing.findings.push(Finding::trusted(diagnostic));
    nothing
}

fn unreadable(path: String, reason: &str) -> Diagnostic {
    Diagnostic::new(Code::Unreadable, Severity::Error, format!("cannot be read: {reason}"))
        .in_file(path)
}
