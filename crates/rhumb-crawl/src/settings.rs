//! What a crawl does, with every bound in its unit. The program makes it from what the user typed.

use std::path::PathBuf;
use std::time::Duration;

use rhumb_core::crawl::CrawlConfig;
use rhumb_core::filter::FilterConfig;
use rhumb_core::net::Guard;
use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{Formats, Obedience, ParseOptions};
use rhumb_core::url::NormalizeOptions;

use crate::dns::DnsConfig;
use crate::fetch::{Credential, FetchLimits};
use crate::protocol::Registry;

/// Everything that is settled before a crawl begins.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Politeness, queues, memory.
    pub crawl: CrawlConfig,
    /// Bounds of a fetch.
    pub fetch: FetchLimits,
    /// Scope and expressions.
    pub filter: FilterConfig,
    /// How URLs are made canonical.
    pub normalize: NormalizeOptions,
    /// Caps of decoding.
    pub decode: DecodeLimits,
    /// What is taken out of a page.
    pub parse: ParseOptions,
    /// What kinds of documents are read; a program may add its own.
    pub formats: Formats,
    /// How names are resolved.
    pub dns: DnsConfig,
    /// How URLs of other schemes than `http` and `https` are fetched.
    pub protocols: Registry,
    /// Which addresses may be dialled beside the global ones.
    pub guard: Guard,
    /// The whole User-Agent header.
    pub agent: String,
    /// Hosts whose TLS sessions are remembered, to be resumed.
    pub tls_hosts_max: usize,
    /// A PEM file of further certificate authorities.
    pub authorities: Option<PathBuf>,
    /// `Authorization` for some origins.
    pub credentials: Vec<Credential>,
    /// Whether cookies are kept and sent back to the origin that set them.
    pub cookies: bool,
    /// Visits under way at once.
    pub workers: usize,
    /// Threads that carry them out.
    pub threads: usize,
    /// Whether sitemaps are followed: those that a robots.txt names, otherwise the one in the usual place.
    pub sitemaps: bool,
    /// Which of the directives of pages are obeyed.
    pub obey: Obedience,
    /// Whether pages are archived.
    pub archive: bool,
    /// Whether the log holds what pages say, for a text index.
    pub said: bool,
    /// Sites of which is remembered what their pages have in common.
    pub templates_max: usize,
    /// Memory for pages on their way, from the first byte to the commit.
    pub page_bytes_max: usize,
    /// Stop after so many pages.
    pub pages_max: Option<u64>,
    /// Stop after this time.
    pub time_max: Option<Duration>,
    /// How often a checkpoint is written.
    pub checkpoint_every: Duration,
    /// How often what was committed is made to survive a power loss.
    pub sync_every: Duration,
    /// How long visits under way may go on when the user interrupts.
    pub grace: Duration,
    /// A log segment of this size is followed by the next.
    pub log_segment_bytes: u64,
    /// An archive file of this size is followed by the next.
    pub archive_file_bytes: u64,
    /// How often people are told how far the crawl is.
    pub tell_every: Duration,
    /// What is done at all; for measuring.
    pub stages: Stages,
}

/// Stages that `rhumb bench crawl --stages` leaves out, to see what each costs. A crawl has them all, and there is no
/// setting for it.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    /// Archive records are compressed.
    pub gzip: bool,
    /// Records go to the log.
    pub log: bool,
    /// Links go to the sieve and on to the frontier.
    pub sieve: bool,
    /// Links are made canonical and judged.
    pub normalize: bool,
    /// Pages are decoded and parsed.
    pub extract: bool,
}

impl Default for Stages {
    fn default() -> Self {
        Stages { gzip: true, log: true, sieve: true, normalize: true, extract: true }
    }
}
