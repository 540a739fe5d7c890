//! A model: tokens and transformer together, over several threads.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

use tokenizers::{
    PostProcessor, Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy,
};

use crate::config::Config;
use crate::encoder::{prefix, Encoder};
use crate::error::Error;
use crate::folder::Folder;
use crate::weights::{self, Weights};

const TOKENIZER: &str = "tokenizer.json";
/// Bytes. Those of models for a hundred languages have 17 MB.
const MAX_TOKENIZER: u64 = 128 << 20;
/// Tokens that are calculated together: enough for the speed of large matrices, and their rows
/// still fit into a processor's cache.
const BATCH: usize = 256;
/// Bytes of a text for each token of the model. A longer text is cut there before its tokens are
/// found, which takes time for all of it.
const BYTES_PER_TOKEN: usize = 64;

pub struct Model {
    tokenizer: Tokenizer,
    encoder: Encoder,
    max_tokens: usize,
    lower_case: bool,
    /// Changes with every file that the vectors depend on.
    pub fingerprint: u64,
}

/// Why there are no vectors.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The time limit was reached.
    Timeout,
    Failed(String),
}

impl Model {
    pub fn open(path: &str) -> Result<Model, Error> {
        let folder = Folder::new(path);
        let config = Config::read(&folder)?;
        let json = folder.require(TOKENIZER, MAX_TOKENIZER)?;
        let tokenizer = tokenizer(&json, config.max_tokens)?;
        let bytes = folder.require(weights::FILE, weights::MAX_BYTES)?;
        let encoder = Encoder::new(&config, &Weights::new(&bytes, prefix(config.family))?)?;
        let settings = format!("{config:?}");
        Ok(Model {
            tokenizer,
            encoder,
            max_tokens: config.max_tokens,
            lower_case: config.lower_case,
            fingerprint: fingerprint(&[settings.as_bytes(), &json, &bytes]),
        })
    }

    pub fn size(&self) -> usize {
        self.encoder.size()
    }

    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// A vector for each text, with up to `threads` threads, this one included.
    pub fn embed(
        &self,
        texts: &[&str],
        threads: usize,
        deadline: Instant,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let tokens = self.in_threads(texts.len(), 16, threads, deadline, |range| {
            texts[range].iter().map(|text| self.tokens(text)).collect()
        })?;

        // Texts of one length come one after the other, so that all batches take equally long.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(tokens[*index].len()));
        let mut batches: Vec<&[usize]> = Vec::new();
        let mut rest = &order[..];
        while !rest.is_empty() {
            let mut sum = 0;
            let fitting = rest.iter().take_while(|index| {
                sum += tokens[**index].len();
                sum <= BATCH
            });
            let (batch, others) = rest.split_at(fitting.count().max(1));
            batches.push(batch);
            rest = others;
        }
        let encoded = self.in_threads(batches.len(), 1, threads, deadline, |range| {
            batches[range]
                .iter()
                .map(|batch| {
                    let texts: Vec<_> = batch.iter().map(|index| &tokens[*index][..]).collect();
                    Ok(self.encoder.encode(&texts))
                })
                .collect()
        })?;

        let mut vectors = vec![Vec::new(); texts.len()];
        for (index, vector) in order.iter().zip(encoded.into_iter().flatten()) {
            vectors[*index] = vector;
        }
        Ok(vectors)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let mut end = text.len().min(self.max_tokens * BYTES_PER_TOKEN);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        let lower = if self.lower_case { Some(text.to_lowercase()) } else { None };
        let encoding = self
            .tokenizer
            .encode_fast(lower.as_deref().unwrap_or(text), true)
            .map_err(|error| Failure::Failed(format!("{TOKENIZER}: {error}")))?;
        let mut tokens = encoding.get_ids().to_vec();
        tokens.truncate(self.max_tokens);
        let known = self.encoder.vocabulary();
        match tokens.iter().find(|token| **token as usize >= known) {
            Some(token) => Err(Failure::Failed(format!(
                "{TOKENIZER}: expected tokens below {known}, the size of the model's vocabulary, \
                 got {token}"
            ))),
            None if tokens.is_empty() => Err(Failure::Failed(format!(
                "{TOKENIZER}: expected at least one token for a text, got none for {text:?}"
            ))),
            None => Ok(tokens),
        }
    }

    /// The results of `work` for `count` items, in their order. Threads take `step` of them at a
    /// time, until the first failure or the deadline.
    fn in_threads<T: Send>(
        &self,
        count: usize,
        step: usize,
        threads: usize,
        deadline: Instant,
        work: impl Fn(std::ops::Range<usize>) -> Result<Vec<T>, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new((Vec::new(), None));
        let run = || loop {
            let start = next.fetch_add(step, Ordering::Relaxed);
            if start >= count {
                break;
            }
            let range = start..count.min(start + step);
            // A panic would be a mistake of a library about this file. Other calls may go on.
            let result = if Instant::now() >= deadline {
                Err(Failure::Timeout)
            } else {
                catch_unwind(AssertUnwindSafe(|| work(range)))
                    .unwrap_or_else(|_| Err(Failure::Failed("this model's files panic".into())))
            };
            // Only whole results are added, so those before a panic are right.
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match result {
                Ok(items) => done.0.push((start, items)),
                Err(failure) => {
                    done.1.get_or_insert(failure);
                    // The others stop too.
                    next.store(count, Ordering::Relaxed);
                }
            }
        };
        let helpers = Helpers::take(threads.min(count.div_ceil(step)).saturating_sub(1));
        std::thread::scope(|scope| {
            for _ in 0..helpers.count {
                // Without a further thread this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, run);
            }
            run();
        });
        let (mut parts, failure) =
            done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        match failure {
            Some(failure) => Err(failure),
            None => {
                parts.sort_by_key(|(start, _)| *start);
                Ok(parts.into_iter().flat_map(|(_, items)| items).collect())
            }
        }
    }
}

/// Threads beside those of the virtual machine. All calls together have no more than the machine
/// has cores.
struct Helpers {
    count: usize,
}

static HELPING: AtomicUsize = AtomicUsize::new(0);

impl Helpers {
    fn take(wanted: usize) -> Helpers {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut count = 0;
        let _ = HELPING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |helping| {
            count = wanted.min((cores - 1).saturating_sub(helping));
            Some(helping + count)
        });
        Helpers { count }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPING.fetch_sub(self.count, Ordering::Relaxed);
    }
}

fn tokenizer(json: &[u8], max_tokens: usize) -> Result<Tokenizer, Error> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::expected(TOKENIZER, "a file of the tokenizers library", format!("an error: {error}"))
    };
    let opened = catch_unwind(|| Tokenizer::from_bytes(json));
    let mut tokenizer = match opened {
        Ok(Ok(tokenizer)) => tokenizer,
        Ok(Err(error)) => return Err(failed(&error)),
        Err(_) => return Err(failed(&"it makes the library panic")),
    };
    let added = tokenizer.get_post_processor().map_or(0, |post| post.added_tokens(false));
    if added >= max_tokens {
        let expected = format!("fewer than {max_tokens} tokens around each text");
        return Err(Error::expected(TOKENIZER, &expected, added));
    }
    let truncation = TruncationParams {
        max_length: max_tokens,
        strategy: TruncationStrategy::LongestFirst,
        stride: 0,
        direction: TruncationDirection::Right,
    };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| failed(&error))?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

/// A hash that tells files of models apart (FNV-1a over words of eight bytes). It is stored with
/// vectors, so it must never change.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(PRIME).rotate_left(29);
    for part in parts {
        add(part.len() as u64);
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            add(u64::from_le_bytes(word));
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn a_fingerprint_changes_with_every_byte_but_not_with_releases() {
        assert_eq!(fingerprint(&[b"skillbook", b"model"]), FIXED);
        let others: [&[&[u8]]; 5] = [
            &[b"skillbook", b"Model"],
            &[b"skillbookm", b"odel"],
            &[b"skillbook"],
            &[b"skillbook", b"model", b""],
            &[b"skillbook", b"model\0"],
        ];
        for parts in others {
            assert_ne!(fingerprint(parts), FIXED, "{parts:?}");
        }
    }

    const FIXED: u64 = 17_101_404_697_624_032_602;
}
