//! From the visit log to the text index: which records count, and what of them.
//!
//! The index is a fold like the link graph: it knows how far it has read, and reading on brings it up to date, whoever does it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rhumb_core::dates;
use rhumb_core::outcome::Outcome;
use rhumb_core::page::PageText;
use rhumb_core::record::{Record, Skimmed, SkimmedPage};
use rhumb_core::seen::PageRef;
use rhumb_core::url::Fingerprint;
use rhumb_index::late::{Link, LinkSource};
use rhumb_index::page::{Page, Weights};
use rhumb_index::part::DIR;
use rhumb_index::store::Writer;
use rhumb_index::{Result, manifest, store};
use rhumb_store::StoreError;
use rhumb_store::codec::{Malformed, crc32};
use rhumb_store::disk::{DirLock, Disk};
use rhumb_store::log::{self, LogReader, Position, segment_name};

use super::ranks::Qualities;
use crate::links::follow::is_link;

/// Kinds of records.
const VISITED: u8 = 4;
const DUPLICATE: u8 = 10;
/// How many redirects in a row lead to where a link means.
const HOPS_MAX: usize = 5;

/// How far following got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The end of the log.
    End,
    /// The bound of memory: what there is should be written.
    Full,
}

/// The lock of whoever writes the index of a directory.
pub fn lock(dir: &Path) -> rhumb_store::Result<DirLock> {
    let index = dir.join(DIR);
    std::fs::create_dir_all(&index).map_err(|e| StoreError::io("make directory", DIR, e))?;
    DirLock::take(&index)
}

/// Opens the index of a crawl directory for writing. One that is damaged, or of another log, is made anew: everything in it comes from the
/// log. The caller holds the lock.
pub fn open(disk: &Arc<dyn Disk>, weights: Weights, memory_bytes: usize) -> Result<Writer> {
    let is_of_this_log = |last: Option<(Position, u32)>| match last {
        None => true,
        Some((place, checksum)) => {
            log::record_at(&**disk, place).ok().flatten().is_some_and(|(_, payload)| crc32(&payload) == checksum)
        }
    };
    match Writer::open(disk.clone(), weights, memory_bytes) {
        Ok(writer) if is_of_this_log(writer.last()) => return Ok(writer),
        Ok(_) => tracing::warn!("the text index is of another log; it is made anew"),
        Err(e) if e.is_damage() => tracing::warn!(error = %e, "the text index is made anew from the log"),
        Err(e) => return Err(e),
    }
    store::discard(&**disk)?;
    Writer::open(disk.clone(), weights, memory_bytes)
}

/// Reads the log from where the index has got to, until its end or until memory is used up.
pub fn follow(writer: &mut Writer, disk: &Arc<dyn Disk>) -> Result<Reached> {
    let mut reader = LogReader::open(disk.clone(), writer.position())?;
    let mut said = PageText::default();
    let mut headings = Vec::new();
    let mut last = None;
    let reached = loop {
        if writer.is_full() {
            break Reached::Full;
        }
        let place = reader.position();
        let Some((kind, payload)) = reader.next()? else { break Reached::End };
        let damaged = |Malformed(what)| StoreError::corrupt(&segment_name(place.segment), place.offset, what);
        match kind {
            VISITED => {
                last = Some((place, crc32(payload)));
                let visit = SkimmedPage::read(payload).map_err(damaged)?;
                if visit.is_final_page {
                    take(writer, &visit, place, &mut said, &mut headings)?;
                }
            }
            DUPLICATE => {
                if let Record::Duplicate(duplicate, _) = Record::take(kind, payload).map_err(damaged)? {
                    let id = |url: &rhumb_core::url::Url| Fingerprint::of(url.as_str()).0;
                    writer.note_duplicate(id(&duplicate.url), id(&duplicate.of));
                }
            }
            _ => {}
        }
    };
    writer.advance(reader.position(), last);
    Ok(reached)
}

/// Takes a visit in, if it says something about a page.
fn take(
    writer: &mut Writer,
    visit: &SkimmedPage<'_>,
    place: Position,
    said: &mut PageText,
    headings: &mut Vec<std::ops::Range<usize>>,
) -> Result<()> {
    let url = visit.entry.url.as_str();
    let id = Fingerprint::of(url).0;
    match visit.outcome {
        Outcome::Ok if visit.entry.sitemap.is_some() => {}
        Outcome::Ok => {
            let damaged = |Malformed(what)| StoreError::corrupt(&segment_name(place.segment), place.offset, what);
            let has_text = visit.read_text(said).map_err(damaged)?;
            // A page that is not to be found, or has nothing to be found by, is not found any more either.
            if visit.directives.hides_at(visit.ended).is_some() || !has_text {
                writer.remove(id);
                return Ok(());
            }
            headings.clear();
            headings.extend(said.headings.iter().map(|heading| heading.span.clone()));
            let fetched_ms = visit.ended.0 as i64;
            let changed = visit.last_modified.and_then(dates::parse).map(|at| at.0 as i64);
            writer.add(&Page {
                id,
                visit: PageRef::at(place).0,
                url,
                title: visit.title,
                description: &said.description,
                text: &said.text,
                headings,
                emphasis: &said.emphasis,
                declared: visit.language,
                kind: kind_of(visit.media_type),
                date_ms: changed.filter(|at| *at <= fetched_ms).unwrap_or(fetched_ms),
                fetched_ms,
                no_snippet: visit.directives.nosnippet.is_some(),
                cached: visit.archived.is_some() && visit.directives.noarchive.is_none(),
            })?;
        }
        // It was a page once.
        Outcome::NotFound | Outcome::Redirect => _ = writer.remove(id),
        // What did not change, and what did not answer this time, is what it was.
        _ => {}
    }
    Ok(())
}

/// What a page of this media type is called.
fn kind_of(media_type: &str) -> &'static str {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/pdf" => "pdf",
        "text/plain" => "text",
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" => "feed",
        "application/ld+json" => "json-ld",
        "application/json" => "json",
        "text/xml" | "application/xml" => "xml",
        "text/markdown" => "markdown",
        _ => "html",
    }
}

/// Bytes of the whole log.
pub fn log_bytes(disk: &dyn Disk) -> rhumb_store::Result<u64> {
    let mut bytes = 0;
    for segment in log::segments(disk)? {
        bytes += disk.open(&log::segment_name(segment))?.len()?;
    }
    Ok(bytes)
}

/// Whether there is an index that nothing is left to do for.
pub fn is_settled(disk: &dyn Disk, weights: Weights) -> rhumb_store::Result<bool> {
    let list = match manifest::Manifest::load(disk) {
        Ok(Some(list)) => list,
        Ok(None) => return Ok(false),
        Err(StoreError::Corrupt { .. } | StoreError::Version { .. }) => return Ok(false),
        Err(e) => return Err(e),
    };
    let behind = crate::links::bytes_behind(disk, list.position)?;
    Ok(list.is_settled && list.weights == weights && behind == 0)
}

/// The links between pages, as the log has them up to a place.
pub struct LogLinks {
    disk: Arc<dyn Disk>,
    until: Position,
    /// Pages that were visited several times, with the visit that counts.
    newest: HashMap<u64, Position>,
    /// Where redirects lead.
    redirects: HashMap<u64, u64>,
    qualities: Option<Qualities>,
}

impl LogLinks {
    /// Looks through the log for pages that were visited several times.
    pub fn new(disk: Arc<dyn Disk>, until: Position, qualities: Option<Qualities>) -> Result<LogLinks> {
        let mut links = LogLinks { disk, until, newest: HashMap::new(), redirects: HashMap::new(), qualities };
        let (mut visits, mut redirects) = (Vec::new(), HashMap::new());
        let mut room = String::new();
        links.each_visit(|visit, place| {
            let id = Fingerprint::of(visit.url.as_str()).0;
            visits.push((id, place));
            if visit.outcome == Outcome::Redirect {
                visit.links(&mut room, |link| _ = redirects.insert(id, Fingerprint::of(link.url).0))?;
            } else if !redirects.is_empty() {
                redirects.remove(&id);
            }
            Ok(())
        })?;
        visits.sort_unstable();
        let again = visits.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        // The last one stays.
        links.newest = again.map(|pair| pair[1]).collect();
        links.redirects = redirects;
        Ok(links)
    }

    /// Calls `each` with every visit that says something about the links of a page.
    fn each_visit(&self, mut each: impl FnMut(&Skimmed<'_>, Position) -> Result<(), Malformed>) -> Result<()> {
        let mut reader = LogReader::open(self.disk.clone(), Position::START)?;
        while reader.position() < self.until {
            let place = reader.position();
            let Some((kind, payload)) = reader.next()? else { break };
            if kind != VISITED {
                continue;
            }
            let damaged = |Malformed(what)| StoreError::corrupt(&segment_name(place.segment), place.offset, what);
            let visit = Skimmed::read(payload).map_err(damaged)?;
            if visit.is_final_page && matches!(visit.outcome, Outcome::Ok | Outcome::Redirect | Outcome::NotFound) {
                each(&visit, place).map_err(damaged)?;
            }
        }
        Ok(())
    }

    /// Where a link means, behind redirects.
    fn meant(&self, mut target: u64) -> u64 {
        for _ in 0..HOPS_MAX {
            match self.redirects.get(&target) {
                Some(next) if *next != target => target = *next,
                _ => break,
            }
        }
        target
    }
}

impl LinkSource for LogLinks {
    fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> Result<()> {
        let mut room = String::new();
        let links = &*self;
        links.each_visit(|visit, place| {
            let source = Fingerprint::of(visit.url.as_str()).0;
            // A redirect is no recommendation of its own, and what a page said before does not count.
            if visit.outcome != Outcome::Ok || links.newest.get(&source).is_some_and(|newest| *newest != place) {
                return Ok(());
            }
            let source_host = Fingerprint::of(visit.url.host().as_str()).0;
            visit.links(&mut room, |link| {
                if is_link(link.kind) && !link.rel.is_unvouched() {
                    let target = links.meant(Fingerprint::of(link.url).0);
                    each(&Link { source, source_host, target, text: link.text });
                }
            })
        })
    }

    fn quality(&mut self, url: &str) -> Option<f32> {
        self.qualities.as_ref().and_then(|qualities| qualities.of(url))
    }

    fn has_ranks(&self) -> bool {
        self.qualities.is_some()
    }
}
