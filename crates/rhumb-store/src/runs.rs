//! Sorted runs: immutable files of ascending 64-bit keys, the exact half of the URL-seen test.
//!
//! Fingerprints are uniform, so the gaps between sorted ones are geometric and a Rice code with the
//! right parameter comes within half a bit of their entropy: about 39 bits a key at 100 million keys. Keys
//! are cut into blocks of [`BLOCK_KEYS`]; the index at the end of the file holds each block's first key,
//! place and checksum, and is all that stays in memory. Look-ups come in sorted batches and read only the
//! blocks they touch.
//!
//! File: `magic "rhumbrun", version u32, rice parameter u8, 3 zero bytes, blocks, index, footer`. A block is
//! the Rice-coded gaps behind its first key. An index entry is `first key u64, offset u64, keys u32, crc32 u32`;
//! the footer `index offset u64, entries u64, keys u64, crc32 of header and index u32, magic`. All little-endian.

use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbrun";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;
const FOOTER_BYTES: usize = 36;
/// Keys in a block: small enough that a look-up decodes little, large enough that the index is small.
pub const BLOCK_KEYS: usize = 1024;
const WRITE_BYTES: usize = 256 << 10;

/// Writes a run. Keys must be pushed in ascending order.
pub struct RunWriter {
    file: Box<dyn DiskFile>,
    rice: u32,
    buffer: Vec<u8>,
    written: u64,
    bits: BitWriter,
    block_first: u64,
    block_keys: u32,
    previous: u64,
    index: Vec<u8>,
    keys: u64,
}

impl RunWriter {
    /// Starts the file `name` for about `keys_expected` keys.
    pub fn create(disk: &dyn Disk, name: &str, keys_expected: u64) -> Result<RunWriter> {
        let file = disk.create(name)?;
        // The mean gap is 2^64 / n; the best Rice parameter for a geometric gap is log2(mean · ln 2).
        let mean_log2 = 64.0 - (keys_expected.max(1) as f64).log2();
        let rice = (mean_log2 - 0.53).floor().clamp(0.0, 62.0) as u32;
        let buffer = header(rice);
        Ok(RunWriter {
            file,
            rice,
            buffer,
            written: 0,
            bits: BitWriter::default(),
            block_first: 0,
            block_keys: 0,
            previous: 0,
            index: Vec::new(),
            keys: 0,
        })
    }

    /// Adds the next key.
    pub fn push(&mut self, key: u64) -> Result<()> {
        if self.block_keys == 0 {
            self.block_first = key;
        } else {
            assert!(key > self.previous, "keys of a run ascend");
            self.bits.rice(key - self.previous - 1, self.rice);
        }
        self.previous = key;
        self.block_keys += 1;
        self.keys += 1;
        if self.block_keys as usize == BLOCK_KEYS {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block_keys == 0 {
            return Ok(());
        }
        let offset = self.written + self.buffer.len() as u64;
        let start = self.buffer.len();
        self.bits.finish_into(&mut self.buffer);
        let crc = crc32fast::hash(&self.buffer[start..]);
        self.index.extend_from_slice(&self.block_first.to_le_bytes());
        self.index.extend_from_slice(&offset.to_le_bytes());
        self.index.extend_from_slice(&self.block_keys.to_le_bytes());
        self.index.extend_from_slice(&crc.to_le_bytes());
        self.block_keys = 0;
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the index, makes the file durable and returns the number of keys.
    pub fn finish(mut self) -> Result<u64> {
        self.end_block()?;
        let index_offset = self.written + self.buffer.len() as u64;
        let entries = (self.index.len() / ENTRY_BYTES) as u64;
        self.buffer.extend_from_slice(&self.index);
        for word in [index_offset, entries, self.keys] {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        self.buffer.extend_from_slice(&index_checksum(&header(self.rice), &self.index).to_le_bytes());
        self.buffer.extend_from_slice(MAGIC);
        self.flush()?;
        self.file.sync()?;
        Ok(self.keys)
    }
}

/// An open run.
pub struct Run {
    name: String,
    file: Box<dyn DiskFile>,
    rice: u32,
    index: Vec<BlockEntry>,
    index_offset: u64,
    keys: u64,
    bytes: u64,
}

struct BlockEntry {
    first: u64,
    offset: u64,
    keys: u32,
    crc: u32,
}

impl Run {
    /// Opens a finished run and checks its index.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Run> {
        let file = disk.open(name)?;
        let bytes = file.len()?;
        let bad = |offset: u64, what: &str| StoreError::corrupt(name, offset, what);
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(bad(0, "shorter than an empty run"));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        if &header[..8] != MAGIC {
            return Err(bad(0, "not a run"));
        }
        let found = le32(&header[8..]);
        if found != VERSION {
            return Err(StoreError::Version { file: name.to_string(), found, known: VERSION });
        }
        let rice = u32::from(header[12]);
        let footer_at = bytes - FOOTER_BYTES as u64;
        let mut footer = [0; FOOTER_BYTES];
        file.read_at(footer_at, &mut footer)?;
        let (index_offset, entries, keys, crc) =
            (le64(&footer), le64(&footer[8..]), le64(&footer[16..]), le32(&footer[24..]));
        let index_bytes = entries.checked_mul(ENTRY_BYTES as u64);
        let fits = index_bytes.is_some_and(|n| index_offset.checked_add(n) == Some(footer_at));
        if &footer[28..] != MAGIC || !fits || rice > 62 {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        let mut raw = vec![0; (footer_at - index_offset) as usize];
        file.read_at(index_offset, &mut raw)?;
        if index_checksum(&header, &raw) != crc {
            return Err(bad(index_offset, "the checksum of the index does not match"));
        }
        let entry =
            |e: &[u8]| BlockEntry { first: le64(e), offset: le64(&e[8..]), keys: le32(&e[16..]), crc: le32(&e[20..]) };
        let index: Vec<BlockEntry> = raw.chunks_exact(ENTRY_BYTES).map(entry).collect();
        // The footer has no checksum of its own; what it says must follow from what has one.
        if index.iter().map(|b| u64::from(b.keys)).sum::<u64>() != keys {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        Ok(Run { name: name.to_string(), file, rice, index, index_offset, keys, bytes })
    }

    /// Keys in the run.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether the run has no keys.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls `found(i)` for every `sorted[i]` that is in the run. `sorted` ascends.
    pub fn find_sorted(&self, sorted: &[u64], mut found: impl FnMut(usize)) -> Result<()> {
        let mut keys = Vec::with_capacity(BLOCK_KEYS);
        let mut bytes = Vec::new();
        let mut block = 0;
        let mut i = 0;
        while i < sorted.len() {
            // The last block whose first key is not behind the wanted one.
            block += self.index[block..].partition_point(|b| b.first <= sorted[i]);
            if block == 0 {
                i += sorted.partition_point(|&k| self.index.first().is_none_or(|b| k < b.first)).max(1);
                continue;
            }
            block -= 1;
            self.read_block(block, &mut bytes, &mut keys)?;
            let next_first = self.index.get(block + 1).map_or(u64::MAX, |b| b.first);
            let mut at = 0;
            while i < sorted.len() && (sorted[i] < next_first || block + 1 == self.index.len()) {
                at += keys[at..].partition_point(|&k| k < sorted[i]);
                if keys.get(at) == Some(&sorted[i]) {
                    found(i);
                }
                i += 1;
            }
        }
        Ok(())
    }

    /// Reads all keys in order.
    pub fn scan(self: &Arc<Self>) -> RunScan {
        RunScan { run: self.clone(), block: 0, keys: Vec::new(), at: 0, bytes: Vec::new() }
    }

    fn read_block(&self, block: usize, bytes: &mut Vec<u8>, keys: &mut Vec<u64>) -> Result<()> {
        let entry = &self.index[block];
        let end = self.index.get(block + 1).map_or(self.index_offset, |b| b.offset);
        let size = end.checked_sub(entry.offset).filter(|&n| n <= 64 << 10);
        let damaged = |what: &str| StoreError::corrupt(&self.name, entry.offset, what);
        bytes.resize(size.ok_or_else(|| damaged("a block of impossible size"))? as usize, 0);
        let got = self.file.read_at(entry.offset, bytes)?;
        if got < bytes.len() || crc32fast::hash(bytes) != entry.crc {
            return Err(damaged("the checksum of a block does not match"));
        }
        let mut bits = BitReader { bytes, at: 0 };
        keys.clear();
        keys.push(entry.first);
        let mut key = entry.first;
        for _ in 1..entry.keys {
            key = bits
                .rice(self.rice)
                .and_then(|gap| key.checked_add(gap)?.checked_add(1))
                .ok_or_else(|| damaged("a block ends early"))?;
            keys.push(key);
        }
        Ok(())
    }
}

/// All keys of a run in order.
pub struct RunScan {
    run: Arc<Run>,
    block: usize,
    keys: Vec<u64>,
    at: usize,
    bytes: Vec<u8>,
}

impl RunScan {
    /// The next key.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<u64>> {
        if self.at == self.keys.len() {
            if self.block == self.run.index.len() {
                return Ok(None);
            }
            self.run.read_block(self.block, &mut self.bytes, &mut self.keys)?;
            self.block += 1;
            self.at = 0;
        }
        self.at += 1;
        Ok(Some(self.keys[self.at - 1]))
    }
}

/// Merges runs into one. A key in several runs is kept once.
pub fn merge(disk: &dyn Disk, runs: &[Arc<Run>], into: &str) -> Result<u64> {
    let total = runs.iter().map(|r| r.len()).sum();
    let mut writer = RunWriter::create(disk, into, total)?;
    let mut scans: Vec<RunScan> = runs.iter().map(|r| r.scan()).collect();
    let mut heads = Vec::with_capacity(scans.len());
    for scan in &mut scans {
        heads.push(scan.next()?);
    }
    // Few runs are merged at a time, so looking at every head is cheaper than a heap.
    while let Some(least) = heads.iter().flatten().min().copied() {
        writer.push(least)?;
        for (head, scan) in heads.iter_mut().zip(&mut scans) {
            if *head == Some(least) {
                *head = scan.next()?;
            }
        }
    }
    writer.finish()
}

fn header(rice: u32) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[rice as u8, 0, 0, 0]);
    bytes
}

fn index_checksum(header: &[u8], index: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(index);
    hasher.finalize()
}

fn le64(b: &[u8]) -> u64 {
    u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn le32(b: &[u8]) -> u32 {
    u32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

/// Bits from the least significant end.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    used: u32,
}

impl BitWriter {
    fn put(&mut self, value: u64, n: u32) {
        debug_assert!(n <= 32 && value >> n == 0);
        self.pending |= value << self.used;
        self.used += n;
        if self.used >= 32 {
            self.bytes.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.used -= 32;
        }
    }

    /// The quotient in unary (zeros, then a one), the remainder in `k` bits.
    fn rice(&mut self, value: u64, k: u32) {
        let mut quotient = value >> k;
        while quotient >= 32 {
            self.put(0, 32);
            quotient -= 32;
        }
        self.put(0, quotient as u32);
        self.put(1, 1);
        let low = k.min(32);
        self.put(value & ((1u64 << low) - 1), low);
        if k > 32 {
            self.put((value >> 32) & ((1u64 << (k - 32)) - 1), k - 32);
        }
    }

    fn finish_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.bytes);
        let rest = self.pending.to_le_bytes();
        out.extend_from_slice(&rest[..self.used.div_ceil(8) as usize]);
        self.pending = 0;
        self.used = 0;
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// At least 57 bits from the current place, zeros behind the end.
    fn window(&self) -> u64 {
        let start = self.at / 8;
        let word = match self.bytes.get(start..start + 8) {
            Some(b) => le64(b),
            None => {
                let mut b = [0; 8];
                let rest = self.bytes.get(start..).unwrap_or(&[]);
                b[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(b)
            }
        };
        word >> (self.at % 8)
    }

    fn rice(&mut self, k: u32) -> Option<u64> {
        let mut quotient = 0u64;
        loop {
            let zeros = self.window().trailing_zeros().min(56);
            quotient += u64::from(zeros);
            self.at += zeros as usize;
            if zeros < 56 {
                self.at += 1;
                break;
            }
            if self.at >= self.bytes.len() * 8 {
                return None;
            }
        }
        let low_bits = k.min(32);
        let low = self.window() & ((1u64 << low_bits) - 1);
        self.at += low_bits as usize;
        let mut value = low;
        if k > 32 {
            value |= (self.window() & ((1u64 << (k - 32)) - 1)) << 32;
            self.at += (k - 32) as usize;
        }
        if self.at > self.bytes.len() * 8 {
            return None;
        }
        quotient.checked_shl(k).filter(|q| q >> k == quotient).map(|q| q | value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn write(disk: &dyn Disk, name: &str, keys: &BTreeSet<u64>) -> Arc<Run> {
        let mut writer = RunWriter::create(disk, name, keys.len() as u64).expect("create");
        keys.iter().for_each(|&k| writer.push(k).expect("push"));
        writer.finish().expect("finish");
        Arc::new(Run::open(disk, name).expect("open"))
    }

    fn all(run: &Arc<Run>) -> Vec<u64> {
        let mut scan = run.scan();
        std::iter::from_fn(|| scan.next().expect("scan")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_run_holds_exactly_its_keys(
            mut keys in proptest::collection::btree_set(any::<u64>(), 0..5000),
            others in proptest::collection::vec(any::<u64>(), 0..200),
            dense: bool,
        ) {
            if dense { keys = keys.into_iter().map(|k| k % 10_000).collect(); }
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let run = write(&*disk, "a", &keys);
            prop_assert_eq!(all(&run), keys.iter().copied().collect::<Vec<_>>());
            let mut wanted: Vec<u64> = others.into_iter().chain(keys.iter().copied().step_by(7)).collect();
            wanted.extend([0, u64::MAX]);
            wanted.sort_unstable();
            wanted.dedup();
            let mut found = vec![false; wanted.len()];
            run.find_sorted(&wanted, |i| found[i] = true).expect("find");
            for (key, found) in wanted.iter().zip(found) {
                prop_assert_eq!(found, keys.contains(key));
            }
        }

        #[test]
        fn merging_is_union(a in proptest::collection::btree_set(any::<u64>(), 0..3000), b in proptest::collection::btree_set(0..5000u64, 0..3000)) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let (ra, rb) = (write(&*disk, "a", &a), write(&*disk, "b", &b));
            merge(&*disk, &[ra, rb], "c").expect("merge");
            let c = Arc::new(Run::open(&*disk, "c").expect("open"));
            prop_assert_eq!(all(&c), a.union(&b).copied().collect::<Vec<_>>());
        }

        /// Any flipped bit is reported; never a panic or another key.
        #[test]
        fn damage_is_found(at in 0.0f64..1.0, bit in 0u8..8) {
            let keys: BTreeSet<u64> = (0..3000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            write(&*disk, "a", &keys);
            let path = dir.path().join("a");
            let mut bytes = std::fs::read(&path).expect("read");
            let place = (at * bytes.len() as f64) as usize;
            bytes[place] ^= 1 << bit;
            std::fs::write(&path, bytes).expect("write");
            if let Ok(run) = Run::open(&*disk, "a") {
                let mut scan = Arc::new(run).scan();
                let mut seen = Vec::new();
                let outcome = loop {
                    match scan.next() {
                        Ok(Some(k)) => seen.push(k),
                        Ok(None) => break Ok(()),
                        Err(e) => break Err(e),
                    }
                };
                prop_assert!(outcome.is_err() || seen == keys.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn size_is_near_the_entropy() {
        let keys: BTreeSet<u64> = (1..=100_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 7)).collect();
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let run = write(&*disk, "a", &keys);
        let bits = run.bytes() as f64 * 8.0 / keys.len() as f64;
        // log2(2^64 / 100,000) + log2(e) = 48.8 bits is the entropy of uniform keys.
        assert!(bits < 50.5, "{bits} bits a key");
    }
}
