//! Every mistake and attack that the hostile web knows, all at once, beside hosts that behave: each hostile host ends as its
//! kind says and costs no more than it may, nothing is dialled that must not be, memory stays within its setting, and the
//! others hardly notice.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_sim::hostile::{self, Kind};
use rhumb_sim::{HostileConfig, HostileServer, Latency, Server, ServerConfig, Web, WebConfig};
use serde_json::Value;

use crate::common::{Place, json, records, rhumb, run_within};

/// Short waits, so that hosts that never answer are done with in seconds. The registry's numbers of requests go with these attempts.
const SETTINGS: &str = r#"
[crawl]
scope = "any"
memory = "256MiB"

[politeness]
delay = "50ms"
delay_factor = 4.0
attempts = 3
attempts_rate_limited = 4
host_failures = 4
failure_pause = "50ms"
backoff_first = "100ms"
backoff_max = "1s"
retry_after_max = "1s"

[fetch]
connect = "2s"
tls = "800ms"
head = "800ms"
total = "4s"
rate_min = "1KiB"
rate_window = "800ms"
body_max = "8MiB"

[dns]
waits = ["300ms", "700ms"]
tcp = "500ms"

[net]
allow = ["127.1.0.0/16", "127.0.1.0/24"]
"#;

/// Addresses of the hosts that behave, in 127.0.1.0/24; the hostile ones have one each in 127.1.0.0/16, and no other may be
/// dialled.
const GOOD_ADDRESSES: u32 = 200;
/// Kinds that nothing holds back yet: sub-domains without end need a budget for the whole domain.
const PENDING: [&str; 1] = ["wildcard"];

const GOOD_HOSTS: u64 = 20;
const GOOD_PAGES: u64 = 24;
const MEMORY_BYTES: u64 = 256 << 20;

/// How one URL ended.
#[derive(Debug)]
struct Ended {
    outcome: &'static str,
    truncated: bool,
    detail: String,
}

/// One crawl and what the servers saw of it.
struct Outing {
    status: Value,
    ends: BTreeMap<String, Ended>,
    /// Visits that ended because an answer did not come in time, by URL.
    late: BTreeMap<String, u64>,
    /// From the first request to a host that behaves to the last one.
    good_s: f64,
    good_paths: BTreeMap<String, u64>,
    hostile: HostileServer,
}

fn outing(kinds: &[&Kind], more: &[&str]) -> Outing {
    let hostile =
        HostileServer::start(HostileConfig { tls_port: Some(0), ..HostileConfig::default() }).expect("server");
    let web = WebConfig {
        hosts: GOOD_HOSTS,
        pages: GOOD_PAGES,
        pages_exact: true,
        latency: Latency { min_ms: 1, max_ms: 4, slow_share: 0.0, slow_ms: 0 },
        crawl_delay_share: 0.0,
        unavailable_share: 0.0,
        addresses: GOOD_ADDRESSES,
        ..WebConfig::default()
    };
    let mut config = ServerConfig { all_loopback: true, ..ServerConfig::default() };
    config.dns = Some("127.0.0.1:0".parse().expect("address"));
    config.dns_config.others = Some(hostile.names());
    let server = Server::start(Web::new(web).expect("web"), config).expect("server");
    let place = Place::new();
    let authority = place.file("authority.pem", &hostile.ca_pem().expect("TLS is served"));
    let settings = place.file("settings.toml", &format!("{SETTINGS}authorities = {authority:?}\n"));
    let dns = server.dns_addr().expect("the server answers DNS").to_string();
    let mut command = rhumb();
    command.args(["crawl", "--json", "--max-time", "40s", "--dns", &dns, "--dir"]).arg(&place.dir);
    command.arg("--config").arg(settings).args(more);
    command.args((0..GOOD_HOSTS).map(|host| server.web().url(host, 0)));
    command.args(kinds.iter().flat_map(|kind| kind.seeds(hostile.place())));
    let output = run_within(&mut command, Duration::from_secs(90));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    let status = json(&output, 0);
    let log = server.log();
    let first = log.iter().map(|e| e.start_us).min().unwrap_or(0);
    let last = log.iter().map(|e| e.start_us).max().unwrap_or(0);
    let mut good_paths = BTreeMap::new();
    log.into_iter().for_each(|e| *good_paths.entry(format!("{}{}", e.host, e.path)).or_default() += 1);
    let (ends, late) = ends(&place.dir);
    Outing { status, ends, late, good_s: (last - first) as f64 / 1e6, good_paths, hostile }
}

fn ends(dir: &Path) -> (BTreeMap<String, Ended>, BTreeMap<String, u64>) {
    let (mut ends, mut late) = (BTreeMap::new(), BTreeMap::new());
    for record in records(dir) {
        match record {
            Record::Visited(v) => {
                let url = v.entry.url.to_string();
                if v.outcome == Outcome::HeadTimeout {
                    *late.entry(url.clone()).or_default() += 1;
                }
                if v.purpose.is_page() && !v.retry {
                    let (outcome, detail) = (v.outcome.name(), v.detail.to_string());
                    ends.insert(url, Ended { outcome, truncated: v.truncated, detail });
                }
            }
            Record::Dropped { entry, outcome, .. } => {
                let ended = Ended { outcome: outcome.name(), truncated: false, detail: String::new() };
                ends.insert(entry.url.to_string(), ended);
            }
            _ => {}
        }
    }
    (ends, late)
}

impl Outing {
    /// Whatever is not as the registry says.
    fn complaints(&self, kinds: &[&Kind]) -> Vec<String> {
        let mut all = Vec::new();
        let requests = self.hostile.requests();
        // A crowded machine may keep an answer waiting for longer than these settings allow. Then it is asked for again, as it
        // should be, and that is not held against the crawler.
        let late = |kind: &Kind| -> u64 {
            let expected = kind.ends.iter().any(|end| end.outcome == Outcome::HeadTimeout);
            let host = format!("//{}:", kind.host());
            let of_kind = self.late.iter().filter(|(url, _)| !expected && url.contains(&host));
            of_kind.map(|(_, count)| count).sum()
        };
        for kind in kinds {
            for (url, end) in kind.expected(self.hostile.place()) {
                let expected = (end.outcome.name(), end.cut);
                match self.ends.get(&url) {
                    None => all.push(format!("{}: {url} never ended; expected {expected:?}", kind.name)),
                    Some(e) if (e.outcome, e.truncated) != expected || !e.detail.contains(end.detail) => {
                        all.push(format!(
                            "{}: {url} ended as {e:?}; expected {expected:?} {:?}",
                            kind.name, end.detail
                        ));
                    }
                    Some(_) => {}
                }
            }
            let asked = requests.get(kind.name).copied().unwrap_or(0);
            if asked > kind.requests_max + late(kind) {
                all.push(format!("{}: {asked} requests, more than {}", kind.name, kind.requests_max));
            }
        }
        all.extend(self.hostile.dials().iter().map(|dial| format!("dialled {}", dial.address)));
        all.extend(self.hostile.leaks().iter().map(|leak| format!("told {}: {}", leak.host, leak.line)));
        let peak = self.status["peak_rss_bytes"].as_u64().unwrap_or(u64::MAX);
        if peak > MEMORY_BYTES {
            all.push(format!("{} MiB of memory, more than {}", peak >> 20, MEMORY_BYTES >> 20));
        }
        all
    }
}

#[test]
fn nothing_hostile_breaks_a_crawl() {
    let kinds: Vec<&Kind> = hostile::kinds().filter(|kind| !PENDING.contains(&kind.name)).collect();
    let alone = outing(&[], &[]);
    let beside = outing(&kinds, &[]);
    let complaints = beside.complaints(&kinds);
    println!("alone {:.2} s, beside {:.2} s", alone.good_s, beside.good_s);
    println!("{}", serde_json::to_string_pretty(&beside.status).expect("json"));
    println!("{:?}", beside.hostile.requests());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert_eq!(alone.good_paths, beside.good_paths);
    let bound = (1.5 * alone.good_s).max(alone.good_s + 3.0);
    assert!(beside.good_s <= bound, "{:.2} s beside hostile hosts, {:.2} s alone", beside.good_s, alone.good_s);
}
