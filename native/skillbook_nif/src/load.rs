//! Finds and reads the files of sources, on threads of its own.
//!
//! A source's folders are divided among the threads; each walks its folders and reads the `SKILL.md` files on the way.
//! They decide which other Markdown files are documents, and those are read in a second round. The order in which the
//! threads come along decides nothing: all results are sorted by path.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use skillbook_core::assemble::{assemble, Assembled, Finding};
use skillbook_core::diagnostic::{Code, Diagnostic, Severity};
use skillbook_core::document::{strip_md, Document, SKILL_FILE};
use skillbook_core::entry::{Source, Trust};
use walkdir::{DirEntry, WalkDir};

/// The largest document, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// How many files a source may have.
const MAX_FILES: usize = 100_000;

/// How deep folders may be nested.
const MAX_DEPTH: usize = 16;

/// The most threads, and the fewest files for which a second one is worth its start.
const MAX_THREADS: usize = 8;
const PARALLEL: usize = 16;

/// The documents of the last load by path; those whose bytes are the same are used again.
pub type Documents = FxHashMap<String, Arc<Document>>;

/// Reads the sources.
pub fn load(sources: &[Arc<Source>], previous: &Documents) -> (Vec<Assembled>, Documents) {
    let mut documents = Documents::default();
    let loaded = sources.iter().map(|source| load_source(source, previous, &mut documents)).collect();
    (loaded, documents)
}

fn load_source(source: &Arc<Source>, previous: &Documents, documents: &mut Documents) -> Assembled {
    let root = match fs::canonicalize(&source.root) {
        Ok(root) if root.is_dir() => root,
        Ok(_) => return refused(source, Code::SourceMissing, "expected a folder, got a file"),
        Err(error) if source.optional && error.kind() == ErrorKind::NotFound => return Assembled::default(),
        Err(error) => return refused(source, Code::SourceMissing, &format!("cannot be read: {error}")),
    };
    if source.trust == Trust::None {
        return untrusted(source);
    }
    let walker = Walker { source, previous, count: AtomicUsize::new(0) };
    let mut found = walker.walk();
    walker.follow_links(&root, &mut found);
    if walker.is_full() {
        let message = format!("a source may have {MAX_FILES} files, this one has more; none of it is used");
        return refused(source, Code::TooManyFiles, &message);
    }
    let claimed: FxHashMap<&str, bool> =
        found.documents.iter().map(|document| (document.folder(), document.claims_folder())).collect();
    let others: Vec<&String> = found.markdown.iter().filter(|path| !is_claimed(&claimed, path)).collect();
    let read = parallel(&others, Vec::new, |buffer, path| walker.read(path, buffer));
    for result in read {
        match result {
            Ok(document) => found.documents.push(document),
            Err(diagnostic) => found.diagnostics.push(diagnostic),
        }
    }
    documents.extend(found.documents.iter().map(|document| (document.path.clone(), document.clone())));
    let mut assembled = assemble(source, found.documents, found.files);
    assembled.findings.extend(found.diagnostics.into_iter().map(Finding::trusted));
    assembled
}

fn untrusted(source: &Source) -> Assembled {
    let message = format!("the source `{}` is not trusted, so nothing of it is read", source.name);
    let diagnostic = Diagnostic::new(Code::SourceUntrusted, Severity::Info, message)
        .hint("if you know what is in it, give it the trust low, medium or high")
        .in_file(source.root.as_str());
    Assembled { findings: vec![Finding::trusted(diagnostic)], ..Assembled::default() }
}

fn refused(source: &Source, code: Code, message: &str) -> Assembled {
    let diagnostic = Diagnostic::new(code, Severity::Error, message).in_file(source.root.as_str());
    Assembled { findings: vec![Finding::trusted(diagnostic)], ..Assembled::default() }
}

/// Whether the closest folder upwards that has a `SKILL.md` is a skill's, so that the file is one of its resources.
fn is_claimed(claimed: &FxHashMap<&str, bool>, path: &str) -> bool {
    let mut folder = path;
    while !folder.is_empty() {
        folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
        if let Some(claimed) = claimed.get(folder) {
            return *claimed;
        }
    }
    false
}

/// What a walk found; paths are relative to the source's root.
#[derive(Default)]
struct Found {
    files: Vec<String>,
    folders: Vec<String>,
    links: Vec<String>,
    /// The Markdown files that were not read yet.
    markdown: Vec<String>,
    documents: Vec<Arc<Document>>,
    diagnostics: Vec<Diagnostic>,
}

impl Found {
    fn merge(mut self, other: Found) -> Found {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
        self.links.extend(other.links);
        self.markdown.extend(other.markdown);
        self.documents.extend(other.documents);
        self.diagnostics.extend(other.diagnostics);
        self
    }
}

struct Walker<'a> {
    source: &'a Source,
    previous: &'a Documents,
    count: AtomicUsize,
}

impl Walker<'_> {
    /// The folders directly in the root are divided among the threads.
    fn walk(&self) -> Found {
        let mut found = Found::default();
        let mut buffer = Vec::new();
        // Not with walkdir: it opens every folder that it names, also those below its greatest depth.
        let listed = fs::read_dir(&self.source.root).and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                if !is_skipped(&entry.file_name()) {
                    self.add("", Path::new(&entry.file_name()), entry.file_type()?, &mut found, &mut buffer);
                }
            }
            Ok(())
        });
        if let Err(error) = listed {
            found.diagnostics.push(unreadable(self.source.root.clone(), error.to_string()));
        }
        let folders = std::mem::take(&mut found.folders);
        let parts = parallel(&folders, Vec::new, |buffer, folder| {
            let mut part = Found { folders: vec![folder.clone()], ..Found::default() };
            self.visit(Path::new(&self.full(folder)), folder, &FxHashSet::default(), &mut part, buffer);
            part
        });
        parts.into_iter().fold(found, Found::merge)
    }

    /// Everything below `start`, which is called `name` in the source; `known` are paths that were visited already.
    fn visit(&self, start: &Path, name: &str, known: &FxHashSet<PathBuf>, found: &mut Found, buffer: &mut Vec<u8>) {
        let wanted =
            |entry: &DirEntry| entry.depth() == 0 || (!is_skipped(entry.file_name()) && !known.contains(entry.path()));
        let depth = MAX_DEPTH.saturating_sub(nesting(name));
        for entry in WalkDir::new(start).min_depth(1).max_depth(depth).into_iter().filter_entry(wanted) {
            match entry {
                Ok(entry) => {
                    let below = entry.path().strip_prefix(start).unwrap_or(entry.path());
                    self.add(name, below, entry.file_type(), found, buffer);
                }
                Err(error) => {
                    let path = error.path().unwrap_or(start).display().to_string();
                    let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                    found.diagnostics.push(unreadable(path, reason));
                }
            }
            if self.is_full() {
                return;
            }
        }
    }

    fn add(&self, name: &str, below: &Path, kind: fs::FileType, found: &mut Found, buffer: &mut Vec<u8>) {
        let join = |below: &str| if name.is_empty() { below.to_owned() } else { format!("{name}/{below}") };
        let Some(path) = below.to_str().map(join) else {
            let path = self.full(&join(&below.to_string_lossy()));
            found.diagnostics.push(unreadable(path, "the file's name is not UTF-8".into()));
            return;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        if kind.is_symlink() {
            found.links.push(path);
        } else if kind.is_dir() {
            if nesting(&path) == MAX_DEPTH {
                let message = format!("folders may be nested {MAX_DEPTH} deep; this one is not read");
                let diagnostic = Diagnostic::new(Code::TooDeep, Severity::Warning, message);
                found.diagnostics.push(diagnostic.in_file(self.full(&path)));
            }
            found.folders.push(path);
        } else {
            self.file(path, kind.is_file(), found, buffer);
        }
    }

    fn file(&self, path: String, regular: bool, found: &mut Found, buffer: &mut Vec<u8>) {
        let file_name = path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name);
        if !regular {
            if strip_md(file_name) != file_name {
                found.diagnostics.push(unreadable(self.full(&path), "it is not a regular file".into()));
            }
            return;
        }
        if file_name == SKILL_FILE {
            match self.read(&path, buffer) {
                Ok(document) => found.documents.push(document),
                Err(diagnostic) => found.diagnostics.push(diagnostic),
            }
        } else if strip_md(file_name) != file_name {
            found.markdown.push(path.clone());
        }
        found.files.push(path);
    }

    /// Follows the links that lead to something in the root that was not visited on its own path.
    fn follow_links(&self, root: &Path, found: &mut Found) {
        if found.links.is_empty() {
            return;
        }
        let paths = found.files.iter().chain(&found.folders);
        let mut known: FxHashSet<PathBuf> = paths.map(|path| root.join(path)).collect();
        known.insert(root.to_path_buf());
        let mut buffer = Vec::new();
        let mut links = std::mem::take(&mut found.links);
        while !links.is_empty() {
            links.sort();
            for link in std::mem::take(&mut links) {
                let full = self.full(&link);
                let (target, is_dir, is_file) = match fs::canonicalize(&full).and_then(|target| {
                    let metadata = fs::metadata(&target)?;
                    Ok((target, metadata.is_dir(), metadata.is_file()))
                }) {
                    Ok(target) => target,
                    Err(error) => {
                        found.diagnostics.push(broken(full, format!("the link cannot be followed: {error}")));
                        continue;
                    }
                };
                if !target.starts_with(root) {
                    let message = "the link leaves the source's folder and is not followed";
                    let diagnostic = Diagnostic::new(Code::EscapingLink, Severity::Warning, message);
                    let hint = "make its target a source of its own";
                    found.diagnostics.push(diagnostic.hint(hint).in_file(full));
                    continue;
                }
                let parent = Path::new(&full).parent().and_then(|parent| fs::canonicalize(parent).ok());
                if is_dir && parent.is_some_and(|parent| parent.starts_with(&target)) {
                    found.diagnostics.push(broken(full, "the link leads back to a folder that it is in".into()));
                } else if known.contains(&target) {
                    // The same files, which are read under their own path.
                } else if is_dir {
                    let mut part = Found::default();
                    self.visit(&target, &link, &known, &mut part, &mut buffer);
                    let real =
                        |path: &String| target.join(path.strip_prefix(&link).unwrap_or(path).trim_start_matches('/'));
                    known.extend(part.files.iter().chain(&part.folders).map(real));
                    known.insert(target);
                    links.append(&mut part.links);
                    *found = std::mem::take(found).merge(part);
                } else {
                    self.file(link, is_file, found, &mut buffer);
                    known.insert(target);
                }
            }
        }
    }

    fn read(&self, path: &str, buffer: &mut Vec<u8>) -> Result<Arc<Document>, Diagnostic> {
        let full = self.full(path);
        buffer.clear();
        let read = File::open(&full).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(buffer));
        if let Err(error) = read {
            return Err(unreadable(full, error.to_string()));
        }
        if buffer.len() as u64 > MAX_BYTES {
            let message = format!("a document may have {MAX_BYTES} bytes, this file has more; it is not used");
            return Err(Diagnostic::new(Code::FileTooLarge, Severity::Error, message).in_file(full));
        }
        match self.previous.get(&full) {
            Some(document) if document.text.as_bytes() == buffer.as_slice() => Ok(document.clone()),
            _ => Ok(Arc::new(Document::parse(&self.source.root, path, buffer))),
        }
    }

    fn full(&self, path: &str) -> String {
        format!("{}/{path}", self.source.root)
    }

    fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) > MAX_FILES
    }
}

/// How many names a path has.
fn nesting(path: &str) -> usize {
    path.split('/').count()
}

/// Dot files and folders, and other people's packages.
fn is_skipped(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || name == "node_modules"
}

fn unreadable(path: String, reason: String) -> Diagnostic {
    Diagnostic::new(Code::Unreadable, Severity::Error, format!("cannot be read: {reason}")).in_file(path)
}

fn broken(path: String, message: String) -> Diagnostic {
    Diagnostic::new(Code::BrokenLink, Severity::Warning, message).in_file(path)
}

/// Does the work for each item on a few threads and gives the results in the order of the items. Each thread has a
/// `state` of its own.
fn parallel<T: Sync, S, R: Send>(
    items: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if items.len() < PARALLEL { 1 } else { available.min(MAX_THREADS) };
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match items.get(at) {
                Some(item) => results.push((at, work(&mut state, item))),
                None => return results,
            }
        }
    };
    let mut results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut results = run();
        for other in others {
            match other.join() {
                Ok(part) => results.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
