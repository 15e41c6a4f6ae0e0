//! Turns a crawl into something others read: JSON lines, Markdown, Parquet, WET, CDXJ, WACZ.
//!
//! An export is a read of the log and the archive; the crawl may go on meanwhile and never notices. [`export`] finds out which visits
//! count (`plan.rs`), then writes them in the order of the log: `rows.rs` page by page (`row.rs` makes one, `body.rs` finds its body, a
//! file for each format writes it), `index.rs` and `wacz.rs` the archive as a whole. `place.rs` keeps how far it is, so that the
//! same command goes on where the last one ended, however that ended.
//!
//! Invariants: what an export holds is a function of the log up to where it ended when the export began; memory follows
//! [`Options::memory_bytes`] and the largest page, not the crawl; OUT is whole or not there.

pub mod body;
mod error;
mod index;
mod jsonl;
mod markdown;
mod names;
mod options;
mod parquet;
mod place;
mod plan;
mod progress;
mod row;
mod rows;
mod sort;
mod wacz;
mod wet;
mod zip;

use std::path::Path;

use rhumb_store::disk::RealDisk;

pub use error::{ExportError, Result};
pub use options::{FORMATS, Filter, Format, Options};
pub use place::Target;
pub use progress::{Moment, Progress, Stage};
pub use row::{Row, RowLink};

use place::{Opened, Output, Place, State};

/// What an export came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Pages in it; for CDXJ lines.
    pub pages: u64,
    /// Bytes of the output.
    pub bytes: u64,
    /// Pages whose body could not be read, so that they stand there without text.
    pub bodies_missing: u64,
    /// Whether it went on with an earlier run.
    pub resumed: bool,
}

/// Exports the crawl in the directory `crawl`, or goes on with an export that was interrupted.
pub fn export(crawl: &Path, options: &Options, target: &Target, progress: &Progress) -> Result<Summary> {
    options.check()?;
    if matches!(target, Target::Stdout) && !options.format.streams() {
        return Err(ExportError::Refused(format!("{} cannot be written to a pipe", options.format.name())));
    }
    let disk = RealDisk::new(crawl);
    let mut place = match Place::open(target, options, plan::birth(&disk)?)? {
        Opened::Place(place) => place,
        Opened::Done(state) => return Ok(summary(&state, true)),
    };
    let resumed = place.state.planned;
    let written = write(crawl, &disk, &mut place, options, progress);
    match written {
        Ok(out) => Ok(summary(&place.finish(out)?, resumed)),
        Err(e) => {
            place.abandon(matches!(e, ExportError::Refused(_)));
            Err(e)
        }
    }
}

fn write(
    crawl: &Path,
    disk: &std::sync::Arc<dyn rhumb_store::disk::Disk>,
    place: &mut Place,
    options: &Options,
    progress: &Progress,
) -> Result<Output> {
    if !place.state.planned {
        let found = plan::make(disk, &place.dir, options, progress)?;
        let name = |path: &std::path::PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
        let state = &mut place.state;
        state.log_end = (found.end.segment, found.end.offset);
        state.archive_end = (found.archive_end.file, found.archive_end.offset);
        state.made = found.made.0;
        state.items = found.items;
        state.index_runs = found.index_runs.iter().filter_map(name).collect();
        state.planned = true;
        place.save()?;
    }
    if options.format.has_rows() {
        rows::run(crawl, disk, place, options, progress)
    } else if options.format == Format::Cdxj {
        index::run(place, options, progress)
    } else {
        wacz::run(crawl, disk, place, options, progress)
    }
}

fn summary(state: &State, resumed: bool) -> Summary {
    Summary { pages: state.rows, bytes: state.data_bytes + state.file_bytes, bodies_missing: state.missing, resumed }
}
