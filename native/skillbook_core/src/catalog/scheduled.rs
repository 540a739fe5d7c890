//! The entries that run on a schedule, for trusted code.

use super::catalog::Catalog;
use super::id::EntryId;

/// The entries with a schedule, or those of one name.
///
/// Every record with a schedule is among them: each may be the one that some profile uses under its
/// name. Of the files it is only the entries that are used where no record is seen.
pub fn scheduled(catalog: &Catalog, name: Option<&str>) -> Vec<EntryId> {
    let all = || (0..catalog.entries().len() as u32).map(EntryId);
    let mut files: Vec<u8> = all().map(|id| u8::from(!catalog.priority(id).stored)).collect();
    catalog.resolve(&mut files);
    let is = |id: &EntryId| {
        let used = catalog.priority(*id).stored || files[id.0 as usize] != 0;
        used && catalog.entry(*id).fields().schedule.is_some()
    };
    match name {
        Some(name) => catalog.named(name).filter(is).collect(),
        None => all().filter(is).collect(),
    }
}
