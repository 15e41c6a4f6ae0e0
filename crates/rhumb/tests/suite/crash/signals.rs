//! Being told to stop, being asked while running, and being looked at when dead.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use rhumb_sim::{Scope, Server, WebConfig};
use serde_json::Value;

use super::{Facts, restore, snapshot};
use crate::common::{Place, crawl, json, rhumb, run, serve};

fn web() -> WebConfig {
    WebConfig { hosts: 12, pages: 10, pages_exact: true, page_bytes: 3_000, links: 10, ..WebConfig::plain(12, 10) }
}

fn command(server: &Server, dir: &Path) -> Command {
    command_with_delay(server, dir, "40ms")
}

fn command_with_delay(server: &Server, dir: &Path, delay: &str) -> Command {
    let seed = server.web().url(0, 0);
    crawl(server, dir, &[&seed, "--scope", "any", "--delay", delay, "--per-ip", "0"])
}

fn status_of(dir: &Path) -> Output {
    run(rhumb().args(["status", "--json"]).arg(dir))
}

/// Starts a crawl and waits until it has made so many requests.
fn started(server: &Server, mut command: Command, requests: u64) -> Child {
    let before = server.requests();
    let child = command.spawn().expect("start the program");
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.requests() < before + requests {
        assert!(Instant::now() < deadline, "the crawl makes no requests");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

fn ended(child: Child, bound: Duration) -> Output {
    let (done, output) = std::sync::mpsc::channel();
    let id = child.id();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let waited = output.recv_timeout(bound).unwrap_or_else(|_| panic!("process {id} did not end within {bound:?}"));
    waited.expect("wait")
}

/// The figures that do not depend on the moment.
fn lasting(status: &Value) -> Vec<(&'static str, Value)> {
    let names = ["pages", "urls_seen", "urls_waiting", "hosts", "bytes", "outcomes", "requests", "robots_fetched"];
    names.into_iter().chain(["duplicates", "links", "retries"]).map(|n| (n, status[n].clone())).collect()
}

#[test]
fn interrupted_and_resumed() {
    let server = serve(web());
    let truth = server.web().reachable(&[server.web().url(0, 0)], Scope::Any, "rhumb", false);
    for name in ["INT", "TERM"] {
        let place = Place::new();
        let child = started(&server, command(&server, &place.dir), 30);
        signal(&child, name);
        let told = json(&ended(child, Duration::from_secs(20)), 4);
        assert_eq!(told["state"], "interrupted");
        let pages = told["pages"].as_u64().expect("a number");
        assert!(pages > 0 && pages < truth.pages.len() as u64, "{pages} pages");
        let looked = json(&status_of(&place.dir), 0);
        assert_eq!(looked["state"], "stopped");
        assert_eq!(lasting(&looked), lasting(&told));
        let resumed = json(&run(&mut command(&server, &place.dir)), 0);
        assert_eq!(resumed["state"], "finished");
        assert_eq!(Facts::read(&place.dir).expect("a sound log").pages, truth.pages);
    }
}

#[test]
fn a_signal_in_the_first_moment() {
    let server = serve(web());
    let place = Place::new();
    for wait_ms in [0, 2, 4, 6, 8, 12, 20, 40] {
        let child = command(&server, &place.dir).spawn().expect("start the program");
        std::thread::sleep(Duration::from_millis(wait_ms));
        signal(&child, "INT");
        let output = ended(child, Duration::from_secs(20));
        // Before the program listens the system ends it; afterwards it ends itself.
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), None | Some(4)), "{} after {wait_ms} ms: {stderr}", output.status);
    }
    json(&run(&mut command(&server, &place.dir)), 0);
    let truth = server.web().reachable(&[server.web().url(0, 0)], Scope::Any, "rhumb", false);
    assert_eq!(Facts::read(&place.dir).expect("a sound log").pages, truth.pages);
}

#[test]
fn looking_at_a_dead_crawl_touches_nothing() {
    let server = serve(web());
    let place = Place::new();
    let mut child = started(&server, command(&server, &place.dir), 40);
    child.kill().expect("kill");
    child.wait().expect("wait");
    // As a power loss would leave it, so that there is something to cut.
    let log = place.dir.join("log/00000001.log");
    let mut bytes = std::fs::read(&log).expect("read the log");
    bytes.extend_from_slice(&[7; 100]);
    std::fs::write(&log, bytes).expect("write the log");

    let before = listing(&place.dir);
    let looked = json(&status_of(&place.dir), 0);
    assert_eq!(looked["state"], "stopped");
    assert_eq!(listing(&place.dir), before, "`status` touches nothing");
    json(&status_of(&place.dir), 0);

    let copy = Place::new();
    restore(&snapshot(&place.dir), &copy.dir);
    let resumed = json(&run(rhumb().args(["crawl", "--json", "--max-time", "0s", "--dir"]).arg(&copy.dir)), 0);
    assert_eq!(lasting(&looked), lasting(&resumed), "what `status` says is what a resume finds");
    json(&run(&mut command(&server, &place.dir)), 0);
    let truth = server.web().reachable(&[server.web().url(0, 0)], Scope::Any, "rhumb", false);
    assert_eq!(Facts::read(&place.dir).expect("a sound log").pages, truth.pages);
}

/// Names, lengths, times of change and bytes of everything below a directory.
fn listing(dir: &Path) -> Vec<(PathBuf, std::time::SystemTime, Vec<u8>)> {
    let modified = |name: &PathBuf| std::fs::metadata(dir.join(name)).and_then(|m| m.modified()).expect("a time");
    let mut all: Vec<_> =
        snapshot(dir).into_iter().map(|(name, bytes)| (name.clone(), modified(&name), bytes)).collect();
    for folder in ["", "log", "state", "archive", "state/queues", "state/sieve"].map(PathBuf::from) {
        all.push((folder.clone(), modified(&folder), Vec::new()));
    }
    all
}

/// In a directory whose path is longer than a socket's name may be.
#[test]
fn a_running_crawl_answers_and_is_left_alone() {
    let server = serve(web());
    let place = Place::new();
    let dir = place.dir.join("d".repeat(90)).join("e".repeat(90));
    assert!(dir.as_os_str().len() > 180);
    let child = started(&server, command_with_delay(&server, &dir, "300ms"), 20);
    let first = json(&status_of(&dir), 0);
    assert_eq!(first["state"], "running");
    let deadline = Instant::now() + Duration::from_secs(10);
    while json(&status_of(&dir), 0)["requests"].as_u64() <= first["requests"].as_u64() {
        assert!(Instant::now() < deadline, "the figures stand still");
    }

    // Held still, so that whatever changes is the second crawl's doing.
    signal(&child, "STOP");
    let before = listing(&dir);
    let second = run(&mut command_with_delay(&server, &dir, "300ms"));
    let after = listing(&dir);
    signal(&child, "CONT");
    let stderr = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("in use") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(after, before, "the second crawl touches nothing");

    json(&ended(child, Duration::from_secs(60)), 0);
    let truth = server.web().reachable(&[server.web().url(0, 0)], Scope::Any, "rhumb", false);
    assert_eq!(Facts::read(&dir).expect("a sound log").pages, truth.pages);
    assert_eq!(json(&status_of(&dir), 0)["state"], "finished");
}
