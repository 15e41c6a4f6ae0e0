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

use super::{Extractor, MediaKind, Page, ParseOptions, cut, detect_language, sniff};

/// Declares the files of the formats and lists them, in the order in which they are asked.
macro_rules! formats {
    ($($file:ident::$format:ident),*) => {
        $(mod $file;)*
        const STANDARD: &[&dyn Format] = &[$(&$file::$format),*];
    };
}

formats!(html::Html, text::Text);

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
        }
        if options.detect_language {
            page.language = detect_language(&page.text);
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
    use crate::page::{Heading, LinkTag};

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
}
