//! Which bodies are archived already, so that the same bytes are not stored twice: a WARC revisit record points to the first.
//!
//! A bounded memory of body digests and where each was first met. Forgetting the oldest is harmless: the
//! body is then archived once more. That is about bytes; what a page says is told by `sketch.rs` and `store.rs`.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};

use crate::sieve::AsIs;

/// Where a body was first archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The whole digest, because the key is only a part of it.
    pub digest: [u8; 20],
    /// The page's URL.
    pub url: Box<str>,
    /// When it was fetched.
    pub at: Timestamp,
}

/// See the module's header.
#[derive(Debug, Default)]
pub struct Archived {
    by_digest: HashMap<u64, First, BuildHasherDefault<AsIs>>,
    order: VecDeque<u64>,
    bytes: usize,
    bytes_max: usize,
}

/// Smaller bodies are archived again rather than remembered.
const BODY_BYTES_MIN: u64 = 64;
/// What one entry costs beside its URL.
const ENTRY_BYTES: usize = 80;

impl Archived {
    /// A memory of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Archived {
        Archived { bytes_max, ..Archived::default() }
    }

    /// Where this body was archived first, if that is remembered.
    pub fn check(&self, digest: &[u8; 20]) -> Option<&First> {
        self.by_digest.get(&key(digest)).filter(|f| f.digest == *digest)
    }

    /// Remembers a body that was archived as a whole.
    pub fn remember(&mut self, digest: [u8; 20], url: &str, at: Timestamp, body_bytes: u64) {
        let key = key(&digest);
        if body_bytes < BODY_BYTES_MIN || self.by_digest.contains_key(&key) {
            return;
        }
        self.bytes += url.len() + ENTRY_BYTES;
        self.by_digest.insert(key, First { digest, url: url.into(), at });
        self.order.push_back(key);
        while self.bytes > self.bytes_max {
            let Some(first) = self.order.pop_front().and_then(|k| self.by_digest.remove(&k)) else { break };
            self.bytes -= first.url.len() + ENTRY_BYTES;
        }
    }

    /// Bodies remembered.
    pub fn len(&self) -> usize {
        self.by_digest.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// Writes the state into a checkpoint.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.order.len() as u64);
        for first in self.order.iter().filter_map(|k| self.by_digest.get(k)) {
            into.extend_from_slice(&first.digest);
            into.put_str(&first.url);
            into.put_u64(first.at.0);
        }
    }

    /// Reads what [`Archived::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        for _ in 0..from.u64()? {
            let digest = from.raw(20)?.try_into().map_err(|_| Malformed("half a digest"))?;
            let url = from.str()?;
            self.remember(digest, url, Timestamp(from.u64()?), u64::MAX);
        }
        Ok(())
    }
}

fn key(digest: &[u8; 20]) -> u64 {
    u64::from_le_bytes([digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_kept_and_memory_is_bounded() {
        let digest = |n: u8| [n; 20];
        let mut seen = Archived::new(10 * (ENTRY_BYTES + 1));
        seen.remember(digest(0), "a", Timestamp(1), 1000);
        seen.remember(digest(0), "b", Timestamp(2), 1000);
        seen.remember(digest(99), "small", Timestamp(2), 3);
        assert_eq!(seen.check(&digest(0)).map(|f| &*f.url), Some("a"));
        assert_eq!(seen.check(&digest(99)), None);
        let mut bytes = Vec::new();
        seen.save(&mut bytes);
        let mut again = Archived::new(10 * (ENTRY_BYTES + 1));
        again.load(&mut Take::new(&bytes)).expect("load");
        assert_eq!(again.check(&digest(0)), seen.check(&digest(0)));
        (1..=10).for_each(|n| seen.remember(digest(n), "x", Timestamp(3), 1000));
        assert_eq!((seen.len(), seen.check(&digest(0))), (10, None));
    }
}
