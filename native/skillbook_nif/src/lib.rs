//! The bridge between Elixir and the core: each function decodes terms, calls the core, and encodes
//! the result. One file per topic, with the names of the Elixir modules. `skillbook_bridge` says
//! how a library is made.

mod catalog;
mod command;
mod declaration;
mod diff;
mod encode;
mod entry;
mod examples;
mod explain;
mod extractor;
mod frontmatter;
mod hidden;
mod json;
mod lint;
mod markdown;
mod memory;
mod profile;
mod report;
mod route;
mod schedule;
mod schema;
mod search;
mod search_rows;
mod shared;
mod store;
mod text;
mod tool;
mod vectors;
mod view;
mod watch;

skillbook_bridge::library!("Elixir.Skillbook.Native");
