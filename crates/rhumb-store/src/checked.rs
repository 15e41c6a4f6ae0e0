//! Large files that are written once and read in place, a piece here and a piece there: each block of 64 KiB has a checksum, which is
//! looked at when a block is read for the first time.
//!
//! | bytes | what |
//! | --- | --- |
//! | n | the content |
//! | 4 each | CRC-32 (IEEE) of each 64 KiB of it, u32 little-endian |
//! | 8 | n, u64 little-endian |
//! | 4 | CRC-32 of the checksums and n |
//! | 4 | `blks` |
//!
//! A file that lacks its end is refused when it is opened; a block of which a bit has changed is refused when it is read. So opening costs
//! next to nothing however large the file is, and nothing that is read is wrong ([`crate::sealed`] does all of it when opening).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{Disk, DiskFile};
use crate::map::Map;
use crate::{Result, StoreError};

const BLOCK_BYTES: usize = 64 << 10;
const FOOT_BYTES: usize = 16;
const SEAL: &[u8; 4] = b"blks";
const BUFFER_BYTES: usize = 4 * BLOCK_BYTES;

/// A file that is being written.
pub struct CheckedWriter {
    file: Box<dyn DiskFile>,
    /// What is not written yet; its first byte begins a block.
    buffer: Vec<u8>,
    sums: Vec<u8>,
    len: u64,
}

impl CheckedWriter {
    /// Begins the file `name`.
    pub fn create(disk: &dyn Disk, name: &str) -> Result<CheckedWriter> {
        Ok(CheckedWriter { file: disk.create(name)?, buffer: Vec::new(), sums: Vec::new(), len: 0 })
    }

    /// Adds to the content.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            let whole = self.buffer.len() / BLOCK_BYTES * BLOCK_BYTES;
            self.put(whole)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: usize) -> Result<()> {
        for block in self.buffer[..bytes].chunks(BLOCK_BYTES) {
            self.sums.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
        }
        self.file.append(&self.buffer[..bytes])?;
        self.buffer.drain(..bytes);
        Ok(())
    }

    /// Seals the file and makes it durable. Its bytes, all included.
    pub fn finish(mut self) -> Result<u64> {
        self.put(self.buffer.len())?;
        let mut foot = std::mem::take(&mut self.sums);
        foot.extend_from_slice(&self.len.to_le_bytes());
        foot.extend_from_slice(&crc32fast::hash(&foot).to_le_bytes());
        foot.extend_from_slice(SEAL);
        self.file.append(&foot)?;
        self.file.sync()?;
        Ok(self.len + foot.len() as u64)
    }
}

/// What is known of a file's blocks.
#[derive(Debug)]
pub struct Checked {
    name: String,
    len: usize,
    sums: Vec<u32>,
    /// A bit for each block that was found to be as it was written.
    good: Vec<AtomicU64>,
}

impl Checked {
    /// Opens the file `name`: its bytes, of which the first [`Checked::len`] are the content, and what to check them with.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<(Map, Arc<Checked>)> {
        let map = disk.map(name)?;
        let damaged = |offset: usize, what: &str| StoreError::corrupt(name, offset as u64, what);
        let Some(foot) = map.len().checked_sub(FOOT_BYTES).filter(|at| map[at + 12..] == *SEAL) else {
            return Err(damaged(map.len(), "the file is cut short"));
        };
        let word = |at: usize| u32::from_le_bytes(map[at..at + 4].try_into().expect("four bytes"));
        let len = u64::from_le_bytes(map[foot..foot + 8].try_into().expect("eight bytes"));
        let len = usize::try_from(len).ok().filter(|len| *len <= foot);
        let len = len.ok_or_else(|| damaged(foot, "the length is impossible"))?;
        let blocks = len.div_ceil(BLOCK_BYTES);
        if (foot - len) != blocks * 4 || crc32fast::hash(&map[len..foot + 8]) != word(foot + 8) {
            return Err(damaged(len, "the checksums do not match"));
        }
        let sums = (0..blocks).map(|block| word(len + 4 * block)).collect();
        let good = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok((map, Arc::new(Checked { name: name.to_string(), len, sums, good })))
    }

    /// Bytes of content.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes sure that these bytes of `content` are as they were written. Whoever comes second need not look again.
    pub fn check(&self, content: &[u8], range: Range<usize>) -> Result<()> {
        if range.start > range.end || range.end > self.len {
            return Err(StoreError::corrupt(&self.name, range.end as u64, "what was to be read is not there"));
        }
        if range.is_empty() {
            return Ok(());
        }
        for block in range.start / BLOCK_BYTES..=(range.end - 1) / BLOCK_BYTES {
            let (word, bit) = (&self.good[block / 64], 1 << (block % 64));
            if word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            let from = block * BLOCK_BYTES;
            let bytes = &content[from..self.len.min(from + BLOCK_BYTES)];
            if crc32fast::hash(bytes) != self.sums[block] {
                return Err(StoreError::corrupt(&self.name, from as u64, "the checksum does not match"));
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes sure of all of it.
    pub fn check_all(&self, content: &[u8]) -> Result<()> {
        self.check(content, 0..self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn written(disk: &dyn Disk, name: &str, len: usize) -> Vec<u8> {
        let content: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
        let mut writer = CheckedWriter::create(disk, name).expect("created");
        for piece in content.chunks(70_001) {
            writer.write(piece).expect("written");
        }
        let bytes = writer.finish().expect("finished");
        assert_eq!(disk.read(name).expect("read").len() as u64, bytes);
        content
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        for len in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, BUFFER_BYTES, 10 * BLOCK_BYTES + 5] {
            let content = written(&*disk, "a", len);
            let (map, checked) = Checked::open(&*disk, "a").expect("opened");
            checked.check_all(&map).expect("all as it was");
            assert_eq!((&map[..checked.len()], checked.len()), (&content[..], len));
            assert!(checked.check(&map, len..len + 1).is_err());
        }
    }

    #[test]
    fn a_flipped_bit_is_found_where_it_is_and_nowhere_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let len = 3 * BLOCK_BYTES + 100;
        written(&*disk, "a", len);
        let whole = disk.read("a").expect("read");
        for at in [0, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 9, len - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            disk.replace("b", &flipped).expect("written");
            let (map, checked) = Checked::open(&*disk, "b").expect("opened");
            let block = at / BLOCK_BYTES;
            for other in 0..4 {
                let from = other * BLOCK_BYTES;
                assert_eq!(checked.check(&map, from..from + 1).is_err(), other == block, "byte {at}, block {other}");
            }
        }
        for at in len..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            disk.replace("b", &flipped).expect("written");
            assert!(Checked::open(&*disk, "b").is_err(), "byte {at}");
        }
        for len in [0, 5, len, whole.len() - 1] {
            disk.replace("b", &whole[..len]).expect("written");
            assert!(Checked::open(&*disk, "b").is_err(), "cut to {len}");
        }
    }
}
