//! What became known and unknown since the last run was written.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a slot in a [`FingerprintSet`]: the key and a byte of control.
pub(super) const SLOT_BYTES: usize = 9;
/// A table that outgrows so many keys takes its final size at once: moving few keys is a short pause, and a small crawl stays
/// small.
const KEYS_SMALL: usize = 1 << 16;

/// The newest level of the set, in memory: keys added, and keys deleted from all older levels.
#[derive(Default)]
pub(super) struct Layer {
    pub added: FingerprintSet,
    pub deleted: FingerprintSet,
}

impl Layer {
    /// An empty layer that becomes a run at `keys_max` keys.
    pub fn with_room_for(keys_max: usize) -> Layer {
        Layer { added: FingerprintSet::with_capacity_and_hasher(room(keys_max), <_>::default()), ..Layer::default() }
    }

    /// The layer without its keys, but with their room.
    pub fn cleared(mut self) -> Layer {
        self.added.clear();
        self.deleted.clear();
        self
    }

    /// Adds a key. The layer becomes a run at `keys_max` keys.
    pub fn add(&mut self, key: u64, keys_max: usize) {
        let n = self.added.len();
        if n == self.added.capacity() && (KEYS_SMALL..keys_max).contains(&n) {
            self.added.reserve(room(keys_max) - n);
        }
        self.added.insert(key);
    }

    /// Keys of both kinds.
    pub fn len(&self) -> usize {
        self.added.len() + self.deleted.len()
    }

    /// What this layer knows of a key, if anything.
    pub fn says(&self, key: u64) -> Option<bool> {
        if self.added.contains(&key) {
            Some(true)
        } else if !self.deleted.is_empty() && self.deleted.contains(&key) {
            Some(false)
        } else {
            None
        }
    }
}

/// A full layer may have to wait for the one before it to become a run. What comes meanwhile should not make it move.
fn room(keys_max: usize) -> usize {
    keys_max / 6 * 7
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
