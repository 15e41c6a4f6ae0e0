//! Makes vocabularies: from words as pages bring them, and from others.
//!
//! The words that are collected lie one behind the other in one vector, with a table of numbers to find them by. A map of strings would
//! take three times as much.

use xxhash_rust::xxh3::xxh3_64;

use super::{BLOCK_WORDS, MAGIC, Together, WORD_BYTES_MAX, Words};
use rhumb_store::codec::Put;

/// Where the table has no word.
const EMPTY: u32 = u32::MAX;
/// Bytes that are handed on at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Collects words.
#[derive(Default)]
pub struct WordsBuilder {
    letters: Vec<u8>,
    entries: Vec<Entry>,
    /// Numbers of entries, by hash; a power of two, at most three quarters in use.
    table: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u8,
    hash: u32,
    count: u64,
}

impl WordsBuilder {
    /// Collects nothing yet.
    pub fn new() -> WordsBuilder {
        WordsBuilder::default()
    }

    /// Adds so many occurrences of a word, which is in lower case. Words of more than [`WORD_BYTES_MAX`] bytes are not kept.
    pub fn add(&mut self, word: &str, count: u32) {
        let too_much = self.letters.len() + word.len() > u32::MAX as usize / 2;
        if word.is_empty() || word.len() > WORD_BYTES_MAX || count == 0 || too_much {
            return;
        }
        if self.entries.len() * 4 >= self.table.len() * 3 {
            self.grow();
        }
        let hash = xxh3_64(word.as_bytes()) as u32;
        let mut slot = hash as usize & (self.table.len() - 1);
        while self.table[slot] != EMPTY {
            let entry = &mut self.entries[self.table[slot] as usize];
            let start = entry.start as usize;
            if entry.hash == hash && self.letters[start..start + usize::from(entry.len)] == *word.as_bytes() {
                entry.count = entry.count.saturating_add(u64::from(count));
                return;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        self.table[slot] = self.entries.len() as u32;
        let (start, len) = (self.letters.len() as u32, word.len() as u8);
        self.entries.push(Entry { start, len, hash, count: u64::from(count) });
        self.letters.extend_from_slice(word.as_bytes());
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.letters.capacity() + self.entries.capacity() * size_of::<Entry>() + self.table.capacity() * 4
    }

    /// The vocabulary, for [`Words::open`].
    pub fn finish(self) -> Vec<u8> {
        let WordsBuilder { letters, mut entries, table } = self;
        drop(table);
        let word = |entry: &Entry| &letters[entry.start as usize..][..usize::from(entry.len)];
        entries.sort_unstable_by(|a, b| word(a).cmp(word(b)));
        let mut bytes = Vec::new();
        let mut writer = Writer::new(|part: &[u8]| bytes.extend_from_slice(part));
        for entry in &entries {
            writer.push(word(entry), entry.count);
        }
        writer.finish();
        bytes
    }

    fn grow(&mut self) {
        let len = (self.table.len() * 2).max(1024);
        self.table = vec![EMPTY; len];
        for (number, entry) in self.entries.iter().enumerate() {
            let mut slot = entry.hash as usize & (len - 1);
            while self.table[slot] != EMPTY {
                slot = (slot + 1) & (len - 1);
            }
            self.table[slot] = number as u32;
        }
    }
}

/// Makes one vocabulary of several and hands its bytes on, from front to back. If there are more than `words_max` words, those
/// that occur least are left out: first those that occur once, then twice, and so on.
pub fn merge(dictionaries: &[&Words], words_max: usize, out: impl FnMut(&[u8])) {
    /// Words that occur more often than that are kept in any case.
    const COUNTS: usize = 64;
    let together = || Together::of(dictionaries.iter().map(|words| words.cursor()));
    let mut count_min = 0;
    if dictionaries.iter().map(|words| words.len()).sum::<usize>() > words_max {
        let (mut having, mut words) = ([0usize; COUNTS], 0);
        let mut all = together();
        while let Some((_, count)) = all.next() {
            words += 1;
            if let Some(n) = having.get_mut(count as usize) {
                *n += 1;
            }
        }
        while words > words_max && count_min < COUNTS {
            words -= having[count_min];
            count_min += 1;
        }
    }
    let mut writer = Writer::new(out);
    let mut all = together();
    while let Some((word, count)) = all.next() {
        if count >= count_min as u64 {
            writer.push(word.as_bytes(), count);
        }
    }
    writer.finish();
}

/// Writes words that come in order.
struct Writer<F: FnMut(&[u8])> {
    out: F,
    buffer: Vec<u8>,
    /// Bytes handed on before the buffer.
    done: usize,
    starts: Vec<u32>,
    last: Vec<u8>,
    words: u32,
    total: u64,
}

impl<F: FnMut(&[u8])> Writer<F> {
    fn new(out: F) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES + 256);
        Writer { out, buffer, done: 0, starts: Vec::new(), last: Vec::new(), words: 0, total: 0 }
    }

    fn push(&mut self, word: &[u8], count: u64) {
        let place = self.done + self.buffer.len();
        // Places have 32 bits. No vocabulary is as large, and one that is has what matters.
        if place > u32::MAX as usize - 256 {
            return;
        }
        let shared = if (self.words as usize).is_multiple_of(BLOCK_WORDS) {
            self.starts.push(place as u32);
            0
        } else {
            let shared = self.last.iter().zip(word).take_while(|(a, b)| a == b).count();
            self.buffer.put_u64(shared as u64);
            shared
        };
        self.buffer.put_bytes(&word[shared..]);
        self.buffer.put_u64(count);
        self.last.clear();
        self.last.extend_from_slice(word);
        self.words += 1;
        self.total = self.total.saturating_add(count);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn finish(mut self) {
        let blocks_bytes = (self.done + self.buffer.len()) as u32;
        for start in std::mem::take(&mut self.starts) {
            self.buffer.extend_from_slice(&start.to_le_bytes());
        }
        self.buffer.extend_from_slice(&self.total.to_le_bytes());
        self.buffer.extend_from_slice(&self.words.to_le_bytes());
        self.buffer.extend_from_slice(&blocks_bytes.to_le_bytes());
        self.buffer.extend_from_slice(MAGIC);
        self.flush();
    }

    fn flush(&mut self) {
        (self.out)(&self.buffer);
        self.done += self.buffer.len();
        self.buffer.clear();
    }
}
