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
//! what was in flight waits again, and what was finished behind the checkpoint is left out as a *ghost*. A host that does not answer
//! gets a bounded number of requests, spread out, and takes no back queue meanwhile; one that brings nothing new is stopped (`hold.rs`,
//! `budget.rs`). Each URL ends visited, dropped with an outcome, or held with a reason.
//!
//! Pure logic: time comes in as an argument, names are resolved by whoever drives it
//! ([`Frontier::take_unresolved`], [`Frontier::resolved`]), and long queues lie on a `Disk`.
//! Memory is bounded by the configuration: long queues and hosts out of play lie on disk, and a checkpoint writes what changed.
//! Read `host.rs` next (one host's state), then `hosts.rs` (all of them), `queues.rs`, `fold.rs`, `hold.rs`, `report.rs` and `saved.rs`.

mod addresses;
mod aside;
mod budget;
mod config;
mod domains;
mod fold;
mod hold;
#[cfg(test)]
mod hold_tests;
mod host;
mod hosts;
mod lanes;
mod queues;
mod report;
mod saved;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::net::IpAddr;
use std::sync::Arc;

use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::fifo::{self, Fifo};
use rhumb_store::{Result, StoreError, Timestamp};

use crate::outcome::Outcome;
use crate::priority::{Prioritizer, Random};
use crate::sieve::AsIs;
use crate::sitemap::Hint;
use crate::traps::{Traps, Verdict};
use crate::url::Host;
use crate::visit::{Entry, Purpose, Visit};
pub use budget::{BudgetConfig, Useful, usefulness};
pub use config::FrontierConfig;
pub use fold::ends_hold;
pub use hold::{HeldCount, HeldCounts, Hold, REASONS, Reason};
pub use saved::{Counts, Figures};

use addresses::Addresses;
use aside::Aside;
use host::{Connection, InFlight, Robots};
pub use hosts::DIR as HOSTS_DIR;
use hosts::Hosts;
use lanes::Lanes;

/// Redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2).
const ROBOTS_HOPS_MAX: u8 = 5;
/// URLs moved from front to back queues in one call, so that no call takes long.
const MOVES_MAX: usize = 256;
/// So often URLs are moved in one call while that brings no host into play: ghosts, and URLs of held hosts.
const ROUNDS_MAX: usize = 16;
/// Where hosts live that have no address (files of this machine). They share it, so that few of them are visited at once.
const NOWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

/// The answer to "what now?".
#[derive(Debug)]
pub enum Next {
    /// Contact this host now.
    Visit(Box<Visit>),
    /// This URL leaves the frontier without a visit.
    Drop(Box<Entry>, Outcome),
    /// This host is left alone for a while, and its URLs with it; see [`Frontier::held_in_log`].
    Hold(Host, Hold),
    /// Nothing may be done before this time, or before a visit or a look-up ends. A time that has come: ask again soon.
    WaitUntil(Timestamp),
    /// Nothing waits and nothing is under way. Something may be held: a crawl that goes on for ever waits for it, another ends.
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
    hosts: Hosts,
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
    ghosts: Ghosts,
    /// With so many ghosts they are taken out of the queues.
    ghosts_bound: usize,
    /// Rules about the URLs of sites, and what they hold back.
    pub traps: Traps,
    aside: Aside,
    /// When held hosts are due.
    lanes: Lanes,
    held: HeldCounts,
    /// Held hosts that are put to the test.
    probing: usize,
    /// The last process ended with nothing left but held URLs.
    finished: bool,
    /// Drops that `next_visit` spoke of and the log does not know yet.
    dropping: BTreeMap<u64, u32>,
    next_segment: u64,
    /// Files that the next checkpoint no longer needs.
    garbage: Vec<String>,
    /// Segments that the loaded checkpoint no longer needed.
    consumed: Vec<String>,
    waiting: u64,
    in_flight: u64,
    in_flight_pages: u64,
}

type Ghosts = HashMap<(u64, u8), u32, BuildHasherDefault<AsIs>>;

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
        let config = Arc::new(config);
        Ok(Frontier {
            addresses: Addresses::new(config.per_address),
            front: (0..prioritizer.levels()).map(|_| Fifo::default()).collect(),
            hosts: Hosts::new(disk.clone(), config.clone())?,
            ghosts_bound: config.ghosts_max,
            traps: Traps::new(config.traps.clone()),
            aside: Aside::default(),
            disk,
            config,
            prioritizer,
            random: Random::new(seed),
            revisits: Fifo::default(),
            revisit_head: None,
            slots: Vec::new(),
            slots_free: Vec::new(),
            ready: BinaryHeap::new(),
            unresolved: Vec::new(),
            to_close: Vec::new(),
            idle: VecDeque::new(),
            idle_count: 0,
            ghosts: Ghosts::default(),
            lanes: Lanes::new(),
            held: HeldCounts::default(),
            probing: 0,
            finished: false,
            dropping: BTreeMap::new(),
            next_segment: 1,
            garbage: Vec::new(),
            consumed: Vec::new(),
            waiting: 0,
            in_flight: 0,
            in_flight_pages: 0,
        })
    }

    /// Takes in a URL that the sieve let through.
    pub fn admit(&mut self, entry: &Entry) -> Result<()> {
        self.waiting += 1;
        let level = self.level_of(entry);
        // The usual case of a small crawl: nothing is ahead of it, so the front queues have nothing to order.
        if self.waiting_in_front() == 0 && self.has_slot_for(entry) {
            self.place(entry)?;
            return Ok(());
        }
        let bytes = entry.to_bytes();
        self.with_front(|this, on| this.front[level].push(&bytes, on))
    }

    /// The front queue of a URL. What is known of its site matters only if its sitemap said something of it.
    fn level_of(&self, entry: &Entry) -> usize {
        let said = entry.hint != Hint::default();
        let state = if said { self.hosts.get(entry.url.host().fingerprint().0) } else { None };
        let (trust, then) = state.map_or_else(Default::default, |s| (s.trust, s.contact_ended));
        self.prioritizer.level(entry, trust, then)
    }

    /// What to do now. Call again until it answers `WaitUntil` or `Idle`, or no worker is free.
    pub fn next_visit(&mut self, now: Timestamp) -> Result<Next> {
        self.admit_revisits(now)?;
        self.admit_released()?;
        self.admit_probes(now)?;
        self.fill_back_queues(self.config.back_queues)?;
        let mut rounds = 0;
        loop {
            match self.ready.peek() {
                Some(Reverse((at, _))) if *at <= now => {}
                _ => {
                    // Everybody has to wait. More back queues mean more hosts to choose from.
                    let before = self.ready.len();
                    let more = self.fill_back_queues((self.slots_used() + 16).min(self.config.back_queues_max))?;
                    let found = self.ready.len() > before && self.ready.peek().is_some_and(|r| r.0.0 <= now);
                    if !found && more && rounds < ROUNDS_MAX {
                        rounds += 1;
                        continue;
                    }
                    if !found {
                        return Ok(if more { Next::WaitUntil(now) } else { self.nothing_ready() });
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
        let nothing_left = self.waiting == 0 && self.in_flight == 0;
        let one_shot = self.config.revisit_ms.is_none();
        let due = self.revisit_head.as_ref().map(|(due, _)| *due);
        let ready = self.ready.peek().map(|r| r.0.0);
        // Nobody waits for hours for a host that may answer then.
        let probe = Some(self.lanes.next_due()).filter(|_| self.may_probe() && !(nothing_left && one_shot));
        let probe = probe.filter(|at| at.0 < u64::MAX);
        match due.into_iter().chain(ready).chain(probe).min() {
            _ if self.aside.is_being_judged() => Next::WaitUntil(Timestamp(0)),
            Some(at) => Next::WaitUntil(at),
            None if nothing_left => Next::Idle,
            None => Next::WaitUntil(Timestamp(u64::MAX)),
        }
    }

    /// The turn of one back queue whose time has come. `None`: it went elsewhere, ask the next.
    fn try_slot(&mut self, slot: u32, now: Timestamp) -> Result<Option<Next>> {
        let key = self.slots[slot as usize].host;
        // A back queue that was given up may still stand in the heap.
        let Some(state) = self.hosts.get_mut(key).filter(|s| s.slot == Some(slot)) else { return Ok(None) };
        if state.in_flight.is_some() || state.resolving || matches!(state.connection, Connection::Closing(_)) {
            return Ok(None);
        }
        match state.down {
            Some((outcome, until)) if now < until => {
                // Those who wait for their rules from here must hear that there are none.
                for errand in std::mem::take(&mut state.errands) {
                    self.robots_failed(&errand.for_host, None, now)?;
                }
                return self.give_up_one(slot, outcome);
            }
            Some(_) => state.down = None,
            None => {}
        }
        if let Some(reason) = self.must_hold(slot)? {
            return Ok(Some(self.hold(slot, reason, now)));
        }
        let state = self.hosts.of_slot_mut(&self.slots[slot as usize]);
        if state.ready_at() > now {
            self.schedule(slot);
            return Ok(None);
        }
        let rules = state.host.rules();
        let literal = state.host.ip_literal().or_else(|| (!rules.needs_dns).then_some(NOWHERE));
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
        if matches!(state.connection, Connection::Idle(old, _) if old != address) {
            // The name leads elsewhere now. The connection is counted where it was made, and goes before another is.
            self.close_if_idle(key, |_, _| true);
            return Ok(None);
        }
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
        let state = self.hosts.of_slot_mut(&self.slots[slot as usize]);
        if let Connection::Idle(address, _) = state.connection {
            self.idle_count -= 1;
            self.addresses.not_idle(address, key);
        }
        state.connection = Connection::Busy(address);
        state.in_flight = Some(InFlight { entry: purpose.is_page().then(|| Box::new(entry.clone())) });
        self.in_flight += 1;
        self.in_flight_pages += u64::from(purpose.is_page());
        self.waiting -= u64::from(purpose.is_page());
        Ok(Some(Next::Visit(Box::new(Visit { entry, host: state.host.clone(), purpose, addresses }))))
    }

    /// What the host's next contact is for: an errand, its robots.txt, or its first allowed URL.
    fn choose(&mut self, slot: u32, now: Timestamp) -> Result<Choice> {
        let state = self.hosts.of_slot_mut(&self.slots[slot as usize]);
        if !state.errands.is_empty() {
            let errand = state.errands.remove(0);
            let purpose = Purpose::Robots { host: errand.for_host, hops: errand.hops };
            return Ok(Choice::Fetch(Entry::new(errand.url, 0), purpose));
        }
        if matches!(state.robots, Robots::Elsewhere) {
            return Ok(Choice::Nothing);
        }
        let half_open = state.held.as_ref().is_some_and(|h| h.is_broken_circuit());
        let ruled = state.host.rules().needs_robots;
        if ruled && !self.slots[slot as usize].queue.is_empty() && (half_open || !state.robots_fresh(now)) {
            let url = state.host.robots_url();
            let mut entry = Entry::new(url, 0);
            if let Robots::Known { validators, .. } = &state.robots {
                entry.validators = validators.clone();
            }
            return Ok(Choice::Fetch(entry, Purpose::Robots { host: state.host.clone(), hops: 0 }));
        }
        let Some(entry) = self.pop_wanted(slot)? else { return Ok(Choice::Nothing) };
        if ruled && !self.hosts.allows(self.slots[slot as usize].host, &entry.url)? {
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
            let bytes = self.with_back(|this, on| this.slots[slot as usize].queue.pop(on))?;
            let Some(bytes) = bytes else { return Ok(None) };
            let entry = Entry::from_bytes(&bytes).map_err(malformed)?;
            if !self.is_ghost(&entry) {
                return Ok(Some(entry));
            }
            self.waiting -= 1;
        }
    }

    /// A connection that was counted but not needed is given back.
    fn unused(&mut self, key: u64) {
        let state = self.hosts.get_mut(key).expect("a back queue's host is in play");
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
        let Some(state) = self.hosts.get_mut(key) else { return false };
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
}

fn ghost_key(entry: &Entry) -> (u64, u8) {
    (entry.url.fingerprint().0, entry.attempt)
}

enum Choice {
    Fetch(Entry, Purpose),
    Drop(Entry, Outcome),
    Nothing,
}

fn malformed(Malformed(what): Malformed) -> StoreError {
    StoreError::corrupt(fifo::DIR, 0, what)
}
