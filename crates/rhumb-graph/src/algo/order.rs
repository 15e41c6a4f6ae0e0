//! Another order of the nodes, by which rows code shorter.
//!
//! The order of keys is good for the web, and it is free. [`Llp`] finds one from the links alone: Layered Label Propagation (Boldi,
//! Rosa, Santini, Vigna 2011). Every node takes the label that most of its neighbours have, less a price γ for every
//! node of that label that is no neighbour; so labels become clusters, coarse for a small γ and fine for a large one. Clusters
//! of several γ are layered: the order so far is kept within clusters, and clusters come in the order of their first node. The
//! γ whose clusters alone give the shortest gaps comes last and so decides most.
//!
//! [`breadth_first`] is the cheap one to compare with. Whether an order pays is measured: [`gap_bits`] is a quick estimate.
//! [`permuted`] makes the graph.
//!
//! **Cost.** Label propagation works on the symmetric graph in memory, 8 bytes an arc at most ([`symmetric`]). Every γ needs some
//! ten passes over it, O(arcs) each, and 21 bytes a node; several run side by side, one a thread.

use crate::algo::{Bits, Chance, share};
use crate::{Csr, GraphError, Node, Result, Rows};

/// Nodes are visited in random order within blocks of so many: random enough not to run along the order there is, near enough for
/// the cache.
const SHUFFLED_NODES: usize = 100_000;
/// A pass that moves fewer than one node in so many is the last: the paper stops at a thousandth as well.
const MOVED_PART: usize = 1_000;

/// How labels are propagated.
#[derive(Clone, Debug)]
pub struct Llp {
    /// The prices γ.
    pub gammas: Vec<f64>,
    /// Passes for each at most.
    pub iterations_max: u32,
    /// Chooses the order of visits. The same seed gives the same order of nodes.
    pub seed: u64,
    /// Threads; the result does not depend on it.
    pub threads: usize,
}

impl Default for Llp {
    fn default() -> Llp {
        let mut gammas: Vec<f64> = (0..=10).map(|n| f64::from(1 << n).recip()).collect();
        gammas.push(0.0);
        Llp { gammas, iterations_max: 20, seed: 0, threads: super::threads_default() }
    }
}

impl Llp {
    /// The new place of every node. `symmetric` must be.
    pub fn places(&self, symmetric: &Csr) -> Vec<Node> {
        let mut layers = share(self.threads, self.gammas.clone(), |gamma| {
            let labels = self.labels(symmetric, gamma);
            let identity: Vec<Node> = (0..symmetric.nodes()).collect();
            (gap_bits_at(symmetric, &layered(&identity, &labels)), labels)
        });
        layers.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut places: Vec<Node> = (0..symmetric.nodes()).collect();
        for (_, labels) in layers {
            places = layered(&places, &labels);
        }
        places
    }

    /// The label of every node for one γ.
    fn labels(&self, symmetric: &Csr, gamma: f64) -> Vec<Node> {
        let nodes = symmetric.nodes() as usize;
        let mut chance = Chance(self.seed);
        let mut labels: Vec<Node> = (0..nodes as Node).collect();
        let mut volumes = vec![1u32; nodes];
        let mut counts = vec![0u32; nodes];
        let mut met: Vec<Node> = Vec::new();
        let mut visits: Vec<Node> = (0..nodes as Node).collect();
        // A node whose neighbours keep their labels is not looked at again, though volumes may have changed.
        let mut restless = vec![true; nodes];
        for _ in 0..self.iterations_max {
            for block in visits.chunks_mut(SHUFFLED_NODES) {
                for n in (1..block.len()).rev() {
                    block.swap(n, chance.below(n as u64 + 1) as usize);
                }
            }
            let mut moved = 0;
            for &node in &visits {
                if !std::mem::replace(&mut restless[node as usize], false) {
                    continue;
                }
                let old = labels[node as usize];
                volumes[old as usize] -= 1;
                met.push(old);
                for &other in symmetric.successors(node) {
                    let label = labels[other as usize];
                    if counts[label as usize] == 0 && label != old {
                        met.push(label);
                    }
                    counts[label as usize] += 1;
                }
                let (mut best, mut best_worth, mut ties) = (old, f64::NEG_INFINITY, 0);
                for &label in &met {
                    let count = f64::from(counts[label as usize]);
                    let worth = count - gamma * (f64::from(volumes[label as usize]) - count);
                    if worth > best_worth {
                        (best, best_worth, ties) = (label, worth, 1);
                    } else if worth == best_worth && best != old {
                        // Among equals chance decides, but nobody moves without a gain.
                        ties += 1;
                        if chance.below(ties) == 0 {
                            best = label;
                        }
                    }
                }
                for label in met.drain(..) {
                    counts[label as usize] = 0;
                }
                volumes[best as usize] += 1;
                if best != old {
                    labels[node as usize] = best;
                    moved += 1;
                    for &other in symmetric.successors(node) {
                        restless[other as usize] = true;
                    }
                }
            }
            if moved * MOVED_PART < nodes {
                break;
            }
        }
        labels
    }
}

/// Puts nodes of one label together: labels in the order of their first node, nodes of a label in the order they had.
fn layered(places: &[Node], labels: &[Node]) -> Vec<Node> {
    let mut first = vec![Node::MAX; labels.len()];
    for (&place, &label) in places.iter().zip(labels) {
        let first = &mut first[label as usize];
        *first = place.min(*first);
    }
    let mut order: Vec<(Node, Node, Node)> = places
        .iter()
        .zip(labels)
        .enumerate()
        .map(|(node, (&place, &label))| (first[label as usize], place, node as Node))
        .collect();
    order.sort_unstable();
    let mut places = vec![0; labels.len()];
    for (place, (_, _, node)) in order.into_iter().enumerate() {
        places[node as usize] = place as Node;
    }
    places
}

/// The new place of every node in a search in breadth from node 0, then from the next that was not met, and so on.
pub fn breadth_first(rows: &dyn Rows) -> Vec<Node> {
    let nodes = rows.nodes();
    let mut seen = Bits::new(nodes);
    let mut order: Vec<Node> = Vec::with_capacity(nodes as usize);
    let mut row = Vec::new();
    for start in 0..nodes {
        if !seen.add(start) {
            continue;
        }
        let mut at = order.len();
        order.push(start);
        while at < order.len() {
            rows.row(order[at], &mut row);
            order.extend(row.iter().filter(|&&to| seen.add(to)));
            at += 1;
        }
    }
    inverse(&order)
}

/// A graph with all arcs both ways and no loops, for [`Llp`].
pub fn symmetric(forward: &dyn Rows, transposed: &dyn Rows) -> Csr {
    let mut both = Csr::default();
    let mut other = Vec::new();
    let mut merged: Vec<Node> = Vec::new();
    forward.scan_all(&mut |node, row| {
        transposed.row(node, &mut other);
        merged.clear();
        merged.extend(row.iter().chain(&other).filter(|&&to| to != node));
        merged.sort_unstable();
        merged.dedup();
        both.push(&merged);
    });
    both
}

/// The graph with every node at its new place. Fails if `places` does not have every place once.
pub fn permuted(rows: &dyn Rows, places: &[Node]) -> Result<Csr> {
    let nodes = rows.nodes();
    let mut seen = Bits::new(nodes);
    if places.len() != nodes as usize || places.iter().any(|&place| place >= nodes || !seen.add(place)) {
        return Err(GraphError::input(format!("not an order of {nodes} nodes: a place is missing or taken twice")));
    }
    let mut csr = Csr::default();
    let mut row = Vec::new();
    for node in inverse(places) {
        rows.row(node, &mut row);
        row.iter_mut().for_each(|to| *to = places[*to as usize]);
        row.sort_unstable();
        csr.push(&row);
    }
    Ok(csr)
}

/// From places of nodes to nodes at places, and back.
fn inverse(places: &[Node]) -> Vec<Node> {
    let mut nodes = vec![0; places.len()];
    for (node, &place) in places.iter().enumerate() {
        nodes[place as usize] = node as Node;
    }
    nodes
}

/// Bits that the gaps of all rows take if each takes the logarithm of itself, the first against the node itself with a sign. A coder that
/// copies rows from each other takes far fewer; but what is shorter here is mostly shorter there.
pub fn gap_bits(rows: &dyn Rows) -> f64 {
    let mut bits = 0.0;
    rows.scan_all(&mut |node, row| bits += row_bits(node, row));
    bits
}

/// The same for nodes at new places, without making the graph.
fn gap_bits_at(rows: &dyn Rows, places: &[Node]) -> f64 {
    let mut bits = 0.0;
    let mut moved = Vec::new();
    rows.scan_all(&mut |node, row| {
        moved.clear();
        moved.extend(row.iter().map(|&to| places[to as usize]));
        moved.sort_unstable();
        bits += row_bits(places[node as usize], &moved);
    });
    bits
}

fn row_bits(node: Node, row: &[Node]) -> f64 {
    let first = row.first().map_or(0.0, |&to| (1.0 + 2.0 * f64::from(to.abs_diff(node))).log2());
    first + row.windows(2).map(|pair| f64::from(pair[1] - pair[0]).log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::algo::model;

    /// Clusters of 20 whose nodes link to most of their cluster; numbered as they come, or scattered.
    fn clusters(count: Node, scattered: bool) -> Csr {
        let nodes = count * 20;
        let mut chance = Chance(9);
        let mut names: Vec<Node> = (0..nodes).collect();
        for n in (1..nodes as usize).rev() {
            if scattered {
                names.swap(n, chance.below(n as u64 + 1) as usize);
            }
        }
        let mut arcs = Vec::new();
        for node in 0..nodes {
            for _ in 0..15 {
                let to = node / 20 * 20 + chance.below(20) as Node;
                arcs.push((names[node as usize], names[to as usize]));
            }
            if chance.below(10) == 0 {
                arcs.push((names[node as usize], names[chance.below(u64::from(nodes)) as usize]));
            }
        }
        Csr::from_arcs(nodes, arcs)
    }

    #[test]
    fn scattered_clusters_are_found_again() {
        let (tidy, scattered) = (clusters(100, false), clusters(100, true));
        let both = symmetric(&scattered, &scattered.transposed());
        let llp = Llp { threads: 1, ..Llp::default() };
        let places = llp.places(&both);
        assert_eq!(places, Llp { threads: 2, ..Llp::default() }.places(&both));
        let bits = |graph: &Csr| gap_bits(graph) / graph.arcs() as f64;
        let ordered = permuted(&scattered, &places).expect("an order");
        assert!(bits(&scattered) > 5.0, "{}", bits(&scattered));
        assert!(bits(&ordered) < 1.05 * bits(&tidy), "{} {}", bits(&ordered), bits(&tidy));
        let breadth = permuted(&scattered, &breadth_first(&both)).expect("an order");
        assert!(bits(&breadth) < bits(&scattered));
    }

    #[test]
    fn orders_of_small_graphs() {
        let graph = Csr::from_arcs(4, vec![(0, 3), (3, 1), (2, 2)]);
        assert_eq!(breadth_first(&graph), [0, 2, 3, 1]);
        assert_eq!(layered(&[0, 1, 2, 3], &[2, 0, 2, 0]), [0, 2, 1, 3]);
        assert_eq!(symmetric(&graph, &graph.transposed()), Csr::from_arcs(4, vec![(0, 3), (3, 0), (3, 1), (1, 3)]));
        assert_eq!(gap_bits(&Csr::from_arcs(2, vec![(0, 0), (0, 1), (1, 0)])), 3f64.log2());
        for wrong in [&[0, 1, 2][..], &[0, 1, 2, 4], &[0, 1, 2, 2]] {
            assert!(permuted(&graph, wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn every_order_keeps_the_graph(graph in model::graph(30, 90), seed: u64) {
            let both = symmetric(&graph, &graph.transposed());
            prop_assert_eq!(&both.transposed(), &both);
            let llp = Llp { seed, threads: 1, ..Llp::default() };
            for places in [llp.places(&both), breadth_first(&graph)] {
                let moved = permuted(&graph, &places).expect("a permutation");
                let arcs: Vec<(Node, Node)> = (0..graph.nodes())
                    .flat_map(|v| graph.successors(v).iter().map(move |&w| (v, w)))
                    .map(|(v, w)| (places[v as usize], places[w as usize]))
                    .collect();
                prop_assert_eq!(&moved, &Csr::from_arcs(graph.nodes(), arcs));
                prop_assert!((gap_bits(&moved) - gap_bits_at(&graph, &places)).abs() < 1e-9);
                prop_assert_eq!(permuted(&moved, &inverse(&places)).expect("a permutation"), graph.clone());
            }
        }
    }
}
