//! Canonical prefix codes of at most fifteen bits.
//!
//! A code is told by the lengths of its words alone: words of one length follow each other in the order of their symbols,
//! shorter ones come first. What is read is found by one look into a table of the first [`FAST_BITS`] bits; the few
//! words that are longer are found length by length.

/// No word is longer.
pub(super) const BITS_MAX: u32 = 15;
/// Words up to this length are found at once. With 12 bits a search takes a tenth less time than with 11, for 24 KiB more.
const FAST_BITS: u32 = 12;

/// The lengths of the words for symbols that occur so often; zero for those that do not occur.
///
/// Where the best code has words that are too long, rare symbols are counted as if they were less rare, which costs little.
pub(super) fn lengths(counts: &[u32]) -> Vec<u8> {
    let used: Vec<usize> = (0..counts.len()).filter(|&s| counts[s] > 0).collect();
    let mut lengths = vec![0; counts.len()];
    if used.len() < 2 {
        used.iter().for_each(|&s| lengths[s] = 1);
        return lengths;
    }
    let total: u64 = used.iter().map(|&s| u64::from(counts[s])).sum();
    let mut floor = total >> (BITS_MAX + 2);
    loop {
        let weights: Vec<u64> = used.iter().map(|&s| u64::from(counts[s]).max(floor)).collect();
        let depths = depths(&weights);
        if depths.iter().all(|&d| d <= BITS_MAX) {
            used.iter().zip(&depths).for_each(|(&s, &d)| lengths[s] = d as u8);
            return lengths;
        }
        floor = floor * 2 + 1;
    }
}

/// How deep every weight is in the tree that makes the sum of weight times depth smallest.
fn depths(weights: &[u64]) -> Vec<u32> {
    let n = weights.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| (weights[i], i));
    // Leaves in order of weight, then inner nodes, which come into being in order of weight too: two queues.
    let mut weight: Vec<u64> = order.iter().map(|&i| weights[i]).collect();
    let mut parent = vec![0; 2 * n - 1];
    let (mut leaf, mut inner) = (0, n);
    for made in n..2 * n - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let taken =
                if leaf < n && (inner == made || weight[leaf] <= weight[inner]) { &mut leaf } else { &mut inner };
            sum += weight[*taken];
            parent[*taken] = made;
            *taken += 1;
        }
        weight.push(sum);
    }
    let mut depth = vec![0; 2 * n - 1];
    for node in (0..2 * n - 2).rev() {
        depth[node] = depth[parent[node]] + 1;
    }
    let mut by_symbol = vec![0; n];
    order.iter().zip(&depth).for_each(|(&symbol, &d)| by_symbol[symbol] = d);
    by_symbol
}

/// The word of every symbol, from the lengths.
pub(super) fn words(lengths: &[u8]) -> Vec<u32> {
    let (mut next, _) = starts(lengths);
    lengths
        .iter()
        .map(|&length| {
            let word = next[length as usize];
            next[length as usize] += 1;
            word
        })
        .collect()
}

/// The first word of every length, and how many there are of each.
fn starts(lengths: &[u8]) -> ([u32; 17], [u32; 17]) {
    let mut counts = [0; 17];
    lengths.iter().for_each(|&l| counts[usize::from(l.min(16))] += 1);
    counts[0] = 0;
    let mut starts = [0; 17];
    for length in 1..17 {
        starts[length] = (starts[length - 1] + counts[length - 1]) << 1;
    }
    starts[0] = 0;
    (starts, counts)
}

/// Codes that can be read, one for each of a few contexts.
///
/// A word leads to an entry: its length in the lowest four bits, and above it what the maker wants to know of the symbol.
/// No entry is zero.
pub(super) struct Decoder {
    /// By context and the first bits: the entry, or zero if the word is longer.
    fast: Vec<[u32; 1 << FAST_BITS]>,
    long: Vec<LongWords>,
}

/// Words of any length, found length by length.
struct LongWords {
    /// For every length the end of its words, at the upper end of sixteen bits.
    ends: [u32; 16],
    /// For every length what to add to a word to find its place in `by_word`.
    places: [u32; 16],
    by_word: Vec<u32>,
}

impl Decoder {
    /// Codes with words of these lengths, by context and symbol, if there are such. No symbols at all are a code too.
    /// What is told of a symbol has 28 bits.
    pub(super) fn new(lengths: &[Vec<u8>], told: impl Fn(usize) -> u32) -> Option<Decoder> {
        let mut decoder = Decoder { fast: Vec::new(), long: Vec::new() };
        for lengths in lengths {
            decoder.add(lengths, &told)?;
        }
        Some(decoder)
    }

    fn add(&mut self, lengths: &[u8], told: impl Fn(usize) -> u32) -> Option<()> {
        if lengths.iter().any(|&l| u32::from(l) > BITS_MAX) {
            return None;
        }
        let (starts, counts) = starts(lengths);
        let mut long = LongWords { ends: [0; 16], places: [0; 16], by_word: Vec::new() };
        let mut before = 0u32;
        for length in 1..=BITS_MAX as usize {
            let end = (starts[length] + counts[length]) << (16 - length);
            if end > 1 << 16 {
                return None;
            }
            long.ends[length] = end;
            long.places[length] = before.wrapping_sub(starts[length]);
            before += counts[length];
        }
        let mut fast = [0; 1 << FAST_BITS];
        long.by_word = vec![0; before as usize];
        for (symbol, (&length, word)) in lengths.iter().zip(words(lengths)).enumerate().filter(|(_, (l, _))| **l > 0) {
            let entry = told(symbol) << 4 | u32::from(length);
            long.by_word[word.wrapping_add(long.places[usize::from(length)]) as usize] = entry;
            if u32::from(length) <= FAST_BITS {
                let spare = FAST_BITS - u32::from(length);
                let from = (word << spare) as usize;
                fast[from..from + (1 << spare)].fill(entry);
            }
        }
        self.fast.push(fast);
        self.long.push(long);
        Some(())
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let long = self.long.iter().map(|long| size_of::<LongWords>() + long.by_word.len() * 4);
        size_of_val(&self.fast[..]) + long.sum::<usize>()
    }

    /// The entry of the word at the upper end of `bits`; zero if no word begins like this.
    #[inline]
    pub(super) fn read(&self, context: usize, bits: u64) -> u32 {
        let entry = self.fast[context][(bits >> (64 - FAST_BITS)) as usize];
        if entry != 0 { entry } else { self.long[context].read(bits) }
    }
}

impl LongWords {
    #[inline(never)]
    fn read(&self, bits: u64) -> u32 {
        let sixteen = (bits >> 48) as u32;
        let beyond = self.ends[FAST_BITS as usize + 1..].iter().map(|&end| u32::from(sixteen >= end)).sum::<u32>();
        let length = FAST_BITS + 1 + beyond;
        let Some(&place) = self.places.get(length as usize) else { return 0 };
        self.by_word.get((sixteen >> (16 - length)).wrapping_add(place) as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counts: &[u32]) {
        let lengths = lengths(counts);
        let (words, decoder) = (words(&lengths), decoder(&lengths).expect("a code"));
        for (symbol, &count) in counts.iter().enumerate() {
            let length = u32::from(lengths[symbol]);
            assert_eq!(length > 0, count > 0);
            if length > 0 {
                let noise = 0x0123_4567_89ab_cdef_u64 >> length;
                let bits = u64::from(words[symbol]) << (64 - length) | noise;
                assert_eq!(decoder.read(0, bits), (symbol as u32) << 4 | length);
            }
        }
    }

    fn decoder(lengths: &[u8]) -> Option<Decoder> {
        Decoder::new(&[lengths.to_vec()], |symbol| symbol as u32)
    }

    #[test]
    fn every_symbol_is_read_back() {
        check(&[]);
        check(&[0, 7]);
        check(&[1, 0, 7]);
        check(&(0..3000).collect::<Vec<u32>>());
        let mut fibonacci = vec![1, 1];
        (2..40).for_each(|n| fibonacci.push(fibonacci[n - 1] + fibonacci[n - 2]));
        check(&fibonacci);
        check(&vec![1; 1 << 14]);
    }

    #[test]
    fn frequent_symbols_have_short_words() {
        assert_eq!(lengths(&[8, 4, 2, 1, 1]), [1, 2, 3, 4, 4]);
        assert_eq!(lengths(&[3, 3, 3, 3]), [2, 2, 2, 2]);
    }

    #[test]
    fn lengths_that_are_no_code() {
        assert!(decoder(&[1, 1, 1]).is_none());
        assert!(decoder(&[16]).is_none());
        let lacking = decoder(&[2, 2]).expect("a code that is not full");
        assert_eq!(lacking.read(0, u64::MAX), 0);
        assert_eq!(decoder(&[]).expect("an empty code").read(0, 0), 0);
    }
}
