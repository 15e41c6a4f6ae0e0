//! The line of the archive's index that a visit makes.

use rhumb_store::archive::ArchiveRef;
use rhumb_store::warc::{CdxEntry, Digest, cdxj, surt};

use crate::outcome::Outcome;
use crate::visit::VisitRecord;

/// The CDXJ line of a visit's response, which lies at `place` of the archive file `filename`.
pub fn line(record: &VisitRecord, place: &ArchiveRef, filename: &str) -> String {
    let revisit = record.duplicate_of.is_some() || record.outcome == Outcome::NotModified;
    let is_web = record.entry.url.is_web();
    let media_type = if is_web { &*record.media_type } else { resource_type(record) };
    let mime = if revisit { Some("warc/revisit".to_string()) } else { Some(cdxj::bare_type(media_type)) };
    let digest = record.digest.filter(|_| record.outcome != Outcome::NotModified).map(|d| Digest(d).to_string());
    let entry = CdxEntry {
        key: surt(record.entry.url.as_str()),
        timestamp: record.started.digits14(),
        url: Some(record.entry.url.as_str().to_string()),
        mime: mime.filter(|m| !m.is_empty()),
        status: is_web.then(|| record.status.to_string()),
        digest,
        length: u64::from(place.first),
        offset: place.offset,
        filename: filename.to_string(),
    };
    entry.line()
}

/// What the record of something that is no web page says that it holds.
pub fn resource_type(record: &VisitRecord) -> &str {
    if record.media_type.is_empty() { "application/octet-stream" } else { &record.media_type }
}
