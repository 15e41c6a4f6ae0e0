//! How much memory a sieve may take, and what it spends it on.

use super::layer::SLOT_BYTES;

/// Bounds of a sieve's memory.
#[derive(Clone, Debug)]
pub struct SieveConfig {
    /// The Bloom filter, and beside it the smaller one that serves while a larger is made.
    pub filter_bytes_max: usize,
    /// Fingerprints in the recent-URL cache; a power of two.
    pub recent_keys: usize,
    /// So many new keys in memory become a run. While that is written as many again may come in.
    pub fresh_keys_max: usize,
    /// So many URLs are looked up in the runs at once. Only their keys are in memory, and only then.
    pub batch_keys_max: usize,
    /// URLs that wait are written to their files in pieces of this size. Fewer bytes never touch the disk.
    pub buffer_bytes: usize,
}

impl SieveConfig {
    /// Divides `bytes`: nine twentieths for the filter, a seventh for the keys of a batch that is looked up, an eighth for new keys. The
    /// rest, more than a quarter, is for what is large only at times: the index of the runs, a checkpoint's copy of new keys, the keys
    /// that come while a filter is made, marks beside the keys of a batch, and what the allocator has not given back yet.
    pub fn within(bytes: usize) -> SieveConfig {
        // Two tables hold new keys: one that fills and one that is written. A table has a power of two of slots, and moves to a
        // larger one when more than seven in eight are used. Six are, as a rule.
        let slots = previous_power_of_two(bytes / 8 / (2 * SLOT_BYTES));
        SieveConfig {
            filter_bytes_max: bytes / 20 * 9,
            recent_keys: previous_power_of_two(bytes / 64 / 8),
            fresh_keys_max: slots / 8 * 6,
            batch_keys_max: bytes / 7 / 8,
            buffer_bytes: (bytes / 512).clamp(4 << 10, 256 << 10),
        }
    }
}

impl Default for SieveConfig {
    fn default() -> Self {
        SieveConfig::within(128 << 20)
    }
}

fn previous_power_of_two(n: usize) -> usize {
    1 << n.max(8).ilog2()
}
