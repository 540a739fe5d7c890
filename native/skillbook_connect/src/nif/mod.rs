//! The functions of `Skillbook.Connections.Library`, one file per topic.
//!
//! Functions whose work grows with their input run on a dirty scheduler. Those that wait for a mail
//! server answer by a message, see `runtime`. Rustler turns a panic into an Erlang error.

mod charset;
mod html;
mod ical;
mod imap;
mod mime;
mod net;
// Each library has a runtime of its own.
#[path = "../../../skillbook_nif/src/runtime.rs"]
mod runtime;
mod smtp;
mod xml;

/// Its stub in Elixir answers false.
#[rustler::nif(name = "loaded?")]
fn loaded() -> bool {
    true
}

rustler::init!("Elixir.Skillbook.Connections.Library");
