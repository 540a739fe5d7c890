//! SQLite for `Skillbook.SQL.SQLite`.
//!
//! SQLite blocks, so every call runs on a dirty IO scheduler. If the calling process is killed, its
//! statement would go on until its end. So each call monitors its caller: when the caller dies, the
//! connection's interrupt is set, which SQLite checks every few microseconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustler::{Encoder, Env, LocalPid, Monitor, NifResult, ResourceArc, Term};
use skillbook_drivers::sqlite::{Sqlite, SqliteConnection};
use skillbook_drivers::terms::{
    decode_params, decode_statements, done, encode_all, encode_rows, reply,
};
use skillbook_drivers::{Connection, Database, Error, Interrupt, Rows, Value};

mod atoms {
    rustler::atoms! { ok, writes }
}

/// A database, and the processes with a running statement, each with the interrupt of its
/// connection.
pub struct SqlResource {
    database: Arc<Database<Sqlite>>,
    running: Mutex<Vec<(LocalPid, Interrupt)>>,
    closed: AtomicBool,
}

#[rustler::resource_impl]
impl rustler::Resource for SqlResource {
    // `down` only sets flags. It must never wait for a connection.
    const IMPLEMENTS_DOWN: bool = true;

    /// Called when a process with a running statement has died.
    fn down<'a>(&'a self, _env: Env<'a>, pid: LocalPid, _monitor: Monitor) {
        for (_, interrupt) in self.running().iter().filter(|(running, _)| *running == pid) {
            interrupt.set();
        }
    }
}

impl Drop for SqlResource {
    /// Garbage collection runs on a normal scheduler, and closing a database writes to disk. So it
    /// happens on a thread of its own.
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Acquire) {
            let database = Arc::clone(&self.database);
            // If no thread can be started, the connections are closed right here.
            let _ = thread::Builder::new()
                .name("skillbook-sql-close".into())
                .spawn(move || database.close());
        }
    }
}

impl SqlResource {
    fn running(&self) -> MutexGuard<'_, Vec<(LocalPid, Interrupt)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` such that it is interrupted when the calling process dies.
fn interruptible<T>(
    env: Env,
    resource: &ResourceArc<SqlResource>,
    connection: &mut SqliteConnection,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, Error>,
) -> Result<T, Error> {
    let pid = env.pid();
    let interrupt = connection.interrupt();
    // Registered before the monitor, or a process that dies in between would not be found by
    // `down`.
    resource.running().push((pid, interrupt.clone()));
    // Monitoring fails if the process has died already; then nothing runs.
    let result = match env.monitor(resource, &pid) {
        Some(monitor) => {
            let result = work(connection);
            env.demonitor(resource, &monitor);
            result
        }
        None => Err(Error::closed()),
    };
    // Once this process is removed from the list, `down` cannot find the connection. Only then is
    // the interrupt cleared, so the next caller's statement is never hit.
    resource.running().retain(|(running, _)| *running != pid);
    interrupt.clear();
    result
}

#[rustler::nif(schedule = "DirtyIo")]
fn sql_open<'a>(env: Env<'a>, path: &str, busy_timeout_ms: u64) -> Term<'a> {
    // Opening may create the file and its folders, and waits for other processes to switch to WAL.
    let opened =
        Database::open(Sqlite::new(path, Duration::from_millis(busy_timeout_ms))).map(|database| {
            ResourceArc::new(SqlResource {
                database: Arc::new(database),
                running: Mutex::new(Vec::new()),
                closed: AtomicBool::new(false),
            })
        });
    reply(env, opened)
}

#[rustler::nif(schedule = "DirtyIo")]
fn sql_close<'a>(env: Env<'a>, resource: ResourceArc<SqlResource>) -> Term<'a> {
    // Running statements are interrupted first, because `close` waits for the writer.
    for (_, interrupt) in resource.running().iter() {
        interrupt.set();
    }
    resource.database.close();
    resource.closed.store(true, Ordering::Release);
    atoms::ok().encode(env)
}

/// `:writes` without running the statement, if it needs the writing connection.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_read<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    sql: &str,
    params: Vec<Term<'a>>,
) -> NifResult<Term<'a>> {
    let params = decode_params(&params)?;
    let found = resource.database.read(|reader| {
        interruptible(env, &resource, reader, |connection| connection.read(sql, &params))
    });
    Ok(match found.transpose() {
        Some(found) => reply(env, found.map(|found| encode_rows(env, &found))),
        None => atoms::writes().encode(env),
    })
}

#[rustler::nif(schedule = "DirtyIo")]
fn sql_query<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    inside: bool,
    sql: &str,
    params: Vec<Term<'a>>,
) -> NifResult<Term<'a>> {
    let params = decode_params(&params)?;
    let found = write(env, &resource, epoch, inside, |connection| connection.query(sql, &params));
    Ok(reply(env, found.map(|found| encode_rows(env, &found))))
}

/// Runs the statements of a transaction, each with its parameters, up to the first that fails.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_query_all<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    statements: Vec<(String, Vec<Term<'a>>)>,
) -> NifResult<Term<'a>> {
    let statements = decode_statements(&statements)?;
    let found = write(env, &resource, epoch, true, |connection| query_all(connection, &statements));
    Ok(reply(env, found.map(|found| encode_all(env, &found))))
}

fn query_all(
    connection: &mut SqliteConnection,
    statements: &[(String, Vec<Value>)],
) -> Result<Vec<Rows>, Error> {
    statements.iter().map(|(sql, params)| connection.query(sql, params)).collect()
}

#[rustler::nif(schedule = "DirtyIo")]
fn sql_batch<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    inside: bool,
    sql: &str,
) -> Term<'a> {
    done(env, write(env, &resource, epoch, inside, |connection| connection.execute_batch(sql)))
}

/// Begins a transaction with these statements. If one of them fails, the transaction is rolled
/// back.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_begin<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    level: u32,
    statements: Vec<(String, Vec<Term<'a>>)>,
) -> NifResult<Term<'a>> {
    let statements = decode_statements(&statements)?;
    let found = write(env, &resource, epoch, level > 0, |connection| {
        connection.begin(level)?;
        query_all(connection, &statements)
            // The caller sees the first error; it has not begun a transaction, so it will not roll
            // back itself.
            .or_else(|error| connection.rollback(level).and(Err(error)))
    });
    Ok(reply(env, found.map(|found| encode_all(env, &found))))
}

/// Runs the last statements of a transaction and commits it. If one of them fails, the transaction
/// stays open.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_commit<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    level: u32,
    statements: Vec<(String, Vec<Term<'a>>)>,
) -> NifResult<Term<'a>> {
    let statements = decode_statements(&statements)?;
    let found = write(env, &resource, epoch, true, |connection| {
        let found = query_all(connection, &statements)?;
        connection.commit(level).map(|()| found)
    });
    Ok(reply(env, found.map(|found| encode_all(env, &found))))
}

#[rustler::nif(schedule = "DirtyIo")]
fn sql_rollback<'a>(
    env: Env<'a>,
    resource: ResourceArc<SqlResource>,
    epoch: u64,
    level: u32,
) -> Term<'a> {
    done(env, resource.database.write(epoch, |connection| connection.rollback(level)))
}

/// Fails if the database's file was deleted or replaced since it was opened.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_check<'a>(env: Env<'a>, resource: ResourceArc<SqlResource>) -> Term<'a> {
    done(env, resource.database.check())
}

/// Rolls back the transaction of a process that died, and returns the next writer's epoch.
#[rustler::nif(schedule = "DirtyIo")]
fn sql_abandon(resource: ResourceArc<SqlResource>) -> u64 {
    resource.database.abandon()
}

fn write<T>(
    env: Env,
    resource: &ResourceArc<SqlResource>,
    epoch: u64,
    inside: bool,
    work: impl FnOnce(&mut SqliteConnection) -> Result<T, Error>,
) -> Result<T, Error> {
    let work = |connection: &mut SqliteConnection| interruptible(env, resource, connection, work);
    match inside {
        true => resource.database.write_inside(epoch, work),
        false => resource.database.write(epoch, work),
    }
}
