//! The head and the body of a request, within limits.
//!
//! hyper refuses bytes that are not HTTP. The checks here refuse requests that two servers could
//! understand in different ways, and those that no client of ours sends.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{EXPECT, HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode, Version};
use rustler::{Binary, Encoder, Env, Resource, ResourceArc, Term};
use skillbook_bridge::encode::{binary, map, option};
use tokio::time::{timeout_at, Instant};

use super::shared::{Held, Peer, Shared};
use super::{atoms, ms};

/// A response of the server itself.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The rest of the request is not read.
    pub(super) closes: bool,
}

impl Refusal {
    fn closing(status: StatusCode) -> Refusal {
        Refusal { status, closes: true }
    }

    pub(super) fn open(status: StatusCode) -> Refusal {
        Refusal { status, closes: false }
    }

    pub(super) fn busy() -> Refusal {
        Refusal::open(StatusCode::SERVICE_UNAVAILABLE)
    }
}

pub(super) struct Head {
    parts: Parts,
    host: Option<String>,
    peer: Peer,
    is_tls: bool,
}

impl Head {
    pub(super) fn check(parts: Parts, peer: Peer, shared: &Shared) -> Result<Head, Refusal> {
        let refuse = |status| Err(Refusal::closing(status));
        let limits = &shared.limits;
        if parts.uri.path().len() + parts.uri.query().map_or(0, str::len) > limits.target_bytes {
            return refuse(StatusCode::URI_TOO_LONG);
        }
        if parts.headers.len() > limits.head_count {
            return refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        if parts.method == Method::CONNECT {
            return refuse(StatusCode::NOT_IMPLEMENTED);
        }
        // The form without a path is that of CONNECT, and `*` is that of OPTIONS.
        let path = parts.uri.path();
        let is_server = parts.method == Method::OPTIONS && path == "*";
        if !path.starts_with('/') && !is_server {
            return refuse(StatusCode::BAD_REQUEST);
        }
        if parts.uri.scheme_str().is_some_and(|scheme| scheme != "http" && scheme != "https") {
            return refuse(StatusCode::BAD_REQUEST);
        }
        // hyper takes a list that ends with `chunked`, and decodes only that.
        let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
        if let Some(first) = codings.next() {
            let is_chunked = first.as_bytes().eq_ignore_ascii_case(b"chunked");
            if !is_chunked || codings.next().is_some() {
                return refuse(StatusCode::NOT_IMPLEMENTED);
            }
        }
        if let Some(expected) = parts.headers.get(EXPECT) {
            if !expected.as_bytes().eq_ignore_ascii_case(b"100-continue") {
                return refuse(StatusCode::EXPECTATION_FAILED);
            }
        }
        let host = host(&parts).ok_or(Refusal::closing(StatusCode::BAD_REQUEST))?;
        Ok(Head { host, parts, peer, is_tls: shared.tls.is_some() })
    }

    pub(super) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// `OPTIONS *` asks whether the server is there.
    pub(super) fn is_ping(&self) -> bool {
        self.parts.uri.path() == "*"
    }

    pub(super) fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        let Parts { method, uri, headers, .. } = &self.parts;
        let headers: Vec<(&str, Term)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), binary(env, value.as_bytes())))
            .collect();
        let scheme = if self.is_tls { atoms::https() } else { atoms::http() };
        let pairs = [
            (atoms::headers(), headers.encode(env)),
            (atoms::host(), option(env, &self.host)),
            (atoms::method(), method.as_str().encode(env)),
            (atoms::path(), uri.path().encode(env)),
            (atoms::peer(), self.peer.encode(env)),
            (atoms::query(), uri.query().unwrap_or_default().encode(env)),
            (atoms::scheme(), scheme.encode(env)),
        ];
        // The keys differ.
        map(env, pairs).unwrap_or_else(|_| atoms::nil().encode(env))
    }
}

/// The host that a request is for; `None` if it is missing, given twice, or given differently.
/// Only HTTP/1.0 may leave it out.
fn host(parts: &Parts) -> Option<Option<String>> {
    let mut values = parts.headers.get_all(HOST).iter();
    let header = match (values.next(), values.next()) {
        (first, None) => first,
        _ => return None,
    };
    let header = match header {
        Some(value) => Some(value.to_str().ok()?),
        None => None,
    };
    let target = parts.uri.authority().map(Authority::as_str);
    let found = match (header, target) {
        (Some(header), Some(target)) if !header.eq_ignore_ascii_case(target) => return None,
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) if parts.version == Version::HTTP_10 => return Some(None),
        (None, None) => return None,
    };
    // In HTTP/1.1 the header is needed beside an absolute target as well.
    if header.is_none() && parts.version == Version::HTTP_11 {
        return None;
    }
    let is_valid = found.parse::<Authority>().is_ok() && !found.contains('@');
    is_valid.then(|| Some(found.to_ascii_lowercase()))
}

/// A body, and its count.
pub(super) type ReadBody = (Vec<u8>, Held);

/// Reads a body, whole.
pub(super) async fn body(mut body: Incoming, shared: &Arc<Shared>) -> Result<ReadBody, Refusal> {
    let limits = &shared.limits;
    let mut held = Held::new(Arc::clone(shared));
    let mut bytes = Vec::new();
    if body.is_end_stream() {
        return Ok((bytes, held));
    }
    // Before the first byte is asked for, so that a client that waits for `100 Continue` does not
    // send it.
    if body.size_hint().lower() > limits.body_bytes {
        return Err(Refusal::closing(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let began = Instant::now() + ms(limits.body_time);
    loop {
        let deadline =
            began + Duration::from_millis(1000 * bytes.len() as u64 / limits.body_rate.max(1));
        let next = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let frame = match timeout_at(deadline, next).await {
            Ok(None) => return Ok((bytes, held)),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(Refusal::closing(StatusCode::BAD_REQUEST)),
            Err(_) => return Err(Refusal::closing(StatusCode::REQUEST_TIMEOUT)),
        };
        // Trailers are of no use to anyone.
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() as u64 + data.len() as u64 > limits.body_bytes {
            return Err(Refusal::closing(StatusCode::PAYLOAD_TOO_LARGE));
        }
        if !held.add(data.len()) {
            return Err(Refusal::closing(StatusCode::SERVICE_UNAVAILABLE));
        }
        bytes.extend_from_slice(&data);
    }
}

/// A body behind a binary.
pub struct BodyResource(Vec<u8>);

#[rustler::resource_impl]
impl Resource for BodyResource {}

pub(super) fn encode_body(env: Env<'_>, bytes: Vec<u8>) -> Term<'_> {
    if bytes.is_empty() {
        return binary(env, b"");
    }
    let body: Binary =
        ResourceArc::new(BodyResource(bytes)).make_binary(env, |body| body.0.as_slice());
    body.to_term(env)
}
