//! Where an export is put together, and how it is gone on with after an interruption.
//!
//! Beside `OUT` there is a directory `OUT.part` while an export is unfinished: `data` (what becomes OUT), `plan` and sorted
//! runs, `state` (how far `data` is), `lock`. [`Place::commit`] makes `data` durable and then `state`, so that whatever stands in
//! `data` behind what `state` says can be cut off and written again. OUT appears by renaming `data`, when it is whole.
//!
//! Invariant: OUT is never half there, and nothing that this program did not make is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rhumb_store::Timestamp;
use rhumb_store::disk::{DirLock, RealDisk};
use rhumb_store::log::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ExportError, Result};
use crate::options::{Format, Options};

/// What a finished Markdown export has at its top, and what tells it from a directory of somebody else's.
pub(crate) const INDEX: &str = "index.jsonl";

/// Where an export goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// Standard output; cannot be gone on with.
    Stdout,
    /// A file, or for Markdown a directory.
    Path {
        /// Its path.
        path: PathBuf,
        /// Whether an earlier export there is replaced.
        overwrite: bool,
    },
}

/// How far an export is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// What was asked for.
    pub options: String,
    /// When the crawl's first record was written, in milliseconds.
    pub crawl: u64,
    /// When the last record that was read was written, in milliseconds. Formats that tell a time tell this one, so that the same
    /// crawl gives the same bytes whenever it is exported.
    pub made: u64,
    /// Whether the plan is whole.
    pub planned: bool,
    /// Where the log ended when it was read: segment and offset.
    pub log_end: (u32, u64),
    /// How far the archive was committed there: file and offset.
    pub archive_end: (u32, u64),
    /// Visits in the plan.
    pub items: u64,
    /// Names of the sorted runs with index lines.
    pub index_runs: Vec<String>,
    /// Everything in `data` is there and nothing is left but to rename it.
    pub whole: bool,
    /// Visits of the plan (or lines, or files) that are done.
    pub done: u64,
    /// Rows written; fewer, where pages turned out not to be wanted.
    pub rows: u64,
    /// Rows whose body could not be read.
    pub missing: u64,
    /// Bytes of `data` that belong to them; for Markdown of its index.
    pub data_bytes: u64,
    /// Bytes of the files beside the index.
    pub file_bytes: u64,
    /// Where to go on reading: bytes of the plan, place in the log, number of the record there.
    pub plan_offset: u64,
    pub log_at: (u32, u64),
    pub log_number: u64,
    /// What the format remembers.
    pub format: Value,
}

impl State {
    /// Where to go on reading the log.
    pub(crate) fn position(&self) -> Position {
        Position { segment: self.log_at.0, offset: self.log_at.1 }
    }
}

/// An unfinished export on disk.
pub(crate) struct Place {
    target: Target,
    /// The directory of the unfinished export.
    pub dir: PathBuf,
    directory_wanted: bool,
    _lock: DirLock,
    /// How far it is.
    pub state: State,
}

/// What is at the target now.
pub(crate) enum Opened {
    /// To be done, from wherever its state says.
    Place(Box<Place>),
    /// It was finished, and only the clearing up was left to do.
    Done(Box<State>),
}

impl Place {
    /// Finds or makes the place of an export of the crawl that was born at `crawl`.
    pub(crate) fn open(target: &Target, options: &Options, crawl: Option<Timestamp>) -> Result<Opened> {
        let fresh = State { options: options.identity(), crawl: crawl.map_or(0, |t| t.0), ..State::default() };
        let directory_wanted = options.format == Format::Markdown;
        let (path, overwrite) = match target {
            Target::Stdout => {
                let dir = std::env::temp_dir().join(format!("rhumb-export-{}", std::process::id()));
                return Place::make(target.clone(), dir, directory_wanted, fresh);
            }
            Target::Path { path, overwrite } => (path, *overwrite),
        };
        let dir = beside(path, ".part")?;
        let known = fs::read(dir.join("state")).ok().and_then(|bytes| serde_json::from_slice::<State>(&bytes).ok());
        let same = known.filter(|s| s.options == fresh.options && s.crawl == fresh.crawl);
        if let Some(state) = same.as_ref().filter(|s| s.whole && path.exists() && !dir.join("data").exists()) {
            let _lock = DirLock::take(&dir)?;
            remove(&dir)?;
            return Ok(Opened::Done(Box::new(state.clone())));
        }
        if path.exists() && same.is_none() && is_leftover(&dir) {
            remove(&dir)?;
        }
        refuse_clash(path, directory_wanted, overwrite)?;
        match same {
            Some(state) => Place::make(target.clone(), dir, directory_wanted, state),
            None if dir.exists() => {
                let ours = dir.join("lock").exists() || fs::read_dir(&dir).is_ok_and(|mut d| d.next().is_none());
                if !ours {
                    let what = format!("{} is in the way and is none of ours", dir.display());
                    return Err(ExportError::Refused(what));
                }
                if dir.join("state").exists() && !overwrite {
                    let what = "holds an unfinished export with other options, or of another crawl; give those again, or \
                                --overwrite to begin anew";
                    return Err(ExportError::Refused(format!("{} {what}", dir.display())));
                }
                let lock = DirLock::take(&dir)?;
                remove(&dir)?;
                drop(lock);
                Place::make(target.clone(), dir, directory_wanted, fresh)
            }
            None => Place::make(target.clone(), dir, directory_wanted, fresh),
        }
    }

    fn make(target: Target, dir: PathBuf, directory_wanted: bool, state: State) -> Result<Opened> {
        fs::create_dir_all(&dir).map_err(|e| ExportError::io("make directory", &dir, e))?;
        let lock = DirLock::take(&dir)?;
        Ok(Opened::Place(Box::new(Place { target, dir, directory_wanted, _lock: lock, state })))
    }

    /// The output as far as the state says, to be written on.
    pub(crate) fn output(&self) -> Result<Output> {
        if matches!(self.target, Target::Stdout) {
            return Ok(Output { file: None, path: PathBuf::new(), buffer: Vec::new(), position: 0 });
        }
        let mut path = self.dir.join("data");
        if self.directory_wanted {
            fs::create_dir_all(&path).map_err(|e| ExportError::io("make directory", &path, e))?;
            path.push(INDEX);
        }
        let io_error = |e| ExportError::io("open", &path, e);
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let file = file.map_err(io_error)?;
        file.set_len(self.state.data_bytes).map_err(io_error)?;
        Ok(Output { file: Some(file), path: path.clone(), buffer: Vec::new(), position: self.state.data_bytes })
    }

    /// Makes everything written so far, and then the state, durable.
    pub(crate) fn commit(&mut self, out: &mut Output) -> Result<()> {
        out.sync()?;
        if self.directory_wanted {
            sync_files(&self.dir).map_err(|e| ExportError::io("sync", &self.dir, e))?;
        }
        self.state.data_bytes = out.position;
        self.save()
    }

    /// Makes the state durable.
    pub(crate) fn save(&self) -> Result<()> {
        if matches!(self.target, Target::Stdout) {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&self.state).map_err(|e| ExportError::Refused(e.to_string()))?;
        Ok(RealDisk::new(&self.dir).replace("state", &bytes)?)
    }

    /// Puts the whole output where it belongs and clears up.
    pub(crate) fn finish(mut self, mut out: Output) -> Result<State> {
        self.state.whole = true;
        self.commit(&mut out)?;
        drop(out);
        let data = self.dir.join("data");
        if let Target::Path { path, .. } = &self.target {
            let io_error = |e| ExportError::io("rename the finished export to", path, e);
            if self.directory_wanted && path.exists() {
                fs::rename(path, self.dir.join("old")).map_err(io_error)?;
            }
            fs::rename(&data, path).map_err(io_error)?;
            let parent = parent(path);
            File::open(&parent).and_then(|d| d.sync_all()).map_err(io_error)?;
        }
        remove(&self.dir)?;
        Ok(self.state)
    }

    /// Gives up what cannot be gone on with: what was refused, and what went into a pipe.
    pub(crate) fn abandon(&self, refused: bool) {
        if refused || matches!(self.target, Target::Stdout) {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Makes all files below a directory durable, with others of the same file system: one by one would take far longer.
fn sync_files(dir: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(File::open(dir)?)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    Ok(())
}

/// `path` with something behind its name.
fn beside(path: &Path, suffix: &str) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| ExportError::Refused(format!("{} names no file", path.display())))?;
    let mut name = name.to_os_string();
    name.push(suffix);
    Ok(parent(path).join(name))
}

fn parent(path: &Path) -> PathBuf {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

fn refuse_clash(path: &Path, directory_wanted: bool, overwrite: bool) -> Result<()> {
    let shown = path.display();
    let refused = |what: String| Err(ExportError::Refused(what));
    let folder = parent(path);
    if !folder.is_dir() {
        return refused(format!("there is no directory {}", folder.display()));
    }
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if directory_wanted && !found.is_dir() => {
            refused(format!("{shown} is a file, and markdown needs a directory"))
        }
        Ok(found) if !directory_wanted && found.is_dir() => {
            refused(format!("{shown} is a directory, and this format is one file"))
        }
        Ok(_) if !overwrite => refused(format!("{shown} exists; --overwrite replaces it")),
        Ok(_) if directory_wanted => {
            let empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if empty || path.join(INDEX).is_file() {
                return Ok(());
            }
            refused(format!("{shown} is no earlier export (it has no {INDEX}): remove it yourself"))
        }
        Ok(_) => Ok(()),
    }
}

/// Whether nothing is in there but what [`remove`] takes last.
fn is_leftover(dir: &Path) -> bool {
    let mut names = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.file_name());
    dir.is_dir() && names.all(|name| name == "lock")
}

/// Removes an unfinished export. The state goes late, so that it can be told what the rest was.
fn remove(dir: &Path) -> Result<()> {
    let clear = || -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            match entry.file_name().to_str() {
                Some("state" | "lock") => {}
                _ if entry.file_type()?.is_dir() => fs::remove_dir_all(entry.path())?,
                _ => fs::remove_file(entry.path())?,
            }
        }
        for last in ["state", "lock"] {
            let path = dir.join(last);
            if path.exists() {
                fs::remove_file(path)?;
            }
        }
        fs::remove_dir(dir)
    };
    clear().map_err(|e| ExportError::io("remove", dir, e))
}

/// What is being written: a file that grows at its end, or standard output.
pub(crate) struct Output {
    file: Option<File>,
    /// The file's path.
    pub path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes so far.
    pub position: u64,
}

const BUFFER_BYTES: usize = 1 << 20;

impl Output {
    /// Adds bytes at the end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.position += bytes.len() as u64;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Replaces bytes that were written before.
    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        use std::os::unix::fs::FileExt;
        self.flush()?;
        match &self.file {
            Some(file) => file.write_all_at(bytes, offset).map_err(|e| ExportError::io("write to", &self.path, e)),
            None => Err(ExportError::Stdout(io::ErrorKind::Unsupported.into())),
        }
    }

    fn flush(&mut self) -> Result<()> {
        use std::os::unix::fs::FileExt;
        match &self.file {
            Some(file) => {
                let at = self.position - self.buffer.len() as u64;
                file.write_all_at(&self.buffer, at).map_err(|e| ExportError::io("write to", &self.path, e))?;
            }
            None => io::stdout().lock().write_all(&self.buffer).map_err(ExportError::Stdout)?,
        }
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        match &self.file {
            Some(file) => file.sync_data().map_err(|e| ExportError::io("write to", &self.path, e)),
            None => io::stdout().lock().flush().map_err(ExportError::Stdout),
        }
    }
}
