//! The set of known pages: asked in batches, kept in the sieve's manner.
//!
//! **Nothing here takes long.** [`Seen::offer`] puts a page behind the others that wait. Looking a batch up, writing the pages in memory as a level on disk and
//! merging levels are pieces of [`SeenWork`], one at a time: the store decides on them ([`Seen::take_work`]), somebody carries them out on another thread
//! ([`SeenWork::run`]), and [`Seen::finish_work`] takes the result in. Then [`Seen::take_found`] has the duplicates.
//!
//! Pages are offered in ascending order, as they stand in the log. So an offer that is not above the last one was made before, by a log that is replayed, and does not count; the
//! entries of all levels, one after the other, ascend; and the oldest of several pages is the least.
//!
//! What is found is written to the log by somebody, and may be found again after a crash. [`Seen::reported`], called for each such record, makes sure that
//! it does not come out twice: pages come out in ascending order too.
//!
//! A deleted page leaves a tombstone, which newer levels keep until they are merged with the oldest. A page is never offered again under the same number, so
//! tombstones need no order among themselves.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use rhumb_store::Result;
use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;

use super::check::check;
use super::level::{Graves, Level, PLACE_BITS, Segment};
use super::merge::{Source, write};
use super::sketch::Content;

/// The directory of the levels.
pub const DIR: &str = "state/seen";
/// So many levels of one size class are merged into one of the next.
const LEVELS_MERGED: usize = 4;
/// Beyond so many levels neighbours are merged whatever their sizes.
const LEVELS_MAX: usize = 24;
/// When so many of a hundred entries are of deleted pages, all levels become one without them.
const DELETED_PERCENT_MAX: u64 = 25;
/// What a page costs while it is in memory: waiting, being looked up, being merged.
const PAGE_BYTES: usize = 560;

/// A page, as whoever offers it knows it: the place of its record in the log. Later pages have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRef(pub u64);

/// Bits of an offset in a segment of the log.
const OFFSET_BITS: u32 = 36;

impl PageRef {
    /// The page whose record is the next from here on.
    pub fn at(position: Position) -> PageRef {
        PageRef(u64::from(position.segment) << OFFSET_BITS | position.offset & ((1 << OFFSET_BITS) - 1))
    }

    /// The record that follows here is the page's.
    pub fn position(self) -> Position {
        Position { segment: (self.0 >> OFFSET_BITS) as u32, offset: self.0 & ((1 << OFFSET_BITS) - 1) }
    }
}

/// A page that was here before, as the entry of its next visit knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its last record.
    pub page: PageRef,
    /// What it said.
    pub content: Content,
}

impl Known {
    /// Appends it as bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(self.page.0);
        self.content.put(into);
    }

    /// Reads what [`Known::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Known, Malformed> {
        Ok(Known { page: PageRef(from.u64()?), content: Content::take(from)? })
    }
}

/// A page that says what an older one says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The duplicate.
    pub page: PageRef,
    /// Its representative, older, and no duplicate itself.
    pub of: PageRef,
    /// The estimated resemblance of the two.
    pub similarity: f32,
    /// Whether they have the same words in the same order.
    pub exact: bool,
}

/// Memory of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenConfig {
    /// Pages that wait become a batch at this number.
    pub batch_pages_max: usize,
    /// Known pages, and deletions, in memory become a level on disk at this number.
    pub memory_pages_max: usize,
    /// Fingerprints remembered for an answer at once.
    pub recent_max: usize,
}

impl SeenConfig {
    /// Bounds that keep to so many bytes.
    pub fn within(bytes_max: usize) -> SeenConfig {
        let pages = (bytes_max / 16 * 15 / PAGE_BYTES).max(16);
        // The table is of a power of two, of 16 bytes each.
        let recent_max = (bytes_max / 16 / 16).max(16);
        SeenConfig { batch_pages_max: pages, memory_pages_max: pages, recent_max }
    }
}

/// See the module's header.
pub struct Seen {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) config: SeenConfig,
    /// Fingerprint and page, by the lowest bits of the fingerprint.
    recent: Vec<(u64, u64)>,
    /// Pages that wait, ascending.
    pub(super) pending: VecDeque<(u64, Content)>,
    /// Those that are being looked up.
    pub(super) batch: Arc<Vec<(u64, Content)>>,
    /// Known pages in memory, oldest first.
    pub(super) segments: Vec<Arc<Segment>>,
    /// Pages deleted since the newest level was begun.
    pub(super) deleted: Arc<BTreeSet<u64>>,
    /// Those deleted before, while they become a part of a level.
    pub(super) deleted_frozen: Arc<BTreeSet<u64>>,
    /// Oldest first.
    pub(super) levels: Vec<Level>,
    pub(super) found: VecDeque<Found>,
    /// The last page offered.
    pub(super) last: Option<u64>,
    /// Duplicates up to this one are in the log.
    pub(super) reported: Option<u64>,
    pub(super) next_file: u64,
    is_out: bool,
    check_wanted: bool,
    garbage: Vec<String>,
}

impl Seen {
    /// An empty set.
    pub fn new(disk: Arc<dyn Disk>, config: SeenConfig) -> Result<Seen> {
        disk.make_dir(DIR)?;
        // The greatest power of two within the bound.
        let slots = 1 << config.recent_max.max(1).ilog2();
        Ok(Seen {
            disk,
            config,
            recent: vec![(0, u64::MAX); slots],
            pending: VecDeque::new(),
            batch: Arc::default(),
            segments: Vec::new(),
            deleted: Arc::default(),
            deleted_frozen: Arc::default(),
            levels: Vec::new(),
            found: VecDeque::new(),
            last: None,
            reported: None,
            next_file: 1,
            is_out: false,
            check_wanted: false,
            garbage: Vec::new(),
        })
    }

    /// A page was read. Pages come in ascending order; one that is not above the last was offered before. Nobody else is told: see
    /// [`Seen::remember`].
    pub fn offer(&mut self, page: PageRef, content: &Content) {
        if self.last.is_some_and(|last| page.0 <= last) {
            return;
        }
        self.last = Some(page.0);
        self.pending.push_back((page.0, content.clone()));
    }

    /// Remembers a page for an answer at once ([`Seen::known_exactly`]), under its fingerprint or one made of that and more.
    pub fn remember(&mut self, page: PageRef, exact: u64) {
        let slot = self.slot(exact);
        // The oldest page with this content is the one to point at.
        if self.recent[slot].0 != exact || self.recent[slot].1 == u64::MAX {
            self.recent[slot] = (exact, page.0);
        }
    }

    fn slot(&self, exact: u64) -> usize {
        exact as usize & (self.recent.len() - 1)
    }

    /// A page changed or is gone: it is not found from now on.
    pub fn delete(&mut self, page: PageRef) {
        if let Ok(at) = self.pending.binary_search_by_key(&page.0, |(page, _)| *page) {
            self.pending.remove(at);
        } else if !self.is_unknown() {
            Arc::make_mut(&mut self.deleted).insert(page.0);
        }
        self.found.retain(|f| f.page != page && f.of != page);
    }

    fn is_unknown(&self) -> bool {
        self.levels.is_empty() && self.segments.is_empty() && self.batch.is_empty()
    }

    /// The page that is remembered under this fingerprint: an answer at once, which may miss older pages, and may name one that is gone.
    pub fn known_exactly(&self, exact: u64) -> Option<PageRef> {
        let (fingerprint, page) = self.recent[self.slot(exact)];
        (fingerprint == exact && page != u64::MAX).then_some(PageRef(page))
    }

    /// The log has a record of this duplicate.
    pub fn reported(&mut self, page: PageRef) {
        self.reported = self.reported.max(Some(page.0));
        while self.found.front().is_some_and(|f| Some(f.page.0) <= self.reported) {
            self.found.pop_front();
        }
    }

    /// The next duplicate found, if there is one. It comes again, after a restart, unless the log has it.
    pub fn take_found(&mut self) -> Option<Found> {
        self.found.pop_front()
    }

    /// Whether duplicates were found that nobody took.
    pub fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Whether pages wait to be looked up.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.batch.is_empty()
    }

    /// Whether work was taken and not finished.
    pub fn is_working(&self) -> bool {
        self.is_out
    }

    /// Whether so much waits that nothing more should be offered until work is finished. A bound for memory, no condition.
    pub fn must_wait(&self) -> bool {
        self.pending.len().max(self.found.len()) >= 2 * self.config.batch_pages_max
    }

    /// Has what waits looked up soon if that costs little: as long as all is in memory, or when there is much of it.
    pub fn want_check_if_cheap(&mut self) {
        self.check_wanted |= self.levels.is_empty() || self.pending.len() >= self.config.batch_pages_max / 8;
    }

    /// Has what waits looked up soon, however little it is.
    pub fn want_check(&mut self) {
        self.check_wanted = true;
    }

    /// Whether there is work to take.
    pub fn has_work(&self) -> bool {
        !self.is_out && (self.memory_is_full() || self.wants_check() || self.levels_to_merge().is_some())
    }

    fn memory_is_full(&self) -> bool {
        let entries: usize = self.segments.iter().map(|s| s.entries.len()).sum();
        entries + self.deleted.len() >= self.config.memory_pages_max
    }

    fn wants_check(&self) -> bool {
        !self.pending.is_empty() && (self.check_wanted || self.pending.len() >= self.config.batch_pages_max)
    }

    /// Work to be done elsewhere, one piece at a time.
    pub fn take_work(&mut self) -> Option<SeenWork> {
        if self.is_out {
            return None;
        }
        let task = if self.memory_is_full() {
            self.deleted_frozen = std::mem::take(&mut self.deleted);
            Task::Write {
                name: self.new_name(),
                segments: self.segments.clone(),
                deleted: self.deleted_frozen.clone(),
                keep_graves: !self.levels.is_empty(),
            }
        } else if self.wants_check() {
            let n = self.pending.len().min(self.config.batch_pages_max);
            self.batch = Arc::new(self.pending.drain(..n).collect());
            self.check_wanted &= !self.pending.is_empty();
            let runs = self.levels.iter().filter_map(|l| l.deleted.clone()).collect();
            Task::Check {
                batch: self.batch.clone(),
                levels: self.levels.clone(),
                segments: self.segments.clone(),
                graves: Graves { memory: self.deleted.clone(), runs },
            }
        } else {
            let range = self.levels_to_merge()?;
            Task::Merge { name: self.new_name(), from: range.start, levels: self.levels[range].to_vec() }
        };
        self.is_out = true;
        Some(SeenWork { disk: self.disk.clone(), task })
    }

    fn new_name(&mut self) -> String {
        self.next_file += 1;
        format!("{DIR}/{:08}", self.next_file - 1)
    }

    /// Neighbours of one size class, oldest first, if there are enough of them; or all, if too much is deleted.
    fn levels_to_merge(&self) -> Option<Range<usize>> {
        let n = self.levels.len();
        let pages = |range: &Range<usize>| self.levels[range.clone()].iter().map(|l| l.rows.len()).sum::<u64>();
        let fits = |range: &Range<usize>| range.len() > 1 && pages(range) < 1 << PLACE_BITS;
        let deleted: u64 = self.levels.iter().map(Level::deletions).sum();
        if deleted * 100 > pages(&(0..n)) * DELETED_PERCENT_MAX && fits(&(0..n)) {
            return Some(0..n);
        }
        let smallest = self.config.memory_pages_max.max(1) as u64;
        let class = |l: &Level| (l.len() / smallest).max(1).ilog(LEVELS_MERGED as u64);
        let mut start = 0;
        for (i, level) in self.levels.iter().enumerate() {
            if class(level) != class(&self.levels[start]) {
                start = i;
            }
            let ends = self.levels.get(i + 1).is_none_or(|next| class(next) != class(level));
            let range = start..i + 1;
            if ends && range.len() >= LEVELS_MERGED && fits(&range) {
                return Some(range);
            }
        }
        // Deletions can leave levels of sizes in any order.
        let range = n.saturating_sub(LEVELS_MERGED)..n;
        (n > LEVELS_MAX && fits(&range)).then_some(range)
    }

    /// Takes in what a piece of work came to.
    pub fn finish_work(&mut self, done: SeenDone) {
        assert!(self.is_out, "what is finished was taken");
        self.is_out = false;
        match done.0 {
            Done::Checked { segments, found } => {
                self.segments = segments;
                self.batch = Arc::default();
                let (deleted, reported) = (&self.deleted, self.reported);
                let is_gone = |page: PageRef| deleted.contains(&page.0);
                // What was deleted meanwhile is no duplicate any more, or none of what it was one of.
                let news =
                    found.into_iter().filter(|f| Some(f.page.0) > reported && !is_gone(f.page) && !is_gone(f.of));
                self.found.extend(news);
            }
            Done::Written(level) => {
                self.segments.clear();
                self.deleted_frozen = Arc::default();
                self.keep(level, self.levels.len()..self.levels.len());
            }
            Done::Merged(from, n, level) => self.keep(level, from..from + n),
        }
    }

    fn keep(&mut self, level: Level, place: Range<usize>) {
        let kept = (level.len() > 0).then(|| level.clone());
        if kept.is_none() {
            self.garbage.extend(level.file_names().map(String::from));
        }
        for old in self.levels.splice(place, kept) {
            self.garbage.extend(old.file_names().map(String::from));
        }
    }

    /// Does all work that is due here and now.
    pub fn work(&mut self) -> Result<()> {
        while let Some(work) = self.take_work() {
            self.finish_work(work.run()?);
        }
        Ok(())
    }

    /// Does all work here and now. Nothing waits afterwards.
    pub fn flush(&mut self) -> Result<()> {
        self.work()?;
        while self.has_pending() {
            self.check_wanted = true;
            self.work()?;
        }
        Ok(())
    }

    /// Names of files no longer needed, to be removed once a checkpoint without them is durable.
    pub fn take_garbage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.garbage)
    }

    /// Names of the files in use.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.levels.iter().flat_map(Level::file_names)
    }

    /// Pages that are known or wait, those among them that are deleted but not yet left out included.
    pub fn len(&self) -> u64 {
        let in_memory =
            self.segments.iter().map(|s| s.entries.len()).sum::<usize>() + self.batch.len() + self.pending.len();
        self.levels.iter().map(|l| l.rows.len()).sum::<u64>() + in_memory as u64
    }

    /// Whether no page is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on disk.
    pub fn disk_bytes(&self) -> u64 {
        let of = |l: &Level| l.rows.bytes() + l.keys.bytes() + l.deleted.as_ref().map_or(0, |d| d.bytes());
        self.levels.iter().map(of).sum()
    }

    /// Bytes in memory: what waits and what is known there, the indices of the files, the table of recent fingerprints.
    pub fn memory_bytes(&self) -> usize {
        let segment =
            |s: &Arc<Segment>| s.entries.capacity() * size_of::<super::level::Entry>() + s.keys.capacity() * 8;
        let index =
            |l: &Level| l.rows.index_bytes() + l.keys.index_bytes() + l.deleted.as_ref().map_or(0, |d| d.index_bytes());
        let waiting = (self.pending.capacity() + self.batch.capacity()) * size_of::<(u64, Content)>();
        let tables = self.recent.len() * 16 + (self.deleted.len() + self.deleted_frozen.len()) * 16;
        let known: usize = self.segments.iter().map(segment).sum();
        waiting + tables + known + self.levels.iter().map(index).sum::<usize>()
    }
}

/// A piece of work that the store has to do and should not wait for.
pub struct SeenWork {
    disk: Arc<dyn Disk>,
    task: Task,
}

/// Work done, for [`Seen::finish_work`].
pub struct SeenDone(Done);

enum Task {
    Check { batch: Arc<Vec<(u64, Content)>>, levels: Vec<Level>, segments: Vec<Arc<Segment>>, graves: Graves },
    Write { name: String, segments: Vec<Arc<Segment>>, deleted: Arc<BTreeSet<u64>>, keep_graves: bool },
    Merge { name: String, from: usize, levels: Vec<Level> },
}

enum Done {
    /// The pages in memory, with those of the batch.
    Checked {
        segments: Vec<Arc<Segment>>,
        found: Vec<Found>,
    },
    Written(Level),
    /// The levels from here on, so many of them, are one.
    Merged(usize, usize, Level),
}

impl SeenWork {
    /// Whether pages are looked up; otherwise files are written.
    pub fn is_look_up(&self) -> bool {
        matches!(self.task, Task::Check { .. })
    }

    /// Does it.
    pub fn run(self) -> Result<SeenDone> {
        Ok(SeenDone(match self.task {
            Task::Check { batch, levels, mut segments, graves } => {
                let mut new = Segment::of(batch.iter().map(|(page, content)| (*page, content)));
                let known: Vec<&Segment> = segments.iter().map(|s| &**s).collect();
                let found = check(&mut new, &levels, &known, &graves)?;
                // Small batches are put together with what is no larger, so that there are never many segments.
                while segments.last().is_some_and(|s| s.entries.len() <= 2 * new.entries.len()) {
                    let mut both = segments.pop().map_or_else(Segment::default, Arc::unwrap_or_clone);
                    both.append(&new);
                    new = both;
                }
                segments.push(Arc::new(new));
                Done::Checked { segments, found }
            }
            Task::Write { name, segments, deleted, keep_graves } => {
                let sources: Vec<Source> = segments.into_iter().map(Source::Memory).collect();
                let graves = Graves { memory: deleted, runs: Vec::new() };
                Done::Written(write(&*self.disk, &name, &sources, &graves, keep_graves)?)
            }
            Task::Merge { name, from, levels } => {
                let runs = levels.iter().filter_map(|l| l.deleted.clone()).collect();
                let graves = Graves { memory: Arc::default(), runs };
                let n = levels.len();
                let sources: Vec<Source> = levels.into_iter().map(Source::Disk).collect();
                Done::Merged(from, n, write(&*self.disk, &name, &sources, &graves, from > 0)?)
            }
        }))
    }
}
