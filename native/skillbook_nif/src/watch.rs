//! Watches the folders of sources on a thread of its own and tells a process which paths changed.
//!
//! Where the system reports changes only of single folders (Linux), each folder is watched by itself: so `.git` and
//! `node_modules` cost nothing, and a new folder is watched before it is told of, so that no file in it is missed. A root
//! whose file system reports no changes is looked through at intervals instead. At the same intervals each root is
//! checked to be still the folder that is watched: it may come, go, be replaced, or be a link that leads elsewhere now.

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

use crate::load::is_concerned;

/// Changes are told of when nothing has happened for this long, so that those of one save come together,
const QUIET: Duration = Duration::from_millis(10);
/// or when the first of them is this old.
const LONGEST: Duration = Duration::from_millis(100);

/// As deep as folders are read.
const MAX_DEPTH: usize = 16;

/// The most files of a root that are looked through at intervals, and the most of its folders that are watched.
const MAX_FILES: usize = 200_000;

/// Whether the system reports what happens anywhere below a folder.
const RECURSIVE: bool = cfg!(target_os = "macos");

mod atoms {
    rustler::atoms! { all, skillbook_paths, skillbook_polling, skillbook_watch_ended }
}

/// Watching goes on for as long as this lives, or the process to which it tells.
pub struct WatchResource(Sender<Message>);

#[rustler::resource_impl]
impl Resource for WatchResource {}

impl Drop for WatchResource {
    fn drop(&mut self) {
        // If nobody receives, the thread has ended already.
        let _ = self.0.send(Message::Stop);
    }
}

/// Sends the calling process `{:skillbook_paths, paths | :all}` after changes and once at the start,
/// `{:skillbook_polling, root, reason}` for a root without reports, and `:skillbook_watch_ended` after a panic.
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
        pending: Pending::default(),
        pid,
        env: OwnedEnv::new(),
    };
    let run = move || {
        if catch_unwind(AssertUnwindSafe(|| watch.run(&messages))).is_err() {
            // Nobody is told if the process is gone too.
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
    /// As the source names it; so do the paths that are told.
    path: PathBuf,
    watched: Watched,
}

enum Watched {
    /// There is no folder.
    Nothing,
    Native(FolderId),
    Polling(Stamps),
}

/// A folder as it was when it was watched, at its path without links.
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
    /// Whether reports were lost.
    overflowed: bool,
    pending: Pending,
    pid: LocalPid,
    env: OwnedEnv,
}

impl Watch {
    fn run(mut self, messages: &Receiver<Message>) {
        self.rebuild();
        let mut next_check = Instant::now() + self.interval;
        loop {
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

    /// Sends what is pending; false if the process is gone.
    fn send_pending(&mut self) -> bool {
        let Pending { paths, all, .. } = std::mem::take(&mut self.pending);
        let texts: Option<Vec<&str>> = paths.iter().map(|path| path.to_str()).collect();
        let sent = self.env.send_and_clear(&self.pid, |env| match texts {
            Some(mut texts) if !all => {
                texts.sort_unstable();
                (atoms::skillbook_paths(), texts).encode(env)
            }
            // Also for a path that is not UTF-8: it cannot be told, but may have been a folder of many.
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
            if moved && self.is_root(path) {
                // The number of a removed folder is often that of the next one, so comparing would not tell.
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
        if concerns && !RECURSIVE && is_folder() {
            if let Err(reason) = self.watch_folders(path) {
                self.poll_all(&reason);
            }
        }
    }

    /// Compares each root with what it was.
    fn check_roots(&mut self) {
        let mut rebuild = std::mem::take(&mut self.overflowed);
        if rebuild {
            self.pending.insert_all();
        }
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

    /// Begins anew with all roots that the system watches or that were not there. What happens meanwhile is not reported,
    /// so the roots themselves count as changed.
    fn rebuild(&mut self) {
        self.native = None;
        for at in 0..self.roots.len() {
            if matches!(self.roots[at].watched, Watched::Polling(_)) {
                continue;
            }
            let path = self.roots[at].path.clone();
            let watched = match self.watch_root(&path) {
                Ok(watched) => watched,
                Err(reason) => return self.poll_all(&reason),
            };
            let before = std::mem::replace(&mut self.roots[at].watched, watched);
            if !matches!((before, &self.roots[at].watched), (Watched::Nothing, Watched::Nothing)) {
                self.pending.insert(path);
            }
        }
    }

    fn watch_root(&mut self, path: &Path) -> Result<Watched, String> {
        let Some(folder) = FolderId::at(path) else { return Ok(Watched::Nothing) };
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
                if !event.as_ref().is_ok_and(|event| is_read(event.kind)) {
                    // If nobody receives, watching is about to end.
                    let _ = sender.send(Message::Event(event));
                }
            };
            self.native =
                Some(notify::recommended_watcher(handler).map_err(|error| error.to_string())?);
        }
        self.watch_folders(&folder.path)?;
        Ok(Watched::Native(folder))
    }

    /// Watches a folder and those below it, each before its files are looked at.
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
            // What cannot be opened, or is gone by now, is for the loader to tell.
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

    /// For a system that has no watches left, or never had any.
    fn poll_all(&mut self, reason: &str) {
        self.report_polling(reason);
        self.poll = true;
        self.rebuild();
    }

    fn report_polling(&mut self, reason: &str) {
        let message = |env| (atoms::skillbook_polling(), reason).encode(env);
        // If nobody receives, `send_pending` finds out.
        let _ = self.env.send_and_clear(&self.pid, message);
    }
}

/// What is to be told, and since when.
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

/// Whether nothing was written.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn is_walked(entry: &DirEntry) -> bool {
    entry.depth() == 0 || is_concerned(entry.file_name())
}

/// Gone again, or not to be read: no reason to give up watching the others.
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

/// What tells that a file changed, or what a folder holds: kind and rights, inode, size, the times of the content and of
/// the inode. The content's alone is not enough, since a file that is moved here keeps its own.
type Stamp = (u32, u64, u64, [i64; 4]);
type Stamps = FxHashMap<PathBuf, Stamp>;

fn stamps(root: &Path) -> Stamps {
    let entries = WalkDir::new(root).max_depth(MAX_DEPTH).into_iter().filter_entry(is_walked);
    let stamp = |entry: DirEntry| {
        // The root may be a link; links in it are followed nowhere.
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

/// The name of the path's file system if it does not report what other machines change.
#[cfg(target_os = "linux")]
fn without_reports(path: &Path) -> Option<&'static str> {
    // From linux/magic.h and the systems' own headers.
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
