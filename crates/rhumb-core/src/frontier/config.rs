//! Bounds and delays of the frontier.

use rhumb_store::table::TableConfig;

use crate::priority::LEVELS;
use crate::traps::TrapsConfig;

/// What one more back queue may take: two blocks, of which one may have grown to twice its size, its host, its place in the heap.
const BACK_QUEUE_BYTES: usize = 16 << 10;

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
    /// Failures to answer in a row after which a host's URLs are given up.
    pub host_failures_max: u8,
    /// How long a host counts as down.
    pub down_ms: u64,
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
            down_ms: 3_600_000,
            failure_ms_first: 1_000,
            backoff_ms_first: 4_000,
            backoff_ms_max: 600_000,
            retry_after_ms_max: 24 * 3_600_000,
            keep_alive_ms: 5_000,
            idle_max: 512,
            block_bytes: 4 << 10,
            front_block_bytes: 64 << 10,
            hosts_bytes_max: 32 << 20,
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
    /// What the frontier may take with these bounds, however many URLs and hosts there are. Not counted: rules of hosts that have a
    /// back queue, and queues of URLs of kilobytes each.
    pub fn memory_bytes_max(&self) -> usize {
        let queue = |block_bytes: usize| 4 * block_bytes + (8 << 10);
        let front = (LEVELS + 1) * queue(self.front_block_bytes);
        let back = self.back_queues_max.max(self.back_queues) * (queue(self.block_bytes) + (2 << 10));
        front + back + self.hosts_bytes_max + 2 * self.table.memory_bytes_max + (4 << 10) + 64 * self.ghosts_max
    }
}
