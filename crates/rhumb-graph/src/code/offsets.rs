//! Where groups of rows begin: ascending numbers after Elias and Fano, two bits and a bit for every halving of their density.
//!
//! Bytes: for every [`SAMPLE`]th number the place of its one among the upper bits (u32 little-endian), then the upper bits, then the lower
//! bits, each as whole 64-bit words, little-endian. Number i has its upper part u as a one at place u + i.

use super::bits::{BitReader, BitWriter};

const SAMPLE: usize = 64;

/// Bytes that `count` numbers below `end` take.
fn layout(count: usize, end: u64) -> Layout {
    let lower = if count == 0 { 0 } else { (end / count as u64).checked_ilog2().unwrap_or(0).min(32) };
    let samples = count.div_ceil(SAMPLE) * 4;
    let upper = (count as u64 + (end >> lower) + 1).div_ceil(64) * 8;
    let lowers = (count as u64 * u64::from(lower)).div_ceil(64) * 8;
    Layout { lower, upper_at: samples, lower_at: samples + upper as usize, len: samples + (upper + lowers) as usize }
}

struct Layout {
    lower: u32,
    upper_at: usize,
    lower_at: usize,
    len: usize,
}

/// The bytes for these numbers, which ascend and are at most `end`.
pub fn write(numbers: &[u64], end: u64) -> Vec<u8> {
    let layout = layout(numbers.len(), end);
    let mut samples = Vec::new();
    let mut upper = vec![0u8; layout.lower_at - layout.upper_at];
    let mut lower = BitWriter::default();
    for (n, &number) in numbers.iter().enumerate() {
        let place = (number >> layout.lower) as usize + n;
        if n % SAMPLE == 0 {
            samples.extend_from_slice(&(place as u32).to_le_bytes());
        }
        upper[place / 8] |= 1 << (place % 8);
        lower.put(number & ((1 << layout.lower) - 1), layout.lower);
    }
    let mut bytes = samples;
    bytes.extend_from_slice(&upper);
    bytes.extend_from_slice(&lower.finish());
    bytes.resize(layout.len, 0);
    bytes
}

/// How to find one of them.
#[derive(Clone, Copy)]
pub struct Offsets {
    count: usize,
    lower: u32,
    upper_at: usize,
    lower_at: usize,
    /// Bytes they take.
    pub len: usize,
}

impl Offsets {
    /// For so many numbers below `end`.
    pub fn new(count: usize, end: u64) -> Offsets {
        let Layout { lower, upper_at, lower_at, len } = layout(count, end);
        Offsets { count, lower, upper_at, lower_at, len }
    }

    /// Number `n`; 0 if it is not there. `bytes` are theirs.
    #[inline]
    pub fn get(&self, bytes: &[u8], n: usize) -> u64 {
        if n >= self.count || bytes.len() < self.len {
            return 0;
        }
        let (head, lowers) = bytes.split_at(self.lower_at);
        let (samples, uppers) = head.split_at(self.upper_at);
        let sample = samples.get(n / SAMPLE * 4..).and_then(|s| s.first_chunk()).map_or(0, |s| u32::from_le_bytes(*s));
        let mut word_at = sample as usize / 64;
        let word = |at: usize| uppers.get(at * 8..).and_then(|w| w.first_chunk()).map(|w| u64::from_le_bytes(*w));
        let mut left = (n % SAMPLE) as u64;
        let mut ones = word(word_at).unwrap_or(0) & (u64::MAX << (sample % 64));
        let mut sums = byte_sums(ones);
        while sums >> 56 <= left {
            left -= sums >> 56;
            word_at += 1;
            let Some(next) = word(word_at) else { return 0 };
            ones = next;
            sums = byte_sums(ones);
        }
        let place = word_at * 64 + select(ones, sums, left) as usize;
        let upper = (place as u64).saturating_sub(n as u64);
        if self.lower == 0 {
            return upper;
        }
        upper << self.lower | u64::from(BitReader::at(lowers, n as u64 * u64::from(self.lower)).get(self.lower))
    }
}

const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// In every byte: how many ones there are in it and those below. Made of plain operations, since not every processor that we are
/// built for has one that counts.
#[inline]
fn byte_sums(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(EACH_BYTE)
}

/// The place of one number `n` of a word that has more; `sums` are its [`byte_sums`].
#[inline]
fn select(word: u64, sums: u64, n: u64) -> u32 {
    // A byte's highest bit stays if no more than n ones are in it and below: so many bytes come before the one we look for.
    let before = ((((n | 0x80) * EACH_BYTE) - sums) >> 7) & EACH_BYTE;
    let place = (before.wrapping_mul(EACH_BYTE) >> 56) as u32 * 8;
    let mut byte = word >> (place & 63);
    for _ in 0..n - ((sums << 8) >> (place & 63) & 0xff) {
        byte &= byte.wrapping_sub(1);
    }
    place + byte.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_is_found(gaps in proptest::collection::vec(prop_oneof![0u64..100, 0u64..100_000], 0..500), rest in 0u64..1000) {
            let mut numbers = Vec::new();
            let mut at = 0;
            for gap in gaps {
                at += gap;
                numbers.push(at);
            }
            let end = at + rest;
            let bytes = write(&numbers, end);
            let offsets = Offsets::new(numbers.len(), end);
            prop_assert_eq!(bytes.len(), offsets.len);
            for (n, &number) in numbers.iter().enumerate() {
                prop_assert_eq!(offsets.get(&bytes, n), number);
            }
            prop_assert_eq!(offsets.get(&bytes, numbers.len()), 0);
        }

        #[test]
        fn nonsense_does_not_trip(bytes in proptest::collection::vec(any::<u8>(), 0..300), count in 0usize..100, end in 0u64..10_000, n in 0usize..100) {
            Offsets::new(count, end).get(&bytes, n);
        }
    }
}
