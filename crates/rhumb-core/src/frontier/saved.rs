//! Figures for people, and the frontier as bytes of a checkpoint.

use std::cmp::Reverse;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::fifo::{self, Fifo};
use rhumb_store::table::{TableDone, TableWork};
use rhumb_store::{Result, StoreError, Timestamp};

use super::Frontier;
use super::aside::Aside;
use super::hosts::Hosts;
use super::lanes::Lanes;
use crate::priority::Random;
use crate::url::Host;

impl Frontier {
    /// Visits under way; cheap enough to be asked all the time.
    pub fn counts(&self) -> Counts {
        Counts { in_flight: self.in_flight, in_flight_pages: self.in_flight_pages }
    }

    /// How full it is.
    pub fn figures(&self, now: Timestamp) -> Figures {
        let mut figures = Figures {
            urls_waiting: self.urls_waiting(),
            urls_held: self.held.iter().map(|h| h.urls).sum(),
            hosts_held: self.held.iter().map(|h| h.hosts).sum(),
            hosts: self.hosts.known(),
            back_queues: self.slots_used() as u64,
            in_flight: self.in_flight,
            in_flight_pages: self.in_flight_pages,
            urls_aside: self.aside.len(),
            memory_bytes: self.memory_bytes() as u64,
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

    pub(super) fn urls_waiting(&self) -> u64 {
        self.waiting.saturating_sub(self.ghosts.values().map(|&n| u64::from(n)).sum())
    }

    /// When each host in play may be contacted next, for tests and status.
    pub fn contact_times(&self) -> impl Iterator<Item = (&Host, Timestamp)> {
        self.hosts.hot().map(|(_, s)| (&s.host, s.ready_at()))
    }

    fn memory_bytes(&self) -> usize {
        let queues = self.front.iter().chain([&self.revisits, self.aside.queue()]);
        let queues = queues.chain(self.slots.iter().map(|s| &s.queue));
        let lanes = self.lanes.memory_bytes();
        queues.map(Fifo::memory_bytes).sum::<usize>() + lanes + self.hosts.memory_bytes() + self.ghosts.len() * 32
    }

    /// Work on the host table that is due; to be run anywhere and given back to [`Frontier::finish_work`].
    pub fn take_work(&mut self) -> Option<TableWork> {
        self.hosts.take_work()
    }

    /// The work is done.
    pub fn finish_work(&mut self, done: TableDone) {
        self.hosts.finish_work(done);
    }

    /// Names of files that the next checkpoint no longer needs.
    pub fn take_garbage(&mut self) -> Vec<String> {
        let mut names = std::mem::take(&mut self.garbage);
        names.append(&mut self.hosts.take_garbage());
        names
    }

    /// Whether the checkpoint that was just loaded needs a file of the queues or of the host table. Queues of held hosts are many
    /// and lie in the table, so that segments are told by their numbers, not by asking who has them: those that came later are
    /// not needed, nor are those that the checkpoint no longer needed and a crash kept from being removed.
    pub fn needs_file(&self, name: &str) -> bool {
        match fifo::segment_number(name) {
            Some(number) => number < self.next_segment && !self.consumed.iter().any(|c| c == name),
            None => self.hosts.file_names().any(|n| n == name),
        }
    }

    /// Writes the state into a checkpoint. What changed of hosts and their queues goes to the host table; `unsynced` takes
    /// the names of files that must be durable before the checkpoint is.
    pub fn save(&mut self, into: &mut Vec<u8>, unsynced: &mut Vec<String>) -> Result<()> {
        into.put_u64(self.random.state());
        into.put_u64(self.next_segment);
        into.put_u64(self.garbage.len() as u64);
        self.garbage.iter().for_each(|name| into.put_str(name));
        into.put_u64(self.front.len() as u64);
        for queue in &mut self.front {
            queue.take_unsynced(unsynced);
            queue.save(&[], into);
        }
        self.revisits.take_unsynced(unsynced);
        let head = self.revisit_head.as_ref().map(|(due, entry)| {
            let mut bytes = Vec::new();
            bytes.put_u64(due.0);
            bytes.extend_from_slice(entry);
            bytes
        });
        self.revisits.save(head.as_slice(), into);
        self.traps.save(into);
        self.aside.save(into, unsynced);
        self.lanes.save(into, unsynced);
        into.put_u8(u8::from(self.finished));
        for count in &self.held {
            into.put_u64(count.hosts);
            into.put_u64(count.urls);
        }
        self.hosts.save(&mut self.slots, into, unsynced)?;
        into.put_u64(self.ghosts.len() as u64);
        for (&(key, attempt), &count) in &self.ghosts {
            into.put_u64(key);
            into.put_u8(attempt);
            into.put_u64(u64::from(count));
        }
        Ok(())
    }

    /// Reads what [`Frontier::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<()> {
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        self.random = Random::new(from.u64().map_err(malformed)?);
        self.next_segment = from.u64().map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            self.consumed.push(from.str().map_err(malformed)?.to_string());
        }
        // With another number of levels the checkpoint is of no use, and the log is folded anew.
        if from.u64().map_err(malformed)? != self.front.len() as u64 {
            return Err(malformed(Malformed("the number of front queues has changed")));
        }
        for queue in &mut self.front {
            *queue = Fifo::load(from, &*self.disk)?;
        }
        self.revisits = Fifo::load(from, &*self.disk)?;
        self.traps.load(from).map_err(malformed)?;
        self.aside = Aside::load(from, &*self.disk)?;
        self.lanes = Lanes::load(from, &*self.disk)?;
        self.fill_lanes()?;
        self.finished = from.u8().map_err(malformed)? == 1;
        for count in &mut self.held {
            count.hosts = from.u64().map_err(malformed)?;
            count.urls = from.u64().map_err(malformed)?;
        }
        let (hosts, queues) = Hosts::load(self.disk.clone(), self.config.clone(), from)?;
        self.hosts = hosts;
        for (key, queue) in queues {
            let slot = self.open_slot(key);
            self.slots[slot as usize].queue = queue;
            self.schedule_or_release(slot);
        }
        for _ in 0..from.u64().map_err(malformed)? {
            let key = (from.u64().map_err(malformed)?, from.u8().map_err(malformed)?);
            self.ghosts.insert(key, from.u32().map_err(malformed)?);
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
    /// URLs that a learned rule holds back.
    pub urls_aside: u64,
    /// URLs of hosts that are held.
    pub urls_held: u64,
    /// Hosts that are held.
    pub hosts_held: u64,
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
    /// What queues and hosts take of the memory, about.
    pub memory_bytes: u64,
}
