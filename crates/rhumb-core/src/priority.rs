//! The prioritizer: which front queue a URL waits in (SPEC C10, C11).
//!
//! For now worth is depth: a page few links away from a seed is fetched before one far away. What a site's sitemap says of a page
//! moves it by a step or two among the site's own: its priority, and whether it changed lately if the site's dates are to be believed.
//! Where ranks of pages are known from an earlier look at the link graph, the best of them come sooner.
//! Explicit rules come first: "news hosts always first".

use std::sync::Arc;

use regex::Regex;
use rhumb_store::Timestamp;

use crate::sitemap::Trust;
use crate::visit::Entry;

/// Front queues, level 0 being the most urgent.
pub const LEVELS: usize = 8;

/// Assigns levels.
#[derive(Clone, Debug, Default)]
pub struct Prioritizer {
    rules: Vec<(Regex, usize)>,
    ranks: Option<PageRanks>,
}

/// The share of pages that rank lower than one, from 0 to 1, if its rank is known.
pub type PercentileOf = dyn Fn(&str) -> Option<f64> + Send + Sync;

/// Ranks of pages, from whoever has them.
#[derive(Clone)]
pub struct PageRanks(pub Arc<PercentileOf>);

impl std::fmt::Debug for PageRanks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageRanks")
    }
}

impl Prioritizer {
    /// A prioritizer whose `rules` (expression over the whole URL, level from 1) are asked in order; the first that matches decides.
    pub fn new(rules: Vec<(Regex, usize)>) -> Prioritizer {
        Prioritizer { rules, ranks: None }
    }

    /// The same, by ranks too.
    pub fn with_ranks(self, ranks: Option<PageRanks>) -> Prioritizer {
        Prioritizer { ranks, ..self }
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        LEVELS
    }

    /// The level of a waiting URL. `trust`: how far its site's dates are believed; `then`: when the site was last heard of.
    pub fn level(&self, entry: &Entry, trust: Trust, then: Timestamp) -> usize {
        let explicit = self.rules.iter().find(|(rule, _)| rule.is_match(entry.url.as_str())).map(|(_, level)| *level);
        // Level 0 is left to rules, so that they can be ahead even of seeds.
        explicit
            .unwrap_or_else(|| {
                let step = step(entry, trust, then) - self.promotion(entry);
                (1 + entry.depth as usize).saturating_add_signed(step).max(1)
            })
            .min(LEVELS - 1)
    }
}

impl Prioritizer {
    /// How many levels sooner a page comes for its rank. Two thirds of all rank are on a few pages of a hundred.
    fn promotion(&self, entry: &Entry) -> isize {
        let percentile = self.ranks.as_ref().and_then(|ranks| (ranks.0)(entry.url.as_str()));
        match percentile {
            Some(p) if p >= 0.99 => 2,
            Some(p) if p >= 0.9 => 1,
            _ => 0,
        }
    }
}

/// How much sooner (negative) or later a page comes for what its sitemap says.
fn step(entry: &Entry, trust: Trust, then: Timestamp) -> isize {
    const LATELY_MS: u64 = 7 * 86_400_000;
    let priority = match entry.hint.priority() {
        Some(p) if p >= 0.8 => -1,
        Some(p) if p <= 0.2 => 1,
        _ => 0,
    };
    let lately =
        entry.hint.lastmod().is_some_and(|at| trust.is_earned() && then.ms_since(at) < LATELY_MS && at <= then);
    priority - isize::from(lately)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sitemap::{Hint, SitemapUrl};
    use crate::url::Url;

    #[test]
    fn a_sitemap_moves_pages_by_a_step_or_two() {
        let now = Timestamp(1_763_000_000_000);
        let believed = Trust { right: 9, wrong: 0 };
        let check = |depth: u32, lastmod: Option<&str>, priority: Option<f32>, trust: Trust, expected: usize| {
            let said =
                SitemapUrl { loc: String::new(), lastmod: lastmod.map(String::from), changefreq: None, priority };
            let mut entry = Entry::new(Url::parse("http://a.example/x").expect("a URL"), depth);
            entry.hint = Hint::of(&said);
            assert_eq!(Prioritizer::default().level(&entry, trust, now), expected, "{depth} {lastmod:?} {priority:?}");
        };
        check(2, None, None, believed, 3);
        check(2, None, Some(0.9), believed, 2);
        check(2, None, Some(0.5), believed, 3);
        check(2, None, Some(0.1), believed, 4);
        check(2, Some("2025-11-12"), None, believed, 2);
        check(2, Some("2025-11-12"), None, Trust::default(), 3);
        check(2, Some("2025-11-12"), None, Trust { right: 0, wrong: 5 }, 3);
        check(2, Some("2024-11-12"), None, believed, 3);
        check(2, Some("2027-11-12"), None, believed, 3);
        check(2, Some("2025-11-12"), Some(1.0), believed, 1);
        check(0, Some("2025-11-12"), Some(1.0), believed, 1);
        check(99, None, Some(0.0), believed, LEVELS - 1);
    }

    #[test]
    fn pages_of_high_rank_come_sooner() {
        let ranks = |url: &str| url.rsplit_once('/').and_then(|(_, p)| p.parse().ok());
        let by_rank = Prioritizer::new(vec![(Regex::new("/0.95$").expect("a rule"), 5)]);
        let by_rank = by_rank.with_ranks(Some(PageRanks(Arc::new(ranks))));
        for (page, expected) in [("0.2", 5), ("0.91", 4), ("0.995", 3), ("0.95", 5), ("unknown", 5)] {
            let entry = Entry::new(Url::parse(&format!("http://a.example/{page}")).expect("a URL"), 4);
            assert_eq!(by_rank.level(&entry, Trust::default(), Timestamp(0)), expected, "{page}");
        }
    }
}
