//! What can be typed about searching.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub const SEARCH_EXAMPLES: &str = "\
Examples:
  rhumb search example.org.crawl polite crawling
  rhumb search example.org.crawl '\"exactly this\" -not intitle:guide site:docs.example.org'
  rhumb search example.org.crawl 'lang:de type:pdf after:2024-05 link:example.org/about'
  rhumb search example.org.crawl crawling --explain        how each score came about
  rhumb search example.org.crawl crawling --json | jq -r '.results[].url'";

#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Crawl directory.
    pub dir: PathBuf,
    /// What to look for: words, "phrases", + and -, prefix*, site: intitle: inurl: lang: type: after: before: link: dup:
    #[arg(required = true, value_name = "QUERY", allow_hyphen_values = true, num_args = 1..)]
    pub query: Vec<String>,
    /// Show so many results.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Pass over so many first.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=999))]
    pub offset: u32,
    /// Put newer pages first.
    #[arg(long)]
    pub fresh: bool,
    /// Show all results of a host, not two at most.
    #[arg(long)]
    pub ungrouped: bool,
    /// Show how the score of each result came about.
    #[arg(long)]
    pub explain: bool,
}

pub const EVAL_EXAMPLES: &str = "\
Examples:
  rhumb index eval docs.jsonl queries.jsonl qrels.txt
DOCS and QUERIES have a line of JSON each: {\"id\": …, \"text\": …}; documents may have a \"title\" and a \"url\" too.
QRELS are TREC's: query, 0, document, relevance.";

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Measure the ranking on a judged collection: MAP, nDCG at 10, recall at 100.
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(EvalArgs),
}

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// Documents, as JSON lines.
    pub docs: PathBuf,
    /// Queries, as JSON lines.
    pub queries: PathBuf,
    /// Judgments, as TREC writes them.
    pub qrels: PathBuf,
    /// Settings of the ranking, as a crawl has them.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the results, as TREC has them, for other tools to judge.
    #[arg(long, value_name = "FILE")]
    pub run: Option<PathBuf>,
}
