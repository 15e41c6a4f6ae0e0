//! Rows: immutable files of rows of one size, found by their number.
//!
//! A row has an id, greater than that of the row before it, perhaps a link to a smaller id, and bytes. In a block of [`BLOCK_ROWS`] the bytes lie as they
//! are, the ids as distances from the block's first and the links as distances from their rows' ids, in as many bits as the greatest
//! takes. So a row is found without reading those before it, and an id of 8 bytes takes 2 or 3.
//!
//! The index at the end of the file holds each block's first id, place and checksum, and is all that stays in memory. The bytes are in
//! `docs/formats/state.md`. What the rows are found by stands elsewhere, for example as a prefix of the keys of a run ([`crate::runs`]).

use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbrow";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;
const FOOTER_BYTES: usize = 36;
/// Rows in a block.
pub const BLOCK_ROWS: usize = 128;
/// No row is larger.
pub const ROW_BYTES_MAX: usize = 1024;
const WRITE_BYTES: usize = 256 << 10;
/// Blocks read at once when they are wanted one after the other.
const BLOCKS_AHEAD: usize = 32;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Ascends from row to row.
    pub id: u64,
    /// A smaller id.
    pub link: Option<u64>,
    /// As many as in every row of the file.
    pub bytes: &'a [u8],
}

/// Writes a file of rows.
pub struct RowWriter {
    file: Box<dyn DiskFile>,
    header: [u8; HEADER_BYTES],
    row_bytes: usize,
    buffer: Vec<u8>,
    written: u64,
    block: Vec<(u64, Option<u64>)>,
    bytes: Vec<u8>,
    index: Vec<u8>,
    previous: Option<u64>,
    rows: u64,
}

impl RowWriter {
    /// Starts the file `name`.
    pub fn create(disk: &dyn Disk, name: &str, row_bytes: usize) -> Result<RowWriter> {
        assert!((1..=ROW_BYTES_MAX).contains(&row_bytes), "rows are small and not empty");
        let header = header(row_bytes as u16);
        Ok(RowWriter {
            file: disk.create(name)?,
            header,
            row_bytes,
            buffer: header.to_vec(),
            written: 0,
            block: Vec::with_capacity(BLOCK_ROWS),
            bytes: Vec::with_capacity(BLOCK_ROWS * row_bytes),
            index: Vec::new(),
            previous: None,
            rows: 0,
        })
    }

    /// Adds the next row.
    pub fn push(&mut self, row: Row<'_>) -> Result<()> {
        assert!(self.previous.is_none_or(|p| row.id > p), "ids ascend");
        assert!(row.link.is_none_or(|l| l < row.id), "a link goes back");
        assert!(row.bytes.len() == self.row_bytes, "all rows are of one size");
        self.previous = Some(row.id);
        self.block.push((row.id, row.link));
        self.bytes.extend_from_slice(row.bytes);
        self.rows += 1;
        if self.block.len() == BLOCK_ROWS { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let (Some(&(first, _)), Some(&(last, _))) = (self.block.first(), self.block.last()) else {
            return Ok(());
        };
        let offset = self.written + self.buffer.len() as u64;
        let start = self.buffer.len();
        self.buffer.append(&mut self.bytes);
        let id_width = bits_of(last - first);
        pack(&mut self.buffer, id_width, self.block.iter().map(|(id, _)| id - first));
        let back = |(id, link): &(u64, Option<u64>)| link.map(|l| id - l);
        let link_width = self.block.iter().filter_map(back).max().map_or(0, bits_of);
        if link_width > 0 {
            pack(&mut self.buffer, 1, self.block.iter().map(|(_, link)| u64::from(link.is_some())));
            pack(&mut self.buffer, link_width, self.block.iter().filter_map(back));
        }
        let crc = crc32fast::hash(&self.buffer[start..]);
        self.index.extend_from_slice(&first.to_le_bytes());
        self.index.extend_from_slice(&offset.to_le_bytes());
        self.index.extend_from_slice(&(self.block.len() as u16).to_le_bytes());
        self.index.extend_from_slice(&[id_width as u8, link_width as u8]);
        self.index.extend_from_slice(&crc.to_le_bytes());
        self.block.clear();
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the index, makes the file durable and returns the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        self.end_block()?;
        let index_offset = self.written + self.buffer.len() as u64;
        let entries = (self.index.len() / ENTRY_BYTES) as u64;
        self.buffer.extend_from_slice(&self.index);
        for word in [index_offset, entries, self.rows] {
            self.buffer.extend_from_slice(&word.to_le_bytes());
        }
        self.buffer.extend_from_slice(&index_checksum(&self.header, &self.index).to_le_bytes());
        self.buffer.extend_from_slice(MAGIC);
        self.flush()?;
        self.file.sync()?;
        Ok(self.rows)
    }
}

/// An open file of rows.
pub struct Rows {
    name: String,
    file: Box<dyn DiskFile>,
    row_bytes: usize,
    index: Vec<BlockEntry>,
    index_offset: u64,
    rows: u64,
    bytes: u64,
}

struct BlockEntry {
    first: u64,
    offset: u64,
    rows: u16,
    id_width: u8,
    link_width: u8,
    crc: u32,
}

impl Rows {
    /// Opens a finished file and checks its index. Its rows must be of this size.
    pub fn open(disk: &dyn Disk, name: &str, row_bytes: usize) -> Result<Rows> {
        let file = disk.open(name)?;
        let bytes = file.len()?;
        let bad = |offset: u64, what: &str| StoreError::corrupt(name, offset, what);
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(bad(0, "shorter than no rows"));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        if &header[..8] != MAGIC {
            return Err(bad(0, "not a file of rows"));
        }
        let (version, size) =
            (u16::from_le_bytes([header[8], header[9]]), u16::from_le_bytes([header[10], header[11]]));
        if version != VERSION {
            return Err(StoreError::Version { file: name.to_string(), found: version.into(), known: VERSION.into() });
        }
        if usize::from(size) != row_bytes {
            return Err(bad(10, "rows of another size"));
        }
        let footer_at = bytes - FOOTER_BYTES as u64;
        let mut footer = [0; FOOTER_BYTES];
        file.read_at(footer_at, &mut footer)?;
        let (index_offset, entries, rows, crc) =
            (le64(&footer), le64(&footer[8..]), le64(&footer[16..]), le32(&footer[24..]));
        let index_bytes = entries.checked_mul(ENTRY_BYTES as u64);
        let fits = index_bytes.is_some_and(|n| index_offset.checked_add(n) == Some(footer_at));
        if &footer[28..] != MAGIC || !fits {
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
            rows: u16::from_le_bytes([e[16], e[17]]),
            id_width: e[18],
            link_width: e[19],
            crc: le32(&e[20..]),
        };
        let index: Vec<BlockEntry> = raw.chunks_exact(ENTRY_BYTES).map(entry).collect();
        // A row's block follows from its number, so all blocks but the last are full.
        let full = |b: &BlockEntry| usize::from(b.rows) == BLOCK_ROWS;
        let sound = index
            .split_last()
            .is_none_or(|(last, rest)| rest.iter().all(full) && (1..=BLOCK_ROWS).contains(&usize::from(last.rows)));
        if !sound || index.iter().map(|b| u64::from(b.rows)).sum::<u64>() != rows {
            return Err(bad(footer_at, "the footer is damaged"));
        }
        Ok(Rows { name: name.to_string(), file, row_bytes, index, index_offset, rows, bytes })
    }

    /// Rows in the file.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the index in memory.
    pub fn index_bytes(&self) -> usize {
        self.index.len() * size_of::<BlockEntry>()
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads rows, fastest in ascending order.
    pub fn reader(self: &Arc<Self>) -> RowReader {
        RowReader { rows: self.clone(), bytes: Vec::new(), from: 0, to: 0, checked: None }
    }

    fn block_end(&self, block: usize) -> u64 {
        self.index.get(block + 1).map_or(self.index_offset, |b| b.offset)
    }
}

/// Reads rows by their number.
pub struct RowReader {
    rows: Arc<Rows>,
    bytes: Vec<u8>,
    /// The blocks at hand.
    from: usize,
    to: usize,
    /// The block whose checksum was compared last.
    checked: Option<usize>,
}

impl RowReader {
    /// The row with this number, which must be one of the file.
    pub fn get(&mut self, number: u64) -> Result<Row<'_>> {
        let rows = &*self.rows;
        let (block, i) = ((number / BLOCK_ROWS as u64) as usize, (number % BLOCK_ROWS as u64) as usize);
        let damaged = |what: &str| StoreError::corrupt(&rows.name, rows.index.get(block).map_or(0, |b| b.offset), what);
        let entry = rows.index.get(block).filter(|b| i < usize::from(b.rows));
        let entry = entry.ok_or_else(|| damaged("a row that is not there"))?;
        let count = usize::from(entry.rows);
        let (id_width, link_width) = (u32::from(entry.id_width), u32::from(entry.link_width));
        if id_width > 64 || link_width > 64 {
            return Err(damaged("a number of more than 64 bits"));
        }
        if !(self.from..self.to).contains(&block) {
            let in_order = (self.to..self.to + BLOCKS_AHEAD / 2).contains(&block);
            let last = if in_order { (block + BLOCKS_AHEAD).min(rows.index.len()) } else { block + 1 } - 1;
            // 17 bytes for id and link, in bits, and one for whether there is one.
            let size_max = ((rows.row_bytes + 18) * BLOCK_ROWS * (last - block + 1)) as u64;
            let size = rows.block_end(last).checked_sub(entry.offset).filter(|&n| n <= size_max);
            self.bytes.resize(size.ok_or_else(|| damaged("a block of impossible size"))? as usize, 0);
            let got = rows.file.read_at(entry.offset, &mut self.bytes)?;
            self.bytes[got..].fill(0);
            (self.from, self.to, self.checked) = (block, last + 1, None);
        }
        let start = entry.offset.checked_sub(rows.index[self.from].offset);
        let end = rows.block_end(block).checked_sub(rows.index[self.from].offset);
        let bytes = start.zip(end).and_then(|(start, end)| self.bytes.get(start as usize..end as usize));
        let bytes = bytes.ok_or_else(|| damaged("a block of impossible size"))?;
        if self.checked != Some(block) {
            if crc32fast::hash(bytes) != entry.crc {
                return Err(damaged("the checksum of a block does not match"));
            }
            self.checked = Some(block);
        }
        let short = || damaged("a block ends early");
        let (fixed, bytes) = bytes.split_at_checked(count * rows.row_bytes).ok_or_else(short)?;
        let (ids, bytes) = bytes.split_at_checked(packed_bytes(count, id_width)).ok_or_else(short)?;
        let id =
            entry.first.checked_add(unpack(ids, i, id_width)).ok_or_else(|| damaged("an id beyond all numbers"))?;
        let mut link = None;
        if link_width > 0 {
            let (flags, links) = bytes.split_at_checked(packed_bytes(count, 1)).ok_or_else(short)?;
            if unpack(flags, i, 1) == 1 {
                let whole: u32 = flags[..i / 8].iter().map(|b| b.count_ones()).sum();
                let before = whole + (flags[i / 8] & ((1 << (i % 8)) - 1)).count_ones();
                if links.len() < packed_bytes(before as usize + 1, link_width) {
                    return Err(short());
                }
                let back = unpack(links, before as usize, link_width);
                link = Some(id.checked_sub(back).ok_or_else(|| damaged("a link to nowhere"))?);
            }
        }
        Ok(Row { id, link, bytes: &fixed[i * rows.row_bytes..(i + 1) * rows.row_bytes] })
    }
}

fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends numbers of `width` bits each.
fn pack(into: &mut Vec<u8>, width: u32, values: impl Iterator<Item = u64>) {
    let (mut bits, mut n) = (0u128, 0);
    for value in values {
        bits |= u128::from(value) << n;
        n += width;
        while n >= 8 {
            into.push(bits as u8);
            bits >>= 8;
            n -= 8;
        }
    }
    if n > 0 {
        into.push(bits as u8);
    }
}

/// Number `i` of those packed; bytes that are missing count as zero.
fn unpack(bytes: &[u8], i: usize, width: u32) -> u64 {
    let at = i * width as usize;
    let rest = bytes.get(at / 8..).unwrap_or_default();
    let mut window = [0; 16];
    let n = rest.len().min(9);
    window[..n].copy_from_slice(&rest[..n]);
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    (u128::from_le_bytes(window) >> (at % 8)) as u64 & mask
}

fn header(row_bytes: u16) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&row_bytes.to_le_bytes());
    bytes
}

fn index_checksum(header: &[u8], index: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(index);
    hasher.finalize()
}

/// The first eight bytes; zero if there are fewer, which no caller relies on.
fn le64(b: &[u8]) -> u64 {
    b.first_chunk().map_or(0, |c| u64::from_le_bytes(*c))
}

fn le32(b: &[u8]) -> u32 {
    b.first_chunk().map_or(0, |c| u32::from_le_bytes(*c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn write(disk: &dyn Disk, rows: &BTreeMap<u64, (Option<u64>, [u8; 3])>) -> Arc<Rows> {
        let mut writer = RowWriter::create(disk, "a", 3).expect("create");
        for (&id, &(link, bytes)) in rows {
            writer.push(Row { id, link, bytes: &bytes }).expect("push");
        }
        assert_eq!(writer.finish().expect("finish"), rows.len() as u64);
        Arc::new(Rows::open(disk, "a", 3).expect("open"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn rows_are_read_as_written(
            rows in proptest::collection::btree_map(any::<u64>(), (any::<Option<u64>>(), any::<[u8; 3]>()), 0..1500),
            dense: bool,
            wanted in proptest::collection::vec(any::<prop::sample::Index>(), 0..100),
        ) {
            let rows: BTreeMap<u64, (Option<u64>, [u8; 3])> = rows.into_iter().enumerate().map(|(i, (id, (link, bytes)))| {
                let id = if dense { i as u64 * 7 } else { id };
                (id, (link.filter(|_| id > 0).map(|l| l % id), bytes))
            }).collect();
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let file = write(&*disk, &rows);
            prop_assert_eq!(file.len(), rows.len() as u64);
            let mut reader = file.reader();
            let all: Vec<(u64, Option<u64>, Vec<u8>)> = (0..file.len()).map(|n| {
                let row = reader.get(n).expect("a row");
                (row.id, row.link, row.bytes.to_vec())
            }).collect();
            let expected: Vec<_> = rows.iter().map(|(&id, (link, bytes))| (id, *link, bytes.to_vec())).collect();
            prop_assert_eq!(&all, &expected);
            for n in wanted.iter().filter(|_| !all.is_empty()).map(|w| w.index(all.len())) {
                let row = reader.get(n as u64).expect("a row");
                prop_assert_eq!((row.id, row.link, row.bytes.to_vec()), all[n].clone());
            }
            prop_assert!(reader.get(file.len()).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let rows = (1..600u64).map(|n| (n * n, ((n % 3 == 0).then_some(n), [n as u8; 3]))).collect();
        write(&*disk, &rows);
        let whole = disk.read("a").expect("read");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            disk.replace("b", &bytes).expect("write");
            let found = Rows::open(&*disk, "b", 3).map(Arc::new).and_then(|file| {
                let mut reader = file.reader();
                (0..file.len()).try_for_each(|n| reader.get(n).map(|_| ()))
            });
            assert!(found.is_err(), "byte {at} of {}", whole.len());
        }
    }
}
