//! HTTP/1.1 by hand: read a head, answer with one write, again.
//!
//! The loop knows what a crawler may send and no more: GET and HEAD, keep-alive, pipelined requests, absolute-form
//! targets as sent to a proxy. Anything else is answered with an error and the end of the connection.

use std::io::{self, IoSlice};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::log::{Connection, Log};
use super::{Shared, accept};
use crate::web::Web;
use crate::web::path::put_number;
use crate::web::respond::{Head, Request, Scratch};

const HEAD_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 4 << 10;

/// Serves connections for ever.
pub(crate) async fn listen(listener: TcpListener, web: Web, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let (stream, peer) = accept(&listener).await;
        let (web, shared) = (web.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(local) = stream.local_addr() else { return };
            if !shared.welcomes(local) {
                return;
            }
            let connection = Log::open(&shared.log, local, peer, "http");
            // A client that goes away in the middle is no failure of ours, and the log shows it.
            let _ = converse(stream, &web, &shared, &connection).await;
        });
    }
}

/// One connection from its first request to its last.
async fn converse(mut stream: TcpStream, web: &Web, shared: &Shared, connection: &Connection) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input: Vec<u8> = Vec::with_capacity(READ_BYTES);
    let mut used = 0;
    let mut scratch = Scratch::default();
    let mut output: Vec<u8> = Vec::with_capacity(512);
    let mut date = Date::default();
    loop {
        let Some(length) = head_length(&input[used..]) else {
            input.drain(..used);
            used = 0;
            if input.len() > HEAD_BYTES_MAX {
                return refuse(&mut stream, 431, &mut output).await;
            }
            input.reserve(READ_BYTES);
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = parse(&input[used..used + length]);
        used += length;
        let asked = match head {
            Ok(asked) => asked,
            Err(status) => return refuse(&mut stream, status, &mut output).await,
        };
        let time_ms = shared.now_ms();
        let mut entry =
            shared.log.enabled().then(|| connection.request(asked.method, asked.request.host, asked.request.path));
        let reply = web.respond_into(&Request { time_ms, ..asked.request }, &mut scratch);
        if reply.latency_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.latency_ms)).await;
        }
        let keep = shared.keep_alive && asked.keep_alive;
        put_head(&reply, scratch.body.len(), keep, date.at(time_ms), &mut output);
        let body: &[u8] = if asked.method == "HEAD" { &[] } else { &scratch.body };
        let mut sent = Sent::default();
        let answering = connection.answering();
        let result = send(&mut stream, &output, body, connection, &mut sent).await;
        shared.log.count();
        if let Some(mut entry) = entry.take() {
            (entry.status, entry.bytes, entry.complete) = (reply.status, sent.bytes, result.is_ok());
            entry.end_us = sent.last_us;
            connection.push(entry);
        }
        drop(answering);
        result?;
        if !keep {
            return finish(&mut stream).await;
        }
    }
}

/// What became of an answer.
#[derive(Default)]
struct Sent {
    bytes: u64,
    /// When the last write began.
    last_us: u64,
}

/// Head and body in one system call, unless the socket's buffer is too small for them.
async fn send(
    stream: &mut TcpStream,
    head: &[u8],
    body: &[u8],
    connection: &Connection,
    sent: &mut Sent,
) -> io::Result<()> {
    let mut slices = [IoSlice::new(head), IoSlice::new(body)];
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        sent.last_us = connection.now_us();
        let n = stream.write_vectored(rest).await?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        sent.bytes += n as u64;
        IoSlice::advance_slices(&mut rest, n);
    }
    Ok(())
}

async fn refuse(stream: &mut TcpStream, status: u16, output: &mut Vec<u8>) -> io::Result<()> {
    output.clear();
    put_status(status, output);
    output.extend_from_slice(b"Content-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(output).await?;
    finish(stream).await
}

/// Ends the connection so that the client gets all that was sent: closing at once, with input still unread, would make
/// the kernel throw the answer away.
async fn finish(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    let drain = async { while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(Duration::from_millis(200), drain).await;
    Ok(())
}

fn put_head(reply: &Head, body_bytes: usize, keep: bool, date: &str, out: &mut Vec<u8>) {
    out.clear();
    put_status(reply.status, out);
    out.extend_from_slice(b"Date: ");
    out.extend_from_slice(date.as_bytes());
    out.extend_from_slice(b"\r\nServer: rhumb-sim\r\n");
    out.extend_from_slice(&reply.lines);
    if reply.status != 304 && reply.status != 204 {
        out.extend_from_slice(b"Content-Length: ");
        put_number(out, body_bytes as u64);
        out.extend_from_slice(b"\r\n");
    }
    // Said even where HTTP/1.1 implies it: some clients reuse a connection only when told.
    out.extend_from_slice(if keep { b"Connection: keep-alive\r\n\r\n" } else { b"Connection: close\r\n\r\n" });
}

pub(crate) fn put_status(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    put_number(out, u64::from(status));
    let reason = ::http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Unknown");
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The `Date` header, written anew once a second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn at(&mut self, time_ms: u64) -> &str {
        let second = time_ms / 1_000;
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(second));
        }
        &self.text
    }
}

/// A request head that was understood.
struct Asked<'a> {
    method: &'a str,
    request: Request<'a>,
    keep_alive: bool,
}

/// The length of the first head in the input, if it is there as a whole. Lines may end in CR LF or LF.
pub(crate) fn head_length(input: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + memchr::memchr(b'\n', &input[from..])? + 1;
        match &input[end..] {
            [b'\n', ..] => return Some(end + 1),
            [b'\r', b'\n', ..] => return Some(end + 2),
            _ => from = end,
        }
    }
}

/// Reads a head, or says with which status to refuse it.
fn parse(head: &[u8]) -> Result<Asked<'_>, u16> {
    let text = std::str::from_utf8(head).map_err(|_| 400u16)?;
    let mut lines = text.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (first.next(), first.next(), first.next(), first.next())
    else {
        return Err(400);
    };
    let old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ if version.starts_with("HTTP/") => return Err(505),
        _ => return Err(400),
    };
    if !matches!(method, "GET" | "HEAD") {
        return Err(if method.bytes().all(|b| b.is_ascii_uppercase()) { 405 } else { 400 });
    }
    let mut request = Request::default();
    let mut keep_alive = !old;
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(400u16)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("host") {
            request.host = value;
        } else if name.eq_ignore_ascii_case("connection") {
            keep_alive = (keep_alive || has_token(value, "keep-alive")) && !has_token(value, "close");
        } else if name.eq_ignore_ascii_case("accept-encoding") {
            request.gzip = has_token(value, "gzip");
        } else if name.eq_ignore_ascii_case("if-none-match") {
            request.if_none_match = Some(value);
        } else if name.eq_ignore_ascii_case("if-modified-since") {
            request.if_modified_since = Some(value);
        } else if name.eq_ignore_ascii_case("transfer-encoding")
            || (name.eq_ignore_ascii_case("content-length") && value != "0")
        {
            return Err(413);
        } else if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(400);
        }
    }
    if let Some(rest) = target.strip_prefix("http://") {
        let end = rest.find('/').unwrap_or(rest.len());
        request.host = &rest[..end];
        request.path = if end == rest.len() { "/" } else { &rest[end..] };
    } else if target.starts_with('/') {
        request.path = target;
    } else {
        return Err(400);
    }
    if request.host.is_empty() && !old {
        return Err(400);
    }
    Ok(Asked { method, request, keep_alive })
}

/// Whether a comma-separated list has this token, with a weight above zero if it has weights.
pub(crate) fn has_token(list: &str, token: &str) -> bool {
    list.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case(token))
            && !parts.any(|p| p.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Latency, Reply, Server, ServerConfig, WebConfig};
    use std::io::{Read, Write};
    use std::time::Instant;

    fn start(config: WebConfig, server: ServerConfig) -> Server {
        Server::start(Web::new(config).unwrap(), server).unwrap()
    }

    /// Reads one answer: status, head, body.
    fn read_answer(stream: &mut std::net::TcpStream, has_body: bool) -> (u16, String, Vec<u8>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; if has_body { length } else { 0 }];
        stream.read_exact(&mut body).unwrap();
        (head[9..12].parse().unwrap(), head, body)
    }

    #[test]
    fn keep_alive_pipelining_head_and_absolute_form() {
        let server = start(WebConfig::plain(3, 10), ServerConfig::default());
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        let requests = "GET / HTTP/1.1\r\nHost: h1.sim.test\r\n\r\n\
            HEAD / HTTP/1.1\r\nHost: h1.sim.test\r\n\r\n\
            GET http://h2.sim.test/ HTTP/1.1\nHost: ignored\n\n\
            GET /none HTTP/1.1\r\nHost: h1.sim.test:9\r\nConnection: close\r\n\r\n";
        // Cut in the middle of a head: the server must wait for the rest.
        stream.write_all(&requests.as_bytes()[..70]).unwrap();
        let (status, head, body) = read_answer(&mut stream, true);
        assert_eq!(status, 200);
        assert!(head.contains("Connection: keep-alive\r\n"), "{head}");
        let expected = |host| server.web().respond(&Request { host, path: "/", ..Request::default() }).body;
        assert_eq!(body, expected("h1.sim.test"));
        stream.write_all(&requests.as_bytes()[70..]).unwrap();
        let (status, head, _) = read_answer(&mut stream, false);
        assert_eq!(status, 200);
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert_eq!(read_answer(&mut stream, true).2, expected("h2.sim.test"));
        let (status, head, _) = read_answer(&mut stream, true);
        assert_eq!(status, 404);
        assert!(head.contains("Connection: close\r\n"));
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed");

        let log = server.log();
        let seen: Vec<_> =
            log.iter().map(|e| (e.method.as_str(), e.host.as_str(), e.path.as_str(), e.status)).collect();
        assert_eq!(
            seen,
            [
                ("GET", "h1.sim.test", "/", 200),
                ("HEAD", "h1.sim.test", "/", 200),
                ("GET", "h2.sim.test", "/", 200),
                ("GET", "h1.sim.test:9", "/none", 404)
            ]
        );
        assert!(log.iter().all(|e| e.connection == 0 && e.complete && e.end_us >= e.start_us));
        assert!(log[0].bytes > body.len() as u64);
    }

    #[test]
    fn links_carry_the_port_of_the_server() {
        let server = start(WebConfig::plain(2, 5), ServerConfig::default());
        let port = server.addr().port();
        assert_eq!(server.web().url(1, 0), format!("http://h1.sim.test:{port}/"));
        let page = server.web().respond(&Request { host: "h0.sim.test", path: "/", ..Request::default() });
        assert!(String::from_utf8(page.body).unwrap().contains(&format!("http://h1.sim.test:{port}/")));
    }

    #[test]
    fn garbage_is_refused() {
        let server = start(WebConfig::plain(1, 1), ServerConfig::default());
        let check = |request: &[u8], expected| {
            let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
            stream.write_all(request).unwrap();
            let (status, _, _) = read_answer(&mut stream, true);
            assert_eq!(status, expected, "{}", String::from_utf8_lossy(request));
        };
        check(b"hello\r\n\r\n", 400);
        check(b"\x16\x03\x01\n\n", 400);
        check(b"GET / HTTP/1.1\r\n\r\n", 400);
        check(b"GET / HTTP/3.0\r\nHost: h0.sim.test\r\n\r\n", 505);
        check(b"POST / HTTP/1.1\r\nHost: h0.sim.test\r\nContent-Length: 3\r\n\r\nabc", 405);
        check(b"GET * HTTP/1.1\r\nHost: h0.sim.test\r\n\r\n", 400);
        check(b"GET / HTTP/1.1\r\nHost: h0.sim.test\r\nbad line\r\n\r\n", 400);
        check(&[b'a'; HEAD_BYTES_MAX + READ_BYTES * 2], 431);
    }

    #[test]
    fn without_keep_alive_the_server_closes() {
        let server = start(WebConfig::plain(1, 1), ServerConfig { keep_alive: false, ..ServerConfig::default() });
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h0.sim.test\r\n\r\n").unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        assert!(all.contains("Connection: close\r\n") && all.ends_with("</html>\n"));
    }

    #[test]
    fn latency_shows_in_the_log() {
        let latency = Latency { min_ms: 30, max_ms: 30, ..Latency::default() };
        let mut server = start(WebConfig { latency, ..WebConfig::plain(1, 1) }, ServerConfig::default());
        server.web().set_document(0, "/slow", Reply::new(200, "text/plain", "x").with_latency_ms(80));
        let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
        for path in ["/", "/slow"] {
            let before = Instant::now();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: h0.sim.test\r\n\r\n").unwrap();
            read_answer(&mut stream, true);
            assert!(before.elapsed() >= Duration::from_millis(30));
        }
        drop(stream);
        server.stop();
        let view = server.log_view();
        let times: Vec<u64> = view.requests.iter().map(|e| e.end_us - e.start_us).collect();
        assert!(times[0] >= 30_000 && times[1] >= 80_000, "{times:?}");
        let (opened, closed) = (view.connections[0].opened_us, view.connections[0].closed_us.unwrap());
        assert!(opened <= view.requests[0].start_us && closed >= view.requests[1].end_us);
        assert_eq!(view.gaps().len(), 1);
        assert_eq!(view.peak_by_host(0), Some(("h0.sim.test".to_owned(), 1)));
    }

    #[test]
    fn all_loopback_gives_every_host_its_address() {
        let naming = crate::Naming::Loopback;
        let config = WebConfig { naming, ..WebConfig::plain(300, 2) };
        let refused = Server::start(Web::new(config.clone()).unwrap(), ServerConfig::default());
        assert_eq!(refused.err().map(|e| e.kind()), Some(io::ErrorKind::InvalidInput));
        let server = start(config, ServerConfig { all_loopback: true, ..ServerConfig::default() });
        let mut stream = std::net::TcpStream::connect((server.web().address(299), server.addr().port())).unwrap();
        let name = server.web().host_name(299);
        assert_eq!(name, "127.0.1.44");
        write!(stream, "GET / HTTP/1.1\r\nHost: {name}:{}\r\n\r\n", server.addr().port()).unwrap();
        assert_eq!(read_answer(&mut stream, true).0, 200);
        assert_eq!(server.log()[0].local.ip().to_string(), name);
    }
}
