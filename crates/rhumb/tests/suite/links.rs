//! The link graph, as people ask it: right in both directions, while the crawl runs, after a crash, and made anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rhumb_core::visit::LinkKind;
use rhumb_sim::{Reply, WebConfig};
use serde_json::Value;

use crate::common::{Place, crawl, json, rhumb, run, serve, visits};

pub type Arcs = BTreeSet<(String, String)>;

/// Every link of every page, as the log has it. A page visited twice has the links of its last visit.
pub fn logged(dir: &Path) -> Arcs {
    let mut links = std::collections::BTreeMap::new();
    for visit in visits(dir).into_iter().filter(|v| v.purpose.is_page() && !v.retry) {
        if matches!(visit.outcome.name(), "ok" | "redirect") {
            links.insert(visit.entry.url.to_string(), visit.links);
        }
    }
    let counts = |kind: LinkKind| {
        !matches!(kind, LinkKind::Link | LinkKind::Image | LinkKind::Script | LinkKind::Sitemap | LinkKind::Listed)
    };
    let arcs = links.into_iter().flat_map(|(from, links)| {
        links.into_iter().filter(|l| counts(l.kind)).map(move |l| (from.clone(), l.url.to_string()))
    });
    arcs.collect()
}

/// Every link of the graph, as it is written for others.
pub fn exported(dir: &Path) -> Arcs {
    let output = run(rhumb().args(["graph", "export", "--format", "edges"]).arg(dir).arg("-"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let arc = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_string(), b.to_string())).expect("two URLs");
    text.lines().map(arc).collect()
}

fn links(dir: &Path, way: &str, url: &str, more: &[&str]) -> Value {
    json(&run(rhumb().args(["links", "--json"]).arg(dir).args([way, url]).args(more)), 0)
}

fn listed(answer: &Value) -> Vec<String> {
    let links = answer["links"].as_array().expect("links").iter();
    links.map(|l| l["url"].as_str().expect("a URL").to_string()).collect()
}

/// One line on stderr, and wrong usage.
fn refused(command: &mut std::process::Command, holds: &str) {
    let output = run(command);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.lines().count() == 1 && told.contains(holds), "{told}");
}

#[test]
fn every_link_of_a_crawl_is_answered_both_ways() {
    let server = serve(WebConfig::plain(8, 30));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    json(&run(&mut crawl(&server, &place.dir, &[&seed, "--scope", "any", "--delay", "0s"])), 0);
    let expected = logged(&place.dir);
    assert!(expected.len() > 1000, "{}", expected.len());
    assert_eq!(exported(&place.dir), expected);

    let to: BTreeSet<String> = expected.iter().filter(|(_, t)| *t == seed).map(|(f, _)| f.clone()).collect();
    let all = links(&place.dir, "--to", &seed, &["--limit", "10000"]);
    assert_eq!(listed(&all).into_iter().collect::<BTreeSet<_>>(), to);
    assert_eq!(all["total"], to.len());
    // Part by part it is the same list.
    let mut parts = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let more: Vec<&str> = cursor.as_deref().map_or(vec![], |c| vec!["--cursor", c]);
        let part = links(&place.dir, "--to", &seed, &[&["--limit", "7"], more.as_slice()].concat());
        parts.extend(listed(&part));
        cursor = part["next"].as_str().map(str::to_string);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(parts, listed(&all));

    let stats = json(&run(rhumb().args(["graph", "stats", "--json"]).arg(&place.dir)), 0);
    assert_eq!(stats["arcs"], expected.len());
    let nodes: BTreeSet<&String> = expected.iter().flat_map(|(a, b)| [a, b]).collect();
    assert!(stats["nodes"].as_u64().expect("a number") >= nodes.len() as u64);
    let rank = json(&run(rhumb().args(["graph", "rank", "--top", "3", "--json"]).arg(&place.dir)), 0);
    assert_eq!(rank["top"][0]["url"], seed);
    let rank = json(&run(rhumb().args(["graph", "rank", "--hosts", "--top", "1", "--json"]).arg(&place.dir)), 0);
    let best = rank["top"][0]["host"].as_str().expect("a host");
    let host = json(&run(rhumb().args(["graph", "hosts", "--json", "--of", best]).arg(&place.dir)), 0);
    let (kept, shown) = (host["ranks"][0]["value"].as_f64(), rank["top"][0]["rank"].as_f64());
    assert!((kept.expect("kept") - shown.expect("shown")).abs() < 1e-6, "{host}");

    // A crawl that goes on mends a damaged graph by itself.
    let mut files = std::fs::read_dir(place.dir.join("graph")).expect("listed").map(|e| e.expect("a file").path());
    let urls = files.find(|p| p.extension().is_some_and(|e| e == "urls")).expect("a table of URLs");
    std::fs::write(&urls, "damaged").expect("damaged");
    json(&run(&mut crawl(&server, &place.dir, &[])), 0);
    assert_eq!(exported(&place.dir), expected);

    // What is forgotten is made anew, with the same answers.
    std::fs::remove_dir_all(place.dir.join("graph")).expect("removed");
    assert_eq!(links(&place.dir, "--to", &seed, &["--limit", "10000"]), all);
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
    assert!(place.dir.join("graph/levels").is_file());
    assert_eq!(links(&place.dir, "--to", &seed, &["--limit", "10000"]), all);
    assert_eq!(exported(&place.dir), expected);
}

#[test]
fn anchors_are_shown_with_what_the_author_says_of_them() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let page = "<title>Front</title><a href=/a>First  words</a> <a href=/a rel='nofollow ugc'>\u{1b}[31mred</a> \
                <a href='/b?x=1&amp;y=2'><img src=i.png alt='A picture'></a> <link rel=next href=/c>";
    web.set_document(0, "/", Reply::new(200, "text/html", page));
    web.set_document(0, "/a", Reply::new(301, "text/plain", "").with_header("Location", "/moved"));
    let place = Place::new();
    let origin = web.origin(0);
    json(&run(&mut crawl(&server, &place.dir, &[&format!("{origin}/"), "--delay", "0s"])), 0);
    let to = links(&place.dir, "--to", &format!("{origin}/a"), &["--anchors"]);
    let anchors = &to["links"][0]["anchors"];
    assert_eq!((anchors[0]["text"].as_str(), anchors[0]["kind"].as_str()), (Some("First words"), Some("a")));
    assert_eq!(anchors[1]["rel"], serde_json::json!(["nofollow", "ugc"]));
    let from = links(&place.dir, "--from", &format!("{origin}/"), &["--anchors"]);
    assert_eq!(listed(&from), [format!("{origin}/a"), format!("{origin}/b?x=1&y=2")]);
    // A redirect is a link, and a page that was only linked to is not called fetched.
    let moved = links(&place.dir, "--from", &format!("{origin}/a"), &["--anchors"]);
    assert_eq!(moved["links"][0]["anchors"][0]["kind"], "redirect");
    assert_eq!((&from["links"][0]["fetched"], &from["links"][1]["fetched"]), (&Value::Bool(true), &Value::Bool(false)));
    // What a page says reaches no terminal as it is.
    let shown = run(rhumb().arg("links").arg(&place.dir).args(["--to", &format!("{origin}/a"), "--anchors"]));
    assert!(!shown.stdout.contains(&0x1b));
    let path = json(
        &run(rhumb()
            .args(["graph", "path", "--json"])
            .arg(&place.dir)
            .args([&format!("{origin}/"), &format!("{origin}/moved")])),
        0,
    );
    assert_eq!((&path["hops"], path["path"].as_array().map(Vec::len)), (&Value::from(2), Some(3)));
}

#[test]
fn links_are_known_while_the_crawl_runs() {
    let server = serve(WebConfig::plain(1, 60));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let mut running = crawl(&server, &place.dir, &[&seed, "--delay", "250ms"]).spawn().expect("started");
    let deadline = Instant::now() + Duration::from_secs(60);
    let asked = loop {
        assert!(Instant::now() < deadline, "no answer");
        let output = run(rhumb().args(["links", "--json"]).arg(&place.dir).args(["--from", &seed]));
        if output.status.code() == Some(0) {
            break json(&output, 0);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(running.try_wait().expect("a process").is_none(), "the crawl goes on");
    assert!(asked["total"].as_u64() > Some(3));
    // As new as the log: every page in it has its links in the graph, before anything of the graph is written.
    let arcs = logged(&place.dir);
    let known = exported(&place.dir);
    assert!(known.is_superset(&arcs), "{} of {}", known.intersection(&arcs).count(), arcs.len());
    running.kill().expect("killed");
    let _ = running.wait();
    assert_eq!(exported(&place.dir), logged(&place.dir));
}

/// With as little memory as can be, so that levels are written and merged all the time.
#[test]
fn a_crawl_that_is_killed_has_every_link_once() {
    let server = serve(WebConfig::plain(6, 120));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let args = [seed.as_str(), "--scope", "any", "--delay", "0s", "--memory", "1MiB"];
    for round in 0..6u64 {
        let mut running = crawl(&server, &place.dir, &args).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(120 + 90 * round));
        let _ = running.kill();
        let _ = running.wait();
        if place.dir.join("rhumb.toml").is_file() && !logged(&place.dir).is_empty() {
            assert_eq!(exported(&place.dir), logged(&place.dir), "after {} kills", round + 1);
        }
    }
    json(&run(&mut crawl(&server, &place.dir, &args)), 0);
    let expected = logged(&place.dir);
    assert!(expected.len() > 3000, "{}", expected.len());
    assert_eq!(exported(&place.dir), expected);
    let names: Vec<String> = std::fs::read_dir(place.dir.join("graph"))
        .expect("listed")
        .map(|e| e.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|n| !n.ends_with(".tmp")) && names.len() <= 6, "{names:?}");
}

#[test]
fn graphs_of_others_come_in_and_go_out() {
    let place = Place::new();
    let list = place.file("list.tsv", "# arcs\n0\t3\n3 1\n1,2\n2 0\n2 3\n5 5\n");
    let made = place.dir.with_file_name("made");
    let built = json(&run(rhumb().args(["graph", "build", "--json", "--edges"]).arg(&list).arg("--out").arg(&made)), 0);
    assert_eq!((&built["nodes"], &built["arcs"]), (&Value::from(6), &Value::from(6)));
    let bv = place.dir.with_file_name("written");
    run(rhumb().args(["graph", "export", "--format", "bv"]).arg(&made).arg(&bv));
    let again = place.dir.with_file_name("again");
    json(&run(rhumb().args(["graph", "build", "--json", "--bv"]).arg(&bv).arg("--out").arg(&again)), 0);
    assert_eq!(exported(&again), exported(&made));
    let row = json(&run(rhumb().args(["graph", "successors", "--json"]).arg(&again).arg("2")), 0);
    assert_eq!(row["successors"], serde_json::json!([0, 3]));
    let row = json(&run(rhumb().args(["graph", "successors", "--transposed", "--json"]).arg(&again).arg("3")), 0);
    assert_eq!(row["predecessors"], serde_json::json!([0, 2]));
    let path = json(&run(rhumb().args(["graph", "path", "--json"]).arg(&again).args(["0", "2"])), 0);
    assert_eq!(path["path"], serde_json::json!(["0", "3", "1", "2"]));
    assert_eq!(listed(&links(&again, "--to", "3", &["--limit", "1"])), ["0"]);
    assert_eq!(listed(&links(&again, "--to", "3", &["--cursor", "0"])), ["2"]);
    let none = json(&run(rhumb().args(["graph", "path", "--json"]).arg(&again).args(["0", "5"])), 1);
    assert_eq!(none["hops"], Value::Null);

    let urls =
        place.file("urls.tsv", "http://b.example/ HTTP://A.example:80/x\nhttp://b.example/\thttp://b.example/y\n");
    let named = place.dir.with_file_name("named");
    json(&run(rhumb().args(["graph", "build", "--json", "--edges"]).arg(&urls).arg("--out").arg(&named)), 0);
    let answer = links(&named, "--to", "a.example/x", &[]);
    assert_eq!(listed(&answer), ["http://b.example/"]);
    let graphml = place.dir.with_file_name("around.graphml");
    run(rhumb()
        .args(["graph", "export", "--format", "graphml", "--around", "http://b.example/"])
        .arg(&named)
        .arg(&graphml));
    let text = std::fs::read_to_string(&graphml).expect("written");
    assert_eq!(text.matches("<edge ").count(), 2, "{text}");
}

#[test]
fn bad_input_is_told_in_one_line_and_leaves_nothing() {
    let place = Place::new();
    let good = place.file("good.tsv", "0 1\n1 2\n2 0\n");
    let made = place.dir.with_file_name("made");
    json(&run(rhumb().args(["graph", "build", "--json", "--edges"]).arg(&good).arg("--out").arg(&made)), 0);
    let before = exported(&made);
    for (text, holds) in [
        ("0 1\n1\n", "line 2"),
        ("0 1\n1 x\n", "line 2"),
        ("0 1\n-1 4\n", "line 2"),
        ("http://a.example/ nonsense\n", "line 1"),
    ] {
        let bad = place.file("bad.tsv", text);
        let other = place.dir.with_file_name("other");
        refused(rhumb().args(["graph", "build", "--edges"]).arg(&bad).arg("--out").arg(&other), holds);
        assert!(!other.exists(), "{text:?} left something");
        // What was there before stays.
        refused(rhumb().args(["graph", "build", "--edges"]).arg(&bad).arg("--out").arg(&made), holds);
        assert_eq!(exported(&made), before);
    }
    let many: String = (0..500).map(|n| format!("{n} {}\n{n} {}\n", n * 7 % 501, n * n % 499)).collect();
    let many = place.file("many.tsv", &many);
    let large = place.dir.with_file_name("large");
    json(&run(rhumb().args(["graph", "build", "--json", "--edges"]).arg(&many).arg("--out").arg(&large)), 0);
    let bv = place.dir.with_file_name("written");
    run(rhumb().args(["graph", "export", "--format", "bv"]).arg(&large).arg(&bv));
    let graph = bv.with_extension("graph");
    let bytes = std::fs::read(&graph).expect("written");
    std::fs::write(&graph, &bytes[..bytes.len() / 2]).expect("cut");
    let other = place.dir.with_file_name("other");
    refused(rhumb().args(["graph", "build", "--bv"]).arg(&bv).arg("--out").arg(&other), "written.graph");
    assert!(!other.exists());
    refused(rhumb().args(["graph", "successors"]).arg(&made).arg("3"), "there is no node 3");
    refused(rhumb().args(["links"]).arg(&made).args(["--to", "http://a.example/"]), "has no URLs");
    refused(rhumb().args(["links"]).arg(&made).args(["--to", "77"]), "not in the graph");
    refused(rhumb().args(["graph", "stats"]).arg(place.dir.with_file_name("nowhere")), "no directory");

    // Any changed or missing byte of any file is named; nothing of it is used.
    let files: Vec<_> =
        std::fs::read_dir(made.join("graph")).expect("listed").map(|e| e.expect("a file").path()).collect();
    for file in files.iter().filter(|f| f.file_name().is_some_and(|n| n != "lock")) {
        let whole = std::fs::read(file).expect("read");
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let mut newer = whole.clone();
        newer[8] += 1;
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 16;
        for (bytes, holds) in [(newer, "version"), (flipped, "damaged"), (whole[..whole.len() - 1].to_vec(), "damaged")]
        {
            std::fs::write(file, &bytes).expect("damaged");
            let output = run(rhumb().args(["graph", "stats"]).arg(&made));
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{name}: {told}");
            assert!(told.lines().count() == 1 && told.contains(&name) && told.contains(holds), "{name}: {told}");
        }
        std::fs::write(file, &whole).expect("mended");
    }
    assert_eq!(exported(&made), before);
}
