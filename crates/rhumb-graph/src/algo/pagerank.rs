//! PageRank: how often somebody is at a node who follows links at random and starts anew every now and then.
//!
//! With n nodes, damping α and outdegrees d, ranks are what solves x(v) = (1−α)/n + α Σ x(u)/d(u) over the predecessors u of v,
//! scaled to sum 1. That a node without successors spreads its rank evenly over all nodes ([`Dangling::Uniform`]) needs no
//! term of its own: what it spreads reaches all nodes alike, as a new start does, so it changes the scale of the solution and
//! nothing else (Del Corso, Gullì, Romani 2005). For the same reason there is no option by which such rank is lost: it would
//! give the same ranks.
//!
//! **Method.** Gauss–Seidel: a node's new value is used at once by those that come after it. Nodes are cut into at most 16 blocks
//! of neighbours, which is independent of the number of threads; from other blocks a block uses the values of the sweep
//! before. Pages link to their own neighbourhood, so little is lost by that, and the result is the same on every machine.
//!
//! **What the tolerance bounds.** After a sweep that changed values by δ (L1), what is left over in the equations is at most αδ, for
//! a node's equation held when it was computed and only later changes disturb it; so the solution is within
//! e = δ·α/(1−α), and the scaled ranks within 2e/s of the true ones, s being the sum before scaling (scaling moves them by
//! as much again). That, [`Ranked::error_max`], is what ends the iteration when it is at most the tolerance: the ranks
//! given are within it of the true ones in L1, all nodes together.
//!
//! **Cost.** A sweep reads the transposed graph once: O(arcs). 20 bytes a node. The number of sweeps is at most
//! log(tolerance/10) / log α, about half of it on web graphs.

use crate::algo::share;
use crate::{GraphError, Node, Result, Rows};

/// Blocks at most: enough for the threads of one machine.
const BLOCKS_MAX: usize = 16;
/// Below this a block is not worth the values from outside that come a sweep late.
const BLOCK_NODES_MIN: usize = 1 << 16;

/// What becomes of the rank of a node without successors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// It is spread evenly over all nodes.
    #[default]
    Uniform,
    /// The node keeps it, as if it linked to itself.
    Own,
}

/// How ranks are to be computed.
#[derive(Clone, Debug)]
pub struct PageRank {
    /// The chance of following a link instead of starting anew; at least 0, below 1.
    pub damping: f64,
    /// How far the ranks may be from the true ones, all together (L1).
    pub tolerance: f64,
    /// Sweeps at most.
    pub iterations_max: u32,
    /// What becomes of the rank of a node without successors.
    pub dangling: Dangling,
    /// Threads; the result does not depend on it.
    pub threads: usize,
}

impl Default for PageRank {
    fn default() -> PageRank {
        PageRank {
            damping: 0.85,
            tolerance: 1e-6,
            iterations_max: 200,
            dangling: Dangling::Uniform,
            threads: super::threads_default(),
        }
    }
}

/// Ranks, and how good they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The rank of every node; they sum to 1.
    pub ranks: Vec<f64>,
    /// Sweeps done.
    pub iterations: u32,
    /// By how much the last sweep changed values (L1, before scaling).
    pub residual: f64,
    /// The ranks are within this of the true ones (L1).
    pub error_max: f64,
    /// Whether that is within the tolerance.
    pub converged: bool,
}

impl PageRank {
    /// The ranks of all nodes, from their predecessors and the number of their successors ([`super::outdegrees`]).
    pub fn compute(&self, transposed: &dyn Rows, outdegrees: &[u32]) -> Result<Ranked> {
        let nodes = transposed.nodes() as usize;
        if !(0.0..1.0).contains(&self.damping) {
            return Err(GraphError::input(format!("damping {} is not from 0 to below 1", self.damping)));
        }
        if self.tolerance.is_nan() || self.tolerance <= 0.0 {
            return Err(GraphError::input(format!("tolerance {} is not above 0", self.tolerance)));
        }
        if outdegrees.len() != nodes {
            let given = outdegrees.len();
            return Err(GraphError::input(format!("outdegrees of {given} nodes for a graph of {nodes}")));
        }
        if nodes == 0 {
            return Ok(Ranked { ranks: vec![], iterations: 0, residual: 0.0, error_max: 0.0, converged: true });
        }
        let block_nodes = nodes.div_ceil((nodes / BLOCK_NODES_MIN).clamp(1, BLOCKS_MAX));
        // What is kept is x/d, what a node gives to each successor, and x itself where d = 0, which nobody asks for.
        let mut gives: Vec<f64> = outdegrees.iter().map(|&d| 1.0 / nodes as f64 / f64::from(d.max(1))).collect();
        let mut before = if block_nodes < nodes { gives.clone() } else { Vec::new() };
        let (mut iterations, mut residual, mut error_max) = (0, f64::INFINITY, f64::INFINITY);
        while iterations < self.iterations_max && error_max > self.tolerance {
            let blocks = gives.chunks_mut(block_nodes).zip(outdegrees.chunks(block_nodes)).enumerate();
            let work: Vec<Block> = blocks
                .map(|(n, (gives, outdegrees))| Block { first: (n * block_nodes) as Node, gives, outdegrees })
                .collect();
            let sums = share(self.threads, work, |block| self.sweep(transposed, block, &before));
            if !before.is_empty() {
                before.copy_from_slice(&gives);
            }
            iterations += 1;
            residual = sums.iter().map(|s| s.changed).sum();
            let total: f64 = sums.iter().map(|s| s.total).sum();
            error_max = 2.0 * residual * self.damping / (1.0 - self.damping) / total;
        }
        let mut ranks = gives;
        for (rank, &d) in ranks.iter_mut().zip(outdegrees) {
            *rank *= f64::from(d.max(1));
        }
        let total: f64 = ranks.iter().sum();
        ranks.iter_mut().for_each(|rank| *rank /= total);
        Ok(Ranked { ranks, iterations, residual, error_max, converged: error_max <= self.tolerance })
    }

    fn sweep(&self, transposed: &dyn Rows, block: Block, before: &[f64]) -> Sums {
        let Block { first, gives, outdegrees } = block;
        let fresh = (1.0 - self.damping) / f64::from(transposed.nodes());
        let mut sums = Sums { changed: 0.0, total: 0.0 };
        transposed.scan(first, first + gives.len() as Node, &mut |node, row| {
            let at = (node - first) as usize;
            let mut got = 0.0;
            let mut own = 0.0;
            for &from in row {
                let give = match gives.get(from.wrapping_sub(first) as usize) {
                    Some(give) => *give,
                    None => before[from as usize],
                };
                got += give;
                if from == node {
                    own = give;
                }
            }
            let degree = f64::from(outdegrees[at].max(1));
            // A share of the node's rank comes back to itself: that part of the equation is solved, not iterated.
            let back = match (outdegrees[at], self.dangling) {
                (0, Dangling::Own) => self.damping,
                (_, _) if own > 0.0 => self.damping / degree,
                _ => 0.0,
            };
            let rank = (fresh + self.damping * (got - own)) / (1.0 - back);
            sums.changed += (rank - gives[at] * degree).abs();
            sums.total += rank;
            gives[at] = rank / degree;
        });
        sums
    }
}

struct Block<'a> {
    first: Node,
    gives: &'a mut [f64],
    outdegrees: &'a [u32],
}

struct Sums {
    changed: f64,
    total: f64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Csr;
    use crate::algo::{model, outdegrees};

    /// By the definition: a full matrix, and power iteration until nothing moves.
    fn dense(graph: &Csr, damping: f64, dangling: Dangling) -> Vec<f64> {
        let n = graph.nodes() as usize;
        let mut ranks = vec![1.0 / n as f64; n];
        for _ in 0..400 {
            let mut next = vec![(1.0 - damping) / n as f64; n];
            for (v, &rank) in ranks.iter().enumerate() {
                let row = graph.successors(v as Node);
                match (row.len(), dangling) {
                    (0, Dangling::Own) => next[v] += damping * rank,
                    (0, Dangling::Uniform) => next.iter_mut().for_each(|x| *x += damping * rank / n as f64),
                    (d, _) => row.iter().for_each(|&w| next[w as usize] += damping * rank / d as f64),
                }
            }
            ranks = next;
        }
        ranks
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
    }

    #[test]
    fn ranks_of_small_graphs() {
        let check = |nodes: Node, arcs: &[(Node, Node)], expected: &[f64]| {
            let graph = Csr::from_arcs(nodes, arcs.to_vec());
            let ranked = PageRank { tolerance: 1e-12, ..PageRank::default() }
                .compute(&graph.transposed(), &outdegrees(&graph))
                .expect("ranks");
            assert!(ranked.converged && distance(&ranked.ranks, expected) < 1e-9, "{arcs:?}: {:?}", ranked.ranks);
        };
        check(0, &[], &[]);
        check(1, &[], &[1.0]);
        check(1, &[(0, 0)], &[1.0]);
        check(2, &[(0, 1), (1, 0)], &[0.5, 0.5]);
        // x1 = x0 (1 + α), so x0 = 1 / (2 + α).
        check(2, &[(0, 1)], &[1.0 / 2.85, 1.85 / 2.85]);
        check(3, &[(0, 1), (1, 2), (2, 0)], &[1.0 / 3.0; 3]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let graph = Csr::from_arcs(2, vec![(0, 1)]);
        let refused = |p: PageRank, degrees: &[u32]| p.compute(&graph.transposed(), degrees).is_err();
        assert!(refused(PageRank { damping: 1.0, ..PageRank::default() }, &[1, 0]));
        assert!(refused(PageRank { damping: f64::NAN, ..PageRank::default() }, &[1, 0]));
        assert!(refused(PageRank { tolerance: 0.0, ..PageRank::default() }, &[1, 0]));
        assert!(refused(PageRank::default(), &[1]));
    }

    #[test]
    fn blocks_do_not_change_what_is_computed_and_threads_not_even_a_bit() {
        // Large enough for two blocks.
        let nodes = 2 * BLOCK_NODES_MIN as Node;
        let mut chance = crate::algo::Chance(7);
        let arcs = (0..4 * nodes)
            .map(|_| (chance.below(u64::from(nodes) / 2) as Node * 2, chance.below(u64::from(nodes)) as Node))
            .collect();
        let graph = Csr::from_arcs(nodes, arcs);
        let (turned, degrees) = (graph.transposed(), outdegrees(&graph));
        let ranks = |threads, tolerance| {
            PageRank { threads, tolerance, ..PageRank::default() }.compute(&turned, &degrees).expect("ranks")
        };
        let rough = ranks(1, 1e-4);
        assert_eq!(rough, ranks(2, 1e-4));
        let fine = ranks(2, 1e-10);
        assert!((fine.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(distance(&rough.ranks, &fine.ranks) <= rough.error_max);
    }

    proptest! {
        #[test]
        fn the_error_is_within_the_bound(
            graph in model::graph(12, 40), damping in 0.0..0.95f64, exponent in 1..9i32, own: bool
        ) {
            let dangling = if own { Dangling::Own } else { Dangling::Uniform };
            let tolerance = 10f64.powi(-exponent);
            let ranked = PageRank { damping, tolerance, dangling, iterations_max: 1000, threads: 1 }
                .compute(&graph.transposed(), &outdegrees(&graph))
                .expect("ranks");
            prop_assert!(ranked.converged);
            let error = distance(&ranked.ranks, &dense(&graph, damping, dangling));
            prop_assert!(error <= ranked.error_max + 1e-8, "{error} > {}", ranked.error_max);
            prop_assert!((ranked.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}
