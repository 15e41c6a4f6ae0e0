//! The sieve lets each URL through once (SPEC C7).
//!
//! Three questions are asked of an offered fingerprint, cheapest first. Is it among the recent ones?
//! Then it is known. Does the Bloom filter deny it? Then it is new, for certain, and goes through at once.
//! Otherwise the exact set has the last word. It is a list of levels, of which the newest decides: new keys in
//! memory, then sorted runs on disk, which are asked in batches. A URL that must wait for that is written to disk
//! ([`rhumb_store::spool`]), so nothing is lost to a false positive, and a look-up is shared by millions of URLs.
//!
//! URLs come out in the order of their discovery, save that the few false positives come later, in their own order.
//!
//! **Nothing here takes long.** Looking up a batch, writing new keys as a run, merging runs and making a larger filter are
//! pieces of [`SieveWork`]: the sieve decides on them ([`Sieve::take_work`]), somebody carries them out on some other thread
//! ([`SieveWork::run`]) while offers go on, and [`Sieve::finish_work`] takes the result in. [`Sieve::let_through`] then
//! passes on what a look-up found to be new, as many at a time as the caller likes. [`Sieve::flush`] does all of that in
//! place, for tests and replays.
//!
//! Invariants:
//! - Whatever went through and was not removed is in the filter, if there is one. So a denial is certain.
//! - A URL waits until it is known to be in a level or goes through. While the results of a look-up are passed on, no new
//!   keys become a run: what is not in the levels that were asked is then either in memory or new.
//! - A level is neighbour to its elders in age: merging replaces neighbours, and the newest word on a key is found first.
//! - Files are named by a checkpoint only when whole and durable, and removed behind one that does not name them.
//!
//! A removed URL ([`Sieve::remove`]) goes through again when it is offered again. An offer that still waits when its URL is
//! removed counts as made before or after.
//!
//! Read on in `work.rs` (what takes long), `layer.rs` (new keys), `config.rs` (memory), `checkpoint.rs`.

mod checkpoint;
mod config;
mod layer;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;

use rhumb_store::Result;
use rhumb_store::disk::Disk;
use rhumb_store::runs::Level;
use rhumb_store::spool::{Picker, Spool};

pub use config::SieveConfig;
use layer::Layer;
pub use layer::{AsIs, FingerprintSet};
use work::{Done, Scratch, Task};
pub use work::{Lane, SieveDone, SieveWork};

use crate::sketch::BlockedBloom;
use crate::url::Fingerprint;

/// The directory of the runs and of what waits.
pub const DIR: &str = "state/sieve";
/// So many runs of one size class are merged into one of the next.
pub const RUNS_MERGED: usize = 4;
/// A merge that was late takes more of them, but not more than this.
const RUNS_MERGED_MAX: usize = 2 * RUNS_MERGED;
/// Beyond so many levels neighbours are merged whatever their sizes.
const LEVELS_MAX: usize = 40;
/// A filter with more error than this is replaced by a larger one, as long as memory lasts.
const FILTER_ERROR: f64 = 0.01;
/// The first filter is about as large.
const FILTER_BYTES_FIRST: usize = if cfg!(test) { 64 } else { 128 << 10 };
/// Each is so many times as large as the one before: it is filled from the runs rarely, and the old one beside it is small.
const FILTER_GROWTH: usize = 4;
/// At its largest, a filter is made anew with another number of probes if that takes the error down by this factor.
const FILTER_GAIN: f64 = 1.25;
/// Keys added to a new filter with each offer, until it has all that came while it was made.
const CATCH_UP_KEYS: usize = 64;
/// The same, when the caller asks for what went through.
const CATCH_UP_KEYS_ASKED: usize = 4_096;
/// Full batches behind the one that is looked up. Beyond that the caller should wait.
const WAITING_MAX: usize = 2;

/// The answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Never seen before: it goes through now.
    New,
    /// Known already.
    Seen,
    /// A look-up will tell; [`Sieve::let_through`] passes it on if it is new.
    Later,
}

/// How the Bloom filter does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FilterFigures {
    /// Bytes of the filter in use; 0 while there is none.
    pub bytes: usize,
    /// The error that its formula gives now.
    pub error_now: f64,
    /// New URLs about which this filter was asked.
    pub asked: u64,
    /// Those of them it took for known, as far as they have been looked up.
    pub wrong: u64,
    /// Those that it should have taken for known, by the formula: its error, summed up over all about which it was asked.
    pub wrong_expected: f64,
}

/// See the module's header.
pub struct Sieve {
    disk: Arc<dyn Disk>,
    config: SieveConfig,
    recent: Vec<u64>,
    filter: Option<Filter>,
    /// A filter that still lacks the keys of `since`.
    successor: Option<Filter>,
    /// Keys that came since a new filter was begun.
    since: Option<Vec<u64>>,
    since_done: usize,
    fresh: Layer,
    /// The layer before, until it is a run.
    frozen: Option<Arc<Layer>>,
    /// Oldest first.
    levels: Vec<Level>,
    tail: Waiting<Spool>,
    /// Oldest first; the first one may be under way.
    waiting: VecDeque<Waiting<Arc<Spool>>>,
    front: Front,
    back_is_out: bool,
    check_wanted: bool,
    next_file: u64,
    keys: u64,
    /// Filters there were.
    filters: u64,
    figures: FilterFigures,
    garbage: Vec<String>,
    /// A filter no longer needed. Giving its memory back takes a while, so the next piece of work does it.
    retired: Option<Filter>,
    /// An empty layer, and memory for work of the front lane. Freed and taken anew, they would be there twice for a while.
    spare: Option<Layer>,
    scratch: Scratch,
}

/// URLs that wait.
struct Waiting<S> {
    spool: S,
    /// Which filter took them for known; 0 if there was none.
    asked: u64,
    /// Places below are done with.
    done: u32,
    /// Whether its files are durable.
    synced: bool,
}

/// What the front lane is about.
enum Front {
    Idle,
    /// A look-up or a run being written is out.
    Out,
    /// URLs found new are passed on: their places, and how many of them are done.
    Passing(Vec<u32>, usize, Picker),
}

struct Filter {
    bloom: BlockedBloom,
    /// At so many keys another one should take its place.
    keys_max: u64,
    /// The error by the formula, as of so many keys.
    error: f64,
    error_until: u64,
}

impl Sieve {
    /// An empty sieve.
    pub fn new(disk: Arc<dyn Disk>, config: SieveConfig) -> Result<Sieve> {
        let mut sieve = Sieve::blank(disk, config)?;
        sieve.fill_filter_from_memory();
        Ok(sieve)
    }

    /// An empty sieve without a filter.
    fn blank(disk: Arc<dyn Disk>, config: SieveConfig) -> Result<Sieve> {
        disk.make_dir(DIR)?;
        Ok(Sieve {
            recent: vec![0; config.recent_keys.next_power_of_two()],
            disk,
            config,
            filter: None,
            successor: None,
            since: None,
            since_done: 0,
            fresh: Layer::default(),
            frozen: None,
            levels: Vec::new(),
            tail: Waiting { spool: Spool::new(&file_name(1)), asked: 0, done: 0, synced: false },
            waiting: VecDeque::new(),
            front: Front::Idle,
            back_is_out: false,
            check_wanted: false,
            next_file: 2,
            keys: 0,
            filters: 0,
            figures: FilterFigures::default(),
            garbage: Vec::new(),
            retired: None,
            spare: None,
            scratch: Scratch::default(),
        })
    }

    /// Offers a URL. `entry` is what [`Sieve::let_through`] gives back if the answer is [`Offered::Later`].
    pub fn offer(&mut self, fingerprint: Fingerprint, entry: impl FnOnce(&mut Vec<u8>)) -> Result<Offered> {
        let key = fingerprint.0;
        let slot = key as usize & (self.recent.len() - 1);
        // Zero marks an empty slot; the one URL with that fingerprint takes the longer way.
        if self.recent[slot] == key && key != 0 {
            return Ok(Offered::Seen);
        }
        self.recent[slot] = key;
        if self.successor.is_some() {
            self.catch_up(CATCH_UP_KEYS)?;
        }
        if self.filter.as_mut().is_some_and(|f| f.bloom.insert(key)) {
            self.count_asked(false);
            self.add(key);
            return Ok(Offered::New);
        }
        let known = self.known_in_memory(key);
        if known == Some(true) {
            return Ok(Offered::Seen);
        }
        if known == Some(false) || self.levels.is_empty() {
            if known.is_none() {
                self.count_asked(true);
            }
            self.add_everywhere(key);
            return Ok(Offered::New);
        }
        self.tail.spool.push(&*self.disk, self.config.buffer_bytes, key, entry)?;
        if self.tail.spool.len() >= self.config.batch_keys_max {
            self.seal();
        }
        Ok(Offered::Later)
    }

    /// Fetches from memory what offering the URL will need. Called for some URLs before they are offered, it makes the waits for
    /// memory overlap.
    pub fn expect(&self, fingerprint: Fingerprint) {
        let key = fingerprint.0;
        let recent = self.recent[key as usize & (self.recent.len() - 1)];
        let filter = self.filter.as_ref().map_or(0, |f| f.bloom.touch(key));
        std::hint::black_box((recent, filter, self.known_in_memory(key)));
    }

    /// Forgets a URL that went through, so that it goes through again when it is offered again.
    pub fn remove(&mut self, fingerprint: Fingerprint) {
        let key = fingerprint.0;
        let slot = key as usize & (self.recent.len() - 1);
        if self.recent[slot] == key {
            self.recent[slot] = 0;
        }
        self.fresh.added.remove(&key);
        if self.frozen.is_some() || !self.levels.is_empty() {
            self.fresh.deleted.insert(key);
        }
        self.keys = self.keys.saturating_sub(1);
        self.freeze_if_full();
    }

    fn known_in_memory(&self, key: u64) -> Option<bool> {
        self.fresh.says(key).or_else(|| self.frozen.as_ref().and_then(|l| l.says(key)))
    }

    /// Adds a key that is in the filter already.
    fn add(&mut self, key: u64) {
        self.fresh.add(key, self.config.fresh_keys_max);
        self.keys += 1;
        if let Some(since) = &mut self.since {
            since.push(key);
        }
        self.freeze_if_full();
    }

    fn add_everywhere(&mut self, key: u64) {
        if let Some(filter) = &mut self.filter {
            filter.bloom.add(key);
        }
        self.add(key);
    }

    fn freeze_if_full(&mut self) {
        if self.fresh.len() >= self.config.fresh_keys_max && self.frozen.is_none() {
            self.freeze();
        }
    }

    fn freeze(&mut self) {
        let next = self.spare.take().unwrap_or_else(|| Layer::with_room_for(self.config.fresh_keys_max));
        self.frozen = Some(Arc::new(std::mem::replace(&mut self.fresh, next)));
    }

    /// Notes how the filter did with a new URL.
    fn count_asked(&mut self, wrong: bool) {
        if let Some(filter) = &mut self.filter {
            self.figures.asked += 1;
            self.figures.wrong += u64::from(wrong);
            self.figures.wrong_expected += filter.error();
        }
    }

    /// Ends the batch that grows, so that it can be looked up.
    fn seal(&mut self) {
        let asked = if self.filter.is_some() { self.filters } else { 0 };
        if self.tail.spool.is_empty() {
            self.tail.asked = asked;
            return;
        }
        let next = Spool::new(&self.new_file_name());
        let full = std::mem::replace(&mut self.tail, Waiting { spool: next, asked, done: 0, synced: false });
        let Waiting { spool, asked, done, synced } = full;
        self.waiting.push_back(Waiting { spool: spool.seal(), asked, done, synced });
    }

    fn new_file_name(&mut self) -> String {
        self.next_file += 1;
        file_name(self.next_file - 1)
    }

    /// Whether URLs wait for a look-up or for being passed on.
    pub fn has_pending(&self) -> bool {
        !self.tail.spool.is_empty() || !self.waiting.is_empty()
    }

    /// Whether work was taken and not finished.
    pub fn is_working(&self) -> bool {
        matches!(self.front, Front::Out) || self.back_is_out
    }

    /// Whether so much waits that nothing more should be offered until work is finished. A bound for memory and disk, no
    /// condition: what is offered nevertheless is not lost.
    pub fn must_wait(&self) -> bool {
        self.waiting.len() > WAITING_MAX
            || (self.frozen.is_some() && self.fresh.len() >= self.config.fresh_keys_max)
            || self.since.as_ref().is_some_and(|s| s.len() >= 2 * self.config.fresh_keys_max.max(1 << 16))
    }

    /// Has what waits looked up soon, however little it is: somebody has nothing else to do.
    pub fn want_check(&mut self) {
        self.check_wanted = true;
    }

    /// Whether there is something to do: work to take, or URLs to let through.
    pub fn has_work(&self) -> bool {
        let front = match self.front {
            Front::Idle => self.frozen.is_some() || !self.waiting.is_empty() || self.wants_check_of_tail(),
            Front::Out => false,
            Front::Passing(..) => true,
        };
        front || (!self.back_is_out && (self.wants_filter() || self.levels_to_merge().is_some()))
    }

    fn wants_check_of_tail(&self) -> bool {
        self.check_wanted && !self.tail.spool.is_empty()
    }

    /// Work to be done elsewhere: of each [`Lane`] one piece at a time.
    pub fn take_work(&mut self) -> Option<SieveWork> {
        let task = self.take_front().or_else(|| self.take_back())?;
        Some(SieveWork { disk: self.disk.clone(), task, retired: self.retired.take() })
    }

    fn take_front(&mut self) -> Option<Task> {
        if !matches!(self.front, Front::Idle) {
            return None;
        }
        if let Some(layer) = self.frozen.clone() {
            self.front = Front::Out;
            let name = self.new_file_name();
            // Nothing is older than the first level, so it has nothing to delete from.
            let deletes = !layer.deleted.is_empty() && !self.levels.is_empty();
            return Some(Task::Write {
                layer,
                scratch: std::mem::take(&mut self.scratch),
                added: format!("{name}.run"),
                deleted: deletes.then(|| format!("{name}.del")),
            });
        }
        if self.waiting.is_empty() && self.wants_check_of_tail() {
            self.seal();
        }
        let spool = self.waiting.front()?.spool.clone();
        self.check_wanted &= self.waiting.len() > 1 || !self.tail.spool.is_empty();
        self.front = Front::Out;
        Some(Task::Check { spool, levels: self.levels.clone(), scratch: std::mem::take(&mut self.scratch) })
    }

    fn take_back(&mut self) -> Option<Task> {
        if self.back_is_out {
            return None;
        }
        if self.wants_filter() {
            self.back_is_out = true;
            self.since = Some(Vec::with_capacity(self.config.fresh_keys_max));
            self.since_done = 0;
            let (bytes, capacity) = filter_size(self.keys, self.config.filter_bytes_max);
            // Two of the largest size would be too much; until the other is ready, everything is looked up.
            if self.filter.as_ref().is_some_and(|f| f.bloom.bytes() >= bytes) {
                self.use_filter(None);
            }
            // New keys are lent to the work by making them the layer that is to become a run. A copy takes a few milliseconds
            // more; it will do if there is such a layer already, which a filter that is overdue must not wait for, and
            // as long as there are no runs: a small crawl should not need any.
            let mut keys = Vec::new();
            if self.levels.is_empty() || self.frozen.is_some() {
                keys.extend(self.fresh.added.iter().copied());
            } else if self.fresh.len() > 0 {
                self.freeze();
            }
            let (levels, layer) = (self.levels.clone(), self.frozen.clone());
            let bytes_max = self.config.filter_bytes_max;
            return Some(Task::Filter { levels, layer, keys, bytes, capacity, bytes_max });
        }
        let range = self.levels_to_merge()?;
        self.back_is_out = true;
        let name = self.new_file_name();
        Some(Task::Merge {
            from: range.start,
            deleted: (range.start > 0).then(|| format!("{name}.del")),
            added: format!("{name}.run"),
            levels: self.levels[range].to_vec(),
        })
    }

    fn wants_filter(&self) -> bool {
        self.successor.is_none() && self.filter.as_ref().is_none_or(|f| self.keys >= f.keys_max)
    }

    /// Neighbours of one size class, oldest first, if there are enough of them.
    fn levels_to_merge(&self) -> Option<std::ops::Range<usize>> {
        let smallest = self.config.fresh_keys_max.max(1) as u64;
        let class = |l: &Level| (l.len() / smallest).max(1).ilog(RUNS_MERGED as u64);
        let mut start = 0;
        for (i, level) in self.levels.iter().enumerate() {
            if class(level) != class(&self.levels[start]) {
                start = i;
            }
            let ends = self.levels.get(i + 1).is_none_or(|next| class(next) != class(level));
            let n = i + 1 - start;
            if n == RUNS_MERGED_MAX || (ends && n >= RUNS_MERGED) {
                return Some(start..i + 1);
            }
        }
        // Deletions can leave levels of sizes in any order.
        let n = self.levels.len();
        (n > LEVELS_MAX).then(|| n - RUNS_MERGED_MAX..n)
    }

    /// Takes in what a piece of work came to.
    pub fn finish_work(&mut self, done: SieveDone) -> Result<()> {
        match done.0 {
            Done::Checked(places, scratch) => {
                self.scratch = scratch;
                let first = self.waiting.front().expect("a batch that is looked up waits");
                let from = places.partition_point(|&p| p < first.done);
                self.front = Front::Passing(places, from, Picker::new(first.spool.clone()));
                self.end_passing();
            }
            Done::Written(level, scratch) => {
                self.scratch = scratch;
                self.levels.push(level);
                let layer = self.frozen.take().map(Arc::try_unwrap);
                self.spare = layer.and_then(Result::ok).map(Layer::cleared);
                self.front = Front::Idle;
                self.freeze_if_full();
            }
            Done::Merged(from, n, level) => {
                let kept = (!level.is_empty()).then_some(level.clone());
                if kept.is_none() {
                    self.garbage.extend(level.names().map(String::from));
                }
                for old in self.levels.splice(from..from + n, kept) {
                    self.garbage.extend(old.names().map(String::from));
                }
                self.back_is_out = false;
            }
            Done::Filter(filter) => {
                self.successor = Some(filter);
                self.back_is_out = false;
                self.catch_up(CATCH_UP_KEYS)?;
            }
        }
        Ok(())
    }

    /// Passes on URLs that a look-up found to be new, in the order of discovery, `max` at most, and brings a new filter
    /// nearer to its start. Returns whether it should be called again soon.
    pub fn let_through(
        &mut self,
        max: usize,
        mut through: impl FnMut(Fingerprint, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        // Offers bring a new filter up to date; while nothing is offered, this does.
        self.catch_up(CATCH_UP_KEYS_ASKED)?;
        let (places, mut at, mut picker) = match std::mem::replace(&mut self.front, Front::Idle) {
            Front::Passing(places, at, picker) => (places, at, picker),
            other => {
                self.front = other;
                return Ok(self.successor.is_some());
            }
        };
        let asked = self.waiting.front().is_some_and(|w| w.asked == self.filters);
        let end = places.len().min(at.saturating_add(max));
        let mut passed = Ok(());
        while at < end && passed.is_ok() {
            let place = places[at];
            let key = picker.key(place)?;
            at += 1;
            // In memory are new keys that came since, also with an earlier batch.
            if self.known_in_memory(key) != Some(true) {
                if asked {
                    self.count_asked(true);
                }
                self.add_everywhere(key);
                passed = through(Fingerprint(key), picker.entry(place)?);
            }
        }
        if let Some(first) = self.waiting.front_mut() {
            first.done = places.get(at).copied().unwrap_or(u32::MAX);
        }
        self.front = Front::Passing(places, at, picker);
        self.end_passing();
        passed?;
        Ok(matches!(self.front, Front::Passing(..)) || self.successor.is_some())
    }

    fn end_passing(&mut self) {
        if matches!(&self.front, Front::Passing(places, at, _) if *at == places.len()) {
            self.front = Front::Idle;
            let spool = self.waiting.pop_front().expect("a batch that is passed on waits").spool;
            self.garbage.extend(spool.file_names().map(String::from));
        }
    }

    /// Adds keys that came since the new filter was begun; when it has them all, it takes over.
    fn catch_up(&mut self, keys_max: usize) -> Result<()> {
        let (Some(filter), Some(since)) = (&mut self.successor, &self.since) else {
            return Ok(());
        };
        let end = since.len().min(self.since_done + keys_max);
        since[self.since_done..end].iter().for_each(|&k| filter.bloom.add(k));
        self.since_done = end;
        if end == since.len() {
            let filter = self.successor.take();
            self.since = None;
            self.use_filter(filter);
        }
        Ok(())
    }

    /// Another filter, or none, takes over. What waits is not mixed, so that each filter answers for its own errors.
    fn use_filter(&mut self, filter: Option<Filter>) {
        if filter.is_some() {
            self.filters += 1;
            self.figures = FilterFigures::default();
        }
        self.retired = std::mem::replace(&mut self.filter, filter);
        self.seal();
    }

    fn fill_filter_from_memory(&mut self) {
        let (bytes, capacity) = filter_size(self.keys, self.config.filter_bytes_max);
        let mut bloom = BlockedBloom::new(bytes, capacity);
        let frozen = self.frozen.iter().flat_map(|l| &l.added);
        frozen.chain(&self.fresh.added).for_each(|&k| bloom.add(k));
        self.use_filter(Some(Filter::new(bloom, self.config.filter_bytes_max)));
    }

    /// Does all work here and now, and passes on what is new. Nothing waits afterwards.
    pub fn flush(&mut self, mut through: impl FnMut(Fingerprint, &[u8]) -> Result<()>) -> Result<()> {
        while self.has_pending() || self.has_work() {
            self.check_wanted = true;
            self.work(&mut through)?;
        }
        Ok(())
    }

    /// Does the work there is here and now, and passes on what is new.
    pub fn work(&mut self, mut through: impl FnMut(Fingerprint, &[u8]) -> Result<()>) -> Result<()> {
        assert!(!self.is_working(), "work that was taken is finished before more is done in place");
        while self.has_work() {
            self.let_through(usize::MAX, &mut through)?;
            while let Some(work) = self.take_work() {
                self.finish_work(work.run()?)?;
                self.catch_up(usize::MAX)?;
            }
        }
        Ok(())
    }

    /// URLs that went through and were not removed.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether nothing went through yet.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// How the filter does.
    pub fn filter_figures(&self) -> FilterFigures {
        let filter = self.filter.as_ref();
        FilterFigures {
            bytes: filter.map_or(0, |f| f.bloom.bytes()),
            error_now: filter.map_or(1.0, |f| f.bloom.expected_error()),
            ..self.figures
        }
    }
}

impl Filter {
    fn new(bloom: BlockedBloom, bytes_max: usize) -> Filter {
        let (largest, _) = filter_size(u64::MAX, bytes_max);
        let is_full = |keys: u64| match bloom.bytes() < largest {
            true => bloom.error_at(keys) > FILTER_ERROR,
            false => bloom.best_error_with_fewer(keys) * FILTER_GAIN < bloom.error_at(keys),
        };
        let mut keys_max = bloom.len().max(16);
        while !is_full(keys_max) && keys_max < 1 << 50 {
            keys_max += keys_max / 8;
        }
        Filter { bloom, keys_max, error: 0.0, error_until: 0 }
    }

    /// The expected error, computed anew when the keys are a thousandth more.
    fn error(&mut self) -> f64 {
        let keys = self.bloom.len();
        if keys >= self.error_until {
            self.error = self.bloom.expected_error();
            self.error_until = keys + keys / 1024 + 1;
        }
        self.error
    }
}

/// Size of the filter for so many keys, with room to grow, and the number of keys that its probes should suit.
fn filter_size(keys: u64, bytes_max: usize) -> (usize, u64) {
    // The largest one and its predecessor share the memory. All sizes are fractions of that of the largest, in whole lines.
    let largest = (bytes_max / (FILTER_GROWTH + 1) * FILTER_GROWTH).max(64);
    let size = |fraction: usize| largest / fraction / 64 * 64;
    // At the error wanted a key takes about ten bits.
    let capacity = |bytes: usize| bytes as u64 * 8 / 10;
    let mut fraction = 1;
    while size(fraction * FILTER_GROWTH) >= FILTER_BYTES_FIRST {
        fraction *= FILTER_GROWTH;
    }
    while fraction > 1 && capacity(size(fraction)) < keys.saturating_mul(2) {
        fraction /= FILTER_GROWTH;
    }
    let (bytes, largest) = (size(fraction), size(1));
    // The largest has to bear more than it should.
    if bytes == largest { (bytes, (2 * capacity(bytes)).max(keys.saturating_mul(2))) } else { (bytes, capacity(bytes)) }
}

fn file_name(number: u64) -> String {
    format!("{DIR}/{number:08}")
}

#[cfg(test)]
mod tests;
