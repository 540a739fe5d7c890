//! The entries of files that run on a schedule, for trusted code. Records of the store are in
//! [`Parts::scheduled`](crate::view::Parts::scheduled).

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::catalog::Catalog;
use super::id::EntryId;
use crate::tenant::Tenant;

/// The entries with a schedule, or those of one name, of a catalog without records. Only those that
/// are used by somebody are among them.
pub fn scheduled(catalog: &Catalog, name: Option<&str>) -> Vec<EntryId> {
    let all = || (0..catalog.entries().len() as u32).map(EntryId);
    let has_schedule = |id: &EntryId| catalog.entry(*id).fields().schedule.is_some();
    let mut found: Vec<EntryId> = match name {
        Some(name) => catalog.named(name).filter(has_schedule).collect(),
        None => all().filter(has_schedule).collect(),
    };
    // Most names have no schedule, and finding the entries that are used takes a look at all.
    if !found.is_empty() {
        let used = used(catalog);
        found.retain(|id| used.contains(id));
    }
    found
}

/// The entries that are used by views of no tenant, and those of a tenant that are used by its
/// views.
fn used(catalog: &Catalog) -> FxHashSet<EntryId> {
    let all = || (0..catalog.entries().len() as u32).map(EntryId);
    let tenant = |id: EntryId| catalog.entry(id).tenant();
    let names = all().filter_map(|id| tenant(id).name());
    let names: BTreeSet<&str> = names.collect();
    let tenants = names.into_iter().map(|name| Tenant::One(name.into()));
    let mut used = FxHashSet::default();
    for reader in [Tenant::Common].into_iter().chain(tenants) {
        let mut shown: Vec<u8> = all().map(|id| u8::from(reader.reads(tenant(id)))).collect();
        catalog.resolve(&mut shown, reader.name().is_some());
        used.extend(all().filter(|id| shown[id.0 as usize] != 0 && *tenant(*id) == reader));
    }
    used
}
