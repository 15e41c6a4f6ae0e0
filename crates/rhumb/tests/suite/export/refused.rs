//! What an export refuses, in one line and before anything is touched; and what it does to a pipe.

use std::path::Path;
use std::process::{Command, Output};

use rhumb_sim::WebConfig;

use super::{crawled, export, lines};
use crate::common::{json, rhumb, run, serve};

/// One line and exit code 2.
fn refused(command: &mut Command, because: &str) {
    let output = run(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains(because), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_is_refused() {
    let server = serve(WebConfig::plain(1, 3));
    let place = crawled(&server, &[]);
    let out = place.file("out.jsonl", "mine\n");
    let folder = place.dir.with_file_name("folder");
    std::fs::create_dir(&folder).expect("make a directory");
    std::fs::write(folder.join("mine"), "mine").expect("write");
    let new = place.dir.with_file_name("new");
    refused(&mut export(&place.dir, "jsonl", &out), "exists; --overwrite replaces it");
    refused(&mut export(&place.dir, "jsonl", &folder), "is a directory, and this format is one file");
    refused(export(&place.dir, "jsonl", &folder).arg("--overwrite"), "is a directory");
    refused(&mut export(&place.dir, "markdown", &out), "is a file, and markdown needs a directory");
    refused(&mut export(&place.dir, "markdown", &folder), "exists");
    refused(export(&place.dir, "markdown", &folder).arg("--overwrite"), "is no earlier export");
    refused(&mut export(&place.dir, "docx", &new), "one of jsonl, markdown");
    refused(&mut export(&place.dir, "wacz", Path::new("-")), "cannot be written to a pipe");
    refused(export(&place.dir, "wacz", &new).args(["--host", "a.test"]), "holds the whole archive");
    refused(export(&place.dir, "wet", &new).arg("--no-text"), "nothing but text");
    refused(export(&place.dir, "jsonl", &new).args(["--matching", "("]), "matching");
    refused(export(&place.dir, "jsonl", &new).args(["--kind", "sound"]), "one of html");
    refused(export(&place.dir, "jsonl", &new).args(["--since", "soon"]), "a date such as");
    refused(&mut export(&folder, "jsonl", &new), "is not a crawl directory");
    refused(&mut export(&place.dir, "jsonl", &new.join("deep/out")), "there is no directory");
    refused(&mut export(&place.dir, "jsonl", Path::new("..")), "names no file");
    assert_eq!(std::fs::read_to_string(&out).expect("still there"), "mine\n");
    assert_eq!(std::fs::read_dir(&folder).expect("still there").count(), 1);
    assert!(!new.exists());

    json(&run(export(&place.dir, "jsonl", &out).arg("--overwrite")), 0);
    assert_eq!(lines(&out).len(), 3);
    let pages = place.dir.with_file_name("pages");
    for _ in 0..2 {
        json(&run(export(&place.dir, "markdown", &pages).arg("--overwrite")), 0);
    }
    let left: Vec<_> = std::fs::read_dir(pages.parent().expect("a parent")).expect("list").flatten().collect();
    assert!(!left.iter().any(|e| e.path().to_string_lossy().ends_with(".part")), "{left:?}");
}

/// An unfinished export is not mixed up with another.
#[test]
fn other_options_do_not_go_on_with_it() {
    let server = serve(WebConfig::plain(1, 3));
    let place = crawled(&server, &[]);
    let out = place.dir.with_file_name("out.jsonl");
    let part = place.dir.with_file_name("out.jsonl.part");
    std::fs::create_dir(&part).expect("make a directory");
    std::fs::write(part.join("lock"), "").expect("write");
    std::fs::write(part.join("state"), "{}").expect("write");
    refused(&mut export(&place.dir, "jsonl", &out), "unfinished export with other options");
    json(&run(export(&place.dir, "jsonl", &out).arg("--overwrite")), 0);
    std::fs::create_dir(&part).expect("make a directory");
    std::fs::write(part.join("mine"), "").expect("write");
    refused(export(&place.dir, "jsonl", &out).arg("--overwrite"), "none of ours");
    assert!(part.join("mine").exists());
}

#[test]
fn a_pipe_gets_the_same_bytes() {
    let server = serve(WebConfig::plain(2, 5));
    let place = crawled(&server, &[]);
    let piped = |format: &str| -> Output { run(rhumb().args(["export", "--format", format]).arg(&place.dir).arg("-")) };
    for format in ["jsonl", "wet", "cdxj"] {
        let out = place.dir.with_file_name(format!("out.{format}"));
        json(&run(&mut export(&place.dir, format, &out)), 0);
        let output = piped(format);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout == std::fs::read(&out).expect("a file"), "{format}");
    }
    let shell = format!("{} export --format jsonl {} - | head -n 1", env!("CARGO_BIN_EXE_rhumb"), place.dir.display());
    let output = run(Command::new("sh")
        .args(["-c", &shell])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped()));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
