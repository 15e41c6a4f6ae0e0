//! The visit log: its segments, its records, the entries and batches inside them.
//!
//! Input: a byte that chooses; then (0) a whole segment file, (1) a record's kind and payload, (2) the bytes of an entry, (3) a
//! batch, (4) the place and the change of one byte, two bytes each, and what is written as records.

use std::sync::Arc;

use rhumb_core::handover::Batch;
use rhumb_core::page::PageText;
use rhumb_core::record::{Record, Skimmed, SkimmedLink, SkimmedPage};
use rhumb_core::visit::{Entry, VisitRecord};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::log::{Log, LogReader, Position, segment_name};

use crate::{byte, disk};

/// See the input: whole segments, single records, entries, batches, damage.
pub fn run(data: &[u8]) {
    let (choice, data) = byte(data);
    match choice % 5 {
        0 => segment(data),
        1 => record(data),
        2 => entry(data),
        3 => {
            let mut bytes = 0;
            let _ = Batch::read(data, |_, entry| -> Result<(), Malformed> {
                bytes += entry.len();
                Ok(())
            });
            assert!(bytes <= data.len());
        }
        _ => damage(data),
    }
}

type Records = Vec<(u8, Vec<u8>)>;

/// All records, and whether the end was reached without an error.
fn records(disk: &Arc<dyn Disk>) -> (Records, bool) {
    let mut all = Vec::new();
    let Ok(mut reader) = LogReader::open(disk.clone(), Position::START) else { return (all, false) };
    loop {
        match reader.next() {
            Ok(Some((kind, payload))) => all.push((kind, payload.to_vec())),
            Ok(None) => return (all, true),
            Err(_) => return (all, false),
        }
    }
}

/// What could be read before a log is opened for writing can be read after it, and what is appended follows.
fn segment(data: &[u8]) {
    let disk = disk();
    disk.create(&segment_name(1)).and_then(|mut file| file.append(data)).expect("memory");
    let (before, whole) = records(&disk);
    match Log::open(disk.clone(), Position::default(), 1 << 20) {
        Err(_) => assert!(!whole, "a log that can be read can be opened"),
        Ok(mut log) => {
            log.append(9, |into| into.extend_from_slice(b"new"));
            log.commit().expect("memory");
            let mut expected = before;
            expected.push((9, b"new".to_vec()));
            assert_eq!(records(&disk), (expected, true));
        }
    }
}

/// What is understood is written so that it is understood again.
fn record(data: &[u8]) {
    let (kind, payload) = byte(data);
    let Ok(record) = Record::take(kind, payload) else { return };
    assert_eq!(record.kind(), kind);
    let mut written = Vec::new();
    record.put(&mut written);
    assert!(written.len() <= 2 * payload.len() + 64, "{} bytes became {}", payload.len(), written.len());
    assert_eq!(Record::take(kind, &written).as_ref(), Ok(&record));
    if let Record::Visited(visit) = &record {
        skim(&written, visit);
    }
}

/// A follower of links sees what everybody sees.
fn skim(payload: &[u8], visit: &VisitRecord) {
    let skimmed = Skimmed::read(payload).expect("what is understood can be skimmed");
    assert_eq!((&skimmed.url, skimmed.outcome, skimmed.title), (&visit.entry.url, visit.outcome, &*visit.title));
    assert_eq!((skimmed.ended, skimmed.is_final_page), (visit.ended, visit.purpose.is_page() && !visit.retry));
    let mut links = visit.links.iter();
    let each = |link: SkimmedLink<'_>| {
        let own = links.next().expect("no more links than there are");
        assert_eq!((link.url, link.kind, link.rel, link.text), (own.url.as_str(), own.kind, own.rel, &*own.text));
    };
    skimmed.links(&mut String::new(), each).expect("links can be skimmed");
    assert_eq!(links.count(), 0);
    let page = SkimmedPage::read(payload).expect("what is understood can be skimmed");
    assert_eq!((&page.entry, page.started, page.status), (&visit.entry, visit.started, visit.status));
    assert_eq!((page.directives, page.archived, page.language), (visit.directives, visit.archived, &*visit.language));
    assert_eq!((&page.canonical, page.said), (&visit.canonical, visit.said.as_deref()));
    let mut text = PageText::default();
    let read = page.read_text(&mut text).map(|held| held.then_some(&text));
    assert_eq!(read, visit.page_text().as_ref().map(Option::as_ref).map_err(Clone::clone));
    if let Ok(Some(text)) = read
        && page.said.is_some()
    {
        assert_eq!(PageText::take(&text.to_bytes()).as_ref(), Ok(text), "what a page says is written as it was read");
    }
}

fn entry(data: &[u8]) {
    let Ok(entry) = Entry::from_bytes(data) else { return };
    assert_eq!(Entry::from_bytes(&entry.to_bytes()).as_ref(), Ok(&entry));
    // Parts of what passes for canonical lie within it.
    let url = &entry.url;
    let (host, path) = (url.host_str(), url.path_and_query());
    assert!(url.as_str().contains(host) && url.as_str().ends_with(path) && path.starts_with('/'));
    let _ = (url.registrable_domain(), url.ip_literal(), url.host().name(), url.host().port(), url.query());
}

/// One changed byte is an error, or cuts the log at the record that it hit: never another record.
fn damage(data: &[u8]) {
    let Some((head, text)) = data.split_at_checked(3) else { return };
    let disk = disk();
    let mut log = Log::open(disk.clone(), Position::default(), 1 << 20).expect("memory");
    let mut written = Vec::new();
    for piece in text.chunks(16) {
        log.append(piece[0], |into| into.extend_from_slice(&piece[1..]));
        log.commit().expect("memory");
        written.push((piece[0], piece[1..].to_vec()));
    }
    let mut bytes = disk.read(&segment_name(1)).expect("memory");
    let at = usize::from(u16::from_le_bytes([head[0], head[1]])) % bytes.len();
    bytes[at] ^= head[2];
    disk.create(&segment_name(1)).and_then(|mut file| file.append(&bytes)).expect("memory");
    let (read, _) = records(&disk);
    assert!(written.starts_with(&read), "a changed byte at {at} made another record");
    assert!(head[2] != 0 || read.len() == written.len());
}
