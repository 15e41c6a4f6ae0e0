//! Sites that make up URLs without end: the honest pages are all fetched, the rest is set aside, rules say why, and the user can
//! undo them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rhumb_core::record::Record;
use rhumb_sim::hostile::{Group, Kind, kinds};
use rhumb_sim::{DnsConfig, HostileConfig, HostileServer, Server, ServerConfig, Web, WebConfig};
use serde_json::Value;

use crate::common::{Place, ends, json, records, rhumb, run};

struct Traps {
    web: HostileServer,
    names: Server,
}

impl Traps {
    fn serve() -> Traps {
        let web = HostileServer::start(HostileConfig::default()).expect("hostile server");
        let any = "127.0.0.1:0".parse().expect("address");
        let dns_config = DnsConfig { others: Some(web.names()), ..DnsConfig::default() };
        let config = ServerConfig { listen: any, dns: Some(any), dns_config, ..ServerConfig::default() };
        let names = Server::start(Web::new(WebConfig::default()).expect("web"), config).expect("server");
        Traps { web, names }
    }

    fn crawl(&self, dir: &Path, more: &[&str]) -> Command {
        let mut command = rhumb();
        let dns = self.names.dns_addr().expect("DNS").to_string();
        command.args(["crawl", "--json", "--scope", "domain", "--per-ip", "0", "--max-time", "90s", "--dir"]).arg(dir);
        command.args(["--dns", &dns, "--allow-net", "127.1.0.0/16"]).args(more);
        command
    }

    fn seeds(&self, kinds: &[&Kind]) -> Vec<String> {
        kinds.iter().flat_map(|kind| kind.seeds(self.web.place())).collect()
    }
}

fn rules(dir: &Path) -> Vec<Value> {
    let answer = json(&run(rhumb().args(["traps", "--json"]).arg(dir)), 0);
    answer.as_array().expect("a list").clone()
}

fn requests_by_domain(dir: &Path) -> BTreeMap<String, u64> {
    let mut requests = BTreeMap::new();
    for record in records(dir) {
        if let Record::Visited(visit) = record {
            *requests.entry(visit.entry.url.registrable_domain().to_string()).or_default() += 1;
        }
    }
    requests
}

/// Traps whose pages have nothing to say are known by what comes back, long before a budget is used up.
const LEARNED: [&str; 9] =
    ["calendar", "session-query", "session-path", "facets", "wildcard", "mirrors", "soft-404", "error-200", "deeper"];

#[test]
fn honest_pages_are_fetched_and_the_rest_is_set_aside() {
    let traps = Traps::serve();
    let place = Place::new();
    let kinds: Vec<&Kind> = kinds().filter(|k| k.group == Group::Traps && LEARNED.contains(&k.name)).collect();
    assert_eq!(kinds.len(), LEARNED.len());
    let mut command = traps.crawl(&place.dir, &["--delay", "0s", "--limit", "20000"]);
    let status = json(&run(command.args(traps.seeds(&kinds))), 0);
    assert_eq!(status["state"], "finished");
    let aside = status["urls_aside"].as_u64().expect("a number");
    let ended: BTreeMap<String, &str> = ends(&place.dir).into_iter().collect();
    let requests = requests_by_domain(&place.dir);
    let rules = rules(&place.dir);
    for kind in kinds {
        for (url, end) in kind.expected(traps.web.place()) {
            // Where the sub-domain does not matter, a page is fetched from one of them.
            let (_, path) = url.split_once(&kind.host()).expect("a URL of the kind");
            let same = |u: &&String| u.split_once(&kind.host()).is_some_and(|(_, p)| p == path);
            let outcomes: Vec<&str> = ended.keys().filter(same).map(|u| ended[u]).collect();
            assert!(outcomes.contains(&end.outcome.name()), "{url}: {outcomes:?}");
        }
        let own: Vec<&Value> =
            rules.iter().filter(|r| r["rule"].as_str().is_some_and(|r| r.contains(&kind.host()))).collect();
        // The copy of a page on another host leads no further, which leaves nothing to be learned of mirrors.
        let learned = own.iter().any(|r| r["state"] == "active" && r["pages"].as_u64() >= Some(8));
        assert!(learned || kind.name == "mirrors", "{}: {own:#?}", kind.name);
        let spent = requests[&kind.host()];
        // Facets are not all nonsense: a few hundred of the combinations have pages of their own.
        let most = if kind.name == "facets" { 800 } else { 260 };
        assert!(spent <= most, "{} got {spent} requests: {own:#?}", kind.name);
    }
    let saved: u64 = rules.iter().filter_map(|r| r["saved"].as_u64()).sum();
    assert!(aside > 500 && saved >= aside, "{aside} set aside, {saved} saved");
}

#[test]
fn a_rule_is_shown_explained_and_undone() {
    let traps = Traps::serve();
    let place = Place::new();
    let kind = kinds().find(|k| k.name == "session-query").expect("a kind");
    let mut command = traps.crawl(&place.dir, &["--delay", "0s"]);
    let before = json(&run(command.args(traps.seeds(&[kind]))), 0);
    let rule = rules(&place.dir).into_iter().find(|r| r["kind"] == "parameter").expect("a rule about a parameter");
    assert!(rule["samples"].as_array().is_some_and(|s| s.len() >= 2), "{rule}");

    let shown = run(rhumb().arg("traps").arg(&place.dir));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("does not matter") && shown.contains("saved"), "{shown}");

    // A URL that was found and is not in the log as visited: the rule is why.
    let visited: BTreeMap<String, &str> = ends(&place.dir).into_iter().collect();
    let found = records(&place.dir).into_iter().filter_map(|r| if let Record::Visited(v) = r { Some(v) } else { None });
    let held =
        found.flat_map(|v| v.links).find(|l| l.wanted && !visited.contains_key(l.url.as_str())).expect("one set aside");
    let story = json(&run(rhumb().args(["explain", "--json"]).arg(&place.dir).arg(held.url.as_str())), 0);
    assert_eq!(story["state"], "set aside", "{story}");
    assert!(story["rule"]["rule"].as_str().is_some_and(|r| r.contains("does not matter")), "{story}");

    let number = rule["number"].to_string();
    let wrong = run(rhumb().arg("traps").arg(&place.dir).args(["--undo", "999"]));
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    let undone = json(&run(rhumb().args(["traps", "--json", "--undo", &number]).arg(&place.dir)), 0);
    let is_undone = |rules: &[Value]| rules.iter().any(|r| r["number"] == rule["number"] && r["state"] == "undone");
    assert!(is_undone(undone.as_array().expect("a list")), "{undone}");
    let again = run(rhumb().arg("traps").arg(&place.dir).args(["--undo", &number]));
    assert_eq!(again.status.code(), Some(2), "a rule is undone once");

    // What it held back is fetched after all.
    let limit = (before["pages"].as_u64().expect("a number") + 40).to_string();
    let after = json(&run(&mut traps.crawl(&place.dir, &["--delay", "0s", "--limit", &limit])), 0);
    assert_eq!(after["pages"].to_string(), limit, "{after}");
    assert!(is_undone(&rules(&place.dir)));
}

#[test]
fn a_rule_is_undone_while_the_crawl_runs() {
    let traps = Traps::serve();
    let place = Place::new();
    let named = |name: &str| kinds().find(|k| k.name == name).expect("a kind");
    // The farm keeps the crawl busy meanwhile: there is always something new on it.
    let seeds = traps.seeds(&[named("session-path"), named("farm")]);
    let pace = place.file("pace.toml", "[politeness]\ndelay = \"20ms\"\ndelay_factor = 0.0\n");
    let mut crawl =
        traps.crawl(&place.dir, &["--delay", "20ms"]).arg("--config").arg(pace).args(seeds).spawn().expect("start");
    let deadline = Instant::now() + Duration::from_secs(50);
    let rule = loop {
        assert!(Instant::now() < deadline, "no rule was learned in time");
        assert!(crawl.try_wait().expect("wait").is_none(), "the crawl goes on");
        let asked = run(rhumb().args(["traps", "--json"]).arg(&place.dir));
        let rules: Vec<Value> = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        match rules.into_iter().find(|r| r["state"] == "active") {
            Some(rule) => break rule,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let undone =
        json(&run(rhumb().args(["traps", "--json", "--undo", &rule["number"].to_string()]).arg(&place.dir)), 0);
    let found = undone.as_array().into_iter().flatten().find(|r| r["number"] == rule["number"]);
    assert_eq!(found.map(|r| &r["state"]), Some(&Value::from("undone")));
    let _ = crawl.kill();
    let _ = crawl.wait();
    let of_log =
        records(&place.dir).into_iter().any(|r| matches!(r, Record::Rule(rhumb_core::traps::RuleChange::Undone(_), _)));
    assert!(of_log, "the log knows it");
    assert!(rules(&place.dir).iter().any(|r| r["number"] == rule["number"] && r["state"] == "undone"));
}
