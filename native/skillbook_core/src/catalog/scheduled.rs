//! The entries that run by their schedules, for trusted code.

use super::catalog::Catalog;
use super::id::EntryId;

/// The entries with a schedule, or those of a name: every record, for each may be what a profile uses under its name though
/// others use another; and of those of files what is used where no record is seen.
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
