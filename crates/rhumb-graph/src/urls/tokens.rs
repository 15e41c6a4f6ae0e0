//! Tokens: the pieces of text that what is kept of URLs is put together from, learned from a sample of it.
//!
//! Texts end with a symbol of their own, so `.html` and the end may be one token, and no lengths are kept. Learning goes in
//! generations, as for FSST (Boncz, Neumann, Leis 2020): parse the sample with the tokens there are, propose every pair
//! that was seen side by side, keep those by which most bits are saved. What a token saves is counted against the cheapest
//! way to say the same with other tokens, where a token that is seen n times among N costs log2(N / n) bits.

/// Bytes of a token at most; its end is not counted.
pub(super) const TOKEN_BYTES_MAX: usize = 15;
/// Tokens in a dictionary at most.
pub(super) const TOKENS_MAX: usize = 4096;
/// The symbol at the end of every text.
const END: u32 = 256;
/// Learning goes through dictionaries of these sizes, each learned from one in so many texts of the sample: what is
/// frequent is seen in a few. Near the end it no longer grows but finds better tokens.
const GENERATIONS: [(usize, usize); 9] =
    [(384, 8), (640, 8), (1024, 8), (1600, 4), (2304, 4), (3072, 2), (TOKENS_MAX, 1), (TOKENS_MAX, 1), (TOKENS_MAX, 1)];
/// Samples of fewer texts are used as a whole.
const SAMPLE_TEXTS_FEW: usize = 4096;
/// What a token costs in the file: itself and its words.
const TOKEN_COST_BITS: f32 = 56.0;

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Token {
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    /// Whether the text ends with it.
    pub(super) ends: bool,
}

impl Token {
    fn symbols(&self) -> usize {
        self.bytes.len() + usize::from(self.ends)
    }

    fn symbol(&self, at: usize) -> u32 {
        self.bytes.get(at).map_or(END, |&b| u32::from(b))
    }

    fn joined(&self, next: &Token) -> Option<Token> {
        let fits = !self.ends && self.bytes.len() + next.bytes.len() <= TOKEN_BYTES_MAX;
        fits.then(|| Token { bytes: [&self.bytes[..], &next.bytes].concat(), ends: next.ends })
    }
}

/// The tokens that serve texts like these best. `share` is how much of the whole the sample is. All bytes and the end are
/// among them, in front.
pub(super) fn learn(sample: &[&[u8]], share: f32) -> Vec<Token> {
    let mut tokens: Vec<Token> = (0..=255).map(|b| Token { bytes: vec![b], ends: false }).collect();
    tokens.push(Token { bytes: Vec::new(), ends: true });
    let singles = tokens.len();
    let (mut parsed, mut pairs) = (Vec::new(), Vec::new());
    for (size, step) in GENERATIONS {
        // Of a small sample all is needed.
        let step = if sample.len() < SAMPLE_TEXTS_FEW { 1 } else { step };
        let cost_bits = TOKEN_COST_BITS * share / step as f32;
        let matcher = Matcher::new(&tokens);
        parsed.clear();
        sample.iter().step_by(step).for_each(|text| matcher.parse(text, &mut parsed));
        let mut counts = vec![0u32; tokens.len()];
        parsed.iter().for_each(|&t| counts[usize::from(t)] += 1);
        let costs = costs(&counts, parsed.len());
        let cost = |count: u32| (parsed.len() as f32 / count.max(1) as f32).log2();

        // A token there is, or a pair of two.
        let mut scored: Vec<(f32, usize, Option<usize>)> = Vec::new();
        for (n, token) in tokens.iter().enumerate().skip(singles).filter(|(n, _)| counts[*n] > 0) {
            let saved = matcher.cost_without(token, n, &costs) - costs[n];
            scored.push((saved * counts[n] as f32, n, None));
        }
        pairs.clear();
        pairs.extend(parsed.windows(2).map(|two| u32::from(two[0]) << 16 | u32::from(two[1])));
        pairs.sort_unstable();
        for same in pairs.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
            let (left, right) = ((same[0] >> 16) as usize, (same[0] & 0xffff) as usize);
            let saved = costs[left] + costs[right] - cost(same.len() as u32);
            scored.push((saved * same.len() as f32, left, Some(right)));
        }
        scored.retain(|(saved, ..)| *saved > cost_bits);
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        let mut next = tokens[..singles].to_vec();
        let mut known = std::collections::HashSet::with_capacity(size);
        for (_, left, right) in scored {
            if next.len() >= size {
                break;
            }
            let token = right.map_or_else(|| Some(tokens[left].clone()), |right| tokens[left].joined(&tokens[right]));
            if let Some(token) = token.filter(|token| known.insert(token.clone())) {
                next.push(token);
            }
        }
        tokens = next;
    }
    tokens
}

/// What each token costs, in bits, if it is seen so often; rather much if it is never seen.
fn costs(counts: &[u32], total: usize) -> Vec<f32> {
    counts.iter().map(|&n| (total as f32 / (n as f32).max(0.5)).max(1.0).log2()).collect()
}

/// What a place of the tree holds that stands for no token.
const NONE: u32 = (1 << NODE_SHIFT) - 1;
/// A node of the tree: its number, and below it the token that it stands for.
const NODE_SHIFT: u32 = 13;

/// Finds the longest token that a text begins with: a tree of all tokens, its branches in one hash table.
pub(super) struct Matcher {
    /// The branch, and the node it leads to.
    table: Vec<(u32, u32)>,
    shift: u32,
    nodes: u32,
    /// Where each symbol leads from the root.
    first: Vec<u32>,
}

impl Matcher {
    /// A matcher of these tokens, all bytes and the end among them; their places in the list are their numbers.
    pub(super) fn new(tokens: &[Token]) -> Matcher {
        let nodes: usize = tokens.iter().map(Token::symbols).sum();
        let bits = (nodes * 2).max(16).next_power_of_two().ilog2();
        let mut matcher =
            Matcher { table: vec![(u32::MAX, 0); 1 << bits], shift: 32 - bits, nodes: 1, first: Vec::new() };
        for (n, token) in tokens.iter().enumerate() {
            let (mut node, mut slot) = (0, 0);
            for at in 0..token.symbols() {
                let branch = node << 9 | token.symbol(at);
                slot = matcher.slot(branch);
                if matcher.table[slot].0 == u32::MAX {
                    matcher.table[slot] = (branch, matcher.nodes << NODE_SHIFT | NONE);
                    matcher.nodes += 1;
                }
                node = matcher.table[slot].1 >> NODE_SHIFT;
            }
            matcher.table[slot].1 = node << NODE_SHIFT | n as u32;
        }
        matcher.first = (0..=END).map(|symbol| matcher.child(0, symbol).unwrap_or(NONE)).collect();
        matcher
    }

    #[inline]
    fn slot(&self, branch: u32) -> usize {
        let mut slot = (branch.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        while self.table[slot].0 != branch && self.table[slot].0 != u32::MAX {
            slot = (slot + 1) & (self.table.len() - 1);
        }
        slot
    }

    #[inline]
    fn child(&self, node: u32, symbol: u32) -> Option<u32> {
        let branch = node << 9 | symbol;
        let (found, child) = self.table[self.slot(branch)];
        (found == branch).then_some(child)
    }

    /// Appends the tokens of a text, the longest that fits first, the last one with the end.
    pub(super) fn parse(&self, text: &[u8], into: &mut Vec<u16>) {
        let symbol_at = |at: usize| text.get(at).map_or(END, |&byte| u32::from(byte));
        let mut at = 0;
        while at <= text.len() {
            let mut node = self.first[symbol_at(at) as usize];
            let (mut best, mut best_end) = (node & NONE, at + 1);
            for next in at + 1..=text.len() {
                let Some(found) = self.child(node >> NODE_SHIFT, symbol_at(next)) else { break };
                node = found;
                if node & NONE != NONE {
                    (best, best_end) = (node & NONE, next + 1);
                }
            }
            into.push(best as u16);
            at = best_end;
        }
    }

    /// The least that a token's text costs if it is said with other tokens than itself.
    fn cost_without(&self, token: &Token, number: usize, costs: &[f32]) -> f32 {
        let mut least = [f32::INFINITY; TOKEN_BYTES_MAX + 2];
        least[0] = 0.0;
        for from in 0..token.symbols() {
            let mut node = 0;
            for at in from..token.symbols() {
                let Some(next) = self.child(node, token.symbol(at)) else { break };
                node = next >> NODE_SHIFT;
                let found = next & NONE;
                if found != NONE && found as usize != number {
                    least[at + 1] = least[at + 1].min(least[from] + costs[found as usize]);
                }
            }
        }
        least[token.symbols()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frequent_becomes_a_token_and_nothing_is_lost() {
        let texts: Vec<String> = (0..3000).map(|n| format!("chapter-{}/page-{}.html", n % 7, n * 31 % 1000)).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|t| t.as_bytes()).collect();
        let tokens = learn(&texts, 1.0);
        assert!(tokens.iter().any(|t| t.ends && t.bytes.ends_with(b".html")), "{:?}", &tokens[257..]);
        let matcher = Matcher::new(&tokens);
        let (mut parsed, mut said) = (Vec::new(), Vec::new());
        for text in texts.iter().copied().chain([&b""[..], b"\xff\0", b"pag"]) {
            parsed.clear();
            said.clear();
            matcher.parse(text, &mut parsed);
            parsed.iter().for_each(|&t| said.extend_from_slice(&tokens[usize::from(t)].bytes));
            assert_eq!(said, text);
            let ends = parsed.iter().filter(|&&t| tokens[usize::from(t)].ends).count();
            assert!(ends == 1 && tokens[usize::from(parsed[parsed.len() - 1])].ends);
        }
    }
}
