//! Rows: immutable files of rows of one size, found by their number.
//!
//! A row has an id, greater than that of the row before it, perhaps a link to a smaller id, and bytes. In a block of [`BLOCK_ROWS`] the bytes lie as they
//! are, the ids as distances from the block's first and the links as distances from their rows' ids, in as many bits as the greatest
//! takes. So a row is found without reading those before it, and an id of 8 bytes takes 2 or 3.
//!
//! The index at the end of the file holds each block's first id, place and checksum, and is all that stays in memory. The bytes are in
//! `docs/formats/state.md`. What the rows are found by stands elsewhere, for example as a prefix of the keys of a run ([`crate::runs`]).

use std::sync::Arc;

use crate::blocks::{BlockFile, BlockReader, BlockWriter, HEADER_BYTES};
use crate::disk::Disk;
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbrow";
const VERSION: u16 = 1;
/// Rows in a block.
pub const BLOCK_ROWS: usize = 128;
/// No row is larger.
pub const ROW_BYTES_MAX: usize = 1024;
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
    blocks: BlockWriter,
    row_bytes: usize,
    block: Vec<(u64, Option<u64>)>,
    bytes: Vec<u8>,
    previous: Option<u64>,
}

impl RowWriter {
    /// Starts the file `name`.
    pub fn create(disk: &dyn Disk, name: &str, row_bytes: usize) -> Result<RowWriter> {
        assert!((1..=ROW_BYTES_MAX).contains(&row_bytes), "rows are small and not empty");
        Ok(RowWriter {
            blocks: BlockWriter::create(disk, name, header(row_bytes as u16))?,
            row_bytes,
            block: Vec::with_capacity(BLOCK_ROWS),
            bytes: Vec::with_capacity(BLOCK_ROWS * row_bytes),
            previous: None,
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
        if self.block.len() == BLOCK_ROWS { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let RowWriter { blocks, block, bytes, .. } = self;
        let (Some(&(first, _)), Some(&(last, _))) = (block.first(), block.last()) else {
            return Ok(());
        };
        blocks.block(first, block.len(), |into| {
            into.append(bytes);
            let id_width = bits_of(last - first);
            pack(into, id_width, block.iter().map(|(id, _)| id - first));
            let back = |(id, link): &(u64, Option<u64>)| link.map(|l| id - l);
            let link_width = block.iter().filter_map(back).max().map_or(0, bits_of);
            if link_width > 0 {
                pack(into, 1, block.iter().map(|(_, link)| u64::from(link.is_some())));
                pack(into, link_width, block.iter().filter_map(back));
            }
            [id_width as u8, link_width as u8]
        })?;
        block.clear();
        Ok(())
    }

    /// Writes the index, makes the file durable and returns the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        self.end_block()?;
        self.blocks.finish()
    }
}

/// An open file of rows.
pub struct Rows {
    blocks: BlockFile,
    row_bytes: usize,
}

impl Rows {
    /// Opens a finished file and checks its index. Its rows must be of this size.
    pub fn open(disk: &dyn Disk, name: &str, row_bytes: usize) -> Result<Rows> {
        let rows = Rows::open_any(disk, name)?;
        if rows.row_bytes == row_bytes { Ok(rows) } else { Err(StoreError::corrupt(name, 10, "rows of another size")) }
    }

    fn open_any(disk: &dyn Disk, name: &str) -> Result<Rows> {
        let judge = |header: &[u8; HEADER_BYTES]| match u16::from_le_bytes([header[8], header[9]]) {
            VERSION => Ok(()),
            found => Err(StoreError::Version { file: name.to_string(), found: found.into(), known: VERSION.into() }),
        };
        let blocks = BlockFile::open(disk, name, MAGIC, judge)?;
        // A row's block follows from its number, so all blocks but the last are full.
        let sound = blocks.index.split_last().is_none_or(|(last, rest)| {
            let full = rest.iter().all(|b| usize::from(b.items) == BLOCK_ROWS);
            full && (1..=BLOCK_ROWS).contains(&usize::from(last.items))
        });
        if !sound {
            return Err(StoreError::corrupt(name, 0, "a block that is not full"));
        }
        let row_bytes = u16::from_le_bytes([blocks.header[10], blocks.header[11]]).into();
        Ok(Rows { blocks, row_bytes })
    }

    /// Rows in the file.
    pub fn len(&self) -> u64 {
        self.blocks.items
    }

    /// Whether there are none.
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

    /// Reads rows, fastest in ascending order.
    pub fn reader(self: &Arc<Self>) -> RowReader {
        RowReader { rows: self.clone(), blocks: BlockReader::default(), checked: None }
    }
}

/// Reads a whole file, of rows of any size, to see whether it is sound.
pub fn verify(disk: &dyn Disk, name: &str) -> Result<()> {
    let rows = Arc::new(Rows::open_any(disk, name)?);
    let mut reader = rows.reader();
    (0..rows.len()).try_for_each(|n| reader.get(n).map(|_| ()))
}

/// Reads rows by their number.
pub struct RowReader {
    rows: Arc<Rows>,
    blocks: BlockReader,
    /// The block whose checksum was compared last.
    checked: Option<usize>,
}

impl RowReader {
    /// The row with this number, which must be one of the file.
    pub fn get(&mut self, number: u64) -> Result<Row<'_>> {
        let rows = &*self.rows;
        let (block, i) = ((number / BLOCK_ROWS as u64) as usize, (number % BLOCK_ROWS as u64) as usize);
        let damaged = |what: &str| rows.blocks.damaged(block, what);
        let entry = rows.blocks.index.get(block).filter(|b| i < usize::from(b.items));
        let entry = entry.ok_or_else(|| damaged("a row that is not there"))?;
        let count = usize::from(entry.items);
        let [id_width, link_width] = entry.widths.map(u32::from);
        if id_width > 64 || link_width > 64 {
            return Err(damaged("a number of more than 64 bits"));
        }
        // 17 bytes for id and link, in bits, and one for whether there is one.
        let bytes_max = ((rows.row_bytes + 18) * BLOCK_ROWS) as u64;
        let (bytes, is_new) = self.blocks.block(&rows.blocks, block, bytes_max, BLOCKS_AHEAD / 2, BLOCKS_AHEAD)?;
        if is_new {
            self.checked = None;
        }
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
            assert!(found.is_err() && verify(&*disk, "b").is_err(), "byte {at} of {}", whole.len());
        }
    }
}
