//! What all tests need: a synthetic web, a crawl directory, and the program itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rhumb_core::record::Record;
use rhumb_core::visit::VisitRecord;
use rhumb_sim::{Server, ServerConfig, Web, WebConfig};
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position};
use serde_json::Value;

/// A temporary directory and the crawl directory inside it.
pub struct Place {
    _temporary: tempfile::TempDir,
    pub dir: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let temporary = tempfile::tempdir().expect("temporary directory");
        let dir = temporary.path().join("crawl");
        Place { _temporary: temporary, dir }
    }

    /// A file beside the crawl directory.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self._temporary.path().join(name);
        std::fs::write(&path, text).expect("write a file");
        path
    }
}

/// Serves `config` on free loopback ports, with DNS.
pub fn serve(config: WebConfig) -> Server {
    let any = "127.0.0.1:0".parse().expect("address");
    let all_loopback = config.addresses > 1;
    let server = ServerConfig { listen: any, dns: Some(any), all_loopback, ..ServerConfig::default() };
    Server::start(Web::new(config).expect("web"), server).expect("server")
}

/// The program, not started yet.
pub fn rhumb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("RHUMB_LOG");
    command
}

/// `rhumb crawl` of a served web into `dir`, as JSON.
/// It asks for no sitemaps, so that tests know each request: `sitemaps.rs` is about these.
pub fn crawl(server: &Server, dir: &Path, more: &[&str]) -> Command {
    crawl_with_sitemaps(server, dir, &[&["--no-sitemaps"], more].concat())
}

/// The same as a user would have it.
pub fn crawl_with_sitemaps(server: &Server, dir: &Path, more: &[&str]) -> Command {
    let mut command = rhumb();
    let dns = server.dns_addr().expect("the server answers DNS").to_string();
    command.args(["crawl", "--json", "--dir"]).arg(dir).args(["--dns", &dns, "--allow-net", "127.0.0.0/8"]).args(more);
    command
}

/// Runs to the end, within a bound.
pub fn run(command: &mut Command) -> Output {
    run_within(command, Duration::from_secs(120))
}

/// Runs to the end or fails the test.
pub fn run_within(command: &mut Command, bound: Duration) -> Output {
    let mut child = command.spawn().expect("start the program");
    let (stdout, stderr) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let out = read_all(stdout);
    let err = read_all(stderr);
    let deadline = Instant::now() + bound;
    let status = loop {
        match child.try_wait().expect("wait") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                panic!("the program did not end within {bound:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Output { status, stdout: out.join().expect("stdout"), stderr: err.join().expect("stderr") }
}

fn read_all(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// The JSON document on stdout of a run that must have ended with `code`.
pub fn json(output: &Output, code: i32) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "stderr: {stderr}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("not JSON ({e}): {}", String::from_utf8_lossy(&output.stdout)))
}

/// The finished visits of a crawl, in order.
pub fn visits(dir: &Path) -> Vec<VisitRecord> {
    let visit = |record| if let Record::Visited(v) = record { Some(*v) } else { None };
    records(dir).into_iter().filter_map(visit).collect()
}

/// The whole log of a crawl.
pub fn records(dir: &Path) -> Vec<Record> {
    let mut reader = LogReader::open(RealDisk::new(dir), Position::START).expect("open the log");
    let mut records = Vec::new();
    while let Some((kind, payload)) = reader.next().expect("read the log") {
        records.push(Record::take(kind, payload).expect("a record"));
    }
    records
}

/// How each page of a crawl ended for good, visited or not: its URL and outcome, in the order of the log.
pub fn ends(dir: &Path) -> Vec<(String, &'static str)> {
    let end = |record: Record| match record {
        Record::Visited(v) if v.purpose.is_page() && !v.retry => Some((v.entry.url.to_string(), v.outcome.name())),
        Record::Dropped { entry, outcome, .. } => Some((entry.url.to_string(), outcome.name())),
        _ => None,
    };
    records(dir).into_iter().filter_map(end).collect()
}
