//! Feeds as they should be, as they are, and as an enemy writes them.

use proptest::prelude::*;

use super::*;

fn read_at(text: impl AsRef<[u8]>, own: Option<&str>) -> Feed {
    let own = own.map(|own| Url::parse(own).expect("a URL"));
    Feed::read(text.as_ref(), own.as_ref(), &SitemapLimits::default(), &FeedOptions::default())
}

fn read(text: impl AsRef<[u8]>) -> Feed {
    read_at(text, None)
}

/// Addresses with their dates, and names of troubles.
fn told(feed: &Feed) -> (Vec<(&str, &str)>, Vec<&str>) {
    let urls = feed.listing.urls.iter().map(|u| (u.loc.as_str(), u.lastmod.as_deref().unwrap_or("-"))).collect();
    (urls, feed.listing.errors.iter().map(|e| e.error.name()).collect())
}

const RSS2: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>News &amp; more</title><link>https://n.example/</link><description>All &lt;b&gt;the&lt;/b&gt; news</description>
<language>en-gb</language><atom:link href="https://n.example/rss" rel="self" type="application/rss+xml"/>
<image><url>https://n.example/i.png</url><title>no title</title><link>https://n.example/image</link></image>
<item><title><![CDATA[One <i>two</i>]]></title><link>https://n.example/1?a=b&amp;c=d</link><guid isPermaLink="false">x1</guid>
<media:title>no</media:title><media:content url="https://n.example/v.mp4"><media:title>no</media:title></media:content>
<pubDate>Mon, 06 Sep 2010 00:01:00 +0000</pubDate><description>short</description>
<content:encoded><![CDATA[<p>A <b>longer</b> text</p><script>no()</script><p>of two &eacute;tages</p>]]></content:encoded></item>
<item><title>AT&amp;amp;T &lt; co</title><guid>https://n.example/2</guid><dc:date>2010-09-07</dc:date></item>
<item><link></link><atom:link rel="alternate" href="/3"/><pubDate>soon</pubDate></item>
</channel></rss>"#;

#[test]
fn rss_2() {
    let feed = read(RSS2);
    let (urls, troubles) = told(&feed);
    assert_eq!(
        urls,
        [
            ("https://n.example/1?a=b&c=d", "Mon, 06 Sep 2010 00:01:00 +0000"),
            ("https://n.example/2", "2010-09-07"),
            ("https://n.example/3", "-")
        ]
    );
    assert_eq!(troubles, ["bad_lastmod"]);
    assert_eq!(feed.title.as_deref(), Some("News & more"));
    assert_eq!(feed.description.as_deref(), Some("All the news"));
    assert_eq!((feed.language.as_deref(), feed.home.as_deref()), (Some("en-gb"), Some("https://n.example/")));
    assert_eq!(feed.titles, ["One two", "AT&T < co", ""]);
    assert_eq!(feed.text, "One two\nA longer text\nof two étages\nAT&T < co");
}

const RSS1: &str = r##"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://r.example/rss"><title>R</title><link>http://r.example/</link>
<items><rdf:Seq><rdf:li resource="http://r.example/a"/></rdf:Seq></items></channel><image><link>http://r.example/i</link></image>
<item rdf:about="http://r.example/a"><title>A</title><link>http://r.example/a?x</link><dc:date>2004-05-06T07:08:09+02:00</dc:date></item>
<item rdf:about="http://r.example/b"><title>B</title></item><textinput><link>http://r.example/search</link></textinput></rdf:RDF>"##;

const RSS091: &str = r#"<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">
<rss version="0.91"><channel><title>Caf&eacute;</title><link>http://o.example/</link>
<item><title>&lt;T&gt;</title><link>http://o.example/1</link></item></channel></rss>"#;

#[test]
fn older_kinds_of_rss() {
    let feed = read(RSS1);
    assert_eq!(
        told(&feed),
        (vec![("http://r.example/a?x", "2004-05-06T07:08:09+02:00"), ("http://r.example/b", "-")], vec![])
    );
    assert_eq!((feed.title.as_deref(), &feed.titles[..]), (Some("R"), &["A".to_owned(), "B".into()][..]));
    let prefixed = RSS1.replace("<item", "<r:item").replace("</item", "</r:item").replace("<link", "<r:link");
    let prefixed = prefixed.replace("</link", "</r:link").replace("channel", "r:channel");
    assert_eq!(told(&read(prefixed)).0.len(), 2);
    let feed = read(RSS091);
    assert_eq!(told(&feed), (vec![("http://o.example/1", "-")], vec![]));
    assert_eq!((feed.title.as_deref(), feed.text.as_str()), (Some("Café"), ""), "a tag is no text");
}

const ATOM: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.example/blog/" xml:lang="de">
<title type="html">Mein &lt;em&gt;Blog&lt;/em&gt;</title><subtitle>x &lt; y</subtitle><id>urn:x</id>
<link rel="self" href="atom.xml"/><link href="/"/><link rel="next" href="?page=2"/>
<entry xml:base="2026/"><title>a &lt;b&gt; c</title><link rel="self" href="1.atom"/><link rel="enclosure" href="1.mp3"/>
<link rel="alternate" type="application/json" href="1.json"/><link rel="alternate" type="text/html" href="1.html"/>
<id>tag:a.example,2026:1</id><published>2026-01-01T00:00:00Z</published><updated>2026-01-02T00:00:00Z</updated>
<summary>kurz</summary><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Ein &lt;Satz&gt;</p><p>und <b>noch</b>
einer<br/>Ende</p></div></content></entry>
<entry><title>z</title><link href="../z" xml:base="http://b.example/c/d"/><updated>2026-01-03T00:00:00+01:00</updated></entry>
<entry><id>http://a.example/by-id</id><content src="x.pdf" type="application/pdf"/></entry>
<entry><id>tag:no</id></entry></feed>"#;

#[test]
fn atom() {
    let feed = read(ATOM);
    let (urls, troubles) = told(&feed);
    assert_eq!(
        urls,
        [
            ("http://a.example/blog/2026/1.html", "2026-01-02T00:00:00Z"),
            ("http://b.example/z", "2026-01-03T00:00:00+01:00"),
            ("http://a.example/blog/x.pdf", "-"),
        ]
    );
    assert_eq!(troubles, ["no_loc"]);
    assert_eq!((feed.title.as_deref(), feed.description.as_deref()), (Some("Mein Blog"), Some("x < y")));
    assert_eq!(
        (feed.home.as_deref(), feed.next.as_deref()),
        (Some("http://a.example/"), Some("http://a.example/blog/?page=2"))
    );
    assert_eq!(feed.language.as_deref(), Some("de"));
    assert_eq!(feed.text, "a <b> c\nEin <Satz>\nund noch einer\nEnde\nz");
    let prefixed = ATOM.replace("<", "<a:").replace("<a:/", "</a:").replace("xmlns=", "xmlns:a=");
    assert_eq!(told(&read(prefixed)).0.len(), 3);
}

const JSON: &str = r#"{"version":"https://jsonfeed.org/version/1.1","title":"J","home_page_url":"https://j.example/","language":"fr",
"authors":[{"name":"x"}],"next_url":"https://j.example/2.json","items":[{"id":7,"url":"https://j.example/7","title":"Sept",
"content_html":"<p>un<p>deux","date_published":"2026-01-01T00:00:00Z","date_modified":"2026-02-01T00:00:00Z","tags":["a",{"b":[]}]},
{"id":"https://j.example/8","content_text":"a < b","title":null},{"id":"x","external_url":"/9"},{"id":"none"}]}"#;

#[test]
fn json_feed() {
    let feed = read(JSON);
    let (urls, troubles) = told(&feed);
    assert_eq!(
        urls,
        [("https://j.example/7", "2026-02-01T00:00:00Z"), ("https://j.example/8", "-"), ("https://j.example/9", "-")]
    );
    assert_eq!(troubles, ["no_loc"]);
    assert_eq!(feed.text, "Sept\nun\ndeux\na < b");
    assert_eq!((feed.title.as_deref(), feed.language.as_deref()), (Some("J"), Some("fr")));
    assert_eq!(
        (feed.home.as_deref(), feed.next.as_deref()),
        (Some("https://j.example/"), Some("https://j.example/2.json"))
    );
    let check = |text: &str, urls: usize, trouble: &[&str]| {
        let feed = read(text);
        assert_eq!((feed.listing.urls.len(), &told(&feed).1[..]), (urls, trouble), "{}", cut(text, 200));
    };
    let begun = r#"{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","url":"http://a.example/"}"#;
    check(begun, 1, &["ends_early"]);
    check(&format!("{begun},{{]"), 1, &["bad_markup"]);
    check(&format!("{begun},{}", "[".repeat(100_000)), 1, &["bad_markup"]);
    check(&format!("{begun}],\"x\":{}", "[".repeat(100_000)), 1, &["ends_early"]);
    check(&format!("{begun}]}}{{"), 1, &[]);
    check(r#"{"items":[{"url":"http://a.example/"}]}"#, 0, &["not_a_sitemap"]);
    check("{", 0, &["not_a_sitemap"]);
}

/// Where nothing says what a relative address is relative to, the feed's own address does, and the site's if that is unknown too.
#[test]
fn relative_addresses() {
    let check = |text: &str, own: Option<&str>, expected: &[&str]| {
        let feed = read_at(text, own);
        assert_eq!(feed.listing.urls.iter().map(|u| &*u.loc).collect::<Vec<_>>(), expected, "{text}");
    };
    let rss = "<rss><channel><link>http://s.example/</link><item><link>a/b</link></item></channel></rss>";
    check(rss, None, &["http://s.example/a/b"]);
    check(rss, Some("http://f.example/d/rss"), &["http://f.example/d/a/b"]);
    check("<rss><channel><item><link>a/b</link></item></channel></rss>", None, &[]);
    check(
        "<feed xml:base='x/'><entry><link href='y'/></entry></feed>",
        Some("http://f.example/d/"),
        &["http://f.example/d/x/y"],
    );
    check(
        "<feed xml:base='data:x'><entry><link href='y'/></entry></feed>",
        Some("http://f.example/d/"),
        &["http://f.example/d/y"],
    );
    check("<feed><entry><link href='mailto:x'/></entry></feed>", Some("http://f.example/"), &[]);
}

#[test]
fn encodings() {
    let text = "<?xml version='1.0' encoding='windows-1252'?><rss><channel><title>\u{e9}</title></channel></rss>";
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    assert_eq!(read(latin).title.as_deref(), Some("é"));
    let wide = |text: &str, mark: bool| -> Vec<u8> {
        let mark = mark.then_some(0xfeff).into_iter();
        mark.chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    for mark in [true, false] {
        assert_eq!(read(wide(RSS2, mark)).text, read(RSS2).text);
        assert_eq!(read(wide(JSON, mark)).text, read(JSON).text);
    }
    assert_eq!(read(format!("\u{feff}\n {RSS2}")).text, read(RSS2).text);
}

#[test]
fn hostile_feeds_end_with_a_name() {
    let check = |text: String, trouble: &str| {
        let feed = read(&text);
        assert_eq!(feed.listing.errors.last().map(|e| e.error.name()), Some(trouble), "{}", cut(&text, 80));
        assert!(feed.listing.urls.len() <= 50_000 && feed.text.len() <= 2 << 20);
    };
    let item = "<item><link>http://a.example/</link><title>t</title></item>";
    check(format!("<rss><channel>{}", item.repeat(60_000)), "too_many_urls");
    check(format!("<rss><channel>{item}{}", "<a>".repeat(100_000)), "too_deep");
    check(format!("<rss><channel><item><description>{}", "<b>".repeat(100_000)), "too_deep");
    check("<!DOCTYPE rss [<!ENTITY a 'b'>]><rss/>".to_string(), "doctype");
    check("<!DOCTYPE rss SYSTEM 'x'".to_string(), "ends_early");
    check(format!("<rss><channel>{item}<!ENTITY a 'b'>"), "doctype");
    check("<rss><channel><item><link>http://a.example/".to_string(), "ends_early");
    let base = format!(
        "<feed xml:base='http://a.example/{}/'>{}",
        "x".repeat(4000),
        "<entry><link href='y'/></entry>".repeat(49_000)
    );
    check(base, "too_large");
    check("<html>".to_string(), "not_a_sitemap");
    check("<urlset/>".to_string(), "not_a_sitemap");
    let long =
        read(format!("<rss><channel><item><link>http://a.example/</link><description>{}", "word ".repeat(1 << 20)));
    assert_eq!(long.listing.urls.len(), 1);
}

proptest! {
    /// Cut anywhere, with any byte changed, a feed gives no more than it had and breaks nothing.
    #[test]
    fn damaged_feeds_are_read_as_far_as_they_go(which in 0usize..5, at in 0usize..2000, byte in any::<u8>(), cuts in any::<bool>()) {
        let whole = [RSS2, RSS1, RSS091, ATOM, JSON][which];
        let mut bytes = whole.as_bytes().to_vec();
        let at = at % bytes.len();
        if cuts { bytes.truncate(at) } else { bytes[at] = byte }
        let feed = read(&bytes);
        prop_assert!(feed.listing.urls.len() <= read(whole).listing.urls.len() + 1);
        prop_assert!(feed.listing.urls.iter().all(|u| crate::url::Url::parse(&u.loc).is_ok()));
        prop_assert_eq!(feed.titles.len(), feed.listing.urls.len());
    }
}
