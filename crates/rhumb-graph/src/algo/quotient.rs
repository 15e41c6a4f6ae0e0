//! A coarser graph: groups of nodes become nodes. So the host graph is made from the page graph, and the graph of registrable
//! domains from either.
//!
//! An arc between two groups knows how many arcs it stands for, how many pages of the one they come from, and to how many pages
//! of the other they lead: a thousand links from one template and a thousand recommendations are told apart. Arcs
//! within a group are no arcs of the coarser graph; they are counted beside it.
//!
//! **Cost.** One pass over the forward graph, O(arcs), if the nodes of a group are neighbours, as hosts and domains are in the order
//! of keys ([`crate::key`]); otherwise rows are asked for one by one, group by group, with 4 bytes a node for the order. While
//! it runs: a bit and a half a node and 28 bytes a group. The result takes 20 bytes for every arc between groups, of which
//! there may be no more than the caller allows.

use crate::algo::Bits;
use crate::{Csr, GraphError, Node, Result, Rows};

/// What arcs between two groups, or within one, stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Arcs between their nodes.
    pub arcs: u64,
    /// Different nodes that they come from.
    pub sources: u32,
    /// Different nodes that they lead to.
    pub targets: u32,
}

/// A graph of groups. Its [`Rows`] are in `graph`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotient {
    /// The arcs between different groups.
    pub graph: Csr,
    /// Arcs within each group.
    pub within: Vec<Weight>,
    /// How many nodes each group has.
    pub sizes: Vec<Node>,
    ends: Vec<usize>,
    weights: Vec<Weight>,
}

impl Quotient {
    /// The graph of groups `0..groups`; `group_of` has the group of every node. Fails if a group is out of range, or if there
    /// would be more than `arcs_max` arcs between groups.
    pub fn of(forward: &dyn Rows, group_of: &[Node], groups: Node, arcs_max: usize) -> Result<Quotient> {
        let nodes = forward.nodes();
        if group_of.len() != nodes as usize {
            return Err(GraphError::input(format!("groups of {} nodes for a graph of {nodes}", group_of.len())));
        }
        if let Some(node) = group_of.iter().position(|&group| group >= groups) {
            let group = group_of[node];
            return Err(GraphError::input(format!("node {node} is in group {group}, but there are {groups}")));
        }
        let mut building = Building {
            quotient: Quotient::default(),
            group_of,
            sums: vec![(Weight::default(), Node::MAX); groups as usize],
            met: Vec::new(),
            seen: Bits::new(nodes),
            touched: Vec::new(),
            arcs_max,
        };
        building.quotient.sizes = vec![0; groups as usize];
        for &group in group_of {
            building.quotient.sizes[group as usize] += 1;
        }
        if group_of.is_sorted() {
            let mut failed = Ok(());
            forward.scan_all(&mut |node, row| {
                if failed.is_ok() {
                    failed = building.close_before(group_of[node as usize]);
                    building.add(node, row);
                }
            });
            failed?;
        } else {
            let mut order: Vec<Node> = (0..nodes).collect();
            order.sort_by_key(|&node| group_of[node as usize]);
            let mut row = Vec::new();
            for node in order {
                building.close_before(group_of[node as usize])?;
                forward.row(node, &mut row);
                building.add(node, &row);
            }
        }
        building.close_before(groups)?;
        Ok(building.quotient)
    }

    /// Other groups that a group links to, ascending, and what the arcs stand for.
    pub fn row(&self, group: Node) -> impl Iterator<Item = (Node, &Weight)> + '_ {
        let from = if group == 0 { 0 } else { self.ends[group as usize - 1] };
        let weights = &self.weights[from..self.ends[group as usize]];
        self.graph.successors(group).iter().copied().zip(weights)
    }

    /// The same with every arc turned round; sources and targets change places.
    pub fn transposed(&self) -> Quotient {
        let graph = self.graph.transposed();
        let mut ends: Vec<usize> = Vec::with_capacity(self.ends.len());
        let mut places = Vec::with_capacity(self.ends.len());
        graph.scan_all(&mut |_, row| {
            let start = ends.last().copied().unwrap_or(0);
            places.push(start);
            ends.push(start + row.len());
        });
        let turn = |w: &Weight| Weight { arcs: w.arcs, sources: w.targets, targets: w.sources };
        let mut weights = vec![Weight::default(); self.weights.len()];
        for group in 0..graph.nodes() {
            for (to, weight) in self.row(group) {
                weights[places[to as usize]] = turn(weight);
                places[to as usize] += 1;
            }
        }
        let within = self.within.iter().map(turn).collect();
        Quotient { graph, within, sizes: self.sizes.clone(), ends, weights }
    }
}

struct Building<'a> {
    quotient: Quotient,
    group_of: &'a [Node],
    /// For the group being read: what it has to each group, and the last node that added to it.
    sums: Vec<(Weight, Node)>,
    /// The groups it has something to.
    met: Vec<Node>,
    /// The nodes it links to.
    seen: Bits,
    /// Where in `seen` there is something, for emptying it.
    touched: Vec<u32>,
    arcs_max: usize,
}

impl Building<'_> {
    fn add(&mut self, node: Node, row: &[Node]) {
        for &to in row {
            let (weight, last) = &mut self.sums[self.group_of[to as usize] as usize];
            if weight.arcs == 0 {
                self.met.push(self.group_of[to as usize]);
            }
            weight.arcs += 1;
            if *last != node {
                *last = node;
                weight.sources += 1;
            }
            if self.seen.is_clear_around(to) {
                self.touched.push(to / 64);
            }
            weight.targets += u32::from(self.seen.add(to));
        }
    }

    /// Writes the rows of all groups before `group` that are not written yet. Only the first of them can have arcs.
    fn close_before(&mut self, group: Node) -> Result<()> {
        while (self.quotient.within.len() as Node) < group {
            let this = self.quotient.within.len() as Node;
            let quotient = &mut self.quotient;
            self.met.sort_unstable();
            quotient.within.push(Weight::default());
            for &to in &self.met {
                let (weight, _) = std::mem::replace(&mut self.sums[to as usize], (Weight::default(), Node::MAX));
                if to == this {
                    quotient.within[this as usize] = weight;
                } else {
                    quotient.weights.push(weight);
                }
            }
            if quotient.weights.len() > self.arcs_max {
                let most = self.arcs_max;
                return Err(GraphError::input(format!("more than {most} arcs between groups")));
            }
            self.met.retain(|&to| to != this);
            quotient.graph.push(&self.met);
            quotient.ends.push(quotient.weights.len());
            self.met.clear();
            self.seen.clear_words(&self.touched);
            self.touched.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::algo::model;

    #[test]
    fn arcs_between_groups() {
        // Groups {0, 1}, {2, 3}, {} and {4}.
        let graph = Csr::from_arcs(5, vec![(0, 1), (0, 2), (0, 3), (1, 2), (2, 4), (4, 4), (4, 0)]);
        let found = Quotient::of(&graph, &[0, 0, 1, 1, 3], 4, 10).expect("a quotient");
        let row = |group| found.row(group).map(|(to, w)| (to, w.arcs, w.sources, w.targets)).collect::<Vec<_>>();
        assert_eq!(row(0), [(1, 3, 2, 2)]);
        assert_eq!(row(1), [(3, 1, 1, 1)]);
        assert_eq!(row(2), []);
        assert_eq!(row(3), [(0, 1, 1, 1)]);
        assert_eq!(found.within.iter().map(|w| w.arcs).collect::<Vec<_>>(), [1, 0, 0, 1]);
        assert_eq!(found.sizes, [2, 2, 0, 1]);
        assert_eq!(found.transposed().row(1).collect::<Vec<_>>(), [(0, &Weight { arcs: 3, sources: 2, targets: 2 })]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let graph = Csr::from_arcs(3, vec![(0, 1), (1, 2)]);
        let check = |groups: &[Node], arcs_max: usize, expected: &str| {
            let error = Quotient::of(&graph, groups, 3, arcs_max).expect_err("refused");
            assert_eq!(error.to_string(), expected);
        };
        check(&[0, 1], 9, "groups of 2 nodes for a graph of 3");
        check(&[0, 3, 1], 9, "node 1 is in group 3, but there are 3");
        check(&[0, 1, 2], 1, "more than 1 arcs between groups");
    }

    /// Arcs, where they come from, where they lead to.
    type Counted = (u64, BTreeSet<Node>, BTreeSet<Node>);

    proptest! {
        #[test]
        fn weights_are_what_counting_gives(
            graph in model::graph(100, 200), seed in proptest::collection::vec(0..7u32, 100), sorted: bool
        ) {
            let mut group_of = seed[..graph.nodes() as usize].to_vec();
            if sorted {
                group_of.sort_unstable();
            }
            let mut arcs: BTreeMap<(Node, Node), Counted> = BTreeMap::new();
            for from in 0..graph.nodes() {
                for &to in graph.successors(from) {
                    let entry = arcs.entry((group_of[from as usize], group_of[to as usize])).or_default();
                    entry.0 += 1;
                    entry.1.insert(from);
                    entry.2.insert(to);
                }
            }
            let found = Quotient::of(&graph, &group_of, 8, 1000).expect("a quotient");
            prop_assert_eq!(found.graph.nodes(), 8);
            for group in 0..8 {
                let mut row: Vec<(Node, Weight)> = found.row(group).map(|(to, weight)| (to, *weight)).collect();
                if found.within[group as usize].arcs > 0 {
                    row.push((group, found.within[group as usize]));
                    row.sort_unstable_by_key(|&(to, _)| to);
                }
                let expected: Vec<(Node, Weight)> = arcs
                    .range((group, 0)..(group + 1, 0))
                    .map(|(&(_, to), (arcs, from, into))| {
                        (to, Weight { arcs: *arcs, sources: from.len() as u32, targets: into.len() as u32 })
                    })
                    .collect();
                prop_assert_eq!(row, expected);
            }
            prop_assert_eq!(&found.transposed().transposed(), &found);
            let turned = Quotient::of(&graph.transposed(), &group_of, 8, 1000).expect("a quotient");
            prop_assert_eq!(found.transposed(), turned);
        }
    }
}
