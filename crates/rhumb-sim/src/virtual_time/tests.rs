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
    }
    assert!(sum.torn > 20 && sum.rebuilt > 5 && sum.retries > 100 && sum.dropped > 100, "{sum:?}");
}

#[test]
fn files_on_a_real_disk_tell_the_same_story() {
    let dir = tempfile::tempdir().unwrap();
    let config = SimConfig { hosts: 15, ..config(7) };
    let in_memory = run(&config).unwrap();
    assert_eq!(in_memory, run(&SimConfig { dir: Some(dir.path().to_path_buf()), ..config }).unwrap());
}

/// Faults that are known and not mended yet: the seed shows the violation. To be taken off the list, and the allowance out
/// of the checker, with the fault.
fn strictly(config: SimConfig) {
    run(&SimConfig { strict: true, ..config }).unwrap_or_else(|e| panic!("{e}"));
}

/// Seed 20. `Frontier::robots_answered` winds the clock anew for a Crawl-delay only if the host that answered is the one ruled.
#[test]
#[ignore = "known: a Crawl-delay in redirected rules does not count for the first page"]
fn a_crawl_delay_from_elsewhere_counts_at_once() {
    (0..60).for_each(|seed| strictly(config(seed)));
}

/// Seed 1017. The Crawl-delay is longer than we would keep, so the host is `down` until its rules expire. A failed look-up replaces
/// that by an hour, and a 304 at the end renews the rules but not the parking.
#[test]
#[ignore = "known: a parked host is unparked by a failure"]
fn a_parked_host_stays_parked() {
    let whims = Whims { robots_redirected_share: 0.0, robots_parking_share: 0.02, ..Whims::default() };
    let large = |seed| SimConfig { hosts: 300, whims: whims.clone(), ..config(seed) };
    (1_000..1_030).for_each(|seed| strictly(large(seed)));
}

/// Seed 3. A host keeps an idle connection to one address, its name is looked up again and gives another: the visit is counted
/// at the new address, the connection stays counted at the old one for ever, and in the end nobody may dial that.
#[test]
#[ignore = "known: connections are counted at the wrong address after a name has changed"]
fn an_address_that_changes_is_given_back() {
    for seed in 0..20 {
        let whims = Whims { round_robin_share: 0.3, robots_redirected_share: 0.0, ..Whims::default() };
        strictly(SimConfig { whims, crashes: 0, ..config(seed) });
    }
}
