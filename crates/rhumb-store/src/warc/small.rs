//! Gzip members for small records, made quickly.
//!
//! libdeflate clears 128 KB of tables and builds Huffman codes for every member, some 10 µs for the 700 bytes of a request
//! or metadata record, and each page has both. This encoder has deflate's fixed codes (RFC 1951, section 3.2.6) and a
//! table of 2 KB. Measured, hashing included: the two records of a page 8 µs instead of 20, for 60 bytes more each.
//! Anything longer than `BYTES_MAX` is libdeflate's, which gains with length.

/// The longest record made here.
pub(crate) const BYTES_MAX: usize = 2 << 10;

const HASH_BITS: u32 = 10;
const MATCH_MIN: usize = 4;
const MATCH_MAX: usize = 258;

/// Code and bit count of the fixed alphabet of literals and lengths, bits in the order they are written.
const FIXED: [(u16, u8); 288] = {
    let mut table = [(0, 0); 288];
    let mut symbol = 0_u16;
    while symbol < 288 {
        let (code, bits): (u16, u8) = match symbol {
            0..=143 => (0x30 + symbol, 8),
            144..=255 => (0x190 + symbol - 144, 9),
            256..=279 => (symbol - 256, 7),
            _ => (0xc0 + symbol - 280, 8),
        };
        table[symbol as usize] = (code.reverse_bits() >> (16 - bits), bits);
        symbol += 1;
    }
    table
};

/// Appends `text` to `out` as one gzip member.
pub(crate) fn gzip_into(text: &[u8], out: &mut Vec<u8>) {
    debug_assert!(text.len() <= BYTES_MAX, "offsets are kept in 16 bits");
    out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
    let mut bits = Bits { out, held: 0, count: 0 };
    // One block, the last, of fixed codes.
    bits.put(0b011, 3);
    let mut heads = [u16::MAX; 1 << HASH_BITS];
    let mut at = 0;
    while at < text.len() {
        let Some(word) = text[at..].first_chunk::<4>() else {
            bits.symbol(usize::from(text[at]));
            at += 1;
            continue;
        };
        let slot = (u32::from_le_bytes(*word).wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        let candidate = usize::from(std::mem::replace(&mut heads[slot], at as u16));
        let length = if candidate < at { match_length(&text[candidate..], &text[at..]) } else { 0 };
        if length >= MATCH_MIN {
            bits.length(length);
            bits.distance(at - candidate);
            at += length;
        } else {
            bits.symbol(usize::from(text[at]));
            at += 1;
        }
    }
    bits.symbol(256);
    bits.finish();
    out.extend_from_slice(&crc32fast::hash(text).to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
}

fn match_length(earlier: &[u8], here: &[u8]) -> usize {
    earlier.iter().zip(here).take(MATCH_MAX).take_while(|(a, b)| a == b).count()
}

/// Bits on their way into bytes, lowest first.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits<'_> {
    fn put(&mut self, value: u32, count: u32) {
        self.held |= u64::from(value) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.out.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    fn symbol(&mut self, symbol: usize) {
        let (code, bits) = FIXED[symbol];
        self.put(u32::from(code), u32::from(bits));
    }

    /// Lengths 3 to 10 have a code each; from there on every four codes take one bit more; 258 has its own.
    fn length(&mut self, length: usize) {
        let value = length as u32 - 3;
        if length == MATCH_MAX {
            return self.symbol(285);
        }
        if value < 8 {
            return self.symbol(257 + value as usize);
        }
        let extra = value.ilog2() - 2;
        self.symbol((257 + 4 * extra + (value >> extra)) as usize);
        self.put(value & ((1 << extra) - 1), extra);
    }

    /// Distances 1 to 4 have a code each; from there on every two codes take one bit more. Codes are five bits, reversed.
    fn distance(&mut self, distance: usize) {
        let value = distance as u32 - 1;
        let extra = if value < 4 { 0 } else { value.ilog2() - 1 };
        let code = 2 * extra + (value >> extra);
        self.put(code.reverse_bits() >> 27, 5);
        self.put(value & ((1 << extra) - 1), extra);
    }

    fn finish(self) {
        let bytes = self.held.to_le_bytes();
        self.out.extend_from_slice(&bytes[..self.count.div_ceil(8) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn comes_back(text: &[u8]) {
        let (mut member, mut back) = (Vec::new(), Vec::new());
        gzip_into(text, &mut member);
        flate2::read::GzDecoder::new(&member[..]).read_to_end(&mut back).expect("a whole member");
        assert_eq!(back, text);
    }

    #[test]
    fn every_length_and_distance() {
        for length in 0..=300 {
            comes_back(&vec![b'a'; length]);
        }
        for gap in 0..1_700 {
            let filler: Vec<u8> =
                (0..gap as u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()).take(gap).collect();
            comes_back(&[b"a phrase to find again", &filler[..], b"a phrase to find again"].concat());
        }
        comes_back(&[(0..=255).collect::<Vec<u8>>(), (0..=255).rev().collect()].concat());
    }

    proptest! {
        #[test]
        fn anything_comes_back(text in prop::collection::vec(0..20_u8, 0..BYTES_MAX), wide in prop::collection::vec(any::<u8>(), 0..500)) {
            comes_back(&text);
            comes_back(&wide);
        }
    }
}
