//! What import and export cost, on graphs that are made here; not run unless asked for:
//!
//! `cargo test --release -p rhumb-graph --test speed -- --ignored --nocapture --test-threads 1`

use std::io::{Cursor, Read};
use std::time::Instant;

use rhumb_graph::bv::{BvOptions, Reader, write};
use rhumb_graph::edges::{EdgeOptions, GraphSink, build_from};
use rhumb_graph::sort::{ArcSorter, KeySorter};
use rhumb_graph::{Csr, Node, Result, Rows};
use rhumb_store::disk::RealDisk;

const MEMORY_BYTES: usize = 256 << 20;

/// Processor time of this thread where the system tells it, of which other programs take nothing; else time.
struct Clock(Instant, Option<f64>);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now(), Clock::cpu_ns())
    }

    fn cpu_ns() -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn report(&self, what: &str, count: u64) {
        let ns = match (self.1, Clock::cpu_ns()) {
            (Some(start), Some(end)) => end - start,
            _ => self.0.elapsed().as_nanos() as f64,
        };
        println!("{what}: {:.1} ns each of {count}", ns / count as f64);
    }
}

/// Arcs of a web: of eight, seven lead nearby, at all scales, and one to a node that many lead to.
struct Web {
    state: u64,
    nodes: u64,
}

impl Web {
    fn new(nodes: u64) -> Web {
        Web { state: 88_172_645_463_325_252, nodes }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn arc(&mut self) -> (Node, Node) {
        let choice = self.random();
        let from = (choice >> 20) % self.nodes;
        let to = if choice.is_multiple_of(8) {
            let part = (self.random() >> 11) as f64 / (1u64 << 53) as f64;
            (part.powi(3) * self.nodes as f64) as u64
        } else {
            let reach = 1 << (self.random() % 14);
            (from + (self.random() >> 7) % (2 * reach)).saturating_sub(reach).min(self.nodes - 1)
        };
        (from as Node, to as Node)
    }
}

#[test]
#[ignore = "a measurement"]
fn sorting_a_hundred_million_arcs() {
    let dir = tempfile::tempdir().expect("a directory");
    let count = 100_000_000;
    let mut web = Web::new(count / 12);
    let clock = Clock::start();
    let mut sorter = ArcSorter::new(RealDisk::new(dir.path()), "tmp-", MEMORY_BYTES);
    for _ in 0..count {
        let (from, to) = web.arc();
        sorter.push(from, to).expect("taken");
    }
    let mut sorted = sorter.finish().expect("sorted");
    let mut different = 0u64;
    while sorted.next_arc().expect("an arc").is_some() {
        different += 1;
    }
    clock.report("make and sort an arc", count);
    assert!(different > count / 2);
}

#[test]
#[ignore = "a measurement"]
fn sorting_twenty_million_keys() {
    let dir = tempfile::tempdir().expect("a directory");
    let count = 20_000_000;
    let mut web = Web::new(5000);
    let clock = Clock::start();
    let mut sorter = KeySorter::new(RealDisk::new(dir.path()), "tmp-", MEMORY_BYTES);
    for number in 0..count {
        let n = web.random();
        let host = n % 5000;
        let key = format!(
            "com,example{host},www)https/section-{}/articles/title-{}/{:x}",
            n >> 32 & 63,
            n >> 40 & 255,
            n >> 44
        );
        sorter.push(key.as_bytes(), number).expect("taken");
    }
    let mut sorted = sorter.finish().expect("sorted");
    let mut found = 0;
    while sorted.next().expect("a key").is_some() {
        found += 1;
    }
    clock.report("make and sort a key", count);
    assert_eq!(found, count);
}

/// A list in text, made as it is read.
struct List {
    web: Web,
    left: u64,
    text: Cursor<Vec<u8>>,
}

impl Read for List {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.text.position() == self.text.get_ref().len() as u64 {
            let lines = self.left.min(10_000);
            self.left -= lines;
            let text: String = (0..lines).map(|_| self.web.arc()).map(|(from, to)| format!("{from} {to}\n")).collect();
            self.text = Cursor::new(text.into_bytes());
        }
        self.text.read(into)
    }
}

#[derive(Default)]
struct Counts(u64, u64);

impl GraphSink for Counts {
    fn key(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Node]) -> Result<()> {
        self.0 += row.len() as u64;
        Ok(())
    }

    fn transposed_row(&mut self, row: &[Node]) -> Result<()> {
        self.1 += row.len() as u64;
        Ok(())
    }
}

#[test]
#[ignore = "a measurement"]
fn a_list_of_a_hundred_million_arcs() {
    let dir = tempfile::tempdir().expect("a directory");
    let count = 100_000_000;
    let options = EdgeOptions { disk: RealDisk::new(dir.path()), prefix: "tmp-".into(), memory_bytes: MEMORY_BYTES };
    let list = List { web: Web::new(count / 12), left: count, text: Cursor::default() };
    let mut counts = Counts::default();
    let clock = Clock::start();
    let stats = build_from("list", Box::new(list), &|url| Ok(url.into()), &options, &mut counts).expect("built");
    clock.report("make, read and sort an arc both ways", count);
    assert_eq!((counts.0, counts.1), (stats.arcs, stats.arcs));
}

#[test]
#[ignore = "a measurement"]
fn a_bv_graph_there_and_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut web = Web::new(1 << 18);
    let graph = Csr::from_arcs(1 << 18, (0..4_000_000).map(|_| web.arc()).collect());
    let clock = Clock::start();
    let stats = write(&dir.path().join("g"), &graph, BvOptions::default()).expect("written");
    clock.report("write an arc", stats.arcs);
    let clock = Clock::start();
    let mut reader = Reader::open(&dir.path().join("g")).expect("opened");
    let mut arcs = 0;
    while let Some(row) = reader.next_row().expect("a row") {
        arcs += row.len() as u64;
    }
    clock.report("read an arc", arcs);
    assert_eq!(arcs, graph.arcs());
}
