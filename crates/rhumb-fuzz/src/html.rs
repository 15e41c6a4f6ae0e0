//! Pages: content codings, encodings, extraction.
//!
//! Input: a line with the Content-Type, a line with the Content-Encoding, then the body as sent.

use rhumb_core::page::coding::{DecodeLimits, decode};
use rhumb_core::page::{
    ExtractOptions, Extractor, Page, PageText, ParseOptions, ParseReport, SiteTemplate, parse_page, parse_page_into,
};
use rhumb_store::codec::Take;

use crate::line;

/// Small bounds, so that they are met.
fn options() -> ParseOptions {
    let extract = ExtractOptions {
        resources: true,
        main_text: true,
        markdown: true,
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
    let mut without_bounds = ParseOptions::default();
    (without_bounds.extract.main_text, without_bounds.extract.markdown) = (true, true);
    let plain = parse_page(body, content_type, &without_bounds);
    check(&plain, &without_bounds.extract);
    // A line of markdown stands behind the marks of at most a dozen quotes and lists.
    assert!(
        plain.markdown.len() <= 64 * body.len() + 64,
        "{} bytes make {} of markdown",
        body.len(),
        plain.markdown.len()
    );
    let bare = parse_page(body, content_type, &ParseOptions::default());
    assert_eq!((&bare.text, &bare.links), (&plain.text, &plain.links), "main text changes nothing else");
    template_keeps_to_its_bounds(body, content_type, &without_bounds);
    let said: usize = plain.links.iter().map(|l| l.href.len() + l.text.len()).sum();
    assert!(plain.text.len() + said <= 8 * body.len() + 64, "{} bytes say {} and {said}", body.len(), plain.text.len());
}

/// A template takes any page, is saved and read back, and never takes the last word from a page.
fn template_keeps_to_its_bounds(body: &[u8], content_type: Option<&str>, options: &ParseOptions) {
    let (mut extractor, mut page) = (Extractor::new(), Page::default());
    extractor.use_template(SiteTemplate::new());
    for half in [body, &body[..body.len() / 2], &body[body.len() / 2..], body] {
        parse_page_into(&mut extractor, half, content_type, options, &mut page);
        check(&page, &options.extract);
    }
    let template = extractor.take_template().expect("a template was in use");
    let mut bytes = Vec::new();
    template.put(&mut bytes);
    assert!(bytes.len() <= SiteTemplate::BYTES_MAX, "{} bytes", bytes.len());
    assert_eq!(SiteTemplate::take(&mut Take::new(&bytes)), Ok(template));
    // Bytes of anybody's make a template or an error, never a panic.
    if let Ok(foreign) = SiteTemplate::take(&mut Take::new(body)) {
        extractor.use_template(foreign);
        parse_page_into(&mut extractor, body, content_type, options, &mut page);
        check(&page, &options.extract);
    }
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
    assert_eq!(
        page.main_text.is_empty(),
        page.text.is_empty() || !bounds.main_text,
        "a page with text has a main text"
    );
    assert!(page.main_text.len() <= page.text.len(), "main text is part of the text");
    assert!(page.markdown.len() <= 2 * bounds.text_bytes_max.max(64), "markdown of {} bytes", page.markdown.len());
    let mut rest = page.text.as_str();
    for line in page.main_text.lines() {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is not in the text, or not in its place"));
        rest = &rest[at + line.len()..];
    }
    // Slicing checks that spans lie in the text, on characters.
    let spans = page.headings.iter().map(|h| &h.span).chain(&page.emphasis);
    assert!(spans.into_iter().all(|span| page.text.get(span.clone()).is_some()), "a span outside the text");
    assert!(page.headings.is_sorted_by_key(|h| h.span.start) && page.emphasis.is_sorted_by_key(|s| s.start));
    let said = PageText::of(page);
    assert_eq!(PageText::take(&said.to_bytes()).as_ref(), Ok(&said), "what a page says is read as it was written");
    // Marks keep their order and their words on the way to the main text.
    let mut marks = page.emphasised();
    assert!(said.emphasised().all(|word| marks.any(|mark| mark == word)), "emphasis that the page does not have");
    let mut marks = page.headings();
    assert!(said.headings().all(|words| marks.any(|mark| mark == words)), "a heading that the page does not have");
}
