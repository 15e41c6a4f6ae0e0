//! Sorting more than fits into memory: byte strings, in the order of their bytes.
//!
//! What is pushed gathers in one buffer up to a bound; then it is sorted and becomes a run, a file of entries with their
//! lengths. [`Sorter::merge`] reads all runs at once, a block of each in memory. More runs than may be open at a time are merged
//! into longer ones first. Invariant: what comes out is what went in, sorted; memory is the bound and a block for each run.
//!
//! Keys are written with their most significant byte first, so that the order of bytes is the order of numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{ExportError, Result};

/// Runs that are read at once.
const RUNS_MAX: usize = 64;
/// Bytes read of a run at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// Less than this is not worth a file.
const MEMORY_MIN: usize = 64 << 10;
/// An entry costs this much beside its bytes.
const ENTRY_BYTES: usize = size_of::<(usize, u32)>();

/// Where each entry begins in a buffer, and its length.
type Entries = Vec<(usize, u32)>;

/// The collecting end.
pub(crate) struct Sorter {
    dir: PathBuf,
    name: &'static str,
    memory_bytes: usize,
    bytes: Vec<u8>,
    entries: Entries,
    runs: Vec<PathBuf>,
    runs_made: usize,
}

impl Sorter {
    /// A sorter that puts its runs into `dir` under `name` and a number.
    pub(crate) fn new(dir: &Path, name: &'static str, memory_bytes: usize) -> Sorter {
        let memory_bytes = memory_bytes.max(MEMORY_MIN);
        Sorter {
            dir: dir.to_path_buf(),
            name,
            memory_bytes,
            bytes: Vec::new(),
            entries: Vec::new(),
            runs: Vec::new(),
            runs_made: 0,
        }
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: &[u8]) -> Result<()> {
        if self.bytes.len() + entry.len() + (self.entries.len() + 1) * ENTRY_BYTES > self.memory_bytes {
            self.spill()?;
        }
        self.entries.push((self.bytes.len(), entry.len() as u32));
        self.bytes.extend_from_slice(entry);
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.entries.sort_unstable_by(|a, b| slice(bytes, *a).cmp(slice(bytes, *b)));
    }

    fn spill(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        self.sort();
        let mut run = RunWriter::create(self.next_path())?;
        for entry in &self.entries {
            run.push(slice(&self.bytes, *entry))?;
        }
        self.runs.push(run.finish()?);
        self.bytes.clear();
        self.entries.clear();
        Ok(())
    }

    fn next_path(&mut self) -> PathBuf {
        self.runs_made += 1;
        self.dir.join(format!("{}-{}.run", self.name, self.runs_made))
    }

    /// All entries in order. The runs are removed when it is dropped.
    pub(crate) fn merge(mut self) -> Result<Merge> {
        if self.runs.is_empty() {
            self.sort();
            let memory = Some((self.bytes, self.entries, 0));
            return Ok(Merge { memory, heap: BinaryHeap::new(), runs: Vec::new(), keep: false });
        }
        Merge::of(self.seal()?, false)
    }

    /// Puts everything into files, no more than can be read at once, for [`Merge::of`].
    pub(crate) fn seal(mut self) -> Result<Vec<PathBuf>> {
        self.spill()?;
        (self.bytes, self.entries) = (Vec::new(), Vec::new());
        while self.runs.len() > RUNS_MAX {
            let some: Vec<PathBuf> = self.runs.drain(..RUNS_MAX).collect();
            let mut longer = RunWriter::create(self.next_path())?;
            let mut merge = Merge::of(some, false)?;
            while let Some(entry) = merge.next()? {
                longer.push(&entry)?;
            }
            self.runs.push(longer.finish()?);
        }
        Ok(self.runs)
    }
}

fn slice(bytes: &[u8], (start, length): (usize, u32)) -> &[u8] {
    &bytes[start..start + length as usize]
}

struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RunWriter {
    fn create(path: PathBuf) -> Result<RunWriter> {
        let file = File::create(&path).map_err(|e| ExportError::io("create", &path, e))?;
        Ok(RunWriter { file: BufWriter::with_capacity(1 << 20, file), path })
    }

    fn push(&mut self, entry: &[u8]) -> Result<()> {
        let length = (entry.len() as u32).to_le_bytes();
        let written = self.file.write_all(&length).and_then(|()| self.file.write_all(entry));
        written.map_err(|e| ExportError::io("write to", &self.path, e))
    }

    fn finish(mut self) -> Result<PathBuf> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|e| ExportError::io("write to", &self.path, e))?;
        Ok(self.path)
    }
}

struct RunReader {
    path: PathBuf,
    file: BufReader<File>,
}

impl RunReader {
    fn open(path: PathBuf) -> Result<RunReader> {
        let file = File::open(&path).map_err(|e| ExportError::io("open", &path, e))?;
        Ok(RunReader { file: BufReader::with_capacity(BLOCK_BYTES, file), path })
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let io_error = |e| ExportError::io("read", &self.path, e);
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(io_error)?,
        }
        let mut entry = vec![0; u32::from_le_bytes(length) as usize];
        self.file.read_exact(&mut entry).map_err(io_error)?;
        Ok(Some(entry))
    }
}

/// The sorted entries, one after the other.
pub(crate) struct Merge {
    /// Everything, where it fitted, and which entry is next.
    memory: Option<(Vec<u8>, Entries, usize)>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    runs: Vec<RunReader>,
    keep: bool,
}

impl Merge {
    /// The entries of sealed runs, which are removed in the end unless `keep` says otherwise.
    pub(crate) fn of(paths: Vec<PathBuf>, keep: bool) -> Result<Merge> {
        let runs = paths.into_iter().map(RunReader::open).collect::<Result<Vec<_>>>()?;
        let mut merge = Merge { memory: None, heap: BinaryHeap::new(), runs, keep };
        for i in 0..merge.runs.len() {
            merge.refill(i)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, run: usize) -> Result<()> {
        if let Some(entry) = self.runs[run].next()? {
            self.heap.push(Reverse((entry, run)));
        }
        Ok(())
    }

    /// The next entry.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some((bytes, entries, at)) = &mut self.memory {
            let entry = entries.get(*at).map(|e| slice(bytes, *e).to_vec());
            *at += 1;
            return Ok(entry);
        }
        let Some(Reverse((entry, run))) = self.heap.pop() else { return Ok(None) };
        self.refill(run)?;
        Ok(Some(entry))
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        for run in self.runs.iter().filter(|_| !self.keep) {
            let _ = std::fs::remove_file(&run.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mut merge: Merge) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| merge.next().expect("read")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_goes_in_comes_out_sorted(mut entries in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..300)) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let mut sorter = Sorter::new(dir.path(), "t", 0);
            sorter.memory_bytes = 500;
            for entry in &entries {
                sorter.push(entry).expect("push");
            }
            entries.sort();
            prop_assert_eq!(all(sorter.merge().expect("merge")), entries);
            prop_assert_eq!(std::fs::read_dir(dir.path()).expect("list").count(), 0);
        }
    }

    #[test]
    fn more_runs_than_may_be_open() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut sorter = Sorter::new(dir.path(), "t", 0);
        sorter.memory_bytes = 40;
        let numbers: Vec<u32> = (0..1_000).map(|i| (i * 7_919) % 1_000).collect();
        for n in &numbers {
            sorter.push(&n.to_be_bytes()).expect("push");
        }
        assert!(sorter.runs.len() > 2 * RUNS_MAX);
        let back = all(sorter.merge().expect("merge"));
        assert!(back.iter().enumerate().all(|(i, e)| e[..] == (i as u32).to_be_bytes()));
        assert_eq!(back.len(), numbers.len());
    }
}
