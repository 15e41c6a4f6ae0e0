//! Main text and markdown of whole pages.

use super::super::{ExtractOptions, Extractor, MediaKind, Page, ParseOptions, SiteTemplate, parse_page};

fn page(html: &str) -> Page {
    let options = ExtractOptions { main_text: true, markdown: true, ..ExtractOptions::default() };
    Extractor::new().extract(html, &options)
}

/// A sentence long enough to vote.
fn sentence(n: usize) -> String {
    format!(
        "Sentence number {n} tells, at some length and with commas, of things that happened on day {n} of the voyage."
    )
}

fn paragraphs(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| format!("<p>{}</p>", sentence(n))).collect()
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(sentence).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_around_the_text_is_left_out() {
    let check = |before: &str, after: &str| {
        let html = format!("<title>T</title><body>{before}<div class=x>{}</div>{after}", paragraphs(0..6));
        assert_eq!(page(&html).main_text, lines(0..6), "{before} … {after}");
    };
    check("", "");
    check(
        "<nav><ul><li><a href=/>Home</a><li><a href=/a>About us and others</a></ul></nav>",
        "<footer>© 2020</footer>",
    );
    check(
        "<header><h1>The site of sites</h1></header>",
        "<aside><p>Something else, that is long enough, to vote.</aside>",
    );
    check(
        "<div id=cookie-banner><p>We use cookies, as you know, and tell you so at length, again and again.</div>",
        "",
    );
    check("", "<div class=comments><p>First! This is a comment, of a reader, with commas, and long enough.</div>");
    check("", "<div role=navigation><p>Some words, that lead elsewhere, and are many, so many, so very many.</div>");
    check("<div style='display: none'><p>Not shown, never shown, not for all the commas, in the world.</div>", "");
    check("", "<div><a href=/1>One more story of this kind</a> <a href=/2>Another story of that kind</a></div>");
    check("<select><option>German<option>French</select>", "<button>Subscribe to our letters, all of them</button>");
}

#[test]
fn what_stands_between_is_left_out() {
    let check = |between: &str| {
        let html = format!("<article>{}{between}{}</article>", paragraphs(0..4), paragraphs(4..8));
        assert_eq!(page(&html).main_text, lines(0..8), "{between}");
    };
    check("<div class='share-bar'>Share this on everything</div>");
    check("<figure><img src=x><figcaption>A picture of something</figcaption></figure>");
    check("<aside>See also: another thing</aside>");
    check("<ul class=related-links><li><a href=/1>One</a><li><a href=/2>Two</a></ul>");
    check("<form><label>Your address</label><input><button>Send</button></form>");
    check("<div class=advertisement>Buy this</div>");
    check("<script>var x = '<p>y'</script><style>p{}</style><noscript><p>Enable scripts</p></noscript>");
}

#[test]
fn what_belongs_to_the_text_stays() {
    let check = |between: &str, expected: &str| {
        let html = format!("<article>{}{between}{}</article>", paragraphs(0..4), paragraphs(4..8));
        assert_eq!(page(&html).main_text, format!("{}\n{expected}\n{}", lines(0..4), lines(4..8)), "{between}");
    };
    check("<h2>On the next day</h2>", "On the next day");
    check("<ul><li>First point<li>Second point</ul>", "First point\nSecond point");
    check("<blockquote>Words of another</blockquote>", "Words of another");
    check("<pre>let x = 1;</pre>", "let x = 1;");
    check("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a b\nc d");
    check("<p>He said <a href=/x>this</a> once.</p>", "He said this once.");
}

/// Pages of one site, each with the same two blocks that nothing but their repetition gives away.
fn of_site(n: usize) -> String {
    let house = "Our writers travel far and wide, in all weathers, to bring you stories from the sea, and love it.";
    format!(
        "<div><p>{house}</p>{}<p>{house} Do write to us, whenever you like.</p></div>",
        paragraphs(n * 10..n * 10 + 5)
    )
}

#[test]
fn what_the_pages_of_a_site_share_is_left_out() {
    let options = ExtractOptions { main_text: true, ..ExtractOptions::default() };
    let mut extractor = Extractor::new();
    extractor.use_template(SiteTemplate::new());
    let texts: Vec<_> = (0..5).map(|n| extractor.extract(&of_site(n), &options).main_text).collect();
    assert!(texts[0].contains("Our writers"), "one page alone cannot tell");
    for n in 2..5 {
        assert_eq!(texts[n], lines(n * 10..n * 10 + 5));
    }
    // The same page again, and again: it is no template of itself.
    for _ in 0..3 {
        assert!(extractor.extract(&of_site(3), &options).main_text.contains(&lines(30..35)));
    }
    assert_eq!(extractor.take_template().map(|t| t.pages_learned()), Some(5));
    assert_eq!(extractor.extract(&of_site(4), &options).main_text.matches("Our writers").count(), 2);
}

#[test]
fn the_title_is_not_repeated() {
    let html = format!(
        "<title>How it went - The Site</title><article><h1>How it went</h1><p>By Jane Doe</p><p>3 May 2021</p>{}</article>",
        paragraphs(0..5)
    );
    assert_eq!(page(&html).main_text, lines(0..5));
}

#[test]
fn a_page_with_text_has_a_main_text() {
    let check = |html: &str, expected: &str| assert_eq!(page(html).main_text, expected, "{html}");
    check("", "");
    check("hello", "hello");
    check("<p>hello<p>world", "hello\nworld");
    check("<nav>only a menu</nav>", "only a menu");
    check("<div hidden>secret</div>", "secret");
    check("<table><tr><td>x</table>", "x");
    check("<a href=/>link</a>", "link");
}

#[test]
fn languages_without_spaces_work() {
    let line = "这是一个没有空格的句子，它足够长，可以投票，也可以被认出来，因为它有很多逗号，还有句号。";
    let body: String = std::iter::repeat_n(format!("<p>{line}</p>"), 6).collect();
    let html = format!(
        "<ul><li><a href=/>首页</a><li><a href=/a>关于我们</a></ul><div id=x>{body}</div><footer>版权所有</footer>"
    );
    assert_eq!(page(&html).main_text, [line; 6].join("\n"));
}

#[test]
fn plain_text_is_its_own_main_text() {
    let extract = ExtractOptions { main_text: true, markdown: true, ..ExtractOptions::default() };
    let options = ParseOptions { extract, ..ParseOptions::default() };
    let page = parse_page(b"a *b*\nc", Some("text/plain"), &options);
    assert_eq!((page.kind, &*page.main_text, &*page.markdown), (MediaKind::Text, "a *b*\nc", "a \\*b\\*\n\nc"));
}

#[test]
fn nothing_is_done_unasked() {
    let page = Extractor::new().extract("<p>hello</p>", &ExtractOptions::default());
    assert_eq!((&*page.main_text, &*page.markdown), ("", ""));
}

#[test]
fn markdown_is_written() {
    let check = |html: &str, expected: &str| assert_eq!(page(html).markdown, expected, "{html}");
    check("<h2>Title #</h2><p>One <b>two</b> <i>three</i>.<p>Four", "## Title \\#\n\nOne **two** *three*.\n\nFour");
    check("<ul><li>a<li>b<ol><li>c<li>d</ol><li>e</ul>", "- a\n- b\n  1. c\n  2. d\n- e");
    check("<ol start=9><li>a<li>b</ol><p>c", "9. a\n10. b\n\nc");
    check("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
    check("<p>a<br>b", "a\\\nb");
    check(
        "<pre><code class=language-rust>fn x() {\n    1 &lt; 2\n}\n</code></pre>",
        "```rust\nfn x() {\n    1 < 2\n}\n```",
    );
    check("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````");
    check("<p>see <a href='/a b'>this</a>, not <a href=javascript:x>that</a>", "see [this](/a%20b), not that");
    check("<p>a <code>b*</code>", "a `b*`");
    check("<table><tr><th>a<th>b|c<tr><td>1<td><b>2</b></table>", "| a | b\\|c |\n| --- | --- |\n| 1 | **2** |");
    check("<table><tr><td><p>a<p>b</td></tr></table>", "a\n\nb");
    check("<p>&lt;script&gt;alert(1)&lt;/script&gt;", "\\<script>alert(1)\\</script>");
    check("<ul><li><p>a<p>b</li></ul>", "- a\n\n  b");
    check("<h2><div>T</div></h2><p>u", "## T\n\nu");
    check("<h2></h2><p>u", "u");
    check("<a href=/x><h3>T</h3><p>u</p></a>", "### [T](/x)\n\n[u](/x)");
}

#[test]
fn hostile_pages_take_linear_time() {
    let depth = 100_000;
    let check = |html: String| {
        let page = page(&html);
        assert!(page.main_text.len() <= html.len() && page.markdown.len() <= 8 * html.len() + 64, "{:.60}", html);
    };
    check(format!("{}x", "<div>".repeat(depth)));
    check(format!("{}x{}", "<div><p>".repeat(depth), "</p></div>".repeat(depth)));
    check(format!("<div{}>x", " class=comment".repeat(depth)));
    check(format!("{}x", "<table><tr><td>".repeat(depth)));
    check(format!("{}{}", "<ul><li>x".repeat(depth), "</p>".repeat(depth)));
    check(format!("<p><table><tr><td>{}{}", "<div>".repeat(depth), "</p>".repeat(depth)));
    check("<b><i><a href=x>y".repeat(depth));
    check("<blockquote>x<br>".repeat(depth));
    check(format!("{}{}", "<a href=x>".repeat(depth), "</div>".repeat(depth)));
    check(format!("<p>{}", "x, <b>y</b> ".repeat(depth)));
    check("<li>x, y".repeat(depth));
    check(format!("<a href={}>{}", "x".repeat(8000), "<p>y".repeat(depth / 10)));
}
