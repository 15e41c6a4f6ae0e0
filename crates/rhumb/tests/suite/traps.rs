//! Sites that make up URLs without end: the honest pages are all fetched, the rest is held back, and rules say why.

use std::collections::{BTreeMap, BTreeSet};

use rhumb_sim::hostile::{Group, HostileConfig, HostileServer, Kind, kinds};
use rhumb_sim::{DnsConfig, Server, ServerConfig, Web, WebConfig};
use serde_json::Value;

use super::common::{Place, json, records, rhumb, run};

struct Hostile {
    web: HostileServer,
    names: Server,
}

fn serve() -> Hostile {
    let web = HostileServer::start(HostileConfig::default()).expect("hostile server");
    let any = "127.0.0.1:0".parse().expect("address");
    let dns_config = DnsConfig { others: Some(web.names()), ..DnsConfig::default() };
    let config = ServerConfig { listen: any, dns: Some(any), dns_config, ..ServerConfig::default() };
    let names = Server::start(Web::new(WebConfig::default()).expect("web"), config).expect("server");
    Hostile { web, names }
}

fn home(hostile: &Hostile, kind: &Kind) -> String {
    format!("http://{}:{}/", kind.host(), hostile.web.place().port)
}

fn crawl(hostile: &Hostile, dir: &std::path::Path, more: &[&str]) -> std::process::Command {
    let mut command = rhumb();
    let dns = hostile.names.dns_addr().expect("DNS").to_string();
    command.args(["crawl", "--json", "--scope", "domain", "--delay", "0s", "--per-ip", "0", "--dir"]).arg(dir);
    command.args(["--dns", &dns, "--allow-net", "127.0.0.0/16"]).args(more);
    command
}

#[test]
fn look() {
    let hostile = serve();
    let place = Place::new();
    let kinds: Vec<&Kind> = kinds().filter(|k| k.group == Group::Traps).collect();
    let seeds: Vec<String> = kinds.iter().flat_map(|k| k.seeds(hostile.web.place())).collect();
    let mut command = crawl(&hostile, &place.dir, &["--limit", "20000", "--max-time", "60s"]);
    let status = json(&run(command.args(&seeds)), 0);
    println!("{status:#}");
    let mut fetched: BTreeMap<String, u64> = BTreeMap::new();
    for record in records(&place.dir) {
        if let rhumb_core::record::Record::Visited(v) = record {
            *fetched.entry(v.entry.url.registrable_domain().to_string()).or_default() += 1;
        }
    }
    println!("{fetched:#?}");
    let rules = json(&run(rhumb().args(["traps", "--json"]).arg(&place.dir)), 0);
    for rule in rules.as_array().unwrap() {
        println!(
            "{} {} {} saved {} explored {} surprises {}",
            rule["number"], rule["state"], rule["rule"], rule["saved"], rule["explored"], rule["surprises"]
        );
    }
    let _ = BTreeSet::<Value>::new;
    panic!("look");
}
