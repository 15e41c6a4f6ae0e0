//! Keeps the best pages: so many, and so many of one host.

use super::Hit;

/// The best pages so far.
pub struct Best {
    max: usize,
    of_host_max: usize,
    /// Best first.
    hits: Vec<Hit>,
}

impl Best {
    /// Keeps `max` pages, `of_host_max` of a host.
    pub fn new(max: usize, of_host_max: usize) -> Best {
        Best { max, of_host_max: of_host_max.max(1), hits: Vec::with_capacity(max + 1) }
    }

    /// What a page must exceed to be kept; nothing as long as there is room. A page that only equals it may come before by its fingerprint.
    pub fn threshold(&self) -> Option<f64> {
        if self.hits.len() < self.max { None } else { self.hits.last().map(|hit| hit.score) }
    }

    /// Whether no page that scores so much at most can be kept.
    pub fn is_beyond(&self, ceiling: f64) -> bool {
        self.threshold().is_some_and(|threshold| ceiling < threshold)
    }

    /// Offers a page.
    pub fn offer(&mut self, mut hit: Hit) {
        if self.hits.len() == self.max && self.hits.last().is_none_or(|last| !is_before(&hit, last)) {
            // There is more of its host, whether it is good enough or not.
            if let Some(kept) = self.hits.iter_mut().find(|kept| kept.host == hit.host) {
                kept.more_from_host = kept.more_from_host || self.of_host_max < usize::MAX;
            }
            return;
        }
        if self.of_host_max < usize::MAX {
            let of_host = self.hits.iter().filter(|kept| kept.host == hit.host).count();
            if of_host >= self.of_host_max {
                // The host's last one goes, or this one does.
                let last = self.hits.iter().rposition(|kept| kept.host == hit.host).expect("just counted");
                let stays = !is_before(&hit, &self.hits[last]);
                if !stays {
                    self.hits.remove(last);
                }
                for kept in self.hits.iter_mut().filter(|kept| kept.host == hit.host) {
                    kept.more_from_host = true;
                }
                hit.more_from_host = true;
                if stays {
                    return;
                }
            }
        }
        let at = self.hits.partition_point(|kept| is_before(kept, &hit));
        self.hits.insert(at, hit);
        self.hits.truncate(self.max);
    }

    /// All of them, best first. Only the last of a host says that there is more.
    pub fn into_sorted(mut self) -> Vec<Hit> {
        for i in 0..self.hits.len() {
            let host = self.hits[i].host;
            let is_last = !self.hits[i + 1..].iter().any(|later| later.host == host);
            let more = self.hits.iter().any(|hit| hit.host == host && hit.more_from_host);
            self.hits[i].more_from_host = is_last && more;
        }
        self.hits
    }
}

/// Whether a page comes before another.
fn is_before(a: &Hit, b: &Hit) -> bool {
    a.score.total_cmp(&b.score).reverse().then(a.id.cmp(&b.id)).is_lt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hit(id: u64, host: u64, score: f64) -> Hit {
        Hit { shelf: 0, doc: id as u32, id, host, score, more_from_host: false }
    }

    /// What is kept, found by looking at all at once.
    fn naive(mut all: Vec<Hit>, max: usize, of_host_max: usize) -> Vec<u64> {
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        let mut kept: Vec<Hit> = Vec::new();
        for hit in all {
            if kept.iter().filter(|k| k.host == hit.host).count() < of_host_max {
                kept.push(hit);
            }
        }
        kept.truncate(max);
        kept.into_iter().map(|hit| hit.id).collect()
    }

    proptest! {
        #[test]
        fn the_best_are_kept_in_whatever_order_they_come(
            all in proptest::collection::vec((0u64..8, 0u32..20), 0..60), max in 1usize..12, of_host_max in 1usize..4,
        ) {
            let hits: Vec<Hit> = all.iter().zip(0..).map(|((host, score), id)| hit(id, *host, f64::from(*score))).collect();
            let mut best = Best::new(max, of_host_max);
            let mut last = f64::NEG_INFINITY;
            for hit in &hits {
                best.offer(*hit);
                let threshold = best.threshold().unwrap_or(f64::NEG_INFINITY);
                prop_assert!(threshold >= last, "what was refused would be kept now");
                last = threshold;
            }
            let kept: Vec<u64> = best.into_sorted().into_iter().map(|hit| hit.id).collect();
            prop_assert_eq!(kept, naive(hits, max, of_host_max));
        }
    }

    #[test]
    fn a_host_with_more_says_so_once() {
        let mut best = Best::new(5, 2);
        for (id, host, score) in [(1, 1, 9.0), (2, 1, 8.0), (3, 1, 7.0), (4, 2, 1.0)] {
            best.offer(hit(id, host, score));
        }
        let told: Vec<(u64, bool)> = best.into_sorted().into_iter().map(|hit| (hit.id, hit.more_from_host)).collect();
        assert_eq!(told, [(1, false), (2, true), (4, false)]);
    }
}
