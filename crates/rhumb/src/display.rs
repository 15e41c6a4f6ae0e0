//! What people see while a crawl runs: a few lines that are drawn again every half second on a terminal, a line
//! every ten seconds elsewhere, and a summary at the end.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rhumb_crawl::status::{Shared, Status};
use serde::{Deserialize, Serialize};

use crate::out;

use crate::units::human_bytes;

/// The live display, on a thread of its own.
pub struct Display {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Starts drawing on stderr.
    pub fn start(status: Shared) -> Display {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread =
            std::thread::Builder::new().name("display".to_string()).spawn(move || draw(&status, &stopped)).ok();
        Display { stop, thread }
    }

    /// Stops drawing and clears the lines.
    pub fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The user asked for an end: the display says so until it has come.
pub fn stopping() {
    STOPPING.store(true, Ordering::Relaxed);
}

fn draw(status: &Mutex<Status>, stop: &AtomicBool) {
    let terminal = std::io::stderr().is_terminal();
    let pause = if terminal { Duration::from_millis(500) } else { Duration::from_secs(10) };
    let (mut drawn, mut told) = (0, false);
    let mut next = Instant::now() + pause;
    loop {
        let asked = || STOPPING.load(Ordering::Relaxed);
        while Instant::now() < next && !stop.load(Ordering::Relaxed) && (told || !asked()) {
            std::thread::park_timeout((next - Instant::now()).min(Duration::from_millis(100)));
        }
        let mut stderr = std::io::stderr().lock();
        if drawn > 0 {
            // Up to the first line of the last drawing, and clear from there.
            let _ = write!(stderr, "\r\x1b[{drawn}A\x1b[J");
            drawn = 0;
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let status = status.lock().expect("nobody panics while copying the status").clone();
        let ending = asked();
        if terminal {
            let mut lines = live(&status);
            if ending {
                lines.push(format!("  {STOPPING_LINE}"));
            }
            drawn = lines.len();
            // Without wrapping a line too long for the window is cut instead of becoming two.
            let _ = write!(stderr, "\x1b[?7l{}\n\x1b[?7h", lines.join("\n"));
        } else {
            let line = if ending && !told { STOPPING_LINE.to_string() } else { plain(&status) };
            let _ = writeln!(stderr, "{line}");
        }
        told = ending;
        next = Instant::now() + pause;
    }
}

static STOPPING: AtomicBool = AtomicBool::new(false);
const STOPPING_LINE: &str = "Stopping: visits under way may finish. Ctrl-C again ends at once, nothing is lost.";

/// Columns of a line of the live display.
const COLUMNS: usize = 78;

fn live(s: &Status) -> Vec<String> {
    let mut lines = vec![
        format!(
            "  \x1b[1m{:>11}\x1b[0m pages    {:>9.1}/s   {:>8}   {}",
            thousands(s.pages),
            s.pages_per_second,
            human_bytes(s.bytes),
            clock(s.seconds)
        ),
        {
            let held = if s.urls_held > 0 { format!("   {} held", thousands(s.urls_held)) } else { String::new() };
            format!("  {:>11} waiting  {:>9} URLs known{held}", thousands(s.urls_waiting), thousands(s.urls_seen))
        },
        format!(
            "  {:>11} hosts    {:>9} ready   {} pausing   {} in flight",
            thousands(s.hosts),
            thousands(s.hosts_ready),
            thousands(s.hosts_waiting),
            thousands(s.in_flight)
        ),
    ];
    if let Some(reading) = reading(s) {
        lines.truncate(1);
        lines.push(format!("  {reading}"));
        lines.push(String::new());
    }
    let mut line = String::new();
    for word in troubles(s) {
        if line.len() + word.len() + 3 > COLUMNS {
            lines.push(std::mem::take(&mut line));
        }
        line.push_str(if line.is_empty() { "  " } else { "   " });
        line.push_str(&word);
    }
    if line.is_empty() && lines.len() == 3 {
        line.push_str("  no errors");
    }
    lines.push(line);
    lines
}

/// How far archives were read: "reading old.warc.gz, 43 %; 1 of 3 done". Nothing if the crawl fetches.
fn reading(s: &Status) -> Option<String> {
    let done = s.sources.iter().filter(|source| source.done).count();
    let now = s.sources.iter().find(|source| !source.done && source.bytes > 0).map(|source| {
        let name = source.source.rsplit('/').next().unwrap_or_default();
        format!("reading {}, {} %; ", out::escape(name), 100 * source.offset / source.bytes)
    });
    let all = s.sources.len();
    (all > 0)
        .then(|| format!("{}{done} of {all} archive{} done", now.unwrap_or_default(), if all == 1 { "" } else { "s" }))
}

fn plain(s: &Status) -> String {
    let trouble = troubles(s);
    if let Some(reading) = reading(s) {
        let (pages, bytes) = (thousands(s.pages), human_bytes(s.bytes));
        return format!("{pages} pages ({:.1}/s), {bytes}; {reading}", s.pages_per_second);
    }
    format!(
        "{} pages ({:.1}/s), {}, {} waiting, {} hosts, {} in flight{}",
        thousands(s.pages),
        s.pages_per_second,
        human_bytes(s.bytes),
        thousands(s.urls_waiting),
        thousands(s.hosts),
        s.in_flight,
        if trouble.is_empty() { String::new() } else { format!("; {}", trouble.join(", ")) }
    )
}

/// How many of what, the most frequent first.
fn troubles(s: &Status) -> Vec<String> {
    let ordinary = ["ok", "not_modified"];
    let mut named: Vec<_> = s.outcomes.iter().filter(|(name, _)| !ordinary.contains(name)).collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    named.into_iter().map(|(name, count)| format!("{name} {}", thousands(*count))).collect()
}

/// What of a status people are shown, whether it comes from this process or from the one that crawls.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Figures {
    pages: u64,
    urls_seen: u64,
    urls_waiting: u64,
    urls_aside: u64,
    urls_held: u64,
    hosts_held: u64,
    held: BTreeMap<String, Held>,
    hosts: u64,
    bytes: u64,
    outcomes: BTreeMap<String, u64>,
    seconds: f64,
    cpu_seconds: f64,
    requests: u64,
    robots_fetched: u64,
    duplicates: u64,
    near_duplicates: u64,
    mirrors: Vec<Mirror>,
    retries: u64,
    in_flight: u64,
    hosts_ready: u64,
    hosts_waiting: u64,
    pages_per_second: f64,
    peak_rss_bytes: u64,
    state: String,
    sources: Vec<Source>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source {
    done: bool,
    passed: u64,
    troubles: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Mirror {
    host: String,
    of: String,
    pages_same: u64,
    share: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Held {
    hosts: u64,
    urls: u64,
}

impl Figures {
    /// Reads them from a status in its JSON form.
    pub fn of(status: &impl Serialize) -> Result<Figures> {
        let value = serde_json::to_value(status).context("read the status")?;
        serde_json::from_value(value).context("read the status")
    }
}

/// What a finished crawl has left: "120 URLs of 3 hosts are held: 2 did not answer, 1 is over budget". Nothing if nothing is held.
pub fn held(f: &Figures) -> Option<String> {
    if f.urls_held == 0 {
        return None;
    }
    let count = |n: u64, one: &str| format!("{} {one}{}", thousands(n), if n == 1 { "" } else { "s" });
    let because = f.held.iter().map(|(reason, held)| {
        let (n, s) = (thousands(held.hosts), if held.hosts == 1 { "is" } else { "are" });
        match reason.as_str() {
            "no_answer" => format!("{n} did not answer"),
            "dns_failed" => format!("the name of {n} could not be resolved"),
            "robots_unreachable" => format!("the robots.txt of {n} could not be had"),
            "over_budget" => format!("{n} {s} over budget"),
            other => format!("{n} {other}"),
        }
    });
    let because = because.collect::<Vec<_>>().join(", ");
    let are = if f.urls_held == 1 { "is" } else { "are" };
    Some(format!("{} of {} {are} held: {because}", count(f.urls_held, "URL"), count(f.hosts_held, "host")))
}

/// The figures of a crawl in columns, for people.
pub fn summary(f: &Figures) -> String {
    let row = |label: &str, figure: String, note: String| {
        format!("  {label:<20}{figure:>12}   {note}").trim_end().to_string()
    };
    let rate = if f.seconds > 0.0 { format!(", {:.1}/s", f.pages_per_second) } else { String::new() };
    let memory =
        if f.peak_rss_bytes > 0 { format!(", peak memory {}", human_bytes(f.peak_rss_bytes)) } else { String::new() };
    let mut lines = vec![
        row("pages", thousands(f.pages), format!("in {}{rate}", clock(f.seconds))),
        row("bytes", human_bytes(f.bytes), format!("processor time {:.2} s{memory}", f.cpu_seconds)),
        row("URLs known", thousands(f.urls_seen), format!("{} waiting", thousands(f.urls_waiting))),
        row("requests", thousands(f.requests), {
            format!("{} for robots.txt, {} tried again", thousands(f.robots_fetched), thousands(f.retries))
        }),
    ];
    if !f.sources.is_empty() {
        lines.truncate(2);
        let sum = |of: fn(&Source) -> u64| thousands(f.sources.iter().map(of).sum());
        let done = f.sources.iter().filter(|s| s.done).count() as u64;
        lines.push(row("archives", f.sources.len().to_string(), format!("{done} read to the end")));
        let note = format!("{} could not be used", sum(|s| s.troubles));
        lines.push(row("other records", sum(|s| s.passed), note));
        lines.push(row("robots.txt", thousands(f.robots_fetched), String::new()));
    } else {
        lines.push(row("hosts", thousands(f.hosts), {
            let running = f.state == "running";
            let now = || format!("{} ready, {} pausing, {} in flight", f.hosts_ready, f.hosts_waiting, f.in_flight);
            if running { now() } else { String::new() }
        }));
    }
    if f.hosts_held > 0 {
        lines.push(row("URLs held", thousands(f.urls_held), format!("of {} hosts", thousands(f.hosts_held))));
    }
    for (reason, held) in &f.held {
        lines.push(row(&format!("  {reason}"), thousands(held.urls), format!("of {} hosts", thousands(held.hosts))));
    }
    if f.urls_aside > 0 {
        let note = "by what was learned of traps: `rhumb traps` shows it".to_string();
        lines.push(row("URLs set aside", thousands(f.urls_aside), note));
    }
    if f.duplicates > 0 {
        lines.push(row("duplicates", thousands(f.duplicates), "pages whose body was known already".to_string()));
    }
    if f.near_duplicates > 0 {
        let note = "pages with the text of an older one, or nearly so".to_string();
        lines.push(row("near-duplicates", thousands(f.near_duplicates), note));
    }
    for mirror in &f.mirrors {
        let note =
            format!("pages of {} also on {}, {:.0} % of what both have", mirror.of, mirror.host, mirror.share * 100.0);
        lines.push(row("mirror", thousands(mirror.pages_same), note));
    }
    if !f.outcomes.is_empty() {
        lines.push("  how URLs ended".to_string());
    }
    for (name, count) in &f.outcomes {
        lines.push(row(&format!("  {name}"), thousands(*count), String::new()));
    }
    lines.join("\n")
}

/// 1234567 as 1,234,567.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A duration for people.
pub fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    if s >= 3600 {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else if s >= 60 {
        format!("{}:{:02}", s / 60, s % 60)
    } else {
        format!("{seconds:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(clock(3.21), "3.2 s");
        assert_eq!(clock(3_661.0), "1:01:01");
    }

    #[test]
    fn the_live_display_fits_a_narrow_window() {
        let outcomes = rhumb_core::outcome::ALL.iter().map(|o| (o.name(), 1_234_567)).collect();
        let many = 1_234_567_890;
        let status = Status {
            pages: many,
            urls_seen: many,
            urls_waiting: many,
            bytes: many,
            hosts: many,
            outcomes,
            ..Status::default()
        };
        let status = Status {
            hosts_ready: 123_456,
            hosts_waiting: 123_456,
            in_flight: 12_345,
            seconds: 1e6,
            pages_per_second: 98_765.4,
            ..status
        };
        for line in live(&status) {
            let shown = line.replace("\x1b[1m", "").replace("\x1b[0m", "");
            assert!(shown.len() <= COLUMNS && !shown.is_empty(), "{} columns: {shown}", shown.len());
        }
        assert_eq!(live(&Status::default()).last().map(String::as_str), Some("  no errors"));
        let figures = Figures::of(&status).expect("a status");
        let ends: Vec<_> = summary(&figures).lines().skip(6).map(str::len).collect();
        assert!(ends.iter().all(|&end| end == ends[0]), "{}", summary(&figures));
    }
}
