//! What dead hosts, sick hosts and traps cost, and what they do not stop: small webs in virtual time, one visit at a time.

use std::collections::BTreeMap;

use rhumb_store::codec::Take;
use rhumb_store::disk::RealDisk;
use rhumb_store::table::TableConfig;

use super::budget::BudgetConfig;
use super::*;
use crate::url::Url;
use crate::visit::{LinkKind, Outlink, VisitRecord};

fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

const MINUTE_MS: u64 = 60_000;

fn config() -> FrontierConfig {
    FrontierConfig { back_queues: 8, back_queues_max: 16, per_address: 0, ..FrontierConfig::default() }
}

/// A frontier, and every contact it made.
struct Play {
    _dir: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    config: FrontierConfig,
    frontier: Frontier,
    now: Timestamp,
    /// When each host was contacted, and with which outcome.
    contacts: BTreeMap<String, Vec<(u64, Outcome)>>,
    drops: Vec<Outcome>,
    lookups: usize,
    memory_bytes_max: u64,
}

impl Play {
    fn new(config: FrontierConfig) -> Play {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let frontier = Frontier::new(disk.clone(), config.clone(), Prioritizer::default(), 1).expect("new");
        Play {
            _dir: dir,
            disk,
            config,
            frontier,
            now: Timestamp(1_000_000),
            contacts: BTreeMap::new(),
            drops: Vec::new(),
            lookups: 0,
            memory_bytes_max: 0,
        }
    }

    fn admit(&mut self, text: &str) {
        self.frontier.admit(&Entry::new(url(text), 1)).expect("admit");
    }

    /// Answers questions for names; false if there were none.
    fn resolve(&mut self) -> bool {
        let hosts = self.frontier.take_unresolved();
        self.lookups += hosts.len();
        for host in &hosts {
            let address: Arc<[IpAddr]> = Arc::from([IpAddr::from([192, 0, 2, 1])]);
            let known = !host.name().starts_with("nodns");
            let found = if known { Ok((address, self.now.plus_ms(3_600_000))) } else { Err(Outcome::DnsFailed) };
            self.frontier.resolved(host, found, self.now).expect("resolved");
        }
        !hosts.is_empty()
    }

    /// Until there is nothing to do before `until`. `answer` says how a contact ends, for robots.txt too, and adds to the record.
    fn run(&mut self, until: u64, mut answer: impl FnMut(&Url, u64, &mut VisitRecord) -> Outcome) {
        loop {
            self.resolve();
            for host in self.frontier.take_connections_to_close() {
                self.frontier.connection_closed(&host);
            }
            match self.frontier.next_visit(self.now).expect("next") {
                Next::Visit(visit) => {
                    self.frontier.issued(&visit.host, self.now).expect("issued");
                    let ended = self.now.plus_ms(10);
                    let mut record =
                        VisitRecord::bare(visit.entry.clone(), visit.purpose.clone(), self.now, ended, Outcome::Ok);
                    record.outcome = answer(&visit.entry.url, self.now.0, &mut record);
                    record.status = match record.outcome {
                        Outcome::Ok => 200,
                        Outcome::Redirect => 301,
                        Outcome::NotFound => 404,
                        Outcome::ServerError => 500,
                        _ => 0,
                    };
                    if visit.purpose.is_page() {
                        record.retry = self.frontier.will_retry(&record.entry, record.outcome);
                    }
                    let log = self.contacts.entry(visit.host.as_str().to_string()).or_default();
                    log.push((self.now.0, record.outcome));
                    self.frontier.connection_left(&visit.host, false, ended);
                    self.now = ended;
                    self.frontier.finish(&record, None).expect("finish");
                }
                Next::Drop(entry, outcome) => {
                    self.frontier.dropped_in_log(&entry).expect("dropped");
                    self.drops.push(outcome);
                }
                Next::Hold(host, hold) => self.frontier.held_in_log(&host, &hold).expect("held"),
                Next::WaitUntil(_) if self.resolve() => {}
                Next::WaitUntil(at) if at.0 == u64::MAX => {}
                Next::WaitUntil(at) if at.0 > until => return self.now = Timestamp(until),
                Next::WaitUntil(at) => self.now = self.now.max(at),
                Next::Idle => return,
            }
            let figures = self.frontier.figures(self.now);
            self.memory_bytes_max = self.memory_bytes_max.max(figures.memory_bytes);
            while let Some(work) = self.frontier.take_work() {
                self.frontier.finish_work(work.run().expect("merge"));
            }
        }
    }

    fn held(&self, reason: Reason) -> (u64, u64) {
        let count = self.frontier.held()[reason as usize - 1];
        (count.hosts, count.urls)
    }

    /// The crawl is finished, and somebody starts it again a minute later.
    fn start_again(&mut self) {
        self.now = self.now.plus_ms(MINUTE_MS);
        self.frontier.closed(true);
        let (mut body, at) = (Vec::new(), self.now);
        self.frontier.save(&mut body, &mut Vec::new()).expect("save");
        let disk = self.disk.clone();
        self.frontier = Frontier::new(disk, self.config.clone(), Prioritizer::default(), 1).expect("new");
        self.frontier.load(&mut Take::new(&body)).expect("load");
        self.frontier.recover(at);
        self.frontier.opened(at);
    }
}

fn ok(_: &Url, _: u64, record: &mut VisitRecord) -> Outcome {
    record.robots = Some(b"User-agent: *\nDisallow:\n".to_vec().into());
    Outcome::Ok
}

/// Four requests, then one after each of the times in the settings, and none any more. Its URLs are held all the while.
#[test]
fn a_dead_host_costs_a_few_requests_spread_out() {
    for (reason, outcome) in
        [(Reason::NoAnswer, Outcome::ConnectTimeout), (Reason::RobotsUnreachable, Outcome::ServerError)]
    {
        let mut play = Play::new(FrontierConfig { revisit_ms: Some(u64::MAX / 2), ..config() });
        (0..50).for_each(|i| play.admit(&format!("http://dead.example/{i}")));
        play.run(100 * 86_400_000, |_, _, _| outcome);
        let times: Vec<u64> = play.contacts["http://dead.example"].iter().map(|(at, _)| *at).collect();
        assert_eq!(times.len(), 4 + play.config.probe_ms.len(), "{times:?}");
        for (pair, probe_ms) in times[3..].windows(2).zip(&play.config.probe_ms) {
            let pause = pair[1] - pair[0];
            assert!((probe_ms * 9 / 10..=probe_ms * 12 / 10).contains(&pause), "{pause} ms instead of {probe_ms}");
        }
        assert_eq!((play.held(reason), play.drops.len()), ((1, 50), 0));
        assert_eq!(play.frontier.figures(play.now).back_queues, 0);
    }
}

#[test]
fn a_name_that_cannot_be_resolved_is_asked_for_a_few_times() {
    let mut play = Play::new(config());
    (0..5).for_each(|i| play.admit(&format!("http://nodns.example/{i}")));
    play.run(u64::MAX, ok);
    assert_eq!((play.held(Reason::DnsFailed), play.contacts.len()), ((1, 5), 0));
}

/// One answer and everything goes on: what was held, and what came meanwhile.
#[test]
fn a_host_that_comes_back_is_crawled_to_the_end() {
    let mut play = Play::new(config());
    let alive = |url: &Url, at: u64, record: &mut VisitRecord| match at {
        _ if url.host_str() == "well.example" => ok(url, at, record),
        // Down from the fifth minute on, for half an hour.
        _ if (5 * MINUTE_MS..35 * MINUTE_MS).contains(&(at - 1_000_000)) => Outcome::Refused,
        _ => ok(url, at, record),
    };
    (0..300).for_each(|i| play.admit(&format!("http://sick.example/{i}")));
    (0..3_000).for_each(|i| play.admit(&format!("http://well.example/{i}")));
    play.run(1_000_000 + 20 * MINUTE_MS, alive);
    let (hosts, urls) = play.held(Reason::NoAnswer);
    assert!(hosts == 1 && urls > 100, "{urls} URLs are held");
    (300..400).for_each(|i| play.admit(&format!("http://sick.example/{i}")));
    assert_eq!(play.frontier.figures(play.now).urls_held, urls + 100);
    play.run(u64::MAX, alive);
    assert_eq!((play.held(Reason::NoAnswer), play.frontier.figures(play.now).urls_waiting), ((0, 0), 0));
    let pages = play.contacts["http://sick.example"].iter().filter(|(_, o)| *o == Outcome::Ok).count();
    // One of them may have used up its attempts when the host went down.
    assert!((399..=403).contains(&pages), "{pages} answers");
}

/// Whoever answers for its robots.txt only is held all the same, and less and less often put to the test.
#[test]
fn rules_alone_are_not_enough() {
    let mut play = Play::new(FrontierConfig { revisit_ms: Some(u64::MAX / 2), ..config() });
    (0..5_000).for_each(|i| play.admit(&format!("http://half.example/{i}")));
    play.run(100 * 86_400_000, |url, at, record| match url.path() {
        "/robots.txt" => ok(url, at, record),
        _ => Outcome::Reset,
    });
    let contacts = play.contacts["http://half.example"].len();
    assert!(contacts <= 5 * (play.config.probe_ms.len() + 1), "{contacts} contacts");
    assert_eq!(play.held(Reason::NoAnswer).0, 1);
}

/// A one-shot crawl does not wait for the dead; started again, it asks each of them once.
#[test]
fn a_finished_crawl_that_is_started_again_tries_what_is_held() {
    let mut play = Play::new(config());
    for host in 0..30 {
        (0..20).for_each(|i| play.admit(&format!("http://h{host}.example/some/longer/path/so/that/queues/spill/{i}")));
    }
    play.run(u64::MAX, |_, _, _| Outcome::Refused);
    assert!(play.now.0 < 1_000_000 + 10 * MINUTE_MS, "it took {} ms", play.now.0 - 1_000_000);
    assert_eq!(play.held(Reason::NoAnswer), (30, 600));
    play.contacts.clear();
    play.start_again();
    play.run(u64::MAX, |_, _, _| Outcome::Refused);
    assert_eq!(play.held(Reason::NoAnswer), (30, 600));
    assert!(play.contacts.len() == 30 && play.contacts.values().all(|c| c.len() == 1), "{:?}", play.contacts);
    play.start_again();
    play.run(u64::MAX, ok);
    assert_eq!(play.held(Reason::NoAnswer), (0, 0));
    assert!(play.contacts.values().all(|c| c.len() == 1 + 21), "{:?}", play.contacts);
}

/// Thousands of dead hosts take neither the back queues of the living nor memory.
#[test]
fn the_dead_do_not_crowd_out_the_living() {
    let table = TableConfig { memory_bytes_max: 4_000, filter_bytes_max: 4_000 };
    let small = FrontierConfig { hosts_bytes_max: 20_000, table, block_bytes: 500, front_block_bytes: 500, ..config() };
    let mut play = Play::new(small);
    for host in 0..2_000 {
        (0..3).for_each(|i| play.admit(&format!("http://dead{host}.example/{i}")));
        play.admit(&format!("http://well.example/{host}"));
    }
    let alive = |url: &Url, at: u64, record: &mut VisitRecord| match url.host_str() {
        "well.example" => ok(url, at, record),
        _ => Outcome::Refused,
    };
    play.run(u64::MAX, alive);
    assert_eq!(play.held(Reason::NoAnswer), (2_000, 6_000));
    assert_eq!(play.contacts["http://well.example"].len(), 2_001);
    let most = play.config.memory_bytes_max() as u64;
    assert!(play.memory_bytes_max < most, "{} bytes of {most}", play.memory_bytes_max);
    assert!(play.frontier.figures(play.now).memory_bytes < 60_000, "{:?}", play.frontier.figures(play.now));
}

fn redirect(record: &mut VisitRecord, to: &str) -> Outcome {
    let kind = LinkKind::Redirect;
    record.links = vec![Outlink::bare(url(to), kind, true)];
    Outcome::Redirect
}

/// With a redirect before each page, three duplicates in ten and one link in ten broken, nothing is held back.
#[test]
fn an_honest_site_is_crawled_to_the_end() {
    let mut play = Play::new(config());
    for i in 0..4_000 {
        play.admit(&format!("http://big.example/{i}"));
        play.admit(&format!("https://big.example/{i}"));
    }
    play.run(u64::MAX, |url, at, record| {
        let number: u64 = url.path()[1..].parse().unwrap_or(0);
        match (url.is_https(), number % 10) {
            _ if url.path() == "/robots.txt" => ok(url, at, record),
            (false, _) => redirect(record, &format!("https://big.example/{number}")),
            (true, 0) => Outcome::NotFound,
            (true, 1..4) => {
                record.nothing_new = true;
                Outcome::Ok
            }
            _ => Outcome::Ok,
        }
    });
    assert_eq!(play.frontier.figures(play.now).urls_held, 0, "{:?}", play.frontier.held());
    assert_eq!(play.contacts["https://big.example"].len(), 4_001);
    assert_eq!(play.contacts["http://big.example"].len(), 4_001);
}

/// The same page for ever: a few hundred visits, then one now and then. What was new before does not last for ever.
#[test]
fn a_trap_is_stopped() {
    let trap = |useful: u64| {
        let mut play = Play::new(FrontierConfig { delay_ms_min: 0, ..config() });
        (0..6_000).for_each(|i| play.admit(&format!("http://trap.example/{i}")));
        play.run(u64::MAX, |url, at, record| {
            let number: u64 = url.path()[1..].parse().unwrap_or(0);
            record.nothing_new = number > useful;
            ok(url, at, record)
        });
        assert_eq!(play.held(Reason::OverBudget).0, 1);
        play.contacts["http://trap.example"].len() as u64 - 1
    };
    assert!((200..=210).contains(&trap(0)), "{}", trap(0));
    let after = trap(2_000);
    assert!((2_800..=2_810).contains(&after), "{after}");
}

/// Over budget, a page an hour is granted, less often if that brings nothing; something new earns credit again.
#[test]
fn what_is_over_budget_may_become_better() {
    let config = FrontierConfig { revisit_ms: Some(u64::MAX / 2), delay_ms_min: 0, ..config() };
    let mut play = Play::new(config);
    (0..2_000).for_each(|i| play.admit(&format!("http://trap.example/{i}")));
    let day = 86_400_000;
    let useless = |url: &Url, at: u64, record: &mut VisitRecord| {
        record.nothing_new = true;
        ok(url, at, record)
    };
    play.run(2 * day, useless);
    let pages = |play: &Play| play.contacts["http://trap.example"].len();
    let first = pages(&play);
    assert!((204..=212).contains(&first), "{first} visits in two days");
    play.run(20 * day, ok);
    assert_eq!(play.frontier.figures(play.now).urls_held, 0);
    assert!(pages(&play) >= 2_000, "{}", pages(&play));
}

/// Names without end, each with the same page: the domain pays, and then not even robots.txt of a new one is fetched.
#[test]
fn hosts_without_end_cost_what_one_domain_may() {
    let mut play = Play::new(config());
    (0..3_000).for_each(|i| play.admit(&format!("http://h{i}.wild.example/")));
    (0..50).for_each(|i| play.admit(&format!("http://honest.example/{i}")));
    play.run(u64::MAX, |url, at, record| {
        record.nothing_new = url.host_str() != "honest.example";
        ok(url, at, record)
    });
    assert!((1_000..=1_020).contains(&(play.contacts.len() - 1)), "{} hosts were contacted", play.contacts.len());
    assert_eq!(play.contacts["http://honest.example"].len(), 51);
    assert!(play.lookups < 1_040, "{} names were looked up", play.lookups);
    let (hosts, urls) = play.held(Reason::OverBudget);
    assert_eq!(hosts, urls);
    // A few were asked for their rules when the others had used up what there was.
    assert!((3_000..=3_016).contains(&(hosts as usize + play.contacts.len() - 1)), "{hosts} hosts are held");
}

#[test]
fn caps_are_kept() {
    let check = |budget: BudgetConfig, expected: usize| {
        let mut play = Play::new(FrontierConfig { budget, ..config() });
        for (host, page) in (0..20).flat_map(|host| (0..20).map(move |page| (host, page))) {
            play.admit(&format!("http://h{host}.wide.example/{page}"));
        }
        play.run(u64::MAX, ok);
        let pages: usize = play.contacts.values().map(|c| c.len() - 1).sum();
        assert_eq!(pages, expected);
        assert_eq!(play.frontier.figures(play.now).urls_held as usize, 400 - expected);
    };
    let none = BudgetConfig::default();
    check(none.clone(), 400);
    check(BudgetConfig { host_pages_max: 7, ..none.clone() }, 20 * 7);
    check(BudgetConfig { domain_pages_max: 33, ..none.clone() }, 33);
    check(BudgetConfig { host_credit: 0, domain_credit: 0, domain_hosts_max: 0, ..none }, 400);
}

#[test]
fn what_a_visit_is_worth() {
    let check = |outcome: Outcome, retry: bool, known_at: Option<&str>, to: &str, expected: Useful| {
        let entry = Entry::new(url("http://www.a.example/x"), 1);
        let mut record = VisitRecord::bare(entry, Purpose::Page, Timestamp(1), Timestamp(2), outcome);
        record.retry = retry;
        record.nothing_new = known_at == Some("said before");
        record.duplicate_of = known_at.map(Into::into);
        if outcome == Outcome::Redirect {
            redirect(&mut record, to);
        }
        assert_eq!(usefulness(&record), expected, "{outcome:?} {known_at:?} {to}");
    };
    check(Outcome::Ok, false, None, "", Useful::New);
    check(Outcome::Ok, false, Some("http://www.a.example/x"), "", Useful::Neither);
    check(Outcome::Ok, false, Some("http://a.example/y"), "", Useful::Nothing);
    check(Outcome::Ok, false, Some("http://b.example/y"), "", Useful::New);
    check(Outcome::Ok, false, Some("said before"), "", Useful::Nothing);
    check(Outcome::NotModified, false, None, "", Useful::Neither);
    check(Outcome::Redirect, false, None, "https://a.example/x", Useful::RedirectWithin);
    check(Outcome::Redirect, false, None, "https://b.example/x", Useful::RedirectAway);
    check(Outcome::NotFound, false, None, "", Useful::Nothing);
    check(Outcome::ServerError, true, None, "", Useful::Neither);
    check(Outcome::ServerError, false, None, "", Useful::Nothing);
    check(Outcome::Refused, false, None, "", Useful::Neither);
}

/// Half a megabyte of rules for each of many hosts that all have a back queue: the rules stay on disk and are still obeyed.
#[test]
fn large_rules_do_not_fill_the_memory() {
    let wide = FrontierConfig { back_queues: 60, back_queues_max: 60, hosts_bytes_max: 100_000, ..config() };
    let mut play = Play::new(wide);
    let mut rules = b"User-agent: *\nDisallow: /no\n".to_vec();
    (0..8_000).for_each(|i| rules.extend_from_slice(format!("Disallow: /forbidden/{i:030}/\n").as_bytes()));
    for (host, page) in
        (0..60).flat_map(|host| ["a", "no/b", "c", "forbidden/000000000000000000000000000077/x"].map(|p| (host, p)))
    {
        play.admit(&format!("http://h{host}.example/{page}"));
    }
    play.run(u64::MAX, |_, _, record| {
        record.robots = Some(rules.clone().into());
        Outcome::Ok
    });
    assert_eq!(play.contacts.values().map(Vec::len).sum::<usize>(), 60 * 3);
    assert_eq!(play.drops, [Outcome::RobotsDisallowed; 120]);
    // Without the settled part of the table, which has a bound of its own.
    let most = play.config.memory_bytes_max() as u64;
    assert!(play.memory_bytes_max < most.min(12 << 20), "{} bytes of {most}", play.memory_bytes_max);
}
