//! Document formats in a crawl: one that a program adds from outside, and those that the crawler brings.

use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rhumb_core::page::format::Reader;
use rhumb_core::page::{Body, Format, Formats, LinkTag, Page};
use rhumb_core::record::Record;
use rhumb_core::url::Url;
use rhumb_core::visit::VisitRecord;
use rhumb_crawl::{End, Engine, Settings};
use rhumb_store::disk::RealDisk;
use tokio::sync::watch;

use crate::common::{Place, records};
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
