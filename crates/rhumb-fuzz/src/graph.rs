//! The link graph: files of other programs, and what is within the seals of our own.
//!
//! Input: a byte that chooses the reader by its remainder of 7, then what it reads. 0: properties, an empty line, the bits of a graph in
//! the format of the WebGraph framework; 1: a list of links; 2 to 5: the content of a `.urls`, `.out`, `.nodes` file and of `graph/levels`;
//! 6: a URL to a line, and after an empty line any bytes as a key. Seals are left out, since a checksum stops every mutation.

use std::io::Cursor;

use rhumb_core::url::{Normalizer, Url};
use rhumb_graph::bv::Reader;
use rhumb_graph::code::{Coded, Effort};
use rhumb_graph::edges::{self, EdgeOptions, GraphSink};
use rhumb_graph::key::{host_key, host_name, host_part, key_of, url_of};
use rhumb_graph::level::LevelWriter;
use rhumb_graph::manifest::Manifest;
use rhumb_graph::nodes::Nodes;
use rhumb_graph::urls::Urls;
use rhumb_graph::{Csr, GraphError, Node, Rows};

use crate::{byte, disk};

/// A few bytes can promise many nodes and links, at a bit and less each: what is looked at of them ends here.
const NODES_LOOKED_AT: Node = 300;
const ARCS_LOOKED_AT: u64 = 100_000;

/// Nothing panics; refusals are a line; what is accepted agrees with itself.
pub fn run(data: &[u8]) {
    let (choice, rest) = byte(data);
    match choice % 7 {
        0 => bv(rest),
        1 => list(rest),
        2 => urls(rest),
        3 => rows(rest),
        4 => nodes(rest),
        5 => manifest(rest),
        _ => keys(rest),
    }
}

fn one_line(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}

/// What stands before the first empty line, and behind it.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    match data.windows(2).position(|two| two == b"\n\n") {
        Some(at) => (&data[..=at], &data[at + 2..]),
        None => (data, &[]),
    }
}

/// Rows ascend and are within the graph; at the end there are as many as promised.
fn bv(data: &[u8]) {
    let (properties, graph) = halves(data);
    let mut reader = match Reader::from_bytes(properties, graph.to_vec()) {
        Ok(reader) => reader,
        Err(e) => return one_line(&e),
    };
    let (nodes, promised) = (reader.nodes(), reader.arcs());
    let (mut rows, mut arcs) = (0, 0);
    while arcs <= ARCS_LOOKED_AT {
        match reader.next_row() {
            Ok(Some(row)) => {
                assert!(row.windows(2).all(|two| two[0] < two[1]) && row.iter().all(|&to| to < nodes));
                (rows, arcs) = (rows + 1, arcs + row.len() as u64);
                assert!(rows <= nodes && arcs <= promised);
            }
            Ok(None) => {
                assert_eq!((rows, arcs), (nodes, promised));
                break;
            }
            Err(e) => {
                one_line(&e);
                break;
            }
        }
    }
}

/// What a list comes to, unless it has very many nodes.
#[derive(Default)]
struct Kept {
    keys: Vec<Vec<u8>>,
    rows: Csr,
    transposed: Csr,
}

impl GraphSink for Kept {
    fn key(&mut self, key: &[u8]) -> Result<(), GraphError> {
        assert!(self.keys.last().is_none_or(|before| before.as_slice() < key), "keys ascend");
        self.keys.push(key.to_vec());
        Ok(())
    }

    fn rows_follow(&mut self, nodes: Node) -> Result<(), GraphError> {
        if nodes > 10_000 { Err(GraphError::input("too many for this test")) } else { Ok(()) }
    }

    fn row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        self.rows.push(row);
        Ok(())
    }

    fn transposed_row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        self.transposed.push(row);
        Ok(())
    }
}

/// The transposed graph is the transposed one; keys are those of nodes; nothing is left on disk; the graph written as a list is the
/// same graph again.
fn list(data: &[u8]) {
    let normalizer = Normalizer::default();
    let canonical =
        |text: &str| normalizer.normalize(text, None).map(|url| url.as_str().to_string()).map_err(|e| e.to_string());
    let build = |list: Vec<u8>| {
        let disk = disk();
        let options = EdgeOptions { disk: disk.clone(), prefix: "tmp-".to_string(), memory_bytes: 0 };
        let mut kept = Kept::default();
        let built = edges::build_from("list", Box::new(Cursor::new(list)), &canonical, &options, &mut kept);
        assert!(disk.list(".").is_ok_and(|left| left.is_empty()));
        built.map(|stats| (stats, kept))
    };
    let (stats, kept) = match build(data.to_vec()) {
        Ok(built) => built,
        Err(e) => return one_line(&e),
    };
    assert_eq!((stats.nodes, stats.arcs), (kept.rows.nodes(), kept.rows.arcs()));
    assert!(stats.arcs <= stats.lines);
    assert_eq!(kept.keys.len(), if stats.urls { stats.nodes as usize } else { 0 });
    assert_eq!(kept.rows.transposed(), kept.transposed);
    level(&kept);
    let mut text = Vec::new();
    let name = |node: Node| match kept.keys.get(node as usize) {
        Some(key) => url_of(key).expect("a key has a URL"),
        None => node.to_string(),
    };
    kept.rows.scan_all(&mut |from, row| {
        row.iter().for_each(|&to| text.extend_from_slice(format!("{}\t{}\n", name(from), name(to)).as_bytes()));
    });
    let (again, same) = build(text).expect("what was written for others is read again");
    assert_eq!((again.arcs, again.urls, &same.keys), (stats.arcs, stats.urls && stats.arcs > 0, &kept.keys));
    assert_eq!(same.rows, kept.rows);
}

/// A level of this graph is the same graph.
fn level(kept: &Kept) {
    let disk = disk();
    let named = !kept.keys.is_empty();
    let mut writer = LevelWriter::create(disk.clone(), 1, named, kept.keys.len() as u64, Effort::Fast).expect("memory");
    let place = |node: usize| (!node.is_multiple_of(3)).then_some(node as u64);
    for (node, key) in kept.keys.iter().enumerate() {
        if writer.node(key, place(node)).is_err() {
            assert!(key.len() > usize::from(u16::MAX), "only what is too long is refused");
            return;
        }
    }
    if !named {
        writer.nameless(kept.rows.nodes());
    }
    writer.begin_rows().expect("memory");
    kept.rows.scan_all(&mut |_, row| writer.row(row).expect("memory"));
    writer.begin_transposed().expect("memory");
    kept.transposed.scan_all(&mut |_, row| writer.row(row).expect("memory"));
    let level = writer.finish().expect("what was written can be read");
    assert_eq!((Csr::of(&level.out), Csr::of(&level.into)), (kept.rows.clone(), kept.transposed.clone()));
    let (mut row, mut key) = (Vec::new(), Vec::new());
    for node in 0..kept.rows.nodes() {
        level.out.row(node, &mut row);
        assert_eq!(row, kept.rows.successors(node), "{node}");
        level.into.row(node, &mut row);
        assert_eq!(row, kept.transposed.successors(node), "{node}");
        if let Some(own) = kept.keys.get(node as usize) {
            level.key(node, &mut key);
            assert_eq!((&key, level.find(own)), (own, Some(node)));
            let of_host = level.urls.as_ref().map(|urls| urls.range_of_prefix(host_part(own)));
            assert_eq!(of_host, Some(level.nodes.host(level.nodes.host_of(node))));
            assert_eq!(level.nodes.place(node), place(node as usize));
            assert_eq!(level.find_page(own).is_some(), place(node as usize).is_some());
        }
    }
}

/// Every way to a key gives the same key, and what is found is within the table. That each key is found relies on how they are
/// written, sharing all they can with the one before: [`level`] has those.
fn urls(data: &[u8]) {
    let urls = match Urls::from_bytes(data) {
        Ok(urls) => urls,
        Err(e) => return one_line(&e),
    };
    let count = urls.len().min(NODES_LOOKED_AT);
    let mut scan = urls.scan(0);
    let mut key = Vec::new();
    for node in 0..count {
        urls.get(node, &mut key);
        assert_eq!(scan.next(), Some(key.as_slice()), "node {node}");
        assert!(urls.lower_bound(&key) <= urls.len());
        assert!(urls.find(&key).is_none_or(|found| found < urls.len()));
        assert!(urls.range_of_prefix(host_part(&key)).end <= urls.len());
        let _ = url_of(&key);
    }
    urls.get(urls.len(), &mut key);
    urls.find(data);
}

/// Nodes of rows are within the graph, whichever way rows are asked for. More cannot be said: chains of references that are longer than
/// the file says are cut, at different ends. [`level`] has those that were written.
fn rows(data: &[u8]) {
    let coded = match Coded::from_bytes(data) {
        Ok(coded) => coded,
        Err(e) => return one_line(&e),
    };
    let nodes = coded.nodes();
    let within = |row: &[Node]| assert!(row.iter().all(|&to| to < nodes) && row.is_sorted());
    let (mut row, mut looked_at) = (Vec::new(), 0);
    for node in 0..nodes.min(NODES_LOOKED_AT) {
        coded.row(node, &mut row);
        within(&row);
        assert_eq!(coded.degree(node) as usize, row.len());
        coded.scan(node, node + 1, &mut |_, row| within(row));
        looked_at += row.len() as u64 + 1;
        if looked_at > ARCS_LOOKED_AT {
            return;
        }
    }
    coded.scan(0, nodes.min(NODES_LOOKED_AT), &mut |_, row| within(row));
    coded.row(nodes, &mut row);
    assert!(row.is_empty() && coded.degree(nodes) == 0);
}

/// Pages are as many as promised and have a place each; hosts share all nodes among them.
fn nodes(data: &[u8]) {
    let nodes = match Nodes::from_bytes(data) {
        Ok(nodes) => nodes,
        Err(e) => return one_line(&e),
    };
    let pages = (0..nodes.len()).filter(|&node| nodes.is_page(node)).count() as u64;
    assert_eq!(pages, nodes.pages());
    for node in 0..nodes.len() {
        assert_eq!(nodes.place(node).is_some(), nodes.is_page(node), "{node}");
    }
    let mut next = 0;
    for host in 0..nodes.hosts() {
        let range = nodes.host(host);
        assert!(range.start == next && range.end > range.start && range.end <= nodes.len(), "{range:?}");
        assert_eq!((nodes.host_of(range.start), nodes.host_of(range.end - 1)), (host, host));
        next = range.end;
    }
    assert!(next == nodes.len() || nodes.hosts() == 0);
    nodes.may_have_page(data);
    assert_eq!(nodes.place(nodes.len()), None);
}

/// What is read is written as it was read.
fn manifest(data: &[u8]) {
    match Manifest::from_bytes(data) {
        Ok(manifest) => {
            assert_eq!(Manifest::from_bytes(&manifest.to_bytes()).ok().as_ref(), Some(&manifest));
            assert!(manifest.levels.iter().map(|(_, dead)| dead.len()).sum::<usize>() <= data.len());
        }
        Err(e) => one_line(&e),
    }
}

/// A canonical URL and its key tell the same, and keys of a host are neighbours, as are those of a domain of the DNS.
fn keys(data: &[u8]) {
    let (lines, any) = halves(data);
    if let Some(url) = url_of(any)
        && let Some(key) = key_of(&url)
    {
        // Not every text that reads as a key is one; what it becomes is.
        assert_eq!(url_of(&key).as_deref(), Some(url.as_str()), "{any:?}");
    }
    let _ = host_name(any);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for line in String::from_utf8_lossy(lines).lines().take(50) {
        let Ok(url) = Url::parse(line) else { continue };
        let Some(key) = key_of(url.as_str()) else { continue };
        assert_eq!(url_of(&key).as_deref(), Some(url.as_str()));
        let host = host_name(host_part(&key)).expect("a host's name");
        assert_eq!(host_key(&host), host_part(&key), "{url:?}");
        keys.push(key);
    }
    keys.sort();
    keys.dedup();
    for key in &keys {
        let host = host_part(key);
        contiguous(&keys, |k| host_part(k) == host);
    }
    // URLs may have hosts such as `a*b`, which no name server knows.
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_,)".contains(b);
    keys.retain(|key| host_part(key).iter().all(plain));
    for key in &keys {
        let host = host_part(key);
        let name = &host[..host.len() - 1];
        for end in (0..name.len()).filter(|&at| name[at] == b',').chain([name.len()]) {
            let domain = &name[..end];
            contiguous(&keys, |k| k.strip_prefix(domain).is_some_and(|rest| matches!(rest.first(), Some(b',' | b')'))));
        }
    }
}

/// What belongs together is not parted.
fn contiguous(keys: &[Vec<u8>], belongs: impl Fn(&[u8]) -> bool) {
    let begins = (0..keys.len()).filter(|&i| belongs(&keys[i]) && (i == 0 || !belongs(&keys[i - 1]))).count();
    assert!(begins <= 1, "{:?}", keys.iter().map(|k| String::from_utf8_lossy(k)).collect::<Vec<_>>());
}
