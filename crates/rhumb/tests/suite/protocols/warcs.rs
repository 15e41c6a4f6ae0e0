//! `warc:`: archives of our own, of warcio and of wget, whole, odd, damaged, and read by a process that keeps dying.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rhumb_core::visit::VisitRecord;
use rhumb_sim::{Naming, Reply, Server, ServerConfig, Web, WebConfig};

use crate::common::{Place, crawl, json, rhumb, run, run_within, serve, visits};

fn read_into(dir: &Path, sources: &[&str]) -> Command {
    let mut command = rhumb();
    command.args(["crawl", "--json", "--dir"]).arg(dir).args(sources);
    command
}

fn warc(path: &Path) -> String {
    format!("warc:{}", path.display())
}

pub fn python() -> PathBuf {
    let venv = match std::env::var_os("RHUMB_TEST_VENV") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv"),
    };
    let path = venv.join("bin/python");
    assert!(path.exists(), "no {}: run `make test`, which installs it", path.display());
    path
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("compress");
    encoder.finish().expect("compress")
}

/// A record with these fields and this block.
fn record(kind: &str, uri: &str, date: &str, more: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:0>\r\nWARC-Target-URI: {uri}\r\nWARC-Date: {date}\r\n{more}Content-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn page(uri: &str, date: &str, title: &str) -> Vec<u8> {
    let body = format!("<title>{title}</title><a href=next>next</a>");
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    record("response", uri, date, "Content-Type: application/http; msgtype=response\r\n", block.as_bytes())
}

/// What a visit says, but for where it lies and what is wanted.
fn essence(v: &VisitRecord) -> String {
    let links: Vec<_> = v.links.iter().map(|l| (l.url.as_str(), &l.text, l.kind, l.rel)).collect();
    format!(
        "{} {} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {links:?}",
        v.entry.url,
        v.started,
        v.outcome.name(),
        v.status,
        v.title,
        v.media_type,
        v.digest,
        v.duplicate_of,
        v.robots.as_ref().map(|r| r.len()),
        v.address
    )
}

/// Our own archive, read back, says what the crawl said: pages, redirects, errors, duplicates, robots.txt; and nobody is asked anything.
#[test]
fn an_archive_read_back_is_the_crawl_that_made_it() {
    let config =
        WebConfig { duplicate_share: 0.2, redirect_share: 0.1, not_found_share: 0.1, ..WebConfig::plain(6, 30) };
    let server = serve(config);
    let (first, second) = (Place::new(), Place::new());
    let seeds: Vec<String> = (0..6).map(|h| server.web().url(h, 0)).collect();
    let mut more: Vec<&str> = seeds.iter().map(String::as_str).collect();
    more.extend(["--delay", "1ms"]);
    let fetched = json(&run(&mut crawl(&server, &first.dir, &more)), 0);
    let requests = server.log().len();
    let asked = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    asked.set_nonblocking(true).expect("nonblocking");
    let dns = asked.local_addr().expect("address").to_string();
    let mut command = read_into(&second.dir, &[&warc(&first.dir), "--dns", &dns, "--allow-net", "127.0.0.0/8"]);
    let read = json(&run(&mut command), 0);
    assert_eq!(server.log().len(), requests, "nothing is fetched");
    assert!(asked.recv_from(&mut [0; 512]).is_err(), "nothing is looked up");
    for figure in ["pages", "duplicates", "robots_fetched", "outcomes", "links", "bytes"] {
        assert_eq!(read[figure], fetched[figure], "{figure}");
    }
    assert_eq!(read["requests"], 0);
    let told =
        |dir: &Path| -> Vec<String> { visits(dir).iter().filter(|v| v.archived.is_some()).map(essence).collect() };
    let (before, after) = (told(&first.dir), told(&second.dir));
    assert!(before.len() > 100);
    assert_eq!(before, after);
    assert!(visits(&second.dir).iter().flat_map(|v| &v.links).all(|l| !l.wanted));
    // The copy stands by itself, and can be read again.
    json(&run(rhumb().args(["warc", "check", "--json"]).arg(&second.dir)), 0);
    let story = json(&run(rhumb().args(["explain", "--json"]).arg(&second.dir).arg(&seeds[0])), 0);
    assert_eq!(story["state"], "done");
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&second.dir)), 0);
    let third = Place::new();
    fs::remove_dir_all(first.dir.join("archive")).expect("remove");
    json(&run(&mut read_into(&third.dir, &[&warc(&second.dir)])), 0);
    assert_eq!(told(&third.dir), before);
    // Once more changes nothing, with and without the name of the source.
    for sources in [vec![warc(&second.dir)], vec![]] {
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let again = json(&run(&mut read_into(&third.dir, &sources)), 0);
        assert_eq!(again["pages"], read["pages"]);
    }
    assert_eq!(visits(&third.dir).len(), visits(&second.dir).len());
}

/// Everything that other writers do.
#[test]
fn odd_records_are_taken_as_they_are_meant() {
    let place = Place::new();
    let gz = gzip(b"<title>Packed</title>");
    let packed = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec(),
        format!("{:x}\r\n", gz.len()).into_bytes(),
        gz,
        b"\r\n0\r\n\r\n".to_vec(),
    ]
    .concat();
    let http = |text: &str| text.replace('\n', "\r\n").into_bytes();
    let date = "2015-06-07T08:09:10Z";
    let records: Vec<Vec<u8>> = vec![
        record("warcinfo", "", date, "", b"software: x\r\n"),
        page("<http://A.example:80/./wget?utm_source=x#y>", date, "Brackets"),
        record("request", "http://a.example/wget", date, "", b"GET / HTTP/1.1\r\n\r\n"),
        record("response", "http://a.example/packed", date, "WARC-IP-Address: 192.0.2.7\r\n", &packed),
        record(
            "response",
            "http://a.example/plain",
            date,
            "",
            &http("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: text/html\n\n<title>Not chunked</title>"),
        ),
        record("response", "http://a.example/moved", date, "", &http("HTTP/1.1 301 Moved\nLocation: /packed\n\n")),
        record(
            "response",
            "http://a.example/file",
            date,
            "",
            &http("HTTP/1.1 302 Found\nLocation: file:///etc/passwd\n\n"),
        ),
        record(
            "response",
            "http://a.example/robots.txt",
            date,
            "",
            &http("HTTP/1.1 200 OK\nContent-Type: text/plain\n\nUser-agent: *\nDisallow: /"),
        ),
        record(
            "response",
            "http://a.example/cut",
            date,
            "WARC-Truncated: length\r\n",
            &http("HTTP/1.1 200 OK\nContent-Type: text/html\n\n<title>Cut</title>"),
        ),
        record("response", "http://a.example/gone", date, "", &http("HTTP/1.0 410 Gone\n\n")),
        record(
            "resource",
            "http://a.example/resource",
            date,
            "Content-Type: text/html\r\n",
            b"<title>Resource</title>",
        ),
        record("resource", "file:///srv/doc.html", date, "Content-Type: text/html\r\n", b"<title>File</title>"),
        record("resource", "urn:screenshot:1", date, "Content-Type: image/png\r\n", b"png"),
        record(
            "response",
            "dns:a.example",
            date,
            "Content-Type: text/dns\r\n",
            b"20150607\na.example. 5 IN A 192.0.2.7",
        ),
        record("conversion", "http://a.example/packed", date, "Content-Type: text/plain\r\n", b"Packed"),
        record("metadata", "http://a.example/packed", date, "Content-Type: application/warc-fields\r\n", b"via: x\r\n"),
        // The newest of several captures is not the last in the file.
        page("http://a.example/twice", "2020-01-01T00:00:00Z", "New"),
        page("http://a.example/twice", "2010-01-01T00:00:00Z", "Old"),
        page("http://a.example/future", "2099-01-01T00:00:00Z", "Future"),
        page("http://a.example/undated", "whenever", "Undated"),
        // Trouble, one each.
        page("http:///", date, "No host"),
        record("response", "http://a.example/icy", date, "", &http("ICY 200 OK\n\nradio")),
        record(
            "revisit",
            "http://a.example/lost",
            date,
            "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n",
            &http("HTTP/1.1 200 OK\n\n"),
        ),
        page("http://a.example/last", date, "Last"),
    ];
    let plain = records.concat();
    let whole = gzip(&plain);
    let each: Vec<u8> = records.iter().flat_map(|r| gzip(r)).collect();
    let mut told = Vec::new();
    for (name, bytes) in [("plain.warc", &plain), ("each.warc.gz", &each), ("one-member.warc.gz", &whole)] {
        let path = place.dir.parent().expect("a parent").join(name);
        fs::write(&path, bytes).expect("write");
        let dir = path.with_extension("crawl");
        let output = run(&mut read_into(&dir, &[&warc(&path)]));
        let status = json(&output, 1);
        let lines = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(lines.lines().count(), 3, "{name}: {lines}");
        assert!(lines.lines().all(|l| l.contains(name) && l.contains("offset ")), "{lines}");
        let source = &status["sources"][0];
        assert_eq!(
            (&source["troubles"], &source["passed"], &source["done"]),
            (&3.into(), &6.into(), &true.into()),
            "{status}"
        );
        told.push(visits(&dir).iter().map(essence).collect::<Vec<_>>());
        let seen = visits(&dir);
        let of =
            |path: &str| seen.iter().find(|v| v.entry.url.path() == path).unwrap_or_else(|| panic!("{name}: {path}"));
        let titles: BTreeMap<&str, &str> = seen.iter().map(|v| (v.entry.url.path(), &*v.title)).collect();
        for (path, title) in [
            ("/wget", "Brackets"),
            ("/packed", "Packed"),
            ("/plain", "Not chunked"),
            ("/cut", "Cut"),
            ("/resource", "Resource"),
            ("/srv/doc.html", "File"),
            ("/future", "Future"),
            ("/last", "Last"),
        ] {
            assert_eq!(titles.get(path), Some(&title), "{name} {path}");
        }
        assert_eq!(of("/wget").entry.url.as_str(), "http://a.example/wget");
        assert_eq!(of("/packed").address.map(|a| a.to_string()).as_deref(), Some("192.0.2.7"));
        assert_eq!(of("/packed").started.to_string(), "2015-06-07T08:09:10.000Z");
        assert_eq!(of("/moved").links[0].url.as_str(), "http://a.example/packed");
        assert_eq!(of("/file").outcome.name(), "bad_redirect");
        assert!(!of("/robots.txt").purpose.is_page() && of("/robots.txt").robots.is_some());
        assert!(of("/cut").truncated && !of("/last").truncated);
        assert_eq!(seen.iter().filter(|v| v.entry.url.path() == "/twice").count(), 2);
        let exported = run(rhumb().args(["export", "--format", "jsonl"]).arg(&dir).arg("-"));
        let exported = String::from_utf8_lossy(&exported.stdout).into_owned();
        let row = |path: &str| {
            exported.lines().find(|l| l.contains(&format!("{path}\""))).unwrap_or_else(|| panic!("{exported}"))
        };
        assert!(row("/twice").contains("\"New\""), "{}", row("/twice"));
        assert!(row("/srv/doc.html").contains("\"File\"") && row("/packed").contains("\"Packed\""), "{exported}");
        assert!(!seen.iter().any(|v| v.retry));
        json(&run(rhumb().args(["warc", "check", "--json"]).arg(&dir)), 0);
        // Times in a file say nothing about now.
        let again = json(&run(&mut read_into(&dir, &[])), 1);
        assert_eq!(again["pages"], status["pages"]);
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
}

#[test]
fn damage_costs_what_it_hits() {
    let place = Place::new();
    let members: Vec<Vec<u8>> = (0..50)
        .map(|i| gzip(&page(&format!("http://a.example/{i}"), "2020-01-01T00:00:00Z", &format!("T{i}"))))
        .collect();
    let offsets: Vec<usize> = (0..50).map(|i| members[..i].iter().map(Vec::len).sum()).collect();
    let check = |name: &str, bytes: Vec<u8>, lost: &[usize], named: &[usize]| {
        let path = place.dir.parent().expect("a parent").join(name);
        fs::write(&path, bytes).expect("write");
        let dir = path.with_extension("crawl");
        let output = run_within(&mut read_into(&dir, &[&warc(&path)]), Duration::from_secs(30));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = json(&output, 1);
        let titles: Vec<String> = visits(&dir).iter().map(|v| v.title.to_string()).collect();
        let expected: Vec<String> = (0..50).filter(|i| !lost.contains(i)).map(|i| format!("T{i}")).collect();
        assert_eq!(titles, expected, "{name}: {told}");
        assert_eq!(told.lines().count(), named.len(), "{name}: {told}");
        for offset in named {
            assert!(told.contains(&format!("offset {offset}:")), "{name}: {offset} in {told}");
        }
        assert_eq!(status["sources"][0]["troubles"], named.len(), "{name}");
        // Going on names nothing twice, and loses nothing.
        json(&run(&mut read_into(&dir, &[])), 1);
        assert_eq!(visits(&dir).len(), 50 - lost.len());
    };
    let whole: Vec<u8> = members.concat();
    let mut flipped = whole.clone();
    flipped[offsets[20] + 30] ^= 0x55;
    check("flipped.warc.gz", flipped, &[20], &[offsets[20]]);
    let mut zeroed = whole.clone();
    zeroed[offsets[10] + 5..offsets[13] - 5].fill(0);
    check("zeroed.warc.gz", zeroed, &[10, 11, 12], &[offsets[10]]);
    let mut header = whole.clone();
    header[offsets[7]] = 0;
    check("no-magic.warc.gz", header, &[7], &[offsets[7]]);
    let rubbish = [&whole[..offsets[30]], b"rubbish between two records", &whole[offsets[30]..]].concat();
    check("rubbish.warc.gz", rubbish, &[], &[offsets[30]]);
    check("torn.warc.gz", whole[..whole.len() - 9].to_vec(), &[49], &[offsets[49]]);
}

#[test]
fn what_cannot_be_read_is_told_in_one_line() {
    let place = Place::new();
    let text = place.file("notes.warc", "these are notes\n");
    let empty = place.file("empty.warc.gz", "");
    for path in [&text, &empty] {
        let output = run(&mut read_into(&place.dir.join("x"), &[&warc(path)]));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{told}");
        let _ = fs::remove_dir_all(place.dir.join("x"));
    }
    let usage = |args: &[&str], what: &str| {
        let output = run(&mut read_into(&place.dir, args));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
        assert!(told.contains(what), "{told}");
    };
    usage(&["warc:/no/such.warc.gz"], "cannot be read");
    usage(&["warc:/no/such/*.warc.gz"], "cannot be read");
    usage(
        &[&format!("warc:{}", place.file("x.txt", "").parent().expect("a parent").join("nothing*").display())],
        "no archive",
    );
    usage(&[&warc(&text), "http://a.example/"], "not both");
    fs::write(&text, page("http://a.example/", "2020-01-01T00:00:00Z", "A")).expect("write");
    json(&run(&mut read_into(&place.dir, &[&warc(&text)])), 0);
    usage(&["http://a.example/"], "archives");
}

/// Several files by pattern; one that grows is read on.
#[test]
fn patterns_and_growth() {
    let place = Place::new();
    let top = place.dir.parent().expect("a parent").join("many");
    fs::create_dir(&top).expect("make a directory");
    let page = |i: usize| page(&format!("http://a.example/{i}"), "2020-01-01T00:00:00Z", &format!("T{i}"));
    for i in 0..3 {
        fs::write(top.join(format!("{i}.warc")), page(i)).expect("write");
    }
    fs::write(top.join("notes.txt"), "no archive").expect("write");
    let read = |seed: String| {
        json(&run(&mut read_into(&place.dir, &[&seed])), 0);
        visits(&place.dir).iter().map(|v| v.title.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(format!("warc:{}/1.*", top.display())), "T1");
    assert_eq!(read(format!("warc:{}", top.display())), "T1 T0 T2");
    let mut grown = fs::OpenOptions::new().append(true).open(top.join("0.warc")).expect("open");
    grown.write_all(&page(7)).expect("write");
    assert_eq!(read(format!("warc:{}/*.warc", top.display())), "T1 T0 T2 T7");
    assert_eq!(read(format!("warc:{}/*.warc", top.display())), "T1 T0 T2 T7");
    // What was read and is no longer there is told, and nothing is lost.
    fs::write(top.join("2.warc"), "").expect("write");
    let output = run(&mut read_into(&place.dir, &[&warc(&top)]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.lines().count()), (Some(3), 1), "{told}");
    assert!(told.contains("2.warc"), "{told}");
}

/// warcio's own recorder, and what its tools make of the same file.
#[test]
fn an_archive_of_warcio() {
    let place = Place::new();
    let path = place.dir.parent().expect("a parent").join("recorded.warc.gz");
    let script = r#"
import sys, io
from warcio.warcwriter import WARCWriter
from warcio.statusandheaders import StatusAndHeaders
with open(sys.argv[1], 'wb') as out:
    w = WARCWriter(out, gzip=True)
    w.write_record(w.create_warcinfo_record('recorded.warc.gz', {'software': 'warcio'}))
    def add(url, status, headers, body, kind='response', **kw):
        h = StatusAndHeaders(status, headers, protocol='HTTP/1.1')
        r = w.create_warc_record(url, kind, payload=io.BytesIO(body), http_headers=h, warc_headers_dict={'WARC-Date': '2019-02-03T04:05:06Z'})
        w.write_record(r)
        return r
    html = [('Content-Type', 'text/html')]
    first = add('http://w.example/', '200 OK', html, b'<title>Home</title><a href=/b>b</a>' + b'the same ' * 1000)
    add('http://w.example/b', '200 OK', html + [('Transfer-Encoding', 'chunked')], b'10\r\n<title>B</title>\r\n0\r\n\r\n')
    add('http://w.example/r', '302 Found', [('Location', '/b')], b'')
    h = StatusAndHeaders('200 OK', html, protocol='HTTP/1.1')
    w.write_record(w.create_revisit_record('http://w.example/same', first.rec_headers.get_header('WARC-Payload-Digest'), 'http://w.example/', '2019-02-03T04:05:06Z', http_headers=h))
"#;
    let made = Command::new(python()).args(["-c", script]).arg(&path).output().expect("start python");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let status = json(&run(&mut read_into(&place.dir, &[&warc(&path)])), 0);
    assert_eq!((&status["pages"], &status["duplicates"]), (&3.into(), &1.into()), "{status}");
    let titles: Vec<(String, String, usize)> = visits(&place.dir)
        .iter()
        .map(|v| (v.entry.url.path().to_string(), v.title.to_string(), v.links.len()))
        .collect();
    let expected = [("/", "Home", 1), ("/b", "B", 0), ("/r", "", 1), ("/same", "Home", 1)];
    assert_eq!(titles, expected.map(|(p, t, l)| (p.to_string(), t.to_string(), l)));
}

/// wget's, if it is there: it puts the address in brackets and may leave bodies chunked.
#[test]
fn an_archive_of_wget() {
    if Command::new("wget").arg("--version").output().is_err() {
        return;
    }
    let config = WebConfig { naming: Naming::Loopback, ..WebConfig::plain(1, 1) };
    let server = ServerConfig { all_loopback: true, ..ServerConfig::default() };
    let server = Server::start(Web::new(config).expect("web"), server).expect("server");
    let web = server.web();
    web.set_document(0, "/", Reply::new(200, "text/html", "<title>Home</title><a href=/b>b</a><a href=/r>r</a>"));
    web.set_document(0, "/b", Reply::new(200, "text/html", "<title>B</title>"));
    web.set_document(0, "/r", Reply::redirect(302, "/b"));
    let place = Place::new();
    let top = place.dir.parent().expect("a parent").to_path_buf();
    let seed = format!("{}/", web.origin(0));
    let output = Command::new("wget")
        .args(["-q", "-r", "-l", "2", "--warc-file", "got", "-P", "files", &seed])
        .current_dir(&top)
        .output()
        .expect("run wget");
    let path = top.join("got.warc.gz");
    assert!(path.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = json(&run(&mut read_into(&place.dir, &[&warc(&path)])), 0);
    let titles: BTreeMap<String, String> =
        visits(&place.dir).iter().map(|v| (v.entry.url.path().to_string(), v.title.to_string())).collect();
    assert_eq!(titles.get("/").map(String::as_str), Some("Home"), "{status} {titles:?}");
    assert_eq!(titles.get("/b").map(String::as_str), Some("B"), "{titles:?}");
    assert!(titles.contains_key("/r"), "{titles:?}");
}

/// Killed at any instant and started again, it reads each record once.
#[test]
fn a_reader_that_is_killed_reads_everything_once() {
    let place = Place::new();
    let top = place.dir.parent().expect("a parent").to_path_buf();
    let pages = 4_000;
    let mut expected = Vec::new();
    for (file, shared) in [(0, false), (1, true), (2, false)] {
        let mut bytes = Vec::new();
        for i in 0..pages {
            let uri = format!("http://a.example/{file}/{i}");
            let filler = format!("T{file}-{i}");
            expected.push(uri.clone());
            let record = page(&uri, "2020-01-01T00:00:00Z", &filler);
            if shared { bytes.extend(record) } else { bytes.extend(gzip(&record)) }
        }
        let name = format!("{file}.warc.gz");
        fs::write(top.join(name), if shared { gzip(&bytes) } else { bytes }).expect("write");
    }
    let seed = format!("warc:{}/*.warc.gz", top.display());
    let mut kills = 0;
    let done = loop {
        let mut child = read_into(&place.dir, &[&seed]).spawn().expect("start the program");
        std::thread::sleep(Duration::from_millis(30 + (kills * 37) % 170));
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        kills += 1;
        if kills == 25 {
            break read_into(&place.dir, &[&seed]).status().expect("run");
        }
    };
    assert_eq!(done.code(), Some(0));
    assert!(kills > 3, "it was killed {kills} times");
    let urls: Vec<String> = visits(&place.dir).iter().map(|v| v.entry.url.to_string()).collect();
    assert_eq!(urls.len(), expected.len(), "after {kills} kills");
    assert_eq!(urls, expected, "each once, in order");
    json(&run(rhumb().args(["warc", "check", "--json"]).arg(&place.dir)), 0);
    let _: Output = run(rhumb().args(["status", "--json"]).arg(&place.dir));
}
