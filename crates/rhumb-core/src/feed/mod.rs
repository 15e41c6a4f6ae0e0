//! Feeds: RSS 0.9x, 1.0 and 2.0, Atom, JSON Feed. Their entries are addresses with dates, as those of a sitemap are, and words.
//!
//! Invariant: as with sitemaps, reading ends, takes time linear in the bytes read and memory within [`SitemapLimits`] and
//! [`FeedOptions`], and never panics; no entity is ever defined; what was read before trouble is kept, and trouble has a name. Every
//! entry in [`Feed::listing`] has an absolute address.
//!
//! `xml.rs` knows what the tags of RSS and Atom mean, `json.rs` the members of JSON Feed; both tell a `Collector`, here, which
//! resolves addresses, judges dates and reduces markup to text. Read this file, then `xml.rs`.

mod json;
mod xml;

use std::io::Read;

use url::Url;

use crate::dates;
use crate::page::{ExtractOptions, Extractor, Page, cut};
use crate::sitemap::{Sitemap, SitemapKind, SitemapLimits, SitemapUrl, Trouble};
use crate::xml::{Place, Source};

pub(crate) use json::read as read_json;
pub(crate) use xml::{ATTRIBUTES, read as read_xml};

/// What is wanted of a feed beside its entries' addresses and dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedOptions {
    /// Titles and summaries, as text.
    pub words: bool,
    /// Text kept of all entries together.
    pub text_bytes_max: usize,
    /// Text kept of one title.
    pub title_bytes_max: usize,
}

impl Default for FeedOptions {
    fn default() -> Self {
        FeedOptions { words: true, text_bytes_max: 2 << 20, title_bytes_max: 1 << 10 }
    }
}

/// A feed, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    /// Its entries and what is wrong with it; no kind if it is no feed.
    pub listing: Sitemap,
    /// The titles of the entries, as many as there are.
    pub titles: Vec<String>,
    /// The feed's own title.
    pub title: Option<String>,
    /// What it says it is about.
    pub description: Option<String>,
    /// The language that it says it is in.
    pub language: Option<String>,
    /// The site that it belongs to.
    pub home: Option<String>,
    /// Where older entries are.
    pub next: Option<String>,
    /// Titles and summaries, each on lines of its own.
    pub text: String,
    /// Whether a bound cut something off the text.
    pub truncated: bool,
}

impl Feed {
    /// Reads a feed that was found at `own`, gzip or not, a piece at a time.
    pub fn read(input: impl Read, own: Option<&Url>, limits: &SitemapLimits, options: &FeedOptions) -> Feed {
        Feed::from_source(&mut Source::new(input, limits), own, limits, options)
    }

    /// The same for text whose encoding is undone already, whatever it says of itself.
    pub fn read_text(text: &str, own: Option<&Url>, limits: &SitemapLimits, options: &FeedOptions) -> Feed {
        Feed::from_source(&mut Source::utf8(text.as_bytes(), limits), own, limits, options)
    }

    fn from_source<R: Read>(
        source: &mut Source<R>,
        own: Option<&Url>,
        limits: &SitemapLimits,
        options: &FeedOptions,
    ) -> Feed {
        source.skip_space();
        let mut feed = Feed::default();
        match source.peek() {
            Some(b'{') => read_json(source, own, limits, options, &mut feed),
            _ => crate::sitemap::read_feed(source, own, limits, options, &mut feed),
        }
        feed
    }
}

/// Text kept of one summary, markup included; a bound on what waits at a time.
const SUMMARY_BYTES_MAX: usize = 256 << 10;

/// What relative addresses may grow by when they are resolved, all together: a long base is written once and meant many times.
const RESOLVED_BYTES_MAX: usize = 4 << 20;

/// Candidates for an entry's address, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum LocRank {
    Link,
    OtherType,
    Foreign,
    Guid,
    About,
    Source,
    Id,
}

/// Candidates for an entry's date, best first: when it changed, then when it appeared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum DateRank {
    Updated,
    Published,
    Created,
}

/// An entry that is being read.
#[derive(Default)]
struct Draft {
    loc: Option<(LocRank, String)>,
    /// How long the address was before it was resolved.
    written_bytes: usize,
    /// What stood where an address should, and is none.
    bad_loc: Option<String>,
    date: Option<(DateRank, String)>,
    title: String,
    summary: String,
}

impl Draft {
    /// Offers an address; `absolute` ones are only addresses if they stand alone.
    fn offer_loc(&mut self, rank: LocRank, text: &str, bases: &Bases) {
        if text.is_empty() || self.loc.as_ref().is_some_and(|(best, _)| *best <= rank) {
            return;
        }
        let absolute = rank >= LocRank::Guid && rank != LocRank::Source;
        match bases.resolve(text, absolute) {
            Some(loc) => {
                self.written_bytes = text.len();
                self.loc = Some((rank, loc));
            }
            None if absolute => {}
            None => {
                self.bad_loc.get_or_insert_with(|| text.to_owned());
            }
        }
    }

    fn offer_date(&mut self, rank: DateRank, text: &str) {
        if !text.is_empty() && self.date.as_ref().is_none_or(|(best, _)| rank < *best) {
            self.date = Some((rank, text.to_owned()));
        }
    }

    /// The longer of two summaries says more.
    fn offer_summary(&mut self, text: String) {
        if text.len() > self.summary.len() {
            self.summary = text;
        }
    }
}

/// What relative addresses are relative to.
struct Bases {
    /// The feed's own address, then each `xml:base` that is open.
    stack: Vec<Url>,
    /// The site's address, for a feed that does not know its own.
    home: Option<Url>,
}

impl Bases {
    fn new(own: Option<&Url>) -> Bases {
        Bases { stack: own.cloned().into_iter().collect(), home: None }
    }

    /// An absolute http or https address. One that is absolute already stays as written.
    fn resolve(&self, text: &str, absolute: bool) -> Option<String> {
        if crate::url::Url::parse(text).is_ok() {
            return Some(text.to_owned());
        }
        if absolute {
            return None;
        }
        let joined = self.stack.last().or(self.home.as_ref())?.join(text).ok()?;
        crate::url::Url::parse(joined.as_str()).is_ok().then(|| joined.into())
    }

    /// Opens an `xml:base`, itself relative to the one around it; whether there is one more.
    fn open(&mut self, base: &str) -> bool {
        let resolved = match self.stack.last() {
            Some(outer) => outer.join(base).ok(),
            None => Url::parse(base).ok(),
        };
        let fit = resolved.filter(|base| !base.cannot_be_a_base());
        fit.map(|base| self.stack.push(base)).is_some()
    }
}

/// Makes a [`Feed`] of what its reader finds.
struct Collector<'a> {
    limits: &'a SitemapLimits,
    options: &'a FeedOptions,
    feed: &'a mut Feed,
    bases: Bases,
    words: Words,
    grown_bytes: usize,
}

impl<'a> Collector<'a> {
    fn new(own: Option<&Url>, limits: &'a SitemapLimits, options: &'a FeedOptions, feed: &'a mut Feed) -> Self {
        feed.listing.kind = Some(SitemapKind::Feed);
        Collector { limits, options, feed, bases: Bases::new(own), words: Words::new(options), grown_bytes: 0 }
    }

    fn problem(&mut self, place: Place, trouble: Trouble, found: &str) {
        self.feed.listing.problem(self.limits, place, trouble, found);
    }

    fn set_title(&mut self, text: &str, is_html: bool) {
        if self.feed.title.is_none() && !text.is_empty() {
            let title = self.words.reduce(text, is_html);
            self.feed.title = Some(cut(&title.replace('\n', " "), self.options.title_bytes_max).to_owned());
        }
    }

    fn set_description(&mut self, text: &str, is_html: bool) {
        if self.feed.description.is_none() && !text.is_empty() {
            let text = self.words.reduce(text, is_html);
            self.feed.description = Some(cut(&text, self.options.title_bytes_max).to_owned());
        }
    }

    fn set_home(&mut self, text: &str) {
        if self.feed.home.is_none()
            && let Some(home) = self.bases.resolve(text, false)
        {
            self.bases.home = Url::parse(&home).ok();
            self.feed.home = Some(home);
        }
    }

    fn set_next(&mut self, text: &str) {
        if self.feed.next.is_none() {
            self.feed.next = self.bases.resolve(text, false);
        }
    }

    fn set_language(&mut self, text: &str) {
        let is_tag = (2..=35).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if self.feed.language.is_none() && is_tag {
            self.feed.language = Some(text.to_owned());
        }
    }

    /// Keeps an entry. One that is `cut_off` counts if its address was there.
    fn finish_entry(&mut self, draft: Draft, place: Place, cut_off: bool) -> Result<(), Trouble> {
        let Some((_, loc)) = draft.loc else {
            match draft.bad_loc {
                _ if cut_off => {}
                Some(bad) => self.problem(place, Trouble::BadLoc, &bad),
                None => self.problem(place, Trouble::NoLoc, ""),
            }
            return Ok(());
        };
        if loc.len() > self.limits.loc_bytes_max {
            self.problem(place, Trouble::LocTooLong, &loc);
            return Ok(());
        }
        if self.feed.listing.urls.len() >= self.limits.urls_max {
            return Err(Trouble::TooManyUrls);
        }
        self.grown_bytes += loc.len().saturating_sub(draft.written_bytes);
        if self.grown_bytes > RESOLVED_BYTES_MAX {
            return Err(Trouble::TooLarge);
        }
        let lastmod = match draft.date {
            Some((_, date)) if dates::parse(&date).is_none() => {
                self.problem(place, Trouble::BadLastmod, &date);
                None
            }
            date => date.map(|(_, date)| date),
        };
        self.feed.listing.urls.push(SitemapUrl { loc, lastmod, changefreq: None, priority: None });
        if self.options.words {
            let title = cut(&draft.title, self.options.title_bytes_max).replace('\n', " ");
            self.add_text(&title);
            self.add_text(&draft.summary);
            self.feed.titles.push(title);
        }
        Ok(())
    }

    fn add_text(&mut self, more: &str) {
        let text = &mut self.feed.text;
        if more.is_empty() || self.feed.truncated {
            return;
        }
        let room = self.options.text_bytes_max.saturating_sub(text.len() + 1);
        let kept = cut(more, room);
        self.feed.truncated = kept.len() < more.len();
        if !text.is_empty() && !kept.is_empty() {
            text.push('\n');
        }
        text.push_str(kept);
    }
}

/// Markup reduced to text.
struct Words {
    extractor: Extractor,
    options: ExtractOptions,
    page: Page,
}

impl Words {
    fn new(options: &FeedOptions) -> Words {
        let options = ExtractOptions {
            links_max: 0,
            marks_max: 0,
            metas_max: 0,
            text_bytes_max: options.text_bytes_max.min(SUMMARY_BYTES_MAX),
            ..ExtractOptions::default()
        };
        Words { extractor: Extractor::new(), options, page: Page::default() }
    }

    /// What a reader would see of a text, which is markup or not.
    fn reduce(&mut self, text: &str, is_html: bool) -> String {
        if is_html && memchr::memchr2(b'<', b'&', text.as_bytes()).is_some() {
            self.extractor.extract_into(text, &self.options, &mut self.page);
            return self.page.text.clone();
        }
        let mut out = String::with_capacity(text.len());
        for word in text.split_ascii_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        out
    }
}

#[cfg(test)]
mod tests;
