//! All entries of a book, merged over its sources.
//!
//! A source is [assembled](assemble) on its own: its files or records become entries and domain
//! indexes. A [`Catalog`] merges the sources into one generation, which never changes; a reload
//! builds the next one.
//!
//! A catalog keeps every entry, also several of one name. It does not decide which of them is used:
//! that depends on the reader, because hidden entries must not affect the result. Each view decides
//! for itself, with the conflicts that the catalog has collected ([`Unused`], in `precedence.rs`).
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::{assemble::assemble, Catalog};
//! use skillbook_core::page::document::Document;
//! use skillbook_core::source::Source;
//!
//! let source = Arc::new(Source { root: "/skills".into(), ..Source::default() });
//! let text = b"---\nname: email.send\ndescription: Send an email\n---\n";
//! let document = Arc::new(Document::parse("/skills", "email/send.md", text));
//! let catalog = Catalog::build(1, vec![assemble(&source, vec![document], Vec::new())]);
//! let names: Vec<_> = catalog.used().map(|entry| &*entry.name).collect();
//! assert_eq!(names, ["email.send"]);
//! ```

pub mod assemble;
pub mod block;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod catalog;
pub mod changes;
pub mod entry;
pub mod finding;
pub mod handlers;
mod id;
pub mod last_good;
mod names;
mod precedence;
pub mod records;
pub mod scheduled;
mod unused;

pub use catalog::Catalog;
pub use id::{Domain, EntryId};
pub(crate) use precedence::called;
pub use precedence::{Unused, Why};
