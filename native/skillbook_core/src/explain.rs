//! Shows which file a name resolves to for a profile, and why, up to its place in the prompt.
//!
//! The answer lists every file that the name could mean: the one in use, shadowed ones, files that
//! are no entries, and hidden ones with the reason. It reveals entries that the profile may not
//! see, so it is for trusted code only.

use std::sync::Arc;

use crate::catalog::entry::{DomainIndex, Entry};
use crate::catalog::finding::Finding;
use crate::catalog::{Catalog, EntryId, Unused, Why};
use crate::glob::Globs;
use crate::hidden;
use crate::page::diagnostic::Diagnostic;
use crate::page::document::{strip_md, SKILL_FILE};
use crate::prompt::{Options, Placement, Reason};
use crate::source::Kind;
use crate::tenant::Tenant;
use crate::view::{Profile, View};

/// The explanation of a name.
#[derive(Debug, PartialEq)]
pub struct Explanation {
    /// The files that the name could mean, sorted by state and path; the ones in use come first.
    pub files: Vec<Explained>,
    /// Similar names, if there are no files.
    pub close: Vec<String>,
}

impl Explanation {
    /// The text of the command line: a paragraph for each file. `name` is the name that was looked
    /// up.
    pub fn text(&self, name: &str, profile: &str) -> String {
        if self.files.is_empty() {
            let close = match self.close.is_empty() {
                true => String::new(),
                false => format!("; similar names: {}", self.close.join(", ")),
            };
            return hidden::line(&format!("{name}: no file has this name{close}")).into_owned();
        }
        let files: Vec<String> = self.files.iter().map(|file| file.text(profile)).collect();
        files.join("\n\n")
    }
}

/// The explanation of a file.
#[derive(Debug, PartialEq)]
pub struct Explained {
    /// The path.
    pub path: String,
    /// The name of its entry; `None` without one.
    pub name: Option<String>,
    /// The name of its source; `None` without an entry.
    pub source: Option<String>,
    /// Its state for the profile. For a hidden file, its state in the unrestricted view.
    pub state: State,
    /// The file that is used instead.
    pub by: Option<String>,
    /// The reasons why it is hidden from the profile. Empty if it is visible, or not used in the
    /// unrestricted view either.
    pub hidden: Vec<String>,
    /// Its place in the profile's prompt; `None` if it is hidden.
    pub prompt: Option<String>,
    /// Its diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

impl Explained {
    fn text(&self, profile: &str) -> String {
        let mut lines = vec![self.path.clone()];
        lines.extend(self.source.as_ref().map(|source| format!("from the source `{source}`")));
        lines.push(self.state_text());
        lines.extend(self.hidden.iter().map(|why| format!("hidden from `{profile}`: {why}")));
        let prompt = |place: &String| format!("in the prompt of `{profile}`: {place}");
        lines.extend(self.prompt.as_ref().map(prompt));
        let bare = |found: &Diagnostic| Diagnostic { path: None, hint: None, ..found.clone() };
        lines.extend(self.diagnostics.iter().map(|found| bare(found).to_string()));
        lines.iter().map(|line| hidden::line(line)).collect::<Vec<_>>().join("\n  ")
    }

    fn state_text(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let by = self.by.as_deref().unwrap_or("another source");
        match self.state {
            State::Used => format!("used as `{name}`"),
            State::Index => "the index of the domain".to_owned(),
            State::Shadowed => format!("not used: `{name}` comes from a later source, {by}"),
            State::Duplicate => format!("not used: `{name}` comes first in its source from {by}"),
            State::NotSelected => format!("not used: no glob of its source selects `{name}`"),
            State::Refused => {
                format!("not used: its source has low trust, and `{name}` is used from {by}")
            }
            State::NoEntry => "not an entry".to_owned(),
        }
    }
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is the entry of its name.
    Used,
    /// It is the index of a domain.
    Index,
    /// A later source has an entry of the same name, or the store has one of the same title.
    Shadowed,
    /// Its source has another entry of the same name, which takes precedence.
    Duplicate,
    /// No glob of its source selects it.
    NotSelected,
    /// Its source has low trust, and another source has an entry of the same name.
    Refused,
    /// It is not an entry; its diagnostics have the reason.
    NoEntry,
}

impl State {
    /// The name in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Used => "used",
            State::Index => "index",
            State::Shadowed => "shadowed",
            State::Duplicate => "duplicate",
            State::NotSelected => "not_selected",
            State::Refused => "refused",
            State::NoEntry => "no_entry",
        }
    }
}

/// Explains a name for the view's profile and a prompt with these options.
///
/// Documents of tenants that `seer` does not read are left out: the answer is for somebody who may
/// see everything of these tenants.
///
/// A name can mean a file through the name or an alias of its entry, or through the name of the
/// file or its folder.
pub fn explain(view: &View, seer: &Tenant, name: &str, options: &Options) -> Explanation {
    let catalog = view.catalog();
    let mut files: Vec<Explained> = Vec::new();
    let means = |entry: &Entry| seer.reads(entry.tenant()) && means(entry, name);
    for (id, entry) in (0..).map(EntryId).zip(catalog.entries()).filter(|(_, entry)| means(entry)) {
        let hidden = hidden(view.profile(), entry);
        // A hidden entry does not take part in the profile's precedence. Its state comes from the
        // unrestricted view.
        let all = if hidden.is_empty() { view.unused() } else { catalog.unused() };
        let explained = match find(all, id) {
            None => {
                let prompt = if hidden.is_empty() { placement(view, options, id) } else { None };
                let mut file = of_entry(view, entry, State::Used);
                file.diagnostics.extend(view.handler_problem(id));
                file.diagnostics.sort_by(|a, b| a.place().cmp(&b.place()));
                Explained { hidden, prompt, ..file }
            }
            Some(unused) => {
                let mut file = of_entry(view, entry, state(unused.why));
                file.by = place_taker(catalog, all, unused, seer);
                file.diagnostics.push(catalog.diagnose(unused));
                file.diagnostics.sort_by(|a, b| a.place().cmp(&b.place()));
                file
            }
        };
        files.push(explained);
    }
    // Entries that no glob selects are not in the catalog, but a user would look for them.
    for entry in catalog.unselected().iter().filter(|entry| means(entry)) {
        files.push(of_entry(view, entry, State::NotSelected));
    }
    for domain in catalog.domains() {
        let seen = view
            .domain(&domain.name)
            .and_then(|domain| domain.index().map(|index| &index.document.path));
        let all = catalog.index(domain, |_| true, |id| catalog.uses(id));
        let is_used = |index: &DomainIndex| {
            let path = &index.document.path;
            seen == Some(path) || all.is_some_and(|used| used.document.path == *path)
        };
        let means = |index: &DomainIndex| {
            seer.reads(&index.source.tenant)
                && (domain.name == name || means_path(&index.document.path, name))
        };
        for (_, index) in domain.indexes.iter().filter(|(_, index)| is_used(index) && means(index))
        {
            let source = Some(index.source.name.clone());
            files.push(Explained { source, ..of_path(view, &index.document.path, State::Index) });
        }
    }
    // Files that are no entries are only known from their findings.
    let known = |path: &str| files.iter().any(|file| file.path == path);
    let findings = catalog.findings().iter().filter(|finding| seer.reads(&finding.tenant));
    let paths = findings.filter_map(|finding| finding.diagnostic.path.as_deref());
    let mut others: Vec<&str> =
        paths.filter(|path| means_path(path, name) && !known(path)).collect();
    others.dedup();
    files.extend(others.into_iter().map(|path| of_path(view, path, State::NoEntry)));
    files.sort_by(|a, b| (a.state, &a.path).cmp(&(b.state, &b.path)));
    let close = if files.is_empty() { close(view, seer, name) } else { Vec::new() };
    Explanation { files, close }
}

fn state(why: Why) -> State {
    match why {
        Why::Shadowed => State::Shadowed,
        Why::Duplicate => State::Duplicate,
        Why::Refused => State::Refused,
    }
}

fn find(unused: &[Unused], id: EntryId) -> Option<&Unused> {
    unused.binary_search_by_key(&id, |unused| unused.id).ok().map(|at| &unused[at])
}

/// The file that is finally used instead of an entry. The first replacement may be replaced itself.
/// An alias does not replace an entry.
fn place_taker(
    catalog: &Catalog,
    all: &[Unused],
    unused: &Unused,
    seer: &Tenant,
) -> Option<String> {
    let entry = catalog.entry(unused.id);
    let mut by = unused.by;
    while let Some(unused) = find(all, by) {
        by = unused.by;
    }
    let by = catalog.entry(by);
    let told = seer.reads(by.tenant()) && (unused.why != Why::Refused || by.name == entry.name);
    told.then(|| by.document.path.clone())
}

/// Similar names in the view of everything, since the name may be a hidden one.
fn close(view: &View, seer: &Tenant, name: &str) -> Vec<String> {
    let profile = Profile { tenant: seer.clone(), ..Profile::unrestricted() };
    let all = View::new(view.catalog().clone(), &profile);
    all.map_or(Vec::new(), |all| all.suggest_path(name).into_iter().map(str::to_owned).collect())
}

fn means(entry: &Entry, name: &str) -> bool {
    &*entry.name == name
        || entry.fields().aliases.iter().any(|alias| alias == name)
        || means_path(&entry.document.path, name)
}

/// Whether a path ends in this name, as a file or as the folder of a `SKILL.md`. `.md` may be
/// missing, and `mail.send` also means `mail/send.md`.
fn means_path(path: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let tail = |path: &str| {
        path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let stem = strip_md(path);
    let folder = path.strip_suffix(SKILL_FILE).map(|folder| folder.trim_end_matches('/'));
    let action = || {
        name.split_once('.')
            .is_some_and(|(domain, action)| stem.ends_with(&format!("/{domain}/{action}")))
    };
    !name.is_empty() && (tail(path) || folder.map_or_else(|| tail(stem) || action(), tail))
}

fn of_path(view: &View, path: &str, state: State) -> Explained {
    Explained {
        path: path.to_owned(),
        name: None,
        source: None,
        state,
        by: None,
        hidden: Vec::new(),
        prompt: None,
        diagnostics: found(view, path, |_| true),
    }
}

fn of_entry(view: &View, entry: &Arc<Entry>, state: State) -> Explained {
    let (name, source) = (Some(entry.name.to_string()), Some(entry.source.name.clone()));
    // Records of the same name have the same path.
    let own =
        |finding: &Finding| finding.about.first().is_none_or(|about| Arc::ptr_eq(about, entry));
    let diagnostics = found(view, &entry.document.path, own);
    Explained { name, source, diagnostics, ..of_path(view, &entry.document.path, state) }
}

fn found(view: &View, path: &str, own: impl Fn(&Finding) -> bool) -> Vec<Diagnostic> {
    let findings = view.catalog().findings().iter().filter(|finding| own(finding));
    let findings = findings.map(|finding| &finding.diagnostic);
    findings.filter(|diagnostic| diagnostic.path.as_deref() == Some(path)).cloned().collect()
}

/// The reasons why an entry is hidden from a profile.
fn hidden(profile: &Profile, entry: &Entry) -> Vec<String> {
    let mut reasons = Vec::new();
    if !profile.tenant.reads(entry.tenant()) {
        let tenant = entry.tenant().name().unwrap_or_default();
        reasons.push(format!("it belongs to the tenant `{tenant}`, and the profile does not"));
    }
    let missing = entry
        .labels
        .iter()
        .filter(|label| profile.grants.as_ref().is_some_and(|grants| !grants.contains(label)));
    for label in missing {
        reasons.push(format!("the profile does not have its label `{label}`"));
    }
    let unnamed =
        |globs: &Vec<String>| Globs::new(globs).is_ok_and(|globs| !globs.matches(&entry.name));
    if profile.skills.iter().any(unnamed) {
        reasons.push("no glob of the profile's skills matches its name".to_owned());
    }
    if entry.kind != Kind::Note && profile.is_among(&entry.fields().excluded_for) {
        reasons.push("its exclude_from_prompt_profile_ids names the profile".to_owned());
    }
    reasons
}

/// The place of a visible entry in the prompt.
fn placement(view: &View, options: &Options, id: EntryId) -> Option<String> {
    let entry = view.entry(id)?;
    Some(match view.placement(options, id) {
        Placement::Section(section) => format!("in the section `{}`", section.as_str()),
        Placement::Domain => "only with its domain".to_owned(),
        Placement::Cut(section) => {
            format!("left out of the section `{}` for lack of space", section.as_str())
        }
        Placement::NotInPrompt(Reason::NotShown) => return None,
        Placement::NotInPrompt(Reason::HiddenFromModel) => {
            "nowhere: disable-model-invocation is true".to_owned()
        }
        Placement::NotInPrompt(Reason::NotConnected) => {
            let service = entry.fields().connection.as_deref().unwrap_or_default();
            format!("nowhere: the profile has no connection to a service for {service}")
        }
        Placement::NotInPrompt(Reason::Broken) => "nowhere: its handler does not exist".to_owned(),
        Placement::NotInPrompt(Reason::NotIncluded) => {
            match view.profile().is_among(&entry.fields().excluded_for) {
                true => "nowhere: its exclude_from_prompt_profile_ids names the profile".to_owned(),
                false => "nowhere: include_in_prompt is false".to_owned(),
            }
        }
        Placement::NotInPrompt(Reason::NoSection) => {
            "nowhere: no section lists entries of its kind".to_owned()
        }
    })
}
