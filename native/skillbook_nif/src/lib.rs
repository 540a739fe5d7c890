//! The bridge: decode terms, call the core or a driver, encode what it gave. A file a topic.

mod catalog;
mod command;
mod declaration;
mod diff;
mod encode;
mod entry;
mod explain;
mod extractor;
mod frontmatter;
mod json;
mod lint;
mod load;
mod postgres;
mod resource_file;
mod route;
mod schedule;
mod search;
mod shared;
mod sql;
mod store;
mod text;
mod twin;
mod vault;
mod view;
mod watch;

rustler::init!("Elixir.Skillbook.Native");
