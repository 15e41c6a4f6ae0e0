//! Pages by the HTML, Encoding and MIME sniffing standards.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::piped;

fn parsed(html: impl AsRef<[u8]>, content_type: Option<&str>) -> Value {
    let mut args = vec!["parse", "-", "--base", "http://h.example/d/p?q"];
    if let Some(content_type) = content_type {
        args.extend(["--content-type", content_type]);
    }
    piped(&args, html.as_ref())
}

fn links(html: &str) -> Vec<(String, String)> {
    let value = parsed(html, Some("text/html; charset=utf-8"));
    let text = |v: &Value| v.as_str().expect("text").to_string();
    value["links"].as_array().expect("links").iter().map(|l| (text(&l["url"]), text(&l["text"]))).collect()
}

#[track_caller]
fn check_links(html: &str, expected: &[(&str, &str)]) {
    let found = links(html);
    let found: Vec<_> =
        found.iter().map(|(url, text)| (url.strip_prefix("http://h.example").unwrap_or(url), text.as_str())).collect();
    assert_eq!(found, expected, "{html}");
}

#[test]
fn page_links() {
    check_links(
        "<a href=x>one</a> <A HREF='/y'>two</A><a\thref\n=\r\"z?a&amp;b#c\" >three</a>",
        &[("/d/x", "one"), ("/y", "two"), ("/d/z?a&b#c", "three")],
    );
    check_links("<a href=\" \n x y \t\">  a \n\t b&nbsp;c<br>d </a>", &[("/d/x%20y", "a b\u{a0}c d")]);
    check_links("<a name=x>no</a><a href>self</a><a href=''>self</a>", &[("/d/p?q", "self"), ("/d/p?q", "self")]);
    check_links("<a href=#f>f</a>", &[("/d/p?q#f", "f")]);
    check_links(
        "<a href=//o.example/x>o</a><a href=https:/y>y</a>",
        &[("http://o.example/x", "o"), ("https://y/", "y")],
    );
    check_links(
        "<a href='javascript:x()'>j</a><a href=mailto:a@b.c>m</a><a href=tel:1>t</a><a href=data:,x>d</a><a href=ftp://f/>f</a><a href=JavaScript:y>j</a>",
        &[],
    );
    check_links("<a href='http://[bad'>b</a><a href='http://a b/'>c</a><a href=ok>ok</a>", &[("/d/ok", "ok")]);
    // A link ends where the next begins; what is open at the end is closed.
    check_links("<a href=1>one<a href=2>two</a>three</a>", &[("/d/1", "one"), ("/d/2", "two")]);
    check_links("<a href=1>one", &[("/d/1", "one")]);
    check_links("<a href=1><b>bo<i>ld</b>er</i></a>", &[("/d/1", "bolder")]);
    check_links("<a href=1><img alt='a picture'><p>and text</p></a>", &[("/d/1", "a picture and text")]);
    check_links("<map><area href=1 alt=north><area alt=none></map>", &[("/d/1", "north")]);
    check_links("<frameset><frame src=1></frameset><iframe src=2>no</iframe>", &[("/d/1", ""), ("/d/2", "")]);
    // Images and scripts are not followed unless asked for.
    check_links(
        "<img src=1 srcset='2 1x, 3 2x'><script src=4></script><source srcset=5><video src=6></video><embed src=7><link rel=stylesheet href=8>",
        &[],
    );
    // Not part of the page, or not markup.
    check_links("<!-- <a href=1>x</a> --><!--><a href=2>y</a>-->", &[("/d/2", "y")]);
    check_links(
        "<script>'<a href=1>x</a>'</script><style><a href=2></style><textarea><a href=3></textarea><title><a href=4></title><noembed><a href=5></noembed><xmp><a href=6></xmp>",
        &[],
    );
    check_links("<script><!-- <script> </script> <a href=1> --></script><a href=2>after</a>", &[("/d/2", "after")]);
    check_links("<template><a href=1>x</a></template><a href=2>y</a>", &[("/d/2", "y")]);
    check_links("<![CDATA[<a href=1>x</a>]]>", &[]);
    check_links("<noscript><a href=1>x</a></noscript>", &[("/d/1", "x")]);
    check_links("<svg><a href=1><text>in svg</text></a></svg>", &[("/d/1", "in svg")]);
    check_links("<plaintext><a href=1>x</a>", &[]);
    // Broken markup.
    check_links("<a href=\"1>x</a><p>", &[]);
    check_links("<a href='1'title=t>x</a>", &[("/d/1", "x")]);
    check_links("<a href=1/>x</a>", &[("/d/1/", "x")]);
    check_links("<a href=1 href=2>x</a>", &[("/d/1", "x")]);
    check_links("<a/href=1>x</a>", &[("/d/1", "x")]);
    check_links("< a href=1>x</a><a href=2>y</a>", &[("/d/2", "y")]);
    check_links("<a href=1 <b>x</a>", &[("/d/1", "x")]);
    check_links("</a><a href=1>x</div></a>", &[("/d/1", "x")]);
    check_links("<a href=1>x</a", &[("/d/1", "x")]);
    check_links("<a href=1", &[]);
    // Character references in attributes follow their own rule.
    check_links(
        "<a href='?a=1&copy=2&amp;d=3&#x26;e&lt;f&notit;=4'>x</a>",
        &[("/d/p?a=1&copy=2&d=3&e%3Cf&notit;=4", "x")],
    );
    check_links(
        "<a href='&#47;x&#x2F;y&sol;z'>&lt;b&gt; &eacute;&amp;&#8364;&#128;&#0;&notin;&notit;&AMP</a>",
        &[("/x/y/z", "<b> \u{e9}&\u{20ac}\u{20ac}\u{fffd}\u{2209}\u{ac}it;&")],
    );
    check_links("<a href=\"a\tb\nc\">x</a><a href='\\w'>y</a>", &[("/d/abc", "x"), ("/w", "y")]);
    let rel = parsed("<a href=1 rel='NoFollow UGC'>x</a><link rel='next' href=2>", Some("text/html"));
    assert_eq!(
        rel["links"],
        json!([
            {"url": "http://h.example/d/1", "text": "x", "rel": "NoFollow UGC", "tag": "a"},
            {"url": "http://h.example/d/2", "text": "", "rel": "next", "tag": "link"},
        ])
    );
}

#[test]
fn page_base_title_text_and_meta() {
    let base = |html: &str, expected: &str| {
        let value = parsed(html, Some("text/html"));
        assert_eq!(value["base"], expected, "{html}");
    };
    base("<p>", "http://h.example/d/p?q");
    base("<base href=/x/>", "http://h.example/x/");
    base("<base target=_top><base href=y><base href=z>", "http://h.example/d/y");
    base("<body><p><BASE HREF='//o.example/z'>", "http://o.example/z");
    base("<base href='javascript:1'><base href=/late>", "http://h.example/d/p?q");
    base("<base href='data:,x'>", "http://h.example/d/p?q");
    base("<base href='http://[bad'>", "http://h.example/d/p?q");
    base("<base href=''>", "http://h.example/d/p?q");
    // The base counts for links that stand before it.
    check_links("<a href=1>x</a><base href=/b/><a href=2>y</a>", &[("/b/1", "x"), ("/b/2", "y")]);

    let title = |html: &str, expected: Value| assert_eq!(parsed(html, Some("text/html"))["title"], expected, "{html}");
    title("<title>\n A &amp; B\t&lt;b&gt; </title><title>second</title>", json!("A & B <b>"));
    title("<TITLE>x<b>y</b></TITLE>", json!("x<b>y</b>"));
    title("<svg><title>no</title></svg><title>yes</title>", json!("yes"));
    title("<title></title>", json!(""));
    title("<p>none", json!(null));
    title("<title>open", json!("open"));
    title("<!-- <title>no</title> --><title>yes</title>", json!("yes"));
    title("<title>a\0b</title>", json!("a\u{fffd}b"));

    let text = |html: &str, expected: &str| assert_eq!(parsed(html, Some("text/html"))["text"], expected, "{html}");
    text("<p>a  b\n c<p>d<br>e<div>f</div>g", "a b c\nd\ne\nf\ng");
    text("<script>x</script><style>y</style>z<!-- c --><template>t</template>", "z");
    text("in<b>li</b>ne <span>span</span>", "inline span");
    text("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc");
    text("1 &lt 2 &amp;amp; &#x41;&#66; &bogus; &", "1 < 2 &amp; AB &bogus; &");
    text("a<![CDATA[b]]>c<svg><![CDATA[d]]></svg>", "acd");
    text("a < b <3 </> </ x><?pi?>c", "a < b <3 c");
    text("<ul><li>one<li>two</ul>", "one\ntwo");

    let all = parsed(
        "<html lang=de-AT><meta name=ROBOTS content='NoIndex, follow'><meta name=robots content=none><meta name=description content=' d  e '>\
         <link rel='x CANONICAL' href=c#f><link rel=canonical href=second><link rel=alternate hreflang=fr href=/fr>\
         <meta http-equiv=Refresh content=' 5 ; URL = \"/next\" '><h2>Kopf</h2>",
        Some("text/html"),
    );
    assert_eq!(all["meta_robots"], json!(["NoIndex, follow", "none"]));
    assert_eq!((&all["canonical"], &all["description"]), (&json!("http://h.example/d/c#f"), &json!("d e")));
    assert_eq!(all["refresh"], json!({"delay_s": 5, "href": "http://h.example/next"}));
    assert_eq!(all["hreflang"], json!([{"lang": "fr", "url": "http://h.example/fr"}]));
    assert_eq!(all["headings"], json!([{"level": 2, "text": "Kopf"}]));
    assert_eq!(all["language"], "de");

    let english = "<html lang=fr><p>The quick brown fox jumps over the lazy dog and then goes home, because it was getting late and \
                   there was nothing else that it wanted to do on such a rainy evening in the country.";
    assert_eq!(parsed(english, Some("text/html"))["language"], "en", "the text knows better than the attribute");
    assert_eq!(parsed("<p>42", Some("text/html"))["language"], json!(null));
}

/// The Encoding and MIME sniffing standards: mark, header, meta, guess.
#[test]
fn page_charsets() {
    let check = |bytes: &[u8], content_type: Option<&str>, charset: Value, title: Value| {
        let value = parsed(bytes, content_type);
        assert_eq!(
            (&value["charset"], &value["title"]),
            (&charset, &title),
            "{:?} {content_type:?}",
            String::from_utf8_lossy(bytes)
        );
    };
    let html = Some("text/html");
    check("<title>\u{e9}</title>".as_bytes(), Some("text/html; charset=utf-8"), json!("UTF-8"), json!("\u{e9}"));
    check(b"<title>\xe9</title>", Some("text/html;charset=ISO-8859-1"), json!("windows-1252"), json!("\u{e9}"));
    check(b"<title>\x80</title>", Some("text/html; charset=\"latin1\""), json!("windows-1252"), json!("\u{20ac}"));
    check(b"<title>\xd4</title>", Some("text/html; CHARSET='koi8-r'"), json!("KOI8-R"), json!("\u{442}"));
    check(b"<meta charset=koi8-r><title>\xd4</title>", html, json!("KOI8-R"), json!("\u{442}"));
    check(
        b"<meta http-equiv=content-type content='text/html; charset=koi8-r'><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(
        b"<meta content='text/html; charset=koi8-r' http-equiv=Content-Type><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    // The header beats meta; a mark beats both; the first meta counts; one inside a comment does not.
    check(
        b"<meta charset=utf-8><title>\xd4</title>",
        Some("text/html; charset=koi8-r"),
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(
        "\u{feff}<meta charset=koi8-r><title>\u{e9}</title>".as_bytes(),
        Some("text/html; charset=koi8-r"),
        json!("UTF-8"),
        json!("\u{e9}"),
    );
    check(
        b"<!-- <meta charset=utf-8> --><meta charset=koi8-r><meta charset=utf-8><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(b"<meta charset=nonsense><meta charset=koi8-r><title>\xd4</title>", html, json!("KOI8-R"), json!("\u{442}"));
    // UTF-16 in a meta element cannot be true; x-user-defined is windows-1252.
    check("<meta charset=utf-16><title>\u{e9}</title>".as_bytes(), html, json!("UTF-8"), json!("\u{e9}"));
    check(b"<meta charset=x-user-defined><title>\xe9</title>", html, json!("windows-1252"), json!("\u{e9}"));
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("<title>\u{e9}\u{4e2d}</title>".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    check(&utf16, html, json!("UTF-16LE"), json!("\u{e9}\u{4e2d}"));
    let utf16: Vec<u8> =
        [0xfe, 0xff].into_iter().chain("<title>\u{e9}</title>".encode_utf16().flat_map(u16::to_be_bytes)).collect();
    check(&utf16, Some("text/html; charset=utf-8"), json!("UTF-16BE"), json!("\u{e9}"));
    check(b"<meta charset=shift_jis><title>\x93\xfa\x96{</title>", html, json!("Shift_JIS"), json!("\u{65e5}\u{672c}"));
    check(b"<meta charset=gb2312><title>\xd6\xd0</title>", html, json!("GBK"), json!("\u{4e2d}"));
    check(b"<meta charset=euc-kr><title>\xc7\xd1</title>", html, json!("EUC-KR"), json!("\u{d55c}"));
    // Nothing said: UTF-8 if it can be that, else a guess that never fails.
    check("<title>d\u{e9}j\u{e0} vu</title>".as_bytes(), html, json!("UTF-8"), json!("d\u{e9}j\u{e0} vu"));
    assert!(parsed(b"<title>\xe9\xe8</title>", html)["title"].is_string());
    // Bad bytes become U+FFFD; nothing is lost around them.
    check(b"<title>a\xffb</title>", Some("text/html; charset=utf-8"), json!("UTF-8"), json!("a\u{fffd}b"));
    // Links are made of characters, not of bytes.
    let value = parsed(b"<meta charset=koi8-r><a href='/\xd4'>\xd4</a>", html);
    assert_eq!(value["links"][0]["url"], "http://h.example/%D1%82");

    // What is no text has none, whatever its label; what has no label is looked at.
    let kind = |bytes: &[u8], content_type: Option<&str>, expected: &str| {
        let value = parsed(bytes, content_type);
        assert_eq!(value["kind"], expected, "{content_type:?}: {value}");
        assert!(expected == "html" || expected == "xhtml" || value["links"] == json!([]));
    };
    kind(b"<!DOCTYPE html><a href=x>x</a>", None, "html");
    kind(b"  \n<HTML><a href=x>x</a>", None, "html");
    kind(b"<a href=x>x</a>", Some("application/xhtml+xml"), "xhtml");
    kind(b"plain <a href=x>x</a>", Some("text/plain"), "text");
    kind(b"%PDF-1.7\n<a href=x>x</a>", None, "pdf");
    kind(b"\x89PNG\r\n\x1a\n<a href=x>", Some("image/png"), "image");
    kind(b"\x00\x01\x02\x03", None, "binary");
    kind(b"", Some("text/html"), "html");
}

/// Pages made to hurt are pages of which less is understood.
#[test]
fn pages_that_hurt() {
    let started = Instant::now();
    for html in [
        "<div>".repeat(200_000),
        "<a href=x>".repeat(100_000),
        format!("<p {}>", "a=b ".repeat(200_000)),
        "<".repeat(500_000),
        "&".repeat(500_000),
        format!("<a href='{}'>x</a><a href=y>z</a>", "x".repeat(2_000_000)),
        "<!--".repeat(200_000),
        "<svg><title>".repeat(100_000),
        "<script><!--<script>".repeat(50_000),
        "\0".repeat(500_000),
    ] {
        let value = parsed(&html, Some("text/html"));
        assert!(value["links"].as_array().is_some_and(|l| l.len() <= 5_000), "{}", &html[..20]);
    }
    let many = parsed("<a href=x>y</a>".repeat(6_000), Some("text/html"));
    assert_eq!(
        (many["links"].as_array().map(Vec::len), &many["links_dropped"], &many["truncated"]),
        (Some(5_000), &json!(1_000), &json!(true))
    );
    let long = parsed(format!("<a href='{}'>x</a><a href=y>z</a>", "x".repeat(2_000_000)), Some("text/html"));
    assert_eq!((long["links"].as_array().map(Vec::len), &long["links_dropped"]), (Some(1), &json!(1)));
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}
