//! The sieve in a checkpoint. Runs and what waits are named there, new keys are written out; the filter is made anew in the
//! background, so that a restart need not wait for it.

use std::sync::Arc;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::runs::Level;
use rhumb_store::spool::Spool;
use rhumb_store::{Result, StoreError};

use super::layer::{FingerprintSet, Layer};
use super::{Sieve, SieveConfig, Waiting};

impl Sieve {
    /// Names of files no longer needed, to be removed once a checkpoint without them is durable.
    pub fn take_garbage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.garbage)
    }

    /// Names of the files in use.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let waiting = self.waiting.iter().flat_map(|w| w.spool.file_names());
        self.levels.iter().flat_map(Level::names).chain(waiting).chain(self.tail.spool.file_names())
    }

    /// Writes the state into a checkpoint; `unsynced` takes the names of files that must be durable before it is. Work may be
    /// out: what it will come to is not part of the state yet.
    pub fn save(&mut self, into: &mut Vec<u8>, unsynced: &mut Vec<String>) {
        for waiting in self.waiting.iter_mut().filter(|w| !w.synced) {
            unsynced.extend(waiting.spool.file_names().map(String::from));
            waiting.synced = true;
        }
        unsynced.extend(self.tail.spool.file_names().map(String::from));
        into.put_u64(self.next_file);
        into.put_u64(self.keys);
        into.put_u64(self.levels.len() as u64);
        for level in &self.levels {
            into.put_str(level.added.name());
            into.put_opt_str(level.deleted.as_ref().map(|d| d.name()));
        }
        into.put_u8(u8::from(self.frozen.is_some()));
        for layer in self.frozen.as_deref().into_iter().chain([&self.fresh]) {
            put_keys(&layer.added, into);
            put_keys(&layer.deleted, into);
        }
        into.put_u64(self.waiting.len() as u64 + 1);
        let waiting = self.waiting.iter().map(|w| (&*w.spool, w.done));
        for (spool, done) in waiting.chain([(&self.tail.spool, 0)]) {
            into.put_u64(u64::from(done));
            spool.save(into);
        }
    }

    /// Reads what [`Sieve::save`] wrote and opens the files.
    pub fn load(disk: Arc<dyn Disk>, config: SieveConfig, from: &mut Take<'_>) -> Result<Sieve> {
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        let mut sieve = Sieve::blank(disk.clone(), config)?;
        sieve.next_file = from.u64().map_err(malformed)?;
        sieve.keys = from.u64().map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            let added = from.str().map_err(malformed)?;
            let deleted = from.opt_str().map_err(malformed)?;
            sieve.levels.push(Level::open(&*disk, added, deleted)?);
        }
        if from.u8().map_err(malformed)? != 0 {
            sieve.frozen = Some(Arc::new(take_layer(from).map_err(malformed)?));
        }
        sieve.fresh = take_layer(from).map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            let done = from.u32().map_err(malformed)?;
            let spool = Spool::load(&*disk, from)?;
            if !spool.is_empty() {
                sieve.waiting.push_back(Waiting { spool: spool.seal(), asked: 0, done, synced: true });
            }
        }
        // The batch that grew is not added to: a new one begins, under a name that no checkpoint knows yet.
        sieve.tail.spool = Spool::new(&sieve.new_file_name());
        if sieve.levels.is_empty() {
            sieve.fill_filter_from_memory();
        }
        Ok(sieve)
    }
}

fn put_keys(keys: &FingerprintSet, into: &mut Vec<u8>) {
    into.put_u64(keys.len() as u64);
    into.reserve(keys.len() * 8);
    keys.iter().for_each(|k| into.extend_from_slice(&k.to_le_bytes()));
}

fn take_layer(from: &mut Take<'_>) -> Result<Layer, Malformed> {
    Ok(Layer { added: take_keys(from)?, deleted: take_keys(from)? })
}

fn take_keys(from: &mut Take<'_>) -> Result<FingerprintSet, Malformed> {
    let bytes = usize::try_from(from.u64()?).ok().and_then(|n| n.checked_mul(8));
    let bytes = from.raw(bytes.ok_or(Malformed("more keys than bytes"))?)?;
    let mut keys = FingerprintSet::with_capacity_and_hasher(bytes.len() / 8, <_>::default());
    keys.extend(bytes.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)));
    Ok(keys)
}
