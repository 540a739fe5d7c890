//! All entries of a book at one time: merged over its sources, never changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use crate::assemble::{Assembled, Finding};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::Document;
use crate::entry::{Entry, Index};
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
    entries: Vec<Arc<Entry>>,
    names: FxHashMap<Arc<str>, EntryId>,
    aliases: FxHashMap<String, Vec<EntryId>>,
    domains: Vec<Domain>,
    unused: Vec<Unused>,
    findings: Vec<Finding>,
    pub(crate) words: OnceLock<Words>,
    pub(crate) visible: Mutex<Vec<Arc<Visible>>>,
}

impl Catalog {
    /// Merges what the sources hold, in their order: a later source's entry replaces an earlier one's of the same name,
    /// and within a source the first by path is used. Each that is not used has a finding.
    pub fn build(generation: u64, sources: Vec<Assembled>) -> Catalog {
        let mut findings = Vec::new();
        let mut unused = Vec::new();
        let mut entries = Merge::default();
        let mut indexes = Merge::default();
        for source in sources {
            findings.extend(source.findings);
            unused.extend(source.unselected.into_iter().map(|entry| Unused { entry, why: Why::Unselected }));
            entries.source(source.entries.into_iter().map(|entry| (entry.name.clone(), entry)), &mut findings);
            let named = |index: Arc<Index>| (Arc::from(index.domain.as_str()), index);
            indexes.source(source.indexes.into_iter().map(named), &mut findings);
        }
        unused.extend(entries.unused.drain(..).map(|(entry, why)| Unused { entry, why }));
        let entries: Vec<_> = entries.used.into_values().collect();
        let ids = || (0..entries.len() as u32).map(EntryId).zip(&entries);
        let names: FxHashMap<_, _> = ids().map(|(id, entry)| (entry.name.clone(), id)).collect();

        let mut aliases: FxHashMap<String, Vec<EntryId>> = FxHashMap::default();
        let mut domains: BTreeMap<String, Vec<EntryId>> = BTreeMap::new();
        for (id, entry) in ids() {
            if let Some(domain) = &entry.domain {
                domains.entry(domain.clone()).or_default().push(id);
            }
            for alias in &entry.fields().aliases {
                aliases.entry(alias.clone()).or_default().push(id);
                if let Some(other) = names.get(alias.as_str()).filter(|other| **other != id) {
                    let other = &entries[other.0 as usize];
                    let message =
                        format!("the alias `{alias}` is the name of {}, which is found first", other.document.path);
                    let diagnostic = Diagnostic::new(Code::AliasTaken, Severity::Warning, message);
                    findings.push(Finding {
                        diagnostic: diagnostic.in_file(entry.document.path.as_str()),
                        about: vec![entry.clone(), other.clone()],
                    });
                }
            }
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
        let place = |finding: &Finding| {
            let diagnostic = &finding.diagnostic;
            (diagnostic.path.clone(), diagnostic.line, diagnostic.code)
        };
        findings.sort_by_cached_key(place);
        Catalog {
            generation,
            entries,
            names,
            aliases,
            domains,
            unused,
            findings,
            words: OnceLock::new(),
            visible: Mutex::new(Vec::new()),
        }
    }

    /// How many times the book was loaded when this was built, from 1.
    pub fn generation(&self) -> u64 {
        self.generation
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

    /// The entries that have this alias, in the order of their names.
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

    /// What was found out about the files, by path and line.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// What entries and indexes have in common here.
trait Named {
    fn document(&self) -> &Document;
    fn source(&self) -> &str;
    fn about(self: &Arc<Self>) -> Option<Arc<Entry>>;
}

impl Named for Entry {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &str {
        &self.source.name
    }
    fn about(self: &Arc<Self>) -> Option<Arc<Entry>> {
        Some(self.clone())
    }
}

impl Named for Index {
    fn document(&self) -> &Document {
        &self.document
    }
    fn source(&self) -> &str {
        &self.source.name
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
    fn source(&mut self, named: impl Iterator<Item = (Arc<str>, Arc<T>)>, findings: &mut Vec<Finding>) {
        let mut own: BTreeMap<Arc<str>, Arc<T>> = BTreeMap::new();
        for (name, item) in named {
            match own.get(&name) {
                Some(first) => {
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
                None => {
                    own.insert(name, item);
                }
            }
        }
        if self.used.is_empty() {
            self.used = own;
            return;
        }
        for (name, item) in own {
            if let Some(earlier) = self.used.insert(name.clone(), item.clone()) {
                let place = format!("{} from the source `{}`", item.document().path, item.source());
                let message = format!("`{name}` is replaced by {place}");
                let diagnostic = Diagnostic::new(Code::Shadowed, Severity::Info, message);
                findings.push(finding(diagnostic, &earlier, &item));
                self.unused.push((earlier, Why::Shadowed));
            }
        }
    }
}

fn finding<T: Named>(diagnostic: Diagnostic, at: &Arc<T>, other: &Arc<T>) -> Finding {
    Finding {
        diagnostic: diagnostic.in_file(at.document().path.as_str()),
        about: [at.about(), other.about()].into_iter().flatten().collect(),
    }
}
