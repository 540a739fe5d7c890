//! The functions of `Skillbook.Connections.Library`, one file per topic.
//!
//! Functions whose work grows with their input run on a dirty scheduler. Those that wait for a mail
//! server answer by a message, see `skillbook_bridge::runtime`. Rustler turns a panic into an
//! Erlang error.

mod charset;
mod html;
mod ical;
mod imap;
mod mime;
mod net;
mod smtp;
mod xml;

skillbook_bridge::library!("Elixir.Skillbook.Connections.Library");
