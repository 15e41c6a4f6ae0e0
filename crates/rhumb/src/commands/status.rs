//! `rhumb status`: asks the process that runs the crawl, or looks at the files without touching them.
//!
//! Files that are looked at are read whole as long as that takes a moment: damage is named with what to do about it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rhumb_crawl::status::{self, Request, Status};
use rhumb_graph::store as graph;
use rhumb_store::disk::{DirLock, Disk, Overlay, RealDisk};
use rhumb_store::{StoreError, Timestamp, verify};
use serde_json::Value;

use super::{advice, crawl_directory, open_crawl};
use crate::config::Config;
use crate::display::{self, Figures};
use crate::{Exit, out, usage};

/// With more bytes than these, files are read to their ends only if that is asked for.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// Prints the figures of the crawl in `dir`, and what is damaged; with `check` every byte is looked at.
pub fn run(dir: &Path, check: bool, json: bool) -> Result<Exit> {
    let config = crawl_directory(dir)?;
    if DirLock::is_held(dir)
        && let Some(status) = status::ask(dir, Request::Status)
    {
        if json {
            out::json(&status)?;
        } else {
            out::line("Running. Ctrl-C in its terminal, or SIGTERM, stops it.")?;
            out::line(&display::summary(&Figures::of(&status)?))?;
        }
        return Ok(Exit::Done);
    }
    // The crawl is opened as a resume would open it, on a disk whose changes stay in memory.
    let disk: Arc<dyn Disk> = Overlay::new(RealDisk::new(dir));
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    let engine = open_crawl(dir, disk.clone(), settings)?;
    let mut status = Status::of(engine.crawl(), Timestamp::now());
    status.state = if status.urls_waiting == 0 { "finished" } else { "stopped" };
    status.pages_per_second = status.pages as f64 / status.seconds.max(0.001);
    let mut damage: Vec<String> = Vec::new();
    if config.changed {
        damage.push(Config::changed_note());
    }
    for note in &engine.notes {
        let rebuild = out::shell(dir);
        damage.push(format!("{note}; the next crawl makes it anew from the log, or now: rhumb rebuild {rebuild}"));
    }
    if engine.visits_lost > 0 {
        damage.push(format!("{}; the next crawl does it", super::crawl::lost(engine.visits_lost)));
    }
    if check || verify::bytes(&*disk)? + graph::bytes(&*disk)? + rhumb_index::bytes(&*disk)? <= CHECKED_BYTES_MAX {
        damage.extend(damaged(&disk)?.iter().map(|e| match advice(e, dir) {
            Some(advice) => format!("{e}; {advice}"),
            None => e.to_string(),
        }));
    }
    for line in &damage {
        out::note(&format!("rhumb: {line}"));
    }
    if json {
        let mut value = serde_json::to_value(&status)?;
        if let Value::Object(fields) = &mut value {
            fields.insert("damage".to_string(), damage.iter().cloned().collect::<Value>());
        }
        out::json(&value)?;
    } else {
        let figures = Figures::of(&status)?;
        let headline = match (status.state, display::held(&figures)) {
            ("finished", Some(held)) => format!("Finished; {held}. Run it again to try them."),
            ("finished", None) => "Finished: nothing is left to visit.".to_string(),
            _ => format!("Stopped. To go on: rhumb crawl --dir {}", out::shell(dir)),
        };
        out::line(&headline)?;
        out::line(&display::summary(&figures))?;
    }
    Ok(if damage.is_empty() { Exit::Done } else { Exit::Look })
}

/// Everything that does not read. The figures need not be wrong for it: they come from what was read before.
fn damaged(disk: &Arc<dyn Disk>) -> Result<Vec<StoreError>> {
    let mut damage: Vec<StoreError> = verify::log(disk.clone()).err().into_iter().collect();
    damage.extend(verify::state(&**disk)?);
    damage.extend(verify::archive(&**disk)?);
    damage.extend(graph::verify(&**disk)?);
    damage.extend(rhumb_index::verify(disk)?);
    Ok(damage)
}
