//! A catalog with all that is computed from it for its readers.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::profile::Profile;
use super::spelling::KnownNames;
use super::visible::Visible;
use crate::catalog::Catalog;
use crate::search::index::Index;

/// How many profiles' sets are kept.
const MAX_PROFILES: usize = 64;

/// A catalog with what its views share, each part of which is computed when it is first needed.
#[derive(Debug)]
pub struct CachedCatalog {
    catalog: Catalog,
    known_names: OnceLock<KnownNames>,
    search: OnceLock<Arc<Index>>,
    /// That of a generation before, until this one has its own.
    earlier_search: Mutex<Option<Arc<Index>>>,
    visible: Mutex<Vec<Arc<Visible>>>,
}

impl Deref for CachedCatalog {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        &self.catalog
    }
}

impl CachedCatalog {
    /// Nothing is computed yet.
    pub fn new(catalog: Catalog) -> CachedCatalog {
        let (known_names, search, earlier_search, visible) = Default::default();
        CachedCatalog { catalog, known_names, search, earlier_search, visible }
    }

    /// The names, to look for those close to another one.
    pub(super) fn known_names(&self) -> &KnownNames {
        self.known_names.get_or_init(|| KnownNames::new(&self.catalog))
    }

    /// The index for searches.
    pub(super) fn search_index(&self) -> &Index {
        self.search.get_or_init(|| {
            let earlier = lock(&self.earlier_search).take();
            Index::new(self.entries(), earlier.as_deref().unwrap_or(&Index::default())).into()
        })
    }

    /// Lets the index be made from that of the generation before, which is faster where most
    /// documents are the same.
    pub fn search_from(&self, before: &CachedCatalog) {
        let earlier = match before.search.get() {
            Some(index) => Some(index.clone()),
            None => lock(&before.earlier_search).clone(),
        };
        *lock(&self.earlier_search) = earlier;
    }

    /// What a profile may see, if it is kept.
    pub(super) fn cached(&self, profile: &Profile) -> Option<Arc<Visible>> {
        lock(&self.visible).iter().find(|visible| visible.rule.profile == *profile).cloned()
    }

    /// Keeps what a profile may see, in the place of the oldest.
    pub(super) fn cache(&self, visible: Arc<Visible>) {
        let mut kept = lock(&self.visible);
        if kept.len() == MAX_PROFILES {
            kept.remove(0);
        }
        kept.push(visible);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
