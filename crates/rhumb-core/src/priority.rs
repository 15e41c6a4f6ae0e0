//! The prioritizer: which front queue a URL waits in (SPEC C10, C11).
//!
//! For now worth is depth: a page few links away from a seed is fetched before one far away. Explicit
//! rules come first: "news hosts always first".

use regex::Regex;

use crate::visit::Entry;

/// Front queues, level 0 being the most urgent.
pub const LEVELS: usize = 8;

/// Assigns levels.
#[derive(Clone, Debug, Default)]
pub struct Prioritizer {
    rules: Vec<(Regex, usize)>,
}

impl Prioritizer {
    /// A prioritizer whose `rules` (expression over the whole URL, level from 1) are asked in order; the first that matches decides.
    pub fn new(rules: Vec<(Regex, usize)>) -> Prioritizer {
        Prioritizer { rules }
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        LEVELS
    }

    /// The level of a waiting URL.
    pub fn level(&self, entry: &Entry) -> usize {
        let explicit = self.rules.iter().find(|(rule, _)| rule.is_match(entry.url.as_str())).map(|(_, level)| *level);
        // Level 0 is left to rules, so that they can be ahead even of seeds.
        explicit.unwrap_or(1 + entry.depth as usize).min(LEVELS - 1)
    }
}

/// Pseudo-random numbers from a seed (splitmix64, Steele, Lea and Flood 2014): decisions must be repeatable.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// What a checkpoint keeps.
    pub fn state(&self) -> u64 {
        self.0
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
