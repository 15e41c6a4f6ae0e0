//! Settings of the text index: what it is made with, and how results are ranked.

use anyhow::{Result, bail};
use rhumb_index::arrange::Arrangement;
use rhumb_index::page::Weights;
use rhumb_index::search::Ranking;
use serde::{Deserialize, Serialize};

/// What the text index is made with. Other weights make another index: the next crawl, search or rebuild makes it anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexSection {
    /// The share of the pages that is asked first, of those that are asked next, and so on; the rest is the second tier.
    pub tiers: Vec<f64>,
    /// With fewer pages there is one tier.
    pub tiers_pages_min: u64,
    /// How often a word counts, by where it stands.
    pub weights: Weights,
}

impl Default for IndexSection {
    fn default() -> Self {
        let Arrangement { shares, pages_min, .. } = Arrangement::default();
        IndexSection { tiers: shares, tiers_pages_min: pages_min, weights: Weights::default() }
    }
}

impl IndexSection {
    /// How pages are arranged, save for memory.
    pub fn arrangement(&self) -> Arrangement {
        Arrangement { shares: self.tiers.clone(), pages_min: self.tiers_pages_min, ..Arrangement::default() }
    }

    pub fn check(&self) -> Result<()> {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        if self.tiers.len() > 8 || !self.tiers.iter().all(is_share) || !self.tiers.is_sorted() {
            bail!("index.tiers: at most 8 shares between 0 and 1, ascending");
        }
        let w = self.weights;
        if [w.title, w.heading, w.emphasis, w.address, w.body].iter().any(|n| !(1..=15).contains(n))
            || w.description > 15
        {
            bail!("index.weights: between 1 and 15; description also 0");
        }
        Ok(())
    }
}

/// Whether a ranking makes sense.
pub fn check_ranking(r: &Ranking) -> Result<()> {
    let weights = [r.anchor, r.rank, r.proximity, r.coverage, r.freshness, r.feedback];
    if weights.iter().any(|w| !(0.0..=100.0).contains(w)) || !(0.0..=1e6).contains(&r.freshness_days) {
        bail!("ranking: weights are between 0 and 100");
    }
    if r.feedback_pages > 100 || r.feedback_words > 200 {
        bail!("ranking: at most 100 feedback_pages and 200 feedback_words");
    }
    Ok(())
}
