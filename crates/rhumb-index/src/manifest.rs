//! The list of an index's parts (`index/parts`): the one file that says which others count.
//!
//! It is replaced as a whole, after the files it names are durable; so a crash leaves the old index or the new one, and files that it
//! does not name are rubbish. docs/formats/index.md describes it.

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};
use rhumb_store::{Result, StoreError};
use tantivy::{BitSet, DocId};

use crate::page::Weights;
use crate::part::DIR;

const KIND: Kind = Kind { magic: *b"rhumbprt", version: 1 };
/// The number of the next part is never higher.
const NEXT_MAX: u32 = u32::MAX / 2;
/// Its name.
pub const NAME: &str = "index/parts";

/// The number of a part; none is given twice.
pub type PartNumber = u32;

/// A part on the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Its number.
    pub number: PartNumber,
    /// Pages it has, those that are gone included.
    pub documents: u32,
    /// The band of its pages, from 1 on, the best first; 0 if it was not sorted yet.
    pub band: u8,
    /// Whether links were looked at.
    pub has_late: bool,
    /// Pages by language.
    pub languages: Vec<(String, u32)>,
    /// Pages that are gone or were replaced, ascending.
    pub dead: Vec<DocId>,
    /// Duplicates, ascending, with the fingerprint of the page that stands for each.
    pub duplicates: Vec<(DocId, u64)>,
}

impl Listed {
    /// A part as it was written.
    pub fn new(number: PartNumber, documents: u32) -> Listed {
        Listed { number, documents, ..Listed::default() }
    }

    /// Pages that can be found.
    pub fn alive(&self) -> u32 {
        self.documents - self.dead.len() as u32
    }

    /// The pages that are not gone.
    pub(crate) fn alive_set(&self) -> BitSet {
        let mut alive = BitSet::with_max_value_and_full(self.documents);
        for doc in &self.dead {
            alive.remove(*doc);
        }
        alive
    }

    /// Notes that a page is gone; whether that is new.
    pub fn kill(&mut self, doc: DocId) -> bool {
        match self.dead.binary_search(&doc) {
            Ok(_) => false,
            Err(at) => {
                self.dead.insert(at, doc);
                true
            }
        }
    }

    /// Notes that a page is a duplicate.
    pub fn note_duplicate(&mut self, doc: DocId, of: u64) {
        match self.duplicates.binary_search_by_key(&doc, |(doc, _)| *doc) {
            Ok(at) => self.duplicates[at].1 = of,
            Err(at) => self.duplicates.insert(at, (doc, of)),
        }
    }
}

/// What the list says.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// How far the log was read.
    pub position: Position,
    /// Where the last record lies that was read, and a checksum of it: a log that says something else there is another one.
    pub last: Option<(Position, u32)>,
    /// The number of the next part.
    pub next: PartNumber,
    /// Bytes of the log when links were looked at last.
    pub arranged_bytes: u64,
    /// Whether everything up to `position` is where it belongs: nothing is left to do when a crawl rests.
    pub is_settled: bool,
    /// How often words count.
    pub weights: Weights,
    /// The parts, the oldest first.
    pub parts: Vec<Listed>,
}

impl Default for Manifest {
    fn default() -> Manifest {
        Manifest {
            position: Position::START,
            last: None,
            next: 1,
            arranged_bytes: 0,
            is_settled: false,
            weights: Weights::default(),
            parts: Vec::new(),
        }
    }
}

impl Manifest {
    /// The list of the index on this disk, if there is one.
    pub fn load(disk: &dyn Disk) -> Result<Option<Manifest>> {
        if !disk.exists(NAME) {
            return Ok(None);
        }
        Manifest::from_bytes(&Sealed::open(disk, NAME, KIND)?).map(Some)
    }

    /// The list of an index that begins. Parts of one that was there before may still be read by others, who know them by their numbers:
    /// these go on behind theirs.
    pub fn begun(disk: &dyn Disk, weights: Weights) -> Result<Manifest> {
        let names = disk.list(DIR)?;
        let highest = names.iter().filter_map(|name| number_of(name)).filter(|n| *n < NEXT_MAX / 2).max();
        Ok(Manifest { weights, next: highest.unwrap_or(0) + 1, ..Manifest::default() })
    }

    /// What the content of the file says, without its seal.
    pub fn from_bytes(content: &[u8]) -> Result<Manifest> {
        Manifest::take(&mut Take::new(content)).map_err(|e| StoreError::corrupt(NAME, 16, e.0))
    }

    fn take(from: &mut Take<'_>) -> Result<Manifest, Malformed> {
        let position = |from: &mut Take<'_>| Ok(Position { segment: from.u32()?, offset: from.u64()? });
        let read_to = position(from)?;
        let last = match from.u8()? {
            0 => None,
            _ => Some((position(from)?, from.u32()?)),
        };
        let next = from.u32()?;
        if next > NEXT_MAX {
            return Err(Malformed("parts have been counted too far"));
        }
        let arranged_bytes = from.u64()?;
        let is_settled = from.u8()? == 1;
        let w: &[u8; 6] = from.raw(6)?.try_into().map_err(|_| Malformed("weights are missing"))?;
        let weights =
            Weights { title: w[0], heading: w[1], emphasis: w[2], address: w[3], description: w[4], body: w[5] };
        let mut parts = Vec::<Listed>::new();
        for _ in 0..from.u32()? {
            let part = take_part(from)?;
            if part.number >= next || parts.last().is_some_and(|before| part.number <= before.number) {
                return Err(Malformed("parts are not in order"));
            }
            parts.push(part);
        }
        if !from.is_empty() {
            return Err(Malformed("there is something behind the last part"));
        }
        Ok(Manifest { position: read_to, last, next, arranged_bytes, is_settled, weights, parts })
    }

    /// The content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let put_position = |bytes: &mut Vec<u8>, position: Position| {
            bytes.put_u64(u64::from(position.segment));
            bytes.put_u64(position.offset);
        };
        put_position(&mut bytes, self.position);
        bytes.put_u8(u8::from(self.last.is_some()));
        if let Some((place, checksum)) = self.last {
            put_position(&mut bytes, place);
            bytes.put_u64(u64::from(checksum));
        }
        bytes.put_u64(u64::from(self.next));
        bytes.put_u64(self.arranged_bytes);
        bytes.put_u8(u8::from(self.is_settled));
        let w = self.weights;
        bytes.extend_from_slice(&[w.title, w.heading, w.emphasis, w.address, w.description, w.body]);
        bytes.put_u64(self.parts.len() as u64);
        for part in &self.parts {
            put_part(part, &mut bytes);
        }
        bytes
    }

    /// Puts it in force, and removes what it does not name, save parts that are being written.
    pub fn save(&self, disk: &dyn Disk, reserved: &[PartNumber]) -> Result<()> {
        disk.make_dir(DIR)?;
        disk.sync_dir(DIR)?;
        let temporary = format!("{NAME}.tmp");
        let mut writer = SealedWriter::create(disk, &temporary, KIND)?;
        writer.write(&self.to_bytes())?;
        writer.finish()?;
        disk.rename(&temporary, NAME)?;
        self.remove_others(disk, reserved)
    }

    /// Removes files of parts that are not named, such as those of a merge that did not end.
    pub fn remove_others(&self, disk: &dyn Disk, reserved: &[PartNumber]) -> Result<()> {
        for name in disk.list(DIR)? {
            let number = number_of(&name);
            let is_known = |n: u32| reserved.contains(&n) || self.parts.iter().any(|part| part.number == n);
            if number.is_some_and(|n| !is_known(n)) {
                disk.remove(&format!("{DIR}/{name}"))?;
            }
        }
        Ok(())
    }
}

/// The number of the part that a file belongs to.
fn number_of(name: &str) -> Option<PartNumber> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name[..digits].parse().ok()
}

fn put_part(part: &Listed, bytes: &mut Vec<u8>) {
    bytes.put_u64(u64::from(part.number));
    bytes.put_u64(u64::from(part.documents));
    bytes.put_u8(part.band);
    bytes.put_u8(u8::from(part.has_late));
    bytes.put_u64(part.languages.len() as u64);
    for (code, count) in &part.languages {
        bytes.put_str(code);
        bytes.put_u64(u64::from(*count));
    }
    bytes.put_u64(part.dead.len() as u64);
    put_ascending(part.dead.iter().copied(), bytes);
    bytes.put_u64(part.duplicates.len() as u64);
    put_ascending(part.duplicates.iter().map(|(doc, _)| *doc), bytes);
    for (_, of) in &part.duplicates {
        bytes.extend_from_slice(&of.to_le_bytes());
    }
}

fn put_ascending(docs: impl Iterator<Item = DocId>, bytes: &mut Vec<u8>) {
    let mut last = 0;
    for doc in docs {
        bytes.put_u64(u64::from(doc - last));
        last = doc;
    }
}

fn take_part(from: &mut Take<'_>) -> Result<Listed, Malformed> {
    let mut part = Listed::new(from.u32()?, from.u32()?);
    part.band = from.u8()?;
    part.has_late = from.u8()? == 1;
    for _ in 0..from.u32()? {
        part.languages.push((from.str()?.to_string(), from.u32()?));
    }
    part.dead = take_ascending(from, part.documents)?;
    let duplicates = take_ascending(from, part.documents)?;
    for doc in duplicates {
        let of = from.raw(8)?.try_into().map_err(|_| Malformed("half a fingerprint"))?;
        part.duplicates.push((doc, u64::from_le_bytes(of)));
    }
    Ok(part)
}

fn take_ascending(from: &mut Take<'_>, documents: u32) -> Result<Vec<DocId>, Malformed> {
    let mut docs = Vec::<DocId>::new();
    for _ in 0..from.u32()? {
        let more = from.u32()?;
        if more == 0 && !docs.is_empty() {
            return Err(Malformed("a page is there twice"));
        }
        let doc = docs.last().copied().unwrap_or(0).checked_add(more).filter(|doc| *doc < documents);
        docs.push(doc.ok_or(Malformed("a page is beyond its part"))?);
    }
    Ok(docs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(next: u32, parts: Vec<Listed>) -> Manifest {
        let last = Some((Position { segment: 1, offset: 70 }, 99));
        Manifest { position: Position { segment: 1, offset: 80 }, last, next, parts, ..Manifest::default() }
    }

    fn part(number: u32) -> Listed {
        Listed {
            dead: vec![0, 5, 90],
            duplicates: vec![(0, 7), (99, u64::MAX)],
            languages: vec![("en".to_string(), 60), (String::new(), 40)],
            band: 2,
            has_late: true,
            ..Listed::new(number, 100)
        }
    }

    #[test]
    fn only_what_can_be_is_believed() {
        let good = list(9, vec![part(2), part(7), Listed::new(8, 0)]);
        assert_eq!(Manifest::from_bytes(&good.to_bytes()).expect("read"), good);
        let mut longer = good.to_bytes();
        longer.push(0);
        let check = |bytes: &[u8], expected: &str| {
            let error = Manifest::from_bytes(bytes).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&longer, "there is something behind the last part");
        check(&list(9, vec![part(9)]).to_bytes(), "parts are not in order");
        check(&list(9, vec![part(3), part(3)]).to_bytes(), "parts are not in order");
        check(&list(9, vec![Listed { dead: vec![4, 4], ..part(1) }]).to_bytes(), "a page is there twice");
        check(&list(9, vec![Listed { dead: vec![100], ..part(1) }]).to_bytes(), "a page is beyond its part");
        check(&list(u32::MAX, vec![]).to_bytes(), "parts have been counted too far");
        for len in 0..good.to_bytes().len() {
            assert!(Manifest::from_bytes(&good.to_bytes()[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn pages_are_noted_once_and_in_order() {
        let mut part = Listed::new(1, 10);
        assert!(part.kill(5) && part.kill(2) && !part.kill(5));
        part.note_duplicate(7, 1);
        part.note_duplicate(3, 2);
        part.note_duplicate(7, 3);
        assert_eq!((part.dead, part.duplicates), (vec![2, 5], vec![(3, 2), (7, 3)]));
    }
}
