//! Known pages, in memory or on disk: entries in the order of their pages, and keys by which they are found.
//!
//! A key of a sketch and the place of its page's entry make one number, the key above. So the keys of many pages are one sorted set of numbers, on
//! disk a run ([`rhumb_store::runs`]), and the pages that share a key stand side by side, the oldest first. Entries are rows
//! ([`rhumb_store::rows`]): the page, the page it duplicates, half of its fingerprint, and the sketch without its keys. A content without a
//! sketch has one key, made of its fingerprint.

use std::collections::BTreeSet;
use std::sync::Arc;

use rhumb_store::codec::{Malformed, Take};
use rhumb_store::disk::Disk;
use rhumb_store::rows::{Row, RowReader, Rows};
use rhumb_store::runs::Run;
use rhumb_store::{Result, StoreError};

use super::sketch::{Body, Content, KEY_BITS, mix};

/// Bits of a place: so many pages a level has at most.
pub(super) const PLACE_BITS: u32 = 64 - KEY_BITS;
/// Bytes of an entry's row.
pub(super) const ROW_BYTES: usize = 4 + Body::BYTES;
/// So many pages of one key are looked at, the oldest of them. A template that is on a million pages must not make a million comparisons for each.
pub(super) const CANDIDATES_MAX: usize = 32;

/// A known page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub page: u64,
    /// The page it is a duplicate of.
    pub of: Option<u64>,
    /// The lower half of the fingerprint. The upper one is in the key, or the sketch says as much.
    pub exact: u32,
    pub body: Body,
}

impl Entry {
    pub fn new(page: u64, content: &Content) -> Entry {
        let body = content.sketch.as_ref().map_or(Body::NONE, |s| s.body);
        Entry { page, of: None, exact: content.exact as u32, body }
    }

    /// The resemblance, if both are duplicates or nearly so, and whether they are the same.
    pub fn resembles(&self, other: &Entry) -> Option<(f32, bool)> {
        if self.exact == other.exact && self.body == other.body {
            return Some((1.0, true));
        }
        self.body.near(&other.body).map(|similarity| (similarity, false))
    }

    pub fn row_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_BYTES);
        bytes.extend_from_slice(&self.exact.to_le_bytes());
        self.body.put(&mut bytes);
        bytes
    }

    pub fn from_row(row: &Row<'_>) -> Result<Entry, Malformed> {
        let mut take = Take::new(row.bytes);
        let exact = u32::from_le_bytes(take.raw(4)?.try_into().map_err(|_| Malformed("half a fingerprint"))?);
        Ok(Entry { page: row.id, of: row.link, exact, body: Body::take(&mut take)? })
    }
}

/// The keys of a content.
pub(super) fn keys_of(content: &Content) -> impl Iterator<Item = u64> {
    let short = content.sketch.is_none().then(|| mix(content.exact) >> PLACE_BITS);
    content.sketch.iter().flat_map(|s| s.keys).chain(short)
}

/// Known pages in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    /// In the order of their pages.
    pub entries: Vec<Entry>,
    /// Keys and places, ascending.
    pub keys: Vec<u64>,
}

impl Segment {
    pub fn of<'a>(offered: impl Iterator<Item = (u64, &'a Content)>) -> Segment {
        let mut segment = Segment::default();
        for (place, (page, content)) in offered.enumerate() {
            segment.entries.push(Entry::new(page, content));
            segment.keys.extend(keys_of(content).map(|key| key << PLACE_BITS | place as u64));
        }
        segment.keys.sort_unstable();
        segment.keys.dedup();
        segment
    }

    /// Adds younger pages.
    pub fn append(&mut self, younger: &Segment) {
        let base = self.entries.len() as u64;
        self.entries.extend_from_slice(&younger.entries);
        self.keys.extend(younger.keys.iter().map(|k| k + base));
        // Two ascending pieces: the standard sort merges them.
        self.keys.sort();
    }

    /// Calls `found(i, place)` for the places of the oldest pages with `prefixes[i]`, which ascend.
    pub fn find(&self, prefixes: &[u64], mut found: impl FnMut(usize, u32)) {
        let mut rest = &self.keys[..];
        for (i, &prefix) in prefixes.iter().enumerate() {
            // Either many prefixes are asked for or few: a search from here is short in both cases.
            let mut step = 1;
            while step < rest.len() && rest[step] >> PLACE_BITS < prefix {
                step *= 2;
            }
            let end = (step + 1).min(rest.len());
            rest = &rest[rest[..end].partition_point(|k| k >> PLACE_BITS < prefix)..];
            let of_prefix = rest.iter().take_while(|&k| k >> PLACE_BITS == prefix);
            of_prefix.take(CANDIDATES_MAX).for_each(|&k| found(i, place(k)));
        }
    }
}

/// The place below a key.
pub(super) fn place(key: u64) -> u32 {
    (key & ((1 << PLACE_BITS) - 1)) as u32
}

/// Known pages on disk, and pages deleted from older levels.
#[derive(Clone)]
pub(super) struct Level {
    pub rows: Arc<Rows>,
    pub keys: Arc<Run>,
    pub deleted: Option<Arc<Run>>,
}

impl Level {
    /// Opens the files of a level, which have one name but for its end.
    pub fn open(disk: &dyn Disk, name: &str, deletes: bool) -> Result<Level> {
        let deleted = deletes.then(|| Run::open(disk, &format!("{name}.del")).map(Arc::new)).transpose()?;
        let rows = Arc::new(Rows::open(disk, &format!("{name}.row"), ROW_BYTES)?);
        Ok(Level { rows, keys: Arc::new(Run::open(disk, &format!("{name}.key"))?), deleted })
    }

    /// Pages known and deleted.
    pub fn len(&self) -> u64 {
        self.rows.len() + self.deletions()
    }

    pub fn deletions(&self) -> u64 {
        self.deleted.as_ref().map_or(0, |d| d.len())
    }

    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        [self.rows.name(), self.keys.name()].into_iter().chain(self.deleted.as_ref().map(|d| d.name()))
    }

    /// The name that its files share.
    pub fn name(&self) -> &str {
        self.rows.name().strip_suffix(".row").unwrap_or_default()
    }

    /// As [`Segment::find`].
    pub fn find(&self, prefixes: &[u64], mut found: impl FnMut(usize, u32)) -> Result<()> {
        let (mut last, mut count) = (usize::MAX, 0);
        self.keys.find_prefixes(prefixes, PLACE_BITS, |i, key| {
            count = if last == i { count + 1 } else { 1 };
            last = i;
            found(i, place(key));
            count < CANDIDATES_MAX
        })
    }
}

/// Reads entries of a segment or level.
pub(super) enum Entries<'a> {
    Memory(&'a Segment),
    Disk(RowReader, &'a str),
}

impl Entries<'_> {
    pub fn get(&mut self, place: u32) -> Result<Entry> {
        match self {
            Entries::Memory(segment) => {
                let entry = segment.entries.get(place as usize);
                entry.copied().ok_or_else(|| StoreError::corrupt("state/checkpoint", 0, "a page that is not there"))
            }
            Entries::Disk(reader, name) => {
                let row = reader.get(u64::from(place))?;
                Entry::from_row(&row).map_err(|Malformed(what)| StoreError::corrupt(name, 0, what))
            }
        }
    }
}

/// Pages that are deleted.
#[derive(Clone, Default)]
pub(super) struct Graves {
    pub memory: Arc<BTreeSet<u64>>,
    pub runs: Vec<Arc<Run>>,
}

impl Graves {
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.runs.is_empty()
    }

    /// Those of the pages, in any order, that are deleted.
    pub fn among(&self, mut pages: Vec<u64>) -> Result<BTreeSet<u64>> {
        let mut dead = BTreeSet::new();
        if !self.is_empty() {
            pages.sort_unstable();
            pages.dedup();
            dead.extend(pages.iter().filter(|p| self.memory.contains(p)));
            for run in &self.runs {
                run.find_sorted(&pages, |i| {
                    dead.insert(pages[i]);
                })?;
            }
        }
        Ok(dead)
    }
}
