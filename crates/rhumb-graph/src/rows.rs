//! What a graph is: a row of successors for every node.
//!
//! Everything that computes something (ranks, components, distances) takes a [`Rows`] and does not ask where it comes
//! from: a compressed file, several of them merged, or [`Csr`], the plain one in memory.

/// A node: its place among all nodes of one graph. A machine holds fewer than 2³² URLs in one graph.
pub type Node = u32;

/// A graph whose rows can be read, one after the other or any of them.
///
/// A row is strictly ascending, and all its nodes are below [`Rows::nodes`].
pub trait Rows: Send + Sync {
    /// How many nodes there are.
    fn nodes(&self) -> Node;

    /// How many arcs there are.
    fn arcs(&self) -> u64;

    /// Puts the successors of `node` into `into`, which is emptied first.
    fn row(&self, node: Node, into: &mut Vec<Node>);

    /// How many successors `node` has.
    fn degree(&self, node: Node) -> u32;

    /// Calls `each` with the rows from `from` to `to` (excluded), in order: much faster than asking for each.
    fn scan(&self, from: Node, to: Node, each: &mut dyn FnMut(Node, &[Node]));

    /// All rows in order.
    fn scan_all(&self, each: &mut dyn FnMut(Node, &[Node])) {
        self.scan(0, self.nodes(), each);
    }
}

/// A graph in memory, 4 bytes an arc and 8 a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Csr {
    ends: Vec<u64>,
    arcs: Vec<Node>,
}

impl Csr {
    /// Adds the row of the next node, which must be strictly ascending.
    pub fn push(&mut self, row: &[Node]) {
        self.arcs.extend_from_slice(row);
        self.ends.push(self.arcs.len() as u64);
    }

    /// A graph of so many nodes with these arcs, in any order and any number of times.
    pub fn from_arcs(nodes: Node, mut arcs: Vec<(Node, Node)>) -> Csr {
        arcs.sort_unstable();
        arcs.dedup();
        let mut csr = Csr::default();
        let mut at = 0;
        for node in 0..nodes {
            while at < arcs.len() && arcs[at].0 == node {
                csr.arcs.push(arcs[at].1);
                at += 1;
            }
            csr.ends.push(csr.arcs.len() as u64);
        }
        csr
    }

    /// A copy of another graph.
    pub fn of(rows: &dyn Rows) -> Csr {
        let mut csr = Csr::default();
        rows.scan_all(&mut |_, row| csr.push(row));
        csr
    }

    /// The successors of `node`.
    pub fn successors(&self, node: Node) -> &[Node] {
        let from = if node == 0 { 0 } else { self.ends[node as usize - 1] };
        &self.arcs[from as usize..self.ends[node as usize] as usize]
    }

    /// The same graph with every arc turned round.
    pub fn transposed(&self) -> Csr {
        let nodes = self.ends.len();
        let mut starts = vec![0u64; nodes + 1];
        for &to in &self.arcs {
            starts[to as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let ends = starts[1..].to_vec();
        let mut arcs = vec![0; self.arcs.len()];
        for node in 0..nodes as Node {
            for &to in self.successors(node) {
                arcs[starts[to as usize] as usize] = node;
                starts[to as usize] += 1;
            }
        }
        Csr { ends, arcs }
    }
}

impl Rows for Csr {
    fn nodes(&self) -> Node {
        self.ends.len() as Node
    }

    fn arcs(&self) -> u64 {
        self.arcs.len() as u64
    }

    fn row(&self, node: Node, into: &mut Vec<Node>) {
        into.clear();
        into.extend_from_slice(self.successors(node));
    }

    fn degree(&self, node: Node) -> u32 {
        self.successors(node).len() as u32
    }

    fn scan(&self, from: Node, to: Node, each: &mut dyn FnMut(Node, &[Node])) {
        for node in from..to.min(self.nodes()) {
            each(node, self.successors(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_and_its_transpose() {
        let graph = Csr::from_arcs(4, vec![(2, 1), (0, 3), (0, 1), (2, 1), (3, 0)]);
        assert_eq!((graph.nodes(), graph.arcs()), (4, 4));
        assert_eq!(graph.successors(0), [1, 3]);
        assert_eq!(graph.successors(1), []);
        let turned = graph.transposed();
        assert_eq!(turned.successors(1), [0, 2]);
        assert_eq!(turned.successors(0), [3]);
        assert_eq!(turned.transposed(), graph);
        assert_eq!(Csr::of(&graph), graph);
    }
}
