//! The judge: what the servers saw, held against what the crawler promised.
//!
//! It is told of every contact as the server sees it (begun, ended, dialled, hung up) and of every record that is
//! durable, and keeps a naive model of its own: an array with a line per host and a bit per URL, so that a million hosts
//! and ten million pages fit beside the crawl they judge. It knows the web's links as data and the world's rules as data
//! and asks the crawler nothing, save how full its tables are. Each invariant is a function with its name.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rhumb_core::frontier::{Figures, FrontierConfig, Hold, Reason};
use rhumb_core::outcome::Outcome;
use rhumb_store::Timestamp;

use super::urls::{Bits, Urls};
use super::world::World;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} is broken at {at}: {what}")]
pub struct Violation {
    /// The invariant's name.
    pub invariant: &'static str,
    /// The virtual time.
    pub at: Timestamp,
    /// Who and how.
    pub what: String,
}

type Verdict = Result<(), Violation>;

fn broken(invariant: &'static str, at: u64, what: String) -> Verdict {
    Err(Violation { invariant, at: Timestamp(at), what })
}

/// What a record in the log, once it is durable, means to the model.
#[derive(Clone, Debug)]
pub(crate) enum Learnt {
    /// The user named a URL.
    Seed { url: u32, at: u64 },
    /// A page's visit is finished; `found` are the links that count.
    Page {
        host: u64,
        url: u32,
        ended: u64,
        outcome: Outcome,
        retry_after_ms: Option<u64>,
        retry: bool,
        found: Vec<u32>,
    },
    /// A URL was given up without a visit; `forbidden` if that is what the crawler gives as the reason.
    Dropped { url: u32, host: u64, path: String, outcome: Outcome, at: u64 },
    /// A host is left alone.
    Held { host: u64, hold: Hold },
    /// A robots.txt was fetched from `host` for `ruled`.
    Robots {
        host: u64,
        ruled: u64,
        own: bool,
        hops: u8,
        ended: u64,
        outcome: Outcome,
        status: u16,
        version: u32,
        retry_after_ms: Option<u64>,
    },
}

/// What is known of a host's rules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rules {
    Unknown,
    /// They were redirected, and the other host has not answered yet.
    Elsewhere,
    /// There are none.
    AllowAll {
        since: u64,
    },
    /// Those that host `by` served in this version.
    Served {
        by: u32,
        version: u32,
        since: u64,
    },
}

/// One host, as its server sees us.
#[derive(Clone, Debug)]
struct HostView {
    /// When the last contact ended, and how long it took.
    ended: u64,
    took_ms: u64,
    /// A Retry-After or a back-off lasts until here.
    backoff_until: u64,
    rules: Rules,
    /// URLs found and not finished.
    waiting: u32,
    /// When something was last found or finished here.
    since: u64,
    connection: u32,
    address: u32,
    /// Rate-limit events since the last good answer.
    level: u8,
    /// The visit under way.
    visit: Under,
    resolving: bool,
    listed: bool,
    /// Something went wrong here once, which is what giving up a URL needs as a reason.
    troubled: bool,
    /// The crawler said that it leaves the host alone.
    held: Option<Hold>,
    /// The one request to a held host was made.
    probed: bool,
    /// Requests since the host answered or was held.
    unanswered: u32,
    /// How often it was held for not answering since it answered with a page.
    holds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Under {
    Nothing,
    Robots,
    Page(u32),
}

const NONE: u32 = u32::MAX;
/// Whole milliseconds by which the clocks of crawler and server may differ: a turn of the engine.
const SLACK_MS: u64 = 10;
/// So long may a host that is ready wait while a worker has nothing to do: failures back off for minutes, and new back
/// queues are opened a few at a time.
const PATIENCE_MS: u64 = 45 * 60_000;

/// See the module's header.
pub(crate) struct Checker {
    world: World,
    promised: FrontierConfig,
    pub urls: Urls,
    hosts: Vec<HostView>,
    /// Connections by address: open, and of these in use.
    open: Vec<(u16, u16)>,
    discovered: Bits,
    finished: Bits,
    /// Visits of a URL that failed and are to be repeated; a line only where there are some.
    attempts: HashMap<u32, u8>,
    /// Hosts with something to do, by when they were last seen to be ready.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    idle_since: Option<u64>,
    /// When a finished crawl was last started again: who was held before may be asked at once.
    started_again: u64,
    pub checks: u64,
    pub pages: u64,
    pub gone: u64,
}

impl Checker {
    pub fn new(world: World, promised: FrontierConfig) -> Checker {
        let urls = Urls::new(&world.web);
        let count = urls.count();
        let host = HostView {
            ended: 0,
            took_ms: 0,
            backoff_until: 0,
            rules: Rules::Unknown,
            waiting: 0,
            since: 0,
            connection: NONE,
            address: NONE,
            level: 0,
            visit: Under::Nothing,
            resolving: false,
            listed: false,
            troubled: false,
            held: None,
            probed: false,
            unanswered: 0,
            holds: 0,
        };
        Checker {
            hosts: vec![host; world.web.hosts() as usize],
            open: vec![(0, 0); world.addresses()],
            discovered: Bits::new(count),
            finished: Bits::new(count),
            attempts: HashMap::new(),
            ready: BinaryHeap::new(),
            idle_since: None,
            started_again: 0,
            checks: 0,
            pages: 0,
            gone: 0,
            urls,
            world,
            promised,
        }
    }

    // What the server sees.

    /// A request for robots.txt begins.
    pub fn asks_for_rules(&mut self, host: u64, now: u64) -> Verdict {
        self.one_visit_per_host(host, now)?;
        self.delay_is_kept(host, now)?;
        self.held_hosts_are_left_alone(host, now)?;
        self.dead_hosts_cost_little(host, now)?;
        self.hosts[host as usize].visit = Under::Robots;
        Ok(())
    }

    /// A request for a page begins, the `attempt`-th repetition.
    pub fn asks_for_page(&mut self, host: u64, url: u32, path: &str, attempt: u8, now: u64) -> Verdict {
        self.one_visit_per_host(host, now)?;
        self.delay_is_kept(host, now)?;
        self.held_hosts_are_left_alone(host, now)?;
        self.dead_hosts_cost_little(host, now)?;
        self.robots_judged_before_fetch(host, path, now)?;
        self.each_url_once(url, attempt, now)?;
        self.hosts[host as usize].visit = Under::Page(url);
        Ok(())
    }

    /// The contact ends: with the last byte, or because the crawler is dead.
    pub fn contact_ends(&mut self, host: u64, started: u64, ended: u64) {
        let view = &mut self.hosts[host as usize];
        view.visit = Under::Nothing;
        view.ended = ended;
        view.took_ms = ended - started;
        self.list(host);
    }

    /// The visit's connection is opened, unless the last one is still there.
    pub fn connects(&mut self, host: u64, address: u32, now: u64) -> Verdict {
        let view = &mut self.hosts[host as usize];
        if view.connection == NONE {
            view.connection = address;
            self.open[address as usize].0 += 1;
        }
        let connection = self.hosts[host as usize].connection;
        self.open[connection as usize].1 += 1;
        self.per_address_limit(connection, now)
    }

    /// The visit leaves its connection behind, open or not.
    pub fn leaves_connection(&mut self, host: u64, kept: bool) {
        let connection = self.hosts[host as usize].connection;
        self.open[connection as usize].1 -= 1;
        if !kept {
            self.hangs_up(host);
        }
    }

    /// The host's connection is closed.
    pub fn hangs_up(&mut self, host: u64) {
        let view = &mut self.hosts[host as usize];
        if view.connection != NONE {
            self.open[view.connection as usize].0 -= 1;
            view.connection = NONE;
        }
    }

    /// The crawler is dead, and its connections with it; contacts were ended one by one before.
    pub fn crawler_dies(&mut self) {
        for view in &mut self.hosts {
            view.connection = NONE;
            view.resolving = false;
            // What was under way, or not durable yet, is not known to the next one.
            view.probed = false;
            view.unanswered = view.unanswered.saturating_sub(2);
        }
        self.open.fill((0, 0));
        self.idle_since = None;
    }

    /// A finished crawl is started again.
    pub fn started_again(&mut self, now: u64) {
        self.started_again = now;
    }

    // What the crawler is told beside visits.

    /// A name is being looked up.
    pub fn resolving(&mut self, host: u64) {
        self.hosts[host as usize].resolving = true;
    }

    /// It was.
    pub fn resolved(&mut self, host: u64, address: Option<u32>) {
        let view = &mut self.hosts[host as usize];
        view.resolving = false;
        view.address = address.unwrap_or(NONE);
        view.troubled |= address.is_none();
        self.list(host);
    }

    // What the log holds for good.

    /// A record is durable.
    pub fn learn(&mut self, learnt: &Learnt) -> Verdict {
        match learnt {
            Learnt::Seed { url, at } => self.discover(*url, *at),
            Learnt::Page { host, url, ended, outcome, retry_after_ms, retry, found } => {
                self.learn_manners(*host, *ended, *outcome, *retry_after_ms);
                if !outcome.is_host_trouble() {
                    self.hosts[*host as usize].holds = 0;
                }
                let before = self.attempts.get(url).copied().unwrap_or(0);
                self.retries_are_bounded(*url, before, *outcome, *retry, *ended)?;
                if *retry {
                    self.attempts.insert(*url, before + 1);
                    return Ok(());
                }
                self.finish(*url, *host, *ended)?;
                // Whether it was of use is the crawler's business; if not, it says so again.
                self.hosts[*host as usize].held = None;
                self.pages += u64::from(*outcome == Outcome::Ok);
                found.iter().for_each(|&url| self.discover(url, *ended));
            }
            Learnt::Dropped { url, host, path, outcome, at } => {
                self.dropped_for_a_reason(*host, path, *outcome, *at)?;
                self.gone += 1;
                self.finish(*url, *host, *at)?;
            }
            Learnt::Held { host, hold } => self.learn_hold(*host, hold)?,
            Learnt::Robots { host, ruled, own, hops, ended, outcome, status, version, retry_after_ms } => {
                self.learn_manners(*host, *ended, *outcome, *retry_after_ms);
                self.learn_rules(*ruled, *host, *hops, *ended, *outcome, *status, *version);
                if *own && host != ruled && *outcome != Outcome::Redirect {
                    self.learn_rules(*host, *host, 0, *ended, *outcome, *status, *version);
                }
            }
        }
        Ok(())
    }

    fn discover(&mut self, url: u32, at: u64) {
        if self.discovered.insert(url) {
            let host = self.urls.host_of(url);
            let view = &mut self.hosts[host as usize];
            view.waiting += 1;
            view.since = at;
            self.list(host);
        }
    }

    fn finish(&mut self, url: u32, host: u64, at: u64) -> Verdict {
        self.checks += 1;
        if !self.finished.insert(url) {
            return broken("each_url_once", at, format!("{} was finished twice", self.name(url)));
        }
        self.attempts.remove(&url);
        let view = &mut self.hosts[host as usize];
        view.waiting = view.waiting.saturating_sub(1);
        view.since = at;
        Ok(())
    }

    fn learn_manners(&mut self, host: u64, ended: u64, outcome: Outcome, retry_after_ms: Option<u64>) {
        let promised = &self.promised;
        let view = &mut self.hosts[host as usize];
        view.troubled |= outcome.is_trouble();
        if !outcome.is_host_trouble() {
            view.unanswered = 0;
            view.probed = false;
        }
        let pause_ms = match outcome {
            Outcome::RateLimited => {
                view.level = view.level.saturating_add(1).min(20);
                let grown = (promised.backoff_ms_first << (view.level - 1)).min(promised.backoff_ms_max);
                retry_after_ms.unwrap_or(0).min(promised.retry_after_ms_max).max(grown * 3 / 4)
            }
            o if o.is_host_trouble() => promised.failure_ms_first * 3 / 4,
            Outcome::Ok | Outcome::NotModified | Outcome::Redirect | Outcome::NotFound => {
                view.level = 0;
                0
            }
            _ => 0,
        };
        view.backoff_until = view.backoff_until.max(ended + pause_ms);
    }

    #[allow(clippy::too_many_arguments)] // They are the fields of one record.
    fn learn_rules(&mut self, ruled: u64, by: u64, hops: u8, since: u64, outcome: Outcome, status: u16, version: u32) {
        let view = &mut self.hosts[ruled as usize];
        view.rules = match (outcome, status) {
            (Outcome::Redirect, _) if hops < 5 => Rules::Elsewhere,
            (Outcome::Ok, 200..=299) => Rules::Served { by: by as u32, version, since },
            (Outcome::NotModified, 304) => match view.rules {
                Rules::Served { by, version, .. } => Rules::Served { by, version, since },
                _ => Rules::AllowAll { since },
            },
            (Outcome::Redirect | Outcome::NotFound | Outcome::ClientError | Outcome::BadRedirect, 300..=499) => {
                Rules::AllowAll { since }
            }
            _ => Rules::Unknown,
        };
        view.troubled |= matches!(view.rules, Rules::Unknown | Rules::Elsewhere);
        let known = !matches!(view.rules, Rules::Unknown | Rules::Elsewhere);
        if known && view.held.is_some_and(|h| h.reason != Reason::OverBudget) {
            view.held = None;
        }
        self.list(ruled);
    }

    fn learn_hold(&mut self, host: u64, hold: &Hold) -> Verdict {
        let view = &mut self.hosts[host as usize];
        view.held = Some(*hold);
        view.probed = false;
        if hold.reason == Reason::OverBudget {
            return Ok(());
        }
        view.unanswered = 0;
        view.holds += 1;
        self.held_for_a_reason(host, hold)
    }

    // The invariants.

    /// A held host is asked once, for its rules, when it is due: by time, or because a finished crawl was started again.
    fn held_hosts_are_left_alone(&mut self, host: u64, now: u64) -> Verdict {
        self.checks += 1;
        let started_again = self.started_again;
        let view = &mut self.hosts[host as usize];
        let Some(hold) = view.held else { return Ok(()) };
        let due = hold.until.is_some_and(|until| until.0 <= now) || hold.at.0 < started_again;
        if !due || view.probed && hold.reason != Reason::OverBudget {
            let what = format!("host {host} is asked though it is held: {view:?}");
            return broken("held_hosts_are_left_alone", now, what);
        }
        view.probed = true;
        Ok(())
    }

    /// A host that does not answer is held after so many requests.
    fn dead_hosts_cost_little(&mut self, host: u64, now: u64) -> Verdict {
        self.checks += 1;
        let view = &mut self.hosts[host as usize];
        view.unanswered += 1;
        if view.unanswered > u32::from(self.promised.host_failures_max) {
            let what = format!("host {host} is asked once more though it does not answer: {view:?}");
            return broken("dead_hosts_cost_little", now, what);
        }
        Ok(())
    }

    /// Only a host with which something was wrong is held for not answering, and not more often than there are probes.
    fn held_for_a_reason(&mut self, host: u64, hold: &Hold) -> Verdict {
        self.checks += 1;
        let view = &self.hosts[host as usize];
        let most = self.promised.probe_ms.len() as u32 + 1 + u32::from(self.started_again > 0);
        if !view.troubled || view.holds > most {
            return broken("held_for_a_reason", hold.at.0, format!("host {host} is held: {view:?}"));
        }
        Ok(())
    }

    /// At most one visit of a host is under way.
    fn one_visit_per_host(&mut self, host: u64, now: u64) -> Verdict {
        self.checks += 1;
        match self.hosts[host as usize].visit {
            Under::Nothing => Ok(()),
            other => {
                let what = match other {
                    Under::Page(url) => self.name(url),
                    _ => "its robots.txt".to_string(),
                };
                broken("one_visit_per_host", now, format!("host {host} is visited while {what} is being fetched"))
            }
        }
    }

    /// No contact before the pause is over: the minimum, ten times the last fetch, the Crawl-delay, a Retry-After, a
    /// back-off, whichever is longest.
    fn delay_is_kept(&mut self, host: u64, now: u64) -> Verdict {
        self.checks += 1;
        let view = &self.hosts[host as usize];
        let promised = &self.promised;
        if view.ended == 0 {
            return Ok(());
        }
        let asked = match view.rules {
            Rules::Served { by, version, .. } => self.world.crawl_delay_ms(u64::from(by), version),
            _ => 0,
        };
        let patient = (view.took_ms as f64 * promised.delay_factor) as u64;
        let pause = promised.delay_ms_min.max(patient).max(asked.min(promised.crawl_delay_ms_max));
        let (after_last, after_backoff) = (view.ended + pause, view.backoff_until);
        if now < after_last.max(after_backoff) {
            let early = after_last.max(after_backoff) - now;
            let took = view.took_ms;
            let what = format!(
                "host {host} is contacted {early} ms too early; the last fetch took {took} ms and ended {} ms ago, \
                 Crawl-delay {asked} ms, back-off ended {} ms ago",
                now - view.ended,
                now as i64 - after_backoff as i64,
            );
            return broken("delay_is_kept", now, what);
        }
        Ok(())
    }

    /// At most so many connections are open to an address.
    fn per_address_limit(&mut self, address: u32, now: u64) -> Verdict {
        self.checks += 1;
        let (open, _) = self.open[address as usize];
        let limit = self.promised.per_address;
        if limit > 0 && u32::from(open) > limit {
            return broken(
                "per_address_limit",
                now,
                format!("{open} connections to address {address}, {limit} allowed"),
            );
        }
        Ok(())
    }

    /// Nothing is fetched without rules that are fresh in that moment and allow it.
    fn robots_judged_before_fetch(&mut self, host: u64, path: &str, now: u64) -> Verdict {
        self.checks += 1;
        const NAME: &str = "robots_judged_before_fetch";
        let rules = self.hosts[host as usize].rules;
        let since = match rules {
            Rules::AllowAll { since } => since,
            Rules::Served { by, version, since } => {
                let parked = self.parks(by, version);
                if !self.world.allows(u64::from(by), version, path) || parked {
                    let what = format!("host {host}: {path} is forbidden by version {version} of the rules of {by}");
                    return broken(NAME, now, what);
                }
                since
            }
            Rules::Unknown | Rules::Elsewhere => {
                return broken(NAME, now, format!("host {host}: {path} is fetched though the rules are {rules:?}"));
            }
        };
        if now > since + self.promised.robots_ms_max + SLACK_MS {
            let age_s = (now - since) / 1_000;
            return broken(NAME, now, format!("host {host}: {path} is fetched by rules that are {age_s} s old"));
        }
        Ok(())
    }

    fn parks(&self, by: u32, version: u32) -> bool {
        self.world.crawl_delay_ms(u64::from(by), version) > self.promised.crawl_delay_ms_max
    }

    /// A page is fetched once, save for repetitions that its failures allow.
    fn each_url_once(&mut self, url: u32, attempt: u8, now: u64) -> Verdict {
        self.checks += 1;
        const NAME: &str = "each_url_once";
        if !self.discovered.contains(url) {
            return broken(NAME, now, format!("{} is fetched though nobody found it", self.name(url)));
        }
        if self.finished.contains(url) {
            return broken(NAME, now, format!("{} is fetched though it is finished", self.name(url)));
        }
        let before = self.attempts.get(&url).copied().unwrap_or(0);
        if attempt != before {
            let what = format!("{} is fetched as attempt {attempt}, but {before} have failed", self.name(url));
            return broken(NAME, now, what);
        }
        Ok(())
    }

    /// What may help is tried again, what cannot help is not, and neither for ever.
    fn retries_are_bounded(&mut self, url: u32, before: u8, outcome: Outcome, retry: bool, now: u64) -> Verdict {
        self.checks += 1;
        let most = match outcome {
            Outcome::RateLimited => self.promised.attempts_limited_max,
            o if o.is_transient() => self.promised.attempts_max,
            _ => 0,
        };
        if retry != (before + 1 < most) {
            let what = format!("{} ended as {} in attempt {before}, retry: {retry}", self.name(url), outcome.name());
            return broken("retries_are_bounded", now, what);
        }
        Ok(())
    }

    /// A URL is given up only if its host's rules forbid it or something was wrong with the host.
    fn dropped_for_a_reason(&mut self, host: u64, path: &str, outcome: Outcome, now: u64) -> Verdict {
        self.checks += 1;
        let view = &self.hosts[host as usize];
        let fine = match (outcome, view.rules) {
            (Outcome::RobotsDisallowed, Rules::Served { by, version, .. }) => {
                !self.world.allows(u64::from(by), version, path) || self.parks(by, version)
            }
            (Outcome::RobotsDisallowed, _) => false,
            _ => view.troubled,
        };
        if !fine {
            let what = format!("host {host}: {path} is given up as {} with rules {:?}", outcome.name(), view.rules);
            return broken("dropped_for_a_reason", now, what);
        }
        Ok(())
    }

    /// The crawler's tables keep to their bounds. What else the core learns to say of its memory belongs here.
    pub fn memory_is_bounded(&mut self, figures: &Figures, workers: usize, now: u64) -> Verdict {
        self.checks += 1;
        let most = self.promised.back_queues_max.max(self.promised.back_queues) + workers;
        if figures.back_queues as usize > most {
            let what = format!("{} back queues, {most} allowed", figures.back_queues);
            return broken("memory_is_bounded", now, what);
        }
        let bytes = self.promised.memory_bytes_max();
        if figures.memory_bytes as usize > bytes {
            let what = format!("{} bytes in the frontier, {bytes} allowed", figures.memory_bytes);
            return broken("memory_is_bounded", now, what);
        }
        if figures.in_flight as usize > workers {
            let what = format!("{} visits under way, {workers} allowed", figures.in_flight);
            return broken("memory_is_bounded", now, what);
        }
        Ok(())
    }

    /// No worker is idle while a host is ready. To be called when a worker was left without work; `figures` is asked only
    /// on suspicion.
    pub fn progress(&mut self, now: u64, figures: impl FnOnce() -> Figures) -> Verdict {
        self.checks += 1;
        let idle_since = *self.idle_since.get_or_insert(now);
        if now < idle_since + PATIENCE_MS {
            return Ok(());
        }
        while let Some(&Reverse((seen, host))) = self.ready.peek() {
            if seen + PATIENCE_MS > now {
                return Ok(());
            }
            self.ready.pop();
            self.hosts[host as usize].listed = false;
            if self.hosts[host as usize].waiting == 0 {
                continue;
            }
            let since = self.ready_since(u64::from(host));
            if since.is_some_and(|since| since.max(idle_since) + PATIENCE_MS <= now) {
                let figures = figures();
                if figures.back_queues as usize >= self.promised.back_queues_max {
                    self.list(u64::from(host));
                    return Ok(());
                }
                let view = &self.hosts[host as usize];
                let what = format!("host {host} waits though a worker is idle: {view:?}, {figures:?}");
                return broken("progress", now, what);
            }
            // Something holds it back; it is looked at again when its patience has run out once more.
            let seen = since.unwrap_or(now).max(idle_since);
            self.hosts[host as usize].listed = true;
            self.ready.push(Reverse((seen, host)));
        }
        Ok(())
    }

    /// Every worker has something to do.
    pub fn all_busy(&mut self) {
        self.idle_since = None;
    }

    /// Since when nothing stood between the host and its next visit, if nothing does.
    fn ready_since(&self, host: u64) -> Option<u64> {
        let view = &self.hosts[host as usize];
        let crowded = view.address != NONE
            && self.promised.per_address > 0
            && u32::from(self.open[view.address as usize].1) >= self.promised.per_address;
        let busy = view.visit != Under::Nothing || view.resolving || crowded;
        let held = busy || view.rules == Rules::Elsewhere || view.held.is_some();
        let asked = match view.rules {
            Rules::Served { by, version, .. } => self.world.crawl_delay_ms(u64::from(by), version),
            _ => 0,
        };
        let pause = (view.took_ms as f64 * self.promised.delay_factor) as u64;
        (!held).then(|| view.since.max(view.backoff_until).max(view.ended + pause.max(asked)))
    }

    fn list(&mut self, host: u64) {
        let view = &mut self.hosts[host as usize];
        if view.waiting > 0 && !view.listed {
            view.listed = true;
            self.ready.push(Reverse((view.since.max(view.ended), host as u32)));
        }
    }

    /// At the end everything that was found is finished, or its host is held and the crawler has it. The sieve knows exactly that.
    pub fn nothing_lost_in_a_crash(&mut self, sieve_keys: u64, urls_held: u64, now: u64) -> Verdict {
        self.checks += 1;
        const NAME: &str = "nothing_lost_in_a_crash";
        let mut left = 0;
        for url in self.discovered.not_in(&self.finished) {
            left += 1;
            let view = &self.hosts[self.urls.host_of(url) as usize];
            let Some(hold) = view.held else {
                return broken(NAME, now, format!("{} was found and never finished: {view:?}", self.name(url)));
            };
            if hold.at.0 < self.started_again && hold.reason != Reason::OverBudget {
                let what =
                    format!("{} is held as before, though the crawl was started again: {view:?}", self.name(url));
                return broken("held_hosts_are_tried_again", now, what);
            }
        }
        if left != urls_held {
            return broken(NAME, now, format!("{urls_held} URLs are held, {left} are not finished"));
        }
        let found = self.discovered.count();
        if sieve_keys != found {
            return broken(NAME, now, format!("the sieve let {sieve_keys} URLs through, {found} were found"));
        }
        Ok(())
    }

    /// URLs found, and of these finished.
    pub fn counts(&self) -> (u64, u64) {
        (self.discovered.count(), self.finished.count())
    }

    #[cfg(test)]
    /// Every URL that is finished, for a comparison with the ground truth of a small web.
    pub fn finished_urls(&self) -> impl Iterator<Item = String> {
        (0..self.urls.count() as u32).filter(|&url| self.finished.contains(url)).map(|url| self.name(url))
    }

    fn name(&self, url: u32) -> String {
        self.world.web.target_url(self.urls.target(url))
    }
}

#[cfg(test)]
#[path = "rude.rs"]
mod rude;
