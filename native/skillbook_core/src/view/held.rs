//! The tenants whose records are in memory.
//!
//! A book with many records has those of the tenants that somebody reads. The others are in its
//! database, and are fetched when a reader of their tenant comes. Records that are common to all
//! tenants, and those with a schedule, are always in memory.
//!
//! A fetch takes a while, and changes come meanwhile. So each change of a tenant that is fetched is
//! applied at once, and records that went are remembered: what is in memory, or went from it, is
//! newer than what was fetched. Only if the database became another one, nothing of the earlier one
//! counts.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::tenant::Tenant;

/// Records that are fetched from the database; see [`Parts::fetch`](super::Parts::fetch).
#[derive(Debug)]
pub struct Fetch {
    tenant: Option<Tenant>,
    /// The number of changes before.
    since: u64,
    /// The number of the database.
    database: u64,
}

/// The tenants whose records are in memory, and those that are fetched.
#[derive(Debug)]
pub(super) struct Held {
    /// So many records stay. With more, those of a tenant come and go with its readers.
    most: usize,
    /// All of them, also those that nobody knows yet.
    all: bool,
    tenants: FxHashSet<Tenant>,
    /// How often some went.
    times: u64,
    /// With the number of those that fetch them; without a tenant, some records of all.
    fetched: FxHashMap<Option<Tenant>, usize>,
    /// The records that went while something was fetched, each with the number of its last change.
    gone: FxHashMap<i64, u64>,
    /// Counts these changes.
    lost: u64,
    /// Counts how often the database became another one.
    database: u64,
}

impl Held {
    pub fn all() -> Held {
        let (tenants, times, fetched, gone, lost, database) = Default::default();
        Held { most: usize::MAX, all: true, tenants, times, fetched, gone, lost, database }
    }

    /// None yet, and so many when nobody reads them.
    pub fn at_most(most: usize) -> Held {
        Held { most, all: false, ..Held::all() }
    }

    /// None any more, since the database became another one.
    pub fn replace(&mut self) {
        let (times, database) = (self.times + 1, self.database + 1);
        *self = Held { times, database, ..Held::at_most(self.most) };
    }

    /// Whether a fetch is from the database as it is.
    pub fn is_current(&self, fetch: &Fetch) -> bool {
        fetch.database == self.database
    }

    /// Whether some of so many records may go now.
    pub fn may_go(&self, records: usize) -> bool {
        records > self.most && !self.is_fetching()
    }

    /// Whether everything that a profile of a tenant reads is there.
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.all || *tenant == Tenant::Common || self.tenants.contains(tenant)
    }

    /// Whether changes of a tenant's records are applied.
    pub fn takes(&self, tenant: &Tenant) -> bool {
        let fetched = |tenant: Option<Tenant>| self.fetched.contains_key(&tenant);
        self.has(tenant)
            || !self.fetched.is_empty()
                && (fetched(Some(tenant.clone())) || fetched(Some(Tenant::All)))
    }

    fn is_fetching(&self) -> bool {
        !self.fetched.is_empty()
    }

    pub fn begin(&mut self, tenant: Option<Tenant>) -> Fetch {
        *self.fetched.entry(tenant.clone()).or_default() += 1;
        Fetch { tenant, since: self.lost, database: self.database }
    }

    /// Ends a fetch. If it is whole, all records of its tenant are there.
    pub fn end(&mut self, fetch: &Fetch, is_whole: bool) {
        if !self.is_current(fetch) {
            return;
        }
        match fetch.tenant.as_ref().filter(|_| is_whole) {
            Some(Tenant::All) => self.all = true,
            Some(one) => drop(self.tenants.insert(one.clone())),
            None => {}
        }
        if let Some(count) = self.fetched.get_mut(&fetch.tenant) {
            *count -= 1;
            if *count == 0 {
                self.fetched.remove(&fetch.tenant);
            }
        }
        if self.fetched.is_empty() {
            self.gone = FxHashMap::default();
        }
    }

    /// Notes that a record went, or changed for a tenant whose records are not there.
    pub fn lose(&mut self, id: i64) {
        if self.is_fetching() {
            self.lost += 1;
            self.gone.insert(id, self.lost);
        }
    }

    /// Whether a record went after a fetch began.
    pub fn is_gone(&self, id: i64, fetch: &Fetch) -> bool {
        self.gone.get(&id).is_some_and(|number| *number > fetch.since)
    }

    /// How often records went, if those of a tenant are there.
    pub fn times(&self, tenant: &Tenant) -> Option<u64> {
        self.has(tenant).then_some(self.times)
    }

    /// Keeps those of these tenants alone.
    pub fn keep(&mut self, tenants: FxHashSet<Tenant>) {
        self.times += 1;
        let before = std::mem::replace(&mut self.tenants, tenants);
        if !std::mem::take(&mut self.all) {
            self.tenants.retain(|tenant| before.contains(tenant));
        }
    }
}
