//! `rhumb rebuild`: forgets all derived state and makes it anew from the log.
//!
//! The log is read to its end before anything is touched: with a damaged one the state on disk may be all there is.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rhumb_store::disk::{DirLock, RealDisk};
use rhumb_store::{checkpoint, verify};
use serde_json::json;

use super::{crawl_directory, open_crawl, with_advice};
use crate::display::thousands;
use crate::{Exit, out, usage};

/// Makes the state and the archive's indexes of the crawl in `dir` anew.
pub fn run(dir: &Path, as_json: bool) -> Result<Exit> {
    let settings = crawl_directory(dir)?.settings().map_err(|e| usage(format!("{e:#}")))?;
    let _lock = DirLock::take(dir)?;
    let began = Instant::now();
    let disk = RealDisk::new(dir);
    let records = verify::log(disk.clone()).map_err(|e| with_advice(e, dir))?;
    checkpoint::discard_all(&*disk)?;
    let mut engine = open_crawl(dir, disk, settings)?;
    engine.checkpoint()?;
    let crawl = engine.crawl();
    let (pages, urls, waiting) =
        (crawl.totals.pages, crawl.sieve.len(), crawl.frontier.figures(crawl.last_alive).urls_waiting);
    let seconds = began.elapsed().as_secs_f64();
    if as_json {
        let report = json!({
            "records": records, "pages": pages, "urls_seen": urls, "urls_waiting": waiting, "seconds": seconds,
        });
        out::json(&report)?;
    } else {
        out::line(&format!("Made anew from {} records of the log, in {seconds:.1} s.", thousands(records)))?;
        out::line(&format!(
            "{} pages, {} URLs known, {} waiting.",
            thousands(pages),
            thousands(urls),
            thousands(waiting)
        ))?;
    }
    Ok(Exit::Done)
}
