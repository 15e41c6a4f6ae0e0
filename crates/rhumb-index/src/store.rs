//! The index on disk, for whoever writes it: pages go in, parts come out.
//!
//! Pages are gathered in memory until [`Writer::flush`] makes a part of them; parts of like size are made one, four by four
//! ([`Writer::merge`]), as the levels of the link graph are. A page that is added again takes the place of what it was: the old one is
//! noted as dead in the list, and left out when its part is merged.

use std::collections::HashMap;
use std::sync::Arc;

use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use tantivy::{BitSet, DocId};

use crate::Result;
use crate::manifest::{Listed, Manifest, PartNumber};
use crate::page::{Maker, Page, Weights};
use crate::part::{self, Part, PartWriter};
use crate::schema::Fields;

/// Parts of like size that become one.
const MERGED: usize = 4;
/// Parts below this are all of like size.
const SMALL: u32 = 256;
/// More pages do not go into one part before it is written.
const PAGES_MAX: u32 = 1 << 20;

/// An index that is written.
pub struct Writer {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) fields: Arc<Fields>,
    pub(crate) list: Manifest,
    pub(crate) parts: Vec<Arc<Part>>,
    /// Numbers of parts that are being written elsewhere.
    pub(crate) reserved: Vec<PartNumber>,
    pending: Option<Pending>,
    maker: Maker,
    pub(crate) memory_bytes: usize,
}

/// Pages that are not on disk yet.
struct Pending {
    writer: PartWriter,
    docs: HashMap<u64, DocId>,
    dead: Vec<DocId>,
    duplicates: HashMap<DocId, u64>,
}

impl Writer {
    /// Opens the index of a crawl directory, with so much memory for pages that are not on disk yet. One that was made with other weights
    /// is begun anew.
    pub fn open(disk: Arc<dyn Disk>, weights: Weights, memory_bytes: usize) -> Result<Writer> {
        let list = Manifest::load(&*disk)?.filter(|list| list.weights == weights);
        let list = match list {
            Some(list) => list,
            None => Manifest::begun(&*disk, weights)?,
        };
        list.remove_others(&*disk, &[])?;
        let fields = Arc::new(Fields::default());
        let mut parts = Vec::new();
        for listed in &list.parts {
            parts.push(Arc::new(Part::open(disk.clone(), fields.clone(), listed)?));
        }
        Ok(Writer {
            disk,
            fields,
            list,
            parts,
            reserved: Vec::new(),
            pending: None,
            maker: Maker::default(),
            memory_bytes,
        })
    }

    /// How far the log was read.
    pub fn position(&self) -> Position {
        self.list.position
    }

    /// The last record that was read, and its checksum.
    pub fn last(&self) -> Option<(Position, u32)> {
        self.list.last
    }

    /// The list of parts.
    pub fn list(&self) -> &Manifest {
        &self.list
    }

    /// Pages that can be found, or will be after [`Writer::flush`].
    pub fn pages(&self) -> u64 {
        let pending = self.pending.as_ref().map_or(0, |p| p.docs.len() as u64);
        self.list.parts.iter().map(|part| u64::from(part.alive())).sum::<u64>() + pending
    }

    /// Whether there are pages that are not on disk.
    pub fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether pages in memory should be written before more are added.
    pub fn is_full(&self) -> bool {
        let of = |pending: &Pending| pending.writer.memory_bytes() + pending.docs.capacity() * 16;
        self.pending.as_ref().is_some_and(|p| of(p) >= self.memory_bytes || p.writer.len() >= PAGES_MAX)
    }

    /// Adds a page, in place of what it was before.
    pub fn add(&mut self, page: &Page<'_>) -> Result<()> {
        self.remove(page.id);
        if self.pending.is_none() {
            let number = self.next_number();
            let writer = PartWriter::new(self.disk.clone(), number, self.fields.clone(), self.memory_bytes)?;
            self.pending = Some(Pending { writer, docs: HashMap::new(), dead: Vec::new(), duplicates: HashMap::new() });
        }
        let pending = self.pending.as_mut().expect("just made");
        let doc = pending.writer.add(page, &mut self.maker, &self.list.weights)?;
        pending.docs.insert(page.id, doc);
        self.list.is_settled = false;
        Ok(())
    }

    /// Takes a page out; whether it was there.
    pub fn remove(&mut self, id: u64) -> bool {
        if let Some(pending) = &mut self.pending
            && let Some(doc) = pending.docs.remove(&id)
        {
            pending.dead.push(doc);
            return true;
        }
        for (part, listed) in self.parts.iter().zip(&mut self.list.parts) {
            if part.find(id).any(|doc| listed.kill(doc)) {
                self.list.is_settled = false;
                return true;
            }
        }
        false
    }

    /// Notes that a page says what another says.
    pub fn note_duplicate(&mut self, id: u64, of: u64) {
        if let Some(pending) = &mut self.pending
            && let Some(doc) = pending.docs.get(&id)
        {
            pending.duplicates.insert(*doc, of);
            return;
        }
        for (part, listed) in self.parts.iter().zip(&mut self.list.parts) {
            let alive = part.find(id).find(|doc| listed.dead.binary_search(doc).is_err());
            if let Some(doc) = alive {
                listed.note_duplicate(doc, of);
                return;
            }
        }
    }

    /// Notes how far the log was read; [`Writer::flush`] makes it durable.
    pub fn advance(&mut self, position: Position, last: Option<(Position, u32)>) {
        self.list.position = position;
        self.list.last = last.or(self.list.last);
    }

    pub(crate) fn next_number(&mut self) -> PartNumber {
        let number = self.list.next;
        self.list.next += 1;
        number
    }

    /// Makes a part of the pages in memory, and the list durable.
    pub fn flush(&mut self) -> Result<()> {
        if let Some(mut pending) = self.pending.take() {
            let mut listed = pending.writer.finish(&mut self.maker)?;
            pending.dead.sort_unstable();
            let mut duplicates: Vec<(DocId, u64)> = pending.duplicates.into_iter().collect();
            duplicates.sort_unstable();
            (listed.dead, listed.duplicates) = (pending.dead, duplicates);
            self.parts.push(Arc::new(Part::open(self.disk.clone(), self.fields.clone(), &listed)?));
            self.list.parts.push(listed);
        }
        self.save()
    }

    pub(crate) fn save(&self) -> Result<()> {
        Ok(self.list.save(&*self.disk, &self.reserved)?)
    }

    /// Makes one of parts of like size, where there are too many; whether there were.
    pub fn merge(&mut self) -> Result<bool> {
        // The list that is saved says how far the log was read: nothing of that may be in memory alone.
        if self.pending.is_some() {
            self.flush()?;
        }
        let class = |listed: &Listed| (listed.documents / SMALL).checked_ilog(MERGED as u32).map_or(0, |log| log + 1);
        // What is being arranged stays as it is until that is done.
        let first = self.reserved.first().copied().unwrap_or(0);
        let is_new = |listed: &Listed| listed.band == 0 && listed.number >= first;
        let new: Vec<usize> = (0..self.parts.len()).filter(|i| is_new(&self.list.parts[*i])).collect();
        for wanted in 0..16 {
            let same: Vec<usize> = new.iter().copied().filter(|i| class(&self.list.parts[*i]) == wanted).collect();
            if same.len() >= MERGED {
                self.merge_these(&same)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn merge_these(&mut self, chosen: &[usize]) -> Result<()> {
        let number = self.next_number();
        let keep: Vec<(&Part, BitSet)> =
            chosen.iter().map(|i| (&*self.parts[*i], self.list.parts[*i].alive_set())).collect();
        let merged = part::merge(&self.disk, number, &keep, true)?;
        let duplicates = carried_duplicates(chosen.iter().map(|i| &self.list.parts[*i]), &keep);
        drop(keep);
        for i in chosen.iter().rev() {
            self.list.parts.remove(*i);
            self.parts.remove(*i);
        }
        if let Some(mut listed) = merged {
            listed.duplicates = duplicates;
            self.parts.push(Arc::new(Part::open(self.disk.clone(), self.fields.clone(), &listed)?));
            self.list.parts.push(listed);
        }
        self.save()
    }
}

/// The duplicates among the pages of some parts that are kept, as the part that is made of them has them.
pub(crate) fn carried_duplicates<'a>(
    lists: impl Iterator<Item = &'a Listed>,
    keep: &[(&Part, BitSet)],
) -> Vec<(DocId, u64)> {
    let (mut carried, mut before) = (Vec::new(), 0);
    for (listed, (part, keep)) in lists.zip(keep) {
        let mut duplicates = listed.duplicates.iter().peekable();
        for doc in (0..part.documents()).filter(|doc| keep.contains(*doc)) {
            while duplicates.next_if(|(d, _)| *d < doc).is_some() {}
            if let Some((_, of)) = duplicates.next_if(|(d, _)| *d == doc) {
                carried.push((before, *of));
            }
            before += 1;
        }
    }
    carried
}

/// Forgets an index, so that it is made anew. Its parts, which nothing names any more, are removed by whoever begins the next.
pub fn discard(disk: &dyn Disk) -> Result<()> {
    Ok(disk.remove(crate::manifest::NAME)?)
}
