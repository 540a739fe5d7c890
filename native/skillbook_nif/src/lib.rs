//! The bridge: decode terms, call the core or a driver, encode what it gave. A file a topic.

mod encode;
mod frontmatter;

rustler::init!("Elixir.Skillbook.Native");
