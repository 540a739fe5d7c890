//! Profiles, and the rule by which they see entries.

use rustc_hash::FxHashSet;

use crate::catalog::entry::Entry;
use crate::glob::{BadGlob, Globs};
use crate::page::fields::Fields;
use crate::page::record::Access;
use crate::source::Kind;

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

    pub fn grants(&self, labels: &[String]) -> bool {
        self.grants.as_ref().is_none_or(|grants| labels.iter().all(|label| grants.contains(label)))
    }

    pub fn admits(&self, entry: &Entry) -> bool {
        self.admits_any(&entry.name, entry.kind, &entry.labels, &entry.fields().excluded_for)
    }

    fn admits_any(
        &self,
        name: &str,
        kind: Kind,
        labels: &[String],
        excluded_for: &[String],
    ) -> bool {
        // An excluded skill cannot be loaded, so there is nothing to see; an excluded note only leaves the prompt.
        let excluded = || kind != Kind::Note && self.profile.is_among(excluded_for);
        let named = || self.names.iter().all(|globs| globs.matches(name));
        self.grants(labels) && named() && !excluded()
    }

    pub fn sees(&self, record: &Access) -> bool {
        let entry = record.entry();
        entry.is_some_and(|(name, kind, labels, excluded)| {
            self.admits_any(&name, kind, &labels, &excluded)
        })
    }

    pub fn includes(&self, fields: &Fields) -> bool {
        let proactive = fields.proactive_for.contains(&self.profile.id);
        !self.profile.is_among(&fields.excluded_for) && (proactive || fields.include_in_prompt)
    }

    pub fn in_prompt(&self, entry: &Entry) -> bool {
        !entry.fields().hidden_from_model && self.includes(entry.fields())
    }

    pub fn unrestricted(&self) -> bool {
        self.grants.is_none() && self.names.is_empty()
    }
}

/// Whether a profile may see a record, be it in a catalog or not: the rule of its views.
pub fn sees(profile: &Profile) -> Result<impl Fn(&Access) -> bool, BadGlob> {
    let rule = Rule::new(profile)?;
    Ok(move |record: &Access| rule.sees(record))
}
