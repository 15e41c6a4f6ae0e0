//! A text index that tests know by heart: a few dozen pages about the sea, and some whose authors mean no good.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Searched;
use super::fake::{ALONE, EVIL, HEBREW, HOSTILE, HUB, SCRIPT, host_of};
use crate::search::answer::{Cached, ScorePart, SearchAnswer, SearchAsk, SearchResult};
use crate::usage;

/// A page with a script, a picture and whatever else would like to do something.
pub const ARMED: &str = "https://armed.example/page";
/// A page of which no copy may be shown.
pub const NOARCHIVE: &str = "https://docs.example.org/guide/tides.html";
/// A document that is no HTML.
pub const PDF: &str = "https://rfc.example/rhumb.pdf";

const ARMED_HTML: &str = "<!doctype html><title>Armed</title><base href='https://elsewhere.example/'>\
    <link rel=stylesheet href=/style.css><link rel=preconnect href=https://elsewhere.example>\
    <meta http-equiv=refresh content='0;url=https://elsewhere.example/gone'>\
    <style>body { font-family: serif } h1 { color: rgb(10, 90, 60); background: url(https://elsewhere.example/b.png) }</style>\
    <body onload=\"document.title='ran'\"><h1 id=h>Armed and harmless</h1><p>An armed page about harbours.</p>\
    <script>document.getElementById('h').textContent = 'ran'; fetch('https://elsewhere.example/fetch')</script>\
    <script src=https://elsewhere.example/x.js></script><img src=https://elsewhere.example/i.png onerror=\"document.title='ran'\">\
    <img src=x onerror=\"document.title='ran'\"><iframe src=https://elsewhere.example/></iframe>\
    <a href=https://elsewhere.example/clicked>A link</a><form action=https://elsewhere.example/><button>Send</button></form>";

struct Doc {
    url: String,
    title: String,
    text: String,
    html: Option<String>,
    language: &'static str,
    kind: &'static str,
    date: &'static str,
    links_in: u64,
}

pub struct FakeIndex {
    docs: Vec<Doc>,
}

impl FakeIndex {
    pub fn new() -> FakeIndex {
        let mut index = FakeIndex { docs: Vec::new() };
        let add = |index: &mut FakeIndex, url: &str, title: &str, text: &str| {
            index.docs.push(Doc {
                url: url.to_string(),
                title: title.to_string(),
                text: text.to_string(),
                html: Some(format!("<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p>")),
                language: "en",
                kind: "html",
                date: "2024-03-09T12:00:00Z",
                links_in: 0,
            });
        };
        add(
            &mut index,
            HUB,
            "The guide: reckoning, charts and the sea",
            "A sea chart is a map for those who sail: it shows depths, lights and the nature of the ground, and how far the compass is off. \
             Charts are drawn so that a rhumb line, a course kept by the compass, is straight.\nThis guide begins with the log and ends with ropes.",
        );
        add(
            &mut index,
            "https://wiki.sailing.example/Rhumb_line",
            "Rhumb line – Sailing wiki",
            "In navigation, a rhumb line or loxodrome is an arc crossing all meridians at the same angle, that is, a path with constant bearing. \
             On a sea chart in Mercator's projection it is a straight line, which is why sailors have drawn it so for four hundred years.",
        );
        add(
            &mut index,
            "https://blog.example.com/2023/05/a-post-about-rhumb-lines",
            "Why my charts are wrong, and yours too",
            "Every chart lies a little. Mine put the harbour light two cables east of where it burns; the sea had moved the buoy, and nobody told the chart.",
        );
        add(
            &mut index,
            NOARCHIVE,
            "Tides – The guide",
            "The sea rises and falls twice a day. Chart datum is the level below which it seldom falls, so that there is at least as much water as the chart shows.",
        );
        add(
            &mut index,
            PDF,
            "On the drawing of sea charts",
            "Memoir on the drawing of sea charts, read before the society. The depths are in fathoms; the chart is on sixteen sheets.",
        );
        add(
            &mut index,
            "https://museum.example/sammlung/%C3%BCberseekarten",
            "Überseekarten: die Sammlung alter Seekarten",
            "Die Sammlung umfasst Portolane und Seekarten. A sea chart in German hands was often a copy of a Dutch chart.",
        );
        add(
            &mut index,
            "https://he.example/%D7%9E%D7%93%D7%A8%D7%99%D7%9A/%E2%80%AEfdp.exe",
            HEBREW,
            "מפת ים sea chart מדריך למשתמש",
        );
        add(&mut index, HOSTILE, EVIL, &format!("A sea chart {EVIL} with more chart behind it"));
        add(&mut index, SCRIPT, "A title that would run", "A sea chart that a browser would run.");
        add(&mut index, ALONE, "", "A page alone in the sea, without a title or a chart.");
        add(&mut index, ARMED, "Armed", "An armed page about harbours.");
        add(
            &mut index,
            "https://gazette.example/articles/2019/07/14/the-very-long-address-of-an-article/that-nobody/would/type?utm_source=mail&id=42",
            "The admiral's unbelievably long and winding title, which goes on and on about a sea chart until no screen in the whole wide world can hold it on one line",
            "Found in the attic: a chart of the sea that nobody had sailed.",
        );
        let things = ["log", "chart", "tide", "star", "wind", "knot", "harbour", "signal", "rope"];
        for i in 0..60 {
            let (thing, other) = (things[i % 9], things[(i * 5 + 2) % 9]);
            let host = ["blog.example.com", "forum.example.net", "wiki.sailing.example"][i % 3];
            add(
                &mut index,
                &format!("https://{host}/{}/{:02}/{thing}-and-{other}-{i}", 2019 + i % 6, 1 + i % 12),
                &format!("Notes on the {thing} and the {other}, part {}", i + 1),
                &format!(
                    "We sailed on with the {thing} in hand. The sea was grey, the {other} was where we had left it, and the chart said nothing about either."
                ),
            );
        }
        for doc in &mut index.docs {
            doc.links_in = (doc.title.len() % 7) as u64;
            if doc.url == PDF {
                (doc.html, doc.kind) = (None, "pdf");
            }
            if doc.url == ARMED {
                doc.html = Some(ARMED_HTML.to_string());
            }
            if doc.url.contains("museum") {
                doc.language = "de";
            }
            if doc.url.contains("he.example") {
                doc.language = "he";
            }
        }
        index
    }

    fn words(&self) -> BTreeSet<String> {
        let text = self
            .docs
            .iter()
            .map(|doc| format!("{} {}", doc.title, doc.text))
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase();
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_string).collect()
    }
}

/// Where the words stand in a text, in characters.
fn places(text: &str, words: &[String]) -> Vec<(usize, usize)> {
    let lower: Vec<char> = text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lower.len() {
        let begins = |word: &&String| lower[at..].iter().copied().take(word.chars().count()).eq(word.chars());
        let fresh = at == 0 || !lower[at - 1].is_alphanumeric();
        match words.iter().filter(begins).max_by_key(|word| word.len()) {
            Some(word) if fresh => {
                found.push((at, at + word.chars().count()));
                at += word.chars().count();
            }
            _ => at += 1,
        }
    }
    found
}

impl Searched for FakeIndex {
    fn search(&self, ask: &SearchAsk) -> Result<SearchAnswer> {
        let (mut words, mut site, mut notes) = (Vec::new(), None, Vec::new());
        for part in ask.query.split_whitespace() {
            match part.split_once(':') {
                Some(("site", host)) => site = Some(host.to_string()),
                Some((field, _)) if field != "a" => notes.push(format!("{field}: is not understood, and was left out")),
                _ => words.push(part.trim_matches(['"', '+', '-', '*']).to_lowercase()),
            }
        }
        words.retain(|word| !word.is_empty());
        if words.is_empty() && site.is_none() {
            return Err(usage("the query has no word to look for"));
        }
        let mut found: Vec<(&Doc, usize)> = Vec::new();
        for doc in &self.docs {
            let all = format!("{} {}", doc.title, doc.text);
            let hits = places(&all, &words).len();
            let has_all = words.iter().all(|word| !places(&all, std::slice::from_ref(word)).is_empty());
            if has_all && site.as_ref().is_none_or(|site| host_of(&doc.url) == *site) {
                found.push((doc, hits));
            }
        }
        let total = found.len();
        let mut of_host: std::collections::BTreeMap<String, usize> = Default::default();
        if !ask.ungrouped && site.is_none() {
            found.retain(|(doc, _)| {
                let n = of_host.entry(host_of(&doc.url)).or_default();
                *n += 1;
                // Enough for several pages of results, and fewer than there are.
                *n <= 8
            });
        }
        let result = |(doc, hits): &(&Doc, usize)| SearchResult {
            url: doc.url.clone(),
            host: host_of(&doc.url),
            title: doc.title.clone(),
            snippet: doc.text.clone(),
            highlights: places(&doc.text, &words),
            title_highlights: places(&doc.title, &words),
            score: *hits as f64 + 0.5,
            date: doc.date.to_string(),
            fetched: "2026-11-16T21:40:00Z".to_string(),
            language: Some(doc.language.to_string()),
            kind: doc.kind.to_string(),
            links_in: doc.links_in,
            cached: doc.url != NOARCHIVE,
            more_from_host: of_host.get(&host_of(&doc.url)).is_some_and(|n| *n > 8),
            duplicate_of: doc.url.contains("articles").then(|| HUB.to_string()),
            explanation: ask
                .explain
                .then(|| vec![ScorePart { what: "words".into(), score: *hits as f64, how: "one for each".into() }]),
        };
        let more = found.len() > ask.offset + ask.limit;
        let near = |word: &String| {
            let close = |known: &String| {
                known.len() > 3 && known.len().abs_diff(word.len()) <= 1 && known[..2] == *word.get(..2).unwrap_or("")
            };
            self.words().into_iter().filter(|k| k.is_ascii()).find(close).unwrap_or_else(|| word.clone())
        };
        let meant: Vec<String> = words.iter().map(near).collect();
        Ok(SearchAnswer {
            query: ask.query.clone(),
            total: total as u64,
            total_exact: total < 50,
            offset: ask.offset,
            results: found.iter().skip(ask.offset).take(ask.limit).map(result).collect(),
            more,
            suggestion: (total == 0 && meant != words).then(|| meant.join(" ")),
            notes,
            pages: self.docs.len() as u64,
            tier: 1,
            took_us: 1_234,
        })
    }

    fn cached(&self, url: &str) -> Result<Option<Cached>> {
        let doc = self.docs.iter().find(|doc| doc.url == url && url != NOARCHIVE);
        Ok(doc.map(|doc| Cached {
            url: doc.url.clone(),
            title: doc.title.clone(),
            fetched: "2026-11-16T21:40:00Z".to_string(),
            media_type: if doc.html.is_some() { "text/html" } else { "application/pdf" }.to_string(),
            text: doc.text.clone(),
            html: doc.html.clone(),
        }))
    }

    fn complete(&self, prefix: &str, limit: usize) -> Result<Vec<String>> {
        let prefix = prefix.to_lowercase();
        Ok(self.words().into_iter().filter(|word| word.starts_with(&prefix) && *word != prefix).take(limit).collect())
    }
}
