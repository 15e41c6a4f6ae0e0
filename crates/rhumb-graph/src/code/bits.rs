//! Bits, lowest first: the first bit of a stream is the lowest of its first byte.

/// Collects bits.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    word: u64,
    used: u32,
}

impl BitWriter {
    /// Appends the lowest `len` bits of `value`, the others of which are zero; at most 32.
    #[inline]
    pub fn put(&mut self, value: u64, len: u32) {
        debug_assert!(len <= 32 && value >> len == 0);
        self.word |= value << self.used;
        self.used += len;
        if self.used >= 32 {
            self.bytes.extend_from_slice(&(self.word as u32).to_le_bytes());
            self.word >>= 32;
            self.used -= 32;
        }
    }

    /// Bits so far.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.used)
    }

    /// All bits, filled up with zeros to whole bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let bytes = self.used.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.word.to_le_bytes()[..bytes]);
        self.bytes
    }
}

/// Reads bits. Behind the end there are zeros without end.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next byte that is not in `word`.
    next: usize,
    word: u64,
    /// How many bits of `word` are there; above them it holds what comes next, or zeros.
    left: u32,
}

impl<'a> BitReader<'a> {
    /// Reads from this bit on.
    #[inline(always)]
    pub fn at(bytes: &'a [u8], bit: u64) -> BitReader<'a> {
        let mut reader = BitReader { bytes, next: (bit / 8) as usize, word: 0, left: 0 };
        reader.refill();
        reader.drop((bit % 8) as u32);
        reader
    }

    /// The place of the next bit.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.next as u64 * 8 - u64::from(self.left)
    }

    /// Makes sure that at least 56 bits are at hand.
    #[inline(always)]
    pub fn refill(&mut self) {
        let fresh = match self.bytes.get(self.next..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(eight) => u64::from_le_bytes(*eight),
            None => self.last(),
        };
        self.word |= fresh << self.left;
        self.next += ((63 - self.left) >> 3) as usize;
        self.left |= 56;
    }

    #[cold]
    fn last(&self) -> u64 {
        let mut eight = [0; 8];
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        eight[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
        u64::from_le_bytes(eight)
    }

    /// Refills if fewer than `bits`, at most 56, are at hand.
    #[inline(always)]
    pub fn need(&mut self, bits: u32) {
        if self.left < bits {
            self.refill();
        }
    }

    /// The next bits; how many there are, the last refill tells.
    #[inline(always)]
    pub fn peek(&self) -> u64 {
        self.word
    }

    /// Moves on; never more bits than are at hand.
    #[inline(always)]
    pub fn drop(&mut self, bits: u32) {
        self.word >>= bits;
        self.left -= bits;
    }

    /// The next `len` bits, at most 32; that many must be at hand.
    #[inline(always)]
    pub fn take(&mut self, len: u32) -> u32 {
        let value = self.word & ((1 << len) - 1);
        self.drop(len);
        value as u32
    }

    /// The next `len` bits, at most 32.
    pub fn get(&mut self, len: u32) -> u32 {
        self.need(len);
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_from_any_bit_on() {
        let mut writer = BitWriter::default();
        let values: Vec<(u64, u32)> =
            (0..1000u64).map(|n| (n * 0x9e37_79b9 % (1 << (n % 33)), (n % 33) as u32)).collect();
        let mut places = Vec::new();
        for &(value, len) in &values {
            places.push(writer.len());
            writer.put(value, len);
        }
        let bytes = writer.finish();
        for first in [0, 1, 500, 999] {
            let mut reader = BitReader::at(&bytes, places[first]);
            for &(value, len) in &values[first..] {
                assert_eq!(u64::from(reader.get(len)), value);
            }
            assert_eq!(reader.get(32), 0, "zeros behind the end");
            assert_eq!(reader.get(32), 0);
        }
    }
}
