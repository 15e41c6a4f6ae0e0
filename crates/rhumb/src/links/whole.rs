//! The graph as one level, for what is computed over all of it: figures, ranks, exports.
//!
//! Where nobody else writes the graph, its levels are made one, for good. Beside a running crawl a copy is made instead, in the
//! directory for temporary files, and removed afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use rhumb_core::priority::PageRanks;
use rhumb_graph::algo::ranks::{self, MEASURES, Ranks};
use rhumb_graph::code::Effort;
use rhumb_graph::level::Level;
use rhumb_graph::{Node, Rows};
use rhumb_store::disk::{DirLock, Disk, RealDisk};

use super::{Links, follow};
use crate::usage;

/// Memory for links that are not on disk yet, while a graph is made from a log.
const MEMORY_MAX: usize = 256 << 20;

/// What follows a measure in the name of a file with ranks of hosts.
pub const HOSTS: &str = "-hosts";

/// A graph as one level.
pub struct Whole {
    /// The level.
    pub level: Arc<Level>,
    /// Where it lies.
    pub disk: Arc<dyn Disk>,
    /// Whether what is computed may be kept beside it.
    pub is_kept: bool,
    links: Links,
    _lock: Option<DirLock>,
    _scratch: Option<Scratch>,
}

impl Whole {
    /// The whole graph of `dir`.
    pub fn open(dir: &Path) -> Result<Whole> {
        let links = Links::open(dir)?;
        let disk = links.disk().clone();
        let lock = if DirLock::is_held(dir) { None } else { follow::lock(dir).ok() };
        if lock.is_some() && links.has_log {
            let mut graph = links.graph.write().expect("nobody panics with the graph in hand");
            if let Some(newer) = graph.renewed()? {
                *graph = newer;
            }
            follow::build(&mut graph, &disk, MEMORY_MAX, Some(Effort::Fast))?;
        }
        let whole = links.read().whole().cloned();
        if let Some(level) = whole {
            let is_kept = lock.is_some();
            return Ok(Whole { level, disk, is_kept, links, _lock: lock, _scratch: None });
        }
        if links.read().levels() == 0 && links.read().arcs_in_memory() == 0 && links.read().pages() == 0 {
            return Err(usage(format!("{} has no pages yet, and so no links", dir.display())));
        }
        let scratch = Scratch::new()?;
        let disk = RealDisk::new(&scratch.0);
        let level = Arc::new(links.read().copy_whole(&disk)?);
        Ok(Whole { level, disk, is_kept: false, links, _lock: None, _scratch: Some(scratch) })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> Node {
        self.level.out.nodes()
    }

    /// The URL of a node, if the graph has URLs.
    pub fn url(&self, node: Node) -> Option<String> {
        let mut key = Vec::new();
        self.level.key(node, &mut key);
        rhumb_graph::key::url_of(&key)
    }

    /// The node that was typed: a number, or a URL.
    pub fn node(&self, typed: &str) -> Result<Node> {
        if let Ok(number) = typed.parse::<Node>() {
            if number < self.nodes() {
                return Ok(number);
            }
            return Err(usage(format!("there is no node {number}: the graph has {}", self.nodes())));
        }
        if self.level.urls.is_none() {
            return Err(usage(format!("{typed:?} is not the number of a node, and this graph has no URLs")));
        }
        let url = self.links.canonical(typed)?;
        let found = rhumb_graph::key::key_of(&url).and_then(|key| self.level.find(&key));
        found.ok_or_else(|| crate::commands::unknown_page(&url))
    }
}

/// A directory of our own for a while.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rhumb-graph-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The ranks that an earlier look at the graph of `dir` left, for a crawl to go by. A page that it did not have has none.
pub fn known_ranks(disk: &Arc<dyn Disk>) -> Option<PageRanks> {
    let graph = follow::open(disk.clone()).ok()?;
    let level = graph.largest_level()?.clone();
    let name = ranks::file_name(level.number, MEASURES[0]);
    if !disk.exists(&name) {
        return None;
    }
    let ranks = Ranks::open(&**disk, &name).ok()?;
    let percentile = move |url: &str| ranks.percentile(level.find(&rhumb_graph::key::key_of(url)?)?);
    Some(PageRanks(Arc::new(percentile)))
}
