//! Reads one file of a skill's folder for `get_skill`.
//!
//! The path is resolved with all its links and must lie inside the folder. The file's name comes
//! from the catalog's list, never from the model.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The number of bytes that are displayed.
const MAX_BYTES: u64 = 256 * 1024;

/// The text of the file, or a sentence that says why it is not displayed. `document` is the path of
/// the skill's `SKILL.md`.
pub fn read(document: &str, file: &str) -> String {
    let folder = Path::new(document).parent().unwrap_or(Path::new("."));
    // Both sides are resolved, because the skill's folder may itself be behind a link.
    let resolved = fs::canonicalize(folder)
        .and_then(|folder| Ok((fs::canonicalize(folder.join(file))?, folder)));
    let path = match resolved {
        Ok((path, folder)) if path.starts_with(&folder) => path,
        Ok(_) => return format!("`{file}` leads out of the skill's folder and is not shown."),
        Err(error) => return format!("`{file}` cannot be read: {error}."),
    };
    let mut bytes = Vec::new();
    let read = fs::metadata(&path).and_then(|metadata| {
        // A pipe or device would block.
        if metadata.is_file() {
            File::open(&path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        }
        Ok(metadata)
    });
    match read {
        Err(error) => format!("`{file}` cannot be read: {error}."),
        Ok(metadata) if !metadata.is_file() => {
            format!("`{file}` is not a regular file and is not shown.")
        }
        Ok(metadata) => display(file, bytes, metadata.len()),
    }
}

/// Formats the text of a file of this length. `bytes` is the part that was read.
fn display(file: &str, mut bytes: Vec<u8>, length: u64) -> String {
    if bytes.len() as u64 > MAX_BYTES {
        bytes.truncate(whole_lines(&bytes[..MAX_BYTES as usize]));
    }
    // A PDF may consist of text only, and would still be unreadable.
    let kind = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') && !text.starts_with("%PDF-") => {
            let left = length.saturating_sub(text.len() as u64);
            return match left {
                0 => text,
                _ => format!(
                    "{text}\n[`{file}` goes on: {left} of its {length} bytes are not shown.]"
                ),
            };
        }
        Ok(text) => kind(file, text.as_bytes()),
        Err(error) => kind(file, error.as_bytes()),
    };
    format!("`{file}` is {kind} of {length} bytes, not text.")
}

/// The length up to the last line end or, without one, the last whole character.
fn whole_lines(bytes: &[u8]) -> usize {
    let whole = || {
        // A character has at most four bytes, so it starts within the last four.
        let start =
            (bytes.len().saturating_sub(4)..bytes.len()).rev().find(|at| bytes[*at] & 0xC0 != 0x80);
        start.filter(|start| std::str::from_utf8(&bytes[*start..]).is_err()).unwrap_or(bytes.len())
    };
    bytes.iter().rposition(|byte| *byte == b'\n').map_or_else(whole, |at| at + 1)
}

/// The type of a binary file, by its first bytes. The extension decides between types that start
/// alike.
fn kind(file: &str, bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 16] = [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF document"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"BZh", "a bzip2 archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"\x7fELF", "a program"),
        (b"\0asm", "a WebAssembly module"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"OTTO", "a font"),
        (b"\0\x01\0\0", "a font"),
        (b"wOFF", "a font"),
        (b"wOF2", "a font"),
        (b"ID3", "a sound file"),
    ];
    const ZIPPED: [(&str, &str); 7] = [
        ("docx", "a Word document"),
        ("xlsx", "an Excel workbook"),
        ("pptx", "a PowerPoint presentation"),
        ("odt", "an OpenDocument text"),
        ("ods", "an OpenDocument spreadsheet"),
        ("epub", "an EPUB book"),
        ("jar", "a Java archive"),
    ];
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    if bytes.starts_with(b"PK\x03\x04") {
        let found = ZIPPED.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
        return found.map_or("a ZIP archive", |(_, kind)| kind);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice()) {
        return "a WebP image";
    }
    KINDS
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map_or("a binary file", |(_, kind)| kind)
}
