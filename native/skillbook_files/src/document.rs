//! One document: read as the loader does, and replaced without a moment in which it is half
//! written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use skillbook_core::page::diagnostic::{apply_counted, Fix};

use crate::MAX_BYTES;

/// The bytes of a document: of a regular file, no link, of at most 1 MiB. Never waits for a pipe or
/// reads a device.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("it has more than {MAX_BYTES} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Applies fixes to a document, and returns how many it applied; see [`apply_counted`].
pub fn fix(path: &Path, fixes: &[Fix]) -> io::Result<usize> {
    let text = String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))?;
    let (text, count) = apply_counted(&text, fixes);
    replace(path, text.as_bytes())?;
    Ok(count)
}

/// Replaces a file, and keeps its mode. The content is written to a temporary file in the same
/// folder, synced, and renamed, so a reader sees the old file or the new one.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // The leading dot hides it from every source if this process dies before it deletes the file.
    let temporary = folder.join(format!(".{}-{number}.tmp", std::process::id()));
    let written = write_synced(&temporary, content)
        .and_then(|()| fs::set_permissions(&temporary, fs::metadata(path)?.permissions()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error of writing says more than that of deleting.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // Some file systems cannot sync a folder; the content is synced anyway.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
