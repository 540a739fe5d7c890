//! A few threads for one job.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most threads, and the fewest items for which a second one is worth its start.
const MAX_THREADS: usize = 8;
const PARALLEL: usize = 16;

/// Does the work for each item on a few threads and gives the results in the order of the items. Each thread has a
/// `state` of its own.
pub fn parallel<T: Sync, S, R: Send>(
    items: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if items.len() < PARALLEL { 1 } else { available.min(MAX_THREADS) };
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match items.get(at) {
                Some(item) => results.push((at, work(&mut state, item))),
                None => return results,
            }
        }
    };
    let mut results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut results = run();
        for other in others {
            match other.join() {
                Ok(part) => results.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
