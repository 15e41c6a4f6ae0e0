//! What the server costs: hammers it over keep-alive connections and prints the CPU time of its thread per page.
//!
//! `cargo run --release -p rhumb-sim --example load -- [PAGES] [CONNECTIONS] [PAGE_BYTES]`
//!
//! The server's thread is measured alone (Linux: `/proc/self/task/*/schedstat`), system calls included; the client is
//! another thread of the same process and is not counted. The last line is the pure function without any socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use rhumb_sim::{LogConfig, Request, Scratch, Server, ServerConfig, Web, WebConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let pages = arguments.next().transpose()?.unwrap_or(100_000);
    let connections = arguments.next().transpose()?.unwrap_or(32);
    let page_bytes = arguments.next().transpose()?.unwrap_or(10_000) as usize;

    let web = Web::new(WebConfig { page_bytes, ..WebConfig::plain(100, 100) })?;
    for (name, log) in [("log off", LogConfig::off()), ("log in memory", LogConfig::default())] {
        let server = Server::start(web.clone(), ServerConfig { log, ..ServerConfig::default() })?;
        let bytes = client(server.web(), server.addr(), connections, pages)?;
        let cpu_ns = thread_cpu_ns("sim-web-0")?;
        let served = server.requests();
        println!(
            "served over sockets, {name}: {:.4} CPU-ms per page ({served} pages, {:.0} bytes each)",
            cpu_ns as f64 / 1e6 / served as f64,
            bytes as f64 / served as f64,
        );
    }

    let mut scratch = Scratch::default();
    let paths: Vec<(String, String)> = (0..1_000).map(|i| target(&web, i)).collect();
    let before = cpu_ns("/proc/thread-self/schedstat".as_ref())?;
    for i in 0..pages {
        let (host, path) = &paths[(i % 1_000) as usize];
        web.respond_into(&Request { host, path, ..Request::default() }, &mut scratch);
    }
    let spent = cpu_ns("/proc/thread-self/schedstat".as_ref())? - before;
    println!("written in memory: {:.4} CPU-ms per page", spent as f64 / 1e6 / pages as f64);
    Ok(())
}

fn target(web: &Web, i: u64) -> (String, String) {
    let (host, page) = (i * 7 % 100, i * 13 / 7 % 100);
    let (url, origin) = (web.url(host, page), web.origin(host));
    (web.host_name(host), url[origin.len()..].to_owned())
}

/// Fetches so many pages over so many connections, one request outstanding on each, as a busy crawler's single thread
/// would; returns the bytes read.
fn client(web: &Web, addr: SocketAddr, connections: u64, pages: u64) -> std::io::Result<u64> {
    let mut streams: Vec<TcpStream> =
        (0..connections).map(|_| TcpStream::connect(addr)).collect::<std::io::Result<_>>()?;
    let targets = (0..1_000).map(|i| target(web, i));
    let requests: Vec<String> =
        targets.map(|(host, path)| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).collect();
    let mut buffer = vec![0; 256 << 10];
    let mut total = 0;
    for round in 0..pages / connections {
        for (i, stream) in streams.iter_mut().enumerate() {
            let number = round * connections + i as u64;
            stream.write_all(requests[(number % 1_000) as usize].as_bytes())?;
        }
        for stream in &mut streams {
            total += read_answer(stream, &mut buffer)? as u64;
        }
    }
    Ok(total)
}

fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    let (mut filled, mut wanted) = (0, usize::MAX);
    while filled < wanted {
        let n = stream.read(&mut buffer[filled..])?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        filled += n;
        if wanted == usize::MAX {
            wanted = answer_bytes(&buffer[..filled]).unwrap_or(usize::MAX);
        }
    }
    Ok(filled)
}

/// The length of the answer that begins here, once its head has arrived.
fn answer_bytes(input: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(&input[..input.len().min(700)]).ok()?;
    let end = head.find("\r\n\r\n")? + 4;
    let length = head.split("Content-Length: ").nth(1)?.split("\r\n").next()?;
    Some(end + length.parse::<usize>().ok()?)
}

/// CPU time of the thread of this name, in nanoseconds.
fn thread_cpu_ns(name: &str) -> std::io::Result<u64> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        if std::fs::read_to_string(folder.join("comm"))?.trim() == name {
            return cpu_ns(&folder.join("schedstat"));
        }
    }
    Err(std::io::Error::other(format!("no thread named {name}")))
}

fn cpu_ns(schedstat: &Path) -> std::io::Result<u64> {
    let stat = std::fs::read_to_string(schedstat)?;
    stat.split(' ').next().unwrap_or_default().parse().map_err(std::io::Error::other)
}
