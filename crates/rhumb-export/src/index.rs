//! CDXJ: the index of the whole archive in one sorted file, as pywb and others look pages up.
//!
//! The lines were made and sorted in runs when the log was read; here the runs are merged. To go on after an interruption, as
//! many lines are passed over as are written already.

use std::time::Instant;

use crate::error::Result;
use crate::options::Options;
use crate::place::{Output, Place};
use crate::progress::{Progress, Stage};
use crate::sort::Merge;

/// The sorted lines of the archive's index, each once.
pub(crate) struct Lines {
    merge: Merge,
    last: Vec<u8>,
}

impl Lines {
    pub(crate) fn open(place: &Place) -> Result<Lines> {
        let runs = place.state.index_runs.iter().map(|name| place.dir.join(name)).collect();
        Ok(Lines { merge: Merge::of(runs, true)?, last: Vec::new() })
    }

    /// The next line, without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        while let Some(line) = self.merge.next()? {
            if line != self.last {
                self.last = line;
                return Ok(Some(&self.last));
            }
        }
        Ok(None)
    }
}

/// Writes the index.
pub(crate) fn run(place: &mut Place, options: &Options, progress: &Progress) -> Result<Output> {
    let mut out = place.output()?;
    let mut lines = Lines::open(place)?;
    progress.begin(Stage::Lines, 0);
    for _ in 0..place.state.done {
        lines.next()?;
    }
    let mut done = place.state.done;
    progress.add(done);
    let mut committed = Instant::now();
    while let Some(line) = lines.next()? {
        out.write(line)?;
        out.write(b"\n")?;
        done += 1;
        progress.add(1);
        if done.is_multiple_of(256) {
            progress.wrote(out.position);
            if progress.is_stopped() || committed.elapsed() >= options.commit_every {
                (place.state.done, place.state.rows) = (done, done);
                place.commit(&mut out)?;
                committed = Instant::now();
                progress.go_on()?;
            }
        }
    }
    (place.state.done, place.state.rows) = (done, done);
    progress.wrote(out.position);
    Ok(out)
}
