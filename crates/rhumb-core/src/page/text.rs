//! Text as a reader sees it: white space collapsed, references decoded, never longer than its bound.
//!
//! Invariant: the collected text neither begins nor ends with white space, has no two white space characters in a row
//! (no-break spaces are not white space here, as in CSS), and is at most as long as asked for, cut between characters.

use super::charref::{Meaning, Place, reference};

/// What separates the next word from the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Gap {
    /// Nothing: the word goes on.
    #[default]
    None,
    /// White space.
    Space,
    /// The boundary of a block.
    Line,
}

/// Collects collapsed text.
#[derive(Debug, Default)]
pub(super) struct Collapsed {
    out: String,
    gap: Gap,
    bytes_max: usize,
    full: bool,
}

impl Collapsed {
    /// Starts afresh, writing into `room`.
    pub(super) fn start(&mut self, mut room: String, bytes_max: usize) {
        room.clear();
        *self = Collapsed { out: room, gap: Gap::None, bytes_max, full: false };
    }

    /// Starts afresh in the same room.
    pub(super) fn restart(&mut self, bytes_max: usize) {
        let room = std::mem::take(&mut self.out);
        self.start(room, bytes_max);
    }

    /// Separates what follows from what was.
    #[inline]
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// What was collected.
    pub(super) fn as_str(&self) -> &str {
        &self.out
    }

    /// Takes what was collected.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Whether something was left out for want of room.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Adds a piece of the page; with `references`, `&amp;` and its like are decoded. NULs vanish, as in browsers.
    pub(super) fn push(&mut self, raw: &str, references: bool) {
        if self.full {
            return;
        }
        let bytes = raw.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match class(byte) {
                Class::Plain => {
                    let start = at;
                    at = run_end(bytes, at + 1);
                    self.push_run(&raw[start..at]);
                }
                Class::Blank | Class::Break => {
                    self.gap(Gap::Space);
                    at += 1;
                }
                Class::Nul => at += 1,
                Class::Ampersand => {
                    at += 1;
                    match if references { reference(&bytes[at..], Place::Text) } else { None } {
                        Some((meaning, took)) => {
                            at += took;
                            match meaning {
                                Meaning::Text(text) => self.push_decoded(text),
                                Meaning::Char(c) => self.push_decoded(c.encode_utf8(&mut [0; 4])),
                            }
                        }
                        None => self.push_run("&"),
                    }
                }
            }
        }
    }

    /// A decoded reference: white space collapses like any other.
    fn push_decoded(&mut self, decoded: &str) {
        if decoded.len() == 1 && matches!(class(decoded.as_bytes()[0]), Class::Blank | Class::Break) {
            self.gap(Gap::Space);
        } else {
            self.push_run(decoded);
        }
    }

    #[inline]
    fn push_run(&mut self, run: &str) {
        if self.full {
            return;
        }
        let gap = if self.out.is_empty() { Gap::None } else { self.gap };
        let room = self.bytes_max.saturating_sub(self.out.len() + usize::from(gap != Gap::None));
        let run = if run.len() <= room {
            run
        } else {
            self.full = true;
            cut(run, room).trim_end()
        };
        if run.is_empty() {
            return;
        }
        match gap {
            Gap::None => {}
            Gap::Space => self.out.push(' '),
            Gap::Line => self.out.push('\n'),
        }
        self.gap = Gap::None;
        self.out.push_str(run);
    }
}

/// The longest beginning of `text` that is whole characters and no longer than `bytes_max`.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Where a run that can be copied as it stands ends: single spaces between words belong to it.
#[inline]
fn run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match class(byte) {
            Class::Plain => at += 1,
            Class::Blank if bytes.get(at + 1).is_some_and(|&b| class(b) == Class::Plain) => at += 2,
            _ => break,
        }
    }
    at
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Blank,
    Break,
    Ampersand,
    Nul,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    classes[b' ' as usize] = Class::Blank;
    classes[b'\t' as usize] = Class::Break;
    classes[b'\n' as usize] = Class::Break;
    classes[b'\r' as usize] = Class::Break;
    classes[0x0c] = Class::Break;
    classes[b'&' as usize] = Class::Ampersand;
    classes[0] = Class::Nul;
    classes
};

#[inline]
fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collapse(pieces: &[&str], bytes_max: usize) -> String {
        let mut text = Collapsed::default();
        text.start(String::new(), bytes_max);
        for piece in pieces {
            match *piece {
                "|" => text.gap(Gap::Line),
                piece => text.push(piece, true),
            }
        }
        text.finish()
    }

    #[test]
    fn white_space_collapses() {
        let check = |pieces: &[&str], expected: &str| assert_eq!(collapse(pieces, 1 << 20), expected, "{pieces:?}");
        check(&["  a  b\n\tc "], "a b c");
        check(&["a ", " b"], "a b");
        check(&["a", "b"], "ab");
        check(&["|", "a ", "|", "|", " b", "|"], "a\nb");
        check(&["a&#32;&#10; b&nbsp;c"], "a b\u{a0}c");
        check(&["a\0b & &amp; &lt;p&gt;"], "ab & & <p>");
        check(&["a\r\n\u{c}b"], "a b");
        check(&[" \n "], "");
    }

    #[test]
    fn text_is_cut_between_characters() {
        let check = |text: &str, most: usize, expected: &str| assert_eq!(collapse(&[text], most), expected, "{text}");
        check("äöü", 5, "äö");
        check("äöü", 6, "äöü");
        check("ab cd", 3, "ab");
        check("ab  cd", 3, "ab");
        check("abc", 0, "");
        check("ab  ä", 4, "ab");
    }

    proptest! {
        #[test]
        fn collapsed_text_keeps_its_invariant(raw in "[ \n\ta-cä&;#0-9\0]{0,60}", most in 0usize..40) {
            let text = collapse(&[&raw, "|", &raw], most);
            prop_assert!(text.len() <= most, "bound");
            prop_assert_eq!(text.trim_matches(|c: char| c.is_ascii_whitespace()), &text, "no white space at the ends");
            prop_assert!(!text.contains("  ") && !text.contains(" \n") && !text.contains("\n "), "collapsed");
        }
    }
}
