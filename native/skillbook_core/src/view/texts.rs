//! The texts of entries in memory that an embedding model reads, whoever may see them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cached::CachedCatalog;
use crate::catalog::block::{Block, Opener};
use crate::search::embedded::{digest, text, wanted, wanted_digest};
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
        let base = self.base.entries().iter().filter(|entry| wanted(entry));
        base.map(|entry| digest(entry)).chain(self.blocks.iter().flat_map(|block| self.of(block)))
    }

    /// The texts of these digests, each once, with what is given for it.
    pub fn read<T>(&self, mut wanted: FxHashMap<Digest, T>) -> Vec<(T, String)> {
        let mut found = Vec::with_capacity(wanted.len());
        let base = self.base.entries().iter();
        for entry in base {
            let own = wanted_digest(entry).and_then(|digest| wanted.remove(&digest));
            found.extend(own.map(|given| (given, text(entry))));
        }
        for block in &self.blocks {
            if wanted.is_empty() {
                break;
            }
            if !self.of(block).iter().any(|digest| wanted.contains_key(digest)) {
                continue;
            }
            for entry in block.open(&self.opener).entries() {
                let own = wanted_digest(entry).and_then(|digest| wanted.remove(&digest));
                found.extend(own.map(|given| (given, text(entry))));
            }
        }
        found
    }

    fn of<'a>(&'a self, block: &'a Block) -> &'a [Digest] {
        block.digests(&self.opener, wanted_digest)
    }
}
