//! Pages: content codings, encodings, extraction.
//!
//! Input: a line with the Content-Type, a line with the Content-Encoding, then the body as sent.

use rhumb_core::page::coding::{DecodeLimits, decode};
use rhumb_core::page::{ExtractOptions, Extractor, Page, ParseOptions, ParseReport, parse_page, parse_page_into};

use crate::line;

/// Small bounds, so that they are met.
fn options() -> ParseOptions {
    let extract = ExtractOptions {
        resources: true,
        links_max: 20,
        text_bytes_max: 500,
        title_bytes_max: 40,
        anchor_bytes_max: 30,
        href_bytes_max: 100,
        value_bytes_max: 80,
        marks_max: 10,
        metas_max: 3,
        attributes_max: 8,
        ..ExtractOptions::default()
    };
    ParseOptions { extract, ..ParseOptions::default() }
}

/// Decoding and extraction keep to their bounds; what is found lies where it is said to lie; an extractor remembers nothing of
/// the page before; without bounds the output is linear in the input.
pub fn run(data: &[u8]) {
    let (content_type, rest) = line(data);
    let (codings, wire) = line(rest);
    let (content_type, codings) = (String::from_utf8_lossy(content_type), String::from_utf8_lossy(codings));
    let content_type = Some(&*content_type).filter(|t| !t.is_empty());

    let limits = DecodeLimits { decoded_bytes_max: 64 << 10, ..DecodeLimits::default() };
    let decoded = decode(&codings, wire, &limits);
    assert!(decoded.body.len() <= limits.decoded_bytes_max, "{:?}", decoded.problem);
    let narrow = DecodeLimits { decoded_bytes_max: 100, ..limits };
    let begun = decode(&codings, wire, &narrow);
    assert!(begun.body.len() <= narrow.decoded_bytes_max, "{:?}", begun.problem);
    if decoded.problem.is_none() && codings.matches(',').count() == 0 {
        assert!(decoded.body.starts_with(&begun.body), "less room gives less of the same");
    }

    let options = options();
    let body = &decoded.body;
    let page = parse_page(body, content_type, &options);
    check(&page, &options.extract);

    let mut extractor = Extractor::new();
    let mut again = Page::default();
    parse_page_into(&mut extractor, b"<title>x<a href=y rel=z>q<h1>", Some("text/html"), &options, &mut again);
    parse_page_into(&mut extractor, body, content_type, &options, &mut again);
    assert_eq!(again, page, "an extractor remembers nothing of the page before");

    let own = url::Url::parse("http://h.example/d/p?q").expect("a URL");
    let report = ParseReport::new(&page, &own);
    assert!(report.links.iter().all(|l| l.url.starts_with("http://") || l.url.starts_with("https://")));

    // Without bounds of ours, a page says no more than was written: a byte becomes at most three (U+FFFD), a character reference at
    // most what its longest expansion has, and anchor texts are cut from the page once.
    let plain = parse_page(body, content_type, &ParseOptions::default());
    check(&plain, &ParseOptions::default().extract);
    let said: usize = plain.links.iter().map(|l| l.href.len() + l.text.len()).sum();
    assert!(plain.text.len() + said <= 8 * body.len() + 64, "{} bytes say {} and {said}", body.len(), plain.text.len());
}

fn check(page: &Page, bounds: &ExtractOptions) {
    assert!(page.links.len() <= bounds.links_max);
    assert!(page.text.len() <= bounds.text_bytes_max);
    assert!(page.title.as_ref().is_none_or(|t| t.len() <= bounds.title_bytes_max));
    assert!(page.headings.len() <= bounds.marks_max && page.emphasis.len() <= bounds.marks_max);
    assert!(page.meta_robots.len() <= bounds.metas_max && page.hreflang.len() <= bounds.metas_max * 8);
    for link in page.links.iter() {
        assert!(link.href.len() <= 3 * bounds.href_bytes_max, "{}", link.href);
        assert!(link.text.len() <= bounds.anchor_bytes_max.max(bounds.value_bytes_max), "{:?}", link.text);
    }
    // Slicing checks that spans lie in the text, on characters.
    let spans = page.headings.iter().map(|h| &h.span).chain(&page.emphasis);
    assert!(spans.into_iter().all(|span| page.text.get(span.clone()).is_some()), "a span outside the text");
    assert!(page.headings.is_sorted_by_key(|h| h.span.start) && page.emphasis.is_sorted_by_key(|s| s.start));
}
