//! Registrable domains and what they may cost: those in use are in memory, and of the others only what is worth remembering is in the
//! host table.
//!
//! Nearly all domains are healthy: they have at least the credit that they began with, and a few hosts. Those are forgotten when
//! others need the room, and nothing is read or written for them, so that a crawl of millions of domains does not pay for the
//! few that are traps. What is stored is known by a small filter, which is part of a checkpoint.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use rhumb_store::Result;
use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::table::Table;

use super::budget::{BudgetConfig, Domain};
use super::hosts::malformed;
use crate::sieve::AsIs;

/// Bits of the filter: 8 KiB serve some ten thousand stored domains well, and beyond that it only errs more often.
const FILTER_BITS: u64 = 1 << 16;

/// See the module's header.
pub(super) struct Domains {
    hot: HashMap<u64, Domain, BuildHasherDefault<AsIs>>,
    /// In the order they came.
    order: VecDeque<u64>,
    /// Of the keys that have a line in the table; empty if none has.
    filter: Vec<u8>,
    max: usize,
}

impl Domains {
    pub fn new(max: usize) -> Domains {
        Domains { hot: HashMap::default(), order: VecDeque::new(), filter: Vec::new(), max }
    }

    pub fn len(&self) -> usize {
        self.hot.len()
    }

    /// A domain in memory.
    pub fn in_memory(&self, key: u64) -> Option<&Domain> {
        self.hot.get(&key)
    }

    /// A domain, if anything is known of it.
    pub fn known(&mut self, key: u64, table: &mut Table, budget: &BudgetConfig) -> Result<Option<&mut Domain>> {
        if !self.hot.contains_key(&key) && !self.may_be_stored(key) {
            return Ok(None);
        }
        self.get(key, table, budget).map(Some)
    }

    /// A domain, to be changed by whoever marks it as dirty.
    pub fn get(&mut self, key: u64, table: &mut Table, budget: &BudgetConfig) -> Result<&mut Domain> {
        if !self.hot.contains_key(&key) {
            self.make_room(table, budget)?;
            let stored = if self.may_be_stored(key) { table.get(key)? } else { None };
            let domain = match stored {
                Some(bytes) => Domain::load(bytes, budget).map_err(malformed)?,
                None => Domain::new(budget),
            };
            self.hot.insert(key, domain);
            self.order.push_back(key);
        }
        let domain = self.hot.get_mut(&key).expect("it was just put there");
        domain.used = true;
        Ok(domain)
    }

    /// The domain that came first leaves, unless it was asked for meanwhile.
    fn make_room(&mut self, table: &mut Table, budget: &BudgetConfig) -> Result<()> {
        while self.hot.len() >= self.max {
            let Some(key) = self.order.pop_front() else { return Ok(()) };
            let Some(domain) = self.hot.get_mut(&key) else { continue };
            if std::mem::take(&mut domain.used) {
                self.order.push_back(key);
                continue;
            }
            if let Some(mut domain) = self.hot.remove(&key)
                && store(&mut self.filter, key, &mut domain, table, budget)
                && table.needs_settle()
            {
                table.settle()?;
            }
        }
        Ok(())
    }

    fn may_be_stored(&self, key: u64) -> bool {
        !self.filter.is_empty() && places(key).all(|bit| self.filter[(bit / 8) as usize] & 1 << (bit % 8) != 0)
    }

    /// Writes what changed and is worth it to the table, and the filter into a checkpoint.
    pub fn save(&mut self, table: &mut Table, budget: &BudgetConfig, into: &mut Vec<u8>) {
        for (&key, domain) in &mut self.hot {
            store(&mut self.filter, key, domain, table, budget);
        }
        into.put_bytes(&self.filter);
    }

    /// Reads what [`Domains::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        self.filter = from.bytes()?.to_vec();
        let length = self.filter.len() as u64;
        if length == 0 || length == FILTER_BITS / 8 { Ok(()) } else { Err(Malformed("a filter of odd length")) }
    }
}

/// Puts a domain into the table, if it changed and there is something to remember or to correct there.
fn store(filter: &mut Vec<u8>, key: u64, domain: &mut Domain, table: &mut Table, budget: &BudgetConfig) -> bool {
    if !std::mem::take(&mut domain.dirty) || !(domain.stored || domain.is_notable(budget)) {
        return false;
    }
    domain.stored = true;
    filter.resize((FILTER_BITS / 8) as usize, 0);
    places(key).for_each(|bit| filter[(bit / 8) as usize] |= 1 << (bit % 8));
    let mut bytes = Vec::with_capacity(24);
    domain.save(&mut bytes);
    table.put(key, &bytes);
    true
}

/// The bits of a key.
fn places(key: u64) -> impl Iterator<Item = u64> {
    [key, key >> 20, key >> 40].into_iter().map(|word| word % FILTER_BITS)
}
