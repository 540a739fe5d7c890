//! Says why requests lead to the entries that they lead to, for authors: which words of a request
//! an entry is found by, and which entries are described alike.
//!
//! ```
//! # use std::sync::Arc;
//! # use skillbook_core::catalog::{assemble::assemble, Catalog};
//! # use skillbook_core::page::document::Document;
//! # use skillbook_core::source::Source;
//! # use skillbook_core::view::{CachedCatalog, Profile, View};
//! # let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! # let page =
//! #     |name: &str, about: &str| format!("---\nname: {name}\ndescription: {about}\n---\n");
//! # let document = |name: &str, about| {
//! #     Arc::new(Document::parse("/s", &format!("{name}.md"), page(name, about).as_bytes()))
//! # };
//! # let documents =
//! #     vec![document("rain", "Rain forecasts"), document("snow", "Snow forecasts")];
//! # let catalog = Catalog::build(1, vec![assemble(&source, documents, Vec::new())]);
//! # let catalog = Arc::new(CachedCatalog::new(catalog));
//! # let view = View::new(catalog, &Profile::unrestricted()).unwrap();
//! // `view` shows `rain`, "Rain forecasts", and `snow`, "Snow forecasts".
//! let rain = view.find("rain").unwrap();
//! let pulls = view.why("Will there be rain?", &[rain]);
//! assert_eq!(pulls[0][0].word, "rain");
//!
//! let rivals = view.rivals(0.01, 10);
//! assert_eq!(rivals[0].words, ["forecasts"]);
//! ```

use super::view::View;
use crate::catalog::EntryId;
use crate::search::explain::{explain, Pull};
use crate::search::rivals::{rivals, Rivals};
use crate::search::vectors::Vectors;

/// The maximum number of entries that are compared with each other by meaning. The time grows with
/// its square.
const COMPARED: usize = 5_000;

impl View {
    /// The words of a request that raise the scores of these entries, for each entry, the strongest
    /// first. An entry that search does not find has none.
    pub fn why(&self, text: &str, ids: &[EntryId]) -> Vec<Vec<Pull>> {
        let places: Vec<u32> = ids.iter().map(|id| id.0).collect();
        explain(self.catalog().search_index(), &self.scope(), text, &places)
    }

    /// The pairs of listed entries that are described most alike, the closest first.
    pub fn rivals(&self, least: f32, limit: usize) -> Vec<Rivals<EntryId>> {
        rivals(self.listed().map(|(id, entry)| (id, &**entry)), least, limit)
    }

    /// The pairs of listed entries whose vectors are most alike, with their cosine in thousandths,
    /// the closest first. Each is in the order of the names.
    pub fn alike(&self, vectors: &Vectors, least: f32, limit: usize) -> Vec<([EntryId; 2], f32)> {
        let mapped = self.catalog().mapped(vectors);
        let lists = |at: u32| self.lists(EntryId(at));
        let mut own: Vec<(u32, &[f32])> = mapped.vectors().filter(|(at, _)| lists(*at)).collect();
        own.sort_unstable_by_key(|(at, _)| *at);
        let last = own.get(COMPARED).map_or(u32::MAX, |(at, _)| *at);
        let mut found: Vec<(i32, [EntryId; 2])> = Vec::new();
        let mut least = (least * 1000.0) as i32;
        let keep_best = |found: &mut Vec<(i32, [EntryId; 2])>| {
            found.sort_unstable_by_key(|(cosine, pair)| (-cosine, *pair));
            found.truncate(limit);
        };
        for (at, vector) in own.into_iter().take(COMPARED) {
            let behind = |other: u32| at < other && other < last && lists(other);
            mapped.similarities(vector, behind, |other, similarity| {
                let cosine = (similarity * 1000.0).round() as i32;
                if cosine >= least {
                    found.push((cosine, [EntryId(at), EntryId(other)]));
                }
            });
            // Memory is bounded by the pairs of one entry and those that are kept.
            if found.len() > 2 * limit {
                keep_best(&mut found);
                least = found.last().map_or(least, |(cosine, _)| *cosine);
            }
        }
        keep_best(&mut found);
        found.into_iter().map(|(cosine, pair)| (pair, cosine as f32 / 1000.0)).collect()
    }
}
