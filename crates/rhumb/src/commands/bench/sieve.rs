//! The URL-seen test at any size, against an exact oracle, its long work on two threads as in a crawl.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rhumb_core::priority::Random;
use rhumb_core::sieve::{Lane, Offered, Sieve, SieveConfig, SieveDone, SieveWork};
use rhumb_core::url::Fingerprint;
use rhumb_crawl::status;
use rhumb_store::codec::Take;
use rhumb_store::disk::{Disk, Overlay, RealDisk};
use serde_json::{Value, json};

use super::{cpu_seconds, disk_bytes};

/// URLs come in groups, as the links of a page do. A pause is that of the whole group.
const GROUP: usize = 64;
/// URLs let through at a time.
const LET_THROUGH: usize = 256;
/// Reading a thread's times costs as much as dozens of offers. What passes at most between two readings bounds the longest
/// pause from above.
const TIMES_READ_EVERY: Duration = Duration::from_millis(1);
/// Checks between checkpoints, which are what lets used files go.
const CHECKPOINT_CHECKS: u64 = 20_000_000;

/// Offers five times as many URLs as there are: each fifth is new, the others repeat any earlier one. Every URL must come
/// through exactly once.
pub fn run(urls: u64, memory: usize, dir: &Path) -> Result<Value> {
    let disk = RealDisk::new(dir);
    let config = SieveConfig::within(memory);
    let mut bench = Bench::new(Sieve::new(disk.clone(), config.clone())?, disk, dir, urls)?;
    let mut random = Random::new(1);
    let mut known = 0u64;
    let mut group = Vec::with_capacity(GROUP);
    let mut marks = Marks::default();
    let tenth = (urls / 10).max(1);
    let start = cpu_seconds();
    while known < urls {
        group.clear();
        while group.len() < GROUP && known < urls {
            let new = known == 0 || random.next().is_multiple_of(5);
            let n = if new { known } else { random.next() % known };
            known += u64::from(new);
            group.push((n, Fingerprint(mix(n))));
        }
        bench.offer_all(&group)?;
        if known / tenth > marks.values.len() as u64 {
            marks.add(known, bench.checks, bench.disk_bytes());
        }
    }
    bench.finish()?;
    let cpu = cpu_seconds() - start;
    let filter = bench.sieve.filter_figures();
    let disk_bytes_end = bench.checkpoint()?;
    let (oracle_bytes, lost) = (bench.through.len() * 8, bench.lost());
    let peak_rss = status::peak_rss_bytes();
    let [pause, pause_own, pause_cpu] = [bench.pause, bench.pause_own, bench.pause_cpu].map(|p| p.as_secs_f64() * 1e3);
    let [offers, finish, let_through, take] = bench.longest.map(|p| p.as_secs_f64() * 1e3);
    let restart = bench.restart(config, &group)?;
    Ok(json!({
        "urls": urls, "checks": bench.checks, "checks_per_cpu_second": bench.checks as f64 / cpu,
        "wall_seconds": bench.begun.elapsed().as_secs_f64(), "cpu_seconds_at_work": bench.lanes.cpu_seconds(),
        "lost": lost, "twice": bench.twice,
        "bloom_bytes": filter.bytes, "bloom_false_positives": filter.wrong,
        "bloom_error_measured": filter.wrong as f64 / filter.asked.max(1) as f64,
        "bloom_error_expected": filter.wrong_expected / filter.asked.max(1) as f64,
        "bloom_error_expected_at_end": filter.error_now,
        "disk_bytes_per_url": disk_bytes_end as f64 / urls as f64,
        "disk_bytes_per_url_peak": bench.disk_peak as f64 / urls as f64,
        "longest_pause_ms": pause, "longest_pause_ms_not_queued": pause_own, "longest_pause_ms_cpu": pause_cpu,
        "longest_pause_ms_by_part": {
            "offers": offers, "finish_work": finish, "let_through": let_through, "take_work": take,
        },
        "longest_push_back_ms": bench.waited.as_secs_f64() * 1e3,
        "checkpoint_ms_max": bench.saving.as_secs_f64() * 1e3,
        "restart": restart,
        "peak_rss_bytes": peak_rss, "oracle_bytes": oracle_bytes, "marks": marks.values,
    }))
}

struct Bench<'a> {
    sieve: Sieve,
    disk: Arc<dyn Disk>,
    dir: &'a Path,
    lanes: Lanes,
    /// One bit per URL.
    through: Vec<u64>,
    urls: u64,
    twice: u64,
    checks: u64,
    saved_at: u64,
    begun: Instant,
    pause: Duration,
    pause_cpu: Duration,
    pause_own: Duration,
    /// Of offers, taking results in, letting through, handing work out.
    longest: [Duration; 4],
    times_read_at: Instant,
    times: ThreadTimes,
    waited: Duration,
    saving: Duration,
    disk_peak: u64,
}

impl<'a> Bench<'a> {
    fn new(sieve: Sieve, disk: Arc<dyn Disk>, dir: &'a Path, urls: u64) -> Result<Bench<'a>> {
        Ok(Bench {
            sieve,
            disk,
            dir,
            lanes: Lanes::start()?,
            through: vec![0; urls.div_ceil(64) as usize],
            urls,
            twice: 0,
            checks: 0,
            saved_at: 0,
            begun: Instant::now(),
            pause: Duration::ZERO,
            pause_cpu: Duration::ZERO,
            pause_own: Duration::ZERO,
            longest: [Duration::ZERO; 4],
            times_read_at: Instant::now(),
            times: ThreadTimes::read(),
            waited: Duration::ZERO,
            saving: Duration::ZERO,
            disk_peak: 0,
        })
    }

    /// Offers a group, takes in what work came to, and hands out more.
    fn offer_all(&mut self, group: &[(u64, Fingerprint)]) -> Result<()> {
        let begun = Instant::now();
        group.iter().for_each(|&(_, fingerprint)| self.sieve.expect(fingerprint));
        for &(n, fingerprint) in group {
            let offered = self.sieve.offer(fingerprint, |entry| {
                entry.extend_from_slice(b"http://host.example/a/path/of/usual/length/");
                entry.extend_from_slice(&n.to_le_bytes());
            })?;
            if offered == Offered::New {
                note(&mut self.through, &mut self.twice, n);
            }
        }
        let offered = Instant::now();
        self.longest[0] = self.longest[0].max(offered - begun);
        self.step()?;
        let ended = Instant::now();
        self.pause = self.pause.max(ended - begun);
        if ended - self.times_read_at >= TIMES_READ_EVERY {
            let times = ThreadTimes::read();
            let queued = times.queued.saturating_sub(self.times.queued);
            self.pause_cpu = self.pause_cpu.max(times.cpu.saturating_sub(self.times.cpu));
            self.pause_own = self.pause_own.max((ended - self.times_read_at).saturating_sub(queued));
            (self.times_read_at, self.times) = (ended, times);
        }
        self.checks += group.len() as u64;
        if self.sieve.must_wait() {
            let begun = Instant::now();
            while self.sieve.must_wait() {
                self.step()?;
                thread::sleep(Duration::from_micros(200));
            }
            self.waited = self.waited.max(begun.elapsed());
            self.read_times();
        }
        if self.checks - self.saved_at >= CHECKPOINT_CHECKS {
            self.checkpoint()?;
            self.read_times();
        }
        Ok(())
    }

    /// What was done up to now is no pause of an offer.
    fn read_times(&mut self) {
        (self.times_read_at, self.times) = (Instant::now(), ThreadTimes::read());
    }

    fn step(&mut self) -> Result<()> {
        let begun = Instant::now();
        while let Some(done) = self.lanes.take()? {
            self.sieve.finish_work(done)?;
        }
        let finished = Instant::now();
        let (through, twice) = (&mut self.through, &mut self.twice);
        self.sieve.let_through(LET_THROUGH, |_, entry| {
            let tail = entry.last_chunk().copied().unwrap_or_default();
            note(through, twice, u64::from_le_bytes(tail));
            Ok(())
        })?;
        let passed = Instant::now();
        while let Some(work) = self.sieve.take_work() {
            self.lanes.give(work)?;
        }
        for (longest, part) in self.longest[1..].iter_mut().zip([finished - begun, passed - finished, passed.elapsed()])
        {
            *longest = part.max(*longest);
        }
        Ok(())
    }

    /// Until nothing waits and nothing is left to do.
    fn finish(&mut self) -> Result<()> {
        while self.sieve.has_pending() || self.sieve.is_working() || self.sieve.has_work() {
            self.sieve.want_check();
            self.step()?;
            if self.sieve.is_working() {
                thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }

    /// Lets used files go as a crawl does; the checkpoint itself is not written. Returns the bytes left on disk.
    fn checkpoint(&mut self) -> Result<u64> {
        self.disk_bytes();
        let begun = Instant::now();
        let mut body = Vec::new();
        self.sieve.save(&mut body, &mut Vec::new());
        self.saving = self.saving.max(begun.elapsed());
        for name in self.sieve.take_garbage() {
            self.disk.remove(&name)?;
        }
        self.saved_at = self.checks;
        Ok(self.disk_bytes())
    }

    fn disk_bytes(&mut self) -> u64 {
        let bytes = disk_bytes(self.dir);
        self.disk_peak = self.disk_peak.max(bytes);
        bytes
    }

    fn lost(&self) -> u64 {
        self.urls - self.through.iter().map(|w| u64::from(w.count_ones())).sum::<u64>()
    }

    /// From a checkpoint to the first offers, and until the filter serves again. Nothing may be let through anew.
    fn restart(&mut self, config: SieveConfig, group: &[(u64, Fingerprint)]) -> Result<Value> {
        let begun = Instant::now();
        let mut body = Vec::new();
        self.sieve.save(&mut body, &mut Vec::new());
        let saved = begun.elapsed();
        // The old one makes room before the new one is there.
        self.sieve = Sieve::new(Overlay::new(self.disk.clone()), SieveConfig::within(1 << 20))?;
        let begun = Instant::now();
        self.sieve = Sieve::load(self.disk.clone(), config, &mut Take::new(&body))?;
        let twice = self.twice;
        self.offer_all(group)?;
        let loaded = begun.elapsed();
        self.finish()?;
        ensure!(self.twice == twice, "a URL went through again after a restart");
        Ok(json!({
            "save_ms": saved.as_secs_f64() * 1e3, "checkpoint_bytes": body.len(), "load_ms": loaded.as_secs_f64() * 1e3,
            "filter_seconds": begun.elapsed().as_secs_f64(),
        }))
    }
}

fn note(through: &mut [u64], twice: &mut u64, n: u64) {
    let (word, bit) = ((n / 64) as usize, 1 << (n % 64));
    *twice += u64::from(through[word] & bit != 0);
    through[word] |= bit;
}

/// One thread for each lane of the sieve's work.
struct Lanes {
    front: Sender<SieveWork>,
    back: Sender<SieveWork>,
    done: Receiver<(Lane, rhumb_store::Result<SieveDone>, Duration)>,
    cpu: [Duration; 2],
    _threads: [JoinHandle<()>; 2],
}

impl Lanes {
    fn start() -> Result<Lanes> {
        let (sender, done) = channel();
        let lane = |name: &str| -> Result<(Sender<SieveWork>, JoinHandle<()>)> {
            let (give, take) = channel::<SieveWork>();
            let sender = sender.clone();
            let thread = thread::Builder::new().name(name.to_string()).spawn(move || {
                for work in take {
                    let (lane, begun) = (work.lane(), ThreadTimes::read().cpu);
                    let done = work.run();
                    if sender.send((lane, done, ThreadTimes::read().cpu.saturating_sub(begun))).is_err() {
                        return;
                    }
                }
            });
            Ok((give, thread.context("start a thread")?))
        };
        let ((front, one), (back, two)) = (lane("sieve-front")?, lane("sieve-back")?);
        Ok(Lanes { front, back, done, cpu: [Duration::ZERO; 2], _threads: [one, two] })
    }

    fn give(&self, work: SieveWork) -> Result<()> {
        let lane = if work.lane() == Lane::Front { &self.front } else { &self.back };
        lane.send(work).map_err(|_| anyhow!("a thread of the sieve is gone"))
    }

    fn take(&mut self) -> Result<Option<SieveDone>> {
        let Ok((lane, done, cpu)) = self.done.try_recv() else {
            return Ok(None);
        };
        self.cpu[usize::from(lane == Lane::Back)] += cpu;
        Ok(Some(done?))
    }

    fn cpu_seconds(&self) -> [f64; 2] {
        self.cpu.map(|c| c.as_secs_f64())
    }
}

#[derive(Default)]
struct Marks {
    values: Vec<Value>,
    cpu: f64,
    checks: u64,
}

impl Marks {
    fn add(&mut self, urls: u64, checks: u64, disk_bytes: u64) {
        let cpu = cpu_seconds();
        let ns = (cpu - self.cpu) * 1e9 / (checks - self.checks).max(1) as f64;
        self.values.push(json!({
            "urls": urls, "ns_per_check": ns, "rss_bytes": status::rss_bytes(), "disk_bytes": disk_bytes,
        }));
        (self.cpu, self.checks) = (cpu, checks);
    }
}

/// What a thread's time went to. A pause by the clock on a busy machine is mostly somebody else's turn.
#[derive(Clone, Copy)]
struct ThreadTimes {
    cpu: Duration,
    /// Ready to run, but not running.
    queued: Duration,
}

impl ThreadTimes {
    fn read() -> ThreadTimes {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut times = stat.split_whitespace().map(|n| Duration::from_nanos(n.parse().unwrap_or(0)));
        ThreadTimes { cpu: times.next().unwrap_or_default(), queued: times.next().unwrap_or_default() }
    }
}

/// Fingerprints that look like hashes.
fn mix(n: u64) -> u64 {
    Random::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next()
}
