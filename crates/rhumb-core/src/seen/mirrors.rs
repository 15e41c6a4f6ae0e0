//! Mirrors: hosts that have the same pages at the same paths.
//!
//! Two hosts are suspected when a page of the one is a duplicate of the page with the same path on the other. Whether the one is a mirror of the other is told by the
//! share of such pages among the paths that both have. Paths are not all kept: of each host those with the least hashes are, a sample that is the same for
//! all hosts, so that what two hosts share can be seen from their samples (Broder 1997). As long as a host has no more pages than its sample has
//! room for, all figures are exact.
//!
//! Memory is bounded: beyond it the host that came first is forgotten, one without a suspected mirror before others.

use std::collections::{BTreeMap, VecDeque};

use rhumb_store::codec::{Malformed, Put, Take};

use crate::url::{Fingerprint, Url};

/// Paths of a host that are remembered.
const SAMPLE_MAX: usize = 64;
/// What a host or a pair costs beside names and samples.
const ENTRY_BYTES: usize = 160;
/// Hosts with suspected mirrors that are passed over when one must be forgotten.
const SPARED_MAX: usize = 16;
/// Suspected mirrors of one host; more are not looked for.
const PARTNERS_MAX: usize = 256;
/// From this share on two hosts are mirrors.
const SHARE_MIN: f32 = 0.8;

/// A host that has the pages of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The mirror, as scheme, host and port.
    pub host: String,
    /// The host whose pages were met first, for the most part.
    pub of: String,
    /// Pages that are duplicates of each other at the same path.
    pub pages_same: u64,
    /// Paths that both have, as far as is known; an estimate if there are many.
    pub pages_compared: u64,
    /// Same pages among these.
    pub share: f32,
}

/// See the module's header.
#[derive(Debug, Default)]
pub struct Mirrors {
    hosts: BTreeMap<u64, Host>,
    pairs: BTreeMap<(u64, u64), Pair>,
    order: VecDeque<u64>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Host {
    name: Box<str>,
    paths: Sample,
    partners: Vec<u64>,
}

#[derive(Debug, Default)]
struct Pair {
    same: Sample,
    pages: u64,
    /// How often the page of the host with the lesser number was the duplicate.
    lesser_is_copy: u64,
}

/// The least hashes.
#[derive(Debug, Default)]
struct Sample(Vec<u32>);

impl Sample {
    /// Whether there is one more now.
    fn add(&mut self, hash: u32) -> bool {
        let Err(at) = self.0.binary_search(&hash) else { return false };
        if at == SAMPLE_MAX {
            return false;
        }
        let full = self.0.len() == SAMPLE_MAX;
        if full {
            self.0.pop();
        }
        self.0.insert(at, hash);
        !full
    }

    /// All hashes up to this one are in it.
    fn bound(&self) -> u32 {
        if self.0.len() < SAMPLE_MAX { u32::MAX } else { self.0.last().copied().unwrap_or(u32::MAX) }
    }

    fn below(&self, bound: u32) -> &[u32] {
        &self.0[..self.0.partition_point(|&h| h <= bound)]
    }
}

impl Mirrors {
    /// A memory of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Mirrors {
        Mirrors { bytes_max, ..Mirrors::default() }
    }

    /// A page was read.
    pub fn page(&mut self, url: &Url) {
        let key = Fingerprint::of(url.origin()).0;
        if !self.hosts.contains_key(&key) {
            self.bytes += ENTRY_BYTES + url.origin().len();
            self.hosts.insert(key, Host { name: url.origin().into(), ..Host::default() });
            self.order.push_back(key);
            self.forget(key);
        }
        if let Some(host) = self.hosts.get_mut(&key) {
            self.bytes += 4 * usize::from(host.paths.add(path_hash(url)));
        }
    }

    /// A page is a duplicate of another.
    pub fn duplicate(&mut self, page: &Url, of: &Url) {
        if page.path_and_query() != of.path_and_query() || page.origin() == of.origin() {
            return;
        }
        [page, of].into_iter().for_each(|url| self.page(url));
        let [copy, original] = [page, of].map(|url| Fingerprint::of(url.origin()).0);
        let key = (copy.min(original), copy.max(original));
        if !self.pairs.contains_key(&key) {
            let [Some(a), Some(b)] = [key.0, key.1].map(|k| self.hosts.get(&k).map(|h| h.partners.len())) else {
                return;
            };
            if a.max(b) >= PARTNERS_MAX {
                return;
            }
            for (host, partner) in [(key.0, key.1), (key.1, key.0)] {
                self.hosts.get_mut(&host).into_iter().for_each(|h| h.partners.push(partner));
            }
            self.bytes += ENTRY_BYTES;
        }
        let pair = self.pairs.entry(key).or_default();
        self.bytes += 4 * usize::from(pair.same.add(path_hash(page)));
        pair.pages = pair.pages.saturating_add(1);
        pair.lesser_is_copy = pair.lesser_is_copy.saturating_add(u64::from(copy == key.0));
    }

    /// Makes room, but not by forgetting the host that just came.
    fn forget(&mut self, newest: u64) {
        let mut spared = 0;
        while self.bytes > self.bytes_max && self.order.len() > 1 {
            let Some(key) = self.order.pop_front() else { return };
            let spare = self.hosts.get(&key).is_some_and(|h| !h.partners.is_empty()) && spared < SPARED_MAX;
            if spare || key == newest {
                self.order.push_back(key);
                spared += 1;
                continue;
            }
            let Some(host) = self.hosts.remove(&key) else { continue };
            self.bytes -= ENTRY_BYTES + host.name.len() + 4 * host.paths.0.len();
            for partner in host.partners {
                if let Some(pair) = self.pairs.remove(&(key.min(partner), key.max(partner))) {
                    self.bytes -= ENTRY_BYTES + 4 * pair.same.0.len();
                }
                self.hosts.get_mut(&partner).into_iter().for_each(|h| h.partners.retain(|p| *p != key));
            }
        }
    }

    /// Hosts with at least so many pages that another has at the same paths, and few others. The clearest come first.
    pub fn report(&self, pages_min: u64) -> Vec<Mirror> {
        let mut all: Vec<Mirror> = self.pairs.iter().filter_map(|(key, pair)| self.mirror(key, pair)).collect();
        all.retain(|m| m.pages_same >= pages_min && m.share >= SHARE_MIN);
        all.sort_by(|a, b| b.pages_same.cmp(&a.pages_same).then_with(|| (&a.host, &a.of).cmp(&(&b.host, &b.of))));
        all
    }

    fn mirror(&self, key: &(u64, u64), pair: &Pair) -> Option<Mirror> {
        let (a, b) = (self.hosts.get(&key.0)?, self.hosts.get(&key.1)?);
        let bound = a.paths.bound().min(b.paths.bound());
        let theirs = b.paths.below(bound);
        let both = a.paths.below(bound).iter().filter(|h| theirs.binary_search(h).is_ok()).count();
        let same = pair.same.below(bound).len().min(both);
        // Below the bound lies as large a part of all paths as of all numbers.
        let scale = (u64::from(u32::MAX) + 1) as f64 / (f64::from(bound) + 1.0);
        let pages_compared = ((both as f64 * scale).round() as u64).max(pair.pages);
        let share = if both == 0 { 0.0 } else { same as f32 / both as f32 };
        let (host, of) = if pair.lesser_is_copy >= pair.pages / 2 { (a, b) } else { (b, a) };
        Some(Mirror {
            host: host.name.to_string(),
            of: of.name.to_string(),
            pages_same: pair.pages,
            pages_compared,
            share,
        })
    }

    /// Writes the state into a checkpoint.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.order.len() as u64);
        for host in self.order.iter().filter_map(|key| self.hosts.get(key)) {
            into.put_str(&host.name);
            put_sample(&host.paths, into);
        }
        into.put_u64(self.pairs.len() as u64);
        for (key, pair) in &self.pairs {
            for n in [key.0, key.1, pair.pages, pair.lesser_is_copy] {
                into.put_u64(n);
            }
            put_sample(&pair.same, into);
        }
    }

    /// Reads what [`Mirrors::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        for _ in 0..from.u64()? {
            let (name, paths) = (from.str()?, take_sample(from)?);
            let key = Fingerprint::of(name).0;
            let bytes = ENTRY_BYTES + name.len() + 4 * paths.0.len();
            let host = Host { name: name.into(), paths, partners: Vec::new() };
            if self.hosts.insert(key, host).is_some() {
                return Err(Malformed("a host twice"));
            }
            self.bytes += bytes;
            self.order.push_back(key);
        }
        for _ in 0..from.u64()? {
            let key = (from.u64()?, from.u64()?);
            let (pages, lesser_is_copy) = (from.u64()?, from.u64()?);
            let pair = Pair { same: take_sample(from)?, pages, lesser_is_copy };
            let bytes = ENTRY_BYTES + 4 * pair.same.0.len();
            let known = key.0 < key.1 && [key.0, key.1].iter().all(|k| self.hosts.contains_key(k));
            if !known || self.pairs.insert(key, pair).is_some() {
                return Err(Malformed("a pair of hosts that cannot be"));
            }
            self.bytes += bytes;
            for (host, partner) in [(key.0, key.1), (key.1, key.0)] {
                self.hosts.get_mut(&host).into_iter().for_each(|h| h.partners.push(partner));
            }
        }
        Ok(())
    }
}

fn put_sample(sample: &Sample, into: &mut Vec<u8>) {
    into.put_u64(sample.0.len() as u64);
    sample.0.iter().for_each(|hash| into.extend_from_slice(&hash.to_le_bytes()));
}

fn take_sample(from: &mut Take<'_>) -> Result<Sample, Malformed> {
    let n = usize::try_from(from.u64()?).ok().filter(|n| *n <= SAMPLE_MAX).ok_or(Malformed("too many paths"))?;
    let hashes: Vec<u32> = from.raw(4 * n)?.as_chunks().0.iter().map(|c| u32::from_le_bytes(*c)).collect();
    if hashes.is_sorted_by(|a, b| a < b) { Ok(Sample(hashes)) } else { Err(Malformed("paths are not in their order")) }
}

fn path_hash(url: &Url) -> u32 {
    (Fingerprint::of(url.path_and_query()).0 >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: &str, n: u64) -> Url {
        Url::parse(&format!("http://{host}/page/{n}")).expect("a URL")
    }

    /// Two hosts with so many pages each, of which so many are the same; another with no page in common.
    fn mirrors(pages: u64, same: u64) -> Mirrors {
        let mut mirrors = Mirrors::new(1 << 20);
        for n in 0..pages {
            ["a.example", "b.example", "c.example"].into_iter().for_each(|host| mirrors.page(&url(host, n)));
            if n < same {
                mirrors.duplicate(&url("b.example", n), &url("a.example", n));
            }
            mirrors.duplicate(&url("c.example", n), &url("a.example", n + 1));
        }
        mirrors
    }

    #[test]
    fn mirrors_are_told_from_others() {
        let check = |pages: u64, same: u64, expected: Option<(u64, f32)>| {
            let mirrors = mirrors(pages, same);
            let report = mirrors.report(10);
            let mut bytes = Vec::new();
            mirrors.save(&mut bytes);
            let mut again = Mirrors::new(1 << 20);
            again.load(&mut Take::new(&bytes)).expect("load");
            assert_eq!((again.report(10), again.bytes), (report.clone(), mirrors.bytes));
            let Some((compared, share)) = expected else {
                assert_eq!(report, []);
                return;
            };
            assert_eq!(report.len(), 1);
            let m = &report[0];
            assert_eq!((&*m.host, &*m.of, m.pages_same), ("http://b.example", "http://a.example", same));
            assert!(m.pages_compared.abs_diff(compared) * 3 <= compared, "{m:?}");
            assert!((m.share - share).abs() < 0.12, "{m:?}");
        };
        check(5, 5, None);
        check(30, 30, Some((30, 1.0)));
        check(50, 45, Some((50, 0.9)));
        check(50, 12, None);
        check(3_000, 3_000, Some((3_000, 1.0)));
        check(3_000, 2_700, Some((3_000, 0.9)));
        check(3_000, 600, None);
    }

    #[test]
    fn memory_is_bounded_and_suspects_are_kept() {
        let mut mirrors = mirrors(30, 30);
        mirrors.bytes_max = 40_000;
        for n in 0..5_000 {
            mirrors.page(&url(&format!("h{n}.example"), 1));
            assert!(mirrors.bytes <= 40_000 + 200);
        }
        assert!(mirrors.hosts.len() < 250);
        assert_eq!(mirrors.report(10).len(), 1);
        let counted: usize = mirrors.hosts.values().map(|h| ENTRY_BYTES + h.name.len() + 4 * h.paths.0.len()).sum();
        let pairs: usize = mirrors.pairs.values().map(|p| ENTRY_BYTES + 4 * p.same.0.len()).sum();
        assert_eq!(counted + pairs, mirrors.bytes);
    }
}
