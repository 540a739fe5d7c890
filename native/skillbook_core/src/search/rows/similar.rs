//! The similarity of documents in the database to a query, from the runs that the caller has read
//! and vectors in memory.

use rustc_hash::FxHashSet;

use super::{digests, ids};
use crate::search::vectors::{Digest, Vectors};

/// The part of a run that a search by meaning reads.
#[derive(Debug, Clone, Copy)]
pub struct RunDigests<'a> {
    /// The packed ids of its documents.
    pub ids: &'a [u8],
    /// The packed ids of the removed ones.
    pub gone: &'a [u8],
    /// The packed digests of their texts.
    pub digests: &'a [u8],
}

impl<'a> RunDigests<'a> {
    /// The documents that are left in the run, with the digests of their texts.
    pub fn documents(&self) -> impl Iterator<Item = (u64, &'a [Digest])> {
        let gone: FxHashSet<u64> = ids(self.gone).collect();
        digests(self.ids, self.digests).filter(move |(id, _)| !gone.contains(id))
    }
}

/// The similarity of each document to a vector of unit length, from -1 to 1, by ascending id: that
/// of its nearest text. Documents of which no text has a vector are left out.
pub fn similar(runs: &[RunDigests], vectors: &Vectors, vector: &[f32]) -> Vec<(u64, f32)> {
    let mut documents: Vec<(u64, &[Digest])> =
        runs.iter().flat_map(RunDigests::documents).collect();
    documents.sort_unstable_by_key(|(id, _)| *id);
    let texts = (0..).zip(&documents).flat_map(|(at, (_, digests))| {
        let digests: &[Digest] = digests;
        digests.iter().map(move |digest| (at, digest))
    });
    let mapped = vectors.map(texts);
    let mut best = vec![f32::NEG_INFINITY; documents.len()];
    let each = |at: u32, similarity: f32| {
        // A vector that is not of unit length, or has no finite numbers, must not decide.
        let similarity = if similarity.is_finite() { similarity.clamp(-1.0, 1.0) } else { 0.0 };
        let best = &mut best[at as usize];
        *best = best.max(similarity);
    };
    mapped.similarities(vector, |_| true, each);
    let ids = documents.iter().map(|(id, _)| *id);
    let mut found: Vec<_> = ids.zip(best).filter(|(_, best)| best.is_finite()).collect();
    found.dedup_by_key(|(id, _)| *id);
    found
}
