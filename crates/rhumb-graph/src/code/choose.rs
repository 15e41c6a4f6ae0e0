//! Which row each row refers to: as few bits as can be, no chain of references longer than allowed.
//!
//! First every row is weighed against every row of its window. If each took its best reference, chains would be too long; so chains
//! are cut where that costs least (a dynamic program over the forest of best references, as in Zuckerli), and then each row looks
//! once more for the best reference that keeps all chains short. What symbols cost is known only when rows have been chosen, so
//! this is done several times, with what the last choice taught.

use super::model::{Costs, Counts, HEAD_FIRST, Head, Sink, Split, Weigher};
use super::{CodeOptions, Effort};
use crate::Node;

/// How many of the best references of a row are weighed again.
const KEPT: usize = 6;
/// What a reference must spare at least: it makes chains longer, for which others pay, and reading slower.
const REFERENCE_BITS: f32 = 2.0;
/// How many references are weighed at all: those that seem to have most in common with the row.
const WEIGHED_BEST: usize = 12;
/// The same when it has to be quick, and only the nearest are looked at.
const WEIGHED_FAST: usize = 3;
const LOOKED_AT_FAST: usize = 7;
const REFILLS: usize = 2;

/// Some rows in order.
#[derive(Default)]
pub struct Block {
    ends: Vec<usize>,
    nodes: Vec<Node>,
}

impl Block {
    /// Adds a row.
    pub fn push(&mut self, row: impl Iterator<Item = Node>) {
        self.nodes.extend(row);
        self.ends.push(self.nodes.len());
    }

    /// Row `n`.
    #[inline]
    pub fn row(&self, n: usize) -> &[Node] {
        &self.nodes[if n == 0 { 0 } else { self.ends[n - 1] }..self.ends[n]]
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// How many arcs there are.
    pub fn arcs(&self) -> usize {
        self.nodes.len()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.nodes.clear();
    }
}

/// The reference of every row of `rows`, of which the first is that of `first`, and how often symbols occur then.
pub fn choose(first: Node, rows: &Block, options: &CodeOptions) -> (Vec<u8>, Counts) {
    let mut chooser = Chooser::new(first, rows, options);
    let rounds = match options.effort {
        Effort::Best => 3,
        Effort::Fast => 1,
    };
    let mut costs = Costs::guessed();
    for round in 1.. {
        chooser.weigh(&costs);
        let references = chooser.pick();
        let counts = chooser.apply(&references);
        if round == rounds {
            return (references, counts);
        }
        costs = Costs::counted(&counts);
        chooser.keep_best();
    }
    unreachable!("the last round returns")
}

/// Calls `each` with every row as it is written: its place, its parts and its head, and the context of that.
pub fn walk(
    first: Node,
    rows: &Block,
    references: &[u8],
    group: usize,
    mut each: impl FnMut(usize, &Split, Head, usize),
) -> Block {
    let mut sources = Block::default();
    let mut split = Split::default();
    let mut context = HEAD_FIRST;
    for (n, &reference) in references.iter().enumerate() {
        let node = first + n as Node;
        let reference = usize::from(reference);
        split.of(node, rows.row(n), if reference == 0 { &[] } else { sources.row(n - reference) });
        let head = split.head(reference as u32);
        if n % group == 0 {
            context = HEAD_FIRST;
        }
        each(n, &split, head, context);
        context = head.context_after();
        let own = split.own();
        sources.push(rows.row(n).iter().copied().filter(|&s| !own || s != node));
    }
    sources
}

struct Chooser<'a> {
    first: Node,
    rows: &'a Block,
    /// Rows as they are seen by those that refer to them.
    sources: Block,
    /// Contexts of heads, by the last choice.
    contexts: Vec<u8>,
    group: usize,
    window: usize,
    chain_max: usize,
    /// Which references of each row are worth weighing, as bits.
    worth: Vec<u64>,
    /// What each row costs with each reference; endless if it has not been weighed.
    bits: Vec<f32>,
}

impl<'a> Chooser<'a> {
    fn new(first: Node, rows: &'a Block, options: &CodeOptions) -> Chooser<'a> {
        let mut sources = Block::default();
        for n in 0..rows.rows() {
            let node = first + n as Node;
            sources.push(rows.row(n).iter().copied().filter(|&s| s != node));
        }
        let window = usize::from(options.window);
        let (looked_at, weighed) = match options.effort {
            Effort::Best => (window, WEIGHED_BEST),
            Effort::Fast => (window.min(LOOKED_AT_FAST), WEIGHED_FAST),
        };
        Chooser {
            first,
            rows,
            sources,
            contexts: vec![HEAD_FIRST as u8; rows.rows()],
            group: usize::from(options.group),
            window,
            chain_max: usize::from(options.chain_max),
            worth: worth_weighing(rows, looked_at, weighed),
            bits: vec![f32::INFINITY; rows.rows() * (window + 1)],
        }
    }

    fn bits(&self, n: usize, reference: usize) -> f32 {
        self.bits[n * (self.window + 1) + reference]
    }

    /// Weighs all references that are worth it.
    fn weigh(&mut self, costs: &Costs) {
        let next_same = self.next_same();
        let mut split = Split::default();
        let mut bodies = vec![(0f32, Head(0)); self.window + 1];
        for n in 0..self.rows.rows() {
            let node = self.first + n as Node;
            let row = self.rows.row(n);
            let width = self.window + 1;
            let into = &mut self.bits[n * width..(n + 1) * width];
            into.fill(f32::INFINITY);
            let window = if row.is_empty() { 0 } else { self.window.min(n) };
            for reference in 0..=window {
                if reference > 0 && self.worth[n] >> reference & 1 == 0 {
                    continue;
                }
                let twin = if reference == 0 { 0 } else { next_same[n - reference] as usize };
                let weighed = if twin != 0 && twin < n && into[n - twin] < f32::INFINITY {
                    let (body, head) = bodies[n - twin];
                    (body, Head(head.0 & 15 | (reference as u32) << 4))
                } else {
                    let source = if reference == 0 { &[] } else { self.sources.row(n - reference) };
                    if reference > 0 && apart(row, source) {
                        continue;
                    }
                    split.of(node, row, source);
                    let head = split.head(reference as u32);
                    let mut weigher = Weigher { costs, bits: 0.0 };
                    split.body(node, head, &mut weigher);
                    (weigher.bits, head)
                };
                bodies[reference] = weighed;
                let mut weigher = Weigher { costs, bits: weighed.0 };
                weigher.put(usize::from(self.contexts[n]), weighed.1.0, 0, 0);
                into[reference] = weigher.bits + if reference > 0 { REFERENCE_BITS } else { 0.0 };
            }
        }
    }

    /// For every row the next one in its window that looks the same, or 0.
    fn next_same(&self) -> Vec<u32> {
        let rows = self.sources.rows();
        let hashes: Vec<u64> = (0..rows)
            .map(|n| {
                self.sources
                    .row(n)
                    .iter()
                    .fold(0u64, |hash, &s| (hash ^ u64::from(s)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
            })
            .collect();
        (0..rows)
            .map(|n| {
                let window = &hashes[n + 1..(n + 1 + self.window).min(rows)];
                window.iter().position(|&h| h == hashes[n]).map_or(0, |at| {
                    let same = n + 1 + at;
                    if self.sources.row(same) == self.sources.row(n) { same as u32 } else { 0 }
                })
            })
            .collect()
    }

    /// From now on only the best references of each row are weighed.
    fn keep_best(&mut self) {
        let mut order: Vec<usize> = Vec::new();
        for n in 0..self.rows.rows() {
            order.clear();
            order.extend((1..=self.window).filter(|&r| self.bits(n, r) < f32::INFINITY));
            order.sort_unstable_by(|&a, &b| self.bits(n, a).total_cmp(&self.bits(n, b)));
            self.worth[n] = order.iter().take(KEPT).fold(1, |bits, &r| bits | 1 << r);
        }
    }

    /// References by what was weighed.
    fn pick(&self) -> Vec<u8> {
        let rows = self.rows.rows();
        let best: Vec<usize> = (0..rows)
            .map(|n| (0..=self.window).min_by(|&a, &b| self.bits(n, a).total_cmp(&self.bits(n, b))).unwrap_or(0))
            .collect();
        // What a row and all that refer to it save, if it has so many references before it in its chain. Rows refer back, so
        // going from the last to the first meets all that refer to a row before the row.
        let depths = self.chain_max + 1;
        let mut saved = vec![0f32; rows * depths];
        for n in (0..rows).rev().filter(|&n| best[n] > 0) {
            let gain = self.bits(n, 0) - self.bits(n, best[n]);
            for depth in 1..depths {
                saved[n * depths + depth] += gain;
            }
            let to = n - best[n];
            for depth in 0..depths {
                let cut = saved[n * depths];
                let kept = if depth + 1 < depths { saved[n * depths + depth + 1] } else { cut };
                saved[to * depths + depth] += cut.max(kept);
            }
        }
        let mut references = vec![0u8; rows];
        let mut depth = vec![0usize; rows];
        for n in (0..rows).filter(|&n| best[n] > 0) {
            let deeper = depth[n - best[n]] + 1;
            if deeper < depths && saved[n * depths + deeper] > saved[n * depths] {
                references[n] = best[n] as u8;
                depth[n] = deeper;
            }
        }
        for _ in 0..REFILLS {
            self.refill(&mut references, &mut depth);
        }
        references
    }

    /// Lets every row take the best reference that keeps the chains it is in short.
    fn refill(&self, references: &mut [u8], depth: &mut [usize]) {
        let rows = self.rows.rows();
        let mut height = vec![0usize; rows];
        for n in (0..rows).rev() {
            let reference = usize::from(references[n]);
            if reference > 0 {
                height[n - reference] = height[n - reference].max(height[n] + 1);
            }
        }
        for n in 0..rows {
            let fits = |r: usize| depth[n - r] + 1 + height[n] <= self.chain_max;
            let best = (1..=self.window.min(n))
                .filter(|&r| fits(r))
                .min_by(|&a, &b| self.bits(n, a).total_cmp(&self.bits(n, b)))
                .filter(|&r| self.bits(n, r) < self.bits(n, 0))
                .unwrap_or(0);
            references[n] = best as u8;
            depth[n] = if best == 0 { 0 } else { depth[n - best] + 1 };
        }
    }

    /// Counts symbols as rows would be written, and learns from it how rows look to others, and the contexts of heads.
    fn apply(&mut self, references: &[u8]) -> Counts {
        let mut counts = Counts::new();
        let first = self.first;
        let contexts = &mut self.contexts;
        self.sources = walk(first, self.rows, references, self.group, |n, split, head, context| {
            contexts[n] = context as u8;
            counts.put(context, head.0, 0, 0);
            split.body(first + n as Node, head, &mut counts);
        });
        counts
    }
}

/// Of each row, which of the rows before it are worth weighing, as bits: those with which it has the most signs in common, the nearest if
/// there are several. A sign may stand for several successors, so this errs, but it costs a hundredth of weighing.
fn worth_weighing(rows: &Block, looked_at: usize, weighed: usize) -> Vec<u64> {
    let signs: Vec<Signs> = (0..rows.rows()).map(|n| signs(rows.row(n))).collect();
    let mut common: Vec<(u32, usize)> = Vec::with_capacity(looked_at);
    let worth = |n: usize| {
        common.clear();
        if !rows.row(n).is_empty() {
            let before = (1..=looked_at.min(n)).map(|r| (in_common(&signs[n], &signs[n - r]), r));
            common.extend(before.filter(|(count, _)| *count > 0));
        }
        if common.len() > weighed {
            common.select_nth_unstable_by_key(weighed, |&(count, r)| (std::cmp::Reverse(count), r));
            common.truncate(weighed);
        }
        common.iter().fold(1, |bits, &(_, r)| bits | 1 << r)
    };
    (0..rows.rows()).map(worth).collect()
}

type Signs = [u64; 4];

/// A sign for every successor, one of 256.
fn signs(row: &[Node]) -> Signs {
    let mut signs = [0; 4];
    for &s in row {
        let sign = s.wrapping_mul(0x9e37_79b9) >> 24;
        signs[sign as usize / 64] |= 1 << (sign % 64);
    }
    signs
}

fn in_common(a: &Signs, b: &Signs) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}

/// Whether two rows can have nothing in common.
fn apart(a: &[Node], b: &[Node]) -> bool {
    match (a.first(), a.last(), b.first(), b.last()) {
        (Some(a0), Some(a1), Some(b0), Some(b1)) => a1 < b0 || b1 < a0,
        _ => true,
    }
}
