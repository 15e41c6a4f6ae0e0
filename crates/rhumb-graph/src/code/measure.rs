//! How fast a compressed graph is read, in processor time.

use std::hint::black_box;
use std::time::Duration;

use super::{Coded, Scratch};
use crate::rows::{Node, Rows};

/// Random rows that are asked for in one go.
const ROWS: u32 = 200_000;
/// Each figure is the best of so many goes, so that what else the machine does counts little.
const GOES: usize = 3;

/// What reading costs; 0 if there are no arcs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Nanoseconds for an arc when all rows are read in order.
    pub sequential_ns_per_arc: f64,
    /// Nanoseconds for an arc when rows of random nodes are asked for: all time by all arcs.
    pub random_ns_per_arc: f64,
}

/// Reads all rows in order, and rows of random nodes; the same ones for the same seed.
pub fn measure(graph: &Coded, seed: u64) -> Measured {
    let mut best = Measured { sequential_ns_per_arc: f64::INFINITY, random_ns_per_arc: f64::INFINITY };
    if graph.arcs() == 0 {
        return Measured::default();
    }
    let (mut row, mut scratch) = (Vec::new(), Scratch::default());
    for _ in 0..GOES {
        let begin = processor_time();
        let mut arcs = 0;
        graph.scan_all(&mut |_, row| arcs += black_box(row).len() as u64);
        best.sequential_ns_per_arc = best.sequential_ns_per_arc.min(per_arc(begin, arcs));

        let mut state = seed;
        let begin = processor_time();
        let mut arcs = 0;
        for _ in 0..ROWS {
            // Knuth's linear congruential generator; its upper half is random enough to choose nodes.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let node = ((state >> 32) * u64::from(graph.nodes())) >> 32;
            graph.row_with(node as Node, &mut row, &mut scratch);
            arcs += black_box(&row).len() as u64;
        }
        best.random_ns_per_arc = best.random_ns_per_arc.min(per_arc(begin, arcs));
    }
    best
}

fn per_arc(begin: Duration, arcs: u64) -> f64 {
    processor_time().saturating_sub(begin).as_nanos() as f64 / arcs.max(1) as f64
}

/// What this thread has taken of a processor.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rhumb_store::disk::{Overlay, RealDisk};

    use super::super::{CodeOptions, CodeWriter};
    use super::*;

    #[test]
    fn something_is_measured() {
        let disk = Overlay::new(RealDisk::new(Path::new("/nowhere")));
        for (row, name) in [(&[0, 2][..], "some"), (&[], "none")] {
            let mut writer = CodeWriter::create(&*disk, name, 3, CodeOptions::default()).expect("created");
            writer.push(row).expect("pushed");
            writer.finish().expect("finished");
            let measured = measure(&Coded::open(&*disk, name).expect("opened"), 1);
            assert_eq!(measured.random_ns_per_arc > 0.0, !row.is_empty());
            assert_eq!(measured.sequential_ns_per_arc > 0.0, !row.is_empty());
        }
    }
}
