//! A source whose documents are records of a database, added and removed one at a time.
//!
//! A folder is assembled as a whole, because the meaning of a file depends on its neighbours. A
//! record has no neighbours, so a change costs as much as the change, not as the source.
//!
//! Records are kept by [class](Class): those of one tenant with the same labels, which a profile
//! reads together or not at all. A catalog for a profile is made of the classes that it reads, and
//! a write concerns one of them.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::records::{Records, Written};
//! use skillbook_core::page::record::{Origin, Record};
//! use skillbook_core::source::{Source, SourceKind};
//! use skillbook_core::tenant::Tenant;
//!
//! let source = Source { root: "/store".into(), kind: SourceKind::Stored, ..Source::default() };
//! let source = Arc::new(source);
//! let mut records = Records::default();
//! let note = Record {
//!     id: 1,
//!     name: "weekly".into(),
//!     is_skill: false,
//!     title: String::new(),
//!     description: String::new(),
//!     content: "# Weekly plan".into(),
//!     tags: Vec::new(),
//!     tenant: Tenant::Common,
//!     labels: Vec::new(),
//!     include_in_prompt: true,
//!     proactive_for: Vec::new(),
//!     excluded_for: Vec::new(),
//!     origin: Origin::User,
//!     version: 1,
//!     schedule: None,
//!     timezone: None,
//!     writers: Vec::new(),
//! };
//! let changes = records.put([Written::new(&source, &note)], &[], 1);
//! assert_eq!(changes.len(), 1);
//! let again = records.put([Written::new(&source, &note)], &[], 2);
//! assert!(again.is_empty(), "nothing has changed");
//! assert_eq!(records.assembled(0..1).entries.len(), 1);
//! assert_eq!(records.classes()[0].changed, 1);
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::assemble::{self, Assembled};
use super::entry::Entry;
use super::finding::Finding;
use crate::page::document::Document;
use crate::page::record::Record;
use crate::source::Source;
use crate::tenant::Tenant;

/// So many empty classes may stay.
const FEW_CLASSES: usize = 1_000;

/// A source of records and their entries.
#[derive(Debug, Default)]
pub struct Records {
    /// By id.
    made: BTreeMap<i64, Assembly>,
    classes: Vec<Class>,
    /// By tenant, then by labels: both can be looked up by reference.
    numbers: FxHashMap<Tenant, FxHashMap<Vec<String>, u32>>,
    /// The ids of the entries of each name, in order.
    named: FxHashMap<Arc<str>, Vec<i64>>,
    /// The number of classes without records.
    empty: usize,
    /// See [`Records::renumbered`].
    renumbered: u64,
}

/// The records of one tenant with the same labels.
#[derive(Debug)]
pub struct Class {
    /// The tenant.
    pub tenant: Tenant,
    /// The labels.
    pub labels: Vec<String>,
    /// The number that the last change of one of them was given.
    pub changed: u64,
    /// The number of records.
    records: usize,
    /// The ids of the entries, in order, and the entries.
    ids: Vec<i64>,
    entries: Vec<Arc<Entry>>,
    /// By id. Most records have none.
    findings: BTreeMap<i64, Vec<Arc<Finding>>>,
}

/// A record's document and entry. No other record affects them.
#[derive(Debug)]
struct Assembly {
    document: Arc<Document>,
    entry: Option<Arc<Entry>>,
    class: u32,
}

/// A record that was read, which takes most of the time of a change and needs no other record.
#[derive(Debug)]
pub struct Written {
    id: i64,
    tenant: Tenant,
    document: Arc<Document>,
    entry: Option<Arc<Entry>>,
    findings: Vec<Arc<Finding>>,
}

impl Written {
    /// Reads a record of a source.
    pub fn new(source: &Arc<Source>, record: &Record) -> Written {
        let document = Arc::new(Document::stored(&source.root, record));
        let (entry, findings) = assemble::record(source, &document);
        Written { id: record.id, tenant: record.tenant.clone(), document, entry, findings }
    }
}

/// The change of a record: its entry before and after.
#[derive(Debug, Default)]
pub struct RecordChange {
    /// `None` for a new one.
    pub before: Option<Arc<Entry>>,
    /// `None` for one that is gone.
    pub after: Option<Arc<Entry>>,
}

impl Class {
    /// Takes in a record that is not there.
    fn put(&mut self, id: i64, entry: Option<&Arc<Entry>>, findings: Vec<Arc<Finding>>) {
        if let Some(entry) = entry {
            // New records have the highest ids, so this is mostly the end.
            let at = self.ids.partition_point(|other| *other < id);
            self.ids.insert(at, id);
            self.entries.insert(at, entry.clone());
        }
        if !findings.is_empty() {
            self.findings.insert(id, findings);
        }
    }

    fn remove(&mut self, id: i64) {
        if let Ok(at) = self.ids.binary_search(&id) {
            self.ids.remove(at);
            self.entries.remove(at);
        }
        self.findings.remove(&id);
    }
}

impl Records {
    /// All classes. They keep their numbers, also when their last record is gone, until
    /// [`Records::renumbered`] rises.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// How often the classes were numbered anew, because most of them were empty.
    pub fn renumbered(&self) -> u64 {
        self.renumbered
    }

    /// The numbers of the classes of a tenant's records.
    pub fn of_tenant(&self, tenant: &Tenant) -> impl Iterator<Item = u32> + '_ {
        self.numbers.get(tenant).into_iter().flat_map(|numbers| numbers.values().copied())
    }

    /// The entries of classes, by the ids of their records: of two of one name the older comes
    /// first, and wins.
    pub fn assembled(&self, classes: impl Iterator<Item = u32>) -> Assembled {
        let mut out = Assembled::default();
        let mut ids = Vec::new();
        let mut is_sorted = true;
        for class in classes.map(|class| &self.classes[class as usize]) {
            let after = ids.last() <= class.ids.first();
            is_sorted &= after || class.ids.is_empty();
            ids.extend_from_slice(&class.ids);
            out.entries.extend_from_slice(&class.entries);
            out.findings.extend(class.findings.values().flatten().cloned());
        }
        if !is_sorted {
            let mut order: Vec<(i64, u32)> = ids.into_iter().zip(0..).collect();
            order.sort_unstable();
            let sorted = order.iter().map(|(_, at)| out.entries[*at as usize].clone());
            out.entries = sorted.collect();
        }
        out
    }

    /// The ids of the records, in order.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.made.keys().copied()
    }

    /// The entries of a name, the oldest first.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let ids = self.named.get(name).into_iter().flatten();
        ids.filter_map(|id| self.made.get(id)?.entry.as_ref())
    }

    /// All entries, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.made.values().filter_map(|made| made.entry.as_ref())
    }

    /// Adds or replaces records, and removes others by id. The classes that differ get the number.
    pub fn put(
        &mut self,
        records: impl IntoIterator<Item = Written>,
        removed: &[i64],
        number: u64,
    ) -> Vec<RecordChange> {
        let mut changes = Vec::new();
        for id in removed {
            if let Some(made) = self.made.remove(id) {
                self.take_out(*id, &made, number);
                changes.push(RecordChange { before: made.entry, after: None });
            }
        }
        for Written { id, tenant, document, entry, findings } in records {
            // The same version of a record may be handed over more than once.
            if self.made.get(&id).is_some_and(|known| known.document.is_same(&document)) {
                continue;
            }
            let known = self.made.remove(&id);
            // One that no glob selects is only in its findings.
            let labelled = entry.as_ref().or_else(|| findings.first()?.about.first());
            let labels = labelled.map_or(&[][..], |entry| &entry.labels);
            let class = self.class(&tenant, labels);
            if let Some(known) = &known {
                self.take_out(id, known, number);
            }
            let own = &mut self.classes[class as usize];
            self.empty -= usize::from(own.records == 0);
            own.records += 1;
            own.changed = number;
            own.put(id, entry.as_ref(), findings);
            if let Some(entry) = &entry {
                let ids = self.named.entry(entry.name.clone()).or_default();
                if let Err(at) = ids.binary_search(&id) {
                    ids.insert(at, id);
                }
            }
            changes.push(RecordChange {
                before: known.and_then(|known| known.entry),
                after: entry.clone(),
            });
            self.made.insert(id, Assembly { document, entry, class });
        }
        self.drop_empty();
        changes
    }

    /// Drops the classes without records, if they are the most.
    fn drop_empty(&mut self) {
        if self.empty <= FEW_CLASSES || 2 * self.empty <= self.classes.len() {
            return;
        }
        self.numbers.clear();
        let mut moved = Vec::with_capacity(self.classes.len());
        let mut left = 0;
        for class in &self.classes {
            moved.push(left);
            if class.records > 0 {
                let numbers = self.numbers.entry(class.tenant.clone()).or_default();
                numbers.insert(class.labels.clone(), left);
                left += 1;
            }
        }
        self.classes.retain(|class| class.records > 0);
        self.empty = 0;
        for made in self.made.values_mut() {
            made.class = moved[made.class as usize];
        }
        self.renumbered += 1;
    }

    fn take_out(&mut self, id: i64, made: &Assembly, number: u64) {
        let class = &mut self.classes[made.class as usize];
        class.changed = number;
        class.records -= 1;
        self.empty += usize::from(class.records == 0);
        class.remove(id);
        if let Some(entry) = &made.entry {
            self.unname(id, entry);
        }
    }

    fn unname(&mut self, id: i64, entry: &Entry) {
        if let Some(ids) = self.named.get_mut(&entry.name) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.named.remove(&entry.name);
            }
        }
    }

    fn class(&mut self, tenant: &Tenant, labels: &[String]) -> u32 {
        let known = self.numbers.get(tenant).and_then(|numbers| numbers.get(labels));
        if let Some(number) = known {
            return *number;
        }
        let number = self.classes.len() as u32;
        self.numbers.entry(tenant.clone()).or_default().insert(labels.to_vec(), number);
        let (changed, records, ids, entries, findings) = Default::default();
        let (tenant, labels) = (tenant.clone(), labels.to_vec());
        self.classes.push(Class { tenant, labels, changed, records, ids, entries, findings });
        self.empty += 1;
        number
    }
}
