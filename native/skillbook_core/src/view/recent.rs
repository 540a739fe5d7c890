//! A cache of what was used recently.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by their keys, at most so many and of so many bytes.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    values: FxHashMap<K, Used<V>>,
    /// Rises with each use.
    now: u64,
    /// See [`Recent::rest`].
    rested: u64,
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
        Recent { values: FxHashMap::default(), now: 0, rested: 0, bytes: 0, most, most_bytes }
    }

    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.now += 1;
        let used = self.values.get_mut(key)?;
        used.at = self.now;
        Some(&used.value)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.values.keys()
    }

    /// Puts a value of a size in bytes. If there is no room, the quarter that was used least
    /// recently goes, so that the search for it is rare. Values that go are returned: their memory
    /// may take a while to free, and others wait for the lock around this.
    pub fn put(&mut self, key: K, value: V, bytes: usize) -> Vec<V> {
        self.now += 1;
        let used = Used { value, bytes, at: self.now };
        self.bytes += bytes;
        let mut gone = Vec::new();
        if let Some(before) = self.values.insert(key, used) {
            self.bytes -= before.bytes;
            gone.push(before.value);
        }
        while self.values.len() > self.most || self.bytes > self.most_bytes && self.values.len() > 1
        {
            gone.extend(self.forget());
        }
        gone
    }

    /// Takes out the values that do not pass.
    pub fn retain(&mut self, keep: impl Fn(&V) -> bool) -> Vec<V> {
        self.take(|used| !keep(&used.value))
    }

    /// Takes out the values that were not used since this was called last.
    pub fn rest(&mut self) -> Vec<V> {
        let since = std::mem::replace(&mut self.rested, self.now);
        self.take(|used| used.at <= since)
    }

    /// Takes out the quarter that was used least recently.
    pub fn forget(&mut self) -> Vec<V> {
        let mut times: Vec<u64> = self.values.values().map(|used| used.at).collect();
        if times.is_empty() {
            return Vec::new();
        }
        let (_, limit, _) = times.select_nth_unstable((self.values.len() - 1) / 4);
        let limit = *limit;
        self.take(|used| used.at <= limit)
    }

    fn take(&mut self, goes: impl Fn(&Used<V>) -> bool) -> Vec<V> {
        let gone: Vec<_> = self.values.extract_if(|_, used| goes(used)).collect();
        self.bytes -= gone.iter().map(|(_, used)| used.bytes).sum::<usize>();
        gone.into_iter().map(|(_, used)| used.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn keeps_what_was_used_last() {
        let mut recent = Recent::new(4, 1000);
        (0..4).for_each(|n| assert!(recent.put(n, n * 10, 1).is_empty()));
        assert_eq!(recent.get(&0), Some(&0));
        assert_eq!(recent.put(4, 40, 1).len(), 2);
        // Of five, the two used least recently are gone.
        let left = [0, 1, 2, 3, 4].map(|n| recent.get(&n).is_some());
        assert_eq!(left, [true, false, false, true, true]);
    }

    #[test]
    fn lets_go_of_what_was_not_used_between_two_rests() {
        let mut recent = Recent::new(4, 1000);
        recent.put("a", 1, 1);
        recent.put("b", 2, 1);
        assert!(recent.rest().is_empty());
        recent.get(&"a");
        assert_eq!((recent.rest(), recent.rest(), recent.len()), (vec![2], vec![1], 0));
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
