//! XML as the web writes it, for sitemaps and feeds: a piece at a time, under bounds, no entity ever defined.
//!
//! `source.rs` undoes gzip and the encoding and counts; `tokens.rs` cuts the text into tags and text. What the tags mean is known to
//! their readers: [`crate::sitemap`] and [`crate::feed`].
//!
//! The tokenizer is our own because it reads files as they are, not as XML should be (a bare `&`, tags that do not match), counts
//! what it reads while it reads it, and keeps no attribute but those its reader names: there is no namespace to resolve and no
//! duplicate to look for, which is where general parsers were slow or large.

mod source;
mod tokens;

pub(crate) use source::Source;
pub(crate) use tokens::{Token, Tokens};

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) offset: u64,
}

/// Prefix and local name.
pub(crate) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b':', name) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (&[], name),
    }
}

/// A name as a number, for the list of open elements.
pub(crate) fn fingerprint(name: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(name)
}
