//! The links of a page: many short strings in one piece of memory.
//!
//! Invariant: every range of an entry lies inside `bytes`, on character boundaries, because entries are only made here.

use super::meta::Rel;

/// The element a link came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkTag {
    /// `<a href>`, the link proper.
    A,
    /// `<area href>` of an image map.
    Area,
    /// `<link href>`.
    Link,
    /// `<frame src>`.
    Frame,
    /// `<iframe src>`.
    Iframe,
    /// `<img src>` or one of its `srcset`.
    Img,
    /// `<script src>`.
    Script,
    /// `<source src>` or one of its `srcset`.
    Source,
    /// `<embed src>`.
    Embed,
    /// An entry of a feed.
    Entry,
    /// `<loc>` of a sitemap.
    Loc,
}

impl LinkTag {
    /// The element's name.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkTag::A => "a",
            LinkTag::Area => "area",
            LinkTag::Link => "link",
            LinkTag::Frame => "frame",
            LinkTag::Iframe => "iframe",
            LinkTag::Img => "img",
            LinkTag::Script => "script",
            LinkTag::Source => "source",
            LinkTag::Embed => "embed",
            LinkTag::Entry => "entry",
            LinkTag::Loc => "loc",
        }
    }
}

/// One link, as the page wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link<'a> {
    /// The address: decoded and trimmed, not resolved.
    pub href: &'a str,
    /// The text between the tags, or an image's alternative.
    pub text: &'a str,
    /// The `rel` attribute.
    pub rel: &'a str,
    /// What of it matters to us.
    pub flags: Rel,
    /// Where it stood.
    pub tag: LinkTag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    href: Range,
    text: Range,
    rel: RelEntry,
    tag: LinkTag,
}

type Range = (usize, usize);

/// A stored `rel` attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct RelEntry {
    range: Range,
    flags: Rel,
}

/// All links of a page, in the order of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    bytes: String,
    entries: Vec<Entry>,
    last_rel: RelEntry,
}

impl Links {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The links, first to last.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Link<'_>> {
        self.entries.iter().map(|e| Link {
            href: &self.bytes[e.href.0..e.href.1],
            text: &self.bytes[e.text.0..e.text.1],
            rel: &self.bytes[e.rel.range.0..e.rel.range.1],
            flags: e.rel.flags,
            tag: e.tag,
        })
    }

    /// Adds a link as a format other than HTML finds it; the `rel` matters as it does there.
    pub fn add(&mut self, href: &str, text: &str, rel: &str, tag: LinkTag) {
        let rel = self.intern(rel);
        self.push(href, rel, tag);
        if !text.is_empty() {
            self.set_text(self.entries.len() - 1, text);
        }
    }

    /// Leaves out all but the first `len`; how many that were.
    pub(super) fn truncate(&mut self, len: usize) -> usize {
        let dropped = self.entries.len().saturating_sub(len);
        self.entries.truncate(len);
        dropped
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.last_rel = RelEntry::default();
    }

    /// Stores a `rel`, once if the link before had the same.
    pub(super) fn intern(&mut self, rel: &str) -> RelEntry {
        if rel.is_empty() {
            return RelEntry::default();
        }
        let RelEntry { range, .. } = self.last_rel;
        if &self.bytes[range.0..range.1] != rel {
            self.last_rel = RelEntry { range: self.store(rel), flags: Rel::parse(rel) };
        }
        self.last_rel
    }

    pub(super) fn push(&mut self, href: &str, rel: RelEntry, tag: LinkTag) {
        let href = self.store(href);
        self.entries.push(Entry { href, text: (0, 0), rel, tag });
    }

    pub(super) fn set_text(&mut self, index: usize, text: &str) {
        self.entries[index].text = self.store(text);
    }

    fn store(&mut self, text: &str) -> Range {
        let start = self.bytes.len();
        self.bytes.push_str(text);
        (start, self.bytes.len())
    }
}
