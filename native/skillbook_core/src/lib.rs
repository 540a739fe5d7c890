//! The core of Skillbook: skill documents, commands, catalogs and views.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod assemble;
pub mod catalog;
pub mod changes;
pub mod declaration;
pub mod diagnostic;
pub mod diff;
pub mod document;
pub mod domain;
pub mod entry;
pub mod excerpt;
pub mod explain;
pub mod frontmatter;
pub mod glob;
pub mod help;
pub mod json;
pub mod last_good;
pub mod lint;
mod names;
mod precedence;
pub mod prompt;
pub mod record;
pub mod records;
pub mod references;
mod relations;
pub mod schedule;
pub mod scheduled;
pub mod search;
pub mod sections;
pub mod source;
pub mod suggest;
pub mod text;
pub mod tools;
pub mod value;
pub mod view;
