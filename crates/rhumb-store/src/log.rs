//! The append-only log: the crawl's truth. One record after another, each with a checksum, in
//! numbered segments.
//!
//! Appends gather in memory and reach the file in one write by [`Log::commit`]; what was committed
//! survives the death of the process. A segment starts with [`MAGIC`] and the format version; a
//! record is `length u32 LE, crc32 u32 LE, kind u8, payload`, where length counts kind and payload and
//! the checksum covers length, kind and payload. docs/formats/log.md has the details.
//!
//! After a crash the tail may hold half a record: it is cut on opening. Damage anywhere else is an
//! error that names file and offset, because silently leaving records out would be a wrong answer.

use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Result, StoreError};

/// First bytes of every segment.
pub const MAGIC: &[u8; 8] = b"rhumblog";
/// Format version written after the magic.
pub const VERSION: u32 = 1;
/// Where the first record of a segment starts.
const HEADER_BYTES: u64 = 12;
const FRAME_BYTES: usize = 8;
/// A longer record cannot have been written; a larger length is damage.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// A place in the log: the next record starts here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Segment number, from 1.
    pub segment: u32,
    /// Byte offset in the segment.
    pub offset: u64,
}

impl Position {
    /// The start of the log.
    pub const START: Position = Position { segment: 1, offset: HEADER_BYTES };
}

/// The writing end.
pub struct Log {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    end: Position,
    buffer: Vec<u8>,
    segment_bytes_max: u64,
    poisoned: bool,
}

/// The file name of a segment.
pub fn segment_name(segment: u32) -> String {
    format!("log/{segment:08}.log")
}

impl Log {
    /// Opens the log for appending, making it if there is none, and cuts a torn tail. `whole_until`
    /// is a position known to be whole and synced (the checkpoint's): damage before it is never
    /// taken for a torn tail.
    pub fn open(disk: Arc<dyn Disk>, whole_until: Position, segment_bytes_max: u64) -> Result<Log> {
        disk.make_dir("log")?;
        let segments = segments(&*disk)?;
        let known = whole_until.max(Position::START);
        if segments.last().copied().unwrap_or(1) < known.segment || (segments.is_empty() && known > Position::START) {
            let what = "the segment is missing, though the checkpoint speaks of it";
            return Err(StoreError::corrupt(&segment_name(known.segment), 0, what));
        }
        let Some(&last) = segments.last() else {
            let file = start_segment(&*disk, 1)?;
            return Ok(Log {
                disk,
                file,
                end: Position::START,
                buffer: Vec::new(),
                segment_bytes_max,
                poisoned: false,
            });
        };
        let name = segment_name(last);
        let known_here = if known.segment == last { known.offset } else { 0 };
        let length = disk.open(&name)?.len()?;
        if length < known_here && known > Position::START {
            let what = format!("the file has {length} bytes, the checkpoint speaks of {known_here}");
            return Err(StoreError::corrupt(&name, length, what));
        }
        if length < HEADER_BYTES {
            // The crash came while the segment was being started; nothing was in it.
            let file = start_segment(&*disk, last)?;
            let end = Position { segment: last, offset: HEADER_BYTES };
            return Ok(Log { disk, file, end, buffer: Vec::new(), segment_bytes_max, poisoned: false });
        }
        let from = known.max(Position { segment: last, offset: HEADER_BYTES });
        let mut reader = LogReader::open(disk.clone(), from)?;
        while reader.next()?.is_some() {}
        let end = reader.position();
        if disk.open(&name)?.len()? > end.offset {
            disk.truncate(&name, end.offset)?;
        }
        let file = disk.open(&name)?;
        Ok(Log { disk, file, end, buffer: Vec::new(), segment_bytes_max, poisoned: false })
    }

    /// Adds a record to the next commit and returns the position behind it.
    pub fn append(&mut self, kind: u8, write_payload: impl FnOnce(&mut Vec<u8>)) -> Position {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; FRAME_BYTES]);
        self.buffer.push(kind);
        write_payload(&mut self.buffer);
        let length = ((self.buffer.len() - start - FRAME_BYTES) as u32).to_le_bytes();
        assert!(self.buffer.len() - start <= RECORD_BYTES_MAX, "a log record must stay under its size limit");
        let crc = checksum(&length, &self.buffer[start + FRAME_BYTES..]).to_le_bytes();
        self.buffer[start..start + 4].copy_from_slice(&length);
        self.buffer[start + 4..start + 8].copy_from_slice(&crc);
        self.position()
    }

    /// Where the next record will start, counting what is not committed yet.
    pub fn position(&self) -> Position {
        Position { segment: self.end.segment, offset: self.end.offset + self.buffer.len() as u64 }
    }

    /// Whether records wait for [`Log::commit`].
    pub fn has_uncommitted(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Hands everything appended to the operating system: the commit point.
    pub fn commit(&mut self) -> Result<()> {
        if self.poisoned {
            return Err(StoreError::Poisoned(segment_name(self.end.segment)));
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(e) = self.file.append(&self.buffer) {
            // Part of the buffer may be in the file. Writing on would put good records behind it.
            self.poisoned = true;
            return Err(e);
        }
        self.end.offset += self.buffer.len() as u64;
        self.buffer.clear();
        if self.end.offset >= self.segment_bytes_max {
            self.roll()?;
        }
        Ok(())
    }

    /// Waits until everything committed survives a power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    /// A handle with which another thread can sync the current segment.
    pub fn sync_handle(&self) -> Result<Box<dyn DiskFile>> {
        self.file.handle()
    }

    fn roll(&mut self) -> Result<()> {
        let next = self.end.segment + 1;
        let rolled = self.file.sync().and_then(|()| start_segment(&*self.disk, next));
        match rolled {
            Ok(file) => {
                self.file = file;
                self.end = Position { segment: next, offset: HEADER_BYTES };
                Ok(())
            }
            Err(e) => {
                self.poisoned = true;
                Err(e)
            }
        }
    }
}

fn checksum(length: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(rest);
    hasher.finalize()
}

fn start_segment(disk: &dyn Disk, segment: u32) -> Result<Box<dyn DiskFile>> {
    let mut file = disk.create(&segment_name(segment))?;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&VERSION.to_le_bytes());
    file.append(&header)?;
    disk.sync_dir("log")?;
    Ok(file)
}

/// Forgets every record from `at` on. Whole segments go first, the last one before the others, so that a crash in between leaves a
/// log that is whole as far as it goes.
pub fn cut(disk: &dyn Disk, at: Position) -> Result<()> {
    for segment in segments(disk)?.into_iter().rev().filter(|segment| *segment > at.segment) {
        disk.remove(&segment_name(segment))?;
    }
    disk.truncate(&segment_name(at.segment), at.offset)
}

/// Segment numbers present, in order.
pub fn segments(disk: &dyn Disk) -> Result<Vec<u32>> {
    let names = disk.list("log")?;
    Ok(names.iter().filter_map(|n| n.strip_suffix(".log")?.parse().ok()).collect())
}

/// The one record at a place, as (kind, payload); `None` if the log ends there.
pub fn record_at(disk: &dyn Disk, at: Position) -> Result<Option<(u8, Vec<u8>)>> {
    let mut at = at.max(Position::START);
    let file = disk.open(&segment_name(at.segment))?;
    let file = if file.len()? > at.offset {
        file
    } else {
        // The segment ends here; the next record is the first of the next one.
        at = Position { segment: at.segment + 1, offset: HEADER_BYTES };
        if !disk.exists(&segment_name(at.segment)) {
            return Ok(None);
        }
        disk.open(&segment_name(at.segment))?
    };
    let damaged = |what: &str| StoreError::corrupt(&segment_name(at.segment), at.offset, what);
    let mut head = [0; FRAME_BYTES];
    if file.read_at(at.offset, &mut head)? < FRAME_BYTES {
        return Ok(None);
    }
    let [a, b, c, d, crc @ ..] = head;
    let length = [a, b, c, d];
    let body = u32::from_le_bytes(length) as usize;
    if body == 0 || body > RECORD_BYTES_MAX || body as u64 > file.len()?.saturating_sub(at.offset) {
        return Err(damaged("an impossible record length"));
    }
    let mut bytes = vec![0; body];
    let got = file.read_at(at.offset + FRAME_BYTES as u64, &mut bytes)?;
    if got < body || checksum(&length, &bytes) != u32::from_le_bytes(crc) {
        return Err(damaged("the checksum does not match"));
    }
    let kind = bytes.remove(0);
    Ok(Some((kind, bytes)))
}

/// The reading end: records from a position to the end of what is committed.
pub struct LogReader {
    disk: Arc<dyn Disk>,
    file: Option<Box<dyn DiskFile>>,
    last_segment: u32,
    at: Position,
    /// Bytes read ahead, starting at `at`.
    window: Vec<u8>,
    window_start: usize,
}

const WINDOW_BYTES: usize = 1 << 20;

impl LogReader {
    /// A reader whose first record is the one at `from`.
    pub fn open(disk: Arc<dyn Disk>, from: Position) -> Result<LogReader> {
        let segments = segments(&*disk)?;
        let last_segment = segments.last().copied().unwrap_or(0);
        let at = from.max(Position::START);
        let mut reader = LogReader { disk, file: None, last_segment, at, window: Vec::new(), window_start: 0 };
        if at.segment <= last_segment {
            reader.file = Some(reader.open_segment(at.segment)?);
        }
        Ok(reader)
    }

    /// Where the next record starts.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The next record as (kind, payload); `None` at the end. A torn record at the very end of the log
    /// counts as the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(u8, &[u8])>> {
        loop {
            if self.file.is_none() {
                return Ok(None);
            }
            let found = self.frame_at(0)?;
            match found {
                Frame::Whole(body) => {
                    let start = self.window_start + FRAME_BYTES;
                    self.window_start += FRAME_BYTES + body;
                    self.at.offset += (FRAME_BYTES + body) as u64;
                    let record = &self.window[start..start + body];
                    return Ok(Some((record[0], &record[1..])));
                }
                Frame::End if self.at.segment < self.last_segment => {
                    let next = Position { segment: self.at.segment + 1, offset: HEADER_BYTES };
                    self.window.clear();
                    self.window_start = 0;
                    self.file = Some(self.open_segment(next.segment)?);
                    self.at = next;
                }
                Frame::End => return Ok(None),
                Frame::Broken(what) => {
                    // A write that never ended leaves nothing whole behind it. If a good record follows,
                    // this one was damaged after it was written, and cutting here would lose the rest.
                    if self.at.segment == self.last_segment && !self.whole_record_follows()? {
                        return Ok(None);
                    }
                    return Err(StoreError::corrupt(&segment_name(self.at.segment), self.at.offset, what));
                }
            }
        }
    }

    /// Whether a whole record starts anywhere behind the broken one at the current position.
    fn whole_record_follows(&mut self) -> Result<bool> {
        let file = self.file.as_ref().expect("a segment is open while records are read");
        let rest_bytes = file.len()?.saturating_sub(self.at.offset).min(RECORD_BYTES_MAX as u64) as usize;
        let mut rest = vec![0; rest_bytes];
        let got = file.read_at(self.at.offset, &mut rest)?;
        rest.truncate(got);
        Ok((1..rest.len().saturating_sub(FRAME_BYTES)).any(|i| {
            let body = u32::from_le_bytes([rest[i], rest[i + 1], rest[i + 2], rest[i + 3]]) as usize;
            let crc = u32::from_le_bytes([rest[i + 4], rest[i + 5], rest[i + 6], rest[i + 7]]);
            let start = i + FRAME_BYTES;
            body > 0 && body <= rest.len() - start && checksum(&rest[i..i + 4], &rest[start..start + body]) == crc
        }))
    }

    /// Looks at the frame `ahead` bytes behind the current position.
    fn frame_at(&mut self, ahead: usize) -> Result<Frame> {
        let head = self.peek(ahead, FRAME_BYTES)?;
        if head.is_empty() {
            return Ok(Frame::End);
        }
        if head.len() < FRAME_BYTES {
            return Ok(Frame::Broken("half a record frame"));
        }
        let length = [head[0], head[1], head[2], head[3]];
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let body = u32::from_le_bytes(length) as usize;
        if body == 0 || body > RECORD_BYTES_MAX {
            return Ok(Frame::Broken("an impossible record length"));
        }
        let bytes = self.peek(ahead + FRAME_BYTES, body)?;
        if bytes.len() < body {
            return Ok(Frame::Broken("a record longer than the file"));
        }
        if checksum(&length, bytes) != crc {
            return Ok(Frame::Broken("the checksum does not match"));
        }
        Ok(Frame::Whole(body))
    }

    /// Up to `n` bytes that lie `ahead` bytes behind the current position; fewer only at the end.
    fn peek(&mut self, ahead: usize, n: usize) -> Result<&[u8]> {
        if self.window.len() - self.window_start < ahead + n {
            self.window.drain(..self.window_start);
            self.window_start = 0;
            let have = self.window.len();
            let want = (ahead + n).max(WINDOW_BYTES);
            self.window.resize(want, 0);
            let file = self.file.as_ref().expect("a segment is open while records are read");
            let got = file.read_at(self.at.offset + have as u64, &mut self.window[have..])?;
            self.window.truncate(have + got);
        }
        let start = (self.window_start + ahead).min(self.window.len());
        let end = (start + n).min(self.window.len());
        Ok(&self.window[start..end])
    }

    fn open_segment(&self, segment: u32) -> Result<Box<dyn DiskFile>> {
        let name = segment_name(segment);
        let file = self.disk.open(&name)?;
        let mut header = [0; HEADER_BYTES as usize];
        let got = file.read_at(0, &mut header)?;
        if got < header.len() {
            return if segment == self.last_segment {
                Ok(file)
            } else {
                Err(StoreError::corrupt(&name, 0, "no header"))
            };
        }
        if &header[..8] != MAGIC {
            return Err(StoreError::corrupt(&name, 0, "not a rhumb log"));
        }
        let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if found != VERSION {
            return Err(StoreError::Version { file: name, found, known: VERSION });
        }
        Ok(file)
    }
}

enum Frame {
    Whole(usize),
    End,
    Broken(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use proptest::prelude::*;

    fn records(disk: &Arc<dyn Disk>) -> Result<Vec<Vec<u8>>> {
        let mut reader = LogReader::open(disk.clone(), Position::START)?;
        let mut all = Vec::new();
        while let Some((_, payload)) = reader.next()? {
            all.push(payload.to_vec());
        }
        Ok(all)
    }

    fn write(disk: &Arc<dyn Disk>, payloads: &[Vec<u8>], segment_bytes_max: u64) {
        let mut log = Log::open(disk.clone(), Position::default(), segment_bytes_max).expect("open");
        for p in payloads {
            log.append(7, |b| b.extend_from_slice(p));
            log.commit().expect("commit");
        }
    }

    #[test]
    fn records_cross_segments_in_order() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let payloads: Vec<Vec<u8>> = (0..100u8).map(|i| vec![i; i as usize]).collect();
        write(&disk, &payloads[..50], 200);
        write(&disk, &payloads[50..], 200);
        assert!(segments(&*disk).expect("list").len() > 5);
        assert_eq!(records(&disk).expect("read"), payloads);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Cutting the last segment anywhere loses at most the record that was cut, and appending goes on.
        #[test]
        fn a_torn_tail_is_cut(sizes in proptest::collection::vec(0usize..300, 1..12), cut in 0.0f64..1.0) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let payloads: Vec<Vec<u8>> = sizes.iter().map(|&n| vec![n as u8; n]).collect();
            write(&disk, &payloads, 1 << 30);
            let name = segment_name(1);
            let len = disk.open(&name).expect("open").len().expect("len");
            let keep = (len as f64 * cut) as u64;
            disk.truncate(&name, keep).expect("cut");
            let mut whole = 0;
            let mut end = HEADER_BYTES;
            for p in &payloads {
                end += (FRAME_BYTES + 1 + p.len()) as u64;
                if end <= keep { whole += 1; }
            }
            write(&disk, &[b"more".to_vec()], 1 << 30);
            let mut expected = payloads[..whole].to_vec();
            expected.push(b"more".to_vec());
            prop_assert_eq!(records(&disk).expect("read"), expected);
        }

        /// A flipped bit before the last record is an error with its place, never a shorter or other log.
        #[test]
        fn a_flipped_bit_is_found(at in 0.0f64..1.0, bit in 0u8..8) {
            let dir = tempfile::tempdir().expect("temporary directory");
            let disk = RealDisk::new(dir.path());
            let payloads: Vec<Vec<u8>> = (0..10u8).map(|i| vec![i; 50]).collect();
            write(&disk, &payloads, 1 << 30);
            let path = dir.path().join(segment_name(1));
            let mut bytes = std::fs::read(&path).expect("read");
            let last = bytes.len() - 59;
            let place = (at * last as f64) as usize;
            bytes[place] ^= 1 << bit;
            std::fs::write(&path, &bytes).expect("write");
            prop_assert!(records(&disk).is_err());
        }
    }
}
