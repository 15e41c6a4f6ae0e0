//! `rhumb graph rank`: ranks of pages, hosts and domains.
//!
//! PageRank follows links with a chance of `damping` and starts anew on any page otherwise; what a page without links has goes to
//! all pages alike. Links that authors do not vouch for count like others: whoever wants them out leaves them out of the graph.

use anyhow::Result;
use rhumb_graph::algo::hyperball::HyperBall;
use rhumb_graph::algo::pagerank::PageRank;
use rhumb_graph::algo::ranks::{self, MEASURES};
use rhumb_graph::algo::{outdegrees, top};
use rhumb_graph::{Node, Rows};
use serde_json::{Value, json};

use super::hosts::{Grouped, Grouping};
use crate::cli::{Measure, RankArgs};
use crate::links::whole::{HOSTS, Whole};
use crate::{Exit, out};

/// Memory for harmonic centrality.
const HARMONIC_BYTES_MAX: u64 = 2 << 30;

/// Ranks, and how they were computed.
struct Computed {
    values: Vec<f64>,
    parameters: Value,
}

/// Computes ranks, keeps those of pages and hosts, and shows the highest.
pub fn run(args: &RankArgs, as_json: bool) -> Result<Exit> {
    let whole = Whole::open(&args.dir)?;
    let level = &whole.level;
    let grouping = match (args.hosts, args.domains) {
        (true, _) => Some(Grouping::Hosts),
        (_, true) => Some(Grouping::Domains),
        _ => None,
    };
    let (computed, named): (Computed, Box<dyn Fn(Node) -> Option<String>>) = match grouping {
        None => {
            let computed = compute(args, &level.out, &level.into)?;
            if whole.is_kept {
                keep(&whole, measure_name(args.measure), &computed)?;
            }
            (computed, Box::new(|node| whole.url(node)))
        }
        Some(grouping) => {
            let grouped = Grouped::of(&whole, grouping)?;
            let transposed = grouped.quotient.graph.transposed();
            let computed = compute(args, &grouped.quotient.graph, &transposed)?;
            if whole.is_kept && grouping == Grouping::Hosts {
                keep(&whole, &format!("{}{HOSTS}", measure_name(args.measure)), &computed)?;
            }
            (computed, Box::new(move |group| Some(grouped.name(group))))
        }
    };
    let values = computed.values.iter().enumerate().map(|(n, &v)| (n as Node, v));
    let best = top(values, args.top as usize);
    if as_json {
        let key = match grouping {
            None => "url",
            Some(Grouping::Hosts) => "host",
            Some(Grouping::Domains) => "domain",
        };
        let best: Vec<Value> = best.iter().map(|(n, v)| json!({"node": n, key: named(*n), "rank": v})).collect();
        let measure = measure_name(args.measure);
        out::json(&json!({"measure": measure, "parameters": computed.parameters, "top": best}))?;
        return Ok(Exit::Done);
    }
    for (node, value) in best {
        let name = named(node).unwrap_or_else(|| format!("node {node}"));
        let value = if value >= 1.0 { format!("{value:>14.1}") } else { format!("{value:>14.9}") };
        out::line(&format!("{value}  {name}"))?;
    }
    Ok(Exit::Done)
}

/// Keeps ranks beside the graph they are of, keyed by node, or by the number of the host.
fn keep(whole: &Whole, measure: &str, computed: &Computed) -> Result<()> {
    let name = ranks::file_name(whole.level.number, measure);
    let values = ranks::narrow(&computed.values);
    ranks::write(&*whole.disk, &name, measure, &computed.parameters.to_string(), &values)?;
    Ok(())
}

fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Pagerank => MEASURES[0],
        Measure::Harmonic => MEASURES[1],
    }
}

fn compute(args: &RankArgs, forward: &dyn Rows, transposed: &dyn Rows) -> Result<Computed> {
    let (nodes, arcs) = (forward.nodes(), forward.arcs());
    match args.measure {
        Measure::Pagerank => {
            let how = PageRank { damping: args.damping, tolerance: args.tolerance, ..PageRank::default() };
            let ranked = how.compute(transposed, &outdegrees(forward)).map_err(|e| crate::usage(e.to_string()))?;
            let parameters = json!({
                "damping": args.damping, "dangling": "uniform", "tolerance": args.tolerance, "iterations": ranked.iterations,
                "error_max": ranked.error_max, "converged": ranked.converged, "nodes": nodes, "arcs": arcs,
            });
            Ok(Computed { values: ranked.ranks, parameters })
        }
        Measure::Harmonic => {
            let how = HyperBall::within(HARMONIC_BYTES_MAX, nodes)?;
            let balls = how.compute(transposed)?;
            let parameters = json!({"log2m": how.log2m, "error": how.error(), "seed": how.seed, "complete": balls.complete, "nodes": nodes, "arcs": arcs});
            Ok(Computed { values: balls.harmonic.iter().map(|&v| f64::from(v)).collect(), parameters })
        }
    }
}
