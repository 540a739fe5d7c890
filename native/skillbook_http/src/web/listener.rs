//! The sockets of a server, the number of its connections and requests, and its end.

use std::fs;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustc_hash::FxHashMap;
use rustler::{Atom, Encoder, LocalPid};
use skillbook_net::plain;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{watch, Notify, Semaphore};
use tokio::time::{sleep, timeout, Instant};

use super::connection::serve;
use super::io::Socket;
use super::rules::Rules;
use super::shared::{Peer, Phase, Shared};
use super::tls::{self, Files};
use super::{atoms, Limits};

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// A server that was just killed may hold its port for a moment.
const PATIENCE: Duration = Duration::from_millis(1_000);
const AGAIN: Duration = Duration::from_millis(20);

/// The pause after an error of `accept`, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The time for the last connections to end after they were cut.
const END: Duration = Duration::from_secs(2);

const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

pub(super) enum Address {
    Tcp(IpAddr, u16),
    Unix(PathBuf),
}

/// Why a server does not start.
pub(super) struct Fault(Atom, String);

impl Fault {
    pub(super) fn kind(&self) -> Atom {
        self.0
    }

    pub(super) fn text(&self) -> &str {
        &self.1
    }

    fn io(error: &io::Error) -> Fault {
        let kind = match error.kind() {
            io::ErrorKind::AddrInUse => atoms::in_use(),
            io::ErrorKind::AddrNotAvailable => atoms::address(),
            io::ErrorKind::PermissionDenied => atoms::permission(),
            _ => atoms::other(),
        };
        Fault(kind, plain(error))
    }
}

pub(super) struct Server {
    shared: Arc<Shared>,
    port: u16,
}

impl Server {
    pub(super) fn start(
        runtime: &Runtime,
        address: Address,
        tls: Option<Files>,
        http2: bool,
        limits: Limits,
        rules: Rules,
        owner: LocalPid,
    ) -> Result<Server, Fault> {
        // Registers sockets.
        let _guard = runtime.enter();
        let (listener, port) = match address {
            Address::Tcp(ip, port) => {
                let listener = tcp(SocketAddr::new(ip, port)).map_err(|error| Fault::io(&error))?;
                let port = listener.local_addr().map_err(|error| Fault::io(&error))?.port();
                (Listener::Tcp(listener), port)
            }
            Address::Unix(path) => (Listener::Unix(unix(&path)?), 0),
        };
        let (places, streams) = (limits.requests, limits.streams);
        let shared = Arc::new(Shared {
            limits,
            owner,
            rules,
            tls,
            http2,
            began: Instant::now(),
            runtime: runtime.handle().clone(),
            phase: watch::Sender::new(Phase::Running),
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            queued: AtomicUsize::new(0),
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
            held: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            empty: Notify::new(),
            addresses: Mutex::new(FxHashMap::default()),
        });
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        if shared.tls.is_some() {
            runtime.spawn(follow(Arc::clone(&shared)));
        }
        Ok(Server { shared, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections.
    pub(super) fn end(&self) {
        self.shared.enter(Phase::Ended);
    }

    pub(super) fn stop(&self, drain: Duration) -> impl Future<Output = ()> + Send {
        let shared = Arc::clone(&self.shared);
        shared.enter(Phase::Draining);
        async move {
            let _ = timeout(drain, empty(&shared)).await;
            shared.enter(Phase::Ended);
            let _ = timeout(END, empty(&shared)).await;
        }
    }

    pub(super) fn counts(&self) -> (usize, usize, usize, usize, usize) {
        let shared = &self.shared;
        (
            shared.open.load(Ordering::Acquire),
            shared.limits.requests.saturating_sub(shared.places.available_permits()),
            shared.queued.load(Ordering::Acquire),
            shared.limits.streams.saturating_sub(shared.streams.available_permits()),
            shared.held.load(Ordering::Acquire),
        )
    }
}

/// Waits until no connection is open.
async fn empty(shared: &Shared) {
    loop {
        let notified = shared.empty.notified();
        if shared.open.load(Ordering::Acquire) == 0 {
            return;
        }
        notified.await;
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixFile),
}

fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let began = Instant::now();
    loop {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Connections of a former server that wait for their last packets do not hold the port.
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && began.elapsed() < PATIENCE =>
            {
                // A thread of dirty IO.
                std::thread::sleep(AGAIN);
            }
            done => return done,
        }
    }
}

/// A socket in the file system, which is removed at the end if it is still this one.
struct UnixFile {
    listener: UnixListener,
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Drop for UnixFile {
    fn drop(&mut self) {
        if self.file.is_some() && identity(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Binds beside the path, with the mode 0600, and then links it there. So nobody else can connect
/// at any time, and a file that another program has made meanwhile is not replaced.
fn unix(path: &Path) -> Result<UnixFile, Fault> {
    let io = |error: io::Error| Fault::io(&error);
    let began = Instant::now();
    while let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(Fault(atoms::other(), "there is a file that is no socket".to_owned()));
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(io)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(error)),
            Ok(_) if began.elapsed() < PATIENCE => std::thread::sleep(AGAIN),
            Ok(_) => {
                let text = "another server answers there".to_owned();
                return Err(Fault(atoms::in_use(), text));
            }
        }
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let listener = UnixListener::bind(&beside).map_err(io)?;
    let linked = fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::hard_link(&beside, path));
    let removed = fs::remove_file(&beside);
    linked.and(removed).map_err(io)?;
    Ok(UnixFile { listener, path: path.to_owned(), file: identity(path) })
}

/// Accepts connections until the server stops.
async fn accept(listener: Listener, shared: Arc<Shared>) {
    let accepting = async {
        loop {
            let accepted = match &listener {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, from)| {
                    // A response goes out at once.
                    let _ = stream.set_nodelay(true);
                    (Socket::Tcp(stream), Peer::Ip(from.ip()))
                }),
                Listener::Unix(file) => file
                    .listener
                    .accept()
                    .await
                    .map(|(stream, _)| (Socket::Unix(stream), Peer::Unix)),
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            match shared.seat(peer) {
                Some(seat) => {
                    tokio::spawn(serve(socket, peer, Arc::clone(&shared), seat));
                }
                None => turn_away(&socket, shared.tls.is_some()),
            }
        }
    };
    tokio::select! {
        biased;
        _ = shared.reaches(Phase::Draining) => {}
        () = accepting => {}
    }
}

/// Sends as much as goes without waiting.
fn turn_away(socket: &Socket, is_tls: bool) {
    if let (Socket::Tcp(stream), false) = (socket, is_tls) {
        let _ = stream_write(stream);
    }
}

fn stream_write(stream: &TcpStream) -> io::Result<usize> {
    stream.try_write(UNAVAILABLE)
}

/// Reads the files of the certificate again when they have changed.
async fn follow(shared: Arc<Shared>) {
    let look = |shared: Arc<Shared>, read: bool| async move {
        let work = move || {
            let files = shared.tls.as_ref()?;
            let stamp = files.stamp();
            Some((stamp, if read { files.reload() } else { Ok(()) }))
        };
        tokio::task::spawn_blocking(work).await.ok().flatten()
    };
    let Some((mut last, _)) = look(Arc::clone(&shared), false).await else { return };
    let following = async {
        loop {
            sleep(tls::INTERVAL).await;
            let Some((stamp, _)) = look(Arc::clone(&shared), false).await else { return };
            if stamp == last {
                continue;
            }
            let Some((stamp, outcome)) = look(Arc::clone(&shared), true).await else { return };
            last = stamp;
            shared.tell(|env| {
                let tag = atoms::skillbook_certificate();
                match outcome {
                    Ok(()) => (tag, atoms::ok()).encode(env),
                    Err(text) => (tag, text).encode(env),
                }
            });
        }
    };
    tokio::select! {
        _ = shared.reaches(Phase::Draining) => {}
        () = following => {}
    }
}
