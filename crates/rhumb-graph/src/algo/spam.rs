//! Signs of links that were made to be counted. A report for a person or for a score; nothing here decides anything.
//!
//! Four signs, each a function of its own, on the graph of hosts (a [`Quotient`] of the page graph) or on pages:
//!
//! * [`farms`]: groups of hosts of different registrable domains that nearly all link to each other, both ways. On the web at large
//!   links between domains are seldom returned; a dozen sites that all return them have one owner or an agreement.
//! * [`one_sided_hosts`], [`one_sided_pages`]: much linked to, but by one domain, or by very many pages of very few domains.
//! * [`sudden`] (of what [`growth`] counts): most in-links are new, and most of the new ones come from one domain.
//! * [`scattering_pages`]: a page that links to very many foreign domains, as link directories and comment spam do.
//!
//! Every finding has figures that can be checked and a score from 0 to 1, by which findings of one kind are sorted; scores of
//! different kinds do not compare. A domain of a host is a number below the number of domains; names are the caller's business
//! ([`Finding::line`] asks for them).
//!
//! **Cost.** Each function is one pass, O(arcs of its graph), and sorting within rows; farms add the search for common partners. Memory: farms
//! 8 bytes for each reciprocated arc and some 100 a host; others a row. At most [`FINDINGS_MAX`] are kept.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::algo::components::Sets;
use crate::algo::distance::NodeHasher;
use crate::algo::quotient::Quotient;
use crate::{Csr, GraphError, Node, Result, Rows};

/// A farm has at least so many hosts, of as many domains: two or three that know each other are friends.
pub const FARM_MEMBERS_MIN: usize = 5;
/// Every member links both ways with at least this part of the others. In groups that grew by themselves it is below a third; and
/// above two thirds any two members have a partner in common, which is what keeps neighbouring farms apart.
pub const FARM_PARTNERS_MIN: f64 = 2.0 / 3.0;
/// Of the members' links to foreign domains at least this part is returned. Web-wide it is some percent.
pub const FARM_RETURNED_MIN: f64 = 0.5;
/// Fewer in-links from foreign domains are no attempt worth a report.
pub const IN_LINKS_MIN: u64 = 100;
/// One domain brings "nearly all" from this part on.
pub const ONE_DOMAIN_PART: f64 = 0.9;
/// So few linking domains are few,
pub const DOMAINS_FEW: usize = 3;
/// if each of them brings so many links on average: more than a template of a middle-sized site would.
pub const LINKS_PER_DOMAIN_MANY: f64 = 500.0;
/// A growth in links is sudden if at least this part is new.
pub const NEW_PART: f64 = 0.5;
/// Fewer new in-links happen to everybody who is in the news.
pub const NEW_LINKS_MIN: u32 = 50;
/// New links look bought if this part comes from one domain.
pub const NEW_ONE_DOMAIN_PART: f64 = 0.8;
/// A page that links to so many foreign domains is a directory or worse; 99.9 % of pages are below it.
pub const FOREIGN_DOMAINS_MANY: usize = 100;
/// Findings of a kind that are kept; the highest scores.
pub const FINDINGS_MAX: usize = 1_000;

/// What was noticed, with its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sign {
    /// Hosts of different domains that link to each other both ways.
    Farm {
        /// The part of all pairs of members that do.
        density: f64,
        /// The part of their links to foreign domains that are returned.
        returned: f64,
    },
    /// In-links come from one domain or few.
    OneSided {
        /// In-links from foreign domains.
        links: u64,
        /// How many domains they come from.
        domains: u32,
        /// The domain that brings most.
        domain: Node,
        /// The part it brings.
        part: f64,
    },
    /// Most in-links are new, and come from one domain.
    Sudden {
        /// In-links now.
        links: u32,
        /// New ones among them.
        new: u32,
        /// New ones from the domain that brings most of them.
        new_from_one: u32,
    },
    /// A page links to very many foreign domains.
    Scattering {
        /// How many.
        domains: u32,
        /// How many links it has in all.
        links: u32,
    },
}

/// Something noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What.
    pub sign: Sign,
    /// The nodes concerned, ascending.
    pub members: Vec<Node>,
    /// How strong the sign is, from 0 to 1.
    pub score: f64,
}

impl Finding {
    /// The finding in a line; `node` names members, `domain` domains.
    pub fn line(&self, node: &dyn Fn(Node) -> String, domain: &dyn Fn(Node) -> String) -> String {
        const NAMED_MAX: usize = 10;
        let mut names: Vec<String> = self.members.iter().take(NAMED_MAX).map(|&member| node(member)).collect();
        if self.members.len() > NAMED_MAX {
            names.push(format!("{} more", self.members.len() - NAMED_MAX));
        }
        let names = names.join(", ");
        let percent = |part: f64| (part * 100.0).round();
        match self.sign {
            Sign::Farm { density, returned } => {
                let (density, returned) = (percent(density), percent(returned));
                format!("{names}: {density}% of pairs link both ways, {returned}% of foreign links are returned")
            }
            Sign::OneSided { links, domains, domain: from, part } => {
                let (part, from) = (percent(part), domain(from));
                format!("{names}: {links} in-links from {domains} domains, {part}% from {from}")
            }
            Sign::Sudden { links, new, new_from_one } => {
                format!("{names}: {new} of {links} in-links are new, {new_from_one} of them from one domain")
            }
            Sign::Scattering { domains, links } => format!("{names}: {links} links to {domains} foreign domains"),
        }
    }
}

/// The strongest first, ties by members.
fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.members.cmp(&b.members)));
    findings.truncate(FINDINGS_MAX);
    findings
}

/// Keeps the list from growing with the graph.
fn keep(findings: &mut Vec<Finding>, finding: Finding) {
    findings.push(finding);
    if findings.len() >= 2 * FINDINGS_MAX {
        *findings = ranked(std::mem::take(findings));
    }
}

fn check_lengths(what: &str, given: usize, nodes: Node) -> Result<()> {
    if given == nodes as usize {
        return Ok(());
    }
    Err(GraphError::input(format!("{what} of {given} nodes for a graph of {nodes}")))
}

/// Reciprocal farms in a graph of hosts. `domain_of` has the registrable domain of each.
///
/// Only arcs that are returned between different domains are looked at, and of these only those between hosts that have a
/// partner in common. Hosts are added from the innermost core outwards (a k-core is what is left when hosts with
/// fewer than k partners are taken away, again and again), first those of a level to each other and then to what is there;
/// whenever a connected group is dense enough it is a farm, and takes the place of smaller ones within it.
pub fn farms(forward: &dyn Rows, transposed: &dyn Rows, domain_of: &[Node]) -> Result<Vec<Finding>> {
    let hosts = forward.nodes();
    check_lengths("domains", domain_of.len(), hosts)?;
    check_lengths("predecessors", transposed.nodes() as usize, hosts)?;
    let mut mutual = Csr::default();
    let mut foreign = vec![0u32; hosts as usize];
    let mut returned = vec![0u32; hosts as usize];
    let (mut back, mut row_mutual) = (Vec::new(), Vec::new());
    forward.scan_all(&mut |host, row| {
        transposed.row(host, &mut back);
        row_mutual.clear();
        for &to in row.iter().filter(|&&to| domain_of[to as usize] != domain_of[host as usize]) {
            foreign[host as usize] += 1;
            if back.binary_search(&to).is_ok() {
                row_mutual.push(to);
            }
        }
        returned[host as usize] = row_mutual.len() as u32;
        mutual.push(&row_mutual);
    });
    let mutual = with_common_partner(&mutual);
    let cores = cores(&mutual);
    let mut order: Vec<Node> = (0..hosts).filter(|&host| cores[host as usize] > 0).collect();
    order.sort_by_key(|&host| (std::cmp::Reverse(cores[host as usize]), host));

    let mut sets = Sets::new(hosts);
    let mut groups: HashMap<Node, Group, BuildHasherDefault<NodeHasher>> = HashMap::default();
    for level in order.chunk_by(|&a, &b| cores[a as usize] == cores[b as usize]) {
        let core = cores[level[0] as usize];
        for &host in level {
            groups.insert(host, Group { members: vec![host], arcs: 0, farms: vec![] });
        }
        for inwards in [false, true] {
            for &host in level {
                for &to in mutual.successors(host) {
                    // An arc between two hosts of this level is seen from both; it is counted once.
                    let wanted =
                        if inwards { cores[to as usize] > core } else { cores[to as usize] == core && to < host };
                    if !wanted {
                        continue;
                    }
                    let (a, b) = (sets.find(host), sets.find(to));
                    sets.join(a, b);
                    let other = if a == b { None } else { groups.remove(&a.max(b)) };
                    if let Some(group) = groups.get_mut(&a.min(b)) {
                        group.arcs += 1;
                        group.absorb(other);
                    }
                }
            }
            let mut roots: Vec<Node> = level.iter().map(|&host| sets.find(host)).collect();
            roots.sort_unstable();
            roots.dedup();
            for root in roots {
                if let Some(group) = groups.get_mut(&root) {
                    group.judge(core, &returned, &foreign, domain_of);
                }
            }
        }
    }
    Ok(ranked(groups.into_values().flat_map(|group| group.farms).collect()))
}

/// Hosts that hang together by returned links.
struct Group {
    members: Vec<Node>,
    /// Pairs of them that link both ways.
    arcs: u64,
    /// Farms within.
    farms: Vec<Finding>,
}

impl Group {
    fn absorb(&mut self, other: Option<Group>) {
        let Some(mut other) = other else { return };
        // The shorter list is moved: each member at most log2(members) times.
        if other.members.len() > self.members.len() {
            std::mem::swap(&mut self.members, &mut other.members);
        }
        self.members.append(&mut other.members);
        self.farms.append(&mut other.farms);
        self.arcs += other.arcs;
    }

    /// `core` is how many partners every member has in the group at least.
    fn judge(&mut self, core: u32, returned: &[u32], foreign: &[u32], domain_of: &[Node]) {
        let others = self.members.len() as f64 - 1.0;
        if self.members.len() < FARM_MEMBERS_MIN || f64::from(core) < FARM_PARTNERS_MIN * others {
            return;
        }
        let density = 2.0 * self.arcs as f64 / (others * (others + 1.0));
        let mut domains: Vec<Node> = self.members.iter().map(|&host| domain_of[host as usize]).collect();
        domains.sort_unstable();
        domains.dedup();
        let links: u64 = self.members.iter().map(|&host| u64::from(foreign[host as usize])).sum();
        let back: u64 = self.members.iter().map(|&host| u64::from(returned[host as usize])).sum();
        let returned = back as f64 / links.max(1) as f64;
        if domains.len() < FARM_MEMBERS_MIN || returned < FARM_RETURNED_MIN {
            return;
        }
        let mut members = self.members.clone();
        members.sort_unstable();
        // Ten members of a perfect farm are as sure a sign as there is.
        let score = density * returned * (domains.len() as f64 / 10.0).min(1.0);
        self.farms = vec![Finding { sign: Sign::Farm { density, returned }, members, score }];
    }
}

/// The arcs of a symmetric graph whose ends have a successor in common. O(arcs^1.5) at worst, which is a clique.
fn with_common_partner(mutual: &Csr) -> Csr {
    let mut kept = Csr::default();
    let mut row = Vec::new();
    for host in 0..mutual.nodes() {
        let own = mutual.successors(host);
        row.clear();
        row.extend(own.iter().filter(|&&to| {
            let other = mutual.successors(to);
            let (short, long) = if own.len() < other.len() { (own, other) } else { (other, own) };
            short.iter().any(|partner| long.binary_search(partner).is_ok())
        }));
        kept.push(&row);
    }
    kept
}

/// The largest k for which each node is in the k-core of a symmetric graph (Batagelj and Zaveršnik 2003). O(arcs).
fn cores(graph: &Csr) -> Vec<u32> {
    let nodes = graph.nodes() as usize;
    let mut degrees: Vec<u32> = (0..graph.nodes()).map(|node| graph.degree(node)).collect();
    let mut starts = vec![0usize; degrees.iter().max().map_or(1, |&most| most as usize + 2)];
    for &degree in &degrees {
        starts[degree as usize + 1] += 1;
    }
    for degree in 1..starts.len() {
        starts[degree] += starts[degree - 1];
    }
    // Nodes sorted by degree, where each of them is, and where each degree begins.
    let mut places = vec![0usize; nodes];
    let mut sorted = vec![0 as Node; nodes];
    let mut free = starts.clone();
    for node in 0..nodes {
        places[node] = free[degrees[node] as usize];
        sorted[places[node]] = node as Node;
        free[degrees[node] as usize] += 1;
    }
    for at in 0..nodes {
        let node = sorted[at];
        for &other in graph.successors(node) {
            let degree = degrees[other as usize];
            if degree <= degrees[node as usize] {
                continue;
            }
            // It changes places with the first of its degree, and then belongs to those before.
            let first = starts[degree as usize];
            let (head, place) = (sorted[first], places[other as usize]);
            sorted.swap(first, place);
            (places[other as usize], places[head as usize]) = (first, place);
            starts[degree as usize] = first + 1;
            degrees[other as usize] -= 1;
        }
    }
    degrees
}

/// Judges where the in-links of a node come from: domain and number, domains ascending.
fn one_sided(node: Node, links_by_domain: &[(Node, u64)]) -> Option<Finding> {
    let links: u64 = links_by_domain.iter().map(|&(_, links)| links).sum();
    let &(domain, most) = links_by_domain.iter().max_by_key(|&&(domain, links)| (links, std::cmp::Reverse(domain)))?;
    let domains = links_by_domain.len();
    let part = most as f64 / links.max(1) as f64;
    let few = domains <= DOMAINS_FEW && links as f64 / domains as f64 >= LINKS_PER_DOMAIN_MANY;
    if links < IN_LINKS_MIN || !(part >= ONE_DOMAIN_PART || few) {
        return None;
    }
    // 100 links from a domain give half the score, ten thousand nearly all of it.
    let average = links as f64 / domains as f64;
    let score = part.max(1.0 / domains as f64) * average / (average + IN_LINKS_MIN as f64);
    let sign = Sign::OneSided { links, domains: domains as u32, domain, part };
    Some(Finding { sign, members: vec![node], score })
}

/// Sums up what comes from each domain but the node's own.
fn by_domain(links: &mut Vec<(Node, u64)>, own: Node) {
    links.retain(|&(domain, _)| domain != own);
    links.sort_unstable();
    links.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}

/// Hosts whose in-links, counted in page links, come from one domain or from very many pages of few. `transposed` is the host graph
/// turned round ([`Quotient::transposed`]).
pub fn one_sided_hosts(transposed: &Quotient, domain_of: &[Node]) -> Result<Vec<Finding>> {
    check_lengths("domains", domain_of.len(), transposed.graph.nodes())?;
    let (mut findings, mut links) = (Vec::new(), Vec::new());
    for host in 0..transposed.graph.nodes() {
        links.clear();
        links.extend(transposed.row(host).map(|(from, weight)| (domain_of[from as usize], weight.arcs)));
        by_domain(&mut links, domain_of[host as usize]);
        if let Some(finding) = one_sided(host, &links) {
            keep(&mut findings, finding);
        }
    }
    Ok(ranked(findings))
}

/// The same for pages. `domain_of` has the domain of each page.
pub fn one_sided_pages(transposed: &dyn Rows, domain_of: &[Node]) -> Result<Vec<Finding>> {
    check_lengths("domains", domain_of.len(), transposed.nodes())?;
    let (mut findings, mut links) = (Vec::new(), Vec::new());
    transposed.scan_all(&mut |page, row| {
        if (row.len() as u64) < IN_LINKS_MIN {
            return;
        }
        links.clear();
        links.extend(row.iter().map(|&from| (domain_of[from as usize], 1)));
        by_domain(&mut links, domain_of[page as usize]);
        if let Some(finding) = one_sided(page, &links) {
            keep(&mut findings, finding);
        }
    });
    Ok(ranked(findings))
}

/// How in-links grew, by node; links from the own domain are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// In-links now.
    pub in_links: Vec<u32>,
    /// Those of them that are new.
    pub new_in_links: Vec<u32>,
    /// Those of the new ones that come from the domain that brings most of them.
    pub new_from_one_domain: Vec<u32>,
}

/// Counts growth. `is_new` says of an arc, source and target, whether it was not there at the time to compare with: by when its source
/// was first seen, say. O(arcs), 12 bytes a node.
pub fn growth(transposed: &dyn Rows, domain_of: &[Node], is_new: &dyn Fn(Node, Node) -> bool) -> Result<Growth> {
    check_lengths("domains", domain_of.len(), transposed.nodes())?;
    let (mut growth, mut new) = (Growth::default(), Vec::new());
    transposed.scan_all(&mut |node, row| {
        let own = domain_of[node as usize];
        let foreign = || row.iter().filter(|&&from| domain_of[from as usize] != own);
        new.clear();
        new.extend(foreign().filter(|&&from| is_new(from, node)).map(|&from| domain_of[from as usize]));
        new.sort_unstable();
        growth.in_links.push(foreign().count() as u32);
        growth.new_in_links.push(new.len() as u32);
        growth.new_from_one_domain.push(new.chunk_by(|a, b| a == b).map(<[Node]>::len).max().unwrap_or(0) as u32);
    });
    Ok(growth)
}

/// Nodes whose in-links are mostly new, and mostly from one domain: see [`Growth`] for what is given.
pub fn sudden(in_links: &[u32], new_in_links: &[u32], new_from_one_domain: &[u32]) -> Result<Vec<Finding>> {
    let nodes = in_links.len() as Node;
    check_lengths("new in-links", new_in_links.len(), nodes)?;
    check_lengths("new in-links from a domain", new_from_one_domain.len(), nodes)?;
    let mut findings = Vec::new();
    for (node, &links) in in_links.iter().enumerate() {
        let (new, new_from_one) = (new_in_links[node], new_from_one_domain[node]);
        let part = f64::from(new) / f64::from(links.max(new).max(1));
        let one = f64::from(new_from_one) / f64::from(new.max(1));
        if new < NEW_LINKS_MIN || part < NEW_PART || one < NEW_ONE_DOMAIN_PART {
            continue;
        }
        let score = part * one.min(1.0) * f64::from(new) / f64::from(new.saturating_add(NEW_LINKS_MIN));
        let sign = Sign::Sudden { links, new, new_from_one };
        keep(&mut findings, Finding { sign, members: vec![node as Node], score });
    }
    Ok(ranked(findings))
}

/// Pages that link to very many foreign domains. `domain_of` has the domain of each page.
pub fn scattering_pages(forward: &dyn Rows, domain_of: &[Node]) -> Result<Vec<Finding>> {
    check_lengths("domains", domain_of.len(), forward.nodes())?;
    let (mut findings, mut domains) = (Vec::new(), Vec::new());
    forward.scan_all(&mut |page, row| {
        if row.len() < FOREIGN_DOMAINS_MANY {
            return;
        }
        let own = domain_of[page as usize];
        domains.clear();
        domains.extend(row.iter().map(|&to| domain_of[to as usize]).filter(|&domain| domain != own));
        domains.sort_unstable();
        domains.dedup();
        if domains.len() >= FOREIGN_DOMAINS_MANY {
            let many = domains.len() as f64;
            let score = many / (many + FOREIGN_DOMAINS_MANY as f64) * many / row.len() as f64;
            let sign = Sign::Scattering { domains: domains.len() as u32, links: row.len() as u32 };
            keep(&mut findings, Finding { sign, members: vec![page], score });
        }
    });
    Ok(ranked(findings))
}

#[cfg(test)]
#[path = "spam_tests.rs"]
mod tests;
