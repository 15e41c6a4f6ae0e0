//! Hosts that are left alone for a while, with their URLs: the circuit breaker, and what is over its budget.
//!
//! A host that keeps failing to answer is *held*. Its back queue is given up; the URLs stay with the host, in the host table on
//! disk, and later ones go straight there. So a dead host takes neither a back queue nor memory, however many there are. After a
//! while (`probe_ms`, longer each time) one request is made, for its robots.txt, which must be fetched anyway: the host is
//! *half-open*. An answer closes the circuit and all its URLs go on; without one it is held again. When all probes are
//! used up, only the next start of the finished crawl asks once more. A host over its budget is held in the same way; what
//! it is granted after a while is not a probe but one page.
//!
//! `next_visit` decides ([`Frontier::must_hold`]), the log is told, and [`Frontier::held_in_log`] does it: a replay takes the
//! same way, and `rhumb explain` can read it. Beginning a probe is no record of its own: its visit is, and any visit of a
//! held host takes the host's URLs out again ([`Frontier::unpark`]). Read `lanes.rs` next: when each is due.

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::fifo::Fifo;
use rhumb_store::{Result, Timestamp};

use super::lanes::Due;
use super::{Frontier, MOVES_MAX, Next};
use crate::outcome::Outcome;
use crate::url::Host;
use crate::visit::Entry;

/// A host over its budget is granted a page after this time at the latest.
const EXPLORE_MS_MAX: u64 = 24 * 3_600_000;

/// Why a host is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// It did not answer several times in a row.
    NoAnswer = 1,
    /// Its name could not be resolved for now.
    DnsFailed = 2,
    /// It answers, but its robots.txt cannot be had.
    RobotsUnreachable = 3,
    /// It, or its domain, brought too little that is new.
    OverBudget = 4,
}

/// All reasons, in the order of their codes.
pub const REASONS: [Reason; 4] = [Reason::NoAnswer, Reason::DnsFailed, Reason::RobotsUnreachable, Reason::OverBudget];

impl Reason {
    /// The name used in JSON and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NoAnswer => "no_answer",
            Reason::DnsFailed => "dns_failed",
            Reason::RobotsUnreachable => "robots_unreachable",
            Reason::OverBudget => "over_budget",
        }
    }

    /// The byte that stands for it on disk.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason for a byte on disk.
    pub fn from_code(code: u8) -> Option<Reason> {
        REASONS.into_iter().find(|r| r.code() == code)
    }

    /// What the last failure of a host says of it.
    fn of(trouble: Option<Outcome>) -> Reason {
        match trouble {
            Some(Outcome::DnsFailed) => Reason::DnsFailed,
            Some(Outcome::RobotsUnreachable) => Reason::RobotsUnreachable,
            _ => Reason::NoAnswer,
        }
    }
}

/// A host is held: why, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub reason: Reason,
    /// The last failure, if that is why.
    pub trouble: Option<Outcome>,
    /// Contacts and look-ups without an answer since the last one that had one.
    pub attempts: u32,
    /// How often it was held before without an answer (or a new page) in between.
    pub level: u8,
    /// Since when.
    pub at: Timestamp,
    /// When it is tried again; `None`: when a finished crawl is started again.
    pub until: Option<Timestamp>,
}

impl Hold {
    /// Appends the bytes, all but the time.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_u8(self.reason.code());
        into.put_u8(self.trouble.map_or(0, Outcome::code));
        into.put_u64(u64::from(self.attempts));
        into.put_u8(self.level);
        into.put_u64(self.until.map_or(0, |t| t.0 + 1));
    }

    /// Reads what [`Hold::put`] wrote.
    pub fn take(from: &mut Take<'_>, at: Timestamp) -> Result<Hold, Malformed> {
        Ok(Hold {
            reason: Reason::from_code(from.u8()?).ok_or(Malformed("held for an unknown reason"))?,
            trouble: Outcome::from_code(from.u8()?),
            attempts: from.u32()?,
            level: from.u8()?,
            at,
            until: from.u64()?.checked_sub(1).map(Timestamp),
        })
    }

    /// Whether an answer of the host is all that is missing.
    pub fn is_broken_circuit(&self) -> bool {
        self.reason != Reason::OverBudget
    }
}

/// Hosts that are held, and their URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldCount {
    /// Hosts.
    pub hosts: u64,
    /// URLs.
    pub urls: u64,
}

/// The same by reason, in the order of [`REASONS`].
pub type HeldCounts = [HeldCount; REASONS.len()];

impl Frontier {
    /// Hosts and URLs that are held, by reason.
    pub fn held(&self) -> HeldCounts {
        self.held
    }

    pub(super) fn count_held(&mut self, reason: Reason) -> &mut HeldCount {
        &mut self.held[reason as usize - 1]
    }

    /// Why the host of a back queue should not be contacted now.
    pub(super) fn must_hold(&mut self, slot: u32) -> Result<Option<Reason>> {
        let state = self.hosts.of_slot(&self.slots[slot as usize]);
        let half_open = state.held.as_ref().is_some_and(|h| h.is_broken_circuit());
        if state.failures >= self.config.host_failures_max || half_open && state.failures > 0 {
            return Ok(Some(Reason::of(state.trouble)));
        }
        // What others want of it is not its own budget.
        if !state.host.rules().polite
            || state.granted
            || !state.errands.is_empty()
            || self.slots[slot as usize].queue.is_empty()
        {
            return Ok(None);
        }
        let (budget, pages) = (&self.config.budget, u64::from(state.pages));
        let over = budget.host_is_over(state.credit, pages)
            || self.hosts.known_domain(state.domain)?.is_some_and(|d| d.is_over(budget, pages));
        Ok(over.then_some(Reason::OverBudget))
    }

    /// The decision to hold the host of a back queue, for the log.
    pub(super) fn hold(&mut self, slot: u32, reason: Reason, now: Timestamp) -> Next {
        let jitter = 0.9 + 0.2 * self.random.unit();
        let state = self.hosts.of_slot(&self.slots[slot as usize]);
        let (level, delay_ms) = match reason {
            Reason::OverBudget => {
                let grown = self.config.budget.explore_ms.saturating_mul(1 << state.explored.min(10));
                (state.explored, Some(grown.min(EXPLORE_MS_MAX.max(self.config.budget.explore_ms))))
            }
            _ => (state.trips, self.config.probe_ms.get(usize::from(state.trips)).copied()),
        };
        // A probe that must wait for a Retry-After would only take a back queue.
        let until = delay_ms.map(|ms| now.plus_ms((ms as f64 * jitter) as u64).max(state.ready_at()));
        let trouble = if reason == Reason::OverBudget { None } else { state.trouble };
        let attempts = if reason == Reason::OverBudget { 0 } else { state.tries };
        Next::Hold(state.host.clone(), Hold { reason, trouble, attempts, level, at: now, until })
    }

    /// The log says that a host is held: its back queue goes to rest with it.
    pub fn held_in_log(&mut self, host: &Host, hold: &Hold) -> Result<()> {
        let key = host.fingerprint().0;
        self.hosts.open(host)?;
        self.probe_is_over(key);
        let state = self.hosts.get_mut(key).expect("it was just opened");
        let before = state.held.replace(Box::new(*hold));
        let parked = state.parked.take();
        let slot = state.slot.take();
        let errands = std::mem::take(&mut state.errands);
        let address = state.addresses.as_ref().and_then(|(a, _)| a.first().copied());
        match hold.reason {
            // Failures are counted on: what is over its budget may be dying as well.
            Reason::OverBudget => state.explored = hold.level.saturating_add(1),
            _ => {
                state.failures = 0;
                state.trips = hold.level.saturating_add(1);
            }
        }
        state.rules_are_elsewhere_no_more();
        if let (Some(before), Some(parked)) = (before, &parked) {
            let count = self.count_held(before.reason);
            count.hosts -= 1;
            count.urls -= parked.len();
        }
        let mut queue = parked.map_or_else(Fifo::default, |q| *q);
        if let Some(slot) = slot {
            let place = &mut self.slots[slot as usize];
            (place.queued, place.in_line) = (false, false);
            let mut left = std::mem::take(&mut place.queue);
            self.slots_free.push(slot);
            if !self.ghosts.is_empty() {
                left = self.without_ghosts(left, false)?;
            }
            self.waiting -= left.len();
            queue = left;
        }
        let count = self.count_held(hold.reason);
        count.hosts += 1;
        count.urls += queue.len();
        let state = self.hosts.get_mut(key).expect("it was opened above");
        state.parked = Some(Box::new(queue));
        self.hosts.recount(key);
        self.hosts.cool(key);
        self.push_due(Due { at: hold.until, since: hold.at, queued: hold.at, host: host.clone() })?;
        // Its turn at the address, if it had one, goes to the next.
        address.into_iter().for_each(|address| self.wake_next_at(address));
        // Those who wait for their rules from here must hear that there are none.
        for errand in errands {
            self.robots_failed(&errand.for_host, None, hold.at)?;
        }
        Ok(())
    }

    /// Takes the URLs of a held host out again: it is being contacted, or the log says it was. With no back queue to be
    /// had they go to the front queues.
    pub(super) fn unpark(&mut self, key: u64) -> Result<()> {
        let Some(state) = self.hosts.get_mut(key) else { return Ok(()) };
        let (Some(mut queue), Some(hold)) = (state.parked.take(), state.held.as_ref().map(|h| **h)) else {
            return Ok(());
        };
        let count = self.count_held(hold.reason);
        count.hosts -= 1;
        count.urls -= queue.len();
        self.waiting += queue.len();
        self.hosts.recount(key);
        if queue.is_empty() {
            return Ok(());
        }
        if self.slots_used() < self.config.back_queues_max.max(self.config.back_queues) {
            let slot = self.open_slot(key);
            self.slots[slot as usize].queue = *queue;
            self.schedule(slot);
            return Ok(());
        }
        if let Some(state) = self.hosts.get_mut(key) {
            state.held = None;
        }
        while let Some(bytes) = self.with_back(|_, on| queue.pop(on))? {
            let level = self.level_of(&Entry::from_bytes(&bytes).map_err(super::malformed)?);
            self.with_front(|this, on| this.front[level].push(&bytes, on))?;
        }
        Ok(())
    }

    /// The host answers (or has credit) again: nothing holds it any more.
    pub(super) fn release_hold(&mut self, key: u64) -> Result<()> {
        if self.hosts.get(key).is_none_or(|s| s.held.is_none()) {
            return Ok(());
        }
        self.probe_is_over(key);
        self.unpark(key)?;
        if let Some(state) = self.hosts.get_mut(key) {
            state.held = None;
        }
        Ok(())
    }

    /// The host is not put to the test any more.
    pub(super) fn probe_is_over(&mut self, key: u64) {
        if let Some(state) = self.hosts.get_mut(key) {
            state.granted = false;
            if std::mem::take(&mut state.probing) {
                self.probing -= 1;
            }
        }
    }

    /// How many held hosts may be asked at a time. Each may take a worker for as long as a connection may take to fail, so
    /// while there is other work they get a quarter of the workers, of which there are a third as many as back queues.
    fn probing_max(&self) -> usize {
        if self.waiting == 0 { self.config.back_queues.max(1) } else { (self.config.back_queues / 12).max(1) }
    }

    pub(super) fn may_probe(&self) -> bool {
        self.probing < self.probing_max() && self.slots_used() < self.config.back_queues_max
    }

    /// Lets held hosts whose time has come have a back queue again.
    pub(super) fn admit_probes(&mut self, now: Timestamp) -> Result<()> {
        for _ in 0..MOVES_MAX {
            if self.lanes.next_due() > now || !self.may_probe() {
                return Ok(());
            }
            let Some(due) = self.pop_due(now)? else { return Ok(()) };
            self.begin_probe(due, now)?;
        }
        Ok(())
    }

    fn begin_probe(&mut self, due: Due, now: Timestamp) -> Result<()> {
        let key = due.host.fingerprint().0;
        let state = self.hosts.open(&due.host)?;
        let hold = match (&state.held, &state.parked) {
            (Some(hold), Some(parked)) if hold.at == due.since => {
                let hold = **hold;
                if parked.is_empty() {
                    // There is nothing to ask for. Whatever comes for it finds it suspect: one more failure is enough.
                    if hold.is_broken_circuit() {
                        state.failures = self.config.host_failures_max.saturating_sub(1);
                    }
                    return self.release_hold(key);
                }
                hold
            }
            // It was tried meanwhile.
            _ => return Ok(()),
        };
        if !hold.is_broken_circuit() {
            let budget = self.config.budget.clone();
            let (domain, pages) = (state.domain, u64::from(state.pages));
            let domain = self.hosts.domain(domain)?;
            if domain.is_over(&budget, pages) {
                if now < domain.explore_after {
                    // Another host of the domain had the domain's turn.
                    let at = Some(domain.explore_after.plus_ms(budget.explore_ms));
                    return self.push_due(Due { at, queued: now, ..due });
                }
                domain.explore_after = now.plus_ms(budget.explore_ms);
                domain.dirty = true;
            }
        }
        let state = self.hosts.open(&due.host)?;
        state.granted = !hold.is_broken_circuit();
        state.probing = true;
        if hold.is_broken_circuit() {
            state.failures = 0;
        }
        self.probing += 1;
        self.unpark(key)
    }

    /// A process has ended in order. If nothing was left but held URLs, the next one tries each held host once.
    pub fn closed(&mut self, finished: bool) {
        self.finished = finished;
    }

    /// A process begins.
    pub fn opened(&mut self, at: Timestamp) {
        if std::mem::take(&mut self.finished) {
            self.lanes.all_due(at);
        }
    }
}
