//! The core of Skillbook: skill documents, commands, catalogs and views.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod catalog;
pub mod diff;
pub mod excerpt;
pub mod explain;
pub mod glob;
pub mod json;
pub mod lint;
pub mod page;
pub mod prompt;
pub mod schedule;
pub mod search;
pub mod source;
pub mod text;
pub mod value;
pub mod view;
