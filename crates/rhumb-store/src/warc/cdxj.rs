//! CDXJ: one line per capture, `key timestamp {"url": …}`, as `cdxj-indexer` prints it for the same file.
//!
//! Indexed are response, revisit, resource and metadata records, save those whose block is `application/warc-fields` (our
//! metadata). Left out beside that tool: the keys that append POST bodies (`-p`), and ARC files.

use std::fmt::Write as _;
use std::io::{BufRead, Read};

use sha1::{Digest as _, Sha1};

use super::check::HTTP_HEAD_BYTES_MAX;
use super::http::HttpHead;
use super::surt::surt;
use super::{Digest, Record, WarcError, WarcReader, is_space};

/// One line of the index, taken apart. Fields that are `None` are left out of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdxEntry {
    /// The sort key, see `surt`.
    pub key: String,
    /// Fourteen digits.
    pub timestamp: String,
    /// The URL.
    pub url: Option<String>,
    /// What the HTTP head says the body is, without parameters; `warc/revisit` for a revisit.
    pub mime: Option<String>,
    /// HTTP status as written.
    pub status: Option<String>,
    /// Payload digest.
    pub digest: Option<String>,
    /// Bytes the record takes in the file.
    pub length: u64,
    /// Where it begins.
    pub offset: u64,
    /// Name of the file, without directories.
    pub filename: String,
}

impl CdxEntry {
    /// The line, without line end. All of it is ASCII.
    pub fn line(&self) -> String {
        let mut line = format!("{} {} {{", self.key, self.timestamp);
        let (length, offset) = (self.length.to_string(), self.offset.to_string());
        let fields = [
            ("url", self.url.as_deref()),
            ("mime", self.mime.as_deref()),
            ("status", self.status.as_deref()),
            ("digest", self.digest.as_deref()),
            ("length", Some(length.as_str())),
            ("offset", Some(offset.as_str())),
            ("filename", Some(self.filename.as_str())),
        ];
        let mut first = true;
        for (name, value) in fields {
            let Some(value) = value else { continue };
            line.push_str(if first { "\"" } else { ", \"" });
            first = false;
            line.push_str(name);
            line.push_str("\": ");
            push_json(&mut line, value);
        }
        line.push('}');
        line
    }
}

/// Calls `each` with the entry of every record that is indexed, in file order. `filename` is what the lines say.
pub fn index<R: Read>(reader: R, filename: &str, mut each: impl FnMut(CdxEntry)) -> Result<(), WarcError> {
    let mut reader = WarcReader::new(reader);
    while let Some(record) = reader.next_record()? {
        if record.shares_member {
            return Err(WarcError::SharedMember { offset: record.offset });
        }
        if is_indexed(&record) {
            each(entry(record, filename)?);
        }
    }
    Ok(())
}

/// Brings lines into the order an index has, each once.
pub fn sort(lines: &mut Vec<String>) {
    lines.sort_unstable();
    lines.dedup();
}

/// What Content-Type says, without parameters: the `mime` of an entry.
pub fn bare_type(content_type: &str) -> String {
    content_type.split(|c| c == ';' || is_space(c)).next().unwrap_or("").to_owned()
}

fn is_indexed<R>(record: &Record<'_, R>) -> bool {
    match record.fields.kind() {
        "response" | "revisit" => true,
        "resource" | "metadata" => record.fields.get("Content-Type") != Some("application/warc-fields"),
        _ => false,
    }
}

fn entry<R: Read>(mut record: Record<'_, R>, filename: &str) -> Result<CdxEntry, WarcError> {
    let offset = record.offset;
    let bad = |what: &str| WarcError::BadHeader { offset, what: what.to_owned() };
    let kind = record.fields.kind().to_owned();
    let head = if record.fields.holds_http() {
        let bytes = record.read_http_head(HTTP_HEAD_BYTES_MAX)?.ok_or_else(|| bad("HTTP head too long to index"))?;
        Some(HttpHead::parse(&bytes)).filter(|head| !head.is_empty())
    } else {
        None
    };
    let mime = match kind.as_str() {
        "revisit" => Some("warc/revisit".to_owned()),
        "response" => head.as_ref().and_then(|head| head.get("Content-Type")).map(bare_type),
        _ => record.fields.get("Content-Type").map(bare_type),
    };
    let told = record.fields.get("WARC-Payload-Digest").map(str::to_owned);
    let digest = match told {
        Some(digest) if !digest.is_empty() => Some(digest),
        empty if kind == "revisit" => empty,
        _ => Some(payload_digest(&mut record)?.to_string()),
    };
    let url = record.fields.target_uri();
    let date = record.fields.get("WARC-Date").ok_or_else(|| bad("no WARC-Date"))?;
    let timestamp = digits14(date).ok_or_else(|| bad("WARC-Date is no date"))?;
    let status = head.map(|head| head.status_text().to_owned());
    let span = record.finish()?;
    Ok(CdxEntry {
        key: surt(url.as_deref().unwrap_or("")),
        timestamp,
        url,
        mime,
        status,
        digest,
        length: span.length,
        offset,
        filename: filename.to_owned(),
    })
}

fn payload_digest<R: Read>(record: &mut Record<'_, R>) -> Result<Digest, WarcError> {
    let mut hash = Sha1::new();
    loop {
        let offset = record.offset;
        let some = record.fill_buf().map_err(|source| WarcError::Io { offset, source })?;
        if some.is_empty() {
            return Ok(Digest(hash.finalize().into()));
        }
        hash.update(some);
        let n = some.len();
        record.consume(n);
    }
}

/// `2026-01-31T23:59:59.123Z` as `20260131235959`. The time of day may be left out, from the right.
fn digits14(date: &str) -> Option<String> {
    let mut groups: Vec<&str> = date.split(|c: char| !c.is_ascii_digit()).collect();
    groups.pop_if(|last| last.is_empty());
    if !(3..=7).contains(&groups.len()) {
        return None;
    }
    let bounds = [(1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59)];
    let mut out = String::with_capacity(14);
    for (i, (low, high)) in bounds.into_iter().enumerate() {
        let number: u32 = groups.get(i).map_or(Some(0), |group| group.parse().ok())?;
        if !(low..=high).contains(&number) {
            return None;
        }
        let width = if i == 0 { 4 } else { 2 };
        let _ = write!(out, "{number:0width$}");
    }
    Some(out)
}

/// A JSON string in ASCII, escaped as Python's `json.dumps` does.
fn push_json(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_digits() {
        let check = |date: &str, expected: Option<&str>| assert_eq!(digits14(date).as_deref(), expected, "{date}");
        check("2026-01-31T23:59:59Z", Some("20260131235959"));
        check("2026-01-31T23:59:59.123Z", Some("20260131235959"));
        check("2026-01-31", Some("20260131000000"));
        check("2026-13-31T23:59:59Z", None);
        check("yesterday", None);
        check("", None);
    }

    #[test]
    fn strings_in_ascii() {
        let check = |text: &str, expected: &str| {
            let mut out = String::new();
            push_json(&mut out, text);
            assert_eq!(out, expected);
        };
        check("a\"b\\c", r#""a\"b\\c""#);
        check("é\u{1f600}\u{7f}\u{1}", r#""\u00e9\ud83d\ude00\u007f\u0001""#);
    }
}
