//! One connection: its protocol, its requests, and the times after which it is closed.

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONNECTION, RETRY_AFTER};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustler::env::OwnedEnv;
use rustler::{Encoder, ResourceArc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep_until, timeout, timeout_at, Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::clock::{Busy, Clock, End};
use super::exchange::{Exchange, ExchangeResource};
use super::io::{Socket, Watched};
use super::outgoing::{plain, Kind, Outgoing};
use super::request::{self, Refusal};
use super::shared::{Peer, Phase, Seat, Shared};
use super::{atoms, ms};

/// The first bytes of a connection in HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// hyper's least buffer.
const BUFFER: usize = 8 * 1024;

/// The windows of HTTP/2: bytes of bodies that a client may send ahead, of one and of all streams.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of a response that HTTP/2 holds for each stream.
const SEND_BUFFER: usize = 64 * 1024;

/// Streams that a client may reset before they are taken (CVE-2023-44487), and that it may make the
/// server reset.
const RESET_STREAMS: usize = 20;
const ERROR_STREAMS: usize = 256;

/// A client in HTTP/2 must answer a ping. Over HTTP/1.1 an event stream's comments find out.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// After an answer to a request that was not read to its end, the rest is skipped for this time
/// and up to this size. Closing at once would send a reset, which can overtake the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// The time between the last frame of an idle connection in HTTP/2 and its end.
const GOODBYE: Duration = Duration::from_secs(1);

const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves a connection to its end.
pub(super) async fn serve(socket: Socket, peer: Peer, shared: Arc<Shared>, _seat: Seat) {
    let Some((socket, first, is_http2)) = begin(socket, &shared).await else { return };
    let clock = Arc::new(Clock::new(shared.began));
    clock.is_http2.store(is_http2, Ordering::Relaxed);
    let conn = Conn { clock, shared, peer };
    // In boxes, so that a connection without a request is small.
    if is_http2 {
        return Box::pin(http2(socket, first, conn)).await;
    }
    let mut next = Some((socket, first, conn));
    while let Some((socket, first, conn)) = next {
        next = match Box::pin(http1(socket, first, conn)).await {
            Some((socket, first, conn)) if first.is_empty() => {
                // It may hold a buffer.
                drop(first);
                park(socket, conn).await
            }
            left => left,
        };
    }
}

/// An open connection, and bytes that it has sent.
type Open = (Socket, Bytes, Conn);

/// Waits for the next request of an idle connection.
async fn park(mut socket: Socket, conn: Conn) -> Option<Open> {
    let idle_since = conn.clock.idle_since.load(Ordering::Relaxed);
    let deadline = conn.clock.at(idle_since.saturating_add(conn.shared.limits.idle_time));
    let mut bytes = [0; PREFACE.len()];
    let read = tokio::select! {
        biased;
        _ = conn.shared.reaches(Phase::Draining) => None,
        read = timeout_at(deadline, socket.read(&mut bytes)) => read.ok()?.ok(),
    };
    match read {
        Some(read) if read > 0 => Some((socket, Bytes::copy_from_slice(&bytes[..read]), conn)),
        _ => None,
    }
}

/// The handshake of TLS, the first bytes, and whether they are those of HTTP/2. `None` if the
/// connection ends before.
async fn begin(socket: Socket, shared: &Arc<Shared>) -> Option<(Socket, Bytes, bool)> {
    let begun = async {
        let mut may_be_http2 = shared.http2;
        let mut socket = match (&shared.tls, socket) {
            (Some(files), Socket::Tcp(stream)) => {
                let accept = TlsAcceptor::from(files.config()).accept(stream);
                let accepted = Box::pin(timeout(ms(shared.limits.head_time), accept)).await;
                let stream = accepted.ok()?.ok()?;
                may_be_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2".as_slice());
                Socket::Tls(Box::new(stream))
            }
            (_, socket) => socket,
        };
        let mut bytes = [0; PREFACE.len()];
        let mut len = 0;
        let mut time = ms(shared.limits.idle_time);
        loop {
            let read = timeout(time, socket.read(&mut bytes[len..])).await.ok()?.ok()?;
            if read == 0 {
                return None;
            }
            len += read;
            time = ms(shared.limits.head_time);
            let is_http2 = may_be_http2 && bytes[..len] == PREFACE[..len];
            if !is_http2 || len == PREFACE.len() {
                return Some((socket, Bytes::copy_from_slice(&bytes[..len]), is_http2));
            }
        }
    };
    tokio::select! {
        biased;
        _ = shared.reaches(Phase::Draining) => None,
        begun = begun => begun,
    }
}

enum Turn {
    Drain,
    End(End),
}

/// Wakes the connection's task when a time is over, and when the server stops.
struct Watch {
    clock: Arc<Clock>,
    shared: Arc<Shared>,
    sleep: Pin<Box<Sleep>>,
    phase: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_draining: bool,
}

impl Watch {
    fn new(clock: Arc<Clock>, shared: Arc<Shared>) -> Watch {
        let sleep = Box::pin(sleep_until(Instant::now()));
        let phase = Box::pin(Arc::clone(&shared).has_reached(Phase::Draining));
        Watch { clock, shared, sleep, phase, is_draining: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if self.phase.as_mut().poll(cx).is_ready() {
            if self.is_draining {
                return Poll::Ready(Turn::End(End::Cut));
            }
            self.is_draining = true;
            self.phase = Box::pin(Arc::clone(&self.shared).has_reached(Phase::Ended));
            return Poll::Ready(Turn::Drain);
        }
        loop {
            let due = self.clock.due(&self.shared);
            if let (Some(end), true) = (due.end, due.at <= self.clock.now()) {
                return Poll::Ready(Turn::End(end));
            }
            let at = self.clock.at(due.at);
            if self.sleep.deadline() != at {
                self.sleep.as_mut().reset(at);
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

fn watched(socket: Socket, first: Bytes, conn: &Conn) -> (TokioIo<Watched>, Watch) {
    let io = TokioIo::new(Watched { socket, first, clock: Arc::clone(&conn.clock) });
    (io, Watch::new(Arc::clone(&conn.clock), Arc::clone(&conn.shared)))
}

/// Serves a connection until it ends, or is idle for a while.
async fn http1(socket: Socket, first: Bytes, conn: Conn) -> Option<Open> {
    let (io, mut watch) = watched(socket, first, &conn);
    let limits = &conn.shared.limits;
    let mut builder = http1::Builder::new();
    builder
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(BUFFER))
        // `Watch` has the times.
        .header_read_timeout(None);
    let clock = Arc::clone(&conn.clock);
    let mut connection = Box::new(builder.serve_connection(io, conn));
    let end = poll_fn(|cx| loop {
        if let Poll::Ready(done) = connection.poll_without_shutdown(cx) {
            let end = if done.is_ok() { End::Done } else { End::Failed };
            return Poll::Ready(end);
        }
        match watch.poll(cx) {
            Poll::Ready(Turn::End(end)) => return Poll::Ready(end),
            Poll::Ready(Turn::Drain) => {
                Pin::new(&mut *connection).graceful_shutdown();
                clock.stop_streams();
            }
            Poll::Pending => return Poll::Pending,
        }
    })
    .await;
    let parts = connection.into_parts();
    let mut socket = parts.io.into_inner().socket;
    let last: &[u8] = match end {
        // It has nothing left to write: that would have been stuck.
        End::Park => return Some((socket, parts.read_buf, parts.service)),
        End::Cut => return None,
        End::Head => REQUEST_TIMEOUT,
        _ => b"",
    };
    let is_read = matches!(end, End::Done | End::Idle) && !clock.lingers.load(Ordering::Relaxed);
    let close = async {
        socket.write_all(last).await?;
        socket.shutdown().await?;
        let mut left = LINGER_BYTES;
        let mut rest = [0; 2048];
        while !is_read && left > 0 {
            match socket.read(&mut rest).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok::<(), std::io::Error>(())
    };
    if !clock.has_ended.load(Ordering::Relaxed) {
        let _ = timeout(LINGER, close).await;
    }
    None
}

async fn http2(socket: Socket, first: Bytes, conn: Conn) {
    let (io, mut watch) = watched(socket, first, &conn);
    let limits = &conn.shared.limits;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESET_STREAMS)
        .max_local_error_reset_streams(ERROR_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    let clock = Arc::clone(&conn.clock);
    let mut connection = Box::pin(builder.serve_connection(io, conn));
    let end = poll_fn(|cx| loop {
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(End::Done);
        }
        match watch.poll(cx) {
            Poll::Ready(Turn::End(end)) => return Poll::Ready(end),
            Poll::Ready(Turn::Drain) => {
                connection.as_mut().graceful_shutdown();
                clock.stop_streams();
            }
            Poll::Pending => return Poll::Pending,
        }
    })
    .await;
    if let End::Idle = end {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(GOODBYE, connection).await;
    }
}

/// The service of one connection.
struct Conn {
    clock: Arc<Clock>,
    shared: Arc<Shared>,
    peer: Peer,
}

type Answered = Result<Response<Outgoing>, std::convert::Infallible>;

impl Service<Request<Incoming>> for Conn {
    type Response = Response<Outgoing>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let busy = Busy::new(&self.clock);
        let shared = Arc::clone(&self.shared);
        Box::pin(answer(busy, shared, self.peer, request))
    }
}

async fn answer(
    busy: Busy,
    shared: Arc<Shared>,
    peer: Peer,
    request: Request<Incoming>,
) -> Answered {
    let version = request.version();
    let origin = shared.rules.origin(&request);
    let mut response = match exchange(&shared, peer, request).await {
        Ok(answer) => {
            let mut response = Response::new(Outgoing::new(answer.body, busy));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            response
        }
        Err(refusal) => refused(refusal, version, busy),
    };
    shared.rules.share(origin, response.headers_mut());
    Ok(response)
}

/// A response of the server itself. The rest of the request is not read, so the connection cannot
/// be used again.
fn refused(refusal: Refusal, version: Version, busy: Busy) -> Response<Outgoing> {
    if refusal.closes {
        busy.lingers();
    }
    let mut response = plain(refusal.status, busy);
    let headers = response.headers_mut();
    if refusal.closes && version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Tells the exchange if the connection drops the request.
struct Waiting<'a>(Option<&'a Exchange>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.0 {
            exchange.leave(false);
        }
    }
}

async fn exchange(
    shared: &Arc<Shared>,
    peer: Peer,
    request: Request<Incoming>,
) -> Result<super::exchange::Answer, Refusal> {
    let (parts, body) = request.into_parts();
    let head = request::Head::check(parts, peer, shared)?;
    if head.is_ping() {
        // `OPTIONS *`.
        let headers = hyper::HeaderMap::new();
        let status = StatusCode::NO_CONTENT;
        return Ok(super::exchange::Answer { status, headers, body: Kind::Empty });
    }
    let body = request::body(body, shared).await?;
    let place = shared.place().await.ok_or(Refusal::busy())?;
    let (exchange, answer) = Exchange::new(Arc::clone(shared), head, body, place);
    let mut waiting = Waiting(Some(&exchange));
    // The resource goes with the message.
    let resource = ResourceArc::new(ExchangeResource(Arc::clone(&exchange)));
    let sent = OwnedEnv::new()
        .send_and_clear(&shared.owner, |env| (atoms::skillbook_request(), resource).encode(env));
    if sent.is_err() {
        return Err(Refusal::busy());
    }
    let answered = timeout(ms(shared.limits.request_time), answer).await;
    waiting.0 = None;
    match answered {
        Ok(Ok(answer)) => Ok(answer),
        // The process has died.
        Ok(Err(_)) => Err(Refusal::open(StatusCode::INTERNAL_SERVER_ERROR)),
        Err(_) => {
            exchange.leave(true);
            Err(Refusal::busy())
        }
    }
}
