//! Sources that hold pages already, and how they are read.
//!
//! A [`Feed`] gives its pages in order, always the same ones for the same bytes: the log counts them instead of naming each
//! (`rhumb_core::reading`). `crate::feeding` turns them into visits.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use rhumb_core::Timestamp;
use rhumb_core::url::{Normalizer, Url};
use rhumb_store::warc::Truncated;

/// What a reader must know.
#[derive(Clone, Debug)]
pub struct HowToRead {
    /// Where to begin: 0, or the offset of a page that said that reading may begin there.
    pub from: u64,
    /// Longer heads are not looked at.
    pub head_bytes_max: usize,
    /// Longer bodies are cut.
    pub body_bytes_max: usize,
    /// Makes URLs canonical, as it does those of links.
    pub normalizer: Normalizer,
}

/// A source being read.
pub trait Feed: Send {
    /// What comes next; nothing at the end. An error is one of our own machine.
    fn next(&mut self, known: &mut Known) -> io::Result<Option<Item>>;

    /// How long the source is, in the unit of its offsets.
    fn bytes(&self) -> u64;
}

/// A piece of a source.
pub enum Item {
    /// A page that somebody fetched.
    Page(Box<Page>),
    /// Something that is no page.
    Passed,
    /// Something that should have been one: where, and what is wrong with it.
    Trouble(String),
}

/// What somebody fetched: the answer as it was, and when.
pub struct Page {
    /// What was asked for.
    pub url: Url,
    /// When.
    pub at: Timestamp,
    /// Who answered.
    pub address: Option<IpAddr>,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The head's bytes; nothing if it was not HTTP.
    pub head: Vec<u8>,
    /// The body without its transfer coding.
    pub body: Vec<u8>,
    /// Whether and why the body is not whole.
    pub cut: Option<Truncated>,
    /// Whether it was HTTP/2.
    pub http2: bool,
    /// Where reading may begin so that this page comes first, if there is such a place.
    pub offset: Option<u64>,
    /// Whether the source says that its body is that of an earlier page.
    pub is_copy: bool,
}

/// Where bodies lie that were met before, by their digest as it is written: a record may say "the same as that one" and hold none.
/// Bounded: of those met longest ago it knows nothing any more.
#[derive(Default)]
pub struct Known {
    places: HashMap<u64, (u32, u64)>,
    order: VecDeque<u64>,
    files: Vec<PathBuf>,
    max: usize,
}

impl Known {
    /// Remembers `max` places at the most.
    pub fn new(max: usize) -> Known {
        Known { max, ..Known::default() }
    }

    /// The body with this digest lies in the record at `offset` of `file`.
    pub fn add(&mut self, digest: &str, file: &std::path::Path, offset: u64) {
        let number = match self.files.iter().rposition(|known| known == file) {
            Some(number) => number,
            None => {
                self.files.push(file.to_path_buf());
                self.files.len() - 1
            }
        };
        let key = Known::key(digest);
        if self.max == 0 || self.places.contains_key(&key) {
            return;
        }
        if self.order.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
        self.order.push_back(key);
        self.places.insert(key, (number as u32, offset));
    }

    /// Where the body with this digest lies. Whoever looks there compares the digest.
    pub fn find(&self, digest: &str) -> Option<(PathBuf, u64)> {
        let (file, offset) = self.places.get(&Known::key(digest))?;
        Some((self.files.get(*file as usize)?.clone(), *offset))
    }

    fn key(digest: &str) -> u64 {
        xxhash_rust::xxh3::xxh3_64(digest.trim().to_ascii_lowercase().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn known_bodies_are_bounded() {
        let mut known = Known::new(2);
        for (at, digest) in ["sha1:A", "sha1:B", "SHA1:a", "sha1:C"].into_iter().enumerate() {
            known.add(digest, Path::new("x"), at as u64);
        }
        let found = ["sha1:a", "sha1:b", "sha1:c"].map(|digest| known.find(digest).map(|(_, at)| at));
        assert_eq!(found, [None, Some(1), Some(3)]);
    }
}
