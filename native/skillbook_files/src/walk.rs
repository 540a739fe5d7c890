//! Lists folders and follows links.
//!
//! Links are followed only inside the source, and each file is loaded once: a link to files that
//! were found under their own path is ignored. Without that, two links to each other's folder would
//! multiply the tree, and a link could lead out of the source.

use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};
use skillbook_core::page::document::strip_md;

use super::folder::{join, split, Folder, MarkdownFile};
use super::ignores::{self, Ignores};
use super::parallel::parallel;
use super::unreadable;

/// The maximum number of files, folders and links of a source.
pub const MAX_FILES: usize = 100_000;

/// The maximum nesting of folders.
const MAX_DEPTH: usize = 16;

/// Lists the folders of a source, and counts them.
pub struct Walker<'a> {
    root: &'a str,
    count: AtomicUsize,
}

/// The paths that were visited already, to skip them in a folder behind a link.
struct Visited<'a> {
    link: &'a str,
    target: &'a Path,
    paths: &'a FxHashSet<PathBuf>,
}

impl Visited<'_> {
    fn contains(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.link).unwrap_or(path).trim_start_matches('/');
        self.paths.contains(&self.target.join(below))
    }
}

impl Walker<'_> {
    pub fn new(root: &str) -> Walker<'_> {
        Walker { root, count: AtomicUsize::new(0) }
    }

    /// Whether the source has too many files. Then the result is incomplete and must not be used.
    pub fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) > MAX_FILES
    }

    /// Lists the whole source, with the files behind links. The folders in the root are divided
    /// among threads.
    pub fn walk(&self, real: &Path) -> Folder {
        let mut root = self.list("", None, None);
        let names: Vec<String> = std::mem::take(&mut root.folders).into_keys().collect();
        let above = root.ignores.as_ref();
        // The folders of the root are the skills of a typical source, so they are a good unit of
        // work.
        let folders = parallel(&names, || (), |(), name| self.visit(name, above, None));
        root.folders = names.into_iter().zip(folders).collect();
        self.follow_links(real, &mut root);
        root
    }

    /// Lists a folder and everything below it, without links. `above` are the ignore files of its
    /// parent.
    pub fn below(&self, path: &str, above: Option<&Arc<Ignores>>) -> Folder {
        self.visit(path, above, None)
    }

    fn visit(&self, path: &str, above: Option<&Arc<Ignores>>, visited: Option<&Visited>) -> Folder {
        let mut folder = self.list(path, above, visited);
        for (name, below) in &mut folder.folders {
            if self.is_full() {
                break;
            }
            *below = self.visit(&join(path, name), folder.ignores.as_ref(), visited);
        }
        folder
    }

    /// Lists a folder without the content of its folders. `above` are the ignore files of its
    /// parent.
    pub fn listing(&self, path: &str, above: Option<&Arc<Ignores>>) -> Folder {
        self.list(path, above, None)
    }

    fn list(&self, path: &str, above: Option<&Arc<Ignores>>, visited: Option<&Visited>) -> Folder {
        let mut folder = Folder::default();
        let mut entries = Vec::new();
        let mut ignore_files = Vec::new();
        // walkdir is not used here: a folder's ignore files must be known before its first entry,
        // and a single folder must be listable alone.
        let listed = fs::read_dir(self.full(path)).and_then(|listed| {
            for entry in listed {
                let entry = entry?;
                let (name, kind) = (entry.file_name(), entry.file_type()?);
                // Names are filtered before anything is stored: `node_modules` may hold a hundred
                // thousand files.
                if !is_skipped(&name) {
                    match name.into_string() {
                        Ok(name) => entries.push((name, kind)),
                        Err(name) => {
                            let path = self.full(&join(path, &name.to_string_lossy()));
                            folder
                                .diagnostics
                                .push(unreadable(path, "the file's name is not UTF-8"));
                        }
                    }
                } else if let Some(name) = ignores::NAMES.into_iter().find(|own| name == *own) {
                    ignore_files.push((name, kind));
                }
                // A single folder with too many files ends the walk, without reading all its names.
                if entries.len() > MAX_FILES {
                    self.count.fetch_add(entries.len(), Ordering::Relaxed);
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = listed {
            folder.diagnostics.push(unreadable(
                self.full(path).trim_end_matches('/').to_owned(),
                &error.to_string(),
            ));
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        folder.ignores = self.ignores(path, &ignore_files, above, &mut folder.diagnostics);
        for (name, kind) in entries {
            let path = join(path, &name);
            if !self.is_ignored(&path, kind, &mut folder)
                && visited.is_none_or(|visited| !visited.contains(&path))
            {
                self.add(&path, name, kind, &mut folder);
            }
        }
        if is_folder_of_evaluations(path, &folder) {
            return Folder::default();
        }
        folder.diagnostics.sort_by(|a, b| a.path.cmp(&b.path));
        // Most have one file, and a list has room for four from the first.
        folder.markdown.shrink_to_fit();
        folder.others.shrink_to_fit();
        folder
    }

    fn ignores(
        &self,
        path: &str,
        files: &[(&'static str, FileType)],
        above: Option<&Arc<Ignores>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<Ignores>> {
        if files.is_empty() {
            return above.cloned();
        }
        let mut names = Vec::new();
        for (name, kind) in files {
            if kind.is_file() {
                names.push(*name);
            } else {
                diagnostics
                    .push(unreadable(self.full(&join(path, name)), "it is not a regular file"));
            }
        }
        Ignores::read(self.root, path, &names, above, diagnostics)
    }

    fn is_ignored(&self, path: &str, kind: FileType, folder: &mut Folder) -> bool {
        let rule =
            folder.ignores.as_ref().and_then(|ignores| ignores.leaves_out(path, kind.is_dir()));
        let Some((line, file)) = rule else { return false };
        // Other ignored files are not worth a diagnostic: nobody misses them.
        if kind.is_dir() || kind.is_symlink() || is_markdown(path) {
            self.count.fetch_add(1, Ordering::Relaxed);
            let message = format!("ignored by the line `{line}` of {file}");
            let diagnostic =
                Diagnostic::new(Code::Ignored, Severity::Info, message).in_file(self.full(path));
            folder.diagnostics.push(diagnostic);
        }
        true
    }

    fn add(&self, path: &str, name: String, kind: FileType, folder: &mut Folder) {
        self.count.fetch_add(1, Ordering::Relaxed);
        // Links are followed at the end, when all files are known under their own paths.
        if kind.is_symlink() {
            folder.links.push(name);
        } else if kind.is_dir() {
            if nesting(path) == MAX_DEPTH {
                let message =
                    format!("folders may be nested up to {MAX_DEPTH} deep; this one is not read");
                let diagnostic = Diagnostic::new(Code::TooDeep, Severity::Warning, message);
                folder.diagnostics.push(diagnostic.in_file(self.full(path)));
            } else {
                folder.folders.insert(name, Folder::default());
            }
        } else if !kind.is_file() {
            if is_markdown(&name) {
                folder.diagnostics.push(unreadable(self.full(path), "it is not a regular file"));
            }
        } else if is_markdown(&name) {
            folder.markdown.push(MarkdownFile::new(name));
        } else {
            folder.others.push(name);
        }
    }

    /// Follows the links to files and folders that were not found under their own path.
    fn follow_links(&self, real: &Path, root: &mut Folder) {
        let mut links = paths_of_links("", root);
        if links.is_empty() {
            return;
        }
        let mut known = FxHashSet::default();
        know(root, real, &mut known);
        // A folder behind a link may contain links itself.
        while !links.is_empty() && !self.is_full() {
            // Sorted, so that of two links to one file always the same one is followed.
            links.sort();
            for link in std::mem::take(&mut links) {
                let (parent, name) = split(&link);
                // Its folder may have been left out meanwhile, because of too many files.
                let Some(parent) = root.at_mut(parent) else { continue };
                match self.target(&link, real) {
                    Err(diagnostic) => parent.diagnostics.push(diagnostic),
                    // The same files are loaded under their own path.
                    Ok((target, _)) if known.contains(&target) => {}
                    Ok((target, kind)) if kind.is_dir() => {
                        let visited = Visited { link: &link, target: &target, paths: &known };
                        let folder = match nesting(&link) < MAX_DEPTH {
                            true => self.visit(&link, parent.ignores.as_ref(), Some(&visited)),
                            false => Folder::default(),
                        };
                        links.extend(paths_of_links(&link, &folder));
                        know(&folder, &target, &mut known);
                        parent.folders.insert(name.to_owned(), folder);
                    }
                    Ok((target, kind)) if kind.is_file() => {
                        parent.add_file(name, is_markdown(name));
                        known.insert(target);
                    }
                    Ok(_) if is_markdown(name) => {
                        parent
                            .diagnostics
                            .push(unreadable(self.full(&link), "it is not a regular file"));
                    }
                    Ok(_) => {}
                }
            }
        }
    }

    /// The target of a link, if it is in the source and does not contain the link.
    fn target(&self, link: &str, real: &Path) -> Result<(PathBuf, FileType), Diagnostic> {
        let full = self.full(link);
        let followed = fs::canonicalize(&full).and_then(|target| {
            let kind = fs::metadata(&target)?.file_type();
            Ok((target, kind))
        });
        let (target, kind) = match followed {
            Ok(followed) => followed,
            Err(error) => {
                return Err(broken(full, format!("the link cannot be followed: {error}")))
            }
        };
        // Compared after resolving all links, so `..` and links to links cannot get around it.
        if !target.starts_with(real) {
            let message = "the link leaves the source's folder and is not followed";
            let diagnostic = Diagnostic::new(Code::EscapingLink, Severity::Warning, message);
            return Err(diagnostic.hint("make its target a source of its own").in_file(full));
        }
        let parent = Path::new(&full).parent().and_then(|parent| fs::canonicalize(parent).ok());
        // A link to its own parent would have no end.
        if kind.is_dir() && parent.is_some_and(|parent| parent.starts_with(&target)) {
            return Err(broken(full, "the link leads to a folder that contains it".into()));
        }
        Ok((target, kind))
    }

    fn full(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }
}

/// Whether the path is a folder, and not a link to one.
pub fn is_folder(path: &Path) -> bool {
    kind(path).is_ok_and(|kind| kind.is_dir())
}

/// Whether the path is a file, and not a link to one.
pub fn is_file(path: &Path) -> bool {
    kind(path).is_ok_and(|kind| kind.is_file())
}

fn kind(path: &Path) -> io::Result<FileType> {
    fs::symlink_metadata(path).map(|metadata| metadata.file_type())
}

/// Whether a name is skipped: dot files, `node_modules`, editors' backup and lock files, and the
/// files of evaluations, which models must not see.
pub fn is_skipped(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".")
        || name == b"node_modules"
        || name.ends_with(b"~")
        || (name.starts_with(b"#") && name.ends_with(b"#"))
        || is_evaluation(name)
}

/// Whether a name is a file of evaluations (`evals.yaml`, `NAME.evals.yaml`, and `EVAL.md` and
/// `NAME.eval.md` in any case), or a folder of their recordings.
fn is_evaluation(name: &[u8]) -> bool {
    let is = |ending: &[u8]| {
        let start = name.len().checked_sub(ending.len());
        start.is_some_and(|start| {
            name[start..].eq_ignore_ascii_case(ending) && (start == 0 || name[start - 1] == b'.')
        })
    };
    is(b"evals.yaml") || is(b"eval.md") || (is(b"recordings") && name.len() > "recordings".len())
}

/// Whether a folder holds evaluations in the format of skill-creator, with their input files.
fn is_folder_of_evaluations(path: &str, folder: &Folder) -> bool {
    split(path).1 == "evals" && folder.others.iter().any(|name| name == "evals.json")
}

fn is_markdown(name: &str) -> bool {
    strip_md(name) != name
}

/// The number of names in a path.
fn nesting(path: &str) -> usize {
    path.split('/').count()
}

fn paths_of_links(path: &str, folder: &Folder) -> Vec<String> {
    let mut links = Vec::new();
    folder.each(path, &mut |path, folder| {
        links.extend(folder.links.iter().map(|name| join(path, name)))
    });
    links
}

/// Adds the real paths of a folder and of everything in it.
fn know(folder: &Folder, real: &Path, known: &mut FxHashSet<PathBuf>) {
    folder.each("", &mut |path, folder| {
        let path = if path.is_empty() { real.to_path_buf() } else { real.join(path) };
        let markdown = folder.markdown.iter().map(|file| &file.name);
        known.extend(folder.others.iter().chain(markdown).map(|name| path.join(name)));
        known.insert(path);
    });
}

fn broken(path: String, message: String) -> Diagnostic {
    Diagnostic::new(Code::BrokenLink, Severity::Warning, message).in_file(path)
}
