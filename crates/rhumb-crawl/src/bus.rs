//! The bus hands URLs to the node that owns their hosts (SPEC D1).
//!
//! On one machine there is one node and the bus is a buffer in memory. A cluster brings another implementation of
//! [`Bus`] and changes nothing else.

use rhumb_core::handover::Batch;
use rhumb_core::splitter::PartitionMap;

/// Carries URLs between nodes. What is received may come twice; the sieve does not mind.
pub trait Bus: Send {
    /// Passes on URLs found by this node.
    fn send(&mut self, found: &mut Batch);
    /// URLs whose hosts this node owns.
    fn receive(&mut self, into: &mut Batch) -> bool;
}

/// One node that owns every host.
pub struct LocalBus {
    map: PartitionMap,
    waiting: Batch,
}

impl LocalBus {
    /// The bus of a crawl on one machine.
    pub fn new() -> LocalBus {
        LocalBus { map: PartitionMap::new(vec!["local".to_string()]), waiting: Batch::default() }
    }
}

impl Default for LocalBus {
    fn default() -> Self {
        LocalBus::new()
    }
}

impl Bus for LocalBus {
    fn send(&mut self, found: &mut Batch) {
        assert!(self.map.is_single(), "a local bus has one node");
        if self.waiting.is_empty() {
            std::mem::swap(&mut self.waiting, found);
        } else {
            self.waiting.append(found);
        }
        found.clear();
    }

    fn receive(&mut self, into: &mut Batch) -> bool {
        into.clear();
        std::mem::swap(&mut self.waiting, into);
        !into.is_empty()
    }
}
