//! The real program, killed with SIGKILL at random instants and started again with the same command, until it is done.
//!
//! `RHUMB_KILLS=n` kills it more often, `RHUMB_SEED=s` at other instants. Instants fall into start-up and replay (the first
//! milliseconds of a process), into the crawl with its checkpoints (one every 40 ms), and, because a finished crawl
//! is resumed and killed too, into the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rhumb_sim::{Latency, LogView, Scope, Server, WebConfig};

use super::{Dice, Facts, archive_files, from_env};
use crate::common::{Place, crawl, json, rhumb, run_within, serve};

const DELAY_MS: u64 = 60;

fn web() -> WebConfig {
    WebConfig {
        hosts: 30,
        pages: 12,
        pages_exact: true,
        page_bytes: 4_000,
        links: 12,
        latency: Latency { min_ms: 0, max_ms: 15, slow_share: 0.1, slow_ms: 30 },
        error_share: 0.01,
        unavailable_share: 0.0,
        not_found_share: 0.02,
        redirect_share: 0.04,
        duplicate_share: 0.1,
        private_share: 0.03,
        crawl_delay_share: 0.2,
        crawl_delay_ms_max: 400,
        ..WebConfig::default()
    }
}

fn command(server: &Server, dir: &Path, config: &Path) -> Command {
    let mut command = crawl(server, dir, &["--scope", "any", "--delay", "60ms", "--per-ip", "0", "--workers", "16"]);
    command.arg("--config").arg(config).args(seeds(server));
    command
}

/// Every front page, so that a crawl killed in its first moments has more than one host to go on with.
fn seeds(server: &Server) -> Vec<String> {
    (0..server.web().hosts()).map(|host| server.web().url(host, 0)).collect()
}

/// Small files, little memory and frequent checkpoints, so that kills meet them all, and the merges they cause.
fn small_files(place: &Place) -> PathBuf {
    let path = place.dir.with_extension("toml");
    let text = "[crawl]\nmemory = \"1MiB\"\n[storage]\ncheckpoint_every = \"40ms\"\nsync_every = \"30ms\"\nlog_segment = \"64KiB\"\narchive_file = \"256KiB\"\n";
    std::fs::write(&path, text).expect("write the configuration");
    path
}

pub(super) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// Runs the command and kills it after `wait`, unless it is done before: then its exit code.
pub(super) fn run_and_kill(command: &mut Command, wait: Duration) -> Result<Option<i32>, u64> {
    let mut child = command.spawn().expect("start the program");
    let until = Instant::now() + wait;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            let output = child.wait_with_output().expect("output");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("panicked"), "{stderr}");
            assert!(matches!(status.code(), Some(0)), "{status}: {stderr}");
            return Ok(status.code());
        }
        if Instant::now() >= until {
            child.kill().expect("kill");
            let output = child.wait_with_output().expect("wait");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("panicked"), "{stderr}");
            return Err(unix_ms());
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

#[test]
fn killed_at_random_instants() {
    let (kills_wanted, seed) = (from_env("RHUMB_KILLS", 25), from_env("RHUMB_SEED", 1));
    println!("to repeat: RHUMB_KILLS={kills_wanted} RHUMB_SEED={seed}");
    let mut dice = Dice(seed);

    let server = serve(web());
    let calm = Place::new();
    let config = small_files(&calm);
    let status = json(&run_within(&mut command(&server, &calm.dir, &config), Duration::from_secs(120)), 0);
    let reference = Facts::read(&calm.dir).expect("a sound log");
    assert_eq!(status["pages"].as_u64(), Some(reference.pages.len() as u64));
    let truth = server.web().reachable(&seeds(&server), Scope::Any, "rhumb", false);
    assert_eq!(reference.pages, truth.pages);
    judge_politeness(&server, &server.log_view(), &[], 10);
    server.clear_log();

    let place = Place::new();
    let config = small_files(&place);
    let mut kills: Vec<u64> = Vec::new();
    let mut finished = 0;
    // The last few kills are for the end; a longer crawl of kills goes on with a finished one.
    let for_the_end = kills_wanted.div_ceil(5);
    while (kills.len() as u64) < kills_wanted {
        let in_the_middle = (kills.len() as u64) < kills_wanted - for_the_end;
        let wait_us = match dice.below(10) {
            0..=2 => dice.below(25_000),
            _ if in_the_middle && finished == 0 => 30_000 + dice.below(300_000),
            _ => dice.below(60_000),
        };
        let wait = Duration::from_micros(wait_us);
        // The kills for the end come when there is an end.
        let wait = if in_the_middle || finished > 0 { wait } else { Duration::from_secs(120) };
        match run_and_kill(&mut command(&server, &place.dir, &config), wait) {
            Err(at) => kills.push(at),
            Ok(_) => finished += 1,
        }
    }
    let status = json(&run_within(&mut command(&server, &place.dir, &config), Duration::from_secs(120)), 0);
    println!("{} kills, {finished} ends before the last", kills.len());

    let facts = Facts::read(&place.dir).expect("a sound log");
    assert_eq!(facts.pages, reference.pages);
    assert_eq!(facts.outcomes, reference.outcomes);
    assert_eq!(facts.links, reference.links);
    assert_eq!(facts.robots, reference.robots, "robots.txt is remembered over a crash");
    assert_eq!(status["pages"].as_u64(), Some(reference.pages.len() as u64));
    assert_eq!(status["urls_waiting"].as_u64(), Some(0));
    judge_politeness(&server, &server.log_view(), &kills, 10);
    judge_archive(&place.dir);
}

/// No gap is too short and no host has two connections, whoever was killed when.
pub(super) fn judge_politeness(server: &Server, view: &LogView, kills_unix_ms: &[u64], factor: u64) {
    let web = server.web();
    assert!(view.requests.len() > 300);
    let mut spans: BTreeMap<&str, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
    for entry in &view.requests {
        // What was open when the process died closed then; the server may notice later.
        let unix_us_at_zero = entry.start_unix_ms as i128 * 1_000 - i128::from(entry.start_us);
        let killed = kills_unix_ms.iter().map(|ms| (i128::from(*ms) * 1_000 - unix_us_at_zero).max(0) as u64);
        let killed = killed.filter(|us| *us > entry.start_us).min().unwrap_or(u64::MAX);
        let closed = entry.closed_us.unwrap_or(u64::MAX).min(killed);
        let span = spans.entry(&entry.host).or_default().entry(entry.connection).or_insert((entry.opened_us, closed));
        span.1 = span.1.min(closed.max(entry.start_us));
    }
    for (host, spans) in &spans {
        let mut spans: Vec<(u64, u64)> = spans.values().copied().collect();
        spans.sort_unstable();
        for pair in spans.windows(2) {
            // Two clocks read in milliseconds, and the server may see a new connection before the end of the old one.
            assert!(pair[1].0 + 5_000 >= pair[0].1, "two connections to {host}: {pair:?}");
        }
    }
    let mut over_a_kill = 0;
    for (gap_us, before, after) in view.gaps() {
        let host = web.host_index(&before.host).expect("a host of the web");
        let killed_in_flight = kills_unix_ms.iter().any(|ms| {
            (before.start_unix_ms..=before.start_unix_ms + (before.end_us - before.start_us) / 1_000 + 1).contains(ms)
        });
        // Nobody saw the end of a request that was under way when the process died. The host was done with it after
        // its own time; what a crowded machine added to that could not be known.
        let noise_us = match killed_in_flight {
            true => (before.end_us - before.start_us).saturating_sub(web.latency_ms(host) * 1_000),
            false => 0,
        };
        let (gap_us, fetch_us) = (gap_us + noise_us, before.end_us - before.start_us - noise_us);
        let asked_us = web.robots(host).crawl_delay_ms("rhumb").unwrap_or(0) * 1_000;
        let least_us = (DELAY_MS * 1_000).max(factor * fetch_us).max(asked_us);
        let killed_between = kills_unix_ms.iter().any(|ms| (before.start_unix_ms..=after.start_unix_ms).contains(ms));
        over_a_kill += u64::from(killed_between);
        assert!(
            gap_us >= least_us,
            "{gap_us} µs instead of {least_us} at {}: {} ({fetch_us} µs, whole: {}), then {}; killed between: {killed_between}",
            before.host,
            before.path,
            before.complete,
            after.path
        );
    }
    if kills_unix_ms.len() > 10 {
        assert!(over_a_kill > 20, "only {over_a_kill} gaps with a kill in them");
    }
}

/// Other people's tools accept every file, and index it as we do.
fn judge_archive(dir: &Path) {
    let files = archive_files(dir);
    assert!(files.len() > 2, "the archive has several files");
    for (_, file) in files {
        let output = Command::new(tool("warcio")).args(["check", "-v"]).arg(&file).output().expect("start warcio");
        let told = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{told}{stderr}");
        let theirs = Command::new(tool("cdxj-indexer")).arg(&file).output().expect("start cdxj-indexer");
        assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
        let ours = run_within(rhumb().args(["warc", "cdxj"]).arg(&file), Duration::from_secs(30));
        assert!(ours.status.success());
        let (theirs, ours) = (String::from_utf8_lossy(&theirs.stdout), String::from_utf8_lossy(&ours.stdout));
        assert_eq!(ours.trim_end(), theirs.trim_end(), "{}", file.display());
    }
}

/// A tool of the virtual environment that `make test` sets up.
fn tool(name: &str) -> PathBuf {
    let venv = match std::env::var_os("RHUMB_TEST_VENV") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv"),
    };
    let path = venv.join("bin").join(name);
    assert!(path.exists(), "{name} not found at {}: run `make test`, which installs them", path.display());
    path
}
