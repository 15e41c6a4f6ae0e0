//! A table on disk: small values by 64-bit key, for state that outgrows memory.
//!
//! Log-structured, like the sieve's runs: what is put gathers in memory and becomes a sorted, immutable run by
//! [`Table::settle`]; the newest run that has a key has its value. Runs of like size are merged elsewhere: [`Table::take_work`]
//! hands out the job, [`Table::finish_work`] takes its result. A checkpoint only names runs, so its cost follows what
//! changed. In memory are the changes, one index entry per block and a small filter per run, all within the bounds of [`TableConfig`].
//!
//! File: `magic "rhumbtab", version u32, 4 zero bytes`; blocks of entries `key u64, length varint, value` in ascending order of
//! keys; index, per block `first key u64, offset u64, crc32 u32`; filter, words of 64 bits; footer `index offset u64, blocks u64, filter
//! words u64, keys u64, crc32 of header, index, filter and these u32, magic`. All little-endian.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codec::{Malformed, Put, Take};
use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbtab";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 20;
const FOOTER_BYTES: usize = 44;
/// A block of this size is closed. A look-up reads one, so smaller is faster; the index has one entry for each.
const BLOCK_BYTES_MIN: usize = 2 << 10;
/// Blocks grow with the run, so that an index has at most about this many entries.
const INDEX_ENTRIES_MAX: u64 = 1 << 16;
const BLOCK_BYTES_MAX: u64 = 16 << 20;
const WRITE_BYTES: usize = 256 << 10;
const FILTER_BITS_PER_KEY: u64 = 10;
/// So many runs of like size are merged into one.
const RUNS_MERGED: usize = 4;

/// Bounds of a table's memory.
#[derive(Clone, Copy, Debug)]
pub struct TableConfig {
    /// Changes in memory; more are due to be settled.
    pub memory_bytes_max: usize,
    /// The filters of all runs together; with less than they want they err more often.
    pub filter_bytes_max: usize,
}

/// See the module's header.
pub struct Table {
    disk: Arc<dyn Disk>,
    dir: &'static str,
    config: TableConfig,
    changes: BTreeMap<u64, (u32, u32)>,
    arena: Vec<u8>,
    /// Oldest first.
    runs: Vec<Arc<TableRun>>,
    next_run: u64,
    merging: bool,
    unsynced: Vec<String>,
    garbage: Vec<String>,
    block: Vec<u8>,
}

impl Table {
    /// An empty table whose files lie in `dir`.
    pub fn new(disk: Arc<dyn Disk>, dir: &'static str, config: TableConfig) -> Result<Table> {
        disk.make_dir(dir)?;
        Ok(Table {
            disk,
            dir,
            config,
            changes: BTreeMap::new(),
            arena: Vec::new(),
            runs: Vec::new(),
            next_run: 1,
            merging: false,
            unsynced: Vec::new(),
            garbage: Vec::new(),
            block: Vec::new(),
        })
    }

    /// The value of a key.
    pub fn get(&mut self, key: u64) -> Result<Option<&[u8]>> {
        if let Some(&(start, length)) = self.changes.get(&key) {
            return Ok(Some(&self.arena[start as usize..][..length as usize]));
        }
        for run in self.runs.iter().rev() {
            if let Some((start, length)) = run.find(key, &mut self.block)? {
                return Ok(Some(&self.block[start..start + length]));
            }
        }
        Ok(None)
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: u64, value: &[u8]) {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(value);
        self.changes.insert(key, (start, value.len() as u32));
    }

    /// Whether the changes have outgrown their memory and [`Table::settle`] is due.
    pub fn needs_settle(&self) -> bool {
        self.memory_bytes() >= self.config.memory_bytes_max
    }

    /// Bytes of memory that changes take.
    pub fn memory_bytes(&self) -> usize {
        self.arena.len() + self.changes.len() * 40
    }

    /// Writes the changes as a run. It becomes durable with the checkpoint that names it.
    pub fn settle(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let name = self.new_run_name();
        let (keys, bytes) = (self.changes.len() as u64, self.arena.len() as u64);
        let mut writer = TableWriter::create(&*self.disk, &name, keys, bytes, self.filter_bytes_for(keys))?;
        for (&key, &(start, length)) in &self.changes {
            writer.push(key, &self.arena[start as usize..][..length as usize])?;
        }
        writer.finish(false)?;
        self.runs.push(Arc::new(TableRun::open(&*self.disk, &name)?));
        self.unsynced.push(name);
        self.changes.clear();
        self.arena.clear();
        self.arena.shrink_to(self.config.memory_bytes_max);
        Ok(())
    }

    /// A share of the filters' memory for a run of so many keys.
    fn filter_bytes_for(&self, keys: u64) -> usize {
        let all = keys + self.runs.iter().map(|r| r.keys).sum::<u64>();
        let share = self.config.filter_bytes_max as f64 * keys as f64 / all.max(1) as f64;
        ((keys * FILTER_BITS_PER_KEY / 8) as usize).min(share as usize)
    }

    fn new_run_name(&mut self) -> String {
        self.next_run += 1;
        format!("{}/{:08}.tab", self.dir, self.next_run - 1)
    }

    /// A merge that is due. Run it anywhere, and give the result to [`Table::finish_work`]. One is out at a time.
    pub fn take_work(&mut self) -> Option<TableWork> {
        if self.merging {
            return None;
        }
        // Runs join from the newest on while the next is not much larger than all before it together.
        let mut bytes = 0;
        let joined = self.runs.iter().rev().take_while(|r| {
            let joins = bytes == 0 || r.bytes <= 2 * bytes;
            bytes += r.bytes;
            joins
        });
        let count = joined.count();
        if count < RUNS_MERGED {
            return None;
        }
        self.merging = true;
        let runs = self.runs[self.runs.len() - count..].to_vec();
        let filter_bytes = self.filter_bytes_for(runs.iter().map(|r| r.keys).sum());
        Some(TableWork { disk: self.disk.clone(), runs, name: self.new_run_name(), filter_bytes })
    }

    /// Puts a merged run in the place of those it was made of.
    pub fn finish_work(&mut self, done: TableDone) {
        self.merging = false;
        let is_first = |r: &Arc<TableRun>| r.name == done.replaced[0];
        let at = self.runs.iter().position(is_first).expect("merged runs stay until the merge is done");
        let old = self.runs.splice(at..at + done.replaced.len(), [Arc::new(done.run)]);
        self.garbage.extend(old.map(|r| r.name.clone()));
    }

    /// Names of files that the next checkpoint no longer needs.
    pub fn take_garbage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.garbage)
    }

    /// Names of runs that must be made durable before a checkpoint names them.
    pub fn take_unsynced(&mut self, names: &mut Vec<String>) {
        names.append(&mut self.unsynced);
    }

    /// Names of the runs in use.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|r| r.name.as_str())
    }

    /// Writes the state into a checkpoint. Changes must be settled.
    pub fn save(&self, into: &mut Vec<u8>) {
        assert!(self.changes.is_empty(), "a table is settled before its checkpoint");
        into.put_u64(self.next_run);
        into.put_u64(self.runs.len() as u64);
        self.runs.iter().for_each(|r| into.put_str(&r.name));
    }

    /// Reads what [`Table::save`] wrote and opens the runs.
    pub fn load(disk: Arc<dyn Disk>, dir: &'static str, config: TableConfig, from: &mut Take<'_>) -> Result<Table> {
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        let mut table = Table::new(disk, dir, config)?;
        table.next_run = from.u64().map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            let name = from.str().map_err(malformed)?;
            table.runs.push(Arc::new(TableRun::open(&*table.disk, name)?));
        }
        Ok(table)
    }
}

/// A merge of runs.
pub struct TableWork {
    disk: Arc<dyn Disk>,
    runs: Vec<Arc<TableRun>>,
    name: String,
    filter_bytes: usize,
}

/// The result of a [`TableWork`].
pub struct TableDone {
    run: TableRun,
    replaced: Vec<String>,
}

impl TableWork {
    /// Merges. A key in several runs keeps the value of the newest.
    pub fn run(self) -> Result<TableDone> {
        let keys = self.runs.iter().map(|r| r.keys).sum();
        let bytes = self.runs.iter().map(|r| r.bytes).sum();
        let mut writer = TableWriter::create(&*self.disk, &self.name, keys, bytes, self.filter_bytes)?;
        // Newest first, so that the first of several equal keys is the one to keep.
        let mut scans: Vec<Scan> = self.runs.iter().rev().map(|r| Scan::new(r.clone())).collect();
        for scan in &mut scans {
            scan.advance()?;
        }
        while let Some(least) = scans.iter().filter_map(|s| s.key).min() {
            let mut kept = false;
            for scan in &mut scans {
                if scan.key == Some(least) {
                    if !kept {
                        writer.push(least, scan.value())?;
                        kept = true;
                    }
                    scan.advance()?;
                }
            }
        }
        writer.finish(true)?;
        let run = TableRun::open(&*self.disk, &self.name)?;
        Ok(TableDone { run, replaced: self.runs.iter().map(|r| r.name.clone()).collect() })
    }
}

/// Writes a run, keys ascending.
struct TableWriter {
    file: Box<dyn DiskFile>,
    block_bytes: usize,
    buffer: Vec<u8>,
    block_start: usize,
    written: u64,
    index: Vec<u8>,
    filter: Vec<u64>,
    keys: u64,
    first: u64,
}

impl TableWriter {
    fn create(disk: &dyn Disk, name: &str, keys: u64, bytes: u64, filter_bytes: usize) -> Result<TableWriter> {
        let file = disk.create(name)?;
        let expected = (bytes + 10 * keys) / INDEX_ENTRIES_MAX;
        Ok(TableWriter {
            file,
            block_bytes: (expected as usize).max(BLOCK_BYTES_MIN),
            buffer: header(),
            block_start: HEADER_BYTES,
            written: 0,
            index: Vec::new(),
            filter: vec![0; filter_bytes / 8],
            keys: 0,
            first: 0,
        })
    }

    fn push(&mut self, key: u64, value: &[u8]) -> Result<()> {
        if self.buffer.len() == self.block_start {
            self.first = key;
        }
        self.buffer.extend_from_slice(&key.to_le_bytes());
        self.buffer.put_bytes(value);
        self.keys += 1;
        if !self.filter.is_empty() {
            let (word, bits) = filter_bits(key, self.filter.len());
            self.filter[word] |= bits;
        }
        if self.buffer.len() - self.block_start >= self.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let block = &self.buffer[self.block_start..];
        if block.is_empty() {
            return Ok(());
        }
        self.index.extend_from_slice(&self.first.to_le_bytes());
        self.index.extend_from_slice(&(self.written + self.block_start as u64).to_le_bytes());
        self.index.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        self.block_start = self.buffer.len();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self, sync: bool) -> Result<()> {
        self.end_block()?;
        let index_offset = self.written + self.buffer.len() as u64;
        let mut tail = std::mem::take(&mut self.index);
        let blocks = (tail.len() / ENTRY_BYTES) as u64;
        self.filter.iter().for_each(|w| tail.extend_from_slice(&w.to_le_bytes()));
        self.buffer.extend_from_slice(&tail);
        let words = [index_offset, blocks, self.filter.len() as u64, self.keys];
        let words: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        self.buffer.extend_from_slice(&words);
        self.buffer.extend_from_slice(&checksum(&tail, &words).to_le_bytes());
        self.buffer.extend_from_slice(MAGIC);
        self.flush()?;
        if sync { self.file.sync() } else { Ok(()) }
    }
}

/// An open run.
struct TableRun {
    name: String,
    file: Box<dyn DiskFile>,
    index: Vec<Block>,
    index_offset: u64,
    filter: Vec<u64>,
    keys: u64,
    bytes: u64,
}

struct Block {
    first: u64,
    offset: u64,
    crc: u32,
}

/// Reads a whole file of a table. Every block must be whole.
pub fn verify(disk: &dyn Disk, name: &str) -> Result<()> {
    let mut scan = Scan::new(Arc::new(TableRun::open(disk, name)?));
    loop {
        scan.advance()?;
        if scan.key.is_none() {
            return Ok(());
        }
    }
}

impl TableRun {
    fn open(disk: &dyn Disk, name: &str) -> Result<TableRun> {
        let file = disk.open(name)?;
        let bytes = file.len()?;
        let bad = |offset: u64, what: &str| StoreError::corrupt(name, offset, what);
        let mut head = [0; HEADER_BYTES];
        let mut footer = [0; FOOTER_BYTES];
        let footer_at = bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| bad(0, "shorter than an empty table"))?;
        file.read_at(0, &mut head)?;
        file.read_at(footer_at, &mut footer)?;
        if &head[..8] != MAGIC || footer[36..] != MAGIC[..] {
            return Err(bad(0, "not a table"));
        }
        let found = le32(&head[8..]);
        if found != VERSION {
            return Err(StoreError::Version { file: name.to_string(), found, known: VERSION });
        }
        let [index_offset, blocks, words, keys] = [0, 8, 16, 24].map(|at| le64(&footer[at..]));
        let tail_bytes = blocks.checked_mul(ENTRY_BYTES as u64).and_then(|n| n.checked_add(words.checked_mul(8)?));
        if tail_bytes.is_none_or(|n| index_offset.checked_add(n) != Some(footer_at)) {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        let mut tail = vec![0; (footer_at - index_offset) as usize];
        file.read_at(index_offset, &mut tail)?;
        if checksum(&tail, &footer[..32]) != le32(&footer[32..]) || head[..] != header()[..] {
            return Err(bad(index_offset, "the checksum of the index does not match"));
        }
        let (index, filter) = tail.split_at(blocks as usize * ENTRY_BYTES);
        let entry = |e: &[u8]| Block { first: le64(e), offset: le64(&e[8..]), crc: le32(&e[16..]) };
        Ok(TableRun {
            name: name.to_string(),
            file,
            index: index.chunks_exact(ENTRY_BYTES).map(entry).collect(),
            index_offset,
            filter: filter.chunks_exact(8).map(le64).collect(),
            keys,
            bytes,
        })
    }

    fn may_contain(&self, key: u64) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let (word, bits) = filter_bits(key, self.filter.len());
        self.filter[word] & bits == bits
    }

    /// Where the key's value lies in `block`, which is read for it.
    fn find(&self, key: u64, block: &mut Vec<u8>) -> Result<Option<(usize, usize)>> {
        if !self.may_contain(key) {
            return Ok(None);
        }
        let Some(number) = self.index.partition_point(|b| b.first <= key).checked_sub(1) else { return Ok(None) };
        self.read_block(number, block)?;
        let mut take = Take::new(block);
        while !take.is_empty() {
            let (found, value) = self.entry(&mut take, number)?;
            if found == key {
                let end = block.len() - take.rest().len();
                return Ok(Some((end - value.len(), value.len())));
            }
            if found > key {
                break;
            }
        }
        Ok(None)
    }

    fn read_block(&self, number: usize, block: &mut Vec<u8>) -> Result<()> {
        let entry = &self.index[number];
        let end = self.index.get(number + 1).map_or(self.index_offset, |b| b.offset);
        let damaged = |what: &str| StoreError::corrupt(&self.name, entry.offset, what);
        let size = end.checked_sub(entry.offset).filter(|&n| n <= BLOCK_BYTES_MAX);
        block.resize(size.ok_or_else(|| damaged("a block of impossible size"))? as usize, 0);
        let got = self.file.read_at(entry.offset, block)?;
        if got < block.len() || crc32fast::hash(block) != entry.crc {
            return Err(damaged("the checksum of a block does not match"));
        }
        Ok(())
    }

    fn entry<'a>(&self, take: &mut Take<'a>, number: usize) -> Result<(u64, &'a [u8])> {
        let mut read = || Ok((le64(take.raw(8)?), take.bytes()?));
        read().map_err(|Malformed(what)| StoreError::corrupt(&self.name, self.index[number].offset, what))
    }
}

/// All entries of a run in order.
struct Scan {
    run: Arc<TableRun>,
    block: Vec<u8>,
    /// The block to read next, and where in the current one the next entry begins.
    next_block: usize,
    at: usize,
    key: Option<u64>,
    value: (usize, usize),
}

impl Scan {
    fn new(run: Arc<TableRun>) -> Scan {
        Scan { run, block: Vec::new(), next_block: 0, at: 0, key: None, value: (0, 0) }
    }

    fn advance(&mut self) -> Result<()> {
        if self.at == self.block.len() {
            if self.next_block == self.run.index.len() {
                self.key = None;
                return Ok(());
            }
            self.run.read_block(self.next_block, &mut self.block)?;
            self.next_block += 1;
            self.at = 0;
        }
        let mut take = Take::new(&self.block[self.at..]);
        let (key, value) = self.run.entry(&mut take, self.next_block - 1)?;
        let length = value.len();
        self.at = self.block.len() - take.rest().len();
        self.key = Some(key);
        self.value = (self.at - length, length);
        Ok(())
    }

    fn value(&self) -> &[u8] {
        &self.block[self.value.0..][..self.value.1]
    }
}

/// Four bits of one word: one cache miss a question, at the price of about three times a plain filter's errors.
fn filter_bits(key: u64, words: usize) -> (usize, u64) {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = ((u128::from(mixed) * words as u128) >> 64) as usize;
    let bits = [0, 6, 12, 18].iter().fold(0, |bits, shift| bits | 1 << ((key >> shift) & 63));
    (word, bits)
}

fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

fn checksum(tail: &[u8], footer: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    [&header(), tail, footer].into_iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

fn le64(b: &[u8]) -> u64 {
    u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn le32(b: &[u8]) -> u32 {
    u32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;

    const DIR: &str = "state/table";

    fn spread(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Against a plain map, with settling, merges that end late, checkpoints and crashes at random moments.
        #[test]
        fn same_as_a_map(ops in proptest::collection::vec((0u8..20, 0u64..300, 0usize..60), 1..1500), filter in 0usize..300) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let config = TableConfig { memory_bytes_max: 2_000, filter_bytes_max: filter };
            let mut table = Table::new(disk.clone(), DIR, config).expect("new");
            let mut model = BTreeMap::new();
            let mut saved = Vec::new();
            table.save(&mut saved);
            let mut saved_model = model.clone();
            let mut work = None;
            for (i, (op, n, length)) in ops.into_iter().enumerate() {
                let key = spread(n);
                match op {
                    0..=9 => {
                        let value = vec![i as u8; length];
                        table.put(key, &value);
                        model.insert(key, value);
                    }
                    10..=15 => {
                        prop_assert_eq!(table.get(key).expect("get").map(<[u8]>::to_vec), model.get(&key).cloned());
                    }
                    16 => work = work.or_else(|| table.take_work()),
                    17 => {
                        if let Some(work) = work.take() {
                            table.finish_work(work.run().expect("merge"));
                        }
                    }
                    18 => {
                        table.settle().expect("settle");
                        saved.clear();
                        table.save(&mut saved);
                        saved_model = model.clone();
                        for name in table.take_garbage() {
                            disk.remove(&name).expect("remove");
                        }
                    }
                    _ => {
                        work = None;
                        table = Table::load(disk.clone(), DIR, config, &mut Take::new(&saved)).expect("load");
                        model = saved_model.clone();
                    }
                }
                if table.needs_settle() {
                    table.settle().expect("settle");
                }
            }
            for n in 0..300 {
                let key = spread(n);
                prop_assert_eq!(table.get(key).expect("get").map(<[u8]>::to_vec), model.get(&key).cloned());
            }
        }

        /// Any flipped bit is reported; never a panic or another value.
        #[test]
        fn damage_is_found(at in 0.0f64..1.0, bit in 0u8..8) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let config = TableConfig { memory_bytes_max: 1 << 20, filter_bytes_max: 1000 };
            let mut table = Table::new(disk.clone(), DIR, config).expect("new");
            (0..500).for_each(|n| table.put(spread(n), &n.to_le_bytes()));
            table.settle().expect("settle");
            let mut saved = Vec::new();
            table.save(&mut saved);
            let path = dir.path().join(table.file_names().next().expect("one run"));
            let mut bytes = std::fs::read(&path).expect("read");
            let place = (at * bytes.len() as f64) as usize;
            bytes[place] ^= 1 << bit;
            std::fs::write(&path, bytes).expect("write");
            let Ok(mut table) = Table::load(disk, DIR, config, &mut Take::new(&saved)) else { return Ok(()) };
            for n in 0..500u64 {
                match table.get(spread(n)) {
                    Ok(value) => prop_assert_eq!(value, Some(&n.to_le_bytes()[..])),
                    Err(StoreError::Corrupt { .. }) => {}
                    Err(e) => panic!("{e}"),
                }
            }
        }
    }

    /// Updates of the same keys, over and over, leave few runs and little more than the newest values.
    #[test]
    fn merging_keeps_the_table_small() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let config = TableConfig { memory_bytes_max: 20_000, filter_bytes_max: 10_000 };
        let mut table = Table::new(disk, DIR, config).expect("new");
        for round in 0..50_000u64 {
            table.put(spread(round.wrapping_mul(7919) % 5_000), &[round as u8; 30]);
            if table.needs_settle() {
                table.settle().expect("settle");
                while let Some(work) = table.take_work() {
                    table.finish_work(work.run().expect("merge"));
                }
            }
        }
        assert!(table.runs.len() <= 12, "{} runs", table.runs.len());
        let bytes: u64 = table.runs.iter().map(|r| r.bytes).sum();
        assert!(bytes < 3 * 5_000 * 40, "{bytes} bytes for 5,000 keys");
    }
}
