//! From the documents of one source to its entries and domain indexes.
//!
//! What a file means depends on the files around it: a `SKILL.md` with a name makes the other files of its folder
//! resources, one with a domain makes them that domain's commands. This module knows these rules and no others; which
//! of two entries of a name is used is for the [catalog](crate::catalog).

mod builder;
mod folders;
mod naming;

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::entry::{DomainIndex, Entry};
use super::finding::Finding;
use crate::page::document::Document;
use crate::source::Source;
pub(crate) use builder::described;
use builder::{Assembly, Builder};
use folders::Folders;

/// What one source holds.
#[derive(Debug, Clone, Default)]
pub struct Assembled {
    /// The entries by path; names may still occur twice.
    pub entries: Vec<Arc<Entry>>,
    /// The entries that no glob of the source selects, by path.
    pub unselected: Vec<Arc<Entry>>,
    /// The domain indexes by path.
    pub indexes: Vec<Arc<DomainIndex>>,
    /// What was found out.
    pub findings: Vec<Arc<Finding>>,
    made: Vec<Arc<Assembly>>,
}

/// Builds the entries of a source from its Markdown documents and the relative paths of all its files.
pub fn assemble(
    source: &Arc<Source>,
    documents: Vec<Arc<Document>>,
    files: Vec<String>,
) -> Assembled {
    assemble_again(source, documents, files, &Assembled::default())
}

/// The same when the source was assembled before: what a document gave then is taken over if the document is still the
/// same one and so is all around it that counts.
pub fn assemble_again(
    source: &Arc<Source>,
    mut documents: Vec<Arc<Document>>,
    files: Vec<String>,
    earlier: &Assembled,
) -> Assembled {
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    let folders = Folders::new(source, &documents);
    let mut builder = Builder { source, folders, resources: FxHashMap::default(), index: None };
    builder.resources = builder.folders.resources(&documents, &files);
    let mut out = Assembled::default();
    out.entries.reserve(documents.len());
    out.made.reserve(documents.len());
    let mut earlier = earlier.made.as_slice();
    for document in &documents {
        let made = match find_unchanged(document, &mut earlier)
            .filter(|made| builder.is_same(made, document))
        {
            Some(made) => Arc::clone(made),
            None => Arc::new(builder.make(document)),
        };
        out.add(made);
    }
    out
}

/// What the same document gave, of what is left of the earlier ones, which are by path too. Of several with one path, as
/// records of one name are, those behind one that is gone may be made anew.
fn find_unchanged<'a>(
    document: &Arc<Document>,
    earlier: &mut &'a [Arc<Assembly>],
) -> Option<&'a Arc<Assembly>> {
    while let [made, rest @ ..] = *earlier {
        // Most are the same, and of those no path is read.
        let is_it = Arc::ptr_eq(&made.document, document);
        let order = if is_it { Ordering::Equal } else { made.document.path.cmp(&document.path) };
        if order == Ordering::Greater {
            return None;
        }
        *earlier = rest;
        if order == Ordering::Equal {
            return is_it.then_some(made);
        }
    }
    None
}

/// What a record gives, whatever other records there are: its entry, if it is one, and what was
/// found out.
pub(crate) fn record(
    source: &Arc<Source>,
    document: &Arc<Document>,
) -> (Option<Arc<Entry>>, Vec<Arc<Finding>>) {
    let mut builder = Builder {
        source,
        folders: Folders::default(),
        resources: FxHashMap::default(),
        index: None,
    };
    let made = builder.make(document);
    (made.entry.filter(|_| made.is_selected), made.findings)
}

impl Assembled {
    fn add(&mut self, made: Arc<Assembly>) {
        let entries = if made.is_selected { &mut self.entries } else { &mut self.unselected };
        entries.extend(made.entry.clone());
        self.indexes.extend(made.index.clone());
        self.findings.extend_from_slice(&made.findings);
        self.made.push(made);
    }
}
