//! The two dialects and the word lists that classify statements.

/// The pragmas of SQLite that only query, so that their value is an argument and not a setting.
const QUERY_PRAGMAS: [&str; 11] = [
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "data_version",
];

/// The words between `create` and the new name. `temp` is missing because it may be the name.
pub(super) const CREATE_WORDS: [&str; 18] = [
    "create",
    "or",
    "replace",
    "virtual",
    "unlogged",
    "materialized",
    "recursive",
    "unique",
    "table",
    "view",
    "trigger",
    "sequence",
    "function",
    "procedure",
    "type",
    "if",
    "not",
    "exists",
];

/// The options in parentheses between PostgreSQL's `explain` and its statement.
pub(super) const EXPLAIN_OPTIONS: [&str; 13] = [
    "analyze",
    "analyse",
    "verbose",
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "serialize",
    "wal",
    "timing",
    "summary",
    "memory",
    "format",
];

/// The SQL dialect of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's, with `standard_conforming_strings` on.
    Postgres,
}

pub(super) fn reads(word: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Sqlite => is(word, &["select", "values", "pragma"]),
        // `table t` is short for `select * from t`.
        Dialect::Postgres => is(word, &["select", "values", "table", "show"]),
    }
}

/// Whether a pragma may be given a value.
pub(crate) fn is_query_pragma(name: &str) -> bool {
    is(name, &QUERY_PRAGMAS)
}

pub(super) fn is(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}
