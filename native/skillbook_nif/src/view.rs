//! Views: what one profile may see of a generation.

use std::sync::{Arc, OnceLock};

use rustler::{Atom, Binary, Encoder, Env, NifMap, NifResult, NifUnitEnum, Resource, ResourceArc, Term};
use skillbook_core::catalog::EntryId;
use skillbook_core::domain::DomainView;
use skillbook_core::entry::Kind;
use skillbook_core::help::Help;
use skillbook_core::prompt::{Format, Limit, Options, Section};
use skillbook_core::tools::allows;
use skillbook_core::view::{Profile, View};

use crate::catalog::{CatalogResource, Generation};
use crate::shared::{binary, TextResource};
use crate::{encode, resource_file};

mod atoms {
    rustler::atoms! {
        ok,
        error,
        nil,
        all,
        unknown,
        bad_glob,
        __struct__,
        domain = "Elixir.Skillbook.Domain",
        name,
        description,
        body,
        path,
    }
}

/// A view and the generation that it holds.
pub struct ViewResource {
    view: View,
    catalog: ResourceArc<CatalogResource>,
    generation: Arc<Generation>,
    prompt: OnceLock<ResourceArc<TextResource>>,
}

#[rustler::resource_impl]
impl Resource for ViewResource {}

impl ViewResource {
    /// The entry of this name or alias, if the view shows it.
    pub fn find(&self, name: &str) -> Option<EntryId> {
        self.view.find(name)
    }

    /// The `%Skillbook.Entry{}` of an id that [`ViewResource::find`] gave.
    pub fn entry_term<'a>(&self, env: Env<'a>, id: EntryId) -> Term<'a> {
        self.generation.entry_term(env, id)
    }

    /// Up to three names that the view shows and that are close to this one.
    pub fn suggest(&self, name: &str) -> Vec<&str> {
        self.view.suggest(name)
    }

    /// The view itself.
    pub fn core(&self) -> &View {
        &self.view
    }
}

/// `:all` is `None`.
fn list_or_all(term: Term) -> NifResult<Option<Vec<String>>> {
    match term.decode::<Atom>() {
        Ok(atom) if atom == atoms::all() => Ok(None),
        _ => term.decode().map(Some),
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_new<'a>(
    env: Env<'a>,
    catalog: ResourceArc<CatalogResource>,
    id: String,
    grants: Term,
    skills: Term,
) -> NifResult<Term<'a>> {
    let profile = Profile { id, grants: list_or_all(grants)?, skills: list_or_all(skills)? };
    let generation = catalog.current();
    Ok(match View::new(generation.catalog.clone(), &profile) {
        Ok(view) => {
            let number = view.generation();
            let view = ResourceArc::new(ViewResource { view, catalog, generation, prompt: OnceLock::new() });
            (atoms::ok(), view, number).encode(env)
        }
        Err(bad) => (atoms::error(), (atoms::bad_glob(), bad.glob, bad.message)).encode(env),
    })
}

/// The entry, or nil. What is not UTF-8 is no entry's name.
#[rustler::nif]
fn view_fetch<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: Binary) -> Term<'a> {
    match std::str::from_utf8(&name).ok().and_then(|name| view.find(name)) {
        Some(id) => view.entry_term(env, id),
        None => atoms::nil().encode(env),
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_suggest(view: ResourceArc<ViewResource>, name: Binary) -> Vec<String> {
    let suggest = |name| view.suggest(name).into_iter().map(str::to_owned).collect();
    std::str::from_utf8(&name).map(suggest).unwrap_or_default()
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

/// The entries of a domain or a kind, both optional.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_entries<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    domain: Option<String>,
    kind: Option<EntryKind>,
) -> Vec<Term<'a>> {
    let kind = kind.map(EntryKind::kind);
    let entries = view.core().entries().filter(|(_, entry)| {
        domain.as_ref().is_none_or(|domain| entry.domain.as_ref() == Some(domain))
            && kind.is_none_or(|kind| entry.kind == kind)
    });
    entries.map(|(id, _)| view.entry_term(env, id)).collect()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_domains(env: Env<'_>, view: ResourceArc<ViewResource>) -> NifResult<Vec<Term<'_>>> {
    view.core().domains().map(|domain| encode_domain(env, &domain)).collect()
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

/// What `get_skill` answers, or `:unknown`.
#[rustler::nif(schedule = "DirtyIo")]
fn view_help<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, path: Binary) -> Term<'a> {
    let answer = std::str::from_utf8(&path).ok().and_then(|path| view.core().help(path));
    text_or_unknown(
        env,
        answer.and_then(|answer| match answer {
            Help::Text(text) => Some(text),
            Help::File { entry, file } => {
                let entry = view.core().entry(entry)?;
                Some(resource_file::read(&entry.document.path, &file))
            }
        }),
    )
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_help_domain<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: &str) -> Term<'a> {
    text_or_unknown(env, view.core().help_domain(name))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_help_domain_all<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: &str) -> Term<'a> {
    text_or_unknown(env, view.core().help_domain_all(name))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_help_skill<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: &str) -> Term<'a> {
    text_or_unknown(env, view.core().help_skill(name))
}

fn text_or_unknown<'a>(env: Env<'a>, text: Option<String>) -> Term<'a> {
    match text {
        Some(text) => text.encode(env),
        None => atoms::unknown().encode(env),
    }
}

/// The default prompt if this view made it before, else nil.
#[rustler::nif]
fn view_prompt_made<'a>(env: Env<'a>, view: ResourceArc<ViewResource>) -> Term<'a> {
    match view.prompt.get() {
        Some(text) => binary(env, text, 0..view.core().prompt().len()),
        None => atoms::nil().encode(env),
    }
}

/// The default prompt, kept for the next time.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_prompt<'a>(env: Env<'a>, view: ResourceArc<ViewResource>) -> Term<'a> {
    let prompt = view.core().prompt();
    let text = view.prompt.get_or_init(|| TextResource::new(prompt.clone()));
    binary(env, text, 0..prompt.len())
}

#[derive(NifMap)]
pub struct PromptOptions {
    /// Its sections, instead of those of the format.
    sections: Option<Vec<String>>,
    format: String,
    preloaded: Vec<String>,
    max_chars: Option<usize>,
    max_tokens: Option<usize>,
}

impl PromptOptions {
    /// Names that are none were refused before.
    pub fn options(self) -> Options {
        let format = Format::ALL.into_iter().find(|format| format.as_str() == self.format).unwrap_or_default();
        let wanted = |names: &[String], section: &Section| names.iter().any(|name| name == section.as_str());
        Options {
            sections: match &self.sections {
                Some(names) => Section::ALL.into_iter().filter(|section| wanted(names, section)).collect(),
                None => format.sections().to_vec(),
            },
            preloaded: self.preloaded,
            limit: Limit { chars: self.max_chars, tokens: self.max_tokens },
        }
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn view_prompt_with(view: ResourceArc<ViewResource>, options: PromptOptions) -> String {
    view.core().prompt_with(&options.options())
}

/// What the first view tells a model and the second did not.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_news(view: ResourceArc<ViewResource>, old: ResourceArc<ViewResource>) -> String {
    view.core().news_since(old.core())
}

/// Whether two views are generations of one catalog.
#[rustler::nif]
fn view_same_catalog(view: ResourceArc<ViewResource>, other: ResourceArc<ViewResource>) -> bool {
    std::ptr::eq(&*view.catalog, &*other.catalog)
}

/// The tools of an entry for a profile that has these, `:all`, or `:unknown`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_tools<'a>(env: Env<'a>, view: ResourceArc<ViewResource>, name: Binary, tools: Term) -> NifResult<Term<'a>> {
    let profile = list_or_all(tools)?;
    let id = std::str::from_utf8(&name).ok().and_then(|name| view.find(name));
    Ok(match id.map(|id| view.core().tools(id, profile.as_deref())) {
        None => atoms::unknown().encode(env),
        Some(None) => atoms::all().encode(env),
        Some(Some(tools)) => tools.encode(env),
    })
}

#[rustler::nif(schedule = "DirtyCpu")]
fn tools_allow(tools: Vec<String>, name: &str, argument: Option<&str>) -> bool {
    allows(&tools, name, argument)
}
