//! `rhumb rebuild`: forgets all derived state and makes it anew from the log.
//!
//! The log is read to its end before anything is touched: with a damaged one the state on disk may be all there is.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use rhumb_graph::code::Effort;
use rhumb_store::disk::{DirLock, Disk, RealDisk};
use rhumb_store::{checkpoint, verify};
use serde_json::json;

use super::{crawl_directory, open_crawl, with_advice};
use crate::config::Config;
use crate::display::thousands;
use crate::links::follow;
use crate::search::{self, fold};
use crate::{Exit, out, usage};

/// Makes the state and the archive's indexes of the crawl in `dir` anew.
pub fn run(dir: &Path, as_json: bool) -> Result<Exit> {
    let config = crawl_directory(dir)?;
    let keeps_graph = config.storage.graph;
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    let _lock = DirLock::take(dir)?;
    let began = Instant::now();
    let disk = RealDisk::new(dir);
    let records = verify::log(disk.clone()).map_err(|e| with_advice(e, dir))?;
    checkpoint::discard_all(&*disk)?;
    let mut engine = open_crawl(dir, disk.clone(), settings)?;
    engine.checkpoint()?;
    let links = if keeps_graph { rebuild_graph(dir, &disk)? } else { 0 };
    let found = if config.storage.index { rebuild_index(dir, &disk, &config)? } else { 0 };
    let crawl = engine.crawl();
    let (pages, urls, waiting) =
        (crawl.totals.pages, crawl.sieve.len(), crawl.frontier.figures(crawl.last_alive).urls_waiting);
    let seconds = began.elapsed().as_secs_f64();
    if as_json {
        let report = json!({
            "records": records, "pages": pages, "urls_seen": urls, "urls_waiting": waiting, "links": links, "pages_found": found, "seconds": seconds,
        });
        out::json(&report)?;
    } else {
        out::line(&format!("Made anew from {} records of the log, in {seconds:.1} s.", thousands(records)))?;
        out::line(&format!(
            "{} pages, {} URLs known, {} waiting; {} links; {} pages can be found.",
            thousands(pages),
            thousands(urls),
            thousands(waiting),
            thousands(links),
            thousands(found)
        ))?;
    }
    Ok(Exit::Done)
}

/// Makes the link graph anew; the number of its links.
fn rebuild_graph(dir: &Path, disk: &Arc<dyn Disk>) -> Result<u64> {
    let _lock = follow::lock(dir)?;
    rhumb_graph::store::discard(&**disk)?;
    let mut graph = follow::open_to_write(disk.clone())?;
    follow::build(&mut graph, disk, GRAPH_BYTES_MAX, Some(Effort::Best))?;
    Ok(graph.arcs())
}

/// Makes the text index anew; the number of pages that can be found.
fn rebuild_index(dir: &Path, disk: &Arc<dyn Disk>, config: &Config) -> Result<u64> {
    let _lock = fold::lock(dir)?;
    rhumb_index::store::discard(&**disk)?;
    search::settle(dir, disk, &search::making(config))
}

/// Memory for links that are not on disk yet.
const GRAPH_BYTES_MAX: usize = 256 << 20;
