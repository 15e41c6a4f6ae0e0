//! `rhumb demo`: a built-in web on loopback, crawled politely at a demo's pace, and what came out of it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use rhumb_core::filter::Scope;
use rhumb_sim::{Latency, Server, ServerConfig, Web, WebConfig};

use super::crawl::{Plan, seed};
use crate::cli::DemoArgs;
use crate::config::Config;
use crate::display::{self, Figures};
use crate::units::Span;
use crate::{Exit, out, usage};

const HOSTS: u64 = 24;
const PAGES: u64 = 16;

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
    let any = "127.0.0.1:0".parse().context("an address")?;
    let server = ServerConfig { listen: any, dns: Some(any), ..ServerConfig::default() };
    let server = Server::start(web, server).context("start the synthetic web")?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => new_directory()?,
    };
    let mut config = Config::default();
    config.crawl.scope = Scope::Any;
    config.politeness.delay = Span(std::time::Duration::from_millis(300));
    config.politeness.per_ip = 0;
    config.net.allow = vec!["127.0.0.0/8".to_string()];
    config.dns.servers = server.dns_addr().into_iter().collect();
    let first = server.web().url(0, 0);
    if !as_json {
        out::note(&format!("A web of {HOSTS} hosts is up on loopback; crawling it from {first}"));
        out::note(&format!("into {}.", dir.display()));
    }
    let plan = Plan::new(dir.clone(), config, vec![seed(&first)?]);
    let (_, status) = plan.carry_out(!as_json)?;
    if as_json {
        out::json(&status)?;
        return Ok(Exit::Done);
    }
    let shown = out::shell(&dir);
    out::line(&display::summary(&Figures::of(&status)?))?;
    let archive = std::fs::read_dir(dir.join("archive")).into_iter().flatten().flatten().map(|e| e.path());
    let archive = archive.filter(|p| p.extension().is_some_and(|e| e == "gz")).min();
    out::line("\nWhat came out, and what to try next:")?;
    out::line(&format!("  the visit log, the crawl's truth    ls {shown}/log"))?;
    if let Some(file) = archive {
        out::line(&format!("  the pages, as WARC                  rhumb warc ls {}", out::shell(&file)))?;
        out::line(&format!("  is the archive sound?               rhumb warc check {shown}"))?;
    }
    out::line(&format!("  the story of one page               rhumb explain {shown} {first}"))?;
    out::line(&format!("  the figures again                   rhumb status {shown}"))?;
    out::line("  a web of your own to crawl          rhumb sim serve --hosts 100 --pages 50 --dns 127.0.0.1:5353")?;
    out::line("  a real site, politely               rhumb crawl https://example.org/ --limit 100")?;
    Ok(Exit::Done)
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
