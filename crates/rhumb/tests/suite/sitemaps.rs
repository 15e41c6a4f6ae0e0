//! Sitemaps in a crawl: those that robots.txt names are fetched as pages are, what they list is crawled, and none leads further
//! than it may.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;

use rhumb_core::record::Record;

use crate::common::{Place, json, records, rhumb, run};
use crate::web::odd::{Heard, answer, ruled};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\nSitemap: /index.xml\nSitemap: http://elsewhere.example/s.xml\nSitemap: http://[\n";

/// A host with a page that links nowhere, and sitemaps: an index of a packed sitemap, of a page that is none, of an entity bomb, and of
/// indexes inside each other.
fn host() -> (String, Heard) {
    ruled("200 OK", ROBOTS, |path, stream: &mut TcpStream| {
        let origin = format!("http://{}", stream.local_addr().expect("address"));
        let index = |names: &[&str]| {
            let names: String = names.iter().map(|n| format!("<sitemap><loc>{origin}/{n}</loc></sitemap>")).collect();
            format!("<sitemapindex>{names}</sitemapindex>")
        };
        match path {
            "/" => answer(stream, "200 OK", "<p>nothing here"),
            "/listed" | "/feed-item" => answer(stream, "200 OK", "<p>a page that nobody links to"),
            "/index.xml" => {
                answer(stream, "200 OK", &index(&["a.xml.gz", "page.html", "laughs.xml", "deeper.xml", "moved.xml"]))
            }
            "/moved.xml" => {
                let _ = write!(stream, "HTTP/1.1 302 Found\r\nLocation: /feed.xml\r\nContent-Length: 0\r\n\r\n");
            }
            "/feed.xml" => {
                let body = format!("<rss><channel><item><link>{origin}/feed-item</link></item></channel></rss>");
                answer(stream, "200 OK", &body);
            }
            "/deeper.xml" => answer(stream, "200 OK", &index(&["deepest.xml"])),
            "/deepest.xml" => answer(stream, "200 OK", &index(&["never.xml"])),
            "/page.html" => answer(stream, "200 OK", "<html><a href=/never>x</a>"),
            "/laughs.xml" => {
                answer(stream, "200 OK", "<!DOCTYPE a [<!ENTITY b \"c\">]><urlset><url><loc>&b;</loc></url></urlset>")
            }
            "/a.xml.gz" => {
                let listed = ["/listed", "/private/x"].map(|p| format!("<url><loc>{origin}{p}</loc></url>")).concat();
                let other = "<url><loc>http://other.example/</loc></url>";
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                write!(packer, "<urlset>{listed}{other}</urlset>").expect("memory");
                let body = packer.finish().expect("memory");
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(&body);
            }
            _ => answer(stream, "404 Not Found", ""),
        }
    })
}

fn crawl_with_sitemaps(origin: &str, place: &Place, settings: &str) -> serde_json::Value {
    let settings = place.file("settings.toml", settings);
    let mut command = rhumb();
    command
        .args(["crawl", "--json", "--delay", "1ms", "--dir"])
        .arg(&place.dir)
        .arg("--config")
        .arg(settings)
        .arg(origin);
    json(&run(&mut command), 0)
}

#[test]
fn what_robots_txt_names_is_followed_within_bounds() {
    let (origin, heard) = host();
    let place = Place::new();
    let status = crawl_with_sitemaps(&origin, &place, "");
    let mut heard = heard.lock().expect("heard").clone();
    heard.sort();
    let expected = [
        "/",
        "/a.xml.gz",
        "/deeper.xml",
        "/deepest.xml",
        "/feed-item",
        "/feed.xml",
        "/index.xml",
        "/laughs.xml",
        "/listed",
        "/moved.xml",
        "/page.html",
        "/robots.txt",
    ];
    assert_eq!(
        heard, expected,
        "each once, none that robots.txt forbids, none beyond the last level, none of an HTML page"
    );
    assert_eq!(status["pages"], 3, "a sitemap is no page: {status}");
    let mut details = BTreeMap::new();
    for record in records(&place.dir) {
        match record {
            Record::Visited(v) if !v.detail.is_empty() => {
                details.insert(v.entry.url.path().to_string(), v.detail.to_string())
            }
            Record::Dropped { entry, outcome, .. } => {
                details.insert(entry.url.path().to_string(), outcome.name().to_string())
            }
            _ => None,
        };
    }
    let check = |path: &str, expected: &str| {
        let told = details.get(path).map(String::as_str).unwrap_or_default();
        assert!(told.contains(expected), "{path}: {told}");
    };
    check("/page.html", "sitemap: not_a_sitemap");
    check("/laughs.xml", "sitemap: doctype");
    check("/deepest.xml", "1 sitemaps beyond the bounds left out");
    check("/private/x", "robots_disallowed");
    assert_eq!(details.len(), 4, "{details:?}");
}

#[test]
fn sitemaps_can_be_left_alone() {
    let (origin, heard) = host();
    let status = crawl_with_sitemaps(&origin, &Place::new(), "[crawl]\nsitemaps = false\n");
    assert_eq!((heard.lock().expect("heard").len(), &status["pages"]), (2, &1.into()), "robots.txt and the seed");
}
