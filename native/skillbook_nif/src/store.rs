//! A source whose documents are the records of a database, as they were handed over.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustler::{NifMap, NifResult, NifUnitEnum, Term};
use skillbook_core::assemble::{assemble, assemble_again, Assembled};
use skillbook_core::document::Document;
use skillbook_core::entry::{Source, SourceKind};
use skillbook_core::record::{Origin, Record};
use skillbook_core::view::sees;

use crate::view::profile;

#[derive(NifUnitEnum)]
enum Kind {
    Skill,
    Note,
}

#[derive(NifUnitEnum)]
enum Writer {
    User,
    Agent,
    Import,
}

/// What a `%Skillbook.Stored{}` has that counts here.
#[derive(NifMap)]
pub struct Row {
    pub id: i64,
    name: String,
    kind: Kind,
    title: String,
    description: String,
    /// Lists of records are read without it.
    pub content: Option<String>,
    tags: Vec<String>,
    labels: Vec<String>,
    include_in_prompt: bool,
    proactive_for: Vec<String>,
    excluded_for: Vec<String>,
    source: Writer,
    version: i64,
    schedule: Option<String>,
    timezone: Option<String>,
    writers: Vec<Option<String>>,
}

impl Row {
    fn record(self) -> Record {
        Record {
            id: self.id,
            name: self.name,
            is_skill: matches!(self.kind, Kind::Skill),
            title: self.title,
            description: self.description,
            content: self.content.unwrap_or_default().into(),
            tags: self.tags,
            labels: self.labels,
            include_in_prompt: self.include_in_prompt,
            proactive_for: self.proactive_for,
            excluded_for: self.excluded_for,
            origin: match self.source {
                Writer::User => Origin::User,
                Writer::Agent => Origin::Agent,
                Writer::Import => Origin::Import,
            },
            version: self.version,
            schedule: self.schedule,
            timezone: self.timezone,
            writers: self.writers,
        }
    }
}

/// A source of records and what it holds now.
pub struct Store {
    source: Arc<Source>,
    /// By path and id: sorted as they are assembled, and of two records with one name the older one first.
    documents: BTreeMap<(Arc<str>, i64), Arc<Document>>,
    /// The path of each.
    paths: BTreeMap<i64, Arc<str>>,
    assembled: Assembled,
}

impl Store {
    pub fn new(source: Arc<Source>) -> Store {
        Store { source, documents: BTreeMap::new(), paths: BTreeMap::new(), assembled: Assembled::default() }
    }

    /// What the source holds.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// The ids of its records, in their order.
    pub fn ids(&self) -> Vec<i64> {
        self.paths.keys().copied().collect()
    }

    /// Takes records in and leaves others out; whether anything differs.
    pub fn put(&mut self, rows: Vec<Row>, removed: &[i64]) -> bool {
        let mut differs = false;
        for id in removed {
            differs |= self.take(*id).is_some();
        }
        for row in rows {
            let id = row.id;
            let document = Document::stored(&self.source.root, &row.record());
            let known = self.take(id).filter(|known| known.is_same(&document));
            differs |= known.is_none();
            let path: Arc<str> = document.path.as_str().into();
            self.paths.insert(id, path.clone());
            self.documents.insert((path, id), known.unwrap_or_else(|| Arc::new(document)));
        }
        if differs {
            let documents = self.documents.values().cloned().collect();
            self.assembled = assemble_again(&self.source, documents, Vec::new(), &self.assembled);
        }
        differs
    }

    fn take(&mut self, id: i64) -> Option<Arc<Document>> {
        let path = self.paths.remove(&id)?;
        self.documents.remove(&(path, id))
    }
}

/// The ids of those of these records that a profile may see. Of one without its content the kind alone says what it is.
#[rustler::nif(schedule = "DirtyCpu")]
fn stored_visible(ids: Vec<String>, grants: Term, skills: Vec<Vec<String>>, rows: Vec<Row>) -> NifResult<Vec<i64>> {
    let profile = profile(ids, grants, skills)?;
    let sees = sees(&profile).map_err(|_| rustler::Error::BadArg)?;
    let source = Arc::new(Source { kind: SourceKind::Stored, ..Source::default() });
    let visible = |row: Row| {
        let id = row.id;
        let document = Arc::new(Document::stored(&source.root, &row.record()));
        let assembled = assemble(&source, vec![document], Vec::new());
        assembled.entries.iter().any(|entry| sees(entry)).then_some(id)
    };
    Ok(rows.into_iter().filter_map(visible).collect())
}
