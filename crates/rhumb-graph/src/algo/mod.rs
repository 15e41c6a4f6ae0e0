//! What is computed over a whole graph.
//!
//! Everything here takes [`Rows`] and does not ask where they come from. A graph and its transpose are two `Rows`; which of them
//! is wanted is said by the name of the argument: `forward` holds successors, `transposed` predecessors. Nothing depends on
//! how many threads there are, or on a seed that is not written down: the same graph gives the same answer, bit by bit.
//!
//! Read [`pagerank`] first, which shows how work is shared out; then whatever you came for:
//!
//! | question | module |
//! | --- | --- |
//! | which nodes matter | [`pagerank`], [`hyperball`] (harmonic centrality), [`degrees`] |
//! | what hangs together | [`components`] |
//! | how far is it from here to there | [`distance`], [`hyperball`] (over all pairs) |
//! | what is like this node | [`cocitation`] |
//! | which hosts and domains link to each other | [`quotient`] |
//! | who cheats | [`spam`] |
//! | which order of nodes codes shortest | [`order`] |
//! | how ranks are kept | [`ranks`] |

pub mod cocitation;
pub mod components;
pub mod degrees;
pub mod distance;
pub mod hyperball;
pub mod order;
pub mod pagerank;
pub mod quotient;
pub mod ranks;
pub mod spam;

use std::num::NonZero;
use std::sync::Mutex;

use crate::{Node, Rows};

/// As many threads as the machine has processors.
pub fn threads_default() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// How many successors every node has. One pass, 4 bytes a node.
pub fn outdegrees(forward: &dyn Rows) -> Vec<u32> {
    let mut degrees = Vec::with_capacity(forward.nodes() as usize);
    forward.scan_all(&mut |_, row| degrees.push(row.len() as u32));
    degrees
}

/// How many predecessors every node has. One pass, 4 bytes a node.
pub fn indegrees(forward: &dyn Rows) -> Vec<u32> {
    let mut degrees = vec![0u32; forward.nodes() as usize];
    forward.scan_all(&mut |_, row| {
        for &to in row {
            degrees[to as usize] += 1;
        }
    });
    degrees
}

/// The `k` nodes of the highest values, highest first, ties by node. What is no number is left out. Memory is 32 bytes × `k`.
pub fn top(values: impl IntoIterator<Item = (Node, f64)>, k: usize) -> Vec<(Node, f64)> {
    let order = |a: &(Node, f64), b: &(Node, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let mut best: Vec<(Node, f64)> = Vec::new();
    if k == 0 {
        return best;
    }
    let mut floor = f64::NEG_INFINITY;
    for (node, value) in values {
        if value.is_nan() || value < floor {
            continue;
        }
        best.push((node, value));
        if best.len() >= k.saturating_mul(2) {
            best.select_nth_unstable_by(k - 1, order);
            best.truncate(k);
            floor = best[k - 1].1;
        }
    }
    best.sort_unstable_by(order);
    best.truncate(k);
    best
}

/// Gives every piece of work to one of `threads` threads; the results are in the order of the pieces.
pub(crate) fn share<W: Send, T: Send>(threads: usize, work: Vec<W>, each: impl Fn(W) -> T + Sync) -> Vec<T> {
    if threads <= 1 || work.len() <= 1 {
        return work.into_iter().map(each).collect();
    }
    let pieces = work.len();
    let queue = Mutex::new(work.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(pieces));
    // Nothing below panics while it holds a lock, so the locks are sound even if a piece of work panics.
    std::thread::scope(|scope| {
        for _ in 0..threads.min(pieces) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
                    let Some((n, piece)) = next else { break };
                    let result = each(piece);
                    done.lock().unwrap_or_else(|e| e.into_inner()).push((n, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_unstable_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A small generator for what needs chance but must be repeatable (SplitMix64, Steele, Lea and Flood 2014).
pub(crate) struct Chance(pub u64);

impl Chance {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`, which is not zero. The bias is below n / 2⁶⁴.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// Scatters the bits of a number.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A set of nodes, one bit each.
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// No nodes yet, of so many that there may be.
    pub(crate) fn new(nodes: Node) -> Bits {
        Bits(vec![0; (nodes as usize).div_ceil(64)])
    }

    /// Whether the node is in the set.
    pub(crate) fn has(&self, node: Node) -> bool {
        self.0[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Adds a node. True if it is new.
    pub(crate) fn add(&mut self, node: Node) -> bool {
        let word = &mut self.0[node as usize / 64];
        let bit = 1 << (node % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether neither the node is in the set nor any that shares its word.
    pub(crate) fn is_clear_around(&self, node: Node) -> bool {
        self.0[node as usize / 64] == 0
    }

    /// Takes out all nodes of these words: 64 nodes each.
    pub(crate) fn clear_words(&mut self, words: &[u32]) {
        for &word in words {
            self.0[word as usize] = 0;
        }
    }
}

#[cfg(test)]
pub(crate) mod model {
    //! Small graphs at random, and what is true of them by the plainest means.

    use proptest::prelude::*;

    use crate::{Csr, Node, Rows};

    /// Any graph of up to `nodes` nodes, loops included.
    pub(crate) fn graph(nodes: Node, arcs: usize) -> impl Strategy<Value = Csr> {
        (1..=nodes).prop_flat_map(move |n| {
            proptest::collection::vec((0..n, 0..n), 0..=arcs).prop_map(move |arcs| Csr::from_arcs(n, arcs))
        })
    }

    /// Distances between all pairs, after Floyd and Warshall; `u32::MAX` where there is no way.
    pub(crate) fn distances(graph: &Csr) -> Vec<Vec<u32>> {
        let n = graph.nodes() as usize;
        let mut d = vec![vec![u32::MAX; n]; n];
        for (v, row) in d.iter_mut().enumerate() {
            for &w in graph.successors(v as Node) {
                row[w as usize] = 1;
            }
            row[v] = 0;
        }
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    d[i][j] = d[i][j].min(d[i][k].saturating_add(d[k][j]));
                }
            }
        }
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Csr;

    #[test]
    fn the_highest_come_first_and_ties_by_node() {
        let check = |values: &[f64], k: usize, expected: &[Node]| {
            let pairs = values.iter().enumerate().map(|(node, &value)| (node as Node, value));
            let nodes: Vec<Node> = top(pairs, k).into_iter().map(|(node, _)| node).collect();
            assert_eq!(nodes, expected, "{values:?}, {k}");
        };
        check(&[], 3, &[]);
        check(&[1.0, 2.0], 0, &[]);
        check(&[1.0, 3.0, 2.0], 2, &[1, 2]);
        check(&[1.0; 9], 3, &[0, 1, 2]);
        check(&[0.0, f64::NAN, -1.0, 0.5], 9, &[3, 0, 2]);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 4.0], 3, &[4, 5, 3]);
    }

    #[test]
    fn results_are_in_the_order_of_the_work() {
        let work: Vec<u32> = (0..100).collect();
        let doubled: Vec<u32> = (0..100).map(|n| n * 2).collect();
        for threads in [0, 1, 3] {
            assert_eq!(share(threads, work.clone(), |n| n * 2), doubled);
        }
    }

    #[test]
    fn degrees_both_ways() {
        let graph = Csr::from_arcs(4, vec![(0, 1), (0, 3), (2, 1), (3, 3)]);
        assert_eq!(outdegrees(&graph), [2, 0, 1, 1]);
        assert_eq!(indegrees(&graph), [0, 2, 0, 2]);
        assert_eq!(indegrees(&graph), outdegrees(&graph.transposed()));
    }
}
