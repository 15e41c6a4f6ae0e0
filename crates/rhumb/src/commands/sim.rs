//! `rhumb sim`: the synthetic web, served for people or crawled in virtual time.

use std::time::Instant;

use anyhow::{Context, Result};
use rhumb_crawl::status::{cpu_ms, peak_rss_bytes};
use rhumb_sim::hostile::{self, NETWORK};
use rhumb_sim::virtual_time::{self, SimConfig, SimError, Story};
use rhumb_sim::{
    HostileConfig, HostileServer, Latency, LogConfig, Naming, ServeArgs, Server, WebConfig, serve_blocking,
};

use crate::cli::{SimArgs, SimCommand, SimHostileArgs, SimRunArgs};
use crate::{Exit, out, usage};

/// Serves until interrupted, or plays histories in virtual time.
pub fn run(command: &SimCommand, as_json: bool) -> Result<Exit> {
    match command {
        SimCommand::Serve(args) => serve(args, as_json),
        SimCommand::Hostile(args) => serve_hostile(args, as_json),
        SimCommand::Run(args) => play(args, as_json),
    }
}

/// Plays one history after another. A broken promise is one line and the end.
fn play(args: &SimRunArgs, as_json: bool) -> Result<Exit> {
    if args.workers == 0 {
        return Err(usage("--workers must be at least 1"));
    }
    for seed in args.seed..args.seed.saturating_add(args.runs) {
        let config = SimConfig {
            seed,
            hosts: args.hosts,
            pages: args.pages,
            workers: args.workers,
            crashes: args.crashes,
            days: args.days,
            dir: args.dir.clone(),
            ..SimConfig::default()
        };
        if let Some(dir) = &args.dir {
            std::fs::create_dir(dir).with_context(|| format!("make {}", dir.display()))?;
        }
        let (cpu_before, began) = (cpu_ms(), Instant::now());
        let told = virtual_time::run(&config);
        let (cpu_s, wall_s) = ((cpu_ms() - cpu_before) as f64 / 1_000.0, began.elapsed().as_secs_f64());
        if let Some(dir) = &args.dir {
            std::fs::remove_dir_all(dir).with_context(|| format!("remove {}", dir.display()))?;
        }
        match told {
            Ok(story) if as_json => {
                let mut all = serde_json::to_value(&story)?;
                all["cpu_seconds"] = cpu_s.into();
                all["seconds"] = wall_s.into();
                all["peak_rss_bytes"] = peak_rss_bytes().into();
                out::json(&all)?;
            }
            Ok(story) => tell(&story, cpu_s, wall_s)?,
            Err(SimError::Config(e)) => return Err(usage(e.to_string())),
            Err(e) => {
                if as_json {
                    out::json(&serde_json::json!({ "seed": seed, "violation": e.to_string() }))?;
                } else {
                    out::line(&e.to_string())?;
                }
                return Ok(Exit::Look);
            }
        }
    }
    Ok(Exit::Done)
}

fn tell(story: &Story, cpu_s: f64, wall_s: f64) -> Result<()> {
    let Story { seed, hosts, web_pages, events, visits, robots, pages, urls, dropped, retries, .. } = story;
    let Story { crashes, torn, rebuilt, checkpoints, checks, digest, held, .. } = story;
    let days = story.virtual_ms as f64 / 86_400_000.0;
    let end = if story.finished { "nothing left to do" } else { "time is up" };
    out::line(&format!(
        "seed {seed}: {hosts} hosts, {web_pages} pages; {days:.2} virtual days, {end}\n  \
         {visits} visits ({robots} robots.txt, {retries} repeated), {pages} pages, {urls} URLs found, {dropped} given up, {held} held\n  \
         {crashes} crashes ({torn} in a write, {rebuilt} with the checkpoint damaged), {checkpoints} checkpoints\n  \
         {checks} checks, no promise broken; {events} events, {:.0} a CPU-second; {cpu_s:.1} CPU-s, {wall_s:.1} s, peak {} MiB\n  \
         digest {digest}",
        *events as f64 / cpu_s.max(0.001),
        peak_rss_bytes() >> 20,
    ))
}

fn serve_hostile(args: &SimHostileArgs, as_json: bool) -> Result<Exit> {
    let log = LogConfig { memory: false, file: args.log.clone() };
    let config = HostileConfig { port: args.port, tls_port: Some(args.tls_port), log };
    let foes = HostileServer::start(config).map_err(taken).context("serve the hostile web")?;
    if let (Some(file), Some(pem)) = (&args.ca, foes.ca_pem()) {
        std::fs::write(file, pem).with_context(|| format!("write {}", file.display()))?;
    }
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let mut serve = ServeArgs::new(args.hosts, 20, 1, any, Some(args.dns));
    serve.server.dns_config.others = Some(foes.names());
    serve_blocking(serve, |server| {
        // Whoever started this may have stopped reading; the web is served all the same.
        let _ = tell_hostile(args, &foes, server, as_json);
    })
    .map_err(taken)
    .context("serve the hostile web")?;
    Ok(Exit::Done)
}

/// Where the hostile web is, and how to crawl it.
fn tell_hostile(args: &SimHostileArgs, foes: &HostileServer, server: &Server, as_json: bool) -> Result<()> {
    let good = (0..server.web().hosts()).map(|host| server.web().url(host, 0));
    let seeds: Vec<String> = hostile::kinds().flat_map(|kind| kind.seeds(foes.place())).chain(good).collect();
    let dns = server.dns_addr().map(|a| a.to_string()).unwrap_or_default();
    if as_json {
        let kind = |k: &hostile::Kind| serde_json::json!({ "name": k.name, "group": k.group, "host": k.host(), "about": k.about });
        return out::json(&serde_json::json!({
            "dns": dns, "port": foes.place().port, "tls_port": foes.place().tls_port, "network": NETWORK, "seeds": seeds,
            "kinds": hostile::kinds().map(kind).collect::<Vec<_>>(),
        }));
    }
    if args.seeds {
        return out::line(&seeds.join("\n"));
    }
    for kind in hostile::kinds() {
        out::line(&format!("  {:<32} {}", kind.url("/", foes.place()).trim_end_matches('/'), kind.about))?;
    }
    out::line(&format!(
        "Serving {} hostile hosts and {} that behave; names are resolved by {dns}. Crawl one of them with:\n  \
         rhumb crawl {} --dns {dns} --allow-net {NETWORK} --delay 100ms\n--seeds prints all their addresses. Ctrl-C stops it.",
        hostile::kinds().count(),
        server.web().hosts(),
        seeds[0],
    ))
}

/// A port that is taken is the user's to change.
fn taken(e: std::io::Error) -> anyhow::Error {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, InvalidInput};
    if matches!(e.kind(), InvalidInput | AddrInUse | AddrNotAvailable) { usage(e.to_string()) } else { e.into() }
}

fn serve(args: &SimArgs, as_json: bool) -> Result<Exit> {
    let serve = serve_args(args);
    let mut trusted = Ok(());
    serve_blocking(serve, |server| {
        let web = server.web();
        let first = web.url(0, 0);
        if let (Some(file), Some(pem)) = (&args.ca, server.ca_pem()) {
            trusted = std::fs::write(file, pem).with_context(|| format!("write {}", file.display()));
        }
        let ready = serde_json::json!({
            "listen": server.addr(), "dns": server.dns_addr(), "tls": server.tls_addr(), "seed_url": first, "hosts": web.hosts(),
        });
        let dns = server.dns_addr().map(|a| format!(" --dns {a}")).unwrap_or_default();
        let told = if as_json {
            out::json(&ready)
        } else {
            out::line(&format!(
                "Serving {} hosts at {}. Crawl them with:\n  rhumb crawl {first}{dns} --allow-net 127.0.0.0/8 --scope any --delay 0s\nCtrl-C stops it.",
                web.hosts(),
                server.addr()
            ))
        };
        // Whoever started this may have stopped reading; the web is served all the same.
        let _ = told;
    })
    .map_err(taken)
    .context("serve the synthetic web")?;
    trusted?;
    Ok(Exit::Done)
}

fn serve_args(args: &SimArgs) -> ServeArgs {
    let mut serve = ServeArgs::new(args.hosts, args.pages, args.seed, args.listen, args.dns);
    if args.plain {
        serve.web = WebConfig { seed: args.seed, ..WebConfig::plain(args.hosts, args.pages) };
    }
    serve.web.pages_exact |= args.exact;
    if let Some(size) = args.page_size {
        serve.web.page_bytes = size.0 as usize;
    }
    if args.loopback {
        serve.web.naming = Naming::Loopback;
        serve.server.all_loopback = true;
    }
    serve.server.listen = args.listen;
    serve.server.tls = args.tls;
    serve.web.https = args.https;
    if let Some(ms) = args.latency_ms {
        serve.web.latency = Latency { min_ms: ms, max_ms: ms, ..Latency::default() };
    }
    serve.server.dns_config.delay_ms = args.dns_ms.unwrap_or(0);
    if args.no_keep_alive {
        (serve.server.keep_alive, serve.server.http2) = (false, false);
    }
    if let Some(file) = &args.log {
        serve.server.log = LogConfig { memory: false, file: Some(file.clone()) };
    }
    serve
}
