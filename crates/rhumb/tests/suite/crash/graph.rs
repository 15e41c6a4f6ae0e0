//! The link graph on disks that fail: the old graph or the new one is there afterwards, never half of one; and a crawl whose graph cannot
//! be written goes on all the same.
//!
//! A plain run takes a sample of all operations that can go wrong; `RHUMB_FULL=1` takes every one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rhumb_core::url::Fingerprint;
use rhumb_graph::code::Effort;
use rhumb_graph::level::DIR;
use rhumb_graph::query::Way;
use rhumb_graph::store::{self, Graph};
use rhumb_sim::{FailingDisk, Failure, WebConfig};
use rhumb_store::Result;
use rhumb_store::disk::{Disk, Overlay, RealDisk};

use super::{Mounted, from_env};
use crate::common::{Place, crawl, json, rhumb, run, serve};
use crate::links::{exported, logged};

const PAGES: u32 = 24;
const ROUNDS: u32 = 10;

type Links = BTreeMap<u32, BTreeSet<u32>>;

fn url(n: u32) -> String {
    format!("https://h{}.example/{n}", n % 5)
}

fn open(disk: &Arc<dyn Disk>) -> Result<Graph> {
    Graph::open(disk.clone(), |url| Fingerprint::of(url).0)
}

/// The pages that are visited in a round, with their links: new ones, and some again.
fn visits(round: u32) -> Vec<(u32, Vec<u32>)> {
    let pages = [round * 2, round * 2 + 1, round / 2, round * 7 % PAGES];
    pages.iter().map(|&page| (page % PAGES, (1..6).map(|i| (page * i + round) % PAGES).collect())).collect()
}

/// What is known after so many rounds.
fn known(rounds: u32) -> Links {
    let visits = (0..rounds).flat_map(visits);
    visits.map(|(page, links)| (page, links.into_iter().collect())).collect()
}

/// Everything that the graph says, asked both ways.
fn said(graph: &Graph, what: &str) -> Links {
    let listed = |page: u32, way: Way| -> BTreeSet<String> {
        let Some(standing) = graph.find(&url(page)) else { return BTreeSet::new() };
        let (found, more) = graph.neighbours(&standing, way).after(None, 1000);
        assert!(!more);
        found.into_iter().map(|(place, _)| graph.url(place)).collect()
    };
    let mut links = Links::new();
    for page in 0..PAGES {
        let out = listed(page, Way::Out);
        for to in 0..PAGES {
            let leads = out.contains(&url(to));
            assert_eq!(listed(to, Way::In).contains(&url(page)), leads, "{what}: {page} to {to}");
            if leads {
                links.entry(page).or_default().insert(to);
            }
        }
    }
    links
}

/// Goes through the rounds from `from` on; with `tries`, what fails is done again. The rounds that were done.
fn go_on(disk: &Arc<dyn Disk>, from: u32, tries: u32) -> (u32, Result<Graph>) {
    let mut graph = match open(disk) {
        Ok(graph) => graph,
        Err(e) => return (from, Err(e)),
    };
    let again = |graph: &mut Graph, act: &dyn Fn(&mut Graph) -> Result<()>| {
        let first = act(graph);
        (0..tries).fold(first, |done, _| if done.is_err() { act(graph) } else { done })
    };
    for round in from..ROUNDS {
        for (page, links) in visits(round) {
            assert!(graph.page(&url(page), u64::from(round) + 1));
            links.iter().for_each(|&to| graph.link(&url(to)));
        }
        let flushed = again(&mut graph, &|graph| graph.flush(Effort::Fast));
        let merged = flushed.and_then(|()| {
            again(&mut graph, &|graph| {
                while graph.merge(Effort::Fast)? {}
                Ok(())
            })
        });
        if let Err(e) = merged {
            return (round, Err(e));
        }
    }
    match again(&mut graph, &|graph| graph.settle(Effort::Fast)) {
        Ok(()) => (ROUNDS, Ok(graph)),
        Err(e) => (ROUNDS, Err(e)),
    }
}

fn in_memory() -> Arc<dyn Disk> {
    Overlay::new(RealDisk::new(Path::new("/no/such/directory")))
}

/// The graph on a disk is whole, and knows what some number of rounds brought: this number.
fn rounds_on(disk: &Arc<dyn Disk>, done: u32, what: &str) -> u32 {
    let damage = store::verify(&**disk).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(damage.is_empty(), "{what}: {damage:?}");
    let graph = open(disk).unwrap_or_else(|e| panic!("{what}: {e}"));
    let said = said(&graph, what);
    let rounds = [done, done + 1].into_iter().find(|&rounds| said == known(rounds));
    rounds.unwrap_or_else(|| panic!("{what}: neither the old graph nor the new one"))
}

fn every_nth_operation(failure: Failure) {
    let counting = FailingDisk::new(in_memory(), 0, failure);
    let (_, undisturbed) = go_on(&(counting.clone() as Arc<dyn Disk>), 0, 0);
    assert_eq!(said(&undisturbed.expect("an undisturbed graph"), "undisturbed"), known(ROUNDS));
    let operations = counting.operations();
    let merges =
        counting.journal().iter().filter(|line| line.starts_with("create") && line.ends_with("-0.tmp")).count();
    assert!(merges >= 3 || failure == Failure::Unreadable, "{merges} merges");
    let step = if from_env("RHUMB_FULL", 0) == 0 { (operations / 60).max(1) } else { 1 };
    let mut stopped = 0;
    for n in (1..=operations).step_by(step as usize) {
        let what = format!("{failure:?} at operation {n} of {operations}");
        let below = in_memory();
        let failing: Arc<dyn Disk> = FailingDisk::new(below.clone(), n, failure);
        let (done, ended) = go_on(&failing, 0, 0);
        stopped += u32::from(ended.is_err());
        // Whoever writes next goes on from what is there, and leaves no rubbish.
        let from = rounds_on(&below, done, &what);
        let (_, ended) = go_on(&below, from, 0);
        let graph = ended.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(said(&graph, &what), known(ROUNDS), "{what}");
        let files = below.list(DIR).expect("listed");
        assert_eq!(files.len(), 5, "{what}: {files:?}");

        if matches!(failure, Failure::Fail | Failure::Unreadable) {
            // The same process tries again: nothing is lost or there twice.
            let failing: Arc<dyn Disk> = FailingDisk::new(in_memory(), n, failure);
            if let (_, Ok(graph)) = go_on(&failing, 0, 1) {
                assert_eq!(said(&graph, &what), known(ROUNDS), "{what}: tried again");
            }
        }
    }
    println!("{failure:?}: {stopped} graphs of {operations} operations stopped");
    assert!(stopped > 20, "most of these operations matter");
}

#[test]
fn a_failed_write_leaves_the_old_graph_or_the_new_one() {
    every_nth_operation(Failure::Fail);
}

#[test]
fn a_torn_write_leaves_the_old_graph_or_the_new_one() {
    every_nth_operation(Failure::Tear);
}

#[test]
fn a_full_disk_leaves_the_old_graph_or_the_new_one() {
    every_nth_operation(Failure::Full);
}

#[test]
fn a_failed_read_leaves_the_old_graph_or_the_new_one() {
    every_nth_operation(Failure::Unreadable);
}

/// Makes it possible again; what has to stay mounted for that is given back.
type Mend = Box<dyn FnOnce() -> Option<Mounted>>;

/// A crawl whose graph cannot be written ends as it would have ended, with a line that says so; the graph is made later.
fn goes_on_without(spoil: impl FnOnce(&Path) -> Option<Mend>, holds: &str) {
    let server = serve(WebConfig::plain(4, 12));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let more = [&seed, "--scope", "any", "--delay", "0s", "--per-ip", "0"];
    let limited = [&more[..], &["--limit", "5"]].concat();
    json(&run(&mut crawl(&server, &place.dir, &limited)), 0);
    std::fs::remove_dir_all(place.dir.join(DIR)).expect("removed");
    let Some(mend) = spoil(&place.dir.join(DIR)) else { return };

    let unlimited = [&more[..], &["--limit", "100000"]].concat();
    let output = run(&mut crawl(&server, &place.dir, &unlimited));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    json(&output, 0);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(holds) && stderr.contains("rhumb graph build"), "{stderr}");
    let truth = server.web().reachable(&[&seed], rhumb_sim::Scope::Any, "rhumb", false);
    assert_eq!(super::Facts::read(&place.dir).expect("a sound log").pages, truth.pages);
    // Whoever asks reads the log, and `status` finds nothing to complain about.
    let asked = json(&run(rhumb().args(["links", "--json"]).arg(&place.dir).args(["--to", &seed])), 0);
    let expected = logged(&place.dir);
    assert_eq!(asked["total"], expected.iter().filter(|(_, to)| *to == seed).count());
    json(&run(rhumb().args(["status", "--check", "--json"]).arg(&place.dir)), 0);

    let _mounted = mend();
    json(&run(rhumb().args(["graph", "build", "--json"]).arg(&place.dir)), 0);
    assert!(place.dir.join("graph/levels").is_file());
    assert_eq!(exported(&place.dir), expected);
}

#[test]
fn a_crawl_goes_on_where_a_file_is_in_the_way_of_its_graph() {
    let spoil = |graph: &Path| {
        std::fs::write(graph, "in the way").expect("written");
        let graph = graph.to_path_buf();
        Some(Box::new(move || {
            std::fs::remove_file(graph).expect("removed");
            None
        }) as Mend)
    };
    goes_on_without(spoil, "could not make directory graph");
}

#[test]
fn a_crawl_goes_on_where_its_graph_has_no_space() {
    let spoil = |graph: &Path| {
        let mounted = Mounted::new(graph, "8k")?;
        Some(Box::new(move || {
            mounted.grow("64m");
            Some(mounted)
        }) as Mend)
    };
    goes_on_without(spoil, "No space left on device");
}

#[test]
fn a_crawl_goes_on_where_its_graph_is_read_only() {
    let spoil = |graph: &Path| {
        let mounted = Mounted::new(graph, "64k")?;
        let remount = |how: &str, graph: &Path| Command::new("mount").args(["-o", how]).arg(graph).status();
        assert!(remount("remount,ro", graph).is_ok_and(|status| status.success()));
        Some(Box::new(move || {
            drop(mounted);
            None
        }) as Mend)
    };
    goes_on_without(spoil, "Read-only file system");
}
