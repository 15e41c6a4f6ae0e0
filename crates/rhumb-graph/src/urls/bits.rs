//! Bits, the highest of a byte first.

/// Bits that are being written.
#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not yet make a byte, and a few more: the lowest `held` of it.
    word: u64,
    held: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `value`, at most 32; the others must be zero.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        self.word = self.word << count | u64::from(value);
        self.held += count;
        if self.held >= 32 {
            self.held -= 32;
            self.bytes.extend_from_slice(&((self.word >> self.held) as u32).to_be_bytes());
        }
    }

    /// Bits written so far.
    pub(super) fn bits(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.held)
    }

    /// Appends all bits of another one, which is emptied.
    pub(super) fn append(&mut self, other: &mut BitWriter) {
        for four in other.bytes.chunks(4) {
            self.put(u32::from_be_bytes(four.try_into().expect("whole words are held")), 32);
        }
        let (word, held) = (other.word, other.held);
        self.put((word & ((1 << held) - 1)) as u32, held);
        other.clear();
    }

    /// Moves what was written to the end of `into`, filled up to a whole byte, and begins anew.
    pub(super) fn drain_into(&mut self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.bytes);
        let last = (self.word << (32 - self.held)) as u32;
        into.extend_from_slice(&last.to_be_bytes()[..self.held.div_ceil(8) as usize]);
        self.clear();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        (self.word, self.held) = (0, 0);
    }
}

/// The 56 bits from bit `at` on at the upper end of a word; zeros from where `bytes` end, eight bytes before their end at
/// the earliest.
#[inline]
pub(super) fn peek(bytes: &[u8], at: u64) -> u64 {
    let byte = (at >> 3) as usize;
    match bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(eight) => u64::from_be_bytes(*eight) << (at & 7),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_as_they_went_in() {
        let pieces: Vec<(u32, u32)> = (0..400u32).map(|n| (n.wrapping_mul(0x9e37_79b9), n % 33)).collect();
        let (mut whole, mut part) = (BitWriter::default(), BitWriter::default());
        for &(value, count) in &pieces {
            let value = if count == 0 { 0 } else { value >> (32 - count) };
            part.put(value, count);
            if count == 7 {
                whole.append(&mut part);
            }
        }
        whole.append(&mut part);
        let total = whole.bits();
        let mut bytes = Vec::new();
        whole.drain_into(&mut bytes);
        assert_eq!(bytes.len() as u64, total.div_ceil(8));
        bytes.extend_from_slice(&[0; 8]);
        let mut at = 0;
        for &(value, count) in pieces.iter().filter(|(_, count)| *count > 0) {
            assert_eq!((peek(&bytes, at) >> (64 - count)) as u32, value >> (32 - count));
            at += u64::from(count);
        }
        assert_eq!(at, total);
        assert_eq!(peek(&bytes, at + 64), 0);
    }
}
