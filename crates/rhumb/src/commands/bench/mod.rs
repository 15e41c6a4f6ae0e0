//! `rhumb bench`: figures of parts of the program, in processor time.

mod sieve;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rhumb_core::frontier::{Frontier, FrontierConfig, Next};
use rhumb_core::outcome::Outcome;
use rhumb_core::priority::{Prioritizer, Random};
use rhumb_core::url::Url;
use rhumb_core::visit::{Entry, Purpose, VisitRecord};
use rhumb_crawl::{dns, status};
use rhumb_store::Timestamp;
use rhumb_store::codec::Take;
use rhumb_store::disk::RealDisk;
use serde_json::{Value, json};

use crate::cli::BenchCommand;
use crate::{Exit, out};

/// Runs one bench and prints its figures.
pub fn run(command: &BenchCommand, as_json: bool) -> Result<Exit> {
    let figures = match command {
        BenchCommand::Dns { server, names, in_flight } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("start the runtime")?;
            let f = runtime.block_on(dns::bench(*server, *names, *in_flight)).context("resolve names")?;
            json!({
                "names": f.names, "failed": f.failed,
                "uncached_per_cpu_second": f.uncached_per_cpu_second, "cached_per_cpu_second": f.cached_per_cpu_second,
            })
        }
        BenchCommand::Sieve { urls, memory, dir } => {
            with_directory(dir.as_deref(), |dir| sieve::run(*urls, memory.0 as usize, dir))?
        }
        BenchCommand::Frontier { urls, hosts, dir } => {
            with_directory(dir.as_deref(), |dir| frontier(*urls, *hosts, dir))?
        }
    };
    if as_json {
        out::json(&figures)?;
    } else {
        for (name, value) in figures.as_object().into_iter().flatten() {
            out::line(&format!("  {name:<28} {}", round(value)))?;
        }
    }
    Ok(Exit::Done)
}

fn round(value: &Value) -> String {
    match value.as_f64() {
        Some(x) if x.fract() != 0.0 && x.abs() < 100.0 => format!("{x:.3}"),
        Some(x) if x.fract() != 0.0 => format!("{x:.0}"),
        _ => value.to_string(),
    }
}

/// Runs in the given directory or in a temporary one that is removed afterwards.
fn with_directory(dir: Option<&Path>, f: impl FnOnce(&Path) -> Result<Value>) -> Result<Value> {
    let temporary = std::env::temp_dir().join(format!("rhumb-bench-{}", std::process::id()));
    let place = dir.unwrap_or(&temporary);
    std::fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
    let done = f(place);
    if dir.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    done
}

fn cpu_seconds() -> f64 {
    status::cpu_ms() as f64 / 1000.0
}

/// Bytes of all files below a directory.
fn disk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { disk_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}

/// Admits all URLs while visiting one for each two admitted, in virtual time, then visits the rest of a tenth.
fn frontier(urls: u64, hosts: u64, dir: &Path) -> Result<Value> {
    let config = FrontierConfig { back_queues: 768, delay_ms_min: 1_000, per_address: 0, ..FrontierConfig::default() };
    let disk = RealDisk::new(dir);
    let mut frontier = Frontier::new(disk.clone(), config.clone(), Prioritizer::default(), 1)?;
    let mut random = Random::new(2);
    let mut now = Timestamp(1_000_000);
    let (mut visits, mut operations) = (0u64, 0u64);
    let start = cpu_seconds();
    let mut rss = Vec::new();
    for i in 0..urls {
        let host = random.next() % hosts;
        let url = Url::from_canonical(&format!("http://h{host}.example/some/path/page-{i}.html")).context("a URL")?;
        frontier.admit(&Entry::new(url, (i % 6) as u32))?;
        operations += 1;
        if i % 2 == 0 {
            visits += u64::from(step(&mut frontier, &mut now)?);
        }
        if i % (urls / 10).max(1) == 0 {
            rss.push(status::rss_bytes());
        }
    }
    let cpu = cpu_seconds() - start;
    let begun = cpu_seconds();
    let mut body = Vec::new();
    frontier.save(&mut body)?;
    let checkpoint_cpu = cpu_seconds() - begun;
    drop(frontier);
    let begun = Instant::now();
    let mut again = Frontier::new(disk, config, Prioritizer::default(), 1)?;
    again.load(&mut Take::new(&body)).map_err(|m| anyhow::anyhow!("{m:?}"))?;
    ensure!(step(&mut again, &mut now)?, "a restored frontier must have work");
    Ok(json!({
        "urls": urls, "hosts": hosts, "visits": visits, "operations_per_cpu_second": (operations + 2 * visits) as f64 / cpu,
        "checkpoint_bytes": body.len(), "checkpoint_cpu_seconds": checkpoint_cpu, "restart_seconds": begun.elapsed().as_secs_f64(),
        "peak_rss_bytes": status::peak_rss_bytes(), "rss_bytes_by_tenth": rss, "disk_bytes": disk_bytes(dir),
    }))
}

/// One visit from beginning to end; false if none is to be had.
fn step(frontier: &mut Frontier, now: &mut Timestamp) -> Result<bool> {
    let address: Arc<[IpAddr]> = Arc::from([IpAddr::from([192, 0, 2, 1])]);
    for _ in 0..1_000 {
        for host in frontier.take_unresolved() {
            frontier.resolved(&host, Ok((address.clone(), Timestamp(u64::MAX))), *now);
        }
        match frontier.next_visit(*now)? {
            Next::Visit(visit) => {
                let robots = matches!(visit.purpose, Purpose::Robots { .. });
                let ended = now.plus_ms(50);
                let mut record = VisitRecord::bare(visit.entry, visit.purpose, *now, ended, Outcome::Ok);
                record.status = if robots { 404 } else { 200 };
                record.outcome = if robots { Outcome::NotFound } else { Outcome::Ok };
                frontier.connection_left(&visit.host, false, ended);
                frontier.finish(&record)?;
                if !robots {
                    return Ok(true);
                }
            }
            Next::Drop(entry, _) => frontier.dropped_in_log(&entry),
            Next::WaitUntil(at) if at.0 < u64::MAX => *now = at.max(*now),
            Next::WaitUntil(_) => {}
            Next::Idle => return Ok(false),
        }
    }
    Ok(false)
}
