//! Clients: connection pools with their settings, built on demand and kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::{Client, NoProxy, Proxy};
use rustler::{NifMap, NifUnitEnum, Resource, ResourceArc};
use rustls::crypto::ring;
use rustls::ClientConfig;
use skillbook_net::{authorities, plain};

use super::atoms;
use super::fault::{fault, Fault};

/// The number of clients that are cached. Clients with different settings do not share connections.
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
    pub(super) client: Client,
    pub(super) has_authorities: bool,
}

#[rustler::resource_impl]
impl Resource for ClientResource {}

#[derive(NifUnitEnum, Clone, PartialEq)]
pub(super) enum Protocol {
    Auto,
    Http1,
    Http2,
}

#[derive(NifMap, Clone, PartialEq)]
pub(super) struct Settings {
    protocol: Protocol,
    connect_timeout: u64,
    cacertfile: Option<String>,
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: Option<String>,
}

/// The modification time and size of the file of certificate authorities when it was read.
type Stamp = Option<(SystemTime, u64)>;

static CLIENTS: Mutex<Vec<(Settings, Stamp, ResourceArc<ClientResource>)>> = Mutex::new(Vec::new());

/// Finds a client without reading files or waiting for a lock.
pub(super) fn cached(settings: &Settings) -> Option<ResourceArc<ClientResource>> {
    match CLIENTS.try_lock() {
        Ok(mut clients) if settings.cacertfile.is_none() => known(&mut clients, settings, None),
        _ => None,
    }
}

pub(super) fn client(settings: Settings) -> Result<ResourceArc<ClientResource>, Fault> {
    let stamp = match &settings.cacertfile {
        None => None,
        Some(path) => {
            let modified =
                std::fs::metadata(path).and_then(|file| Ok((file.modified()?, file.len())));
            Some(modified.map_err(|error| authorities_missing(path, &plain(&error)))?)
        }
    };
    // Building takes milliseconds and happens under the lock, so that two callers do not build the
    // same client.
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = known(&mut clients, &settings, stamp) {
        return Ok(client);
    }
    let client = ResourceArc::new(build(&settings)?);
    // A client with an older file of authorities must not be used again.
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
    // With TLS the protocol is negotiated; without it, HTTP/2 needs prior knowledge.
    tls.alpn_protocols = match settings.protocol {
        Protocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
    };

    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        // Redirects are followed in Elixir, for all adapters alike.
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
