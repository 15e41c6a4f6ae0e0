//! Sorted runs: immutable files of ascending 64-bit keys, the exact half of the URL-seen test.
//!
//! Keys are cut into blocks of [`BLOCK_KEYS`], each in the code of Elias and Fano (1974): of a key's distance from
//! the block's first one, the low bits are stored as they are and the high bits as a bit vector, in which key i with
//! high part h is the one at place h + i. For uniform keys that is within 0.6 bits of the entropy, about 39.5 bits a
//! key at 100 million keys. What makes it fast is that a look-up needs no decoding: it counts zeros to find where
//! its high part begins and compares the low bits of the one or two keys there. Look-ups come in sorted batches,
//! so each block is walked once, and blocks that no look-up touches are not read.
//!
//! The index at the end of the file holds each block's first key, place and checksum, and is all that stays in memory.
//! The bytes are in `docs/formats/state.md`.
//!
//! A [`Level`] is a run of keys added and, if any were, a run of keys deleted from older levels.

use std::sync::Arc;

use crate::blocks::{BlockEntry, BlockFile, BlockReader, BlockWriter, HEADER_BYTES, le32, le64};
use crate::disk::Disk;
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbrun";
const VERSION: u32 = 2;
/// Keys in a block: small enough that a look-up walks little, large enough that the index is small.
pub const BLOCK_KEYS: usize = 1024;
/// No block is larger: 63 low bits and 3 high bits a key at most.
const BLOCK_BYTES_MAX: u64 = 16 << 10;
/// Blocks read at once when they are wanted one after the other: about 160 KiB.
const BLOCKS_AHEAD: usize = 32;

/// Writes a run. Keys must be pushed in ascending order.
pub struct RunWriter {
    blocks: BlockWriter,
    block: Vec<u64>,
    words: Vec<u64>,
    previous: Option<u64>,
}

impl RunWriter {
    /// Starts the file `name`.
    pub fn create(disk: &dyn Disk, name: &str) -> Result<RunWriter> {
        let blocks = BlockWriter::create(disk, name, header())?;
        Ok(RunWriter { blocks, block: Vec::with_capacity(BLOCK_KEYS), words: Vec::new(), previous: None })
    }

    /// Adds the next key.
    pub fn push(&mut self, key: u64) -> Result<()> {
        assert!(self.previous.is_none_or(|p| key > p), "keys of a run ascend");
        self.previous = Some(key);
        self.block.push(key);
        if self.block.len() == BLOCK_KEYS { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let RunWriter { blocks, block, words, .. } = self;
        let Some(&first) = block.first() else {
            return Ok(());
        };
        blocks.block(first, block.len(), |into| {
            let width = encode(block, words);
            words.iter().for_each(|w| into.extend_from_slice(&w.to_le_bytes()));
            [width as u8, 0]
        })?;
        block.clear();
        Ok(())
    }

    /// Writes the index, makes the file durable and returns the number of keys.
    pub fn finish(mut self) -> Result<u64> {
        self.end_block()?;
        self.blocks.finish()
    }
}

/// Codes the keys behind the first into `words`, low parts in front of the high ones, and returns the width of the former.
fn encode(keys: &[u64], words: &mut Vec<u64>) -> u32 {
    words.clear();
    let (first, rest) = (keys[0], &keys[1..]);
    let Some(span) = rest.last().map(|last| last - first) else {
        return 0;
    };
    let width = (span / rest.len() as u64).ilog2();
    let mask = (1u64 << width) - 1;
    let low_words = (rest.len() * width as usize).div_ceil(64);
    let high_words = ((span >> width) as usize + rest.len()).div_ceil(64);
    words.resize(low_words + high_words, 0);
    let (lows, highs) = words.split_at_mut(low_words);
    let mut at = 0;
    for (i, key) in rest.iter().enumerate() {
        let value = key - first;
        let (word, shift) = (at / 64, at % 64);
        if width > 0 {
            lows[word] |= (value & mask) << shift;
            if shift + width as usize > 64 {
                lows[word + 1] = (value & mask) >> (64 - shift);
            }
            at += width as usize;
        }
        let place = (value >> width) as usize + i;
        highs[place / 64] |= 1 << (place % 64);
    }
    width
}

/// An open run.
pub struct Run {
    blocks: BlockFile,
}

impl Run {
    /// Opens a finished run and checks its index.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Run> {
        let judge = |header: &[u8; HEADER_BYTES]| match le32(&header[8..]) {
            VERSION => Ok(()),
            found => Err(StoreError::Version { file: name.to_string(), found, known: VERSION }),
        };
        Ok(Run { blocks: BlockFile::open(disk, name, MAGIC, judge)? })
    }

    /// Keys in the run.
    pub fn len(&self) -> u64 {
        self.blocks.items
    }

    /// Whether the run has no keys.
    pub fn is_empty(&self) -> bool {
        self.blocks.items == 0
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes
    }

    /// Bytes of the index in memory.
    pub fn index_bytes(&self) -> usize {
        self.blocks.index_bytes()
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.blocks.name
    }

    /// Calls `found(i)` for every `sorted[i]` that is in the run. `sorted` ascends.
    pub fn find_sorted(&self, sorted: &[u64], mut found: impl FnMut(usize)) -> Result<()> {
        let Some(first) = self.index().first().map(|b| b.first) else {
            return Ok(());
        };
        let mut reader = Reader::default();
        let mut block = 0;
        let mut i = sorted.partition_point(|&k| k < first);
        while i < sorted.len() {
            // The last block whose first key is not behind the wanted one.
            block += gallop(&self.index()[block..], |b| b.first <= sorted[i]) - 1;
            let next_first = self.index().get(block + 1).map(|b| b.first);
            let mut finder = Finder::new(reader.block(self, block)?);
            while i < sorted.len() && next_first.is_none_or(|next| sorted[i] < next) {
                if finder.contains(sorted[i]) {
                    found(i);
                }
                i += 1;
            }
        }
        Ok(())
    }

    /// Calls `found(i, key)` for the keys that begin with `prefixes[i]`, which stands above their lowest `below` bits, in ascending
    /// order, as long as it returns true. `prefixes` ascend.
    pub fn find_prefixes(&self, prefixes: &[u64], below: u32, mut found: impl FnMut(usize, u64) -> bool) -> Result<()> {
        let mut reader = Reader::default();
        let (mut block, mut i) = (0, 0);
        while i < prefixes.len() && !self.index().is_empty() {
            // The last block that begins before the prefix's keys may have some of them at its end; the others follow.
            block += gallop(&self.index()[block..], |b| b.first < prefixes[i] << below).saturating_sub(1);
            let next_first = self.index().get(block + 1).map(|b| b.first);
            let mut finder = Finder::new(reader.block(self, block)?);
            let mut ended = false;
            while i < prefixes.len() && !ended && next_first.is_none_or(|next| next >= prefixes[i] << below) {
                let prefix = prefixes[i];
                ended = finder.walk(prefix << below, |key| key >> below == prefix && found(i, key));
                i += 1;
            }
            let mut here = block + 1;
            while ended && self.index().get(here).is_some_and(|b| b.first >> below == prefixes[i - 1]) {
                let (mut finder, prefix) = (Finder::new(reader.block(self, here)?), prefixes[i - 1]);
                ended = finder.walk(prefix << below, |key| key >> below == prefix && found(i - 1, key));
                here += 1;
            }
        }
        Ok(())
    }

    /// Reads all keys in order.
    pub fn scan(self: &Arc<Self>) -> RunScan {
        RunScan { run: self.clone(), block: 0, keys: Vec::new(), at: 0, reader: Reader::default() }
    }

    fn index(&self) -> &[BlockEntry] {
        &self.blocks.index
    }
}

/// How many at the front of `items` hold to `is_before`, which holds for no item behind one for which it does not. Quick if
/// they are few.
fn gallop<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while step < items.len() && is_before(&items[step]) {
        step *= 2;
    }
    let (from, to) = (step / 2, (step + 1).min(items.len()));
    from + items[from..to].partition_point(is_before)
}

/// Reads blocks, several at once if they are wanted in order.
#[derive(Default)]
struct Reader(BlockReader);

impl Reader {
    fn block<'a>(&'a mut self, run: &'a Run, block: usize) -> Result<Block<'a>> {
        let (bytes, _) = self.0.block(&run.blocks, block, BLOCK_BYTES_MAX, BLOCKS_AHEAD, BLOCKS_AHEAD)?;
        let entry = &run.index()[block];
        if crc32fast::hash(bytes) != entry.crc {
            return Err(run.blocks.damaged(block, "the checksum of a block does not match"));
        }
        Block::new(entry, bytes).ok_or_else(|| run.blocks.damaged(block, "a block of impossible size"))
    }
}

/// The keys of a block, as coded.
struct Block<'a> {
    first: u64,
    /// Keys behind the first.
    count: usize,
    width: u32,
    /// The low parts, and the high parts behind them: a window on the last low part stays within.
    lows: &'a [u8],
    highs: &'a [u8],
}

impl<'a> Block<'a> {
    fn new(entry: &BlockEntry, bytes: &'a [u8]) -> Option<Block<'a>> {
        let (count, width) = (usize::from(entry.items).checked_sub(1)?, u32::from(entry.widths[0]));
        let low_bytes = (count * width as usize).div_ceil(64) * 8;
        let sound = width < 64 && bytes.len().is_multiple_of(8) && count < BLOCK_KEYS;
        let highs = bytes.get(low_bytes..).filter(|_| sound)?;
        Some(Block { first: entry.first, count, width, lows: bytes, highs })
    }

    fn low(&self, i: usize) -> u64 {
        let at = i * self.width as usize;
        let (byte, shift) = (at / 8, (at % 8) as u32);
        let mut bits = le64(self.lows.get(byte..).unwrap_or_default()) >> shift;
        if self.width + shift > 64 {
            bits |= u64::from(self.lows.get(byte + 8).copied().unwrap_or(0)) << (64 - shift);
        }
        bits & ((1 << self.width) - 1)
    }

    fn high_word(&self, word: usize) -> Option<u64> {
        self.highs.get(word * 8..word * 8 + 8).map(le64)
    }

    /// All keys; `None` if there are not as many as there should be.
    fn decode_into(&self, keys: &mut Vec<u64>) -> Option<()> {
        keys.clear();
        keys.push(self.first);
        let mut i = 0;
        for (word, bits) in self.highs.chunks_exact(8).map(le64).enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let high = (word * 64 + bits.trailing_zeros() as usize).checked_sub(i)? as u64;
                keys.push(self.first.checked_add(high << self.width | self.low(i))?);
                bits &= bits - 1;
                i += 1;
            }
        }
        (i == self.count).then_some(())
    }
}

/// Finds ascending keys in a block.
struct Finder<'a> {
    block: Block<'a>,
    word: usize,
    /// Zeros in front of the word.
    zeros: u64,
    /// The word, inverted, and for each byte the ones of it and those below.
    inverted: u64,
    sums: u64,
}

impl<'a> Finder<'a> {
    fn new(block: Block<'a>) -> Finder<'a> {
        let inverted = !block.high_word(0).unwrap_or(0);
        Finder { block, word: 0, zeros: 0, inverted, sums: byte_sums(inverted) }
    }

    /// Where keys of this high part, which is not below one asked for before, stand or would stand; `None` behind the last key.
    fn place_of(&mut self, high: u64) -> Option<usize> {
        // Keys of high part h stand behind the zero number h.
        let Some(zero) = high.checked_sub(1) else {
            return Some(0);
        };
        while zero - self.zeros >= self.sums >> 56 {
            self.zeros += self.sums >> 56;
            self.word += 1;
            let Some(word) = self.block.high_word(self.word) else {
                self.word -= 1;
                self.zeros -= self.sums >> 56;
                return None;
            };
            self.inverted = !word;
            self.sums = byte_sums(self.inverted);
        }
        Some(self.word * 64 + select(self.inverted, self.sums, zero - self.zeros) + 1)
    }

    /// Whether the key, not below the block's first nor below one asked for before, is in the block.
    fn contains(&mut self, key: u64) -> bool {
        let value = key - self.block.first;
        if value == 0 {
            return true;
        }
        let (high, low) = (value >> self.block.width, value & ((1 << self.block.width) - 1));
        let Some(mut place) = self.place_of(high) else {
            return false;
        };
        loop {
            let Some(word) = self.block.high_word(place / 64) else {
                return false;
            };
            if word >> (place % 64) & 1 == 0 {
                return false;
            }
            let here = self.block.low(place - high as usize);
            if here >= low {
                return here == low;
            }
            place += 1;
        }
    }
}

impl Finder<'_> {
    /// Calls `each` for the keys that are not below `from`, which is not below one asked for before, as long as it returns true. Returns whether the block ended
    /// before that.
    fn walk(&mut self, from: u64, mut each: impl FnMut(u64) -> bool) -> bool {
        let first = self.block.first;
        if from <= first && !each(first) {
            return false;
        }
        let high = from.saturating_sub(first) >> self.block.width;
        let Some(mut place) = self.place_of(high) else {
            return true;
        };
        let mut i = place - high as usize;
        while let Some(word) = self.block.high_word(place / 64) {
            let bits = word >> (place % 64);
            if bits == 0 {
                place = (place / 64 + 1) * 64;
                continue;
            }
            place += bits.trailing_zeros() as usize;
            let key = first.wrapping_add(((place - i) as u64) << self.block.width | self.block.low(i));
            if key >= from && key > first && !each(key) {
                return false;
            }
            (place, i) = (place + 1, i + 1);
        }
        true
    }
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// In each byte the ones of that byte and of all below it.
fn byte_sums(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    ((nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(LOW_BITS)
}

/// The place of the one with `rank` ones below it (Vigna 2008).
fn select(word: u64, sums: u64, rank: u64) -> usize {
    let high_bits = LOW_BITS << 7;
    let not_above = (((rank * LOW_BITS) | high_bits) - sums) & high_bits;
    let byte = ((not_above >> 7).wrapping_mul(LOW_BITS) >> 56) * 8;
    let rank = rank - ((sums << 8) >> byte & 0xff);
    let bits = (word >> byte & 0xff) as usize;
    byte as usize + usize::from(SELECT_IN_BYTE[(rank as usize) << 8 | bits])
}

static SELECT_IN_BYTE: [u8; 2048] = select_in_byte();

const fn select_in_byte() -> [u8; 2048] {
    let mut table = [0; 2048];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut rank) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[rank << 8 | byte] = bit as u8;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// All keys of a run in order.
pub struct RunScan {
    run: Arc<Run>,
    block: usize,
    keys: Vec<u64>,
    at: usize,
    reader: Reader,
}

impl RunScan {
    /// The next key.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<u64>> {
        let next = self.rest()?.first().copied();
        self.at += usize::from(next.is_some());
        Ok(next)
    }

    /// The next keys, as many as are at hand; none at the end of the run.
    pub fn rest(&mut self) -> Result<&[u64]> {
        if self.at == self.keys.len() && self.block < self.run.index().len() {
            let block = self.reader.block(&self.run, self.block)?;
            let whole = block.decode_into(&mut self.keys);
            whole.ok_or_else(|| self.run.blocks.damaged(self.block, "a block ends early"))?;
            self.block += 1;
            self.at = 0;
        }
        Ok(&self.keys[self.at..])
    }

    /// Passes over `n` of the keys that [`RunScan::rest`] showed.
    pub fn skip(&mut self, n: usize) {
        self.at += n;
        assert!(self.at <= self.keys.len(), "what is skipped was seen");
    }
}

/// Keys added, and keys deleted from all older levels.
#[derive(Clone)]
pub struct Level {
    /// Keys that are in the set.
    pub added: Arc<Run>,
    /// Keys that are not, whatever older levels say.
    pub deleted: Option<Arc<Run>>,
}

impl Level {
    /// Opens the runs of a level.
    pub fn open(disk: &dyn Disk, added: &str, deleted: Option<&str>) -> Result<Level> {
        let deleted = deleted.map(|name| Run::open(disk, name).map(Arc::new)).transpose()?;
        Ok(Level { added: Arc::new(Run::open(disk, added)?), deleted })
    }

    /// Keys in both runs.
    pub fn len(&self) -> u64 {
        self.added.len() + self.deleted.as_ref().map_or(0, |d| d.len())
    }

    /// Whether the level says nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of its files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.added.name()).chain(self.deleted.as_ref().map(|d| d.name()))
    }
}

/// Merges neighbouring levels, oldest first, into one. Keys deleted are written to `deleted`; without that name, which is for
/// levels below which there are no others, they are left out.
pub fn merge(disk: &dyn Disk, levels: &[Level], added: &str, deleted: Option<&str>) -> Result<Level> {
    let mut writer = RunWriter::create(disk, added)?;
    let deleted = deleted.filter(|_| levels.iter().any(|l| l.deleted.is_some()));
    if levels.iter().all(|l| l.deleted.is_none()) {
        merge_added(levels, &mut writer)?;
        writer.finish()?;
    } else {
        let mut deletions = deleted.map(|name| RunWriter::create(disk, name)).transpose()?;
        merge_all(levels, &mut writer, &mut deletions)?;
        writer.finish()?;
        deletions.map(RunWriter::finish).transpose()?;
    }
    Level::open(disk, added, deleted)
}

/// The union. Of each run the keys up to some bound are at hand; sorting what lies below the least bound
/// merges a few long ascending pieces, which the standard sort does faster than a comparison of heads per key.
fn merge_added(levels: &[Level], writer: &mut RunWriter) -> Result<()> {
    let mut scans: Vec<RunScan> = levels.iter().map(|l| l.added.scan()).collect();
    let mut together = Vec::new();
    loop {
        let mut bound = None;
        for scan in &mut scans {
            if let Some(&last) = scan.rest()?.last() {
                bound = Some(bound.map_or(last, |b: u64| b.min(last)));
            }
        }
        let Some(bound) = bound else {
            return Ok(());
        };
        together.clear();
        for scan in &mut scans {
            let rest = scan.rest()?;
            let n = rest.partition_point(|&k| k <= bound);
            together.extend_from_slice(&rest[..n]);
            scan.skip(n);
        }
        together.sort();
        together.dedup();
        together.iter().try_for_each(|&k| writer.push(k))?;
    }
}

/// The newest level that knows a key decides. Deletions are rare, so a comparison of all heads per key will do.
fn merge_all(levels: &[Level], added: &mut RunWriter, deleted: &mut Option<RunWriter>) -> Result<()> {
    // Newest first, and of one level the additions first: the first scan with the least key decides.
    let mut scans: Vec<(bool, RunScan)> = Vec::new();
    for level in levels.iter().rev() {
        scans.push((true, level.added.scan()));
        scans.extend(level.deleted.iter().map(|d| (false, d.scan())));
    }
    loop {
        let mut least: Option<(u64, bool)> = None;
        for (adds, scan) in &mut scans {
            if let Some(&key) = scan.rest()?.first()
                && least.is_none_or(|(l, _)| key < l)
            {
                least = Some((key, *adds));
            }
        }
        let Some((key, adds)) = least else {
            return Ok(());
        };
        if adds {
            added.push(key)?;
        } else if let Some(deleted) = deleted {
            deleted.push(key)?;
        }
        for (_, scan) in &mut scans {
            let here = scan.rest()?.first() == Some(&key);
            scan.skip(usize::from(here));
        }
    }
}

fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
