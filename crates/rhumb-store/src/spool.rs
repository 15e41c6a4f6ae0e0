//! Keyed entries that wait on disk until somebody has looked up their keys: the input of the URL-seen test.
//!
//! A spool has two files, one of keys, which the look-up reads, and one of entries, of which only those are read back
//! whose keys turn out to be new. Both are only appended to, and a file that a checkpoint names is used up to the length
//! stated there: what came later is as if it had not been written. The last bytes of each file are in memory and go into the
//! checkpoint, so a small spool has no file at all.

use std::sync::Arc;

use crate::codec::{Malformed, Put, Take};
use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

/// Entries are found through the place of each so many-th; as many share a checksum.
const GROUP: usize = 64;
const READ_BYTES: usize = 64 << 10;

/// Entries in the order in which they came.
pub struct Spool {
    keys: Growing,
    /// Of the keys that are in their file.
    keys_crc: u32,
    entries: Growing,
    groups: Vec<Group>,
    group_start: u64,
    scratch: Vec<u8>,
    count: usize,
}

/// Whole groups only; the one at the end has no checksum until it is full, and stays in memory.
struct Group {
    start: u64,
    crc: u32,
}

impl Spool {
    /// An empty spool, whose files, if it becomes large, have names that begin with `name`.
    pub fn new(name: &str) -> Spool {
        Spool {
            keys: Growing::new(format!("{name}.keys")),
            keys_crc: 0,
            entries: Growing::new(format!("{name}.urls")),
            groups: Vec::new(),
            group_start: 0,
            scratch: Vec::new(),
            count: 0,
        }
    }

    /// Entries in the spool.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an entry.
    pub fn push(
        &mut self,
        disk: &dyn Disk,
        buffer_bytes: usize,
        key: u64,
        entry: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        self.keys.buffer.extend_from_slice(&key.to_le_bytes());
        self.scratch.clear();
        entry(&mut self.scratch);
        self.entries.buffer.put_bytes(&self.scratch);
        self.count += 1;
        if self.count.is_multiple_of(GROUP) {
            let bytes = &self.entries.buffer[(self.group_start - self.entries.flushed) as usize..];
            self.groups.push(Group { start: self.group_start, crc: crc32fast::hash(bytes) });
            self.group_start += bytes.len() as u64;
            if self.keys.buffer.len() >= buffer_bytes {
                // Keys are read in one go and have one checksum, entries have that of their group.
                let mut crc = crc32fast::Hasher::new_with_initial(self.keys_crc);
                crc.update(&self.keys.buffer);
                self.keys_crc = crc.finalize();
                self.keys.flush(disk)?;
            }
            if self.entries.buffer.len() >= buffer_bytes {
                self.entries.flush(disk)?;
            }
        }
        Ok(())
    }

    /// Gives up memory that only a growing spool needs.
    pub fn seal(mut self) -> Arc<Spool> {
        self.scratch = Vec::new();
        for part in [&mut self.keys, &mut self.entries] {
            part.buffer.shrink_to_fit();
        }
        Arc::new(self)
    }

    /// The names of its files.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        [&self.keys, &self.entries].into_iter().filter(|s| s.file.is_some()).map(|s| s.name.as_str())
    }

    /// Calls `f` with all keys, some at a time.
    fn keys(&self, mut f: impl FnMut(&[u64])) -> Result<()> {
        let mut bytes = vec![0; READ_BYTES.min(self.count * 8)];
        let mut words = Vec::with_capacity(bytes.len() / 8);
        let mut at = 0;
        let mut crc = crc32fast::Hasher::new();
        while at < self.count as u64 * 8 {
            // Up to the end of the file, whose checksum is known, and then from memory.
            let until = if at < self.keys.flushed { self.keys.flushed } else { self.count as u64 * 8 };
            let n = (until - at).min(READ_BYTES as u64) as usize;
            self.keys.read_at(at, &mut bytes[..n])?;
            if at < self.keys.flushed {
                crc.update(&bytes[..n]);
            }
            words.clear();
            words.extend(bytes[..n].chunks_exact(8).map(le64));
            f(&words);
            at += n as u64;
        }
        if crc.finalize() != self.keys_crc {
            return Err(StoreError::corrupt(&self.keys.name, 0, "the checksum of keys that wait does not match"));
        }
        Ok(())
    }

    /// Puts all keys, each once and ascending, in the place of what is in `sorted`.
    ///
    /// They are dealt to buckets by their first bits and the buckets sorted: that needs no second copy, and a bucket
    /// fits the cache nearest to the processor.
    pub fn sorted_keys(&self, sorted: &mut Vec<u64>) -> Result<()> {
        let bits = (self.count / 1024).max(1).ilog2().min(12);
        let bucket = |key: u64| (key >> 1 >> (63 - bits)) as usize;
        let mut ends = vec![0u32; 1 << bits];
        self.keys(|keys| keys.iter().for_each(|&k| ends[bucket(k)] += 1))?;
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        sorted.clear();
        sorted.resize(self.count, 0);
        self.keys(|keys| {
            for &key in keys {
                let at = &mut ends[bucket(key)];
                sorted[*at as usize] = key;
                *at += 1;
            }
        })?;
        let mut start = 0;
        for end in ends {
            sorted[start..end as usize].sort_unstable();
            start = end as usize;
        }
        sorted.dedup();
        Ok(())
    }

    /// Where keys of the ascending `wanted` stand for the first time, in order.
    pub fn first_places(&self, wanted: &[u64]) -> Result<Vec<u32>> {
        // The first bits of a key say where in `wanted` it can be; mostly nowhere.
        let bits = (wanted.len().max(1).ilog2() + 3).clamp(8, 18);
        let bucket = |key: u64| (key >> (64 - bits)) as usize;
        let mut starts = vec![0u32; (1 << bits) + 1];
        wanted.iter().for_each(|&k| starts[bucket(k) + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut taken = vec![false; wanted.len()];
        let mut places = Vec::new();
        let mut place = 0u32;
        self.keys(|keys| {
            for &key in keys {
                let (start, end) = (starts[bucket(key)] as usize, starts[bucket(key) + 1] as usize);
                if start < end
                    && let Ok(i) = wanted[start..end].binary_search(&key)
                    && !std::mem::replace(&mut taken[start + i], true)
                {
                    places.push(place);
                }
                place += 1;
            }
        })?;
        Ok(places)
    }

    /// Writes into a checkpoint what is not in the files.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.count as u64);
        into.put_u64(self.groups.len() as u64);
        let mut start = 0;
        for group in &self.groups {
            into.put_u64(group.start - start);
            into.put_u64(u64::from(group.crc));
            start = group.start;
        }
        into.put_u64(self.group_start);
        into.put_u64(u64::from(self.keys_crc));
        for part in [&self.keys, &self.entries] {
            into.put_str(&part.name);
            into.put_u64(part.flushed);
            into.put_bytes(&part.buffer);
        }
    }

    /// Reads what [`Spool::save`] wrote.
    pub fn load(disk: &dyn Disk, from: &mut Take<'_>) -> Result<Spool> {
        let mut spool =
            Spool::take(from).map_err(|Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what))?;
        for part in [&mut spool.keys, &mut spool.entries] {
            if part.flushed > 0 {
                let file = disk.open(&part.name)?;
                if file.len()? < part.flushed {
                    return Err(StoreError::corrupt(&part.name, file.len()?, "entries that wait are missing"));
                }
                part.file = Some(file);
            }
        }
        Ok(spool)
    }

    fn take(from: &mut Take<'_>) -> Result<Spool, Malformed> {
        let mut spool = Spool::new("");
        spool.count = from.u32()? as usize;
        let mut start = 0u64;
        for _ in 0..from.u64()? {
            start = start.checked_add(from.u64()?).ok_or(Malformed("a place beyond all files"))?;
            spool.groups.push(Group { start, crc: from.u32()? });
        }
        spool.group_start = from.u64()?;
        spool.keys_crc = from.u32()?;
        for part in [&mut spool.keys, &mut spool.entries] {
            part.name = from.str()?.to_string();
            part.flushed = from.u64()?;
            part.buffer = from.bytes()?.to_vec();
        }
        let keys = spool.keys.flushed.checked_add(spool.keys.buffer.len() as u64);
        if keys != Some(spool.count as u64 * 8) || spool.groups.len() != spool.count / GROUP {
            return Err(Malformed("a spool of another size"));
        }
        Ok(spool)
    }
}

/// Reads single entries of a spool, in ascending order of their places.
pub struct Picker {
    spool: Arc<Spool>,
    group: usize,
    keys: Vec<u8>,
    entries_group: usize,
    entries: Vec<u8>,
    /// The next entry's number in the group and its place.
    next: usize,
    at: usize,
}

impl Picker {
    /// Nothing is read yet.
    pub fn new(spool: Arc<Spool>) -> Picker {
        Picker {
            spool,
            group: usize::MAX,
            keys: Vec::new(),
            entries_group: usize::MAX,
            entries: Vec::new(),
            next: 0,
            at: 0,
        }
    }

    /// The key at a place.
    pub fn key(&mut self, place: u32) -> Result<u64> {
        let (group, i) = (place as usize / GROUP, place as usize % GROUP);
        if group != self.group {
            self.read_keys(group)?;
        }
        Ok(le64(&self.keys[i * 8..]))
    }

    /// The entry at the place of the key asked for last.
    pub fn entry(&mut self, place: u32) -> Result<&[u8]> {
        if self.entries_group != self.group {
            self.read_entries()?;
        }
        let name = &self.spool.entries.name;
        let mut take = Take::new(&self.entries[self.at..]);
        let i = place as usize % GROUP;
        while self.next < i {
            take.bytes().map_err(|Malformed(what)| StoreError::corrupt(name, 0, what))?;
            self.next += 1;
        }
        self.at = self.entries.len() - take.rest().len();
        take.bytes().map_err(|Malformed(what)| StoreError::corrupt(name, 0, what))
    }

    fn read_keys(&mut self, group: usize) -> Result<()> {
        let first = group * GROUP;
        self.keys.resize((self.spool.count - first).min(GROUP) * 8, 0);
        self.group = group;
        self.spool.keys.read_at(first as u64 * 8, &mut self.keys)
    }

    fn read_entries(&mut self) -> Result<()> {
        let (spool, group) = (&self.spool, self.group);
        let whole = spool.groups.get(group);
        let start = whole.map_or(spool.group_start, |g| g.start);
        let end = match spool.groups.get(group + 1) {
            Some(next) => next.start,
            None if whole.is_some() => spool.group_start,
            None => spool.entries.len(),
        };
        let name = &spool.entries.name;
        let size = end.checked_sub(start).filter(|_| end <= spool.entries.len());
        let size = size.ok_or_else(|| StoreError::corrupt(name, start, "a group of impossible size"))?;
        self.entries.resize(size as usize, 0);
        spool.entries.read_at(start, &mut self.entries)?;
        if whole.is_some_and(|g| crc32fast::hash(&self.entries) != g.crc) {
            return Err(StoreError::corrupt(name, start, "the checksum of entries that wait does not match"));
        }
        (self.entries_group, self.next, self.at) = (group, 0, 0);
        Ok(())
    }
}

/// A file that grows at the end, of which the last bytes are still in memory.
struct Growing {
    name: String,
    file: Option<Box<dyn DiskFile>>,
    flushed: u64,
    buffer: Vec<u8>,
}

impl Growing {
    fn new(name: String) -> Growing {
        Growing { name, file: None, flushed: 0, buffer: Vec::new() }
    }

    fn len(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn flush(&mut self, disk: &dyn Disk) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(disk.create(&self.name)?),
        };
        file.append(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Fills `into` from `offset` on.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let in_file = self.flushed.saturating_sub(offset).min(into.len() as u64) as usize;
        let (front, back) = into.split_at_mut(in_file);
        let missing = || StoreError::corrupt(&self.name, offset, "entries that wait are missing");
        if !front.is_empty() && self.file.as_ref().ok_or_else(missing)?.read_at(offset, front)? < front.len() {
            return Err(missing());
        }
        let start = offset.saturating_sub(self.flushed) as usize;
        let rest = self.buffer.get(start..).and_then(|b| b.get(..back.len())).ok_or_else(missing)?;
        back.copy_from_slice(rest);
        Ok(())
    }
}

fn le64(b: &[u8]) -> u64 {
    b.first_chunk().map_or(0, |c| u64::from_le_bytes(*c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;

    fn filled(disk: &dyn Disk, entries: &[(u64, Vec<u8>)]) -> Spool {
        let mut spool = Spool::new("s");
        for (key, entry) in entries {
            spool.push(disk, 300, *key, |b| b.extend_from_slice(entry)).expect("push");
        }
        spool
    }

    /// The places at which a key stands for the first time, and what is there.
    fn read(spool: Spool) -> Result<Vec<(u32, u64, Vec<u8>)>> {
        let mut sorted = vec![7];
        spool.sorted_keys(&mut sorted)?;
        assert!(sorted.is_sorted_by(|a, b| a < b));
        let places = spool.first_places(&sorted)?;
        let mut picker = Picker::new(spool.seal());
        places.into_iter().map(|p| Ok((p, picker.key(p)?, picker.entry(p)?.to_vec()))).collect()
    }

    fn firsts(entries: &[(u64, Vec<u8>)]) -> Vec<(u32, u64, Vec<u8>)> {
        let mut seen = std::collections::BTreeSet::new();
        let numbered = entries.iter().enumerate().filter(|(_, (key, _))| seen.insert(*key));
        numbered.map(|(i, (key, entry))| (i as u32, *key, entry.clone())).collect()
    }

    fn entries() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
        let key = prop_oneof![any::<u64>(), 0..50u64, Just(u64::MAX)];
        proptest::collection::vec((key, proptest::collection::vec(any::<u8>(), 0..30)), 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Also from a checkpoint behind which more was written.
        #[test]
        fn what_was_pushed_is_read(entries in entries(), more in entries()) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let mut spool = filled(&*disk, &entries);
            let mut body = Vec::new();
            spool.save(&mut body);
            for (key, entry) in &more {
                spool.push(&*disk, 300, *key, |b| b.extend_from_slice(entry)).expect("push");
            }
            let both: Vec<_> = entries.iter().chain(&more).cloned().collect();
            prop_assert_eq!(read(spool).expect("read"), firsts(&both));
            let mut from = Take::new(&body);
            let loaded = Spool::load(&*disk, &mut from).expect("load");
            prop_assert!(from.is_empty());
            prop_assert_eq!(read(loaded).expect("read"), firsts(&entries));
        }

        /// Any flipped bit and any missing byte is reported; never a panic or another entry.
        #[test]
        fn damage_is_found(entries in entries(), in_keys: bool, at in 0.0f64..1.0, bit in 0u8..9) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let mut body = Vec::new();
            filled(&*disk, &entries).save(&mut body);
            let path = dir.path().join(if in_keys { "s.keys" } else { "s.urls" });
            let mut bytes = std::fs::read(&path).unwrap_or_default();
            let place = (at * bytes.len() as f64) as usize;
            match bytes.get_mut(place) {
                Some(_) if bit == 8 => bytes.truncate(place),
                Some(byte) => *byte ^= 1 << bit,
                None => return Ok(()),
            }
            std::fs::write(&path, bytes).expect("write");
            if let Ok(back) = Spool::load(&*disk, &mut Take::new(&body)).and_then(read) {
                prop_assert_eq!(back, firsts(&entries));
            }
        }
    }
}
