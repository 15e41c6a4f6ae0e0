//! The table of URLs: which node a URL is, and which URL a node.
//!
//! Nodes are places in the order of keys ([`crate::key`]), so the table is a sorted list that can be searched, and needs no
//! number beside a key. Keys are kept as what they do not share with the one before, and that as tokens learned from
//! the keys themselves (`tokens.rs`), in prefix codes (`huffman.rs`): five to ten bytes a URL, where front coding
//! alone takes thirteen to thirty-eight.
//!
//! Read `segment.rs` next (how keys are found), then `write.rs`. Every byte is told in `docs/formats/graph.md`.
//!
//! A file is checked when it is opened. Should what it holds make no sense all the same, answers are wrong, but they
//! come: nothing here panics, or runs on without end.

mod bits;
mod huffman;
mod index;
pub mod measure;
mod scan;
mod segment;
mod tokens;
mod write;

use std::ops::Range;

use rhumb_store::Result;
use rhumb_store::disk::Disk;

pub use measure::{Measured, measure};
pub use scan::UrlScan;
pub use write::UrlsWriter;

use crate::rows::Node;
use index::Index;
use rhumb_store::sealed::{Kind, Sealed};
use segment::{BLOCK_KEYS, GROUP_KEYS, Segment};

const KIND: Kind = Kind { magic: *b"rhumburl", version: 1 };
/// Bytes at the end of the content: bytes of all keys, keys, segments.
const TRAILER_BYTES: usize = 16;

/// How large a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlsStats {
    /// URLs in it.
    pub urls: Node,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of all keys together, as they were given.
    pub key_bytes: u64,
}

/// A table of URLs, read in place. Beside the file it holds the first key of every 64, and the codes of each segment.
pub struct Urls {
    content: Sealed,
    segments: Vec<Segment>,
    index: Index,
    stats: UrlsStats,
}

impl Urls {
    /// Opens the file `name`.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Urls> {
        Urls::read(Sealed::open(disk, name, KIND)?)
    }

    /// A table from the content of a file, without what [`Sealed`] puts around it.
    pub fn from_bytes(content: &[u8]) -> Result<Urls> {
        Urls::read(Sealed::in_memory("a table of URLs", content))
    }

    fn read(content: Sealed) -> Result<Urls> {
        let damaged = |at: usize, what: &str| content.damaged(at, what);
        let Some((front, trailer)) = content.split_last_chunk::<TRAILER_BYTES>() else {
            return Err(damaged(0, "the table of URLs has no end"));
        };
        let (key_bytes, counts) = trailer.split_at(8);
        let key_bytes = u64::from_le_bytes(key_bytes.try_into().expect("eight bytes"));
        let urls = u32::from_le_bytes(counts[..4].try_into().expect("four bytes"));
        let count = u32::from_le_bytes(counts[4..].try_into().expect("four bytes"));
        let directory = front.len().checked_sub(count as usize * 8);
        let directory = directory.ok_or_else(|| damaged(front.len(), "the table of URLs has no directory"))?;

        let (mut segments, mut from) = (Vec::<Segment>::new(), 0);
        let (mut first, mut index) = (0u32, Index::default());
        for end in front[directory..].chunks_exact(8) {
            let end = u64::from_le_bytes(end.try_into().expect("eight bytes"));
            let to = usize::try_from(end).ok().filter(|to| (from..=directory).contains(to));
            let segment = to.and_then(|to| Segment::read(&content, from, to, first, &mut index));
            let segment = segment.ok_or_else(|| damaged(from, "a segment of URLs makes no sense"))?;
            from = end as usize;
            first = first.checked_add(segment.keys).ok_or_else(|| damaged(from, "there are too many URLs"))?;
            segments.push(segment);
        }
        if from != directory || first != urls {
            return Err(damaged(directory, "the directory of URLs does not fit what is before"));
        }
        let stats = UrlsStats { urls, key_bytes, file_bytes: content.len() as u64 + 32 };
        Ok(Urls { content, segments, index, stats })
    }

    /// How many URLs there are.
    #[allow(clippy::len_without_is_empty)] // It answers with a node: the first that there is not.
    pub fn len(&self) -> Node {
        self.stats.urls
    }

    /// How large the table is.
    pub fn stats(&self) -> UrlsStats {
        self.stats
    }

    /// Bytes of memory beside the file.
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.segments.iter().map(Segment::memory_bytes).sum::<usize>()
    }

    /// The node with exactly this key.
    pub fn find(&self, key: &[u8]) -> Option<Node> {
        let (node, equal) = self.search(key);
        equal.then_some(node)
    }

    /// The first node whose key is not less than `key`; the number of nodes if there is none.
    pub fn lower_bound(&self, key: &[u8]) -> Node {
        self.search(key).0
    }

    /// The nodes whose keys begin with `prefix`.
    pub fn range_of_prefix(&self, prefix: &[u8]) -> Range<Node> {
        let from = self.lower_bound(prefix);
        // The first text after all those: the last byte that can be raised is, and what follows it goes.
        let to = match prefix.iter().rposition(|&b| b != u8::MAX) {
            None => self.len(),
            Some(at) => {
                let mut after = prefix[..=at].to_vec();
                after[at] += 1;
                self.lower_bound(&after)
            }
        };
        from..to.max(from)
    }

    /// Puts the key of `node` into `into`, which is emptied first; it stays empty if there is no such node.
    pub fn get(&self, node: Node, into: &mut Vec<u8>) {
        into.clear();
        let Some(segment) = self.segment_of(node) else { return };
        let place = node - segment.first;
        let (group, in_group) = (place / GROUP_KEYS, place % GROUP_KEYS);
        let mut reader = segment.group(&self.content, group);
        self.index.get(segment.first_group + group, into);
        let mut found = None;
        for _ in 0..=in_group / BLOCK_KEYS {
            found = reader.next_block(into);
        }
        let Some((mut block, _)) = found else { return };
        for _ in 0..in_group % BLOCK_KEYS {
            let shared = block.shared();
            into.truncate(shared);
            block.rest(into);
        }
    }

    /// The keys from `from` on, one after the other.
    pub fn scan(&self, from: Node) -> UrlScan<'_> {
        UrlScan::new(self, from)
    }

    fn segment_of(&self, node: Node) -> Option<&Segment> {
        if node >= self.stats.urls {
            return None;
        }
        let at = self.segments.partition_point(|s| s.first <= node);
        self.segments.get(at.checked_sub(1)?)
    }

    /// The first node whose key is not less, and whether it is equal.
    fn search(&self, key: &[u8]) -> (Node, bool) {
        let Some((group, same, equal)) = self.index.search(key) else { return (0, false) };
        let at = self.segments.partition_point(|s| s.first_group <= group);
        let Some(segment) = at.checked_sub(1).and_then(|at| self.segments.get(at)) else { return (0, false) };
        let first = segment.first + (group - segment.first_group) * GROUP_KEYS;
        if equal {
            return (first, true);
        }
        let (place, equal) = segment.group(&self.content, group - segment.first_group).lower_bound(key, same);
        ((first + place).min(self.len()), equal)
    }
}

#[cfg(test)]
mod tests;
