//! Manners, judged from the server's log alone: what the crawler meant to do does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use rhumb_sim::{Latency, LogEntry, LogView, Reply, Scope, Server, Web, WebConfig};

use crate::common::{Place, crawl, ends, json, rhumb, run, run_within, serve};

/// The server may see a new connection before the end of the one it replaces.
const SLACK_US: u64 = 20_000;

/// One crawl as the server saw it, and what a host may expect.
struct Seen<'a> {
    view: LogView,
    web: &'a Web,
    delay_ms: u64,
}

impl<'a> Seen<'a> {
    fn new(server: &'a Server, delay_ms: u64) -> Seen<'a> {
        Seen { view: server.log_view(), web: server.web(), delay_ms }
    }

    fn host_of(&self, entry: &LogEntry) -> u64 {
        self.web.host_index(&entry.host).expect("a host of this web")
    }

    /// max(minimum, 10 × last fetch time, Crawl-delay), in microseconds.
    fn required_us(&self, last: &LogEntry) -> u64 {
        let asked_ms = self.web.robots(self.host_of(last)).crawl_delay_ms("rhumb").unwrap_or(0);
        (self.delay_ms.max(asked_ms) * 1_000).max(10 * (last.end_us - last.start_us))
    }

    fn one_connection_per_host(&self) {
        let (host, peak) = self.view.peak_by_host(SLACK_US).expect("requests");
        assert_eq!(peak, 1, "connections to {host} at once");
    }

    fn at_most_per_address(&self, limit: usize) {
        let (address, peak) = self.view.peak_by_address(SLACK_US).expect("connections");
        assert!(peak <= limit, "{peak} connections to {address} at once");
    }

    fn delay_is_kept(&self) {
        for (gap_us, last, next) in self.view.gaps() {
            let required_us = self.required_us(last);
            assert!(gap_us >= required_us, "a gap of {gap_us} µs instead of {required_us}: {last:?} {next:?}");
        }
    }

    fn robots_come_first_and_once(&self) {
        for (host, requests) in self.view.by_host() {
            assert_eq!(requests[0].path, "/robots.txt", "first request to {host}");
            assert_eq!(requests.iter().filter(|r| r.path == "/robots.txt").count(), 1, "robots.txt of {host}");
        }
    }

    /// How often each URL was asked for, robots.txt left out.
    fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for entry in self.view.requests.iter().filter(|e| e.path != "/robots.txt") {
            *asked.entry(format!("http://{}{}", entry.host, entry.path)).or_default() += 1;
        }
        asked
    }

    /// Everything reachable and allowed was asked for, each URL once, and nothing else was.
    fn each_url_once(&self, seeds: &[String]) {
        let reached = self.web.reachable(seeds, Scope::Any, "rhumb", false);
        let asked = self.asked();
        let forbidden: Vec<_> = reached.disallowed.iter().filter(|url| asked.contains_key(*url)).collect();
        assert!(forbidden.is_empty(), "robots.txt forbids {forbidden:?}");
        let expected: BTreeSet<&String> =
            [&reached.pages, &reached.redirects, &reached.missing].into_iter().flatten().collect();
        let missed: Vec<_> = expected.iter().filter(|url| !asked.contains_key(**url)).collect();
        assert!(missed.is_empty(), "never asked for {missed:?}");
        let odd: Vec<_> = asked.iter().filter(|(url, times)| **times != 1 || !expected.contains(url)).collect();
        assert!(odd.is_empty(), "asked for more than once, or unknown: {odd:?}");
    }

    /// The shortest time in which the slowest host can be crawled: its own fetches and the gaps it may expect.
    fn bound_us(&self) -> u64 {
        let of_host = |requests: Vec<&LogEntry>| -> u64 {
            let fetches: u64 = requests.iter().map(|r| r.end_us - r.start_us).sum();
            let gaps: u64 = requests.iter().rev().skip(1).map(|r| self.required_us(r)).sum();
            fetches + gaps
        };
        self.view.by_host().into_values().map(of_host).max().expect("requests")
    }

    /// From the first request to the end of the last.
    fn span_us(&self) -> (u64, u64) {
        let first = self.view.requests.iter().map(|r| r.start_us).min().expect("requests");
        (first, self.view.requests.iter().map(|r| r.end_us).max().expect("requests"))
    }
}

/// The home page of every host: all of them are known from the start.
fn all_hosts(web: &Web) -> Vec<String> {
    (0..web.hosts()).map(|host| web.url(host, 0)).collect()
}

fn crawl_all(server: &Server, place: &Place, seeds: &[String], more: &[&str]) -> Command {
    let mut command = crawl(server, &place.dir, more);
    command.args(seeds);
    command
}

fn with_config(command: &mut Command, place: &Place, text: &str) {
    command.arg("--config").arg(place.file("config.toml", text));
}

/// A program that runs while the test watches the server; it does not outlive the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("start the program"))
    }

    fn end(mut self) {
        wait_for("the program to end", || self.0.try_wait().expect("wait").is_some());
        assert_eq!(self.0.try_wait().expect("wait").and_then(|s| s.code()), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Requests for a path of a host, in order.
fn requests(server: &Server, host: u64, path: &str) -> Vec<LogEntry> {
    let name = server.web().host_name(host);
    let mut found = server.log();
    found.retain(|e| e.path == path && e.host.split(':').next() == Some(&name));
    found.sort_by_key(|e| e.start_us);
    found
}

/// All requests to a host, in order.
fn requests_to(server: &Server, host: u64) -> Vec<LogEntry> {
    let mut found = server.log();
    found.retain(|e| server.web().host_index(&e.host) == Some(host));
    found.sort_by_key(|e| e.start_us);
    found
}

fn html(body: &str) -> Reply {
    Reply::new(200, "text/html", body)
}

fn links(paths: impl IntoIterator<Item = String>) -> Reply {
    html(&paths.into_iter().map(|p| format!("<a href='{p}'>x</a> ")).collect::<String>())
}

// ---- two hundred hosts -----------------------------------------------------------------------------------

#[test]
fn two_hundred_hosts_are_treated_politely_and_in_the_time_the_slowest_of_them_needs() {
    let server = serve(WebConfig {
        hosts: 200,
        pages: 50,
        pages_exact: true,
        page_bytes: 2_000,
        links: 12,
        addresses: 50,
        latency: Latency { min_ms: 1, max_ms: 20, slow_share: 0.05, slow_ms: 30 },
        error_share: 0.0,
        crawl_delay_share: 0.1,
        crawl_delay_ms_max: 400,
        ..WebConfig::default()
    });
    let web = server.web();
    let delays = (0..200).filter(|&h| web.robots(h).crawl_delay_ms("rhumb").is_some()).count();
    assert!(delays > 5, "{delays} hosts ask for a delay");
    let seeds = all_hosts(web);
    let place = Place::new();
    let status = json(&run(&mut crawl_all(&server, &place, &seeds, &["--delay", "100ms", "--per-ip", "3"])), 0);

    let seen = Seen::new(&server, 100);
    seen.one_connection_per_host();
    seen.at_most_per_address(3);
    seen.delay_is_kept();
    seen.robots_come_first_and_once();
    seen.each_url_once(&seeds);
    assert_eq!(status["pages"], 200 * 50);
    assert_eq!(status["robots_fetched"], 200);

    let (first, last) = seen.span_us();
    let bound = seen.bound_us();
    let start_up = 300_000;
    assert!(last - first <= bound * 11 / 10 + start_up, "{} ms instead of {}", (last - first) / 1000, bound / 1000);
}

#[test]
fn with_many_ready_hosts_no_worker_waits() {
    let latency_ms = 40;
    let latency = Latency { min_ms: latency_ms, max_ms: latency_ms, ..Latency::default() };
    let server = serve(WebConfig { latency, page_bytes: 1_000, links: 8, ..WebConfig::plain(100, 9) });
    let seeds = all_hosts(server.web());
    let place = Place::new();
    let more = ["--delay", "0s", "--workers", "8", "--per-ip", "0"];
    json(&run(&mut crawl_all(&server, &place, &seeds, &more)), 0);

    let seen = Seen::new(&server, 0);
    seen.one_connection_per_host();
    seen.each_url_once(&seeds);
    // How many requests the server had at once, on average over the middle of the crawl.
    let (first, last) = seen.span_us();
    let (from, to) = (first + (last - first) / 10, last - (last - first) / 10);
    let inside = |r: &LogEntry| r.end_us.min(to).saturating_sub(r.start_us.max(from));
    let busy_us: u64 = seen.view.requests.iter().map(inside).sum();
    let at_once = busy_us as f64 / (to - from) as f64;
    assert!((8.0 / 1.25..=8.01).contains(&at_once), "{at_once} of 8 workers at once");
}

#[test]
fn hosts_that_share_an_address_share_its_connections() {
    let server = serve(WebConfig { page_bytes: 1_000, links: 8, ..WebConfig::plain(24, 6) });
    let seeds = all_hosts(server.web());
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &seeds, &["--delay", "50ms", "--per-ip", "2"]);
    // Idle connections stay open until somebody else wants their place, and count meanwhile.
    with_config(&mut command, &place, "[politeness]\nkeep_alive = \"1h\"\n");
    json(&run_within(&mut command, Duration::from_secs(40)), 0);

    let seen = Seen::new(&server, 50);
    assert_eq!(seen.view.peak_by_address(SLACK_US).map(|(_, peak)| peak), Some(2), "both are used, no third is opened");
    seen.one_connection_per_host();
    seen.delay_is_kept();
    seen.robots_come_first_and_once();
    seen.each_url_once(&seeds);
    // 168 requests over two connections, each host ready again after 50 ms: nobody waits for long.
    let (first, last) = seen.span_us();
    assert!(last - first < 4_000_000, "{} ms", (last - first) / 1000);
}

#[test]
fn a_lone_host_keeps_its_connection() {
    let server = serve(WebConfig::plain(1, 10));
    let place = Place::new();
    json(&run(&mut crawl_all(&server, &place, &all_hosts(server.web()), &["--delay", "20ms"])), 0);
    assert_eq!(server.log_view().connections.len(), 1);
    assert_eq!(server.log().len(), 11);
}

#[test]
fn switching_waiting_off_is_said() {
    let server = serve(WebConfig::plain(1, 3));
    let dns = server.dns_addr().expect("DNS").to_string();
    let said = |delay: &str| {
        let place = Place::new();
        let mut command = rhumb();
        command.args(["crawl", &server.web().url(0, 0), "--delay", delay, "--dns", &dns, "--allow-net", "127.0.0.0/8"]);
        let output = run(command.arg("--dir").arg(&place.dir));
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).contains("Waiting between requests is off")
    };
    assert!(said("0s"));
    assert!(!said("1ms"));
}

// ---- robots.txt ------------------------------------------------------------------------------------------

#[test]
fn rules_are_fetched_again_when_they_are_too_old_and_not_before() {
    let server = serve(WebConfig { page_bytes: 1_000, ..WebConfig::plain(3, 25) });
    let seeds = all_hosts(server.web());
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &seeds, &["--delay", "100ms"]);
    with_config(&mut command, &place, "[politeness]\nrobots_max_age = \"1s\"\n");
    json(&run(&mut command), 0);

    let seen = Seen::new(&server, 100);
    seen.delay_is_kept();
    seen.each_url_once(&seeds);
    for (host, requests) in seen.view.by_host() {
        assert_eq!(requests[0].path, "/robots.txt", "{host}");
        let mut learnt_us = requests[0].end_us;
        let mut times = 1;
        for request in &requests[1..] {
            let age_us = request.start_us - learnt_us;
            if request.path == "/robots.txt" {
                assert!(age_us >= 1_000_000, "{host}: fetched again after {age_us} µs");
                learnt_us = request.end_us;
                times += 1;
            } else {
                // A request needs a moment from the decision to the server.
                assert!(age_us <= 1_250_000, "{host}: judged by rules {age_us} µs old");
            }
        }
        assert!(times >= 3, "{host}: {times} times in more than two and a half seconds");
    }
}

#[test]
fn changed_rules_bind_urls_that_wait_already() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let all = || (0..20).flat_map(|i| [format!("/a/{i}"), format!("/b/{i}")]);
    web.set_robots(0, "User-agent: *\nDisallow: /b/13\n");
    web.set_document(0, "/", links(all()));
    all().for_each(|path| web.set_document(0, &path, html("page")));
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "60ms"]);
    with_config(&mut command, &place, "[politeness]\nrobots_max_age = \"500ms\"\n[traps]\nlearn = false\n");
    let running = Running::start(&mut command);
    let fetched = |what: &str| server.log().iter().filter(|e| e.path.starts_with(what)).count();
    wait_for("a few pages", || fetched("/a/") >= 3);
    web.set_robots(0, "User-agent: *\nDisallow: /a/\n");
    let before = fetched("/robots.txt");
    running.end();

    let log = requests_to(&server, 0);
    let renewed: Vec<usize> = (0..log.len()).filter(|&i| log[i].path == "/robots.txt").collect();
    // The one after `before` was surely asked for after the change.
    let obeyed = renewed[before];
    assert!(log[obeyed..].iter().all(|e| !e.path.starts_with("/a/")), "the new rules were not obeyed");
    let closed = ends(&place.dir).into_iter().filter(|(_, end)| *end == "robots_disallowed").count();
    assert_eq!(closed + fetched("/a/") + fetched("/b/"), 40, "each URL was fetched or found forbidden");
    assert!(fetched("/a/") < 20 && fetched("/b/") >= 19, "{} {}", fetched("/a/"), fetched("/b/"));
}

#[test]
fn no_rules_mean_that_all_is_allowed() {
    for status in [404, 410, 401, 403] {
        let server = serve(WebConfig::plain(1, 4));
        server.web().set_robots_reply(0, Reply::new(status, "text/plain", "User-agent: *\nDisallow: /\n"));
        let place = Place::new();
        let status = json(&run(&mut crawl_all(&server, &place, &all_hosts(server.web()), &["--delay", "10ms"])), 0);
        assert_eq!(status["pages"], 4);
    }
}

/// Short pauses after failures, and few of them.
const IMPATIENT: &str = "[politeness]\nfailure_pause = \"50ms\"\nhost_failures = 3\nbackoff_first = \"100ms\"\n";

#[test]
fn while_the_rules_cannot_be_had_nothing_is_fetched() {
    for status in [500, 502, 599] {
        let server = serve(WebConfig::plain(2, 4));
        let web = server.web();
        web.set_robots_reply(0, Reply::new(status, "text/plain", "User-agent: *\nAllow: /\n"));
        let place = Place::new();
        let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"]);
        with_config(&mut command, &place, IMPATIENT);
        let result = json(&run_within(&mut command, Duration::from_secs(30)), 0);

        assert_eq!(result["pages"], 4, "the other host's");
        assert!(result["held"]["robots_unreachable"]["urls"].as_u64() >= Some(1), "{}", result["held"]);
        let log = requests_to(&server, 0);
        assert!(log.iter().all(|e| e.path == "/robots.txt"), "{log:?}");
        assert_eq!(log.len(), 3, "as often as the configuration says");
        // Each pause is four times the one before, give or take a quarter.
        for (pair, least_us) in log.windows(2).zip([37_000, 150_000]) {
            assert!(pair[1].start_us - pair[0].end_us >= least_us, "{pair:?}");
        }
    }
}

#[test]
fn a_host_whose_rules_fail_once_is_crawled_later() {
    let server = serve(WebConfig::plain(1, 4));
    let web = server.web();
    web.set_robots_reply(0, Reply::new(500, "text/plain", "out of order"));
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"]);
    with_config(&mut command, &place, "[politeness]\nfailure_pause = \"300ms\"\n");
    let running = Running::start(&mut command);
    wait_for("a failure", || !requests(&server, 0, "/robots.txt").is_empty());
    web.set_robots(0, "User-agent: *\nDisallow:\n");
    running.end();
    assert_eq!(requests(&server, 0, "/robots.txt").len(), 2);
    assert_eq!(requests_to(&server, 0).len(), 2 + 4);
}

#[test]
fn rules_refused_for_now_are_asked_for_later() {
    let server = serve(WebConfig::plain(1, 4));
    let web = server.web();
    let busy = Reply::new(429, "text/plain", "busy").with_header("Retry-After", "1");
    web.set_robots_reply(0, busy);
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"]);
    with_config(&mut command, &place, IMPATIENT);
    let running = Running::start(&mut command);
    wait_for("a refusal", || !requests(&server, 0, "/robots.txt").is_empty());
    web.set_robots(0, "User-agent: *\nDisallow:\n");
    running.end();
    let log = requests_to(&server, 0);
    assert_eq!(log[1].path, "/robots.txt", "nothing is fetched without rules");
    assert!(log[1].start_us - log[0].end_us >= 1_000_000, "left alone for as long as it asked");
    assert_eq!(log.len(), 2 + 4);
}

#[test]
fn redirected_rules_are_followed_for_five_hops() {
    for (hops, obeyed) in [(1, true), (5, true), (6, false)] {
        let server = serve(WebConfig::plain(1, 1));
        let web = server.web();
        web.set_robots_reply(0, Reply::redirect(301, "/hop/1"));
        (1..hops).for_each(|i| web.set_document(0, &format!("/hop/{i}"), Reply::redirect(302, &format!("{}", i + 1))));
        web.set_document(0, &format!("/hop/{hops}"), Reply::new(200, "text/plain", "User-agent: *\nDisallow: /no\n"));
        web.set_document(0, "/", links(["/no".into(), "/yes".into()]));
        web.set_document(0, "/no", html("no"));
        web.set_document(0, "/yes", html("yes"));
        let place = Place::new();
        json(&run(&mut crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"])), 0);
        Seen::new(&server, 10).delay_is_kept();
        let asked = requests_to(&server, 0);
        let asked: Vec<&str> = asked.iter().map(|e| e.path.as_str()).collect();
        // Beyond five the file counts as not there (RFC 9309, 2.3.1.2).
        assert_eq!(asked.contains(&"/no"), !obeyed, "{hops} hops: {asked:?}");
        assert!(asked.contains(&"/yes"), "{hops} hops: {asked:?}");
        let followed = asked.iter().filter(|p| p.starts_with("/hop/")).count();
        assert_eq!(followed, hops.min(5), "{asked:?}");
    }
}

#[test]
fn rules_on_another_host_are_fetched_in_that_hosts_turn() {
    let latency = Latency { min_ms: 5, max_ms: 5, ..Latency::default() };
    let server = serve(WebConfig { latency, page_bytes: 1_000, foreign_share: 0.0, ..WebConfig::plain(6, 12) });
    let web = server.web();
    // Hosts 1 to 5 have their rules on host 0, which is crawled at the same time.
    let away = format!("{}/rules.txt", web.origin(0));
    web.set_document(0, "/rules.txt", Reply::new(200, "text/plain", "User-agent: *\nDisallow: /no\n"));
    for host in 1..6 {
        web.set_robots_reply(host, Reply::redirect(301, &away));
        web.set_document(host, "/", links(["/no".into(), "/yes".into()]));
        web.set_document(host, "/yes", html("yes"));
        web.set_document(host, "/no", html("no"));
    }
    let place = Place::new();
    json(&run(&mut crawl_all(&server, &place, &all_hosts(web), &["--delay", "60ms", "--per-ip", "0"])), 0);
    let seen = Seen::new(&server, 60);
    seen.one_connection_per_host();
    seen.delay_is_kept();
    assert_eq!(requests(&server, 0, "/rules.txt").len(), 5, "once for each host that it rules");
    for host in 1..6 {
        let log = requests_to(&server, host);
        let paths: Vec<&str> = log.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(paths, ["/robots.txt", "/", "/yes"], "host {host}");
        let rules = requests(&server, 0, "/rules.txt");
        assert!(rules.iter().any(|r| r.end_us <= log[1].start_us), "host {host}: judged without rules");
    }
}

#[test]
fn rules_that_lead_nowhere_close_the_host_and_end() {
    let closed_port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    for away in [
        // A name that does not exist, an address nobody listens at, a host that is itself out of order.
        "http://nowhere.invalid/robots.txt".to_string(),
        format!("http://127.0.0.1:{closed_port}/robots.txt"),
        "http://h4.sim.test:PORT/broken.txt".to_string(),
    ] {
        let latency = Latency { min_ms: 1, max_ms: 60, ..Latency::default() };
        let server = serve(WebConfig { latency, ..WebConfig::plain(5, 3) });
        let web = server.web();
        let away = away.replace("PORT", &server.addr().port().to_string());
        web.set_document(4, "/broken.txt", Reply::new(500, "text/plain", "out of order"));
        // Several hosts, at different times: the later ones find the other host known to be down.
        (0..4).for_each(|host| web.set_robots_reply(host, Reply::redirect(302, &away)));
        let place = Place::new();
        let mut command = crawl_all(&server, &place, &all_hosts(web)[..4], &["--delay", "10ms"]);
        with_config(&mut command, &place, IMPATIENT);
        let result = json(&run_within(&mut command, Duration::from_secs(40)), 1);
        assert_eq!(result["held"]["robots_unreachable"]["urls"], 4, "{away}: {}", result["held"]);
        assert!(server.log().iter().all(|e| ["/robots.txt", "/broken.txt"].contains(&&*e.path)), "{:?}", server.log());
        Seen::new(&server, 10).delay_is_kept();
    }
}

#[test]
fn half_a_file_of_rules_is_no_rules() {
    use std::io::{Read, Write};
    // Says that more is to come, sends the permissive half, and hangs up.
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let (say, heard) = std::sync::mpsc::channel::<String>();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let n = stream.read(&mut request).unwrap_or(0);
            let line = String::from_utf8_lossy(&request[..n]).lines().next().unwrap_or_default().to_string();
            let _ = say.send(line);
            let half = "User-agent: *\nAllow: /\n";
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4000\r\n\r\n{half}");
        }
    });
    let place = Place::new();
    let mut command = rhumb();
    command
        .args(["crawl", "--json", "--no-sitemaps", "--delay", "10ms", &format!("http://{address}/")])
        .arg("--dir")
        .arg(&place.dir);
    with_config(&mut command, &place, IMPATIENT);
    let result = json(&run_within(&mut command, Duration::from_secs(30)), 1);
    assert_eq!(result["held"]["robots_unreachable"]["urls"], 1, "{}", result["held"]);
    let lines: Vec<String> = heard.try_iter().collect();
    assert!(lines.iter().all(|l| l.starts_with("GET /robots.txt ")), "{lines:?}");
}

#[test]
fn a_delay_beyond_reason_parks_the_host() {
    let server = serve(WebConfig::plain(2, 3));
    server.web().set_robots(0, "User-agent: *\nCrawl-delay: 86400\n");
    let place = Place::new();
    let status = json(&run(&mut crawl_all(&server, &place, &all_hosts(server.web()), &["--delay", "10ms"])), 0);
    assert_eq!(status["pages"], 3);
    assert_eq!(requests_to(&server, 0).len(), 1, "its robots.txt and no more");
}

// ---- "too many requests" ---------------------------------------------------------------------------------

#[test]
fn a_host_that_asks_for_less_is_left_alone_and_others_are_not() {
    let server = serve(WebConfig { page_bytes: 1_000, ..WebConfig::plain(6, 30) });
    let web = server.web();
    let until = SystemTime::now() + Duration::from_secs(4);
    let date = httpdate::fmt_http_date(until);
    let busy = |status, retry_after: Option<&str>| {
        let reply = Reply::new(status, "text/plain", "busy");
        retry_after.map_or(reply.clone(), |value| reply.with_header("Retry-After", value))
    };
    let refusals =
        [busy(429, Some("2")), busy(503, Some(&date)), busy(503, Some("0")), busy(429, Some("soon")), busy(503, None)];
    for (host, refusal) in (0..).zip(&refusals) {
        // The first of three pages is refused, the others must wait with it.
        web.set_document(host, "/", links(["/busy".into(), "/second".into(), "/third".into()]));
        web.set_document(host, "/busy", refusal.clone());
        web.set_document(host, "/second", html("second"));
        web.set_document(host, "/third", html("third"));
    }
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "50ms"]);
    with_config(&mut command, &place, "[politeness]\nbackoff_first = \"400ms\"\n");
    let running = Running::start(&mut command);
    for host in 0..refusals.len() as u64 {
        wait_for("a refusal", || !requests(&server, host, "/busy").is_empty());
        web.set_document(host, "/busy", html("at last"));
    }
    running.end();

    let seen = Seen::new(&server, 50);
    seen.delay_is_kept();
    let until_ms = until.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() * 1_000;
    for (host, least_us) in [(0, 2_000_000), (1, 0), (2, 300_000), (3, 300_000), (4, 300_000)] {
        let log = requests_to(&server, host);
        let refused = log.iter().position(|e| e.status == 429 || e.status == 503).expect("a refusal");
        let pause_us = log[refused + 1].start_us - log[refused].end_us;
        assert!(pause_us >= least_us, "host {host} was left alone for {pause_us} µs only");
        if host == 1 {
            assert!(log[refused + 1].start_unix_ms >= until_ms, "host {host} was contacted before the date it gave");
        } else {
            assert!(pause_us <= least_us.max(500_000) + 400_000, "host {host} was left alone for {pause_us} µs");
        }
        let last = requests(&server, host, "/busy");
        assert_eq!(last.last().map(|e| e.status), Some(200), "host {host}: tried again until it was there");
        assert!(log.iter().any(|e| e.path == "/third"), "host {host}: the rest came too");
    }
    // Host 5 was crawled as if it was alone.
    let log = requests_to(&server, 5);
    assert_eq!(log.len(), 31);
    let took_us = log[30].end_us - log[0].start_us;
    assert!(took_us < 31 * 50_000 * 13 / 10, "{took_us} µs");
}

#[test]
fn the_back_off_grows_once_for_each_refusal_and_is_forgotten_after_a_success() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", Reply::new(503, "text/plain", "busy"));
    web.set_document(0, "/next", Reply::new(429, "text/plain", "busy"));
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"]);
    with_config(&mut command, &place, "[politeness]\nbackoff_first = \"300ms\"\n");
    let running = Running::start(&mut command);
    wait_for("three refusals", || requests(&server, 0, "/").len() == 3);
    web.set_document(0, "/", links(["/next".into()]));
    wait_for("a refusal after a success", || !requests(&server, 0, "/next").is_empty());
    web.set_document(0, "/next", html("at last"));
    running.end();

    let pauses = |path: &str| -> Vec<u64> {
        let log = requests(&server, 0, path);
        assert_eq!(log.last().map(|e| e.status), Some(200), "{path}");
        log.windows(2).map(|pair| (pair[1].start_us - pair[0].end_us) / 1_000).collect()
    };
    // Twice as long each time, give or take a quarter; a crowded machine may add some.
    let check = |found: Vec<u64>, expected: &[u64]| {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((expected * 3 / 4..=expected * 5 / 4 + 200).contains(found), "{found} ms, not about {expected}");
        }
    };
    check(pauses("/"), &[300, 600, 1_200]);
    check(pauses("/next"), &[300]);
}

#[test]
fn a_page_that_is_refused_for_ever_is_given_up_and_the_rest_is_crawled() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", links(["/never".into(), "/page".into()]));
    web.set_document(0, "/never", Reply::new(429, "text/plain", "busy"));
    web.set_document(0, "/page", html("page"));
    let place = Place::new();
    let mut command = crawl_all(&server, &place, &all_hosts(web), &["--delay", "10ms"]);
    with_config(&mut command, &place, "[politeness]\nbackoff_first = \"20ms\"\nattempts_rate_limited = 4\n");
    let status = json(&run(&mut command), 0);
    assert_eq!(requests(&server, 0, "/never").len(), 4);
    assert_eq!((&status["outcomes"]["rate_limited"], &status["outcomes"]["ok"]), (&1.into(), &2.into()));
}
