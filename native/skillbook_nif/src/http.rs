//! HTTP requests for `Skillbook.HTTP.Native`, by reqwest.
//!
//! Each request is a task on the tokio runtime and replies by messages. It sends the head of the
//! response, and then one piece of the body per call of `http_next`: the reader sets the pace, and
//! a slow one cannot fill its mailbox. Dropping the stream's resource, when the process dies,
//! cancels the task and closes the connection.
//!
//! OTP's `httpc` is not used. It holds back the first piece of a stream until the second arrives,
//! goes on after its caller has died, and limits the size of bodies only for status 200.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, NoProxy, Proxy, Request, Response, Url};
use rustler::{
    Atom, Binary, Encoder, Env, NewBinary, NifMap, NifResult, NifUnitEnum, Resource, ResourceArc,
    Term,
};
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig};
use skillbook_sql::postgres::authorities;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;
use tokio::time::{timeout_at, Instant};

use crate::runtime::{runtime, Reply};
use crate::twin::twin;

mod atoms {
    rustler::atoms! {
        ok, error, head, data, last, done,
        connect, certificate, connect_timeout, idle_timeout, timeout, closed, malformed, request,
    }
}

/// The number of clients that are kept. Clients with different settings do not share connections.
const MOST_CLIENTS: usize = 32;

/// The number of idle connections per server, and their maximum age. Most servers close idle
/// connections after a minute or more.
const IDLE_CONNECTIONS: usize = 64;
const IDLE_FOR: Duration = Duration::from_secs(50);

/// The HTTP/2 flow control windows: bytes that a server may send ahead on a stream, and on a
/// connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// The maximum size of a response head over HTTP/2. Over HTTP/1.1 hyper accepts up to 100 fields
/// and 400 KiB.
const HEAD: u32 = 64 * 1024;

/// A connection pool with its settings.
pub struct ClientResource {
    client: Client,
    has_authorities: bool,
}

#[rustler::resource_impl]
impl Resource for ClientResource {}

/// A request in progress.
pub struct StreamResource {
    asks: UnboundedSender<Ask>,
    task: AbortHandle,
    is_left: AtomicBool,
}

pub enum Ask {
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

#[derive(NifUnitEnum, Clone, PartialEq)]
enum Protocol {
    Auto,
    Http1,
    Http2,
}

#[derive(NifMap, Clone, PartialEq)]
struct Settings {
    protocol: Protocol,
    connect_timeout: u64,
    cacertfile: Option<String>,
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: Option<String>,
}

#[derive(NifMap)]
struct Limits {
    idle_timeout: u64,
    timeout: u64,
}

/// A kind and a text. The text contains nothing of the request, because URLs and headers may hold
/// secrets.
struct Fault(Atom, String);

impl Fault {
    fn new(kind: Atom, text: impl Into<String>) -> Fault {
        Fault(kind, text.into())
    }

    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        (atoms::error(), self.0, &self.1).encode(env)
    }
}

fn panicked(env: Env<'_>) -> Term<'_> {
    Fault::new(atoms::closed(), "the client failed").encode(env)
}

/// The modification time and size of the file of certificate authorities when it was read.
type Stamp = Option<(SystemTime, u64)>;

static CLIENTS: Mutex<Vec<(Settings, Stamp, ResourceArc<ClientResource>)>> = Mutex::new(Vec::new());

twin! {
    /// The client for these settings, built if there is none, or if the file of authorities has
    /// changed.
    "DirtyIo" fn http_client_now | http_client_dirty(env, settings: Settings)
    ready kept(&settings).map(|client| (atoms::ok(), client).encode(env))
    => Ok(match client(settings) {
        Ok(client) => (atoms::ok(), client).encode(env),
        Err(fault) => fault.encode(env),
    })
}

/// Finds a client without reading files or waiting for a lock.
fn kept(settings: &Settings) -> Option<ResourceArc<ClientResource>> {
    match CLIENTS.try_lock() {
        Ok(mut clients) if settings.cacertfile.is_none() => known(&mut clients, settings, None),
        _ => None,
    }
}

fn client(settings: Settings) -> Result<ResourceArc<ClientResource>, Fault> {
    let stamp = match &settings.cacertfile {
        None => None,
        Some(path) => {
            let modified =
                std::fs::metadata(path).and_then(|file| Ok((file.modified()?, file.len())));
            Some(modified.map_err(|error| authorities_missing(path, &plain(&error)))?)
        }
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = known(&mut clients, &settings, stamp) {
        return Ok(client);
    }
    let client = ResourceArc::new(build(&settings)?);
    clients.retain(|(old, _, _)| *old != settings);
    if clients.len() == MOST_CLIENTS {
        clients.remove(0);
    }
    clients.push((settings, stamp, client.clone()));
    Ok(client)
}

/// Moves the client to the end, so that the first one is the least recently used.
fn known(
    clients: &mut [(Settings, Stamp, ResourceArc<ClientResource>)],
    settings: &Settings,
    stamp: Stamp,
) -> Option<ResourceArc<ClientResource>> {
    let place = clients.iter().position(|(old, at, _)| old == settings && *at == stamp)?;
    clients[place..].rotate_left(1);
    clients.last().map(|(_, _, client)| client.clone())
}

fn authorities_missing(path: &str, reason: &str) -> Fault {
    Fault::new(
        atoms::certificate(),
        format!("expected certificates in PEM in the file {path}: {reason}"),
    )
}

fn build(settings: &Settings) -> Result<ClientResource, Fault> {
    let path = settings.cacertfile.as_deref();
    let roots = authorities(path)
        .map_err(|reason| authorities_missing(path.unwrap_or_default(), &reason))?;
    let has_authorities = !roots.is_empty();
    let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new(atoms::certificate(), format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = match settings.protocol {
        Protocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
    };

    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_millis(settings.connect_timeout))
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE_FOR)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_header_list_size(HEAD)
        // Elixir passes the proxy settings in: `System.put_env/2` does not change the environment
        // of the process.
        .no_proxy();
    builder = match settings.protocol {
        Protocol::Auto => builder,
        Protocol::Http1 => builder.http1_only(),
        Protocol::Http2 => builder.http2_prior_knowledge(),
    };
    let except = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
    let proxies = [
        settings.http_proxy.as_deref().map(Proxy::http),
        settings.https_proxy.as_deref().map(Proxy::https),
    ];
    for proxy in proxies.into_iter().flatten() {
        builder = builder.proxy(proxy.map_err(|_| proxy_unreadable())?.no_proxy(except.clone()));
    }
    let client = builder.build().map_err(|error| fault(&error))?;
    Ok(ClientResource { client, has_authorities })
}

/// The URL is left out, because it may contain a password.
fn proxy_unreadable() -> Fault {
    Fault::new(atoms::request(), "expected the proxy's URL in the form http://proxy.example:3128")
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
        let text =
            "the system has no certificate authorities to check the server's certificate with";
        return Ok(Fault::new(atoms::certificate(), text).encode(env));
    }
    let (asks, asked) = unbounded_channel();
    let work = Work {
        client: client.client.clone(),
        idle: Duration::from_millis(limits.idle_timeout),
        deadline: Instant::now() + Duration::from_millis(limits.timeout),
    };
    let reply = Reply::new(reference, panicked);
    let task = runtime()?.spawn(work.run(request, reply, asked)).abort_handle();
    let stream = StreamResource { asks, task, is_left: AtomicBool::new(false) };
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
    let _ = stream.asks.send(Ask::Next(Reply::new(reference, panicked)));
    atoms::ok()
}

/// Ends a request between two calls. No message follows.
#[rustler::nif]
fn http_leave(stream: ResourceArc<StreamResource>) -> Atom {
    stream.is_left.store(true, Ordering::Release);
    // The task may have ended already.
    let _ = stream.asks.send(Ask::Leave);
    atoms::ok()
}

struct Work {
    client: Client,
    idle: Duration,
    deadline: Instant,
}

impl Work {
    async fn run(self, request: Request, reply: Reply, mut asked: UnboundedReceiver<Ask>) {
        let mut response = match self.respond(request).await {
            Ok(response) => response,
            Err(fault) => return reply.send(|env| fault.encode(env)),
        };
        reply.send(|env| encode_head(env, &response));
        loop {
            let Ok(ask) = timeout_at(self.deadline, asked.recv()).await else {
                // The connection is freed now. The reader gets the error with its next call.
                drop(response);
                if let Some(Ask::Next(reply)) = asked.recv().await {
                    reply.send(|env| too_late().encode(env));
                }
                return;
            };
            let Some(Ask::Next(reply)) = ask else {
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
            (Err(Fault(kind, _)), Some(request)) if kind == atoms::closed() => {
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

fn binary<'a>(env: Env<'a>, bytes: impl AsRef<[u8]>) -> Term<'a> {
    let bytes = bytes.as_ref();
    let mut binary = NewBinary::new(env, bytes.len());
    binary.as_mut_slice().copy_from_slice(bytes);
    binary.into()
}

// reqwest's own error texts contain the URL, so errors get texts of their own.

fn fault(error: &reqwest::Error) -> Fault {
    let causes = causes(error);
    if let Some(tls) = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return tls_fault(tls);
    }
    if error.is_connect() {
        return match error.is_timeout() {
            true => Fault::new(atoms::connect_timeout(), ""),
            false => Fault::new(atoms::connect(), connect_text(&causes)),
        };
    }
    match causes.iter().find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
        Some(error) if error.to_string() == "message head is too large" => {
            Fault::new(atoms::malformed(), "its header is too long")
        }
        Some(error) if error.is_parse() => {
            Fault::new(atoms::malformed(), format!("invalid HTTP/1.1: {error}"))
        }
        _ => broken(&causes),
    }
}

/// An error while reading the body: invalid HTTP, or a broken connection.
fn broken(causes: &[&(dyn Error + 'static)]) -> Fault {
    let io = causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>());
    match io {
        Some(error)
            if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
        {
            Fault::new(atoms::malformed(), format!("invalid HTTP/1.1: {}", plain(error)))
        }
        _ => Fault::new(atoms::closed(), "the connection broke"),
    }
}

fn connect_text(causes: &[&(dyn Error + 'static)]) -> String {
    let texts: Vec<String> = causes.iter().map(|cause| cause.to_string()).collect();
    let has = |beginning: &str| texts.iter().any(|text| text.starts_with(beginning));
    if has("dns error") {
        return "no address was found for this host".to_owned();
    }
    let reason = match causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(error) => plain(error),
        None => texts.last().cloned().unwrap_or_default(),
    };
    if has("tunnel error") {
        return format!(
            "the proxy refused the connection: {}",
            reason.trim_start_matches("tunnel error: ")
        );
    }
    reason
}

/// The error and its causes, outermost first. `io::Error::source` skips the error that it wraps, so
/// that one is added here.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut causes = vec![error];
    let mut last: &'a (dyn Error + 'static) = error;
    loop {
        let inner = last.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        match inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| last.source()) {
            Some(next) => last = next,
            None => return causes,
        }
        causes.push(last);
    }
}

/// The operating system's text without the error number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn tls_fault(error: &rustls::Error) -> Fault {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return Fault::new(atoms::connect(), format!("TLS: {error}"));
    };
    let text = match reason {
        // A bad signature means that a trusted authority has the same name as the one that signed.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the authority of its certificate is not trusted".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "its certificate uses an unknown signature algorithm".to_owned()
        }
        _ => error.to_string(),
    };
    Fault::new(atoms::certificate(), format!("TLS: {text}"))
}
