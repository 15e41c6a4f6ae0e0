//! The line of the archive's index that a visit makes.

use rhumb_store::archive::ArchiveRef;
use rhumb_store::warc::{CdxEntry, Digest, cdxj, surt};

use crate::outcome::Outcome;
use crate::visit::VisitRecord;

/// The CDXJ line of a visit's response, which lies at `place` of the archive file `filename`.
pub fn line(record: &VisitRecord, place: &ArchiveRef, filename: &str) -> String {
    let revisit = record.duplicate_of.is_some() || record.outcome == Outcome::NotModified;
    let mime = if revisit { Some("warc/revisit".to_string()) } else { Some(cdxj::bare_type(&record.media_type)) };
    let digest = record.digest.filter(|_| record.outcome != Outcome::NotModified).map(|d| Digest(d).to_string());
    let entry = CdxEntry {
        key: surt(record.entry.url.as_str()),
        timestamp: record.started.digits14(),
        url: Some(record.entry.url.as_str().to_string()),
        mime: mime.filter(|m| !m.is_empty()),
        status: Some(record.status.to_string()),
        digest,
        length: u64::from(place.first),
        offset: place.offset,
        filename: filename.to_string(),
    };
    entry.line()
}
