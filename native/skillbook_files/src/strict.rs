//! Checks every `SKILL.md` below a folder against the Agent Skills format.

use std::fs;
use std::path::Path;

use skillbook_core::lint::spec;
use skillbook_core::page::diagnostic::Diagnostic;

use crate::document;

/// The names of the file, in the order in which the validator of the format looks for them.
const NAMES: [&str; 2] = ["SKILL.md", "skill.md"];

/// The violations of the format below a folder. As at load, hidden files and links are skipped.
pub fn check(folder: &Path) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    // A stack instead of recursion: folders nest without limit.
    while let Some(folder) = folders.pop() {
        let Ok(listed) = fs::read_dir(&folder) else { continue };
        let mut names: Vec<(String, fs::FileType)> = listed
            .filter_map(Result::ok)
            .filter_map(|entry| {
                Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?))
            })
            .collect();
        names.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        let is_file =
            |name: &&str| names.iter().any(|(other, kind)| other == *name && kind.is_file());
        if let Some(name) = NAMES.iter().find(|name| is_file(name)) {
            found.extend(check_file(&folder, name));
        }
        let below = names.into_iter().filter(|(name, kind)| {
            kind.is_dir() && !name.starts_with('.') && name != "node_modules"
        });
        folders.extend(below.map(|(name, _)| folder.join(name)));
    }
    found
}

fn check_file(folder: &Path, name: &str) -> Vec<Diagnostic> {
    let path = folder.join(name);
    let Ok(text) = document::read(&path) else { return Vec::new() };
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = path.to_string_lossy();
    let found = spec::check(&folder, &text).into_iter();
    found.map(|diagnostic| diagnostic.in_file(path.as_ref())).collect()
}
