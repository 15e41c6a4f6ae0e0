//! Faults of the machine around the program: few file descriptors, a clock that is set, a process that is held still.
//!
//! Each is judged twice: by what the crawl directory says in the end, which must be what it says after an undisturbed
//! crawl, and by what the servers saw. `RHUMB_STOP_SECONDS=60` holds the process for longer.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rhumb_sim::{Latency, Server, WebConfig};

use super::kill::{judge_politeness, unix_ms};
use super::{Facts, from_env};
use crate::common::{Place, crawl, json, run_within, serve};

const BOUND: Duration = Duration::from_secs(120);

fn web() -> WebConfig {
    WebConfig {
        page_bytes: 3_000,
        links: 12,
        latency: Latency { min_ms: 1, max_ms: 20, slow_share: 0.2, slow_ms: 60 },
        ..WebConfig::plain(40, 12)
    }
}

/// Little memory and frequent checkpoints, so that files are opened all the time; time-outs shorter than any fault lasts.
/// Ten times a fetch that was held for seconds would be minutes.
const SETTINGS: &str = "[crawl]\nmemory = \"1MiB\"\n[politeness]\ndelay = \"60ms\"\ndelay_factor = 0.0\nper_ip = 0\n\
    [fetch]\nconnect = \"2s\"\nhead = \"2s\"\ntotal = \"3s\"\n\
    [storage]\ncheckpoint_every = \"40ms\"\nsync_every = \"30ms\"\nlog_segment = \"64KiB\"\narchive_file = \"256KiB\"\n";

fn command(server: &Server, place: &Place) -> Command {
    let settings = place.file("settings.toml", SETTINGS);
    let mut command = crawl(server, &place.dir, &["--scope", "any", "--config"]);
    command.arg(settings).args((0..server.web().hosts()).map(|host| server.web().url(host, 0)));
    command
}

/// What an undisturbed crawl says.
fn reference(server: &Server) -> Facts {
    let place = Place::new();
    json(&run_within(&mut command(server, &place), BOUND), 0);
    server.clear_log();
    Facts::read(&place.dir).expect("a sound log")
}

/// The directory says what it should, and no host was treated badly.
fn judge(server: &Server, dir: &Path, reference: &Facts, kills_unix_ms: &[u64]) {
    let facts = Facts::read(dir).expect("a sound log");
    assert_eq!(facts.pages, reference.pages);
    assert_eq!(facts.outcomes, reference.outcomes);
    assert_eq!(facts.links, reference.links);
    judge_politeness(server, &server.log_view(), kills_unix_ms, 0);
}

/// The same command with so many files at the most, of which some are in use already.
fn with_files(command: &Command, files: usize, in_use: usize) -> Command {
    let taken: String = (0..in_use).map(|i| format!("exec {}</dev/null; ", 20 + i)).collect();
    let mut limited = Command::new("bash");
    limited.args(["-c", &format!("ulimit -n {files}; {taken} exec \"$@\""), "bash"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("RHUMB_LOG");
    limited
}

fn ended(child: Child, bound: Duration) -> Output {
    let (done, output) = std::sync::mpsc::channel();
    let id = child.id();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let waited = output.recv_timeout(bound).unwrap_or_else(|_| panic!("process {id} did not end within {bound:?}"));
    waited.expect("wait")
}

fn wait_for_requests(server: &Server, requests: u64) {
    let deadline = Instant::now() + BOUND;
    while server.requests() < requests {
        assert!(Instant::now() < deadline, "the crawl stands still at {} requests", server.requests());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// 64 files are enough: fewer workers, and everybody is told.
#[test]
fn few_files_may_be_open() {
    let server = serve(web());
    let reference = reference(&server);
    let place = Place::new();
    let child = with_files(&command(&server, &place), 64, 0).spawn().expect("start the program");
    let (open, id) = (format!("/proc/{}/fd", child.id()), child.id());
    let counting = std::thread::spawn(move || {
        let mut most = 0;
        while let Ok(files) = std::fs::read_dir(&open) {
            let names = files.flatten().filter_map(|f| std::fs::read_link(f.path()).ok());
            most = most.max(names.count());
            std::thread::sleep(Duration::from_millis(1));
        }
        most
    });
    let output = ended(child, BOUND);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    json(&output, 0);
    println!("process {id} had {} files open at the most: {stderr}", counting.join().expect("count"));
    assert!(stderr.contains("workers instead of 256") && stderr.contains("only 64 files"), "{stderr}");
    assert!(!stderr.contains("out of file descriptors"), "{stderr}");
    judge(&server, &place.dir, &reference, &[]);
}

/// With still fewer it does not begin, or stops with one line; nothing is lost.
#[test]
fn too_few_files_may_be_open() {
    let server = serve(web());
    let reference = reference(&server);
    let place = Place::new();
    for (files, in_use) in [(40, 0), (64, 30), (64, 36), (64, 40), (64, 24)] {
        let output = run_within(&mut with_files(&command(&server, &place), files, in_use), BOUND);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(matches!(output.status.code(), Some(0 | 3)), "{files}, {in_use} in use: {}: {stderr}", output.status);
        println!("{files} files, {in_use} in use: {}: {}", output.status, stderr.trim_end());
        if output.status.code() == Some(3) {
            let notes = ["workers instead of", " WARN "];
            let errors = stderr.lines().filter(|line| !notes.iter().any(|note| line.contains(note)));
            let errors: Vec<&str> = errors.collect();
            assert_eq!(errors.len(), 1, "{files}, {in_use} in use: {stderr}");
            assert!(errors[0].contains("open"), "{stderr}");
        }
        if files < 64 {
            assert_eq!(output.status.code(), Some(3));
            assert!(stderr.contains("only 40 files") && stderr.contains("ulimit"), "{stderr}");
        }
    }
    json(&run_within(&mut command(&server, &place), BOUND), 0);
    judge(&server, &place.dir, &reference, &[]);
}

/// Longer than any time-out: what was under way ends in one way or another, and is made up for.
#[test]
fn held_still() {
    let server = serve(web());
    let reference = reference(&server);
    let place = Place::new();
    let hold = Duration::from_secs(from_env("RHUMB_STOP_SECONDS", 5));
    let before = server.requests();
    let child = command(&server, &place).spawn().expect("start the program");
    wait_for_requests(&server, before + 200);
    signal(&child, "STOP");
    std::thread::sleep(hold);
    let held = server.requests();
    signal(&child, "CONT");
    // Everything that waits would otherwise leave at once.
    wait_for_requests(&server, held + 20);
    let told = json(&ended(child, BOUND + hold), 0);
    assert_eq!(told["state"], "finished");
    judge(&server, &place.dir, &reference, &[]);
}

/// The library that shows programs another wall clock (package faketime; `make test` installs it where it can).
fn faketime() -> Option<PathBuf> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    let found = folders.iter().map(|f| Path::new(f).join("faketime/libfaketimeMT.so.1")).find(|p| p.exists());
    if found.is_none() {
        println!("skipped: libfaketime is not installed (apt-get install faketime)");
    }
    found
}

/// The wall clock that processes see, as an offset that can be changed while they run.
struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    fn set(&self, offset: &str) {
        // Replaced in one step: the library reads it at any time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{offset}\n")).expect("write the offset");
        std::fs::rename(&new, &self.file).expect("rename");
    }

    fn start(&self, command: &mut Command) -> Child {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command.env("DONT_FAKE_MONOTONIC", "1").spawn().expect("start the program")
    }
}

/// Set forward and back by an hour while the crawl runs, and between two processes.
#[test]
fn the_clock_is_set() {
    let Some(library) = faketime() else { return };
    let server = serve(web());
    let reference = reference(&server);
    let place = Place::new();
    let clock = WallClock { library, file: place.file("offset", "+0\n") };
    let (began, mut kills) = (Instant::now(), Vec::new());
    // What the wall clock shows at the start of each process, and then while it runs.
    for offsets in [["+0", "+3600"], ["+3600", "-3600"], ["-3600", "+3600"], ["+7200", "+0"], ["+0", "-3600"]] {
        clock.set(offsets[0]);
        let before = server.requests();
        let child = clock.start(&mut command(&server, &place));
        wait_for_requests(&server, before + 40);
        clock.set(offsets[1]);
        wait_for_requests(&server, before + 80);
        // At once, so that the next process comes into the pauses of this one.
        signal(&child, "KILL");
        ended(child, BOUND);
        kills.push(unix_ms());
    }
    clock.set("-3600");
    let told = json(&ended(clock.start(&mut command(&server, &place)), BOUND), 0);
    assert_eq!(told["state"], "finished");
    assert!(began.elapsed() < Duration::from_secs(300), "nobody waits for an hour to pass");
    judge(&server, &place.dir, &reference, &kills);
}
