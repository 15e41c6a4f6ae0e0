//! What is kept of a visit: its WARC records, with a pointer instead of a body that is archived already.

use rhumb_core::cdx;
use rhumb_core::outcome::Outcome;
use rhumb_core::visit::VisitRecord;
use rhumb_store::warc::{Capture, Digest, Metadata, Profile, RecordWriter, Response, Revisit};

use super::Tools;
use crate::fetch::Fetched;

/// Whether a copy of the page may be kept.
pub(super) fn may_be_kept(record: &VisitRecord, tools: &Tools) -> bool {
    !(tools.obey.noarchive && record.directives.noarchive.is_some())
}

/// Request, response (or a pointer to where the same body is) and metadata, each a gzip member.
pub(super) fn write_records(
    record: &mut VisitRecord,
    fetched: &Fetched,
    tools: &Tools,
    writer: &mut RecordWriter,
    out: &mut Vec<u8>,
) -> u32 {
    let uri = record.entry.url.as_str();
    let protocols: &[&str] = if fetched.http2 { &["h2"] } else { &[] };
    let capture = Capture { uri, date: record.started, ip: fetched.address, protocols };
    let ids = {
        let mut ids = tools.ids.lock().expect("nobody panics while counting");
        [ids.take(), ids.take(), ids.take()]
    };
    let digest = Digest::of(&fetched.body);
    let first = {
        let seen = tools.seen.lock().expect("nobody panics while remembering content");
        if record.outcome == Outcome::Ok { seen.check(&digest.0).cloned() } else { None }
    };
    let not_modified = record.outcome == Outcome::NotModified;
    let written = if let Some(first) = &first {
        let revisit = Revisit {
            head: &fetched.head,
            profile: Profile::IdenticalPayload(digest),
            refers_to_uri: &first.url,
            refers_to_date: first.at,
            refers_to: None,
        };
        writer.revisit(out, ids[1], &capture, &revisit)
    } else if not_modified {
        let revisit = Revisit {
            head: &fetched.head,
            profile: Profile::NotModified(None),
            refers_to_uri: uri,
            refers_to_date: record.entry.validators.fetched,
            refers_to: None,
        };
        writer.revisit(out, ids[1], &capture, &revisit)
    } else if !record.entry.url.is_web() {
        writer.resource(out, ids[1], &capture, cdx::resource_type(record), &fetched.body, digest, fetched.cut)
    } else {
        let response = Response {
            head: &fetched.head,
            body: &fetched.body,
            digest: Some(digest),
            truncated: fetched.cut,
            identified_type: None,
        };
        writer.response(out, ids[1], &capture, &response).map(|(span, _)| span)
    };
    let depth = Some(record.entry.depth);
    let metadata = Metadata { depth, fetch_ms: Some(record.duration_ms()), ..Metadata::default() };
    let first_bytes = written.as_ref().map_or(0, |span| span.length as u32);
    let request = |_| match fetched.request_head.is_empty() {
        true => Ok(()),
        false => writer.request(out, ids[0], &capture, Some(ids[1]), &fetched.request_head, b"").map(drop),
    };
    let all = written.and_then(request).and_then(|_| writer.metadata(out, ids[2], &capture, Some(ids[1]), &metadata));
    match all {
        Ok(_) => {
            record.digest = Some(digest.0);
            record.duplicate_of = first.map(|f| f.url);
            first_bytes
        }
        Err(e) => {
            // A head that cannot be archived (no status line at all) is a page without a copy, not a failed crawl.
            tracing::debug!(url = uri, error = %e, "not archived");
            out.clear();
            0
        }
    }
}
