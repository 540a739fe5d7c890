//! The entries that run on a schedule, for trusted code.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::catalog::Catalog;
use super::id::EntryId;
use crate::tenant::Tenant;

/// The entries with a schedule, or those of one name.
///
/// Every record with a schedule is among them: each may be the one that some profile uses under its
/// name. Of the files it is only the entries that are used where no record is seen.
pub fn scheduled(catalog: &Catalog, name: Option<&str>) -> Vec<EntryId> {
    let all = || (0..catalog.entries().len() as u32).map(EntryId);
    let has_schedule = |id: &EntryId| catalog.entry(*id).fields().schedule.is_some();
    let mut found: Vec<EntryId> = match name {
        Some(name) => catalog.named(name).filter(has_schedule).collect(),
        None => all().filter(has_schedule).collect(),
    };
    // Most names have no schedule, and finding the files that are used takes a look at all.
    if found.iter().any(|id| !catalog.priority(*id).stored) {
        let used_files = used_files(catalog);
        found.retain(|id| catalog.priority(*id).stored || used_files.contains(id));
    }
    found
}

/// The entries of files that are used by views of no tenant, and those of a tenant's files that
/// are used by its views.
fn used_files(catalog: &Catalog) -> FxHashSet<EntryId> {
    let all = || (0..catalog.entries().len() as u32).map(EntryId);
    let is_file = |id: EntryId| !catalog.priority(id).stored;
    let tenant = |id: EntryId| catalog.entry(id).tenant();
    let names = all().filter(|id| is_file(*id)).filter_map(|id| tenant(id).name());
    let names: BTreeSet<&str> = names.collect();
    let tenants = names.into_iter().map(|name| Tenant::One(name.into()));
    let mut used = FxHashSet::default();
    for reader in [Tenant::Common].into_iter().chain(tenants) {
        let reads = |id| is_file(id) && reader.reads(tenant(id));
        let mut shown: Vec<u8> = all().map(|id| u8::from(reads(id))).collect();
        catalog.resolve(&mut shown, reader.name().is_some());
        used.extend(all().filter(|id| shown[id.0 as usize] != 0 && *tenant(*id) == reader));
    }
    used
}
