//! A level: links that were written together and never change, in four files.
//!
//! | file | holds |
//! | --- | --- |
//! | `graph/NNNNNN.urls` | the keys of its nodes, sorted ([`crate::urls`]) |
//! | `graph/NNNNNN.nodes` | which nodes are pages, where they were visited, where hosts begin ([`crate::nodes`]) |
//! | `graph/NNNNNN.out` | the rows of successors ([`crate::code`]) |
//! | `graph/NNNNNN.in` | the rows of predecessors |
//!
//! A graph of numbers alone has no URLs. Whoever writes a level brings its nodes first, then all rows, then all rows of the
//! transposed graph; nothing is kept in memory but what a node needs bits for.

use std::sync::Arc;

use rhumb_store::Result;
use rhumb_store::disk::Disk;

use crate::code::{CodeOptions, CodeStats, CodeWriter, Coded, Effort};
use crate::nodes::{Nodes, NodesWriter};
use crate::rows::{Node, Rows};
use crate::urls::{Urls, UrlsWriter};

/// Where graphs lie in a directory.
pub const DIR: &str = "graph";

/// The endings of a level's own files.
const ENDINGS: [&str; 4] = ["urls", "nodes", "out", "in"];

/// How far back rows refer in levels that are written quickly.
const WINDOW_FAST: u8 = 7;

/// A level, opened.
pub struct Level {
    /// Its number; a later level has a higher one.
    pub number: u32,
    /// The URLs, if the graph has them.
    pub urls: Option<Urls>,
    /// What is known of the nodes.
    pub nodes: Nodes,
    /// Successors.
    pub out: Coded,
    /// Predecessors.
    pub into: Coded,
}

impl Level {
    /// Opens the level of this number, whose files must all be whole.
    pub fn open(disk: &dyn Disk, number: u32, named: bool) -> Result<Level> {
        let urls = if named { Some(Urls::open(disk, &file_name(number, "urls"))?) } else { None };
        let nodes = Nodes::open(disk, &file_name(number, "nodes"))?;
        let out = Coded::open(disk, &file_name(number, "out"))?;
        let into = Coded::open(disk, &file_name(number, "in"))?;
        let agree = urls.as_ref().is_none_or(|u| u.len() == nodes.len())
            && out.nodes() == nodes.len()
            && into.nodes() == nodes.len()
            && out.arcs() == into.arcs();
        if !agree {
            let what = "the files of this level do not belong together";
            return Err(rhumb_store::StoreError::corrupt(&file_name(number, "nodes"), 0, what));
        }
        Ok(Level { number, urls, nodes, out, into })
    }

    /// Puts the key of a node into `into`; nothing for a graph of numbers.
    pub fn key(&self, node: Node, into: &mut Vec<u8>) {
        into.clear();
        if let Some(urls) = &self.urls {
            urls.get(node, into);
        }
    }

    /// The node of a key.
    pub fn find(&self, key: &[u8]) -> Option<Node> {
        self.urls.as_ref()?.find(key)
    }

    /// The node of a key, if its links are here.
    pub fn find_page(&self, key: &[u8]) -> Option<Node> {
        if !self.nodes.may_have_page(key) {
            return None;
        }
        self.find(key).filter(|&n| self.nodes.is_page(n))
    }

    /// What it weighs against others: its nodes and arcs.
    pub fn weight(&self) -> u64 {
        u64::from(self.nodes.len()) + self.out.arcs()
    }
}

/// The name of a level's file.
pub fn file_name(number: u32, ending: &str) -> String {
    format!("{DIR}/{number:06}.{ending}")
}

/// The names of a level's own files.
pub fn file_names(number: u32) -> impl Iterator<Item = String> {
    ENDINGS.into_iter().map(move |ending| file_name(number, ending))
}

/// Writes a level.
pub struct LevelWriter {
    disk: Arc<dyn Disk>,
    number: u32,
    named: bool,
    effort: Effort,
    urls: Option<UrlsWriter>,
    nodes: Option<NodesWriter>,
    node_count: Node,
    rows: Option<CodeWriter>,
    stats: Vec<CodeStats>,
}

impl LevelWriter {
    /// Begins the level of this number, which has `pages_max` pages at most.
    pub fn create(
        disk: Arc<dyn Disk>,
        number: u32,
        named: bool,
        pages_max: u64,
        effort: Effort,
    ) -> Result<LevelWriter> {
        disk.make_dir(DIR)?;
        let urls = if named { Some(UrlsWriter::create(&*disk, &file_name(number, "urls"))?) } else { None };
        let nodes = NodesWriter::create(&*disk, &file_name(number, "nodes"), pages_max)?;
        let nodes = Some(nodes);
        Ok(LevelWriter { disk, number, named, effort, urls, nodes, node_count: 0, rows: None, stats: Vec::new() })
    }

    /// Adds the next node, and the place of its visit if it is a page.
    pub fn node(&mut self, key: &[u8], place: Option<u64>) -> Result<()> {
        if let Some(urls) = &mut self.urls {
            urls.push(key)?;
        }
        self.nodes.as_mut().expect("nodes come first").push(key, place)
    }

    /// So many nodes without names.
    pub fn nameless(&mut self, nodes: Node) {
        self.nodes.as_mut().expect("nodes come first").push_nameless(nodes);
    }

    /// All nodes are there; rows follow.
    pub fn begin_rows(&mut self) -> Result<()> {
        if let Some(urls) = self.urls.take() {
            urls.finish()?;
        }
        let nodes = self.nodes.take().expect("rows begin once");
        self.node_count = nodes.nodes();
        nodes.finish()?;
        self.begin("out")
    }

    /// All rows are there; those of the transposed graph follow.
    pub fn begin_transposed(&mut self) -> Result<()> {
        self.end()?;
        self.begin("in")
    }

    /// Adds the row of the next node.
    pub fn row(&mut self, row: &[Node]) -> Result<()> {
        self.rows.as_mut().expect("rows were begun").push(row)
    }

    /// Everything is there: opens what was written.
    pub fn finish(mut self) -> Result<Level> {
        self.end()?;
        self.disk.sync_dir(DIR)?;
        Level::open(&*self.disk, self.number, self.named)
    }

    fn begin(&mut self, ending: &str) -> Result<()> {
        let usual = CodeOptions::default();
        // Levels that will be merged again are written while a crawl runs: a small window takes less time and memory.
        let window = if self.effort == Effort::Fast { WINDOW_FAST } else { usual.window };
        let options = CodeOptions { effort: self.effort, window, ..usual };
        let name = file_name(self.number, ending);
        self.rows = Some(CodeWriter::create(&*self.disk, &name, self.node_count, options)?);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let rows = self.rows.take().expect("rows were begun");
        self.stats.push(rows.finish()?);
        Ok(())
    }
}
