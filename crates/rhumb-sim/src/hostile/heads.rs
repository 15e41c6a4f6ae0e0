//! Response heads that are late, endless, contradictory, or no heads at all.

use std::io;
use std::time::Duration;

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome::{
    BadHttp, HeadTimeout, HeadTooLarge, OddStatus, Ok as Fine, Reset, RobotsUnreachable,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{End, Group, Kind, Serve, Task, Wire, page};

const HONEST: u32 = 3;
/// robots.txt and the honest pages.
const REST: u64 = 1 + HONEST as u64;
/// Visits of a URL that may do better next time.
const ATTEMPTS: u64 = 3;

const HEAD: Kind = Kind { group: Group::Heads, honest: HONEST, requests_max: REST + 1, ..Kind::BARE };

/// The heads.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "never-answers",
        about: "accepts the connection and never says a word",
        honest: 0,
        ends: &[End::of("/", RobotsUnreachable).held(Reason::RobotsUnreachable)],
        requests_max: 4,
        serve: Serve::Raw(|wire| Box::pin(hold(wire.stream))),
        ..HEAD
    },
    Kind {
        name: "resets-at-once",
        about: "resets every connection as soon as it is there",
        honest: 0,
        ends: &[End::of("/", RobotsUnreachable).held(Reason::RobotsUnreachable)],
        requests_max: 4,
        serve: Serve::Raw(|wire| Box::pin(async move { wire.stream.set_zero_linger() })),
        ..HEAD
    },
    Kind {
        name: "head-silent",
        about: "reads the request and does not answer",
        ends: &[End::of("/", HeadTimeout)],
        requests_max: REST + ATTEMPTS,
        serve: Serve::Wire(|wire| Box::pin(hold(wire.stream))),
        ..HEAD
    },
    Kind {
        name: "head-drip",
        about: "sends its headers one byte a second",
        ends: &[End::of("/", HeadTimeout)],
        requests_max: REST + ATTEMPTS,
        serve: Serve::Wire(drip),
        ..HEAD
    },
    Kind {
        name: "head-reset",
        about: "resets the connection in the middle of its headers",
        ends: &[End::of("/", Reset)],
        requests_max: REST + ATTEMPTS,
        serve: Serve::Wire(reset),
        ..HEAD
    },
    Kind {
        name: "head-giant",
        about: "one header of 4 MB",
        ends: &[End::of("/", HeadTooLarge)],
        serve: Serve::Wire(|wire| endless_line(wire, b"X-Giant: ", b"x", 4 << 20)),
        ..HEAD
    },
    Kind {
        name: "cookie-giant",
        about: "a cookie of 1 MB",
        ends: &[End::of("/", HeadTooLarge)],
        serve: Serve::Wire(|wire| endless_line(wire, b"Set-Cookie: a=", b"c", 1 << 20)),
        ..HEAD
    },
    Kind {
        name: "head-many",
        about: "100,000 headers",
        ends: &[End::of("/", HeadTooLarge)],
        serve: Serve::Wire(|wire| endless_line(wire, b"X-First: 1\r\n", b"X-Next: 1\r\n", 1_100_000)),
        ..HEAD
    },
    Kind {
        name: "continue-forever",
        about: "answers \"100 Continue\" again and again",
        ends: &[End::of("/", BadHttp).detail("interim")],
        serve: Serve::Wire(continue_forever),
        ..HEAD
    },
    Kind {
        name: "status-099",
        about: "answers with status 099",
        ends: &[End::of("/", BadHttp).detail("status")],
        serve: Serve::Wire(|wire| say(wire, b"HTTP/1.1 099 Strange\r\nContent-Length: 2\r\n\r\nno")),
        ..HEAD
    },
    Kind {
        name: "status-999",
        about: "answers with status 999",
        ends: &[End::of("/", OddStatus)],
        serve: Serve::Wire(|wire| say(wire, b"HTTP/1.1 999 Request denied\r\nContent-Length: 2\r\n\r\nno")),
        ..HEAD
    },
    Kind {
        name: "http-09",
        about: "answers as HTTP/0.9 did: a page without a head",
        ends: &[End::of("/", BadHttp)],
        serve: Serve::Wire(|wire| say(wire, b"<html><body>What headers?<a href=/page/1>page</a></body></html>\n")),
        ..HEAD
    },
    Kind {
        name: "other-protocol",
        about: "speaks SMTP",
        ends: &[End::of("/", BadHttp)],
        serve: Serve::Wire(|wire| say(wire, b"220 mail.example ESMTP\r\n421 closing\r\n\r\n")),
        ..HEAD
    },
    Kind {
        name: "not-modified",
        about: "answers \"304 Not Modified\" to a question without a condition",
        ends: &[End::of("/", OddStatus).detail("304")],
        serve: Serve::Wire(|wire| say(wire, b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")),
        ..HEAD
    },
    Kind {
        name: "switching",
        about: "answers \"101 Switching Protocols\" to a plain request",
        ends: &[End::of("/", OddStatus)],
        serve: Serve::Wire(|wire| {
            say(
                wire,
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi",
            )
        }),
        ..HEAD
    },
    Kind {
        name: "length-twice",
        about: "two Content-Length headers that contradict each other",
        ends: &[End::of("/", BadHttp).detail("content-length")],
        serve: Serve::Wire(|wire| {
            say(wire, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 11\r\n\r\nhello world")
        }),
        ..HEAD
    },
    Kind {
        name: "length-and-chunks",
        about: "Content-Length and Transfer-Encoding in one head",
        ends: &[End::of("/", BadHttp).detail("Transfer-Encoding")],
        serve: Serve::Wire(|wire| {
            say(
                wire,
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            )
        }),
        ..HEAD
    },
    Kind {
        name: "length-nonsense",
        about: "a Content-Length that is no number",
        ends: &[End::of("/", BadHttp).detail("content-length")],
        serve: Serve::Wire(|wire| say(wire, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello")),
        ..HEAD
    },
    Kind {
        name: "head-binary",
        about: "header names and values full of control characters and colours for terminals",
        ends: &[End::of("/", Fine)],
        serve: Serve::Wire(binary),
        ..HEAD
    },
];

/// Waits until the client has had enough.
pub(super) async fn hold(mut stream: TcpStream) -> io::Result<()> {
    let mut rest = [0; 1024];
    let drain = async { while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(Duration::from_secs(300), drain).await;
    Ok(())
}

/// Says this, and hangs up so that the client gets all of it.
pub(super) fn say(mut wire: Wire, bytes: &'static [u8]) -> Task {
    Box::pin(async move {
        wire.stream.write_all(bytes).await?;
        finish(wire.stream).await
    })
}

/// Ends the connection in good order.
pub(super) async fn finish(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    let drain = async { while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(Duration::from_millis(500), drain).await;
    Ok(())
}

fn drip(mut wire: Wire) -> Task {
    Box::pin(async move {
        for byte in b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n" {
            wire.stream.write_all(&[*byte]).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    })
}

fn reset(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-").await?;
        // What was sent must arrive before the reset overtakes it.
        tokio::time::sleep(Duration::from_millis(20)).await;
        wire.stream.set_zero_linger()
    })
}

/// A head whose last line goes on and on.
fn endless_line(mut wire: Wire, start: &'static [u8], piece: &'static [u8], bytes: usize) -> Task {
    Box::pin(async move {
        wire.stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
        wire.stream.write_all(start).await?;
        let block = piece.repeat((16 << 10) / piece.len());
        for _ in 0..bytes / block.len() {
            wire.stream.write_all(&block).await?;
        }
        wire.stream.write_all(b"\r\nContent-Length: 0\r\n\r\n").await?;
        finish(wire.stream).await
    })
}

fn continue_forever(mut wire: Wire) -> Task {
    Box::pin(async move {
        loop {
            wire.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            tokio::task::yield_now().await;
        }
    })
}

fn binary(mut wire: Wire) -> Task {
    Box::pin(async move {
        let body = page::home(&wire.kind.host(), HONEST, []).body;
        let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Bell: \x07\x1b]0;owned\x07\r\n\
            \xff\xfe: name\r\nX-High: \xff\xfe\xfd\r\n: no name\r\nno colon\r\nConnection: close\r\n"
            .to_vec();
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(&body);
        wire.stream.write_all(&out).await?;
        finish(wire.stream).await
    })
}
