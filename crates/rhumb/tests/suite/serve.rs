//! `rhumb serve`: what was crawled is answered over HTTP, also while the crawl runs; the program begins and ends as it should.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rhumb_sim::{Reply, Server, WebConfig};
use serde_json::Value;

use crate::common::{Place, crawl, json, rhumb, run, serve};

/// The program, serving.
pub struct Served {
    child: Child,
    pub address: SocketAddr,
}

impl Served {
    pub fn start(dir: &Path) -> Served {
        let mut command = rhumb();
        command.args(["serve", "--json", "--listen", "127.0.0.1:0"]).arg(dir);
        let mut child = command.spawn().expect("start the program");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let url = told["url"].as_str().expect("where it is").to_string();
        let address = url.strip_prefix("http://").and_then(|u| u.strip_suffix('/')).expect("a URL");
        Served { address: address.parse().expect("an address"), child }
    }

    /// Status and body.
    pub fn get(&self, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).expect("connect");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("ask");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status"), body.to_string())
    }

    fn ask(&self, question: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        let (status, body) = self.get(&format!("/api/{question}?{}", query(pairs)));
        (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}")))
    }

    /// Sends a signal and tells how it ended.
    fn end(mut self, signal: &str) -> Option<i32> {
        let sent = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().expect("run kill");
        assert!(sent.success());
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did not end");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn query(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

pub fn page(body: &str) -> Reply {
    Reply::new(200, "text/html; charset=utf-8", body)
}

/// A web of three pages, one of which has markup in its title and in the text of a link.
fn small_web() -> Server {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(
        0,
        "/",
        page("<title>Home</title><a href='/a'>First &amp; foremost</a> <a href='/b'>second</a> <a href='/b'>again</a>"),
    );
    web.set_document(
        0,
        "/a",
        page("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title><a href='/'>&lt;img src=x onerror=alert(1)&gt;</a>"),
    );
    web.set_document(0, "/b", page("<title>B</title>"));
    server
}

#[test]
fn what_was_crawled_is_answered() {
    let (server, place) = (small_web(), Place::new());
    let home = server.web().url(0, 0);
    json(&run(&mut crawl(&server, &place.dir, &[&home, "--delay", "10ms"])), 0);
    let served = Served::start(&place.dir);
    let (a, b) = (format!("{home}a"), format!("{home}b"));

    let (status, links) = served.ask("links", &[("from", &home), ("anchors", "true")]);
    assert_eq!((status, &links["total"]), (200, &2.into()), "{links}");
    assert_eq!((links["links"][0]["url"].as_str(), links["links"][1]["url"].as_str()), (Some(&*a), Some(&*b)));
    assert_eq!(links["links"][0]["anchors"][0]["text"], "First & foremost");
    assert_eq!(links["links"][1]["anchors"].as_array().map(Vec::len), Some(2), "{links}");

    // Part by part, it is the same.
    let (_, first) = served.ask("links", &[("from", &home), ("limit", "1")]);
    let (_, second) =
        served.ask("links", &[("from", &home), ("limit", "1"), ("cursor", first["next"].as_str().expect("more"))]);
    assert_eq!((&second["links"][0]["url"], &second["next"]), (&links["links"][1]["url"], &Value::Null));
    assert_eq!(served.ask("links", &[("from", &home), ("cursor", "no cursor!")]).0, 400);

    let (_, to) = served.ask("links", &[("to", home.strip_prefix("http://").expect("http"))]);
    assert_eq!((to["total"].as_u64(), to["links"][0]["url"].as_str()), (Some(1), Some(&*a)), "without a scheme: {to}");
    let (_, known) = served.ask("page", &[("url", &a)]);
    assert_eq!(
        (known["title"].as_str(), known["fetched"].as_bool()),
        (Some("<script>alert(1)</script>"), Some(true)),
        "{known}"
    );
    assert_eq!((known["links_in"].as_u64(), known["links_out"].as_u64()), (Some(1), Some(1)));
    let (_, way) = served.ask("path", &[("from", &a), ("to", &b)]);
    assert_eq!((way["hops"].as_u64(), way["path"][1].as_str()), (Some(2), Some(&*home)), "{way}");
    let host = known["host"].as_str().expect("a host");
    let (_, of_host) = served.ask("host", &[("host", host)]);
    assert_eq!((of_host["fetched"].as_u64(), of_host["links_inside"].as_u64()), (Some(3), Some(3)), "{of_host}");
    let (_, company) = served.ask("cocited", &[("url", &a)]);
    assert_eq!(company["cocited"][0]["url"].as_str(), Some(&*b), "{company}");
    let (_, around) = served.ask("neighbourhood", &[("url", &home)]);
    assert_eq!(around["nodes"].as_array().map(Vec::len), Some(3), "{around}");
    let (_, around) = served.ask("neighbourhood", &[("url", &home), ("nodes", "2")]);
    assert_eq!(
        (around["nodes"][1]["url"].as_str(), around["nodes"][1]["side"].as_str()),
        (Some(&*a), Some("both")),
        "{around}"
    );
    let (_, all) = served.ask("overview", &[]);
    assert_eq!(
        (all["pages"].as_u64(), all["links"].as_u64(), all["running"].as_bool()),
        (Some(3), Some(3), Some(false)),
        "{all}"
    );
    let (_, meant) = served.ask("suggest", &[("q", &home)]);
    assert!(meant["urls"].as_array().is_some_and(|urls| urls.iter().any(|u| u.as_str() == Some(&*a))), "{meant}");
    assert_eq!(served.ask("page", &[("url", "https://unknown.example/")]).0, 404);

    for (target, holds) in [
        ("/graph".to_string(), "Pages fetched"),
        (format!("/page?{}", query(&[("url", &home)])), "&lt;img src=x onerror=alert(1)&gt;"),
        (format!("/page?{}", query(&[("url", &a)])), "&lt;script&gt;alert(1)&lt;/script&gt;"),
        (format!("/host?{}", query(&[("host", host)])), "Links inside"),
        (format!("/path?{}", query(&[("from", &a), ("to", &b)])), "2 links"),
    ] {
        let (status, html) = served.get(&target);
        assert_eq!(status, 200, "{target}");
        assert!(html.contains(holds), "{target}: {html}");
        assert!(!html.contains("<script>alert") && !html.contains("<img src=x"), "{target}: {html}");
    }
    assert_eq!(served.end("-TERM"), Some(0));
}

/// What a browser makes of the pages: the script has run, and nothing broke the policy. Without a browser this is left out.
#[test]
fn a_browser_finds_nothing_to_complain_about() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    }) else {
        println!("there is no Chromium here: the pages are not tried in a browser");
        return;
    };
    let (server, place) = (small_web(), Place::new());
    let home = server.web().url(0, 0);
    json(&run(&mut crawl(&server, &place.dir, &[&home, "--delay", "10ms"])), 0);
    let served = Served::start(&place.dir);
    let profile = place.file("browser", "").with_extension("profile");
    for target in ["/graph".to_string(), format!("/page?{}", query(&[("url", &home)])), "/path".to_string()] {
        let mut command = Command::new(browser);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg("--virtual-time-budget=2000");
        command.arg(format!("http://{}{target}", served.address));
        let output = run(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(dom.contains("role=\"combobox\""), "the script did not run: {target}: {dom}\n{log}");
        let complaints: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{target}: {complaints:?}");
    }
}

#[test]
fn a_running_crawl_is_followed() {
    let (server, place) = (serve(WebConfig::plain(1, 60)), Place::new());
    let home = server.web().url(0, 0);
    let mut crawling = crawl(&server, &place.dir, &[&home, "--delay", "100ms"]).spawn().expect("crawl");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !place.dir.join("log").is_dir() {
        assert!(Instant::now() < deadline, "the crawl did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let served = Served::start(&place.dir);
    // Each look sees more pages than the one before, as long as the crawl goes on.
    let (mut seen, mut grew) = (0, 0);
    while grew < 3 {
        assert!(Instant::now() < deadline, "the answers stand still");
        let pages = served.ask("overview", &[]).1["pages"].as_u64().expect("a number");
        if pages > seen {
            (seen, grew) = (pages, grew + 1);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(crawling.try_wait().expect("wait").is_none(), "the crawl still runs");
    assert_eq!(served.end("-INT"), Some(0));
    crawling.kill().expect("end the crawl");
    crawling.wait().expect("wait");
}

#[test]
fn what_cannot_be_served_is_told_in_one_line() {
    let place = Place::new();
    let check = |dir: &Path, more: &[&str], expected: &str| {
        let output = run(rhumb().arg("serve").arg(dir).args(more));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!((stderr.lines().count(), output.stdout.len()), (1, 0), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    check(&place.dir, &[], "there is no directory");
    std::fs::create_dir(&place.dir).expect("make a directory");
    check(&place.dir, &[], "neither a crawl directory nor");
    check(&place.dir, &["--listen", "nowhere"], "--listen");
    std::fs::remove_dir(&place.dir).expect("remove it");
    let server = small_web();
    json(&run(&mut crawl(&server, &place.dir, &[&server.web().url(0, 0), "--limit", "1"])), 0);
    let taken = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = taken.local_addr().expect("an address").to_string();
    check(&place.dir, &["--listen", &address], "is taken");
    check(&place.dir, &["--listen", "192.0.2.1:8080"], "is no address of this machine");
}
