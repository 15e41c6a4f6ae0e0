//! How `--memory` is divided.
//!
//! One setting bounds everything that grows with a crawl. Each part gets a share and keeps to it by itself: it moves to disk,
//! forgets, or makes others wait. What is not in here (code, stacks, sockets, the allocator's slack) does not grow.

use crate::units::Size;

/// The least that can be divided. The program itself takes some 32 MiB, so that less than that only means more work for the disk.
pub const BYTES_MIN: u64 = 1 << 20;

/// Bytes for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// URL-seen: Bloom filter, keys not yet on disk, the batch being checked, recent URLs.
    pub sieve: usize,
    /// Back queues, hosts in play, the table of the others.
    pub frontier: usize,
    /// Bodies on their way from the network to archive and log; more have to wait.
    pub pages: usize,
    /// Connections kept open for a host's next page; the one idle for longest is closed.
    pub connections: usize,
    /// What sites said, and what is suspected of them; the oldest is forgotten.
    pub traps: usize,
    /// Digests of archived bodies, of which the oldest are forgotten; what pages say that is not yet on disk; hosts that may be mirrors.
    pub seen: usize,
    /// Links that are not on disk yet; then they become a level of the graph.
    pub graph: usize,
    /// Pages that are not in the text index on disk yet; then they become a part of it.
    pub index: usize,
    /// Addresses of hosts; the least used are forgotten.
    pub dns: usize,
    /// TLS sessions to take up again; the least used are forgotten.
    pub tls: usize,
}

impl Shares {
    /// The shares of a setting, in 32nds: 9, 7, 4, 2, 2, 1, 2, 3, 1, 1.
    pub fn of(memory: Size) -> Shares {
        let part = |n: u64| (memory.0 / 32 * n) as usize;
        Shares {
            sieve: part(9),
            frontier: part(7),
            pages: part(4),
            connections: part(2),
            seen: part(2),
            traps: part(1),
            graph: part(2),
            index: part(3),
            dns: part(1),
            tls: part(1),
        }
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        let parts = [
            ("sieve", self.sieve),
            ("frontier", self.frontier),
            ("pages", self.pages),
            ("idle connections", self.connections),
            ("content seen", self.seen),
            ("traps", self.traps),
            ("graph", self.graph),
            ("index", self.index),
            ("DNS", self.dns),
            ("TLS sessions", self.tls),
        ];
        let parts: Vec<String> = parts.iter().map(|(name, bytes)| format!("{name} {}", Size(*bytes as u64))).collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_given_away_and_no_more() {
        for memory in [BYTES_MIN, 256 << 20, 512 << 20, 64 << 30] {
            let s = Shares::of(Size(memory));
            let own = s.sieve + s.frontier + s.pages + s.connections + s.dns + s.tls;
            assert_eq!((own + s.seen + s.traps + s.graph + s.index) as u64, memory);
        }
        let expected = "sieve 144MiB, frontier 112MiB, pages 64MiB, idle connections 32MiB, content seen 32MiB, traps 16MiB, \
                        graph 32MiB, index 48MiB, DNS 16MiB, TLS sessions 16MiB";
        assert_eq!(Shares::of(Size(512 << 20)).describe(), expected);
    }
}
