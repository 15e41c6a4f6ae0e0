//! How far nodes are from each other, over all pairs at once: HyperBall (Boldi and Vigna 2013).
//!
//! The ball of radius t around x is the set of nodes from which x is reached in at most t steps. It is the union of the balls of
//! radius t−1 of x and its predecessors, so one pass over the transposed graph grows all balls by one. A ball is kept as
//! a HyperLogLog counter: 2^log2m registers of a byte, and a union is the larger of each two. From the sizes of the balls:
//!
//! * **harmonic centrality** of x: the sum of 1/d(y, x) over all y ≠ x that reach x. Each pass adds (growth of the ball)/t.
//!   It counts who can come here, as in-degree and PageRank do; nodes that do not reach x add nothing.
//! * the **neighbourhood function** N(t): pairs (y, x), x = y included, with d(y, x) ≤ t. It is the same for the transposed graph.
//! * the **average distance** of pairs of different nodes that are connected, and the **effective diameter**: the distance
//!   within which 90 % of all connected pairs are, interpolated.
//!
//! **Precision.** The size of a ball is estimated as Ertl proposes (2017, "New cardinality estimation algorithms for HyperLogLog
//! sketches"), without thresholds between small and large; its standard error is 1.04/√(2^log2m): 13 % with 64 registers,
//! 6.5 % with 256. Sums over many nodes are not that much better, for all counters share one hash function.
//!
//! **Cost.** A pass is O(arcs · 2^log2m) at worst, 64 registers in a few instructions; predecessors whose ball did not grow in
//! the last pass are skipped. There are as many passes as the longest shortest path has arcs. Memory is nodes ×
//! (2 · 2^log2m + 4) bytes and 2 more ([`bytes`]); [`HyperBall::within`] chooses log2m from what there is.

use crate::algo::{mix, share};
use crate::{GraphError, Node, Result, Rows};

/// Fewer than 16 registers tell nothing (standard error above 26 %).
pub const LOG2M_MIN: u32 = 4;
/// 4,096 registers: standard error 1.6 %.
pub const LOG2M_MAX: u32 = 12;
/// Nodes that a thread takes at a time.
const PIECE_NODES: usize = 1 << 12;
/// The part of connected pairs that are within the effective diameter, by convention.
const EFFECTIVE: f64 = 0.9;

/// How balls are to be grown.
#[derive(Clone, Debug)]
pub struct HyperBall {
    /// Registers are 2 to the power of this, from [`LOG2M_MIN`] to [`LOG2M_MAX`].
    pub log2m: u32,
    /// Chooses the hash function. The same seed gives the same result.
    pub seed: u64,
    /// Passes at most; a chain of pages "next, next" needs one for each.
    pub iterations_max: u32,
    /// Threads; the result does not depend on it.
    pub threads: usize,
}

impl Default for HyperBall {
    fn default() -> HyperBall {
        HyperBall { log2m: 6, seed: 0, iterations_max: 1 << 10, threads: super::threads_default() }
    }
}

/// What the balls tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Balls {
    /// The harmonic centrality of every node.
    pub harmonic: Vec<f32>,
    /// N(0), N(1), … until balls stop growing.
    pub neighbourhood: Vec<f64>,
    /// Whether they did stop within the passes allowed.
    pub complete: bool,
}

/// The memory that a computation takes.
pub fn bytes(nodes: Node, log2m: u32) -> u64 {
    u64::from(nodes) * ((2 << log2m) + 6)
}

impl HyperBall {
    /// As many registers as fit into `bytes_max`.
    pub fn within(bytes_max: u64, nodes: Node) -> Result<HyperBall> {
        let log2m = (LOG2M_MIN..=LOG2M_MAX).rev().find(|&log2m| bytes(nodes, log2m) <= bytes_max).ok_or_else(|| {
            let least = bytes(nodes, LOG2M_MIN);
            GraphError::input(format!(
                "distances of {nodes} nodes need {least} bytes of memory; {bytes_max} are allowed"
            ))
        })?;
        Ok(HyperBall { log2m, ..HyperBall::default() })
    }

    /// The standard error of the size of a ball, as a part of it.
    pub fn error(&self) -> f64 {
        1.04 / f64::from(1u32 << self.log2m).sqrt()
    }

    /// Grows the balls of all nodes until none grows any more.
    pub fn compute(&self, transposed: &dyn Rows) -> Result<Balls> {
        if !(LOG2M_MIN..=LOG2M_MAX).contains(&self.log2m) {
            let log2m = self.log2m;
            return Err(GraphError::input(format!("log2m {log2m} is not from {LOG2M_MIN} to {LOG2M_MAX}")));
        }
        // With the number of registers known to the compiler, a union is a handful of instructions without a loop.
        Ok(match self.log2m {
            4 => self.grow_all::<16>(transposed),
            5 => self.grow_all::<32>(transposed),
            6 => self.grow_all::<64>(transposed),
            7 => self.grow_all::<128>(transposed),
            8 => self.grow_all::<256>(transposed),
            9 => self.grow_all::<512>(transposed),
            10 => self.grow_all::<1024>(transposed),
            11 => self.grow_all::<2048>(transposed),
            _ => self.grow_all::<4096>(transposed),
        })
    }

    fn grow_all<const M: usize>(&self, transposed: &dyn Rows) -> Balls {
        let nodes = transposed.nodes() as usize;
        let size = Size::<M>::new();
        let mut now = vec![[0u8; M]; nodes];
        for (node, counter) in now.iter_mut().enumerate() {
            let hash = mix(mix(self.seed ^ 0x243f_6a88_85a3_08d3).wrapping_add(node as u64 + 1));
            let rank = (hash >> self.log2m | 1 << (64 - self.log2m)).trailing_zeros() as u8 + 1;
            counter[hash as usize & (M - 1)] = rank;
        }
        let mut next = now.clone();
        let mut harmonic = vec![0f32; nodes];
        // Whether a ball grew in the pass before. A byte each, so that threads can write theirs.
        let (mut grew, mut grows) = (vec![true; nodes], vec![false; nodes]);
        let mut neighbourhood = vec![nodes as f64];
        let mut complete = nodes == 0;
        while !complete && neighbourhood.len() <= self.iterations_max as usize {
            let radius = neighbourhood.len() as f64;
            let pieces = next
                .chunks_mut(PIECE_NODES)
                .zip(harmonic.chunks_mut(PIECE_NODES).zip(grows.chunks_mut(PIECE_NODES)))
                .enumerate();
            let work: Vec<Piece<M>> = pieces
                .map(|(n, (next, (harmonic, grows)))| Piece { first: (n * PIECE_NODES) as Node, next, harmonic, grows })
                .collect();
            let grown = share(self.threads, work, |piece| grow(transposed, piece, &now, &grew, &size, radius));
            complete = grown.iter().all(|piece| piece.balls == 0);
            if !complete {
                let pairs: f64 = grown.iter().map(|piece| piece.pairs).sum();
                neighbourhood.push(neighbourhood[neighbourhood.len() - 1] + pairs);
            }
            std::mem::swap(&mut now, &mut next);
            std::mem::swap(&mut grew, &mut grows);
        }
        Balls { harmonic, neighbourhood, complete }
    }
}

struct Piece<'a, const M: usize> {
    first: Node,
    next: &'a mut [[u8; M]],
    harmonic: &'a mut [f32],
    grows: &'a mut [bool],
}

#[derive(Default)]
struct Grown {
    balls: u64,
    pairs: f64,
}

fn grow<const M: usize>(
    transposed: &dyn Rows,
    piece: Piece<M>,
    now: &[[u8; M]],
    grew: &[bool],
    size: &Size<M>,
    radius: f64,
) -> Grown {
    let Piece { first, next, harmonic, grows } = piece;
    let mut grown = Grown::default();
    transposed.scan(first, first + grows.len() as Node, &mut |node, row| {
        let at = (node - first) as usize;
        let (before, into) = (&now[node as usize], &mut next[at]);
        *into = *before;
        let mut touched = false;
        for &from in row {
            if grew[from as usize] {
                unite(into, &now[from as usize]);
                touched = true;
            }
        }
        grows[at] = touched && into != before;
        if grows[at] {
            let more = (size.of(into) - size.of(before)).max(0.0);
            harmonic[at] += (more / radius) as f32;
            grown.balls += 1;
            grown.pairs += more;
        }
    });
    grown
}

/// The larger of each two registers.
fn unite<const M: usize>(into: &mut [u8; M], other: &[u8; M]) {
    for (a, b) in into.iter_mut().zip(other) {
        *a = (*a).max(*b);
    }
}

/// Estimates how many nodes a counter has seen.
struct Size<const M: usize> {
    /// By the number of empty registers: what they add to the harmonic sum, less the one that each has counted for.
    empty: Vec<f64>,
}

impl<const M: usize> Size<M> {
    fn new() -> Size<M> {
        let m = M as f64;
        Size { empty: (0..=M).map(|zeros| m * sigma(zeros as f64 / m) - zeros as f64).collect() }
    }

    fn of(&self, counter: &[u8; M]) -> f64 {
        // 2^-r as the bits of a float; registers are at most 61. Lanes of their own let the compiler add several at a time.
        let (mut lanes, mut zeros) = ([0f32; 16], [0u16; 16]);
        for part in counter.as_chunks::<16>().0 {
            for n in 0..16 {
                lanes[n] += f32::from_bits((127 - u32::from(part[n])) << 23);
                zeros[n] += u16::from(part[n] == 0);
            }
        }
        let zeros: usize = zeros.iter().map(|&zeros| usize::from(zeros)).sum();
        let sum: f64 = lanes.iter().map(|&lane| f64::from(lane)).sum();
        let m = M as f64;
        m * m / (2.0 * std::f64::consts::LN_2) / (sum + self.empty[zeros])
    }
}

/// Ertl's σ(x) = x + Σ 2^(k−1) x^(2^k); infinite for x = 1: an empty counter has seen nothing.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight *= 2.0;
        if sum == before {
            return sum;
        }
    }
}

impl Balls {
    /// The average distance of pairs of different nodes of which one is reached from the other; nothing if there are none.
    pub fn average_distance(&self) -> Option<f64> {
        let n = &self.neighbourhood;
        let pairs = n.last()? - n.first()?;
        let steps: f64 = n.windows(2).enumerate().map(|(t, n)| (t + 1) as f64 * (n[1] - n[0])).sum();
        (pairs > 0.0).then(|| steps / pairs)
    }

    /// The distance within which 90 % of all connected pairs are, a node with itself included, as is the custom.
    pub fn effective_diameter(&self) -> f64 {
        let n = &self.neighbourhood;
        let wanted = EFFECTIVE * n.last().copied().unwrap_or(0.0);
        match n.iter().position(|&pairs| pairs >= wanted) {
            None | Some(0) => 0.0,
            Some(t) => (t - 1) as f64 + (wanted - n[t - 1]) / (n[t] - n[t - 1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Csr;
    use crate::algo::{Chance, model};

    #[test]
    fn counters_count() {
        check_counters::<16>();
        check_counters::<64>();
        check_counters::<1024>();
        assert_eq!(Size::new().of(&[0; 2048]), 0.0);
    }

    fn check_counters<const M: usize>() {
        let size = Size::<M>::new();
        for many in [1u64, 5, 30, 200, 1_000, 20_000] {
            // The mean over 60 counters is within 4 of its standard errors.
            let mut sum = 0.0;
            for run in 0..60 {
                let mut counter = [0u8; M];
                for n in 0..many {
                    let hash = mix(mix(run + 1).wrapping_add(n));
                    let rank = (hash >> M.ilog2()).trailing_zeros() as u8 + 1;
                    let register = &mut counter[hash as usize & (M - 1)];
                    *register = rank.max(*register);
                }
                sum += size.of(&counter);
            }
            let mean = sum / 60.0 / many as f64;
            let error = 1.04 / (M as f64).sqrt() / 60f64.sqrt();
            assert!((mean - 1.0).abs() < 4.0 * error, "{M} registers, {many}: {mean}");
        }
    }

    #[test]
    fn a_line_of_nodes() {
        // 0 → 1 → 2 → 3: node 3 is reached from distances 1, 2 and 3.
        let graph = Csr::from_arcs(4, vec![(0, 1), (1, 2), (2, 3)]);
        let balls = HyperBall { log2m: 12, ..HyperBall::default() }.compute(&graph.transposed()).expect("balls");
        assert!(balls.complete && balls.neighbourhood.len() == 4, "{balls:?}");
        for (value, exact) in balls.harmonic.iter().zip([0.0, 1.0, 1.5, 1.0 + 0.5 + 1.0 / 3.0]) {
            assert!((value - exact).abs() < 0.02, "{balls:?}");
        }
        assert!((balls.average_distance().expect("pairs") - 10.0 / 6.0).abs() < 0.02);
        assert!(balls.effective_diameter() > 1.9 && balls.effective_diameter() < 2.1);
        let cut = HyperBall { iterations_max: 1, ..HyperBall::default() }.compute(&graph.transposed()).expect("balls");
        assert!(!cut.complete && cut.neighbourhood.len() == 2);
    }

    #[test]
    fn memory_chooses_the_registers() {
        let check = |bytes_max: u64, nodes: Node, log2m: Option<u32>| {
            assert_eq!(HyperBall::within(bytes_max, nodes).ok().map(|h| h.log2m), log2m, "{bytes_max}, {nodes}");
        };
        check(1 << 30, 1_000_000, Some(9));
        check(1 << 30, 10_000_000, Some(5));
        check(1 << 30, 100_000_000, None);
        check(1 << 30, 0, Some(LOG2M_MAX));
        assert!(HyperBall { log2m: 30, ..HyperBall::default() }.compute(&Csr::default()).is_err());
    }

    #[test]
    fn within_the_expected_error_of_the_truth() {
        let mut chance = Chance(3);
        let nodes = 300;
        let arcs = (0..900).map(|_| (chance.below(nodes) as Node, chance.below(nodes) as Node)).collect();
        let graph = Csr::from_arcs(nodes as Node, arcs);
        let far = model::distances(&graph);
        let turned = graph.transposed();
        for (log2m, threads) in [(6, 1), (8, 2), (12, 2)] {
            let setting = HyperBall { log2m, threads, ..HyperBall::default() };
            let balls = setting.compute(&turned).expect("balls");
            assert_eq!(balls, HyperBall { threads: 3 - threads, ..setting.clone() }.compute(&turned).expect("balls"));
            let mut errors = 0.0;
            for x in 0..nodes as usize {
                let reached = far.iter().map(|row| row[x]).filter(|&d| d != 0 && d != u32::MAX);
                let exact: f64 = reached.map(|d| 1.0 / f64::from(d)).sum();
                if exact > 0.0 {
                    errors += (f64::from(balls.harmonic[x]) / exact - 1.0).powi(2);
                }
            }
            let error = (errors / nodes as f64).sqrt();
            assert!(error < 2.0 * setting.error(), "2^{log2m} registers: {error}");
            let pairs = far.iter().flatten().filter(|&&d| d != u32::MAX).count() as f64;
            let (found, passes) = (balls.neighbourhood.last().expect("one"), balls.neighbourhood.len());
            assert!(
                (found / pairs - 1.0).abs() < 2.5 * setting.error(),
                "2^{log2m} registers: {found} pairs of {pairs}"
            );
            let longest = far.iter().flatten().filter(|&&d| d != u32::MAX).max().expect("one");
            assert!(passes <= *longest as usize + 1);
        }
    }

    proptest! {
        #[test]
        fn harmonic_centrality_of_any_graph(graph in model::graph(20, 50)) {
            let setting = HyperBall { log2m: 12, threads: 1, ..HyperBall::default() };
            let balls = setting.compute(&graph.transposed()).expect("balls");
            let far = model::distances(&graph);
            prop_assert!(balls.complete);
            for x in 0..far.len() {
                let reached = far.iter().map(|row| row[x]).filter(|&d| d != 0 && d != u32::MAX);
                let exact: f64 = reached.map(|d| 1.0 / f64::from(d)).sum();
                // Two nodes in one of 4,096 registers are counted as one.
                prop_assert!((f64::from(balls.harmonic[x]) - exact).abs() < 0.1 + exact * 0.15, "{x}: {exact}, {balls:?}");
            }
        }
    }
}
