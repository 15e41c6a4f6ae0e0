//! The page archive: WARC 1.1 records, one gzip member each, written as bytes and read as a stream.
//!
//! A visit becomes up to three records (request, response or revisit, metadata) which `write` appends to a byte vector;
//! whoever owns the file appends that vector and so knows every offset. No file is opened in this chapter.
//!
//! The invariants kept here:
//!
//! * what `write` makes, `warcio check` passes whole and `cdxj-indexer` indexes to the lines of `cdxj`;
//! * a field taken from the web can never start a new line in a record header;
//! * `read` holds a bounded amount of memory whatever the file says of itself, and names the offset of every trouble.
//!
//! Read `write.rs` for what a record holds (`deflate.rs` packs pages, `small.rs` what is short), `fields.rs` and `http.rs` for its two kinds of head, `source.rs` then `read.rs`
//! for the way back (`seek.rs` finds it again behind damage), `check.rs` for what is done with it (`check`, `ls`, `whole_prefix`), and `cdxj.rs` with `surt.rs` for
//! the index. The bytes are described in `docs/formats/archive.md`.

pub mod cdxj;
pub mod check;
mod deflate;
mod fields;
pub mod http;
mod idn;
pub mod read;
mod seek;
mod small;
mod source;
pub mod surt;
pub mod write;

use std::fmt;
use std::io;

pub use cdxj::CdxEntry;
pub use check::{CheckReport, Problem, Row, check, ls, whole_prefix};
pub use fields::Fields;
pub use read::{Record, WarcReader};
pub use seek::find_member;
pub use surt::surt;
pub use write::{Capture, Digest, Metadata, Profile, RecordId, RecordIds, RecordWriter, Response, Revisit, Truncated};

/// Where a record lies: bytes before it and bytes it takes, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bytes before the record (in the vector written to, or in the file read).
    pub offset: u64,
    /// Bytes the record takes; for gzip the whole member.
    pub length: u64,
}

impl Span {
    /// The first byte after the record.
    pub fn end(self) -> u64 {
        self.offset + self.length
    }
}

/// What can go wrong between records and bytes. Offsets count bytes of the file as stored.
#[derive(Debug, thiserror::Error)]
pub enum WarcError {
    /// The underlying reader failed.
    #[error("read archive at offset {offset}: {source}")]
    Io {
        /// Where the read began.
        offset: u64,
        /// What the reader said.
        source: io::Error,
    },
    /// The file ends inside a record: a torn tail.
    #[error("offset {offset}: the file ends inside this record (torn tail)")]
    Truncated {
        /// Where the unfinished record begins.
        offset: u64,
    },
    /// The gzip data cannot be inflated, or its checksum is wrong.
    #[error("offset {offset}: damaged gzip member")]
    Corrupt {
        /// Where the member begins.
        offset: u64,
    },
    /// Bytes that are neither a record nor the blank lines between two.
    #[error("offset {offset}: expected a record, found {found:?}")]
    Garbage {
        /// Where the record should have begun; for gzip the offset of the member.
        offset: u64,
        /// The first bytes found there.
        found: String,
    },
    /// A record header that cannot be used.
    #[error("offset {offset}: {what}")]
    BadHeader {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The block is shorter than Content-Length says, though the file goes on.
    #[error("offset {offset}: {missing} bytes fewer than Content-Length says")]
    ShortBlock {
        /// Where the record begins.
        offset: u64,
        /// How many bytes are missing.
        missing: u64,
    },
    /// Several records in one gzip member: readable, but no record can be reached by its offset.
    #[error("offset {offset}: several records in one gzip member; recompress the file to index it")]
    SharedMember {
        /// Where the member begins.
        offset: u64,
    },
    /// A field handed to the writer would break the record header.
    #[error("field {name} holds what a record header cannot")]
    BadField {
        /// The field's name.
        name: String,
    },
    /// A response or request without an HTTP head.
    #[error("no HTTP head to archive")]
    NoHead,
    /// The compressor refused its input.
    #[error("compress record")]
    Compress,
}

impl WarcError {
    /// Whether reading can go on with the next record.
    pub fn is_passable(&self) -> bool {
        matches!(
            self,
            WarcError::Garbage { .. }
                | WarcError::BadHeader { .. }
                | WarcError::ShortBlock { .. }
                | WarcError::SharedMember { .. }
        )
    }

    /// The offset the trouble is at, where reading met it.
    pub fn offset(&self) -> Option<u64> {
        match self {
            WarcError::Io { offset, .. }
            | WarcError::Truncated { offset }
            | WarcError::Corrupt { offset }
            | WarcError::Garbage { offset, .. }
            | WarcError::BadHeader { offset, .. }
            | WarcError::ShortBlock { offset, .. }
            | WarcError::SharedMember { offset } => Some(*offset),
            WarcError::BadField { .. } | WarcError::NoHead | WarcError::Compress => None,
        }
    }
}

/// Bytes of a header line as text: UTF-8 where it is UTF-8, else Latin-1, so that nothing is lost.
pub(crate) fn line_text(line: &[u8]) -> String {
    match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.iter().map(|&b| char::from(b)).collect(),
    }
}

/// White space as the common readers of archives trim it: Unicode's, and the four ASCII separators.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Whether a head ends at this line: other readers trim lines before they look, so white space alone counts as empty.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    match line {
        [] | b"\n" | b"\r\n" => true,
        [first, ..] if first.is_ascii_graphic() => false,
        _ => line_text(line).chars().all(is_space),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.length)
    }
}
