//! JSON-LD that is a document of its own: kept as it is, and as text.

use super::{Body, Format, Reader};
use crate::page::{MediaKind, Page, cut, encoding};

/// See the module's header.
pub(super) struct Structured;

impl Format for Structured {
    fn name(&self) -> &'static str {
        "json-ld"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        body.kind == MediaKind::Json && body.essence == "application/ld+json"
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        let (text, charset) = encoding::decode_text(body.bytes, body.charset, reader.options.tld.as_deref());
        page.charset = charset;
        if !page.keep_structured(&text) {
            page.trouble = Some("JSON-LD not kept: no JSON, or too large".to_owned());
        }
        let kept = cut(&text, reader.options.extract.text_bytes_max);
        page.truncated = kept.len() < text.len();
        page.text.push_str(kept);
    }
}
