//! Full-text search: over the entries that a view shows, from an index in memory, and over documents in the tables of a
//! database ([`rows`]). What words are, how much a word says and how a snippet is cut is the same for both.
//!
//! An entry is ranked by BM25 over weighted fields: its name and aliases weigh most, then title, trigger keywords, tags
//! and description, then headings, then the body. Case, marks and plural endings do not matter; the last word of a
//! query may be the beginning of one, and a word that is nowhere stands for those that are one or two letters off.
//!
//! All that a score is made of (how many entries there are, how many have a term, how long they are, which terms exist)
//! is counted over the entries that the view shows, so what is hidden changes neither order nor score.

pub(crate) mod index;
mod parts;
pub(crate) mod rank;
pub mod rows;
pub(crate) mod scope;
pub(crate) mod snippet;
pub(crate) mod terms;
pub(crate) mod words;

pub use snippet::{snippet, Snippet};
