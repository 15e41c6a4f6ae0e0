//! How many links nodes have: distributions, and how steeply they fall.
//!
//! A distribution is kept exactly, as the number of nodes of each degree that occurs: the degrees of a graph with m arcs take at
//! most √(2m) different values, so that is small for any graph. What is shown is made from it: single degrees up to
//! [`SINGLE_MAX`], then bins that double.
//!
//! **Cost.** One pass over the forward graph for each direction; 4 bytes a node for in-degrees ([`super::indegrees`]).

use std::collections::BTreeMap;

use crate::Node;

/// The highest degree with a bin of its own.
pub const SINGLE_MAX: u32 = 16;
/// An exponent is not estimated from fewer nodes in the tail: its standard error would be above 15 % of (α−1).
const TAIL_MIN: u64 = 50;
/// Where the tail might begin: so many of the lowest degrees are tried.
const STARTS_MAX: usize = 300;

/// How many nodes there are of each degree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Degrees {
    counts: BTreeMap<u32, u64>,
}

/// Some degrees and how many nodes have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The lowest degree.
    pub from: u32,
    /// The highest degree, included.
    pub to: u32,
    /// The nodes.
    pub nodes: u64,
}

/// Degrees of `from` and above fall as degree^−exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// The exponent α.
    pub exponent: f64,
    /// The standard error of it.
    pub error: f64,
    /// Where the tail begins.
    pub from: u32,
    /// Nodes in the tail.
    pub nodes: u64,
    /// The largest difference between the distribution of the tail and the law (Kolmogorov–Smirnov); below 0.05 is a good fit.
    pub distance: f64,
}

impl Degrees {
    /// The distribution of these degrees.
    pub fn of(degrees: &[u32]) -> Degrees {
        let mut distribution = Degrees::default();
        // Neighbours often have the same degree; that saves most look-ups.
        for run in degrees.chunk_by(|a, b| a == b) {
            *distribution.counts.entry(run[0]).or_default() += run.len() as u64;
        }
        distribution
    }

    /// Each degree that occurs, ascending, and how many nodes have it.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.counts.iter().map(|(&degree, &nodes)| (degree, nodes))
    }

    /// All nodes.
    pub fn nodes(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The highest degree.
    pub fn max(&self) -> u32 {
        self.counts.last_key_value().map_or(0, |(&degree, _)| degree)
    }

    /// The average degree; 0 without nodes.
    pub fn mean(&self) -> f64 {
        let arcs: u64 = self.counts().map(|(degree, nodes)| u64::from(degree) * nodes).sum();
        arcs as f64 / self.nodes().max(1) as f64
    }

    /// The lowest degree that at least this part of the nodes do not exceed; `part` is from 0 to 1.
    pub fn quantile(&self, part: f64) -> u32 {
        let wanted = (part * self.nodes() as f64).ceil();
        let mut so_far = 0;
        self.counts()
            .find(|&(_, nodes)| {
                so_far += nodes;
                so_far as f64 >= wanted
            })
            .map_or(self.max(), |(degree, _)| degree)
    }

    /// The distribution to be shown: single degrees, then bins from a power of two to the next. Empty bins are left out.
    pub fn bins(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for (degree, nodes) in self.counts() {
            let (from, to) = match degree {
                0..=SINGLE_MAX => (degree, degree),
                _ => {
                    let below = 1 << degree.ilog2();
                    (below.max(SINGLE_MAX + 1), below - 1 + below)
                }
            };
            match bins.last_mut() {
                Some(bin) if bin.to == to => bin.nodes += nodes,
                _ => bins.push(Bin { from, to, nodes }),
            }
        }
        bins
    }

    /// The exponent of the tail by maximum likelihood, as Clauset, Shalizi and Newman estimate it (2009): for a tail from
    /// xmin, α = 1 + n / Σ ln(x / (xmin − ½)); xmin is where the distribution is nearest to the law so found. Nothing if
    /// there are too few nodes with links. The formula is good from xmin = 6 on; below, α is a little low.
    pub fn power_law(&self) -> Option<PowerLaw> {
        let tail: Vec<(u32, u64)> = self.counts().filter(|&(degree, _)| degree > 0).collect();
        let starts = tail.len().saturating_sub(1).min(STARTS_MAX);
        (0..starts)
            .filter_map(|start| fit(&tail[start..]))
            .min_by(|a, b| a.distance.total_cmp(&b.distance).then(a.from.cmp(&b.from)))
    }
}

fn fit(tail: &[(u32, u64)]) -> Option<PowerLaw> {
    let from = tail.first()?.0;
    let nodes: u64 = tail.iter().map(|&(_, nodes)| nodes).sum();
    let least = f64::from(from) - 0.5;
    let logs: f64 = tail.iter().map(|&(degree, nodes)| nodes as f64 * (f64::from(degree) / least).ln()).sum();
    if nodes < TAIL_MIN || logs <= 0.0 {
        return None;
    }
    let slope = nodes as f64 / logs;
    let mut below = 0;
    let mut distance = 0f64;
    for &(degree, count) in tail {
        below += count;
        let law = 1.0 - ((f64::from(degree) + 0.5) / least).powf(-slope);
        distance = distance.max((below as f64 / nodes as f64 - law).abs());
    }
    Some(PowerLaw { exponent: 1.0 + slope, error: slope / (nodes as f64).sqrt(), from, nodes, distance })
}

/// The `k` nodes of the highest degree, highest first, ties by node.
pub fn top(degrees: &[u32], k: usize) -> Vec<(Node, u32)> {
    let values = degrees.iter().enumerate().map(|(node, &degree)| (node as Node, f64::from(degree)));
    super::top(values, k).into_iter().map(|(node, degree)| (node, degree as u32)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::algo::Chance;

    #[test]
    fn distributions() {
        let check = |degrees: &[u32], max: u32, mean: f64, median: u32, bins: &[(u32, u32, u64)]| {
            let found = Degrees::of(degrees);
            let shown: Vec<(u32, u32, u64)> = found.bins().iter().map(|b| (b.from, b.to, b.nodes)).collect();
            assert_eq!((found.max(), found.mean(), found.quantile(0.5)), (max, mean, median), "{degrees:?}");
            assert_eq!(shown, bins, "{degrees:?}");
        };
        check(&[], 0, 0.0, 0, &[]);
        check(&[0, 0, 3], 3, 1.0, 0, &[(0, 0, 2), (3, 3, 1)]);
        check(&[16, 17, 31, 32, 63], 63, 31.8, 31, &[(16, 16, 1), (17, 31, 2), (32, 63, 2)]);
        check(&[u32::MAX], u32::MAX, f64::from(u32::MAX), u32::MAX, &[(1 << 31, u32::MAX, 1)]);
        assert_eq!(top(&[1, 5, 5, 2], 3), [(1, 5), (2, 5), (3, 2)]);
    }

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        for exponent in [2.1, 2.5, 3.0] {
            let mut chance = Chance(5);
            let degrees: Vec<u32> = (0..200_000)
                .map(|_| {
                    let part = (chance.next() >> 11) as f64 / (1u64 << 53) as f64;
                    (0.5 + 0.5 * (1.0 - part).powf(-1.0 / (exponent - 1.0))).min(1e9) as u32
                })
                .collect();
            let law = Degrees::of(&degrees).power_law().expect("a law");
            assert!((law.exponent - exponent).abs() < 4.0 * law.error + 0.05, "{exponent}: {law:?}");
            assert!(law.distance < 0.05, "{law:?}");
        }
        // 1 + 150 / (100 ln 2 + 50 ln 4).
        let law = fit(&[(1, 100), (2, 50)]).expect("a law");
        assert!((law.exponent - 2.082).abs() < 0.001 && law.nodes == 150, "{law:?}");
        assert_eq!(Degrees::of(&[1, 2, 3]).power_law(), None);
        assert_eq!(Degrees::of(&[7; 1000]).power_law(), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_in_bins_and_quantiles_are_exact(
            degrees in proptest::collection::vec(0..100u32, 1..60), part in 0.0..=1.0f64
        ) {
            let found = Degrees::of(&degrees);
            prop_assert_eq!(found.bins().iter().map(|b| b.nodes).sum::<u64>(), degrees.len() as u64);
            for bin in found.bins() {
                let exact = degrees.iter().filter(|&&d| d >= bin.from && d <= bin.to).count() as u64;
                prop_assert_eq!(bin.nodes, exact);
            }
            let mut sorted = degrees.clone();
            sorted.sort_unstable();
            let at = ((part * degrees.len() as f64).ceil() as usize).max(1) - 1;
            prop_assert_eq!(found.quantile(part), sorted[at]);
        }
    }
}
