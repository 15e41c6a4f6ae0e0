//! The web as it is: TLS, redirects, codings, conditional requests, odd and broken servers; and how far a crawl goes.

pub mod odd;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rhumb_core::outcome::Outcome;
use rhumb_core::visit::VisitRecord;
use rhumb_sim::{Naming, Reply, Server, ServerConfig, Web, WebConfig};
use serde_json::Value;

use odd::{answer, answer_with, odd};

use crate::common::{Place, crawl, ends, json, rhumb, run, run_within, serve};

const QUICK: [&str; 2] = ["--delay", "5ms"];

/// Few and short waits, for what fails on purpose.
const IMPATIENT: &str = "[politeness]\ndelay = \"5ms\"\nfailure_pause = \"20ms\"\nhost_failures = 2\nattempts = 2\nbackoff_first = \"20ms\"\n";

fn html(body: &str) -> Reply {
    Reply::new(200, "text/html", body)
}

fn at(server: &Server, host: u64, path: &str) -> String {
    format!("{}{path}", server.web().origin(host))
}

/// Paths asked of a host, in order, robots.txt left out.
fn asked(server: &Server, host: u64) -> Vec<String> {
    let mut log = server.log();
    log.sort_by_key(|e| e.start_us);
    let of_host = log.into_iter().filter(|e| server.web().host_index(&e.host) == Some(host));
    of_host.map(|e| e.path).filter(|p| p != "/robots.txt").collect()
}

/// The same, sorted.
fn asked_sorted(server: &Server, host: u64) -> Vec<String> {
    let mut paths = asked(server, host);
    paths.sort();
    paths
}

/// How each URL ended.
fn ends_of(place: &Place) -> BTreeMap<String, &'static str> {
    ends(&place.dir).into_iter().collect()
}

fn visits(place: &Place) -> Vec<VisitRecord> {
    crate::common::visits(&place.dir)
}

/// All records of the archive, unpacked.
fn archive_text(dir: &Path) -> String {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir.join("archive")).expect("archive").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".warc.gz") {
            let file = std::fs::File::open(entry.path()).expect("open");
            flate2::read::MultiGzDecoder::new(file).read_to_end(&mut all).expect("gzip members");
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn with_config<'a>(command: &'a mut Command, place: &Place, text: &str) -> &'a mut Command {
    command.arg("--config").arg(place.file("config.toml", text))
}

/// `rhumb fetch` of a URL, with a configuration; the exit code follows from the outcome.
fn fetch(url: &str, config: &str, more: &[&str]) -> Value {
    let place = Place::new();
    let mut command = rhumb();
    with_config(command.args(["fetch", "--json", url]).args(more), &place, config);
    let output = run_within(&mut command, Duration::from_secs(30));
    let code = output.status.code().expect("an exit code");
    assert!(code <= 1, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output, code)
}

fn fetch_from(server: &Server, url: &str, config: &str, more: &[&str]) -> Value {
    let dns = server.dns_addr().expect("DNS").to_string();
    fetch(url, config, &[&["--dns", &dns, "--allow-net", "127.0.0.0/8"], more].concat())
}

// ---- TLS -------------------------------------------------------------------------------------------------

fn serve_tls(config: WebConfig, http2: bool) -> Server {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
    let server = ServerConfig { listen: any, tls: Some(any), dns: Some(any), http2, ..ServerConfig::default() };
    Server::start(Web::new(WebConfig { https: true, ..config }).expect("web"), server).expect("server")
}

fn trust(server: &Server, place: &Place) -> String {
    let authority = place.file("authority.pem", server.ca_pem().expect("TLS"));
    format!("{IMPATIENT}[net]\nauthorities = {:?}\n", authority.to_str().expect("UTF-8"))
}

#[test]
fn https_with_both_versions_of_http() {
    for (http2, protocol) in [(true, "h2"), (false, "http/1.1")] {
        let server = serve_tls(WebConfig::plain(3, 6), http2);
        let web = server.tls_web();
        let place = Place::new();
        let config = trust(&server, &place);
        let fetched = fetch_from(&server, &web.url(0, 0), &config, &[]);
        assert_eq!((&fetched["outcome"], &fetched["protocol"]), (&"ok".into(), &protocol.into()), "{fetched}");
        server.clear_log();

        let seeds: Vec<String> = (0..3).map(|host| web.url(host, 0)).collect();
        assert!(seeds[0].starts_with("https://"));
        let mut command = crawl(&server, &place.dir, &QUICK);
        let status = json(&run(with_config(command.args(&seeds), &place, &config)), 0);
        assert_eq!((&status["pages"], &status["retries"]), (&18.into(), &0.into()));
        let view = server.log_view();
        assert!(view.requests.iter().all(|e| e.scheme == "https" && e.complete), "{:?}", view.requests);
        assert_eq!(view.requests.len(), 3 * 7);
        assert_eq!(view.connections.len(), 3, "one connection for each host, kept");
        assert!(view.gaps().iter().all(|(gap_us, ..)| *gap_us >= 5_000));
        assert_eq!(archive_text(&place.dir).contains("WARC-Protocol: h2"), http2);
        let check = json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
        assert_eq!(check[0]["passed"], true);
    }
}

/// A server that closes each connection sees one full handshake of every host, and from then on resumed ones. All its
/// hosts have the same key for tickets: that each begins with a full handshake shows that nobody's ticket is shown to another.
#[test]
fn tls_sessions_are_resumed_and_stay_with_their_host() {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
    let tls = Some(any);
    let server = ServerConfig { tls, dns: tls, http2: false, keep_alive: false, ..ServerConfig::default() };
    let server = Server::start(Web::new(WebConfig { https: true, ..WebConfig::plain(4, 6) }).expect("web"), server);
    let server = server.expect("server");
    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &QUICK);
    command.args((0..4).map(|host| server.tls_web().url(host, 0)));
    let status = json(&run(with_config(&mut command, &place, &trust(&server, &place))), 0);
    assert_eq!(status["pages"], 24);
    assert_eq!(server.tls_handshakes(), (4, 4 * 7 - 4), "full and resumed");
}

#[test]
fn https_connections_count_at_an_address_too() {
    for http2 in [true, false] {
        let server = serve_tls(WebConfig { page_bytes: 1_000, ..WebConfig::plain(6, 5) }, http2);
        let place = Place::new();
        let mut command = crawl(&server, &place.dir, &["--delay", "40ms", "--per-ip", "1"]);
        command.args((0..6).map(|host| server.tls_web().url(host, 0)));
        let status = json(&run(with_config(&mut command, &place, &trust(&server, &place))), 0);
        assert_eq!(status["pages"], 30);
        let view = server.log_view();
        assert_eq!(view.peak_by_address(20_000).map(|(_, peak)| peak), Some(1), "HTTP/2: {http2}");
        assert!(view.gaps().iter().all(|(gap_us, ..)| *gap_us >= 40_000));
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = serve_tls(WebConfig::plain(1, 2), true);
    let url = server.tls_web().url(0, 0);
    assert_eq!(fetch_from(&server, &url, IMPATIENT, &[])["outcome"], "tls_failed");

    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &[&url]);
    json(&run(with_config(&mut command, &place, IMPATIENT)), 1);
    assert!(visits(&place).iter().all(|v| v.outcome == Outcome::TlsFailed));
    assert!(server.log().is_empty(), "nothing was asked over it");
}

#[test]
fn addresses_have_certificates_too_and_a_port_without_tls_has_none() {
    let server = serve_tls(WebConfig::plain(1, 2), true);
    let place = Place::new();
    let config = format!("{}[fetch]\ntls = \"500ms\"\n", trust(&server, &place));
    let url = format!("https://{}/", server.tls_addr().expect("TLS"));
    assert_eq!(fetch(&url, &config, &[])["outcome"], "not_found", "the certificate for the address is good");
    let plain = format!("https://{}/", server.addr());
    assert_eq!(fetch(&plain, &config, &[])["outcome"], "tls_failed", "a port without TLS");
}

// ---- redirects -------------------------------------------------------------------------------------------

#[test]
fn redirects_of_every_kind_are_followed() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let kinds = [
        (301, "/dir/a", "/t/absolute-path", "/t/absolute-path"),
        (302, "/dir/b", "relative?q=1#f", "/dir/relative?q=1"),
        (303, "/dir/c", "../up", "/up"),
        (307, "/dir/d", "?only=query", "/dir/d?only=query"),
        (308, "/dir/e", "//SELF/network-path", "/network-path"),
        (301, "/dir/f", "http://SELF/whole", "/whole"),
        (302, "/dir/g", " /spaces ", "/spaces"),
    ];
    let list: String = kinds.iter().map(|(_, from, ..)| format!("<a href='{from}'>x</a>")).collect();
    web.set_document(0, "/", html(&list));
    let own = web.origin(0).replace("http://", "");
    for (status, from, location, to) in kinds {
        web.set_document(0, from, Reply::redirect(status, &location.replace("SELF", &own)));
        web.set_document(0, to, html("here"));
    }
    let place = Place::new();
    let status = json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms"])), 0);
    assert_eq!((&status["outcomes"]["redirect"], &status["outcomes"]["ok"]), (&7.into(), &8.into()));
    let mut expected: Vec<String> =
        kinds.iter().flat_map(|(_, from, _, to)| [from.to_string(), to.to_string()]).collect();
    expected.push("/".into());
    expected.sort();
    assert_eq!(asked_sorted(&server, 0), expected, "each once");
    // A redirect is the same page under another name: no deeper.
    assert!(visits(&place).iter().filter(|v| v.entry.url.path() != "/").all(|v| v.entry.depth <= 1));
}

#[test]
fn a_redirect_to_another_host_is_followed_if_that_host_is_wanted() {
    let server = serve(WebConfig::plain(2, 1));
    let web = server.web();
    web.set_document(0, "/", html("<a href=/away>x</a>"));
    web.set_document(0, "/away", Reply::redirect(302, &at(&server, 1, "/there")));
    web.set_document(1, "/there", html("there"));
    for (scope, followed) in [("host", false), ("any", true)] {
        server.clear_log();
        let place = Place::new();
        json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms", "--scope", scope])), 0);
        assert_eq!(ends_of(&place)[&at(&server, 0, "/away")], "redirect");
        assert_eq!(asked(&server, 1), if followed { vec!["/there"] } else { vec![] }, "{scope}");
        assert_eq!(server.dns_queries().contains_key("h1.sim.test"), followed, "{scope}");
    }
}

#[test]
fn where_a_seed_leads_is_in_scope() {
    let server = serve(WebConfig::plain(3, 1));
    let web = server.web();
    web.set_document(0, "/", Reply::redirect(301, &at(&server, 1, "/home")));
    let away = at(&server, 2, "/");
    web.set_document(1, "/home", html(&format!("<a href=/more>x</a> <a href='{away}'>y</a>")));
    web.set_document(1, "/more", html("more"));
    let place = Place::new();
    let seed = at(&server, 0, "/");
    json(&run(&mut crawl(&server, &place.dir, &[&seed, "--delay", "5ms"])), 0);
    assert_eq!(asked(&server, 1), ["/home", "/more"]);
    assert_eq!(asked(&server, 2), [""; 0], "but not what is linked from there");
}

#[test]
fn chains_and_loops_of_redirects_end() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", html("<a href=/c0>x</a> <a href=/a>x</a> <a href=/self>x</a> <a href=/e0>x</a>"));
    (0..9).for_each(|i| web.set_document(0, &format!("/c{i}"), Reply::redirect(301, &format!("/c{}", i + 1))));
    (0..3).for_each(|i| web.set_document(0, &format!("/e{i}"), Reply::redirect(301, &format!("/e{}", i + 1))));
    web.set_document(0, "/e3", html("<a href=/after>x</a>"));
    web.set_document(0, "/after", Reply::redirect(302, "/end"));
    web.set_document(0, "/end", html("end"));
    web.set_document(0, "/a", Reply::redirect(302, "/b"));
    web.set_document(0, "/b", Reply::redirect(302, "/a"));
    web.set_document(0, "/self", Reply::redirect(302, "/self"));
    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &[&at(&server, 0, "/")]);
    json(&run(with_config(&mut command, &place, &format!("{IMPATIENT}[fetch]\nredirects_max = 3\n"))), 0);
    let expected = ["/", "/a", "/after", "/b", "/c0", "/c1", "/c2", "/c3", "/e0", "/e1", "/e2", "/e3", "/end", "/self"];
    assert_eq!(asked_sorted(&server, 0), expected, "each once, none beyond the third");
    let ends = ends_of(&place);
    let end = |path: &str| ends[&at(&server, 0, path)];
    assert_eq!((end("/c2"), end("/c3"), end("/e3")), ("redirect", "too_many_redirects", "ok"));
    assert_eq!((end("/after"), end("/end")), ("redirect", "ok"), "a page begins the count anew");
}

#[test]
fn redirects_that_lead_to_no_web_page_are_told_and_not_followed() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let bad = [
        "ftp://h0.sim.test/x",
        "file:///etc/hostname",
        "javascript:alert(1)",
        "http://",
        "mailto:a@b.example",
        "data:text/html,x",
    ];
    let list: String = (0..=bad.len()).map(|i| format!("<a href=/r{i}>x</a>")).collect();
    web.set_document(0, "/", html(&list));
    (0..).zip(bad).for_each(|(i, location)| web.set_document(0, &format!("/r{i}"), Reply::redirect(301, location)));
    web.set_document(0, &format!("/r{}", bad.len()), Reply::new(301, "text/html", "no Location"));
    let place = Place::new();
    let status =
        json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms", "--scope", "any"])), 0);
    assert_eq!(status["outcomes"]["bad_redirect"], bad.len() as u64 + 1, "{}", status["outcomes"]);
    assert_eq!(asked(&server, 0).len(), 2 + bad.len());
}

#[test]
fn the_web_cannot_lead_into_our_own_network() {
    let inside = TcpListener::bind("127.0.0.1:0").expect("bind");
    inside.set_nonblocking(true).expect("nonblocking");
    let port = inside.local_addr().expect("address").port();
    // A name that anybody may register: it resolves to an address of ours.
    let named = serve(WebConfig::plain(1, 1));
    let targets = [
        format!("http://127.0.0.1:{port}/redirected"),
        format!("http://127.0.0.2:{port}/linked"),
        format!("http://2130706433:{port}/as-a-number"),
        format!("http://[::ffff:127.0.0.1]:{port}/mapped"),
        format!("http://0.0.0.0:{port}/unspecified"),
        "http://10.255.255.1/private".to_string(),
        "http://169.254.169.254/latest/meta-data/".to_string(),
        at(&named, 0, "/named"),
    ];
    let listed: String = targets[1..].iter().map(|t| format!("<a href='{t}'>x</a>")).collect();
    let first = targets[0].clone();
    let (origin, _) = odd(move |path, stream| match path {
        "/" => answer(stream, "200 OK", &format!("<a href=/go>x</a>{listed}")),
        _ => answer_with(stream, "302 Found", &format!("Location: {first}\r\n"), ""),
    });
    let place = Place::new();
    let dns = named.dns_addr().expect("DNS").to_string();
    let mut command = rhumb();
    command.args(["crawl", "--json", &format!("{origin}/"), "--delay", "5ms", "--scope", "any", "--dns", &dns]);
    json(&run(command.arg("--dir").arg(&place.dir)), 0);
    let ends = ends_of(&place);
    for target in &targets {
        let canonical = json(&run(rhumb().args(["url", "normalize", "--json", target])), 0);
        let canonical = canonical["url"].as_str().expect("a URL").to_string();
        assert_eq!(ends.get(&canonical), Some(&"blocked_address"), "{target}: {ends:?}");
    }
    assert_eq!(inside.accept().err().map(|e| e.kind()), Some(std::io::ErrorKind::WouldBlock), "it was dialled");
    assert!(named.log_view().connections.is_empty(), "it was dialled");
}

// ---- content codings and conditional requests ------------------------------------------------------------

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

/// A Brotli stream of one uncompressed part (RFC 7932, section 9.2).
fn brotli(body: &[u8]) -> Vec<u8> {
    let head = (body.len() as u32 - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], body, &[3]].concat()
}

#[test]
fn pages_are_read_in_every_coding_that_is_asked_for() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let deflate = |body: &[u8]| {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body).expect("memory");
        encoder.finish().expect("memory")
    };
    let zlib = |body: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body).expect("memory");
        encoder.finish().expect("memory")
    };
    let zstd = |body: &[u8]| zstd::bulk::compress(body, 3).expect("memory");
    type Encode<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let codings: [(&str, Encode); 8] = [
        ("gzip", &gzip),
        ("x-gzip", &gzip),
        ("br", &brotli),
        ("zstd", &zstd),
        ("deflate", &zlib),
        ("Deflate", &deflate),
        ("gzip, br", &|b| brotli(&gzip(b))),
        ("identity", &|b| b.to_vec()),
    ];
    let list: String = (0..codings.len()).map(|i| format!("<a href=/p{i}>x</a>")).collect();
    web.set_document(0, "/", html(&list));
    for (i, (coding, encode)) in codings.iter().enumerate() {
        let mut reply = html("").with_header("Content-Encoding", coding);
        reply.body = encode(format!("<title>{coding}</title><a href=/found{i}>x</a>").as_bytes());
        web.set_document(0, &format!("/p{i}"), reply);
        web.set_document(0, &format!("/found{i}"), html("found"));
    }
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms"])), 0);
    let titles: BTreeMap<String, String> =
        visits(&place).into_iter().map(|v| (v.entry.url.path().to_string(), v.title.to_string())).collect();
    for (i, (coding, _)) in codings.iter().enumerate() {
        assert_eq!(titles.get(&format!("/p{i}")).map(String::as_str), Some(*coding));
        assert!(titles.contains_key(&format!("/found{i}")), "{coding}: its link was not followed");
    }
    let fetched = fetch_from(&server, &at(&server, 0, "/p0"), "", &[]);
    let expected = "<title>gzip</title><a href=/found0>x</a>".len();
    assert_eq!(fetched["body_bytes"], expected);
}

#[test]
fn a_body_that_swells_is_cut() {
    let server = serve(WebConfig::plain(1, 1));
    let mut reply = html("").with_header("Content-Encoding", "gzip, gzip");
    reply.body = gzip(&gzip(&vec![b'a'; 64 << 20]));
    assert!(reply.body.len() < 10_000);
    server.web().set_document(0, "/", reply);
    let fetched = fetch_from(&server, &at(&server, 0, "/"), "[fetch]\ndecoded_max = \"1MiB\"\n", &[]);
    assert!(fetched["body_bytes"].as_u64() <= Some(1 << 20), "{fetched}");
    assert!(!fetched["coding_problem"].is_null(), "{fetched}");
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let server = serve(WebConfig::plain(1, 2));
    let url = server.web().url(0, 1);
    let first = fetch_from(&server, &url, "", &[]);
    let header = |name: &str| {
        let headers = first["headers"].as_array().expect("headers").iter();
        let found = headers.filter(|h| h[0] == name).find_map(|h| h[1].as_str());
        found.unwrap_or_else(|| panic!("no {name}: {first}")).to_string()
    };
    let (etag, date) = (header("etag"), header("last-modified"));
    let check = |more: &[&str], expected: (u64, &str)| {
        let fetched = fetch_from(&server, &url, "", more);
        assert_eq!((fetched["status"].as_u64(), fetched["outcome"].as_str()), (Some(expected.0), Some(expected.1)));
        assert_eq!(fetched["body_bytes"] == 0, expected.0 == 304);
    };
    check(&["--if-none-match", &etag], (304, "not_modified"));
    check(&["--if-none-match", "\"another\""], (200, "ok"));
    check(&["--if-modified-since", &date], (304, "not_modified"));
    check(&["--if-modified-since", "Sat, 01 Jan 2000 00:00:00 GMT"], (200, "ok"));
}

#[test]
fn rules_that_have_not_changed_stay_in_force() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let rules = Reply::new(200, "text/plain", "User-agent: *\nDisallow: /no\n").with_header("ETag", "\"one\"");
    web.set_robots_reply(0, rules);
    let list: String = (0..30).map(|i| format!("<a href=/yes{i}>x</a><a href=/no{i}>x</a>")).collect();
    web.set_document(0, "/", html(&list));
    (0..30).for_each(|i| web.set_document(0, &format!("/yes{i}"), html("yes")));
    let place = Place::new();
    let mut command = crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "50ms"]);
    // Thirty pages that say the same would otherwise be taken for what they are.
    let settings = "[politeness]\nrobots_max_age = \"300ms\"\n[traps]\nlearn = false\n";
    json(&run(with_config(&mut command, &place, settings)), 0);
    let log = server.log();
    let statuses: Vec<u16> = log.iter().filter(|e| e.path == "/robots.txt").map(|e| e.status).collect();
    assert_eq!(statuses[0], 200);
    assert!(statuses.len() >= 4 && statuses[1..].iter().all(|s| *s == 304), "{statuses:?}");
    assert_eq!(asked(&server, 0).len(), 31);
    assert!(asked(&server, 0).iter().all(|p| !p.starts_with("/no")));
}

#[test]
fn a_continuous_crawl_asks_again_and_archives_that_nothing_changed() {
    let server = serve(WebConfig::plain(1, 3));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let mut command = crawl(&server, &place.dir, &[&seed, "--continuous", "--max-time", "2500ms", "--delay", "20ms"]);
    let status = json(&run(with_config(&mut command, &place, "[crawl]\nrevisit = \"500ms\"\n")), 0);
    assert_eq!(status["pages"], 3);
    let by_path = |path: &str| {
        let mut log = server.log();
        log.retain(|e| e.path == path);
        log.sort_by_key(|e| e.start_us);
        log
    };
    for page in 0..3 {
        let path = server.web().url(0, page).replace(&server.web().origin(0), "");
        let log = by_path(&path);
        // Only a conditional request is answered with 304.
        assert_eq!((log[0].status, log[1].status), (200, 304), "{path}");
        assert!(log.len() >= 3 && log[1..].iter().all(|e| e.status == 304), "{path}: {log:?}");
        // Due times are whole milliseconds.
        assert!(log.windows(2).all(|pair| pair[1].start_us - pair[0].end_us >= 499_000), "{path}: {log:?}");
    }
    let archive = archive_text(&place.dir);
    assert!(archive.contains("/revisit/server-not-modified"));
    assert_eq!(archive.matches("WARC-Type: response\r\n").count(), 3 + 1, "pages and robots.txt, each once");
    let check = json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
    assert_eq!(check[0]["passed"], true);
}

#[test]
fn a_page_that_changed_is_archived_again() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", html("<p>first</p>").with_header("ETag", "\"1\""));
    let place = Place::new();
    let seed = at(&server, 0, "/");
    let mut command = crawl(&server, &place.dir, &[&seed, "--continuous", "--limit", "2", "--delay", "20ms"]);
    let mut child = with_config(&mut command, &place, "[crawl]\nrevisit = \"200ms\"\n").spawn().expect("start");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while server.log().iter().all(|e| e.status != 304) {
        assert!(std::time::Instant::now() < deadline, "no conditional request");
        std::thread::sleep(Duration::from_millis(2));
    }
    web.set_document(0, "/", html("<p>second</p>").with_header("ETag", "\"2\""));
    // The second page reaches the limit.
    let ended = loop {
        match child.try_wait().expect("wait") {
            Some(status) => break status,
            None if std::time::Instant::now() > deadline => {
                let _ = child.kill();
                panic!("the change was not seen");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert_eq!(ended.code(), Some(0));
    let archive = archive_text(&place.dir);
    assert!(archive.contains("<p>first</p>") && archive.contains("<p>second</p>"));
}

// ---- how far a crawl goes --------------------------------------------------------------------------------

#[test]
fn depth_is_counted_in_links_from_a_seed() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    (0..6).for_each(|i| web.set_document(0, &format!("/{i}"), html(&format!("<a href=/{}>x</a>", i + 1))));
    for (depth, expected) in [("0", 1), ("1", 2), ("3", 4)] {
        server.clear_log();
        let place = Place::new();
        json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/0"), "--delay", "5ms", "--depth", depth])), 0);
        assert_eq!(asked(&server, 0).len(), expected, "--depth {depth}");
    }
}

#[test]
fn the_scope_is_a_host_a_domain_a_directory_or_everything() {
    // h0 and h1 are of one registrable domain, h2 is of another.
    let naming = Naming::Names { suffix: "test".into(), hosts_per_domain: 2 };
    let server = serve(WebConfig { naming, ..WebConfig::plain(3, 1) });
    let web = server.web();
    let targets = [at(&server, 0, "/dir/in"), at(&server, 0, "/out"), at(&server, 1, "/"), at(&server, 2, "/")];
    let list: String = targets.iter().map(|t| format!("<a href='{t}'>x</a>")).collect();
    web.set_document(0, "/dir/seed", html(&list));
    web.set_document(0, "/dir/in", html("in"));
    web.set_document(0, "/out", html("out"));
    (1..3).for_each(|host| web.set_document(host, "/", html("page")));
    for (scope, expected) in [("prefix", 1), ("host", 2), ("domain", 3), ("any", 4)] {
        server.clear_log();
        let place = Place::new();
        let seed = at(&server, 0, "/dir/seed");
        json(&run(&mut crawl(&server, &place.dir, &[&seed, "--delay", "5ms", "--scope", scope])), 0);
        let ends = ends_of(&place);
        let fetched: Vec<bool> = targets.iter().map(|t| ends.get(t) == Some(&"ok")).collect();
        assert_eq!(fetched, (0..4).map(|i| i < expected).collect::<Vec<_>>(), "--scope {scope}");
        let hosts = server.log().iter().map(|e| e.host.clone()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(hosts.len(), expected.max(2) - 1, "--scope {scope}: {hosts:?}");
    }
}

#[test]
fn expressions_choose_what_is_fetched() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let paths = ["/a/1", "/a/2", "/b/1", "/b/2?print=1"];
    let list: String = paths.iter().map(|p| format!("<a href='{p}'>x</a>")).collect();
    web.set_document(0, "/", html(&list));
    paths.iter().for_each(|p| web.set_document(0, p, html("page")));
    let check = |more: &[&str], expected: &[&str]| {
        server.clear_log();
        let place = Place::new();
        json(&run(&mut crawl(&server, &place.dir, &[&[&*at(&server, 0, "/")], &QUICK[..], more].concat())), 0);
        assert_eq!(asked_sorted(&server, 0), [&["/"], expected].concat(), "{more:?}");
    };
    check(&["--include", "/a/"], &["/a/1", "/a/2"]);
    check(&["--include", "/a/1$", "--include", "/b/1$"], &["/a/1", "/b/1"]);
    check(&["--exclude", "/a/"], &["/b/1", "/b/2?print=1"]);
    check(&["--exclude", "[?&]print="], &["/a/1", "/a/2", "/b/1"]);
    check(&["--include", "/b/", "--exclude", "print"], &["/b/1"]);
}

#[test]
fn a_limit_is_kept_to_the_page_and_raised_later() {
    let latency = rhumb_sim::Latency { min_ms: 5, max_ms: 20, ..Default::default() };
    let server = serve(WebConfig { latency, page_bytes: 1_000, ..WebConfig::plain(20, 20) });
    let seeds: Vec<String> = (0..20).map(|host| server.web().url(host, 0)).collect();
    let place = Place::new();
    let pages = |server: &Server| server.log().iter().filter(|e| e.path != "/robots.txt" && e.status == 200).count();
    for limit in [7, 50, 51] {
        let mut command =
            crawl(&server, &place.dir, &["--delay", "1ms", "--per-ip", "0", "--limit", &limit.to_string()]);
        let status = json(&run(command.args(&seeds)), 0);
        assert_eq!((&status["pages"], &status["state"]), (&limit.into(), &"limit".into()));
        assert_eq!(pages(&server), limit, "nothing is fetched in vain");
    }
}

#[test]
fn a_crawl_ends_when_its_time_is_up_and_goes_on_later() {
    let server = serve(WebConfig::plain(1, 30));
    let place = Place::new();
    let seed = server.web().url(0, 0);
    let more = [&seed, "--delay", "100ms", "--max-time", "1s"];
    let status = json(&run_within(&mut crawl(&server, &place.dir, &more), Duration::from_secs(10)), 0);
    let first = status["pages"].as_u64().expect("pages");
    assert_eq!(status["state"], "limit");
    assert!((2..=10).contains(&first), "{first} pages in a second");
    let status = json(&run(&mut crawl(&server, &place.dir, &["--delay", "5ms", "--max-time", "1h"])), 0);
    assert_eq!((&status["pages"], &status["state"]), (&30.into(), &"finished".into()));
    assert_eq!(asked(&server, 0).len(), 30, "each once");
}

#[test]
fn pages_say_what_links_mean() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", html("<a href=/closed>x</a><a href=/based>x</a><a href=/other-agent>x</a>"));
    web.set_document(0, "/closed", html("<meta name=robots content='noindex, NoFollow'><a href=/never>x</a>"));
    web.set_document(0, "/other-agent", html("<meta name=otherbot content=nofollow><a href=/anyway>x</a>"));
    web.set_document(
        0,
        "/based",
        html("<base href='/deep/er/'><a href=leaf>x</a><a href='#top'>x</a><a href='../up'>x</a>"),
    );
    for path in ["/anyway", "/deep/er/leaf", "/deep/up", "/deep/er/"] {
        web.set_document(0, path, html("page"));
    }
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms"])), 0);
    let asked = asked_sorted(&server, 0);
    assert!(!asked.contains(&"/never".to_string()), "{asked:?}");
    let wanted = ["/", "/anyway", "/based", "/closed", "/deep/er/leaf", "/deep/up", "/other-agent"];
    assert!(wanted.iter().all(|p| asked.contains(&p.to_string())), "{asked:?}");
    assert!(ends_of(&place).values().all(|end| *end == "ok"), "{:?}", ends_of(&place));
}

#[test]
fn the_same_body_is_archived_once() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", html("<a href=/one>x</a><a href=/two>x</a>"));
    // The smallest bodies are not worth the trouble.
    let body = format!("<p>the very same body</p>{}", "<p>and more of it</p>".repeat(10));
    web.set_document(0, "/one", html(&body));
    web.set_document(0, "/two", html(&body));
    let place = Place::new();
    let status = json(&run(&mut crawl(&server, &place.dir, &[&at(&server, 0, "/"), "--delay", "5ms"])), 0);
    assert_eq!((&status["pages"], &status["duplicates"]), (&3.into(), &1.into()));
    let archive = archive_text(&place.dir);
    assert_eq!(archive.matches("the very same body").count(), 1);
    assert!(archive.contains("/revisit/identical-payload-digest"));
    assert!(archive.contains(&format!("WARC-Refers-To-Target-URI: {}", at(&server, 0, "/one"))));
}

#[test]
fn a_finished_crawl_has_nothing_left_to_do_until_there_are_new_seeds() {
    let server = serve(WebConfig::plain(3, 5));
    let place = Place::new();
    let seed = |host| server.web().url(host, 0);
    let first = json(&run(&mut crawl(&server, &place.dir, &[&seed(0), "--delay", "5ms"])), 0);
    assert_eq!((&first["pages"], &first["state"]), (&5.into(), &"finished".into()));
    server.clear_log();
    for seeds in [vec![], vec![seed(0)]] {
        let mut command = crawl(&server, &place.dir, &[]);
        let again = json(&run(command.args(&seeds)), 0);
        assert_eq!((&again["pages"], &again["urls_seen"]), (&5.into(), &first["urls_seen"]));
        assert!(server.log_view().connections.is_empty(), "nobody was contacted");
    }
    let more = json(&run(&mut crawl(&server, &place.dir, &[&seed(1)])), 0);
    assert_eq!(more["pages"], 10);
    assert_eq!((asked(&server, 0).len(), asked(&server, 1).len(), asked(&server, 2).len()), (0, 5, 0));
}
