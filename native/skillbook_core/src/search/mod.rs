//! Search: over the entries of a view with an index in memory, and over documents in a database
//! ([`rows`]). Both share the definition of a word, of its rarity, and the cutting of snippets.
//!
//! Entries are also compared by meaning, if the caller has their vectors ([`vectors`]); `mix` makes
//! one score of both.
//!
//! Entries are ranked by BM25F, BM25 over weighted fields (Robertson and Zaragoza, "The
//! Probabilistic Relevance Framework"). Name and aliases weigh most, then title, trigger keywords,
//! tags and description, then headings, then the body. Case, accents and endings of words do not
//! matter. The last word of a query may be a prefix, and an unknown word is replaced by words one
//! or two edits away, or by those that it is made of. Function words hardly count, so that
//! sentences are ranked by their subject.
//!
//! # Nothing hidden affects a score
//!
//! BM25 uses statistics: the number of entries, how many have a term, the average length. Here all
//! of them, and the set of existing terms, are counted over the entries that the view lists. A
//! score computed from a shared index would tell a reader which words occur in hidden entries. This
//! is also why databases' own full-text search is not used.

pub mod confidence;
pub mod embedded;
pub mod explain;
pub mod form;
mod function_words;
pub(crate) mod index;
pub(crate) mod mix;
mod pairs;
mod parts;
pub(crate) mod rank;
pub mod rivals;
pub mod rows;
pub(crate) mod scope;
mod segment;
pub(crate) mod snippet;
mod stems;
pub(crate) mod terms;
pub(crate) mod triggers;
pub mod vectors;
pub(crate) mod words;

pub use snippet::{snippet, Snippet};
