//! Odd and broken servers: every way to misbehave is told apart, and none stops a crawl.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rhumb_core::outcome::{self, Outcome};
use rhumb_sim::WebConfig;

use super::{IMPATIENT, archive_text, at, ends_of, fetch, html, visits, with_config};
use crate::common::{Place, crawl, json, rhumb, run, run_within, serve};

pub type Heard = Arc<Mutex<Vec<String>>>;

/// A server with one host that has no robots.txt and otherwise answers as it likes; then it hangs up. Gives the
/// origin and the paths asked for.
pub fn odd(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> (String, Heard) {
    ruled("404 Not Found", "", answer)
}

/// The same with a robots.txt, or with a status for it.
pub fn ruled(
    status: &'static str,
    robots: &'static str,
    answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static,
) -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let origin = format!("http://{}", listener.local_addr().expect("address"));
    let heard = Heard::default();
    let (hears, answer) = (heard.clone(), Arc::new(answer));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (hears, answer) = (hears.clone(), answer.clone());
            std::thread::spawn(move || {
                while let Some(path) = read_request(&mut stream) {
                    hears.lock().expect("heard").push(path.clone());
                    if path == "/robots.txt" {
                        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{robots}", robots.len());
                    } else {
                        return answer(&path, &mut stream);
                    }
                }
            });
        }
    });
    (origin, heard)
}

/// The path of the next request; none at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).split(' ').nth(1).map(str::to_string)
}

/// A whole answer. A client that went away is not the server's concern.
pub fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    answer_with(stream, status, "", body);
}

pub fn answer_with(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
}

/// Says no more, and waits until the client has had enough.
fn stay(stream: &mut TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";

/// Every way to misbehave, by path, with what is made of it: outcome, whether the body is cut.
const MISDEEDS: [(&str, &str, bool); 13] = [
    ("/silent", "head_timeout", false),
    ("/half-a-head", "head_timeout", false),
    ("/garbage", "bad_http", false),
    ("/empty", "reset", false),
    ("/giant-header", "head_too_large", false),
    ("/many-headers", "head_too_large", false),
    ("/stuck-body", "too_slow", true),
    ("/dripping-body", "ok", true),
    ("/endless-body", "ok", true),
    ("/short-body", "ok", true),
    ("/no-body", "reset", true),
    ("/bad-chunk", "bad_http", true),
    ("/odd-status", "odd_status", false),
];

const STRICT: &str = "[fetch]\nhead = \"400ms\"\ntotal = \"5s\"\nrate_window = \"400ms\"\nrate_min = \"2KiB\"\n\
                      head_max = \"16KiB\"\nhead_lines_max = 100\nbody_max = \"100KiB\"\n";

fn misbehave(path: &str, stream: &mut TcpStream) {
    let mut say = |text: &str| stream.write_all(text.as_bytes()).is_ok();
    match path {
        "/silent" => stay(stream),
        "/half-a-head" => {
            say("HTTP/1.1 200 OK\r\nContent-Ty");
            stay(stream);
        }
        "/garbage" => drop(say("220 mail.example ESMTP\r\n\r\n")),
        "/empty" => {}
        "/giant-header" => drop(say(&format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)))),
        "/many-headers" => drop(say(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(500)))),
        "/stuck-body" => {
            say(&format!("{HEAD}Content-Length: 1000\r\n\r\n"));
            stay(stream);
        }
        "/dripping-body" => {
            say(&format!("{HEAD}\r\n"));
            while say("<p>") {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        "/endless-body" => {
            say(&format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n"));
            while say(&format!("1000\r\n{}\r\n", "x".repeat(0x1000))) {}
        }
        "/short-body" => drop(say(&format!("{HEAD}Content-Length: 1000\r\n\r\n<a href=/half>half a page"))),
        "/no-body" => drop(say(&format!("{HEAD}Content-Length: 1000\r\n\r\n"))),
        "/bad-chunk" => drop(say(&format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n"))),
        "/odd-status" => answer(stream, "999 Request denied", "no"),
        _ => answer(stream, "200 OK", "fine"),
    }
}

#[test]
fn misbehaving_servers_are_told_apart() {
    let (origin, _) = odd(misbehave);
    for (path, outcome, truncated) in MISDEEDS {
        let fetched = fetch(&format!("{origin}{path}"), STRICT, &[]);
        assert_eq!(fetched["outcome"], outcome, "{path}: {fetched}");
        // Without a response there is nothing to be cut.
        assert_eq!(fetched["truncated"], truncated, "{path}: {fetched}");
        assert!(fetched["body_bytes"].as_u64() <= Some(100 << 10), "{path}: {fetched}");
        assert!(fetched["milliseconds"].as_u64() < Some(3_000), "{path}: {fetched}");
    }
}

#[test]
fn misbehaving_servers_do_not_stop_a_crawl() {
    // Each has a host of its own, so that one's failures are not another's.
    let hosts: Vec<(String, Heard, &str)> = MISDEEDS
        .iter()
        .map(|&(misdeed, outcome, _)| {
            let (origin, heard) = odd(move |path, stream| match path {
                "/" => answer(stream, "200 OK", &format!("<a href={misdeed}>x</a>")),
                _ => misbehave(path, stream),
            });
            (format!("{origin}{misdeed}"), heard, outcome)
        })
        .collect();
    let place = Place::new();
    let mut command = rhumb();
    command.args(["crawl", "--json", "--no-sitemaps"]).arg("--dir").arg(&place.dir);
    for (url, ..) in &hosts {
        command.arg(format!("{}/", url.rsplit_once('/').expect("a path").0));
    }
    let config = format!("{IMPATIENT}{STRICT}").replace("host_failures = 2", "host_failures = 9");
    let status = json(&run_within(with_config(&mut command, &place, &config), Duration::from_secs(60)), 0);
    assert_eq!(status["urls_waiting"], 0);
    let ends = ends_of(&place);
    for (url, heard, expected_end) in &hosts {
        assert_eq!(ends.get(url), Some(expected_end), "{url}");
        let path = url.rsplit_once('/').map(|(_, p)| format!("/{p}")).expect("a path");
        let times = heard.lock().expect("heard").iter().filter(|p| **p == path).count();
        let transient = outcome::ALL.iter().any(|o| o.name() == *expected_end && o.is_transient());
        let expected = if transient { 2 } else { 1 };
        assert_eq!(times, expected, "{url}: what may pass is tried again, as often as configured");
    }
    let archive = archive_text(&place.dir);
    assert!(archive.contains("half a page"), "what came is kept");
    for reason in ["length", "time", "disconnect"] {
        assert!(archive.contains(&format!("WARC-Truncated: {reason}\r\n")), "{reason}");
    }
    let check = json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
    assert_eq!(check[0]["passed"], true, "{check}");
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_costs_nothing() {
    // Every answer promises to keep the connection, and none does.
    let (origin, heard) = odd(|path, stream| match path {
        "/" => answer(stream, "200 OK", &(0..8).map(|i| format!("<a href=/{i}>x</a>")).collect::<String>()),
        _ => answer_with(stream, "200 OK", "Connection: keep-alive\r\n", &format!("page {path}")),
    });
    let place = Place::new();
    let mut command = rhumb();
    command
        .args(["crawl", "--json", "--no-sitemaps", "--delay", "30ms", &format!("{origin}/")])
        .arg("--dir")
        .arg(&place.dir);
    let status = json(&run(&mut command), 0);
    assert_eq!((&status["pages"], &status["retries"]), (&9.into(), &0.into()), "{status}");
    assert_eq!(heard.lock().expect("heard").len(), 10, "each once");
}

#[test]
fn a_goodbye_on_an_idle_connection_is_no_answer() {
    // Some servers say why they close a connection that nobody uses.
    let (origin, _) = odd(|path, stream| {
        match path {
            "/" => answer(stream, "200 OK", "<a href=/1>x</a><a href=/2>x</a>"),
            _ => answer(stream, "200 OK", "page"),
        }
        answer_with(stream, "408 Request Timeout", "Connection: close\r\n", "too late");
    });
    let place = Place::new();
    let mut command = rhumb();
    command
        .args(["crawl", "--json", "--no-sitemaps", "--delay", "30ms", &format!("{origin}/")])
        .arg("--dir")
        .arg(&place.dir);
    let status = json(&run(&mut command), 0);
    assert_eq!((&status["pages"], &status["retries"]), (&3.into(), &0.into()), "{status}");
}

#[test]
fn a_silent_server_is_not_asked_twice_in_a_row() {
    // The first answer keeps the connection open; on the second request the server goes silent.
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}/", listener.local_addr().expect("address"));
    let heard = Heard::default();
    let hears = heard.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let hears = hears.clone();
            std::thread::spawn(move || {
                while let Some(path) = read_request(&mut stream) {
                    hears.lock().expect("heard").push(path.clone());
                    if path == "/robots.txt" {
                        answer(&mut stream, "404 Not Found", "");
                    }
                }
            });
        }
    });
    let place = Place::new();
    let mut command = rhumb();
    command.args(["crawl", "--json", "--no-sitemaps", &url]).arg("--dir").arg(&place.dir);
    let config = format!("{IMPATIENT}{STRICT}").replace("attempts = 2", "attempts = 1");
    json(&run(with_config(&mut command, &place, &config)), 1);
    assert_eq!(*heard.lock().expect("heard"), ["/robots.txt", "/"]);
    assert_eq!(ends_of(&place)[&url], "head_timeout");
}

#[test]
fn hosts_that_cannot_be_reached_are_told_apart_and_hold_nobody_up() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let (refused, nameless) = (format!("http://{closed}/"), "http://no-such-name.sim.test/".to_string());
    web.set_document(0, "/", html(&format!("<a href='{refused}'>x</a><a href='{nameless}'>x</a><a href=/page>x</a>")));
    web.set_document(0, "/page", html("page"));
    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--scope", "any"]);
    let status = json(&run_within(with_config(&mut command, &place, IMPATIENT), Duration::from_secs(30)), 0);
    assert_eq!(status["pages"], 2);
    let ends = ends_of(&place);
    assert_eq!(ends[&nameless], "no_host");
    assert_eq!(ends.get(&refused), None, "what may answer one day is not given up");
    assert_eq!(status["held"]["no_answer"]["urls"], 1, "{}", status["held"]);
    let tries: Vec<Outcome> =
        visits(&place).iter().filter(|v| v.entry.url.as_str().starts_with(&refused)).map(|v| v.outcome).collect();
    assert_eq!(tries, [Outcome::Refused, Outcome::Refused]);
}
