//! The frontier decides which URL is visited next, and when (SPEC C3, C10).
//!
//! The life of a waiting URL. [`Frontier::admit`] asks the prioritizer for a number and appends the URL to
//! that *front queue*. When a *back queue* is free, a front queue is drawn, biased towards high priority, and
//! its first URL moved on: to the back queue of its host, if the host table knows one, otherwise the free
//! back queue becomes that host's. Each back queue holds URLs of one host, and the *ready heap* says when each
//! host may be contacted again. [`Frontier::next_visit`] takes the earliest; [`Frontier::finish`] winds the
//! host's clock anew.
//!
//! Invariants, whatever the web does: at most one visit of a host is under way (`one_visit_per_host`); no visit
//! begins before the gap is over (`delay_is_kept`); no page is visited without fresh rules that allow it; at most
//! the configured number of connections is open to an address; nothing admitted is lost, also over a crash:
//! what was in flight waits again, and what was finished behind the checkpoint is left out as a *ghost*.
//!
//! Pure logic: time comes in as an argument, names are resolved by whoever drives it
//! ([`Frontier::take_unresolved`], [`Frontier::resolved`]), and long queues lie on a `Disk`.
//! Read `host.rs` next (one host's state), then `addresses.rs`.

mod addresses;
mod host;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::net::IpAddr;
use std::sync::Arc;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::fifo::{self, Fifo, FifoDisk};
use rhumb_store::{Result, StoreError, Timestamp};

use crate::outcome::Outcome;
use crate::priority::{Prioritizer, Random};
use crate::robots::{Access, Fetched, Rules};
use crate::sieve::AsIs;
use crate::url::{Host, Url};
use crate::visit::{Entry, Purpose, Validators, Visit, VisitRecord};
use addresses::Addresses;
use host::{Connection, Errand, HostState, InFlight, Robots};

/// Redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2).
const ROBOTS_HOPS_MAX: u8 = 5;
/// URLs moved from front to back queues in one call, so that no call takes long.
const MOVES_MAX: usize = 256;

/// Bounds and delays of a frontier.
#[derive(Clone, Debug)]
pub struct FrontierConfig {
    /// The product token robots.txt knows us by.
    pub agent: String,
    /// Back queues kept filled while there are URLs: about three times the workers.
    pub back_queues: usize,
    /// Back queues opened at the most when all others have to wait.
    pub back_queues_max: usize,
    /// The shortest pause between requests to a host; 0 switches waiting off.
    pub delay_ms_min: u64,
    /// The pause is at least this many times the last fetch's duration.
    pub delay_factor: f64,
    /// A longer Crawl-delay parks the host.
    pub crawl_delay_ms_max: u64,
    /// Connections to one address; 0 for no limit.
    pub per_address: u32,
    /// robots.txt is fetched again after this time.
    pub robots_ms_max: u64,
    /// Visits of one URL that keeps failing.
    pub attempts_max: u8,
    /// Visits of one URL that the host answers with "too many requests".
    pub attempts_limited_max: u8,
    /// Failures to answer in a row after which a host's URLs are given up.
    pub host_failures_max: u8,
    /// How long a host counts as down.
    pub down_ms: u64,
    /// First pause after a failure to answer; each further one is four times as long.
    pub failure_ms_first: u64,
    /// First pause after a rate-limit event; each further one is twice as long.
    pub backoff_ms_first: u64,
    /// The longest back-off without a Retry-After.
    pub backoff_ms_max: u64,
    /// The longest Retry-After that is obeyed.
    pub retry_after_ms_max: u64,
    /// An idle connection is closed after this time.
    pub keep_alive_ms: u64,
    /// Idle connections kept at the most; the one idle for longest goes first.
    pub idle_max: usize,
    /// Bytes of a queue's end that become a file.
    pub chunk_bytes: usize,
    /// Continuous mode: a fetched page is due again after this time.
    pub revisit_ms: Option<u64>,
}

impl Default for FrontierConfig {
    fn default() -> Self {
        FrontierConfig {
            agent: "rhumb".to_string(),
            back_queues: 768,
            back_queues_max: 1 << 16,
            delay_ms_min: 2_000,
            delay_factor: 10.0,
            crawl_delay_ms_max: 300_000,
            per_address: 4,
            robots_ms_max: 24 * 3_600_000,
            attempts_max: 3,
            attempts_limited_max: 6,
            host_failures_max: 4,
            down_ms: 3_600_000,
            failure_ms_first: 1_000,
            backoff_ms_first: 4_000,
            backoff_ms_max: 600_000,
            retry_after_ms_max: 24 * 3_600_000,
            keep_alive_ms: 5_000,
            idle_max: 512,
            chunk_bytes: 32 << 10,
            revisit_ms: None,
        }
    }
}

/// The answer to "what now?".
#[derive(Debug)]
pub enum Next {
    /// Contact this host now.
    Visit(Box<Visit>),
    /// This URL leaves the frontier without a visit.
    Drop(Box<Entry>, Outcome),
    /// Nothing may be done before this time, or before a visit or a look-up ends.
    WaitUntil(Timestamp),
    /// Nothing waits and nothing is under way.
    Idle,
}

/// See the module's header.
pub struct Frontier {
    disk: Arc<dyn Disk>,
    config: Arc<FrontierConfig>,
    prioritizer: Prioritizer,
    random: Random,
    front: Vec<Fifo>,
    /// Continuous mode: what is due again, in the order of due times (they are all the same time ahead).
    revisits: Fifo,
    revisit_head: Option<(Timestamp, Vec<u8>)>,
    hosts: HashMap<u64, HostState, BuildHasherDefault<AsIs>>,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    ready: BinaryHeap<Reverse<(Timestamp, u32)>>,
    addresses: Addresses,
    unresolved: Vec<Host>,
    to_close: Vec<Host>,
    /// Idle connections in the order they became so; an entry holds only while its host still says so.
    idle: VecDeque<(Timestamp, u64)>,
    idle_count: usize,
    /// Entries in the queues that were finished already, by fingerprint and attempt: a crash brought them back. A URL
    /// that is to be tried again waits beside its own ghost, and the attempt tells which is which.
    ghosts: BTreeMap<(u64, u8), u32>,
    /// Drops that `next_visit` spoke of and the log does not know yet.
    dropping: BTreeMap<u64, u32>,
    next_segment: u64,
    waiting: u64,
    in_flight: u64,
    in_flight_pages: u64,
}

/// A back queue.
#[derive(Debug, Default)]
struct Slot {
    host: u64,
    queue: Fifo,
    /// Whether the ready heap has an entry for it.
    queued: bool,
    /// Whether it stands in line for a connection to its host's address.
    in_line: bool,
}

impl Frontier {
    /// An empty frontier.
    pub fn new(disk: Arc<dyn Disk>, config: FrontierConfig, prioritizer: Prioritizer, seed: u64) -> Result<Frontier> {
        disk.make_dir(fifo::DIR)?;
        Ok(Frontier {
            addresses: Addresses::new(config.per_address),
            front: (0..prioritizer.levels()).map(|_| Fifo::default()).collect(),
            disk,
            config: Arc::new(config),
            prioritizer,
            random: Random::new(seed),
            revisits: Fifo::default(),
            revisit_head: None,
            hosts: HashMap::default(),
            slots: Vec::new(),
            slots_free: Vec::new(),
            ready: BinaryHeap::new(),
            unresolved: Vec::new(),
            to_close: Vec::new(),
            idle: VecDeque::new(),
            idle_count: 0,
            ghosts: BTreeMap::new(),
            dropping: BTreeMap::new(),
            next_segment: 1,
            waiting: 0,
            in_flight: 0,
            in_flight_pages: 0,
        })
    }

    /// Takes in a URL that the sieve let through.
    pub fn admit(&mut self, entry: &Entry) -> Result<()> {
        self.waiting += 1;
        let level = self.prioritizer.level(entry);
        // The usual case of a small crawl: nothing is ahead of it, so the front queues have nothing to order.
        if self.waiting_in_front() == 0 && self.has_slot_for(entry) {
            return self.place(entry);
        }
        let bytes = entry.to_bytes();
        self.with_disk(|this, on| this.front[level].push(&bytes, on))
    }

    /// What to do now. Call again until it answers `WaitUntil` or `Idle`, or no worker is free.
    pub fn next_visit(&mut self, now: Timestamp) -> Result<Next> {
        self.admit_revisits(now)?;
        self.fill_back_queues(self.config.back_queues)?;
        loop {
            match self.ready.peek() {
                Some(Reverse((at, _))) if *at <= now => {}
                _ => {
                    // Everybody has to wait. More back queues mean more hosts to choose from.
                    let before = self.ready.len();
                    self.fill_back_queues((self.slots_used() + 16).min(self.config.back_queues_max))?;
                    let found = self.ready.len() > before && self.ready.peek().is_some_and(|r| r.0.0 <= now);
                    if !found {
                        return Ok(self.nothing_ready());
                    }
                }
            }
            let Some(Reverse((_, slot))) = self.ready.pop() else { continue };
            self.slots[slot as usize].queued = false;
            if let Some(next) = self.try_slot(slot, now)? {
                return Ok(next);
            }
        }
    }

    fn nothing_ready(&self) -> Next {
        let due = self.revisit_head.as_ref().map(|(due, _)| *due);
        let ready = self.ready.peek().map(|r| r.0.0);
        match due.into_iter().chain(ready).min() {
            Some(at) => Next::WaitUntil(at),
            None if self.waiting == 0 && self.in_flight == 0 => Next::Idle,
            None => Next::WaitUntil(Timestamp(u64::MAX)),
        }
    }

    /// The turn of one back queue whose time has come. `None`: it went elsewhere, ask the next.
    fn try_slot(&mut self, slot: u32, now: Timestamp) -> Result<Option<Next>> {
        let key = self.slots[slot as usize].host;
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        if state.in_flight.is_some() || state.resolving || matches!(state.connection, Connection::Closing(_)) {
            return Ok(None);
        }
        match state.down {
            Some((outcome, until)) if now < until => {
                // Those who wait for their rules from here must hear that there are none.
                for errand in std::mem::take(&mut state.errands) {
                    self.robots_failed(&errand.for_host, None, now);
                }
                return self.give_up_one(slot, outcome);
            }
            Some(_) => {
                state.down = None;
                state.failures = 0;
            }
            None => {}
        }
        if state.ready_at() > now {
            self.schedule(slot);
            return Ok(None);
        }
        let literal = state.host.ip_literal();
        if let (None, Some(address)) = (&state.addresses, literal) {
            state.addresses = Some((Arc::from([address]), Timestamp(u64::MAX)));
        }
        let addresses = match &state.addresses {
            Some((addresses, expires)) if now < *expires => addresses.clone(),
            expired => {
                let before = expired.as_ref().and_then(|(addresses, _)| addresses.first().copied());
                state.resolving = true;
                self.unresolved.push(state.host.clone());
                // Its turn at the address, if it had one, goes to the next.
                before.into_iter().for_each(|address| self.wake_next_at(address));
                return Ok(None);
            }
        };
        let Some(&address) = addresses.first() else {
            return self.give_up_one(slot, Outcome::NoHost);
        };
        if state.connection == Connection::None && !self.addresses.try_open(address) {
            self.addresses.wait(address, slot);
            self.slots[slot as usize].in_line = true;
            self.close_an_idle_connection(address);
            return Ok(None);
        }
        if state.connection == Connection::None {
            // Counted now; given back by `unused` should there be nothing to fetch.
            state.connection = Connection::Busy(address);
        }
        let (entry, purpose) = match self.choose(slot, now)? {
            Choice::Fetch(entry, purpose) => (entry, purpose),
            Choice::Drop(entry, outcome) => {
                self.unused(key);
                self.schedule_or_release(slot);
                return Ok(Some(self.drop(entry, outcome)));
            }
            Choice::Nothing => {
                self.unused(key);
                self.schedule_or_release(slot);
                return Ok(None);
            }
        };
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        if let Connection::Idle(address, _) = state.connection {
            self.idle_count -= 1;
            self.addresses.not_idle(address, key);
        }
        state.connection = Connection::Busy(address);
        state.in_flight = Some(InFlight { entry: purpose.is_page().then(|| entry.clone()) });
        self.in_flight += 1;
        self.in_flight_pages += u64::from(purpose.is_page());
        self.waiting -= u64::from(purpose.is_page());
        Ok(Some(Next::Visit(Box::new(Visit { entry, host: state.host.clone(), purpose, addresses }))))
    }

    /// What the host's next contact is for: an errand, its robots.txt, or its first allowed URL.
    fn choose(&mut self, slot: u32, now: Timestamp) -> Result<Choice> {
        let key = self.slots[slot as usize].host;
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        if !state.errands.is_empty() {
            let errand = state.errands.remove(0);
            let purpose = Purpose::Robots { host: errand.for_host, hops: errand.hops };
            return Ok(Choice::Fetch(Entry::new(errand.url, 0), purpose));
        }
        if matches!(state.robots, Robots::Elsewhere) {
            return Ok(Choice::Nothing);
        }
        if !self.slots[slot as usize].queue.is_empty() && !state.robots_fresh(now) {
            let url = state.host.robots_url();
            let mut entry = Entry::new(url, 0);
            if let Robots::Known { validators, .. } = &state.robots {
                entry.validators = validators.clone();
            }
            return Ok(Choice::Fetch(entry, Purpose::Robots { host: state.host.clone(), hops: 0 }));
        }
        let Some(entry) = self.pop(slot)? else { return Ok(Choice::Nothing) };
        let state = &self.hosts[&key];
        if !state.allows(&entry.url) {
            return Ok(Choice::Drop(entry, Outcome::RobotsDisallowed));
        }
        Ok(Choice::Fetch(entry, Purpose::Page))
    }

    /// Takes one URL of a host that is given up out of its queue.
    fn give_up_one(&mut self, slot: u32, outcome: Outcome) -> Result<Option<Next>> {
        let entry = self.pop(slot)?;
        self.schedule_or_release(slot);
        Ok(entry.map(|entry| self.drop(entry, outcome)))
    }

    fn drop(&mut self, entry: Entry, outcome: Outcome) -> Next {
        self.waiting -= 1;
        *self.dropping.entry(entry.url.fingerprint().0).or_default() += 1;
        Next::Drop(Box::new(entry), outcome)
    }

    /// The first entry of a back queue that is not a ghost.
    fn pop(&mut self, slot: u32) -> Result<Option<Entry>> {
        loop {
            let bytes = self.with_disk(|this, on| this.slots[slot as usize].queue.pop(on))?;
            let Some(bytes) = bytes else { return Ok(None) };
            let entry = Entry::from_bytes(&bytes).map_err(malformed)?;
            if !take_one(&mut self.ghosts, ghost_key(&entry)) {
                return Ok(Some(entry));
            }
            self.waiting -= 1;
        }
    }

    /// A connection that was counted but not needed is given back.
    fn unused(&mut self, key: u64) {
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        if let Connection::Busy(address) = state.connection {
            state.connection = Connection::None;
            self.address_freed(address);
        }
    }

    fn address_freed(&mut self, address: IpAddr) {
        self.addresses.closed(address);
        self.wake_next_at(address);
    }

    /// Lets the first in line at an address try, if there is room.
    fn wake_next_at(&mut self, address: IpAddr) {
        if let Some(slot) = self.addresses.next_waiting(address) {
            self.slots[slot as usize].in_line = false;
            self.schedule(slot);
        }
    }

    /// Asks for one idle connection to `address` to be closed, so that a host that waits can have its place.
    fn close_an_idle_connection(&mut self, address: IpAddr) {
        while let Some(key) = self.addresses.take_idle(address) {
            if self.close_if_idle(key, |a, _| a == address) {
                return;
            }
        }
    }

    fn close_if_idle(&mut self, key: u64, wanted: impl FnOnce(IpAddr, Timestamp) -> bool) -> bool {
        let Some(state) = self.hosts.get_mut(&key) else { return false };
        match state.connection {
            Connection::Idle(address, since) if wanted(address, since) => {
                self.idle_count -= 1;
                state.connection = Connection::Closing(address);
                self.to_close.push(state.host.clone());
                self.addresses.not_idle(address, key);
                true
            }
            _ => false,
        }
    }

    // ---- what the driver reports -------------------------------------------------------------------------

    /// Hosts whose addresses are wanted; answer each with [`Frontier::resolved`].
    pub fn take_unresolved(&mut self) -> Vec<Host> {
        std::mem::take(&mut self.unresolved)
    }

    /// The addresses of a host, fit to be dialled, until `expires`; or why there are none.
    pub fn resolved(&mut self, host: &Host, answer: Result<(Arc<[IpAddr]>, Timestamp), Outcome>, now: Timestamp) {
        let key = host.fingerprint().0;
        let down_until = now.plus_ms(self.config.down_ms);
        let Some(state) = self.hosts.get_mut(&key) else { return };
        state.resolving = false;
        match answer {
            // A time to live of nothing still serves the visit that asked.
            Ok((addresses, expires)) => state.addresses = Some((addresses, expires.max(now.plus_ms(1_000)))),
            Err(outcome) => state.down = Some((outcome, down_until)),
        }
        let failed = state.down.map(|(outcome, _)| outcome);
        let errands = if failed.is_some() { std::mem::take(&mut state.errands) } else { Vec::new() };
        if let Some(slot) = state.slot {
            self.schedule(slot);
        }
        for errand in errands {
            self.robots_failed(&errand.for_host, None, now);
        }
    }

    /// How a visit's connection was left: kept open for the next request, or closed.
    pub fn connection_left(&mut self, host: &Host, kept: bool, now: Timestamp) {
        let key = host.fingerprint().0;
        let Some(state) = self.hosts.get_mut(&key) else { return };
        if let Connection::Busy(address) = state.connection {
            if kept {
                state.connection = Connection::Idle(address, now);
                self.idle_count += 1;
                if self.addresses.is_wanted(address) {
                    self.close_if_idle(key, |_, _| true);
                } else {
                    self.idle.push_back((now, key));
                    self.addresses.idle(address, key);
                    self.keep_idle_within(self.config.idle_max);
                }
            } else {
                state.connection = Connection::None;
                self.address_freed(address);
            }
        }
    }

    /// Connections to close now; confirm each with [`Frontier::connection_closed`].
    pub fn take_connections_to_close(&mut self) -> Vec<Host> {
        std::mem::take(&mut self.to_close)
    }

    /// An idle connection is closed.
    pub fn connection_closed(&mut self, host: &Host) {
        let key = host.fingerprint().0;
        let Some(state) = self.hosts.get_mut(&key) else { return };
        if let Connection::Closing(address) | Connection::Idle(address, _) = state.connection {
            if matches!(state.connection, Connection::Idle(..)) {
                self.idle_count -= 1;
                self.addresses.not_idle(address, key);
            }
            state.connection = Connection::None;
            self.address_freed(address);
            let slot = self.hosts[&key].slot;
            slot.into_iter().for_each(|s| self.schedule(s));
        }
    }

    fn keep_idle_within(&mut self, most: usize) {
        while self.idle_count > most {
            let Some((since, key)) = self.idle.pop_front() else { return };
            self.close_if_idle(key, |_, idle_since| idle_since == since);
        }
    }

    /// Marks connections that were idle for too long to be closed. Called every second or so.
    pub fn close_idle_connections(&mut self, now: Timestamp) {
        while let Some(&(since, key)) = self.idle.front() {
            if now.ms_since(since) < self.config.keep_alive_ms {
                return;
            }
            self.idle.pop_front();
            self.close_if_idle(key, |_, idle_since| idle_since == since);
        }
    }

    // ---- folding the log ---------------------------------------------------------------------------------

    /// Whether a URL that ended so should be tried again; part of its record.
    pub fn will_retry(&self, entry: &Entry, outcome: Outcome) -> bool {
        let max = match outcome {
            Outcome::RateLimited => self.config.attempts_limited_max,
            o if o.is_transient() => self.config.attempts_max,
            _ => return false,
        };
        entry.attempt.saturating_add(1) < max
    }

    /// A contact was announced in the log.
    pub fn issued(&mut self, host: &Host, at: Timestamp) {
        self.host_mut(host).issued = Some(at);
    }

    /// The log says that a URL left the frontier without a visit. In a running crawl `next_visit` took it out
    /// already; in a replay it still waits somewhere.
    pub fn dropped_in_log(&mut self, entry: &Entry) {
        if !take_one(&mut self.dropping, entry.url.fingerprint().0) {
            self.add_ghost(entry);
        }
    }

    /// A visit is finished: winds the host's clocks, learns its rules, puts back what is to be tried again.
    pub fn finish(&mut self, record: &VisitRecord) -> Result<()> {
        let host = record.entry.url.host();
        let now = record.ended;
        let config = self.config.clone();
        let jitter = self.random.unit();
        let state = self.host_mut(&host);
        state.issued = None;
        let flown = state.in_flight.take();
        if record.contacted() {
            state.contacted(record.started, record.ended, &config);
            state.fetch_ms_last = Some(record.duration_ms());
        }
        let event = match record.outcome {
            Outcome::RateLimited => {
                state.backoff_level = state.backoff_level.saturating_add(1).min(20);
                let grown = (config.backoff_ms_first << (state.backoff_level - 1)).min(config.backoff_ms_max);
                let asked = record.retry_after_ms.filter(|&ms| ms > 0).map(|ms| ms.min(config.retry_after_ms_max));
                Some(asked.unwrap_or(0).max((grown as f64 * (0.75 + 0.5 * jitter)) as u64))
            }
            outcome if outcome.is_host_trouble() => {
                state.failures = state.failures.saturating_add(1);
                let grown = config.failure_ms_first << (2 * u32::from(state.failures - 1).min(8));
                Some((grown.min(config.backoff_ms_max) as f64 * (0.75 + 0.5 * jitter)) as u64)
            }
            Outcome::BlockedAddress | Outcome::NoHost | Outcome::DnsFailed => {
                state.down = Some((record.outcome, now.plus_ms(config.down_ms)));
                None
            }
            outcome => {
                // Whether an answer to the question for the rules is good enough is judged below.
                if !matches!(&record.purpose, Purpose::Robots { host: ruled, .. } if *ruled == host) {
                    state.failures = 0;
                }
                if matches!(outcome, Outcome::Ok | Outcome::NotModified | Outcome::Redirect | Outcome::NotFound) {
                    state.backoff_level = 0;
                }
                None
            }
        };
        if let Some(ms) = event {
            // An answer in between never shortens what an earlier one asked for.
            state.backoff_until = state.backoff_until.max(now.plus_ms(ms));
        }
        if state.failures >= config.host_failures_max {
            state.down = Some((Outcome::HostDown, now.plus_ms(config.down_ms)));
            state.failures = 0;
        }
        let was_live = flown.is_some();
        self.in_flight -= u64::from(was_live);
        self.in_flight_pages -= u64::from(was_live && record.purpose.is_page());
        match &record.purpose {
            Purpose::Page => {
                let known = flown.and_then(|f| f.entry).is_some_and(|e| e.url == record.entry.url);
                if !known {
                    self.add_ghost(&record.entry);
                }
                self.put_back(record)?;
            }
            Purpose::Robots { host: ruled, hops } => {
                if let Some(state) = self.hosts.get_mut(&host.fingerprint().0) {
                    state.errands.retain(|e| e.for_host != *ruled);
                }
                self.robots_answered(ruled, *hops, record)?;
                // What was fetched for another may be the host's own rules, as when http leads to https.
                let own = host != *ruled && record.entry.url == host.robots_url();
                if own && record.outcome != Outcome::Redirect {
                    self.robots_answered(&host, 0, record)?;
                }
            }
        }
        if let Some(slot) = self.hosts.get(&host.fingerprint().0).and_then(|s| s.slot) {
            self.schedule_or_release(slot);
        }
        Ok(())
    }

    fn put_back(&mut self, record: &VisitRecord) -> Result<()> {
        if record.retry {
            let mut entry = record.entry.clone();
            entry.attempt = entry.attempt.saturating_add(1);
            self.waiting += 1;
            return self.place(&entry);
        }
        let Some(revisit_ms) = self.config.revisit_ms else { return Ok(()) };
        if matches!(record.outcome, Outcome::Ok | Outcome::NotModified) {
            let mut entry = record.entry.clone();
            entry.attempt = 0;
            if record.outcome == Outcome::Ok {
                entry.validators = record.validators.clone();
            }
            let mut bytes = Vec::new();
            bytes.put_u64(record.ended.plus_ms(revisit_ms).0);
            entry.put(&mut bytes);
            self.with_disk(|this, on| this.revisits.push(&bytes, on))?;
        }
        Ok(())
    }

    fn robots_answered(&mut self, ruled: &Host, hops: u8, record: &VisitRecord) -> Result<()> {
        let config = self.config.clone();
        let now = record.ended;
        if let (Outcome::Redirect, Some(target), true) = (record.outcome, record.links.first(), hops < ROBOTS_HOPS_MAX)
        {
            return self.send_on_errand(ruled, target.url.clone(), hops + 1);
        }
        let body = record.robots.as_deref().unwrap_or_default();
        // An answer that broke off or never came to an end says nothing of the rules.
        let answered = record.status != 0
            && (record.outcome == Outcome::of_status(record.status) || record.outcome == Outcome::BadRedirect);
        let access = Access::judge(if answered { Fetched::Answer(record.status, body) } else { Fetched::Unreachable });
        let state = self.host_mut(ruled);
        match (record.outcome, access) {
            (Outcome::NotModified, _) if matches!(state.robots, Robots::Known { .. }) => {
                state.robots_not_modified(now, &config);
            }
            (_, Access::Parsed(robots)) => {
                state.learn(robots.for_agent(&config.agent), record.validators.clone(), now, &config);
            }
            (_, Access::AllowAll) => state.learn(Rules::allow_all(), Validators::default(), now, &config),
            (_, Access::DisallowAll) => {
                self.robots_failed(ruled, Some(record), now);
                return Ok(());
            }
        }
        self.host_mut(ruled).failures = 0;
        // The clock was wound before the Crawl-delay was known.
        if record.entry.url.host() == *ruled {
            self.host_mut(ruled).contacted(record.started, record.ended, &config);
        }
        self.wake(ruled);
        Ok(())
    }

    /// No rules could be had: nothing may be fetched for now. After several tries the host is given up.
    fn robots_failed(&mut self, ruled: &Host, record: Option<&VisitRecord>, now: Timestamp) {
        let config = self.config.clone();
        let jitter = self.random.unit();
        let state = self.host_mut(ruled);
        state.robots = Robots::Unknown;
        // A failure of this host to answer was counted with the visit; an answer such as 500, or the failure of
        // another host that has the rules, was not.
        if !record.is_some_and(|r| r.outcome.is_host_trouble() && r.entry.url.host() == *ruled) {
            state.failures = state.failures.saturating_add(1);
            let grown = config.failure_ms_first << (2 * u32::from(state.failures - 1).min(8));
            let pause = (grown.min(config.backoff_ms_max) as f64 * (0.75 + 0.5 * jitter)) as u64;
            state.backoff_until = state.backoff_until.max(now.plus_ms(pause));
            if state.failures >= config.host_failures_max {
                state.failures = 0;
                state.down = Some((Outcome::RobotsUnreachable, now.plus_ms(config.down_ms)));
            }
        } else if let Some((outcome, _)) = &mut state.down {
            *outcome = Outcome::RobotsUnreachable;
        }
        self.wake(ruled);
    }

    /// A redirected robots.txt is fetched in the turn of the host it was redirected to.
    fn send_on_errand(&mut self, ruled: &Host, url: Url, hops: u8) -> Result<()> {
        let visited = url.host();
        self.host_mut(ruled).robots = Robots::Elsewhere;
        let state = self.host_mut(&visited);
        state.errands.push(Errand { url, for_host: ruled.clone(), hops });
        let key = visited.fingerprint().0;
        let slot = match self.hosts[&key].slot {
            Some(slot) => slot,
            None => self.open_slot(key),
        };
        self.schedule(slot);
        Ok(())
    }

    fn wake(&mut self, host: &Host) {
        if let Some(slot) = self.hosts.get(&host.fingerprint().0).and_then(|s| s.slot) {
            self.schedule_or_release(slot);
        }
    }

    fn add_ghost(&mut self, entry: &Entry) {
        *self.ghosts.entry(ghost_key(entry)).or_default() += 1;
    }

    /// To be called when the log was replayed after a crash. A contact without an end was under way when the
    /// process died, at `died` or before: the host's pause begins when it has surely done with it.
    pub fn recover(&mut self, died: Timestamp) {
        let config = self.config.clone();
        for state in self.hosts.values_mut() {
            if let Some(started) = state.issued.take() {
                state.lost_contact(started, died, &config);
            }
        }
        let slots: Vec<u32> = self.hosts.values().filter_map(|s| s.slot).collect();
        self.ready.clear();
        for slot in slots {
            self.slots[slot as usize].queued = false;
            self.schedule_or_release(slot);
        }
    }

    // ---- queues ------------------------------------------------------------------------------------------

    fn admit_revisits(&mut self, now: Timestamp) -> Result<()> {
        if self.config.revisit_ms.is_none() {
            return Ok(());
        }
        for _ in 0..MOVES_MAX {
            if self.revisit_head.is_none() {
                let Some(bytes) = self.with_disk(|this, on| this.revisits.pop(on))? else { return Ok(()) };
                let mut take = Take::new(&bytes);
                let due = Timestamp(take.u64().map_err(malformed)?);
                self.revisit_head = Some((due, take.rest().to_vec()));
            }
            match self.revisit_head.take() {
                Some((due, entry)) if due <= now => self.admit(&Entry::from_bytes(&entry).map_err(malformed)?)?,
                later => {
                    self.revisit_head = later;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Moves URLs from the front queues until `wanted` back queues are in use.
    fn fill_back_queues(&mut self, wanted: usize) -> Result<()> {
        for _ in 0..MOVES_MAX {
            if self.slots_used() >= wanted || self.waiting_in_front() == 0 {
                return Ok(());
            }
            // Biased random selection: each level is half as likely as the one above it.
            let filled: Vec<usize> = (0..self.front.len()).filter(|&i| !self.front[i].is_empty()).collect();
            let drawn = (self.random.next().trailing_ones() as usize).min(filled.len() - 1);
            let level = filled[drawn];
            if let Some(bytes) = self.with_disk(|this, on| this.front[level].pop(on))? {
                self.place(&Entry::from_bytes(&bytes).map_err(malformed)?)?;
            }
        }
        Ok(())
    }

    /// Appends a URL to its host's back queue, opening one if there is none.
    fn place(&mut self, entry: &Entry) -> Result<()> {
        let host = entry.url.host();
        let key = host.fingerprint().0;
        let state = self.host_mut(&host);
        let (slot, opened) = match state.slot {
            Some(slot) => (slot, false),
            None => (self.open_slot(key), true),
        };
        let bytes = entry.to_bytes();
        self.with_disk(|this, on| this.slots[slot as usize].queue.push(&bytes, on))?;
        if opened || !self.slots[slot as usize].queued {
            self.schedule(slot);
        }
        Ok(())
    }

    fn open_slot(&mut self, key: u64) -> u32 {
        let slot = self.slots_free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].host = key;
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        state.slot = Some(slot);
        // The name is looked up as soon as the host has a back queue, so that no visit has to wait for it.
        if state.addresses.is_none() && !state.resolving && state.down.is_none() && state.host.ip_literal().is_none() {
            state.resolving = true;
            self.unresolved.push(state.host.clone());
        }
        slot
    }

    /// Puts a back queue into the ready heap, unless something must happen first.
    fn schedule(&mut self, slot: u32) {
        let queued = self.slots[slot as usize].queued;
        let state = &self.hosts[&self.slots[slot as usize].host];
        let parked = matches!(state.robots, Robots::Elsewhere) && state.errands.is_empty() && state.down.is_none();
        let closing = matches!(state.connection, Connection::Closing(_));
        let waits = self.slots[slot as usize].in_line || state.in_flight.is_some() || state.resolving;
        if state.slot != Some(slot) || queued || waits || parked || closing {
            return;
        }
        // A host that is given up is not contacted, so its URLs need not wait to be told.
        let at = if state.down.is_some() { Timestamp(0) } else { state.ready_at() };
        self.ready.push(Reverse((at, slot)));
        self.slots[slot as usize].queued = true;
    }

    fn schedule_or_release(&mut self, slot: u32) {
        let key = self.slots[slot as usize].host;
        let state = self.hosts.get_mut(&key).expect("a back queue's host is in the host table");
        let empty = self.slots[slot as usize].queue.is_empty() && state.errands.is_empty();
        let queued = self.slots[slot as usize].queued || self.slots[slot as usize].in_line;
        if empty && !queued && state.in_flight.is_none() && !state.resolving && state.slot == Some(slot) {
            state.slot = None;
            let address = state.addresses.as_ref().and_then(|(a, _)| a.first().copied());
            self.slots_free.push(slot);
            // Its turn at the address, if it had one, goes to the next.
            address.into_iter().for_each(|address| self.wake_next_at(address));
        } else {
            self.schedule(slot);
        }
    }

    fn slots_used(&self) -> usize {
        self.slots.len() - self.slots_free.len()
    }

    fn has_slot_for(&self, entry: &Entry) -> bool {
        self.slots_used() < self.config.back_queues
            || self.hosts.get(&entry.url.host().fingerprint().0).is_some_and(|h| h.slot.is_some())
    }

    fn waiting_in_front(&self) -> u64 {
        self.front.iter().map(Fifo::len).sum()
    }

    fn host_mut(&mut self, host: &Host) -> &mut HostState {
        self.hosts.entry(host.fingerprint().0).or_insert_with(|| HostState::new(host.clone()))
    }

    fn with_disk<T>(&mut self, f: impl FnOnce(&mut Self, &mut FifoDisk<'_>) -> Result<T>) -> Result<T> {
        let disk = self.disk.clone();
        let mut next_name = self.next_segment;
        let chunk_bytes = self.config.chunk_bytes;
        let done = f(self, &mut FifoDisk { disk: &*disk, next_name: &mut next_name, chunk_bytes });
        self.next_segment = next_name;
        done
    }

    // ---- figures and checkpoints -------------------------------------------------------------------------

    /// Visits under way; cheap enough to be asked all the time.
    pub fn counts(&self) -> Counts {
        Counts { in_flight: self.in_flight, in_flight_pages: self.in_flight_pages }
    }

    /// How full it is.
    pub fn figures(&self, now: Timestamp) -> Figures {
        let mut figures = Figures {
            urls_waiting: self.waiting.saturating_sub(self.ghosts.values().map(|&n| u64::from(n)).sum()),
            hosts: self.hosts.len() as u64,
            back_queues: self.slots_used() as u64,
            in_flight: self.in_flight,
            in_flight_pages: self.in_flight_pages,
            ..Figures::default()
        };
        for Reverse((at, _)) in &self.ready {
            if *at <= now {
                figures.hosts_ready += 1;
            } else {
                figures.hosts_waiting += 1;
            }
        }
        figures
    }

    /// When each host may be contacted next, for tests and status.
    pub fn contact_times(&self) -> impl Iterator<Item = (&Host, Timestamp)> {
        self.hosts.values().map(|s| (&s.host, s.ready_at()))
    }

    /// Names of files that the next checkpoint no longer needs.
    pub fn take_garbage(&mut self) -> Vec<String> {
        let queues =
            self.front.iter_mut().chain([&mut self.revisits]).chain(self.slots.iter_mut().map(|s| &mut s.queue));
        queues.flat_map(Fifo::take_garbage).collect()
    }

    /// Names of files that a checkpoint taken now needs.
    pub fn file_names(&self) -> HashSet<String> {
        let queues = self.front.iter().chain([&self.revisits]).chain(self.slots.iter().map(|s| &s.queue));
        queues.flat_map(|q| q.segment_names().map(String::from).collect::<Vec<_>>()).collect()
    }

    /// Writes the state into a checkpoint.
    pub fn save(&self, into: &mut Vec<u8>) -> Result<()> {
        into.put_u64(self.random.state());
        into.put_u64(self.next_segment);
        into.put_u64(self.front.len() as u64);
        for queue in &self.front {
            queue.sync(&*self.disk)?;
            queue.save(&[], into);
        }
        self.revisits.sync(&*self.disk)?;
        let head = self.revisit_head.as_ref().map(|(due, entry)| {
            let mut bytes = Vec::new();
            bytes.put_u64(due.0);
            bytes.extend_from_slice(entry);
            bytes
        });
        self.revisits.save(head.as_slice(), into);
        into.put_u64(self.hosts.len() as u64);
        for state in self.hosts.values() {
            state.save(into);
            match state.slot {
                None => into.put_u8(0),
                Some(slot) => {
                    into.put_u8(1);
                    let queue = &self.slots[slot as usize].queue;
                    queue.sync(&*self.disk)?;
                    // What is under way waits again after a restart, first in line.
                    let under_way = state.in_flight.as_ref().and_then(|f| f.entry.as_ref()).map(Entry::to_bytes);
                    queue.save(under_way.as_slice(), into);
                }
            }
        }
        into.put_u64(self.ghosts.len() as u64);
        for (&(key, attempt), &count) in &self.ghosts {
            into.put_u64(key);
            into.put_u8(attempt);
            into.put_u64(u64::from(count));
        }
        Ok(())
    }

    /// Reads what [`Frontier::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        self.random = Random::new(from.u64()?);
        self.next_segment = from.u64()?;
        let saved = from.u64()? as usize;
        for level in 0..saved {
            let queue = Fifo::load(from)?;
            // Fewer levels than before: what had its own goes to the last.
            if level < self.front.len() {
                self.front[level] = queue;
            } else {
                return Err(Malformed("the number of front queues has changed"));
            }
        }
        self.revisits = Fifo::load(from)?;
        for _ in 0..from.u64()? {
            let state = HostState::load(from)?;
            let key = state.host.fingerprint().0;
            self.hosts.insert(key, state);
            if from.u8()? == 1 {
                let queue = Fifo::load(from)?;
                let slot = self.open_slot(key);
                self.slots[slot as usize].queue = queue;
                self.schedule_or_release(slot);
            }
        }
        for _ in 0..from.u64()? {
            let key = (from.u64()?, from.u8()?);
            self.ghosts.insert(key, from.u32()?);
        }
        self.waiting = self.waiting_in_front() + self.slots.iter().map(|s| s.queue.len()).sum::<u64>();
        Ok(())
    }
}

fn ghost_key(entry: &Entry) -> (u64, u8) {
    (entry.url.fingerprint().0, entry.attempt)
}

/// Takes one off a count; false if there was none.
fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) -> bool {
    match counts.get_mut(&key) {
        None => return false,
        Some(1) => {
            counts.remove(&key);
        }
        Some(count) => *count -= 1,
    }
    true
}

enum Choice {
    Fetch(Entry, Purpose),
    Drop(Entry, Outcome),
    Nothing,
}

/// Visits under way.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// All of them.
    pub in_flight: u64,
    /// Those that fetch a page.
    pub in_flight_pages: u64,
}

/// How full the frontier is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// URLs waiting.
    pub urls_waiting: u64,
    /// Hosts known.
    pub hosts: u64,
    /// Back queues in use.
    pub back_queues: u64,
    /// Visits under way.
    pub in_flight: u64,
    /// Of these, pages rather than robots.txt.
    pub in_flight_pages: u64,
    /// Hosts that may be contacted now.
    pub hosts_ready: u64,
    /// Hosts whose pause is not over.
    pub hosts_waiting: u64,
}

fn malformed(Malformed(what): Malformed) -> StoreError {
    StoreError::corrupt(fifo::DIR, 0, what)
}
