//! The Bloom filter as Bloom drew it, and the one in front of the exact URL-seen test, which costs one cache miss instead of
//! one per probe (SPEC S1).

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

/// A Bloom filter all of whose probes for a key lie in one cache line (Putze, Sanders and Singler 2007).
///
/// A line is a small Bloom filter of 512 bits, and the key chooses the line. Some lines get more keys than others, so the
/// error is that of a plain filter averaged over the Poisson distribution of keys in a line: at 6.4 bits a key
/// and four probes 5.2 % instead of 4.7 %, for a quarter of the time.
#[derive(Clone, Debug)]
pub struct BlockedBloom {
    lines: Vec<Line>,
    probes: u32,
    keys: u64,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; 8]);

const LINE_BYTES: usize = 64;
const LINE_BITS: f64 = 512.0;
/// As many places in a line as one hash has bits for.
const PROBES_MAX: u32 = 7;

impl BlockedBloom {
    /// A filter of `bytes` bytes, with the number of probes that is best at `capacity` keys.
    pub fn new(bytes: usize, capacity: u64) -> BlockedBloom {
        let lines = (bytes / LINE_BYTES).max(1);
        let probes = best_probes(lines, capacity);
        BlockedBloom { lines: vec![Line([0; 8]); lines], probes, keys: 0 }
    }

    /// Bytes of a filter whose error rate is `error` at `keys` keys.
    pub fn bytes_for(keys: u64, error: f64) -> usize {
        let mut lines = (keys.max(1) as f64 * error.ln() / 0.6185f64.ln() / LINE_BITS).ceil();
        while blocked_error(keys, lines as usize, best_probes(lines as usize, keys)) > error {
            lines = (lines * 1.02).ceil();
        }
        lines as usize * LINE_BYTES
    }

    /// Adds a key if the filter denies it; false if it may have been there already.
    pub fn insert(&mut self, key: u64) -> bool {
        let at = reduce(key, self.lines.len() as u64) as usize;
        let line = &mut self.lines[at].0;
        let new = set(line, key, self.probes);
        self.keys += u64::from(new);
        new
    }

    /// Adds a key that is not in the set, whatever the filter says of it.
    pub fn add(&mut self, key: u64) {
        let before = self.keys;
        self.insert(key);
        self.keys = before + 1;
    }

    /// Whether the key may be in the set. "No" is certain.
    pub fn may_contain(&self, key: u64) -> bool {
        let line = &self.lines[reduce(key, self.lines.len() as u64) as usize].0;
        let mut places = step(key) >> 1;
        (0..self.probes).all(|_| {
            let place = places as usize;
            places >>= 9;
            line[place / 64 % 8] >> (place % 64) & 1 == 1
        })
    }

    /// Fetches what a question about the key will need. Asked for several keys in a row, the waits for memory overlap.
    pub fn touch(&self, key: u64) -> u64 {
        self.lines[reduce(key, self.lines.len() as u64) as usize].0[0]
    }

    /// Keys in it.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// The error rate that follows from the keys in it now.
    pub fn expected_error(&self) -> f64 {
        blocked_error(self.keys, self.lines.len(), self.probes)
    }

    /// The least error rate that a filter of this size with fewer probes has at so many keys.
    pub fn best_error_with_fewer(&self, keys: u64) -> f64 {
        (1..self.probes).map(|k| blocked_error(keys, self.lines.len(), k)).fold(1.0, f64::min)
    }

    /// The error rate this filter has at so many keys.
    pub fn error_at(&self, keys: u64) -> f64 {
        blocked_error(keys, self.lines.len(), self.probes)
    }
}

fn set(line: &mut [u64; 8], key: u64, probes: u32) -> bool {
    let mut places = step(key) >> 1;
    let mut missing = 0;
    for _ in 0..probes {
        let place = places as usize;
        places >>= 9;
        let mask = 1u64 << (place % 64);
        let word = &mut line[place / 64 % 8];
        missing |= !*word & mask;
        *word |= mask;
    }
    missing != 0
}

fn best_probes(lines: usize, keys: u64) -> u32 {
    let error = |k: &u32| blocked_error(keys, lines, *k);
    (1..=PROBES_MAX).min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(1)
}

/// Σ Poisson(i; keys per line) · (1 − (1 − 1/512)^(k·i))^k.
fn blocked_error(keys: u64, lines: usize, probes: u32) -> f64 {
    let mean = keys as f64 / lines.max(1) as f64;
    let k = f64::from(probes);
    if mean > 8.0 * LINE_BITS {
        return 1.0;
    }
    // Far from the mean nothing adds up to a thousandth of the whole; there the terms are left out.
    let reach = 8.0 * mean.sqrt() + 8.0;
    let (from, to) = ((mean - reach).max(0.0) as u64, (mean + reach) as u64);
    let mut log_factorial = (1..=from).map(|i| (i as f64).ln()).sum::<f64>();
    let mut error = 0.0;
    for i in from..=to {
        if i > from {
            log_factorial += (i as f64).ln();
        }
        let chance = if mean > 0.0 { (i as f64 * mean.ln() - mean - log_factorial).exp() } else { f64::from(i == 0) };
        let empty = (1.0 - 1.0 / LINE_BITS).powf(k * i as f64);
        error += chance * (1.0 - empty).powf(k);
    }
    error.min(1.0)
}

/// Maps a hash onto 0..n without a division (Lemire 2016).
pub(super) fn reduce(h: u64, n: u64) -> u64 {
    ((u128::from(h) * u128::from(n)) >> 64) as u64
}

/// The second hash: the key mixed once more (the finaliser of splitmix64), never zero.
pub(super) fn step(key: u64) -> u64 {
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

    /// The same for the blocked filter and its own formula, also when it holds more or less than it was made for.
    #[test]
    fn error_rate_of_blocks_is_the_formulas() {
        for (bytes, capacity, n) in [
            (BlockedBloom::bytes_for(50_000, 0.1), 50_000, 50_000),
            (BlockedBloom::bytes_for(50_000, 0.01), 50_000, 50_000),
            (100_000, 100_000, 200_000),
            (400_000, 400_000, 150_000),
        ] {
            let mut bloom = BlockedBloom::new(bytes, capacity);
            keys(0, n).for_each(|k| bloom.add(k));
            assert_eq!((bloom.len(), keys(0, n).all(|k| bloom.may_contain(k))), (n, true));
            let tests = 1_000_000;
            let wrong = keys(1 << 40, tests).filter(|&k| bloom.may_contain(k)).count() as f64;
            let measured = wrong / tests as f64;
            let expected = bloom.expected_error();
            assert!((measured / expected - 1.0).abs() < 0.08, "measured {measured}, formula {expected}");
            let denied = keys(1 << 41, 1_000).filter(|&k| !bloom.may_contain(k) && !bloom.insert(k)).count();
            assert_eq!(denied, 0, "what is denied is new");
        }
        assert!(BlockedBloom::bytes_for(50_000, 0.01) < 50_000 * 11 / 8, "{}", BlockedBloom::bytes_for(50_000, 0.01));
    }
}
