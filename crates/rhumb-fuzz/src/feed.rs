//! Feeds of any kind, with their words, and as pages.
//!
//! Input: the file.

use rhumb_core::feed::{Feed, FeedOptions};
use rhumb_core::page::{Body, Extractor, Formats, LinkTag, Page, ParseOptions};
use rhumb_core::sitemap::{Sitemap, SitemapKind, SitemapLimits};
use rhumb_core::url::Url;

use crate::Single;

/// Bounds are kept; every entry has an absolute address and a title, if an empty one; reading byte by byte, or only what is listed,
/// gives the same; a page made of it has the same entries.
pub fn run(data: &[u8]) {
    let narrow = SitemapLimits {
        decoded_bytes_max: 1000,
        urls_max: 3,
        depth_max: 4,
        loc_bytes_max: 64,
        problems_max: 4,
        ..SitemapLimits::default()
    };
    let few = FeedOptions { words: true, text_bytes_max: 40, title_bytes_max: 10 };
    check(&Feed::read(data, None, &narrow, &few), &narrow, &few);
    let (limits, options) = (SitemapLimits::default(), FeedOptions::default());
    let own = url::Url::parse("http://own.example/d/feed").ok();
    let feed = Feed::read(data, own.as_ref(), &limits, &options);
    check(&feed, &limits, &options);
    if !data.starts_with(&[0x1f]) {
        assert_eq!(Feed::read(Single(data), own.as_ref(), &limits, &options), feed, "byte by byte");
    }
    let listed = Sitemap::read_at(data, own.as_ref().map(url::Url::as_str), &limits);
    // Who is not told that it is a feed takes text before the first element for a list of addresses.
    let is_markup = feed.listing.kind == Some(SitemapKind::Feed) && data.trim_ascii_start().starts_with(b"<");
    if is_markup || listed.kind == Some(SitemapKind::Feed) {
        assert_eq!(listed, feed.listing, "words change nothing");
    }
    let mut page = Page::default();
    let body = Body { url: Some("http://own.example/d/feed"), ..Body::new(data, Some("application/rss+xml"), false) };
    Formats::default().read_into(&body, &mut Extractor::new(), &ParseOptions::default(), &mut page);
    if page.format == "feed" {
        assert!(page.links.iter().filter(|l| l.tag == LinkTag::Entry).all(|l| Url::parse(l.href).is_ok()));
    }
    assert!(page.hints.iter().all(|hint| hint.link < page.links.len()));
}

fn check(feed: &Feed, limits: &SitemapLimits, options: &FeedOptions) {
    let listing = &feed.listing;
    assert!(listing.urls.len() <= limits.urls_max && listing.errors.len() <= limits.problems_max);
    assert!(listing.kind.is_some() || listing.urls.is_empty() && !listing.errors.is_empty(), "{listing:?}");
    assert_eq!(feed.titles.len(), listing.urls.len());
    assert!(listing.urls.iter().all(|u| u.loc.len() <= limits.loc_bytes_max && Url::parse(&u.loc).is_ok()));
    assert!(feed.text.len() <= options.text_bytes_max);
    assert!(feed.titles.iter().chain(&feed.title).all(|title| title.len() <= options.title_bytes_max));
}
