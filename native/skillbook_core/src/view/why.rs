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
//! #     Arc::new(Document::parse("/s", format!("{name}.md"), page(name, about).as_bytes()))
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
//! let rivals = view.rivals(0.1, 10);
//! assert_eq!(rivals[0].words, ["forecasts"]);
//! ```

use super::view::View;
use crate::catalog::EntryId;
use crate::search::explain::{explain, Pull};
use crate::search::rivals::{rivals, Rivals};

impl View {
    /// The words of a request that raise the scores of these entries, for each entry, the strongest
    /// first. An entry that search does not find has none.
    pub fn why(&self, text: &str, ids: &[EntryId]) -> Vec<Vec<Pull>> {
        let places: Vec<u32> = ids.iter().map(|id| id.0).collect();
        explain(self.catalog().search_index(), self.scope(), text, &places)
    }

    /// The pairs of listed entries that are described most alike, the closest first.
    pub fn rivals(&self, least: f32, limit: usize) -> Vec<Rivals<EntryId>> {
        rivals(self.listed().map(|(id, entry)| (id, &**entry)), least, limit)
    }
}
