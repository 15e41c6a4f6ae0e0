//! A crawl in virtual time: weeks in minutes, every promise checked at every step.
//!
//! The real [`rhumb_core::crawl::Crawl`] (frontier, sieve, robots, priorities, content-seen) and the real stores (log,
//! checkpoints, disk queues) are driven in one thread, without sockets or sleep. A heap of events stands for the world:
//! fetches that end, names that are resolved, connections that close, batches that come late, ticks. The clock jumps
//! from one to the next. Everything follows from one seed, so a history that went wrong can be told by a number, and the
//! digest of the whole history says whether two runs were the same.
//!
//! Read `simulation.rs` for the loop, `process.rs` for how the core is driven (it mirrors the engine), `world.rs` for
//! what hosts do to us, `checker.rs` for the invariants, which a naive model judges from the servers' side (`rude.rs` is
//! a toy that breaks each), `disk.rs` for how a process dies in the middle of a write.
//!
//! ```
//! use rhumb_sim::virtual_time::{SimConfig, run};
//!
//! let story = run(&SimConfig { seed: 3, hosts: 5, pages: 4, crashes: 1, ..SimConfig::default() }).unwrap();
//! assert!(story.finished && story.pages > 0);
//! ```

mod checker;
pub mod disk;
mod process;
mod simulation;
#[cfg(test)]
mod tests;
mod urls;
mod world;

use std::path::PathBuf;

use rhumb_core::crawl::CrawlConfig;
use rhumb_core::frontier::FrontierConfig;
use rhumb_core::priority::Prioritizer;
use rhumb_core::sieve::SieveConfig;
use rhumb_store::StoreError;
use serde::Serialize;

pub use checker::Violation;
pub use world::Whims;

use crate::hash::{Dice, Purpose, mix};
use crate::{ConfigError, WebConfig};
use simulation::Simulation;

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Everything follows from it.
    pub seed: u64,
    /// Hosts of the web.
    pub hosts: u64,
    /// Pages of a host, on average.
    pub pages: u64,
    /// Visits at a time.
    pub workers: usize,
    /// How often the process dies.
    pub crashes: u64,
    /// How often a crawl that has nothing left but held URLs is started again.
    pub resumes: u64,
    /// Stop after so many virtual days, finished or not.
    pub days: Option<u64>,
    /// How the world behaves.
    pub whims: Whims,
    /// Where the crawl's files go; in memory without it.
    pub dir: Option<PathBuf>,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            seed: 1,
            hosts: 100,
            pages: 20,
            workers: 8,
            crashes: 5,
            resumes: 1,
            days: None,
            whims: Whims::default(),
            dir: None,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Story {
    /// The seed it follows from.
    pub seed: u64,
    /// Hosts of the web.
    pub hosts: u64,
    /// Pages of the web.
    pub web_pages: u64,
    /// From the first to the last moment.
    pub virtual_ms: u64,
    /// Fetches ended, names resolved, connections closed, batches delivered, ticks.
    pub events: u64,
    /// Requests that servers saw, robots.txt included.
    pub visits: u64,
    /// Of these, robots.txt.
    pub robots: u64,
    /// Pages fetched for good.
    pub pages: u64,
    /// URLs found, and all of them finished if the crawl is.
    pub urls: u64,
    /// URLs given up without a visit.
    pub dropped: u64,
    /// URLs that are held in the end: their hosts did not answer, or were over budget.
    pub held: u64,
    /// How often a host was held.
    pub holds: u64,
    /// How often the crawl was started again to try them.
    pub resumed: u64,
    /// Visits that were repeated.
    pub retries: u64,
    /// How often the process died.
    pub crashes: u64,
    /// Of these, in the middle of a write.
    pub torn: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Times the state was made anew from the log alone.
    pub rebuilt: u64,
    /// Invariants checked.
    pub checks: u64,
    /// Whether nothing was left to do.
    pub finished: bool,
    /// A fingerprint of the whole history.
    pub digest: String,
}

/// Why a simulation did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A promise was broken.
    #[error("seed {seed}: {violation}")]
    Violation {
        /// The seed that shows it.
        seed: u64,
        /// Which, when, how.
        violation: Violation,
    },
    /// The stores failed without being asked to.
    #[error("seed {seed}: {error}")]
    Store {
        /// The seed that shows it.
        seed: u64,
        /// What they said.
        error: StoreError,
    },
    /// Not a web.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Plays one history to its end, checking every step.
pub fn run(config: &SimConfig) -> Result<Story, SimError> {
    Simulation::new(config)?.run()
}

/// A web larger than this is simulated with the bounds of a real crawl.
const SMALL_PAGES: u64 = 100_000;

impl SimConfig {
    fn is_small(&self) -> bool {
        self.hosts.saturating_mul(self.pages) <= SMALL_PAGES
    }

    fn web(&self) -> WebConfig {
        WebConfig {
            seed: self.seed,
            hosts: self.hosts,
            pages: self.pages,
            // Fewer links than on real pages: a URL met for the tenth time tests nothing that the third time did not.
            links: 8,
            crawl_delay_ms_max: 20_000,
            ..WebConfig::default()
        }
    }

    /// The bounds of the core. A small crawl gets tiny ones, drawn from the seed, so that queues spill to disk, runs are
    /// merged, tables fill up and rules expire within a few thousand pages.
    fn crawl(&self) -> CrawlConfig {
        let mut dice = Dice::new(mix(self.seed, Purpose::History, 1, 0));
        let mut frontier =
            FrontierConfig { back_queues: 3 * self.workers, failure_ms_first: 5_000, ..FrontierConfig::default() };
        let mut sieve = SieveConfig::default();
        let mut seen_bytes_max = 16 << 20;
        if self.is_small() {
            frontier.back_queues_max = frontier.back_queues + dice.below(3 * self.hosts) as usize;
            frontier.per_address = [1, 2, 4][dice.below(3) as usize];
            frontier.block_bytes = 100 + dice.below(2_000) as usize;
            frontier.front_block_bytes = 100 + dice.below(2_000) as usize;
            frontier.hosts_bytes_max = 2_000 + dice.below(20_000) as usize;
            frontier.table.memory_bytes_max = 300 + dice.below(3_000) as usize;
            frontier.table.filter_bytes_max = dice.below(1_000) as usize;
            frontier.ghosts_max = 5 + dice.below(300) as usize;
            frontier.robots_ms_max = [1, 6, 24][dice.below(3) as usize] * 3_600_000;
            frontier.down_ms = [600_000, 3_600_000][dice.below(2) as usize];
            frontier.idle_max = [2, 512][dice.below(2) as usize];
            frontier.keep_alive_ms = [1_000, 5_000, 60_000][dice.below(3) as usize];
            frontier.rules_bytes_max = [10, 100, 4_000][dice.below(3) as usize];
            sieve = SieveConfig {
                filter_bytes_max: 64 << dice.below(10),
                recent_keys: 16,
                fresh_keys_max: 20 + dice.below(500) as usize,
                batch_keys_max: 10 + dice.below(300) as usize,
                buffer_bytes: 100 + dice.below(2_000) as usize,
            };
            seen_bytes_max = 2_000;
            if dice.chance(self.whims.tight_budgets_share) {
                frontier.budget.host_credit = 1 + dice.below(10) as u32;
                frontier.budget.domain_credit = [0, 40, 400][dice.below(3) as usize];
                // Most of this web is new; it must be told that it is not worth much.
                frontier.budget.credit_per_page = [0, 0, 1][dice.below(3) as usize];
                frontier.budget.host_pages_max = [0, 0, 8][dice.below(3) as usize];
                frontier.budget.explore_ms = [60_000, 3_600_000][dice.below(2) as usize];
            }
            if dice.chance(0.3) {
                frontier.probe_ms.truncate(2);
            }
        }
        CrawlConfig {
            frontier,
            sieve,
            prioritizer: Prioritizer::default(),
            seen_bytes_max,
            redirects_max: 10,
            seed: self.seed,
        }
    }

    /// How often the state is written down.
    fn checkpoint_ms(&self) -> u64 {
        if self.is_small() { 300_000 } else { 12 * 3_600_000 }
    }
}
