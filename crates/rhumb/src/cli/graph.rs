//! What can be typed about links: `rhumb links` and `rhumb graph`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::units::Size;

/// Shown below `rhumb links --help`.
pub const LINKS_EXAMPLES: &str = "\
Links are listed by host name read backwards, so that pages of a site stand together. A list that was cut ends with a
cursor; given with --cursor, the next part follows.

Examples:
  rhumb links example.org.crawl --to https://example.org/ --anchors
  rhumb links example.org.crawl --from https://example.org/docs/ --limit 1000";

/// Shown below `rhumb graph --help`.
pub const GRAPH_EXAMPLES: &str = "\
DIR is a crawl directory, or what `rhumb graph build --out DIR` made.

Examples:
  rhumb graph stats example.org.crawl
  rhumb graph rank example.org.crawl --top 20
  rhumb graph path example.org.crawl https://example.org/ https://example.org/a/b
  rhumb graph build --edges links.tsv --out mine
  rhumb graph build --bv cnr-2000 --out cnr
  rhumb graph export example.org.crawl --format graphml --around https://example.org/ picture.graphml";

#[derive(Debug, Args)]
pub struct LinksArgs {
    /// Crawl directory, or what `rhumb graph build` made.
    pub dir: PathBuf,
    /// List the pages that link to this one.
    #[arg(long, value_name = "URL", required_unless_present = "from", conflicts_with = "from")]
    pub to: Option<String>,
    /// List the pages that this one links to.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Show the text of each link as well.
    #[arg(long)]
    pub anchors: bool,
    /// List so many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on behind an earlier part of the list.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Make the graph of a crawl anew from its log, or a graph from a list of links or from files of the WebGraph framework.
    Build(BuildArgs),
    /// Nodes, arcs, bits a link, degrees, components.
    Stats {
        /// Crawl directory, or what `rhumb graph build` made.
        dir: PathBuf,
        /// Also estimate distances between pages, which takes longer.
        #[arg(long)]
        distances: bool,
    },
    /// Compute ranks, keep them beside the graph, and show the highest.
    Rank(RankArgs),
    /// The successors of one node.
    Successors {
        /// Crawl directory, or what `rhumb graph build` made.
        dir: PathBuf,
        /// A URL, or the number of a node.
        node: String,
        /// The predecessors instead.
        #[arg(long)]
        transposed: bool,
    },
    /// A shortest way from one page to another along links.
    Path {
        /// Crawl directory, or what `rhumb graph build` made.
        dir: PathBuf,
        /// Where it begins: a URL, or the number of a node.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// Pages that are linked together with one.
    Cocited {
        /// Crawl directory.
        dir: PathBuf,
        /// The page.
        url: String,
        /// List so many at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Links between hosts, or between registrable domains: the coarser graph as a whole, or around one of them.
    Hosts {
        /// Crawl directory.
        dir: PathBuf,
        /// Registrable domains instead of hosts.
        #[arg(long)]
        domains: bool,
        /// Only what leads to and from this host.
        #[arg(long, value_name = "NAME", conflicts_with = "domains")]
        of: Option<String>,
        /// List so many at most, those with the most links.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// What looks like links made for ranks: farms that link to each other, pages that one domain links to all of a sudden.
    Spam {
        /// Crawl directory.
        dir: PathBuf,
        /// List so many at most.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Write the graph, or the neighbourhood of a page, in a form that others read.
    Export(GraphExportArgs),
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Crawl directory whose graph is to be made anew from its log.
    #[arg(required_unless_present_any = ["edges", "bv"], conflicts_with_all = ["edges", "bv", "out"])]
    pub dir: Option<PathBuf>,
    /// A list of links: two URLs or two numbers on each line; - for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "bv", requires = "out")]
    pub edges: Option<PathBuf>,
    /// A graph of the WebGraph framework: BASENAME.graph and BASENAME.properties.
    #[arg(long, value_name = "BASENAME", requires = "out")]
    pub bv: Option<PathBuf>,
    /// Directory to make the graph in.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Memory to sort in.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub memory: Size,
}

#[derive(Debug, Args)]
pub struct RankArgs {
    /// Crawl directory, or what `rhumb graph build` made.
    pub dir: PathBuf,
    /// Show so many.
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: u32,
    /// What to rank by.
    #[arg(long, value_enum, default_value = "pagerank")]
    pub measure: Measure,
    /// Rank hosts by the links between them.
    #[arg(long, conflicts_with = "domains")]
    pub hosts: bool,
    /// Rank registrable domains by the links between them.
    #[arg(long)]
    pub domains: bool,
    /// PageRank: the share of rank that follows links.
    #[arg(long, default_value_t = 0.85)]
    pub damping: f64,
    /// PageRank: how far from the limit it may be, all nodes together.
    #[arg(long, default_value_t = 1e-6)]
    pub tolerance: f64,
}

/// What pages are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// PageRank; the rank of pages without links is spread over all.
    Pagerank,
    /// Harmonic centrality: how near a page is to all that lead to it, estimated.
    Harmonic,
}

#[derive(Debug, Args)]
pub struct GraphExportArgs {
    /// Crawl directory, or what `rhumb graph build` made.
    pub dir: PathBuf,
    /// The file to write, - for standard output; for bv its name without an ending.
    pub file: PathBuf,
    /// In which form.
    #[arg(long, value_enum)]
    pub format: GraphFormat,
    /// Only the pages around this one.
    #[arg(long, value_name = "URL")]
    pub around: Option<String>,
    /// So many of them at most.
    #[arg(long, value_name = "N", default_value_t = 500, requires = "around")]
    pub nodes: u32,
    /// Numbers of nodes instead of URLs.
    #[arg(long)]
    pub numbers: bool,
    /// The graph with every link turned round.
    #[arg(long, conflicts_with = "around")]
    pub transposed: bool,
}

/// The forms a graph can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A line for each link.
    Edges,
    /// A line for each link, with a head, quoted as RFC 4180 says.
    Csv,
    /// GraphML, for Gephi, networkx and others.
    Graphml,
    /// Files of the WebGraph framework.
    Bv,
}
