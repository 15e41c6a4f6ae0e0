//! A number for every URL of the web, and sets of such numbers.
//!
//! A host's URLs lie side by side: its pages, their print versions, then a quarter as many of each kind of trouble.
//! So a set of the URLs of ten million pages is a bitmap of a few megabytes, and a number is read back into a URL by
//! finding its host.

use crate::{Target, Web};

/// Numbers of URLs. See the module's header.
pub(crate) struct Urls {
    /// Where each host's numbers begin; one more entry for the end.
    first: Vec<u32>,
    pages: Vec<u32>,
}

impl Urls {
    pub fn new(web: &Web) -> Urls {
        let hosts = web.hosts() as usize;
        let (mut first, mut pages) = (Vec::with_capacity(hosts + 1), Vec::with_capacity(hosts));
        let mut next = 0u64;
        for host in 0..web.hosts() {
            let count = web.pages_of(host);
            first.push(next as u32);
            pages.push(count as u32);
            next += 2 * count + 4 * quarter(count);
            assert!(next < u64::from(u32::MAX), "a simulated web has at most four thousand million URLs");
        }
        first.push(next as u32);
        Urls { first, pages }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.first.last().map_or(0, |&n| n as usize)
    }

    /// The number of pages of the whole web.
    pub fn pages(&self) -> u64 {
        self.pages.iter().map(|&n| u64::from(n)).sum()
    }

    /// The number of a target; `None` for those beyond the end, to which no link leads.
    pub fn id(&self, target: Target) -> Option<u32> {
        let host = target.host() as usize;
        let pages = u64::from(*self.pages.get(host)?);
        let quarter = quarter(pages);
        let (start, index, count) = match target {
            Target::Page { page, .. } => (0, page, pages),
            Target::Print { page, .. } => (pages, page, pages),
            Target::Missing { key, .. } => (2 * pages, key, quarter),
            Target::Error { key, .. } => (2 * pages + quarter, key, quarter),
            Target::Redirect { key, .. } => (2 * pages + 2 * quarter, key, quarter),
            Target::Private { key, .. } => (2 * pages + 3 * quarter, key, quarter),
        };
        (index < count).then(|| self.first[host] + (start + index) as u32)
    }

    /// The host of a number.
    pub fn host_of(&self, url: u32) -> u64 {
        self.first.partition_point(|&first| first <= url) as u64 - 1
    }

    /// What a number stands for.
    pub fn target(&self, url: u32) -> Target {
        let host = self.host_of(url);
        let pages = u64::from(self.pages[host as usize]);
        let quarter = quarter(pages);
        let index = u64::from(url - self.first[host as usize]);
        let (kind, key) = match index.checked_sub(2 * pages) {
            None if index < pages => return Target::Page { host, page: index },
            None => return Target::Print { host, page: index - pages },
            Some(rest) => (rest / quarter, rest % quarter),
        };
        match kind {
            0 => Target::Missing { host, key },
            1 => Target::Error { host, key },
            2 => Target::Redirect { host, key },
            _ => Target::Private { host, key },
        }
    }
}

/// So many URLs of each kind of trouble a host has, as `links` draws them.
fn quarter(pages: u64) -> u64 {
    1 + pages / 4
}

/// A set of numbers.
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub fn new(bits: usize) -> Bits {
        Bits { words: vec![0; bits.div_ceil(64)] }
    }

    /// Adds a number; false if it was there. It is not counted here: rustc 1.95 loses an addition of the truth value that
    /// is also the answer, when it is optimised (rust-lang/rust#158206).
    pub fn insert(&mut self, n: u32) -> bool {
        let (word, bit) = (&mut self.words[n as usize / 64], 1 << (n % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub fn contains(&self, n: u32) -> bool {
        self.words[n as usize / 64] & 1 << (n % 64) != 0
    }

    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The numbers that are here and not there.
    pub fn not_in<'a>(&'a self, other: &'a Bits) -> impl Iterator<Item = u32> + 'a {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & !b);
        words
            .enumerate()
            .filter(|(_, word)| *word != 0)
            .flat_map(|(at, word)| (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| at as u32 * 64 + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;

    #[test]
    fn numbers_are_read_back() {
        let web = Web::new(WebConfig { hosts: 50, pages: 9, ..WebConfig::default() }).unwrap();
        let urls = Urls::new(&web);
        for url in 0..urls.count() as u32 {
            assert_eq!(urls.id(urls.target(url)), Some(url));
        }
        assert_eq!(urls.id(Target::Page { host: 3, page: web.pages_of(3) }), None);
        assert_eq!(urls.pages(), (0..50).map(|h| web.pages_of(h)).sum::<u64>());
        for (host, page) in (0..50).flat_map(|h| (0..web.pages_of(h)).map(move |p| (h, p))) {
            assert!(web.links(host, page).iter().all(|link| urls.id(link.target).is_some()));
        }
        for host in 0..50 {
            let redirects = (0..quarter(web.pages_of(host))).map(|key| web.redirect_target(host, key));
            redirects.for_each(|target| assert!(urls.id(target).is_some()));
        }
    }

    #[test]
    fn sets() {
        let (mut a, mut b) = (Bits::new(200), Bits::new(200));
        assert!(a.insert(7) && !a.insert(7) && a.insert(130) && b.insert(7));
        assert!(a.contains(130) && !b.contains(130));
        assert_eq!((a.count(), a.not_in(&b).collect(), b.not_in(&a).count()), (2, vec![130], 0));
    }
}
