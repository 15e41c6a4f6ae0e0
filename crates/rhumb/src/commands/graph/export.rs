//! `rhumb graph export`: the graph, or the neighbourhood of a page, for other people's programs.
//!
//! A file is written under another name and takes its own when it is whole.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rhumb_graph::algo::ranks::{self, MEASURES, Ranks};
use rhumb_graph::bv::{self, BvOptions};
use rhumb_graph::formats::{ExportArc, ExportNode, Name, arcs_csv, edge_list, graphml};
use rhumb_graph::{Node, Rows};
use serde_json::json;

use crate::cli::{GraphExportArgs, GraphFormat};
use crate::commands::unknown_page;
use crate::links::Links;
use crate::links::answer::NeighbourhoodAnswer;
use crate::links::whole::Whole;
use crate::{Exit, out, usage};

/// Writes what was asked for.
pub fn run(args: &GraphExportArgs, as_json: bool) -> Result<Exit> {
    let (nodes, arcs) = match &args.around {
        Some(url) => around(args, url)?,
        None => whole(args)?,
    };
    if args.file == Path::new("-") {
        return Ok(Exit::Done);
    }
    if as_json {
        out::json(&json!({"file": args.file, "nodes": nodes, "arcs": arcs}))?;
    } else {
        out::line(&format!("{nodes} nodes and {arcs} links in {}", args.file.display()))?;
    }
    Ok(Exit::Done)
}

fn whole(args: &GraphExportArgs) -> Result<(u64, u64)> {
    let whole = Whole::open(&args.dir)?;
    let rows: &dyn Rows = if args.transposed { &whole.level.into } else { &whole.level.out };
    let counts = (u64::from(rows.nodes()), rows.arcs());
    if args.format == GraphFormat::Bv {
        if args.file == Path::new("-") {
            return Err(usage("a graph of the WebGraph framework is three files: name them, without an ending"));
        }
        bv::write(&args.file, rows, BvOptions::default())?;
        return Ok(counts);
    }
    let by_number = args.numbers || whole.level.urls.is_none();
    let name = |node: Node| match whole.url(node) {
        Some(url) if !by_number => Name::Url(url.into()),
        _ => Name::Id(node),
    };
    let each = || {
        (0..rows.nodes()).flat_map(|from| {
            let mut row = Vec::new();
            rows.row(from, &mut row);
            row.into_iter().map(move |to| (from, to))
        })
    };
    write(&args.file, |to| match args.format {
        GraphFormat::Edges => edge_list(to, named(each(), &name)),
        GraphFormat::Csv => arcs_csv(to, named(each(), &name)),
        _ => {
            let ranks = ranks::file_name(whole.level.number, MEASURES[0]);
            let ranks = if whole.disk.exists(&ranks) { Ranks::open(&*whole.disk, &ranks).ok() } else { None };
            let node = |id: Node| ExportNode {
                id,
                url: whole.url(id).map(Into::into),
                rank: ranks.as_ref().and_then(|r| r.get(id)).map(f64::from),
                ..ExportNode::default()
            };
            let arcs = each().map(|(from, to)| ExportArc { from, to, ..ExportArc::default() });
            graphml(to, (0..rows.nodes()).map(node), arcs)
        }
    })?;
    Ok(counts)
}

/// Pairs of names; that of the first node is made once for all its arcs.
fn named<'a>(
    arcs: impl Iterator<Item = (Node, Node)> + 'a,
    name: &'a dyn Fn(Node) -> Name<'static>,
) -> impl Iterator<Item = (Name<'static>, Name<'static>)> + 'a {
    let mut last: Option<(Node, Name<'static>)> = None;
    arcs.map(move |(from, to)| {
        if last.as_ref().is_none_or(|(node, _)| *node != from) {
            last = Some((from, name(from)));
        }
        let source = last.as_ref().map_or(Name::Id(from), |(_, name)| name.clone());
        (source, name(to))
    })
}

fn around(args: &GraphExportArgs, url: &str) -> Result<(u64, u64)> {
    if args.format == GraphFormat::Bv {
        return Err(usage("a neighbourhood is written as edges, csv or graphml"));
    }
    let links = Links::open(&args.dir)?;
    let url = links.canonical(url)?;
    let found = links.neighbourhood(&url, args.nodes as usize)?.ok_or_else(|| unknown_page(&url))?;
    let NeighbourhoodAnswer { nodes, arcs, .. } = &found;
    let name = |node: Node| match nodes.get(node as usize) {
        Some(page) if !args.numbers => Name::Url(page.url.clone().into()),
        _ => Name::Id(node),
    };
    write(&args.file, |to| match args.format {
        GraphFormat::Edges => edge_list(to, named(arcs.iter().copied(), &name)),
        GraphFormat::Csv => arcs_csv(to, named(arcs.iter().copied(), &name)),
        _ => {
            let node = |(id, page): (usize, &crate::links::answer::Neighbour)| ExportNode {
                id: id as Node,
                url: Some(page.url.clone().into()),
                label: Some(page.host.clone().into()),
                rank: None,
            };
            let arcs = arcs.iter().map(|&(from, to)| ExportArc { from, to, ..ExportArc::default() });
            graphml(to, nodes.iter().enumerate().map(node), arcs)
        }
    })?;
    Ok((nodes.len() as u64, arcs.len() as u64))
}

/// Writes to standard output, or to a file that is whole or not there.
fn write(file: &Path, put: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    if file == Path::new("-") {
        let mut to = BufWriter::new(std::io::stdout().lock());
        put(&mut to)?;
        to.flush()?;
        return Ok(());
    }
    let mut name = file.as_os_str().to_os_string();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let cannot = || format!("cannot write {}", file.display());
    let to = std::fs::File::create(&temporary).with_context(cannot)?;
    let mut to = BufWriter::new(to);
    let written = put(&mut to).and_then(|()| to.flush()).and_then(|()| to.get_ref().sync_all());
    let placed = written.and_then(|()| std::fs::rename(&temporary, file));
    if placed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    placed.with_context(cannot)
}
