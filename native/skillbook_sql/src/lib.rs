//! The native library of databases: the functions of `Skillbook.SQL.Native`, which call
//! `skillbook_drivers`. `skillbook_bridge` says how a library is made.

mod postgres;
mod sqlite;
mod statement;
mod terms;

skillbook_bridge::library!("Elixir.Skillbook.SQL.Native");
