//! The frontier at size: URLs admitted and visited in virtual time, with checkpoints on the way and a restart at the end.

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
use rhumb_crawl::status;
use rhumb_store::Timestamp;
use rhumb_store::codec::Take;
use rhumb_store::disk::{Disk, RealDisk};
use serde_json::{Value, json};

use super::{cpu_seconds, disk_bytes};

/// A crawl writes a checkpoint each minute; here one comes after so much processor time.
const CHECKPOINT_CPU_SECONDS: f64 = 20.0;

/// Admits all URLs, on hosts drawn at random, and visits one for each `visit_every` admitted.
pub fn frontier(urls: u64, hosts: u64, visit_every: u64, memory: usize, dir: &Path) -> Result<Value> {
    let config = FrontierConfig { back_queues: 768, delay_ms_min: 1_000, per_address: 0, ..FrontierConfig::default() };
    let config = config.within(memory / 4);
    let disk = RealDisk::new(dir);
    disk.make_dir("state")?;
    let mut frontier = Frontier::new(disk.clone(), config.clone(), Prioritizer::default(), 1)?;
    let mut random = Random::new(2);
    let mut now = Timestamp(1_000_000);
    let (mut visits, mut robots) = (0u64, 0u64);
    let (start, mut marked, mut last_checkpoint) = (cpu_seconds(), cpu_seconds(), cpu_seconds());
    let (mut checkpoints, mut checkpoint_cpu, mut checkpoint_bytes) = (0u64, 0.0, 0);
    let mut marks = Vec::new();
    for i in 0..urls {
        let host = random.next() % hosts;
        let url = Url::from_canonical(&format!("http://h{host}.example/some/path/page-{i}.html")).context("a URL")?;
        frontier.admit(&Entry::new(url, (i % 6) as u32))?;
        if i % visit_every == 0 {
            visits += u64::from(step(&mut frontier, &mut now, &mut robots)?);
        }
        if i % 1024 == 0 {
            while let Some(work) = frontier.take_work() {
                frontier.finish_work(work.run()?);
            }
            let cpu = cpu_seconds();
            if cpu - last_checkpoint > CHECKPOINT_CPU_SECONDS {
                checkpoint_bytes = checkpoint(&mut frontier, &*disk)?.len();
                checkpoints += 1;
                last_checkpoint = cpu_seconds();
                checkpoint_cpu += last_checkpoint - cpu;
            }
        }
        if (i + 1) % (urls / 10).max(1) == 0 {
            let cpu = cpu_seconds();
            marks.push(json!({
                "urls": i + 1, "cpu_seconds": cpu - marked, "rss_bytes": status::rss_bytes(),
                "frontier_bytes": frontier.figures(now).memory_bytes,
            }));
            marked = cpu;
        }
    }
    let cpu = cpu_seconds() - start;
    let begun = cpu_seconds();
    let body = checkpoint(&mut frontier, &*disk)?;
    let last_checkpoint_cpu = cpu_seconds() - begun;
    let figures = frontier.figures(now);
    drop(frontier);
    let begun = Instant::now();
    let mut again = Frontier::new(disk, config, Prioritizer::default(), 1)?;
    again.load(&mut Take::new(&body))?;
    again.recover(now);
    ensure!(step(&mut again, &mut now, &mut robots)?, "a restored frontier must have work");
    let restart = begun.elapsed().as_secs_f64();
    let left = again.figures(now).urls_waiting;
    ensure!(left + 1 == figures.urls_waiting, "{} URLs waited, {left} are left after a visit", figures.urls_waiting);
    Ok(json!({
        "urls": urls, "hosts": hosts, "visits": visits, "robots_visits": robots, "urls_waiting": figures.urls_waiting,
        "hosts_known": figures.hosts,
        "operations_per_cpu_second": (urls + 2 * (visits + robots)) as f64 / cpu,
        "visits_per_cpu_second": visits as f64 / cpu, "cpu_seconds": cpu,
        "checkpoints": checkpoints, "checkpoint_cpu_share": checkpoint_cpu / cpu, "checkpoint_bytes": checkpoint_bytes,
        "last_checkpoint_cpu_seconds": last_checkpoint_cpu, "restart_seconds": restart,
        "peak_rss_bytes": status::peak_rss_bytes(), "disk_bytes": disk_bytes(dir), "marks": marks,
    }))
}

/// A checkpoint as the engine makes it, but for the log.
fn checkpoint(frontier: &mut Frontier, disk: &dyn Disk) -> Result<Vec<u8>> {
    let (mut body, mut unsynced) = (Vec::new(), Vec::new());
    frontier.save(&mut body, &mut unsynced)?;
    let garbage = frontier.take_garbage();
    unsynced.iter().try_for_each(|name| disk.open(name)?.sync())?;
    disk.replace("state/checkpoint", &body)?;
    garbage.iter().try_for_each(|name| disk.remove(name))?;
    Ok(body)
}

/// One visit from beginning to end; false if none is to be had.
fn step(frontier: &mut Frontier, now: &mut Timestamp, robots_visits: &mut u64) -> Result<bool> {
    let address: Arc<[IpAddr]> = Arc::from([IpAddr::from([192, 0, 2, 1])]);
    for _ in 0..1_000 {
        for host in frontier.take_unresolved() {
            frontier.resolved(&host, Ok((address.clone(), Timestamp(u64::MAX))), *now)?;
        }
        match frontier.next_visit(*now)? {
            Next::Visit(visit) => {
                let robots = matches!(visit.purpose, Purpose::Robots { .. });
                let ended = now.plus_ms(50);
                frontier.issued(&visit.host, *now)?;
                let mut record = VisitRecord::bare(visit.entry, visit.purpose, *now, ended, Outcome::Ok);
                record.status = if robots { 404 } else { 200 };
                record.outcome = if robots { Outcome::NotFound } else { Outcome::Ok };
                frontier.connection_left(&visit.host, false, ended);
                frontier.finish(&record, None)?;
                if !robots {
                    return Ok(true);
                }
                *robots_visits += 1;
            }
            Next::Drop(entry, _) => frontier.dropped_in_log(&entry)?,
            Next::Hold(host, hold) => frontier.held_in_log(&host, &hold)?,
            Next::WaitUntil(at) if at.0 < u64::MAX => *now = at.max(*now),
            Next::WaitUntil(_) => {}
            Next::Idle => return Ok(false),
        }
    }
    Ok(false)
}
