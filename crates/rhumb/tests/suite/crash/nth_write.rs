//! The n-th write goes wrong, or the n-th look at a file, for every n of a small crawl that does everything a large one does: checkpoints, queues on
//! disk, sieve runs and their merging, log segments and archive files that follow one another.
//!
//! A plain run takes a sample of all n; `RHUMB_FULL=1` takes every one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rhumb_core::crawl::CrawlConfig;
use rhumb_core::filter::{FilterConfig, Scope};
use rhumb_core::frontier::FrontierConfig;
use rhumb_core::net::Guard;
use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{Formats, Obedience, ParseOptions};
use rhumb_core::priority::Prioritizer;
use rhumb_core::sieve::SieveConfig;
use rhumb_core::url::{NormalizeOptions, Url};
use rhumb_crawl::dns::DnsConfig;
use rhumb_crawl::fetch::FetchLimits;
use rhumb_crawl::settings::Stages;
use rhumb_crawl::{CrawlError, End, Engine, Settings};
use rhumb_sim::{FailingDisk, Failure, Naming, Server, ServerConfig, Web, WebConfig};
use rhumb_store::disk::{Disk, RealDisk};
use rhumb_store::table::TableConfig;
use tokio::sync::watch;

use super::{Dice, Facts, from_env, quick_directory};

/// Five hosts of eight pages, with all that the web has to offer. Hosts are loopback addresses: no DNS.
pub fn small_web() -> Server {
    let config = WebConfig {
        hosts: 5,
        pages: 8,
        pages_exact: true,
        page_bytes: 1_500,
        links: 10,
        error_share: 0.08,
        unavailable_share: 0.4,
        not_found_share: 0.06,
        redirect_share: 0.1,
        duplicate_share: 0.3,
        disallow_share: 0.6,
        private_share: 0.06,
        crawl_delay_share: 0.0,
        naming: Naming::Loopback,
        ..WebConfig::default()
    };
    let server = ServerConfig { all_loopback: true, ..ServerConfig::default() };
    Server::start(Web::new(config).expect("web"), server).expect("server")
}

/// Settings with bounds so small that everything happens all the time.
pub fn small_settings() -> Settings {
    Settings {
        protocols: rhumb_crawl::protocol::Registry::default(),
        crawl: CrawlConfig {
            frontier: FrontierConfig {
                back_queues: 2,
                back_queues_max: 3,
                delay_ms_min: 0,
                backoff_ms_first: 1,
                backoff_ms_max: 3,
                retry_after_ms_max: 3,
                failure_ms_first: 1,
                block_bytes: 80,
                front_block_bytes: 80,
                hosts_bytes_max: 2_000,
                table: TableConfig { memory_bytes_max: 400, filter_bytes_max: 100 },
                ..FrontierConfig::default()
            },
            sieve: SieveConfig {
                filter_bytes_max: 64,
                recent_keys: 4,
                fresh_keys_max: 6,
                batch_keys_max: 130,
                buffer_bytes: 200,
            },
            prioritizer: Prioritizer::default(),
            seen_bytes_max: 1 << 20,
            redirects_max: 10,
            seed: 1,
        },
        fetch: FetchLimits::default(),
        filter: FilterConfig { scope: Scope::Any, ..FilterConfig::default() },
        normalize: NormalizeOptions::default(),
        decode: DecodeLimits::default(),
        parse: ParseOptions::default(),
        formats: Formats::default(),
        dns: DnsConfig::with_servers(vec!["127.0.0.1:9".parse().expect("address")]),
        guard: Guard { allow: vec!["127.0.0.0/8".parse().expect("network")], ..Guard::default() },
        agent: "rhumb-test".to_string(),
        tls_hosts_max: 0,
        authorities: None,
        credentials: Vec::new(),
        cookies: false,
        workers: 3,
        threads: 1,
        sitemaps: false,
        obey: Obedience::default(),
        archive: true,
        said: true,
        templates_max: 4,
        page_bytes_max: 1 << 10,
        pages_max: None,
        time_max: None,
        checkpoint_every: Duration::from_millis(5),
        sync_every: Duration::from_millis(5),
        grace: Duration::from_millis(200),
        log_segment_bytes: 6 << 10,
        archive_file_bytes: 16 << 10,
        tell_every: Duration::from_secs(1),
        stages: Stages::default(),
    }
}

/// Crawls from host 0, and a host that never answers, to the end; a hang fails the test, a panic goes through.
pub fn crawl_on(disk: Arc<dyn Disk>, dir: &Path, server: &Server) -> Result<End, CrawlError> {
    let (done, ended) = mpsc::channel();
    let (dir, seed) = (dir.to_path_buf(), Url::parse(&server.web().url(0, 0)).expect("a URL"));
    let thread = std::thread::spawn(move || {
        let run = || {
            let mut engine = Engine::open(&dir, disk, small_settings())?;
            let dead = Url::parse("http://127.0.9.9:1/").expect("a URL");
            engine.add_seeds(&[seed, dead])?;
            let (_stop, stopped) = watch::channel(false);
            engine.run(stopped)
        };
        let _ = done.send(run().map(|(end, _)| end));
    });
    match ended.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => {
            thread.join().expect("the crawl does not panic");
            result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the crawl hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("the crawl panics: {:?}", thread.join().is_err()),
    }
}

/// A crawl nobody disturbs, its number of disk operations and what they were.
fn undisturbed(server: &Server) -> (Facts, u64, Vec<String>) {
    let dir = quick_directory();
    let disk = FailingDisk::counting(RealDisk::new(dir.path()));
    assert_eq!(crawl_on(disk.clone(), dir.path(), server).expect("an undisturbed crawl"), End::Finished);
    (Facts::read(dir.path()).expect("a sound log"), disk.operations(), disk.journal())
}

/// How often an undisturbed crawl looks at a file.
fn looks(server: &Server) -> u64 {
    let dir = quick_directory();
    let disk = FailingDisk::new(RealDisk::new(dir.path()), 0, Failure::Unreadable);
    crawl_on(disk.clone(), dir.path(), server).expect("an undisturbed crawl");
    disk.operations()
}

fn same(facts: &Facts, reference: &Facts, what: &str) {
    assert_eq!(facts.pages, reference.pages, "{what}: pages");
    assert_eq!(facts.outcomes, reference.outcomes, "{what}: outcomes");
    assert_eq!(facts.links, reference.links, "{what}: links");
}

fn every_nth_operation(failure: Failure, sample: u64) {
    let server = small_web();
    let web = server.web();
    let (reference, mut operations, _) = undisturbed(&server);
    if failure == Failure::Unreadable {
        operations = looks(&server);
    }
    let truth = web.reachable(&[web.url(0, 0)], rhumb_sim::Scope::Any, "rhumb-test", false);
    assert_eq!(reference.pages, truth.pages);
    let full = from_env("RHUMB_FULL", 0) != 0;
    let step = if full { 1 } else { (operations / sample).max(1) };
    let mut stopped = 0;
    let mut numbers: BTreeSet<u64> = (1..=operations).step_by(step as usize).collect();
    // The first ones make the directory and the last ones close it.
    numbers.extend((1..=operations.min(12)).chain(operations.saturating_sub(6)..=operations));
    for n in numbers {
        let what = format!("{failure:?} at operation {n} of about {operations}");
        let dir = quick_directory();
        let real = RealDisk::new(dir.path());
        let disk = FailingDisk::new(real.clone(), n, failure);
        if failure == Failure::Unreadable && n % 2 == 0 {
            // Most of what is looked at lies there already: the way back is what reads.
            let _ = crawl_on(FailingDisk::new(real.clone(), 200 + 5 * n, Failure::Tear), dir.path(), &server);
        }
        let first = crawl_on(disk.clone(), dir.path(), &server);
        let touched = disk.operations() >= n;
        // What does not read of the derived state is made anew at once, if that is found while opening.
        let mendable = matches!(failure, Failure::Full | Failure::Unreadable);
        assert!(first.is_err() || !touched || mendable, "{what}: nobody noticed");
        stopped += u64::from(first.is_err());
        // Every third time the way back is disturbed as well.
        if n % 3 == 0 {
            let again = 1 + Dice(n).below(40);
            let _ = crawl_on(FailingDisk::new(real.clone(), again, Failure::Tear), dir.path(), &server);
        }
        let end = crawl_on(real, dir.path(), &server).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(end, End::Finished, "{what}");
        let facts = Facts::read(dir.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
        same(&facts, &reference, &what);
    }
    println!("{failure:?}: {stopped} crawls of about {operations} operations stopped");
    assert!(stopped > 10, "most of these writes matter");
}

#[test]
fn the_small_crawl_does_everything() {
    let (reference, operations, journal) = undisturbed(&small_web());
    let held = reference.held;
    let count = |what: &str| journal.iter().filter(|l| l.starts_with(what)).count();
    for (what, least) in [
        ("create log/", 3),
        ("create archive/", 3),
        ("create state/queues/", 3),
        ("create state/sieve/", 5),
        ("remove state/queues/", 1),
        ("remove state/sieve/", 4),
        ("rename state/checkpoint-", 4),
    ] {
        assert!(count(what) >= least, "{what}: {} of {operations} operations", count(what));
    }
    assert_eq!(held, 1, "the host that never answers is held");
    for outcome in ["ok", "redirect", "not_found", "server_error", "rate_limited", "robots_disallowed"] {
        assert!(reference.outcomes.values().any(|o| *o == outcome), "no {outcome}: {:?}", reference.outcomes);
    }
}

#[test]
fn a_failed_write_is_survived() {
    every_nth_operation(Failure::Fail, 40);
}

#[test]
fn a_torn_write_is_survived() {
    every_nth_operation(Failure::Tear, 40);
}

#[test]
fn a_full_disk_is_survived() {
    every_nth_operation(Failure::Full, 30);
}

#[test]
fn a_failed_read_is_survived() {
    every_nth_operation(Failure::Unreadable, 40);
}
