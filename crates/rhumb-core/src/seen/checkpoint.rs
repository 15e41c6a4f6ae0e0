//! The set of known pages in a checkpoint. Levels are named there; what is in memory is written out.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::rows::Row;
use rhumb_store::{Result, StoreError};

use super::level::{Entry, Level, PLACE_BITS, ROW_BYTES, Segment, place};
use super::sketch::Content;
use super::store::{Found, PageRef, Seen, SeenConfig};

impl Seen {
    /// Writes the state into a checkpoint. Work may be out: what it will come to is not part of the state yet.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.next_file);
        for page in [self.last, self.reported] {
            put_opt(page, into);
        }
        into.put_u64(self.levels.len() as u64);
        for level in &self.levels {
            into.put_str(level.name());
            into.put_u8(u8::from(level.deleted.is_some()));
        }
        into.put_u64(self.segments.len() as u64);
        for segment in &self.segments {
            put_segment(segment, into);
        }
        let deleted: BTreeSet<u64> = self.deleted_frozen.union(&self.deleted).copied().collect();
        into.put_u64(deleted.len() as u64);
        deleted.iter().for_each(|page| into.put_u64(*page));
        into.put_u64((self.batch.len() + self.pending.len()) as u64);
        for (page, content) in self.batch.iter().chain(&self.pending) {
            into.put_u64(*page);
            content.put(into);
        }
        into.put_u64(self.found.len() as u64);
        for found in &self.found {
            into.put_u64(found.page.0);
            into.put_u64(found.of.0);
            into.extend_from_slice(&found.similarity.to_le_bytes());
            into.put_u8(u8::from(found.exact));
        }
    }

    /// Reads what [`Seen::save`] wrote and opens the files.
    pub fn load(disk: Arc<dyn Disk>, config: SeenConfig, from: &mut Take<'_>) -> Result<Seen> {
        let malformed = |Malformed(what)| StoreError::corrupt("state/checkpoint", 0, what);
        let mut seen = Seen::new(disk.clone(), config)?;
        seen.next_file = from.u32().map_err(malformed)?.into();
        seen.last = take_opt(from).map_err(malformed)?;
        seen.reported = take_opt(from).map_err(malformed)?;
        for _ in 0..from.u64().map_err(malformed)? {
            let name = from.str().map_err(malformed)?;
            let deletes = from.u8().map_err(malformed)? != 0;
            seen.levels.push(Level::open(&*disk, name, deletes)?);
        }
        seen.load_memory(from).map_err(malformed)?;
        Ok(seen)
    }

    fn load_memory(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        for _ in 0..from.u64()? {
            self.segments.push(Arc::new(take_segment(from)?));
        }
        let mut deleted = BTreeSet::new();
        for _ in 0..from.u64()? {
            deleted.insert(from.u64()?);
        }
        self.deleted = Arc::new(deleted);
        let mut pending: VecDeque<(u64, Content)> = VecDeque::new();
        for _ in 0..from.u64()? {
            let page = from.u64()?;
            if pending.back().is_some_and(|(last, _)| *last >= page) || self.last.is_none_or(|last| page > last) {
                return Err(Malformed("pages are not in their order"));
            }
            pending.push_back((page, Content::take(from)?));
        }
        self.pending = pending;
        for _ in 0..from.u64()? {
            let (page, of) = (PageRef(from.u64()?), PageRef(from.u64()?));
            let similarity = from.raw(4)?.try_into().map_err(|_| Malformed("half a number"))?;
            self.found.push_back(Found {
                page,
                of,
                similarity: f32::from_le_bytes(similarity),
                exact: from.u8()? != 0,
            });
        }
        Ok(())
    }
}

fn put_opt(value: Option<u64>, into: &mut Vec<u8>) {
    into.put_u8(u8::from(value.is_some()));
    if let Some(value) = value {
        into.put_u64(value);
    }
}

fn take_opt(from: &mut Take<'_>) -> Result<Option<u64>, Malformed> {
    if from.u8()? == 0 { Ok(None) } else { from.u64().map(Some) }
}

fn put_segment(segment: &Segment, into: &mut Vec<u8>) {
    into.put_u64(segment.entries.len() as u64);
    for entry in &segment.entries {
        into.put_u64(entry.page);
        put_opt(entry.of, into);
        into.extend_from_slice(&entry.row_bytes());
    }
    into.put_u64(segment.keys.len() as u64);
    into.reserve(segment.keys.len() * 8);
    segment.keys.iter().for_each(|key| into.extend_from_slice(&key.to_le_bytes()));
}

fn take_segment(from: &mut Take<'_>) -> Result<Segment, Malformed> {
    let mut segment = Segment::default();
    for _ in 0..from.u64()? {
        let (id, link) = (from.u64()?, take_opt(from)?);
        segment.entries.push(Entry::from_row(&Row { id, link, bytes: from.raw(ROW_BYTES)? })?);
    }
    let bytes = usize::try_from(from.u64()?).ok().and_then(|n| n.checked_mul(8));
    let bytes = from.raw(bytes.ok_or(Malformed("more keys than bytes"))?)?;
    segment.keys.extend(bytes.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)));
    let sound = segment.entries.len() < 1 << PLACE_BITS
        && segment.entries.is_sorted_by(|a, b| a.page < b.page)
        && segment.keys.is_sorted_by(|a, b| a < b)
        && segment.keys.iter().all(|&key| (place(key) as usize) < segment.entries.len());
    if sound { Ok(segment) } else { Err(Malformed("keys of known pages are not in their order")) }
}
