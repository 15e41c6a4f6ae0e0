//! Asking a graph that has several levels, and links in memory, as if it were one.
//!
//! A URL may stand in several levels, under another number in each: as a page in those in which it was visited, of which the
//! newest counts, and as a node in those that have links to it. A [`Place`] is one of these.

use crate::code::Coded;
use crate::key::key_of;
use crate::merge::Part;
use crate::rows::{Node, Rows};
use crate::store::Graph;

/// A node of one level; the level behind the last one is memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which level.
    pub level: u32,
    /// Its node there.
    pub node: Node,
}

/// Everywhere a URL stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The places, the oldest level first.
    pub places: Vec<Place>,
    /// That of its newest visit, if it was visited.
    pub page: Option<Place>,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Links that lead to it.
    In,
    /// Links that lead from it.
    Out,
}

/// Neighbours of a node: sorted lists, one for each level that has some.
pub struct Neighbours<'a> {
    graph: &'a Graph,
    lists: Vec<(u32, Vec<Node>)>,
}

impl Graph {
    /// Where a URL stands; nothing if the graph does not know it. Nodes without URLs go by their numbers.
    pub fn find(&self, url: &str) -> Option<Standing> {
        if !self.is_named() {
            let place = Place { level: 0, node: url.parse().ok()? };
            let is_node = self.parts.first().is_some_and(|p| place.node < p.level.nodes.len());
            return is_node.then(|| Standing { places: vec![place], page: Some(place) });
        }
        let key = key_of(url)?;
        let fingerprint = if self.delta.is_empty() { 0 } else { (self.fingerprint)(url) };
        let standing = self.standing(&key, fingerprint);
        (!standing.places.is_empty()).then_some(standing)
    }

    fn standing(&self, key: &[u8], fingerprint: u64) -> Standing {
        let mut standing = Standing::default();
        for (i, part) in self.parts.iter().enumerate() {
            if let Some(node) = part.level.find(key) {
                let place = Place { level: i as u32, node };
                standing.places.push(place);
                if is_live_page(part, node) {
                    standing.page = Some(place);
                }
            }
        }
        if let Some(node) = self.delta.find(fingerprint) {
            let place = Place { level: self.parts.len() as u32, node };
            standing.places.push(place);
            if self.delta.place(node).is_some() {
                standing.page = Some(place);
            }
        }
        standing
    }

    /// Where the URL of one place stands elsewhere.
    pub fn standing_of(&self, place: Place) -> Standing {
        if !self.is_named() {
            return Standing { places: vec![place], page: Some(place) };
        }
        if self.parts.len() == 1 && self.delta.is_empty() {
            let page = is_live_page(&self.parts[0], place.node).then_some(place);
            return Standing { places: vec![place], page };
        }
        let key = self.key(place);
        let url = crate::key::url_of(&key).unwrap_or_default();
        self.standing(&key, (self.fingerprint)(&url))
    }

    /// The key at a place.
    pub fn key(&self, place: Place) -> Vec<u8> {
        let mut key = Vec::new();
        self.put_key(place, &mut key);
        key
    }

    fn put_key(&self, place: Place, into: &mut Vec<u8>) {
        into.clear();
        match self.parts.get(place.level as usize) {
            Some(_) if !self.is_named() => into.extend_from_slice(place.node.to_string().as_bytes()),
            Some(part) => part.level.key(place.node, into),
            None => into.extend_from_slice(self.delta.key(place.node)),
        }
    }

    /// The URL at a place; for a node without one its number.
    pub fn url(&self, place: Place) -> String {
        if self.is_named() { self.url_of(&self.key(place)) } else { place.node.to_string() }
    }

    /// The URL of a key, as [`Neighbours::after`] gives it.
    pub fn url_of(&self, key: &[u8]) -> String {
        if self.is_named() {
            crate::key::url_of(key).unwrap_or_default()
        } else {
            String::from_utf8_lossy(key).into_owned()
        }
    }

    /// The key of a URL, to go on behind it.
    pub fn key_of(&self, url: &str) -> Option<Vec<u8>> {
        if self.is_named() { key_of(url) } else { url.parse::<Node>().ok().map(|n| n.to_string().into_bytes()) }
    }

    /// Where in the log the visit at a place lies, if the node is a page there.
    pub fn visit(&self, place: Place) -> Option<u64> {
        match self.parts.get(place.level as usize) {
            Some(part) => part.level.nodes.place(place.node),
            None => self.delta.place(place.node),
        }
    }

    /// How many links a URL has.
    pub fn degree(&self, standing: &Standing, way: Way) -> u64 {
        let whole = |part: &Part| part.dead.is_empty();
        match (way, standing.page) {
            (Way::Out, None) => 0,
            (Way::Out, Some(page)) => match self.parts.get(page.level as usize) {
                Some(part) => u64::from(part.level.out.degree(page.node)),
                None => self.delta.successors(page.node).len() as u64,
            },
            (Way::In, _) if self.delta.is_empty() && self.parts.iter().all(whole) => {
                standing.places.iter().map(|p| u64::from(self.parts[p.level as usize].level.into.degree(p.node))).sum()
            }
            (Way::In, _) => self.neighbours(standing, way).len() as u64,
        }
    }

    /// The neighbours of a URL.
    pub fn neighbours(&self, standing: &Standing, way: Way) -> Neighbours<'_> {
        let mut lists = Vec::new();
        let of_level = |rows: &Coded, node: Node| {
            let mut list = Vec::new();
            rows.row(node, &mut list);
            list
        };
        let places = match way {
            Way::In => standing.places.as_slice(),
            Way::Out => standing.page.as_slice(),
        };
        for &place in places {
            let list = match (self.parts.get(place.level as usize), way) {
                (Some(part), Way::Out) => of_level(&part.level.out, place.node),
                (Some(part), Way::In) => {
                    let mut list = of_level(&part.level.into, place.node);
                    if !part.dead.is_empty() {
                        list.retain(|&n| !part.dead.contains(n));
                    }
                    list
                }
                (None, Way::Out) => self.sorted_by_key(self.delta.successors(place.node).to_vec()),
                (None, Way::In) => self.sorted_by_key(self.delta.predecessors(place.node).collect()),
            };
            if !list.is_empty() {
                lists.push((place.level, list));
            }
        }
        Neighbours { graph: self, lists }
    }

    fn sorted_by_key(&self, mut nodes: Vec<Node>) -> Vec<Node> {
        nodes.sort_unstable_by(|&a, &b| self.delta.key(a).cmp(self.delta.key(b)));
        nodes
    }

    /// Some URLs whose keys begin with these bytes, in order.
    pub fn with_prefix(&self, prefix: &[u8], limit: usize) -> Vec<String> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for part in &self.parts {
            let Some(urls) = &part.level.urls else { continue };
            let range = urls.range_of_prefix(prefix);
            let mut scan = urls.scan(range.start);
            for _ in range.take(limit) {
                keys.extend(scan.next().map(<[u8]>::to_vec));
            }
        }
        let of_delta = (0..self.delta.nodes()).map(|n| self.delta.key(n)).filter(|k| k.starts_with(prefix));
        keys.extend(of_delta.map(<[u8]>::to_vec));
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(limit);
        keys.iter().filter_map(|k| crate::key::url_of(k)).collect()
    }
}

fn is_live_page(part: &Part, node: Node) -> bool {
    part.level.nodes.is_page(node) && !part.dead.contains(node)
}

impl Neighbours<'_> {
    /// How many there are. A page is in force in one level alone, so none is counted twice.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|(_, list)| list.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// All of them, level by level.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.lists.iter().flat_map(|(level, list)| list.iter().map(|&node| Place { level: *level, node }))
    }

    /// So many behind the key `after`, in the order of keys, and whether there are more.
    pub fn after(&self, after: Option<&[u8]>, limit: usize) -> (Vec<(Place, Vec<u8>)>, bool) {
        let graph = self.graph;
        let mut heads: Vec<(&[Node], u32, Vec<u8>)> = Vec::new();
        for (level, list) in &self.lists {
            let from = after.map_or(0, |after| match graph.parts.get(*level as usize) {
                Some(_) if !graph.is_named() => {
                    let after: Option<Node> = std::str::from_utf8(after).ok().and_then(|text| text.parse().ok());
                    list.partition_point(|&n| Some(n) <= after)
                }
                Some(part) => {
                    let urls = part.level.urls.as_ref();
                    let bound = urls.map_or(0, |u| u.lower_bound(after));
                    let equal = urls.is_some_and(|u| u.find(after) == Some(bound));
                    list.partition_point(|&n| n < bound || (equal && n == bound))
                }
                None => list.partition_point(|&n| graph.delta.key(n) <= after),
            });
            if let [first, ..] = &list[from..] {
                heads.push((&list[from..], *level, graph.key(Place { level: *level, node: *first })));
            }
        }
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(least) = (0..heads.len()).min_by(|&a, &b| heads[a].2.cmp(&heads[b].2)) else { break };
            let (list, level, key) = &mut heads[least];
            let place = Place { level: *level, node: list[0] };
            found.push((place, std::mem::take(key)));
            *list = &list[1..];
            match list.first() {
                Some(&node) => {
                    let mut next = Vec::with_capacity(96);
                    graph.put_key(Place { level: *level, node }, &mut next);
                    *key = next;
                }
                None => {
                    heads.swap_remove(least);
                }
            }
        }
        (found, !heads.is_empty())
    }
}

/// Questions about hosts and about everything.
impl Graph {
    /// All nodes whose keys begin with these bytes, level by level; a URL that stands in several comes several times.
    pub fn places_of_prefix(&self, prefix: &[u8]) -> Vec<Place> {
        let mut places = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let range = part.level.urls.as_ref().map_or(0..0, |u| u.range_of_prefix(prefix));
            places.extend(range.map(|node| Place { level: i as u32, node }));
        }
        let level = self.parts.len() as u32;
        let of_delta = (0..self.delta.nodes()).filter(|&n| self.delta.key(n).starts_with(prefix));
        places.extend(of_delta.map(|node| Place { level, node }));
        places
    }

    /// The host part of the key at a place, bracket included.
    pub fn host_of(&self, place: Place) -> Vec<u8> {
        let key = match self.parts.get(place.level as usize) {
            // Of all URLs of a host the first of a block is the cheapest to get; its host part is the same.
            Some(part) => {
                let first = part.level.nodes.host(part.level.nodes.host_of(place.node)).start;
                self.key(Place { node: first, ..place })
            }
            None => self.key(place),
        };
        crate::key::host_part(&key).to_vec()
    }

    /// The number of a host in the first level, by the part of keys that its pages share.
    pub fn host_number(&self, part: &[u8]) -> Option<Node> {
        let level = &self.parts.first()?.level;
        let range = level.urls.as_ref()?.range_of_prefix(part);
        (!range.is_empty()).then(|| level.nodes.host_of(range.start) as Node)
    }

    /// How many URLs there are; one that stands in several levels is counted in each.
    pub fn urls_at_most(&self) -> u64 {
        self.parts.iter().map(|p| u64::from(p.level.nodes.len())).sum::<u64>() + u64::from(self.delta.nodes())
    }

    /// How many hosts there are; of more than `counted_max`, some may be counted twice.
    pub fn hosts(&self, counted_max: usize) -> u64 {
        if self.delta.is_empty() && self.parts.len() <= 1 {
            return self.parts.iter().map(|p| p.level.nodes.hosts() as u64).sum();
        }
        let sum: usize = self.parts.iter().map(|p| p.level.nodes.hosts()).sum();
        if sum > counted_max {
            return sum as u64;
        }
        let mut hosts = std::collections::HashSet::new();
        self.each_host(|host| {
            hosts.insert(host.to_vec());
            true
        });
        hosts.len() as u64
    }

    /// Front pages of hosts whose names are wanted, so many at most, among so many hosts.
    pub fn hosts_like(&self, wanted: impl Fn(&str) -> bool, limit: usize, looked_at_max: usize) -> Vec<String> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut looked_at = 0;
        self.each_host(|part| {
            looked_at += 1;
            if crate::key::host_name(part).is_some_and(|name| wanted(&name)) && !found.iter().any(|f| f == part) {
                found.push(part.to_vec());
            }
            found.len() < limit && looked_at < looked_at_max
        });
        found.iter().flat_map(|part| self.with_prefix(part, 1)).collect()
    }

    /// Calls `each` with the host part of every host until it says stop; a host may come several times.
    fn each_host(&self, mut each: impl FnMut(&[u8]) -> bool) {
        let mut key = Vec::new();
        for part in &self.parts {
            for number in 0..part.level.nodes.hosts() {
                part.level.key(part.level.nodes.host(number).start, &mut key);
                if !each(crate::key::host_part(&key)) {
                    return;
                }
            }
        }
        for node in 0..self.delta.nodes() {
            if !each(crate::key::host_part(self.delta.key(node))) {
                return;
            }
        }
    }

    /// The URLs with the most links to them, looking at so many nodes of each level at most. Links of several levels are not added up:
    /// while a graph grows, this is what the largest level says.
    pub fn most_linked(&self, count: usize, nodes_max: Node) -> Vec<(Place, u64)> {
        let largest = (0..self.parts.len()).max_by_key(|&i| self.parts[i].level.weight());
        let mut best: Vec<(u64, Place)> = Vec::new();
        let mut offer = |degree: u64, place: Place| {
            if best.len() < count || best.last().is_some_and(|(least, _)| degree > *least) {
                let at = best.partition_point(|(d, p)| *d > degree || (*d == degree && *p < place));
                best.insert(at, (degree, place));
                best.truncate(count);
            }
        };
        match largest {
            Some(i) => {
                let level = &self.parts[i].level;
                for node in 0..level.nodes.len().min(nodes_max) {
                    offer(u64::from(level.into.degree(node)), Place { level: i as u32, node });
                }
            }
            None => {
                for node in 0..self.delta.nodes() {
                    offer(self.delta.predecessors(node).count() as u64, Place { level: 0, node });
                }
            }
        }
        best.into_iter().map(|(degree, place)| (place, degree)).collect()
    }
}
