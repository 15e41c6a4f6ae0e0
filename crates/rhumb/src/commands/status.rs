//! `rhumb status`: asks the process that runs the crawl, or looks at the files without touching them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rhumb_crawl::Engine;
use rhumb_crawl::status::{self, Request, Status};
use rhumb_store::Timestamp;
use rhumb_store::disk::{DirLock, Disk, Overlay, RealDisk};

use super::crawl_directory;
use crate::display::{self, Figures};
use crate::{Exit, out, usage};

/// Prints the figures of the crawl in `dir`.
pub fn run(dir: &Path, json: bool) -> Result<Exit> {
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
    let engine = Engine::open(dir, disk, settings)?;
    let mut status = Status::of(engine.crawl(), Timestamp::now());
    status.state = if status.urls_waiting == 0 { "finished" } else { "stopped" };
    status.pages_per_second = status.pages as f64 / status.seconds.max(0.001);
    for note in &engine.notes {
        out::note(&format!("rhumb: {note}"));
    }
    if json {
        out::json(&status)?;
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
    Ok(Exit::Done)
}
