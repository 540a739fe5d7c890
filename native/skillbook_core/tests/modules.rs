//! Modules look only down: there are no import cycles.
//!
//! Modules are compared with their siblings, in each crate and in each folder. A folder's `mod.rs`
//! is the folder itself, which its modules may use. Tests may use anything.
#![allow(clippy::disallowed_methods)] // These are the sources, which only a test reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The code of each module, by its path.
type Sources = BTreeMap<Vec<String>, String>;
/// The siblings that each module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;
/// The graph of each folder, by its path.
type Graphs = BTreeMap<Vec<String>, Graph>;

#[test]
fn no_module_needs_one_that_needs_it() {
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let least = [
        ("bridge", 3),
        ("cli", 7),
        ("connect", 3),
        ("core", 50),
        ("drivers", 5),
        ("embed", 5),
        ("files", 7),
        ("http", 10),
        ("net", 1),
        ("nif", 25),
        ("postgres", 0),
        ("sql", 2),
    ];
    for (name, least) in least.map(|(name, least)| (format!("skillbook_{name}"), least)) {
        let sources = sources(&native.join(&name).join("src"));
        assert!(sources.len() > least, "{name}: {} modules", sources.len());
        let circles: Vec<_> =
            graphs(&sources).iter().filter_map(|(folder, graph)| circle(folder, graph)).collect();
        assert!(
            circles.is_empty(),
            "{name}: modules that need each other:\n  {}",
            circles.join("\n  ")
        );
    }
}

#[test]
fn finds_circles() {
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let rows: [Row; 11] = [
        (&[("a", "use crate::b;"), ("b", "")], &[]),
        (&[("a", "use crate::b::T;"), ("b", "use crate::a::T;")], &["a → b → a"]),
        (
            &[
                ("a", "use super::b;"),
                ("b", "fn f() { crate::c::f() }"),
                ("c", "use crate::{a, x};"),
            ],
            &["a → b → c → a"],
        ),
        // Comments and tests do not count.
        (
            &[
                ("a", "use crate::b;"),
                ("b", "//! crate::a\n/// [`crate::a`]\nfn f() {} // crate::a"),
            ],
            &[],
        ),
        (&[("a", "use crate::b;"), ("b", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}")], &[]),
        // A folder is one module to its siblings.
        (&[("a::x", "use crate::b;"), ("a::y", ""), ("b", "use crate::a::y;")], &["a → b → a"]),
        (&[("a::x", "use super::y;"), ("a::y", "use crate::a::x::T;")], &["a::x → a::y → a::x"]),
        (
            &[("a::x", "use super::y;"), ("a::y", "use crate::a::{z, x::{T, U}};")],
            &["a::x → a::y → a::x"],
        ),
        // Its own items are for its modules; a re-exported item belongs to the module that defines
        // it.
        (
            &[("a", "mod x;\npub struct T;"), ("a::x", "use super::T;"), ("a::y", "use super::x;")],
            &[],
        ),
        (
            &[
                ("a", "pub use self::y::{T as V};"),
                ("a::x", "use super::V;"),
                ("a::y", "use super::x;"),
            ],
            &["a::x → a::y → a::x"],
        ),
        (
            &[
                ("a", "pub use y::T;"),
                ("a::x", "use crate::{\n    a::{T},\n};"),
                ("a::y", "use super::x::{self, U};"),
            ],
            &["a::x → a::y → a::x"],
        ),
    ];
    for (modules, expected) in rows {
        let split = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
        let sources = modules.iter().map(|(path, text)| (split(path), code(text))).collect();
        let found: Vec<_> =
            graphs(&sources).iter().filter_map(|(folder, graph)| circle(folder, graph)).collect();
        assert_eq!(found, expected, "{modules:?}");
    }
}

fn sources(root: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![(root.to_owned(), Vec::new())];
    while let Some((folder, module)) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut module: Vec<String> = module.clone();
            match name.as_str() {
                "lib" | "mod" => {}
                "tests" => continue,
                _ => module.push(name),
            }
            match path.is_dir() {
                true => folders.push((path, module)),
                false => drop(found.insert(module, code(&std::fs::read_to_string(path).unwrap()))),
            }
        }
    }
    found
}

/// A module's text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    text[..end]
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn graphs(sources: &Sources) -> Graphs {
    let known: BTreeSet<&[String]> =
        sources.keys().flat_map(|path| (1..=path.len()).map(|end| &path[..end])).collect();
    let handed_on: BTreeMap<_, _> =
        sources.iter().flat_map(|(folder, text)| handed_on(folder, text)).collect();
    let mut graphs = Graphs::new();
    for (module, text) in sources {
        for path in used(module, text) {
            // A re-exported item belongs to the folder's module that defines it.
            let item =
                (1..=path.len()).find(|end| !known.contains(&path[..*end])).map(|end| &path[..end]);
            let path = item.and_then(|item| handed_on.get(item)).unwrap_or(&path);
            let same = module.iter().zip(path).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(same), path.get(same)) {
                if known.contains(&path[..=same]) {
                    let graph = graphs.entry(module[..same].to_vec()).or_default();
                    graph.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
    }
    graphs
}

/// The items that a folder re-exports with `pub use`, each with its path in one of the folder's
/// modules.
fn handed_on(folder: &[String], text: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    for public in ["pub use ", "pub(crate) use ", "pub(super) use "] {
        for (at, _) in text.match_indices(public) {
            let path = text[at + public.len()..].trim_start_matches("self::");
            if !path.starts_with("crate::") && !path.starts_with("super::") {
                let whole = |(path, name): (Vec<String>, String)| {
                    ([folder, &[name]].concat(), [folder, &path].concat())
                };
                found.extend(paths(path).into_iter().map(whole));
            }
        }
    }
    found
}

/// The paths in a module's code that begin at the crate or above the module.
fn used(module: &[String], text: &str) -> Vec<Vec<String>> {
    let starts = ["crate::", "super::"].into_iter().flat_map(|start| text.match_indices(start));
    let whole = starts
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c == ':' || c == '$' || is_in_name(c)));
    let absolute = |(path, _): (Vec<String>, String)| match path
        .iter()
        .take_while(|part| *part == "super")
        .count()
    {
        0 => path[1..].to_vec(),
        ups => [&module[..module.len().saturating_sub(ups)], &path[ups..]].concat(),
    };
    whole.flat_map(|(at, _)| paths(&text[at..])).map(absolute).collect()
}

/// The paths of `a::{b, c::{d as e}}` at the start of a text, each with the name that it imports.
fn paths(text: &str) -> Vec<(Vec<String>, String)> {
    let (path, rest) =
        text.split_at(text.find(|c| c != ':' && !is_in_name(c)).unwrap_or(text.len()));
    let parts: Vec<String> =
        path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if path.ends_with("::") && rest.starts_with('{') {
        let inner = items(&rest[1..]).into_iter().flat_map(|item| paths(item.trim()));
        return inner.map(|(path, name)| ([parts.as_slice(), &path].concat(), name)).collect();
    }
    let alias = rest.strip_prefix(" as ").and_then(|alias| alias.split(|c| !is_in_name(c)).next());
    let name = alias.map(str::to_owned).or_else(|| parts.last().cloned());
    name.map(|name| (parts, name)).into_iter().collect()
}

/// The items of a list up to its closing brace.
fn items(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, sign) in text.match_indices(['{', '}', ',']) {
        match sign {
            "{" => depth += 1,
            "}" if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ => {
                found.push(&text[start..at]);
                start = at + 1;
            }
        }
        if sign == "}" && start == at + 1 {
            break;
        }
    }
    found
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A cycle among the modules of a folder.
fn circle(folder: &[String], graph: &Graph) -> Option<String> {
    graph.keys().find_map(|start| {
        let mut ways = vec![vec![start]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for to in way.last().and_then(|last| graph.get(*last)).into_iter().flatten() {
                let way = [way.as_slice(), &[to]].concat();
                if to == start {
                    let names: Vec<_> = way
                        .iter()
                        .map(|name| [folder, &[(*name).clone()]].concat().join("::"))
                        .collect();
                    return Some(names.join(" → "));
                }
                if seen.insert(to) {
                    ways.push(way);
                }
            }
        }
        None
    })
}
