//! The web as a pure function.
//!
//! A URL has three layers, and each file here is one of them. The host: its name, size, address and pace are below, its
//! manners in `robots`. The path: `path` writes the path of page 17 of a host and reads it back, so that no table of
//! paths is needed. The answer: `links` decides where a page points, `page` writes the markup around it, `respond`
//! chooses between page, redirect, error and "not modified". `outlinks` is the way round the markup: what a crawler would
//! have understood, without writing and reading it.
//!
//! Only two things can be changed while a web is in use, both for tests and both kept in `Overrides`: a host's
//! robots.txt and hand-made documents.

pub mod config;
pub(crate) mod links;
pub(crate) mod outlinks;
mod page;
pub(crate) mod path;
pub(crate) mod respond;
pub(crate) mod robots;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, PoisonError, RwLock};

use crate::hash::{self, Dice, PowerLaw, Purpose, mix};
use crate::text::Text;
use config::{ConfigError, Naming, WebConfig};
use path::{Target, put_number};
use respond::Reply;

/// A page: the index of its host and its index on that host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page {
    /// Index of the host, below [`Web::hosts`].
    pub host: u64,
    /// Index of the page on its host, below [`Web::pages_of`]; 0 is `/`.
    pub page: u64,
}

/// The synthetic web. Cloning is cheap; clones share their overrides.
#[derive(Clone)]
pub struct Web {
    config: Arc<WebConfig>,
    text: Arc<Text>,
    laws: Arc<Laws>,
    overrides: Arc<RwLock<Overrides>>,
}

/// The popularity of hosts and pages, and what draws from the usual numbers of them have in common.
struct Laws {
    hosts: PowerLaw,
    hosts_floor: f64,
    pages: PowerLaw,
    pages_floor: f64,
}

impl Laws {
    fn new(config: &WebConfig) -> Self {
        let (hosts, pages) = (PowerLaw::new(config.host_zipf), PowerLaw::new(config.page_zipf));
        let (hosts_floor, pages_floor) = (hosts.floor(config.hosts), pages.floor(config.pages));
        Laws { hosts, hosts_floor, pages, pages_floor }
    }
}

/// What tests put in place of what the seed says.
#[derive(Default)]
struct Overrides {
    robots: BTreeMap<u64, Reply>,
    documents: BTreeMap<(u64, String), Reply>,
}

impl Web {
    /// The web that these settings describe.
    pub fn new(config: WebConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let text = Arc::new(Text::new(config.seed));
        let laws = Arc::new(Laws::new(&config));
        Ok(Web { config: Arc::new(config), text, laws, overrides: Arc::default() })
    }

    /// The same web, sharing its overrides, at another place: what a server does to it once it knows its ports.
    pub fn placed(&self, change: impl FnOnce(&mut WebConfig)) -> Result<Self, ConfigError> {
        let mut config = (*self.config).clone();
        change(&mut config);
        config.check()?;
        let text = if config.seed == self.config.seed { self.text.clone() } else { Arc::new(Text::new(config.seed)) };
        let laws = Arc::new(Laws::new(&config));
        Ok(Web { config: Arc::new(config), text, laws, overrides: self.overrides.clone() })
    }

    /// The settings in force.
    pub fn config(&self) -> &WebConfig {
        &self.config
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u64 {
        self.config.hosts
    }

    /// Number of pages of a host.
    pub fn pages_of(&self, host: u64) -> u64 {
        let mean = self.config.pages;
        if self.config.pages_exact || mean == 1 {
            return mean;
        }
        let u = hash::unit(self.draw(Purpose::HostSize, host, 0));
        (hash::pareto(u, mean as f64, self.config.host_size_alpha, 200.0).round() as u64).max(1)
    }

    /// The host's name, without port.
    pub fn host_name(&self, host: u64) -> String {
        let mut name = Vec::with_capacity(24);
        self.put_host_name(host, &mut name);
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Scheme, name and port: what every URL of the host begins with.
    pub fn origin(&self, host: u64) -> String {
        let mut origin = Vec::with_capacity(32);
        self.put_origin(host, &mut origin);
        String::from_utf8_lossy(&origin).into_owned()
    }

    /// The URL of a page.
    pub fn url(&self, host: u64, page: u64) -> String {
        self.target_url(Target::Page { host, page })
    }

    /// The host of this name (a port and a final dot are ignored), if it is one of ours.
    pub fn host_index(&self, name: &str) -> Option<u64> {
        let name = match name.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => name,
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let host = match &self.config.naming {
            Naming::Loopback => {
                let address: Ipv4Addr = name.parse().ok()?;
                u64::from(u32::from(address)).checked_sub(LOOPBACK_NET + 1)?
            }
            Naming::Names { suffix, hosts_per_domain } => {
                let (head, tail) = name.split_at_checked(name.len().checked_sub(suffix.len() + 1)?)?;
                if !tail[1..].eq_ignore_ascii_case(suffix) || !tail.starts_with('.') {
                    return None;
                }
                let (label, domain) = match head.split_once('.') {
                    Some((label, domain)) => (label, Some(domain)),
                    None => (head, None),
                };
                let host = numbered(label, b'h')?;
                let expected = host.checked_div(*hosts_per_domain);
                if domain.map(|d| numbered(d, b'd')) != expected.map(Some) {
                    return None;
                }
                host
            }
        };
        (host < self.config.hosts).then_some(host)
    }

    /// The address at which the host is served; DNS gives this.
    pub fn address(&self, host: u64) -> Ipv4Addr {
        match self.config.naming {
            Naming::Loopback => Ipv4Addr::from((LOOPBACK_NET + 1 + host) as u32),
            Naming::Names { .. } if self.config.addresses == 1 => self.config.address,
            Naming::Names { .. } => {
                let k = self.draw(Purpose::Address, host, 0) % u64::from(self.config.addresses);
                Ipv4Addr::from((LOOPBACK_NET + 257 + k) as u32)
            }
        }
    }

    /// How long the host takes before it answers.
    pub fn latency_ms(&self, host: u64) -> u64 {
        let latency = &self.config.latency;
        let mut dice = Dice::new(self.draw(Purpose::Latency, host, 0));
        if dice.chance(latency.slow_share) {
            return latency.slow_ms;
        }
        let u = dice.unit();
        latency.min_ms + ((latency.max_ms - latency.min_ms) as f64 * u * u).round() as u64
    }

    /// The page whose body this page repeats, if it is a duplicate.
    ///
    /// Only leaves of the page tree are duplicates, because the links of a duplicate are those of its original and the
    /// tree must stay whole.
    pub fn twin(&self, host: u64, page: u64) -> Option<Page> {
        let share = self.config.duplicate_share;
        if share == 0.0 || page == 0 || !self.is_leaf(host, page) || self.is_original(host, page) {
            return None;
        }
        let mut dice = Dice::new(self.draw(Purpose::Twin, host, page));
        if !dice.chance(share) {
            return None;
        }
        let host = if dice.chance(0.5) { host } else { dice.below(self.hosts()) };
        let blocks = self.pages_of(host).div_ceil(ORIGINAL_BLOCK);
        let page = self.original_of(host, dice.below(blocks));
        Some(Page { host, page })
    }

    /// Answers the host's `/robots.txt` with this text from now on.
    pub fn set_robots(&self, host: u64, text: &str) {
        self.set_robots_reply(host, Reply::new(200, "text/plain", text));
    }

    /// Answers the host's `/robots.txt` with this reply from now on, whatever its status.
    pub fn set_robots_reply(&self, host: u64, reply: Reply) {
        self.overrides_mut(|o| o.robots.insert(host, reply));
    }

    /// Goes back to the robots.txt that the seed gives the host.
    pub fn clear_robots(&self, host: u64) {
        self.overrides_mut(|o| o.robots.remove(&host));
    }

    /// Puts a hand-made document at this path (with query) of a host, in front of whatever the seed has there.
    pub fn set_document(&self, host: u64, path: &str, reply: Reply) {
        self.overrides_mut(|o| o.documents.insert((host, path.to_owned()), reply));
    }

    /// Takes a hand-made document away again.
    pub fn clear_document(&self, host: u64, path: &str) {
        self.overrides_mut(|o| o.documents.remove(&(host, path.to_owned())));
    }

    pub(crate) fn document(&self, host: u64, path: &str) -> Option<Reply> {
        let overrides = self.overrides.read().unwrap_or_else(PoisonError::into_inner);
        if overrides.documents.is_empty() {
            return None;
        }
        overrides.documents.get(&(host, path.to_owned())).cloned()
    }

    pub(crate) fn robots_override(&self, host: u64) -> Option<Reply> {
        self.overrides.read().unwrap_or_else(PoisonError::into_inner).robots.get(&host).cloned()
    }

    fn overrides_mut<T>(&self, change: impl FnOnce(&mut Overrides) -> T) {
        change(&mut self.overrides.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn draw(&self, purpose: Purpose, a: u64, b: u64) -> u64 {
        mix(self.config.seed, purpose, a, b)
    }

    /// A host by popularity.
    pub(crate) fn popular_host(&self, dice: &mut Dice) -> u64 {
        self.laws.hosts.rank(dice, self.config.hosts, self.laws.hosts_floor)
    }

    /// A page by popularity, on a host that has so many.
    pub(crate) fn popular_page(&self, dice: &mut Dice, pages: u64) -> u64 {
        let law = &self.laws.pages;
        let floor = if pages == self.config.pages { self.laws.pages_floor } else { law.floor(pages) };
        law.rank(dice, pages, floor)
    }

    /// Children per page in the tree that makes every page reachable from `/`.
    pub(crate) fn page_arity(&self) -> u64 {
        u64::from(self.config.links / 5).clamp(2, 8)
    }

    /// Children per host in the tree that makes every host reachable from host 0; none when no page links abroad.
    pub(crate) fn host_arity(&self) -> u64 {
        if self.config.foreign_share == 0.0 {
            return 0;
        }
        ((f64::from(self.config.links) * self.config.foreign_share) as u64).clamp(2, 8)
    }

    fn is_leaf(&self, host: u64, page: u64) -> bool {
        page * self.page_arity() + 1 >= self.pages_of(host)
    }

    /// One page in every block may be repeated elsewhere. It writes all its links in absolute form, so that its body
    /// means the same at any address.
    fn original_of(&self, host: u64, block: u64) -> u64 {
        let first = block * ORIGINAL_BLOCK;
        let length = ORIGINAL_BLOCK.min(self.pages_of(host).saturating_sub(first)).max(1);
        first + self.draw(Purpose::Original, host, block) % length
    }

    pub(crate) fn is_original(&self, host: u64, page: u64) -> bool {
        self.config.duplicate_share > 0.0 && self.original_of(host, page / ORIGINAL_BLOCK) == page
    }

    pub(crate) fn put_host_name(&self, host: u64, out: &mut Vec<u8>) {
        match &self.config.naming {
            Naming::Loopback => {
                for (i, octet) in self.address(host).octets().into_iter().enumerate() {
                    if i > 0 {
                        out.push(b'.');
                    }
                    put_number(out, u64::from(octet));
                }
            }
            Naming::Names { suffix, hosts_per_domain } => {
                out.push(b'h');
                put_number(out, host);
                if let Some(domain) = host.checked_div(*hosts_per_domain) {
                    out.extend_from_slice(b".d");
                    put_number(out, domain);
                }
                out.push(b'.');
                out.extend_from_slice(suffix.as_bytes());
            }
        }
    }

    /// Name and port, as after `//` in a URL.
    pub(crate) fn put_authority(&self, host: u64, out: &mut Vec<u8>) {
        self.put_host_name(host, out);
        let (port, usual) = if self.config.https { (self.config.tls_port, 443) } else { (self.config.port, 80) };
        if port != 0 && port != usual {
            out.push(b':');
            put_number(out, u64::from(port));
        }
    }

    pub(crate) fn put_origin(&self, host: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.config.https { b"https://" } else { b"http://" });
        self.put_authority(host, out);
    }
}

/// Whether an address belongs to 127/8, in IPv4 or mapped into IPv6.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

const LOOPBACK_NET: u64 = 0x7F00_0000;
const ORIGINAL_BLOCK: u64 = 32;

/// Reads `h17` as 17: no leading zeros, no signs.
fn numbered(label: &str, letter: u8) -> Option<u64> {
    let (first, digits) = label.as_bytes().split_first()?;
    if first.to_ascii_lowercase() != letter || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    label[1..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(change: fn(&mut WebConfig)) -> Web {
        let mut config = WebConfig { hosts: 500, ..WebConfig::default() };
        change(&mut config);
        Web::new(config).unwrap()
    }

    #[test]
    fn names_are_read_back() {
        let schemes: [fn(&mut WebConfig); 3] = [
            |_| {},
            |c| c.naming = Naming::Loopback,
            |c| c.naming = Naming::Names { suffix: "test".into(), hosts_per_domain: 4 },
        ];
        for change in schemes {
            let web = web(change);
            for host in [0, 1, 7, 254, 255, 256, 499] {
                let name = web.host_name(host);
                assert_eq!(web.host_index(&name), Some(host), "{name}");
                assert_eq!(web.host_index(&format!("{}:8080", name.to_uppercase())), Some(host), "{name}");
                assert_eq!(web.host_index(&format!("{name}.")), Some(host), "{name}");
            }
            assert_eq!(web.host_index(&web.host_name(500)), None, "there are 500 hosts");
        }
        let web = web(|_| {});
        for name in ["", "sim.test", ".sim.test", "h.sim.test", "h01.sim.test", "h1.d0.sim.test", "xh1.sim.test", "ü"]
        {
            assert_eq!(web.host_index(name), None, "{name}");
        }
    }

    #[test]
    fn a_huge_web_needs_no_table() {
        let web = web(|c| c.hosts = 100_000_000);
        let last = web.hosts() - 1;
        assert_eq!(web.url(last, 0), "http://h99999999.sim.test/");
        assert!(web.pages_of(last) >= 1);
        assert!(!web.links(last, 0).is_empty());
    }

    #[test]
    fn host_sizes_follow_a_power_law_with_the_mean_asked_for() {
        let web = web(|c| c.hosts = 20_000);
        let sizes: Vec<u64> = (0..web.hosts()).map(|h| web.pages_of(h)).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!((40.0..60.0).contains(&mean), "{mean}");
        assert!(sizes.iter().max() > Some(&1_000), "some hosts are large");
        let exact = Web::new(WebConfig::plain(3, 7)).unwrap();
        assert!((0..3).all(|h| exact.pages_of(h) == 7));
    }

    #[test]
    fn latency_is_per_host_and_within_bounds() {
        let web = web(|c| {
            c.latency = config::Latency { min_ms: 5, max_ms: 50, slow_share: 0.1, slow_ms: 400 };
        });
        let all: Vec<u64> = (0..500).map(|h| web.latency_ms(h)).collect();
        let slow = all.iter().filter(|&&ms| ms == 400).count();
        assert!((25..80).contains(&slow), "{slow}");
        assert!(all.iter().all(|&ms| (5..=50).contains(&ms) || ms == 400));
    }

    #[test]
    fn hosts_spread_over_addresses() {
        let web = web(|c| c.addresses = 10);
        let mut used: Vec<Ipv4Addr> = (0..500).map(|h| web.address(h)).collect();
        used.sort();
        used.dedup();
        assert_eq!(used.len(), 10);
        assert!(used.iter().all(|a| a.is_loopback()));
    }

    #[test]
    fn originals_are_never_duplicates() {
        let web = web(|c| c.duplicate_share = 0.5);
        let mut twins = 0;
        for host in 0..50 {
            for page in 0..web.pages_of(host) {
                if let Some(original) = web.twin(host, page) {
                    twins += 1;
                    assert!(original.page < web.pages_of(original.host));
                    assert_eq!(web.twin(original.host, original.page), None);
                }
            }
        }
        assert!(twins > 100, "{twins}");
    }
}
