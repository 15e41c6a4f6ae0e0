//! Duplicates on their way from the content-seen test to the log.
//!
//! The test knows pages as places in the log. Here they get their URLs back, which the record of the duplicate names, so that whoever reads
//! it needs nothing else.

use rhumb_core::Timestamp;
use rhumb_core::record::{self, Duplicate, Record};
use rhumb_core::seen::{Found, PageRef};
use rhumb_core::url::Url;
use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::{Result, StoreError, log};

/// So many are written to the log in a turn.
pub(crate) const FOUND_MAX: usize = 64;

/// The record of a duplicate. `None` if the log does not have the two pages, or not whole: whether two pages are the same is not worth stopping for.
pub(crate) fn record_of(disk: &dyn Disk, found: &Found, at: Timestamp) -> Option<Record> {
    let urls = url_at(disk, found.page).and_then(|url| Ok(url.zip(url_at(disk, found.of)?)));
    match urls {
        Ok(Some((url, of))) => {
            let similarity = (found.similarity.clamp(0.0, 1.0) * 10_000.0).round() as u16;
            let duplicate = Duplicate { page: found.page, url, of, similarity, exact: found.exact };
            Some(Record::Duplicate(Box::new(duplicate), at))
        }
        Ok(None) => None,
        Err(e) => {
            tracing::warn!(error = %e, "a duplicate was found, but not which");
            None
        }
    }
}

/// The URL of a page that the log has.
pub fn url_at(disk: &dyn Disk, page: PageRef) -> Result<Option<Url>> {
    let at = page.position();
    let Some((_, payload)) = log::record_at(disk, at)?.filter(|(kind, _)| *kind == VISITED) else { return Ok(None) };
    let damaged = |Malformed(what)| StoreError::corrupt(&log::segment_name(at.segment), at.offset, what);
    record::visited_url(&payload).map(Some).map_err(damaged)
}

/// The kind of a visit's record.
const VISITED: u8 = 4;
