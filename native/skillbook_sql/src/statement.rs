//! The check of statements, before a driver in Rust or in Elixir runs them.

use rustler::{Encoder, Env, NifUnitEnum, Term};
use skillbook_bridge::twin;
use skillbook_bridge::twin::BYTES;
use skillbook_drivers::statement::{self, Kind};
use skillbook_drivers::terms::reply;
use skillbook_drivers::WRITERS;

mod atoms {
    rustler::atoms! { read, rows, other }
}

#[derive(NifUnitEnum)]
enum Dialect {
    Sqlite,
    Postgres,
}

twin! {
    /// Splits a text into statements, each as `{text, kind}`. With a number of parameters, the text
    /// must be a single statement.
    "DirtyCpu" fn sql_statements_now | sql_statements_dirty(
        env, sql: &str, dialect: Dialect, params: Option<usize>
    )
    if sql.len() <= BYTES
    => Ok(statements(env, sql, dialect, params))
}

fn statements<'a>(env: Env<'a>, sql: &str, dialect: Dialect, params: Option<usize>) -> Term<'a> {
    let core_dialect = match dialect {
        Dialect::Sqlite => statement::Dialect::Sqlite,
        Dialect::Postgres => statement::Dialect::Postgres,
    };
    let found = match params {
        Some(params) => statement::one(sql, core_dialect, params).map(|statement| vec![statement]),
        None => statement::all(sql, core_dialect),
    };
    let encode = |statement: &statement::Statement| {
        let kind = match statement.kind() {
            Kind::Read => atoms::read(),
            Kind::Rows => atoms::rows(),
            Kind::Other => atoms::other(),
        };
        match dialect {
            Dialect::Sqlite => (statement.with_question_marks(), kind).encode(env),
            Dialect::Postgres => (statement.text(), kind).encode(env),
        }
    };
    reply(env, found.map(|found| found.iter().map(encode).collect::<Vec<_>>()))
}

#[rustler::nif]
fn postgres_may_read(sql: &str) -> bool {
    statement::may_read(sql)
}

/// The key of the advisory lock that serializes writers, for drivers in Elixir.
#[rustler::nif]
fn postgres_writers() -> i64 {
    WRITERS
}
