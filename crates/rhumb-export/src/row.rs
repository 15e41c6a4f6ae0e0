//! A page as one row: what the log knows of the visit, and what its body says when it is parsed.
//!
//! [`Maker::make`] is the one place where a row comes about, for all formats; [`Row`] is the schema (docs/formats/export.md). A field that
//! becomes known to the log or to the parser is added in both.

use rhumb_core::outcome::Outcome;
use rhumb_core::page::{Body, Extractor, MediaKind, Page, ParseOptions, coding};
use rhumb_core::url::Normalizer;
use rhumb_core::visit::{LinkKind, VisitRecord};
use rhumb_store::Timestamp;
use rhumb_store::warc::Digest;
use serde::Serialize;

use crate::body::{Bodies, Capture};
use crate::options::Options;
use crate::plan::Item;

/// One page. The order of the fields is that of the columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The address, canonical.
    pub url: String,
    /// When it was fetched: dialling began.
    #[serde(serialize_with = "rfc3339")]
    pub fetched: Timestamp,
    /// Status of the response; nothing without one.
    pub status: Option<u16>,
    /// How the visit ended, by name.
    pub outcome: &'static str,
    /// More about a failure, for people.
    pub detail: Option<String>,
    /// Where a redirect leads.
    pub redirect: Option<String>,
    /// Redirects in a row that led here.
    pub redirects: u32,
    /// Links from a seed.
    pub depth: u32,
    /// Whether the user named it.
    pub seed: bool,
    /// Content-Type as the server said it.
    pub media_type: Option<String>,
    /// What the body was found to be.
    pub kind: Option<MediaKind>,
    /// The character encoding it was read in.
    pub charset: Option<String>,
    /// ISO 639 code of its language.
    pub language: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The meta description.
    pub description: Option<String>,
    /// The address that the page would rather be known by, absolute.
    pub canonical: Option<String>,
    /// The main text.
    pub text: Option<String>,
    /// The main text as Markdown.
    pub markdown: Option<String>,
    /// Where it links to; nothing if links were not asked for.
    pub links: Option<Vec<RowLink>>,
    /// JSON-LD documents of the page, as written.
    pub structured: Option<Vec<String>>,
    /// What the page and its server ask of robots: noindex, nofollow, noarchive, nosnippet, unavailable_after.
    pub robots: Vec<&'static str>,
    /// SHA-1 of the body on the wire, as the archive has it.
    pub digest: Option<String>,
    /// Fingerprint of the decoded body, sixteen hexadecimal digits.
    pub fingerprint: Option<String>,
    /// The URL under which the same body was archived before.
    pub duplicate_of: Option<String>,
    /// Entity tag of the response.
    pub etag: Option<String>,
    /// Last-Modified as the server wrote it.
    pub last_modified: Option<String>,
    /// Body bytes on the wire.
    pub wire_bytes: u64,
    /// Whether a bound or a broken connection cut the body.
    pub truncated: bool,
    /// The archive file with its record.
    pub warc_file: Option<String>,
    /// Where in it the record begins.
    pub warc_offset: Option<u64>,
    /// Bytes of the record there.
    pub warc_length: Option<u64>,
    /// WARC-Record-ID of the record, for formats that refer to it.
    #[serde(skip)]
    pub record_id: Option<String>,
    /// ISO 639-3 code of the language, where it was detected.
    #[serde(skip)]
    pub language3: Option<&'static str>,
    /// Whether there should have been a body and none could be read.
    #[serde(skip)]
    pub body_missing: bool,
}

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowLink {
    /// Where it leads, canonical.
    pub url: String,
    /// What it says.
    pub text: String,
    /// Its rel attribute.
    pub rel: Option<String>,
    /// How it was marked up: a, area, link, frame, iframe, image, script, refresh, redirect, sitemap, listed, entry, other.
    pub kind: &'static str,
    /// Whether the page does not vouch for it (nofollow, ugc, sponsored).
    pub nofollow: bool,
}

fn rfc3339<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// Memory and settings of one thread that makes rows.
pub(crate) struct Maker<'a> {
    options: &'a Options,
    bodies: &'a Bodies,
    parse: ParseOptions,
    normalizer: Normalizer,
    extractor: Extractor,
    page: Page,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(options: &'a Options, bodies: &'a Bodies) -> Maker<'a> {
        let mut parse = options.parse.clone();
        parse.extract.text = options.text;
        parse.extract.main_text = options.text;
        parse.extract.markdown = options.text;
        parse.detect_language = options.text;
        let normalizer = Normalizer::new(&options.normalize);
        Maker { options, bodies, parse, normalizer, extractor: Extractor::new(), page: Page::default() }
    }

    /// The row of a visit, or nothing if it is not wanted after all.
    pub(crate) fn make(&mut self, item: &Item, visit: &VisitRecord) -> Option<Row> {
        if self.options.filter.since.is_some_and(|since| visit.started < since) {
            return None;
        }
        let mut row = known(visit);
        if let Some(place) = &visit.archived {
            row.warc_file = self.bodies.name(place.file);
            row.warc_offset = Some(place.offset);
            row.warc_length = Some(u64::from(place.first));
        }
        let capture = visit.archived.as_ref().filter(|_| visit.is_page());
        let read = capture.and_then(|own| self.bodies.read(own, item.body.as_ref()));
        row.body_missing = capture.is_some() && read.is_none();
        let kind = match &read {
            Some(capture) => self.read_body(&mut row, visit, capture),
            None => None,
        };
        row.kind = kind;
        if !self.options.filter.wants_kind(kind) {
            return None;
        }
        if kind.is_none() && self.options.links {
            row.links = Some(visit.links.iter().map(logged_link).collect());
        }
        if !self.options.links {
            row.links = None;
        }
        Some(row)
    }

    fn read_body(&mut self, row: &mut Row, visit: &VisitRecord, capture: &Capture) -> Option<MediaKind> {
        row.record_id.clone_from(&capture.id);
        let codings = capture.head.get("Content-Encoding").unwrap_or_default();
        let decoded = coding::decode(codings, &capture.body, &self.options.decode);
        let content_type = Some(&*visit.media_type).filter(|t| !t.is_empty());
        let page = &mut self.page;
        let mut body = Body::new(&decoded.body, content_type, self.parse.nosniff);
        body.url = Some(visit.entry.url.as_str());
        self.options.formats.read_into(&body, &mut self.extractor, &self.parse, page);
        row.charset = some(page.charset);
        row.language = page.best_language().or(row.language.take());
        row.language3 = page.language.map(|l| l.code3);
        row.title = page.title.clone().filter(|t| !t.is_empty());
        row.description = page.description.clone();
        let own = self.normalizer.own_base(&visit.entry.url);
        let base = page.base.as_deref().and_then(|href| self.normalizer.base(href, Some(&own)).ok()).unwrap_or(own);
        let resolve = |href: &str| self.normalizer.normalize(href, Some(&base)).ok().map(String::from);
        // A page that wants no copies to be shown is told of, but not given away.
        if self.options.text && visit.directives.noarchive.is_none() {
            // A page of a few words has no main text apart from them.
            row.text = some(&page.main_text).or_else(|| some(&page.text));
            row.markdown = some(&page.markdown).or_else(|| row.text.clone());
            row.structured = (!page.structured.is_empty()).then(|| page.structured.clone());
        }
        if self.options.links {
            let links = page.links.iter().filter_map(|link| {
                Some(RowLink {
                    url: resolve(link.href)?,
                    text: link.text.to_string(),
                    rel: some(link.rel),
                    kind: LinkKind::from(link.tag).name(),
                    nofollow: link.flags.is_unvouched(),
                })
            });
            let refresh = page.refresh.as_ref().and_then(|r| resolve(&r.href));
            let refresh = refresh.map(|url| RowLink {
                url,
                text: String::new(),
                rel: None,
                kind: LinkKind::Refresh.name(),
                nofollow: false,
            });
            row.links = Some(links.chain(refresh).collect());
        }
        Some(page.kind)
    }
}

/// What the log alone says.
fn known(visit: &VisitRecord) -> Row {
    let redirect = visit.links.iter().find(|l| l.kind == LinkKind::Redirect);
    Row {
        url: visit.entry.url.as_str().to_string(),
        fetched: visit.started,
        status: Some(visit.status).filter(|s| *s != 0),
        outcome: visit.outcome.name(),
        detail: some(&visit.detail),
        redirect: redirect.filter(|_| visit.outcome == Outcome::Redirect).map(|l| l.url.as_str().to_string()),
        redirects: u32::from(visit.entry.redirects),
        depth: visit.entry.depth,
        seed: visit.entry.seed,
        media_type: some(&visit.media_type),
        title: some(&visit.title),
        language: some(&visit.language),
        canonical: visit.canonical.as_ref().map(|url| url.as_str().to_string()),
        robots: visit.directives.iter().map(|(directive, _)| directive).collect(),
        digest: visit.digest.map(|d| Digest(d).to_string()),
        fingerprint: Some(visit.fingerprint).filter(|f| *f != 0).map(|f| format!("{f:016x}")),
        duplicate_of: visit.duplicate_of.as_deref().map(String::from),
        etag: visit.validators.etag.as_deref().map(String::from),
        last_modified: visit.validators.last_modified.as_deref().map(String::from),
        wire_bytes: visit.wire_bytes,
        truncated: visit.truncated,
        ..Row::default()
    }
}

fn some(text: &str) -> Option<String> {
    Some(text).filter(|t| !t.is_empty()).map(String::from)
}

fn logged_link(link: &rhumb_core::visit::Outlink) -> RowLink {
    RowLink {
        url: link.url.as_str().to_string(),
        text: link.text.to_string(),
        rel: None,
        kind: link.kind.name(),
        nofollow: link.rel.is_unvouched(),
    }
}
