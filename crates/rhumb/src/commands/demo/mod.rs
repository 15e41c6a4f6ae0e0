//! `rhumb demo`: a built-in web on loopback, hostile hosts included, crawled at a demo's pace, and what came out of it;
//! then a page to search it with ([`search`]).

mod hostile;
mod search;

use std::path::PathBuf;

use anyhow::{Context, Result};
use rhumb_core::filter::Scope;
use rhumb_sim::hostile::NETWORK;
use rhumb_sim::{DnsConfig, HostileConfig, HostileServer, Latency, Server, ServerConfig, Web, WebConfig};

use super::crawl::{Plan, seed};
use crate::cli::DemoArgs;
use crate::config::Config;
use crate::display::{self, Figures};
use crate::units::Span;
use crate::{Exit, out, usage};

const HOSTS: u64 = 24;
const PAGES: u64 = 16;
/// Whatever the hostile hosts come up with, a demonstration ends.
const DEMO_MS_MAX: u64 = 25_000;

/// Serves, crawls, shows.
pub fn run(args: &DemoArgs, as_json: bool) -> Result<Exit> {
    if let Some(dir) = &args.dir
        && (dir.is_file() || dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()))
    {
        return Err(usage(format!("{} exists already; name a new directory", dir.display())));
    }
    let latency = Latency { min_ms: 1, max_ms: 8, slow_share: 0.0, slow_ms: 0 };
    let web = WebConfig {
        seed: args.seed,
        hosts: HOSTS,
        pages: PAGES,
        pages_exact: true,
        latency,
        crawl_delay_share: 0.0,
        unavailable_share: 0.0,
        ..WebConfig::default()
    };
    let web = Web::new(web).context("make the synthetic web")?;
    // Not where everybody's own machine is: the hostile hosts lead there, and must not be followed.
    let good = "127.2.0.1:0".parse().context("an address")?;
    let any = "127.0.0.1:0".parse().context("an address")?;
    let foes = HostileServer::start(HostileConfig { tls_port: Some(0), ..HostileConfig::default() });
    let foes = foes.context("start the hostile web")?;
    let dns_config = DnsConfig { others: Some(foes.names()), ..DnsConfig::default() };
    let server = ServerConfig { listen: good, dns: Some(any), dns_config, ..ServerConfig::default() };
    let server = Server::start(web, server).context("start the synthetic web")?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => new_directory()?,
    };
    let mut config = Config::default();
    config.crawl.scope = Scope::Any;
    config.politeness.delay = Span(std::time::Duration::from_millis(300));
    config.politeness.per_ip = 0;
    // Only where the two webs live: the redirects to "this machine" lead elsewhere.
    config.net.allow = vec!["127.2.0.1".to_string(), NETWORK.to_string()];
    config.dns.servers = server.dns_addr().into_iter().collect();
    impatient(&mut config);
    let first = server.web().url(0, 0);
    if !as_json {
        let bad = hostile::kinds().len();
        out::note(&format!(
            "A web of {HOSTS} hosts is up on loopback, and {bad} hostile ones beside it; crawling them from"
        ));
        out::note(&format!("{first} into {}.", dir.display()));
    }
    let mut seeds = vec![seed(&first)?];
    for kind in hostile::kinds() {
        for url in kind.seeds(foes.place()) {
            seeds.push(seed(&url)?);
        }
    }
    let plan = Plan::new(dir.clone(), config, seeds);
    let (end, status) = plan.carry_out(!as_json)?;
    let rows = hostile::rows(&dir, &foes)?;
    if as_json {
        let mut all = serde_json::to_value(&status)?;
        all["hostile"] = serde_json::to_value(&rows)?;
        let server = search::start(args, &dir, end)?;
        if let Some(server) = &server {
            all["search"] = search::check(server, &first)?;
        }
        out::json(&all)?;
        return search::stay(args, server);
    }
    let shown = out::shell(&dir);
    out::line(&display::summary(&Figures::of(&status)?))?;
    out::line(&format!("\n{}", hostile::table(&rows)))?;
    let (dials, leaks) = (foes.dials().len(), foes.leaks().len());
    out::line(&format!("  Forbidden addresses dialled: {dials}; cookies and credentials given away: {leaks}."))?;
    let archive = std::fs::read_dir(dir.join("archive")).into_iter().flatten().flatten().map(|e| e.path());
    let archive = archive.filter(|p| p.extension().is_some_and(|e| e == "gz")).min();
    out::line("\nWhat came out, and what to try next:")?;
    out::line(&format!("  the visit log, the crawl's truth    ls {shown}/log"))?;
    if let Some(file) = archive {
        out::line(&format!("  the pages, as WARC                  rhumb warc ls {}", out::shell(&file)))?;
        out::line(&format!("  is the archive sound?               rhumb warc check {shown}"))?;
        out::line(&format!("  their text and links, line by line  rhumb export {shown} --format jsonl -"))?;
    }
    out::line(&format!("  who links to the front page?        rhumb links {shown} --to {first} --anchors"))?;
    out::line(&format!("  the pages that matter most          rhumb graph rank {shown}"))?;
    out::line(&format!("  searching and walking in a browser  rhumb serve {shown}"))?;
    out::line(&format!("  the story of one page               rhumb explain {shown} {first}"))?;
    out::line(&format!("  the figures again                   rhumb status {shown}"))?;
    out::line(&format!("  what was learned of the traps       rhumb traps {shown}"))?;
    out::line("  a web of your own to crawl          rhumb sim serve --hosts 100 --pages 50 --dns 127.0.0.1:5353")?;
    out::line("  a real site, politely               rhumb crawl https://example.org/ --limit 100")?;
    let server = search::start(args, &dir, end)?;
    if let Some(server) = &server {
        let found = search::check(server, &first)?;
        out::line(&search::told(&found, search::stays(args)))?;
    }
    search::stay(args, server)
}

/// Short patience, so that hosts that never answer are done with in seconds.
fn impatient(config: &mut Config) {
    let ms = |ms| Span(std::time::Duration::from_millis(ms));
    let (p, f) = (&mut config.politeness, &mut config.fetch);
    (p.delay_factor, p.host_failures, p.failure_pause) = (2.0, 3, ms(100));
    (p.backoff_first, p.backoff_max, p.retry_after_max, p.attempts_rate_limited) = (ms(500), ms(1_000), ms(1_000), 3);
    (f.tls, f.head, f.rate_window, f.total) = (ms(1_000), ms(1_000), ms(1_000), ms(8_000));
    (config.dns.waits, config.dns.tcp) = (vec![ms(500), ms(1_000)], ms(1_000));
    config.crawl.max_time = Some(ms(DEMO_MS_MAX));
}

fn new_directory() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 0..10_000 {
        let dir = base.join(format!("rhumb-demo-{}-{n}", std::process::id()));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("make {}", dir.display())),
        }
    }
    anyhow::bail!("no free name for a directory in {}", base.display())
}
