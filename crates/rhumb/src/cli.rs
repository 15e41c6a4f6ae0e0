//! The command line: what can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use rhumb_core::filter::Scope;

use crate::units::{Size, Span};

/// A polite, crash-safe web crawler.
#[derive(Debug, Parser)]
#[command(name = "rhumb", version, about, max_term_width = 100)]
pub struct Cli {
    /// Print one JSON document on stdout instead of text for people.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl from seeds into a crawl directory; an existing directory is resumed.
    Crawl(CrawlArgs),
    /// Crawl a built-in web on loopback and show what comes out.
    Demo(DemoArgs),
    /// Show the figures of a crawl, running or not.
    Status {
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
        /// The page's URL.
        #[arg(long)]
        base: String,
        /// The Content-Type header it came with.
        #[arg(long)]
        content_type: Option<String>,
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
    /// Judge addresses.
    Net {
        #[command(subcommand)]
        command: NetCommand,
    },
    /// Show the configuration: the defaults, a file's, or a crawl directory's.
    Config(ConfigArgs),
    /// The synthetic web.
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

#[derive(Debug, Args)]
pub struct CrawlArgs {
    /// Where to begin; http:// is assumed where no scheme is given.
    pub seeds: Vec<String>,
    /// Crawl directory [default: the first seed's host with .crawl]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Stop after this many pages (counted over all runs of this directory).
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Follow at most this many links from a seed.
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// How far from the seeds: their host, their registrable domain, their directory, anywhere.
    #[arg(long, value_parser = scope, value_name = "host|domain|prefix|any")]
    pub scope: Option<Scope>,
    /// Only URLs that match one of these expressions.
    #[arg(long, value_name = "RE")]
    pub include: Vec<String>,
    /// No URL that matches one of these expressions.
    #[arg(long, value_name = "RE")]
    pub exclude: Vec<String>,
    /// Shortest pause between requests to a host; 0s switches waiting off.
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
    /// Connections to one address; 0 for no limit.
    #[arg(long, value_name = "N")]
    pub per_ip: Option<u32>,
    /// Visits under way at once.
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Memory for queues, filters and caches.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// What to call ourselves; robots.txt is read for its first word.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Name server to ask.
    #[arg(long, value_name = "IP:PORT")]
    pub dns: Vec<SocketAddr>,
    /// Network that may be dialled although it is not globally routable.
    #[arg(long, value_name = "CIDR")]
    pub allow_net: Vec<String>,
    /// Stop after this time.
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Span>,
    /// Visit pages again and again.
    #[arg(long)]
    pub continuous: bool,
    /// Do not archive pages.
    #[arg(long)]
    pub no_archive: bool,
    /// Do not index pages.
    #[arg(long)]
    pub no_index: bool,
    /// A configuration file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// No live display.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to put the crawl directory [default: a new temporary directory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Seed of the synthetic web.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
}

#[derive(Debug, Subcommand)]
pub enum RobotsCommand {
    /// May this agent fetch this URL?
    Check {
        /// The agent's product token or whole User-Agent.
        #[arg(long)]
        agent: String,
        /// The URL, or its path.
        #[arg(long)]
        url: String,
        /// The robots.txt; - for standard input.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum UrlCommand {
    /// Parse by the WHATWG rules.
    Parse {
        /// The URL.
        #[arg(allow_hyphen_values = true)]
        url: String,
        /// What it is relative to.
        #[arg(long, allow_hyphen_values = true)]
        base: Option<String>,
    },
    /// Bring into the crawler's canonical form.
    Normalize {
        /// The URL.
        #[arg(allow_hyphen_values = true)]
        url: String,
        /// What it is relative to.
        #[arg(long, allow_hyphen_values = true)]
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
        /// A URL or an address.
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
    /// A configuration file.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// A crawl directory.
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
}

#[derive(Debug, Args)]
pub struct SimArgs {
    /// Hosts.
    #[arg(long, default_value_t = 100)]
    pub hosts: u64,
    /// Pages of a host, on average.
    #[arg(long, default_value_t = 100)]
    pub pages: u64,
    /// The web is a function of this number.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to serve HTTP.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where to serve DNS.
    #[arg(long, value_name = "IP:PORT")]
    pub dns: Option<SocketAddr>,
    /// Where to serve HTTPS.
    #[arg(long, value_name = "IP:PORT")]
    pub tls: Option<SocketAddr>,
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

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Names resolved per second of processor time.
    Dns {
        /// The name server, in another process (`rhumb sim serve --dns`).
        #[arg(long, value_name = "IP:PORT")]
        server: SocketAddr,
        /// How many names.
        #[arg(long, default_value_t = 200_000)]
        names: usize,
        /// Questions at once.
        #[arg(long, default_value_t = 192)]
        in_flight: usize,
    },
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
    let usage = rendered.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    let words = usage.unwrap_or("rhumb").split(' ').take_while(|w| w.chars().all(|c| c.is_ascii_lowercase()));
    let command = words.collect::<Vec<_>>().join(" ");
    crate::out::note(&format!("rhumb: {message}; see: {command} --help"));
    ExitCode::from(2)
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
