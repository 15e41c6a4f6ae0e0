//! `rhumb index eval`: how good the ranking is, on collections that people have judged.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use rhumb_index::eval::{Collection, Document, Judged};
use serde::Deserialize;
use serde_json::json;

use super::read_input;
use crate::cli::{EvalArgs, IndexCommand};
use crate::config::Config;
use crate::{Exit, out, usage};

/// Carries out what was typed about the index.
pub fn run(command: &IndexCommand, _json: bool) -> Result<Exit> {
    match command {
        IndexCommand::Eval(args) => eval(args),
    }
}

#[derive(Deserialize)]
struct Line {
    id: Id,
    text: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
}

/// Some write numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        }
    }
}

fn eval(args: &EvalArgs) -> Result<Exit> {
    let config = match &args.config {
        Some(file) => Config::read(file).map_err(|e| usage(format!("{e:#}")))?,
        None => Config::default(),
    };
    config.settings().map_err(|e| usage(format!("{e:#}")))?;
    let documents: Vec<Document> = lines(&args.docs)?
        .into_iter()
        .map(|line| Document { id: line.id.into_text(), text: line.text, title: line.title, url: line.url })
        .collect();
    let queries: Vec<(String, String)> =
        lines(&args.queries)?.into_iter().map(|line| (line.id.into_text(), line.text)).collect();
    let judged = judgments(&args.qrels)?;
    if documents.is_empty() || queries.is_empty() || judged.is_empty() {
        return Err(usage("documents, queries and judgments are needed, at least one of each"));
    }
    let collection = Collection::index(&documents, config.index.weights)?;
    let results = collection.run(&queries, &config.ranking)?;
    if let Some(file) = &args.run {
        let mut file = std::io::BufWriter::new(
            std::fs::File::create(file).with_context(|| format!("cannot write {}", file.display()))?,
        );
        for (query, found) in &results {
            for (rank, (document, score)) in found.iter().enumerate() {
                writeln!(file, "{query} Q0 {document} {} {score:.6} rhumb", rank + 1)?;
            }
        }
        file.flush()?;
    }
    let figures = judged.measure(&results);
    if figures.queries == 0 {
        return Err(usage("none of the queries has a relevant document among the judgments"));
    }
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    out::json(&json!({
        "map": rounded(figures.map), "ndcg10": rounded(figures.ndcg10), "recall100": rounded(figures.recall100),
        "queries": figures.queries, "documents": documents.len(),
    }))?;
    Ok(Exit::Done)
}

fn lines(path: &Path) -> Result<Vec<Line>> {
    let bytes = read_input(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| usage(format!("{} line {}: {e}", path.display(), at + 1)))
        })
        .collect()
}

fn judgments(path: &Path) -> Result<Judged> {
    let bytes = read_input(path)?;
    let mut judged = Judged::default();
    for (at, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [] => {}
            [query, _, document, relevance] if relevance.parse::<f64>().is_ok() => {
                judged.add(query, document, relevance.parse().unwrap_or(0.0));
            }
            _ => return Err(usage(format!("{} line {}: not QUERY 0 DOCUMENT RELEVANCE", path.display(), at + 1))),
        }
    }
    Ok(judged)
}
