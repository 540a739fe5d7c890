//! All entries of a book at one time: merged over its sources, never changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustc_hash::FxHashMap;

use crate::assemble::{Assembled, Finding};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::Document;
use crate::entry::{Entry, Index, Source, Trust};
use crate::search;
use crate::suggest::Words;
use crate::view::Visible;

/// An entry's place in its catalog; entries are in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// A domain: the commands whose names begin with it, and its index if there is one.
#[derive(Debug)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// The `SKILL.md` of its folder.
    pub index: Option<Arc<Index>>,
    /// Its commands in the order of their names.
    pub entries: Vec<EntryId>,
}

/// Why an entry is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Another one of its name comes first in its source.
    Duplicate,
    /// A later source has one of its name.
    Shadowed,
    /// No glob of its source selects it.
    Unselected,
    /// Its source is of low trust, and another source's entry has its name, or an alias of its name.
    Refused,
}

/// An entry that was read and is not used.
#[derive(Debug, Clone)]
pub struct Unused {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Why it is not used.
    pub why: Why,
}

/// One generation of a book's entries.
#[derive(Debug)]
pub struct Catalog {
    generation: u64,
    sources: Vec<Arc<Source>>,
    entries: Vec<Arc<Entry>>,
    names: FxHashMap<Arc<str>, EntryId>,
    aliases: FxHashMap<String, Vec<EntryId>>,
    domains: Vec<Domain>,
    unused: Vec<Unused>,
    findings: Vec<Arc<Finding>>,
    pub(crate) words: OnceLock<Words>,
    pub(crate) search: OnceLock<Arc<search::Index>>,
    /// That of a generation before, until this one has its own.
    pub(crate) earlier_search: Mutex<Option<Arc<search::Index>>>,
    visible: Mutex<Vec<Arc<Visible>>>,
}

impl Catalog {
    /// Merges what the sources hold, in their order: a later source's entry replaces an earlier one's of the same name,
    /// and within a source the first by path is used. A source of low trust replaces nothing. Each that is not used has
    /// a finding.
    pub fn build(generation: u64, sources: Vec<Assembled>) -> Catalog {
        let mut findings = Vec::new();
        let mut unused = Vec::new();
        let mut order = Vec::new();
        let mut entries = Merge::default();
        let mut indexes = Merge::default();
        for source in sources {
            order.extend(source.entries.first().map(|entry| entry.source.clone()));
            findings.extend(source.findings);
            unused.extend(source.unselected.into_iter().map(|entry| Unused { entry, why: Why::Unselected }));
            entries.source(source.entries.into_iter().map(|entry| (entry.name.clone(), entry)), &mut findings);
            let named = |index: Arc<Index>| (Arc::from(index.domain.as_str()), index);
            indexes.source(source.indexes.into_iter().map(named), &mut findings);
        }
        entries.refuse_aliases(&mut findings);
        indexes.refuse_foreign(&entries, &mut findings);
        unused.extend(entries.unused.drain(..).map(|(entry, why)| Unused { entry, why }));
        let entries: Vec<_> = entries.used.into_values().collect();
        let ids = || (0..entries.len() as u32).map(EntryId).zip(&entries);
        let names: FxHashMap<_, _> = ids().map(|(id, entry)| (entry.name.clone(), id)).collect();

        let mut aliases: FxHashMap<String, Vec<EntryId>> = FxHashMap::default();
        let mut domains: BTreeMap<String, Vec<EntryId>> = BTreeMap::new();
        for (id, entry) in ids() {
            if let Some(domain) = &entry.domain {
                match domains.get_mut(domain) {
                    Some(ids) => ids.push(id),
                    None => {
                        domains.insert(domain.clone(), vec![id]);
                    }
                }
            }
            for alias in &entry.fields().aliases {
                aliases.entry(alias.clone()).or_default().push(id);
            }
        }
        for ids in aliases.values_mut() {
            ids.sort_by_key(|id| entries[id.0 as usize].trust == Trust::Low);
        }
        for (name, index) in &indexes.used {
            if !domains.contains_key(&**name) {
                let message = format!("the domain `{name}` has an index and no commands, so it is not listed");
                let diagnostic = Diagnostic::new(Code::DomainWithoutCommands, Severity::Info, message);
                findings.push(Finding::trusted(diagnostic.in_file(index.document.path.as_str())));
            }
        }
        let domain = |(name, entries): (String, Vec<EntryId>)| {
            let index = indexes.used.remove(name.as_str());
            Domain { name, index, entries }
        };
        let domains = domains.into_iter().map(domain).collect();
        findings.sort_by(|a, b| a.diagnostic.place().cmp(&b.diagnostic.place()));
        Catalog {
            generation,
            sources: order,
            entries,
            names,
            aliases,
            domains,
            unused,
            findings,
            words: OnceLock::new(),
            search: OnceLock::new(),
            earlier_search: Mutex::new(None),
            visible: Mutex::new(Vec::new()),
        }
    }

    /// What it keeps of profiles.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Vec<Arc<Visible>>> {
        self.visible.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How many times the book was loaded when this was built, from 1.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The sources that have entries, in their order.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// All entries in the order of their names.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// One entry.
    pub fn entry(&self, id: EntryId) -> &Arc<Entry> {
        &self.entries[id.0 as usize]
    }

    /// The entry of this name.
    pub fn named(&self, name: &str) -> Option<EntryId> {
        self.names.get(name).copied()
    }

    /// The entries that have this alias, in the order of their names; those of low trust come last.
    pub fn aliased(&self, alias: &str) -> &[EntryId] {
        self.aliases.get(alias).map_or(&[], Vec::as_slice)
    }

    /// Whether this is a name or an alias.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.aliases.contains_key(name)
    }

    /// All domains in the order of their names.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The entries that were read and are not used.
    pub fn unused(&self) -> &[Unused] {
        &self.unused
    }

    /// What was found out about the files, by path and line. What entries say of each other depends on who reads them:
    /// that is in [`View::diagnostics`](crate::view::View::diagnostics).
    pub fn findings(&self) -> &[Arc<Finding>] {
        &self.findings
    }
}

/// What entries and indexes have in common here.
trait Named {
    fn document(&self) -> &Document;
    fn source(&self) -> &Source;
    fn trust(&self) -> Trust;
    fn about(self: &Arc<Self>) -> Option<Arc<Entry>>;
}

impl Named for Entry {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &Source {
        &self.source
    }
    fn trust(&self) -> Trust {
        self.trust
    }
    fn about(self: &Arc<Self>) -> Option<Arc<Entry>> {
        Some(self.clone())
    }
}

impl Named for Index {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &Source {
        &self.source
    }
    fn trust(&self) -> Trust {
        self.source.trust
    }
    fn about(self: &Arc<Self>) -> Option<Arc<Entry>> {
        None
    }
}

struct Merge<T> {
    used: BTreeMap<Arc<str>, Arc<T>>,
    unused: Vec<(Arc<T>, Why)>,
}

impl<T> Default for Merge<T> {
    fn default() -> Self {
        Merge { used: BTreeMap::new(), unused: Vec::new() }
    }
}

impl<T: Named> Merge<T> {
    fn source(&mut self, named: impl Iterator<Item = (Arc<str>, Arc<T>)>, findings: &mut Vec<Arc<Finding>>) {
        let mut named: Vec<_> = named.collect();
        // Those of one name stay in the order of their paths.
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut own: Vec<(Arc<str>, Arc<T>)> = Vec::with_capacity(named.len());
        for (name, item) in named {
            match own.last().filter(|(last, _)| *last == name) {
                Some((_, first)) => {
                    let same = first.document().text == item.document().text;
                    let what = if same { "this is the same document as" } else { "the name is already that of" };
                    let message = format!("`{name}`: {what} {}, which is used", first.document().path);
                    let diagnostic = Diagnostic::new(Code::DuplicateName, Severity::Warning, message).hint(if same {
                        "remove one of them"
                    } else {
                        "give one of them another name"
                    });
                    findings.push(finding(diagnostic, &item, first));
                    self.unused.push((item, Why::Duplicate));
                }
                None => own.push((name, item)),
            }
        }
        if self.used.is_empty() {
            self.used = own.into_iter().collect();
            return;
        }
        for (name, item) in own {
            if let Some(earlier) = self.used.get(&name).filter(|_| item.trust() == Trust::Low) {
                let message = format!("`{name}` is that of {}", earlier.document().path);
                findings.push(refused(message, &item, earlier));
                self.unused.push((item, Why::Refused));
            } else if let Some(earlier) = self.used.insert(name.clone(), item.clone()) {
                let place = format!("{} from the source `{}`", item.document().path, item.source().name);
                let message = format!("`{name}` is replaced by {place}");
                // Who chose entries of both sources by name asked for both, and gets one.
                let chosen = earlier.source().has_globs() && item.source().has_globs();
                let severity = if chosen { Severity::Warning } else { Severity::Info };
                findings.push(finding(Diagnostic::new(Code::Shadowed, severity, message), &earlier, &item));
                self.unused.push((earlier, Why::Shadowed));
            }
        }
    }
}

impl Merge<Entry> {
    /// Names go before aliases, so an entry of low trust would take an alias by having its name.
    fn refuse_aliases(&mut self, findings: &mut Vec<Arc<Finding>>) {
        let trusted = self.used.values().filter(|entry| entry.trust > Trust::Low);
        let aliases: FxHashMap<&str, &Arc<Entry>> =
            trusted.flat_map(|entry| entry.fields().aliases.iter().map(move |alias| (alias.as_str(), entry))).collect();
        let low = self.used.iter().filter(|(_, entry)| entry.trust == Trust::Low);
        let taken = low.filter_map(|(name, entry)| Some((name.clone(), entry.clone(), *aliases.get(&**name)?)));
        let taken: Vec<_> = taken.map(|(name, entry, other)| (name, entry, other.clone())).collect();
        for (name, entry, other) in taken {
            let message = format!("`{name}` is an alias of {}", other.document.path);
            findings.push(refused(message, &entry, &other));
            self.used.remove(&name);
            self.unused.push((entry, Why::Refused));
        }
    }
}

impl Merge<Index> {
    /// An index speaks for all commands of its domain, so one of low trust is used only where they are too.
    fn refuse_foreign(&mut self, entries: &Merge<Entry>, findings: &mut Vec<Arc<Finding>>) {
        let trusted = entries.used.values().filter(|entry| entry.trust > Trust::Low);
        let owners: FxHashMap<&str, &Arc<Entry>> =
            trusted.filter_map(|entry| Some((entry.domain.as_deref()?, entry))).collect();
        self.used.retain(|name, index| {
            let owner = owners.get(&**name).filter(|_| index.trust() == Trust::Low);
            if let Some(owner) = owner {
                let message = format!("the domain `{name}` has commands of the source `{}`", owner.source.name);
                findings.push(Finding::trusted(refusal(message, &**index)));
            }
            owner.is_none()
        });
    }
}

fn refusal<T: Named>(reason: String, item: &T) -> Diagnostic {
    let (why, hint) = match item.trust() < item.source().trust {
        true => ("it was imported with low trust".to_owned(), "give it another name"),
        false => (
            format!("the source `{}` has low trust", item.source().name),
            "give it another name, or give the source more trust",
        ),
    };
    let message = format!("{reason}, and {why}, so this one is not used");
    let diagnostic = Diagnostic::new(Code::ReplacementRefused, Severity::Warning, message);
    diagnostic.hint(hint).in_file(item.document().path.as_str())
}

fn refused<T: Named>(reason: String, item: &Arc<T>, other: &Arc<T>) -> Arc<Finding> {
    finding(refusal(reason, &**item), item, other)
}

fn finding<T: Named>(diagnostic: Diagnostic, at: &Arc<T>, other: &Arc<T>) -> Arc<Finding> {
    Arc::new(Finding {
        diagnostic: diagnostic.in_file(at.document().path.as_str()),
        about: [at.about(), other.about()].into_iter().flatten().collect(),
    })
}
