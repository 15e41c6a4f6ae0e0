//! Compact sets with a known error: the Bloom filter in front of the exact URL-seen test (SPEC S1).

/// A Bloom filter over keys that are uniform 64-bit fingerprints already.
///
/// With m bits for n keys the best number of probes is k = ln 2 · m/n and the error rate 0.6185^(m/n). The
/// probes of a key are h, h + d, h + 2d, … with both h and d taken from the key (Kirsch and Mitzenmacher
/// 2006: two hashes serve as well as k).
#[derive(Clone, Debug)]
pub struct Bloom {
    words: Vec<u64>,
    probes: u32,
    capacity: u64,
    keys: u64,
}

impl Bloom {
    /// A filter of `bytes` bytes, with the number of probes that is best at `capacity` keys.
    pub fn new(bytes: usize, capacity: u64) -> Bloom {
        let words = (bytes / 8).max(1);
        let bits_per_key = (words * 64) as f64 / capacity.max(1) as f64;
        let probes = (std::f64::consts::LN_2 * bits_per_key).round().clamp(1.0, 16.0) as u32;
        Bloom { words: vec![0; words], probes, capacity, keys: 0 }
    }

    /// A filter with error rate `error` when it holds `capacity` keys.
    pub fn with_error(capacity: u64, error: f64) -> Bloom {
        let bits = capacity.max(1) as f64 * error.ln() / 0.6185f64.ln();
        Bloom::new((bits / 8.0).ceil() as usize, capacity)
    }

    /// Adds a key; false if it may have been there already.
    pub fn insert(&mut self, key: u64) -> bool {
        let mut new = false;
        let bits = self.words.len() as u64 * 64;
        let (mut h, d) = (key, step(key));
        for _ in 0..self.probes {
            let bit = reduce(h, bits);
            let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
            new |= self.words[word] & mask == 0;
            self.words[word] |= mask;
            h = h.wrapping_add(d);
        }
        self.keys += u64::from(new);
        new
    }

    /// Whether the key may be in the set. "No" is certain.
    pub fn may_contain(&self, key: u64) -> bool {
        let bits = self.words.len() as u64 * 64;
        let (mut h, d) = (key, step(key));
        (0..self.probes).all(|_| {
            let bit = reduce(h, bits);
            h = h.wrapping_add(d);
            self.words[(bit / 64) as usize] & (1 << (bit % 64)) != 0
        })
    }

    /// Keys added that were new to the filter.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Keys it was made for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// The error rate the formula gives for the keys in it now: (1 − e^(−kn/m))^k.
    pub fn expected_error(&self) -> f64 {
        let k = f64::from(self.probes);
        let load = k * self.keys as f64 / (self.words.len() * 64) as f64;
        (1.0 - (-load).exp()).powf(k)
    }
}

/// Maps a hash onto 0..n without a division (Lemire 2016).
fn reduce(h: u64, n: u64) -> u64 {
    ((u128::from(h) * u128::from(n)) >> 64) as u64
}

/// The second hash: the key mixed once more (the finaliser of splitmix64), never zero.
fn step(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: u64, n: u64) -> impl Iterator<Item = u64> {
        (from..from + n).map(|i| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes()))
    }

    /// SPEC S1: no key is forgotten, and the measured error rate is the formula's.
    #[test]
    fn error_rate_is_the_formulas() {
        for (error, n) in [(0.1, 50_000), (0.01, 50_000), (0.001, 50_000)] {
            let mut bloom = Bloom::with_error(n, error);
            keys(0, n).for_each(|k| {
                bloom.insert(k);
            });
            assert!(keys(0, n).all(|k| bloom.may_contain(k)));
            let tests = 400_000;
            let wrong = keys(1 << 40, tests).filter(|&k| bloom.may_contain(k)).count() as f64;
            let measured = wrong / tests as f64;
            let expected = bloom.expected_error();
            assert!((measured / expected - 1.0).abs() < 0.15, "measured {measured}, formula {expected}");
            assert!((measured / error - 1.0).abs() < 0.25, "measured {measured}, asked for {error}");
        }
    }
}
