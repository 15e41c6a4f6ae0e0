//! The vocabulary of a part of the index: which words its pages have, as they are written but in lower case, and how often.
//!
//! It answers what could be typed behind the beginning of a word, and what a word that nobody writes was meant to be (`suggest.rs`).
//! `build.rs` makes one, from words as they come or from others.
//!
//! | bytes | what |
//! | --- | --- |
//! | … | blocks of 16 words, ascending by their bytes. The first: its length, its bytes, its count. Each other: how many bytes it shares with the word before it, how many it has besides, these, its count. Numbers are varints |
//! | 4 each | where each block begins, u32 little-endian |
//! | 8 | the sum of all counts, u64 little-endian |
//! | 4 | words, u32 little-endian |
//! | 4 | bytes of all blocks, u32 little-endian |
//! | 8 | `rhwords1` |
//!
//! Invariant: bytes are never believed. What cannot be read ends there: damaged bytes make for fewer words, never for a panic.

mod build;
mod suggest;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::sync::OnceLock;

use rhumb_store::codec::{Malformed, Take};

pub use build::{WordsBuilder, merge};
pub use suggest::{SuggestOptions, Suggestion, suggest};

const MAGIC: &[u8; 8] = b"rhwords1";
const FOOT_BYTES: usize = 24;
const BLOCK_WORDS: usize = 16;
/// Bytes of a word; longer ones are not kept.
pub const WORD_BYTES_MAX: usize = 64;

/// A vocabulary, read in place.
pub struct Words {
    bytes: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    words: usize,
    blocks_bytes: usize,
    total: u64,
    table: OnceLock<suggest::Table>,
}

impl Words {
    /// Reads a vocabulary out of bytes that something owns: a vector, a mapped file.
    pub fn open(bytes: impl Deref<Target = [u8]> + Send + Sync + 'static) -> Result<Words, Malformed> {
        let all: &[u8] = &bytes;
        let (before, foot) =
            all.len().checked_sub(FOOT_BYTES).map(|at| all.split_at(at)).ok_or(Malformed("words are cut short"))?;
        let number = |at: usize, len: usize| foot[at..at + len].iter().rfold(0, |n, b| n << 8 | u64::from(*b));
        let (total, words, blocks_bytes) = (number(0, 8), number(8, 4) as usize, number(12, 4) as usize);
        if foot[16..] != *MAGIC {
            return Err(Malformed("these are not words"));
        }
        if Some(before.len()) != words.div_ceil(BLOCK_WORDS).checked_mul(4).and_then(|n| n.checked_add(blocks_bytes)) {
            return Err(Malformed("blocks of words are missing"));
        }
        Ok(Words { bytes: Box::new(bytes), words, blocks_bytes, total, table: OnceLock::new() })
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// How often words occur, all taken together.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How often a word occurs.
    pub fn count(&self, word: &str) -> u64 {
        let mut cursor = self.cursor_at(word.as_bytes());
        if cursor.next().is_some() && cursor.word == word.as_bytes() { cursor.count } else { 0 }
    }

    /// The words that begin so and occur most often, these first. They are in lower case, and so should the beginning be.
    pub fn starting_with(&self, prefix: &str, max: usize) -> Vec<(String, u64)> {
        starting_with(&[self], prefix, max)
    }

    /// All words, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let mut cursor = self.cursor();
        std::iter::from_fn(move || cursor.next().map(|(word, count)| (word.to_string(), count)))
    }

    /// Stands before the first word.
    fn cursor(&self) -> Cursor<'_> {
        let (blocks, starts) = self.bytes.split_at(self.blocks_bytes);
        Cursor {
            blocks,
            starts,
            words: self.words,
            next: 0,
            take: Take::new(&[]),
            word: Vec::new(),
            count: 0,
            ahead: false,
        }
    }

    /// Stands before the first word that is not less.
    fn cursor_at(&self, word: &[u8]) -> Cursor<'_> {
        let mut cursor = self.cursor();
        // The last block whose first word is less has it, or the one behind it begins with it.
        let (mut low, mut high) = (0, self.words.div_ceil(BLOCK_WORDS));
        while low < high {
            let middle = low.midpoint(high);
            if cursor.first_of(middle).is_some_and(|first| first < word) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        cursor.next = low.saturating_sub(1) * BLOCK_WORDS;
        while cursor.advance() {
            if cursor.word.as_slice() >= word {
                cursor.ahead = true;
                break;
            }
        }
        cursor
    }
}

/// The words of several vocabularies that begin so and occur most often in all of them together, these first.
pub fn starting_with(dictionaries: &[&Words], prefix: &str, max: usize) -> Vec<(String, u64)> {
    let mut best = BinaryHeap::<(Reverse<u64>, String)>::new();
    let mut together = Together::of(dictionaries.iter().map(|words| words.cursor_at(prefix.as_bytes())));
    while let Some((word, count)) = together.next() {
        if !word.starts_with(prefix) {
            break;
        }
        // Of two that occur as often the one that comes first in the dictionary is in already.
        if best.len() < max || best.peek().is_some_and(|(worst, _)| count > worst.0) {
            best.push((Reverse(count), word.to_string()));
            if best.len() > max {
                best.pop();
            }
        }
    }
    best.into_sorted_vec().into_iter().map(|(count, word)| (word, count.0)).collect()
}

/// Goes through the words in order.
struct Cursor<'a> {
    blocks: &'a [u8],
    starts: &'a [u8],
    words: usize,
    /// The number of the next word.
    next: usize,
    take: Take<'a>,
    word: Vec<u8>,
    count: u64,
    /// The word was read already, but not handed out.
    ahead: bool,
}

impl<'a> Cursor<'a> {
    /// The next word and its count.
    fn next(&mut self) -> Option<(&str, u64)> {
        if !std::mem::take(&mut self.ahead) && !self.advance() {
            return None;
        }
        Some((std::str::from_utf8(&self.word).ok()?, self.count))
    }

    /// Reads the next word, but does not hand it out; says whether there is one.
    fn is_ahead(&mut self) -> bool {
        self.ahead = self.ahead || self.advance();
        self.ahead
    }

    /// Reads the next word; says whether there is one that can be read.
    #[inline]
    fn advance(&mut self) -> bool {
        self.next < self.words && self.read().is_some()
    }

    #[inline]
    fn read(&mut self) -> Option<()> {
        let shared = if self.next.is_multiple_of(BLOCK_WORDS) {
            self.take = self.block(self.next / BLOCK_WORDS)?;
            0
        } else {
            self.number()? as usize
        };
        let len = usize::try_from(self.number()?).ok()?;
        if shared > self.word.len() || shared.checked_add(len)? > WORD_BYTES_MAX {
            return None;
        }
        self.word.truncate(shared);
        self.word.extend_from_slice(self.take.raw(len).ok()?);
        self.count = self.number()?;
        self.next += 1;
        Some(())
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        self.take.u64().ok()
    }

    fn block(&self, block: usize) -> Option<Take<'a>> {
        let start = self.starts.get(block * 4..)?.first_chunk::<4>()?;
        self.blocks.get(u32::from_le_bytes(*start) as usize..).map(Take::new)
    }

    /// The word that a block begins with.
    fn first_of(&self, block: usize) -> Option<&'a [u8]> {
        self.block(block)?.bytes().ok()
    }
}

/// Goes through several vocabularies at once, in order.
struct Together<'a> {
    cursors: Vec<Cursor<'a>>,
    word: Vec<u8>,
}

impl<'a> Together<'a> {
    fn of(cursors: impl Iterator<Item = Cursor<'a>>) -> Together<'a> {
        let mut cursors = cursors.collect::<Vec<_>>();
        cursors.retain_mut(Cursor::is_ahead);
        Together { cursors, word: Vec::new() }
    }

    /// The next word and the sum of its counts. There are few vocabularies, so that each is looked at.
    fn next(&mut self) -> Option<(&str, u64)> {
        let least = self.cursors.iter().map(|c| &c.word).min()?;
        self.word.clone_from(least);
        let mut sum = 0u64;
        self.cursors.retain_mut(|cursor| {
            if cursor.word != self.word {
                return true;
            }
            sum = sum.saturating_add(cursor.count);
            cursor.ahead = false;
            // A damaged vocabulary may go backwards; it would be met again and again.
            cursor.is_ahead() && cursor.word > self.word
        });
        Some((std::str::from_utf8(&self.word).ok()?, sum))
    }
}
