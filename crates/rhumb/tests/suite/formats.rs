//! Document formats in a crawl: one that a program adds from outside, and those that the crawler brings.

use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rhumb_core::page::format::Reader;
use rhumb_core::page::{Body, Format, Formats, LinkTag, Page};
use rhumb_core::record::Record;
use rhumb_core::url::Url;
use rhumb_core::visit::{LinkKind, VisitRecord};
use rhumb_crawl::{End, Engine, Settings};
use rhumb_store::disk::RealDisk;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::common::{Place, json as as_json, records, rhumb, run};
use crate::conformance::piped_to;
use crate::crash::nth_write::small_settings;
use crate::web::odd::{answer, odd};

/// Gemini's text: a line that begins with `=>` is a link, one with `#` the title.
struct Gemtext;

impl Format for Gemtext {
    fn name(&self) -> &'static str {
        "gemtext"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        body.essence == "text/gemini"
    }

    fn read(&self, body: &Body<'_>, _: &mut Reader<'_>, page: &mut Page) {
        for line in String::from_utf8_lossy(body.bytes).lines() {
            if let Some(link) = line.strip_prefix("=>") {
                let (href, text) = link.trim().split_once(' ').unwrap_or((link.trim(), ""));
                page.links.add(href, text.trim(), "", LinkTag::A);
            } else if let Some(title) = line.strip_prefix("# ") {
                page.title.get_or_insert_with(|| title.to_owned());
            } else {
                page.text.push_str(line);
                page.text.push('\n');
            }
        }
    }
}

/// Crawls in this process, and gives the visits of pages.
fn crawl(dir: &Path, seed: &str, settings: Settings) -> Vec<VisitRecord> {
    std::fs::create_dir_all(dir).expect("directory");
    let (done, ended) = mpsc::channel();
    let (at, seed) = (dir.to_path_buf(), Url::parse(seed).expect("a URL"));
    std::thread::spawn(move || {
        let mut engine = Engine::open(&at, RealDisk::new(&at), settings).expect("a crawl");
        engine.add_seeds(&[seed]).expect("seeds");
        let (_stop, stopped) = watch::channel(false);
        let _ = done.send(engine.run(stopped).map(|(end, _)| end));
    });
    let end = ended.recv_timeout(Duration::from_secs(60)).expect("the crawl ends");
    assert_eq!(end.expect("no trouble"), End::Finished);
    let page = |record| match record {
        Record::Visited(v) if v.purpose.is_page() => Some(*v),
        _ => None,
    };
    records(dir).into_iter().filter_map(page).collect()
}

/// Only the settings know of the format: no file of the crawler does.
#[test]
fn a_format_is_added_from_outside() {
    let (origin, heard) = odd(|path, stream: &mut TcpStream| match path {
        "/" => {
            let body = "# Kapitel\nText.\n=> /next Weiter\n=>also\n";
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/gemini; lang=de\r\nContent-Length: {}", body.len());
            let _ = std::io::Write::write_all(stream, format!("{head}\r\n\r\n{body}").as_bytes());
        }
        _ => answer(stream, "200 OK", "<title>a page</title>"),
    });
    let place = Place::new();
    let settings = Settings { formats: Formats::default().with(Gemtext), ..small_settings() };
    let visits = crawl(&place.dir, &format!("{origin}/"), settings);
    assert_eq!(&*visits[0].title, "Kapitel");
    let links: Vec<_> = visits[0].links.iter().map(|l| (l.url.path(), &*l.text)).collect();
    assert_eq!(links, [("/next", "Weiter"), ("/also", "")]);
    let mut heard = heard.lock().expect("heard").clone();
    heard.sort();
    assert_eq!(heard, ["/", "/also", "/next", "/robots.txt"]);
}

/// A PDF with one page: its words, and an address that it links to.
fn pdf(words: &str, link: &str) -> Vec<u8> {
    let drawn = format!("BT /F 12 Tf 72 700 Td ({words}) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R/Lang(de-CH)>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>/Annots[6 0 R]>>"
            .to_owned(),
        format!("<</Length {}>>\nstream\n{drawn}\nendstream", drawn.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        format!("<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI({link})>>>>"),
        "<</Title(A paper)>>".to_owned(),
    ];
    let mut out = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (n, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", out.len());
        out += &format!("{} 0 obj\n{object}\nendobj\n", n + 1);
    }
    let start = out.len();
    out +=
        &format!("{table}trailer\n<</Size {}/Root 1 0 R/Info 7 0 R>>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
    out.into_bytes()
}

fn parse(bytes: &[u8], content_type: &str) -> Value {
    piped_to(&["parse", "-", "--base", "http://h.example/d/f", "--content-type", content_type], bytes, 0)
}

#[test]
fn rhumb_parse_reads_every_format() {
    let page = parse(&pdf("Some words of a paper", "http://a.example/x"), "application/pdf");
    assert_eq!((&page["kind"], &page["format"], &page["trouble"]), (&json!("pdf"), &json!("pdf"), &Value::Null));
    assert_eq!((&page["title"], &page["html_lang"]), (&json!("A paper"), &json!("de-CH")));
    assert_eq!(page["text"], "Some words of a paper");
    assert_eq!(page["links"][0]["url"], "http://a.example/x");
    let feed = "<feed xml:lang='en'><title>T</title><entry><title>E</title><link href='e'/><summary>S</summary></entry></feed>";
    let page = parse(feed.as_bytes(), "text/html");
    assert_eq!((&page["kind"], &page["title"], &page["text"]), (&json!("feed"), &json!("T"), &json!("E\nS")));
    assert_eq!(page["links"][0], json!({"url": "http://h.example/d/e", "text": "E", "rel": "", "tag": "entry"}));
    let page = parse(b"<script type=application/ld+json>{\"@type\":\"Thing\"}</script>", "text/html");
    assert_eq!(page["structured"], json!(["{\"@type\":\"Thing\"}"]));
    let page = parse(b"http://a.example/\n", "text/plain");
    assert_eq!((&page["kind"], &page["links"][0]["tag"]), (&json!("sitemap"), &json!("loc")));
}

#[test]
fn hostile_pdfs_end_with_a_name() {
    let whole = pdf("words", "x");
    let check = |bytes: &[u8], trouble: &str| {
        let began = Instant::now();
        let page = parse(bytes, "application/pdf");
        let told = page["trouble"].as_str().unwrap_or_default();
        assert!(told.starts_with("PDF") && told.contains(trouble), "{told:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{told}");
    };
    check(&whole[..200], "damaged");
    check(b"%PDF-1.7\nand no more", "damaged");
    let text = String::from_utf8(whole.clone()).expect("ASCII");
    // Pages that contain themselves, a page without a size, a catalog that is nowhere.
    let pages = parse(text.replace("/Kids[3 0 R]", "/Kids[2 0 R]").as_bytes(), "application/pdf");
    assert_eq!(pages["text"], "");
    check(text.replace("/MediaBox", "/MediaBux").as_bytes(), "1 pages could not be read");
    check(text.replace("/Root 1 0 R", "/Root 9 0 R").as_bytes(), "PDF not read");
    check(text.replace("(A paper)", &"[".repeat(200_000)).as_bytes(), "PDF");
}

/// A page names its feed, the feed an entry and a paper, the paper another page: all are found, and everything is archived.
#[test]
fn feeds_and_papers_lead_on() {
    let (origin, heard) = odd(|path, stream: &mut TcpStream| {
        let origin = format!("http://{}", stream.local_addr().expect("address"));
        let reply = |stream: &mut TcpStream, kind: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = std::io::Write::write_all(stream, &[head.as_bytes(), body].concat());
        };
        match path {
            "/" => {
                let link = "<link rel=alternate type='application/rss+xml' href=/feed.xml>";
                answer(stream, "200 OK", &format!("{link}<script type='application/ld+json'>{{}}</script>home"));
            }
            "/feed.xml" => {
                let item =
                    "<item><title>One</title><link>one</link><pubDate>Mon, 06 Sep 2010 00:01:00 GMT</pubDate></item>";
                let paper = "<item><title>Paper</title><link>/paper</link></item>";
                let rss = format!("<rss><channel><title>News</title>{item}{paper}</channel></rss>");
                reply(stream, "text/xml", rss.as_bytes());
            }
            "/paper" => reply(stream, "application/octet-stream", &pdf("A paper", &format!("{origin}/cited"))),
            "/broken.pdf" => reply(stream, "application/pdf", &pdf("x", "y")[..100]),
            "/one" => answer(stream, "200 OK", "<a href=/broken.pdf>one"),
            _ => answer(stream, "200 OK", "a page"),
        }
    });
    let place = Place::new();
    let mut command = rhumb();
    command.args(["crawl", "--json", "--delay", "1ms", "--dir"]).arg(&place.dir).arg(format!("{origin}/"));
    let status = as_json(&run(&mut command), 0);
    assert_eq!(status["pages"], 6, "{status}");
    let mut heard = heard.lock().expect("heard").clone();
    heard.sort();
    assert_eq!(heard, ["/", "/broken.pdf", "/cited", "/feed.xml", "/one", "/paper", "/robots.txt", "/sitemap.xml"]);
    let mut seen = Vec::new();
    for record in records(&place.dir) {
        if let Record::Visited(v) = record
            && v.purpose.is_page()
        {
            assert!(v.archived.is_some(), "{}", v.entry.url);
            let kinds: Vec<_> = v.links.iter().map(|l| l.kind).collect();
            seen.push((v.entry.url.path().to_owned(), v.title.to_string(), v.detail.to_string(), kinds));
        }
    }
    let of = |path: &str| seen.iter().find(|(p, ..)| p == path).cloned().expect("a visit");
    let (_, title, detail, kinds) = of("/feed.xml");
    assert_eq!((&*title, &*detail, &kinds[..]), ("News", "", &[LinkKind::Entry, LinkKind::Entry][..]));
    assert_eq!(of("/paper").1, "A paper");
    assert!(of("/broken.pdf").2.starts_with("PDF not read: damaged"), "{}", of("/broken.pdf").2);
}
