//! The order in which a limit keeps the pieces of a prompt.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::catalog::EntryId;
use crate::prompt::plan::Subject;
use crate::prompt::section::Section;
use crate::view::View;

/// The order of one view and one list of nearest entries.
pub(super) struct Order<'a> {
    proactive: FxHashSet<Subject<'a>>,
    nearest: FxHashMap<Subject<'a>, usize>,
}

/// The rank of a piece; the lowest is kept longest. Lines come before whole texts, so that one
/// large text does not push out all the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Preloaded,
    ProactiveLine,
    NearLine(usize),
    ProactiveText,
    NearText(usize),
    Other,
}

impl<'a> Order<'a> {
    /// The order for these names, nearest first. Names that the view does not list are skipped. A
    /// domain is as near as its nearest command.
    pub fn new(view: &'a View, names: &[String]) -> Order<'a> {
        let subjects = |id: EntryId| {
            let entry = view.entry(id).map(|entry| &**entry);
            let own = entry.map(|entry| Subject::Entry(id, entry.kind));
            own.into_iter()
                .chain(entry.and_then(|entry| entry.domain.as_deref()).map(Subject::Domain))
        };
        let mut nearest = FxHashMap::default();
        let listed = names.iter().filter_map(|name| view.find(name)).filter(|id| view.lists(*id));
        for (rank, id) in listed.enumerate() {
            for subject in subjects(id) {
                nearest.entry(subject).or_insert(rank);
            }
        }
        let proactive = view.listed().filter(|(id, _)| view.is_proactive(*id));
        let proactive = proactive.flat_map(|(id, _)| subjects(id));
        let domains = view.domains().filter(|domain| domain.is_proactive());
        let domains = domains.map(|domain| Subject::Domain(domain.name()));
        let proactive = proactive.chain(domains).collect();
        Order { proactive, nearest }
    }

    pub fn rank(&self, section: Section, subject: Subject<'a>) -> Rank {
        if section == Section::PreloadedSkills {
            return Rank::Preloaded;
        }
        let is_proactive = self.proactive.contains(&subject);
        let near = self.nearest.get(&subject).copied();
        match (section.has_whole_texts(), is_proactive, near) {
            (false, true, _) => Rank::ProactiveLine,
            (false, false, Some(rank)) => Rank::NearLine(rank),
            (true, true, _) => Rank::ProactiveText,
            (true, false, Some(rank)) => Rank::NearText(rank),
            (_, false, None) => Rank::Other,
        }
    }
}
