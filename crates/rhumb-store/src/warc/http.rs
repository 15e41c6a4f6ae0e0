//! HTTP heads inside records: read, made, and put right.
//!
//! The fetcher hands over the head as it came over the wire and a body whose transfer coding is gone. Stored side by side
//! they would contradict each other: a reader that believes `Transfer-Encoding: chunked` takes the text for chunk sizes.
//! `clean_head` therefore renames what no longer holds, as StormCrawler and Common Crawl do: `X-Crawler-Transfer-Encoding`
//! keeps the old value, and `Content-Length` tells the length stored. Content-Encoding stays, for the body is kept encoded.

use super::fields::parse_lines;
use super::{is_blank, is_space, line_text};

/// What is put before the name of a field that was true on the wire and is not true of the bytes stored.
pub const RENAME_PREFIX: &str = "X-Crawler-";

/// A stored HTTP head, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// The first line: status line or request line.
    pub first_line: String,
    /// Name and value of each header, in order.
    pub headers: Vec<(String, String)>,
    /// Length of the head with its closing empty line: where the payload begins.
    pub payload_offset: usize,
}

impl HttpHead {
    /// Takes the head apart that `block` begins with. A block without an empty line is all head.
    pub fn parse(block: &[u8]) -> HttpHead {
        let payload_offset = head_length(block);
        let mut lines = block[..payload_offset].split(|&b| b == b'\n').map(line_text);
        let first_line = lines.next().unwrap_or_default().trim_end_matches(is_space).to_owned();
        let headers = if first_line.is_empty() { Vec::new() } else { parse_lines(lines) };
        HttpHead { first_line, headers, payload_offset }
    }

    /// The first header of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The second word of the first line: for a response the status code as written.
    pub fn status_text(&self) -> &str {
        let rest = self.first_line.split_once(' ').map_or("", |(_, rest)| rest.trim_matches(is_space));
        rest.split(' ').next().unwrap_or("")
    }

    /// The status code, where it is a number of three digits.
    pub fn status(&self) -> Option<u16> {
        let text = self.status_text();
        if text.len() == 3 { text.parse().ok() } else { None }
    }

    /// Neither a first line nor a header: readers treat such a head as absent.
    pub fn is_empty(&self) -> bool {
        self.first_line.is_empty() && self.headers.is_empty()
    }
}

/// Length of the head a block begins with, its closing empty line included.
pub fn head_length(block: &[u8]) -> usize {
    let mut at = 0;
    for line in block.split_inclusive(|&b| b == b'\n') {
        at += line.len();
        if is_blank(line) {
            break;
        }
    }
    at
}

/// Makes an HTTP/1.1 head of a status and headers that came another way (HTTP/2 has no head in text).
///
/// Readers of archives know `HTTP/1.0` and `HTTP/1.1` only; the true protocol goes into WARC-Protocol.
pub fn synth_head<'a>(status: u16, headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason(status)).as_bytes());
    let printable = |b: u8| if matches!(b, b'\r' | b'\n' | 0) { b' ' } else { b };
    for (name, value) in headers.into_iter().filter(|(name, _)| !name.is_empty() && !name.starts_with(':')) {
        head.extend(name.bytes().map(printable));
        head.extend_from_slice(b": ");
        head.extend(value.iter().copied().map(printable));
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Appends `head` to `out` so that it tells the truth of a body of `body_len` bytes stored without transfer coding, and
/// ends in exactly one empty line. `None` says that the body is not stored beside it (revisit, answer to HEAD): then
/// Content-Length stays. Returns false, and appends nothing, where no line is left.
pub(crate) fn clean_head(head: &[u8], body_len: Option<u64>, out: &mut Vec<u8>) -> bool {
    let mut lines = head.split_inclusive(|&b| b == b'\n').filter(|line| !is_blank(line));
    let Some(first) = lines.next() else { return false };
    push_line(first, out);
    // A 304 may state the length of the body it does not send; 1xx and 204 may not, and servers of replays choke on it.
    let bodiless = HttpHead::parse(first).status() == Some(304) && body_len == Some(0);
    let body_len = if bodiless { None } else { body_len };
    let (mut renamed, mut length_told) = (false, false);
    for line in lines {
        match line[0] {
            b'T' | b't' if named(line, "Transfer-Encoding").is_some() => {
                out.extend_from_slice(RENAME_PREFIX.as_bytes());
                renamed = true;
            }
            b'C' | b'c' => {
                if let (Some(value), Some(stored)) = (named(line, "Content-Length"), body_len) {
                    if !length_told && std::str::from_utf8(value).is_ok_and(|v| v.trim().parse() == Ok(stored)) {
                        length_told = true;
                    } else {
                        out.extend_from_slice(RENAME_PREFIX.as_bytes());
                        renamed = true;
                    }
                }
            }
            _ => {}
        }
        push_line(line, out);
    }
    if let (true, false, Some(stored)) = (renamed, length_told, body_len) {
        out.extend_from_slice(format!("Content-Length: {stored}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    true
}

/// A line cut off before its end gets one, lest the empty line that follows become part of it.
fn push_line(line: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\r\n");
    }
}

/// The value of a header line, if the header has this name.
fn named<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let colon = line.iter().position(|&b| b == b':')?;
    line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes()).then(|| &line[colon + 1..])
}

/// The usual words for a status; any would do.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_tell_the_truth_of_what_is_stored() {
        let check = |head: &str, body_len: Option<u64>, expected: &str| {
            let mut out = Vec::new();
            assert!(clean_head(head.as_bytes(), body_len, &mut out));
            assert_eq!(String::from_utf8_lossy(&out), expected);
        };
        let ok = "HTTP/1.1 200 OK\r\n";
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Some(5), &format!("{ok}Content-Length: 5\r\n\r\n"));
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip,\r\n chunked\r\nA: b\r\n\r\n",
            Some(7),
            &format!("{ok}X-Crawler-transfer-encoding: gzip,\r\n chunked\r\nA: b\r\nContent-Length: 7\r\n\r\n"),
        );
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
            Some(20),
            &format!("{ok}X-Crawler-Content-Length: 500\r\nContent-Length: 20\r\n\r\n"),
        );
        check("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", None, &format!("{ok}Content-Length: 500\r\n\r\n"));
        check(
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
            Some(0),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
        );
        check(
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
            Some(0),
            "HTTP/1.1 204 No Content\r\nX-Crawler-Content-Length: 5\r\nContent-Length: 0\r\n\r\n",
        );
        // Lines of white space, which other readers take for the end of the head; a head cut short; LF alone.
        check("\r\nHTTP/1.1 200 OK\r\nA: b\r\n \t\r\nC: d", Some(1), &format!("{ok}A: b\r\nC: d\r\n\r\n"));
        check("HTTP/1.0 200 OK\nA: b\n\n", Some(1), "HTTP/1.0 200 OK\nA: b\n\r\n");
        assert!(!clean_head(b" \r\n\r\n", Some(1), &mut Vec::new()));
    }

    #[test]
    fn heads_taken_apart() {
        let head = HttpHead::parse(b"HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nX: \xe9\r\n\r\nbody");
        assert_eq!((head.status(), head.get("content-type"), head.payload_offset), (Some(404), Some("a/b"), 51));
        assert_eq!(head.get("x"), Some("é"));
        let check = |block: &[u8], status: &str, offset: usize| {
            let head = HttpHead::parse(block);
            assert_eq!((head.status_text(), head.payload_offset), (status, offset), "{block:?}");
        };
        check(b"", "", 0);
        check(b"\r\nHTTP/1.1 200 OK\r\n\r\n", "", 2);
        check(b"ICY 200 fine\n\nx", "200", 14);
        check(b"HTTP/1.1\r\n\r\n", "", 12);
        check(b"HTTP/1.1 200 OK\r\nA: b", "200", 21);
    }

    #[test]
    fn made_heads_stay_in_their_lines() {
        let head = synth_head(200, [(":status", &b"200"[..]), ("a", b"b\r\nc: d"), ("e", b"f")]);
        assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 200 OK\r\na: b  c: d\r\ne: f\r\n\r\n");
    }
}
