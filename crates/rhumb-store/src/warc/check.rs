//! What is done with a whole file: `check` it, list it (`ls`), find how far it is whole (`whole_prefix`).

use std::io::{BufRead, Read};

use data_encoding::{BASE32, BASE64, BASE64URL, HEXLOWER_PERMISSIVE};
use sha1::{Digest as _, Sha1};

use super::http::HttpHead;
use super::{Record, Span, WarcError, WarcReader};

/// The longest stored HTTP head looked into, in bytes.
pub const HTTP_HEAD_BYTES_MAX: usize = 1 << 20;
/// How many problems of a file are kept; the rest are only counted.
pub const PROBLEMS_MAX: usize = 10_000;

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the record (or the place between records) begins.
    pub offset: u64,
    /// What is wrong, as a sentence.
    pub what: String,
}

/// What `check` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Records read.
    pub records: u64,
    /// Digests recomputed and compared.
    pub digests_checked: u64,
    /// Digests passed over because they use an algorithm other than SHA-1.
    pub digests_unknown: u64,
    /// What is wrong, in file order, at most `PROBLEMS_MAX`.
    pub errors: Vec<Problem>,
    /// Problems beyond `PROBLEMS_MAX`.
    pub errors_untold: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn passed(&self) -> bool {
        self.errors.is_empty()
    }

    fn problem(&mut self, offset: u64, what: impl Into<String>) {
        if self.errors.len() < PROBLEMS_MAX {
            self.errors.push(Problem { offset, what: what.into() });
        } else {
            self.errors_untold += 1;
        }
    }

    fn trouble(&mut self, error: &WarcError) {
        let text = error.to_string();
        let bare = text.split_once(": ").filter(|(place, _)| place.starts_with("offset ")).map(|(_, what)| what);
        self.problem(error.offset().unwrap_or(0), bare.unwrap_or(&text));
    }
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where the record begins.
    pub offset: u64,
    /// Bytes it takes as stored.
    pub length: u64,
    /// WARC-Type.
    pub kind: String,
    /// WARC-Date as written.
    pub date: String,
    /// WARC-Target-URI.
    pub uri: Option<String>,
    /// WARC-Record-ID.
    pub id: Option<String>,
    /// Content-Type of the block.
    pub content_type: Option<String>,
    /// Content-Length of the block.
    pub block_bytes: u64,
    /// Status of the HTTP response inside.
    pub status: Option<u16>,
    /// Content-Type of the HTTP response inside.
    pub mime: Option<String>,
    /// WARC-Payload-Digest.
    pub digest: Option<String>,
}

/// Reads a whole file and recomputes its digests, as `warcio check` does; goes on after a problem where that is possible.
pub fn check<R: Read>(reader: R) -> CheckReport {
    let mut report = CheckReport::default();
    let mut reader = WarcReader::new(reader);
    let mut shared_told = false;
    loop {
        let error = match reader.next_record() {
            Ok(None) => return report,
            Ok(Some(record)) => {
                report.records += 1;
                if record.shares_member && !shared_told {
                    shared_told = true;
                    report.trouble(&WarcError::SharedMember { offset: record.offset });
                }
                match check_record(record, &mut report) {
                    Ok(()) => continue,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        report.trouble(&error);
        if !error.is_passable() {
            return report;
        }
    }
}

/// Calls `each` with a row for every record, in file order.
pub fn ls<R: Read>(reader: R, mut each: impl FnMut(Row)) -> Result<(), WarcError> {
    let mut reader = WarcReader::new(reader);
    while let Some(mut record) = reader.next_record()? {
        let head = match record.fields.kind() {
            "response" | "revisit" if record.fields.holds_http() => record.read_http_head(HTTP_HEAD_BYTES_MAX)?,
            _ => None,
        };
        let head = head.map(|bytes| HttpHead::parse(&bytes));
        let get = |name: &str| record.fields.get(name).map(str::to_owned);
        let mut row = Row {
            offset: record.offset,
            length: 0,
            kind: record.fields.kind().to_owned(),
            date: get("WARC-Date").unwrap_or_default(),
            uri: record.fields.target_uri(),
            id: get("WARC-Record-ID"),
            content_type: get("Content-Type"),
            block_bytes: record.fields.content_length().unwrap_or(0),
            status: head.as_ref().and_then(HttpHead::status),
            mime: head.as_ref().and_then(|head| head.get("Content-Type")).map(str::to_owned),
            digest: get("WARC-Payload-Digest"),
        };
        row.length = record.finish()?.length;
        each(row);
    }
    Ok(())
}

/// How much of a file is whole records: the offset after the last gzip member (or plain record with its two blank lines)
/// that can be read to its end. Anything after it is a torn tail.
pub fn whole_prefix<R: Read>(reader: R) -> Result<u64, WarcError> {
    let mut reader = WarcReader::new(reader);
    let mut whole = 0;
    loop {
        let span: Span = match reader.next_record() {
            Ok(Some(record)) => match record.finish() {
                Ok(span) => span,
                Err(error @ WarcError::Io { .. }) => return Err(error),
                Err(_) => return Ok(whole),
            },
            Err(error @ WarcError::Io { .. }) => return Err(error),
            Ok(None) | Err(_) => return Ok(whole),
        };
        match reader.after_record() {
            // More in the same member: its end is not reached yet.
            None => {}
            Some(true) => whole = span.end(),
            Some(false) if reader.blank_lines() >= 2 => whole = reader.position(),
            Some(false) => return Ok(whole),
        }
    }
}

fn check_record<R: Read>(mut record: Record<'_, R>, report: &mut CheckReport) -> Result<(), WarcError> {
    let offset = record.offset;
    for name in ["WARC-Type", "WARC-Record-ID", "WARC-Date"] {
        if record.fields.get(name).is_none() {
            report.problem(offset, format!("no {name}"));
        }
    }
    // A revisit's payload digest is of a body stored elsewhere, a segment's of a body in pieces.
    let revisit = record.fields.kind() == "revisit";
    let in_pieces = record.fields.get("WARC-Segment-Number").is_some();
    let mut wanted = |name: &str, checkable: bool| {
        let text = record.fields.get(name).filter(|_| checkable)?;
        let digest = sha1_of(text);
        match digest {
            Some(Ok(digest)) => return Some(digest),
            Some(Err(())) => report.problem(offset, format!("{name} is no SHA-1: {text:?}")),
            None => report.digests_unknown += 1,
        }
        None
    };
    let block_wanted = wanted("WARC-Block-Digest", true);
    let payload_wanted = wanted("WARC-Payload-Digest", !revisit && !in_pieces);
    if block_wanted.is_none() && payload_wanted.is_none() {
        return record.finish().map(|_| ());
    }

    let (mut block, mut payload) = (Sha1::new(), Sha1::new());
    let mut payload_begun = true;
    if record.fields.holds_http() {
        match record.read_http_head(HTTP_HEAD_BYTES_MAX)? {
            Some(head) => block.update(&head),
            None => {
                report
                    .problem(offset, format!("HTTP head longer than {HTTP_HEAD_BYTES_MAX} bytes, digests not checked"));
                return record.finish().map(|_| ());
            }
        }
    }
    loop {
        // Trouble in the block comes out of `finish` with its own kind.
        let Ok(some) = record.fill_buf() else {
            payload_begun = false;
            break;
        };
        if some.is_empty() {
            break;
        }
        if block_wanted.is_some() {
            block.update(some);
        }
        if payload_wanted.is_some() {
            payload.update(some);
        }
        let n = some.len();
        record.consume(n);
    }
    record.finish()?;
    if payload_begun {
        let found = [("block", block_wanted, block), ("payload", payload_wanted, payload)];
        for (name, wanted, found) in found {
            let Some(wanted) = wanted else { continue };
            report.digests_checked += 1;
            if wanted != <[u8; 20]>::from(found.finalize()) {
                report.problem(offset, format!("{name} digest failed"));
            }
        }
    }
    Ok(())
}

/// The SHA-1 a digest field tells: in base 32, hex or base 64. `None` for another algorithm.
fn sha1_of(text: &str) -> Option<Result<[u8; 20], ()>> {
    let Some((algorithm, value)) = text.split_once(':') else { return Some(Err(())) };
    if !matches!(algorithm.to_ascii_lowercase().as_str(), "sha1" | "sha-1") {
        return None;
    }
    let value = value.trim();
    let bytes = match value.len() {
        32 => BASE32.decode(value.to_ascii_uppercase().as_bytes()).ok(),
        40 => HEXLOWER_PERMISSIVE.decode(value.as_bytes()).ok(),
        _ => BASE64.decode(value.as_bytes()).or_else(|_| BASE64URL.decode(value.as_bytes())).ok(),
    };
    Some(bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_in_many_alphabets() {
        let check = |text: &str, expected: Option<bool>| {
            assert_eq!(sha1_of(text).map(|digest| digest == Ok([0xab; 20])), expected, "{text}");
        };
        check(&format!("sha1:{}", BASE32.encode(&[0xab; 20])), Some(true));
        check(&format!("SHA-1:{}", "AB".repeat(20)), Some(true));
        check(&format!("sha1:{}", BASE64.encode(&[0xab; 20])), Some(true));
        check(&format!("sha1:{}", BASE64URL.encode(&[0xab; 20])), Some(true));
        check("sha1:", Some(false));
        check("nonsense", Some(false));
        check("sha256:AAAA", None);
    }

    #[test]
    fn plain_files_of_others() {
        let digest = super::super::Digest::of(b"body");
        let block = "HTTP/1.1 200 OK\nA: b\n\nbody";
        let record = format!(
            "WARC/1.0\nwarc-type: response\nwarc-record-id: <urn:x>\nwarc-date: 2020-01-01T00:00:00Z\n\
             warc-target-uri: <http://a/>\nwarc-payload-digest: {digest}\ncontent-length: {}\n\n{block}",
            block.len()
        );
        let file = format!("{record}\n\n{record}");
        let report = super::check(file.as_bytes());
        assert_eq!((report.records, report.digests_checked), (2, 2));
        assert_eq!(report.errors, []);
        let problems = |file: &str| -> Vec<(u64, String)> {
            super::check(file.as_bytes()).errors.into_iter().map(|p| (p.offset, p.what)).collect()
        };
        let length = record.len() as u64;
        let torn = &file[..file.len() - 1];
        assert_eq!(problems(torn), [(length + 2, "the file ends inside this record (torn tail)".to_owned())]);
        assert_eq!(
            problems(&format!("{record}\n\nrubbish\n{record}")),
            [(length + 2, "expected a record, found \"rubbish\"".to_owned())]
        );
        assert_eq!(problems(&record.replace("body", "bodx")), [(0, "payload digest failed".to_owned())]);
        // A plain record is whole with its two blank lines.
        assert_eq!(whole_prefix(file.as_bytes()).expect("no I/O"), length + 2);
        assert_eq!(whole_prefix(&file.as_bytes()[..record.len() + 1]).expect("no I/O"), 0);
    }
}
