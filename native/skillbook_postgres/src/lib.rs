//! The native library of PostgreSQL: the functions of `Skillbook.SQL.Postgres.Library`, which call
//! `skillbook_drivers`. `skillbook_bridge` says how a library is made. Calls that wait reply by
//! message, see `skillbook_bridge::runtime`.
//!
//! No scheduler or thread waits for the server: a call spawns a task that owns its decoded
//! arguments, and the result goes to the calling process. If that process dies in the meantime, the
//! task still finishes its statement.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustler::env::OwnedEnv;
use rustler::{Encoder, Env, NifMap, NifResult, NifUnitEnum, Resource, ResourceArc, Term};
use skillbook_bridge::runtime::{runtime, Reply};
use skillbook_drivers::postgres::{
    Address, Event, Mode, Parts, Server, Session, SslMode, Timeouts,
};
use skillbook_drivers::terms::{
    decode_params, decode_statements, done, encode_all, encode_error, encode_rows, reply,
};
use skillbook_drivers::{Error, Rows, Value};

skillbook_bridge::library!("Elixir.Skillbook.SQL.Postgres.Library");

mod atoms {
    rustler::atoms! { ok, error, writes, skillbook_postgres_notification, skillbook_postgres_end }
}

/// A database on a server.
pub struct ServerResource(Arc<Server>);

#[rustler::resource_impl]
impl Resource for ServerResource {}

/// A connection. It is closed when no process refers to it any more.
pub struct SessionResource(Arc<Session>);

#[rustler::resource_impl]
impl Resource for SessionResource {}

#[derive(NifMap)]
struct AddressMap {
    host: String,
    port: u16,
    user: String,
    password: Option<String>,
    database: String,
    application_name: String,
    ssl: String,
    ssl_ca_file: Option<String>,
}

#[derive(NifMap)]
struct TimeoutsMap {
    timeout: u64,
    queue_timeout: u64,
    connect_timeout: u64,
}

#[derive(NifUnitEnum)]
enum ModeAtom {
    Read,
    Write,
    Inside,
}

impl From<ModeAtom> for Mode {
    fn from(mode: ModeAtom) -> Mode {
        match mode {
            ModeAtom::Read => Mode::Read,
            ModeAtom::Write => Mode::Write,
            ModeAtom::Inside => Mode::Inside,
        }
    }
}

fn panicked(env: Env<'_>) -> Term<'_> {
    (atoms::error(), encode_error(env, &Error::panicked())).encode(env)
}

/// Runs `work` with the session in a task, and sends the result.
fn run<T, F>(
    session: &ResourceArc<SessionResource>,
    reference: Term,
    work: impl FnOnce(Arc<Session>) -> F,
    encode: impl for<'a> FnOnce(Env<'a>, T) -> Term<'a> + Send + 'static,
) -> NifResult<rustler::Atom>
where
    F: Future<Output = T> + Send + 'static,
    T: Send,
{
    let runtime = runtime()?;
    let reply = Reply::new(reference, panicked);
    let work = work(Arc::clone(&session.0));
    runtime.spawn(async move {
        let found = work.await;
        reply.send(|env| encode(env, found));
    });
    Ok(atoms::ok())
}

/// Makes a server from its settings, without connecting. Runs on dirty IO because it may read the
/// file of certificate authorities.
#[rustler::nif(schedule = "DirtyIo")]
fn postgres_server<'a>(
    env: Env<'a>,
    address: AddressMap,
    timeouts: TimeoutsMap,
) -> NifResult<Term<'a>> {
    let address = Address {
        host: address.host,
        port: address.port,
        user: address.user,
        password: address.password,
        database: address.database,
        application_name: address.application_name,
        ssl_mode: SslMode::from_name(&address.ssl).ok_or(rustler::Error::BadArg)?,
        authorities: address.ssl_ca_file,
    };
    let timeouts = Timeouts {
        statement: Duration::from_millis(timeouts.timeout),
        lock: Duration::from_millis(timeouts.queue_timeout),
        connect: Duration::from_millis(timeouts.connect_timeout),
    };
    let server = Server::new(&address, timeouts)
        .map(|server| ResourceArc::new(ServerResource(Arc::new(server))));
    Ok(reply(env, server))
}

/// `{:ok, session}` or `{:error, error, is_transient}`. The calling process also receives the
/// session's notifications.
#[rustler::nif]
fn postgres_connect(
    env: Env,
    server: ResourceArc<ServerResource>,
    reference: Term,
) -> NifResult<rustler::Atom> {
    let runtime = runtime()?;
    let reply = Reply::new(reference, panicked);
    let pid = env.pid();
    // Events may come at any time and from another thread, so the reference is copied into an
    // environment of its own, behind a mutex.
    let heard_env = OwnedEnv::new();
    let reference = Arc::new(std::sync::Mutex::new((heard_env.save(reference), heard_env)));
    let on_event = move |event: Event| {
        let saved = reference.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let term = |env| saved.1.run(|own| saved.0.load(own).in_env(env));
        // If the process has ended, nobody needs the event.
        let _ = OwnedEnv::new().send_and_clear(&pid, |env| match event {
            Event::Notification { channel, payload } => {
                (atoms::skillbook_postgres_notification(), term(env), channel, payload).encode(env)
            }
            Event::End => (atoms::skillbook_postgres_end(), term(env)).encode(env),
        });
    };
    let server = Arc::clone(&server.0);
    runtime.spawn(async move {
        let opened = server.connect(on_event).await;
        reply.send(|env| match opened {
            Ok(session) => {
                (atoms::ok(), ResourceArc::new(SessionResource(Arc::new(session)))).encode(env)
            }
            Err(failed) => {
                (atoms::error(), encode_error(env, &failed.error), failed.is_transient).encode(env)
            }
        });
    });
    Ok(atoms::ok())
}

/// `:writes` without running the statement, if the mode is `:read` and the statement would write.
#[rustler::nif]
fn postgres_query(
    session: ResourceArc<SessionResource>,
    reference: Term,
    mode: ModeAtom,
    sql: String,
    params: Vec<Term>,
) -> NifResult<rustler::Atom> {
    let params: Vec<Value> = decode_params(&params)?;
    let work =
        |session: Arc<Session>| async move { session.query(&sql, &params, mode.into()).await };
    run(&session, reference, work, |env, found: Result<Option<Rows>, Error>| {
        match found.transpose() {
            Some(found) => reply(env, found.map(|found| encode_rows(env, &found))),
            None => atoms::writes().encode(env),
        }
    })
}

/// Runs the statements of a transaction, each with its parameters, up to the first that fails.
#[rustler::nif]
fn postgres_query_all(
    session: ResourceArc<SessionResource>,
    reference: Term,
    statements: Vec<(String, Vec<Term>)>,
) -> NifResult<rustler::Atom> {
    let statements = decode_statements(&statements)?;
    let work = |session: Arc<Session>| async move { session.query_all(&statements).await };
    run(&session, reference, work, |env, found: Result<Vec<Rows>, Error>| {
        reply(env, found.map(|found| encode_all(env, &found)))
    })
}

#[rustler::nif]
fn postgres_batch(
    session: ResourceArc<SessionResource>,
    reference: Term,
    mode: ModeAtom,
    sql: String,
) -> NifResult<rustler::Atom> {
    run(
        &session,
        reference,
        |session| async move { session.execute_batch(&sql, mode.into()).await },
        done,
    )
}

/// Begins a transaction with these statements. If one of them fails, the transaction is rolled
/// back. `waits` is whether it waits for other writers of its parts.
#[rustler::nif]
fn postgres_begin(
    session: ResourceArc<SessionResource>,
    reference: Term,
    level: u32,
    parts: Vec<i64>,
    waits: bool,
    statements: Vec<(String, Vec<Term>)>,
) -> NifResult<rustler::Atom> {
    let statements = decode_statements(&statements)?;
    let work = move |session: Arc<Session>| async move {
        session.begin(level, Parts { keys: &parts, waits }).await?;
        let found = session.query_all(&statements).await;
        if found.is_err() {
            // The caller's transaction has not begun, so it will not roll back itself.
            session.rollback(level).await?;
        }
        found
    };
    run(&session, reference, work, |env, found: Result<Vec<Rows>, Error>| {
        reply(env, found.map(|found| encode_all(env, &found)))
    })
}

/// Commits a transaction with these last statements.
#[rustler::nif]
fn postgres_commit(
    session: ResourceArc<SessionResource>,
    reference: Term,
    level: u32,
    statements: Vec<(String, Vec<Term>)>,
) -> NifResult<rustler::Atom> {
    let statements = decode_statements(&statements)?;
    let work = |session: Arc<Session>| async move { session.commit(level, &statements).await };
    run(&session, reference, work, |env, found: Result<Vec<Rows>, Error>| {
        reply(env, found.map(|found| encode_all(env, &found)))
    })
}

#[rustler::nif]
fn postgres_rollback(
    session: ResourceArc<SessionResource>,
    reference: Term,
    level: u32,
) -> NifResult<rustler::Atom> {
    run(&session, reference, |session| async move { session.rollback(level).await }, done)
}

#[rustler::nif]
fn postgres_listen(
    session: ResourceArc<SessionResource>,
    reference: Term,
    channel: String,
    listens: bool,
) -> NifResult<rustler::Atom> {
    run(&session, reference, |session| async move { session.listen(&channel, listens).await }, done)
}

#[rustler::nif]
fn postgres_usable(session: ResourceArc<SessionResource>) -> bool {
    session.0.is_usable()
}

/// Cancels the running statement, rolls back, and closes the session. There is no reply.
#[rustler::nif]
fn postgres_close(session: ResourceArc<SessionResource>) -> NifResult<rustler::Atom> {
    let session = Arc::clone(&session.0);
    // Not in the task: as soon as this function returns, the session must refuse calls.
    session.refuse();
    runtime()?.spawn(async move { session.close().await });
    Ok(atoms::ok())
}
