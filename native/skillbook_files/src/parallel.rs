//! Divides work among a few threads that end with the call.
//!
//! Scoped threads instead of a pool: a load is rare and lasts milliseconds, and an idle pool would
//! stay for the lifetime of the virtual machine.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of threads, and the number of items from which a second thread pays off.
const MAX_THREADS: usize = 8;
const PARALLEL: usize = 16;

/// Runs `work` for each item and returns the results in the order of the items. Each thread has its
/// own `state`, for buffers.
pub fn parallel<T: Sync, S, R: Send>(
    items: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    // Linux reads three files for this number.
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if items.len() < PARALLEL { 1 } else { available().min(MAX_THREADS) };
    // Threads take items one at a time, so a few large files do not hold up the others.
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
                // Rustler turns it into an Erlang error.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
