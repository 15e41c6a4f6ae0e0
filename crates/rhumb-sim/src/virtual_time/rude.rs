//! A rude toy crawler: everything it does wrong must be noticed, and what it does right must not.

use super::*;
use crate::virtual_time::world::Whims;
use crate::{Target, Web, WebConfig};

const START: u64 = 1_000_000;

fn checker() -> Checker {
    let web =
        Web::new(WebConfig { hosts: 30, pages: 5, disallow_share: 1.0, no_robots_share: 0.0, ..WebConfig::default() });
    let mut checker = Checker::new(
        World::new(web.unwrap(), Whims::none(), 1),
        FrontierConfig { per_address: 1, ..Default::default() },
    );
    for host in 0..3 {
        let url = checker.urls.id(Target::Page { host, page: 0 }).unwrap();
        checker.learn(&Learnt::Seed { url, at: START }).unwrap();
    }
    checker
}

fn front(checker: &Checker, host: u64) -> u32 {
    checker.urls.id(Target::Page { host, page: 0 }).unwrap()
}

fn rules(checker: &mut Checker, host: u64, ended: u64) {
    let learnt = Learnt::Robots {
        host,
        ruled: host,
        own: true,
        hops: 0,
        ended,
        outcome: Outcome::Ok,
        status: 200,
        version: 0,
        retry_after_ms: None,
    };
    checker.learn(&learnt).unwrap();
}

fn page(checker: &mut Checker, outcome: Outcome, retry: bool, retry_after_ms: Option<u64>, ended: u64) -> Verdict {
    let url = front(checker, 0);
    checker.learn(&Learnt::Page { host: 0, url, ended, outcome, retry_after_ms, retry, found: Vec::new() })
}

/// A polite visit of the front page of host 0: rules first, then a pause, then the page.
fn polite(checker: &mut Checker) -> u64 {
    checker.asks_for_rules(0, START).unwrap();
    checker.contact_ends(0, START, START + 100);
    rules(checker, 0, START + 100);
    let now = START + 100 + 2_000;
    let url = front(checker, 0);
    checker.asks_for_page(0, url, "/", 0, now).unwrap();
    checker.contact_ends(0, now, now + 50);
    now + 50
}

fn invariant(verdict: Verdict) -> &'static str {
    verdict.expect_err("rudeness must be noticed").invariant
}

#[test]
fn politeness_is_not_punished() {
    let mut checker = checker();
    let now = polite(&mut checker);
    page(&mut checker, Outcome::Ok, false, None, now).unwrap();
    assert_eq!(checker.counts(), (3, 1));
}

#[test]
fn two_visits_at_once() {
    let mut checker = checker();
    checker.asks_for_rules(0, START).unwrap();
    assert_eq!(invariant(checker.asks_for_rules(0, START + 60_000)), "one_visit_per_host");
}

#[test]
fn visits_that_come_too_early() {
    let early = |took_ms: u64, pause_ms: u64| {
        let mut checker = checker();
        checker.asks_for_rules(0, START).unwrap();
        checker.contact_ends(0, START, START + took_ms);
        checker.asks_for_rules(0, START + took_ms + pause_ms)
    };
    assert_eq!(invariant(early(100, 1_999)), "delay_is_kept");
    early(100, 2_000).unwrap();
    assert_eq!(invariant(early(1_000, 9_999)), "delay_is_kept");
    early(1_000, 10_000).unwrap();
}

#[test]
fn retry_after_is_not_shortened_by_what_comes_after() {
    let mut checker = checker();
    let now = polite(&mut checker);
    page(&mut checker, Outcome::RateLimited, true, Some(600_000), now).unwrap();
    let mut later = now + 30_000;
    assert_eq!(invariant(checker.asks_for_rules(0, later)), "delay_is_kept");
    page(&mut checker, Outcome::Reset, true, None, later).unwrap();
    later = now + 599_999;
    assert_eq!(invariant(checker.asks_for_rules(0, later)), "delay_is_kept");
    checker.asks_for_rules(0, now + 600_000).unwrap();
}

#[test]
fn crawl_delay_counts() {
    let web = WebConfig {
        hosts: 30,
        crawl_delay_share: 1.0,
        no_robots_share: 0.0,
        crawl_delay_ms_max: 40_000,
        ..WebConfig::default()
    };
    let mut checker = Checker::new(World::new(Web::new(web).unwrap(), Whims::none(), 1), FrontierConfig::default());
    let asked = checker.world.crawl_delay_ms(0, 0);
    assert!(asked >= 10_000);
    checker.asks_for_rules(0, START).unwrap();
    checker.contact_ends(0, START, START + 10);
    rules(&mut checker, 0, START + 10);
    assert_eq!(invariant(checker.asks_for_rules(0, START + 10 + asked - 1)), "delay_is_kept");
    checker.asks_for_rules(0, START + 10 + asked).unwrap();
}

#[test]
fn a_page_without_rules_by_stale_rules_or_against_them() {
    let mut checker = checker();
    let url = front(&checker, 0);
    assert_eq!(invariant(checker.asks_for_page(0, url, "/", 0, START)), "robots_judged_before_fetch");
    rules(&mut checker, 0, START);
    let stale = START + 25 * 3_600_000;
    assert_eq!(invariant(checker.asks_for_page(0, url, "/", 0, stale)), "robots_judged_before_fetch");
    let forbidden = checker.asks_for_page(0, url, "/private/x-1.html", 0, START + 1);
    assert_eq!(invariant(forbidden), "robots_judged_before_fetch");
    checker.asks_for_page(0, url, "/", 0, START + 1).unwrap();
}

#[test]
fn a_page_twice_or_never_found_or_with_a_wrong_count() {
    let mut checker = checker();
    let now = polite(&mut checker);
    let url = front(&checker, 0);
    assert_eq!(invariant(checker.asks_for_page(0, url, "/", 1, now + 3_000)), "each_url_once");
    page(&mut checker, Outcome::Ok, false, None, now).unwrap();
    assert_eq!(invariant(checker.asks_for_page(0, url, "/", 0, now + 3_000)), "each_url_once");
    assert_eq!(invariant(page(&mut checker, Outcome::Ok, false, None, now)), "each_url_once");
    let unknown = checker.urls.id(Target::Missing { host: 0, key: 0 }).unwrap();
    assert_eq!(invariant(checker.asks_for_page(0, unknown, "/missing/", 0, now + 3_000)), "each_url_once");
}

#[test]
fn giving_up_too_soon_or_never() {
    let mut checker = checker();
    let now = polite(&mut checker);
    assert_eq!(invariant(page(&mut checker, Outcome::Reset, false, None, now)), "retries_are_bounded");
    page(&mut checker, Outcome::Reset, true, None, now).unwrap();
    page(&mut checker, Outcome::Reset, true, None, now).unwrap();
    assert_eq!(invariant(page(&mut checker, Outcome::Reset, true, None, now)), "retries_are_bounded");
    let drop = |outcome| Learnt::Dropped { url: 0, host: 1, path: "/".into(), outcome, at: now };
    assert_eq!(invariant(checker.learn(&drop(Outcome::HostDown))), "dropped_for_a_reason");
    rules(&mut checker, 1, now);
    assert_eq!(invariant(checker.learn(&drop(Outcome::RobotsDisallowed))), "dropped_for_a_reason");
}

fn hold(reason: Reason, at: u64, until: Option<u64>) -> Hold {
    Hold { reason, trouble: None, attempts: 4, level: 0, at: Timestamp(at), until: until.map(Timestamp) }
}

fn fails(checker: &mut Checker, at: u64) -> Verdict {
    checker.asks_for_rules(0, at)?;
    checker.contact_ends(0, at, at + 10);
    let learnt = Learnt::Robots {
        host: 0,
        ruled: 0,
        own: true,
        hops: 0,
        ended: at + 10,
        outcome: Outcome::Refused,
        status: 0,
        version: 0,
        retry_after_ms: None,
    };
    checker.learn(&learnt)
}

#[test]
fn a_dead_host_that_is_asked_too_often_or_too_early() {
    let mut checker = checker();
    let minute = |n: u64| START + n * 60_000;
    (0..4).for_each(|n| fails(&mut checker, minute(n)).unwrap());
    assert_eq!(invariant(checker.asks_for_rules(0, minute(4))), "dead_hosts_cost_little");
    checker.learn(&Learnt::Held { host: 0, hold: hold(Reason::NoAnswer, minute(4), Some(minute(10))) }).unwrap();
    assert_eq!(invariant(checker.asks_for_rules(0, minute(9))), "held_hosts_are_left_alone");
    fails(&mut checker, minute(10)).unwrap();
    assert_eq!(invariant(checker.asks_for_rules(0, minute(11))), "held_hosts_are_left_alone");
    // The last probe was the last, until somebody starts the crawl again.
    checker.learn(&Learnt::Held { host: 0, hold: hold(Reason::NoAnswer, minute(12), None) }).unwrap();
    assert_eq!(invariant(checker.asks_for_rules(0, minute(9_999))), "held_hosts_are_left_alone");
    checker.started_again(minute(10_000));
    fails(&mut checker, minute(10_000)).unwrap();
    assert_eq!(invariant(checker.asks_for_rules(0, minute(10_001))), "held_hosts_are_left_alone");
}

#[test]
fn a_host_held_for_nothing_or_for_ever_anew() {
    let mut checker = checker();
    let held = |at| Learnt::Held { host: 0, hold: hold(Reason::NoAnswer, at, None) };
    assert_eq!(invariant(checker.learn(&held(START))), "held_for_a_reason");
    let mut checker = self::checker();
    fails(&mut checker, START).unwrap();
    let probes = checker.promised.probe_ms.len() as u64;
    (0..=probes).for_each(|n| checker.learn(&held(START + n)).unwrap());
    assert_eq!(invariant(checker.learn(&held(START + 99))), "held_for_a_reason");
}

#[test]
fn held_urls_are_counted_and_tried_again() {
    let mut checker = checker();
    fails(&mut checker, START).unwrap();
    checker.learn(&Learnt::Held { host: 0, hold: hold(Reason::NoAnswer, START + 100, None) }).unwrap();
    for host in 1..3 {
        let url = front(&checker, host);
        checker.finish(url, host, START).unwrap();
    }
    assert_eq!(invariant(checker.nothing_lost_in_a_crash(3, 0, START)), "nothing_lost_in_a_crash");
    checker.nothing_lost_in_a_crash(3, 1, START).unwrap();
    checker.started_again(START + 1_000);
    assert_eq!(invariant(checker.nothing_lost_in_a_crash(3, 1, START)), "held_hosts_are_tried_again");
}

#[test]
fn a_crowd_at_one_address() {
    let mut checker = checker();
    checker.connects(0, 4, START).unwrap();
    assert_eq!(invariant(checker.connects(1, 4, START)), "per_address_limit");
    checker.leaves_connection(1, false);
    checker.leaves_connection(0, true);
    assert_eq!(invariant(checker.connects(2, 4, START)), "per_address_limit");
}

#[test]
fn what_is_lost_or_left_lying() {
    let mut checker = checker();
    let now = polite(&mut checker);
    assert_eq!(invariant(checker.nothing_lost_in_a_crash(3, 3, now)), "nothing_lost_in_a_crash");
    let idle = Figures::default();
    checker.progress(now, || idle).unwrap();
    assert_eq!(invariant(checker.progress(now + 2 * PATIENCE_MS, || idle)), "progress");
    for host in 0..3 {
        let url = front(&checker, host);
        checker.finish(url, host, now).unwrap();
    }
    assert_eq!(invariant(checker.nothing_lost_in_a_crash(4, 0, now)), "nothing_lost_in_a_crash");
    checker.nothing_lost_in_a_crash(3, 0, now).unwrap();
    checker.progress(now + 9 * PATIENCE_MS, || idle).unwrap();
}

#[test]
fn tables_that_outgrow_their_bounds() {
    let mut checker = checker();
    let figures = Figures { back_queues: 1 << 20, ..Figures::default() };
    assert_eq!(invariant(checker.memory_is_bounded(&figures, 4, START)), "memory_is_bounded");
    let figures = Figures { memory_bytes: 1 << 40, ..Figures::default() };
    assert_eq!(invariant(checker.memory_is_bounded(&figures, 4, START)), "memory_is_bounded");
    let figures = Figures { in_flight: 5, ..Figures::default() };
    assert_eq!(invariant(checker.memory_is_bounded(&figures, 4, START)), "memory_is_bounded");
}
