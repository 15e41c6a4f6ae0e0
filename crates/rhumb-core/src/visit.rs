//! A URL on its way: waiting as an [`Entry`], permitted as a [`Visit`], finished as a [`VisitRecord`].

use std::net::IpAddr;
use std::sync::Arc;

use rhumb_store::Timestamp;
use rhumb_store::archive::ArchiveRef;
use rhumb_store::codec::{Malformed, Put, Take};

use crate::outcome::Outcome;
use crate::page::{self, Directives, PageText, Rel};
use crate::seen::{Content, Known, PageRef};
use crate::sitemap::{Hint, SitemapLevel};
use crate::url::{Host, Url};

/// A URL that waits in the frontier, with what must be known of it when its turn comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where to go.
    pub url: Url,
    /// Links from a seed.
    pub depth: u32,
    /// Visits that failed before.
    pub attempt: u8,
    /// Redirects in a row that led here.
    pub redirects: u8,
    /// Whether the user named it (or a seed redirected to it).
    pub seed: bool,
    /// Where it stands among the sitemaps, if it is one.
    pub sitemap: Option<SitemapLevel>,
    /// What the server gave with the last copy, for a conditional request.
    pub validators: Validators,
    /// What the sitemap or feed that lists it says of it.
    pub hint: Hint,
    /// What it said when it was last here, so that this can be forgotten when it says something else (SPEC C8).
    pub known: Option<Box<Known>>,
}

/// `ETag` and `Last-Modified` of an earlier response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag, quotes included.
    pub etag: Option<Box<str>>,
    /// The date as the server wrote it.
    pub last_modified: Option<Box<str>>,
    /// When the response came.
    pub fetched: Timestamp,
}

impl Validators {
    /// Whether there is nothing to ask with.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Appends the bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_opt_str(self.etag.as_deref());
        into.put_opt_str(self.last_modified.as_deref());
        if !self.is_empty() {
            into.put_u64(self.fetched.0);
        }
    }

    /// Reads what [`Validators::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Validators, Malformed> {
        let mut validators = Validators {
            etag: from.opt_str()?.map(Into::into),
            last_modified: from.opt_str()?.map(Into::into),
            fetched: Timestamp(0),
        };
        if !validators.is_empty() {
            validators.fetched = Timestamp(from.u64()?);
        }
        Ok(validators)
    }
}

const SEED: u8 = 1;
const VALIDATORS: u8 = 2;
/// No sitemap has these bits: the level and more flags come in the next byte.
const MORE: u8 = 0xf0;
const HINT: u8 = 1;
const KNOWN: u8 = 2;

/// The first bytes of an entry: its flags, and what they announce.
fn put_flags(into: &mut Vec<u8>, low: u8, sitemap: Option<SitemapLevel>, hint: Hint, known: Option<&Known>) {
    let level = SitemapLevel::to_bits(sitemap);
    let hinted = hint != Hint::default();
    if !hinted && known.is_none() {
        into.put_u8(low | level);
        return;
    }
    into.extend_from_slice(&[
        low | MORE,
        level | if hinted { HINT } else { 0 } | if known.is_some() { KNOWN } else { 0 },
    ]);
    if hinted {
        hint.put(into);
    }
    if let Some(known) = known {
        known.put(into);
    }
}

impl Entry {
    /// A first visit at `depth`.
    pub fn new(url: Url, depth: u32) -> Entry {
        Entry {
            url,
            depth,
            attempt: 0,
            redirects: 0,
            seed: false,
            sitemap: None,
            validators: Validators::default(),
            hint: Hint::default(),
            known: None,
        }
    }

    /// Appends the entry's bytes; the URL comes last and fills the rest.
    pub fn put(&self, into: &mut Vec<u8>) {
        let validators = if self.validators.is_empty() { 0 } else { VALIDATORS };
        put_flags(into, if self.seed { SEED } else { 0 } | validators, self.sitemap, self.hint, self.known.as_deref());
        into.put_u64(u64::from(self.depth));
        into.put_u8(self.attempt);
        into.put_u8(self.redirects);
        if validators != 0 {
            self.validators.put(into);
        }
        into.extend_from_slice(self.url.as_str().as_bytes());
    }

    /// The bytes in front of the URL, for an entry that was never visited.
    pub fn put_head(
        depth: u32,
        redirects: u8,
        seed: bool,
        sitemap: Option<SitemapLevel>,
        hint: Hint,
        into: &mut Vec<u8>,
    ) {
        put_flags(into, if seed { SEED } else { 0 }, sitemap, hint, None);
        into.put_u64(u64::from(depth));
        into.extend_from_slice(&[0, redirects]);
    }

    /// The entry's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.url.as_str().len() + 8);
        self.put(&mut bytes);
        bytes
    }

    /// Reads what [`Entry::put`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, Malformed> {
        let mut take = Take::new(bytes);
        let flags = take.u8()?;
        let more = if flags & !(SEED | VALIDATORS) == MORE { take.u8()? } else { 0 };
        let hint = if more & HINT != 0 { Hint::take(&mut take)? } else { Hint::default() };
        let known = if more & KNOWN != 0 { Some(Box::new(Known::take(&mut take)?)) } else { None };
        let depth = take.u32()?;
        let (attempt, redirects) = (take.u8()?, take.u8()?);
        let validators = if flags & VALIDATORS != 0 { Validators::take(&mut take)? } else { Validators::default() };
        let url = std::str::from_utf8(take.rest()).map_err(|_| Malformed("a waiting URL is not UTF-8"))?;
        let url = Url::from_canonical(url).ok_or(Malformed("a waiting URL is not canonical"))?;
        let sitemap = SitemapLevel::from_bits(flags).or(SitemapLevel::from_bits(more));
        Ok(Entry { url, depth, attempt, redirects, seed: flags & SEED != 0, sitemap, validators, hint, known })
    }
}

/// Why a host is visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To fetch a page.
    Page,
    /// To fetch the robots.txt that rules `host`, after `hops` redirects.
    Robots {
        /// Whose rules they are; after a redirect not the host visited.
        host: Host,
        /// Redirects followed so far.
        hops: u8,
    },
}

impl Purpose {
    /// Whether a page is fetched.
    pub fn is_page(&self) -> bool {
        matches!(self, Purpose::Page)
    }
}

/// One permitted attempt: the frontier's word that this host may be contacted now, once.
#[derive(Clone, Debug)]
pub struct Visit {
    /// What to fetch.
    pub entry: Entry,
    /// Who is contacted.
    pub host: Host,
    /// Why.
    pub purpose: Purpose,
    /// The addresses of the host; the first is to be dialled.
    pub addresses: Arc<[IpAddr]>,
}

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum LinkKind {
    A = 0,
    Area = 1,
    Link = 2,
    Frame = 3,
    Iframe = 4,
    Image = 5,
    Script = 6,
    Refresh = 7,
    Redirect = 8,
    /// A sitemap, named by robots.txt or by an index.
    Sitemap = 9,
    /// A page that a sitemap lists.
    Listed = 10,
    /// An entry of a feed.
    Entry = 11,
    Other = 15,
}

impl LinkKind {
    /// The kind for the number on disk.
    pub fn from_code(code: u8) -> LinkKind {
        use LinkKind::*;
        [A, Area, Link, Frame, Iframe, Image, Script, Refresh, Redirect, Sitemap, Listed, Entry]
            .into_iter()
            .find(|t| *t as u8 == code)
            .unwrap_or(Other)
    }

    /// Its name, for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::A => "a",
            LinkKind::Area => "area",
            LinkKind::Link => "link",
            LinkKind::Frame => "frame",
            LinkKind::Iframe => "iframe",
            LinkKind::Image => "image",
            LinkKind::Script => "script",
            LinkKind::Refresh => "refresh",
            LinkKind::Redirect => "redirect",
            LinkKind::Sitemap => "sitemap",
            LinkKind::Listed => "listed",
            LinkKind::Entry => "entry",
            LinkKind::Other => "other",
        }
    }
}

impl From<page::LinkTag> for LinkKind {
    fn from(tag: page::LinkTag) -> LinkKind {
        match tag {
            page::LinkTag::A => LinkKind::A,
            page::LinkTag::Area => LinkKind::Area,
            page::LinkTag::Link => LinkKind::Link,
            page::LinkTag::Frame => LinkKind::Frame,
            page::LinkTag::Iframe => LinkKind::Iframe,
            page::LinkTag::Img | page::LinkTag::Source => LinkKind::Image,
            page::LinkTag::Script => LinkKind::Script,
            page::LinkTag::Embed => LinkKind::Other,
            page::LinkTag::Entry => LinkKind::Entry,
            page::LinkTag::Loc => LinkKind::Listed,
        }
    }
}

/// A link of a visited page, with what the filter said of its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlink {
    /// The target, canonical.
    pub url: Url,
    /// Anchor text.
    pub text: Box<str>,
    /// How it was marked up.
    pub kind: LinkKind,
    /// By which marks the author declines to vouch for it: nofollow, ugc, sponsored.
    pub rel: Rel,
    /// What a sitemap or feed says of it.
    pub hint: Hint,
    /// Whether the filter let it pass: wanted links go to the sieve.
    pub wanted: bool,
}

impl Outlink {
    /// A link without a text.
    pub fn bare(url: Url, kind: LinkKind, wanted: bool) -> Outlink {
        Outlink { url, text: "".into(), kind, rel: Rel::default(), hint: Hint::default(), wanted }
    }
}

/// One finished visit: the crawl's truth about it.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitRecord {
    /// What was asked for, and how it came to be asked.
    pub entry: Entry,
    /// Why.
    pub purpose: Purpose,
    /// When dialling began.
    pub started: Timestamp,
    /// When the last byte was here.
    pub ended: Timestamp,
    /// Who answered.
    pub address: Option<IpAddr>,
    /// How it ended.
    pub outcome: Outcome,
    /// More about a failure, for people.
    pub detail: Box<str>,
    /// Whether the URL goes back into the frontier.
    pub retry: bool,
    /// Status of the response, 0 without one.
    pub status: u16,
    /// Media type as the server said it.
    pub media_type: Box<str>,
    /// Body bytes on the wire.
    pub wire_bytes: u64,
    /// Whether a bound cut the body.
    pub truncated: bool,
    /// How long the host wants to be left alone, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Validators of this response.
    pub validators: Validators,
    /// SHA-1 of the body on the wire.
    pub digest: Option<[u8; 20]>,
    /// Fingerprint of a page's decoded body.
    pub fingerprint: u64,
    /// What its text says, for the content-seen test; nothing if it has no words.
    pub content: Option<Content>,
    /// The page of another host that has the same words and links: those of this one are not followed.
    pub copy_of: Option<PageRef>,
    /// What the page and its server ask of robots.
    pub directives: Directives,
    /// The page's preferred address, if it is another: its own word, or its server's.
    pub canonical: Option<Url>,
    /// The language of the text, as ISO 639 names it; empty if it is not known.
    pub language: Box<str>,
    /// The text of a page of which no copy may be kept, if `said` does not have it.
    pub text_kept: Option<Box<str>>,
    /// What the page says: the bytes of a [`PageText`], compressed as they are in the log.
    pub said: Option<Box<[u8]>>,
    /// The usual place of a site's sitemap is worth a look, if its robots.txt named none.
    pub sitemap_wanted: bool,
    /// Whether the page says nothing that its registrable domain had not said before.
    pub nothing_new: bool,
    /// Where the same body was archived before.
    pub duplicate_of: Option<Box<str>>,
    /// Where its records lie in the archive.
    pub archived: Option<ArchiveRef>,
    /// The page's title.
    pub title: Box<str>,
    /// Links found, or the target of a redirect.
    pub links: Vec<Outlink>,
    /// Links left out because they are no usable URL.
    pub links_unusable: u32,
    /// Body of a robots.txt, cut to the size that is parsed.
    pub robots: Option<Box<[u8]>>,
}

impl VisitRecord {
    /// A record with nothing but how it ended.
    pub fn bare(entry: Entry, purpose: Purpose, started: Timestamp, ended: Timestamp, outcome: Outcome) -> VisitRecord {
        VisitRecord {
            entry,
            purpose,
            started,
            ended,
            address: None,
            outcome,
            detail: "".into(),
            retry: false,
            status: 0,
            media_type: "".into(),
            wire_bytes: 0,
            truncated: false,
            retry_after_ms: None,
            validators: Validators::default(),
            digest: None,
            fingerprint: 0,
            content: None,
            copy_of: None,
            directives: Directives::default(),
            canonical: None,
            language: "".into(),
            text_kept: None,
            said: None,
            sitemap_wanted: false,
            nothing_new: false,
            duplicate_of: None,
            archived: None,
            title: "".into(),
            links: Vec::new(),
            links_unusable: 0,
            robots: None,
        }
    }

    /// Milliseconds from dialling to the last byte.
    pub fn duration_ms(&self) -> u64 {
        self.ended.ms_since(self.started)
    }

    /// About how much memory its variable parts take.
    pub fn memory_bytes(&self) -> usize {
        let links: usize = self.links.iter().map(|l| l.url.as_str().len() + l.text.len()).sum();
        let robots = self.robots.as_ref().map_or(0, |r| r.len());
        let text = self.text_kept.as_ref().map_or(0, |t| t.len()) + self.said.as_ref().map_or(0, |s| s.len());
        links + self.links.capacity() * size_of::<Outlink>() + robots + text
    }

    /// What the page says, if the log holds it.
    pub fn page_text(&self) -> Result<Option<PageText>, Malformed> {
        let kept = |text: &str| PageText { text: text.to_owned(), ..PageText::default() };
        match &self.said {
            Some(said) => PageText::take(said).map(Some),
            None => Ok(self.text_kept.as_deref().map(kept)),
        }
    }

    /// Whether it is a page that was fetched, for good.
    pub fn is_page(&self) -> bool {
        self.purpose.is_page() && self.outcome == Outcome::Ok
    }

    /// Whether anything was sent to the host.
    pub fn contacted(&self) -> bool {
        !matches!(self.outcome, Outcome::BlockedAddress | Outcome::NoHost | Outcome::DnsFailed)
    }
}
