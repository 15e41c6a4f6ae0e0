//! Sitemaps as they should be, as they are, and as an enemy writes them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn read(text: impl AsRef<[u8]>) -> Sitemap {
    Sitemap::read(text.as_ref(), &SitemapLimits::default())
}

fn locs(sitemap: &Sitemap) -> Vec<&str> {
    sitemap.urls.iter().map(|u| u.loc.as_str()).collect()
}

fn troubles(sitemap: &Sitemap) -> Vec<Trouble> {
    sitemap.errors.iter().map(|e| e.error).collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut w = GzEncoder::new(Vec::new(), Compression::default());
    w.write_all(data).expect("write to memory");
    w.finish().expect("write to memory")
}

fn urlset(inner: &str) -> String {
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{inner}</urlset>")
}

#[test]
fn the_protocols_own_example() {
    let sitemap = read(urlset(
        "<url><loc>http://a.example/</loc><lastmod>2005-01-01</lastmod><changefreq>Monthly</changefreq>\
         <priority>0.8</priority></url>\n<url> <loc>\n http://a.example/c?i=12&amp;d=<![CDATA[x&y]]> \n</loc></url>",
    ));
    assert_eq!((sitemap.kind, &sitemap.errors[..]), (Some(SitemapKind::Urlset), &[][..]));
    let first = SitemapUrl {
        loc: "http://a.example/".into(),
        lastmod: Some("2005-01-01".into()),
        changefreq: Some("monthly".into()),
        priority: Some(0.8),
    };
    let second =
        SitemapUrl { loc: "http://a.example/c?i=12&d=x&y".into(), lastmod: None, changefreq: None, priority: None };
    assert_eq!(sitemap.urls, [first, second]);
}

#[test]
fn kinds() {
    let check = |text: &str, kind: Option<SitemapKind>, expected: &[&str], trouble: &[Trouble]| {
        let sitemap = read(text);
        assert_eq!((sitemap.kind, &locs(&sitemap)[..], &troubles(&sitemap)[..]), (kind, expected, trouble), "{text}");
    };
    let (a, b) = ("http://a.example/", "https://b.example/x");
    let index =
        format!("<sitemapindex><sitemap><loc>{a}</loc></sitemap><sitemap><loc>{b}</loc></sitemap></sitemapindex>");
    check(&index, Some(SitemapKind::Index), &[a, b], &[]);
    check(&format!("\u{feff}{a}\r\n\r\n {b}\n"), Some(SitemapKind::Text), &[a, b], &[]);
    check(&format!("{a}\nnonsense\n"), Some(SitemapKind::Text), &[a], &[Trouble::BadLoc]);
    check(
        &format!(
            "<rss><channel><link>http://c.example/</link><item><link>{a}</link><pubDate>x</pubDate></item></channel></rss>"
        ),
        Some(SitemapKind::Feed),
        &[a],
        &[Trouble::BadLastmod],
    );
    check(
        &format!(
            "<feed xmlns='x'><link href='http://c.example/'/><entry><link rel='alternate' href='{b}?a&amp;b'/></entry></feed>"
        ),
        Some(SitemapKind::Feed),
        &["https://b.example/x?a&b"],
        &[],
    );
    check("<urlset/>", Some(SitemapKind::Urlset), &[], &[]);
    check("<!DOCTYPE html><html>", None, &[], &[Trouble::Doctype]);
    check("<html><body>404", None, &[], &[Trouble::NotASitemap]);
    check("", None, &[], &[Trouble::NotASitemap]);
    check("{\"items\":[]}", None, &[], &[Trouble::NotASitemap]);
    check(&format!("# a comment\n\n{a}\n#\n"), Some(SitemapKind::Text), &[a], &[]);
    check(&"x\n".repeat(100), None, &[], &[Trouble::NotASitemap]);
}

#[test]
fn namespaces_and_extensions() {
    let check = |text: &str, expected: &[&str]| {
        let sitemap = read(text);
        assert_eq!((&locs(&sitemap)[..], &troubles(&sitemap)[..]), (expected, &[][..]), "{text}");
    };
    check("<s:urlset><s:url><s:loc>http://a.example/</s:loc></s:url></s:urlset>", &["http://a.example/"]);
    check(
        &urlset(
            "<url><image:image><image:loc>http://i.example/</image:loc></image:image><image:loc>http://j.example/</image:loc>\
             <loc>http://a.example/</loc><xhtml:link rel='alternate' hreflang='de' href='http://a.example/de'/></url>",
        ),
        &["http://a.example/"],
    );
    check(
        &urlset("<!-- <url><loc>x</loc></url> --><?pi <url> ?><url><LOC>http://a.example/</LOC></url>"),
        &["http://a.example/"],
    );
    check(&urlset("<url><loc><![CDATA[http://a.example/?]]]]><![CDATA[>x]]></loc></url>"), &["http://a.example/?]]>x"]);
    check(&urlset("<url><loc>http://a.example/&#x41;&#66;&apos;</loc></url>"), &["http://a.example/AB'"]);
}

#[test]
fn no_entity_is_ever_defined() {
    let laughs = "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;\">]><urlset><url><loc>&lol2;</loc></url></urlset>";
    assert_eq!(troubles(&read(laughs)), [Trouble::Doctype]);
    assert_eq!(troubles(&read(format!("<?xml version='1.0'?>\n<!-- x -->{laughs}"))), [Trouble::Doctype]);
    // In the middle, too; what came before stays.
    let late = read("<urlset><url><loc>http://a.example/</loc></url><!DOCTYPE x></urlset>");
    assert_eq!((locs(&late), troubles(&late)), (vec!["http://a.example/"], vec![Trouble::Doctype]));
    let unknown = read(urlset("<url><loc>http://a.example/&lol;&b=1</loc></url>"));
    assert_eq!(locs(&unknown), ["http://a.example/&lol;&b=1"]);
    assert_eq!(troubles(&unknown), [Trouble::UnknownEntity, Trouble::BadMarkup]);
    assert_eq!(unknown.errors[0].found, "&lol");
}

#[test]
fn trouble_of_an_entry_is_its_own() {
    let long = format!("http://a.example/{}", "x".repeat(5000));
    let sitemap = read(urlset(&format!(
        "<url><loc>/relative</loc></url><url><loc>{long}</loc></url><url></url><url><loc>ftp://a.example/</loc></url>\n\
         <url><loc>http://a.example/</loc><lastmod>yesterday</lastmod><priority>7</priority><changefreq>often</changefreq></url>"
    )));
    assert_eq!(locs(&sitemap), ["http://a.example/"]);
    use Trouble::*;
    assert_eq!(troubles(&sitemap), [BadLoc, LocTooLong, NoLoc, BadLoc, BadLastmod, BadChangefreq, BadPriority]);
    assert_eq!((sitemap.errors[3].line, sitemap.errors[4].line), (1, 2));
    assert!(sitemap.errors.iter().all(|e| e.found.len() <= FOUND_BYTES_MAX));
}

#[test]
fn what_came_before_trouble_is_kept() {
    let check = |inner: &str, trouble: &[Trouble], expected: usize| {
        let sitemap = read(format!("<urlset><url><loc>http://a.example/1</loc></url>{inner}"));
        assert_eq!((&troubles(&sitemap)[..], sitemap.urls.len()), (trouble, expected), "{inner}");
    };
    use Trouble::*;
    check("", &[EndsEarly], 1);
    check("<url><loc>http://a.example/2", &[EndsEarly], 1);
    check("<url><loc>http://a.example/2</loc><last", &[EndsEarly], 2);
    check("</url></urlset>", &[Mismatch], 1);
    check("<url><loc>http://a.example/2</url></urlset>", &[Mismatch], 2);
    check("<url><loc>http://a.example/2</loc></url></urlset><more>", &[EndsEarly], 2);
    check("< <url><loc>http://a.example/2</loc></url></urlset>", &[BadMarkup], 2);
    check("<![CDATA[x", &[EndsEarly], 1);
    check("<!-- x", &[EndsEarly], 1);
    check(&"<a>".repeat(40), &[TooDeep], 1);
    check(&format!("<a {}>", "b=\"c\" ".repeat(100)), &[TooManyAttributes], 1);
    check(&format!("<{}>", "a".repeat(300)), &[NameTooLong], 1);
    check(&format!("<a {}>", "a".repeat(300)), &[NameTooLong], 1);
}

#[test]
fn encodings() {
    let text = urlset("<url><loc>http://a.example/\u{e9}</loc></url>");
    let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let unmarked: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let declared = text.replace("version=\"1.0\"", "version=\"1.0\" encoding='ISO-8859-1'");
    let latin: Vec<u8> = declared.chars().map(|c| c as u8).collect();
    for bytes in [text.clone().into_bytes(), utf16, unmarked, latin, gzip(text.as_bytes())] {
        let sitemap = read(&bytes);
        assert_eq!((locs(&sitemap), troubles(&sitemap)), (vec!["http://a.example/\u{e9}"], vec![]));
    }
}

#[test]
fn gzip_is_bounded() {
    let text = urlset("<url><loc>http://a.example/</loc></url>");
    let two = [gzip(&text.as_bytes()[..100]), gzip(&text.as_bytes()[100..]), b"rest".to_vec()].concat();
    assert_eq!(troubles(&read(two)), []);
    let mut cut = gzip(text.as_bytes());
    cut.truncate(cut.len() - 20);
    assert_eq!(troubles(&read(cut)), [Trouble::BrokenGzip]);
    let bomb = gzip(&[urlset("").trim_end_matches("</urlset>").as_bytes(), &vec![b' '; 40 << 20]].concat());
    let sitemap = read(bomb);
    assert_eq!(troubles(&sitemap), [Trouble::Bomb]);
    assert!(sitemap.errors[0].offset < 20 << 20, "it is given up early: {:?}", sitemap.errors);
    assert_eq!(troubles(&read(gzip(&gzip(text.as_bytes())))).last(), Some(&Trouble::NotASitemap));
}

#[test]
fn bounds_are_kept() {
    let limits = SitemapLimits { urls_max: 2, problems_max: 3, decoded_bytes_max: 400, ..Default::default() };
    let entry = "<url><loc>http://a.example/</loc></url>";
    let many = Sitemap::read(urlset(&entry.repeat(3)).as_bytes(), &limits);
    assert_eq!((many.urls.len(), troubles(&many)), (2, vec![Trouble::TooManyUrls]));
    let lines = Sitemap::read("http://a.example/\n".repeat(3).as_bytes(), &limits);
    assert_eq!((lines.urls.len(), troubles(&lines)), (2, vec![Trouble::TooManyUrls]));
    let large = Sitemap::read(urlset(&" ".repeat(1000)).as_bytes(), &limits);
    assert_eq!((troubles(&large), large.errors[0].offset), (vec![Trouble::TooLarge], 400));
    let wrong = Sitemap::read(urlset(&"</x>".repeat(10)).as_bytes(), &limits);
    assert_eq!((wrong.errors.len(), wrong.errors_untold), (3, 7));
}

/// Each would take minutes if anything in it was looked at twice.
#[test]
fn the_enemys_favourites_end() {
    let n = 200_000;
    for text in [
        format!("<urlset>{}", "<url>".repeat(n)),
        urlset(&"&".repeat(n)),
        urlset(&format!("<url><loc>{}", "&#".repeat(n))),
        urlset(&format!("<url><loc><![CDATA[{}", "]".repeat(n))),
        urlset(&format!("<!--{}", "-".repeat(n))),
        urlset(&"<".repeat(n)),
        urlset(&format!("<a b='{}", "c".repeat(n))),
        "\n".repeat(n),
        urlset(&"</a>".repeat(n)),
    ] {
        let sitemap = read(&text);
        assert!(sitemap.urls.is_empty() && sitemap.errors.len() <= 100, "{}", &text[..20]);
    }
}

/// Gives one byte at a time.
struct Single<'a>(&'a [u8]);

impl std::io::Read for Single<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = into.len().min(1);
        std::io::Read::read(&mut self.0, &mut into[..n])
    }
}

proptest! {
    /// However the bytes come in, and whatever they are.
    #[test]
    fn pieces_do_not_matter(parts in prop::collection::vec(prop::sample::select(vec![
        "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "http://a.example/", "&amp;", "&x;", "&", "<![CDATA[", "]]>", "]",
        "<!--", "-->", "-", "<!DOCTYPE", "\u{e9}", "<", ">", "\"", "<a b='", "'", "/>", "\n", "\0", "<lastmod>", "2026-01-01", "<?", "?>",
    ]), 0..40)) {
        let text = parts.concat();
        let sitemap = read(&text);
        prop_assert_eq!(&Sitemap::read(Single(text.as_bytes()), &SitemapLimits::default()), &sitemap);
        prop_assert_eq!(&read(gzip(text.as_bytes())), &sitemap);
    }
}
