//! The text index when things go wrong: writes that fail, SIGKILL at random instants, damaged files. Whatever happens, it answers as if it
//! had been made anew from the log.
//!
//! `RHUMB_KILLS=n` kills more often, `RHUMB_SEED=s` at other instants; `RHUMB_FULL=1` lets every single operation fail.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rhumb_index::Result;
use rhumb_index::arrange::Arrangement;
use rhumb_index::late::{Link, LinkSource};
use rhumb_index::page::{Page, Weights};
use rhumb_index::query::Query;
use rhumb_index::search::{Nothing, Ranking, Request, Snapshot};
use rhumb_index::store::Writer;
use rhumb_sim::{FailingDisk, Failure, Latency, Server, WebConfig};
use rhumb_store::disk::{Disk, Overlay, RealDisk};
use rhumb_store::log::Position;
use serde_json::Value;

use super::kill::run_and_kill;
use super::{Dice, from_env, quick_directory, restore, snapshot};
use crate::common::{Place, crawl, json, rhumb, run, serve};
use crate::search::{facts, search};

// ---- writes that fail ------------------------------------------------------------------------------------------------------

const ROUNDS: u64 = 9;
const WORDS: [&str; 12] = [
    "harbour", "lantern", "meadow", "copper", "violet", "engine", "river", "castle", "orchard", "signal", "marble",
    "forest",
];

/// The pages of a round: new ones, and some again.
fn pages_of(round: u64) -> Vec<(u64, String)> {
    let ids = [round * 3, round * 3 + 1, round * 3 + 2, round / 2];
    let word = |n: u64| WORDS[(n % 12) as usize];
    let text = |id: u64| (0..20).map(|i| word(id * i + i * i / 3 + round)).collect::<Vec<_>>().join(" ");
    ids.iter().map(|id| (*id, format!("{} only{round}x{id}", text(*id)))).collect()
}

/// The page that is gone after a round.
fn gone_after(round: u64) -> u64 {
    round * 5 % 7 + 1
}

/// The pages that there are after so many rounds.
fn known(rounds: u64) -> BTreeSet<u64> {
    let mut known = BTreeSet::new();
    for round in 0..rounds {
        known.extend(pages_of(round).into_iter().map(|(id, _)| id));
        known.remove(&gone_after(round));
    }
    known
}

/// Of a log that has rounds instead of records.
const SEGMENT: u32 = 1_000;

fn rounds_at(position: Position) -> u64 {
    if position.segment == SEGMENT { position.offset } else { 0 }
}

struct Links;

impl LinkSource for Links {
    fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> Result<()> {
        for source in 0..30 {
            each(&Link { source, source_host: source % 4, target: source / 2, text: WORDS[(source % 12) as usize] });
        }
        Ok(())
    }

    fn quality(&mut self, _: &str) -> Option<f32> {
        None
    }

    fn has_ranks(&self) -> bool {
        false
    }
}

/// Goes on from where the index has got to, to the end of the rounds.
fn go_on(disk: &Arc<dyn Disk>) -> Result<()> {
    let mut writer = Writer::open(disk.clone(), Weights::default(), 4 << 20)?;
    let how = Arrangement { shares: vec![0.2], pages_min: 5, ..Arrangement::default() };
    for round in rounds_at(writer.position())..ROUNDS {
        let mut arranging = None;
        if round % 4 == 2 {
            arranging = Some(writer.begin_arranging(&how, round)?.run(&mut Links)?);
        }
        for (id, text) in pages_of(round) {
            let url = format!("http://h{}.example/{id}", id % 4);
            let title = WORDS[(id % 12) as usize];
            writer.add(&Page { id, url: &url, title, text: &text, declared: "en", kind: "html", ..Page::default() })?;
        }
        writer.remove(gone_after(round));
        writer.note_duplicate(round * 3 + 1, round * 3);
        writer.advance(Position { segment: SEGMENT, offset: round + 1 }, None);
        writer.flush()?;
        if let Some(arranged) = arranging {
            writer.finish_arranging(arranged)?;
        }
        while writer.merge()? {}
    }
    writer.settle(&mut Links, &how, ROUNDS)
}

/// A query, the pages that answer it with the bits of their scores, and how many there are.
type Said = (String, Vec<(u64, u64)>, u64);

/// Everything that the index says, word by word.
fn said(disk: &Arc<dyn Disk>) -> Result<Vec<Said>> {
    let index = Snapshot::open(disk.clone())?.expect("an index");
    let asked = WORDS
        .iter()
        .map(|word| word.to_string())
        .chain(["harbour lantern", "\"meadow copper\"", "hx*", "onl*", "-river"].map(str::to_string));
    let mut all = Vec::new();
    for text in asked {
        let query = Query::parse(&text);
        let request = Request { grouped: false, ..Request::new(&query, 100) };
        let (found, plan) = index.search(&request, &Ranking::default(), &Nothing)?;
        for hit in &found.hits {
            index.show(hit, &plan, 100, &Nothing)?;
        }
        let hits = found.hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect();
        all.push((text, hits, found.total));
    }
    for typed in ["harbuor", "lantren", "medow", "onky3x9"] {
        all.push((index.meant(typed)?.unwrap_or_default(), Vec::new(), 0));
    }
    Ok(all)
}

/// The pages that can be found, duplicates too.
fn found(disk: &Arc<dyn Disk>) -> Result<BTreeSet<u64>> {
    let Some(index) = Snapshot::open(disk.clone())? else { return Ok(BTreeSet::new()) };
    let query = Query::parse("site:example dup:");
    let request = Request { grouped: false, ..Request::new(&query, 1_000) };
    let (found, _) = index.search(&request, &Ranking::default(), &Nothing)?;
    Ok(found.hits.iter().map(|hit| hit.id).collect())
}

fn in_memory() -> Arc<dyn Disk> {
    Overlay::new(RealDisk::new(Path::new("/no/such/directory")))
}

fn every_nth_operation(failure: Failure) {
    let below = in_memory();
    let counting = FailingDisk::new(below.clone(), 0, failure);
    go_on(&(counting.clone() as Arc<dyn Disk>)).expect("an undisturbed index");
    let expected = said(&below).expect("it answers");
    assert!(expected.iter().filter(|(_, hits, _)| hits.len() > 3).count() > 10, "{expected:?}");
    let operations = counting.operations();
    let step = if from_env("RHUMB_FULL", 0) == 0 { (operations / 50).max(1) } else { 1 };
    let mut stopped = 0;
    for n in (1..=operations).step_by(step as usize) {
        let what = format!("{failure:?} at operation {n} of {operations}");
        let below = in_memory();
        let failing: Arc<dyn Disk> = FailingDisk::new(below.clone(), n, failure);
        stopped += u64::from(go_on(&failing).is_err());
        drop(failing);
        // What is there is whole, and is what some number of rounds brought.
        let damage = rhumb_index::verify(&below).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(damage.is_empty(), "{what}: {damage:?}");
        let list = rhumb_index::manifest::Manifest::load(&*below).expect("a list that reads");
        let rounds = list.map_or(0, |list| rounds_at(list.position));
        assert_eq!(found(&below).unwrap_or_else(|e| panic!("{what}: {e}")), known(rounds), "{what}");
        // Whoever writes next goes on from there, and leaves no rubbish.
        go_on(&below).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(said(&below).unwrap_or_else(|e| panic!("{what}: {e}")), expected, "{what}");
        let list = rhumb_index::manifest::Manifest::load(&*below).expect("a list").expect("there is one");
        for name in below.list("index").expect("listed") {
            let number = name.get(..6).and_then(|digits| digits.parse::<u32>().ok());
            assert!(number.is_none_or(|n| list.parts.iter().any(|part| part.number == n)), "{what}: {name}");
        }
    }
    println!("{failure:?}: {stopped} indexes of {operations} operations stopped");
    assert!(stopped > 15, "most of these operations matter: {stopped}");
}

#[test]
fn a_failed_write_loses_nothing_of_the_index() {
    every_nth_operation(Failure::Fail);
}

#[test]
fn a_torn_write_loses_nothing_of_the_index() {
    every_nth_operation(Failure::Tear);
}

#[test]
fn a_full_disk_loses_nothing_of_the_index() {
    every_nth_operation(Failure::Full);
}

#[test]
fn a_failed_read_loses_nothing_of_the_index() {
    every_nth_operation(Failure::Unreadable);
}

/// The words that were asked for are those of the pages, however these were spread over bands.
#[test]
fn words_are_counted_once_however_pages_are_spread() {
    let meant = |shares: Vec<f64>| {
        let disk = in_memory();
        let mut writer = Writer::open(disk.clone(), Weights::default(), 4 << 20).expect("opened");
        for round in 0..ROUNDS {
            for (id, text) in pages_of(round) {
                let url = format!("http://h.example/{id}");
                writer.add(&Page { id, url: &url, text: &text, declared: "en", ..Page::default() }).expect("added");
            }
            if round % 2 == 0 {
                writer.flush().expect("flushed");
            }
        }
        let how = Arrangement { shares, pages_min: 1, ..Arrangement::default() };
        writer.settle(&mut Links, &how, 1).expect("settled");
        let index = Snapshot::open(disk).expect("opened").expect("an index");
        index.starting_with("", 1_000).expect("words")
    };
    let once = meant(Vec::new());
    assert!(once.len() > 20, "{once:?}");
    assert_eq!(meant(vec![0.1, 0.5]), once);
}

// ---- SIGKILL ---------------------------------------------------------------------------------------------------------------

fn web() -> WebConfig {
    WebConfig {
        hosts: 12,
        pages: 40,
        pages_exact: true,
        page_bytes: 6_000,
        links: 12,
        latency: Latency { min_ms: 0, max_ms: 5, slow_share: 0.0, slow_ms: 0 },
        error_share: 0.01,
        unavailable_share: 0.0,
        not_found_share: 0.03,
        redirect_share: 0.04,
        duplicate_share: 0.1,
        private_share: 0.0,
        crawl_delay_share: 0.0,
        ..WebConfig::default()
    }
}

fn command(server: &Server, place: &Place) -> Command {
    let settings = "[crawl]\nmemory = \"1MiB\"\n[storage]\ncheckpoint_every = \"200ms\"\nlog_segment = \"256KiB\"\n";
    let config = place.file("settings.toml", settings);
    let mut command = crawl(server, &place.dir, &["--scope", "any", "--delay", "100ms", "--per-ip", "0"]);
    command.arg("--config").arg(config).args((0..server.web().hosts()).map(|host| server.web().url(host, 0)));
    command
}

/// A dozen queries of all kinds about what is in the log, and a few that have to be guessed.
pub fn queries(dir: &Path) -> Vec<String> {
    let mut words = BTreeSet::new();
    let mut host = String::new();
    for visit in crate::common::visits(dir).iter().filter(|v| v.is_page()).take(40) {
        host = visit.entry.url.host().as_str().to_string();
        words.extend(visit.title.split_whitespace().filter(|w| w.chars().count() > 4).map(str::to_lowercase));
    }
    let words: Vec<String> = words.into_iter().collect();
    let Some(first) = words.first() else { return Vec::new() };
    let word = |n: usize| words[n * 7 % words.len()].as_str();
    let beginning = |n: usize| word(n).chars().take(3).collect::<String>();
    let swapped: String = {
        let mut letters: Vec<char> = word(4).chars().collect();
        let end = letters.len();
        letters.swap(end - 2, end - 1);
        letters.into_iter().collect()
    };
    vec![
        first.clone(),
        word(1).to_string(),
        format!("{} {}", word(1), word(2)),
        format!("{} {} {} {} {} {} {}", word(1), word(2), word(3), word(4), word(5), word(6), word(7)),
        format!("+{} {}", word(3), word(0)),
        format!("{} -{}", word(2), word(5)),
        format!("{}*", beginning(3)),
        format!("intitle:{}", word(6)),
        format!("site:{host}"),
        format!("{} dup:", word(5)),
        swapped,
        format!("{}q", word(6)),
        format!("{}{}", word(0), word(1)),
    ]
}

pub fn answers(dir: &Path, queries: &[String]) -> Vec<Value> {
    queries.iter().map(|query| facts(&search(dir, query, &["--ungrouped", "--limit", "50"]))).collect()
}

/// What a copy of the directory answers whose index is made anew.
fn answers_of_rebuilt(dir: &Path, queries: &[String]) -> Vec<Value> {
    let copy = quick_directory();
    let copy = copy.path().join("copy");
    restore(&snapshot(dir), &copy);
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&copy)), 0);
    answers(&copy, queries)
}

#[test]
fn killed_at_random_instants_it_answers_as_if_made_anew() {
    let (kills, seed) = (from_env("RHUMB_KILLS", 25).div_ceil(8), from_env("RHUMB_SEED", 1));
    println!("to repeat: RHUMB_KILLS={} RHUMB_SEED={seed}", kills * 8);
    let mut dice = Dice(seed);
    let server = serve(web());
    let mut place = Place::new();
    let (mut done, mut compared, mut finished) = (0, 0, 0);
    while done < kills {
        // Into the beginning of a process, into the crawl with the parts that it writes every two seconds, and the end.
        let wait_ms = if dice.below(4) == 0 { dice.below(300) } else { 500 + dice.below(5_000) };
        if run_and_kill(&mut command(&server, &place), Duration::from_millis(wait_ms)).is_ok() {
            finished += 1;
            compare(&place.dir, "at the end");
            compared += 1;
            place = Place::new();
            continue;
        }
        done += 1;
        if !place.dir.join("rhumb.toml").is_file() {
            continue;
        }
        // Whoever searches makes what is missing, and may be killed, too.
        if dice.below(2) == 0 {
            let mut search = rhumb();
            search.args(["search", "--json"]).arg(&place.dir).arg("anything");
            let wait = Duration::from_millis(dice.below(900));
            let mut child = search.spawn().expect("started");
            std::thread::sleep(wait);
            let _ = child.kill();
            let output = child.wait_with_output().expect("ended");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
        }
        // Not every time, so that a crawl also goes on with what another one left.
        if dice.below(3) > 0 || done == kills {
            compare(&place.dir, &format!("after {done} kills"));
            compared += 1;
        }
    }
    json(&run(&mut command(&server, &place)), 0);
    compare(&place.dir, "in the end");
    let queries = queries(&place.dir);
    assert!(queries.len() > 10);
    let answers = answers(&place.dir, &queries);
    assert!(answers.iter().filter(|answer| answer["total"].as_u64() > Some(0)).count() > 6, "{answers:#?}");
    println!("{done} kills, {finished} ends before the last, compared {compared} times");
}

fn compare(dir: &Path, what: &str) {
    let queries = queries(dir);
    let kept = answers(dir, &queries);
    assert_eq!(kept, answers_of_rebuilt(dir, &queries), "{what}");
    json(&run(rhumb().args(["status", "--check", "--json"]).arg(dir)), 0);
}

// ---- damage ----------------------------------------------------------------------------------------------------------------

/// A bit in every kind of file below `index/`, at its beginning, in its middle and at its end.
#[test]
fn a_flipped_bit_is_named_and_never_answers() {
    let server =
        serve(WebConfig { hosts: 3, pages: 15, pages_exact: true, page_bytes: 1_500, ..WebConfig::plain(3, 15) });
    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &["--scope", "any", "--delay", "0s", "--per-ip", "0"]);
    json(&run(command.arg(server.web().url(0, 0))), 0);
    let queries = queries(&place.dir);
    let sound = answers(&place.dir, &queries);
    let files = snapshot(&place.dir.join("index"));
    let mut kinds = BTreeSet::new();
    for (name, whole) in files.iter().filter(|(name, _)| !name.ends_with("lock")) {
        let kind = name.extension().map_or(name.clone(), |ending| ending.into());
        let path = place.dir.join("index").join(name);
        let shown = format!("index/{}", name.display());
        kinds.insert(kind);
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let what = format!("byte {at} of {shown}, which has {}", whole.len());
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).expect("damaged");
            let output = run(rhumb().args(["status", "--json"]).arg(&place.dir));
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{what}: {told}");
            let named = told.lines().any(|line| line.contains(&shown) && line.contains("rhumb rebuild "));
            assert!(named, "{what}: {told}");
            for (query, expected) in queries.iter().zip(&sound).step_by(3) {
                right_or_told(&place.dir, query, expected, &shown, &what);
            }
            // Another list makes another index, and all of it is put back.
            for (name, whole) in &files {
                std::fs::write(place.dir.join("index").join(name), whole).expect("mended");
            }
            rhumb_index::verify(&(RealDisk::new(&place.dir) as Arc<dyn Disk>)).expect("it reads");
        }
    }
    assert_eq!(kinds.len(), 11, "{kinds:?}");
    // A file that is gone is told or made anew, too.
    for name in files.keys().filter(|name| !name.ends_with("lock")) {
        let path = place.dir.join("index").join(name);
        std::fs::remove_file(&path).expect("removed");
        let shown = format!("index/{}", name.display());
        for (query, expected) in queries.iter().zip(&sound).step_by(4) {
            right_or_told(&place.dir, query, expected, &shown, &format!("{shown} is gone"));
        }
        restore(&files, &place.dir.join("index"));
    }
    // What is told to be done about it helps.
    let name = files.keys().find(|name| name.extension().is_some_and(|e| e == "term")).expect("a dictionary");
    std::fs::write(place.dir.join("index").join(name), "damaged").expect("damaged");
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
    assert_eq!(answers(&place.dir, &queries), sound);
    // A crawl that goes on mends it by itself.
    let name = snapshot(&place.dir.join("index")).into_keys().find(|name| name.extension().is_some_and(|e| e == "pos"));
    std::fs::write(place.dir.join("index").join(name.expect("positions")), "damaged").expect("damaged");
    json(&run(&mut crawl(&server, &place.dir, &[])), 0);
    assert_eq!(answers(&place.dir, &queries), sound);
}

/// A search says what it said before, or one line that names the file and what to do about it.
pub fn right_or_told(dir: &Path, query: &str, expected: &Value, file: &str, what: &str) -> bool {
    let output = run(rhumb().args(["search", "--json", "--ungrouped", "--limit", "50"]).arg(dir).args(["--", query]));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("panicked"), "{what}: {told}");
    match output.status.code() {
        Some(0 | 1) => {
            let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{what}: {e}: {told}"));
            assert_eq!(facts(&answer), *expected, "{what}: another answer");
            false
        }
        Some(3) => {
            assert!(output.stdout.is_empty() && told.lines().count() == 1, "{what}: {told}");
            assert!(told.contains(file) && told.contains("; "), "{what}: {told}");
            true
        }
        other => panic!("{what}: {other:?}: {told}"),
    }
}
