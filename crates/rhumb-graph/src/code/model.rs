//! What a row is made of: symbols, each in a context, and how a number becomes a symbol and bits.
//!
//! A row is written so that it can be passed over without knowing the rows it refers to: contexts are made of what stands before in
//! the same group of rows, and nothing else. Symbols of a row, in order:
//!
//! 1. its head: how many rows back the reference is (0: none), and four flags, see [`Head`];
//! 2. unless all of the reference is copied: lengths of blocks that are copied and skipped in turn, the first copied and perhaps empty,
//!    until a length of 0, which means: the rest;
//! 3. if there are successors below the node itself that are not copied: how many steps lead to them, less one; the same for those above;
//! 4. the steps down from the node, then the steps up from it. A step is a gap to the next successor, or a run of neighbours.

use super::bits::BitWriter;
use crate::Node;

/// Numbers below this are symbols themselves.
const DIRECT: u32 = 16;
/// Symbols for numbers: larger ones are known by their highest two bits, and the rest is written as it is.
pub const NUMBERS: usize = DIRECT as usize + 28 * 2;
/// Neighbours in a row from which on they are a run.
pub const RUN_MIN: u32 = 2;
/// The largest window: a head is a symbol below 1,024.
pub const WINDOW_MAX: u8 = 63;

/// Contexts of heads: none before in the group, then by the head before.
const HEADS: usize = 1 + 3 * 8;
/// The first, then by direction, whether it is one of the first, and the length before.
const BLOCKS: usize = 1 + 2 * 2 * 8;
const BELOW: usize = 6;
const ABOVE: usize = 18;
/// Contexts of steps in one direction of one kind of row: four for the first, one after a run, the others after a gap.
const STEPS: usize = 4 + 1 + 10;

const BLOCKS_AT: usize = HEADS;
const BELOW_AT: usize = BLOCKS_AT + BLOCKS;
const ABOVE_AT: usize = BELOW_AT + BELOW;
const STEPS_AT: usize = ABOVE_AT + ABOVE;
/// How many contexts there are.
pub const CONTEXTS: usize = STEPS_AT + 4 * 2 * STEPS;

/// Parts of a row that statistics tell apart: heads, blocks, counts, steps, and the bits of numbers that are in no symbol.
pub const PARTS: usize = 5;

/// Symbols that a context may have.
pub fn symbols(context: usize) -> usize {
    match context {
        0..BLOCKS_AT => (WINDOW_MAX as usize + 1) << 4,
        BLOCKS_AT..STEPS_AT => NUMBERS,
        _ => 2 * NUMBERS,
    }
}

/// Which part of a row a context belongs to.
pub fn part(context: usize) -> usize {
    match context {
        0..BLOCKS_AT => 0,
        BLOCKS_AT..BELOW_AT => 1,
        BELOW_AT..STEPS_AT => 2,
        _ => 3,
    }
}

/// A number's symbol, and how many bits of it follow.
pub fn symbol_of(number: u32) -> (u32, u32) {
    if number < DIRECT {
        return (number, 0);
    }
    let high = number.ilog2();
    (DIRECT + ((high - 4) << 1) + ((number >> (high - 1)) & 1), high - 1)
}

/// What a symbol of a number says.
#[derive(Clone, Copy)]
pub struct Number {
    /// The least number with this symbol.
    pub base: u32,
    /// How many bits are to be added.
    pub bits: u8,
    /// The context of the step after a gap of this size, counted from the first of its direction.
    pub next: u8,
}

/// All of them; those of runs follow those of gaps.
pub const NUMBER: [Number; 2 * NUMBERS] = {
    let mut all = [Number { base: 0, bits: 0, next: AFTER_RUN }; 2 * NUMBERS];
    let mut symbol = 0;
    while symbol < NUMBERS as u32 {
        let (base, bits) = if symbol < DIRECT {
            (symbol, 0)
        } else {
            let bits = ((symbol - DIRECT) >> 1) + 3;
            ((2 | (symbol & 1)) << bits, bits)
        };
        let class = GAP_CLASS[(32 - base.leading_zeros()) as usize];
        all[symbol as usize] = Number { base, bits: bits as u8, next: AFTER_RUN + 1 + class };
        all[symbol as usize + NUMBERS] =
            Number { base: base.saturating_add(RUN_MIN), bits: bits as u8, next: AFTER_RUN };
        symbol += 1;
    }
    all
};
const AFTER_RUN: u8 = 4;
/// Gaps of about the same size, by how many bits they have.
const GAP_CLASS: [u8; 33] = {
    let mut class = [9; 33];
    let mut bits = 0;
    while bits < 17 {
        class[bits] = [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7, 8, 8, 8, 8, 8][bits];
        bits += 1;
    }
    class
};

/// The first symbol of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head(pub u32);

impl Head {
    /// How many rows back the reference is; 0 if there is none.
    pub fn reference(self) -> u32 {
        self.0 >> 4
    }
    /// Whether the node itself is a successor, and not copied. Such a one is not there for rows that refer to this one.
    pub fn own(self) -> bool {
        self.0 & 8 != 0
    }
    /// Whether all of the reference is copied, or there is none.
    pub fn whole(self) -> bool {
        self.0 & 4 != 0
    }
    /// Whether successors below the node follow.
    pub fn below(self) -> bool {
        self.0 & 2 != 0
    }
    /// Whether successors above the node follow.
    pub fn above(self) -> bool {
        self.0 & 1 != 0
    }
    /// The context of the next row's head.
    pub fn context_after(self) -> usize {
        let flags = (self.0 >> 3 & 1) << 2 | u32::from(self.0 & 3 != 0) << 1 | (self.0 >> 2 & 1);
        1 + (self.reference().min(2) << 3 | flags) as usize
    }
}

/// The context of a head that is the first in its group.
pub const HEAD_FIRST: usize = 0;

/// The context of block `n`, if the block before has this length.
#[inline(always)]
pub fn block_context(n: usize, before: u32) -> usize {
    let class = (32 - before.leading_zeros()).min(7) as usize;
    if n == 0 { BLOCKS_AT } else { BLOCKS_AT + 1 + ((n & 1) << 4 | usize::from(n > 2) << 3 | class) }
}

/// The context of the number of steps below.
pub fn below_context(head: Head) -> usize {
    BELOW_AT + kind(head) * 2 + usize::from(head.above())
}

/// The context of the number of steps above, when so many are below.
pub fn above_context(head: Head, below: u32) -> usize {
    ABOVE_AT + kind(head) * 6 + (32 - below.leading_zeros()).min(5) as usize
}

fn kind(head: Head) -> usize {
    match (head.reference(), head.whole()) {
        (0, _) => 0,
        (_, true) => 1,
        _ => 2,
    }
}

/// The contexts of steps in a direction, and which of them is that of the first of so many steps.
#[inline(always)]
pub fn step_contexts(head: Head, up: bool, steps: u32) -> (usize, usize) {
    let row = usize::from(head.own()) << 1 | usize::from(head.reference() == 0);
    (STEPS_AT + (row << 1 | usize::from(up)) * STEPS, [0, 0, 1, 2, 2, 3][steps.min(5) as usize])
}

/// Where symbols go: they are counted, weighed or written.
pub trait Sink {
    /// A symbol, and `bits` further bits.
    fn put(&mut self, context: usize, symbol: u32, bits: u32, value: u32);

    /// A number.
    #[inline]
    fn number(&mut self, context: usize, number: u32) {
        let (symbol, bits) = symbol_of(number);
        self.put(context, symbol, bits, number);
    }
}

/// Where the symbols of all contexts begin in an array for all of them.
pub fn starts() -> [usize; CONTEXTS + 1] {
    let mut starts = [0; CONTEXTS + 1];
    for context in 0..CONTEXTS {
        starts[context + 1] = starts[context] + symbols(context);
    }
    starts
}

/// How often each symbol occurs.
pub struct Counts {
    /// Where each context begins.
    pub starts: [usize; CONTEXTS + 1],
    /// The counts of all symbols of all contexts.
    pub counts: Vec<u32>,
    /// Bits that are in no symbol.
    pub plain_bits: u64,
}

impl Counts {
    /// Nothing yet.
    pub fn new() -> Counts {
        let starts = starts();
        Counts { starts, counts: vec![0; starts[CONTEXTS]], plain_bits: 0 }
    }
}

impl Sink for Counts {
    #[inline]
    fn put(&mut self, context: usize, symbol: u32, bits: u32, _: u32) {
        self.counts[self.starts[context] + symbol as usize] += 1;
        self.plain_bits += u64::from(bits);
    }
}

/// What a symbol costs that did not occur so far: more than any that did, so that tables stay small.
const UNSEEN_BITS: f32 = 14.0;

/// What symbols cost, in bits.
pub struct Costs {
    starts: [usize; CONTEXTS + 1],
    costs: Vec<f32>,
}

impl Costs {
    /// A guess, before anything was counted.
    pub fn guessed() -> Costs {
        let starts = starts();
        let mut costs = vec![0.0; starts[CONTEXTS]];
        for context in 0..CONTEXTS {
            for symbol in 0..symbols(context) {
                costs[starts[context] + symbol] =
                    if context < BLOCKS_AT { 4.0 } else { 1.0 + (symbol as f32 + 1.0).log2() };
            }
        }
        Costs { starts, costs }
    }

    /// What they would cost if they came as often as counted.
    pub fn counted(counts: &Counts) -> Costs {
        let mut costs = vec![0.0; counts.counts.len()];
        for context in 0..CONTEXTS {
            let range = counts.starts[context]..counts.starts[context + 1];
            let sum: f32 = counts.counts[range.clone()].iter().map(|&n| n as f32).sum();
            if sum == 0.0 {
                costs[range].fill(UNSEEN_BITS);
                continue;
            }
            for at in range {
                costs[at] = ((sum + 1.0) / (counts.counts[at] as f32 + 0.1)).log2().min(UNSEEN_BITS);
            }
        }
        Costs { starts: counts.starts, costs }
    }
}

/// A sum of costs.
pub struct Weigher<'a> {
    /// What each symbol costs.
    pub costs: &'a Costs,
    /// The sum so far.
    pub bits: f32,
}

impl Sink for Weigher<'_> {
    #[inline]
    fn put(&mut self, context: usize, symbol: u32, bits: u32, _: u32) {
        self.bits += self.costs.costs[self.costs.starts[context] + symbol as usize] + bits as f32;
    }
}

/// Writes symbols with their codes.
pub struct Emitter<'a> {
    /// Where each context begins.
    pub starts: [usize; CONTEXTS + 1],
    /// Code and its length for every symbol.
    pub codes: &'a [(u16, u8)],
    /// Where the bits go.
    pub out: &'a mut BitWriter,
    /// Bits by part of the row.
    pub parts: &'a mut [u64; PARTS],
}

impl Sink for Emitter<'_> {
    #[inline]
    fn put(&mut self, context: usize, symbol: u32, bits: u32, value: u32) {
        let (code, len) = self.codes[self.starts[context] + symbol as usize];
        self.out.put(u64::from(code), u32::from(len));
        self.parts[part(context)] += u64::from(len);
        if bits > 0 {
            self.out.put(u64::from(value) & ((1 << bits) - 1), bits);
            self.parts[PARTS - 1] += u64::from(bits);
        }
    }
}

/// A row taken apart, for one choice of reference.
#[derive(Default)]
pub struct Split {
    blocks: Vec<u32>,
    below: Vec<Node>,
    above: Vec<Node>,
    own: bool,
}

impl Split {
    /// Takes the row of `node` apart; `source` is the row it refers to, as such rows are seen, or nothing.
    pub fn of(&mut self, node: Node, row: &[Node], source: &[Node]) {
        self.blocks.clear();
        self.below.clear();
        self.above.clear();
        self.own = false;
        let mut at = 0;
        let (mut copying, mut len) = (true, 0);
        for &wanted in source {
            while at < row.len() && row[at] < wanted {
                self.rest(node, row[at]);
                at += 1;
            }
            let found = at < row.len() && row[at] == wanted;
            at += usize::from(found);
            if found != copying {
                self.blocks.push(len);
                (copying, len) = (found, 0);
            }
            len += 1;
        }
        for &successor in &row[at..] {
            self.rest(node, successor);
        }
        self.below.reverse();
    }

    #[inline]
    fn rest(&mut self, node: Node, successor: Node) {
        match successor.cmp(&node) {
            std::cmp::Ordering::Less => self.below.push(successor),
            std::cmp::Ordering::Equal => self.own = true,
            std::cmp::Ordering::Greater => self.above.push(successor),
        }
    }

    /// Whether the node itself is a successor that is not copied.
    pub fn own(&self) -> bool {
        self.own
    }

    /// The head, for this reference.
    pub fn head(&self, reference: u32) -> Head {
        let flags = u32::from(self.own) << 3
            | u32::from(self.blocks.is_empty()) << 2
            | u32::from(!self.below.is_empty()) << 1
            | u32::from(!self.above.is_empty());
        Head(reference << 4 | flags)
    }

    /// Everything after the head.
    pub fn body(&self, node: Node, head: Head, sink: &mut impl Sink) {
        let mut before = 0;
        for (n, &len) in self.blocks.iter().enumerate() {
            sink.number(block_context(n, before), len);
            before = len;
        }
        if !self.blocks.is_empty() {
            sink.number(block_context(self.blocks.len(), before), 0);
        }
        let below = steps(node, &self.below, |_| {});
        let above = steps(node, &self.above, |_| {});
        if below > 0 {
            sink.number(below_context(head), below - 1);
        }
        if above > 0 {
            sink.number(above_context(head, below), above - 1);
        }
        for (up, list, count) in [(false, &self.below, below), (true, &self.above, above)] {
            let (base, mut context) = step_contexts(head, up, count);
            steps(node, list, |step| {
                let (symbol, bits, value) = match step {
                    Step::Gap(gap) => {
                        let (symbol, bits) = symbol_of(gap);
                        (symbol, bits, gap)
                    }
                    Step::Run(more) => {
                        let (symbol, bits) = symbol_of(more);
                        (symbol + NUMBERS as u32, bits, more)
                    }
                };
                sink.put(base + context, symbol, bits, value);
                context = usize::from(NUMBER[symbol as usize].next);
            });
        }
    }
}

enum Step {
    /// So many nodes are left out before the next.
    Gap(u32),
    /// So many neighbours follow, less [`RUN_MIN`].
    Run(u32),
}

/// Walks away from `node` along `list`; how many steps that takes.
fn steps(node: Node, list: &[Node], mut each: impl FnMut(Step)) -> u32 {
    let (mut from, mut at, mut count) = (node, 0, 0);
    while at < list.len() {
        let mut end = at;
        let mut last = from;
        while end < list.len() && list[end].abs_diff(last) == 1 {
            last = list[end];
            end += 1;
        }
        let neighbours = (end - at) as u32;
        if neighbours >= RUN_MIN {
            each(Step::Run(neighbours - RUN_MIN));
            (at, from) = (end, last);
        } else {
            each(Step::Gap(list[at].abs_diff(from) - 1));
            from = list[at];
            at += 1;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_symbols_tell_the_same() {
        for number in (0..5000).chain((0..32).flat_map(|b| [(1u32 << b) - 1, 1 << b, (1 << b) + 1])).chain([u32::MAX]) {
            let (symbol, bits) = symbol_of(number);
            let said = NUMBER[symbol as usize];
            assert_eq!(u32::from(said.bits), bits, "{number}");
            assert_eq!(said.base + (number & ((1u64 << bits) - 1) as u32), number);
        }
    }
}
