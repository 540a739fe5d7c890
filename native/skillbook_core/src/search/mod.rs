//! Full-text search: over the entries that a view shows, from an index in memory, and over documents in the tables of a
//! database ([`rows`]). What words are, how much a word says and how a snippet is cut is the same for both.
//!
//! An entry is ranked by BM25 over weighted fields: its name and aliases weigh most, then title, trigger keywords, tags
//! and description, then headings, then the body. Case, marks and plural endings do not matter; the last word of a
//! query may be the beginning of one, and a word that is nowhere stands for those that are one or two letters off.
//!
//! All that a score is made of (how many entries there are, how many have a term, how long they are, which terms exist)
//! is counted over the entries that the view shows, so what is hidden changes neither order nor score.

mod index;
mod rank;
pub mod rows;
mod snippet;
mod terms;
pub(crate) mod words;

pub(crate) use index::Index;
pub(crate) use rank::Scope;
pub use snippet::snippet;

use crate::catalog::{Catalog, EntryId};
use crate::entry::Entry;
use crate::source::Kind;
use crate::view::View;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Words. Of a longer text the first 256 bytes count, and of those the first 16 words.
    pub text: &'a str,
    /// How many hits there may be.
    pub limit: usize,
    /// Only entries of this kind.
    pub kind: Option<Kind>,
    /// Only commands of this domain.
    pub domain: Option<&'a str>,
    /// Only entries that have all of these tags.
    pub tags: &'a [String],
}

impl<'a> Query<'a> {
    /// A query for ten entries of any kind.
    pub fn new(text: &'a str) -> Query<'a> {
        Query { text, limit: 10, kind: None, domain: None, tags: &[] }
    }

    fn admits(&self, entry: &Entry) -> bool {
        self.kind.is_none_or(|kind| entry.kind == kind)
            && self.domain.is_none_or(|domain| entry.domain.as_deref() == Some(domain))
            && self.tags.iter().all(|tag| entry.fields().tags.contains(tag))
    }
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The entry.
    pub id: EntryId,
    /// How well it matches, rounded to thousandths; only comparable within one answer.
    pub score: f32,
    /// The part of its description or body that matches best.
    pub snippet: Snippet,
}

/// A part of a text on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// At most some 200 bytes, with `…` where the text goes on.
    pub text: String,
    /// Where words that match stand in it, in bytes: start and length.
    pub highlights: Vec<(usize, usize)>,
}

impl Catalog {
    /// The index, built when it is first needed.
    fn search_index(&self) -> &Index {
        self.search.get_or_init(|| {
            let earlier = self.earlier_search.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            Index::new(self.entries(), earlier.as_deref().unwrap_or(&Index::default())).into()
        })
    }

    /// Lets the index be made from that of the generation before, which is faster where most documents are the same.
    pub fn search_from(&self, before: &Catalog) {
        let lock = |catalog: &Catalog| match catalog.search.get() {
            Some(index) => Some(index.clone()),
            None => catalog.earlier_search.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone(),
        };
        let earlier = lock(before);
        *self.earlier_search.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = earlier;
    }
}

impl View {
    /// The entries that match a query, the best first and equals by name. One whose name or alias is the query comes
    /// before all others. What says `disable-model-invocation` is not found.
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        let index = self.catalog().search_index();
        let scope = self.visible.search.get_or_init(|| Scope::new(self, index));
        let wanted = terms::Wanted::new(index, scope, query.text);
        let ranked = rank::rank(index, scope, &wanted, query.limit, |place| {
            self.entry(EntryId(place)).is_some_and(|entry| query.admits(entry))
        });
        let hit = |(place, score)| {
            let entry = self.entry(EntryId(place))?;
            Some(Hit { id: EntryId(place), score, snippet: snippet::of(entry, place, index, &wanted) })
        };
        ranked.into_iter().filter_map(hit).collect()
    }
}
