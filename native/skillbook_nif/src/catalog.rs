//! A catalog behind a reference.
//!
//! Elixir holds only the reference, so a new generation replaces no term and causes no global
//! garbage collection. Readers get a view of the current generation, see [`Parts`], and keep it for
//! as long as they need it.
//!
//! Reloads are serialized by a mutex around the sources. A reload lists and parses files while it
//! holds that mutex, on a dirty IO scheduler and the loader's threads; readers go on with the old
//! generation and never see half of a new one.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustc_hash::FxHashSet;
use rustler::{
    Atom, Binary, Encoder, Env, NifMap, NifResult, NifTaggedEnum, NifUnitEnum, Resource,
    ResourceArc, Term,
};
use skillbook_core::catalog::assemble::{assemble_again, Assembled};
use skillbook_core::catalog::entry::Entry;
use skillbook_core::catalog::handlers::{HandlerProblem, HandlerProblems};
use skillbook_core::catalog::records::Loaded;
use skillbook_core::glob::{BadGlob, Globs};
use skillbook_core::page::document::{CodeLines, Document};
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{CachedCatalog, Change, Fetch, Parts, Profile, View};
use skillbook_files::parallel::parallel;
use skillbook_files::LoadedFolder;

use crate::shared::FrozenTerm;
use crate::store::Rows;
use crate::{declaration, encode, entry, memory, profile};

mod atoms {
    rustler::atoms! { ok, error, scheduled }
}

/// The Erlang terms of an entry, each built when it is first needed, and kept as long as the entry
/// stays the same, over generations.
#[derive(Default)]
struct EntryTerms {
    entry: OnceLock<FrozenTerm>,
    declaration: OnceLock<FrozenTerm>,
}

/// The `%Skillbook.Entry{}` of an entry.
pub fn entry_term<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    kept(env, entry, |terms| &terms.entry, entry::encode)
}

/// The declaration of an entry's page, or `nil`.
pub fn declaration_term<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    kept(
        env,
        entry,
        |terms| &terms.declaration,
        |env, entry| declaration::encode(env, entry.declaration()),
    )
}

fn kept<'a>(
    env: Env<'a>,
    entry: &Entry,
    term: impl Fn(&EntryTerms) -> &OnceLock<FrozenTerm>,
    encode: impl for<'b> Fn(Env<'b>, &Entry) -> Term<'b>,
) -> Term<'a> {
    match entry.kept.get_or_init(EntryTerms::default) {
        Some(terms) => {
            term(terms).get_or_init(|| FrozenTerm::new(|env| encode(env, entry))).copy(env)
        }
        None => encode(env, entry),
    }
}

/// A source with everything that is known of it. The records of the store are in the parts.
enum LoadedSource {
    Folder(Box<LoadedFolder>),
    Store,
    Code(LoadedCode),
}

/// A page of the program's code: its path, its text, and the lines of the code, if it has any.
type CodePage = (String, String, Option<(u32, Option<u32>)>);

/// A source of pages that the program's code hands over, with their documents.
struct LoadedCode {
    source: Arc<Source>,
    documents: Vec<Arc<Document>>,
    assembled: Assembled,
}

impl LoadedCode {
    fn new(source: Arc<Source>) -> LoadedCode {
        LoadedCode { source, documents: Vec::new(), assembled: Assembled::default() }
    }

    /// Replaces the pages. Returns whether they differ. The documents of unchanged pages stay.
    fn replace(&mut self, pages: Vec<CodePage>) -> bool {
        let document = |(path, text, lines): CodePage| {
            let lines = lines.map(|(head, body)| CodeLines { head, body });
            let new = Arc::new(Document::of_code(&path, &text, lines));
            let same =
                |old: &&Arc<Document>| old.is_same(&new) && old.code_lines() == new.code_lines();
            self.documents.iter().find(same).cloned().unwrap_or(new)
        };
        let documents: Vec<_> = pages.into_iter().map(document).collect();
        let same = documents.len() == self.documents.len()
            && documents.iter().zip(&self.documents).all(|(new, old)| Arc::ptr_eq(new, old));
        if same {
            return false;
        }
        self.documents.clone_from(&documents);
        self.assembled = assemble_again(&self.source, documents, Vec::new(), &self.assembled);
        true
    }
}

impl LoadedSource {
    fn new(source: Arc<Source>) -> LoadedSource {
        match source.kind {
            SourceKind::Stored => LoadedSource::Store,
            SourceKind::Code | SourceKind::Remote => LoadedSource::Code(LoadedCode::new(source)),
            SourceKind::Skills | SourceKind::Notes => {
                LoadedSource::Folder(Box::new(LoadedFolder::new(source)))
            }
        }
    }

    fn assembled(&self) -> Option<&Assembled> {
        match self {
            LoadedSource::Folder(loaded) => Some(loaded.assembled()),
            LoadedSource::Store => None,
            LoadedSource::Code(code) => Some(&code.assembled),
        }
    }

    /// Looks for changes. Only folders have any to look for: records and pages are handed over.
    fn refresh(&mut self, changed: Option<&[PathBuf]>) -> bool {
        match self {
            LoadedSource::Folder(loaded) => loaded.refresh(changed),
            LoadedSource::Store | LoadedSource::Code(_) => false,
        }
    }
}

/// A book's sources and its current generation.
///
/// A generation from files is made in two steps. [`CatalogResource::read`] reads the sources and
/// returns the names of their handlers; the caller looks them up, and [`CatalogResource::publish`]
/// makes the generation. So no reader ever sees a handler that was not looked up.
pub struct CatalogResource {
    pub parts: Parts,
    /// Locked during each step, so that generations of files follow each other.
    sources: Mutex<Sources>,
}

struct Sources {
    loaded: Vec<LoadedSource>,
    /// Whether they differ from the current generation.
    differ: bool,
}

#[rustler::resource_impl]
impl Resource for CatalogResource {}

/// The bytes of fetched records that wait, so that those of a tenant are put together.
const WAITING: usize = 32 * 1024 * 1024;

/// Records of the store that are fetched. If its process ends before, so does this.
pub struct FetchResource {
    catalog: ResourceArc<CatalogResource>,
    fetch: Fetch,
    /// Those that were taken in and are not in the catalog yet.
    waiting: Mutex<Vec<Loaded>>,
    is_ended: AtomicBool,
}

#[rustler::resource_impl]
impl Resource for FetchResource {}

impl Drop for FetchResource {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl FetchResource {
    fn add(&self, loaded: Vec<Loaded>) {
        if !loaded.is_empty() {
            let blocks = self.catalog.parts.fetched(&self.fetch, loaded);
            parallel(&blocks, || (), |_, block| block.pack());
        }
    }

    fn end(&self, is_whole: bool) {
        if !self.is_ended.swap(true, Ordering::Relaxed) {
            self.catalog.parts.end(&self.fetch, is_whole);
        }
    }
}

/// The number of a generation, and the names of entries that differ from those before.
pub struct Reloaded(Change);

impl Encoder for Reloaded {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        let names = |names: &[Arc<str>]| {
            names.iter().map(|name| &**name).collect::<Vec<&str>>().encode(env)
        };
        let Change { number, added, changed, removed } = &self.0;
        (*number, names(added), names(changed), names(removed)).encode(env)
    }
}

impl CatalogResource {
    /// Reads all sources again, or only the changed paths, and replaces the pages of code, if there
    /// are any. Returns the names of all handlers; `None` if there are paths and nothing differs.
    pub fn read(
        &self,
        paths: Option<&[PathBuf]>,
        pages: Option<Vec<Vec<CodePage>>>,
    ) -> Option<Vec<String>> {
        let mut sources = self.sources();
        // A reload that was asked for makes a generation in any case, so that its caller sees a new
        // number.
        let mut differ = sources.differ || paths.is_none();
        for source in sources.loaded.iter_mut() {
            differ |= source.refresh(paths);
        }
        differ |= pages.is_some_and(|pages| sources.replace_code(pages));
        sources.differ = differ;
        differ.then(|| sources.handlers())
    }

    /// Makes the next generation if the sources differ from the current one, or the problems of
    /// handlers do.
    pub fn publish(&self, problems: HandlerProblems) -> Reloaded {
        let mut sources = self.sources();
        let before = self.parts.handlers();
        let same = *before == problems;
        if !std::mem::take(&mut sources.differ) && same {
            return Reloaded(Change { number: self.parts.number(), ..Change::default() });
        }
        let assembled = sources.loaded.iter().map(|source| source.assembled().cloned()).collect();
        Reloaded(self.parts.publish(assembled, if same { before } else { Arc::new(problems) }))
    }

    /// Updates the records of the store from rows. If the rows are the whole store, all other
    /// records are removed. Makes a generation only if something differs. Also returns the rows
    /// that cannot be read.
    fn store(&self, rows: Rows, which: Which) -> (Reloaded, Vec<(i64, String)>) {
        let fetch = (which == Which::All).then(|| self.parts.fetch(Some(Tenant::All)));
        let mut removed = rows.removed;
        let unnamed = |id: &i64| (*id, Arc::from(""));
        // A record that cannot be read any more must not stay as it was.
        removed.extend(rows.unread.iter().map(|(id, _)| unnamed(id)));
        let there: FxHashSet<i64> = match which {
            Which::Some => FxHashSet::default(),
            _ => rows.records.iter().map(|record| record.id).collect(),
        };
        if which == Which::All {
            let ids = self.parts.record_ids();
            removed.extend(ids.iter().filter(|id| !there.contains(id)).map(unnamed));
        }
        // After a lost connection most are as they were.
        let records = self.parts.differing(rows.records);
        // Records have no handlers, so there are none to look up.
        let records = parallel(&records, || (), |_, record| self.parts.read(record));
        let change = match which {
            Which::Replaced => self.parts.replace(records, &there),
            _ => self.parts.put(records, &removed),
        };
        if let Some(fetch) = fetch {
            self.parts.end(&fetch, true);
        }
        (Reloaded(change), rows.unread)
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        locked(&self.sources)
    }
}

impl Sources {
    /// Replaces the pages of code, one list for each source of them, in their order. Returns
    /// whether they differ.
    fn replace_code(&mut self, pages: Vec<Vec<CodePage>>) -> bool {
        let code = self.loaded.iter_mut().filter_map(|source| match source {
            LoadedSource::Code(code) => Some(code),
            LoadedSource::Folder(_) | LoadedSource::Store => None,
        });
        code.zip(pages).fold(false, |differ, (code, pages)| code.replace(pages) || differ)
    }

    /// The names of all handlers, each once.
    fn handlers(&self) -> Vec<String> {
        let assembled = self.loaded.iter().filter_map(LoadedSource::assembled);
        let names: BTreeSet<&str> = assembled
            .flat_map(|assembled| &assembled.entries)
            .filter_map(|entry| entry.handler())
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

/// The rows that are stored.
#[derive(NifUnitEnum, PartialEq)]
enum Which {
    /// Some that changed.
    Some,
    All,
    /// Those that are common to all tenants or have a schedule, of another database.
    Replaced,
}

#[derive(NifUnitEnum)]
enum Kind {
    Skills,
    Notes,
    Stored,
    Code,
    Mcp,
}

#[derive(NifUnitEnum)]
enum TrustLevel {
    None,
    Low,
    Medium,
    High,
}

/// A `%Skillbook.Source{}`. Its globs were checked when it was made.
#[derive(NifMap)]
struct SourceOptions {
    name: String,
    kind: Kind,
    tenant: Option<String>,
    labels: Vec<String>,
    path: String,
    optional: bool,
    implied: bool,
    trust: TrustLevel,
    available: Option<Vec<String>>,
    inline: Option<Vec<String>>,
}

impl SourceOptions {
    fn source(self) -> Result<Source, BadGlob> {
        let globs = |patterns: Option<Vec<String>>| patterns.as_deref().map(Globs::new).transpose();
        Ok(Source {
            name: self.name,
            kind: match self.kind {
                Kind::Skills => SourceKind::Skills,
                Kind::Notes => SourceKind::Notes,
                Kind::Stored => SourceKind::Stored,
                Kind::Code => SourceKind::Code,
                Kind::Mcp => SourceKind::Remote,
            },
            tenant: self.tenant.into(),
            labels: self.labels,
            root: self.path,
            optional: self.optional,
            implied: self.implied,
            trust: match self.trust {
                TrustLevel::None => Trust::None,
                TrustLevel::Low => Trust::Low,
                TrustLevel::Medium => Trust::Medium,
                TrustLevel::High => Trust::High,
            },
            available: globs(self.available)?,
            inline: globs(self.inline)?,
        })
    }
}

/// `:ok`, or the first glob that cannot be read and the reason.
#[rustler::nif(schedule = "DirtyCpu")]
fn globs_check(env: Env<'_>, patterns: Vec<String>) -> Term<'_> {
    match Globs::new(&patterns) {
        Ok(_) => atoms::ok().encode(env),
        Err(bad) => (atoms::error(), (bad.glob, bad.message)).encode(env),
    }
}

/// The names that match one of the globs, or the first glob that cannot be read and the reason.
#[rustler::nif(schedule = "DirtyCpu")]
fn globs_filter(env: Env<'_>, patterns: Vec<String>, names: Vec<String>) -> Term<'_> {
    match Globs::new(&patterns) {
        Ok(globs) => {
            let found: Vec<_> = names.iter().filter(|name| globs.matches(name)).collect();
            (atoms::ok(), found).encode(env)
        }
        Err(bad) => (atoms::error(), (bad.glob, bad.message)).encode(env),
    }
}

/// The catalog, which has no generation yet, and the names of its handlers.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_load(
    sources: Vec<SourceOptions>,
    pages: Vec<Vec<CodePage>>,
) -> NifResult<(ResourceArc<CatalogResource>, Vec<String>)> {
    let source =
        |options: SourceOptions| options.source().map(Arc::new).map_err(|_| rustler::Error::BadArg);
    let sources = sources.into_iter().map(source).collect::<NifResult<Vec<_>>>()?;
    let stored = sources.iter().find(|source| source.kind == SourceKind::Stored).cloned();
    let loaded: Vec<LoadedSource> = sources.into_iter().map(LoadedSource::new).collect();
    let mut sources = Sources { loaded, differ: true };
    sources.replace_code(pages);
    let handlers = sources.handlers();
    let catalog = CatalogResource { parts: Parts::new(stored), sources: Mutex::new(sources) };
    Ok((ResourceArc::new(catalog), handlers))
}

/// Reads the sources again: the names of their handlers.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_read(catalog: ResourceArc<CatalogResource>, pages: Vec<Vec<CodePage>>) -> Vec<String> {
    catalog.read(None, Some(pages)).unwrap_or_default()
}

/// The same for changed paths; `nil` if nothing differs. Without `pages` those of code stay.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_read_paths(
    catalog: ResourceArc<CatalogResource>,
    paths: Vec<Binary>,
    pages: Option<Vec<Vec<CodePage>>>,
) -> Option<Vec<String>> {
    let paths: Vec<PathBuf> =
        paths.iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
    catalog.read(Some(&paths), pages)
}

/// The problem of a handler, and the name of a similar one if it is missing.
#[derive(NifTaggedEnum)]
enum Problem {
    Missing(Option<String>),
    NotAHandler,
    Unchecked,
}

/// Makes the next generation, with the problems of handlers, if something differs.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_publish(
    catalog: ResourceArc<CatalogResource>,
    problems: Vec<(String, Problem)>,
) -> Reloaded {
    let problem = |problem| match problem {
        Problem::Missing(close) => HandlerProblem::Missing { close },
        Problem::NotAHandler => HandlerProblem::NotAHandler,
        Problem::Unchecked => HandlerProblem::Unchecked,
    };
    catalog.publish(problems.into_iter().map(|(name, of)| (name, problem(of))).collect())
}

/// Makes the next generation from rows: `{reload, [{id, reason}]}`, where the list has those that
/// cannot be read.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_store(
    catalog: ResourceArc<CatalogResource>,
    columns: Vec<String>,
    rows: Vec<Vec<Term>>,
    which: Which,
) -> NifResult<(Reloaded, Vec<(i64, String)>)> {
    Ok(catalog.store(Rows::read(&columns, rows)?, which))
}

/// Whether all records that a profile of a tenant reads are there.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_has(catalog: ResourceArc<CatalogResource>, tenant: Term) -> NifResult<bool> {
    Ok(catalog.parts.has(&profile::tenant(tenant)?))
}

/// Begins to fetch the records of a tenant, or those with a schedule. It may wait for a writer.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_fetch(
    catalog: ResourceArc<CatalogResource>,
    tenant: Term,
) -> NifResult<ResourceArc<FetchResource>> {
    let is_all = tenant.decode().is_ok_and(|atom: Atom| atom == atoms::scheduled());
    let tenant = if is_all { None } else { Some(profile::tenant(tenant)?) };
    let fetch = catalog.parts.fetch(tenant);
    let (waiting, is_ended) = Default::default();
    Ok(ResourceArc::new(FetchResource { catalog, fetch, waiting, is_ended }))
}

/// Adds rows, those of a tenant after those of another. Returns those that cannot be read:
/// `[{id, reason}]`.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_take_in(
    fetch: ResourceArc<FetchResource>,
    columns: Vec<String>,
    rows: Vec<Vec<Term>>,
) -> NifResult<Vec<(i64, String)>> {
    let rows = Rows::read(&columns, rows)?;
    let loaded = parallel(&rows.records, || (), |_, record| fetch.catalog.parts.take_in(record));
    let mut waiting = locked(&fetch.waiting);
    waiting.extend(loaded);
    if waiting.iter().map(Loaded::size).sum::<usize>() < WAITING {
        return Ok(rows.unread);
    }
    // More of the last tenant may come. Unless they are in order, its records are put together
    // once.
    let rest = if waiting.is_sorted_by_key(Loaded::id) {
        Vec::new()
    } else {
        let last = waiting.last().map(|last| last.tenant().clone());
        let rest = waiting.iter().rposition(|loaded| Some(loaded.tenant()) != last.as_ref());
        waiting.split_off(rest.map_or(0, |at| at + 1))
    };
    fetch.add(std::mem::replace(&mut *waiting, rest));
    Ok(rows.unread)
}

/// Ends a fetch. If it is whole, all records of the tenant are there.
#[rustler::nif(schedule = "DirtyIo")]
fn catalog_fetched(fetch: ResourceArc<FetchResource>, is_whole: bool) {
    fetch.add(std::mem::take(&mut *locked(&fetch.waiting)));
    fetch.end(is_whole);
}

/// The entries with a schedule, or those of one name, as `{record id or nil, ids of its writers,
/// entry}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_scheduled<'a>(
    env: Env<'a>,
    catalog: ResourceArc<CatalogResource>,
    name: Option<String>,
) -> Vec<(Option<i64>, Vec<Option<String>>, Term<'a>)> {
    let job = |entry: Arc<Entry>| {
        let record = entry.document.of_record();
        let writers = record.map(|record| record.writers.clone()).unwrap_or_default();
        (record.map(|record| record.id), writers, entry_term(env, &entry))
    };
    catalog.parts.scheduled(name.as_deref()).into_iter().map(job).collect()
}

#[rustler::nif]
fn catalog_generation(catalog: ResourceArc<CatalogResource>) -> u64 {
    catalog.parts.number()
}

/// Limits the bytes of the records' entries that are open, and the number of the records that stay
/// without a reader, if those of a tenant can be fetched.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_limit(catalog: ResourceArc<CatalogResource>, bytes: usize, records: Option<usize>) {
    catalog.parts.limit(bytes);
    if let Some(records) = records {
        catalog.parts.hold(records);
    }
}

/// Forgets what was not read since this was called last, packs all records, and gives free memory
/// back.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_rest(catalog: ResourceArc<CatalogResource>) {
    catalog.parts.rest();
    catalog.parts.forget();
    memory::give_back();
}

/// The number of entries in memory.
#[rustler::nif]
fn catalog_size(catalog: ResourceArc<CatalogResource>) -> usize {
    catalog.parts.size()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_count(catalog: ResourceArc<CatalogResource>) -> usize {
    catalog.parts.once().count()
}

/// The diagnostics of everything.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_diagnostics<'a>(
    env: Env<'a>,
    catalog: ResourceArc<CatalogResource>,
) -> NifResult<Vec<Term<'a>>> {
    let view = unrestricted(catalog.parts.once())?;
    let found = view.diagnostics().map(|diagnostic| encode::diagnostic(env, diagnostic)).collect();
    found
}

/// The diagnostics that are errors or warnings, of the records that somebody reads, if they have
/// not been asked for; with `all` also those that were, and of files. It is some of them, from a
/// place on, and the place to go on with.
#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_problems<'a>(
    env: Env<'a>,
    catalog: ResourceArc<CatalogResource>,
    all: bool,
    from: u32,
) -> NifResult<(Vec<Term<'a>>, Option<u32>)> {
    let (catalogs, next) = catalog.parts.news(all, from);
    let mut found = Vec::new();
    for catalog in catalogs {
        for diagnostic in unrestricted(catalog)?.problems() {
            found.push(encode::diagnostic(env, diagnostic)?);
        }
    }
    Ok((found, next))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn unrestricted(catalog: Arc<CachedCatalog>) -> NifResult<View> {
    // A profile without globs cannot have an invalid one.
    View::new(catalog, &Profile::unrestricted()).map_err(|_| rustler::Error::BadArg)
}
