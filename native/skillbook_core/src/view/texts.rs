//! The texts of entries in memory that an embedding model reads, whoever may see them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cached::CachedCatalog;
use crate::catalog::block::{Block, Opener};
use crate::catalog::entry::Entry;
use crate::search::embedded::{text, wanted_digest};
use crate::search::vectors::Digest;

/// Entries of files and code, and records. Those of a record that nobody reads stay packed.
#[derive(Debug)]
pub struct Texts {
    pub(super) base: Arc<CachedCatalog>,
    pub(super) blocks: Vec<Arc<Block>>,
    pub(super) opener: Opener,
}

impl Texts {
    /// The digests of all texts. Some may be there several times.
    pub fn digests(&self) -> impl Iterator<Item = &Digest> {
        let blocks = self.blocks.iter().flat_map(|block| self.of(block));
        self.base.texts().map(|(digest, _)| digest).chain(blocks)
    }

    /// The texts of these digests, each once, with what is given for it.
    pub fn read<T>(&self, mut wanted: FxHashMap<Digest, T>) -> Vec<(T, String)> {
        let mut found = Vec::with_capacity(wanted.len());
        let base = self.base.entries().iter();
        base.for_each(|entry| take(entry, &mut wanted, &mut found));
        for block in &self.blocks {
            if self.of(block).iter().any(|digest| wanted.contains_key(digest)) {
                let opened = block.open(&self.opener);
                opened.entries().for_each(|entry| take(entry, &mut wanted, &mut found));
            }
        }
        found
    }

    fn of<'a>(&'a self, block: &'a Block) -> &'a [Digest] {
        block.digests(&self.opener, |entry| wanted_digest(entry).copied())
    }
}

fn take<T>(entry: &Entry, wanted: &mut FxHashMap<Digest, T>, found: &mut Vec<(T, String)>) {
    let given = wanted_digest(entry).and_then(|digest| wanted.remove(digest));
    found.extend(given.map(|given| (given, text(entry))));
}
