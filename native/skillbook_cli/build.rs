//! Puts the built-in pages into the program, for machines without the project.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The name of each source, and its folder.
const SOURCES: [(&str, &str); 4] = [
    ("SKILLS", "priv/skills"),
    ("AGENT", "packages/agent/priv/agent"),
    ("VAULTS", "packages/vault/priv/vaults"),
    ("CONNECTIONS", "packages/accounts/priv/connections"),
];

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let root = root.canonicalize().expect("the root of the project");
    let mut out = String::new();
    let (mut handlers, mut services) = (BTreeSet::new(), BTreeSet::new());
    for (name, folder) in SOURCES {
        let folder = root.join(folder);
        let _ = writeln!(out, "pub const {name}: &[(&str, &str)] = &[");
        for path in pages(&folder) {
            let text = fs::read_to_string(&path).expect("a page");
            handlers.extend(field(&text, "handler"));
            services.extend(field(&text, "connection"));
            let below = path.strip_prefix(&folder).expect("a path below the folder").to_owned();
            let _ = writeln!(out, "    ({:?}, include_str!({:?})),", below, path);
        }
        out += "];\n";
    }
    let _ = writeln!(out, "pub const HANDLERS: &[&str] = &{handlers:?};");
    let _ = writeln!(out, "pub const SERVICES: &[&str] = &{services:?};");
    // Debug writes a set in braces.
    let out = out.replace("= &{", "= &[").replace("};\n", "];\n");
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("pages.rs"), out).expect("the folder of the build");
}

/// The pages below a folder, sorted.
fn pages(folder: &Path) -> Vec<PathBuf> {
    // A folder's time changes when a page is added or deleted.
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of the folder").path())
        .collect();
    paths.sort();
    let pages = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => pages(&path),
        false => {
            println!("cargo:rerun-if-changed={}", path.display());
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            Vec::from_iter(is_page.then_some(path))
        }
    });
    pages.collect()
}

/// The value of a field of the frontmatter.
fn field(text: &str, name: &str) -> Option<String> {
    let block = text.strip_prefix("---\n")?.split_once("\n---\n")?.0;
    let start = format!("{name}: ");
    block.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}
