//! The core of Skillbook: skill documents, commands, catalogs and views.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod frontmatter;
pub mod text;
pub mod value;
