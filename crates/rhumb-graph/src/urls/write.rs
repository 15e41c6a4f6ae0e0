//! Writing the table: keys come in ascending order, and leave as segments.
//!
//! Of a segment only what its keys do not share is held, then tokens are learned from a sample of it, and it is written.

use rhumb_store::disk::Disk;
use rhumb_store::{Result, StoreError};

use super::bits::BitWriter;
use super::segment::{
    BLOCK_KEYS, CONTEXT_FIRST, CONTEXTS, Code, GROUP_KEYS, HEADS_WIDTH_MORE, KEY_BYTES_MAX, LENGTH_WIDTH_BITS,
    PADDING_BYTES, SHARED_BASE_BITS, SHARED_ESCAPE, context_after, put_lengths, put_tokens, shared_symbol,
};
use super::tokens::{Matcher, Token, learn};
use super::{KIND, UrlsStats};
use rhumb_store::sealed::SealedWriter;

/// Keys of a segment at most.
const SEGMENT_KEYS: u32 = 512 << 10;
/// Bytes of text that a segment holds at most; memory is about twice this, four times at worst.
const SEGMENT_BYTES: usize = 16 << 20;
/// Tokens are learned from a quarter of the text, but from at least and at most so many bytes.
const SAMPLE_BYTES_MIN: usize = 64 << 10;
const SAMPLE_BYTES_MAX: usize = 512 << 10;

/// A table that is being written.
pub struct UrlsWriter {
    file: SealedWriter,
    segment: Draft,
    segment_keys: u32,
    /// For each segment written, where it ends.
    ends: Vec<u64>,
    /// The key before, the head of the block before, and the first key of the group before.
    last: Vec<u8>,
    head: Vec<u8>,
    group_head: Vec<u8>,
    urls: u32,
    key_bytes: u64,
}

impl UrlsWriter {
    /// Begins the file `name`.
    pub fn create(disk: &dyn Disk, name: &str) -> Result<UrlsWriter> {
        Ok(UrlsWriter {
            file: SealedWriter::create(disk, name, KIND)?,
            segment: Draft::default(),
            segment_keys: SEGMENT_KEYS,
            ends: Vec::new(),
            last: Vec::new(),
            head: Vec::new(),
            group_head: Vec::new(),
            urls: 0,
            key_bytes: 0,
        })
    }

    /// The same with smaller segments, so that tests have several.
    #[cfg(test)]
    pub(super) fn with_segment_keys(mut self, keys: u32) -> UrlsWriter {
        self.segment_keys = keys;
        self
    }

    /// Adds a key, which must be greater than the one before and is the next node.
    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        let refused = |what: &str| Err(StoreError::corrupt(self.file.name(), self.file.position(), what));
        if key.len() > KEY_BYTES_MAX {
            return refused("a URL is longer than 65,535 bytes");
        }
        let same = shared_bytes(&self.last, key);
        if self.urls > 0 && (same == key.len() || self.last.get(same).is_some_and(|b| *b > key[same])) {
            return refused("URLs do not come in ascending order");
        }
        if self.urls == u32::MAX {
            return refused("a table holds fewer than 2^32 URLs");
        }
        if self.segment.keys() >= self.segment_keys || self.segment.text.len() >= SEGMENT_BYTES {
            self.write_segment()?;
        }
        let n = self.segment.keys();
        let shared = if n == 0 {
            0
        } else if n.is_multiple_of(GROUP_KEYS) {
            shared_bytes(&self.group_head, key)
        } else if n.is_multiple_of(BLOCK_KEYS) {
            shared_bytes(&self.head, key)
        } else {
            same
        };
        self.segment.push(shared, &key[shared..]);
        self.last.truncate(same);
        self.last.extend_from_slice(&key[same..]);
        if n.is_multiple_of(BLOCK_KEYS) {
            key.clone_into(&mut self.head);
        }
        if n.is_multiple_of(GROUP_KEYS) {
            key.clone_into(&mut self.group_head);
        }
        self.urls += 1;
        self.key_bytes += key.len() as u64;
        Ok(())
    }

    /// Writes what is left, seals the file and makes it durable.
    pub fn finish(mut self) -> Result<UrlsStats> {
        if self.segment.keys() > 0 {
            self.write_segment()?;
        }
        for end in &self.ends {
            self.file.write(&end.to_le_bytes())?;
        }
        self.file.write(&self.key_bytes.to_le_bytes())?;
        self.file.write(&self.urls.to_le_bytes())?;
        self.file.write(&(self.ends.len() as u32).to_le_bytes())?;
        let file_bytes = self.file.finish()?;
        Ok(UrlsStats { urls: self.urls, file_bytes, key_bytes: self.key_bytes })
    }

    fn write_segment(&mut self) -> Result<()> {
        self.file.write(&self.segment.encoded())?;
        self.ends.push(self.file.position());
        self.segment.clear();
        Ok(())
    }
}

/// How many bytes two keys have in common at their beginning.
pub(super) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let (x, y) =
            (u64::from_le_bytes(x.try_into().expect("eight")), u64::from_le_bytes(y.try_into().expect("eight")));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// A segment before it is coded: for every key what it shares, and the text of the rest.
#[derive(Default)]
struct Draft {
    shared: Vec<u16>,
    ends: Vec<u32>,
    text: Vec<u8>,
}

impl Draft {
    fn keys(&self) -> u32 {
        self.shared.len() as u32
    }

    fn push(&mut self, shared: usize, rest: &[u8]) {
        self.shared.push(shared as u16);
        self.text.extend_from_slice(rest);
        self.ends.push(self.text.len() as u32);
    }

    fn clear(&mut self) {
        self.shared.clear();
        self.ends.clear();
        self.text.clear();
    }

    fn text_of(&self, n: usize) -> &[u8] {
        let from = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.text[from..self.ends[n] as usize]
    }

    /// What a group begins with: what its second key shares.
    fn shared_base(&self, group: usize) -> u16 {
        self.shared.get(group + 1).map_or(0, |&shared| shared.min((1 << SHARED_BASE_BITS) - 1))
    }

    /// What a reader that comes to a key has read last of what keys share.
    fn shared_before(&self, n: usize) -> u16 {
        let (block_keys, group_keys) = (BLOCK_KEYS as usize, GROUP_KEYS as usize);
        match (n % group_keys, n % block_keys) {
            (0, _) => n.checked_sub(group_keys).map_or(0, |before| self.shared[before]),
            (in_group, _) if in_group == 1 || in_group == block_keys => self.shared_base(n - in_group),
            (_, 0) => self.shared[n - block_keys],
            _ => self.shared[n - 1],
        }
    }

    /// Texts that stand for all of them, and how large a part they are.
    fn sample(&self) -> (Vec<&[u8]>, f32) {
        let bytes = (self.text.len() / 4).clamp(SAMPLE_BYTES_MIN, SAMPLE_BYTES_MAX);
        let step = (self.text.len() / bytes).max(1);
        // Blocks have heads at fixed places, so a step that has a factor in common with their size would see too many or none.
        let step = if step > 1 { step | 1 } else { 1 };
        let sample: Vec<&[u8]> = (0..self.shared.len()).step_by(step).map(|n| self.text_of(n)).collect();
        (sample, 1.0 / step as f32)
    }

    fn encoded(&self) -> Vec<u8> {
        let (sample, share) = self.sample();
        let mut tokens = learn(&sample, share);
        let matcher = Matcher::new(&tokens);
        let mut parsed: Vec<u16> = Vec::with_capacity(self.shared.len() * 5);
        let mut used = vec![false; tokens.len()];
        (0..self.shared.len()).for_each(|n| matcher.parse(self.text_of(n), &mut parsed));
        parsed.iter().for_each(|&t| used[usize::from(t)] = true);
        renumber(&mut tokens, &used, &mut parsed);

        let contexts: Vec<usize> =
            tokens.iter().map(|t| if t.ends { CONTEXT_FIRST } else { context_after(t) }).collect();
        let mut counts = vec![vec![0u32; tokens.len()]; CONTEXTS];
        let mut context = CONTEXT_FIRST;
        for &token in &parsed {
            counts[context][usize::from(token)] += 1;
            context = contexts[usize::from(token)];
        }
        let mut shared_counts = vec![0u32; SHARED_ESCAPE + 1];
        for n in 1..self.shared.len() {
            shared_counts[shared_symbol(self.shared[n], self.shared_before(n))] += 1;
        }
        let shared_code = Code::new(&shared_counts);
        let codes: Vec<Code> = counts.iter().map(|counts| Code::new(counts)).collect();

        let mut dictionary = Vec::new();
        put_tokens(&tokens, &mut dictionary);
        let mut lengths = BitWriter::default();
        put_lengths(&shared_code.lengths, &mut lengths);
        codes.iter().for_each(|code| put_lengths(&code.lengths, &mut lengths));
        let mut coded_lengths = Vec::new();
        lengths.drain_into(&mut coded_lengths);

        let (index, group_ends, payload) = self.groups(&parsed, &tokens, &contexts, &shared_code, &codes);
        let mut segment = Vec::with_capacity(payload.len() + payload.len() / 8);
        for word in [self.shared.len(), tokens.len(), dictionary.len(), coded_lengths.len(), index.len()] {
            segment.extend_from_slice(&(word as u32).to_le_bytes());
        }
        segment.extend_from_slice(&dictionary);
        segment.extend_from_slice(&coded_lengths);
        segment.extend_from_slice(&index);
        group_ends.iter().for_each(|end| segment.extend_from_slice(&end.to_le_bytes()));
        segment.extend_from_slice(&payload);
        segment.extend_from_slice(&[0; PADDING_BYTES]);
        segment
    }

    /// The first keys of all groups, where each group ends, and the groups one after the other.
    fn groups(
        &self,
        parsed: &[u16],
        tokens: &[Token],
        contexts: &[usize],
        shared_code: &Code,
        codes: &[Code],
    ) -> (Vec<u8>, Vec<u32>, Vec<u8>) {
        let mut parsed = parsed.iter();
        let mut put_rest = |into: &mut BitWriter| {
            let mut context = CONTEXT_FIRST;
            for &token in parsed.by_ref() {
                codes[context].put(usize::from(token), into);
                context = contexts[usize::from(token)];
                if tokens[usize::from(token)].ends {
                    return;
                }
            }
        };
        let put_shared = |n: usize, into: &mut BitWriter| {
            let symbol = shared_symbol(self.shared[n], self.shared_before(n));
            shared_code.put(symbol, into);
            if symbol == SHARED_ESCAPE {
                into.put(u32::from(self.shared[n]), 16);
            }
        };
        let (mut ends, mut payload, mut block_bits) = (Vec::new(), Vec::new(), Vec::new());
        let mut index = BitWriter::default();
        let (mut whole, mut heads, mut bodies) = (BitWriter::default(), BitWriter::default(), BitWriter::default());
        // The lengths stand among the heads and are as wide as the longest needs, so heads are put together last.
        let mut head_parts: Vec<BitWriter> = Vec::new();
        for group in (0..self.shared.len()).step_by(GROUP_KEYS as usize) {
            block_bits.clear();
            head_parts.clear();
            let group_end = self.shared.len().min(group + GROUP_KEYS as usize);
            for block in (group..group_end).step_by(BLOCK_KEYS as usize) {
                let mut head = BitWriter::default();
                let into = if block == group { &mut index } else { &mut head };
                if block > 0 {
                    put_shared(block, into);
                }
                put_rest(into);
                let from = bodies.bits();
                for n in block + 1..group_end.min(block + BLOCK_KEYS as usize) {
                    put_shared(n, &mut bodies);
                    put_rest(&mut bodies);
                }
                block_bits.push((bodies.bits() - from) as u32);
                head_parts.push(head);
            }
            let heads_bits = head_parts.iter().map(BitWriter::bits).sum::<u64>() as u32;
            let longest = block_bits.iter().copied().max().unwrap_or(0).max(heads_bits >> HEADS_WIDTH_MORE);
            let width = 32 - longest.leading_zeros();
            for (head, &bits) in head_parts.iter_mut().zip(&block_bits) {
                heads.append(head);
                heads.put(bits, width);
            }
            whole.put(width, LENGTH_WIDTH_BITS);
            whole.put(heads_bits, width + HEADS_WIDTH_MORE);
            whole.put(u32::from(self.shared_base(group)), SHARED_BASE_BITS);
            whole.append(&mut heads);
            whole.append(&mut bodies);
            whole.drain_into(&mut payload);
            ends.push(payload.len() as u32);
        }
        let mut coded_index = Vec::new();
        index.drain_into(&mut coded_index);
        // Read without care, too.
        coded_index.extend_from_slice(&[0; PADDING_BYTES]);
        (coded_index, ends, payload)
    }
}

/// Leaves out tokens that are not used and puts the others in order.
fn renumber(tokens: &mut Vec<Token>, used: &[bool], parsed: &mut [u16]) {
    let mut order: Vec<usize> = (0..tokens.len()).filter(|&n| used[n]).collect();
    order.sort_unstable_by(|&a, &b| tokens[a].cmp(&tokens[b]));
    let mut numbers = vec![0; tokens.len()];
    order.iter().enumerate().for_each(|(new, &old)| numbers[old] = new as u16);
    parsed.iter_mut().for_each(|token| *token = numbers[usize::from(*token)]);
    *tokens = order.into_iter().map(|old| tokens[old].clone()).collect();
}
