//! Where words begin and end.
//!
//! A word is a run of letters and digits. An apostrophe between letters belongs to it (don't), except behind one or two letters, where it
//! ends an article (l'homme). The signs of C++ and C# belong to words of one or two letters. Chinese, Japanese, Korean, Thai and their
//! neighbours write words without gaps: every two characters that stand together are a piece.

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether it is a pair of characters of a script without gaps, or one that stands alone.
    pub is_pair: bool,
}

/// Calls `each` with the pieces of a text, in order.
pub fn split(text: &str, mut each: impl FnMut(Piece)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_alphanumeric() {
            // Most words are ASCII from end to end.
            let start = at;
            at += 1;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            if at < bytes.len() && (bytes[at] >= 0x80 || bytes[at] == b'\'') {
                at = word_end(text, start, at);
            }
            while at < bytes.len()
                && matches!(bytes[at], b'+' | b'#')
                && at - start <= 3
                && start_letters(bytes, start, at) <= 2
            {
                at += 1;
            }
            each(Piece { start, end: at, is_pair: false });
        } else if bytes[at] < 0x80 {
            at += 1;
        } else {
            let c = first_char(text, at);
            if is_unspaced(c) {
                at = pairs(text, at, &mut each);
            } else if c.is_alphanumeric() {
                let end = word_end(text, at, at + c.len_utf8());
                each(Piece { start: at, end, is_pair: false });
                at = end;
            } else {
                at += c.len_utf8();
            }
        }
    }
}

/// Letters and digits of a word that may go on with signs.
fn start_letters(bytes: &[u8], start: usize, end: usize) -> usize {
    bytes[start..end].iter().filter(|b| b.is_ascii_alphanumeric()).count()
}

fn first_char(text: &str, at: usize) -> char {
    text[at..].chars().next().unwrap_or(' ')
}

/// The end of the word from `start`, which goes to `at` at least.
fn word_end(text: &str, start: usize, mut at: usize) -> usize {
    let mut chars = text[at..].chars().peekable();
    while let Some(c) = chars.next() {
        let goes_on = match c {
            '\'' | '\u{2019}' => {
                let is_article = text[start..at].chars().count() <= 2;
                !is_article && chars.peek().is_some_and(|next| next.is_alphabetic() && !is_unspaced(*next))
            }
            // Combining marks belong to the letter before them.
            c => (c.is_alphanumeric() || is_mark(c)) && !is_unspaced(c),
        };
        if !goes_on {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// Calls `each` with the pairs of a run of characters from `at`; where it ends.
fn pairs(text: &str, at: usize, each: &mut impl FnMut(Piece)) -> usize {
    let mut last: Option<usize> = None;
    let mut single = true;
    let mut here = at;
    for c in text[at..].chars() {
        if !is_unspaced(c) {
            break;
        }
        let end = here + c.len_utf8();
        if let Some(start) = last {
            each(Piece { start, end, is_pair: true });
            single = false;
        }
        last = Some(here);
        here = end;
    }
    if single {
        each(Piece { start: at, end: here, is_pair: true });
    }
    here
}

/// Whether a word is of a script without gaps.
pub fn is_pair_script(word: &str) -> bool {
    word.chars().next().is_some_and(is_unspaced)
}

fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x300..=0x36f | 0x483..=0x487 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f | 0x670 | 0x6d6..=0x6dc | 0x900..=0x903
        | 0x93a..=0x94f | 0x981..=0x983 | 0x9bc..=0x9cd | 0xb82 | 0xbbe..=0xbcd | 0x1dc0..=0x1dff | 0x20d0..=0x20f0 | 0x200c..=0x200d)
}

/// Whether words of this script stand without gaps.
pub fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0e01..=0x0e4e // Thai
        | 0x0e81..=0x0ece // Lao
        | 0x1000..=0x109f // Myanmar
        | 0x1100..=0x11ff // Hangul letters
        | 0x1780..=0x17d3 // Khmer
        | 0x3005..=0x3007
        | 0x3041..=0x3096 // Hiragana
        | 0x309d..=0x309f
        | 0x30a1..=0x30fa // Katakana
        | 0x30fc..=0x30ff
        | 0x3105..=0x312f // Bopomofo
        | 0x3131..=0x318e
        | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf // Han
        | 0x4e00..=0x9fff
        | 0xac00..=0xd7a3 // Hangul
        | 0xf900..=0xfaff
        | 0xff66..=0xff9f // half-width Katakana
        | 0x20000..=0x323af)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        split(text, |piece| found.push(&text[piece.start..piece.end]));
        found
    }

    #[test]
    fn words_end_where_a_reader_ends_them() {
        let check = |text: &str, expected: &[&str]| assert_eq!(pieces(text), expected, "{text}");
        check("one,two.three", &["one", "two", "three"]);
        check("don't l'homme rock'n'roll 'quoted'", &["don't", "l", "homme", "rock'n'roll", "quoted"]);
        check("C++, C# (F#) a+b 1+1 abc# ++", &["C++", "C#", "F#", "a+", "b", "1+", "1", "abc"]);
        check("naïve cafe\u{301} 東京都 東", &["naïve", "cafe\u{301}", "東京", "京都", "東"]);
        check("abc東京", &["abc", "東京"]);
        check("สวัสดี", &["สว", "วั", "ัส", "สด", "ดี"]);
        check("", &[]);
    }

    proptest! {
        #[test]
        fn pieces_lie_in_order_in_the_text(text in "\\PC{0,60}") {
            let mut last = 0;
            split(&text, |piece| {
                assert!(piece.start >= last && piece.end > piece.start && text.is_char_boundary(piece.end));
                if !piece.is_pair {
                    last = piece.end;
                }
            });
        }
    }
}
