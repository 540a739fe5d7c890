//! Documents are fixed in their place, and checked against the Agent Skills format.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::PathBuf;

use skillbook_core::page::diagnostic::Fix;
use skillbook_files::{document, strict};

fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("skillbook-files-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn fix(start: usize, end: usize, text: &str) -> Fix {
    Fix { range: start..end, replacement: text.into() }
}

#[test]
fn a_fix_keeps_the_mode_and_leaves_nothing_else() {
    let folder = folder("fix");
    let path = folder.join("a.md");
    fs::write(&path, "one two").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(document::fix(&path, &[fix(0, 3, "1"), fix(4, 7, "2"), fix(5, 7, "x")]).unwrap(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), "1 2");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn only_documents_are_read_and_fixed() {
    let folder = folder("read");
    let large = folder.join("large.md");
    fs::write(&large, vec![b'x'; (1 << 20) + 1]).unwrap();
    fs::write(folder.join("latin.md"), b"caf\xE9").unwrap();
    symlink("latin.md", folder.join("link.md")).unwrap();
    for (name, message) in [
        ("large.md", "it has more than 1048576 bytes"),
        ("link.md", "it is not a regular file"),
        ("latin.md", "it is not UTF-8"),
        (".", "it is not a regular file"),
    ] {
        let error = document::fix(&folder.join(name), &[fix(0, 1, "y")]).unwrap_err();
        assert_eq!(error.to_string(), message, "{name}");
    }
    assert_eq!(document::read(&folder.join("latin.md")).unwrap(), b"caf\xE9");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_skill_file_is_checked() {
    let folder = folder("strict");
    for path in ["b/SKILL.md", "a/skill.md", "a/.hidden/SKILL.md", "node_modules/x/SKILL.md"] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), "---\nname: other\ndescription: d\n---\n").unwrap();
    }
    symlink("b", folder.join("link")).unwrap();
    let found = strict::check(&folder);
    let paths: Vec<_> = found.iter().map(|one| one.path.clone().unwrap()).collect();
    let expected = ["a/skill.md", "b/SKILL.md"];
    assert_eq!(paths, expected.map(|path| folder.join(path).to_string_lossy().into_owned()));
    fs::remove_dir_all(folder).unwrap();
}
