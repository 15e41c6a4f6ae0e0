//! The host splitter: which partition owns a host, and which node owns a partition (SPEC D1, D2).
//!
//! Hosts hash to a fixed number of partitions; partitions go to nodes by rendezvous hashing (the node with
//! the highest hash of partition and node name wins), so that a node that comes or goes moves only its own share.
//! On one machine there is one node, which owns all.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::url::Host;

/// Partitions of the host space; fixed for the life of a crawl.
pub const PARTITIONS: u32 = 4096;

/// The partition of a host. Scheme and port do not count: http and https of one name stay together.
pub fn partition(host: &Host) -> u32 {
    (xxh3_64(host.name().as_bytes()) % u64::from(PARTITIONS)) as u32
}

/// Who owns what.
#[derive(Clone, Debug)]
pub struct PartitionMap {
    nodes: Vec<String>,
    owner: Vec<u16>,
}

impl PartitionMap {
    /// A map over the given nodes, of which there is at least one.
    pub fn new(nodes: Vec<String>) -> PartitionMap {
        assert!(!nodes.is_empty() && nodes.len() <= usize::from(u16::MAX), "a crawl has at least one node");
        let weight = |partition: u32, node: &String| xxh3_64_with_seed(node.as_bytes(), u64::from(partition));
        let best = |p: u32| (0..nodes.len()).max_by_key(|&n| weight(p, &nodes[n])).unwrap_or(0) as u16;
        PartitionMap { owner: (0..PARTITIONS).map(best).collect(), nodes }
    }

    /// The node that owns a host.
    pub fn owner(&self, host: &Host) -> &str {
        &self.nodes[usize::from(self.owner[partition(host) as usize])]
    }

    /// Whether one node owns everything, so that nothing needs to be looked up.
    pub fn is_single(&self) -> bool {
        self.nodes.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_share_of_a_new_node_moves() {
        let nodes = |n: usize| (0..n).map(|i| format!("node-{i}")).collect::<Vec<_>>();
        let (four, five) = (PartitionMap::new(nodes(4)), PartitionMap::new(nodes(5)));
        let moved: Vec<usize> = (0..PARTITIONS as usize).filter(|&p| four.owner[p] != five.owner[p]).collect();
        assert!(moved.iter().all(|&p| five.owner[p] == 4), "what moves goes to the new node");
        let share = moved.len() as f64 / f64::from(PARTITIONS);
        assert!((share - 0.2).abs() < 0.03, "a fifth moves, {share} did");
        assert!(PartitionMap::new(nodes(1)).is_single());
    }
}
