//! The codes numbers are written in: each tells its own length, short for small numbers.
//!
//! γ and δ are of Elias, ζ of Boldi and Vigna ("Codes for the World-Wide Web", 2005). Everything that the properties of a graph
//! may name can be read; what is written is unary, γ and ζ.

use std::io::{self, Read, Write};

use super::bits::{BITS_MAX, BitReader, BitWriter, Fault};

/// Numbers of more bits than this are in no graph: nodes have 32, and a sign.
const NUMBER_BITS_MAX: u64 = 40;

/// The largest parameter of ζ: its numbers are still read at once.
pub const ZETA_MAX: u32 = BITS_MAX - NUMBER_BITS_MAX as u32;

/// A code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// So many zeros, then a one.
    Unary,
    /// The number of bits in unary, then the bits.
    Gamma,
    /// The number of bits in γ, then the bits.
    Delta,
    /// The number of groups of so many bits in unary, then the bits.
    Zeta(u32),
    /// Groups of three bits, each after a bit that is one for the last.
    Nibble,
    /// The quotient in unary, then the remainder.
    Golomb(u32),
    /// The number of bits in the Rice code with this parameter, then the bits.
    Pi(u32),
    /// The number, before it its number of bits, before that the number of bits of that, and so on.
    Omega,
}

impl Code {
    /// The code that properties call `name`; `k` is for names that do not say their parameter.
    pub fn named(name: &str, k: u32) -> Option<Code> {
        let parameter = |name: &str| name.parse().ok().filter(|k| (1..=7).contains(k));
        Some(match name {
            "UNARY" => Code::Unary,
            "GAMMA" => Code::Gamma,
            "DELTA" => Code::Delta,
            "ZETA" => Code::Zeta(k),
            "NIBBLE" => Code::Nibble,
            "GOLOMB" => Code::Golomb(k),
            "OMEGA" => Code::Omega,
            _ => match (name.strip_prefix("ZETA"), name.strip_prefix("PI")) {
                (Some(k), _) => Code::Zeta(parameter(k)?),
                (_, Some(k)) => Code::Pi(parameter(k)?),
                _ => return None,
            },
        })
    }

    /// The next number.
    #[inline]
    pub fn read<R: Read>(self, from: &mut BitReader<R>) -> Result<u64, Fault> {
        match self {
            Code::Gamma => gamma(from),
            Code::Zeta(k) => {
                let low = from.unary()?.saturating_mul(u64::from(k));
                if low > NUMBER_BITS_MAX {
                    return Err(Fault::Absurd);
                }
                let (left, short) = (1 << low, from.bits(low as u32 + k - 1)?);
                Ok(if short < left { short + left - 1 } else { (short << 1 | from.bits(1)?) - 1 })
            }
            Code::Unary => from.unary(),
            Code::Delta => {
                let bits = gamma(from)?;
                with_top_bit(from, bits)
            }
            Code::Nibble => {
                let mut number = 0;
                loop {
                    let group = from.bits(4)?;
                    number = number << 3 | group & 7;
                    if group & 8 != 0 {
                        return Ok(number);
                    }
                    if number >> NUMBER_BITS_MAX != 0 {
                        return Err(Fault::Absurd);
                    }
                }
            }
            Code::Golomb(b) => {
                let quotient = from.unary()?.checked_mul(u64::from(b)).ok_or(Fault::Absurd)?;
                let bits = b.ilog2();
                let short = from.bits(bits)?;
                let limit = (2u64 << bits) - u64::from(b);
                let rest = if short < limit { short } else { (short << 1 | from.bits(1)?) - limit };
                quotient.checked_add(rest).ok_or(Fault::Absurd)
            }
            Code::Pi(k) => {
                let high = from.unary()?;
                if high > NUMBER_BITS_MAX {
                    return Err(Fault::Absurd);
                }
                let bits = high << k | from.bits(k)?;
                with_top_bit(from, bits)
            }
            Code::Omega => {
                let mut number = 1;
                while from.peek()? {
                    if number > NUMBER_BITS_MAX {
                        return Err(Fault::Absurd);
                    }
                    let group = from.bits(number as u32 + 1)?;
                    // The bit that says that a group comes is its highest; files of the other order have it moved to the front.
                    number = if from.little() { group >> 1 | 1 << number } else { group };
                }
                from.bits(1)?;
                Ok(number - 1)
            }
        }
    }

    /// Writes a number; only codes that are written by [`super::write()`].
    pub fn write<W: Write>(self, number: u64, to: &mut BitWriter<W>) -> io::Result<()> {
        match self {
            Code::Unary => to.unary(number),
            Code::Gamma => {
                let bits = (number + 1).ilog2();
                to.unary(u64::from(bits))?;
                to.bits(number + 1 - (1 << bits), bits)
            }
            Code::Zeta(k) => {
                let groups = (number + 1).ilog2() / k;
                let low = groups * k;
                let left = 1u64 << low;
                to.unary(u64::from(groups))?;
                if number + 1 < left << 1 {
                    to.bits(number + 1 - left, low + k - 1)
                } else {
                    to.bits(number + 1, low + k)
                }
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// How many bits a number takes in a code that is written.
    #[inline]
    pub fn len(self, number: u64) -> u64 {
        match self {
            Code::Gamma => 2 * u64::from((number + 1).ilog2()) + 1,
            Code::Zeta(k) => {
                let groups = (number + 1).ilog2() / k;
                let short = number + 1 < 2 << (groups * k);
                u64::from(groups + 1 + groups * k + k - u32::from(short))
            }
            _ => number + 1,
        }
    }
}

#[inline]
fn gamma<R: Read>(from: &mut BitReader<R>) -> Result<u64, Fault> {
    let bits = from.unary()?;
    with_top_bit(from, bits)
}

/// A number of `bits` more bits after its highest one, less one.
#[inline]
fn with_top_bit<R: Read>(from: &mut BitReader<R>, bits: u64) -> Result<u64, Fault> {
    if bits > NUMBER_BITS_MAX {
        return Err(Fault::Absurd);
    }
    Ok((1 << bits | from.bits(bits as u32)?) - 1)
}

/// Folds integers to naturals: 0, −1, 1, −2, 2, …
pub fn fold(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The integer that was folded.
pub fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits_of(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        digits.chunks(8).map(|byte| (0..8).fold(0, |sum, n| sum << 1 | byte.get(n).unwrap_or(&0))).collect()
    }

    #[test]
    fn codes_are_as_published() {
        for (code, number, bits) in [
            (Code::Unary, 3, "0001"),
            (Code::Gamma, 0, "1"),
            (Code::Gamma, 4, "001 01"),
            (Code::Delta, 0, "1"),
            (Code::Delta, 4, "011 01"),
            (Code::Zeta(3), 0, "1 00"),
            (Code::Zeta(3), 1, "1 010"),
            (Code::Zeta(3), 6, "1 111"),
            (Code::Zeta(3), 7, "01 00000"),
            (Code::Zeta(3), 15, "01 010000"),
            (Code::Zeta(1), 4, "001 01"),
            (Code::Nibble, 5, "1101"),
            (Code::Nibble, 8, "0001 1000"),
            (Code::Golomb(3), 0, "1 0"),
            (Code::Golomb(3), 5, "01 11"),
            (Code::Golomb(1), 2, "001"),
            (Code::Pi(2), 4, "1 10 01"),
            (Code::Omega, 0, "0"),
            (Code::Omega, 7, "11 1000 0"),
        ] {
            let bytes = bits_of(bits);
            let mut reader = BitReader::new(&bytes[..], false);
            assert_eq!(code.read(&mut reader).unwrap(), number, "{code:?} {number}");
            let len = bits.replace(' ', "").len() as u64;
            assert_eq!(reader.position(), len, "{code:?} {number}");
            let mut writer = BitWriter::new(Vec::new());
            if code.write(number, &mut writer).is_ok() {
                assert_eq!(writer.finish().unwrap()[..bytes.len()], bytes, "{code:?} {number}");
                assert_eq!(code.len(number), len, "{code:?} {number}");
            }
        }
    }

    #[test]
    fn numbers_come_back() {
        for code in [Code::Gamma, Code::Zeta(1), Code::Zeta(3), Code::Zeta(7), Code::Zeta(ZETA_MAX)] {
            let numbers: Vec<u64> =
                (0..2000).chain((11..34).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 1])).collect();
            let mut writer = BitWriter::new(Vec::new());
            for &number in &numbers {
                let before = writer.position();
                code.write(number, &mut writer).unwrap();
                assert_eq!(writer.position() - before, code.len(number), "{code:?} {number}");
            }
            let bytes = writer.finish().unwrap();
            let mut reader = BitReader::new(&bytes[..], false);
            for &number in &numbers {
                assert_eq!(code.read(&mut reader).unwrap(), number, "{code:?}");
            }
        }
        for number in [0, 1, -1, 2, -2, i64::from(u32::MAX), -i64::from(u32::MAX)] {
            assert_eq!(unfold(fold(number)), number);
        }
    }

    #[test]
    fn any_bytes_are_numbers_or_a_fault() {
        let mut state = 7u64;
        for code in [
            Code::Unary,
            Code::Gamma,
            Code::Delta,
            Code::Zeta(1),
            Code::Zeta(ZETA_MAX),
            Code::Nibble,
            Code::Golomb(5),
            Code::Pi(7),
            Code::Omega,
        ] {
            for little in [false, true] {
                for round in 0..300 {
                    let bytes: Vec<u8> = (0..64)
                        .map(|_| {
                            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            // Sparse bits, so that long numbers come up; dense ones for ω.
                            let byte = (state >> 33) as u8;
                            if round % 2 == 0 { byte & (state >> 41) as u8 & (state >> 49) as u8 } else { byte | 0xF0 }
                        })
                        .collect();
                    let mut reader = BitReader::new(&bytes[..], little);
                    while code.read(&mut reader).is_ok() {}
                }
            }
        }
    }
}
