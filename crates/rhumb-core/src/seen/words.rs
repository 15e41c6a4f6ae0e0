//! The words of a text as hashes: what two pages must have in common to be called the same.
//!
//! A word is a run of letters and digits in lower case. Scripts that put no spaces between words (Han, Kana, Thai, Lao, Khmer, Burmese,
//! Tibetan and some smaller ones) are taken by characters. Marks that only tell how a word is set or accented (soft hyphens, zero-width joiners,
//! combining accents) are passed over. Nothing is allocated; ASCII, most of the web, takes a table look-up per byte.

use std::sync::LazyLock;

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;

/// A product of 128 bits folded to 64: every bit of the result depends on every bit of `a`.
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Calls `each` with the hash of every word, in order. The end of the text ends a word.
#[inline]
pub(super) fn each_word(text: &str, mut each: impl FnMut(u64)) {
    let bytes = text.as_bytes();
    let mut word = Word::default();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match ASCII[byte as usize] {
            BREAK => {
                if word.len > 0 {
                    each(word.end());
                }
                at += 1;
            }
            WIDE => {
                let Some(c) = text[at..].chars().next() else { break };
                at += c.len_utf8();
                match classify(c) {
                    Class::Break if word.len > 0 => each(word.end()),
                    Class::Break | Class::Nothing => {}
                    Class::Letter(lower) => word.push_wide(lower),
                    Class::Cased(c) => {
                        let lower = c.to_lowercase().filter(|&c| !matches!(slow_class(c), Class::Nothing));
                        lower.for_each(|c| word.push_wide(c as u32));
                    }
                    Class::WordOfItsOwn => {
                        if word.len > 0 {
                            each(word.end());
                        }
                        each(fold(c as u64 ^ K1, K0));
                    }
                }
            }
            lower if word.len > 0 => {
                word.push(lower);
                at += 1;
            }
            _ => at = word.push_run(bytes, at),
        }
    }
    if word.len > 0 {
        each(word.end());
    }
}

/// A word that grows, eight bytes at a time.
#[derive(Default)]
struct Word {
    hash: u64,
    tail: u64,
    len: u64,
}

impl Word {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.tail = self.tail << 8 | u64::from(byte);
        self.len += 1;
        if self.len.is_multiple_of(8) {
            self.hash = fold(self.hash ^ self.tail ^ K0, K1);
            self.tail = 0;
        }
    }

    /// The run of letters and digits that begins here, as if each were pushed, eight at a time. Returns where it ends.
    #[inline]
    fn push_run(&mut self, bytes: &[u8], from: usize) -> usize {
        // The bit that makes a letter small is set in all digits.
        const SMALL: u64 = 0x2020_2020_2020_2020;
        let mut at = from;
        while bytes.get(at).is_some_and(|&b| ASCII[b as usize] > WIDE) {
            at += 1;
        }
        let mut rest = &bytes[from..at];
        self.len = rest.len() as u64;
        while let Some((eight, more)) = rest.split_first_chunk::<8>() {
            self.hash = fold(self.hash ^ (u64::from_be_bytes(*eight) | SMALL) ^ K0, K1);
            rest = more;
        }
        match bytes[at - rest.len()..].first_chunk::<8>() {
            Some(window) if !rest.is_empty() => {
                self.tail = (u64::from_be_bytes(*window) | SMALL) >> (64 - 8 * rest.len());
            }
            _ => self.tail = rest.iter().fold(0, |tail, b| tail << 8 | u64::from(b | 0x20)),
        }
        at
    }

    /// The first byte is none of ASCII's letters and digits, so that no two words become the same bytes.
    fn push_wide(&mut self, c: u32) {
        match c {
            0..0x80 => self.push(c as u8),
            0x80..0x2000 => [(c >> 8) as u8, c as u8].into_iter().for_each(|b| self.push(b)),
            _ => [(c >> 16) as u8 | 0x80, (c >> 8) as u8, c as u8].into_iter().for_each(|b| self.push(b)),
        }
    }

    #[inline]
    fn end(&mut self) -> u64 {
        let word = std::mem::take(self);
        fold(word.hash ^ word.tail ^ K1, K0.wrapping_add(word.len << 1))
    }
}

const BREAK: u8 = 0;
const WIDE: u8 = 1;

/// A letter or digit in lower case, [`BREAK`], or [`WIDE`] where a longer character begins.
static ASCII: [u8; 256] = ascii();

const fn ascii() -> [u8; 256] {
    let mut table = [BREAK; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte >= 0x80 {
            table[byte] = WIDE;
        } else if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

enum Class {
    Break,
    Nothing,
    /// In lower case.
    Letter(u32),
    /// Its lower case has to be looked up.
    Cased(char),
    WordOfItsOwn,
}

/// Alphabets other than Latin lie below this. The library's search through its tables takes several times as long as one of our own.
const TABLE_END: u32 = 0x2000;
static TABLE: LazyLock<Box<[u16]>> = LazyLock::new(|| (0..TABLE_END).map(entry).collect());
const NOTHING: u16 = 1;
const OWN: u16 = 2;
const CASED: u16 = 3;

fn entry(c: u32) -> u16 {
    let Some(c) = char::from_u32(c) else { return 0 };
    match slow_class(c) {
        Class::Break => 0,
        Class::Nothing => NOTHING,
        Class::WordOfItsOwn => OWN,
        Class::Letter(lower) => lower as u16,
        Class::Cased(c) => {
            let mut lower = c.to_lowercase();
            // One small letter below the table's end is most of them; the few others take the longer way.
            match (lower.next(), lower.next()) {
                (Some(l), None) if (l as u32) < TABLE_END => l as u16,
                _ => CASED,
            }
        }
    }
}

fn classify(c: char) -> Class {
    match TABLE.get(c as usize) {
        Some(0) => Class::Break,
        Some(&NOTHING) => Class::Nothing,
        Some(&OWN) => Class::WordOfItsOwn,
        Some(&CASED) => Class::Cased(c),
        Some(&lower) => Class::Letter(u32::from(lower)),
        None => slow_class(c),
    }
}

fn slow_class(c: char) -> Class {
    match c as u32 {
        // Punctuation of all sorts, but for the joiners.
        0x200b..=0x200d | 0x2060 | 0xfeff | 0xad | 0x300..=0x36f | 0xfe00..=0xfe0f => Class::Nothing,
        0x2000..=0x206f | 0x3000..=0x3004 | 0x3008..=0x3020 | 0xff01..=0xff0f => Class::Break,
        // Hangul has spaces. It and most of Han and Kana need not be looked up.
        0xac00..=0xd7a3 => Class::Letter(c as u32),
        0x4e00..=0x9fff | 0x3041..=0x3096 | 0x30a1..=0x30fa => Class::WordOfItsOwn,
        // Thai and Lao; Tibetan, Burmese; Khmer; Tai Le, New Tai Lue, Tai Tham; Kana; Han; Burmese and Khmer supplements.
        0xe00..=0xfff
        | 0x1000..=0x109f
        | 0x1780..=0x17ff
        | 0x1950..=0x19ff
        | 0x1a20..=0x1aaf
        | 0x3005..=0x3007
        | 0x3021..=0x30ff
        | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf
        | 0xa9e0..=0xa9ff
        | 0xaa60..=0xaadf
        | 0xf900..=0xfaff
        | 0xff66..=0xff9f
        | 0x20000..=0x3ffff
            if c.is_alphanumeric() =>
        {
            Class::WordOfItsOwn
        }
        _ if !c.is_alphanumeric() => Class::Break,
        _ if c.is_lowercase() || c.is_numeric() => Class::Letter(c as u32),
        _ => Class::Cased(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<u64> {
        let mut all = Vec::new();
        each_word(text, |w| all.push(w));
        all
    }

    #[test]
    fn words_are_what_they_should_be() {
        // The words of the one text, in the other with single spaces between them.
        let check = |text: &str, plain: &str| {
            let one_by_one: Vec<u64> = plain.split(' ').filter(|w| !w.is_empty()).flat_map(words).collect();
            let count = plain.split(' ').filter(|w| !w.is_empty()).count();
            assert_eq!(words(text), one_by_one, "{text}");
            assert_eq!(words(text).len(), count, "{text}");
        };
        check("", "");
        check(" \t--- «…» ", "");
        check("Hello, World! It's 2 o'clock.", "hello world it s 2 o clock");
        check("ÄRGER Straße ΑΒΓ Ещё", "ärger straße αβγ ещё");
        check("co\u{ad}op\u{200b}erate", "cooperate");
        check("Łódź—ŁÓDŹ", "łódź łódź");
        check("İx", "ix");
        check("東京タワーabc", "東 京 タ ワ ー abc");
        check("ไทย", "ไ ท ย");
        check("한국어 문서", "한국어 문서");
        check("ẞ Ꭰ", "ß Ꭰ");
        check("a,b;c", "a b c");
        check("ABCDEFGHIJ abcdefgh\u{ad}ij x\u{300}yz", "abcdefghij abcdefghij xyz");
        check("internationalization", "inter\u{ad}nationalization");
    }

    #[test]
    fn words_that_differ_have_other_hashes() {
        let mut all: Vec<u64> = (0..20_000).flat_map(|n| words(&format!("word{n} {n} é{n} 字"))).collect();
        all.sort_unstable();
        all.dedup();
        // The Han character is one.
        assert_eq!(all.len(), 60_001);
        assert_ne!(words("abcdefgh"), words("abcdefgha"));
        assert_ne!(words("aaaaaaaa"), words("aaaaaaaaaaaaaaaa"));
    }
}
