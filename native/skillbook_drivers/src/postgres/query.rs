//! Running statements on a session.

use std::pin::pin;
use std::time::Instant;

use futures_util::future::join3;
use futures_util::StreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::Statement;

use super::failure::{is_code, Failure};
use super::prepared::{is_stale, Prepared};
use super::session::{Mode, Session, State};
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

    /// Runs statements in the open transaction, up to the first that fails.
    pub async fn query_all(&self, statements: &[(String, Vec<Value>)]) -> Result<Vec<Rows>, Error> {
        let mut all = Vec::with_capacity(statements.len());
        for (sql, params) in statements {
            // In this mode there is always a result.
            all.push(self.query(sql, params, Mode::Inside).await?.unwrap_or_default());
        }
        Ok(all)
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
