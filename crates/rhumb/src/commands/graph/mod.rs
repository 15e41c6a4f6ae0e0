//! `rhumb graph`: the link graph as a whole. One file for each kind of question; this one sorts them and has the small ones.

pub mod build;
mod export;
mod hosts;
mod rank;
mod spam;
mod stats;

use std::path::Path;

use anyhow::Result;
use rhumb_graph::Rows;
use serde_json::json;

use crate::cli::GraphCommand;
use crate::display::thousands;
use crate::links::Links;
use crate::links::whole::Whole;
use crate::{Exit, out};

/// Carries out what was typed.
pub fn run(command: &GraphCommand, json: bool) -> Result<Exit> {
    match command {
        GraphCommand::Build(args) => build::run(args, json),
        GraphCommand::Stats { dir, distances } => stats::run(dir, *distances, json),
        GraphCommand::Rank(args) => rank::run(args, json),
        GraphCommand::Successors { dir, node, transposed } => successors(dir, node, *transposed, json),
        GraphCommand::Path { dir, from, to } => path(dir, from, to, json),
        GraphCommand::Cocited { dir, url, limit } => cocited(dir, url, *limit as usize, json),
        GraphCommand::Hosts { dir, of: Some(host), limit, .. } => hosts::of_one(dir, host, *limit as usize, json),
        GraphCommand::Hosts { dir, domains, limit, .. } => hosts::run(dir, *domains, *limit as usize, json),
        GraphCommand::Spam { dir, limit } => spam::run(dir, *limit as usize, json),
        GraphCommand::Export(args) => export::run(args, json),
    }
}

/// The successors of one node.
fn successors(dir: &Path, node: &str, transposed: bool, as_json: bool) -> Result<Exit> {
    let whole = Whole::open(dir)?;
    let node = whole.node(node)?;
    let rows = if transposed { &whole.level.into } else { &whole.level.out };
    let mut row = Vec::new();
    rows.row(node, &mut row);
    if as_json {
        let name = if transposed { "predecessors" } else { "successors" };
        let urls: Vec<Option<String>> = row.iter().map(|&n| whole.url(n)).collect();
        let urls = whole.level.urls.is_some().then_some(urls);
        out::json(&json!({"node": node, "url": whole.url(node), name: row, "urls": urls}))?;
        return Ok(Exit::Done);
    }
    for node in row {
        match whole.url(node) {
            Some(url) => out::line(&format!("{node}\t{url}"))?,
            None => out::line(&node.to_string())?,
        }
    }
    Ok(Exit::Done)
}

/// A shortest way between two pages.
fn path(dir: &Path, from: &str, to: &str, as_json: bool) -> Result<Exit> {
    let links = Links::open(dir)?;
    let (from, to) = (links.canonical(from)?, links.canonical(to)?);
    let answer = links.path(&from, &to)?;
    let found = answer.hops.is_some();
    if as_json {
        out::json(&answer)?;
    } else if found {
        for (i, step) in answer.path.iter().enumerate() {
            out::line(&format!("{i:>4}  {step}"))?;
        }
    } else if answer.gave_up {
        out::line("No way was found; the search was given up before all was looked at.")?;
    } else {
        out::line("There is no way along links.")?;
    }
    Ok(if found { Exit::Done } else { Exit::Look })
}

/// Pages that are linked together with one.
fn cocited(dir: &Path, url: &str, limit: usize, as_json: bool) -> Result<Exit> {
    let links = Links::open(dir)?;
    let url = links.canonical(url)?;
    let answer = links.cocited(&url, limit)?.ok_or_else(|| super::unknown_page(&url))?;
    if as_json {
        out::json(&answer)?;
        return Ok(Exit::Done);
    }
    out::line(&format!("Linked together with {url}, on {} pages:", thousands(answer.pages_looked_at)))?;
    for page in &answer.cocited {
        out::line(&format!("{:>8}  {}", thousands(page.together), page.url))?;
    }
    Ok(Exit::Done)
}
