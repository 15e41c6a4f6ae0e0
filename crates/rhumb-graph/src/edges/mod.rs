//! Builds a graph from a list of arcs in text, one to a line: two node numbers or two URLs.
//!
//! Nothing but the memory given is needed, however long the list. Numbers are sorted as they come. URLs are numbered without a
//! table of all of them: every appearance is a key with its place in the list; sorted by key, equal ones follow each other and
//! get the next number; sorted back by place, they say the arcs again, now in numbers. A source is one appearance for as many
//! lines as it leads.
//!
//! Lists are foreign: a line that is no arc ends the build with the file, the line and what is wrong with it. `lines.rs` reads
//! them; here is what is done with them.

mod lines;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rhumb_store::disk::Disk;

use self::lines::{Fields, Lines};
use crate::sort::{ArcSorter, KeySorter};
use crate::{GraphError, Node, Result, key};

/// Takes a graph as it is built: all keys, then all rows, then all rows of the transpose; each in the order of nodes.
pub trait GraphSink {
    /// The key of the next node. Not called if the list has numbers.
    fn key(&mut self, key: &[u8]) -> Result<()>;

    /// All keys were given; so many rows follow.
    fn rows_follow(&mut self, _nodes: Node) -> Result<()> {
        Ok(())
    }

    /// The successors of the next node, ascending.
    fn row(&mut self, row: &[Node]) -> Result<()>;

    /// The predecessors of the next node, ascending.
    fn transposed_row(&mut self, row: &[Node]) -> Result<()>;
}

/// What a build may use.
#[derive(Clone)]
pub struct EdgeOptions {
    /// Where temporary files are.
    pub disk: Arc<dyn Disk>,
    /// What their names begin with.
    pub prefix: String,
    /// How much memory sorting may take.
    pub memory_bytes: usize,
}

/// What was in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeStats {
    /// How many nodes the graph has: one more than the largest number, or as many as there are different URLs.
    pub nodes: Node,
    /// How many different arcs it has.
    pub arcs: u64,
    /// How many lines said one.
    pub lines: u64,
    /// Whether nodes have URLs.
    pub urls: bool,
}

/// The canonical form of a URL, or why it has none.
pub type Canonical<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Places of one sorter: it takes numbers of 32 bits, but not all. Tests have lists that need several, too.
const PLACE_BITS: u32 = if cfg!(test) { 12 } else { 31 };

/// Builds the graph of the list in the file `path`, or on standard input if it is `-`. Lists in gzip are unpacked.
///
/// The sink has the graph only if there is no error: what it was given before one is to be thrown away.
pub fn build(path: &Path, canonical: &Canonical, options: &EdgeOptions, sink: &mut dyn GraphSink) -> Result<EdgeStats> {
    if path == Path::new("-") {
        return build_from("standard input", Box::new(std::io::stdin()), canonical, options, sink);
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| GraphError::input(format!("{name}: cannot be opened: {e}")))?;
    build_from(&name, Box::new(file), canonical, options, sink)
}

/// The same for a list that comes from somewhere else; `name` is what messages call it.
pub fn build_from(
    name: &str,
    source: Box<dyn Read>,
    canonical: &Canonical,
    options: &EdgeOptions,
    sink: &mut dyn GraphSink,
) -> Result<EdgeStats> {
    let mut lines = Lines::new(name, source)?;
    match lines.next()? {
        None => Ok(EdgeStats::default()),
        Some(Fields::Nodes(..)) => build_from_numbers(lines, options, sink),
        Some(Fields::Urls(..)) => build_from_urls(lines, canonical, options, sink),
    }
}

impl EdgeOptions {
    fn named(&self, name: &str) -> String {
        format!("{}{name}-", self.prefix)
    }

    /// A sorter that takes while another gives, which then has half of its memory.
    fn second_sorter(&self, name: &str) -> ArcSorter {
        ArcSorter::new(self.disk.clone(), &self.named(name), self.memory_bytes / 2)
    }
}

fn build_from_numbers(mut lines: Lines, options: &EdgeOptions, sink: &mut dyn GraphSink) -> Result<EdgeStats> {
    let mut arcs = ArcSorter::new(options.disk.clone(), &options.named("forward"), options.memory_bytes);
    let mut stats = EdgeStats::default();
    lines.again();
    while let Some(fields) = lines.next()? {
        let Fields::Nodes(from, to) = fields else {
            return Err(lines.wrong("URLs, in a list that begins with node numbers"));
        };
        stats.lines += 1;
        stats.nodes = stats.nodes.max(from + 1).max(to + 1);
        arcs.push(from, to)?;
    }
    drop(lines);
    give_rows(arcs, stats, options, sink)
}

fn build_from_urls(
    mut lines: Lines,
    canonical: &Canonical,
    options: &EdgeOptions,
    sink: &mut dyn GraphSink,
) -> Result<EdgeStats> {
    let mut stats = EdgeStats { urls: true, ..EdgeStats::default() };
    let mut keys = KeySorter::new(options.disk.clone(), &options.named("keys"), options.memory_bytes);
    let mut key = Vec::new();
    let mut source = String::new();
    // Sources have even places, targets odd ones.
    let mut place = 0u64;
    lines.again();
    while let Some(fields) = lines.next()? {
        let Fields::Urls(from, to) = fields else {
            return Err(lines.wrong("node numbers, in a list that begins with URLs"));
        };
        if stats.lines == 0 || source != from {
            if let Err(what) = put_key(from, canonical, &mut key) {
                return Err(lines.wrong(&format!("the first URL: {what}")));
            }
            source.clear();
            source.push_str(from);
            place += 2 - place % 2;
            keys.push(&key, place)?;
        }
        if let Err(what) = put_key(to, canonical, &mut key) {
            return Err(lines.wrong(&format!("the second URL: {what}")));
        }
        place += 1 + place % 2;
        keys.push(&key, place)?;
        stats.lines += 1;
    }
    drop(lines);

    let sorters = (place >> PLACE_BITS) as usize + 1;
    let memory_bytes = options.memory_bytes / 2 / sorters;
    let name = |n: usize| options.named(&format!("places-{n}"));
    let new_sorter = |n: usize| ArcSorter::new(options.disk.clone(), &name(n), memory_bytes);
    let mut places: Vec<ArcSorter> = (0..sorters).map(new_sorter).collect();
    let mut sorted = keys.finish()?;
    let mut last: Vec<u8> = Vec::new();
    while let Some((key, place)) = sorted.next()? {
        if stats.nodes == 0 || key != last {
            if stats.nodes == Node::MAX {
                return Err(GraphError::input(format!("there are more than {} different URLs", Node::MAX)));
            }
            last.clear();
            last.extend_from_slice(key);
            sink.key(key)?;
            stats.nodes += 1;
        }
        let low = place & ((1 << PLACE_BITS) - 1);
        places[(place >> PLACE_BITS) as usize].push(low as u32, stats.nodes - 1)?;
    }
    drop(sorted);

    let mut arcs = options.second_sorter("forward");
    let mut from = 0;
    for sorter in places {
        let mut appearances = sorter.finish()?;
        while let Some((place, node)) = appearances.next_arc()? {
            if place % 2 == 0 {
                from = node;
            } else {
                arcs.push(from, node)?;
            }
        }
    }
    give_rows(arcs, stats, options, sink)
}

fn put_key(url: &str, canonical: &Canonical, key: &mut Vec<u8>) -> Result<(), String> {
    key.clear();
    if key::put_key(&canonical(url)?, key) { Ok(()) } else { Err("has no host or no path".into()) }
}

/// Gives all rows, and then all rows of the transpose.
fn give_rows(
    arcs: ArcSorter,
    mut stats: EdgeStats,
    options: &EdgeOptions,
    sink: &mut dyn GraphSink,
) -> Result<EdgeStats> {
    sink.rows_follow(stats.nodes)?;
    let mut transposed = options.second_sorter("transposed");
    arcs.finish()?.for_each_row(stats.nodes, |node, row| {
        stats.arcs += row.len() as u64;
        row.iter().try_for_each(|&to| transposed.push(to, node))?;
        sink.row(row)
    })?;
    transposed.finish()?.for_each_row(stats.nodes, |_, row| sink.transposed_row(row))?;
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;

    use rhumb_store::disk::RealDisk;

    use super::*;
    use crate::{Csr, Rows};

    /// Keeps what it is given, and that it comes in the order that is promised.
    #[derive(Default)]
    struct Kept {
        keys: Vec<Vec<u8>>,
        rows: Csr,
        transposed: Csr,
    }

    impl GraphSink for Kept {
        fn key(&mut self, key: &[u8]) -> Result<()> {
            assert_eq!((self.rows.nodes(), self.transposed.nodes()), (0, 0));
            self.keys.push(key.to_vec());
            Ok(())
        }

        fn row(&mut self, row: &[Node]) -> Result<()> {
            assert_eq!(self.transposed.nodes(), 0);
            self.rows.push(row);
            Ok(())
        }

        fn transposed_row(&mut self, row: &[Node]) -> Result<()> {
            self.transposed.push(row);
            Ok(())
        }
    }

    fn canonical(url: &str) -> Result<String, String> {
        if url.contains("bad") { Err("is bad".into()) } else { Ok(url.to_ascii_lowercase()) }
    }

    /// Builds in as little memory as can be; nothing is left over, whatever happens.
    fn built(list: &[u8]) -> Result<(EdgeStats, Kept), String> {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        let options = EdgeOptions { disk: disk.clone(), prefix: "tmp-".into(), memory_bytes: 0 };
        let mut kept = Kept::default();
        let source = Box::new(std::io::Cursor::new(list.to_vec()));
        let stats = build_from("list", source, &canonical, &options, &mut kept);
        assert_eq!(disk.list(".").unwrap(), Vec::<String>::new());
        let stats = stats.map_err(|e| e.to_string())?;
        assert_eq!((stats.nodes, stats.arcs), (kept.rows.nodes(), kept.rows.arcs()));
        assert_eq!(kept.rows.transposed(), kept.transposed);
        Ok((stats, kept))
    }

    #[test]
    fn numbers_are_nodes() {
        let list = b"\xEF\xBB\xBF# a comment\n\n% another\r\nsource,target\n3 1\n0,3\n3\t1\r\n5 5";
        let (stats, kept) = built(list).unwrap();
        assert_eq!(stats, EdgeStats { nodes: 6, arcs: 3, lines: 4, urls: false });
        assert_eq!(kept.rows, Csr::from_arcs(6, vec![(3, 1), (0, 3), (5, 5)]));
        assert_eq!(built(b"").unwrap().0, EdgeStats::default());
        assert_eq!(built(b"# nothing\n").unwrap().0, EdgeStats::default());
    }

    #[test]
    fn urls_are_numbered_by_their_keys() {
        let list = b"http://b.example/ http://a.example/x\nhttp://B.example/ http://b.example/\nhttp://c.example/ http://b.example/\n";
        let (stats, kept) = built(list).unwrap();
        assert_eq!(stats, EdgeStats { nodes: 3, arcs: 3, lines: 3, urls: true });
        let keys: Vec<&[u8]> = vec![b"example,a)http/x", b"example,b)http/", b"example,c)http/"];
        assert_eq!(kept.keys, keys);
        assert_eq!(kept.rows, Csr::from_arcs(3, vec![(1, 0), (1, 1), (2, 1)]));
    }

    #[test]
    fn a_list_larger_than_memory() {
        let mut state = 9u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut list = Vec::new();
        let mut numbers = Vec::new();
        let mut arcs = Vec::new();
        let url = |n: u64| format!("http://host{}.example/path/to/page/{n}", n % 50);
        let mut from = 0;
        for n in 0..30_000 {
            if n % 4 == 0 {
                from = random(3000);
            }
            let to = random(3000);
            writeln!(list, "{}\t{}", url(from), url(to)).unwrap();
            writeln!(numbers, "{from} {to}").unwrap();
            arcs.push((from, to));
        }
        let urls: BTreeSet<Vec<u8>> =
            arcs.iter().flat_map(|&(a, b)| [a, b]).map(|n| key::key_of(&url(n)).unwrap()).collect();
        let urls: Vec<Vec<u8>> = urls.into_iter().collect();
        let node = |n: u64| urls.binary_search(&key::key_of(&url(n)).unwrap()).unwrap() as Node;
        let expected = Csr::from_arcs(urls.len() as Node, arcs.iter().map(|&(a, b)| (node(a), node(b))).collect());
        let (_, kept) = built(&list).unwrap();
        assert!(kept.keys == urls && kept.rows == expected);

        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&numbers).unwrap();
        let packed = packed.finish().unwrap();
        let (stats, kept) = built(&packed).unwrap();
        let arcs = arcs.iter().map(|&(a, b)| (a as Node, b as Node)).collect();
        assert!(kept.rows == Csr::from_arcs(stats.nodes, arcs) && kept.keys.is_empty());
        // Two members, as some programs write them, and one that is cut.
        assert_eq!(built(&[packed.clone(), packed.clone()].concat()).unwrap().0.lines, 60_000);
        let error = built(&packed[..packed.len() / 2]).err().unwrap();
        assert!(error.starts_with("list: line ") && error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let long = format!("1 2\n1 {}\n", "3".repeat(300 << 10));
        for (list, message) in [
            ("1 2\n3", "list: line 2: one field, where two are needed"),
            ("1 2\n\n# x\nhttp://a/ http://b/", "list: line 4: URLs, in a list that begins with node numbers"),
            ("http://a/ http://b/\n1 2", "list: line 2: node numbers, in a list that begins with URLs"),
            ("http://a/ http://b/\nhttp://a/ http://bad/", "list: line 2: the second URL: is bad"),
            ("http://bad/ http://a/", "list: line 1: the first URL: is bad"),
            ("http://a/ http://b", "list: line 1: the second URL: has no host or no path"),
            (&long, "list: line 2: longer than 262144 bytes"),
            ("1 -2\n", "list: line 1: -2 is negative, no node number"),
        ] {
            assert_eq!(built(list.as_bytes()).err().as_deref(), Some(message));
        }
    }

    #[test]
    fn a_file_that_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let options = EdgeOptions { disk: RealDisk::new(dir.path()), prefix: "tmp-".into(), memory_bytes: 0 };
        let error =
            build(&dir.path().join("none"), &canonical, &options, &mut Kept::default()).unwrap_err().to_string();
        assert!(error.contains("none: cannot be opened: "), "{error}");
    }
}
