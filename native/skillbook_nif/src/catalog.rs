//! A catalog behind a reference: its generation is swapped as a whole, readers keep the one they hold.

use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use rustler::{Encoder, Env, NifMap, NifResult, NifUnitEnum, Resource, ResourceArc, Term};
use skillbook_core::catalog::{Catalog, EntryId};
use skillbook_core::entry::{Source, SourceKind, Trust};
use skillbook_core::glob::{BadGlob, Globs};

use crate::load::{load, Documents};
use crate::shared::FrozenTerm;
use crate::{encode, entry};

mod atoms {
    rustler::atoms! { ok, error }
}

/// One generation with the terms of its entries.
pub struct Generation {
    pub catalog: Arc<Catalog>,
    terms: Box<[OnceLock<FrozenTerm>]>,
}

impl Generation {
    fn new(catalog: Catalog) -> Generation {
        let terms = catalog.entries().iter().map(|_| OnceLock::new()).collect();
        Generation { catalog: Arc::new(catalog), terms }
    }

    /// The entry's struct, built when it is first asked for.
    pub fn entry_term<'a>(&self, env: Env<'a>, id: EntryId) -> Term<'a> {
        let build = || FrozenTerm::new(|env| entry::encode(env, self.catalog.entry(id)));
        self.terms[id.0 as usize].get_or_init(build).copy(env)
    }
}

/// A book's sources and its current generation.
pub struct CatalogResource {
    sources: Vec<Arc<Source>>,
    current: ArcSwap<Generation>,
    /// Held while loading, so that generations come one after another.
    documents: Mutex<Documents>,
}

#[rustler::resource_impl]
impl Resource for CatalogResource {}

impl CatalogResource {
    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    fn reload(&self) -> u64 {
        let mut documents = self.documents.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (loaded, read) = load(&self.sources, &documents);
        let before = self.current();
        let number = before.catalog.generation() + 1;
        let catalog = Catalog::build(number, loaded);
        catalog.search_from(&before.catalog);
        self.current.store(Arc::new(Generation::new(catalog)));
        *documents = read;
        number
    }
}

#[derive(NifUnitEnum)]
enum Kind {
    Skills,
    Notes,
}

#[derive(NifUnitEnum)]
enum TrustLevel {
    None,
    Low,
    Medium,
    High,
}

/// A `%Skillbook.Source{}`, whose globs were checked when it was made.
#[derive(NifMap)]
struct SourceOptions {
    name: String,
    kind: Kind,
    labels: Vec<String>,
    path: String,
    optional: bool,
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
            },
            labels: self.labels,
            root: self.path,
            optional: self.optional,
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

/// The first of these globs that cannot be read, with the reason; `ok` if all can.
#[rustler::nif]
fn globs_check(env: Env<'_>, patterns: Vec<String>) -> Term<'_> {
    match Globs::new(&patterns) {
        Ok(_) => atoms::ok().encode(env),
        Err(bad) => (atoms::error(), (bad.glob, bad.message)).encode(env),
    }
}

#[rustler::nif(schedule = "DirtyIo")]
fn catalog_load(sources: Vec<SourceOptions>) -> NifResult<ResourceArc<CatalogResource>> {
    let source = |options: SourceOptions| options.source().map(Arc::new).map_err(|_| rustler::Error::BadArg);
    let sources = sources.into_iter().map(source).collect::<NifResult<Vec<_>>>()?;
    let (loaded, documents) = load(&sources, &Documents::default());
    let current = ArcSwap::from_pointee(Generation::new(Catalog::build(1, loaded)));
    Ok(ResourceArc::new(CatalogResource { sources, current, documents: Mutex::new(documents) }))
}

#[rustler::nif(schedule = "DirtyIo")]
fn catalog_reload(catalog: ResourceArc<CatalogResource>) -> u64 {
    catalog.reload()
}

#[rustler::nif]
fn catalog_generation(catalog: ResourceArc<CatalogResource>) -> u64 {
    catalog.current().catalog.generation()
}

#[rustler::nif]
fn catalog_count(catalog: ResourceArc<CatalogResource>) -> usize {
    catalog.current().catalog.entries().len()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn catalog_diagnostics<'a>(env: Env<'a>, catalog: ResourceArc<CatalogResource>) -> NifResult<Vec<Term<'a>>> {
    let generation = catalog.current();
    let findings = generation.catalog.findings().iter();
    findings.map(|finding| encode::diagnostic(env, &finding.diagnostic)).collect()
}
