//! Where tantivy keeps the files of one part: in the crawl's own directory, with a checksum for every block.
//!
//! A part has one segment, so its files are told apart by what they hold: `index/000012.term` is the term dictionary of part 12,
//! whatever tantivy calls it. tantivy's own list of files and its locks stay in memory: which parts count is said by
//! [`crate::manifest`], and who may write by the lock of the index.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rhumb_store::StoreError;
use rhumb_store::checked::{Checked, CheckedWriter};
use rhumb_store::disk::Disk;
use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// The file in which tantivy describes a segment.
const META: &str = "meta.json";

/// The files of one part.
#[derive(Clone)]
pub struct PartDirectory {
    disk: Arc<dyn Disk>,
    /// What the names of its files begin with: `index/000012`.
    base: Arc<str>,
    /// What need not outlive the process.
    memory: Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>,
}

impl PartDirectory {
    /// The files whose names begin with `base`.
    pub fn new(disk: Arc<dyn Disk>, base: &str) -> PartDirectory {
        PartDirectory { disk, base: base.into(), memory: Arc::default() }
    }

    /// Our name for a file of tantivy's.
    fn name(&self, path: &Path) -> Option<String> {
        let kind = path.extension()?.to_str()?;
        let is_ours = path == Path::new(META) || !path.as_os_str().to_str()?.starts_with('.');
        is_ours.then(|| format!("{}.{}", self.base, if path == Path::new(META) { "meta" } else { kind }))
    }
}

/// Kinds of files that a segment of ours has.
const KINDS: [&str; 7] = ["meta", "term", "idx", "pos", "fieldnorm", "fast", "store"];

/// Makes sure that all files of a part are there and have their ends. tantivy calls them by other names, and goes on without some.
pub fn look(disk: &dyn Disk, base: &str) -> rhumb_store::Result<()> {
    KINDS.iter().try_for_each(|kind| Checked::open(disk, &format!("{base}.{kind}")).map(drop))
}

impl fmt::Debug for PartDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartDirectory").field("base", &self.base).finish_non_exhaustive()
    }
}

fn as_io(error: StoreError) -> io::Error {
    match &error {
        StoreError::Io { source, .. } => io::Error::new(source.kind(), error),
        _ => io::Error::other(error),
    }
}

fn read_error(error: StoreError, path: &Path) -> OpenReadError {
    match &error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            OpenReadError::FileDoesNotExist(path.to_path_buf())
        }
        _ => OpenReadError::wrap_io_error(as_io(error), path.to_path_buf()),
    }
}

impl Directory for PartDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let name = self.name(path).ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_path_buf()))?;
        let (map, checked) = Checked::open(&*self.disk, &name).map_err(|e| read_error(e, path))?;
        Ok(Arc::new(CheckedHandle { bytes: OwnedBytes::new(map), checked }))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let Some(name) = self.name(path) else {
            self.memory.lock().expect("nobody panics with it in hand").remove(path);
            return Ok(());
        };
        let failed = |e| DeleteError::IoError { io_error: Arc::new(as_io(e)), filepath: path.to_path_buf() };
        self.disk.remove(&name).map_err(failed)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(match self.name(path) {
            Some(name) => self.disk.exists(&name),
            None => self.memory.lock().expect("nobody panics with it in hand").contains_key(path),
        })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let failed = |e: io::Error| OpenWriteError::wrap_io_error(e, path.to_path_buf());
        let name = self.name(path).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let writer = CheckedWriter::create(&*self.disk, &name).map_err(|e| failed(as_io(e)))?;
        Ok(WritePtr::new(Box::new(CheckedWrite(Some(writer)))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let Some(name) = self.name(path) else {
            let memory = self.memory.lock().expect("nobody panics with it in hand");
            return memory.get(path).cloned().ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_path_buf()));
        };
        let (map, checked) = Checked::open(&*self.disk, &name).map_err(|e| read_error(e, path))?;
        checked.check_all(&map).map_err(|e| read_error(e, path))?;
        Ok(map[..checked.len()].to_vec())
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let Some(name) = self.name(path) else {
            self.memory.lock().expect("nobody panics with it in hand").insert(path.to_path_buf(), data.to_vec());
            return Ok(());
        };
        // Nobody knows of the part before the list names it, so that half a file harms nobody.
        let mut writer = CheckedWriter::create(&*self.disk, &name).map_err(as_io)?;
        writer.write(data).and_then(|()| writer.finish().map(drop)).map_err(as_io)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file that is read in place.
struct CheckedHandle {
    bytes: OwnedBytes,
    checked: Arc<Checked>,
}

impl fmt::Debug for CheckedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checked.fmt(f)
    }
}

impl HasLen for CheckedHandle {
    fn len(&self) -> usize {
        self.checked.len()
    }
}

impl FileHandle for CheckedHandle {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.checked.check(&self.bytes, range.clone()).map_err(as_io)?;
        Ok(self.bytes.slice(range))
    }
}

struct CheckedWrite(Option<CheckedWriter>);

impl Write for CheckedWrite {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let writer = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.write(bytes).map_err(as_io)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for CheckedWrite {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let writer = self.0.take().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.finish().map(drop).map_err(as_io)
    }
}
