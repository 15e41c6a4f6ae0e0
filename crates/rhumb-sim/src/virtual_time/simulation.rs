//! The loop: take the next event, let the process act on it, check what the servers saw.
//!
//! A turn is a turn of the engine: everything that has happened by now is handled, the frontier is asked for visits, one
//! commit makes it all durable, and only then do the visits leave. What the model of the checker learns from a record it
//! learns when the record is durable: at the commit, or, if the process died in it, when the next one has read the log.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rhumb_core::crawl::CrawlConfig;
use rhumb_core::handover::Batch;
use rhumb_core::outcome::Outcome;
use rhumb_core::page::Rel;
use rhumb_core::record::Record;
use rhumb_core::url::{Host, Url};
use rhumb_core::visit::{Entry, LinkKind, Outlink, Purpose as VisitPurpose, Validators, Visit, VisitRecord};
use rhumb_store::archive::ArchiveRef;
use rhumb_store::disk::{Disk, RealDisk};
use rhumb_store::log::Position;
use rhumb_store::{StoreError, Timestamp};

use super::checker::{Checker, Learnt, Violation};
use super::disk::{MemoryDisk, MortalDisk};
use super::process::{Asked, Delivery, Process};
use super::world::{self, Answer, RobotsFile, World};
use super::{SimConfig, SimError, Story};
use crate::hash::{Dice, Purpose, mix};
use crate::{OutlinkScratch, Page, Target, Web};

/// The first moment of every history.
const START_MS: u64 = 1_700_000_000_000;
const TICK_MS: u64 = 1_000;
/// The crawler's tables are measured every so many turns.
const MEASURE_TURNS: u64 = 1 << 14;

/// A visit under way.
struct Flight {
    visit: Box<Visit>,
    host: u64,
    /// What is fetched, if it is not robots.txt.
    target: Option<(Target, u32)>,
    started: u64,
    answer: Answer,
    robots: Option<RobotsFile>,
}

enum Event {
    Landing(u32),
    Resolved(Host, u64, Result<(u32, u64), Outcome>),
    Closed(Host, u64),
    /// A batch that the bus kept. A copy outlives the process.
    Mail {
        batch: Batch,
        copy: bool,
    },
    Tick,
    Checkpoint,
}

struct Scheduled {
    at: u64,
    seq: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.seq == other.seq
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The earliest is the greatest, as a heap wants it; of two at once the one that was scheduled first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

/// Why a turn was not finished.
enum Stop {
    Violation(Violation),
    Store(StoreError),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Stop {
        Stop::Violation(violation)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Store(error)
    }
}

/// See the module's header.
pub(super) struct Simulation {
    config: SimConfig,
    crawl_config: CrawlConfig,
    world: World,
    checker: Checker,
    /// What outlives the process.
    disk: Arc<dyn Disk>,
    mortal: Arc<MortalDisk>,
    process: Option<Process>,
    events: BinaryHeap<Scheduled>,
    seq: u64,
    /// Events that are bound to come and change something: not ticks.
    awaited: u64,
    /// When the frontier wants to be asked again.
    wake: u64,
    now: u64,
    flights: Vec<Option<Flight>>,
    flights_free: Vec<u32>,
    /// What records in the log mean, until they are durable.
    staged: Vec<(Position, Learnt)>,
    dice: Dice,
    digest: u64,
    turns: u64,
    next_crash_visit: u64,
    scratch: OutlinkScratch,
    archived: u64,
    story: Story,
}

impl Simulation {
    pub fn new(config: &SimConfig) -> Result<Simulation, SimError> {
        let web = Web::new(config.web())?;
        let world = World::new(web, config.whims.clone(), config.seed);
        let crawl_config = config.crawl();
        let checker = Checker::new(world.clone(), crawl_config.frontier.clone());
        let disk = match &config.dir {
            Some(dir) => RealDisk::new(dir),
            None => MemoryDisk::new(),
        };
        let mut simulation = Simulation {
            story: Story {
                seed: config.seed,
                hosts: config.hosts,
                web_pages: checker.urls.pages(),
                ..Story::default()
            },
            dice: Dice::new(mix(config.seed, Purpose::History, 0, 0)),
            config: config.clone(),
            crawl_config,
            world,
            checker,
            mortal: MortalDisk::new(disk.clone()),
            disk,
            process: None,
            events: BinaryHeap::new(),
            seq: 0,
            awaited: 0,
            wake: START_MS,
            now: START_MS,
            flights: Vec::new(),
            flights_free: Vec::new(),
            staged: Vec::new(),
            digest: config.seed,
            turns: 0,
            next_crash_visit: 0,
            scratch: OutlinkScratch::default(),
            archived: 0,
        };
        simulation.plan_crash();
        Ok(simulation)
    }

    /// Plays to the end.
    pub fn run(self) -> Result<Story, SimError> {
        self.play().map(|(story, _)| story)
    }

    /// Plays to the end and gives the judge back, for a test that wants to know more.
    pub fn play(mut self) -> Result<(Story, Checker), SimError> {
        let seed = self.config.seed;
        loop {
            let done = match self.turn() {
                Ok(done) => done,
                Err(Stop::Violation(violation)) => return Err(SimError::Violation { seed, violation }),
                Err(Stop::Store(_)) if self.mortal.is_dead() => {
                    self.story.torn += 1;
                    self.die();
                    false
                }
                Err(Stop::Store(error)) => return Err(SimError::Store { seed, error }),
            };
            if done {
                break;
            }
        }
        let counts = self.checker.counts();
        self.story.virtual_ms = self.now - START_MS;
        self.story.urls = counts.0;
        self.story.pages = self.checker.pages;
        self.story.dropped = self.checker.gone;
        self.story.checks = self.checker.checks;
        self.story.digest = format!("{:016x}", self.digest);
        Ok((self.story, self.checker))
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a turn begins with a process")
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now)
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.awaited += u64::from(!matches!(event, Event::Tick | Event::Checkpoint));
        self.seq += 1;
        self.events.push(Scheduled { at, seq: self.seq, event });
    }

    /// Adds to the fingerprint of the history.
    fn note(&mut self, what: u64, detail: u64) {
        self.digest = mix(self.digest, Purpose::History, self.now.wrapping_mul(31).wrapping_add(what), detail);
    }

    /// One turn of the engine; true when the crawl is over.
    fn turn(&mut self) -> Result<bool, Stop> {
        if self.process.is_none() {
            self.open()?;
        }
        let next = self.events.peek().map_or(u64::MAX, |e| e.at).min(self.wake);
        // A turn takes a little while, and so some things are handled later than they happen.
        let lag = if self.dice.chance(0.1) { self.dice.below(4) } else { 0 };
        self.now = self.now.max(next) + lag;
        self.wake = u64::MAX;
        self.turns += 1;
        let mut checkpoint = false;
        while self.events.peek().is_some_and(|e| e.at <= self.now) {
            if let Some(Scheduled { event, .. }) = self.events.pop() {
                checkpoint |= self.handle(event)?;
            }
        }
        let mut leaving = Vec::new();
        let idle = self.issue(&mut leaving)?;
        self.commit()?;
        for visit in leaving {
            self.leave(visit)?;
        }
        self.send_errands();
        if self.turns.is_multiple_of(MEASURE_TURNS) {
            self.measure()?;
        }
        if checkpoint {
            self.checkpoint()?;
            self.schedule(self.now + self.config.checkpoint_ms(), Event::Checkpoint);
        }
        let late = self.config.days.is_some_and(|days| self.now >= START_MS + days * 86_400_000);
        if late || (idle && self.awaited == 0) {
            return self.end(!late);
        }
        if self.story.visits >= self.next_crash_visit && self.story.crashes < self.config.crashes {
            self.crash()?;
        }
        Ok(false)
    }

    /// The frontier has nothing left, or time is up. False if somebody starts it again, to try what is held.
    fn end(&mut self, finished: bool) -> Result<bool, Stop> {
        if finished {
            let now = self.now;
            let keys = self.process().crawl.sieve.len();
            let figures = self.process().crawl.frontier.figures(Timestamp(now));
            self.checker.nothing_lost_in_a_crash(keys, figures.urls_held, now)?;
            self.story.held = figures.urls_held;
            let (pages, counted) = (self.checker.pages, self.process().crawl.totals.pages);
            if pages != counted {
                let what = format!("the crawl counts {counted} pages, {pages} were fetched for good");
                return Err(Violation { invariant: "totals_are_right", at: self.now(), what }.into());
            }
            let closed = Record::Closed { at: self.now(), finished: true };
            self.process().record(&closed, Delivery::Now)?;
        }
        self.checkpoint()?;
        self.story.finished = finished;
        let again = finished && self.story.held > 0 && self.story.resumed < self.config.resumes;
        if again {
            self.story.resumed += 1;
            self.process = None;
            self.leave_the_stage();
            self.now += 60_000;
            self.checker.started_again(self.now);
        }
        Ok(!again)
    }

    /// Nothing of a process is left but copies on the bus.
    fn leave_the_stage(&mut self) {
        self.checker.crawler_dies();
        self.awaited = 0;
        for Scheduled { at, event, .. } in std::mem::take(&mut self.events).into_sorted_vec().into_iter().rev() {
            if matches!(event, Event::Mail { copy: true, .. }) {
                self.schedule(at, event);
            }
        }
    }

    /// What has happened; true if it is time for a checkpoint.
    fn handle(&mut self, event: Event) -> Result<bool, Stop> {
        self.story.events += 1;
        self.awaited -= u64::from(!matches!(event, Event::Tick | Event::Checkpoint));
        match event {
            Event::Landing(slot) => {
                let flight = self.flights[slot as usize].take().expect("a visit lands once");
                self.flights_free.push(slot);
                self.land(flight)?;
            }
            Event::Resolved(host, index, answer) => {
                let now = self.now();
                self.checker.resolved(index, answer.ok().map(|(address, _)| address));
                self.note(2, index);
                let answer = answer.map(|(address, expires)| (Arc::from([world::ip(address)]), Timestamp(expires)));
                self.process().crawl.frontier.resolved(&host, answer, now)?;
            }
            Event::Closed(host, index) => {
                self.checker.hangs_up(index);
                self.note(3, index);
                self.process().crawl.frontier.connection_closed(&host);
            }
            Event::Mail { batch, .. } => self.process().receive(&batch)?,
            Event::Tick => {
                let now = self.now();
                self.process().record(&Record::Alive(now), Delivery::Now)?;
                self.process().crawl.frontier.close_idle_connections(now);
                self.schedule(self.now + TICK_MS, Event::Tick);
            }
            Event::Checkpoint => return Ok(true),
        }
        Ok(false)
    }

    /// A visit is over: what the server saw, then what the engine makes of it.
    fn land(&mut self, flight: Flight) -> Result<(), Stop> {
        let Flight { visit, host, target, started, answer, robots } = flight;
        let ended = started + answer.takes_ms;
        self.checker.contact_ends(host, started, ended);
        self.checker.leaves_connection(host, answer.kept);
        self.note(1, mix(host, Purpose::History, u64::from(answer.outcome.code()), answer.takes_ms));
        let name = visit.host.clone();
        self.process().crawl.frontier.connection_left(&name, answer.kept, Timestamp(ended));
        let times = (Timestamp(started), Timestamp(ended));
        let Visit { entry, purpose, addresses, .. } = *visit;
        let mut record = Box::new(VisitRecord::bare(entry, purpose, times.0, times.1, answer.outcome));
        record.address = addresses.first().copied();
        record.status = answer.status;
        record.retry_after_ms = answer.retry_after_ms.filter(|_| answer.outcome == Outcome::RateLimited);
        let learnt = match target {
            Some((target, url)) => self.page_record(&mut record, host, target, url)?,
            None => self.robots_record(&mut record, host, robots),
        };
        let whims = &self.world.whims;
        let delivery = match (self.dice.chance(whims.late_share), self.dice.chance(whims.doubled_share)) {
            (true, _) => Delivery::Late,
            (_, true) => Delivery::Twice,
            _ => Delivery::Now,
        };
        self.record(&Record::Visited(record), delivery, Some(learnt))
    }

    /// What the pipeline would have understood of a page.
    fn page_record(&mut self, record: &mut VisitRecord, host: u64, target: Target, url: u32) -> Result<Learnt, Stop> {
        let mut found = Vec::new();
        match (record.outcome, target) {
            (Outcome::Redirect, Target::Redirect { host, key }) => {
                if record.entry.redirects >= self.crawl_config.redirects_max {
                    record.outcome = Outcome::TooManyRedirects;
                } else {
                    let to = self.world.web.redirect_target(host, key);
                    record.links = vec![outlink(&self.world.web.target_url(to), LinkKind::Redirect, false)];
                    found.extend(self.checker.urls.id(to));
                }
            }
            (Outcome::Ok, Target::Page { host, page }) => {
                record.wire_bytes = 10_000;
                let urls = &self.checker.urls;
                self.world.web.outlinks(host, page, &mut self.scratch, |link| {
                    let kind = if link.canonical { LinkKind::Link } else { LinkKind::A };
                    record.links.push(outlink(link.url, kind, link.nofollow));
                    found.extend(urls.id(link.target));
                });
                self.archive(record, host, page)?;
            }
            _ => {}
        }
        let outcome = record.outcome;
        record.retry = self.process().crawl.frontier.will_retry(&record.entry, outcome);
        let (ended, retry_after_ms, retry) = (record.ended.0, record.retry_after_ms, record.retry);
        Ok(Learnt::Page { host, url, ended, outcome, retry_after_ms, retry, found })
    }

    /// As if the body had been archived, so that the memory of contents has something to remember; what it takes for a
    /// duplicate must be one.
    fn archive(&mut self, record: &mut VisitRecord, host: u64, page: u64) -> Result<(), Stop> {
        let web = self.world.web.clone();
        let original = |host, page| web.twin(host, page).unwrap_or(Page { host, page });
        let own = original(host, page);
        let mut digest = [0; 20];
        for (i, part) in digest.chunks_mut(8).enumerate() {
            let word = mix(i as u64, Purpose::Text, own.host, own.page).to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
        let first = {
            let seen = self.process().crawl.seen.lock().expect("nobody panics while remembering content");
            seen.check(&digest).map(|first| first.url.clone())
        };
        if let Some(first) = &first {
            let twin = Url::from_canonical(first).and_then(|url| match self.read(&url) {
                Some((_, Target::Page { host, page })) => Some(original(host, page)),
                _ => None,
            });
            if twin != Some(own) {
                let what = format!("{} is taken for a copy of {first}", record.entry.url);
                return Err(Violation { invariant: "duplicates_are_duplicates", at: self.now(), what }.into());
            }
        }
        record.duplicate_of = first;
        record.digest = Some(digest);
        record.fingerprint = mix(0, Purpose::Text, own.host, own.page);
        self.archived += 1_000;
        record.archived = Some(ArchiveRef { file: 1, offset: self.archived, length: 1_000, first: 900 });
        Ok(())
    }

    /// What the pipeline would have understood of a robots.txt.
    fn robots_record(&mut self, record: &mut VisitRecord, host: u64, file: Option<RobotsFile>) -> Learnt {
        let mut version = 0;
        match (record.outcome, file) {
            (Outcome::Redirect, Some(RobotsFile::At(to))) => {
                let url = format!("{}/robots.txt", self.world.web.origin(to));
                record.links = vec![outlink(&url, LinkKind::Redirect, false)];
            }
            (Outcome::Ok, Some(RobotsFile::Rules(served))) => {
                version = served;
                let tag = format!("\"{served}\"");
                let validators = &record.entry.validators;
                if validators.etag.as_deref() == Some(&tag) {
                    record.outcome = Outcome::NotModified;
                    record.status = 304;
                } else {
                    record.robots = Some(self.world.robots_text(host, served).into_bytes().into());
                }
                record.validators = Validators { etag: Some(tag.into()), last_modified: None, fetched: record.started };
            }
            _ => {}
        }
        let VisitPurpose::Robots { host: ruled, hops } = &record.purpose else {
            unreachable!("a visit without a target is one for robots.txt")
        };
        let own = record.entry.url == record.entry.url.host().robots_url();
        Learnt::Robots {
            host,
            ruled: self.world.web.host_index(ruled.name()).unwrap_or(host),
            own,
            hops: *hops,
            ended: record.ended.0,
            outcome: record.outcome,
            status: record.status,
            version,
            retry_after_ms: record.retry_after_ms,
        }
    }

    /// Appends a record; what it means is staged until it is durable.
    fn record(&mut self, record: &Record, delivery: Delivery, learnt: Option<Learnt>) -> Result<(), Stop> {
        let position = self.process().record(record, delivery)?;
        self.staged.extend(learnt.map(|learnt| (position, learnt)));
        Ok(())
    }

    /// Asks the frontier for visits until every worker has one or nothing is ready; true if nothing is left at all.
    #[allow(clippy::vec_box)] // Visits are boxed from the frontier to their landing.
    fn issue(&mut self, leaving: &mut Vec<Box<Visit>>) -> Result<bool, Stop> {
        let now = self.now();
        loop {
            if self.process().crawl.frontier.counts().in_flight as usize >= self.config.workers {
                self.checker.all_busy();
                return Ok(false);
            }
            match self.process().ask(now)? {
                Asked::Visit(visit) => {
                    let url = visit.entry.url.fingerprint();
                    self.record(&Record::Issued { host: visit.host.clone(), url, at: now }, Delivery::Now, None)?;
                    leaving.push(visit);
                }
                Asked::Drop(entry, outcome) => {
                    let learnt = self.read(&entry.url).and_then(|(host, target)| {
                        let url = self.checker.urls.id(target)?;
                        let path = entry.url.path_and_query().to_string();
                        Some(Learnt::Dropped { url, host, path, outcome, at: now.0 })
                    });
                    self.note(4, entry.url.fingerprint().0);
                    let record = Record::Dropped { entry: *entry, outcome, at: now };
                    self.record(&record, Delivery::Now, learnt)?;
                }
                Asked::Hold(host, hold) => {
                    let index = self.world.web.host_index(host.name());
                    let learnt = index.map(|host| Learnt::Held { host, hold });
                    self.story.holds += 1;
                    self.note(9, host.fingerprint().0);
                    self.record(&Record::Held { host, hold }, Delivery::Now, learnt)?;
                }
                Asked::WaitUntil(at) => {
                    self.wake = at.0;
                    let stuck = at <= now || (at.0 == u64::MAX && self.awaited == 0 && leaving.is_empty());
                    let errands = stuck && at > now && self.has_errands();
                    let process = self.process.as_mut().expect("a turn begins with a process");
                    if stuck && !errands {
                        let figures = process.crawl.frontier.figures(now);
                        let what = format!("the frontier waits until {at} for nothing: {figures:?}");
                        return Err(Violation { invariant: "progress", at: now, what }.into());
                    }
                    self.checker.progress(now.0, || process.crawl.frontier.figures(now))?;
                    return Ok(false);
                }
                Asked::Idle => return Ok(leaving.is_empty()),
            }
        }
    }

    /// Whether the frontier has asked for names or closings that are not under way yet.
    fn has_errands(&mut self) -> bool {
        self.send_errands();
        self.awaited > 0
    }

    /// The commit point: what was staged is durable, and the bus may have what it keeps.
    fn commit(&mut self) -> Result<(), Stop> {
        self.process().commit()?;
        for (_, learnt) in std::mem::take(&mut self.staged) {
            self.checker.learn(&learnt)?;
        }
        for batch in std::mem::take(&mut self.process().held) {
            // Late batches and copies look the same from here; both come within half a minute, a copy once more after hours.
            let at = self.now + 1 + self.dice.below(30_000);
            if self.dice.chance(0.3) {
                let again = at + self.dice.below(4 * 3_600_000);
                self.schedule(again, Event::Mail { batch: batch.clone(), copy: true });
            }
            self.schedule(at, Event::Mail { batch, copy: false });
        }
        Ok(())
    }

    /// A visit leaves: the server sees a request.
    fn leave(&mut self, visit: Box<Visit>) -> Result<(), Stop> {
        let now = self.now;
        let Some(host) = self.world.web.host_index(visit.host.name()) else {
            return self.nonsense(&visit.entry);
        };
        self.story.visits += 1;
        let (target, answer, robots) = match &visit.purpose {
            VisitPurpose::Robots { .. } => {
                self.story.robots += 1;
                self.checker.asks_for_rules(host, now)?;
                let (answer, file) = self.world.robots(host, now);
                (None, answer, Some(file))
            }
            VisitPurpose::Page => {
                let Some((of, target)) = self.read(&visit.entry.url) else { return self.nonsense(&visit.entry) };
                let Some(url) = self.checker.urls.id(target) else { return self.nonsense(&visit.entry) };
                if of != host {
                    return self.nonsense(&visit.entry);
                }
                let (path, attempt) = (visit.entry.url.path_and_query(), visit.entry.attempt);
                self.story.retries += u64::from(attempt > 0);
                self.checker.asks_for_page(host, url, path, attempt, now)?;
                (Some((target, url)), self.world.visit(target, now), None)
            }
        };
        if self.dice.chance(0.05) {
            // The server closed the idle connection meanwhile, so that the fetcher dials anew.
            self.checker.hangs_up(host);
        }
        let address = visit.addresses.first().and_then(|ip| world::address_of(*ip)).unwrap_or(0);
        self.checker.connects(host, address, now)?;
        self.note(5, mix(host, Purpose::History, visit.entry.url.fingerprint().0, u64::from(address)));
        let lands = now + answer.takes_ms;
        let flight = Flight { visit, host, target, started: now, answer, robots };
        let slot = self.flights_free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        self.flights[slot as usize] = Some(flight);
        self.schedule(lands, Event::Landing(slot));
        Ok(())
    }

    fn nonsense(&self, entry: &Entry) -> Result<(), Stop> {
        let what = format!("{} is not a URL of this web", entry.url);
        Err(Violation { invariant: "urls_are_the_webs", at: self.now(), what }.into())
    }

    /// Host and target of a URL.
    fn read(&self, url: &Url) -> Option<(u64, Target)> {
        let host = self.world.web.host_index(url.host_str())?;
        Some((host, self.world.web.target(host, url.path_and_query())?))
    }

    /// Names to resolve, connections to close.
    fn send_errands(&mut self) {
        let frontier = &mut self.process().crawl.frontier;
        let (names, closings) = (frontier.take_unresolved(), frontier.take_connections_to_close());
        for host in names {
            let Some(index) = self.world.web.host_index(host.name()) else { continue };
            self.checker.resolving(index);
            let resolved = self.world.resolve(index, self.now);
            let at = self.now + resolved.takes_ms;
            let answer = resolved.answer.map(|(address, ttl_ms)| (address, at + ttl_ms));
            self.schedule(at, Event::Resolved(host, index, answer));
        }
        for host in closings {
            let Some(index) = self.world.web.host_index(host.name()) else { continue };
            let at = self.now + self.dice.below(30);
            self.schedule(at, Event::Closed(host, index));
        }
    }

    fn measure(&mut self) -> Result<(), Stop> {
        let (now, workers) = (self.now(), self.config.workers);
        let figures = self.process().crawl.frontier.figures(now);
        Ok(self.checker.memory_is_bounded(&figures, workers, now.0)?)
    }

    /// Writes the state down. What the bus keeps is delivered first: a checkpoint passes the records it came from.
    fn checkpoint(&mut self) -> Result<(), Stop> {
        self.commit()?;
        for Scheduled { at, seq, event } in std::mem::take(&mut self.events).into_sorted_vec() {
            match event {
                Event::Mail { batch, copy: false } => {
                    self.awaited -= 1;
                    self.process().receive(&batch)?;
                }
                event => self.events.push(Scheduled { at, seq, event }),
            }
        }
        self.process().checkpoint()?;
        self.story.checkpoints += 1;
        self.note(6, self.story.checkpoints);
        self.measure()
    }

    fn plan_crash(&mut self) {
        let visits = self.story.web_pages * 12 / 10 / (self.config.crashes + 1);
        self.next_crash_visit = self.story.visits + visits / 2 + self.dice.below(visits + 1);
    }

    /// The process dies: at once, or in one of its next writes, or in the middle of a checkpoint.
    fn crash(&mut self) -> Result<(), Stop> {
        self.plan_crash();
        match self.dice.below(4) {
            0 => self.die(),
            1 => {
                let share = self.dice.next() as u8;
                self.mortal.doom(self.dice.below(8), share);
                self.checkpoint()?;
            }
            _ => {
                let share = self.dice.next() as u8;
                self.mortal.doom(self.dice.below(3), share);
            }
        }
        Ok(())
    }

    /// The process is dead. Contacts break off, connections close; only the disk and copies on the bus stay.
    fn die(&mut self) {
        if self.process.take().is_some() {
            self.story.crashes += 1;
        }
        self.note(7, self.story.crashes);
        for flight in self.flights.drain(..).flatten() {
            let ends = self.now.min(flight.started + flight.answer.takes_ms);
            self.checker.contact_ends(flight.host, flight.started, ends);
        }
        self.flights_free.clear();
        self.leave_the_stage();
        self.mortal = MortalDisk::new(self.disk.clone());
        if self.dice.chance(0.15) {
            // It dies again before it is up.
            let share = self.dice.next() as u8;
            self.mortal.doom(self.dice.below(10), share);
        }
        // Somebody or something starts it again after a while.
        self.now += [0, 50, 3_000, 600_000][self.dice.below(4) as usize];
    }

    /// A process begins: reads what is there, and goes on.
    fn open(&mut self) -> Result<(), Stop> {
        let small = self.config.is_small();
        if small && self.story.crashes > 0 && self.dice.chance(0.15) {
            self.damage_checkpoint()?;
        }
        let process = Process::open(self.mortal.clone(), &self.crawl_config, !small, self.now())?;
        let end = process.position();
        self.process = Some(process);
        // What the dead process had appended counts if it reached the disk whole.
        for (position, learnt) in std::mem::take(&mut self.staged) {
            if position <= end {
                self.checker.learn(&learnt)?;
            }
        }
        let now = self.now();
        self.note(8, end.offset);
        self.process().record(&Record::Opened(now), Delivery::Now)?;
        self.plant_seeds()?;
        self.wake = self.now;
        self.schedule(self.now + TICK_MS, Event::Tick);
        self.schedule(self.now + self.config.checkpoint_ms(), Event::Checkpoint);
        Ok(())
    }

    /// The front pages of a few hosts all over the web, because the first may be down.
    fn plant_seeds(&mut self) -> Result<(), Stop> {
        let now = self.now();
        let hosts = self.world.web.hosts();
        for i in 0..hosts.min(16) {
            let target = Target::Page { host: i * (hosts / hosts.min(16)), page: 0 };
            let Some(url) = Url::from_canonical(&self.world.web.target_url(target)) else { continue };
            if self.process().crawl.has_seed(&url) {
                continue;
            }
            let mut entry = Entry::new(url, 0);
            entry.seed = true;
            let learnt = self.checker.urls.id(target).map(|url| Learnt::Seed { url, at: now.0 });
            self.record(&Record::Seed(entry, now), Delivery::Now, learnt)?;
        }
        Ok(())
    }

    /// A checkpoint is never needed: damaged, it is made anew from the log.
    fn damage_checkpoint(&mut self) -> Result<(), Stop> {
        let names = self.disk.list("state")?;
        if let Some(name) = names.iter().rfind(|name| name.starts_with("checkpoint-") && !name.ends_with(".tmp")) {
            let name = format!("state/{name}");
            let mut bytes = self.disk.read(&name)?;
            let at = self.dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.dice.below(8);
            self.disk.replace(&name, &bytes)?;
            self.story.rebuilt += 1;
        }
        Ok(())
    }
}

/// A link as the pipeline records it; anchor texts decide nothing and are left out.
fn outlink(url: &str, kind: LinkKind, nofollow: bool) -> Outlink {
    let url = Url::from_canonical(url).expect("the web's URLs are canonical");
    let rel = if nofollow { Rel::NOFOLLOW } else { Rel::default() };
    Outlink { rel, ..Outlink::bare(url, kind, true) }
}
