//! Document formats: one trait, one file each, chosen by what the body was sniffed to be.
//!
//! [`Formats`] is the list in force: those of this folder, and before them whatever a program adds with [`Formats::with`]. The first
//! that claims a body reads it into a [`Page`]. HTML does not wait in that line: nearly all bodies are HTML, and nobody else may
//! claim them. To add a format here, write its file and name it in the one line below that lists them all; `feed.rs` is a good model.
//!
//! Invariant: whatever a format does, the page that comes out keeps to the bounds of [`ExtractOptions`](super::ExtractOptions), knows
//! its kind and who read it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{Extractor, MediaKind, Page, ParseOptions, cut, detect_language, main_text, sniff};

/// Declares the files of the formats and lists them, in the order in which they are asked.
macro_rules! formats {
    ($($file:ident::$format:ident),*) => {
        $(mod $file;)*
        const STANDARD: &[&dyn Format] = &[$(&$file::$format),*];
    };
}

formats!(html::Html, feed::Feed, sitemap::Sitemap, structured::Structured, text::Text);

/// A body on its way to the format that reads it: codings undone, characters not yet.
#[derive(Clone, Debug)]
pub struct Body<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// What it was sniffed to be.
    pub kind: MediaKind,
    /// What the server declared, in lower case and without parameters (`text/html`); empty if that is no type.
    pub essence: Cow<'a, str>,
    /// The `charset` that the server declared.
    pub charset: Option<&'a str>,
    /// Where it was found, if that is known.
    pub url: Option<&'a str>,
}

impl<'a> Body<'a> {
    /// A body with its kind sniffed. `nosniff`: the server forbade guessing.
    pub fn new(bytes: &'a [u8], content_type: Option<&'a str>, nosniff: bool) -> Body<'a> {
        let (kind, essence) = sniff::sniff_declared(bytes, content_type, nosniff);
        Body { bytes, kind, essence, charset: content_type.and_then(sniff::charset_of), url: None }
    }
}

/// What a format reads with: options, and memory that is used again.
pub struct Reader<'a> {
    /// Reads HTML, keeping its memory from page to page.
    pub extractor: &'a mut Extractor,
    /// What is wanted, and how much at most.
    pub options: &'a ParseOptions,
}

/// A document format.
pub trait Format: Send + Sync {
    /// Its name: a word in lower case.
    fn name(&self) -> &'static str;

    /// Whether this body is of the format, judged by its kind, declared type and first bytes.
    fn claims(&self, body: &Body<'_>) -> bool;

    /// Whether reading may take long (much processor time, another process): then it is never done where others would wait for it.
    fn is_slow(&self) -> bool {
        false
    }

    /// Links kept of one document.
    fn links_max(&self, options: &ParseOptions) -> usize {
        options.extract.links_max
    }

    /// Reads what there is into a page that is empty. Nothing is an error: what could not be read goes into [`Page::trouble`].
    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page);
}

/// The formats in force.
#[derive(Clone, Default)]
pub struct Formats {
    added: Vec<Arc<dyn Format>>,
}

impl Formats {
    /// Adds a format, which is asked before all others but HTML.
    #[must_use]
    pub fn with(mut self, format: impl Format + 'static) -> Formats {
        self.added.insert(0, Arc::new(format));
        self
    }

    /// All of them, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Format> {
        self.added.iter().map(|f| &**f).chain(STANDARD.iter().copied())
    }

    /// The format of a body, if there is one.
    pub fn of(&self, body: &Body<'_>) -> Option<&dyn Format> {
        if body.kind == MediaKind::Html { Some(&html::Html) } else { self.iter().find(|f| f.claims(body)) }
    }

    /// Reads a body into a page that is cleared first, with an extractor that keeps its memory.
    pub fn read_into(&self, body: &Body<'_>, extractor: &mut Extractor, options: &ParseOptions, page: &mut Page) {
        let mut reader = Reader { extractor, options };
        if body.kind == MediaKind::Html {
            html::read(body, &mut reader, page);
            page.kind = MediaKind::Html;
            page.format = "html";
        } else {
            page.clear();
            page.kind = body.kind;
            if let Some(format) = self.of(body) {
                page.format = format.name();
                format.read(body, &mut reader, page);
                reader.finish(format.links_max(options), page);
            }
            main_text::of_plain_text(page, &options.extract);
        }
        if options.detect_language {
            // Menus are often in another language than the text, or in none.
            page.language = detect_language(if page.main_text.is_empty() { &page.text } else { &page.main_text });
        }
    }
}

impl Reader<'_> {
    /// Takes the gist of text that is not kept on the page.
    pub fn take_gist(&mut self, text: &str, page: &mut Page) {
        page.gist = self.extractor.gist_of_text(text);
    }

    /// Holds a page to the bounds.
    fn finish(&mut self, links_max: usize, page: &mut Page) {
        let options = &self.options.extract;
        if page.text.len() > options.text_bytes_max {
            page.text.truncate(cut(&page.text, options.text_bytes_max).len());
            let len = page.text.len();
            page.headings.retain(|h| h.span.end <= len);
            page.emphasis.retain(|e| e.end <= len);
            page.truncated = true;
        }
        if let Some(title) = &mut page.title {
            title.truncate(cut(title, options.title_bytes_max).len());
        }
        page.headings.truncate(options.marks_max);
        page.emphasis.truncate(options.marks_max);
        let dropped = page.links.truncate(links_max);
        page.links_dropped += dropped;
        page.hints.retain(|hint| hint.link < page.links.len());
        page.truncated |= dropped > 0;
        // The extractor has done its part already if it was asked.
        let gist = self.extractor.gist_of_text(&page.text);
        if page.gist.is_empty() {
            page.gist = gist;
        }
        if !options.text {
            page.text.clear();
            page.headings.clear();
            page.emphasis.clear();
        }
    }
}

impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Format::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{ExtractOptions, Heading, LinkTag};

    /// Claims one declared type and knows no measure.
    struct Careless;

    impl Format for Careless {
        fn name(&self) -> &'static str {
            "careless"
        }

        fn claims(&self, body: &Body<'_>) -> bool {
            body.essence == "text/x-careless"
        }

        fn read(&self, body: &Body<'_>, _: &mut Reader<'_>, page: &mut Page) {
            page.title = Some("ä".repeat(10_000));
            page.text = String::from_utf8_lossy(body.bytes).repeat(1000);
            page.headings = vec![Heading { level: 1, span: 0..page.text.len() }; 3];
            (0..10_000).for_each(|i| page.links.add(&i.to_string(), "", "", LinkTag::A));
        }
    }

    fn read(formats: &Formats, bytes: &[u8], content_type: &str) -> Page {
        let mut options = ParseOptions::default();
        options.extract.text_bytes_max = 1001;
        let mut page = Page::default();
        let body = Body::new(bytes, Some(content_type), false);
        formats.read_into(&body, &mut Extractor::new(), &options, &mut page);
        page
    }

    #[test]
    fn what_is_added_is_asked_first_and_held_to_the_bounds() {
        let formats = Formats::default().with(Careless);
        let page = read(&formats, "ö".as_bytes(), "Text/X-Careless; a=b");
        assert_eq!((page.format, page.kind, page.text.len()), ("careless", MediaKind::Text, 1000));
        assert_eq!((page.links.len(), page.links_dropped, page.truncated), (5_000, 5_000, true));
        assert_eq!((page.headings.len(), page.title.map(|t| t.len())), (0, Some(1024)));
        assert_eq!(read(&Formats::default(), b"x", "text/x-careless").format, "text");
        assert_eq!(read(&formats, b"<p>x", "text/html").format, "html");
    }

    #[test]
    fn documents_of_all_kinds() {
        let check = |bytes: &[u8], content_type: &str, format: &str, kind: MediaKind, links: &[&str], text: &str| {
            let body = Body { url: Some("http://h.test/d/f"), ..Body::new(bytes, Some(content_type), false) };
            let mut page = Page::default();
            Formats::default().read_into(&body, &mut Extractor::new(), &ParseOptions::default(), &mut page);
            let what = String::from_utf8_lossy(bytes);
            assert_eq!((page.format, page.kind, page.text.as_str()), (format, kind, text), "{what}");
            let found: Vec<_> =
                page.links.iter().map(|l| format!("{} {} {}", l.tag.as_str(), l.href, l.text)).collect();
            assert_eq!(found, links, "{what}");
            page
        };
        use MediaKind::*;
        let rss = "<?xml version='1.0' encoding='latin1'?><rss><channel><title>T</title><link>/</link><item><title>\u{e9}</title>\
                   <link>a</link><pubDate>1 Jan 2026</pubDate></item></channel></rss>";
        let links = ["entry http://h.test/d/a é", "link http://h.test/ "];
        let latin: Vec<u8> = rss.chars().map(|c| c as u8).collect();
        let page = check(&latin, "text/html", "feed", Feed, &links, "é");
        assert_eq!((page.title.as_deref(), page.charset, page.trouble), (Some("T"), "windows-1252", None));
        assert_eq!((page.hints[0].link, page.hints[0].lastmod.as_deref()), (0, Some("1 Jan 2026")));
        let page = check(rss.as_bytes(), "application/rss+xml; charset=utf-8", "feed", Feed, &links, "é");
        assert_eq!(page.charset, "UTF-8");
        let wide: Vec<u8> = rss.encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&wide, "application/xml", "feed", Feed, &links, "é");
        let json = br#"{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","url":"x"}]}"#;
        check(json, "application/json", "feed", Feed, &["entry http://h.test/d/x "], "");
        let page = check(
            b"<rss><channel><item><link>http://a.test/</link>",
            "text/xml",
            "feed",
            Feed,
            &["entry http://a.test/ "],
            "",
        );
        assert_eq!(page.trouble.as_deref(), Some("feed: ends_early: line 1: the file ends early"));
        let list = ["loc http://a.test/ ", "loc http://b.test/x "];
        let urlset = b"<urlset><url><loc>http://a.test/</loc><priority>1</priority></url><url><loc>http://b.test/x</loc></url></urlset>";
        let page = check(urlset, "application/xml", "sitemap", Sitemap, &list, "");
        assert_eq!((page.hints.len(), page.hints[0].priority), (1, Some(1.0)));
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, urlset).expect("memory");
        check(&packer.finish().expect("memory"), "application/x-gzip", "sitemap", Sitemap, &list, "");
        check(b"http://a.test/\r\n\r\nhttp://b.test/x", "text/plain", "sitemap", Sitemap, &list, "");
        check(b"http://a.test/ is good", "text/plain", "text", Text, &[], "http://a.test/ is good");
        check(b"{\"a\":1}", "application/json", "text", Json, &[], "{\"a\":1}");
        let page = check(b" {\"a\":1} ", "application/ld+json", "json-ld", Json, &[], " {\"a\":1} ");
        assert_eq!(page.structured, ["{\"a\":1}"]);
        check(b"<svg><a href=x>", "image/svg+xml", "text", Xml, &[], "");
        check(b"\x89PNG\r\n\x1a\n", "image/png", "", Image, &[], "");
        let html = b"<script type='application/ld+json; x'>{\"b\":[2]}</script><script type=application/LD+json>{no</script><script>{}</script>";
        assert_eq!(check(html, "text/html", "html", Html, &[], "").structured, ["{\"b\":[2]}"]);
        let many = "<script type=application/ld+json>{}</script>".repeat(100);
        assert_eq!(check(many.as_bytes(), "text/html", "html", Html, &[], "").structured.len(), 32);
    }

    #[test]
    fn links_in_markdown_lead_from_where_the_page_was_found() {
        let check = |html: &str, url: Option<&str>, expected: &str| {
            let extract = ExtractOptions { main_text: true, markdown: true, ..ExtractOptions::default() };
            let options = ParseOptions { extract, ..ParseOptions::default() };
            let mut page = Page::default();
            let body = Body { url, ..Body::new(html.as_bytes(), Some("text/html"), false) };
            Formats::default().read_into(&body, &mut Extractor::new(), &options, &mut page);
            assert_eq!(page.markdown.trim(), expected, "{html}");
        };
        let own = Some("http://a.example/d/p");
        check("<p>See <a href=x>this</a>.", own, "See [this](http://a.example/d/x).");
        check("<base href=/e/><p>See <a href=x>this</a>.", own, "See [this](http://a.example/e/x).");
        check("<p>See <a href=x>this</a>.", None, "See [this](x).");
        check("<p>See <a href='javascript:x'>this</a>.", own, "See this.");
    }
}
