//! What people see while a crawl runs: a few lines that are drawn again every half second on a terminal, a line
//! every ten seconds elsewhere, and a summary at the end.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rhumb_crawl::status::{Shared, Status};

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

fn draw(status: &Mutex<Status>, stop: &AtomicBool) {
    let terminal = std::io::stderr().is_terminal();
    let pause = if terminal { Duration::from_millis(500) } else { Duration::from_secs(10) };
    let mut drawn = 0;
    let mut next = Instant::now() + pause;
    loop {
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(next - Instant::now());
        }
        let mut stderr = std::io::stderr().lock();
        if drawn > 0 {
            // Up to the first line of the last drawing, and clear from there.
            let _ = write!(stderr, "\x1b[{drawn}A\x1b[J");
            drawn = 0;
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let status = status.lock().expect("nobody panics while copying the status").clone();
        if terminal {
            let lines = live(&status);
            drawn = lines.len();
            let _ = stderr.write_all((lines.join("\n") + "\n").as_bytes());
        } else {
            let _ = writeln!(stderr, "{}", plain(&status));
        }
        next = Instant::now() + pause;
    }
}

fn live(s: &Status) -> Vec<String> {
    let trouble = troubles(s);
    vec![
        format!(
            "  \x1b[1m{:>9}\x1b[0m pages   {:>8.1}/s   {:>9}   {}",
            thousands(s.pages),
            s.pages_per_second,
            human_bytes(s.bytes),
            clock(s.seconds)
        ),
        format!(
            "  {:>9} waiting   {} known   {} hosts: {} ready, {} pausing, {} in flight",
            thousands(s.urls_waiting),
            thousands(s.urls_seen),
            thousands(s.hosts),
            s.hosts_ready,
            s.hosts_waiting,
            s.in_flight
        ),
        if trouble.is_empty() { "  no errors".to_string() } else { format!("  {trouble}") },
    ]
}

fn plain(s: &Status) -> String {
    let trouble = troubles(s);
    format!(
        "{} pages ({:.1}/s), {}, {} waiting, {} hosts, {} in flight{}",
        thousands(s.pages),
        s.pages_per_second,
        human_bytes(s.bytes),
        thousands(s.urls_waiting),
        thousands(s.hosts),
        s.in_flight,
        if trouble.is_empty() { String::new() } else { format!("; {trouble}") }
    )
}

fn troubles(s: &Status) -> String {
    let ordinary = ["ok", "not_modified"];
    let named = s.outcomes.iter().filter(|(name, _)| !ordinary.contains(name));
    named.map(|(name, count)| format!("{name} {}", thousands(*count))).collect::<Vec<_>>().join("  ")
}

/// The summary at the end, for people.
pub fn summary(s: &Status) -> String {
    let mut lines = vec![
        format!("  pages        {:>12}   in {}, {:.1}/s", thousands(s.pages), clock(s.seconds), s.pages_per_second),
        format!(
            "  bytes        {:>12}   processor time {:.2} s, peak memory {}",
            human_bytes(s.bytes),
            s.cpu_seconds,
            human_bytes(s.peak_rss_bytes)
        ),
        format!(
            "  URLs known   {:>12}   {} waiting, on {} hosts",
            thousands(s.urls_seen),
            thousands(s.urls_waiting),
            thousands(s.hosts)
        ),
        format!(
            "  requests     {:>12}   {} for robots.txt, {} tried again",
            thousands(s.requests),
            thousands(s.robots_fetched),
            thousands(s.retries)
        ),
    ];
    for (name, count) in &s.outcomes {
        lines.push(format!("    {name:<20} {:>10}", thousands(*count)));
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

fn clock(seconds: f64) -> String {
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
}
