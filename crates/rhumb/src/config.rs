//! Configuration in two stages: what was written (this file's [`Config`], TOML with units, unknown keys refused), and
//! what it means ([`Config::settings`], numbers for the crawler).

#[path = "config/index.rs"]
mod index;

use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use regex::RegexBuilder;
use rhumb_core::crawl::CrawlConfig;
use rhumb_core::filter::{FilterConfig, Scope};
use rhumb_core::frontier::{BudgetConfig, FrontierConfig};
use rhumb_core::net::{Cidr, Guard};
use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{ExtractOptions, Formats, Obedience, ParseOptions, SiteTemplate};
use rhumb_core::priority::{LEVELS, Prioritizer};
use rhumb_core::robots::product_token;
use rhumb_core::sieve::SieveConfig;
use rhumb_core::traps::TrapsConfig;
use rhumb_core::url::{Fingerprint, NormalizeOptions, ShapeLimits};
use rhumb_crawl::Settings;
use rhumb_crawl::dns::DnsConfig;
use rhumb_crawl::fetch::FetchLimits;
use rhumb_crawl::pdf::{Pdf, PdfConfig};
use rhumb_crawl::settings::Stages;
use rhumb_index::search::Ranking;
use serde::{Deserialize, Serialize};

use crate::credentials;
use crate::files::{self, Files};
use crate::memory::{self, Shares};
use crate::units::{Size, Span};

/// Version of the crawl directory's layout.
pub const FORMAT: u32 = 1;
/// The file in a crawl directory that holds the settings in force.
pub const FILE: &str = "rhumb.toml";

/// In front of the checksum in a crawl directory's file.
const SEAL: &str = "# CRC-32 of all above: ";

/// Bytes that one compiled expression may take.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;
/// With less a process that reads PDFs would not even start.
const PDF_BYTES_MIN: u64 = 64 << 20;
/// What a remembered TLS session takes: two tickets and the certificates of the host.
const TLS_SESSION_BYTES: usize = 8 << 10;

/// Sixty-four random bits, written in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    /// A key that nobody can guess.
    pub fn random() -> Key {
        // The standard library seeds its maps from the system's random numbers; that is all that is needed here.
        Key(std::collections::hash_map::RandomState::new().hash_one(0))
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        let text = String::deserialize(from)?;
        let key = Some(&text).filter(|t| t.len() == 16).and_then(|t| u64::from_str_radix(t, 16).ok());
        key.map(Key).ok_or_else(|| serde::de::Error::custom("a key has 16 hexadecimal digits"))
    }
}

/// Everything that can be set. Sections and keys are those of the TOML file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Layout of the crawl directory; only there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// Whether the file of a crawl directory is not as we wrote it.
    #[serde(skip)]
    pub changed: bool,
    /// What fingerprints of URLs and hosts are keyed with; only there, and made when the directory is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    pub crawl: CrawlSection,
    pub politeness: PolitenessSection,
    pub fetch: FetchSection,
    pub page: PageSection,
    pub formats: FormatsSection,
    pub url: UrlSection,
    pub dns: DnsSection,
    pub net: NetSection,
    pub storage: StorageSection,
    pub index: index::IndexSection,
    pub ranking: Ranking,
    pub traps: TrapsSection,
    pub robots: RobotsSection,
    pub priority: Vec<PriorityRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlSection {
    pub scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Span>,
    pub workers: usize,
    /// 0: one for each processor.
    pub threads: usize,
    pub memory: Size,
    pub agent: String,
    pub continuous: bool,
    pub revisit: Span,
    /// Follow sitemaps: those that robots.txt names, otherwise the one in the usual place.
    pub sitemaps: bool,
}

impl Default for CrawlSection {
    fn default() -> Self {
        CrawlSection {
            scope: Scope::Host,
            limit: None,
            depth: None,
            include: Vec::new(),
            exclude: Vec::new(),
            max_time: None,
            workers: 256,
            threads: 0,
            memory: Size(512 << 20),
            agent: concat!("rhumb/", env!("CARGO_PKG_VERSION")).to_string(),
            continuous: false,
            revisit: Span::seconds(24 * 3600),
            sitemaps: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolitenessSection {
    pub delay: Span,
    pub delay_factor: f64,
    pub per_ip: u32,
    pub crawl_delay_max: Span,
    pub retry_after_max: Span,
    pub robots_max_age: Span,
    pub backoff_first: Span,
    pub backoff_max: Span,
    pub attempts: u8,
    pub attempts_rate_limited: u8,
    pub host_failures: u8,
    pub failure_pause: Span,
    /// A host that is held for not answering is asked after the first of these times, then after the next; then no more.
    pub probe_after: Vec<Span>,
    pub host_down: Span,
    pub keep_alive: Span,
}

impl Default for PolitenessSection {
    fn default() -> Self {
        let f = FrontierConfig::default();
        let span = |ms: u64| Span(std::time::Duration::from_millis(ms));
        PolitenessSection {
            delay: span(f.delay_ms_min),
            delay_factor: f.delay_factor,
            per_ip: f.per_address,
            crawl_delay_max: span(f.crawl_delay_ms_max),
            retry_after_max: span(f.retry_after_ms_max),
            robots_max_age: span(f.robots_ms_max),
            backoff_first: span(f.backoff_ms_first),
            backoff_max: span(f.backoff_ms_max),
            attempts: f.attempts_max,
            attempts_rate_limited: f.attempts_limited_max,
            host_failures: f.host_failures_max,
            failure_pause: span(f.failure_ms_first),
            probe_after: f.probe_ms.iter().map(|&ms| span(ms)).collect(),
            host_down: span(f.down_ms),
            keep_alive: span(f.keep_alive_ms),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchSection {
    pub connect: Span,
    pub tls: Span,
    pub head: Span,
    pub total: Span,
    /// Slowest body, in bytes a second over `rate_window`.
    pub rate_min: Size,
    pub rate_window: Span,
    pub head_max: Size,
    pub head_lines_max: usize,
    pub body_max: Size,
    pub decoded_max: Size,
    pub codings_max: usize,
    pub redirects_max: u8,
    /// Keep cookies in memory, and send each back to the origin that set it.
    pub cookies: bool,
}

impl Default for FetchSection {
    fn default() -> Self {
        let (f, d) = (FetchLimits::default(), DecodeLimits::default());
        FetchSection {
            connect: Span(f.connect),
            tls: Span(f.tls),
            head: Span(f.head),
            total: Span(f.total),
            rate_min: Size(f.rate_bytes_min / f.rate_window.as_secs().max(1)),
            rate_window: Span(f.rate_window),
            head_max: Size(f.head_bytes_max as u64),
            head_lines_max: f.head_lines_max,
            body_max: Size(f.body_bytes_max as u64),
            decoded_max: Size(d.decoded_bytes_max as u64),
            codings_max: d.codings_max,
            redirects_max: 10,
            cookies: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FormatsSection {
    /// Whether PDFs are read for their text and links. They are archived either way.
    pub pdf: bool,
    /// How long reading one may take, in processor time and by the clock.
    pub pdf_time: Span,
    /// Memory of a process that reads one.
    pub pdf_memory: Size,
    /// How many such processes there may be at once.
    pub pdf_at_once: usize,
}

impl Default for FormatsSection {
    fn default() -> Self {
        FormatsSection {
            pdf: true,
            pdf_time: Span(std::time::Duration::from_secs(10)),
            pdf_memory: Size(512 << 20),
            pdf_at_once: 2,
        }
    }
}

impl FormatsSection {
    /// The formats that are read: those of the core, and PDF in processes of its own.
    pub fn in_force(&self) -> Formats {
        let formats = Formats::default();
        if !self.pdf {
            return formats;
        }
        formats.with(Pdf::new(PdfConfig::own(self.pdf_time.0, self.pdf_memory.0, self.pdf_at_once)))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageSection {
    pub links_max: usize,
    /// Also follow images, scripts and style sheets.
    pub resources: bool,
    /// Read the main text, for duplicates, mirrors and the text index; if it is not said, when an archive or an index is kept. Without
    /// it the index has nothing to find.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<bool>,
}

impl Default for PageSection {
    fn default() -> Self {
        PageSection { links_max: ExtractOptions::default().links_max, resources: false, text: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UrlSection {
    pub session_ids: bool,
    pub tracking: bool,
    pub tracking_params: Vec<String>,
    pub sort_query: bool,
    pub bytes_max: usize,
    pub path_depth_max: usize,
    pub segment_repeats_max: usize,
}

impl Default for UrlSection {
    fn default() -> Self {
        let (n, s) = (NormalizeOptions::default(), ShapeLimits::default());
        UrlSection {
            session_ids: n.session_ids,
            tracking: n.tracking,
            tracking_params: n.tracking_params,
            sort_query: n.sort_query,
            bytes_max: n.url_bytes_max,
            path_depth_max: s.path_depth_max,
            segment_repeats_max: s.segment_repeats_max,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsSection {
    /// Name servers as address:port; none: those of the system.
    pub servers: Vec<SocketAddr>,
    pub ipv6: bool,
    /// How long each attempt waits for an answer; there are as many attempts.
    pub waits: Vec<Span>,
    /// How long a question over TCP may take.
    pub tcp: Span,
}

impl Default for DnsSection {
    fn default() -> Self {
        let usual = DnsConfig::with_servers(Vec::new());
        let waits = usual.schedule.into_iter().map(Span).collect();
        DnsSection { servers: Vec::new(), ipv6: usual.ipv6, waits, tcp: Span(usual.tcp_wait) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetSection {
    /// Networks that may be dialled although they are not globally routable.
    pub allow: Vec<String>,
    /// A PEM file of certificate authorities trusted beside the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// A file of user names, passwords and tokens, each for one origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSection {
    pub archive: bool,
    /// Keep in the log what pages say, for the text index.
    pub index: bool,
    /// Keep the link graph while crawling; without it, it is made when it is asked for.
    pub graph: bool,
    pub checkpoint_every: Span,
    pub sync_every: Span,
    pub log_segment: Size,
    pub archive_file: Size,
}

impl Default for StorageSection {
    fn default() -> Self {
        StorageSection {
            archive: true,
            index: true,
            graph: true,
            checkpoint_every: Span::seconds(60),
            sync_every: Span::seconds(2),
            log_segment: Size(256 << 20),
            archive_file: Size(1 << 30),
        }
    }
}

/// Which directives of pages are obeyed beside robots.txt, which always is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RobotsSection {
    /// Links of a page that says nofollow, in a meta element or by X-Robots-Tag, are not followed.
    pub nofollow: bool,
    /// Links marked rel=nofollow are not followed.
    pub rel_nofollow: bool,
    /// No copy is kept of a page that says noarchive.
    pub noarchive: bool,
}

impl Default for RobotsSection {
    fn default() -> Self {
        let Obedience { nofollow, rel_nofollow, noarchive } = Obedience::default();
        RobotsSection { nofollow, rel_nofollow, noarchive }
    }
}

/// What a host and a registrable domain may cost, by what they bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrapsSection {
    /// Learn which parts of a site's URLs do not matter, and which pages bring nothing new.
    pub learn: bool,
    /// Pages in a row without anything new after which such a rule is believed.
    pub learn_after: u32,
    /// Visits that a host is given to begin with; 0: no budget.
    pub host_credit: u32,
    /// The same for a registrable domain.
    pub domain_credit: u32,
    /// Visits that a page with something new earns.
    pub credit_per_page: u32,
    /// Credit is capped at so many times what it began with.
    pub credit_factor_max: u32,
    /// What is over its budget is granted a page after this time.
    pub explore_after: Span,
    /// Visits of a host's pages; 0: no bound.
    pub host_pages_max: u64,
    /// The same for a registrable domain.
    pub domain_pages_max: u64,
    /// Hosts of a registrable domain beyond its pages with something new; 0: no bound.
    pub domain_hosts_max: u64,
}

impl Default for TrapsSection {
    fn default() -> Self {
        let b = BudgetConfig::default();
        let t = TrapsConfig::default();
        TrapsSection {
            learn: t.learn,
            learn_after: t.learn_after,
            host_credit: b.host_credit,
            domain_credit: b.domain_credit,
            credit_per_page: b.credit_per_page,
            credit_factor_max: b.credit_factor_max,
            explore_after: Span(std::time::Duration::from_millis(b.explore_ms)),
            host_pages_max: b.host_pages_max,
            domain_pages_max: b.domain_pages_max,
            domain_hosts_max: b.domain_hosts_max,
        }
    }
}

impl TrapsSection {
    fn rules(&self, bytes_max: usize) -> TrapsConfig {
        TrapsConfig { learn: self.learn, learn_after: self.learn_after.max(4), bytes_max }
    }

    fn budget(&self) -> BudgetConfig {
        BudgetConfig {
            host_credit: self.host_credit,
            domain_credit: self.domain_credit,
            credit_per_page: self.credit_per_page,
            credit_factor_max: self.credit_factor_max,
            explore_ms: self.explore_after.ms().max(1),
            host_pages_max: self.host_pages_max,
            domain_pages_max: self.domain_pages_max,
            domain_hosts_max: self.domain_hosts_max,
        }
    }
}

/// URLs that match go to this level: 0 is the most urgent, 7 the least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityRule {
    #[serde(rename = "match")]
    pub expression: String,
    pub level: usize,
}

impl Config {
    /// Reads a file; the error says which key, where.
    pub fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Config::from_text(&text).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))
    }

    /// Reads a file's text; the error is one line.
    pub fn from_text(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|e| one_line(&e, text))
    }

    /// The settings of an existing crawl directory, or nothing if it is not one.
    pub fn of_directory(dir: &Path) -> Result<Option<Config>> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // The version comes first: another version may have other keys.
        let found = text.parse::<toml::Table>().ok().and_then(|t| t.get("format").and_then(toml::Value::as_integer));
        match found {
            Some(format) if format == i64::from(FORMAT) => {}
            Some(format) => bail!(
                "{} was made by another version of rhumb (format {format}; this one knows {FORMAT}): use that version, or another directory",
                path.display()
            ),
            None => bail!("{} names no format: is {} a crawl directory?", path.display(), dir.display()),
        }
        let mut config = Config::read(&path)?;
        config.changed = text.rsplit_once(SEAL).is_some_and(|(text, sum)| sum.trim_end() != seal(text));
        Ok(Some(config))
    }

    /// What people should know of a file that is not as we wrote it.
    pub fn changed_note() -> String {
        format!(
            "{FILE} is not as rhumb wrote it; it counts as it is now. If nobody edited it, it is damaged: compare it with `rhumb config`"
        )
    }

    /// All settings as TOML.
    /// Makes the fingerprints of this process those of the crawl.
    pub fn use_key(&self) {
        Fingerprint::set_key(self.key.map_or(0, |key| key.0));
    }

    /// The file for a crawl directory.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("write the settings as TOML")
    }

    /// The file for a crawl directory: it ends with a checksum, so that a flipped bit does not pass for a setting.
    pub fn to_file(&self) -> Result<String> {
        let text = self.to_toml()?;
        let sum = seal(&text);
        Ok(format!("{text}{SEAL}{sum}\n"))
    }

    /// Numbers for the crawler.
    pub fn settings(&self) -> Result<Settings> {
        let (c, p, f) = (&self.crawl, &self.politeness, &self.fetch);
        let agent = c.agent.trim();
        if agent.is_empty() || !agent.chars().all(|ch| (' '..='~').contains(&ch)) {
            bail!(
                "agent {:?}: a name of visible ASCII characters is needed, such as \"mybot/1.0 (+https://example.org/bot)\"",
                c.agent
            );
        }
        if c.workers == 0 || c.workers > 100_000 {
            bail!("workers {}: between 1 and 100000", c.workers);
        }
        if p.delay_factor.is_nan() || !(0.0..=1e6).contains(&p.delay_factor) {
            bail!("delay_factor {}: between 0 and 1000000", p.delay_factor);
        }
        if self.formats.pdf_memory.0 < PDF_BYTES_MIN {
            bail!("formats.pdf_memory {}: at least {}", self.formats.pdf_memory, Size(PDF_BYTES_MIN));
        }
        if self.formats.pdf_at_once == 0 {
            bail!("formats.pdf_at_once: at least one");
        }
        self.index.check()?;
        index::check_ranking(&self.ranking)?;
        if c.memory.0 < memory::BYTES_MIN {
            bail!("memory {}: at least {}", c.memory, Size(memory::BYTES_MIN));
        }
        let shares = Shares::of(c.memory);
        let threads = match c.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        };
        let allow = self.net.allow.iter().map(|n| n.parse::<Cidr>().map_err(|e| anyhow::anyhow!("allow-net {n}: {e}")));
        let guard = Guard { allow: allow.collect::<Result<_>>()?, ..Guard::default() };
        let mut dns = if self.dns.servers.is_empty() {
            DnsConfig::from_system()
        } else {
            DnsConfig::with_servers(self.dns.servers.clone())
        };
        if self.dns.waits.is_empty() {
            bail!("dns.waits: at least one attempt");
        }
        let files = Files::within(files::limit(), c.workers, threads, dns.servers.len());
        dns.sockets = files.dns_sockets;
        dns.ipv6 = self.dns.ipv6;
        dns.schedule = self.dns.waits.iter().map(|wait| wait.0).collect();
        dns.tcp_wait = self.dns.tcp.0;
        dns.cache_entries_max = shares.dns / rhumb_crawl::dns::ENTRY_BYTES;
        let filter = FilterConfig {
            scope: c.scope,
            include: c.include.clone(),
            exclude: c.exclude.clone(),
            depth_max: c.depth,
            shape: ShapeLimits {
                url_bytes_max: self.url.bytes_max,
                path_depth_max: self.url.path_depth_max,
                segment_repeats_max: self.url.segment_repeats_max,
            },
            ..FilterConfig::default()
        };
        rhumb_core::filter::Filter::new(filter.clone()).map_err(|e| anyhow::anyhow!("{e}"))?;
        let text = self.page.text.unwrap_or(self.storage.archive || self.storage.index);
        Ok(Settings {
            protocols: rhumb_crawl::protocol::Registry::default(),
            crawl: self.crawl_config(agent, &shares, &files)?,
            fetch: FetchLimits {
                connect: f.connect.0,
                tls: f.tls.0,
                head: f.head.0,
                total: f.total.0,
                rate_bytes_min: (f.rate_min.0 as f64 * f.rate_window.0.as_secs_f64()).ceil() as u64,
                rate_window: f.rate_window.0,
                head_bytes_max: f.head_max.0 as usize,
                head_lines_max: f.head_lines_max,
                body_bytes_max: f.body_max.0 as usize,
            },
            filter,
            normalize: NormalizeOptions {
                session_ids: self.url.session_ids,
                tracking: self.url.tracking,
                tracking_params: self.url.tracking_params.clone(),
                sort_query: self.url.sort_query,
                url_bytes_max: self.url.bytes_max,
            },
            decode: DecodeLimits {
                decoded_bytes_max: f.decoded_max.0 as usize,
                codings_max: f.codings_max,
                ..DecodeLimits::default()
            },
            parse: ParseOptions {
                extract: ExtractOptions {
                    links_max: self.page.links_max,
                    resources: self.page.resources,
                    agent: product_token(agent).to_string(),
                    // The content-seen test and the text index read the main text; nobody else reads any.
                    text,
                    main_text: text,
                    ..ExtractOptions::default()
                },
                ..ParseOptions::default()
            },
            formats: self.formats.in_force(),
            dns,
            guard,
            agent: agent.to_string(),
            tls_hosts_max: (shares.tls / TLS_SESSION_BYTES).max(16),
            authorities: self.net.authorities.clone(),
            credentials: self.net.credentials.as_deref().map_or(Ok(Vec::new()), credentials::read)?,
            cookies: f.cookies,
            workers: files.workers,
            threads: files.threads,
            sitemaps: c.sitemaps,
            obey: Obedience {
                nofollow: self.robots.nofollow,
                rel_nofollow: self.robots.rel_nofollow,
                noarchive: self.robots.noarchive,
            },
            archive: self.storage.archive,
            said: self.storage.index && text,
            templates_max: shares.pages / TEMPLATES_SHARE / SiteTemplate::BYTES_MAX,
            page_bytes_max: shares.pages - shares.pages / READING_SHARE,
            pages_max: c.limit,
            time_max: c.max_time.map(|t| t.0),
            checkpoint_every: self.storage.checkpoint_every.0,
            sync_every: self.storage.sync_every.0,
            grace: std::time::Duration::from_secs(5),
            log_segment_bytes: self.storage.log_segment.0,
            archive_file_bytes: self.storage.archive_file.0,
            tell_every: std::time::Duration::from_secs(1),
            stages: Stages::default(),
        })
    }

    fn crawl_config(&self, agent: &str, shares: &Shares, files: &Files) -> Result<CrawlConfig> {
        let (c, p) = (&self.crawl, &self.politeness);
        let mut rules = Vec::new();
        for rule in &self.priority {
            let expression = RegexBuilder::new(&rule.expression).size_limit(EXPRESSION_BYTES_MAX).build();
            let expression = expression.map_err(|e| {
                anyhow::anyhow!("priority rule {:?}: {}", rule.expression, e.to_string().replace('\n', " "))
            })?;
            if rule.level >= LEVELS {
                bail!("priority rule {:?}: level {} is not between 0 and {}", rule.expression, rule.level, LEVELS - 1);
            }
            rules.push((expression, rule.level));
        }
        Ok(CrawlConfig {
            frontier: FrontierConfig {
                agent: product_token(agent).to_string(),
                back_queues: 3 * files.workers,
                delay_ms_min: p.delay.ms(),
                delay_factor: p.delay_factor,
                crawl_delay_ms_max: p.crawl_delay_max.ms(),
                per_address: p.per_ip,
                robots_ms_max: p.robots_max_age.ms().min(24 * 3_600_000),
                attempts_max: p.attempts.max(1),
                attempts_limited_max: p.attempts_rate_limited.max(1),
                host_failures_max: p.host_failures.max(1),
                probe_ms: p.probe_after.iter().map(|span| span.ms().max(1)).collect(),
                down_ms: p.host_down.ms(),
                budget: self.traps.budget(),
                failure_ms_first: p.failure_pause.ms().max(1),
                backoff_ms_first: p.backoff_first.ms().max(1),
                backoff_ms_max: p.backoff_max.ms(),
                retry_after_ms_max: p.retry_after_max.ms(),
                keep_alive_ms: p.keep_alive.ms(),
                idle_max: files.idle.min((shares.connections / CONNECTION_BYTES).clamp(8, 4_096)),
                traps: self.traps.rules(shares.traps),
                revisit_ms: c.continuous.then(|| c.revisit.ms()),
                ..FrontierConfig::default()
            }
            .within(shares.frontier),
            sieve: SieveConfig::within(shares.sieve),
            prioritizer: Prioritizer::new(rules),
            seen_bytes_max: shares.seen,
            redirects_max: self.fetch.redirects_max,
            seed: 0x0072_6875_6d62,
        })
    }
}

fn seal(text: &str) -> String {
    format!("{:08x}", rhumb_store::codec::crc32(text.as_bytes()))
}

/// What part of the memory for pages is for reading them: texts, main texts, and what the pages of a site have in common.
const READING_SHARE: usize = 4;
/// What part of it is for the last of these.
const TEMPLATES_SHARE: usize = 16;

/// What an idle connection takes: its buffers have seen a page.
const CONNECTION_BYTES: usize = 32 << 10;

/// A TOML error in one line: what and where.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message().replace('\n', " ");
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let config = Config { format: Some(FORMAT), ..Config::default() };
        let text = config.to_toml().expect("write");
        assert_eq!(toml::from_str::<Config>(&text).expect("read"), config);
        assert!(config.settings().is_ok());
    }

    #[test]
    fn text_is_read_when_somebody_needs_it() {
        let check = |text: &str, main_text: bool, said: bool| {
            let settings = Config::from_text(text).expect(text).settings().expect(text);
            assert_eq!((settings.parse.extract.main_text, settings.said), (main_text, said), "{text}");
        };
        check("", true, true);
        check("storage = { archive = false }", true, true);
        check("storage = { index = false }", true, false);
        check("storage = { archive = false, index = false }", false, false);
        check("page = { text = true }\nstorage = { archive = false, index = false }", true, false);
        check("page = { text = false }", false, false);
    }

    #[test]
    fn mistakes_are_named() {
        let check = |text: &str, expected: &str| {
            let dir = tempfile::tempdir().expect("temporary directory");
            let path = dir.path().join("c.toml");
            std::fs::write(&path, text).expect("write");
            let error = Config::read(&path).and_then(|c| c.settings().map(|_| ())).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error:?} should contain {expected:?}");
        };
        check("[crawl]\nworker = 3\n", "line 2: unknown field `worker`");
        check("[politeness]\ndelay = \"2 parsecs\"\n", "is not a duration");
        check("[crawl]\nworkers = 0\n", "workers 0");
        check("[crawl]\nagent = \"a\\nb\"\n", "agent");
        check("[net]\nallow = [\"300.0.0.0/8\"]\n", "allow-net 300.0.0.0/8");
        check("[crawl]\ninclude = [\"(\"]\n", "(");
    }
}
