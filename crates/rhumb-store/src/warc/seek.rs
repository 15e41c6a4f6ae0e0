//! Finding a gzip member in the middle of a file, behind damage.
//!
//! Two bytes and a method begin a member, and as well occur by chance once in sixteen million places: a place counts only if what it
//! inflates to begins like a record. So a search costs a pass over the bytes and little more.

use std::io::{self, Read, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress};

const BUFFER_BYTES: usize = 1 << 20;
/// Stored bytes that are tried; the name of a file in a member's head is seldom longer.
const TRIED_BYTES: usize = 1 << 10;
/// What a record begins with.
const RECORD_START: &[u8] = b"WARC/";

/// The offset, at `from` or behind, of the first gzip member that holds a record.
pub fn find_member<R: Read + Seek>(mut file: R, from: u64) -> io::Result<Option<u64>> {
    let mut buffer = Vec::new();
    let mut start = from;
    loop {
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        (&mut file).take(BUFFER_BYTES as u64).read_to_end(&mut buffer)?;
        let ended = buffer.len() < BUFFER_BYTES;
        // The last bytes are looked at again with what follows them.
        let until = if ended { buffer.len() } else { buffer.len() - TRIED_BYTES };
        for at in memchr::memmem::find_iter(&buffer, &[0x1f, 0x8b, 8]).take_while(|at| *at < until) {
            if begins_record(&buffer[at..(at + TRIED_BYTES).min(buffer.len())]) {
                return Ok(Some(start + at as u64));
            }
        }
        if ended {
            return Ok(None);
        }
        start += until as u64;
    }
}

fn begins_record(stored: &[u8]) -> bool {
    // The upper bits of the flags are reserved.
    if stored.get(3).is_none_or(|flags| flags & 0xe0 != 0) {
        return false;
    }
    let mut text = [0; 64];
    let mut inflate = Decompress::new_gzip(15);
    let _ = inflate.decompress(stored, &mut text, FlushDecompress::None);
    text[..inflate.total_out() as usize].starts_with(RECORD_START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
        let length = compressor.gzip_compress(text, &mut out).expect("bound is kept");
        out.truncate(length);
        out
    }

    #[test]
    fn members_are_found_behind_damage() {
        let (record, other) = (gzip(b"WARC/1.1\r\nWARC-Type: response\r\n"), gzip(b"no record"));
        // The pretender lies across two reads.
        for padding in [0, 7, BUFFER_BYTES - 5, BUFFER_BYTES - 1, 2 * BUFFER_BYTES] {
            let file = [&vec![0x1f; padding][..], &[0x1f, 0x8b, 8, 0xff], &other, &[0x1f, 0x8b, 8], &record].concat();
            let expected = (file.len() - record.len()) as u64;
            assert_eq!(find_member(Cursor::new(&file), 0).expect("read"), Some(expected), "{padding}");
            assert_eq!(find_member(Cursor::new(&file), expected).expect("read"), Some(expected));
            assert_eq!(find_member(Cursor::new(&file), expected + 1).expect("read"), None);
        }
    }
}
