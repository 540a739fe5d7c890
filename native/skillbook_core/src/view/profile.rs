//! Profiles, and the rule that decides which entries a profile may see. No other place decides it.
//!
//! Four things must hold for an entry to be visible:
//!
//! - It belongs to the profile's tenant, or to all tenants.
//! - Its labels are within the profile's grants. An entry without labels is visible to all.
//! - Its name matches the profile's globs.
//! - It does not exclude the profile (`exclude_from_prompt_profile_ids`). For a note, exclusion
//!   only keeps it out of the prompt.
//!
//! The rule takes an [`Entry`] or the columns of a record that is not in any catalog yet
//! ([`sees`]), so that a write to the store is checked by the same code as a read.

use rustc_hash::FxHashSet;

use crate::catalog::entry::Entry;
use crate::glob::{BadGlob, Globs};
use crate::page::fields::Fields;
use crate::page::record::Access;
use crate::source::Kind;
use crate::tenant::Tenant;

/// The identity that reads a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its id. Entries name it in `proactive_for_profile_ids` and
    /// `exclude_from_prompt_profile_ids`.
    pub id: String,
    /// The ids of profiles that it acts for, as an agent acts for a user. An exclusion of one
    /// of them applies to it too, and so does a proactive entry.
    pub others: Vec<String>,
    /// Its tenant.
    pub tenant: Tenant,
    /// The labels that it may see; `None` for all.
    pub grants: Option<Vec<String>>,
    /// Lists of globs over names (case matters, `*` also matches dots). A name must match one glob
    /// of each list. There are several lists because a dispatched agent has its own and its
    /// caller's; no list means all names.
    pub skills: Vec<Vec<String>>,
    /// The services that it has a connection to, sorted. Models are not shown entries that need
    /// another one.
    pub services: Vec<String>,
}

impl Profile {
    /// The profile of trusted code, which sees everything.
    pub fn unrestricted() -> Profile {
        Profile {
            id: String::new(),
            others: Vec::new(),
            tenant: Tenant::All,
            grants: None,
            skills: Vec::new(),
            services: Vec::new(),
        }
    }

    /// Whether a list of ids has this profile or one that it acts for.
    pub(crate) fn is_among(&self, ids: &[String]) -> bool {
        ids.contains(&self.id) || self.others.iter().any(|id| ids.contains(id))
    }
}

/// A profile with its globs compiled and its grants as a set.
#[derive(Debug)]
pub(super) struct Rule {
    pub profile: Profile,
    grants: Option<FxHashSet<String>>,
    names: Vec<Globs>,
}

impl Rule {
    pub fn new(profile: &Profile) -> Result<Rule, BadGlob> {
        let names =
            profile.skills.iter().map(|globs| Globs::new(globs)).collect::<Result<_, _>>()?;
        let grants = profile.grants.as_ref().map(|grants| grants.iter().cloned().collect());
        Ok(Rule { profile: profile.clone(), grants, names })
    }

    /// That of nobody, for entries that are the same [for all](Rule::is_for_all).
    pub fn of_nobody() -> Rule {
        Rule { profile: Profile::unrestricted(), grants: None, names: Vec::new() }
    }

    /// Whether an entry with these fields is listed and in the prompt for all profiles or for none,
    /// among those that are admitted to its class and restrict no names.
    pub fn is_for_all(fields: &Fields) -> bool {
        fields.excluded_for.is_empty()
            && fields.proactive_for.is_empty()
            && fields.connection.is_none()
    }

    pub fn grants(&self, labels: &[String]) -> bool {
        self.grants.as_ref().is_none_or(|grants| labels.iter().all(|label| grants.contains(label)))
    }

    /// Whether it admits entries of a tenant with these labels, as far as these decide.
    pub fn admits_class(&self, tenant: &Tenant, labels: &[String]) -> bool {
        self.profile.tenant.reads(tenant) && self.grants(labels)
    }

    pub fn admits(&self, entry: &Entry) -> bool {
        self.admits_class(entry.tenant(), &entry.labels) && self.admits_one(entry)
    }

    /// Whether it admits an entry of a class that it admits.
    pub fn admits_one(&self, entry: &Entry) -> bool {
        self.admits_named(&entry.name, entry.kind, &entry.fields().excluded_for)
    }

    fn admits_named(&self, name: &str, kind: Kind, excluded_for: &[String]) -> bool {
        // An excluded skill cannot be loaded, so it must not be visible either. A note can still be
        // read by name.
        let excluded = || kind != Kind::Note && self.profile.is_among(excluded_for);
        self.names.iter().all(|globs| globs.matches(name)) && !excluded()
    }

    pub fn sees(&self, record: &Access) -> bool {
        record.entry().is_some_and(|(name, kind, labels, excluded)| {
            self.admits_class(&record.tenant, &labels) && self.admits_named(&name, kind, &excluded)
        })
    }

    pub fn includes(&self, fields: &Fields) -> bool {
        // Exclusion wins over inclusion.
        let excluded = self.profile.is_among(&fields.excluded_for);
        !excluded && (self.is_proactive(fields) || fields.include_in_prompt)
    }

    pub fn is_proactive(&self, fields: &Fields) -> bool {
        self.profile.is_among(&fields.proactive_for)
    }

    /// Whether a model may be shown the document.
    pub fn lists(&self, fields: &Fields) -> bool {
        let connected = |service| self.profile.services.contains(service);
        !fields.hidden_from_model && fields.connection.as_ref().is_none_or(connected)
    }

    pub fn in_prompt(&self, entry: &Entry) -> bool {
        self.lists(entry.fields()) && self.includes(entry.fields())
    }

    /// Whether globs restrict the names.
    pub fn has_globs(&self) -> bool {
        !self.names.is_empty()
    }

    pub fn has_all_names(&self) -> bool {
        self.grants.is_none() && !self.has_globs()
    }
}

/// The rule of a profile's views, for records that need not be in a catalog.
pub fn sees(profile: &Profile) -> Result<impl Fn(&Access) -> bool, BadGlob> {
    let rule = Rule::new(profile)?;
    Ok(move |record: &Access| rule.sees(record))
}
