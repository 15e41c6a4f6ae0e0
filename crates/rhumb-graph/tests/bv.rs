//! Graphs of the WebGraph framework: what its Rust program (0.7.0) wrote is read, what is written here is what it writes, and
//! nothing that is broken is read.
//!
//! `data/bv/` has one graph of 60 nodes in four codings, and its rows in text.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rhumb_graph::bv::{BvOptions, Reader, write};
use rhumb_graph::{Csr, Node, Result, Rows};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bv").join(name)
}

fn read(basename: &Path) -> Result<Csr> {
    let mut reader = Reader::open(basename)?;
    let mut graph = Csr::default();
    while let Some(row) = reader.next_row()? {
        graph.push(row);
    }
    assert_eq!((graph.nodes(), graph.arcs()), (reader.nodes(), reader.arcs()));
    Ok(graph)
}

/// Puts a file in the place of another. One that is emptied and written again is waited for by some file systems.
fn put(path: PathBuf, bytes: &[u8]) {
    let _ = fs::remove_file(&path);
    fs::write(path, bytes).expect("written");
}

/// The one line that says what is wrong; the directory is left out.
fn complaint(basename: &Path) -> String {
    let text = read(basename).expect_err("refused").to_string();
    assert!(!text.contains('\n'), "{text}");
    text.replace(&format!("{}/", basename.parent().expect("a directory").display()), "")
}

fn expected() -> Csr {
    let mut graph = Csr::default();
    for line in fs::read_to_string(data("rows.txt")).expect("read").lines() {
        let (_, row) = line.split_once(':').expect("a node and its row");
        let row: Vec<Node> = row.split_whitespace().map(|n| n.parse().expect("a node")).collect();
        graph.push(&row);
    }
    graph
}

#[test]
fn graphs_of_the_other_program_are_read() {
    for name in ["default", "delta", "zeta5", "little"] {
        assert_eq!(read(&data(name)).unwrap_or_else(|e| panic!("{name}: {e}")), expected(), "{name}");
    }
}

#[test]
fn the_same_bits_are_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let ours = dir.path().join("a.b");
    let stats = write(&ours, &expected(), BvOptions::default()).expect("written");
    for extension in ["graph", "offsets"] {
        let ours = fs::read(dir.path().join(format!("a.b.{extension}"))).expect("read");
        assert_eq!(ours, fs::read(data(&format!("default.{extension}"))).expect("read"), "{extension}");
    }
    let theirs = fs::read_to_string(data("default.properties")).expect("read");
    assert!(theirs.contains(&format!("length={}\n", stats.graph_bits)));
    let other = BvOptions { window: 16, references_max: 1000, interval_min: 2, zeta: 5 };
    write(&ours, &expected(), other).expect("written");
    assert_eq!(fs::read(dir.path().join("a.b.graph")).expect("read"), fs::read(data("zeta5.graph")).expect("read"));
    let properties = fs::read_to_string(dir.path().join("a.b.properties")).expect("read");
    for line in
        ["version=0", "nodes=60", "windowsize=16", "minintervallength=2", "zetak=5", "compressionflags=RESIDUALS_ZETA"]
    {
        assert!(properties.lines().any(|l| l == line), "{line} in {properties}");
    }
}

#[test]
fn a_graph_that_is_cut_or_promises_something_else_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = dir.path().join("g");
    let put = |graph: &[u8], properties: &str| {
        put(dir.path().join("g.graph"), graph);
        put(dir.path().join("g.properties"), properties.as_bytes());
    };
    let whole = fs::read(data("default.graph")).expect("read");
    let properties = fs::read_to_string(data("default.properties")).expect("read");
    // The last seven bytes may be padding.
    for len in 0..whole.len() - 8 {
        put(&whole[..len], &properties);
        complaint(&base);
    }
    put(&whole[..100], &properties);
    assert_eq!(complaint(&base), "g.graph: node 29, bit 800: the file ends within the row that begins at bit 800");
    put(&whole[..4], &properties);
    assert_eq!(complaint(&base), "g.graph: the properties promise 60 nodes, which 4 bytes cannot hold");
    put(&whole, &properties.replace("arcs=395", "arcs=396"));
    assert_eq!(complaint(&base), "g.graph: the graph has 395 arcs, its properties promise 396");
    put(&whole, &properties.replace("arcs=395", "arcs=394"));
    assert!(complaint(&base).contains("more arcs than the 394 that the properties promise"));
    put(&whole, &properties.replace("nodes=60", "nodes=59"));
    assert_eq!(complaint(&base), "g.graph: node 1, bit 71: a successor out of range: the graph has 59 nodes");
    put(&[0; 64], &properties);
    assert_eq!(complaint(&base), "g.graph: node 0, bit 512: the file ends within the row that begins at bit 0");
    fs::remove_file(dir.path().join("g.graph")).expect("removed");
    assert!(complaint(&base).starts_with("g.graph: cannot be opened: "));
    fs::remove_file(dir.path().join("g.properties")).expect("removed");
    assert!(complaint(&base).starts_with("g.properties: cannot be opened: "));
}

/// Bits, most significant first, as a graph of `nodes` nodes and many arcs.
fn graph_of_bits(dir: &Path, nodes: u32, bits: &str) -> PathBuf {
    let mut bytes: Vec<u8> = Vec::new();
    for (n, bit) in bits.bytes().filter(|b| *b != b' ').enumerate() {
        if n % 8 == 0 {
            bytes.push(0);
        }
        bytes[n / 8] |= (bit - b'0') << (7 - n % 8);
    }
    fs::write(dir.join("h.graph"), bytes).expect("written");
    let arcs = nodes * nodes;
    let properties = format!("nodes={nodes}\narcs={arcs}\nwindowsize=7\nminintervallength=4\n");
    fs::write(dir.join("h.properties"), properties).expect("written");
    dir.join("h")
}

#[test]
fn impossible_rows_are_refused_where_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    for (nodes, bits, message) in [
        // Seven successors of five nodes.
        (5, "0001000", "node 0, bit 7: 7 successors, but the graph has 5 nodes"),
        // One successor, copied from the node before the first.
        (5, "010 01", "node 0, bit 5: copied from 1 nodes before, of which 0 can be"),
        // One successor, no reference, no interval, residual folded: -1.
        (5, "010 1 1 1010", "node 0, bit 9: a successor out of range: the graph has 5 nodes"),
        // Two successors: 1, and 5 more than the next.
        (3, "011 1 1 1011 1110", "node 0, bit 13: a successor out of range: the graph has 3 nodes"),
        // One successor, an interval of four.
        (9, "010 1 010 1 1", "node 0, bit 9: an interval of 4 successors, where 1 are left"),
        // Node 0 has successor 0; node 1 copies 0 and has residual -1 folded: 0 again.
        (5, "010 1 1 100   011 01 1 1 1010", "node 1, bit 19: a successor is there twice"),
        // Node 1 copies a block of two of a row of one.
        (5, "010 1 1 100   010 01 010 011", "node 1, bit 19: block 0 goes beyond the row it is copied from"),
        // A γ number of 50 bits.
        (
            5,
            &format!("{}1{}", "0".repeat(50), "1".repeat(60)),
            "node 0, bit 51: a number here is larger than any in a graph",
        ),
    ] {
        let base = graph_of_bits(dir.path(), nodes, bits);
        assert_eq!(complaint(&base), format!("h.graph: {message}"), "{bits}");
    }
}

#[test]
fn no_flipped_bit_does_harm() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = dir.path().join("g");
    for name in ["default", "delta", "little"] {
        fs::copy(data(&format!("{name}.properties")), dir.path().join("g.properties")).expect("copied");
        let whole = fs::read(data(&format!("{name}.graph"))).expect("read");
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            put(dir.path().join("g.graph"), &flipped);
            // There are no checksums: another graph is possible, one with rows that are none is not.
            if let Ok(graph) = read(&base) {
                graph.scan_all(&mut |_, row| assert!(row.is_sorted_by(|a, b| a < b) && row.iter().all(|&n| n < 60)));
            }
        }
    }
}

fn graphs() -> impl Strategy<Value = Csr> {
    let arc = (0..120u32, prop_oneof![0..120u32, 0..20u32], 1..8u32);
    (120..140u32, prop::collection::vec(arc, 0..300)).prop_map(|(nodes, seeds)| {
        let runs = seeds.iter().flat_map(|&(from, to, len)| (to..to + len).map(move |to| (from, to)));
        Csr::from_arcs(nodes, runs.filter(|&(_, to)| to < nodes).collect())
    })
}

const CODES: [&str; 12] =
    ["UNARY", "GAMMA", "DELTA", "ZETA", "ZETA1", "ZETA7", "NIBBLE", "GOLOMB", "PI1", "PI4", "OMEGA", "ZETA2"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the bits are and whatever they are said to mean: rows, and then the end or one line.
    #[test]
    fn any_bytes_are_rows_or_refused(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xFF), Just(0)], 1..400),
        codes in prop::collection::vec(0..CODES.len(), 6),
        (window, interval_min, zeta, nodes) in (0..9u32, 0..5u32, 1..17u32, 1..800u32),
        little in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("g.graph"), &bytes).expect("written");
        let flags: Vec<String> = ["OUTDEGREES", "REFERENCES", "BLOCK_COUNT", "BLOCKS", "INTERVALS", "RESIDUALS"]
            .iter()
            .zip(codes)
            .map(|(what, code)| format!("{what}_{}", CODES[code]))
            .collect();
        let properties = format!(
            "nodes={nodes}\narcs={}\nwindowsize={window}\nminintervallength={interval_min}\nzetak={zeta}\n\
             endianness={}\ncompressionflags={}\n",
            u64::from(nodes) * u64::from(nodes),
            if little { "little" } else { "big" },
            flags.join("|"),
        );
        fs::write(dir.path().join("g.properties"), properties).expect("written");
        if let Ok(mut reader) = Reader::open(&dir.path().join("g")) {
            loop {
                match reader.next_row() {
                    Ok(Some(row)) => prop_assert!(row.is_sorted_by(|a, b| a < b) && row.iter().all(|&n| n < nodes)),
                    Ok(None) => break,
                    Err(error) => {
                        prop_assert!(!error.to_string().contains('\n'));
                        prop_assert!(reader.next_row().is_err());
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn every_graph_comes_back(graph in graphs(), window in 0..9u32, references_max in 0..4u32, interval_min in 0..5u32, zeta in 1..8u32) {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().join("g");
        let stats = write(&base, &graph, BvOptions { window, references_max, interval_min, zeta }).expect("written");
        prop_assert_eq!((stats.nodes, stats.arcs), (graph.nodes(), graph.arcs()));
        prop_assert_eq!(read(&base).expect("read"), graph);
    }
}
