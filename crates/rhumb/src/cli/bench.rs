//! What can be typed to measure: `rhumb bench`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::serve::BenchServeArgs;
use crate::units::Size;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Names resolved per second of processor time.
    Dns {
        /// The name server, in another process (`rhumb sim serve --dns`).
        #[arg(long, value_name = "IP:PORT")]
        server: SocketAddr,
        /// The names are h0, h1, … under this, as the synthetic web has them.
        #[arg(long, default_value = "sim.test")]
        suffix: String,
        /// How many names.
        #[arg(long, default_value_t = 200_000)]
        names: usize,
        /// Questions at once.
        #[arg(long, default_value_t = 192)]
        in_flight: usize,
    },
    /// Processor time of a page, from the fetch to the commit, on the synthetic web.
    Crawl(BenchCrawlArgs),
    /// One measured run of `bench crawl`.
    #[command(hide = true)]
    CrawlOne {
        /// What to run, as JSON.
        spec: String,
    },
    /// Main text against labelled pages: precision, recall and F1 over groups of four words, processor time per KB.
    MainText {
        /// Pages NAME.html, each with its text in NAME.txt [default: the synthetic web, to show what a site's template adds]
        dir: Option<PathBuf>,
        /// Hosts of the synthetic web.
        #[arg(long, default_value_t = 20)]
        hosts: u64,
        /// Pages of each of them.
        #[arg(long, default_value_t = 30)]
        pages: u64,
    },
    /// The link graph: bits a link, processor time to build it and to read it.
    Graph {
        /// A graph of the WebGraph framework: BASENAME.graph and BASENAME.properties [default: a graph made up]
        #[arg(long, value_name = "BASENAME")]
        bv: Option<PathBuf>,
        /// Arcs of the graph that is made up.
        #[arg(long, value_name = "N", default_value_t = 10_000_000, conflicts_with = "bv")]
        arcs: u64,
        /// Memory to sort in.
        #[arg(long, value_name = "SIZE", default_value = "256MiB")]
        memory: Size,
        /// Measure other orders of nodes beside the given one: LLP and breadth first.
        #[arg(long, requires = "bv")]
        orders: bool,
        /// Where to write it [default: a temporary directory]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// The table of URLs: bytes a URL, processor time to find one.
    Urls {
        /// A file of URLs, one a line [default: those of the synthetic web]
        file: Option<PathBuf>,
        /// Hosts of the synthetic web.
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        hosts: u64,
        /// Pages of each host, on average.
        #[arg(long, value_name = "N", default_value_t = 250)]
        pages: u64,
    },
    /// Processor time of a page in each format of `rhumb export`, reading and parsing included.
    Export {
        /// Hosts of the web that is crawled for it.
        #[arg(long, value_name = "N", default_value_t = 50)]
        hosts: u64,
        /// Pages of each host.
        #[arg(long, value_name = "N", default_value_t = 200)]
        pages: u64,
        /// Mean size of a page.
        #[arg(long, value_name = "SIZE", default_value = "10KB")]
        page_bytes: Size,
        /// How often each format takes its turn; the lowest counts.
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        /// Where to crawl to [default: a temporary directory]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// What indexing a page costs, from the log to an index at rest, beside bare tantivy.
    Index {
        /// Pages.
        #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..))]
        pages: u64,
        /// Turns; the lowest counts.
        #[arg(long, value_name = "N", default_value_t = 3)]
        rounds: usize,
        /// Where to work; a temporary directory unless it is named.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// What a query costs, in tiers and without, beside bare tantivy; and that the answers are the same.
    Search {
        /// Pages.
        #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
        pages: u64,
        /// Queries.
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        queries: usize,
        /// Weight of the rank.
        #[arg(long, value_name = "X")]
        rank: Option<f64>,
        /// Where to work; a temporary directory unless it is named.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Processor time of a request to `rhumb serve` for the links of a page.
    Serve(BenchServeArgs),
    /// URL-seen tests per second of processor time, four of five being repeats.
    Sieve {
        /// Distinct URLs.
        #[arg(long, default_value_t = 1_000_000)]
        urls: u64,
        /// Memory for filter, buffers and caches.
        #[arg(long, default_value = "192MiB")]
        memory: Size,
        /// Where to put the runs [default: a temporary directory]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Near-duplicates: what is found of a labelled set, the cost of a sketch, look-ups among many pages.
    NearDups {
        /// Pages of the set that look-ups are measured in.
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
        pages: u64,
        /// Pairs of each kind in the labelled set.
        #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..))]
        pairs: u64,
        /// Memory for what is not yet on disk, batches and indices.
        #[arg(long, default_value = "32MiB")]
        memory: Size,
        /// Where to put the set of pages [default: a temporary directory]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Admissions and visits per second of processor time, in virtual time.
    Frontier {
        /// URLs admitted.
        #[arg(long, default_value_t = 1_000_000)]
        urls: u64,
        /// Hosts they are on.
        #[arg(long, default_value_t = 10_000)]
        hosts: u64,
        /// One visit for so many URLs admitted.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
        visit_every: u64,
        /// The setting of a whole crawl, of which the frontier has its share.
        #[arg(long, default_value = "512MiB")]
        memory: Size,
        /// Where to put the queues [default: a temporary directory]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

#[derive(Clone, Debug, Args)]
pub struct BenchCrawlArgs {
    /// What each stage costs: runs with one stage less each.
    #[arg(long)]
    pub stages: bool,
    /// What a page costs early and late in one long crawl.
    #[arg(long)]
    pub windows: bool,
    /// HTTPS, a new connection for every page, beside handshake, bare fetch and extraction.
    #[arg(long)]
    pub https: bool,
    /// How much fetching is lost where names take so many milliseconds.
    #[arg(long, value_name = "MS")]
    pub dns_ms: Option<u64>,
    /// Hosts of the web.
    #[arg(long, value_name = "N")]
    pub hosts: Option<u64>,
    /// Pages of each host.
    #[arg(long, value_name = "N")]
    pub pages: Option<u64>,
    /// Mean size of a page.
    #[arg(long, value_name = "SIZE")]
    pub page_bytes: Option<Size>,
    /// How often each kind of run takes its turn.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// Threads of the crawl; 0: one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// With --windows: the early page.
    #[arg(long, value_name = "PAGE", default_value_t = 10_000)]
    pub early: u64,
    /// With --windows: the late page.
    #[arg(long, value_name = "PAGE", default_value_t = 500_000)]
    pub late: u64,
    /// With --dns-ms: how long pages take.
    #[arg(long, value_name = "MS", default_value_t = 50)]
    pub latency_ms: u64,
    /// With --dns-ms: visits at once.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub workers: usize,
    /// Where to crawl to [default: a temporary directory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}
