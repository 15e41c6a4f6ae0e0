//! How far sitemaps may lead: a bound on their number that needs no counting.
//!
//! A robots.txt has an allowance of [`SITEMAPS_MAX`], which is divided among the sitemaps it names; an index divides its own share
//! among those that it names, and so on for [`LEVELS`] levels. So the sitemaps of a level are never more than the allowance, however
//! they name each other, and a chain of indexes ends. Both numbers travel with the URL in the free bits of its entry.

/// Sitemaps that one robots.txt leads to, on each level.
pub const SITEMAPS_MAX: usize = 1 << SITEMAPS_LOG2;
const SITEMAPS_LOG2: u8 = 10;
/// Named by robots.txt, named by an index, named by an index that an index names.
const LEVELS: u8 = 3;

/// Where a sitemap stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLevel {
    /// From 1.
    level: u8,
    allowance_log2: u8,
}

impl SitemapLevel {
    /// One of `count` sitemaps that a robots.txt names.
    pub fn first(count: usize) -> SitemapLevel {
        SitemapLevel { level: 1, allowance_log2: share_log2(SITEMAPS_LOG2, count) }
    }

    /// One of `count` sitemaps that this one, an index, names. `None` if it may name none.
    pub fn next(self, count: usize) -> Option<SitemapLevel> {
        let allowance_log2 = share_log2(self.allowance_log2, count);
        (self.level < LEVELS).then_some(SitemapLevel { level: self.level + 1, allowance_log2 })
    }

    /// How many sitemaps it may name.
    pub fn may_name(self) -> usize {
        if self.level < LEVELS { 1 << self.allowance_log2 } else { 0 }
    }

    /// The upper six bits of a byte; zero where there is no sitemap.
    pub(crate) fn to_bits(level: Option<SitemapLevel>) -> u8 {
        level.map_or(0, |l| (l.level << 2) | (l.allowance_log2 << 4))
    }

    /// Reads what [`SitemapLevel::to_bits`] wrote; the lower two bits are somebody else's.
    pub(crate) fn from_bits(bits: u8) -> Option<SitemapLevel> {
        Some(SitemapLevel { level: (bits >> 2) & 3, allowance_log2: bits >> 4 }).filter(|l| l.level > 0)
    }
}

/// The share of each of `count`, rounded down to a power of two. Whoever is beyond the allowance must be left out.
fn share_log2(allowance_log2: u8, count: usize) -> u8 {
    let share = (1usize << allowance_log2) / count.max(1);
    share.max(1).ilog2() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sitemaps on each level if every one is an index that names as many as it may, but at most `each`.
    fn tree(level: SitemapLevel, each: usize, counts: &mut [usize]) {
        counts[0] += 1;
        let count = level.may_name().min(each);
        for _ in 0..count {
            tree(level.next(count).expect("it may name some"), each, &mut counts[1..]);
        }
    }

    #[test]
    fn no_tree_outgrows_the_allowance() {
        for named in [1, 2, 3, 7, 100, SITEMAPS_MAX] {
            for each in [1, 2, 3, 10, 31, 1000] {
                let mut counts = [0; 4];
                (0..named).for_each(|_| tree(SitemapLevel::first(named), each, &mut counts));
                assert!(counts[3] == 0 && counts.iter().all(|&n| n <= SITEMAPS_MAX), "{named}, {each}: {counts:?}");
            }
        }
        assert_eq!(SitemapLevel::first(1).may_name(), SITEMAPS_MAX);
    }

    #[test]
    fn bits_are_read_back() {
        let mut level = Some(SitemapLevel::first(3));
        while let Some(l) = level {
            assert_eq!(SitemapLevel::from_bits(SitemapLevel::to_bits(level) | 3), level);
            level = l.next(2);
        }
        assert_eq!(SitemapLevel::from_bits(3), None);
    }
}
