//! A catalog as one profile may see it, and all that is read through such a view.

mod cached;
pub mod domain;
pub mod help;
mod profile;
mod relations;
pub mod search;
mod spelling;
mod suggest;
pub mod tools;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod view;
mod visible;

pub use cached::CachedCatalog;
pub use profile::{sees, Profile};
pub use view::View;
pub(crate) use visible::about;
