//! Feeds (RSS, Atom, JSON Feed): their entries become links with dates, their titles and summaries the text.

use url::Url;

use super::{Body, Format, Reader};
use crate::feed::{Feed as Read, FeedOptions};
use crate::page::{Hint, LinkTag, MediaKind, Page, encoding};
use crate::sitemap::SitemapLimits;

/// See the module's header.
pub(super) struct Feed;

impl Format for Feed {
    fn name(&self) -> &'static str {
        "feed"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        body.kind == MediaKind::Feed
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        let extract = &reader.options.extract;
        let own = body.url.and_then(|url| Url::parse(url).ok());
        let options = FeedOptions {
            words: true,
            text_bytes_max: extract.text_bytes_max,
            title_bytes_max: extract.title_bytes_max,
        };
        // More entries than links that may be kept need not be read.
        let limits = SitemapLimits { urls_max: extract.links_max, ..SitemapLimits::default() };
        let feed = if matches!(body.bytes, [0, _, ..] | [_, 0, ..]) {
            // UTF-16 without a mark announces itself by its zeros, which the feed's own reader knows.
            page.charset = if body.bytes[0] == 0 { "UTF-16BE" } else { "UTF-16LE" };
            Read::read(body.bytes, own.as_ref(), &limits, &options)
        } else {
            let (text, charset) = encoding::decode_text(body.bytes, body.charset, reader.options.tld.as_deref());
            page.charset = charset;
            Read::read_text(&text, own.as_ref(), &limits, &options)
        };
        page.title = feed.title;
        page.description = feed.description;
        page.html_lang = feed.language;
        page.text = feed.text;
        page.truncated = feed.truncated;
        page.trouble = feed.listing.in_words("feed");
        for (url, title) in feed.listing.urls.into_iter().zip(&feed.titles) {
            if url.lastmod.is_some() {
                let link = page.links.len();
                page.hints.push(Hint { link, lastmod: url.lastmod, changefreq: None, priority: None });
            }
            page.links.add(&url.loc, title, "", LinkTag::Entry);
        }
        for (href, rel) in [(feed.home, "alternate"), (feed.next, "next")] {
            if let Some(href) = href {
                page.links.add(&href, "", rel, LinkTag::Link);
            }
        }
    }
}
