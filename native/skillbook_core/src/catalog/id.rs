//! What entries are known by in a catalog: their numbers, their domains, and where they come from.

use std::sync::Arc;

use super::entry::{DomainIndex, Named};
use crate::source::{SourceKind, Trust};

/// An entry's place in its catalog; entries are in the order of their names, those of one name in that of their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// A domain: the commands whose names begin with it, and the indexes that it may have.
#[derive(Debug, Default)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Each `SKILL.md` of its folders, in the order of the sources.
    pub(crate) indexes: Vec<(Priority, Arc<DomainIndex>)>,
    /// Its commands in the order of their names.
    pub entries: Vec<EntryId>,
}

/// What precedence depends on: a source's place among the sources, whether trust is low, and whether it is the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Priority {
    pub rank: u32,
    pub low: bool,
    pub stored: bool,
}

impl Priority {
    pub fn new<T: Named>(rank: u32, item: &T) -> Priority {
        Priority {
            rank,
            low: item.trust() == Trust::Low,
            stored: item.source().kind == SourceKind::Stored,
        }
    }
}

/// The hashes of what an entry is called, its name first; twice the same if that is its title too.
pub(crate) type Hashes = [u32; 2];
