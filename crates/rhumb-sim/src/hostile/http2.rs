//! HTTP/2 out of order: floods of frames that say nothing, heads without end, streams that nobody opened.
//!
//! The frames are written by hand (`frames.rs`), over TLS without fault. Each kind says first something to a request for
//! `/`, and then, if it floods, the same again and again. How much of that a client took before it hung up is counted
//! ([`super::Taken`]): a client without a budget would take [`FLOOD_BYTES_MAX`].

use rhumb_core::outcome::Outcome;
use tokio::io::AsyncWriteExt;

use super::certs::Showing;
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, NOBODYS, OK, PADDED, PING, PRIORITY, PUSH_PROMISE,
    RST_STREAM, SETTINGS, Server, WINDOW_UPDATE, field, frame, remembered,
};
use super::tls::drain;
use super::{End, Group, Kind, Serve, Task, Wire};

/// What a flood comes to if nobody stops it.
const FLOOD_BYTES_MAX: usize = 256 << 20;
/// What is written at once.
const WAVE_BYTES: usize = 16 << 10;

const KIND: Kind = Kind {
    group: Group::Http2,
    https: true,
    ends: &[End::of("/", Outcome::BadHttp)],
    requests_max: 6,
    own_robots: true,
    ..Kind::BARE
};

/// The trouble begins behind the head.
const CUT: Kind = Kind { ends: &[End::of("/", Outcome::BadHttp).cut()], ..KIND };

/// What a server says on the stream of a request.
type Says = fn(u32) -> Vec<u8>;

const NOTHING: Says = |_| Vec::new();
const HEAD: Says = |stream| frame(HEADERS, END_HEADERS, stream, OK);

/// The kinds.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "h2-silence",
        about: "takes a request and says nothing at all",
        ends: &[End::of("/", Outcome::HeadTimeout)],
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-zero-window",
        about: "allows no data and no stream, and never answers",
        ends: &[End::of("/", Outcome::HeadTimeout)],
        // SETTINGS_MAX_CONCURRENT_STREAMS 0, SETTINGS_INITIAL_WINDOW_SIZE 0.
        serve: Serve::Raw(|wire| say(wire, &[0, 3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0], NOTHING, NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-never-reads",
        about: "answers with pings for ever and reads none of the replies",
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, |_| frame(PING, 0, 0, b"12345678"))),
        ..KIND
    },
    Kind {
        name: "h2-stalled-body",
        about: "a head, and then nothing",
        ends: &[End::of("/", Outcome::TooSlow).cut()],
        serve: Serve::Raw(|wire| say(wire, &[], HEAD, NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-crumbs",
        about: "a page in twenty thousand frames of ten bytes",
        ends: &[End::of("/", Outcome::Ok)],
        serve: Serve::Raw(|wire| {
            let crumbs: Says = |s| {
                [HEAD(s), frame(DATA, 0, s, b"<p>crumbs ").repeat(20_000), frame(DATA, END_STREAM, s, b"")].concat()
            };
            say(wire, &[], crumbs, NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-idle-flood",
        about: "a page as it should be, and then pings for ever",
        ends: &[End::of("/", Outcome::Ok)],
        serve: Serve::Raw(|wire| {
            say(
                wire,
                &[],
                |s| [HEAD(s), frame(DATA, END_STREAM, s, b"<p>page")].concat(),
                |_| frame(PING, 0, 0, &[7; 8]),
            )
        }),
        ..KIND
    },
    Kind {
        name: "h2-reset",
        about: "resets every stream",
        ends: &[End::of("/", Outcome::Reset)],
        serve: Serve::Raw(|wire| say(wire, &[], |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 2]), NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-reset-body",
        about: "resets the stream before the first byte of a body",
        ends: &[End::of("/", Outcome::Reset).cut()],
        serve: Serve::Raw(|wire| {
            say(wire, &[], |s| [HEAD(s), frame(RST_STREAM, 0, s, &[0, 0, 0, 2])].concat(), NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-reset-storm",
        about: "resets streams that were never opened, for ever",
        serve: Serve::Raw(|wire| say(wire, &[], HEAD, |stream| frame(RST_STREAM, 0, stream + 2, &[0, 0, 0, 8]))),
        ..CUT
    },
    Kind {
        name: "h2-goaway",
        about: "says goodbye to every request",
        ends: &[End::of("/", Outcome::Reset)],
        serve: Serve::Raw(|wire| say(wire, &[], |_| frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]), NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-goodbye",
        about: "says goodbye, and then answers all the same",
        ends: &[End::of("/", Outcome::Ok)],
        serve: Serve::Raw(|wire| {
            let goodbye: Says = |s| {
                let last = [&s.to_be_bytes()[..], &[0; 4]].concat();
                [frame(GOAWAY, 0, 0, &last), HEAD(s), frame(DATA, END_STREAM, s, b"<p>the last page")].concat()
            };
            say(wire, &[], goodbye, NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-goaway-storm",
        about: "says for ever that it will go, and does not",
        serve: Serve::Raw(|wire| {
            say(wire, &[], NOTHING, |_| frame(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]))
        }),
        ..KIND
    },
    Kind {
        name: "h2-continuation",
        about: "a head of empty CONTINUATION frames without end",
        ends: &[End::of("/", Outcome::HeadTooLarge)],
        serve: Serve::Raw(|wire| say(wire, &[], |s| frame(HEADERS, 0, s, OK), |s| frame(CONTINUATION, 0, s, b""))),
        ..KIND
    },
    Kind {
        name: "h2-endless-head",
        about: "a head of header fields without end",
        ends: &[End::of("/", Outcome::HeadTooLarge)],
        serve: Serve::Raw(|wire| {
            let more: Says = |s| frame(CONTINUATION, 0, s, &field("x-more", &"y".repeat(12_000)));
            say(wire, &[], |s| frame(HEADERS, 0, s, OK), more)
        }),
        ..KIND
    },
    Kind {
        name: "h2-head-bomb",
        about: "a small head that HPACK makes a hundred times as large",
        ends: &[End::of("/", Outcome::BadHttp).detail("larger than allowed")],
        serve: Serve::Raw(|wire| {
            let bomb: Says = |s| {
                let block = [OK, &remembered("x-bomb", &"y".repeat(4_000)), &[0xbe; 150]].concat();
                frame(HEADERS, END_HEADERS | END_STREAM, s, &block)
            };
            say(wire, &[], bomb, NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-giant-bomb",
        about: "a head of 16 KiB that HPACK makes 60 MiB",
        ends: &[End::of("/", Outcome::HeadTooLarge)],
        serve: Serve::Raw(|wire| {
            let bomb: Says = |s| {
                let first = [OK, &remembered("x-bomb", &"y".repeat(4_000))].concat();
                let rest = vec![0xbe; 16 << 10];
                [frame(HEADERS, 0, s, &first), frame(CONTINUATION, END_HEADERS, s, &rest)].concat()
            };
            say(wire, &[], bomb, NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-interim",
        about: "early hints for ever and never an answer",
        serve: Serve::Raw(|wire| {
            // Status 103: the name is entry 8 of the static table.
            let hints: Says = |s| {
                let block = [b"\x08\x03103".to_vec(), field("link", "</a.css>; rel=preload")].concat();
                frame(HEADERS, END_HEADERS, s, &block)
            };
            say(wire, &[], NOTHING, hints)
        }),
        ..KIND
    },
    Kind {
        name: "h2-empty-data",
        about: "a body of empty DATA frames without end",
        serve: Serve::Raw(|wire| say(wire, &[], HEAD, |stream| frame(DATA, 0, stream, b""))),
        ..CUT
    },
    Kind {
        name: "h2-padding",
        about: "a body of one byte in 256 of padding, for ever",
        serve: Serve::Raw(|wire| {
            say(wire, &[], HEAD, |s| frame(DATA, PADDED, s, &[&[255, b'x'][..], &[0; 255]].concat()))
        }),
        ..CUT
    },
    Kind {
        name: "h2-pings",
        about: "pings for ever in the middle of a body",
        serve: Serve::Raw(|wire| {
            say(wire, &[], |s| [HEAD(s), frame(DATA, 0, s, b"<p>half")].concat(), |_| frame(PING, 0, 0, b"12345678"))
        }),
        ..CUT
    },
    Kind {
        name: "h2-settings",
        about: "new settings for ever",
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, |_| frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]))),
        ..KIND
    },
    Kind {
        name: "h2-windows",
        about: "window updates for ever",
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
        ..KIND
    },
    Kind {
        name: "h2-priorities",
        about: "priorities of streams for ever",
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, |s| frame(PRIORITY, 0, s, &[0, 0, 0, 0, 7]))),
        ..KIND
    },
    Kind {
        name: "h2-unknown-frames",
        about: "frames of a kind that nobody knows, for ever",
        serve: Serve::Raw(|wire| say(wire, &[], NOTHING, |_| frame(NOBODYS, 0xff, 0, &[7; 100]))),
        ..KIND
    },
    Kind {
        name: "h2-strange-streams",
        about: "data on streams that nobody opened",
        serve: Serve::Raw(|wire| say(wire, &[], HEAD, |stream| frame(DATA, 0, stream + 100, &[b'x'; 1_000]))),
        ..CUT
    },
    Kind {
        name: "h2-push",
        about: "promises answers to requests that nobody made",
        serve: Serve::Raw(|wire| {
            let block = |s| frame(PUSH_PROMISE, END_HEADERS, s, &[&[0, 0, 0, 2][..], &[0x82, 0x87, 0x84]].concat());
            say(wire, &[], block, NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-data-first",
        about: "a body without a head",
        serve: Serve::Raw(|wire| say(wire, &[], |stream| frame(DATA, END_STREAM, stream, b"<p>body"), NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-no-status",
        about: "a head without a status",
        serve: Serve::Raw(|wire| {
            say(wire, &[], |s| frame(HEADERS, END_HEADERS | END_STREAM, s, &field("a", "b")), NOTHING)
        }),
        ..KIND
    },
    Kind {
        name: "h2-length-lie",
        about: "a body that is shorter than the head says",
        serve: Serve::Raw(|wire| {
            let lie: Says = |s| {
                let head = frame(HEADERS, END_HEADERS, s, &[OK, &field("content-length", "500")].concat());
                [head, frame(DATA, END_STREAM, s, b"<p>short")].concat()
            };
            say(wire, &[], lie, NOTHING)
        }),
        ..CUT
    },
    Kind {
        name: "h2-giant-frame",
        about: "a frame that says it has 16 MiB",
        serve: Serve::Raw(|wire| say(wire, &[], |_| b"\xff\xff\xff\x00\x00\x00\x00\x00\x01xxxx".to_vec(), NOTHING)),
        ..KIND
    },
    Kind {
        name: "h2-not",
        about: "agrees on HTTP/2 and speaks HTTP/1.1",
        serve: Serve::Raw(|wire| {
            say(wire, &[], |_| b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec(), NOTHING)
        }),
        ..KIND
    },
];

/// Greets with these settings, answers a request for `/` with `first`, and then says `again` until nobody listens.
fn say(wire: Wire, settings: &'static [u8], first: Says, again: Says) -> Task {
    Box::pin(async move {
        let Wire { stream, kind, tls, place, .. } = wire;
        let Some(certificates) = place.certificates.clone().filter(|_| tls) else { return Ok(()) };
        let stream = certificates.accept(stream, &kind.host(), Showing::Good, true).await?;
        let mut server = Server::greet(stream, settings).await?;
        let id = server.request().await?;
        let mut stream = server.stream;
        stream.write_all(&first(id)).await?;
        stream.flush().await?;
        let one = again(id);
        if one.is_empty() {
            return drain(&mut stream).await;
        }
        let wave = one.repeat(WAVE_BYTES.div_ceil(one.len()));
        let mut sent = 0;
        while sent < FLOOD_BYTES_MAX {
            stream.write_all(&wave).await?;
            stream.flush().await?;
            sent += wave.len();
            place.taken.add(kind, wave.len());
        }
        drain(&mut stream).await
    })
}
