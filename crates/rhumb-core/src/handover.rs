//! Batches of URLs on their way to the node that owns their hosts: what the bus carries.
//!
//! An entry is its fingerprint, a length and the bytes of an [`Entry`], so that the receiving sieve can say
//! "seen" without looking at the URL.

use rhumb_store::codec::{Malformed, Put, Take};

use crate::sitemap::{Hint, SitemapLevel};
use crate::url::{Fingerprint, Url};
use crate::visit::Entry;

/// URLs for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    count: u32,
    /// Room to work in.
    head: Vec<u8>,
}

impl Batch {
    /// Adds a URL found at `depth`.
    pub fn push(&mut self, url: &Url, depth: u32, redirects: u8, seed: bool) {
        self.push_as(url, depth, redirects, seed, None, Hint::default());
    }

    /// Adds a URL that a sitemap or feed lists, with what it says of it.
    pub fn push_listed(&mut self, url: &Url, depth: u32, redirects: u8, hint: Hint) {
        self.push_as(url, depth, redirects, false, None, hint);
    }

    /// Adds the URL of a sitemap.
    pub fn push_sitemap(&mut self, url: &Url, depth: u32, redirects: u8, level: SitemapLevel) {
        self.push_as(url, depth, redirects, false, Some(level), Hint::default());
    }

    fn push_as(&mut self, url: &Url, depth: u32, redirects: u8, seed: bool, sitemap: Option<SitemapLevel>, hint: Hint) {
        self.bytes.extend_from_slice(&url.fingerprint().0.to_le_bytes());
        self.head.clear();
        Entry::put_head(depth, redirects, seed, sitemap, hint, &mut self.head);
        self.bytes.put_u64((self.head.len() + url.as_str().len()) as u64);
        self.bytes.extend_from_slice(&self.head);
        self.bytes.extend_from_slice(url.as_str().as_bytes());
        self.count += 1;
    }

    /// How many URLs there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes as they travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Moves the URLs of `other` behind these.
    pub fn append(&mut self, other: &mut Batch) {
        self.bytes.append(&mut other.bytes);
        self.count += std::mem::take(&mut other.count);
    }

    /// Forgets the URLs and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Goes through the URLs: fingerprint and the bytes of the entry.
    pub fn for_each<E: From<Malformed>>(&self, f: impl FnMut(Fingerprint, &[u8]) -> Result<(), E>) -> Result<(), E> {
        Self::read(&self.bytes, f)
    }

    /// Goes through the URLs of a batch that came over the wire.
    pub fn read<E: From<Malformed>>(
        bytes: &[u8],
        mut f: impl FnMut(Fingerprint, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut take = Take::new(bytes);
        while !take.is_empty() {
            let raw = take.raw(8)?;
            let key = u64::from_le_bytes(raw.try_into().map_err(|_| Malformed("half a fingerprint"))?);
            f(Fingerprint(key), take.bytes()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_read_back() {
        let mut batch = Batch::default();
        let urls: Vec<Url> =
            ["http://a.example/", "https://b.example:8443/x?y=1"].map(|u| Url::parse(u).expect(u)).into();
        for (i, url) in urls.iter().enumerate() {
            batch.push(url, 300 + i as u32, i as u8, i == 1);
        }
        let mut read = Vec::new();
        batch
            .for_each(|f, e| -> Result<(), Malformed> {
                let entry = Entry::from_bytes(e)?;
                assert_eq!(f, entry.url.fingerprint());
                read.push(entry);
                Ok(())
            })
            .expect("reads back");
        assert_eq!(read.len(), 2);
        assert_eq!((&read[1].url, read[1].depth, read[1].redirects, read[1].seed), (&urls[1], 301, 1, true));
    }
}
