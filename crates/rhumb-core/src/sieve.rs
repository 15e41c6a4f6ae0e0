//! The sieve lets each URL through once (SPEC C7).
//!
//! Three questions are asked of an offered fingerprint, cheapest first. Is it among the recent ones?
//! Then it is known. Does the Bloom filter deny it? Then it is new, for certain, and goes through at once.
//! Otherwise the exact set has the last word: the keys added since the last run are in memory, all
//! others in sorted runs on disk, which are asked in batches: the URL waits until [`Sieve::flush`]. So
//! nothing is lost to a false positive, and the cost of a disk look-up is shared by thousands of URLs.
//!
//! URLs come out in the order of their discovery, save that the few false positives come with the flush.
//!
//! Runs are merged when there are [`RUNS_MERGED`] of one size class, so a key is rewritten a logarithmic
//! number of times. Files no longer needed are handed out as garbage, to be removed behind a checkpoint.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::runs::{self, Run, RunWriter};
use rhumb_store::{Result, StoreError};

use crate::sketch::Bloom;
use crate::url::Fingerprint;

/// The directory of the runs.
pub const DIR: &str = "state/sieve";
/// So many runs of one size class are merged into one of the next.
pub const RUNS_MERGED: usize = 4;
const BLOOM_ERROR: f64 = 0.01;
const BLOOM_KEYS_FIRST: u64 = 200_000;

/// Bounds of a sieve's memory.
#[derive(Clone, Debug)]
pub struct SieveConfig {
    /// The Bloom filter grows up to this size.
    pub bloom_bytes_max: usize,
    /// Fingerprints in the recent-URL cache; a power of two.
    pub recent_keys: usize,
    /// So many new keys in memory become a run.
    pub fresh_keys_max: usize,
    /// URLs that wait for the exact test, in bytes.
    pub pending_bytes_max: usize,
}

impl Default for SieveConfig {
    fn default() -> Self {
        SieveConfig {
            bloom_bytes_max: 64 << 20,
            recent_keys: 1 << 16,
            fresh_keys_max: 1 << 20,
            pending_bytes_max: 8 << 20,
        }
    }
}

/// The answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Never seen before: it goes through now.
    New,
    /// Known already.
    Seen,
    /// The next flush will tell.
    Later,
}

/// See the module's header.
pub struct Sieve {
    disk: Arc<dyn Disk>,
    config: SieveConfig,
    recent: Vec<u64>,
    bloom: Bloom,
    fresh: FingerprintSet,
    runs: Vec<Arc<Run>>,
    pending: Vec<Pending>,
    pending_bytes: Vec<u8>,
    next_run: u64,
    keys: u64,
    false_positives: u64,
    garbage: Vec<String>,
}

struct Pending {
    key: u64,
    start: usize,
    end: usize,
}

impl Sieve {
    /// An empty sieve.
    pub fn new(disk: Arc<dyn Disk>, config: SieveConfig) -> Result<Sieve> {
        disk.make_dir(DIR)?;
        let bloom = sized_bloom(BLOOM_KEYS_FIRST, config.bloom_bytes_max);
        Ok(Sieve {
            recent: vec![0; config.recent_keys.next_power_of_two()],
            disk,
            config,
            bloom,
            fresh: FingerprintSet::default(),
            runs: Vec::new(),
            pending: Vec::new(),
            pending_bytes: Vec::new(),
            next_run: 1,
            keys: 0,
            false_positives: 0,
            garbage: Vec::new(),
        })
    }

    /// Offers a URL. `entry` is what [`Sieve::flush`] gives back if the answer is [`Offered::Later`].
    pub fn offer(&mut self, fingerprint: Fingerprint, entry: impl FnOnce(&mut Vec<u8>)) -> Offered {
        let key = fingerprint.0;
        let slot = key as usize & (self.recent.len() - 1);
        // Zero marks an empty slot; the one URL with that fingerprint takes the longer way.
        if self.recent[slot] == key && key != 0 {
            return Offered::Seen;
        }
        self.recent[slot] = key;
        if self.bloom.insert(key) {
            self.add(key);
            return Offered::New;
        }
        if self.fresh.contains(&key) {
            return Offered::Seen;
        }
        if self.runs.is_empty() {
            self.false_positives += 1;
            self.add(key);
            return Offered::New;
        }
        let start = self.pending_bytes.len();
        entry(&mut self.pending_bytes);
        self.pending.push(Pending { key, start, end: self.pending_bytes.len() });
        Offered::Later
    }

    fn add(&mut self, key: u64) {
        self.fresh.insert(key);
        self.keys += 1;
    }

    /// Whether URLs wait for the exact test.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether a bound was reached and [`Sieve::flush`] is due.
    pub fn needs_flush(&self) -> bool {
        self.pending_bytes.len() >= self.config.pending_bytes_max
            || self.fresh.len() >= self.config.fresh_keys_max
            || (self.bloom.len() > self.bloom.capacity() && self.bloom.bytes() * 2 <= self.config.bloom_bytes_max)
    }

    /// Tests what waits against the runs and passes on what is new, in the order of discovery. Then brings
    /// memory back into its bounds.
    pub fn flush(&mut self, mut through: impl FnMut(Fingerprint, &[u8]) -> Result<()>) -> Result<()> {
        if !self.pending.is_empty() {
            let mut sorted: Vec<u64> = self.pending.iter().map(|p| p.key).collect();
            sorted.sort_unstable();
            sorted.dedup();
            let mut known = FingerprintSet::default();
            for run in &self.runs {
                run.find_sorted(&sorted, |i| {
                    known.insert(sorted[i]);
                })?;
            }
            let pending = std::mem::take(&mut self.pending);
            let bytes = std::mem::take(&mut self.pending_bytes);
            for p in &pending {
                // `fresh` catches the second of two equal URLs in one batch.
                if !known.contains(&p.key) && !self.fresh.contains(&p.key) {
                    self.false_positives += 1;
                    self.add(p.key);
                    through(Fingerprint(p.key), &bytes[p.start..p.end])?;
                }
            }
        }
        if self.fresh.len() >= self.config.fresh_keys_max {
            self.write_run()?;
        }
        if self.needs_flush() {
            self.grow_bloom()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        let keys = sorted_keys(&self.fresh);
        let name = self.new_run_name();
        let mut writer = RunWriter::create(&*self.disk, &name, keys.len() as u64)?;
        keys.iter().try_for_each(|&k| writer.push(k))?;
        writer.finish()?;
        self.runs.push(Arc::new(Run::open(&*self.disk, &name)?));
        self.fresh = FingerprintSet::default();
        self.merge_runs()
    }

    fn merge_runs(&mut self) -> Result<()> {
        let smallest = self.config.fresh_keys_max.max(1) as u64;
        let class = |r: &Run| (r.len() / smallest).max(1).ilog(RUNS_MERGED as u64);
        while self.runs.len() >= RUNS_MERGED {
            let tail = &self.runs[self.runs.len() - RUNS_MERGED..];
            if tail.iter().any(|r| class(r) != class(&tail[0])) {
                break;
            }
            let tail = tail.to_vec();
            let name = self.new_run_name();
            runs::merge(&*self.disk, &tail, &name)?;
            self.runs.truncate(self.runs.len() - RUNS_MERGED);
            self.runs.push(Arc::new(Run::open(&*self.disk, &name)?));
            self.garbage.extend(tail.iter().map(|r| r.name().to_string()));
        }
        Ok(())
    }

    fn new_run_name(&mut self) -> String {
        self.next_run += 1;
        format!("{DIR}/{:08}.run", self.next_run - 1)
    }

    /// Fills a larger filter from the exact set; the doubling makes this cheap per key.
    fn grow_bloom(&mut self) -> Result<()> {
        self.bloom = sized_bloom(self.keys.max(BLOOM_KEYS_FIRST / 4) * 4, self.config.bloom_bytes_max);
        for run in &self.runs {
            let mut scan = run.scan();
            while let Some(key) = scan.next()? {
                self.bloom.insert(key);
            }
        }
        self.fresh.iter().for_each(|&k| {
            self.bloom.insert(k);
        });
        self.pending.iter().for_each(|p| {
            self.bloom.insert(p.key);
        });
        Ok(())
    }

    /// URLs that went through.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether nothing went through yet.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// New URLs that the Bloom filter had taken for known: (count, expected error rate now).
    pub fn false_positives(&self) -> (u64, f64) {
        (self.false_positives, self.bloom.expected_error())
    }

    /// Names of runs merged away, to be removed once a checkpoint without them is durable.
    pub fn take_garbage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.garbage)
    }

    /// Names of the runs in use.
    pub fn run_names(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|r| r.name())
    }

    /// Writes the state into a checkpoint. Nothing may be pending.
    pub fn save(&self, into: &mut Vec<u8>) {
        assert!(self.pending.is_empty(), "a sieve is flushed before its checkpoint");
        into.put_u64(self.next_run);
        into.put_u64(self.keys);
        into.put_u64(self.false_positives);
        into.put_u64(self.runs.len() as u64);
        self.runs.iter().for_each(|r| into.put_str(r.name()));
        let keys = sorted_keys(&self.fresh);
        into.put_u64(keys.len() as u64);
        let mut previous = 0;
        for key in keys {
            into.put_u64(key - previous);
            previous = key;
        }
    }

    /// Reads what [`Sieve::save`] wrote and opens the runs.
    pub fn load(disk: Arc<dyn Disk>, config: SieveConfig, from: &mut Take<'_>) -> Result<Sieve> {
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        let mut sieve = Sieve::new(disk, config)?;
        sieve.next_run = from.u64().map_err(malformed)?;
        sieve.keys = from.u64().map_err(malformed)?;
        sieve.false_positives = from.u64().map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            let name = from.str().map_err(malformed)?;
            sieve.runs.push(Arc::new(Run::open(&*sieve.disk, name)?));
        }
        let mut key = 0u64;
        for _ in 0..from.u64().map_err(malformed)? {
            key = key.wrapping_add(from.u64().map_err(malformed)?);
            sieve.fresh.insert(key);
        }
        sieve.grow_bloom()?;
        Ok(sieve)
    }
}

fn sized_bloom(keys: u64, bytes_max: usize) -> Bloom {
    let wanted = Bloom::with_error(keys, BLOOM_ERROR);
    if wanted.bytes() <= bytes_max { wanted } else { Bloom::new(bytes_max, keys) }
}

fn sorted_keys(set: &FingerprintSet) -> Vec<u64> {
    let mut keys: Vec<u64> = set.iter().copied().collect();
    keys.sort_unstable();
    keys
}

/// A set of values that are uniform hashes already.
pub type FingerprintSet = HashSet<u64, BuildHasherDefault<AsIs>>;

/// Hashes a fingerprint to itself.
#[derive(Clone, Copy, Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |h, &b| h.rotate_left(8) ^ u64::from(b));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rhumb_store::disk::RealDisk;

    fn key(n: u64) -> Fingerprint {
        Fingerprint(xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes()))
    }

    fn tiny() -> SieveConfig {
        SieveConfig { bloom_bytes_max: 64, recent_keys: 4, fresh_keys_max: 30, pending_bytes_max: 200 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// `each_url_once`: against an exact set, with a Bloom filter so small that it is nearly always wrong,
        /// and checkpoints at random moments.
        #[test]
        fn each_url_once(offers in proptest::collection::vec((0u64..600, 0u8..20), 1..1500)) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let mut sieve = Sieve::new(disk.clone(), tiny()).expect("new");
            let mut offered = HashSet::new();
            let mut through = Vec::new();
            for (n, event) in offers {
                offered.insert(n);
                if sieve.offer(key(n), |b| b.put_u64(n)) == Offered::New {
                    through.push(n);
                }
                if sieve.needs_flush() || event == 0 {
                    sieve.flush(|_, e| { through.push(Take::new(e).u64().expect("entry")); Ok(()) }).expect("flush");
                }
                if event == 0 {
                    let mut bytes = Vec::new();
                    sieve.save(&mut bytes);
                    let runs = sieve.run_names().count();
                    sieve = Sieve::load(disk.clone(), tiny(), &mut Take::new(&bytes)).expect("load");
                    prop_assert_eq!(sieve.run_names().count(), runs);
                }
            }
            sieve.flush(|_, e| { through.push(Take::new(e).u64().expect("entry")); Ok(()) }).expect("flush");
            prop_assert_eq!(sieve.len(), through.len() as u64);
            let distinct: HashSet<u64> = through.iter().copied().collect();
            prop_assert_eq!(distinct.len(), through.len(), "no URL passes twice");
            prop_assert_eq!(distinct, offered, "no URL is lost");
        }
    }
}
