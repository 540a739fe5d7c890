//! Connections to mail servers: TCP, TLS with the authorities of the system or of a file, and the
//! part before STARTTLS, which IMAP and SMTP have alike.
//!
//! # Limits
//!
//! A [`Stream`] hands out a limited number of bytes, so no answer of a server can fill the memory.
//! Callers stop the future when the time is up.
//!
//! STARTTLS reads one byte at a time until the server's consent, so that no answer that was
//! injected before the encryption is read after it. A server that does not offer it is an error.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, InvalidMessage};
use skillbook_net::{authorities, certificate, plain, NO_AUTHORITIES};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The longest line before STARTTLS, and the most lines of an answer there.
const LINE: usize = 2_000;
const LINES: usize = 100;

/// How long a greeting may take before another connection finds out whether the port is encrypted
/// from the start, and how long that may take.
const GREETING: Duration = Duration::from_millis(1_000);
const HANDSHAKE: Duration = Duration::from_millis(900);

/// The longest text of a server in an error, in bytes.
const EXCERPT: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No connection: unknown host, refused, or lost in the TLS handshake.
    Connect,
    /// The certificate is not trusted, or there are no authorities.
    Certificate,
    /// The server does not offer encryption.
    StartTls,
    /// The server refused the name or the password, or offers no way to sign in.
    Login,
    /// The server refused a command.
    Refused,
    /// The server refused a command for now.
    Later,
    /// The connection broke.
    Closed,
    /// The server's answer is not valid.
    Malformed,
    /// The server's answer has more bytes than allowed.
    TooLarge,
    /// The time limit has passed.
    Timeout,
    /// The mail was handed over, and the server has not said whether it took it.
    Unclear,
    /// A value cannot be sent to a server.
    Request,
}

/// A kind, a text of ours, and the server's text, shortened.
#[derive(Debug)]
pub struct Fault {
    pub kind: Kind,
    pub text: String,
    pub said: Option<String>,
}

impl Fault {
    pub fn new(kind: Kind, text: impl Into<String>) -> Fault {
        Fault { kind, text: text.into(), said: None }
    }

    /// The server's text is none of ours, so it is kept apart.
    pub fn quoting(kind: Kind, text: impl Into<String>, said: &str) -> Fault {
        Fault { kind, text: text.into(), said: Some(excerpt(said)) }
    }

    /// Whether the connection can be used after it.
    pub fn keeps_connection(&self) -> bool {
        matches!(self.kind, Kind::Refused | Kind::Later | Kind::Request)
    }
}

pub type Result<T> = std::result::Result<T, Fault>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tls {
    Implicit,
    StartTls,
}

/// A server, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub tls: Tls,
    /// A PEM file of authorities, instead of the system's.
    pub cacertfile: Option<String>,
}

/// The credentials of an account. `is_token` is whether the secret is an OAuth 2 access token, for
/// XOAUTH2, instead of a password.
#[derive(Clone)]
pub struct Login {
    pub username: String,
    pub secret: String,
    pub is_token: bool,
}

pub trait Transport: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Transport for T {}

/// An encrypted connection that hands out at most `left` bytes.
pub struct Stream {
    inner: Box<dyn Transport>,
    /// Bytes to hand out before those of the connection.
    ahead: &'static [u8],
    pub left: usize,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Stream").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Stream {
    pub fn new(inner: impl Transport + 'static, left: usize) -> Stream {
        Stream { inner: Box::new(inner), ahead: b"", left }
    }

    /// Hands out these bytes first.
    pub fn with_ahead(mut self, ahead: &'static [u8]) -> Stream {
        self.ahead = ahead;
        self
    }
}

#[derive(Debug)]
struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the server sent more than allowed")
    }
}

impl Error for TooMuch {}

/// The error of a read beyond a limit.
pub fn too_much() -> io::Error {
    io::Error::other(TooMuch)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let (now, later) = self.ahead.split_at(self.ahead.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.ahead = later;
            return Poll::Ready(Ok(()));
        }
        if self.left == 0 {
            return Poll::Ready(Err(too_much()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        let read = buffer.filled().len().saturating_sub(before);
        self.left = self.left.saturating_sub(read);
        result
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Opens an encrypted connection. `starttls` speaks the protocol's part before the encryption.
pub async fn connect<F>(server: &Server, left: usize, starttls: F) -> Result<Stream>
where
    F: AsyncFnOnce(&mut TcpStream) -> Result<()>,
{
    let config = config(server.cacertfile.clone()).await?;
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| Fault::new(Kind::Request, "expected the name of a host or its address"))?;
    let mut tcp = TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| Fault::new(Kind::Connect, connect_text(&error)))?;
    // Commands are small, and each waits for its answer.
    let _ = tcp.set_nodelay(true);
    let connector = TlsConnector::from(config);
    if server.tls == Tls::StartTls {
        check_greeting(server, &tcp, &connector, &name).await?;
        starttls(&mut tcp).await?;
    }
    let tls = connector.connect(name, tcp).await.map_err(|error| match server.tls {
        Tls::Implicit if !speaks_tls(&error) => {
            let text = "the port begins without encryption; write tls: :starttls";
            Fault::new(Kind::StartTls, text)
        }
        _ => tls_fault(&error),
    })?;
    Ok(Stream::new(tls, left))
}

/// A server whose port is encrypted from the start waits for the client, and would do so until the
/// time is up. One without a greeting for a while is asked in a second connection.
async fn check_greeting(
    server: &Server,
    tcp: &TcpStream,
    connector: &TlsConnector,
    name: &ServerName<'static>,
) -> Result<()> {
    if timeout(GREETING, tcp.readable()).await.is_ok() {
        return Ok(());
    }
    let handshake = async {
        let tcp = TcpStream::connect((server.host.as_str(), server.port)).await?;
        connector.connect(name.clone(), tcp).await
    };
    match timeout(HANDSHAKE, handshake).await {
        Ok(Ok(_)) => {}
        // A certificate that is not trusted is one.
        Ok(Err(error)) if is_tls(&error) && speaks_tls(&error) => {}
        _ => return Ok(()),
    }
    let text = "the port is encrypted from the start; write tls: :implicit";
    Err(Fault::new(Kind::StartTls, text))
}

fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|source| source.is::<rustls::Error>())
}

/// Whether the error is another one than an answer that is no TLS.
fn speaks_tls(error: &io::Error) -> bool {
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    let no_tls = InvalidMessage::InvalidContentType;
    !matches!(tls, Some(rustls::Error::InvalidMessage(message)) if *message == no_tls)
}

/// Sends a line. Only for the part before STARTTLS, where nothing is secret.
pub async fn write_line(tcp: &mut TcpStream, line: &str) -> Result<()> {
    tcp.write_all(format!("{line}\r\n").as_bytes()).await.map_err(|error| io_fault(&error))
}

/// Reads lines until `last` takes one, and returns all of them without their ends.
pub async fn read_lines(tcp: &mut TcpStream, last: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        loop {
            match tcp.read_u8().await.map_err(|error| io_fault(&error))? {
                b'\n' => break,
                byte => line.push(byte),
            }
            if line.len() > LINE {
                return Err(Fault::new(Kind::TooLarge, "a line of the server is too long"));
            }
        }
        let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        let is_last = last(&line);
        lines.push(line);
        if is_last {
            return Ok(lines);
        }
        if lines.len() == LINES {
            return Err(Fault::new(Kind::TooLarge, "an answer of the server has too many lines"));
        }
    }
}

/// The settings of TLS. The system's authorities are read once, and a file each time, since it may
/// have changed.
async fn config(file: Option<String>) -> Result<Arc<ClientConfig>> {
    static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let (None, Some(config)) = (&file, SYSTEM.get()) {
        return Ok(config.clone());
    }
    let built = tokio::task::spawn_blocking(move || match file {
        None => build(None).map(|config| SYSTEM.get_or_init(|| config).clone()),
        file => build(file.as_deref()),
    });
    built.await.unwrap_or_else(|_| Err(Fault::new(Kind::Certificate, "TLS cannot be set up")))
}

fn build(file: Option<&str>) -> Result<Arc<ClientConfig>> {
    let roots = authorities(file).map_err(|reason| {
        let path = file.unwrap_or_default();
        let text = format!("expected certificates in PEM in the file {path}: {reason}");
        Fault::new(Kind::Certificate, text)
    })?;
    if roots.is_empty() {
        return Err(Fault::new(Kind::Certificate, NO_AUTHORITIES));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new(Kind::Certificate, format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A broken connection, or too many bytes.
pub fn io_fault(error: &io::Error) -> Fault {
    let source = error.get_ref();
    if source.is_some_and(|source| source.is::<TooMuch>()) {
        return Fault::new(Kind::TooLarge, TooMuch.to_string());
    }
    match source.and_then(|source| source.downcast_ref::<rustls::Error>()) {
        Some(tls) => Fault::new(Kind::Closed, format!("TLS: {tls}")),
        None => Fault::new(Kind::Closed, "the server closed the connection"),
    }
}

fn connect_text(error: &io::Error) -> String {
    // tokio marks neither a failed lookup nor its stage in the error.
    if error.to_string().contains("failed to lookup address") {
        return "no address was found for this host".to_owned();
    }
    plain(error)
}

fn tls_fault(error: &io::Error) -> Fault {
    let Some(tls) = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>())
    else {
        return Fault::new(Kind::Connect, "TLS: the server closed the connection");
    };
    match certificate::describe(tls) {
        (text, true) => Fault::new(Kind::Certificate, text),
        (text, false) => Fault::new(Kind::Connect, text),
    }
}

/// The start of a server's text as one line without control characters.
fn excerpt(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    match line.char_indices().find(|(place, _)| *place >= EXCERPT) {
        Some((place, _)) => format!("{} …", &line[..place]),
        None => line.to_owned(),
    }
}
