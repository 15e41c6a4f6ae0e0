//! Bits of a file, one after the other: read and written most significant first.
//!
//! Files of the other order are read as if they were of this one, by turning round every byte as it comes in and every number
//! as it goes out.

use std::io::{self, Read, Write};

const BUFFER_BYTES: usize = 128 << 10;

/// The most bits that can be asked for at once: what a word surely holds after it was filled.
pub const BITS_MAX: u32 = 56;

/// Why there is no next number.
#[derive(Debug)]
pub enum Fault {
    /// The file ends within a number.
    CutShort,
    /// The number is larger than any that a graph holds.
    Absurd,
    /// The system cannot read.
    Io(io::ErrorKind),
}

/// Reads bits.
pub struct BitReader<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    little: bool,
    /// The next bits, the first of them highest; all below the valid ones are zero.
    word: u64,
    valid: u32,
    /// Bits that went from the buffer into the word.
    taken: u64,
}

impl<R: Read> BitReader<R> {
    /// Reads from the start of `source`; `little` if the first bit of a byte is its least significant.
    pub fn new(source: R, little: bool) -> BitReader<R> {
        BitReader { source, buffer: Vec::new(), at: 0, ended: false, little, word: 0, valid: 0, taken: 0 }
    }

    /// Bits read so far.
    pub fn position(&self) -> u64 {
        self.taken - u64::from(self.valid)
    }

    /// Whether the first bit of a byte is its least significant.
    pub fn little(&self) -> bool {
        self.little
    }

    /// Makes the word hold [`BITS_MAX`] bits, or all that are left.
    #[inline]
    fn fill(&mut self) -> Result<(), Fault> {
        if self.valid >= BITS_MAX {
            return Ok(());
        }
        if let Some(bytes) = self.buffer.get(self.at..self.at + 8) {
            let next = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
            let bytes = (63 - self.valid) >> 3;
            let bits = self.valid + 8 * bytes;
            self.word |= (next >> self.valid) & (!0 << (64 - bits));
            self.at += bytes as usize;
            self.taken += u64::from(8 * bytes);
            self.valid = bits;
            return Ok(());
        }
        self.fill_slowly()
    }

    #[cold]
    fn fill_slowly(&mut self) -> Result<(), Fault> {
        while self.valid < BITS_MAX {
            if self.at == self.buffer.len() {
                if self.ended {
                    return Ok(());
                }
                self.load()?;
                continue;
            }
            self.word |= u64::from(self.buffer[self.at]) << (56 - self.valid);
            self.at += 1;
            self.taken += 8;
            self.valid += 8;
        }
        Ok(())
    }

    fn load(&mut self) -> Result<(), Fault> {
        self.buffer.resize(BUFFER_BYTES, 0);
        self.at = 0;
        let mut len = 0;
        while len < BUFFER_BYTES && !self.ended {
            match self.source.read(&mut self.buffer[len..]) {
                Ok(0) => self.ended = true,
                Ok(n) => len += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.buffer.clear();
                    return Err(Fault::Io(e.kind()));
                }
            }
        }
        self.buffer.truncate(len);
        if self.little {
            self.buffer.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
        }
        Ok(())
    }

    #[inline]
    fn drop_bits(&mut self, count: u32) {
        // Two steps, because a shift by the whole width is none.
        self.word = (self.word << (count / 2)) << (count - count / 2);
        self.valid -= count;
    }

    /// The next `count` bits, at most [`BITS_MAX`], as a number.
    #[inline]
    pub fn bits(&mut self, count: u32) -> Result<u64, Fault> {
        debug_assert!(count <= BITS_MAX);
        if count == 0 {
            return Ok(0);
        }
        self.fill()?;
        if self.valid < count {
            return Err(Fault::CutShort);
        }
        let number = self.word >> (64 - count);
        self.drop_bits(count);
        Ok(if self.little { number.reverse_bits() >> (64 - count) } else { number })
    }

    /// The bit that comes next, which stays.
    pub fn peek(&mut self) -> Result<bool, Fault> {
        self.fill()?;
        if self.valid == 0 { Err(Fault::CutShort) } else { Ok(self.word >> 63 == 1) }
    }

    /// How many zeros there are before the next one; both are passed.
    #[inline]
    pub fn unary(&mut self) -> Result<u64, Fault> {
        let mut zeros = 0;
        loop {
            self.fill()?;
            let run = self.word.leading_zeros();
            if run < self.valid {
                self.drop_bits(run + 1);
                return Ok(zeros + u64::from(run));
            }
            if self.valid == 0 {
                return Err(Fault::CutShort);
            }
            zeros += u64::from(self.valid);
            self.drop_bits(self.valid);
        }
    }
}

/// Writes bits.
pub struct BitWriter<W> {
    target: W,
    buffer: Vec<u8>,
    /// The bits not yet in the buffer, the last of them lowest.
    word: u64,
    valid: u32,
    written: u64,
}

impl<W: Write> BitWriter<W> {
    /// Writes to `target`.
    pub fn new(target: W) -> BitWriter<W> {
        BitWriter { target, buffer: Vec::with_capacity(BUFFER_BYTES), word: 0, valid: 0, written: 0 }
    }

    /// Bits written so far.
    pub fn position(&self) -> u64 {
        self.written
    }

    /// Writes the lowest `count` bits of a number that has no others; at most [`BITS_MAX`].
    #[inline]
    pub fn bits(&mut self, number: u64, count: u32) -> io::Result<()> {
        debug_assert!(count <= BITS_MAX && number >> count == 0);
        self.written += u64::from(count);
        let free = 64 - self.valid;
        if count < free {
            self.word = (self.word << count) | number;
            self.valid += count;
            return Ok(());
        }
        let later = count - free;
        // `free` may be the whole width only if there is nothing in the word.
        let full = if free == 64 { 0 } else { self.word << free } | (number >> later);
        self.buffer.extend_from_slice(&full.to_be_bytes());
        self.word = number & ((1 << later) - 1);
        self.valid = later;
        if self.buffer.len() >= BUFFER_BYTES {
            self.target.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes so many zeros and a one.
    pub fn unary(&mut self, mut zeros: u64) -> io::Result<()> {
        while zeros >= u64::from(BITS_MAX) {
            self.bits(0, BITS_MAX)?;
            zeros -= u64::from(BITS_MAX);
        }
        self.bits(1, zeros as u32 + 1)
    }

    /// Fills up with zeros to a multiple of eight bytes, because there are readers that take whole words, and hands
    /// everything over.
    pub fn finish(mut self) -> io::Result<W> {
        if self.valid > 0 {
            self.buffer.extend_from_slice(&(self.word << (64 - self.valid)).to_be_bytes());
        }
        self.target.write_all(&self.buffer)?;
        self.target.flush()?;
        Ok(self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_in_either_order() {
        let numbers: Vec<(u64, u32)> = (0..5000u64)
            .map(|n| {
                let count = (n * 7 % 57) as u32;
                (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) & ((1 << count) - 1), count)
            })
            .collect();
        let mut writer = BitWriter::new(Vec::new());
        for (n, &(number, count)) in numbers.iter().enumerate() {
            writer.bits(number, count).unwrap();
            writer.unary(n as u64 % 130).unwrap();
        }
        let written = writer.position();
        let bytes = writer.finish().unwrap();
        assert_eq!(bytes.len() as u64, written.div_ceil(64) * 8);

        let mut reader = BitReader::new(&bytes[..], false);
        for (n, &(number, count)) in numbers.iter().enumerate() {
            assert_eq!(reader.bits(count).unwrap(), number);
            assert_eq!(reader.unary().unwrap(), n as u64 % 130);
        }
        assert_eq!(reader.position(), written);

        let turned: Vec<u8> = bytes.iter().map(|b| b.reverse_bits()).collect();
        let mut reader = BitReader::new(&turned[..], true);
        for (n, &(number, count)) in numbers.iter().enumerate() {
            let expected = if count == 0 { 0 } else { number.reverse_bits() >> (64 - count) };
            assert_eq!(reader.bits(count).unwrap(), expected);
            assert_eq!(reader.unary().unwrap(), n as u64 % 130);
        }
        while reader.position() < 8 * bytes.len() as u64 {
            assert_eq!(reader.bits(1).unwrap(), 0);
        }
        assert!(matches!(reader.bits(1), Err(Fault::CutShort)));
        assert!(matches!(BitReader::new(&[0u8; 40][..], false).unary(), Err(Fault::CutShort)));
    }
}
