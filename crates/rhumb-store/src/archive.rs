//! The archive directory: WARC files that grow by whole records, and where in them a page lies.
//!
//! Bytes are appended before the log record that points at them is committed, so after a crash the
//! archive may be longer than the log says but never shorter. [`Archive::open`] cuts it to the last
//! committed end.

use std::sync::Arc;

use crate::codec::{Malformed, Put, Take};
use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};
use crate::time::Timestamp;

/// The directory of the archive.
pub const DIR: &str = "archive";
/// So much waits for a commit at the most.
const BUFFER_BYTES: usize = 1 << 20;

/// Where records of one visit lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRef {
    /// Which file, by serial number from 1.
    pub file: u32,
    /// Where the first record starts.
    pub offset: u64,
    /// Bytes of all records of the visit.
    pub length: u32,
    /// Bytes of the first record, which holds the response.
    pub first: u32,
}

impl ArchiveRef {
    /// Appends the reference's bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(u64::from(self.file));
        into.put_u64(self.offset);
        into.put_u64(u64::from(self.length));
        into.put_u64(u64::from(self.first));
    }

    /// Reads what [`ArchiveRef::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<ArchiveRef, Malformed> {
        Ok(ArchiveRef { file: from.u32()?, offset: from.u64()?, length: from.u32()?, first: from.u32()? })
    }

    /// The end of the visit's records.
    pub fn end(&self) -> ArchiveEnd {
        ArchiveEnd { file: self.file, offset: self.offset + u64::from(self.length) }
    }
}

/// How far the archive is committed. File 0 means nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveEnd {
    /// The file's serial number.
    pub file: u32,
    /// Bytes of it that are committed.
    pub offset: u64,
}

/// The writing end of the archive.
pub struct Archive {
    disk: Arc<dyn Disk>,
    current: Option<Current>,
    next_file: u32,
    file_bytes_max: u64,
    poisoned: bool,
}

struct Current {
    name: String,
    file: Box<dyn DiskFile>,
    serial: u32,
    /// Bytes of the file, those in `buffer` included.
    length: u64,
    buffer: Vec<u8>,
}

/// Makes the bytes a new file begins with (a warcinfo record), given the file's name.
pub type Preamble<'a> = &'a mut dyn FnMut(&str) -> Vec<u8>;

impl Archive {
    /// Opens the archive of a crawl whose log commits it up to `committed`: whatever lies behind is cut.
    pub fn open(disk: Arc<dyn Disk>, committed: ArchiveEnd, file_bytes_max: u64) -> Result<Archive> {
        disk.make_dir(DIR)?;
        let mut archive = Archive {
            disk: disk.clone(),
            current: None,
            next_file: committed.file + 1,
            file_bytes_max,
            poisoned: false,
        };
        for (serial, name) in files(&*disk)? {
            let path = format!("{DIR}/{name}");
            if serial > committed.file {
                disk.remove(&index_path(&name))?;
                disk.remove(&path)?;
            } else if serial == committed.file {
                let length = disk.open(&path)?.len()?;
                if length < committed.offset {
                    let what = format!("the log speaks of {} bytes, the file has {length}", committed.offset);
                    return Err(StoreError::corrupt(&path, length, what));
                }
                if length > committed.offset {
                    disk.truncate(&path, committed.offset)?;
                }
                let file = disk.open(&path)?;
                archive.current = Some(Current { name, file, serial, length: committed.offset, buffer: Vec::new() });
            }
        }
        if committed.file > 0 && archive.current.is_none() {
            let name = format!("{DIR}/rhumb-*-{:05}.warc.gz", committed.file);
            let what = format!("the log speaks of {} bytes, the file is missing", committed.offset);
            return Err(StoreError::corrupt(&name, 0, what));
        }
        Ok(archive)
    }

    /// Takes the records of one visit, of which the first has `first` bytes, and says where they will lie. They reach
    /// the file with [`Archive::commit`].
    pub fn append(&mut self, records: &[u8], first: u32, now: Timestamp, preamble: Preamble<'_>) -> Result<ArchiveRef> {
        let full = self.current.as_ref().is_none_or(|c| c.length >= self.file_bytes_max);
        if full {
            self.commit()?;
            self.start_file(now, preamble)?;
        }
        let current = self.current.as_mut().expect("a file was just started");
        let offset = current.length;
        current.buffer.extend_from_slice(records);
        current.length += records.len() as u64;
        let place = ArchiveRef { file: current.serial, offset, length: records.len() as u32, first };
        if current.buffer.len() >= BUFFER_BYTES {
            self.commit()?;
        }
        Ok(place)
    }

    /// Hands everything appended to the operating system; to be called before the log speaks of it.
    pub fn commit(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if self.poisoned {
            return Err(StoreError::Poisoned(format!("{DIR}/{}", current.name)));
        }
        if current.buffer.is_empty() {
            return Ok(());
        }
        let written = current.file.append(&current.buffer);
        self.poisoned = written.is_err();
        current.buffer.clear();
        written
    }

    fn start_file(&mut self, now: Timestamp, preamble: Preamble<'_>) -> Result<()> {
        if let Some(old) = &mut self.current {
            old.file.sync()?;
        }
        let serial = self.next_file;
        let name = format!("rhumb-{}-{serial:05}.warc.gz", now.digits14());
        let file = self.disk.create(&format!("{DIR}/{name}"))?;
        self.disk.sync_dir(DIR)?;
        let buffer = preamble(&name);
        self.next_file += 1;
        self.current = Some(Current { name, file, serial, length: buffer.len() as u64, buffer });
        Ok(())
    }

    /// A handle with which another thread can sync the current file.
    pub fn sync_handle(&self) -> Result<Option<Box<dyn DiskFile>>> {
        self.current.as_ref().map(|c| c.file.handle()).transpose()
    }

    /// Waits until everything appended survives a power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.current.as_mut().map_or(Ok(()), |c| c.file.sync())
    }

    /// The file being written, if any.
    pub fn current_name(&self) -> Option<&str> {
        self.current.as_ref().map(|c| c.name.as_str())
    }
}

/// The CDXJ index beside each archive file: a line for every response, in file order.
///
/// It is a fold of the log like all derived state: a checkpoint says how far it is, and the records behind it write
/// their lines again.
pub struct ArchiveIndex {
    disk: Arc<dyn Disk>,
    file: Option<Box<dyn DiskFile>>,
    end: ArchiveEnd,
    buffer: Vec<u8>,
}

impl ArchiveIndex {
    /// Opens the index as it was at `end`, cutting what lies behind; a file that is shorter is begun anew, and the end
    /// is then that of the file before.
    pub fn open(disk: Arc<dyn Disk>, end: ArchiveEnd) -> Result<ArchiveIndex> {
        let mut index = ArchiveIndex { disk, file: None, end, buffer: Vec::new() };
        for (serial, name) in files(&*index.disk)?.into_iter().filter(|(serial, _)| *serial == end.file) {
            let path = index_path(&name);
            let length = if index.disk.exists(&path) { index.disk.open(&path)?.len()? } else { 0 };
            if length < end.offset {
                index.end = ArchiveEnd { file: serial.saturating_sub(1), offset: 0 };
                return Ok(index);
            }
            if length > end.offset {
                index.disk.truncate(&path, end.offset)?;
            }
            if length > 0 {
                index.file = Some(index.disk.open(&path)?);
            }
        }
        Ok(index)
    }

    /// How far the index goes, with what waits for a commit.
    pub fn end(&self) -> ArchiveEnd {
        ArchiveEnd { file: self.end.file, offset: self.end.offset + self.buffer.len() as u64 }
    }

    /// Adds a line for a record in the archive file with this serial number and name.
    pub fn add(&mut self, serial: u32, name: &str, line: &str) -> Result<()> {
        if self.file.is_none() || serial != self.end.file {
            self.commit()?;
            self.sync()?;
            self.file = Some(self.disk.create(&index_path(name))?);
            self.end = ArchiveEnd { file: serial, offset: 0 };
        }
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER_BYTES { self.commit() } else { Ok(()) }
    }

    /// Hands the lines to the operating system.
    pub fn commit(&mut self) -> Result<()> {
        if let Some(file) = self.file.as_mut().filter(|_| !self.buffer.is_empty()) {
            let written = file.append(&self.buffer);
            self.end.offset += self.buffer.len() as u64;
            self.buffer.clear();
            written?;
        }
        Ok(())
    }

    /// A handle with which another thread can sync the file being written.
    pub fn sync_handle(&self) -> Result<Option<Box<dyn DiskFile>>> {
        self.file.as_ref().map(|f| f.handle()).transpose()
    }

    /// Waits until the lines survive a power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |f| f.sync())
    }
}

/// The index beside an archive file.
pub(crate) fn index_path(archive_name: &str) -> String {
    format!("{DIR}/{}.cdxj", archive_name.trim_end_matches(".warc.gz"))
}

/// The archive's files with their serial numbers, in order.
pub fn files(disk: &dyn Disk) -> Result<Vec<(u32, String)>> {
    let names = disk.list(DIR)?;
    let mut files: Vec<(u32, String)> = names
        .into_iter()
        .filter_map(|n| Some((n.strip_suffix(".warc.gz")?.rsplit('-').next()?.parse().ok()?, n)))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn uncommitted_bytes_are_cut_and_files_roll() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let mut info = |_: &str| b"INFO".to_vec();
        let mut archive = Archive::open(disk.clone(), ArchiveEnd::default(), 10).expect("open");
        let a = archive.append(b"0123456789", 10, Timestamp(0), &mut info).expect("append");
        let b = archive.append(b"second", 6, Timestamp(0), &mut info).expect("append");
        let _lost = archive.append(b"lost", 4, Timestamp(0), &mut info).expect("append");
        assert_eq!((a.file, a.offset, b.file, b.offset), (1, 4, 2, 4));
        archive.commit().expect("commit");
        drop(archive);
        let mut archive = Archive::open(disk.clone(), b.end(), 10).expect("open again");
        let c = archive.append(b"third", 5, Timestamp(0), &mut info).expect("append");
        assert_eq!((c.file, c.offset), (3, 4));
        let names = files(&*disk).expect("list");
        assert_eq!(names.len(), 3);
        assert_eq!(disk.read(&format!("{DIR}/{}", names[1].1)).expect("read"), b"INFOsecond");
        let short = Archive::open(disk.clone(), ArchiveEnd { file: 3, offset: 1000 }, 10);
        assert!(matches!(short, Err(StoreError::Corrupt { .. })));
        let missing = Archive::open(disk, ArchiveEnd { file: 4, offset: 1000 }, 10);
        assert!(matches!(missing, Err(StoreError::Corrupt { .. })));
    }
}
