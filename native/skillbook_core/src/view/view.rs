//! A catalog as one profile may see it. Whatever is read for somebody is read through a [`View`].
//!
//! An entry that a view does not show is, through that view, the same as one that was never written.

use std::sync::Arc;

use super::cached::CachedCatalog;
use super::profile::{Profile, Rule};
use super::visible::{about, Visible};
use crate::catalog::entry::{Entry, Index};
use crate::catalog::{EntryId, Unused, Why};
use crate::glob::BadGlob;
use crate::page::fields::Fields;
use crate::page::record::Access;

/// A catalog as one profile may see it.
#[derive(Debug, Clone)]
pub struct View {
    catalog: Arc<CachedCatalog>,
    pub(crate) visible: Arc<Visible>,
}

impl View {
    /// The catalog's view for a profile. What it may see is computed once and kept in the catalog for the 64 profiles
    /// that came last.
    pub fn new(catalog: Arc<CachedCatalog>, profile: &Profile) -> Result<View, BadGlob> {
        if let Some(view) = View::kept(&catalog, profile) {
            return Ok(view);
        }
        let visible = Arc::new(Visible::new(&catalog, Rule::new(profile)?));
        catalog.keep(visible.clone());
        Ok(View { catalog, visible })
    }

    /// The view of a profile for which the catalog keeps what it may see.
    pub fn kept(catalog: &Arc<CachedCatalog>, profile: &Profile) -> Option<View> {
        let visible = catalog.kept(profile)?;
        Some(View { catalog: catalog.clone(), visible })
    }

    /// Whether both show the same of the same generation.
    pub fn is_same(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.visible, &other.visible)
    }

    /// The catalog behind it. What is read from there directly is not checked.
    pub fn catalog(&self) -> &Arc<CachedCatalog> {
        &self.catalog
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.visible.rule.profile
    }

    /// The catalog's generation.
    pub fn generation(&self) -> u64 {
        self.catalog.generation()
    }

    /// Whether the view shows this entry.
    pub fn shows(&self, id: EntryId) -> bool {
        self.is(id, about::SHOWN)
    }

    /// Whether its profile may see a record, be it in the catalog or not.
    pub fn sees(&self, record: &Access) -> bool {
        self.visible.rule.sees(record)
    }

    /// The first skill or note of a file that has one of these texts as its name or its title.
    pub fn file(&self, texts: [&str; 2]) -> Option<EntryId> {
        let mut files = self.those(about::SHOWN | about::COMMAND, about::SHOWN);
        let is = |entry: &Entry| {
            texts.contains(&&*entry.name)
                || entry.title.as_deref().is_some_and(|title| texts.contains(&title))
        };
        files.find(|(id, entry)| !self.catalog.place(*id).stored && is(entry)).map(|(id, _)| id)
    }

    /// The entry of this name, else the first that has it as an alias.
    pub fn find(&self, name: &str) -> Option<EntryId> {
        self.find_named(name).or_else(|| self.find_aliased(name))
    }

    /// The entry of this name.
    pub fn find_named(&self, name: &str) -> Option<EntryId> {
        self.catalog.named(name).find(|id| self.shows(*id))
    }

    /// The first entry that has this alias.
    pub fn find_aliased(&self, alias: &str) -> Option<EntryId> {
        self.catalog.aliased(alias).iter().copied().find(|id| self.shows(*id))
    }

    /// An entry, if the view shows it.
    pub fn entry(&self, id: EntryId) -> Option<&Arc<Entry>> {
        self.shows(id).then(|| self.catalog.entry(id))
    }

    /// The entries that it shows, in the order of their names.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        self.those(about::SHOWN, about::SHOWN)
    }

    fn is(&self, id: EntryId, bit: u8) -> bool {
        self.visible.about.get(id.0 as usize).is_some_and(|about| about & bit != 0)
    }

    /// The entries that have of these bits of [`about`] the wanted ones, in the order of their names.
    pub(crate) fn those(&self, of: u8, wanted: u8) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        let ids =
            self.visible.about.iter().enumerate().filter(move |(_, about)| **about & of == wanted);
        ids.map(|(at, _)| EntryId(at as u32)).map(|id| (id, self.catalog.entry(id)))
    }

    /// Whether a model is told of the entry: in prompts, lists and suggestions. Who knows its name can read and run it
    /// in any case.
    pub fn lists(&self, id: EntryId) -> bool {
        self.is(id, about::LISTED)
    }

    /// The entries that a model is told of, in the order of their names.
    pub fn listed(&self) -> impl Iterator<Item = (EntryId, &Arc<Entry>)> {
        self.those(about::LISTED, about::LISTED)
    }

    /// The entries that another one of their name replaces, which is listed too, if they would belong into the prompt.
    pub(crate) fn shadowed_in_prompt(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        let shadowed = self.unused().iter().filter(|unused| unused.why == Why::Shadowed);
        let shadowed = shadowed.map(|unused| (unused.id, &**self.catalog.entry(unused.id)));
        let beside = |entry: &Entry| self.find_named(&entry.name).is_some_and(|id| self.lists(id));
        shadowed.filter(move |(_, entry)| self.visible.rule.in_prompt(entry) && beside(entry))
    }

    /// The entries that it would show if others did not take their place, in the order of their names.
    pub fn unused(&self) -> &[Unused] {
        &self.visible.unused
    }

    /// Whether a document with these fields belongs into the profile's prompt, as far as its author says.
    pub(crate) fn includes(&self, fields: &Fields) -> bool {
        self.visible.rule.includes(fields)
    }

    /// How many entries it shows.
    pub fn count(&self) -> usize {
        self.visible.count
    }

    /// Whether the entry belongs into the profile's prompt.
    pub fn in_prompt(&self, id: EntryId) -> bool {
        self.is(id, about::IN_PROMPT)
    }

    /// Whether the profile may read an index. One that it may not read is as if it were not written.
    pub fn shows_index(&self, index: &Index) -> bool {
        let rule = &self.visible.rule;
        rule.grants(&index.labels) && !rule.profile.is_among(&index.fields().excluded_for)
    }
}
