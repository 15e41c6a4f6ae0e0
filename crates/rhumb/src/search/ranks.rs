//! How good pages are, by the PageRank of the link graph.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rhumb_graph::algo::outdegrees;
use rhumb_graph::algo::pagerank::PageRank;
use rhumb_graph::level::Level;

use crate::links::whole::Whole;

/// Fewer pages than these have no rank worth the name; their links are counted.
const PAGES_MIN: u32 = 1_000;

/// The quality of pages, from 0 to 1: on a logarithmic scale from the page with the lowest rank to the one with the highest.
pub struct Qualities {
    level: Arc<Level>,
    ranks: Vec<f64>,
    lowest: f64,
    scale: f64,
}

impl Qualities {
    /// Computes the ranks of the graph in `dir`, as new as its log; nothing if it is too small.
    pub fn of_graph(dir: &Path) -> Result<Option<Qualities>> {
        let whole = Whole::open(dir)?;
        if whole.nodes() < PAGES_MIN {
            return Ok(None);
        }
        let level = whole.level.clone();
        let ranks = PageRank::default().compute(&level.into, &outdegrees(&level.out))?.ranks;
        let lowest = ranks.iter().copied().fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE);
        let highest = ranks.iter().copied().fold(0.0, f64::max).max(lowest);
        let range = (highest / lowest).ln();
        let scale = if range > 0.0 { 1.0 / range } else { 0.0 };
        Ok(Some(Qualities { level, ranks, lowest, scale }))
    }

    /// The quality of a page; nothing if the graph does not have it.
    pub fn of(&self, url: &str) -> Option<f32> {
        let node = self.level.find(&rhumb_graph::key::key_of(url)?)?;
        let rank = self.ranks.get(node as usize)?;
        Some(((rank / self.lowest).ln() * self.scale) as f32)
    }
}
