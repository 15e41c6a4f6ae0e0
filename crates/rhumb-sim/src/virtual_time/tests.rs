//! Whole histories: the same twice, complete in a gentle world, and unbroken in capricious ones.

use std::collections::BTreeSet;

use super::simulation::Simulation;
use super::*;
use crate::{Scope, Web};

fn config(seed: u64) -> SimConfig {
    SimConfig { seed, hosts: 40, pages: 12, workers: 6, crashes: 6, ..SimConfig::default() }
}

#[test]
fn a_seed_is_a_history() {
    let first = run(&config(11)).unwrap();
    assert_eq!(first, run(&config(11)).unwrap());
    assert_ne!(first.digest, run(&config(12)).unwrap().digest);
    assert!(first.crashes > 0 && first.robots > 20 && first.checks > first.visits, "{first:?}");
}

/// Where nothing fails for good, the finished URLs are those that the web's own walk reaches, crashes or not.
#[test]
fn a_gentle_world_is_crawled_to_its_ground_truth() {
    for seed in 1..5 {
        let config = SimConfig { whims: Whims::none(), ..config(seed) };
        let web = Web::new(config.web()).unwrap();
        let (story, checker) = Simulation::new(&config).unwrap().play().unwrap();
        let seeds: Vec<String> = (0..16).map(|i| web.url(i * (40 / 16), 0)).collect();
        let truth = web.reachable(&seeds, Scope::Any, "rhumb", true);
        let all: BTreeSet<String> = [truth.pages, truth.redirects, truth.missing, truth.errors, truth.disallowed]
            .into_iter()
            .flatten()
            .collect();
        let finished: BTreeSet<String> = checker.finished_urls().collect();
        assert_eq!(finished.symmetric_difference(&all).next(), None, "seed {seed}");
        assert_eq!(story.pages, story.web_pages, "every page of every host is reached");
        assert!(story.finished && story.crashes > 0, "{story:?}");
    }
}

#[test]
fn capricious_worlds_break_no_promise() {
    let seeds = if cfg!(debug_assertions) { 0..40 } else { 0..400 };
    let mut sum = Story::default();
    for seed in seeds {
        let story = run(&config(seed)).unwrap_or_else(|e| panic!("{e}"));
        assert!(story.finished);
        sum.torn += story.torn;
        sum.rebuilt += story.rebuilt;
        sum.retries += story.retries;
        sum.dropped += story.dropped;
        sum.checkpoints += story.checkpoints;
        sum.holds += story.holds;
        sum.held += story.held;
        sum.resumed += story.resumed;
    }
    assert!(sum.torn > 20 && sum.rebuilt > 5 && sum.retries > 100 && sum.dropped > 100, "{sum:?}");
    assert!(sum.holds > 100 && sum.held > 100 && sum.resumed > 10, "{sum:?}");
}

/// Little credit, and nothing else that could go wrong: what is left in the end is held for that, and only that.
#[test]
fn what_is_over_budget_is_held_and_not_lost() {
    let mut held = 0;
    for seed in 0..if cfg!(debug_assertions) { 20 } else { 200 } {
        let config = SimConfig { whims: Whims { tight_budgets_share: 1.0, ..Whims::none() }, ..config(seed) };
        let story = run(&config).unwrap_or_else(|e| panic!("{e}"));
        assert!(story.finished && story.pages <= story.web_pages);
        held += story.held;
    }
    assert!(held > 100, "{held} URLs are held");
}

/// A third of the web is dead: the rest is crawled as if it were alone, and whoever is dead is not asked more often than promised.
#[test]
fn a_web_of_dead_hosts() {
    for seed in 0..if cfg!(debug_assertions) { 10 } else { 100 } {
        let config = SimConfig { whims: Whims { dead_share: 0.33, ..Whims::default() }, hosts: 100, ..config(seed) };
        let story = run(&config).unwrap_or_else(|e| panic!("{e}"));
        assert!(story.finished && story.held > 10, "{story:?}");
    }
}

#[test]
fn files_on_a_real_disk_tell_the_same_story() {
    let dir = tempfile::tempdir().unwrap();
    let config = SimConfig { hosts: 15, ..config(7) };
    let in_memory = run(&config).unwrap();
    assert_eq!(in_memory, run(&SimConfig { dir: Some(dir.path().to_path_buf()), ..config }).unwrap());
}

/// Seed 20: rules that another host served, after a redirect, did not wind the clock of the host they rule, and its first page came
/// before the Crawl-delay was over.
#[test]
fn a_crawl_delay_from_elsewhere_counts_at_once() {
    (0..60).for_each(|seed| unbroken(config(seed)));
}

/// Seed 1017: the Crawl-delay is longer than we would keep, so the host is parked until its rules expire. A failed look-up replaced
/// that by an hour, and a 304 at the end renewed the rules but not the parking.
#[test]
fn a_parked_host_stays_parked() {
    let whims = Whims { robots_redirected_share: 0.0, robots_parking_share: 0.02, ..Whims::default() };
    let large = |seed| SimConfig { hosts: 300, whims: whims.clone(), ..config(seed) };
    (1_010..1_020).for_each(|seed| unbroken(large(seed)));
}

/// Seed 3: a host kept an idle connection to one address, its name was looked up again and gave another. The visit was counted at
/// neither, and the connection stayed counted at the old one for ever.
#[test]
fn an_address_that_changes_is_given_back() {
    for seed in 0..20 {
        let whims = Whims { round_robin_share: 0.3, robots_redirected_share: 0.0, ..Whims::default() };
        unbroken(SimConfig { whims, crashes: 0, ..config(seed) });
    }
}

fn unbroken(config: SimConfig) {
    run(&config).unwrap_or_else(|e| panic!("{e}"));
}
