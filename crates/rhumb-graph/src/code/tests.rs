//! What is read is what was written, whichever way it is asked for; and nonsense does not trip anything.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rhumb_store::disk::{Disk, Overlay, RealDisk};

use super::*;
use crate::rows::{Csr, Rows};

/// A disk in memory.
fn disk() -> Arc<dyn Disk> {
    Overlay::new(RealDisk::new(Path::new("/nowhere")))
}

fn write(graph: &Csr, options: &CodeOptions) -> (Arc<dyn Disk>, CodeStats) {
    let disk = disk();
    let mut writer = CodeWriter::create(&*disk, "g", graph.nodes(), options.clone()).expect("created");
    for node in 0..graph.nodes() {
        writer.push(graph.successors(node)).expect("pushed");
    }
    let stats = writer.finish().expect("finished");
    (disk, stats)
}

fn check(graph: &Csr, options: &CodeOptions) {
    let (disk, stats) = write(graph, options);
    let coded = Coded::open(&*disk, "g").expect("opened");
    assert_eq!((coded.nodes(), coded.arcs()), (graph.nodes(), graph.arcs()));
    assert!(Csr::of(&coded) == *graph, "all rows in order");
    let mut row = vec![7];
    for node in (0..graph.nodes()).rev() {
        coded.row(node, &mut row);
        assert_eq!(row, graph.successors(node), "row {node}");
        assert_eq!(coded.degree(node) as usize, row.len(), "degree of {node}");
    }
    for from in [0, 1, 3, graph.nodes() / 2, graph.nodes()] {
        let mut next = from;
        coded.scan(from, graph.nodes().saturating_sub(1), &mut |node, row| {
            assert_eq!((node, row), (next, graph.successors(node)), "from {from} on");
            next += 1;
        });
        assert_eq!(next, graph.nodes().saturating_sub(1).max(from));
    }
    for beyond in [graph.nodes(), Node::MAX] {
        coded.row(beyond, &mut row);
        assert_eq!((row.len(), coded.degree(beyond)), (0, 0));
    }
    assert_eq!(coded.stats(), stats);
    assert_eq!(stats.file_bytes, disk.read("g").expect("read").len() as u64);
    assert_eq!(stats.parts().iter().sum::<u64>(), stats.bits_links);
    let framing = stats.file_bytes * 8 - stats.bits_links - stats.bits_tables - stats.bits_offsets;
    assert!(framing <= 8 * (32 + 96 + stats.segments * (40 + 24)), "the rest is a directory: {framing} bits");
}

fn options(window: u8, chain_max: u8, segment_rows: Option<usize>) -> CodeOptions {
    CodeOptions { window, chain_max, segment_rows, ..CodeOptions::default() }
}

#[test]
fn small_graphs_and_extreme_ones() {
    let graph = |nodes: Node, arcs: &[(Node, Node)]| Csr::from_arcs(nodes, arcs.to_vec());
    let dense: Vec<(Node, Node)> = (0..60).flat_map(|a| (0..60).map(move |b| (a, b))).collect();
    let odd: Vec<(Node, Node)> = dense.iter().copied().filter(|(a, b)| (a ^ b) % 3 > 0 || *b > 40).collect();
    for graph in [
        Csr::default(),
        graph(1, &[]),
        graph(1, &[(0, 0)]),
        graph(2, &[(1, 0)]),
        graph(300, &[]),
        graph(300, &[(299, 299), (299, 0), (0, 299)]),
        graph(60, &dense),
        graph(61, &odd),
    ] {
        for options in [CodeOptions::default(), options(63, 32, Some(7)), options(1, 0, Some(1)), options(0, 3, None)] {
            check(&graph, &options);
        }
    }
    // Rows that were not given are empty.
    let disk = disk();
    let mut writer = CodeWriter::create(&*disk, "g", 1000, CodeOptions::default()).expect("created");
    writer.push(&[0, 999]).expect("pushed");
    writer.finish().expect("finished");
    let coded = Coded::open(&*disk, "g").expect("opened");
    assert_eq!(Csr::of(&coded), graph(1000, &[(0, 0), (0, 999)]));
}

/// Rows that resemble those before, as links of neighbouring pages do.
fn alike() -> impl Strategy<Value = Csr> {
    let edit = (0usize..8, 0u32..400, 0u32..12, any::<bool>());
    proptest::collection::vec((0usize..9, proptest::collection::vec(edit, 0..6)), 0..120).prop_map(|rows| {
        let nodes = rows.len() as Node;
        let mut all: Vec<Vec<Node>> = Vec::new();
        for (n, (back, edits)) in rows.into_iter().enumerate() {
            let mut row = if back > 0 && back <= n { all[n - back].clone() } else { Vec::new() };
            for (kind, at, len, own) in edits {
                match kind {
                    0..3 => row.extend((at..at + len).map(|s| s % nodes)),
                    3..5 => row.retain(|&s| s < at % nodes || s > at % nodes + len),
                    5 => row.clear(),
                    _ => row.push((n as Node + at % 5) % nodes),
                }
                if own {
                    row.push(n as Node);
                }
            }
            row.sort_unstable();
            row.dedup();
            all.push(row);
        }
        let mut graph = Csr::default();
        all.iter().for_each(|row| graph.push(row));
        graph
    })
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(
        graph in alike(),
        window in 0u8..20,
        chain_max in 0u8..6,
        segment_rows in proptest::option::of(1usize..50),
        fast in any::<bool>(),
        group in 0u8..20,
    ) {
        let effort = if fast { Effort::Fast } else { Effort::Best };
        check(&graph, &CodeOptions { window, chain_max, effort, group, segment_rows });
    }

    #[test]
    fn arcs_anywhere_are_read_as_well(
        arcs in proptest::collection::vec((0u32..200, 0u32..200), 0..400),
        segment_rows in proptest::option::of(20usize..150),
    ) {
        check(&Csr::from_arcs(200, arcs), &options(7, 3, segment_rows));
    }

    #[test]
    fn nonsense_does_not_trip(
        graph in alike(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        from_end in any::<bool>(),
    ) {
        let (disk, _) = write(&graph, &options(7, 3, Some(40)));
        let file = disk.read("g").expect("read");
        let mut content = file[16..file.len() - 16].to_vec();
        let len = content.len();
        for (at, byte) in damage {
            let at = if from_end { len - 1 - at.index(len.min(200)) } else { at.index(len) };
            content[at] = byte;
        }
        if let Ok(coded) = Coded::from_bytes(&content) {
            let nodes = coded.nodes();
            let mut row = Vec::new();
            for node in (0..nodes).rev().take(500) {
                coded.row(node, &mut row);
                prop_assert!(row.iter().all(|&s| s < nodes));
                coded.degree(node);
            }
            coded.scan(nodes / 3, nodes.min(1000), &mut |_, row| assert!(row.iter().all(|&s| s < nodes)));
        }
    }
}
