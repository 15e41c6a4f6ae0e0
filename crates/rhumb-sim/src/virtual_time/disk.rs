//! Disks for simulated processes: one in memory, and one that dies with its process.
//!
//! [`MemoryDisk`] keeps every file as bytes. [`MortalDisk`] lies over any disk; armed, it lets so many more changes happen,
//! tears the next one in the middle and refuses everything after it, which is what a process sees that is killed. The
//! files stay as they are and the next process gets a new [`MortalDisk`] over them. Nothing waits for the platter: what
//! is simulated is the death of a process, not of a machine.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhumb_store::disk::{Disk, DiskFile};
use rhumb_store::{Result, StoreError};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory.
#[derive(Default)]
pub struct MemoryDisk {
    files: Mutex<BTreeMap<String, Bytes>>,
}

impl MemoryDisk {
    /// An empty disk.
    #[allow(clippy::new_ret_no_self)] // Nobody wants it other than as a disk.
    pub fn new() -> Arc<dyn Disk> {
        Arc::new(MemoryDisk::default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn absent(name: &str) -> StoreError {
    StoreError::io("open", name, io::ErrorKind::NotFound.into())
}

impl Disk for MemoryDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let bytes = Bytes::default();
        lock(&self.files).insert(name.to_string(), bytes.clone());
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let bytes = lock(&self.files).get(name).cloned().ok_or_else(|| absent(name))?;
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn exists(&self, name: &str) -> bool {
        lock(&self.files).contains_key(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let prefix = format!("{dir}/");
        let files = lock(&self.files);
        let below = files.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        let names = below.map(|(name, _)| name[prefix.len()..].to_string());
        Ok(names.filter(|name| !name.contains('/')).collect())
    }

    fn make_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = lock(&self.files);
        let bytes = files.remove(from).ok_or_else(|| absent(from))?;
        files.insert(to.to_string(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        lock(&self.files).remove(name);
        Ok(())
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        let bytes = lock(&self.files).get(name).cloned().ok_or_else(|| absent(name))?;
        lock(&bytes).truncate(len as usize);
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }
}

struct MemoryFile(Bytes);

impl DiskFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let bytes = lock(&self.0);
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }

    fn handle(&self) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(MemoryFile(self.0.clone())))
    }
}

/// The disk of one process, which may die. See the module's header.
pub struct MortalDisk {
    below: Arc<dyn Disk>,
    fate: Arc<Mutex<Fate>>,
}

#[derive(Clone, Copy, Default)]
enum Fate {
    #[default]
    Alive,
    /// So many more changes succeed; of the next, if it is an append, this share of its bytes (in 256ths) is written.
    Doomed {
        changes: u64,
        share: u8,
    },
    Dead,
}

impl MortalDisk {
    /// The disk of a process that is well.
    pub fn new(below: Arc<dyn Disk>) -> Arc<MortalDisk> {
        Arc::new(MortalDisk { below, fate: Arc::default() })
    }

    /// The process dies in the change after the next `changes`, of whose bytes `share` 256ths are still written.
    pub fn doom(&self, changes: u64, share: u8) {
        *lock(&self.fate) = Fate::Doomed { changes, share };
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        matches!(*lock(&self.fate), Fate::Dead)
    }
}

/// Counts one change: `Ok` if it may happen, else how many 256ths of it do.
fn change(fate: &Mutex<Fate>) -> std::result::Result<(), u8> {
    let mut fate = lock(fate);
    match *fate {
        Fate::Alive => Ok(()),
        Fate::Doomed { changes: 0, share } => {
            *fate = Fate::Dead;
            Err(share)
        }
        Fate::Doomed { changes, share } => {
            *fate = Fate::Doomed { changes: changes - 1, share };
            Ok(())
        }
        Fate::Dead => Err(0),
    }
}

fn dead(verb: &'static str, name: &str) -> StoreError {
    StoreError::io(verb, name, io::Error::other("the process is dead"))
}

impl MortalDisk {
    fn change(&self, verb: &'static str, name: &str) -> Result<()> {
        change(&self.fate).map_err(|_| dead(verb, name))
    }

    fn file(&self, name: &str, below: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(MortalFile { below, name: name.into(), fate: self.fate.clone() })
    }
}

impl Disk for MortalDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.change("create", name)?;
        Ok(self.file(name, self.below.create(name)?))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        Ok(self.file(name, self.below.open(name)?))
    }

    fn exists(&self, name: &str) -> bool {
        self.below.exists(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.below.list(dir)
    }

    fn make_dir(&self, dir: &str) -> Result<()> {
        self.below.make_dir(dir)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.change("rename", to)?;
        self.below.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.change("remove", name)?;
        self.below.remove(name)
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        self.change("cut", name)?;
        self.below.truncate(name, len)
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }
}

struct MortalFile {
    below: Box<dyn DiskFile>,
    name: Arc<str>,
    fate: Arc<Mutex<Fate>>,
}

impl DiskFile for MortalFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match change(&self.fate) {
            Ok(()) => self.below.append(bytes),
            Err(share) => {
                let kept = bytes.len() * usize::from(share) / 256;
                if kept > 0 {
                    self.below.append(&bytes[..kept])?;
                }
                Err(dead("append to", &self.name))
            }
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.below.read_at(offset, into)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.below.len()
    }

    fn handle(&self) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(MortalFile { below: self.below.handle()?, name: self.name.clone(), fate: self.fate.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_store::log::{Log, LogReader, Position};

    #[test]
    fn memory_is_a_disk() {
        let disk = MemoryDisk::new();
        disk.create("a/b").unwrap().append(b"hello").unwrap();
        disk.create("a/c/d").unwrap();
        disk.open("a/b").unwrap().append(b"!").unwrap();
        assert_eq!(disk.read("a/b").unwrap(), b"hello!");
        assert_eq!(disk.list("a").unwrap(), ["b"]);
        assert_eq!(disk.list("nowhere").unwrap(), [""; 0]);
        disk.truncate("a/b", 2).unwrap();
        disk.rename("a/b", "a/e").unwrap();
        assert!(!disk.exists("a/b") && disk.open("a/b").is_err());
        assert_eq!(disk.read("a/e").unwrap(), b"he");
        disk.remove("a/e").unwrap();
        disk.remove("a/e").unwrap();
    }

    #[test]
    fn a_torn_commit_leaves_whole_records_and_is_cut() {
        for share in 0..=255u8 {
            let below = MemoryDisk::new();
            let mortal = MortalDisk::new(below.clone());
            let mut log = Log::open(mortal.clone(), Position::START, 1 << 20).unwrap();
            for payload in 0..20u8 {
                log.append(7, |into| into.extend_from_slice(&[payload; 30]));
            }
            mortal.doom(0, share);
            assert!(log.commit().is_err() && mortal.is_dead());
            let log = Log::open(below.clone(), Position::START, 1 << 20).unwrap();
            let mut reader = LogReader::open(below, Position::START).unwrap();
            let mut whole = 0u8;
            while let Some((_, payload)) = reader.next().unwrap() {
                assert_eq!(payload, [whole; 30]);
                whole += 1;
            }
            assert_eq!(usize::from(whole), 20 * usize::from(share) / 256);
            assert_eq!(log.position(), reader.position());
        }
    }
}
