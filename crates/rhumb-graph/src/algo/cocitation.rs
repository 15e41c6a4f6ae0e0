//! Pages linked together with this one: what is cited by those who cite it.
//!
//! Each predecessor of a node is asked for its other successors. Being named together on a page with five links says more than on
//! one with five thousand, so besides the plain count there is a weight: each predecessor adds 1/log2(1 + its degree), after
//! Adamic and Adar (2003). The list is sorted by weight.
//!
//! **Cost.** At most [`Cocitation::predecessors_max`] predecessors are asked, and of each row at most [`Cocitation::row_max`] nodes
//! are counted: time and memory (16 bytes each) are within the product, a million by default. Of more predecessors an even
//! sample is taken, every n-th in the order of nodes, which spreads it over all hosts that link here; of a longer row
//! those nearest to the node asked about, which are most likely to be about the same thing. The answer says so.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::algo::distance::NodeHasher;
use crate::{Node, Rows};

/// How much is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Cocitation {
    /// Predecessors asked.
    pub predecessors_max: usize,
    /// Successors counted of each.
    pub row_max: usize,
}

impl Default for Cocitation {
    fn default() -> Cocitation {
        Cocitation { predecessors_max: 1_000, row_max: 1_000 }
    }
}

/// A node that is linked together with the one asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cocited {
    /// The node.
    pub node: Node,
    /// How many predecessors link to both.
    pub count: u32,
    /// The sum of 1/log2(1 + degree) over them.
    pub weight: f64,
}

/// What is linked together with a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// The heaviest first, ties by count and then by node.
    pub nodes: Vec<Cocited>,
    /// Predecessors there are.
    pub predecessors: usize,
    /// Predecessors asked.
    pub asked: usize,
    /// Rows of which only a part was counted.
    pub rows_cut: usize,
}

impl Cocitation {
    /// The `k` nodes most often linked together with `node`. Nothing for a node that does not exist.
    pub fn of(&self, forward: &dyn Rows, transposed: &dyn Rows, node: Node, k: usize) -> Together {
        let mut together = Together::default();
        if node >= forward.nodes().min(transposed.nodes()) {
            return together;
        }
        let mut from = Vec::new();
        transposed.row(node, &mut from);
        together.predecessors = from.len();
        together.asked = from.len().min(self.predecessors_max);
        let mut counts: HashMap<Node, (u32, f64), BuildHasherDefault<NodeHasher>> = HashMap::default();
        let mut row = Vec::new();
        for n in 0..together.asked {
            // The n-th of `asked` evenly spaced ones; all of them if all are asked.
            forward.row(from[n * from.len() / together.asked], &mut row);
            let weight = 1.0 / (1.0 + row.len() as f64).log2();
            let near = nearest(&row, node, self.row_max);
            together.rows_cut += usize::from(near.len() < row.len());
            for &other in near.iter().filter(|&&other| other != node) {
                let (count, sum) = counts.entry(other).or_default();
                *count += 1;
                *sum += weight;
            }
        }
        let mut nodes: Vec<Cocited> =
            counts.into_iter().map(|(node, (count, weight))| Cocited { node, count, weight }).collect();
        nodes.sort_unstable_by(|a, b| {
            b.weight.total_cmp(&a.weight).then(b.count.cmp(&a.count)).then(a.node.cmp(&b.node))
        });
        nodes.truncate(k);
        together.nodes = nodes;
        together
    }
}

/// Up to `max` nodes of a row around the place of `node`.
fn nearest(row: &[Node], node: Node, max: usize) -> &[Node] {
    let at = row.partition_point(|&other| other < node);
    let from = at.saturating_sub(max / 2).min(row.len().saturating_sub(max));
    &row[from..row.len().min(from + max)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Csr;
    use crate::algo::model;

    #[test]
    fn nodes_linked_together() {
        // 0 and 1 link to 4 and 5; 2 to 4 and 6; 3 to 5 alone.
        let graph = Csr::from_arcs(7, vec![(0, 4), (0, 5), (1, 4), (1, 5), (2, 4), (2, 6), (3, 5)]);
        let check = |node: Node, k: usize, expected: &[(Node, u32)]| {
            let found = Cocitation::default().of(&graph, &graph.transposed(), node, k);
            let found: Vec<(Node, u32)> = found.nodes.iter().map(|c| (c.node, c.count)).collect();
            assert_eq!(found, expected, "{node}");
        };
        check(4, 9, &[(5, 2), (6, 1)]);
        check(4, 1, &[(5, 2)]);
        check(6, 9, &[(4, 1)]);
        check(0, 9, &[]);
        check(7, 9, &[]);
    }

    #[test]
    fn much_is_cut_evenly_and_said() {
        // A hundred nodes link to all of the first hundred.
        let graph = Csr::from_arcs(200, (0..100).flat_map(|to| (100..200).map(move |from| (from, to))).collect());
        let few = Cocitation { predecessors_max: 10, row_max: 20 };
        let found = few.of(&graph, &graph.transposed(), 50, 1_000);
        assert_eq!((found.predecessors, found.asked, found.rows_cut), (100, 10, 10));
        let mut nodes: Vec<Node> = found.nodes.iter().map(|c| c.node).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, (40..60).filter(|&n| n != 50).collect::<Vec<Node>>());
        // The sample is spread over all who link here: each of 1..=100 names one other node.
        let each = Csr::from_arcs(201, (1..=100).flat_map(|from| [(from, 0), (from, 100 + from)]).collect());
        let found = Cocitation { predecessors_max: 4, row_max: 20 }.of(&each, &each.transposed(), 0, 10);
        assert_eq!(found.nodes.iter().map(|c| c.node).collect::<Vec<_>>(), [101, 126, 151, 176]);
        assert_eq!(nearest(&[1, 2, 3, 4, 5], 5, 3), [3, 4, 5]);
        assert_eq!(nearest(&[1, 2, 3, 4, 5], 1, 3), [1, 2, 3]);
        assert_eq!(nearest(&[1, 2], 9, 3), [1, 2]);
        assert_eq!(nearest(&[1, 2], 1, 0), []);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_all_triples(graph in model::graph(14, 60)) {
            let turned = graph.transposed();
            for node in 0..graph.nodes() {
                let found = Cocitation::default().of(&graph, &turned, node, usize::MAX);
                for other in (0..graph.nodes()).filter(|&other| other != node) {
                    let both = |from: &Node| {
                        let row = graph.successors(*from);
                        row.contains(&node) && row.contains(&other)
                    };
                    let citing: Vec<Node> = (0..graph.nodes()).filter(both).collect();
                    let weight: f64 =
                        citing.iter().map(|&from| 1.0 / (1.0 + graph.successors(from).len() as f64).log2()).sum();
                    match found.nodes.iter().find(|c| c.node == other) {
                        Some(c) => {
                            prop_assert_eq!(c.count as usize, citing.len());
                            prop_assert!((c.weight - weight).abs() < 1e-9);
                        }
                        None => prop_assert!(citing.is_empty()),
                    }
                }
            }
        }
    }
}
