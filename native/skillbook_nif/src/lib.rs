//! The bridge: decode terms, call the core or a driver, encode what it gave. A file a topic.

mod command;
mod encode;
mod extractor;
mod sql;
mod text;

rustler::init!("Elixir.Skillbook.Native");
