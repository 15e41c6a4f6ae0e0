//! What people and programs are told about a crawl, while it runs and after.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rhumb_core::Timestamp;
use rhumb_core::crawl::Crawl;
use rhumb_core::frontier::REASONS;
use rhumb_core::outcome::Outcome;
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

/// Name of the socket in a crawl directory.
pub const SOCKET: &str = "rhumb.sock";

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
            links: totals.links,
            retries: totals.retries,
            in_flight: figures.in_flight,
            hosts_ready: figures.hosts_ready,
            hosts_waiting: figures.hosts_waiting,
            back_queues: figures.back_queues,
            pages_per_second: 0.0,
            peak_rss_bytes: 0,
            dns_idle_share: 0.0,
        }
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

/// Answers on the socket of a running crawl: whoever connects is sent the status as one JSON document.
pub(crate) struct Answering {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Answering {
    pub fn start(root: &Path, status: Shared) -> io::Result<Answering> {
        let path = root.join(SOCKET);
        let _ = std::fs::remove_file(&path);
        let listener = at_socket(root, |short| UnixListener::bind(short))?;
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let status = status.lock().expect("nobody panics while copying the status").clone();
                if let Ok(json) = serde_json::to_vec(&status) {
                    let _ = stream.write_all(&json).await;
                }
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
pub fn ask(root: &Path) -> Option<serde_json::Value> {
    let stream = at_socket(root, |short| std::os::unix::net::UnixStream::connect(short)).ok()?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).ok()?;
    serde_json::from_reader(stream).ok()
}
