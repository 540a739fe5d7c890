//! A catalog as one profile may see it. Whatever is read for somebody is read through a [`View`].
//!
//! An entry that a view does not show is, through that view, the same as one that was never written.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;

use crate::catalog::{Catalog, EntryId, Unused, Why};
use crate::diagnostic::Diagnostic;
use crate::document::Fields;
use crate::domain::DomainView;
use crate::entry::{Entry, Index};
use crate::glob::{BadGlob, Globs};
use crate::record::Access;
use crate::relations;
use crate::search::Scope;
use crate::source::Kind;

/// How many profiles' sets a catalog keeps.
const KEPT: usize = 64;

/// On whose behalf a catalog is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its id, which entries may name in `proactive_for_profile_ids` and `exclude_from_prompt_profile_ids`.
    pub id: String,
    /// The ids of others that it acts for as well: what is excluded for one of them is excluded for it.
    pub others: Vec<String>,
    /// The labels it may see; `None` for all.
    pub grants: Option<Vec<String>>,
    /// Lists of globs over the names of the entries it may see (case matters, `*` also matches dots); a name has to match
    /// one glob of each list. Without lists it may see all.
    pub skills: Vec<Vec<String>>,
}

impl Profile {
    /// Trusted code: sees everything.
    pub fn unrestricted() -> Profile {
        Profile { id: String::new(), others: Vec::new(), grants: None, skills: Vec::new() }
    }

    /// Whether these ids, for whom something is excluded, have one of those that it acts for.
    pub(crate) fn is_among(&self, excluded: &[String]) -> bool {
        excluded.contains(&self.id) || self.others.iter().any(|id| excluded.contains(id))
    }
}

/// Who may see what: labels within grants, a name that is allowed, and not excluded by the entry itself.
#[derive(Debug)]
struct Rule {
    profile: Profile,
    grants: Option<FxHashSet<String>>,
    names: Vec<Globs>,
}

impl Rule {
    fn new(profile: &Profile) -> Result<Rule, BadGlob> {
        let names = profile.skills.iter().map(|globs| Globs::new(globs)).collect::<Result<_, _>>()?;
        let grants = profile.grants.as_ref().map(|grants| grants.iter().cloned().collect());
        Ok(Rule { profile: profile.clone(), grants, names })
    }

    fn grants(&self, labels: &[String]) -> bool {
        self.grants.as_ref().is_none_or(|grants| labels.iter().all(|label| grants.contains(label)))
    }

    fn admits(&self, entry: &Entry) -> bool {
        self.admits_any(&entry.name, entry.kind, &entry.labels, &entry.fields().excluded_for)
    }

    fn admits_any(&self, name: &str, kind: Kind, labels: &[String], excluded_for: &[String]) -> bool {
        // An excluded skill cannot be loaded, so there is nothing to see; an excluded note only leaves the prompt.
        let excluded = || kind != Kind::Note && self.profile.is_among(excluded_for);
        let named = || self.names.iter().all(|globs| globs.matches(name));
        self.grants(labels) && named() && !excluded()
    }

    fn sees(&self, record: &Access) -> bool {
        let entry = record.entry();
        entry.is_some_and(|(name, kind, labels, excluded)| self.admits_any(&name, kind, &labels, &excluded))
    }

    fn includes(&self, fields: &Fields) -> bool {
        let proactive = fields.proactive_for.contains(&self.profile.id);
        !self.profile.is_among(&fields.excluded_for) && (proactive || fields.include_in_prompt)
    }

    fn in_prompt(&self, entry: &Entry) -> bool {
        !entry.fields().hidden_from_model && self.includes(entry.fields())
    }

    fn unrestricted(&self) -> bool {
        self.grants.is_none() && self.names.is_empty()
    }
}

/// Whether a profile may see a record, be it in a catalog or not: the rule of its views.
pub fn sees(profile: &Profile) -> Result<impl Fn(&Access) -> bool, BadGlob> {
    let rule = Rule::new(profile)?;
    Ok(move |record: &Access| rule.sees(record))
}

/// What a view knows of each entry without looking at it: prompts and lists go over all entries several times, and those
/// lie all over the memory.
pub(crate) mod about {
    use crate::entry::Entry;
    use crate::source::{Kind, Selection};

    /// The view shows it. What it does not show has no bits.
    pub const SHOWN: u8 = 1;
    /// A model is told of it.
    pub const LISTED: u8 = 1 << 1;
    /// It belongs into the prompt.
    pub const IN_PROMPT: u8 = 1 << 2;
    /// Its source's globs put it into the prompt as a whole.
    pub const INLINE: u8 = 1 << 3;
    /// It has a usage line.
    pub const USAGE: u8 = 1 << 4;
    pub const COMMAND: u8 = 1 << 5;
    pub const SKILL: u8 = 1 << 6;
    pub const NOTE: u8 = 1 << 7;

    /// The bits of an entry that is shown.
    pub fn of(entry: &Entry, in_prompt: bool) -> u8 {
        let kind = match entry.kind {
            Kind::Command => COMMAND,
            Kind::Skill => SKILL,
            Kind::Note => NOTE,
        };
        let fields = entry.fields();
        let more = [
            (!fields.hidden_from_model, LISTED),
            (in_prompt, IN_PROMPT),
            (entry.selection == Selection::Inline, INLINE),
            (fields.usage.is_some(), USAGE),
        ];
        more.iter().filter(|(is, _)| *is).fold(SHOWN | kind, |bits, (_, bit)| bits | bit)
    }
}

/// What one profile may see of a catalog, computed once and kept there.
#[derive(Debug)]
pub struct Visible {
    rule: Rule,
    /// Bits of [`about`].
    about: Vec<u8>,
    unused: Vec<Unused>,
    count: usize,
    pub(crate) prompt: OnceLock<Arc<str>>,
    relations: OnceLock<Vec<Diagnostic>>,
    pub(crate) search: OnceLock<Scope>,
}

impl Visible {
    fn new(catalog: &Catalog, rule: Rule) -> Visible {
        let about = |entry: &Arc<Entry>| if rule.admits(entry) { about::of(entry, rule.in_prompt(entry)) } else { 0 };
        let mut about: Vec<u8> = catalog.entries().iter().map(about).collect();
        let unused = catalog.settle(&mut about);
        let count = about.iter().filter(|about| **about != 0).count();
        let (prompt, relations, search) = Default::default();
        Visible { rule, about, unused, count, prompt, relations, search }
    }
}

/// A catalog as one profile may see it.
#[derive(Debug, Clone)]
pub struct View {
    catalog: Arc<Catalog>,
    pub(crate) visible: Arc<Visible>,
}

impl View {
    /// The catalog's view for a profile. What it may see is computed once and kept in the catalog for the 64 profiles
    /// that came last.
    pub fn new(catalog: Arc<Catalog>, profile: &Profile) -> Result<View, BadGlob> {
        if let Some(view) = View::kept(&catalog, profile) {
            return Ok(view);
        }
        let visible = Arc::new(Visible::new(&catalog, Rule::new(profile)?));
        {
            let mut kept = catalog.kept();
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push(visible.clone());
        }
        Ok(View { catalog, visible })
    }

    /// The view of a profile for which the catalog keeps what it may see.
    pub fn kept(catalog: &Arc<Catalog>, profile: &Profile) -> Option<View> {
        let visible = catalog.kept().iter().find(|visible| visible.rule.profile == *profile).cloned()?;
        Some(View { catalog: catalog.clone(), visible })
    }

    /// Whether both show the same of the same generation.
    pub fn is_same(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.visible, &other.visible)
    }

    /// The catalog behind it. What is read from there directly is not checked.
    pub fn catalog(&self) -> &Arc<Catalog> {
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
            texts.contains(&&*entry.name) || entry.title.as_deref().is_some_and(|title| texts.contains(&title))
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
        let ids = self.visible.about.iter().enumerate().filter(move |(_, about)| **about & of == wanted);
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

    /// The domains of which it shows a command, in the order of their names.
    pub fn domains(&self) -> impl Iterator<Item = DomainView<'_>> {
        self.catalog.domains().iter().filter_map(|domain| DomainView::new(self, domain))
    }

    /// The domain of this name.
    pub fn domain(&self, name: &str) -> Option<DomainView<'_>> {
        let domains = self.catalog.domains();
        let at = domains.binary_search_by(|domain| domain.name.as_str().cmp(name)).ok()?;
        DomainView::new(self, &domains[at])
    }

    /// Whether the profile may read an index. One that it may not read is as if it were not written.
    pub fn shows_index(&self, index: &Index) -> bool {
        let rule = &self.visible.rule;
        rule.grants(&index.labels) && !rule.profile.is_among(&index.fields().excluded_for)
    }

    /// The findings about entries that it shows, and what these say of each other, by path and line. Those about files
    /// that are no entries are for unrestricted views.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let rule = &self.visible.rule;
        let shown = |entries: &[Arc<Entry>]| match rule.unrestricted() {
            true => true,
            false => !entries.is_empty() && entries.iter().all(|entry| rule.admits(entry)),
        };
        let findings = self.catalog.findings().iter();
        let shown = findings.filter(|finding| shown(&finding.about)).map(|finding| &finding.diagnostic);
        let mut all: Vec<_> = shown.chain(self.visible.relations.get_or_init(|| relations::diagnose(self))).collect();
        all.sort_by(|a, b| a.place().cmp(&b.place()));
        all.into_iter()
    }
}
