//! What the log says changes a host: contacts, outcomes, rules, retries.
//!
//! A running crawl and a replay after a crash take the same path; only `next_visit` tells them apart, because a replay
//! never asked it.

use std::collections::btree_map::Entry::{Occupied, Vacant};

use rhumb_store::codec::Put;
use rhumb_store::{Result, Timestamp};

use super::host::{Errand, Robots};
use super::{Frontier, ROBOTS_HOPS_MAX, Reason, Useful, ghost_key, usefulness};
use crate::dates;
use crate::outcome::Outcome;
use crate::robots::{Access, Fetched, Rules};
use crate::seen::Known;
use crate::sitemap::{Before, Trust};
use crate::url::{Host, Url};
use crate::visit::{Entry, LinkKind, Purpose, Validators, VisitRecord};

/// What a visit for a robots.txt says of the rules.
fn access(record: &VisitRecord) -> Access {
    let body = record.robots.as_deref().unwrap_or_default();
    // An answer that broke off or never came to an end says nothing of the rules.
    let answered = record.status != 0
        && (record.outcome == Outcome::of_status(record.status) || record.outcome == Outcome::BadRedirect);
    Access::judge(if answered { Fetched::Answer(record.status, body) } else { Fetched::Unreachable })
}

/// Whether a visit shows that `host`, which is held for `reason`, need not be any more: a page of it was answered, or its rules came. Of
/// one over its budget a page shows nothing for long: if it was of no use, the log says again that it is held.
pub fn ends_hold(record: &VisitRecord, host: &Host, reason: Reason) -> bool {
    match &record.purpose {
        Purpose::Page => record.entry.url.host() == *host && !record.outcome.is_host_trouble(),
        Purpose::Robots { host: ruled, .. } => {
            let gave_rules = record.outcome != Outcome::Redirect && !matches!(access(record), Access::DisallowAll);
            ruled == host && reason != Reason::OverBudget && gave_rules
        }
    }
}

impl Frontier {
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
    pub fn issued(&mut self, host: &Host, at: Timestamp) -> Result<()> {
        self.hosts.open(host)?.issued = Some(at);
        Ok(())
    }

    /// The log says that a URL left the frontier without a visit. In a running crawl `next_visit` took it out
    /// already; in a replay it still waits somewhere.
    pub fn dropped_in_log(&mut self, entry: &Entry) -> Result<()> {
        match self.dropping.entry(entry.url.fingerprint().0) {
            Occupied(mut count) if *count.get() > 1 => *count.get_mut() -= 1,
            Occupied(last) => {
                last.remove();
            }
            Vacant(_) => {
                let host = entry.url.host();
                if self.hosts.open(&host)?.parked.is_some() {
                    self.unpark(host.fingerprint().0)?;
                }
                self.add_ghost(entry)?;
            }
        }
        Ok(())
    }

    /// A visit is finished: winds the host's clocks, learns its rules, puts back what is to be tried again.
    /// What the page says goes with its entry to its next visit.
    pub fn finish(&mut self, record: &VisitRecord, known: Option<Box<Known>>) -> Result<()> {
        let host = record.entry.url.host();
        let key = host.fingerprint().0;
        let now = record.ended;
        let config = self.config.clone();
        let jitter = self.random.unit();
        if self.hosts.open(&host)?.parked.is_some() {
            self.unpark(key)?;
        }
        let state = self.hosts.get_mut(key).expect("it was just opened");
        state.issued = None;
        let flown = state.in_flight.take();
        if record.contacted() {
            state.contacted(record.started, record.ended, &config);
        }
        let event = match record.outcome {
            Outcome::RateLimited => {
                state.backoff_level = state.backoff_level.saturating_add(1).min(20);
                let grown = (config.backoff_ms_first << (state.backoff_level - 1)).min(config.backoff_ms_max);
                let asked = record.retry_after_ms.filter(|&ms| ms > 0).map(|ms| ms.min(config.retry_after_ms_max));
                Some(asked.unwrap_or(0).max((grown as f64 * (0.75 + 0.5 * jitter)) as u64))
            }
            outcome if outcome.is_host_trouble() || outcome == Outcome::DnsFailed => {
                state.failed(outcome, now, jitter, &config);
                None
            }
            Outcome::BlockedAddress | Outcome::NoHost => {
                state.give_up(record.outcome, now.plus_ms(config.down_ms));
                None
            }
            outcome => {
                // Whether an answer to the question for the rules is good enough is judged below.
                if matches!(&record.purpose, Purpose::Robots { host: ruled, .. } if *ruled != host) {
                    state.answered();
                }
                if matches!(outcome, Outcome::Ok | Outcome::NotModified | Outcome::Redirect | Outcome::NotFound) {
                    state.backoff_level = 0;
                }
                None
            }
        };
        if record.purpose.is_page() && record.contacted() && !record.outcome.is_host_trouble() {
            // "Too many requests" is an answer too.
            state.answered();
            state.trips = 0;
        }
        if let Some(ms) = event {
            // An answer in between never shortens what an earlier one asked for.
            state.backoff_until = state.backoff_until.max(now.plus_ms(ms));
        }
        let was_live = flown.is_some();
        self.in_flight -= u64::from(was_live);
        self.in_flight_pages -= u64::from(was_live && record.purpose.is_page());
        match &record.purpose {
            Purpose::Page => {
                let waited = flown.and_then(|f| f.entry).is_some_and(|e| e.url == record.entry.url);
                if !waited {
                    self.add_ghost(&record.entry)?;
                }
                self.learn_dates(key, record);
                self.spend(key, record)?;
                self.put_back(record, known)?;
            }
            Purpose::Robots { host: ruled, hops } => {
                if let Some(state) = self.hosts.get_mut(key) {
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
        self.hosts.recount(key);
        if let Some(slot) = self.hosts.get(key).and_then(|s| s.slot) {
            self.schedule_or_release(slot);
        }
        Ok(())
    }

    /// A visit shows whether the dates of its site's sitemaps tell the truth.
    fn learn_dates(&mut self, key: u64, record: &VisitRecord) {
        let Some(state) = self.hosts.get_mut(key).filter(|_| !record.retry) else { return };
        if record.entry.sitemap.is_some() {
            let own = record.links.iter().filter(|l| l.kind == LinkKind::Listed).map(|l| l.hint);
            state.trust.learn_sitemap(own, record.ended);
            return;
        }
        let Some(said) = record.entry.hint.lastmod() else { return };
        let fetched = record.entry.validators.fetched;
        let before = (!record.entry.validators.is_empty())
            .then_some(Before { at: fetched, changed: record.outcome == Outcome::Ok });
        if matches!(record.outcome, Outcome::Ok | Outcome::NotModified) {
            let server = record.validators.last_modified.as_deref().and_then(dates::parse);
            state.trust.learn(said, record.ended, server, before);
        }
    }

    /// Whether the sitemaps of this host were not asked for yet; from now on they were.
    pub fn ask_sitemap(&mut self, host: &Host) -> Result<bool> {
        let state = self.hosts.open(host)?;
        let first = !std::mem::replace(&mut state.sitemap_asked, true);
        state.dirty = true;
        Ok(first)
    }

    /// How far the dates in a host's sitemaps are believed.
    pub fn trust(&mut self, host: &Host) -> Result<Trust> {
        Ok(self.hosts.open(host)?.trust)
    }

    /// A page was visited: host and domain pay for it, or earn by it.
    fn spend(&mut self, key: u64, record: &VisitRecord) -> Result<()> {
        let budget = &self.config.budget;
        let worth = usefulness(record);
        let state = self.hosts.get_mut(key).expect("a finished visit's host is in play");
        state.pages = state.pages.saturating_add(u32::from(!record.retry));
        state.credit = budget.host_after(state.credit, worth);
        if worth == Useful::New {
            state.explored = 0;
        }
        let (pages, domain) = (u64::from(state.pages), state.domain);
        let over = budget.host_is_over(state.credit, pages);
        let held = state.held.as_ref().map(|h| h.is_broken_circuit());
        let trouble = state.failures > 0;
        // One page was granted, and this was it.
        state.granted = false;
        let domain = self.hosts.domain(domain)?;
        if !record.retry {
            domain.visited(worth, budget);
            domain.dirty = true;
        }
        // A page that was answered is an answer; whether it was worth it is another question.
        let over = over || domain.is_over(budget, pages);
        match held {
            Some(true) if !trouble => self.release_hold(key),
            Some(false) if !over => self.release_hold(key),
            _ => Ok(()),
        }
    }

    pub(super) fn put_back(&mut self, record: &VisitRecord, known: Option<Box<Known>>) -> Result<()> {
        if record.retry {
            let mut entry = record.entry.clone();
            entry.attempt = entry.attempt.saturating_add(1);
            self.waiting += 1;
            self.place(&entry)?;
            return Ok(());
        }
        let Some(revisit_ms) = self.config.revisit_ms else { return Ok(()) };
        if matches!(record.outcome, Outcome::Ok | Outcome::NotModified) {
            let mut entry = record.entry.clone();
            entry.attempt = 0;
            entry.known = known;
            if record.outcome == Outcome::Ok {
                entry.validators = record.validators.clone();
            }
            let mut bytes = Vec::new();
            bytes.put_u64(record.ended.plus_ms(revisit_ms).0);
            entry.put(&mut bytes);
            self.with_front(|this, on| this.revisits.push(&bytes, on))?;
        }
        Ok(())
    }

    pub(super) fn robots_answered(&mut self, ruled: &Host, hops: u8, record: &VisitRecord) -> Result<()> {
        let config = self.config.clone();
        let now = record.ended;
        if let (Outcome::Redirect, Some(target), true) = (record.outcome, record.links.first(), hops < ROBOTS_HOPS_MAX)
        {
            return self.send_on_errand(ruled, target.url.clone(), hops + 1, now);
        }
        let access = access(record);
        let state = self.hosts.open(ruled)?;
        let large = match (record.outcome, access) {
            (Outcome::NotModified, _) if matches!(state.robots, Robots::Known { .. }) => {
                state.renew_rules(now, &config);
                None
            }
            (_, Access::Parsed(robots)) => {
                state.learn(robots.for_agent(&config.agent), record.validators.clone(), now, &config)
            }
            (_, Access::AllowAll) => state.learn(Rules::allow_all(), Validators::default(), now, &config),
            (_, Access::DisallowAll) => {
                return self.robots_failed(ruled, Some(record), now);
            }
        };
        if let Some(rules) = large {
            self.hosts.put_rules(ruled, &rules)?;
        }
        self.hosts.recount(ruled.fingerprint().0);
        if self.hosts.open(ruled)?.held.as_ref().is_some_and(|h| h.is_broken_circuit()) {
            self.release_hold(ruled.fingerprint().0)?;
        }
        let state = self.hosts.open(ruled)?;
        state.answered();
        // The clock was wound before the Crawl-delay was known.
        state.wind(&config);
        self.wake(ruled);
        Ok(())
    }

    /// No rules could be had: nothing may be fetched for now. After several tries the host is held.
    pub(super) fn robots_failed(&mut self, ruled: &Host, record: Option<&VisitRecord>, now: Timestamp) -> Result<()> {
        let config = self.config.clone();
        let jitter = self.random.unit();
        let state = self.hosts.open(ruled)?;
        state.robots = Robots::Unknown;
        // A failure of this host to answer was counted with the visit; an answer such as 500, or the failure of
        // another host that has the rules, was not.
        match record {
            Some(r) if r.outcome.is_host_trouble() && r.entry.url.host() == *ruled => {
                // A host that cannot even be connected to is better described by that.
                if !matches!(r.outcome, Outcome::Refused | Outcome::ConnectTimeout | Outcome::TlsFailed) {
                    state.trouble = Some(Outcome::RobotsUnreachable);
                }
            }
            _ => state.failed(Outcome::RobotsUnreachable, now, jitter, &config),
        }
        self.wake(ruled);
        Ok(())
    }

    /// A redirected robots.txt is fetched in the turn of the host it was redirected to.
    pub(super) fn send_on_errand(&mut self, ruled: &Host, url: Url, hops: u8, now: Timestamp) -> Result<()> {
        let visited = url.host();
        if self.hosts.open(&visited)?.parked.is_some() {
            // It is left alone; whoever needs it must do without.
            return self.robots_failed(ruled, None, now);
        }
        self.hosts.open(ruled)?.robots = Robots::Elsewhere;
        let state = self.hosts.open(&visited)?;
        state.errands.push(Errand { url, for_host: ruled.clone(), hops });
        let key = visited.fingerprint().0;
        let slot = match state.slot {
            Some(slot) => slot,
            None => self.open_slot(key),
        };
        self.schedule(slot);
        Ok(())
    }

    pub(super) fn wake(&mut self, host: &Host) {
        if let Some(slot) = self.hosts.get(host.fingerprint().0).and_then(|s| s.slot) {
            self.schedule_or_release(slot);
        }
    }

    pub(super) fn add_ghost(&mut self, entry: &Entry) -> Result<()> {
        *self.ghosts.entry(ghost_key(entry)).or_default() += 1;
        if self.ghosts.len() > self.ghosts_bound {
            self.sweep_ghosts()?;
            // What is left waits in the sieve; looking for it all the time would not bring it out.
            self.ghosts_bound = self.config.ghosts_max.max(2 * self.ghosts.len());
        }
        Ok(())
    }

    /// To be called when the log was replayed after a crash. A contact without an end was under way when the
    /// process died, at `died` or before: the host's pause begins when it has surely done with it.
    pub fn recover(&mut self, died: Timestamp) {
        let config = self.config.clone();
        let issued: Vec<u64> = self.hosts.hot().filter(|(_, s)| s.issued.is_some()).map(|(key, _)| key).collect();
        for key in issued {
            if let Some(state) = self.hosts.get_mut(key)
                && let Some(started) = state.issued.take()
            {
                state.lost_contact(started, died, &config);
            }
        }
        let slots: Vec<u32> = self.hosts.hot().filter_map(|(_, s)| s.slot).collect();
        self.ready.clear();
        for slot in slots {
            self.slots[slot as usize].queued = false;
            self.schedule_or_release(slot);
        }
    }
}
