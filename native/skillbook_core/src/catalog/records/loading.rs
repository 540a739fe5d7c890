//! Records that come from the database, many at a time. They are taken in without being read.
//!
//! A catalog needs little of a record until somebody reads it: its class and the hash of its name.
//! Of its text only the frontmatter is read, since labels may be in it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Class, Records};
use crate::catalog::block::{id, split, Block, Item, Opener};
use crate::page::record::Record;
use crate::source::Source;
use crate::tenant::Tenant;

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

/// A class of a tenant's records, as it was at a time.
#[derive(Debug)]
pub struct Left {
    class: u32,
    changed: u64,
    renumbered: u64,
    blocks: Vec<Arc<Block>>,
}

/// A class of records that are not in memory any more, and those that stay.
#[derive(Debug)]
pub struct Forgotten {
    left: Left,
    names: Vec<(i64, Option<String>)>,
    stay: Vec<u8>,
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

    /// Its tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The id of the record.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        self.line.len()
    }
}

impl Left {
    /// Reads which of the records need not stay in memory: all without a schedule.
    pub fn read(self, opener: &Opener) -> Forgotten {
        let mut forgotten = Forgotten { left: self, names: Vec::new(), stay: Vec::new() };
        for block in &forgotten.left.blocks {
            for line in split(&block.lines()) {
                let Some(record) = Record::of_line(line) else { continue };
                let facts = Loaded::new(&opener.source, &record).facts;
                match facts.is_scheduled {
                    true => forgotten.stay.extend_from_slice(line),
                    false => forgotten.names.push((record.id, facts.name)),
                }
            }
        }
        forgotten
    }
}

impl Records {
    /// Adds records that were not in memory. Those whose ids are there are newer, and stay.
    pub fn add(&mut self, loaded: impl IntoIterator<Item = Loaded>, number: u64) {
        let mut lines: FxHashMap<u32, Vec<(i64, Vec<u8>)>> = FxHashMap::default();
        for Loaded { id, tenant, line, facts } in loaded {
            if !self.has(id) {
                let class = self.come(id, &tenant, facts, number);
                lines.entry(class).or_default().push((id, line));
            }
        }
        for (class, mut lines) in lines {
            let own = &mut self.classes[class as usize];
            // Those with higher ids follow the others.
            let first = lines.iter().map(|(id, _)| *id).min().unwrap_or_default();
            let from = own.blocks.partition_point(|block| block.is_full() && block.last() < first);
            for block in &own.blocks[from..] {
                let there = block.lines();
                lines.extend(split(&there).filter_map(|line| Some((id(line)?, line.to_vec()))));
            }
            lines.sort_unstable_by_key(|(id, _)| *id);
            let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
            let lines = lines.concat();
            own.replace(from..own.blocks.len(), &lines, None, &self.opener, &mut self.loose);
        }
    }

    /// Forgets the records of all tenants, but those with a schedule.
    pub fn forget_tenants(&mut self, number: u64) {
        let mut scheduled: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
        for (id, class) in self.scheduled.iter().filter_map(|id| Some((id, self.made.get(id)?))) {
            scheduled.entry(*class).or_default().push(*id);
        }
        for (own, at) in self.classes.iter_mut().zip(0..) {
            let stay = scheduled.get(&at).map_or(&[][..], |ids| ids);
            if own.tenant == Tenant::Common || own.records == stay.len() {
                continue;
            }
            let lines = stay.iter().filter_map(|id| own.line(*id));
            let lines: Vec<u8> = lines.flat_map(|(lines, at)| lines[at].to_vec()).collect();
            own.changed = number;
            own.records = stay.len();
            self.empty += usize::from(own.records == 0);
            own.replace(0..own.blocks.len(), &lines, None, &self.opener, &mut self.loose);
        }
        let Records { made, classes, scheduled, named, .. } = self;
        let is_common = |class: u32| classes[class as usize].tenant == Tenant::Common;
        made.retain(|id, class| is_common(*class) || scheduled.contains(id));
        named.retain(|(_, id)| made.contains_key(id));
        self.drop_empty();
    }

    /// The classes of a tenant, to be read and [forgotten](Records::forget).
    pub fn left(&self, tenant: &Tenant) -> Vec<Left> {
        let left = |at: u32| {
            let Class { changed, blocks, .. } = &self.classes[at as usize];
            let (changed, blocks) = (*changed, blocks.clone());
            Left { class: at, changed, renumbered: self.renumbered, blocks }
        };
        self.of_tenant(tenant).map(left).collect()
    }

    /// Forgets records, unless their class has changed.
    pub fn forget(&mut self, forgotten: &Forgotten, number: u64) {
        let Forgotten { left, names, stay } = forgotten;
        let class = self.classes.get_mut(left.class as usize);
        let class = class.filter(|class| class.changed == left.changed && !names.is_empty());
        let Some(own) = class.filter(|_| self.renumbered == left.renumbered) else { return };
        own.changed = number;
        own.records -= names.len();
        self.empty += usize::from(own.records == 0);
        own.replace(0..own.blocks.len(), stay, None, &self.opener, &mut self.loose);
        for (id, name) in names {
            self.made.remove(id);
            if let Some(name) = name {
                self.unname(name, *id);
            }
        }
        self.drop_empty();
    }
}
