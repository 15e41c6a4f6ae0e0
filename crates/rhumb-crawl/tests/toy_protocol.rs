//! A protocol from outside the crate: `toy://host/path`, answered from a table. It is all that a program must write to bring one.
//!
//! Its URLs are seeded, fetched, parsed, their links made canonical and judged, scheduled, logged, archived, and found again after
//! the process died, without one line about them anywhere else.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rhumb_core::crawl::CrawlConfig;
use rhumb_core::filter::{FilterConfig, Scope};
use rhumb_core::frontier::FrontierConfig;
use rhumb_core::net::Guard;
use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{Formats, Obedience, ParseOptions};
use rhumb_core::priority::Prioritizer;
use rhumb_core::record::Record;
use rhumb_core::sieve::SieveConfig;
use rhumb_core::url::{Host, NormalizeOptions, Scheme, Url, scheme};
use rhumb_core::visit::VisitRecord;
use rhumb_crawl::dns::DnsConfig;
use rhumb_crawl::fetch::{FetchLimits, Fetched, Request};
use rhumb_crawl::protocol::{Bounds, Fetching, Protocol, Registry};
use rhumb_crawl::settings::{Settings, Stages};
use rhumb_crawl::{End, Engine};
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position};
use tokio::sync::watch;

static TOY: Scheme = Scheme {
    name: "toy",
    default_port: 7,
    has_authority: true,
    needs_dns: false,
    needs_robots: false,
    polite: false,
    open: false,
};
static SCHEMES: [&Scheme; 1] = [&TOY];

/// Ten pages on each of three hosts, in a circle; and a few that misbehave.
#[derive(Default)]
struct Toys {
    asked: Mutex<Vec<String>>,
    at_once: AtomicUsize,
    at_once_most: AtomicUsize,
}

impl Protocol for Toys {
    fn schemes(&self) -> &'static [&'static Scheme] {
        &SCHEMES
    }

    fn fetch<'a>(&'a self, host: &'a Host, request: Request<'a>, bounds: &'a Bounds) -> Fetching<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.at_once_most.fetch_max(now, Ordering::SeqCst);
            self.asked.lock().expect("no panic").push(request.url.to_string());
            tokio::time::sleep(Duration::from_millis(3)).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            let held = bounds.budget.hold();
            let answer = |status, headers: &[(&str, &str)], body: &str| {
                Fetched::answer(started, status, headers, body.as_bytes().to_vec(), held)
            };
            let html = [("content-type", "text/html")];
            match request.url.path() {
                "/huge" => answer(200, &html, &"x".repeat(200_000)),
                "/moved" => answer(301, &[("location", "/1?utm_source=toy#there")], ""),
                "/file" => answer(301, &[("location", "file:///etc/hostname")], ""),
                "/never" => std::future::pending().await,
                path => match path[1..].parse::<u32>() {
                    Ok(number) if number < 10 => {
                        let next = (number + 1) % 10;
                        let name = host.name().trim_start_matches('h').parse::<u32>().unwrap_or(0);
                        let body = format!(
                            "<title>{name}/{number}</title><a href='{next}#x'>next</a><a href='TOY://H{}:7/{next}'>other</a>\
                             <a href=/moved>m</a><a href=/file>f</a><a href=/huge>h</a><a href=/never>n</a>\
                             <a href='toy://elsewhere/1'>e</a><a href='file:///etc/passwd'>p</a><a href='gopher://h0/'>g</a>",
                            (name + 1) % 3
                        );
                        answer(200, &html, &body)
                    }
                    _ => answer(404, &html, "no such toy"),
                },
            }
        })
    }
}

fn settings(toys: &Arc<Toys>) -> Settings {
    let mut protocols = Registry::default();
    protocols.add(toys.clone()).expect("nobody else has toys");
    assert!(protocols.add(toys.clone()).is_err(), "a scheme has one protocol");
    Settings {
        protocols,
        crawl: CrawlConfig {
            frontier: FrontierConfig { attempts_max: 1, ..FrontierConfig::default() },
            sieve: SieveConfig::default(),
            prioritizer: Prioritizer::default(),
            seen_bytes_max: 1 << 20,
            redirects_max: 10,
            seed: 1,
        },
        fetch: FetchLimits { total: Duration::from_millis(300), body_bytes_max: 100_000, ..FetchLimits::default() },
        filter: FilterConfig { scope: Scope::Host, ..FilterConfig::default() },
        normalize: NormalizeOptions::default(),
        decode: DecodeLimits::default(),
        parse: ParseOptions::default(),
        dns: DnsConfig::with_servers(vec!["127.0.0.1:9".parse().expect("address")]),
        guard: Guard::default(),
        agent: "toy-test".to_string(),
        tls_hosts_max: 0,
        authorities: None,
        credentials: Vec::new(),
        cookies: false,
        workers: 16,
        threads: 1,
        sitemaps: true,
        formats: Formats::default(),
        obey: Obedience::default(),
        archive: true,
        said: true,
        templates_max: 4,
        page_bytes_max: 1 << 20,
        pages_max: None,
        time_max: None,
        checkpoint_every: Duration::from_millis(20),
        sync_every: Duration::from_millis(20),
        grace: Duration::from_millis(50),
        log_segment_bytes: 1 << 20,
        archive_file_bytes: 1 << 20,
        tell_every: Duration::from_millis(50),
        stages: Stages::default(),
    }
}

fn visits(dir: &Path) -> Vec<VisitRecord> {
    let mut reader = LogReader::open(RealDisk::new(dir), Position::START).expect("open the log");
    let mut visits = Vec::new();
    while let Some((kind, payload)) = reader.next().expect("read the log") {
        if let Record::Visited(visit) = Record::take(kind, payload).expect("a record") {
            visits.push(*visit);
        }
    }
    visits
}

#[test]
fn a_toy_is_crawled_and_goes_on_after_a_crash() {
    let toys = Arc::new(Toys::default());
    let temporary = tempfile::tempdir().expect("temporary directory");
    let (dir, copy) = (temporary.path().join("crawl"), temporary.path().join("copy"));
    std::fs::create_dir(&dir).expect("make a directory");
    let settings = settings(&toys);
    let seeds: Vec<Url> = ["Toy://H0", "toy://h1:7/0", "toy://h2/0"].map(|u| Url::parse(u).expect("a toy")).to_vec();
    assert_eq!(seeds[0].as_str(), "toy://h0/");
    let first = Url::parse("toy://h0/0").expect("a toy");
    let open = |dir: &Path| Engine::open(dir, RealDisk::new(dir), settings.clone()).expect("open");
    let mut engine = open(&dir);
    engine.add_seeds(&[&seeds[..], &[first]].concat()).expect("seeds");
    let (stop, stopped) = watch::channel(false);
    let run = std::thread::spawn(move || engine.run(stopped).expect("a crawl"));
    while toys.asked.lock().expect("no panic").len() < 12 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // What a kill would leave: the files as they are in this moment, half-written ones too.
    copy_all(&dir, &copy);
    stop.send(true).expect("it runs");
    run.join().expect("no panic");
    let asked_before: Vec<String> = visits(&copy).iter().map(|v| v.entry.url.to_string()).collect();
    assert!(!asked_before.is_empty() && asked_before.len() < 36);
    toys.asked.lock().expect("no panic").clear();
    let (_stop, stopped) = watch::channel(false);
    let (end, status) = open(&copy).run(stopped).expect("a crawl");
    assert_eq!(end, End::Finished);
    let asked = toys.asked.lock().expect("no panic").clone();
    assert!(asked.iter().all(|url| !asked_before.contains(url)), "nothing twice: {asked:?} after {asked_before:?}");

    let all = visits(&copy);
    let count = |outcome: &str| all.iter().filter(|v| v.outcome.name() == outcome).count();
    let mut urls: Vec<&str> = all.iter().map(|v| v.entry.url.as_str()).collect();
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), all.len(), "each once");
    // On each host ten pages and a huge one; a redirect; one to a file, which no toy may name; one that never ends. And h0's "/".
    assert_eq!(
        (count("ok"), count("redirect"), count("bad_redirect"), count("body_timeout"), count("not_found")),
        (33, 3, 3, 3, 1)
    );
    assert_eq!(status.pages, 33);
    assert!(toys.at_once_most.load(Ordering::SeqCst) <= 4, "few at once");
    let huge = all.iter().find(|v| v.entry.url.path() == "/huge").expect("the huge one");
    assert_eq!((huge.wire_bytes, huge.truncated), (100_000, true));
    let page = all.iter().find(|v| v.entry.url.as_str() == "toy://h2/3").expect("a page");
    assert_eq!((&*page.title, page.links_unusable), ("2/3", 2));
    let wanted: Vec<&str> = page.links.iter().filter(|l| l.wanted).map(|l| l.url.as_str()).collect();
    assert_eq!(wanted[..2], ["toy://h2/4", "toy://h0/4"]);
    assert!(!wanted.contains(&"toy://elsewhere/1"), "out of scope");
    assert!(page.archived.is_some() && page.address.is_none());
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("make a directory");
    for entry in std::fs::read_dir(from).expect("read a directory").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_all(&path, &target);
        } else if path.is_file() {
            // A file may go while it is copied, as it may in a crash.
            let _ = std::fs::copy(&path, &target);
        }
    }
}

#[test]
fn schemes_that_are_there_already_are_not_replaced() {
    struct Impostor;
    static WEB: [&Scheme; 1] = [&scheme::HTTP];
    impl Protocol for Impostor {
        fn schemes(&self) -> &'static [&'static Scheme] {
            &WEB
        }

        fn fetch<'a>(&'a self, _: &'a Host, _: Request<'a>, _: &'a Bounds) -> Fetching<'a> {
            unreachable!("nobody asks it")
        }
    }
    assert!(Registry::default().add(Arc::new(Impostor)).is_err());
}
