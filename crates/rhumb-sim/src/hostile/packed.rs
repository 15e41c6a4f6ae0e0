//! gzip, and bombs made of it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The bytes as one gzip member.
pub(super) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing into memory cannot fail.
    let _ = encoder.write_all(data);
    encoder.finish().unwrap_or_default()
}

/// A gzip stream of this text and so many megabytes of one byte. It consists of many members, all but the first the same, so
/// that it is made in no time.
pub(super) fn bomb(front: &str, byte: u8, megabytes: usize) -> Vec<u8> {
    let mut out = gzip(front.as_bytes());
    out.extend(gzip(&vec![byte; 1 << 20]).repeat(megabytes));
    out
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_bomb_is_sound_gzip() {
        let bomb = bomb("rules", b'\n', 8);
        assert!(bomb.len() < 16 << 10, "{}", bomb.len());
        let mut out = Vec::new();
        flate2::read::MultiGzDecoder::new(&bomb[..]).read_to_end(&mut out).unwrap();
        assert!(out.starts_with(b"rules\n") && out.len() == 5 + (8 << 20));
    }
}
