//! The archive as other people's tools see it: `warcio check` passes what we write, `cdxj-indexer` prints our index.
//!
//! The tools are looked for in `$RHUMB_TEST_VENV/bin`, else in `.venv/bin` of the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rhumb_store::Timestamp;
use rhumb_store::warc::http::synth_head;
use rhumb_store::warc::{
    Capture, Digest, Metadata, Profile, RecordIds, RecordWriter, Response, Revisit, Truncated, cdxj, check, ls,
    whole_prefix,
};

fn tool(name: &str) -> PathBuf {
    let venv = match std::env::var_os("RHUMB_TEST_VENV") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv"),
    };
    let path = venv.join("bin").join(name);
    assert!(path.exists(), "{name} not found at {}: run `make test`, which installs them", path.display());
    path
}

fn run(name: &str, args: &[&str], file: &Path) -> Output {
    Command::new(tool(name)).args(args).arg(file).output().expect("start the tool")
}

/// Both judges on one file: warcio's check and ours.
fn check_passes(file: &Path, records: u64) {
    let output = run("warcio", &["check", "-v"], file);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains("no digest to check"), "{told}");
    let report = check(std::fs::File::open(file).expect("open"));
    assert_eq!((report.records, &report.errors[..]), (records, &[][..]));
}

/// Our index of a file is `cdxj-indexer`'s, in file order and sorted.
fn index_agrees(file: &Path) -> Vec<String> {
    let name = file.file_name().and_then(|n| n.to_str()).expect("a name");
    let mut ours = Vec::new();
    cdxj::index(std::fs::File::open(file).expect("open"), name, |entry| ours.push(entry.line())).expect("index");
    for args in [&[][..], &["-s"][..]] {
        let output = run("cdxj-indexer", args, file);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = String::from_utf8(output.stdout).expect("ASCII");
        if !args.is_empty() {
            cdxj::sort(&mut ours);
        }
        for (ours, theirs) in ours.iter().zip(theirs.lines()) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.lines().count());
    }
    ours
}

struct Archive {
    writer: RecordWriter,
    ids: RecordIds,
    bytes: Vec<u8>,
    records: u64,
    date: Timestamp,
}

impl Archive {
    fn new() -> Self {
        let mut archive = Archive {
            writer: RecordWriter::default(),
            ids: RecordIds::new(7, 0),
            bytes: Vec::new(),
            records: 1,
            date: Timestamp(1_769_903_999_123),
        };
        let fields = [("software", "rhumb/0.1"), ("format", "WARC File Format 1.1")];
        let id = archive.ids.take();
        archive.writer.warcinfo(&mut archive.bytes, id, archive.date, "x.warc.gz", &fields).expect("warcinfo");
        archive
    }

    /// Response, request and metadata of one visit.
    fn visit(&mut self, uri: &str, head: &[u8], body: &[u8], truncated: Option<Truncated>) -> Digest {
        self.date = self.date.plus_ms(1_234);
        let capture = Capture { uri, date: self.date, ip: "192.0.2.7".parse().ok(), protocols: &["h2", "tls/1.3"] };
        let (request, response, metadata) = (self.ids.take(), self.ids.take(), self.ids.take());
        let out = &mut self.bytes;
        let answer = Response { head, body, digest: None, truncated, identified_type: Some("text/html") };
        let (_, digest) = self.writer.response(out, response, &capture, &answer).expect("response");
        let asked = b"GET /x HTTP/1.1\r\nHost: example.com\r\n\r\n";
        self.writer.request(out, request, &capture, Some(response), asked, b"").expect("request");
        let known = Metadata {
            via: Some("http://example.com/from\r\nhere"),
            depth: Some(3),
            fetch_ms: Some(17),
            outlinks: &["http://a.example/", "http://b.example/ü"],
            extra: &[("charset", "utf-8")],
        };
        self.writer.metadata(out, metadata, &capture, Some(response), &known).expect("metadata");
        self.records += 3;
        digest
    }

    fn revisit(&mut self, uri: &str, head: &[u8], profile: Profile) {
        let capture = Capture { uri, date: self.date, ip: "2001:db8::1".parse().ok(), protocols: &[] };
        let refers_to = Some(self.ids.take());
        let revisit = Revisit { head, profile, refers_to_uri: uri, refers_to_date: self.date, refers_to };
        let id = self.ids.take();
        self.writer.revisit(&mut self.bytes, id, &capture, &revisit).expect("revisit");
        self.records += 1;
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";

#[test]
fn warc_we_write_passes_and_indexes() {
    let mut archive = Archive::new();
    let digest = archive.visit("http://example.com/", OK, b"<p>hello</p>", None);
    archive.visit("http://example.com/empty", b"HTTP/1.1 204 No Content\r\nContent-Length: 12\r\n\r\n", b"", None);
    archive.visit("http://example.com/empty-ok", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", None);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n";
    archive.visit("http://example.com/chunked", chunked, b"no chunks here", None);
    archive.visit("http://example.com/like-chunks", chunked, b"5\r\nhello\r\n0\r\n\r\n", None);
    let coded = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    archive.visit("http://example.com/gzip", coded, &gzip(b"<p>hello</p>"), None);
    archive.visit("http://example.com/gzip-not", coded, b"this is not gzip", None);
    let long = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\nContent-Type: application/pdf\r\n\r\n";
    archive.visit("http://example.com/cut", long, &vec![b'x'; 1 << 20], Some(Truncated::Length));
    archive.visit("http://example.com/late", long, b"abc", Some(Truncated::Time));
    archive.visit("http://example.com/gone", long, b"abc", Some(Truncated::Disconnect));
    archive.visit("http://example.com/404", b"HTTP/1.0 404 Not Found\n\n", b"no", None);
    archive.visit("http://example.com/odd", b"ICY 200 OK\r\nContent-Type: ;\r\n\r\n", b"\n\nblank\r\n\r\n", None);
    archive.visit("http://example.com/no-type", b"HTTP/1.1 200\r\nContent-Type:\r\n\r\n", b"\0\x01\xff", None);
    let binary =
        b"HTTP/1.1 200 \xff\xfe\r\nX-Bin: \x01\x02\xc3\x28\r\n \r\nContent-Type: a/b\xe9;c\r\n\x0b\r\nX: \0\r\n\r\n";
    archive.visit("http://example.com/binary", binary, b"\x1f\x8b\x08\0WARC/1.1\r\n\r\n", None);
    let h2 = synth_head(418, [("content-type", &b"text/html"[..]), ("x", b"\r\nContent-Length: 9")]);
    archive.visit("https://example.com/h2", &h2, b"tea", None);
    archive.visit("http://example.com/a\r\nWARC-Type: evil\r\n\r\nb\u{85}c", OK, b"x", None);
    archive.revisit("http://example.com/", OK, Profile::IdenticalPayload(digest));
    let unchanged = b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
    archive.revisit("http://example.com/304", unchanged, Profile::NotModified(None));
    archive.revisit("http://example.com/304", unchanged, Profile::NotModified(Some(digest)));

    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("x.warc.gz");
    std::fs::write(&file, &archive.bytes).expect("write");
    check_passes(&file, archive.records);
    let lines = index_agrees(&file);
    assert_eq!(lines.len(), 19);
    assert!(lines.iter().any(|line| line.contains("a%0D%0AWARC-Type:%20evil%0D%0A%0D%0Ab%C2%85c")), "{lines:#?}");

    let mut rows = Vec::new();
    ls(&archive.bytes[..], |row| rows.push(row)).expect("list");
    assert_eq!(rows.iter().map(|row| row.length).sum::<u64>(), archive.bytes.len() as u64);
    assert_eq!(whole_prefix(&archive.bytes[..]).expect("no I/O"), archive.bytes.len() as u64);
}

/// With block digests too, and at another level.
#[test]
fn warc_block_digests_pass() {
    let mut archive = Archive::new();
    archive.writer = RecordWriter::new(6).block_digests(true);
    archive.visit("http://example.com/", OK, b"<p>hello</p>", None);
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("x.warc.gz");
    std::fs::write(&file, &archive.bytes).expect("write");
    check_passes(&file, archive.records);
}

/// Keys of URLs nobody would write by hand, from the pieces that rules are about.
#[test]
#[rustfmt::skip]
fn warc_keys_agree_on_awkward_urls() {
    let id = "0123456789abcdef0123456789ABCDEF";
    let schemes = [
        "http://", "https://", "HTTP://", "http://http://", "http:////", "ftp://", "", "http:", "dns:", "warcinfo:",
    ];
    let hosts = [
        "example.com", "www.Example.com", "www12.a.example", "wwwx.example.com", "example.com:80", "example.com:443",
        "example.com:0", "example.com:", "example.com:8080", "u:p@example.com", "bücher.example", "BÜCHER.example",
        "xn--bcher-kva.example", "пример.испытание", "straße.de", "a..b", ".a.b.", "127.0.0.1", "127.1", "0177.0.0.1",
        "2130706433", "[::1]", "[2001:db8::1]:8080", "ex%41mple.com", "a_b.example", "", "example.com:x", "a%20b.com",
    ];
    let paths = [
        "", "/", "/A/b/", "//", "/a//b", "/./a/../b", "/../a", "/a%2fb", "/%7Euser", "/a%2541", "/a b", "/ü", "/%C3%BC",
        "/%", "/%zz", "/(S(abcdefghijklmnopqrstuvwx))/p.aspx", "/x/(abcdefghijklmnopqrstuvwx)/p.ASPX/y",
        "/(abcdefghijklmnopqrstuvwx)/.aspx", "/a;jsessionid=1", "/a%3Fb", "/a%23b", "/a\"<>\\^`{|}", "/a/b/..",
    ];
    let sid = format!("?sid={id}&x");
    let php = format!("?a&PHPSESSID={id}");
    let jsession = format!("?b=1&jsessionid={id}&jsessionid={id}&a=2");
    let queries = [
        "", "?", "?b=2&a=1", "?A=B", "?a&a=&a=1&A", "?&&", "?a=b=c", "?a%26b=1", "?x=%C3%BC", "?x=ü y", "?=", "?a",
        "?cfid=1&cftoken=2", "?z=1&CFID=1&CFTOKEN=2&y", "?ASPSESSIONIDabcdefgh=abcdefghijklmnopqrstuvwx&b=1", &sid,
        &php, &jsession, "?a?b", "?sid=short",
    ];
    let fragments = ["", "#x", "#"];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut pick = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let mut text = String::new();
    for _ in 0..4_000 {
        let url = [
            schemes[pick(schemes.len())],
            hosts[pick(hosts.len())],
            paths[pick(paths.len())],
            queries[pick(queries.len())],
            fragments[pick(fragments.len())],
        ]
        .concat();
        text.push_str(&format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-02-03T04:05:06Z\r\n\
             Content-Type: text/plain\r\nContent-Length: 4\r\n\r\ntext\r\n\r\n",
        ));
    }
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("urls.warc");
    std::fs::write(&file, text).expect("write");
    index_agrees(&file);
}

/// A plain file in other people's manners.
#[test]
fn warc_files_of_others_index_alike() {
    let http = "HTTP/1.1 301 Moved\nContent-Type: text/html;x\nX: y\n\nbody";
    let record = |extra: &str, kind: &str, block: &str| {
        let length = block.len();
        format!(
            "WARC/1.0\nwarc-type: {kind}\nwarc-date: 2020-02-03T04:05:06Z\n{extra}content-length: {length}\n\n{block}\n\n"
        )
    };
    let uri = "WARC-Target-URI: <http://example.com/a b>\n";
    let text = [
        record("content-type: application/warc-fields\n", "warcinfo", "software: x\n"),
        record(uri, "response", http),
        record(uri, "response", "HTTP/1.1 200 OK\nFolded: a\n b\n\tc\nContent-Type:\n text/x\n\n"),
        record(uri, "response", ""),
        record(uri, "revisit", ""),
        record(uri, "revisit", http),
        record("WARC-Target-URI: dns:example.com\nContent-Type: text/dns\n", "response", "20200203\nexample.com. A\n"),
        record("WARC-Target-URI: http://e.com/\nContent-Type: image/png\n", "resource", "png"),
        record("WARC-Target-URI: http://e.com/\nContent-Type: text/json; x\n", "metadata", "{}"),
        record("Content-Type: text/json\n", "metadata", "{}"),
        record("WARC-Target-URI: http://e.com/\nContent-Type: application/warc-fields\n", "metadata", "a: b\n"),
        record("WARC-Target-URI: http://e.com/\n", "conversion", "text"),
        record(uri, "response", "\nHTTP/1.1 200 OK\n\nfirst line is blank"),
    ]
    .concat();
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("others.warc");
    std::fs::write(&file, text.trim_end()).expect("write");
    assert_eq!(index_agrees(&file).len(), 10);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
    let length = compressor.gzip_compress(text, &mut out).expect("bound is kept");
    out.truncate(length);
    out
}
