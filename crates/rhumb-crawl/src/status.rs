//! What people and programs are told about a crawl, while it runs and after.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rhumb_core::Timestamp;
use rhumb_core::crawl::Crawl;
use rhumb_core::frontier::REASONS;
use rhumb_core::outcome::Outcome;
use rhumb_core::reading::Reading;
use rhumb_core::seen::Mirror;
use rhumb_core::traps::Rule;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::engine::Event;

/// Name of the socket in a crawl directory.
pub const SOCKET: &str = "rhumb.sock";

/// A longer request is none of ours.
const REQUEST_BYTES_MAX: u64 = 64;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(1);

/// The figures of a crawl.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// "running", "finished", "limit", "interrupted", "stopped".
    pub state: &'static str,
    /// Pages fetched (2xx).
    pub pages: u64,
    /// URLs known.
    pub urls_seen: u64,
    /// URLs waiting in the frontier.
    pub urls_waiting: u64,
    /// URLs that learned rules hold back.
    pub urls_aside: u64,
    /// URLs of hosts that are left alone for now; they are not among those waiting.
    pub urls_held: u64,
    /// Hosts that are left alone for now.
    pub hosts_held: u64,
    /// The same by reason.
    pub held: BTreeMap<&'static str, Held>,
    /// Hosts known.
    pub hosts: u64,
    /// Body bytes on the wire.
    pub bytes: u64,
    /// How URLs ended, by kind.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Time spent crawling, all processes together.
    pub seconds: f64,
    /// Processor time, all processes together.
    pub cpu_seconds: f64,
    /// Requests made, robots.txt and failures included.
    pub requests: u64,
    /// robots.txt files asked for.
    pub robots_fetched: u64,
    /// Pages whose body was known already.
    pub duplicates: u64,
    /// Pages whose text is that of an older page, or nearly so.
    pub near_duplicates: u64,
    /// Hosts that have the pages of others.
    pub mirrors: Vec<MirrorReport>,
    /// Links found on pages.
    pub links: u64,
    /// Failed visits that were tried again.
    pub retries: u64,
    /// Visits under way.
    pub in_flight: u64,
    /// Hosts that may be contacted now.
    pub hosts_ready: u64,
    /// Hosts whose pause is not over.
    pub hosts_waiting: u64,
    /// Back queues in use.
    pub back_queues: u64,
    /// Pages a second, over the last few seconds.
    pub pages_per_second: f64,
    /// Peak memory of the process.
    pub peak_rss_bytes: u64,
    /// Share of the fetching that this process could have done but for names that were being looked up.
    pub dns_idle_share: f64,
    /// How far each source was read, if the crawl reads what others fetched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
}

/// How far a source was read that others filled.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SourceStatus {
    /// Its name.
    pub source: String,
    /// Read up to about here.
    pub offset: u64,
    /// Its length, if it is done or being read.
    pub bytes: u64,
    /// Whether the end was reached.
    pub done: bool,
    /// Records that are no pages.
    pub passed: u64,
    /// Records that cannot be used.
    pub troubles: u64,
}

/// A host that has the pages of another at the same paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MirrorReport {
    /// The mirror.
    pub host: String,
    /// Whose pages it has.
    pub of: String,
    /// Pages that both have, and that say the same.
    pub pages_same: u64,
    /// Paths that both have; an estimate if there are many.
    pub pages_compared: u64,
    /// The share of the former in the latter.
    pub share: f32,
}

/// A mirror has so many pages of another host at least.
const MIRROR_PAGES_MIN: u64 = 10;
/// The status names so many.
const MIRRORS_MAX: usize = 100;

impl MirrorReport {
    fn all(crawl: &Crawl) -> Vec<MirrorReport> {
        let report = |m: Mirror| MirrorReport {
            host: m.host,
            of: m.of,
            pages_same: m.pages_same,
            pages_compared: m.pages_compared,
            share: m.share,
        };
        crawl.mirrors.report(MIRROR_PAGES_MIN).into_iter().take(MIRRORS_MAX).map(report).collect()
    }
}

/// What is held for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Hosts.
    pub hosts: u64,
    /// Their URLs.
    pub urls: u64,
}

impl Status {
    /// The figures of a crawl's state.
    pub fn of(crawl: &Crawl, now: Timestamp) -> Status {
        let figures = crawl.frontier.figures(now);
        let totals = &crawl.totals;
        let name = |(&code, &count): (&u8, &u64)| Outcome::from_code(code).map(|o| (o.name(), count));
        let held = REASONS.iter().zip(crawl.frontier.held()).filter(|(_, count)| count.hosts > 0);
        let held = held.map(|(reason, count)| (reason.name(), Held { hosts: count.hosts, urls: count.urls }));
        Status {
            state: "stopped",
            pages: totals.pages,
            urls_seen: crawl.sieve.len(),
            urls_waiting: figures.urls_waiting + figures.in_flight_pages,
            urls_aside: figures.urls_aside,
            urls_held: figures.urls_held,
            hosts_held: figures.hosts_held,
            held: held.collect(),
            hosts: figures.hosts,
            bytes: totals.bytes,
            outcomes: totals.outcomes.iter().filter_map(name).collect(),
            seconds: totals.ran_ms as f64 / 1000.0,
            cpu_seconds: totals.cpu_ms as f64 / 1000.0,
            requests: totals.visits,
            robots_fetched: totals.robots,
            duplicates: totals.duplicates,
            near_duplicates: totals.near_duplicates,
            mirrors: MirrorReport::all(crawl),
            links: totals.links,
            retries: totals.retries,
            in_flight: figures.in_flight,
            hosts_ready: figures.hosts_ready,
            hosts_waiting: figures.hosts_waiting,
            back_queues: figures.back_queues,
            pages_per_second: 0.0,
            peak_rss_bytes: 0,
            dns_idle_share: 0.0,
            sources: crawl.readings.list.iter().map(SourceStatus::of).collect(),
        }
    }
}

impl SourceStatus {
    fn of(reading: &Reading) -> SourceStatus {
        let done = reading.bytes > 0;
        SourceStatus {
            source: reading.source.to_string(),
            offset: if done { reading.bytes } else { reading.offset },
            bytes: reading.bytes,
            done,
            passed: reading.passed,
            troubles: reading.troubles,
        }
    }
}

/// A rule that was learned about a site's URLs, for people and programs.
#[derive(Clone, Debug, Serialize)]
pub struct RuleReport {
    /// Counted from 1, in the order they were learned.
    pub number: u32,
    /// "active", "retracted" (exploring showed that it is wrong) or "undone" (by the user).
    pub state: &'static str,
    /// What kind of rule it is.
    pub kind: &'static str,
    /// The rule as a sentence.
    pub rule: String,
    /// When it was learned.
    pub learned: String,
    /// Pages that bore it out.
    pub pages: u32,
    /// Pages that contradicted it.
    pub against: u32,
    /// Some of the pages that bore it out.
    pub samples: Vec<String>,
    /// URLs held back: requests saved.
    pub saved: u64,
    /// URLs fetched to see whether it still holds.
    pub explored: u64,
    /// Of these, pages that had something new.
    pub surprises: u64,
}

impl RuleReport {
    /// All rules of a crawl.
    pub fn all(crawl: &Crawl) -> Vec<RuleReport> {
        let report = |rule: &Rule| RuleReport {
            number: rule.number,
            state: rule.state.name(),
            kind: rule.pattern.kind.name(),
            rule: rule.pattern.sentence(),
            learned: rule.learned.to_string(),
            pages: rule.evidence.pages,
            against: rule.evidence.against,
            samples: rule.evidence.samples.iter().map(|s| s.to_string()).collect(),
            saved: rule.held,
            explored: rule.explored,
            surprises: rule.surprises,
        };
        crawl.frontier.traps.rules().iter().map(report).collect()
    }
}

/// User and system time of this process, in milliseconds.
pub fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in field 2 may hold spaces; fields are counted behind its bracket. Linux counts in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) * 10
}

/// The largest resident size this process ever had.
pub fn peak_rss_bytes() -> u64 {
    memory_line("VmHWM:")
}

/// The resident size of this process now.
pub fn rss_bytes() -> u64 {
    memory_line("VmRSS:")
}

fn memory_line(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// A status that the engine renews and others read.
pub type Shared = Arc<Mutex<Status>>;

/// What can be asked of a running crawl, in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The figures.
    Status,
    /// The rules it has learned.
    Traps,
    /// That the rule of this number be undone; answered with the rules.
    Undo(u32),
}

impl Request {
    fn line(self) -> String {
        match self {
            Request::Status => "status\n".to_string(),
            Request::Traps => "traps\n".to_string(),
            Request::Undo(number) => format!("undo {number}\n"),
        }
    }

    fn read(line: &str) -> Option<Request> {
        match line.trim_end() {
            // Whoever only connects wants to know how far it is.
            "" | "status" => Some(Request::Status),
            "traps" => Some(Request::Traps),
            other => other.strip_prefix("undo ").and_then(|n| n.parse().ok()).map(Request::Undo),
        }
    }
}

/// Answers on the socket of a running crawl: whoever connects and sends a [`Request`] gets one JSON document.
pub(crate) struct Answering {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Answering {
    pub fn start(root: &Path, status: Shared, events: UnboundedSender<Event>) -> io::Result<Answering> {
        let path = root.join(SOCKET);
        let _ = std::fs::remove_file(&path);
        let listener = at_socket(root, |short| UnixListener::bind(short))?;
        // It takes orders, from the user alone.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut line = String::new();
                let mut reader = BufReader::new((&mut stream).take(REQUEST_BYTES_MAX));
                let _ = tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await;
                drop(reader);
                let json = match Request::read(&line) {
                    Some(Request::Status) => {
                        serde_json::to_vec(&*status.lock().expect("nobody panics while copying the status")).ok()
                    }
                    Some(request) => {
                        let (answer, answered) = oneshot::channel();
                        let _ = events.send(Event::Asked(request, answer));
                        answered.await.ok()
                    }
                    None => None,
                };
                let _ = stream.write_all(&json.unwrap_or_default()).await;
            }
        });
        Ok(Answering { path, task })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Socket addresses hold about a hundred bytes; through the open directory any path is short enough.
fn at_socket<T>(root: &Path, f: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let directory = std::fs::File::open(root)?;
    f(Path::new(&format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd())))
}

/// Asks the process that runs the crawl in `root`. `None` if there is none.
pub fn ask(root: &Path, request: Request) -> Option<serde_json::Value> {
    let mut stream = at_socket(root, |short| std::os::unix::net::UnixStream::connect(short)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.line().as_bytes()).ok()?;
    serde_json::from_reader(stream).ok()
}
