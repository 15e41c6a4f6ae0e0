//! Pages: from the bytes a server sent to text, links and what the page says about itself.
//!
//! The way of a body: `coding.rs` undoes Content-Encoding, `sniff.rs` decides what kind of thing it is, `encoding.rs` turns
//! bytes into characters, and the [`Format`] that claims the body fills a [`Page`]: for HTML that is `html.rs`, which walks over the
//! tokens of `tokenize.rs`. `report.rs` is what `rhumb parse` prints, `said.rs` what the visit log keeps of a page. Reading order: this
//! file, `format/mod.rs`, `html.rs`, `tokenize.rs`.
//!
//! Invariant: no input makes any of these fail, take more than linear time, or keep more memory than its bounds allow.
//! A page that is broken is a page of which we understood less.

mod charref;
pub mod coding;
mod directives;
pub mod encoding;
mod entities;
pub mod format;
mod gist;
mod html;
mod links;
mod main_text;
mod meta;
mod report;
mod said;
#[cfg(test)]
mod samples;
pub mod sniff;
mod tag;
mod text;
mod tokenize;

use std::ops::Range;

pub use directives::{Channel, Directives, Obedience};
pub use format::{Body, Format, Formats};
pub use gist::Gist;
pub use html::{ExtractOptions, Extractor};
pub use links::{Link, LinkTag, Links};
pub use main_text::SiteTemplate;
pub use meta::{Refresh, Rel};
pub use report::{ParseReport, ReportLink};
pub use said::PageText;
pub use sniff::MediaKind;
pub(crate) use text::cut;

/// A heading: its level from 1 to 6 and where it lies in the page's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    /// 1 for `<h1>`.
    pub level: u8,
    /// Where in [`Page::text`], or in [`PageText::text`].
    pub span: Range<usize>,
}

/// A meta element that speaks to robots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaRobots {
    /// Its `content`.
    pub content: String,
    /// Whether it names our agent instead of all robots.
    pub for_agent: bool,
}

/// What a feed or sitemap says of one of its links.
#[derive(Clone, PartialEq, Debug)]
pub struct Hint {
    /// Which of [`Page::links`].
    pub link: usize,
    /// When it changed, as written; [`crate::dates::parse`] reads it.
    pub lastmod: Option<String>,
    /// How often it changes.
    pub changefreq: Option<String>,
    /// From 0 to 1.
    pub priority: Option<f32>,
}

/// Pieces of structured data kept of one page.
const STRUCTURED_MAX: usize = 32;
/// Bytes of structured data kept of one page.
const STRUCTURED_BYTES_MAX: usize = 256 << 10;

/// What was found on a page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// What kind of thing the body was.
    pub kind: MediaKind,
    /// The name of the format that it was read as; empty when nobody could read it.
    pub format: &'static str,
    /// The character encoding it was read in; empty when it was not text.
    pub charset: &'static str,
    /// The first `<title>`, collapsed.
    pub title: Option<String>,
    /// The first `<base href>`, as written.
    pub base: Option<String>,
    /// The links, as written; resolve them against [`Page::document_base`].
    pub links: Links,
    /// Links left out because there were too many or they were too long.
    pub links_dropped: usize,
    /// The visible text: blocks on lines of their own, white space collapsed.
    pub text: String,
    /// The main text: `text` without menus, sidebars, footers and their like, when asked for.
    pub main_text: String,
    /// Where the pieces of `main_text` lie in `text`; each begins a line there.
    pub main_pieces: Vec<Range<usize>>,
    /// The main text as CommonMark, when asked for.
    pub markdown: String,
    /// The headings in `text`, in order.
    pub headings: Vec<Heading>,
    /// The outermost emphasised spans (b, strong, em, i, mark) of `text`, in order.
    pub emphasis: Vec<Range<usize>>,
    /// The `lang` of `<html>`.
    pub html_lang: Option<String>,
    /// The language found in the text, when asked for.
    pub language: Option<Language>,
    /// The contents of `<meta name=robots>` and of those that name our agent.
    pub meta_robots: Vec<MetaRobots>,
    /// The first `<link rel=canonical>`, as written.
    pub canonical: Option<String>,
    /// The first `<meta name=description>`, collapsed.
    pub description: Option<String>,
    /// The first `<meta http-equiv=refresh>` that leads elsewhere.
    pub refresh: Option<Refresh>,
    /// Translations: language tag and address as written.
    pub hreflang: Vec<(String, String)>,
    /// What the text says in a few phrases, if [`Extractor::want_gist`] asked for it.
    pub gist: Gist,
    /// Whether a bound cut something off.
    pub truncated: bool,
    /// What a feed or sitemap says of its links, in their order.
    pub hints: Vec<Hint>,
    /// Structured data (JSON-LD) as written, each piece a JSON document.
    pub structured: Vec<String>,
    /// What of it could not be read, in a few words.
    pub trouble: Option<String>,
}

/// A language, as ISO 639 names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Language {
    /// Two letters where the language has them, otherwise three.
    pub code: &'static str,
    /// Three letters.
    pub code3: &'static str,
    /// Whether the detector would bet on it.
    pub is_reliable: bool,
}

/// How to parse a body.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParseOptions {
    /// What to extract from HTML.
    pub extract: ExtractOptions,
    /// The server said `X-Content-Type-Options: nosniff`.
    pub nosniff: bool,
    /// The last label of the host, which hints at legacy encodings.
    pub tld: Option<String>,
    /// Detect the language of the text, too.
    pub detect_language: bool,
}

/// How much text the language detector sees; more does not change its mind.
const LANGUAGE_BYTES_MAX: usize = 2 << 10;

impl Page {
    /// The address against which links resolve: `<base href>` resolved against the page's own, if it is fit for that.
    pub fn document_base(&self, own: &url::Url) -> url::Url {
        let base = self.base.as_deref().and_then(|href| own.join(href).ok());
        // A data: or javascript: base is ignored by browsers; one that cannot be a base would resolve nothing.
        base.filter(|b| !matches!(b.scheme(), "data" | "javascript") && !b.cannot_be_a_base())
            .unwrap_or_else(|| own.clone())
    }

    /// What the page's robots meta elements ask of us, taken together.
    pub fn directives(&self) -> Directives {
        let mut all = Directives::default();
        self.meta_robots.iter().for_each(|m| all.read_meta(&m.content, m.for_agent));
        all
    }

    /// The language that the page declares, as two or three letters.
    pub fn declared_language(&self) -> Option<String> {
        let declared = self.html_lang.as_deref().and_then(|tag| tag.split(['-', '_']).next())?.to_ascii_lowercase();
        let is_code = (2..=3).contains(&declared.len()) && declared.bytes().all(|b| b.is_ascii_lowercase());
        is_code.then_some(declared)
    }

    /// The headings with their text.
    pub fn headings(&self) -> impl Iterator<Item = (u8, &str)> {
        self.headings.iter().map(|h| (h.level, &self.text[h.span.clone()]))
    }

    /// The texts of the emphasised spans.
    pub fn emphasised(&self) -> impl Iterator<Item = &str> {
        self.emphasis.iter().map(|span| &self.text[span.clone()])
    }

    /// Keeps a piece of structured data, if it is JSON and there is room; whether it was kept.
    pub fn keep_structured(&mut self, json: &str) -> bool {
        let json = json.trim();
        let bytes: usize = self.structured.iter().map(String::len).sum();
        let fits = self.structured.len() < STRUCTURED_MAX && bytes + json.len() <= STRUCTURED_BYTES_MAX;
        let kept = fits && serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok();
        if kept {
            self.structured.push(json.to_owned());
        }
        kept
    }

    /// The language: as detected if that is reliable, else as `<html lang>` says, else as detected after all.
    pub fn best_language(&self) -> Option<String> {
        match self.language {
            Some(found) if found.is_reliable => Some(found.code.to_owned()),
            found => self.declared_language().or(found.map(|l| l.code.to_owned())),
        }
    }

    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        let Page {
            mut links, mut text, mut main_text, mut main_pieces, mut markdown, mut headings, mut emphasis, ..
        } = std::mem::take(self);
        links.clear();
        text.clear();
        main_text.clear();
        main_pieces.clear();
        markdown.clear();
        headings.clear();
        emphasis.clear();
        *self = Page { links, text, main_text, main_pieces, markdown, headings, emphasis, ..Page::default() };
    }
}

/// Parses a decoded body (see [`coding::decode`]).
pub fn parse_page(bytes: &[u8], content_type: Option<&str>, options: &ParseOptions) -> Page {
    let mut page = Page::default();
    parse_page_into(&mut Extractor::new(), bytes, content_type, options, &mut page);
    page
}

/// Parses a decoded body with the formats known here into a page that is cleared first, with an extractor that keeps its memory.
pub fn parse_page_into(
    extractor: &mut Extractor,
    bytes: &[u8],
    content_type: Option<&str>,
    options: &ParseOptions,
    page: &mut Page,
) {
    let body = Body::new(bytes, content_type, options.nosniff);
    Formats::default().read_into(&body, extractor, options, page);
}

/// The language that a text is written in, judged by its beginning.
pub fn detect_language(text: &str) -> Option<Language> {
    let info = whatlang::detect(text::cut(text, LANGUAGE_BYTES_MAX))?;
    let code3 = info.lang().code();
    Some(Language { code: two_letters(code3).unwrap_or(code3), code3, is_reliable: info.is_reliable() })
}

/// ISO 639-3 to 639-1, for the languages that the detector knows. It speaks of `cmn` where others say `zh`.
fn two_letters(code3: &str) -> Option<&'static str> {
    #[rustfmt::skip]
    const CODES: [(&str, &str); 70] = [
        ("afr", "af"), ("aka", "ak"), ("amh", "am"), ("ara", "ar"), ("aze", "az"), ("bel", "be"), ("ben", "bn"),
        ("bul", "bg"), ("cat", "ca"), ("ces", "cs"), ("cmn", "zh"), ("cym", "cy"), ("dan", "da"), ("deu", "de"),
        ("ell", "el"), ("eng", "en"), ("epo", "eo"), ("est", "et"), ("fin", "fi"), ("fra", "fr"), ("guj", "gu"),
        ("heb", "he"), ("hin", "hi"), ("hrv", "hr"), ("hun", "hu"), ("hye", "hy"), ("ind", "id"), ("ita", "it"),
        ("jav", "jv"), ("jpn", "ja"), ("kan", "kn"), ("kat", "ka"), ("khm", "km"), ("kor", "ko"), ("lat", "la"),
        ("lav", "lv"), ("lit", "lt"), ("mal", "ml"), ("mar", "mr"), ("mkd", "mk"), ("mya", "my"), ("nep", "ne"),
        ("nld", "nl"), ("nob", "nb"), ("ori", "or"), ("pan", "pa"), ("pes", "fa"), ("pol", "pl"), ("por", "pt"),
        ("ron", "ro"), ("rus", "ru"), ("sin", "si"), ("slk", "sk"), ("slv", "sl"), ("sna", "sn"), ("spa", "es"),
        ("srp", "sr"), ("swe", "sv"), ("tam", "ta"), ("tel", "te"), ("tgl", "tl"), ("tha", "th"), ("tuk", "tk"),
        ("tur", "tr"), ("ukr", "uk"), ("urd", "ur"), ("uzb", "uz"), ("vie", "vi"), ("yid", "yi"), ("zul", "zu"),
    ];
    CODES.iter().find(|(three, _)| *three == code3).map(|(_, two)| *two)
}
