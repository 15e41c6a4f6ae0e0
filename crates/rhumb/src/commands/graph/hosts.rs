//! `rhumb graph hosts`: the graphs of hosts and of registrable domains.

use std::path::Path;

use anyhow::Result;
use rhumb_core::url::Url;
use rhumb_graph::algo::quotient::Quotient;
use rhumb_graph::key::{host_name, host_part};
use rhumb_graph::{Node, Rows};
use serde_json::{Value, json};

use crate::display::thousands;
use crate::links::Links;
use crate::links::answer::HostLink;
use crate::links::whole::Whole;
use crate::{Exit, out, usage};

/// Arcs between hosts that are held in memory.
const ARCS_MAX: usize = 200_000_000;

/// What nodes are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Host names.
    Hosts,
    /// What is registered: `example.co.uk`.
    Domains,
}

/// A coarser graph, and what its nodes are called.
pub struct Grouped {
    pub quotient: Quotient,
    pub names: Vec<String>,
    /// The group of every node.
    pub group_of: Vec<Node>,
}

impl Grouped {
    /// The graph of hosts or domains.
    pub fn of(whole: &Whole, grouping: Grouping) -> Result<Grouped> {
        let level = &whole.level;
        if level.urls.is_none() {
            return Err(usage("this graph has no URLs, and so no hosts"));
        }
        let mut names: Vec<String> = Vec::new();
        let mut group_of: Vec<Node> = Vec::with_capacity(level.nodes.len() as usize);
        let mut key = Vec::new();
        for number in 0..level.nodes.hosts() {
            let range = level.nodes.host(number);
            level.key(range.start, &mut key);
            let host = host_name(host_part(&key)).unwrap_or_default();
            let name = if grouping == Grouping::Hosts { host } else { domain_of(&host) };
            // Hosts of a domain are neighbours in the order of keys.
            if names.last() != Some(&name) {
                names.push(name);
            }
            group_of.resize(range.end as usize, names.len() as Node - 1);
        }
        let quotient = Quotient::of(&level.out, &group_of, names.len() as Node, ARCS_MAX)?;
        Ok(Grouped { quotient, names, group_of })
    }

    /// The name of a group.
    pub fn name(&self, group: Node) -> String {
        self.names.get(group as usize).cloned().unwrap_or_default()
    }
}

/// The registrable domain of a host.
pub fn domain_of(host: &str) -> String {
    Url::parse(&format!("http://{host}/")).map_or_else(|_| host.to_string(), |u| u.registrable_domain().to_string())
}

/// Prints the heaviest links between hosts or domains.
pub fn run(dir: &Path, domains: bool, limit: usize, as_json: bool) -> Result<Exit> {
    let whole = Whole::open(dir)?;
    let grouping = if domains { Grouping::Domains } else { Grouping::Hosts };
    let grouped = Grouped::of(&whole, grouping)?;
    let groups = grouped.quotient.graph.nodes();
    let mut heaviest: Vec<(u64, Node, Node)> = Vec::new();
    for from in 0..groups {
        heaviest.extend(grouped.quotient.row(from).map(|(to, weight)| (weight.arcs, from, to)));
        if heaviest.len() > limit.max(1) * 1000 {
            heaviest.sort_unstable_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            heaviest.truncate(limit);
        }
    }
    heaviest.sort_unstable_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    heaviest.truncate(limit);
    if as_json {
        let links: Vec<Value> = heaviest
            .iter()
            .map(|(links, from, to)| json!({"from": grouped.name(*from), "to": grouped.name(*to), "links": links}))
            .collect();
        let inside: u64 = grouped.quotient.within.iter().map(|w| w.arcs).sum();
        let what = if domains { "domains" } else { "hosts" };
        out::json(
            &json!({what: groups, "arcs": grouped.quotient.graph.arcs(), "links_inside": inside, "links": links}),
        )?;
        return Ok(Exit::Done);
    }
    let what = if domains { "domains" } else { "hosts" };
    out::line(&format!(
        "{} {what}, {} of them link to another",
        thousands(u64::from(groups)),
        thousands(linking(&grouped))
    ))?;
    for (links, from, to) in heaviest {
        out::line(&format!("{:>10}  {} → {}", thousands(links), grouped.name(from), grouped.name(to)))?;
    }
    Ok(Exit::Done)
}

fn linking(grouped: &Grouped) -> u64 {
    let graph = &grouped.quotient.graph;
    (0..graph.nodes()).filter(|&g| graph.degree(g) > 0).count() as u64
}

/// Prints the links of one host.
pub fn of_one(dir: &Path, host: &str, limit: usize, as_json: bool) -> Result<Exit> {
    let links = Links::open(dir)?;
    let host = host.to_ascii_lowercase();
    let answer = links.host(&host, limit)?.ok_or_else(|| usage(format!("the graph has no page of {host}")))?;
    if as_json {
        out::json(&answer)?;
        return Ok(Exit::Done);
    }
    let counts = [answer.urls, answer.fetched, answer.links_inside].map(thousands);
    out::line(&format!("{host}: {} URLs, {} fetched, {} links among them", counts[0], counts[1], counts[2]))?;
    let list = |title: &str, hosts: &[HostLink]| -> Result<()> {
        out::line(title)?;
        hosts.iter().try_for_each(|h| out::line(&format!("{:>10}  {}", thousands(h.links), h.host)))
    };
    list("Links from:", &answer.hosts_in)?;
    list("Links to:", &answer.hosts_out)?;
    if answer.partial {
        out::line("There is more: the host is too large to count it all.")?;
    }
    Ok(Exit::Done)
}
