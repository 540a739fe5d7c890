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
mod http;
mod json;
mod lint;
mod load;
mod postgres;
mod profile;
mod resource_file;
mod route;
mod runtime;
mod schedule;
mod search;
mod search_rows;
mod shared;
mod sql;
mod store;
mod text;
mod twin;
mod view;
mod watch;

rustler::init!("Elixir.Skillbook.Native");
