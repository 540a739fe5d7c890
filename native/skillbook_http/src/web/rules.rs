//! The proxies in front of a server, and the websites whose pages may read its answers.

use std::net::IpAddr;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN};
use hyper::Request;

use super::Settings;

pub(super) struct Rules {
    proxies: Vec<(IpAddr, u8)>,
    origins: Vec<String>,
    paths: Vec<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Rules {
    /// `None` if a setting is not valid.
    pub(super) fn new(settings: &Settings) -> Option<Rules> {
        let proxies = settings.proxies.iter().map(|(ip, bits)| Some((ip.parse().ok()?, *bits)));
        let headers = settings.shared_headers.iter().map(|(name, value)| {
            Some((
                HeaderName::from_bytes(name.as_bytes()).ok()?,
                HeaderValue::from_str(value).ok()?,
            ))
        });
        Some(Rules {
            proxies: proxies.collect::<Option<_>>()?,
            origins: settings.origins.clone(),
            paths: settings.shared_paths.clone(),
            headers: headers.collect::<Option<_>>()?,
        })
    }

    /// Connections of a proxy are those of many clients.
    pub(super) fn is_proxy(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.proxies.iter().any(|(network, bits)| contains(*network, *bits, ip))
    }

    /// The origin of a request, if its page may read the answer.
    pub(super) fn origin(&self, request: &Request<Incoming>) -> Option<HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        let path = request.uri().path();
        let is_shared = self.paths.iter().any(|shared| {
            path.strip_prefix(shared.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let mut values = request.headers().get_all(ORIGIN).iter();
        match (values.next(), values.next()) {
            (Some(origin), None) if is_shared => {
                let is_listed = self.origins.iter().any(|listed| listed.as_bytes() == origin);
                is_listed.then(|| origin.clone())
            }
            _ => None,
        }
    }

    /// Lets the page read an answer that did not come from the book: an error of the server.
    pub(super) fn share(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if let (Some(origin), false) = (origin, headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN)) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            for (name, value) in &self.headers {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// Whether an address is in a network of the same kind.
fn contains(network: IpAddr, bits: u8, ip: IpAddr) -> bool {
    let (network, ip, size) = match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            (u128::from(u32::from(network)), u128::from(u32::from(ip)), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => (u128::from(network), u128::from(ip), 128),
        _ => return false,
    };
    let rest = u32::from(size - bits.min(size));
    network.checked_shr(rest) == ip.checked_shr(rest)
}
