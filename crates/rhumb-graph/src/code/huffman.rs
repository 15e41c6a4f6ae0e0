//! Codes of symbols: Huffman's, no longer than [`LEN_MAX`] bits, canonical, so that their lengths are all that is written.
//!
//! A context of which only one symbol occurs has a code of no bits. Lengths of all contexts of a segment stand in one stream of
//! their own small alphabet (a length; a run of absent symbols; the only symbol; no more), itself coded, by what came before.

use super::bits::{BitReader, BitWriter};
use super::model::{CONTEXTS, starts, symbols};

/// The longest code. Second tables begin at a place that has twelve bits, so it could not be longer.
pub const LEN_MAX: usize = 11;

/// What part of its bits a context may cost more for a smaller table.
const WORSE: u64 = 500;

const META_LEN_MAX: usize = 7;
const META: usize = 16;
const ABSENT_RUN: usize = 13;
const NO_MORE: usize = 14;
const ONLY: usize = 15;
/// Lengths are written in one of so many codes, by what was written before.
const META_KINDS: usize = 4;

fn meta_kind(before: usize) -> usize {
    match before {
        NO_MORE => 0,
        0 | ABSENT_RUN => 1,
        1..=6 => 2,
        _ => 3,
    }
}

/// In lists of lengths: this symbol is the only one of its context.
const ONLY_LEN: u8 = 255;

/// Lengths of codes for symbols that occur so often: none is longer than `max`. At most 2^`max` symbols may occur.
fn lengths(counts: &[u32], max: usize, into: &mut [u8]) {
    into.fill(0);
    let mut used: Vec<(u64, usize)> =
        counts.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(s, &n)| (u64::from(n), s)).collect();
    assert!(used.len() <= 1 << max, "there are more symbols than codes");
    match used[..] {
        [] => return,
        [(_, only)] => return into[only] = ONLY_LEN,
        _ => {}
    }
    used.sort_unstable();
    let mut per_len = depths(&used, max);
    // Codes that were cut short have to be paid for by lengthening the longest of the shorter ones.
    let mut room: i64 = (1 << max) - (1..=max).map(|len| (per_len[len] as i64) << (max - len)).sum::<i64>();
    while room < 0 {
        let longest = (1..max).rev().find(|&len| per_len[len] > 0).expect("symbols fit in codes this long");
        per_len[longest] -= 1;
        per_len[longest + 1] += 1;
        room += 1 << (max - longest - 1);
    }
    while room > 0 {
        // The step above may have paid too much; the longest code that can be shortened is.
        let Some(len) = (2..=max).rev().find(|&len| per_len[len] > 0 && room >= 1 << (max - len)) else { break };
        per_len[len] -= 1;
        per_len[len - 1] += 1;
        room -= 1 << (max - len);
    }
    let mut rarest = used.iter();
    for len in (1..=max).rev() {
        for &(_, symbol) in rarest.by_ref().take(per_len[len]) {
            into[symbol] = len as u8;
        }
    }
}

/// Lengths of codes that are hardly worse than the best, and short: the table they are read with is as large as the longest code.
fn short_lengths(counts: &[u32], into: &mut [u8]) {
    lengths(counts, LEN_MAX, into);
    let bits = |lengths: &[u8]| -> u64 {
        let real = lengths.iter().map(|&len| if len == ONLY_LEN { 0 } else { u64::from(len) });
        real.zip(counts).map(|(len, &n)| len * u64::from(n)).sum()
    };
    let best = bits(into);
    let used = counts.iter().filter(|&&n| n > 0).count().max(2);
    let longest = into.iter().copied().filter(|&len| len != ONLY_LEN).max().unwrap_or(0);
    let mut shorter = vec![0; counts.len()];
    for max in (used.next_power_of_two().ilog2() as usize..usize::from(longest)).rev() {
        lengths(counts, max, &mut shorter);
        if bits(&shorter) > best + best / WORSE {
            return;
        }
        into.copy_from_slice(&shorter);
    }
}

/// How many codes of each length Huffman's tree has; longer ones count as `max`. `used` is sorted, two or more.
fn depths(used: &[(u64, usize)], max: usize) -> Vec<usize> {
    let leaves = used.len();
    let mut weight: Vec<u64> = used.iter().map(|&(n, _)| n).collect();
    let mut parent = vec![0usize; 2 * leaves - 1];
    let (mut leaf, mut inner) = (0, leaves);
    for made in leaves..2 * leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let least = if leaf < leaves && (inner >= made || weight[leaf] <= weight[inner]) {
                leaf += 1;
                leaf - 1
            } else {
                inner += 1;
                inner - 1
            };
            sum += weight[least];
            parent[least] = made;
        }
        weight.push(sum);
    }
    let mut depth = vec![0usize; 2 * leaves - 1];
    let mut per_len = vec![0; max + 1];
    for node in (0..2 * leaves - 2).rev() {
        depth[node] = depth[parent[node]] + 1;
        if node < leaves {
            per_len[depth[node].min(max)] += 1;
        }
    }
    per_len
}

/// Canonical codes for lengths, lowest bit first.
fn codes(lengths: &[u8], into: &mut [(u16, u8)]) {
    let mut per_len = [0u32; LEN_MAX + 1];
    for &len in lengths.iter().filter(|&&len| len != ONLY_LEN && len > 0) {
        per_len[usize::from(len)] += 1;
    }
    let mut next = [0u32; LEN_MAX + 1];
    for len in 1..=LEN_MAX {
        next[len] = (next[len - 1] + per_len[len - 1]) << 1;
    }
    for (symbol, &len) in lengths.iter().enumerate() {
        if len == 0 || len == ONLY_LEN {
            into[symbol] = (0, 0);
            continue;
        }
        let code = next[usize::from(len)] as u16;
        next[usize::from(len)] += 1;
        into[symbol] = (code.reverse_bits() >> (16 - len), len);
    }
}

/// Codes of all symbols of all contexts, and their lengths as they are written.
pub fn build(counts: &[u32]) -> (Vec<(u16, u8)>, Vec<u8>) {
    let starts = starts();
    let mut all_lengths = vec![0; counts.len()];
    let mut all_codes = vec![(0, 0); counts.len()];
    for context in 0..CONTEXTS {
        let range = starts[context]..starts[context + 1];
        short_lengths(&counts[range.clone()], &mut all_lengths[range.clone()]);
        codes(&all_lengths[range.clone()], &mut all_codes[range]);
    }
    let mut stream = Vec::new();
    for context in 0..CONTEXTS {
        tell(&all_lengths[starts[context]..starts[context + 1]], &mut stream);
    }
    let mut out = BitWriter::default();
    let mut meta_codes = [[(0u16, 0u8); META]; META_KINDS];
    for (kind, codes_of_kind) in meta_codes.iter_mut().enumerate() {
        let mut meta_counts = [0u32; META];
        let mut before = NO_MORE;
        for &(symbol, _, _) in &stream {
            meta_counts[symbol] += u32::from(meta_kind(before) == kind);
            before = symbol;
        }
        // Two that occur make every code one bit or more, so that the code is never the empty one.
        meta_counts[NO_MORE] += 1;
        meta_counts[ABSENT_RUN] += 1;
        let mut meta_lengths = [0u8; META];
        lengths(&meta_counts, META_LEN_MAX, &mut meta_lengths);
        codes(&meta_lengths, codes_of_kind);
        for len in meta_lengths {
            out.put(u64::from(len), 3);
        }
    }
    let mut before = NO_MORE;
    for (symbol, value, bits) in stream {
        let (code, len) = meta_codes[meta_kind(before)][symbol];
        before = symbol;
        out.put(u64::from(code), u32::from(len));
        if symbol == ABSENT_RUN {
            out.put(u64::from(bits), 4);
            out.put(u64::from(value), bits);
        }
    }
    (all_codes, out.finish())
}

/// The lengths of a context, as symbols of the alphabet for lengths, with value and bits for runs.
fn tell(lengths: &[u8], into: &mut Vec<(usize, u32, u32)>) {
    let end = lengths.iter().rposition(|&len| len > 0).map_or(0, |last| last + 1);
    let mut at = 0;
    while at < end {
        let absent = lengths[at..end].iter().take_while(|&&len| len == 0).count();
        match (absent, lengths[at]) {
            (0, ONLY_LEN) => into.push((ONLY, 0, 0)),
            (0, len) => into.push((usize::from(len), 0, 0)),
            (1, _) => into.push((0, 0, 0)),
            (run, _) => {
                let value = run as u32 - 1;
                let bits = value.ilog2();
                into.push((ABSENT_RUN, value - (1 << bits), bits));
            }
        }
        at += absent.max(1);
    }
    into.push((NO_MORE, 0, 0));
}

/// Tables by which symbols are read. Those of all segments do not fit in any cache, so what is used most is kept small: a first table
/// of each context holds short codes, and for longer ones where to look instead.
pub struct Tables {
    slots: [Slot; CONTEXTS],
    /// Symbol times 16, plus the length of its code; or where a second table begins, counted from the first, times 16, plus
    /// [`ELSEWHERE`].
    entries: Vec<u16>,
}

/// Where a context's tables are.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Where the first begins.
    start: u32,
    /// By which bits it is indexed: as many ones.
    first: u16,
    /// By which bits after these the second ones are indexed.
    second: u16,
}

/// Bits that a first table is indexed by, at most.
const FIRST_BITS: u32 = 7;
/// No length of a code.
const ELSEWHERE: u16 = 15;

impl Tables {
    /// Reads lengths back and makes tables of them; what is wrong, if they are nonsense.
    pub fn read(bytes: &[u8]) -> Result<Tables, &'static str> {
        let mut reader = BitReader::at(bytes, 0);
        let mut meta = Vec::new();
        let mut meta_slots = [(0, 0); META_KINDS];
        for slot in &mut meta_slots {
            let meta_lengths: [u8; META] = std::array::from_fn(|_| reader.get(3) as u8);
            *slot = (meta.len(), 0);
            slot.1 = fill(&meta_lengths, &mut meta)?;
        }
        let mut before = NO_MORE;
        let mut tables = Tables { slots: [Slot::default(); CONTEXTS], entries: Vec::new() };
        let mut lengths = Vec::new();
        for context in 0..CONTEXTS {
            lengths.clear();
            loop {
                reader.need(META_LEN_MAX as u32);
                let (start, width) = meta_slots[meta_kind(before)];
                let entry = meta[start + (reader.peek() & ((1 << width) - 1)) as usize];
                reader.drop(u32::from(entry & 15));
                before = usize::from(entry >> 4);
                match before {
                    NO_MORE => break,
                    ONLY => lengths.push(ONLY_LEN),
                    ABSENT_RUN => {
                        let bits = reader.get(4);
                        let run = (1usize << bits) + reader.get(bits) as usize + 1;
                        lengths.resize(lengths.len() + run, 0);
                    }
                    len if len <= LEN_MAX => lengths.push(len as u8),
                    _ => return Err("the code of a symbol is too long"),
                }
                if lengths.len() > symbols(context) {
                    return Err("there are codes for more symbols than there are");
                }
            }
            let start = tables.entries.len() as u32;
            let width = fill(&lengths, &mut tables.entries)?;
            let first = width.min(FIRST_BITS);
            tables.slots[context] = Slot { start, first: (1 << first) - 1, second: (1 << (width - first)) - 1 };
        }
        Ok(tables)
    }

    /// The next symbol. [`LEN_MAX`] bits must be at hand.
    #[inline(always)]
    pub fn symbol(&self, context: usize, reader: &mut BitReader) -> u32 {
        let Slot { start, first, second } = self.slots[context];
        let mut entry = self.entries[start as usize + (reader.peek() as usize & usize::from(first))];
        if entry & 15 == ELSEWHERE {
            let at = reader.peek() as usize >> FIRST_BITS & usize::from(second);
            entry = self.entries[start as usize + usize::from(entry >> 4) + at];
        }
        reader.drop(u32::from(entry & 15));
        u32::from(entry >> 4)
    }
}

/// Appends the tables for these lengths; how long the longest code is. Every string of bits must be a code.
fn fill(lengths: &[u8], into: &mut Vec<u16>) -> Result<u32, &'static str> {
    let start = into.len();
    if let Some(only) = lengths.iter().position(|&len| len == ONLY_LEN) {
        into.push((only as u16) << 4);
        return if lengths.iter().filter(|&&len| len > 0).count() == 1 {
            Ok(0)
        } else {
            Err("codes exclude each other")
        };
    }
    let width = u32::from(lengths.iter().copied().max().unwrap_or(0));
    if width == 0 {
        // A context that never occurs.
        into.push(0);
        return Ok(0);
    }
    let room: u32 = lengths.iter().filter(|&&len| len > 0).map(|&len| 1 << (width - u32::from(len))).sum();
    if room != 1 << width {
        return Err("codes leave gaps or exclude each other");
    }
    let first = width.min(FIRST_BITS);
    into.resize(start + (1 << first), 0);
    let mut all = vec![(0, 0); lengths.len()];
    codes(lengths, &mut all);
    for (symbol, &(code, len)) in all.iter().enumerate().filter(|(_, c)| c.1 > 0) {
        let entry = (symbol as u16) << 4 | u16::from(len);
        let (code, len) = (usize::from(code), u32::from(len));
        if len <= first {
            for at in (code..1 << first).step_by(1 << len) {
                into[start + at] = entry;
            }
            continue;
        }
        let prefix = start + (code & ((1 << first) - 1));
        if into[prefix] == 0 {
            into[prefix] = ((into.len() - start) as u16) << 4 | ELSEWHERE;
            into.resize(into.len() + (1 << (width - first)), 0);
        }
        let second = start + usize::from(into[prefix] >> 4);
        for at in (code >> first..1 << (width - first)).step_by(1 << (len - first)) {
            into[second + at] = entry;
        }
    }
    Ok(width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(counts: &[u32], max: usize, expected: &[u8]) {
        let mut found = vec![0; counts.len()];
        lengths(counts, max, &mut found);
        assert_eq!(found, expected, "{counts:?}");
    }

    #[test]
    fn lengths_are_those_of_huffman_unless_too_long() {
        check(&[], 3, &[]);
        check(&[0, 7], 3, &[0, ONLY_LEN]);
        check(&[1, 0, 1], 3, &[1, 0, 1]);
        check(&[8, 4, 2, 1, 1], 4, &[1, 2, 3, 4, 4]);
        check(&[8, 4, 2, 1, 1], 3, &[1, 3, 3, 3, 3]);
        check(&[1; 8], 3, &[3; 8]);
    }

    #[test]
    fn long_codes_are_found_in_second_tables() {
        let starts = starts();
        let mut counts = vec![0u32; starts[CONTEXTS]];
        for symbol in 0..symbols(0) {
            counts[starts[0] + symbol] = 1 + (1 << 24 >> (symbol % 25)) / (1 + symbol as u32);
        }
        let (codes, bytes) = build(&counts);
        let longest = codes.iter().map(|c| c.1).max();
        assert_eq!(longest.map(usize::from), Some(LEN_MAX));
        let tables = Tables::read(&bytes).expect("tables");
        for symbol in 0..symbols(0) {
            let (code, len) = codes[starts[0] + symbol];
            for after in [0, u64::MAX << len] {
                let bits = (u64::from(code) | after).to_le_bytes();
                let mut reader = BitReader::at(&bits, 0);
                assert_eq!(tables.symbol(0, &mut reader) as usize, symbol);
                assert_eq!(reader.position(), u64::from(len));
            }
        }
    }

    proptest! {
        #[test]
        fn any_counts_make_tables_that_read_what_was_written(
            seed in proptest::collection::vec((0usize..CONTEXTS, 0usize..1024, 1u32..1_000_000), 0..300),
        ) {
            let starts = starts();
            let mut counts = vec![0u32; starts[CONTEXTS]];
            for &(context, symbol, count) in &seed {
                counts[starts[context] + symbol % symbols(context)] = count;
            }
            let (codes, bytes) = build(&counts);
            let tables = Tables::read(&bytes).expect("tables");
            let mut writer = BitWriter::default();
            for &(context, symbol, _) in &seed {
                let (code, len) = codes[starts[context] + symbol % symbols(context)];
                writer.put(u64::from(code), u32::from(len));
            }
            let bits = writer.finish();
            let mut reader = BitReader::at(&bits, 0);
            for &(context, symbol, _) in &seed {
                reader.need(LEN_MAX as u32);
                prop_assert_eq!(tables.symbol(context, &mut reader) as usize, symbol % symbols(context));
            }
        }

        #[test]
        fn nonsense_is_refused_or_read_but_never_trips(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tables) = Tables::read(&bytes) {
                let mut reader = BitReader::at(&bytes, 0);
                for context in 0..CONTEXTS {
                    reader.need(LEN_MAX as u32);
                    prop_assert!((tables.symbol(context, &mut reader) as usize) < symbols(context).max(1));
                }
            }
        }
    }
}
