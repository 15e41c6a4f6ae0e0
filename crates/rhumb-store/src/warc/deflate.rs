//! Gzip members for pages, made in one pass through tables that fit the first cache.
//!
//! libdeflate's quickest level clears 128 KB of tables for every member, which is more memory than a page has, and pays for
//! it once more in cache misses. Here the table has 16 KB for pages of up to 16 KB and 64 KB beyond; each place holds one
//! candidate; matches are of six bytes at least, so that few are tried in vain; the search takes longer steps where
//! nothing repeats, as LZ4 does. Codes are dynamic (RFC 1951, section 3.2.7), made anew for every 64 KB, so that any language
//! and any kind of file fares well; what does not shrink, because the server compressed it already, is stored as it is.
//!
//! Measured: 10 KB of synthetic page 31 µs instead of 63, for 7 % more bytes; 12 KB of noise 10 µs instead of 24, 100 KB of
//! noise 53 µs instead of 624. From some 32 KB on libdeflate is as quick on text and packs it better: longer records are
//! made here only if they are dense.

/// The longest record made here, unless it is dense.
pub(crate) const BYTES_MAX: usize = 32 << 10;

/// Whether a longer record is one that does not shrink, judged by the bytes in its middle: where each of the 256 is about
/// as frequent as the next, there is nothing to gain.
pub(crate) fn is_dense(text: &[u8]) -> bool {
    const SAMPLE_BYTES: usize = 4 << 10;
    let from = (text.len() / 2).saturating_sub(SAMPLE_BYTES / 2);
    let Some(sample) = text.get(from..from + SAMPLE_BYTES) else { return false };
    let mut counts = [0_u32; 256];
    sample.iter().for_each(|&b| counts[usize::from(b)] += 1);
    let squares: u64 = counts.iter().map(|&c| u64::from(c) * u64::from(c)).sum();
    // Noise has n²/256 + n; text has some n²/20, images that were not compressed more than that.
    squares < 2 * (SAMPLE_BYTES * SAMPLE_BYTES / 256) as u64
}

/// Input of one block: what a stored block can hold.
const BLOCK_BYTES: usize = 65_535;
const WINDOW_BYTES: usize = 32 << 10;
const MATCH_MIN: usize = 6;
const MATCH_MAX: usize = 258;
/// Symbols for literals, the end of a block, and lengths.
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END: usize = 256;
/// Codes are no longer than this, so that four literals fit between two flushes of the bit buffer; it costs nothing to speak of.
const CODE_BITS_MAX: u32 = 12;

/// Order in which the lengths of the code-length code are sent.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Length (less 3) to symbol (less 257).
const LENGTH_SYMBOL: [u8; 256] = {
    let mut table = [0; 256];
    let mut value = 0_u32;
    while value < 256 {
        table[value as usize] = if value < 8 {
            value as u8
        } else if value == 255 {
            28
        } else {
            let extra = value.ilog2() - 2;
            (4 * extra + (value >> extra)) as u8
        };
        value += 1;
    }
    table
};

/// Extra bits of a length, by its symbol (less 257).
const fn length_extra(symbol: u32) -> u32 {
    if symbol < 8 || symbol == 28 { 0 } else { (symbol - 4) / 4 }
}

/// Symbol and number of extra bits of a distance.
fn distance_symbol(distance: usize) -> (usize, u32) {
    let value = distance as u32 - 1;
    let extra = if value < 4 { 0 } else { value.ilog2() - 1 };
    ((2 * extra + (value >> extra)) as usize, extra)
}

/// Appends `text` to `out` as a gzip member that is not compressed.
pub(crate) fn stored_into(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&HEAD);
    let mut bits = Bits { out, held: 0, count: 0 };
    let mut rest = text;
    loop {
        let (block, behind) = rest.split_at(rest.len().min(BLOCK_BYTES));
        put_stored(&mut bits, block, behind.is_empty());
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    put_tail(text, out);
}

/// The beginning of every member: deflate, no name, no time, made quickly, by nobody knows what system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

fn put_tail(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&crc32fast::hash(text).to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
}

/// A run of literals and the match behind it; a length of 0 ends a block.
#[derive(Clone, Copy)]
struct Step {
    literals: u32,
    length: u16,
    distance: u16,
}

/// Makes members, and keeps its tables between them.
pub(crate) struct Deflater {
    /// Where each hash was seen last.
    heads: Vec<u32>,
    steps: Vec<Step>,
}

impl Deflater {
    pub fn new() -> Self {
        Deflater { heads: Vec::new(), steps: Vec::new() }
    }

    /// Appends `text` to `out` as one gzip member.
    pub fn gzip_into(&mut self, text: &[u8], out: &mut Vec<u8>) {
        out.reserve(text.len() + text.len() / BLOCK_BYTES * 8 + 64);
        out.extend_from_slice(&HEAD);
        let hash_bits = if text.len() <= 16 << 10 { 12 } else { 14 };
        self.heads.clear();
        self.heads.resize(1 << hash_bits, 0);
        let mut bits = Bits { out, held: 0, count: 0 };
        let mut at = 0;
        loop {
            let end = text.len().min(at + BLOCK_BYTES);
            let last = end == text.len();
            let mut counts = Counts { literals: [0; LITERALS], distances: [0; DISTANCES], others: [0; 256] };
            self.match_block(text, at, end, hash_bits, &mut counts);
            put_block(&mut bits, &text[at..end], &self.steps, &mut counts, last);
            at = end;
            if last {
                break;
            }
        }
        bits.flush();
        put_tail(text, out);
    }

    /// Finds what repeats in `text[from..end]`, and counts the symbols needed to say so.
    fn match_block(&mut self, text: &[u8], from: usize, end: usize, hash_bits: u32, counts: &mut Counts) {
        self.steps.clear();
        let heads = &mut self.heads[..];
        let mask = heads.len() - 1;
        let text = &text[..end];
        let (mut at, mut run) = (from.max(1), from);
        let slot_of = |word: u64| (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - hash_bits)) as usize & mask;
        while let Some(word) = word_at(text, at) {
            let slot = slot_of(word);
            let candidate = heads[slot] as usize;
            heads[slot] = at as u32;
            // An empty place says 0, which is a position like any other: one comparison tells all.
            if word_at(text, candidate) != Some(word) || at - candidate > WINDOW_BYTES {
                // After a word or two without a match every other position is tried; in noise, fewer and fewer.
                at += 1 + ((at - run) >> 4).min(1) + ((at - run) >> 8);
                continue;
            }
            let distance = at - candidate;
            let length = MATCH_MIN + common(&text[candidate + MATCH_MIN..], &text[at + MATCH_MIN..]);
            counts.note(&text[run..at]);
            let symbol = END + 1 + usize::from(LENGTH_SYMBOL[length - 3]);
            counts.literals[symbol] += 1;
            counts.distances[distance_symbol(distance).0] += 1;
            self.steps.push(Step {
                literals: (at - run) as u32,
                length: length as u16,
                distance: (distance - 1) as u16,
            });
            at += length;
            run = at;
            // The end of a match is the likeliest beginning of the next.
            if let Some(word) = word_at(text, at - 2) {
                heads[slot_of(word)] = at as u32 - 2;
            }
        }
        counts.note(&text[run..]);
        counts.literals[END] = 1;
        counts.literals.iter_mut().zip(&counts.others).for_each(|(sum, other)| *sum += other);
        self.steps.push(Step { literals: (end - run) as u32, length: 0, distance: 0 });
    }
}

/// Six bytes of the eight at this place. None at the very end: what is there is literals.
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..).and_then(|rest| rest.first_chunk::<8>()).map(|word| u64::from_le_bytes(*word) << 16)
}

/// Bytes that both begin with, as far as a match can go on behind its first bytes.
#[inline]
fn common(earlier: &[u8], here: &[u8]) -> usize {
    let most = (MATCH_MAX - MATCH_MIN).min(here.len());
    let mut n = 0;
    while n + 8 <= most {
        let (Some(a), Some(b)) = (earlier[n..].first_chunk::<8>(), here[n..].first_chunk::<8>()) else { break };
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return n + (differ.trailing_zeros() / 8) as usize;
        }
        n += 8;
    }
    n + earlier[n..].iter().zip(&here[n..most]).take_while(|(a, b)| a == b).count()
}

struct Counts {
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
    others: [u32; 256],
}

impl Counts {
    #[inline]
    fn note(&mut self, literals: &[u8]) {
        // In two tables, so that a letter that follows itself does not wait for its own count.
        let mut pairs = literals.chunks_exact(2);
        for pair in &mut pairs {
            self.literals[usize::from(pair[0])] += 1;
            self.others[usize::from(pair[1])] += 1;
        }
        pairs.remainder().iter().for_each(|&b| self.literals[usize::from(b)] += 1);
    }
}

/// Writes one block in whichever form is shorter.
fn put_block(bits: &mut Bits<'_>, text: &[u8], steps: &[Step], counts: &mut Counts, last: bool) {
    if counts.distances.iter().all(|&count| count == 0) {
        // Some readers refuse a block without any distance code.
        counts.distances[0] = 1;
    }
    let literals = Code::<LITERALS>::new(&counts.literals, CODE_BITS_MAX);
    let distances = Code::<DISTANCES>::new(&counts.distances, CODE_BITS_MAX);
    let plan = Header::new(&literals, &distances);
    let body_bits = literals.cost(&counts.literals, |s| if s > END { length_extra((s - END - 1) as u32) } else { 0 })
        + distances.cost(&counts.distances, |s| if s < 4 { 0 } else { (s as u32 - 2) / 2 });
    if plan.bits() + body_bits >= 8 * (text.len() as u64 + 4) {
        return put_stored(bits, text, last);
    }
    bits.put(u64::from(last) | 2 << 1, 3);
    plan.put(bits);
    // Everything below writes whole words into space that is made here, once; what is too much is cut at the end.
    let mut out = Words::begin(bits, (body_bits / 8) as usize + 32);
    let mut at = 0;
    for step in steps {
        let run = &text[at..at + step.literals as usize];
        let mut fours = run.chunks_exact(4);
        for four in &mut fours {
            out.put(literals.of(four[0]));
            out.put(literals.of(four[1]));
            out.put(literals.of(four[2]));
            out.put(literals.of(four[3]));
            out.flush();
        }
        for &byte in fours.remainder() {
            out.put(literals.of(byte));
        }
        out.flush();
        at += run.len();
        if step.length > 0 {
            let value = u32::from(step.length) - 3;
            let symbol = LENGTH_SYMBOL[value as usize & 255];
            out.put(literals.codes[END + 1 + usize::from(symbol)]);
            let extra = length_extra(u32::from(symbol));
            out.put((value & ((1 << extra) - 1), extra));
            let (symbol, extra) = distance_symbol(usize::from(step.distance) + 1);
            out.put(distances.codes[symbol]);
            out.put((u32::from(step.distance) & ((1 << extra) - 1), extra));
            out.flush();
            at += usize::from(step.length);
        }
    }
    out.put(literals.codes[END]);
    out.end();
}

fn put_stored(bits: &mut Bits<'_>, text: &[u8], last: bool) {
    bits.put(u64::from(last), 3);
    bits.flush();
    let length = text.len() as u16;
    bits.out.extend_from_slice(&length.to_le_bytes());
    bits.out.extend_from_slice(&(!length).to_le_bytes());
    bits.out.extend_from_slice(text);
}

/// A canonical prefix code: for each symbol its bits in the order they are written, and how many.
struct Code<const N: usize> {
    codes: [(u32, u32); N],
}

impl<const N: usize> Code<N> {
    /// The code of least cost (Huffman's, by the two queues of van Leeuwen), cut to `bits_max`.
    fn new(counts: &[u32; N], bits_max: u32) -> Self {
        let mut leaves: [u32; N] = [0; N];
        let mut used = 0;
        for (symbol, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // Counts are below 2^17 and symbols below 2^9: one number sorts by both.
            leaves[used] = count << 9 | symbol as u32;
            used += 1;
        }
        let leaves = &mut leaves[..used];
        leaves.sort_unstable();
        let mut of_length = [0_u32; 64];
        if used <= 1 {
            of_length[1] = used as u32;
        } else {
            lengths(leaves, &mut of_length);
            limit(&mut of_length, bits_max);
        }
        let mut codes = [(0, 0); N];
        // The rarest symbols have the longest codes.
        let mut length = bits_max;
        for &leaf in leaves.iter() {
            while of_length[length as usize] == 0 {
                length -= 1;
            }
            of_length[length as usize] -= 1;
            codes[(leaf & 511) as usize].1 = length;
        }
        Self::number(&mut codes);
        Code { codes }
    }

    /// Gives each symbol its code, by length and then by symbol (RFC 1951, section 3.2.2).
    fn number(codes: &mut [(u32, u32); N]) {
        let mut next = [0_u32; 16];
        codes.iter().for_each(|&(_, length)| next[length as usize & 15] += 1);
        next[0] = 0;
        let mut code = 0;
        for slot in &mut next {
            let count = *slot;
            *slot = code;
            code = (code + count) << 1;
        }
        for (code, length) in codes.iter_mut().filter(|(_, length)| *length > 0) {
            let number = &mut next[*length as usize];
            *code = number.reverse_bits() >> (32 - *length);
            *number += 1;
        }
    }

    fn of(&self, byte: u8) -> (u32, u32) {
        self.codes[usize::from(byte)]
    }

    fn cost(&self, counts: &[u32; N], extra: impl Fn(usize) -> u32) -> u64 {
        let one = |(symbol, (&count, &(_, length)))| u64::from(count) * u64::from(length + extra(symbol));
        counts.iter().zip(&self.codes).enumerate().filter(|(_, (count, _))| **count > 0).map(one).sum()
    }
}

/// How many symbols have a code of each length, for leaves that are sorted by count.
fn lengths(leaves: &[u32], of_length: &mut [u32; 64]) {
    let n = leaves.len();
    let mut weights = [0_u32; LITERALS];
    let mut parents = [0_u16; LITERALS];
    let mut leaf_parents = [0_u16; LITERALS];
    let (mut leaf, mut node) = (0, 0);
    for made in 0..n - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            if leaf < n && (node >= made || leaves[leaf] >> 9 <= weights[node]) {
                weight += leaves[leaf] >> 9;
                leaf_parents[leaf] = made as u16;
                leaf += 1;
            } else {
                weight += weights[node];
                parents[node] = made as u16;
                node += 1;
            }
        }
        weights[made] = weight;
    }
    let mut depths = [0_u8; LITERALS];
    for made in (0..n - 2).rev() {
        depths[made] = depths[usize::from(parents[made])] + 1;
    }
    for parent in &leaf_parents[..n] {
        of_length[usize::from(depths[usize::from(*parent)]) + 1] += 1;
    }
}

/// Shortens what is too long at the expense of what is shorter, as zlib does: the sum of 2^-length stays one.
fn limit(of_length: &mut [u32; 64], bits_max: u32) {
    let most = bits_max as usize;
    let too_long: u32 = of_length[most + 1..].iter().sum();
    if too_long == 0 {
        return;
    }
    of_length[most] += too_long;
    of_length[most + 1..].fill(0);
    let mut sum: u64 = (1..=most).map(|l| u64::from(of_length[l]) << (most - l)).sum();
    while sum > 1 << most {
        // One leaf becomes a node with itself and a leaf of the last level below it.
        let Some(length) = (1..most).rev().find(|&l| of_length[l] > 0) else { break };
        of_length[length] -= 1;
        of_length[length + 1] += 2;
        of_length[most] -= 1;
        sum -= 1;
    }
}

/// The beginning of a dynamic block: the lengths of both codes, run-length coded, in a code of their own.
struct Header {
    /// Symbol, and the value of its extra bits.
    symbols: [(u8, u8); LITERALS + DISTANCES],
    used: usize,
    literals: usize,
    distances: usize,
    counts: [u32; 19],
    code: Code<19>,
    sent: usize,
}

impl Header {
    fn new(literals: &Code<LITERALS>, distances: &Code<DISTANCES>) -> Self {
        let last = |codes: &[(u32, u32)], least: usize| {
            codes.iter().rposition(|&(_, length)| length > 0).map_or(least, |at| (at + 1).max(least))
        };
        let (literal_count, distance_count) = (last(&literals.codes, 257), last(&distances.codes, 1));
        let mut all = [0_u8; LITERALS + DISTANCES];
        let codes = literals.codes[..literal_count].iter().chain(&distances.codes[..distance_count]);
        all.iter_mut().zip(codes).for_each(|(to, &(_, length))| *to = length as u8);
        let all = &all[..literal_count + distance_count];
        let (mut symbols, mut used, mut counts) = ([(0, 0); LITERALS + DISTANCES], 0, [0_u32; 19]);
        let mut at = 0;
        while at < all.len() {
            let value = all[at];
            let run = all[at..].iter().take_while(|&&v| v == value).count();
            let (symbol, taken) = match (value, run) {
                (0, 11..) => ((18, run.min(138) - 11), run.min(138)),
                (0, 3..) => ((17, run - 3), run),
                _ if at > 0 && all[at - 1] == value && run >= 3 => ((16, run.min(6) - 3), run.min(6)),
                _ => ((value, 0), 1),
            };
            symbols[used] = (symbol.0, symbol.1 as u8);
            counts[usize::from(symbol.0)] += 1;
            used += 1;
            at += taken;
        }
        let code = Code::<19>::new(&counts, 7);
        let sent = ORDER.iter().rposition(|&s| code.codes[s].1 > 0).map_or(4, |at| (at + 1).max(4));
        Header { symbols, used, literals: literal_count, distances: distance_count, counts, code, sent }
    }

    fn extra(symbol: u8) -> u32 {
        match symbol {
            16 => 2,
            17 => 3,
            18 => 7,
            _ => 0,
        }
    }

    fn bits(&self) -> u64 {
        3 + 14 + 3 * self.sent as u64 + self.code.cost(&self.counts, |s| Self::extra(s as u8))
    }

    fn put(&self, bits: &mut Bits<'_>) {
        bits.put((self.literals - 257) as u64, 5);
        bits.put((self.distances - 1) as u64, 5);
        bits.put((self.sent - 4) as u64, 4);
        for &symbol in &ORDER[..self.sent] {
            bits.put(u64::from(self.code.codes[symbol].1), 3);
        }
        for &(symbol, value) in &self.symbols[..self.used] {
            let (code, length) = self.code.codes[usize::from(symbol)];
            bits.put(u64::from(code), length);
            bits.put(u64::from(value), Self::extra(symbol));
        }
    }
}

/// Bits on their way into bytes, lowest first.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits<'_> {
    fn put(&mut self, value: u64, count: u32) {
        self.held |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Fills up the last byte.
    fn flush(&mut self) {
        if self.count > 0 {
            self.out.push(self.held as u8);
            (self.held, self.count) = (0, 0);
        }
    }
}

/// The same for the many symbols of a block: eight bytes at a time into space that is there already.
struct Words<'a, 'b> {
    bits: &'a mut Bits<'b>,
    at: usize,
    held: u64,
    count: u32,
}

impl<'a, 'b> Words<'a, 'b> {
    fn begin(bits: &'a mut Bits<'b>, room: usize) -> Self {
        let at = bits.out.len();
        bits.out.resize(at + room, 0);
        let (held, count) = (bits.held, bits.count);
        Words { bits, at, held, count }
    }

    /// Up to 56 bits fit between two flushes.
    #[inline]
    fn put(&mut self, (value, count): (u32, u32)) {
        self.held |= u64::from(value) << self.count;
        self.count += count;
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(room) = self.bits.out.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<8>()) {
            *room = self.held.to_le_bytes();
        }
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    fn end(mut self) {
        self.flush();
        self.bits.out.truncate(self.at);
        (self.bits.held, self.bits.count) = (self.held, self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn comes_back(text: &[u8]) -> usize {
        let (mut member, mut back) = (Vec::new(), Vec::new());
        stored_into(text, &mut member);
        flate2::read::GzDecoder::new(&member[..]).read_to_end(&mut back).expect("a whole member");
        assert!(back == text);
        let (mut member, mut back) = (b"before".to_vec(), Vec::new());
        Deflater::new().gzip_into(text, &mut member);
        flate2::read::GzDecoder::new(&member[6..]).read_to_end(&mut back).expect("a whole member");
        assert!(back == text, "{} bytes came back as {}", text.len(), back.len());
        // A second opinion, because archives are read by others.
        let mut again = vec![0; text.len()];
        let read = libdeflater::Decompressor::new().gzip_decompress(&member[6..], &mut again);
        assert_eq!(read, Ok(text.len()));
        assert!(again == text);
        member.len() - 6
    }

    fn noise(bytes: usize) -> Vec<u8> {
        (0..bytes as u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(i | 1) >> 40) as u8)
            .collect()
    }

    #[test]
    fn every_length_and_distance() {
        for length in (0..=600).chain([65_534, 65_535, 65_536, 131_070, 200_000]) {
            comes_back(&vec![b'a'; length]);
        }
        for gap in (0..1_000).chain([32_740, 32_746, 32_747, 32_768, 40_000, 65_520]) {
            comes_back(&[b"a phrase to find again", &noise(gap)[..], b"a phrase to find again"].concat());
        }
        comes_back(&[(0..=255).collect::<Vec<u8>>(), (0..=255).rev().collect()].concat());
    }

    #[test]
    fn what_does_not_shrink_is_stored() {
        for bytes in [0, 1, 100, 10_000, 65_535, 65_536, 200_000] {
            let text = noise(bytes);
            let least = bytes + 18 + 5 * bytes.div_ceil(BLOCK_BYTES).max(1);
            assert!(comes_back(&text) <= least + 8, "{bytes}");
        }
    }

    #[test]
    fn dense_is_what_does_not_shrink() {
        assert!(is_dense(&noise(100_000)));
        assert!(!is_dense(&b"the usual text, over and over again. ".repeat(3_000)));
        assert!(!is_dense(&noise(100)));
    }

    #[test]
    fn codes_of_any_skew() {
        // Counts like Fibonacci's numbers ask for the longest codes there are.
        let mut text = Vec::new();
        let (mut a, mut b) = (1_usize, 1_usize);
        for symbol in 0..22_u8 {
            text.extend(std::iter::repeat_n(symbol, a));
            (a, b) = (b, a + b);
        }
        // Shuffled, or the matches would hide the counts.
        let mut n = 1_u64;
        for i in (1..text.len()).rev() {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.swap(i, (n >> 33) as usize % (i + 1));
        }
        comes_back(&text);
        let mut counts = [0; LITERALS];
        let (mut a, mut b) = (1_u32, 1_u32);
        for count in counts.iter_mut().take(24) {
            *count = a;
            (a, b) = (b, a + b);
        }
        for bits_max in [5, 7, 15] {
            let code = Code::<LITERALS>::new(&counts, bits_max);
            let sum: u64 = code.codes.iter().filter(|c| c.1 > 0).map(|c| 1 << (15 - c.1)).sum();
            assert_eq!(sum, 1 << 15, "a whole code of at most {bits_max} bits");
        }
    }

    proptest! {
        #[test]
        fn anything_comes_back(
            text in prop::collection::vec(0..20_u8, 0..20_000),
            wide in prop::collection::vec(any::<u8>(), 0..3_000),
            words in prop::collection::vec(prop::sample::select(vec!["<a href=", "the ", "ö", "\n", "</p>", "0"]), 0..30_000),
        ) {
            comes_back(&text);
            comes_back(&wide);
            comes_back(words.concat().as_bytes());
        }
    }
}
