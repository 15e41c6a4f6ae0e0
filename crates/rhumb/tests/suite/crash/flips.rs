//! Single bits flipped anywhere in the files of a finished and of a half-done crawl: found and named, or harmless.
//!
//! A plain run takes `RHUMB_FLIPS` (60) positions from `RHUMB_SEED` (the clock); `make flips` takes 1,000. Kinds of files take turns, so
//! that small ones are met as often as large ones. Each flip is judged through the library, and where the
//! library has nothing to say, and every few times anyway, through the program: `status`; `links`, `graph export` and `search` where these could see
//! it; then `crawl`, then `rebuild` or `graph build`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rhumb_store::warc;
use serde_json::{Value, json};

use super::damage::{Files, Verdict, crawls, judge};
use super::{Dice, Facts, from_env, index, quick_directory, restore, snapshot};
use crate::common::{json as json_of, rhumb, run};
use crate::links::{exported, logged};
use crate::search::search;

/// Settings with which the program goes on with the small crawl as quickly as the library would.
const SETTINGS: &str = "[crawl]\nscope = \"any\"\nagent = \"rhumb-test\"\nmemory = \"1MiB\"\n\
    [politeness]\ndelay = \"0s\"\nper_ip = 0\nbackoff_first = \"1ms\"\nbackoff_max = \"3ms\"\nretry_after_max = \"3ms\"\nfailure_pause = \"1ms\"\n\
    [net]\nallow = [\"127.0.0.0/8\"]\n[dns]\nservers = [\"127.0.0.1:9\"]\n";

/// The files of a crawl as the program leaves them, with `rhumb.toml` and the lock.
fn with_settings(files: &Files) -> Files {
    let temporary = quick_directory();
    let dir = temporary.path().join("crawl");
    let settings = temporary.path().join("settings.toml");
    std::fs::write(&settings, SETTINGS).expect("write the settings");
    // A crawl that may take no time at all only writes its settings.
    let mut command = rhumb();
    command
        .args(["crawl", "--quiet", "--no-sitemaps", "--max-time", "0s", "--config"])
        .arg(&settings)
        .arg("--dir")
        .arg(&dir);
    run(command.arg("http://127.0.0.1:9/"));
    let mut all = files.clone();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).expect("the program wrote it");
    let text = read("rhumb.toml");
    let (text, _) = text.rsplit_once("# CRC-32 of all above: ").expect("a checksum");
    assert!(text.contains("max_time"), "{text}");
    // The crawl was made without a key.
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("key = ")).collect();
    let sealed = format!("{text}# CRC-32 of all above: {:08x}\n", rhumb_store::codec::crc32(text.as_bytes()));
    all.insert(PathBuf::from("rhumb.toml"), sealed.into_bytes());
    all.insert(PathBuf::from("lock"), read("lock").into_bytes());
    all
}

/// The same with the link graph and its ranks, and the text index.
fn with_graph_and_index(files: &Files) -> Files {
    let dir = quick_directory();
    restore(files, dir.path());
    for command in ["build", "rank"] {
        json_of(&run(rhumb().args(["graph", command, "--json"]).arg(dir.path())), 0);
    }
    // Whoever searches makes the index.
    search(dir.path(), "anything", &[]);
    let mut all = files.clone();
    let is_made = |name: &PathBuf| name.starts_with("graph") || name.starts_with("index");
    all.extend(snapshot(dir.path()).into_iter().filter(|(name, _)| is_made(name)));
    assert!(all.keys().filter(|name| name.starts_with("graph")).count() >= 7, "{:?}", all.keys());
    assert!(all.keys().filter(|name| name.starts_with("index")).count() >= 18, "{:?}", all.keys());
    all
}

/// What a sound crawl answers.
struct Sound {
    figures: Value,
    links: Vec<Vec<u8>>,
    queries: Vec<String>,
    found: Vec<Value>,
}

impl Sound {
    fn of(dir: &Path) -> Sound {
        let figures = json_of(&run(rhumb().args(["status", "--json"]).arg(dir)), 0);
        let links = questions(dir).into_iter().map(|mut question| {
            let output = run(&mut question);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout.len() > 100);
            output.stdout
        });
        let links = links.collect();
        let queries = index::queries(dir);
        let found = index::answers(dir, &queries);
        assert!(found.iter().filter(|answer| answer["total"].as_u64() > Some(0)).count() > 5, "{found:?}");
        Sound { figures, links, queries, found }
    }
}

/// What is asked of the link graph: who links to a page, what it links to, and all links.
fn questions(dir: &Path) -> Vec<Command> {
    let page = crawls().reference.pages.iter().next().expect("a page");
    let mut questions: Vec<Command> = ["--to", "--from"]
        .iter()
        .map(|way| {
            let mut question = rhumb();
            question.args(["links", "--json", "--limit", "10000"]).arg(dir).args([way, page.as_str()]);
            question
        })
        .collect();
    let mut export = rhumb();
    export.args(["graph", "export", "--format", "edges"]).arg(dir).arg("-");
    questions.push(export);
    questions
}

/// The link graph of a damaged crawl says what it said before, or a line that names the file and what to do about it.
fn links_are_right_or_told(flip: &Flip, dir: &Path, sound: &Sound, tally: &mut Tally) {
    let (what, file) = (&flip.what, flip.name.display().to_string());
    for (question, expected) in questions(dir).iter_mut().zip(&sound.links) {
        let output = run(question);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => assert!(output.stdout == *expected, "{what}: another answer"),
            Some(3) => {
                tally.told_by_links += 1;
                assert!(output.stdout.is_empty() && stderr.lines().count() == 1, "{what}: {stderr}");
                assert!(stderr.contains(&file) && stderr.contains("; "), "{what}: {stderr}");
                assert!(file.starts_with("log/") || stderr.contains("rhumb graph build "), "{what}: {stderr}");
            }
            other => panic!("{what}: {other:?}: {stderr}"),
        }
    }
}

/// The text index of a damaged crawl answers as it did before, or with a line that names the file and what to do about it.
fn found_or_told(flip: &Flip, dir: &Path, sound: &Sound, turn: usize, tally: &mut Tally) {
    let file = flip.name.display().to_string();
    // Each question is a process: they take turns.
    for (query, expected) in sound.queries.iter().zip(&sound.found).skip(turn % 4).step_by(4) {
        tally.told_by_search += u64::from(index::right_or_told(dir, query, expected, &file, &flip.what));
    }
}

/// What kind of file it is, by its folder and ending.
fn kind(name: &Path) -> String {
    let text = name.display().to_string();
    match (name.parent().and_then(Path::to_str), name.extension().and_then(|e| e.to_str())) {
        (Some("state"), None) if text.contains("checkpoint") => "state/checkpoint".to_string(),
        (Some("") | None, _) | (_, None) => text,
        (Some(folder), Some(ending)) => format!("{folder}/*.{ending}"),
    }
}

struct Flip {
    name: PathBuf,
    place: usize,
    damaged: Files,
    what: String,
}

fn flip(files: &Files, kinds: &BTreeMap<String, Vec<PathBuf>>, turn: u64, dice: &mut Dice) -> Flip {
    let names = kinds.values().nth(turn as usize % kinds.len()).expect("a kind");
    let name = names[dice.below(names.len() as u64) as usize].clone();
    let (place, bit) = (dice.below(files[&name].len() as u64) as usize, dice.below(8));
    let mut damaged = files.clone();
    damaged.get_mut(&name).expect("the file")[place] ^= 1 << bit;
    let what = format!("{}: bit {bit} of byte {place} of {}", name.display(), files[&name].len());
    Flip { name, place, damaged, what }
}

/// How a flip was met.
#[derive(Default)]
struct Tally {
    flips: u64,
    /// `status` named it.
    named: u64,
    /// An error, and the log or the archive is needed from a copy.
    errors: u64,
    /// Nothing depends on the bit, as far as `status` looks.
    harmless: u64,
    /// Went through the program.
    by_program: u64,
    /// Questions to the link graph that were answered with the file's name.
    told_by_links: u64,
    /// Questions to the text index that were.
    told_by_search: u64,
}

/// What the program makes of a flip; true if `status` named it.
fn by_program(flip: &Flip, sound: &Sound, tally: &mut Tally) {
    let all = crawls();
    let (what, file) = (&flip.what, flip.name.display().to_string());
    let temporary = quick_directory();
    let dir = temporary.path();
    restore(&flip.damaged, dir);
    let looked = run(rhumb().args(["status", "--json"]).arg(dir));
    let stderr = String::from_utf8_lossy(&looked.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
    let code = looked.status.code();
    tally.by_program += 1;
    match code {
        Some(0) => {
            tally.harmless += 1;
            assert_eq!(stderr, "", "{what}");
        }
        Some(1 | 3) => {
            tally.named += 1;
            // What is in a checkpoint has no file name of its own.
            let known = stderr.contains(&file) || (file.starts_with("state/") && stderr.contains("state/checkpoint"));
            assert!(known, "{what}: {stderr}");
            assert!(stderr.contains("; ") || file == "rhumb.toml", "{what}: what to do about it? {stderr}");
            assert!(code == Some(1) || stderr.lines().count() == 1, "{what}: {stderr}");
        }
        other => panic!("{what}: {other:?}: {stderr}"),
    }
    if code != Some(3) {
        let status: Value = serde_json::from_slice(&looked.stdout).expect("JSON");
        for figure in ["pages", "urls_seen", "urls_waiting", "outcomes", "links", "requests"] {
            assert_eq!(status[figure], sound.figures[figure], "{what}: {figure}");
        }
    }
    if file.starts_with("graph/") || file.starts_with("log/") {
        links_are_right_or_told(flip, dir, sound, tally);
    }
    if file.starts_with("index/") || file.starts_with("graph/") || file.starts_with("log/") {
        found_or_told(flip, dir, sound, flip.place, tally);
    }
    if file == "rhumb.toml" {
        // Other settings make another crawl; whoever goes on was told.
        return;
    }
    let resumed = run(rhumb().args(["crawl", "--json", "--max-time", "100s", "--dir"]).arg(dir));
    let stderr = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
    match resumed.status.code() {
        Some(0) => {}
        Some(3) => {
            // Derived state is made anew without being asked for.
            tally.errors += 1;
            assert!(stderr.contains(&file) && stderr.contains("byte"), "{what}: {stderr}");
            assert!(file.starts_with("log/") || file.starts_with("archive/"), "{what}: {stderr}");
            return;
        }
        other => panic!("{what}: {other:?}: {stderr}"),
    }
    // What `status` did not see must not be there any more, in the archive and its indexes neither.
    let facts = if code == Some(0) { Facts::read(dir) } else { Facts::read_log(dir).map(|(facts, _)| facts) };
    match facts {
        Ok(facts) => {
            assert_eq!(facts.pages, all.reference.pages, "{what}: pages");
            assert_eq!(facts.outcomes, all.reference.outcomes, "{what}: outcomes");
            assert_eq!(facts.links, all.reference.links, "{what}: links");
        }
        // In a part of the log that no resume reads, and that `status` named.
        Err(e) => assert!(file.starts_with("log/") && code == Some(1), "{what}: {e}"),
    }
    if file.starts_with("graph/") {
        json_of(&run(rhumb().args(["graph", "build", "--json"]).arg(dir)), 0);
        assert_eq!(exported(dir), logged(dir), "{what}: after `graph build`");
        json_of(&run(rhumb().args(["status", "--json"]).arg(dir)), 0);
    }
    if file.starts_with("index/") {
        // The crawl that went on has made it anew, or whoever searches does.
        let queries = index::queries(dir);
        let found = index::answers(dir, &queries);
        json_of(&run(rhumb().args(["rebuild", "--json"]).arg(dir)), 0);
        assert_eq!(index::answers(dir, &queries), found, "{what}: after `rebuild`");
    }
    if file.starts_with("state/") || file.starts_with("index/") || file.ends_with(".cdxj") {
        let rebuilt = run(rhumb().args(["rebuild", "--json"]).arg(dir));
        assert_eq!(rebuilt.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&rebuilt.stderr));
        let looked = run(rhumb().args(["status", "--json"]).arg(dir));
        let stderr = String::from_utf8_lossy(&looked.stderr).into_owned();
        assert_eq!((looked.status.code(), stderr.as_str()), (Some(0), ""), "{what}: after `rebuild`");
    }
}

/// A flip in the archive that `status` does not name says nothing: what is read from the file is what was read before.
fn archive_says_the_same(files: &Files, flip: &Flip) {
    let rows = |bytes: &[u8]| {
        let mut rows = Vec::new();
        warc::ls(bytes, |row| rows.push(format!("{row:?}"))).map(|()| rows)
    };
    let (before, after) = (&files[&flip.name], &flip.damaged[&flip.name]);
    if warc::check(&after[..]).passed() {
        assert_eq!(rows(after).expect("list"), rows(before).expect("list"), "{}", flip.what);
    }
}

#[test]
fn single_bits_anywhere() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let (flips, seed) = (from_env("RHUMB_FLIPS", 60), from_env("RHUMB_SEED", clock));
    println!("to repeat: RHUMB_FLIPS={flips} RHUMB_SEED={seed}");
    let mut dice = Dice(seed);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for files in [&crawls().finished, &crawls().interrupted] {
        let files = with_graph_and_index(&with_settings(files));
        let mut kinds: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for name in files.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(name, _)| name) {
            kinds.entry(kind(name)).or_default().push(name.clone());
        }
        let dir = quick_directory();
        restore(&files, dir.path());
        let sound = Sound::of(dir.path());
        for turn in 0..flips / 2 {
            let flip = flip(&files, &kinds, turn, &mut dice);
            let tally = tallies.entry(kind(&flip.name)).or_default();
            tally.flips += 1;
            let in_library = flip.name.starts_with("log") || flip.name.starts_with("state");
            if in_library && dice.below(4) > 0 {
                let mut damaged = flip.damaged.clone();
                damaged.retain(|name, _| name.components().count() > 1);
                match judge(&damaged, &flip.name, &flip.what) {
                    Verdict::Right => {}
                    Verdict::Told => tally.errors += 1,
                }
                continue;
            }
            by_program(&flip, &sound, tally);
            if flip.name.to_str().is_some_and(|n| n.ends_with(".warc.gz")) {
                archive_says_the_same(&files, &flip);
            }
            assert!(flip.place < files[&flip.name].len());
        }
    }
    let report: BTreeMap<&String, Value> = tallies
        .iter()
        .map(|(kind, t)| {
            let report = json!({
                "flips": t.flips, "by_program": t.by_program, "named_by_status": t.named,
                "not_seen_by_status": t.harmless, "errors": t.errors, "told_by_links": t.told_by_links,
                "told_by_search": t.told_by_search,
            });
            (kind, report)
        })
        .collect();
    let report = json!({ "seed": seed, "flips": flips, "kinds": report });
    println!("{report:#}");
    if let Ok(path) = std::env::var("RHUMB_REPORT") {
        std::fs::write(path, format!("{report:#}\n")).expect("write the report");
    }
    assert!(tallies.len() >= 28, "kinds of files: {:?}", tallies.keys());
}

/// The graph knows the last visit of the log by its checksum, and begins anew where that is another one: then the log has to be read, and
/// what is wrong with it is told.
#[test]
fn bits_of_what_the_graph_knows_the_log_by() {
    let files = with_graph_and_index(&with_settings(&crawls().finished));
    let dir = quick_directory();
    restore(&files, dir.path());
    let sound = Sound::of(dir.path());
    let name = files.keys().rfind(|name| name.starts_with("log")).expect("a log").clone();
    let len = files[&name].len();
    let mut tally = Tally::default();
    for place in (len.saturating_sub(1500)..len).step_by(100) {
        let mut damaged = files.clone();
        damaged.get_mut(&name).expect("the file")[place] ^= 1;
        let what = format!("{}: byte {place} of {len}", name.display());
        let flip = Flip { name: name.clone(), place, damaged, what };
        restore(&flip.damaged, dir.path());
        links_are_right_or_told(&flip, dir.path(), &sound, &mut tally);
    }
    println!("{} questions answered with the file's name", tally.told_by_links);
}
