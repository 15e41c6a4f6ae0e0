//! Which visits are exported, found in one pass over the log: of each URL the newest that counts.
//!
//! Every visit of a page becomes an entry (fingerprint of the URL, when it was, number of the record, how it ended), and entries are
//! sorted outside memory. The time matters where archives were read: theirs need not be in order. Fingerprints have 64 bits and the crawl's key, and the crawl itself tells URLs apart by nothing else, so
//! that two URLs of one log never share one. A body that was archived under another visit is found in the same manner, by its digest.
//! The result is the plan: a file of record numbers in the order of the log, some with the place of their body.
//!
//! Invariant: the plan is a function of the log up to [`Found::end`], whatever the crawl does meanwhile.
//! Next: `rows.rs`, which carries the plan out.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rhumb_core::cdx;
use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_core::visit::VisitRecord;
use rhumb_store::archive::{self, ArchiveEnd, ArchiveRef};
use rhumb_store::codec::{Malformed, Take};
use rhumb_store::disk::Disk;
use rhumb_store::log::{LogReader, Position, segment_name, segments};
use rhumb_store::{StoreError, Timestamp};

use crate::error::{ExportError, Result};
use crate::options::{Format, Options};
use crate::progress::{Progress, Stage};
use crate::sort::{Merge, Sorter};

/// How often a place in the log that looks damaged is looked at again: the crawl may be in the middle of writing there.
const LOOKS: u32 = 5;

/// What one pass over the log found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Where the log ended.
    pub end: Position,
    /// How far the archive was committed there.
    pub archive_end: ArchiveEnd,
    /// When the last record was written.
    pub made: Timestamp,
    /// Entries of the plan.
    pub items: u64,
    /// Sealed runs of index lines, where the format has an index.
    pub index_runs: Vec<PathBuf>,
}

/// Reads records one after the other, as [`LogReader`] does, and numbers them.
pub(crate) struct Scan {
    disk: Arc<dyn Disk>,
    reader: LogReader,
    /// Number of the next record.
    pub number: u64,
}

impl Scan {
    /// Begins with the record at `at`, which has this number.
    pub(crate) fn open(disk: &Arc<dyn Disk>, at: Position, number: u64) -> Result<Scan> {
        Ok(Scan { disk: disk.clone(), reader: LogReader::open(disk.clone(), at)?, number })
    }

    /// Where the next record starts.
    pub(crate) fn position(&self) -> Position {
        self.reader.position()
    }

    /// The next record's kind and payload, up to the end of what is committed.
    pub(crate) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>> {
        for look in 1..=LOOKS {
            match self.reader.next() {
                Ok(found) => {
                    let found = found.map(|(kind, payload)| (kind, payload.to_vec()));
                    self.number += u64::from(found.is_some());
                    return Ok(found);
                }
                // Half a record was there when it was read, and the rest of it when it was looked for.
                Err(StoreError::Corrupt { .. }) if look < LOOKS => {
                    std::thread::sleep(Duration::from_millis(20));
                    self.reader = LogReader::open(self.disk.clone(), self.reader.position())?;
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(None)
    }
}

/// A record of the log, or what is wrong with it.
pub(crate) fn decode(kind: u8, payload: &[u8], at: Position) -> Result<Record> {
    let damaged = |Malformed(what)| StoreError::corrupt(&segment_name(at.segment), at.offset, what);
    Ok(Record::take(kind, payload).map_err(damaged)?)
}

/// The log ends at `at`, before what the plan speaks of.
pub(crate) fn ended_early(at: Position) -> ExportError {
    let what = "the log ends before the place where it ended when the export began";
    StoreError::corrupt(&segment_name(at.segment), at.offset, what).into()
}

/// How a visit counts when the newest of its URL is looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Class {
    /// It will be tried again: what was known before still holds.
    Passing = 0,
    /// It brought no page.
    Other = 1,
    /// The page is as it was.
    Unchanged = 2,
    /// A page.
    Page = 3,
}

impl Class {
    fn of(visit: &VisitRecord) -> Class {
        match visit.outcome {
            _ if visit.retry => Class::Passing,
            Outcome::Ok if visit.entry.sitemap.is_none() => Class::Page,
            Outcome::NotModified => Class::Unchanged,
            _ => Class::Other,
        }
    }
}

/// Reads the whole log and writes the plan to `dir/plan`.
pub(crate) fn make(disk: &Arc<dyn Disk>, dir: &Path, options: &Options, progress: &Progress) -> Result<Found> {
    let share = options.memory_bytes / 4;
    let mut visits = Sorter::new(dir, "visits", share);
    let mut bodies = Sorter::new(dir, "bodies", share);
    let mut index = (!options.format.has_rows()).then(|| Sorter::new(dir, "index", share));
    let mut names = Names::new(disk.clone());
    let mut found = Found::default();
    progress.begin(Stage::Reading, log_bytes(disk)?);
    let mut scan = Scan::open(disk, Position::START, 0)?;
    loop {
        progress.go_on()?;
        let (at, number) = (scan.position(), scan.number);
        let Some((kind, payload)) = scan.next()? else { break };
        progress.add(payload.len() as u64 + 9);
        found.made = record_time(&payload).unwrap_or(found.made);
        if !matches!(kind, 4 | 5) {
            continue;
        }
        match decode(kind, &payload, at)? {
            Record::Visited(visit) => {
                if let Some(place) = &visit.archived {
                    found.archive_end = found.archive_end.max(place.end());
                    note_body(&mut bodies, &visit, place, number)?;
                    if let Some(index) = &mut index {
                        index.push(cdx::line(&visit, place, names.of(place.file)?).as_bytes())?;
                    }
                }
                if visit.purpose.is_page() && options.filter.wants_url(&visit.entry.url) {
                    let class = Class::of(&visit);
                    note_visit(&mut visits, visit.entry.url.fingerprint().0, visit.started, number, class)?;
                }
            }
            Record::Dropped { entry, at, .. } if options.filter.wants_url(&entry.url) => {
                note_visit(&mut visits, entry.url.fingerprint().0, at, number, Class::Other)?;
            }
            _ => {}
        }
    }
    found.end = scan.position();
    found.index_runs = index.map(Sorter::seal).transpose()?.unwrap_or_default();
    if options.format != Format::Cdxj {
        found.items = write_plan(dir, visits, bodies, options, progress)?;
    }
    Ok(found)
}

/// Every record begins with its time.
fn record_time(payload: &[u8]) -> Option<Timestamp> {
    Take::new(payload).u64().ok().map(Timestamp)
}

fn log_bytes(disk: &Arc<dyn Disk>) -> Result<u64> {
    let mut bytes = 0;
    for segment in segments(&**disk)? {
        bytes += disk.open(&segment_name(segment))?.len()?;
    }
    Ok(bytes)
}

fn note_visit(visits: &mut Sorter, url: u64, at: Timestamp, number: u64, class: Class) -> Result<()> {
    let mut entry = [0; 25];
    entry[..8].copy_from_slice(&url.to_be_bytes());
    entry[8..16].copy_from_slice(&at.0.to_be_bytes());
    entry[16..24].copy_from_slice(&number.to_be_bytes());
    entry[24] = class as u8;
    visits.push(&entry)
}

/// Digest, whether it is looked for (1) or to be had (0), record number, and where it lies.
fn note_body(bodies: &mut Sorter, visit: &VisitRecord, place: &ArchiveRef, number: u64) -> Result<()> {
    let Some(digest) = visit.digest.filter(|_| visit.outcome != Outcome::NotModified) else { return Ok(()) };
    let mut entry = Vec::with_capacity(20 + 1 + 8 + PLACE_BYTES);
    entry.extend_from_slice(&digest);
    entry.push(u8::from(visit.duplicate_of.is_some()));
    entry.extend_from_slice(&number.to_be_bytes());
    if visit.duplicate_of.is_none() {
        put_place(place, &mut entry);
    }
    bodies.push(&entry)
}

const PLACE_BYTES: usize = 4 + 8 + 4;

fn put_place(place: &ArchiveRef, into: &mut Vec<u8>) {
    into.extend_from_slice(&place.file.to_be_bytes());
    into.extend_from_slice(&place.offset.to_be_bytes());
    into.extend_from_slice(&place.first.to_be_bytes());
}

fn take_place(bytes: &[u8]) -> ArchiveRef {
    let (file, rest) = bytes.split_at(4);
    let (offset, first) = rest.split_at(8);
    let first = u32::from_be_bytes(array(first));
    ArchiveRef {
        file: u32::from_be_bytes(array(file)),
        offset: u64::from_be_bytes(array(offset)),
        length: first,
        first,
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

fn write_plan(dir: &Path, visits: Sorter, bodies: Sorter, options: &Options, progress: &Progress) -> Result<u64> {
    let mut chosen = Sorter::new(dir, "chosen", options.memory_bytes / 4);
    choose(visits.merge()?, options.include_failed, &mut chosen, progress)?;
    place_bodies(bodies.merge()?, &mut chosen, progress)?;
    let path = dir.join(FILE);
    let io_error = |e| ExportError::io("write to", &path, e);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(io_error)?);
    let mut items = 0;
    let mut merge = chosen.merge()?;
    let mut wanted: Option<u64> = None;
    while let Some(entry) = merge.next()? {
        progress.go_on()?;
        let number = u64::from_be_bytes(array(&entry));
        match (entry[8], wanted) {
            (WANTED, before) => {
                if let Some(before) = before {
                    file.write_all(&item(before, None)).map_err(io_error)?;
                }
                (wanted, items) = (Some(number), items + 1);
            }
            (_, Some(same)) if same == number => {
                file.write_all(&item(number, Some(&entry[9..]))).map_err(io_error)?;
                wanted = None;
            }
            _ => {}
        }
    }
    if let Some(last) = wanted {
        file.write_all(&item(last, None)).map_err(io_error)?;
    }
    file.flush().and_then(|()| file.get_ref().sync_data()).map_err(io_error)?;
    Ok(items)
}

/// The name of the plan.
const FILE: &str = "plan";
/// Behind a record number in the last sort: the visit is exported; or, after that, where its body lies.
const WANTED: u8 = 0;
const BODY: u8 = 1;

fn item(number: u64, place: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.push(u8::from(place.is_some()));
    bytes.extend_from_slice(place.unwrap_or_default());
    bytes
}

/// Of the visits of each URL, the one that is exported.
fn choose(mut visits: Merge, include_failed: bool, into: &mut Sorter, progress: &Progress) -> Result<()> {
    let mut url = None;
    let mut group: Vec<(u64, u8)> = Vec::new();
    let mut close = |group: &mut Vec<(u64, u8)>| -> Result<()> {
        if let Some(number) = newest(group, include_failed) {
            let mut entry = number.to_be_bytes().to_vec();
            entry.push(WANTED);
            into.push(&entry)?;
        }
        group.clear();
        Ok(())
    };
    while let Some(entry) = visits.next()? {
        progress.go_on()?;
        let this = u64::from_be_bytes(array(&entry));
        if url != Some(this) {
            close(&mut group)?;
            url = Some(this);
        }
        // Only the newest of each class can matter, so that a page visited for years is a group of four.
        let (number, class) = (u64::from_be_bytes(array(&entry[16..])), entry[24]);
        group.retain(|(_, known)| *known != class);
        group.push((number, class));
    }
    close(&mut group)
}

/// The record number to export among a URL's newest visits of each class, in the order of time.
fn newest(group: &[(u64, u8)], include_failed: bool) -> Option<u64> {
    let of = |class: Class| group.iter().find(|(_, c)| *c == class as u8).map(|(number, _)| *number);
    let last = group.iter().rev().find(|(_, class)| *class != Class::Passing as u8);
    match last {
        Some((number, class)) if *class == Class::Page as u8 => Some(*number),
        Some((number, class)) if *class == Class::Unchanged as u8 => {
            of(Class::Page).or(include_failed.then_some(*number))
        }
        Some((number, _)) => include_failed.then_some(*number),
        None => of(Class::Passing).filter(|_| include_failed),
    }
}

/// For each body that is looked for, where it is to be had.
fn place_bodies(mut bodies: Merge, into: &mut Sorter, progress: &Progress) -> Result<()> {
    let mut held: Option<([u8; 20], Vec<u8>)> = None;
    while let Some(entry) = bodies.next()? {
        progress.go_on()?;
        let digest: [u8; 20] = array(&entry);
        let (number, place) = (&entry[21..29], &entry[29..]);
        if entry[20] == 0 {
            // The first in the log; it is there for good, while later ones may be copies by mistake.
            if held.as_ref().is_none_or(|(known, _)| *known != digest) {
                held = Some((digest, place.to_vec()));
            }
        } else if let Some((known, place)) = &held
            && *known == digest
        {
            let mut entry = number.to_vec();
            entry.push(BODY);
            entry.extend_from_slice(place);
            into.push(&entry)?;
        }
    }
    Ok(())
}

/// One visit to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Number of its record in the log.
    pub number: u64,
    /// Where its body lies, if not with its own records.
    pub body: Option<ArchiveRef>,
}

/// Reads the plan.
pub(crate) struct Plan {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes read so far: where to go on.
    pub offset: u64,
}

impl Plan {
    /// Opens the plan in `dir` at a place that was an [`Plan::offset`] before.
    pub(crate) fn open(dir: &Path, offset: u64) -> Result<Plan> {
        let path = dir.join(FILE);
        let opened = File::open(&path).and_then(|mut f| f.seek(SeekFrom::Start(offset)).map(|_| f));
        let file = opened.map_err(|e| ExportError::io("open", &path, e))?;
        Ok(Plan { path, file: BufReader::with_capacity(1 << 16, file), offset })
    }

    /// The next visit.
    pub(crate) fn next(&mut self) -> Result<Option<Item>> {
        let mut head = [0; 9];
        match self.file.read_exact(&mut head) {
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(|e| ExportError::io("read", &self.path, e))?,
        }
        self.offset += head.len() as u64;
        let mut body = None;
        if head[8] != 0 {
            let mut place = [0; PLACE_BYTES];
            self.file.read_exact(&mut place).map_err(|e| ExportError::io("read", &self.path, e))?;
            self.offset += place.len() as u64;
            body = Some(take_place(&place));
        }
        Ok(Some(Item { number: u64::from_be_bytes(array(&head)), body }))
    }
}

/// The archive's file names by serial number; listed again when a new one is met.
pub(crate) struct Names {
    disk: Arc<dyn Disk>,
    list: Vec<(u32, String)>,
}

impl Names {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Names {
        Names { disk, list: Vec::new() }
    }

    /// The name of the file with this serial number.
    pub(crate) fn of(&mut self, serial: u32) -> Result<&str> {
        if !self.list.iter().any(|(s, _)| *s == serial) {
            self.list = archive::files(&*self.disk)?;
        }
        let found = self.list.iter().find(|(s, _)| *s == serial).map(|(_, name)| name.as_str());
        found.ok_or_else(|| {
            let name = format!("{}/rhumb-*-{serial:05}.warc.gz", archive::DIR);
            StoreError::corrupt(&name, 0, "the log speaks of it, the file is missing").into()
        })
    }
}

/// When the first record of a log was written, which tells one crawl from another.
pub(crate) fn birth(disk: &Arc<dyn Disk>) -> Result<Option<Timestamp>> {
    let mut scan = Scan::open(disk, Position::START, 0)?;
    let at = scan.position();
    let first = scan.next()?;
    first.map(|(kind, payload)| decode(kind, &payload, at).map(|r| r.at())).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_visit_that_counts() {
        use Class::*;
        let check = |classes: &[Class], failed: bool, expected: Option<u64>| {
            let mut group: Vec<(u64, u8)> = Vec::new();
            for (number, class) in classes.iter().enumerate() {
                group.retain(|(_, known)| *known != *class as u8);
                group.push((number as u64, *class as u8));
            }
            assert_eq!(newest(&group, failed), expected);
        };
        check(&[], true, None);
        check(&[Page], false, Some(0));
        check(&[Page, Page], false, Some(1));
        check(&[Page, Other], false, None);
        check(&[Page, Other], true, Some(1));
        check(&[Page, Unchanged, Unchanged], false, Some(0));
        check(&[Page, Other, Unchanged], false, Some(0));
        check(&[Page, Passing], false, Some(0));
        check(&[Unchanged], false, None);
        check(&[Unchanged], true, Some(0));
        check(&[Passing, Passing], true, Some(1));
        check(&[Passing, Passing], false, None);
        check(&[Passing, Page], true, Some(1));
    }
}
