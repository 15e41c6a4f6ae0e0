//! One URL's walk through the whole program: ARCHITECTURE.md tells it in the same steps.

use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_sim::{Reply, WebConfig};
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position};
use rhumb_store::warc;

use crate::common::{Place, crawl, json, rhumb, run, serve};

#[test]
fn from_seed_to_archive() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let page = |body: &str| Reply::new(200, "text/html", body);
    web.set_document(0, "/", page("<title>Home</title><a href='/b/../about?utm_source=x#top'>About us</a>"));
    web.set_document(0, "/about", page("<title>About</title>"));
    let place = Place::new();
    let seed = web.url(0, 0);
    let status = json(&run(&mut crawl(&server, &place.dir, &[&seed, "--delay", "10ms"])), 0);

    // Seed → log → filter → sieve → frontier → robots → fetch → extract → normalise → filter → sieve → … → log.
    let mut reader = LogReader::open(RealDisk::new(&place.dir), Position::START).expect("open the log");
    let mut steps = Vec::new();
    let mut about = None;
    while let Some((kind, payload)) = reader.next().expect("read the log") {
        match Record::take(kind, payload).expect("a record") {
            Record::Seed(entry, _) => steps.push(format!("seed {}", entry.url.path())),
            Record::Visited(visit) => {
                steps.push(format!("{} {}", visit.outcome.name(), visit.entry.url.path()));
                if visit.entry.url.path() == "/" {
                    let link = &visit.links[0];
                    assert!(link.wanted);
                    assert_eq!(&*link.text, "About us");
                    steps.push(format!("found {}", link.url.path_and_query()));
                }
                if visit.entry.url.path() == "/about" {
                    about = Some(visit);
                }
            }
            _ => {}
        }
    }
    assert_eq!(steps, ["seed /", "ok /robots.txt", "ok /", "found /about", "ok /about"]);
    let about = about.expect("visited");
    assert_eq!((about.outcome, about.entry.depth, &*about.title), (Outcome::Ok, 1, "About"));

    // … → archive, where the log says it lies.
    let place_of = about.archived.expect("archived");
    let (_, name) = rhumb_store::archive::files(&*RealDisk::new(&place.dir)).expect("list")[0].clone();
    let path = place.dir.join("archive").join(name);
    let mut rows = Vec::new();
    warc::ls(std::fs::File::open(&path).expect("open"), |row| rows.push(row)).expect("ls");
    let at = rows.iter().find(|r| r.offset == place_of.offset).expect("a record at that place");
    assert_eq!((at.kind.as_str(), at.uri.as_deref()), ("response", Some(about.entry.url.as_str())));

    // … and what people are told.
    assert_eq!(
        (status["pages"].as_u64(), status["urls_seen"].as_u64(), status["urls_waiting"].as_u64()),
        (Some(2), Some(2), Some(0))
    );
    let explained = json(&run(rhumb().args(["explain", "--json"]).arg(&place.dir).arg(about.entry.url.as_str())), 0);
    assert_eq!(explained["state"], "done");
    assert_eq!(explained["found_on"][0]["text"], "About us");
}
