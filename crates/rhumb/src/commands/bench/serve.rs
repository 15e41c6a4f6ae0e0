//! Processor time of one request to `rhumb serve`: of the thread that serves, system calls included, and of nothing else.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::commands::serve::normalizer_of;
use crate::links::Links;
use crate::links::answer::Direction;
use crate::serve::{self, App, Asked, Hosts};

/// Pages that are asked about.
const PAGES_MAX: usize = 5_000;
/// How long an answer may take.
const WAIT: Duration = Duration::from_secs(30);

/// Serves `dir` and asks `/api/links`, both ways in turn, on connections that are kept.
pub fn run(dir: &Path, requests: u64, connections: usize) -> Result<Value> {
    let normalizer = normalizer_of(dir)?;
    let links: Arc<dyn Asked> = Arc::new(Links::open(dir)?);
    let pages = pages(&*links)?;
    if pages.is_empty() {
        bail!("{} has no links to ask for", dir.display());
    }
    let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
    let hosts = Hosts::new(listener.local_addr().context("listen")?, &[]);
    let server = serve::start(App::new(links, normalizer, hosts), listener)?;
    let targets: Vec<String> = pages
        .iter()
        .enumerate()
        .map(|(at, url)| {
            let url: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
            format!("/api/links?{}={url}", if at % 2 == 0 { "to" } else { "from" })
        })
        .collect();
    let warm = (requests / 10).max(connections as u64);
    ask(server.address, &targets, warm, connections)?;
    let (cpu_before, began) = (serving_ns()?, Instant::now());
    let bytes = ask(server.address, &targets, requests, connections)?;
    let (cpu_ns, wall) = (serving_ns()? - cpu_before, began.elapsed());
    Ok(json!({
        "requests": requests, "connections": connections, "pages": pages.len(),
        "cpu_us_per_request": cpu_ns as f64 / 1_000.0 / requests as f64,
        "requests_per_second": requests as f64 / wall.as_secs_f64(),
        "bytes_per_answer": bytes as f64 / requests as f64,
    }))
}

/// Pages to ask about: those at the top, and those around them.
fn pages(asked: &dyn Asked) -> Result<Vec<String>> {
    let mut found: Vec<String> = asked.overview()?.top.into_iter().map(|page| page.url).collect();
    let mut known: BTreeSet<String> = found.iter().cloned().collect();
    let mut at = 0;
    while at < found.len() && found.len() < PAGES_MAX {
        for direction in [Direction::To, Direction::From] {
            let answer = asked.links(&found[at], direction, false, 100, None)?;
            for link in answer.into_iter().flat_map(|answer| answer.links) {
                if known.insert(link.url.clone()) {
                    found.push(link.url);
                }
            }
        }
        at += 1;
    }
    found.truncate(PAGES_MAX);
    Ok(found)
}

/// Asks from as many threads as there are connections; the bytes that came.
fn ask(address: SocketAddr, targets: &[String], requests: u64, connections: usize) -> Result<u64> {
    let (next, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let one = || -> Result<()> {
        let mut stream = TcpStream::connect(address).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= requests {
                return Ok(());
            }
            let target = &targets[(turn % targets.len() as u64) as usize];
            stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
            bytes.fetch_add(read_answer(&mut stream, &mut buffer)? as u64, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..connections.max(1)).map(|_| scope.spawn(one)).collect();
        all.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client failed")))
    })?;
    Ok(bytes.into_inner())
}

fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<usize> {
    let mut have = 0;
    loop {
        if have == buffer.len() {
            buffer.resize(have * 2, 0);
        }
        let n = stream.read(&mut buffer[have..]).context("read an answer")?;
        if n == 0 {
            bail!("the server closed a connection");
        }
        have += n;
        let Some(end) = buffer[..have].windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") {
            bail!("the server answered {}", head.lines().next().unwrap_or_default());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let whole = end + 4 + length.context("an answer without a length")?;
        if have >= whole {
            return Ok(whole);
        }
    }
}

/// Time on a processor of the thread named "serve", in nanoseconds.
fn serving_ns() -> Result<u64> {
    for task in std::fs::read_dir("/proc/self/task").context("list threads (this needs Linux)")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "serve") {
            let times = std::fs::read_to_string(task.join("schedstat")).context("read a thread's time")?;
            return times.split(' ').next().and_then(|ns| ns.parse().ok()).context("a thread's time is no number");
        }
    }
    bail!("no thread serves")
}
