//! The small set of file operations everything durable is built on.
//!
//! Names are relative to the crawl directory and chosen by rhumb alone: crawled data never names a
//! file. Keeping the set small lets `rhumb-sim` put a failing disk underneath the real code.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::{Result, StoreError};
use crate::map::Map;

/// A directory that can be written to, and may fail.
pub trait Disk: Send + Sync {
    /// A new, empty file for appending; an existing one is emptied.
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>>;
    /// An existing file for appending and reading.
    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>>;
    /// Whether the file exists.
    fn exists(&self, name: &str) -> bool;
    /// File names (not paths) in a directory, sorted; empty if there is no such directory.
    fn list(&self, dir: &str) -> Result<Vec<String>>;
    /// Makes a directory and its parents.
    fn make_dir(&self, dir: &str) -> Result<()>;
    /// Renames over an existing file, atomically, and makes it durable.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes a file; no error if it is gone already.
    fn remove(&self, name: &str) -> Result<()>;
    /// Cuts a file to `len` bytes.
    fn truncate(&self, name: &str, len: u64) -> Result<()>;
    /// Waits until the names of files made in a directory survive a power loss; their contents are synced on their own.
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// The whole file.
    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.open(name)?;
        let mut bytes = vec![0; file.len()? as usize];
        let n = file.read_at(0, &mut bytes)?;
        bytes.truncate(n);
        Ok(bytes)
    }

    /// The whole file, in place where that can be. It must be one that nobody changes any more.
    fn map(&self, name: &str) -> Result<Map> {
        Ok(Map::from(self.read(name)?))
    }

    /// Writes a file so that after a crash either the old or the new content is there, whole.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let temporary = format!("{name}.tmp");
        let mut file = self.create(&temporary)?;
        file.append(bytes)?;
        file.sync()?;
        self.rename(&temporary, name)
    }
}

/// An open file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Adds all of `bytes` at the end.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Reads up to `into.len()` bytes from `offset`; fewer only at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;
    /// Waits until what was appended survives a power loss.
    fn sync(&mut self) -> Result<()>;
    /// Bytes in the file.
    fn len(&self) -> Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// A second handle on the same file, so that another thread can sync it.
    fn handle(&self) -> Result<Box<dyn DiskFile>>;
}

/// The real file system below one directory.
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// A disk rooted at `root`, which must exist.
    #[allow(clippy::new_ret_no_self)] // Nobody wants it other than as a disk.
    pub fn new(root: &Path) -> Arc<dyn Disk> {
        Arc::new(RealDisk { root: root.to_path_buf() })
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(self.root.join(name));
        Ok(Box::new(RealFile { file: file.map_err(|e| StoreError::io("create", name, e))?, end: 0, name: name.into() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let io_error = |e| StoreError::io("open", name, e);
        let path = self.root.join(name);
        // A reader of somebody else's crawl directory may lack write permission.
        let file = OpenOptions::new().read(true).write(true).open(&path).or_else(|e| match e.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
            _ => Err(e),
        });
        let file = file.map_err(io_error)?;
        let end = file.metadata().map_err(io_error)?.len();
        Ok(Box::new(RealFile { file, end, name: name.into() }))
    }

    fn exists(&self, name: &str) -> bool {
        self.root.join(name).exists()
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let io_error = |e| StoreError::io("list", dir, e);
        let entries = match fs::read_dir(self.root.join(dir)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io_error)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry.map_err(io_error)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn make_dir(&self, dir: &str) -> Result<()> {
        let path = self.root.join(dir);
        if path.is_dir() {
            return Ok(());
        }
        let made = fs::create_dir_all(&path);
        let above = path.ancestors().skip(1).take_while(|p| p.starts_with(&self.root));
        let synced = made.and_then(|()| above.into_iter().try_for_each(sync_directory));
        synced.map_err(|e| StoreError::io("make directory", dir, e))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let io_error = |e| StoreError::io("rename a file to", to, e);
        let target = self.root.join(to);
        fs::rename(self.root.join(from), &target).map_err(io_error)?;
        sync_directory(target.parent().unwrap_or(&self.root)).map_err(io_error)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match fs::remove_file(self.root.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", name, e)),
            _ => Ok(()),
        }
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        let io_error = |e| StoreError::io("cut", name, e);
        let file = OpenOptions::new().write(true).open(self.root.join(name)).map_err(io_error)?;
        file.set_len(len).and_then(|()| file.sync_all()).map_err(io_error)
    }

    fn map(&self, name: &str) -> Result<Map> {
        let file = File::open(self.root.join(name)).map_err(|e| StoreError::io("open", name, e))?;
        Map::of(&file).map_err(|e| StoreError::io("map", name, e))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        sync_directory(&self.root.join(dir)).map_err(|e| StoreError::io("sync directory", dir, e))
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

struct RealFile {
    file: File,
    /// Where the next append goes. Appends carry their offset, so that two handles never disagree.
    end: u64,
    name: Arc<str>,
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut at = self.end;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write_at(rest, at) {
                Ok(0) => return Err(StoreError::io("append to", &self.name, io::ErrorKind::WriteZero.into())),
                Ok(n) => {
                    at += n as u64;
                    rest = &rest[n..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(StoreError::io("append to", &self.name, e)),
            }
        }
        self.end = at;
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(StoreError::io("read", &self.name, e)),
            }
        }
        Ok(done)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| StoreError::io("sync", &self.name, e))
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| StoreError::io("measure", &self.name, e))
    }

    fn handle(&self) -> Result<Box<dyn DiskFile>> {
        let file = self.file.try_clone().map_err(|e| StoreError::io("share", &self.name, e))?;
        Ok(Box::new(RealFile { file, end: self.end, name: self.name.clone() }))
    }
}

/// A disk whose changes stay in memory: for looking at a crawl directory as if it were opened, without touching it.
pub struct Overlay {
    below: Arc<dyn Disk>,
    files: Changes,
}

type Changes = Arc<Mutex<BTreeMap<String, Change>>>;

/// What became of a file of the disk below.
enum Change {
    Removed,
    /// Only so many bytes of it are left. A cut tail of an archive of gigabytes must not be copied.
    Cut(u64),
    Bytes(Vec<u8>),
}

impl Overlay {
    /// An overlay without changes.
    #[allow(clippy::new_ret_no_self)] // Nobody wants it other than as a disk.
    pub fn new(below: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(Overlay { below, files: Arc::default() })
    }

    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Change>> {
        self.files.lock().expect("nobody panics while copying bytes")
    }
}

fn removed(name: &str) -> StoreError {
    StoreError::io("open", name, io::ErrorKind::NotFound.into())
}

impl Disk for Overlay {
    fn map(&self, name: &str) -> Result<Map> {
        if self.files().contains_key(name) { Ok(Map::from(self.read(name)?)) } else { self.below.map(name) }
    }

    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        self.files().insert(name.to_string(), Change::Bytes(Vec::new()));
        Ok(Box::new(OverlayFile { name: name.to_string(), files: self.files.clone(), below: None }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>> {
        let mut files = self.files();
        let below = match files.get(name) {
            Some(Change::Bytes(_)) => None,
            Some(Change::Cut(_)) => Some(self.below.open(name)?),
            Some(Change::Removed) => return Err(removed(name)),
            None => {
                // Nothing was cut yet, but what is appended must not reach the file below.
                let below = self.below.open(name)?;
                files.insert(name.to_string(), Change::Cut(below.len()?));
                Some(below)
            }
        };
        Ok(Box::new(OverlayFile { name: name.to_string(), files: self.files.clone(), below }))
    }

    fn exists(&self, name: &str) -> bool {
        let known = self.files().get(name).map(|c| !matches!(c, Change::Removed));
        known.unwrap_or_else(|| self.below.exists(name))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let mut names: std::collections::BTreeSet<String> = self.below.list(dir)?.into_iter().collect();
        for (name, change) in self.files().iter() {
            if let Some(name) = name.strip_prefix(dir).and_then(|n| n.strip_prefix('/')).filter(|n| !n.contains('/')) {
                if matches!(change, Change::Removed) {
                    names.remove(name)
                } else {
                    names.insert(name.to_string())
                };
            }
        }
        Ok(names.into_iter().collect())
    }

    fn make_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let bytes = self.read(from)?;
        self.files().insert(to.to_string(), Change::Bytes(bytes));
        self.remove(from)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files().insert(name.to_string(), Change::Removed);
        Ok(())
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        match self.files().get_mut(name) {
            Some(Change::Bytes(bytes)) => bytes.truncate(len as usize),
            Some(Change::Cut(left)) => *left = len.min(*left),
            Some(Change::Removed) => return Err(removed(name)),
            None => {}
        }
        if !self.files().contains_key(name) {
            let left = self.below.open(name)?.len()?.min(len);
            self.files().insert(name.to_string(), Change::Cut(left));
        }
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }
}

struct OverlayFile {
    name: String,
    files: Changes,
    /// The file below, if it was opened while only its tail was cut.
    below: Option<Box<dyn DiskFile>>,
}

impl OverlayFile {
    fn with<T>(&self, f: impl FnOnce(&mut Change) -> Result<T>) -> Result<T> {
        let mut files = self.files.lock().expect("nobody panics while copying bytes");
        f(files.get_mut(&self.name).ok_or_else(|| removed(&self.name))?)
    }

    fn read_below(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.below.as_ref().ok_or_else(|| removed(&self.name))?.read_at(offset, into)
    }
}

impl DiskFile for OverlayFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.with(|change| {
            if let Change::Cut(left) = *change {
                let mut kept = vec![0; left as usize];
                self.read_below(0, &mut kept)?;
                *change = Change::Bytes(kept);
            }
            match change {
                Change::Bytes(file) => file.extend_from_slice(bytes),
                _ => return Err(removed(&self.name)),
            }
            Ok(())
        })
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.with(|change| match change {
            Change::Removed => Err(removed(&self.name)),
            Change::Cut(left) => {
                let n = left.saturating_sub(offset).min(into.len() as u64) as usize;
                self.read_below(offset, &mut into[..n])
            }
            Change::Bytes(file) => {
                let rest = file.get(offset as usize..).unwrap_or_default();
                let n = rest.len().min(into.len());
                into[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
        })
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.with(|change| match change {
            Change::Removed => Err(removed(&self.name)),
            Change::Cut(left) => Ok(*left),
            Change::Bytes(file) => Ok(file.len() as u64),
        })
    }

    fn handle(&self) -> Result<Box<dyn DiskFile>> {
        let below = self.below.as_ref().map(|b| b.handle()).transpose()?;
        Ok(Box::new(OverlayFile { name: self.name.clone(), files: self.files.clone(), below }))
    }
}

/// How often a lock is tried.
const LOCK_TRIES: u32 = 20;

/// Held while a process writes a crawl directory; released when dropped or when the process dies.
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock of `root`, or says who cannot have it.
    pub fn take(root: &Path) -> Result<DirLock> {
        let path = root.join("lock");
        let io_error = |e| StoreError::io("open", "lock", e);
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io_error)?;
        let mut tries = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // It may be somebody who only looks whether it is held.
                Err(fs::TryLockError::WouldBlock) if tries < LOCK_TRIES => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                Err(fs::TryLockError::WouldBlock) => return Err(StoreError::Locked(root.display().to_string())),
                Err(fs::TryLockError::Error(e)) => return Err(io_error(e)),
            }
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_error)?;
        Ok(DirLock { _file: file })
    }

    /// Whether another process holds the lock of `root` now.
    pub fn is_held(root: &Path) -> bool {
        File::open(root.join("lock")).is_ok_and(|f| matches!(f.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_is_whole_and_lock_excludes() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        disk.replace("a", b"one").expect("replace");
        disk.replace("a", b"two").expect("replace");
        assert_eq!(disk.read("a").expect("read"), b"two");
        assert_eq!(disk.list(".").expect("list"), ["a"]);

        let overlay = Overlay::new(disk.clone());
        overlay.replace("b", b"new").expect("replace");
        overlay.open("a").and_then(|mut a| a.append(b"!")).expect("append");
        assert_eq!(overlay.read("a").expect("read"), b"two!");
        overlay.truncate("a", 1).expect("cut");
        assert_eq!(overlay.read("a").expect("read"), b"t");
        let mut file = overlay.open("a").expect("open");
        file.append(b"ree").expect("append");
        assert_eq!((overlay.read("a").expect("read"), file.len().expect("length")), (b"tree".to_vec(), 4));
        overlay.truncate("a", 2).expect("cut");
        overlay.rename("a", "c").expect("rename");
        assert_eq!((overlay.exists("a"), overlay.read("c").expect("read")), (false, b"tr".to_vec()));
        assert_eq!(overlay.read("b").expect("read"), b"new");
        assert_eq!(disk.read("a").expect("read"), b"two", "what is below stays as it is");
        assert!(!disk.exists("b"));

        let lock = DirLock::take(dir.path()).expect("first lock");
        assert!(matches!(DirLock::take(dir.path()), Err(StoreError::Locked(_))));
        assert!(DirLock::is_held(dir.path()));
        drop(lock);
        assert!(!DirLock::is_held(dir.path()));
    }
}
