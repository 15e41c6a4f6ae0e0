//! Reads whole files only to see whether they are sound: what `rhumb status` and `rhumb rebuild` ask before they trust them.
//!
//! State files are to be looked at through the disk on which a crawl was just opened: there, files that its checkpoint does
//! not name are gone and what was written after it is cut off, so whatever does not read is damage and not the tail
//! of a write that a crash cut short. Spools have their checksums in the checkpoint;
//! opening reads them, unless the sieve is so large that it is not flushed then.

use std::sync::Arc;

use crate::archive;
use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};
use crate::log::{LogReader, Position};
use crate::runs::Run;
use crate::warc;
use crate::{fifo, rows, table};

const STATE_DIRS: [&str; 4] = ["state/queues", "state/sieve", "state/hosts", "state/seen"];

/// Bytes of all files of log, state and archive: what looking at everything would read.
pub fn bytes(disk: &dyn Disk) -> Result<u64> {
    let mut sum = 0;
    for dir in ["log", archive::DIR].into_iter().chain(STATE_DIRS) {
        for name in disk.list(dir)? {
            sum += disk.open(&format!("{dir}/{name}"))?.len()?;
        }
    }
    Ok(sum)
}

/// Reads the log from its start to its end and returns how many records it has.
pub fn log(disk: Arc<dyn Disk>) -> Result<u64> {
    let mut reader = LogReader::open(disk, Position::START)?;
    let mut records = 0;
    while reader.next()?.is_some() {
        records += 1;
    }
    Ok(records)
}

/// Reads every queue segment, run, table and file of rows; what is wrong with each that is damaged.
pub fn state(disk: &dyn Disk) -> Result<Vec<StoreError>> {
    let mut damage = Vec::new();
    for dir in STATE_DIRS {
        for name in disk.list(dir)? {
            let name = format!("{dir}/{name}");
            let sound = match name.rsplit('.').next() {
                Some("seg") => fifo::verify(disk, &name),
                Some("run" | "del" | "key") => run(disk, &name),
                Some("row") => rows::verify(disk, &name),
                Some("tab") => table::verify(disk, &name),
                _ => Ok(()),
            };
            damage.extend(sound.err());
        }
    }
    Ok(damage)
}

fn run(disk: &dyn Disk, name: &str) -> Result<()> {
    let mut scan = Arc::new(Run::open(disk, name)?).scan();
    while scan.next()?.is_some() {}
    Ok(())
}

/// Reads every archive file and the index beside it; the first trouble of each that is damaged.
pub fn archive(disk: &dyn Disk) -> Result<Vec<StoreError>> {
    let mut damage = Vec::new();
    for (_, name) in archive::files(disk)? {
        let path = format!("{}/{name}", archive::DIR);
        let report = warc::check(Reading { file: disk.open(&path)?, at: 0 });
        if let Some(problem) = report.errors.first() {
            damage.push(StoreError::corrupt(&path, problem.offset, problem.what.clone()));
            continue;
        }
        let index = archive::index_path(&name);
        if !disk.exists(&index) {
            continue;
        }
        let mut expected = String::new();
        let listed = warc::cdxj::index(Reading { file: disk.open(&path)?, at: 0 }, &name, |entry| {
            expected.push_str(entry.line().trim_end());
            expected.push('\n');
        });
        let found = disk.read(&index)?;
        let differs = found.iter().zip(expected.as_bytes()).position(|(a, b)| a != b);
        let shorter = (found.len() < expected.len()).then_some(found.len());
        if let (Ok(()), Some(offset)) = (listed, differs.or(shorter)) {
            damage.push(StoreError::corrupt(&index, offset as u64, "not the index of its archive file"));
        }
    }
    Ok(damage)
}

/// A file of the disk as a stream.
struct Reading {
    file: Box<dyn DiskFile>,
    at: u64,
}

impl std::io::Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let got = self.file.read_at(self.at, into).map_err(std::io::Error::other)?;
        self.at += got as u64;
        Ok(got)
    }
}
