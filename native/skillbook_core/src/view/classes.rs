//! Classes of entries: those of one tenant with the same labels, which a rule admits or refuses
//! together. A catalog has far fewer classes than entries, so a view asks its rule once for each
//! class. Of the entries of those that it admits, it reads only those that name profiles or need a
//! connection: the others are the same for all, and their bits are kept here in one piece, while
//! the entries are scattered over memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::about;
use super::profile::Rule;
use crate::catalog::entry::Entry;
use crate::tenant::Tenant;

/// The classes of a catalog's entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    /// Of each entry, by its id.
    of: Vec<Of>,
    /// Shared by generations in which there is no new class.
    known: Arc<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Of {
    class: u32,
    bits: Bits,
}

/// The bits of an admitted entry that no other one takes the place of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bits {
    /// They are the same for all profiles.
    Same(u8),
    /// The same, unless its handler is missing.
    Handled(u8),
    /// They depend on the profile.
    OfProfile,
}

/// The classes, and the number of each.
#[derive(Debug, Clone, Default)]
struct Known {
    list: Vec<(Tenant, Vec<String>)>,
    /// By tenant, then by labels: both can be looked up by reference.
    numbers: FxHashMap<Tenant, FxHashMap<Vec<String>, u32>>,
}

impl Classes {
    /// The classes of entries, of which most are among the entries before.
    pub fn new(entries: &[Arc<Entry>], before: Option<(&[Arc<Entry>], &Classes)>) -> Classes {
        // Classes whose last entry is gone stay, until they are the most.
        let few = |classes: &Classes| classes.known.list.len() <= 2 * entries.len() + 64;
        let (earlier, of, mut known) = match before.filter(|(_, classes)| few(classes)) {
            Some((earlier, classes)) => (earlier, &classes.of[..], classes.known.clone()),
            None => Default::default(),
        };
        let nobody = Rule::of_nobody();
        let of = carried(entries, earlier, of, |entry| Of {
            class: number(&mut known, entry),
            bits: bits(&nobody, entry),
        });
        Classes { of, known }
    }

    /// The ids of the entries that a rule admits by their tenant and labels, in order.
    pub fn admitted<'a>(&'a self, rule: &Rule) -> impl Iterator<Item = (usize, Bits)> + 'a {
        let admits = |(tenant, labels): &(Tenant, Vec<String>)| rule.admits_class(tenant, labels);
        let admitted: Vec<bool> = self.known.list.iter().map(admits).collect();
        let ids = self.of.iter().enumerate();
        ids.filter(move |(_, of)| admitted[of.class as usize]).map(|(at, of)| (at, of.bits))
    }
}

fn bits(nobody: &Rule, entry: &Entry) -> Bits {
    if !Rule::is_for_all(entry.fields()) {
        return Bits::OfProfile;
    }
    let bits = about::of(entry, nobody.lists(entry.fields()), nobody.in_prompt(entry));
    match entry.handler() {
        Some(_) => Bits::Handled(bits),
        None => Bits::Same(bits),
    }
}

fn number(known: &mut Arc<Known>, entry: &Entry) -> u32 {
    let (tenant, labels) = (entry.tenant(), &entry.labels);
    let found = known.numbers.get(tenant).and_then(|numbers| numbers.get(labels));
    if let Some(number) = found {
        return *number;
    }
    let known = Arc::make_mut(known);
    let number = known.list.len() as u32;
    known.list.push((tenant.clone(), labels.clone()));
    known.numbers.entry(tenant.clone()).or_default().insert(labels.clone(), number);
    number
}

/// Values of entries, of which most are among the entries before and in the same order, with their
/// values. Comparing their addresses reads none of them, and they are scattered over memory.
pub(super) fn carried<T: Copy>(
    entries: &[Arc<Entry>],
    before: &[Arc<Entry>],
    values: &[T],
    mut value: impl FnMut(&Entry) -> T,
) -> Vec<T> {
    const MAX_GONE: usize = 8;
    let mut from = 0;
    let carry = |entry: &Arc<Entry>| {
        let near = from..before.len().min(from + MAX_GONE);
        match near.into_iter().find(|at| Arc::ptr_eq(&before[*at], entry)) {
            Some(at) => {
                from = at + 1;
                values[at]
            }
            None => value(entry),
        }
    };
    entries.iter().map(carry).collect()
}
