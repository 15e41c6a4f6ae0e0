//! Bounds and delays of the frontier.

use rhumb_store::table::TableConfig;

use super::budget::BudgetConfig;
use super::lanes::LANES;
use crate::priority::LEVELS;
use crate::traps::TrapsConfig;

/// What one more back queue may take: two blocks, of which one may have grown to twice its size, its host, its place in the heap.
const BACK_QUEUE_BYTES: usize = 16 << 10;

/// What a domain in memory takes, about.
pub(super) const DOMAIN_BYTES: usize = 112;
/// So many domains may be in memory, however little there is.
const DOMAINS_MIN: usize = 16;

/// Bounds and delays of a frontier.
#[derive(Clone, Debug)]
pub struct FrontierConfig {
    /// The product token robots.txt knows us by.
    pub agent: String,
    /// Back queues kept filled while there are URLs: about three times the workers.
    pub back_queues: usize,
    /// Back queues opened at the most when all others have to wait.
    pub back_queues_max: usize,
    /// The shortest pause between requests to a host; 0 switches waiting off.
    pub delay_ms_min: u64,
    /// The pause is at least this many times the last fetch's duration.
    pub delay_factor: f64,
    /// A longer Crawl-delay parks the host.
    pub crawl_delay_ms_max: u64,
    /// Connections to one address; 0 for no limit.
    pub per_address: u32,
    /// robots.txt is fetched again after this time.
    pub robots_ms_max: u64,
    /// Visits of one URL that keeps failing.
    pub attempts_max: u8,
    /// Visits of one URL that the host answers with "too many requests".
    pub attempts_limited_max: u8,
    /// Failures to answer in a row after which a host is held.
    pub host_failures_max: u8,
    /// A held host is asked after the first of these times, and if it still does not answer after the next; then no more.
    pub probe_ms: Vec<u64>,
    /// How long a host without a name, or whose address may not be dialled, is not looked up again.
    pub down_ms: u64,
    /// What hosts and domains may cost.
    pub budget: BudgetConfig,
    /// First pause after a failure to answer; each further one is four times as long.
    pub failure_ms_first: u64,
    /// First pause after a rate-limit event; each further one is twice as long.
    pub backoff_ms_first: u64,
    /// The longest back-off without a Retry-After.
    pub backoff_ms_max: u64,
    /// The longest Retry-After that is obeyed.
    pub retry_after_ms_max: u64,
    /// An idle connection is closed after this time.
    pub keep_alive_ms: u64,
    /// Idle connections kept at the most; the one idle for longest goes first.
    pub idle_max: usize,
    /// A back queue keeps two blocks of this size in memory, the rest on disk.
    pub block_bytes: usize,
    /// A front queue does so with blocks of this size.
    pub front_block_bytes: usize,
    /// Memory of the hosts in play; one with a back queue stays in any case.
    pub hosts_bytes_max: usize,
    /// A host's rules are kept with it up to this size; larger ones are read from the table for each page.
    pub rules_bytes_max: usize,
    /// Memory of the table of the other hosts.
    pub table: TableConfig,
    /// Entries finished behind the checkpoint that a replay remembers before it takes them out of the queues.
    pub ghosts_max: usize,
    /// What is learned of sites that make up URLs without end.
    pub traps: TrapsConfig,
    /// Continuous mode: a fetched page is due again after this time.
    pub revisit_ms: Option<u64>,
}

impl Default for FrontierConfig {
    fn default() -> Self {
        FrontierConfig {
            agent: "rhumb".to_string(),
            back_queues: 768,
            back_queues_max: 1 << 16,
            delay_ms_min: 2_000,
            delay_factor: 10.0,
            crawl_delay_ms_max: 300_000,
            per_address: 4,
            robots_ms_max: 24 * 3_600_000,
            attempts_max: 3,
            attempts_limited_max: 6,
            host_failures_max: 4,
            // An outage of minutes, a night, a few days: what fails for two weeks is not coming back.
            probe_ms: [5, 30, 3 * 60, 12 * 60, 24 * 60, 3 * 24 * 60, 7 * 24 * 60]
                .map(|minutes| minutes * 60_000)
                .into(),
            down_ms: 3_600_000,
            budget: BudgetConfig::default(),
            failure_ms_first: 1_000,
            backoff_ms_first: 4_000,
            backoff_ms_max: 600_000,
            retry_after_ms_max: 24 * 3_600_000,
            keep_alive_ms: 5_000,
            idle_max: 512,
            block_bytes: 4 << 10,
            front_block_bytes: 64 << 10,
            hosts_bytes_max: 32 << 20,
            rules_bytes_max: 4 << 10,
            table: TableConfig { memory_bytes_max: 8 << 20, filter_bytes_max: 8 << 20 },
            ghosts_max: 1 << 18,
            traps: TrapsConfig::default(),
            revisit_ms: None,
        }
    }
}

impl FrontierConfig {
    /// Divides a memory budget: half for back queues (their number follows), a quarter for the hosts in play, a
    /// quarter for the table of the others.
    pub fn within(self, bytes: usize) -> FrontierConfig {
        FrontierConfig {
            back_queues_max: (bytes / 2 / BACK_QUEUE_BYTES).max(self.back_queues),
            front_block_bytes: (bytes / 1024).clamp(4 << 10, 64 << 10),
            hosts_bytes_max: bytes / 4,
            table: TableConfig { memory_bytes_max: bytes / 8, filter_bytes_max: bytes / 8 },
            ghosts_max: (bytes / 256).max(1_000),
            ..self
        }
    }

    /// Registrable domains in memory.
    pub(super) fn domains_max(&self) -> usize {
        (self.hosts_bytes_max / 8 / DOMAIN_BYTES).max(DOMAINS_MIN)
    }

    /// What the frontier may take with these bounds, however many URLs and hosts there are, and however many rules they have. Not
    /// counted: queues of URLs of kilobytes each.
    pub fn memory_bytes_max(&self) -> usize {
        let queue = |block_bytes: usize| 4 * block_bytes + (8 << 10);
        let front = (LEVELS + 1) * queue(self.front_block_bytes) + LANES * (4 * self.block_bytes + 256);
        let host = queue(self.block_bytes) + (2 << 10) + self.rules_bytes_max;
        let back = self.back_queues_max.max(self.back_queues) * host + self.domains_max() * DOMAIN_BYTES;
        front + back + self.hosts_bytes_max + 2 * self.table.memory_bytes_max + (4 << 10) + 64 * self.ghosts_max
    }
}
