//! Decides which folders and files must be read again when paths have changed.
//!
//! A path says only that something happened there. It may be a file or a folder, new or gone, so
//! each is compared with the tree and with the disk. Too much is harmless, too little would miss a
//! change.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path};

use super::folder::{join, split, Folder};
use super::ignores::is_ignore_file;
use super::walk::{is_file, is_folder, is_skipped};

/// The parts of a source that must be looked at again.
#[derive(Debug)]
pub enum Touched {
    /// Everything.
    All,
    /// Paths relative to the root.
    Some(Paths),
}

#[derive(Debug, Default)]
pub struct Paths {
    /// Folders to list again.
    pub lists: BTreeSet<String>,
    /// Folders to list again with everything below them.
    pub trees: BTreeSet<String>,
    /// Files to read again.
    pub files: BTreeSet<String>,
}

impl Paths {
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.trees.is_empty() && self.files.is_empty()
    }
}

/// The part of a path below the root, which may also be called `real`; `None` if the path is
/// elsewhere. It is empty for a folder that contains the root.
pub fn below<'a>(path: &'a Path, root: &Path, real: &Path) -> Option<&'a Path> {
    if root.starts_with(path) || real.starts_with(path) {
        return Some(Path::new(""));
    }
    path.strip_prefix(root).or_else(|_| path.strip_prefix(real)).ok()
}

/// The folders and files that the paths affect, in a source without links. All paths are below its
/// root.
pub fn touched(folder: &Folder, root: &Path, below: &[&Path]) -> Touched {
    let mut paths = Paths::default();
    for path in below {
        if touch(folder, root, path, &mut paths).is_none() {
            return Touched::All;
        }
    }
    Touched::Some(paths)
}

/// `None` if everything must be looked at.
fn touch(root: &Folder, full: &Path, below: &Path, paths: &mut Paths) -> Option<()> {
    // The root itself, or a folder above it.
    if below.as_os_str().is_empty() {
        return None;
    }
    // `..` and the like are not paths that a watcher reports, so they are not trusted.
    let names: Vec<&OsStr> = below
        .components()
        .map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let mut folder = root;
    let mut path = String::new();
    for (at, name) in names.iter().enumerate() {
        // Its rules may concern every file below.
        if is_ignore_file(name) {
            return None;
        }
        if is_skipped(name) {
            return Some(());
        }
        // A name that is not UTF-8 gets a diagnostic from the listing of its folder.
        let Some(name) = name.to_str() else {
            list(full, &path, paths);
            return Some(());
        };
        let next = join(&path, name);
        match folder.folders.get(name) {
            Some(known) => (folder, path) = (known, next),
            // A known file that still exists: only its content can have changed.
            None if at + 1 == names.len()
                && folder.has_file(name)
                && is_file(&full.join(&next)) =>
            {
                paths.files.insert(next);
                return Some(());
            }
            None => {
                paths.files.insert(next);
                list(full, &path, paths);
                return Some(());
            }
        }
    }
    // The path is a known folder: it may have been replaced with all its content.
    if is_folder(&full.join(&path)) {
        paths.trees.insert(path);
    } else {
        list(full, split(&path).0, paths);
    }
    Some(())
}

/// Lists the folder again, or the closest one above that still exists.
fn list(full: &Path, path: &str, paths: &mut Paths) {
    let mut path = path;
    while !path.is_empty() && !is_folder(&full.join(path)) {
        path = split(path).0;
    }
    paths.lists.insert(path.to_owned());
}
