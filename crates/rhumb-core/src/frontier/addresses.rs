//! Connections per address: many hosts may live behind one (shared hosting, a CDN), and it must not feel
//! them all at once.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Open connections by address, and who waits for one to close.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    limit: u32,
    in_use: BTreeMap<IpAddr, Use>,
}

#[derive(Debug, Default)]
struct Use {
    open: u32,
    waiting: VecDeque<u32>,
    /// Hosts whose connection is idle.
    idle: Vec<u64>,
}

impl Addresses {
    /// At most `limit` connections to one address; 0 means no limit.
    pub fn new(limit: u32) -> Addresses {
        Addresses { limit, in_use: BTreeMap::new() }
    }

    /// Counts a new connection, or says that there is no room.
    pub fn try_open(&mut self, address: IpAddr) -> bool {
        if self.limit == 0 {
            return true;
        }
        let entry = self.in_use.entry(address).or_default();
        if entry.open >= self.limit {
            return false;
        }
        entry.open += 1;
        true
    }

    /// Back queue `slot` waits until a connection to `address` closes.
    pub fn wait(&mut self, address: IpAddr, slot: u32) {
        self.in_use.entry(address).or_default().waiting.push_back(slot);
    }

    /// A connection is gone; ask [`Addresses::next_waiting`] who may try now.
    pub fn closed(&mut self, address: IpAddr) {
        if let Some(entry) = self.in_use.get_mut(&address) {
            entry.open = entry.open.saturating_sub(1);
        }
    }

    /// The back queue that may try now, if there is room and one waits. Also to be called when a woken back
    /// queue turns out to need no connection, so that its turn goes to the next.
    pub fn next_waiting(&mut self, address: IpAddr) -> Option<u32> {
        let entry = self.in_use.get_mut(&address)?;
        let next = if entry.open < self.limit { entry.waiting.pop_front() } else { None };
        if entry.open == 0 && entry.waiting.is_empty() {
            self.in_use.remove(&address);
        }
        next
    }

    /// Remembers that a host keeps an idle connection to `address`.
    pub fn idle(&mut self, address: IpAddr, host: u64) {
        if let Some(entry) = self.in_use.get_mut(&address) {
            entry.idle.push(host);
        }
    }

    /// The host's connection is in use again, or closed.
    pub fn not_idle(&mut self, address: IpAddr, host: u64) {
        if let Some(entry) = self.in_use.get_mut(&address) {
            entry.idle.retain(|h| *h != host);
        }
    }

    /// A host that has an idle connection to `address`.
    pub fn take_idle(&mut self, address: IpAddr) -> Option<u64> {
        self.in_use.get_mut(&address)?.idle.pop()
    }

    /// Whether back queues wait for a connection to this address to close.
    pub fn is_wanted(&self, address: IpAddr) -> bool {
        self.in_use.get(&address).is_some_and(|u| !u.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_waiters_are_woken_in_order() {
        let a = IpAddr::from([192, 0, 2, 1]);
        let mut addresses = Addresses::new(2);
        assert!(addresses.try_open(a) && addresses.try_open(a) && !addresses.try_open(a));
        addresses.wait(a, 7);
        addresses.wait(a, 8);
        let close = |addresses: &mut Addresses| {
            addresses.closed(a);
            addresses.next_waiting(a)
        };
        assert_eq!(close(&mut addresses), Some(7));
        assert!(addresses.try_open(a) && !addresses.try_open(a));
        assert_eq!(close(&mut addresses), Some(8));
        assert_eq!(close(&mut addresses), None);
        assert!(addresses.in_use.is_empty());
    }
}
