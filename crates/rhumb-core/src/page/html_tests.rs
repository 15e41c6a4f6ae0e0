//! What the extractor makes of pages good, bad and hostile.

use proptest::prelude::*;

use super::super::{Rel, samples};
use super::*;

fn extract(html: &str) -> Page {
    Extractor::new().extract(html, &ExtractOptions::default())
}

fn links(html: &str, expected: &[(&str, &str)]) {
    let page = extract(html);
    let found: Vec<_> = page.links.iter().map(|l| (l.href, l.text)).collect();
    assert_eq!(found, expected, "{html}");
}

#[test]
fn links_and_their_texts() {
    links("<a href=x>one</a>", &[("x", "one")]);
    links("<A HREF='x'>one <b>two</b>\n three</A> four", &[("x", "one two three")]);
    links("<a href=x>one<a href=y>two", &[("x", "one"), ("y", "two")]);
    links("<a href=x>one<a name=y>two</a>", &[("x", "one")]);
    links("<a href=x>one", &[("x", "one")]);
    links("<a href=x>on<b>e</b></a>", &[("x", "one")]);
    links("<a href=x><h3>one</h3><p>two</p></a>", &[("x", "one two")]);
    links("<a href=x><img src=i alt='a &amp; b'>c</a>", &[("x", "a & b c")]);
    links("<a href=' \n x&amp;y \t'>z</a>", &[("x&y", "z")]);
    links("<a href=x href=y>z</a>", &[("x", "z")]);
    links("<a href>z</a>", &[("", "z")]);
    links("<a>z</a>", &[]);
    links("<a href=x", &[]);
    links("<map><area href=x alt='a  b'><area alt=c></map>", &[("x", "a b")]);
    links("<frameset><frame src=x><frame src=y></frameset>", &[("x", ""), ("y", "")]);
    links("<iframe src=x><a href=y></iframe><a href=z>", &[("x", ""), ("z", "")]);
    links("<link rel=next href=x><link rel=stylesheet href=y><link href=z>", &[("x", "")]);
    links("<noscript><a href=x>y</a></noscript>", &[("x", "y")]);
    links("<template><a href=x>y</a><template></template><a href=z></template><a href=w>", &[("w", "")]);
    links("<!-- <a href=x> --><a href=y>", &[("y", "")]);
    links("<script>'<a href=x>'</script><style><a href=y></style><textarea><a href=z></textarea>", &[]);
    links("<table><tr><td><a href=x>one</td><td>two</td></table>", &[("x", "one")]);
    links("<table><tr><td><a href=x>one<td>two</table>three", &[("x", "one")]);
    links("<a href=x><table><tr><td>one</td><td>two</td></table></a>", &[("x", "one two")]);
    links("<svg><a xlink:href=x><text>y</text></a><script>if(a<b)</script></svg><a href=z>", &[("x", "y"), ("z", "")]);
    links("<svg><![CDATA[<a href=x>]]></svg><a href=y>", &[("y", "")]);
    links("<svg><style><p><a href=x>y</a>", &[("x", "y")]);
    links("<img src=x srcset='y 1x'>", &[]);
    links("<a href=x\0y>", &[("x\u{fffd}y", "")]);
}

#[test]
fn relations_and_tags() {
    let page = extract("<a rel='NoFollow noopener' href=x>a</a><link rel=alternate href=y><a href=z rel=ugc>");
    let found: Vec<_> = page.links.iter().map(|l| (l.rel, l.flags.is_unvouched(), l.tag.as_str())).collect();
    assert_eq!(found, [("NoFollow noopener", true, "a"), ("alternate", false, "link"), ("ugc", true, "a")]);
    assert!(page.links.iter().next().is_some_and(|l| l.flags.intersects(Rel::NOFOLLOW)));
}

#[test]
fn resources_when_asked_for() {
    let options = ExtractOptions { resources: true, ..ExtractOptions::default() };
    let html = "<link rel=icon href=a><script src=b></script><img src=c srcset='d 1x, e 2x'><picture><source srcset=f></picture>";
    let page = Extractor::new().extract(html, &options);
    let found: String = page.links.iter().map(|l| l.href).collect();
    assert_eq!(found, "abcdef");
}

#[test]
fn visible_text() {
    let check = |html: &str, expected: &str| assert_eq!(extract(html).text, expected, "{html}");
    check("<title>no</title><p>one<p>two  <i>three</i>\nfour", "one\ntwo three four");
    check("a<br>b<div>c</div>d", "a\nb\nc\nd");
    check("<ul><li>a<li>b</ul>", "a\nb");
    check("<table><tr><td>a<td>b<tr><th>c</table>", "a b\nc");
    check("a<script>b</script>c<style>d</style>e", "ace");
    check("a<!-- b -->c", "ac");
    check("a &lt;b&gt; &amp;amp; &eacute;&#233;", "a <b> &amp; éé");
    check("a<noscript>b</noscript>c", "ac");
    check("<noscript>b<body>c", "c");
    check("a<template>b</template>c", "ac");
    check("a<textarea>b</textarea>c", "a c");
    check("<xmp>a &amp; <b></xmp>c", "a &amp; <b>\nc");
    check("a<plaintext><b>c</plaintext>", "a\n<b>c</plaintext>");
    check("a < b <3 </> c", "a < b <3 c");
    check("a\0b", "ab");
    check("<svg><title>no</title><text>yes</text></svg>", "yes");
    check("<svg><foreignObject><p>yes</p><title>no</title></foreignObject></svg>", "yes");
    check("a<b", "a");
    check("<p", "");
    check("", "");
}

#[test]
fn heads() {
    let page = extract(
        "<html lang=en-GB><title> A\n &amp; B </title><title>no</title><base target=x><base href=' b/ '><base href=c>\
         <meta name=Robots content='noindex'><meta name=RHUMB content=noarchive><meta name=otherbot content=none>\
         <meta name=description content=' d\n e '><link rel='x CANONICAL' href=/c><link rel=canonical href=/no>\
         <meta http-equiv=Refresh content='1; url=r'><link rel=alternate hreflang=fr href=/fr><link rel=alternate href=/feed>",
    );
    assert_eq!(page.title.as_deref(), Some("A & B"));
    assert_eq!(page.base.as_deref(), Some("b/"));
    assert_eq!(page.html_lang.as_deref(), Some("en-GB"));
    assert_eq!(page.meta_robots.iter().map(|m| &*m.content).collect::<Vec<_>>(), ["noindex", "noarchive"]);
    assert!(
        page.directives().noindex.is_some()
            && page.directives().noarchive.is_some()
            && page.directives().nofollow.is_none()
    );
    assert_eq!(page.description.as_deref(), Some("d e"));
    assert_eq!(page.canonical.as_deref(), Some("/c"));
    assert_eq!(page.refresh, Some(Refresh { delay_s: 1, href: "r".to_owned() }));
    assert_eq!(page.hreflang, [("fr".to_owned(), "/fr".to_owned())]);
    assert_eq!(extract("<svg><title>no</title></svg><title>yes</title>").title.as_deref(), Some("yes"));
    assert_eq!(extract("<title>to the end").title.as_deref(), Some("to the end"));
}

#[test]
fn headings_and_emphasis_are_spans_of_the_text() {
    let page = extract("<p>x<h1> One <b>two</b></h1>y <em>z <i>w</i></em><h2>Three<h3></h3><b></b>");
    assert_eq!(page.headings().collect::<Vec<_>>(), [(1, "One two"), (2, "Three")]);
    assert_eq!(page.emphasised().collect::<Vec<_>>(), ["two", "z w"]);
}

#[test]
fn xhtml_has_empty_elements() {
    let html = "<?xml version='1.0'?><html><script src='x'/><title/><p>a<![CDATA[ & b]]></p><a href='y'>z</a></html>";
    let mut page = Page::default();
    Extractor::new().extract_markup(html, &ExtractOptions::default(), true, &mut page);
    assert_eq!(page.text, "a & b\nz");
    assert_eq!(page.links.len(), 1);
}

#[test]
fn an_extractor_forgets_the_page_before() {
    let mut extractor = Extractor::new();
    let mut page = Page::default();
    let options = ExtractOptions::default();
    extractor.extract_into(&samples::messy(1), &options, &mut page);
    extractor.extract_into("<a href=x rel=y>z", &options, &mut page);
    assert_eq!(page, extract("<a href=x rel=y>z"));
}

#[test]
fn sample_pages_give_what_was_put_in() {
    let page = extract(&samples::tidy(1));
    assert_eq!(page.links.len(), 25);
    assert_eq!(page.headings.len(), 13);
    assert_eq!(page.title.as_deref(), Some("Sailing & charts"));
    assert_eq!(extract(&samples::messy(1)).links.len(), 25);
}

/// Each of these once took some parser quadratic time or unbounded memory.
#[test]
fn hostile_pages_stay_within_bounds() {
    let options = ExtractOptions::default();
    let kept = |html: &str| {
        let page = extract(html);
        assert!(page.links.len() <= options.links_max, "links");
        assert!(page.text.len() <= options.text_bytes_max, "text");
        assert!(page.title.as_deref().unwrap_or("").len() <= options.title_bytes_max, "title");
        assert!(page.headings.len().max(page.emphasis.len()) <= options.marks_max, "marks");
        page
    };
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=b")).collect();
    assert_eq!(kept(&format!("<a href=x{attributes}>y")).links.len(), 1);
    assert_eq!(kept(&format!("<a{attributes} href=x>y")).links.len(), 0, "attributes beyond the bound are not seen");
    let unclosed = kept(&"<a href=x>y".repeat(100_000));
    assert_eq!((unclosed.links.len(), unclosed.links_dropped, unclosed.truncated), (5_000, 95_000, true));
    kept(&"<div>".repeat(1_000_000));
    kept(&"<svg>".repeat(300_000));
    kept(&"<template>".repeat(300_000));
    kept(&"<h1>x<b>y".repeat(300_000));
    kept(&"<table><td>".repeat(300_000));
    let giant = kept(&format!("<a href='{}'>y</a><a href=z title='{0}'>", "x".repeat(5_000_000)));
    assert_eq!((giant.links.len(), giant.links_dropped), (1, 1));
    kept(&"&amp".repeat(1_000_000));
    kept(&"&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(100_000));
    kept(&format!("&#{}", "1".repeat(3_000_000)));
    kept(&"<!--".repeat(500_000));
    kept(&"<![CDATA[".repeat(300_000));
    kept(&format!("<script>{}", "<!--<script>".repeat(300_000)));
    kept(&format!("<title>{}", "</title".repeat(300_000)));
    kept(&"<meta name=robots content=x>".repeat(100_000));
    kept(&"<a href='".repeat(300_000));
    kept(&"<".repeat(3_000_000));
    kept(&"</".repeat(1_000_000));
    kept(&format!("<img srcset='{}'>", "a,".repeat(1_000_000)));
}

proptest! {
    #[test]
    fn any_text_extracts(html in ".{0,200}") {
        extract(&html);
    }

    #[test]
    fn any_markup_extracts(parts in prop::collection::vec(prop::sample::select(vec![
        "<a href=x>", "</a>", "<b>", "</b>", "<h1>", "</h1>", "<svg>", "</svg>", "<foreignObject>", "</foreignObject>", "<title>",
        "</title>", "<table>", "</table>", "<td>", "</td>", "<template>", "</template>", "<noscript>", "</noscript>", "text ", " ", "é",
        "<img alt='x y' srcset='a 1x,b' src=c>", "<area href=y alt=z>", "&amp;", "&#32;", "<p>", "<script>", "</script>", "<desc>", "</desc>",
        "<iframe src=x />", "</iframe>", "<![CDATA[", "]]>", "<svg/>", "<style>", "</style>", "<meta name=description content='ü ü'>",
    ]), 0..60), most in 0usize..40) {
        let html = parts.concat();
        for resources in [false, true] {
            let options = ExtractOptions {
                resources, text_bytes_max: most, anchor_bytes_max: most / 2, value_bytes_max: most, title_bytes_max: most,
                ..ExtractOptions::default()
            };
            let page = Extractor::new().extract(&html, &options);
            prop_assert!(page.text.len() <= most);
            prop_assert!(page.links.iter().all(|l| l.text.len() <= most / 2));
            prop_assert!(page.headings().all(|(_, text)| !text.is_empty() && text.trim_ascii() == text));
            prop_assert!(page.emphasised().all(|text| !text.is_empty() && text.trim_ascii() == text));
        }
    }

    #[test]
    fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..400), declared in prop::option::of(".{0,20}")) {
        let options = super::super::ParseOptions { detect_language: true, ..Default::default() };
        for content_type in [declared.as_deref(), Some("text/html"), Some("application/xhtml+xml"), Some("text/plain"), None] {
            super::super::parse_page(&bytes, content_type, &options);
        }
    }
}
