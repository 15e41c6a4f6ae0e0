//! Which visit of a URL is exported, on logs written by hand: rows without an archive, so that only the choice shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rhumb_core::outcome::Outcome;
use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{Formats, ParseOptions};
use rhumb_core::record::Record;
use rhumb_core::url::{NormalizeOptions, Url};
use rhumb_core::visit::{Entry, Purpose, VisitRecord};
use rhumb_export::{Filter, Format, Options, Progress, Summary, Target, export};
use rhumb_store::Timestamp;
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{Log, Position};

fn options(include_failed: bool) -> Options {
    Options {
        format: Format::Jsonl,
        include_failed,
        links: true,
        text: true,
        filter: Filter::default(),
        row_group_bytes: 1 << 20,
        commit_every: Duration::from_secs(2),
        memory_bytes: 0,
        threads: 2,
        parse: ParseOptions::default(),
        formats: Formats::default(),
        normalize: NormalizeOptions::default(),
        decode: DecodeLimits::default(),
        software: "rhumb/test".to_string(),
    }
}

/// Appends visits: path, how it ended, whether it will be tried again.
fn append(dir: &Path, visits: impl Iterator<Item = (String, Outcome, bool)>, from: u64) {
    let mut log = Log::open(RealDisk::new(dir), Position::START, 1 << 16).expect("open the log");
    for (i, (path, outcome, retry)) in visits.enumerate() {
        let at = Timestamp(from + i as u64);
        let entry = Entry::new(Url::parse(&format!("http://h.test{path}")).expect("a URL"), 1);
        let mut visit = VisitRecord::bare(entry, Purpose::Page, at, at, outcome);
        visit.retry = retry;
        visit.title = format!("visit {}", at.0).into();
        let record = Record::Visited(Box::new(visit));
        log.append(record.kind(), |into| record.put(into));
        log.commit().expect("commit");
    }
}

/// Exports, and gives the title of each path.
fn titles(dir: &Path, name: &str, include_failed: bool) -> (Summary, BTreeMap<String, String>) {
    let path = dir.join(name);
    let target = Target::Path { path: path.clone(), overwrite: true };
    let summary = export(dir, &options(include_failed), &target, &Progress::default()).expect("export");
    let text = std::fs::read_to_string(path).expect("a file");
    let rows = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let rows = rows.map(|row| (word(&row["url"]).replace("http://h.test", ""), word(&row["title"])));
    (summary, rows.collect())
}

#[test]
fn the_newest_visit_that_counts_is_exported() {
    let dir = tempfile::tempdir().expect("temporary directory");
    use Outcome::{NotFound, NotModified, Ok, RateLimited, Redirect};
    let visits = [
        ("/twice", Ok, false),
        ("/unchanged", Ok, false),
        ("/gone", Ok, false),
        ("/busy", Ok, false),
        ("/moved", Redirect, false),
        ("/twice", Ok, false),
        ("/unchanged", NotModified, false),
        ("/gone", NotFound, false),
        ("/busy", RateLimited, true),
        ("/never", RateLimited, true),
    ];
    append(dir.path(), visits.into_iter().map(|(p, o, r)| (p.to_string(), o, r)), 100);
    let check = |failed: bool, expected: &[(&str, &str)]| {
        let expected = expected.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        assert_eq!(titles(dir.path(), "out.jsonl", failed).1, expected);
    };
    let pages = [("/busy", "visit 103"), ("/twice", "visit 105"), ("/unchanged", "visit 101")];
    check(false, &pages);
    let others = [("/gone", "visit 107"), ("/moved", "visit 104"), ("/never", "visit 109")];
    check(true, &[&pages[..], &others[..]].concat());
}

/// More visits than the sort may keep in memory, over several segments of the log.
#[test]
fn many_visits_are_sorted_outside_memory() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let rounds = (0..3).flat_map(|_| (0..2_000).map(|i| (format!("/{}", i * 7_919 % 2_000), Outcome::Ok, false)));
    append(dir.path(), rounds, 0);
    let (summary, rows) = titles(dir.path(), "out.jsonl", false);
    assert_eq!((summary.pages, rows.len()), (2_000, 2_000));
    for (i, path) in (0..2_000).map(|i| (i, format!("/{}", i * 7_919 % 2_000))) {
        assert_eq!(rows[&path], format!("visit {}", 4_000 + i));
    }
}
