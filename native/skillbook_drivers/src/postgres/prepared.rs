//! The cache of prepared statements of a session.
//!
//! Preparing costs a round trip. The cache drops the least recently used statement, and all of them
//! after a change of the schema on this session. Changes on other sessions show up as an error of
//! the server ([`is_stale`]).

use std::collections::HashMap;

use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::Statement;

use super::failure::is_code;

/// The number of statements that a session keeps prepared.
const PREPARED: usize = 64;

/// The prepared statements of a session, by their text.
#[derive(Default)]
pub(super) struct Cache {
    statements: HashMap<String, Entry>,
    /// Counts uses, to find the least recently used statement.
    uses: u64,
}

struct Entry {
    statement: Statement,
    used: u64,
    /// The transaction that used the statement last.
    transaction: u64,
}

/// A prepared statement.
pub(super) struct Prepared {
    pub statement: Statement,
    /// The transaction that used the statement before this one.
    pub transaction: u64,
}

impl Cache {
    /// Returns the statement with this text, and marks it as used by a transaction.
    pub fn get(&mut self, text: &str, transaction: u64) -> Option<Prepared> {
        self.uses += 1;
        let entry = self.statements.get_mut(text)?;
        entry.used = self.uses;
        let before = std::mem::replace(&mut entry.transaction, transaction);
        Some(Prepared { statement: entry.statement.clone(), transaction: before })
    }

    /// Adds a statement. If the cache is full, the least recently used one is removed.
    pub fn insert(&mut self, text: &str, statement: Statement, transaction: u64) {
        if self.statements.len() >= PREPARED {
            let oldest = self.statements.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(text, _)| text.clone());
            oldest.and_then(|text| self.statements.remove(&text));
        }
        let entry = Entry { statement, used: self.uses, transaction };
        self.statements.insert(text.to_owned(), entry);
    }

    pub fn remove(&mut self, text: &str) {
        self.statements.remove(text);
    }

    pub fn clear(&mut self) {
        self.statements.clear();
    }
}

/// Whether the server no longer accepts a prepared statement: "cached plan must not change result
/// type", or it does not know the statement any more.
pub(super) fn is_stale(error: &tokio_postgres::Error) -> bool {
    let routine = error.as_db_error().and_then(DbError::routine);
    (is_code(error, &SqlState::FEATURE_NOT_SUPPORTED) && routine == Some("RevalidateCachedQuery"))
        || is_code(error, &SqlState::INVALID_SQL_STATEMENT_NAME)
}
