//! The bridge: decode terms, call the core or a driver, encode what it gave. A file a topic.

mod catalog;
mod encode;
mod entry;
mod load;
mod resource_file;
mod text;
mod view;

rustler::init!("Elixir.Skillbook.Native");
