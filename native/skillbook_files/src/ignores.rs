//! The rules of `.gitignore` and `.ignore` files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::Match;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};

use super::{unreadable, MAX_BYTES};

/// The names of ignore files. In one folder the rules of the first take precedence.
pub const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// Whether this is the name of an ignore file.
pub fn is_ignore_file(name: &OsStr) -> bool {
    NAMES.iter().any(|own| name == *own)
}

/// The ignore files of a folder, and those of the folders above.
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
    /// Reads the ignore files with these names in a folder. If there are none, the result is
    /// `above`.
    pub fn read(
        root: &str,
        folder: &str,
        names: &[&str],
        above: Option<&Arc<Ignores>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<Ignores>> {
        let mut files = Vec::new();
        // In the order of precedence, not in that of the folder.
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

    /// The rule that ignores a path, and its file. `path` is relative to the source's root. Rules
    /// of deeper folders take precedence, and within a file the last match.
    pub fn leaves_out(&self, path: &str, is_folder: bool) -> Option<(&str, &str)> {
        let mut level = Some(self);
        while let Some(ignores) = level {
            // Each level matches the path relative to its own folder, as git does.
            let below = path[ignores.folder.len()..].trim_start_matches('/');
            for file in &ignores.files {
                match file.matcher.matched(below, is_folder) {
                    Match::Ignore(glob) => return Some((glob.original(), &file.path)),
                    // A rule with `!` in a deeper folder overrides the rules above.
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
    // The limit bounds the time for compiling the rules.
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!(
            "an ignore file may have {MAX_BYTES} bytes, this file has more; it is not used"
        );
        return Err(Diagnostic::new(Code::FileTooLarge, Severity::Error, message).in_file(path));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The matcher of a file's rules, for paths relative to the file's folder.
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
