//! The host table: the hosts in play are in memory, all others on disk.
//!
//! A host is *hot* while it has a back queue, a contact or a connection, and for as long after that as there is room. Then it
//! cools: its state goes to a [`Table`] on disk, and comes back when a URL of the host is placed or the log speaks of it.
//! The URLs of a held host go and come with it. So memory follows the setting, not the number of hosts met. What changed since
//! the last checkpoint is listed, and [`Hosts::save`] writes only that.
//!
//! The same table has two more kinds of lines, under keys of their own: what registrable domains may cost, of which those in use are
//! in memory, and rules too large to be kept in memory with their host.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::fifo::Fifo;
use rhumb_store::table::{Table, TableDone, TableWork};
use rhumb_store::{Result, StoreError};

use super::budget::Domain;
use super::domains::Domains;
use super::host::{Connection, HostState, KnownRules, Robots};
use super::{FrontierConfig, Slot, config};
use crate::robots::Rules;
use crate::sieve::AsIs;
use crate::url::{Fingerprint, Host, Url};

/// The directory of the hosts on disk.
pub const DIR: &str = "state/hosts";
/// Hosts looked at, at the most, to make room for one.
const LOOKS_MAX: usize = 8;

/// See the module's header.
pub(super) struct Hosts {
    hot: HashMap<u64, HostState, BuildHasherDefault<AsIs>>,
    table: Table,
    disk: Arc<dyn Disk>,
    /// Hosts that may leave, in the order they became idle. One that came into play again is passed over.
    cooling: VecDeque<u64>,
    /// Hosts that changed since the last checkpoint.
    dirty: Vec<u64>,
    /// Hosts ever met.
    known: u64,
    /// What the hot hosts take, about.
    bytes: usize,
    config: Arc<FrontierConfig>,
    domains: Domains,
    /// Segments of parked queues that left memory before they were durable.
    unsynced: Vec<String>,
}

impl Hosts {
    pub fn new(disk: Arc<dyn Disk>, config: Arc<FrontierConfig>) -> Result<Hosts> {
        Ok(Hosts {
            hot: HashMap::default(),
            table: Table::new(disk.clone(), DIR, config.table)?,
            disk,
            cooling: VecDeque::new(),
            dirty: Vec::new(),
            known: 0,
            bytes: 0,
            domains: Domains::new(config.domains_max()),
            config,
            unsynced: Vec::new(),
        })
    }

    /// A host in play.
    pub fn get(&self, key: u64) -> Option<&HostState> {
        self.hot.get(&key)
    }

    /// A host in play, to be changed.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut HostState> {
        let state = self.hot.get_mut(&key)?;
        mark(state, key, &mut self.dirty);
        Some(state)
    }

    /// The host of a back queue, which is always in play.
    pub fn of_slot(&self, slot: &Slot) -> &HostState {
        self.hot.get(&slot.host).expect("a back queue's host is in play")
    }

    /// The host of a back queue, to be changed.
    pub fn of_slot_mut(&mut self, slot: &Slot) -> &mut HostState {
        self.get_mut(slot.host).expect("a back queue's host is in play")
    }

    /// Brings a host into play, from disk or as a new one.
    pub fn open(&mut self, host: &Host) -> Result<&mut HostState> {
        let key = host.fingerprint().0;
        if !self.hot.contains_key(&key) {
            self.make_room()?;
            let state = match self.table.get(key)? {
                Some(bytes) => {
                    let (mut state, queue) = load_host(bytes, &self.config).map_err(malformed)?;
                    if let Some(mut queue) = queue {
                        if state.held.is_none() {
                            return Err(malformed(Malformed("a host at rest has a back queue")));
                        }
                        state.parked = Some(Box::new(Fifo::load(&mut queue, &*self.disk)?));
                    }
                    state
                }
                None => {
                    self.known += 1;
                    let state = HostState::new(host.clone(), &self.config);
                    let domain = self.domain(state.domain)?;
                    domain.hosts = domain.hosts.saturating_add(1);
                    domain.dirty = true;
                    state
                }
            };
            self.insert(key, state);
        }
        Ok(self.get_mut(key).expect("it was just put there"))
    }

    fn insert(&mut self, key: u64, mut state: HostState) {
        state.bytes_counted = state.memory_bytes();
        self.bytes += state.bytes_counted;
        self.hot.insert(key, state);
        self.cool(key);
    }

    /// Counts a host's memory anew: its rules may have changed.
    pub fn recount(&mut self, key: u64) {
        if let Some(state) = self.hot.get_mut(&key) {
            self.bytes -= state.bytes_counted;
            state.bytes_counted = state.memory_bytes();
            self.bytes += state.bytes_counted;
        }
    }

    /// A host may leave when there is need for room.
    pub fn cool(&mut self, key: u64) {
        if let Some(state) = self.hot.get_mut(&key)
            && !state.cooling
        {
            state.cooling = true;
            self.cooling.push_back(key);
        }
    }

    fn make_room(&mut self) -> Result<()> {
        for _ in 0..LOOKS_MAX {
            if self.bytes < self.config.hosts_bytes_max {
                return Ok(());
            }
            let Some(key) = self.cooling.pop_front() else { return Ok(()) };
            let Some(state) = self.hot.get_mut(&key) else { continue };
            state.cooling = false;
            if state.slot.is_some() {
                // It will cool again when its back queue is given up.
                continue;
            }
            if state.is_in_play() {
                self.cool(key);
                continue;
            }
            if state.dirty {
                let mut bytes = Vec::with_capacity(128);
                if let Some(parked) = &mut state.parked {
                    parked.take_unsynced(&mut self.unsynced);
                }
                save_host(state, state.parked.as_deref(), &mut bytes);
                self.put(key, &bytes)?;
            }
            let Some(state) = self.hot.get(&key) else { continue };
            self.bytes -= state.bytes_counted;
            self.hot.remove(&key);
        }
        // A host that comes and goes between two checkpoints is listed each time.
        if self.dirty.len() > 2 * self.hot.len() + 1024 {
            self.dirty.retain(|key| self.hot.get(key).is_some_and(|s| s.dirty));
            self.dirty.sort_unstable();
            self.dirty.dedup();
        }
        Ok(())
    }

    fn put(&mut self, key: u64, bytes: &[u8]) -> Result<()> {
        self.table.put(key, bytes);
        if self.table.needs_settle() { self.table.settle() } else { Ok(()) }
    }

    /// A registrable domain, to be changed by whoever marks it as dirty.
    pub fn domain(&mut self, key: u64) -> Result<&mut Domain> {
        self.domains.get(key, &mut self.table, &self.config.budget)
    }

    /// A registrable domain, if anything is known of it.
    pub fn known_domain(&mut self, key: u64) -> Result<Option<&mut Domain>> {
        self.domains.known(key, &mut self.table, &self.config.budget)
    }

    /// A registrable domain, if it is in memory.
    pub fn domain_in_memory(&self, key: u64) -> Option<&Domain> {
        self.domains.in_memory(key)
    }

    /// Keeps rules that are too large to be kept with their host.
    pub fn put_rules(&mut self, host: &Host, rules: &Rules) -> Result<()> {
        self.put(rules_key(host), rules.to_bytes())
    }

    /// What the rules of a host in play say of a URL.
    pub fn allows(&mut self, key: u64, url: &Url) -> Result<bool> {
        let Some(state) = self.hot.get(&key) else { return Ok(false) };
        let large;
        let rules = match &state.robots {
            Robots::Known { rules: KnownRules::Here(rules), .. } => rules,
            Robots::Known { rules: KnownRules::InTable { .. }, .. } => {
                let bytes = self.table.get(rules_key(&state.host))?;
                let bytes = bytes.ok_or(malformed(Malformed("the rules of a host are missing")))?;
                large = Rules::from_bytes(bytes).map_err(|_| malformed(Malformed("robots rules do not read back")))?;
                &large
            }
            _ => return Ok(false),
        };
        Ok(rules.allows(url.path_and_query()))
    }

    /// Hosts ever met.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// What the hosts in play and the changes of the table take, about.
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.domains.len() * config::DOMAIN_BYTES + self.table.memory_bytes()
    }

    /// The hosts in play.
    pub fn hot(&self) -> impl Iterator<Item = (u64, &HostState)> {
        self.hot.iter().map(|(&key, state)| (key, state))
    }

    /// A merge on disk that is due.
    pub fn take_work(&mut self) -> Option<TableWork> {
        self.table.take_work()
    }

    /// The merge is done.
    pub fn finish_work(&mut self, done: TableDone) {
        self.table.finish_work(done);
    }

    pub fn take_garbage(&mut self) -> Vec<String> {
        self.table.take_garbage()
    }

    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.table.file_names()
    }

    /// Writes what changed to the table and the table's state, with the keys of hosts that have a back queue, into a checkpoint.
    /// `unsynced` takes the names of files to be made durable first.
    pub fn save(&mut self, slots: &mut [Slot], into: &mut Vec<u8>, unsynced: &mut Vec<String>) -> Result<()> {
        let mut bytes = Vec::new();
        for key in std::mem::take(&mut self.dirty) {
            let Some(state) = self.hot.get_mut(&key).filter(|s| s.dirty) else { continue };
            state.dirty = false;
            bytes.clear();
            let queue = match state.slot {
                Some(slot) => {
                    let queue = &mut slots[slot as usize].queue;
                    queue.take_unsynced(unsynced);
                    Some(&*queue)
                }
                None => {
                    if let Some(parked) = &mut state.parked {
                        parked.take_unsynced(unsynced);
                    }
                    state.parked.as_deref()
                }
            };
            save_host(state, queue, &mut bytes);
            self.table.put(key, &bytes);
        }
        self.domains.save(&mut self.table, &self.config.budget, into);
        self.table.settle()?;
        self.table.take_unsynced(unsynced);
        unsynced.append(&mut self.unsynced);
        into.put_u64(self.known);
        self.table.save(into);
        let open: Vec<u64> = self.hot.iter().filter(|(_, s)| s.slot.is_some()).map(|(&key, _)| key).collect();
        into.put_u64(open.len() as u64);
        open.iter().for_each(|key| into.extend_from_slice(&key.to_le_bytes()));
        Ok(())
    }

    /// Reads what [`Hosts::save`] wrote; gives each host that had a back queue with the queue.
    pub fn load(
        disk: Arc<dyn Disk>,
        config: Arc<FrontierConfig>,
        from: &mut Take<'_>,
    ) -> Result<(Hosts, Vec<(u64, Fifo)>)> {
        let mut hosts = Hosts::new(disk.clone(), config.clone())?;
        hosts.domains.load(from).map_err(malformed)?;
        hosts.known = from.u64().map_err(malformed)?;
        hosts.table = Table::load(disk.clone(), DIR, config.table, from)?;
        let mut queues = Vec::new();
        for _ in 0..from.u64().map_err(malformed)? {
            let raw = from.raw(8).map_err(malformed)?;
            let key = u64::from_le_bytes([raw[0], raw[1], raw[2], raw[3], raw[4], raw[5], raw[6], raw[7]]);
            let bytes = hosts.table.get(key)?.ok_or(malformed(Malformed("a host with a back queue is missing")))?;
            let (state, queue) = load_host(bytes, &config).map_err(malformed)?;
            let mut queue = queue.ok_or(malformed(Malformed("a host has lost its back queue")))?;
            let queue = Fifo::load(&mut queue, &*disk)?;
            hosts.insert(key, state);
            queues.push((key, queue));
        }
        Ok((hosts, queues))
    }
}

fn mark(state: &mut HostState, key: u64, dirty: &mut Vec<u64>) {
    if !state.dirty {
        state.dirty = true;
        dirty.push(key);
    }
}

/// A host's bytes in the table: its state, then its back queue, or the queue that is parked with it, if it has one. What is under way stands first in the queue: it
/// waits again after a restart.
fn save_host(state: &HostState, queue: Option<&Fifo>, into: &mut Vec<u8>) {
    state.save(into);
    into.put_u8(u8::from(queue.is_some()));
    if let Some(queue) = queue {
        let under_way = state.in_flight.as_ref().and_then(|f| f.entry.as_ref()).map(|e| e.to_bytes());
        queue.save(under_way.as_slice(), into);
    }
}

fn load_host<'a>(bytes: &'a [u8], config: &FrontierConfig) -> Result<(HostState, Option<Take<'a>>), Malformed> {
    let mut from = Take::new(bytes);
    let state = HostState::load(&mut from, config)?;
    let has_queue = from.u8()? == 1;
    Ok((state, has_queue.then_some(from)))
}

/// The key of rules that are too large to be kept with their host.
fn rules_key(host: &Host) -> u64 {
    Fingerprint::of(&format!("rules {}", host.as_str())).0
}

pub(super) fn malformed(Malformed(what): Malformed) -> StoreError {
    StoreError::corrupt(DIR, 0, what)
}

impl HostState {
    /// Whether something is under way that only memory knows of.
    fn is_in_play(&self) -> bool {
        self.slot.is_some()
            || self.in_flight.is_some()
            || self.issued.is_some()
            || self.resolving
            || self.connection != Connection::None
            || !self.errands.is_empty()
            || matches!(self.robots, Robots::Elsewhere)
    }

    /// What it takes in memory, about: itself, its slot in the table, its name and its rules.
    fn memory_bytes(&self) -> usize {
        let rules = match &self.robots {
            Robots::Known { rules: KnownRules::Here(rules), .. } => rules.to_bytes().len(),
            _ => 0,
        };
        let parked = self.parked.as_ref().map_or(0, |q| q.memory_bytes() + size_of::<Fifo>());
        2 * size_of::<HostState>() + self.host.as_str().len() + 64 + rules + parked
    }
}
