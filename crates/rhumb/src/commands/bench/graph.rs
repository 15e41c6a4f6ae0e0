//! `rhumb bench graph` and `rhumb bench urls`: what a link and a URL cost, in bits and in processor time.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rhumb_core::url::Normalizer;
use rhumb_crawl::status;
use rhumb_graph::algo::order::{Llp, breadth_first, permuted, symmetric};
use rhumb_graph::algo::pagerank::PageRank;
use rhumb_graph::algo::{components, outdegrees, top};
use rhumb_graph::code::{self, CodeOptions, CodeWriter, Coded, Effort};
use rhumb_graph::edges::{self, EdgeOptions, GraphSink};
use rhumb_graph::key::key_of;
use rhumb_graph::level::{DIR, Level, LevelWriter};
use rhumb_graph::urls::{self, Urls, UrlsWriter};
use rhumb_graph::{Csr, GraphError, Node, Rows, bv};
use rhumb_sim::{OutlinkScratch, Web, WebConfig};
use rhumb_store::disk::{Disk, Overlay, RealDisk};
use serde_json::{Value, json};

use super::cpu_seconds;
use crate::commands::graph::build::{of_bv as of_bv_files, sorting_share};
use crate::usage;

/// Builds the level of a graph of others, and reads it back.
pub fn of_bv(basename: &Path, memory: usize, orders: bool, dir: &Path) -> Result<Value> {
    let disk = RealDisk::new(dir);
    let began = cpu_seconds();
    let level = of_bv_files(basename, &disk, 1, sorting_share(memory)).map_err(input)?;
    let build = cpu_seconds() - began;
    // Every arc again, from the file that was given and from ours.
    let mut reader = bv::Reader::open(basename).map_err(input)?;
    let mut given = Csr::default();
    while let Some(row) = reader.next_row().map_err(input)? {
        given.push(row);
    }
    if Csr::of(&level.out) != given || Csr::of(&level.into) != given.transposed() {
        bail!("not all arcs are equal after decoding: this is a fault in rhumb, please report it");
    }
    let mut figures = figures_of(&level, build);
    let began = cpu_seconds();
    let ranked = PageRank::default().compute(&level.into, &outdegrees(&level.out))?;
    figures["pagerank_cpu_s"] = json!(cpu_seconds() - began);
    let ranks = ranked.ranks.iter().enumerate().map(|(n, &r)| (n as Node, r));
    figures["pagerank_top"] = json!(top(ranks, 2));
    figures["strong_components"] = json!(components::strong(&level.out).count());
    if orders {
        let began = cpu_seconds();
        let llp = Llp::default().places(&symmetric(&level.out, &level.into));
        figures["llp_cpu_s"] = json!(cpu_seconds() - began);
        for (name, places) in [("llp", llp), ("breadth_first", breadth_first(&level.out))] {
            let turned = permuted(&given, &places)?;
            figures[format!("bits_per_link_{name}")] =
                json!([bits_of(&turned, &disk)?, bits_of(&turned.transposed(), &disk)?]);
        }
    }
    Ok(figures)
}

fn bits_of(rows: &Csr, disk: &Arc<dyn Disk>) -> Result<f64> {
    let mut writer = CodeWriter::create(&**disk, "other-order", rows.nodes(), CodeOptions::default())?;
    let mut pushed = Ok(());
    rows.scan_all(&mut |_, row| {
        if pushed.is_ok() {
            pushed = writer.push(row);
        }
    });
    pushed?;
    let bits = writer.finish()?.bits_per_link();
    disk.remove("other-order")?;
    Ok(bits)
}

fn figures_of(level: &Level, build_cpu_s: f64) -> Value {
    let (out, into) = (level.out.stats(), level.into.stats());
    let of = |rows: &Coded| {
        let measured = code::measure(rows, 1);
        json!({"random_ns_per_arc": measured.random_ns_per_arc, "sequential_ns_per_arc": measured.sequential_ns_per_arc})
    };
    json!({
        "nodes": out.nodes, "arcs": out.arcs,
        "bits_per_link": out.bits_per_link(), "bits_per_link_transposed": into.bits_per_link(),
        "bits_per_link_with_offsets": out.bits_per_link_with_offsets(),
        "bits_per_link_transposed_with_offsets": into.bits_per_link_with_offsets(),
        "forward": of(&level.out), "transposed": of(&level.into),
        "build_us_per_arc": build_cpu_s * 1e6 / out.arcs.max(1) as f64,
        "peak_rss_bytes": status::peak_rss_bytes(),
    })
}

/// Builds a graph that is made up, from text, with so much memory.
pub fn of_arcs(arcs: u64, memory: usize, dir: &Path) -> Result<Value> {
    let disk = RealDisk::new(dir);
    let options =
        EdgeOptions { disk: disk.clone(), prefix: format!("{DIR}/000001-"), memory_bytes: sorting_share(memory) };
    disk.make_dir(DIR)?;
    let mut spent = Made::new(arcs);
    let began = cpu_seconds();
    let mut buffer = vec![0; 1 << 16];
    while spent.read(&mut buffer).context("make arcs up")? > 0 {}
    let making = cpu_seconds() - began;
    let mut sink = Sink { disk, writer: None, rows: 0 };
    let began = cpu_seconds();
    let canonical = |_: &str| Err("these are numbers".to_string());
    edges::build_from("arcs that are made up", Box::new(Made::new(arcs)), &canonical, &options, &mut sink)
        .map_err(input)?;
    let level = sink.writer.take().context("there are arcs")?.finish()?;
    let mut figures = figures_of(&level, cpu_seconds() - began - making);
    figures["peak_rss_bytes"] = json!(status::peak_rss_bytes());
    figures["memory_bytes"] = json!(memory);
    Ok(figures)
}

/// A list of arcs as text, without end being kept anywhere: pages of sites, in blocks of neighbours, that link to their neighbours,
/// to the heads of their sites, and now and then far away, to few far more often than to others.
struct Made {
    arcs_left: u64,
    nodes: u64,
    from: u64,
    left_of_row: u64,
    state: u64,
    text: Vec<u8>,
    given: usize,
}

/// Arcs of a page, on average.
const DEGREE: u64 = 16;
/// Pages of a site.
const SITE: u64 = 200;

impl Made {
    fn new(arcs: u64) -> Made {
        let nodes = (arcs / DEGREE).max(2);
        Made { arcs_left: arcs, nodes, from: 0, left_of_row: 0, state: 1, text: Vec::new(), given: 0 }
    }

    fn chance(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    fn target(&mut self) -> u64 {
        let site = self.from / SITE * SITE;
        let to = match self.chance() % 20 {
            0..=7 => site + self.chance() % 12,
            8..=16 => self.from + self.chance() % 24,
            17 | 18 => site + self.chance() % SITE,
            // The square of a square: few nodes have most of the links.
            _ => {
                let part = self.chance() as f64 / (1u64 << 31) as f64;
                (part.powi(4) * self.nodes as f64) as u64
            }
        };
        to % self.nodes
    }
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.text.len() {
            self.text.clear();
            self.given = 0;
            while self.text.len() < 1 << 16 && self.arcs_left > 0 {
                if self.left_of_row == 0 {
                    // Pages come in the order a crawl meets them, not in that of nodes.
                    self.from = self.chance() % self.nodes;
                    self.left_of_row = 1 + self.chance() % (2 * DEGREE);
                }
                let to = self.target();
                put_decimal(self.from, &mut self.text);
                self.text.push(b'\t');
                put_decimal(to, &mut self.text);
                self.text.push(b'\n');
                self.left_of_row -= 1;
                self.arcs_left -= 1;
            }
        }
        let n = into.len().min(self.text.len() - self.given);
        into[..n].copy_from_slice(&self.text[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

fn put_decimal(number: u64, into: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break into.extend_from_slice(&digits[at..]);
        }
    }
}

struct Sink {
    disk: Arc<dyn Disk>,
    writer: Option<LevelWriter>,
    rows: Node,
}

impl Sink {
    fn writer(&mut self) -> Result<&mut LevelWriter, GraphError> {
        self.writer.as_mut().ok_or_else(|| GraphError::input("rows came before their number"))
    }
}

impl GraphSink for Sink {
    fn key(&mut self, _: &[u8]) -> Result<(), GraphError> {
        Err(GraphError::input("a list of numbers has no keys"))
    }

    fn rows_follow(&mut self, nodes: Node) -> Result<(), GraphError> {
        let mut writer = LevelWriter::create(self.disk.clone(), 1, false, u64::from(nodes), Effort::Best)?;
        writer.nameless(nodes);
        writer.begin_rows()?;
        (self.writer, self.rows) = (Some(writer), 0);
        Ok(())
    }

    fn row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        Ok(self.writer()?.row(row)?)
    }

    fn transposed_row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        if self.rows == 0 {
            self.writer()?.begin_transposed()?;
        }
        self.rows += 1;
        Ok(self.writer()?.row(row)?)
    }
}

/// The table of the URLs in a file.
pub fn urls_of_file(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).map_err(|e| usage(format!("cannot read {}: {e}", file.display())))?;
    let normalizer = Normalizer::default();
    let mut keys = BTreeSet::new();
    // What is too long or no URL at all would not be in a crawl's table either.
    for url in text.lines().filter_map(|line| normalizer.normalize(line.trim(), None).ok()) {
        keys.extend(key_of(url.as_str()));
    }
    urls_of(keys.into_iter())
}

/// The table of the URLs of the synthetic web, and of all that its pages link to.
pub fn urls_of_web(hosts: u64, pages: u64) -> Result<Value> {
    let web = Web::new(WebConfig { hosts, pages, ..WebConfig::default() }).context("make a web up")?;
    let mut scratch = OutlinkScratch::default();
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
    for host in 0..web.hosts() {
        for page in 0..web.pages_of(host) {
            keys.extend(key_of(&web.url(host, page)));
            web.outlinks(host, page, &mut scratch, |found| {
                keys.extend(key_of(found.url));
            });
        }
    }
    urls_of(keys.into_iter())
}

fn urls_of(keys: impl ExactSizeIterator<Item = Vec<u8>>) -> Result<Value> {
    let disk = Overlay::new(RealDisk::new(&std::env::temp_dir()));
    let mut writer = UrlsWriter::create(&*disk, "urls")?;
    // What rear-coded lists take: the bytes that are not shared with the key before, a whole one in sixteen, a length each.
    let (mut count, mut plain, mut last) = (0u64, 0u64, Vec::new());
    for key in keys {
        let shared = key.iter().zip(&last).take_while(|(a, b)| a == b).count();
        plain += if count % 16 == 0 { key.len() as u64 + 9 } else { (key.len() - shared) as u64 + 2 };
        writer.push(&key)?;
        count += 1;
        last = key;
    }
    let stats = writer.finish()?;
    let table = Urls::open(&*disk, "urls")?;
    let measured = urls::measure(&table, 1);
    let each = |bytes: u64| bytes as f64 / count.max(1) as f64;
    Ok(json!({
        "urls": count, "key_bytes": each(stats.key_bytes), "bytes_per_url": each(stats.file_bytes),
        "bytes_per_url_front_coded": each(plain), "find_ns": measured.find_ns, "get_ns": measured.get_ns,
        "scan_ns": measured.scan_ns,
    }))
}

fn input(e: GraphError) -> anyhow::Error {
    match e {
        GraphError::Input(what) => usage(what),
        GraphError::Store(e) => e.into(),
    }
}
