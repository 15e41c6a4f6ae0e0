//! The crawl as a fold: everything a crawl knows, computed from its log one record at a time.
//!
//! [`Crawl::fold`] is the only way state changes for good. A running crawl appends a record to the log and
//! folds it; recovery loads a checkpoint and folds what came after. Both take the same path, and what a
//! record did twice is as if it did it once, so a crash at any instant loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rhumb_store::archive::ArchiveEnd;
use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use rhumb_store::table::{TableDone, TableWork};
use rhumb_store::{Result, StoreError, Timestamp, checkpoint};

use crate::frontier::{Frontier, FrontierConfig, Next};
use crate::handover::Batch;
use crate::outcome::Outcome;
use crate::priority::Prioritizer;
use crate::reading::Readings;
use crate::record::Record;
use crate::seen::{Archived, Known, Mirrors, PageRef, Seen, SeenConfig, SeenDone, SeenWork};
use crate::sieve::{FingerprintSet, Offered, Sieve, SieveConfig, SieveDone, SieveWork};
use crate::sitemap::{Hint, SITEMAPS_MAX, SitemapLevel};
use crate::url::{Fingerprint, Url};
use crate::visit::{Entry, LinkKind, Outlink, Purpose, VisitRecord};

/// Where the state keeps its files.
pub const STATE_DIRS: [&str; 4] =
    [rhumb_store::fifo::DIR, crate::sieve::DIR, crate::frontier::HOSTS_DIR, crate::seen::DIR];

/// A checkpoint on its way to the disk.
pub struct Saved {
    body: Vec<u8>,
    unsynced: Vec<String>,
    garbage: Vec<String>,
}

impl Saved {
    /// Makes the checkpoint durable as number `number`: the files it names first, then itself. Only then can what it
    /// no longer needs be removed. Runs on any thread, while the crawl goes on.
    pub fn write(self, disk: &dyn Disk, number: u64) -> Result<()> {
        for name in &self.unsynced {
            disk.open(name)?.sync()?;
        }
        STATE_DIRS.iter().try_for_each(|dir| disk.sync_dir(dir))?;
        checkpoint::save(disk, number, &self.body)?;
        self.garbage.iter().try_for_each(|name| disk.remove(name))
    }

    /// Bytes of the checkpoint itself.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// Work that takes long. It is decided here and done elsewhere: hand what [`Crawl::take_work`] gives to any thread, and the
/// result to [`Crawl::finish_work`].
pub enum Work {
    /// Looking up URLs, writing and merging runs, making a larger filter.
    Sieve(SieveWork),
    /// Merging host states on disk.
    Hosts(TableWork),
    /// Looking up what pages say, writing and merging what is known.
    Contents(SeenWork),
}

/// The result of a [`Work`].
pub enum WorkDone {
    /// The sieve's.
    Sieve(SieveDone),
    /// Host states are merged.
    Hosts(TableDone),
    /// Duplicates may have been found.
    Contents(SeenDone),
}

impl Work {
    /// Does it.
    pub fn run(self) -> Result<WorkDone> {
        match self {
            Work::Sieve(work) => work.run().map(WorkDone::Sieve),
            Work::Hosts(work) => work.run().map(WorkDone::Hosts),
            Work::Contents(work) => work.run().map(WorkDone::Contents),
        }
    }
}

/// Bounds of all parts of the state.
#[derive(Clone, Debug)]
pub struct CrawlConfig {
    /// Politeness, queues, retries.
    pub frontier: FrontierConfig,
    /// Memory of the URL-seen test.
    pub sieve: SieveConfig,
    /// Explicit priorities.
    pub prioritizer: Prioritizer,
    /// Memory of the content-seen test: half of it for what is archived, three eighths for what pages say, one for mirrors.
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
    /// Pages whose text is that of an older page, or nearly so.
    pub near_duplicates: u64,
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
    pub seen: Arc<Mutex<Archived>>,
    /// What pages say, and which say the same.
    pub contents: Seen,
    /// Which hosts have the same pages.
    pub mirrors: Mirrors,
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
    /// Sources that others filled, if the crawl reads instead of fetching.
    pub readings: Readings,
    /// Where seeds redirect to: they open the scope too, but are the web's word, not the user's.
    pub leads: Vec<Url>,
    seed_keys: FingerprintSet,
    redirects_max: u8,
    works_elsewhere: bool,
}

impl Crawl {
    /// A crawl that knows nothing.
    pub fn new(disk: Arc<dyn Disk>, config: &CrawlConfig) -> Result<Crawl> {
        Ok(Crawl {
            frontier: Frontier::new(disk.clone(), config.frontier.clone(), config.prioritizer.clone(), config.seed)?,
            sieve: Sieve::new(disk.clone(), config.sieve.clone())?,
            seen: Arc::new(Mutex::new(Archived::new(config.seen_bytes_max / 2))),
            contents: Seen::new(disk, contents_config(config))?,
            mirrors: Mirrors::new(config.seen_bytes_max / 8),
            totals: Totals::default(),
            archive_end: ArchiveEnd::default(),
            index_end: ArchiveEnd::default(),
            position: Position::START,
            last_alive: Timestamp(0),
            seeds: Vec::new(),
            leads: Vec::new(),
            seed_keys: FingerprintSet::default(),
            readings: Readings::default(),
            redirects_max: config.redirects_max,
            works_elsewhere: false,
        })
    }

    /// Whether the user named this URL before.
    pub fn has_seed(&self, url: &Url) -> bool {
        self.seed_keys.contains(&url.fingerprint().0)
    }

    /// Applies one record, whose end in the log is `position`. URLs found go into `found`, for the bus.
    pub fn fold(&mut self, record: &Record, position: Position, found: &mut Batch) -> Result<()> {
        match record {
            Record::Alive(_) => {}
            Record::Closed { finished, .. } => self.frontier.closed(*finished),
            // Contacts without an end were lost when the process before this one died. Left alone they would seem to
            // have lasted until the next one dies, and their hosts would be given ten times that long a pause.
            Record::Opened(at) => {
                self.frontier.recover(self.died_by(*at));
                self.frontier.opened(*at);
            }
            Record::Held { host, hold } => self.frontier.held_in_log(host, hold)?,
            Record::Seed(entry, _) => {
                if self.seed_keys.insert(entry.url.fingerprint().0) {
                    self.seeds.push(entry.url.clone());
                }
                found.push(&entry.url, entry.depth, 0, true);
            }
            Record::Issued { host, at, .. } => self.frontier.issued(host, *at)?,
            Record::Dropped { entry, outcome, .. } => {
                self.frontier.dropped_in_log(entry)?;
                self.count(*outcome);
            }
            Record::Visited(visit) => self.fold_visit(visit, found)?,
            Record::Rule(change, at) => self.frontier.traps.apply(change, *at),
            Record::Read(reading, _) => self.readings.set(reading),
            Record::Duplicate(duplicate, _) => {
                self.contents.reported(duplicate.page);
                self.totals.near_duplicates += 1;
                self.mirrors.duplicate(&duplicate.url, &duplicate.of);
            }
        }
        self.position = position;
        // What others fetched was long ago, or says that it will be: that is no sign of life.
        if !matches!(record, Record::Visited(_)) || self.readings.is_empty() {
            self.last_alive = self.last_alive.max(record.at());
        }
        Ok(())
    }

    /// When the process that wrote the last record had died, at the latest, if another begins at `began`: it wrote
    /// "alive" within the last second or two.
    pub fn died_by(&self, began: Timestamp) -> Timestamp {
        self.last_alive.plus_ms(2_000).min(began.max(self.last_alive))
    }

    fn fold_visit(&mut self, visit: &VisitRecord, found: &mut Batch) -> Result<()> {
        // The record begins where the one before it ended.
        let page = PageRef::at(self.position);
        let known = self.fold_content(visit, page);
        // What was read from a source concerns no host.
        let read = self.readings.count_visit();
        if !read {
            self.frontier.finish(visit, known)?;
        }
        self.totals.visits += u64::from(!read && visit.contacted());
        self.totals.bytes += visit.wire_bytes;
        if let Some(archived) = visit.archived {
            self.archive_end = self.archive_end.max(archived.end());
        }
        if !visit.purpose.is_page() {
            self.totals.robots += 1;
            let sitemaps = || visit.links.iter().filter(|l| l.wanted && l.kind == LinkKind::Sitemap);
            let level = SitemapLevel::first(sitemaps().count());
            if let (Purpose::Robots { host, .. }, true) = (&visit.purpose, sitemaps().next().is_some()) {
                self.frontier.ask_sitemap(host)?;
            }
            sitemaps().take(SITEMAPS_MAX).for_each(|link| found.push_sitemap(&link.url, 0, 0, level));
            return Ok(());
        }
        if visit.retry {
            self.totals.retries += 1;
            return Ok(());
        }
        self.count(visit.outcome);
        let is_sitemap = visit.entry.sitemap.is_some();
        self.totals.pages += u64::from(visit.outcome == Outcome::Ok && !is_sitemap);
        self.totals.duplicates += u64::from(visit.duplicate_of.is_some() && !is_sitemap);
        self.totals.links += if visit.outcome == Outcome::Redirect { 0 } else { visit.links.len() as u64 };
        if let (Some(digest), Some(_), None, Outcome::Ok) =
            (visit.digest, visit.archived, &visit.duplicate_of, visit.outcome)
        {
            let mut seen = self.seen.lock().expect("nobody panics while remembering content");
            seen.remember(digest, visit.entry.url.as_str(), visit.started, visit.wire_bytes);
        }
        let host = visit.entry.url.host();
        if visit.sitemap_wanted && self.frontier.ask_sitemap(&host)? {
            found.push_sitemap(&host.sitemap_url(), 0, 0, SitemapLevel::first(1));
        }
        if let Some(key) = copy_key(visit) {
            self.contents.remember(page, key);
        }
        if visit.copy_of.is_some() {
            return Ok(());
        }
        // A redirect is the same page under another name: no deeper, but one redirect further on.
        let redirected = visit.outcome == Outcome::Redirect;
        let entry = &visit.entry;
        let depth = if redirected { entry.depth } else { entry.depth.saturating_add(1) };
        let sitemaps = visit.links.iter().filter(|l| l.wanted && l.kind == LinkKind::Sitemap).count();
        for link in visit.links.iter().filter(|l| l.wanted) {
            // So is a page that sends its reader on, though it is a page of its own.
            let sent_on = redirected || link.kind == LinkKind::Refresh;
            let redirects = if sent_on { entry.redirects.saturating_add(1) } else { 0 };
            if redirects > self.redirects_max {
                continue;
            }
            if let Some(level) = entry.sitemap.filter(|_| redirected || link.kind == LinkKind::Sitemap) {
                // A redirect leads to the same sitemap, an index to further ones, which are no deeper than it.
                if let Some(level) = if redirected { Some(level) } else { level.next(sitemaps) } {
                    found.push_sitemap(&link.url, entry.depth, redirects, level);
                }
                continue;
            }
            let seed = redirected && entry.seed;
            if seed && !self.leads.contains(&link.url) {
                self.leads.push(link.url.clone());
            }
            if link.hint == Hint::default() {
                found.push(&link.url, depth, redirects, seed);
            } else {
                found.push_listed(&link.url, depth, redirects, link.hint);
            }
        }
        Ok(())
    }

    /// What a page says now takes the place of what it said before. Returns what its next visit should know.
    fn fold_content(&mut self, visit: &VisitRecord, page: PageRef) -> Option<Box<Known>> {
        let before = visit.entry.known.as_ref();
        let is_page = visit.purpose.is_page() && !visit.retry && visit.entry.sitemap.is_none();
        let gone = matches!(visit.outcome, Outcome::NotFound | Outcome::Redirect);
        if !is_page || !(gone || visit.outcome == Outcome::Ok) {
            return before.cloned();
        }
        let content = visit.content.as_ref().filter(|_| !gone);
        if content.is_some() {
            self.mirrors.page(&visit.entry.url);
        }
        if content.is_some() && before.map(|b| &b.content) == content {
            return before.cloned();
        }
        if let Some(before) = before {
            self.contents.delete(before.page);
        }
        let content = content?;
        self.contents.offer(page, content);
        Some(Box::new(Known { page, content: content.clone() }))
    }

    /// The page of which this one is a copy, if one is remembered: its links lead to nothing new (SPEC C1) and are not followed. Where the user
    /// wants to begin is not in question.
    pub fn copy_of(&self, visit: &VisitRecord) -> Option<PageRef> {
        let known = self.contents.known_exactly(copy_key(visit).filter(|_| !visit.entry.seed)?)?;
        // A page is no copy of what it was when it was last here.
        (visit.entry.known.as_ref().map(|k| k.page) != Some(known)).then_some(known)
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
        if self.works_elsewhere { Ok(()) } else { self.work() }
    }

    /// From now on somebody asks for work ([`Crawl::take_work`]) and has it done on other threads. Before, it is done in place as it
    /// comes up: in replays, in tests, in simulations.
    pub fn work_elsewhere(&mut self) {
        self.works_elsewhere = true;
    }

    /// Does all work that is due here and now, and passes on what it brings out.
    pub fn work(&mut self) -> Result<()> {
        if self.sieve.has_work() {
            let frontier = &mut self.frontier;
            self.sieve.work(|_, entry| admit(frontier, entry))?;
        }
        while let Some(work) = self.frontier.take_work() {
            self.frontier.finish_work(work.run()?);
        }
        self.contents.work()
    }

    /// Whether so much waits for work to be done that no more visits should begin.
    pub fn must_wait(&self) -> bool {
        self.sieve.must_wait() || self.contents.must_wait()
    }

    /// Passes on to the frontier URLs that the sieve found to be new, `max` at most. Returns whether it should be called again soon.
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
        if matches!(next, Next::Visit(_) | Next::Drop(..) | Next::Hold(..)) || !self.sieve.has_pending() {
            return Ok(next);
        }
        if !self.works_elsewhere {
            self.flush()?;
            return self.frontier.next_visit(now);
        }
        self.sieve.want_check();
        // Work is out or about to be taken, and its end is an event.
        Ok(if matches!(next, Next::Idle) { Next::WaitUntil(Timestamp(u64::MAX)) } else { next })
    }

    /// Work that is due. There are three kinds, and one of each is out at a time.
    pub fn take_work(&mut self) -> Option<Work> {
        let work = self.sieve.take_work().map(Work::Sieve);
        let work = work.or_else(|| self.frontier.take_work().map(Work::Hosts));
        work.or_else(|| self.contents.take_work().map(Work::Contents))
    }

    /// Takes in the result of a piece of work.
    pub fn finish_work(&mut self, done: WorkDone) -> Result<()> {
        match done {
            WorkDone::Sieve(done) => self.sieve.finish_work(done)?,
            WorkDone::Hosts(done) => self.frontier.finish_work(done),
            WorkDone::Contents(done) => self.contents.finish_work(done),
        }
        Ok(())
    }

    /// A checkpoint of everything up to [`Crawl::position`]. It is cheap: what changed was written to files, which remain to be
    /// made durable.
    pub fn save(&mut self) -> Result<Saved> {
        let mut unsynced = Vec::new();
        let mut into = Vec::new();
        into.put_u64(Fingerprint::key());
        into.put_u64(u64::from(self.position.segment));
        into.put_u64(self.position.offset);
        for end in [self.archive_end, self.index_end] {
            into.put_u64(u64::from(end.file));
            into.put_u64(end.offset);
        }
        into.put_u64(self.last_alive.0);
        let t = &self.totals;
        let duplicates = [t.duplicates, t.near_duplicates];
        for n in [t.pages, t.bytes, t.visits, t.robots]
            .into_iter()
            .chain(duplicates)
            .chain([t.links, t.retries, t.ran_ms, t.cpu_ms])
        {
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
        self.contents.save(&mut into);
        self.mirrors.save(&mut into);
        self.sieve.save(&mut into, &mut unsynced);
        self.frontier.save(&mut into, &mut unsynced)?;
        if !self.readings.is_empty() {
            self.readings.save(&mut into);
        }
        let mut garbage = self.sieve.take_garbage();
        garbage.append(&mut self.frontier.take_garbage());
        garbage.append(&mut self.contents.take_garbage());
        Ok(Saved { body: into, unsynced, garbage })
    }

    /// Reads what [`Crawl::save`] wrote.
    pub fn load(disk: Arc<dyn Disk>, config: &CrawlConfig, body: &[u8]) -> Result<Crawl> {
        let mut crawl = Crawl::new(disk.clone(), config)?;
        let mut from = Take::new(body);
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        crawl.load_counts(&mut from).map_err(malformed)?;
        crawl.seen.lock().expect("nobody panics while remembering content").load(&mut from).map_err(malformed)?;
        crawl.contents = Seen::load(disk.clone(), contents_config(config), &mut from)?;
        crawl.mirrors.load(&mut from).map_err(malformed)?;
        crawl.sieve = Sieve::load(disk, config.sieve.clone(), &mut from)?;
        crawl.frontier.load(&mut from)?;
        if !from.is_empty() {
            crawl.readings = Readings::load(&mut from).map_err(malformed)?;
        }
        Ok(crawl)
    }

    fn load_counts(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        if from.u64()? != Fingerprint::key() {
            return Err(Malformed("it was made with another key; the log is folded anew"));
        }
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
            &mut t.near_duplicates,
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

    /// Removes state files that the loaded checkpoint does not know: they were written after it, and the replay
    /// of the log writes them again.
    pub fn remove_strays(&self, disk: &dyn Disk) -> Result<()> {
        let needed: BTreeSet<&str> = self.sieve.file_names().chain(self.contents.file_names()).collect();
        for dir in STATE_DIRS {
            for name in disk.list(dir)? {
                let name = format!("{dir}/{name}");
                if !needed.contains(name.as_str()) && !self.frontier.needs_file(&name) {
                    disk.remove(&name)?;
                }
            }
        }
        Ok(())
    }
}

fn contents_config(config: &CrawlConfig) -> SeenConfig {
    SeenConfig::within(config.seen_bytes_max / 8 * 3)
}

/// What a page and its copy on another host have in common: all words, and all links but for their hosts. The same words alone would not do, for what
/// is taken for the text of a site's pages may be the same notice on all of them.
fn copy_key(visit: &VisitRecord) -> Option<u64> {
    let content = visit.content.as_ref().filter(|c| c.sketch.is_some() && visit.outcome == Outcome::Ok)?;
    if visit.links.is_empty() || visit.entry.sitemap.is_some() {
        return None;
    }
    let own = visit.entry.url.origin();
    let of_link = |link: &Outlink| {
        let url = if link.url.origin() == own { link.url.path_and_query() } else { link.url.as_str() };
        Fingerprint::of(url).0 ^ Fingerprint::of(&link.text).0.rotate_left(17) ^ u64::from(link.wanted)
    };
    let hash = |hash: u64, link: &Outlink| (hash ^ of_link(link)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    Some(visit.links.iter().fold(content.exact, hash))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Content;
    use crate::url::Fingerprint;
    use rhumb_store::disk::RealDisk;

    /// A contact that the first process lost is over when the first process is dead, however often the next ones die.
    /// Found by the simulation, seed 9.
    #[test]
    fn a_lost_contact_ends_with_its_process() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let config = CrawlConfig {
            frontier: FrontierConfig::default(),
            sieve: SieveConfig::default(),
            prioritizer: Prioritizer::default(),
            seen_bytes_max: 1_000,
            redirects_max: 10,
            seed: 1,
        };
        let mut crawl = Crawl::new(RealDisk::new(dir.path()), &config).expect("a new crawl");
        let host = Url::parse("http://a.example/").expect("a URL").host();
        let issued = Record::Issued { host, url: Fingerprint(7), at: Timestamp(10_000) };
        let later = [3_600_000, 7_200_000].map(|at| Record::Opened(Timestamp(at)));
        for record in [issued, Record::Alive(Timestamp(10_500))].iter().chain(&later) {
            crawl.fold(record, Position::START, &mut Batch::default()).expect("fold");
        }
        crawl.frontier.recover(crawl.died_by(Timestamp(9_000_000)));
        // Dead by 12.5 s, so it took 2.5 s at the most.
        let (_, at) = crawl.frontier.contact_times().next().expect("the host is known");
        assert!((12_500..45_000).contains(&at.0), "{at}");
    }

    /// What a page said before it changed is forgotten, by what the entry of its next visit knows (SPEC C8).
    #[test]
    fn a_page_that_changed_is_not_what_others_are_duplicates_of() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let config = CrawlConfig {
            frontier: FrontierConfig::default(),
            sieve: SieveConfig::default(),
            prioritizer: Prioritizer::default(),
            seen_bytes_max: 1 << 20,
            redirects_max: 10,
            seed: 1,
        };
        let text = |n: u32| (0..300).map(|i| format!("word{} ", (i * i * 7 + n * 1_009) % 4_999)).collect::<String>();
        let visit = |path: &str, said: &str| {
            let entry = Entry::new(Url::parse(&format!("http://a.example/{path}")).expect("a URL"), 0);
            let mut visit = VisitRecord::bare(entry, Purpose::Page, Timestamp(1), Timestamp(2), Outcome::Ok);
            visit.content = Content::of(said);
            visit
        };
        let duplicates_of_first = |second_time: Option<VisitRecord>| {
            let mut crawl = Crawl::new(RealDisk::new(dir.path()), &config).expect("a new crawl");
            let known = crawl.fold_content(&visit("first", &text(1)), PageRef(1));
            if let Some(mut again) = second_time {
                again.entry.known = known;
                // As it waits in the frontier.
                again.entry = Entry::from_bytes(&again.entry.to_bytes()).expect("an entry");
                crawl.fold_content(&again, PageRef(2));
            }
            crawl.fold_content(&visit("other", &text(1)), PageRef(3));
            crawl.contents.flush().expect("look-ups");
            std::iter::from_fn(|| crawl.contents.take_found()).filter(|found| found.of == PageRef(1)).count()
        };
        assert_eq!(duplicates_of_first(None), 1, "it says the same");
        assert_eq!(duplicates_of_first(Some(visit("first", &text(1)))), 1, "it still does");
        assert_eq!(duplicates_of_first(Some(visit("first", &text(2)))), 0, "it says something else now");
        let gone = VisitRecord { outcome: Outcome::NotFound, content: None, ..visit("first", "") };
        assert_eq!(duplicates_of_first(Some(gone)), 0, "it is gone");
    }
}
