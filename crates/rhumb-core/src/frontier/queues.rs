//! Front queues, back queues and the ready heap: how a URL moves from one to the next.

use std::cmp::Reverse;

use rhumb_store::codec::Take;
use rhumb_store::fifo::{Fifo, FifoDisk};
use rhumb_store::{Result, Timestamp};

use super::host::{Connection, Robots};
use super::{Frontier, MOVES_MAX, Slot, ghost_key, malformed};
use crate::visit::Entry;

impl Frontier {
    pub(super) fn admit_revisits(&mut self, now: Timestamp) -> Result<()> {
        if self.config.revisit_ms.is_none() {
            return Ok(());
        }
        for _ in 0..MOVES_MAX {
            if self.revisit_head.is_none() {
                let Some(bytes) = self.with_front(|this, on| this.revisits.pop(on))? else { return Ok(()) };
                let mut take = Take::new(&bytes);
                let due = Timestamp(take.u64().map_err(malformed)?);
                self.revisit_head = Some((due, take.rest().to_vec()));
            }
            match self.revisit_head.take() {
                Some((due, entry)) if due <= now => self.admit(&Entry::from_bytes(&entry).map_err(malformed)?)?,
                later => {
                    self.revisit_head = later;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Moves URLs from the front queues until `wanted` back queues are in use, a few at a time. True if none of them
    /// came into a back queue, and there are more: ghosts, and URLs of held hosts.
    pub(super) fn fill_back_queues(&mut self, wanted: usize) -> Result<bool> {
        let mut placed = false;
        for _ in 0..MOVES_MAX {
            if self.slots_used() >= wanted || self.waiting_in_front() == 0 {
                return Ok(false);
            }
            // Biased random selection: each level is half as likely as the one above it.
            let filled = |this: &Self| (0..this.front.len()).filter(|&i| !this.front[i].is_empty()).count();
            let drawn = (self.random.next().trailing_ones() as usize).min(filled(self) - 1);
            let level = (0..self.front.len()).filter(|&i| !self.front[i].is_empty()).nth(drawn);
            let level = level.expect("fewer were drawn than are filled");
            if let Some(bytes) = self.with_front(|this, on| this.front[level].pop(on))? {
                let entry = Entry::from_bytes(&bytes).map_err(malformed)?;
                if self.is_ghost(&entry) {
                    self.waiting -= 1;
                } else {
                    placed |= self.place(&entry)?;
                }
            }
        }
        Ok(!placed && self.waiting_in_front() > 0)
    }

    /// Appends a URL to its host's back queue, opening one if there is none; of a held host, to those that rest with it,
    /// and then the answer is no.
    pub(super) fn place(&mut self, entry: &Entry) -> Result<bool> {
        let host = entry.url.host();
        let key = host.fingerprint().0;
        let state = self.hosts.open(&host)?;
        let bytes = entry.to_bytes();
        let (slot, opened) = match (state.slot, &state.held, state.parked.is_some()) {
            (None, Some(hold), true) => {
                let reason = hold.reason;
                self.count_held(reason).urls += 1;
                self.waiting -= 1;
                self.park(key, &bytes)?;
                return Ok(false);
            }
            (Some(slot), ..) => (slot, false),
            (None, ..) => (self.open_slot(key), true),
        };
        self.with_back(|this, on| this.slots[slot as usize].queue.push(&bytes, on))?;
        if opened || !self.slots[slot as usize].queued {
            self.schedule(slot);
        }
        Ok(true)
    }

    /// Adds to the URLs that rest with a held host.
    fn park(&mut self, key: u64, entry: &[u8]) -> Result<()> {
        let state = self.hosts.get_mut(key).expect("a host is opened before its URLs are parked");
        let mut queue = state.parked.take().expect("the caller looked");
        self.with_back(|_, on| queue.push(entry, on))?;
        if let Some(state) = self.hosts.get_mut(key) {
            state.parked = Some(queue);
        }
        self.hosts.recount(key);
        Ok(())
    }

    pub(super) fn open_slot(&mut self, key: u64) -> u32 {
        let slot = self.slots_free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].host = key;
        let state = self.hosts.get_mut(key).expect("a host is opened before its back queue");
        state.slot = Some(slot);
        // The name is looked up as soon as the host has a back queue, so that no visit has to wait for it; unless it will be held for
        // its domain's sake, as one of names without end.
        let (domain, pages) = (state.domain, u64::from(state.pages));
        let over = self.hosts.domain_in_memory(domain).is_some_and(|d| d.is_over(&self.config.budget, pages));
        let state = self.hosts.get_mut(key).expect("a host is opened before its back queue");
        if !over
            && state.addresses.is_none()
            && !state.resolving
            && state.down.is_none()
            && state.host.rules().needs_dns
            && state.host.ip_literal().is_none()
        {
            state.resolving = true;
            self.unresolved.push(state.host.clone());
        }
        slot
    }

    /// Puts a back queue into the ready heap, unless something must happen first.
    pub(super) fn schedule(&mut self, slot: u32) {
        let queued = self.slots[slot as usize].queued;
        let state = self.hosts.of_slot(&self.slots[slot as usize]);
        let parked = matches!(state.robots, Robots::Elsewhere) && state.errands.is_empty() && state.down.is_none();
        let closing = matches!(state.connection, Connection::Closing(_));
        let waits = self.slots[slot as usize].in_line || state.in_flight.is_some() || state.resolving;
        if state.slot != Some(slot) || queued || waits || parked || closing {
            return;
        }
        // A host that is given up or to be held is not contacted, so it need not wait to be told.
        let failed = state.failures >= self.config.host_failures_max
            || state.failures > 0 && state.held.as_ref().is_some_and(|h| h.is_broken_circuit());
        let at = if state.down.is_some() || failed { Timestamp(0) } else { state.ready_at() };
        self.ready.push(Reverse((at, slot)));
        self.slots[slot as usize].queued = true;
    }

    pub(super) fn schedule_or_release(&mut self, slot: u32) {
        let key = self.slots[slot as usize].host;
        let state = self.hosts.of_slot_mut(&self.slots[slot as usize]);
        let empty = self.slots[slot as usize].queue.is_empty() && state.errands.is_empty();
        let queued = self.slots[slot as usize].queued || self.slots[slot as usize].in_line;
        if empty && !queued && state.in_flight.is_none() && !state.resolving && state.slot == Some(slot) {
            state.slot = None;
            // Nothing is left to be held.
            state.held = None;
            let address = state.addresses.as_ref().and_then(|(a, _)| a.first().copied());
            self.slots_free.push(slot);
            self.probe_is_over(key);
            self.hosts.cool(key);
            // Its turn at the address, if it had one, goes to the next.
            address.into_iter().for_each(|address| self.wake_next_at(address));
        } else {
            self.schedule(slot);
        }
    }

    pub(super) fn slots_used(&self) -> usize {
        self.slots.len() - self.slots_free.len()
    }

    pub(super) fn has_slot_for(&self, entry: &Entry) -> bool {
        self.slots_used() < self.config.back_queues
            || self.hosts.get(entry.url.host().fingerprint().0).is_some_and(|h| h.slot.is_some())
    }

    pub(super) fn waiting_in_front(&self) -> u64 {
        self.front.iter().map(Fifo::len).sum()
    }

    /// Whether a crash brought this entry back although it is finished; it is so once.
    pub(super) fn is_ghost(&mut self, entry: &Entry) -> bool {
        if self.ghosts.is_empty() {
            return false;
        }
        let key = ghost_key(entry);
        match self.ghosts.get_mut(&key) {
            None => return false,
            Some(1) => {
                self.ghosts.remove(&key);
            }
            Some(count) => *count -= 1,
        }
        true
    }

    /// Takes finished entries out of all queues. A replay of a long log would otherwise remember every page.
    pub(super) fn sweep_ghosts(&mut self) -> Result<()> {
        let levels = self.front.len();
        for i in 0..levels + self.slots.len() {
            let old = if i < levels {
                std::mem::take(&mut self.front[i])
            } else {
                std::mem::take(&mut self.slots[i - levels].queue)
            };
            let kept = self.without_ghosts(old, i < levels)?;
            if i < levels {
                self.front[i] = kept;
            } else {
                self.slots[i - levels].queue = kept;
            }
        }
        Ok(())
    }

    pub(super) fn without_ghosts(&mut self, mut queue: Fifo, front: bool) -> Result<Fifo> {
        let mut kept = Fifo::default();
        let block_bytes = if front { self.config.front_block_bytes } else { self.config.block_bytes };
        while let Some(bytes) = self.with_disk(block_bytes, |_, on| queue.pop(on))? {
            if self.is_ghost(&Entry::from_bytes(&bytes).map_err(malformed)?) {
                self.waiting -= 1;
            } else {
                self.with_disk(block_bytes, |_, on| kept.push(&bytes, on))?;
            }
        }
        Ok(kept)
    }

    pub(super) fn with_front<T>(&mut self, f: impl FnOnce(&mut Self, &mut FifoDisk<'_>) -> Result<T>) -> Result<T> {
        self.with_disk(self.config.front_block_bytes, f)
    }

    pub(super) fn with_back<T>(&mut self, f: impl FnOnce(&mut Self, &mut FifoDisk<'_>) -> Result<T>) -> Result<T> {
        self.with_disk(self.config.block_bytes, f)
    }

    fn with_disk<T>(
        &mut self,
        block_bytes: usize,
        f: impl FnOnce(&mut Self, &mut FifoDisk<'_>) -> Result<T>,
    ) -> Result<T> {
        let disk = self.disk.clone();
        let mut next_number = self.next_segment;
        let mut garbage = std::mem::take(&mut self.garbage);
        let on = &mut FifoDisk { disk: &*disk, next_number: &mut next_number, block_bytes, garbage: &mut garbage };
        let done = f(self, on);
        self.next_segment = next_number;
        self.garbage = garbage;
        done
    }
}
