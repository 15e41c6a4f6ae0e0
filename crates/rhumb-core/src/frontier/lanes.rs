//! When each held host is due: a few queues on disk instead of a heap in memory.
//!
//! Hosts are held for a handful of times (`probe_ms`), give or take a little. A *lane* is a queue of those held for about the same
//! time, so its first is due first, or nearly: one behind it may have to wait for it a little, which is one more jitter.
//! Memory is two blocks for each lane in use. An entry holds only while the host still says so; a crash may bring some back,
//! and they are passed over.

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::fifo::Fifo;
use rhumb_store::{Result, Timestamp};

use super::{Frontier, malformed};
use crate::url::Host;

/// One for each power of two of milliseconds up to some 35 years, and one for hosts that are not due by time.
pub(super) const LANES: usize = 41;

/// A held host, and when it is to be tried.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// `None`: not by time.
    pub at: Option<Timestamp>,
    /// When it was held; tells the entry from older ones.
    pub since: Timestamp,
    /// When it was put into its lane.
    pub queued: Timestamp,
    pub host: Host,
}

impl Due {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.host.as_str().len() + 16);
        bytes.put_u64(self.at.map_or(0, |t| t.0 + 1));
        bytes.put_u64(self.since.0);
        bytes.put_u64(self.queued.0);
        bytes.put_str(self.host.as_str());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Due, Malformed> {
        let mut from = Take::new(bytes);
        Ok(Due {
            at: from.u64()?.checked_sub(1).map(Timestamp),
            since: Timestamp(from.u64()?),
            queued: Timestamp(from.u64()?),
            host: Host::from_canonical(from.str()?).ok_or(Malformed("a host is not an origin"))?,
        })
    }
}

#[derive(Default)]
struct Lane {
    queue: Fifo,
    head: Option<Due>,
}

/// See the module's header.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// All that were put here before this are due.
    all_before: Timestamp,
    /// The earliest of all heads.
    next: Timestamp,
}

impl Lanes {
    pub fn new() -> Lanes {
        Lanes {
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            all_before: Timestamp(0),
            next: Timestamp(u64::MAX),
        }
    }

    /// When the next host is due; the end of time if none is.
    pub fn next_due(&self) -> Timestamp {
        self.next
    }

    /// Every host that is here by `at` is due at once.
    pub fn all_due(&mut self, at: Timestamp) {
        self.all_before = at;
        self.find_next();
    }

    fn due(&self, due: &Due) -> Timestamp {
        if due.queued < self.all_before { Timestamp(0) } else { due.at.unwrap_or(Timestamp(u64::MAX)) }
    }

    fn find_next(&mut self) {
        let heads = self.lanes.iter().filter_map(|l| l.head.as_ref());
        self.next = heads.map(|d| self.due(d)).min().unwrap_or(Timestamp(u64::MAX));
    }

    pub fn memory_bytes(&self) -> usize {
        self.lanes.iter().map(|l| l.queue.memory_bytes()).sum::<usize>() + LANES * size_of::<Lane>()
    }

    pub fn save(&mut self, into: &mut Vec<u8>, unsynced: &mut Vec<String>) {
        into.put_u64(self.all_before.0);
        into.put_u64(LANES as u64);
        for lane in &mut self.lanes {
            lane.queue.take_unsynced(unsynced);
            lane.queue.save(lane.head.as_ref().map(Due::to_bytes).as_slice(), into);
        }
    }

    pub fn load(from: &mut Take<'_>, disk: &dyn Disk) -> Result<Lanes> {
        let mut lanes = Lanes::new();
        lanes.all_before = Timestamp(from.u64().map_err(malformed)?);
        if from.u64().map_err(malformed)? != LANES as u64 {
            return Err(malformed(Malformed("the number of lanes has changed")));
        }
        for lane in &mut lanes.lanes {
            lane.queue = Fifo::load(from, disk)?;
        }
        Ok(lanes)
    }
}

impl Frontier {
    /// Remembers when a held host is due.
    pub(super) fn push_due(&mut self, due: Due) -> Result<()> {
        let lane = match due.at {
            Some(at) => (at.ms_since(due.queued).max(1).ilog2() as usize).min(LANES - 2),
            None => LANES - 1,
        };
        let bytes = due.to_bytes();
        self.with_back(|this, on| this.lanes.lanes[lane].queue.push(&bytes, on))?;
        self.fill_head(lane)
    }

    fn fill_head(&mut self, lane: usize) -> Result<()> {
        if self.lanes.lanes[lane].head.is_none() {
            let bytes = self.with_back(|this, on| this.lanes.lanes[lane].queue.pop(on))?;
            self.lanes.lanes[lane].head = bytes.map(|b| Due::from_bytes(&b).map_err(malformed)).transpose()?;
            self.lanes.find_next();
        }
        Ok(())
    }

    /// The first host that is due.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Result<Option<Due>> {
        let is_due = |l: &Lane| l.head.as_ref().is_some_and(|d| self.lanes.due(d) <= now);
        let Some(lane) = self.lanes.lanes.iter().position(is_due) else { return Ok(None) };
        let due = self.lanes.lanes[lane].head.take();
        self.fill_head(lane)?;
        self.lanes.find_next();
        Ok(due)
    }

    /// Reads the lanes' heads after a checkpoint was loaded.
    pub(super) fn fill_lanes(&mut self) -> Result<()> {
        (0..LANES).try_for_each(|lane| self.fill_head(lane))
    }
}
