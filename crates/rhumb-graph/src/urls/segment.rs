//! One segment of the table: some hundred thousand keys, with the tokens and codes that suit them.
//!
//! Keys stand in blocks of [`BLOCK_KEYS`], blocks in groups of [`GROUP_BLOCKS`]. A key says how many bytes it shares with
//! the one before, then gives the rest as tokens; the first key of a block (its head) does so with the head of the block
//! before, the first key of a group with the first of the group before, apart from all others ([`Index`]). All heads of a
//! group come first, so a search reads heads, then one block. Nothing of a key that cannot be the one sought is put
//! together: that it shares more, or less, with its predecessor than that one with what is sought says enough.
//!
//! Whatever the bytes are, reading ends: a position only moves forward, and past the end everything is the end.

use std::cmp::Ordering;

use super::bits::{BitWriter, peek};
use super::huffman::{self, Decoder};
use super::index::Index;
use super::tokens::{TOKEN_BYTES_MAX, TOKENS_MAX, Token};

/// Keys of a block; each says what it shares with the one before.
pub(super) const BLOCK_KEYS: u32 = 8;
/// Blocks of a group.
pub(super) const GROUP_BLOCKS: u32 = 8;
/// Keys of a group.
pub(super) const GROUP_KEYS: u32 = BLOCK_KEYS * GROUP_BLOCKS;
/// Longer keys are refused.
pub(super) const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// Codes for tokens, by what stands before.
pub(super) const CONTEXTS: usize = 3;
/// The code of a text's first token.
pub(super) const CONTEXT_FIRST: usize = 0;
/// The symbol for shared bytes that are given as sixteen bits.
pub(super) const SHARED_ESCAPE: usize = 255;
/// Bits of the number of shared bytes that a group begins with.
pub(super) const SHARED_BASE_BITS: u32 = 8;
/// Bits that say how many bits lengths have.
pub(super) const LENGTH_WIDTH_BITS: u32 = 5;
/// The length of all heads of a group has so many bits more than that of a block.
pub(super) const HEADS_WIDTH_MORE: u32 = 3;
/// Zeros at the end of a segment, so that words can be read without care.
pub(super) const PADDING_BYTES: usize = 8;

/// The code for what follows this token.
pub(super) fn context_after(token: &Token) -> usize {
    match token.bytes.last() {
        Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => 1,
        _ => 2,
    }
}

/// The symbol for how many bytes are shared, if the key before shares `before` with its own.
pub(super) fn shared_symbol(shared: u16, before: u16) -> usize {
    let more = i32::from(shared) - i32::from(before);
    (((more << 1) ^ (more >> 31)) as usize).min(SHARED_ESCAPE)
}

/// What is told of such a symbol: how many bytes more, in sixteen bits, or that the number follows.
fn shared_told(symbol: usize) -> u32 {
    if symbol == SHARED_ESCAPE {
        return SHARED_FOLLOWS;
    }
    let more = (symbol >> 1) as i16 ^ -((symbol & 1) as i16);
    u32::from(more as u16)
}

const SHARED_FOLLOWS: u32 = 1 << 16;

/// Where the keys of a segment are, and how to read them.
pub(super) struct Segment {
    /// Its first node.
    pub(super) first: u32,
    /// How many keys it has.
    pub(super) keys: u32,
    /// Its first group, counted from the beginning of the table.
    pub(super) first_group: u32,
    /// Where the ends of its groups are, in the content.
    group_ends: usize,
    /// Where its groups begin in the content.
    payload: usize,
    shared: Decoder,
    codes: Decoder,
    /// The bytes of every token.
    pieces: Vec<[u8; 16]>,
}

/// What the entry of a token's word tells: its length in bits, then in bytes, whether it ends, the code of what
/// follows, its number.
#[derive(Clone, Copy)]
struct Entry(u32);

impl Entry {
    /// Where nothing can be read, the text ends.
    const END: Entry = Entry(1 << 8);

    fn told(number: usize, token: &Token) -> u32 {
        let context = if token.ends { CONTEXT_FIRST } else { context_after(token) };
        (number as u32) << 8 | (context as u32) << 5 | u32::from(token.ends) << 4 | token.bytes.len() as u32
    }

    fn bits(self) -> u32 {
        self.0 & 15
    }

    fn bytes(self) -> usize {
        (self.0 >> 4 & 15) as usize
    }

    fn ends(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn context(self) -> usize {
        (self.0 >> 9 & 7) as usize
    }

    fn number(self) -> usize {
        (self.0 >> 12) as usize
    }
}

/// Appends tokens in ascending order, front-coded, then a bit for each that ends.
pub(super) fn put_tokens(tokens: &[Token], into: &mut Vec<u8>) {
    let mut before: &[u8] = &[];
    for token in tokens {
        let shared = token.bytes.iter().zip(before).take_while(|(a, b)| a == b).count();
        into.push((shared << 4 | (token.bytes.len() - shared)) as u8);
        into.extend_from_slice(&token.bytes[shared..]);
        before = &token.bytes;
    }
    for eight in tokens.chunks(8) {
        into.push(eight.iter().enumerate().fold(0, |byte, (n, token)| byte | u8::from(token.ends) << n));
    }
}

/// Appends the lengths of words, four bits each; after a zero, four bits say how many more zeros follow.
pub(super) fn put_lengths(lengths: &[u8], into: &mut BitWriter) {
    let mut at = 0;
    while at < lengths.len() {
        into.put(u32::from(lengths[at]), 4);
        if lengths[at] == 0 {
            let zeros = lengths[at..].iter().take_while(|&&l| l == 0).count().min(16);
            into.put(zeros as u32 - 1, 4);
            at += zeros;
        } else {
            at += 1;
        }
    }
}

fn read_tokens(count: usize, bytes: &[u8]) -> Option<Vec<Token>> {
    let mut rest = bytes;
    let mut tokens: Vec<Token> = Vec::with_capacity(count.min(TOKENS_MAX));
    for n in 0..count {
        let (&head, tail) = rest.split_first()?;
        let (shared, more) = (usize::from(head >> 4), usize::from(head & 15));
        let before = n.checked_sub(1).map_or(&[][..], |n| &tokens[n].bytes);
        let (own, tail) = tail.split_at_checked(more)?;
        let bytes = [before.get(..shared)?, own].concat();
        if bytes.len() > TOKEN_BYTES_MAX {
            return None;
        }
        tokens.push(Token { bytes, ends: false });
        rest = tail;
    }
    let ends = rest.get(..count.div_ceil(8))?;
    tokens.iter_mut().enumerate().for_each(|(n, token)| token.ends = ends[n / 8] >> (n % 8) & 1 == 1);
    Some(tokens)
}

fn read_lengths(count: usize, bytes: &[u8], at: &mut u64) -> Vec<u8> {
    let mut lengths = Vec::with_capacity(count);
    while lengths.len() < count {
        let bits = peek(bytes, *at);
        let length = (bits >> 60) as u8;
        if length == 0 {
            lengths.resize((lengths.len() + (bits >> 56 & 15) as usize + 1).min(count), 0);
            *at += 8;
        } else {
            lengths.push(length);
            *at += 4;
        }
    }
    lengths
}

impl Segment {
    /// Bytes before the tokens: keys, tokens, bytes of tokens, of codes, and of the first keys of groups.
    pub(super) const HEAD_BYTES: usize = 20;

    /// The segment in `content[from..to]`, whose groups' first keys are added to `index`; nothing if it is none.
    pub(super) fn read(content: &[u8], from: usize, to: usize, first: u32, index: &mut Index) -> Option<Segment> {
        let bytes = content.get(from..to)?;
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (keys, count) = (word(0)?, word(4)? as usize);
        let groups = keys.div_ceil(GROUP_KEYS);
        let codes_from = Segment::HEAD_BYTES.checked_add(word(8)? as usize)?;
        let index_from = codes_from.checked_add(word(12)? as usize)?;
        let ends_from = index_from.checked_add(word(16)? as usize)?;
        let payload_from = ends_from.checked_add(groups as usize * 4)?;
        if count > TOKENS_MAX || payload_from + PADDING_BYTES > bytes.len() {
            return None;
        }
        // Groups that overlap would be more text than there are bytes for.
        let mut end_before = 0;
        for end in bytes[ends_from..payload_from].chunks_exact(4) {
            let end = u32::from_le_bytes(end.try_into().expect("four bytes")) as usize;
            if end < end_before || end > bytes.len() - payload_from - PADDING_BYTES {
                return None;
            }
            end_before = end;
        }
        let tokens = read_tokens(count, &bytes[Segment::HEAD_BYTES..codes_from])?;
        let mut at = 0;
        let mut lengths = |count| read_lengths(count, &bytes[codes_from..], &mut at);
        let shared = Decoder::new(&[lengths(SHARED_ESCAPE + 1)], shared_told)?;
        let lengths: Vec<Vec<u8>> = (0..CONTEXTS).map(|_| lengths(count)).collect();
        let codes = Decoder::new(&lengths, |n| Entry::told(n, &tokens[n]))?;
        let pieces = tokens.iter().map(|token| {
            let mut piece = [0; 16];
            piece[..token.bytes.len()].copy_from_slice(&token.bytes);
            piece
        });
        let segment = Segment {
            first,
            keys,
            first_group: index.len(),
            group_ends: from + ends_from,
            payload: from + payload_from,
            shared,
            codes,
            pieces: pieces.collect(),
        };
        let mut heads = Reader { segment: &segment, bytes: &bytes[index_from..ends_from], at: 0, before: 0 };
        let mut head = Vec::new();
        for group in 0..groups {
            let shared = if group == 0 { 0 } else { heads.shared() };
            head.truncate(shared);
            heads.rest(&mut head);
            index.push(&head);
        }
        Some(segment)
    }

    /// Bytes of memory beside the file.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Segment>() + self.shared.memory_bytes() + self.codes.memory_bytes() + size_of_val(&self.pieces[..])
    }

    /// A reader of a group, counted from the segment's first.
    #[inline]
    pub(super) fn group<'a>(&'a self, content: &'a [u8], group: u32) -> GroupReader<'a> {
        let end = |group: u32| {
            let at = self.group_ends + group as usize * 4;
            content.get(at..).and_then(|b| b.first_chunk()).map_or(0, |four| u32::from_le_bytes(*four))
        };
        let from = if group == 0 { 0 } else { end(group - 1) };
        let to = self.payload + end(group) as usize + PADDING_BYTES;
        let bytes = content.get(self.payload..to).unwrap_or_default();
        let mut heads = Reader { segment: self, bytes, at: u64::from(from) * 8, before: 0 };
        let width = heads.number(LENGTH_WIDTH_BITS);
        let heads_bits = heads.number(width + HEADS_WIDTH_MORE);
        heads.before = heads.number(SHARED_BASE_BITS) as usize;
        let keys = self.keys.saturating_sub(group * GROUP_KEYS).min(GROUP_KEYS);
        let bodies = heads.at + u64::from(heads_bits) + u64::from(keys.div_ceil(BLOCK_KEYS) * width);
        GroupReader { heads, bodies, width, keys, block: 0 }
    }
}

/// Reads keys one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    segment: &'a Segment,
    bytes: &'a [u8],
    at: u64,
    /// What the key before shares with its own.
    before: usize,
}

impl Reader<'_> {
    /// A number of at most 34 bits, of which 32 are told.
    fn number(&mut self, bits: u32) -> u32 {
        let number = if bits == 0 { 0 } else { peek(self.bytes, self.at) >> (64 - bits) };
        self.at += u64::from(bits);
        number as u32
    }

    /// How many bytes the next key shares with the one before.
    #[inline]
    pub(super) fn shared(&mut self) -> usize {
        let bits = peek(self.bytes, self.at);
        let entry = self.segment.shared.read(0, bits);
        let (told, length) = (entry >> 4, entry & 15);
        self.at += u64::from(length);
        if told == SHARED_FOLLOWS {
            self.at += 16;
            self.before = (bits << length >> 48) as usize;
        } else {
            self.before = self.before.saturating_add_signed(isize::from(told as u16 as i16));
        }
        self.before
    }

    /// Calls `each` with the tokens of the rest of a key until it says that it has enough, or the key ends.
    #[inline(always)]
    fn tokens(&mut self, mut context: usize, mut each: impl FnMut(Entry) -> bool) {
        // A word has fifteen bits at most, and 56 are there after a look; so three are read without another.
        let mut window = peek(self.bytes, self.at);
        let mut used = 0;
        loop {
            let mut entry = Entry(self.segment.codes.read(context, window));
            if entry.bits() == 0 || self.at > self.bytes.len() as u64 * 8 {
                self.at = u64::MAX >> 1;
                (entry, used) = (Entry::END, 0);
            }
            window <<= entry.bits();
            used += entry.bits();
            context = entry.context();
            if !each(entry) || entry.ends() {
                self.at += u64::from(used);
                return;
            }
            if used > 56 - huffman::BITS_MAX {
                self.at += u64::from(used);
                window = peek(self.bytes, self.at);
                used = 0;
            }
        }
    }

    /// Puts the rest of a key behind what it shares.
    #[inline]
    pub(super) fn rest(&mut self, key: &mut Vec<u8>) {
        let pieces = &self.segment.pieces;
        self.tokens(CONTEXT_FIRST, |entry| {
            let len = key.len() + entry.bytes();
            if let Some(piece) = pieces.get(entry.number()) {
                // Sixteen bytes always: a copy of known size is one instruction.
                key.extend_from_slice(piece);
            }
            key.truncate(len.min(KEY_BYTES_MAX));
            len <= KEY_BYTES_MAX
        });
    }

    /// Reads over the rest of a key.
    #[inline]
    pub(super) fn skip_rest(&mut self) {
        self.tokens(CONTEXT_FIRST, |_| true);
    }

    /// Compares the rest of a key with the rest of what is sought, and says how many bytes are the same. The key is
    /// read to its end only if it is less.
    #[inline]
    fn compare_rest(&mut self, sought: &[u8]) -> (Ordering, usize) {
        let pieces = &self.segment.pieces;
        let mut same = 0;
        // Equal as long as nothing else has been found.
        let mut order = Ordering::Equal;
        self.tokens(CONTEXT_FIRST, |entry| {
            if order == Ordering::Equal {
                let piece = pieces.get(entry.number()).and_then(|piece| piece.get(..entry.bytes())).unwrap_or_default();
                for byte in piece {
                    order = sought.get(same).map_or(Ordering::Greater, |s| byte.cmp(s));
                    if order != Ordering::Equal {
                        break;
                    }
                    same += 1;
                }
            }
            order != Ordering::Greater
        });
        if order == Ordering::Equal && same < sought.len() {
            order = Ordering::Less;
        }
        (order, same)
    }

    /// Whether the next key is less than, equal to or greater than what is sought, of which `same` bytes are those
    /// of the key before, which is less. Afterwards `same` is so for this key.
    #[inline]
    fn compare(&mut self, sought: &[u8], same: &mut usize) -> Ordering {
        let shared = self.shared();
        match shared.cmp(same) {
            // It differs from the key before later than what is sought does: it is less too.
            Ordering::Greater => {
                self.skip_rest();
                Ordering::Less
            }
            // It is greater than the key before where that one is still what is sought.
            Ordering::Less => Ordering::Greater,
            Ordering::Equal => {
                let (order, more) = self.compare_rest(sought.get(shared..).unwrap_or_default());
                *same += more;
                order
            }
        }
    }
}

/// Reads a group from its beginning.
#[derive(Clone, Copy)]
pub(super) struct GroupReader<'a> {
    heads: Reader<'a>,
    /// Where the keys of the next block begin.
    bodies: u64,
    /// Bits that lengths of blocks have.
    width: u32,
    /// Keys of the group.
    keys: u32,
    /// The next block.
    block: u32,
}

impl<'a> GroupReader<'a> {
    fn blocks(&self) -> u32 {
        self.keys.div_ceil(BLOCK_KEYS)
    }

    /// Puts the head of the next block into `head`, which must hold the head before, or before the first the first key of the
    /// group. A reader of the block's other keys, and how many there are; nothing after the last block.
    #[inline]
    pub(super) fn next_block(&mut self, head: &mut Vec<u8>) -> Option<(Reader<'a>, u32)> {
        if self.block >= self.blocks() {
            return None;
        }
        if self.block > 0 {
            let shared = self.heads.shared();
            head.truncate(shared);
            self.heads.rest(head);
        }
        Some(self.body())
    }

    /// The keys of the block whose head was just read.
    fn body(&mut self) -> (Reader<'a>, u32) {
        let reader = Reader { at: self.bodies, ..self.heads };
        self.bodies += u64::from(self.heads.number(self.width));
        let keys = (self.keys - self.block * BLOCK_KEYS).min(BLOCK_KEYS) - 1;
        self.block += 1;
        (reader, keys)
    }

    /// The place in the group of the first key that is not less than what is sought, and whether it is equal; the number
    /// of keys if all are less. Of what is sought, `same` bytes are those of the group's first key, which is less.
    pub(super) fn lower_bound(mut self, sought: &[u8], mut same: usize) -> (u32, bool) {
        if self.keys == 0 {
            return (0, false);
        }
        let (mut block, mut keys) = self.body();
        let mut same_in_block = same;
        while self.block < self.blocks() {
            match self.heads.compare(sought, &mut same) {
                Ordering::Less => {
                    (block, keys) = self.body();
                    same_in_block = same;
                }
                Ordering::Equal => return (self.block * BLOCK_KEYS, true),
                Ordering::Greater => break,
            }
        }
        let from = (self.block - 1) * BLOCK_KEYS + 1;
        for n in 0..keys {
            match block.compare(sought, &mut same_in_block) {
                Ordering::Less => {}
                order => return (from + n, order == Ordering::Equal),
            }
        }
        (from + keys, false)
    }
}

/// The codes that are written for so many occurrences of every symbol.
pub(super) struct Code {
    /// Lengths of the words, by symbol.
    pub(super) lengths: Vec<u8>,
    words: Vec<u32>,
}

impl Code {
    /// The best code for these counts.
    pub(super) fn new(counts: &[u32]) -> Code {
        let lengths = huffman::lengths(counts);
        let words = huffman::words(&lengths);
        Code { lengths, words }
    }

    /// Appends the word of a symbol.
    pub(super) fn put(&self, symbol: usize, into: &mut BitWriter) {
        into.put(self.words[symbol], u32::from(self.lengths[symbol]));
    }
}
