//! What hangs together: strongly and weakly connected components, and the bow tie they form.
//!
//! Strong components after Pearce (2016, "A space-efficient algorithm for finding strongly connected components"): one number per
//! node that is first its place in the search and then its component. There is no recursion; the path from the root is a list,
//! and of every node on it the successors that were not visited when it was entered wait on one shared stack.
//!
//! **Cost.** Strong: O(nodes + arcs), every row is read once, in the order of the search. 4 bytes a node for the result, 4 for the
//! nodes that wait for their component, 12 for those on the path, and 4 for each successor waiting: at most the arcs of
//! the nodes on the path; on cnr-2000 a hundredth of the nodes are on the path and a tenth wait. Weak: O(arcs · α(nodes)), one
//! pass in order, 4 bytes a node. Either way numbering the components takes 8 bytes a node and 4 a component at the end.
//!
//! Components are numbered from the largest to the smallest, ties by their smallest node: the largest is always 0.

use crate::algo::Bits;
use crate::{Node, Rows};

/// A partition of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Components {
    /// The component of every node.
    pub of: Vec<Node>,
    /// How many nodes each component has, descending.
    pub sizes: Vec<Node>,
}

impl Components {
    /// How many components there are.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// How many components there are of each size, largest size first.
    pub fn distribution(&self) -> Vec<(Node, u64)> {
        let mut sizes: Vec<(Node, u64)> = Vec::new();
        for &size in &self.sizes {
            match sizes.last_mut() {
                Some((last, count)) if *last == size => *count += 1,
                _ => sizes.push((size, 1)),
            }
        }
        sizes
    }

    /// From any labels, below or equal to the number of nodes.
    fn of_labels(mut labels: Vec<Node>) -> Components {
        let mut sizes: Vec<Node> = vec![0; labels.len() + 1];
        for &label in &labels {
            sizes[label as usize] += 1;
        }
        let mut first: Vec<Node> = vec![Node::MAX; labels.len() + 1];
        for (node, &label) in labels.iter().enumerate().rev() {
            first[label as usize] = node as Node;
        }
        let mut order: Vec<Node> = (0..sizes.len() as Node).filter(|&l| sizes[l as usize] > 0).collect();
        order.sort_unstable_by_key(|&l| (std::cmp::Reverse(sizes[l as usize]), first[l as usize]));
        let name = &mut first;
        for (n, &label) in order.iter().enumerate() {
            name[label as usize] = n as Node;
        }
        labels.iter_mut().for_each(|label| *label = name[*label as usize]);
        Components { of: labels, sizes: order.iter().map(|&l| sizes[l as usize]).collect() }
    }
}

/// A node on the way from the root of the search to where it is.
struct Step {
    node: Node,
    /// How many of its successors wait on the shared stack; they are the topmost once all later steps are done.
    waiting: u32,
    /// Whether no way back to an earlier node has been found.
    root: bool,
}

/// The sets of nodes in which each can be reached from each.
pub fn strong(forward: &dyn Rows) -> Components {
    let nodes = forward.nodes();
    // 0: not visited. Places count up from 1, components down from `nodes`: a finished node is always above a place.
    let mut index = vec![0 as Node; nodes as usize];
    let (mut place, mut component) = (1, nodes);
    let mut path: Vec<Step> = Vec::new();
    let mut waiting: Vec<Node> = Vec::new();
    let mut unassigned: Vec<Node> = Vec::new();
    let mut row = Vec::new();
    for start in 0..nodes {
        let mut enter = (index[start as usize] == 0).then_some(start);
        loop {
            if let Some(node) = enter.take() {
                index[node as usize] = place;
                forward.row(node, &mut row);
                let mut step = Step { node, waiting: 0, root: true };
                // Visited ones can be looked at now; what they tell does not depend on when. The smallest waits on top.
                for &to in row.iter().rev() {
                    match index[to as usize] {
                        0 => {
                            waiting.push(to);
                            step.waiting += 1;
                        }
                        seen if seen < index[node as usize] => {
                            index[node as usize] = seen;
                            step.root = false;
                        }
                        _ => {}
                    }
                }
                place += 1;
                path.push(step);
            }
            let Some(step) = path.last_mut() else { break };
            let at = step.node as usize;
            if step.waiting > 0 {
                step.waiting -= 1;
                let Some(to) = waiting.pop() else { break };
                match index[to as usize] {
                    0 => enter = Some(to),
                    seen if seen < index[at] => {
                        index[at] = seen;
                        step.root = false;
                    }
                    _ => {}
                }
                continue;
            }
            if step.root {
                place -= 1;
                while let Some(&last) = unassigned.last()
                    && index[last as usize] >= index[at]
                {
                    index[last as usize] = component;
                    place -= 1;
                    unassigned.pop();
                }
                index[at] = component;
                component -= 1;
            } else {
                unassigned.push(at as Node);
            }
            path.pop();
            if let Some(parent) = path.last_mut()
                && index[at] < index[parent.node as usize]
            {
                index[parent.node as usize] = index[at];
                parent.root = false;
            }
        }
    }
    Components::of_labels(index)
}

/// The sets of nodes that hang together if arcs are followed both ways.
pub fn weak(forward: &dyn Rows) -> Components {
    let mut sets = Sets::new(forward.nodes());
    forward.scan_all(&mut |node, row| {
        for &to in row {
            sets.join(node, to);
        }
    });
    sets.components()
}

/// Sets that are joined, and never cut: union by the smaller node, paths halved.
pub(crate) struct Sets(Vec<Node>);

impl Sets {
    /// Every node for itself.
    pub(crate) fn new(nodes: Node) -> Sets {
        Sets((0..nodes).collect())
    }

    /// The smallest node of the set of `node`.
    pub(crate) fn find(&mut self, mut node: Node) -> Node {
        let above = &mut self.0;
        while above[node as usize] != node {
            let next = above[above[node as usize] as usize];
            above[node as usize] = next;
            node = next;
        }
        node
    }

    /// Makes one set of two.
    pub(crate) fn join(&mut self, a: Node, b: Node) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }

    fn components(mut self) -> Components {
        for node in 0..self.0.len() as Node {
            self.0[node as usize] = self.find(node);
        }
        Components::of_labels(self.0)
    }
}

/// The shape of a web (Broder et al. 2000), in nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BowTie {
    /// The largest strong component.
    pub core: Node,
    /// Outside of it, but from here it is reached.
    pub input: Node,
    /// Outside of it, but reached from it.
    pub output: Node,
    /// Connected with it neither way, but if arcs are followed both ways: tendrils and tubes.
    pub tendrils: Node,
    /// Everything else.
    pub islands: Node,
}

/// The bow tie around the largest strong component. Two searches from it: O(nodes + arcs), two bits a node and 4 bytes for each
/// node that waits.
pub fn bow_tie(forward: &dyn Rows, transposed: &dyn Rows, strong: &Components, weak: &Components) -> BowTie {
    let nodes = forward.nodes();
    let core = || (0..nodes).filter(|&node| strong.of[node as usize] == 0);
    let Some(inside) = core().next() else { return BowTie::default() };
    let (after, before) = (reach(forward, core()), reach(transposed, core()));
    let home = weak.of[inside as usize];
    let mut shape = BowTie::default();
    for node in 0..nodes {
        let part = match (before.has(node), after.has(node)) {
            (true, true) => &mut shape.core,
            (true, false) => &mut shape.input,
            (false, true) => &mut shape.output,
            (false, false) if weak.of[node as usize] == home => &mut shape.tendrils,
            (false, false) => &mut shape.islands,
        };
        *part += 1;
    }
    shape
}

/// All nodes that are reached from some.
fn reach(rows: &dyn Rows, from: impl Iterator<Item = Node>) -> Bits {
    let mut seen = Bits::new(rows.nodes());
    let mut open: Vec<Node> = from.inspect(|&node| _ = seen.add(node)).collect();
    let mut row = Vec::new();
    while let Some(node) = open.pop() {
        rows.row(node, &mut row);
        open.extend(row.iter().filter(|&&to| seen.add(to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Csr;
    use crate::algo::model;

    #[test]
    fn components_of_small_graphs() {
        let check = |nodes: Node, arcs: &[(Node, Node)], strongly: &[Node], weakly: &[Node]| {
            let graph = Csr::from_arcs(nodes, arcs.to_vec());
            assert_eq!(strong(&graph).of, strongly, "strong, {arcs:?}");
            assert_eq!(weak(&graph).of, weakly, "weak, {arcs:?}");
        };
        check(0, &[], &[], &[]);
        check(1, &[], &[0], &[0]);
        check(2, &[(1, 1)], &[0, 1], &[0, 1]);
        check(3, &[(0, 1), (1, 2)], &[0, 1, 2], &[0, 0, 0]);
        check(4, &[(0, 1), (2, 3), (3, 2)], &[1, 2, 0, 0], &[0, 0, 1, 1]);
        check(5, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3)], &[0, 0, 0, 1, 1], &[0; 5]);
    }

    #[test]
    fn a_long_path_needs_no_recursion() {
        let nodes = 300_000;
        let mut arcs: Vec<(Node, Node)> = (1..nodes).map(|node| (node - 1, node)).collect();
        assert_eq!(strong(&Csr::from_arcs(nodes, arcs.clone())).count(), nodes as usize);
        arcs.push((nodes - 1, 0));
        assert_eq!(strong(&Csr::from_arcs(nodes, arcs)).sizes, [nodes]);
    }

    #[test]
    fn the_shape_of_a_web() {
        // 0 ⇄ 1 is the core, 2 leads in, 3 out, 4 hangs on 2, 5 stands alone.
        let graph = Csr::from_arcs(6, vec![(0, 1), (1, 0), (2, 0), (1, 3), (2, 4)]);
        let shape = bow_tie(&graph, &graph.transposed(), &strong(&graph), &weak(&graph));
        assert_eq!(shape, BowTie { core: 2, input: 1, output: 1, tendrils: 1, islands: 1 });
        assert_eq!(strong(&graph).distribution(), [(2, 1), (1, 4)]);
    }

    /// The partition by which nodes belong together if `same` says so.
    fn partition(nodes: usize, same: impl Fn(usize, usize) -> bool) -> Components {
        let labels = (0..nodes).map(|v| (0..nodes).find(|&w| same(v, w)).unwrap_or(v) as Node).collect();
        Components::of_labels(labels)
    }

    proptest! {
        #[test]
        fn components_are_what_reachability_says(graph in model::graph(24, 60)) {
            let n = graph.nodes() as usize;
            let far = model::distances(&graph);
            let both = |v: usize, w: usize| far[v][w] != u32::MAX && far[w][v] != u32::MAX;
            let strongly = strong(&graph);
            prop_assert_eq!(&strongly, &partition(n, both));
            prop_assert!(strongly.sizes.is_sorted_by(|a, b| a >= b));

            let turned = graph.transposed();
            let arcs = (0..n as Node).flat_map(|v| {
                graph.successors(v).iter().chain(turned.successors(v)).map(move |&w| (v, w))
            });
            let near = model::distances(&Csr::from_arcs(n as Node, arcs.collect()));
            let weakly = weak(&graph);
            prop_assert_eq!(&weakly, &partition(n, |v, w| near[v][w] != u32::MAX));

            let core = strongly.of.iter().position(|&c| c == 0).expect("a core");
            let shape = bow_tie(&graph, &turned, &strongly, &weakly);
            let count = |f: &dyn Fn(usize) -> bool| (0..n).filter(|&v| f(v)).count() as Node;
            prop_assert_eq!(shape.core, count(&|v| both(v, core)));
            prop_assert_eq!(shape.input, count(&|v| far[v][core] != u32::MAX && far[core][v] == u32::MAX));
            prop_assert_eq!(shape.output, count(&|v| far[v][core] == u32::MAX && far[core][v] != u32::MAX));
            prop_assert_eq!(shape.islands, count(&|v| near[v][core] == u32::MAX));
        }
    }
}
