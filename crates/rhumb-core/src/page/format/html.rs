//! HTML and XHTML: a thin front to the extractor in `page/html.rs`.

use super::{Body, Format, Reader};
use crate::page::{MediaKind, Page, encoding};

/// See the module's header.
pub(super) struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        matches!(body.kind, MediaKind::Html | MediaKind::Xhtml)
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        read(body, reader, page);
        page.kind = body.kind;
        page.format = self.name();
    }
}

/// Reads into a page that is cleared first.
#[inline]
pub(super) fn read(body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
    let (html, charset) = encoding::decode_html(body.bytes, body.charset, reader.options.tld.as_deref());
    reader.extractor.found_at(body.url.filter(|_| reader.options.extract.markdown));
    reader.extractor.extract_markup(&html, &reader.options.extract, body.kind == MediaKind::Xhtml, page);
    page.charset = charset;
}
