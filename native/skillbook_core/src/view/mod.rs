//! A catalog as one profile may see it. Everything that is read for somebody is read through a
//! [`View`].
//!
//! The rule of visibility is in `profile.rs` and nowhere else. `visible.rs` applies it to a catalog
//! once per profile, `view.rs` answers lookups from the result, and the other files read through a
//! view only: `domain` (indexes of domains), `help` (`get_skill`), `search`, `suggest`, `relations`
//! (diagnostics across entries), `tools` (tool patterns), `triggers` and `pick` (entries for a
//! request), `why` and `examples` (tests of descriptions). So none of them can forget the check.
//! `parts` makes the catalogs of the readers of a book with a store.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::{assemble::assemble, Catalog};
//! use skillbook_core::page::document::Document;
//! use skillbook_core::source::Source;
//! use skillbook_core::view::{CachedCatalog, Profile, View};
//!
//! let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! let text = b"---\nname: pay\ndescription: Pay\nvisibility_labels: [finance]\n---\n";
//! let document = Arc::new(Document::parse("/s", "pay.md", text));
//! let catalog = Catalog::build(1, vec![assemble(&source, vec![document], Vec::new())]);
//! let catalog = Arc::new(CachedCatalog::new(catalog));
//!
//! let guest = Profile { grants: Some(Vec::new()), ..Profile::unrestricted() };
//! assert!(View::new(catalog.clone(), &guest)?.find("pay").is_none());
//! assert!(View::new(catalog, &Profile::unrestricted())?.find("pay").is_some());
//! # Ok::<(), skillbook_core::glob::BadGlob>(())
//! ```

pub(crate) mod about;
mod cached;
mod classes;
pub mod domain;
pub mod examples;
mod held;
pub mod help;
mod parts;
pub mod pick;
mod profile;
mod recent;
mod relations;
pub mod search;
mod spelling;
mod suggest;
mod texts;
pub mod tools;
pub mod triggers;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod view;
mod visible;
pub mod why;

pub use cached::CachedCatalog;
pub use held::Fetch;
pub use parts::{Change, Parts};
pub use profile::{sees, Profile};
pub use spelling::spelling;
pub use texts::Texts;
pub use view::View;
