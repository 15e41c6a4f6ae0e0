//! A disk that fails on purpose: the n-th change of a crawl directory goes wrong, or the n-th look at it, for any n.
//!
//! It lies over another [`Disk`] and counts either what changes files (create, append, sync, rename, remove, truncate,
//! making directories) or what looks at them (open, read, length, second handles, listing); the other kind is never
//! disturbed. What goes wrong follows from n and the mode alone, so a found n is a test.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rhumb_store::disk::{Disk, DiskFile};
use rhumb_store::{Result, StoreError};

/// How the n-th operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It does nothing and reports an error; those after it succeed.
    Fail,
    /// As if the process died in the middle of it: an append leaves a part of its bytes, and nothing after it happens.
    Tear,
    /// The disk is full from here on: an append leaves what still fitted, nothing more can be created or appended.
    /// Renaming, removing and cutting go on.
    Full,
    /// Looks at files are counted instead of changes, and this one fails; those after it succeed.
    Unreadable,
}

/// See the module's header.
pub struct FailingDisk {
    below: Arc<dyn Disk>,
    plan: Arc<Plan>,
}

struct Plan {
    /// The operation that goes wrong, from 1; 0 for none.
    at: u64,
    failure: Failure,
    done: AtomicU64,
    journal: Mutex<Vec<String>>,
}

enum Turn {
    Go,
    /// An append writes this share of its bytes, in 256ths, before it fails.
    Stop(u64, io::Error),
}

impl FailingDisk {
    /// A disk over `below` whose operation number `at` (from 1) goes wrong.
    pub fn new(below: Arc<dyn Disk>, at: u64, failure: Failure) -> Arc<FailingDisk> {
        let plan = Plan { at, failure, done: AtomicU64::new(0), journal: Mutex::default() };
        Arc::new(FailingDisk { below, plan: Arc::new(plan) })
    }

    /// A disk that only counts.
    pub fn counting(below: Arc<dyn Disk>) -> Arc<FailingDisk> {
        FailingDisk::new(below, 0, Failure::Fail)
    }

    /// Operations so far, the failed ones included.
    pub fn operations(&self) -> u64 {
        self.plan.done.load(Ordering::SeqCst)
    }

    /// What the operations were, in order: "append log/00000001.log".
    pub fn journal(&self) -> Vec<String> {
        self.plan.journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Plan {
    fn turn(&self, verb: &'static str, name: &str) -> Turn {
        if matches!(verb, "open" | "read" | "measure" | "share" | "list") != (self.failure == Failure::Unreadable) {
            return Turn::Go;
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let n = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        journal.push(format!("{verb} {name}"));
        let enough = |from: u64| self.at != 0 && n >= from;
        let grows = matches!(verb, "create" | "append");
        match self.failure {
            Failure::Fail if n == self.at && self.at != 0 => {
                Turn::Stop(0, io::Error::other("a write fails on purpose"))
            }
            Failure::Unreadable if n == self.at && self.at != 0 => {
                Turn::Stop(0, io::Error::other("a look at a file fails on purpose"))
            }
            Failure::Tear if enough(self.at) => {
                let share = if n == self.at { spread(n) } else { 0 };
                Turn::Stop(share, io::Error::other("the process is dead on purpose"))
            }
            Failure::Full if enough(self.at) && grows => {
                let share = if n == self.at { spread(n) } else { 0 };
                Turn::Stop(share, io::Error::from(io::ErrorKind::StorageFull))
            }
            _ => Turn::Go,
        }
    }

    fn simple<T>(&self, verb: &'static str, name: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.turn(verb, name) {
            Turn::Go => act(),
            Turn::Stop(_, e) => Err(StoreError::io(verb, name, e)),
        }
    }
}

/// Places in 0..256 that differ from one n to the next, both ends included.
fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

impl Disk for FailingDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.plan.simple("create", name, || Ok(()))?;
        Ok(Box::new(FailingFile { below: self.below.create(name)?, name: name.into(), plan: self.plan.clone() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.plan.simple("open", name, || Ok(()))?;
        Ok(Box::new(FailingFile { below: self.below.open(name)?, name: name.into(), plan: self.plan.clone() }))
    }

    fn exists(&self, name: &str) -> bool {
        self.below.exists(name)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.plan.simple("list", dir, || self.below.list(dir))
    }

    fn make_dir(&self, dir: &str) -> Result<()> {
        self.plan.simple("make directory", dir, || self.below.make_dir(dir))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.plan.simple("rename", to, || self.below.rename(from, to))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.plan.simple("remove", name, || self.below.remove(name))
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        self.plan.simple("truncate", name, || self.below.truncate(name, len))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.plan.simple("sync", dir, || self.below.sync_dir(dir))
    }
}

struct FailingFile {
    below: Box<dyn DiskFile>,
    name: Arc<str>,
    plan: Arc<Plan>,
}

impl DiskFile for FailingFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self.plan.turn("append", &self.name) {
            Turn::Go => self.below.append(bytes),
            Turn::Stop(share, e) => {
                let kept = (bytes.len() as u64 * share / 256) as usize;
                if kept > 0 {
                    self.below.append(&bytes[..kept])?;
                }
                Err(StoreError::io("append to", &self.name, e))
            }
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.plan.simple("read", &self.name, || self.below.read_at(offset, into))
    }

    fn sync(&mut self) -> Result<()> {
        let below = &mut self.below;
        self.plan.simple("sync", &self.name, || below.sync())
    }

    fn len(&self) -> Result<u64> {
        self.plan.simple("measure", &self.name, || self.below.len())
    }

    fn handle(&self) -> Result<Box<dyn DiskFile>> {
        self.plan.simple("share", &self.name, || Ok(()))?;
        Ok(Box::new(FailingFile { below: self.below.handle()?, name: self.name.clone(), plan: self.plan.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_store::disk::RealDisk;

    /// Five operations: create, append, sync, append, remove (of a file that is not there).
    fn five(disk: &dyn Disk) -> Vec<bool> {
        let mut ok = Vec::new();
        let file = disk.create("a");
        ok.push(file.is_ok());
        let mut file = file.or_else(|_| disk.open("a")).unwrap();
        ok.push(file.append(&[1; 100]).is_ok());
        ok.push(file.sync().is_ok());
        ok.push(file.append(&[2; 100]).is_ok());
        ok.push(disk.remove("b").is_ok());
        ok
    }

    #[test]
    fn the_nth_operation_goes_wrong() {
        let check = |at: u64, failure: Failure, expected: [bool; 5], bytes: std::ops::RangeInclusive<u64>| {
            let dir = tempfile::tempdir().unwrap();
            let real = RealDisk::new(dir.path());
            let disk = FailingDisk::new(real.clone(), at, failure);
            assert_eq!(five(&*disk), expected, "{failure:?} at {at}");
            let len = real.open("a").unwrap().len().unwrap();
            assert!(bytes.contains(&len), "{failure:?} at {at}: {len} bytes");
            assert_eq!(disk.operations(), 5);
            assert_eq!(disk.journal()[1], "append a");
        };
        check(0, Failure::Tear, [true; 5], 200..=200);
        check(2, Failure::Fail, [true, false, true, true, true], 100..=100);
        check(2, Failure::Tear, [true, false, false, false, false], 0..=99);
        check(2, Failure::Full, [true, false, true, false, true], 0..=99);
        check(4, Failure::Tear, [true, true, true, false, false], 100..=199);
        check(5, Failure::Fail, [true, true, true, true, false], 200..=200);
    }

    #[test]
    fn the_nth_look_goes_wrong() {
        for (at, expected) in
            [(1, [false, true, true, true]), (2, [true, false, true, true]), (4, [true, true, true, false])]
        {
            let dir = tempfile::tempdir().unwrap();
            let disk = FailingDisk::new(RealDisk::new(dir.path()), at, Failure::Unreadable);
            disk.create("a").and_then(|mut a| a.append(&[1; 10])).unwrap();
            let opened = disk.open("a");
            let mut looks = vec![opened.is_ok()];
            let file = opened.or_else(|_| RealDisk::new(dir.path()).open("a")).unwrap();
            looks.extend([file.read_at(0, &mut [0; 4]).is_ok(), file.len().is_ok(), disk.list(".").is_ok()]);
            // A file that was opened elsewhere is not counted.
            let expected = if at == 1 { [false, true, true, true] } else { expected };
            assert_eq!(looks, expected, "{at}");
        }
    }
}
