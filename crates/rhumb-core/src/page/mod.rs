//! Pages: from the bytes a server sent to text, links and what the page says about itself.
//!
//! The way of a body: `coding.rs` undoes Content-Encoding, `sniff.rs` decides what kind of thing it is, `encoding.rs` turns
//! bytes into characters, `html.rs` walks over the tokens of `tokenize.rs` and fills a [`Page`]. `report.rs` is what
//! `rhumb parse` prints. Reading order: this file, `html.rs`, `tokenize.rs`.
//!
//! Invariant: no input makes any of these fail, take more than linear time, or keep more memory than its bounds allow.
//! A page that is broken is a page of which we understood less.

mod charref;
pub mod coding;
pub mod encoding;
mod entities;
mod gist;
mod html;
mod links;
mod main_text;
mod meta;
mod report;
#[cfg(test)]
mod samples;
pub mod sniff;
mod tag;
mod text;
mod tokenize;

use std::ops::Range;

pub use gist::Gist;
pub use html::{ExtractOptions, Extractor};
pub use links::{Link, LinkTag, Links};
pub use meta::{Refresh, Rel, RobotsDirectives};
pub use report::{ParseReport, ReportLink};
pub use sniff::MediaKind;
pub(crate) use text::cut;

/// A heading: its level from 1 to 6 and where it lies in the page's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    /// 1 for `<h1>`.
    pub level: u8,
    /// Where in [`Page::text`].
    pub span: Range<usize>,
}

/// What was found on a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// What kind of thing the body was.
    pub kind: MediaKind,
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
    pub meta_robots: Vec<String>,
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
    pub fn robots_directives(&self) -> RobotsDirectives {
        RobotsDirectives::of(self.meta_robots.iter().map(String::as_str))
    }

    /// The headings with their text.
    pub fn headings(&self) -> impl Iterator<Item = (u8, &str)> {
        self.headings.iter().map(|h| (h.level, &self.text[h.span.clone()]))
    }

    /// The texts of the emphasised spans.
    pub fn emphasised(&self) -> impl Iterator<Item = &str> {
        self.emphasis.iter().map(|span| &self.text[span.clone()])
    }

    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        let Page { mut links, mut text, mut main_text, mut markdown, mut headings, mut emphasis, .. } =
            std::mem::take(self);
        links.clear();
        text.clear();
        main_text.clear();
        markdown.clear();
        headings.clear();
        emphasis.clear();
        *self = Page { links, text, main_text, markdown, headings, emphasis, ..Page::default() };
    }
}

/// Parses a decoded body (see [`coding::decode`]).
pub fn parse_page(bytes: &[u8], content_type: Option<&str>, options: &ParseOptions) -> Page {
    let mut page = Page::default();
    parse_page_into(&mut Extractor::new(), bytes, content_type, options, &mut page);
    page
}

/// Parses a decoded body into a page that is cleared first, with an extractor that keeps its memory.
pub fn parse_page_into(
    extractor: &mut Extractor,
    bytes: &[u8],
    content_type: Option<&str>,
    options: &ParseOptions,
    page: &mut Page,
) {
    let kind = sniff::sniff(bytes, content_type, options.nosniff);
    let charset = content_type.and_then(sniff::charset_of);
    match kind {
        MediaKind::Html | MediaKind::Xhtml => {
            let (html, name) = encoding::decode_html(bytes, charset, options.tld.as_deref());
            extractor.extract_markup(&html, &options.extract, kind == MediaKind::Xhtml, page);
            page.charset = name;
        }
        MediaKind::Text | MediaKind::Xml => {
            page.clear();
            let (text, name) = encoding::decode_text(bytes, charset, options.tld.as_deref());
            let kept = text::cut(&text, options.extract.text_bytes_max);
            page.truncated = kept.len() < text.len();
            page.charset = name;
            if kind == MediaKind::Text && options.extract.text {
                page.text.push_str(kept);
                if options.extract.main_text {
                    page.main_text.push_str(kept);
                    if options.extract.markdown {
                        main_text::markdown_of_text(kept, &mut page.markdown);
                    }
                }
            }
            page.gist = extractor.gist_of_text(kept);
        }
        MediaKind::Image | MediaKind::Pdf | MediaKind::Media | MediaKind::Archive | MediaKind::Binary => page.clear(),
    }
    page.kind = kind;
    if options.detect_language {
        // Menus are often in another language than the text, or in none.
        page.language = detect_language(if page.main_text.is_empty() { &page.text } else { &page.main_text });
    }
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
