//! A catalog with everything that is computed from it on demand.
//!
//! A catalog never changes, so nothing here is ever invalidated: the caches go away with their
//! generation. Each is filled once by the first reader that needs it, while other readers of the
//! same cache wait. The mutexes guard lists of a few entries and are held only for a look at them.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::profile::Profile;
use super::spelling::KnownNames;
use super::visible::Visible;
use crate::catalog::entry::Entry;
use crate::catalog::Catalog;
use crate::search::embedded;
use crate::search::index::Index;
use crate::search::vectors::{Mapped, Vectors};

/// The number of profiles whose visible sets are cached. A set takes one byte per entry.
const MAX_PROFILES: usize = 64;

/// A catalog with the caches that its views share.
#[derive(Debug)]
pub struct CachedCatalog {
    catalog: Catalog,
    known_names: OnceLock<KnownNames>,
    longest_name: OnceLock<usize>,
    /// The digest of each entry, in one piece: a view reads those of all entries that it shows.
    digests: OnceLock<Vec<u64>>,
    search: OnceLock<Arc<Index>>,
    /// The search index of the previous generation, until this one has its own.
    earlier_search: Mutex<Option<Arc<Index>>>,
    /// The rows of the entries' vectors, until vectors are added.
    mapped: Mutex<Option<Arc<Mapped>>>,
    visible: Mutex<Vec<Arc<Visible>>>,
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
        let (known_names, longest_name, digests) = Default::default();
        let (search, earlier_search, mapped, visible) = Default::default();
        CachedCatalog {
            catalog,
            known_names,
            longest_name,
            digests,
            search,
            earlier_search,
            mapped,
            visible,
        }
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

    /// The index for searches.
    pub(super) fn search_index(&self) -> &Index {
        self.search.get_or_init(|| {
            let earlier = lock(&self.earlier_search).take();
            Index::new(self.entries(), earlier.as_deref().unwrap_or(&Index::default())).into()
        })
    }

    /// The rows of the vectors of all entries.
    pub(super) fn mapped(&self, vectors: &Vectors) -> Arc<Mapped> {
        let cached = lock(&self.mapped).clone();
        if let Some(mapped) = cached.filter(|mapped| mapped.version() == vectors.version()) {
            return mapped;
        }
        // Two readers may do this at once, with the same result.
        let digests = (0..).zip(self.entries()).filter(|(_, entry)| embedded::wanted(entry));
        let mapped = vectors.map(digests.map(|(at, entry)| (at, embedded::digest(entry))));
        let mapped = Arc::new(mapped);
        *lock(&self.mapped) = Some(mapped.clone());
        mapped
    }

    /// Takes over digests from the previous generation, and lets the search index be built from its
    /// index, which is faster if most documents are the same.
    pub fn follow(&self, before: &CachedCatalog) {
        if let Some(digests) = before.digests.get() {
            // If a reader was quicker, its digests are the same.
            let _ = self.digests.set(carried(self.entries(), before.entries(), digests));
        }
        // If nobody has searched since, the generation before may still hold an older index. It is
        // as good a start.
        let earlier = match before.search.get() {
            Some(index) => Some(index.clone()),
            None => lock(&before.earlier_search).clone(),
        };
        *lock(&self.earlier_search) = earlier;
    }

    /// The visible set of a profile, if it is cached.
    pub(super) fn cached(&self, profile: &Profile) -> Option<Arc<Visible>> {
        lock(&self.visible).iter().find(|visible| visible.rule.profile == *profile).cloned()
    }

    /// Caches a visible set in place of the oldest.
    pub(super) fn cache(&self, visible: Arc<Visible>) {
        let mut cached = lock(&self.visible);
        if cached.len() == MAX_PROFILES {
            // The oldest goes, not the least recently used: 64 profiles are rarely exceeded, and a
            // set is quickly built again.
            cached.remove(0);
        }
        cached.push(visible);
    }
}

/// The digests of entries, of which most are among the entries before and in the same order.
/// Comparing their addresses reads none of the others, which are scattered over memory.
fn carried(entries: &[Arc<Entry>], before: &[Arc<Entry>], digests: &[u64]) -> Vec<u64> {
    const MAX_GONE: usize = 8;
    let mut from = 0;
    let digest = |entry: &Arc<Entry>| {
        let near = from..before.len().min(from + MAX_GONE);
        match near.into_iter().find(|at| Arc::ptr_eq(&before[*at], entry)) {
            Some(at) => {
                from = at + 1;
                digests[at]
            }
            None => entry.digest(),
        }
    };
    entries.iter().map(digest).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
