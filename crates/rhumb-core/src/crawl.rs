//! The crawl as a fold: everything a crawl knows, computed from its log one record at a time.
//!
//! [`Crawl::fold`] is the only way state changes for good. A running crawl appends a record to the log and
//! folds it; recovery loads a checkpoint and folds what came after. Both take the same path, and what a
//! record did twice is as if it did it once, so a crash at any instant loses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rhumb_store::archive::ArchiveEnd;
use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use rhumb_store::{Result, StoreError, Timestamp};

use crate::frontier::{Frontier, FrontierConfig, Next};
use crate::handover::Batch;
use crate::outcome::Outcome;
use crate::priority::Prioritizer;
use crate::record::Record;
use crate::seen::ContentSeen;
use crate::sieve::{FingerprintSet, Offered, Sieve, SieveConfig};
use crate::url::Url;
use crate::visit::{Entry, VisitRecord};

/// Bounds of all parts of the state.
#[derive(Clone, Debug)]
pub struct CrawlConfig {
    /// Politeness, queues, retries.
    pub frontier: FrontierConfig,
    /// Memory of the URL-seen test.
    pub sieve: SieveConfig,
    /// Explicit priorities.
    pub prioritizer: Prioritizer,
    /// Memory of the content-seen test.
    pub seen_bytes_max: usize,
    /// Redirects in a row that are followed.
    pub redirects_max: u8,
    /// Start of the pseudo-random choices.
    pub seed: u64,
}

/// Counts since the crawl began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Pages fetched (2xx).
    pub pages: u64,
    /// Body bytes on the wire, robots.txt included.
    pub bytes: u64,
    /// Requests made, robots.txt and failures included.
    pub visits: u64,
    /// robots.txt files fetched or tried.
    pub robots: u64,
    /// Pages whose body was known already.
    pub duplicates: u64,
    /// Final outcomes of URLs, by code.
    pub outcomes: BTreeMap<u8, u64>,
    /// Links found on pages.
    pub links: u64,
    /// Failed visits that are tried again.
    pub retries: u64,
    /// Time spent crawling in earlier processes, in milliseconds.
    pub ran_ms: u64,
    /// Processor time of earlier processes, in milliseconds.
    pub cpu_ms: u64,
}

/// Everything a crawl knows.
pub struct Crawl {
    /// Which URL comes next.
    pub frontier: Frontier,
    /// Which URLs are known.
    pub sieve: Sieve,
    /// Which bodies are known; shared with whoever archives pages.
    pub seen: Arc<Mutex<ContentSeen>>,
    /// Counts.
    pub totals: Totals,
    /// The archive is committed up to here.
    pub archive_end: ArchiveEnd,
    /// The archive's index goes this far, as of the checkpoint.
    pub index_end: ArchiveEnd,
    /// Records up to here are folded in.
    pub position: Position,
    /// When the last record was written.
    pub last_alive: Timestamp,
    /// URLs the user named: they open the scope.
    pub seeds: Vec<Url>,
    /// Where seeds redirect to: they open the scope too, but are the web's word, not the user's.
    pub leads: Vec<Url>,
    seed_keys: FingerprintSet,
    redirects_max: u8,
}

impl Crawl {
    /// A crawl that knows nothing.
    pub fn new(disk: Arc<dyn Disk>, config: &CrawlConfig) -> Result<Crawl> {
        Ok(Crawl {
            frontier: Frontier::new(disk.clone(), config.frontier.clone(), config.prioritizer.clone(), config.seed)?,
            sieve: Sieve::new(disk, config.sieve.clone())?,
            seen: Arc::new(Mutex::new(ContentSeen::new(config.seen_bytes_max))),
            totals: Totals::default(),
            archive_end: ArchiveEnd::default(),
            index_end: ArchiveEnd::default(),
            position: Position::START,
            last_alive: Timestamp(0),
            seeds: Vec::new(),
            leads: Vec::new(),
            seed_keys: FingerprintSet::default(),
            redirects_max: config.redirects_max,
        })
    }

    /// Whether the user named this URL before.
    pub fn has_seed(&self, url: &Url) -> bool {
        self.seed_keys.contains(&url.fingerprint().0)
    }

    /// Applies one record, whose end in the log is `position`. URLs found go into `found`, for the bus.
    pub fn fold(&mut self, record: &Record, position: Position, found: &mut Batch) -> Result<()> {
        match record {
            Record::Opened(_) | Record::Alive(_) | Record::Closed(_) => {}
            Record::Seed(entry, _) => {
                if self.seed_keys.insert(entry.url.fingerprint().0) {
                    self.seeds.push(entry.url.clone());
                }
                found.push(&entry.url, entry.depth, 0, true);
            }
            Record::Issued { host, at, .. } => self.frontier.issued(host, *at),
            Record::Dropped { entry, outcome, .. } => {
                self.frontier.dropped_in_log(entry);
                self.count(*outcome);
            }
            Record::Visited(visit) => self.fold_visit(visit, found)?,
        }
        self.position = position;
        self.last_alive = self.last_alive.max(record.at());
        Ok(())
    }

    fn fold_visit(&mut self, visit: &VisitRecord, found: &mut Batch) -> Result<()> {
        self.frontier.finish(visit)?;
        self.totals.visits += u64::from(visit.contacted());
        self.totals.bytes += visit.wire_bytes;
        if let Some(archived) = visit.archived {
            self.archive_end = self.archive_end.max(archived.end());
        }
        if !visit.purpose.is_page() {
            self.totals.robots += 1;
            return Ok(());
        }
        if visit.retry {
            self.totals.retries += 1;
            return Ok(());
        }
        self.count(visit.outcome);
        self.totals.pages += u64::from(visit.outcome == Outcome::Ok);
        self.totals.duplicates += u64::from(visit.duplicate_of.is_some());
        self.totals.links += if visit.outcome == Outcome::Redirect { 0 } else { visit.links.len() as u64 };
        if let (Some(digest), Some(_), None, Outcome::Ok) =
            (visit.digest, visit.archived, &visit.duplicate_of, visit.outcome)
        {
            let mut seen = self.seen.lock().expect("nobody panics while remembering content");
            seen.remember(digest, visit.entry.url.as_str(), visit.started, visit.wire_bytes);
        }
        // A redirect is the same page under another name: no deeper, but one redirect further on.
        let redirected = visit.outcome == Outcome::Redirect;
        let entry = &visit.entry;
        let redirects = if redirected { entry.redirects.saturating_add(1) } else { 0 };
        let depth = if redirected { entry.depth } else { entry.depth.saturating_add(1) };
        if redirects > self.redirects_max {
            return Ok(());
        }
        for link in visit.links.iter().filter(|l| l.wanted) {
            let seed = redirected && entry.seed;
            if seed && !self.leads.contains(&link.url) {
                self.leads.push(link.url.clone());
            }
            found.push(&link.url, depth, redirects, seed);
        }
        Ok(())
    }

    fn count(&mut self, outcome: Outcome) {
        *self.totals.outcomes.entry(outcome.code()).or_default() += 1;
    }

    /// URLs whose hosts are ours arrive: the sieve lets the new ones through to the frontier.
    pub fn receive(&mut self, batch: &Batch) -> Result<()> {
        let (sieve, frontier) = (&mut self.sieve, &mut self.frontier);
        batch.for_each(|fingerprint, _| -> Result<(), Trouble> {
            sieve.expect(fingerprint);
            Ok(())
        })?;
        batch.for_each(|fingerprint, entry| -> Result<(), Trouble> {
            if sieve.offer(fingerprint, |pending| pending.extend_from_slice(entry))? == Offered::New {
                frontier.admit(&Entry::from_bytes(entry)?)?;
            }
            Ok(())
        })?;
        self.do_work_inline()
    }

    /// Does the sieve's work here and now, if it has any.
    pub fn do_work_inline(&mut self) -> Result<()> {
        if !self.sieve.has_work() {
            return Ok(());
        }
        let frontier = &mut self.frontier;
        self.sieve.work(|_, entry| admit(frontier, entry))
    }

    /// Passes on to the frontier URLs that the sieve found to be new, `max` at most. Returns whether there are more.
    pub fn let_through(&mut self, max: usize) -> Result<bool> {
        let frontier = &mut self.frontier;
        self.sieve.let_through(max, |_, entry| admit(frontier, entry))
    }

    /// Lets the sieve decide on everything that waits in it.
    pub fn flush(&mut self) -> Result<()> {
        let frontier = &mut self.frontier;
        self.sieve.flush(|_, entry| admit(frontier, entry))
    }

    /// The next visit. An idle frontier first hears what the sieve holds back.
    pub fn next_visit(&mut self, now: Timestamp) -> Result<Next> {
        let next = self.frontier.next_visit(now)?;
        if !matches!(next, Next::Visit(_) | Next::Drop(..)) && self.sieve.has_pending() {
            self.flush()?;
            return self.frontier.next_visit(now);
        }
        Ok(next)
    }

    /// The body of a checkpoint: everything up to [`Crawl::position`].
    pub fn save(&mut self) -> Result<Vec<u8>> {
        let mut into = Vec::new();
        into.put_u64(u64::from(self.position.segment));
        into.put_u64(self.position.offset);
        for end in [self.archive_end, self.index_end] {
            into.put_u64(u64::from(end.file));
            into.put_u64(end.offset);
        }
        into.put_u64(self.last_alive.0);
        let t = &self.totals;
        for n in [t.pages, t.bytes, t.visits, t.robots, t.duplicates, t.links, t.retries, t.ran_ms, t.cpu_ms] {
            into.put_u64(n);
        }
        into.put_u64(t.outcomes.len() as u64);
        for (&code, &count) in &t.outcomes {
            into.put_u8(code);
            into.put_u64(count);
        }
        for urls in [&self.seeds, &self.leads] {
            into.put_u64(urls.len() as u64);
            urls.iter().for_each(|s| into.put_str(s.as_str()));
        }
        self.seen.lock().expect("nobody panics while remembering content").save(&mut into);
        self.sieve.save(&mut into)?;
        self.frontier.save(&mut into)?;
        Ok(into)
    }

    /// Reads what [`Crawl::save`] wrote.
    pub fn load(disk: Arc<dyn Disk>, config: &CrawlConfig, body: &[u8]) -> Result<Crawl> {
        let mut crawl = Crawl::new(disk.clone(), config)?;
        let mut from = Take::new(body);
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        crawl.load_counts(&mut from).map_err(malformed)?;
        crawl.seen.lock().expect("nobody panics while remembering content").load(&mut from).map_err(malformed)?;
        crawl.sieve = Sieve::load(disk, config.sieve.clone(), &mut from)?;
        crawl.frontier.load(&mut from).map_err(malformed)?;
        Ok(crawl)
    }

    fn load_counts(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        self.position = Position { segment: from.u32()?, offset: from.u64()? };
        for end in [&mut self.archive_end, &mut self.index_end] {
            *end = ArchiveEnd { file: from.u32()?, offset: from.u64()? };
        }
        self.last_alive = Timestamp(from.u64()?);
        let t = &mut self.totals;
        for n in [
            &mut t.pages,
            &mut t.bytes,
            &mut t.visits,
            &mut t.robots,
            &mut t.duplicates,
            &mut t.links,
            &mut t.retries,
            &mut t.ran_ms,
            &mut t.cpu_ms,
        ] {
            *n = from.u64()?;
        }
        for _ in 0..from.u64()? {
            let code = from.u8()?;
            t.outcomes.insert(code, from.u64()?);
        }
        for urls in [&mut self.seeds, &mut self.leads] {
            for _ in 0..from.u64()? {
                urls.push(Url::from_canonical(from.str()?).ok_or(Malformed("a seed is not canonical"))?);
            }
        }
        self.seed_keys = self.seeds.iter().map(|s| s.fingerprint().0).collect();
        Ok(())
    }

    /// Files that a checkpoint written after this call no longer needs.
    pub fn take_garbage(&mut self) -> Vec<String> {
        let mut names = self.sieve.take_garbage();
        names.append(&mut self.frontier.take_garbage());
        names
    }

    /// Removes state files that the loaded checkpoint does not know: they were written after it, and the replay
    /// of the log writes them again.
    pub fn remove_strays(&self, disk: &dyn Disk) -> Result<()> {
        let mut needed = self.frontier.file_names();
        needed.extend(self.sieve.file_names().map(String::from));
        for dir in [rhumb_store::fifo::DIR, crate::sieve::DIR] {
            for name in disk.list(dir)? {
                let name = format!("{dir}/{name}");
                if !needed.contains(&name) {
                    disk.remove(&name)?;
                }
            }
        }
        Ok(())
    }
}

fn admit(frontier: &mut Frontier, entry: &[u8]) -> Result<()> {
    let entry = Entry::from_bytes(entry).map_err(|Malformed(what)| StoreError::corrupt("sieve input", 0, what))?;
    frontier.admit(&entry)
}

/// Either our files or our machinery: both end the crawl.
enum Trouble {
    Malformed(Malformed),
    Store(StoreError),
}

impl From<Malformed> for Trouble {
    fn from(m: Malformed) -> Self {
        Trouble::Malformed(m)
    }
}

impl From<StoreError> for Trouble {
    fn from(e: StoreError) -> Self {
        Trouble::Store(e)
    }
}

impl From<Trouble> for StoreError {
    fn from(t: Trouble) -> Self {
        match t {
            Trouble::Malformed(Malformed(what)) => StoreError::corrupt("a batch of URLs", 0, what),
            Trouble::Store(e) => e,
        }
    }
}
