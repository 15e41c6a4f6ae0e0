//! Writes known pages as a level: those in memory, or several levels as one.
//!
//! Pages keep their order, so entries are copied one after the other, and the place of an entry becomes that of all behind which it now stands. Deleted pages
//! are left out, and duplicates of them become representatives. The keys of all sources are merged with their places changed likewise.

use std::collections::BTreeSet;
use std::sync::Arc;

use rhumb_store::disk::Disk;
use rhumb_store::rows::{Row, RowWriter};
use rhumb_store::runs::{Run, RunScan, RunWriter};
use rhumb_store::{Result, StoreError};

use super::level::{Entries, Entry, Graves, Level, PLACE_BITS, ROW_BYTES, Segment, place};

/// Entries read before it is looked up which of them are deleted.
const ENTRIES_TOGETHER: usize = 16 << 10;

/// Where pages come from.
pub(super) enum Source {
    Memory(Arc<Segment>),
    Disk(Level),
}

impl Source {
    fn len(&self) -> u64 {
        match self {
            Source::Memory(segment) => segment.entries.len() as u64,
            Source::Disk(level) => level.rows.len(),
        }
    }

    fn entries(&self) -> Entries<'_> {
        match self {
            Source::Memory(segment) => Entries::Memory(segment),
            Source::Disk(level) => Entries::Disk(level.rows.reader(), level.rows.name()),
        }
    }
}

/// Writes the pages of the sources, oldest first, as one level under `name`. With `keep_graves`, for a level below which there are others, pages deleted
/// that were not met stay deleted.
pub(super) fn write(
    disk: &dyn Disk,
    name: &str,
    sources: &[Source],
    graves: &Graves,
    keep_graves: bool,
) -> Result<Level> {
    let mut rows = RowWriter::create(disk, &format!("{name}.row"), ROW_BYTES)?;
    let mut copier =
        Copier { name, graves, written: 0, previous: None, buried: BTreeSet::new(), keep_buried: keep_graves };
    let mut scans = Vec::new();
    for source in sources {
        let base = copier.written;
        let live = copier.copy(source, &mut rows)?;
        scans.push(KeyScan::new(source, base, live));
    }
    rows.finish()?;
    let mut keys = RunWriter::create(disk, &format!("{name}.key"))?;
    merge_keys(&mut scans, |key| keys.push(key))?;
    keys.finish()?;
    let deletes = keep_graves && bury(disk, name, graves, &copier.buried)?;
    Level::open(disk, name, deletes)
}

struct Copier<'a> {
    name: &'a str,
    graves: &'a Graves,
    written: u64,
    previous: Option<u64>,
    /// Deleted pages that were met and left out, and need no tombstone any more; collected for those that are in memory.
    buried: BTreeSet<u64>,
    keep_buried: bool,
}

impl Copier<'_> {
    /// Copies the entries that are not deleted. Returns which these are, if not all.
    fn copy(&mut self, source: &Source, rows: &mut RowWriter) -> Result<Option<Live>> {
        let mut entries = source.entries();
        let mut live = (!self.graves.is_empty()).then(|| Live::new(source.len()));
        let mut together: Vec<Entry> = Vec::new();
        let mut done = 0;
        while done < source.len() {
            let end = (done + ENTRIES_TOGETHER as u64).min(source.len());
            together.clear();
            for number in done..end {
                together.push(entries.get(number as u32)?);
            }
            let pages = together.iter().flat_map(|e| [Some(e.page), e.of]).flatten().collect();
            let dead = self.graves.among(pages)?;
            for (number, entry) in (done..).zip(&together) {
                if dead.contains(&entry.page) {
                    if self.keep_buried && self.graves.memory.contains(&entry.page) {
                        self.buried.insert(entry.page);
                    }
                    continue;
                }
                if let Some(live) = &mut live {
                    live.set(number);
                }
                let link = entry.of.filter(|of| !dead.contains(of));
                if self.previous.is_some_and(|p| p >= entry.page) || link.is_some_and(|l| l >= entry.page) {
                    return Err(StoreError::corrupt(self.name, 0, "pages are not in their order"));
                }
                self.previous = Some(entry.page);
                rows.push(Row { id: entry.page, link, bytes: &entry.row_bytes() })?;
                self.written += 1;
            }
            done = end;
        }
        Ok(live.map(Live::counted))
    }
}

/// Which entries of a source are left, and how many before each.
struct Live {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Live {
    fn new(entries: u64) -> Live {
        Live { words: vec![0; entries.div_ceil(64) as usize], before: Vec::new() }
    }

    fn set(&mut self, number: u64) {
        self.words[(number / 64) as usize] |= 1 << (number % 64);
    }

    fn counted(mut self) -> Live {
        let mut sum = 0;
        for word in &self.words {
            self.before.push(sum);
            sum += word.count_ones();
        }
        self
    }

    /// The place among those left, if it is.
    fn rank(&self, place: u32) -> Option<u32> {
        let (word, bit) = (self.words.get(place as usize / 64)?, place % 64);
        let below = word & ((1 << bit) - 1);
        (word >> bit & 1 == 1).then(|| self.before[place as usize / 64] + below.count_ones())
    }
}

/// The keys of a source, with the places that its entries have now.
struct KeyScan {
    keys: Keys,
    base: u64,
    live: Option<Live>,
    buffer: Vec<u64>,
    at: usize,
}

enum Keys {
    Memory(Arc<Segment>, usize),
    Disk(RunScan),
}

impl KeyScan {
    fn new(source: &Source, base: u64, live: Option<Live>) -> KeyScan {
        let keys = match source {
            Source::Memory(segment) => Keys::Memory(segment.clone(), 0),
            Source::Disk(level) => Keys::Disk(level.keys.scan()),
        };
        KeyScan { keys, base, live, buffer: Vec::new(), at: 0 }
    }

    /// The next keys, as many as are at hand; none at the end.
    fn rest(&mut self) -> Result<&[u64]> {
        while self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            let some = match &mut self.keys {
                Keys::Memory(segment, at) => {
                    let from = std::mem::replace(at, segment.keys.len().min(*at + 1024));
                    &segment.keys[from..*at]
                }
                Keys::Disk(scan) => scan.rest()?,
            };
            let (live, base, n) = (&self.live, self.base, some.len());
            let moved = |&key: &u64| {
                let place = live.as_ref().map_or(Some(place(key)), |l| l.rank(place(key)))?;
                Some((key >> PLACE_BITS << PLACE_BITS) + base + u64::from(place))
            };
            self.buffer.extend(some.iter().filter_map(moved));
            if !self.buffer.is_sorted() {
                return Err(StoreError::corrupt(super::DIR, 0, "keys are not in their order"));
            }
            if let Keys::Disk(scan) = &mut self.keys {
                scan.skip(n);
            }
            if n == 0 {
                break;
            }
        }
        Ok(&self.buffer[self.at..])
    }
}

/// All keys in order. Of each source those up to some bound are at hand; what lies below the least bound is sorted together.
fn merge_keys(scans: &mut [KeyScan], mut push: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut together = Vec::new();
    let mut previous = None;
    loop {
        let mut bound = None;
        for scan in scans.iter_mut() {
            if let Some(&last) = scan.rest()?.last() {
                bound = Some(bound.map_or(last, |b: u64| b.min(last)));
            }
        }
        let Some(bound) = bound else {
            return Ok(());
        };
        together.clear();
        for scan in scans.iter_mut() {
            let n = scan.rest()?.partition_point(|&k| k <= bound);
            together.extend_from_slice(&scan.buffer[scan.at..scan.at + n]);
            scan.at += n;
        }
        together.sort();
        for &key in &together {
            if previous.is_some_and(|p| p >= key) {
                return Err(StoreError::corrupt(super::DIR, 0, "keys are not in their order"));
            }
            previous = Some(key);
            push(key)?;
        }
    }
}

/// Writes which pages stay deleted; whether there are any.
fn bury(disk: &dyn Disk, name: &str, graves: &Graves, buried: &BTreeSet<u64>) -> Result<bool> {
    let in_memory: Vec<u64> = graves.memory.difference(buried).copied().collect();
    let mut scans: Vec<RunScan> = graves.runs.iter().map(Run::scan).collect();
    if in_memory.is_empty() && scans.is_empty() {
        return Ok(false);
    }
    let mut writer = RunWriter::create(disk, &format!("{name}.del"))?;
    let mut memory = &in_memory[..];
    let mut previous = None;
    loop {
        let mut least = memory.first().copied();
        for scan in &mut scans {
            if let Some(&page) = scan.rest()?.first() {
                least = Some(least.map_or(page, |l| l.min(page)));
            }
        }
        let Some(page) = least else { break };
        memory = &memory[usize::from(memory.first() == Some(&page))..];
        for scan in &mut scans {
            let here = scan.rest()?.first() == Some(&page);
            scan.skip(usize::from(here));
        }
        if previous.is_some_and(|p| p >= page) {
            return Err(StoreError::corrupt(name, 0, "deleted pages are not in their order"));
        }
        previous = Some(page);
        writer.push(page)?;
    }
    writer.finish()?;
    Ok(true)
}
