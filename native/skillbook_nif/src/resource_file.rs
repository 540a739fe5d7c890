//! Reads one file of a skill's folder for `get_skill`.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The largest file that is shown, in bytes.
const SHOWN: u64 = 256 * 1024;

/// The file's text, or a sentence that says why it is not shown. `document` is the path of the skill's `SKILL.md`.
pub fn read(document: &str, file: &str) -> String {
    let folder = Path::new(document).parent().unwrap_or(Path::new("."));
    let resolved = fs::canonicalize(folder).and_then(|folder| Ok((fs::canonicalize(folder.join(file))?, folder)));
    let path = match resolved {
        Ok((path, folder)) if path.starts_with(&folder) => path,
        Ok(_) => return format!("`{file}` leads out of the skill's folder and is not shown."),
        Err(error) => return format!("`{file}` cannot be read: {error}."),
    };
    let mut bytes = Vec::new();
    let read = fs::metadata(&path).and_then(|metadata| {
        if metadata.is_file() {
            File::open(&path)?.take(SHOWN + 1).read_to_end(&mut bytes)?;
        }
        Ok(metadata)
    });
    match read {
        Err(error) => format!("`{file}` cannot be read: {error}."),
        Ok(metadata) if !metadata.is_file() => format!("`{file}` is not a regular file and is not shown."),
        Ok(metadata) if bytes.len() as u64 > SHOWN => {
            format!("`{file}` has {} bytes; files up to {SHOWN} bytes are shown.", metadata.len())
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => text,
            Ok(text) => binary(file, text.len()),
            Err(error) => binary(file, error.as_bytes().len()),
        },
    }
}

fn binary(file: &str, length: usize) -> String {
    format!("`{file}` is not text; it has {length} bytes.")
}
