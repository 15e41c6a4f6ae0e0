//! The engine: the one owner of a crawl's state.
//!
//! It turns in a loop. Events come in (a visit finished, a name resolved); each finished visit goes to the archive, then
//! to the log, and is folded into the state. Then the frontier is asked for more visits, which the log hears of
//! first. One write commits it all; only then do the new visits leave. So nothing is ever done that the log does not
//! know, and a turn's cost is shared by all it carries.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use rhumb_core::Timestamp;
use rhumb_core::cdx;
use rhumb_core::crawl::{Crawl, Saved, WorkDone};
use rhumb_core::filter::{Filter, FilterError};
use rhumb_core::frontier::Next;
use rhumb_core::handover::Batch;
use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_core::traps::{Rule, RuleChange, State};
use rhumb_core::url::{Host, Normalizer, Url};
use rhumb_core::visit::{Entry, Visit};
use rhumb_store::archive::{Archive, ArchiveIndex};
use rhumb_store::disk::Disk;
use rhumb_store::log::{Log, Position};
use rhumb_store::warc::{RecordIds, RecordWriter};
use rhumb_store::{StoreError, checkpoint};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};

use crate::background::{DnsIdle, in_background};
use crate::bus::{Bus, LocalBus};
use crate::clock::{Anchor, Clock};
use crate::dns::{Answer, DnsError, Resolver};
use crate::duplicates;
use crate::fetch::budget::{self, PageBudget};
use crate::fetch::{Fetcher, tls};
use crate::pipeline::{self, Finished, Tools};
use crate::protocol::Protocols;
use crate::recover;
use crate::settings::Settings;
use crate::shard::{Command, Shard};
use crate::status::{self, Answering, Request, RuleReport, Shared, Status};
use crate::templates::Templates;

/// Our machinery failing: the crawl stops, resumable.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// Something durable could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Sockets, threads or certificates.
    #[error("could not {0}: {1}")]
    System(&'static str, std::io::Error),
    /// A source that others filled cannot be read.
    #[error("could not read {0}: {1}")]
    Source(String, std::io::Error),
    /// A filter expression.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A visit or a piece of background work ended in a panic: a fault of this program.
    #[error("a thread panicked; this is a fault in rhumb, please report it")]
    Panicked,
}

/// What reaches the engine.
pub(crate) enum Event {
    Finished(Finished),
    Read(u64, Box<Finished>),
    Resolved(Host, Result<Answer, DnsError>),
    Closed(Host),
    Synced(Result<(), StoreError>),
    Worked(Result<WorkDone, StoreError>),
    Checkpointed(Result<(), StoreError>),
    Asked(Request, tokio::sync::oneshot::Sender<Vec<u8>>),
    Panicked,
}

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to visit.
    Finished,
    /// The page or time limit was reached; the rest waits.
    Limit,
    /// The user asked it to stop; the rest waits.
    Interrupted,
}

/// Is called with a line for people.
pub type OnTrouble = Box<dyn FnMut(&str) + Send>;

/// A crawl that is open for writing.
pub struct Engine {
    pub(crate) root: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) settings: Settings,
    pub(crate) crawl: Crawl,
    log: Log,
    archive: Archive,
    index: ArchiveIndex,
    bus: Box<dyn Bus>,
    filter: Arc<RwLock<Arc<Filter>>>,
    /// Seeds and leads that the filter knows.
    in_filter: (usize, usize),
    pub(crate) clock: Clock,
    checkpoint_number: u64,
    cpu_ms_at_start: u64,
    dns_idle: DnsIdle,
    status: Shared,
    found: Batch,
    received: Batch,
    /// Whether the sieve has more for the frontier than one turn should take.
    more_to_pass: bool,
    /// What was wrong with the state on disk, which was therefore made anew from the log.
    pub notes: Vec<String>,
    /// Visits that the log spoke of and whose archive bytes a power loss took: they are made again.
    pub visits_lost: u64,
    /// The memory for pages on their way.
    pub(crate) budget: Option<Arc<PageBudget>>,
    /// The source that is being read, and its length.
    pub(crate) reading: (String, u64),
    /// Is told what cannot be used of a source, line by line.
    pub on_trouble: Option<OnTrouble>,
}

impl Engine {
    /// Opens the crawl in `root` (on `disk`): loads the newest checkpoint, replays the log behind it, cuts what a
    /// crash left half-done.
    pub fn open(root: &Path, disk: Arc<dyn Disk>, settings: Settings) -> Result<Engine, CrawlError> {
        let mut notes = Vec::new();
        let (mut crawl, checkpoint_number) = recover::load_checkpoint(&disk, &settings, &mut notes)?;
        let mut from_checkpoint = checkpoint_number > 0;
        let log = Log::open(disk.clone(), crawl.position, settings.log_segment_bytes)?;
        let fresh = log.position() == Position::START;
        let mut checkpoint_position = crawl.position;
        let mut bus = LocalBus::new();
        match recover::replay(&disk, &mut crawl, &mut bus) {
            Err(CrawlError::Store(e)) if e.is_in_derived_state() && checkpoint_number > 0 => {
                crawl = recover::without_checkpoint(&disk, &settings, &e.to_string(), &mut notes)?;
                (bus, checkpoint_position, from_checkpoint) = (LocalBus::new(), crawl.position, false);
                recover::replay(&disk, &mut crawl, &mut bus)?;
            }
            replayed => replayed?,
        }
        let anchor = disk.read(Anchor::FILE).ok().and_then(|bytes| Anchor::from_text(&bytes));
        let clock = Clock::start(crawl.last_alive, anchor.as_ref());
        let died = crawl.died_by(clock.now());
        crawl.frontier.recover(died);
        let archive = match Archive::open(disk.clone(), crawl.archive_end, settings.archive_file_bytes) {
            Err(e @ StoreError::Corrupt { .. }) => {
                drop(log);
                let visits_lost =
                    if from_checkpoint { recover::cut_to_archive(&disk, checkpoint_position)? } else { 0 };
                if visits_lost == 0 {
                    return Err(e.into());
                }
                let engine = Engine::open(root, disk, settings)?;
                return Ok(Engine { visits_lost, ..engine });
            }
            opened => opened?,
        };
        let mut index = ArchiveIndex::open(disk.clone(), crawl.index_end)?;
        recover::complete_index(&disk, &mut index, checkpoint_position, crawl.index_end)?;
        let filter = Filter::new(settings.filter.clone())?;
        let mut engine = Engine {
            root: root.to_path_buf(),
            disk,
            settings,
            crawl,
            log,
            archive,
            index,
            bus: Box::new(bus),
            filter: Arc::new(RwLock::new(Arc::new(filter))),
            in_filter: (0, 0),
            clock,
            checkpoint_number,
            cpu_ms_at_start: status::cpu_ms(),
            dns_idle: DnsIdle::default(),
            status: Arc::default(),
            found: Batch::default(),
            received: Batch::default(),
            more_to_pass: false,
            notes,
            visits_lost: 0,
            budget: None,
            reading: (String::new(), 0),
            on_trouble: None,
        };
        engine.widen_filter();
        if fresh {
            engine.checkpoint()?;
        }
        Ok(engine)
    }

    /// Puts URLs of the user's into the log, unless they are there already.
    pub fn add_seeds(&mut self, urls: &[Url]) -> Result<(), CrawlError> {
        let added = self.record_seeds(urls);
        self.forget_damaged_state(added)
    }

    fn record_seeds(&mut self, urls: &[Url]) -> Result<(), CrawlError> {
        for url in urls {
            if !self.crawl.has_seed(url) {
                let mut entry = Entry::new(url.clone(), 0);
                entry.seed = true;
                self.record(&Record::Seed(entry, self.clock.now()))?;
            }
        }
        self.commit()
    }

    /// Undoes the rule of this number: what it held back goes on. False if there is no such rule, or it is not in force.
    pub fn undo(&mut self, number: u32) -> Result<bool, CrawlError> {
        let active = |rule: &&Rule| rule.number == number && rule.state == State::Active;
        if !self.crawl.frontier.traps.rules().iter().any(|rule| active(&rule)) {
            return Ok(false);
        }
        self.record(&Record::Rule(RuleChange::Undone(number), self.clock.now()))?;
        self.commit()?;
        Ok(true)
    }

    /// The figures, renewed while the crawl runs.
    pub fn status(&self) -> Shared {
        self.status.clone()
    }

    /// What is known now.
    pub fn crawl(&self) -> &Crawl {
        &self.crawl
    }

    /// Crawls until there is nothing left, a limit is reached, or `stop` turns true. Builds its own runtime and threads.
    pub fn run(mut self, stop: watch::Receiver<bool>) -> Result<(End, Status), CrawlError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| CrawlError::System("start the runtime", e))?;
        let ended = runtime.block_on(self.drive(stop));
        if matches!(&ended, Err(CrawlError::Store(e)) if e.is_in_derived_state()) {
            // Whoever opens the crawl again must not meet what this one is still writing.
            drop(runtime);
        } else {
            // Blocking work of abandoned visits must not hold the process.
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
        let end = self.forget_damaged_state(ended)?;
        let status = self.status.lock().expect("nobody panics while copying the status").clone();
        Ok((end, status))
    }

    /// With the checkpoints gone the next start makes all derived state anew from the log.
    fn forget_damaged_state<T>(&self, done: Result<T, CrawlError>) -> Result<T, CrawlError> {
        if matches!(&done, Err(CrawlError::Store(e)) if e.is_in_derived_state()) {
            checkpoint::discard_all(&*self.disk)?;
        }
        done
    }

    async fn drive(&mut self, mut stop: watch::Receiver<bool>) -> Result<End, CrawlError> {
        let (events, mut inbox) = unbounded_channel();
        let resolver =
            Resolver::new(self.settings.dns.clone()).map_err(|e| CrawlError::System("open DNS sockets", e))?;
        let mut shards = self.start_shards(&events)?;
        let answering = Answering::start(&self.root, self.status.clone(), events.clone());
        if let Err(e) = &answering {
            tracing::warn!(error = %e, "no status socket; `rhumb status` will not see this crawl while it runs");
        }
        let mut chores = Chores::new(&self.settings);
        let ended = if self.crawl.readings.is_empty() {
            self.turn_until_done(&mut stop, &mut inbox, &events, &resolver, &shards, &mut chores).await
        } else {
            self.read_until_done(&mut stop, &mut inbox, &events, &shards, &mut chores).await
        };
        shards.drain(..).for_each(Shard::stop);
        let ended = match ended {
            Ok(end) => self.settle(&mut inbox, &mut chores).await.and_then(|()| self.compare_the_rest()).map(|()| end),
            failed => failed,
        };
        // A failed write leaves the log as it is; a checkpoint on top could only make it worse.
        let end = ended?;
        self.record(&Record::Closed { at: self.clock.now(), finished: end == End::Finished })?;
        self.commit()?;
        self.checkpoint()?;
        self.publish(match end {
            End::Finished => "finished",
            End::Limit => "limit",
            End::Interrupted => "interrupted",
        });
        Ok(end)
    }

    async fn turn_until_done(
        &mut self,
        stop: &mut watch::Receiver<bool>,
        inbox: &mut UnboundedReceiver<Event>,
        events: &UnboundedSender<Event>,
        resolver: &Arc<Resolver>,
        shards: &[Shard],
        chores: &mut Chores,
    ) -> Result<End, CrawlError> {
        let mut arrived = Vec::with_capacity(256);
        let mut ending: Option<(End, Instant)> = None;
        let mut stoppable = true;
        if let Some(anchor) = Anchor::of(&self.clock) {
            self.disk.replace(Anchor::FILE, anchor.to_text().as_bytes())?;
        }
        self.record(&Record::Opened(self.clock.now()))?;
        self.publish("running");
        loop {
            for event in arrived.drain(..) {
                self.handle(event, chores)?;
            }
            self.pass_on()?;
            self.report_duplicates(duplicates::FOUND_MAX)?;
            let now = self.clock.now();
            if ending.is_none() && self.time_is_up() {
                ending = Some((End::Limit, Instant::now() + self.settings.grace));
            }
            let mut issued = Vec::new();
            let asked =
                if ending.is_none() { self.issue(now, &mut issued)? } else { Asked::WaitUntil(Timestamp(u64::MAX)) };
            self.commit()?;
            for visit in issued {
                let _ = shard_of(shards, &visit.host).commands.send(Command::Visit(visit));
            }
            self.send_errands(resolver, events, shards);
            let in_flight = self.crawl.frontier.counts().in_flight;
            let idle = matches!(asked, Asked::WaitUntil(_)) && ending.is_none();
            self.dns_idle.note(if idle { self.settings.workers.saturating_sub(in_flight as usize) } else { 0 });
            match (asked, ending) {
                (_, Some((end, until))) if in_flight == 0 || Instant::now() >= until => return Ok(end),
                (Asked::Idle, None) => return Ok(End::Finished),
                (Asked::LimitReached, None) if in_flight == 0 => return Ok(End::Limit),
                _ => {}
            }
            self.do_chores(chores, events)?;
            let wake = match asked {
                Asked::WaitUntil(at) => self.clock.instant(at).min(chores.next()),
                _ => chores.next(),
            };
            let wake = ending.map_or(wake, |(_, until)| wake.min(until));
            let wake = if self.more_to_pass { Instant::now() } else { wake };
            tokio::select! {
                biased;
                n = inbox.recv_many(&mut arrived, 256) => assert!(n > 0, "the engine holds a sender itself"),
                changed = stop.changed(), if stoppable => {
                    stoppable = changed.is_ok() && !*stop.borrow();
                    if changed.is_ok() && *stop.borrow() {
                        ending = Some((End::Interrupted, Instant::now() + self.settings.grace));
                    }
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Waits for what other threads do with the state's files: a checkpoint under way, and work that ends soon. Work that takes longer
    /// is begun again by the next start.
    async fn settle(&mut self, inbox: &mut UnboundedReceiver<Event>, chores: &mut Chores) -> Result<(), CrawlError> {
        let patience = tokio::time::Instant::now() + SETTLE;
        while chores.checkpointing || chores.working > 0 {
            let event = if chores.checkpointing {
                inbox.recv().await
            } else {
                let Ok(event) = tokio::time::timeout_at(patience, inbox.recv()).await else { return Ok(()) };
                event
            };
            // Visits that end now were abandoned; they wait again.
            if let Some(event @ (Event::Worked(_) | Event::Checkpointed(_) | Event::Panicked)) = event {
                self.handle(event, chores)?;
            }
        }
        Ok(())
    }

    /// Writes duplicates that were found to the log, `max` at most.
    fn report_duplicates(&mut self, max: usize) -> Result<(), CrawlError> {
        for _ in 0..max {
            let Some(found) = self.crawl.contents.take_found() else { break };
            // The pages are read from the log, which has them since before they were compared.
            if let Some(record) = duplicates::record_of(&*self.disk, &found, self.clock.now()) {
                self.record(&record)?;
            }
        }
        Ok(())
    }

    /// Pages that wait for a batch to be full are compared before the end.
    fn compare_the_rest(&mut self) -> Result<(), CrawlError> {
        self.commit()?;
        while self.crawl.contents.has_pending() && !self.crawl.contents.is_working() {
            self.crawl.contents.want_check();
            let Some(work) = self.crawl.contents.take_work() else { break };
            self.crawl.contents.finish_work(work.run()?);
        }
        self.report_duplicates(usize::MAX)
    }

    pub(crate) fn time_is_up(&self) -> bool {
        self.settings.time_max.is_some_and(|max| self.clock.ran() >= max)
    }

    pub(crate) fn handle(&mut self, event: Event, chores: &mut Chores) -> Result<(), CrawlError> {
        match event {
            // Comes again in its turn, as a visit.
            Event::Read(..) => {}
            Event::Finished(finished) => {
                let read = !self.crawl.readings.is_empty();
                self.crawl.frontier.connection_left(&finished.host, finished.kept, finished.record.ended);
                let mut record = finished.record;
                if !finished.archive.is_empty() {
                    let mut preamble = |name: &str| warcinfo(name, &self.settings.agent, self.clock.now());
                    let (bytes, first) = (&finished.archive, finished.archive_first);
                    let now = if read { self.clock.now() } else { record.ended };
                    let place = self.archive.append(bytes, first, now, &mut preamble)?;
                    record.archived = Some(place);
                    if let Some(name) = self.archive.current_name() {
                        self.index.add(place.file, name, &cdx::line(&record, &place, name))?;
                    }
                }
                record.retry =
                    !read && record.purpose.is_page() && self.crawl.frontier.will_retry(&record.entry, record.outcome);
                record.copy_of = if read { None } else { self.crawl.copy_of(&record) };
                let Some(gist) = finished.gist else { return self.record(&Record::Visited(record)) };
                record.nothing_new = !self.crawl.frontier.traps.is_news(&record.entry.url, &gist);
                let (url, useful, at) = (record.entry.url.clone(), !record.nothing_new, record.ended);
                self.record(&Record::Visited(record))?;
                if let Some(change) = self.crawl.frontier.traps.observe(&url, &gist, useful) {
                    self.record(&Record::Rule(change, at))?;
                }
            }
            Event::Resolved(host, answer) => {
                self.dns_idle.lookups -= 1;
                let now = self.clock.now();
                let answer = self.judge_addresses(&host, answer);
                self.crawl.frontier.resolved(&host, answer, now)?;
            }
            Event::Closed(host) => self.crawl.frontier.connection_closed(&host),
            Event::Synced(done) => {
                chores.syncing = false;
                done?;
            }
            Event::Worked(done) => {
                chores.working -= 1;
                self.crawl.finish_work(done?)?;
            }
            Event::Checkpointed(done) => {
                chores.checkpointing = false;
                done?;
            }
            Event::Asked(request, answer) => {
                if let Request::Undo(number) = request {
                    self.undo(number)?;
                }
                let _ = answer.send(serde_json::to_vec(&RuleReport::all(&self.crawl)).unwrap_or_default());
            }
            Event::Panicked => return Err(CrawlError::Panicked),
        }
        Ok(())
    }

    /// Leaves only addresses that may be dialled. The fetcher judges again in the moment it dials.
    fn judge_addresses(
        &self,
        host: &Host,
        answer: Result<Answer, DnsError>,
    ) -> Result<(Arc<[std::net::IpAddr]>, Timestamp), Outcome> {
        match answer {
            Ok(answer) => {
                let guard = &self.settings.guard;
                let fit = answer.addresses.iter().filter(|a| guard.judge(host.name(), host.port(), **a).is_ok());
                let fit: Arc<[std::net::IpAddr]> = fit.copied().collect();
                if fit.is_empty() { Err(Outcome::BlockedAddress) } else { Ok((fit, self.clock.at(answer.expires))) }
            }
            Err(e) if e.is_permanent() => Err(Outcome::NoHost),
            Err(_) => Err(Outcome::DnsFailed),
        }
    }

    /// Asks the frontier for visits until every worker has one or nothing is ready.
    #[allow(clippy::vec_box)] // Visits are boxed from the frontier to the shard; unboxing them here would only copy.
    fn issue(&mut self, now: Timestamp, issued: &mut Vec<Box<Visit>>) -> Result<Asked, CrawlError> {
        loop {
            let figures = self.crawl.frontier.counts();
            if figures.in_flight as usize >= self.settings.workers || self.crawl.must_wait() {
                return Ok(Asked::WorkersBusy);
            }
            // Visits under way may all turn out to be pages.
            let pages = self.crawl.totals.pages;
            if self.settings.pages_max.is_some_and(|max| pages + figures.in_flight_pages >= max) {
                return Ok(if self.settings.pages_max.is_some_and(|max| pages >= max) {
                    Asked::LimitReached
                } else {
                    Asked::WorkersBusy
                });
            }
            match self.crawl.next_visit(now)? {
                Next::Visit(visit) => {
                    let url = visit.entry.url.fingerprint();
                    self.record(&Record::Issued { host: visit.host.clone(), url, at: now })?;
                    issued.push(visit);
                }
                Next::Drop(entry, outcome) => self.record(&Record::Dropped { entry: *entry, outcome, at: now })?,
                Next::Hold(host, hold) => self.record(&Record::Held { host, hold })?,
                Next::WaitUntil(at) => return Ok(Asked::WaitUntil(at)),
                Next::Idle => return Ok(Asked::Idle),
            }
        }
    }

    /// Appends a record and folds it in.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), CrawlError> {
        let stages = self.settings.stages;
        let position =
            if stages.log { self.log.append(record.kind(), |into| record.put(into)) } else { self.log.position() };
        self.crawl.fold(record, position, &mut self.found)?;
        if !stages.sieve && matches!(record, Record::Visited(_)) {
            self.found.clear();
        }
        if !self.found.is_empty() {
            self.bus.send(&mut self.found);
            self.pass_on()?;
        }
        Ok(())
    }

    /// Takes what the bus has for us, and lets new seeds open the filter's scope.
    fn pass_on(&mut self) -> Result<(), CrawlError> {
        while self.bus.receive(&mut self.received) {
            self.crawl.receive(&self.received)?;
        }
        if (self.crawl.seeds.len(), self.crawl.leads.len()) != self.in_filter {
            self.widen_filter();
        }
        self.more_to_pass = self.crawl.let_through(THROUGH_MAX)?;
        Ok(())
    }

    fn widen_filter(&mut self) {
        let mut shared = self.filter.write().expect("nobody panics while replacing the filter");
        let mut filter = Filter::clone(&shared);
        let (seeds, leads) = (&self.crawl.seeds[self.in_filter.0..], &self.crawl.leads[self.in_filter.1..]);
        for url in seeds {
            // Naming a local host is leave to dial it; a redirect to one is not. So with files.
            self.settings.guard.allow_seed(url);
            self.settings.protocols.allow(url, &self.root);
        }
        seeds.iter().chain(leads).for_each(|s| filter.add_seed(s));
        self.in_filter = (self.crawl.seeds.len(), self.crawl.leads.len());
        *shared = Arc::new(filter);
    }

    /// The commit point: archive first, so that the log never speaks of bytes that are not there.
    pub(crate) fn commit(&mut self) -> Result<(), CrawlError> {
        self.archive.commit()?;
        self.log.commit()?;
        Ok(self.index.commit()?)
    }

    /// Names to resolve, connections to close.
    fn send_errands(&mut self, resolver: &Arc<Resolver>, events: &UnboundedSender<Event>, shards: &[Shard]) {
        for host in self.crawl.frontier.take_unresolved() {
            self.dns_idle.lookups += 1;
            if let Some(known) = resolver.lookup_cached(host.name()) {
                let _ = events.send(Event::Resolved(host, known));
                continue;
            }
            let (resolver, events) = (resolver.clone(), events.clone());
            tokio::spawn(async move {
                let answer = resolver.lookup(host.name()).await;
                let _ = events.send(Event::Resolved(host, answer));
            });
        }
        for host in self.crawl.frontier.take_connections_to_close() {
            let _ = shard_of(shards, &host).commands.send(Command::Close(host));
        }
    }

    pub(crate) fn do_chores(&mut self, chores: &mut Chores, events: &UnboundedSender<Event>) -> Result<(), CrawlError> {
        let now = Instant::now();
        if now >= chores.tick {
            chores.tick = now + self.settings.tell_every;
            self.record(&Record::Alive(self.clock.now()))?;
            self.commit()?;
            self.crawl.frontier.close_idle_connections(self.clock.now());
            self.crawl.contents.want_check_if_cheap();
            self.publish("running");
        }
        if now >= chores.sync && !chores.syncing {
            chores.sync = now + self.settings.sync_every;
            chores.syncing = true;
            let (archive, log) = (self.archive.sync_handle()?, self.log.sync_handle()?);
            in_background(events, move || {
                let mut log = log;
                Event::Synced(archive.map_or(Ok(()), |mut a| a.sync()).and_then(|()| log.sync()))
            });
        }
        if now >= chores.checkpoint && !chores.checkpointing {
            chores.checkpoint = now + self.settings.checkpoint_every;
            chores.checkpointing = true;
            let saved = self.save()?;
            self.checkpoint_number += 1;
            let (disk, number) = (self.disk.clone(), self.checkpoint_number);
            let (archive, index, log) =
                (self.archive.sync_handle()?, self.index.sync_handle()?, self.log.sync_handle()?);
            in_background(events, move || {
                let synced = [archive, index, Some(log)].into_iter().flatten().try_for_each(|mut file| file.sync());
                Event::Checkpointed(synced.and_then(|()| saved.write(&*disk, number)))
            });
        }
        while let Some(work) = self.crawl.take_work() {
            chores.working += 1;
            in_background(events, move || Event::Worked(work.run()));
        }
        Ok(())
    }

    /// Takes the state as of now. Everything the log says so far is committed first.
    fn save(&mut self) -> Result<Saved, CrawlError> {
        self.commit()?;
        let totals = &mut self.crawl.totals;
        let before = (totals.ran_ms, totals.cpu_ms);
        totals.ran_ms += self.clock.ran().as_millis() as u64;
        totals.cpu_ms += status::cpu_ms().saturating_sub(self.cpu_ms_at_start);
        self.crawl.index_end = self.index.end();
        let saved = self.crawl.save();
        (self.crawl.totals.ran_ms, self.crawl.totals.cpu_ms) = before;
        Ok(saved?)
    }

    /// Writes the state, so that the next start need not read the log up to here, and waits for it.
    pub fn checkpoint(&mut self) -> Result<(), CrawlError> {
        let saved = self.save()?;
        self.archive.sync()?;
        self.index.sync()?;
        self.log.sync()?;
        self.checkpoint_number += 1;
        saved.write(&*self.disk, self.checkpoint_number)?;
        Ok(())
    }

    pub(crate) fn publish(&mut self, state: &'static str) {
        let mut status = Status::of(&self.crawl, self.clock.now());
        status.state = state;
        if let Some(source) = status.sources.iter_mut().find(|source| source.source == self.reading.0) {
            source.bytes = self.reading.1;
        }
        let ran = self.clock.ran().as_secs_f64();
        status.seconds += ran;
        status.cpu_seconds += status::cpu_ms().saturating_sub(self.cpu_ms_at_start) as f64 / 1000.0;
        status.peak_rss_bytes = status::peak_rss_bytes();
        status.dns_idle_share = self.dns_idle.seconds / (ran * self.settings.workers as f64).max(0.001);
        let mut shared = self.status.lock().expect("nobody panics while copying the status");
        let (pages, seconds) = (status.pages.saturating_sub(shared.pages), status.seconds - shared.seconds);
        // Smoothed over a few ticks; the first tick has nothing to compare with.
        let rate = if shared.seconds > 0.0 && seconds > 0.0 { pages as f64 / seconds } else { 0.0 };
        status.pages_per_second = if state == "running" {
            0.7 * shared.pages_per_second + 0.3 * rate
        } else {
            status.pages as f64 / status.seconds.max(0.001)
        };
        *shared = status;
    }

    fn start_shards(&mut self, events: &UnboundedSender<Event>) -> Result<Vec<Shard>, CrawlError> {
        let tls = tls::client_config(self.settings.authorities.as_deref(), self.settings.tls_hosts_max);
        let tls = tls.map_err(|e| CrawlError::System("read certificate authorities", e))?;
        let guard = Arc::new(self.settings.guard.clone());
        let fetch = self.settings.fetch.clone();
        // A body, its record, both compressed and plain, and what it decodes to.
        let large_bytes = 3 * fetch.body_bytes_max + self.settings.decode.decoded_bytes_max;
        let (large, rest) = budget::split(self.settings.page_bytes_max, large_bytes, self.settings.threads);
        let (large, budget) = (Arc::new(Semaphore::new(large)), PageBudget::new(rest));
        let slow = Arc::new(Semaphore::new(pipeline::SLOW_AT_ONCE));
        self.budget = Some(budget.clone());
        let fetcher = || {
            let fetcher = Fetcher::new(fetch.clone(), &self.settings.agent, guard.clone(), tls.clone());
            let fetcher = fetcher.with_budget(budget.clone());
            fetcher.with_secrets(self.settings.credentials.clone(), self.settings.cookies)
        };
        let tools = |number: usize| Tools {
            protocols: Protocols::new(fetcher(), self.settings.protocols.clone()),
            clock: self.clock,
            normalizer: Normalizer::new(&self.settings.normalize),
            filter: self.filter.clone(),
            seen: self.crawl.seen.clone(),
            decode: self.settings.decode,
            parse: self.settings.parse.clone(),
            formats: self.settings.formats.clone(),
            gists: self.settings.crawl.frontier.traps.learn,
            redirects_max: self.settings.crawl.redirects_max,
            sitemaps: self.settings.sitemaps,
            obey: self.settings.obey,
            templates: Mutex::new(Templates::new(self.settings.templates_max / self.settings.threads.max(1))),
            archive: self.settings.archive,
            said: self.settings.said,
            scratch: Mutex::default(),
            ids: Mutex::new(RecordIds::new(record_seed(number), 0)),
            large: large.clone(),
            slow: slow.clone(),
            stages: self.settings.stages,
        };
        let mut shards = vec![Shard::here(tools(0), events.clone())];
        for number in 1..self.settings.threads.max(1) {
            let shard = Shard::spawn(number, tools(number), events.clone());
            shards.push(shard.map_err(|e| CrawlError::System("start a thread", e))?);
        }
        Ok(shards)
    }
}

/// A host always goes to the same shard, because its connection lives there.
fn shard_of<'a>(shards: &'a [Shard], host: &Host) -> &'a Shard {
    &shards[(host.fingerprint().0 % shards.len() as u64) as usize]
}

#[derive(Clone, Copy)]
enum Asked {
    WorkersBusy,
    LimitReached,
    WaitUntil(Timestamp),
    Idle,
}

/// URLs that the sieve found to be new are passed on so many in a turn.
const THROUGH_MAX: usize = 1_000;
const SETTLE: Duration = Duration::from_secs(2);

/// When what is to be done besides visits.
pub(crate) struct Chores {
    tick: Instant,
    sync: Instant,
    syncing: bool,
    checkpoint: Instant,
    checkpointing: bool,
    /// Pieces of work under way on other threads.
    working: usize,
}

impl Chores {
    fn new(settings: &Settings) -> Chores {
        let now = Instant::now();
        Chores {
            tick: now + settings.tell_every,
            sync: now + settings.sync_every,
            syncing: false,
            checkpoint: now + settings.checkpoint_every,
            checkpointing: false,
            working: 0,
        }
    }

    pub(crate) fn next(&self) -> Instant {
        let first = if self.syncing { self.tick } else { self.tick.min(self.sync) };
        if self.checkpointing { first } else { first.min(self.checkpoint) }
    }
}

/// The first record of every archive file.
fn warcinfo(name: &str, agent: &str, now: Timestamp) -> Vec<u8> {
    let mut out = Vec::new();
    let software = concat!("rhumb/", env!("CARGO_PKG_VERSION"));
    let fields = [
        ("software", software),
        ("format", "WARC File Format 1.1"),
        ("http-header-user-agent", agent),
        ("robots", "obey"),
    ];
    let id = RecordIds::new(record_seed(usize::MAX) ^ u128::from(now.0), 0).take();
    let written = RecordWriter::default().warcinfo(&mut out, id, now, name, &fields);
    if let Err(e) = written {
        // Only an agent with control characters could do this, and the configuration refuses those.
        tracing::error!(error = %e, "no warcinfo record");
    }
    out
}

/// Bits from which record ids are made: they must differ between processes and threads.
fn record_seed(number: usize) -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let who = format!("{now} {} {number}", std::process::id());
    xxhash_rust::xxh3::xxh3_128(who.as_bytes())
}
