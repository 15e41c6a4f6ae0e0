//! Questions that look further than the links of one page: its neighbourhood, pages linked together with it, the way to another,
//! its host, the graph as a whole.
//!
//! All work while the graph has several levels: [`View`] numbers pages as they are met, so that what is written for one graph
//! runs over several. Each has a bound on how much it looks at, and says when it was reached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use rhumb_core::url::Url;
use rhumb_graph::algo::ranks::MEASURES;
use rhumb_graph::algo::{cocitation, distance};
use rhumb_graph::key::{host_key, host_name, host_part};
use rhumb_graph::query::{Place, Way};
use rhumb_graph::store::Graph;
use rhumb_graph::{Node, Rows};
use rhumb_store::disk::DirLock;

use super::Links;
use super::answer::{
    Cocited, CocitedAnswer, HostAnswer, HostLink, Neighbour, NeighbourhoodAnswer, Overview, PathAnswer, RankOf, Scored,
};
use super::whole::HOSTS;
use crate::usage;

/// Pages looked at on the way from one to another.
const PATH_NODES_MAX: usize = 2_000_000;
/// Links of a host that are counted.
const HOST_ARCS_MAX: u64 = 2_000_000;
/// Nodes whose links are counted for the list of the best known.
const TOP_NODES_MAX: Node = 5_000_000;
/// Hosts whose names are looked through for a suggestion.
const SUGGEST_HOSTS_MAX: usize = 100_000;
/// Hosts that are counted one by one; of more, some may be counted twice.
const HOSTS_COUNTED_MAX: usize = 1_000_000;

/// A graph of several levels as one of numbers, given out as pages are met.
struct View<'a> {
    graph: &'a Graph,
    way: Way,
    met: Arc<Mutex<Met>>,
}

#[derive(Default)]
struct Met {
    places: Vec<Place>,
    numbers: HashMap<Place, Node>,
}

impl Met {
    fn number(&mut self, place: Place) -> Node {
        let next = self.places.len() as Node;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }
}

impl<'a> View<'a> {
    fn both(graph: &'a Graph) -> (View<'a>, View<'a>) {
        let met = Arc::new(Mutex::new(Met::default()));
        (View { graph, way: Way::Out, met: met.clone() }, View { graph, way: Way::In, met })
    }

    /// The number of a URL's page: that of its oldest place, so that it has one alone.
    fn number(&self, place: Place) -> Node {
        let first = self.graph.standing_of(place).places.first().copied().unwrap_or(place);
        self.met().number(first)
    }

    fn place(&self, node: Node) -> Option<Place> {
        self.met().places.get(node as usize).copied()
    }

    fn url(&self, node: Node) -> String {
        self.place(node).map(|p| self.graph.url(p)).unwrap_or_default()
    }

    fn met(&self) -> std::sync::MutexGuard<'_, Met> {
        self.met.lock().expect("nobody panics while numbering")
    }
}

impl Rows for View<'_> {
    fn nodes(&self) -> Node {
        Node::MAX
    }

    fn arcs(&self) -> u64 {
        self.graph.arcs()
    }

    fn row(&self, node: Node, into: &mut Vec<Node>) {
        into.clear();
        let Some(place) = self.place(node) else { return };
        let standing = self.graph.standing_of(place);
        into.extend(self.graph.neighbours(&standing, self.way).places().map(|p| self.number(p)));
        into.sort_unstable();
    }

    fn degree(&self, node: Node) -> u32 {
        let Some(place) = self.place(node) else { return 0 };
        self.graph.degree(&self.graph.standing_of(place), self.way) as u32
    }

    fn scan(&self, from: Node, to: Node, each: &mut dyn FnMut(Node, &[Node])) {
        let mut row = Vec::new();
        for node in from..to.min(self.met().places.len() as Node) {
            self.row(node, &mut row);
            each(node, &row);
        }
    }
}

impl Links {
    /// Pages that are linked together with one.
    pub fn cocited(&self, url: &str, limit: usize) -> Result<Option<CocitedAnswer>> {
        let graph = self.read();
        let Some(standing) = graph.find(url) else { return Ok(None) };
        let (out, into) = View::both(&graph);
        let node = out.number(standing.places[0]);
        let found = cocitation::Cocitation::default().of(&out, &into, node, limit);
        let cocited = found.nodes.iter();
        let cocited = cocited.map(|c| Cocited { url: out.url(c.node), together: u64::from(c.count), score: c.weight });
        Ok(Some(CocitedAnswer {
            url: url.to_string(),
            pages_looked_at: found.asked as u64,
            cocited: cocited.collect(),
        }))
    }

    /// A shortest way along links; `Err` if one of the pages is not known.
    pub fn path(&self, from: &str, to: &str) -> Result<PathAnswer> {
        let graph = self.read();
        let known = |url: &str| graph.find(url).ok_or_else(|| usage(format!("{url} is not in the graph")));
        let (source, target) = (known(from)?, known(to)?);
        let (out, into) = View::both(&graph);
        let ends = (out.number(source.places[0]), out.number(target.places[0]));
        let search = distance::Search { nodes_max: PATH_NODES_MAX, ..distance::Search::default() };
        let way = search.path(&out, &into, ends.0, ends.1);
        let (from, to) = (from.to_string(), to.to_string());
        Ok(match way {
            distance::Way::Path(nodes) => {
                let path: Vec<String> = nodes.iter().map(|&n| out.url(n)).collect();
                PathAnswer { from, to, hops: Some(path.len() as u32 - 1), path, gave_up: false }
            }
            distance::Way::None => PathAnswer { from, to, ..PathAnswer::default() },
            distance::Way::GaveUp { .. } => PathAnswer { from, to, gave_up: true, ..PathAnswer::default() },
        })
    }

    /// The pages around one.
    pub fn neighbourhood(&self, url: &str, nodes_max: usize) -> Result<Option<NeighbourhoodAnswer>> {
        let graph = self.read();
        let Some(standing) = graph.find(url) else { return Ok(None) };
        let (out, into) = View::both(&graph);
        let centre = out.number(standing.places[0]);
        let (mut after, mut before) = (Vec::new(), Vec::new());
        out.row(centre, &mut after);
        into.row(centre, &mut before);
        // Half the room for each side; those with the most links say the most about where this is.
        let best = |mut nodes: Vec<Node>, room: usize| {
            nodes.retain(|&n| n != centre);
            let partial = nodes.len() > room;
            if partial {
                nodes.truncate(room * 20);
                nodes.sort_by_cached_key(|&n| (std::cmp::Reverse(into.degree(n)), n));
                nodes.truncate(room);
            }
            (nodes, partial)
        };
        let room = nodes_max.saturating_sub(1);
        let (from_here, left) = (after.len(), room.saturating_sub(before.len().min(room / 2)));
        let (after, more_after) = best(after, left.min(from_here));
        let (before, more_before) = best(before, room - after.len());
        let mut chosen = vec![centre];
        for &node in before.iter().chain(&after) {
            if !chosen.contains(&node) {
                chosen.push(node);
            }
        }
        let place_of: HashMap<Node, u32> = chosen.iter().enumerate().map(|(i, &n)| (n, i as u32)).collect();
        let (mut nodes, mut arcs, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for (i, &node) in chosen.iter().enumerate() {
            let url = out.url(node);
            let host = rhumb_graph::key::key_of(&url).and_then(|k| host_name(host_part(&k))).unwrap_or_default();
            let fetched = out.place(node).is_some_and(|p| self.is_fetched(&graph, p));
            nodes.push(Neighbour { url, host, fetched, links_in: u64::from(into.degree(node)), side: "centre" });
            out.row(node, &mut row);
            arcs.extend(
                row.iter().filter_map(|n| place_of.get(n)).filter(|&&to| to != i as u32).map(|&to| (i as u32, to)),
            );
        }
        // Told by the links themselves: a page that was chosen for one of them may have the other, too.
        let has = |arc: (u32, u32)| arcs.contains(&arc);
        for (at, node) in (0..).zip(&mut nodes).skip(1) {
            node.side = match (has((at, 0)), has((0, at))) {
                (true, true) => "both",
                (true, false) => "in",
                _ => "out",
            };
        }
        let partial = more_after || more_before;
        Ok(Some(NeighbourhoodAnswer { url: url.to_string(), nodes, arcs, partial }))
    }

    /// What is known of a host, with so many hosts and pages each.
    pub fn host(&self, host: &str, limit: usize) -> Result<Option<HostAnswer>> {
        let graph = self.read();
        let own = host_key(host);
        let mut answer = HostAnswer { host: host.to_string(), ..HostAnswer::default() };
        let mut counts: [HashMap<Vec<u8>, u64>; 2] = Default::default();
        let mut pages: Vec<(u64, String)> = Vec::new();
        let mut left = HOST_ARCS_MAX;
        for place in graph.places_of_prefix(&own) {
            if left == 0 {
                answer.partial = true;
                break;
            }
            let standing = graph.standing_of(place);
            // Each URL once, at its oldest place.
            if standing.places.first() != Some(&place) {
                continue;
            }
            answer.urls += 1;
            answer.fetched += u64::from(standing.page.is_some());
            for (way, counts) in [Way::In, Way::Out].into_iter().zip(&mut counts) {
                let neighbours = graph.neighbours(&standing, way);
                left = left.saturating_sub(neighbours.len() as u64);
                if way == Way::In {
                    pages.push((neighbours.len() as u64, graph.url(place)));
                }
                for other in neighbours.places() {
                    let key = graph.host_of(other);
                    if *key == *own {
                        answer.links_inside += u64::from(way == Way::Out);
                    } else if let Some(count) = counts.get_mut(&key) {
                        *count += 1;
                    } else {
                        counts.insert(key, 1);
                    }
                }
            }
            if pages.len() > limit * 4 {
                best_pages(&mut pages, limit);
            }
        }
        if answer.urls == 0 {
            return Ok(None);
        }
        let listed = |counts: HashMap<Vec<u8>, u64>| {
            let mut hosts: Vec<HostLink> = counts
                .into_iter()
                .map(|(key, links)| HostLink { host: host_name(&key).unwrap_or_default(), links })
                .collect();
            hosts.sort_by(|a, b| b.links.cmp(&a.links).then_with(|| a.host.cmp(&b.host)));
            hosts.truncate(limit);
            hosts
        };
        let [into, out] = counts;
        (answer.hosts_in, answer.hosts_out) = (listed(into), listed(out));
        answer.ranks = self.host_ranks(&graph, &own)?;
        best_pages(&mut pages, limit);
        answer.top_pages = pages.into_iter().map(|(score, url)| Scored { url, score: score as f64 }).collect();
        answer.domain =
            Url::parse(&format!("http://{host}/")).map(|u| u.registrable_domain().to_string()).unwrap_or_default();
        Ok(Some(answer))
    }

    /// The ranks of the host with this part of keys, if they were computed.
    fn host_ranks(&self, graph: &Graph, part: &[u8]) -> Result<Vec<RankOf>> {
        let mut ranks = Vec::new();
        let Some(number) = graph.host_number(part) else { return Ok(ranks) };
        for measure in MEASURES {
            let Some(file) = self.rank_file(graph, 0, &format!("{measure}{HOSTS}"))? else { continue };
            let Some((value, percentile)) = file.get(number).zip(file.percentile(number)) else { continue };
            ranks.push(RankOf { measure: measure.to_string(), value: f64::from(value), percentile });
        }
        Ok(ranks)
    }

    /// The graph in figures.
    pub fn overview(&self) -> Result<Overview> {
        let graph = self.read();
        let mut top_by = "links_in";
        let mut top = Vec::new();
        if let Some(ranks) = self.rank_file(&graph, 0, MEASURES[0])? {
            top_by = MEASURES[0];
            let url = |node| graph.url(Place { level: 0, node });
            top = ranks.top(TOP).into_iter().map(|(n, v)| Scored { url: url(n), score: f64::from(v) }).collect();
        } else {
            for (place, degree) in graph.most_linked(TOP, TOP_NODES_MAX) {
                top.push(Scored { url: graph.url(place), score: degree as f64 });
            }
        }
        Ok(Overview {
            urls: graph.urls_at_most(),
            pages: graph.pages(),
            links: graph.arcs(),
            hosts: graph.hosts(HOSTS_COUNTED_MAX),
            top,
            top_by: top_by.to_string(),
            running: DirLock::is_held(&self.dir),
        })
    }

    /// URLs that begin with this text, or whose host holds it, for a search field.
    pub fn suggest(&self, text: &str, limit: usize) -> Result<Vec<String>> {
        let graph = self.read();
        let text = text.trim();
        let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
        if let Some((host, path)) = bare.split_once('/') {
            let mut found = Vec::new();
            let schemes = match text.split_once("://") {
                Some((scheme, _)) => vec![scheme],
                None => vec!["https", "http"],
            };
            for scheme in schemes {
                if let Some(key) = rhumb_graph::key::key_of(&format!("{scheme}://{host}/{path}")) {
                    found.extend(graph.with_prefix(&key, limit));
                }
            }
            found.truncate(limit);
            return Ok(found);
        }
        let wanted = bare.to_ascii_lowercase();
        Ok(graph.hosts_like(|host| host.contains(&wanted), limit, SUGGEST_HOSTS_MAX))
    }
}

/// How many are named as the best known.
const TOP: usize = 20;

fn best_pages(pages: &mut Vec<(u64, String)>, limit: usize) {
    pages.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    pages.truncate(limit);
}
