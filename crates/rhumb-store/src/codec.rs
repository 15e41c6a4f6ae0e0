//! Integers and strings as bytes: the alphabet of every rhumb file format.
//!
//! Numbers are LEB128 varints, strings and byte strings carry their length in front. Reading never
//! trusts a length: it is compared with what is left before anything is taken.

/// What a reader finds when bytes do not say what they should. The caller adds file and offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The checksum of all formats.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Appends values to a byte vector.
pub trait Put {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// A varint.
    fn put_u64(&mut self, value: u64);
    /// A byte string with its length in front.
    fn put_bytes(&mut self, bytes: &[u8]);
    /// A string with its length in front.
    fn put_str(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }
    /// A flag and, if there is one, the string.
    fn put_opt_str(&mut self, text: Option<&str>) {
        self.put_u8(u8::from(text.is_some()));
        if let Some(text) = text {
            self.put_str(text);
        }
    }
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u64(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Takes values off the front of a byte slice.
#[derive(Clone, Debug)]
pub struct Take<'a> {
    rest: &'a [u8],
}

impl<'a> Take<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Take { rest: bytes }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed("a byte is missing"))?;
        self.rest = rest;
        Ok(first)
    }

    /// A varint.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is longer than 64 bits"))
    }

    /// A varint that fits 32 bits.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.u64()?).map_err(|_| Malformed("a number is longer than 32 bits"))
    }

    /// `n` bytes without a length in front.
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        if n > self.rest.len() {
            return Err(Malformed("bytes are missing"));
        }
        let (bytes, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(bytes)
    }

    /// A byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let n = self.u64()?;
        self.raw(usize::try_from(n).map_err(|_| Malformed("a length is too large"))?)
    }

    /// A string.
    pub fn str(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("text is not UTF-8"))
    }

    /// An optional string.
    pub fn opt_str(&mut self) -> Result<Option<&'a str>, Malformed> {
        if self.u8()? == 0 { Ok(None) } else { self.str().map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_taken(n: u64, s in ".*", b: Vec<u8>) {
            let mut bytes = Vec::new();
            bytes.put_u64(n);
            bytes.put_str(&s);
            bytes.put_opt_str(None);
            bytes.put_bytes(&b);
            let mut take = Take::new(&bytes);
            prop_assert_eq!(take.u64(), Ok(n));
            prop_assert_eq!(take.str(), Ok(s.as_str()));
            prop_assert_eq!(take.opt_str(), Ok(None));
            prop_assert_eq!(take.bytes(), Ok(b.as_slice()));
            prop_assert!(take.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(b: Vec<u8>) {
            let mut take = Take::new(&b);
            while take.clone().bytes().is_ok() && !take.is_empty() {
                let _ = take.bytes();
            }
            let _ = take.u64();
        }
    }
}
