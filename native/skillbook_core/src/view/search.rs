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

use std::sync::Arc;

use super::view::View;
use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::search::embedded;
use crate::search::mix::{leading, may_be_name, mix, COMPARED};
use crate::search::rank::{best, scores};
use crate::search::scope::Scope;
use crate::search::snippet::{self, Snippet};
use crate::search::terms::QueryTerms;
use crate::search::vectors::Vectors;
use crate::source::Kind;

/// A search.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The words to search for. Only the first 2,048 bytes and 32 different words count.
    pub text: &'a str,
    /// The maximum number of hits.
    pub limit: usize,
    /// Only entries of this kind.
    pub kind: Option<Kind>,
    /// Only commands of this domain.
    pub domain: Option<&'a str>,
    /// Only entries that have all of these tags.
    pub tags: &'a [String],
    /// Search by meaning as well.
    pub meaning: Option<Meaning<'a>>,
}

/// The vector of a query, and those of the entries.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'a> {
    /// The vector of the query, of unit length.
    pub vector: &'a [f32],
    /// The vectors of entries, by digest of [`embedded::text`]. Entries without one are ranked by
    /// their words.
    pub vectors: &'a Vectors,
}

impl<'a> Query<'a> {
    /// A query for ten entries of any kind.
    pub fn new(text: &'a str) -> Query<'a> {
        Query { text, limit: 10, kind: None, domain: None, tags: &[], meaning: None }
    }

    fn admits(&self, entry: &Entry) -> bool {
        self.kind.is_none_or(|kind| entry.kind == kind)
            && self.domain.is_none_or(|domain| entry.domain.as_deref() == Some(domain))
            && self.tags.iter().all(|tag| entry.fields().tags.contains(tag))
    }
}

/// An entry that may be what the query asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The entry.
    pub id: EntryId,
    /// The score, rounded to thousandths. It can only be compared with scores of the same search.
    pub score: f32,
    /// The score by words alone, rounded to thousandths.
    pub words: f32,
    /// The cosine of the query and the entry; `None` without vectors.
    pub similarity: Option<f32>,
}

impl Candidate {
    /// The score by words and the similarity, without extra digits.
    pub fn scores(&self) -> (f64, Option<f64>) {
        (decimals(self.words, 3), self.similarity.map(|similarity| decimals(similarity, 4)))
    }
}

/// A 32-bit number as a 64-bit one with so many decimals, which prints without extra digits.
pub fn decimals(number: f32, count: i32) -> f64 {
    let unit = 10_f64.powi(count);
    (f64::from(number) * unit).round() / unit
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
        let wanted = QueryTerms::new(index, &self.scope(), query.text);
        let hit = |found: Candidate| {
            let entry = self.entry(found.id)?;
            let snippet = snippet::of(entry, found.id.0, index, &wanted);
            Some(Hit { id: found.id, score: found.score, snippet })
        };
        self.ranked(query, &wanted).into_iter().filter_map(hit).collect()
    }

    /// The same entries, with the parts of their scores and without snippets.
    pub fn candidates(&self, query: &Query) -> Vec<Candidate> {
        let index = self.catalog().search_index();
        self.ranked(query, &QueryTerms::new(index, &self.scope(), query.text))
    }

    /// The number of listed entries that have a vector, and of those that can have one.
    pub fn embedded(&self, vectors: &Vectors) -> (usize, usize) {
        let mapped = self.catalog().mapped(vectors);
        let lists = |place: &u32| self.lists(EntryId(*place));
        let wanted = self.listed().filter(|(_, entry)| embedded::wanted(entry));
        (mapped.places().filter(lists).count(), wanted.count())
    }

    fn ranked(&self, query: &Query, wanted: &QueryTerms) -> Vec<Candidate> {
        let (index, scope) = (self.catalog().search_index(), self.scope());
        let by_words = scores(index, &scope, wanted);
        let named = |place| wanted.named(index, place);
        let admits = |place| self.entry(EntryId(place)).is_some_and(|entry| query.admits(entry));
        let mixed = query.meaning.and_then(|meaning| {
            let mapped = self.catalog().mapped(meaning.vectors);
            mix(&scope, &by_words, &mapped, meaning.vector)
        });
        let Some(mixed) = mixed else {
            let found = best(&by_words, query.limit, named, admits);
            let candidate = |(place, score)| Candidate {
                id: EntryId(place),
                score,
                words: score,
                similarity: None,
            };
            return found.into_iter().map(candidate).collect();
        };
        let mut first = Vec::new();
        if may_be_name(query.text) {
            let leads = |(place, _)| {
                let rank = leading(self.entry(EntryId(place))?, index, wanted, query.text);
                (rank > 0).then_some((place, rank))
            };
            first.extend(best(&by_words, COMPARED, named, admits).into_iter().filter_map(leads));
            first.sort_unstable();
        }
        // Above them are those that the query names exactly.
        let tier = |place| match named(place) {
            0 => match first.binary_search_by_key(&place, |(place, _)| *place) {
                Ok(at) => first[at].1,
                Err(_) => 0,
            },
            rank => rank.saturating_add(2),
        };
        let found = best(&mixed.scores, query.limit, tier, admits);
        let candidate = |(place, score): (u32, f32)| {
            let similarity = mixed.similarities[place as usize];
            Candidate {
                id: EntryId(place),
                score,
                words: (by_words[place as usize] * 1000.0).round() / 1000.0,
                similarity: Some(similarity).filter(|similarity| !similarity.is_nan()),
            }
        };
        found.into_iter().map(candidate).collect()
    }

    pub(super) fn scope(&self) -> Arc<Scope> {
        let index = self.catalog().search_index();
        let new = || Scope::new(index, || self.listed().map(|(id, _)| id.0));
        self.catalog().scope_of(self.profile(), new)
    }
}
