//! The part of Thrift's compact protocol that Parquet's metadata needs, writing only.
//!
//! A struct is a series of fields in ascending order, each with the distance to the field before it and its type, and a zero at the
//! end. Numbers are zigzag varints.

const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
const I32: u8 = 5;
const I64: u8 = 6;
const TRUE: u8 = 1;
const FALSE: u8 = 2;

/// Writes one struct after the other into a vector.
#[derive(Default)]
pub(super) struct Thrift {
    pub(super) bytes: Vec<u8>,
    /// The last field of each struct that is open.
    last: Vec<i16>,
}

impl Thrift {
    /// A whole struct at the top.
    pub(super) fn of(fill: impl FnOnce(&mut Thrift)) -> Vec<u8> {
        let mut thrift = Thrift::default();
        thrift.body(fill);
        thrift.bytes
    }

    fn body(&mut self, fill: impl FnOnce(&mut Thrift)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.bytes.push(0);
    }

    fn field(&mut self, id: i16, kind: u8) {
        let last = self.last.last_mut().expect("fields stand in a struct");
        let distance = id - *last;
        assert!((1..=15).contains(&distance), "fields are written in order");
        *last = id;
        self.bytes.push((distance as u8) << 4 | kind);
    }

    pub(super) fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn zigzag(&mut self, n: i64) {
        self.varint((n << 1 ^ n >> 63) as u64);
    }

    pub(super) fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { TRUE } else { FALSE });
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        self.zigzag(i64::from(value));
    }

    pub(super) fn i64(&mut self, id: i16, value: u64) {
        self.field(id, I64);
        self.zigzag(value as i64);
    }

    pub(super) fn text(&mut self, id: i16, text: &str) {
        self.field(id, BINARY);
        self.raw(text);
    }

    fn raw(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn structure(&mut self, id: i16, fill: impl FnOnce(&mut Thrift)) {
        self.field(id, STRUCT);
        self.body(fill);
    }

    fn list(&mut self, id: i16, length: usize, kind: u8) {
        self.field(id, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(length as u64);
        }
    }

    pub(super) fn structures<T>(&mut self, id: i16, items: &[T], fill: impl Fn(&mut Thrift, &T)) {
        self.list(id, items.len(), STRUCT);
        for item in items {
            self.body(|t| fill(t, item));
        }
    }

    pub(super) fn numbers(&mut self, id: i16, numbers: &[i32]) {
        self.list(id, numbers.len(), I32);
        for n in numbers {
            self.zigzag(i64::from(*n));
        }
    }

    pub(super) fn texts(&mut self, id: i16, texts: &[&str]) {
        self.list(id, texts.len(), BINARY);
        for text in texts {
            self.raw(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        let bytes = Thrift::of(|t| {
            t.i32(1, -1);
            t.bool(2, true);
            t.text(5, "ab");
            t.structure(6, |t| t.i64(1, 300));
            t.numbers(7, &[0, 3]);
            t.texts(8, &["x"]);
        });
        let expected =
            [0x15, 1, 0x11, 0x38, 2, b'a', b'b', 0x1c, 0x16, 0xd8, 4, 0, 0x19, 0x25, 0, 6, 0x19, 0x18, 1, b'x', 0];
        assert_eq!(bytes, expected);
    }
}
