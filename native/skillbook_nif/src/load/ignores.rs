//! `.gitignore` and `.ignore`: what a source's own files leave out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::Match;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};

use super::{unreadable, MAX_BYTES};

/// The names of ignore files; an earlier one's rules go over a later one's in the same folder.
pub const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// Whether this is the name of an ignore file.
pub fn is_ignore_file(name: &OsStr) -> bool {
    NAMES.iter().any(|own| name == *own)
}

/// The ignore files of a folder, and those above it.
#[derive(PartialEq)]
pub struct Ignores {
    above: Option<Arc<Ignores>>,
    folder: String,
    files: Vec<IgnoreFile>,
}

struct IgnoreFile {
    path: String,
    text: String,
    matcher: Gitignore,
}

impl PartialEq for IgnoreFile {
    fn eq(&self, other: &IgnoreFile) -> bool {
        self.path == other.path && self.text == other.text
    }
}

impl Ignores {
    /// Reads the ignore files of these names in a folder; what holds there is `above` if they say nothing.
    pub fn read(
        root: &str,
        folder: &str,
        names: &[&str],
        above: Option<&Arc<Ignores>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<Ignores>> {
        let mut files = Vec::new();
        for name in NAMES.iter().filter(|name| names.contains(name)) {
            let path = if folder.is_empty() {
                format!("{root}/{name}")
            } else {
                format!("{root}/{folder}/{name}")
            };
            match read(&path) {
                Ok(text) => {
                    let matcher = matcher(&path, &text, diagnostics);
                    files.push(IgnoreFile { path, text, matcher });
                }
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        if files.is_empty() {
            return above.cloned();
        }
        Some(Arc::new(Ignores { above: above.cloned(), folder: folder.to_owned(), files }))
    }

    /// What leaves the file or folder of this path out, relative to the source's root: the rule and its file. Rules of
    /// deeper folders go first, and within a file the last one that matches.
    pub fn leaves_out(&self, path: &str, is_folder: bool) -> Option<(&str, &str)> {
        let mut level = Some(self);
        while let Some(ignores) = level {
            let below = path[ignores.folder.len()..].trim_start_matches('/');
            for file in &ignores.files {
                match file.matcher.matched(below, is_folder) {
                    Match::Ignore(glob) => return Some((glob.original(), &file.path)),
                    Match::Whitelist(_) => return None,
                    Match::None => {}
                }
            }
            level = ignores.above.as_deref();
        }
        None
    }
}

fn read(path: &str) -> Result<String, Diagnostic> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path.to_owned(), &error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!(
            "an ignore file may have {MAX_BYTES} bytes, this file has more; it is not used"
        );
        return Err(Diagnostic::new(Code::FileTooLarge, Severity::Error, message).in_file(path));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Its paths are relative to the folder of the file.
fn matcher(path: &str, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    let mut bad = |line: Option<usize>, message: String| {
        let diagnostic =
            Diagnostic::new(Code::IgnoreInvalid, Severity::Warning, message).in_file(path);
        diagnostics.push(match line {
            Some(line) => diagnostic.at(line as u32 + 1, 1),
            None => diagnostic,
        });
    };
    for (number, line) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
        if let Err(error) = builder.add_line(None, line) {
            bad(
                Some(number),
                format!("expected a glob pattern, got `{line}`: {error}; the line is not used"),
            );
        }
    }
    builder.build().unwrap_or_else(|error| {
        bad(None, format!("the patterns cannot be combined: {error}; none of them is used"));
        Gitignore::empty()
    })
}
