//! `rhumb graph build`: from a crawl's log, from a list of links, or from files of the WebGraph framework.
//!
//! What was built comes into force as a whole when everything is there: bad input in the last line leaves what was before.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use rhumb_core::url::Normalizer;
use rhumb_graph::bv;
use rhumb_graph::code::Effort;
use rhumb_graph::edges::{self, EdgeOptions, GraphSink};
use rhumb_graph::level::{DIR, Level, LevelWriter, file_names};
use rhumb_graph::manifest::{self, Manifest};
use rhumb_graph::sort::ArcSorter;
use rhumb_graph::store::{self, Graph};
use rhumb_graph::{GraphError, Node, Rows};
use rhumb_store::disk::{Disk, RealDisk};
use rhumb_store::log::Position;
use serde_json::json;

use crate::cli::BuildArgs;
use crate::commands::{crawl_directory, with_advice};
use crate::display::thousands;
use crate::links::follow::{self, Reached};
use crate::{Exit, config, out, usage};

/// What is kept in memory of each node is a bit; the rest of the memory is for sorting.
const NODES_PER_BYTE: usize = 2;

/// Builds a graph.
pub fn run(args: &BuildArgs, as_json: bool) -> Result<Exit> {
    let began = Instant::now();
    let memory = sorting_share(args.memory.0 as usize);
    let (dir, level) = match (&args.dir, &args.edges, &args.bv, &args.out) {
        (Some(dir), ..) => (dir, of_crawl(dir, memory)?),
        (None, Some(edges), _, Some(out)) => {
            (out, of_input(out, |disk, number| of_edges(edges, disk, number, memory))?)
        }
        (None, None, Some(bv), Some(out)) => (out, of_input(out, |disk, number| of_bv(bv, disk, number, memory))?),
        _ => return Err(usage("name a crawl directory, or --edges FILE or --bv BASENAME with --out DIR")),
    };
    let (nodes, arcs) = level.map_or((0, 0), |l| (l.out.nodes(), l.out.arcs()));
    let seconds = began.elapsed().as_secs_f64();
    if as_json {
        out::json(&json!({"dir": dir, "nodes": nodes, "arcs": arcs, "seconds": seconds}))?;
    } else {
        let (nodes, arcs) = (thousands(u64::from(nodes)), thousands(arcs));
        out::line(&format!("{nodes} nodes and {arcs} links, in {seconds:.1} s. Look at them with:"))?;
        out::line(&format!("  rhumb graph stats {}", out::shell(dir)))?;
    }
    Ok(Exit::Done)
}

/// How much of the memory given is for sorting; the rest is for rows that are being coded.
pub fn sorting_share(memory: usize) -> usize {
    memory / 4 * 3
}

/// The graph of a crawl, made anew from its log.
fn of_crawl(dir: &Path, memory: usize) -> Result<Option<Arc<Level>>> {
    crawl_directory(dir)?;
    let disk = RealDisk::new(dir);
    let _lock = follow::lock(dir)?;
    let told = |e| with_advice(e, dir);
    let mut graph = Graph::anew(disk.clone(), follow::fingerprint)?;
    // A log that does not read is no reason to forget what is known of it.
    let reached = follow::follow(&mut graph, &disk, memory).map_err(told)?;
    store::discard(&*disk)?;
    if reached == Reached::Full {
        follow::flush(&mut graph)?;
    }
    follow::build(&mut graph, &disk, memory, Some(Effort::Best)).map_err(told)?;
    Ok(graph.whole().cloned())
}

/// A graph in a directory of its own, made by `make`.
fn of_input(
    dir: &Path,
    make: impl FnOnce(&Arc<dyn Disk>, u32) -> Result<Level, GraphError>,
) -> Result<Option<Arc<Level>>> {
    let is_graph = dir.join(manifest::NAME).is_file();
    if dir.join(config::FILE).is_file() {
        return Err(usage(format!("{} is a crawl directory; name another one with --out", dir.display())));
    }
    if !is_graph && dir.exists() && !dir.read_dir().is_ok_and(|mut entries| entries.next().is_none()) {
        return Err(usage(format!("{} is not empty, and not a graph; name another one with --out", dir.display())));
    }
    let is_new = !dir.exists();
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let disk = RealDisk::new(dir);
    let built = {
        let _lock = follow::lock(dir)?;
        // One of another version, or a damaged one, is about to be replaced.
        let number = Manifest::load(&*disk).ok().flatten().map_or(1, |m| m.next);
        put_in_force(&disk, number, make(&disk, number))
    };
    if built.is_err() && is_new {
        let _ = std::fs::remove_dir_all(dir);
    } else if built.is_err() && !is_graph {
        let _ = std::fs::remove_dir_all(dir.join(DIR));
    }
    built.map(|level| Some(Arc::new(level)))
}

fn put_in_force(disk: &Arc<dyn Disk>, number: u32, made: Result<Level, GraphError>) -> Result<Level> {
    match made {
        Ok(level) => {
            let named = level.urls.is_some();
            let levels = vec![(number, Vec::new())];
            Manifest { named, position: Position::START, last: None, next: number + 1, levels }.save(&**disk)?;
            Ok(level)
        }
        Err(e) => {
            for name in file_names(number) {
                let _ = disk.remove(&name);
            }
            Err(match e {
                GraphError::Input(what) => usage(what),
                GraphError::Store(e) => e.into(),
            })
        }
    }
}

pub fn of_bv(basename: &Path, disk: &Arc<dyn Disk>, number: u32, memory: usize) -> Result<Level, GraphError> {
    let mut reader = bv::Reader::open(basename)?;
    let nodes = reader.nodes();
    let mut writer = LevelWriter::create(disk.clone(), number, false, u64::from(nodes), Effort::Best)?;
    writer.nameless(nodes);
    writer.begin_rows()?;
    let mut turned = ArcSorter::new(disk.clone(), &format!("{DIR}/{number:06}-sort"), memory);
    let mut from = 0;
    while let Some(row) = reader.next_row()? {
        writer.row(row)?;
        for &to in row {
            turned.push(to, from)?;
        }
        from += 1;
    }
    writer.begin_transposed()?;
    turned.finish()?.for_each_row(nodes, |_, row| Ok(writer.row(row)?))?;
    Ok(writer.finish()?)
}

fn of_edges(file: &Path, disk: &Arc<dyn Disk>, number: u32, memory: usize) -> Result<Level, GraphError> {
    let normalizer = Normalizer::default();
    let canonical =
        |text: &str| normalizer.normalize(text, None).map(|url| url.as_str().to_string()).map_err(|e| e.to_string());
    let mut sink = Sink { disk: disk.clone(), number, memory, writer: None, stage: Stage::Nodes };
    let options = EdgeOptions { disk: disk.clone(), prefix: format!("{DIR}/{number:06}-"), memory_bytes: memory };
    disk.make_dir(DIR)?;
    edges::build(file, &canonical, &options, &mut sink)?;
    sink.finish()
}

/// Writes a level from what a list of links comes to.
struct Sink {
    disk: Arc<dyn Disk>,
    number: u32,
    memory: usize,
    writer: Option<LevelWriter>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Nodes,
    Rows,
    Transposed,
}

impl Sink {
    fn writer(&mut self, named: bool, pages_max: u64) -> Result<&mut LevelWriter, GraphError> {
        if self.writer.is_none() {
            let writer = LevelWriter::create(self.disk.clone(), self.number, named, pages_max, Effort::Best)?;
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("it was just made"))
    }

    fn finish(mut self) -> Result<Level, GraphError> {
        // Without a single row nothing was begun.
        self.begin(Stage::Transposed, 0)?;
        Ok(self.writer.take().expect("begun").finish()?)
    }

    fn begin(&mut self, stage: Stage, nodes: Node) -> Result<(), GraphError> {
        if self.stage == Stage::Nodes && stage != Stage::Nodes {
            let nameless = self.writer.is_none();
            let writer = self.writer(!nameless, u64::from(nodes))?;
            if nameless {
                writer.nameless(nodes);
            }
            writer.begin_rows()?;
            self.stage = Stage::Rows;
        }
        if self.stage == Stage::Rows && stage == Stage::Transposed {
            self.writer(true, 0)?.begin_transposed()?;
            self.stage = Stage::Transposed;
        }
        Ok(())
    }
}

impl GraphSink for Sink {
    fn rows_follow(&mut self, nodes: Node) -> Result<(), GraphError> {
        // A list may say "0 4000000000" and nothing else.
        if nodes as usize / NODES_PER_BYTE > self.memory {
            let what = "more than this memory is for; number them from 0 without gaps, or give more with --memory";
            return Err(GraphError::input(format!("the largest number makes {nodes} nodes, {what}")));
        }
        self.begin(Stage::Rows, nodes)
    }

    fn key(&mut self, key: &[u8]) -> Result<(), GraphError> {
        // Whether it is a page cannot be told: all count as such.
        Ok(self.writer(true, 1 << 20)?.node(key, Some(0))?)
    }

    fn row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        Ok(self.writer(true, 0)?.row(row)?)
    }

    fn transposed_row(&mut self, row: &[Node]) -> Result<(), GraphError> {
        self.begin(Stage::Transposed, 0)?;
        Ok(self.writer(true, 0)?.row(row)?)
    }
}
