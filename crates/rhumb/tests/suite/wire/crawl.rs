//! The program itself among all of these hosts.

use std::collections::BTreeMap;

use rhumb_core::record::Record;
use rhumb_sim::{Server, ServerConfig, Web, WebConfig};

use super::*;
use crate::common::{Place, json, records, rhumb, run_within};

const SETTINGS: &str = r#"
[crawl]
scope = "any"

[politeness]
delay = "20ms"
per_ip = 0
attempts = 2
host_failures = 3
failure_pause = "20ms"
backoff_first = "20ms"

[fetch]
tls = "700ms"
head = "700ms"
rate_window = "700ms"

[dns]
waits = ["150ms", "300ms"]
tcp = "300ms"
"#;

#[test]
fn a_crawl_comes_through() {
    let hostile =
        HostileServer::start(HostileConfig { tls_port: Some(0), ..HostileConfig::default() }).expect("server");
    let dns_config = rhumb_sim::DnsConfig { others: Some(hostile.names()), ..rhumb_sim::DnsConfig::default() };
    let any = "127.0.0.1:0".parse().expect("address");
    let config = ServerConfig {
        listen: "127.0.3.1:0".parse().expect("address"),
        dns: Some(any),
        dns_config,
        ..ServerConfig::default()
    };
    let server = Server::start(Web::new(WebConfig::plain(3, 8)).expect("web"), config).expect("server");
    let place = Place::new();
    let authority = place.file("authority.pem", &hostile.ca_pem().expect("TLS is served"));
    let net = format!("[net]\nallow = [\"127.1.0.0/16\", \"127.0.3.1\"]\nauthorities = {authority:?}\n");
    let settings = place.file("settings.toml", &format!("{SETTINGS}{net}"));
    let kinds = || [Group::Tls, Group::Http2, Group::Dns].into_iter().flat_map(of_group);

    let mut command = rhumb();
    command.args(["crawl", "--json", "--max-time", "40s", "--dir"]).arg(&place.dir);
    command.args(["--dns", &server.dns_addr().expect("DNS is served").to_string(), "--config"]).arg(settings);
    command.args((0..3).map(|host| server.web().url(host, 0)));
    command.args(kinds().flat_map(|kind| kind.seeds(hostile.place())));
    let status = json(&run_within(&mut command, Duration::from_secs(60)), 0);

    let mut ends = BTreeMap::new();
    for record in records(&place.dir) {
        match record {
            Record::Visited(v) if v.purpose.is_page() && !v.retry => {
                ends.insert(v.entry.url.to_string(), (v.outcome, v.truncated, v.detail.to_string()));
            }
            Record::Dropped { entry, outcome, .. } => {
                ends.insert(entry.url.to_string(), (outcome, false, String::new()));
            }
            _ => {}
        }
    }
    let mut complaints = Vec::new();
    let requests = hostile.requests();
    for kind in kinds() {
        for (url, end) in kind.expected(hostile.place()) {
            match ends.get(&url) {
                Some((outcome, cut, detail))
                    if (*outcome, *cut) == (end.outcome, end.cut) && detail.contains(end.detail) => {}
                other => complaints.push(format!("{}: {url} ended as {other:?}, not as {end:?}", kind.name)),
            }
        }
        let asked = requests.get(kind.name).copied().unwrap_or(0);
        if asked > kind.requests_max {
            complaints.push(format!("{}: {asked} requests, more than {}", kind.name, kind.requests_max));
        }
    }
    complaints.extend(hostile.dials().iter().map(|dial| format!("dialled {}", dial.address)));
    complaints.extend(hostile.taken().iter().filter(|(_, bytes)| **bytes > 32 << 20).map(|t| format!("{t:?}")));
    assert!(complaints.is_empty(), "{}\n{status}", complaints.join("\n"));
    assert_eq!(server.log().iter().filter(|e| e.path != "/robots.txt").count(), 24, "the others' pages");
}
