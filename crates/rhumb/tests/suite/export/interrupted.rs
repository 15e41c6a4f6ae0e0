//! Exports that are killed, interrupted or run out of space, of crawls that run or were killed: the same bytes in the end.
//!
//! `make export-kill KILLS=n SEED=m` tries more instants.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rhumb_sim::WebConfig;

use super::{by_url, crawled, export, lines, walk};
use crate::common::{Place, crawl, json, run, serve};
use crate::crash::Mounted;

const FORMATS: [&str; 6] = ["jsonl", "parquet", "wet", "cdxj", "wacz", "markdown"];

fn web() -> WebConfig {
    WebConfig { page_bytes: 8_000, ..WebConfig::plain(12, 20) }
}

/// The export with small steps, so that there is something to go on with.
fn stepwise(dir: &Path, format: &str, out: &Path) -> Command {
    let mut command = export(dir, format, out);
    command.args(["--commit-every", "4ms", "--threads", "1", "--memory", "64KiB", "--row-group", "100KiB"]);
    command
}

/// Everything at a path: the bytes of a file, or of all files of a directory.
fn bytes(path: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    if path.is_dir() { walk(path) } else { [(String::new(), std::fs::read(path).expect("a file"))].into() }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn killed_at_any_instant_it_goes_on() {
    let server = serve(web());
    let place = crawled(&server, &[]);
    let kills = number("RHUMB_KILLS", 4);
    let mut random = number("RHUMB_SEED", 7) | 1;
    let mut gone_on = 0;
    for format in FORMATS {
        let whole = place.dir.with_file_name(format!("whole.{format}"));
        let began = Instant::now();
        let summary = json(&run(&mut stepwise(&place.dir, format, &whole)), 0);
        let took = began.elapsed();
        for i in 0..kills {
            let out = place.dir.with_file_name(format!("{i}.{format}"));
            // Several deaths in a row, the last of which may come too late.
            for _ in 0..3 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let instant = took.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64);
                let mut child = stepwise(&place.dir, format, &out).spawn().expect("start the program");
                std::thread::sleep(instant);
                let _ = child.kill();
                child.wait().expect("wait");
                if out.exists() {
                    break;
                }
            }
            // It may have been finished before it died, and then says so.
            let was_there = out.exists();
            let output = run(&mut stepwise(&place.dir, format, &out));
            if was_there && output.status.code() == Some(2) {
                assert!(String::from_utf8_lossy(&output.stderr).contains("exists"));
            } else {
                let again = json(&output, 0);
                gone_on += u64::from(again["resumed"] == true);
                assert_eq!((&again["pages"], &again["bytes"]), (&summary["pages"], &summary["bytes"]), "{format}");
            }
            assert!(bytes(&out) == bytes(&whole), "{format} differs, RHUMB_SEED={random}");
            assert!(!place.dir.with_file_name(format!("{i}.{format}.part")).exists());
        }
    }
    assert!(gone_on >= kills, "only {gone_on} exports had begun to write");
}

#[test]
fn interrupted_it_says_how_to_go_on() {
    let server = serve(WebConfig { page_bytes: 20_000, ..WebConfig::plain(30, 40) });
    let place = crawled(&server, &[]);
    let whole = place.dir.with_file_name("whole.jsonl");
    json(&run(&mut export(&place.dir, "jsonl", &whole)), 0);
    let out = place.dir.with_file_name("out.jsonl");
    let part = place.dir.with_file_name("out.jsonl.part");
    let child = stepwise(&place.dir, "jsonl", &out).spawn().expect("start the program");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !part.join("state").exists() {
        assert!(Instant::now() < deadline, "the export does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    let output = child.wait_with_output().expect("wait");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert_eq!(stderr, "rhumb: interrupted; run the same command again to go on\n");
    assert!(!out.exists() && part.exists());
    let again = json(&run(&mut stepwise(&place.dir, "jsonl", &out)), 0);
    assert_eq!(again["resumed"], true);
    assert!(bytes(&out) == bytes(&whole));
}

/// Readers never disturb the writer, and what they see is a beginning of what there will be.
#[test]
fn a_running_crawl_and_a_killed_one() {
    let server = serve(WebConfig { page_bytes: 3_000, ..WebConfig::plain(12, 50) });
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let command = || crawl(&server, &place.dir, &[&seed, "--scope", "any", "--delay", "60ms", "--per-ip", "0"]);
    let mut child = command().spawn().expect("start the program");
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.requests() < 60 {
        assert!(Instant::now() < deadline, "the crawl makes no requests");
        std::thread::sleep(Duration::from_millis(2));
    }
    let early = place.dir.with_file_name("early.jsonl");
    json(&run(&mut export(&place.dir, "jsonl", &early)), 0);
    // One that is begun now, killed when it has read the log, and gone on with when the crawl is over.
    let (slow, part) = (place.dir.with_file_name("slow.jsonl"), place.dir.with_file_name("slow.jsonl.part"));
    let mut export_child = stepwise(&place.dir, "jsonl", &slow).spawn().expect("start the program");
    while !part.join("state").exists() && !slow.exists() {
        std::thread::sleep(Duration::from_micros(200));
    }
    let _ = export_child.kill();
    export_child.wait().expect("wait");
    let seen_then = server.requests();
    for format in ["wacz", "cdxj", "parquet"] {
        json(&run(&mut export(&place.dir, format, &place.dir.with_file_name(format!("early.{format}")))), 0);
    }
    let _ = child.kill();
    child.wait().expect("wait");
    let valid = super::told(
        Command::new(super::tool("wacz")).args(["validate", "-f"]).arg(place.dir.with_file_name("early.wacz")),
    );
    assert!(valid.contains("is valid"), "{valid}");
    let killed = place.dir.with_file_name("killed.jsonl");
    json(&run(&mut export(&place.dir, "jsonl", &killed)), 0);
    let status = json(&run(&mut command()), 0);
    let last = place.dir.with_file_name("last.jsonl");
    assert_eq!(json(&run(&mut export(&place.dir, "jsonl", &last)), 0)["pages"], status["pages"]);
    if !slow.exists() {
        json(&run(&mut stepwise(&place.dir, "jsonl", &slow)), 0);
    }
    let all = lines(&last);
    let all = by_url(&all);
    let mut before = 0;
    for (path, bound) in [(early, seen_then), (slow, seen_then), (killed, u64::MAX)] {
        let rows = lines(&path);
        assert!(rows.len() >= before && (rows.len() as u64) < bound, "{}", path.display());
        assert!(rows.iter().all(|row| all[row["url"].as_str().expect("a URL")] == row), "{}", path.display());
        before = rows.len();
    }
    assert!(before <= all.len());
}

#[test]
fn a_full_disk_is_told_and_space_lets_it_go_on() {
    let server = serve(web());
    let place = crawled(&server, &[]);
    let small = place.dir.with_file_name("small");
    let Some(mounted) = Mounted::new(&small, "1m") else { return };
    for format in ["jsonl", "markdown", "wacz"] {
        let (whole, out) = (place.dir.with_file_name(format!("whole.{format}")), small.join(format!("out.{format}")));
        json(&run(&mut stepwise(&place.dir, format, &whole)), 0);
        mounted.grow("1m");
        let output = run(&mut stepwise(&place.dir, format, &out));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{format}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains("No space left on device"), "{format}: {stderr}");
        assert!(!out.exists() && output.stdout.is_empty());
        mounted.grow("200m");
        json(&run(&mut stepwise(&place.dir, format, &out)), 0);
        assert!(bytes(&out) == bytes(&whole), "{format}");
        if out.is_dir() { std::fs::remove_dir_all(&out) } else { std::fs::remove_file(&out) }.expect("remove");
    }
}
