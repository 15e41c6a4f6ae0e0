//! What can be typed about searching.

use std::ffi::OsString;
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

/// What was typed, with the options of `search` before its query: there they are told from words, which may begin with a dash, too. Behind
/// `--` everything is words.
pub fn options_first(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let is_option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"--") && arg != "--";
    let mut typed: Vec<OsString> = typed.into_iter().collect();
    let Some(command) = typed.iter().skip(1).position(|arg| !is_option(arg)).map(|at| at + 1) else { return typed };
    if typed[command] != "search" {
        return typed;
    }
    let mut words = Vec::new();
    let mut behind = typed.split_off(command + 1).into_iter();
    while let Some(arg) = behind.next() {
        if arg == "--" {
            words.push(arg);
            words.extend(behind.by_ref());
        } else if is_option(&arg) {
            let value = if arg == "--limit" || arg == "--offset" { behind.next() } else { None };
            typed.push(arg);
            typed.extend(value);
        } else {
            words.push(arg);
        }
    }
    typed.extend(words);
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_behind_the_query() {
        let check = |typed: &str, expected: &str| {
            let typed = options_first(typed.split(' ').map(OsString::from));
            assert_eq!(typed, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
        };
        check("rhumb search d one -two --json --limit 3", "rhumb search --json --limit 3 d one -two");
        check("rhumb --json search --explain d one", "rhumb --json search --explain d one");
        check("rhumb search d --limit=3 -- --json", "rhumb search --limit=3 d -- --json");
        check("rhumb search d x --offset", "rhumb search --offset d x");
        check("rhumb links d --to search", "rhumb links d --to search");
        check("rhumb --version", "rhumb --version");
        check("rhumb", "rhumb");
    }
}
