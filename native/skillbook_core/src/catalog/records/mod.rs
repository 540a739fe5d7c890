//! A source whose documents are records of a database, added and removed one at a time.
//!
//! A folder is assembled as a whole, because the meaning of a file depends on its neighbours. A
//! record has no neighbours, so a change costs as much as the change, not as the source.
//!
//! Records are kept by [class](Class): those of one tenant with the same labels, which a profile
//! reads together or not at all. A catalog for a profile is made of the classes that it reads, and
//! a write concerns one of them. Those of a class lie in [blocks](Block), packed until somebody
//! reads them.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::block::Opener;
//! use skillbook_core::catalog::records::{read, Records, Written};
//! use skillbook_core::page::record::{Origin, Record};
//! use skillbook_core::source::{Source, SourceKind};
//! use skillbook_core::tenant::Tenant;
//!
//! let source = Source { root: "/store".into(), kind: SourceKind::Stored, ..Source::default() };
//! let source = Arc::new(source);
//! let mut records = Records::new(Opener::new(source.clone()));
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
//! let (assembled, _opened) = read(&records.blocks(0..1), records.opener());
//! assert_eq!(assembled.entries.len(), 1);
//! assert_eq!(records.classes()[0].changed, 1);
//! ```

mod loading;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::catalog::assemble::Assembled;
use crate::catalog::block::{Block, Item, Opened, Opener};
use crate::catalog::entry::Entry;
use crate::page::record::Record;
use crate::source::Source;
use crate::tenant::Tenant;
use loading::Facts;
pub use loading::{Forgotten, Left, Loaded};

/// So many empty classes may stay.
const FEW_CLASSES: usize = 1_000;

/// A source of records and their entries.
#[derive(Debug, Default)]
pub struct Records {
    /// The class of each record, by its id.
    made: BTreeMap<i64, u32>,
    classes: Vec<Class>,
    /// By tenant, then by labels: both can be looked up by reference.
    numbers: FxHashMap<Tenant, FxHashMap<Vec<String>, u32>>,
    /// The hashes of the entries' names, each with the ids, in order.
    named: BTreeSet<(u64, i64)>,
    /// Of names. Strangers choose them, so its key is a secret.
    hasher: RandomState,
    /// The ids of the entries with a schedule.
    scheduled: BTreeSet<i64>,
    /// The number of classes without records.
    empty: usize,
    /// See [`Records::renumbered`].
    renumbered: u64,
    opener: Opener,
    loose: Loose,
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
    /// The number of the generation in which its problems were asked for last.
    looked: AtomicU64,
    /// The number of records.
    records: usize,
    /// By the ids of their records.
    blocks: Vec<Arc<Block>>,
}

/// Blocks that were written lately and are not packed, the oldest first. A burst of writes packs
/// its blocks once. Those of readers stay open for as long, for their next view.
#[derive(Debug, Default)]
struct Loose {
    blocks: VecDeque<(Weak<Block>, Option<Arc<Opened>>, usize)>,
    bytes: usize,
}

/// A record that was read, which takes most of the time of a change and needs no other record.
#[derive(Debug)]
pub struct Written {
    tenant: Tenant,
    line: Vec<u8>,
    item: Item,
}

impl Written {
    /// Reads a record of a source.
    pub fn new(source: &Arc<Source>, record: &Record) -> Written {
        let (tenant, line) = (record.tenant.clone(), record.line());
        Written { tenant, line, item: Item::new(source, record) }
    }

    /// The id of the record.
    pub fn id(&self) -> i64 {
        self.item.id
    }

    /// The tenant of the record.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Its entry, if it has one.
    pub fn entry(&self) -> Option<&Arc<Entry>> {
        self.item.entry.as_ref()
    }
}

/// The change of a record: its entry before and after.
#[derive(Debug)]
pub struct RecordChange {
    /// The record's id.
    pub id: i64,
    /// `None` for a new one.
    pub before: Option<Arc<Entry>>,
    /// `None` for one that is gone.
    pub after: Option<Arc<Entry>>,
}

impl Class {
    /// The number of records.
    pub fn count(&self) -> usize {
        self.records
    }

    /// Whether its problems were not asked for since a generation and its last change.
    pub fn is_news(&self, since: u64) -> bool {
        self.looked.load(Ordering::Relaxed) < self.changed.max(since)
    }

    /// Notes that its problems were asked for in a generation.
    pub fn look(&self, number: u64) {
        self.looked.store(number, Ordering::Relaxed);
    }

    /// Whether somebody reads some of its entries.
    pub fn is_open(&self) -> bool {
        self.blocks.iter().any(|block| block.is_open())
    }

    /// The place of the block that a record is in, or would be in.
    fn at(&self, id: i64) -> usize {
        self.blocks.partition_point(|block| block.first() <= id).saturating_sub(1)
    }

    /// The record with an id.
    fn line(&self, id: i64) -> Option<(Arc<[u8]>, Range<usize>)> {
        let block = self.blocks.get(self.at(id))?;
        let lines = block.lines();
        let (found, line) = block.place(&lines, id);
        found.then_some((lines, line))
    }

    /// Puts a record in the place of that with its id, or takes that out.
    fn edit(&mut self, id: i64, new: Option<(&[u8], &Item)>, opener: &Opener, loose: &mut Loose) {
        let at = self.at(id);
        let Some(block) = self.blocks.get(at) else {
            let lines = new.map_or(&[][..], |(line, _)| line);
            return self.replace(0..0, lines, None, opener, loose);
        };
        let mut items = block.opened().map(|opened| opened.items.clone());
        let lines = block.lines();
        let (_, line) = block.place(&lines, id);
        // New records have the highest ids, and get a block of their own when the last is full.
        if line.start == lines.len() && block.is_full() {
            let Some((new, item)) = new else { return };
            let items = items.map(|_| vec![item.clone()]);
            return self.replace(at + 1..at + 1, new, items, opener, loose);
        }
        let added = new.map_or(&[][..], |(line, _)| line);
        let mut lines = [&lines[..line.start], added, &lines[line.end..]].concat();
        if let Some(items) = &mut items {
            let place = items.partition_point(|item| item.id < id);
            if items.get(place).is_some_and(|item| item.id == id) {
                items.remove(place);
            }
            if let Some((_, item)) = new {
                items.insert(place, item.clone());
            }
        }
        let mut blocks = at..at + 1;
        if let Some(next) = self.blocks.get(at + 1).filter(|next| {
            Block::is_rest(lines.len()) && !next.is_full() || Block::is_rest(next.size())
        }) {
            lines.extend_from_slice(&next.lines());
            items =
                items.zip(next.opened()).map(|(items, next)| [&items, &next.items[..]].concat());
            blocks.end += 1;
        }
        self.replace(blocks, &lines, items, opener, loose);
    }

    fn replace(
        &mut self,
        blocks: Range<usize>,
        lines: &[u8],
        items: Option<Vec<Item>>,
        opener: &Opener,
        loose: &mut Loose,
    ) {
        let new = Block::cut(lines, items, opener);
        self.blocks.splice(blocks, new.iter().map(|(block, _)| block.clone()));
        new.into_iter().for_each(|(block, opened)| loose.add(&block, opened));
    }
}

impl Loose {
    fn add(&mut self, block: &Arc<Block>, opened: Option<Arc<Opened>>) {
        self.bytes += block.size();
        self.blocks.push_back((Arc::downgrade(block), opened, block.size()));
    }

    /// Takes the oldest out until the others have at most so many bytes.
    fn settle(&mut self, most: usize) -> Vec<Arc<Block>> {
        let mut blocks = Vec::new();
        while self.bytes > most {
            let Some((block, _, bytes)) = self.blocks.pop_front() else { break };
            self.bytes -= bytes;
            // Most were replaced by later writes.
            blocks.extend(block.upgrade());
        }
        blocks
    }
}

/// The entries of blocks, by the ids of their records: of two of one name the older comes first,
/// and wins. They stay open as long as the second value is there.
pub fn read(blocks: &[Arc<Block>], opener: &Opener) -> (Assembled, Vec<Arc<Opened>>) {
    let opened: Vec<_> = blocks.iter().map(|block| block.open(opener)).collect();
    let mut items: Vec<&Item> = opened.iter().flat_map(|opened| &opened.items).collect();
    // Those of a class are in order.
    items.sort_by_key(|item| item.id);
    let mut out = Assembled::default();
    out.entries.extend(items.iter().filter_map(|item| item.entry.clone()));
    out.findings.extend(items.iter().flat_map(|item| &item.findings).cloned());
    (out, opened)
}

impl Records {
    /// Without any record.
    pub fn new(opener: Opener) -> Records {
        Records { opener, ..Records::default() }
    }

    /// For reading its blocks.
    pub fn opener(&self) -> &Opener {
        &self.opener
    }

    /// All classes. They keep their numbers, also when their last record is gone, until
    /// [`Records::renumbered`] rises.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// How often the classes were numbered anew, because most of them were empty.
    pub fn renumbered(&self) -> u64 {
        self.renumbered
    }

    /// The tenants that have classes.
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.numbers.keys()
    }

    /// The numbers of the classes of a tenant's records.
    pub fn of_tenant(&self, tenant: &Tenant) -> impl Iterator<Item = u32> + '_ {
        self.numbers.get(tenant).into_iter().flat_map(|numbers| numbers.values().copied())
    }

    /// The blocks of classes, to be [read].
    pub fn blocks(&self, classes: impl Iterator<Item = u32>) -> Vec<Arc<Block>> {
        classes.flat_map(|class| &self.classes[class as usize].blocks).cloned().collect()
    }

    /// The ids of the records, in order.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.made.keys().copied()
    }

    /// The ids of the entries of a name, the oldest first.
    pub fn named(&self, name: &str) -> impl Iterator<Item = i64> + '_ {
        let hash = self.hasher.hash_one(name);
        self.named.range((hash, i64::MIN)..=(hash, i64::MAX)).map(|(_, id)| *id)
    }

    /// The entries with a schedule, or those of one name, as ids and blocks to be read. The oldest
    /// come first.
    pub fn scheduled(&self, name: Option<&str>) -> Vec<(i64, Arc<Block>)> {
        let block = |id: &i64| {
            let class = &self.classes[*self.made.get(id)? as usize];
            Some((*id, class.blocks.get(class.at(*id))?.clone()))
        };
        match name {
            Some(name) => {
                let ids = self.named(name).filter(|id| self.scheduled.contains(id));
                ids.filter_map(|id| block(&id)).collect()
            }
            None => self.scheduled.iter().filter_map(block).collect(),
        }
    }

    /// The records that differ from those of their ids, or are new. None of them is read.
    pub fn differing(&self, records: Vec<Record>) -> Vec<Record> {
        let class = |id: i64| self.made.get(&id).copied();
        let mut places: Vec<_> = (0..records.len()).collect();
        // So that each block is unpacked once.
        places.sort_by_key(|at| (class(records[*at].id), records[*at].id));
        let mut known = vec![false; records.len()];
        let mut last: Option<(&Arc<Block>, Arc<[u8]>)> = None;
        for at in places {
            let record = &records[at];
            let class = class(record.id).map(|class| &self.classes[class as usize]);
            let Some(class) = class.filter(|class| class.tenant == record.tenant) else { continue };
            let Some(block) = class.blocks.get(class.at(record.id)) else { continue };
            let lines = match last.take() {
                Some((other, lines)) if Arc::ptr_eq(other, block) => lines,
                _ => block.lines(),
            };
            let (found, line) = block.place(&lines, record.id);
            known[at] = found && lines[line] == record.line()[..];
            last = Some((block, lines));
        }
        let records = records.into_iter().zip(known);
        records.filter(|(_, known)| !known).map(|(record, _)| record).collect()
    }

    /// The blocks that should be packed, because those that were written after them have so many
    /// bytes.
    pub fn settle(&mut self, most: usize) -> Vec<Arc<Block>> {
        self.loose.settle(most)
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
            if let Some((class, before)) = self.take_out(*id, number) {
                self.classes[class as usize].edit(*id, None, &self.opener, &mut self.loose);
                changes.push(RecordChange { id: *id, before, after: None });
            }
        }
        for Written { tenant, line, item } in records {
            let id = item.id;
            let known = self.made.get(&id).map(|class| &self.classes[*class as usize]);
            let known = known.and_then(|class| class.line(id));
            // The same version of a record may be handed over more than once.
            if known.is_some_and(|(lines, at)| lines[at] == line[..]) {
                continue;
            }
            let facts = Facts::of(&item);
            let (left, before) = self.take_out(id, number).unzip();
            let class = self.come(id, &tenant, facts, number);
            if let Some(left) = left.filter(|left| *left != class) {
                self.classes[left as usize].edit(id, None, &self.opener, &mut self.loose);
            }
            let own = &mut self.classes[class as usize];
            own.edit(id, Some((&line, &item)), &self.opener, &mut self.loose);
            changes.push(RecordChange { id, before: before.flatten(), after: item.entry });
        }
        self.drop_empty();
        changes
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Whether a record is there.
    pub fn has(&self, id: i64) -> bool {
        self.made.contains_key(&id)
    }

    /// Puts a record into all but the blocks of its class, which it returns.
    fn come(&mut self, id: i64, tenant: &Tenant, facts: Facts, number: u64) -> u32 {
        let class = self.class(tenant, &facts.labels);
        let own = &mut self.classes[class as usize];
        self.empty -= usize::from(own.records == 0);
        own.records += 1;
        own.changed = number;
        self.made.insert(id, class);
        if let Some(name) = &facts.name {
            self.named.insert((self.hasher.hash_one(name), id));
        }
        if facts.is_scheduled {
            self.scheduled.insert(id);
        }
        class
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
        for class in self.made.values_mut() {
            *class = moved[*class as usize];
        }
        self.renumbered += 1;
    }

    /// Takes a record out of all but the blocks of its class. Returns the class, and the entry.
    fn take_out(&mut self, id: i64, number: u64) -> Option<(u32, Option<Arc<Entry>>)> {
        let at = self.made.remove(&id)?;
        let class = &mut self.classes[at as usize];
        class.changed = number;
        class.records -= 1;
        self.empty += usize::from(class.records == 0);
        let block = class.blocks.get(class.at(id));
        let entry = block.and_then(|block| block.entry(id, &self.opener));
        if let Some(entry) = &entry {
            self.scheduled.remove(&id);
            self.unname(&entry.name, id);
        }
        Some((at, entry))
    }

    fn unname(&mut self, name: &str, id: i64) {
        self.named.remove(&(self.hasher.hash_one(name), id));
    }

    fn class(&mut self, tenant: &Tenant, labels: &[String]) -> u32 {
        let known = self.numbers.get(tenant).and_then(|numbers| numbers.get(labels));
        if let Some(number) = known {
            return *number;
        }
        let number = self.classes.len() as u32;
        self.numbers.entry(tenant.clone()).or_default().insert(labels.to_vec(), number);
        let (tenant, labels) = (tenant.clone(), labels.to_vec());
        let (changed, looked, records, blocks) = Default::default();
        self.classes.push(Class { tenant, labels, changed, looked, records, blocks });
        self.empty += 1;
        number
    }
}
