//! Exports: what other people's tools read out of them, and what interruptions, odd URLs and bad input do to them.
//!
//! `tests/read_exports.py` does the reading, with pyarrow, DuckDB, warcio, py-wacz and pywb from the environment that `make test` makes.

mod interrupted;
mod refused;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rhumb_sim::{Reply, Server, WebConfig};
use serde_json::Value;

use crate::common::{Place, crawl, json, rhumb, run, serve};

fn tool(name: &str) -> PathBuf {
    let venv = match std::env::var_os("RHUMB_TEST_VENV") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv"),
    };
    let path = venv.join("bin").join(name);
    assert!(path.exists(), "{name} not found at {}: run `make test`, which installs them", path.display());
    path
}

/// Runs a tool to its end and gives what it printed.
fn told(command: &mut Command) -> String {
    let output = run(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

fn reader(what: &str) -> Command {
    let mut command = Command::new(tool("python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/read_exports.py")).arg(what);
    command
}

fn read(command: &mut Command) -> Value {
    serde_json::from_str(told(command).lines().last().unwrap_or_default()).expect("JSON")
}

/// `rhumb export` as JSON.
fn export(dir: &Path, format: &str, out: &Path) -> Command {
    let mut command = rhumb();
    command.args(["export", "--json", "--quiet", "--format", format]).arg(dir).arg(out);
    command
}

fn archive(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("archive")).expect("an archive").flatten().map(|e| e.path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.to_string_lossy().ends_with(".warc.gz")).collect();
    files.sort();
    files
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn by_url(rows: &[Value]) -> BTreeMap<&str, &Value> {
    rows.iter().map(|row| (row["url"].as_str().expect("a URL"), row)).collect()
}

/// A web with everything that an export must cope with.
fn odd_web() -> Server {
    let server = serve(WebConfig::plain(2, 6));
    let web = server.web();
    let page = |title: &str, more: &str| {
        let body =
            format!("<title>{title}</title><meta name=description content='About {title}'><h1>{title}</h1>{more}");
        Reply::new(200, "text/html; charset=utf-8", &body)
    };
    let long = format!("/{}", "long-".repeat(300));
    let paths = [
        "/Case",
        "/case",
        "/case/",
        "/case/index",
        "/a.md",
        "/a.md/b",
        "/x?q=1",
        "/x?q=2",
        "/x",
        "//double",
        "/.../dots",
        "/.git/config",
        "/%E4%BD%A0%E5%A5%BD",
        "/con",
        "/same-1",
        "/same-2",
        "/%2e%2e%2fetc",
        "/~user",
        "/noindex",
        "/noarchive",
        "/header",
        "/moved",
        "/missing",
        "/plain.txt",
        "/image.png",
        "/empty",
        &long,
    ];
    let links: String = paths.iter().map(|p| format!("<a rel=ugc href='{p}'>to {p}</a> ")).collect();
    web.set_document(0, "/", page("Home", &links));
    for path in paths {
        web.set_document(0, path, page(&format!("Page {path}"), "<p>Some words that are there to be read.</p>"));
    }
    for path in ["/same-1", "/same-2"] {
        web.set_document(0, path, page("Same", "<p>The same words twice.</p>"));
    }
    let meta = |word: &str| format!("<meta name=robots content={word}><p>Words of a page that says {word}.</p>");
    web.set_document(0, "/noindex", page("Noindex", &meta("noindex")).with_header("ETag", "\"n\""));
    web.set_document(0, "/noarchive", page("Noarchive", &meta("noarchive")));
    web.set_document(0, "/header", page("Header", "").with_header("X-Robots-Tag", "nosnippet"));
    web.set_document(0, "/moved", Reply::redirect(301, "/x"));
    web.set_document(0, "/missing", Reply::new(404, "text/html", "<title>gone</title>"));
    web.set_document(0, "/plain.txt", Reply::new(200, "text/plain", "Plain words.\u{2028}\u{10ffff} \"quoted\"\n"));
    web.set_document(0, "/image.png", Reply::new(200, "image/png", "\u{89}PNG\r\n"));
    web.set_document(0, "/empty", Reply::new(200, "text/html", ""));
    server
}

fn crawled(server: &Server, more: &[&str]) -> Place {
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let mut arguments = vec![seed.as_str(), "--scope", "any", "--delay", "0s", "--per-ip", "0"];
    arguments.extend(more);
    json(&run(&mut crawl(server, &place.dir, &arguments)), 0);
    place
}

#[test]
fn others_read_what_is_exported() {
    let server = odd_web();
    let place = crawled(&server, &[]);
    let out = |format: &str| place.dir.with_file_name(format!("out.{format}"));
    let mut summaries = BTreeMap::new();
    for format in ["jsonl", "parquet", "wet", "cdxj", "wacz", "markdown"] {
        summaries.insert(format, json(&run(&mut export(&place.dir, format, &out(format))), 0));
    }
    let rows = lines(&out("jsonl"));
    assert_eq!(summaries["jsonl"]["pages"], rows.len());
    assert_eq!(summaries["jsonl"]["bytes"], std::fs::metadata(out("jsonl")).expect("a file").len());

    let agreed = read(reader("rows").args([out("jsonl"), out("parquet")]));
    assert_eq!(agreed["rows"], rows.len());
    // All rows again, those that failed too, in many small groups.
    let (all, groups) = (place.dir.with_file_name("all.jsonl"), place.dir.with_file_name("all.parquet"));
    json(&run(export(&place.dir, "jsonl", &all).arg("--include-failed")), 0);
    json(&run(export(&place.dir, "parquet", &groups).args(["--include-failed", "--row-group", "1KiB"])), 0);
    let agreed = read(reader("rows").args([&all, &groups]));
    assert!(agreed["rows"].as_u64() > Some(rows.len() as u64) && agreed["groups"].as_u64() > Some(3), "{agreed}");

    read(reader("wet").args([out("wet"), out("jsonl")]).args(archive(&place.dir)));
    told(Command::new(tool("warcio")).arg("check").arg(out("wet")));
    let theirs = told(Command::new(tool("cdxj-indexer")).arg("-s").args(archive(&place.dir)));
    assert_eq!(std::fs::read_to_string(out("cdxj")).expect("an index"), theirs);
    let verdict = told(Command::new(tool("wacz")).args(["validate", "-f"]).arg(out("wacz")));
    assert!(verdict.contains("the passed WACZ is valid"), "{verdict}");
    let replayed = read(reader("replay").args([out("wacz"), out("cdxj")]).args(archive(&place.dir)));
    assert_eq!(replayed["pages"], summaries["wacz"]["pages"]);
    assert!(!place.dir.with_file_name("out.wacz.part").exists());
}

#[test]
fn rows_tell_what_is_known() {
    let server = odd_web();
    let place = crawled(&server, &[]);
    let out = place.dir.with_file_name("pages.jsonl");
    json(&run(&mut export(&place.dir, "jsonl", &out)), 0);
    let rows = lines(&out);
    let rows = by_url(&rows);
    let origin = server.web().origin(0);
    let row = |path: &str| *rows.get(format!("{origin}{path}").as_str()).unwrap_or_else(|| panic!("no {path}"));
    let home = row("/");
    assert_eq!((&home["title"], &home["seed"], &home["depth"]), (&"Home".into(), &true.into(), &0.into()));
    assert_eq!((&home["description"], &home["charset"]), (&"About Home".into(), &"UTF-8".into()));
    let link = &home["links"][0];
    assert_eq!((&link["url"], &link["text"]), (&format!("{origin}/Case").into(), &"to /Case".into()));
    assert_eq!((&link["rel"], &link["kind"], &link["nofollow"]), (&"ugc".into(), &"a".into(), &true.into()));
    assert!(row("/x?q=1")["text"].as_str().expect("text").contains("Some words that are there to be read."));
    // Of two pages with one body the later is a pointer in the archive, and still has all its text.
    let (first, second) = (row("/same-1"), row("/same-2"));
    assert_eq!((&first["text"], &first["digest"]), (&second["text"], &second["digest"]));
    let copies: Vec<_> = [first, second].into_iter().filter(|r| !r["duplicate_of"].is_null()).collect();
    assert_eq!(copies.len(), 1, "{first} {second}");
    assert_eq!(row("/noindex")["robots"], serde_json::json!(["noindex"]));
    assert_eq!(row("/noindex")["etag"], "\"n\"");
    assert!(row("/noindex")["text"].is_string());
    assert_eq!(row("/header")["robots"], serde_json::json!(["nosnippet"]));
    // A page that forbids copies is told of, and not given away.
    assert_eq!((&row("/noarchive")["text"], &row("/noarchive")["title"]), (&Value::Null, &"Noarchive".into()));
    assert_eq!((&row("/plain.txt")["kind"], &row("/image.png")["kind"]), (&"text".into(), &"image".into()));
    for absent in ["/missing", "/moved", "/robots.txt"] {
        assert!(!rows.contains_key(format!("{origin}{absent}").as_str()), "{absent}");
    }

    json(&run(export(&place.dir, "jsonl", &out).args(["--overwrite", "--include-failed", "--no-text"])), 0);
    let rows = lines(&out);
    let rows = by_url(&rows);
    let row = |path: &str| *rows.get(format!("{origin}{path}").as_str()).unwrap_or_else(|| panic!("no {path}"));
    assert_eq!((&row("/missing")["outcome"], &row("/missing")["status"]), (&"not_found".into(), &404.into()));
    assert_eq!(row("/moved")["redirect"], format!("{origin}/x"));
    assert!(rows.values().all(|r| r["text"].is_null()));

    let chosen = |arguments: &[&str]| {
        json(&run(export(&place.dir, "jsonl", &out).arg("--overwrite").args(arguments)), 0)["pages"].as_u64()
    };
    assert_eq!(chosen(&["--prefix", &format!("{origin}/x?")]), Some(2));
    assert_eq!(chosen(&["--matching", "/same-[0-9]$", "--no-links"]), Some(2));
    assert!(lines(&out).iter().all(|r| r["links"].is_null()));
    assert_eq!(chosen(&["--kind", "image"]), Some(1));
    assert_eq!(chosen(&["--host", "nowhere.test"]), Some(0));
    assert_eq!(chosen(&["--since", "2100-01-01"]), Some(0));
}

#[test]
fn markdown_files_have_safe_names() {
    let server = odd_web();
    let place = crawled(&server, &[]);
    let out = place.dir.with_file_name("pages");
    let summary = json(&run(&mut export(&place.dir, "markdown", &out)), 0);
    let index = lines(&out.join("index.jsonl"));
    assert_eq!(summary["pages"], index.len());
    let mut seen = std::collections::BTreeSet::new();
    for line in &index {
        let name = line["file"].as_str().expect("a name");
        assert!(seen.insert(name.to_lowercase()), "{name} twice");
        let path = out.join(name);
        assert!(path.canonicalize().expect(name).starts_with(out.canonicalize().expect("out")), "{name}");
        let text = std::fs::read_to_string(&path).expect(name);
        assert!(text.starts_with(&format!("---\nurl: {}\n", line["url"])), "{text}");
        assert_eq!(line["bytes"], text.len());
        assert!(!text.contains("says noarchive"));
    }
    let files = walk(&out);
    assert_eq!(files.len(), index.len() + 1, "{files:?}");
    assert!(index.len() >= 20, "{}", index.len());
}

/// All files below a directory.
fn walk(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![dir.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("list").flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("below").to_string_lossy().into_owned();
                files.insert(name, std::fs::read(&path).expect("read"));
            }
        }
    }
    files
}

#[test]
fn a_crawl_without_pages_gives_empty_exports() {
    let server = serve(WebConfig::plain(1, 1));
    server.web().set_robots(0, "User-agent: *\nDisallow: /\n");
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&server.web().url(0, 0), "--no-archive"])), 1);
    let out = |format: &str| place.dir.with_file_name(format!("out.{format}"));
    for format in ["jsonl", "parquet", "wet", "cdxj", "markdown"] {
        assert_eq!(json(&run(&mut export(&place.dir, format, &out(format))), 0)["pages"], 0, "{format}");
    }
    assert_eq!(read(reader("rows").args([out("jsonl"), out("parquet")]))["rows"], 0);
    let output = run(&mut export(&place.dir, "wacz", &out("wacz")));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("no archive to pack"), "{stderr}");
    assert!(!out("wacz").exists() && !out("wacz.part").exists());
}

/// Without an archive there is still what the log knows.
#[test]
fn a_crawl_without_an_archive_has_rows_without_text() {
    let server = serve(WebConfig::plain(2, 5));
    let place = crawled(&server, &["--no-archive"]);
    let out = place.dir.with_file_name("out.jsonl");
    json(&run(&mut export(&place.dir, "jsonl", &out)), 0);
    let rows = lines(&out);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|r| r["text"].is_null() && r["title"].is_string() && r["links"].is_array()));
}
