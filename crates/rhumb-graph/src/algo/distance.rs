//! How many steps it is from one node to another, and a way that takes no more.
//!
//! Two searches in breadth, from the source along arcs and from the target against them; the one with fewer nodes to expand goes
//! on by a whole level, until they meet. On a web whose pages are a dozen steps apart each side then sees some thousand pages
//! instead of all of them.
//!
//! The way is always the same for the same graph: nodes are expanded in ascending order, a node is entered from the first that
//! finds it, and where searches meet at several nodes the smallest is taken.
//!
//! **Cost.** At most [`Search::nodes_max`] nodes are remembered, about 16 bytes each, and [`Search::arcs_max`] arcs looked at; a
//! search that would need more gives up and says so.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::algo::mix;
use crate::{Node, Rows};

/// What a search may cost.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Nodes seen from either side, together.
    pub nodes_max: usize,
    /// Arcs looked at. It is checked after every row, so a search ends with the row in which it is exceeded.
    pub arcs_max: u64,
}

impl Default for Search {
    /// A second of work on a compressed graph.
    fn default() -> Search {
        Search { nodes_max: 2_000_000, arcs_max: 20_000_000 }
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A shortest path, both ends included: its steps are one less than its nodes.
    Path(Vec<Node>),
    /// There is no way, or one of the nodes does not exist.
    None,
    /// The search became too large after so many nodes were seen: there may be a way or not.
    GaveUp {
        /// Nodes seen.
        visited: usize,
    },
}

impl Way {
    /// The distance, if a way was found.
    pub fn steps(&self) -> Option<usize> {
        match self {
            Way::Path(nodes) => Some(nodes.len() - 1),
            Way::None | Way::GaveUp { .. } => None,
        }
    }
}

impl Search {
    /// A shortest path from `source` to `target`.
    pub fn path(&self, forward: &dyn Rows, transposed: &dyn Rows, source: Node, target: Node) -> Way {
        if source.max(target) >= forward.nodes().min(transposed.nodes()) {
            return Way::None;
        }
        if source == target {
            return Way::Path(vec![source]);
        }
        let mut sides = [Side::new(forward, source), Side::new(transposed, target)];
        let mut arcs = 0;
        while let [from_source, from_target] = &sides
            && !from_source.edge.is_empty()
            && !from_target.edge.is_empty()
        {
            let [here, there] = &mut sides;
            let (side, other) = if here.edge.len() <= there.edge.len() { (here, there) } else { (there, here) };
            match side.expand(other, self, &mut arcs) {
                Step::On => {}
                Step::TooMuch => return Way::GaveUp { visited: side.seen.len() + other.seen.len() },
                Step::Met(node) => {
                    let mut path = sides[0].trail(node);
                    path.reverse();
                    path.extend(&sides[1].trail(node)[1..]);
                    return Way::Path(path);
                }
            }
        }
        Way::None
    }
}

enum Step {
    On,
    Met(Node),
    TooMuch,
}

/// One of the two searches.
struct Side<'a> {
    rows: &'a dyn Rows,
    /// Each node seen, and from where; the start from itself.
    seen: HashMap<Node, Node, BuildHasherDefault<NodeHasher>>,
    /// The nodes of the last level, ascending.
    edge: Vec<Node>,
}

impl<'a> Side<'a> {
    fn new(rows: &'a dyn Rows, start: Node) -> Side<'a> {
        Side { rows, seen: [(start, start)].into_iter().collect(), edge: vec![start] }
    }

    /// Goes on by one level. All nodes where the sides meet in it are on shortest paths: had one been nearer, the sides had
    /// met before.
    fn expand(&mut self, other: &Side, search: &Search, arcs: &mut u64) -> Step {
        let mut row = Vec::new();
        let mut next = Vec::new();
        let mut met: Option<Node> = None;
        for &node in &self.edge {
            self.rows.row(node, &mut row);
            *arcs += row.len() as u64;
            for &to in &row {
                if self.seen.contains_key(&to) {
                    continue;
                }
                self.seen.insert(to, node);
                next.push(to);
                if other.seen.contains_key(&to) {
                    met = Some(met.map_or(to, |met| met.min(to)));
                }
                if met.is_none() && self.seen.len() + other.seen.len() > search.nodes_max {
                    return Step::TooMuch;
                }
            }
            if *arcs > search.arcs_max || self.seen.len() + other.seen.len() > search.nodes_max {
                // What was met is as near as anything that the rest of the level could bring.
                return met.map_or(Step::TooMuch, Step::Met);
            }
        }
        next.sort_unstable();
        self.edge = next;
        met.map_or(Step::On, Step::Met)
    }

    /// The nodes from `node` back to the start.
    fn trail(&self, mut node: Node) -> Vec<Node> {
        let mut trail = vec![node];
        while let Some(&from) = self.seen.get(&node)
            && from != node
        {
            trail.push(from);
            node = from;
        }
        trail
    }
}

/// Scatters node numbers; no seed, so that nothing depends on one.
#[derive(Default)]
pub(crate) struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u32(&mut self, node: u32) {
        self.0 = mix(self.0 ^ u64::from(node));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Csr;
    use crate::algo::model;

    #[test]
    fn ways_in_a_small_graph() {
        let arcs = vec![(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 0), (5, 5)];
        let graph = Csr::from_arcs(6, arcs);
        let turned = graph.transposed();
        let check = |from: Node, to: Node, expected: Way| {
            assert_eq!(Search::default().path(&graph, &turned, from, to), expected, "{from} to {to}");
        };
        check(0, 0, Way::Path(vec![0]));
        check(0, 1, Way::Path(vec![0, 1]));
        check(0, 3, Way::Path(vec![0, 1, 3]));
        check(2, 1, Way::Path(vec![2, 3, 4, 0, 1]));
        check(0, 5, Way::None);
        check(5, 0, Way::None);
        check(0, 6, Way::None);
        assert_eq!(Search::default().path(&graph, &turned, 2, 1).steps(), Some(4));
    }

    #[test]
    fn of_ways_of_the_same_length_one_by_small_nodes_is_taken() {
        // From 0 by 1 and 9 or by 2 and 3 to 4 and 8. Many nodes lead to 8, so that the search goes on from 0.
        let mut arcs = vec![(0, 1), (0, 2), (1, 9), (2, 3), (9, 4), (3, 4), (4, 8)];
        arcs.extend((10..40).map(|node| (node, 8)));
        let graph = Csr::from_arcs(40, arcs);
        assert_eq!(Search::default().path(&graph, &graph.transposed(), 0, 8), Way::Path(vec![0, 2, 3, 4, 8]));
    }

    #[test]
    fn a_search_that_is_too_large_gives_up() {
        let nodes = 1000;
        let graph = Csr::from_arcs(nodes, (1..nodes).map(|node| (node - 1, node)).collect());
        let turned = graph.transposed();
        let few = Search { nodes_max: 100, ..Search::default() };
        assert_eq!(few.path(&graph, &turned, 0, 999), Way::GaveUp { visited: 101 });
        let short = Search { arcs_max: 100, ..Search::default() };
        assert_eq!(short.path(&graph, &turned, 0, 999), Way::GaveUp { visited: 103 });
        assert_eq!(few.path(&graph, &turned, 0, 90).steps(), Some(90));
    }

    proptest! {
        #[test]
        fn paths_are_paths_and_none_is_shorter(graph in model::graph(16, 40), nodes_max in 2..60usize) {
            let turned = graph.transposed();
            let far = model::distances(&graph);
            for from in 0..graph.nodes() {
                for to in 0..graph.nodes() {
                    let exact = far[from as usize][to as usize];
                    match Search::default().path(&graph, &turned, from, to) {
                        Way::Path(path) => {
                            prop_assert_eq!(path.len() as u32 - 1, exact);
                            prop_assert_eq!((path[0], path[path.len() - 1]), (from, to));
                            prop_assert!(path.windows(2).all(|step| graph.successors(step[0]).contains(&step[1])));
                        }
                        Way::None => prop_assert_eq!(exact, u32::MAX),
                        Way::GaveUp { .. } => prop_assert!(false, "gave up"),
                    }
                    // With a bound the answer is the same or missing.
                    let bounded = Search { nodes_max, ..Search::default() }.path(&graph, &turned, from, to);
                    match bounded {
                        Way::GaveUp { visited } => prop_assert!(visited > nodes_max),
                        way => prop_assert_eq!(way.steps(), (exact != u32::MAX).then_some(exact as usize)),
                    }
                }
            }
        }
    }
}
