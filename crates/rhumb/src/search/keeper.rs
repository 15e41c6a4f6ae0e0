//! Keeps the text index while a crawl runs: a thread that follows the log as any reader does, and writes parts.
//!
//! The crawl does not know of it. If it fails, the crawl goes on, and whoever searches next makes the index from the log.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rhumb_index::Result;
use rhumb_index::arrange::{Arranged, Arrangement, Job};
use rhumb_index::page::Weights;
use rhumb_index::store::Writer;
use rhumb_store::StoreError;
use rhumb_store::disk::{DirLock, Disk};

use super::fold::{self, LogLinks, Reached};
use super::ranks::Qualities;

/// How often the log is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// A page is not in memory alone for longer than this, so that it can be found within seconds of its fetch.
const UNWRITTEN_MAX: Duration = Duration::from_secs(2);

/// What an index is made with.
#[derive(Clone, Debug)]
pub struct Making {
    /// How often words count.
    pub weights: Weights,
    /// How pages are arranged.
    pub arrangement: Arrangement,
    /// Memory for pages that are not on disk yet.
    pub memory_bytes: usize,
    /// Whether there is a link graph to take ranks from.
    pub has_graph: bool,
}

/// The thread that keeps the index.
pub struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Keeper {
    /// Begins.
    pub fn start(dir: &Path, disk: Arc<dyn Disk>, making: Making) -> std::io::Result<Keeper> {
        let (stop, stopped) = mpsc::channel();
        let dir = dir.to_path_buf();
        let keep = move || {
            // Whoever searches may be bringing it up to date at this moment, and goes on doing so if the crawl is over before.
            let _lock: DirLock = loop {
                match fold::lock(&dir) {
                    Err(StoreError::Locked(_)) => match stopped.recv_timeout(EVERY) {
                        Err(RecvTimeoutError::Timeout) => {}
                        Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    },
                    taken => break taken?,
                }
            };
            let mut writer = fold::open(&disk, making.weights, making.memory_bytes)?;
            let mut arranging: Option<JoinHandle<Result<Arranged>>> = None;
            let mut written = Instant::now();
            loop {
                while fold::follow(&mut writer, &disk)? == Reached::Full {
                    flush(&mut writer)?;
                    written = Instant::now();
                }
                if writer.has_pending() && written.elapsed() >= UNWRITTEN_MAX {
                    flush(&mut writer)?;
                    written = Instant::now();
                }
                if arranging.as_ref().is_some_and(JoinHandle::is_finished)
                    && let Some(done) = arranging.take()
                {
                    writer.finish_arranging(joined(done)?)?;
                }
                let bytes = fold::log_bytes(&*disk)?;
                if arranging.is_none() && writer.is_due(bytes) {
                    let job = writer.begin_arranging(&making.arrangement, bytes)?;
                    arranging = Some(arrange(job, &writer, disk.clone())?);
                }
                match stopped.recv_timeout(EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if let Some(done) = arranging.take() {
                writer.finish_arranging(joined(done)?)?;
            }
            while fold::follow(&mut writer, &disk)? == Reached::Full {
                flush(&mut writer)?;
            }
            writer.flush()
        };
        let thread = std::thread::Builder::new().name("index".to_string()).spawn(keep)?;
        Ok(Keeper { stop, thread })
    }

    /// Takes in the rest of the log and ends.
    pub fn finish(self) -> std::thread::Result<Result<()>> {
        let _ = self.stop.send(());
        self.thread.join()
    }
}

fn flush(writer: &mut Writer) -> Result<()> {
    writer.flush()?;
    while writer.merge()? {}
    Ok(())
}

/// Arranges pages where nobody waits for it.
fn arrange(job: Job, writer: &Writer, disk: Arc<dyn Disk>) -> Result<JoinHandle<Result<Arranged>>> {
    let until = writer.position();
    let work = move || job.run(&mut LogLinks::new(disk, until, None)?);
    Ok(std::thread::Builder::new().name("index-sort".to_string()).spawn(work)?)
}

fn joined(thread: JoinHandle<Result<Arranged>>) -> Result<Arranged> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Brings the index of a directory up to its log and puts everything where it belongs. The caller holds the lock of the index.
pub fn settle(dir: &Path, disk: &Arc<dyn Disk>, making: &Making) -> anyhow::Result<u64> {
    let mut writer = fold::open(disk, making.weights, making.memory_bytes)?;
    while fold::follow(&mut writer, disk)? == Reached::Full {
        flush(&mut writer)?;
    }
    let bytes = fold::log_bytes(&**disk)?;
    let qualities = if making.has_graph && writer.pages() > 0 { Qualities::of_graph(dir)? } else { None };
    let mut links = LogLinks::new(disk.clone(), writer.position(), qualities)?;
    writer.settle(&mut links, &making.arrangement, bytes)?;
    Ok(writer.pages())
}
