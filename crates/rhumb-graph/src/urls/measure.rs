//! What the table costs in processor time.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use super::Urls;
use crate::rows::Node;

const PROBES: u64 = 200_000;

/// Nanoseconds of processor time, each on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// From a key to its node, keys of random nodes.
    pub find_ns: f64,
    /// From a random node to its key.
    pub get_ns: f64,
    /// Key after key in order.
    pub scan_ns: f64,
}

/// Measures look-ups of random nodes and a scan of the table. All zero for a table without URLs.
pub fn measure(urls: &Urls, seed: u64) -> Measured {
    if urls.len() == 0 {
        return Measured::default();
    }
    let mut state = seed;
    let nodes: Vec<Node> = (0..PROBES).map(|_| (next(&mut state) % u64::from(urls.len())) as Node).collect();
    let mut key = Vec::new();
    let from = cpu_ns();
    for &node in &nodes {
        urls.get(node, &mut key);
        black_box(&key);
    }
    let get_ns = cpu_ns() - from;

    let (mut keys, mut ends) = (Vec::new(), Vec::new());
    for &node in &nodes {
        urls.get(node, &mut key);
        keys.extend_from_slice(&key);
        ends.push(keys.len());
    }
    let from = cpu_ns();
    let mut start = 0;
    for &end in &ends {
        black_box(urls.find(&keys[start..end]));
        start = end;
    }
    let find_ns = cpu_ns() - from;

    let from = cpu_ns();
    let mut scanned = 0u64;
    while scanned < PROBES {
        let mut scan = urls.scan(0);
        while let Some(key) = scan.next() {
            black_box(key);
            scanned += 1;
        }
    }
    let scan_ns = cpu_ns() - from;
    let each = |ns: u64, count: u64| ns as f64 / count as f64;
    Measured { find_ns: each(find_ns, PROBES), get_ns: each(get_ns, PROBES), scan_ns: each(scan_ns, scanned) }
}

/// Processor time of this thread so far.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The next of a sequence of numbers without pattern (SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
