//! `rhumb graph spam`: links that look as if they were made to be counted, with the figures that say so.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use rhumb_graph::algo::spam::{self, Finding, NEW_LINKS_MIN, Sign};
use rhumb_graph::{Node, Rows};
use serde_json::{Value, json};

use super::hosts::{Grouped, Grouping, domain_of};
use crate::links::whole::Whole;
use crate::{Exit, out};

/// The newest part of the visits, by their order: a page that got most of its links there got them suddenly.
const NEW_PART: f64 = 0.25;

/// Prints what was noticed.
pub fn run(dir: &Path, limit: usize, as_json: bool) -> Result<Exit> {
    let whole = Whole::open(dir)?;
    let hosts = Grouped::of(&whole, Grouping::Hosts)?;
    let mut domains: Vec<String> = Vec::new();
    let mut domain_of_host: Vec<Node> = Vec::with_capacity(hosts.names.len());
    for host in &hosts.names {
        let domain = domain_of(host);
        if domains.last() != Some(&domain) {
            domains.push(domain);
        }
        domain_of_host.push(domains.len() as Node - 1);
    }
    let domain_of_page: Vec<Node> = hosts.group_of.iter().map(|&host| domain_of_host[host as usize]).collect();
    let level = &whole.level;
    let turned = hosts.quotient.transposed();
    let (links, new, new_from_one) = news(&whole, &domain_of_page);
    let signs: [(&str, bool, Vec<Finding>); 5] = [
        ("farm", true, spam::farms(&hosts.quotient.graph, &turned.graph, &domain_of_host)?),
        ("one_sided_host", true, spam::one_sided_hosts(&turned, &domain_of_host)?),
        ("one_sided_page", false, spam::one_sided_pages(&level.into, &domain_of_page)?),
        ("sudden_page", false, spam::sudden(&links, &new, &new_from_one)?),
        ("scattering_page", false, spam::scattering_pages(&level.out, &domain_of_page)?),
    ];
    let url = |node: Node| whole.url(node).unwrap_or_default();
    let host = |node: Node| hosts.name(node);
    let domain = |node: Node| domains.get(node as usize).cloned().unwrap_or_default();
    if as_json {
        let mut all: Vec<Value> = Vec::new();
        for (kind, of_hosts, findings) in &signs {
            for finding in findings.iter().take(limit) {
                let name = |&n: &Node| if *of_hosts { host(n) } else { url(n) };
                let members: Vec<String> = finding.members.iter().map(name).collect();
                all.push(json!({"kind": kind, "members": members, "score": finding.score, "figures": figures(&finding.sign, &domain)}));
            }
        }
        out::json(&json!({"findings": all}))?;
        return Ok(Exit::Done);
    }
    let titles = [
        "Hosts of different domains that link to each other, both ways:",
        "Hosts whose links come from one domain or few:",
        "Pages whose links come from one domain or few:",
        "Pages that one domain has linked to of late:",
        "Pages that link to very many foreign domains:",
    ];
    let mut nothing = true;
    for (title, (_, of_hosts, findings)) in titles.iter().zip(&signs) {
        if findings.is_empty() {
            continue;
        }
        nothing = false;
        out::line(title)?;
        for finding in findings.iter().take(limit) {
            let name: &dyn Fn(Node) -> String = if *of_hosts { &host } else { &url };
            out::line(&format!("  {:.2}  {}", finding.score, finding.line(name, &domain)))?;
        }
    }
    if nothing {
        out::line("Nothing looks like links made for ranks.")?;
    }
    Ok(Exit::Done)
}

fn figures(sign: &Sign, domain: &dyn Fn(Node) -> String) -> Value {
    match *sign {
        Sign::Farm { density, returned } => json!({"density": density, "returned": returned}),
        Sign::OneSided { links, domains, domain: from, part } => {
            json!({"links": links, "domains": domains, "domain": domain(from), "part": part})
        }
        Sign::Sudden { links, new, new_from_one } => json!({"links": links, "new": new, "new_from_one": new_from_one}),
        Sign::Scattering { domains, links } => json!({"domains": domains, "links": links}),
    }
}

/// Of each URL: links from other domains, those among them on pages that were visited lately, and the most of these that one domain has.
fn news(whole: &Whole, domain_of: &[Node]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let level = &whole.level;
    let mut places: Vec<u64> = (0..whole.nodes()).filter_map(|n| level.nodes.place(n)).collect();
    let at = (places.len() as f64 * (1.0 - NEW_PART)) as usize;
    let since = if at < places.len() { *places.select_nth_unstable(at).1 } else { u64::MAX };
    let nodes = whole.nodes() as usize;
    let (mut links, mut new, mut from_one) = (vec![0; nodes], vec![0; nodes], vec![0; nodes]);
    let mut by_domain: HashMap<Node, u32> = HashMap::new();
    level.into.scan_all(&mut |node, row| {
        if (row.len() as u32) < NEW_LINKS_MIN {
            return;
        }
        by_domain.clear();
        let own = domain_of[node as usize];
        for &from in row.iter().filter(|&&from| domain_of[from as usize] != own) {
            links[node as usize] += 1;
            if level.nodes.place(from).is_some_and(|place| place >= since) {
                new[node as usize] += 1;
                *by_domain.entry(domain_of[from as usize]).or_default() += 1;
            }
        }
        from_one[node as usize] = by_domain.values().copied().max().unwrap_or(0);
    });
    (links, new, from_one)
}
