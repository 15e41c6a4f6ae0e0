//! The spectral Bloom filter (Cohen and Matias, "Spectral Bloom Filters", SIGMOD 2003; SPEC S2): a Bloom filter of counters.
//!
//! Each key has k counters. [`Estimate::Minimum`] answers with the least of them: never too little, and too much only when
//! every one of the k is shared, which is as rare as the error of a Bloom filter. [`Estimate::RecurringMinimum`] goes by an
//! observation: a key that is overestimated mostly has one least counter alone, while a key whose least value recurs among its
//! counters is mostly right. Keys with a lonely minimum are therefore counted in a second, smaller filter too, where they have
//! little company, and read from there; a plain Bloom filter remembers which they are.
//!
//! The second filter takes away more than a third of the errors, for five eighths more memory. Where memory is given, all of it in one filter
//! errs less still (the test below measures both), so [`Estimate::Minimum`] is what the crawler counts with.
//!
//! Both take deletions: what was inserted and is deleted again leaves the counters as they were.

use super::Bloom;
use super::bloom::{reduce, step};

/// How counts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// The least counter.
    Minimum,
    /// The least counter where it recurs, the second filter's where it does not.
    RecurringMinimum,
}

/// See the module's header.
#[derive(Clone, Debug)]
pub struct Spectral {
    first: Counters,
    /// Half the size of the first, for keys whose minimum is a lonely one, and which keys these are.
    second: Option<(Counters, Bloom)>,
}

#[derive(Clone, Debug)]
struct Counters {
    counts: Vec<u32>,
    probes: u32,
}

impl Spectral {
    /// Counters in `bytes` bytes, with the number of probes that is best for `keys` different keys. The second filter and its
    /// marks take five eighths more.
    pub fn new(bytes: usize, keys: u64, estimate: Estimate) -> Spectral {
        let first = (bytes / size_of::<u32>()).max(8);
        let second = if estimate == Estimate::Minimum { 0 } else { first / 2 };
        let probes = (std::f64::consts::LN_2 * first as f64 / keys.max(1) as f64).round().clamp(2.0, 8.0) as u32;
        let filter = |counters: usize| Counters { counts: vec![0; counters], probes };
        let marks = Bloom::new(second, keys / 2);
        Spectral { first: filter(first), second: (second > 0).then(|| (filter(second), marks)) }
    }

    /// Counts a key once more, and tells how often it was counted by now.
    pub fn insert(&mut self, key: u64) -> u32 {
        self.first.add(key, 1);
        let (least, recurs) = self.first.minimum(key);
        let Some((second, marked)) = &mut self.second else { return least };
        if marked.may_contain(key) {
            second.add(key, 1);
        } else if !recurs {
            // It comes here for the first time and brings its count along.
            marked.insert(key);
            second.add(key, least);
        } else {
            return least;
        }
        second.minimum(key).0.min(least)
    }

    /// Takes back one count of a key that was inserted.
    pub fn delete(&mut self, key: u64) {
        self.take(key, 1);
    }

    /// Takes back `count` of them.
    pub fn take(&mut self, key: u64, count: u32) {
        self.first.subtract(key, count);
        if let Some((second, marked)) = &mut self.second
            && marked.may_contain(key)
        {
            second.subtract(key, count);
        }
    }

    /// How often a key was counted.
    pub fn estimate(&self, key: u64) -> u32 {
        let (least, _) = self.first.minimum(key);
        match &self.second {
            Some((second, marked)) if marked.may_contain(key) => second.minimum(key).0.min(least),
            _ => least,
        }
    }

    /// Halves every count, so that old events weigh less.
    pub fn fade(&mut self) {
        let filters = std::iter::once(&mut self.first).chain(self.second.as_mut().map(|(counters, _)| counters));
        filters.for_each(|f| f.counts.iter_mut().for_each(|c| *c /= 2));
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let second = self.second.as_ref().map_or(0, |(second, marks)| 4 * second.counts.len() + marks.bytes());
        4 * self.first.counts.len() + second
    }
}

impl Counters {
    /// The places of a key, each once: a place met twice would be counted twice.
    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let (n, d) = (self.counts.len() as u64, step(key));
        let mut h = key;
        let mut met = [usize::MAX; 8];
        (0..self.probes as usize).filter_map(move |i| {
            let place = reduce(h, n) as usize;
            h = h.wrapping_add(d);
            let again = met[..i].contains(&place);
            met[i] = place;
            (!again).then_some(place)
        })
    }

    fn add(&mut self, key: u64, count: u32) {
        for place in self.places(key) {
            self.counts[place] = self.counts[place].saturating_add(count);
        }
    }

    fn subtract(&mut self, key: u64, count: u32) {
        for place in self.places(key) {
            self.counts[place] = self.counts[place].saturating_sub(count);
        }
    }

    /// The least counter of a key, and whether more than one has that value.
    fn minimum(&self, key: u64) -> (u32, bool) {
        let (mut least, mut times) = (u32::MAX, 0);
        for place in self.places(key) {
            let count = self.counts[place];
            if count < least {
                (least, times) = (count, 1);
            } else if count == least {
                times += 1;
            }
        }
        (least, times > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes())
    }

    /// Counts as the web has them: few keys often, most of them once or twice.
    fn times(i: u64) -> u32 {
        (20_000 / (i + 1)).clamp(1, 2_000) as u32
    }

    fn filled(estimate: Estimate, keys: u64, bytes: usize) -> Spectral {
        let mut filter = Spectral::new(bytes, keys, estimate);
        for round in 0..2_000 {
            (0..keys).take_while(|&i| times(i) > round).for_each(|i| {
                filter.insert(key(i));
            });
        }
        filter
    }

    fn wrong(filter: &Spectral, keys: u64) -> f64 {
        (0..keys).filter(|&i| filter.estimate(key(i)) != times(i)).count() as f64 / keys as f64
    }

    /// The least counter is wrong as often as a Bloom filter of as many bits and probes, and never too small.
    #[test]
    fn minimum_errs_as_a_bloom_filter_does() {
        let keys = 20_000;
        let filter = filled(Estimate::Minimum, keys, 4 * 7 * keys as usize);
        assert!((0..keys).all(|i| filter.estimate(key(i)) >= times(i)), "an estimate is never too small");
        let k = f64::from(filter.first.probes);
        let expected = (1.0 - (-k * keys as f64 / filter.first.counts.len() as f64).exp()).powf(k);
        let measured = wrong(&filter, keys);
        assert!((measured / expected - 1.0).abs() < 0.2, "measured {measured}, formula {expected}");
    }

    /// Counts like those of the paper's experiment: Zipf, a hundred on average, in random order.
    #[test]
    fn a_recurring_minimum_errs_less_than_its_first_filter_alone() {
        let keys = 4_000;
        let weight = |i: u64| 1.0 / ((i + 1) as f64).sqrt();
        let all: f64 = (0..keys).map(weight).sum();
        let times = |i: u64| (weight(i) / all * 100.0 * keys as f64).ceil() as u32;
        let events: Vec<u64> = (0..keys).flat_map(|i| std::iter::repeat_n(i, times(i) as usize)).collect();
        let mut order: Vec<(u64, u64)> =
            events.iter().enumerate().map(|(n, &i)| (key(n as u64 | 1 << 40), i)).collect();
        order.sort_unstable();
        let wrong = |bytes_per_key: u64, estimate| {
            let mut filter = Spectral::new((bytes_per_key * keys) as usize, keys, estimate);
            order.iter().for_each(|&(_, i)| {
                filter.insert(key(i));
            });
            (0..keys).filter(|&i| filter.estimate(key(i)) != times(i)).count()
        };
        let (minimum, recurring) = (wrong(28, Estimate::Minimum), wrong(28, Estimate::RecurringMinimum));
        let larger = wrong(28 * 13 / 8, Estimate::Minimum);
        assert!(recurring * 3 < minimum * 2, "recurring {recurring}, minimum {minimum} of {keys}");
        assert!(larger < recurring, "recurring {recurring}, minimum in as much memory {larger} of {keys}");
    }

    #[test]
    fn what_is_deleted_leaves_nothing() {
        for estimate in [Estimate::Minimum, Estimate::RecurringMinimum] {
            let keys = 5_000;
            let mut filter = Spectral::new(4 * 10 * keys as usize, keys, estimate);
            let inserted = |filter: &mut Spectral, range: std::ops::Range<u64>| {
                range.for_each(|i| {
                    (0..1 + i % 3).for_each(|_| {
                        filter.insert(key(i));
                    });
                });
            };
            inserted(&mut filter, 0..keys);
            inserted(&mut filter, keys..2 * keys);
            for i in keys..2 * keys {
                (0..1 + i % 3).for_each(|_| filter.delete(key(i)));
            }
            let off = (0..keys).filter(|&i| u64::from(filter.estimate(key(i))) != 1 + i % 3).count();
            assert!((off as f64) < 0.03 * keys as f64, "{estimate:?}: {off} of {keys}");
            let left = (keys..2 * keys).filter(|&i| filter.estimate(key(i)) > 0).count();
            assert!((left as f64) < 0.03 * keys as f64, "{estimate:?}: {left} of {keys} are still there");
        }
    }

    #[test]
    fn heavy_hitters_stand_out_in_little_memory() {
        let mut filter = Spectral::new(64 << 10, 4_000, Estimate::RecurringMinimum);
        for i in 0..100_000u64 {
            filter.insert(key(1_000 + i % 20_000));
            if i % 100 == 0 {
                filter.insert(key(i / 100 % 4));
            }
        }
        let light = (1_000..21_000).filter(|&i| filter.estimate(key(i)) >= 200).count();
        assert!((0..4).all(|i| filter.estimate(key(i)) >= 250));
        assert!(light < 20, "{light} of 20,000 light keys seem heavy");
        filter.fade();
        assert!((125..300).contains(&filter.estimate(key(0))));
    }
}
