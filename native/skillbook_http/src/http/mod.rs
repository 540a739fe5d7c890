//! HTTP requests for `Skillbook.HTTP.Native`, by reqwest.
//!
//! Each request is a task on the tokio runtime and replies by messages. It sends the head of the
//! response, and then one piece of the body per call of `http_next`: the reader sets the pace, and
//! a slow one cannot fill its mailbox. Dropping the stream's resource, when the process dies,
//! cancels the task and closes the connection.
//!
//! OTP's `httpc` is not used. It holds back the first piece of a stream until the second arrives,
//! goes on after its caller has died, and limits the size of bodies only for status 200.

mod client;
mod fault;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};
use rustler::{Atom, Binary, Encoder, Env, NifMap, NifResult, Resource, ResourceArc, Term};
use skillbook_bridge::encode::binary;
use skillbook_bridge::runtime::{runtime, Reply};
use skillbook_bridge::twin;
use skillbook_net::NO_AUTHORITIES;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;
use tokio::time::{timeout_at, Instant};

use client::{cached, client, ClientResource, Settings};
use fault::{fault, Fault};

mod atoms {
    rustler::atoms! {
        ok, error, head, data, last, done,
        connect, certificate, connect_timeout, idle_timeout, timeout, closed, malformed, request,
    }
}

/// A request in progress.
pub struct StreamResource {
    calls: UnboundedSender<Call>,
    task: AbortHandle,
    is_left: AtomicBool,
}

pub enum Call {
    Next(Reply),
    /// Skip the rest of the body. If it arrives at once, the connection goes back to the pool.
    Leave,
}

/// The limits for skipping the rest: beyond them, a new connection is cheaper.
const LEAVING: Duration = Duration::from_millis(50);
const LEAVING_BYTES: usize = 64 * 1024;

#[rustler::resource_impl]
impl Resource for StreamResource {}

impl Drop for StreamResource {
    /// Runs when the process has died. Aborting the task closes the connection.
    fn drop(&mut self) {
        if !self.is_left.load(Ordering::Acquire) {
            self.task.abort();
        }
    }
}

#[derive(NifMap)]
struct Limits {
    idle_timeout: u64,
    timeout: u64,
}

fn panicked(env: Env<'_>) -> Term<'_> {
    Fault::new(atoms::closed(), "the client failed").encode(env)
}

twin! {
    /// The client for these settings, built if there is none, or if the file of authorities has
    /// changed.
    "DirtyIo" fn http_client_now | http_client_dirty(env, settings: Settings)
    ready cached(&settings).map(|client| (atoms::ok(), client).encode(env))
    => Ok(match client(settings) {
        Ok(client) => (atoms::ok(), client).encode(env),
        Err(fault) => fault.encode(env),
    })
}

/// Starts a request: `{:ok, stream}` or `{:error, kind, text}`. The first message is `{:head,
/// status, headers}` or an error.
#[rustler::nif]
#[allow(clippy::too_many_arguments)]
fn http_request<'a>(
    env: Env<'a>,
    client: ResourceArc<ClientResource>,
    reference: Term,
    method: &str,
    url: &str,
    headers: Vec<(&str, Binary)>,
    body: Option<Binary>,
    limits: Limits,
) -> NifResult<Term<'a>> {
    let request = match request(method, url, &headers, body) {
        Ok(request) => request,
        Err(fault) => return Ok(fault.encode(env)),
    };
    if request.url().scheme() == "https" && !client.has_authorities {
        return Ok(Fault::new(atoms::certificate(), NO_AUTHORITIES).encode(env));
    }
    let (calls, received) = unbounded_channel();
    let work = Work {
        client: client.client.clone(),
        idle: Duration::from_millis(limits.idle_timeout),
        deadline: Instant::now() + Duration::from_millis(limits.timeout),
    };
    let reply = Reply::new(reference, panicked);
    // The task owns everything it needs; this function returns at once.
    let task = runtime()?.spawn(work.run(request, reply, received)).abort_handle();
    let stream = StreamResource { calls, task, is_left: AtomicBool::new(false) };
    Ok((atoms::ok(), ResourceArc::new(stream)).encode(env))
}

fn request(
    method: &str,
    url: &str,
    headers: &[(&str, Binary)],
    body: Option<Binary>,
) -> Result<Request, Fault> {
    let refused = |text: &str| Fault::new(atoms::request(), text);
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| refused("expected the name of a method"))?;
    let url =
        Url::parse(url).map_err(|error| refused(&format!("the URL cannot be used: {error}")))?;
    let mut request = Request::new(method, url);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refused("a header's name is not valid"))?;
        let value = HeaderValue::from_bytes(value)
            .map_err(|_| refused("a header's value has line breaks"))?;
        request.headers_mut().append(name, secret(value));
    }
    *request.body_mut() = body.map(|body| body.as_slice().to_vec().into());
    Ok(request)
}

/// Keeps a value out of HTTP/2's compression tables and of debug output.
fn secret(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// Asks for the next piece: `{:data, binary}`, `{:last, binary}`, `:done` or `{:error, kind,
/// text}`. The caller may ask again only after the first of these.
#[rustler::nif]
fn http_next(stream: ResourceArc<StreamResource>, reference: Term) -> Atom {
    // If the task has ended, the message is dropped, and dropping its reply answers the call.
    let _ = stream.calls.send(Call::Next(Reply::new(reference, panicked)));
    atoms::ok()
}

/// Ends a request between two calls. No message follows.
#[rustler::nif]
fn http_leave(stream: ResourceArc<StreamResource>) -> Atom {
    stream.is_left.store(true, Ordering::Release);
    // The task may have ended already.
    let _ = stream.calls.send(Call::Leave);
    atoms::ok()
}

struct Work {
    client: Client,
    idle: Duration,
    deadline: Instant,
}

impl Work {
    async fn run(self, request: Request, reply: Reply, mut received: UnboundedReceiver<Call>) {
        let mut response = match self.respond(request).await {
            Ok(response) => response,
            Err(fault) => return reply.send(|env| fault.encode(env)),
        };
        reply.send(|env| encode_head(env, &response));
        loop {
            // The deadline also ends a request whose reader never asks again.
            let Ok(call) = timeout_at(self.deadline, received.recv()).await else {
                // The connection is freed now. The reader gets the error with its next call.
                drop(response);
                if let Some(Call::Next(reply)) = received.recv().await {
                    reply.send(|env| too_late().encode(env));
                }
                return;
            };
            // The reader has left, or its process has died.
            let Some(Call::Next(reply)) = call else {
                let rest = async {
                    let mut left = LEAVING_BYTES;
                    while let Ok(Some(piece)) = response.chunk().await {
                        left = left.checked_sub(piece.len())?;
                    }
                    Some(())
                };
                let _ = timeout_at(self.deadline.min(Instant::now() + LEAVING), rest).await;
                return;
            };
            match self.piece(&mut response).await {
                // The length is known and nothing is left, so a further message is saved.
                Ok(Some(piece)) if response.content_length() == Some(0) => {
                    return reply.send(|env| (atoms::last(), binary(env, &piece)).encode(env));
                }
                Ok(Some(piece)) => {
                    reply.send(|env| (atoms::data(), binary(env, &piece)).encode(env))
                }
                Ok(None) => return reply.send(|env| atoms::done().encode(env)),
                Err(fault) => return reply.send(|env| fault.encode(env)),
            }
        }
    }

    /// Sends a request. A server may close an idle connection at the moment when a request is sent
    /// on it. reqwest repeats requests that were not sent; one that was sent is repeated here,
    /// once, if its method is idempotent.
    async fn respond(&self, request: Request) -> Result<Response, Fault> {
        let again = if request.method().is_idempotent() { request.try_clone() } else { None };
        match (self.attempt(request).await, again) {
            (Err(fault), Some(request)) if fault.0 == atoms::closed() => {
                self.attempt(request).await
            }
            (result, _) => result,
        }
    }

    async fn attempt(&self, request: Request) -> Result<Response, Fault> {
        self.within(self.client.execute(request)).await?.map_err(|error| fault(&error))
    }

    /// Skips empty pieces, so that an endless series of them counts as silence.
    async fn piece(&self, response: &mut Response) -> Result<Option<impl AsRef<[u8]>>, Fault> {
        let next = async {
            loop {
                match response.chunk().await {
                    Ok(Some(piece)) if piece.is_empty() => tokio::task::yield_now().await,
                    other => return other,
                }
            }
        };
        self.within(next).await?.map_err(|error| fault(&error))
    }

    async fn within<T>(&self, work: impl std::future::Future<Output = T>) -> Result<T, Fault> {
        let idle = Instant::now() + self.idle;
        match timeout_at(idle.min(self.deadline), work).await {
            Ok(done) => Ok(done),
            Err(_) if idle < self.deadline => {
                let text = format!("no data came for {}", shown(self.idle));
                Err(Fault::new(atoms::idle_timeout(), text))
            }
            Err(_) => Err(too_late()),
        }
    }
}

fn too_late() -> Fault {
    Fault::new(atoms::timeout(), "the time limit for the whole response has passed")
}

fn shown(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 1000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1000),
    }
}

fn encode_head<'a>(env: Env<'a>, response: &Response) -> Term<'a> {
    let headers: Vec<(&str, Term)> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), binary(env, value.as_bytes())))
        .collect();
    (atoms::head(), response.status().as_u16(), headers).encode(env)
}
