//! Vectors of texts, for searches by meaning: kept in memory by digest of the text, and compared
//! one by one.
//!
//! All vectors have unit length, so the cosine of two of them is their dot product. A search reads
//! every vector once. That is exact, and takes a millisecond for 10,000 vectors of 384 numbers:
//! about as long as memory needs to deliver them, so an approximate index would gain nothing.
//!
//! Rows are stored in blocks that never move, so memory grows by a block and not by a half. Readers
//! hold a [`Rows`], which shares its blocks with the store; a writer copies a block that somebody
//! else holds before it changes it.
//!
//! Vectors that are in a database may leave memory. Then the store only knows of them
//! ([`Vectors::know`]), in a sixtieth of the space, and whoever wants to compare them puts them
//! back first ([`Vectors::absent`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};

/// The digest of a text: the first half of its SHA-256.
pub type Digest = [u8; 16];

/// The size of a block. A store wastes half of one on average.
const BLOCK_BYTES: usize = 64 * 1024;

/// The maximum number of numbers in a vector. The largest models have 8,192.
pub const MAX_SIZE: usize = 16 * 1024;

/// The numbers that [`dot`] multiplies at once: four registers of the oldest x86-64 processors.
const LANES: usize = 16;

/// Vectors of different sizes in one store: its size, and the size of the vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongSize {
    /// The size of the vectors in the store.
    pub expected: usize,
    /// The size of the vector that was refused.
    pub got: usize,
}

/// Vectors of one model, by digest of the text. All have the size of the first.
#[derive(Debug, Default)]
pub struct Vectors {
    store: RwLock<Store>,
}

#[derive(Debug, Default)]
struct Store {
    rows: Rows,
    places: FxHashMap<Digest, u32>,
    /// Rows whose vectors were removed.
    free: Vec<u32>,
    /// Whether a row was written or read since [`Vectors::forget`] looked.
    used: Vec<AtomicBool>,
    /// Texts whose vectors are in a database alone. None of them has a place.
    known: FxHashSet<Digest>,
}

/// A state of a store, which stays as it is while the store changes.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    version: u64,
    size: usize,
    blocks: Vec<Arc<[f32]>>,
}

/// The rows of a list of texts, in the order of the rows.
#[derive(Debug)]
pub struct Mapped {
    rows: Rows,
    /// Each row with the position of its text in the list.
    places: Vec<(u32, u32)>,
}

impl Vectors {
    /// An empty store.
    pub fn new() -> Vectors {
        Vectors::default()
    }

    /// The number of texts with a vector, in memory or not.
    pub fn count(&self) -> usize {
        let store = self.read();
        store.places.len() + store.known.len()
    }

    /// The size of its vectors; 0 while it has none.
    pub fn size(&self) -> usize {
        self.read().rows.size
    }

    /// A number that is different after each change, and in each store.
    pub fn version(&self) -> u64 {
        self.read().rows.version
    }

    /// The texts among these that have a vector, in memory or not.
    pub fn having<'a>(&self, texts: impl Iterator<Item = &'a Digest>) -> Vec<&'a Digest> {
        let store = self.read();
        texts.filter(|digest| store.has(digest)).collect()
    }

    /// Notes that the vectors of these texts are in a database, which can be read again.
    pub fn know(&self, digests: impl Iterator<Item = Digest>) {
        let mut store = self.write();
        for digest in digests {
            if !store.places.contains_key(&digest) {
                store.known.insert(digest);
            }
        }
    }

    /// Notes that the vectors of these texts are not in a database after all. Those in memory stay.
    pub fn lost(&self, digests: impl Iterator<Item = Digest>) {
        let mut store = self.write();
        for digest in digests {
            store.known.remove(&digest);
        }
    }

    /// The texts whose vectors are in a database alone, each once.
    pub fn absent<'a>(&self, texts: impl Iterator<Item = &'a Digest>) -> Vec<&'a Digest> {
        let (store, mut seen) = (self.read(), FxHashSet::default());
        let absent = texts.filter(|digest| store.known.contains(*digest));
        absent.filter(|digest| seen.insert(*digest)).collect()
    }

    /// If the vectors in memory take more bytes than this, only knows of those that were neither
    /// put nor mapped since the last time. All of them are in a database. Returns how many vectors
    /// stay in memory.
    pub fn forget(&self, bytes: usize) -> usize {
        let mut store = self.write();
        if store.places.len() * store.rows.size * size_of::<f32>() > bytes {
            let Store { places, free, used, known, .. } = &mut *store;
            places.retain(|digest, row| {
                let stays = std::mem::take(used[*row as usize].get_mut());
                if !stays {
                    free.push(*row);
                    known.insert(*digest);
                }
                stays
            });
            store.changed();
        }
        store.places.len()
    }

    /// The texts that have no vector, in memory or not, each once, with the first value beside it.
    pub fn missing<'a, T>(
        &self,
        texts: impl Iterator<Item = (&'a Digest, T)>,
    ) -> Vec<(&'a Digest, T)> {
        let (store, mut seen) = (self.read(), FxHashSet::default());
        let missing = texts.filter(|(digest, _)| !store.has(digest));
        missing.filter(|(digest, _)| seen.insert(*digest)).collect()
    }

    /// Compares the vectors with all texts that there are. Returns those without one, as
    /// [`Vectors::missing`] does.
    ///
    /// Vectors of other texts are removed, unless some have come since the version: their texts may
    /// be newer than these. Rows become free for other vectors; if most of them are, the rest is
    /// moved together.
    pub fn follow<'a, T>(
        &self,
        version: u64,
        texts: impl Iterator<Item = (&'a Digest, T)>,
    ) -> Vec<(&'a Digest, T)> {
        let store = self.read();
        let mut wanted = vec![false; store.used.len()];
        let mut unknown = store.known.clone();
        let (mut seen, mut missing) = (FxHashSet::default(), Vec::new());
        for (digest, value) in texts {
            match store.places.get(digest) {
                Some(row) => wanted[*row as usize] = true,
                None if store.known.contains(digest) => _ = unknown.remove(digest),
                None if seen.insert(digest) => missing.push((digest, value)),
                None => {}
            }
        }
        let rows = wanted.iter().filter(|wanted| **wanted).count();
        let others = store.places.len() - rows + unknown.len();
        drop(store);
        if others > 0 {
            self.retain(version, &wanted, &unknown);
        }
        missing
    }

    /// Removes the vectors of other rows than these and those of unknown texts, if they are those
    /// of this version.
    fn retain(&self, version: u64, wanted: &[bool], unknown: &FxHashSet<Digest>) {
        let mut store = self.write();
        if store.rows.version != version {
            return;
        }
        let Store { places, free, known, .. } = &mut *store;
        places.retain(|_, row| {
            let stays = wanted[*row as usize];
            if !stays {
                free.push(*row);
            }
            stays
        });
        known.retain(|digest| !unknown.contains(digest));
        store.changed();
    }

    /// Adds vectors, or returns the first size that differs and adds none. The vector of a known
    /// digest stays: it belongs to the same text and the same model.
    pub fn put(&self, vectors: &[(Digest, &[f32])]) -> Result<(), WrongSize> {
        let mut store = self.write();
        let Some((_, first)) = vectors.first() else { return Ok(()) };
        let expected = if store.rows.size == 0 { first.len() } else { store.rows.size };
        let wrong = vectors.iter().map(|(_, vector)| vector.len()).find(|size| *size != expected);
        if let Some(got) = wrong {
            return Err(WrongSize { expected, got });
        }
        store.rows.size = expected;
        for (digest, vector) in vectors {
            store.put(*digest, vector);
        }
        store.rows.version = next_version();
        Ok(())
    }

    /// Removes all vectors. The next one may have another size.
    pub fn clear(&self) {
        *self.write() =
            Store { rows: Rows { version: next_version(), ..Rows::default() }, ..Store::default() };
    }

    /// The rows of these texts, as they are now. Texts without a vector are left out.
    pub fn map<'a>(&self, digests: impl Iterator<Item = (u32, &'a Digest)>) -> Mapped {
        let store = self.read();
        let row = |(at, digest)| {
            let row = *store.places.get(digest)?;
            store.used[row as usize].store(true, Ordering::Relaxed);
            Some((row, at))
        };
        let mut places: Vec<(u32, u32)> = digests.filter_map(row).collect();
        places.sort_unstable();
        Mapped { rows: store.rows.clone(), places }
    }

    // Every change leaves the store consistent after each vector, so one that a panic interrupted
    // can be used.
    fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Store {
    fn has(&self, digest: &Digest) -> bool {
        self.places.contains_key(digest) || self.known.contains(digest)
    }

    fn put(&mut self, digest: Digest, vector: &[f32]) {
        if self.places.contains_key(&digest) {
            return;
        }
        self.known.remove(&digest);
        let row = self.free.pop().unwrap_or(self.used.len() as u32);
        match self.used.get_mut(row as usize) {
            Some(used) => *used.get_mut() = true,
            None => self.used.push(true.into()),
        }
        let (block, range) = self.rows.place(row);
        if block == self.rows.blocks.len() {
            self.rows.blocks.push(vec![0.0; self.rows.in_block() * self.rows.size].into());
        }
        Arc::make_mut(&mut self.rows.blocks[block])[range].copy_from_slice(vector);
        self.places.insert(digest, row);
    }

    /// After vectors were removed.
    fn changed(&mut self) {
        if self.free.len() > self.places.len() {
            self.compact();
        }
        self.rows.version = next_version();
    }

    fn compact(&mut self) {
        let used = std::mem::take(&mut self.used);
        let mut places: Vec<_> = std::mem::take(&mut self.places)
            .into_iter()
            .map(|(digest, row)| (row, digest))
            .collect();
        places.sort_unstable();
        let rows = std::mem::take(&mut self.rows);
        self.rows.size = rows.size;
        self.free = Vec::new();
        for (row, digest) in places {
            self.put(digest, rows.row(row));
            if let (Some(now), Some(before)) = (self.used.last_mut(), used.get(row as usize)) {
                *now = before.load(Ordering::Relaxed).into();
            }
        }
    }
}

impl Rows {
    fn in_block(&self) -> usize {
        (BLOCK_BYTES / size_of::<f32>() / self.size.max(1)).max(1)
    }

    /// The block of a row, and its numbers in it.
    fn place(&self, row: u32) -> (usize, std::ops::Range<usize>) {
        let row = row as usize;
        let start = row % self.in_block() * self.size;
        (row / self.in_block(), start..start + self.size)
    }

    fn row(&self, row: u32) -> &[f32] {
        let (block, range) = self.place(row);
        &self.blocks[block][range]
    }
}

impl Mapped {
    /// The version of the store whose rows these are.
    pub fn version(&self) -> u64 {
        self.rows.version
    }

    /// The positions of the texts that have a vector, in no particular order.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().map(|(_, at)| *at)
    }

    /// The vectors of the texts that have one, with their positions, in no particular order.
    pub fn vectors(&self) -> impl Iterator<Item = (u32, &[f32])> + '_ {
        self.places.iter().map(|(row, at)| (*at, self.rows.row(*row)))
    }

    /// Calls `each` with the position of each wanted text and its similarity to a vector of unit
    /// length, from -1 to 1. Does nothing if the vector has another size.
    pub fn similarities(
        &self,
        vector: &[f32],
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, f32),
    ) {
        if vector.len() != self.rows.size {
            return;
        }
        // The same text may have several positions.
        let mut last = None;
        for (row, at) in self.places.iter().filter(|(_, at)| wanted(*at)) {
            let similarity = match last {
                Some((same, similarity)) if same == *row => similarity,
                _ => dot(vector, self.rows.row(*row)),
            };
            last = Some((*row, similarity));
            each(*at, similarity);
        }
    }
}

/// The dot product. Each lane adds up its own products, so the compiler may use vector registers,
/// and the sum is the same on all processors.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let (others, other_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (chunk, other) in chunks.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += chunk[lane] * other[lane];
        }
    }
    let rest: f32 = rest.iter().zip(other_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
