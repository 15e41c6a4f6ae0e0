//! A graph that tests know by heart, with everything in it that could spoil a page: markup in titles, texts, hosts and URLs,
//! right-to-left titles, URLs longer than any line, a page without links and one with very many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use anyhow::Result;
use rhumb_core::url::Normalizer;

use super::fake_index::FakeIndex;
use super::{App, Asked, Hosts};
use crate::links::answer::{
    Anchor, Cocited, CocitedAnswer, Direction, HostAnswer, HostLink, Link, LinksAnswer, Neighbour, NeighbourhoodAnswer,
    Overview, PageAnswer, PathAnswer, RankOf, Scored,
};
use crate::usage;

/// Markup that must never become an element or an attribute.
pub const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";
/// A title that reads from right to left.
pub const HEBREW: &str = "מדריך למשתמש \u{202e}🧭 ניווט";

/// The page that most tests ask for.
pub const HUB: &str = "https://docs.example.org/guide/";
/// A page that nothing links to and that links to nothing.
pub const ALONE: &str = "https://alone.example/";
/// A page with markup wherever a stranger can put some.
pub const HOSTILE: &str = "http://evil\"><script>alert(1)</script>.example/?q=\"><script>alert(1)</script>";
/// A name that a browser would run.
pub const SCRIPT: &str = "javascript:alert(document.domain)";

#[derive(Default)]
pub struct Fake {
    titles: BTreeMap<String, Option<String>>,
    links: Vec<(String, String, String)>,
}

/// What the server serves in tests.
pub fn app() -> App {
    without_index().searching(Some(Arc::new(FakeIndex::new())))
}

/// The same graph, with nothing to search in.
pub fn without_index() -> App {
    let listen = ([127, 0, 0, 1], 0).into();
    App::new(Arc::new(Fake::new()), Normalizer::default(), Hosts::new(listen, &["graph.example".to_string()]))
}

pub fn host_of(url: &str) -> String {
    url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default().to_string()
}

impl Fake {
    fn new() -> Fake {
        let mut fake = Fake::default();
        fake.add_page(HUB, "The guide: reckoning, charts and the sea");
        fake.add_page(ALONE, "Alone");
        let chapters =
            ["log", "charts", "tides", "stars", "rhumb-lines", "winds", "knots", "harbours", "signals", "ropes"];
        for (i, chapter) in chapters.iter().enumerate() {
            let url = format!("https://docs.example.org/guide/{chapter}.html");
            fake.add_page(&url, &format!("{} – The guide", chapter.replace('-', " ")));
            fake.add_link(HUB, &url, chapter);
            fake.add_link(&url, HUB, "The guide");
            let next = format!("https://docs.example.org/guide/{}.html", chapters[(i + 1) % chapters.len()]);
            fake.add_link(&url, &next, "next");
        }
        for (host, n) in
            [("blog.example.com", 14), ("forum.example.net", 9), ("wiki.sailing.example", 5), ("news.example.co.uk", 3)]
        {
            for i in 0..n {
                let url = format!(
                    "https://{host}/{}/{:02}/a-post-about-{}",
                    2019 + i % 7,
                    1 + i % 12,
                    chapters[i % chapters.len()]
                );
                fake.add_page(&url, &format!("Post {i} of {host}"));
                fake.add_link(&url, HUB, ["the guide", "this handbook", "as explained here", "📖 guide"][i % 4]);
                fake.add_link(
                    &url,
                    &format!("https://docs.example.org/guide/{}.html", chapters[i % chapters.len()]),
                    "a chapter",
                );
                fake.add_link(&url, "https://rfc.example/9110", "RFC");
            }
        }
        for i in 0..6 {
            fake.add_link(
                HUB,
                &format!("https://vendor{i}.example/products/{}", "very-long-".repeat(3 + 5 * i)),
                "a product",
            );
        }
        fake.add_page("https://he.example/מדריך", HEBREW);
        fake.add_link("https://he.example/מדריך", HUB, HEBREW);
        fake.add_page(HOSTILE, EVIL);
        fake.add_link(HOSTILE, HUB, EVIL);
        fake.add_link(HUB, HOSTILE, EVIL);
        fake.add_link(HUB, SCRIPT, "run me");
        for i in 0..2_500 {
            fake.add_link(&format!("https://many.example/from/{i:04}"), "https://many.example/", &format!("link {i}"));
        }
        fake
    }

    fn add_page(&mut self, url: &str, title: &str) {
        self.titles.insert(url.to_string(), Some(title.to_string()));
    }

    fn add_link(&mut self, from: &str, to: &str, text: &str) {
        for url in [from, to] {
            self.titles.entry(url.to_string()).or_default();
        }
        self.links.push((from.to_string(), to.to_string(), text.to_string()));
    }

    /// The other ends of a page's links with their texts, sorted.
    fn ends(&self, url: &str, direction: Direction) -> BTreeMap<&str, Vec<&str>> {
        let mut ends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, to, text) in &self.links {
            let (own, other) = if direction == Direction::To { (to, from) } else { (from, to) };
            if own == url {
                ends.entry(other).or_default().push(text);
            }
        }
        ends
    }

    fn fetched(&self, url: &str) -> bool {
        self.titles.get(url).is_some_and(Option::is_some)
    }

    fn links_in(&self, url: &str) -> u64 {
        self.ends(url, Direction::To).len() as u64
    }

    fn top(&self, of: impl Fn(&str) -> bool, limit: usize) -> Vec<Scored> {
        let mut all: Vec<Scored> =
            self.titles.keys().filter(|url| of(url)).map(|url| Scored { url: url.clone(), score: 0.0 }).collect();
        all.iter_mut().for_each(|page| page.score = self.links.iter().filter(|l| l.1 == page.url).count() as f64);
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.url.cmp(&b.url)));
        all.truncate(limit);
        all
    }
}

impl Asked for Fake {
    fn keep_up(&self) -> Result<()> {
        Ok(())
    }

    fn links(
        &self,
        url: &str,
        direction: Direction,
        anchors: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<LinksAnswer>> {
        if !self.titles.contains_key(url) {
            return Ok(None);
        }
        let begin: usize = cursor.map_or(Ok(0), str::parse).map_err(|_| usage("this is no cursor of these links"))?;
        let ends = self.ends(url, direction);
        let total = ends.len();
        let link = |(other, texts): (&str, Vec<&str>)| Link {
            url: other.to_string(),
            fetched: self.fetched(other),
            anchors: anchors.then(|| {
                texts
                    .iter()
                    .map(|t| Anchor {
                        text: t.to_string(),
                        kind: "a",
                        rel: if t.is_empty() { vec![] } else { vec!["ugc"] },
                    })
                    .collect()
            }),
        };
        let links = ends.into_iter().skip(begin).take(limit).map(link).collect();
        let next = (begin + limit < total).then(|| (begin + limit).to_string());
        Ok(Some(LinksAnswer { url: url.to_string(), direction, total: total as u64, links, next }))
    }

    fn page(&self, url: &str) -> Result<Option<PageAnswer>> {
        let Some(title) = self.titles.get(url) else { return Ok(None) };
        Ok(Some(PageAnswer {
            url: url.to_string(),
            host: host_of(url),
            fetched: title.is_some(),
            title: title.clone(),
            fetched_at: title.is_some().then(|| "2026-11-16T21:40:00Z".to_string()),
            links_in: self.links_in(url),
            links_out: self.ends(url, Direction::From).len() as u64,
            ranks: vec![
                RankOf { measure: "pagerank".into(), value: 0.000_177_719, percentile: 0.9912 },
                RankOf { measure: "harmonic".into(), value: 1_234.5, percentile: 0.87 },
            ],
        }))
    }

    fn host(&self, host: &str, limit: usize) -> Result<Option<HostAnswer>> {
        let urls: Vec<&String> = self.titles.keys().filter(|url| host_of(url) == host).collect();
        if urls.is_empty() {
            return Ok(None);
        }
        let (mut hosts_in, mut hosts_out, mut inside) = (BTreeMap::new(), BTreeMap::new(), 0);
        for (from, to, _) in &self.links {
            match (host_of(from) == host, host_of(to) == host) {
                (true, true) => inside += 1,
                (true, false) => *hosts_out.entry(host_of(to)).or_insert(0) += 1,
                (false, true) => *hosts_in.entry(host_of(from)).or_insert(0) += 1,
                _ => {}
            }
        }
        let sorted = |hosts: BTreeMap<String, u64>| {
            let mut all: Vec<HostLink> = hosts.into_iter().map(|(host, links)| HostLink { host, links }).collect();
            all.sort_by_key(|h| std::cmp::Reverse(h.links));
            all.truncate(limit);
            all
        };
        Ok(Some(HostAnswer {
            host: host.to_string(),
            domain: host.rsplitn(3, '.').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("."),
            urls: urls.len() as u64,
            fetched: urls.iter().filter(|url| self.fetched(url)).count() as u64,
            links_inside: inside,
            hosts_in: sorted(hosts_in),
            hosts_out: sorted(hosts_out),
            partial: host == "many.example",
            top_pages: self.top(|url| host_of(url) == host, limit),
            ranks: vec![RankOf { measure: "pagerank".to_string(), value: 0.25, percentile: 0.9 }],
        }))
    }

    fn cocited(&self, url: &str, limit: usize) -> Result<Option<CocitedAnswer>> {
        if !self.titles.contains_key(url) {
            return Ok(None);
        }
        let (mut together, parents) = (BTreeMap::new(), self.ends(url, Direction::To));
        for parent in parents.keys() {
            for other in self.ends(parent, Direction::From).into_keys().filter(|o| *o != url) {
                *together.entry(other.to_string()).or_insert(0u64) += 1;
            }
        }
        let mut cocited: Vec<Cocited> =
            together.into_iter().map(|(url, n)| Cocited { url, together: n, score: n as f64 / 3.0 }).collect();
        cocited.sort_by_key(|c| std::cmp::Reverse(c.together));
        cocited.truncate(limit);
        Ok(Some(CocitedAnswer { url: url.to_string(), pages_looked_at: parents.len() as u64, cocited }))
    }

    fn neighbourhood(&self, url: &str, nodes_max: usize) -> Result<Option<NeighbourhoodAnswer>> {
        if !self.titles.contains_key(url) {
            return Ok(None);
        }
        let (to, from) = (self.ends(url, Direction::To), self.ends(url, Direction::From));
        let all: BTreeSet<&str> = to.keys().chain(from.keys()).copied().collect();
        let neighbour = |other: &str, side| Neighbour {
            url: other.to_string(),
            host: host_of(other),
            fetched: self.fetched(other),
            links_in: self.links_in(other),
            side,
        };
        let mut nodes = vec![neighbour(url, "centre")];
        for other in all.iter().copied().take(nodes_max - 1) {
            let side = match (to.contains_key(other), from.contains_key(other)) {
                (true, true) => "both",
                (true, false) => "in",
                _ => "out",
            };
            nodes.push(neighbour(other, side));
        }
        let places: BTreeMap<&str, u32> = nodes.iter().zip(0..).map(|(n, i)| (n.url.as_str(), i)).collect();
        let arcs: BTreeSet<(u32, u32)> = self
            .links
            .iter()
            .filter_map(|(a, b, _)| Some((*places.get(a.as_str())?, *places.get(b.as_str())?)))
            .collect();
        let partial = all.len() >= nodes_max;
        Ok(Some(NeighbourhoodAnswer { url: url.to_string(), arcs: arcs.into_iter().collect(), nodes, partial }))
    }

    fn path(&self, from: &str, to: &str) -> Result<PathAnswer> {
        let mut before: BTreeMap<String, String> = BTreeMap::new();
        let mut queue = VecDeque::from([from.to_string()]);
        while let Some(at) = queue.pop_front() {
            if at == to {
                let mut path = vec![at];
                while let Some(previous) =
                    path.last().and_then(|last| before.get(last)).filter(|p| *p != path.last().expect("one"))
                {
                    path.push(previous.clone());
                    if previous == from {
                        break;
                    }
                }
                path.reverse();
                return Ok(PathAnswer {
                    from: from.into(),
                    to: to.into(),
                    hops: Some(path.len() as u32 - 1),
                    path,
                    gave_up: false,
                });
            }
            for next in self.ends(&at, Direction::From).into_keys() {
                if next != from && !before.contains_key(next) {
                    before.insert(next.to_string(), at.clone());
                    queue.push_back(next.to_string());
                }
            }
        }
        Ok(PathAnswer { from: from.into(), to: to.into(), hops: None, path: Vec::new(), gave_up: to == HOSTILE })
    }

    fn overview(&self) -> Result<Overview> {
        let hosts: BTreeSet<String> = self.titles.keys().map(|url| host_of(url)).collect();
        Ok(Overview {
            urls: self.titles.len() as u64,
            pages: self.titles.values().filter(|t| t.is_some()).count() as u64,
            links: self.links.len() as u64,
            hosts: hosts.len() as u64,
            top: self.top(|_| true, 20),
            top_by: "links_in".into(),
            running: true,
        })
    }

    fn suggest(&self, text: &str, limit: usize) -> Result<Vec<String>> {
        Ok(self.titles.keys().filter(|url| url.contains(text)).take(limit).cloned().collect())
    }
}
