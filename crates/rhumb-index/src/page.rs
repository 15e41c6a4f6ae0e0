//! A page as the index takes it in, and what becomes of it: fields of a tantivy document.

use std::ops::Range;

use tantivy::TantivyDocument;

use crate::analysis::Analyzer;
use crate::analysis::encode::Terms;
use crate::analysis::language::Lang;
use crate::schema::Fields;

/// Words of an address that are indexed.
const ADDRESS_BYTES_MAX: usize = 512;

/// What is noted of pages: a copy can be shown; nothing of the text may be shown.
pub(crate) const CACHED: u64 = 1;
pub(crate) const NO_SNIPPET: u64 = 2;

/// A page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page<'a> {
    /// Fingerprint of its address. Two pages with the same one are the same page.
    pub id: u64,
    /// Where its visit lies in the log.
    pub visit: u64,
    /// Its address.
    pub url: &'a str,
    /// Its title.
    pub title: &'a str,
    /// What it says of itself.
    pub description: &'a str,
    /// Its main text.
    pub text: &'a str,
    /// Parts of the text that are headings, in order.
    pub headings: &'a [Range<usize>],
    /// Parts of the text that are emphasised, in order.
    pub emphasis: &'a [Range<usize>],
    /// The language that it declares.
    pub declared: &'a str,
    /// What it is: html, pdf, text, …
    pub kind: &'a str,
    /// When it was changed, in milliseconds since 1970.
    pub date_ms: i64,
    /// When it was fetched.
    pub fetched_ms: i64,
    /// Whether nothing of its text may be shown.
    pub no_snippet: bool,
    /// Whether a copy of it can be shown.
    pub cached: bool,
}

/// How often a word counts, by where it stands. They are part of the index: other weights need another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// In the title.
    pub title: u8,
    /// In a heading.
    pub heading: u8,
    /// Emphasised.
    pub emphasis: u8,
    /// In the address.
    pub address: u8,
    /// In the description.
    pub description: u8,
    /// Elsewhere in the text.
    pub body: u8,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { title: 6, heading: 3, emphasis: 2, address: 2, description: 1, body: 1 }
    }
}

/// Memory for making documents.
#[derive(Default)]
pub struct Maker {
    pub(crate) analyzer: Analyzer,
    text: Terms,
    title: Terms,
    address: Terms,
    sites: String,
}

impl Maker {
    /// Makes a document of a page, and tells its language.
    pub(crate) fn make(&mut self, page: &Page<'_>, weights: &Weights, fields: &Fields) -> (TantivyDocument, Lang) {
        let lang = Lang::detect(page.text, page.declared);
        let Maker { analyzer, text, title, address, sites } = self;
        text.clear();
        title.clear();
        address.clear();
        analyzer.terms(lang, page.title, |term, _| {
            title.push(term, 1);
            text.push(term, weights.title);
        });
        text.gap();
        let (mut headings, mut emphasis) = (Marks::new(page.headings), Marks::new(page.emphasis));
        analyzer.terms(lang, page.text, |term, piece| {
            let weight = match () {
                () if headings.has(piece.start) => weights.heading,
                () if emphasis.has(piece.start) => weights.emphasis,
                () => weights.body,
            };
            text.push(term, weight);
        });
        if weights.description > 0 && !page.description.is_empty() {
            text.gap();
            analyzer.terms(lang, page.description, |term, _| text.push(term, weights.description));
        }
        text.gap();
        let (host, path) = parts(page.url);
        // Words of addresses have no language. The port is none: a path follows its host, as it is asked for.
        for words in [host, &decoded(crate::cut(path, ADDRESS_BYTES_MAX))] {
            analyzer.terms(Lang::default(), words, |term, _| {
                address.push(term, 1);
                if !matches!(term, "www" | "html" | "htm" | "php" | "index" | "com" | "org" | "net") {
                    text.push(term, weights.address);
                }
            });
        }
        sites.clear();
        push_sites(host, sites);
        let mut doc = TantivyDocument::default();
        doc.add_text(fields.text, text.as_str());
        doc.add_text(fields.title, title.as_str());
        doc.add_text(fields.address, address.as_str());
        doc.add_text(fields.site, sites.as_str());
        doc.add_text(fields.lang, lang_code(lang, page.declared));
        doc.add_text(fields.kind, page.kind);
        doc.add_text(fields.shown_url, page.url);
        doc.add_text(fields.shown_title, page.title);
        doc.add_u64(fields.id, page.id);
        doc.add_u64(fields.visit, page.visit);
        doc.add_u64(fields.host, xxhash_rust::xxh3::xxh3_64(host.as_bytes()));
        doc.add_i64(fields.date, page.date_ms);
        doc.add_i64(fields.fetched, page.fetched_ms);
        doc.add_u64(fields.flags, (u64::from(page.cached) * CACHED) | (u64::from(page.no_snippet) * NO_SNIPPET));
        (doc, lang)
    }
}

/// The code of a language that we know, else of the one that was declared.
fn lang_code(lang: Lang, declared: &str) -> &str {
    match lang.code() {
        "" => declared.split(['-', '_']).next().unwrap_or_default(),
        code => code,
    }
}

/// Host and path of an address.
pub fn parts(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let end = if host.starts_with('[') {
        host.find(']').map_or(host.len(), |i| i + 1)
    } else {
        host.find(':').unwrap_or(host.len())
    };
    (&host[..end], path)
}

/// A host and the domains above it, as terms.
fn push_sites(host: &str, into: &mut String) {
    let mut rest = host;
    loop {
        if !rest.is_empty() && rest.len() <= 253 {
            into.push_str(rest);
            into.push(' ');
        }
        match rest.split_once('.') {
            // Parts of an address are no domains.
            Some((_, above)) if !host.starts_with('[') && !host.ends_with(|c: char| c.is_ascii_digit()) => rest = above,
            _ => break,
        }
    }
}

/// A URL's text with its percent signs undone, as far as they make sense.
pub(crate) fn decoded(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |i: usize| bytes.get(i).and_then(|b| (*b as char).to_digit(16));
        if bytes[at] == b'%'
            && let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2))
        {
            plain.push((high * 16 + low) as u8);
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&plain).into_owned().into()
}

/// Spans that are passed in order.
struct Marks<'a> {
    rest: std::slice::Iter<'a, Range<usize>>,
    current: Range<usize>,
}

impl<'a> Marks<'a> {
    fn new(spans: &'a [Range<usize>]) -> Marks<'a> {
        let mut rest = spans.iter();
        let current = rest.next().cloned().unwrap_or(usize::MAX..usize::MAX);
        Marks { rest, current }
    }

    /// Whether a place is in one of them. Places are asked for in ascending order.
    fn has(&mut self, at: usize) -> bool {
        while at >= self.current.end {
            self.current = self.rest.next().cloned().unwrap_or(usize::MAX..usize::MAX);
        }
        self.current.start <= at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let check = |url: &str, host: &str, path: &str, sites: &str| {
            let mut found = String::new();
            push_sites(parts(url).0, &mut found);
            assert_eq!((parts(url), found.trim_end()), ((host, path), sites), "{url}");
        };
        check(
            "https://www.example.co.uk:8080/a/b?c",
            "www.example.co.uk",
            "/a/b?c",
            "www.example.co.uk example.co.uk co.uk uk",
        );
        check("http://u:p@example.org", "example.org", "", "example.org org");
        check("http://127.0.0.1:80/x", "127.0.0.1", "/x", "127.0.0.1");
        check("http://[::1]:80/x", "[::1]", "/x", "[::1]");
        check("file:///a/b.html", "", "/a/b.html", "");
        assert_eq!(decoded("a%20b%E6%9D%B1%zz"), "a b東%zz");
    }

    #[test]
    fn words_count_by_where_they_stand() {
        let fields = Fields::default();
        let mut maker = Maker::default();
        let text = "Big heading\nplain strong words";
        let page = Page {
            url: "http://a.example/news-page.html",
            title: "Title",
            text,
            headings: std::slice::from_ref(&(0..11)),
            emphasis: std::slice::from_ref(&(18..24)),
            declared: "en",
            ..Page::default()
        };
        maker.make(&page, &Weights::default(), &fields);
        let expected = "\u{6}titl \u{1f}\u{3}big head \u{1}plain \u{2}strong \u{1}word \u{1f}\u{2}a example news page ";
        assert_eq!(maker.text.as_str(), expected);
        assert_eq!(maker.sites, "a.example example ");
    }
}
