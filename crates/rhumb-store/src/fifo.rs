//! A first-in-first-out queue of byte strings of which only the two ends are in memory.
//!
//! Entries gather in the tail. A full tail becomes a block at the end of the queue's last segment file or, when nothing lies
//! between, the head itself, so that a short queue never touches the disk. Popping reads one block at a time. So a
//! queue holds two blocks in memory, however long it is, and a long queue is a few files, however small its blocks.
//!
//! Segments only grow: a checkpoint remembers how long each was, and [`Fifo::load`] cuts off what came later. A
//! consumed segment is not deleted but named as garbage: until the next checkpoint is durable a crash may need it.
//!
//! Segment file: `magic "rhumbsg2"`, blocks. A block is `crc32 u32 LE of the rest, bytes u32 LE, entries u32 LE, entries`, each
//! entry a length varint and bytes.

use std::collections::VecDeque;

use crate::codec::{Malformed, Put, Take};
use crate::disk::Disk;
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbsg2";
const BLOCK_HEAD_BYTES: usize = 12;
/// A segment of this size is followed by the next, so that consumed ones can go.
const SEGMENT_BYTES_MAX: u64 = 8 << 20;
/// A longer block cannot have been written; a larger length is damage.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// See the module's header.
#[derive(Debug, Default)]
pub struct Fifo {
    head: Vec<u8>,
    head_at: usize,
    head_count: u32,
    segments: VecDeque<Segment>,
    tail: Vec<u8>,
    tail_count: u32,
    count: u64,
}

#[derive(Debug, Clone)]
struct Segment {
    number: u64,
    /// Bytes written.
    end: u64,
    /// Where the next block to be read begins.
    at: u64,
    /// Whether a checkpoint has made all of it durable.
    synced: bool,
    /// Entries that were not read yet.
    count: u64,
}

impl Segment {
    fn name(&self) -> String {
        format!("{DIR}/{:012}.seg", self.number)
    }
}

/// Where queues put their segments, and how large their blocks are.
pub struct FifoDisk<'a> {
    /// The disk below.
    pub disk: &'a dyn Disk,
    /// Numbers for new segments; only grows.
    pub next_number: &'a mut u64,
    /// A tail of this size becomes a block.
    pub block_bytes: usize,
    /// Names of consumed segments, to be removed once a checkpoint without them is durable.
    pub garbage: &'a mut Vec<String>,
}

/// The directory of all queue segments.
pub const DIR: &str = "state/queues";

/// The number of a segment, by its name; `None` for other files.
pub fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix(DIR)?.strip_prefix('/')?.strip_suffix(".seg")?.parse().ok()
}

/// Reads a whole segment. Every block must be whole.
pub fn verify(disk: &dyn Disk, name: &str) -> Result<()> {
    let bytes = disk.read(name)?;
    if !bytes.starts_with(MAGIC) {
        return Err(StoreError::corrupt(name, 0, "not a queue segment"));
    }
    let mut at = MAGIC.len();
    while at < bytes.len() {
        let word = |i: usize| bytes.get(at + i..at + i + 4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let end = word(4).map(|n| at + BLOCK_HEAD_BYTES + n as usize).filter(|end| *end <= bytes.len());
        let Some(end) = end else {
            return Err(StoreError::corrupt(name, at as u64, "a queue block of impossible size"));
        };
        if Some(crc32fast::hash(&bytes[at + 4..end])) != word(0) {
            return Err(StoreError::corrupt(name, at as u64, "the checksum of a queue block does not match"));
        }
        at = end;
    }
    Ok(())
}

impl Fifo {
    /// Entries in the queue.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory this queue holds.
    pub fn memory_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity() + self.segments.capacity() * size_of::<Segment>()
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: &[u8], on: &mut FifoDisk<'_>) -> Result<()> {
        self.tail.put_bytes(entry);
        self.tail_count += 1;
        self.count += 1;
        if self.tail.len() >= on.block_bytes {
            self.spill(on)?;
        }
        Ok(())
    }

    /// Takes the first entry.
    pub fn pop(&mut self, on: &mut FifoDisk<'_>) -> Result<Option<Vec<u8>>> {
        if self.head_count == 0 && !self.refill(on)? {
            return Ok(None);
        }
        let mut take = Take::new(&self.head[self.head_at..]);
        let entry = take.bytes().map_err(|Malformed(what)| StoreError::corrupt(DIR, 0, what))?.to_vec();
        self.head_at = self.head.len() - take.rest().len();
        self.head_count -= 1;
        self.count -= 1;
        if self.head_count == 0 {
            self.head = Vec::new();
            self.head_at = 0;
        }
        Ok(Some(entry))
    }

    fn spill(&mut self, on: &mut FifoDisk<'_>) -> Result<()> {
        if self.head_count == 0 && self.segments.is_empty() {
            self.tail_becomes_head();
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(MAGIC.len() + BLOCK_HEAD_BYTES + self.tail.len());
        let begun = match self.segments.back() {
            Some(last) if last.end < SEGMENT_BYTES_MAX => true,
            _ => {
                bytes.extend_from_slice(MAGIC);
                false
            }
        };
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.tail.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.tail_count.to_le_bytes());
        bytes.extend_from_slice(&self.tail);
        let crc = crc32fast::hash(&bytes[start + 4..]);
        bytes[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        if !begun {
            let number = *on.next_number;
            *on.next_number += 1;
            let at = MAGIC.len() as u64;
            self.segments.push_back(Segment { number, end: 0, at, synced: false, count: 0 });
        }
        let last = self.segments.back_mut().expect("one was just begun");
        let mut file = if begun { on.disk.open(&last.name())? } else { on.disk.create(&last.name())? };
        file.append(&bytes)?;
        last.end += bytes.len() as u64;
        last.count += u64::from(self.tail_count);
        last.synced = false;
        self.tail.clear();
        self.tail_count = 0;
        Ok(())
    }

    fn tail_becomes_head(&mut self) {
        self.head = std::mem::take(&mut self.tail);
        self.head_at = 0;
        self.head_count = std::mem::take(&mut self.tail_count);
    }

    /// Reads the next block into the head; false if the queue is empty.
    fn refill(&mut self, on: &mut FifoDisk<'_>) -> Result<bool> {
        let Some(segment) = self.segments.front_mut() else {
            self.tail_becomes_head();
            return Ok(self.head_count > 0);
        };
        let name = segment.name();
        let damaged = |what: &str| StoreError::corrupt(&name, segment.at, what);
        let file = on.disk.open(&name)?;
        // Most blocks are a little larger than their bound; one read gets them whole.
        let guess = (BLOCK_HEAD_BYTES + on.block_bytes + 512).min((segment.end - segment.at) as usize);
        let mut bytes = vec![0; guess];
        let mut got = file.read_at(segment.at, &mut bytes)?;
        if got < BLOCK_HEAD_BYTES {
            return Err(damaged("a queue segment ends early"));
        }
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let length = BLOCK_HEAD_BYTES + word(&bytes, 4) as usize;
        if length > BLOCK_BYTES_MAX || segment.at + length as u64 > segment.end {
            return Err(damaged("a queue block of impossible size"));
        }
        bytes.resize(length, 0);
        if got < length {
            got += file.read_at(segment.at + got as u64, &mut bytes[got..])?;
        }
        if got < length || crc32fast::hash(&bytes[4..]) != word(&bytes, 0) {
            return Err(damaged("the checksum of a queue block does not match"));
        }
        let entries = word(&bytes, 8);
        let left = segment.count.checked_sub(u64::from(entries)).filter(|_| entries > 0);
        segment.count = left.ok_or_else(|| damaged("a queue block of an impossible number of entries"))?;
        self.head_count = entries;
        segment.at += length as u64;
        self.head = bytes;
        self.head_at = BLOCK_HEAD_BYTES;
        if segment.at == segment.end {
            on.garbage.push(name);
            self.segments.pop_front();
        }
        Ok(true)
    }

    /// Names of the segments this queue still needs.
    #[cfg(test)]
    pub fn segment_names(&self) -> impl Iterator<Item = String> {
        self.segments.iter().map(Segment::name)
    }

    /// Names of the segments that grew since they were last asked for: a checkpoint that names them makes them durable first.
    pub fn take_unsynced(&mut self, names: &mut Vec<String>) {
        for segment in self.segments.iter_mut().rev().take_while(|s| !s.synced) {
            segment.synced = true;
            names.push(segment.name());
        }
    }

    /// Writes the queue's state into a checkpoint; `front` are entries to put before all others.
    pub fn save(&self, front: &[Vec<u8>], into: &mut Vec<u8>) {
        let mut head = Vec::new();
        for entry in front {
            head.put_bytes(entry);
        }
        head.extend_from_slice(&self.head[self.head_at..]);
        into.put_u64(front.len() as u64 + u64::from(self.head_count));
        into.put_bytes(&head);
        into.put_u64(self.segments.len() as u64);
        for segment in &self.segments {
            for n in [segment.number, segment.end, segment.at, segment.count] {
                into.put_u64(n);
            }
        }
        into.put_u64(u64::from(self.tail_count));
        into.put_bytes(&self.tail);
    }

    /// Reads what [`Fifo::save`] wrote, and cuts off what was appended to the last segment since.
    pub fn load(from: &mut Take<'_>, disk: &dyn Disk) -> Result<Fifo> {
        let mut fifo = Fifo::read(from).map_err(|Malformed(what)| StoreError::corrupt(DIR, 0, what))?;
        if let Some(last) = fifo.segments.back_mut() {
            let name = last.name();
            let length = disk.open(&name)?.len()?;
            if length < last.end {
                return Err(StoreError::corrupt(&name, length, "a queue segment ends early"));
            }
            if length > last.end {
                disk.truncate(&name, last.end)?;
            }
        }
        let ends = u64::from(fifo.head_count) + u64::from(fifo.tail_count);
        let count = fifo.segments.iter().try_fold(ends, |sum, segment| sum.checked_add(segment.count));
        fifo.count = count.ok_or_else(|| StoreError::corrupt(DIR, 0, "more entries than can be"))?;
        Ok(fifo)
    }

    fn read(from: &mut Take<'_>) -> Result<Fifo, Malformed> {
        let mut fifo = Fifo { head_count: from.u32()?, head: from.bytes()?.to_vec(), ..Fifo::default() };
        for _ in 0..from.u64()? {
            let (number, end, at, count) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?);
            if at >= end || count > end {
                return Err(Malformed("a queue segment cannot be so"));
            }
            fifo.segments.push_back(Segment { number, end, at, synced: true, count });
        }
        fifo.tail_count = from.u32()?;
        fifo.tail = from.bytes()?.to_vec();
        Ok(fifo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against a plain deque, with checkpoints and crashes at random moments.
        #[test]
        fn same_as_a_deque(ops in proptest::collection::vec((0u8..12, 0usize..40), 1..400)) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            disk.make_dir(DIR).expect("directory");
            let (mut next_number, mut garbage) = (0, Vec::new());
            let mut on =
                FifoDisk { disk: &*disk, next_number: &mut next_number, block_bytes: 100, garbage: &mut garbage };
            let mut fifo = Fifo::default();
            let mut model = VecDeque::new();
            let mut saved = Vec::new();
            fifo.save(&[], &mut saved);
            let mut saved_model = model.clone();
            for (i, (op, n)) in ops.into_iter().enumerate() {
                match op {
                    0..=5 => {
                        let entry = vec![i as u8; n];
                        fifo.push(&entry, &mut on).expect("push");
                        model.push_back(entry);
                    }
                    6..=8 => prop_assert_eq!(fifo.pop(&mut on).expect("pop"), model.pop_front()),
                    9 | 10 => {
                        saved.clear();
                        let front = vec![b"again".to_vec()];
                        model.push_front(front[0].clone());
                        fifo.save(&front, &mut saved);
                        saved_model = model.clone();
                        for name in on.garbage.drain(..) {
                            disk.remove(&name).expect("remove");
                        }
                        fifo = Fifo::load(&mut Take::new(&saved), &*disk).expect("load");
                    }
                    _ => {
                        fifo = Fifo::load(&mut Take::new(&saved), &*disk).expect("load");
                        model = saved_model.clone();
                        // What the lost history consumed is needed again.
                        on.garbage.clear();
                    }
                }
                prop_assert_eq!(fifo.len(), model.len() as u64);
                prop_assert!(fifo.memory_bytes() < 2_000, "{} bytes in memory", fifo.memory_bytes());
            }
            while let Some(entry) = fifo.pop(&mut on).expect("pop") {
                prop_assert_eq!(Some(entry), model.pop_front());
            }
            prop_assert!(model.is_empty());
            prop_assert!(fifo.segment_names().next().is_none());
        }

        /// Any flipped bit of a segment is reported, or lies in what is not read any more; never another entry.
        #[test]
        fn damage_is_found(at in 0.0f64..1.0, bit in 0u8..8) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            disk.make_dir(DIR).expect("directory");
            let (mut next_number, mut garbage) = (0, Vec::new());
            let mut on =
                FifoDisk { disk: &*disk, next_number: &mut next_number, block_bytes: 100, garbage: &mut garbage };
            let mut fifo = Fifo::default();
            (0..100u8).for_each(|i| fifo.push(&[i; 20], &mut on).expect("push"));
            let name = fifo.segment_names().next().expect("a long queue has a segment");
            let path = dir.path().join(name);
            let mut bytes = std::fs::read(&path).expect("read");
            let place = (at * bytes.len() as f64) as usize;
            bytes[place] ^= 1 << bit;
            std::fs::write(&path, bytes).expect("write");
            for i in 0..100u8 {
                match fifo.pop(&mut on) {
                    Ok(entry) => prop_assert_eq!(entry, Some(vec![i; 20])),
                    Err(StoreError::Corrupt { .. }) => return Ok(()),
                    Err(e) => panic!("{e}"),
                }
            }
            prop_assert!(place < MAGIC.len(), "a flipped bit at {place} went unnoticed");
        }
    }
}
