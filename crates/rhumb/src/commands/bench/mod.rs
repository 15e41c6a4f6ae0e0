//! `rhumb bench`: figures of parts of the program, in processor time.

mod crawl;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rhumb_core::frontier::{Frontier, FrontierConfig, Next};
use rhumb_core::outcome::Outcome;
use rhumb_core::priority::{Prioritizer, Random};
use rhumb_core::sieve::{Offered, Sieve, SieveConfig};
use rhumb_core::url::{Fingerprint, Url};
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
            with_directory(dir.as_deref(), |dir| sieve(*urls, memory.0 as usize, dir))?
        }
        BenchCommand::Frontier { urls, hosts, dir } => {
            with_directory(dir.as_deref(), |dir| frontier(*urls, *hosts, dir))?
        }
        BenchCommand::Crawl(args) => return crawl::run(args, as_json),
        BenchCommand::CrawlOne { spec } => return crawl::run_one(spec),
    };
    if as_json {
        out::json(&figures)?;
    } else {
        print(&figures)?;
    }
    Ok(Exit::Done)
}

fn print(figures: &Value) -> Result<()> {
    for (name, value) in figures.as_object().into_iter().flatten() {
        out::line(&format!("  {name:<28} {}", round(value)))?;
    }
    Ok(())
}

fn round(value: &Value) -> String {
    match value.as_f64() {
        Some(x) if x.fract() != 0.0 && x.abs() < 100.0 => format!("{x:.3}"),
        Some(x) if x.fract() != 0.0 => format!("{x:.0}"),
        _ => value.to_string(),
    }
}

/// Runs in the given directory or in a temporary one that is removed afterwards.
fn with_directory<T>(dir: Option<&Path>, f: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
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

/// Offers five times as many URLs as there are: each fifth is new, the others repeat any earlier one. Every URL must come
/// through exactly once.
fn sieve(urls: u64, memory: usize, dir: &Path) -> Result<Value> {
    let config = SieveConfig {
        bloom_bytes_max: memory / 2,
        recent_keys: (memory / 64 / 8).next_power_of_two(),
        fresh_keys_max: memory / 8 / 16,
        pending_bytes_max: memory / 4,
    };
    let mut sieve = Sieve::new(RealDisk::new(dir), config)?;
    let mut through = vec![0u64; urls.div_ceil(64) as usize];
    let mut random = Random::new(1);
    let (mut known, mut checks, mut twice) = (0u64, 0u64, 0u64);
    let mut longest = Duration::ZERO;
    let mut marks = Vec::new();
    let (mut mark_cpu, mut mark_checks) = (cpu_seconds(), 0);
    let start = mark_cpu;
    let mut note = |n: u64| {
        let (word, bit) = ((n / 64) as usize, 1 << (n % 64));
        twice += u64::from(through[word] & bit != 0);
        through[word] |= bit;
    };
    while known < urls || sieve.has_pending() {
        let n = if known < urls && (known == 0 || random.next().is_multiple_of(5)) {
            known += 1;
            known - 1
        } else {
            random.next() % known
        };
        let begun = Instant::now();
        let offered = sieve.offer(Fingerprint(mix(n)), |entry| {
            entry.extend_from_slice(b"http://host.example/a/path/of/usual/length/");
            entry.extend_from_slice(&n.to_le_bytes());
        });
        if offered == Offered::New {
            note(n);
        }
        if sieve.needs_flush() || known == urls {
            sieve.flush(|_, entry| {
                let tail: [u8; 8] = entry[entry.len() - 8..].try_into().unwrap_or_default();
                note(u64::from_le_bytes(tail));
                Ok(())
            })?;
        }
        longest = longest.max(begun.elapsed());
        checks += 1;
        if known % (urls / 10).max(1) == 0 && marks.len() < (known / (urls / 10).max(1)) as usize {
            let cpu = cpu_seconds();
            marks.push(
                json!({"urls": known, "ns_per_check": (cpu - mark_cpu) * 1e9 / (checks - mark_checks).max(1) as f64}),
            );
            (mark_cpu, mark_checks) = (cpu, checks);
        }
    }
    let cpu = cpu_seconds() - start;
    let lost = urls - through.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
    let (false_positives, expected_error) = sieve.false_positives();
    Ok(json!({
        "urls": urls, "checks": checks, "checks_per_cpu_second": checks as f64 / cpu, "lost": lost, "twice": twice,
        "bloom_false_positives": false_positives, "bloom_error_expected": expected_error,
        "disk_bytes_per_url": disk_bytes(dir) as f64 / urls as f64, "longest_pause_ms": longest.as_secs_f64() * 1e3,
        "peak_rss_bytes": status::peak_rss_bytes(), "marks": marks,
    }))
}

/// Fingerprints that look like hashes.
fn mix(n: u64) -> u64 {
    Random::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next()
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
