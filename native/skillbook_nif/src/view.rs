//! Views: a generation as one profile may see it, and everything that is read through it.

use std::sync::{Arc, OnceLock};

use rustler::{Binary, Encoder, Env, NifMap, NifResult, NifUnitEnum, Resource, ResourceArc, Term};
use skillbook_bridge::twin;
use skillbook_core::catalog::EntryId;
use skillbook_core::hidden::reveal;
use skillbook_core::prompt::{Format, Limit, Options, Section};
use skillbook_core::source::Kind;
use skillbook_core::tenant::Tenant;
use skillbook_core::view::domain::DomainView;
use skillbook_core::view::help::Help;
use skillbook_core::view::pick::Found;
use skillbook_core::view::tools::allows;
use skillbook_core::view::triggers::Triggered;
use skillbook_core::view::{spelling, View};
use skillbook_files::resource;

use crate::catalog::{self, CatalogResource};
use crate::encode;
use crate::profile::{list_or_all, profile};
use crate::shared::{binary, TextResource};
use crate::store::{seen, texts};

mod atoms {
    rustler::atoms! {
        ok,
        error,
        nil,
        all,
        away,
        unknown,
        bad_glob,
        __struct__,
        domain = "Elixir.Skillbook.Domain",
        name,
        description,
        body,
        path,
        requests,
        not,
    }
}

/// A view with the generation that it reads.
pub struct ViewResource {
    view: View,
    catalog: ResourceArc<CatalogResource>,
    /// The default prompt as a text that binaries can share, made when it is first needed.
    prompt: OnceLock<ResourceArc<TextResource>>,
}

#[rustler::resource_impl]
impl Resource for ViewResource {}

impl ViewResource {
    /// The entry with this name or alias, if the view shows it.
    pub fn find(&self, name: &str) -> Option<EntryId> {
        self.view.find(name)
    }

    /// The same for bytes. If they are not UTF-8, no entry has this name.
    fn find_bytes(&self, name: &[u8]) -> Option<EntryId> {
        std::str::from_utf8(name).ok().and_then(|name| self.find(name))
    }

    /// The `%Skillbook.Entry{}` for an id from [`ViewResource::find`].
    pub fn entry_term<'a>(&self, env: Env<'a>, id: EntryId) -> Term<'a> {
        catalog::entry_term(env, self.view.catalog().entry(id))
    }

    pub fn declaration_term<'a>(&self, env: Env<'a>, id: EntryId) -> Term<'a> {
        catalog::declaration_term(env, self.view.catalog().entry(id))
    }

    /// Whether the generation has few entries, so that going through all of them is quick.
    pub fn is_small(&self) -> bool {
        self.view.catalog().entries().len() <= twin::ITEMS
    }

    /// Whether a domain has few entries and a short index.
    fn is_small_domain(&self, domain: &DomainView) -> bool {
        let index = domain.index().map_or(0, |index| index.document.body().len());
        domain.entries().nth(twin::ITEMS).is_none() && index <= twin::COPIED_BYTES
    }

    /// Whether the answer of `get_skill` to a path is short and does not need a file.
    fn is_quick_help(&self, path: &str) -> bool {
        let path = path.trim();
        // The answer may come from an entry, a domain or both; each of them must be short.
        let entry = self.find(path).and_then(|id| self.view.entry(id));
        let domain = self.view.domain(path);
        let known = entry.is_some() || domain.is_some() || (path.is_empty() && self.is_small());
        // `DOMAIN.all`, which may be an alias too, is as long as all commands of the domain.
        known
            && !path.ends_with(".all")
            && entry.is_none_or(|entry| entry.body().len() <= twin::COPIED_BYTES)
            && domain.is_none_or(|domain| self.is_small_domain(&domain))
    }

    /// The view of the core.
    pub fn core(&self) -> &View {
        &self.view
    }

    /// The profile's view of the current generation, made of a catalog that also has the entries
    /// of which the profile may know nothing, for somebody who may see everything of a tenant.
    pub fn for_seer(&self, seer: &Tenant) -> NifResult<View> {
        let (parts, profile) = (&self.catalog.parts, self.view.profile());
        let catalog = match profile.tenant == *seer {
            true => parts.of_tenant(seer),
            false => parts.whole(),
        };
        View::new(catalog, profile).map_err(|_| rustler::Error::BadArg)
    }
}

twin! {
    /// `{:ok, view, generation}`, `{:error, {:bad_glob, glob, message}}`, or `:away` if records of
    /// the tenant have to be fetched first.
    "DirtyCpu" fn view_new_now | view_new_dirty(
        env,
        catalog: ResourceArc<CatalogResource>,
        ids: Vec<String>,
        tenant: Term<'a>,
        grants: Term<'a>,
        skills: Vec<Vec<String>>,
        services: Vec<String>
    )
    ready {
        let profile = profile(ids, tenant, grants, skills, services)?;
        catalog.parts.cached(&profile).map(|view| encode_view(env, view, catalog))
    }
    => {
        let profile = profile(ids, tenant, grants, skills, services)?;
        Ok(match catalog.parts.view_if_there(&profile) {
            None => atoms::away().encode(env),
            Some(Ok(view)) => encode_view(env, view, catalog),
            Some(Err(bad)) => {
                (atoms::error(), (atoms::bad_glob(), bad.glob, bad.message)).encode(env)
            }
        })
    }
}

fn encode_view<'a>(env: Env<'a>, view: View, catalog: ResourceArc<CatalogResource>) -> Term<'a> {
    let number = view.generation();
    (atoms::ok(), ResourceArc::new(ViewResource { view, catalog, prompt: OnceLock::new() }), number)
        .encode(env)
}

/// The id of the record that the view uses under a name, for trusted code; `nil` if it is an entry
/// of a file, or unknown.
#[rustler::nif]
fn view_record(view: ResourceArc<ViewResource>, name: String) -> Option<i64> {
    let entry = view.view.find_named(&name).and_then(|id| view.view.entry(id))?;
    entry.document.of_record().map(|record| record.id)
}

/// The first skill or note of a file with one of these texts as its name or title, or `nil`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_file<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    name: &str,
    title: &str,
) -> Option<Term<'a>> {
    view.core().file([name, title]).map(|id| view.entry_term(env, id))
}

/// The entry, or `nil`.
#[rustler::nif]
fn view_fetch<'a>(env: Env<'a>, view: &'a ViewResource, name: Binary) -> Term<'a> {
    match view.find_bytes(&name) {
        Some(id) => view.entry_term(env, id),
        None => atoms::nil().encode(env),
    }
}

/// The frontmatter of an entry, unchanged, with its `---` lines; `nil` if the view does not show
/// the entry.
#[rustler::nif]
fn view_frontmatter<'a>(env: Env<'a>, view: &'a ViewResource, name: Binary) -> Term<'a> {
    match view.find_bytes(&name).and_then(|id| view.view.entry(id)) {
        Some(entry) => {
            let text = TextResource::new(entry.document.text.clone());
            binary(env, &text, 0..entry.document.body_range().start)
        }
        None => atoms::nil().encode(env),
    }
}

/// The names among which suggestions are looked for.
#[derive(NifUnitEnum)]
pub enum Suggested {
    Entries,
    Paths,
    Stored,
}

twin! {
    /// Shown names that are similar to this one.
    "DirtyCpu" fn view_suggest_now | view_suggest_dirty(
        env, view: ResourceArc<ViewResource>, name: Binary<'a>, among: Suggested
    )
    if view.is_small() && name.len() <= twin::NAME_BYTES
    => Ok(match (std::str::from_utf8(&name), among) {
        (Ok(name), Suggested::Entries) => view.core().suggest(name),
        (Ok(name), Suggested::Paths) => view.core().suggest_path(name),
        (Ok(name), Suggested::Stored) => view.core().suggest_stored(name),
        (Err(_), _) => Vec::new(),
    }
    .encode(env))
}

twin! {
    /// Shown names of entries and domains that this text means in another spelling.
    "DirtyCpu" fn view_spelled_now | view_spelled_dirty(
        env, view: ResourceArc<ViewResource>, text: Binary<'a>
    )
    if view.is_small() && text.len() <= twin::NAME_BYTES
    => Ok(match std::str::from_utf8(&text) {
        Ok(text) => view.core().spelled(text),
        Err(_) => Vec::new(),
    }
    .encode(env))
}

twin! {
    /// Those of some names that no entry has.
    "DirtyCpu" fn view_missing_now | view_missing_dirty(
        env, view: ResourceArc<ViewResource>, names: Vec<&'a str>
    )
    if names.len() <= twin::ITEMS
    => {
        let missing = |name: &&str| view.core().find_named(name).is_none();
        Ok(names.into_iter().filter(missing).collect::<Vec<_>>().encode(env))
    }
}

/// The names of those entries that may be loaded for a request.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_pickable(view: ResourceArc<ViewResource>, names: Vec<String>) -> Vec<String> {
    let pickable =
        |name: &String| view.core().find_named(name).is_some_and(|id| view.core().may_pick(id));
    names.into_iter().filter(pickable).collect()
}

/// The first names of the entries that may be loaded for a request, at most so many.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_pickables(view: ResourceArc<ViewResource>, most: usize) -> Vec<String> {
    view.core().pickable().take(most).map(|(_, entry)| entry.name.to_string()).collect()
}

/// The names of the entries that the profile always gets whole.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_proactive<'a>(env: Env<'a>, view: ResourceArc<ViewResource>) -> Term<'a> {
    let entries = view.core().proactive().filter_map(|id| view.core().entry(id));
    entries.map(|entry| entry.name.to_string()).collect::<Vec<_>>().encode(env)
}

/// An entry with a keyword in a text.
#[derive(NifMap)]
struct TriggeredTerm {
    name: String,
    keyword: String,
    confidence: f64,
    reason: String,
}

/// The entries with a keyword in a text.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_triggered(view: ResourceArc<ViewResource>, text: &str) -> Vec<TriggeredTerm> {
    let term = |triggered: Triggered| {
        let found = Found::from(&triggered);
        Some(TriggeredTerm {
            name: view.core().entry(found.id)?.name.to_string(),
            keyword: triggered.keyword,
            confidence: found.confidence,
            reason: found.reason,
        })
    };
    view.core().triggered(text).into_iter().filter_map(term).collect()
}

twin! {
    /// The form in which texts are equal that differ in case and separators only.
    "DirtyCpu" fn spelling_now | spelling_dirty(env, text: &'a str)
    text text.len()
    => Ok(spelling(text).encode(env))
}

/// The declaration of an entry, `nil` if its page declares nothing, or `:unknown`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_flags<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: Binary) -> Term<'a> {
    match view.find_bytes(&name) {
        None => atoms::unknown().encode(env),
        Some(id) => view.declaration_term(env, id),
    }
}

/// The requests of an entry's `examples`, `%{requests: texts, not: texts}`, or `:unknown`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_examples<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    name: Binary,
) -> NifResult<Term<'a>> {
    let Some(entry) = view.find_bytes(&name).and_then(|id| view.view.entry(id)) else {
        return Ok(atoms::unknown().encode(env));
    };
    let examples = &entry.fields().examples;
    let texts = |not| {
        let chosen = examples.iter().filter(|example| example.not == not);
        chosen.map(|example| example.text.as_str()).collect::<Vec<_>>()
    };
    encode::map(
        env,
        [(atoms::requests(), texts(false).encode(env)), (atoms::not(), texts(true).encode(env))],
    )
}

twin! {
    /// Whether the view's profile may see each of these records, by the rule of `stored_visible`.
    "DirtyCpu" fn view_sees_now | view_sees_dirty(
        env, view: ResourceArc<ViewResource>, rows: Vec<Term<'a>>
    )
    text texts(&rows)
    => Ok(seen(rows, |record| view.core().sees(record))?.encode(env))
}

#[rustler::nif]
fn view_count(view: ResourceArc<ViewResource>) -> usize {
    view.core().count()
}

#[derive(NifUnitEnum)]
pub enum EntryKind {
    Command,
    Skill,
    Note,
}

impl EntryKind {
    pub fn kind(self) -> Kind {
        match self {
            EntryKind::Command => Kind::Command,
            EntryKind::Skill => Kind::Skill,
            EntryKind::Note => Kind::Note,
        }
    }
}

twin! {
    /// The entries of a domain or of a kind; both are optional. With `listed`, only those that a
    /// model is offered.
    "DirtyCpu" fn view_entries_now | view_entries_dirty(
        env,
        view: ResourceArc<ViewResource>,
        domain: Option<&str>,
        kind: Option<EntryKind>,
        listed: bool
    )
    if match domain {
        Some(name) => {
            let domain = view.core().domain(name);
            domain.is_none_or(|domain| domain.entries().nth(twin::ITEMS).is_none())
        }
        None => view.is_small(),
    }
    => Ok(entries(env, &view, domain, kind, listed))
}

fn entries<'a>(
    env: Env<'a>,
    view: &ViewResource,
    domain: Option<&str>,
    kind: Option<EntryKind>,
    listed: bool,
) -> Term<'a> {
    let kind = kind.map(EntryKind::kind);
    let found: Vec<_> = match domain {
        Some(name) => view.core().domain(name).iter().flat_map(|domain| domain.entries()).collect(),
        None => view.core().entries().collect(),
    };
    let found = found.into_iter().filter(|(_, entry)| kind.is_none_or(|kind| entry.kind == kind));
    let found = found.filter(|(id, _)| !listed || view.core().lists(*id));
    found.map(|(id, _)| view.entry_term(env, id)).collect::<Vec<_>>().encode(env)
}

twin! {
    /// The first `limit` entries from a name on; with `listed`, of those that a model is offered,
    /// which may be far apart.
    "DirtyCpu" fn view_page_now | view_page_dirty(
        env,
        view: ResourceArc<ViewResource>,
        from: &str,
        limit: usize,
        listed: bool
    )
    if limit <= twin::ITEMS && (!listed || view.is_small())
    => {
        let found = view.core().starting_at(from);
        let found = found.filter(|(id, _)| !listed || view.core().lists(*id));
        let terms = found.take(limit).map(|(id, _)| view.entry_term(env, id));
        Ok(terms.collect::<Vec<_>>().encode(env))
    }
}

twin! {
    /// The names of the entries of a kind; with `listed`, of those that a model is offered.
    "DirtyCpu" fn view_names_now | view_names_dirty(
        env,
        view: ResourceArc<ViewResource>,
        kind: Option<EntryKind>,
        listed: bool
    )
    if view.is_small()
    => {
        let kind = kind.map(EntryKind::kind);
        let found = view.core().entries().filter(|(id, entry)| {
            kind.is_none_or(|kind| entry.kind == kind) && (!listed || view.core().lists(*id))
        });
        Ok(found.map(|(_, entry)| &*entry.name).collect::<Vec<&str>>().encode(env))
    }
}

twin! {
    "DirtyCpu" fn view_domains_now | view_domains_dirty(env, view: ResourceArc<ViewResource>)
    if view.is_small() && view.core().domains().all(|domain| view.is_small_domain(&domain))
    => {
        let domains = view.core().domains().map(|domain| encode_domain(env, &domain));
        Ok(domains.collect::<NifResult<Vec<_>>>()?.encode(env))
    }
}

fn encode_domain<'a>(env: Env<'a>, domain: &DomainView) -> NifResult<Term<'a>> {
    Term::map_from_pairs(
        env,
        &[
            (atoms::__struct__(), atoms::domain().encode(env)),
            (atoms::name(), domain.name().encode(env)),
            (atoms::description(), domain.description().encode(env)),
            (atoms::body(), domain.body().encode(env)),
            (atoms::path(), encode::option(env, &domain.path())),
        ],
    )
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_diagnostics(env: Env<'_>, view: ResourceArc<ViewResource>) -> NifResult<Vec<Term<'_>>> {
    view.core().diagnostics().map(|diagnostic| encode::diagnostic(env, diagnostic)).collect()
}

twin! {
    /// The answer of `get_skill`, or `:unknown`.
    "DirtyIo" fn view_help_now | view_help_dirty(
        env, view: ResourceArc<ViewResource>, path: Binary<'a>
    )
    if std::str::from_utf8(&path).is_ok_and(|path| view.is_quick_help(path))
    => Ok(help(env, &view, &path))
}

fn help<'a>(env: Env<'a>, view: &ViewResource, path: &[u8]) -> Term<'a> {
    let answer = std::str::from_utf8(path).ok().and_then(|path| view.core().help(path));
    text_or_unknown(
        env,
        answer.and_then(|answer| match answer {
            Help::Text(text) => Some(text),
            Help::File { entry, file } => {
                let entry = view.core().entry(entry)?;
                let mut text = resource::read(&entry.document.path, &file);
                reveal(&mut text, 0);
                Some(text)
            }
        }),
    )
}

twin! {
    "DirtyCpu" fn view_help_domain_now | view_help_domain_dirty(
        env, view: ResourceArc<ViewResource>, name: &'a str
    )
    if view.core().domain(name).is_none_or(|domain| view.is_small_domain(&domain))
    => Ok(text_or_unknown(env, view.core().help_domain(name)))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_help_domain_all<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: &str) -> Term<'a> {
    text_or_unknown(env, view.core().help_domain_all(name))
}

twin! {
    "DirtyCpu" fn view_help_skill_now | view_help_skill_dirty(
        env, view: ResourceArc<ViewResource>, name: &'a str
    )
    if {
        let entry = view.find(name).and_then(|id| view.core().entry(id));
        entry.is_none_or(|entry| entry.body().len() <= twin::COPIED_BYTES)
    }
    => Ok(text_or_unknown(env, view.core().help_skill(name)))
}

fn text_or_unknown<'a>(env: Env<'a>, text: Option<String>) -> Term<'a> {
    match text {
        Some(text) => text.encode(env),
        None => atoms::unknown().encode(env),
    }
}

twin! {
    /// The default prompt. It is cached for the profile until the next generation.
    "DirtyCpu" fn view_prompt_now | view_prompt_dirty(env, view: ResourceArc<ViewResource>)
    ready view.core().prompt_made().map(|prompt| encode_prompt(env, &view, prompt))
    => Ok(encode_prompt(env, &view, view.core().prompt()))
}

fn encode_prompt<'a>(env: Env<'a>, view: &ViewResource, prompt: &Arc<str>) -> Term<'a> {
    binary(env, view.prompt.get_or_init(|| TextResource::new(prompt.clone())), 0..prompt.len())
}

#[derive(NifMap)]
pub struct PromptOptions {
    /// The sections, in place of those of the format.
    sections: Option<Vec<String>>,
    format: String,
    preloaded: Vec<String>,
    nearest: Vec<String>,
    used: Vec<String>,
    max_chars: Option<usize>,
    max_tokens: Option<usize>,
}

impl PromptOptions {
    /// Elixir has checked the names.
    pub fn options(self) -> Options {
        let format = Format::ALL
            .into_iter()
            .find(|format| format.as_str() == self.format)
            .unwrap_or_default();
        let wanted =
            |names: &[String], section: &Section| names.iter().any(|name| name == section.as_str());
        Options {
            sections: match &self.sections {
                Some(names) => {
                    Section::ALL.into_iter().filter(|section| wanted(names, section)).collect()
                }
                None => format.sections().to_vec(),
            },
            preloaded: self.preloaded,
            nearest: self.nearest,
            used: self.used,
            limit: Limit { chars: self.max_chars, tokens: self.max_tokens },
        }
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_prompt_with(view: ResourceArc<ViewResource>, options: PromptOptions) -> String {
    view.core().prompt_with(&options.options())
}

twin! {
    /// The entries that the first view lists and the second one did not, as text for a model.
    "DirtyCpu" fn view_news_now | view_news_dirty(
        env, view: ResourceArc<ViewResource>, old: ResourceArc<ViewResource>
    )
    ready view.core().is_same(old.core()).then(|| "".encode(env))
    => Ok(view.core().news_since(old.core()).encode(env))
}

/// Whether two views are generations of the same catalog.
#[rustler::nif]
fn view_same_catalog(view: ResourceArc<ViewResource>, other: ResourceArc<ViewResource>) -> bool {
    std::ptr::eq(&*view.catalog, &*other.catalog)
}

fn bytes(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

twin! {
    /// The tools that an entry may use for a profile with these tools, `:all`, or `:unknown`.
    "DirtyCpu" fn view_tools_now | view_tools_dirty(
        env, view: ResourceArc<ViewResource>, name: Binary<'a>, tools: Term<'a>
    )
    if {
        let entry = view.find_bytes(&name).and_then(|id| view.core().entry(id));
        let own = entry.and_then(|entry| entry.fields().allowed_tools.as_deref());
        let own = own.map_or(0, bytes);
        own.max(list_or_all(tools)?.as_deref().map_or(0, bytes)) <= twin::PATTERN_BYTES
    }
    => {
        // `:all` for the profile means that only the entry's own list counts.
        let profile = list_or_all(tools)?;
        Ok(match view.find_bytes(&name).map(|id| view.core().tools(id, profile.as_deref())) {
            None => atoms::unknown().encode(env),
            Some(None) => atoms::all().encode(env),
            Some(Some(tools)) => tools.encode(env),
        })
    }
}

twin! {
    "DirtyCpu" fn tools_allow_now | tools_allow_dirty(
        env, tools: Vec<String>, name: &'a str, argument: Option<&str>
    )
    if (name.len() + argument.map_or(0, str::len)).max(bytes(&tools)) <= twin::PATTERN_BYTES
    => Ok(allows(&tools, name, argument).encode(env))
}
