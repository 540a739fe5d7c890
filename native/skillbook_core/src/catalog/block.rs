//! Records of one class, as they lie in memory: packed until somebody reads them.
//!
//! A record is a line of JSON, and a block a few of them in the order of their ids. The entries of
//! a block are made when a reader comes, of the same bytes that they are kept in, and stay as long
//! as a catalog has them. So entries and texts that nobody reads take about half of their text.
//!
//! A block never changes: a write makes another one of the same records. Entries of the records
//! that did not change are the same objects in both.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use lz4_flex::block::{compress, decompress};

use super::assemble;
use super::entry::Entry;
use super::finding::Finding;
use crate::page::document::Document;
use crate::page::record::Record;
use crate::source::Source;

/// The bytes of a block. Larger ones would be a tenth smaller when packed, but a write unpacks one.
const BLOCK: usize = 16 * 1024;

/// The bytes that an open entry takes when it is searched, and the times that of its line. Nearly
/// half of it is the search index. `tests/memory.rs` measures them.
const ENTRY_BYTES: usize = 1_400;
const TIMES: usize = 2;

/// A record with its entry. No other record affects them.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub id: i64,
    pub entry: Option<Arc<Entry>>,
    pub findings: Vec<Arc<Finding>>,
}

impl Item {
    pub fn new(source: &Arc<Source>, record: &Record) -> Item {
        let document = Arc::new(Document::stored(&source.root, record));
        let (entry, findings) = assemble::record(source, &document);
        Item { id: record.id, entry, findings }
    }
}

/// The entries of a block, while somebody reads them.
#[derive(Debug)]
pub struct Opened {
    pub(super) items: Vec<Item>,
    bytes: usize,
    open: Arc<AtomicUsize>,
}

impl Opened {
    fn new(items: Vec<Item>, lines: usize, open: &Arc<AtomicUsize>) -> Opened {
        let bytes = lines * TIMES + items.len() * ENTRY_BYTES;
        open.fetch_add(bytes, Ordering::Relaxed);
        Opened { items, bytes, open: open.clone() }
    }

    /// The entries of its records, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.items.iter().filter_map(|item| item.entry.as_deref())
    }

    fn item(&self, id: i64) -> Option<&Item> {
        let at = self.items.binary_search_by_key(&id, |item| item.id).ok()?;
        Some(&self.items[at])
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.open.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Makes the entries of a source's blocks.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    /// The source.
    pub(super) source: Arc<Source>,
    /// The bytes of all open entries, nearly.
    open: Arc<AtomicUsize>,
}

impl Opener {
    /// For the records of a source.
    pub fn new(source: Arc<Source>) -> Opener {
        Opener { source, open: Arc::default() }
    }

    /// The bytes that open entries take.
    pub fn bytes(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The entry of a line.
    pub(super) fn item(&self, line: &[u8]) -> Option<Item> {
        Some(Item::new(&self.source, &Record::of_line(line)?))
    }
}

/// Some records of a class, in the order of their ids.
#[derive(Debug)]
pub struct Block {
    first: i64,
    last: i64,
    size: usize,
    bytes: Mutex<Bytes>,
    opened: Mutex<Weak<Opened>>,
    /// See [`Block::digests`].
    digests: OnceLock<Box<[[u8; 16]]>>,
}

#[derive(Debug)]
enum Bytes {
    Plain(Arc<[u8]>),
    Packed(Box<[u8]>),
}

impl Block {
    /// The blocks of lines, with their entries if they are open.
    pub(super) fn cut(
        lines: &[u8],
        items: Option<Vec<Item>>,
        opener: &Opener,
    ) -> Vec<(Arc<Block>, Option<Arc<Opened>>)> {
        let mut items = items.map(Vec::into_iter);
        let mut blocks = Vec::new();
        let mut rest = lines;
        while let Some(first) = id(rest) {
            // The rest is one block, unless it is as long as two.
            let least = if rest.len() >= 2 * BLOCK { BLOCK } else { rest.len() };
            let end = memchr::memchr(b'\n', &rest[least - 1..]).map_or(rest.len(), |at| least + at);
            let (own, after) = rest.split_at(end);
            let start = memchr::memrchr(b'\n', &own[..own.len() - 1]).map_or(0, |at| at + 1);
            let last = id(&own[start..]).unwrap_or(first);
            let count = memchr::memchr_iter(b'\n', own).count();
            let items = items.as_mut().map(|items| items.take(count).collect());
            let opened = items.map(|items| Arc::new(Opened::new(items, own.len(), &opener.open)));
            let weak = opened.as_ref().map(Arc::downgrade).unwrap_or_default();
            let (bytes, opened_by) = (Mutex::new(Bytes::Plain(own.into())), Mutex::new(weak));
            let (size, digests) = (own.len(), OnceLock::new());
            let block = Block { first, last, size, bytes, opened: opened_by, digests };
            blocks.push((Arc::new(block), opened));
            rest = after;
        }
        blocks
    }

    /// The id of its first record.
    pub(super) fn first(&self) -> i64 {
        self.first
    }

    /// The id of its last record.
    pub(super) fn last(&self) -> i64 {
        self.last
    }

    /// Where its lines have a record, or would have it, and whether they do.
    pub(super) fn place(&self, lines: &[u8], wanted: i64) -> (bool, Range<usize>) {
        // New records have the highest ids.
        if wanted > self.last {
            return (false, lines.len()..lines.len());
        }
        let mut from = 0;
        for line in split(lines) {
            match id(line) {
                Some(id) if id < wanted => from += line.len(),
                Some(id) if id == wanted => return (true, from..from + line.len()),
                _ => break,
            }
        }
        (false, from..from)
    }

    /// The bytes of its lines.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether there is no room for one more record.
    pub(super) fn is_full(&self) -> bool {
        Block::is_enough(self.size)
    }

    /// Whether so many bytes of lines are a block.
    pub(super) fn is_enough(size: usize) -> bool {
        size >= BLOCK
    }

    /// Whether so little is left of it that it should become one with its neighbour.
    pub(super) fn is_rest(size: usize) -> bool {
        size < BLOCK / 4
    }

    /// Its lines.
    pub(super) fn lines(&self) -> Arc<[u8]> {
        match &*lock(&self.bytes) {
            Bytes::Plain(plain) => plain.clone(),
            // Only `pack` makes them, so there is no other case.
            Bytes::Packed(packed) => decompress(packed, self.size).unwrap_or_default().into(),
        }
    }

    /// Packs the lines, if they are not.
    pub fn pack(&self) {
        let plain = match &*lock(&self.bytes) {
            Bytes::Plain(plain) => plain.clone(),
            Bytes::Packed(_) => return,
        };
        // Without the lock, so that a reader does not wait.
        let packed = compress(&plain).into_boxed_slice();
        *lock(&self.bytes) = Bytes::Packed(packed);
    }

    /// The entries, made if nobody reads them yet. Readers that come at once wait for the first.
    pub fn open(&self, opener: &Opener) -> Arc<Opened> {
        let mut opened = lock(&self.opened);
        if let Some(opened) = opened.upgrade() {
            return opened;
        }
        let lines = self.lines();
        let items = split(&lines).filter_map(|line| opener.item(line)).collect();
        let new = Arc::new(Opened::new(items, self.size, &opener.open));
        *opened = Arc::downgrade(&new);
        new
    }

    /// The digests that a function makes of its entries, which is always the same one. They are
    /// kept, so that the entries need not be made for them again.
    pub fn digests(&self, opener: &Opener, of: impl Fn(&Entry) -> Option<[u8; 16]>) -> &[[u8; 16]] {
        self.digests.get_or_init(|| self.open(opener).entries().filter_map(of).collect())
    }

    /// The entries, if somebody reads them.
    pub(super) fn opened(&self) -> Option<Arc<Opened>> {
        lock(&self.opened).upgrade()
    }

    /// Whether somebody reads the entries. It does not wait for one who makes them.
    pub(super) fn is_open(&self) -> bool {
        match self.opened.try_lock() {
            Ok(opened) => opened.strong_count() > 0,
            Err(_) => true,
        }
    }

    /// The entry of one of the records. The others are not read for it.
    pub fn entry(&self, wanted: i64, opener: &Opener) -> Option<Arc<Entry>> {
        if let Some(opened) = self.opened() {
            return opened.item(wanted)?.entry.clone();
        }
        let lines = self.lines();
        let (found, at) = self.place(&lines, wanted);
        found.then(|| opener.item(&lines[at])?.entry).flatten()
    }
}

/// The lines, each with its end.
pub(super) fn split(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr::memchr_iter(b'\n', lines).map(move |end| {
        let line = &lines[from..=end];
        from = end + 1;
        line
    })
}

/// The id of the first record of some lines, which is the first of its values.
pub(super) fn id(lines: &[u8]) -> Option<i64> {
    let number = lines.strip_prefix(b"[[")?;
    let end = memchr::memchr(b',', number)?;
    std::str::from_utf8(&number[..end]).ok()?.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
