//! The catalogs of a book's readers, each made of the parts that its readers may see.
//!
//! The base has the entries of files and code, common to all readers. Records of the store
//! belong to [classes](crate::catalog::records::Class), and a profile reads some of them. Its
//! catalog is the base with the records of these classes. So a write to one tenant's store leaves
//! the catalogs of others as they are, and what a reader costs depends on what it sees.
//!
//! A catalog is made when a reader comes and its parts have changed, from the one before. Readers
//! of the same classes share it. Those that were not read for a while are forgotten, and with them
//! the entries that no other has: their records stay, [packed](crate::catalog::block), or are
//! fetched from the database again when a reader of their tenant comes.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::page::record::{Origin, Record};
//! use skillbook_core::source::{Source, SourceKind};
//! use skillbook_core::tenant::Tenant;
//! use skillbook_core::view::{Parts, Profile};
//!
//! let source = Source { root: "/store".into(), kind: SourceKind::Stored, ..Source::default() };
//! let parts = Parts::new(Some(Arc::new(source)));
//! # let note = |id, tenant: &str| Record {
//! #     id,
//! #     name: "weekly".into(),
//! #     is_skill: false,
//! #     title: String::new(),
//! #     description: String::new(),
//! #     content: "# Weekly plan".into(),
//! #     tags: Vec::new(),
//! #     tenant: Tenant::One(tenant.into()),
//! #     labels: Vec::new(),
//! #     include_in_prompt: true,
//! #     proactive_for: Vec::new(),
//! #     excluded_for: Vec::new(),
//! #     origin: Origin::User,
//! #     version: 1,
//! #     schedule: None,
//! #     timezone: None,
//! #     writers: Vec::new(),
//! # };
//! // Both tenants have a record `weekly`.
//! let notes = [note(1, "acme"), note(2, "globex")];
//! parts.put(notes.iter().map(|note| parts.read(note)).collect(), &[]);
//! let acme = Profile { tenant: Tenant::One("acme".into()), ..Profile::unrestricted() };
//! let view = parts.view(&acme)?;
//! assert_eq!(view.catalog().entries().len(), 1);
//!
//! parts.put(Vec::new(), &[(2, "weekly".into())]);
//! assert!(parts.view(&acme)?.is_same(&view), "nothing has changed for acme");
//! # Ok::<(), skillbook_core::glob::BadGlob>(())
//! ```

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};

use super::cached::{lock, CachedCatalog};
use super::held::{Fetch, Held};
use super::profile::{Profile, Rule};
use super::recent::Recent;
use super::texts::Texts;
use super::view::View;
use crate::catalog::assemble::Assembled;
use crate::catalog::block::{Block, Opened, Opener};
use crate::catalog::changes::Changes;
use crate::catalog::entry::Entry;
use crate::catalog::handlers::HandlerProblems;
use crate::catalog::records::{self, Loaded, RecordChange, Records, Written};
use crate::catalog::scheduled::scheduled;
use crate::catalog::{called, Catalog};
use crate::glob::BadGlob;
use crate::page::record::Record;
use crate::source::Source;
use crate::tenant::Tenant;

/// The profiles whose classes are known, and the catalogs that are kept, at most.
const MAX_PROFILES: usize = 16_384;
const MAX_CATALOGS: usize = 8_192;
/// The bytes of the catalogs, without their entries.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// The bytes that a catalog takes for each of its entries, and at least.
const ENTRY_BYTES: usize = 96;
const CATALOG_BYTES: usize = 2_048;
/// After so many changes a catalog that has not been read since is dropped, and with it the entries
/// that only it still has.
const STALE: u64 = 1_024;
/// The bytes of the open entries of records, if nobody sets a limit.
const MAX_OPEN: usize = 128 * 1024 * 1024;
/// The bytes of records that were written lately and are not packed. In a load, each of thousands
/// of tenants has its next records soon.
const LOOSE: usize = 4 * 1024 * 1024;
const LOADING: usize = 32 * 1024 * 1024;
/// So many records at once are a load, and their catalogs are looked at one after the other.
const MANY: usize = 1_000;

/// The catalogs of a book's readers.
#[derive(Debug)]
pub struct Parts {
    /// That of the records.
    source: Arc<Source>,
    state: RwLock<State>,
    /// The number of the state, to see without a lock that nothing has changed.
    number: AtomicU64,
    /// The number of the generation.
    generation: AtomicU64,
    /// The number of entries.
    size: AtomicUsize,
    readers: Mutex<Recent<Profile, Reader>>,
    made: Mutex<Recent<Own, Made>>,
    opener: Opener,
    /// The bytes that open entries may take.
    max_open: AtomicUsize,
    /// Whether somebody reads records whose problems were not asked for.
    news: AtomicBool,
}

/// All that catalogs are made from.
#[derive(Debug)]
struct State {
    /// Counts the changes, and how often the records that are in memory became others.
    number: u64,
    held: Held,
    base: Arc<CachedCatalog>,
    /// The number of the last change of the base.
    changed: u64,
    /// The sources in their order; `None` in the place of the records.
    sources: Arc<[Option<Assembled>]>,
    records: Records,
    /// The names of the base's entries by what they are called, made when a record is written.
    called: OnceLock<FxHashMap<String, Vec<Arc<str>>>>,
}

/// The classes of records in a catalog, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Own {
    All,
    These(Arc<[u32]>),
}

/// The classes that a profile reads, among those that there were.
#[derive(Debug, Clone)]
struct Reader {
    own: Own,
    known: usize,
    renumbered: u64,
    /// The number of the last state for which these and their catalog were found to be right, and
    /// of the state that the catalog was made from.
    right: u64,
    from: u64,
}

/// A catalog, the number of the state that it was made from, and of the last one that somebody
/// read it in.
#[derive(Debug, Clone)]
struct Made {
    catalog: Arc<CachedCatalog>,
    from: u64,
    read: u64,
    /// Keeps the entries of the records, for the next catalog too.
    _opened: Arc<[Arc<Opened>]>,
}

/// The names that differ between two generations, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The number of the generation.
    pub number: u64,
    /// Names that had no entry.
    pub added: Vec<Arc<str>>,
    /// Names of which an entry differs.
    pub changed: Vec<Arc<str>>,
    /// Names that have no entry any more.
    pub removed: Vec<Arc<str>>,
}

impl State {
    fn new(sources: Vec<Option<Assembled>>, opener: Opener) -> State {
        let base = Arc::new(CachedCatalog::new(Catalog::build(0, Vec::new())));
        let (number, changed, called) = Default::default();
        let (held, records) = (Held::all(), Records::new(opener));
        State { number, held, base, changed, sources: sources.into(), records, called }
    }

    /// The classes that a profile reads. Of those that were known before, no rule is asked again.
    fn read_by(&self, profile: &Profile, before: Option<Reader>) -> Result<Reader, BadGlob> {
        let (known, renumbered) = (self.records.classes().len(), self.records.renumbered());
        let number = self.number;
        let reader = |own| Reader { own, known, renumbered, right: number, from: number };
        if profile.tenant == Tenant::All && profile.grants.is_none() {
            return Ok(reader(Own::All));
        }
        let rule = Rule::new(profile)?;
        let reads = |class: &u32| {
            let class = &self.records.classes()[*class as usize];
            rule.admits_class(&class.tenant, &class.labels)
        };
        let own: Vec<u32> = match before {
            // New classes have the highest numbers.
            Some(Reader { own: Own::These(own), known: before, renumbered: same, .. })
                if same == renumbered =>
            {
                let new = (before as u32..known as u32).filter(reads);
                own.iter().copied().chain(new).collect()
            }
            _ if profile.tenant == Tenant::All => (0..known as u32).filter(reads).collect(),
            // The classes of other tenants need not be looked at.
            _ => {
                let tenants = BTreeSet::from([None, profile.tenant.name()]);
                let tenants = tenants.into_iter().map(|name| name.map(str::to_owned).into());
                let classes = tenants.flat_map(|tenant| self.records.of_tenant(&tenant));
                let own: BTreeSet<u32> = classes.filter(reads).collect();
                own.into_iter().collect()
            }
        };
        Ok(reader(Own::These(own.into())))
    }

    /// The classes of the tenants that a tenant reads, with any labels.
    fn read_by_tenant(&self, seer: &Tenant) -> Own {
        if *seer == Tenant::All {
            return Own::All;
        }
        let classes = self.records.classes();
        let own = (0..classes.len() as u32).filter(|at| seer.reads(&classes[*at as usize].tenant));
        Own::These(own.collect())
    }

    /// Whether nothing of a catalog has changed since this number.
    fn is_right(&self, classes: &Own, from: u64) -> bool {
        let unchanged = |at: &u32| self.records.classes()[*at as usize].changed <= from;
        match classes {
            Own::All => self.number == from,
            Own::These(own) => self.changed <= from && own.iter().all(unchanged),
        }
    }

    /// The records of some classes.
    fn records(&self, classes: &Own) -> Vec<Arc<Block>> {
        match classes {
            Own::All => self.records.blocks(0..self.records.classes().len() as u32),
            Own::These(own) => self.records.blocks(own.iter().copied()),
        }
    }

    /// Whether the problems of a class among some were not asked for; see [`Parts::news`].
    fn is_news(&self, classes: &Own) -> bool {
        let is_news = |at: u32| self.records.classes()[at as usize].is_news(self.changed);
        match classes {
            Own::All => true,
            Own::These(own) => own.iter().any(|at| is_news(*at)),
        }
    }

    /// The names whose entries a change of a record concerns: its own, and those of the base with
    /// its name, its title or an alias of it.
    fn concerned(&self, change: &RecordChange, names: &mut FxHashSet<Arc<str>>) {
        let of_base = self.called.get_or_init(|| {
            let mut names: FxHashMap<String, Vec<Arc<str>>> = FxHashMap::default();
            for entry in self.base.entries() {
                for text in called(entry) {
                    names.entry(text.to_owned()).or_default().push(entry.name.clone());
                }
            }
            names
        });
        for entry in change.before.iter().chain(&change.after) {
            names.insert(entry.name.clone());
            let aliases = entry.fields().aliases.iter().map(String::as_str);
            for text in called(entry).chain(aliases) {
                names.extend(of_base.get(text).into_iter().flatten().cloned());
            }
        }
    }

    /// Whether a record that was written is kept. If not, its name is added to those of records
    /// that nobody here sees.
    fn takes(&mut self, written: &Written, unseen: &mut FxHashSet<Arc<str>>) -> bool {
        let is_scheduled = |entry: &Arc<Entry>| entry.fields().schedule.is_some();
        if self.held.takes(written.tenant())
            || self.records.has(written.id())
            || written.entry().is_some_and(is_scheduled)
        {
            return true;
        }
        unseen.extend(written.entry().map(|entry| entry.name.clone()));
        self.held.lose(written.id());
        false
    }

    /// Whether an entry has this name, for anybody.
    fn has(&self, name: &str) -> bool {
        self.base.named(name).next().is_some() || self.records.named(name).next().is_some()
    }
}

impl Parts {
    /// Without any entry. The source is that of the records, if there are some.
    pub fn new(stored: Option<Arc<Source>>) -> Parts {
        let sources = stored.iter().map(|_| None).collect();
        let source = stored.unwrap_or_default();
        let opener = Opener::new(source.clone());
        let readers = Mutex::new(Recent::new(MAX_PROFILES, usize::MAX));
        let made = Mutex::new(Recent::new(MAX_CATALOGS, MAX_BYTES));
        let state = RwLock::new(State::new(sources, opener.clone()));
        let (number, generation, size) = (0.into(), 0.into(), 0.into());
        let (max_open, news) = (MAX_OPEN.into(), AtomicBool::new(false));
        Parts { source, state, number, generation, size, readers, made, opener, max_open, news }
    }

    /// The number of the current generation, which counts the changes.
    pub fn number(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The problems of handlers.
    pub fn handlers(&self) -> Arc<HandlerProblems> {
        self.state().base.handlers().clone()
    }

    /// Replaces the base. The sources are in their order, with `None` in the place of the records.
    pub fn publish(
        &self,
        sources: Vec<Option<Assembled>>,
        handlers: Arc<HandlerProblems>,
    ) -> Change {
        let before = self.state().base.clone();
        let none = Assembled::default();
        let assembled = sources.iter().map(|source| source.as_ref().unwrap_or(&none));
        let next = self.number.load(Ordering::Acquire) + 1;
        let catalog = Catalog::build_after(Some(&before), next, assembled);
        let base = Arc::new(CachedCatalog::new(catalog.with_handlers(handlers)));
        base.follow(&before);
        let mut state = self.state_mut();
        let number = state.number + 1;
        state.base = base.clone();
        state.changed = number;
        state.sources = sources.into();
        state.called = OnceLock::new();
        self.set(&mut state, number);
        let number = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        drop(state);
        // Nobody was there to see the first generation come.
        if number == 1 {
            return Change { number, ..Change::default() };
        }
        let changes = Changes::between_generations(&before, &base);
        let names = |entries: &[&Arc<Entry>]| entries.iter().map(|e| e.name.clone()).collect();
        let (added, changed) = (names(&changes.added), names(&changes.changed));
        Change { number, added, changed, removed: names(&changes.removed) }
    }

    /// Takes in a record that is fetched. Several threads may do so at once.
    pub fn take_in(&self, record: &Record) -> Loaded {
        Loaded::new(&self.source, record)
    }

    /// Begins to fetch the records of a tenant, or some of all tenants.
    pub fn fetch(&self, tenant: Option<Tenant>) -> Fetch {
        self.state_mut().held.begin(tenant)
    }

    /// Adds records that were fetched, which is no change. Returns blocks that should be packed.
    pub fn fetched(&self, fetch: &Fetch, loaded: Vec<Loaded>) -> Vec<Arc<Block>> {
        let mut state = self.state_mut();
        if !state.held.is_current(fetch) {
            return Vec::new();
        }
        let number = state.number + 1;
        let loose = if loaded.len() < MANY { LOOSE } else { LOADING };
        let State { records, held, .. } = &mut *state;
        records.add(loaded.into_iter().filter(|loaded| !held.is_gone(loaded.id(), fetch)), number);
        let settled = records.settle(loose);
        self.set(&mut state, number);
        settled
    }

    /// Ends what [`Parts::fetch`] began. If it is whole, all records of the tenant are there.
    pub fn end(&self, fetch: &Fetch, is_whole: bool) {
        self.state_mut().held.end(fetch, is_whole);
    }

    /// Whether all records that a profile of a tenant reads are there, so that its view has them.
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.state().held.has(tenant)
    }

    /// The records that differ from those of their ids, or are new.
    pub fn differing(&self, records: Vec<Record>) -> Vec<Record> {
        self.state().records.differing(records)
    }

    /// Reads a record, to be put. Several threads may do so at once.
    pub fn read(&self, record: &Record) -> Written {
        Written::new(&self.source, record)
    }

    /// Adds or replaces records, and removes others by id; their names are those that they had.
    /// There is no new generation if nothing differs.
    ///
    /// Of a tenant whose records are not there, they are not kept either. Their names are among
    /// those that changed.
    pub fn put(&self, records: Vec<Written>, removed: &[(i64, Arc<str>)]) -> Change {
        self.put_in(self.state_mut(), records, removed)
    }

    /// The same after the database became another one, of which `there` has the ids of all records
    /// that are common to all tenants or have a schedule. The records of tenants are forgotten.
    pub fn replace(&self, records: Vec<Written>, there: &FxHashSet<i64>) -> Change {
        let mut state = self.state_mut();
        let number = state.number + 1;
        state.held.replace();
        state.records.forget_tenants(number);
        self.set(&mut state, number);
        let removed = state.records.ids().filter(|id| !there.contains(id));
        let removed: Vec<_> = removed.map(|id| (id, Arc::from(""))).collect();
        self.put_in(state, records, &removed)
    }

    fn put_in(
        &self,
        mut state: RwLockWriteGuard<'_, State>,
        records: Vec<Written>,
        removed: &[(i64, Arc<str>)],
    ) -> Change {
        let number = state.number + 1;
        let loose = if records.len() < MANY { LOOSE } else { LOADING };
        let mut unseen = FxHashSet::default();
        let records: Vec<_> =
            records.into_iter().filter(|written| state.takes(written, &mut unseen)).collect();
        for (id, name) in removed {
            if !state.records.has(*id) && !state.held.has(&Tenant::All) && !name.is_empty() {
                unseen.insert(name.clone());
            }
            state.held.lose(*id);
        }
        let removed: Vec<i64> = removed.iter().map(|(id, _)| *id).collect();
        let changes = state.records.put(records, &removed, number);
        let settled = state.records.settle(loose);
        if changes.is_empty() && unseen.is_empty() {
            return Change { number: self.number(), ..Change::default() };
        }
        self.news.store(true, Ordering::Relaxed);
        let mut names = FxHashSet::default();
        changes.iter().for_each(|change| state.concerned(change, &mut names));
        // A name had an entry before if an entry of it went, or one has it that did not come now.
        let gone: FxHashSet<&Arc<str>> =
            changes.iter().filter_map(|change| Some(&change.before.as_ref()?.name)).collect();
        let come = changes.iter().filter(|change| change.after.is_some());
        let come: FxHashSet<i64> = come.map(|change| change.id).collect();
        let mut change = Change::default();
        for name in names {
            unseen.remove(&name);
            let mut records = state.records.named(&name);
            let before = gone.contains(&name)
                || state.base.named(&name).next().is_some()
                || records.any(|id| !come.contains(&id));
            match (before, state.has(&name)) {
                (false, true) => change.added.push(name),
                (true, false) => change.removed.push(name),
                (false, false) => {}
                (true, true) => change.changed.push(name),
            }
        }
        change.changed.extend(unseen);
        self.set(&mut state, number);
        change.number = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        drop(state);
        settled.iter().for_each(|block| block.pack());
        for names in [&mut change.added, &mut change.changed, &mut change.removed] {
            names.sort_unstable();
        }
        if number.is_multiple_of(STALE) {
            let gone = lock(&self.made).retain(|made| made.read + STALE > number);
            drop(gone);
        }
        change
    }

    /// Limits the bytes of the open entries of records. Those that a view has count, and stay.
    pub fn limit(&self, bytes: usize) {
        self.max_open.store(bytes, Ordering::Relaxed);
    }

    /// The bytes of the open entries of records, nearly.
    pub fn open_bytes(&self) -> usize {
        self.opener.bytes()
    }

    /// Forgets the catalogs that were not read since this was called last, and packs all records.
    pub fn rest(&self) {
        let gone = lock(&self.made).rest();
        drop(gone);
        let settled = self.state_mut().records.settle(0);
        settled.iter().for_each(|block| block.pack());
    }

    /// Forgets the records of tenants whose catalogs are not kept, if there are many. They are
    /// fetched again when a reader comes.
    pub fn forget(&self) {
        let read: Vec<Own> = lock(&self.made).keys().cloned().collect();
        if read.contains(&Own::All) {
            return;
        }
        let mut state = self.state_mut();
        if !state.held.may_go(state.records.len()) {
            return;
        }
        let classes = state.records.classes();
        let read = read.iter().flat_map(|own| match own {
            Own::All => &[],
            Own::These(own) => &**own,
        });
        // The number of a class may be older than the last time they were numbered.
        let read = read.filter_map(|at| Some(classes.get(*at as usize)?.tenant.clone()));
        let read: FxHashSet<Tenant> = read.filter(|tenant| *tenant != Tenant::Common).collect();
        let tenants = state.records.tenants().filter(|tenant| !read.contains(*tenant));
        let tenants: Vec<Tenant> = tenants.filter(|one| state.held.has(one)).cloned().collect();
        state.held.keep(read);
        let number = state.number + 1;
        self.set(&mut state, number);
        drop(state);
        // From here on a reader of one of them has it fetched.
        for tenant in tenants.iter().filter(|tenant| **tenant != Tenant::Common) {
            let left = self.state().records.left(tenant);
            for left in left {
                let forgotten = left.read(&self.opener);
                let mut state = self.state_mut();
                if !state.held.takes(tenant) {
                    let number = state.number + 1;
                    state.records.forget(&forgotten, number);
                    self.set(&mut state, number);
                }
            }
        }
    }

    /// Says that the records of tenants are fetched, and that those that nobody reads go when there
    /// are more than so many. Records that are common to all tenants, and those with a schedule,
    /// stay.
    pub fn hold(&self, most: usize) {
        self.state_mut().held = Held::at_most(most);
    }

    /// The number of entries of files and code, and of records that are there, for anybody.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// The ids of the records, in order.
    pub fn record_ids(&self) -> Vec<i64> {
        self.state().records.ids().collect()
    }

    /// The view of a profile, if all records of its tenant [are there](Parts::has).
    pub fn view_if_there(&self, profile: &Profile) -> Option<Result<View, BadGlob>> {
        let times = || self.state().held.times(&profile.tenant);
        let before = times()?;
        let view = self.view(profile);
        // They may have gone while it was made, and come back.
        (times() == Some(before)).then_some(view)
    }

    /// The view of a profile.
    pub fn view(&self, profile: &Profile) -> Result<View, BadGlob> {
        if let Some(view) = self.cached(profile) {
            return Ok(view);
        }
        let before = lock(&self.readers).get(profile).cloned();
        let reader = self.state().read_by(profile, before)?;
        let made = self.made(reader.own.clone());
        let view = View::new(made.catalog, profile);
        // Only now: another thread must not find the reader with an older catalog.
        lock(&self.readers).put(profile.clone(), Reader { from: made.from, ..reader }, 0);
        view
    }

    /// The view of a profile, if it is cached and still right.
    pub fn cached(&self, profile: &Profile) -> Option<View> {
        let reader = lock(&self.readers).get(profile).cloned()?;
        let made = lock(&self.made).get(&reader.own).cloned()?;
        if reader.right != self.number.load(Ordering::Acquire) || made.from < reader.from {
            // A writer is quick, but this must not wait at all.
            let state = self.state.try_read().ok()?;
            let records = &state.records;
            if (reader.known, reader.renumbered) != (records.classes().len(), records.renumbered())
                || !state.held.has(&profile.tenant)
                || !state.is_right(&reader.own, made.from)
            {
                return None;
            }
            let (right, from) = (state.number, made.from);
            drop(state);
            self.keep(reader.own.clone(), Made { read: right, ..made.clone() });
            lock(&self.readers).put(profile.clone(), Reader { right, from, ..reader }, 0);
        }
        View::cached(&made.catalog, profile)
    }

    /// The catalog of everything, for one look: it is not kept, and neither are its entries.
    pub fn once(&self) -> Arc<CachedCatalog> {
        let before = lock(&self.made).get(&Own::All).cloned();
        self.make(&Own::All, before).catalog
    }

    /// The catalog of everything.
    pub fn whole(&self) -> Arc<CachedCatalog> {
        self.made(Own::All).catalog
    }

    /// The catalog of everything that belongs to the tenants that a tenant reads.
    pub fn of_tenant(&self, seer: &Tenant) -> Arc<CachedCatalog> {
        let classes = self.state().read_by_tenant(seer);
        self.made(classes).catalog
    }

    /// The catalogs of the classes whose problems were not asked for since they changed, each with
    /// the base; with `all` the base too, and classes that were asked for. Only those that somebody
    /// reads are among them, since the others would be opened for it. It is some of them, from a
    /// class on, and the class to go on with. Nobody reads them for long, so they are not kept.
    pub fn news(&self, all: bool, from: u32) -> (Vec<Arc<CachedCatalog>>, Option<u32>) {
        if !self.news.swap(false, Ordering::Relaxed) && !all && from == 0 {
            return (Vec::new(), None);
        }
        let state = self.state();
        let mut news: Vec<Own> = Vec::new();
        if all && from == 0 {
            news.push(Own::These([].into()));
        }
        let (mut records, mut next) = (0, None);
        for (class, at) in state.records.classes().iter().zip(0..).skip(from as usize) {
            if records >= MANY {
                next = Some(at);
                break;
            }
            if (all || class.is_news(state.changed)) && class.is_open() {
                class.look(state.number);
                news.push(Own::These([at].into()));
                records += class.count();
            }
        }
        drop(state);
        let before = |own: &Own| lock(&self.made).get(own).cloned();
        (news.iter().map(|own| self.make(own, before(own)).catalog).collect(), next)
    }

    /// The texts of all entries in memory that an embedding model reads.
    pub fn texts(&self) -> Texts {
        let state = self.state();
        let (base, blocks) = (state.base.clone(), state.records(&Own::All));
        drop(state);
        Texts { base, blocks, opener: self.opener.clone() }
    }

    /// The entries with a schedule, or those of one name. Every record with a schedule is among
    /// them: each may be the one that some profile uses under its name. Of the files it is only the
    /// entries that are used where no record is seen.
    pub fn scheduled(&self, name: Option<&str>) -> Vec<Arc<Entry>> {
        let state = self.state();
        let base = state.base.clone();
        let records = state.records.scheduled(name);
        drop(state);
        // Of all blocks that have one, each is opened once.
        let open = |(_, block): &(i64, Arc<Block>)| block.open(&self.opener);
        let _opened: Vec<_> = records.iter().filter(|_| name.is_none()).map(open).collect();
        let records = records.iter().filter_map(|(id, block)| block.entry(*id, &self.opener));
        let records = records.filter(|entry| name.is_none_or(|name| *entry.name == *name));
        let files = scheduled(&base, name).into_iter().map(|id| base.entry(id).clone());
        let mut all: Vec<_> = files.chain(records).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The catalog of some classes, made if it is not there or not right.
    fn made(&self, own: Own) -> Made {
        let before = lock(&self.made).get(&own).cloned();
        let made = self.make(&own, before);
        self.keep(own, made.clone());
        self.shrink();
        made
    }

    /// The catalog of some classes, from the one before.
    fn make(&self, own: &Own, before: Option<Made>) -> Made {
        let state = self.state();
        let number = state.number;
        match before {
            Some(made) if state.is_right(own, made.from) => Made { read: number, ..made },
            _ if own.are_none() => {
                let (catalog, from) = (state.base.clone(), state.changed);
                Made { catalog, from, read: number, _opened: Arc::new([]) }
            }
            before => {
                let (base, sources) = (state.base.clone(), state.sources.clone());
                let (blocks, is_news) = (state.records(own), state.is_news(own));
                drop(state);
                let (records, opened) = records::read(&blocks, &self.opener);
                let before = before.map_or(base.clone(), |made| made.catalog);
                let sources = sources.iter().map(|source| source.as_ref().unwrap_or(&records));
                let catalog = Catalog::build_after(Some(&before), number, sources);
                let catalog = catalog.with_handlers(base.handlers().clone());
                let catalog = Arc::new(CachedCatalog::over(base, catalog));
                catalog.follow(&before);
                if is_news {
                    self.news.store(true, Ordering::Relaxed);
                }
                Made { catalog, from: number, read: number, _opened: opened.into() }
            }
        }
    }

    /// Keeps a catalog, unless a newer one is there: two threads may make one at once.
    fn keep(&self, own: Own, made: Made) {
        let mut kept = lock(&self.made);
        if kept.get(&own).is_none_or(|other| other.from <= made.from) {
            let bytes = made.bytes();
            let gone = kept.put(own, made, bytes);
            drop(kept);
            drop(gone);
        }
    }

    /// Forgets catalogs until the open entries have room.
    fn shrink(&self) {
        while self.opener.bytes() > self.max_open.load(Ordering::Relaxed) {
            let mut kept = lock(&self.made);
            if kept.len() <= 1 {
                break;
            }
            let gone = kept.forget();
            drop(kept);
            drop(gone);
        }
    }

    fn set(&self, state: &mut State, number: u64) {
        state.number = number;
        self.size.store(state.base.entries().len() + state.records.len(), Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Own {
    fn are_none(&self) -> bool {
        matches!(self, Own::These(own) if own.is_empty())
    }
}

impl Made {
    fn bytes(&self) -> usize {
        CATALOG_BYTES + ENTRY_BYTES * self.catalog.entries().len()
    }
}
