//! ZIP, written by hand: entries stored as they are, one after the other, with 64-bit sizes where they are needed.
//!
//! The length of an entry is known before its bytes; its checksum is not, and is put into the entry's header afterwards. What the
//! directory at the end must tell is kept in the export's state, so that an interrupted file is gone on with behind its last whole entry.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::Result;
use crate::place::Output;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
/// Names are in UTF-8.
const FLAGS: u16 = 1 << 11;
/// Where in a local header the checksum stands.
const CRC_AT: u64 = 14;
/// Numbers from here on need the 64-bit form.
const BIG: u64 = u32::MAX as u64;

/// An entry that is whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
    pub bytes: u64,
    crc: u32,
    offset: u64,
    /// `sha256:` and the digest in hexadecimal digits.
    pub hash: String,
}

/// An entry being written.
pub(crate) struct Adding {
    name: String,
    bytes: u64,
    offset: u64,
    crc: crc32fast::Hasher,
    hash: Sha256,
}

/// `sha256:` and the digest of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    told(Sha256::new_with_prefix(bytes))
}

fn told(hash: Sha256) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&hash.finalize()))
}

/// Fixed fields, little end first.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u16(mut self, n: u16) -> Fields {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    fn u32(mut self, n: u32) -> Fields {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    fn u64(mut self, n: u64) -> Fields {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    /// The low half, or all ones where the number stands elsewhere.
    fn small(self, n: u64) -> Fields {
        self.u32(n.min(BIG) as u32)
    }

    fn bytes(mut self, bytes: &[u8]) -> Fields {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// The numbers that do not fit their fields.
fn extra64(numbers: &[u64]) -> Vec<u8> {
    let big: Vec<u64> = numbers.iter().copied().filter(|n| *n >= BIG).collect();
    if big.is_empty() {
        return Vec::new();
    }
    let fields = Fields::default().u16(1).u16(8 * big.len() as u16);
    big.into_iter().fold(fields, Fields::u64).0
}

/// Version a reader must know: 4.5 for 64-bit sizes, otherwise 2.0.
fn version(extra: &[u8]) -> u16 {
    if extra.is_empty() { 20 } else { 45 }
}

impl Adding {
    /// Begins an entry of so many bytes. `time` is that of the archive, in the form of MS-DOS.
    pub(crate) fn begin(name: &str, bytes: u64, time: u32, out: &mut Output) -> Result<Adding> {
        let offset = out.position;
        let extra = extra64(&[bytes, bytes]);
        let header = Fields::default()
            .u32(LOCAL)
            .u16(version(&extra))
            .u16(FLAGS)
            .u16(0)
            .u32(time)
            .u32(0)
            .small(bytes)
            .small(bytes)
            .u16(name.len() as u16)
            .u16(extra.len() as u16)
            .bytes(name.as_bytes())
            .bytes(&extra);
        out.write(&header.0)?;
        Ok(Adding { name: name.to_string(), bytes, offset, crc: crc32fast::Hasher::new(), hash: Sha256::new() })
    }

    /// Adds bytes to it.
    pub(crate) fn write(&mut self, bytes: &[u8], out: &mut Output) -> Result<()> {
        self.crc.update(bytes);
        self.hash.update(bytes);
        out.write(bytes)
    }

    /// Ends it. As many bytes must have been written as were announced.
    pub(crate) fn end(self, out: &mut Output) -> Result<Entry> {
        let crc = self.crc.finalize();
        out.write_at(self.offset + CRC_AT, &crc.to_le_bytes())?;
        Ok(Entry { name: self.name, bytes: self.bytes, crc, offset: self.offset, hash: told(self.hash) })
    }
}

/// A whole entry from memory.
pub(crate) fn add(name: &str, bytes: &[u8], time: u32, out: &mut Output) -> Result<Entry> {
    let mut adding = Adding::begin(name, bytes.len() as u64, time, out)?;
    adding.write(bytes, out)?;
    adding.end(out)
}

/// Writes the directory, and with it the end of the file.
pub(crate) fn finish(entries: &[Entry], time: u32, out: &mut Output) -> Result<()> {
    let start = out.position;
    for entry in entries {
        let extra = extra64(&[entry.bytes, entry.bytes, entry.offset]);
        let header = Fields::default()
            .u32(CENTRAL)
            .u16(version(&extra) | 3 << 8)
            .u16(version(&extra))
            .u16(FLAGS)
            .u16(0)
            .u32(time)
            .u32(entry.crc)
            .small(entry.bytes)
            .small(entry.bytes)
            .u16(entry.name.len() as u16)
            .u16(extra.len() as u16)
            .u16(0)
            .u16(0)
            .u16(0)
            .u32(0o100_644 << 16)
            .small(entry.offset)
            .bytes(entry.name.as_bytes())
            .bytes(&extra);
        out.write(&header.0)?;
    }
    let (end, count) = (out.position, entries.len() as u64);
    let bytes = end - start;
    let many = count >= u64::from(u16::MAX);
    if many || bytes >= BIG || start >= BIG {
        let end64 = Fields::default().u32(END64).u64(44).u16(45 | 3 << 8).u16(45).u32(0).u32(0);
        let end64 = end64.u64(count).u64(count).u64(bytes).u64(start);
        out.write(&end64.u32(LOCATOR64).u32(0).u64(end).u32(1).0)?;
    }
    let count = count.min(u64::from(u16::MAX)) as u16;
    let last = Fields::default().u32(END).u16(0).u16(0).u16(count).u16(count).small(bytes).small(start).u16(0);
    out.write(&last.0)
}

/// A time in the form of MS-DOS: seconds by two, in UTC.
pub(crate) fn dos_time(at: rhumb_store::Timestamp) -> u32 {
    let (year, month, day, hour, minute, second, _) = at.civil();
    let date = year.saturating_sub(1980).min(127) << 9 | month << 5 | day;
    (date << 16 | hour << 11 | minute << 5 | (second / 2)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_stand_behind() {
        assert!(extra64(&[5, BIG - 1]).is_empty());
        let extra = extra64(&[5, BIG, 1 << 40]);
        assert_eq!(extra[..4], [1, 0, 16, 0]);
        assert_eq!(extra[4..12], BIG.to_le_bytes());
        assert_eq!(extra[12..], (1u64 << 40).to_le_bytes());
    }

    #[test]
    fn times() {
        let check = |ms, expected: u32| assert_eq!(dos_time(rhumb_store::Timestamp(ms)), expected);
        check(1_709_164_800_123, (44 << 9 | 2 << 5 | 29) << 16);
        check(1_709_164_800_123 + 3_723_000, (44 << 9 | 2 << 5 | 29) << 16 | 1 << 11 | 2 << 5 | 1);
    }
}
