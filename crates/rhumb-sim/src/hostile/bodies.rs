//! Bodies that never end, come too slowly, break, lie about what they are, or grow when unpacked.

use std::sync::LazyLock;
use std::time::Duration;

use rhumb_core::outcome::Outcome::{BadCoding, BadHttp, NotFound, Ok as Fine, Reset, TooSlow};
use tokio::io::AsyncWriteExt;

use super::heads::{finish, hold, say};
use super::packed::{self, gzip};
use super::page::HTML;
use super::{Asked, End, Group, Kind, Serve, Task, Wire, page};
use crate::web::respond::Reply;

const HONEST: u32 = 3;
/// robots.txt and the honest pages.
const REST: u64 = 1 + HONEST as u64;
/// Visits of a URL that may do better next time.
const ATTEMPTS: u64 = 3;

const BODY: Kind = Kind { group: Group::Bodies, honest: HONEST, requests_max: REST + 1, ..Kind::BARE };
/// A page that is read, and shows it by a link that is followed.
const READ: &[End] = &[End::of("/", Fine), End::of("/found", NotFound)];

/// The bodies.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "body-endless",
        about: "a body without end, as fast as it is read",
        ends: &[End::of("/", Fine).cut().detail("cut at")],
        serve: Serve::Wire(endless),
        ..BODY
    },
    Kind {
        name: "body-drip",
        about: "a body at one byte a second",
        ends: &[End::of("/", Fine).cut().detail("bytes within")],
        serve: Serve::Wire(drip),
        ..BODY
    },
    Kind {
        name: "body-silent",
        about: "headers, and then silence",
        ends: &[End::of("/", TooSlow).cut().detail("bytes within")],
        requests_max: REST + ATTEMPTS,
        serve: Serve::Wire(silent),
        ..BODY
    },
    Kind {
        name: "body-reset",
        about: "resets the connection before the first byte of the body",
        ends: &[End::of("/", Reset).cut()],
        requests_max: REST + ATTEMPTS,
        serve: Serve::Wire(reset),
        ..BODY
    },
    Kind {
        name: "length-too-long",
        about: "announces more than it sends",
        ends: &[End::of("/", Fine).cut().detail("broke off")],
        serve: Serve::Wire(|wire| {
            say(wire, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n<p>Half a page")
        }),
        ..BODY
    },
    Kind {
        name: "length-too-short",
        about: "sends more than it announces, and what is left over looks like another answer",
        ends: &[End::of("/", Fine).detail("more came")],
        serve: Serve::Wire(|wire| {
            say(
                wire,
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>Enough</p>\
                  HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nwrong",
            )
        }),
        ..BODY
    },
    Kind {
        name: "length-enormous",
        about: "announces nine exabytes",
        ends: &[End::of("/", Fine).cut().detail("broke off")],
        serve: Serve::Wire(|wire| {
            say(
                wire,
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9223372036854775807\r\n\r\n<p>Some",
            )
        }),
        ..BODY
    },
    Kind {
        name: "chunk-size-bad",
        about: "a chunk whose size is no number",
        ends: &[End::of("/", BadHttp).cut().detail("chunk")],
        serve: Serve::Wire(|wire| say_chunked(wire, b"5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n")),
        ..BODY
    },
    Kind {
        name: "chunk-size-huge",
        about: "a chunk whose size does not fit into 64 bits",
        ends: &[End::of("/", BadHttp).cut().detail("chunk")],
        serve: Serve::Wire(|wire| say_chunked(wire, b"5\r\nhello\r\nfffffffffffffffffff\r\nworld\r\n0\r\n\r\n")),
        ..BODY
    },
    Kind {
        name: "chunk-extension",
        about: "a chunk extension of 1 MB",
        ends: &[End::of("/", BadHttp).cut().detail("chunk")],
        serve: Serve::Wire(chunk_extension),
        ..BODY
    },
    Kind {
        name: "chunk-trailers",
        about: "trailers without end behind the last chunk",
        ends: &[End::of("/", BadHttp).cut()],
        serve: Serve::Wire(chunk_trailers),
        ..BODY
    },
    Kind {
        name: "chunks-tiny",
        about: "100,000 chunks of one byte",
        ends: READ,
        requests_max: REST + 2,
        serve: Serve::Wire(chunks_tiny),
        ..BODY
    },
    Kind {
        name: "gzip-bomb",
        about: "64 MB of zeros in 64 KB",
        ends: &[End::of("/", Fine).cut().detail("expands")],
        serve: Serve::Reply(|_| coded("gzip", &BOMB)),
        ..BODY
    },
    Kind {
        name: "gzip-bomb-twice",
        about: "a gzip bomb in a gzip stream",
        ends: &[End::of("/", Fine).cut().detail("expands")],
        serve: Serve::Reply(|_| coded("gzip, gzip", &gzip(&BOMB))),
        ..BODY
    },
    Kind {
        name: "gzip-bomb-redirect",
        about: "a gzip bomb as the body of a redirect",
        ends: &[End::of("/", rhumb_core::outcome::Outcome::Redirect)],
        serve: Serve::Reply(|_| Reply { status: 302, ..coded("gzip", &BOMB) }.with_header("Location", "/page/1")),
        ..BODY
    },
    Kind {
        name: "gzip-twenty",
        about: "twenty layers of gzip",
        ends: &[End::of("/", BadCoding).detail("20 content codings")],
        serve: Serve::Reply(|_| coded(&["gzip"; 20].join(", "), &TWENTY)),
        ..BODY
    },
    Kind {
        name: "gzip-broken",
        about: "gzip that is damaged from its first block on",
        ends: &[End::of("/", BadCoding).detail("gzip stream is broken")],
        serve: Serve::Reply(|asked| gzip_damaged(asked, |_, rubbish| rubbish)),
        ..BODY
    },
    Kind {
        name: "gzip-half",
        about: "gzip that is damaged in the middle",
        ends: &[End::of("/", Fine).cut().detail("gzip stream is broken")],
        serve: Serve::Reply(|asked| gzip_damaged(asked, |sound, rubbish| [sound, rubbish].concat())),
        ..BODY
    },
    Kind {
        name: "gzip-short",
        about: "gzip that ends in the middle",
        ends: &[End::of("/", Fine).cut().detail("gzip stream ends early")],
        serve: Serve::Reply(|asked| gzip_damaged(asked, |sound, _| sound[..sound.len() / 2].to_vec())),
        ..BODY
    },
    Kind {
        name: "gzip-lie",
        about: "plain HTML that is called gzip",
        ends: &[End::of("/", Fine).detail("not gzip"), End::of("/found", NotFound)],
        requests_max: REST + 2,
        serve: Serve::Reply(|asked| found(asked).with_header("Content-Encoding", "gzip")),
        ..BODY
    },
    Kind {
        name: "coding-unknown",
        about: "a content coding that nobody knows",
        ends: &[End::of("/", BadCoding).detail("unknown content coding")],
        serve: Serve::Reply(|_| coded("snappy-9", b"\x00\x01\x02\x03\xff\xfe\x80\x81 sssss")),
        ..BODY
    },
    Kind {
        name: "nested",
        about: "a million nested elements",
        ends: READ,
        requests_max: REST + 2,
        serve: Serve::Reply(nested),
        ..BODY
    },
    Kind {
        name: "attributes-giant",
        about: "attributes of a megabyte, and a tag with 100,000 of them",
        ends: &[End::of("/", Fine).detail("links"), End::of("/found", NotFound)],
        requests_max: REST + 2,
        serve: Serve::Reply(attributes),
        ..BODY
    },
    Kind {
        name: "markup-open",
        about: "half a million unclosed comments, tags, tables and links",
        ends: &[End::of("/", Fine)],
        requests_max: REST + 2,
        serve: Serve::Reply(markup_open),
        ..BODY
    },
    Kind {
        name: "charset-lie",
        about: "UTF-16 that is called UTF-8, under a charset that does not exist",
        ends: &[End::of("/", Fine), End::of("/found", NotFound), End::of("/nonsense", Fine)],
        requests_max: REST + 3,
        serve: Serve::Reply(charset_lie),
        ..BODY
    },
    Kind {
        name: "type-lie",
        about: "HTML that is called an image, an image that is called HTML, an executable that is called text",
        ends: &[End::of("/", Fine), End::of("/image", Fine), End::of("/program", Fine), End::of("/html.png", Fine)],
        requests_max: REST + 4,
        serve: Serve::Reply(type_lie),
        ..BODY
    },
    Kind {
        name: "nuls",
        about: "NULs in text, tags, attributes and addresses",
        ends: READ,
        requests_max: REST + 3,
        serve: Serve::Reply(nuls),
        ..BODY
    },
    Kind {
        name: "controls",
        about: "terminal escapes and bidirectional overrides in title, links and text",
        ends: READ,
        requests_max: REST + 3,
        serve: Serve::Reply(controls),
        ..BODY
    },
];

static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| packed::bomb("", 0, 64));
static TWENTY: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..20).fold(b"<p>Here at last.</p>".to_vec(), |body, _| gzip(&body)));

fn coded(coding: &str, body: &[u8]) -> Reply {
    let reply = Reply::new(200, HTML, "").with_header("Content-Encoding", coding);
    Reply { body: body.to_vec(), ..reply }
}

/// A page with a link to `/found`.
fn found(asked: &Asked<'_>) -> Reply {
    if asked.path == "/" { page::home(asked.host, HONEST, ["/found".to_string()]) } else { page::not_found() }
}

/// The same with this in front of the link.
fn found_behind(asked: &Asked<'_>, front: &[u8]) -> Reply {
    if asked.path != "/" {
        return page::not_found();
    }
    let mut body = front.to_vec();
    body.extend_from_slice(b"<p><a href=\"/found\">found</a>\n");
    Reply { body, ..Reply::new(200, HTML, "") }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";

fn endless(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"\r\n").await?;
        let block = b"<p>and so on ".repeat(5_000);
        loop {
            wire.stream.write_all(&block).await?;
        }
    })
}

fn drip(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Content-Length: 10000\r\n\r\n").await?;
        for byte in b"<p>slowly, slowly ".repeat(600) {
            wire.stream.write_all(&[byte]).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    })
}

fn silent(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Content-Length: 10000\r\n\r\n").await?;
        hold(wire.stream).await
    })
}

fn reset(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Content-Length: 10000\r\n\r\n").await?;
        // What was sent must arrive before the reset overtakes it.
        tokio::time::sleep(Duration::from_millis(20)).await;
        wire.stream.set_zero_linger()
    })
}

fn say_chunked(mut wire: Wire, chunks: &'static [u8]) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Transfer-Encoding: chunked\r\n\r\n").await?;
        wire.stream.write_all(chunks).await?;
        finish(wire.stream).await
    })
}

fn chunk_extension(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5;extension=").await?;
        wire.stream.write_all(&b"x".repeat(1 << 20)).await?;
        wire.stream.write_all(b"\r\nhello\r\n0\r\n\r\n").await?;
        finish(wire.stream).await
    })
}

fn chunk_trailers(mut wire: Wire) -> Task {
    Box::pin(async move {
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n").await?;
        let block = b"X-Trailer: and so on\r\n".repeat(1_000);
        loop {
            wire.stream.write_all(&block).await?;
        }
    })
}

fn chunks_tiny(mut wire: Wire) -> Task {
    Box::pin(async move {
        if wire.path != "/" {
            let reply = page::not_found().with_header("Connection", "close");
            wire.stream.write_all(&super::server::put_reply(&reply)).await?;
            return finish(wire.stream).await;
        }
        wire.stream.write_all(OK).await?;
        wire.stream.write_all(b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
        let mut out = Vec::with_capacity(600_000);
        let mut text = b"<a href=/found>found</a> ".to_vec();
        text.resize(100_000, b'x');
        for byte in text {
            out.extend_from_slice(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']);
        }
        out.extend_from_slice(b"0\r\n\r\n");
        wire.stream.write_all(&out).await?;
        finish(wire.stream).await
    })
}

/// A body made of a sound gzip member and of one that begins like one.
fn gzip_damaged(asked: &Asked<'_>, damage: fn(Vec<u8>, Vec<u8>) -> Vec<u8>) -> Reply {
    let sound = gzip(format!("<p>{}</p>", page::text(asked.host, 30_000)).as_bytes());
    // Behind the header of ten bytes stands a block of a type that does not exist.
    let mut rubbish = sound.clone();
    rubbish[10..].fill(0xff);
    coded("gzip", &damage(sound, rubbish))
}

fn nested(asked: &Asked<'_>) -> Reply {
    found_behind(asked, &b"<div><b>".repeat(500_000))
}

fn attributes(asked: &Asked<'_>) -> Reply {
    let mut front = format!("<p title=\"{}\">", "t".repeat(1 << 20));
    front.push_str(&format!("<a href=\"/{}\">long</a>", "h".repeat(1 << 20)));
    front.push_str(&format!("<img alt=\"{}\">", "&amp;".repeat(200_000)));
    front.push_str("<p");
    (0..100_000).for_each(|n| front.push_str(&format!(" a{n}=b")));
    front.push('>');
    found_behind(asked, front.as_bytes())
}

fn markup_open(asked: &Asked<'_>) -> Reply {
    let front =
        ["<a href=/x><table><td>".repeat(50_000), "<svg><title><math>".repeat(50_000), "<!--<!".repeat(200_000)];
    found_behind(asked, front.concat().as_bytes())
}

fn charset_lie(asked: &Asked<'_>) -> Reply {
    match asked.path {
        "/" => {
            let text =
                "<!doctype html><title>Wide</title><a href=\"/found\">found</a><a href=\"/nonsense\">nonsense</a>";
            let body = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
            Reply { body, ..Reply::new(200, "text/html; charset=utf-8", "") }
        }
        "/nonsense" => {
            let body =
                b"<meta charset=klingon><p>\xff\xfe\x80\x81\xc0\xaf\xed\xa0\x80\xf8 bytes of no encoding</p>".to_vec();
            Reply { body, ..Reply::new(200, "text/html; charset=x-does-not-exist", "") }
        }
        _ => page::not_found(),
    }
}

fn type_lie(asked: &Asked<'_>) -> Reply {
    let of = |content_type: &str, body: &[u8]| Reply { body: body.to_vec(), ..Reply::new(200, content_type, "") };
    match asked.path {
        "/" => {
            let links = ["/image", "/program", "/html.png"].map(str::to_string);
            page::home(asked.host, HONEST, links)
        }
        "/image" => of(HTML, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01<a href=/in-an-image>no link</a>"),
        "/program" => of("text/plain", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"),
        "/html.png" => of("image/png", b"<!doctype html><title>No image</title><p>but a page</p>"),
        _ => page::not_found(),
    }
}

fn nuls(asked: &Asked<'_>) -> Reply {
    let mut front =
        b"<!doctype html><title>N\0U\0L</title><p\0 cl\0ass=\"a\0b\">te\0xt</p><a href=\"/nul\0nul\">x</a>".to_vec();
    front.extend_from_slice(&[0; 100_000]);
    found_behind(asked, &front)
}

fn controls(asked: &Asked<'_>) -> Reply {
    let front = "<!doctype html><title>\x1b]0;owned\x07\x1b[2J\x1b[31mred \u{202e}txt.exe\u{2066}</title>\
                 <p>\x08\x08\x08\u{9b}31m\u{85}\u{2028}</p><a href=\"/\x1b[31m\u{202e}\">\x1b[31m\u{202e}text</a>";
    found_behind(asked, front.as_bytes())
}
