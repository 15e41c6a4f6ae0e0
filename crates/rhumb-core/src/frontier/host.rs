//! What is remembered of a host: when it may be contacted again, its rules, how it behaves.

use std::net::IpAddr;
use std::sync::Arc;

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::fifo::Fifo;

use super::FrontierConfig;
use super::budget::domain_key;
use super::hold::Hold;
use crate::outcome::Outcome;
use crate::robots::Rules;
use crate::sitemap::Trust;
use crate::url::{Host, Url};
use crate::visit::{Entry, Validators};

/// Validators of a robots.txt that are longer are not worth their memory.
const VALIDATORS_BYTES_MAX: usize = 512;
/// What a contact of a host that never answered yet is taken to last.
const FETCH_MS_UNKNOWN: u64 = 500;

/// One host: who we are polite to.
#[derive(Debug)]
pub(super) struct HostState {
    pub host: Host,
    /// The politeness clock: no request before this.
    pub contact_after: Timestamp,
    /// The back-off clock: grows with each rate-limit event or failure to answer.
    pub backoff_until: Timestamp,
    pub backoff_level: u8,
    /// Failures to answer in a row, since it was last held.
    pub failures: u8,
    /// The same since it last answered, and how the last one failed.
    pub tries: u32,
    pub trouble: Option<Outcome>,
    /// How often it was held for not answering since a page of it was last answered.
    pub trips: u8,
    /// How often it was held for being over its budget since a page of it was last of use.
    pub explored: u8,
    pub robots: Robots,
    /// Set while the host's URLs are given up, with the reason.
    pub down: Option<(Outcome, Timestamp)>,
    /// Why the host is held. With a back queue it is half-open: about to show whether it is better.
    pub held: Option<Box<Hold>>,
    /// The URLs of a host that is held and has no back queue.
    pub parked: Option<Box<Fifo>>,
    /// What it may still cost, in quarters of a visit.
    pub credit: u64,
    /// Visits of its pages.
    pub pages: u32,
    /// Whether the dates in its sitemaps tell the truth.
    pub trust: Trust,
    /// Its robots.txt named sitemaps, or the usual place was looked at.
    pub sitemap_asked: bool,
    /// The key of its registrable domain.
    pub domain: u64,
    /// A contact was announced in the log and its end is not there yet.
    pub issued: Option<Timestamp>,
    /// How long the last contact took.
    pub fetch_ms_last: Option<u64>,
    /// When it ended; 0 if there was none.
    pub contact_ended: Timestamp,
    // What follows is not kept over a restart.
    pub slot: Option<u32>,
    pub in_flight: Option<InFlight>,
    pub addresses: Option<(Arc<[IpAddr]>, Timestamp)>,
    pub resolving: bool,
    pub connection: Connection,
    /// Fetches this host must do for others: their robots.txt was redirected here.
    pub errands: Vec<Errand>,
    /// Its being held is put to the test: it counts among those few.
    pub probing: bool,
    /// It may visit one page although it is over its budget.
    pub granted: bool,
    /// Changed since the last checkpoint.
    pub dirty: bool,
    /// Stands in the list of hosts that may leave memory.
    pub cooling: bool,
    /// What was last counted of its memory.
    pub bytes_counted: usize,
}

#[derive(Debug)]
pub(super) enum Robots {
    Unknown,
    /// The rules were redirected to another host, which fetches them.
    Elsewhere,
    Known {
        rules: KnownRules,
        expires: Timestamp,
        validators: Validators,
    },
}

/// The rules of a host. Few have many; those lie in the host table, and are read when a page's turn has come.
#[derive(Debug)]
pub(super) enum KnownRules {
    Here(Rules),
    InTable { crawl_delay_ms: Option<u32> },
}

impl KnownRules {
    fn crawl_delay_ms(&self) -> Option<u32> {
        match self {
            KnownRules::Here(rules) => rules.crawl_delay_ms(),
            KnownRules::InTable { crawl_delay_ms } => *crawl_delay_ms,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    None,
    Busy(IpAddr),
    Idle(IpAddr, Timestamp),
    Closing(IpAddr),
}

#[derive(Debug)]
pub(super) struct InFlight {
    /// The page's URL, or nothing when robots.txt is fetched.
    pub entry: Option<Box<Entry>>,
}

#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub url: Url,
    pub for_host: Host,
    pub hops: u8,
}

impl HostState {
    /// A host that was just met.
    pub fn new(host: Host, config: &FrontierConfig) -> HostState {
        let domain = domain_key(host.registrable_domain());
        HostState::of_domain(host, domain, config)
    }

    fn of_domain(host: Host, domain: u64, config: &FrontierConfig) -> HostState {
        HostState {
            domain,
            host,
            contact_after: Timestamp(0),
            backoff_until: Timestamp(0),
            backoff_level: 0,
            failures: 0,
            tries: 0,
            trouble: None,
            trips: 0,
            explored: 0,
            robots: Robots::Unknown,
            down: None,
            held: None,
            parked: None,
            credit: config.budget.host_start(),
            pages: 0,
            trust: Trust::default(),
            sitemap_asked: false,
            issued: None,
            fetch_ms_last: None,
            contact_ended: Timestamp(0),
            slot: None,
            in_flight: None,
            addresses: None,
            resolving: false,
            connection: Connection::None,
            errands: Vec::new(),
            probing: false,
            granted: false,
            dirty: false,
            cooling: false,
            bytes_counted: 0,
        }
    }

    /// The earliest moment of the next request.
    pub fn ready_at(&self) -> Timestamp {
        self.contact_after.max(self.backoff_until)
    }

    /// The pause that a fetch of `fetch_ms` asks for: max(minimum, factor × fetch time, Crawl-delay).
    pub fn gap_ms(&self, fetch_ms: u64, config: &FrontierConfig) -> u64 {
        if config.delay_ms_min == 0 || !self.host.rules().polite {
            return 0;
        }
        let asked = match &self.robots {
            Robots::Known { rules, .. } => u64::from(rules.crawl_delay_ms().unwrap_or(0)),
            _ => 0,
        };
        // Both ends of a fetch are cut to whole milliseconds, so it may have taken one more, and ended one later.
        let patient = ((fetch_ms + 1) as f64 * config.delay_factor).ceil() as u64;
        config.delay_ms_min.max(patient).max(asked.min(config.crawl_delay_ms_max)) + 1
    }

    /// Winds the politeness clock after a contact.
    pub fn contacted(&mut self, started: Timestamp, ended: Timestamp, config: &FrontierConfig) {
        self.fetch_ms_last = Some(ended.ms_since(started));
        self.contact_ended = ended;
        self.wind(config);
    }

    /// Winds it by what is known now: rules may have come after the contact, from this host or another.
    pub fn wind(&mut self, config: &FrontierConfig) {
        if self.contact_ended > Timestamp(0) {
            let gap = self.gap_ms(self.fetch_ms_last.unwrap_or(0), config);
            self.contact_after = self.contact_after.max(self.contact_ended.plus_ms(gap));
        }
    }

    /// Winds it after a contact whose end nobody saw: the process died, at `died` at the latest. The host may have
    /// heard of it in the last moment and worked on for as long as it usually takes.
    pub fn lost_contact(&mut self, started: Timestamp, died: Timestamp, config: &FrontierConfig) {
        let usual_ms = self.fetch_ms_last.unwrap_or(FETCH_MS_UNKNOWN);
        let gap = self.gap_ms(usual_ms.max(died.ms_since(started)), config);
        self.contact_ended = died.max(started).plus_ms(usual_ms);
        self.contact_after = self.contact_after.max(self.contact_ended.plus_ms(gap));
    }

    /// Nothing is fetched before `until`, for this reason; unless there is one already that lasts longer.
    pub fn give_up(&mut self, outcome: Outcome, until: Timestamp) {
        if self.down.is_none_or(|(_, before)| before < until) {
            self.down = Some((outcome, until));
        }
    }

    /// Whether the rules are known and not out of date.
    pub fn robots_fresh(&self, now: Timestamp) -> bool {
        matches!(&self.robots, Robots::Known { expires, .. } if now < *expires)
    }

    /// Takes what a robots.txt says as the host's rules. Gives them back if they are too large to be kept here.
    pub fn learn(
        &mut self,
        rules: Rules,
        validators: Validators,
        now: Timestamp,
        config: &FrontierConfig,
    ) -> Option<Rules> {
        let text_bytes = |text: &Option<Box<str>>| text.as_ref().map_or(0, |t| t.len());
        let bytes = text_bytes(&validators.etag) + text_bytes(&validators.last_modified);
        let validators = if bytes <= VALIDATORS_BYTES_MAX { validators } else { Validators::default() };
        let (rules, large) = if rules.to_bytes().len() <= config.rules_bytes_max {
            (KnownRules::Here(rules), None)
        } else {
            (KnownRules::InTable { crawl_delay_ms: rules.crawl_delay_ms() }, Some(rules))
        };
        self.robots = Robots::Known { rules, expires: now, validators };
        self.renew_rules(now, config);
        large
    }

    /// Whoever was asked for the rules will not bring them any more.
    pub fn rules_are_elsewhere_no_more(&mut self) {
        if matches!(self.robots, Robots::Elsewhere) {
            self.robots = Robots::Unknown;
        }
    }

    /// A contact or a look-up failed: a pause follows, four times as long each time.
    pub fn failed(&mut self, outcome: Outcome, now: Timestamp, jitter: f64, config: &FrontierConfig) {
        self.failures = self.failures.saturating_add(1);
        self.tries = self.tries.saturating_add(1);
        self.trouble = Some(outcome);
        let grown = config.failure_ms_first << (2 * u32::from(self.failures - 1).min(8));
        let pause_ms = (grown.min(config.backoff_ms_max) as f64 * (0.75 + 0.5 * jitter)) as u64;
        // An answer in between never shortens what an earlier one asked for.
        self.backoff_until = self.backoff_until.max(now.plus_ms(pause_ms));
    }

    /// It answered.
    pub fn answered(&mut self) {
        self.failures = 0;
        self.tries = 0;
        self.trouble = None;
    }

    /// The rules hold from now on: the robots.txt was just read, or has not changed since.
    pub fn renew_rules(&mut self, now: Timestamp, config: &FrontierConfig) {
        let until = now.plus_ms(config.robots_ms_max);
        let Robots::Known { rules, expires, .. } = &mut self.robots else { return };
        *expires = until;
        let patience = u64::from(rules.crawl_delay_ms().unwrap_or(0));
        if config.delay_ms_min > 0 && patience > config.crawl_delay_ms_max {
            self.give_up(Outcome::RobotsDisallowed, until);
        }
    }

    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_str(self.host.as_str());
        into.put_u64(self.contact_after.0);
        into.put_u64(self.backoff_until.0);
        into.put_u8(self.backoff_level);
        into.put_u8(self.failures);
        let (outcome, until) = self.down.map_or((0, Timestamp(0)), |(o, t)| (o.code(), t));
        into.put_u8(outcome);
        into.put_u64(until.0);
        into.put_u64(self.issued.map_or(0, |t| t.0 + 1));
        into.put_u64(self.fetch_ms_last.map_or(0, |ms| ms + 1));
        into.put_u64(self.contact_ended.0);
        match &self.robots {
            Robots::Known { rules, expires, validators } => {
                into.put_u8(if matches!(rules, KnownRules::Here(_)) { 1 } else { 2 });
                into.put_u64(expires.0);
                validators.put(into);
                match rules {
                    KnownRules::Here(rules) => into.put_bytes(rules.to_bytes()),
                    KnownRules::InTable { crawl_delay_ms } => {
                        into.put_u64(crawl_delay_ms.map_or(0, |ms| u64::from(ms) + 1))
                    }
                }
            }
            _ => into.put_u8(0),
        }
        into.put_u64(u64::from(self.tries));
        into.put_u8(self.trouble.map_or(0, Outcome::code));
        into.put_u8(self.trips);
        into.put_u8(self.explored);
        into.put_u64(self.credit);
        into.put_u64(u64::from(self.pages));
        into.extend_from_slice(&[self.trust.right, self.trust.wrong, u8::from(self.sitemap_asked)]);
        into.extend_from_slice(&self.domain.to_le_bytes());
        into.put_u64(self.held.as_ref().map_or(0, |h| h.at.0 + 1));
        if let Some(hold) = &self.held {
            hold.put(into);
        }
    }

    pub fn load(from: &mut Take<'_>, config: &FrontierConfig) -> Result<HostState, Malformed> {
        let host = Host::from_canonical(from.str()?).ok_or(Malformed("a host is not an origin"))?;
        let mut state = HostState::of_domain(host, 0, config);
        state.contact_after = Timestamp(from.u64()?);
        state.backoff_until = Timestamp(from.u64()?);
        state.backoff_level = from.u8()?;
        state.failures = from.u8()?;
        let outcome = from.u8()?;
        let until = Timestamp(from.u64()?);
        state.down = Outcome::from_code(outcome).map(|o| (o, until));
        state.issued = from.u64()?.checked_sub(1).map(Timestamp);
        state.fetch_ms_last = from.u64()?.checked_sub(1);
        state.contact_ended = Timestamp(from.u64()?);
        let known = from.u8()?;
        if known > 0 {
            let expires = Timestamp(from.u64()?);
            let validators = Validators::take(from)?;
            let rules = if known == 1 {
                let rules = Rules::from_bytes(from.bytes()?);
                KnownRules::Here(rules.map_err(|_| Malformed("robots rules do not read back"))?)
            } else {
                KnownRules::InTable { crawl_delay_ms: from.u64()?.checked_sub(1).map(|ms| ms as u32) }
            };
            state.robots = Robots::Known { rules, expires, validators };
        }
        state.tries = from.u32()?;
        state.trouble = Outcome::from_code(from.u8()?);
        state.trips = from.u8()?;
        state.explored = from.u8()?;
        state.credit = from.u64()?;
        state.pages = from.u32()?;
        state.trust = Trust { right: from.u8()?, wrong: from.u8()? };
        state.sitemap_asked = from.u8()? != 0;
        let domain = from.raw(8)?.try_into().map_err(|_| Malformed("half a key"))?;
        state.domain = u64::from_le_bytes(domain);
        if let Some(at) = from.u64()?.checked_sub(1) {
            state.held = Some(Box::new(Hold::take(from, Timestamp(at))?));
        }
        Ok(state)
    }
}
