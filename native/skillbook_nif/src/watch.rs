//! Watches the folders of sources, on a thread per book, and sends a process the paths that
//! changed.
//!
//! No change that the system reports is missed:
//!
//! - A folder is watched before its files are read, and reported once it is watched. So a file that
//!   appears in between is found by one or the other.
//! - On Linux each folder is watched on its own, because the system reports changes only of single
//!   folders. `.git` and `node_modules` then cost nothing.
//! - At intervals each root is compared with the folder that is watched. A root that is moved, or
//!   whose parent is, reports nothing; it may also come, go, be replaced, or be a link that leads
//!   elsewhere. So is the list of file systems that are mounted below roots: mounting reports
//!   nothing either.
//! - Lost reports, and paths that are not UTF-8, are reported as `:all`, after which everything is
//!   read again.
//!
//! A root on a file system without reports (NFS, say) is scanned at intervals instead. `notify` has
//! a poller for that, which is not used: it compares times in whole seconds and only forward, so it
//! misses a second change within a second, and a file that is replaced by an older one.
//!
//! The thread ends with the resource or with the process. `notify` has a thread of its own; both
//! only send messages, so no lock is shared with anybody.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use rustc_hash::{FxHashMap, FxHashSet};
use rustler::env::OwnedEnv;
use rustler::{Encoder, Env, LocalPid, NifResult, Resource, ResourceArc};
use walkdir::{DirEntry, WalkDir};

use skillbook_files::is_concerned;

/// Changes are reported after this time without further ones, so that the steps of one save arrive
/// together,
const QUIET: Duration = Duration::from_millis(10);
/// or when the first of them is this old, so that a steady stream of changes is reported too.
const LONGEST: Duration = Duration::from_millis(100);

/// The depth to which the loader reads folders.
const MAX_DEPTH: usize = 16;

/// The maximum number of files that are scanned in a root, and of folders that are watched.
const MAX_FILES: usize = 200_000;

/// Whether the system reports changes anywhere below a folder.
const RECURSIVE: bool = cfg!(target_os = "macos");

mod atoms {
    rustler::atoms! { all, skillbook_paths, skillbook_polling, skillbook_watch_ended }
}

/// Watching ends when this is dropped, or when the process ends.
pub struct WatchResource(Sender<Message>);

#[rustler::resource_impl]
impl Resource for WatchResource {}

impl Drop for WatchResource {
    fn drop(&mut self) {
        // If the receiver is gone, the thread has ended already.
        let _ = self.0.send(Message::Stop);
    }
}

/// Starts watching. The calling process receives `{:skillbook_paths, paths | :all}` after changes
/// and once at the start, `{:skillbook_polling, root, reason}` for a root without reports, and
/// `:skillbook_watch_ended` after a panic.
#[rustler::nif]
fn watch_start(
    env: Env<'_>,
    roots: Vec<String>,
    poll: bool,
    interval_ms: u64,
) -> NifResult<ResourceArc<WatchResource>> {
    let (sender, messages) = channel();
    let pid = env.pid();
    let watch = Watch {
        roots: roots
            .into_iter()
            .map(|path| Root { path: path.into(), watched: Watched::Nothing })
            .collect(),
        poll,
        interval: Duration::from_millis(interval_ms),
        native: None,
        sender: sender.clone(),
        overflowed: false,
        mounts: Vec::new(),
        pending: Pending::default(),
        pid,
        env: OwnedEnv::new(),
    };
    let run = move || {
        if catch_unwind(AssertUnwindSafe(|| watch.run(&messages))).is_err() {
            // If the process has ended too, nobody needs the message.
            let _ = OwnedEnv::new().send_and_clear(&pid, |_| atoms::skillbook_watch_ended());
        }
    };
    thread::Builder::new()
        .name("skillbook watch".into())
        .spawn(run)
        .map_err(|error| rustler::Error::Term(Box::new(error.to_string())))?;
    Ok(ResourceArc::new(WatchResource(sender)))
}

enum Message {
    Event(notify::Result<Event>),
    Stop,
}

struct Root {
    /// The path as the source names it. Reported paths begin with it.
    path: PathBuf,
    watched: Watched,
}

enum Watched {
    /// The folder does not exist.
    Nothing,
    Native(FolderId),
    Polling(Stamps),
}

/// The identity of a watched folder, with its path after resolving links.
#[derive(PartialEq, Eq)]
struct FolderId {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FolderId {
    fn at(path: &Path) -> Option<FolderId> {
        let path = fs::canonicalize(path).ok()?;
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_dir)?;
        Some(FolderId { path, device: metadata.dev(), inode: metadata.ino() })
    }
}

struct Watch {
    roots: Vec<Root>,
    poll: bool,
    interval: Duration,
    native: Option<RecommendedWatcher>,
    sender: Sender<Message>,
    /// Whether the system has dropped reports.
    overflowed: bool,
    /// The file systems that are mounted below roots.
    mounts: Vec<String>,
    pending: Pending,
    pid: LocalPid,
    env: OwnedEnv,
}

impl Watch {
    fn run(mut self, messages: &Receiver<Message>) {
        self.rebuild();
        let mut next_check = Instant::now() + self.interval;
        loop {
            // One thread waits for events, for the end of the quiet time, and for the next check.
            let wake = self.pending.due().map_or(next_check, |due| due.min(next_check));
            match messages.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok(Message::Event(event)) => self.event(event),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.pending.due().is_some_and(|due| due <= now) && !self.send_pending() {
                return;
            }
            if next_check <= now {
                self.check_roots();
                next_check = Instant::now() + self.interval;
            }
        }
    }

    /// Sends the pending paths. Returns false if the process has ended.
    fn send_pending(&mut self) -> bool {
        let Pending { paths, all, .. } = std::mem::take(&mut self.pending);
        let texts: Option<Vec<&str>> = paths.iter().map(|path| path.to_str()).collect();
        let sent = self.env.send_and_clear(&self.pid, |env| match texts {
            Some(mut texts) if !all => {
                texts.sort_unstable();
                (atoms::skillbook_paths(), texts).encode(env)
            }
            // Also for a path that is not UTF-8: it cannot be sent, and may have been a folder with
            // many files.
            _ => (atoms::skillbook_paths(), atoms::all()).encode(env),
        });
        sent.is_ok()
    }

    fn event(&mut self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.overflowed = true;
            return;
        };
        self.overflowed |= event.need_rescan();
        let moved =
            matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        for path in &event.paths {
            // A root itself was removed or renamed, so its watch is gone.
            if moved && self.is_root(path) {
                // A removed folder's inode number is often reused by the next one, so comparing
                // identities would miss this.
                self.rebuild();
            } else {
                self.changed(path);
            }
        }
    }

    fn is_root(&self, path: &Path) -> bool {
        self.roots
            .iter()
            .any(|root| matches!(&root.watched, Watched::Native(folder) if folder.path == path))
    }

    fn changed(&mut self, path: &Path) {
        let mut concerns = false;
        for root in &self.roots {
            let Watched::Native(folder) = &root.watched else { continue };
            let Ok(below) = path.strip_prefix(&folder.path) else { continue };
            if below.iter().all(is_concerned) {
                concerns = true;
                self.pending.insert(if below.as_os_str().is_empty() {
                    root.path.clone()
                } else {
                    root.path.join(below)
                });
            }
        }
        let is_folder = || fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        // A new folder, with all that was created in it before it could be watched.
        if concerns && !RECURSIVE && is_folder() {
            if let Err(reason) = self.watch_folders(path) {
                self.poll_all(&reason);
            }
        }
    }

    /// Compares each root with its last known state.
    fn check_roots(&mut self) {
        // After lost reports nothing is certain, neither files nor folders.
        let mut rebuild = std::mem::take(&mut self.overflowed);
        if rebuild {
            self.pending.insert_all();
        }
        rebuild |= self.mounts != mounts(&self.roots);
        for root in &mut self.roots {
            match &mut root.watched {
                Watched::Nothing => rebuild |= root.path.is_dir(),
                Watched::Native(folder) => {
                    rebuild |= FolderId::at(&root.path).as_ref() != Some(&*folder)
                }
                Watched::Polling(before) => {
                    let now = stamps(&root.path);
                    let changed =
                        now.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp));
                    let gone = before.keys().filter(|path| !now.contains_key(*path));
                    for path in changed.map(|(path, _)| path).chain(gone) {
                        self.pending.insert(path.clone());
                    }
                    *before = now;
                }
            }
        }
        if rebuild {
            self.rebuild();
        }
    }

    /// Watches all roots again, except those that are scanned. Changes during this are not
    /// reported, so the roots themselves are reported as changed.
    fn rebuild(&mut self) {
        // Dropping the watcher removes all its watches.
        self.native = None;
        for at in 0..self.roots.len() {
            // A scanned root stays scanned, also while others get new watches.
            if matches!(self.roots[at].watched, Watched::Polling(_)) {
                continue;
            }
            let path = self.roots[at].path.clone();
            let watched = match self.watch_root(&path) {
                Ok(watched) => watched,
                // The limit of watches is shared by all roots, so all of them are scanned then.
                Err(reason) => return self.poll_all(&reason),
            };
            let before = std::mem::replace(&mut self.roots[at].watched, watched);
            if !matches!((before, &self.roots[at].watched), (Watched::Nothing, Watched::Nothing)) {
                self.pending.insert(path);
            }
        }
        self.mounts = mounts(&self.roots);
    }

    fn watch_root(&mut self, path: &Path) -> Result<Watched, String> {
        let Some(folder) = FolderId::at(path) else { return Ok(Watched::Nothing) };
        // Requested by the application, or the fallback of `poll_all`.
        if self.poll {
            return Ok(Watched::Polling(stamps(path)));
        }
        if let Some(system) = without_reports(&folder.path) {
            self.report_polling(&format!("{}: {system} does not report changes", path.display()));
            return Ok(Watched::Polling(stamps(path)));
        }
        if self.native.is_none() {
            let sender = self.sender.clone();
            let handler = move |event: notify::Result<Event>| {
                // Reading a file must not wake the thread: the loader itself reads them all.
                if !event.as_ref().is_ok_and(|event| is_read(event.kind)) {
                    // If the receiver is gone, the thread is about to end.
                    let _ = sender.send(Message::Event(event));
                }
            };
            self.native =
                Some(notify::recommended_watcher(handler).map_err(|error| error.to_string())?);
        }
        self.watch_folders(&folder.path)?;
        Ok(Watched::Native(folder))
    }

    /// Watches a folder and those below it, each before its content is listed.
    fn watch_folders(&mut self, folder: &Path) -> Result<(), String> {
        let Some(native) = &mut self.native else { return Ok(()) };
        if RECURSIVE {
            return native
                .watch(folder, RecursiveMode::Recursive)
                .map_err(|error| error.to_string());
        }
        let folders = WalkDir::new(folder).max_depth(MAX_DEPTH).into_iter();
        for entry in folders
            .filter_entry(|entry| entry.file_type().is_dir() && is_walked(entry))
            .take(MAX_FILES)
        {
            // A folder that cannot be opened, or is gone, is left to the loader, which reports it.
            let Ok(entry) = entry else { continue };
            let watched = native.watch(entry.path(), RecursiveMode::NonRecursive);
            if let Err(error) = watched {
                if !is_passing(&error) {
                    return Err(error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Falls back to scanning, if the system has no watches left or does not support them.
    fn poll_all(&mut self, reason: &str) {
        self.report_polling(reason);
        self.poll = true;
        self.rebuild();
    }

    fn report_polling(&mut self, reason: &str) {
        let message = |env| (atoms::skillbook_polling(), reason).encode(env);
        // If the process has ended, `send_pending` notices.
        let _ = self.env.send_and_clear(&self.pid, message);
    }
}

/// The paths to report, and the times of the first and the last change.
#[derive(Default)]
struct Pending {
    paths: FxHashSet<PathBuf>,
    all: bool,
    since: Option<(Instant, Instant)>,
}

impl Pending {
    fn insert(&mut self, path: PathBuf) {
        self.paths.insert(path);
        self.touch();
    }

    fn insert_all(&mut self) {
        self.all = true;
        self.touch();
    }

    fn touch(&mut self) {
        let now = Instant::now();
        self.since = Some((self.since.map_or(now, |(first, _)| first), now));
    }

    fn due(&self) -> Option<Instant> {
        self.since.map(|(first, last)| (last + QUIET).min(first + LONGEST))
    }
}

/// Whether an event is about reading only.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn is_walked(entry: &DirEntry) -> bool {
    entry.depth() == 0 || is_concerned(entry.file_name())
}

/// The folder is gone again or unreadable. The others can still be watched.
fn is_passing(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::PermissionDenied
        ),
        _ => false,
    }
}

/// The metadata that changes with a file or the content of a folder: type and mode, inode, size,
/// and both times. The modification time alone is not enough, since a file that is moved here keeps
/// its own.
type Stamp = (u32, u64, u64, [i64; 4]);
type Stamps = FxHashMap<PathBuf, Stamp>;

fn stamps(root: &Path) -> Stamps {
    let entries = WalkDir::new(root).max_depth(MAX_DEPTH).into_iter().filter_entry(is_walked);
    let stamp = |entry: DirEntry| {
        // The root may be a link. Links inside it are not followed.
        let it = if entry.depth() == 0 {
            fs::metadata(entry.path())
        } else {
            fs::symlink_metadata(entry.path())
        }
        .ok()?;
        let times = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
        Some((entry.into_path(), (it.mode(), it.ino(), it.size(), times)))
    };
    entries.filter_map(Result::ok).take(MAX_FILES).filter_map(stamp).collect()
}

/// The file systems that are mounted below watched folders, each with its number, device and path.
#[cfg(target_os = "linux")]
fn mounts(roots: &[Root]) -> Vec<String> {
    let folders: Vec<&Path> = roots
        .iter()
        .filter_map(|root| match &root.watched {
            Watched::Native(folder) => Some(folder.path.as_path()),
            _ => None,
        })
        .collect();
    if folders.is_empty() {
        return Vec::new();
    }
    // A line has the mount's number, that of its parent, the device, the root and the path.
    let list = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let below = |line: &&str| {
        let path = line.split(' ').nth(4).map(unescaped);
        path.is_some_and(|path| folders.iter().any(|folder| Path::new(&path).starts_with(folder)))
    };
    list.lines().filter(below).map(str::to_owned).collect()
}

#[cfg(not(target_os = "linux"))]
fn mounts(_roots: &[Root]) -> Vec<String> {
    Vec::new()
}

/// A path of the list of mounts, in which these four characters are octal.
#[cfg(target_os = "linux")]
fn unescaped(path: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(path.to_owned(), |path, (code, c)| path.replace(code, c))
}

/// The name of a file system that does not report changes made by other machines.
#[cfg(target_os = "linux")]
fn without_reports(path: &Path) -> Option<&'static str> {
    // The numbers are from linux/magic.h and the file systems' own headers.
    match rustix::fs::statfs(path).ok()?.f_type as u32 {
        0x6969 => Some("NFS"),
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x6573_5546 => Some("FUSE"),
        0x786f_4256 => Some("vboxsf"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x00c3_6400 => Some("Ceph"),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn without_reports(_path: &Path) -> Option<&'static str> {
    None
}
