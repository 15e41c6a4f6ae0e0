//! A crawl that reads what others fetched instead of fetching itself: the engine's other loop.
//!
//! One thread reads the sources from one end to the other; the shards understand pages as they do fetched ones; the engine takes
//! what they made in the order of the sources, which is what lets the log count visits instead of naming places
//! (`rhumb_core::reading`). Nothing is resolved, dialled or scheduled, and no link is wanted.
//!
//! Memory: pages on their way share the budget of bodies, and their number is bounded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rhumb_core::outcome::Outcome;
use rhumb_core::reading::Reading;
use rhumb_core::record::Record;
use rhumb_core::robots::ROBOTS_BYTES_MAX;
use rhumb_core::url::Normalizer;
use rhumb_core::visit::{Entry, Purpose, Visit};
use rhumb_store::archive;
use rhumb_store::log::{LogReader, Position};
use rhumb_store::warc::Digest;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel};
use tokio::sync::watch;

use crate::engine::{Chores, CrawlError, End, Engine, Event};
use crate::fetch::Fetched;
use crate::fetch::budget::{Held, PageBudget};
use crate::pipeline::Finished;
use crate::protocol::Registry;
use crate::protocol::feed::{HowToRead, Item, Known, Page};
use crate::shard::{Command, Shard};

/// After so many visits the log says where reading may begin: so many are read again at the most when a crawl goes on.
const VISITS_BETWEEN_PLACES: u64 = 64;
/// Pages that wait for each shard.
const PAGES_PER_SHARD: usize = 8;
/// What one place of a known body takes.
const KNOWN_BYTES: usize = 48;

/// What the reading thread says. Places and counts are those in front of a page.
enum Told {
    /// A source is begun, or gone on with; and its length.
    Begin(Reading, u64),
    Page(Box<Page>, Held, Option<Reading>),
    Trouble(String),
    /// The end of a source, with its counts and length.
    End(Reading),
    Failed(String, std::io::Error),
}

/// What waits for its turn to be committed.
enum Turn {
    Place(Reading),
    Page { number: u64, place: Option<Reading>, finished: Option<Box<Finished>> },
    End(Reading),
}

impl Engine {
    /// Puts sources of the user's into the log, unless they are there already.
    pub fn add_sources(&mut self, sources: &[String]) -> Result<(), CrawlError> {
        for source in sources {
            if !self.crawl.readings.list.iter().any(|known| *known.source == **source) {
                self.record(&Record::Read(Reading::new(source), self.clock.now()))?;
            }
        }
        self.commit()
    }

    pub(crate) async fn read_until_done(
        &mut self,
        stop: &mut watch::Receiver<bool>,
        inbox: &mut UnboundedReceiver<Event>,
        events: &UnboundedSender<Event>,
        shards: &[Shard],
        chores: &mut Chores,
    ) -> Result<End, CrawlError> {
        self.record(&Record::Opened(self.clock.now()))?;
        self.publish("running");
        let known = self.known_bodies()?;
        let mut told = self.start_reading(known)?;
        let window = PAGES_PER_SHARD * shards.len();
        let mut turns: VecDeque<Turn> = VecDeque::new();
        let mut arrived = Vec::with_capacity(256);
        let (mut pages_sent, mut since_place) = (0, VISITS_BETWEEN_PLACES);
        let (mut all_told, mut stoppable, mut held_back) = (false, true, None);
        loop {
            for event in arrived.drain(..) {
                match event {
                    Event::Read(number, finished) => put(&mut turns, number, finished),
                    other => self.handle(other, chores)?,
                }
            }
            let limited = self.commit_turns(&mut turns, &mut since_place, chores)?;
            self.commit()?;
            self.do_chores(chores, events)?;
            if limited || self.time_is_up() {
                return Ok(End::Limit);
            }
            if all_told && turns.is_empty() && held_back.is_none() {
                return Ok(End::Finished);
            }
            // A copy can be told from a page of its own only when the original is in the log.
            let may_go_on = if held_back.is_some() { turns.is_empty() } else { !all_told && turns.len() < window };
            tokio::select! {
                biased;
                n = inbox.recv_many(&mut arrived, 256) => assert!(n > 0, "the engine holds a sender itself"),
                changed = stop.changed(), if stoppable => {
                    stoppable = changed.is_ok() && !*stop.borrow();
                    if changed.is_ok() && *stop.borrow() {
                        // What is on its way is read again.
                        return Ok(End::Interrupted);
                    }
                }
                next = next_told(&mut told, &mut held_back), if may_go_on => match next {
                    None => all_told = true,
                    Some(Told::Begin(reading, bytes)) => {
                        self.reading = (reading.source.to_string(), bytes);
                        turns.push_back(Turn::Place(reading));
                    }
                    Some(Told::End(reading)) => turns.push_back(Turn::End(reading)),
                    Some(Told::Trouble(what)) => self.tell_trouble(&what),
                    Some(Told::Failed(source, error)) => return Err(CrawlError::Source(source, error)),
                    Some(Told::Page(page, held, place)) if page.is_copy && !turns.is_empty() => {
                        held_back = Some((page, held, place));
                    }
                    Some(Told::Page(page, held, place)) => {
                        let (visit, fetched) = as_visit(*page, held);
                        turns.push_back(Turn::Page { number: pages_sent, place, finished: None });
                        let shard = &shards[pages_sent as usize % shards.len()];
                        let _ = shard.commands.send(Command::Read(pages_sent, visit, fetched));
                        pages_sent += 1;
                    }
                },
                () = tokio::time::sleep_until(chores.next().into()) => {}
            }
        }
    }

    /// Commits what is there, in order. True when the page limit is reached.
    fn commit_turns(
        &mut self,
        turns: &mut VecDeque<Turn>,
        since_place: &mut u64,
        chores: &mut Chores,
    ) -> Result<bool, CrawlError> {
        loop {
            if self.settings.pages_max.is_some_and(|max| self.crawl.totals.pages >= max) {
                return Ok(true);
            }
            match turns.front() {
                None | Some(Turn::Page { finished: None, .. }) => return Ok(false),
                Some(_) => {}
            }
            let at = self.clock.now();
            match turns.pop_front() {
                Some(Turn::Page { place, finished: Some(finished), .. }) => {
                    if let Some(place) = place.filter(|_| *since_place >= VISITS_BETWEEN_PLACES) {
                        self.record(&Record::Read(place, at))?;
                        *since_place = 0;
                    }
                    *since_place += 1;
                    self.handle(Event::Finished(*finished), chores)?;
                }
                Some(Turn::Place(reading)) => self.record(&Record::Read(reading, at))?,
                Some(Turn::End(mut end)) => {
                    let known = self.crawl.readings.list.iter().find(|known| known.source == end.source);
                    if let Some(known) = known.filter(|_| end.offset == 0) {
                        (end.offset, end.visits) = (known.offset, known.visits);
                    }
                    self.record(&Record::Read(end, at))?;
                }
                _ => unreachable!("it was just looked at"),
            }
        }
    }

    fn tell_trouble(&mut self, what: &str) {
        tracing::debug!(what, "of a source");
        if let Some(tell) = &mut self.on_trouble {
            tell(what);
        }
    }

    /// Where the bodies lie that this crawl has archived: a source may refer to them.
    fn known_bodies(&self) -> Result<Known, CrawlError> {
        let mut known = Known::new(self.settings.crawl.seen_bytes_max / KNOWN_BYTES);
        let names: std::collections::BTreeMap<u32, String> = archive::files(&*self.disk)?.into_iter().collect();
        let mut reader = LogReader::open(self.disk.clone(), Position::START)?;
        while let Some((kind, payload)) = reader.next()? {
            let Ok(Record::Visited(visit)) = Record::take(kind, payload) else { continue };
            if let (Some(digest), Some(place), None, Outcome::Ok) =
                (visit.digest, visit.archived, &visit.duplicate_of, visit.outcome)
                && let Some(name) = names.get(&place.file)
            {
                let path: PathBuf = self.root.join(archive::DIR).join(name);
                known.add(&Digest(digest).to_string(), &path, place.offset);
            }
        }
        Ok(known)
    }

    fn start_reading(&self, known: Known) -> Result<Receiver<Told>, CrawlError> {
        let (sender, told) = channel(4);
        let budget = self.budget.clone().unwrap_or_else(|| PageBudget::new(self.settings.page_bytes_max));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| CrawlError::System("start the runtime", e))?;
        let reader = Reader {
            registry: self.settings.protocols.clone(),
            how: HowToRead {
                from: 0,
                head_bytes_max: self.settings.fetch.head_bytes_max,
                body_bytes_max: self.settings.fetch.body_bytes_max,
                normalizer: Normalizer::new(&self.settings.normalize),
            },
            known,
            budget,
            sender,
        };
        let readings = self.crawl.readings.list.clone();
        let read = move || runtime.block_on(reader.read_all(readings));
        let thread = std::thread::Builder::new().name("reading".to_string()).spawn(read);
        thread.map_err(|e| CrawlError::System("start a thread", e))?;
        Ok(told)
    }
}

type HeldBack = Option<(Box<Page>, Held, Option<Reading>)>;

async fn next_told(told: &mut Receiver<Told>, held_back: &mut HeldBack) -> Option<Told> {
    match held_back.take() {
        Some((page, held, place)) => Some(Told::Page(page, held, place)),
        None => told.recv().await,
    }
}

fn put(turns: &mut VecDeque<Turn>, arrived: u64, result: Box<Finished>) {
    let waiting = turns.iter_mut().find_map(|turn| match turn {
        Turn::Page { number, finished, .. } if *number == arrived => Some(finished),
        _ => None,
    });
    if let Some(finished) = waiting {
        let mut result = result;
        let record = &mut result.record;
        record.links.iter_mut().for_each(|link| link.wanted = false);
        if let Some(robots) = record.robots.as_mut().filter(|r| r.len() > ROBOTS_BYTES_MAX) {
            *robots = robots[..ROBOTS_BYTES_MAX].into();
        }
        // What is to be learned of traps concerns those who visit.
        result.gist = None;
        *finished = Some(result);
    }
}

/// A page that somebody else fetched, as a visit of ours. A robots.txt is one of those too.
fn as_visit(page: Page, held: Held) -> (Box<Visit>, Box<Fetched>) {
    let host = page.url.host();
    let purpose = match page.url.is_web() && page.url.path_and_query() == "/robots.txt" {
        true => Purpose::Robots { host: host.clone(), hops: 0 },
        false => Purpose::Page,
    };
    let mut fetched = Fetched::failed(Instant::now(), Outcome::of_status(page.status), String::new(), held);
    fetched.status = page.status;
    fetched.headers = page.headers;
    fetched.head = page.head;
    fetched.body = page.body;
    fetched.cut = page.cut;
    fetched.address = page.address;
    fetched.http2 = page.http2;
    fetched.at = Some(page.at);
    let visit = Visit { entry: Entry::new(page.url, 0), host, purpose, addresses: Arc::from([]) };
    (Box::new(visit), Box::new(fetched))
}

/// The thread that reads.
struct Reader {
    registry: Registry,
    how: HowToRead,
    known: Known,
    budget: Arc<PageBudget>,
    sender: Sender<Told>,
}

impl Reader {
    /// Reads until the end, or until nobody listens any more.
    async fn read_all(mut self, readings: Vec<Reading>) {
        for reading in readings {
            let source = reading.source.to_string();
            match self.read(reading).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let _ = self.sender.send(Told::Failed(source, error)).await;
                    return;
                }
            }
        }
    }

    async fn read(&mut self, mut reading: Reading) -> std::io::Result<bool> {
        self.how.from = reading.offset;
        let mut feed = self.registry.open(&reading.source, &self.how)?;
        if reading.bytes == feed.bytes() && reading.bytes > 0 {
            return Ok(true);
        }
        reading.bytes = 0;
        if self.sender.send(Told::Begin(reading.clone(), feed.bytes())).await.is_err() {
            return Ok(false);
        }
        let mut in_log = std::mem::take(&mut reading.visits);
        let mut whole = true;
        while let Some(item) = feed.next(&mut self.known)? {
            whole = !matches!(item, Item::Trouble(_));
            let told = match item {
                Item::Passed => {
                    reading.passed += 1;
                    continue;
                }
                Item::Trouble(what) => {
                    reading.troubles += 1;
                    Told::Trouble(what)
                }
                Item::Page(_) if in_log > 0 => {
                    in_log -= 1;
                    continue;
                }
                Item::Page(page) => {
                    let place = page.offset.map(|offset| Reading { offset, ..reading.clone() });
                    let mut held = self.budget.hold();
                    held.grow_to(page.body.len() + page.head.len()).await;
                    Told::Page(page, held, place)
                }
            };
            if self.sender.send(told).await.is_err() {
                return Ok(false);
            }
        }
        reading.bytes = feed.bytes();
        // Should it grow, it is read on from its end, unless that is not the end of a record.
        reading.offset = if whole { reading.bytes } else { 0 };
        Ok(self.sender.send(Told::End(reading)).await.is_ok())
    }
}
