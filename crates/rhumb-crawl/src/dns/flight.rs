//! A name on its way: what the driver keeps for each.
//!
//! Some 300 bytes, the name included, for the time of the search. Read next: `outcome.rs`, what it leaves behind.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::outcome::Part;
use super::wire::WireName;
use super::{DnsError, Known};

/// One family of one flight.
pub(super) type QueryKey = (u32, usize);

pub(super) struct Flight {
    pub(super) name: Arc<str>,
    pub(super) waiters: Vec<oneshot::Sender<Known>>,
    pub(super) queries: [Option<Query>; 2],
}

pub(super) struct Query {
    pub(super) target: WireName,
    pub(super) links: u8,
    /// The smallest TTL of the aliases that led to `target`.
    pub(super) chain_ttl_s: u32,
    pub(super) attempt: usize,
    pub(super) deadline_ms: Option<u64>,
    pub(super) in_window: bool,
    pub(super) edns: bool,
    pub(super) routes: Vec<Route>,
    pub(super) failed_servers: u32,
    pub(super) last_failure: Option<DnsError>,
    pub(super) part: Option<Part>,
}

#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) socket: u16,
    pub(super) id: u16,
}

impl Route {
    pub(super) fn key(self) -> u32 {
        u32::from(self.socket) << 16 | u32::from(self.id)
    }
}

impl Query {
    pub(super) fn new(target: WireName) -> Query {
        Query {
            target,
            links: 0,
            chain_ttl_s: u32::MAX,
            attempt: 0,
            deadline_ms: None,
            in_window: false,
            edns: true,
            routes: Vec::new(),
            failed_servers: 0,
            last_failure: None,
            part: None,
        }
    }
}

/// For keys that are our own random or serial numbers: hashing them again gains nothing.
#[derive(Default)]
pub(super) struct PlainHasher(u64);

pub(super) type Plain = BuildHasherDefault<PlainHasher>;

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The table takes its bucket from the low bits and its tag from the high ones: both must vary.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
