//! The records that there are when a program starts. They are taken in without being read.
//!
//! A catalog needs little of a record until somebody reads it: its class and the hash of its name.
//! Of its text only the frontmatter is read, since labels may be in it.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::Records;
use crate::catalog::block::{Block, Item, Opener};
use crate::page::record::Record;
use crate::source::Source;
use crate::tenant::Tenant;

/// The bytes of lines, of all classes, that wait until they fill a block.
const WAITING: usize = 128 * 1024 * 1024;

/// All records of a source, which come some at a time.
#[derive(Debug)]
pub struct Loading {
    records: Records,
    made: Vec<(i64, u32)>,
    named: Vec<(u64, i64)>,
    /// The lines of each class that are not in blocks yet.
    waiting: Vec<Vec<u8>>,
    bytes: usize,
}

/// All that a catalog knows of a record that nobody reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub labels: Vec<String>,
    /// `None` without an entry.
    pub name: Option<String>,
    pub is_scheduled: bool,
}

/// A record that was taken in, for which no other record is needed.
#[derive(Debug)]
pub struct Loaded {
    id: i64,
    tenant: Tenant,
    line: Vec<u8>,
    facts: Facts,
}

impl Facts {
    pub fn of(item: &Item) -> Facts {
        let entry = item.entry.as_ref();
        // One that no glob selects is only in its findings.
        let labelled = entry.or_else(|| item.findings.first()?.about.first());
        Facts {
            labels: labelled.map_or(Vec::new(), |entry| entry.labels.clone()),
            name: entry.map(|entry| entry.name.to_string()),
            is_scheduled: entry.is_some_and(|entry| entry.fields().schedule.is_some()),
        }
    }

    /// Those of most records, from columns and frontmatter.
    fn quick(source: &Source, record: &Record) -> Option<Facts> {
        if source.has_globs() || record.schedule.is_some() {
            return None;
        }
        let (name, mut labels) = record.entry()?;
        labels.extend_from_slice(&source.labels);
        labels.sort();
        labels.dedup();
        Some(Facts { labels, name: Some(name), is_scheduled: false })
    }
}

impl Loaded {
    /// Takes in a record of a source.
    pub fn new(source: &Arc<Source>, record: &Record) -> Loaded {
        let read = || Facts::of(&Item::new(source, record));
        let facts = Facts::quick(source, record).unwrap_or_else(read);
        Loaded { id: record.id, tenant: record.tenant.clone(), line: record.line(), facts }
    }
}

impl Loading {
    /// Without any record.
    pub fn new(opener: Opener) -> Loading {
        let (made, named, waiting, bytes) = Default::default();
        Loading { records: Records::new(opener), made, named, waiting, bytes }
    }

    /// Adds records in the order of their ids, which are above all before. Returns blocks that
    /// should be packed.
    pub fn add(&mut self, loaded: impl IntoIterator<Item = Loaded>) -> Vec<Arc<Block>> {
        let mut blocks = Vec::new();
        for Loaded { id, tenant, line, facts } in loaded {
            let class = self.records.class(&tenant, &facts.labels);
            let own = &mut self.records.classes[class as usize];
            self.records.empty -= usize::from(own.records == 0);
            own.records += 1;
            self.made.push((id, class));
            if let Some(name) = facts.name {
                self.named.push((self.records.hasher.hash_one(name), id));
            }
            if facts.is_scheduled {
                self.records.scheduled.insert(id);
            }
            self.waiting.resize_with(self.records.classes.len(), Vec::new);
            self.waiting[class as usize].extend_from_slice(&line);
            self.bytes += line.len();
            if Block::is_enough(self.waiting[class as usize].len()) {
                self.cut(class, &mut blocks);
            } else if self.bytes > WAITING {
                (0..self.waiting.len() as u32).for_each(|class| self.cut(class, &mut blocks));
            }
        }
        blocks
    }

    /// The records, and blocks that should be packed.
    pub fn finish(mut self) -> (Records, Vec<Arc<Block>>) {
        let mut blocks = Vec::new();
        (0..self.waiting.len() as u32).for_each(|class| self.cut(class, &mut blocks));
        let (made, named) = (self.made.into_iter().collect(), self.named.into_iter().collect());
        (Records { made, named, ..self.records }, blocks)
    }

    fn cut(&mut self, class: u32, blocks: &mut Vec<Arc<Block>>) {
        let mut lines = std::mem::take(&mut self.waiting[class as usize]);
        self.bytes -= lines.len();
        let own = &mut self.records.classes[class as usize].blocks;
        if !lines.is_empty() {
            // A block that was cut before it was full is completed.
            if let Some(last) = own.pop_if(|last| !last.is_full()) {
                lines.splice(0..0, last.lines().iter().copied());
            }
        }
        for (block, _) in Block::cut(&lines, None, &self.records.opener) {
            own.push(block.clone());
            blocks.push(block);
        }
    }
}
