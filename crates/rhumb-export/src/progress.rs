//! How far an export is, for whoever shows it, and whether it should stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{ExportError, Result};

/// What an export is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Reading the log; counted in bytes.
    #[default]
    Reading,
    /// Writing pages; counted in pages.
    Pages,
    /// Writing the index; counted in lines, whose number nobody knows before.
    Lines,
    /// Copying the archive; counted in bytes.
    Copying,
}

/// Shared between the export and its display.
#[derive(Debug, Default)]
pub struct Progress {
    stage: Mutex<Stage>,
    done: AtomicU64,
    total: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

/// How far it is at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// What is being done.
    pub stage: Stage,
    /// How much of it is done, in the stage's unit.
    pub done: u64,
    /// How much there is; 0 if that is not known.
    pub total: u64,
    /// Bytes of the output so far.
    pub bytes: u64,
}

impl Progress {
    /// Asks the export to end at the next place where it can go on later.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// How far it is.
    pub fn moment(&self) -> Moment {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let stage = *self.stage.lock().expect("nobody panics while telling the stage");
        Moment { stage, done: of(&self.done), total: of(&self.total), bytes: of(&self.bytes) }
    }

    pub(crate) fn begin(&self, stage: Stage, total: u64) {
        *self.stage.lock().expect("nobody panics while telling the stage") = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn go_on(&self) -> Result<()> {
        if self.is_stopped() { Err(ExportError::Interrupted) } else { Ok(()) }
    }
}
