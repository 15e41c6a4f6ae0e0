//! Files that are written once from front to back, sealed with a checksum, then read in place: those of the link graph, and the small
//! ones of the text index.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | what kind of file it is, ASCII |
//! | 4 | version of its kind, u32 little-endian |
//! | 4 | zero |
//! | n | the content |
//! | 8 | n, u64 little-endian |
//! | 4 | CRC-32 (IEEE) of all bytes before |
//! | 4 | `seal` |
//!
//! A file that lacks its end, or of which a bit has changed, is refused as a whole when it is opened: what can be read is
//! right. That costs a tenth of a second per gigabyte, and no check afterwards.

use std::ops::Deref;

use crate::disk::{Disk, DiskFile};
use crate::map::Map;
use crate::{Result, StoreError};

const HEAD_BYTES: usize = 16;
const FOOT_BYTES: usize = 16;
const SEAL: &[u8; 4] = b"seal";
const BUFFER_BYTES: usize = 256 << 10;

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The first eight bytes.
    pub magic: [u8; 8],
    /// The version that is written and read.
    pub version: u32,
}

/// A file that is being written.
pub struct SealedWriter {
    name: String,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    hasher: crc32fast::Hasher,
    len: u64,
}

impl SealedWriter {
    /// Begins the file `name`.
    pub fn create(disk: &dyn Disk, name: &str, kind: Kind) -> Result<SealedWriter> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + (4 << 10));
        buffer.extend_from_slice(&kind.magic);
        buffer.extend_from_slice(&kind.version.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        let file = disk.create(name)?;
        Ok(SealedWriter { name: name.to_string(), file, buffer, hasher: crc32fast::Hasher::new(), len: 0 })
    }

    /// Adds to the content.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Fills up with zeros to a multiple of `bytes`, so that words that follow can be read as such.
    pub fn align(&mut self, bytes: u64) -> Result<()> {
        const ZEROS: [u8; 64] = [0; 64];
        let missing = (bytes - self.len % bytes) % bytes;
        self.write(&ZEROS[..missing as usize])
    }

    /// Bytes of content so far.
    pub fn position(&self) -> u64 {
        self.len
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seals the file and makes it durable. Its bytes, all included.
    pub fn finish(mut self) -> Result<u64> {
        self.buffer.extend_from_slice(&self.len.to_le_bytes());
        self.flush()?;
        let mut end = self.hasher.clone().finalize().to_le_bytes().to_vec();
        end.extend_from_slice(SEAL);
        self.file.append(&end)?;
        self.file.sync()?;
        Ok(self.len + (HEAD_BYTES + FOOT_BYTES) as u64)
    }

    fn flush(&mut self) -> Result<()> {
        self.hasher.update(&self.buffer);
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// A whole file, read in place; it is its content.
pub struct Sealed {
    map: Map,
    name: String,
}

impl Sealed {
    /// Opens the file `name` if every byte of it is as it was written.
    pub fn open(disk: &dyn Disk, name: &str, kind: Kind) -> Result<Sealed> {
        let map = disk.map(name)?;
        let damaged = |offset: usize, what: &str| StoreError::corrupt(name, offset as u64, what);
        if map.len() < HEAD_BYTES + FOOT_BYTES {
            return Err(damaged(map.len(), "the file is cut short"));
        }
        if map[..8] != kind.magic {
            return Err(damaged(0, "this is not such a file"));
        }
        let word = |at: usize| u32::from_le_bytes(map[at..at + 4].try_into().expect("four bytes"));
        if word(8) != kind.version {
            return Err(StoreError::Version { file: name.to_string(), found: word(8), known: kind.version });
        }
        let foot = map.len() - FOOT_BYTES;
        let len = u64::from_le_bytes(map[foot..foot + 8].try_into().expect("eight bytes"));
        if map[foot + 12..] != *SEAL || len != (foot - HEAD_BYTES) as u64 {
            return Err(damaged(foot, "the file is cut short"));
        }
        if crc32fast::hash(&map[..foot + 8]) != word(foot + 8) {
            return Err(damaged(foot + 8, "the checksum does not match"));
        }
        Ok(Sealed { map, name: name.to_string() })
    }

    /// Content that is in memory, as if it came from a file of this name.
    pub fn in_memory(name: &str, content: &[u8]) -> Sealed {
        let bytes = [&[0; HEAD_BYTES][..], content, &[0; FOOT_BYTES][..]].concat();
        Sealed { map: Map::from(bytes), name: name.to_string() }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Damage found by whoever reads the content, at this byte of it.
    pub fn damaged(&self, at: usize, what: &str) -> StoreError {
        StoreError::corrupt(&self.name, (at + HEAD_BYTES) as u64, what)
    }
}

impl Deref for Sealed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[HEAD_BYTES..self.map.len() - FOOT_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::RealDisk;

    use super::*;

    const KIND: Kind = Kind { magic: *b"rhumbtst", version: 3 };

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let mut writer = SealedWriter::create(&*disk, "a", KIND).expect("created");
        writer.write(b"some content").expect("written");
        writer.align(8).expect("aligned");
        assert_eq!(writer.finish().expect("finished"), 48);
        assert_eq!(&*Sealed::open(&*disk, "a", KIND).expect("opened"), b"some content\0\0\0\0");

        let whole = disk.read("a").expect("read");
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            disk.replace("b", &flipped).expect("written");
            assert!(Sealed::open(&*disk, "b", KIND).is_err(), "bit {bit}");
        }
        for len in 0..whole.len() {
            disk.replace("b", &whole[..len]).expect("written");
            assert!(Sealed::open(&*disk, "b", KIND).is_err(), "cut to {len}");
        }
        let newer = Kind { version: 4, ..KIND };
        assert!(matches!(Sealed::open(&*disk, "a", newer), Err(StoreError::Version { found: 3, known: 4, .. })));
    }
}
