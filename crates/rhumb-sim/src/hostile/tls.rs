//! TLS that does not come about, or breaks off: wrong certificates, handshakes that stall, answers cut short.
//!
//! A client that takes any of these for a page, or waits for longer than it said it would, has been fooled. Where the
//! handshake is without fault, robots.txt is answered with 404 and only the rest of the host is not.

use std::io;
use std::time::Duration;

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::certs::Showing;
use super::{End, Group, Kind, Serve, Task, Wire};
use crate::server::http::head_length;

/// A host with which no handshake succeeds: not one URL is asked for.
const SHUT: Kind = Kind {
    group: Group::Tls,
    https: true,
    ends: &[End::of("/", Outcome::TlsFailed).held(Reason::NoAnswer)],
    requests_max: 6,
    own_robots: true,
    ..Kind::BARE
};

/// A host that shakes hands like any other.
const OPEN: Kind = Kind { ends: &[End::of("/", Outcome::Ok)], ..SHUT };

/// The kinds.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "tls-expired",
        about: "a certificate that ended long ago",
        serve: Serve::Raw(|wire| page(wire, Showing::Expired)),
        ..SHUT
    },
    Kind {
        name: "tls-future",
        about: "a certificate that is not valid yet",
        serve: Serve::Raw(|wire| page(wire, Showing::Future)),
        ..SHUT
    },
    Kind {
        name: "tls-self-signed",
        about: "a certificate that nobody vouches for",
        serve: Serve::Raw(|wire| page(wire, Showing::SelfSigned)),
        ..SHUT
    },
    Kind {
        name: "tls-wrong-name",
        about: "a certificate for another host",
        serve: Serve::Raw(|wire| page(wire, Showing::WrongName)),
        ..SHUT
    },
    Kind {
        name: "tls-long-chain",
        about: "a certificate at the end of twenty intermediate ones",
        serve: Serve::Raw(|wire| page(wire, Showing::LongChain)),
        ..SHUT
    },
    Kind {
        name: "tls-maze",
        about: "issuers of one name that vouch for each other, none of them for a root",
        serve: Serve::Raw(|wire| page(wire, Showing::Maze)),
        ..SHUT
    },
    Kind {
        name: "tls-many-names",
        about: "a certificate with a thousand names, among them the right one",
        serve: Serve::Raw(|wire| page(wire, Showing::ManyNames)),
        ..OPEN
    },
    Kind {
        name: "tls-giant",
        about: "a certificate of 16 MiB",
        serve: Serve::Raw(|wire| Box::pin(giant(wire))),
        ..SHUT
    },
    Kind {
        name: "tls-stalled",
        about: "reads the client's hello and never answers",
        serve: Serve::Raw(|wire| after_hello(wire, b"", b"")),
        ..SHUT
    },
    Kind {
        name: "tls-drip",
        about: "a TLS record that comes byte by byte",
        // A handshake record of 16 KiB, and in it the beginning of a server's hello.
        serve: Serve::Raw(|wire| after_hello(wire, b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03", b"\x07")),
        ..SHUT
    },
    Kind {
        name: "tls-not",
        about: "a server of plain HTTP at the port of HTTPS",
        serve: Serve::Raw(|wire| after_hello(wire, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"")),
        ..SHUT
    },
    Kind {
        name: "tls-noise",
        about: "bytes without sense in place of a handshake",
        serve: Serve::Raw(|wire| after_hello(wire, &[0xa5; 4_096], b"")),
        ..SHUT
    },
    Kind {
        name: "tls-alert",
        about: "an alert in place of a handshake",
        serve: Serve::Raw(|wire| after_hello(wire, b"\x15\x03\x03\x00\x02\x02\x28", b"")),
        ..SHUT
    },
    Kind {
        name: "tls-hang-up",
        about: "closes the connection when it has read the client's hello",
        serve: Serve::Raw(|wire| Box::pin(async { hello(wire).await.map(drop) })),
        ..SHUT
    },
    Kind {
        name: "tls-mute",
        about: "shakes hands and then never answers",
        ends: &[End::of("/", Outcome::HeadTimeout)],
        serve: Serve::Raw(|wire| answer(wire, b"", Then::Wait)),
        ..OPEN
    },
    Kind {
        name: "tls-cut-length",
        about: "closes without a goodbye in the middle of a body of known length",
        ends: &[End::of("/", Outcome::Ok).cut()],
        serve: Serve::Raw(|wire| {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<p>half of it";
            answer(wire, head, Then::Break)
        }),
        ..OPEN
    },
    Kind {
        name: "tls-cut",
        about: "closes without a goodbye in the middle of a body whose end is the connection's",
        ends: &[End::of("/", Outcome::Ok).cut()],
        serve: Serve::Raw(|wire| {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>half of it";
            answer(wire, head, Then::Break)
        }),
        ..OPEN
    },
    Kind {
        name: "tls-cut-head",
        about: "closes without a goodbye in the middle of a head",
        ends: &[End::of("/", Outcome::Reset)],
        serve: Serve::Raw(|wire| answer(wire, b"HTTP/1.1 200 OK\r\nContent-Ty", Then::Break)),
        ..OPEN
    },
    Kind {
        name: "tls-new-keys",
        about: "changes its keys again and again and asks for new ones",
        ends: &[End::of("/", Outcome::TlsFailed)],
        serve: Serve::Raw(|wire| answer(wire, b"", Then::NewKeys)),
        ..OPEN
    },
    Kind {
        name: "tls-tickets",
        about: "three thousand tickets for later sessions before the first answer",
        serve: Serve::Raw(|wire| page(wire, Showing::Tickets)),
        ..SHUT
    },
];

/// How long a byte of the drip takes.
const DRIP: Duration = Duration::from_millis(50);

/// Changes of keys after which the server gives up.
const NEW_KEYS_MAX: usize = 100_000;

/// What comes after an answer.
#[derive(Clone, Copy)]
enum Then {
    Close,
    Break,
    Wait,
    NewKeys,
}

/// Serves one page under a certificate that should keep everybody from asking for it.
fn page(wire: Wire, showing: Showing) -> Task {
    let body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>not to be";
    Box::pin(converse(wire, showing, body, Then::Close))
}

/// Answers everything but robots.txt so.
fn answer(wire: Wire, bytes: &'static [u8], then: Then) -> Task {
    Box::pin(converse(wire, Showing::Good, bytes, then))
}

async fn converse(wire: Wire, showing: Showing, bytes: &[u8], then: Then) -> io::Result<()> {
    let Some(certificates) = wire.place.certificates.clone().filter(|_| wire.tls) else { return Ok(()) };
    let mut stream = certificates.accept(wire.stream, &wire.kind.host(), showing, false).await?;
    loop {
        let Some(head) = read_head(&mut stream).await? else { return Ok(()) };
        if head.starts_with(b"GET /robots.txt ") {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?;
            continue;
        }
        stream.write_all(bytes).await?;
        stream.flush().await?;
        match then {
            Then::Close => return stream.shutdown().await,
            Then::Break => {
                // The connection's own end, without TLS having said that it ends.
                stream.get_mut().0.shutdown().await?;
                return drain(&mut stream.into_inner().0).await;
            }
            Then::Wait => return drain(&mut stream.into_inner().0).await,
            Then::NewKeys => {
                for _ in 0..NEW_KEYS_MAX {
                    stream.get_mut().1.refresh_traffic_keys().map_err(io::Error::other)?;
                    stream.flush().await?;
                    wire.place.taken.add(wire.kind, 22);
                }
                return drain(&mut stream.into_inner().0).await;
            }
        }
    }
}

/// Reads one request head; `None` if the client has gone.
async fn read_head(stream: &mut TlsStream<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while head_length(&head).is_none() {
        if head.len() > 64 << 10 || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

/// Writes `first` when the client has said hello, and `again` from then on.
fn after_hello(wire: Wire, first: &'static [u8], again: &'static [u8]) -> Task {
    Box::pin(async move {
        let mut stream = hello(wire).await?;
        stream.write_all(first).await?;
        if again.is_empty() {
            return drain(&mut stream).await;
        }
        loop {
            tokio::time::sleep(DRIP).await;
            stream.write_all(again).await?;
        }
    })
}

/// TLS 1.2 in clear: a hello, and a certificate that takes every byte that a message can have.
async fn giant(wire: Wire) -> io::Result<()> {
    let (place, kind) = (wire.place.clone(), wire.kind);
    let mut stream = hello(wire).await?;
    // Version, random, no session, ECDHE_ECDSA_AES128_GCM_SHA256, no compression, no extensions.
    let hello = [&b"\x03\x03"[..], &[7; 32], b"\x00\xc0\x2b\x00"].concat();
    let hello = [&b"\x02\x00\x00"[..], &[hello.len() as u8], &hello].concat();
    stream.write_all(&[&b"\x16\x03\x03\x00"[..], &[hello.len() as u8], &hello].concat()).await?;
    let first = [&b"\x0b\xff\xff\xff\xff\xff\xfc\xff\xff\xf9"[..], &[0x30; 16_374]].concat();
    for _ in 0..1_024 {
        stream.write_all(&[&b"\x16\x03\x03\x40\x00"[..], &first].concat()).await?;
        place.taken.add(kind, first.len());
    }
    drain(&mut stream).await
}

/// Reads the client's hello, or what there is of it.
async fn hello(wire: Wire) -> io::Result<TcpStream> {
    let mut stream = wire.stream;
    let mut bytes = [0; 4_096];
    let _ = stream.read(&mut bytes).await?;
    Ok(stream)
}

/// Says nothing more, and reads until the client goes.
pub(super) async fn drain(stream: &mut (impl AsyncReadExt + AsyncWrite + Unpin)) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}
