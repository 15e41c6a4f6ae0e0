//! `warc:`: archives that others made, read as if their pages had just been fetched.
//!
//! Taken are responses, revisits (with the body of the record that they refer to) and resources; requests, descriptions and all else
//! are passed over and counted. Uncanonical URLs are made canonical, chunked bodies put together. What cannot be used is named by
//! file and offset. A damaged gzip member costs itself: the file is searched for the next one.
//!
//! Invariant: memory is bounded by one head and one body, whatever a file says of itself, and reading ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderName, HeaderValue};
use rhumb_core::Timestamp;
use rhumb_core::url::UrlError;
use rhumb_store::warc::http::{HttpHead, synth_head};
use rhumb_store::warc::{Digest, Fields, Record, Truncated, WarcError, WarcReader, find_member};

use super::feed::{Feed, HowToRead, Item, Known, Page};
use super::{Bounds, Fetching, Protocol};
use crate::fetch::Request;
use rhumb_core::url::{Host, Scheme};

/// Archives.
pub struct Warcs;

impl Protocol for Warcs {
    fn schemes(&self) -> &'static [&'static Scheme] {
        &[]
    }

    fn fetch<'a>(&'a self, _: &'a Host, _: Request<'a>, _: &'a Bounds) -> Fetching<'a> {
        unreachable!("it has no scheme that could be asked for")
    }

    fn feeds(&self) -> Option<&'static str> {
        Some("warc")
    }

    /// A file; all archives of a directory (of a crawl directory: of its archive); or those whose names fit a last part with `*` in it.
    fn sources(&self, meant: &str) -> io::Result<Vec<String>> {
        let path = Path::new(meant.strip_prefix("//").unwrap_or(meant));
        let pattern = path.file_name().and_then(|n| n.to_str()).filter(|n| n.contains('*')).map(str::to_owned);
        let mut found = match &pattern {
            None if path.is_dir() => {
                let archive = path.join(rhumb_store::archive::DIR);
                list(if archive.is_dir() { &archive } else { path }, is_archive_name)?
            }
            None => vec![path.to_path_buf()],
            Some(pattern) => {
                let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                list(dir, |name| fits(pattern.as_bytes(), name.as_bytes()))?
            }
        };
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no archive (*.warc, *.warc.gz)"));
        }
        for file in &mut found {
            *file = file.canonicalize()?;
            if !file.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a file", file.display())));
            }
            File::open(&*file)?;
        }
        let text = |file: PathBuf| {
            let refused = || io::Error::new(io::ErrorKind::InvalidFilename, "a name that is not UTF-8");
            file.into_os_string().into_string().map_err(|_| refused())
        };
        found.into_iter().map(text).collect()
    }

    fn open(&self, source: &str, how: &HowToRead) -> io::Result<Box<dyn Feed>> {
        Ok(Box::new(WarcFeed::open(Path::new(source), how)?))
    }
}

fn is_archive_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".warc") || name.ends_with(".warc.gz")
}

/// Files of a directory by name, sorted.
fn list(dir: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() && path.file_name().and_then(|n| n.to_str()).is_some_and(&wanted) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // The last star that was met, and where in the name it began: only that one need ever be stretched.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

struct WarcFeed {
    path: PathBuf,
    how: HowToRead,
    bytes: u64,
    reader: WarcReader<File>,
    /// Bytes that are no record were met here, and nothing was read since.
    suspect: Option<u64>,
    /// What was dated last; stands in for a record without a date.
    at: Timestamp,
    any: bool,
}

/// What a record is.
enum Taken {
    Page(Box<Page>),
    Passed,
    Unusable(String),
    Damaged(WarcError),
}

/// Why there is no answer in a record; damage in a body is told by the record's end.
enum Wrong {
    Head(WarcError),
    Body,
    Answer(&'static str),
}

impl WarcFeed {
    fn open(path: &Path, how: &HowToRead) -> io::Result<WarcFeed> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes < how.from {
            let what = format!("it has {bytes} bytes, and was read up to byte {} before", how.from);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let reader = reader_at(file, how.from)?;
        Ok(WarcFeed {
            path: path.to_path_buf(),
            how: how.clone(),
            bytes,
            reader,
            suspect: None,
            at: Timestamp(0),
            any: how.from > 0,
        })
    }

    /// Goes on behind something that cannot be read, if there is a place to go on at.
    fn go_on_after(&mut self, offset: u64) -> io::Result<Option<u64>> {
        let found = find_member(File::open(&self.path)?, offset + 1)?;
        let at = found.unwrap_or(self.bytes);
        self.reader = reader_at(File::open(&self.path)?, at)?;
        Ok(found)
    }

    fn trouble(&self, what: &str) -> Item {
        Item::Trouble(format!("{}: {what}", self.path.display()))
    }
}

fn reader_at(mut file: File, offset: u64) -> io::Result<WarcReader<File>> {
    file.seek(SeekFrom::Start(offset))?;
    Ok(WarcReader::at(file, offset))
}

impl Feed for WarcFeed {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn next(&mut self, known: &mut Known) -> io::Result<Option<Item>> {
        loop {
            let error = match self.reader.next_record() {
                Ok(None) => match self.suspect.take() {
                    Some(offset) if self.go_on_after(offset)?.is_some() => continue,
                    _ if !self.any => {
                        self.any = true;
                        return Ok(Some(self.trouble("no record in it")));
                    }
                    _ => return Ok(None),
                },
                Ok(Some(record)) => {
                    (self.any, self.suspect) = (true, None);
                    let offset = record.offset;
                    match take(record, &self.how, &self.path, known, &mut self.at) {
                        Taken::Page(page) => return Ok(Some(Item::Page(page))),
                        Taken::Passed => return Ok(Some(Item::Passed)),
                        Taken::Unusable(why) => return Ok(Some(self.trouble(&format!("offset {offset}: {why}")))),
                        Taken::Damaged(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.any = true;
            let told = error.to_string();
            match error {
                WarcError::Io { source, .. } => return Err(source),
                WarcError::Corrupt { offset } | WarcError::Truncated { offset } => {
                    let went_on = match self.go_on_after(offset)? {
                        Some(at) => format!("; went on at offset {at}"),
                        None => String::new(),
                    };
                    return Ok(Some(self.trouble(&format!("{told}{went_on}"))));
                }
                WarcError::Garbage { offset, .. } => self.suspect = Some(offset),
                _ => {}
            }
            return Ok(Some(self.trouble(&told)));
        }
    }
}

/// Makes a page of a record, if it is one.
fn take(
    mut record: Record<'_, File>,
    how: &HowToRead,
    path: &Path,
    known: &mut Known,
    last_at: &mut Timestamp,
) -> Taken {
    let fields = std::mem::take(&mut record.fields);
    let kind = fields.kind().to_ascii_lowercase();
    if !matches!(&*kind, "response" | "revisit" | "resource") {
        return finish(record, Taken::Passed);
    }
    let Some(uri) = fields.target_uri() else { return finish(record, Taken::Unusable("no WARC-Target-URI".into())) };
    let url = match how.normalizer.normalize(&uri, None) {
        Ok(url) => url,
        // Look-ups of names (`dns:`), screenshots (`urn:`) and the like.
        Err(UrlError::Scheme(_)) => return finish(record, Taken::Passed),
        Err(e) => return finish(record, Taken::Unusable(format!("{uri:?}: {e}"))),
    };
    if let Some(at) = fields.get("WARC-Date").and_then(date) {
        *last_at = at;
    }
    let (offset, shared) = (record.offset, record.shares_member);
    let answer = match read_answer(&mut record, &fields, url.is_web(), how) {
        Ok(answer) => answer,
        Err(Wrong::Head(error)) => return Taken::Damaged(error),
        Err(Wrong::Body) => return finish(record, Taken::Unusable("a body that cannot be read".into())),
        Err(Wrong::Answer(why)) => return finish(record, Taken::Unusable(why.into())),
    };
    if let Err(error) = record.finish() {
        return Taken::Damaged(error);
    }
    let told = fields.get("WARC-Payload-Digest").filter(|d| !d.is_empty());
    let answer = if kind == "revisit" {
        match with_body(answer, &fields, told, known, how) {
            Ok(answer) => answer,
            Err(why) => return Taken::Unusable(why),
        }
    } else {
        if !shared {
            match told {
                Some(digest) => known.add(digest, path, offset),
                None => known.add(&Digest::of(&answer.body).to_string(), path, offset),
            }
        }
        answer
    };
    Taken::Page(Box::new(Page {
        url,
        at: *last_at,
        address: fields.get("WARC-IP-Address").and_then(|a| a.trim().parse().ok()),
        status: answer.status,
        headers: answer.headers,
        head: answer.head,
        body: answer.body,
        cut: answer.cut,
        http2: fields.list.iter().any(|(n, v)| n.eq_ignore_ascii_case("WARC-Protocol") && v.trim() == "h2"),
        offset: (!shared).then_some(offset),
        is_copy: kind == "revisit",
    }))
}

/// Passes over the rest of a record, which may be damaged.
fn finish(record: Record<'_, File>, taken: Taken) -> Taken {
    record.finish().map_or_else(Taken::Damaged, |_| taken)
}

/// What a record holds, as an answer.
struct Answer {
    status: u16,
    headers: HeaderMap,
    head: Vec<u8>,
    body: Vec<u8>,
    cut: Option<Truncated>,
}

fn read_answer(record: &mut Record<'_, File>, fields: &Fields, is_web: bool, how: &HowToRead) -> Result<Answer, Wrong> {
    let mut cut = match fields.get("WARC-Truncated").map(str::trim) {
        None | Some("") => None,
        Some("length") => Some(Truncated::Length),
        Some("time") => Some(Truncated::Time),
        Some(_) => Some(Truncated::Disconnect),
    };
    let mut answer = if fields.kind().eq_ignore_ascii_case("resource") || !is_web {
        let kind = fields.get("Content-Type").unwrap_or("application/octet-stream").to_owned();
        let head = if is_web { synth_head(200, [("Content-Type", kind.as_bytes())]) } else { Vec::new() };
        let headers = header_map(&[("content-type".to_owned(), kind)]);
        Answer { status: 200, headers, head, body: Vec::new(), cut: None }
    } else if fields.content_length() == Some(0) {
        Answer { status: 0, headers: HeaderMap::new(), head: Vec::new(), body: Vec::new(), cut: None }
    } else {
        let head = record.read_http_head(how.head_bytes_max).map_err(Wrong::Head)?;
        let head = head.ok_or(Wrong::Answer("a head beyond the bound"))?;
        let parsed = HttpHead::parse(&head);
        let status = parsed.status().filter(|_| parsed.first_line.starts_with("HTTP/"));
        let status = status.ok_or(Wrong::Answer("no HTTP status line"))?;
        Answer { status, headers: header_map(&parsed.headers), head, body: Vec::new(), cut: None }
    };
    let mut body = Vec::new();
    let max = how.body_bytes_max as u64;
    let mut limited = record.take(max + 1);
    limited.read_to_end(&mut body).map_err(|_| Wrong::Body)?;
    if body.len() as u64 > max {
        cut = cut.or(Some(Truncated::Length));
        body.truncate(max as usize);
    }
    let coding = answer.headers.get("transfer-encoding").map(|v| v.as_bytes().to_ascii_lowercase());
    if coding.is_some_and(|c| c.ends_with(b"chunked"))
        && let Some((plain, whole)) = without_chunks(&body)
    {
        body = plain;
        if !whole {
            cut = cut.or(Some(Truncated::Disconnect));
        }
    }
    (answer.body, answer.cut) = (body, cut);
    Ok(answer)
}

/// A revisit with the body of the record that it refers to.
fn with_body(
    mut answer: Answer,
    fields: &Fields,
    digest: Option<&str>,
    known: &Known,
    how: &HowToRead,
) -> Result<Answer, String> {
    let not_modified = fields.get("WARC-Profile").is_some_and(|p| p.contains("not-modified"));
    if not_modified || answer.status == 304 {
        answer.status = 304;
        answer.body.clear();
        return Ok(answer);
    }
    let elsewhere = || "a revisit of something that is not here".to_owned();
    let (digest, place) = digest.and_then(|d| Some((d, known.find(d)?))).ok_or_else(elsewhere)?;
    let original = read_original(&place.0, place.1, digest, how).ok_or_else(elsewhere)?;
    if answer.head.is_empty() {
        return Ok(original);
    }
    // The head is this visit's own; what it says of the body's coding is what the original says.
    (answer.body, answer.cut) = (original.body, original.cut);
    Ok(answer)
}

fn read_original(path: &Path, offset: u64, digest: &str, how: &HowToRead) -> Option<Answer> {
    let mut reader = reader_at(File::open(path).ok()?, offset).ok()?;
    let mut record = reader.next_record().ok()??;
    let fields = std::mem::take(&mut record.fields);
    let is_web = fields.target_uri().is_some_and(|uri| uri.starts_with("http"));
    let answer = read_answer(&mut record, &fields, is_web, how).ok()?;
    record.finish().ok()?;
    let own = fields.get("WARC-Payload-Digest").map_or_else(|| Digest::of(&answer.body).to_string(), str::to_owned);
    own.trim().eq_ignore_ascii_case(digest.trim()).then_some(answer)
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.trim().as_bytes()))
        {
            map.append(name, value);
        }
    }
    map
}

/// A body without chunks, and whether its end was there. `None` if it is not chunked, whatever its head says: some writers undo the
/// coding and leave the header.
fn without_chunks(body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut plain = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let line_end = rest.iter().position(|b| *b == b'\n');
        let Some(line_end) = line_end else {
            // Cut in the middle of a size, unless this is the first.
            return (rest.len() < body.len()).then_some((plain, false));
        };
        let line = rest[..line_end].strip_suffix(b"\r").unwrap_or(&rest[..line_end]);
        let size = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let size = std::str::from_utf8(size).ok().filter(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit()));
        let size = usize::from_str_radix(size?, 16).ok()?;
        rest = &rest[line_end + 1..];
        if size == 0 {
            return Some((plain, true));
        }
        if size >= rest.len() {
            plain.extend_from_slice(&rest[..size.min(rest.len())]);
            return Some((plain, false));
        }
        plain.extend_from_slice(&rest[..size]);
        rest = &rest[size..];
        rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n"))?;
    }
}

/// A date such as `2024-05-06T07:08:09.123Z`; what is missing at its end is the beginning of what is there.
fn date(text: &str) -> Option<Timestamp> {
    let digits: Vec<u64> = text.bytes().filter(u8::is_ascii_digit).map(|b| u64::from(b - b'0')).collect();
    let number = |from: usize, len: usize, or: u64| match digits.get(from..from + len) {
        Some(digits) => digits.iter().fold(0, |n, d| n * 10 + d),
        None => or,
    };
    if digits.len() < 4 {
        return None;
    }
    let (year, month, day) = (number(0, 4, 0), number(4, 2, 1), number(6, 2, 1));
    let (hour, minute, second) = (number(8, 2, 0), number(10, 2, 0), number(12, 2, 0));
    let milliseconds = match digits.len() {
        15 => number(14, 1, 0) * 100,
        16 => number(14, 2, 0) * 10,
        _ => number(14, 3, 0),
    };
    let valid = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if !valid || second > 60 {
        return None;
    }
    // Days since 1970 of a date in the Gregorian calendar, counted from March so that the leap day comes last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    Some(Timestamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(date(text).map(|t| t.to_string()).as_deref(), expected, "{text}");
        };
        check("2024-02-29T23:59:58.25Z", Some("2024-02-29T23:59:58.250Z"));
        check("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00.000Z"));
        check("20210304050607", Some("2021-03-04T05:06:07.000Z"));
        check("2016-01", Some("2016-01-01T00:00:00.000Z"));
        check("2000-12-31T10:00:00.123456789Z", Some("2000-12-31T10:00:00.123Z"));
        check("1969-12-31T00:00:00Z", None);
        check("2024-13-01T00:00:00Z", None);
        check("yesterday", None);
    }

    #[test]
    fn chunks() {
        let check = |body: &str, expected: Option<(&str, bool)>| {
            let found = without_chunks(body.as_bytes());
            let found = found.as_ref().map(|(plain, whole)| (std::str::from_utf8(plain).expect("text"), *whole));
            assert_eq!(found, expected, "{body:?}");
        };
        check("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", Some(("hello world", true)));
        check("5\nhello\n0\n\n", Some(("hello", true)));
        check("0\r\n\r\n", Some(("", true)));
        check("a\r\nhello", Some(("hello", false)));
        check("5\r\nhello\r\n5", Some(("hello", false)));
        check("<html>\nnot chunked", None);
        check("face\nis a word", Some(("is a word", false)));
        check("", None);
        check("ffffffffffffffffff\r\nx", None);
    }

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected| {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        };
        check("*.warc.gz", "a.warc.gz", true);
        check("a*b*c", "axxbyybzc", true);
        check("a*b*c", "axxbyybz", false);
        check("*", "", true);
        check("a", "ab", false);
        check(&"*a".repeat(40), &"a".repeat(39), false);
    }
}
