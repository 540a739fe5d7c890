//! Identifiers in a catalog: entry numbers, domains, and the rank of an entry in conflicts.

use std::sync::Arc;

use super::entry::{DomainIndex, Named};
use crate::source::{SourceKind, Trust};
use crate::tenant::Tenant;

/// The position of an entry in its catalog. Entries are sorted by name, those of one name by the
/// order of their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// A domain: the commands whose names begin with it, and the indexes that may describe it.
#[derive(Debug, Default)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// The `SKILL.md` files of the domain, in the order of the sources.
    pub(crate) indexes: Vec<(Priority, Arc<DomainIndex>)>,
    /// The commands of the domain, in the order of their names.
    pub entries: Vec<EntryId>,
}

/// The rank of an entry or index in conflicts: the position of its source, its claim to a name,
/// whether its trust is low, whether it is a record of the store, and whether it is for all
/// tenants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Priority {
    pub rank: u32,
    pub claim: Claim,
    pub low: bool,
    pub stored: bool,
    pub common: bool,
}

/// The claim of an entry or index to its name, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// Its trust is low: it replaces nothing.
    Low,
    /// Its author says `replaces: false`: it replaces only what has no better claim.
    Yields,
    /// It may replace others.
    Full,
}

impl Priority {
    pub fn new<T: Named>(rank: u32, item: &T) -> Priority {
        let low = item.trust() == Trust::Low;
        let claim = match (low, item.document().fields.replaces) {
            (true, _) => Claim::Low,
            (false, false) => Claim::Yields,
            (false, true) => Claim::Full,
        };
        let stored = item.source().kind == SourceKind::Stored;
        Priority { rank, claim, low, stored, common: *item.tenant() == Tenant::Common }
    }
}

/// The hashes of an entry's name and title. Without a title of its own, both are the name's.
pub(crate) type Hashes = [u32; 2];
