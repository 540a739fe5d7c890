//! The HTTP server of `Skillbook.Web.Server`, by hyper.
//!
//! A connection is a task on the tokio runtime. It reads a request, whole and within limits, and
//! tells the server's process `{:skillbook_request, exchange}`. That process starts one for the
//! request, which gets it by `web_take` and answers with `web_respond`, or with `web_stream`,
//! `web_write` and `web_finish`. So an idle connection, and a client that sends or reads slowly,
//! costs memory here and no process.
//!
//! - `listener`: sockets, the number of connections, the end of a server
//! - `connection`: one connection with its time limits
//! - `io`: bytes in and out of a socket, and when they moved
//! - `request`: the checks of a head, and the body
//! - `exchange`: a request with its answer, shared with a process of Elixir
//! - `outgoing`: the body of a response
//! - `rules`: proxies in front, and websites that may read the server's own answers
//! - `tls`: certificates

mod clock;
mod connection;
mod exchange;
mod io;
mod listener;
mod outgoing;
mod request;
mod rules;
mod shared;
mod stream;
mod tls;

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::StatusCode;
use rustler::{Atom, Binary, Encoder, Env, NifMap, NifResult, Resource, ResourceArc, Term};
use skillbook_bridge::runtime::{runtime, Reply};

use exchange::ExchangeResource;
use listener::{Address, Server};
use rules::Rules;

mod atoms {
    rustler::atoms! {
        ok, error, closed, nil, unix, http, https, busy,
        method, scheme, host, path, query, headers, peer,
        address, permission, in_use, certificate, other,
        skillbook_request, skillbook_gone, skillbook_certificate,
    }
}

/// Limits of a server. Times are milliseconds.
#[derive(NifMap, Clone)]
struct Limits {
    head_bytes: usize,
    head_count: usize,
    target_bytes: usize,
    body_bytes: u64,
    /// Of all bodies together.
    bodies_bytes: usize,
    head_time: u64,
    idle_time: u64,
    /// The time for a body: this, and its length divided by the rate.
    body_time: u64,
    /// Bytes in a second.
    body_rate: u64,
    write_time: u64,
    request_time: u64,
    connections: usize,
    connections_per_address: usize,
    requests: usize,
    queue: usize,
    queue_time: u64,
    streams: usize,
    http2_streams: u32,
}

#[derive(NifMap)]
struct Settings {
    ip: Option<String>,
    port: u16,
    socket: Option<String>,
    certfile: Option<String>,
    keyfile: Option<String>,
    http2: bool,
    limits: Limits,
    /// Networks of proxies, each with its number of bits.
    proxies: Vec<(String, u8)>,
    /// Origins whose pages may read the server's own answers below some paths, and the headers
    /// for that.
    origins: Vec<String>,
    shared_paths: Vec<String>,
    shared_headers: Vec<(String, String)>,
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A running server. It ends with the process that started it.
pub struct ServerResource(Server);

#[rustler::resource_impl]
impl Resource for ServerResource {
    const IMPLEMENTS_DOWN: bool = true;

    fn down<'a>(&'a self, _env: Env<'a>, _pid: rustler::LocalPid, _monitor: rustler::Monitor) {
        self.0.end();
    }
}

impl Drop for ServerResource {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// `{:ok, server, port}` or `{:error, kind, text}`. The calling process gets the requests.
#[rustler::nif(schedule = "DirtyIo")]
fn web_start(env: Env<'_>, settings: Settings) -> NifResult<Term<'_>> {
    let address = match (&settings.ip, &settings.socket) {
        (_, Some(path)) => Address::Unix(path.into()),
        (Some(ip), None) => {
            Address::Tcp(ip.parse().map_err(|_| rustler::Error::BadArg)?, settings.port)
        }
        (None, None) => return Err(rustler::Error::BadArg),
    };
    let tls = match (&settings.certfile, &settings.keyfile) {
        (Some(certfile), Some(keyfile)) => {
            match tls::Files::open(certfile.into(), keyfile.into(), settings.http2) {
                Ok(files) => Some(files),
                Err(text) => {
                    return Ok((atoms::error(), atoms::certificate(), text).encode(env));
                }
            }
        }
        _ => None,
    };
    let owner = env.pid();
    let rules = Rules::new(&settings).ok_or(rustler::Error::BadArg)?;
    let server = match Server::start(
        runtime()?,
        address,
        tls,
        settings.http2,
        settings.limits,
        rules,
        owner,
    ) {
        Ok(server) => server,
        Err(fault) => return Ok((atoms::error(), fault.kind(), fault.text()).encode(env)),
    };
    let port = server.port();
    let server = ResourceArc::new(ServerResource(server));
    // The process may have been killed in the meantime.
    if env.monitor(&server, &owner).is_none() {
        server.0.end();
    }
    Ok((atoms::ok(), server, port).encode(env))
}

fn stopped(env: Env<'_>) -> Term<'_> {
    atoms::ok().encode(env)
}

/// Accepts no more connections, ends event streams, and closes each connection after its requests,
/// all of them after `drain` milliseconds. Replies when none is open.
#[rustler::nif]
fn web_stop(server: ResourceArc<ServerResource>, reference: Term, drain: u64) -> NifResult<Atom> {
    let reply = Reply::new(reference, stopped);
    let stop = server.0.stop(ms(drain));
    runtime()?.spawn(async move {
        stop.await;
        reply.send(stopped);
    });
    Ok(atoms::ok())
}

/// Open connections, requests with a process, requests that wait for one, open streams, and bytes
/// of bodies.
#[rustler::nif]
fn web_info(server: ResourceArc<ServerResource>) -> (usize, usize, usize, usize, usize) {
    server.0.counts()
}

/// The request, which the calling process answers: `{:ok, head, body}`, or `:closed` if the client
/// has gone.
#[rustler::nif]
fn web_take(env: Env<'_>, exchange: ResourceArc<ExchangeResource>) -> Term<'_> {
    match exchange.0.take(env.pid()) {
        Some((head, body)) if env.monitor(&exchange, &env.pid()).is_some() => {
            (atoms::ok(), head.encode(env), request::encode_body(env, body)).encode(env)
        }
        _ => atoms::closed().encode(env),
    }
}

/// Answers with a whole body: `:ok`, `:closed` if the client has gone, or `{:error, text}` if the
/// head is not valid.
#[rustler::nif]
fn web_respond<'a>(
    env: Env<'a>,
    exchange: ResourceArc<ExchangeResource>,
    status: u16,
    headers: Vec<(Binary, Binary)>,
    body: Binary,
) -> NifResult<Term<'a>> {
    let (status, headers) = match head(status, &headers) {
        Ok(head) => head,
        Err(text) => return Ok((atoms::error(), text).encode(env)),
    };
    let body = Bytes::copy_from_slice(body.as_slice());
    Ok(done(env, exchange.0.respond(status, headers, body)))
}

/// Answers with the head of a stream: as `web_respond`, or `:busy` if there are too many streams.
/// With a length, the stream is a body of this length. `is_endless` marks a stream that ends with
/// the server.
#[rustler::nif]
fn web_stream<'a>(
    env: Env<'a>,
    exchange: ResourceArc<ExchangeResource>,
    status: u16,
    headers: Vec<(Binary, Binary)>,
    length: Option<u64>,
    is_endless: bool,
) -> NifResult<Term<'a>> {
    let (status, headers) = match head(status, &headers) {
        Ok(head) => head,
        Err(text) => return Ok((atoms::error(), text).encode(env)),
    };
    Ok(match exchange.0.stream(status, headers, length, is_endless) {
        exchange::Streamed::Busy => atoms::busy().encode(env),
        exchange::Streamed::Open => atoms::ok().encode(env),
        exchange::Streamed::Closed => atoms::closed().encode(env),
    })
}

fn closed(env: Env<'_>) -> Term<'_> {
    (atoms::error(), atoms::closed()).encode(env)
}

/// Sends a part. `:closed`, or the message `{reference, :ok | {:error, :closed}}` when the
/// connection has taken it. The caller waits for the message before it sends the next part.
#[rustler::nif]
fn web_write(exchange: ResourceArc<ExchangeResource>, reference: Term, data: Binary) -> Atom {
    let make = || Reply::new(reference, closed);
    match exchange.0.write(Bytes::copy_from_slice(data.as_slice()), make) {
        true => atoms::ok(),
        false => atoms::closed(),
    }
}

/// Ends a stream.
#[rustler::nif]
fn web_finish(exchange: ResourceArc<ExchangeResource>) -> Atom {
    exchange.0.finish();
    atoms::ok()
}

fn done(env: Env<'_>, is_sent: bool) -> Term<'_> {
    if is_sent { atoms::ok() } else { atoms::closed() }.encode(env)
}

/// Headers that belong to the connection, which are the server's.
const OURS: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn head(status: u16, headers: &[(Binary, Binary)]) -> Result<(StatusCode, HeaderMap), String> {
    let status = StatusCode::from_u16(status)
        .ok()
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or_else(|| format!("expected a status from 200 to 599, got: {status}"))?;
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let shown = String::from_utf8_lossy(name);
        let name = HeaderName::from_bytes(name)
            .map_err(|_| format!("expected the name of a header, got: {shown:?}"))?;
        if OURS.contains(&name.as_str()) {
            return Err(format!("the header {name} is the server's; leave it out"));
        }
        // The value may be a secret.
        let value = HeaderValue::from_bytes(value)
            .map_err(|_| format!("the value of the header {name} has control characters"))?;
        map.append(name, value);
    }
    Ok((status, map))
}
