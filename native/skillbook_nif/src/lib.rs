//! The bridge between Elixir and the Rust crates: each function decodes terms, calls the core or a
//! database driver, and encodes the result. One file per topic, with the names of the Elixir
//! modules.
//!
//! # Where work runs
//!
//! A NIF blocks the scheduler that calls it, so every function has one of four places:
//!
//! - A normal scheduler, for calls of a few microseconds. A call that takes longer for some inputs
//!   is exported twice, see `twin`.
//! - A dirty CPU scheduler, for work that grows with its input.
//! - A dirty IO scheduler, for files and SQLite. Several of these wait without occupying a core.
//! - A thread of its own, which replies by message: the tokio runtime for sockets (`runtime`), a
//!   thread per book for watching folders (`watch`).
//!
//! # Adding a function
//!
//! 1. Do the work in the core or a driver, with its tests.
//! 2. Add a `#[rustler::nif]` to the file of its topic, which decodes, calls and encodes. It
//!    registers itself. Use `schedule = "DirtyCpu"` if the work grows with its input, `"DirtyIo"`
//!    for files and databases, and `twin!` if it is usually quick, with a line in the list of
//!    `Skillbook.Native` and rows in its test.
//! 3. Add a stub to `Skillbook.Native`, and the public function to the Elixir module of the topic.
//!    Errors are structs, or tuples from which that module makes its exception, and never debug
//!    texts.
//!
//! # Panics and locks
//!
//! Rustler turns a panic into an Erlang error, which is why the release profile unwinds. A mutex
//! that a panic has poisoned is used anyway: each module says why its state is still consistent.

mod catalog;
mod command;
mod declaration;
mod diff;
mod encode;
mod entry;
mod explain;
mod extractor;
mod frontmatter;
mod hidden;
mod http;
mod json;
mod lint;
mod load;
mod markdown;
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
mod vectors;
mod view;
mod watch;
mod web;

rustler::init!("Elixir.Skillbook.Native");
