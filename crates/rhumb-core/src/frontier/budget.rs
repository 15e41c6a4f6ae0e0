//! Budgets: what a host and a registrable domain may cost, by what they bring (SPEC C2).
//!
//! Each begins with a *credit* of visits. A page with something new in it earns some, one without takes away one; at nothing
//! the host, or every host of the domain, is held as over budget, and is granted a page now and then to show that it has
//! become better. Credit is capped, so that what was useful for long and then turns into a trap does not live on its savings.
//! So a trap costs a few hundred visits, and a host that keeps bringing something new is never stopped, however large.
//!
//! Credit is counted in quarters of a visit. A host's stands with the host; a domain's is a line of its own in the host
//! table, and the ones in use are in memory (`domains.rs`).

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};

use crate::outcome::Outcome;
use crate::url::Url;
use crate::visit::VisitRecord;

/// A domain with so many hosts is remembered.
const HOSTS_NOTABLE: u32 = 16;
/// Quarters of a visit in one.
const QUARTERS: u64 = 4;

/// Bounds of what hosts and domains may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// Visits a host is given to begin with; 0: no budget for hosts. 200 is what a small site has in all, so that most
    /// hosts are done before it matters, and what a trap is known by: hardly anything honest has 200 pages in a row with nothing new.
    pub host_credit: u32,
    /// The same for a registrable domain, all its hosts together: a few hosts' worth.
    pub domain_credit: u32,
    /// Visits that a page with something new earns. With 4, one in five visits has to bring something new. That leaves room for
    /// a redirect before each page together with a third of duplicates, or for half of the links leading to "not found".
    pub credit_per_page: u32,
    /// Credit is capped at so many times what it began with.
    pub credit_factor_max: u32,
    /// A host or domain over its budget is granted a page after this time, and then after twice as long each time, up to a day.
    pub explore_ms: u64,
    /// Visits of pages of a host, useful or not; 0: no bound.
    pub host_pages_max: u64,
    /// The same for a registrable domain.
    pub domain_pages_max: u64,
    /// Hosts of a registrable domain beyond the number of pages with something new that it brought; 0: no bound. Where names never
    /// end each host brings little, while hosting services and universities with as many hosts bring a page or more for each.
    pub domain_hosts_max: u64,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        BudgetConfig {
            host_credit: 200,
            domain_credit: 1_000,
            credit_per_page: 4,
            credit_factor_max: 4,
            explore_ms: 3_600_000,
            host_pages_max: 0,
            domain_pages_max: 0,
            domain_hosts_max: 10_000,
        }
    }
}

impl BudgetConfig {
    /// What a host begins with, in quarters.
    pub(super) fn host_start(&self) -> u64 {
        u64::from(self.host_credit) * QUARTERS
    }

    fn domain_start(&self) -> u64 {
        u64::from(self.domain_credit) * QUARTERS
    }

    /// Credit after a visit.
    fn after(&self, credit: u64, start: u64, change: Change) -> u64 {
        match change {
            Change::Earns => {
                let most = start * u64::from(self.credit_factor_max.max(1));
                (credit + u64::from(self.credit_per_page) * QUARTERS).min(most)
            }
            Change::Takes(quarters) => credit.saturating_sub(quarters),
        }
    }

    pub(super) fn host_after(&self, credit: u64, worth: Useful) -> u64 {
        self.after(credit, self.host_start(), worth.to_host())
    }

    /// Whether a host has nothing left.
    pub(super) fn host_is_over(&self, credit: u64, pages: u64) -> bool {
        self.host_credit > 0 && credit == 0 || self.host_pages_max > 0 && pages >= self.host_pages_max
    }
}

/// What a visit of a page was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useful {
    /// It brought something new.
    New,
    /// It says nothing: a page that has not changed since the last visit, a failure that the circuit breaker counts, a visit that is
    /// to be repeated.
    Neither,
    /// A redirect within the registrable domain, as from http to https. The page it leads to is another host's, perhaps, so
    /// only the domain pays for it.
    RedirectWithin,
    /// A redirect elsewhere, as of a link shortener: cheap, but nothing of its own.
    RedirectAway,
    /// It brought nothing new.
    Nothing,
}

enum Change {
    Earns,
    Takes(u64),
}

impl Useful {
    fn to_host(self) -> Change {
        match self {
            Useful::New => Change::Earns,
            Useful::Neither | Useful::RedirectWithin => Change::Takes(0),
            Useful::RedirectAway => Change::Takes(1),
            Useful::Nothing => Change::Takes(QUARTERS),
        }
    }

    fn to_domain(self) -> Change {
        match self {
            Useful::RedirectWithin => Change::Takes(QUARTERS),
            other => other.to_host(),
        }
    }
}

/// What a finished visit of a page was worth.
pub fn usefulness(record: &VisitRecord) -> Useful {
    if record.retry || !record.purpose.is_page() {
        return Useful::Neither;
    }
    match record.outcome {
        Outcome::Ok => match record.duplicate_of.as_deref() {
            // The same page as last time, at its own address.
            Some(first) if first == record.entry.url.as_str() => Useful::Neither,
            _ if record.nothing_new => Useful::Nothing,
            // Where nobody looks at what pages say, bodies still tell.
            Some(first) if is_in_domain(first, record.entry.url.registrable_domain()) => Useful::Nothing,
            // A copy of what another domain has is new here: who was copied must not suffer for who copied first.
            _ => Useful::New,
        },
        Outcome::Redirect => {
            let domain = record.entry.url.registrable_domain();
            let target = record.links.first().map(|link| link.url.registrable_domain());
            if target == Some(domain) { Useful::RedirectWithin } else { Useful::RedirectAway }
        }
        outcome if outcome.is_host_trouble() => Useful::Neither,
        Outcome::NotModified | Outcome::NoHost | Outcome::DnsFailed | Outcome::BlockedAddress => Useful::Neither,
        _ => Useful::Nothing,
    }
}

fn is_in_domain(url: &str, domain: &str) -> bool {
    Url::from_canonical(url).is_some_and(|url| url.registrable_domain() == domain)
}

/// What is remembered of a registrable domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Domain {
    /// In quarters of a visit.
    pub credit: u64,
    /// Over its budget, none of its hosts is granted a page before this.
    pub explore_after: Timestamp,
    /// Visits of pages.
    pub pages: u32,
    /// Of these, with something new.
    pub useful: u32,
    /// Hosts met.
    pub hosts: u32,
    // What follows is not kept over a restart.
    /// There is a line for it in the table.
    pub stored: bool,
    pub dirty: bool,
    /// Asked for since it was last considered for leaving memory.
    pub used: bool,
}

impl Domain {
    pub fn new(budget: &BudgetConfig) -> Domain {
        Domain {
            credit: budget.domain_start(),
            pages: 0,
            useful: 0,
            hosts: 0,
            explore_after: Timestamp(0),
            stored: false,
            dirty: false,
            used: false,
        }
    }

    /// A page of it was visited.
    pub fn visited(&mut self, worth: Useful, budget: &BudgetConfig) {
        self.pages = self.pages.saturating_add(1);
        self.useful = self.useful.saturating_add(u32::from(worth == Useful::New));
        self.credit = budget.after(self.credit, budget.domain_start(), worth.to_domain());
    }

    /// Whether a host of it that was visited so often must not be now.
    pub fn is_over(&self, budget: &BudgetConfig, host_pages: u64) -> bool {
        let hosts_max = budget.domain_hosts_max.saturating_add(u64::from(self.useful));
        budget.domain_credit > 0 && self.credit == 0
            || budget.domain_pages_max > 0 && u64::from(self.pages) >= budget.domain_pages_max
            || budget.domain_hosts_max > 0 && host_pages == 0 && u64::from(self.hosts) > hosts_max
    }

    /// Whether there is anything to remember once it is out of use. Of most domains there is not: they begin anew with what they began with.
    pub fn is_notable(&self, budget: &BudgetConfig) -> bool {
        let poor = budget.domain_credit > 0 && self.credit < budget.domain_start() / 8 * 7;
        let capped = budget.domain_pages_max > 0 && self.pages > 0;
        poor || capped || self.hosts >= HOSTS_NOTABLE
    }

    pub fn save(&self, into: &mut Vec<u8>) {
        for n in [self.credit, self.explore_after.0] {
            into.put_u64(n);
        }
        for n in [self.pages, self.useful, self.hosts] {
            into.put_u64(u64::from(n));
        }
    }

    pub fn load(bytes: &[u8], budget: &BudgetConfig) -> Result<Domain, Malformed> {
        let mut from = Take::new(bytes);
        let mut domain = Domain::new(budget);
        domain.stored = true;
        domain.credit = from.u64()?;
        domain.explore_after = Timestamp(from.u64()?);
        for n in [&mut domain.pages, &mut domain.useful, &mut domain.hosts] {
            *n = from.u32()?;
        }
        Ok(domain)
    }
}

/// The key of a domain in the host table. No host's origin begins so.
pub(super) fn domain_key(domain: &str) -> u64 {
    crate::url::Fingerprint::of(&format!("domain {domain}")).0
}
