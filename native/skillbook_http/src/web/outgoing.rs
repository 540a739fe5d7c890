//! The body of a response, for hyper.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::{Response, StatusCode};

use super::clock::Busy;
use super::stream::{Broken, Stream};

/// A body, whole or in parts. The connection is busy as long as it lives.
pub(super) struct Outgoing {
    kind: Kind,
    _busy: Busy,
}

pub(super) enum Kind {
    Empty,
    Whole(Option<Bytes>),
    Stream(Arc<Stream>),
}

impl Outgoing {
    pub(super) fn new(kind: Kind, busy: Busy) -> Outgoing {
        let kind = match kind {
            Kind::Whole(Some(bytes)) if bytes.is_empty() => Kind::Empty,
            kind => kind,
        };
        match &kind {
            Kind::Stream(stream) => busy.sends(Some(Arc::clone(stream))),
            _ => busy.sends(None),
        }
        Outgoing { kind, _busy: busy }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.get_mut().kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.poll(cx).map(|part| part.map(|part| part.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Stream(stream) => stream.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let exact = match &self.kind {
            Kind::Empty => Some(0),
            Kind::Whole(bytes) => Some(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(stream) => stream.left(),
        };
        exact.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Kind::Stream(stream) = &self.kind {
            stream.close();
        }
    }
}

/// A response of the server itself.
pub(super) fn plain(status: StatusCode, busy: Busy) -> Response<Outgoing> {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("Error"));
    let body = Outgoing::new(Kind::Whole(Some(Bytes::from(text))), busy);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
