//! The native library of SQLite, and of the check of statements: the functions of
//! `Skillbook.SQL.Native`, which call `skillbook_drivers`. `skillbook_bridge` says how a library is
//! made.

mod sqlite;
mod statement;

skillbook_bridge::library!("Elixir.Skillbook.SQL.Native");
