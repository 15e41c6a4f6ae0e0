//! A crash at any instant loses nothing, records nothing twice and breaks no promise to a host.
//!
//! - `nth_write`: the n-th write fails, tears or finds the disk full, for every n of a small crawl.
//! - `kill`: the real program, SIGKILL at random instants, judged from the server's log and by other people's tools.
//! - `signals`: Ctrl-C, SIGTERM, `status` of a living and of a dead crawl, a second crawl in the same directory.
//! - `damage`: flipped bytes, missing files, tails that a power loss leaves.
//! - `flips`: single bits, anywhere in the files of a crawl.
//! - `full_disk`: a file system without space.
//! - `graph`: the link graph on a disk that fails, and a crawl without one.
//! - `index`: the text index after failing writes, kills and damage: as if it were made anew from the log.
//! - `faults`: few file descriptors, a clock that is set, a process held still.
//!
//! What a crawl directory says is read by [`Facts`], which insists on everything that must hold of any of them.

mod damage;
mod faults;
mod flips;
mod full_disk;
mod graph;
mod index;
mod kill;
pub mod nth_write;
mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rhumb_core::record::Record;
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position};
use rhumb_store::{StoreError, archive, warc};

pub use full_disk::Mounted;

/// What the log and the archive of a crawl say.
#[derive(Debug, PartialEq)]
pub struct Facts {
    /// URLs fetched with 2xx.
    pub pages: BTreeSet<String>,
    /// How each URL ended.
    pub outcomes: BTreeMap<String, &'static str>,
    /// Links of pages, as (from, to, wanted).
    pub links: BTreeSet<(String, String, bool)>,
    /// How often each host's robots.txt was had, by host.
    pub robots: BTreeMap<String, u32>,
    /// How often a host was held because it does not answer.
    pub held: u32,
}

impl Facts {
    /// Reads a crawl directory and checks what must always hold: no URL ends twice, no attempt is recorded twice, every
    /// archive file is sound, and the log and the archive speak of the same records.
    pub fn read(dir: &Path) -> Result<Facts, StoreError> {
        let (facts, archived) = Facts::read_log(dir)?;
        check_archive(dir, archived);
        Ok(facts)
    }

    /// What the log alone says, and where in the archive it says that records are.
    fn read_log(dir: &Path) -> Result<(Facts, Archived), StoreError> {
        let mut facts = Facts {
            pages: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            links: BTreeSet::new(),
            robots: BTreeMap::new(),
            held: 0,
        };
        let mut attempts: BTreeSet<(String, u8)> = BTreeSet::new();
        let mut archived = Archived::new();
        let mut reader = LogReader::open(RealDisk::new(dir), Position::START)?;
        while let Some((kind, payload)) = reader.next()? {
            match Record::take(kind, payload).expect("a record with a good checksum reads back") {
                Record::Visited(visit) => {
                    let url = visit.entry.url.as_str().to_string();
                    if let Some(place) = visit.archived {
                        let end = place.offset + u64::from(place.length);
                        let before = archived.insert((place.file, place.offset), (url.clone(), end));
                        assert_eq!(before, None, "two records of the log point at one place of the archive");
                    }
                    if !visit.purpose.is_page() {
                        *facts.robots.entry(visit.entry.url.host().as_str().to_string()).or_default() += 1;
                        continue;
                    }
                    let first = attempts.insert((url.clone(), visit.entry.attempt));
                    assert!(first, "attempt {} of {url} is recorded twice", visit.entry.attempt);
                    if visit.retry {
                        continue;
                    }
                    let before = facts.outcomes.insert(url.clone(), visit.outcome.name());
                    assert_eq!(before, None, "{url} ends twice");
                    if visit.is_page() {
                        facts.pages.insert(url.clone());
                        let links = visit.links.iter();
                        facts.links.extend(links.map(|l| (url.clone(), l.url.as_str().to_string(), l.wanted)));
                    }
                }
                Record::Dropped { entry, outcome, .. } => {
                    let before = facts.outcomes.insert(entry.url.as_str().to_string(), outcome.name());
                    assert_eq!(before, None, "{} ends twice", entry.url.as_str());
                }
                Record::Held { .. } => facts.held += 1,
                _ => {}
            }
        }
        Ok((facts, archived))
    }
}

/// Place in the archive (file and offset) → URL and end.
type Archived = BTreeMap<(u32, u64), (String, u64)>;

/// The archive holds exactly the records that the log points at (`archived`), and is sound.
fn check_archive(dir: &Path, mut archived: Archived) {
    for (serial, path) in archive_files(dir) {
        let shown = path.display();
        let bytes = std::fs::read(&path).expect("read the archive");
        let report = warc::check(&bytes[..]);
        assert!(report.passed(), "{shown}: {:?}", report.errors);
        let mut rows = Vec::new();
        warc::ls(&bytes[..], |row| rows.push(row)).expect("list the archive");
        let mut end_of_visit = None;
        for row in &rows {
            if matches!(row.kind.as_str(), "response" | "revisit") {
                let known = archived.remove(&(serial, row.offset));
                let (url, end) = known.unwrap_or_else(|| panic!("{shown}: the log does not know {row:?}"));
                assert_eq!(row.uri.as_deref(), Some(url.as_str()), "{shown}: the log speaks of another URL");
                end_of_visit = Some(end);
            }
            if let Some(end) = end_of_visit {
                assert!(row.offset + row.length <= end, "{shown}: {row:?} belongs to no visit");
            }
        }
        if let Some(end) = end_of_visit {
            assert_eq!(end, bytes.len() as u64, "{shown}: the file ends where its last visit does");
        }
        check_index(&path, &bytes);
    }
    assert!(archived.is_empty(), "the log speaks of what is not in the archive: {archived:?}");
    let stray = archive_names(dir).into_iter().find(|n| {
        n.strip_suffix(".cdxj").is_some_and(|stem| !dir.join("archive").join(format!("{stem}.warc.gz")).exists())
    });
    assert_eq!(stray, None, "an index without its archive file");
}

/// The index beside an archive file, where there is one, is that of the file.
fn check_index(path: &Path, bytes: &[u8]) {
    let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
    let index = path.with_file_name(format!("{}.cdxj", name.trim_end_matches(".warc.gz")));
    let Ok(text) = std::fs::read_to_string(index) else { return };
    let mut expected = Vec::new();
    warc::cdxj::index(bytes, name, |entry| expected.push(entry.line().trim_end().to_string())).expect("index");
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{}: the index is not the file's", path.display());
}

fn archive_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("archive"));
    entries.into_iter().flatten().filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
}

/// The archive's files with their serial numbers.
pub fn archive_files(dir: &Path) -> Vec<(u32, PathBuf)> {
    let files = archive::files(&*RealDisk::new(dir)).expect("list the archive");
    files.into_iter().map(|(serial, name)| (serial, dir.join(archive::DIR).join(name))).collect()
}

/// A temporary directory in memory, where there is one: hundreds of crawls that sync all the time would otherwise wait
/// for the disk, and what syncing is worth cannot be seen without a power loss anyway.
pub fn quick_directory() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("temporary directory")
}

/// Every file below `dir` with its bytes; sockets and the lock are left out.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("read a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("its type");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let name = entry.path().strip_prefix(dir).expect("below").to_path_buf();
                files.insert(name, std::fs::read(entry.path()).expect("read a file"));
            }
        }
    }
    files
}

/// Puts a snapshot into `dir`, which is made.
pub fn restore(files: &BTreeMap<PathBuf, Vec<u8>>, dir: &Path) {
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
        std::fs::write(path, bytes).expect("write a file");
    }
}

/// Numbers from a seed (splitmix64): a failing test prints the seed.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }
}

/// A number from the environment, for longer runs and for repeating one.
pub fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?}")))
}
