//! `rhumb bench`: figures of parts of the program, in processor time.

mod crawl;
mod export;
mod frontier;
mod graph;
mod labelled;
mod main_text;
mod near_dups;
mod search;
mod serve;
mod sieve;

use std::path::Path;

use anyhow::{Context, Result};
use rhumb_crawl::{dns, status};
use serde_json::{Value, json};

use crate::cli::BenchCommand;
use crate::{Exit, out};

/// Runs one bench and prints its figures.
pub fn run(command: &BenchCommand, as_json: bool) -> Result<Exit> {
    let figures = match command {
        BenchCommand::Dns { server, suffix, names, in_flight } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("start the runtime")?;
            let f = runtime.block_on(dns::bench(*server, suffix, *names, *in_flight)).context("resolve names")?;
            json!({
                "names": f.names, "failed": f.failed,
                "uncached_per_cpu_second": f.uncached_per_cpu_second, "cached_per_cpu_second": f.cached_per_cpu_second,
            })
        }
        BenchCommand::Sieve { urls, memory, dir } => {
            with_directory(dir.as_deref(), |dir| sieve::run(*urls, memory.0 as usize, dir))?
        }
        BenchCommand::Frontier { urls, hosts, visit_every, memory, dir } => with_directory(dir.as_deref(), |dir| {
            frontier::frontier(*urls, *hosts, *visit_every, memory.0 as usize, dir)
        })?,
        BenchCommand::MainText { dir: Some(dir), .. } => main_text::of_directory(dir)?,
        BenchCommand::MainText { dir: None, hosts, pages } => main_text::of_synthetic_web(*hosts, *pages)?,
        BenchCommand::Export { hosts, pages, page_bytes, rounds, dir } => {
            with_directory(dir.as_deref(), |dir| export::run(*hosts, *pages, page_bytes.0 as usize, *rounds, dir))?
        }
        BenchCommand::NearDups { pages, pairs, memory, dir } => {
            with_directory(dir.as_deref(), |dir| near_dups::run(*pages, *pairs, memory.0 as usize, dir))?
        }
        BenchCommand::Graph { bv, arcs, memory, orders, dir } => with_directory(dir.as_deref(), |dir| match bv {
            Some(bv) => graph::of_bv(bv, memory.0 as usize, *orders, dir),
            None => graph::of_arcs(*arcs, memory.0 as usize, dir),
        })?,
        BenchCommand::Urls { file: Some(file), .. } => graph::urls_of_file(file)?,
        BenchCommand::Urls { file: None, hosts, pages } => graph::urls_of_web(*hosts, *pages)?,
        BenchCommand::Index { pages, rounds, dir } => {
            with_directory(dir.as_deref(), |dir| search::index(*pages, *rounds, dir))?
        }
        BenchCommand::Search { pages, queries, rank, dir } => with_directory(dir.as_deref(), |dir| {
            let ranking = rhumb_index::search::Ranking::default();
            let rank = rank.unwrap_or(ranking.rank);
            search::queries(*pages, *queries, &rhumb_index::search::Ranking { rank, ..ranking }, dir)
        })?,
        BenchCommand::Serve(args) => serve::run(&args.dir, args.requests, args.connections)?,
        BenchCommand::Crawl(args) => return crawl::run(args, as_json),
        BenchCommand::CrawlOne { spec } => return crawl::run_one(spec),
    };
    if as_json {
        out::json(&figures)?;
    } else {
        print(&figures)?;
    }
    Ok(if figures["passed"] == Value::Bool(false) { Exit::Look } else { Exit::Done })
}

fn print(figures: &Value) -> Result<()> {
    for (name, value) in figures.as_object().into_iter().flatten() {
        out::line(&format!("  {name:<28} {}", round(value)))?;
    }
    Ok(())
}

fn round(value: &Value) -> String {
    match value.as_f64() {
        Some(x) if x.fract() != 0.0 && x.abs() < 100.0 => format!("{x:.3}"),
        Some(x) if x.fract() != 0.0 => format!("{x:.0}"),
        _ => value.to_string(),
    }
}

/// Runs in the given directory or in a temporary one that is removed afterwards.
fn with_directory<T>(dir: Option<&Path>, f: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let temporary = std::env::temp_dir().join(format!("rhumb-bench-{}", std::process::id()));
    let place = dir.unwrap_or(&temporary);
    std::fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
    let done = f(place);
    if dir.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    done
}

fn cpu_seconds() -> f64 {
    status::cpu_ms() as f64 / 1000.0
}

/// Bytes of all files below a directory.
fn disk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { disk_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}
