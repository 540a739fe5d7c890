//! The native library of HTTP: a client and a server, which share TLS, the protocol and the
//! runtime. `skillbook_bridge` says how a library is made.

mod http;
mod web;

skillbook_bridge::library!("Elixir.Skillbook.HTTP.Library");
