//! What kind of web: sizes, shares, names. Every share is a probability in `[0, 1]`.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The settings of a synthetic web. Two webs of equal settings are equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Everything that is left to chance follows from this number.
    pub seed: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Mean number of pages of a host.
    pub pages: u64,
    /// Every host has exactly `pages` pages, instead of a number from a power law.
    pub pages_exact: bool,
    /// Tail exponent of the power law of host sizes; above 1, smaller is more unequal.
    pub host_size_alpha: f64,
    /// Mean size of a page's markup; single pages have half to one and a half times as much.
    pub page_bytes: usize,
    /// Mean number of links of a page; single pages follow a power law.
    pub links: u32,
    /// Share of links that go to other hosts.
    pub foreign_share: f64,
    /// Exponent of the popularity of hosts as link targets (host 0 is the most popular).
    pub host_zipf: f64,
    /// Exponent of the popularity of pages within a host (`/` is the most popular).
    pub page_zipf: f64,
    /// How long hosts take to answer.
    pub latency: Latency,
    /// Share of links to URLs that answer 500 or 503.
    pub error_share: f64,
    /// Share of those that answer 503 with `Retry-After: 1`.
    pub unavailable_share: f64,
    /// Share of links to URLs that answer 404 or 410.
    pub not_found_share: f64,
    /// Share of links that go through a redirect.
    pub redirect_share: f64,
    /// Share of pages that have the body of another page, byte for byte (only leaves of the page tree qualify).
    pub duplicate_share: f64,
    /// Share of links, beside those that guarantee reachability, marked `rel="nofollow"`.
    pub nofollow_share: f64,
    /// Share of hosts whose `/robots.txt` is a 404.
    pub no_robots_share: f64,
    /// Share of hosts (of those with robots.txt) that close `/private/` and print versions to everybody.
    pub disallow_share: f64,
    /// Share of links, on those hosts, that lead into what is closed.
    pub private_share: f64,
    /// Share of hosts (of those with robots.txt) that ask for a `Crawl-delay`.
    pub crawl_delay_share: f64,
    /// The longest such delay; hosts ask for a quarter, a half or all of it.
    pub crawl_delay_ms_max: u64,
    /// Typical time between two changes of a page, in seconds; 0 = pages never change. Single pages change four times
    /// as often down to sixteen times more rarely.
    pub change_period_s: u64,
    /// Compress bodies with gzip for those who accept it.
    pub gzip: bool,
    /// How hosts are called.
    pub naming: Naming,
    /// Number of loopback addresses that named hosts are spread over; 1 = all at `address`.
    pub addresses: u32,
    /// The address of named hosts while `addresses` is 1. A server sets it to the one it listens on.
    pub address: Ipv4Addr,
    /// The port in `http` URLs; 0 and 80 are not written. A server sets it to the one it listens on.
    pub port: u16,
    /// The port in `https` URLs; 0 and 443 are not written.
    pub tls_port: u16,
    /// Whether the web's own URLs are `https`.
    pub https: bool,
}

impl Default for WebConfig {
    fn default() -> Self {
        WebConfig {
            seed: 1,
            hosts: 100,
            pages: 50,
            pages_exact: false,
            host_size_alpha: 1.6,
            page_bytes: 10_000,
            links: 25,
            foreign_share: 0.2,
            host_zipf: 0.8,
            page_zipf: 0.8,
            latency: Latency::default(),
            error_share: 0.01,
            unavailable_share: 0.1,
            not_found_share: 0.02,
            redirect_share: 0.02,
            duplicate_share: 0.04,
            nofollow_share: 0.03,
            no_robots_share: 0.1,
            disallow_share: 0.5,
            private_share: 0.03,
            crawl_delay_share: 0.05,
            crawl_delay_ms_max: 2_000,
            change_period_s: 0,
            gzip: false,
            naming: Naming::default(),
            addresses: 1,
            address: Ipv4Addr::LOCALHOST,
            port: 0,
            tls_port: 0,
            https: false,
        }
    }
}

impl WebConfig {
    /// A web without surprises, for measuring: every host has exactly `pages` pages, nothing fails, redirects, repeats
    /// or is closed, and every answer comes at once.
    pub fn plain(hosts: u64, pages: u64) -> Self {
        WebConfig {
            hosts,
            pages,
            pages_exact: true,
            error_share: 0.0,
            not_found_share: 0.0,
            redirect_share: 0.0,
            duplicate_share: 0.0,
            nofollow_share: 0.0,
            disallow_share: 0.0,
            crawl_delay_share: 0.0,
            ..WebConfig::default()
        }
    }

    /// Refuses settings that describe no web.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let bad = |setting, reason: &str| Err(ConfigError { setting, reason: reason.to_owned() });
        if self.hosts == 0 {
            return bad("hosts", "must be at least 1");
        }
        if self.naming == Naming::Loopback && self.hosts > LOOPBACK_HOSTS_MAX {
            return bad("hosts", "loopback naming has room for 16,777,213 hosts");
        }
        if self.hosts > 1 << 40 || self.pages > 1 << 40 {
            return bad("hosts", "hosts and pages must be at most 2^40");
        }
        if self.pages == 0 {
            return bad("pages", "must be at least 1");
        }
        if self.addresses == 0 || u64::from(self.addresses) > LOOPBACK_HOSTS_MAX - 256 {
            return bad("addresses", "must be between 1 and 16,776,957");
        }
        if !(self.host_size_alpha > 1.0 && self.host_size_alpha.is_finite()) {
            return bad("host_size_alpha", "must be above 1");
        }
        for (setting, exponent) in [("host_zipf", self.host_zipf), ("page_zipf", self.page_zipf)] {
            if !(0.0..=4.0).contains(&exponent) {
                return bad(setting, "must be between 0 and 4");
            }
        }
        for (setting, share) in [
            ("foreign_share", self.foreign_share),
            ("latency.slow_share", self.latency.slow_share),
            ("error_share", self.error_share),
            ("unavailable_share", self.unavailable_share),
            ("not_found_share", self.not_found_share),
            ("redirect_share", self.redirect_share),
            ("duplicate_share", self.duplicate_share),
            ("nofollow_share", self.nofollow_share),
            ("no_robots_share", self.no_robots_share),
            ("disallow_share", self.disallow_share),
            ("private_share", self.private_share),
            ("crawl_delay_share", self.crawl_delay_share),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return bad(setting, "must be between 0 and 1");
            }
        }
        if self.latency.min_ms > self.latency.max_ms {
            return bad("latency", "min_ms must not exceed max_ms");
        }
        if let Naming::Names { suffix, .. } = &self.naming {
            let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
            if suffix.len() > 200
                || suffix.split('.').any(|l| l.is_empty() || l.len() > 63)
                || !suffix.chars().all(fine)
            {
                return bad("naming.suffix", "must be a host name in lower case, such as sim.test");
            }
        }
        Ok(())
    }
}

/// 127.0.0.1 up to 127.255.255.253: the whole of 127/8 but its network and broadcast addresses, and one to spare.
const LOOPBACK_HOSTS_MAX: u64 = (1 << 24) - 3;

/// How long hosts take to answer: a fixed time per host.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// The quickest host.
    pub min_ms: u64,
    /// The slowest ordinary host; most are nearer to `min_ms`.
    pub max_ms: u64,
    /// Share of hosts that are slow.
    pub slow_share: f64,
    /// What slow hosts take.
    pub slow_ms: u64,
}

/// How hosts are called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Naming {
    /// `h{index}.{suffix}`; needs DNS, or a client that sends everything to one address.
    Names {
        /// What every name ends in.
        suffix: String,
        /// 0: all hosts are directly under the suffix. Otherwise so many hosts share a domain under it,
        /// `h{index}.d{index / n}.{suffix}`; with a top-level suffix such as `test`, that domain is registrable.
        hosts_per_domain: u64,
    },
    /// 127.0.0.1, 127.0.0.2, … as literal host names: no DNS needed.
    Loopback,
}

impl Default for Naming {
    fn default() -> Self {
        Naming::Names { suffix: "sim.test".to_owned(), hosts_per_domain: 0 }
    }
}

/// A setting that describes no web.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("synthetic web: {setting} {reason}")]
pub struct ConfigError {
    /// The offending setting.
    pub setting: &'static str,
    /// What it must be.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_webs_are_refused() {
        let check = |change: fn(&mut WebConfig), setting: &str| {
            let mut config = WebConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().setting, setting);
        };
        assert_eq!(WebConfig::default().check(), Ok(()));
        assert_eq!(WebConfig::plain(5, 5).check(), Ok(()));
        check(|c| c.hosts = 0, "hosts");
        check(|c| c.pages = 0, "pages");
        check(|c| c.error_share = 1.5, "error_share");
        check(|c| c.error_share = f64::NAN, "error_share");
        check(|c| c.host_size_alpha = 1.0, "host_size_alpha");
        check(|c| c.latency.min_ms = 1, "latency");
        check(|c| (c.naming, c.hosts) = (Naming::Loopback, 1 << 24), "hosts");
        check(|c| c.naming = Naming::Names { suffix: "a..b".into(), hosts_per_domain: 0 }, "naming.suffix");
    }
}
