//! A catalog with everything that is computed from it on demand.
//!
//! A catalog never changes, so nothing here is ever invalidated. Caches for all readers go away
//! with their generation, and are made once by the first reader that needs them, while others wait.
//! The caches of profiles are [shared](Shared) by all generations and parts of a book, so that they
//! have one limit. Mutexes are held only for a look.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::classes::{carried, Classes};
use super::profile::Profile;
use super::recent::Recent;
use super::spelling::KnownNames;
use super::visible::Visible;
use crate::catalog::entry::Entry;
use crate::catalog::Catalog;
use crate::search::embedded;
use crate::search::index::Index;
use crate::search::scope::Scope;
use crate::search::vectors::{Digest, Mapped, Vectors};

/// The profiles whose visible sets, prompts and statistics are cached, at most, and the bytes of
/// each of these.
const MAX_PROFILES: usize = 16_384;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The caches of profiles, for all generations and parts of a book: of each profile the last value,
/// with the number of the catalog that it is of.
#[derive(Debug)]
struct Shared {
    /// The number of the next catalog.
    next: AtomicU64,
    visible: Mutex<Recent<Profile, (u64, Arc<Visible>)>>,
    scopes: Mutex<Recent<Profile, (u64, Arc<Scope>)>>,
    /// The default prompts, each with the number of the content that it was made of, for catalogs
    /// that show a profile the same.
    prompts: Mutex<Recent<Profile, (u64, Arc<str>)>>,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            next: AtomicU64::new(0),
            visible: Mutex::new(Recent::new(MAX_PROFILES, MAX_BYTES)),
            scopes: Mutex::new(Recent::new(MAX_PROFILES, MAX_BYTES)),
            prompts: Mutex::new(Recent::new(MAX_PROFILES, MAX_BYTES)),
        }
    }
}

/// A catalog with the caches that its views share.
#[derive(Debug)]
pub struct CachedCatalog {
    catalog: Catalog,
    known_names: OnceLock<KnownNames>,
    longest_name: OnceLock<usize>,
    /// The digest of each entry, in one piece: a view reads those of all entries that it shows.
    digests: OnceLock<Vec<u64>>,
    classes: OnceLock<Classes>,
    search: OnceLock<Arc<Index>>,
    /// The search index of the previous generation, until this one has its own.
    earlier_search: Mutex<Option<Arc<Index>>>,
    /// The rows of the entries' vectors, until vectors are added.
    mapped: Mutex<Option<Arc<Mapped>>>,
    /// Whether somebody asked which entries have no vector.
    asked: AtomicBool,
    /// With the number of this catalog.
    shared: OnceLock<(Arc<Shared>, u64)>,
    /// The catalog of the entries that all readers of a book have in common, whose search index is
    /// a part of this one's.
    base: Option<Arc<CachedCatalog>>,
}

impl Deref for CachedCatalog {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        &self.catalog
    }
}

impl CachedCatalog {
    /// The catalog without any cache filled.
    pub fn new(catalog: Catalog) -> CachedCatalog {
        let (known_names, longest_name, digests, classes) = Default::default();
        let (search, earlier_search, mapped, asked, shared) = Default::default();
        CachedCatalog {
            catalog,
            known_names,
            longest_name,
            digests,
            classes,
            search,
            earlier_search,
            mapped,
            asked,
            shared,
            base: None,
        }
    }

    /// The same of a catalog that has the entries of a base and more.
    pub(super) fn over(base: Arc<CachedCatalog>, catalog: Catalog) -> CachedCatalog {
        CachedCatalog { base: Some(base), ..CachedCatalog::new(catalog) }
    }

    /// The names, prepared for suggestions.
    pub(super) fn known_names(&self) -> &KnownNames {
        self.known_names.get_or_init(|| KnownNames::new(&self.catalog))
    }

    /// The length of the longest name or alias, in bytes.
    pub(super) fn longest_name(&self) -> usize {
        *self.longest_name.get_or_init(|| {
            let aliases = |entry: &Arc<Entry>| entry.fields().aliases.iter().map(String::len).max();
            let longest = |entry| aliases(entry).unwrap_or(0).max(entry.name.len());
            self.entries().iter().map(longest).max().unwrap_or(0)
        })
    }

    /// The digests of all entries, by their ids.
    pub(super) fn digests(&self) -> &[u64] {
        let digests = || self.entries().iter().map(|entry| entry.digest()).collect();
        self.digests.get_or_init(digests)
    }

    /// The classes of all entries.
    pub(super) fn classes(&self) -> &Classes {
        self.classes.get_or_init(|| Classes::new(self.entries(), None))
    }

    /// The default prompt of a profile that sees the content of a number, made if it is not known.
    pub(crate) fn prompt_of(
        &self,
        profile: &Profile,
        content: u64,
        make: impl FnOnce() -> Arc<str>,
    ) -> Arc<str> {
        let prompts = &self.shared().0.prompts;
        if let Some((of, prompt)) = lock(prompts).get(profile) {
            if *of == content {
                return prompt.clone();
            }
        }
        let prompt = make();
        lock(prompts).put(profile.clone(), (content, prompt.clone()), prompt.len());
        prompt
    }

    fn shared(&self) -> (&Arc<Shared>, u64) {
        let (shared, number) = self.shared.get_or_init(|| numbered(&Arc::new(Shared::new())));
        (shared, *number)
    }

    /// The index for searches.
    pub(super) fn search_index(&self) -> &Index {
        self.search.get_or_init(|| {
            let earlier = lock(&self.earlier_search).take();
            let base = self.base.as_ref().map(|base| base.search_index());
            Index::new(self.entries(), earlier.as_deref(), base).into()
        })
    }

    /// The rows of the vectors of all entries.
    pub(super) fn mapped(&self, vectors: &Vectors) -> Arc<Mapped> {
        let cached = lock(&self.mapped).clone();
        if let Some(mapped) = cached.filter(|mapped| mapped.version() == vectors.version()) {
            return mapped;
        }
        // Two readers may do this at once, with the same result.
        let mapped = Arc::new(vectors.map(self.texts().map(|(digest, at)| (at, digest))));
        *lock(&self.mapped) = Some(mapped.clone());
        mapped
    }

    /// The digests of the texts that an embedding model reads, each with the number of its entry.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Digest, u32)> {
        let entries = self.entries().iter().zip(0..);
        entries.filter_map(|(entry, at)| Some((embedded::wanted_digest(entry)?, at)))
    }

    /// The digests of the texts that have no vector, if nobody has asked for them before.
    pub fn missing(&self, vectors: &Vectors) -> Vec<Digest> {
        if self.asked.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        vectors.missing(self.texts()).into_iter().map(|(digest, _)| *digest).collect()
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Takes over digests, classes and prompts from the previous generation, and lets the search
    /// index be built from its index, which is faster if most documents are the same.
    pub fn follow(&self, before: &CachedCatalog) {
        // If a reader was quicker, its digests and classes are the same.
        if let Some(digests) = before.digests.get() {
            let digests = carried(self.entries(), before.entries(), digests, Entry::digest);
            let _ = self.digests.set(digests);
        }
        if let Some(classes) = before.classes.get() {
            let classes = Classes::new(self.entries(), Some((before.entries(), classes)));
            let _ = self.classes.set(classes);
        }
        let _ = self.shared.set(numbered(before.shared().0));
        // If nobody has searched since, the generation before may still hold an older index. It is
        // as good a start.
        let earlier = match before.search.get() {
            Some(index) => Some(index.clone()),
            None => lock(&before.earlier_search).clone(),
        };
        *lock(&self.earlier_search) = earlier;
    }

    /// The entries that a profile searches, and their statistics.
    pub(super) fn scope_of(&self, profile: &Profile, new: impl FnOnce() -> Scope) -> Arc<Scope> {
        let (shared, own) = self.shared();
        if let Some((number, scope)) = lock(&shared.scopes).get(profile) {
            if *number == own {
                return scope.clone();
            }
        }
        let scope = Arc::new(new());
        lock(&shared.scopes).put(profile.clone(), (own, scope.clone()), scope.bytes());
        scope
    }

    /// The visible set of a profile, if it is cached.
    pub(super) fn cached(&self, profile: &Profile) -> Option<Arc<Visible>> {
        let (shared, own) = self.shared();
        let mut visible = lock(&shared.visible);
        visible
            .get(profile)
            .filter(|(number, _)| *number == own)
            .map(|(_, visible)| visible.clone())
    }

    /// Caches a visible set in place of those that were used least recently.
    pub(super) fn cache(&self, visible: Arc<Visible>) {
        let (shared, own) = self.shared();
        let (profile, bytes) = (visible.rule.profile.clone(), visible.bytes());
        lock(&shared.visible).put(profile, (own, visible), bytes);
    }
}

fn numbered(shared: &Arc<Shared>) -> (Arc<Shared>, u64) {
    (shared.clone(), shared.next.fetch_add(1, Ordering::Relaxed))
}

/// The value of a mutex, also after a panic of somebody who held it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
