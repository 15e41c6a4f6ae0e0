//! Damaged and missing files: a clear error or the right answer, never a panic, never another set of pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rhumb_crawl::status::Status;
use rhumb_crawl::{CrawlError, End, Engine};
use rhumb_sim::{FailingDisk, Failure, Server};
use rhumb_store::archive::ArchiveEnd;
use rhumb_store::codec::Take;
use rhumb_store::disk::{Overlay, RealDisk};
use rhumb_store::log::Position;
use rhumb_store::{StoreError, Timestamp, checkpoint, warc};

use super::nth_write::{crawl_on, small_settings, small_web};
use super::{Facts, from_env, quick_directory, restore, snapshot};
use crate::common::{Place, json, rhumb, run};

pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(super) struct Crawls {
    pub server: Server,
    pub reference: Facts,
    pub finished: Files,
    /// Torn in the middle: records behind the checkpoint, queues on disk, several runs.
    pub interrupted: Files,
}

pub(super) fn crawls() -> &'static Crawls {
    static CRAWLS: OnceLock<Crawls> = OnceLock::new();
    CRAWLS.get_or_init(|| {
        let server = small_web();
        let dir = quick_directory();
        let disk = FailingDisk::counting(RealDisk::new(dir.path()));
        crawl_on(disk.clone(), dir.path(), &server).expect("an undisturbed crawl");
        let reference = Facts::read(dir.path()).expect("a sound log");
        let finished = snapshot(dir.path());
        let interrupted = interrupted(&server, disk.operations());
        Crawls { server, reference, finished, interrupted }
    })
}

/// A crawl torn at some point where it has everything that can be damaged.
fn interrupted(server: &Server, operations: u64) -> Files {
    for n in operations / 3.. {
        let dir = quick_directory();
        let disk = FailingDisk::new(RealDisk::new(dir.path()), n, Failure::Tear);
        assert!(crawl_on(disk, dir.path(), server).is_err(), "no crawl had everything at once");
        let files = snapshot(dir.path());
        let has = |part: &str| files.keys().filter(|f| f.starts_with(part)).count();
        let opened = Engine::open(dir.path(), Overlay::new(RealDisk::new(dir.path())), small_settings()).expect("open");
        let checkpoint = checkpoint_position(dir.path()).unwrap_or_default();
        let (checkpoint, archived) = checkpoint;
        let replays = checkpoint > Position::START && opened.crawl().position > checkpoint;
        // Of the archive too there is more than the checkpoint knows.
        let replays = replays && opened.crawl().archive_end > archived && archived.offset > 0;
        // Not only in a file that was finished, with nothing yet in the next one.
        let replays = replays
            && super::archive_files(dir.path()).pop().is_some_and(|(serial, path)| {
                let known = if serial == archived.file { archived.offset } else { 0 };
                path.metadata().is_ok_and(|file| file.len() > known)
            });
        if has("state/queues") > 0 && has("state/sieve") > 1 && has("log") > 1 && replays {
            return files;
        }
    }
    unreachable!("the loop has no end")
}

/// How far the checkpoint on disk reaches, in the log and in the archive.
fn checkpoint_position(dir: &Path) -> Option<(Position, ArchiveEnd)> {
    let Ok(checkpoint::Found::Whole(_, body)) = checkpoint::load(&*RealDisk::new(dir)) else { return None };
    let mut from = Take::new(&body);
    let _key = from.u64().ok()?;
    let position = Position { segment: from.u32().ok()?, offset: from.u64().ok()? };
    Some((position, ArchiveEnd { file: from.u32().ok()?, offset: from.u64().ok()? }))
}

/// What looking at and going on with a damaged crawl may come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The right pages, or, where the log itself does not read, the right number of them and no request made.
    Right,
    /// An error that names the file.
    Told,
}

/// Opens a damaged crawl as `status` does, then resumes it, and judges both.
pub(super) fn judge(files: &Files, damaged: &Path, what: &str) -> Verdict {
    let all = crawls();
    let temporary = quick_directory();
    let dir = temporary.path();
    restore(files, dir);
    match Engine::open(dir, Overlay::new(RealDisk::new(dir)), small_settings()) {
        Ok(engine) => {
            let status = Status::of(engine.crawl(), Timestamp::now());
            assert!(status.pages <= all.reference.pages.len() as u64, "{what}: {} pages", status.pages);
        }
        Err(e) => told(&e, damaged, what),
    }
    let now = snapshot(dir);
    assert!(now == *files, "{what}: looking changed something");

    let requests = all.server.requests();
    let mut resumed = crawl_on(RealDisk::new(dir), dir, &all.server);
    if let Err(e) = &resumed
        && damaged.starts_with("state")
    {
        told(e, damaged, what);
        // Found in mid-crawl. All of it can be made anew, so the next start must do without.
        resumed = crawl_on(RealDisk::new(dir), dir, &all.server);
        assert!(resumed.is_ok(), "{what}: {resumed:?}");
    }
    match resumed {
        Err(e) => {
            told(&e, damaged, what);
            return Verdict::Told;
        }
        Ok(end) => assert_eq!(end, End::Finished, "{what}"),
    }
    match Facts::read(dir) {
        Ok(facts) => {
            assert_eq!(facts.pages, all.reference.pages, "{what}: pages");
            assert_eq!(facts.outcomes, all.reference.outcomes, "{what}: outcomes");
            assert_eq!(facts.links, all.reference.links, "{what}: links");
        }
        Err(e) => {
            // The damage is where no resume needs to look: what was folded before it stays right.
            told(&e.into(), damaged, what);
            assert!(damaged.starts_with("log"), "{what}");
            let engine = Engine::open(dir, Overlay::new(RealDisk::new(dir)), small_settings()).expect("open again");
            assert_eq!(engine.crawl().totals.pages, all.reference.pages.len() as u64, "{what}");
            let waiting = files != &all.finished && all.server.requests() > requests;
            assert!(waiting || all.server.requests() == requests, "{what}: visited again");
        }
    }
    Verdict::Right
}

/// The error is about the damaged file and says where.
fn told(error: &CrawlError, damaged: &Path, what: &str) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{what}: {text}");
    let folder = damaged.iter().next().and_then(|f| f.to_str()).expect("a folder");
    assert!(text.contains(&format!("{folder}/")), "{what}: {text}");
    match error {
        CrawlError::Store(StoreError::Corrupt { .. }) => assert!(text.contains("damaged at byte"), "{what}: {text}"),
        CrawlError::Store(StoreError::Version { .. } | StoreError::Io { .. }) => {}
        other => panic!("{what}: {other}"),
    }
}

/// Places in a file: its beginning and its end closely, the rest evenly.
fn places(length: usize) -> Vec<usize> {
    let (edge, middle) = if from_env("RHUMB_FULL", 0) != 0 { (64, 200) } else { (3, 4) };
    let mut all: Vec<usize> = (0..length.min(edge)).chain(length.saturating_sub(edge)..length).collect();
    all.extend((0..length).step_by((length / middle).max(1)));
    // Header fields of all formats.
    all.extend([8, 12, 13, 16, 20].into_iter().filter(|p| *p < length));
    all.sort_unstable();
    all.dedup();
    all
}

/// Files of log and state. Of many alike the first, one in the middle and the last two.
fn chosen(files: &Files) -> Vec<PathBuf> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for name in files.keys().filter(|n| n.starts_with("log") || n.starts_with("state")) {
        folders.entry(name.parent().expect("a folder").to_path_buf()).or_default().push(name.clone());
    }
    let full = from_env("RHUMB_FULL", 0) != 0;
    let choose = |all: Vec<PathBuf>| -> Vec<PathBuf> {
        let wanted = [0, all.len() / 2, all.len().saturating_sub(2), all.len() - 1];
        let some = all.iter().enumerate().filter(|(i, _)| full || wanted.contains(i));
        some.map(|(_, name)| name.clone()).collect()
    };
    folders.into_values().flat_map(choose).collect()
}

fn flip_everywhere(files: &Files) -> BTreeMap<String, [u32; 2]> {
    let mut verdicts: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for name in chosen(files) {
        for place in places(files[&name].len()) {
            let mut damaged = files.clone();
            damaged.get_mut(&name).expect("the file")[place] ^= 1 << (place % 8);
            let what = format!("{} flipped at byte {place} of {}", name.display(), files[&name].len());
            let verdict = judge(&damaged, &name, &what);
            let folder = name.parent().expect("a folder").display().to_string();
            verdicts.entry(folder).or_default()[usize::from(verdict == Verdict::Told)] += 1;
        }
    }
    println!("right answers and errors by folder: {verdicts:?}");
    verdicts
}

#[test]
fn flipped_bytes_of_a_finished_crawl() {
    let verdicts = flip_everywhere(&crawls().finished);
    // Derived state is made anew, so a crawl that is over answers as before.
    assert!(verdicts.iter().filter(|(folder, _)| folder.starts_with("state")).all(|(_, v)| v[1] == 0), "{verdicts:?}");
}

#[test]
fn flipped_bytes_of_an_interrupted_crawl() {
    let verdicts = flip_everywhere(&crawls().interrupted);
    assert!(verdicts.iter().filter(|(folder, _)| folder.starts_with("state")).all(|(_, v)| v[1] == 0), "{verdicts:?}");
    assert!(verdicts["log"][1] > 0, "a flipped byte behind the checkpoint is found");
}

#[test]
fn missing_and_shortened_state() {
    for files in [&crawls().finished, &crawls().interrupted] {
        let state: Vec<PathBuf> = files.keys().filter(|n| n.starts_with("state")).cloned().collect();
        let without = |gone: &dyn Fn(&Path) -> bool| -> Files {
            files.iter().filter(|(n, _)| !gone(n)).map(|(n, b)| (n.clone(), b.clone())).collect()
        };
        let everything = without(&|n| n.starts_with("state"));
        assert_eq!(judge(&everything, Path::new("state/"), "no state at all"), Verdict::Right);
        for name in chosen(files).iter().filter(|n| state.contains(n)) {
            let what = format!("{} removed", name.display());
            assert_eq!(judge(&without(&|n| n == name), name, &what), Verdict::Right);
            for keep in [0, 1, 15, files[name].len() / 2, files[name].len().saturating_sub(1)] {
                let mut damaged = files.clone();
                damaged.get_mut(name).expect("the file").truncate(keep);
                let what = format!("{} cut to {keep} bytes", name.display());
                assert_eq!(judge(&damaged, name, &what), Verdict::Right);
            }
        }
    }
}

#[test]
fn missing_log() {
    for files in [&crawls().finished, &crawls().interrupted] {
        let segments: Vec<&PathBuf> = files.keys().filter(|n| n.starts_with("log")).collect();
        // Without state every segment is needed.
        for gone in &segments[..segments.len() - 1] {
            let left = files.iter().filter(|(n, _)| n != gone && !n.starts_with("state"));
            let left: Files = left.map(|(n, b)| (n.clone(), b.clone())).collect();
            assert_eq!(judge(&left, gone, &format!("{} removed, no state", gone.display())), Verdict::Told);
        }
        let left: Files =
            files.iter().filter(|(n, _)| !n.starts_with("log")).map(|(n, b)| (n.clone(), b.clone())).collect();
        assert_eq!(judge(&left, segments[0], "no log"), Verdict::Told);
    }
    // The checkpoint of a finished crawl speaks of the end of the log.
    let files = &crawls().finished;
    let last = files.keys().rfind(|n| n.starts_with("log")).expect("a segment").clone();
    for keep in [0, 5, 12, files[&last].len() - 1] {
        let mut damaged = files.clone();
        damaged.get_mut(&last).expect("the file").truncate(keep);
        let what = format!("{} cut to {keep} bytes", last.display());
        if keep < files[&last].len() && keep != 12 || files[&last].len() > 12 {
            assert_eq!(judge(&damaged, &last, &what), Verdict::Told);
        }
    }
}

/// What a power loss leaves behind the last whole record is cut.
#[test]
fn tails_of_a_power_loss() {
    for files in [&crawls().finished, &crawls().interrupted] {
        let last = |part: &str| files.keys().rfind(|n| n.starts_with(part) && !n.ends_with(".cdxj")).cloned();
        // A segment that was just being started has no whole header yet; what follows that is not a tail.
        let log = last("log").expect("a segment");
        if files[&log].len() < 12 {
            continue;
        }
        let archive = files.keys().rfind(|n| n.to_str().is_some_and(|n| n.ends_with(".warc.gz"))).expect("a file");
        let garbage: Vec<u8> = (0..5_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (name, tail) in [(&log, vec![0; 4_096]), (&log, garbage.clone()), (archive, garbage.clone())] {
            let mut damaged = files.clone();
            damaged.get_mut(name).expect("the file").extend_from_slice(&tail);
            let what = format!("{} with {} more bytes", name.display(), tail.len());
            assert_eq!(judge(&damaged, name, &what), Verdict::Right);
        }
        // A page of the log that never reached the disk, with zeros in its place.
        let mut zeroed = files.clone();
        let bytes = zeroed.get_mut(&log).expect("the file");
        let from = bytes.len().saturating_sub(30).max(12);
        bytes[from..].fill(0);
        judge(&zeroed, &log, "the last bytes of the log are zeros");
    }
    // What the checkpoint knows was synced before it was written. An archive that is shorter cannot be mended from here.
    let files = &crawls().finished;
    let archive = files.keys().rfind(|n| n.to_str().is_some_and(|n| n.ends_with(".warc.gz"))).expect("a file");
    for keep in [0, files[archive].len() / 2, files[archive].len() - 1] {
        let mut damaged = files.clone();
        damaged.get_mut(archive).expect("the file").truncate(keep);
        assert_eq!(judge(&damaged, archive, &format!("archive cut to {keep}")), Verdict::Told);
    }
    let left: Files = files.iter().filter(|(n, _)| *n != archive).map(|(n, b)| (n.clone(), b.clone())).collect();
    assert_eq!(judge(&left, archive, "archive removed"), Verdict::Told);
}

/// The log behind the checkpoint speaks of archive bytes that a power loss took: those visits are made again.
#[test]
fn the_end_of_the_archive_never_reached_the_disk() {
    let files = &crawls().interrupted;
    let whole = quick_directory();
    restore(files, whole.path());
    let (_, known) = checkpoint_position(whole.path()).expect("a checkpoint");
    let mut made_again = std::collections::BTreeSet::new();
    // A file that is followed by another was synced before.
    let (serial, path) = super::archive_files(whole.path()).pop().expect("a file");
    let name = path.strip_prefix(whole.path()).expect("below").to_path_buf();
    let (from, to) = (if serial == known.file { known.offset as usize } else { 0 }, files[&name].len());
    for keep in [from, from + 1, (from + to) / 2, to.saturating_sub(1)].into_iter().filter(|keep| *keep < to) {
        let mut damaged = files.clone();
        damaged.get_mut(&name).expect("the file").truncate(keep);
        let dir = quick_directory();
        restore(&damaged, dir.path());
        let opened = Engine::open(dir.path(), Overlay::new(RealDisk::new(dir.path())), small_settings());
        made_again.insert(opened.expect("open").visits_lost);
        let what = format!("{} cut to {keep} of {to}, {from} known", name.display());
        assert_eq!(judge(&damaged, &name, &what), Verdict::Right);
    }
    println!("visits made again: {made_again:?}");
    assert!(made_again.iter().any(|visits| *visits > 0), "{made_again:?}");
}

/// A flipped byte of the archive is found by `warc check`, or it is one that says nothing.
#[test]
fn flipped_bytes_of_the_archive() {
    let content = |bytes: &[u8]| {
        let mut rows = Vec::new();
        warc::ls(bytes, |row| rows.push(format!("{row:?}"))).map(|()| rows)
    };
    let mut found = 0;
    for (name, bytes) in crawls().finished.iter().filter(|(n, _)| n.to_str().is_some_and(|n| n.ends_with(".warc.gz"))) {
        let whole = content(bytes).expect("a sound archive");
        for place in (0..bytes.len()).step_by(37) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            if warc::check(&damaged[..]).passed() {
                let rows = content(&damaged).expect("what passed can be listed");
                assert_eq!(rows, whole, "{} at {place}: passed, and says something else", name.display());
            } else {
                found += 1;
            }
        }
    }
    assert!(found > 100, "{found} found");
}

/// The same through the program: one line, exit code 3, the file and the place.
#[test]
fn the_program_names_the_damage() {
    let all = crawls();
    let toml = all.finished.keys().find(|n| n.ends_with("rhumb.toml"));
    assert_eq!(toml, None, "the library writes no settings");
    let place = Place::new();
    restore(&all.interrupted, &place.dir);
    let settings = run(rhumb().args(["config", "show"]));
    let text = format!("format = 1\n{}", String::from_utf8_lossy(&settings.stdout));
    std::fs::write(place.dir.join("rhumb.toml"), text).expect("write the settings");
    let right = json(&run(rhumb().args(["status", "--json"]).arg(&place.dir)), 0);

    // Without state the log is read from its beginning, and a byte in its first record counts.
    std::fs::remove_dir_all(place.dir.join("state")).expect("remove the state");
    let rebuilt = json(&run(rhumb().args(["status", "--json"]).arg(&place.dir)), 0);
    for figure in ["pages", "urls_seen", "urls_waiting", "outcomes", "links", "requests"] {
        assert_eq!(rebuilt[figure], right[figure], "{figure} without state");
    }
    let made = json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
    assert_eq!((&made["pages"], &made["urls_seen"]), (&right["pages"], &right["urls_seen"]));
    assert!(checkpoint_position(&place.dir).is_some_and(|(position, _)| position > Position::START));
    std::fs::remove_dir_all(place.dir.join("state")).expect("remove the state");

    let path = place.dir.join("log/00000001.log");
    let mut bytes = std::fs::read(&path).expect("read the log");
    bytes[30] ^= 4;
    std::fs::write(&path, &bytes).expect("write the log");
    for args in [&["status", "--json"][..], &["status"], &["crawl", "--quiet", "--dir"], &["rebuild"]] {
        let output = run(rhumb().args(args).arg(&place.dir));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.contains("log/00000001.log is damaged at byte 12"), "{args:?}: {stderr}");
        assert!(stderr.contains("restore this file from a copy"), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
