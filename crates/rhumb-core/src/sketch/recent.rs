//! A set that remembers the last so many keys within fixed memory.

use super::BlockedBloom;

/// Error rate of one generation when it is full.
const ERROR: f64 = 0.01;

/// Two Bloom filters, one being filled and the one before it. When the first is full it takes the place of the second, so
/// that at least as many keys as one of them holds are remembered, and what keeps coming is never forgotten.
#[derive(Clone, Debug)]
pub struct Recent {
    filling: BlockedBloom,
    before: BlockedBloom,
    keys_max: u64,
}

impl Recent {
    /// A set of about `bytes` bytes.
    pub fn new(bytes: usize) -> Recent {
        let half = (bytes / 2).max(1 << 10);
        // Ten bits a key are an error of about one in a hundred; the formula has the last word.
        let mut keys_max = half as u64 * 8 / 10;
        while keys_max > 16 && BlockedBloom::bytes_for(keys_max, ERROR) > half {
            keys_max = keys_max * 15 / 16;
        }
        let filter = BlockedBloom::new(half, keys_max);
        Recent { filling: filter.clone(), before: filter, keys_max }
    }

    /// Adds a key; false if it was known already, or (rarely) seemed to be.
    pub fn insert(&mut self, key: u64) -> bool {
        let known = self.before.may_contain(key);
        let new = self.filling.insert(key);
        if self.filling.len() >= self.keys_max {
            let empty = BlockedBloom::new(self.filling.bytes(), self.keys_max);
            self.before = std::mem::replace(&mut self.filling, empty);
        }
        new && !known
    }

    /// Whether the key is remembered. "No" is certain for keys that are not too old.
    pub fn contains(&self, key: u64) -> bool {
        self.filling.may_contain(key) || self.before.may_contain(key)
    }

    /// Keys that are surely remembered.
    pub fn keys_max(&self) -> u64 {
        self.keys_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes())
    }

    #[test]
    fn recent_keys_are_known_and_old_ones_forgotten() {
        let mut recent = Recent::new(64 << 10);
        let n = recent.keys_max();
        assert!(n > 20_000, "{n}");
        let mistaken = (0..4 * n).filter(|&i| !recent.insert(key(i))).count();
        assert!((mistaken as f64) < 4.0 * n as f64 * 0.03, "{mistaken} of {} new keys seemed known", 4 * n);
        assert!((3 * n + n / 8..4 * n).all(|i| recent.contains(key(i))));
        let remembered = (0..n).filter(|&i| recent.contains(key(i))).count();
        assert!((remembered as f64) < n as f64 * 0.05, "{remembered} old keys of {n} are still there");
    }

    #[test]
    fn what_keeps_coming_is_never_forgotten() {
        let mut recent = Recent::new(2 << 10);
        recent.insert(key(0));
        for i in 1..100_000 {
            recent.insert(key(i));
            if i % 200 == 0 {
                assert!(!recent.insert(key(0)), "after {i}");
            }
        }
    }
}
