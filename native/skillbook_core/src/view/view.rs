//! [`View`]: one generation of a catalog as one profile may see it. All reads go through it.
//!
//! A hidden entry behaves exactly as if it had never been written: lookups, lists, suggestions,
//! counts and diagnostics are the same. `tests/leaks/` checks this against a catalog without the
//! hidden entries.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::about;
use super::cached::CachedCatalog;
use super::profile::{Profile, Rule};
use super::visible::Visible;
use crate::catalog::entry::{DomainIndex, Entry};
use crate::catalog::{EntryId, Unused, Why};
use crate::glob::BadGlob;
use crate::page::fields::Fields;
use crate::page::record::Access;
use crate::source::Trust;

/// A catalog as one profile may see it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct View {
    catalog: Arc<CachedCatalog>,
    pub(crate) visible: Arc<Visible>,
}

impl View {
    /// The view of a profile. Its visible set is computed once and cached in the catalog, for
    /// thousands of profiles.
    pub fn new(catalog: Arc<CachedCatalog>, profile: &Profile) -> Result<View, BadGlob> {
        // Two threads may build the same set at once. That is harmless: both are equal, and the
        // lock is not held for the time of building.
        if let Some(view) = View::cached(&catalog, profile) {
            return Ok(view);
        }
        let visible = Arc::new(Visible::new(&catalog, catalog.classes(), Rule::new(profile)?));
        catalog.cache(visible.clone());
        Ok(View { catalog, visible })
    }

    /// The view of a profile whose visible set is cached.
    pub fn cached(catalog: &Arc<CachedCatalog>, profile: &Profile) -> Option<View> {
        let visible = catalog.cached(profile)?;
        Some(View { catalog: catalog.clone(), visible })
    }

    /// Whether two views show the same generation to the same profile.
    pub fn is_same(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.visible, &other.visible)
    }

    /// The catalog behind the view. Reading from it directly skips the check.
    pub fn catalog(&self) -> &Arc<CachedCatalog> {
        &self.catalog
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.visible.rule.profile
    }

    /// A number for the content that the view shows. It differs from that of another generation if
    /// and only if an entry or an index of a domain has changed for the profile, so it says nothing
    /// about hidden entries. The catalog's own number counts all changes.
    pub fn generation(&self) -> u64 {
        *self.visible.generation.get_or_init(|| {
            // No position in the catalog goes in, since those count hidden entries too.
            let mut hasher = FxHasher::default();
            let digest = |id: EntryId| self.catalog.digests()[id.0 as usize];
            for (id, bits) in self.visible.bits.shown(0) {
                (digest(id), bits).hash(&mut hasher);
            }
            for Unused { id, why, by } in self.unused() {
                (digest(*id), digest(*by), *why).hash(&mut hasher);
            }
            // An index as the view shows it: without the lines of hidden commands. Everything else
            // of a domain comes from its entries.
            for domain in self.domains() {
                let Some(index) = domain.index() else { continue };
                (domain.name(), domain.path(), &index.fields().description).hash(&mut hasher);
                if !index.document.body().trim().is_empty() {
                    domain.body().hash(&mut hasher);
                }
            }
            // 59 bits are a small integer in Erlang.
            (hasher.finish() >> 5).max(1)
        })
    }

    /// Whether the view shows this entry.
    pub fn shows(&self, id: EntryId) -> bool {
        self.is(id, about::SHOWN)
    }

    /// Whether the profile may see a record, in the catalog or not.
    pub fn sees(&self, record: &Access) -> bool {
        self.visible.rule.sees(record)
    }

    /// The first skill or note of a file with one of these texts as its name or title.
    pub fn file(&self, texts: [&str; 2]) -> Option<EntryId> {
        let mut files = self.those(about::SHOWN | about::COMMAND, about::SHOWN);
        let is = |entry: &Entry| {
            texts.contains(&&*entry.name)
                || entry.title.as_deref().is_some_and(|title| texts.contains(&title))
        };
        files.find(|(id, entry)| !self.catalog.priority(*id).stored && is(entry)).map(|(id, _)| id)
    }

    /// The entry with this name, or the first with this alias.
    pub fn find(&self, name: &str) -> Option<EntryId> {
        self.find_named(name).or_else(|| self.find_aliased(name))
    }

    /// The entry with this name.
    pub fn find_named(&self, name: &str) -> Option<EntryId> {
        self.catalog.named(name).find(|id| self.shows(*id))
    }

    /// The first entry with this alias.
    pub fn find_aliased(&self, alias: &str) -> Option<EntryId> {
        self.catalog.aliased(alias).iter().copied().find(|id| self.shows(*id))
    }

    /// The name by which lists show an entry: its name, or the name in its own text if that leads
    /// to it too.
    pub(crate) fn listed_name<'a>(&self, entry: &'a Entry) -> &'a str {
        let own = entry.fields().own_name.as_deref();
        let leads = |own: &&str| {
            self.find(own).is_some_and(|id| std::ptr::eq(&**self.catalog.entry(id), entry))
        };
        own.filter(leads).unwrap_or(&entry.name)
    }

    /// The entry, if the view shows it.
    pub fn entry(&self, id: EntryId) -> Option<&Arc<Entry>> {
        self.shows(id).then(|| self.catalog.entry(id))
    }

    /// The shown entries, in the order of their names.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        self.those(about::SHOWN, about::SHOWN)
    }

    /// The shown entries from this name on, in the order of their names.
    pub fn starting_at(&self, name: &str) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        let start = self.catalog.entries().partition_point(|entry| *entry.name < *name);
        self.visible.bits.shown(start).map(|(id, _)| (id, self.catalog.entry(id)))
    }

    /// The bits of an entry, 0 for one that the view does not show.
    pub(super) fn about(&self, id: EntryId) -> u8 {
        self.visible.bits.get(id)
    }

    fn is(&self, id: EntryId, bit: u8) -> bool {
        self.about(id) & bit != 0
    }

    /// The entries whose bits, masked by `of`, are `wanted`, in the order of their names.
    pub(crate) fn those(&self, of: u8, wanted: u8) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        let those = self.visible.bits.shown(0).filter(move |(_, bits)| bits & of == wanted);
        those.map(|(id, _)| (id, self.catalog.entry(id)))
    }

    /// Whether prompts, lists and suggestions mention the entry to a model. An entry that is not
    /// listed can still be read and run by name; running one whose handler does not exist returns
    /// an error that says so.
    pub fn lists(&self, id: EntryId) -> bool {
        self.is(id, about::LISTED)
    }

    /// The listed entries, in the order of their names.
    pub fn listed(&self) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        self.those(about::LISTED, about::LISTED)
    }

    /// The entries that another listed entry of their name replaces, if they would be in the prompt
    /// themselves.
    pub(crate) fn shadowed_in_prompt(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        let shadowed = self.unused().iter().filter(|unused| unused.why == Why::Shadowed);
        let shadowed = shadowed.map(|unused| (unused.id, &**self.catalog.entry(unused.id)));
        // A replaced entry is mentioned only beside its winner: without that, the mention would be
        // the only sign of the name.
        let beside = |entry: &Entry| self.find_named(&entry.name).is_some_and(|id| self.lists(id));
        let in_prompt =
            |entry: &Entry| self.visible.rule.in_prompt(entry) && !self.catalog.is_broken(entry);
        shadowed.filter(move |(_, entry)| in_prompt(entry) && beside(entry))
    }

    /// The entries that the view would show if others did not replace them, in the order of their
    /// names.
    pub fn unused(&self) -> &[Unused] {
        &self.visible.unused
    }

    /// Whether the author of these fields wants the document in the profile's prompt.
    pub(crate) fn includes(&self, fields: &Fields) -> bool {
        self.visible.rule.includes(fields)
    }

    /// Whether the author of these fields wants the document first in the profile's prompt.
    pub(crate) fn wants_first(&self, fields: &Fields) -> bool {
        self.visible.rule.is_proactive(fields)
    }

    /// The number of shown entries.
    pub fn count(&self) -> usize {
        self.visible.count
    }

    /// Whether the entry is in the profile's prompt.
    pub fn in_prompt(&self, id: EntryId) -> bool {
        self.is(id, about::IN_PROMPT)
    }

    /// Whether the author of an entry wants it first in the profile's prompt. For authors of low
    /// trust the answer is no.
    pub(crate) fn is_proactive(&self, id: EntryId) -> bool {
        let entry = self.entry(id).filter(|entry| entry.trust > Trust::Low);
        self.in_prompt(id) && entry.is_some_and(|entry| self.wants_first(entry.fields()))
    }

    /// Whether a model may be shown an index.
    pub(super) fn lists_index(&self, index: &DomainIndex) -> bool {
        self.visible.rule.lists(index.fields())
    }

    /// Whether the profile may read an index. For others the index does not exist.
    pub fn shows_index(&self, index: &DomainIndex) -> bool {
        let rule = &self.visible.rule;
        rule.profile.tenant.reads(&index.source.tenant)
            && rule.grants(&index.labels)
            && !rule.profile.is_among(&index.fields().excluded_for)
    }
}
