//! Sitemaps: the URLs that a host says it has. XML (urlset and sitemapindex), plain text, feeds; gzip or not.
//!
//! Invariant: whatever the input, reading ends, takes time linear in the bytes read and memory within [`SitemapLimits`], and never
//! panics. Nothing is fetched, expanded or defined while reading: a document type declaration ends it, so that there are no entities
//! but the five of XML and characters by number. What was read before trouble is kept, and every trouble has a [`Trouble`] name.
//!
//! The way of the bytes: `crate::xml` undoes gzip and the encoding, a piece at a time, and cuts the text into tags and text; `walk.rs`
//! knows what the tags mean; `fields.rs` judges what an entry says about itself. Read `walk.rs` first. Feeds are read by
//! [`crate::feed`]. `level.rs` is about another question: how many sitemaps a crawl follows.

mod fields;
mod hint;
mod level;
mod walk;

use std::fmt;
use std::io::Read;

use serde::Serialize;

pub use hint::{Before, Hint, Trust};
pub use level::{SITEMAPS_MAX, SitemapLevel};
pub(crate) use walk::feed as read_feed;

use crate::xml::{Place, Source};

/// How much a sitemap may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    /// Bytes read after gzip and encoding are undone; the protocol allows 50 MiB.
    pub decoded_bytes_max: u64,
    /// Most bytes out of gzip for one byte in, beyond the first megabyte.
    pub ratio_max: u64,
    /// Entries kept; the protocol allows 50,000.
    pub urls_max: usize,
    /// Elements inside each other.
    pub depth_max: usize,
    /// Attributes of one tag.
    pub attributes_max: usize,
    /// Longest name of an element or attribute.
    pub name_bytes_max: usize,
    /// Longest address.
    pub loc_bytes_max: usize,
    /// Problems told; the rest are counted.
    pub problems_max: usize,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        SitemapLimits {
            decoded_bytes_max: 50 << 20,
            ratio_max: 250,
            urls_max: 50_000,
            depth_max: 32,
            attributes_max: 64,
            name_bytes_max: 256,
            loc_bytes_max: 4096,
            problems_max: 100,
        }
    }
}

/// What kind of sitemap it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SitemapKind {
    /// Pages, in XML.
    Urlset,
    /// Further sitemaps.
    Index,
    /// One address a line.
    Text,
    /// RSS, Atom or JSON Feed.
    Feed,
}

impl SitemapKind {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SitemapKind::Urlset => "urlset",
            SitemapKind::Index => "index",
            SitemapKind::Text => "text",
            SitemapKind::Feed => "feed",
        }
    }
}

/// One entry of a sitemap. What is absent, or is not what it should be, is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SitemapUrl {
    /// The address as written: absolute, `http` or `https`.
    pub loc: String,
    /// When it changed, as written: a date and perhaps a time in the W3C's form (of a feed: as written).
    pub lastmod: Option<String>,
    /// `always`, `hourly`, `daily`, `weekly`, `monthly`, `yearly` or `never`.
    pub changefreq: Option<String>,
    /// From 0 to 1.
    pub priority: Option<f32>,
}

/// What can be wrong with a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trouble {
    /// A document type declaration; reading ends there.
    Doctype,
    /// Neither of the kinds that we know: HTML, JSON, something binary.
    NotASitemap,
    /// More bytes than allowed; reading ends there.
    TooLarge,
    /// More entries than allowed; reading ends there.
    TooManyUrls,
    /// Elements inside each other without end; reading ends there.
    TooDeep,
    /// A tag with more attributes than allowed; reading ends there.
    TooManyAttributes,
    /// A name longer than allowed; reading ends there.
    NameTooLong,
    /// An address longer than allowed; its entry is left out.
    LocTooLong,
    /// An address that is no absolute `http` or `https` URL; its entry is left out.
    BadLoc,
    /// An entry without an address.
    NoLoc,
    /// A date that is none.
    BadLastmod,
    /// A frequency that is none.
    BadChangefreq,
    /// A priority that is no number from 0 to 1.
    BadPriority,
    /// A reference to an entity that XML does not define itself; it stays as written.
    UnknownEntity,
    /// A tag that cannot be read; it is passed over.
    BadMarkup,
    /// An end tag for something that is not open, or past something that is.
    Mismatch,
    /// The file ends where something is still open.
    EndsEarly,
    /// The gzip stream is damaged or cut; reading ends there.
    BrokenGzip,
    /// The gzip stream grows beyond all measure; reading ends there.
    Bomb,
    /// The bytes could not be read; reading ends there.
    Unreadable,
}

impl Trouble {
    /// A stable name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Trouble::Doctype => "doctype",
            Trouble::NotASitemap => "not_a_sitemap",
            Trouble::TooLarge => "too_large",
            Trouble::TooManyUrls => "too_many_urls",
            Trouble::TooDeep => "too_deep",
            Trouble::TooManyAttributes => "too_many_attributes",
            Trouble::NameTooLong => "name_too_long",
            Trouble::LocTooLong => "loc_too_long",
            Trouble::BadLoc => "bad_loc",
            Trouble::NoLoc => "no_loc",
            Trouble::BadLastmod => "bad_lastmod",
            Trouble::BadChangefreq => "bad_changefreq",
            Trouble::BadPriority => "bad_priority",
            Trouble::UnknownEntity => "unknown_entity",
            Trouble::BadMarkup => "bad_markup",
            Trouble::Mismatch => "mismatch",
            Trouble::EndsEarly => "ends_early",
            Trouble::BrokenGzip => "broken_gzip",
            Trouble::Bomb => "bomb",
            Trouble::Unreadable => "unreadable",
        }
    }

    /// The trouble in words.
    pub fn words(self) -> &'static str {
        match self {
            Trouble::Doctype => "a document type declaration, which is refused",
            Trouble::NotASitemap => "not a sitemap",
            Trouble::TooLarge => "larger than a sitemap may be",
            Trouble::TooManyUrls => "more entries than a sitemap may have",
            Trouble::TooDeep => "too many elements inside each other",
            Trouble::TooManyAttributes => "a tag with too many attributes",
            Trouble::NameTooLong => "a name that is too long",
            Trouble::LocTooLong => "an address that is too long",
            Trouble::BadLoc => "not an absolute http or https URL",
            Trouble::NoLoc => "an entry without an address",
            Trouble::BadLastmod => "not a date",
            Trouble::BadChangefreq => "not a frequency",
            Trouble::BadPriority => "not a priority from 0 to 1",
            Trouble::UnknownEntity => "an entity that XML does not know",
            Trouble::BadMarkup => "a tag that cannot be read",
            Trouble::Mismatch => "an end tag that does not match",
            Trouble::EndsEarly => "the file ends early",
            Trouble::BrokenGzip => "the gzip stream is broken",
            Trouble::Bomb => "the gzip stream grows beyond all measure",
            Trouble::Unreadable => "the file could not be read",
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SitemapProblem {
    /// What.
    pub error: Trouble,
    /// The line, from 1.
    pub line: u64,
    /// Bytes of text before it, gzip and encoding undone.
    pub offset: u64,
    /// What was found there, shortened; empty if there is nothing to show.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub found: String,
}

impl fmt::Display for SitemapProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error.words())?;
        if self.found.is_empty() { Ok(()) } else { write!(f, ": {:?}", self.found) }
    }
}

/// A sitemap, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sitemap {
    /// What it is; nothing if that did not become clear.
    pub kind: Option<SitemapKind>,
    /// Its entries, in order.
    pub urls: Vec<SitemapUrl>,
    /// What is wrong with it, in order, as many as [`SitemapLimits::problems_max`].
    pub errors: Vec<SitemapProblem>,
    /// Problems beyond those.
    pub errors_untold: u64,
}

/// How much of something wrong is shown.
const FOUND_BYTES_MAX: usize = 80;

impl Sitemap {
    /// Reads a sitemap, gzip or not, a piece at a time.
    pub fn read(input: impl Read, limits: &SitemapLimits) -> Sitemap {
        Sitemap::read_at(input, None, limits)
    }

    /// The same for one that was found at `own`, to which the addresses of a feed may be relative.
    pub fn read_at(input: impl Read, own: Option<&str>, limits: &SitemapLimits) -> Sitemap {
        let mut sitemap = Sitemap::default();
        let own = own.and_then(|own| url::Url::parse(own).ok());
        walk::walk(&mut Source::new(input, limits), own.as_ref(), limits, &mut sitemap);
        sitemap
    }

    /// What is wrong, in one line that begins with what it is wrong with.
    pub fn in_words(&self, what: &str) -> Option<String> {
        let last = self.errors.last()?;
        let more = self.errors.len() as u64 + self.errors_untold - 1;
        let more = if more > 0 { format!(" ({more} more problems)") } else { String::new() };
        Some(format!("{what}: {}: {last}{more}", last.error.name()))
    }

    pub(crate) fn problem(&mut self, limits: &SitemapLimits, place: Place, error: Trouble, found: &str) {
        if self.errors.len() >= limits.problems_max {
            self.errors_untold += 1;
            return;
        }
        let found = crate::page::cut(found, FOUND_BYTES_MAX).to_owned();
        self.errors.push(SitemapProblem { error, line: place.line, offset: place.offset, found });
    }
}

#[cfg(test)]
mod tests;
