//! Recovery: from what lies on the disk to a crawl that can go on.
//!
//! The newest checkpoint is loaded and the log behind it folded in; a state that does not read is made anew from the log alone.
//! What a crash or a power loss left half-done is cut. Read `engine.rs` first: it calls these in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhumb_core::cdx;
use rhumb_core::crawl::Crawl;
use rhumb_core::handover::Batch;
use rhumb_core::record::Record;
use rhumb_store::archive::{self, ArchiveIndex};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::log::{self, LogReader, Position};
use rhumb_store::{StoreError, checkpoint};

use crate::bus::Bus;
use crate::engine::CrawlError;
use crate::settings::Settings;

/// A sieve with more keys is not flushed by a replay.
const FLUSH_KEYS_MAX: u64 = 1 << 20;

/// The newest checkpoint and its number; 0 if there is none that can be used.
pub(crate) fn load_checkpoint(
    disk: &Arc<dyn Disk>,
    settings: &Settings,
    notes: &mut Vec<String>,
) -> Result<(Crawl, u64), CrawlError> {
    disk.make_dir("state")?;
    let found = checkpoint::load(&**disk)?;
    let trouble = match found {
        checkpoint::Found::None => {
            let crawl = Crawl::new(disk.clone(), &settings.crawl)?;
            crawl.remove_strays(&**disk)?;
            return Ok((crawl, 0));
        }
        checkpoint::Found::Whole(number, body) => match Crawl::load(disk.clone(), &settings.crawl, &body) {
            Ok(crawl) => {
                crawl.remove_strays(&**disk)?;
                return Ok((crawl, number));
            }
            // Derived state that does not read back is made anew from the log.
            Err(e @ (StoreError::Corrupt { .. } | StoreError::Version { .. } | StoreError::Io { .. })) => e.to_string(),
            Err(e) => return Err(e.into()),
        },
        checkpoint::Found::Unusable(why) => why,
    };
    Ok((without_checkpoint(disk, settings, &trouble, notes)?, 0))
}

/// A crawl that knows nothing, because what it knew does not read back: the log will tell it.
pub(crate) fn without_checkpoint(
    disk: &Arc<dyn Disk>,
    settings: &Settings,
    trouble: &str,
    notes: &mut Vec<String>,
) -> Result<Crawl, CrawlError> {
    notes.push(trouble.to_string());
    checkpoint::discard_all(&**disk)?;
    let crawl = Crawl::new(disk.clone(), &settings.crawl)?;
    crawl.remove_strays(&**disk)?;
    Ok(crawl)
}

/// Folds the records behind the checkpoint.
pub(crate) fn replay(disk: &Arc<dyn Disk>, crawl: &mut Crawl, bus: &mut dyn Bus) -> Result<(), CrawlError> {
    // A large sieve makes its filter anew, which takes seconds: the crawl need not wait for it.
    crawl.work_elsewhere();
    let mut reader = LogReader::open(disk.clone(), crawl.position)?;
    let (mut found, mut received) = (Batch::default(), Batch::default());
    loop {
        let at = reader.position();
        let Some((kind, payload)) = reader.next()? else { break };
        let record = Record::take(kind, payload).map_err(|Malformed(what)| {
            StoreError::corrupt(&rhumb_store::log::segment_name(at.segment), at.offset, what)
        })?;
        crawl.fold(&record, reader.position(), &mut found)?;
        bus.send(&mut found);
        while bus.receive(&mut received) {
            crawl.receive(&received)?;
        }
        if crawl.must_wait() {
            crawl.work()?;
        }
    }
    // What the sieve holds back is let through, so that the figures are those of a crawl that goes on; unless it takes long.
    if crawl.sieve.len() < FLUSH_KEYS_MAX { Ok(crawl.flush()?) } else { Ok(()) }
}

/// Writes the index lines of records behind the checkpoint; of all records, if the index is not what the checkpoint says.
pub(crate) fn complete_index(
    disk: &Arc<dyn Disk>,
    index: &mut ArchiveIndex,
    checkpoint: Position,
    expected: archive::ArchiveEnd,
) -> Result<(), CrawlError> {
    let whole = index.end() == expected;
    let from = if whole { checkpoint } else { Position::START };
    let names: std::collections::BTreeMap<u32, String> = archive::files(&**disk)?.into_iter().collect();
    let first_file = if whole { 0 } else { expected.file };
    let mut reader = LogReader::open(disk.clone(), from)?;
    while let Some((kind, payload)) = reader.next()? {
        // Only finished visits lie in the archive. What does not read was reported by the replay.
        let Ok(Record::Visited(visit)) = Record::take(kind, payload) else { continue };
        if let Some(place) = visit.archived.filter(|p| p.file >= first_file)
            && let Some(name) = names.get(&place.file)
        {
            index.add(place.file, name, &cdx::line(&visit, &place, name))?;
        }
    }
    Ok(index.commit()?)
}

/// After a power loss the log may speak of archive bytes that never reached the disk: a checkpoint syncs both, but between two of
/// them either may be the one that got further. Cuts the log in front of the first such record behind the checkpoint and returns how
/// many finished visits go with it; 0 if none is missing, and nothing is touched.
pub(crate) fn cut_to_archive(disk: &Arc<dyn Disk>, checkpoint: Position) -> Result<u64, CrawlError> {
    let mut lengths: BTreeMap<u32, u64> = BTreeMap::new();
    for (serial, name) in archive::files(&**disk)? {
        lengths.insert(serial, disk.open(&format!("{}/{name}", archive::DIR))?.len()?);
    }
    let mut reader = LogReader::open(disk.clone(), checkpoint)?;
    let (mut cut, mut visits) = (None, 0);
    loop {
        let at = reader.position();
        let Some((kind, payload)) = reader.next()? else { break };
        let Ok(Record::Visited(visit)) = Record::take(kind, payload) else { continue };
        let end = visit.archived.map(|place| place.end());
        let missing = end.is_some_and(|end| lengths.get(&end.file).is_none_or(|length| *length < end.offset));
        if missing && cut.is_none() {
            cut = Some(at);
        }
        visits += u64::from(cut.is_some());
    }
    if let Some(at) = cut {
        log::cut(&**disk, at)?;
    }
    Ok(visits)
}
