//! Keeps the link graph while a crawl runs: a thread that follows the log as any reader does, and writes levels.
//!
//! The crawl does not know of it. If it fails, the crawl goes on, and whoever asks for links next makes the graph from the log.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rhumb_graph::code::Effort;
use rhumb_store::disk::{DirLock, Disk};
use rhumb_store::{Result, StoreError};

use super::follow::{self, Reached};

/// How often the log is looked at. Those who ask read the rest of it themselves, so nothing waits for this.
const EVERY: Duration = Duration::from_secs(2);

/// The thread that keeps the graph.
pub struct Keeper {
    stop: Sender<bool>,
    thread: JoinHandle<Result<()>>,
}

impl Keeper {
    /// Begins, with so much memory for links that are not on disk yet.
    pub fn start(dir: &Path, disk: Arc<dyn Disk>, memory_max: usize) -> std::io::Result<Keeper> {
        let (stop, stopped) = mpsc::channel();
        let dir = dir.to_path_buf();
        let keep = move || {
            let _lock: DirLock = follow::lock(&dir)?;
            let mut graph = match follow::open_to_write(disk.clone()) {
                // It can be made anew, so nobody need come and do it.
                Err(e) if is_damage(&e) => {
                    tracing::warn!(error = %e, "the link graph is made anew from the log");
                    rhumb_graph::store::discard(&*disk)?;
                    follow::open_to_write(disk.clone())?
                }
                opened => opened?,
            };
            loop {
                while follow::follow(&mut graph, &disk, memory_max)? == Reached::Full {
                    follow::flush(&mut graph)?;
                }
                match stopped.recv_timeout(EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(true) => return follow::build(&mut graph, &disk, memory_max, Some(Effort::Fast)),
                    Ok(false) | Err(RecvTimeoutError::Disconnected) => {
                        return follow::build(&mut graph, &disk, memory_max, None);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("links".to_string()).spawn(keep)?;
        Ok(Keeper { stop, thread })
    }

    /// Takes in the rest of the log and ends; with `settle`, everything becomes one level.
    pub fn finish(self, settle: bool) -> std::thread::Result<Result<()>> {
        let _ = self.stop.send(settle);
        self.thread.join()
    }
}

fn is_damage(e: &StoreError) -> bool {
    match e {
        StoreError::Corrupt { .. } | StoreError::Version { .. } => true,
        StoreError::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
