//! A source whose documents are records of a database, added and removed one at a time.
//!
//! A folder is assembled as a whole, because the meaning of a file depends on its neighbours. A
//! record has no neighbours, so a change costs as much as the change, not as the source.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::records::Records;
//! use skillbook_core::page::record::{Origin, Record};
//! use skillbook_core::source::{Source, SourceKind};
//! use skillbook_core::tenant::Tenant;
//!
//! let source = Source { root: "/store".into(), kind: SourceKind::Stored, ..Source::default() };
//! let mut records = Records::new(Arc::new(source));
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
//! assert!(records.put([note.clone()], &[]));
//! assert!(!records.put([note], &[]), "nothing has changed");
//! assert_eq!(records.assembled().entries.len(), 1);
//! ```

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use super::assemble::{self, Assembled};
use super::entry::Entry;
use super::finding::Finding;
use crate::page::document::Document;
use crate::page::record::Record;
use crate::source::Source;

/// A source of records and their entries.
#[derive(Debug)]
pub struct Records {
    source: Arc<Source>,
    /// By id.
    made: BTreeMap<i64, Assembly>,
    assembled: Assembled,
}

/// A record's document, entry and findings. No other record affects them.
#[derive(Debug)]
struct Assembly {
    document: Arc<Document>,
    entry: Option<Arc<Entry>>,
    findings: Vec<Arc<Finding>>,
}

/// The entries to insert, and the positions to clear.
#[derive(Default)]
struct Changes {
    /// By path and id: of two records of one name the older comes first, and wins.
    entries: BTreeMap<(String, i64), Option<Arc<Entry>>>,
    has_findings: bool,
}

impl Changes {
    fn put(&mut self, id: i64, made: &Assembly, entry: Option<Arc<Entry>>) {
        self.entries.insert((made.document.path.clone(), id), entry);
        self.has_findings |= !made.findings.is_empty();
    }
}

impl Records {
    /// An empty source.
    pub fn new(source: Arc<Source>) -> Records {
        Records { source, made: BTreeMap::new(), assembled: Assembled::default() }
    }

    /// The entries of the source.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// The ids of the records, in order.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.made.keys().copied()
    }

    /// Adds or replaces records, and removes others by id. Returns whether anything has changed.
    pub fn put(&mut self, records: impl IntoIterator<Item = Record>, removed: &[i64]) -> bool {
        let mut changes = Changes::default();
        for id in removed {
            if let Some(made) = self.made.remove(id) {
                changes.put(*id, &made, None);
            }
        }
        for record in records {
            let id = record.id;
            let document = Document::stored(&self.source.root, &record);
            let known = self.made.get(&id);
            // The same version of a record may be handed over more than once.
            if known.is_some_and(|known| known.document.is_same(&document)) {
                continue;
            }
            if let Some(known) = known {
                changes.put(id, known, None);
            }
            let document = Arc::new(document);
            let (entry, findings) = assemble::record(&self.source, &document);
            let made = Assembly { document, entry, findings };
            changes.put(id, &made, made.entry.clone());
            self.made.insert(id, made);
        }
        self.take_in(changes)
    }

    fn take_in(&mut self, changes: Changes) -> bool {
        let differs = !changes.entries.is_empty();
        let mut entries = Vec::with_capacity(self.assembled.entries.len() + changes.entries.len());
        // Most entries stay, and need not be looked at: they are copied in runs.
        // Changes are sorted like the entries, so this is a merge: each change cuts the run of
        // unchanged entries before it.
        let mut before = take(&mut self.assembled.entries).into_iter();
        for ((path, id), entry) in changes.entries {
            let place = |entry: &Arc<Entry>| {
                let own = entry.document.of_record().map_or(0, |record| record.id);
                entry.document.path.as_str().cmp(&path).then(own.cmp(&id))
            };
            let at = before.as_slice().partition_point(|entry| place(entry).is_lt());
            entries.extend(before.by_ref().take(at));
            if before.as_slice().first().is_some_and(|entry| place(entry).is_eq()) {
                before.next();
            }
            entries.extend(entry);
        }
        entries.extend(before);
        self.assembled.entries = entries;
        if changes.has_findings {
            self.assembled.findings =
                self.made.values().flat_map(|made| &made.findings).cloned().collect();
        }
        differs
    }
}
