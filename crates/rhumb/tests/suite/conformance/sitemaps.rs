//! Sitemaps as sitemaps.org describes them, as hosts write them, and as enemies do: `rhumb sitemap`.

use std::io::Write;

use serde_json::{Value, json};

use super::piped_to;
use crate::common::{Place, rhumb, run};

fn read(file: &[u8], code: i32) -> Value {
    piped_to(&["sitemap", "-"], file, code)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(data).expect("memory");
    packer.finish().expect("memory")
}

#[test]
fn sitemaps_of_all_kinds() {
    let urlset = r#"<?xml version="1.0" encoding="UTF-8"?>
        <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
        <url><loc>http://a.example/?a=1&amp;b=2</loc><lastmod>2005-01-01</lastmod><changefreq>monthly</changefreq><priority>0.5</priority>
        <image:image><image:loc>http://i.example/x.png</image:loc></image:image></url>
        <url><loc><![CDATA[http://a.example/b]]></loc></url></urlset>"#;
    let expected = json!({"kind": "urlset", "errors": [], "errors_untold": 0, "urls": [
        {"loc": "http://a.example/?a=1&b=2", "lastmod": "2005-01-01", "changefreq": "monthly", "priority": 0.5},
        {"loc": "http://a.example/b", "lastmod": null, "changefreq": null, "priority": null}]});
    assert_eq!(read(urlset.as_bytes(), 0), expected);
    assert_eq!(read(&gzip(urlset.as_bytes()), 0), expected, "gzip");
    let check = |file: &str, kind: &str, loc: &str| {
        let value = read(file.as_bytes(), 0);
        assert_eq!((&value["kind"], &value["urls"][0]["loc"]), (&json!(kind), &json!(loc)), "{file}");
    };
    let index = "<sitemapindex><sitemap><loc>http://a.example/s.xml.gz</loc></sitemap></sitemapindex>";
    check(index, "index", "http://a.example/s.xml.gz");
    check("http://a.example/1\nhttp://a.example/2\n", "text", "http://a.example/1");
    check("<rss><channel><item><link>http://a.example/i</link></item></channel></rss>", "feed", "http://a.example/i");
}

/// Feeds are sitemaps too: every kind, with what they really look like.
#[test]
fn feeds_of_all_kinds() {
    let check = |file: &[u8], expected: Value| {
        let value = read(file, 0);
        assert_eq!((&value["kind"], &value["errors"]), (&json!("feed"), &json!([])), "{value}");
        let url = |u: &Value| json!([u["loc"], u["lastmod"]]);
        let urls: Vec<Value> = value["urls"].as_array().expect("urls").iter().map(url).collect();
        assert_eq!(json!(urls), expected, "{}", String::from_utf8_lossy(file));
    };
    let rss2 = "<?xml version='1.0'?><?xml-stylesheet href='x'?><!-- c --><rss version='2.0' xmlns:atom='a' xmlns:media='m'><channel>\
        <title>T</title><link>http://a.example/</link><atom:link href='http://a.example/rss' rel='self'/>\
        <item><link><![CDATA[ http://a.example/?a=1&b=2 ]]></link><pubDate>Tue, 1 Feb 2022 00:00:00 EST</pubDate>\
        <media:content url='http://a.example/no'/><description>&lt;a href='http://a.example/no'&gt;x</description></item>\
        <item><guid>http://a.example/guid</guid></item><item><link>relative</link></item></channel></rss>";
    let expected = json!([
        ["http://a.example/?a=1&b=2", "Tue, 1 Feb 2022 00:00:00 EST"],
        ["http://a.example/guid", null],
        ["http://a.example/relative", null]
    ]);
    check(rss2.as_bytes(), expected.clone());
    check(&gzip(rss2.as_bytes()), expected.clone());
    let wide: Vec<u8> = format!("\u{feff}{rss2}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    check(&wide, expected);
    check(
        b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'><channel><link>http://a.example/</link></channel><item rdf:about='http://a.example/about'>\
          <dc:date>2004-05-06</dc:date></item><image><link>http://a.example/no</link></image></rdf:RDF>",
        json!([["http://a.example/about", "2004-05-06"]]),
    );
    check(
        b"<!DOCTYPE rss PUBLIC '-//Netscape' 'http://my.netscape.com/rss-0.91.dtd'><rss version='0.91'><channel><item><link>http://a.example/</link>\
          </item></channel></rss>",
        json!([["http://a.example/", null]]),
    );
    check(
        b"<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://a.example/b/'><link href='/no'/><entry xml:base='c/'>\
          <link rel='self' href='no'/><link rel='alternate' href='d?e&amp;f'/><published>2020-01-01T00:00:00Z</published>\
          <updated>2020-01-02T00:00:00Z</updated></entry></feed>",
        json!([["http://a.example/b/c/d?e&f", "2020-01-02T00:00:00Z"]]),
    );
    let json_feed = br#"{"version":"https://jsonfeed.org/version/1.1","items":[{"id":1,"url":"http://a.example/","date_published":"2020-01-01"}]}"#;
    check(json_feed, json!([["http://a.example/", "2020-01-01"]]));
    check(&gzip(json_feed), json!([["http://a.example/", "2020-01-01"]]));
    let based = piped_to(&["sitemap", "-", "--base", "http://h.example/d/"], b"<rss><channel><item><link>a</link>", 1);
    assert_eq!(
        (&based["urls"][0]["loc"], &based["errors"][0]["error"]),
        (&json!("http://h.example/d/a"), &json!("ends_early"))
    );
}

/// Trouble has a name, a place and exit code 1; what came before it is there.
#[test]
fn sitemaps_that_hurt() {
    let entry = "<url><loc>http://a.example/</loc></url>";
    let check = |file: &[u8], error: &str, urls: usize| {
        let value = read(file, 1);
        let last = value["errors"].as_array().and_then(|e| e.last()).cloned().unwrap_or_default();
        assert_eq!((&last["error"], value["urls"].as_array().map(Vec::len)), (&json!(error), Some(urls)), "{last}");
        assert!(last["line"].as_u64() >= Some(1) && last["offset"].is_u64(), "{last}");
    };
    let laughs: String =
        (1..10).map(|i| format!("<!ENTITY l{i} \"{}\">", format!("&l{};", i - 1).repeat(10))).collect();
    let laughs = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY l0 \"ha\">{laughs}]><urlset><url><loc>&l9;</loc></url></urlset>"
    );
    check(laughs.as_bytes(), "doctype", 0);
    check(b"<!DOCTYPE html><html><body>not found", "doctype", 0);
    check(b"<html><body>not found", "not_a_sitemap", 0);
    check(&gzip(&[format!("<urlset>{entry}").as_bytes(), &vec![b' '; 60 << 20]].concat()), "bomb", 1);
    check(format!("<urlset>{entry}{}", "<a>".repeat(100_000)).as_bytes(), "too_deep", 1);
    check(format!("<urlset>{entry}<a {}>", "b='' ".repeat(100_000)).as_bytes(), "too_many_attributes", 1);
    check(format!("<urlset>{}</urlset>", entry.repeat(50_001)).as_bytes(), "too_many_urls", 50_000);
    check(
        format!("<urlset>{entry}<url><loc>http://a.example/{}</loc></url></urlset>", "x".repeat(5_000)).as_bytes(),
        "loc_too_long",
        1,
    );
    check(format!("<urlset>{entry}<url><loc>http://b").as_bytes(), "ends_early", 1);
    check(&gzip(format!("<urlset>{entry}").as_bytes())[..24], "broken_gzip", 0);
    check(b"", "not_a_sitemap", 0);
}

#[test]
fn for_people_it_is_a_list() {
    let place = Place::new();
    let typed = |name: &str, text: &str| run(rhumb().arg("sitemap").arg(place.file(name, text)));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let good = typed("a.xml", "<urlset><url><loc>http://a.example/\u{202e}</loc><priority>1</priority></url></urlset>");
    assert_eq!((good.status.code(), text(&good.stderr).as_str()), (Some(0), ""));
    assert_eq!(text(&good.stdout), "urlset, 1 URLs\n  http://a.example/\\u{202e}  1\n");
    let flawed = typed("b.txt", "http://a.example/\nnonsense\n");
    let expected = "text, 1 URLs\n  http://a.example/\nline 2: not an absolute http or https URL: \"nonsense\"\n";
    assert_eq!((flawed.status.code(), text(&flawed.stdout).as_str()), (Some(1), expected));
    let page = typed("c.html", "<!DOCTYPE html>");
    assert_eq!((page.status.code(), text(&page.stdout).as_str()), (Some(1), ""));
    assert!(
        text(&page.stderr).ends_with("c.html is no sitemap: line 1: a document type declaration, which is refused\n")
    );
    let missing = run(rhumb().args(["sitemap", "no/such/file"]));
    assert_eq!((missing.status.code(), text(&missing.stderr).lines().count()), (Some(2), 1));
}
