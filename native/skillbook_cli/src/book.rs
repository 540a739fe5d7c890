//! The sources of a command line, and the catalog of their entries.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use skillbook_core::catalog::assemble::{assemble, Assembled};
use skillbook_core::catalog::handlers::{HandlerProblem, HandlerProblems};
use skillbook_core::catalog::Catalog;
use skillbook_core::glob::Globs;
use skillbook_core::page::document::Document;
use skillbook_core::source::{Source, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{CachedCatalog, Profile, View};
use skillbook_files::LoadedFolder;

use crate::arguments::Options;
use crate::elixir;

mod pages {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}

/// The namespaces of modules that the Elixir command line has: those of Skillbook and of Elixir. It
/// knows whether a handler in one of them exists; no handler of another one can be looked up.
const NAMESPACES: &[&str] = &[
    "Access",
    "Agent",
    "Application",
    "Atom",
    "Base",
    "Behaviour",
    "Bitwise",
    "Calendar",
    "Code",
    "Collectable",
    "Config",
    "Date",
    "DateTime",
    "Dict",
    "DynamicSupervisor",
    "EEx",
    "Elixir",
    "Enum",
    "Enumerable",
    "Exception",
    "File",
    "Float",
    "Function",
    "GenEvent",
    "GenServer",
    "HashDict",
    "HashSet",
    "IO",
    "Inspect",
    "Integer",
    "Kernel",
    "Keyword",
    "List",
    "Logger",
    "Macro",
    "Map",
    "MapSet",
    "Mix",
    "Module",
    "NaiveDateTime",
    "Node",
    "OptionParser",
    "PartitionSupervisor",
    "Path",
    "Port",
    "Process",
    "Protocol",
    "Range",
    "Record",
    "Regex",
    "Registry",
    "Set",
    "Skillbook",
    "Stream",
    "String",
    "StringIO",
    "Supervisor",
    "System",
    "Task",
    "Time",
    "Tuple",
    "URI",
    "Version",
];

/// A source of the command line.
#[derive(Clone)]
pub enum Origin {
    /// A folder.
    Folder(Arc<Source>),
    /// Built-in pages, where the project is not on this machine.
    Pages(Arc<Source>, &'static [(&'static str, &'static str)]),
}

impl Origin {
    fn source(&self) -> &Arc<Source> {
        match self {
            Origin::Folder(source) | Origin::Pages(source, _) => source,
        }
    }

    /// Its folder; `None` for pages in the program.
    pub fn folder(&self) -> Option<&str> {
        match self {
            Origin::Folder(source) => Some(&source.root),
            Origin::Pages(..) => None,
        }
    }

    fn assembled(&self) -> Assembled {
        match self {
            Origin::Folder(source) => LoadedFolder::new(source.clone()).assembled().clone(),
            Origin::Pages(source, pages) => {
                let document = |(path, text): &(&str, &str)| {
                    Arc::new(Document::parse(&source.root, path, text.as_bytes()))
                };
                let files = pages.iter().map(|(path, _)| (*path).to_owned()).collect();
                assemble(source, pages.iter().map(document).collect(), files)
            }
        }
    }
}

/// The sources of the folders of skills, and of more folders.
pub fn folders(options: &Options, more: &[String]) -> Vec<Origin> {
    let origins = options.dirs().into_iter().map(|dir| match options.names_dirs() {
        false if dir != OWN => unnamed(&dir),
        _ => folder(&dir),
    });
    unique(origins.chain(more.iter().map(|dir| folder(dir))).collect())
}

/// The folders and files that a line is about. Without a path or `--dir`, installed skills are not
/// among them: their authors are others.
pub fn targets(options: &Options) -> Vec<String> {
    if options.args.is_empty() {
        let is_own = |dir: &String| options.names_dirs() || !is_installed(dir);
        return distinct(options.dirs().iter().map(|dir| expand(dir)).filter(is_own));
    }
    distinct(options.args.iter().map(|path| expand(path)))
}

/// The folders that these are read as parts of. A page's meaning depends on the folders above it,
/// so it is read as part of its `--dir`, if any.
pub fn roots(options: &Options, targets: &[String]) -> Vec<String> {
    let dirs: Vec<String> = options.dirs().iter().map(|dir| expand(dir)).collect();
    let root = |path: &String| {
        let dir = dirs.iter().find(|dir| is_below(path, std::slice::from_ref(*dir)));
        match dir {
            Some(dir) => dir.clone(),
            None if Path::new(path).is_dir() => path.clone(),
            None => path.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned(),
        }
    };
    distinct(targets.iter().map(root))
}

fn distinct(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    paths.filter(|path| seen.insert(path.clone())).collect()
}

/// The folder that a line without `--dir` trusts.
const OWN: &str = "skills";

fn folder(path: &str) -> Origin {
    let root = expand(path);
    let trust = if is_installed(&root) { Trust::Low } else { Trust::Medium };
    Origin::Folder(Arc::new(Source { trust, ..source(root) }))
}

/// A folder that nobody named may be part of a project of other people.
fn unnamed(path: &str) -> Origin {
    let name = path.split('/').next().unwrap_or_default().to_owned();
    Origin::Folder(Arc::new(Source { trust: Trust::Low, name, ..source(expand(path)) }))
}

/// Whether `install` wrote a folder. Its skills come from other people.
pub fn is_installed(folder: &str) -> bool {
    Path::new(folder).join("skills.lock.json").exists()
}

/// The same for `lint`, which trusts all folders alike.
pub fn linted(path: &str) -> Origin {
    Origin::Folder(Arc::new(source(expand(path))))
}

fn source(root: String) -> Source {
    let name = root.rsplit('/').next().unwrap_or_default().to_owned();
    Source { name, root, trust: Trust::Medium, ..Source::default() }
}

/// The name of the built-in sources.
pub const BUILTIN: &str = "builtin";

/// The built-in sources of a book without vaults and accounts.
pub fn builtins(options: &Options) -> Vec<Origin> {
    if !options.is_on("builtins", true) {
        return Vec::new();
    }
    let agent = ["agent.*", "workflow.*", "workflows.*"].map(str::to_owned);
    vec![
        builtin("skillbook", "skills", pages::SKILLS, &[]),
        builtin("skillbook_agent", "agent", pages::AGENT, &agent),
    ]
}

/// The built-in sources whose commands examples may use, also those that need a vault or an
/// account.
pub fn builtins_of_lint(options: &Options) -> Vec<Origin> {
    if !options.is_on("builtins", true) {
        return Vec::new();
    }
    vec![
        builtin("skillbook", "skills", pages::SKILLS, &[]),
        builtin("skillbook_vault", "vaults", pages::VAULTS, &[]),
        builtin("skillbook_accounts", "connections", pages::CONNECTIONS, &[]),
    ]
}

fn builtin(
    package: &str,
    folder: &str,
    pages: &'static [(&'static str, &'static str)],
    available: &[String],
) -> Origin {
    // The folder of the build, as Elixir names it, so that both print the same paths.
    let built = elixir::project().map(|root| {
        let environment = std::env::var("MIX_ENV").unwrap_or_else(|_| "prod".to_owned());
        root.join("_build").join(environment).join("lib").join(package).join("priv").join(folder)
    });
    let root = built.filter(|folder| folder.is_dir());
    let available = (!available.is_empty()).then(|| Globs::new(available).ok()).flatten();
    let source = |root| Source {
        name: BUILTIN.to_owned(),
        root,
        trust: Trust::High,
        available,
        ..Source::default()
    };
    match root {
        Some(root) => Origin::Folder(Arc::new(source(root.to_string_lossy().into_owned()))),
        None => Origin::Pages(Arc::new(source("builtin".to_owned())), pages),
    }
}

/// The profile of `--profile` and `--grant`.
pub fn profile(options: &Options) -> Profile {
    Profile {
        id: options.get("profile").unwrap_or("default").to_owned(),
        tenant: Tenant::Common,
        grants: Some(options.texts("grant")),
        ..Profile::unrestricted()
    }
}

/// The profile of trusted code, which also sees the commands that need an account.
pub fn unrestricted() -> Profile {
    let services = pages::SERVICES.iter().map(|service| (*service).to_owned()).collect();
    Profile { services, ..Profile::unrestricted() }
}

/// The catalog of these sources.
pub struct Book {
    catalog: Arc<CachedCatalog>,
}

impl Book {
    /// Reads the sources. The error is the name of a handler that only Elixir can look up.
    pub fn load(origins: &[Origin], standalone: bool) -> Result<Book, String> {
        let assembled: Vec<Assembled> = origins.iter().map(Origin::assembled).collect();
        let entries = assembled.iter().flat_map(|assembled| &assembled.entries);
        let handlers: BTreeSet<&str> = entries.filter_map(|entry| entry.handler()).collect();
        let mut problems = HandlerProblems::new();
        for handler in handlers {
            let name = handler.strip_prefix("Elixir.").unwrap_or(handler);
            if pages::HANDLERS.contains(&name) {
                continue;
            }
            let namespace = name.split('.').next().unwrap_or_default();
            if NAMESPACES.contains(&namespace) && !standalone {
                return Err(name.to_owned());
            }
            problems.insert(handler.to_owned(), HandlerProblem::Unchecked);
        }
        let catalog = Catalog::build_after(None, 1, assembled.iter());
        let catalog = catalog.with_handlers(Arc::new(problems));
        Ok(Book { catalog: Arc::new(CachedCatalog::new(catalog)) })
    }

    /// The view of a profile without globs, so that none of them can be wrong.
    pub fn view(&self, profile: &Profile) -> View {
        View::new(self.catalog.clone(), profile).expect("a profile without globs")
    }
}

/// Sources, each folder once, also if a link leads to it. Of a folder that is listed twice the
/// first one stays.
pub fn unique(origins: Vec<Origin>) -> Vec<Origin> {
    let mut seen = BTreeSet::new();
    let place = |root: &str| fs::canonicalize(root).map_or_else(|_| root.into(), PathBuf::from);
    let is_new = |origin: &Origin| seen.insert(place(&origin.source().root));
    let mut unique = origins;
    unique.retain(is_new);
    unique
}

/// An absolute path without `.`, `..` and a slash at its end. `~` is the home.
pub fn expand(path: &str) -> String {
    let home = || std::env::var("HOME").unwrap_or_default();
    let path = match path.strip_prefix('~') {
        Some("") => home(),
        Some(rest) if rest.starts_with('/') => home() + rest,
        _ => path.to_owned(),
    };
    let mut full = PathBuf::new();
    let here = std::env::current_dir().unwrap_or_default();
    for part in here.join(path).components() {
        match part {
            Component::ParentDir => drop(full.pop()),
            Component::CurDir => {}
            part => full.push(part),
        }
    }
    full.to_string_lossy().into_owned()
}

/// Whether a path is one of these or below one.
pub fn is_below(path: &str, targets: &[String]) -> bool {
    targets.iter().any(|target| {
        path.strip_prefix(target.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The sources of which none of these folders is a part. Compares inodes, because the build links
/// to the pages.
pub fn others(builtins: Vec<Origin>, targets: &[String]) -> Vec<Origin> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    let above: Vec<_> = targets
        .iter()
        .flat_map(|target| Path::new(target).ancestors())
        .filter_map(identity)
        .collect();
    let is_other = |origin: &Origin| {
        let own = origin.folder().and_then(|folder| identity(Path::new(folder)));
        own.is_none_or(|own| !above.contains(&own))
    };
    builtins.into_iter().filter(is_other).collect()
}
