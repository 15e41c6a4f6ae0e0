//! Figures for people, and the frontier as bytes of a checkpoint.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::fifo::Fifo;
use rhumb_store::{Result, Timestamp};

use super::Frontier;
use super::host::HostState;
use crate::priority::Random;
use crate::url::Host;
use crate::visit::Entry;

impl Frontier {
    /// Visits under way; cheap enough to be asked all the time.
    pub fn counts(&self) -> Counts {
        Counts { in_flight: self.in_flight, in_flight_pages: self.in_flight_pages }
    }

    /// How full it is.
    pub fn figures(&self, now: Timestamp) -> Figures {
        let mut figures = Figures {
            urls_waiting: self.waiting.saturating_sub(self.ghosts.values().map(|&n| u64::from(n)).sum()),
            hosts: self.hosts.len() as u64,
            back_queues: self.slots_used() as u64,
            in_flight: self.in_flight,
            in_flight_pages: self.in_flight_pages,
            ..Figures::default()
        };
        for Reverse((at, _)) in &self.ready {
            if *at <= now {
                figures.hosts_ready += 1;
            } else {
                figures.hosts_waiting += 1;
            }
        }
        figures
    }

    /// When each host may be contacted next, for tests and status.
    pub fn contact_times(&self) -> impl Iterator<Item = (&Host, Timestamp)> {
        self.hosts.values().map(|s| (&s.host, s.ready_at()))
    }

    /// Names of files that the next checkpoint no longer needs.
    pub fn take_garbage(&mut self) -> Vec<String> {
        let queues =
            self.front.iter_mut().chain([&mut self.revisits]).chain(self.slots.iter_mut().map(|s| &mut s.queue));
        queues.flat_map(Fifo::take_garbage).collect()
    }

    /// Names of files that a checkpoint taken now needs.
    pub fn file_names(&self) -> BTreeSet<String> {
        let queues = self.front.iter().chain([&self.revisits]).chain(self.slots.iter().map(|s| &s.queue));
        queues.flat_map(|q| q.segment_names().map(String::from).collect::<Vec<_>>()).collect()
    }

    /// Writes the state into a checkpoint.
    pub fn save(&self, into: &mut Vec<u8>) -> Result<()> {
        into.put_u64(self.random.state());
        into.put_u64(self.next_segment);
        into.put_u64(self.front.len() as u64);
        for queue in &self.front {
            queue.sync(&*self.disk)?;
            queue.save(&[], into);
        }
        self.revisits.sync(&*self.disk)?;
        let head = self.revisit_head.as_ref().map(|(due, entry)| {
            let mut bytes = Vec::new();
            bytes.put_u64(due.0);
            bytes.extend_from_slice(entry);
            bytes
        });
        self.revisits.save(head.as_slice(), into);
        into.put_u64(self.hosts.len() as u64);
        for state in self.hosts.values() {
            state.save(into);
            match state.slot {
                None => into.put_u8(0),
                Some(slot) => {
                    into.put_u8(1);
                    let queue = &self.slots[slot as usize].queue;
                    queue.sync(&*self.disk)?;
                    // What is under way waits again after a restart, first in line.
                    let under_way = state.in_flight.as_ref().and_then(|f| f.entry.as_ref()).map(Entry::to_bytes);
                    queue.save(under_way.as_slice(), into);
                }
            }
        }
        into.put_u64(self.ghosts.len() as u64);
        for (&(key, attempt), &count) in &self.ghosts {
            into.put_u64(key);
            into.put_u8(attempt);
            into.put_u64(u64::from(count));
        }
        Ok(())
    }

    /// Reads what [`Frontier::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        self.random = Random::new(from.u64()?);
        self.next_segment = from.u64()?;
        let saved = from.u64()? as usize;
        for level in 0..saved {
            let queue = Fifo::load(from)?;
            // With another number of levels the checkpoint is of no use, and the log is folded anew.
            if level < self.front.len() {
                self.front[level] = queue;
            } else {
                return Err(Malformed("the number of front queues has changed"));
            }
        }
        self.revisits = Fifo::load(from)?;
        for _ in 0..from.u64()? {
            let state = HostState::load(from)?;
            let key = state.host.fingerprint().0;
            self.hosts.insert(key, state);
            if from.u8()? == 1 {
                let queue = Fifo::load(from)?;
                let slot = self.open_slot(key);
                self.slots[slot as usize].queue = queue;
                self.schedule_or_release(slot);
            }
        }
        for _ in 0..from.u64()? {
            let key = (from.u64()?, from.u8()?);
            self.ghosts.insert(key, from.u32()?);
        }
        self.waiting = self.waiting_in_front() + self.slots.iter().map(|s| s.queue.len()).sum::<u64>();
        Ok(())
    }
}

/// Visits under way.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// All of them.
    pub in_flight: u64,
    /// Those that fetch a page.
    pub in_flight_pages: u64,
}

/// How full the frontier is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// URLs waiting.
    pub urls_waiting: u64,
    /// Hosts known.
    pub hosts: u64,
    /// Back queues in use.
    pub back_queues: u64,
    /// Visits under way.
    pub in_flight: u64,
    /// Of these, pages rather than robots.txt.
    pub in_flight_pages: u64,
    /// Hosts that may be contacted now.
    pub hosts_ready: u64,
    /// Hosts whose pause is not over.
    pub hosts_waiting: u64,
}
