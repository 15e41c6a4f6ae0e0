//! `file:`: a tree of documents, with everything in it that a tree may hold.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::warcs::python;
use crate::common::{Place, json, rhumb, run, run_within, visits};

fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
    fs::write(path, text).expect("write a file");
}

fn crawl_tree(seed: &Path, dir: &Path, more: &[&str]) -> Command {
    let mut command = rhumb();
    command.args(["crawl", "--json", "--dir"]).arg(dir).arg(seed).args(more);
    command
}

/// How each file ended: its path below `top`, outcome, status, title.
fn ends(dir: &Path, top: &Path) -> BTreeMap<String, (&'static str, u16, String)> {
    let top = format!("file://{}/", top.canonicalize().expect("it is there").display());
    let told = visits(dir).into_iter().map(|v| {
        let path = v.entry.url.as_str().strip_prefix(&top).unwrap_or(v.entry.url.as_str()).to_string();
        (path, (v.outcome.name(), v.status, v.title.to_string()))
    });
    told.collect()
}

fn fetch(url: &str) -> Value {
    let output = run(rhumb().args(["fetch", "--json", url]));
    let code = output.status.code().expect("an exit code");
    assert!(code <= 1, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output, code)
}

#[test]
fn a_tree_is_crawled_like_a_site() {
    let tree = tempfile::tempdir().expect("temporary directory");
    let top = tree.path().join("docs");
    write(
        top.join("index.html"),
        "<title>Home</title><a href=a.html?v=1#x>a</a><a href=sub>sub</a><a href=list/>l</a><a href=missing>m</a><a href='%2e%2e/outside.html'>o</a><a href='caf%C3%A9 1.txt'>t</a>",
    );
    write(top.join("a.html"), "<title>A</title><a href=http://127.0.0.1:1/>web</a><a href=/etc/hostname>e</a>");
    write(top.join("sub/index.htm"), "<title>Sub</title>");
    write(top.join("list/one.html"), "<title>One</title>");
    write(top.join("list/.hidden.html"), "<title>Hidden</title>");
    write(top.join("list/a&b<c>.txt"), "just text");
    write(top.join("list/deeper/two.html"), "<title>Two</title>");
    write(top.join("café 1.txt"), "text");
    write(tree.path().join("outside.html"), "<title>Outside</title>");
    let place = Place::new();
    let status = json(&run(&mut crawl_tree(&top, &place.dir, &[])), 0);
    let ends = ends(&place.dir, &top);
    let check = |path: &str, outcome: &str, status: u16, title: &str| {
        assert_eq!(
            ends.get(path),
            Some(&(outcome, status, title.to_string())).cloned().as_ref(),
            "{path} in {ends:#?}"
        );
    };
    check("", "ok", 200, "Home");
    check("a.html", "ok", 200, "A");
    check("sub", "redirect", 301, "");
    check("sub/", "ok", 200, "Sub");
    check("list/one.html", "ok", 200, "One");
    check("list/a%26b%3Cc%3E.txt", "ok", 200, "");
    check("list/deeper/two.html", "ok", 200, "Two");
    check("caf%C3%A9%201.txt", "ok", 200, "");
    check("missing", "not_found", 404, "");
    assert_eq!(ends.len(), 11, "{ends:#?}");
    assert_eq!(status["pages"], 9, "{status}");
    assert_eq!(status["requests"].as_u64().unwrap_or(11), 11, "{status}");
    // No robots.txt, no look-up, no pause.
    assert!(visits(&place.dir).iter().all(|v| v.purpose.is_page() && v.address.is_none()));
    let found = visits(&place.dir).into_iter().find(|v| v.entry.url.path().ends_with("/a.html")).expect("a.html");
    assert_eq!(found.media_type.as_ref(), "text/html");
    assert!(found.links.iter().all(|l| !l.wanted), "{:?}", found.links);
    // Told like any other URL.
    let url = format!("file://{}/a.html", top.canonicalize().expect("it is there").display());
    let story = json(&run(rhumb().args(["explain", "--json"]).arg(&place.dir).arg(&url)), 0);
    assert_eq!((&story["state"], &story["links_to_it"]), (&Value::from("done"), &Value::from(1)), "{story}");
    let again = json(&run(&mut crawl_tree(&top, &place.dir, &[])), 0);
    assert_eq!(again["pages"], 9, "nothing twice: {again}");
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
}

#[test]
fn what_is_no_file_is_refused_and_links_stay_inside() {
    let tree = tempfile::tempdir().expect("temporary directory");
    let top = tree.path().join("docs");
    write(top.join("a/page.html"), "<title>Page</title>");
    write(top.join("locked.html"), "secret");
    fs::set_permissions(top.join("locked.html"), fs::Permissions::from_mode(0o000)).expect("chmod");
    write(tree.path().join("outside/secret.html"), "<title>Secret</title>");
    symlink("..", top.join("a/up")).expect("link");
    symlink(top.join("a"), top.join("same")).expect("link");
    symlink("../outside/secret.html", top.join("out.html")).expect("link");
    symlink("/etc", top.join("etc")).expect("link");
    symlink("nowhere", top.join("dangling")).expect("link");
    symlink("self", top.join("self")).expect("link");
    symlink("a/page.html", top.join("inside.html")).expect("link");
    symlink("pipe", top.join("to-pipe")).expect("link");
    rustix_mkfifo(&top.join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).expect("a socket");
    symlink("/dev/zero", top.join("zero")).expect("link");
    write(
        top.join("links.html"),
        "<a href=pipe>p</a><a href=socket>s</a><a href=zero>z</a><a href=zero/>z</a><a href='a%2Fpage.html'>x</a><a href='nul%00'>x</a><a href=links.html/>x</a><a href=etc/hostname>e</a>",
    );
    let place = Place::new();
    let status = json(&run_within(&mut crawl_tree(&top, &place.dir, &[]), Duration::from_secs(30)), 0);
    let ends = ends(&place.dir, &top);
    let check = |path: &str, outcome: &str, status: u16| {
        let found = ends.get(path).map(|(outcome, status, _)| (*outcome, *status));
        assert_eq!(found, Some((outcome, status)), "{path} in {ends:#?}");
    };
    check("", "ok", 200);
    check("a/", "ok", 200);
    check("a/page.html", "ok", 200);
    // Root may read everything.
    if fs::read(top.join("locked.html")).is_err() {
        check("locked.html", "client_error", 403);
    }
    check("a/up", "redirect", 301);
    check("same", "redirect", 301);
    check("inside.html", "redirect", 301);
    for refused in ["out.html", "etc", "etc/hostname", "to-pipe", "pipe", "socket", "zero"] {
        check(refused, "client_error", 403);
    }
    for missing in ["dangling", "self", "a%2Fpage.html", "nul%00", "links.html/"] {
        check(missing, "not_found", 404);
    }
    assert!(!ends.values().any(|(_, _, title)| title == "Secret"), "{ends:#?}");
    assert!(status["requests"].as_u64().unwrap_or(0) < 40, "no link leads round in circles: {status}");
}

fn rustix_mkfifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("run mkfifo");
    assert!(made.success());
}

#[test]
fn a_crawl_inside_its_own_tree_leaves_itself_out() {
    let tree = tempfile::tempdir().expect("temporary directory");
    write(tree.path().join("a.html"), "<title>A</title>");
    let dir = tree.path().join("out.crawl");
    let status = json(&run_within(&mut crawl_tree(tree.path(), &dir, &[]), Duration::from_secs(30)), 0);
    assert_eq!(status["pages"], 2, "{status}");
    let ends = ends(&dir, tree.path());
    assert_eq!(ends.keys().collect::<Vec<_>>(), ["", "a.html"], "{ends:#?}");
}

#[test]
fn large_and_odd_files_keep_to_the_bounds() {
    let tree = tempfile::tempdir().expect("temporary directory");
    write(tree.path().join("large.txt"), vec![b'x'; 300_000]);
    write(tree.path().join("empty.html"), "");
    write(tree.path().join("no-extension"), "<!doctype html><title>Sniffed</title><a href=empty.html>x</a>");
    let place = Place::new();
    let config = place.file("config.toml", "[fetch]\nbody_max = \"100KiB\"\n");
    json(&run(crawl_tree(tree.path(), &place.dir, &[]).arg("--config").arg(config)), 0);
    let seen = visits(&place.dir);
    let of = |name: &str| seen.iter().find(|v| v.entry.url.path().ends_with(name)).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((of("large.txt").wire_bytes, of("large.txt").truncated), (100 << 10, true));
    assert_eq!((of("empty.html").wire_bytes, of("empty.html").truncated), (0, false));
    assert_eq!(&*of("no-extension").title, "Sniffed");
    assert_eq!(of("no-extension").links.len(), 1);
}

/// Resource records, as WARC 1.1 has them for what was not had over HTTP: whole, indexed as `rhumb warc cdxj` does.
#[test]
fn files_are_archived_as_resources() {
    let tree = tempfile::tempdir().expect("temporary directory");
    let same = format!("<title>A</title>{}", "the same ".repeat(1_000));
    write(tree.path().join("a.html"), &same);
    write(tree.path().join("b c.html"), &same);
    write(tree.path().join("data.bin"), [0, 1, 2, 255]);
    let place = Place::new();
    let status = json(&run(&mut crawl_tree(tree.path(), &place.dir, &[])), 0);
    assert_eq!((&status["pages"], &status["duplicates"]), (&Value::from(4), &Value::from(1)), "{status}");
    json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
    let archive = place.dir.join("archive");
    let mut beside = Vec::new();
    for entry in fs::read_dir(&archive).expect("archive").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".cdxj") {
            beside.extend(fs::read_to_string(entry.path()).expect("index").lines().map(String::from));
        }
    }
    let made = run(rhumb().args(["warc", "cdxj"]).arg(&place.dir));
    let made = String::from_utf8(made.stdout).expect("text");
    assert_eq!(made.lines().map(String::from).collect::<Vec<_>>(), beside);
    assert_eq!(beside.len(), 4, "{beside:#?}");
    assert!(beside.iter().any(|l| l.contains("\"mime\": \"application/octet-stream\"")), "{beside:#?}");
    assert!(beside.iter().any(|l| l.contains("warc/revisit")), "{beside:#?}");
    // And as others see it.
    for entry in fs::read_dir(&archive).expect("archive").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".warc.gz") {
            let check = "import sys; from warcio.cli import main; main(['check', '-v', sys.argv[1]])";
            let checked = Command::new(python()).args(["-c", check]).arg(entry.path()).output().expect("start python");
            let told = String::from_utf8_lossy(&checked.stdout).into_owned();
            assert!(checked.status.success() && !told.contains("failed"), "{told}");
            let list = "import sys; from warcio import ArchiveIterator\n\
                        for r in ArchiveIterator(open(sys.argv[1], 'rb')): print(r.rec_type, len(r.content_stream().read()))";
            let listed = Command::new(python()).args(["-c", list]).arg(entry.path()).output().expect("start python");
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            assert_eq!(listed.matches("resource").count(), 3, "{listed}");
            assert!(listed.contains("resource 9016") && listed.contains("revisit 0"), "{listed}");
        }
    }
}

#[test]
fn one_file_by_hand() {
    let tree = tempfile::tempdir().expect("temporary directory");
    let path = tree.path().canonicalize().expect("it is there").join("a b.html");
    write(&path, "<p>hello");
    let url = format!("file://{}", path.display());
    let fetched = fetch(&url);
    assert_eq!((&fetched["status"], &fetched["body_bytes"]), (&Value::from(200), &Value::from(8)), "{fetched}");
    assert_eq!(fetched["protocol"], "file");
    let etag =
        fetched["headers"].as_array().and_then(|h| h.iter().find(|h| h[0] == "etag")).expect("an ETag")[1].clone();
    let again = run(rhumb().args(["fetch", "--json", &url, "--if-none-match", etag.as_str().expect("text")]));
    assert_eq!(json(&again, 0)["outcome"], "not_modified");
    write(&path, "<p>hello again");
    let changed = run(rhumb().args(["fetch", "--json", &url, "--if-none-match", etag.as_str().expect("text")]));
    assert_eq!(json(&changed, 0)["outcome"], "ok");
    assert_eq!(fetch(&format!("{url}x"))["outcome"], "not_found");
    let normalized = run(rhumb().args(["url", "normalize", "--json", "file://localhost/a//b/../c%7e?x#y"]));
    assert_eq!(json(&normalized, 0)["url"], "file:///a/c~");
}

/// Visited again, a file that did not change is not read.
#[test]
fn unchanged_files_are_not_read_again() {
    let tree = tempfile::tempdir().expect("temporary directory");
    write(tree.path().join("a.html"), "<title>A</title>");
    let place = Place::new();
    let config = place.file("config.toml", "[crawl]\nrevisit = \"50ms\"\n");
    let more = ["--continuous", "--max-time", "1500ms"];
    let output = run(crawl_tree(tree.path(), &place.dir, &more).arg("--config").arg(&config));
    assert!(output.status.code() == Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = visits(&place.dir);
    let of = |outcome: &str| seen.iter().filter(|v| v.outcome.name() == outcome).count();
    assert_eq!(of("ok"), 2);
    assert!(of("not_modified") > 2, "{}", of("not_modified"));
}

#[test]
fn mistakes_are_told_in_one_line() {
    let check = |seed: &str, what: &str| {
        let output = run(rhumb().args(["crawl", "--dir", "/nonexistent/x.crawl", seed]));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
        assert!(told.contains(what), "{told}");
    };
    check("/no/such/directory", "no such file");
    check("file://server/share", "cannot be a seed");
}
