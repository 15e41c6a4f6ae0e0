//! The frontier against a small, capricious web in virtual time, with crashes.
//!
//! A driver plays engine and web: it asks for visits, answers them after a while, in any order, with whatever
//! outcome the random sequence says, and now and then throws the frontier away and restores it from the last
//! checkpoint and the records since. After every step the invariants are checked.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rhumb_store::codec::Take;
use rhumb_store::disk::RealDisk;
use rhumb_store::table::{TableConfig, TableWork};

use super::host::HostState;
use super::*;
use crate::url::Url;
use crate::visit::{LinkKind, Outlink, VisitRecord};

const DELAY_MS: u64 = 1_000;

fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

fn config() -> FrontierConfig {
    FrontierConfig {
        back_queues: 4,
        back_queues_max: 6,
        delay_ms_min: DELAY_MS,
        per_address: 2,
        robots_ms_max: 600_000,
        block_bytes: 200,
        front_block_bytes: 200,
        // Little room, so that hosts come and go.
        hosts_bytes_max: 2_000,
        table: TableConfig { memory_bytes_max: 600, filter_bytes_max: 100 },
        ghosts_max: 10,
        ..FrontierConfig::default()
    }
}

struct Driver {
    disk: Arc<dyn Disk>,
    _dir: tempfile::TempDir,
    frontier: Frontier,
    random: Random,
    now: Timestamp,
    workers: usize,
    flying: Vec<(Timestamp, Box<Visit>, Timestamp)>,
    /// What the log would hold since the checkpoint.
    log: Vec<Logged>,
    checkpoint: Vec<u8>,
    /// The server's side: when each host's last contact ended, and how long the next must wait.
    quiet_until: BTreeMap<String, Timestamp>,
    busy_hosts: BTreeSet<String>,
    connections: BTreeMap<IpAddr, u32>,
    finished: BTreeMap<String, u32>,
    visits: u32,
    holds: u32,
    merging: Option<TableWork>,
}

#[derive(Clone)]
enum Logged {
    Admitted(Entry),
    Issued(Host, Timestamp),
    Dropped(Entry),
    Held(Host, Hold),
    Closed,
    Opened(Timestamp),
    Visited(Box<VisitRecord>),
}

impl Driver {
    fn new(seed: u64) -> Driver {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let mut frontier = Frontier::new(disk.clone(), config(), Prioritizer::default(), seed).expect("new");
        let mut checkpoint = Vec::new();
        frontier.save(&mut checkpoint, &mut Vec::new()).expect("save");
        Driver {
            disk,
            _dir: dir,
            frontier,
            random: Random::new(seed),
            now: Timestamp(1_000_000),
            workers: 5,
            flying: Vec::new(),
            log: Vec::new(),
            checkpoint,
            quiet_until: BTreeMap::new(),
            busy_hosts: BTreeSet::new(),
            connections: BTreeMap::new(),
            finished: BTreeMap::new(),
            visits: 0,
            holds: 0,
            merging: None,
        }
    }

    fn chance(&mut self, of_100: u64) -> bool {
        self.random.next() % 100 < of_100
    }

    fn admit(&mut self, text: &str, depth: u32) {
        let entry = Entry::new(url(text), depth);
        self.frontier.admit(&entry).expect("admit");
        self.log.push(Logged::Admitted(entry));
    }

    /// Hosts share three addresses; `none` has none.
    fn resolve(&mut self) {
        for host in self.frontier.take_unresolved() {
            let answer = if host.name().starts_with("none") {
                Err(Outcome::NoHost)
            } else {
                let last = host.name().bytes().map(u32::from).sum::<u32>() % 3;
                let address = IpAddr::from([192, 0, 2, last as u8]);
                Ok((Arc::from([address]), self.now.plus_ms(60_000)))
            };
            self.frontier.resolved(&host, answer, self.now).expect("resolved");
        }
        for host in self.frontier.take_connections_to_close() {
            self.frontier.connection_closed(&host);
        }
    }

    /// Asks until there is nothing to do now; false when the frontier is idle for good.
    fn issue(&mut self) -> bool {
        loop {
            self.resolve();
            if self.flying.len() >= self.workers {
                let landing = self.flying.iter().map(|f| f.0).min();
                self.now = self.now.max(landing.expect("all workers are out"));
                return true;
            }
            match self.frontier.next_visit(self.now).expect("next") {
                Next::Visit(visit) => {
                    let host = visit.host.as_str().to_string();
                    // one_visit_per_host and delay_is_kept, seen from the server.
                    assert!(self.busy_hosts.insert(host.clone()), "two visits of {host} at once");
                    let quiet = self.quiet_until.get(&host).copied().unwrap_or_default();
                    assert!(self.now >= quiet, "{host} was contacted {} ms too early", quiet.ms_since(self.now));
                    let open = self.connections.entry(visit.addresses[0]).or_default();
                    *open += 1;
                    assert!(*open <= config().per_address, "too many connections to {}", visit.addresses[0]);
                    if visit.purpose.is_page() {
                        assert!(!visit.entry.url.path().starts_with("/no"), "{} is forbidden", visit.entry.url);
                    }
                    self.log.push(Logged::Issued(visit.host.clone(), self.now));
                    self.frontier.issued(&visit.host, self.now).expect("issued");
                    let takes = 1 + self.random.next() % 300;
                    self.flying.push((self.now.plus_ms(takes), visit, self.now));
                    self.visits += 1;
                }
                Next::Drop(entry, _) => {
                    self.frontier.dropped_in_log(&entry).expect("dropped");
                    *self.finished.entry(entry.url.as_str().to_string()).or_default() += 1;
                    self.log.push(Logged::Dropped(*entry));
                }
                Next::Hold(host, hold) => {
                    assert_eq!(hold.at, self.now);
                    self.holds += 1;
                    self.frontier.held_in_log(&host, &hold).expect("held");
                    self.log.push(Logged::Held(host, hold));
                }
                Next::WaitUntil(at) if at <= self.now => continue,
                Next::WaitUntil(at) => {
                    let landing = self.flying.iter().map(|f| f.0).min();
                    let next = landing.into_iter().chain([at]).min().expect("one at least");
                    if next.0 == u64::MAX {
                        // Only look-ups or closing connections are awaited, and those were just answered.
                        continue;
                    }
                    self.now = self.now.max(next);
                    return true;
                }
                Next::Idle => return false,
            }
        }
    }

    fn land(&mut self) {
        let due: Vec<usize> = (0..self.flying.len()).filter(|&i| self.flying[i].0 <= self.now).rev().collect();
        for i in due {
            let (_, visit, started) = self.flying.remove(i);
            let host = visit.host.as_str().to_string();
            let mut record =
                VisitRecord::bare(visit.entry.clone(), visit.purpose.clone(), started, self.now, Outcome::Ok);
            let dice = self.random.next() % 100;
            match &visit.purpose {
                Purpose::Robots { hops, .. } if dice < 15 && *hops < 3 => {
                    record.outcome = Outcome::Redirect;
                    record.status = 301;
                    let to = url(&format!("http://h{}.example/robots.txt?{hops}", self.random.next() % 4));
                    record.links = vec![Outlink::bare(to, LinkKind::Redirect, false)];
                }
                Purpose::Robots { .. } if dice < 30 => {
                    record.outcome = Outcome::ServerError;
                    record.status = 500;
                }
                Purpose::Robots { .. } => {
                    record.status = 200;
                    record.robots = Some(b"User-agent: *\nDisallow: /no\nCrawl-delay: 2\n".to_vec().into());
                }
                Purpose::Page => {
                    record.outcome = match dice {
                        0..5 => Outcome::RateLimited,
                        5..12 => Outcome::Reset,
                        12..18 => Outcome::ServerError,
                        _ => Outcome::Ok,
                    };
                    record.status = 200;
                    record.retry = self.frontier.will_retry(&record.entry, record.outcome);
                }
            }
            let kept = self.chance(50);
            let address = visit.addresses[0];
            // The server sees the connection as long as it is kept; here it counts while used.
            *self.connections.entry(address).or_default() -= 1;
            self.frontier.connection_left(&visit.host, kept, self.now);
            self.busy_hosts.remove(&host);
            let gap = DELAY_MS.max(10 * self.now.ms_since(started));
            self.quiet_until.insert(host, self.now.plus_ms(gap));
            if visit.purpose.is_page() && !record.retry {
                *self.finished.entry(record.entry.url.as_str().to_string()).or_default() += 1;
            }
            self.frontier.finish(&record, None).expect("finish");
            self.log.push(Logged::Visited(Box::new(record)));
        }
    }

    fn save(&mut self) {
        self.checkpoint.clear();
        self.frontier.save(&mut self.checkpoint, &mut Vec::new()).expect("save");
        self.log.clear();
        for name in self.frontier.take_garbage() {
            self.disk.remove(&name).expect("remove");
        }
    }

    /// A merge of the host table that was begun some time ago ends, and the next begins.
    fn merge(&mut self) {
        if let Some(work) = self.merging.take() {
            self.frontier.finish_work(work.run().expect("merge"));
        }
        self.merging = self.frontier.take_work();
    }

    /// The process dies: what was flying ends, unseen by us, and the state comes back from disk.
    fn crash(&mut self) {
        for (_, visit, started) in std::mem::take(&mut self.flying) {
            let host = visit.host.as_str().to_string();
            *self.connections.entry(visit.addresses[0]).or_default() -= 1;
            self.busy_hosts.remove(&host);
            self.quiet_until.insert(host, self.now.plus_ms(DELAY_MS.max(10 * self.now.ms_since(started))));
        }
        let mut frontier = Frontier::new(self.disk.clone(), config(), Prioritizer::default(), 7).expect("new");
        frontier.load(&mut Take::new(&self.checkpoint)).expect("load");
        for record in self.log.clone() {
            match record {
                Logged::Admitted(entry) => frontier.admit(&entry).expect("admit"),
                Logged::Issued(host, at) => frontier.issued(&host, at).expect("issued"),
                Logged::Dropped(entry) => frontier.dropped_in_log(&entry).expect("dropped"),
                Logged::Held(host, hold) => frontier.held_in_log(&host, &hold).expect("held"),
                Logged::Closed => frontier.closed(true),
                Logged::Opened(at) => frontier.opened(at),
                Logged::Visited(record) => frontier.finish(&record, None).expect("finish"),
            }
        }
        frontier.recover(self.now);
        self.frontier = frontier;
        self.merging = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 400 }))]

    #[test]
    fn polite_and_complete_over_crashes(seed: u64, crashes in 0u64..6) {
        let mut driver = Driver::new(seed);
        let mut admitted = BTreeSet::new();
        let mut steps = 0;
        for i in 0..60 {
            let host = match driver.random.next() % 20 {
                19 => "none".to_string(),
                n => format!("h{n}"),
            };
            let path = if driver.chance(10) { "no" } else { "p" };
            let text = format!("http://{host}.example/{path}/{i}");
            driver.admit(&text, i % 9);
            admitted.insert(text);
        }
        loop {
            if !driver.issue() {
                // Each URL is finished or held; a finished crawl that is started again asks for those that are held.
                let finished = driver.finished.len() as u64;
                let figures = driver.frontier.figures(driver.now);
                prop_assert_eq!((figures.urls_waiting, figures.urls_held), (0, 60 - finished));
                if figures.urls_held == 0 {
                    break;
                }
                driver.now = driver.now.plus_ms(1_000);
                driver.frontier.closed(true);
                driver.frontier.opened(driver.now);
                driver.log.extend([Logged::Closed, Logged::Opened(driver.now)]);
            }
            driver.land();
            driver.frontier.close_idle_connections(driver.now);
            steps += 1;
            prop_assert!(steps < 20_000, "the crawl does not end: {:?}", driver.frontier.figures(driver.now));
            if driver.chance(5) {
                driver.save();
            }
            if driver.chance(20) {
                driver.merge();
            }
            if driver.chance(crashes) {
                driver.crash();
            }
        }
        // nothing_lost_in_a_crash, and each URL reaches its end exactly once.
        let finished: BTreeSet<String> = driver.finished.keys().cloned().collect();
        prop_assert_eq!(&finished, &admitted);
        prop_assert!(driver.finished.values().all(|&n| n == 1), "{:?}", driver.finished);
        prop_assert_eq!(driver.frontier.figures(driver.now).urls_waiting, 0);
    }
}

#[test]
fn higher_levels_flow_faster_but_none_starves() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let config = FrontierConfig { back_queues: 1, back_queues_max: 1, ..config() };
    let mut frontier = Frontier::new(RealDisk::new(dir.path()), config, Prioritizer::default(), 1).expect("new");
    for i in 0..400 {
        // The first fills the only back queue, so that the others must wait in front.
        let depth = if i % 2 == 0 { 0 } else { 6 };
        frontier.admit(&Entry::new(url(&format!("http://h{i}.example/")), depth)).expect("admit");
    }
    let mut order = Vec::new();
    while order.len() < 100 {
        match frontier.next_visit(Timestamp(0)).expect("next") {
            Next::WaitUntil(_) => {
                for host in frontier.take_unresolved() {
                    order.push(
                        host.name()
                            .trim_start_matches('h')
                            .trim_end_matches(".example")
                            .parse::<u32>()
                            .expect("number"),
                    );
                    frontier.resolved(&host, Err(Outcome::NoHost), Timestamp(0)).expect("resolved");
                }
            }
            Next::Drop(entry, _) => frontier.dropped_in_log(&entry).expect("dropped"),
            other => panic!("unexpected {other:?}"),
        }
    }
    let shallow = order.iter().filter(|&&i| i % 2 == 0).count();
    assert!((40..100).contains(&shallow), "{shallow} of 100 were shallow");
}

#[test]
fn nobody_stands_in_line_at_an_address_twice() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let config = FrontierConfig { per_address: 1, ..config() };
    let mut frontier = Frontier::new(RealDisk::new(dir.path()), config, Prioritizer::default(), 1).expect("new");
    let now = Timestamp(1_000_000);
    let admit = |frontier: &mut Frontier, text: &str| {
        frontier.admit(&Entry::new(url(text), 0)).expect("admit");
        for host in frontier.take_unresolved() {
            let addresses: Arc<[IpAddr]> = Arc::from([IpAddr::from([192, 0, 2, 1])]);
            frontier.resolved(&host, Ok((addresses, now.plus_ms(60_000))), now).expect("resolved");
        }
    };
    let next = |frontier: &mut Frontier| match frontier.next_visit(now).expect("next") {
        Next::Visit(visit) => Some(visit),
        _ => None,
    };
    let end = |frontier: &mut Frontier, visit: Box<Visit>| {
        frontier.connection_left(&visit.host, false, now);
        let mut record = VisitRecord::bare(visit.entry, visit.purpose, now, now, Outcome::NotFound);
        record.status = 404;
        frontier.finish(&record, None).expect("finish");
    };
    admit(&mut frontier, "http://a.example/");
    let first = next(&mut frontier).expect("nobody else is there");
    // More URLs for a host that waits do not give it more turns.
    admit(&mut frontier, "http://b.example/1");
    assert!(next(&mut frontier).is_none());
    admit(&mut frontier, "http://b.example/2");
    assert!(next(&mut frontier).is_none());
    admit(&mut frontier, "http://c.example/");
    assert!(next(&mut frontier).is_none());
    end(&mut frontier, first);
    let second = next(&mut frontier).expect("the place is free");
    assert_eq!(second.host.name(), "b.example");
    end(&mut frontier, second);
    assert_eq!(next(&mut frontier).expect("the place is free again").host.name(), "c.example");
}

/// A page failed, was put back, and the process died. In the replay its first entry still waits in a front queue, while the
/// one to be tried again goes straight to the host's back queue: the wrong one must not be taken for the ghost.
#[test]
fn a_retry_is_told_from_its_ghost() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let config = FrontierConfig { back_queues: 1, delay_ms_min: 0, ..config() };
    let mut frontier =
        Frontier::new(RealDisk::new(dir.path()), config, Prioritizer::default(), 1).expect("a new frontier");
    // The one back queue is somebody else's.
    for text in ["http://192.0.2.1/", "http://192.0.2.2/page"] {
        frontier.admit(&Entry::new(url(text), 0)).expect("admit");
    }
    let failed = Entry::new(url("http://192.0.2.2/page"), 0);
    let mut record = VisitRecord::bare(failed, Purpose::Page, Timestamp(5), Timestamp(6), Outcome::ServerError);
    record.retry = true;
    frontier.finish(&record, None).expect("finish");
    frontier.recover(Timestamp(10));
    let mut attempts = Vec::new();
    for now in (20..2_000).map(Timestamp) {
        let Next::Visit(visit) = frontier.next_visit(now).expect("next") else { continue };
        let mut record = VisitRecord::bare(visit.entry.clone(), visit.purpose.clone(), now, now, Outcome::NotFound);
        record.status = 404;
        frontier.connection_left(&visit.host, false, now);
        frontier.finish(&record, None).expect("finish");
        if visit.entry.url.path() == "/page" {
            attempts.push(visit.entry.attempt);
        }
    }
    assert_eq!(attempts, [1], "the second attempt, once");
    assert_eq!(frontier.figures(Timestamp(2_000)).urls_waiting, 0);
}

/// Nobody saw the end of a contact that was under way when the process died: the host gets the time it usually takes.
#[test]
fn a_lost_contact_keeps_its_pause() {
    let check = |last_ms: Option<u64>, issued: u64, died: u64, expected: u64| {
        let mut state = HostState::new(url("http://a.example/").host(), &config());
        state.fetch_ms_last = last_ms;
        state.lost_contact(Timestamp(issued), Timestamp(died), &config());
        // Whole milliseconds are rounded in the host's favour.
        let allowed = expected..=expected + 20;
        assert!(allowed.contains(&state.contact_after.0), "{last_ms:?}, {issued}, {died}: {:?}", state.contact_after);
    };
    // died + usual + max(minimum, 10 × max(usual, what it took so far))
    check(Some(30), 10_000, 10_005, 10_005 + 30 + DELAY_MS);
    check(Some(300), 10_000, 10_005, 10_005 + 300 + 3_000);
    check(Some(30), 10_000, 10_400, 10_400 + 30 + 4_000);
    check(None, 10_000, 10_005, 10_005 + 500 + 5_000);
}

/// A Crawl-delay longer than we would keep parks the host until its rules expire. A failure in between does not shorten that, and rules
/// that are found unchanged park it again.
#[test]
fn a_parked_host_stays_parked() {
    let rules = crate::robots::RobotsTxt::parse(b"User-agent: *\nCrawl-delay: 9999\n", 1_000).for_agent("rhumb");
    let mut state = HostState::new(url("http://a.example/").host(), &config());
    state.learn(rules, crate::visit::Validators::default(), Timestamp(1_000), &config());
    let parked = Some((Outcome::RobotsDisallowed, Timestamp(601_000)));
    assert_eq!(state.down, parked);
    state.give_up(Outcome::DnsFailed, Timestamp(100_000));
    assert_eq!(state.down, parked, "a failed look-up is over sooner");
    state.down = None;
    state.renew_rules(Timestamp(700_000), &config());
    assert_eq!(state.down, Some((Outcome::RobotsDisallowed, Timestamp(1_300_000))), "the rules are still the same");
}
