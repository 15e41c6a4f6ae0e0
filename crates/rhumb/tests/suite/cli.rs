//! The command line as a contract: what people and programs get for what they type.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rhumb_sim::{Reply, Server, WebConfig};
use serde_json::{Value, json};

use crate::common::{Place, crawl, json, rhumb, run, run_within, serve};

/// Every command with its subcommands.
const COMMANDS: &[&str] = &[
    "",
    "crawl",
    "demo",
    "status",
    "rebuild",
    "explain",
    "robots",
    "robots check",
    "url",
    "url parse",
    "url normalize",
    "parse",
    "warc",
    "warc ls",
    "warc check",
    "warc cdxj",
    "fetch",
    "dns",
    "net",
    "net check",
    "config",
    "config show",
    "sim",
    "sim serve",
];

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(' ').filter(|w| !w.is_empty())
}

fn typed(line: &str) -> Output {
    run(rhumb().args(words(line)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8 on the terminal")
}

/// Everything below a directory: name, size and time of change.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).expect("list").map(|e| e.expect("entry")) {
            let about = entry.metadata().expect("metadata");
            if about.is_dir() {
                todo.push(entry.path());
            }
            found.insert(entry.path(), (about.len(), about.modified().expect("time")));
        }
    }
    found
}

/// A failure is one line on stderr, nothing on stdout, and the right code.
fn check_failure(output: &Output, code: i32, expected: &str, what: &str) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{what}: {err}");
    assert_eq!(out, "", "{what}");
    assert!(
        err.starts_with("rhumb: ") && err.ends_with('\n') && err.lines().count() == 1,
        "{what}: not one line: {err:?}"
    );
    assert!(err.contains(expected), "{what}: {err:?} should say {expected:?}");
    assert!(!err.contains("panicked"), "{what}: {err}");
}

#[test]
fn bad_input_is_one_line_and_touches_nothing() {
    let root = tempfile::tempdir().expect("temporary directory");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        std::fs::write(path, text).expect("file");
    };
    write("file", "Hello");
    write("full/notes.txt", "mine");
    write("newer/rhumb.toml", "format = 9\nbrand_new = 1\n");
    write("nameless/rhumb.toml", "[crawl]\n");
    write("broken/rhumb.toml", "format = 1\n[crawl]\nworkers = \"many\"\n");
    write("key.toml", "[crawl]\nworkers = 3\nworker = 3\n");
    write("top.toml", "\n\ncolour = 1\n");
    write("unit.toml", "[politeness]\n\ndelay = \"2 parsecs\"\n");
    write("bare.toml", "[politeness]\ndelay = 2\n");
    write("size.toml", "[crawl]\nmemory = true\n");
    write("kind.toml", "[crawl]\nworkers = \"many\"\n");
    write("syntax.toml", "[crawl\n");
    write("range.toml", "[crawl]\nworkers = 0\n");
    write("level.toml", "[[priority]]\nmatch = \"x\"\nlevel = 99\n");
    write("bytes.toml", "");
    std::fs::write(root.path().join("bytes.toml"), [0xff, 0xfe]).expect("file");
    let before = tree(root.path());
    #[rustfmt::skip]
    let table = [
        ("frob", 2, "frob"),
        ("--frob", 2, "--frob"),
        ("crawl", 2, "name at least one seed"),
        ("crawl http://", 2, "cannot be a seed"),
        ("crawl mailto:a@b.c", 2, "cannot be a seed"),
        ("crawl ftp://a.example/", 2, "neither http nor https"),
        ("crawl http://a.example/ http://[::1", 2, "cannot be a seed"),
        ("crawl --dir none", 2, "none is not a crawl directory"),
        ("crawl --dir full", 2, "full is not a crawl directory"),
        ("crawl http://a.example/ --dir file", 2, "file is a file"),
        ("crawl http://a.example/ --dir file/below", 3, "file/below"),
        ("crawl http://a.example/ --dir full", 2, "not empty"),
        ("crawl --dir newer", 3, "another version"),
        ("crawl http://a.example/ --dir newer", 3, "another version"),
        ("crawl --dir nameless", 3, "names no format"),
        ("crawl --dir broken", 3, "line 3"),
        ("crawl http://a.example/ --dir none --config none.toml", 2, "cannot read none.toml"),
        ("crawl http://a.example/ --dir none --config full", 2, "cannot read full"),
        ("crawl http://a.example/ --dir none --config bytes.toml", 2, "cannot read bytes.toml"),
        ("crawl http://a.example/ --dir none --config key.toml", 2, "line 3: unknown field `worker`"),
        ("crawl http://a.example/ --dir none --config top.toml", 2, "line 3: unknown field `colour`"),
        ("crawl http://a.example/ --dir none --config unit.toml", 2, "line 3: \"2 parsecs\" is not a duration"),
        ("crawl http://a.example/ --dir none --config bare.toml", 2, "line 2"),
        ("crawl http://a.example/ --dir none --config bare.toml", 2, "such as \"2s\""),
        ("crawl http://a.example/ --dir none --config size.toml", 2, "such as \"512MiB\""),
        ("crawl http://a.example/ --dir none --config kind.toml", 2, "line 2"),
        ("crawl http://a.example/ --dir none --config syntax.toml", 2, "line 1"),
        ("crawl http://a.example/ --dir none --config range.toml", 2, "workers 0"),
        ("crawl http://a.example/ --dir none --config level.toml", 2, "level 99"),
        ("crawl http://a.example/ --dir none --include (", 2, "include expression \"(\""),
        ("crawl http://a.example/ --dir none --exclude [a", 2, "exclude expression"),
        ("crawl http://a.example/ --dir none --allow-net 10.0.0.0/33", 2, "10.0.0.0/33"),
        ("crawl http://a.example/ --dir none --delay 5", 2, "is not a duration"),
        ("crawl http://a.example/ --dir none --delay -1s", 2, "-1"),
        ("crawl http://a.example/ --dir none --delay", 2, "--delay"),
        ("crawl http://a.example/ --dir none --max-time soon", 2, "is not a duration"),
        ("crawl http://a.example/ --dir none --memory lots", 2, "is not a size"),
        ("crawl http://a.example/ --dir none --memory 1KiB", 2, "at least 1MiB"),
        ("crawl http://a.example/ --dir none --dns localhost", 2, "--dns"),
        ("crawl http://a.example/ --dir none --dns 127.0.0.1", 2, "--dns"),
        ("crawl http://a.example/ --dir none --limit -3", 2, "-3"),
        ("crawl http://a.example/ --dir none --limit many", 2, "--limit"),
        ("crawl http://a.example/ --dir none --workers 0", 2, "workers 0"),
        ("crawl http://a.example/ --dir none --scope world", 2, "host, domain, prefix or any"),
        ("crawl http://a.example/ --dir none --agent b\u{f6}t", 2, "agent"),
        ("crawl http://a.example/ --dir none --frob", 2, "--frob"),
        ("crawl http://a.example/ --dir /proc/none", 3, "/proc/none"),
        ("demo --dir full", 2, "full exists already"),
        ("status", 2, "<DIR>"),
        ("status none", 2, "no directory none"),
        ("rebuild", 2, "<DIR>"),
        ("rebuild none", 2, "no directory none"),
        ("rebuild full", 2, "full is not a crawl directory"),
        ("status file", 2, "file"),
        ("status full", 2, "full is not a crawl directory"),
        ("status newer", 3, "another version"),
        ("status broken", 3, "broken"),
        ("explain full http://a.example/", 2, "full is not a crawl directory"),
        ("explain newer http://a.example/", 3, "another version"),
        ("robots check --agent a --url / none", 2, "cannot read none"),
        ("robots check --agent a --url http:// file", 2, "--url"),
        ("robots check --url / file", 2, "--agent"),
        ("parse none --base http://a.example/", 2, "cannot read none"),
        ("parse full --base http://a.example/", 2, "cannot read full"),
        ("parse file", 2, "--base"),
        ("parse file --base a.example", 2, "--base"),
        ("warc ls none", 2, "no none"),
        ("warc ls file", 3, "file"),
        ("warc cdxj file", 3, "file"),
        ("warc check none", 2, "no none"),
        ("warc ls full", 2, "holds no archive"),
        ("fetch http://", 2, "http://"),
        ("fetch gopher://a.example/", 2, "neither http nor https"),
        ("fetch http://127.0.0.1:9/ --config none.toml", 2, "cannot read none.toml"),
        ("net check 10.0.0.1 --allow-net x", 2, "--allow-net"),
        ("net check", 2, "<TARGET>"),
        ("dns a.example --dns here", 2, "--dns"),
        ("config --config none.toml", 2, "cannot read none.toml"),
        ("config --config key.toml", 2, "line 3"),
        ("config --dir none", 2, "no directory none"),
        ("config --dir newer", 3, "another version"),
        ("sim serve --listen 80", 2, "--listen"),
        ("sim serve --listen 127.0.0.1:0 --hosts 0", 2, "hosts"),
    ];
    for (line, code, expected) in table {
        for json in [false, true] {
            let mut command = rhumb();
            command.current_dir(root.path()).args(words(line));
            if json {
                command.arg("--json");
            }
            check_failure(&run(&mut command), code, expected, line);
        }
    }
    // An argument may hold anything; it is still one line, and harmless.
    let odd = run(rhumb().current_dir(root.path()).args(["crawl", "http://\u{1b}[31m\n\u{202e}/"]));
    check_failure(&odd, 2, "cannot be a seed", "a hostile seed");
    assert!(!text(&odd.stderr).contains(['\u{1b}', '\u{202e}']));
    let empty = run(rhumb().current_dir(root.path()).args(["crawl", ""]));
    check_failure(&empty, 2, "cannot be a seed", "an empty seed");
    assert_eq!(tree(root.path()), before, "nothing was touched");
}

/// Data that is wrong is an answer, not a failure of ours: exit code 1.
#[test]
fn findings_end_with_one() {
    let place = Place::new();
    let garbage = place.file("garbage", "no WARC at all");
    let report = json(&run(rhumb().args(["--json", "warc", "check"]).arg(&garbage)), 1);
    assert_eq!((&report[0]["passed"], &report[0]["errors"][0]["offset"]), (&json!(false), &json!(0)));
    let output = run(rhumb().args(["warc", "check"]).arg(&garbage));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("DAMAGED"));
    assert!(json(&typed("url parse http://a:b/ --json"), 1)["error"].is_string());
    assert!(json(&typed("url normalize mailto:x --json"), 1)["error"].is_string());
    assert_eq!(json(&typed("fetch http://127.0.0.1:1/ --json"), 1)["outcome"], "refused");

    let server = serve(WebConfig::plain(1, 3));
    let dns = server.dns_addr().expect("DNS").to_string();
    assert_eq!(json(&run(rhumb().args(["dns", "nobody.sim.test", "--json", "--dns", &dns])), 1)["error"], "nxdomain");
    let nobody = json(&run(rhumb().args(["fetch", "http://nobody.sim.test/", "--json", "--dns", &dns])), 1);
    assert_eq!((&nobody["outcome"], &nobody["status"]), (&json!("no_host"), &json!(0)));

    // A crawl that got no page says why.
    server.web().set_robots(0, "User-agent: *\nDisallow: /\n");
    let mut command = crawl(&server, &place.dir, &[&server.web().url(0, 0), "--delay", "1ms"]);
    assert_eq!(json(&run(&mut command), 1)["outcomes"], json!({"robots_disallowed": 1}));
    let other = Place::new();
    let mut command = rhumb();
    command.args(["crawl", "--dns", &dns, "--dir"]).arg(&other.dir).arg(server.web().url(0, 0));
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("robots.txt forbids it"));
    // A look-up of something that is not there.
    let mut command = rhumb();
    command.args(["explain", "--json"]).arg(&other.dir).arg("http://elsewhere.example/");
    assert_eq!(json(&run(&mut command), 1)["state"], "unknown");
}

fn has_keys(value: &Value, keys: &[&str], what: &str) {
    for key in keys {
        assert!(value.get(key).is_some(), "{what} has no {key:?}: {value}");
    }
}

/// The JSON of every command, as others' programs rely on it.
#[test]
fn shapes_of_json() {
    let server = serve(WebConfig::plain(2, 6));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let dns = server.dns_addr().expect("DNS").to_string();
    let figures =
        ["pages", "urls_seen", "urls_waiting", "hosts", "bytes", "outcomes", "seconds", "cpu_seconds", "state"];
    let crawled = json(&run(&mut crawl(&server, &place.dir, &[&seed, "--delay", "1ms", "--scope", "any"])), 0);
    has_keys(&crawled, &figures, "crawl");
    assert_eq!(crawled["pages"], crawled["outcomes"]["ok"]);
    assert_eq!(crawled["state"], "finished");
    let status = json(&run(rhumb().arg("status").arg(&place.dir).arg("--json")), 0);
    has_keys(&status, &figures, "status");
    assert_eq!(status["damage"], json!([]));
    for same in ["pages", "urls_seen", "urls_waiting", "hosts", "bytes", "outcomes", "requests", "state"] {
        assert_eq!(status[same], crawled[same], "{same}");
    }

    let robots = place.file("robots.txt", "User-agent: *\nDisallow: /private # keep out\n");
    let judged = |url: &str| {
        json(&run(rhumb().args(["robots", "check", "--agent", "x", "--url", url, "--json"]).arg(&robots)), 0)
    };
    assert_eq!(
        judged("http://a.example/private/1"),
        json!({"allowed": false, "rule": "Disallow: /private", "line": 2})
    );
    assert_eq!(judged("/public"), json!({"allowed": true, "rule": null, "line": null}));

    assert_eq!(json(&typed("--json url parse HTTP://A.example"), 0), json!({"href": "http://a.example/"}));
    assert_eq!(
        json(&typed("url --json parse ../x --base http://a.example/b/c/d"), 0),
        json!({"href": "http://a.example/b/x"})
    );
    assert_eq!(
        json(&typed("url normalize http://a.example/?utm_source=x#y --json"), 0),
        json!({"url": "http://a.example/"})
    );

    let page = place.file(
        "page.html",
        "<html lang=en><title> T </title><base href=/d/><meta name=robots content=noindex><link rel=canonical href=/c>\
         <a href=x rel=nofollow>one <b>two</b></a><p>Some words.",
    );
    let parsed = json(&run(rhumb().args(["parse", "--json", "--base", "http://a.example/p"]).arg(&page)), 0);
    has_keys(&parsed, &["title", "base", "links", "text", "charset", "language", "meta_robots", "canonical"], "parse");
    assert_eq!((&parsed["title"], &parsed["base"]), (&json!("T"), &json!("http://a.example/d/")));
    assert_eq!((&parsed["meta_robots"], &parsed["canonical"]), (&json!(["noindex"]), &json!("http://a.example/c")));
    let link = json!({"url": "http://a.example/d/x", "text": "one two", "rel": "nofollow", "tag": "a"});
    assert!(parsed["links"].as_array().expect("links").contains(&link), "{parsed}");

    assert_eq!(json(&typed("net check 127.0.0.1 --json"), 0)["class"], "loopback");
    has_keys(&json(&typed("net check http://a.example/ --json"), 0), &["allowed", "class"], "net check");

    let fetched = json(&run(rhumb().args(["fetch", &seed, "--json", "--dns", &dns, "--allow-net", "127.0.0.0/8"])), 0);
    has_keys(&fetched, &["url", "status", "outcome", "headers", "body_bytes", "truncated"], "fetch");
    assert_eq!(
        (&fetched["status"], &fetched["outcome"], &fetched["truncated"]),
        (&json!(200), &json!("ok"), &json!(false))
    );
    let headers = fetched["headers"].as_array().expect("headers");
    assert!(headers.iter().all(|h| h.as_array().is_some_and(|h| h.len() == 2 && h[0].is_string() && h[1].is_string())));
    assert!(fetched["body_bytes"].as_u64().is_some_and(|n| n > 1000));

    let answer = json(&run(rhumb().args(["dns", "h0.sim.test", "--dns", &dns, "--json"])), 0);
    assert_eq!(answer["addresses"], json!(["127.0.0.1"]));

    let records = json(&run(rhumb().args(["warc", "ls", "--json"]).arg(&place.dir)), 0);
    let records = records.as_array().expect("records");
    for record in records {
        has_keys(record, &["offset", "length", "type", "date", "url", "status"], "warc ls");
    }
    let responses = records
        .iter()
        .filter(|r| r["type"] == "response" && !r["url"].as_str().is_some_and(|u| u.ends_with("/robots.txt")))
        .count() as u64;
    let revisits = records.iter().filter(|r| r["type"] == "revisit").count() as u64;
    assert_eq!(Some(responses + revisits), crawled["pages"].as_u64());
    let checked = json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
    assert_eq!((&checked[0]["passed"], &checked[0]["errors"]), (&json!(true), &json!([])));
    assert_eq!(checked[0]["records"].as_u64(), Some(records.len() as u64));
    let lines = json(&run(rhumb().args(["warc", "cdxj", "--json", "--sort"]).arg(&place.dir)), 0);
    let lines: Vec<&str> = lines.as_array().expect("lines").iter().map(|l| l.as_str().expect("a line")).collect();
    assert!(lines.is_sorted());
    for line in lines {
        let fields: Value = serde_json::from_str(line.splitn(3, ' ').nth(2).expect("three parts")).expect("JSON");
        has_keys(&fields, &["url", "mime", "status", "digest", "length", "offset", "filename"], "cdxj");
    }
    let config = json(&run(rhumb().args(["config", "--json", "--dir"]).arg(&place.dir)), 0);
    assert_eq!((&config["format"], &config["politeness"]["delay"]), (&json!(1), &json!("1ms")));
    let story = json(&run(rhumb().arg("explain").arg(&place.dir).args([&seed, "--json"])), 0);
    has_keys(&story, &["url", "state", "seed", "found_on", "links_to_it", "events"], "explain");
    assert_eq!(
        (&story["state"], &story["seed"], &story["events"][0]["outcome"]),
        (&json!("done"), &json!(true), &json!("ok"))
    );
    // Whoever links often is named once.
    let pages: Vec<&Value> = story["found_on"].as_array().expect("pages").iter().map(|r| &r["url"]).collect();
    assert!(pages.iter().enumerate().all(|(i, url)| !pages[..i].contains(url)), "{pages:?}");
}

/// For people the same commands print text: not JSON, nothing on stderr, nothing raw.
#[test]
fn for_people() {
    let server = serve(WebConfig::plain(2, 6));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let dns = server.dns_addr().expect("DNS").to_string();
    let dir = place.dir.to_str().expect("UTF-8");
    let loopback = ["--dns", &dns, "--allow-net", "127.0.0.0/8"];
    let output = run(rhumb().args(["crawl", &seed, "--dir", dir, "--delay", "0s", "--scope", "any"]).args(loopback));
    assert_eq!(output.status.code(), Some(0));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("Finished: nothing is left to visit.\n"), "{out}");
    assert!(err.contains("Waiting between requests is off"), "{err}");
    assert!(!err.contains('\u{1b}'), "no drawing where there is no terminal: {err:?}");
    let quiet = run(rhumb().args(["crawl", "--dir", dir, "--quiet"]));
    assert_eq!((quiet.status.code(), text(&quiet.stderr).as_str()), (Some(0), ""));

    // The figures stand in one column.
    let summary = text(&run(rhumb().args(["status", dir])).stdout);
    let figure_end = |line: &str| line.char_indices().skip(22).find(|(i, c)| *i >= 22 && c.is_ascii_digit()).is_some();
    let rows: Vec<&str> = summary.lines().filter(|l| l.starts_with("  ") && figure_end(l)).collect();
    assert!(rows.len() >= 5, "{summary}");
    for row in rows {
        let column: String = row.chars().skip(22).take(12).collect();
        assert!(column.trim_end().len() == 12 && column.starts_with(' '), "{row:?} in {summary}");
    }

    let page = place.file("page.html", "<title>T</title><a href=/x>y</a>");
    let page = page.to_str().expect("UTF-8");
    for (line, expected) in [
        (format!("explain {dir} {seed}"), "state      done, a seed"),
        (format!("warc ls {dir}"), "response"),
        (format!("warc check {dir}"), "sound"),
        (format!("warc cdxj {dir}"), "test,sim,h0"),
        (format!("fetch {seed} --dns {dns} --allow-net 127.0.0.0/8"), "outcome   ok, status 200"),
        (format!("fetch {seed} --dns {dns} --allow-net 127.0.0.0/8"), "\nHTTP/1.1 200 OK\n"),
        (format!("dns h0.sim.test --dns {dns}"), "127.0.0.1"),
        (format!("parse {page} --base http://a.example/"), "title      T"),
        (format!("robots check --agent a --url /x {page}"), "allowed: no rule matches"),
        ("url parse http://A.example".to_string(), "http://a.example/\n"),
        ("url normalize http://A.example/%7e".to_string(), "http://a.example/~\n"),
        ("net check 10.0.0.1".to_string(), "refused: private"),
        ("net check a.example".to_string(), "allowed: name"),
        ("config".to_string(), "delay = \"2s\""),
    ] {
        let output = typed(&line);
        let out = text(&output.stdout);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{line}");
        assert!(out.contains(expected), "{line}: {out}");
        assert!(serde_json::from_str::<Value>(&out).is_err(), "{line} printed JSON");
        assert!(!out.lines().any(|l| l.ends_with(' ')), "{line}: blanks at the end of a line");
    }
}

#[test]
fn options_stand_anywhere_and_a_dash_is_stdin() {
    let expected = json!({"href": "http://b.example/x"});
    for line in [
        "--json url parse x --base http://b.example/",
        "url --json parse --base http://b.example/ x",
        "url parse --base=http://b.example/ --json x",
        "url parse x --json --base http://b.example/",
    ] {
        assert_eq!(json(&typed(line), 0), expected, "{line}");
    }
    assert_eq!(json(&typed("url parse -x --base http://b.example/ --json"), 0)["href"], "http://b.example/-x");
    assert_eq!(
        json(&run(rhumb().args(["url", "parse", "--json", "", "--base", "http://b.example/"])), 0)["href"],
        "http://b.example/"
    );
    let with_input = |line: &str, input: &[u8]| {
        let mut child = rhumb().args(words(line)).stdin(Stdio::piped()).spawn().expect("start");
        child.stdin.take().expect("stdin").write_all(input).expect("write");
        json(&child.wait_with_output().expect("wait"), 0)
    };
    let robots = b"User-agent: a\nDisallow: /\n";
    assert_eq!(with_input("robots check --agent a --url /x - --json", robots)["allowed"], false);
    assert_eq!(with_input("robots check - --agent b --json --url /x", robots)["allowed"], true);
    assert_eq!(with_input("parse --json - --base http://a.example/", b"<title>In</title>")["title"], "In");
}

/// `rhumb … | head -1` is no failure, whichever stream closes.
#[test]
fn a_closed_pipe_is_no_failure() {
    let server = serve(WebConfig::plain(4, 30));
    let place = Place::new();
    let mut command =
        crawl(&server, &place.dir, &[&server.web().url(0, 0), "--delay", "1ms", "--scope", "any", "--per-ip", "0"]);
    json(&run(&mut command), 0);
    let dir = place.dir.to_str().expect("UTF-8");
    for line in
        [format!("warc ls {dir}"), format!("warc cdxj {dir}"), format!("warc ls {dir} --json"), "config".to_string()]
    {
        let mut child = rhumb().args(words(&line)).spawn().expect("start");
        let mut first = [0; 10];
        child.stdout.take().expect("stdout").read_exact(&mut first).expect("some output");
        let output = child.wait_with_output().expect("wait");
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{line}");
    }
    let mut child = rhumb().args(["crawl", "--dir", dir]).spawn().expect("start");
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().expect("wait").code(), Some(0), "nobody listens to the crawl");
}

/// A server that sends one fixed answer to whoever asks.
fn answer_with(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("address");
    std::thread::spawn(move || {
        for stream in listener.incoming().take(20).flatten() {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let _ = reader.get_mut().write_all(&answer);
        }
    });
    address
}

#[test]
fn crawled_text_cannot_touch_the_terminal() {
    let hostile = "\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{2028}";
    let raw = |c: char| {
        (c.is_control() && c != '\n')
            || ('\u{200e}'..='\u{200f}').contains(&c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    let body = format!(
        "<title>T{hostile}</title><a href='/x{hostile}'>l{hostile}</a><meta name=robots content='{hostile}'>{hostile}"
    );
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=utf-8\r\nX-Odd: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", "\u{9b}31m\u{202e}", body.len()).into_bytes();
    answer.extend_from_slice(body.as_bytes());
    let address = answer_with(answer);
    let place = Place::new();
    let page = place.file("page.html", &body);
    let robots = place.file("robots.txt", &format!("User-agent: *\nDisallow: /{hostile}\nDisallow: /p{hostile}*\n"));
    let warc = place.file("odd.warc", &format!("WARC/1.0\r\nWARC-Type: x{hostile}\r\nWARC-Record-ID: <urn:x>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Target-URI: http://a/{hostile}\r\nContent-Length: 0\r\n\r\n\r\n\r\n"));
    let (page, robots, warc, dir) = (page.display(), robots.display(), warc.display(), place.dir.display());
    let url = format!("http://{address}/");
    let mut lines = vec![
        format!("crawl {url} --dir {dir} --delay 1ms --limit 1"),
        format!("explain {dir} {url}"),
        format!("explain {dir} {url}x{}", hostile.replace(' ', "")),
        format!("warc ls {dir}"),
        format!("warc cdxj {dir}"),
        format!("status {dir}"),
        format!("fetch {url}"),
        format!("parse {page} --base {url}"),
        format!("robots check --agent x --url /p{hostile}q {robots}"),
        format!("warc ls {warc}"),
        format!("warc check {warc}"),
        format!("warc cdxj {warc}"),
        format!("url parse {hostile}"),
        format!("url normalize http://{hostile}/"),
        format!("net check {hostile}"),
        format!("status /none{hostile}"),
        format!("dns {hostile}"),
    ];
    lines.extend(lines.clone().into_iter().skip(1).map(|line| line + " --json"));
    for line in lines {
        let output = typed(&line);
        for stream in [&output.stdout, &output.stderr] {
            let shown = text(stream);
            assert!(!shown.contains(raw), "{line:?} printed {shown:?}");
        }
        assert!(output.status.code().is_some_and(|code| code < 4), "{line:?}: {:?}", output.status);
        assert!(!text(&output.stderr).contains("panicked"), "{line:?}");
    }
    // What programs read is the same text all the same.
    let parsed = json(&typed(&format!("parse {page} --base {url} --json")), 0);
    assert!(parsed["title"].as_str().expect("a title").contains("\u{1b}[31m\u{9b}2J\u{7f}\u{202e}"));
}

#[test]
fn the_configuration_is_a_configuration_file() {
    let place = Place::new();
    let defaults = text(&typed("config").stdout);
    let file = place.file("again.toml", &defaults);
    let again = text(&run(rhumb().args(["config", "show", "--config"]).arg(&file)).stdout);
    assert_eq!(again, defaults);
    let changed = place.file(
        "changed.toml",
        "[crawl]\nscope = \"domain\"\nlimit = 7\ninclude = ['a\\.b']\nmax_time = \"1h30m\"\n[politeness]\ndelay = \"1500ms\"\n\
         [dns]\nservers = [\"127.0.0.1:53\"]\n[net]\nallow = [\"10.0.0.0/8\"]\n[[priority]]\nmatch = 'x'\nlevel = 0\n",
    );
    let shown = text(&run(rhumb().args(["config", "--config"]).arg(&changed)).stdout);
    let copy = place.file("copy.toml", &shown);
    assert_eq!(text(&run(rhumb().args(["config", "--config"]).arg(&copy)).stdout), shown);
    for set in [
        "delay = \"1500ms\"",
        "limit = 7",
        "scope = \"domain\"",
        "max_time = \"90m\"",
        "level = 0",
        "servers = [\"127.0.0.1:53\"]",
    ] {
        assert!(shown.contains(set), "{set} in {shown}");
    }

    // The bounds of the design, by section and key.
    let config = json(&typed("config --json"), 0);
    let check =
        |section: &str, key: &str, expected: Value| assert_eq!(config[section][key], expected, "{section}.{key}");
    check("fetch", "connect", json!("10s"));
    check("fetch", "tls", json!("10s"));
    check("fetch", "head", json!("20s"));
    check("fetch", "total", json!("2m"));
    check("fetch", "rate_min", json!("1KiB"));
    check("fetch", "rate_window", json!("30s"));
    check("fetch", "head_max", json!("256KiB"));
    check("fetch", "head_lines_max", json!(1000));
    check("fetch", "body_max", json!("16MiB"));
    check("fetch", "decoded_max", json!("32MiB"));
    check("fetch", "codings_max", json!(5));
    check("fetch", "redirects_max", json!(10));
    check("url", "bytes_max", json!(4096));
    check("url", "path_depth_max", json!(25));
    check("url", "segment_repeats_max", json!(3));
    check("page", "links_max", json!(5000));
    check("politeness", "retry_after_max", json!("24h"));
    check("politeness", "crawl_delay_max", json!("5m"));
    check("politeness", "robots_max_age", json!("24h"));
    check("politeness", "delay", json!("2s"));
    check("politeness", "delay_factor", json!(10.0));
    check("politeness", "per_ip", json!(4));
}

#[test]
fn help_is_there_and_readable() {
    for command in COMMANDS {
        let output = run(rhumb().args(words(command)).arg("--help"));
        let out = text(&output.stdout);
        assert_eq!((output.status.code(), output.stderr.is_empty()), (Some(0), true), "{command}");
        assert!(out.contains("Usage: rhumb"), "{command}: {out}");
        assert!(!out.lines().any(|l| l.ends_with(' ')), "{command}");
        // Each option says what it does.
        for line in out.lines().filter(|l| l.trim_start().starts_with("--") || l.trim_start().starts_with("-q")) {
            assert!(line.trim().split("  ").filter(|part| !part.is_empty()).count() >= 2, "{command}: {line}");
        }
    }
    let version = typed("--version");
    assert_eq!((version.status.code(), text(&version.stdout).starts_with("rhumb ")), (Some(0), true));
    let nothing = typed("");
    assert_eq!((nothing.status.code(), nothing.stdout.is_empty()), (Some(2), true));
    assert!(text(&nothing.stderr).contains("Commands:"), "who types nothing is shown what there is");
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().expect("kill");
    assert!(status.success());
}

fn ended(mut child: Child, bound: Duration) -> Output {
    let deadline = Instant::now() + bound;
    while child.try_wait().expect("wait").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it did not end within {bound:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("output")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn running(server: &Server, dir: &Path) -> Child {
    let child = crawl(server, dir, &[&server.web().url(0, 0), "--delay", "200ms", "--scope", "any", "--per-ip", "0"]);
    let child = { child }.spawn().expect("start");
    until("a page", || {
        let output = run(rhumb().arg("status").arg(dir).arg("--json"));
        serde_json::from_slice::<Value>(&output.stdout)
            .is_ok_and(|s| s["state"] == "running" && s["pages"].as_u64() > Some(0))
    });
    child
}

/// A crawl is looked at while it runs, refuses company, is interrupted by a signal and goes on.
#[test]
fn running_locked_interrupted_resumed() {
    let server = serve(WebConfig::plain(8, 40));
    let place = Place::new();
    let child = running(&server, &place.dir);
    let output = run(rhumb().arg("status").arg(&place.dir));
    let shown = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert!(shown.starts_with("Running.") && shown.contains("pausing") && !shown.contains('{'), "{shown}");
    let story = run(rhumb().arg("explain").arg(&place.dir).arg(server.web().url(0, 0)));
    assert_eq!(story.status.code(), Some(0), "{}", text(&story.stderr));

    // The second one leaves everything as it is.
    let settings = std::fs::read(place.dir.join("rhumb.toml")).expect("settings");
    for more in [&["--delay", "1ms"][..], &[]] {
        let output = run(rhumb().args(["crawl", "--dir"]).arg(&place.dir).args(more).arg("--json"));
        check_failure(&output, 3, "in use by another", "a locked directory");
    }
    assert_eq!(std::fs::read(place.dir.join("rhumb.toml")).expect("settings"), settings);

    signal(&child, "INT");
    let output = ended(child, Duration::from_secs(20));
    let first = json(&output, 4);
    assert_eq!(first["state"], "interrupted");
    let stopped = json(&run(rhumb().arg("status").arg(&place.dir).arg("--json")), 0);
    assert_eq!((&stopped["state"], &stopped["pages"]), (&json!("stopped"), &first["pages"]));
    let people = text(&run(rhumb().arg("status").arg(&place.dir)).stdout);
    let headline = people.lines().next().expect("a line");
    let command = headline.split_once("To go on: rhumb ").expect(headline).1;

    // The command it names goes on with the same settings, and SIGTERM is as good as Ctrl-C.
    let mut child = rhumb().args(words(command)).spawn().expect("start");
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "TERM");
    let mut err = child.stderr.take().expect("stderr");
    let output = ended(child, Duration::from_secs(20));
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).starts_with("Interrupted. To go on: rhumb crawl --dir "));
    let mut told = String::new();
    err.read_to_string(&mut told).expect("stderr");
    assert!(told.starts_with("Resuming "), "{told}");
    let limit = stopped["pages"].as_u64().expect("pages") + 60;
    let last = json(&run(rhumb().args(words(command)).args(["--json", "--limit", &limit.to_string()])), 0);
    assert_eq!(last["state"], "limit");
    assert!(last["pages"].as_u64() >= Some(limit));
}

#[test]
fn the_synthetic_web_serves_until_it_is_told_to_stop() {
    let command = "sim serve --hosts 3 --pages 4 --plain --listen 127.0.0.1:0 --dns 127.0.0.1:0";
    let mut child = rhumb().args(words(command)).spawn().expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.starts_with("Serving 3 hosts at 127.0.0.1:"), "{first}");
    let second = lines.next().expect("a line").expect("text");
    let place = Place::new();
    let suggested = second.trim().strip_prefix("rhumb ").expect("a command");
    let status = json(&run(rhumb().args(words(suggested)).arg("--dir").arg(&place.dir).arg("--json")), 0);
    assert!(status["pages"].as_u64() > Some(3), "{status}");
    assert!(child.try_wait().expect("wait").is_none(), "it still serves");
    signal(&child, "TERM");
    assert_eq!(ended(child, Duration::from_secs(10)).status.code(), Some(0));

    let mut child = rhumb().args(words(command)).arg("--json").spawn().expect("start");
    let mut ready = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut ready).expect("a line");
    let ready: Value = serde_json::from_str(&ready).expect("JSON");
    has_keys(&ready, &["listen", "dns", "seed_url", "hosts"], "sim serve");
    // A second one cannot have the same place.
    let listen = ready["listen"].as_str().expect("an address");
    check_failure(&run(rhumb().args(["sim", "serve", "--listen", listen])), 2, "in use", "a taken port");
    signal(&child, "INT");
    assert_eq!(ended(child, Duration::from_secs(10)).status.code(), Some(0));
}

/// The demonstration shows what came out, and every command it names works as printed.
#[test]
fn the_demo_names_commands_that_work() {
    let root = tempfile::tempdir().expect("temporary directory");
    let dir = root.path().join("a demo");
    let started = Instant::now();
    let output = run_within(rhumb().args(["demo", "--dir"]).arg(&dir), Duration::from_secs(60));
    assert!(started.elapsed() < Duration::from_secs(50));
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(out.contains("Forbidden addresses dialled: 0; cookies and credentials given away: 0."), "{out}");
    // It was searched, and something was found.
    let searched: Vec<&str> =
        out.lines().skip_while(|line| !line.starts_with("Search it: http://127.0.0.1:")).collect();
    assert!(searched.get(1).is_some_and(|first| first.contains(": ") && first.contains("  http://")), "{out}");
    let bin = Path::new(env!("CARGO_BIN_EXE_rhumb")).parent().expect("a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut tried = 0;
    let commands = out.lines().skip_while(|l| !l.contains("what to try next")).skip(1);
    for line in commands.take_while(|line| !line.trim().is_empty()) {
        let command = line.trim().split_once("  ").map(|(_, command)| command.trim()).expect(line);
        // Those that would serve or leave this machine are not for a test.
        if command.contains("example.org") || command.contains("rhumb serve") || command.contains("sim serve") {
            continue;
        }
        let output = run(Command::new("sh")
            .args(["-c", command])
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()));
        assert_eq!(
            (output.status.code(), output.stdout.is_empty()),
            (Some(0), false),
            "{command}: {}",
            text(&output.stderr)
        );
        tried += 1;
    }
    assert!(tried >= 5, "{out}");
    let status = json(&run(rhumb().arg("status").arg(&dir).arg("--json")), 0);
    assert!(status["pages"].as_u64() > Some(200), "a few hundred pages: {status}");
}

/// Everything that is typed is kept: a resumed crawl has the settings of the first.
#[test]
fn settings_are_kept_in_the_directory() {
    let server = serve(WebConfig::plain(1, 4));
    server.web().set_document(0, "/", Reply::new(200, "text/html", "<a href=/keep>k</a><a href=/drop>d</a>"));
    server.web().set_document(0, "/keep", Reply::new(200, "text/html", "kept"));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let status = json(
        &run(&mut crawl(
            &server,
            &place.dir,
            &[&seed, "--delay", "3ms", "--exclude", "/drop", "--depth", "2", "--agent", "me/1"],
        )),
        0,
    );
    assert_eq!(status["pages"], 2);
    let config = json(&run(rhumb().args(["config", "--json", "--dir"]).arg(&place.dir)), 0);
    assert_eq!((&config["crawl"]["exclude"], &config["crawl"]["depth"]), (&json!(["/drop"]), &json!(2)));
    assert_eq!((&config["crawl"]["agent"], &config["politeness"]["delay"]), (&json!("me/1"), &json!("3ms")));
    let resumed = json(&run(rhumb().args(["crawl", "--json", "--dir"]).arg(&place.dir)), 0);
    assert_eq!((&resumed["pages"], &resumed["state"]), (&json!(2), &json!("finished")));
    let mut plain = rhumb();
    plain.args(["crawl", "--json", "--no-archive", "--delay", "3ms", "--dir"]).arg(place.dir.with_extension("bare"));
    plain.args(["--dns", &server.dns_addr().expect("DNS").to_string(), "--allow-net", "127.0.0.0/8"]).arg(&seed);
    assert_eq!(json(&run(&mut plain), 0)["state"], "finished");
    check_failure(
        &run(rhumb().args(["warc", "ls"]).arg(place.dir.with_extension("bare"))),
        2,
        "holds no archive",
        "no archive",
    );
}
