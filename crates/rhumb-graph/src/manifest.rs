//! The list of a graph's levels (`graph/levels`): the one file that says which others count.
//!
//! It is replaced as a whole, after the files it names are durable; so a crash leaves the old graph or the new one, and files that it
//! does not name are rubbish. docs/formats/graph.md describes it.

use rhumb_store::codec::{Malformed, Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use rhumb_store::{Result, StoreError};

use crate::level::DIR;
use crate::rows::Node;
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};

const KIND: Kind = Kind { magic: *b"rhumblvl", version: 1 };
/// The number of the next level is never higher: a level a second would take a lifetime to get there.
const NEXT_MAX: u32 = u32::MAX / 2;
/// Its name.
pub const NAME: &str = "graph/levels";

/// What the list says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Whether nodes have URLs.
    pub named: bool,
    /// How far the log was read.
    pub position: Position,
    /// Where the last record lies that was read, and a checksum of it: a log that says something else there is another one.
    pub last: Option<(Position, u32)>,
    /// The number of the next level.
    pub next: u32,
    /// The levels, the oldest first, with the pages that were visited again later, ascending.
    pub levels: Vec<(u32, Vec<Node>)>,
}

impl Manifest {
    /// The list of a graph with URLs that has none yet.
    pub fn of_nothing() -> Manifest {
        Manifest { named: true, position: Position::START, ..Manifest::default() }
    }

    /// The list of the graph on this disk, if there is one.
    pub fn load(disk: &dyn Disk) -> Result<Option<Manifest>> {
        if !disk.exists(NAME) {
            return Ok(None);
        }
        Manifest::from_bytes(&Sealed::open(disk, NAME, KIND)?).map(Some)
    }

    /// What the content of the file says, without its seal.
    pub fn from_bytes(content: &[u8]) -> Result<Manifest> {
        Manifest::take(&mut Take::new(content)).map_err(|e| StoreError::corrupt(NAME, 16, e.0))
    }

    fn take(from: &mut Take<'_>) -> Result<Manifest, Malformed> {
        let named = from.u8()? == 1;
        let position = Position { segment: from.u32()?, offset: from.u64()? };
        let last = match from.u8()? {
            0 => None,
            _ => Some((Position { segment: from.u32()?, offset: from.u64()? }, from.u32()?)),
        };
        let next = from.u32()?;
        if next > NEXT_MAX {
            return Err(Malformed("levels have been counted too far"));
        }
        let mut levels = Vec::new();
        for _ in 0..from.u32()? {
            let number = from.u32()?;
            if number >= next || levels.last().is_some_and(|(before, _)| number <= *before) {
                return Err(Malformed("levels are not in order"));
            }
            let mut dead = Vec::<Node>::new();
            for _ in 0..from.u32()? {
                let more = from.u32()?;
                let node =
                    dead.last().copied().unwrap_or(0).checked_add(more).ok_or(Malformed("a node is too large"))?;
                if more == 0 && !dead.is_empty() {
                    return Err(Malformed("a page is there twice"));
                }
                dead.push(node);
            }
            levels.push((number, dead));
        }
        if !from.is_empty() {
            return Err(Malformed("there is something behind the last level"));
        }
        Ok(Manifest { named, position, last, next, levels })
    }

    /// The content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u8(u8::from(self.named));
        bytes.put_u64(u64::from(self.position.segment));
        bytes.put_u64(self.position.offset);
        bytes.put_u8(u8::from(self.last.is_some()));
        if let Some((place, checksum)) = self.last {
            bytes.put_u64(u64::from(place.segment));
            bytes.put_u64(place.offset);
            bytes.put_u64(u64::from(checksum));
        }
        bytes.put_u64(u64::from(self.next));
        bytes.put_u64(self.levels.len() as u64);
        for (number, dead) in &self.levels {
            bytes.put_u64(u64::from(*number));
            bytes.put_u64(dead.len() as u64);
            let mut last = 0;
            for &node in dead {
                bytes.put_u64(u64::from(node - last));
                last = node;
            }
        }
        bytes
    }

    /// Puts it in force, and removes what it does not name.
    pub fn save(&self, disk: &dyn Disk) -> Result<()> {
        disk.make_dir(DIR)?;
        let temporary = format!("{NAME}.tmp");
        let mut writer = SealedWriter::create(disk, &temporary, KIND)?;
        writer.write(&self.to_bytes())?;
        writer.finish()?;
        disk.rename(&temporary, NAME)?;
        self.remove_others(disk)
    }

    /// Removes files of levels that are not named, such as those of a merge that did not end.
    pub fn remove_others(&self, disk: &dyn Disk) -> Result<()> {
        for name in disk.list(DIR)? {
            let digits = name.bytes().take_while(u8::is_ascii_digit).count();
            let number = name[..digits].parse::<u32>().ok();
            if number.is_some_and(|n| !self.levels.iter().any(|(l, _)| *l == n)) {
                disk.remove(&format!("{DIR}/{name}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(next: u32, levels: Vec<(u32, Vec<Node>)>) -> Manifest {
        let last = Some((Position { segment: 1, offset: 70 }, 99));
        Manifest { named: true, position: Position { segment: 1, offset: 80 }, last, next, levels }
    }

    #[test]
    fn only_what_can_be_is_believed() {
        let good = list(9, vec![(2, vec![0, 5, 900]), (7, vec![]), (8, vec![3])]);
        assert_eq!(Manifest::from_bytes(&good.to_bytes()).expect("read"), good);
        let mut longer = good.to_bytes();
        longer.push(0);
        let check = |bytes: &[u8], expected: &str| {
            let error = Manifest::from_bytes(bytes).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&longer, "there is something behind the last level");
        check(&list(9, vec![(9, vec![])]).to_bytes(), "levels are not in order");
        check(&list(9, vec![(3, vec![]), (3, vec![])]).to_bytes(), "levels are not in order");
        check(&list(9, vec![(3, vec![4, 4])]).to_bytes(), "a page is there twice");
        check(&list(u32::MAX, vec![]).to_bytes(), "levels have been counted too far");
    }

    /// Numbers may have more digits than names are filled up to.
    #[test]
    fn what_is_not_named_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = rhumb_store::disk::RealDisk::new(dir.path());
        disk.make_dir(DIR).expect("made");
        for name in ["000002.urls", "000003.urls", "1000000.urls", "1000000-0.tmp", "2000000.in", "lock"] {
            disk.replace(&format!("{DIR}/{name}"), b"x").expect("written");
        }
        list(1_000_001, vec![(2, vec![]), (1_000_000, vec![])]).save(&*disk).expect("saved");
        let left = disk.list(DIR).expect("listed");
        assert_eq!(left, ["000002.urls", "1000000-0.tmp", "1000000.urls", "levels", "lock"]);
    }
}
