//! The statements that a session keeps prepared.

use std::collections::HashMap;

use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::Statement;

use super::failure::is_code;

/// Statements that a session keeps prepared.
const PREPARED: usize = 64;

/// The prepared statements of a session, by their text.
#[derive(Default)]
pub(super) struct Cache {
    statements: HashMap<String, Entry>,
    /// Counts uses, to find the statement that was not used for the longest time.
    uses: u64,
}

struct Entry {
    statement: Statement,
    used: u64,
    /// In which transaction it was used last.
    transaction: u64,
}

/// A prepared statement.
pub(super) struct Prepared {
    pub statement: Statement,
    /// In which transaction it was used before or, if it is new, prepared.
    pub transaction: u64,
}

impl Cache {
    /// The statement of that text, if it is kept, for use in a transaction.
    pub fn get(&mut self, text: &str, transaction: u64) -> Option<Prepared> {
        self.uses += 1;
        let entry = self.statements.get_mut(text)?;
        entry.used = self.uses;
        let before = std::mem::replace(&mut entry.transaction, transaction);
        Some(Prepared { statement: entry.statement.clone(), transaction: before })
    }

    /// Keeps a statement, in place of the one that was not used for the longest time if there are too many.
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

/// "cached plan must not change result type", or the statement is no longer there.
pub(super) fn is_stale(error: &tokio_postgres::Error) -> bool {
    let routine = error.as_db_error().and_then(DbError::routine);
    (is_code(error, &SqlState::FEATURE_NOT_SUPPORTED) && routine == Some("RevalidateCachedQuery"))
        || is_code(error, &SqlState::INVALID_SQL_STATEMENT_NAME)
}
