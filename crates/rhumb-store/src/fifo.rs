//! A first-in-first-out queue of byte strings of which only the two ends are in memory.
//!
//! Entries gather in the tail. A full tail becomes an immutable segment file, or, when nothing lies
//! between, the head itself, so that a short queue never touches the disk. Popping reads one segment
//! at a time. A consumed segment is not deleted but handed out by [`Fifo::take_garbage`]: until the next
//! checkpoint is durable a crash may need it again.
//!
//! Segment file: `magic "rhumbseg", crc32 u32 LE of the rest, entries`, each entry a length varint and bytes.

use std::collections::VecDeque;

use crate::codec::{Malformed, Put, Take};
use crate::disk::Disk;
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbseg";
const HEADER_BYTES: usize = 12;

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
    garbage: Vec<String>,
}

#[derive(Debug, Clone)]
struct Segment {
    name: String,
    count: u32,
}

/// Where a queue puts its segments, and how large they are.
pub struct FifoDisk<'a> {
    /// The disk below.
    pub disk: &'a dyn Disk,
    /// Names for new segments: a directory and a number that only grows.
    pub next_name: &'a mut u64,
    /// A tail of this size becomes a segment.
    pub chunk_bytes: usize,
}

/// The directory of all queue segments.
pub const DIR: &str = "state/queues";

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
        self.head.capacity() + self.tail.capacity()
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: &[u8], on: &mut FifoDisk<'_>) -> Result<()> {
        self.tail.put_bytes(entry);
        self.tail_count += 1;
        self.count += 1;
        if self.tail.len() >= on.chunk_bytes {
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
        let name = format!("{DIR}/{:012}.seg", *on.next_name);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.tail.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&crc32fast::hash(&self.tail).to_le_bytes());
        bytes.extend_from_slice(&self.tail);
        on.disk.create(&name)?.append(&bytes)?;
        *on.next_name += 1;
        self.segments.push_back(Segment { name, count: self.tail_count });
        self.tail.clear();
        self.tail_count = 0;
        Ok(())
    }

    fn tail_becomes_head(&mut self) {
        self.head = std::mem::take(&mut self.tail);
        self.head_at = 0;
        self.head_count = std::mem::take(&mut self.tail_count);
    }

    fn refill(&mut self, on: &mut FifoDisk<'_>) -> Result<bool> {
        let Some(segment) = self.segments.front().cloned() else {
            self.tail_becomes_head();
            return Ok(self.head_count > 0);
        };
        let bytes = on.disk.read(&segment.name)?;
        let sound = bytes.len() >= HEADER_BYTES
            && &bytes[..8] == MAGIC
            && crc32fast::hash(&bytes[HEADER_BYTES..]).to_le_bytes() == bytes[8..12];
        if !sound {
            return Err(StoreError::corrupt(&segment.name, 0, "the checksum of a queue segment does not match"));
        }
        self.segments.pop_front();
        self.head = bytes;
        self.head_at = HEADER_BYTES;
        self.head_count = segment.count;
        self.garbage.push(segment.name);
        Ok(true)
    }

    /// Names of consumed segments, to be removed once a checkpoint without them is durable.
    pub fn take_garbage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.garbage)
    }

    /// Names of the segments this queue still needs.
    pub fn segment_names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map(|s| s.name.as_str())
    }

    /// Makes the segments durable; called before a checkpoint names them.
    pub fn sync(&self, disk: &dyn Disk) -> Result<()> {
        self.segments.iter().try_for_each(|s| disk.open(&s.name)?.sync())
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
            into.put_str(&segment.name);
            into.put_u64(u64::from(segment.count));
        }
        into.put_u64(u64::from(self.tail_count));
        into.put_bytes(&self.tail);
    }

    /// Reads what [`Fifo::save`] wrote.
    pub fn load(from: &mut Take<'_>) -> Result<Fifo, Malformed> {
        let mut fifo = Fifo { head_count: from.u32()?, head: from.bytes()?.to_vec(), ..Fifo::default() };
        for _ in 0..from.u64()? {
            fifo.segments.push_back(Segment { name: from.str()?.to_string(), count: from.u32()? });
        }
        fifo.tail_count = from.u32()?;
        fifo.tail = from.bytes()?.to_vec();
        let between: u64 = fifo.segments.iter().map(|s| u64::from(s.count)).sum();
        fifo.count = u64::from(fifo.head_count) + between + u64::from(fifo.tail_count);
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

        /// Against a plain deque, with a save and load at random moments.
        #[test]
        fn same_as_a_deque(ops in proptest::collection::vec((0u8..10, 0usize..40), 1..400)) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            disk.make_dir(DIR).expect("directory");
            let mut next_name = 0;
            let mut on = FifoDisk { disk: &*disk, next_name: &mut next_name, chunk_bytes: 100 };
            let mut fifo = Fifo::default();
            let mut model = VecDeque::new();
            for (i, (op, n)) in ops.into_iter().enumerate() {
                match op {
                    0..=5 => {
                        let entry = vec![i as u8; n];
                        fifo.push(&entry, &mut on).expect("push");
                        model.push_back(entry);
                    }
                    6..=8 => prop_assert_eq!(fifo.pop(&mut on).expect("pop"), model.pop_front()),
                    _ => {
                        let mut bytes = Vec::new();
                        let front = vec![b"again".to_vec()];
                        model.push_front(front[0].clone());
                        fifo.save(&front, &mut bytes);
                        fifo = Fifo::load(&mut Take::new(&bytes)).expect("load");
                    }
                }
                prop_assert_eq!(fifo.len(), model.len() as u64);
            }
            while let Some(entry) = fifo.pop(&mut on).expect("pop") {
                prop_assert_eq!(Some(entry), model.pop_front());
            }
            prop_assert!(model.is_empty());
        }
    }
}
