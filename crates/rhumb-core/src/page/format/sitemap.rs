//! Sitemaps that are met as pages, by a link or as a seed: what they list becomes links. Those that robots.txt names are read on
//! another way, which bounds how far they lead. Text without words but addresses is one too; gzip is looked into.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::{Body, Format, Reader};
use crate::page::{Hint, LinkTag, MediaKind, Page, ParseOptions, sniff};
use crate::sitemap::{Sitemap as Listing, SitemapKind, SitemapLimits};

/// See the module's header.
pub(super) struct Sitemap;

/// How much of a packed file is looked at.
const LOOK_BYTES: usize = 1 << 10;

impl Format for Sitemap {
    fn name(&self) -> &'static str {
        "sitemap"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        match body.kind {
            MediaKind::Sitemap => true,
            MediaKind::Text => is_list(body.bytes),
            MediaKind::Archive => begins_packed(body.bytes),
            _ => false,
        }
    }

    fn links_max(&self, _: &ParseOptions) -> usize {
        SitemapLimits::default().urls_max
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        let listing = Listing::read_at(body.bytes, body.url, &SitemapLimits::default());
        page.charset = "UTF-8";
        page.kind = if listing.kind == Some(SitemapKind::Feed) { MediaKind::Feed } else { MediaKind::Sitemap };
        page.trouble = listing.in_words("sitemap");
        for url in listing.urls {
            if url.lastmod.is_some() || url.changefreq.is_some() || url.priority.is_some() {
                let (lastmod, changefreq, priority) = (url.lastmod, url.changefreq, url.priority);
                page.hints.push(Hint { link: page.links.len(), lastmod, changefreq, priority });
            }
            page.links.add(&url.loc, "", "", LinkTag::Loc);
        }
        let raw = &body.bytes[..body.bytes.len().min(reader.options.extract.text_bytes_max)];
        reader.take_gist(&String::from_utf8_lossy(raw), page);
    }
}

/// Whether the beginning is lines of absolute addresses and nothing else.
fn is_list(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(sniff::HEADER_BYTES)];
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let mut lines =
        beginning.split(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|l| !l.is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            (line.starts_with(b"http://") || line.starts_with(b"https://"))
                && !line.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'<' | b'"'))
        })
}

/// Whether a sitemap or feed begins behind gzip.
fn begins_packed(bytes: &[u8]) -> bool {
    let mut beginning = Vec::with_capacity(LOOK_BYTES);
    // What came out before trouble is looked at all the same.
    let _ = GzDecoder::new(bytes).take(LOOK_BYTES as u64).read_to_end(&mut beginning);
    bytes.starts_with(b"\x1f\x8b")
        && (matches!(sniff::sniff(&beginning, None, false), MediaKind::Sitemap | MediaKind::Feed)
            || is_list(&beginning))
}
