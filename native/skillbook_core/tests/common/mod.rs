//! Catalogs from texts, without files.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::collections::BTreeMap;
use std::sync::Arc;

use skillbook_core::catalog::assemble::{assemble, Assembled};
use skillbook_core::catalog::Catalog;
use skillbook_core::page::document::{CodeLines, Document};
use skillbook_core::page::record::{Origin, Record};
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{CachedCatalog, Fetch, Parts, Profile, View};

pub fn source(name: &str, kind: SourceKind, labels: &[&str], files: &[(&str, &str)]) -> Assembled {
    let labels = labels.iter().map(|label| label.to_string()).collect();
    source_of(Source { name: name.into(), kind, labels, ..Source::default() }, files)
}

/// The same with all options of a source. Its root is made from its name.
pub fn source_of(source: Source, files: &[(&str, &str)]) -> Assembled {
    let source = Arc::new(Source { root: format!("/{}", source.name), ..source });
    let markdown = files.iter().filter(|(path, _)| path.to_lowercase().ends_with(".md"));
    let parse = |(path, text): &(&str, &str)| {
        Arc::new(Document::parse(&source.root, path, text.as_bytes()))
    };
    let documents = markdown.map(parse).collect();
    assemble(&source, documents, files.iter().map(|(path, _)| path.to_string()).collect())
}

/// A source of pages that code hands over: the path, the text, and whether the lines of the code
/// are known.
pub fn code(source: Source, pages: impl Iterator<Item = (String, String, bool)>) -> Assembled {
    let document = |(path, text, known): (String, String, bool)| {
        let lines = known.then_some(CodeLines { head: 3, body: Some(9) });
        Arc::new(Document::of_code(&path, &text, lines))
    };
    assemble(&Arc::new(source), pages.map(document).collect(), Vec::new())
}

/// A record of the store, a note with this name and text. It restricts nothing.
pub fn record(name: &str, content: &str) -> Record {
    Record {
        id: 0,
        name: name.into(),
        is_skill: false,
        title: format!("About {name}"),
        description: String::new(),
        content: content.into(),
        tags: Vec::new(),
        tenant: Tenant::Common,
        labels: Vec::new(),
        include_in_prompt: true,
        proactive_for: Vec::new(),
        excluded_for: Vec::new(),
        origin: Origin::User,
        version: 1,
        schedule: None,
        timezone: None,
        writers: Vec::new(),
    }
}

/// Records in order: the trust of each, its path, and a text. Its frontmatter becomes the columns,
/// except labels and exclusions, which stay in the text.
pub fn records(
    source: &Source,
    records: impl Iterator<Item = (Trust, String, String)>,
) -> Assembled {
    let root = format!("/{}", source.name);
    let source = Arc::new(Source { root: root.clone(), ..source.clone() });
    let document = |(trust, path, text): (Trust, String, String)| {
        let written = Document::parse(&root, &path, text.as_bytes());
        let fields = written.fields().unwrap();
        let record = Record {
            is_skill: fields.description.is_some(),
            title: fields.title.clone().unwrap_or_default(),
            description: fields.description.clone().unwrap_or_default(),
            tags: fields.tags.clone(),
            include_in_prompt: fields.include_in_prompt,
            proactive_for: fields.proactive_for.clone(),
            tenant: source.tenant.clone(),
            origin: if trust == Trust::Low { Origin::Import } else { Origin::User },
            schedule: fields.schedule.clone(),
            timezone: fields.timezone.clone(),
            ..self::record(fields.name.as_deref().unwrap(), &text)
        };
        let mut document = Document::stored(&root, &record);
        document.path.clone_from(&written.path);
        Arc::new(document)
    };
    assemble(&source, records.map(document).collect(), Vec::new())
}

pub fn skills(files: &[(&str, &str)]) -> Catalog {
    Catalog::build(1, vec![source("s", SourceKind::Skills, &[], files)])
}

/// A catalog in the form that views share.
pub fn cached(catalog: Catalog) -> Arc<CachedCatalog> {
    Arc::new(CachedCatalog::new(catalog))
}

pub fn all(catalog: Catalog) -> View {
    View::new(cached(catalog), &Profile::unrestricted()).unwrap()
}

pub fn view(
    catalog: &Arc<CachedCatalog>,
    id: &str,
    grants: &[&str],
    skills: Option<&[&str]>,
) -> View {
    narrowed(catalog, id, grants, skills.into_iter())
}

/// A view whose names must match one glob of each list.
pub fn narrowed<'a>(
    catalog: &Arc<CachedCatalog>,
    id: &str,
    grants: &[&str],
    lists: impl Iterator<Item = &'a [&'a str]>,
) -> View {
    of_tenant(catalog, &Tenant::Common, id, grants, lists)
}

/// The same for a profile of a tenant.
pub fn of_tenant<'a>(
    catalog: &Arc<CachedCatalog>,
    tenant: &Tenant,
    id: &str,
    grants: &[&str],
    lists: impl Iterator<Item = &'a [&'a str]>,
) -> View {
    let texts = |items: &[&str]| items.iter().map(|item| item.to_string()).collect::<Vec<_>>();
    let (grants, skills) = (Some(texts(grants)), lists.map(texts).collect());
    let services = texts(&["mail"]);
    let (id, tenant) = (id.into(), tenant.clone());
    let profile = Profile { id, tenant, grants, skills, services, ..Profile::unrestricted() };
    View::new(catalog.clone(), &profile).unwrap()
}

/// Frontmatter with a name, a description and more lines, and a body.
pub fn doc(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n{more}---\n\n{body}")
}

pub fn names(view: &View) -> Vec<&str> {
    view.entries().map(|(_, entry)| &*entry.name).collect()
}

/// The rows of a tenant, as the database has them.
pub fn rows(records: &BTreeMap<i64, Record>, tenant: &Tenant) -> Vec<Record> {
    let own = |record: &&Record| *tenant == Tenant::All || record.tenant == *tenant;
    records.values().filter(own).cloned().collect()
}

pub fn fetched(parts: &Parts, fetch: &Fetch, rows: &[Record]) {
    parts.fetched(fetch, rows.iter().map(|record| parts.take_in(record)).collect());
    parts.end(fetch, true);
}

/// The view of a reader, for whom the records of the tenant are fetched if they are not there.
pub fn view_of(parts: &Parts, records: &BTreeMap<i64, Record>, reader: &Profile) -> View {
    if !parts.has(&reader.tenant) {
        let fetch = parts.fetch(Some(reader.tenant.clone()));
        fetched(parts, &fetch, &rows(records, &reader.tenant));
    }
    parts.view_if_there(reader).expect("they are there").unwrap()
}
