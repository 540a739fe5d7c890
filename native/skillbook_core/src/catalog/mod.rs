//! All entries of a book, merged over its sources.

pub mod assemble;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod catalog;
pub mod changes;
pub mod entry;
pub mod finding;
mod id;
pub mod last_good;
mod names;
mod precedence;
pub mod records;
pub mod scheduled;
mod unused;

pub use catalog::Catalog;
pub use id::{Domain, EntryId};
pub use precedence::{Unused, Why};
