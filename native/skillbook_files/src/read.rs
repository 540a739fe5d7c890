//! Reads documents, without those that have not changed.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use skillbook_core::catalog::assemble::Assembled;
use skillbook_core::catalog::last_good;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};
use skillbook_core::page::document::Document;
use skillbook_core::source::{Source, SourceKind};

use super::{unreadable, MAX_BYTES};

/// The resolution of file times in seconds, generously: after a change, another one may leave the
/// times as they are for this long.
const RECENT: i64 = 2;

/// How certain it is that a file has not changed since it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Certain: nothing has been reported.
    Yes,
    /// To be decided by its size and times.
    Stamp,
    /// It was reported as changed.
    No,
}

/// The result of reading a file.
pub struct ReadFile {
    /// The document in use, or the reason why there is none.
    pub result: Result<Arc<Document>, Diagnostic>,
    /// Whether the document is the last good version, because an edit broke it.
    is_last_good: bool,
    /// The file's metadata; `None` if the file must be read to know whether it has changed.
    stamp: Option<Stamp>,
}

impl ReadFile {
    pub fn document(&self) -> Option<&Arc<Document>> {
        self.result.as_ref().ok()
    }
}

/// The metadata that changes with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_old(&self, now: i64) -> bool {
        self.modified.0.max(self.changed.0) < now - RECENT
    }
}

/// Reads the files of a source.
pub struct DocumentReader<'a> {
    source: &'a Source,
    /// The source before this load.
    before: &'a Assembled,
    /// The time when the load began, in seconds.
    now: i64,
}

impl DocumentReader<'_> {
    pub fn new<'a>(source: &'a Source, before: &'a Assembled) -> DocumentReader<'a> {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
        DocumentReader { source, before, now }
    }

    /// Reads a file, and returns its content and whether it differs. Returns `None` if the metadata
    /// shows that it has not changed.
    pub fn read(
        &self,
        path: &str,
        old: Option<&ReadFile>,
        fresh: Freshness,
        buffer: &mut Vec<u8>,
    ) -> Option<(ReadFile, bool)> {
        let full = format!("{}/{path}", self.source.root);
        // One `stat` instead of reading the file.
        if let (Some(ReadFile { stamp: Some(stamp), .. }), Freshness::Stamp) = (old, fresh) {
            if fs::metadata(&full).is_ok_and(|metadata| Stamp::of(&metadata) == *stamp) {
                return None;
            }
        }
        buffer.clear();
        // The metadata is taken before the content: if the file changes while it is read, the
        // metadata differs next time.
        let read = File::open(&full).and_then(|file| {
            let stamp = Stamp::of(&file.metadata()?);
            file.take(MAX_BYTES + 1).read_to_end(buffer)?;
            Ok(stamp)
        });
        // A file that has just changed may change again within the resolution of its times. Without
        // a stamp it is read again next time.
        let stamp = read.as_ref().ok().filter(|stamp| stamp.is_old(self.now)).copied();
        let (result, is_last_good) = match read {
            Ok(_) => self.parse(path, full, old, buffer),
            Err(error) => self.failed(full, old, &error),
        };
        let new = ReadFile { result, is_last_good, stamp };
        Some(match old {
            // The old object is kept, so that later steps recognise an unchanged document by its
            // address.
            Some(old) if old.is_same(&new) => {
                (ReadFile { result: old.result.clone(), ..new }, false)
            }
            _ => (new, true),
        })
    }

    fn parse(
        &self,
        path: &str,
        full: String,
        old: Option<&ReadFile>,
        bytes: &[u8],
    ) -> (Result<Arc<Document>, Diagnostic>, bool) {
        let good = old.and_then(ReadFile::document);
        if bytes.len() as u64 > MAX_BYTES {
            let message = format!(
                "a document may have {MAX_BYTES} bytes, this file has more; it is not used"
            );
            let diagnostic =
                Diagnostic::new(Code::FileTooLarge, Severity::Error, message).in_file(full);
            return self.keep(good, Err(diagnostic), bytes);
        }
        match old {
            // An empty text may also be that of a document that is not UTF-8.
            Some(ReadFile { result: Ok(document), is_last_good: false, .. })
                if !bytes.is_empty() && document.text.as_bytes() == bytes =>
            {
                (Ok(document.clone()), false)
            }
            _ => self.keep(
                good,
                Ok(Arc::new(Document::parse(&self.source.root, path, bytes))),
                bytes,
            ),
        }
    }

    /// Handles a file that cannot be read. If it is gone, or access was withdrawn, its document
    /// goes too. Any other error may be temporary, so the last good version stays.
    fn failed(
        &self,
        full: String,
        old: Option<&ReadFile>,
        error: &std::io::Error,
    ) -> (Result<Arc<Document>, Diagnostic>, bool) {
        let passing = !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
        let good = old.and_then(ReadFile::document).filter(|_| passing);
        self.keep(good, Err(unreadable(full, &error.to_string())), &[])
    }

    fn keep(
        &self,
        good: Option<&Arc<Document>>,
        new: Result<Arc<Document>, Diagnostic>,
        bytes: &[u8],
    ) -> (Result<Arc<Document>, Diagnostic>, bool) {
        let kept = good.and_then(|good| {
            // Only a version without fields or description can be worse than the old one; the
            // search for the entry below is skipped for all others.
            let broken = match &new {
                Ok(new) => new.fields().is_none_or(|fields| fields.description.is_none()),
                Err(_) => true,
            };
            let is_entry =
                broken && self.before.entries.iter().any(|entry| entry.document.path == good.path);
            let is_index =
                broken && self.before.indexes.iter().any(|index| index.document.path == good.path);
            let needs_description = is_entry && self.source.kind == SourceKind::Skills;
            let again = new.as_ref().map(|document| &**document);
            (is_entry || is_index)
                .then(|| last_good::keep(good, again, bytes, needs_description))
                .flatten()
        });
        match kept {
            Some(kept) => (Ok(Arc::new(kept)), true),
            None => (new, false),
        }
    }
}

impl ReadFile {
    fn is_same(&self, other: &ReadFile) -> bool {
        match (&self.result, &other.result) {
            (Ok(a), Ok(b)) => {
                Arc::ptr_eq(a, b) || (a.text == b.text && a.diagnostics == b.diagnostics)
            }
            (Err(a), Err(b)) => a == b,
            _ => false,
        }
    }
}
