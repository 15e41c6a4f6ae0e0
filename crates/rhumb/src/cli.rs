//! The command line: what can be typed.

mod bench;
mod graph;
mod search;
mod serve;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use rhumb_core::Timestamp;
use rhumb_core::filter::Scope;
use rhumb_core::page::MediaKind;
use rhumb_export::{FORMATS, Format};

use crate::units::{Size, Span};
pub use bench::{BenchCommand, BenchCrawlArgs};
pub use graph::{BuildArgs, GraphCommand, GraphExportArgs, GraphFormat, LinksArgs, Measure, RankArgs};
pub use search::{EvalArgs, IndexCommand, SearchArgs, options_first};
pub use serve::ServeArgs;

const EXAMPLES: &str = "\
Examples:
  rhumb demo                                      see it work, without a network
  rhumb crawl https://example.org/ --limit 100    crawl a site into example.org.crawl
  rhumb status example.org.crawl                  how far is it?

Exit codes: 0 done, 1 finished with something to look at, 2 wrong usage, 3 the program could not
go on, 4 interrupted and ready to be resumed.";

const CRAWL_EXAMPLES: &str = "\
Times are written 500ms, 2s, 10m, 1h30m; sizes 64KiB, 512MiB, 1GiB.

Examples:
  rhumb crawl https://example.org/                          one host, politely, until nothing is left
  rhumb crawl https://example.org/docs/ --scope prefix --depth 3
  rhumb crawl --dir example.org.crawl                       go on where it stopped
  rhumb crawl ./docs                                        a tree of files on this machine, and nothing beside it
  rhumb crawl warc:old.warc.gz 'warc:more/*.warc.gz'        archives of others, without a single request
  rhumb crawl a.example b.example --scope domain --exclude '\\.pdf$' --limit 1000 --dir mine

What is given here overrides the configuration and is kept in DIR/rhumb.toml, so a resumed crawl has the
same settings. `rhumb config` shows every setting with its default.";

const EXPORT_EXAMPLES: &str = "\
Formats: jsonl, parquet (a row for each page), markdown (a file for each page), wet (text of each page, in WARC), cdxj (index of
the archive), wacz (archive, index and list of pages in one file for replay).

Examples:
  rhumb export example.org.crawl --format jsonl pages.jsonl
  rhumb export example.org.crawl --format jsonl --no-text - | head
  rhumb export example.org.crawl --format parquet --host docs.example.org docs.parquet
  rhumb export example.org.crawl --format wacz example.wacz";

/// A polite, crash-safe web crawler.
#[derive(Debug, Parser)]
#[command(name = "rhumb", version, about, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Print one JSON document on stdout instead of text for people.
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl from seeds into a crawl directory; an existing directory is resumed.
    #[command(after_help = CRAWL_EXAMPLES)]
    Crawl(CrawlArgs),
    /// Crawl a built-in web on loopback and show what comes out.
    Demo(DemoArgs),
    /// Show the figures of a crawl, running or not, and what of its files is damaged.
    Status {
        /// Crawl directory.
        dir: PathBuf,
        /// Read every byte of a large crawl too; small ones always are (up to 64 MiB).
        #[arg(long)]
        check: bool,
    },
    /// Make everything below DIR/state, and the archive's indexes, anew from the log.
    Rebuild {
        /// Crawl directory.
        dir: PathBuf,
    },
    /// Tell what is known of a URL: where it was found, when it was visited, how that ended.
    Explain {
        /// Crawl directory.
        dir: PathBuf,
        /// The URL.
        url: String,
    },
    /// Write the pages of a crawl, finished or not, in a form that others read; interrupted, the same command goes on.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// List the links to or from a page, while the crawl runs too.
    #[command(after_help = graph::LINKS_EXAMPLES)]
    Links(LinksArgs),
    /// Search what was crawled, while the crawl runs too.
    #[command(after_help = search::SEARCH_EXAMPLES)]
    Search(SearchArgs),
    /// Measure the ranking of the text index.
    Index {
        #[command(subcommand)]
        command: IndexCommand,
    },
    /// Build, measure, rank and export the graph of links.
    #[command(after_help = graph::GRAPH_EXAMPLES)]
    Graph {
        #[command(subcommand)]
        command: GraphCommand,
    },
    /// Show what was learned of sites that make up URLs without end, why, and what it saved; undo it.
    Traps {
        /// Crawl directory.
        dir: PathBuf,
        /// Undo the rule of this number: what it held back is fetched after all.
        #[arg(long, value_name = "N")]
        undo: Option<u32>,
    },
    /// Serve text and links of a crawl over HTTP, finished or running: pages for people, an API for programs.
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Judge URLs by a robots.txt.
    Robots {
        #[command(subcommand)]
        command: RobotsCommand,
    },
    /// Parse and normalise URLs.
    Url {
        #[command(subcommand)]
        command: UrlCommand,
    },
    /// Show what is extracted from a page.
    Parse {
        /// The page; - for standard input.
        file: PathBuf,
        /// The page's URL, which its links are relative to.
        #[arg(long, value_name = "URL")]
        base: String,
        /// The Content-Type header it came with, such as "text/html; charset=utf-8".
        #[arg(long, value_name = "TYPE")]
        content_type: Option<String>,
        /// The main text as markdown, too; without --json, only that.
        #[arg(long)]
        markdown: bool,
    },
    /// Show what a sitemap or feed lists: XML, plain text, RSS, Atom or JSON Feed, gzip or not.
    Sitemap {
        /// The sitemap; - for standard input.
        file: PathBuf,
        /// The file's URL, which addresses in a feed may be relative to.
        #[arg(long, value_name = "URL")]
        base: Option<String>,
    },
    /// Read a PDF from standard input, within bounds; what the crawler starts for each.
    #[command(hide = true)]
    PdfText {
        /// Memory that may be had, in bytes.
        #[arg(long)]
        memory: u64,
        /// Processor time that may be had, in seconds.
        #[arg(long)]
        time: u64,
    },
    /// Look into WARC files.
    Warc {
        #[command(subcommand)]
        command: WarcCommand,
    },
    /// Fetch one URL as the crawler would, without following redirects.
    Fetch(FetchArgs),
    /// Resolve a name as the crawler would.
    Dns {
        /// The name.
        name: String,
        /// Name server to ask.
        #[arg(long, value_name = "IP:PORT")]
        dns: Vec<SocketAddr>,
    },
    /// Judge whether an address may be dialled.
    Net {
        #[command(subcommand)]
        command: NetCommand,
    },
    /// Show the configuration: the defaults, a file's, or a crawl directory's.
    Config(ConfigArgs),
    /// Serve a synthetic web to try the crawler on.
    Sim {
        #[command(subcommand)]
        command: SimCommand,
    },
    /// Measure parts of the program.
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
}

const WHAT: &str = "What to crawl";
const POLITE: &str = "How politely";
const MACHINE: &str = "Machine and storage";
const PAGES: &str = "Which pages";

#[derive(Debug, Args)]
pub struct CrawlArgs {
    /// Where to begin: URLs (http:// is assumed where there is no scheme), files or directories, or archives as warc:PATH.
    #[arg(value_name = "SEED")]
    pub seeds: Vec<String>,
    /// Crawl directory [default: the first seed's host with .crawl]
    #[arg(long, help_heading = WHAT)]
    pub dir: Option<PathBuf>,
    /// Stop after this many pages (counted over all runs of this directory).
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub limit: Option<u64>,
    /// Follow at most this many links from a seed.
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub depth: Option<u32>,
    /// How far from the seeds: their host, registrable domain or directory, or anywhere [default: host]
    #[arg(long, value_parser = scope, value_name = "host|domain|prefix|any", help_heading = WHAT)]
    pub scope: Option<Scope>,
    /// Only URLs that match this regular expression (or another one given so); seeds need not.
    #[arg(long, value_name = "RE", help_heading = WHAT)]
    pub include: Vec<String>,
    /// No URL that matches this regular expression; may be given several times.
    #[arg(long, value_name = "RE", help_heading = WHAT)]
    pub exclude: Vec<String>,
    /// Shortest pause between requests to a host; 0s: none, for servers of your own [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = POLITE)]
    pub delay: Option<Span>,
    /// Connections to one address; 0: no limit [default: 4]
    #[arg(long, value_name = "N", help_heading = POLITE)]
    pub per_ip: Option<u32>,
    /// Visits under way at once [default: 256]
    #[arg(long, value_name = "N", help_heading = MACHINE)]
    pub workers: Option<usize>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", help_heading = MACHINE)]
    pub threads: Option<usize>,
    /// Memory for queues, filters and caches [default: 512MiB]
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    pub memory: Option<Size>,
    /// User-Agent to send; robots.txt is searched for its first word [default: rhumb/VERSION]
    #[arg(long, value_name = "NAME", help_heading = POLITE)]
    pub agent: Option<String>,
    /// Name server to ask [default: the system's]
    #[arg(long, value_name = "IP:PORT", help_heading = MACHINE)]
    pub dns: Vec<SocketAddr>,
    /// Network that may be dialled although it is not globally routable.
    #[arg(long, value_name = "CIDR", help_heading = MACHINE)]
    pub allow_net: Vec<String>,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", help_heading = WHAT)]
    pub max_time: Option<Span>,
    /// Visit pages again and again.
    #[arg(long, help_heading = WHAT)]
    pub continuous: bool,
    /// Keep no WARC archive.
    #[arg(long, help_heading = MACHINE)]
    pub no_archive: bool,
    /// Ask for no sitemaps.
    #[arg(long, help_heading = WHAT)]
    pub no_sitemaps: bool,
    /// Keep no link graph; it is made when it is asked for.
    #[arg(long, help_heading = MACHINE)]
    pub no_graph: bool,
    /// Keep no text index.
    #[arg(long, help_heading = MACHINE)]
    pub no_index: bool,
    /// Settings from a TOML file, in place of DIR/rhumb.toml.
    #[arg(long, value_name = "FILE", help_heading = MACHINE)]
    pub config: Option<PathBuf>,
    /// No live display.
    #[arg(long, short, help_heading = MACHINE)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Crawl directory.
    pub dir: PathBuf,
    /// What to write.
    #[arg(long, short, value_parser = format, value_name = "jsonl|markdown|parquet|wet|cdxj|wacz")]
    pub format: Format,
    /// File to write, for markdown a directory; - for standard output (jsonl, wet, cdxj).
    pub out: PathBuf,
    /// Replace an earlier export.
    #[arg(long)]
    pub overwrite: bool,
    /// Also what brought no page: failures, redirects, sitemaps.
    #[arg(long)]
    pub include_failed: bool,
    /// Leave out the links of pages.
    #[arg(long)]
    pub no_links: bool,
    /// Leave out the text of pages.
    #[arg(long)]
    pub no_text: bool,
    /// Only pages of this host and its subdomains (or another one given so).
    #[arg(long, value_name = "NAME", help_heading = PAGES)]
    pub host: Vec<String>,
    /// Only URLs that begin so.
    #[arg(long, value_name = "URL", help_heading = PAGES)]
    pub prefix: Vec<String>,
    /// Only URLs that match this regular expression.
    #[arg(long, value_name = "RE", help_heading = PAGES)]
    pub matching: Vec<String>,
    /// Only bodies of this kind.
    #[arg(long, value_parser = media_kind, value_name = "html|xhtml|xml|text|pdf|…", help_heading = PAGES)]
    pub kind: Vec<MediaKind>,
    /// Only what was fetched since then: 2026-01-31 or 2026-01-31T12:00:00Z.
    #[arg(long, value_parser = date, value_name = "DATE", help_heading = PAGES)]
    pub since: Option<Timestamp>,
    /// Row groups of parquet, before compression; as much memory is needed.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", help_heading = MACHINE)]
    pub row_group: Size,
    /// What may be lost by an interruption.
    #[arg(long, value_name = "TIME", default_value = "2s", hide = true)]
    pub commit_every: Span,
    /// Memory for sorting.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", help_heading = MACHINE)]
    pub memory: Size,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", help_heading = MACHINE)]
    pub threads: Option<usize>,
    /// No live display.
    #[arg(long, short, help_heading = MACHINE)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to put the crawl directory [default: a new temporary directory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Seed of the synthetic web.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Serve what was crawled until Ctrl-C, even if nobody sits at a terminal.
    #[arg(long)]
    pub serve: bool,
    /// End at once, without serving.
    #[arg(long, conflicts_with = "serve")]
    pub no_serve: bool,
}

#[derive(Debug, Subcommand)]
pub enum RobotsCommand {
    /// May this agent fetch this URL?
    Check {
        /// The agent's product token or whole User-Agent.
        #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
        agent: String,
        /// The URL, or its path.
        #[arg(long, allow_hyphen_values = true)]
        url: String,
        /// The robots.txt; - for standard input.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum UrlCommand {
    /// Parse by the WHATWG rules, any scheme.
    Parse {
        /// The URL.
        #[arg(allow_hyphen_values = true)]
        url: String,
        /// What it is relative to.
        #[arg(long, value_name = "URL", allow_hyphen_values = true)]
        base: Option<String>,
    },
    /// Bring into the crawler's canonical form: what counts as one page.
    Normalize {
        /// The URL.
        #[arg(allow_hyphen_values = true)]
        url: String,
        /// What it is relative to.
        #[arg(long, value_name = "URL", allow_hyphen_values = true)]
        base: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum WarcCommand {
    /// List the records.
    Ls {
        /// A WARC file, or a crawl directory.
        file: PathBuf,
    },
    /// Check structure and digests.
    Check {
        /// A WARC file, or a crawl directory.
        file: PathBuf,
    },
    /// Print a CDXJ index.
    Cdxj {
        /// A WARC file, or a crawl directory.
        file: PathBuf,
        /// Sort the lines.
        #[arg(long, short)]
        sort: bool,
    },
}

#[derive(Debug, Args)]
pub struct FetchArgs {
    /// The URL.
    pub url: String,
    /// What to call ourselves.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Name server to ask.
    #[arg(long, value_name = "IP:PORT")]
    pub dns: Vec<SocketAddr>,
    /// Network that may be dialled although it is not globally routable.
    #[arg(long, value_name = "CIDR")]
    pub allow_net: Vec<String>,
    /// Ask only for what changed since the copy with this ETag.
    #[arg(long, value_name = "ETAG")]
    pub if_none_match: Option<String>,
    /// Ask only for what changed since this date.
    #[arg(long, value_name = "DATE")]
    pub if_modified_since: Option<String>,
    /// A configuration file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the decoded body to this file; - for standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum NetCommand {
    /// May this be dialled? Names are not resolved.
    Check {
        /// A URL, a host or an address.
        target: String,
        /// Network that may be dialled although it is not globally routable.
        #[arg(long, value_name = "CIDR")]
        allow_net: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
    /// Show this file's settings, with defaults for the rest.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Show the settings of this crawl directory.
    #[arg(long, value_name = "DIR", global = true)]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the settings in force.
    Show,
}

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Serve the synthetic web over HTTP and DNS until interrupted.
    Serve(SimArgs),
    /// Serve the hostile web, one host for every mistake and attack, and some hosts that behave beside it, until interrupted.
    Hostile(SimHostileArgs),
    /// Crawl the synthetic web in virtual time with the real core, checking every invariant at every step.
    Run(SimRunArgs),
}

#[derive(Debug, Args)]
pub struct SimRunArgs {
    /// The whole history is a function of this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// So many histories, of this seed and those after it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u64,
    /// Number of hosts.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub hosts: u64,
    /// Pages of a host, on average.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub pages: u64,
    /// Visits at a time.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub workers: usize,
    /// How often the process dies.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub crashes: u64,
    /// Stop after this many virtual days, finished or not.
    #[arg(long, value_name = "N")]
    pub days: Option<u64>,
    /// Where the crawl's files go, a directory that is made and removed [default: memory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct SimHostileArgs {
    /// Where to serve DNS.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:5353")]
    pub dns: SocketAddr,
    /// Port of the hostile hosts; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8666)]
    pub port: u16,
    /// Port of those that speak TLS; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8667)]
    pub tls_port: u16,
    /// Write the authority that clients must trust to this file, as PEM.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Number of hosts that behave.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub hosts: u64,
    /// Print the seeds, one a line, and nothing else.
    #[arg(long)]
    pub seeds: bool,
    /// Write every request to a hostile host to this file, a JSON document a line.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct SimArgs {
    /// Number of hosts.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub hosts: u64,
    /// Pages of a host, on average.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub pages: u64,
    /// The web is a function of this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where to serve HTTP; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where to serve DNS.
    #[arg(long, value_name = "IP:PORT")]
    pub dns: Option<SocketAddr>,
    /// Where to serve HTTPS.
    #[arg(long, value_name = "IP:PORT")]
    pub tls: Option<SocketAddr>,
    /// Whether pages link to each other by https (needs --tls).
    #[arg(long, requires = "tls")]
    pub https: bool,
    /// Write the authority that clients of HTTPS must trust to this file, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// Close every connection after one answer; HTTP/1.1 only.
    #[arg(long)]
    pub no_keep_alive: bool,
    /// How long pages take.
    #[arg(long, value_name = "MS")]
    pub latency_ms: Option<u64>,
    /// How long answers of DNS take.
    #[arg(long, value_name = "MS", requires = "dns")]
    pub dns_ms: Option<u64>,
    /// Every host has exactly the given number of pages.
    #[arg(long)]
    pub exact: bool,
    /// No latency, errors, redirects, delays or forbidden parts.
    #[arg(long)]
    pub plain: bool,
    /// Mean size of a page.
    #[arg(long, value_name = "SIZE")]
    pub page_size: Option<Size>,
    /// Name hosts by loopback addresses, so that they need no DNS; listens on all of them.
    #[arg(long)]
    pub loopback: bool,
    /// Write every request to this file, a JSON document a line.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// Says what is wrong with what was typed, in one line, or prints the help that was asked for.
pub fn explain(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let rendered = error.render().to_string();
    // The message ends at the first empty line; usage and tips follow.
    let message: Vec<&str> = rendered.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    // The commands that were understood, for whose help to ask.
    let (mut known, mut words) = (Cli::command(), vec!["rhumb".to_string()]);
    for word in std::env::args().skip(1).filter(|word| !word.starts_with('-')) {
        let Some(next) = known.find_subcommand(&word).cloned() else { break };
        known = next;
        words.push(word);
    }
    let command = words.join(" ");
    crate::out::note(&format!("rhumb: {message}; see: {command} --help"));
    ExitCode::from(2)
}

fn format(text: &str) -> Result<Format, String> {
    let known = || FORMATS.map(Format::name).join(", ");
    FORMATS.into_iter().find(|f| f.name() == text).ok_or_else(|| format!("one of {}", known()))
}

fn media_kind(text: &str) -> Result<MediaKind, String> {
    let kind = serde_json::from_value(serde_json::Value::String(text.to_string()));
    kind.map_err(|_| "one of html, xhtml, xml, text, image, pdf, media, archive, binary".to_string())
}

/// A day, or a second of one, in UTC.
fn date(text: &str) -> Result<Timestamp, String> {
    let wrong = || "a date such as 2026-01-31 or 2026-01-31T12:00:00Z".to_string();
    let plain = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = plain.split_once('T').unwrap_or((plain, "00:00:00"));
    let numbers = |text: &str, sign: char| -> Option<[u64; 3]> {
        let parts: Option<Vec<u64>> = text.split(sign).map(|p| p.parse().ok()).collect();
        parts?.try_into().ok()
    };
    let ([year, month, of_month], [hour, minute, second]) =
        numbers(day, '-').zip(numbers(time, ':')).ok_or_else(wrong)?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&of_month) {
        return Err(wrong());
    }
    if hour > 23 || minute > 59 || second > 59 {
        return Err(wrong());
    }
    // Days before a month, years counted from March so that the leap day comes last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + of_month - 1 - 719_468;
    Ok(Timestamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000))
}

fn scope(text: &str) -> Result<Scope, String> {
    match text {
        "host" => Ok(Scope::Host),
        "domain" => Ok(Scope::Domain),
        "prefix" => Ok(Scope::Prefix),
        "any" => Ok(Scope::Any),
        _ => Err("host, domain, prefix or any".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(date(text).ok().map(|t| t.to_string()).as_deref(), expected, "{text}");
        };
        check("1970-01-01", Some("1970-01-01T00:00:00.000Z"));
        check("2024-02-29", Some("2024-02-29T00:00:00.000Z"));
        check("2026-01-31T23:59:58Z", Some("2026-01-31T23:59:58.000Z"));
        check("2026-12-31T00:00:00", Some("2026-12-31T00:00:00.000Z"));
        for wrong in ["", "yesterday", "2026-13-01", "2026-01-01T25:00:00Z", "1969-12-31", "2026-01"] {
            check(wrong, None);
        }
    }
}
