//! One file per command; this one only sorts them.

mod bench;
mod config;
mod crawl;
mod demo;
mod explain;
mod export;
mod fetch;
mod graph;
mod index;
mod links;
mod pdf;
mod rebuild;
mod search;
mod serve;
mod sim;
mod status;
mod tools;
mod traps;
mod warc;

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_crawl::{CrawlError, Engine, Settings};
use rhumb_store::StoreError;
use rhumb_store::disk::Disk;

use crate::cli::{Cli, Command};
use crate::{Exit, out, usage};

/// What the names of a graph's files begin with, and those of a text index.
const GRAPH: &str = "graph/";
const INDEX: &str = "index/";

/// Carries out what was typed.
pub fn run(cli: Cli) -> Result<Exit> {
    let json = cli.json;
    match cli.command {
        Command::Crawl(args) => crawl::run(&args, json),
        Command::Demo(args) => demo::run(&args, json),
        Command::Status { dir, check } => status::run(&dir, check, json),
        Command::Explain { dir, url } => explain::run(&dir, &url, json),
        Command::Export(args) => export::run(&args, json),
        Command::Links(args) => links::run(&args, json),
        Command::Search(args) => search::run(&args, json),
        Command::Index { command } => index::run(&command, json),
        Command::Graph { command } => graph::run(&command, json),
        Command::Traps { dir, undo } => traps::run(&dir, undo, json),
        Command::Rebuild { dir } => rebuild::run(&dir, json),
        Command::Serve(args) => serve::run(&args, json),
        Command::Robots { command } => tools::robots(&command, json),
        Command::Url { command } => tools::url(&command, json),
        Command::Parse { file, base, content_type, markdown } => {
            tools::parse(&file, &base, content_type.as_deref(), markdown, json)
        }
        Command::Sitemap { file, base } => tools::sitemap(&file, base.as_deref(), json),
        Command::PdfText { memory, time } => pdf::run(memory, time),
        Command::Warc { command } => warc::run(&command, json),
        Command::Fetch(args) => fetch::run(&args, json),
        Command::Dns { name, dns } => fetch::dns(&name, dns, json),
        Command::Net { command } => tools::net(&command, json),
        Command::Config(args) => config::run(&args, json),
        Command::Sim { command } => sim::run(&command, json),
        Command::Bench { command } => bench::run(&command, json),
    }
}

/// Nobody has heard of this page.
pub fn unknown_page(url: &str) -> anyhow::Error {
    usage(format!("{url} is not in the graph: it was neither fetched nor linked to"))
}

/// A file's bytes, or standard input for `-`.
fn read_input(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|e| usage(format!("cannot read {}: {e}", path.display())))
}

/// A directory that is a crawl directory of this version, or a usage error.
pub fn crawl_directory(dir: &Path) -> Result<crate::config::Config> {
    if !dir.is_dir() {
        return Err(usage(format!("there is no directory {}", dir.display())));
    }
    match crate::config::Config::of_directory(dir)? {
        Some(config) => {
            config.use_key();
            Ok(config)
        }
        None => Err(usage(format!("{} is not a crawl directory (it has no {})", dir.display(), crate::config::FILE))),
    }
}

/// Opens a crawl. If that cannot be, the error says what to do.
fn open_crawl(dir: &Path, disk: Arc<dyn Disk>, settings: Settings) -> Result<Engine> {
    Engine::open(dir, disk, settings).map_err(|e| match e {
        CrawlError::Store(e) => with_advice(e, dir),
        other => other.into(),
    })
}

/// The error, and what to do about a damaged file.
pub fn with_advice(error: StoreError, dir: &Path) -> anyhow::Error {
    match advice(&error, dir) {
        Some(advice) => anyhow::anyhow!("{error}; {advice}"),
        None => error.into(),
    }
}

/// What to do about a damaged file; nothing if the file is not what is wrong.
fn advice(error: &StoreError, dir: &Path) -> Option<String> {
    let file = match error {
        StoreError::Corrupt { file, .. } | StoreError::Version { file, .. } => file,
        // A part of the graph or of the index that its list names and that is gone.
        StoreError::Io { file, source, .. }
            if (file.starts_with(GRAPH) || file.starts_with(INDEX)) && source.kind() == ErrorKind::NotFound =>
        {
            file
        }
        _ => return None,
    };
    let shown = out::shell(dir);
    Some(if file.starts_with("state/") || file.starts_with(INDEX) || file.ends_with(".cdxj") {
        format!("it can be made anew from the log: rhumb rebuild {shown}")
    } else if file.starts_with(GRAPH) {
        // A graph of its own has no log that it could be made from.
        match dir.join(crate::config::FILE).is_file() {
            true => format!("it can be made anew from the log: rhumb graph build {shown}"),
            false => format!("build it again with: rhumb graph build --out {shown}"),
        }
    } else if file.starts_with("log/") {
        format!(
            "restore this file from a copy, or crawl into another directory; what is archived can still be read: rhumb warc ls {shown}"
        )
    } else if file.starts_with("archive/") {
        format!("restore this file from a copy; what of it can be read: rhumb warc check {shown}")
    } else {
        return None;
    })
}
