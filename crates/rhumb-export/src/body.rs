//! Bodies out of the archive: the record of a visit, and where that only points at an earlier copy, the copy.
//!
//! A body that cannot be had is no reason to stop: the row goes without, and is counted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rhumb_store::archive::{self, ArchiveRef};
use rhumb_store::disk::Disk;
use rhumb_store::warc::check::HTTP_HEAD_BYTES_MAX;
use rhumb_store::warc::http::HttpHead;
use rhumb_store::warc::{Fields, WarcReader};

use crate::plan::Names;

/// Archive files kept open.
const FILES_MAX: usize = 16;

/// The archive of a crawl, for several threads to read from.
pub struct Bodies {
    dir: PathBuf,
    names: Mutex<Names>,
    open: Mutex<VecDeque<(u32, Arc<File>)>>,
}

/// A visit's response: the head that came with it and the body it had.
pub struct Capture {
    /// WARC-Record-ID of the visit's own record.
    pub id: Option<String>,
    /// The head of this visit.
    pub head: HttpHead,
    /// The body with its content codings.
    pub body: Vec<u8>,
}

impl Bodies {
    /// The archive of the crawl in this directory.
    pub fn new(crawl: &Path, disk: Arc<dyn Disk>) -> Bodies {
        Bodies { dir: crawl.join(archive::DIR), names: Mutex::new(Names::new(disk)), open: Mutex::new(VecDeque::new()) }
    }

    /// The name of an archive file, if it is there.
    pub fn name(&self, serial: u32) -> Option<String> {
        self.names.lock().expect("nobody panics while looking up a name").of(serial).ok().map(String::from)
    }

    /// Reads the response at `own`, with the body at `other` if there is one; nothing if it cannot be read.
    pub fn read(&self, own: &ArchiveRef, other: Option<&ArchiveRef>) -> Option<Capture> {
        let (fields, mut head, mut body) = self.record(own)?;
        if fields.kind() == "revisit" {
            let (_, original, copy) = self.record(other?)?;
            // What was not had over HTTP has no head of its own.
            head = if head.is_empty() { original } else { head };
            body = copy;
        }
        Some(Capture { id: fields.get("WARC-Record-ID").map(String::from), head, body })
    }

    fn record(&self, place: &ArchiveRef) -> Option<(Fields, HttpHead, Vec<u8>)> {
        let file = self.file(place.file)?;
        let mut bytes = vec![0; place.first as usize];
        file.read_exact_at(&mut bytes, place.offset).ok()?;
        let mut reader = WarcReader::at(&bytes[..], place.offset);
        let mut record = reader.next_record().ok()??;
        let fields = record.fields.clone();
        let head = match fields.kind() {
            // What did not come over HTTP has no head but its type.
            "resource" => {
                let kind = fields.get("Content-Type").map(|t| ("Content-Type".to_string(), t.to_string()));
                HttpHead { first_line: String::new(), headers: kind.into_iter().collect(), payload_offset: 0 }
            }
            "response" | "revisit" if fields.holds_http() => {
                HttpHead::parse(&record.read_http_head(HTTP_HEAD_BYTES_MAX).ok()??)
            }
            "revisit" => HttpHead::parse(b""),
            _ => return None,
        };
        let mut body = Vec::with_capacity(record.left().min(1 << 24) as usize);
        record.read_to_end(&mut body).ok()?;
        record.finish().ok()?;
        Some((fields, head, body))
    }

    fn file(&self, serial: u32) -> Option<Arc<File>> {
        let mut open = self.open.lock().expect("nobody panics while opening a file");
        if let Some((_, file)) = open.iter().find(|(s, _)| *s == serial) {
            return Some(file.clone());
        }
        let file = Arc::new(File::open(self.dir.join(self.name(serial)?)).ok()?);
        open.push_back((serial, file.clone()));
        if open.len() > FILES_MAX {
            open.pop_front();
        }
        Some(file)
    }
}
