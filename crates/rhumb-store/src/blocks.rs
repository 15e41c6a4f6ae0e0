//! Files of blocks: what runs ([`crate::runs`]) and rows ([`crate::rows`]) have in common on disk.
//!
//! A header of 16 bytes, blocks, an index with an entry for each block (its first number, place, items, two widths, checksum), and a footer
//! that says where the index lies. A file is written once, from front to end, and never changed. The bytes are in `docs/formats/state.md`.
//!
//! Invariant: what is opened has a whole index, whose checksum covers the header too; a block's own checksum is compared by whoever reads it.

use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

pub(crate) const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;
const FOOTER_BYTES: usize = 36;
const WRITE_BYTES: usize = 256 << 10;

/// Writes a file of blocks.
pub(crate) struct BlockWriter {
    file: Box<dyn DiskFile>,
    header: [u8; HEADER_BYTES],
    buffer: Vec<u8>,
    written: u64,
    index: Vec<u8>,
    items: u64,
}

impl BlockWriter {
    /// Starts the file `name`. The first eight bytes of the header are its magic, which ends the file, too.
    pub fn create(disk: &dyn Disk, name: &str, header: [u8; HEADER_BYTES]) -> Result<BlockWriter> {
        let file = disk.create(name)?;
        Ok(BlockWriter { file, header, buffer: header.to_vec(), written: 0, index: Vec::new(), items: 0 })
    }

    /// Adds a block of `items`, whose bytes `put` appends; it returns the two widths.
    pub fn block(&mut self, first: u64, items: usize, put: impl FnOnce(&mut Vec<u8>) -> [u8; 2]) -> Result<()> {
        let start = self.buffer.len();
        let offset = self.written + start as u64;
        let widths = put(&mut self.buffer);
        let crc = crc32fast::hash(&self.buffer[start..]);
        self.index.extend_from_slice(&first.to_le_bytes());
        self.index.extend_from_slice(&offset.to_le_bytes());
        self.index.extend_from_slice(&(items as u16).to_le_bytes());
        self.index.extend_from_slice(&widths);
        self.index.extend_from_slice(&crc.to_le_bytes());
        self.items += items as u64;
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the index, makes the file durable and returns the number of items.
    pub fn finish(mut self) -> Result<u64> {
        let index_offset = self.written + self.buffer.len() as u64;
        let entries = (self.index.len() / ENTRY_BYTES) as u64;
        self.buffer.extend_from_slice(&self.index);
        for word in [index_offset, entries, self.items] {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        self.buffer.extend_from_slice(&index_checksum(&self.header, &self.index).to_le_bytes());
        self.buffer.extend_from_slice(&self.header[..8]);
        self.flush()?;
        self.file.sync()?;
        Ok(self.items)
    }
}

/// What the index says of a block.
pub(crate) struct BlockEntry {
    pub first: u64,
    pub offset: u64,
    pub items: u16,
    pub widths: [u8; 2],
    pub crc: u32,
}

/// An open file of blocks.
pub(crate) struct BlockFile {
    pub name: String,
    pub file: Box<dyn DiskFile>,
    pub header: [u8; HEADER_BYTES],
    pub index: Vec<BlockEntry>,
    pub items: u64,
    pub bytes: u64,
    index_offset: u64,
}

impl BlockFile {
    /// Opens a finished file and checks its index. `judge` looks at the header first, whose magic is right.
    pub fn open(
        disk: &dyn Disk,
        name: &str,
        magic: &[u8; 8],
        judge: impl FnOnce(&[u8; HEADER_BYTES]) -> Result<()>,
    ) -> Result<BlockFile> {
        let file = disk.open(name)?;
        let bytes = file.len()?;
        let bad = |offset: u64, what: &str| StoreError::corrupt(name, offset, what);
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(bad(0, "shorter than an empty file of its kind"));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        if &header[..8] != magic {
            return Err(bad(0, "not a file of its kind"));
        }
        judge(&header)?;
        let footer_at = bytes - FOOTER_BYTES as u64;
        let mut footer = [0; FOOTER_BYTES];
        file.read_at(footer_at, &mut footer)?;
        let (index_offset, entries, items, crc) =
            (le64(&footer), le64(&footer[8..]), le64(&footer[16..]), le32(&footer[24..]));
        let index_bytes = entries.checked_mul(ENTRY_BYTES as u64);
        let fits = index_bytes.is_some_and(|n| index_offset.checked_add(n) == Some(footer_at));
        if &footer[28..] != magic || !fits {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        let mut raw = vec![0; (footer_at - index_offset) as usize];
        file.read_at(index_offset, &mut raw)?;
        if index_checksum(&header, &raw) != crc {
            return Err(bad(index_offset, "the checksum of the index does not match"));
        }
        let entry = |e: &[u8]| BlockEntry {
            first: le64(e),
            offset: le64(&e[8..]),
            items: u16::from_le_bytes([e[16], e[17]]),
            widths: [e[18], e[19]],
            crc: le32(&e[20..]),
        };
        let index: Vec<BlockEntry> = raw.chunks_exact(ENTRY_BYTES).map(entry).collect();
        // The footer has no checksum of its own; what it says must follow from what has one.
        if index.iter().map(|b| u64::from(b.items)).sum::<u64>() != items {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        Ok(BlockFile { name: name.to_string(), file, header, index, items, bytes, index_offset })
    }

    /// Where a block ends.
    pub fn block_end(&self, block: usize) -> u64 {
        self.index.get(block + 1).map_or(self.index_offset, |b| b.offset)
    }

    /// Bytes of the index in memory.
    pub fn index_bytes(&self) -> usize {
        self.index.len() * size_of::<BlockEntry>()
    }

    /// The error of a damaged block.
    pub fn damaged(&self, block: usize, what: &str) -> StoreError {
        StoreError::corrupt(&self.name, self.index.get(block).map_or(0, |b| b.offset), what)
    }
}

/// Blocks at hand, several if they are wanted one after the other.
#[derive(Default)]
pub(crate) struct BlockReader {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl BlockReader {
    /// The bytes of a block that is in the index, and whether they were read just now. None is larger than `bytes_max`; if this one follows
    /// the last within `near`, as many as `ahead` are read.
    pub fn block(
        &mut self,
        of: &BlockFile,
        block: usize,
        bytes_max: u64,
        near: usize,
        ahead: usize,
    ) -> Result<(&[u8], bool)> {
        let damaged = || of.damaged(block, "a block of impossible size");
        let offset = of.index.get(block).ok_or_else(damaged)?.offset;
        let is_new = !(self.from..self.to).contains(&block);
        if is_new {
            let in_order = (self.to..self.to + near).contains(&block);
            let last = if in_order { (block + ahead).min(of.index.len()) } else { block + 1 } - 1;
            let size = of.block_end(last).checked_sub(offset).filter(|&n| n <= bytes_max * (last - block + 1) as u64);
            self.bytes.resize(size.ok_or_else(damaged)? as usize, 0);
            let got = of.file.read_at(offset, &mut self.bytes)?;
            self.bytes[got..].fill(0);
            (self.from, self.to) = (block, last + 1);
        }
        let start = offset.checked_sub(of.index[self.from].offset);
        let end = of.block_end(block).checked_sub(of.index[self.from].offset);
        let bytes = start.zip(end).and_then(|(start, end)| self.bytes.get(start as usize..end as usize));
        bytes.map(|bytes| (bytes, is_new)).ok_or_else(damaged)
    }
}

fn index_checksum(header: &[u8], index: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(index);
    hasher.finalize()
}

/// The first eight bytes; zero if there are fewer, which no caller relies on.
pub(crate) fn le64(b: &[u8]) -> u64 {
    b.first_chunk().map_or(0, |c| u64::from_le_bytes(*c))
}

pub(crate) fn le32(b: &[u8]) -> u32 {
    b.first_chunk().map_or(0, |c| u32::from_le_bytes(*c))
}
