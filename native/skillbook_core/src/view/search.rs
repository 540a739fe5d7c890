//! Search over the entries that a view lists. The index and the scoring are in [`crate::search`].
//!
//! ```
//! # use std::sync::Arc;
//! # use skillbook_core::catalog::{assemble::assemble, Catalog};
//! # use skillbook_core::page::document::Document;
//! # use skillbook_core::source::Source;
//! # use skillbook_core::view::{CachedCatalog, Profile, View};
//! # let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! # let text = b"---\nname: email.send\ndescription: Send an email\n---\nSends to `--to`.\n";
//! # let document = Arc::new(Document::parse("/s", "email/send.md", text));
//! # let catalog = Catalog::build(1, vec![assemble(&source, vec![document], Vec::new())]);
//! # let catalog = Arc::new(CachedCatalog::new(catalog));
//! # let view = View::new(catalog, &Profile::unrestricted()).unwrap();
//! use skillbook_core::view::search::Query;
//!
//! // `view` shows the command `email.send`, "Send an email".
//! let hits = view.search(&Query { limit: 1, ..Query::new("emial") });
//! assert_eq!(hits[0].snippet.text, "Send an email");
//! assert_eq!(hits[0].snippet.highlights, [(8, 5)]);
//! ```

use super::view::View;
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::search::rank::{best, scores};
use crate::search::scope::Scope;
use crate::search::snippet::{self, Snippet};
use crate::search::terms::QueryTerms;
use crate::source::Kind;

/// A search.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The words to search for. Only the first 256 bytes and 16 words count.
    pub text: &'a str,
    /// The maximum number of hits.
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

/// An entry that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The entry.
    pub id: EntryId,
    /// The score, rounded to thousandths. It can only be compared with scores of the same search.
    pub score: f32,
    /// The best matching part of its description or body.
    pub snippet: Snippet,
}

impl View {
    /// The entries that match a query, best first, with equal scores by name. An entry whose name
    /// or alias is the whole query comes first. Entries with `disable-model-invocation` are not
    /// searched.
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        let index = self.catalog().search_index();
        let scope = self.scope();
        let wanted = QueryTerms::new(index, scope, query.text);
        let scores = scores(index, scope, &wanted);
        let named = |place| wanted.named(index, place);
        let admits = |place| self.entry(EntryId(place)).is_some_and(|entry| query.admits(entry));
        let ranked = best(&scores, query.limit, named, admits);
        let hit = |(place, score)| {
            let entry = self.entry(EntryId(place))?;
            Some(Hit {
                id: EntryId(place),
                score,
                snippet: snippet::of(entry, place, index, &wanted),
            })
        };
        ranked.into_iter().filter_map(hit).collect()
    }

    pub(super) fn scope(&self) -> &Scope {
        let index = self.catalog().search_index();
        self.visible.search.get_or_init(|| Scope::new(index, || self.listed().map(|(id, _)| id.0)))
    }
}
