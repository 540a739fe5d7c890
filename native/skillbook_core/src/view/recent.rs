//! A cache of what was used recently.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by their keys, at most so many and of so many bytes.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    values: FxHashMap<K, Used<V>>,
    /// Rises with each use.
    now: u64,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Used<V> {
    value: V,
    bytes: usize,
    at: u64,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub fn new(most: usize, most_bytes: usize) -> Recent<K, V> {
        Recent { values: FxHashMap::default(), now: 0, bytes: 0, most, most_bytes }
    }

    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.now += 1;
        let used = self.values.get_mut(key)?;
        used.at = self.now;
        Some(&used.value)
    }

    /// Puts a value of a size in bytes. If there is no room, the quarter that was used least
    /// recently goes, so that the search for it is rare.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        self.now += 1;
        let used = Used { value, bytes, at: self.now };
        self.bytes += bytes;
        if let Some(before) = self.values.insert(key, used) {
            self.bytes -= before.bytes;
        }
        while self.values.len() > self.most || self.bytes > self.most_bytes && self.values.len() > 1
        {
            self.forget();
        }
    }

    /// Keeps the values that pass.
    pub fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        self.values.retain(|_, used| keep(&used.value));
        self.bytes = self.values.values().map(|used| used.bytes).sum();
    }

    fn forget(&mut self) {
        let mut times: Vec<u64> = self.values.values().map(|used| used.at).collect();
        let (_, limit, _) = times.select_nth_unstable((self.values.len() - 1) / 4);
        let limit = *limit;
        self.values.retain(|_, used| used.at > limit);
        self.bytes = self.values.values().map(|used| used.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn keeps_what_was_used_last() {
        let mut recent = Recent::new(4, 1000);
        (0..4).for_each(|n| recent.put(n, n * 10, 1));
        assert_eq!(recent.get(&0), Some(&0));
        recent.put(4, 40, 1);
        // Of five, the two used least recently are gone.
        let left = [0, 1, 2, 3, 4].map(|n| recent.get(&n).is_some());
        assert_eq!(left, [true, false, false, true, true]);
    }

    #[test]
    fn counts_bytes_and_keeps_the_newest() {
        let mut recent = Recent::new(100, 10);
        recent.put("a", (), 6);
        recent.put("a", (), 4);
        recent.put("b", (), 6);
        assert!(recent.get(&"a").is_some() && recent.get(&"b").is_some());
        recent.put("c", (), 6);
        assert!(recent.get(&"a").is_none() && recent.get(&"c").is_some());
        recent.put("large", (), 1000);
        assert!(recent.get(&"large").is_some() && recent.get(&"c").is_none());
    }
}
