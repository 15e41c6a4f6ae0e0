//! The server's memory: every request and every connection, with times.
//!
//! Tests judge a crawler's politeness from here. Times are microseconds since the server started (monotonic) and, for
//! the eye and for comparison across processes, milliseconds since 1970. A request starts when its head has been read
//! whole and ends just before the last byte of the answer is handed to the kernel: the client cannot have it earlier, but
//! may well have it before a crowded machine lets the server look at its clock again. A connection opens when it is
//! accepted and closes when the server has seen the end of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::unix_ms;

/// What to remember, and where.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Keep entries in memory, for [`Server::log`](super::Server::log).
    pub memory: bool,
    /// Append entries to this file, one JSON object a line.
    pub file: Option<PathBuf>,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { memory: true, file: None }
    }
}

impl LogConfig {
    /// Remember nothing: for measuring.
    pub fn off() -> Self {
        LogConfig { memory: false, file: None }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEntry {
    /// When its head had been read, in microseconds since the server started.
    pub start_us: u64,
    /// The same moment in milliseconds since 1970.
    pub start_unix_ms: u64,
    /// When the last byte of the answer was about to be handed to the kernel.
    pub end_us: u64,
    /// The connection it came over.
    pub connection: u64,
    /// When that connection was opened.
    pub opened_us: u64,
    /// When that connection was closed, if it has been.
    pub closed_us: Option<u64>,
    /// The server's address on that connection.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The method.
    pub method: String,
    /// The host asked for, as sent, with port.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer: head and body (over HTTPS: body).
    pub bytes: u64,
    /// Whether the whole answer was handed over.
    pub complete: bool,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionEntry {
    /// Its number, in the order of opening.
    pub id: u64,
    /// When it was accepted, in microseconds since the server started.
    pub opened_us: u64,
    /// When the server saw its end, if it has ended.
    pub closed_us: Option<u64>,
    /// The server's address.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
}

/// The log at one moment.
#[derive(Clone, Debug, Default)]
pub struct LogView {
    /// Requests in the order in which they ended.
    pub requests: Vec<LogEntry>,
    /// Connections in the order in which they were opened.
    pub connections: Vec<ConnectionEntry>,
}

impl LogView {
    /// Requests by host, each list in the order in which they started.
    pub fn by_host(&self) -> BTreeMap<&str, Vec<&LogEntry>> {
        let mut hosts: BTreeMap<&str, Vec<&LogEntry>> = BTreeMap::new();
        for entry in &self.requests {
            hosts.entry(&entry.host).or_default().push(entry);
        }
        for entries in hosts.values_mut() {
            entries.sort_by_key(|entry| entry.start_us);
        }
        hosts
    }

    /// The most connections that were open to any one host at once, and that host. A connection counts for every host
    /// asked for over it. Two that overlap by no more than `slack_us` count as one after the other: the server may
    /// see a new connection before the end of the old one.
    pub fn peak_by_host(&self, slack_us: u64) -> Option<(String, usize)> {
        let mut spans: BTreeMap<String, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
        for entry in &self.requests {
            let span = (entry.opened_us, entry.closed_us.unwrap_or(u64::MAX));
            spans.entry(entry.host.clone()).or_default().insert(entry.connection, span);
        }
        let peaks = spans.into_iter().map(|(host, spans)| (host, peak(spans.into_values(), slack_us)));
        peaks.max_by_key(|(_, peak)| *peak)
    }

    /// The most connections that were open to any one address of the server at once, and that address.
    pub fn peak_by_address(&self, slack_us: u64) -> Option<(IpAddr, usize)> {
        let mut spans: BTreeMap<IpAddr, Vec<(u64, u64)>> = BTreeMap::new();
        for entry in &self.connections {
            spans.entry(entry.local.ip()).or_default().push((entry.opened_us, entry.closed_us.unwrap_or(u64::MAX)));
        }
        let peaks = spans.into_iter().map(|(address, spans)| (address, peak(spans.into_iter(), slack_us)));
        peaks.max_by_key(|(_, peak)| *peak)
    }

    /// For each pair of successive requests to a host: the pause between the end of the first and the start of the
    /// second, in microseconds (0 if they overlap), with both.
    pub fn gaps(&self) -> Vec<(u64, &LogEntry, &LogEntry)> {
        let hosts = self.by_host();
        let pairs = hosts.values().flat_map(|all| all.windows(2).map(|pair| (pair[0], pair[1])));
        pairs.map(|(a, b)| (b.start_us.saturating_sub(a.end_us), a, b)).collect()
    }
}

fn peak(spans: impl Iterator<Item = (u64, u64)>, slack_us: u64) -> usize {
    let mut events: Vec<(u64, i64)> = Vec::new();
    for (opened, closed) in spans {
        events.push((opened, 1));
        events.push((closed.saturating_sub(slack_us).max(opened + 1), -1));
    }
    events.sort_unstable();
    let (mut open, mut most) = (0i64, 0i64);
    for (_, step) in events {
        open += step;
        most = most.max(open);
    }
    most as usize
}

/// Collects entries from all connections.
pub(crate) struct Log {
    started: Instant,
    memory: bool,
    enabled: bool,
    next_connection: AtomicU64,
    requests: AtomicU64,
    /// Answers that are being sent: their readers may know of them before the log does.
    answering: AtomicU64,
    state: Mutex<State>,
}

/// An answer from before its first byte is sent until it is in the log.
pub(crate) struct Answering(Arc<Log>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a reader of the log waits for answers that are being sent.
const ANSWERING_PATIENCE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct State {
    requests: Vec<LogEntry>,
    connections: BTreeMap<u64, ConnectionEntry>,
    file: Option<BufWriter<File>>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Request(&'a LogEntry),
    Open(&'a ConnectionEntry),
    Close(&'a ConnectionEntry),
}

impl State {
    fn write(&mut self, line: &Line<'_>) {
        let Some(file) = &mut self.file else { return };
        let written =
            serde_json::to_writer(&mut *file, line).map_err(io::Error::from).and_then(|()| file.write_all(b"\n"));
        if written.is_err() {
            // A log that cannot be written must not bring the web down; what was written stays readable.
            self.file = None;
        }
    }
}

impl Log {
    pub(crate) fn new(config: &LogConfig) -> io::Result<Log> {
        let open = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|e| io::Error::new(e.kind(), format!("open request log {}: {e}", path.display())))
        };
        let file = config.file.as_ref().map(open).transpose()?.map(BufWriter::new);
        Ok(Log {
            started: Instant::now(),
            memory: config.memory,
            enabled: config.memory || file.is_some(),
            next_connection: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            answering: AtomicU64::new(0),
            state: Mutex::new(State { file, ..State::default() }),
        })
    }

    /// Whether entries go anywhere; if not, callers need not make them.
    pub(crate) fn enabled(&self) -> bool {
        self.enabled
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a new connection; its end is noted when the guard is dropped.
    pub(crate) fn open(log: &Arc<Log>, local: SocketAddr, peer: SocketAddr, scheme: &'static str) -> Connection {
        let id = log.next_connection.fetch_add(1, Ordering::Relaxed);
        let entry = ConnectionEntry { id, opened_us: log.now_us(), closed_us: None, local, peer, scheme };
        if log.enabled {
            let mut state = log.lock();
            state.write(&Line::Open(&entry));
            if log.memory {
                state.connections.insert(id, entry.clone());
            }
        }
        Connection { log: log.clone(), entry }
    }

    fn push(&self, entry: LogEntry) {
        let mut state = self.lock();
        state.write(&Line::Request(&entry));
        if self.memory {
            state.requests.push(entry);
        }
    }

    pub(crate) fn view(&self) -> LogView {
        let patience = Instant::now() + ANSWERING_PATIENCE;
        while self.answering.load(Ordering::SeqCst) > 0 && Instant::now() < patience {
            std::thread::sleep(Duration::from_micros(100));
        }
        let state = self.lock();
        let mut requests = state.requests.clone();
        for entry in &mut requests {
            entry.closed_us = state.connections.get(&entry.connection).and_then(|c| c.closed_us);
        }
        LogView { requests, connections: state.connections.values().cloned().collect() }
    }

    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.requests.clear();
        state.connections.retain(|_, c| c.closed_us.is_none());
    }

    pub(crate) fn flush(&self) {
        if let Some(file) = &mut self.lock().file {
            let _ = file.flush();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection; dropping it is its end.
pub(crate) struct Connection {
    log: Arc<Log>,
    entry: ConnectionEntry,
}

impl Connection {
    /// A request on this connection that starts now.
    pub(crate) fn request(&self, method: &str, host: &str, path: &str) -> LogEntry {
        let ConnectionEntry { id, opened_us, local, peer, scheme, .. } = self.entry;
        LogEntry {
            start_us: self.log.now_us(),
            start_unix_ms: unix_ms(),
            end_us: 0,
            connection: id,
            opened_us,
            closed_us: None,
            local,
            peer,
            scheme,
            method: method.to_owned(),
            host: host.to_owned(),
            path: path.to_owned(),
            status: 0,
            bytes: 0,
            complete: false,
        }
    }

    /// To be held from before an answer is sent until it is in the log.
    pub(crate) fn answering(&self) -> Answering {
        self.log.answering.fetch_add(1, Ordering::SeqCst);
        Answering(self.log.clone())
    }

    /// The time, as entries have it.
    pub(crate) fn now_us(&self) -> u64 {
        self.log.now_us()
    }

    /// Remembers a request of this connection, whose end has been noted.
    pub(crate) fn push(&self, entry: LogEntry) {
        if self.log.enabled {
            self.log.push(entry);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.log.enabled {
            return;
        }
        self.entry.closed_us = Some(self.log.now_us());
        let mut state = self.log.lock();
        state.write(&Line::Close(&self.entry));
        if let Some(entry) = state.connections.get_mut(&self.entry.id) {
            entry.closed_us = self.entry.closed_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_count_overlaps_beyond_the_slack() {
        let spans = [(0, 100), (90, 200), (150, 300), (310, 400)];
        assert_eq!(peak(spans.into_iter(), 0), 2);
        assert_eq!(peak(spans.into_iter(), 20), 2);
        assert_eq!(peak(spans.into_iter(), 60), 1);
        assert_eq!(peak([(0, u64::MAX), (5, u64::MAX)].into_iter(), 10), 2);
        assert_eq!(peak([].into_iter(), 0), 0);
    }

    #[test]
    fn entries_reach_memory_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let log = Log::new(&LogConfig { memory: true, file: Some(path.clone()) });
        let log = Arc::new(log.unwrap());
        let (local, peer) = ("127.0.0.1:80".parse().unwrap(), "127.0.0.1:5000".parse().unwrap());
        let connection = Log::open(&log, local, peer, "http");
        connection.push(connection.request("GET", "h0.sim.test", "/"));
        assert_eq!(log.view().requests[0].closed_us, None);
        drop(connection);
        assert!(log.view().requests[0].closed_us.is_some());
        log.flush();
        let lines = std::fs::read_to_string(path).unwrap();
        let events: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
        assert_eq!(names, ["open", "request", "close"]);
        assert_eq!(events[1]["host"], "h0.sim.test");
    }
}
