//! What a look-up costs: `rhumb bench dns`.
//!
//! Judged by CPU time of this process, user and system, because machines are shared (DESIGN section 8). The server must
//! therefore run in another process. Read next: nothing; this is the end of the chapter.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::{DnsConfig, Resolver, Stats};

/// Clock ticks per second in `/proc`: fixed at 100 for user space on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct BenchFigures {
    /// Names asked for in each round.
    pub names: usize,
    /// Look-ups that did not end in an address, in both rounds.
    pub failed: usize,
    /// Names per second of CPU time when none is known.
    pub uncached_per_cpu_second: f64,
    /// Names per second of CPU time when all are known.
    pub cached_per_cpu_second: f64,
    /// Names per second of the clock when none is known.
    pub uncached_per_second: f64,
    /// Names per second of the clock when all are known.
    pub cached_per_second: f64,
    /// What the resolver counted.
    pub stats: Stats,
}

/// Looks up `names` different names under `suffix` at `server`, `in_flight` at a time, and then the same names again, in turn until
/// enough time has passed to be measured. Runs on the current tokio runtime; nothing else should run meanwhile.
pub async fn bench(server: SocketAddr, suffix: &str, names: usize, in_flight: usize) -> io::Result<BenchFigures> {
    let mut config = DnsConfig::with_servers(vec![server]);
    config.hosts_file = None;
    config.in_flight_max = in_flight.max(1);
    // Ample room: a name holds on to its place only while its shard has not filled a half.
    config.cache_entries_max = names.saturating_mul(4).max(1_024);
    let resolver = Resolver::new(config)?;
    // Ready-made, so that only the look-ups are measured.
    let list: Arc<[String]> = (0..names).map(|i| format!("h{i}.{suffix}")).collect();

    let uncached = round(&resolver, &list, in_flight.max(1)).await?;
    let mut cached = Round::default();
    while cached.lookups < names || (cached.cpu_s < 0.5 && names > 0) {
        let again = round(&resolver, &list, 1).await?;
        cached.lookups += again.lookups;
        cached.failed += again.failed;
        cached.cpu_s += again.cpu_s;
        cached.seconds += again.seconds;
    }
    let rate = |lookups: usize, seconds: f64| lookups as f64 / seconds.max(1.0 / TICKS_PER_SECOND);
    Ok(BenchFigures {
        names,
        failed: uncached.failed + cached.failed,
        uncached_per_cpu_second: rate(uncached.lookups, uncached.cpu_s),
        cached_per_cpu_second: rate(cached.lookups, cached.cpu_s),
        uncached_per_second: rate(uncached.lookups, uncached.seconds),
        cached_per_second: rate(cached.lookups, cached.seconds),
        stats: resolver.stats(),
    })
}

#[derive(Default)]
struct Round {
    lookups: usize,
    failed: usize,
    cpu_s: f64,
    seconds: f64,
}

/// Looks every name up once, by `workers` tasks that take them in turn.
async fn round(resolver: &Arc<Resolver>, names: &Arc<[String]>, workers: usize) -> io::Result<Round> {
    let next = Arc::new(AtomicUsize::new(0));
    let failed = Arc::new(AtomicUsize::new(0));
    let (began, cpu_before_s) = (Instant::now(), process_cpu_s()?);
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let (resolver, names) = (Arc::clone(resolver), Arc::clone(names));
            let (next, failed) = (Arc::clone(&next), Arc::clone(&failed));
            tokio::spawn(async move {
                while let Some(name) = names.get(next.fetch_add(1, Relaxed)) {
                    if resolver.lookup(name).await.is_err() {
                        failed.fetch_add(1, Relaxed);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.map_err(io::Error::other)?;
    }
    let cpu_s = process_cpu_s()? - cpu_before_s;
    Ok(Round { lookups: names.len(), failed: failed.load(Relaxed), cpu_s, seconds: began.elapsed().as_secs_f64() })
}

/// CPU seconds of this process so far, in user and system mode, in steps of a hundredth.
fn process_cpu_s() -> io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    cpu_ticks(&stat)
        .map(|ticks| ticks as f64 / TICKS_PER_SECOND)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "read CPU time of the process"))
}

/// Fields 14 and 15 of `/proc/self/stat`, counted after the program's name, which may hold spaces and brackets.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_odd_program_names() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks(""), None);
        assert_eq!(cpu_ticks("7 (x) S 1 2"), None);
    }
}
