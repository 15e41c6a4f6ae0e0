//! Strange robots.txt files, and sitemaps that are not what they say.

use std::sync::LazyLock;

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome::{Ok as Fine, RobotsDisallowed, RobotsUnreachable};
use tokio::io::AsyncWriteExt;

use super::heads::hold;
use super::packed;
use super::server::put_reply;
use super::{Asked, End, Group, Kind, Serve, Task, Wire, page};
use crate::web::respond::Reply;

const HONEST: u32 = 3;
/// Attempts to get a robots.txt before the host is given up, in the settings of the test.
const FAILURES: u64 = 4;

const ROBOTS: Kind =
    Kind { group: Group::Robots, honest: HONEST, own_robots: true, requests_max: 2 + HONEST as u64, ..Kind::BARE };
/// Nothing may be fetched for want of rules.
const CLOSED: Kind = Kind {
    honest: 0,
    ends: &[End::of("/", RobotsUnreachable).held(Reason::RobotsUnreachable)],
    requests_max: FAILURES,
    ..ROBOTS
};
/// Everything may be.
const OPEN: Kind =
    Kind { ends: &[End::of("/", Fine), End::of("/private/", Fine)], requests_max: OPEN_REQUESTS, ..ROBOTS };
/// robots.txt, the home page, the honest pages and `/private/`.
const OPEN_REQUESTS: u64 = 3 + HONEST as u64;
/// `/private/` may not be, and the file says so where it can be read.
const RULED: Kind = Kind { ends: &[End::of("/", Fine), End::of("/private/", RobotsDisallowed)], ..ROBOTS };

const RULES: &str = "User-agent: *\nDisallow: /private/\n";

/// The robots.txt files.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "robots-500",
        about: "robots.txt is an internal error",
        serve: Serve::Reply(|asked| robots(asked, || Reply::new(500, "text/plain", "out of order"))),
        ..CLOSED
    },
    Kind {
        name: "robots-429",
        about: "robots.txt is answered with \"too many requests\"",
        serve: Serve::Reply(|asked| robots(asked, || Reply::new(429, "text/plain", "busy"))),
        ..CLOSED
    },
    Kind { name: "robots-timeout", about: "robots.txt is never answered", serve: Serve::Wire(timeout), ..CLOSED },
    Kind { name: "robots-half", about: "robots.txt breaks off before it is whole", serve: Serve::Wire(half), ..CLOSED },
    Kind {
        name: "robots-coding",
        about: "robots.txt is in a coding that cannot be read",
        serve: Serve::Reply(|asked| {
            robots(asked, || {
                rules(b"\x1f\x8b\x08\x00broken broken broken".to_vec()).with_header("Content-Encoding", "gzip")
            })
        }),
        ..CLOSED
    },
    Kind {
        name: "robots-loop",
        about: "robots.txt redirects to itself; beyond five redirects there is none (RFC 9309)",
        requests_max: OPEN_REQUESTS + 5,
        serve: Serve::Reply(|asked| robots(asked, || Reply::redirect(302, "/robots.txt"))),
        ..OPEN
    },
    Kind {
        name: "robots-private",
        about: "robots.txt redirects to this machine",
        serve: Serve::Reply(|asked| {
            robots(asked, || Reply::redirect(302, &format!("http://127.9.9.9:{}/robots.txt", asked.place.port)))
        }),
        ..CLOSED
    },
    Kind {
        name: "robots-html",
        about: "robots.txt is a web page",
        serve: Serve::Reply(|asked| robots(asked, || page::home(asked.host, 0, []))),
        ..OPEN
    },
    Kind {
        name: "robots-50mb",
        about: "robots.txt has 50 MB; the rule stands at its beginning",
        serve: Serve::Wire(huge),
        ..RULED
    },
    Kind {
        name: "robots-bomb",
        about: "robots.txt is a gzip bomb; the rule stands at its beginning",
        serve: Serve::Reply(|asked| robots(asked, || rules(BOMB.clone()).with_header("Content-Encoding", "gzip"))),
        ..RULED
    },
    Kind {
        name: "robots-bom",
        about: "robots.txt begins with a byte order mark",
        serve: Serve::Reply(|asked| robots(asked, || rules(format!("\u{feff}{RULES}").into_bytes()))),
        ..RULED
    },
    Kind {
        name: "robots-stars",
        about: "rules with thousands of * each",
        serve: Serve::Reply(|asked| robots(asked, stars)),
        ..RULED
    },
    Kind {
        name: "robots-binary",
        about: "robots.txt is binary rubbish with one rule in it",
        serve: Serve::Reply(|asked| {
            robots(asked, || rules([&[0, 255, 254, 13, 0, 10, 7, 10][..], RULES.as_bytes(), &[0; 4000]].concat()))
        }),
        ..RULED
    },
    Kind {
        name: "robots-delay",
        about: "robots.txt asks for a Crawl-delay of three years",
        ends: &[End::of("/", RobotsDisallowed)],
        honest: 0,
        requests_max: 1,
        serve: Serve::Reply(|asked| {
            robots(asked, || Reply::new(200, "text/plain", "User-agent: *\nCrawl-delay: 99999999\n"))
        }),
        ..ROBOTS
    },
    Kind {
        name: "sitemap-bomb",
        about: "a sitemap that is a gzip bomb",
        requests_max: OPEN_REQUESTS + 4,
        serve: Serve::Reply(|asked| sitemap(asked, "/sitemap.xml.gz", |_| Some(sitemap_bomb()))),
        ..OPEN
    },
    Kind {
        name: "sitemap-entities",
        about: "a sitemap with a DTD whose entities grow tenfold ten times, and one that reads a file",
        requests_max: OPEN_REQUESTS + 4,
        serve: Serve::Reply(|asked| sitemap(asked, "/sitemap.xml", |_| Some(xml(ENTITIES)))),
        ..OPEN
    },
    Kind {
        name: "sitemap-endless",
        about: "a sitemap index that names sitemap indexes that name sitemap indexes",
        requests_max: OPEN_REQUESTS + 60,
        serve: Serve::Reply(|asked| sitemap(asked, "/sitemap-0.xml", sitemap_endless)),
        ..OPEN
    },
];

/// robots.txt by this function, the rest by heart.
fn robots(asked: &Asked<'_>, robots: impl FnOnce() -> Reply) -> Reply {
    match asked.path {
        "/robots.txt" => robots(),
        "/" => page::home(asked.host, HONEST, ["/private/".to_string()]),
        "/private/" => page::html("Private", "<p>Robots are asked not to read this.</p>", [""; 0]),
        _ => page::not_found(),
    }
}

fn rules(body: Vec<u8>) -> Reply {
    Reply { body, ..Reply::new(200, "text/plain", "") }
}

async fn other(mut wire: Wire) -> std::io::Result<()> {
    let asked = Asked { host: &wire.kind.host(), path: &wire.path, cookie: None, place: &wire.place };
    let reply = robots(&asked, page::not_found).with_header("Connection", "close");
    wire.stream.write_all(&put_reply(&reply)).await
}

fn timeout(wire: Wire) -> Task {
    Box::pin(async move { if wire.path == "/robots.txt" { hold(wire.stream).await } else { other(wire).await } })
}

fn half(mut wire: Wire) -> Task {
    Box::pin(async move {
        if wire.path != "/robots.txt" {
            return other(wire).await;
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5000\r\n\r\n";
        wire.stream.write_all(format!("{head}User-agent: *\nAllow: /\n").as_bytes()).await?;
        super::heads::finish(wire.stream).await
    })
}

fn huge(mut wire: Wire) -> Task {
    Box::pin(async move {
        if wire.path != "/robots.txt" {
            return other(wire).await;
        }
        wire.stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 50000000\r\n\r\n")
            .await?;
        wire.stream.write_all(RULES.as_bytes()).await?;
        let block = b"Disallow: /nothing/of/this/sort/\n".repeat(1_000);
        let mut left = 50_000_000 - RULES.len();
        while left > 0 {
            let part = left.min(block.len());
            wire.stream.write_all(&block[..part]).await?;
            left -= part;
        }
        super::heads::finish(wire.stream).await
    })
}

static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| packed::bomb(RULES, b'\n', 64));

fn stars() -> Reply {
    let mut text = RULES.to_string();
    for n in 0..20 {
        text.push_str(&format!("Disallow: /{}x{n}$\n", "*p".repeat(2_000)));
        text.push_str(&format!("Disallow: /{}y{n}$\n", "*".repeat(8_000)));
    }
    rules(text.into_bytes())
}

fn xml(text: &str) -> Reply {
    Reply::new(200, "application/xml", text)
}

/// A robots.txt that names a sitemap, and that sitemap.
fn sitemap(asked: &Asked<'_>, path: &str, file: impl FnOnce(&Asked<'_>) -> Option<Reply>) -> Reply {
    let port = asked.place.port;
    let named = || Reply::new(200, "text/plain", &format!("Sitemap: http://{}:{port}{path}\n", asked.host));
    if asked.path.starts_with("/sitemap") {
        return file(asked).unwrap_or_else(page::not_found);
    }
    robots(asked, named)
}

fn sitemap_bomb() -> Reply {
    static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let start = "<?xml version=\"1.0\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
        packed::bomb(start, b'\n', 256)
    });
    Reply { body: FILE.clone(), ..Reply::new(200, "application/gzip", "") }
}

const ENTITIES: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [\n\
    <!ENTITY file SYSTEM \"file:///etc/passwd\">\n\
    <!ENTITY a \"aaaaaaaaaa\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\n\
    <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">\n<!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">\n\
    <!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;\">\n<!ENTITY f \"&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;\">\n\
    <!ENTITY g \"&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;\">\n<!ENTITY h \"&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;\">\n\
    <!ENTITY i \"&h;&h;&h;&h;&h;&h;&h;&h;&h;&h;\">\n<!ENTITY j \"&i;&i;&i;&i;&i;&i;&i;&i;&i;&i;\">\n]>\n\
    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n\
    <url><loc>/&j;</loc></url><url><loc>/&file;</loc></url>\n</urlset>\n";

fn sitemap_endless(asked: &Asked<'_>) -> Option<Reply> {
    let n: u64 = asked.path.strip_prefix("/sitemap-")?.strip_suffix(".xml")?.parse().ok()?;
    let port = asked.place.port;
    let mut out =
        "<?xml version=\"1.0\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_string();
    for k in 1..=5 {
        let next = n.saturating_mul(5).saturating_add(k);
        out.push_str(&format!("<sitemap><loc>http://{}:{port}/sitemap-{next}.xml</loc></sitemap>\n", asked.host));
    }
    out.push_str("</sitemapindex>\n");
    Some(xml(&out))
}
