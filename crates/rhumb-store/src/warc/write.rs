//! Makes records: each function appends one gzip member to a vector and says where in it.
//!
//! What a page costs is one pass of `deflate` and one of SHA-1 over the body; `small` packs the rest. The payload digest is
//! that pass, and a caller that has it already (to recognise a known payload) hands it in. WARC-Block-Digest of a response
//! would be a second pass over the same bytes for the sake of the head alone, whose bytes the member's CRC-32 guards
//! anyway: responses go without unless `block_digests` is set; all other records, being small, carry it.
//!
//! Record ids come from the caller, so that the same crawl replayed writes the same bytes.

use std::io::Write as _;
use std::net::IpAddr;

use data_encoding::BASE32;
use libdeflater::{CompressionLvl, Compressor};
use sha1::{Digest as _, Sha1};

use super::deflate::{self, Deflater};
use super::http::clean_head;
use super::{Span, WarcError, small};
use crate::Timestamp;

/// A SHA-1, written `sha1:` and base 32 as archives have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 20]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha1::digest(bytes).into())
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [0; 32];
        BASE32.encode_mut(&self.0, &mut text);
        f.write_str("sha1:")?;
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The name of a record: a UUID of version 4 in form, of the caller's 128 bits in substance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(u128);

impl RecordId {
    /// Takes 122 of the bits; the other six say "version 4".
    pub fn from_bits(bits: u128) -> Self {
        RecordId(bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62))
    }
}

/// `<urn:uuid:…>`, as WARC-Record-ID has it.
impl std::fmt::Display for RecordId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let v = self.0;
        let (a, b, c, d) = (v >> 96, v >> 80 & 0xffff, v >> 64 & 0xffff, v >> 48 & 0xffff);
        write!(f, "<urn:uuid:{a:08x}-{b:04x}-{c:04x}-{d:04x}-{:012x}>", v & 0xffff_ffff_ffff)
    }
}

/// An endless series of record ids, different for every seed. A seed used twice repeats its ids, so each archive file
/// takes its own: its name and the time it was begun, hashed, will do.
#[derive(Clone, Debug)]
pub struct RecordIds {
    seed: u128,
    count: u64,
}

impl RecordIds {
    /// The series of this seed, from its `count`-th id on.
    pub fn new(seed: u128, count: u64) -> Self {
        RecordIds { seed, count }
    }

    /// The next id.
    pub fn take(&mut self) -> RecordId {
        let (high, low) = ((self.seed >> 64) as u64, self.seed as u64);
        self.count = self.count.wrapping_add(1);
        let first = mix(high ^ mix(self.count));
        let second = mix(low ^ mix(first ^ self.count));
        RecordId::from_bits(u128::from(first) << 64 | u128::from(second))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What the records of one exchange have in common.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The URL asked for, of scheme http or https if there is a request or a response; bytes that do not belong in a URL are percent-encoded.
    pub uri: &'a str,
    /// When the request was sent.
    pub date: Timestamp,
    /// The address that answered.
    pub ip: Option<IpAddr>,
    /// Protocols spoken, such as `h2` or `tls/1.3`: one WARC-Protocol each. Empty for plain HTTP/1.1.
    pub protocols: &'a [&'a str],
}

/// Why a body is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// Longer than we wanted.
    Length,
    /// Took longer than we waited.
    Time,
    /// The other side hung up.
    Disconnect,
}

impl Truncated {
    fn word(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
        }
    }
}

/// A response as it goes into the archive.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The head as it came, or `synth_head`'s. What no longer holds is renamed, see `http`.
    pub head: &'a [u8],
    /// The body without transfer coding, with content coding.
    pub body: &'a [u8],
    /// `Digest::of(body)`, where the caller has it already.
    pub digest: Option<Digest>,
    /// Set where the body is not whole.
    pub truncated: Option<Truncated>,
    /// What the body was found to be, whatever Content-Type says.
    pub identified_type: Option<&'a str>,
}

/// Why no body is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The body came and is the one of an earlier record; its digest.
    IdenticalPayload(Digest),
    /// The server answered 304; the digest of the body it stands for, where known.
    NotModified(Option<Digest>),
}

/// A visit that brought nothing new.
#[derive(Clone, Copy, Debug)]
pub struct Revisit<'a> {
    /// The head that came this time.
    pub head: &'a [u8],
    /// What was recognised.
    pub profile: Profile,
    /// URL of the earlier record.
    pub refers_to_uri: &'a str,
    /// WARC-Date of the earlier record.
    pub refers_to_date: Timestamp,
    /// Id of the earlier record, where remembered.
    pub refers_to: Option<RecordId>,
}

/// What the crawl knows of a visit besides the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata<'a> {
    /// The page that led here.
    pub via: Option<&'a str>,
    /// How many links from a seed.
    pub depth: Option<u32>,
    /// From request to last byte.
    pub fetch_ms: Option<u64>,
    /// Links found on the page.
    pub outlinks: &'a [&'a str],
    /// Anything else, name and value.
    pub extra: &'a [(&'a str, &'a str)],
}

/// Makes records; keeps the compressor and its buffer between them. One per thread.
pub struct RecordWriter {
    level: CompressionLvl,
    /// For what is too long to be made the quick way; most writers never meet such a body.
    compressor: Option<Compressor>,
    deflater: Deflater,
    /// The record before compression.
    record: Vec<u8>,
    /// The block, where it is made here rather than handed in.
    block: Vec<u8>,
    block_digests: bool,
    /// Level 1 was asked for, so records go the quick way while they are not too long for it.
    quick: bool,
    /// Nothing is compressed.
    stored: bool,
}

impl Default for RecordWriter {
    fn default() -> Self {
        RecordWriter::new(1)
    }
}

impl RecordWriter {
    /// A writer of this compression level, brought into 0 (not at all), 1 (quick) to 12 (small).
    pub fn new(level: i32) -> Self {
        RecordWriter {
            level: CompressionLvl::new(level.clamp(1, 12)).unwrap_or_default(),
            compressor: None,
            deflater: Deflater::new(),
            record: Vec::new(),
            block: Vec::new(),
            block_digests: false,
            quick: level == 1,
            stored: level <= 0,
        }
    }

    /// Whether responses carry WARC-Block-Digest too, at the price of hashing each body twice.
    #[must_use]
    pub fn block_digests(mut self, on: bool) -> Self {
        self.block_digests = on;
        self
    }

    /// The record a file begins with: who made it and how. `fields` such as `software`, `format`, `http-header-user-agent`.
    pub fn warcinfo(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        date: Timestamp,
        file_name: &str,
        fields: &[(&str, &str)],
    ) -> Result<Span, WarcError> {
        self.block.clear();
        for (name, value) in fields {
            push_field(&mut self.block, name, value)?;
        }
        self.begin("warcinfo", id, date);
        push_field(&mut self.record, "WARC-Filename", file_name)?;
        self.finish_fields(out)
    }

    /// The request as sent: head and (seldom) body.
    pub fn request(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        concurrent_to: Option<RecordId>,
        head: &[u8],
        body: &[u8],
    ) -> Result<Span, WarcError> {
        self.block.clear();
        if !clean_head(head, None, &mut self.block) {
            return Err(WarcError::NoHead);
        }
        let head_length = self.block.len();
        self.block.extend_from_slice(body);
        self.begin_exchange("request", id, capture)?;
        push_id(&mut self.record, "WARC-Concurrent-To", concurrent_to);
        put(&mut self.record, format_args!("WARC-Block-Digest: {}\r\n", Digest::of(&self.block)));
        put(&mut self.record, format_args!("WARC-Payload-Digest: {}\r\n", Digest::of(&self.block[head_length..])));
        self.finish("application/http; msgtype=request", None, out)
    }

    /// The response, and the digest of its payload.
    pub fn response(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        response: &Response<'_>,
    ) -> Result<(Span, Digest), WarcError> {
        self.block.clear();
        if !clean_head(response.head, Some(response.body.len() as u64), &mut self.block) {
            return Err(WarcError::NoHead);
        }
        let digest = response.digest.unwrap_or_else(|| Digest::of(response.body));
        self.begin_exchange("response", id, capture)?;
        put(&mut self.record, format_args!("WARC-Payload-Digest: {digest}\r\n"));
        if self.block_digests {
            let block = Sha1::new().chain_update(&self.block).chain_update(response.body);
            put(&mut self.record, format_args!("WARC-Block-Digest: {}\r\n", Digest(block.finalize().into())));
        }
        if let Some(why) = response.truncated {
            put(&mut self.record, format_args!("WARC-Truncated: {}\r\n", why.word()));
        }
        if let Some(kind) = response.identified_type {
            push_field(&mut self.record, "WARC-Identified-Payload-Type", kind)?;
        }
        Ok((self.finish("application/http; msgtype=response", Some(response.body), out)?, digest))
    }

    /// What was not had over HTTP: the thing itself, without a head.
    #[allow(clippy::too_many_arguments)] // Each is one field of the record.
    pub fn resource(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        content_type: &str,
        body: &[u8],
        digest: Digest,
        truncated: Option<Truncated>,
    ) -> Result<Span, WarcError> {
        self.block.clear();
        if content_type.bytes().any(|b| b.is_ascii_control()) {
            return Err(WarcError::BadField { name: "Content-Type".to_string() });
        }
        self.begin_exchange("resource", id, capture)?;
        put(&mut self.record, format_args!("WARC-Payload-Digest: {digest}\r\nWARC-Block-Digest: {digest}\r\n"));
        if let Some(why) = truncated {
            put(&mut self.record, format_args!("WARC-Truncated: {}\r\n", why.word()));
        }
        self.finish(content_type, Some(body), out)
    }

    /// A visit that brought what an earlier record holds.
    pub fn revisit(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        revisit: &Revisit<'_>,
    ) -> Result<Span, WarcError> {
        self.block.clear();
        let is_http = capture.uri.starts_with("http:") || capture.uri.starts_with("https:");
        if is_http && !clean_head(revisit.head, None, &mut self.block) {
            return Err(WarcError::NoHead);
        }
        self.begin_exchange("revisit", id, capture)?;
        let (profile, digest) = match revisit.profile {
            Profile::IdenticalPayload(digest) => ("identical-payload-digest", Some(digest)),
            Profile::NotModified(digest) => ("server-not-modified", digest),
        };
        put(&mut self.record, format_args!("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/{profile}\r\n"));
        push_uri(&mut self.record, "WARC-Refers-To-Target-URI", revisit.refers_to_uri);
        put(&mut self.record, format_args!("WARC-Refers-To-Date: {}\r\n", revisit.refers_to_date));
        push_id(&mut self.record, "WARC-Refers-To", revisit.refers_to);
        if let Some(digest) = digest {
            put(&mut self.record, format_args!("WARC-Payload-Digest: {digest}\r\n"));
        }
        put(&mut self.record, format_args!("WARC-Block-Digest: {}\r\n", Digest::of(&self.block)));
        self.finish("application/http; msgtype=response", None, out)
    }

    /// What the crawl knows of a visit, beside the record `concurrent_to`.
    pub fn metadata(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        concurrent_to: Option<RecordId>,
        metadata: &Metadata<'_>,
    ) -> Result<Span, WarcError> {
        self.block.clear();
        if let Some(via) = metadata.via {
            push_uri(&mut self.block, "via", via);
        }
        if let Some(depth) = metadata.depth {
            put(&mut self.block, format_args!("depth: {depth}\r\n"));
        }
        if let Some(ms) = metadata.fetch_ms {
            put(&mut self.block, format_args!("fetchTimeMs: {ms}\r\n"));
        }
        for (name, value) in metadata.extra {
            push_field(&mut self.block, name, value)?;
        }
        for link in metadata.outlinks {
            push_uri(&mut self.block, "outlink", link);
        }
        self.begin("metadata", id, capture.date);
        push_uri(&mut self.record, "WARC-Target-URI", capture.uri);
        push_id(&mut self.record, "WARC-Concurrent-To", concurrent_to);
        self.finish_fields(out)
    }

    /// The text of a page, made from the record `refers_to` (`<urn:uuid:…>`) of the same archive. `languages` as ISO 639-3 names
    /// them, several with commas between.
    pub fn conversion(
        &mut self,
        out: &mut Vec<u8>,
        id: RecordId,
        capture: &Capture<'_>,
        refers_to: Option<&str>,
        languages: Option<&str>,
        text: &str,
    ) -> Result<Span, WarcError> {
        self.block.clear();
        self.block.extend_from_slice(text.as_bytes());
        self.begin("conversion", id, capture.date);
        push_uri(&mut self.record, "WARC-Target-URI", capture.uri);
        if let Some(refers_to) = refers_to {
            push_field(&mut self.record, "WARC-Refers-To", refers_to)?;
        }
        if let Some(languages) = languages {
            push_field(&mut self.record, "WARC-Identified-Content-Language", languages)?;
        }
        put(&mut self.record, format_args!("WARC-Block-Digest: {}\r\n", Digest::of(&self.block)));
        self.finish("text/plain", None, out)
    }

    fn begin(&mut self, kind: &str, id: RecordId, date: Timestamp) {
        self.record.clear();
        let head = format_args!("WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\n");
        put(&mut self.record, head);
    }

    fn begin_exchange(&mut self, kind: &str, id: RecordId, capture: &Capture<'_>) -> Result<(), WarcError> {
        // Readers look for an HTTP head under these schemes only, and would take ours for payload under another.
        let is_http = capture.uri.starts_with("http:") || capture.uri.starts_with("https:");
        if !is_http && matches!(kind, "request" | "response") {
            return Err(WarcError::BadField { name: "WARC-Target-URI".to_owned() });
        }
        self.begin(kind, id, capture.date);
        push_uri(&mut self.record, "WARC-Target-URI", capture.uri);
        if let Some(ip) = capture.ip {
            put(&mut self.record, format_args!("WARC-IP-Address: {ip}\r\n"));
        }
        capture.protocols.iter().try_for_each(|protocol| push_field(&mut self.record, "WARC-Protocol", protocol))
    }

    fn finish_fields(&mut self, out: &mut Vec<u8>) -> Result<Span, WarcError> {
        put(&mut self.record, format_args!("WARC-Block-Digest: {}\r\n", Digest::of(&self.block)));
        self.finish("application/warc-fields", None, out)
    }

    /// Closes the header, adds the block and `tail` after it, and compresses the whole into `out`.
    fn finish(&mut self, content_type: &str, tail: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Span, WarcError> {
        let tail = tail.unwrap_or_default();
        let length = self.block.len() + tail.len();
        self.record.reserve(length + 128);
        put(&mut self.record, format_args!("Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"));
        self.record.extend_from_slice(&self.block);
        self.record.extend_from_slice(tail);
        self.record.extend_from_slice(b"\r\n\r\n");
        let offset = out.len();
        let fits = if self.stored {
            deflate::stored_into(&self.record, out);
            true
        } else if self.quick && self.record.len() <= small::BYTES_MAX {
            small::gzip_into(&self.record, out);
            true
        } else if self.quick && (self.record.len() <= deflate::BYTES_MAX || deflate::is_dense(&self.record)) {
            self.deflater.gzip_into(&self.record, out);
            true
        } else {
            let compressor = self.compressor.get_or_insert_with(|| Compressor::new(self.level));
            out.resize(offset + compressor.gzip_compress_bound(self.record.len()), 0);
            let length = compressor.gzip_compress(&self.record, &mut out[offset..]);
            out.truncate(offset + length.as_ref().map_or(0, |&length| length));
            length.is_ok()
        };
        // One body of many megabytes should not be kept in memory by every writer for ever.
        self.record.clear();
        self.record.shrink_to(KEEP_BYTES);
        self.block.shrink_to(KEEP_BYTES);
        if !fits {
            return Err(WarcError::Compress);
        }
        Ok(Span { offset: offset as u64, length: (out.len() - offset) as u64 })
    }
}

/// How much buffer a writer keeps between records.
const KEEP_BYTES: usize = 1 << 20;

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

fn push_id(out: &mut Vec<u8>, name: &str, id: Option<RecordId>) {
    if let Some(id) = id {
        put(out, format_args!("{name}: {id}\r\n"));
    }
}

/// A field whose value is ours or the user's: a control character in it is refused rather than guessed at.
fn push_field(out: &mut Vec<u8>, name: &str, value: &str) -> Result<(), WarcError> {
    let name_fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    if !name_fits || value.chars().any(char::is_control) {
        return Err(WarcError::BadField { name: name.escape_default().to_string() });
    }
    put(out, format_args!("{name}: {value}\r\n"));
    Ok(())
}

/// A field whose value is a URL from the web: whatever is not visible ASCII is percent-encoded.
fn push_uri(out: &mut Vec<u8>, name: &str, uri: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    if uri.bytes().all(|b| b.is_ascii_graphic()) {
        out.extend_from_slice(uri.as_bytes());
    } else {
        for b in uri.bytes() {
            if b.is_ascii_graphic() {
                out.push(b);
            } else {
                put(out, format_args!("%{b:02X}"));
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}
