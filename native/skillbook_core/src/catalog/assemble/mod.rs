//! Turns the documents of one source into entries and domain indexes.
//!
//! The meaning of a file depends on the files around it: a `SKILL.md` with a name makes the other
//! files of its folder its resources, one with a domain makes them that domain's commands.
//! `folders` knows these roles, `builder` makes the entry of a document, `naming` checks names,
//! `command` the text of a command's page.
//! Conflicts between entries are resolved elsewhere, in `catalog/precedence.rs`.
//!
//! Assembling again after a change reuses the result of every document that is still the same
//! object in the same surroundings.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::assemble::assemble;
//! use skillbook_core::page::document::Document;
//! use skillbook_core::source::Source;
//!
//! let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! let page = b"---\nname: pdf\ndescription: Work with PDF files\n---\n";
//! let documents = vec![Arc::new(Document::parse("/s", "pdf/SKILL.md", page))];
//! let files = vec!["pdf/SKILL.md".to_owned(), "pdf/forms.md".to_owned()];
//! let skill = &assemble(&source, documents, files).entries[0];
//! assert_eq!((&*skill.name, &skill.files[..]), ("pdf", &["forms.md".to_owned()][..]));
//! ```

mod builder;
mod command;
mod folders;
mod naming;

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::entry::{DomainIndex, Entry};
use super::finding::Finding;
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::Document;
use crate::source::Source;
pub(crate) use builder::described;
use builder::{Assembly, Builder};
use folders::Folders;
use naming::quote;
pub(crate) use naming::{characters, has_blank};

/// The entries and indexes of one source.
#[derive(Debug, Clone, Default)]
pub struct Assembled {
    /// The entries, by path. A name may occur more than once.
    pub entries: Vec<Arc<Entry>>,
    /// The entries that match no glob of the source, by path.
    pub unselected: Vec<Arc<Entry>>,
    /// The domain indexes, by path.
    pub indexes: Vec<Arc<DomainIndex>>,
    /// The diagnostics.
    pub findings: Vec<Arc<Finding>>,
    made: Vec<Arc<Assembly>>,
}

/// Assembles a source from its Markdown documents and the relative paths of all its files.
pub fn assemble(
    source: &Arc<Source>,
    documents: Vec<Arc<Document>>,
    files: Vec<String>,
) -> Assembled {
    assemble_again(source, documents, files, &Assembled::default())
}

/// Like [`assemble`], but reuses earlier results: that of a document that has not changed and whose
/// surroundings have not changed.
pub fn assemble_again(
    source: &Arc<Source>,
    mut documents: Vec<Arc<Document>>,
    files: Vec<String>,
    earlier: &Assembled,
) -> Assembled {
    // Sorted, so that "the first by path" is the first, and so that earlier results can be found in
    // one pass.
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    let folders = Folders::new(source, &documents);
    let mut builder = Builder { source, folders, resources: FxHashMap::default(), index: None };
    builder.resources = builder.folders.resources(&documents, &files);
    let mut out = Assembled::default();
    out.entries.reserve(documents.len());
    out.made.reserve(documents.len());
    // Earlier results are in the same order; `find_unchanged` walks along them.
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
    out.findings.extend(unmatched(source, &out.entries, &out.unselected));
    out
}

/// A finding for each glob of a source that selects none of its entries, if it has any.
fn unmatched(
    source: &Source,
    entries: &[Arc<Entry>],
    unselected: &[Arc<Entry>],
) -> Vec<Arc<Finding>> {
    let globs = [("available", &source.available), ("inline", &source.inline)];
    let globs = globs.into_iter().filter_map(|(option, globs)| Some((option, globs.as_ref()?)));
    let globs = globs.filter(|_| !entries.is_empty() || !unselected.is_empty());
    let finding = |option: &str, glob: &str| {
        let message = format!(
            "the glob {} in `{option}` of the source {} matches no entry",
            quote(glob),
            quote(&source.name)
        );
        let diagnostic = Diagnostic::new(Code::GlobUnmatched, Severity::Warning, message)
            .hint("correct it, or remove it; globs match names of entries, and case matters");
        Finding::trusted(diagnostic.in_file(source.root.as_str()), &source.tenant)
    };
    globs
        .flat_map(|(option, globs)| {
            let unmatched = globs.unmatched(entries.iter().map(|entry| &*entry.name));
            unmatched.into_iter().map(move |glob| finding(option, glob)).collect::<Vec<_>>()
        })
        .collect()
}

/// The earlier result of a document. Both lists are sorted by path, so `earlier` is consumed from
/// the front. Several records may have one path (they have one name); after a removed one, the rest
/// of that path is built again.
fn find_unchanged<'a>(
    document: &Arc<Document>,
    earlier: &mut &'a [Arc<Assembly>],
) -> Option<&'a Arc<Assembly>> {
    while let [made, rest @ ..] = *earlier {
        // Most documents are identical objects; then no path needs to be compared.
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

/// The entry and the findings of a record. They do not depend on other records.
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
