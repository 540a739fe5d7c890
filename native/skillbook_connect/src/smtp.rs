//! Mail submission by SMTP, with lettre's client for the protocol.
//!
//! Connections are encrypted by `net`, so that mail servers of both protocols get the same checks
//! and errors. Commands are sent one at a time: a failure before the end of the text is certain, a
//! lost connection after it is [`Kind::Unclear`].

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::response::Severity;
use lettre::Address;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{timeout_at, Instant};

use crate::net::{self, Fault, Kind, Login, Result, Server, Stream, Tls};

/// The bytes that a server may answer to one mail, and the lines to one command. lettre reads an
/// answer anew with each of its lines.
const ANSWERS: usize = 1024 * 1024;
const LINES: usize = 100;

/// The time for the answer to QUIT, which says nothing about the mail.
const FAREWELL: Duration = Duration::from_millis(500);

/// A mail: its envelope and its bytes, whose lines end with CRLF.
pub struct Letter {
    pub from: String,
    pub recipients: Vec<String>,
    pub bytes: Vec<u8>,
}

/// Sends a mail to all its recipients, or to none: if the server refuses one, nothing is sent.
pub async fn send(server: &Server, login: &Login, letter: &Letter, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    let too_late = |kind| Fault::new(kind, "the server did not answer in time");
    let mut connection = timeout_at(end, prepare(server, login, letter))
        .await
        .unwrap_or_else(|_| Err(too_late(Kind::Timeout)))?;
    timeout_at(end, hand_over(&mut connection, &letter.bytes))
        .await
        .unwrap_or_else(|_| Err(too_late(Kind::Unclear)))?;
    // The mail is sent, whatever the server says to this.
    let _ = timeout_at(end.min(Instant::now() + FAREWELL), connection.quit()).await;
    Ok(())
}

/// Whether the server takes addresses with letters outside ASCII (SMTPUTF8, RFC 6531).
pub async fn takes_utf8(server: &Server, login: &Login, limit: Duration) -> Result<bool> {
    let asked = async {
        let mut connection = open(server, login).await?;
        let takes = connection.server_info().supports_feature(Extension::SmtpUtfEight);
        let _ = timeout_at(Instant::now() + FAREWELL, connection.quit()).await;
        Ok(takes)
    };
    timeout_at(Instant::now() + limit, asked)
        .await
        .unwrap_or_else(|_| Err(Fault::new(Kind::Timeout, "the server did not answer in time")))
}

/// Everything up to the server's consent to take the text.
async fn prepare(server: &Server, login: &Login, letter: &Letter) -> Result<AsyncSmtpConnection> {
    let from = address(&letter.from)?;
    let recipients =
        letter.recipients.iter().map(|text| address(text)).collect::<Result<Vec<_>>>()?;
    check_line_ends(&letter.bytes)?;

    let mut connection = open(server, login).await?;
    let parameters = parameters(&connection, &from, &recipients, &letter.bytes)?;
    let done = Severity::PositiveCompletion;
    run(&mut connection, Mail::new(Some(from), parameters), done).await?;
    for (address, text) in recipients.into_iter().zip(&letter.recipients) {
        run(&mut connection, Rcpt::new(address, vec![]), done).await.map_err(
            |fault| match fault.kind {
                Kind::Refused | Kind::Later => {
                    Fault { text: format!("it refused the recipient {text}"), ..fault }
                }
                _ => fault,
            },
        )?;
    }
    // Without its consent the server would take the lines of the mail for commands.
    run(&mut connection, Data, Severity::PositiveIntermediate).await?;
    Ok(connection)
}

/// A connection that is encrypted and signed in.
async fn open(server: &Server, login: &Login) -> Result<AsyncSmtpConnection> {
    let stream = net::connect(server, ANSWERS, starttls).await?;
    let stream = match server.tls {
        Tls::Implicit => stream,
        // lettre waits for a greeting, which the server has sent before the encryption.
        Tls::StartTls => stream.with_ahead(b"220 encrypted\r\n"),
    };
    let hello = ClientId::default();
    let mut connection =
        AsyncSmtpConnection::connect_with_transport(Box::new(Wire { stream, lines: 0 }), &hello)
            .await
            .map_err(|error| fault(&error, Kind::Connect))?;
    sign_in(&mut connection, login).await?;
    Ok(connection)
}

/// lettre takes any answer that is no error for a success.
async fn run(
    connection: &mut AsyncSmtpConnection,
    command: impl Display,
    expected: Severity,
) -> Result<()> {
    match connection.command(command).await {
        Ok(response) if response.code().severity == expected => Ok(()),
        Ok(_) => Err(malformed()),
        Err(error) => Err(fault(&error, Kind::Refused)),
    }
}

async fn hand_over(connection: &mut AsyncSmtpConnection, bytes: &[u8]) -> Result<()> {
    match connection.message(without_last_end(bytes)).await {
        Ok(response) if response.code().severity == Severity::PositiveCompletion => Ok(()),
        // Only an answer says that the server has not taken the mail.
        Err(error) if error.status().is_some() => Err(fault(&error, Kind::Refused)),
        _ => {
            let text = "the server did not answer whether it took the mail";
            Err(Fault::new(Kind::Unclear, text))
        }
    }
}

async fn sign_in(connection: &mut AsyncSmtpConnection, login: &Login) -> Result<()> {
    let mechanisms: &[Mechanism] = match login.is_token {
        true => &[Mechanism::Xoauth2],
        false => &[Mechanism::Plain, Mechanism::Login],
    };
    if connection.server_info().get_auth_mechanism(mechanisms).is_none() {
        let names = if login.is_token { "XOAUTH2" } else { "PLAIN or LOGIN" };
        let text = format!("the server does not offer to sign in with {names}");
        return Err(Fault::new(Kind::Login, text));
    }
    let credentials = Credentials::new(login.username.clone(), login.secret.clone());
    match connection.auth(mechanisms, &credentials).await {
        Ok(response) if response.is_positive() => Ok(()),
        Ok(_) => Err(Fault::new(Kind::Login, "the server did not accept the sign-in")),
        Err(error) => Err(fault(&error, Kind::Login)),
    }
}

fn parameters(
    connection: &AsyncSmtpConnection,
    from: &Address,
    recipients: &[Address],
    bytes: &[u8],
) -> Result<Vec<MailParameter>> {
    let server = connection.server_info();
    let mut parameters = vec![MailParameter::Size(bytes.len())];
    let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !std::iter::once(from).chain(recipients).all(is_ascii) {
        if !server.supports_feature(Extension::SmtpUtfEight) {
            let text = "the server takes no addresses with letters outside ASCII";
            return Err(Fault::new(Kind::Refused, text));
        }
        parameters.push(MailParameter::SmtpUtfEight);
    }
    if !bytes.is_ascii() {
        if !server.supports_feature(Extension::EightBitMime) {
            let text = "the server takes no text outside ASCII that is not encoded";
            return Err(Fault::new(Kind::Refused, text));
        }
        parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    Ok(parameters)
}

/// The part before the encryption: greeting, EHLO, STARTTLS.
async fn starttls(tcp: &mut TcpStream) -> Result<()> {
    answer(tcp, 220).await?;
    net::write_line(tcp, &format!("EHLO {}", ClientId::default())).await?;
    let offers = answer(tcp, 250).await?;
    let offered = |line: &String| line.get(4..).is_some_and(|l| l.eq_ignore_ascii_case("STARTTLS"));
    if !offers.iter().any(offered) {
        let text = "the server does not offer STARTTLS, so the connection would not be encrypted";
        return Err(Fault::new(Kind::StartTls, text));
    }
    net::write_line(tcp, "STARTTLS").await?;
    answer(tcp, 220).await.map(|_| ())
}

async fn answer(tcp: &mut TcpStream, code: u16) -> Result<Vec<String>> {
    let is_last = |line: &str| line.as_bytes().get(3) != Some(&b'-');
    let lines = net::read_lines(tcp, is_last).await?;
    let expected = code.to_string();
    match lines.last() {
        Some(line) if line.starts_with(&expected) => Ok(lines),
        line => {
            let said = line.map(String::as_str).unwrap_or_default();
            let text = format!("expected the answer {code} from an SMTP server");
            Err(Fault::quoting(Kind::Connect, text, said))
        }
    }
}

fn address(text: &str) -> Result<Address> {
    text.parse().map_err(|_| {
        let text = format!("expected an address such as bob@example.com, got: {text:?}");
        Fault::new(Kind::Request, text)
    })
}

/// Servers disagree about a lone CR or LF, so one could smuggle a second mail into this one.
fn check_line_ends(bytes: &[u8]) -> Result<()> {
    let mut last = 0;
    for byte in bytes.iter().chain(b" ") {
        if (*byte == b'\n') != (last == b'\r') {
            let text = "the lines of a mail must end with CRLF";
            return Err(Fault::new(Kind::Request, text));
        }
        last = *byte;
    }
    Ok(())
}

/// lettre ends the last line itself.
fn without_last_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r\n").unwrap_or(bytes)
}

/// lettre's errors of answers have the status and the server's text; others have causes.
fn fault(error: &lettre::transport::smtp::Error, refused: Kind) -> Fault {
    let mut causes: Vec<&(dyn std::error::Error + 'static)> = vec![error];
    while let Some(next) = causes.last().and_then(|last| last.source()) {
        causes.push(next);
    }
    if let Some(status) = error.status() {
        // The text of the answer is the cause.
        let text = match causes.get(1) {
            Some(cause) => format!("{status} {cause}"),
            None => status.to_string(),
        };
        let kind = match error.is_transient() {
            true => Kind::Later,
            false => refused,
        };
        return Fault::quoting(kind, "", &text);
    }
    match causes.iter().find_map(|cause| cause.downcast_ref::<io::Error>()) {
        Some(error) if error.kind() == io::ErrorKind::InvalidData => malformed(),
        Some(error) => net::io_fault(error),
        // lettre says so if the connection ends before the answer does.
        None if causes.iter().any(|cause| cause.to_string() == "incomplete response") => {
            net::io_fault(&io::ErrorKind::UnexpectedEof.into())
        }
        None => malformed(),
    }
}

fn malformed() -> Fault {
    Fault::new(Kind::Malformed, "the server's answer is not valid SMTP")
}

/// A connection as lettre takes it, and the lines that were read since the last command.
#[derive(Debug)]
struct Wire {
    stream: Stream,
    lines: usize,
}

impl AsyncTokioStream for Wire {
    /// lettre hands it out and does not use it.
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.lines += read.iter().filter(|byte| **byte == b'\n').count();
        match self.lines > LINES {
            true => Poll::Ready(Err(net::too_much())),
            false => result,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.lines = 0;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::check_line_ends;

    #[test]
    fn line_ends() {
        let rows: [(&[u8], bool); 10] = [
            (b"", true),
            (b"a", true),
            (b"a\r\n", true),
            (b"a\r\nb", true),
            (b"\r\n\r\n", true),
            (b"a\n", false),
            (b"a\r", false),
            (b"a\n.\nMAIL FROM", false),
            (b"a\r.\r\n", false),
            (b"a\r\r\n", false),
        ];
        for (bytes, is_good) in rows {
            assert_eq!(check_line_ends(bytes).is_ok(), is_good, "{bytes:?}");
        }
    }
}
