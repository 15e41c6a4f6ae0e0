//! One simulated process: the real [`Crawl`] and the real log, driven as the engine drives them.
//!
//! This is the only file that touches them. Opening, recording, committing and checkpointing take the steps of
//! `Engine::open`, `record`, `commit` and `checkpoint` in `rhumb-crawl`, in the same order; what is left out is the
//! archive, whose bytes no decision depends on.

use std::collections::VecDeque;
use std::sync::Arc;

use rhumb_core::crawl::{Crawl, CrawlConfig, Work};
use rhumb_core::frontier::{Hold, Next};
use rhumb_core::handover::Batch;
use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_core::url::Host;
use rhumb_core::visit::{Entry, Visit};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::log::{self, Log, LogReader, Position};
use rhumb_store::{Result, StoreError, Timestamp, checkpoint};

/// How the bus treats a batch of URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// At once, once.
    Now,
    /// At once, and a copy goes astray and comes again.
    Twice,
    /// Not yet.
    Late,
}

/// The frontier's answer to "what now?".
#[derive(Debug)]
pub(crate) enum Asked {
    Visit(Box<Visit>),
    Drop(Box<Entry>, Outcome),
    Hold(Host, Hold),
    WaitUntil(Timestamp),
    Idle,
}

/// See the module's header.
pub(crate) struct Process {
    pub crawl: Crawl,
    log: Log,
    disk: Arc<dyn Disk>,
    checkpoint_number: u64,
    found: Batch,
    /// Batches that the bus keeps for later.
    pub held: Vec<Batch>,
    /// Work on its way: it is done some time after it was taken, as on another thread.
    working: VecDeque<Work>,
    asked: u64,
    /// Segments of the log that the checkpoint has passed are removed.
    forget_log: bool,
}

/// A piece of work ends after so many questions for a visit, if there is nothing to do before.
const WORK_TAKES: u64 = 40;
/// So often in a row the frontier may ask to be asked again at once.
const ROUNDS_MAX: u32 = 100_000;
/// URLs that the sieve found to be new are passed on so many at a time.
const THROUGH_MAX: usize = 5;

impl Process {
    /// Opens what is on the disk: the newest checkpoint, then the log behind it; cuts what a crash left half-done.
    pub fn open(disk: Arc<dyn Disk>, config: &CrawlConfig, forget_log: bool, now: Timestamp) -> Result<Process> {
        let segment_bytes = if forget_log { 64 << 20 } else { 1 << 18 };
        let (mut crawl, checkpoint_number) = load_checkpoint(&disk, config)?;
        let log = Log::open(disk.clone(), crawl.position, segment_bytes)?;
        let fresh = log.position() == Position::START;
        replay(&disk, &mut crawl)?;
        let died = crawl.died_by(now);
        crawl.frontier.recover(died);
        crawl.work_elsewhere();
        let mut process = Process {
            crawl,
            log,
            disk,
            checkpoint_number,
            found: Batch::default(),
            held: Vec::new(),
            working: VecDeque::new(),
            asked: 0,
            forget_log,
        };
        if fresh {
            process.checkpoint()?;
        }
        Ok(process)
    }

    /// Where the log ends, counting what is not committed yet.
    pub fn position(&self) -> Position {
        self.log.position()
    }

    /// Appends a record and folds it in; the bus takes what it found.
    pub fn record(&mut self, record: &Record, delivery: Delivery) -> Result<Position> {
        let position = self.log.append(record.kind(), |into| record.put(into));
        self.crawl.fold(record, position, &mut self.found)?;
        if !self.found.is_empty() {
            match delivery {
                Delivery::Now => self.crawl.receive(&self.found)?,
                Delivery::Twice => {
                    self.held.push(self.found.clone());
                    self.crawl.receive(&self.found)?;
                }
                Delivery::Late => self.held.push(std::mem::take(&mut self.found)),
            }
            self.found.clear();
        }
        Ok(position)
    }

    /// A batch that the bus kept arrives.
    pub fn receive(&mut self, batch: &Batch) -> Result<()> {
        self.crawl.receive(batch)
    }

    /// What to do now. An answer that means waiting is given only when no work is left that could change it.
    pub fn ask(&mut self, now: Timestamp) -> Result<Asked> {
        self.asked += 1;
        if self.asked.is_multiple_of(WORK_TAKES) {
            self.finish_one()?;
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            let more = self.crawl.let_through(THROUGH_MAX)?;
            let next = self.crawl.next_visit(now)?;
            while let Some(work) = self.crawl.take_work() {
                self.working.push_back(work);
            }
            match next {
                Next::Visit(visit) => return Ok(Asked::Visit(visit)),
                Next::Drop(entry, outcome) => return Ok(Asked::Drop(entry, outcome)),
                Next::Hold(host, hold) => return Ok(Asked::Hold(host, hold)),
                // There is more to be moved than one call should take.
                Next::WaitUntil(at) if at <= now && rounds < ROUNDS_MAX => {}
                Next::WaitUntil(_) | Next::Idle if more || self.finish_one()? => {}
                Next::WaitUntil(at) => return Ok(Asked::WaitUntil(at)),
                Next::Idle => return Ok(Asked::Idle),
            }
        }
    }

    fn finish_one(&mut self) -> Result<bool> {
        let Some(work) = self.working.pop_front() else { return Ok(false) };
        self.crawl.finish_work(work.run()?)?;
        Ok(true)
    }

    /// The commit point.
    pub fn commit(&mut self) -> Result<()> {
        self.log.commit()
    }

    /// Writes the state, so that the next start need not read the log up to here. The bus must have delivered
    /// everything: what it holds is in the records before this point, and nobody would read them again.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.commit()?;
        let saved = self.crawl.save()?;
        self.log.sync()?;
        self.checkpoint_number += 1;
        saved.write(&*self.disk, self.checkpoint_number)?;
        if self.forget_log {
            let passed = self.crawl.position.segment;
            for segment in log::segments(&*self.disk)?.into_iter().filter(|&s| s < passed) {
                self.disk.remove(&log::segment_name(segment))?;
            }
        }
        Ok(())
    }
}

fn load_checkpoint(disk: &Arc<dyn Disk>, config: &CrawlConfig) -> Result<(Crawl, u64)> {
    disk.make_dir("state")?;
    let found = match checkpoint::load(&**disk)? {
        checkpoint::Found::Whole(number, body) => match Crawl::load(disk.clone(), config, &body) {
            Ok(crawl) => Some((crawl, number)),
            // Derived state that does not read back is made anew from the log.
            Err(StoreError::Corrupt { .. } | StoreError::Version { .. } | StoreError::Io { .. }) => None,
            Err(e) => return Err(e),
        },
        checkpoint::Found::None | checkpoint::Found::Unusable(_) => None,
    };
    let (crawl, number) = match found {
        Some(found) => found,
        None => {
            checkpoint::discard_all(&**disk)?;
            (Crawl::new(disk.clone(), config)?, 0)
        }
    };
    crawl.remove_strays(&**disk)?;
    Ok((crawl, number))
}

/// Folds the records behind the checkpoint.
fn replay(disk: &Arc<dyn Disk>, crawl: &mut Crawl) -> Result<()> {
    let mut reader = LogReader::open(disk.clone(), crawl.position)?;
    let mut found = Batch::default();
    loop {
        let at = reader.position();
        let Some((kind, payload)) = reader.next()? else { return crawl.flush() };
        let record = Record::take(kind, payload)
            .map_err(|Malformed(what)| StoreError::corrupt(&log::segment_name(at.segment), at.offset, what))?;
        crawl.fold(&record, reader.position(), &mut found)?;
        crawl.receive(&found)?;
        found.clear();
    }
}
