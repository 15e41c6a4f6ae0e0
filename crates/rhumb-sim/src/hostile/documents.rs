//! Feeds and PDFs that hurt whoever reads them.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression, FlushCompress};
use rhumb_core::outcome::Outcome::{NotFound, Ok as Fine};
use tokio::io::AsyncWriteExt;

use super::{Asked, End, Group, Kind, Serve, Task, Wire, page};
use crate::web::respond::Reply;

const HONEST: u32 = 3;
/// robots.txt and the honest pages.
const REST: u64 = 1 + HONEST as u64;

/// A document whose entries all lead to one address, so that what was read shows.
const DOCUMENT: Kind = Kind { group: Group::Documents, honest: HONEST, requests_max: REST + 2, ..Kind::BARE };

const ITEM: &str = "<item><link>/found</link></item>";
const RSS: &str = "application/rss+xml";
const PDF: &str = "application/pdf";

/// The documents.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "feed-endless",
        about: "a feed that never ends",
        ends: &[End::of("/", Fine).cut().detail("feed: too_many_urls"), End::of("/found", NotFound)],
        serve: Serve::Wire(endless),
        ..DOCUMENT
    },
    Kind {
        name: "feed-entries",
        about: "a feed with 240,000 entries",
        ends: &[End::of("/", Fine).detail("feed: too_many_urls"), End::of("/found", NotFound)],
        serve: Serve::Reply(|asked| {
            at_root(asked, RSS, || format!("<rss><channel>{}</channel></rss>", ITEM.repeat(240_000)))
        }),
        ..DOCUMENT
    },
    Kind {
        name: "feed-entities",
        about: "a feed with a DTD whose entities grow tenfold ten times",
        ends: &[End::of("/", Fine).detail("feed: doctype")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| at_root(asked, RSS, laughs)),
        ..DOCUMENT
    },
    Kind {
        name: "feed-nested",
        about: "a feed with a million elements inside each other",
        ends: &[End::of("/", Fine).detail("feed: too_deep"), End::of("/found", NotFound)],
        serve: Serve::Reply(|asked| at_root(asked, RSS, || format!("<rss><channel>{ITEM}{}", "<a>".repeat(1_000_000)))),
        ..DOCUMENT
    },
    Kind {
        name: "feed-base",
        about: "a feed whose base address is long, with 100,000 addresses relative to it",
        ends: &[End::of("/", Fine).detail("feed: too_large")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| {
            at_root(asked, "application/atom+xml", || {
                let entry = "<entry><link href='?'/></entry>".repeat(100_000);
                format!("<feed xml:base='http://127.9.9.9/{}/'>{entry}</feed>", "x".repeat(4_000))
            })
        }),
        ..DOCUMENT
    },
    Kind {
        name: "feed-json",
        about: "a JSON feed with a million open brackets",
        ends: &[End::of("/", Fine).detail("feed: "), End::of("/found", NotFound)],
        serve: Serve::Reply(|asked| {
            at_root(asked, "application/feed+json", || {
                let begun = r#"{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1","url":"/found"}"#;
                format!("{begun},{{\"x\":{}", "[".repeat(1_000_000))
            })
        }),
        ..DOCUMENT
    },
    Kind {
        name: "pdf-bomb",
        about: "a PDF of 10 KB with a page of 2 GB",
        ends: &[End::of("/", Fine).detail("limit")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| pdf(asked, || document(&bomb(), "/Filter[/FlateDecode/FlateDecode]", &[]))),
        ..DOCUMENT
    },
    Kind {
        name: "pdf-slow",
        about: "a PDF of 50 KB with drawings in drawings in a page, which takes hours",
        ends: &[End::of("/", Fine).detail("time limit")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| pdf(asked, slow)),
        ..DOCUMENT
    },
    Kind {
        name: "pdf-loop",
        about: "a PDF whose drawing contains itself",
        ends: &[End::of("/", Fine).detail("PDF not read")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| pdf(asked, || document(b"/X Do", "", &[b"/X Do"]))),
        ..DOCUMENT
    },
    Kind {
        name: "pdf-half",
        about: "a PDF that breaks off in the middle",
        ends: &[End::of("/", Fine).detail("PDF not read")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| {
            pdf(asked, || {
                let mut whole = document(b"BT (words) Tj ET", "", &[]);
                whole.truncate(whole.len() / 3);
                whole
            })
        }),
        ..DOCUMENT
    },
    Kind {
        name: "pdf-lie",
        about: "a web page that begins as a PDF does",
        ends: &[End::of("/", Fine).detail("PDF not read")],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| pdf(asked, || b"%PDF-1.7\n<!doctype html><a href=/found>found</a>".to_vec())),
        ..DOCUMENT
    },
];

fn at_root(asked: &Asked<'_>, content_type: &str, body: impl FnOnce() -> String) -> Reply {
    if asked.path == "/" { Reply::new(200, content_type, &body()) } else { page::not_found() }
}

fn pdf(asked: &Asked<'_>, body: impl FnOnce() -> Vec<u8>) -> Reply {
    if asked.path == "/" { Reply { body: body(), ..Reply::new(200, PDF, "") } } else { page::not_found() }
}

fn endless(mut wire: Wire) -> Task {
    Box::pin(async move {
        if wire.path != "/" {
            let reply = page::not_found().with_header("Connection", "close");
            wire.stream.write_all(&super::server::put_reply(&reply)).await?;
            return super::heads::finish(wire.stream).await;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {RSS}\r\nConnection: close\r\n\r\n<rss><channel>");
        wire.stream.write_all(head.as_bytes()).await?;
        let block = ITEM.repeat(1_000);
        loop {
            wire.stream.write_all(block.as_bytes()).await?;
        }
    })
}

fn laughs() -> String {
    let tenfold = |i: u32| format!("<!ENTITY l{i} \"{}\">", format!("&l{};", i - 1).repeat(10));
    let laughs: String = (1..=10).map(tenfold).collect();
    format!("<!DOCTYPE rss [<!ENTITY l0 \"ha\">{laughs}]><rss><channel><title>&l10;</title>{ITEM}</channel></rss>")
}

/// A PDF of one page: what is drawn, how that is packed, and the drawings that may be used in it, each with those that may be used
/// in it in turn: `X` is the first, `Y` the second.
fn document(content: &[u8], packed: &str, drawings: &[&[u8]]) -> Vec<u8> {
    let stream = |content: &[u8], more: &str| {
        let mut out = format!("<</Length {}{more}>>\nstream\n", content.len()).into_bytes();
        out.extend_from_slice(content);
        out.extend_from_slice(b"\nendstream");
        out
    };
    let resources = "/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R/Y 7 0 R>>>>";
    let page = format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R{resources}>>");
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        page.into_bytes(),
        stream(content, packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    let drawing = format!("/Type/XObject/Subtype/Form/BBox[0 0 9 9]{resources}");
    objects.extend(drawings.iter().map(|content| stream(content, &drawing)));
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (n, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", out.len()));
        out.extend_from_slice(format!("{} 0 obj\n", n + 1).as_bytes());
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    let start = out.len();
    let end = format!("{table}trailer\n<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    out.extend_from_slice(end.as_bytes());
    out
}

/// Two gigabytes of spaces, packed twice. All but the first piece are the same bytes, so that it is made in no time; nobody gets to
/// the checksum at its end, which is missing.
fn bomb() -> Vec<u8> {
    let mut packer = Compress::new(Compression::best(), true);
    let (space, mut out) = (vec![b' '; 1 << 20], Vec::with_capacity(1 << 16));
    let mut first = 0;
    for _ in 0..2 {
        first = out.len();
        // There is room for all of it.
        let _ = packer.compress_vec(&space, &mut out, FlushCompress::Full);
    }
    let piece = out[first..].to_vec();
    (0..2_000).for_each(|_| out.extend_from_slice(&piece));
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing into memory cannot fail.
    let _ = packer.write_all(&out);
    packer.finish().unwrap_or_default()
}

/// A thousand drawings of a thousand drawings of a thousand words.
fn slow() -> Vec<u8> {
    let (x, y) = (b"/Y Do ".repeat(1_000), b"BT /F 9 Tf (over and over) Tj ET ".repeat(1_000));
    document(&b"/X Do ".repeat(1_000), "", &[&x, &y])
}
