//! Running statements on a session.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_util::future::{join, join3, join_all};
use futures_util::StreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::Statement;

use super::failure::{is_code, Failure};
use super::prepared::{is_stale, Prepared};
use super::session::{Mode, Session, State};
use super::transaction::COMMIT;
use super::values::{self, Param, Raw};
use crate::error::Detail;
use crate::statement::{self, Dialect, Kind};
use crate::{Error, ErrorKind, Rows, Value};

impl Session {
    /// Runs one statement. Returns `None` without running it if it would write in [`Mode::Read`].
    pub async fn query(
        &self,
        sql: &str,
        params: &[Value],
        mode: Mode,
    ) -> Result<Option<Rows>, Error> {
        let mut state = self.state.lock().await;
        self.run(&mut state, sql, params, mode)
            .await
            .map_err(|error| error.in_statement_unless_alone(sql))
    }

    /// Runs statements in the open transaction, up to the first that fails. They are sent together,
    /// so they cost one round trip.
    pub async fn query_all(&self, statements: &[(String, Vec<Value>)]) -> Result<Vec<Rows>, Error> {
        let mut state = self.state.lock().await;
        let mut all = Vec::with_capacity(statements.len());
        while all.len() < statements.len() {
            self.run_together(&mut state, &statements[all.len()..], &mut all).await?;
        }
        Ok(all)
    }

    /// Adds the results of the next statements; at least one, unless it fails. A change of the
    /// schema runs alone, since statements after it may depend on it.
    async fn run_together(
        &self,
        state: &mut State,
        statements: &[(String, Vec<Value>)],
        all: &mut Vec<Rows>,
    ) -> Result<(), Error> {
        let mut ready = Vec::with_capacity(statements.len());
        let mut last = Ok(());
        for (sql, params) in statements {
            let is_other = statement::one(sql, Dialect::Postgres, params.len())
                .is_ok_and(|scanned| scanned.kind() == Kind::Other);
            if is_other && ready.is_empty() {
                let alone = self.run(state, sql, params, Mode::Inside).await;
                let alone = alone.map_err(|error| error.in_statement_unless_alone(sql))?;
                // In this mode there is always a result.
                all.push(alone.unwrap_or_default());
                return Ok(());
            }
            if is_other {
                break;
            }
            match self.ready(state, sql, params).await {
                Ok(statement) => ready.push(statement),
                // The server has refused it, and with it the transaction.
                Err(error) if state.is_failed => return Err(error),
                // Those before it run first.
                Err(error) => {
                    last = Err(error);
                    break;
                }
            }
        }
        state.began = Some(Instant::now());
        let sent = ready.iter().map(|(prepared, sent)| self.in_savepoint(state, prepared, sent));
        for (found, (sql, _)) in join_all(sent).await.into_iter().zip(statements) {
            match found {
                Ok(rows) => all.push(rows),
                // The schema has changed since the statement was prepared. It and those after it,
                // which the server has skipped, are prepared again.
                Err(Failure::Driver(error)) if is_stale(&error) => {
                    state.prepared.clear();
                    return Ok(());
                }
                Err(failure) => {
                    let error = self.error(state, failure, Mode::Inside);
                    return Err(error.in_statement_unless_alone(sql));
                }
            }
        }
        last
    }

    /// A statement of the open transaction that is prepared, with its parameters.
    async fn ready(
        &self,
        state: &mut State,
        sql: &str,
        params: &[Value],
    ) -> Result<(Prepared, Vec<Param>), Error> {
        let ready = async {
            self.check_mode(state, Mode::Inside)?;
            let scanned = statement::one(sql, Dialect::Postgres, params.len())?;
            let prepared = self.prepare(state, scanned.text(), Mode::Inside).await?;
            let sent = encode(&prepared.statement, params)?;
            check_columns(&prepared.statement)?;
            Ok((prepared, sent))
        };
        ready.await.map_err(|error: Error| error.in_statement_unless_alone(sql))
    }

    /// Commits the open transaction with these statements. All are sent together, so that what the
    /// statements lock is locked for no round trip. If one of them fails, the server rolls back.
    pub(super) async fn commit_with(
        &self,
        state: &mut State,
        statements: &[(String, Vec<Value>)],
    ) -> Result<Vec<Rows>, Error> {
        let mut ready = Vec::with_capacity(statements.len());
        for (sql, params) in statements {
            ready.push(self.ready(state, sql, params).await?);
        }
        state.began = Some(Instant::now());
        let sent = ready.iter().map(|(prepared, sent)| self.fetch(&prepared.statement, sent));
        let commit = self.client.batch_execute(COMMIT);
        let answers = self.limited(async { Ok(join(join_all(sent), commit).await) }).await;
        // A failed commit ends the transaction too.
        self.is_open.store(false, Ordering::Release);
        let (found, committed) =
            answers.map_err(|failure| self.error(state, failure, Mode::Write))?;
        let mut all = Vec::with_capacity(found.len());
        for (found, (sql, _)) in found.into_iter().zip(statements) {
            let rows = found.map_err(|failure| {
                state.prepared.clear();
                self.error(state, failure, Mode::Write).in_statement_unless_alone(sql)
            })?;
            all.push(rows);
        }
        match committed {
            Ok(()) => Ok(all),
            Err(error) => Err(self.error(state, Failure::Driver(error), Mode::Write)),
        }
    }

    async fn run(
        &self,
        state: &mut State,
        sql: &str,
        params: &[Value],
        mode: Mode,
    ) -> Result<Option<Rows>, Error> {
        self.check_mode(state, mode)?;
        // A text with obvious writes is not sent to a reading session at all.
        let scanned = statement::one(sql, Dialect::Postgres, params.len())?;
        if mode == Mode::Read && scanned.kind() != Kind::Read {
            return Ok(None);
        }

        state.began = Some(Instant::now());
        // At most two rounds: the second prepares again after a stale plan.
        let mut heal = true;
        let found = loop {
            let prepared = self.prepare(state, scanned.text(), mode).await?;
            let sent = encode(&prepared.statement, params)?;
            check_columns(&prepared.statement)?;
            let found = match mode {
                Mode::Read => self.limited(self.fetch(&prepared.statement, &sent)).await,
                Mode::Write => self.write(&prepared.statement, &sent).await,
                Mode::Inside => self.in_savepoint(state, &prepared, &sent).await,
            };
            match found {
                // The schema has changed since the statement was prepared. Prepare it again, once.
                Err(Failure::Driver(error)) if heal && is_stale(&error) => {
                    heal = false;
                    state.prepared.remove(scanned.text());
                }
                Err(Failure::Driver(error))
                    if mode == Mode::Read
                        && is_code(&error, &SqlState::READ_ONLY_SQL_TRANSACTION) =>
                {
                    return Ok(None);
                }
                found => break found,
            }
        };
        // After a change of the schema all plans of this session may be stale.
        if scanned.kind() == Kind::Other {
            state.prepared.clear();
        }
        found.map(Some).map_err(|failure| self.error(state, failure, mode))
    }

    /// Runs the statements of a text in order, up to the first that fails.
    pub async fn execute_batch(&self, sql: &str, mode: Mode) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        self.run_batch(&mut state, sql, mode).await
    }

    async fn run_batch(&self, state: &mut State, sql: &str, mode: Mode) -> Result<(), Error> {
        self.check_mode(state, mode).map_err(|error| error.in_statement_unless_alone(sql))?;
        // Statements are sent one at a time, so that an error names the one that failed.
        let statements = statement::all(sql, Dialect::Postgres)?;
        state.prepared.clear();
        for text in statements.iter().map(|statement| statement.text()) {
            state.began = Some(Instant::now());
            let simple = async { self.client.batch_execute(text).await.map_err(Failure::Driver) };
            let done = match mode {
                Mode::Inside => self.limited(simple).await,
                Mode::Read | Mode::Write => self.in_transaction(simple).await,
            };
            done.map_err(|failure| {
                self.error(state, failure, mode).in_statement_unless_alone(text)
            })?;
        }
        Ok(())
    }

    /// Takes a statement from the cache, or prepares it.
    async fn prepare(&self, state: &mut State, text: &str, mode: Mode) -> Result<Prepared, Error> {
        let transaction = state.transaction;
        if let Some(prepared) = state.prepared.get(text, transaction) {
            return Ok(prepared);
        }
        let made =
            self.limited(async { self.client.prepare(text).await.map_err(Failure::Driver) }).await;
        let statement = match made {
            Ok(statement) => statement,
            // A statement that was only prepared has not run.
            Err(Failure::Driver(error)) if error.is_closed() && mode != Mode::Inside => {
                return Err(self.lost(Detail::NotSent, ErrorKind::NotSent));
            }
            Err(failure) => return Err(self.error(state, failure, mode)),
        };
        state.prepared.insert(text, statement.clone(), transaction);
        Ok(Prepared { statement, transaction })
    }

    async fn fetch(&self, statement: &Statement, params: &[Param]) -> Result<Rows, Failure> {
        let columns = statement.columns();
        // Rows are decoded as they arrive; the driver keeps no second copy of the result.
        let mut stream = pin!(self.client.query_raw(statement, params).await?);
        let mut found = Rows::default();
        while let Some(row) = stream.next().await {
            let row = row?;
            let mut values = Vec::with_capacity(columns.len());
            for (at, column) in columns.iter().enumerate() {
                let value = match row.try_get::<_, Option<Raw<'_>>>(at)? {
                    None => Some(Value::Null),
                    Some(Raw(bytes)) => values::decode(column.type_(), bytes),
                };
                values.push(value.ok_or_else(|| {
                    Error::new(ErrorKind::Other, Detail::NotANumber(column.name().to_owned()))
                })?);
            }
            found.rows.push(values);
        }
        found.count = match columns {
            [] => stream.rows_affected().unwrap_or(0),
            _ => found.rows.len() as u64,
        };
        found.columns = columns.iter().map(|column| column.name().to_owned()).collect();
        Ok(found)
    }

    async fn write(&self, statement: &Statement, params: &[Param]) -> Result<Rows, Failure> {
        self.in_transaction(self.fetch(statement, params)).await
    }

    /// Runs a statement in the open transaction.
    ///
    /// If a table has changed, a prepared statement may return other columns than when it was
    /// prepared. The server reports that as an error, which fails the whole transaction. So a
    /// statement that returns rows and was prepared before this transaction runs in a savepoint the
    /// first time; then it can be prepared again.
    async fn in_savepoint(
        &self,
        state: &State,
        prepared: &Prepared,
        params: &[Param],
    ) -> Result<Rows, Failure> {
        let work = self.fetch(&prepared.statement, params);
        // Nothing can be stale: this transaction has used the statement, or it returns no rows.
        if prepared.transaction == state.transaction || prepared.statement.columns().is_empty() {
            return self.limited(work).await;
        }
        // All three are sent together, so the savepoint costs no extra round trip.
        let (saved, done, released) = self
            .limited(async {
                let (save, release) = ("savepoint plan", "release savepoint plan");
                Ok(join3(self.client.batch_execute(save), work, self.client.batch_execute(release))
                    .await)
            })
            .await?;
        saved?;
        match done {
            Err(Failure::Driver(error)) if is_stale(&error) => {
                let back = "rollback to savepoint plan; release savepoint plan";
                self.limited(async {
                    self.client.batch_execute(back).await.map_err(Failure::Driver)
                })
                .await?;
                Err(Failure::Driver(error))
            }
            Err(failure) => Err(failure),
            Ok(rows) => {
                released?;
                Ok(rows)
            }
        }
    }
}

fn encode(statement: &Statement, params: &[Value]) -> Result<Vec<Param>, Error> {
    let types = statement.params();
    if types.len() != params.len() {
        let detail = Detail::ParamCount { placeholders: types.len(), given: params.len() };
        return Err(Error::new(ErrorKind::Params, detail));
    }
    params
        .iter()
        .zip(types)
        .enumerate()
        .map(|(at, (value, ty))| values::encode(value, ty, at + 1))
        .collect()
}

/// This check comes before the statement runs: its writes could not be undone if its rows turned
/// out to be unreadable.
fn check_columns(statement: &Statement) -> Result<(), Error> {
    match statement.columns().iter().find(|column| !values::is_readable(column.type_())) {
        None => Ok(()),
        Some(column) => {
            let (column, type_name) = (column.name().to_owned(), column.type_().name().to_owned());
            Err(Error::new(ErrorKind::Other, Detail::Unreadable { column, type_name }))
        }
    }
}
